/* SPDX-License-Identifier: MIT */
/*
 * Reading problem words, and their help. `suffixes` is the grammar: one row per suffix, with the
 * function that reads its value and what the help says of it. Writing words is in
 * problem_word_print.c.
 */
#include "problem/problem_word.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUFFIX_COUNT = 33 };

typedef struct parser {
    problem_word *word;
    word_reader in;
    bool seen[128]; /* extents given, by letter */
    bool given[SUFFIX_COUNT];
    bool typed;        /* a type for all four was given */
    bool own_given[4]; /* q, k, v, o: a type of its own, which wins whatever the order */
    mha_dtype own_type[4];
} parser;

/* ---------------------------------------------------------------- values ----- */

static bool read_real(parser *p, const char *value, float *number)
{
    char *end;
    const float x = strtof(value, &end);
    if (end == value || *end != '\0')
        return reader_fail(&p->in, "\"%s\" is not a number", value);
    if (!isfinite(x) || x == 0.0f)
        return reader_fail(&p->in, "%s is not a finite number other than 0", value);
    *number = x;
    return true;
}

static bool read_type(parser *p, const char *value, mha_dtype *type)
{
    /* In the order of mha_dtype. */
    static const char *const names[] = {"f32", "f16", "bf16", "f64"};
    int choice = 0;
    if (!reader_choice(&p->in, value, names, 4, &choice))
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
    size_t field;      /* of problem_word, for the general setters */
    int number;        /* argument of `apply`: a type, a position, the largest count */
    const char *usage; /* of this suffix and those after it without one, for the help; or NULL */
    const char *help;
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
    return reader_int(&p->in, value, 1, x->number, field_of(p, x));
}

static bool set_types(parser *p, const suffix *x, const char *value)
{
    (void)value;
    if (p->typed)
        return reader_fail(&p->in, "a type for all was given before");
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
        return reader_fail(&p->in, "only one of tl, br and offset=N may be given");
    if (value != NULL && !reader_number(&p->in, value, -WORD_EXTENT_MAX, WORD_EXTENT_MAX, &offset))
        return false;
    p->word->position = (mha_position)x->number;
    p->word->offset = (ptrdiff_t)offset;
    return true;
}

static bool set_window(parser *p, const suffix *x, const char *value)
{
    (void)x;
    char left_text[WORD_TOKEN_MAX];
    snprintf(left_text, sizeof left_text, "%s", value);
    char *comma = strchr(left_text, ',');
    if (comma != NULL)
        *comma = '\0';
    int64_t left = 0, right = 0;
    if (!reader_number(&p->in, left_text, -1, WORD_EXTENT_MAX, &left) ||
        (comma != NULL && !reader_number(&p->in, comma + 1, -1, WORD_EXTENT_MAX, &right)))
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
        return reader_fail(
            &p->in, "\"%s\" is neither boolP (P percent attended, say mask=bool50) nor add", value);
    if (add ? p->word->add_mask : p->word->bool_percent >= 0)
        return reader_fail(&p->in, "a mask of this kind was given before");
    p->word->add_mask = p->word->add_mask || add;
    return add || reader_int(&p->in, value[4] ? value + 4 : "50", 0, 100, &p->word->bool_percent);
}

static bool set_real(parser *p, const suffix *x, const char *value)
{
    return read_real(p, value, field_of(p, x));
}

static bool set_softcap(parser *p, const suffix *x, const char *value)
{
    return set_real(p, x, value) &&
           (p->word->softcap > 0.0f || reader_fail(&p->in, "a soft cap must be positive"));
}

static bool set_dropout(parser *p, const suffix *x, const char *value)
{
    return set_real(p, x, value) &&
           ((p->word->dropout > 0.0f && p->word->dropout <= 0.999f) ||
            reader_fail(&p->in, "dropout must be larger than 0 and at most 0.999"));
}

static bool set_weights(parser *p, const suffix *x, const char *value)
{
    /* In the order of mha_weights_mode. */
    static const char *const names[] = {"softmax", "raw", "softcap", "bias"};
    int mode = 0;
    (void)x;
    if (value != NULL && !reader_choice(&p->in, value, names, 4, &mode))
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

static bool set_statistics(parser *p, const suffix *x, const char *value)
{
    /* In the order of the bits of STATISTICS_COLUMNS and STATISTICS_TOP. */
    static const char *const names[] = {"rows", "columns", "top", "all"};
    int more = 0;
    (void)x;
    if (value != NULL && !reader_choice(&p->in, value, names, 4, &more))
        return false;
    p->word->statistics = STATISTICS_ROWS | (unsigned)more * STATISTICS_COLUMNS;
    return true;
}

static bool set_layout(parser *p, const suffix *x, const char *value)
{
    /* In the order of word_layout. */
    static const char *const names[] = {"bhld", "blhd"};
    int choice = 0;
    (void)x;
    if (!reader_choice(&p->in, value, names, 2, &choice))
        return false;
    p->word->layout = (word_layout)choice;
    return true;
}

#define FIELD(name) offsetof(problem_word, name)
#define NONE VALUE_NONE
#define MUST VALUE_MUST
static const suffix suffixes[] = {
    {"f32", NONE, set_types, 0, MHA_F32, "f32 f16 bf16 f64", "type of q, k, v and o (f32)"},
    {"f16", NONE, set_types, 0, MHA_F16, NULL, NULL},
    {"bf16", NONE, set_types, 0, MHA_BF16, NULL, NULL},
    {"f64", NONE, set_types, 0, MHA_F64, NULL, NULL},
    {"q", MUST, set_own_type, 0, 0, "q=T k=T v=T o=T", "type of one of them"},
    {"k", MUST, set_own_type, 0, 1, NULL, NULL},
    {"v", MUST, set_own_type, 0, 2, NULL, NULL},
    {"o", MUST, set_own_type, 0, 3, NULL, NULL},
    {"native", NONE, set_flag, FIELD(native), 0, "native",
     "native arithmetic: products in the storage type (bf16)"},
    {"causal", NONE, set_flag, FIELD(causal), 0, "causal",
     "a query sees keys up to its own position"},
    {"tl", NONE, set_position, 0, MHA_POSITION_TOP_LEFT, "tl br offset=N",
     "position of query 0 among the keys: 0, s-l, N"},
    {"br", NONE, set_position, 0, MHA_POSITION_BOTTOM_RIGHT, NULL, NULL},
    {"offset", MUST, set_position, 0, MHA_POSITION_OFFSET, NULL, NULL},
    {"window", MUST, set_window, 0, 0, "window=L[,R]",
     "L keys before the position, R after it (0); -1: unlimited"},
    {"mask", MUST, set_mask, 0, 0, "mask=boolP", "boolean mask, P percent attended, for all heads"},
    {"mask", MUST, set_mask, 0, 0, "mask=add", "additive mask, for all heads"},
    {"bias", NONE, set_flag, FIELD(bias), 0, "bias alibi sink",
     "bias of every head; slopes; sinks"},
    {"alibi", NONE, set_flag, FIELD(alibi), 0, NULL, NULL},
    {"sink", NONE, set_flag, FIELD(sink), 0, NULL, NULL},
    {"softcap", MUST, set_softcap, FIELD(softcap), 0, "softcap=X scale=X",
     "soft cap and scale (none, 1/sqrt(d))"},
    {"scale", MUST, set_real, FIELD(scale), 0, NULL, NULL},
    {"dropout", MUST, set_dropout, FIELD(dropout), 0, "dropout=P",
     "drop weights, as in training; for bench and explain"},
    {"pad", NONE, NULL, 0, 0, "pad padN", "true lengths are half, or 1/N, of l and s"},
    {"padk", NONE, NULL, 0, 0, "padk padkN", "the same for the keys only"},
    {"docs", MUST, set_count, FIELD(documents), 1 << 30, "docs=N",
     "N documents; a query sees its own"},
    {"packed", NONE, set_flag, FIELD(packed), 0, "packed",
     "sequences of different lengths, one after another"},
    {"lse", NONE, set_flag, FIELD(lse), 0, "lse weights[=M] avg",
     "request log-sum-exp, weights (softmax, raw, softcap,\nbias), their mean over the heads"},
    {"weights", VALUE_MAY, set_weights, 0, 0, NULL, NULL},
    {"avg", NONE, set_average, FIELD(average), 0, NULL, NULL},
    {"stats", VALUE_MAY, set_statistics, 0, 0, "stats stats=M",
     "statistics of rows and heads; M: with columns, top (the 8\n"
     "largest weights of each row), or all"},
    {"grad", NONE, set_flag, FIELD(gradients), 0, "grad",
     "the backward pass, for bench and explain"},
    {"layout", MUST, set_layout, 0, 0, "layout=bhld|blhd", "order of the axes in memory (bhld)"},
    {"t", MUST, set_count, FIELD(threads), MHA_MAX_THREADS, "t=N", "threads"},
};
#undef FIELD
#undef NONE
#undef MUST
_Static_assert(sizeof suffixes / sizeof suffixes[0] == SUFFIX_COUNT, "SUFFIX_COUNT is wrong");

static const char extents_help[] =
    "Problem words name an attention problem on one line:\n"
    "\n"
    "  b2h16g4l512s2048d64v32:causal:br:bf16\n"
    "\n"
    "Extents, in any order; l and d must be given:\n"
    "  b  batch (1)                 l  queries\n"
    "  h  query heads (1)           s  keys (l)\n"
    "  g  key/value heads (h)       d  width of a query or key head\n"
    "                               v  width of a value head (d)\n"
    "\n"
    "Suffixes, in any order, each after a colon:\n";

void problem_word_help(FILE *file)
{
    fputs(extents_help, file);
    for (int n = 0; n < SUFFIX_COUNT; n++) {
        const char *usage = suffixes[n].usage, *line = suffixes[n].help;
        while (line != NULL) {
            const char *end = strchr(line, '\n');
            const int length = end != NULL ? (int)(end - line) : (int)strlen(line);
            fprintf(file, "  %-22s %.*s\n", usage, length, line);
            line = end != NULL ? end + 1 : NULL;
            usage = "";
        }
    }
}

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
    const bool keys_only = p->in.token[3] == 'k';
    const char *number = p->in.token + (keys_only ? 4 : 3);
    if (p->word->pad != 0)
        return reader_fail(&p->in, "padding was given before");
    p->word->pad_keys_only = keys_only;
    return reader_int(&p->in, *number ? number : "2", 2, 1 << 30, &p->word->pad);
}

static bool unknown_suffix(parser *p, const char *name)
{
    const char *names[SUFFIX_COUNT];
    for (int n = 0; n < SUFFIX_COUNT; n++)
        names[n] = suffixes[n].name;
    return reader_unknown(&p->in, "suffix", name, names, SUFFIX_COUNT);
}

static bool parse_suffix(parser *p)
{
    char name[WORD_TOKEN_MAX];
    snprintf(name, sizeof name, "%s", p->in.token);
    if (is_pad(name))
        return apply_pad(p);
    char *value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    for (int n = 0; n < SUFFIX_COUNT; n++) {
        if (strcmp(name, suffixes[n].name) != 0)
            continue;
        if (value == NULL && suffixes[n].value == VALUE_MUST)
            return reader_fail(&p->in, "needs a value, as in %s=...", name);
        if (value != NULL && suffixes[n].value == VALUE_NONE)
            return reader_fail(&p->in, "takes no value");
        if (p->given[n] && suffixes[n].apply != set_mask)
            return reader_fail(&p->in, "%s was given before", name);
        p->given[n] = true;
        return suffixes[n].apply(p, &suffixes[n], value);
    }
    return unknown_suffix(p, name);
}

/* --------------------------------------------------------------- extents ----- */

static bool parse_extents(parser *p)
{
    problem_word *w = p->word;
    ptrdiff_t *const extents[] = {&w->b, &w->h, &w->g, &w->l, &w->s, &w->d, &w->v};
    return reader_extents(&p->in, "bhglsdv", extents, p->seen);
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
    p->in.token[0] = '\0';
    if (!p->seen['l'] || !p->seen['d'])
        return reader_fail(
            &p->in, "the extents l (queries) and d (head width) must be given, as in l128d64");
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
        return reader_fail(&p->in, "h%td is not a multiple of g%td", w->h, w->g);
    if (w->d > MHA_MAX_HEAD_WIDTH || w->v > MHA_MAX_HEAD_WIDTH)
        return reader_fail(&p->in, "'%c': a head is at most %d wide",
                           w->d > MHA_MAX_HEAD_WIDTH ? 'd' : 'v', MHA_MAX_HEAD_WIDTH);
    if (w->v == 0 && w->d > 0)
        return reader_fail(&p->in, "'v' must be at least 1");
    return true;
}

static bool check_together(parser *p)
{
    const problem_word *w = p->word;
    const bool f64 = w->q_type == MHA_F64;
    if (f64 != (w->k_type == MHA_F64) || f64 != (w->v_type == MHA_F64) ||
        f64 != (w->o_type == MHA_F64))
        return reader_fail(&p->in, "f64 goes with f64 only: q, k, v and o alike");
    if ((w->causal || w->window || w->alibi) && w->position == MHA_POSITION_UNSET &&
        lengths_differ(w))
        return reader_fail(
            &p->in, "causal, window and alibi with other numbers of keys than queries need to "
                    "know where query 0 stands: add br (the last query sees the last key), tl "
                    "or offset=N");
    if (w->packed && w->pad > 0)
        return reader_fail(&p->in, "packed sequences have no padding");
    if (w->gradients && f64)
        return reader_fail(&p->in, "grad is for f32, f16 and bf16, not for f64");
    if (w->gradients && w->weights)
        return reader_fail(&p->in, "grad returns no weights; leave out weights and avg");
    if (w->gradients && w->statistics)
        return reader_fail(&p->in, "grad gathers no statistics; leave out stats");
    return true;
}

problem_word word_default(void)
{
    return (problem_word){
        .b = 1, .h = 1, .g = 1, .l = 1, .s = 1, .d = 1, .v = 1, .bool_percent = -1};
}

bool word_parse(problem_word *word, const char *text, char *message, size_t size)
{
    parser p = {.word = word, .in = reader_begin(text, message, size)};
    *word = word_default();
    if (!reader_next(&p.in) || !parse_extents(&p))
        return false;
    while (reader_more(&p.in))
        if (!reader_next(&p.in) || !parse_suffix(&p))
            return false;
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
                                  (w->average ? (uint32_t)MHA_AVERAGE_WEIGHTS : 0u) |
                                  (w->dropout > 0.0f ? (uint32_t)MHA_TRAINING : 0u),
                         .scale = w->scale,
                         .softcap = w->softcap,
                         .position = w->position,
                         .offset = w->offset,
                         .window_left = w->window_left,
                         .window_right = w->window_right,
                         .weights_mode = w->weights_mode,
                         .dropout = w->dropout,
                         .arithmetic = w->native ? MHA_NATIVE : MHA_EXACT};
}
