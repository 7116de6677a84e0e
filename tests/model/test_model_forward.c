/* SPDX-License-Identifier: MIT */
/*
 * Whole models against plain loops in double precision: every family, one sequence at a time and in
 * batches, every output, and the storage types.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_parts.h"
#include "support/plain_model.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { B = 3, MOST = 40, WORDS = 60, WIDTH = 64, LABELS = 5, PIXELS = 3 * 12 * 12 };

/* Three sequences of different lengths, with all outputs. */
typedef struct forward_case {
    mha_model *model;
    model_files files;
    int64_t starts[B + 1], source_starts[B + 1];
    int32_t ids[MOST], segments[MOST], source[MOST];
    float pixels[B * PIXELS];
    float *hidden, *logits, *source_hidden, *streams, pooled[B * WIDTH], labels[B * LABELS];
    mha_model_call call;
    char message[256];
} forward_case;

static forward_case *case_new(tiny_kind kind, mha_model_storage storage)
{
    static const int64_t lengths[B] = {7, 1, 17}, sources[B] = {5, 12, 2};
    forward_case *const c = calloc(1, sizeof *c);
    if (!c)
        abort();
    c->model = tiny_model_new(kind, storage, 20 + (uint64_t)kind, &c->files);
    const model_description *const d = &c->files.description;
    for (int b = 0; b < B; b++) {
        c->starts[b + 1] = c->starts[b] + (kind == TINY_VIT ? 11 : lengths[b]);
        c->source_starts[b + 1] = c->source_starts[b] + sources[b];
    }
    tiny_ids(c->ids, MOST, WORDS, 1);
    tiny_ids(c->segments, MOST, 2, 2);
    tiny_ids(c->source, MOST, WORDS, 3);
    test_random random = {4};
    for (int n = 0; n < B * PIXELS; n++)
        c->pixels[n] = test_random_float(&random);
    c->hidden = calloc(MOST, WIDTH * sizeof(float));
    c->source_hidden = calloc(MOST, WIDTH * sizeof(float));
    c->logits = calloc(MOST, WORDS * sizeof(float));
    c->streams = calloc(4 * MOST, WIDTH * sizeof(float));
    if (!c->hidden || !c->logits || !c->source_hidden || !c->streams)
        abort();
    c->call = (mha_model_call){.size = sizeof c->call,
                               .B = B,
                               .hidden = c->hidden,
                               .streams = c->streams,
                               .message = c->message,
                               .message_size = sizeof c->message};
    if (kind == TINY_VIT) {
        c->call.pixels = c->pixels;
    } else {
        c->call.starts = c->starts;
        c->call.ids = c->ids;
        c->call.logits = c->logits;
    }
    if (c->files.binding.stack[0].segments.data)
        c->call.segments = c->segments;
    if (c->files.binding.pooler.weight.data)
        c->call.pooled = c->pooled;
    if (d->labels)
        c->call.labels = c->labels;
    if (d->kind == MHA_MODEL_ENCODER_DECODER) {
        c->call.source_starts = c->source_starts;
        c->call.source_ids = c->source;
        c->call.source_hidden = c->source_hidden;
    }
    return c;
}

static void case_free(forward_case *c)
{
    mha_model_free(c->model);
    free(c->hidden);
    free(c->logits);
    free(c->source_hidden);
    free(c->streams);
    free(c);
}

static plain_result case_plain(const forward_case *c, int b)
{
    const plain_input input = {.ids = c->ids + c->starts[b],
                               .segments = c->segments + c->starts[b],
                               .source = c->source + c->source_starts[b],
                               .count = (ptrdiff_t)(c->starts[b + 1] - c->starts[b]),
                               .source_count =
                                   (ptrdiff_t)(c->source_starts[b + 1] - c->source_starts[b]),
                               .pixels = c->call.pixels ? c->pixels + b * PIXELS : NULL};
    return plain_model_run(&c->files, &input);
}

/* The largest difference, relative to the largest number. */
static double distance(const float *x, const double *y, ptrdiff_t count)
{
    double most = 0, size = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        most = fmax(most, isfinite(x[n]) ? fabs((double)x[n] - y[n]) : INFINITY);
        size = fmax(size, fabs(y[n]));
    }
    return most / fmax(size, 1e-30);
}

static void check_case(const forward_case *c, const char *name, double bound)
{
    const ptrdiff_t all = (ptrdiff_t)c->starts[B];
    for (int b = 0; b < B; b++) {
        plain_result r = case_plain(c, b);
        const ptrdiff_t first = (ptrdiff_t)c->starts[b];
        const int layers = c->files.description.stack[1].layers
                               ? c->files.description.stack[1].layers
                               : c->files.description.stack[0].layers;
        const double hidden = distance(c->hidden + first * WIDTH, r.hidden, r.rows * WIDTH);
        CHECK(hidden < bound, "%s, sequence %d: hidden differs by %g", name, b, hidden);
        for (int n = 0; n <= layers; n++) {
            const double stream = distance(c->streams + (n * all + first) * WIDTH,
                                           r.streams + n * r.rows * WIDTH, r.rows * WIDTH);
            CHECK(stream < bound, "%s, sequence %d: stream %d differs by %g", name, b, n, stream);
        }
        if (c->call.logits) {
            const double x = distance(c->logits + first * WORDS, r.logits, r.rows * WORDS);
            CHECK(x < bound, "%s, sequence %d: logits differ by %g", name, b, x);
        }
        if (c->call.source_hidden) {
            const double x =
                distance(c->source_hidden + c->source_starts[b] * WIDTH, r.source_hidden,
                         (c->source_starts[b + 1] - c->source_starts[b]) * WIDTH);
            CHECK(x < bound, "%s, sequence %d: source differs by %g", name, b, x);
        }
        if (c->call.pooled)
            CHECK(distance(c->pooled + b * WIDTH, r.pooled, WIDTH) < bound, "%s: pooled", name);
        if (c->call.labels)
            CHECK(distance(c->labels + b * LABELS, r.labels, LABELS) < bound, "%s: labels", name);
        plain_result_free(&r);
    }
}

static void families(void)
{
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        forward_case *const c = case_new((tiny_kind)kind, MHA_STORE_AS_FILE);
        const mha_status status = mha_model_run(c->model, &c->call, NULL, 0, NULL);
        if (CHECK(status == MHA_OK, "%s: %s: %s", tiny_name((tiny_kind)kind),
                  mha_status_string(status), c->message))
            /* T5 does not divide its scores by sqrt(D), so their rounding counts more. */
            check_case(c, tiny_name((tiny_kind)kind), kind == TINY_T5 ? 1e-5 : 5e-6);
        case_free(c);
    }
}

/* Narrow storage comes near, and is in fact used. */
static void storage_types(void)
{
    static const struct {
        mha_model_storage storage;
        double bound, least;
    } types[] = {{MHA_STORE_F32, 5e-6, 0},     {MHA_STORE_F16, 3e-3, 1e-5},
                 {MHA_STORE_BF16, 3e-2, 1e-4}, {MHA_STORE_I8, 8e-2, 1e-4},
                 {MHA_STORE_Q8, 6e-2, 1e-4},   {MHA_STORE_Q4, 6e-1, 1e-3}};
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++) {
        forward_case *const c = case_new(TINY_LLAMA, types[n].storage);
        const mha_status status = mha_model_run(c->model, &c->call, NULL, 0, NULL);
        CHECK(status == MHA_OK, "storage %d: %s", (int)types[n].storage, c->message);
        check_case(c, "stored", types[n].bound);
        plain_result r = case_plain(c, 0);
        CHECK(distance(c->hidden, r.hidden, r.rows * WIDTH) >= types[n].least, "storage %d",
              (int)types[n].storage);
        plain_result_free(&r);
        case_free(c);
    }
}

/* What a model says about itself. */
/* Sines of positions beyond the table are computed, with the same bits. */
static void sines_beyond_their_table(void)
{
    forward_case *const c = case_new(TINY_MARIAN, MHA_STORE_AS_FILE);
    float whole[4 * MOST * WIDTH];
    CHECK(c->model->stack[STACK_DECODER].sine_rows == c->files.description.positions, "%td rows",
          c->model->stack[STACK_DECODER].sine_rows);
    CHECK(mha_model_run(c->model, &c->call, NULL, 0, NULL) == MHA_OK, "%s", c->message);
    memcpy(whole, c->streams, sizeof whole);
    memset(c->streams, 0, sizeof whole);
    for (int s = 0; s < STACKS; s++)
        c->model->stack[s].sine_rows = 3;
    CHECK(mha_model_run(c->model, &c->call, NULL, 0, NULL) == MHA_OK, "%s", c->message);
    CHECK(memcmp(whole, c->streams, sizeof whole) == 0, "other bits without the table");
    case_free(c);
}

static void models_say_what_they_are(void)
{
    static const ptrdiff_t layers[TINY_KINDS][MHA_ATTENTION_KINDS] = {
        {3, 0, 0}, {0, 3, 0}, {0, 3, 0}, {0, 3, 0}, {3, 3, 3},
        {3, 2, 2}, {3, 2, 2}, {3, 0, 0}, {3, 0, 0}};
    for (int kind = 0; kind < TINY_KINDS; kind++) {
        model_files files;
        mha_model *const model = tiny_model_new((tiny_kind)kind, MHA_STORE_AS_FILE, 1, &files);
        mha_model_info info = {.size = sizeof info};
        CHECK(mha_model_get_info(model, &info) == MHA_OK, "info");
        CHECK(memcmp(info.layers, layers[kind], sizeof info.layers) == 0, "%s: layers",
              tiny_name((tiny_kind)kind));
        CHECK(info.kind == files.description.kind && info.width == WIDTH, "kind and width");
        CHECK(info.has_logits == (kind != TINY_VIT), "logits");
        CHECK(info.parameters > 0 && info.memory_bytes > 4 * 10000, "%zu bytes", info.memory_bytes);
        for (int a = 0; a < MHA_ATTENTION_KINDS; a++) {
            CHECK((mha_model_heads(model, (mha_attention_kind)a, 0) == info.heads) ==
                      (layers[kind][a] > 0),
                  "heads");
            CHECK(mha_model_heads(model, (mha_attention_kind)a, layers[kind][a]) == -1, "past");
        }
        CHECK(!mha_model_tokenizer(model) && !mha_model_target_tokenizer(model), "tokenizer");
        mha_model_free(model);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(families);
    RUN(storage_types);
    RUN(sines_beyond_their_table);
    RUN(models_say_what_they_are);
    return test_end();
}
