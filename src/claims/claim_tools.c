/* SPDX-License-Identifier: MIT */
/*
 * What the claims about convolutions share: runs one convolution as attention heads, and compares
 * the outputs with the plain loop in double and, bit by bit, with the loop in the type of the
 * layer. The heads are those of convolution.h.
 */
#include "claims/claim_tools.h"

#include <math.h>
#include <stdlib.h>

void proof_fill(rng *r, double *x, ptrdiff_t count)
{
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = (double)(float)(2.0 * rng_unit(r) - 1.0);
}

double proof_difference(const double *a, const double *b, ptrdiff_t count)
{
    double worst = 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        worst = proof_larger(worst, fabs(a[n] - b[n]));
    return worst;
}

/* Largest sum of the weights of a row without its largest one. */
static double largest_leak(const double *weights, ptrdiff_t rows, ptrdiff_t S)
{
    double worst = 0.0;
    for (ptrdiff_t row = 0; row < rows; row++) {
        double top = 0.0, sum = 0.0;
        for (ptrdiff_t j = 0; j < S; j++) {
            top = proof_larger(top, weights[row * S + j]);
            sum += weights[row * S + j];
        }
        worst = proof_larger(worst, sum - top);
    }
    return worst;
}

/* Runs the heads on the picture and fills in the trial. `block` has room for the keys, the queries,
 * y and two outputs of the loop. */
static bool compare(proof *p, const conv_heads *heads, const double *picture, double *block,
                    conv_trial *trial)
{
    const conv_spec *const spec = &heads->spec;
    const ptrdiff_t outputs = heads->L * spec->outputs;
    double *const keys = block, *const queries = keys + heads->S * heads->E;
    double *const y = queries + heads->L * heads->E;
    double *const direct = y + outputs, *const same = direct + outputs;
    conv_tokens(heads, picture, keys, queries);
    if (!proof_ok(p, conv_run(heads, 1, keys, queries, y, NULL, NULL)))
        return false;
    conv_direct(spec, CONV_F64, picture, direct);
    conv_direct(spec, conv_arithmetic_of(spec->type), picture, same);
    *trial = (conv_trial){.error = proof_difference(y, direct, outputs),
                          .bound = conv_bound(heads, keys),
                          .outputs = outputs};
    for (ptrdiff_t n = 0; n < outputs; n++)
        trial->unequal += !(y[n] == same[n]);
    return true;
}

bool proof_convolve_heads(proof *p, const conv_heads *heads, const double *picture,
                          conv_trial *trial)
{
    const ptrdiff_t count = (heads->S + heads->L) * heads->E + 3 * heads->L * heads->spec.outputs;
    double *const block = proof_calloc(p, (size_t)count * sizeof *block);
    const bool fine = block != NULL && compare(p, heads, picture, block, trial);
    free(block);
    return fine;
}

bool proof_leak(proof *p, const conv_heads *heads, const double *picture, double *leak)
{
    const ptrdiff_t rows = heads->H * heads->L;
    const ptrdiff_t count = (heads->S + heads->L) * heads->E + heads->L * heads->spec.outputs;
    double *const keys = proof_calloc(p, (size_t)(count + rows * heads->S) * sizeof *keys);
    if (keys == NULL)
        return false;
    double *const queries = keys + heads->S * heads->E, *const y = queries + heads->L * heads->E;
    double *const weights = keys + count;
    conv_tokens(heads, picture, keys, queries);
    const bool fine = proof_ok(p, conv_run(heads, 1, keys, queries, y, weights, NULL));
    *leak = fine ? largest_leak(weights, rows, heads->S) : (double)NAN;
    free(keys);
    return fine;
}

bool proof_convolve(proof *p, const conv_spec *spec, const double *picture, conv_trial *trial)
{
    conv_heads heads;
    if (!proof_ok(p, conv_heads_create(&heads, spec)))
        return false;
    const bool fine = proof_convolve_heads(p, &heads, picture, trial);
    conv_heads_free(&heads);
    return fine;
}
