/* SPDX-License-Identifier: MIT */
/*
 * Convolutions by fewer heads than taps: how a kernel becomes a mixture, by the signs of its taps
 * or by its singular vectors, and how a mixture becomes attention heads. The heads are those of a
 * convolution whose taps are the mixture's matrices; only their biases, which say where they
 * attend, are replaced.
 */
#include "claims/convolution_mixed.h"

#include <math.h>

#include "claims/symmetric_eigen.h"

/* ---------------------------------------------------------------- signs ----- */

/* Adds a head that gives tap t the share part[t] / sum, or equal shares if the sum is 0, and
 * returns the sum. The matrix of the head is left 0. */
static double add_head(conv_mixture *m, const double *part)
{
    double *const share = m->share + m->heads++ * m->taps;
    double sum = 0.0;
    for (ptrdiff_t t = 0; t < m->taps; t++)
        sum += part[t];
    for (ptrdiff_t t = 0; t < m->taps; t++)
        share[t] = sum > 0.0 ? part[t] / sum : 1.0 / (double)m->taps;
    return sum;
}

static conv_mixture empty_mixture(const conv_spec *spec)
{
    return (conv_mixture){.taps = spec->kernel.row * spec->kernel.column,
                          .paths = spec->inputs * spec->outputs};
}

conv_mixture conv_mix_by_sign(const conv_spec *spec)
{
    conv_mixture m = empty_mixture(spec);
    for (int sign = 1; sign >= -1; sign -= 2) {
        double share[MIXED_TAPS_MAX], any = 0.0;
        for (ptrdiff_t t = 0; t < m.taps; t++) {
            share[t] = fmax(sign * spec->weights[t], 0.0);
            any = fmax(any, share[t]);
        }
        const bool last_chance = sign < 0 && m.heads == 0;
        if (any > 0.0 || last_chance) {
            const double sum = add_head(&m, share);
            m.matrix[m.heads - 1] = sign * sum;
        }
    }
    return m;
}

/* ----------------------------------------------------------------- rank ----- */

/* Eigenvalues and eigenvectors of W^T W: squares of singular values, right singular vectors. */
static void decompose(const conv_spec *spec, double *values, double *vectors)
{
    const conv_mixture size = empty_mixture(spec);
    double gram[MIXED_PATHS_MAX * MIXED_PATHS_MAX] = {0};
    for (ptrdiff_t t = 0; t < size.taps; t++)
        for (ptrdiff_t n = 0; n < size.paths * size.paths; n++)
            gram[n] += spec->weights[t * size.paths + n / size.paths] *
                       spec->weights[t * size.paths + n % size.paths];
    symmetric_eigen(gram, size.paths, values, vectors);
}

void conv_singular_values(const conv_spec *spec, double *values)
{
    double vectors[MIXED_PATHS_MAX * MIXED_PATHS_MAX];
    const conv_mixture size = empty_mixture(spec);
    decompose(spec, values, vectors);
    for (ptrdiff_t n = 0; n < size.paths; n++)
        values[n] = n < size.taps ? sqrt(fmax(values[n], 0.0)) : 0.0;
}

/* Adds the head of one singular vector v. Returns the constant that made its weights positive. */
static double add_vector(conv_mixture *m, const double *weights, const double *v)
{
    double share[MIXED_TAPS_MAX], least = 0.0;
    for (ptrdiff_t t = 0; t < m->taps; t++) {
        share[t] = 0.0;
        for (ptrdiff_t n = 0; n < m->paths; n++)
            share[t] += weights[t * m->paths + n] * v[n];
        least = fmin(least, share[t]);
    }
    for (ptrdiff_t t = 0; t < m->taps; t++)
        share[t] -= least;
    const double sum = add_head(m, share);
    for (ptrdiff_t n = 0; n < m->paths; n++)
        m->matrix[(m->heads - 1) * m->paths + n] = sum * v[n];
    return -least;
}

conv_mixture conv_mix_by_rank(const conv_spec *spec, ptrdiff_t rank)
{
    static const double nowhere[MIXED_TAPS_MAX] = {0};
    double values[MIXED_PATHS_MAX], vectors[MIXED_PATHS_MAX * MIXED_PATHS_MAX];
    conv_mixture m = empty_mixture(spec);
    decompose(spec, values, vectors);
    add_head(&m, nowhere);
    for (ptrdiff_t k = 0; k < rank; k++) {
        const double *const v = vectors + k * m.paths;
        const double constant = add_vector(&m, spec->weights, v);
        for (ptrdiff_t n = 0; n < m.paths; n++)
            m.matrix[n] -= (double)m.taps * constant * v[n];
    }
    return m;
}

/* ---------------------------------------------------------------- heads ----- */

/* A row of weights of one query, all keys: taps beyond the border of a picture may share a pixel,
 * and their weights add up. */
static void add_shares(const conv_spec *spec, const double *share, conv_point query, double *row)
{
    for (ptrdiff_t t = 0; t < spec->kernel.row * spec->kernel.column; t++) {
        const conv_point tap = conv_tap(spec, t);
        const ptrdiff_t y = conv_source(spec->padding, query.row + tap.row, spec->picture.row);
        const ptrdiff_t x =
            conv_source(spec->padding, query.column + tap.column, spec->picture.column);
        row[y * spec->picture.column + x] += share[t];
    }
}

/* Softmax of log(weight) is the weight; log(0) = -inf masks the key. */
static void set_bias(conv_heads *heads, const conv_spec *spec, const conv_mixture *m)
{
    for (ptrdiff_t n = 0; n < heads->H * heads->L; n++) {
        const ptrdiff_t h = n / heads->L, i = n % heads->L;
        const conv_point query = {i / spec->picture.column, i % spec->picture.column};
        double *const row = heads->bias + n * heads->S;
        for (ptrdiff_t j = 0; j < heads->S; j++)
            row[j] = 0.0;
        add_shares(spec, m->share + h * m->taps, query, row);
        for (ptrdiff_t j = 0; j < heads->S; j++)
            row[j] = log(row[j]);
        for (ptrdiff_t j = 0; heads->bias_f32 != NULL && j < heads->S; j++)
            heads->bias_f32[n * heads->S + j] = (float)row[j];
    }
}

mha_status conv_mixed_heads(conv_heads *heads, const conv_spec *spec, const conv_mixture *m)
{
    conv_spec carrier = *spec;
    carrier.kernel = (conv_point){1, m->heads};
    carrier.dilation = 1;
    carrier.code = CONV_QUADRATIC;
    carrier.factoring = CONV_BY_OUTPUTS;
    carrier.weights = m->matrix;
    const mha_status status = conv_heads_create(heads, &carrier);
    if (status == MHA_OK)
        set_bias(heads, spec, m);
    return status;
}

/*
 * Every weight of a row has a relative error of some units from its bias, exp and the division; a
 * sum of S products follows, then one over inputs and one over heads. All numbers are at most as
 * large as the largest key times the sum of the absolute values of the matrices.
 */
double conv_mixed_bound(const conv_heads *heads, const conv_mixture *m, const double *keys)
{
    const double u = heads->spec.type == MHA_F64 ? 0x1p-53 : 0x1p-24;
    const double terms = (double)(heads->S + heads->spec.inputs + heads->H) + 32.0;
    double matrices = 0.0, largest = 0.0;
    for (ptrdiff_t n = 0; n < m->heads * m->paths; n++)
        matrices += fabs(m->matrix[n]);
    for (ptrdiff_t n = 0; n < heads->S * heads->E; n++)
        largest = fmax(largest, fabs(keys[n]));
    return terms * u * matrices * largest;
}
