/* SPDX-License-Identifier: MIT */
/*
 * Reading and printing layer words, and their help. A kind of word (linear, layer, cache, ...)
 * decides which extents and suffixes it takes; the rules are in the tables below.
 */
#include "problem/layer_word.h"

#include <string.h>

#include "format/convert.h"

/* In the order of layer_word_kind. */
const char *const layer_word_kinds[] = {"linear", "openblas", "layer",    "decode",
                                        "cache",  "train",    "translate"};
const int layer_word_kind_count = sizeof layer_word_kinds / sizeof layer_word_kinds[0];

enum {
    PRODUCTS = 1u << WORD_LINEAR | 1u << WORD_OPENBLAS,
    LAYERS = 1u << WORD_LAYER | 1u << WORD_DECODE,
    CACHES = 1u << WORD_DECODE | 1u << WORD_CACHE,
    MODELS = 1u << WORD_TRAIN | 1u << WORD_TRANSLATE
};

typedef struct parser {
    layer_word *word;
    word_reader in;
    bool seen[128];
    unsigned given; /* bit n: suffixes[n] */
} parser;

static bool is_kind(const layer_word *w, unsigned kinds)
{
    return (kinds >> w->kind & 1u) != 0;
}

/* ---------------------------------------------------------------- extents ----- */

static bool parse_kind(parser *p)
{
    for (int n = 0; n < layer_word_kind_count; n++) {
        if (strcmp(p->in.token, layer_word_kinds[n]) == 0) {
            p->word->kind = (layer_word_kind)n;
            return true;
        }
    }
    return reader_unknown(&p->in, "kind of word", p->in.token, layer_word_kinds,
                          layer_word_kind_count);
}

int layer_word_presets(const char **names, int max)
{
    int count = 0;
    for (const mha_preset_info *x; count < max && (x = mha_preset_at(count)) != NULL;)
        names[count++] = x->name;
    return count;
}

static bool unknown_preset(parser *p)
{
    const char *names[PRESETS_MAX];
    const int count = layer_word_presets(names, PRESETS_MAX);
    return reader_unknown(&p->in, "preset", p->in.token, names, count);
}

static bool read_extents(parser *p, const char *letters)
{
    static const char all[] = "mnkehgdvbls";
    layer_word *w = p->word;
    ptrdiff_t *const every[] = {&w->m, &w->n, &w->k, &w->e, &w->h, &w->g,
                                &w->d, &w->v, &w->b, &w->l, &w->s};
    ptrdiff_t *chosen[sizeof every / sizeof every[0]];
    for (size_t n = 0; letters[n] != '\0'; n++)
        chosen[n] = every[strchr(all, letters[n]) - all];
    return reader_extents(&p->in, letters, chosen, p->seen);
}

static void take_preset(parser *p, const mha_preset_info *preset)
{
    layer_word *w = p->word;
    w->preset = preset;
    w->e = preset->E;
    w->h = preset->H;
    w->d = preset->D;
    p->seen['e'] = p->seen['h'] = p->seen['d'] = true;
}

/* A name begins with two letters, extents with a letter and a number. */
static bool is_name(const char *token)
{
    return token[0] != '\0' && strchr("0123456789", token[1]) == NULL;
}

static bool parse_extents(parser *p)
{
    static const char *const own[] = {"mnk", "mnk", "ehgdvbl", "ehgdvbls", "hgdvbls", "b", "b"};
    static const char *const with_preset[] = {"", "", "bl", "bls", "bls", "", ""};
    const layer_word_kind kind = p->word->kind;
    if (!reader_more(&p->in))
        return reader_fail(&p->in, "extents are missing; see \"mha help words\"");
    if (!reader_next(&p->in))
        return false;
    if (is_kind(p->word, PRODUCTS | MODELS) || !is_name(p->in.token))
        return read_extents(p, own[kind]);
    const mha_preset_info *preset = mha_preset(p->in.token);
    if (preset == NULL)
        return unknown_preset(p);
    take_preset(p, preset);
    if (!reader_more(&p->in))
        return reader_fail(&p->in, "extents are missing after it, as in %s:%s:%s",
                           layer_word_kinds[kind], preset->name,
                           kind == WORD_LAYER ? "l512" : "s1024");
    return reader_next(&p->in) && read_extents(p, with_preset[kind]);
}

/* -------------------------------------------------------------- suffixes ----- */

/* The types in the order of mha_dtype, f64 left out. */
static const char *const type_names[] = {"f32", "f16", "bf16", "i8"};
static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};

typedef struct suffix suffix;
struct suffix {
    const char *name;
    unsigned kinds; /* that it goes with */
    bool (*apply)(parser *p, const char *value);
    bool has_value;
};

static bool set_type(parser *p, const char *value)
{
    int choice = 0;
    if (!reader_choice(&p->in, value, type_names, 4, &choice))
        return false;
    if (p->word->kind == WORD_CACHE)
        p->word->cache = types[choice];
    else
        p->word->stored = types[choice];
    return true;
}

static bool set_cache(parser *p, const char *value)
{
    int choice = 0;
    if (!reader_choice(&p->in, value, type_names, 4, &choice))
        return false;
    p->word->cache = types[choice];
    return true;
}

static bool set_native(parser *p, const char *value)
{
    (void)value;
    p->word->native = true;
    return true;
}

static bool set_causal(parser *p, const char *value)
{
    (void)value;
    p->word->causal = true;
    return true;
}

static bool set_grad(parser *p, const char *value)
{
    (void)value;
    p->word->grad = true;
    return true;
}

static bool set_gemv(parser *p, const char *value)
{
    (void)value;
    p->word->gemv = true;
    return p->word->m == 1 || reader_fail(&p->in, "a product with a vector has m1");
}

static bool set_no_cache(parser *p, const char *value)
{
    (void)value;
    p->word->no_cache = true;
    return true;
}

static bool set_text(parser *p, const char *value)
{
    (void)value;
    p->word->text = true;
    return true;
}

static bool set_threads(parser *p, const char *value)
{
    return reader_int(&p->in, value, 1, MHA_MAX_THREADS, &p->word->threads);
}

enum { SUFFIX_COUNT = 12, TYPE_COUNT = 4 };
#define TYPED (1u << WORD_LINEAR | LAYERS | CACHES)
static const suffix suffixes[SUFFIX_COUNT] = {
    {"f32", TYPED, set_type, false},
    {"f16", TYPED, set_type, false},
    {"bf16", TYPED, set_type, false},
    {"i8", TYPED, set_type, false},
    {"native", 1u << WORD_LINEAR | LAYERS | 1u << WORD_TRAIN, set_native, false},
    {"cache", 1u << WORD_DECODE, set_cache, true},
    {"causal", 1u << WORD_LAYER, set_causal, false},
    {"grad", 1u << WORD_LAYER, set_grad, false},
    {"gemv", 1u << WORD_OPENBLAS, set_gemv, false},
    {"nocache", 1u << WORD_TRANSLATE, set_no_cache, false},
    {"text", 1u << WORD_TRAIN, set_text, false},
    {"t", PRODUCTS | LAYERS | CACHES | MODELS, set_threads, true},
};

static bool unknown_suffix(parser *p, const char *name)
{
    const char *names[SUFFIX_COUNT];
    for (int n = 0; n < SUFFIX_COUNT; n++)
        names[n] = suffixes[n].name;
    return reader_unknown(&p->in, "suffix", name, names, SUFFIX_COUNT);
}

static bool apply_suffix(parser *p, int number, const char *value)
{
    const suffix *x = &suffixes[number];
    const unsigned alike = number < TYPE_COUNT ? (1u << TYPE_COUNT) - 1u : 1u << number;
    if (!is_kind(p->word, x->kinds))
        return reader_fail(&p->in, "does not go with %s", layer_word_kinds[p->word->kind]);
    if (value == NULL && x->has_value)
        return reader_fail(&p->in, "needs a value, as in %s=...", x->name);
    if (value != NULL && !x->has_value)
        return reader_fail(&p->in, "takes no value");
    if ((p->given & alike) != 0)
        return reader_fail(&p->in, "%s was given before", number < TYPE_COUNT ? "a type" : x->name);
    p->given |= 1u << number;
    return x->apply(p, number < TYPE_COUNT ? x->name : value);
}

static bool parse_suffix(parser *p)
{
    char name[WORD_TOKEN_MAX];
    snprintf(name, sizeof name, "%s", p->in.token);
    char *value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    for (int n = 0; n < SUFFIX_COUNT; n++)
        if (strcmp(name, suffixes[n].name) == 0)
            return apply_suffix(p, n, value);
    return unknown_suffix(p, name);
}

/* ---------------------------------------------------------------- checks ----- */

static bool require(parser *p, const char *letters)
{
    for (; *letters != '\0'; letters++)
        if (!p->seen[(int)*letters])
            return reader_fail(&p->in, "the extent %c must be given", *letters);
    return true;
}

static bool fill_widths(parser *p)
{
    layer_word *w = p->word;
    if (!p->seen['g'])
        w->g = w->h;
    if (!p->seen['d'] && (w->h == 0 || w->e % w->h != 0))
        return reader_fail(&p->in, "e%td is not a multiple of h%td: say d, the width of a head",
                           w->e, w->h);
    if (!p->seen['d'])
        w->d = w->e / w->h;
    if (!p->seen['v'])
        w->v = w->d;
    return true;
}

static bool check_extents(parser *p)
{
    const layer_word *w = p->word;
    const struct {
        char letter;
        ptrdiff_t extent;
    } all[] = {{'m', w->m}, {'n', w->n}, {'k', w->k}, {'e', w->e}, {'h', w->h}, {'g', w->g},
               {'d', w->d}, {'v', w->v}, {'b', w->b}, {'l', w->l}, {'s', w->s}};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        if (all[n].extent < 1)
            return reader_fail(&p->in, "'%c' must be at least 1", all[n].letter);
    if (w->h % w->g != 0)
        return reader_fail(&p->in, "h%td is not a multiple of g%td", w->h, w->g);
    if (w->d > MHA_MAX_HEAD_WIDTH || w->v > MHA_MAX_HEAD_WIDTH)
        return reader_fail(&p->in, "'%c': a head is at most %d wide",
                           w->d > MHA_MAX_HEAD_WIDTH ? 'd' : 'v', MHA_MAX_HEAD_WIDTH);
    if (is_kind(w, CACHES) && w->l > w->s)
        return reader_fail(&p->in, "l%td new tokens are more than the s%td in all", w->l, w->s);
    return true;
}

static bool check(parser *p)
{
    static const char *const required[] = {"mnk", "mnk", "ehl", "ehs", "hds", "b", "b"};
    p->in.token[0] = '\0';
    return require(p, required[p->word->kind]) &&
           (is_kind(p->word, PRODUCTS | MODELS) || fill_widths(p)) && check_extents(p);
}

bool layer_word_is_model(const layer_word *word)
{
    return is_kind(word, MODELS);
}

bool layer_word_meant(const char *text)
{
    const size_t length = strcspn(text, ":");
    return length > 0 && strcspn(text, "0123456789") >= length;
}

bool layer_word_parse(layer_word *word, const char *text, char *message, size_t size)
{
    parser p = {.word = word, .in = reader_begin(text, message, size)};
    *word = (layer_word){.m = 1, .n = 1, .k = 1, .e = 1, .h = 1, .g = 1, .d = 1, .v = 1};
    word->b = word->l = word->s = 1;
    if (!reader_next(&p.in) || !parse_kind(&p) || !parse_extents(&p))
        return false;
    while (reader_more(&p.in))
        if (!reader_next(&p.in) || !parse_suffix(&p))
            return false;
    return check(&p);
}

/* -------------------------------------------------------------- printing ----- */

static void put_widths(word_printer *p, const layer_word *w)
{
    if (w->preset != NULL) {
        printer_put(p, "%s:", w->preset->name);
        return;
    }
    if (w->kind != WORD_CACHE)
        printer_put(p, "e%td", w->e);
    printer_put(p, "h%td", w->h);
    if (w->g != w->h)
        printer_put(p, "g%td", w->g);
    if (w->kind == WORD_CACHE || w->d * w->h != w->e)
        printer_put(p, "d%td", w->d);
    if (w->v != w->d)
        printer_put(p, "v%td", w->v);
}

static void put_extents(word_printer *p, const layer_word *w)
{
    if (is_kind(w, PRODUCTS)) {
        printer_put(p, "m%tdn%tdk%td", w->m, w->n, w->k);
        return;
    }
    if (layer_word_is_model(w)) {
        printer_put(p, "b%td", w->b);
        return;
    }
    put_widths(p, w);
    if (w->b != 1)
        printer_put(p, "b%td", w->b);
    if (w->kind == WORD_LAYER || w->l != 1)
        printer_put(p, "l%td", w->l);
    if (is_kind(w, CACHES))
        printer_put(p, "s%td", w->s);
}

size_t layer_word_print(const layer_word *w, char *text, size_t size)
{
    word_printer p = {text, size, 0};
    const mha_dtype type = w->kind == WORD_CACHE ? w->cache : w->stored;
    printer_put(&p, "%s:", layer_word_kinds[w->kind]);
    put_extents(&p, w);
    if (type != MHA_F32)
        printer_put(&p, ":%s", dtype_name(type));
    if (w->native)
        printer_put(&p, ":native");
    if (w->kind == WORD_DECODE && w->cache != MHA_F32)
        printer_put(&p, ":cache=%s", dtype_name(w->cache));
    if (w->causal)
        printer_put(&p, ":causal");
    if (w->grad)
        printer_put(&p, ":grad");
    if (w->gemv)
        printer_put(&p, ":gemv");
    if (w->no_cache)
        printer_put(&p, ":nocache");
    if (w->text)
        printer_put(&p, ":text");
    if (w->threads > 0)
        printer_put(&p, ":t=%d", w->threads);
    return p.used;
}

/* ------------------------------------------------------------------ work ----- */

mha_arithmetic layer_word_arithmetic(const layer_word *w)
{
    return w->native ? MHA_NATIVE : MHA_EXACT;
}

ptrdiff_t layer_word_rows(const layer_word *w)
{
    return is_kind(w, PRODUCTS) ? w->m : w->b * w->l;
}

double layer_word_outputs(const layer_word *w)
{
    if (is_kind(w, PRODUCTS))
        return (double)w->n;
    return (double)(w->h * w->d) + (double)(w->g * (w->d + w->v)) + (double)w->e;
}

double layer_word_weights(const layer_word *w)
{
    if (w->kind == WORD_CACHE)
        return 0.0;
    if (is_kind(w, PRODUCTS))
        return (double)w->n * (double)w->k;
    const double into = (double)(w->h * w->d) + (double)(w->g * (w->d + w->v));
    return (double)w->e * (into + (double)(w->h * w->v));
}

/* Attended pairs of a head in one batch. */
static double pairs(const layer_word *w)
{
    const double l = (double)w->l, triangle = l * (l + 1.0) / 2.0;
    if (is_kind(w, PRODUCTS))
        return 0.0;
    if (is_kind(w, CACHES))
        return l * (double)(w->s - w->l) + triangle;
    return w->causal ? triangle : l * l;
}

double layer_word_flops(const layer_word *w)
{
    const double heads = (double)w->b * (double)w->h;
    const double projections = 2.0 * (double)layer_word_rows(w) * layer_word_weights(w);
    const double attention = 2.0 * (double)(w->d + w->v) * heads * pairs(w);
    return w->grad ? 3.0 * projections + 3.5 * attention : projections + attention;
}

double layer_word_weight_bytes(const layer_word *w)
{
    if (w->kind == WORD_CACHE)
        return 0.0;
    const double scales = w->stored == MHA_I8 ? layer_word_outputs(w) * (double)sizeof(float) : 0.0;
    return layer_word_weights(w) * (double)mha_dtype_size(w->stored) + scales;
}

double layer_word_cache_bytes(const layer_word *w)
{
    if (!is_kind(w, CACHES))
        return 0.0;
    const double scales = w->cache == MHA_I8 ? 2.0 * (double)sizeof(float) : 0.0;
    const double token = (double)(w->d + w->v) * (double)mha_dtype_size(w->cache) + scales;
    return (double)w->b * (double)w->s * (double)w->g * token;
}

static const char help[] =
    "Layer words name layers, caches and matrix products, for bench and explain:\n"
    "\n"
    "  linear:m512n2304k768     y = x W^T: m rows, n outputs, k inputs\n"
    "  openblas:m512n2304k768   the same by OpenBLAS's sgemm (gemv: its sgemv)\n"
    "  layer:bert-base:l512     projections, heads, output projection\n"
    "  decode:gpt2-small:s1024  such a layer's step: the last l (1) of s tokens,\n"
    "                           those before them in a cache\n"
    "  cache:gpt2-small:s8192   the heads of such a step alone\n"
    "  train:b128               the laboratory's step of training on b pairs (bench only)\n"
    "  train:b430:text          that of a model for files, on random short sentences\n"
    "  translate:b64            b sentences translated by it; :nocache without its caches\n"
    "\n"
    "Instead of a preset: e model width, h query heads, g key/value heads (h), d and v\n"
    "widths of a head (e/h, d), as in layer:e4096h32g8l512. Further b batch (1).\n"
    "Presets: bert-base bert-large gpt2-small gpt2-large gpt3 transformer-base\n"
    "Suffixes:\n"
    "  f32 f16 bf16 i8        type of the weights, in a cache word of the cache (f32)\n"
    "  native                 products with the weights in this type, instead of f32; those of\n"
    "                         a training in bf16\n"
    "  cache=T                type of the cache of a step (f32)\n"
    "  causal t=N             as above\n"
    "  grad                   a layer's step of training: forward, then all gradients\n";

void layer_word_help(FILE *file)
{
    fputs(help, file);
}
