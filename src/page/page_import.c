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
#include "page/page_words.h"

/* The kinds of a file: those of the page, and UNNAMED for "layer.N", which becomes encoder or
 * decoder when the weights are known. */
enum { UNNAMED = ATTENTION_KINDS, KINDS };
static const char *const prefixes[KINDS] = {"encoder", "decoder", "cross", "layer"};

/* All layers of one kind; they have the same shape. */
typedef struct layers {
    int count, heads, rows, columns;
    bool causal;
    const safetensors_tensor *tensors[PAGE_LAYERS_MAX]; /* [count], owned by the file */
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

/* Splits a name such as "cross.11" into kind and layer. */
static bool read_name(const char *name, int *kind, int *layer)
{
    for (*kind = 0; *kind < KINDS; ++*kind) {
        const size_t length = strlen(prefixes[*kind]);
        const char *const digits = name + length + 1;
        if (strncmp(name, prefixes[*kind], length) != 0 || name[length] != '.')
            continue;
        const size_t count = strspn(digits, "0123456789");
        if (count == 0 || count > 3 || digits[count] != '\0')
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
    int kind, layer;
    mha_dtype type;
    if (!read_name(t->name, &kind, &layer))
        return wrong(v,
                     "\"%.60s\" is not the name of a layer: layer.0, encoder.0, decoder.0, cross.0 "
                     "and so on up to %d",
                     t->name, PAGE_LAYERS_MAX - 1);
    if (!find_type(t->type, &type))
        return wrong(v, "%s: weights must be F32, F16, BF16 or F64, not %s", t->name,
                     safetensors_type_name(t->type));
    layers *const own = &v->kinds[kind];
    if (own->tensors[layer] != NULL)
        return wrong(v, "%s: the same layer occurs twice", t->name);
    own->tensors[layer] = t;
    own->count = layer + 1 > own->count ? layer + 1 : own->count;
    return take_shape(v, own, t);
}

/* -------------------------------------------------------------- shapes ----- */

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
static bool check_shapes(const page_import *v)
{
    double cells = 0.0;
    int all = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        const layers *const own = &v->kinds[kind];
        if (!check_kind(v, kind))
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
        raw = cells * sizeof(double) > raw ? cells * sizeof(double) : raw;
        values = cells > values ? cells : values;
    }
    v->raw = malloc(raw);
    v->values = malloc(values * sizeof *v->values);
    return (v->raw != NULL && v->values != NULL) || wrong(v, "out of memory");
}

/* Reads a layer into v->values. */
static bool load(page_import *v, const safetensors_tensor *tensor, const layers *kind)
{
    mha_dtype type = MHA_F32;
    if (safetensors_read(v->file, tensor, v->raw, v->message, TEXT_FILE_MESSAGE_MAX) != MHA_OK)
        return false;
    find_type(tensor->type, &type);
    for (ptrdiff_t n = 0; n < cells_of(kind); n++)
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
        if (!load(v, kind->tensors[n], kind))
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

static int larger(int a, int b)
{
    return a > b ? a : b;
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
    return load(s->import, s->kind->tensors[layer], s->kind) ? s->import->values : NULL;
}

/* An element of "kinds". */
static bool put_kind(json *j, page_import *v, attention_kind kind)
{
    const layers *const own = &v->kinds[kind];
    source from = {v, own};
    const page_attention heads = {
        .scene = {.kind = kind,
                  .tokens = v->words.numbers[kind == ATTENTION_DECODER ? PAGE_TARGET : PAGE_SOURCE],
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
    const bool fine = page_attention_put(j, &heads);
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
            json_strings(j, sides[side], import->words.words[side], import->words.count[side]);
    json_open_array(j, "kinds");
    for (int kind = 0; fine && kind < ATTENTION_KINDS; kind++)
        if (import->kinds[kind].count > 0)
            fine = put_kind(j, import, (attention_kind)kind);
    json_close(j);
    json_close(j);
    return fine;
}
