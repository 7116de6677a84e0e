/* SPDX-License-Identifier: MIT */
/* Runs a model with its steps, and writes them and its matrices as JSON. */
#include "page/page_compute.h"

#include "page/page_weights.h"

/* --------------------------------------------------------------- steps ----- */

bool page_steps_make(page_steps *to, const subject *model, const subject_text *text,
                     const uint8_t *const changes[ATTENTION_KINDS],
                     const int layers[ATTENTION_KINDS], mha_pool *pool)
{
    const int source = text->source.count, target = text->target.count;
    const ptrdiff_t rows = source > target ? source : target;
    capture_options options = {.weights = true, .vectors = true};
    *to = (page_steps){.heads = NULL};
    if (rows * model->width > PAGE_STEP_CELLS)
        return true;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        to->has[kind] = layers[kind] >= 0 && layers[kind] < model->shape.layers[kind];
        to->steps[kind] = (computation){.kind = (attention_kind)kind, .layer = layers[kind]};
        options.steps[kind] = to->has[kind] ? &to->steps[kind] : NULL;
        options.changes[kind] = changes[kind];
    }
    to->heads = subject_run(model, text, &options, pool);
    return to->heads != NULL;
}

void page_steps_free(page_steps *steps)
{
    capture_free(steps->heads);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        computation_free(&steps->steps[kind]);
}

static bool put_numbers(json *j, const char *key, const float *values, ptrdiff_t count)
{
    return values == NULL || page_put_text(j, key, page_numbers_text(values, (size_t)count));
}

/* What is done with queries and keys after their projections; nothing, if nothing is. */
static void put_turn(json *j, const head_turn *turn)
{
    if (!turn->normed && turn->angle_count == 0 && turn->query_factor == 1.0)
        return;
    json_open_object(j, "turn");
    json_bool(j, "normed", turn->normed);
    json_bool(j, "neighbours", turn->neighbours);
    json_exact(j, "query_factor", turn->query_factor);
    json_open_array(j, "angles");
    for (int n = 0; n < turn->angle_count; n++)
        json_exact(j, NULL, turn->angles[n]);
    json_close(j);
    json_close(j);
}

static bool put_computation(json *j, const capture_heads *h, const computation *s)
{
    const ptrdiff_t count = (ptrdiff_t)s->rows * s->width;
    const ptrdiff_t cells = (ptrdiff_t)h->heads * h->rows * h->width;
    json_open_object(j, NULL);
    json_string(j, "kind", attention_kind_name(s->kind));
    json_integer(j, "layer", s->layer + 1);
    json_integer(j, "rows", s->rows);
    json_integer(j, "columns", s->columns);
    json_integer(j, "width", s->width);
    json_integer(j, "inner", s->inner);
    json_bool(j, "norm_first", s->norm_first);
    json_string(j, "norm", s->norm == MHA_NORM_RMS ? "rms" : "layer");
    json_exact(j, "norm_eps", (double)s->norm_eps);
    put_turn(j, &s->turn);
    const bool fine =
        put_numbers(j, "heads", h->outputs + s->layer * cells, cells) &&
        put_numbers(j, "words", s->words, count) && put_numbers(j, "codes", s->codes, count) &&
        put_numbers(j, "stream", s->stream, count) && put_numbers(j, "input", s->input, count) &&
        put_numbers(j, "memory", s->memory, (ptrdiff_t)s->columns * s->width) &&
        put_numbers(j, "added", s->added, count) && put_numbers(j, "joined", s->joined, count) &&
        put_numbers(j, "ff_input", s->ff_input, count) &&
        put_numbers(j, "inside", s->inside, (ptrdiff_t)s->rows * s->inner) &&
        put_numbers(j, "ff_added", s->ff_added, count) &&
        put_numbers(j, "result", s->result, count);
    json_close(j);
    return fine;
}

bool page_steps_put(json *j, const page_steps *steps)
{
    bool fine = true;
    json_open_array(j, "steps");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (steps->has[kind] && steps->heads != NULL)
            fine &= put_computation(j, &steps->heads->kind[kind], &steps->steps[kind]);
    json_close(j);
    return fine;
}

/* ------------------------------------------------------------ matrices ----- */

bool page_matrices_make(page_matrices *to, const subject *model, const int layers[ATTENTION_KINDS],
                        bool live)
{
    *to = (page_matrices){.live = live};
    bool fine = true;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        to->has[kind] = layers[kind] >= 0 && layers[kind] < model->shape.layers[kind];
        to->weights[kind] =
            (computation_weights){.kind = (attention_kind)kind, .layer = layers[kind]};
        if (to->has[kind])
            fine = fine && subject_weights(model, &to->weights[kind]);
    }
    return fine;
}

void page_matrices_free(page_matrices *matrices)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        computation_weights_free(&matrices->weights[kind]);
}

static bool put_linear(json *j, const char *key, const linear_weights *w, ptrdiff_t most)
{
    const ptrdiff_t cells = (ptrdiff_t)w->outputs * w->inputs;
    if (w->weight == NULL || cells > most)
        return true;
    json_open_object(j, key);
    json_integer(j, "outputs", w->outputs);
    json_integer(j, "inputs", w->inputs);
    const bool fine =
        put_numbers(j, "weight", w->weight, cells) && put_numbers(j, "bias", w->bias, w->outputs);
    json_close(j);
    return fine;
}

bool page_matrices_put(json *j, const page_matrices *matrices)
{
    bool fine = true;
    json_open_array(j, "matrices");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const computation_weights *const w = &matrices->weights[kind];
        const ptrdiff_t most = matrices->live ? PAGE_LIVE_MATRIX_CELLS : PAGE_MATRIX_CELLS;
        if (!matrices->has[kind])
            continue;
        json_open_object(j, NULL);
        json_string(j, "kind", attention_kind_name(w->kind));
        json_integer(j, "layer", w->layer + 1);
        fine = fine && put_linear(j, "q", &w->q, most) && put_linear(j, "k", &w->k, most) &&
               put_linear(j, "v", &w->v, most) && put_linear(j, "o", &w->o, most) &&
               put_linear(j, "norm", &w->norm, most) && put_linear(j, "ff_norm", &w->ff_norm, most);
        if (matrices->live)
            fine = fine && put_linear(j, "in", &w->in, most) && put_linear(j, "out", &w->out, most);
        json_close(j);
    }
    json_close(j);
    return fine;
}
