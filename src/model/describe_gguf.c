/* SPDX-License-Identifier: MIT */
/* Descriptions by the metadata of GGUF files. Keys begin with the architecture,
 * "llama.block_count"; they are the same for all families, and what the metadata leave out is known
 * by family. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/families.h"

#define AT(member) offsetof(model_description, member)
#define ENCODER(member) offsetof(model_description, stack[STACK_ENCODER].member)
#define DECODER(member) offsetof(model_description, stack[STACK_DECODER].member)
#define TABLE_END              \
    {                          \
        NULL, FIELD_BOOL, 0, 0 \
    }

#define GGUF_FIELDS(STACK)                                                                         \
    {"embedding_length", FIELD_WIDTH, AT(width), NAN},                                             \
        {"context_length", FIELD_ROWS, AT(positions), NAN},                                        \
        {"attention.layer_norm_rms_epsilon attention.layer_norm_epsilon", FIELD_EPS, AT(norm_eps), \
         NAN},                                                                                     \
        {"block_count", FIELD_LAYERS, STACK(layers), NAN},                                         \
        {"feed_forward_length", FIELD_WIDTH, STACK(inner), NAN},                                   \
        {"attention.head_count", FIELD_HEADS, STACK(attention.heads), NAN},                        \
        {"attention.head_count_kv", FIELD_HEADS_ZERO, STACK(attention.key_heads), 0},              \
    {                                                                                              \
        "attention.key_length", FIELD_WIDTH_ZERO, STACK(attention.head_width), 0                   \
    }

static const config_field encoder_fields[] = {GGUF_FIELDS(ENCODER), TABLE_END};

static const config_field decoder_fields[] = {
    GGUF_FIELDS(DECODER),
    {"attention.sliding_window", FIELD_ROWS_ZERO, DECODER(attention.window), 0},
    {"attn_logit_softcapping", FIELD_NUMBER, DECODER(attention.softcap), 0},
    {"final_logit_softcapping", FIELD_NUMBER, AT(logit_softcap), 0},
    TABLE_END};

static const struct gguf_architecture {
    const char *name, *family;
    mha_norm norm;
    mha_activation activation;
    bool gated, rotary, qk_norm, scaled_embedding;
    mha_rope_pairs pairs;
    double rope_base, local_base;
    int window_every;
    float softcap, logit_softcap; /* if the metadata do not say */
    int wide_layers;              /* a model of so many layers has the scale 1/sqrt(width/heads) */
} architectures[] = {
    /* The rows of W_Q and W_K of "llama" are ordered for neighbouring pairs. */
    {"llama", "llama", MHA_NORM_RMS, MHA_ACTIVATION_SILU, true, true, false, false,
     MHA_ROPE_NEIGHBOURS, 10000, 0, 0, 0, 0, 0},
    {"qwen2", "qwen2", MHA_NORM_RMS, MHA_ACTIVATION_SILU, true, true, false, false, MHA_ROPE_HALVES,
     10000, 0, 0, 0, 0, 0},
    {"qwen3", "qwen3", MHA_NORM_RMS, MHA_ACTIVATION_SILU, true, true, true, false, MHA_ROPE_HALVES,
     10000, 0, 0, 0, 0, 0},
    {"gemma", "gemma", MHA_NORM_RMS, MHA_ACTIVATION_GELU_TANH, true, true, false, true,
     MHA_ROPE_HALVES, 10000, 0, 0, 0, 0, 0},
    {"gemma2", "gemma2", MHA_NORM_RMS, MHA_ACTIVATION_GELU_TANH, true, true, false, true,
     MHA_ROPE_HALVES, 10000, 0, 2, 50, 30, 46},
    {"gemma3", "gemma3_text", MHA_NORM_RMS, MHA_ACTIVATION_GELU_TANH, true, true, true, true,
     MHA_ROPE_HALVES, 1000000, 10000, 6, 0, 0, 62},
    {"gpt2", "gpt2", MHA_NORM_LAYER, MHA_ACTIVATION_GELU_TANH, false, false, false, false,
     MHA_ROPE_NONE, 0, 0, 0, 0, 0, 0},
    {"bert", "bert", MHA_NORM_LAYER, MHA_ACTIVATION_GELU, false, false, false, false, MHA_ROPE_NONE,
     0, 0, 0, 0, 0, 0},
};
enum { ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

static const struct gguf_architecture *find_architecture(const config_reader *r, char name[48])
{
    gguf_string text = {"", 0};
    gguf_get_string(r->gguf, "general.architecture", &text);
    const size_t length = text.length < 47 ? (size_t)text.length : 47;
    memcpy(name, text.text, length);
    name[length] = '\0';
    for (int n = 0; n < ARCHITECTURES; n++)
        if (strcmp(architectures[n].name, name) == 0)
            return &architectures[n];
    for (char *c = name; *c; c++)
        *c = *c < 32 || *c > 126 ? '?' : *c;
    return NULL;
}

static mha_status fail_architecture(const config_reader *r, const char *name)
{
    char list[200];
    size_t used = 0;
    for (int n = 0; n < ARCHITECTURES; n++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n ? ", " : "",
                                 architectures[n].name);
    return config_fail(r, MHA_ERR_FORMAT, "\"general.architecture\" is \"%s\", expected one of %s",
                       name, list);
}

/* The rows of a tensor; 0 if it is not there. */
static int tensor_rows(const config_reader *r, const char *name)
{
    const gguf_tensor *const tensor = gguf_find_tensor(r->gguf, name);
    return tensor && tensor->rank == 2 && tensor->shape[0] <= MODEL_ROWS_MAX ? (int)tensor->shape[0]
                                                                             : 0;
}

static void read_mark(const config_reader *r, const char *key, int32_t *token)
{
    int64_t value;
    if (gguf_get_integer(r->gguf, key, &value) && value >= 0 && value <= MODEL_ROWS_MAX)
        *token = (int32_t)value;
}

static void read_marks(const config_reader *r, model_usage *u)
{
    int32_t turn = -1;
    read_mark(r, "tokenizer.ggml.bos_token_id", &u->begin);
    read_mark(r, "tokenizer.ggml.eos_token_id", &u->end);
    read_mark(r, "tokenizer.ggml.padding_token_id", &u->pad);
    read_mark(r, "tokenizer.ggml.eot_token_id", &turn);
    if (u->end >= 0)
        u->ends[u->end_count++] = u->end;
    if (turn >= 0 && turn != u->end)
        u->ends[u->end_count++] = turn;
}

/* Llama 3 stores the divisor of each frequency as a tensor. */
static mha_status read_frequencies(const config_reader *r, model_description *d)
{
    attention_description *const a = &d->stack[STACK_DECODER].attention;
    const gguf_tensor *const factors = gguf_find_tensor(r->gguf, "rope_freqs.weight");
    if (!factors)
        return MHA_OK;
    const int width = a->rope_width   ? a->rope_width
                      : a->head_width ? a->head_width
                                      : d->width / a->heads;
    if (!factors->usable || factors->type != MHA_F32 || factors->rank != 1 ||
        factors->shape[0] != (uint64_t)(width / 2))
        return config_fail(r, MHA_ERR_FORMAT,
                           "the tensor \"rope_freqs.weight\" must have %d f32 numbers", width / 2);
    if (!a->rope_frequencies)
        a->rope_frequencies = malloc(((size_t)width / 2 + 1) * sizeof *a->rope_frequencies);
    if (!a->rope_frequencies)
        return config_fail_memory(r);
    for (int n = 0; n < width / 2; n++) {
        float factor;
        memcpy(&factor, (const char *)factors->data + 4 * n, sizeof factor);
        if (!(factor > 0 && factor < 1e6f))
            return config_fail(r, MHA_ERR_FORMAT,
                               "element %d of \"rope_freqs.weight\" is %g, expected a positive "
                               "number",
                               n, (double)factor);
        a->rope_frequencies[n] = (float)(pow(a->rope_base, -2.0 * n / width) / factor);
    }
    return MHA_OK;
}

static mha_status read_decoder(const config_reader *r, const struct gguf_architecture *known,
                               model_description *d)
{
    stack_description *const stack = &d->stack[STACK_DECODER];
    attention_description *const a = &stack->attention;
    double value_width = a->head_width;
    mha_status status = config_read_number(r, "attention.value_length", 0, 1e6, &value_width);
    if (!status && value_width != a->head_width)
        status =
            config_fail(r, MHA_ERR_FORMAT,
                        "\"attention.value_length\" is %g, expected the \"attention.key_length\""
                        ", which is %d",
                        value_width, a->head_width);
    d->norm_first = true;
    a->qk_norm = known->qk_norm ? MHA_NORM_RMS : MHA_NORM_NONE;
    a->rope_local_base = known->local_base;
    a->window_every = known->window_every;
    if (known->scaled_embedding)
        stack->embedding.scale = sqrtf((float)d->width);
    if (known->wide_layers == stack->layers && stack->layers > 0)
        a->scale = 1 / sqrtf((float)d->width / (float)a->heads);
    if (a->softcap == 0)
        a->softcap = known->softcap;
    if (d->logit_softcap == 0)
        d->logit_softcap = known->logit_softcap;
    stack->embedding.position = POSITION_LEARNED;
    if (!status && known->rotary)
        status = describe_rope_gguf(r, d, known->rope_base);
    a->rope_pairs = known->pairs;
    return status || !known->rotary ? status : read_frequencies(r, d);
}

static mha_status read_encoder(const config_reader *r, model_description *d)
{
    static const mha_pooling poolings[] = {MHA_POOLING_MODEL, MHA_POOLING_MEAN, MHA_POOLING_FIRST,
                                           MHA_POOLING_LAST};
    double pooling = 0;
    const mha_status status = config_read_number(r, "pooling_type", 0, 3, &pooling);
    d->usage.pooling = status ? MHA_POOLING_MODEL : poolings[(int)pooling];
    d->stack[STACK_ENCODER].embedding.position = POSITION_LEARNED;
    d->stack[STACK_ENCODER].embedding.segments = tensor_rows(r, "token_types.weight");
    return status;
}

mha_status describe_gguf(model_description *d, const model_family **family, const config_reader *r)
{
    char name[48];
    double experts = 0;
    const struct gguf_architecture *const known = find_architecture(r, name);
    memset(d, 0, sizeof *d);
    if (!known)
        return fail_architecture(r, name);
    *family = model_family_find(known->family);
    description_begin(d, *family);
    const config_reader reader = {.gguf = r->gguf,
                                  .prefix = known->name,
                                  .path = r->path,
                                  .message = r->message,
                                  .message_size = r->message_size};
    const bool encoder = d->kind == MHA_MODEL_ENCODER;
    mha_status status = config_read_fields(&reader, encoder ? encoder_fields : decoder_fields, d);
    if (!status)
        status = config_read_number(&reader, "expert_count", 0, 0, &experts);
    d->norm = known->norm;
    d->activation = known->activation;
    d->gated = known->gated;
    d->vocabulary = tensor_rows(r, "token_embd.weight");
    if (!status && d->vocabulary == 0)
        status = config_fail(r, MHA_ERR_FORMAT, "the tensor \"token_embd.weight\" is missing");
    if (!status)
        status = encoder ? read_encoder(&reader, d) : read_decoder(&reader, known, d);
    read_marks(r, &d->usage);
    return status ? status : describe_settle(r, d);
}
