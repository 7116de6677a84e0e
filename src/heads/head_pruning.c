/* SPDX-License-Identifier: MIT */
/*
 * Greedy pruning with two evaluations (head_eval.c): one chooses the next head, one measures the
 * model that is left. A pruned head is one with gate 0 in `settings`; only the cost is measured on
 * layers that have really become smaller.
 */
#include "heads/head_pruning.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "translator/translator.h"

struct head_pruning {
    const translator *model;
    head_eval *choose, *test;
    head_settings *settings; /* gate 0: pruned */
    head_loss *each;         /* [test sentences] of the latest evaluation */
    double *raw, *normal;    /* [heads] importance */
    int heads, left;         /* of the model, and those not pruned */
};

head_pruning *head_pruning_create(const translator *model, const head_pair *choose,
                                  int choose_count, const head_pair *test, int test_count,
                                  mha_pool *pool)
{
    head_pruning *const p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->model = model;
    p->heads = p->left = head_count(head_shape_of(translator_config(model)));
    p->choose = head_eval_create(model, choose, choose_count, pool);
    p->test = head_eval_create(model, test, test_count, pool);
    p->settings = head_settings_create(translator_config(model), 1);
    p->each = malloc((size_t)test_count * sizeof *p->each);
    p->raw = malloc((size_t)p->heads * sizeof *p->raw);
    p->normal = malloc((size_t)p->heads * sizeof *p->normal);
    if (p->choose && p->test && p->settings && p->each && p->raw && p->normal)
        return p;
    head_pruning_free(p);
    return NULL;
}

void head_pruning_free(head_pruning *p)
{
    if (!p)
        return;
    head_eval_free(p->choose);
    head_eval_free(p->test);
    head_settings_free(p->settings);
    free(p->each);
    free(p->raw);
    free(p->normal);
    free(p);
}

int head_pruning_left(const head_pruning *p)
{
    return p->left;
}

bool head_pruning_keeps(const head_pruning *p, int head)
{
    const head_name name = head_at(head_shape_of(translator_config(p->model)), head);
    return p->settings->gates[name.kind][name.layer * p->settings->heads + name.head] != 0.0f;
}

mha_status head_pruning_measure(head_pruning *p, pruning_step *step)
{
    const mha_status status = head_eval_run(p->test, p->settings, p->each, NULL);
    *step = (pruning_step){.pruned = -1};
    if (status == MHA_OK)
        step->total = head_total_of(p->each, head_eval_sentences(p->test));
    return status;
}

mha_status head_pruning_prune(head_pruning *p, pruning_step *step)
{
    int least = -1;
    mha_status status = head_eval_importance(p->choose, p->settings, p->raw, p->normal);
    if (status != MHA_OK)
        return status;
    for (int head = 0; head < p->heads; head++)
        if (head_pruning_keeps(p, head) && (least < 0 || p->raw[head] < p->raw[least]))
            least = head;
    const head_name name = head_at(head_shape_of(translator_config(p->model)), least);
    head_settings_change(p->settings, name.kind, name.layer, name.head, HEAD_ZERO);
    p->left--;
    status = head_pruning_measure(p, step);
    step->pruned = least;
    step->importance = p->raw[least];
    return status;
}

/* -------------------------------------------------------- what is left ----- */

/* The packed attention layer that a head belongs to. */
static const mha_layer *layer_of(const translator *model, head_name name)
{
    const int side = name.kind == ATTENTION_ENCODER ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET;
    const coder_layer *const layer = translator_layer(model, side, name.layer);
    return name.kind == ATTENTION_CROSS ? layer->cross : layer->self;
}

enum { COST_SENTENCES = 32, COST_ROWS = 16, COST_TIMES = 9 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Adds a layer to the cost. x: its input, [COST_SENTENCES][COST_ROWS][E], then room for as much
 * output. */
static mha_status add_cost(const mha_layer *layer, float *x, attention_cost *cost)
{
    const ptrdiff_t E = mha_layer_get_config(layer).E;
    const mha_layer_call call = {.size = sizeof call,
                                 .B = COST_SENTENCES,
                                 .L = COST_ROWS,
                                 .query = mha_view_ble(x, COST_ROWS, E),
                                 .output =
                                     mha_out_ble(x + COST_SENTENCES * COST_ROWS * E, COST_ROWS, E)};
    double best = 1e9;
    for (int n = 0; n < COST_TIMES; n++) {
        const double begin = now();
        const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
        const double seconds = now() - begin;
        if (status != MHA_OK)
            return status;
        best = seconds < best ? seconds : best;
    }
    cost->bytes += mha_layer_bytes(layer);
    cost->seconds += best;
    return MHA_OK;
}

/* Adds the layer whose first head has number `first` to both costs. keep: [heads of a layer], room
 * for the argument of mha_layer_prune(). */
static mha_status add_costs(const head_pruning *p, int first, uint8_t *keep, float *x,
                            attention_cost *before, attention_cost *after)
{
    const mha_layer *const whole =
        layer_of(p->model, head_at(head_shape_of(translator_config(p->model)), first));
    mha_layer *pruned;
    int left = 0;
    for (int h = 0; h < p->settings->heads; h++)
        left += keep[h] = head_pruning_keeps(p, first + h);
    mha_status status = add_cost(whole, x, before);
    if (left == 0 || status != MHA_OK)
        return status;
    status = mha_layer_prune(&pruned, whole, keep, NULL, 0);
    if (status == MHA_OK)
        status = add_cost(pruned, x, after);
    mha_layer_free(pruned);
    return status;
}

mha_status head_pruning_cost(const head_pruning *p, attention_cost *before, attention_cost *after)
{
    const size_t size =
        (size_t)COST_SENTENCES * COST_ROWS * (size_t)translator_config(p->model)->width;
    uint8_t *const keep = malloc((size_t)p->settings->heads);
    float *const x = calloc(2 * size, sizeof *x);
    mha_status status = keep && x ? MHA_OK : MHA_ERR_MEMORY;
    *before = *after = (attention_cost){0};
    /* Any values from -1 to 1: the time does not depend on them. */
    for (size_t n = 0; n < size && status == MHA_OK; n++)
        x[n] = (float)(n % 31) / 15.0f - 1.0f;
    for (int first = 0; first < p->heads && status == MHA_OK; first += p->settings->heads)
        status = add_costs(p, first, keep, x, before, after);
    free(keep);
    free(x);
    return status;
}

/* The output projection of the attention that a head belongs to. */
static const weight_at *output_of(const translator *model, head_name name)
{
    const int side = name.kind == ATTENTION_ENCODER ? TRANSFORMER_SOURCE : TRANSFORMER_TARGET;
    const layer_at *const at = &translator_map(model)->layers[side][name.layer];
    return name.kind == ATTENTION_CROSS ? &at->cross.o : &at->self.o;
}

float *head_pruning_values(const head_pruning *p)
{
    const translator *const model = p->model;
    const size_t E = (size_t)translator_config(model)->width,
                 D = E / (size_t)translator_config(model)->heads;
    float *const values = malloc(translator_map(model)->count * sizeof *values);
    if (!values)
        return NULL;
    memcpy(values, translator_values(model), translator_map(model)->count * sizeof *values);
    for (int head = 0; head < p->heads; head++) {
        const head_name name = head_at(head_shape_of(translator_config(model)), head);
        /* W_O is [E][heads * D]: a head has D columns of each row. */
        float *const o = values + output_of(model, name)->weight + (size_t)name.head * D;
        for (size_t n = 0; n < E && !head_pruning_keeps(p, head); n++)
            memset(o + n * E, 0, D * sizeof *o);
    }
    return values;
}
