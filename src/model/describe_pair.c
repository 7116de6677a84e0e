/* SPDX-License-Identifier: MIT */
/* Descriptions of encoder-decoders: T5, BART, mBART, Marian, the translator of this project, and
 * others that a config.json of "model_type": "transformer" describes key by key. */
#include <math.h>
#include <string.h>

#include "model/describe.h"

#define AT(member) offsetof(model_description, member)
#define ENCODER(member) offsetof(model_description, stack[STACK_ENCODER].member)
#define DECODER(member) offsetof(model_description, stack[STACK_DECODER].member)
#define TABLE_END              \
    {                          \
        NULL, FIELD_BOOL, 0, 0 \
    }

const config_field t5_fields[] = {
    {"vocab_size", FIELD_ROWS, AT(vocabulary), 32128},
    {"d_model", FIELD_WIDTH, AT(width), 512},
    {"d_kv", FIELD_WIDTH, ENCODER(attention.head_width), 64},
    {"d_kv", FIELD_WIDTH, DECODER(attention.head_width), 64},
    {"d_ff", FIELD_WIDTH, ENCODER(inner), 2048},
    {"d_ff", FIELD_WIDTH, DECODER(inner), 2048},
    {"num_layers", FIELD_LAYERS, ENCODER(layers), 6},
    {"num_decoder_layers num_layers", FIELD_LAYERS, DECODER(layers), 6},
    {"num_heads", FIELD_HEADS, ENCODER(attention.heads), 8},
    {"num_heads", FIELD_HEADS, DECODER(attention.heads), 8},
    {"relative_attention_num_buckets", FIELD_WIDTH, ENCODER(attention.relative_buckets), 32},
    {"relative_attention_num_buckets", FIELD_WIDTH, DECODER(attention.relative_buckets), 32},
    {"relative_attention_max_distance", FIELD_WIDTH, ENCODER(attention.relative_distance), 128},
    {"relative_attention_max_distance", FIELD_WIDTH, DECODER(attention.relative_distance), 128},
    {"layer_norm_epsilon", FIELD_EPS, AT(norm_eps), 1e-6},
    {"pad_token_id", FIELD_TOKEN, AT(usage.pad), 0},
    {"eos_token_id", FIELD_END, AT(usage.end), 1},
    {"decoder_start_token_id pad_token_id", FIELD_TOKEN, AT(usage.decoder_start), 0},
    TABLE_END};

#define PAIR_SIZES(width_, layers_, heads_, inner_, activation_)                    \
    {"d_model", FIELD_WIDTH, AT(width), width_},                                    \
        {"encoder_layers", FIELD_LAYERS, ENCODER(layers), layers_},                 \
        {"decoder_layers", FIELD_LAYERS, DECODER(layers), layers_},                 \
        {"encoder_attention_heads", FIELD_HEADS, ENCODER(attention.heads), heads_}, \
        {"decoder_attention_heads", FIELD_HEADS, DECODER(attention.heads), heads_}, \
        {"encoder_ffn_dim", FIELD_WIDTH, ENCODER(inner), inner_},                   \
        {"decoder_ffn_dim", FIELD_WIDTH, DECODER(inner), inner_},                   \
        {"activation_function", FIELD_ACTIVATION, AT(activation), activation_},     \
        {"tie_word_embeddings", FIELD_BOOL, AT(tied), true},                        \
    {                                                                               \
        "forced_bos_token_id", FIELD_TOKEN, AT(usage.first), -1                     \
    }

const config_field bart_fields[] = {
    PAIR_SIZES(1024, 12, 16, 4096, MHA_ACTIVATION_GELU),
    {"vocab_size", FIELD_ROWS, AT(vocabulary), 50265},
    {"max_position_embeddings", FIELD_ROWS, AT(positions), 1024},
    {"pad_token_id", FIELD_TOKEN, AT(usage.pad), 1},
    {"bos_token_id", FIELD_TOKEN, AT(usage.begin), 0},
    {"eos_token_id", FIELD_END, AT(usage.end), 2},
    {"decoder_start_token_id", FIELD_TOKEN, AT(usage.decoder_start), 2},
    TABLE_END};

const config_field marian_fields[] = {
    PAIR_SIZES(1024, 12, 16, 4096, MHA_ACTIVATION_GELU),
    {"vocab_size", FIELD_ROWS, AT(source_vocabulary), 58101},
    {"decoder_vocab_size", FIELD_ROWS_ZERO, AT(vocabulary), 0},
    {"max_position_embeddings", FIELD_ROWS, AT(positions), 1024},
    {"pad_token_id", FIELD_TOKEN, AT(usage.pad), 58100},
    {"eos_token_id", FIELD_END, AT(usage.end), 0},
    {"decoder_start_token_id pad_token_id", FIELD_TOKEN, AT(usage.decoder_start), 58100},
    TABLE_END};

const config_field transformer_fields[] = {
    PAIR_SIZES(NAN, NAN, NAN, NAN, MHA_ACTIVATION_RELU),
    {"vocab_size", FIELD_ROWS, AT(vocabulary), NAN},
    {"source_vocab_size vocab_size", FIELD_ROWS, AT(source_vocabulary), NAN},
    {"max_position_embeddings", FIELD_ROWS_ZERO, AT(positions), 0},
    {"layer_norm_eps", FIELD_EPS, AT(norm_eps), 1e-5},
    {"normalize_before", FIELD_BOOL, AT(norm_first), false},
    {"position_offset", FIELD_ROWS_ZERO, ENCODER(embedding.position_offset), 0},
    {"position_offset", FIELD_ROWS_ZERO, DECODER(embedding.position_offset), 0},
    {"sine_steps", FIELD_WIDTH_ZERO, ENCODER(embedding.sine_steps), 0},
    {"sine_steps", FIELD_WIDTH_ZERO, DECODER(embedding.sine_steps), 0},
    {"source_end", FIELD_BOOL, AT(usage.source_end), true},
    {"pad_token_id", FIELD_TOKEN, AT(usage.pad), -1},
    {"bos_token_id", FIELD_TOKEN, AT(usage.begin), -1},
    {"eos_token_id", FIELD_END, AT(usage.end), NAN},
    {"decoder_start_token_id bos_token_id", FIELD_TOKEN, AT(usage.decoder_start), NAN},
    TABLE_END};

/* The keys of the metadata of a translator's file. */
const config_field translator_fields[] = {{"width", FIELD_WIDTH, AT(width), NAN},
                                          {"heads", FIELD_HEADS, ENCODER(attention.heads), NAN},
                                          {"heads", FIELD_HEADS, DECODER(attention.heads), NAN},
                                          {"ff_width", FIELD_WIDTH, ENCODER(inner), NAN},
                                          {"ff_width", FIELD_WIDTH, DECODER(inner), NAN},
                                          {"encoder_layers", FIELD_LAYERS, ENCODER(layers), NAN},
                                          {"decoder_layers", FIELD_LAYERS, DECODER(layers), NAN},
                                          {"source_words", FIELD_ROWS, AT(source_vocabulary), NAN},
                                          {"target_words", FIELD_ROWS, AT(vocabulary), NAN},
                                          {"positions", FIELD_ROWS, AT(positions), NAN},
                                          TABLE_END};

static void set_positions(model_description *d, position_kind kind, int offset)
{
    for (int s = 0; s < STACKS; s++) {
        d->stack[s].embedding.position = kind;
        d->stack[s].embedding.position_offset = offset;
    }
}

static mha_status read_embedding_scale(const config_reader *r, model_description *d)
{
    bool scaled = false;
    const mha_status status = config_read_bool(r, "scale_embedding", &scaled);
    for (int s = 0; s < STACKS; s++)
        d->stack[s].embedding.scale = scaled ? sqrtf((float)d->width) : 0.0f;
    return status;
}

/* "relu", "gated-gelu": whether the feed-forward is gated, and its activation. */
static mha_status read_feed_forward(const config_reader *r, model_description *d)
{
    char key[CONFIG_KEY_MAX];
    const config_value value = config_get_any(r, "feed_forward_proj", key);
    const char *name = value.type == CONFIG_TEXT ? value.text : "relu";
    d->gated = strncmp(name, "gated-", 6) == 0;
    name += d->gated ? 6 : 0;
    if (d->gated && strcmp(name, "gelu") == 0)
        name = "gelu_new";
    if (!config_activation(name, &d->activation))
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"feed_forward_proj\" is \"%s\", expected relu, gated-gelu or "
                           "gated-silu",
                           value.text);
    return MHA_OK;
}

/* A folder may have only the encoder. */
static bool only_encoder(const config_reader *r)
{
    const char *name = "";
    const json_value *const list = json_tree_member(r->object, "architectures");
    json_tree_get_string(json_tree_element(list, 0), &name, NULL);
    return strstr(name, "EncoderModel") != NULL;
}

mha_status describe_t5(const config_reader *r, model_description *d)
{
    bool scaled = true;
    d->norm = MHA_NORM_RMS;
    d->norm_first = true;
    set_positions(d, POSITION_RELATIVE, 0);
    for (int s = 0; s < STACKS; s++)
        d->stack[s].attention.scale = 1;
    if (only_encoder(r)) {
        d->kind = MHA_MODEL_ENCODER;
        d->stack[STACK_DECODER].layers = 0;
    }
    d->usage.source_end = true;
    const mha_status status =
        config_read_bool(r, "scale_decoder_outputs tie_word_embeddings", &scaled);
    d->logit_scale = scaled ? 1 / sqrtf((float)d->width) : 0.0f;
    return status ? status : read_feed_forward(r, d);
}

mha_status describe_bart(const config_reader *r, model_description *d)
{
    d->norm = MHA_NORM_LAYER;
    d->norm_eps = 1e-5f;
    d->usage.source_end = true;
    set_positions(d, POSITION_LEARNED, 2);
    return read_embedding_scale(r, d);
}

mha_status describe_mbart(const config_reader *r, model_description *d)
{
    d->norm_first = true;
    return describe_bart(r, d);
}

mha_status describe_marian(const config_reader *r, model_description *d)
{
    const mha_status status = describe_bart(r, d);
    bool normalize_before = false, norm_embedding = false;
    set_positions(d, POSITION_SINES, 0);
    if (d->vocabulary == 0)
        d->vocabulary = d->source_vocabulary;
    mha_status more = config_read_bool(r, "normalize_before", &normalize_before);
    if (!more)
        more = config_read_bool(r, "normalize_embedding", &norm_embedding);
    if (!more && (normalize_before || norm_embedding))
        more = config_fail(r, MHA_ERR_FORMAT, "\"%s\" is true, expected false",
                           normalize_before ? "normalize_before" : "normalize_embedding");
    return status ? status : more;
}

static const struct position_name {
    const char *name;
    position_kind kind;
} position_names[] = {{"sines", POSITION_SINES},
                      {"sines_alternating", POSITION_SINES_NEIGHBOURS},
                      {"learned", POSITION_LEARNED},
                      {"none", POSITION_NONE}};

mha_status describe_transformer(const config_reader *r, model_description *d)
{
    const config_value value = config_get(r, "position_embedding");
    d->norm = MHA_NORM_LAYER;
    for (size_t n = 0; n < sizeof position_names / sizeof position_names[0]; n++)
        if (strcmp(value.text, position_names[n].name) == 0) {
            for (int s = 0; s < STACKS; s++)
                d->stack[s].embedding.position = position_names[n].kind;
            return read_embedding_scale(r, d);
        }
    return config_fail(r, MHA_ERR_FORMAT,
                       "\"position_embedding\" is \"%s\", expected sines, sines_alternating, "
                       "learned or none",
                       value.text);
}

/* src/translator/transformer.h has the facts: WORD_BEGIN is 0 and WORD_END is 1. */
mha_status describe_translator(const config_reader *r, model_description *d)
{
    (void)r;
    d->norm = MHA_NORM_LAYER;
    d->norm_eps = 1e-5f;
    d->norm_first = true;
    d->activation = MHA_ACTIVATION_RELU;
    d->tied = true;
    set_positions(d, POSITION_SINES_NEIGHBOURS, 0);
    for (int s = 0; s < STACKS; s++)
        d->stack[s].embedding.scale = sqrtf((float)d->width);
    d->usage.begin = d->usage.decoder_start = 0;
    d->usage.end = 1;
    d->usage.source_end = true;
    return MHA_OK;
}
