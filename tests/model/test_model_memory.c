/* SPDX-License-Identifier: MIT */
/*
 * Memory of a model of 134 MB: opening it takes at most 1.1 times the size of its weights at any
 * moment, and generating tokens as much beside the workspace and the tokens that a state has.
 */
#include <mha/mha_model.h>

#include "support/gguf_builder.h"
#include "support/memory_use.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 512,
    INNER = 2048,
    LAYERS = 32,
    KEY_WIDTH = 128,
    WORDS = 8192,
    CAPACITY = 8192,
    PROMPT = 20,
    NEW_TOKENS = 10
};

/* Pieces "a", "b", ... and pairs of those before: enough for a table of merges. */
static void add_tokenizer(gguf_builder *g)
{
    static char pieces[WORDS][24], lines[WORDS][48];
    static const char *tokens[WORDS + 1], *merges[WORDS + 1];
    size_t merge_count = 0;
    for (int n = 0; n < WORDS; n++) {
        const int left = n / 90, right = n % 90;
        if (n < 90) {
            snprintf(pieces[n], sizeof pieces[n], "%c", '!' + n);
        } else if (left < 90) {
            snprintf(pieces[n], sizeof pieces[n], "%c%c", '!' + left, '!' + right);
            snprintf(lines[n], sizeof lines[n], "%c %c", '!' + left, '!' + right);
            merges[merge_count++] = lines[n];
        } else {
            snprintf(pieces[n], sizeof pieces[n], "<%d>", n);
        }
        tokens[n] = pieces[n];
    }
    gguf_builder_text(g, "tokenizer.ggml.model", "gpt2");
    gguf_builder_text(g, "tokenizer.ggml.pre", "gpt-2");
    gguf_builder_texts(g, "tokenizer.ggml.tokens", tokens);
    gguf_builder_texts(g, "tokenizer.ggml.merges", merges);
}

/* The matrices of a layer lie side by side, as in published files. */
static void add_layer(gguf_builder *g, int layer)
{
    static const char *const matrices[] = {"attn_q.weight 512 512",    "attn_k.weight 128 512",
                                           "attn_v.weight 128 512",    "attn_output.weight 512 512",
                                           "ffn_gate.weight 2048 512", "ffn_up.weight 2048 512",
                                           "ffn_down.weight 512 2048"};
    for (size_t n = 0; n < sizeof matrices / sizeof matrices[0]; n++) {
        char line[80];
        snprintf(line, sizeof line, "blk.%d.%s\n", layer, matrices[n]);
        gguf_builder_blocks(g, line, 1, MHA_Q8_0);
    }
}

static void write_model(const char *path)
{
    gguf_builder g = {.bytes = NULL};
    gguf_builder_text(&g, "general.architecture", "llama");
    gguf_builder_integer(&g, "llama.block_count", LAYERS);
    gguf_builder_integer(&g, "llama.embedding_length", WIDTH);
    gguf_builder_integer(&g, "llama.feed_forward_length", INNER);
    gguf_builder_integer(&g, "llama.context_length", CAPACITY);
    gguf_builder_integer(&g, "llama.attention.head_count", 8);
    gguf_builder_integer(&g, "llama.attention.head_count_kv", 2);
    gguf_builder_integer(&g, "llama.rope.dimension_count", 64);
    gguf_builder_real(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    add_tokenizer(&g);
    gguf_builder_tensors(&g,
                         "output_norm.weight 512\n"
                         "blk.#.attn_norm.weight 512\nblk.#.ffn_norm.weight 512\n",
                         LAYERS, 1.0f);
    gguf_builder_blocks(&g, "token_embd.weight 8192 512\n", 1, MHA_Q8_0);
    for (int layer = 0; layer < LAYERS; layer++)
        add_layer(&g, layer);
    gguf_builder_write(&g, path);
    gguf_builder_free(&g);
}

/* Bytes that the keys and values of so many tokens take. */
static size_t token_bytes(size_t tokens)
{
    return tokens * LAYERS * 2 * KEY_WIDTH * sizeof(float);
}

/* Generates tokens in a state that has room for many more; returns the workspace of a call. */
static size_t generate(const mha_model *model, mha_state *state)
{
    int32_t ids[PROMPT];
    for (int n = 0; n < PROMPT; n++)
        ids[n] = 90 + 7 * n;
    const int64_t starts[2] = {0, PROMPT};
    const mha_generate_config config = {
        .size = sizeof config, .most = NEW_TOKENS, .ignore_end = 1, .state = state};
    mha_generation result;
    const mha_status status = mha_model_generate(model, 1, starts, ids, &config, &result, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    if (status == MHA_OK) {
        CHECK(result.count == NEW_TOKENS, "%td tokens", result.count);
        mha_generation_free(&result);
    }
    static float logits[WORDS];
    const int64_t last = PROMPT - 1;
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .starts = starts,
                                 .ids = ids,
                                 .logits = logits,
                                 .logit_rows = &last,
                                 .logit_row_count = 1};
    return mha_model_work_size(model, &call, 1);
}

/* What the program needed more than before is at most `most`. */
static void check_peak(const char *what, size_t before, size_t most)
{
    const size_t peak = memory_peak();
    CHECK(peak <= before + most, "%s takes %.1f MB, at most %.1f are allowed", what,
          (double)(peak - before) / 1e6, (double)most / 1e6);
}

static void memory_is_that_of_the_weights(void)
{
    memory_peak_reset();
    if (!memory_now() || !memory_peak()) {
        test_skip("the system does not say how much memory is used");
        return;
    }
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "m.gguf");
    write_model(path);
    mha_model *model;
    mha_state *state;
    char message[300] = "";
    mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    memory_peak_reset();
    const size_t before = memory_now();
    if (CHECK(mha_model_open(&model, path, &config) == MHA_OK, "%s", message)) {
        mha_model_info info = {.size = sizeof info};
        const mha_state_config room = {.size = sizeof room, .capacity = CAPACITY};
        CHECK(mha_model_get_info(model, &info) == MHA_OK, "info");
        CHECK(info.file_bytes > 120000000 &&
                  mha_tokenizer_size(mha_model_tokenizer(model)) == WORDS,
              "%zu bytes of weights", info.file_bytes);
        const size_t weights = info.file_bytes + info.file_bytes / 10;
        check_peak("opening", before, weights);
        CHECK(mha_state_create(&state, model, &room) == MHA_OK, "state");
        CHECK(mha_state_bytes(state) > token_bytes(CAPACITY), "%zu", mha_state_bytes(state));
        const size_t work = generate(model, state);
        check_peak("generating", before, weights + work + token_bytes(128));
        mha_state_free(state);
        mha_model_free(model);
    }
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(memory_is_that_of_the_weights);
    return test_end();
}
