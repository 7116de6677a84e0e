/* SPDX-License-Identifier: MIT */
/* Folders and files as models: what is found beside the weights, tokenizers, sentence encoders,
 * GGUF and llama2.c files, translators, and paths that are no models. Memory that runs out anywhere
 * gives an error and leaks nothing. */
#include "format/safetensors.h"
#include "model/binding.h"
#include "support/faults.h"
#include "support/gguf_builder.h"
#include "support/model_builder.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LLAMA_CONFIG                                                                          \
    "{\"model_type\":\"llama\",\"vocab_size\":11,\"hidden_size\":8,\"num_hidden_layers\":2,"  \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":12,"           \
    "\"max_position_embeddings\":6,\"eos_token_id\":2,\"rope_scaling\":{\"type\":\"linear\"," \
    "\"factor\":2}}"
#define LLAMA                                               \
    "model.embed_tokens.weight 11 8\nmodel.norm.weight 8\n" \
    "model.layers.#.input_layernorm.weight 8\n"             \
    "model.layers.#.post_attention_layernorm.weight 8\n"    \
    "model.layers.#.self_attn.q_proj.weight 8 8\n"          \
    "model.layers.#.self_attn.k_proj.weight 4 8\n"          \
    "model.layers.#.self_attn.v_proj.weight 4 8\n"          \
    "model.layers.#.self_attn.o_proj.weight 8 8\n"          \
    "model.layers.#.mlp.gate_proj.weight 12 8\n"            \
    "model.layers.#.mlp.up_proj.weight 12 8\n"              \
    "model.layers.#.mlp.down_proj.weight 8 12\n"

static void make_text(const temp_folder *folder, const char *name, const char *text)
{
    CHECK(file_make(temp_path(folder, name), text, strlen(text)), "%s", name);
}

/* Opens a path; ends the test program's checks on it if that fails. */
static bool opens(const char *path, model_files *files)
{
    char message[500] = "";
    const mha_status status = model_files_open(files, path, message, sizeof message);
    return CHECK(status == MHA_OK, "%s: %s", path, message);
}

static void refuses(const char *path, mha_status wanted, const char *says)
{
    char message[500] = "";
    model_files files;
    const mha_status status = model_files_open(&files, path, message, sizeof message);
    CHECK(status == wanted && strstr(message, says), "%s: %s: %s", says, mha_status_string(status),
          message);
    CHECK(!files.source && !files.path && !files.tokenizer_path && !files.binding.copies,
          "left over");
    CHECK(model_files_open(&files, path, NULL, 0) == wanted, "without a message");
    if (status == MHA_OK)
        model_files_close(&files);
}

/* ---------------------------------------------------------------- folders ----- */

static void a_folder(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    model_builder_folder(&folder, LLAMA_CONFIG, LLAMA, 2);
    if (opens(folder.path, &files)) {
        CHECK(!files.tokenizer_path && files.description.usage.ends[0] == 2, "llama");
        CHECK(files.description.usage.length_penalty == 1.0, "the penalty is not said");
        model_files_close(&files);
    }
    make_text(&folder, "tokenizer.json", "{}");
    make_text(&folder, "generation_config.json",
              "{\"eos_token_id\":[7,8],\"bos_token_id\":5,\"pad_token_id\":null,"
              "\"length_penalty\":1.5}");
    if (opens(folder.path, &files)) {
        const model_usage *const usage = &files.description.usage;
        CHECK(files.tokenizer_path && strcmp(files.tokenizer_path, folder.path) == 0, "tokenizer");
        CHECK(usage->end_count == 2 && usage->ends[1] == 8 && usage->begin == 5, "generation");
        CHECK(usage->length_penalty == 1.5, "a penalty of %g", usage->length_penalty);
        model_files_close(&files);
    }
    if (opens(temp_path(&folder, "model.safetensors"), &files)) {
        CHECK(files.tokenizer_path && strcmp(files.tokenizer_path, folder.path) == 0,
              "by the file");
        model_files_close(&files);
    }
    make_text(&folder, "generation_config.json", "{\"eos_token_id\":[11,3,4000]}");
    if (opens(folder.path, &files)) {
        CHECK(files.description.usage.end_count == 1 && files.description.usage.ends[0] == 3,
              "ends that the vocabulary does not have");
        model_files_close(&files);
    }
    make_text(&folder, "generation_config.json", "{");
    refuses(folder.path, MHA_ERR_FORMAT, "generation_config.json");
    static const char *const penalties[] = {"11", "-10.5", "\"1\"", "true"};
    for (size_t n = 0; n < sizeof penalties / sizeof penalties[0]; n++) {
        char text[64];
        snprintf(text, sizeof text, "{\"length_penalty\":%s}", penalties[n]);
        make_text(&folder, "generation_config.json", text);
        refuses(folder.path, MHA_ERR_FORMAT, "length_penalty");
    }
    temp_folder_free(&folder);
}

#define PIXELS_CONFIG                                                                     \
    "{\"model_type\":\"vit\",\"hidden_size\":8,\"num_hidden_layers\":1,\"image_size\":8," \
    "\"num_attention_heads\":2,\"intermediate_size\":12,\"patch_size\":4,\"num_channels\":3}"
#define PIXELS_MODEL                                                                               \
    "embeddings.cls_token 1 1 8\nembeddings.position_embeddings 1 5 8\n"                           \
    "embeddings.patch_embeddings.projection.weight 8 3 4 4\n"                                      \
    "embeddings.patch_embeddings.projection.bias 8\nlayernorm.weight 8\nlayernorm.bias 8\n"        \
    "encoder.layer.#.layernorm_before.weight 8\nencoder.layer.#.layernorm_before.bias 8\n"         \
    "encoder.layer.#.layernorm_after.weight 8\nencoder.layer.#.layernorm_after.bias 8\n"           \
    "encoder.layer.#.attention.attention.query.weight 8 8\n"                                       \
    "encoder.layer.#.attention.attention.query.bias 8\n"                                           \
    "encoder.layer.#.attention.attention.key.weight 8 8\n"                                         \
    "encoder.layer.#.attention.attention.key.bias 8\n"                                             \
    "encoder.layer.#.attention.attention.value.weight 8 8\n"                                       \
    "encoder.layer.#.attention.attention.value.bias 8\n"                                           \
    "encoder.layer.#.attention.output.dense.weight 8 8\n"                                          \
    "encoder.layer.#.attention.output.dense.bias 8\n"                                              \
    "encoder.layer.#.intermediate.dense.weight 12 8\nencoder.layer.#.intermediate.dense.bias 12\n" \
    "encoder.layer.#.output.dense.weight 8 12\nencoder.layer.#.output.dense.bias 8\n"

/* How pixels are scaled, as the files say or as most models have it. */
static void pixels_have(const temp_folder *folder, const char *text, float mean, float deviation)
{
    model_files files;
    if (text)
        make_text(folder, "preprocessor_config.json", text);
    if (!opens(folder->path, &files))
        return;
    const model_usage *const usage = &files.description.usage;
    CHECK(usage->image_mean[2] == mean && usage->image_deviation[2] == deviation,
          "%s: mean %g, deviation %g", text ? text : "no file", (double)usage->image_mean[2],
          (double)usage->image_deviation[2]);
    model_files_close(&files);
}

static void scales_of_pixels(void)
{
    const temp_folder folder = temp_folder_new();
    static const char *const wrong[] = {"{\"image_mean\":[0,0],\"image_std\":[1,1]}",
                                        "{\"image_mean\":[0,0,0]}",
                                        "{\"image_mean\":[0,0,0],\"image_std\":[1,1,0]}",
                                        "{\"image_mean\":[0,0,\"0\"],\"image_std\":[1,1,1]}"};
    model_builder_folder(&folder, PIXELS_CONFIG, PIXELS_MODEL, 1);
    pixels_have(&folder, NULL, 0.5f, 0.5f);
    pixels_have(&folder, "{}", 0.5f, 0.5f);
    pixels_have(&folder, "{\"image_mean\":[0,0,0.25],\"image_std\":[1,1,0.125]}", 0.25f, 0.125f);
    pixels_have(&folder, "{\"do_normalize\":false,\"image_mean\":[0,0,0.25]}", 0.0f, 1.0f);
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        make_text(&folder, "preprocessor_config.json", wrong[n]);
        refuses(folder.path, MHA_ERR_FORMAT, "image_mean");
    }
    temp_folder_free(&folder);
}

static void sentence_encoders(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    char path[200];
    model_builder_folder(&folder, LLAMA_CONFIG, LLAMA, 2);
    make_text(&folder, "modules.json",
              "[{\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
              "{\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"},"
              "{\"path\":\"2_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}]");
    make_text(&folder, "sentence_bert_config.json", "{\"max_seq_length\":5}");
    snprintf(path, sizeof path, "%s/1_Pooling", folder.path);
    CHECK(mkdir(path, 0777) == 0, "mkdir");
    make_text(&folder, "1_Pooling/config.json",
              "{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":false}");
    if (opens(folder.path, &files)) {
        const model_usage *const usage = &files.description.usage;
        CHECK(usage->pooling == MHA_POOLING_FIRST && usage->normalize && usage->longest == 5,
              "usage");
        model_files_close(&files);
    }
    make_text(&folder, "1_Pooling/config.json", "{\"pooling_mode\":\"lasttoken\"}");
    if (opens(folder.path, &files)) {
        CHECK(files.description.usage.pooling == MHA_POOLING_LAST, "by its name");
        model_files_close(&files);
    }
    make_text(&folder, "1_Pooling/config.json",
              "{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":true}");
    refuses(folder.path, MHA_ERR_FORMAT, "found 2");
    make_text(&folder, "modules.json",
              "[{\"path\":\"2_Dense\",\"type\":\"sentence_transformers.models.Dense\"}]");
    refuses(folder.path, MHA_ERR_FORMAT, "Dense");
    make_text(&folder, "modules.json",
              "[{\"path\":\"../..\",\"type\":\"sentence_transformers.models.Pooling\"}]");
    refuses(folder.path, MHA_ERR_FORMAT, "module 0");
    temp_folder_free(&folder);
}

static void two_tokenizers(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    model_builder_folder(&folder, LLAMA_CONFIG, LLAMA, 2);
    make_text(&folder, "source.spm", "x");
    make_text(&folder, "target.spm", "x");
    make_text(&folder, "vocab.json", "{}");
    if (opens(folder.path, &files)) {
        CHECK(files.tokenizer_path && strstr(files.tokenizer_path, "/source.spm") &&
                  files.target_tokenizer_path && strstr(files.target_tokenizer_path, "/target.spm"),
              "paths");
        model_files_close(&files);
    }
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------------- files ----- */

static void only_weights(void)
{
    const temp_folder folder = temp_folder_new();
    model_builder_tensors(temp_path(&folder, "m.safetensors"), LLAMA, 2);
    refuses(temp_path(&folder, "m.safetensors"), MHA_ERR_FORMAT, "no config.json beside");
    temp_folder_free(&folder);
}

static void write_gguf(const temp_folder *folder, bool tokenizer)
{
    gguf_builder g = {.bytes = NULL};
    gguf_builder_text(&g, "general.architecture", "llama");
    gguf_builder_integer(&g, "llama.block_count", 2);
    gguf_builder_integer(&g, "llama.embedding_length", 8);
    gguf_builder_integer(&g, "llama.feed_forward_length", 12);
    gguf_builder_integer(&g, "llama.context_length", 6);
    gguf_builder_integer(&g, "llama.attention.head_count", 4);
    gguf_builder_integer(&g, "llama.attention.head_count_kv", 2);
    gguf_builder_integer(&g, "llama.rope.dimension_count", 2);
    gguf_builder_real(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (tokenizer)
        gguf_builder_text(&g, "tokenizer.ggml.model", "gpt2");
    gguf_builder_tensors(&g,
                         "token_embd.weight 11 8\noutput_norm.weight 8\n"
                         "blk.#.attn_norm.weight 8\nblk.#.ffn_norm.weight 8\n"
                         "blk.#.attn_q.weight 8 8\nblk.#.attn_k.weight 4 8\n"
                         "blk.#.attn_v.weight 4 8\nblk.#.attn_output.weight 8 8\n"
                         "blk.#.ffn_gate.weight 12 8\nblk.#.ffn_up.weight 12 8\n"
                         "blk.#.ffn_down.weight 8 12\nrope_freqs.weight 1\n",
                         2, 1.0f);
    gguf_builder_write(&g, temp_path(folder, "m.gguf"));
    gguf_builder_free(&g);
}

static void a_gguf_file(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    write_gguf(&folder, false);
    if (opens(temp_path(&folder, "m.gguf"), &files)) {
        const model_binding *const b = &files.binding;
        CHECK(!files.tokenizer_path && files.description.tied &&
                  b->output.weight.data == b->stack[STACK_DECODER].tokens.data &&
                  files.description.stack[STACK_DECODER].attention.rope_frequencies,
              "tied");
        model_files_close(&files);
    }
    write_gguf(&folder, true);
    if (opens(temp_path(&folder, "m.gguf"), &files)) {
        CHECK(files.tokenizer_path && strstr(files.tokenizer_path, "m.gguf"), "tokenizer");
        model_files_close(&files);
    }
    temp_folder_free(&folder);
}

/* width 8, inner 12, 1 layer, 2 heads, 1 key/value head, 5 words, 4 positions */
static void write_llama2c(const temp_folder *folder)
{
    static const int32_t numbers[7] = {8, 12, 1, 2, 1, 5, 4};
    enum {
        FLOATS = 5 * 8 + 8 + 8 * 8 + 2 * 4 * 8 + 8 * 8 + 8 + 3 * 12 * 8 + 8 + 2 * 4 * 2,
        BYTES = 28 + 4 * FLOATS
    };
    static unsigned char bytes[BYTES];
    memcpy(bytes, numbers, sizeof numbers);
    CHECK(file_make(temp_path(folder, "m.bin"), bytes, BYTES), "write");
}

static void a_llama2c_file(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    write_llama2c(&folder);
    if (opens(temp_path(&folder, "m.bin"), &files)) {
        const model_description *const d = &files.description;
        const attention_description *const a = &d->stack[STACK_DECODER].attention;
        CHECK(strcmp(d->family, "llama") == 0 && d->tied && d->vocabulary == 5 && a->heads == 2 &&
                  a->key_heads == 1 && a->head_width == 4 && a->rope_pairs == MHA_ROPE_NEIGHBOURS,
              "description");
        CHECK(!files.tokenizer_path, "no tokenizer");
        model_files_close(&files);
    }
    make_text(&folder, "tokenizer.bin", "x");
    if (opens(temp_path(&folder, "m.bin"), &files)) {
        CHECK(files.tokenizer_path && strstr(files.tokenizer_path, "/tokenizer.bin"), "tokenizer");
        model_files_close(&files);
    }
    make_text(&folder, "tok5.bin", "x");
    if (opens(temp_path(&folder, "m.bin"), &files)) {
        CHECK(files.tokenizer_path && strstr(files.tokenizer_path, "/tok5.bin"), "by its size");
        model_files_close(&files);
    }
    temp_folder_free(&folder);
}

static void the_shipped_translator(void)
{
    model_files files;
    if (opens(MHA_MODEL_FILE, &files)) {
        const model_description *const d = &files.description;
        CHECK(strcmp(d->family, "translator") == 0 && d->tied && d->norm_first &&
                  d->usage.decoder_start == 0 && d->usage.ends[0] == 1 && d->usage.source_end &&
                  d->stack[STACK_ENCODER].embedding.position == POSITION_SINES_NEIGHBOURS &&
                  d->source_vocabulary != d->vocabulary,
              "description");
        CHECK(files.binding.stack[STACK_DECODER].layers[0].cross.q.weight.data != NULL, "cross");
        model_files_close(&files);
    }
}

/* Not a model at all. */
static void other_paths(void)
{
    const temp_folder folder = temp_folder_new();
    refuses(temp_path(&folder, "nothing"), MHA_ERR_FILE, "cannot be opened");
    refuses(folder.path, MHA_ERR_FORMAT, "no config.json");
    make_text(&folder, "config.json", "{\"model_type\":\"mamba\"}");
    refuses(folder.path, MHA_ERR_FORMAT, "\"mamba\", expected one of");
    make_text(&folder, "config.json", LLAMA_CONFIG);
    refuses(folder.path, MHA_ERR_FILE, "model.safetensors");
    make_text(&folder, "notes.txt", "hello, this is a text");
    refuses(temp_path(&folder, "notes.txt"), MHA_ERR_FORMAT, "notes.txt");
    static char long_path[6000];
    memset(long_path, 'a', sizeof long_path - 1);
    refuses(long_path, MHA_ERR_FILE, "aaaa");
    temp_folder_free(&folder);
}

/* ---------------------------------------------------------------- memory ----- */

/* Opens a path with request n failing. Returns whether it made that many. */
static bool meet_failure(const char *path, int n, bool for_ever)
{
    char message[500] = "";
    model_files files;
    faults_arm(MEMORY, n, for_ever);
    const mha_status status = model_files_open(&files, path, message, sizeof message);
    if (status == MHA_OK)
        model_files_close(&files);
    faults_disarm();
    const bool met = faults_requests(MEMORY) >= n;
    CHECK(status == (met ? MHA_ERR_MEMORY : MHA_OK), "%s, request %d: %s %s", path, n,
          mha_status_string(status), message);
    CHECK(faults_left(MEMORY) == 0, "%s, request %d: %d blocks left", path, n, faults_left(MEMORY));
    return met;
}

static void memory_runs_out(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const names[] = {"", "m.gguf", "m.bin"};
    model_builder_folder(&folder, LLAMA_CONFIG, LLAMA, 2);
    make_text(&folder, "tokenizer.json", "{}");
    write_gguf(&folder, true);
    write_llama2c(&folder);
    make_text(&folder, "tokenizer.bin", "x");
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            const char *const path = names[k][0] ? temp_path(&folder, names[k]) : folder.path;
            int n = 1;
            while (n < 1000 && meet_failure(path, n, for_ever))
                n++;
            CHECK(n > 3 && n < 1000, "%s: %d requests", path, n);
        }
    for (int n = 1; n < 1000 && meet_failure(MHA_MODEL_FILE, n, false); n++)
        ;
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(a_folder);
    RUN(scales_of_pixels);
    RUN(sentence_encoders);
    RUN(two_tokenizers);
    RUN(only_weights);
    RUN(a_gguf_file);
    RUN(a_llama2c_file);
    RUN(the_shipped_translator);
    RUN(other_paths);
    RUN(memory_runs_out);
    return test_end();
}
