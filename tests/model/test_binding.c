/* SPDX-License-Identifier: MIT */
/*
 * Names of tensors to places: every family with the names of its published files, parts of fused
 * matrices, tied outputs, tensors that are missing, have other extents or another type, and data
 * that are not aligned. Element n of every tensor is n, so a view shows where it begins.
 */
#include "format/safetensors.h"
#include "model/binding.h"
#include "support/model_builder.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mha_status open_built(const temp_folder *folder, model_files *files, char message[500])
{
    message[0] = '\0';
    return model_files_open(files, folder->path, message, 500);
}

static float at(const bound_matrix *m, ptrdiff_t output, ptrdiff_t input)
{
    return ((const float *)m->data)[output * m->out_stride + input * m->in_stride];
}

/* ---------------------------------------------------------------- families ----- */

#define BERT_CONFIG                                                                         \
    "{\"model_type\":\"bert\",\"vocab_size\":11,\"hidden_size\":8,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":2,\"intermediate_size\":12,\"max_position_embeddings\":6}"

#define BERT_LAYER(prefix, norm_weight, norm_bias)                                             \
    prefix "embeddings.word_embeddings.weight 11 8\n" prefix                                   \
           "embeddings.position_embeddings.weight 6 8\n" prefix                                \
           "embeddings.token_type_embeddings.weight 2 8\n" prefix                              \
           "embeddings.LayerNorm." norm_weight " 8\n" prefix "embeddings.LayerNorm." norm_bias \
           " 8\n" prefix "encoder.layer.#.attention.self.query.weight 8 8\n" prefix            \
           "encoder.layer.#.attention.self.query.bias 8\n" prefix                              \
           "encoder.layer.#.attention.self.key.weight 8 8\n" prefix                            \
           "encoder.layer.#.attention.self.key.bias 8\n" prefix                                \
           "encoder.layer.#.attention.self.value.weight 8 8\n" prefix                          \
           "encoder.layer.#.attention.self.value.bias 8\n" prefix                              \
           "encoder.layer.#.attention.output.dense.weight 8 8\n" prefix                        \
           "encoder.layer.#.attention.output.dense.bias 8\n" prefix                            \
           "encoder.layer.#.attention.output.LayerNorm." norm_weight " 8\n" prefix             \
           "encoder.layer.#.attention.output.LayerNorm." norm_bias " 8\n" prefix               \
           "encoder.layer.#.intermediate.dense.weight 12 8\n" prefix                           \
           "encoder.layer.#.intermediate.dense.bias 12\n" prefix                               \
           "encoder.layer.#.output.dense.weight 8 12\n" prefix                                 \
           "encoder.layer.#.output.dense.bias 8\n" prefix                                      \
           "encoder.layer.#.output.LayerNorm." norm_weight " 8\n" prefix                       \
           "encoder.layer.#.output.LayerNorm." norm_bias " 8\n"

#define BERT_HEADS                                  \
    "cls.predictions.transform.dense.weight 8 8\n"  \
    "cls.predictions.transform.dense.bias 8\n"      \
    "cls.predictions.transform.LayerNorm.gamma 8\n" \
    "cls.predictions.transform.LayerNorm.beta 8\n"  \
    "cls.predictions.bias 11\n"                     \
    "cls.predictions.decoder.weight 11 8\n"         \
    "bert.pooler.dense.weight 8 8\n"                \
    "bert.pooler.dense.bias 8\n"

#define GPT2_CONFIG                                                                       \
    "{\"model_type\":\"gpt2\",\"vocab_size\":11,\"n_embd\":8,\"n_layer\":2,\"n_head\":2," \
    "\"n_positions\":6}"
#define GPT2(prefix)                                                                         \
    prefix "wte.weight 11 8\n" prefix "wpe.weight 6 8\n" prefix "h.#.ln_1.weight 8\n" prefix \
           "h.#.ln_1.bias 8\n" prefix "h.#.attn.bias 1 1 6 6\n" prefix                       \
           "h.#.attn.c_attn.weight 8 24\n" prefix "h.#.attn.c_attn.bias 24\n" prefix         \
           "h.#.attn.c_proj.weight 8 8\n" prefix "h.#.attn.c_proj.bias 8\n" prefix           \
           "h.#.ln_2.weight 8\n" prefix "h.#.ln_2.bias 8\n" prefix                           \
           "h.#.mlp.c_fc.weight 8 32\n" prefix "h.#.mlp.c_fc.bias 32\n" prefix               \
           "h.#.mlp.c_proj.weight 32 8\n" prefix "h.#.mlp.c_proj.bias 8\n" prefix            \
           "ln_f.weight 8\n" prefix "ln_f.bias 8\n"

#define LLAMA_CONFIG(type, more)                                                                \
    "{\"model_type\":\"" type "\",\"vocab_size\":11,\"hidden_size\":8,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":12,"             \
    "\"head_dim\":4," more "\"max_position_embeddings\":6}"
#define LLAMA                                                                                   \
    "model.embed_tokens.weight 11 8\nmodel.norm.weight 8\n"                                     \
    "model.layers.#.input_layernorm.weight 8\n"                                                 \
    "model.layers.#.post_attention_layernorm.weight 8\n"                                        \
    "model.layers.#.self_attn.q_proj.weight 16 8\nmodel.layers.#.self_attn.k_proj.weight 8 8\n" \
    "model.layers.#.self_attn.v_proj.weight 8 8\nmodel.layers.#.self_attn.o_proj.weight 8 16\n" \
    "model.layers.#.mlp.gate_proj.weight 12 8\nmodel.layers.#.mlp.up_proj.weight 12 8\n"        \
    "model.layers.#.mlp.down_proj.weight 8 12\n"
#define QK_NORMS \
    "model.layers.#.self_attn.q_norm.weight 4\nmodel.layers.#.self_attn.k_norm.weight 4\n"

#define VIT_CONFIG                                                                        \
    "{\"model_type\":\"vit\",\"hidden_size\":8,\"num_hidden_layers\":2,\"image_size\":8," \
    "\"num_attention_heads\":2,\"intermediate_size\":12,\"patch_size\":4,\"num_channels\":3}"
#define VIT(layer, q, k, v, o, up, down)                                             \
    "vit.embeddings.cls_token 1 1 8\nvit.embeddings.position_embeddings 1 5 8\n"     \
    "vit.embeddings.patch_embeddings.projection.weight 8 3 4 4\n"                    \
    "vit.embeddings.patch_embeddings.projection.bias 8\n"                            \
    "vit.layernorm.weight 8\nvit.layernorm.bias 8\n"                                 \
    "vit." layer "layernorm_before.weight 8\nvit." layer "layernorm_before.bias 8\n" \
    "vit." layer "layernorm_after.weight 8\nvit." layer "layernorm_after.bias 8\n"   \
    "vit." layer q ".weight 8 8\nvit." layer q ".bias 8\n"                           \
    "vit." layer k ".weight 8 8\nvit." layer k ".bias 8\n"                           \
    "vit." layer v ".weight 8 8\nvit." layer v ".bias 8\n"                           \
    "vit." layer o ".weight 8 8\nvit." layer o ".bias 8\n"                           \
    "vit." layer up ".weight 12 8\nvit." layer up ".bias 12\n"                       \
    "vit." layer down ".weight 8 12\nvit." layer down ".bias 8\n"                    \
    "classifier.weight 3 8\nclassifier.bias 3\n"

#define T5_CONFIG                                                                    \
    "{\"model_type\":\"t5\",\"vocab_size\":11,\"d_model\":8,\"d_kv\":3,\"d_ff\":12," \
    "\"num_layers\":2,\"num_heads\":2,\"feed_forward_proj\":\"gated-gelu\"}"
#define T5_STACK(stack, ff)                                                            \
    stack ".final_layer_norm.weight 8\n" stack                                         \
          ".block.0.layer.0.SelfAttention.relative_attention_bias.weight 32 2\n" stack \
          ".block.#.layer.0.layer_norm.weight 8\n" stack                               \
          ".block.#.layer.0.SelfAttention.q.weight 6 8\n" stack                        \
          ".block.#.layer.0.SelfAttention.k.weight 6 8\n" stack                        \
          ".block.#.layer.0.SelfAttention.v.weight 6 8\n" stack                        \
          ".block.#.layer.0.SelfAttention.o.weight 8 6\n" stack ".block.#.layer." ff   \
          ".layer_norm.weight 8\n" stack ".block.#.layer." ff                          \
          ".DenseReluDense.wi_0.weight 12 8\n" stack ".block.#.layer." ff              \
          ".DenseReluDense.wi_1.weight 12 8\n" stack ".block.#.layer." ff              \
          ".DenseReluDense.wo.weight 8 12\n"
#define T5                                                                                \
    "shared.weight 11 8\n" T5_STACK("encoder", "1")                                       \
        T5_STACK("decoder", "2") "decoder.block.#.layer.1.layer_norm.weight 8\n"          \
                                 "decoder.block.#.layer.1.EncDecAttention.q.weight 6 8\n" \
                                 "decoder.block.#.layer.1.EncDecAttention.k.weight 6 8\n" \
                                 "decoder.block.#.layer.1.EncDecAttention.v.weight 6 8\n" \
                                 "decoder.block.#.layer.1.EncDecAttention.o.weight 8 6\n"

#define PAIR_CONFIG(type, more)                                                             \
    "{\"model_type\":\"" type "\",\"d_model\":8,\"encoder_layers\":2,\"decoder_layers\":2," \
    "\"encoder_attention_heads\":2,\"decoder_attention_heads\":2,\"encoder_ffn_dim\":12,"   \
    "\"decoder_ffn_dim\":12,\"vocab_size\":11,\"max_position_embeddings\":6,"               \
    "\"decoder_start_token_id\":2,\"eos_token_id\":1," more "\"pad_token_id\":0}"
#define LINEAR8(name) name ".weight 8 8\n" name ".bias 8\n"
#define NORM8(name) name ".weight 8\n" name ".bias 8\n"
#define PAIR_LAYER(layer)               \
    LINEAR8(layer "self_attn.q_proj")   \
    LINEAR8(layer "self_attn.k_proj")   \
    LINEAR8(layer "self_attn.v_proj")   \
    LINEAR8(layer "self_attn.out_proj") \
    NORM8(layer "self_attn_layer_norm") \
    NORM8(layer "final_layer_norm")     \
    layer "fc1.weight 12 8\n" layer "fc1.bias 12\n" layer "fc2.weight 8 12\n" layer "fc2.bias 8\n"
#define PAIR(prefix)                                         \
    PAIR_LAYER(prefix "encoder.layers.#.")                   \
    PAIR_LAYER(prefix "decoder.layers.#.")                   \
    LINEAR8(prefix "decoder.layers.#.encoder_attn.q_proj")   \
    LINEAR8(prefix "decoder.layers.#.encoder_attn.k_proj")   \
    LINEAR8(prefix "decoder.layers.#.encoder_attn.v_proj")   \
    LINEAR8(prefix "decoder.layers.#.encoder_attn.out_proj") \
    NORM8(prefix "decoder.layers.#.encoder_attn_layer_norm")
#define BART                                                                    \
    "model.shared.weight 11 8\nmodel.encoder.embed_positions.weight 8 8\n"      \
    "model.decoder.embed_positions.weight 8 8\nfinal_logits_bias 1 11\n" NORM8( \
        "model.encoder.layernorm_embedding") NORM8("model.decoder.layernorm_embedding")

#define OPENNMT_LINEAR(name, rows, columns) \
    name "/weight " #rows " " #columns "\n" name "/bias " #rows "\n"
#define OPENNMT_NORM(name) name "/gamma 8\n" name "/beta 8\n"
#define OPENNMT_STACK(stack)                                        \
    OPENNMT_NORM(stack "/layer_norm")                               \
    OPENNMT_NORM(stack "/layer_#/self_attention/layer_norm")        \
    OPENNMT_NORM(stack "/layer_#/ffn/layer_norm")                   \
    OPENNMT_LINEAR(stack "/layer_#/self_attention/linear_0", 24, 8) \
    OPENNMT_LINEAR(stack "/layer_#/self_attention/linear_1", 8, 8)  \
    OPENNMT_LINEAR(stack "/layer_#/ffn/linear_0", 12, 8)            \
    OPENNMT_LINEAR(stack "/layer_#/ffn/linear_1", 8, 12)
#define OPENNMT                                                                                 \
    "encoder/embeddings/weight 11 8\ndecoder/embeddings/weight 11 8\n" OPENNMT_STACK("encoder") \
        OPENNMT_STACK("decoder") OPENNMT_NORM("decoder/layer_#/attention/layer_norm")           \
            OPENNMT_LINEAR("decoder/layer_#/attention/linear_0", 8, 8)                          \
                OPENNMT_LINEAR("decoder/layer_#/attention/linear_1", 16, 8)                     \
                    OPENNMT_LINEAR("decoder/layer_#/attention/linear_2", 8, 8)                  \
                        OPENNMT_LINEAR("decoder/projection", 11, 8)

/* Models with all their tensors. `parameters` are counted by hand from the lists. */
static const struct built_model {
    const char *name, *config, *tensors;
    bool output, tied;
    int labels;
    int64_t parameters;
} models[] = {
    {"bert", BERT_CONFIG, BERT_LAYER("", "weight", "bias"), false, false, 0,
     19 * 8 + 16 + 2 * (4 * 72 + 32 + 108 + 104)},
    {"bert of its first files", BERT_CONFIG, BERT_LAYER("bert.", "gamma", "beta") BERT_HEADS, true,
     true, 0, 19 * 8 + 16 + 2 * (4 * 72 + 32 + 108 + 104) + 72 + 16 + 11 + 72},
    {"gpt2", GPT2_CONFIG, GPT2(""), true, true, 0,
     17 * 8 + 16 + 2 * (32 + 216 + 72 + 8 * 32 + 32 + 32 * 8 + 8)},
    {"gpt2 with a prefix", GPT2_CONFIG, GPT2("transformer."), true, true, 0,
     17 * 8 + 16 + 2 * (32 + 216 + 72 + 8 * 32 + 32 + 32 * 8 + 8)},
    {"llama without output", LLAMA_CONFIG("llama", ""), LLAMA, false, false, 0,
     88 + 8 + 2 * (16 + 128 + 64 + 64 + 128 + 3 * 96)},
    {"llama", LLAMA_CONFIG("llama", ""), LLAMA "lm_head.weight 11 8\n", true, false, 0,
     88 + 8 + 2 * (16 + 128 + 64 + 64 + 128 + 3 * 96) + 88},
    {"llama, tied", LLAMA_CONFIG("llama", "\"tie_word_embeddings\":true,"),
     LLAMA "lm_head.weight 11 8\n", true, true, 0,
     88 + 8 + 2 * (16 + 128 + 64 + 64 + 128 + 3 * 96)},
    {"qwen3", LLAMA_CONFIG("qwen3", ""), LLAMA QK_NORMS "lm_head.weight 11 8\n", true, false, 0,
     88 + 8 + 2 * (16 + 128 + 64 + 64 + 128 + 3 * 96 + 8) + 88},
    {"vit", VIT_CONFIG,
     VIT("encoder.layer.#.", "attention.attention.query", "attention.attention.key",
         "attention.attention.value", "attention.output.dense", "intermediate.dense",
         "output.dense"),
     false, false, 3, 8 + 40 + 384 + 8 + 16 + 2 * (32 + 4 * 72 + 108 + 104) + 27},
    {"vit of transformers 5", VIT_CONFIG,
     VIT("layers.#.", "attention.q_proj", "attention.k_proj", "attention.v_proj",
         "attention.o_proj", "mlp.fc1", "mlp.fc2"),
     false, false, 3, 8 + 40 + 384 + 8 + 16 + 2 * (32 + 4 * 72 + 108 + 104) + 27},
    {"t5", T5_CONFIG, T5, true, true, 0,
     88 + 2 * (8 + 64 + 2 * (16 + 4 * 48 + 3 * 96)) + 2 * (8 + 4 * 48)},
    {"t5 with an output", T5_CONFIG, T5 "lm_head.weight 11 8\n", true, false, 0,
     88 + 2 * (8 + 64 + 2 * (16 + 4 * 48 + 3 * 96)) + 2 * (8 + 4 * 48) + 88},
    {"bart", PAIR_CONFIG("bart", ""), PAIR("model.") BART, true, true, 0,
     88 + 128 + 11 + 32 + 4 * (4 * 72 + 32 + 108 + 104) + 2 * (4 * 72 + 16)},
    {"marian", PAIR_CONFIG("marian", ""), PAIR("model.") "model.shared.weight 11 8\n", true, true,
     0, 88 + 4 * (4 * 72 + 32 + 108 + 104) + 2 * (4 * 72 + 16)},
    {"opennmt",
     PAIR_CONFIG("transformer", "\"normalize_before\":true,\"position_embedding\":\"sines\","
                                "\"tie_word_embeddings\":false,"),
     OPENNMT, true, false, 0,
     2 * (88 + 16) + 4 * (32 + 216 + 72 + 108 + 104) + 2 * (16 + 72 + 144 + 72) + 99},
};
enum { MODELS = sizeof models / sizeof models[0] };

static void every_family(void)
{
    for (int n = 0; n < MODELS; n++) {
        const temp_folder folder = temp_folder_new();
        model_files files;
        char message[500];
        model_builder_folder(&folder, models[n].config, models[n].tensors, 2);
        const mha_status status = open_built(&folder, &files, message);
        if (CHECK(status == MHA_OK, "%s: %s", models[n].name, message)) {
            const model_binding *const b = &files.binding;
            CHECK((b->output.weight.data != NULL) == models[n].output &&
                      files.description.tied == models[n].tied &&
                      files.description.labels == models[n].labels,
                  "%s: output or labels", models[n].name);
            CHECK(b->parameters == models[n].parameters, "%s: %lld parameters, not %lld",
                  models[n].name, (long long)b->parameters, (long long)models[n].parameters);
            CHECK(b->copy_count == 0, "%s: copies", models[n].name);
            model_files_close(&files);
        }
        temp_folder_free(&folder);
    }
}

/* The name that a message has for a tensor of the list: in layer 0, and without the suffix of the
 * first files of BERT. Where there are several spellings, the message has the first;
 * without OpenNMT's embedding the layout is not recognised. */
static bool is_named(const struct built_model *model, const char *name, const char *message)
{
    char first[120];
    snprintf(first, sizeof first, "%s", name);
    char *const mark = strchr(first, '#'), *const gamma = strstr(first, "gamma"),
                *const beta = strstr(first, "beta");
    if (mark)
        *mark = '0';
    if (gamma || beta)
        *(gamma ? gamma : beta) = '\0';
    return strstr(message, "is missing") &&
           (strstr(message, first) || strstr(name, "shared") || strstr(model->name, "5") ||
            strcmp(name, "encoder/embeddings/weight") == 0);
}

/* Tensors that these models may be without. */
static bool may_miss(const struct built_model *model, const char *name)
{
    static const char *const parts[] = {
        "lm_head", "classifier.weight",  "final_logits_bias", "cls.",
        "pooler",  "decoder/projection", "attn.bias"};
    for (size_t n = 0; n < sizeof parts / sizeof parts[0]; n++)
        if (strstr(name, parts[n]))
            return true;
    return strncmp(model->name, "vit", 3) == 0 && strstr(name, "attention") &&
           strstr(name, ".bias") && !strstr(name, "output") && !strstr(name, "o_proj");
}

/* Opens a model without the tensor of one line. */
static void leave_out(const struct built_model *model, const temp_folder *folder, const char *line)
{
    static char list[1 << 16];
    char name[120], message[500];
    model_files files;
    sscanf(line, "%119s", name);
    if (may_miss(model, name))
        return;
    snprintf(list, sizeof list, "%.*s%s", (int)(line - model->tensors), model->tensors,
             strchr(line, '\n') + 1);
    model_builder_folder(folder, model->config, list, 2);
    const mha_status status = open_built(folder, &files, message);
    CHECK(status == MHA_ERR_FORMAT && is_named(model, name, message), "%s without %s: %s",
          model->name, name, message);
    if (status == MHA_OK)
        model_files_close(&files);
}

static void missing_tensors(void)
{
    for (int n = 0; n < MODELS; n++) {
        const temp_folder folder = temp_folder_new();
        for (const char *line = models[n].tensors; *line; line = strchr(line, '\n') + 1)
            leave_out(&models[n], &folder, line);
        temp_folder_free(&folder);
    }
}

static void names_in_messages(void)
{
    static const struct {
        const char *config, *tensors, *says;
    } cases[] = {
        {LLAMA_CONFIG("llama", ""), "model.embed_tokens.weight 11 8\nmodel.norm.weight 8\n",
         "tensor model.layers.0.input_layernorm.weight is missing"},
        {LLAMA_CONFIG("llama", ""), "model.embed_tokens.weight 11 9\n",
         "tensor model.embed_tokens.weight is [11, 9], expected [11, 8]"},
        {LLAMA_CONFIG("llama", ""), "model.embed_tokens.weight 88\n",
         "tensor model.embed_tokens.weight is [88], expected [11, 8]"},
        {LLAMA_CONFIG("llama", ""), "model.embed_tokens.weight 11 8\nmodel.norm.weight 2 4\n",
         "tensor model.norm.weight is [2, 4], expected [8]"},
        {GPT2_CONFIG, "wte.weight 11 8\n", "tensor wpe.weight is missing"},
        {GPT2_CONFIG, "transformer.wte.weight 11 8\n", "tensor transformer.wpe.weight is missing"},
        {VIT_CONFIG, "vit.embeddings.patch_embeddings.projection.weight 8 3 4 5\n",
         "is [8, 3, 4, 5], expected [8, 48]"},
        {PAIR_CONFIG("marian", ""), "x 1\n", "tensor encoder.embed_tokens.weight is missing"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const temp_folder folder = temp_folder_new();
        model_files files;
        char message[500];
        model_builder_folder(&folder, cases[n].config, cases[n].tensors, 2);
        const mha_status status = open_built(&folder, &files, message);
        CHECK(status != MHA_OK && strstr(message, cases[n].says), "%s: %s", cases[n].says, message);
        temp_folder_free(&folder);
    }
}

/* ------------------------------------------------------------------- views ----- */

static void fused_and_transposed(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    char message[500];
    model_builder_folder(&folder, GPT2_CONFIG, GPT2(""), 2);
    if (CHECK(open_built(&folder, &files, message) == MHA_OK, "%s", message)) {
        const bound_layer *const layer = &files.binding.stack[STACK_DECODER].layers[1];
        /* Element (c, n) of [8][24] is 24*c + n; K begins at column 8 and V at 16. */
        CHECK(at(&layer->self.q.weight, 3, 2) == 51 && at(&layer->self.k.weight, 3, 2) == 59 &&
                  at(&layer->self.v.weight, 3, 2) == 67,
              "parts of c_attn");
        CHECK(((const float *)layer->self.v.bias.data)[1] == 17 && layer->self.v.bias.count == 8,
              "parts of its bias");
        CHECK(at(&layer->ff.down.weight, 1, 2) == 17 && layer->ff.down.weight.outputs == 8 &&
                  layer->ff.down.weight.inputs == 32,
              "c_proj");
        CHECK(layer->self.q.weight.tensor == layer->self.v.weight.tensor, "one tensor");
        model_files_close(&files);
    }
    model_builder_folder(&folder,
                         PAIR_CONFIG("transformer",
                                     "\"normalize_before\":true,\"position_embedding\":\"sines\","
                                     "\"tie_word_embeddings\":false,"),
                         OPENNMT, 2);
    if (CHECK(open_built(&folder, &files, message) == MHA_OK, "%s", message)) {
        const bound_layer *const layer = &files.binding.stack[STACK_DECODER].layers[0];
        CHECK(at(&layer->self.k.weight, 0, 0) == 64 && at(&layer->self.v.weight, 1, 2) == 138,
              "rows of linear_0");
        CHECK(at(&layer->cross.k.weight, 0, 0) == 0 && at(&layer->cross.v.weight, 0, 0) == 64 &&
                  ((const float *)layer->cross.v.bias.data)[0] == 8,
              "rows of linear_1");
        CHECK(layer->self.norms.before.weight.data && !layer->self.norms.after.weight.data,
              "norms before");
        model_files_close(&files);
    }
    temp_folder_free(&folder);
}

static void norms_of_gemma(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    char message[500];
    model_builder_folder(&folder, LLAMA_CONFIG("gemma2", ""),
                         LLAMA "model.layers.#.pre_feedforward_layernorm.weight 8\n"
                               "model.layers.#.post_feedforward_layernorm.weight 8\n",
                         2);
    if (CHECK(open_built(&folder, &files, message) == MHA_OK, "%s", message)) {
        const bound_layer *const layer = &files.binding.stack[STACK_DECODER].layers[0];
        CHECK(layer->self.norms.inside.weight.data && layer->ff.norms.inside.weight.data &&
                  layer->ff.norms.before.weight.data && !layer->ff.norms.after.weight.data,
              "places");
        model_files_close(&files);
    }
    temp_folder_free(&folder);
}

/* One more byte of header moves all data off their alignment. */
static void misaligned_data(void)
{
    const temp_folder folder = temp_folder_new();
    model_files files;
    char message[500], path[200];
    size_t size;
    model_builder_folder(&folder, GPT2_CONFIG, GPT2(""), 2);
    snprintf(path, sizeof path, "%s/model.safetensors", folder.path);
    unsigned char *const bytes = file_bytes(path, &size);
    unsigned char *const moved = malloc(size + 1);
    uint64_t header;
    memcpy(&header, bytes, 8);
    memcpy(moved, bytes, 8 + header);
    moved[8 + header] = ' ';
    memcpy(moved + 9 + header, bytes + 8 + header, size - 8 - header);
    header++;
    memcpy(moved, &header, 8);
    CHECK(file_make(path, moved, size + 1), "write");
    if (CHECK(open_built(&folder, &files, message) == MHA_OK, "%s", message)) {
        const bound_layer *const layer = &files.binding.stack[STACK_DECODER].layers[1];
        /* 2 + 2 tensors outside of the layers and 12 in each; the mask is not used. */
        CHECK(files.binding.copy_count == 28, "%zu copies", files.binding.copy_count);
        CHECK((uintptr_t)layer->self.q.weight.data % sizeof(float) == 0 &&
                  at(&layer->self.k.weight, 3, 2) == 59,
              "the copy");
        model_files_close(&files);
    }
    free(bytes);
    free(moved);
    temp_folder_free(&folder);
}

static void other_types(void)
{
    static const int64_t numbers[88];
    static const uint64_t shape[] = {11, 8};
    const safetensors_item item = {"wte.weight", SAFETENSORS_I64, 2, shape, numbers};
    const temp_folder folder = temp_folder_new();
    model_files files;
    char message[500], path[200];
    CHECK(file_make(temp_path(&folder, "config.json"), GPT2_CONFIG, strlen(GPT2_CONFIG)), "write");
    snprintf(path, sizeof path, "%s/model.safetensors", folder.path);
    CHECK(!safetensors_write(path, &item, 1, NULL, 0, message, sizeof message), "%s", message);
    CHECK(open_built(&folder, &files, message) == MHA_ERR_DTYPE && strstr(message, "wte.weight"),
          "%s", message);
    temp_folder_free(&folder);
}

/* A text that does not fit is cut, terminated, and its length is that of the whole. */
static void descriptions_in_words(void)
{
    for (int n = 0; n < MODELS; n++) {
        const temp_folder folder = temp_folder_new();
        model_files files;
        char message[500], text[8192], part[100];
        model_builder_folder(&folder, models[n].config, models[n].tensors, 2);
        if (CHECK(open_built(&folder, &files, message) == MHA_OK, "%s", message)) {
            const size_t length = model_files_describe(&files, 1234567, NULL, text, sizeof text);
            CHECK(length == strlen(text) && strstr(text, "1,234,567") &&
                      strstr(text, files.description.family) && strstr(text, "self-attention"),
                  "%s:\n%s", models[n].name, text);
            CHECK(model_files_describe(&files, 1234567, NULL, part, sizeof part) == length &&
                      strlen(part) == sizeof part - 1 && strncmp(part, text, sizeof part - 1) == 0,
                  "%s: a part", models[n].name);
            CHECK(model_files_describe(&files, 1234567, NULL, NULL, 0) == length, "the length");
            CHECK(model_files_describe(&files, 1234567, "native", text, sizeof text) > length &&
                      strstr(text, "native"),
                  "arithmetic");
            model_files_close(&files);
        }
        temp_folder_free(&folder);
    }
}

/* Key/value heads that do not fit the heads that are left of a pruned layer. */
static void groups_of_pruned_layers(void)
{
    static const struct {
        int queries, keys, values;
        const char *says; /* NULL: they fit */
    } shapes[] = {{24, 8, 8, NULL},
                  {24, 12, 12, NULL},
                  {24, 6, 8, "whose number divides 6 heads"},
                  {24, 16, 16, "whose number divides 6 heads"},
                  {24, 8, 12, "whose number divides 6 heads"},
                  {32, 8, 8, "q_proj.weight is [32, 8], expected [24, 8]"}};
    for (size_t n = 0; n < sizeof shapes / sizeof shapes[0]; n++) {
        const temp_folder folder = temp_folder_new();
        char tensors[1024], message[500];
        model_files files;
        snprintf(tensors, sizeof tensors,
                 "model.embed_tokens.weight 11 8\nmodel.norm.weight 8\n"
                 "model.layers.0.input_layernorm.weight 8\n"
                 "model.layers.0.post_attention_layernorm.weight 8\n"
                 "model.layers.0.self_attn.q_proj.weight %d 8\n"
                 "model.layers.0.self_attn.k_proj.weight %d 8\n"
                 "model.layers.0.self_attn.v_proj.weight %d 8\n"
                 "model.layers.0.self_attn.o_proj.weight 8 24\n"
                 "model.layers.0.mlp.gate_proj.weight 12 8\nmodel.layers.0.mlp.up_proj.weight 12 "
                 "8\nmodel.layers.0.mlp.down_proj.weight 8 12\n",
                 shapes[n].queries, shapes[n].keys, shapes[n].values);
        model_builder_folder(
            &folder,
            "{\"model_type\":\"llama\",\"vocab_size\":11,\"hidden_size\":8,"
            "\"num_hidden_layers\":1,\"num_attention_heads\":8,\"num_key_value_heads\":2,"
            "\"intermediate_size\":12,\"head_dim\":4,\"max_position_embeddings\":6,"
            "\"mha_pruned_heads\":{\"decoder\":{\"0\":[0,3]}}}",
            tensors, 1);
        const mha_status status = open_built(&folder, &files, message);
        CHECK(shapes[n].says ? status == MHA_ERR_SHAPE && strstr(message, shapes[n].says)
                             : status == MHA_OK,
              "%zu: %s", n, message);
        if (status == MHA_OK)
            model_files_close(&files);
        temp_folder_free(&folder);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_family);
    RUN(missing_tensors);
    RUN(names_in_messages);
    RUN(fused_and_transposed);
    RUN(norms_of_gemma);
    RUN(misaligned_data);
    RUN(other_types);
    RUN(groups_of_pruned_layers);
    RUN(descriptions_in_words);
    return test_end();
}
