/* SPDX-License-Identifier: MIT */
/* Compares one head with all heads of its kind: captures the pairs one by one and adds up the
 * divergences of their rows. */
#include "heads/head_likeness.h"

#include <math.h>

/* Adds the divergences of one pair to apart[], where that is not NaN. */
static void add(const transformer_config *config, const capture *c, int head, double *apart)
{
    const head_matrix own = head_matrix_of(c, head_at(config, head));
    for (int n = 0; n < head_count(config); n++) {
        const head_matrix other = head_matrix_of(c, head_at(config, n));
        if (!isnan(apart[n]))
            apart[n] += head_divergence(&own, &other);
    }
}

mha_status head_likeness_measure(const translator *model, const head_pair *pairs, int count,
                                 int head, mha_pool *pool, double *apart)
{
    static const capture_options options = {.weights = true};
    const transformer_config *const config = translator_config(model);
    const attention_kind kind = head_at(config, head).kind;
    double rows = 0.0;
    for (int n = 0; n < head_count(config); n++)
        apart[n] = head_at(config, n).kind == kind ? 0.0 : NAN;
    for (int n = 0; n < count; n++) {
        capture *const c = head_capture(model, &pairs[n], &options, pool);
        if (!c)
            return MHA_ERR_MEMORY;
        add(config, c, head, apart);
        rows += c->kind[kind].rows;
        capture_free(c);
    }
    for (int n = 0; n < head_count(config); n++)
        apart[n] /= rows;
    return MHA_OK;
}
