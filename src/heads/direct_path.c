/* SPDX-License-Identifier: MIT */
/* Along the residual stream to a logit, and back (direct_path.h). */
#include "heads/direct_path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/row_math.h"

/* ----------------------------------------------------------------- make ----- */

static mha_status read_attention(direct_path *p, int part)
{
    const stream_part *const at = &p->parts[part];
    const int n = p->attention_count++;
    p->attentions[n] = part;
    p->projections[n] = malloc((size_t)(p->stream.width * p->inner) * sizeof *p->projections[n]);
    if (!p->projections[n])
        return MHA_ERR_MEMORY;
    return stream_path_projection(p->model, at->kind, at->layer, p->projections[n]);
}

mha_status direct_path_make(direct_path *p, const mha_model *model, head_shape shape)
{
    *p = (direct_path){.model = model, .head_width = shape.width};
    p->inner = (ptrdiff_t)shape.heads * shape.width;
    if (!stream_path_of(model, &p->stream))
        return MHA_ERR_FLAG;
    const size_t parts = (size_t)p->stream.parts;
    p->parts = calloc(parts, sizeof *p->parts);
    p->attentions = calloc(parts, sizeof *p->attentions);
    p->projections = calloc(parts, sizeof *p->projections);
    p->mean_word = calloc((size_t)p->stream.width, sizeof *p->mean_word);
    if (!p->parts || !p->attentions || !p->projections || !p->mean_word)
        return MHA_ERR_MEMORY;
    mha_status status = stream_path_mean_word(model, p->mean_word);
    for (int n = 0; n < p->stream.parts && status == MHA_OK; n++) {
        p->parts[n] = stream_path_part(model, n);
        if (p->parts[n].is_attention)
            status = read_attention(p, n);
    }
    return status;
}

/* ------------------------------------------------------------ translator ----- */

enum { TRANSLATOR_PARTS = 3 }; /* of a layer of the decoder: self, cross, feed-forward */

static stream_norm norm_at(const translator *model, const weight_at *at)
{
    const float *const values = translator_values(model);
    return (stream_norm){values + at->weight, values + at->bias};
}

static void list_parts(direct_path *p, const translator *model)
{
    const transformer_map *const map = translator_map(model);
    const ptrdiff_t E = p->stream.width;
    for (int n = 0; n < p->stream.parts; n++) {
        const int place = n % TRANSLATOR_PARTS, layer = n / TRANSLATOR_PARTS;
        const layer_at *const at = &map->layers[TRANSFORMER_TARGET][layer];
        p->parts[n] =
            (stream_part){.is_attention = place < 2,
                          .kind = place == 0 ? MHA_ATTENTION_DECODER : MHA_ATTENTION_CROSS,
                          .layer = layer};
        if (place == 2)
            continue;
        p->attentions[p->attention_count] = n;
        memcpy(p->projections[p->attention_count++],
               translator_values(model) + (place == 0 ? at->self : at->cross).o.weight,
               (size_t)(E * E) * sizeof(float));
    }
}

static void find_mean_word(direct_path *p, const translator *model)
{
    const ptrdiff_t E = p->stream.width;
    const int words = translator_config(model)->words[TRANSFORMER_TARGET];
    const float *const rows =
        translator_values(model) + translator_map(model)->embedding[TRANSFORMER_TARGET];
    for (ptrdiff_t n = 0; n < words * E; n++)
        p->mean_word[n % E] += (double)rows[n] / words;
}

mha_status direct_path_of_translator(direct_path *p, const translator *model)
{
    const transformer_config *const config = translator_config(model);
    const int layers = config->layers[TRANSFORMER_TARGET];
    *p = (direct_path){
        .translator = model,
        .stream = {.width = config->width,
                   .parts = TRANSLATOR_PARTS * layers,
                   .centred = true,
                   .eps = (double)ROW_NORM_EPSILON,
                   .last = norm_at(model, &translator_map(model)->norm[TRANSFORMER_TARGET])},
        .head_width = config->width / config->heads,
        .inner = config->width};
    const size_t parts = (size_t)p->stream.parts, width = (size_t)config->width;
    p->parts = calloc(parts, sizeof *p->parts);
    p->attentions = calloc(parts, sizeof *p->attentions);
    p->projections = calloc(parts, sizeof *p->projections);
    p->mean_word = calloc(width, sizeof *p->mean_word);
    bool fine = p->parts && p->attentions && p->projections && p->mean_word;
    for (int n = 0; fine && n < 2 * layers; n++) {
        p->projections[n] = malloc(width * width * sizeof *p->projections[n]);
        fine = p->projections[n];
    }
    if (!fine) {
        p->attention_count = 2 * layers; /* to be freed */
        return MHA_ERR_MEMORY;
    }
    list_parts(p, model);
    find_mean_word(p, model);
    return MHA_OK;
}

void direct_path_free(direct_path *p)
{
    for (int n = 0; p->projections && n < p->attention_count; n++)
        free(p->projections[n]);
    free(p->projections);
    free(p->attentions);
    free(p->parts);
    free(p->mean_word);
}

mha_status direct_word(const direct_path *p, int32_t word, float *row, double *to)
{
    mha_status status = MHA_OK;
    if (p->model)
        status = stream_path_word(p->model, word, row);
    else
        memcpy(row,
               translator_values(p->translator) +
                   translator_map(p->translator)->embedding[TRANSFORMER_TARGET] +
                   (size_t)word * (size_t)p->stream.width,
               (size_t)p->stream.width * sizeof *row);
    for (ptrdiff_t c = 0; c < p->stream.width && status == MHA_OK; c++)
        to[c] = (double)row[c] - p->mean_word[c];
    return status;
}

mha_status direct_bias(const direct_path *p, int32_t word, double *to)
{
    *to = 0.0;
    return p->model ? stream_path_bias(p->model, word, to) : MHA_OK;
}

/* ----------------------------------------------------------------- norms ----- */

static double mean_of(const double *x, ptrdiff_t count)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < count; c++)
        sum += x[c];
    return sum / (double)count;
}

/* x becomes its norm, of which *inverse is 1 / the deviation. */
static void apply_norm(const direct_path *p, const stream_norm *norm, bool held, double *inverse,
                       double *x)
{
    const ptrdiff_t width = p->stream.width;
    const double mean = p->stream.centred ? mean_of(x, width) : 0.0;
    if (!held) {
        double squares = 0.0;
        for (ptrdiff_t c = 0; c < width; c++)
            squares += (x[c] - mean) * (x[c] - mean);
        *inverse = 1.0 / sqrt(squares / (double)width + p->stream.eps);
    }
    for (ptrdiff_t c = 0; c < width; c++)
        x[c] = (x[c] - mean) * *inverse * (double)norm->weight[c] +
               (norm->bias ? (double)norm->bias[c] : 0.0);
}

/* The gradient g of the norm's result becomes that of its input; the deviation is a constant. What
 * the bias of the norm adds to the logit goes to the sums, if there are any. */
static void return_norm(const direct_path *p, const stream_norm *norm, double inverse,
                        direct_sums *sums, double *g)
{
    const ptrdiff_t width = p->stream.width;
    for (ptrdiff_t c = 0; sums && norm->bias && c < width; c++)
        sums->norms += g[c] * (double)norm->bias[c];
    for (ptrdiff_t c = 0; c < width; c++)
        g[c] *= inverse * (double)norm->weight[c];
    const double mean = p->stream.centred ? mean_of(g, width) : 0.0;
    for (ptrdiff_t c = 0; c < width; c++)
        g[c] -= mean;
}

/* ------------------------------------------------------------------ ways ----- */

double direct_walk(const direct_path *p, const direct_rows *run, int64_t row, const double *word,
                   const direct_removal *removal, bool held, double *inverse, double *room)
{
    const ptrdiff_t width = p->stream.width;
    double *const x = room, *const added = room + width;
    double logit = 0.0;
    for (ptrdiff_t c = 0; c < width; c++)
        x[c] = (double)run->embedded[row * width + c];
    for (int n = 0; n < p->stream.parts; n++) {
        const float *const output = run->parts + (n * run->rows + row) * width;
        for (ptrdiff_t c = 0; c < width; c++)
            added[c] = (double)output[c] - (removal->part == n ? removal->output[c] : 0.0);
        if (p->parts[n].inside.weight)
            apply_norm(p, &p->parts[n].inside, held, &inverse[2 * n], added);
        for (ptrdiff_t c = 0; c < width; c++)
            x[c] += added[c];
        if (p->parts[n].after.weight)
            apply_norm(p, &p->parts[n].after, held, &inverse[2 * n + 1], x);
    }
    if (p->stream.last.weight)
        apply_norm(p, &p->stream.last, held, &inverse[2 * p->stream.parts], x);
    for (ptrdiff_t c = 0; c < width; c++)
        logit += x[c] * word[c];
    return logit;
}

/* to[inner] = W_O^T g. */
static void pull(const direct_path *p, int attention, const double *g, float *to)
{
    const float *const w = p->projections[attention];
    memset(to, 0, (size_t)p->inner * sizeof *to);
    for (ptrdiff_t n = 0; n < p->stream.width; n++)
        for (ptrdiff_t c = 0; c < p->inner; c++)
            to[c] += (float)g[n] * w[n * p->inner + c];
}

/* The product of a gradient with a row of a run, [rows][width]. */
static double row_product(const direct_path *p, const direct_sums *sums, const float *rows,
                          const double *g)
{
    double sum = 0.0;
    for (ptrdiff_t c = 0; c < p->stream.width; c++)
        sum += g[c] * (double)rows[sums->row * p->stream.width + c];
    return sum;
}

void direct_gradient(const direct_path *p, const double *word, const double *inverse, float *pulled,
                     direct_sums *sums, double *room)
{
    const size_t bytes = (size_t)p->stream.width * sizeof *room;
    double *const g = room, *const inside = room + p->stream.width;
    int attention = p->attention_count;
    memcpy(g, word, bytes);
    if (p->stream.last.weight)
        return_norm(p, &p->stream.last, inverse[2 * p->stream.parts], sums, g);
    for (int n = p->stream.parts - 1; n >= 0; n--) {
        if (p->parts[n].after.weight)
            return_norm(p, &p->parts[n].after, inverse[2 * n + 1], sums, g);
        if (!p->parts[n].is_attention && !sums)
            continue;
        memcpy(inside, g, bytes);
        if (p->parts[n].inside.weight)
            return_norm(p, &p->parts[n].inside, inverse[2 * n], sums, inside);
        if (sums)
            sums->parts[n] = row_product(
                p, sums, sums->run->parts + n * sums->run->rows * p->stream.width, inside);
        if (!p->parts[n].is_attention)
            continue;
        attention--;
        pull(p, attention, inside, pulled + attention * p->inner);
    }
    if (sums)
        sums->embedded = row_product(p, sums, sums->run->embedded, g);
}

void direct_output(const direct_path *p, int attention, int head, const float *output, double *to)
{
    const float *const w = p->projections[attention] + head * p->head_width;
    for (ptrdiff_t n = 0; n < p->stream.width; n++) {
        double sum = 0.0;
        for (ptrdiff_t c = 0; c < p->head_width; c++)
            sum += (double)w[n * p->inner + c] * (double)output[c];
        to[n] = sum;
    }
}
