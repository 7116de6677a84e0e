/* SPDX-License-Identifier: MIT */
/* The shares of a logit (word_shares.h), along the path of direct_path.h. */
#include "heads/word_shares.h"

#include <stdlib.h>

#include "heads/direct_path.h"
#include "heads/subject_model_parts.h"

/* A word while it is taken apart. */
typedef struct sharing {
    word_shares *to;
    const capture *run;
    direct_path path;
    float *row;      /* [width] */
    double *word;    /* [width] its direction */
    double *inverse; /* [norms] */
    double *parts;   /* [parts] */
    double *room;    /* [2 * width] */
    float *pulled;   /* [attentions][inner] */
} sharing;

static bool allocate(sharing *s)
{
    const size_t width = (size_t)s->path.stream.width, parts = (size_t)s->path.stream.parts;
    const size_t heads = (size_t)s->to->heads_per_layer, layers = (size_t)s->to->layers;
    s->row = calloc(width, sizeof *s->row);
    s->word = calloc(width, sizeof *s->word);
    s->inverse = calloc((size_t)direct_norms(&s->path), sizeof *s->inverse);
    s->parts = calloc(parts + 1, sizeof *s->parts);
    s->room = calloc(2 * width, sizeof *s->room);
    s->pulled = calloc((size_t)(s->path.attention_count * s->path.inner) + 1, sizeof *s->pulled);
    s->to->feed_forward = calloc(layers + 1, sizeof *s->to->feed_forward);
    bool fine =
        s->row && s->word && s->inverse && s->parts && s->room && s->pulled && s->to->feed_forward;
    for (int kind = ATTENTION_DECODER; kind <= ATTENTION_CROSS; kind++) {
        if (s->run->kind[kind].layers == 0)
            continue;
        s->to->heads[kind] = calloc(layers * heads + 1, sizeof *s->to->heads[kind]);
        s->to->biases[kind] = calloc(layers + 1, sizeof *s->to->biases[kind]);
        fine = fine && s->to->heads[kind] && s->to->biases[kind];
    }
    return fine;
}

static void release(sharing *s)
{
    free(s->row);
    free(s->word);
    free(s->inverse);
    free(s->parts);
    free(s->room);
    free(s->pulled);
    direct_path_free(&s->path);
}

/* The heads of one attention; what its part has besides them is the bias of W_O. */
static void divide_attention(const sharing *s, int attention)
{
    const int part = s->path.attentions[attention];
    const stream_part *const at = &s->path.parts[part];
    const capture_heads *const h = &s->run->kind[at->kind];
    double rest = s->parts[part];
    for (int head = 0; head < h->heads; head++) {
        const ptrdiff_t number = (ptrdiff_t)at->layer * h->heads + head;
        const float *const output = h->outputs + (number * h->rows + s->to->row) * h->width;
        const float *const pulled =
            s->pulled + attention * s->path.inner + (ptrdiff_t)head * h->width;
        double share = 0.0;
        for (int c = 0; c < h->width; c++)
            share += (double)pulled[c] * (double)output[c];
        s->to->heads[at->kind][number] = share;
        rest -= share;
    }
    s->to->biases[at->kind][at->layer] = rest;
}

static mha_status divide(sharing *s)
{
    const capture_stream *const stream = &s->run->stream;
    word_shares *const to = s->to;
    const direct_rows rows = {stream->streams, stream->added, stream->rows};
    const direct_removal nothing = {.part = -1};
    direct_sums sums = {.run = &rows, .row = to->row, .parts = s->parts};
    mha_status status = direct_word(&s->path, to->word, s->row, s->word);
    if (status == MHA_OK)
        status = direct_bias(&s->path, to->word, &to->output);
    if (status != MHA_OK)
        return status;
    direct_walk(&s->path, &rows, to->row, s->word, &nothing, false, s->inverse, s->room);
    direct_gradient(&s->path, s->word, s->inverse, s->pulled, &sums, s->room);
    to->embedded = sums.embedded;
    to->norms = sums.norms;
    to->sum = to->output + to->embedded + to->norms;
    for (int n = 0; n < s->path.stream.parts; n++) {
        to->sum += s->parts[n];
        if (!s->path.parts[n].is_attention)
            to->feed_forward[s->path.parts[n].layer] = s->parts[n];
    }
    for (int n = 0; n < s->path.attention_count; n++)
        divide_attention(s, n);
    return MHA_OK;
}

/* The logit of the model, minus the mean of all words. */
static double model_logit(const capture_stream *stream, int row, int word)
{
    const float *const logits = stream->logits + (ptrdiff_t)row * stream->words;
    double sum = 0.0;
    for (int w = 0; w < stream->words; w++)
        sum += (double)logits[w];
    return (double)logits[word] - sum / stream->words;
}

mha_status word_shares_make(word_shares *to, const subject *model, const capture *run, int row,
                            int word)
{
    sharing s = {.to = to, .run = run};
    *to = (word_shares){.row = row,
                        .word = word,
                        .logit = model_logit(&run->stream, row, word),
                        .layers = run->stream.layers,
                        .heads_per_layer = model->shape.heads};
    mha_status status = model->translator
                            ? direct_path_of_translator(&s.path, model->translator)
                            : direct_path_make(&s.path, model_of(model), model->shape);
    if (status == MHA_OK)
        status = allocate(&s) ? divide(&s) : MHA_ERR_MEMORY;
    release(&s);
    return status;
}

void word_shares_free(word_shares *shares)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        free(shares->heads[kind]);
        free(shares->biases[kind]);
    }
    free(shares->feed_forward);
}
