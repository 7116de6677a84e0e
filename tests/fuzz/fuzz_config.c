/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a config.json. Whatever they are, the description ends with a status and a message, and
 * one that is accepted keeps the limits that the rest of the program relies on.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_config.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_config.c test.c        a test with pseudo-random texts
 */
#include "model/describe.h"
#include "model/families.h"
#include "support/fuzz.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 4096 };

static void check_stack(const model_description *d, const stack_description *stack)
{
    const attention_description *const a = &stack->attention;
    if (stack->layers > MODEL_LAYERS_MAX || stack->inner < 1 || stack->inner > MODEL_WIDTH_MAX)
        fuzz_die("layers or inner");
    if (a->heads < 1 || a->key_heads < 1 || a->heads % a->key_heads != 0 || a->head_width < 1 ||
        a->head_width > MHA_MAX_HEAD_WIDTH || (int64_t)a->heads * a->head_width > MODEL_WIDTH_MAX)
        fuzz_die("heads");
    if (a->window < 0 || a->window_every < 0 || a->window_from < 0)
        fuzz_die("window");
    if (stack->embedding.width < 1 || stack->embedding.sine_steps < 0 ||
        stack->embedding.position_offset < 0)
        fuzz_die("embedding");
    if (stack->embedding.position == POSITION_LEARNED && d->positions < 1)
        fuzz_die("positions");
    if (stack->embedding.position == POSITION_ROTARY && (a->rope_base < 1 || a->head_width % 2))
        fuzz_die("rotary positions");
}

static void check_description(const model_description *d)
{
    int stacks = 0;
    if (d->width < 1 || d->width > MODEL_WIDTH_MAX || !(d->norm_eps > 0))
        fuzz_die("width or eps");
    for (int s = 0; s < STACKS; s++) {
        if (d->stack[s].layers > 0)
            check_stack(d, &d->stack[s]);
        stacks += d->stack[s].layers > 0;
    }
    if (stacks < 1 || d->usage.end_count > MODEL_ENDS_MAX ||
        d->usage.forbidden_count > MODEL_ENDS_MAX)
        fuzz_die("stacks or marks");
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    char message[300] = "";
    json_tree *tree;
    model_description d;
    const model_family *family;
    size = size < TEXT_MAX ? size : TEXT_MAX;
    if (json_tree_parse(&tree, "fuzz", (const char *)bytes, size, message, sizeof message))
        return false;
    const config_reader r = {.object = json_tree_root(tree),
                             .path = "fuzz",
                             .message = message,
                             .message_size = sizeof message};
    const mha_status status = describe_config(&d, &family, &r);
    if ((status == MHA_OK) != (message[0] == '\0'))
        fuzz_die("status and message disagree");
    if (status == MHA_OK)
        check_description(&d);
    description_free(&d);
    json_tree_free(tree);
    return status == MHA_OK;
}

/* A family, and up to seven keys with values that are usual, odd or of another type. */
static size_t random_text(test_random *random, char *text, size_t room)
{
    static const char *const keys[] = {"hidden_size",
                                       "num_hidden_layers",
                                       "num_attention_heads",
                                       "num_key_value_heads",
                                       "head_dim",
                                       "intermediate_size",
                                       "vocab_size",
                                       "max_position_embeddings",
                                       "hidden_act",
                                       "layer_norm_eps",
                                       "rope_theta",
                                       "rope_scaling",
                                       "rope_parameters",
                                       "sliding_window",
                                       "layer_types",
                                       "sliding_window_pattern",
                                       "use_sliding_window",
                                       "max_window_layers",
                                       "d_model",
                                       "d_kv",
                                       "num_layers",
                                       "num_decoder_layers",
                                       "num_heads",
                                       "feed_forward_proj",
                                       "relative_attention_num_buckets",
                                       "relative_attention_max_distance",
                                       "encoder_layers",
                                       "decoder_layers",
                                       "image_size",
                                       "patch_size",
                                       "num_channels",
                                       "pad_token_id",
                                       "eos_token_id",
                                       "bad_words_ids",
                                       "embedding_size",
                                       "n_embd",
                                       "n_inner",
                                       "dim",
                                       "query_pre_attn_scalar",
                                       "position_offset",
                                       "position_embedding",
                                       "architectures",
                                       "decoder_start_token_id",
                                       "encoder_attention_heads",
                                       "torch_dtype",
                                       "sine_steps"};
    static const char *const values[] = {"1",
                                         "2",
                                         "4",
                                         "8",
                                         "16",
                                         "64",
                                         "0",
                                         "-1",
                                         "1e9",
                                         "1e308",
                                         "0.5",
                                         "4096",
                                         "1048576",
                                         "2147483647",
                                         "9007199254740993",
                                         "null",
                                         "true",
                                         "false",
                                         "\"gelu\"",
                                         "\"sines\"",
                                         "[]",
                                         "{}",
                                         "[1,1]",
                                         "[[3]]",
                                         "[\"full_attention\",\"sliding_attention\"]",
                                         "{\"rope_type\":\"llama3\",\"factor\":8}",
                                         "{\"type\":\"linear\",\"factor\":2}",
                                         "{\"full_attention\":{\"rope_theta\":10}}",
                                         "\"bfloat16\"",
                                         "\"gated-gelu\"",
                                         "1e-5",
                                         "[\"T5EncoderModel\"]"};
    enum {
        KEYS = sizeof keys / sizeof keys[0],
        VALUES = sizeof values / sizeof values[0],
        FAMILIES = 23
    };
    const char *const family = mha_model_family_at((int)test_random_below(random, FAMILIES));
    const int64_t count = test_random_below(random, 8);
    const int64_t first = test_random_below(random, KEYS);
    size_t used = (size_t)snprintf(text, room, "{\"model_type\":\"%s\"", family);
    for (int64_t n = 0; n < count; n++) /* steps that never meet a key twice */
        used +=
            (size_t)snprintf(text + used, room - used, ",\"%s\":%s", keys[(first + 5 * n) % KEYS],
                             values[test_random_below(random, VALUES)]);
    used += (size_t)snprintf(text + used, room - used, "}");
    if (test_random_below(random, 16) == 0)
        text[test_random_below(random, (int64_t)used)] = (char)test_random_u64(random);
    return used;
}

static void pseudo_random_texts(void)
{
    char text[1024];
    test_random random = {test_seed(78)};
    const int64_t rounds = test_effort(100000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++)
        valid += fuzz_one((const uint8_t *)text, random_text(&random, text, sizeof text));
    CHECK(rounds < 1000 || valid > rounds / 50, "only %lld of %lld were accepted", (long long)valid,
          (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_texts)
