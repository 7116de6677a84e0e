/* SPDX-License-Identifier: MIT */
/*
 * Draws one layer of a model with plain characters: the residual stream as a line on the left, and
 * a box for each part that reads from it and adds to it. Beside each step is the shape of its
 * result.
 */
#include "model/model_text.h"

#include <stdio.h>

enum { BOX_COLUMNS = 36, SHAPE_MAX = 80 };

typedef struct drawing {
    model_text *text;
    const model_files *files;
    const stack_description *stack;
    const char *rows; /* "n": tokens of the stack */
    bool decoder;
} drawing;

static void stream(const drawing *d)
{
    model_text_add(d->text, "    |\n");
}

/* A norm of the residual stream itself. */
static void stream_step(const drawing *d, const char *what)
{
    stream(d);
    model_text_add(d->text, "    %-*s[%s, %d]\n", BOX_COLUMNS + 9, what, d->rows,
                   d->files->description.width);
}

static void box_begin(const drawing *d, const char *title)
{
    char line[BOX_COLUMNS + 1];
    const int used = snprintf(line, sizeof line, "- %s ", title);
    for (int n = used; n < BOX_COLUMNS; n++)
        line[n] = '-';
    line[BOX_COLUMNS] = '\0';
    stream(d);
    model_text_add(d->text, "    |-----.\n    |     v\n    |  .%s.\n", line);
}

static void box_step(const drawing *d, const char *what, const char *shape)
{
    model_text_add(d->text, "    |  | %-*s|%s%s\n", BOX_COLUMNS - 1, what, shape[0] ? "  " : "",
                   shape);
}

static void box_end(const drawing *d)
{
    char line[BOX_COLUMNS + 1];
    for (int n = 0; n < BOX_COLUMNS; n++)
        line[n] = '-';
    line[BOX_COLUMNS] = '\0';
    model_text_add(d->text, "    |  '%s'\n    |     |\n    +<----'\n", line);
}

static void norm_step(const drawing *d, const bound_norm *norm)
{
    char shape[SHAPE_MAX];
    snprintf(shape, sizeof shape, "[%s, %d]", d->rows, d->files->description.width);
    if (norm->weight.data)
        box_step(d, model_norm_name(d->files->description.norm), shape);
}

static void norm_after(const drawing *d, const bound_norm *norm)
{
    if (norm->weight.data)
        stream_step(d, model_norm_name(d->files->description.norm));
}

/* How scores are scaled: "Q K^T / 8", "Q K^T" for T5. */
static void scores_text(const attention_description *a, char text[SHAPE_MAX])
{
    if (a->scale == 1)
        snprintf(text, SHAPE_MAX, "softmax(Q K^T + bias)");
    else if (a->scale > 0)
        snprintf(text, SHAPE_MAX, "softmax(%.4g Q K^T)", (double)a->scale);
    else
        snprintf(text, SHAPE_MAX, "softmax(Q K^T / sqrt(%d))", a->head_width);
}

static void position_step(const drawing *d)
{
    if (d->stack->embedding.position == POSITION_ROTARY)
        box_step(d, "rotate Q and K by position", "");
    if (d->stack->embedding.position == POSITION_RELATIVE)
        box_step(d, "bias by distance", "");
}

static void draw_attention(const drawing *d, const bound_attention *part, bool cross)
{
    const attention_description *const a = &d->stack->attention;
    const char *const keys = cross ? "m" : d->rows;
    char what[SHAPE_MAX], shape[SHAPE_MAX];
    snprintf(what, sizeof what, "%s-attention", cross ? "cross" : "self");
    box_begin(d, what);
    norm_step(d, &part->norms.before);
    snprintf(shape, sizeof shape, "[%s, %d x %d]", d->rows, a->heads, a->head_width);
    box_step(d, "Q = x W_Q", shape);
    snprintf(shape, sizeof shape, "[%s, %d x %d] each", keys, a->key_heads, a->head_width);
    box_step(d, cross ? "K, V = encoder's output W_K, W_V" : "K, V = x W_K, x W_V", shape);
    if (!cross)
        position_step(d);
    scores_text(a, what);
    snprintf(shape, sizeof shape, "%d maps of [%s, %s]%s", a->heads, d->rows, keys,
             !cross && d->stack->causal ? ", causal" : "");
    box_step(d, what, shape);
    snprintf(shape, sizeof shape, "[%s, %d x %d]", d->rows, a->heads, a->head_width);
    box_step(d, "times V", shape);
    snprintf(shape, sizeof shape, "[%s, %d]", d->rows, d->files->description.width);
    box_step(d, "times W_O", shape);
    norm_step(d, &part->norms.inside);
    box_end(d);
    norm_after(d, &part->norms.after);
}

static void draw_feed_forward(const drawing *d, const bound_feed_forward *part)
{
    const model_description *const model = &d->files->description;
    const char *const activation = model_activation_name(model->activation);
    char what[SHAPE_MAX], shape[SHAPE_MAX];
    box_begin(d, "feed-forward");
    norm_step(d, &part->norms.before);
    snprintf(shape, sizeof shape, "[%s, %d]", d->rows, d->stack->inner);
    if (model->gated)
        snprintf(what, sizeof what, "%s(x W_gate) * (x W_up)", activation);
    else
        snprintf(what, sizeof what, "%s(x W_up)", activation);
    box_step(d, what, shape);
    snprintf(shape, sizeof shape, "[%s, %d]", d->rows, model->width);
    box_step(d, "times W_down", shape);
    norm_step(d, &part->norms.inside);
    box_end(d);
    norm_after(d, &part->norms.after);
}

void model_drawing_add(model_text *t, const model_files *files, int stack)
{
    const model_description *const model = &files->description;
    const bound_layer *const layer = &files->binding.stack[stack].layers[0];
    const bool two = model->kind == MHA_MODEL_ENCODER_DECODER;
    const drawing d = {.text = t,
                       .files = files,
                       .stack = &model->stack[stack],
                       .rows = two && stack == STACK_ENCODER ? "m" : "n",
                       .decoder = stack == STACK_DECODER};
    model_text_add(t, "\nOne of %d layers%s, for %s %s:\n\n", d.stack->layers,
                   !two        ? ""
                   : d.decoder ? " of the decoder"
                               : " of the encoder",
                   d.rows, model->kind == MHA_MODEL_IMAGE_ENCODER ? "patches and marks" : "tokens");
    model_text_add(t, "    %-*s[%s, %d]\n", BOX_COLUMNS + 9, "x", d.rows, model->width);
    draw_attention(&d, &layer->self, false);
    if (layer->cross.q.weight.data)
        draw_attention(&d, &layer->cross, true);
    draw_feed_forward(&d, &layer->ff);
    stream(&d);
    model_text_add(t, "    x\n");
}
