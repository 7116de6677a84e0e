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

enum { TOKEN_MAX = 64 };

/* Larger than any memory can hold, small enough for products of two in 64 bits. */
#define EXTENT_MAX ((ptrdiff_t)1 << 31)

typedef struct parser {
    problem_word *word;
    const char *text;
    int at; /* where the token begins */
    char token[TOKEN_MAX];
    bool seen[128];    /* extents given, by letter */
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

static bool set_types(parser *p, const char *name)
{
    mha_dtype type;
    if (p->typed)
        return fail(p, "a type for all was given before");
    if (!read_type(p, name, &type))
        return false;
    p->typed = true;
    p->word->q_type = p->word->k_type = p->word->v_type = p->word->o_type = type;
    return true;
}

static bool set_own_type(parser *p, int which, const char *value)
{
    p->own_given[which] = true;
    return read_type(p, value, &p->own_type[which]);
}

static bool set_position(parser *p, mha_position position)
{
    if (p->word->position != MHA_POSITION_UNSET)
        return fail(p, "only one of tl, br and offset=N can hold");
    p->word->position = position;
    return true;
}

static bool apply_f32(parser *p, const char *value)
{
    (void)value;
    return set_types(p, "f32");
}

static bool apply_f16(parser *p, const char *value)
{
    (void)value;
    return set_types(p, "f16");
}

static bool apply_bf16(parser *p, const char *value)
{
    (void)value;
    return set_types(p, "bf16");
}

static bool apply_f64(parser *p, const char *value)
{
    (void)value;
    return set_types(p, "f64");
}

static bool apply_q(parser *p, const char *value)
{
    return set_own_type(p, 0, value);
}

static bool apply_k(parser *p, const char *value)
{
    return set_own_type(p, 1, value);
}

static bool apply_v(parser *p, const char *value)
{
    return set_own_type(p, 2, value);
}

static bool apply_o(parser *p, const char *value)
{
    return set_own_type(p, 3, value);
}

static bool apply_causal(parser *p, const char *value)
{
    (void)value;
    p->word->causal = true;
    return true;
}

static bool apply_tl(parser *p, const char *value)
{
    (void)value;
    return set_position(p, MHA_POSITION_TOP_LEFT);
}

static bool apply_br(parser *p, const char *value)
{
    (void)value;
    return set_position(p, MHA_POSITION_BOTTOM_RIGHT);
}

static bool apply_offset(parser *p, const char *value)
{
    int64_t offset = 0;
    if (!set_position(p, MHA_POSITION_OFFSET) ||
        !read_number(p, value, -EXTENT_MAX, EXTENT_MAX, &offset))
        return false;
    p->word->offset = (ptrdiff_t)offset;
    return true;
}

static bool apply_window(parser *p, const char *value)
{
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

static bool apply_mask(parser *p, const char *value)
{
    if (strcmp(value, "add") == 0) {
        p->word->add_mask = true;
        return true;
    }
    if (strncmp(value, "bool", 4) == 0)
        return read_int(p, value[4] ? value + 4 : "50", 0, 100, &p->word->bool_percent);
    return fail(p, "\"%s\" is neither boolP (P percent attended, say mask=bool50) nor add", value);
}

static bool apply_bias(parser *p, const char *value)
{
    (void)value;
    p->word->bias = true;
    return true;
}

static bool apply_alibi(parser *p, const char *value)
{
    (void)value;
    p->word->alibi = true;
    return true;
}

static bool apply_sink(parser *p, const char *value)
{
    (void)value;
    p->word->sink = true;
    return true;
}

static bool apply_softcap(parser *p, const char *value)
{
    if (!read_real(p, value, &p->word->softcap))
        return false;
    return p->word->softcap > 0.0f || fail(p, "a soft cap is positive");
}

static bool apply_scale(parser *p, const char *value)
{
    return read_real(p, value, &p->word->scale);
}

static bool apply_docs(parser *p, const char *value)
{
    return read_int(p, value, 1, 1 << 30, &p->word->documents);
}

static bool apply_packed(parser *p, const char *value)
{
    (void)value;
    p->word->packed = true;
    return true;
}

static bool apply_lse(parser *p, const char *value)
{
    (void)value;
    p->word->lse = true;
    return true;
}

static bool apply_weights(parser *p, const char *value)
{
    /* In the order of mha_weights_mode. */
    static const char *const names[] = {"softmax", "raw", "softcap", "bias"};
    int mode = 0;
    if (value != NULL && !read_choice(p, value, names, 4, &mode))
        return false;
    p->word->weights = true;
    p->word->weights_mode = (mha_weights_mode)mode;
    return true;
}

static bool apply_avg(parser *p, const char *value)
{
    (void)value;
    p->word->weights = true;
    p->word->average = true;
    return true;
}

static bool apply_layout(parser *p, const char *value)
{
    /* In the order of word_layout. */
    static const char *const names[] = {"bhld", "blhd"};
    int choice = 0;
    if (!read_choice(p, value, names, 2, &choice))
        return false;
    p->word->layout = (word_layout)choice;
    return true;
}

static bool apply_threads(parser *p, const char *value)
{
    return read_int(p, value, 1, MHA_MAX_THREADS, &p->word->threads);
}

typedef enum suffix_value { VALUE_NONE, VALUE_MAY, VALUE_MUST } suffix_value;

typedef struct suffix {
    const char *name;
    suffix_value value;
    bool (*apply)(parser *p, const char *value);
} suffix;

static const suffix suffixes[] = {
    {"f32", VALUE_NONE, apply_f32},
    {"f16", VALUE_NONE, apply_f16},
    {"bf16", VALUE_NONE, apply_bf16},
    {"f64", VALUE_NONE, apply_f64},
    {"q", VALUE_MUST, apply_q},
    {"k", VALUE_MUST, apply_k},
    {"v", VALUE_MUST, apply_v},
    {"o", VALUE_MUST, apply_o},
    {"causal", VALUE_NONE, apply_causal},
    {"tl", VALUE_NONE, apply_tl},
    {"br", VALUE_NONE, apply_br},
    {"offset", VALUE_MUST, apply_offset},
    {"window", VALUE_MUST, apply_window},
    {"mask", VALUE_MUST, apply_mask},
    {"bias", VALUE_NONE, apply_bias},
    {"alibi", VALUE_NONE, apply_alibi},
    {"sink", VALUE_NONE, apply_sink},
    {"softcap", VALUE_MUST, apply_softcap},
    {"scale", VALUE_MUST, apply_scale},
    {"docs", VALUE_MUST, apply_docs},
    {"packed", VALUE_NONE, apply_packed},
    {"lse", VALUE_NONE, apply_lse},
    {"weights", VALUE_MAY, apply_weights},
    {"avg", VALUE_NONE, apply_avg},
    {"layout", VALUE_MUST, apply_layout},
    {"t", VALUE_MUST, apply_threads},
};
enum { SUFFIX_COUNT = sizeof suffixes / sizeof suffixes[0] };

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
        return suffixes[n].apply(p, value);
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

static bool parse_extents(parser *p)
{
    char number[TOKEN_MAX];
    for (const char *next = p->token; *next != '\0';) {
        const char letter = *next++;
        ptrdiff_t *extent = extent_of(p->word, letter);
        if (extent == NULL)
            return fail(p, "'%c' is none of the extents b h g l s d v", letter);
        if (p->seen[(int)letter])
            return fail(p, "'%c' was given before", letter);
        p->seen[(int)letter] = true;
        const size_t digits = strspn(next, "0123456789");
        if (digits == 0)
            return fail(p, "'%c' needs a number, as in %c64", letter, letter);
        memcpy(number, next, digits);
        number[digits] = '\0';
        int64_t n = 0;
        if (!read_number(p, number, 0, EXTENT_MAX, &n))
            return false;
        *extent = (ptrdiff_t)n;
        next += digits;
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
        return fail(p, "a head is at most %d wide", MHA_MAX_HEAD_WIDTH);
    if (w->v == 0 && w->d > 0)
        return fail(p, "v is at least 1");
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
