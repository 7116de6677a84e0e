/* SPDX-License-Identifier: MIT */
/*
 * Models of libmha_model as subjects (heads/subject_model.c). The file of a translator is opened by
 * both: what its heads do must be the same, with and without changes, and so must be likelihoods.
 * Then whole words for display (heads/whole_words.h).
 */
#include "heads/subject_model_parts.h"
#include "heads/whole_words.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE = 6, TARGET = 4 };
static const int source[SOURCE] = {5, 7, 9, 4, 5, 11}, target[TARGET] = {6, 3, 8, 10};

static translator *own;
static mha_model *model;
static subject any;

/* One side of a text of the model: the words, with a mark before or after them. */
static void fill_side(model_side *m, const int *words, int count, int before, int after)
{
    static bool flags[CORPUS_TOKENS_MAX];
    static int numbers[2][CORPUS_TOKENS_MAX];
    static int32_t ids[2][CORPUS_TOKENS_MAX];
    const int side = before >= 0;
    int n = 0;
    if (before >= 0)
        numbers[side][n++] = before;
    for (int k = 0; k < count; k++)
        numbers[side][n++] = words[k];
    if (after >= 0)
        numbers[side][n++] = after;
    for (int k = 0; k < n; k++)
        ids[side][k] = numbers[side][k];
    *m = (model_side){.ids = ids[side]};
    m->side =
        (subject_side){.count = n, .numbers = numbers[side], .marks = flags, .continues = flags};
}

static bool near_all(const char *what, const float *a, const float *b, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (!CHECK(fabsf(a[n] - b[n]) <= 2e-5f * (1.0f + fabsf(a[n])), "%s %zu: %g and %g", what, n,
                   (double)a[n], (double)b[n]))
            return false;
    return true;
}

static void same_heads(const capture_heads *a, const capture_heads *b)
{
    const size_t maps = (size_t)a->layers * (size_t)a->heads, D = (size_t)a->width;
    const size_t rows = maps * (size_t)a->rows, columns = maps * (size_t)a->columns;
    if (!CHECK(a->layers == b->layers && a->heads == b->heads && a->rows == b->rows &&
                   a->columns == b->columns && a->width == b->width,
               "shape"))
        return;
    near_all("weight", a->weights, b->weights, rows * (size_t)a->columns);
    near_all("query", a->q, b->q, rows * D);
    near_all("key", a->k, b->k, columns * D);
    near_all("value", a->v, b->v, columns * D);
    near_all("output", a->outputs, b->outputs, rows * D);
    near_all("norm", a->value_norms, b->value_norms, columns);
}

static void compare(const capture_options *options)
{
    model_text memory = {.end = WORD_END};
    fill_side(&memory.sides[TRANSFORMER_SOURCE], source, SOURCE, -1, WORD_END);
    fill_side(&memory.sides[TRANSFORMER_TARGET], target, TARGET, WORD_BEGIN, -1);
    const subject_text text = {.memory = &memory};
    capture *const a = capture_create(own, source, SOURCE, target, TARGET, options, NULL);
    capture *const b = subject_model_run(&any, &text, options, NULL);
    if (!CHECK(a && b, "captures"))
        return;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        same_heads(&a->kind[kind], &b->kind[kind]);
    CHECK(b->scored == TARGET + 1 && a->scored == b->scored, "%d rows are scored", b->scored);
    for (int n = 0; n < b->scored; n++)
        CHECK(a->expected[n] == b->expected[n] && a->predicted[n] == b->predicted[n] &&
                  fabs(a->log_likelihood[n] - b->log_likelihood[n]) < 1e-4 &&
                  fabs(a->logit[n] - b->logit[n]) < 1e-4,
              "row %d: %g and %g", n, a->log_likelihood[n], b->log_likelihood[n]);
    capture_free(a);
    capture_free(b);
}

static void heads_are_those_of_the_translator(void)
{
    compare(&(capture_options){.weights = true, .vectors = true});
}

static void changed_heads_are_those_of_the_translator(void)
{
    const head_shape shape = any.shape;
    uint8_t changes[ATTENTION_KINDS][16] = {{0}};
    float means[ATTENTION_KINDS][16 * 32];
    capture_options options = {.weights = true, .vectors = true};
    for (int n = 0; n < ATTENTION_KINDS * 16 * 32; n++)
        means[n / 512][n % 512] = 0.01f * (float)(n % 37 - 18);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        changes[kind][kind] = HEAD_ZERO;
        changes[kind][shape.heads + kind] = HEAD_UNIFORM;
        changes[kind][shape.heads - 1] = HEAD_MEAN;
        options.changes[kind] = changes[kind];
        options.means[kind] = means[kind];
    }
    compare(&options);
}

/* Two words of the encoder, the second of two pieces; the decoder reads three, each one token. */
static void whole_words_are_shown(void)
{
    static const char *words[] = {"[CLS]", "sleep", "##s"}, *said[] = {"<s>", "il", "dort"};
    static const char *expected[] = {"il", "dort", "</s>"};
    static bool continues[] = {false, false, true}, marks[] = {true, false, false}, none[3];
    const subject_text from = {
        .text = "sleeps",
        .source = {.count = 3, .words = words, .marks = marks, .continues = continues},
        .target = {.count = 3, .words = said, .marks = marks, .continues = none},
        .expected = expected};
    whole_words whole;
    if (CHECK(whole_words_make(&whole, &from), "no memory")) {
        const subject_text *const t = &whole.text;
        CHECK(t->source.count == 2 && strcmp(t->source.words[1], "sleeps") == 0 &&
                  strcmp(t->source.words[0], "[CLS]") == 0 && t->source.marks[0],
              "source");
        CHECK(t->target.count == 3 && strcmp(t->expected[1], "dort") == 0 &&
                  strcmp(t->expected[2], "</s>") == 0,
              "target");
    }
    whole_words_free(&whole);
}

static void captures_are_joined(void)
{
    const capture_options options = {.weights = true, .vectors = true};
    capture *const c = capture_create(own, source, SOURCE, target, TARGET, &options, NULL);
    if (!CHECK(c, "no capture"))
        return;
    c->source_continues[2] = c->target_continues[3] = c->says_more[2] = true;
    CHECK(capture_join_words(c), "no memory");
    const capture_heads *const cross = &c->kind[ATTENTION_CROSS];
    CHECK(cross->rows == TARGET && cross->columns == SOURCE && !cross->q &&
              c->kind[ATTENTION_ENCODER].rows == SOURCE &&
              c->kind[ATTENTION_DECODER].columns == TARGET,
          "%d x %d", cross->rows, cross->columns);
    for (int row = 0; row < cross->layers * cross->heads * cross->rows; row++) {
        float sum = 0.0f;
        for (int j = 0; j < cross->columns; j++)
            sum += cross->weights[row * cross->columns + j];
        CHECK(fabsf(sum - 1.0f) < 1e-5f, "row %d sums to %g", row, (double)sum);
    }
    capture_free(c);
}

int main(int argc, char **argv)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "", reason[SUBJECT_MESSAGE_MAX];
    test_begin(argc, argv);
    const temp_folder folder = temp_folder_new();
    transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 9);
    own = translator_create(&config, values, message);
    const char *const path = temp_path(&folder, "model.safetensors");
    const mha_model_config options = {
        .size = sizeof options, .message = reason, .message_size = sizeof reason};
    if (CHECK(own && translator_save(path, &config, values, MHA_F32, NULL, 0, message) == MHA_OK,
              "%s", message) &&
        CHECK(mha_model_open(&model, path, &options) == MHA_OK, "%s", reason)) {
        subject_of_model(&any, model, reason);
        RUN(heads_are_those_of_the_translator);
        RUN(changed_heads_are_those_of_the_translator);
        RUN(captures_are_joined);
    }
    RUN(whole_words_are_shown);
    mha_model_free(model);
    translator_free(own);
    free(values);
    temp_folder_free(&folder);
    return test_end();
}
