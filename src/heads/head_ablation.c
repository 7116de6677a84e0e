/* SPDX-License-Identifier: MIT */
/*
 * Ablation: the whole model is evaluated once, then the same texts with some heads in another mode.
 * Differences are taken text by text, so that their mean has an interval (head_study.h).
 *
 *      translator      all sentences in batches, head_eval.c
 *      other models    in batches if they predict tokens, subject_batch.c; encoders and texts of
 *                      the user for a translator one after the other, subject_run()
 */
#include "heads/head_ablation.h"

#include <stdlib.h>

#include "heads/subject_batch.h"

struct head_ablation {
    const subject *subject;
    const subject_texts *texts;
    mha_pool *pool;
    head_mode mode;
    head_loss *plain;     /* [texts] of the whole model */
    head_loss *each;      /* [texts] of the latest measurement */
    head_sample *samples; /* [texts] differences of the two */

    /* Of a translator. */
    head_eval *eval;
    head_settings *settings; /* all heads normal between two calls */

    /* Of other models. */
    subject_batches *batches;          /* NULL: one text after the other */
    capture **captures;                /* [texts] of the whole model, without batches */
    uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads], all normal between two calls */
    float *means[ATTENTION_KINDS];     /* [layers][heads][width] */
};

/* --------------------------------------------------------- other models ----- */

/* means[kind][layers][heads][width] += the mean output of each head on one text / texts. */
static void add_means(head_ablation *a, const capture *c, int texts)
{
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const capture_heads *const h = &c->kind[kind];
        const ptrdiff_t D = h->width;
        for (ptrdiff_t n = 0; n < (ptrdiff_t)h->layers * h->heads; n++)
            for (ptrdiff_t k = 0; k < h->rows * D; k++)
                a->means[kind][n * D + k % D] +=
                    h->outputs[n * h->rows * D + k] / (float)h->rows / (float)texts;
    }
}

static bool find_means(head_ablation *a, const subject_texts *means)
{
    static const capture_options options = {.vectors = true};
    for (int n = 0; n < means->count; n++) {
        capture *const c = subject_texts_run(a->subject, means, n, &options, a->pool);
        if (!c)
            return false;
        add_means(a, c, means->count);
        capture_free(c);
    }
    return true;
}

/* The loss of one text; an encoder has no words to predict. */
static head_loss loss_of(const head_ablation *a, const capture *plain, const capture *changed)
{
    if (!subject_predicts(a->subject))
        return (head_loss){.loss = subject_loss(a->subject, plain, changed), .words = 1};
    head_loss loss = {.words = changed->scored};
    for (int i = 0; i < changed->scored; i++) {
        loss.loss -= changed->log_likelihood[i];
        loss.right += changed->predicted[i] == changed->expected[i];
    }
    return loss;
}

static mha_status run_texts(const head_ablation *a, head_loss *each)
{
    capture_options options = {.weights = false};
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        options.changes[kind] = a->changes[kind];
        options.means[kind] = a->means[kind];
    }
    if (a->batches)
        return subject_batches_run(a->batches, &options, each);
    for (int n = 0; n < a->texts->count; n++) {
        capture *const c = subject_texts_run(a->subject, a->texts, n, &options, a->pool);
        if (!c)
            return MHA_ERR_MEMORY;
        each[n] = loss_of(a, a->captures[n], c);
        capture_free(c);
    }
    return MHA_OK;
}

/* Runs the whole model on all texts, one after the other. */
static bool run_plain(head_ablation *a)
{
    static const capture_options options = {.weights = false};
    a->captures = calloc((size_t)a->texts->count + 1, sizeof(capture *));
    for (int n = 0; a->captures && n < a->texts->count; n++) {
        a->captures[n] = subject_texts_run(a->subject, a->texts, n, &options, a->pool);
        if (!a->captures[n])
            return false;
        a->plain[n] = loss_of(a, a->captures[n], a->captures[n]);
    }
    return a->captures;
}

static bool prepare_texts(head_ablation *a, const subject_texts *means)
{
    const head_shape shape = a->subject->shape;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        const size_t heads = (size_t)shape.layers[kind] * (size_t)shape.heads;
        a->changes[kind] = calloc(heads + 1, sizeof *a->changes[kind]);
        a->means[kind] = calloc(heads * (size_t)shape.width + 1, sizeof *a->means[kind]);
        if (!a->changes[kind] || !a->means[kind])
            return false;
    }
    if (subject_batches_fit(a->subject, a->texts)) {
        a->batches = subject_batches_create(a->subject, a->texts, a->pool);
        if (!a->batches || run_texts(a, a->plain) != MHA_OK)
            return false;
    } else if (!run_plain(a)) {
        return false;
    }
    return !means || find_means(a, means);
}

/* ----------------------------------------------------------- translator ----- */

static bool prepare_pairs(head_ablation *a, const subject_texts *means)
{
    const translator *const model = a->subject->translator;
    a->eval = head_eval_create(model, a->texts->pairs, a->texts->count, a->pool);
    a->settings = head_settings_create(translator_config(model), 1);
    if (!a->eval || !a->settings)
        return false;
    if (means && head_means_fill(model, means->pairs, means->count, a->pool, a->settings) != MHA_OK)
        return false;
    return head_eval_run(a->eval, NULL, a->plain, NULL) == MHA_OK;
}

/* ----------------------------------------------------------------- both ----- */

head_ablation *head_ablation_create(const subject *model, const subject_texts *texts,
                                    head_mode mode, const subject_texts *means, mha_pool *pool)
{
    const size_t count = (size_t)texts->count + 1;
    head_ablation *const a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->subject = model;
    a->texts = texts;
    a->pool = pool;
    a->mode = mode;
    a->plain = malloc(count * sizeof *a->plain);
    a->each = malloc(count * sizeof *a->each);
    a->samples = malloc(count * sizeof *a->samples);
    if (a->plain && a->each && a->samples &&
        (texts->pairs ? prepare_pairs(a, means) : prepare_texts(a, means)))
        return a;
    head_ablation_free(a);
    return NULL;
}

void head_ablation_free(head_ablation *a)
{
    if (!a)
        return;
    head_eval_free(a->eval);
    head_settings_free(a->settings);
    subject_batches_free(a->batches);
    for (int n = 0; a->captures && n < a->texts->count; n++)
        capture_free(a->captures[n]);
    free(a->captures);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        free(a->changes[kind]);
        free(a->means[kind]);
    }
    free(a->plain);
    free(a->each);
    free(a->samples);
    free(a);
}

head_total head_ablation_plain(const head_ablation *a)
{
    return head_total_of(a->plain, a->texts->count);
}

static void set_modes(head_ablation *a, const int *heads, int count, head_mode mode)
{
    for (int n = 0; n < count; n++) {
        const head_shape shape = a->subject->shape;
        const head_name name = head_at(shape, heads[n]);
        if (a->settings)
            head_settings_change(a->settings, name.kind, name.layer, name.head, mode);
        else
            a->changes[name.kind][name.layer * shape.heads + name.head] = (uint8_t)mode;
    }
}

mha_status head_ablation_measure(head_ablation *a, const int *heads, int count, head_damage *damage)
{
    const int texts = a->texts->count;
    set_modes(a, heads, count, a->mode);
    const mha_status status =
        a->eval ? head_eval_run(a->eval, a->settings, a->each, NULL) : run_texts(a, a->each);
    set_modes(a, heads, count, HEAD_NORMAL);
    if (status != MHA_OK)
        return status;
    for (int n = 0; n < texts; n++)
        a->samples[n] =
            (head_sample){(float)(a->each[n].loss - a->plain[n].loss), (float)a->each[n].words};
    damage->total = head_total_of(a->each, texts);
    damage->delta = damage->total.loss - head_ablation_plain(a).loss;
    damage->interval = head_interval_of(a->samples, texts, 1);
    return MHA_OK;
}
