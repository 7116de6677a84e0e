/* SPDX-License-Identifier: MIT */
/* The text of mha_model_describe(): a table of what a model is, where its parameters and bytes are,
 * and (model_drawing.c) a drawing of one layer. All of it follows from the description and the
 * binding. */
#include "model/model_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void model_text_add(model_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const size_t used = t->length < t->size ? t->length : t->size;
    const int length =
        vsnprintf(t->text ? t->text + used : NULL, t->size - used, format, arguments);
    va_end(arguments);
    t->length += length > 0 ? (size_t)length : 0;
}

/* 1234567 as "1,234,567". */
typedef struct long_number {
    char text[32];
} long_number;

static long_number with_commas(uint64_t number)
{
    long_number result;
    char digits[24];
    size_t used = 0;
    const size_t count = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number);
    for (size_t n = 0; n < count; n++) {
        if (n > 0 && (count - n) % 3 == 0)
            result.text[used++] = ',';
        result.text[used++] = digits[n];
    }
    result.text[used] = '\0';
    return result;
}

#define ROW(t, name, ...)                 \
    do {                                  \
        model_text_add(t, "%-18s", name); \
        model_text_add(t, __VA_ARGS__);   \
        model_text_add(t, "\n");          \
    } while (0)

const char *model_activation_name(mha_activation activation)
{
    static const char *const names[] = {"none",       "ReLU", "GELU", "GELU by tanh",
                                        "quick GELU", "SiLU", "tanh"};
    return names[activation];
}

const char *model_norm_name(mha_norm norm)
{
    return norm == MHA_NORM_RMS ? "RMS norm" : "layer norm";
}

/* ------------------------------------------------------------- what it is ----- */

static const char *kind_text(mha_model_kind kind)
{
    static const char *const texts[] = {"encoder: every token sees all tokens",
                                        "decoder: every token sees itself and those before it",
                                        "encoder and decoder",
                                        "image encoder: every patch sees all patches"};
    return texts[kind];
}

static const stack_description *main_stack(const model_description *d)
{
    return &d->stack[d->stack[STACK_DECODER].layers > 0 ? STACK_DECODER : STACK_ENCODER];
}

static void add_layers(model_text *t, const model_description *d)
{
    const stack_description *const encoder = &d->stack[STACK_ENCODER];
    const stack_description *const decoder = &d->stack[STACK_DECODER];
    if (d->kind == MHA_MODEL_ENCODER_DECODER)
        ROW(t, "layers", "%d + %d (encoder + decoder)", encoder->layers, decoder->layers);
    else
        ROW(t, "layers", "%d%s", main_stack(d)->layers,
            encoder->shared ? " that share the weights of one" : "");
}

static void add_heads(model_text *t, const stack_description *stack, const char *which)
{
    const attention_description *const a = &stack->attention;
    char name[32];
    snprintf(name, sizeof name, "heads%s", which);
    ROW(t, name, "%d of width %d%s", a->heads, a->head_width,
        a->qk_norm ? ", queries and keys normalised" : "");
    if (a->key_heads != a->heads)
        ROW(t, "key/value heads", "%d, each for %d heads", a->key_heads, a->heads / a->key_heads);
    if (a->softcap > 0)
        ROW(t, "softcap", "scores are limited to %g by tanh", (double)a->softcap);
}

static void add_positions(model_text *t, const model_description *d)
{
    const stack_description *const stack = main_stack(d);
    const attention_description *const a = &stack->attention;
    switch (stack->embedding.position) {
    case POSITION_NONE:
        ROW(t, "positions", "none");
        break;
    case POSITION_LEARNED:
        ROW(t, "positions", "learned vectors, added to the embedding");
        break;
    case POSITION_SINES:
    case POSITION_SINES_NEIGHBOURS:
        ROW(t, "positions", "sines and cosines, added to the embedding");
        break;
    case POSITION_ROTARY:
        ROW(t, "positions", "rotary, base %g%s", a->rope_base,
            a->rope_frequencies ? ", scaled for longer texts" : "");
        if (a->rope_local_base > 0)
            ROW(t, "", "base %g in layers with a window", a->rope_local_base);
        break;
    case POSITION_RELATIVE:
        ROW(t, "positions", "a learned bias per head and distance, %d buckets",
            a->relative_buckets);
    }
}

static void add_window(model_text *t, const model_description *d)
{
    const attention_description *const a = &main_stack(d)->attention;
    if (a->window == 0)
        return;
    if (a->window_every > 0)
        ROW(t, "window", "%d tokens, except in every layer number %d", a->window, a->window_every);
    else if (a->window_from > 0)
        ROW(t, "window", "%d tokens, from layer %d on", a->window, a->window_from);
    else
        ROW(t, "window", "%d tokens", a->window);
}

static void add_words(model_text *t, const model_description *d)
{
    if (d->kind == MHA_MODEL_IMAGE_ENCODER) {
        ROW(t, "image", "%d x %d, %d channels, patches of %d x %d", d->image_size, d->image_size,
            d->channels, d->patch, d->patch);
        if (model_patch_stride(d) != d->patch)
            ROW(t, "overlap", "a patch begins every %d pixels", model_patch_stride(d));
        if (d->label_mean)
            ROW(t, "pooling", "the classifier reads the mean of all patches");
        ROW(t, "tokens", "%d: %d patches and %d of its own", d->positions,
            d->positions - d->extra_tokens, d->extra_tokens);
        return;
    }
    if (d->source_vocabulary != d->vocabulary)
        ROW(t, "vocabulary", "%d words of the source, %d of the target", d->source_vocabulary,
            d->vocabulary);
    else
        ROW(t, "vocabulary", "%d", d->vocabulary);
    if (d->positions > 0)
        ROW(t, "longest text", "%d tokens", d->positions);
    else
        ROW(t, "longest text", "not limited");
    if (d->usage.longest > 0 && d->usage.longest != d->positions)
        ROW(t, "recommended", "%d tokens", d->usage.longest);
}

static void add_ends(model_text *t, const model_files *files)
{
    static const char *const poolings[] = {"", "mean of all tokens", "first token", "last token",
                                           "maximum of all tokens"};
    const model_description *const d = &files->description;
    if (files->binding.output.weight.data)
        ROW(t, "output", "%s",
            d->tied ? "logits by the embedding (tied)" : "logits by a matrix of its own");
    else
        ROW(t, "output", "hidden states; the files have no matrix for logits");
    if (d->labels > 0)
        ROW(t, "classifier", "%d labels", d->labels);
    if (d->usage.pooling != MHA_POOLING_MODEL)
        ROW(t, "sentence vector", "%s%s", poolings[d->usage.pooling],
            d->usage.normalize ? ", length 1" : "");
}

static void add_table(model_text *t, const model_files *files)
{
    const model_description *const d = &files->description;
    const stack_description *const stack = main_stack(d);
    const bool two = d->kind == MHA_MODEL_ENCODER_DECODER;
    const stack_description *const encoder = &d->stack[STACK_ENCODER];
    ROW(t, "family", "%s", d->family);
    ROW(t, "kind", "%s", kind_text(d->kind));
    add_layers(t, d);
    ROW(t, "width", "%d", d->width);
    if (stack->embedding.width != d->width)
        ROW(t, "embedding width", "%d", stack->embedding.width);
    if (two && encoder->attention.heads != stack->attention.heads)
        add_heads(t, encoder, ", encoder");
    add_heads(t, stack,
              two && encoder->attention.heads != stack->attention.heads ? ", decoder" : "");
    if (d->pruned_count > 0)
        ROW(t, "removed heads", "%zu", d->pruned_count);
    if (two && encoder->inner != stack->inner)
        ROW(t, "feed-forward", "%d and %d inside, %s%s", encoder->inner, stack->inner,
            model_activation_name(d->activation), d->gated ? ", gated" : "");
    else
        ROW(t, "feed-forward", "%d inside, %s%s", stack->inner,
            model_activation_name(d->activation), d->gated ? ", gated" : "");
    ROW(t, "norm", "%s, eps %g, %s", model_norm_name(d->norm), (double)d->norm_eps,
        d->norm_first ? "before each part" : "after each part");
    add_positions(t, d);
    add_window(t, d);
    add_words(t, d);
    add_ends(t, files);
}

/* ------------------------------------------------------------- parameters ----- */

typedef struct part_counts {
    int64_t embedding, attention, feed_forward, norms;
} part_counts;

static int64_t of_linear(const bound_linear *linear)
{
    return (int64_t)linear->weight.outputs * linear->weight.inputs + linear->bias.count;
}

static int64_t of_matrix(const bound_matrix *matrix)
{
    return (int64_t)matrix->outputs * matrix->inputs;
}

static int64_t of_norm(const bound_norm *norm)
{
    return norm->weight.count + norm->bias.count;
}

static int64_t of_norms(const bound_norms *norms)
{
    return of_norm(&norms->before) + of_norm(&norms->inside) + of_norm(&norms->after);
}

static int64_t of_attention(const bound_attention *a)
{
    return of_linear(&a->q) + of_linear(&a->k) + of_linear(&a->v) + of_linear(&a->o) +
           a->q_norm.count + a->k_norm.count;
}

static void count_layer(part_counts *counts, const bound_layer *layer)
{
    counts->attention += of_attention(&layer->self) + of_attention(&layer->cross);
    counts->feed_forward +=
        of_linear(&layer->ff.gate) + of_linear(&layer->ff.up) + of_linear(&layer->ff.down);
    counts->norms +=
        of_norms(&layer->self.norms) + of_norms(&layer->cross.norms) + of_norms(&layer->ff.norms);
}

static part_counts count_parts(const model_files *files)
{
    part_counts counts = {0, 0, 0, 0};
    const bound_matrix *const source = &files->binding.stack[STACK_ENCODER].tokens;
    for (int s = 0; s < STACKS; s++) {
        const bound_stack *const stack = &files->binding.stack[s];
        const stack_description *const d = &files->description.stack[s];
        const int layers = d->shared ? 1 : d->layers;
        if (s == STACK_ENCODER || stack->tokens.data != source->data)
            counts.embedding += of_matrix(&stack->tokens);
        counts.embedding += of_matrix(&stack->position) + of_matrix(&stack->segments) +
                            of_linear(&stack->embedding_project) + of_linear(&stack->patches) +
                            stack->class_token.count + stack->distillation_token.count +
                            of_matrix(&stack->relative);
        counts.norms += of_norm(&stack->embedding_norm) + of_norm(&stack->final_norm);
        for (int n = 0; n < layers; n++)
            count_layer(&counts, &stack->layers[n]);
    }
    return counts;
}

static void add_part(model_text *t, const char *name, int64_t part, int64_t whole)
{
    if (part > 0)
        model_text_add(t, "  %-16s%15s  %5.1f %%\n", name, with_commas((uint64_t)part).text,
                       100.0 * (double)part / (double)whole);
}

static void add_parameters(model_text *t, const model_files *files)
{
    const int64_t whole = files->binding.parameters;
    const part_counts counts = count_parts(files);
    model_text_add(t, "\n%-18s%15s\n", "parameters", with_commas((uint64_t)whole).text);
    add_part(t, "embedding", counts.embedding, whole);
    add_part(t, "attention", counts.attention, whole);
    add_part(t, "feed-forward", counts.feed_forward, whole);
    add_part(t, "norms", counts.norms, whole);
    add_part(t, "after layers",
             whole - counts.embedding - counts.attention - counts.feed_forward - counts.norms,
             whole);
}

/* ------------------------------------------------------------------ bytes ----- */

static const char *const type_names[] = {
    [MHA_F32] = "f32",   [MHA_F16] = "f16",   [MHA_BF16] = "bf16", [MHA_F64] = "f64",
    [MHA_I8] = "i8",     [MHA_Q8_0] = "Q8_0", [MHA_Q4_0] = "Q4_0", [MHA_Q4_1] = "Q4_1",
    [MHA_Q4_K] = "Q4_K", [MHA_Q5_K] = "Q5_K", [MHA_Q6_K] = "Q6_K"};
enum { TYPES = sizeof type_names / sizeof type_names[0] };

static void add_bytes(model_text *t, const model_files *files, size_t memory_bytes)
{
    uint64_t bytes[TYPES + 1] = {0};
    size_t counts[TYPES + 1] = {0};
    for (size_t n = 0; n < weight_source_count(files->source); n++) {
        const weight_tensor *const tensor = weight_source_at(files->source, n);
        const int type = tensor->usable && (int)tensor->type < TYPES ? (int)tensor->type : TYPES;
        bytes[type] += tensor->bytes;
        counts[type]++;
    }
    model_text_add(t, "\n%-18s%15s bytes\n", "file",
                   with_commas(weight_source_bytes(files->source)).text);
    for (int type = 0; type <= TYPES; type++)
        if (counts[type] > 0)
            model_text_add(t, "  %-16s%15s bytes in %zu tensor%s\n",
                           type < TYPES ? type_names[type] : "other types",
                           with_commas(bytes[type]).text, counts[type],
                           counts[type] == 1 ? "" : "s");
    if (memory_bytes > 0)
        model_text_add(t, "%-18s%15s bytes\n", "memory in use", with_commas(memory_bytes).text);
}

size_t model_files_describe(const model_files *files, size_t memory_bytes, const char *arithmetic,
                            char *text, size_t size)
{
    model_text t = {.text = size > 0 ? text : NULL, .size = size > 0 ? size : 0};
    if (t.text)
        t.text[0] = '\0';
    add_table(&t, files);
    add_parameters(&t, files);
    add_bytes(&t, files, memory_bytes);
    if (arithmetic)
        model_text_add(&t, "%-18s%s\n", "arithmetic", arithmetic);
    for (int s = 0; s < STACKS; s++)
        if (files->description.stack[s].layers > 0)
            model_drawing_add(&t, files, s);
    return t.length;
}
