/* SPDX-License-Identifier: MIT */
/*
 * Ablation on top of head_eval.c: the whole model is evaluated once, then the same sentences with
 * some heads in another mode. Differences are taken sentence by sentence, so that their mean has an
 * interval (head_study.h).
 */
#include "heads/head_ablation.h"

#include <stdlib.h>

struct head_ablation {
    transformer_config config;
    head_eval *eval;
    head_settings *settings; /* all heads normal between two calls */
    head_mode mode;
    head_loss *plain;     /* [sentences] of the whole model */
    head_loss *each;      /* [sentences] of the latest measurement */
    head_sample *samples; /* [sentences] differences of the two */
};

/* Checks the memory of the members, then finds the means and the losses of the whole model. */
static bool prepare(head_ablation *a, const translator *model, const head_pair *means,
                    int mean_count, mha_pool *pool)
{
    if (!a->eval || !a->settings || !a->plain || !a->each || !a->samples)
        return false;
    if (means && head_means_fill(model, means, mean_count, pool, a->settings) != MHA_OK)
        return false;
    return head_eval_run(a->eval, NULL, a->plain, NULL) == MHA_OK;
}

head_ablation *head_ablation_create(const translator *model, const head_pair *pairs, int count,
                                    head_mode mode, const head_pair *means, int mean_count,
                                    mha_pool *pool)
{
    head_ablation *const a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->config = *translator_config(model);
    a->mode = mode;
    a->eval = head_eval_create(model, pairs, count, pool);
    a->settings = head_settings_create(&a->config, 1);
    a->plain = malloc((size_t)count * sizeof *a->plain);
    a->each = malloc((size_t)count * sizeof *a->each);
    a->samples = malloc((size_t)count * sizeof *a->samples);
    if (prepare(a, model, means, mean_count, pool))
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
    free(a->plain);
    free(a->each);
    free(a->samples);
    free(a);
}

head_total head_ablation_plain(const head_ablation *a)
{
    return head_total_of(a->plain, head_eval_sentences(a->eval));
}

static void set_modes(head_ablation *a, const int *heads, int count, head_mode mode)
{
    for (int n = 0; n < count; n++) {
        const head_name name = head_at(&a->config, heads[n]);
        head_settings_change(a->settings, name.kind, name.layer, name.head, mode);
    }
}

mha_status head_ablation_measure(head_ablation *a, const int *heads, int count, head_damage *damage)
{
    const int sentences = head_eval_sentences(a->eval);
    set_modes(a, heads, count, a->mode);
    const mha_status status = head_eval_run(a->eval, a->settings, a->each, NULL);
    set_modes(a, heads, count, HEAD_NORMAL);
    if (status != MHA_OK)
        return status;
    for (int n = 0; n < sentences; n++)
        a->samples[n] =
            (head_sample){(float)(a->each[n].loss - a->plain[n].loss), (float)a->each[n].words};
    damage->total = head_total_of(a->each, sentences);
    damage->delta = damage->total.loss - head_ablation_plain(a).loss;
    damage->interval = head_interval_of(a->samples, sentences, 1);
    return MHA_OK;
}
