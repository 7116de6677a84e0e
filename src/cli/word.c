/* SPDX-License-Identifier: MIT */
/* Reading problem words. Writing them is in word_print.c. */
#include "word.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suggest.h"

enum { TOKEN_MAX = 64, SUFFIX_COUNT = 26 };

/* Larger than any memory can hold, small enough for products of two in 64 bits. */
#define EXTENT_MAX ((ptrdiff_t)1 << 31)

typedef struct parser {
    problem_word *word;
    const char *text;
    int at; /* where the token begins */
    char token[TOKEN_MAX];
    bool seen[128]; /* extents given, by letter */
    bool given[SUFFIX_COUNT];
    bool typed;        /* a type for all four was given */
    bool own_given[4]; /* q, k, v, o: a type of its own, which wins whatever the order */
    mha_dtype own_type[4];
    char *message;
    size_t size;
} parser;

__attribute__((format(printf, 2, 3))) static bool fail(parser *p, const char *format, ...)
{
    va_list list;
    const int n = snprintf(p->message, p->size, "word \"%.160s\"", p->text);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < p->size && p->token[0] != '\0')
        used += (size_t)snprintf(p->message + used, p->size - used, ", \"%s\" at column %d",
                                 p->token, p->at + 1);
    if (used + 2 < p->size) {
        memcpy(p->message + used, ": ", 3);
        va_start(list, format);
        vsnprintf(p->message + used + 2, p->size - used - 2, format, list);
        va_end(list);
    }
    return false;
}

/* ---------------------------------------------------------------- values ----- */

static bool read_number(parser *p, const char *value, int64_t low, int64_t high, int64_t *number)
{
    char *end;
    errno = 0;
    const long long n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || *value == '+' || *value == ' ')
        return fail(p, "\"%s\" is not a whole number", value);
    if (errno == ERANGE || n < low || n > high)
        return fail(p, "%s is not in %lld..%lld", value, (long long)low, (long long)high);
    *number = n;
    return true;
}

static bool read_int(parser *p, const char *value, int low, int high, int *number)
{
    int64_t n = 0;
    if (!read_number(p, value, low, high, &n))
        return false;
    *number = (int)n;
    return true;
}

static bool read_real(parser *p, const char *value, float *number)
{
    char *end;
    const float x = strtof(value, &end);
    if (end == value || *end != '\0')
        return fail(p, "\"%s\" is not a number", value);
    if (!isfinite(x) || x == 0.0f)
        return fail(p, "%s is not a finite number other than 0", value);
    *number = x;
    return true;
}

static bool read_choice(parser *p, const char *value, const char *const *names, int count,
                        int *choice)
{
    for (int n = 0; n < count; n++) {
        if (strcmp(value, names[n]) == 0) {
            *choice = n;
            return true;
        }
    }
    char list[96] = "";
    for (int n = 0; n < count; n++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? ", " : "", names[n]);
    const char *near = suggest_nearest(value, names, count);
    if (near != NULL)
        return fail(p, "\"%s\" is none of %s; did you mean \"%s\"?", value, list, near);
    return fail(p, "\"%s\" is none of %s", value, list);
}

static bool read_type(parser *p, const char *value, mha_dtype *type)
{
    /* In the order of mha_dtype. */
    static const char *const names[] = {"f32", "f16", "bf16", "f64"};
    int choice = 0;
    if (!read_choice(p, value, names, 4, &choice))
        return false;
    *type = (mha_dtype)choice;
    return true;
}

/* -------------------------------------------------------------- suffixes ----- */

typedef enum suffix_value { VALUE_NONE, VALUE_MAY, VALUE_MUST } suffix_value;

typedef struct suffix suffix;
struct suffix {
    const char *name;
    suffix_value value;
    bool (*apply)(parser *p, const suffix *x, const char *value);
    size_t field; /* of problem_word, for the general setters */
    int number;   /* what `apply` makes of it: a type, a position, the largest count */
    bool repeats; /* may stand twice in a word, with different values */
};

static void *field_of(parser *p, const suffix *x)
{
    return (char *)p->word + x->field;
}

static bool set_flag(parser *p, const suffix *x, const char *value)
{
    (void)value;
    *(bool *)field_of(p, x) = true;
    return true;
}

static bool set_count(parser *p, const suffix *x, const char *value)
{
    return read_int(p, value, 1, x->number, field_of(p, x));
}

static bool set_types(parser *p, const suffix *x, const char *value)
{
    (void)value;
    if (p->typed)
        return fail(p, "a type for all was given before");
    p->typed = true;
    problem_word *w = p->word;
    w->q_type = w->k_type = w->v_type = w->o_type = (mha_dtype)x->number;
    return true;
}

static bool set_own_type(parser *p, const suffix *x, const char *value)
{
    p->own_given[x->number] = true;
    return read_type(p, value, &p->own_type[x->number]);
}

static bool set_position(parser *p, const suffix *x, const char *value)
{
    int64_t offset = 0;
    if (p->word->position != MHA_POSITION_UNSET)
        return fail(p, "only one of tl, br and offset=N can hold");
    if (value != NULL && !read_number(p, value, -EXTENT_MAX, EXTENT_MAX, &offset))
        return false;
    p->word->position = (mha_position)x->number;
    p->word->offset = (ptrdiff_t)offset;
    return true;
}

static bool set_window(parser *p, const suffix *x, const char *value)
{
    (void)x;
    char left_text[TOKEN_MAX];
    snprintf(left_text, sizeof left_text, "%s", value);
    char *comma = strchr(left_text, ',');
    if (comma != NULL)
        *comma = '\0';
    int64_t left = 0, right = 0;
    if (!read_number(p, left_text, -1, EXTENT_MAX, &left) ||
        (comma != NULL && !read_number(p, comma + 1, -1, EXTENT_MAX, &right)))
        return false;
    p->word->window = true;
    p->word->window_left = (ptrdiff_t)left;
    p->word->window_right = (ptrdiff_t)right;
    return true;
}

static bool set_mask(parser *p, const suffix *x, const char *value)
{
    (void)x;
    const bool add = strcmp(value, "add") == 0;
    if (!add && strncmp(value, "bool", 4) != 0)
        return fail(p, "\"%s\" is neither boolP (P percent attended, say mask=bool50) nor add",
                    value);
    if (add ? p->word->add_mask : p->word->bool_percent >= 0)
        return fail(p, "a mask of this kind was given before");
    p->word->add_mask = p->word->add_mask || add;
    return add || read_int(p, value[4] ? value + 4 : "50", 0, 100, &p->word->bool_percent);
}

static bool set_real(parser *p, const suffix *x, const char *value)
{
    return read_real(p, value, field_of(p, x));
}

static bool set_softcap(parser *p, const suffix *x, const char *value)
{
    return set_real(p, x, value) && (p->word->softcap > 0.0f || fail(p, "a soft cap is positive"));
}

static bool set_weights(parser *p, const suffix *x, const char *value)
{
    /* In the order of mha_weights_mode. */
    static const char *const names[] = {"softmax", "raw", "softcap", "bias"};
    int mode = 0;
    (void)x;
    if (value != NULL && !read_choice(p, value, names, 4, &mode))
        return false;
    p->word->weights = true;
    p->word->weights_mode = (mha_weights_mode)mode;
    return true;
}

static bool set_average(parser *p, const suffix *x, const char *value)
{
    p->word->weights = true;
    return set_flag(p, x, value);
}

static bool set_layout(parser *p, const suffix *x, const char *value)
{
    /* In the order of word_layout. */
    static const char *const names[] = {"bhld", "blhd"};
    int choice = 0;
    (void)x;
    if (!read_choice(p, value, names, 2, &choice))
        return false;
    p->word->layout = (word_layout)choice;
    return true;
}

#define FIELD(name) offsetof(problem_word, name)
static const suffix suffixes[] = {
    {"f32", VALUE_NONE, set_types, 0, MHA_F32, false},
    {"f16", VALUE_NONE, set_types, 0, MHA_F16, false},
    {"bf16", VALUE_NONE, set_types, 0, MHA_BF16, false},
    {"f64", VALUE_NONE, set_types, 0, MHA_F64, false},
    {"q", VALUE_MUST, set_own_type, 0, 0, false},
    {"k", VALUE_MUST, set_own_type, 0, 1, false},
    {"v", VALUE_MUST, set_own_type, 0, 2, false},
    {"o", VALUE_MUST, set_own_type, 0, 3, false},
    {"causal", VALUE_NONE, set_flag, FIELD(causal), 0, false},
    {"tl", VALUE_NONE, set_position, 0, MHA_POSITION_TOP_LEFT, false},
    {"br", VALUE_NONE, set_position, 0, MHA_POSITION_BOTTOM_RIGHT, false},
    {"offset", VALUE_MUST, set_position, 0, MHA_POSITION_OFFSET, false},
    {"window", VALUE_MUST, set_window, 0, 0, false},
    {"mask", VALUE_MUST, set_mask, 0, 0, true},
    {"bias", VALUE_NONE, set_flag, FIELD(bias), 0, false},
    {"alibi", VALUE_NONE, set_flag, FIELD(alibi), 0, false},
    {"sink", VALUE_NONE, set_flag, FIELD(sink), 0, false},
    {"softcap", VALUE_MUST, set_softcap, FIELD(softcap), 0, false},
    {"scale", VALUE_MUST, set_real, FIELD(scale), 0, false},
    {"docs", VALUE_MUST, set_count, FIELD(documents), 1 << 30, false},
    {"packed", VALUE_NONE, set_flag, FIELD(packed), 0, false},
    {"lse", VALUE_NONE, set_flag, FIELD(lse), 0, false},
    {"weights", VALUE_MAY, set_weights, 0, 0, false},
    {"avg", VALUE_NONE, set_average, FIELD(average), 0, false},
    {"layout", VALUE_MUST, set_layout, 0, 0, false},
    {"t", VALUE_MUST, set_count, FIELD(threads), MHA_MAX_THREADS, false},
};
#undef FIELD
_Static_assert(sizeof suffixes / sizeof suffixes[0] == SUFFIX_COUNT, "SUFFIX_COUNT is wrong");

const char *const word_suffixes[] = {
    "f32",    "f16",    "bf16",    "f64",  "q",      "k",     "v",    "o",       "causal", "tl",
    "br",     "offset", "window",  "mask", "bias",   "alibi", "sink", "softcap", "scale",  "docs",
    "packed", "lse",    "weights", "avg",  "layout", "t",     "pad",  "padk"};
const int word_suffix_count = sizeof word_suffixes / sizeof word_suffixes[0];

/* pad, padN, padk, padkN: the number is part of the name. */
static bool is_pad(const char *token)
{
    if (strncmp(token, "pad", 3) != 0)
        return false;
    token += token[3] == 'k' ? 4 : 3;
    return strspn(token, "0123456789") == strlen(token);
}

static bool apply_pad(parser *p)
{
    const bool keys_only = p->token[3] == 'k';
    const char *number = p->token + (keys_only ? 4 : 3);
    if (p->word->pad != 0)
        return fail(p, "padding was given before");
    p->word->pad_keys_only = keys_only;
    return read_int(p, *number ? number : "2", 2, 1 << 30, &p->word->pad);
}

static bool parse_suffix(parser *p)
{
    char name[TOKEN_MAX];
    snprintf(name, sizeof name, "%s", p->token);
    if (is_pad(name))
        return apply_pad(p);
    char *value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    for (int n = 0; n < SUFFIX_COUNT; n++) {
        if (strcmp(name, suffixes[n].name) != 0)
            continue;
        if (value == NULL && suffixes[n].value == VALUE_MUST)
            return fail(p, "needs a value, as in %s=...", name);
        if (value != NULL && suffixes[n].value == VALUE_NONE)
            return fail(p, "takes no value");
        if (p->given[n] && !suffixes[n].repeats)
            return fail(p, "%s was given before", name);
        p->given[n] = true;
        return suffixes[n].apply(p, &suffixes[n], value);
    }
    const char *near = suggest_nearest(name, word_suffixes, word_suffix_count);
    if (near != NULL)
        return fail(p, "unknown suffix; did you mean \"%s\"?", near);
    return fail(p, "unknown suffix; see \"mha help words\"");
}

/* --------------------------------------------------------------- extents ----- */

static ptrdiff_t *extent_of(problem_word *word, char letter)
{
    switch (letter) {
    case 'b':
        return &word->b;
    case 'h':
        return &word->h;
    case 'g':
        return &word->g;
    case 'l':
        return &word->l;
    case 's':
        return &word->s;
    case 'd':
        return &word->d;
    case 'v':
        return &word->v;
    default:
        return NULL;
    }
}

/* Reads the number of an extent, digits only; returns where it ends, NULL after a message. */
static const char *read_extent(parser *p, char letter, const char *text, ptrdiff_t *extent)
{
    char *end;
    if (*text < '0' || *text > '9') {
        fail(p, "'%c' needs a number, as in %c64", letter, letter);
        return NULL;
    }
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (errno == ERANGE || n > EXTENT_MAX) {
        fail(p, "'%c' is at most %lld", letter, (long long)EXTENT_MAX);
        return NULL;
    }
    *extent = (ptrdiff_t)n;
    return end;
}

static bool parse_extents(parser *p)
{
    for (const char *next = p->token; *next != '\0';) {
        const char letter = *next++;
        ptrdiff_t *extent = extent_of(p->word, letter);
        if (extent == NULL)
            return fail(p, "'%c' is none of the extents b h g l s d v", letter);
        if (p->seen[(int)letter])
            return fail(p, "'%c' was given before", letter);
        p->seen[(int)letter] = true;
        next = read_extent(p, letter, next, extent);
        if (next == NULL)
            return false;
    }
    return true;
}

static void fill_types(parser *p)
{
    mha_dtype *const types[] = {&p->word->q_type, &p->word->k_type, &p->word->v_type,
                                &p->word->o_type};
    for (int n = 0; n < 4; n++)
        if (p->own_given[n])
            *types[n] = p->own_type[n];
}

static bool fill_defaults(parser *p)
{
    problem_word *w = p->word;
    fill_types(p);
    p->token[0] = '\0';
    if (!p->seen['l'] || !p->seen['d'])
        return fail(p, "the extents l (queries) and d (head width) must be given, as in l128d64");
    if (!p->seen['g'])
        w->g = w->h;
    if (!p->seen['s'])
        w->s = w->l;
    if (!p->seen['v'])
        w->v = w->d;
    return true;
}

/* ---------------------------------------------------------------- checks ----- */

static bool lengths_differ(const problem_word *w)
{
    return w->l != w->s || (w->pad > 0 && w->pad_keys_only);
}

static bool check_extents(parser *p)
{
    const problem_word *w = p->word;
    if (w->h > 0 && (w->g == 0 || w->h % w->g != 0))
        return fail(p, "h%td is not a multiple of g%td", w->h, w->g);
    if (w->d > MHA_MAX_HEAD_WIDTH || w->v > MHA_MAX_HEAD_WIDTH)
        return fail(p, "'%c': a head is at most %d wide", w->d > MHA_MAX_HEAD_WIDTH ? 'd' : 'v',
                    MHA_MAX_HEAD_WIDTH);
    if (w->v == 0 && w->d > 0)
        return fail(p, "'v' is at least 1");
    return true;
}

static bool check_together(parser *p)
{
    const problem_word *w = p->word;
    const bool f64 = w->q_type == MHA_F64;
    if (f64 != (w->k_type == MHA_F64) || f64 != (w->v_type == MHA_F64) ||
        f64 != (w->o_type == MHA_F64))
        return fail(p, "f64 goes with f64 only: q, k, v and o alike");
    if ((w->causal || w->window || w->alibi) && w->position == MHA_POSITION_UNSET &&
        lengths_differ(w))
        return fail(p, "causal, window and alibi with other numbers of keys than queries need to "
                       "know where query 0 stands: add br (the last query sees the last key), tl "
                       "or offset=N");
    if (w->packed && w->pad > 0)
        return fail(p, "packed sequences have no padding");
    return true;
}

problem_word word_default(void)
{
    return (problem_word){
        .b = 1, .h = 1, .g = 1, .l = 1, .s = 1, .d = 1, .v = 1, .bool_percent = -1};
}

static bool next_token(parser *p, const char **rest)
{
    const size_t length = strcspn(*rest, ":");
    p->at = (int)(*rest - p->text);
    snprintf(p->token, sizeof p->token, "%.*s", (int)length, *rest);
    if (length == 0)
        return fail(p, "nothing stands at column %d", p->at + 1);
    if (length >= sizeof p->token)
        return fail(p, "too long");
    *rest += length;
    return true;
}

bool word_parse(problem_word *word, const char *text, char *message, size_t size)
{
    parser p = {.word = word, .text = text, .message = message, .size = size};
    *word = word_default();
    if (size > 0)
        message[0] = '\0';
    const char *rest = text;
    if (!next_token(&p, &rest) || !parse_extents(&p))
        return false;
    while (*rest == ':') {
        rest++;
        if (!next_token(&p, &rest) || !parse_suffix(&p))
            return false;
    }
    return fill_defaults(&p) && check_extents(&p) && check_together(&p);
}

mha_shape word_shape(const problem_word *w)
{
    return (mha_shape){.B = w->b,
                       .H = w->h,
                       .G = w->g,
                       .L = w->l,
                       .S = w->s,
                       .D = w->d,
                       .Dv = w->v,
                       .q_type = w->q_type,
                       .k_type = w->k_type,
                       .v_type = w->v_type,
                       .o_type = w->o_type};
}

mha_options word_options(const problem_word *w)
{
    return (mha_options){.size = sizeof(mha_options),
                         .flags = (w->causal ? (uint32_t)MHA_CAUSAL : 0u) |
                                  (w->window ? (uint32_t)MHA_WINDOW : 0u) |
                                  (w->average ? (uint32_t)MHA_AVERAGE_WEIGHTS : 0u),
                         .scale = w->scale,
                         .softcap = w->softcap,
                         .position = w->position,
                         .offset = w->offset,
                         .window_left = w->window_left,
                         .window_right = w->window_right,
                         .weights_mode = w->weights_mode};
}
