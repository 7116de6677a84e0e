/* SPDX-License-Identifier: MIT */
/*
 * Models saved with matrices of 8 bits: the file is a quarter as large, every matrix has the rows
 * of mha_row_from_f32(), vectors and small matrices stay as they were, and the model that is opened
 * again computes nearly the same, with exactly the numbers of its file. What cannot be saved so is
 * refused.
 */
#include <mha/mha_model.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/weight_source.h"
#include "support/model_builder.h"
#include "support/saved_models.h"
#include "support/test.h"

enum { WIDTH = 64, TOKENS = 5 };

#define LINEAR(name) name ".weight 64 64\n" name ".bias 64\n"
#define NORM(name) name ".weight 64\n" name ".bias 64\n"

static const char config[] =
    "{\"model_type\": \"bert\", \"vocab_size\": 80, \"hidden_size\": 64, \"num_hidden_layers\": "
    "2,\n"
    " \"num_attention_heads\": 4, \"intermediate_size\": 96, \"max_position_embeddings\": 16}\n";

static const char tensors[] =
    "embeddings.word_embeddings.weight 80 64\n"
    "embeddings.position_embeddings.weight 16 64\n"
    "embeddings.token_type_embeddings.weight 2 64\n" NORM("embeddings.LayerNorm") LINEAR(
        "encoder.layer.#.attention.self.query") LINEAR("encoder.layer.#.attention.self.key")
        LINEAR("encoder.layer.#.attention.self.value") LINEAR(
            "encoder.layer.#.attention.output.dense")
            NORM("encoder.layer.#.attention.output.LayerNorm") NORM(
                "encoder.layer.#.output.LayerNorm") "encoder.layer.#.intermediate.dense.weight 96 "
                                                    "64\n"
                                                    "encoder.layer.#.intermediate.dense.bias 96\n"
                                                    "encoder.layer.#.output.dense.weight 64 96\n"
                                                    "encoder.layer.#.output.dense.bias 64\n";

static mha_model *open_model(const char *path)
{
    char message[300] = "";
    const mha_model_config request = {
        .size = sizeof request, .message = message, .message_size = sizeof message};
    mha_model *model;
    CHECK(mha_model_open(&model, path, &request) == MHA_OK, "%s", message);
    return model;
}

static mha_status save(const mha_model *model, const char *path, mha_model_storage storage,
                       char message[300])
{
    const mha_save_config request = {
        .size = sizeof request, .message = message, .message_size = 300, .storage = storage};
    message[0] = '\0';
    return mha_model_save(model, path, &request);
}

static bool run(const mha_model *model, float hidden[TOKENS * WIDTH])
{
    static const int32_t ids[TOKENS] = {3, 44, 79, 6, 7};
    static const int64_t starts[2] = {0, TOKENS};
    const mha_model_call call = {
        .size = sizeof call, .B = 1, .starts = starts, .ids = ids, .hidden = hidden};
    return CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
}

/* Whether a matrix of the copy is what rounding makes of the source's, row by row. */
static void check_rows(const weight_tensor *from, const weight_tensor *to)
{
    const ptrdiff_t columns = (ptrdiff_t)from->shape[1];
    const size_t bytes = mha_row_bytes(MHA_Q8_0, columns),
                 wide = mha_row_bytes(from->type, columns);
    float numbers[96];
    unsigned char row[3 * 34];
    if (!CHECK(to->type == MHA_Q8_0 && to->rank == 2 && to->shape[0] == from->shape[0] &&
                   to->shape[1] == from->shape[1] && to->bytes == from->shape[0] * bytes,
               "%s: type %d, %d axes", from->name, (int)to->type, to->rank))
        return;
    for (uint64_t n = 0; n < from->shape[0]; n++) {
        mha_row_to_f32(from->type, (const char *)from->data + n * wide, columns, numbers);
        CHECK(mha_row_from_f32(MHA_Q8_0, numbers, columns, row) == MHA_OK, "row");
        CHECK(memcmp(row, (const char *)to->data + n * bytes, bytes) == 0, "%s, row %d", from->name,
              (int)n);
    }
}

static void check_files(const char *before, const char *after)
{
    weight_source *from, *to;
    char message[300] = "";
    int shrunk = 0;
    CHECK(weight_source_open(&from, before, message, sizeof message) == MHA_OK, "%s", message);
    CHECK(weight_source_open(&to, after, message, sizeof message) == MHA_OK, "%s", message);
    CHECK(weight_source_count(from) == weight_source_count(to), "tensors");
    for (size_t n = 0; n < weight_source_count(from); n++) {
        const weight_tensor *const a = weight_source_at(from, n);
        const weight_tensor *const b = weight_source_find(to, a->name);
        if (!CHECK(b && b->usable, "%s", a->name))
            continue;
        if (a->rank == 2 && a->shape[0] >= 64) {
            check_rows(a, b);
            shrunk++;
        } else {
            CHECK(b->type == a->type && b->bytes == a->bytes &&
                      memcmp(a->data, b->data, (size_t)a->bytes) == 0,
                  "%s is not the same", a->name);
        }
    }
    CHECK(shrunk == 1 + 2 * 6, "%d matrices are smaller", shrunk);
    weight_source_close(from);
    weight_source_close(to);
}

/* The same model, from f32 or f16. */
static void matrices_of_8_bits(void)
{
    for (int half = 0; half < 2; half++) {
        const temp_folder folder = temp_folder_new();
        float whole[TOKENS * WIDTH], rounded[TOKENS * WIDTH];
        char message[300];
        double difference = 0.0, size = 0.0;
        model_builder_random(&folder, config, tensors, 2, half);
        mha_model *const model = open_model(temp_path(&folder, ""));
        CHECK(save(model, temp_path(&folder, "small"), MHA_STORE_Q8, message) == MHA_OK, "%s",
              message);
        char small[300], again[300];
        snprintf(small, sizeof small, "%s", temp_path(&folder, "small"));
        mha_model *const copy = open_model(small);
        if (run(model, whole) && run(copy, rounded))
            for (int n = 0; n < TOKENS * WIDTH; n++) {
                difference += pow((double)whole[n] - (double)rounded[n], 2);
                size += pow((double)whole[n], 2);
            }
        CHECK(difference > 0.0 && difference < 1e-3 * size, "%g of %g", difference, size);
        check_files(temp_path(&folder, ""), small);
        snprintf(again, sizeof again, "%s", temp_path(&folder, "again"));
        CHECK(save(copy, again, MHA_STORE_Q8, message) == MHA_ERR_FLAG &&
                  strstr(message, "bytes already"),
              "%s", message);
        /* As it is, it can be saved once more: the same numbers. */
        CHECK(save(copy, again, MHA_STORE_AS_FILE, message) == MHA_OK, "%s", message);
        mha_model *const third = open_model(again);
        if (run(third, whole))
            CHECK(memcmp(whole, rounded, sizeof whole) == 0, "the copy of the copy differs");
        mha_model_free(third);
        mha_model_free(copy);
        mha_model_free(model);
        temp_folder_free(&folder);
    }
}

static void what_cannot_be_saved_so(void)
{
    const temp_folder folder = temp_folder_new();
    char message[300];
    const saved_model *const gpt2 = &saved_models[SAVED_GPT2];
    model_builder_random(&folder, gpt2->config, gpt2->tensors, 2, false);
    mha_model *const model = open_model(temp_path(&folder, ""));
    CHECK(save(model, temp_path(&folder, "x"), MHA_STORE_Q8, message) == MHA_ERR_FLAG &&
              strstr(message, "inputs first"),
          "%s", message);
    CHECK(save(model, temp_path(&folder, "x"), MHA_STORE_F16, message) == MHA_ERR_FLAG &&
              strstr(message, "as they are, or as q8"),
          "%s", message);
    mha_model_free(model);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(matrices_of_8_bits);
    RUN(what_cannot_be_saved_so);
    return test_end();
}
