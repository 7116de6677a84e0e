/* SPDX-License-Identifier: MIT */
/*
 * A GGUF file whose matrices have several types, as Q4_K_M has: each stays in its own type in
 * memory, and the logits are those of a model whose matrices were converted to f32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mha/mha_model.h"
#include "support/gguf_builder.h"
#include "support/temp_files.h"
#include "support/test.h"

enum { WIDTH = 256, LAYERS = 3, WORDS = 256, TOKENS = 7 };

static void write_mixed(const temp_folder *folder)
{
    gguf_builder g = {.bytes = NULL};
    gguf_builder_text(&g, "general.architecture", "llama");
    gguf_builder_integer(&g, "llama.block_count", LAYERS);
    gguf_builder_integer(&g, "llama.embedding_length", WIDTH);
    gguf_builder_integer(&g, "llama.feed_forward_length", WIDTH);
    gguf_builder_integer(&g, "llama.context_length", 32);
    gguf_builder_integer(&g, "llama.attention.head_count", 4);
    gguf_builder_integer(&g, "llama.attention.head_count_kv", 2);
    gguf_builder_integer(&g, "llama.rope.dimension_count", 64);
    gguf_builder_real(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_builder_tensors(&g,
                         "output_norm.weight 256\n"
                         "blk.#.attn_norm.weight 256\nblk.#.ffn_norm.weight 256\n",
                         LAYERS, 1.0f);
    gguf_builder_blocks(&g, "token_embd.weight 256 256\n", 1, MHA_Q6_K);
    gguf_builder_blocks(&g,
                        "blk.#.attn_q.weight 256 256\nblk.#.attn_k.weight 128 256\n"
                        "blk.#.attn_output.weight 256 256\nblk.#.ffn_up.weight 256 256\n"
                        "blk.0.attn_v.weight 128 256\nblk.0.ffn_gate.weight 256 256\n"
                        "blk.0.ffn_down.weight 256 256\nblk.1.ffn_gate.weight 256 256\n",
                        LAYERS, MHA_Q4_K);
    gguf_builder_blocks(&g,
                        "blk.1.attn_v.weight 128 256\nblk.1.ffn_down.weight 256 256\n"
                        "blk.2.attn_v.weight 128 256\nblk.2.ffn_down.weight 256 256\n"
                        "blk.2.ffn_gate.weight 256 256\n",
                        1, MHA_Q6_K);
    gguf_builder_write(&g, temp_path(folder, "m.gguf"));
    gguf_builder_free(&g);
}

static mha_model *open_as(const temp_folder *folder, mha_model_storage storage)
{
    mha_model *model;
    char message[300] = "";
    const mha_model_config config = {.size = sizeof config,
                                     .storage = storage,
                                     .message = message,
                                     .message_size = sizeof message};
    CHECK(mha_model_open(&model, temp_path(folder, "m.gguf"), &config) == MHA_OK, "%s", message);
    return model;
}

/* All at once, and token by token with a state. */
static void run(const mha_model *model, float *logits, float *steps)
{
    static const int32_t ids[TOKENS] = {3, 200, 17, 90, 255, 0, 17};
    static const int64_t all[2] = {0, TOKENS}, one[2] = {0, 1};
    mha_state *state = NULL;
    mha_model_call call = {
        .size = sizeof call, .B = 1, .starts = all, .ids = ids, .logits = logits};
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
    CHECK(mha_state_create(&state, model, NULL) == MHA_OK, "state");
    call.state = state;
    call.starts = one;
    for (int n = 0; n < TOKENS; n++) {
        call.ids = ids + n;
        call.logits = steps + n * WORDS;
        CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "step %d", n);
    }
    mha_state_free(state);
}

static void mixed_types(void)
{
    static float given[2][TOKENS * WORDS], wide[2][TOKENS * WORDS];
    const temp_folder folder = temp_folder_new();
    write_mixed(&folder);
    mha_model *const model = open_as(&folder, MHA_STORE_AS_FILE);
    mha_model *const plain = open_as(&folder, MHA_STORE_F32);
    if (model && plain) {
        run(model, given[0], given[1]);
        run(plain, wide[0], wide[1]);
        double most = 0, apart = 0;
        for (int n = 0; n < 2 * TOKENS * WORDS; n++) {
            const double a = (double)given[n / (TOKENS * WORDS)][n % (TOKENS * WORDS)];
            const double b = (double)wide[n / (TOKENS * WORDS)][n % (TOKENS * WORDS)];
            most = fabs(b) > most ? fabs(b) : most;
            apart = fabs(a - b) > apart || isnan(a - b) ? fabs(a - b) : apart;
        }
        CHECK(most > 0 && apart <= 1e-4 * most, "logits up to %g, %g apart", most, apart);
        mha_model_info info = {.size = sizeof info}, f32 = {.size = sizeof f32};
        CHECK(mha_model_get_info(model, &info) == MHA_OK &&
                  mha_model_get_info(plain, &f32) == MHA_OK,
              "info");
        CHECK((double)info.memory_bytes <= 1.1 * (double)info.file_bytes,
              "%zu bytes of memory for a file of %zu", info.memory_bytes, info.file_bytes);
        CHECK(f32.memory_bytes > 5 * info.memory_bytes, "f32 has %zu bytes", f32.memory_bytes);
    }
    mha_model_free(model);
    mha_model_free(plain);
    temp_folder_free(&folder);
}

/* Matrices stored as bf16, i8 or, where it can be, in blocks are multiplied so; others exactly,
 * with the same bits. */
static void native_arithmetic(void)
{
    static const mha_model_storage storages[] = {MHA_STORE_BF16, MHA_STORE_I8, MHA_STORE_F32,
                                                 MHA_STORE_Q8};
    static float exact[2][TOKENS * WORDS], native[2][TOKENS * WORDS];
    const temp_folder folder = temp_folder_new();
    write_mixed(&folder);
    for (int s = 0; s < 4; s++) {
        const bool is_native =
            s < 2 || (s == 3 && mha_arithmetic_explain(MHA_NATIVE, MHA_Q8_0, WIDTH)[0] == 'n');
        mha_model *plain = open_as(&folder, storages[s]), *model = NULL;
        const mha_model_config config = {
            .size = sizeof config, .storage = storages[s], .arithmetic = MHA_NATIVE};
        CHECK(mha_model_open(&model, temp_path(&folder, "m.gguf"), &config) == MHA_OK, "open");
        run(plain, exact[0], exact[1]);
        run(model, native[0], native[1]);
        double error = 0, size = 0;
        for (int n = 0; n < TOKENS * WORDS; n++) {
            error += pow((double)native[0][n] - (double)exact[0][n], 2);
            size += pow((double)exact[0][n], 2);
        }
        CHECK(is_native ? error > 0 && sqrt(error / size) < 0.05 : error == 0, "storage %d: %g",
              (int)storages[s], sqrt(error / size));
        CHECK(memcmp(native[0], native[1], sizeof native[0]) == 0, "storage %d: steps differ",
              (int)storages[s]);
        CHECK(strncmp(mha_model_arithmetic(model), is_native ? "native" : "exact", 5) == 0,
              "storage %d: %s", (int)storages[s], mha_model_arithmetic(model));
        CHECK(strncmp(mha_model_arithmetic(plain), "exact", 5) == 0, "plain: %s",
              mha_model_arithmetic(plain));
        mha_model_free(plain);
        mha_model_free(model);
    }
    temp_folder_free(&folder);
}

/* A program that was built before there was an arithmetic has a shorter struct. */
static void configurations_of_before(void)
{
    const temp_folder folder = temp_folder_new();
    mha_model *model = NULL;
    mha_model_config config = {.size = offsetof(mha_model_config, arithmetic)};
    config.arithmetic = MHA_NATIVE; /* beyond its size: must not be read */
    write_mixed(&folder);
    CHECK(mha_model_open(&model, temp_path(&folder, "m.gguf"), &config) == MHA_OK, "short");
    CHECK(model && strncmp(mha_model_arithmetic(model), "exact: ", 7) == 0, "arithmetic is read");
    mha_model_free(model);
    config.size = sizeof config;
    config.arithmetic = (mha_arithmetic)2;
    CHECK(mha_model_open(&model, temp_path(&folder, "m.gguf"), &config) == MHA_ERR_FLAG, "2");
    config.size -= 1;
    CHECK(mha_model_open(&model, temp_path(&folder, "m.gguf"), &config) == MHA_ERR_STRUCT, "size");
    CHECK(mha_model_arithmetic(NULL) == NULL, "NULL");
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(mixed_types);
    RUN(native_arithmetic);
    RUN(configurations_of_before);
    return test_end();
}
