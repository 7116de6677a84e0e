/* SPDX-License-Identifier: MIT */
/*
 * T5's relative positions: a bias for each head that depends on the distance between key and query
 * alone, by buckets that grow with it. A matrix of distances has equal diagonals, so one line per
 * head is enough: element (i, j) is line[L - 1 + j - i], a view with a stride of -1 over i. With a
 * state, sequences are at different positions and each has lines of its own.
 */
#include "model/forward.h"

#include <math.h>

/* The bucket of a distance key - query. */
static int bucket_of(ptrdiff_t distance, bool causal, int buckets, int most)
{
    int bucket = 0;
    if (!causal) {
        buckets /= 2;
        bucket = distance > 0 ? buckets : 0;
    }
    const ptrdiff_t n = distance < 0 ? -distance : causal ? 0 : distance;
    const int exact = buckets / 2;
    if (n < exact)
        return bucket + (int)n;
    /* In f32 as in the reference, whose rounding decides at the edges. */
    const float ratio = logf((float)n / (float)exact) / (float)log((double)most / exact);
    const int far = exact + (int)(ratio * (float)(buckets - exact));
    return bucket + (far < buckets ? far : buckets - 1);
}

ptrdiff_t relative_width(const model_pass *pass, int stack)
{
    const ptrdiff_t longest = pass->side[stack].longest;
    const ptrdiff_t past = stack == STACK_DECODER ? pass->longest_past : 0;
    return pass->model->stack[stack].relative ? 2 * longest + past - 1 : 0;
}

void relative_fill(const model_pass *pass, int stack, const model_attention *attention)
{
    const model_stack *const s = &pass->model->stack[stack];
    const stack_description *const d = &pass->model->files.description.stack[stack];
    const pass_rows *const side = &pass->side[stack];
    const ptrdiff_t width = relative_width(pass, stack), all = d->attention.heads;
    for (ptrdiff_t b = 0; b < (side->past ? pass->B : 1); b++)
        for (ptrdiff_t t = 0; t < width; t++) {
            const ptrdiff_t past = side->past ? (ptrdiff_t)side->past[b] : 0;
            const float *const row =
                s->relative + all * bucket_of(t - (side->longest - 1) - past, d->causal,
                                              d->attention.relative_buckets,
                                              d->attention.relative_distance);
            for (ptrdiff_t h = 0; h < attention->heads; h++)
                pass->relative[stack][(b * attention->heads + h) * width + t] =
                    row[attention->kept ? attention->kept[h] : h];
        }
}
