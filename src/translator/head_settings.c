/* SPDX-License-Identifier: MIT */
/* Arrays of gates, modes and means of all heads, and the options that refer to them. */
#include "translator/head_settings.h"

#include <stdlib.h>
#include <string.h>

const char *attention_kind_name(attention_kind kind)
{
    static const char *const names[ATTENTION_KINDS] = {"encoder", "decoder", "cross"};
    return names[kind];
}

int attention_kind_layers(const transformer_config *config, attention_kind kind)
{
    return config->layers[kind == ATTENTION_ENCODER ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET];
}

static size_t count_gates(const head_settings *s, int kind)
{
    return (size_t)s->layers[kind] * (size_t)s->sentences * (size_t)s->heads;
}

static size_t count_heads(const head_settings *s, int kind)
{
    return (size_t)s->layers[kind] * (size_t)s->heads;
}

/* Allocates the arrays of one kind, with gates of 1; a kind may have no layers. After a failure
 * head_settings_free() frees what there is. */
static bool make_kind(head_settings *s, int kind)
{
    const size_t gates = count_gates(s, kind), heads = count_heads(s, kind);
    s->gates[kind] = malloc((gates + 1) * sizeof *s->gates[kind]);
    s->d_gates[kind] = calloc(gates + 1, sizeof *s->d_gates[kind]);
    s->modes[kind] = calloc(heads + 1, sizeof *s->modes[kind]);
    s->means[kind] = calloc((heads + 1) * (size_t)s->width, sizeof *s->means[kind]);
    if (!s->gates[kind] || !s->d_gates[kind] || !s->modes[kind] || !s->means[kind])
        return false;
    for (size_t n = 0; n < gates; n++)
        s->gates[kind][n] = 1.0f;
    return true;
}

head_settings *head_settings_create(const transformer_config *config, int sentences)
{
    head_settings *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->heads = config->heads;
    s->width = config->width / config->heads;
    s->sentences = sentences;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        s->layers[kind] = attention_kind_layers(config, (attention_kind)kind);
        if (!make_kind(s, kind)) {
            head_settings_free(s);
            return NULL;
        }
    }
    return s;
}

void head_settings_free(head_settings *s)
{
    if (!s)
        return;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        free(s->gates[kind]);
        free(s->d_gates[kind]);
        free(s->modes[kind]);
        free(s->means[kind]);
    }
    free(s);
}

/* HEAD_ZERO is done by a gate of 0, so its mode is normal. */
static uint8_t mode_of(head_mode change)
{
    switch (change) {
    case HEAD_UNIFORM:
        return MHA_HEAD_UNIFORM;
    case HEAD_MEAN:
        return MHA_HEAD_MEAN;
    default:
        return MHA_HEAD_NORMAL;
    }
}

void head_settings_change(head_settings *s, attention_kind kind, int layer, int head,
                          head_mode change)
{
    float *const gates = s->gates[kind] + (ptrdiff_t)layer * s->sentences * s->heads;
    for (int n = 0; n < s->sentences; n++)
        gates[(ptrdiff_t)n * s->heads + head] = change == HEAD_ZERO ? 0.0f : 1.0f;
    s->modes[kind][(ptrdiff_t)layer * s->heads + head] = mode_of(change);
}

void head_settings_fill(const head_settings *s, attention_kind kind, int layer,
                        mha_options *options)
{
    const ptrdiff_t first = (ptrdiff_t)layer * s->heads;
    options->gates = s->gates[kind] + first * s->sentences;
    options->gates_sb = s->sentences > 1 ? s->heads : 0;
    /* Set only if needed: the backward pass refuses modes, even if all of them are normal. */
    for (int h = 0; h < s->heads; h++)
        if (s->modes[kind][first + h] != MHA_HEAD_NORMAL) {
            options->head_modes = s->modes[kind] + first;
            options->head_means = s->means[kind] + first * s->width;
        }
}

float *head_settings_gradients(const head_settings *s, attention_kind kind, int layer)
{
    return s->d_gates[kind] + (ptrdiff_t)layer * s->sentences * s->heads;
}
