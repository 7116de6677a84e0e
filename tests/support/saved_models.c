/* SPDX-License-Identifier: MIT */
/* Configurations and tensors of small models that are saved without some heads (saved_models.h). */
#include "support/saved_models.h"

#define LINEAR8(name) name ".weight 8 8\n" name ".bias 8\n"
#define NORM8(name) name ".weight 8\n" name ".bias 8\n"

#define BERT_CONFIG(more)                                                                  \
    "{\"model_type\": \"bert\", \"vocab_size\": 11, \"hidden_size\": 8,\n"                 \
    "  \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 12,\n" \
    "  \"max_position_embeddings\": 16" more "}\n"
#define BERT                                                                                       \
    "embeddings.word_embeddings.weight 11 8\nembeddings.position_embeddings.weight 16 8\n"         \
    "embeddings.token_type_embeddings.weight 2 8\n" NORM8("embeddings.LayerNorm") LINEAR8(         \
        "encoder.layer.#.attention.self.query") LINEAR8("encoder.layer.#.attention.self.key")      \
        LINEAR8("encoder.layer.#.attention.self.value")                                            \
            LINEAR8("encoder.layer.#.attention.output.dense")                                      \
                NORM8("encoder.layer.#.attention.output.LayerNorm") NORM8(                         \
                    "encoder.layer.#.output.LayerNorm") "encoder.layer.#.intermediate.dense."      \
                                                        "weight 12 8\n"                            \
                                                        "encoder.layer.#.intermediate.dense.bias " \
                                                        "12\nencoder.layer.#.output.dense.weight " \
                                                        "8 12\n"                                   \
                                                        "encoder.layer.#.output.dense.bias 8\n"

#define ALBERT_LAYER "encoder.albert_layer_groups.0.albert_layers.0."
#define ALBERT                                                                              \
    "embeddings.word_embeddings.weight 11 8\nembeddings.position_embeddings.weight 16 8\n"  \
    "embeddings.token_type_embeddings.weight 2 8\n" NORM8("embeddings.LayerNorm")           \
        LINEAR8(ALBERT_LAYER "attention.query") LINEAR8(ALBERT_LAYER "attention.key")       \
            LINEAR8(ALBERT_LAYER "attention.value") LINEAR8(ALBERT_LAYER "attention.dense") \
                NORM8(ALBERT_LAYER "attention.LayerNorm")                                   \
                    NORM8(ALBERT_LAYER "full_layer_layer_norm") ALBERT_LAYER                \
        "ffn.weight 12 8\n" ALBERT_LAYER "ffn.bias 12\n" ALBERT_LAYER                       \
        "ffn_output.weight 8 12\n" ALBERT_LAYER "ffn_output.bias 8\n"

#define GPT2                                                                                   \
    "wte.weight 11 8\nwpe.weight 16 8\nh.#.attn.c_attn.weight 8 24\nh.#.attn.c_attn.bias "     \
    "24\n" LINEAR8("h.#.attn.c_proj") NORM8("h.#.ln_1") NORM8("h.#.ln_2") NORM8(               \
        "ln_f") "h.#.mlp.c_fc.weight 8 32\nh.#.mlp.c_fc.bias 32\nh.#.mlp.c_proj.weight 32 8\n" \
                "h.#.mlp.c_proj.bias 8\n"

#define LLAMA                                                                                   \
    "model.embed_tokens.weight 11 8\nmodel.norm.weight 8\n"                                     \
    "model.layers.#.input_layernorm.weight 8\n"                                                 \
    "model.layers.#.post_attention_layernorm.weight 8\n"                                        \
    "model.layers.#.self_attn.q_proj.weight 24 8\nmodel.layers.#.self_attn.k_proj.weight 8 8\n" \
    "model.layers.#.self_attn.v_proj.weight 8 8\nmodel.layers.#.self_attn.o_proj.weight 8 24\n" \
    "model.layers.#.mlp.gate_proj.weight 12 8\nmodel.layers.#.mlp.up_proj.weight 12 8\n"        \
    "model.layers.#.mlp.down_proj.weight 8 12\nlm_head.weight 11 8\n"

#define T5_STACK(stack, ff)                                                            \
    stack ".final_layer_norm.weight 8\n" stack                                         \
          ".block.0.layer.0.SelfAttention.relative_attention_bias.weight 32 3\n" stack \
          ".block.#.layer.0.layer_norm.weight 8\n" stack                               \
          ".block.#.layer.0.SelfAttention.q.weight 6 8\n" stack                        \
          ".block.#.layer.0.SelfAttention.k.weight 6 8\n" stack                        \
          ".block.#.layer.0.SelfAttention.v.weight 6 8\n" stack                        \
          ".block.#.layer.0.SelfAttention.o.weight 8 6\n" stack ".block.#.layer." ff   \
          ".layer_norm.weight 8\n" stack ".block.#.layer." ff                          \
          ".DenseReluDense.wi.weight 12 8\n" stack ".block.#.layer." ff                \
          ".DenseReluDense.wo.weight 8 12\n"
#define T5                                                                                \
    "shared.weight 11 8\n" T5_STACK("encoder", "1")                                       \
        T5_STACK("decoder", "2") "decoder.block.#.layer.1.layer_norm.weight 8\n"          \
                                 "decoder.block.#.layer.1.EncDecAttention.q.weight 6 8\n" \
                                 "decoder.block.#.layer.1.EncDecAttention.k.weight 6 8\n" \
                                 "decoder.block.#.layer.1.EncDecAttention.v.weight 6 8\n" \
                                 "decoder.block.#.layer.1.EncDecAttention.o.weight 8 6\n"

const saved_model saved_models[SAVED_MODELS] = {
    [SAVED_BERT] = {"BERT", BERT_CONFIG(""), BERT, false, false,
                    "\"pruned_heads\": {\"0\": [1], \"1\": [0, 3]}"},
    [SAVED_BERT_HALF] = {"BERT in f16",
                         BERT_CONFIG(",\n  \"pruned_heads\": {}, \"a\": [{\"b\": 1}]"), BERT, true,
                         false,
                         "\"pruned_heads\": {\"0\": [1], \"1\": [0, 3]}, \"a\": [{\"b\": 1}]\n}"},
    [SAVED_ALBERT] =
        {"ALBERT",
         "{\"model_type\":\"albert\",\"vocab_size\":11,\"hidden_size\":8,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"intermediate_size\":12,\"max_position_embeddings\":16,"
         "\"embedding_size\":8}",
         ALBERT, false, false, "\"num_hidden_groups\": 2"},
    [SAVED_GPT2] =
        {"GPT-2",
         "{\"model_type\":\"gpt2\",\"vocab_size\":11,\"n_embd\":8,\"n_layer\":2,\"n_head\":4,"
         "\"n_positions\":16}",
         GPT2, false, false, "\"pruned_heads\": {\"0\": [1], \"1\": [0, 3]}"},
    /* 6 heads of width 4, each two for one key/value head; 5 and 3 are left */
    [SAVED_LLAMA] =
        {"Llama",
         "{\"model_type\":\"llama\",\"vocab_size\":11,\"hidden_size\":8,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":6,\"num_key_value_heads\":2,\"intermediate_size\":12,"
         "\"head_dim\":4,\"max_position_embeddings\":16}",
         LLAMA, true, false, "\"mha_pruned_heads\": {\"decoder\": {\"0\": [1], \"1\": [0, 3, 5]}}"},
    [SAVED_T5] = {"T5",
                  "{\"model_type\":\"t5\",\"vocab_size\":11,\"d_model\":8,\"d_kv\":2,\"d_ff\":12,"
                  "\"num_layers\":2,\"num_heads\":3,\"feed_forward_proj\":\"relu\"}",
                  T5, false, true,
                  "\"mha_pruned_heads\": {\"encoder\": {\"0\": [1], \"1\": [0]}, \"decoder\": "
                  "{\"0\": [0, 2], "
                  "\"1\": [1]}, \"cross\": {\"0\": [0], \"1\": [0, 2]}}"},
};
