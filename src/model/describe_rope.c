/* SPDX-License-Identifier: MIT */
/*
 * Rotary positions and windows of a model. Scaling becomes a table of frequencies here, so
 * that the forward pass needs to know no kind of it:
 *
 *      default   base^(-2n/width)
 *      linear    the same divided by a factor
 *      llama3    long waves divided by a factor, short ones not, and a ramp between them
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/describe.h"

typedef struct rope_scaling {
    double factor, low, high, original;
} rope_scaling;

static double frequency(const attention_description *a, int width, int n)
{
    return pow(a->rope_base, -2.0 * n / width);
}

/* Llama 3: waves longer than original/low positions are stretched, those shorter than original/high
 * are not. */
static double llama3_frequency(double plain, const rope_scaling *s)
{
    const double wave = 2 * acos(-1.0) / plain;
    if (wave > s->original / s->low)
        return plain / s->factor;
    if (wave < s->original / s->high)
        return plain;
    const double smooth = (s->original / wave - s->low) / (s->high - s->low);
    return (1 - smooth) * plain / s->factor + smooth * plain;
}

static float *new_frequencies(const model_description *d, attention_description *a, int *width)
{
    *width = a->rope_width ? a->rope_width : a->head_width ? a->head_width : d->width / a->heads;
    return calloc((size_t)*width / 2 + 1, sizeof(float));
}

static mha_status scale(const config_reader *r, model_description *d, const rope_scaling *s,
                        bool llama3)
{
    attention_description *const a = &d->stack[STACK_DECODER].attention;
    int width;
    a->rope_frequencies = new_frequencies(d, a, &width);
    if (!a->rope_frequencies)
        return config_fail_memory(r);
    for (int n = 0; n < width / 2; n++) {
        const double plain = frequency(a, width, n);
        a->rope_frequencies[n] = (float)(llama3 ? llama3_frequency(plain, s) : plain / s->factor);
    }
    return MHA_OK;
}

static mha_status read_llama3(const config_reader *r, const char *const keys[4], rope_scaling *s)
{
    mha_status status = config_read_number(r, keys[1], 1e-6, 1e6, &s->low);
    if (!status)
        status = config_read_number(r, keys[2], 1e-6, 1e6, &s->high);
    if (!status)
        status = config_read_number(r, keys[3], 1, 1e9, &s->original);
    if (!status && !(s->high > s->low))
        status = config_fail(r, MHA_ERR_FORMAT,
                             "\"high_freq_factor\" is %g, expected more than \"low_freq_factor\", "
                             "which is %g",
                             s->high, s->low);
    return status;
}

/* `type` and four keys: factor, low, high, original. */
static mha_status scale_by(const config_reader *r, model_description *d, const char *type,
                           const char *const keys[4])
{
    rope_scaling s = {.factor = 1, .low = 1, .high = 4, .original = 8192};
    const bool llama3 = strcmp(type, "llama3") == 0;
    if (strcmp(type, "default") == 0 || strcmp(type, "none") == 0)
        return MHA_OK;
    if (!llama3 && strcmp(type, "linear") != 0)
        return config_fail(r, MHA_ERR_FORMAT,
                           "the rotary positions are scaled by \"%s\", expected default, linear or "
                           "llama3",
                           type);
    mha_status status = config_read_number(r, keys[0], 1e-6, 1e6, &s.factor);
    if (!status && llama3)
        status = read_llama3(r, keys, &s);
    return status ? status : scale(r, d, &s, llama3);
}

mha_status describe_rope(const config_reader *r, model_description *d, double base)
{
    attention_description *const a = &d->stack[STACK_DECODER].attention;
    static const char original[] = "rope_parameters.original_max_position_embeddings "
                                   "rope_scaling.original_max_position_embeddings";
    static const char *const keys[4] = {
        "rope_parameters.factor rope_parameters.full_attention.factor rope_scaling.factor",
        "rope_parameters.low_freq_factor rope_scaling.low_freq_factor",
        "rope_parameters.high_freq_factor rope_scaling.high_freq_factor", original};
    char key[CONFIG_KEY_MAX];
    d->stack[STACK_DECODER].embedding.position = POSITION_ROTARY;
    a->rope_pairs = MHA_ROPE_HALVES;
    a->rope_base = base;
    const mha_status status = config_read_number(
        r, "rope_parameters.rope_theta rope_parameters.full_attention.rope_theta rope_theta", 1,
        1e12, &a->rope_base);
    if (status)
        return status;
    const config_value type = config_get_any(
        r,
        "rope_parameters.rope_type rope_parameters.full_attention.rope_type rope_parameters.type "
        "rope_scaling.rope_type rope_scaling.type",
        key);
    return scale_by(r, d, type.type == CONFIG_TEXT ? type.text : "default", keys);
}

mha_status describe_rope_gguf(const config_reader *r, model_description *d, double base)
{
    attention_description *const a = &d->stack[STACK_DECODER].attention;
    static const char *const keys[4] = {"rope.scaling.factor rope.scale_linear", "", "", ""};
    double width = 0;
    d->stack[STACK_DECODER].embedding.position = POSITION_ROTARY;
    a->rope_base = base;
    mha_status status = config_read_number(r, "rope.freq_base", 1, 1e12, &a->rope_base);
    if (!status)
        status = config_read_number(r, "rope.dimension_count", 0, MHA_MAX_HEAD_WIDTH, &width);
    if (status)
        return status;
    if (width != a->head_width)
        a->rope_width = (int)width;
    const config_value type = config_get(r, "rope.scaling.type");
    const bool linear = config_get(r, "rope.scale_linear").type == CONFIG_NUMBER;
    return scale_by(r, d, type.type == CONFIG_TEXT ? type.text : linear ? "linear" : "none", keys);
}

/* -------------------------------------------------------------- windows ----- */

/* True if the layers with a window are those that `a` gives. */
static bool windows_match(const attention_description *a, const bool *windowed, int layers)
{
    for (int n = 0; n < layers; n++)
        if (windowed[n] != (attention_window(a, n) > 0))
            return false;
    return true;
}

static mha_status read_layer_types(const config_reader *r, const json_value *types, int layers,
                                   bool *windowed)
{
    if (json_tree_count(types) != (size_t)layers)
        return config_fail(r, MHA_ERR_FORMAT, "\"layer_types\" has %zu elements, expected %d",
                           json_tree_count(types), layers);
    for (int n = 0; n < layers; n++) {
        const char *text = "";
        json_tree_get_string(json_tree_element(types, (size_t)n), &text, NULL);
        windowed[n] = strcmp(text, "sliding_attention") == 0;
        if (!windowed[n] && strcmp(text, "full_attention") != 0)
            return config_fail(r, MHA_ERR_FORMAT,
                               "element %d of \"layer_types\" is \"%.40s\", expected "
                               "full_attention or sliding_attention",
                               n, text);
    }
    return MHA_OK;
}

mha_status describe_windows(const config_reader *r, attention_description *a, int layers)
{
    bool windowed[MODEL_LAYERS_MAX] = {false};
    const json_value *const types = json_tree_member(r->object, "layer_types");
    if (json_tree_type_of(types) != JSON_TREE_ARRAY)
        return MHA_OK;
    const mha_status status = read_layer_types(r, types, layers, windowed);
    if (status)
        return status;
    int first = 0, whole = 0;
    while (first < layers && !windowed[first])
        first++;
    while (whole < layers && windowed[whole])
        whole++;
    a->window = first < layers ? a->window : 0;
    a->window_from = first < layers ? first : 0;
    a->window_every = 0;
    if (a->window == 0 || windows_match(a, windowed, layers))
        return MHA_OK;
    a->window_from = 0;
    a->window_every = whole + 1;
    return windows_match(a, windowed, layers)
               ? MHA_OK
               : config_fail(r, MHA_ERR_FORMAT,
                             "\"layer_types\" has an order that is not supported: expected a "
                             "window in all layers from one on, or in all but every n-th");
}
