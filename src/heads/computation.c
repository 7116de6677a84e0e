/* SPDX-License-Identifier: MIT */
/* The memory of computation.h. */
#include "heads/computation.h"

#include <stdlib.h>
#include <string.h>

bool computation_copy(float **to, const float *from, ptrdiff_t count)
{
    free(*to);
    *to = malloc((size_t)count * sizeof **to + 1);
    if (*to)
        memcpy(*to, from, (size_t)count * sizeof **to);
    return *to;
}

void computation_free(computation *s)
{
    float *const arrays[] = {s->words,  s->codes,    s->stream, s->input,    s->memory, s->added,
                             s->joined, s->ff_input, s->inside, s->ff_added, s->result};
    for (size_t n = 0; n < sizeof arrays / sizeof arrays[0]; n++)
        free(arrays[n]);
    free(s->turn.angles);
    *s = (computation){.kind = s->kind, .layer = s->layer};
}

void computation_weights_free(computation_weights *w)
{
    const linear_weights parts[] = {w->q, w->k, w->v, w->o, w->in, w->out, w->norm, w->ff_norm};
    for (size_t n = 0; n < sizeof parts / sizeof parts[0]; n++) {
        free(parts[n].weight);
        free(parts[n].bias);
    }
    *w = (computation_weights){.kind = w->kind, .layer = w->layer};
}
