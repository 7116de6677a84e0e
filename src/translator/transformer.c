/* SPDX-License-Identifier: MIT */
/* The layout, names and initial values of the parameters of a transformer, and the limits of its
 * configuration. */
#include "translator/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assignment.h"
#include "base/rng.h"

/* --------------------------------------------------------------- check ----- */

/* Larger than any model this is meant for, and small enough that no product of two overflows. */
enum { WIDTH_MAX = 1 << 14, INSIDE_MAX = 1 << 16, WORDS_MAX = 1 << 20, POSITIONS_MAX = 1 << 16 };
enum {
    VISION_CLASSES_MAX = 1000,
    VISION_SIDE_MAX = 1024,
    VISION_CHANNELS_MAX = 4,
    VISION_PATCH_MAX = 64
};

typedef struct config_limit {
    const char *name;
    int value, least, most;
} config_limit;

static bool within(const config_limit *limit, char message[TRANSFORMER_MESSAGE_MAX])
{
    if (limit->value >= limit->least && limit->value <= limit->most)
        return true;
    snprintf(message, TRANSFORMER_MESSAGE_MAX, "%s must be between %d and %d, not %d", limit->name,
             limit->least, limit->most, limit->value);
    return false;
}

const char *transformer_form_name(transformer_form form)
{
    static const char *const names[FORMS] = {"laboratory", "marian", "vision", "captions",
                                             "detection"};
    return names[form];
}

const char *vision_pooling_name(vision_pooling pooling)
{
    static const char *const names[VISION_POOLINGS] = {"class", "mean"};
    return names[pooling];
}

const char *vision_places_name(vision_places places)
{
    static const char *const names[VISION_PLACES] = {"learned", "sines"};
    return names[places];
}

static bool check_limits(const config_limit *limits, size_t count,
                         char message[TRANSFORMER_MESSAGE_MAX])
{
    for (size_t n = 0; n < count; n++)
        if (!within(&limits[n], message))
            return false;
    return true;
}

static bool check_heads(const transformer_config *config, char message[TRANSFORMER_MESSAGE_MAX])
{
    const int head = config->width / config->heads;
    if (config->width % config->heads == 0 && head <= MHA_MAX_HEAD_WIDTH)
        return true;
    snprintf(message, TRANSFORMER_MESSAGE_MAX,
             "the width %d must be a multiple of the %d heads, at most %d times as large",
             config->width, config->heads, MHA_MAX_HEAD_WIDTH);
    return false;
}

/* The classes of a classifier or detector, or the words of captions. */
static bool check_outputs(const transformer_config *config, char message[TRANSFORMER_MESSAGE_MAX])
{
    const bool says = config->form == FORM_CAPTIONS, finds = config->form == FORM_DETECTION;
    const int *const words = config->words, *const layers = config->layers;
    const config_limit limits[] = {
        {"the number of decoder layers", layers[TRANSFORMER_TARGET], says || finds,
         says || finds ? TRANSFORMER_LAYERS_MAX : 0},
        {finds ? "the number of classes of the first kind" : "the number of source words",
         words[TRANSFORMER_SOURCE], finds, finds ? VISION_CLASSES_MAX : 0},
        {says ? "the number of words" : "the number of classes", words[TRANSFORMER_TARGET],
         says ? WORDS_SPECIAL + 1 : 2, says ? WORDS_MAX : VISION_CLASSES_MAX},
    };
    return check_limits(limits, sizeof limits / sizeof limits[0], message);
}

/* How long the sentences of the target are, and patches of the pictures. */
static bool check_tokens(const transformer_config *config, char message[TRANSFORMER_MESSAGE_MAX])
{
    const int tokens = vision_tokens(&config->vision);
    const config_limit limits[] = {
        {"the number of patches", tokens, 2, POSITIONS_MAX},
        config->form == FORM_DETECTION
            ? (config_limit){"the number of queries", config->positions, 1, ASSIGNMENT_MAX}
        : config->form == FORM_CAPTIONS
            ? (config_limit){"the number of positions", config->positions, 2, POSITIONS_MAX}
            : (config_limit){"the number of positions", config->positions, tokens, tokens}};
    return check_limits(limits, sizeof limits / sizeof limits[0], message);
}

static bool check_vision(const transformer_config *config, char message[TRANSFORMER_MESSAGE_MAX])
{
    const vision_shape *const v = &config->vision;
    const int *const layers = config->layers;
    const bool says = config->form == FORM_CAPTIONS, finds = config->form == FORM_DETECTION;
    const config_limit limits[] = {
        {"the width", config->width, 2, WIDTH_MAX},
        {"the number of heads", config->heads, 1, WIDTH_MAX},
        {"the width inside the feed-forward", config->ff_width, 1, INSIDE_MAX},
        {"the number of encoder layers", layers[TRANSFORMER_SOURCE], 1, TRANSFORMER_LAYERS_MAX},
        {"the side of the pictures", v->side, 1, VISION_SIDE_MAX},
        {"the number of channels", v->channels, 1, VISION_CHANNELS_MAX},
        {"the side of a patch", v->patch, 1,
         v->side < VISION_PATCH_MAX ? v->side : VISION_PATCH_MAX},
        {"the stride of the patches", v->stride, 1, v->patch},
    };
    if (!check_limits(limits, sizeof limits / sizeof limits[0], message) ||
        !check_outputs(config, message) || !check_tokens(config, message))
        return false;
    if (says && (config->width % 2 != 0 || v->pooling != VISION_MEAN)) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX,
                 "captions need an even width, not %d, and pictures without a token of the class",
                 config->width);
        return false;
    }
    if (finds && v->pooling != VISION_MEAN) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX,
                 "a detector needs pictures without a token of the class");
        return false;
    }
    if (v->places == VISION_SINES && config->width % 4 != 0) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX,
                 "with sines the width must be a multiple of 4, not %d", config->width);
        return false;
    }
    return check_heads(config, message);
}

bool transformer_config_check(const transformer_config *config,
                              char message[TRANSFORMER_MESSAGE_MAX])
{
    if (transformer_reads_pictures(config))
        return check_vision(config, message);
    const int *const layers = config->layers, *const words = config->words;
    const config_limit limits[] = {
        {"the width", config->width, 2, WIDTH_MAX},
        {"the number of heads", config->heads, 1, WIDTH_MAX},
        {"the width inside the feed-forward", config->ff_width, 1, INSIDE_MAX},
        {"the number of encoder layers", layers[TRANSFORMER_SOURCE], 1, TRANSFORMER_LAYERS_MAX},
        {"the number of decoder layers", layers[TRANSFORMER_TARGET], 1, TRANSFORMER_LAYERS_MAX},
        {"the number of source words", words[TRANSFORMER_SOURCE], WORDS_SPECIAL + 1, WORDS_MAX},
        {"the number of target words", words[TRANSFORMER_TARGET], WORDS_SPECIAL + 1, WORDS_MAX},
        {"the number of positions", config->positions, 2, POSITIONS_MAX},
    };
    if (!check_limits(limits, sizeof limits / sizeof limits[0], message))
        return false;
    if (config->width % 2 != 0) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "the width must be even, not %d", config->width);
        return false;
    }
    if (config->form == FORM_MARIAN && words[TRANSFORMER_SOURCE] != words[TRANSFORMER_TARGET]) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX,
                 "both sides share one vocabulary, so they cannot have %d and %d words",
                 words[TRANSFORMER_SOURCE], words[TRANSFORMER_TARGET]);
        return false;
    }
    return check_heads(config, message);
}

/* ----------------------------------------------------------------- map ----- */

/* Visits all parameters in order, assigns the offset of each, and lists them if there is a list.
 * The order defines the layout of checkpoints in memory and the random series of each tensor. */
typedef struct surveyor {
    const transformer_config *config;
    transformer_tensor *list; /* or NULL */
    int count;
    size_t at;
    char prefix[TRANSFORMER_NAME_MAX / 2]; /* "decoder.layers.0." */
} surveyor;

/* Adds a tensor and returns its offset. `columns` is 0 for rank 1, `what` NULL for a name of one
 * part. */
static size_t add_tensor(surveyor *s, const char *name, const char *what, parameter_kind kind,
                         int rows, int columns)
{
    const size_t at = s->at, count = (size_t)rows * (size_t)(columns > 0 ? columns : 1);
    if (s->list) {
        transformer_tensor *const tensor = &s->list[s->count];
        *tensor = (transformer_tensor){.rank = columns > 0 ? 2 : 1,
                                       .shape = {rows, columns > 0 ? columns : 1},
                                       .at = at,
                                       .count = count,
                                       .kind = kind};
        snprintf(tensor->name, sizeof tensor->name, "%s%s%s%s", s->prefix, name, what ? "." : "",
                 what ? what : "");
    }
    s->count++;
    s->at += count;
    return at;
}

static weight_at add_linear(surveyor *s, const char *name, int outputs, int inputs)
{
    weight_at at;
    at.weight = add_tensor(s, name, "weight", PARAMETER_MATRIX, outputs, inputs);
    at.bias = add_tensor(s, name, "bias", PARAMETER_BIAS, outputs, 0);
    return at;
}

static weight_at add_norm(surveyor *s, const char *name)
{
    weight_at at;
    at.weight = add_tensor(s, name, "weight", PARAMETER_NORM, s->config->width, 0);
    at.bias = add_tensor(s, name, "bias", PARAMETER_BIAS, s->config->width, 0);
    return at;
}

/* Names of the norm and of the four projections of an attention; and those of a feed-forward. */
typedef struct attention_names {
    const char *norm, *q, *k, *v, *o;
} attention_names;

typedef struct feed_forward_names {
    const char *norm, *in, *out;
} feed_forward_names;

static const attention_names self_names = {"self_attn_layer_norm", "self_attn.q_proj",
                                           "self_attn.k_proj", "self_attn.v_proj",
                                           "self_attn.out_proj"};
static const attention_names cross_names = {"encoder_attn_layer_norm", "encoder_attn.q_proj",
                                            "encoder_attn.k_proj", "encoder_attn.v_proj",
                                            "encoder_attn.out_proj"};

static const attention_names vision_names = {"layernorm_before", "attention.attention.query",
                                             "attention.attention.key", "attention.attention.value",
                                             "attention.output.dense"};

static const feed_forward_names text_ff_names = {"final_layer_norm", "fc1", "fc2"};
static const feed_forward_names vision_ff_names = {"layernorm_after", "intermediate.dense",
                                                   "output.dense"};

static attention_at add_attention(surveyor *s, const attention_names *names)
{
    const int width = s->config->width;
    attention_at at;
    at.norm = add_norm(s, names->norm);
    at.q = add_linear(s, names->q, width, width);
    at.k = add_linear(s, names->k, width, width);
    at.v = add_linear(s, names->v, width, width);
    at.o = add_linear(s, names->o, width, width);
    return at;
}

static feed_forward_at add_feed_forward(surveyor *s, const feed_forward_names *names)
{
    const int width = s->config->width, inside = s->config->ff_width;
    feed_forward_at at;
    at.norm = add_norm(s, names->norm);
    at.in = add_linear(s, names->in, inside, width);
    at.out = add_linear(s, names->out, width, inside);
    return at;
}

static size_t add_embedding(surveyor *s, const char *name, int side)
{
    return add_tensor(s, name, "weight", PARAMETER_EMBEDDING, s->config->words[side],
                      s->config->width);
}

static size_t add_queries(surveyor *s)
{
    return add_tensor(s, "queries", NULL, PARAMETER_EMBEDDING, s->config->positions,
                      s->config->width);
}

static void add_side(surveyor *s, transformer_map *map, int side)
{
    const bool own = s->config->form != FORM_MARIAN; /* embeddings and last norms */
    const char *const name = side == TRANSFORMER_SOURCE ? "encoder" : "decoder";
    snprintf(s->prefix, sizeof s->prefix, "%s.", name);
    if (own)
        map->embedding[side] = s->config->form == FORM_DETECTION
                                   ? add_queries(s)
                                   : add_embedding(s, "embed_tokens", side);
    for (int n = 0; n < s->config->layers[side]; n++) {
        layer_at *const layer = &map->layers[side][n];
        snprintf(s->prefix, sizeof s->prefix, "%s.layers.%d.", name, n);
        layer->self = add_attention(s, &self_names);
        if (side == TRANSFORMER_TARGET)
            layer->cross = add_attention(s, &cross_names);
        layer->ff = add_feed_forward(s, &text_ff_names);
    }
    snprintf(s->prefix, sizeof s->prefix, "%s.", name);
    if (own)
        map->norm[side] = add_norm(s, "layer_norm");
}

/* In the order and with the names of ViTForImageClassification, up to its classifier. */
static void add_vision(surveyor *s, transformer_map *map)
{
    const vision_shape *const v = &s->config->vision;
    const int width = s->config->width;
    snprintf(s->prefix, sizeof s->prefix, "vit.embeddings.");
    if (vision_marks(v) > 0)
        map->vision.mark = add_tensor(s, "cls_token", NULL, PARAMETER_EMBEDDING, 1, width);
    if (v->places == VISION_LEARNED)
        map->vision.places = add_tensor(s, "position_embeddings", NULL, PARAMETER_EMBEDDING,
                                        vision_tokens(v), width);
    map->vision.patches =
        add_linear(s, "patch_embeddings.projection", width, v->channels * v->patch * v->patch);
    for (int n = 0; n < s->config->layers[TRANSFORMER_SOURCE]; n++) {
        layer_at *const layer = &map->layers[TRANSFORMER_SOURCE][n];
        snprintf(s->prefix, sizeof s->prefix, "vit.encoder.layer.%d.", n);
        layer->self = add_attention(s, &vision_names);
        layer->ff = add_feed_forward(s, &vision_ff_names);
    }
    snprintf(s->prefix, sizeof s->prefix, "vit.");
    map->norm[TRANSFORMER_SOURCE] = add_norm(s, "layernorm");
    s->prefix[0] = '\0';
}

static int survey(const transformer_config *config, transformer_map *map, transformer_tensor *list)
{
    surveyor s = {.config = config, .list = list};
    memset(map, 0, sizeof *map);
    if (config->form == FORM_MARIAN)
        map->embedding[TRANSFORMER_SOURCE] = map->embedding[TRANSFORMER_TARGET] =
            add_embedding(&s, "shared", TRANSFORMER_SOURCE);
    if (transformer_reads_pictures(config))
        add_vision(&s, map);
    else
        add_side(&s, map, TRANSFORMER_SOURCE);
    if (config->form == FORM_VISION)
        map->vision.classifier =
            add_linear(&s, "classifier", config->words[TRANSFORMER_TARGET], config->width);
    else
        add_side(&s, map, TRANSFORMER_TARGET);
    s.prefix[0] = '\0';
    if (config->form == FORM_DETECTION)
        map->vision.classifier =
            add_linear(&s, "detector", transformer_outputs(config), config->width);
    map->count = s.at;
    return s.count;
}

void transformer_map_fill(transformer_map *map, const transformer_config *config)
{
    survey(config, map, NULL);
}

int transformer_tensors(const transformer_config *config,
                        transformer_tensor list[TRANSFORMER_TENSORS_MAX])
{
    transformer_map map;
    return survey(config, &map, list);
}

/* ---------------------------------------------------------------- init ----- */

static void fill_embedding(rng *r, const transformer_tensor *tensor, float *values)
{
    const double deviation = sqrt(1.0 / tensor->shape[1]);
    for (size_t n = 0; n < tensor->count; n++)
        values[n] = (float)(rng_normal(r) * deviation);
}

static void fill_matrix(rng *r, const transformer_tensor *tensor, float *values)
{
    const double bound = sqrt(6.0 / ((double)tensor->shape[0] + (double)tensor->shape[1]));
    for (size_t n = 0; n < tensor->count; n++)
        values[n] = (float)((2.0 * rng_unit(r) - 1.0) * bound);
}

static void fill_vector(const transformer_tensor *tensor, float value, float *values)
{
    for (size_t n = 0; n < tensor->count; n++)
        values[n] = value;
}

/* Every tensor has its own random series, so that it does not depend on the sizes of others. */
void transformer_init(const transformer_config *config, uint64_t seed, float *values)
{
    transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    const int count = transformer_tensors(config, list);
    for (int n = 0; n < count; n++) {
        rng r = rng_for(seed, (uint64_t)n);
        float *const at = values + list[n].at;
        if (list[n].kind == PARAMETER_EMBEDDING)
            fill_embedding(&r, &list[n], at);
        else if (list[n].kind == PARAMETER_MATRIX)
            fill_matrix(&r, &list[n], at);
        else
            fill_vector(&list[n], list[n].kind == PARAMETER_NORM ? 1.0f : 0.0f, at);
    }
}

static void scale_attention(const attention_at *at, size_t count, float gain, float *values)
{
    const size_t starts[] = {at->q.weight, at->k.weight, at->v.weight};
    for (int n = 0; n < 3; n++)
        for (size_t e = 0; e < count; e++)
            values[starts[n] + e] *= gain;
}

void transformer_scale_attention(const transformer_config *config, double gain, float *values)
{
    transformer_map map;
    transformer_map_fill(&map, config);
    const size_t count = (size_t)config->width * (size_t)config->width;
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        for (int n = 0; n < config->layers[side]; n++) {
            scale_attention(&map.layers[side][n].self, count, (float)gain, values);
            if (side == TRANSFORMER_TARGET)
                scale_attention(&map.layers[side][n].cross, count, (float)gain, values);
        }
}

/* --------------------------------------------------------------- layer ----- */

mha_layer_weights transformer_layer_weights(const transformer_config *config,
                                            const attention_at *at, const float *values)
{
    const ptrdiff_t width = config->width;
    return (mha_layer_weights){.size = sizeof(mha_layer_weights),
                               .q = mha_matrix_out_in(values + at->q.weight, MHA_F32, width),
                               .k = mha_matrix_out_in(values + at->k.weight, MHA_F32, width),
                               .v = mha_matrix_out_in(values + at->v.weight, MHA_F32, width),
                               .o = mha_matrix_out_in(values + at->o.weight, MHA_F32, width),
                               .q_bias = {values + at->q.bias, MHA_F32},
                               .k_bias = {values + at->k.bias, MHA_F32},
                               .v_bias = {values + at->v.bias, MHA_F32},
                               .o_bias = {values + at->o.bias, MHA_F32}};
}

mha_layer_gradients transformer_layer_gradients(const transformer_config *config,
                                                const attention_at *at, float *gradients)
{
    const ptrdiff_t width = config->width;
    return (mha_layer_gradients){.size = sizeof(mha_layer_gradients),
                                 .q = {gradients + at->q.weight, width, 1},
                                 .k = {gradients + at->k.weight, width, 1},
                                 .v = {gradients + at->v.weight, width, 1},
                                 .o = {gradients + at->o.weight, width, 1},
                                 .q_bias = gradients + at->q.bias,
                                 .k_bias = gradients + at->k.bias,
                                 .v_bias = gradients + at->v.bias,
                                 .o_bias = gradients + at->o.bias};
}
