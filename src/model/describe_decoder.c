/* SPDX-License-Identifier: MIT */
/* Descriptions of decoders: GPT-2, Llama and its relatives. */
#include <math.h>
#include <string.h>

#include "format/convert.h"
#include "model/describe.h"

#define AT(member) offsetof(model_description, member)
#define DECODER(member) offsetof(model_description, stack[STACK_DECODER].member)

#define LLAMA_SIZES(vocabulary_, width_, layers_, heads_, key_heads_, head_width_, inner_)   \
    {"vocab_size", FIELD_ROWS, AT(vocabulary), vocabulary_},                                 \
        {"hidden_size", FIELD_WIDTH, AT(width), width_},                                     \
        {"num_hidden_layers", FIELD_LAYERS, DECODER(layers), layers_},                       \
        {"num_attention_heads", FIELD_HEADS, DECODER(attention.heads), heads_},              \
        {"num_key_value_heads", FIELD_HEADS_ZERO, DECODER(attention.key_heads), key_heads_}, \
        {"head_dim", FIELD_WIDTH_ZERO, DECODER(attention.head_width), head_width_},          \
        {"intermediate_size", FIELD_WIDTH, DECODER(inner), inner_},                          \
    {                                                                                        \
        "rms_norm_eps", FIELD_EPS, AT(norm_eps), 1e-6                                        \
    }
#define LLAMA_MORE(activation_, positions_, tied_)                                   \
    {"hidden_activation hidden_act", FIELD_ACTIVATION, AT(activation), activation_}, \
        {"max_position_embeddings", FIELD_ROWS, AT(positions), positions_},          \
    {                                                                                \
        "tie_word_embeddings", FIELD_BOOL, AT(tied), tied_                           \
    }
#define LLAMA_TOKENS(begin_, end_, pad_)                        \
    {"eos_token_id", FIELD_END, AT(usage.end), end_},           \
        {"bos_token_id", FIELD_TOKEN, AT(usage.begin), begin_}, \
    {                                                           \
        "pad_token_id", FIELD_TOKEN, AT(usage.pad), pad_        \
    }
#define WINDOW(window_)                                                       \
    {                                                                         \
        "sliding_window", FIELD_ROWS_ZERO, DECODER(attention.window), window_ \
    }
#define TABLE_END              \
    {                          \
        NULL, FIELD_BOOL, 0, 0 \
    }

const config_field gpt2_fields[] = {
    {"vocab_size", FIELD_ROWS, AT(vocabulary), 50257},
    {"n_positions n_ctx", FIELD_ROWS, AT(positions), 1024},
    {"n_embd hidden_size", FIELD_WIDTH, AT(width), 768},
    {"n_layer num_hidden_layers", FIELD_LAYERS, DECODER(layers), 12},
    {"n_head num_attention_heads", FIELD_HEADS, DECODER(attention.heads), 12},
    {"n_inner", FIELD_WIDTH_ZERO, DECODER(inner), 0},
    {"activation_function", FIELD_ACTIVATION, AT(activation), MHA_ACTIVATION_GELU_TANH},
    {"layer_norm_epsilon", FIELD_EPS, AT(norm_eps), 1e-5},
    {"scale_attn_by_inverse_layer_idx", FIELD_BOOL, DECODER(attention.scale_by_layer), false},
    {"tie_word_embeddings", FIELD_BOOL, AT(tied), true},
    LLAMA_TOKENS(50256, 50256, -1),
    TABLE_END};

const config_field llama_fields[] = {LLAMA_SIZES(32000, 4096, 32, 32, 0, 0, 11008),
                                     LLAMA_MORE(MHA_ACTIVATION_SILU, 2048, false),
                                     LLAMA_TOKENS(1, 2, -1), TABLE_END};

const config_field mistral_fields[] = {LLAMA_SIZES(32000, 4096, 32, 32, 8, 0, 14336),
                                       LLAMA_MORE(MHA_ACTIVATION_SILU, 131072, false),
                                       LLAMA_TOKENS(1, 2, -1), WINDOW(4096), TABLE_END};

const config_field qwen2_fields[] = {LLAMA_SIZES(151936, 4096, 32, 32, 32, 0, 22016),
                                     LLAMA_MORE(MHA_ACTIVATION_SILU, 32768, false),
                                     LLAMA_TOKENS(-1, -1, -1), WINDOW(4096), TABLE_END};

const config_field qwen3_fields[] = {LLAMA_SIZES(151936, 4096, 32, 32, 32, 128, 22016),
                                     LLAMA_MORE(MHA_ACTIVATION_SILU, 32768, false),
                                     LLAMA_TOKENS(-1, -1, -1), WINDOW(4096), TABLE_END};

const config_field gemma_fields[] = {LLAMA_SIZES(256000, 3072, 28, 16, 16, 256, 24576),
                                     LLAMA_MORE(MHA_ACTIVATION_GELU_TANH, 8192, true),
                                     LLAMA_TOKENS(2, 1, 0), TABLE_END};

#define SOFTCAPS(scores_, logits_)                                                 \
    {"attn_logit_softcapping", FIELD_NUMBER, DECODER(attention.softcap), scores_}, \
    {                                                                              \
        "final_logit_softcapping", FIELD_NUMBER, AT(logit_softcap), logits_        \
    }

const config_field gemma2_fields[] = {LLAMA_SIZES(256000, 2304, 26, 8, 4, 256, 9216),
                                      LLAMA_MORE(MHA_ACTIVATION_GELU_TANH, 8192, true),
                                      LLAMA_TOKENS(2, 1, 0),
                                      WINDOW(4096),
                                      SOFTCAPS(50, 30),
                                      TABLE_END};

const config_field gemma3_fields[] = {LLAMA_SIZES(262208, 2304, 26, 8, 4, 256, 9216),
                                      LLAMA_MORE(MHA_ACTIVATION_GELU_TANH, 131072, true),
                                      LLAMA_TOKENS(2, 1, 0),
                                      WINDOW(4096),
                                      SOFTCAPS(0, 0),
                                      TABLE_END};

mha_status describe_gpt2(const config_reader *r, model_description *d)
{
    stack_description *const stack = &d->stack[STACK_DECODER];
    bool scaled = true;
    d->norm = MHA_NORM_LAYER;
    d->norm_first = true;
    stack->embedding.position = POSITION_LEARNED;
    if (stack->inner == 0) {
        if (d->width > MODEL_WIDTH_MAX / 4)
            return config_fail(r, MHA_ERR_FORMAT, "\"n_embd\" is %d, expected at most %d", d->width,
                               MODEL_WIDTH_MAX / 4);
        stack->inner = 4 * d->width;
    }
    const mha_status status = config_read_bool(r, "scale_attn_weights", &scaled);
    stack->attention.scale = scaled ? 0.0f : 1.0f;
    return status;
}

static mha_status like_llama(const config_reader *r, model_description *d, double rope_base)
{
    d->norm = MHA_NORM_RMS;
    d->norm_first = true;
    d->gated = true;
    return describe_rope(r, d, rope_base);
}

mha_status describe_llama(const config_reader *r, model_description *d)
{
    return like_llama(r, d, 10000);
}

/* Windows are off unless "use_sliding_window" is true, and then only in upper layers. */
mha_status describe_qwen2(const config_reader *r, model_description *d)
{
    stack_description *const stack = &d->stack[STACK_DECODER];
    bool windows = false;
    double first = 28;
    mha_status status = describe_llama(r, d);
    if (!status)
        status = config_read_bool(r, "use_sliding_window", &windows);
    if (!status)
        status = config_read_number(r, "max_window_layers", 0, 1e6, &first);
    if (!windows)
        stack->attention.window = 0;
    stack->attention.window_from = windows ? (int)first : 0;
    return status ? status : describe_windows(r, &stack->attention, stack->layers);
}

mha_status describe_qwen3(const config_reader *r, model_description *d)
{
    d->stack[STACK_DECODER].attention.qk_norm = MHA_NORM_RMS;
    return describe_qwen2(r, d);
}

/* sqrt(width), rounded to the type of the weights, as the model was trained with. */
static float embedding_scale(const config_reader *r, int width)
{
    char key[CONFIG_KEY_MAX];
    const float scale = sqrtf((float)width);
    const config_value type = config_get_any(r, "dtype torch_dtype", key);
    if (type.type != CONFIG_TEXT)
        return scale;
    if (strcmp(type.text, "bfloat16") == 0)
        return convert_bf16_to_f32(convert_f32_to_bf16(scale));
    return strcmp(type.text, "float16") == 0 ? convert_f16_to_f32(convert_f32_to_f16(scale))
                                             : scale;
}

static mha_status like_gemma(const config_reader *r, model_description *d, double rope_base)
{
    d->norm_add = 1;
    d->stack[STACK_DECODER].embedding.scale = embedding_scale(r, d->width);
    return like_llama(r, d, rope_base);
}

mha_status describe_gemma(const config_reader *r, model_description *d)
{
    return like_gemma(r, d, 10000);
}

/* Gemma 2 and 3: windows in all but every n-th layer, and a scale of their own. */
static mha_status alternate(const config_reader *r, model_description *d, double every)
{
    stack_description *const stack = &d->stack[STACK_DECODER];
    double scalar = 256;
    mha_status status = config_read_number(r, "query_pre_attn_scalar", 1e-6, 1e9, &scalar);
    if (!status)
        status = config_read_number(r, "sliding_window_pattern _sliding_window_pattern", 1,
                                    MODEL_LAYERS_MAX, &every);
    if (status)
        return status;
    stack->attention.scale = (float)(1 / sqrt(scalar));
    stack->attention.window_every = (int)every;
    return describe_windows(r, &stack->attention, stack->layers);
}

mha_status describe_gemma2(const config_reader *r, model_description *d)
{
    const mha_status status = describe_gemma(r, d);
    return status ? status : alternate(r, d, 2);
}

mha_status describe_gemma3(const config_reader *r, model_description *d)
{
    attention_description *const attention = &d->stack[STACK_DECODER].attention;
    attention->qk_norm = MHA_NORM_RMS;
    attention->rope_local_base = 10000;
    mha_status status = like_gemma(r, d, 1e6);
    if (!status)
        status = config_read_number(
            r, "rope_parameters.sliding_attention.rope_theta rope_local_base_freq", 1, 1e12,
            &attention->rope_local_base);
    return status ? status : alternate(r, d, 6);
}
