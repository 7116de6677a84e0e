/* SPDX-License-Identifier: MIT */
/* Compares one head with all heads of its kind: captures the texts one by one and adds up the
 * divergences of their rows. */
#include "heads/head_likeness.h"

#include <math.h>

/* Adds the divergences of one text to apart[], where that is not NaN. */
static void add(head_shape shape, const capture *c, int head, double *apart)
{
    const head_matrix own = head_matrix_of(c, head_at(shape, head));
    for (int n = 0; n < head_count(shape); n++) {
        const head_matrix other = head_matrix_of(c, head_at(shape, n));
        if (!isnan(apart[n]))
            apart[n] += head_divergence(&own, &other);
    }
}

mha_status head_likeness_measure(const subject *model, const subject_texts *texts, int head,
                                 mha_pool *pool, double *apart)
{
    static const capture_options options = {.weights = true};
    const head_shape shape = model->shape;
    const attention_kind kind = head_at(shape, head).kind;
    double rows = 0.0;
    for (int n = 0; n < head_count(shape); n++)
        apart[n] = head_at(shape, n).kind == kind ? 0.0 : NAN;
    for (int n = 0; n < texts->count; n++) {
        capture *const c = subject_texts_run(model, texts, n, &options, pool);
        if (!c)
            return MHA_ERR_MEMORY;
        add(shape, c, head, apart);
        rows += c->kind[kind].rows;
        capture_free(c);
    }
    for (int n = 0; n < head_count(shape); n++)
        apart[n] /= rows;
    return MHA_OK;
}
