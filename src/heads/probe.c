/* SPDX-License-Identifier: MIT */
/* A text, before and after a model is interfered with (probe.h). */
#include "heads/probe.h"

#include <stdlib.h>

#include "heads/likely_words.h"

static bool is_changed(const capture_options *o)
{
    bool changed = o->hidden != NULL || o->patch_count > 0;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        changed |= o->changes[kind] != NULL;
    return changed;
}

static bool write_both(probe *p, const subject *model, const subject_text *text,
                       const capture_options *changed, mha_pool *pool)
{
    static const capture_options plain = {.weights = false};
    if (model->shape.layers[ATTENTION_CROSS] == 0 || changed->patch_count > 0 ||
        !is_changed(changed))
        return true;
    p->written_before = subject_write(model, text, &plain, pool);
    p->written_after = p->written_before ? subject_write(model, text, changed, pool) : NULL;
    return p->written_after;
}

bool probe_make(probe *p, const subject *model, const subject_text *text,
                const capture_options *changed, bool vectors, mha_pool *pool)
{
    static const capture_options plain = {.stream = true};
    capture_options options = *changed;
    options.stream = true;
    options.vectors = vectors;
    *p = (probe){.before = subject_run(model, text, &plain, pool)};
    p->after = p->before ? subject_run(model, text, &options, pool) : NULL;
    return p->after && write_both(p, model, text, changed, pool);
}

void probe_free(probe *p)
{
    capture_free(p->before);
    capture_free(p->after);
    free(p->written_before);
    free(p->written_after);
}

double probe_log_probability(const capture *run, int row, int word)
{
    const float *const logits = run->stream.logits + (ptrdiff_t)row * run->stream.words;
    return (double)logits[word] - logits_log_sum(logits, run->stream.words);
}
