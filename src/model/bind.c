/* SPDX-License-Identifier: MIT */
/*
 * Binds the tensors of a model to their places by the tables of its layout (bind_encoder.c,
 * bind_decoder.c, bind_pair.c), with the names that bind_names.c makes of them. A tensor that is
 * missing or has other extents than the description says is an error with its name. Data are used
 * where they are in the file, unless they are not aligned to their elements: then they are copied.
 */
#include "model/bind_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static mha_status fail_memory(const binder *b)
{
    return safetensors_fail(&b->report, MHA_ERR_MEMORY, "out of memory for the list of weights");
}

/* ---------------------------------------------------------------- tensors ----- */

static size_t alignment(mha_dtype type)
{
    switch (type) {
    case MHA_F64:
        return 8;
    case MHA_F32:
        return 4;
    case MHA_I8:
        return 1;
    default:
        return 2; /* halves, and blocks that begin with one */
    }
}

static mha_status copy_tensor(binder *b, const weight_tensor *tensor, const void **data)
{
    for (size_t n = 0; n < b->copied_count; n++)
        if (b->copied[n].tensor == tensor) {
            *data = b->copied[n].data;
            return MHA_OK;
        }
    copied_tensor *const list =
        mhai_array_grow(b->copied, &b->copied_room, b->copied_count + 1, sizeof *list);
    if (!list)
        return fail_memory(b);
    b->copied = list;
    void *const copy = malloc((size_t)tensor->bytes + 1);
    if (!copy)
        return fail_memory(b);
    memcpy(copy, tensor->data, (size_t)tensor->bytes);
    b->copied[b->copied_count++] = (copied_tensor){tensor, copy};
    *data = copy;
    return MHA_OK;
}

static bool is_supported(mha_dtype type)
{
    return type != MHA_F64 && type != MHA_I8;
}

/* Accepts a tensor: its type is supported, and its data are aligned. */
static mha_status take(binder *b, const weight_tensor *tensor, const void **data)
{
    if (!tensor->usable || !is_supported(tensor->type))
        return safetensors_fail(&b->report, MHA_ERR_DTYPE,
                                "tensor %s has elements of a type that is not supported: expected "
                                "f32, f16, bf16 or one of GGUF's block types",
                                safetensors_show(tensor->name).text);
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    const size_t size = sizeof *b->used;
    const weight_tensor **const used =
        mhai_array_grow(b->used, &b->used_room, b->used_count + 1, size);
    if (!used)
        return fail_memory(b);
    b->used = used;
    b->used[b->used_count++] = tensor;
    *data = tensor->data;
    return (uintptr_t)tensor->data % alignment(tensor->type) == 0 ? MHA_OK
                                                                  : copy_tensor(b, tensor, data);
}

static mha_status fail_shape(const binder *b, const weight_tensor *tensor, ptrdiff_t first,
                             ptrdiff_t second)
{
    char shape[120] = "", expected[60], any[24];
    size_t used = 0;
    for (int n = 0; n < tensor->rank && n < WEIGHT_RANK_MAX; n++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64, n ? ", " : "",
                                 tensor->shape[n]);
    snprintf(any, sizeof any, first ? "%td" : "any", first);
    if (second < 0)
        snprintf(expected, sizeof expected, "[%s]", any);
    else
        snprintf(expected, sizeof expected, "[%s, %td]", any, second);
    return safetensors_fail(&b->report, MHA_ERR_SHAPE, "tensor %s is [%s], expected %s",
                            safetensors_show(tensor->name).text, shape, expected);
}

/* The extents of a tensor as `rank` numbers: leading extents of 1 are left out, and the last ones
 * are multiplied, as [width][channels][patch][patch] of ViT. False if there are too few, or if a
 * product is larger than any extent of a model. */
static bool fold(const weight_tensor *tensor, int rank, ptrdiff_t folded[2])
{
    int n = 0;
    while (tensor->rank - n > rank && tensor->shape[n] == 1)
        n++;
    if (tensor->rank - n < rank || tensor->rank > WEIGHT_RANK_MAX)
        return false;
    for (int k = 0; k < rank; k++, n++) {
        if (tensor->shape[n] > INT32_MAX)
            return false;
        folded[k] = (ptrdiff_t)tensor->shape[n];
    }
    for (; n < tensor->rank; n++) {
        if (rank == 1 || tensor->shape[n] > INT32_MAX)
            return false;
        folded[rank - 1] *= (ptrdiff_t)tensor->shape[n];
        if (folded[rank - 1] > INT32_MAX)
            return false;
    }
    return true;
}

static mha_status bind_matrix(binder *b, const rule_place *at, const weight_tensor *tensor,
                              bound_matrix *matrix)
{
    const bool transposed = at->rule->flags & RULE_TRANSPOSED;
    ptrdiff_t first, total, folded[2] = {0, 0};
    binder_part(b, at, &first, &total);
    const ptrdiff_t inputs = binder_extent(b, at, at->rule->inputs);
    const ptrdiff_t rows = transposed ? inputs : total, columns = transposed ? total : inputs;
    if (!fold(tensor, 2, folded) || folded[0] == 0 || (rows && folded[0] != rows) ||
        folded[1] != columns)
        return fail_shape(b, tensor, rows, columns);
    const void *data = NULL;
    const mha_status status = take(b, tensor, &data);
    if (status)
        return status;
    const ptrdiff_t outputs = at->rule->part ? binder_extent(b, at, at->rule->outputs)
                              : transposed   ? folded[1]
                                             : folded[0];
    const size_t row_bytes = (size_t)(tensor->bytes / (uint64_t)(folded[0] ? folded[0] : 1));
    const size_t skip =
        transposed ? row_bytes / (size_t)folded[1] * (size_t)first : row_bytes * (size_t)first;
    *matrix = (bound_matrix){.data = (const char *)data + skip,
                             .type = tensor->type,
                             .outputs = outputs,
                             .inputs = inputs,
                             .out_stride = transposed ? 1 : inputs,
                             .in_stride = transposed ? total : 1,
                             .tensor = tensor,
                             .first = first};
    return MHA_OK;
}

static mha_status bind_vector(binder *b, const rule_place *at, const weight_tensor *tensor,
                              bound_vector *vector)
{
    ptrdiff_t first, total, folded[2] = {0, 0};
    binder_part(b, at, &first, &total);
    if (!fold(tensor, 1, folded) || (total && folded[0] != total))
        return fail_shape(b, tensor, total, -1);
    const void *data = NULL;
    const mha_status status = take(b, tensor, &data);
    if (status)
        return status;
    if (tensor->type > MHA_BF16)
        return safetensors_fail(&b->report, MHA_ERR_DTYPE,
                                "tensor %s is a vector of a block type, expected f32, f16 or bf16",
                                safetensors_show(tensor->name).text);
    const size_t skip = (size_t)first * mha_dtype_size(tensor->type);
    *vector = (bound_vector){.data = (const char *)data + skip,
                             .type = tensor->type,
                             .count = at->rule->part ? binder_extent(b, at, at->rule->outputs)
                                                     : folded[0],
                             .tensor = tensor,
                             .first = first};
    return MHA_OK;
}

/* ------------------------------------------------------------------ rules ----- */

static mha_status fail_missing(const binder *b, const tensor_query *query)
{
    return safetensors_fail(&b->report, MHA_ERR_FORMAT, "tensor %s is missing",
                            safetensors_show(query->first).text);
}

typedef struct linear_at {
    bound_matrix *matrix; /* or NULL */
    bound_vector *vector;
} linear_at;

/* One tensor of a rule. `required`: a missing one is an error. */
static mha_status bind_one(binder *b, const rule_place *at, const char *suffix, const char *other,
                           bool required, linear_at to)
{
    tensor_query query = {.suffixes = {suffix, other}};
    const weight_tensor *const tensor = binder_find(b, at, &query);
    if (!tensor)
        return required ? fail_missing(b, &query) : MHA_OK;
    return to.matrix ? bind_matrix(b, at, tensor, to.matrix)
                     : bind_vector(b, at, tensor, to.vector);
}

static mha_status bind_linear(binder *b, const rule_place *at, bound_linear *linear)
{
    const unsigned flags = at->rule->flags;
    const mha_status status = bind_one(b, at, "weight", NULL, !(flags & RULE_OPTIONAL),
                                       (linear_at){.matrix = &linear->weight});
    if (status || !linear->weight.data || !(flags & (RULE_BIAS | RULE_BIAS_MAYBE)))
        return status;
    const mha_status more =
        bind_one(b, at, "bias", NULL, flags & RULE_BIAS, (linear_at){.vector = &linear->bias});
    if (!more && linear->bias.data && linear->bias.count != linear->weight.outputs)
        return safetensors_fail(&b->report, MHA_ERR_SHAPE,
                                "the bias of tensor %s has %td elements, expected %td",
                                safetensors_show(linear->weight.tensor->name).text,
                                linear->bias.count, linear->weight.outputs);
    return more;
}

static mha_status bind_norm(binder *b, const rule_place *at, bound_norm *norm)
{
    const bool required = !(at->rule->flags & RULE_OPTIONAL);
    const mha_status status =
        bind_one(b, at, "weight", "gamma", required, (linear_at){.vector = &norm->weight});
    if (status || !norm->weight.data)
        return status;
    return bind_one(b, at, "bias", "beta", b->d->norm == MHA_NORM_LAYER,
                    (linear_at){.vector = &norm->bias});
}

static bool holds(const binder *b, const rule_place *at)
{
    const unsigned flags = at->rule->flags;
    const model_description *const d = b->d;
    const stack_description *const stack = &d->stack[at->stack];
    const struct rule_condition {
        unsigned flag;
        bool holds;
    } conditions[] = {
        {RULE_ENCODER, at->stack == STACK_ENCODER},
        {RULE_DECODER, at->stack == STACK_DECODER},
        {RULE_NORM_FIRST, d->norm_first},
        {RULE_NORM_LAST, !d->norm_first},
        {RULE_GATED, d->gated},
        {RULE_NOT_GATED, !d->gated},
        {RULE_QK_NORM, stack->attention.qk_norm != MHA_NORM_NONE},
        {RULE_LEARNED, stack->embedding.position == POSITION_LEARNED},
        {RULE_PROJECT, stack->embedding.width != d->width},
        {RULE_SEGMENTS, stack->embedding.segments > 0},
        {RULE_SEQUENCE_LABELS, !d->labels_per_token},
        {RULE_TRANSFORM, b->binding->transform.weight.data != NULL},
        {RULE_LABELS, b->binding->label.weight.data != NULL},
        {RULE_EXTRA, d->extra_tokens > 0},
    };
    for (size_t n = 0; n < sizeof conditions / sizeof conditions[0]; n++)
        if (flags & conditions[n].flag && !conditions[n].holds)
            return false;
    return true;
}

static mha_status apply(binder *b, const rule_place *at)
{
    void *const to = at->base + at->rule->at;
    const bool required = !(at->rule->flags & RULE_OPTIONAL);
    if (!holds(b, at))
        return MHA_OK;
    switch (at->rule->form) {
    case FORM_MATRIX:
        return bind_one(b, at, NULL, NULL, required, (linear_at){.matrix = to});
    case FORM_VECTOR:
        return bind_one(b, at, NULL, NULL, required, (linear_at){.vector = to});
    case FORM_LINEAR:
        return bind_linear(b, at, to);
    case FORM_NORM:
        return bind_norm(b, at, to);
    }
    return MHA_OK;
}

static mha_status apply_table(binder *b, tensor_scope scope, rule_place at)
{
    for (int t = 0; t < LAYOUT_TABLES_MAX && b->layout->tables[t]; t++)
        for (const tensor_rule *rule = b->layout->tables[t]; rule->names; rule++) {
            at.rule = rule;
            const mha_status status = rule->scope == scope ? apply(b, &at) : MHA_OK;
            if (status)
                return status;
        }
    return MHA_OK;
}

/* The heads of an attention fit together. Only tensors say how many key/value heads are left in a
 * pruned layer whose heads share them. */
static mha_status check_heads(const binder *b, int s, const bound_attention *attention)
{
    const int width = b->d->stack[s].attention.head_width;
    const bound_matrix *const q = &attention->q.weight, *const k = &attention->k.weight;
    if (!q->data || (k->outputs % width == 0 && k->outputs == attention->v.weight.outputs &&
                     q->outputs / width % (k->outputs / width) == 0))
        return MHA_OK;
    return safetensors_fail(&b->report, MHA_ERR_SHAPE,
                            "tensor %s has %td outputs and that of the values %td, expected key/"
                            "value heads of width %d whose number divides %td heads",
                            safetensors_show(k->tensor->name).text, k->outputs,
                            attention->v.weight.outputs, width, q->outputs / width);
}

static mha_status bind_layer(binder *b, rule_place at, bound_layer *layer)
{
    at.base = (char *)layer;
    mha_status status = apply_table(b, SCOPE_LAYER, at);
    if (!status)
        status = check_heads(b, at.stack, &layer->self);
    return status ? status : check_heads(b, at.stack, &layer->cross);
}

static mha_status bind_stack(binder *b, int s)
{
    bound_stack *const stack = &b->binding->stack[s];
    const stack_description *const description = &b->d->stack[s];
    const int layers = description->shared ? 1 : description->layers;
    rule_place at = {.stack = s, .base = (char *)stack};
    mha_status status = apply_table(b, SCOPE_STACK, at);
    if (status)
        return status;
    stack->layers = calloc((size_t)layers, sizeof *stack->layers);
    if (!stack->layers)
        return fail_memory(b);
    for (at.layer = 0; at.layer < layers && !status; at.layer++)
        status = bind_layer(b, at, &stack->layers[at.layer]);
    return status;
}

/* ------------------------------------------------------------------ whole ----- */

static bool has_prefix(const weight_source *source, const char *prefix)
{
    const size_t length = strlen(prefix);
    for (size_t n = 0; n < weight_source_count(source); n++)
        if (length > 0 && strncmp(weight_source_at(source, n)->name, prefix, length) == 0)
            return true;
    return false;
}

/* The output matrix: one of its own, or the embedding. A model without BERT's transform, and an
 * encoder without a decoder, predicts no tokens. */
static void settle_output(binder *b)
{
    model_binding *const binding = b->binding;
    const bool decodes = b->d->stack[STACK_DECODER].layers > 0;
    const bound_matrix *const tokens =
        &binding->stack[decodes ? STACK_DECODER : STACK_ENCODER].tokens;
    const bool predicts =
        b->layout->output_needs_transform ? binding->transform.weight.data != NULL : decodes;
    if (b->d->tied || (!binding->output.weight.data && b->layout->tied_if_missing))
        binding->output.weight = *tokens;
    if (!predicts || !binding->output.weight.data)
        memset(&binding->output, 0, sizeof binding->output);
    b->d->tied = binding->output.weight.data && binding->output.weight.data == tokens->data;
    b->d->labels = (int)binding->label.weight.outputs;
}

/* Classifiers that read what the files do not have, or that do not fit together. */
static mha_status check_labels(const binder *b)
{
    const model_binding *const binding = b->binding;
    const bound_linear *const second = &binding->label_distilled;
    if (binding->label.weight.data && b->d->label_pooled && !binding->pooler.weight.data)
        return safetensors_fail(&b->report, MHA_ERR_FORMAT,
                                "there is a classifier, but the tensor pooler.dense.weight that it "
                                "needs is missing");
    if (second->weight.data && second->weight.outputs != binding->label.weight.outputs)
        return safetensors_fail(&b->report, MHA_ERR_SHAPE,
                                "the two classifiers have %td and %td labels",
                                binding->label.weight.outputs, second->weight.outputs);
    return MHA_OK;
}

static int compare_tensors(const void *left, const void *right)
{
    const weight_tensor *const *const a = left, *const *const b = right;
    return (*a > *b) - (*a < *b);
}

/* An output matrix that is bound but replaced by the embedding does not count. */
static void count_parameters(binder *b, const weight_tensor *unused)
{
    if (b->used_count > 1)
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
        qsort(b->used, b->used_count, sizeof *b->used, compare_tensors);
    for (size_t n = 0; n < b->used_count; n++) {
        const weight_tensor *const tensor = b->used[n];
        uint64_t elements = 1;
        for (int k = 0; k < tensor->rank; k++)
            elements *= tensor->shape[k];
        if ((n == 0 || tensor != b->used[n - 1]) && tensor != unused)
            b->binding->parameters += (int64_t)elements;
    }
}

static mha_status keep_copies(binder *b)
{
    if (b->copied_count == 0)
        return MHA_OK;
    b->binding->copies = malloc(b->copied_count * sizeof *b->binding->copies);
    if (!b->binding->copies)
        return fail_memory(b);
    for (size_t n = 0; n < b->copied_count; n++)
        b->binding->copies[n] = b->copied[n].data;
    b->binding->copy_count = b->copied_count;
    b->copied_count = 0;
    return MHA_OK;
}

static mha_status bind_all(binder *b)
{
    const int main_stack = b->d->stack[STACK_DECODER].layers > 0 ? STACK_DECODER : STACK_ENCODER;
    mha_status status = MHA_OK;
    for (int s = 0; s < STACKS && !status; s++)
        if (b->d->stack[s].layers > 0)
            status = bind_stack(b, s);
    if (!status)
        status = apply_table(b, SCOPE_MODEL,
                             (rule_place){.stack = main_stack, .base = (char *)b->binding});
    if (status)
        return status;
    const weight_tensor *const own = b->binding->output.weight.tensor;
    settle_output(b);
    count_parameters(b, b->binding->output.weight.tensor == own ? NULL : own);
    status = check_labels(b);
    return status ? status : keep_copies(b);
}

mha_status model_bind(model_binding *binding, model_description *d, const weight_source *source,
                      const tensor_layout *layout, const char *path, char *message,
                      size_t message_size)
{
    memset(binding, 0, sizeof *binding);
    binder b = {.binding = binding,
                .d = d,
                .source = source,
                .layout = layout,
                .prefixed = has_prefix(source, layout->prefix),
                .report = {path, message, message_size}};
    const mha_status status = bind_all(&b);
    for (size_t n = 0; n < b.copied_count; n++)
        free(b.copied[n].data);
    free(b.copied);
    free(b.used);
    if (status)
        model_binding_free(binding);
    return status;
}

void model_binding_free(model_binding *binding)
{
    for (int s = 0; s < STACKS; s++)
        free(binding->stack[s].layers);
    for (size_t n = 0; n < binding->copy_count; n++)
        free(binding->copies[n]);
    free(binding->copies);
    memset(binding, 0, sizeof *binding);
}
