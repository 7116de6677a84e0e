/* SPDX-License-Identifier: MIT */
/*
 * Vectors of texts: the pooled rows of a forward pass, in the order of the texts, whatever their
 * number; texts that are too long are cut before their end mark.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_parts.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { WORDS = 60, WIDTH = 64, TEXTS = 5, CLASS = 2, SEPARATOR = 3 };

static const char *const texts[TEXTS] = {"a b c", "", "d e f g a b", "c", "a a b x c"};

/* A vocabulary of BERT's form with single letters. */
static mha_tokenizer *tokenizer_new(const temp_folder *folder)
{
    char lines[512] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\ng\n";
    mha_tokenizer *tokenizer = NULL;
    CHECK(file_make(temp_path(folder, "vocab.txt"), lines, strlen(lines)), "file");
    CHECK(mha_tokenizer_open(&tokenizer, temp_path(folder, "vocab.txt"), NULL, 0) == MHA_OK,
          "tokenizer");
    return tokenizer;
}

static mha_model *model_new(tiny_kind kind, const temp_folder *folder)
{
    mha_model *const model = tiny_model_new(kind, MHA_STORE_AS_FILE, 8, NULL);
    model->tokenizer = model->target_tokenizer = tokenizer_new(folder);
    return model;
}

/* The rows of a text: [CLS], letters, [SEP]; returns their number. For an encoder-decoder those of
 * its encoder, in a call that also runs the decoder. */
static int64_t rows_of(const mha_model *model, const char *text, int64_t longest, float *hidden)
{
    int32_t ids[32] = {CLASS};
    int64_t count = 1;
    for (; *text; text++)
        if (*text != ' ')
            ids[count++] = *text <= 'g' ? 5 + *text - 'a' : 1;
    ids[count++] = SEPARATOR;
    if (count > longest) {
        count = longest;
        ids[count - 1] = SEPARATOR;
    }
    const int64_t starts[2] = {0, count};
    const bool pair = model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .starts = starts,
                                 .ids = ids,
                                 .source_starts = pair ? starts : NULL,
                                 .source_ids = pair ? ids : NULL,
                                 .hidden = pair ? NULL : hidden,
                                 .source_hidden = pair ? hidden : NULL};
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
    return count;
}

static double pooled(mha_pooling pooling, const float *hidden, int64_t rows, int c)
{
    double sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < rows; i++) {
        sum += (double)hidden[i * WIDTH + c] / (double)rows;
        most = fmax(most, (double)hidden[i * WIDTH + c]);
    }
    return pooling == MHA_POOLING_FIRST  ? (double)hidden[c]
           : pooling == MHA_POOLING_LAST ? (double)hidden[(rows - 1) * WIDTH + c]
           : pooling == MHA_POOLING_MAX  ? most
                                         : sum;
}

static void check_vectors(const mha_model *model, const mha_encode_config *config, int64_t longest,
                          mha_pooling pooling, bool normalized)
{
    float vectors[TEXTS * WIDTH], hidden[16 * WIDTH];
    const mha_status status = mha_model_encode(model, texts, TEXTS, config, vectors, NULL);
    if (!CHECK(status == MHA_OK, "%s", mha_status_string(status)))
        return;
    for (int n = 0; n < TEXTS; n++) {
        const int64_t rows = rows_of(model, texts[n], longest, hidden);
        double square = 0;
        for (int c = 0; c < WIDTH; c++)
            square += pow(pooled(pooling, hidden, rows, c), 2);
        for (int c = 0; c < WIDTH; c++) {
            const double expected =
                pooled(pooling, hidden, rows, c) / (normalized ? sqrt(square) : 1);
            CHECK(fabs((double)vectors[n * WIDTH + c] - expected) < 1e-6, "text %d, pooling %d", n,
                  (int)pooling);
        }
    }
}

static void vectors_are_pooled_rows(void)
{
    const temp_folder folder = temp_folder_new();
    mha_model *const model = model_new(TINY_BERT, &folder);
    mha_encode_config config = {.size = sizeof config};
    for (int pooling = MHA_POOLING_MEAN; pooling <= MHA_POOLING_MAX; pooling++) {
        config.pooling = (mha_pooling)pooling;
        check_vectors(model, &config, 100, (mha_pooling)pooling, false);
    }
    check_vectors(model, NULL, 100, MHA_POOLING_MEAN, false);
    model->files.description.usage.pooling = MHA_POOLING_FIRST;
    model->files.description.usage.normalize = true;
    config = (mha_encode_config){.size = sizeof config};
    check_vectors(model, &config, 100, MHA_POOLING_FIRST, true);
    config.normalize = -1;
    check_vectors(model, &config, 100, MHA_POOLING_FIRST, false);
    config.longest = 4;
    config.normalize = 1;
    check_vectors(model, &config, 4, MHA_POOLING_FIRST, true);
    model->files.description.usage.longest = 3;
    config.longest = 0;
    check_vectors(model, &config, 3, MHA_POOLING_FIRST, true);
    mha_model_free(model);
    temp_folder_free(&folder);
}

/* How many tokens each text has lost, in the order of the texts. */
static void texts_that_were_cut(void)
{
    static const int64_t expected[TEXTS] = {1, 0, 4, 0, 3};
    const temp_folder folder = temp_folder_new();
    mha_model *const model = model_new(TINY_BERT, &folder);
    float vectors[TEXTS * WIDTH];
    int64_t cut[TEXTS];
    const mha_encode_config config = {.size = sizeof config, .longest = 4, .cut = cut};
    CHECK(mha_model_encode(model, texts, TEXTS, &config, vectors, NULL) == MHA_OK, "encode");
    for (int n = 0; n < TEXTS; n++)
        CHECK(cut[n] == expected[n], "text %d: %d", n, (int)cut[n]);
    mha_model_free(model);
    temp_folder_free(&folder);
}

/* Of an encoder-decoder the encoder runs alone, and gives the same rows as before a decoder. */
static void encoders_of_pairs(void)
{
    static const tiny_kind pairs[] = {TINY_T5, TINY_BART, TINY_MARIAN};
    const temp_folder folder = temp_folder_new();
    for (size_t n = 0; n < sizeof pairs / sizeof pairs[0]; n++) {
        mha_model *const model = model_new(pairs[n], &folder);
        mha_encode_config config = {.size = sizeof config};
        for (int pooling = MHA_POOLING_MEAN; pooling <= MHA_POOLING_MAX; pooling++) {
            config.pooling = (mha_pooling)pooling;
            check_vectors(model, &config, 100, (mha_pooling)pooling, false);
        }
        mha_model_free(model);
    }
    temp_folder_free(&folder);
}

/* What belongs to the decoder cannot be requested of the encoder alone. */
static void requests_to_the_encoder_alone(void)
{
    enum { ROWS = 3 };
    static const int64_t starts[2] = {0, ROWS};
    static const int32_t ids[ROWS] = {5, 6, 7};
    static float numbers[10 * ROWS * WIDTH];
    mha_model *const model = tiny_model_new(TINY_BART, MHA_STORE_AS_FILE, 8, NULL);
    mha_capture capture = {.kind = MHA_ATTENTION_CROSS, .q = {numbers, 0, 0, 0}};
    const mha_model_call good = {.size = sizeof good,
                                 .B = 1,
                                 .source_starts = starts,
                                 .source_ids = ids,
                                 .source_hidden = numbers};
    mha_model_call call = good;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
    CHECK(mha_model_work_size(model, &call, 1) > 0, "workspace");
    call.hidden = numbers;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "hidden");
    call = good;
    call.logits = numbers;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "logits");
    call = good;
    call.streams = numbers;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "streams");
    call.streams = NULL;
    call.parts = numbers;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "parts");
    call = good;
    call.captures = &capture;
    call.capture_count = 1;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_ERR_FLAG, "cross-attention");
    call = good;
    call.starts = starts;
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_ERR_NULL, "starts without ids");
    mha_model_free(model);
}

/* Many texts are computed in several groups; each has the bits that it has alone. */
static void vectors_do_not_depend_on_others(void)
{
    enum { MANY = 900 };
    const temp_folder folder = temp_folder_new();
    mha_model *const model = model_new(TINY_ALBERT, &folder);
    static const char *many[MANY];
    static float vectors[MANY * WIDTH], alone[TEXTS * WIDTH];
    mha_pool *pool;
    CHECK(mha_pool_create(&pool, 2) == MHA_OK, "pool");
    for (int n = 0; n < MANY; n++)
        many[n] = texts[n % TEXTS];
    for (int n = 0; n < TEXTS; n++)
        CHECK(mha_model_encode(model, &texts[n], 1, NULL, alone + n * WIDTH, NULL) == MHA_OK, "1");
    CHECK(mha_model_encode(model, many, MANY, NULL, vectors, pool) == MHA_OK, "many");
    for (int n = 0; n < MANY; n++)
        CHECK(memcmp(vectors + n * WIDTH, alone + n % TEXTS * WIDTH, WIDTH * sizeof(float)) == 0,
              "text %d", n);
    mha_pool_free(pool);
    mha_model_free(model);
    temp_folder_free(&folder);
}

static void wrong_requests_are_refused(void)
{
    const temp_folder folder = temp_folder_new();
    mha_model *const model = model_new(TINY_BERT, &folder);
    mha_model *const pictures = model_new(TINY_VIT, &folder);
    mha_model *const plain = tiny_model_new(TINY_BERT, MHA_STORE_AS_FILE, 8, NULL);
    float vectors[TEXTS * WIDTH];
    const char *none = NULL;
    mha_encode_config config = {.size = sizeof config, .pooling = (mha_pooling)9};
    CHECK(mha_model_encode(model, texts, TEXTS, &config, vectors, NULL) == MHA_ERR_FLAG, "pooling");
    CHECK(mha_model_encode(plain, texts, TEXTS, NULL, vectors, NULL) == MHA_ERR_FLAG,
          "no tokenizer");
    CHECK(mha_model_encode(pictures, texts, TEXTS, NULL, vectors, NULL) == MHA_ERR_FLAG,
          "pictures");
    CHECK(mha_model_encode(model, &none, 1, NULL, vectors, NULL) == MHA_ERR_NULL, "no text");
    CHECK(mha_model_encode(model, texts, -1, NULL, vectors, NULL) == MHA_ERR_SHAPE, "count");
    CHECK(mha_model_encode(model, texts, 0, NULL, vectors, NULL) == MHA_OK, "nothing");
    mha_model_free(model);
    mha_model_free(pictures);
    mha_model_free(plain);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(vectors_are_pooled_rows);
    RUN(texts_that_were_cut);
    RUN(encoders_of_pairs);
    RUN(requests_to_the_encoder_alone);
    RUN(vectors_do_not_depend_on_others);
    RUN(wrong_requests_are_refused);
    return test_end();
}
