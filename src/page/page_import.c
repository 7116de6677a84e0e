/* SPDX-License-Identifier: MIT */
/*
 * A file of attention weights on the page:
 *
 *      names --> kinds and layers, shapes, every weight checked --> words --> "kinds" of the page
 *
 * Weights are read from the file twice, one layer at a time: to check them, and to write them. So
 * memory is needed for one layer only.
 */
#include "page/page_import.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "format/safetensors.h"
#include "page/page_attention.h"
#include "page/page_weights.h"
#include "page/page_words.h"

/* The kinds of a file: those of the page, and UNNAMED for "layer.N", which becomes encoder or
 * decoder when the weights are known. */
enum { UNNAMED = ATTENTION_KINDS, KINDS };
static const char *const prefixes[KINDS] = {"encoder", "decoder", "cross", "layer"};

/* Tensors beside the weights of a layer, such as layer.0.q. */
enum { VECTOR_Q, VECTOR_K, VECTOR_V, VECTOR_NORMS, VECTORS };
static const char *const suffixes[VECTORS] = {".q", ".k", ".v", ".norms"};
static const char *const vector_keys[VECTORS] = {"q", "k", "v", "value_norms"};

/* All layers of one kind; they have the same shape. */
typedef struct layers {
    int count, heads, rows, columns;
    int width; /* of queries, keys and values; 0: there are none */
    bool causal;
    const safetensors_tensor *tensors[PAGE_LAYERS_MAX];          /* [count], owned by the file */
    const safetensors_tensor *vectors[VECTORS][PAGE_LAYERS_MAX]; /* [][count] or NULL */
} layers;

struct page_import {
    const char *path;
    safetensors_file *file;
    layers kinds[KINDS];
    page_words words;
    void *raw;     /* one layer, in the type of the file */
    float *values; /* the same in f32, [heads][rows][columns] */
    char *message; /* [TEXT_FILE_MESSAGE_MAX] */
};

/* The argument of layer_of(): a kind that is being written. */
typedef struct source {
    page_import *import;
    const layers *kind;
} source;

/* Writes a message that begins with the path; returns false for the caller to return. */
__attribute__((format(printf, 2, 3))) static bool wrong(const page_import *v, const char *format,
                                                        ...)
{
    va_list list;
    const int used = snprintf(v->message, TEXT_FILE_MESSAGE_MAX, "%s: ", v->path);
    va_start(list, format);
    if (used >= 0 && used < TEXT_FILE_MESSAGE_MAX)
        vsnprintf(v->message + used, TEXT_FILE_MESSAGE_MAX - (size_t)used, format, list);
    va_end(list);
    return false;
}

/* --------------------------------------------------------------- names ----- */

/* The vector that a suffix such as ".q" names; VECTORS for no suffix, -1 for another one. */
static int read_suffix(const char *suffix)
{
    int n = 0;
    if (suffix[0] == '\0')
        return VECTORS;
    while (n < VECTORS && strcmp(suffix, suffixes[n]) != 0)
        n++;
    return n < VECTORS ? n : -1;
}

/* Splits a name such as "cross.11" or "cross.11.q" into kind, layer and vector. */
static bool read_name(const char *name, int *kind, int *layer, int *vector)
{
    for (*kind = 0; *kind < KINDS; ++*kind) {
        const size_t length = strlen(prefixes[*kind]);
        const char *const digits = name + length + 1;
        if (strncmp(name, prefixes[*kind], length) != 0 || name[length] != '.')
            continue;
        const size_t count = strspn(digits, "0123456789");
        if (count == 0 || count > 3 || (*vector = read_suffix(digits + count)) < 0)
            return false;
        *layer = (int)strtol(digits, NULL, 10);
        return *layer < PAGE_LAYERS_MAX;
    }
    return false;
}

/* The library's type for that of a tensor; false: not a type of weights. */
static bool find_type(safetensors_type type, mha_dtype *dtype)
{
    static const struct {
        safetensors_type type;
        mha_dtype dtype;
    } known[] = {{SAFETENSORS_F32, MHA_F32},
                 {SAFETENSORS_F16, MHA_F16},
                 {SAFETENSORS_BF16, MHA_BF16},
                 {SAFETENSORS_F64, MHA_F64}};
    for (size_t n = 0; n < sizeof known / sizeof known[0]; n++)
        if (known[n].type == type) {
            *dtype = known[n].dtype;
            return true;
        }
    return false;
}

/* The first layer of a kind sets its shape, the others must have the same. */
static bool take_shape(const page_import *v, layers *kind, const safetensors_tensor *t)
{
    const uint64_t *const shape = t->rank == 4 ? t->shape + 1 : t->shape;
    if ((t->rank != 3 && t->rank != 4) || (t->rank == 4 && t->shape[0] != 1))
        return wrong(v,
                     "%s: the shape of a layer must be [heads, rows, columns] or [1, heads, "
                     "rows, columns]; save the sentences of a batch one by one",
                     t->name);
    for (int n = 0; n < 3; n++)
        if (shape[n] < 1 || shape[n] > PAGE_CELLS_MAX)
            return wrong(v, "%s: heads, rows and columns must be from 1 to %d, not %" PRIu64,
                         t->name, PAGE_CELLS_MAX, shape[n]);
    const int own[] = {(int)shape[0], (int)shape[1], (int)shape[2]};
    if (kind->heads == 0) {
        kind->heads = own[0];
        kind->rows = own[1];
        kind->columns = own[2];
    }
    if (own[0] != kind->heads || own[1] != kind->rows || own[2] != kind->columns)
        return wrong(v, "%s: its shape is [%d, %d, %d], that of others [%d, %d, %d]", t->name,
                     own[0], own[1], own[2], kind->heads, kind->rows, kind->columns);
    return true;
}

/* Puts a tensor into its place among the layers. */
static bool take_tensor(page_import *v, const safetensors_tensor *t)
{
    int kind, layer, vector;
    mha_dtype type;
    if (!read_name(t->name, &kind, &layer, &vector))
        return wrong(v,
                     "\"%.60s\" is not the name of a layer: layer.0, encoder.0, decoder.0, cross.0 "
                     "and so on up to %d, and with .q, .k, .v or .norms after it",
                     t->name, PAGE_LAYERS_MAX - 1);
    if (!find_type(t->type, &type))
        return wrong(v, "%s: weights must be F32, F16, BF16 or F64, not %s", t->name,
                     safetensors_type_name(t->type));
    layers *const own = &v->kinds[kind];
    const safetensors_tensor **const place =
        vector < VECTORS ? &own->vectors[vector][layer] : &own->tensors[layer];
    if (*place != NULL)
        return wrong(v, "%s: the same layer occurs twice", t->name);
    *place = t;
    if (vector < VECTORS)
        return true;
    own->count = layer + 1 > own->count ? layer + 1 : own->count;
    return take_shape(v, own, t);
}

/* -------------------------------------------------------------- shapes ----- */

/* Checks one tensor of vectors: [heads, rows or columns, width], norms without the width. The first
 * one sets the width of the kind. */
static bool check_vector(const page_import *v, layers *kind, int vector, int layer)
{
    const safetensors_tensor *const t = kind->vectors[vector][layer];
    const uint64_t rows = (uint64_t)(vector == VECTOR_Q ? kind->rows : kind->columns);
    const bool norms = vector == VECTOR_NORMS;
    if (!norms && t->rank == 3 && kind->width == 0 && t->shape[2] <= PAGE_CELLS_MAX)
        kind->width = (int)t->shape[2];
    if (t->rank != (norms ? 2 : 3) || t->shape[0] != (uint64_t)kind->heads || t->shape[1] != rows ||
        (!norms && (t->shape[2] < 1 || t->shape[2] != (uint64_t)kind->width)))
        return wrong(v, "%s: its shape must be [%d heads, %d %s%s]", t->name, kind->heads,
                     (int)rows, vector == VECTOR_Q ? "rows" : "columns",
                     norms ? "" : ", the width of a head, which is that of others");
    return true;
}

/* Vectors of a kind are in all of its layers, and queries, keys and values come together. */
static bool check_vectors(const page_import *v, layers *kind, const char *prefix)
{
    int found[VECTORS] = {0};
    for (int vector = 0; vector < VECTORS; vector++)
        for (int n = 0; n < PAGE_LAYERS_MAX; n++)
            if (kind->vectors[vector][n] != NULL) {
                if (n >= kind->count)
                    return wrong(v, "there is %s.%d%s, but no %s.%d", prefix, n, suffixes[vector],
                                 prefix, n);
                found[vector]++;
                if (!check_vector(v, kind, vector, n))
                    return false;
            }
    for (int vector = 0; vector < VECTORS; vector++)
        if ((found[vector] > 0 && found[vector] < kind->count) ||
            (vector < VECTOR_NORMS && found[vector] != found[VECTOR_Q]))
            return wrong(v,
                         "%s.N%s is in %d of %d layers: queries, keys and values are needed of "
                         "all layers, or of none",
                         prefix, suffixes[vector], found[vector], kind->count);
    const double cells = (double)kind->count * kind->heads * kind->columns * kind->width;
    return cells <= PAGE_CELLS_MAX ||
           wrong(v, "%.0f numbers of keys; a page has room for %d", cells, PAGE_CELLS_MAX);
}

static bool check_kind(const page_import *v, int kind)
{
    const layers *const own = &v->kinds[kind];
    for (int n = 0; n < own->count; n++)
        if (own->tensors[n] == NULL)
            return wrong(v, "there is %s.%d, but no %s.%d: layers count from 0 without a gap",
                         prefixes[kind], own->count - 1, prefixes[kind], n);
    if (kind != ATTENTION_CROSS && own->rows != own->columns)
        return wrong(v, "%s.0 has %d rows and %d columns: only cross.0 may have other words there",
                     prefixes[kind], own->rows, own->columns);
    return true;
}

/* Cross-attention has the rows of the decoder and the columns of the encoder. */
static bool check_sides(const page_import *v)
{
    const layers *const encoder = &v->kinds[ATTENTION_ENCODER];
    const layers *const decoder = &v->kinds[ATTENTION_DECODER];
    const layers *const cross = &v->kinds[ATTENTION_CROSS];
    if (cross->count > 0 && decoder->count > 0 && cross->rows != decoder->rows)
        return wrong(v, "cross.0 has %d rows, decoder.0 %d: both are what the decoder reads",
                     cross->rows, decoder->rows);
    if (cross->count > 0 && encoder->count > 0 && cross->columns != encoder->rows)
        return wrong(v, "cross.0 has %d columns, encoder.0 %d: both are what the encoder reads",
                     cross->columns, encoder->rows);
    return true;
}

/* Checks all kinds, and that the page does not become too large. In double: the product of the
 * extents may exceed 64 bits. */
static bool check_shapes(page_import *v)
{
    double cells = 0.0;
    int all = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        const layers *const own = &v->kinds[kind];
        if (!check_kind(v, kind) || !check_vectors(v, &v->kinds[kind], prefixes[kind]))
            return false;
        cells += (double)own->count * own->heads * own->rows * own->columns;
        all += own->count;
    }
    if (all == 0)
        return wrong(v, "there are no layers in it");
    if (v->kinds[UNNAMED].count > 0 && all > v->kinds[UNNAMED].count)
        return wrong(v,
                     "there is layer.0 besides encoder, decoder or cross: name all layers alike");
    if (cells > PAGE_CELLS_MAX)
        return wrong(v, "%.0f weights; a page has room for %d: choose layers, or a shorter text",
                     cells, PAGE_CELLS_MAX);
    return check_sides(v);
}

/* -------------------------------------------------------------- values ----- */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static ptrdiff_t cells_of(const layers *kind)
{
    return (ptrdiff_t)kind->heads * kind->rows * kind->columns;
}

/* Memory for the largest layer. */
static bool allocate(page_import *v)
{
    size_t raw = 1, values = 1;
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t cells = (size_t)cells_of(&v->kinds[kind]);
        const size_t rows = (size_t)larger(v->kinds[kind].rows, v->kinds[kind].columns);
        const size_t vector = (size_t)v->kinds[kind].heads * rows * (size_t)v->kinds[kind].width;
        const size_t most = cells > vector ? cells : vector;
        raw = most * sizeof(double) > raw ? most * sizeof(double) : raw;
        values = most > values ? most : values;
    }
    v->raw = malloc(raw);
    v->values = malloc(values * sizeof *v->values);
    return (v->raw != NULL && v->values != NULL) || wrong(v, "out of memory");
}

/* Reads a tensor into v->values. */
static bool load(page_import *v, const safetensors_tensor *tensor, ptrdiff_t cells)
{
    mha_dtype type = MHA_F32;
    if (safetensors_read(v->file, tensor, v->raw, v->message, TEXT_FILE_MESSAGE_MAX) != MHA_OK)
        return false;
    find_type(tensor->type, &type);
    for (ptrdiff_t n = 0; n < cells; n++)
        v->values[n] = (float)element_load(type, v->raw, n);
    return true;
}

/* Checks that a row, counted over all heads of a layer, consists of weights: each from 0 to 1, with
 * a sum of 1, within what f16 and bf16 round. A row of zeros is allowed: everything is masked. Sets
 * `ahead` if there is weight above the diagonal. */
static bool check_row(const page_import *v, const char *name, const layers *kind, int row,
                      bool *ahead)
{
    const float *const values = v->values + (ptrdiff_t)row * kind->columns;
    const int head = row / kind->rows + 1, i = row % kind->rows;
    double sum = 0.0;
    for (int j = 0; j < kind->columns; j++) {
        if (!(values[j] >= 0.0f && values[j] <= 1.001f))
            return wrong(v,
                         "%s, head %d, row %d, column %d (all from 1): %g is no weight; weights "
                         "are from 0 to 1, after the softmax",
                         name, head, i + 1, j + 1, (double)values[j]);
        sum += (double)values[j];
        *ahead = *ahead || (j > i && values[j] > 0.0f);
    }
    if (sum != 0.0 && fabs(sum - 1.0) > 0.01)
        return wrong(v,
                     "%s, head %d, row %d (from 1): its weights sum to %.4f, not to 1; was dropout "
                     "on?",
                     name, head, i + 1, sum);
    return true;
}

/* Checks all weights of a kind, and finds out whether it is causal. */
static bool check_values(page_import *v, layers *kind)
{
    bool ahead = false;
    for (int n = 0; n < kind->count; n++) {
        if (!load(v, kind->tensors[n], cells_of(kind)))
            return false;
        for (int row = 0; row < kind->heads * kind->rows; row++)
            if (!check_row(v, kind->tensors[n]->name, kind, row, &ahead))
                return false;
    }
    kind->causal = kind->rows == kind->columns && kind->rows > 1 && !ahead;
    return true;
}

/* --------------------------------------------------------------- whole ----- */

/* Causal layers without a name are shown as a decoder, others as an encoder. */
static void name_layers(page_import *v)
{
    layers *const unnamed = &v->kinds[UNNAMED];
    if (unnamed->count > 0)
        v->kinds[unnamed->causal ? ATTENTION_DECODER : ATTENTION_ENCODER] = *unnamed;
    *unnamed = (layers){.count = 0};
}

static bool read_all(page_import *v, const char *tokens)
{
    for (size_t n = 0; n < v->file->count; n++)
        if (!take_tensor(v, &v->file->tensors[n]))
            return false;
    if (!check_shapes(v) || !allocate(v))
        return false;
    for (int kind = 0; kind < KINDS; kind++)
        if (!check_values(v, &v->kinds[kind]))
            return false;
    /* Cross-attention may have zeros above the diagonal by chance; it has no mask. */
    v->kinds[ATTENTION_CROSS].causal = false;
    name_layers(v);
    const int count[PAGE_SIDES] = {
        larger(v->kinds[ATTENTION_ENCODER].columns, v->kinds[ATTENTION_CROSS].columns),
        larger(v->kinds[ATTENTION_DECODER].rows, v->kinds[ATTENTION_CROSS].rows)};
    return page_words_read(&v->words, tokens, count, v->message);
}

page_import *page_import_open(const char *weights, const char *tokens,
                              char message[TEXT_FILE_MESSAGE_MAX])
{
    page_import *const v = calloc(1, sizeof *v);
    if (v == NULL) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX, "out of memory");
        return NULL;
    }
    v->path = weights;
    v->message = message;
    if (safetensors_open(&v->file, weights, 0, message, TEXT_FILE_MESSAGE_MAX) == MHA_OK &&
        read_all(v, tokens))
        return v;
    page_import_close(v);
    return NULL;
}

void page_import_close(page_import *import)
{
    if (import == NULL)
        return;
    page_words_free(&import->words);
    safetensors_close(import->file);
    free(import->raw);
    free(import->values);
    free(import);
}

int page_import_layers(const page_import *import, attention_kind kind)
{
    return import->kinds[kind].count;
}

int page_import_heads(const page_import *import, attention_kind kind)
{
    return import->kinds[kind].heads;
}

/* ------------------------------------------------------------- writing ----- */

/* A page_attention.weights that reads from the file. */
static const float *layer_of(void *arg, int layer)
{
    const source *const s = arg;
    return load(s->import, s->kind->tensors[layer], cells_of(s->kind)) ? s->import->values : NULL;
}

/* All layers of a kind of vectors, as one text. A number that is not finite becomes 0: the page
 * shows finite ones only. */
static bool put_vector(json *j, page_import *v, const layers *kind, int vector)
{
    const ptrdiff_t rows = vector == VECTOR_Q ? kind->rows : kind->columns;
    const ptrdiff_t cells = kind->heads * rows * (vector == VECTOR_NORMS ? 1 : kind->width);
    float *const all = malloc((size_t)(cells * kind->count) * sizeof *all);
    bool fine = all != NULL;
    for (int n = 0; fine && n < kind->count; n++) {
        fine = load(v, kind->vectors[vector][n], cells);
        for (ptrdiff_t c = 0; fine && c < cells; c++)
            all[n * cells + c] = isfinite(v->values[c]) ? v->values[c] : 0.0f;
    }
    if (fine)
        fine = page_put_text(j, vector_keys[vector],
                             page_floats_text(all, (size_t)(cells * kind->count)));
    free(all);
    return fine;
}

static bool put_vectors(json *j, page_import *v, const layers *kind)
{
    bool fine = true;
    if (kind->width > 0)
        json_integer(j, "width", kind->width);
    for (int vector = 0; fine && vector < VECTORS; vector++)
        if (kind->vectors[vector][0] != NULL)
            fine = put_vector(j, v, kind, vector);
    return fine;
}

/* An element of "kinds". */
static bool put_kind(json *j, page_import *v, attention_kind kind)
{
    const layers *const own = &v->kinds[kind];
    const page_words *const words = &v->words;
    const int side = kind == ATTENTION_DECODER ? PAGE_TARGET : PAGE_SOURCE;
    const int row_side = kind == ATTENTION_ENCODER ? PAGE_SOURCE : PAGE_TARGET;
    source from = {v, own};
    const page_attention heads = {
        .scene = {.kind = kind,
                  .tokens = words->numbers[side],
                  .special = words->marks[side],
                  .begins = words->marks[side][0] && own->columns > 1,
                  .row_continues = words->continues[row_side],
                  .column_continues = words->continues[side],
                  .question = -1},
        .layers = own->count,
        .heads = own->heads,
        .rows = own->rows,
        .columns = own->columns,
        .causal = own->causal,
        .weights = layer_of,
        .arg = &from,
    };
    json_open_object(j, NULL);
    const bool fine = page_attention_put(j, &heads) && put_vectors(j, v, own);
    json_close(j);
    return fine;
}

bool page_import_put(json *j, page_import *import)
{
    static const char *const sides[PAGE_SIDES] = {"source", "target"};
    const char *const slash = strrchr(import->path, '/');
    bool fine = true;
    json_open_object(j, NULL);
    json_string(j, "text", slash != NULL ? slash + 1 : import->path);
    for (int side = 0; side < PAGE_SIDES; side++)
        if (import->words.count[side] > 0)
            page_side_put(j, sides[side], import->words.words[side], import->words.marks[side],
                          import->words.continues[side], import->words.count[side]);
    json_open_array(j, "kinds");
    for (int kind = 0; fine && kind < ATTENTION_KINDS; kind++)
        if (import->kinds[kind].count > 0)
            fine = put_kind(j, import, (attention_kind)kind);
    json_close(j);
    json_close(j);
    return fine;
}
