/* SPDX-License-Identifier: MIT */
/*
 * Which parts of which tensors a saved model has:
 *
 *      W_Q, b_Q         outputs of the heads that are left
 *      W_K, W_V, ...    outputs of their key/value heads, some of them perhaps more than once
 *      W_O              inputs of the heads that are left
 *
 * or, with zeros, all of them, and zeros for the inputs of W_O that belong to other heads. Heads of
 * the file are numbered from 0; the heads of a model know their numbers in the model before any
 * were removed.
 */
#include "model/save_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The heads of the file that an attention has, or the key/value heads. */
typedef struct head_choice {
    ptrdiff_t *heads;
    ptrdiff_t count, width;
} head_choice;

static mha_status no_memory(const model_saving *s)
{
    return saving_fail(s, MHA_ERR_MEMORY, "no memory for the list of tensors");
}

/* ------------------------------------------------------------------ tensors ----- */

/* The tensor of a fused matrix occurs several times in an attention: its runs follow one another.
 */
static saved_tensor *take_tensor(model_saving *s, const saved_tensor *wanted)
{
    for (size_t n = s->first_of_attention; n < s->count; n++)
        if (s->tensors[n].tensor == wanted->tensor)
            return &s->tensors[n];
    saved_tensor *const tensors =
        mhai_array_grow(s->tensors, &s->room, s->count + 1, sizeof *tensors);
    if (!tensors)
        return NULL;
    s->tensors = tensors;
    tensors[s->count] = *wanted;
    return &tensors[s->count++];
}

static mha_status add_runs(model_saving *s, const saved_tensor *wanted, const head_choice *choice,
                           ptrdiff_t first)
{
    saved_tensor *const tensor = take_tensor(s, wanted);
    const size_t count = tensor ? tensor->run_count + (size_t)choice->count : 0;
    saved_run *const runs =
        tensor ? mhai_array_grow(tensor->runs, &tensor->run_room, count, sizeof *runs) : NULL;
    if (!runs)
        return no_memory(s);
    tensor->runs = runs;
    for (ptrdiff_t n = 0; n < choice->count; n++)
        runs[tensor->run_count++] =
            (saved_run){first + choice->heads[n] * choice->width, choice->width};
    return MHA_OK;
}

static ptrdiff_t elements_of(const weight_tensor *tensor)
{
    ptrdiff_t elements = 1;
    for (int n = 0; n < tensor->rank; n++)
        elements *= (ptrdiff_t)tensor->shape[n];
    return elements;
}

/* A matrix as it is stored: GPT-2's are transposed. */
static saved_tensor stored_matrix(const bound_matrix *m, int place, bool inputs)
{
    const bool transposed = m->in_stride != 1;
    const ptrdiff_t outputs = elements_of(m->tensor) / m->inputs;
    return (saved_tensor){.tensor = m->tensor,
                          .layer = place,
                          .rows = transposed ? m->inputs : outputs,
                          .columns = transposed ? outputs : m->inputs,
                          .by_columns = transposed != inputs};
}

static mha_status add_outputs(model_saving *s, int place, const bound_linear *linear,
                              const head_choice *choice)
{
    const saved_tensor weight = stored_matrix(&linear->weight, place, false);
    const bound_vector *const bias = &linear->bias;
    const mha_status status = add_runs(s, &weight, choice, linear->weight.first);
    if (status || !bias->data)
        return status;
    const saved_tensor vector = {
        .tensor = bias->tensor, .layer = place, .rows = elements_of(bias->tensor), .columns = 1};
    return add_runs(s, &vector, choice, bias->first);
}

static mha_status add_inputs(model_saving *s, int place, const bound_linear *linear,
                             const head_choice *choice)
{
    const saved_tensor weight = stored_matrix(&linear->weight, place, true);
    return add_runs(s, &weight, choice, 0);
}

/* --------------------------------------------------------------- attentions ----- */

/* The heads of the file that are left, or that are not. `room` is for all heads of the file. */
static head_choice choose_heads(const model_saving *s, mha_attention_kind kind, int layer,
                                bool left, ptrdiff_t *room)
{
    const model_description *const d = &s->model->files.description;
    const attention_description *const a = &d->stack[attention_stack(kind)].attention;
    const model_attention *const at = model_attention_at(s->model, kind, layer);
    const int own = d->stack[attention_stack(kind)].shared ? 0 : layer;
    head_choice choice = {room, 0, a->head_width};
    ptrdiff_t n = 0, number = 0;
    for (int h = 0; h < a->heads; h++) {
        if (description_is_pruned(d, kind, own, h))
            continue;
        const bool is_left = n < at->heads && at->kept[n] == h;
        if (is_left == left)
            choice.heads[choice.count++] = number;
        n += is_left;
        number++;
    }
    return choice;
}

/* The key/value heads of these heads, as mha_layer_prune() gives them to groups of equal size. */
static head_choice choose_groups(const head_choice *heads, ptrdiff_t G, ptrdiff_t file_group,
                                 ptrdiff_t *room)
{
    const ptrdiff_t group = heads->count / G;
    head_choice choice = {room, G, heads->width};
    for (ptrdiff_t g = 0; g < G; g++)
        choice.heads[g] = heads->heads[g * group] / file_group;
    return choice;
}

static mha_status plan_heads(model_saving *s, mha_attention_kind kind, int layer, ptrdiff_t *room)
{
    const bound_attention *const bound = model_bound_at(s->model, kind, layer);
    const ptrdiff_t H = bound->q.weight.outputs, G = bound->k.weight.outputs;
    const head_choice heads = choose_heads(s, kind, layer, !s->zeros, room);
    const int place = s->split ? layer : 0;
    if (s->zeros)
        return add_inputs(s, place, &bound->o, &heads);
    const mha_layer *const pruned = model_attention_at(s->model, kind, layer)->layer;
    const head_choice groups =
        choose_groups(&heads, mha_layer_get_config(pruned).G, H / G, room + H);
    mha_status status = add_outputs(s, place, &bound->q, &heads);
    status = status ? status : add_outputs(s, place, &bound->k, &groups);
    status = status ? status : add_outputs(s, place, &bound->v, &groups);
    return status ? status : add_inputs(s, place, &bound->o, &heads);
}

/* Whether the model has fewer heads than the file. */
static bool has_fewer(const model_saving *s, mha_attention_kind kind, int layer)
{
    const model_description *const d = &s->model->files.description;
    const int width = d->stack[attention_stack(kind)].attention.head_width;
    const model_attention *const at = model_attention_at(s->model, kind, layer);
    return at && at->heads < model_bound_at(s->model, kind, layer)->q.weight.outputs / width;
}

static mha_status plan_attention(model_saving *s, mha_attention_kind kind, int layer)
{
    if (!has_fewer(s, kind, layer))
        return MHA_OK;
    const ptrdiff_t heads = model_bound_at(s->model, kind, layer)->q.weight.outputs;
    ptrdiff_t *const room = calloc(2 * (size_t)heads, sizeof *room);
    if (!room)
        return no_memory(s);
    s->first_of_attention = s->count;
    const mha_status status = plan_heads(s, kind, layer, room);
    free(room);
    return status;
}

/* -------------------------------------------------------------------- whole ----- */

static bool same_heads(const model_attention *a, const model_attention *b)
{
    if (a->heads != b->heads || !a->kept != !b->kept)
        return false;
    return !a->kept || memcmp(a->kept, b->kept, (size_t)a->heads * sizeof *a->kept) == 0;
}

/* Whether layers that share their weights have different heads. */
static bool must_split(const model_saving *s)
{
    const model_stack *const stack = &s->model->stack[STACK_ENCODER];
    for (int n = 1; s->model->files.description.stack[STACK_ENCODER].shared && n < stack->layers;
         n++)
        if (!same_heads(&stack->layer[0].self, &stack->layer[n].self))
            return true;
    return false;
}

static int compare_tensors(const void *left, const void *right)
{
    const saved_tensor *const a = left, *const b = right;
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor ? -1 : 1;
    return a->layer - b->layer;
}

mha_status saving_plan(model_saving *s)
{
    s->split = must_split(s);
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        const int stack = attention_stack((mha_attention_kind)kind);
        const bool one = s->model->files.description.stack[stack].shared && !s->split;
        const int layers = one ? 1 : s->model->stack[stack].layers;
        for (int n = 0; n < layers; n++) {
            const mha_status status = plan_attention(s, (mha_attention_kind)kind, n);
            if (status)
                return status;
        }
    }
    if (s->count > 1)
        qsort(s->tensors, s->count, sizeof *s->tensors, compare_tensors);
    return MHA_OK;
}

const saved_tensor *saving_find(const model_saving *s, const weight_tensor *tensor, int layer)
{
    const saved_tensor wanted = {.tensor = tensor, .layer = layer};
    return s->count ? bsearch(&wanted, s->tensors, s->count, sizeof wanted, compare_tensors) : NULL;
}

void saving_free(model_saving *s)
{
    for (size_t n = 0; n < s->count; n++)
        free(s->tensors[n].runs);
    free(s->tensors);
    s->tensors = NULL;
    s->count = s->room = 0;
}
