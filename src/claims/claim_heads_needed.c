/* SPDX-License-Identifier: MIT */
/*
 * Second half of claim 3: how many heads a convolution needs, if their weights do not depend on
 * content. W is the kernel as a matrix with a row per tap and a column per pair of channels.
 *
 * Needed (proved): the layer is a sum over heads of A_h (x) M_h, whose rank is at most h if it is
 * seen as a matrix of (query, key) by (input, output). That of a convolution has the rank of W, and
 * by Eckart and Young h heads lose at least the singular values of W from number h + 1 on.
 * Sufficient (computed here): rank(W) + 1 heads, so two for one channel; and one head per tap.
 */
#include <math.h>
#include <stdlib.h>

#include "claims/claim_tools.h"
#include "claims/convolution_mixed.h"
#include "claims/symmetric_eigen.h"

/* Largest difference of a mixture's heads from the convolution `spec`, and its bound. */
static bool try_mixture(proof *p, const conv_spec *spec, const conv_mixture *m,
                        const double *picture, conv_trial *trial)
{
    conv_heads heads;
    if (!proof_ok(p, conv_mixed_heads(&heads, spec, m)))
        return false;
    const ptrdiff_t outputs = heads.L * spec->outputs;
    double *const y = proof_calloc(p, (size_t)(2 * outputs) * sizeof *y);
    const bool fine =
        y != NULL && proof_ok(p, conv_run(&heads, 1, picture, picture, y, NULL, NULL));
    if (fine) {
        conv_direct(spec, CONV_F64, picture, y + outputs);
        *trial = (conv_trial){.error = proof_difference(y, y + outputs, outputs),
                              .bound = conv_mixed_bound(&heads, m, picture),
                              .outputs = outputs};
    }
    free(y);
    conv_heads_free(&heads);
    return fine;
}

/* ---------------------------------------------------------- one channel ----- */

enum { ROWS = 9, COLUMNS = 8, SIDE_MAX = 7 };

typedef enum tap_kind { TAPS_RANDOM, TAPS_SOBEL, TAPS_POSITIVE, TAPS_ZERO } tap_kind;

typedef struct channel_case {
    const char *name;
    ptrdiff_t side;
    tap_kind kind;
    conv_padding padding;
    mha_dtype type;
} channel_case;

static void fill_taps(rng *r, const channel_case *c, double *taps)
{
    static const double sobel[] = {-1, 0, 1, -2, 0, 2, -1, 0, 1};
    proof_fill(r, taps, c->side * c->side);
    for (ptrdiff_t t = 0; t < c->side * c->side; t++) {
        if (c->kind == TAPS_SOBEL)
            taps[t] = sobel[t];
        if (c->kind == TAPS_POSITIVE)
            taps[t] = fabs(taps[t]) + 0.125;
        if (c->kind == TAPS_ZERO)
            taps[t] = 0.0;
    }
}

static conv_spec spec_of(conv_point picture, ptrdiff_t side, ptrdiff_t inputs, ptrdiff_t outputs,
                         const double *weights)
{
    return (conv_spec){.picture = picture,
                       .kernel = {side, side},
                       .inputs = inputs,
                       .outputs = outputs,
                       .stride = 1,
                       .dilation = 1,
                       .padding = CONV_CIRCULAR,
                       .code = CONV_HARD,
                       .factoring = CONV_BY_INPUTS,
                       .type = MHA_F64,
                       .weights = weights};
}

static bool show_channel(proof *p)
{
    static const channel_case cases[] = {
        {"f64 3x3 random, circular", 3, TAPS_RANDOM, CONV_CIRCULAR, MHA_F64},
        {"f64 7x7 random, replicate", 7, TAPS_RANDOM, CONV_REPLICATE, MHA_F64},
        {"f32 3x3 random, replicate", 3, TAPS_RANDOM, CONV_REPLICATE, MHA_F32},
        {"f32 7x7 random, circular", 7, TAPS_RANDOM, CONV_CIRCULAR, MHA_F32},
        {"f64 3x3 Sobel, some taps 0", 3, TAPS_SOBEL, CONV_REPLICATE, MHA_F64},
        {"f64 5x5 all taps positive", 5, TAPS_POSITIVE, CONV_CIRCULAR, MHA_F64},
        {"f64 3x3 all taps 0", 3, TAPS_ZERO, CONV_CIRCULAR, MHA_F64},
    };
    rng r = rng_for(p->seed, 31);
    double picture[ROWS * COLUMNS], taps[SIDE_MAX * SIDE_MAX], most = 0.0;
    proof_fill(&r, picture, ROWS * COLUMNS);
    proof_say(p, "K^2 heads are not always needed. One channel: two heads compute any K x K");
    proof_say(p, "kernel. One head has the weights |tap| / sum over the positive taps, the other");
    proof_say(p, "over the negative taps; W_V W_O is the sum, or minus the sum. Largest error:");
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const channel_case *const c = &cases[n];
        conv_trial trial;
        fill_taps(&r, c, taps);
        conv_spec spec = spec_of((conv_point){ROWS, COLUMNS}, c->side, 1, 1, taps);
        spec.padding = c->padding;
        spec.type = c->type;
        const conv_mixture m = conv_mix_by_sign(&spec);
        if (!try_mixture(p, &spec, &m, picture, &trial))
            return false;
        proof_at_most(p, trial.error, trial.bound, "%s: %d head%s", c->name, (int)m.heads,
                      m.heads == 1 ? "" : "s");
        most = fmax(most, (double)m.heads);
    }
    proof_at_most(p, most, 2.0, "largest number of heads");
    return true;
}

/* ------------------------------------------------------- several channels --- */

enum { EDGE = 6, PIXELS = EDGE * EDGE, INPUTS = 3, OUTPUTS = 4, PATHS = INPUTS * OUTPUTS };
enum { IMPULSES = PIXELS * INPUTS, ANSWERS = PIXELS * OUTPUTS, NEEDED = 9 };

/* A random matrix of taps has a smallest singular value of at least this share of the largest: of
 * 300,000 drawn, none was below 0.004, and the probability falls with the fourth power. */
#define SMALLEST_SHARE 1e-3

/* Every picture with one channel of one pixel set to 1, and what comes out. The squares of all
 * differences from the convolution are the squared norm of the difference of both operators. */
typedef struct impulses {
    double pictures[IMPULSES * PIXELS * INPUTS];
    double wanted[IMPULSES * ANSWERS], y[IMPULSES * ANSWERS];
} impulses;

static void make_impulses(impulses *m, const conv_spec *spec)
{
    for (int b = 0; b < IMPULSES; b++) {
        m->pictures[b * PIXELS * INPUTS + b] = 1.0;
        conv_direct(spec, CONV_F64, m->pictures + b * PIXELS * INPUTS, m->wanted + b * ANSWERS);
    }
}

/* Share of the squared norm that these heads lose. NaN: a call failed. Frees the heads. */
static double lost_share(proof *p, impulses *m, mha_status created, conv_heads *heads)
{
    double lost = 0.0, all = 0.0;
    if (!proof_ok(p, created))
        return NAN;
    const bool fine =
        proof_ok(p, conv_run(heads, IMPULSES, m->pictures, m->pictures, m->y, NULL, NULL));
    conv_heads_free(heads);
    for (int n = 0; n < IMPULSES * ANSWERS; n++) {
        lost += (m->y[n] - m->wanted[n]) * (m->y[n] - m->wanted[n]);
        all += m->wanted[n] * m->wanted[n];
    }
    return fine ? lost / all : (double)NAN;
}

/*
 * Singular values of the operator that gave the outputs y, as a matrix of (query, key) by (input,
 * output). Each tap's part of it is a 0/1 matrix with PIXELS ones, and no two overlap: they are
 * those of W times sqrt(PIXELS), which is divided out.
 */
static void measured_values(const impulses *m, double *values)
{
    double gram[PATHS * PATHS] = {0}, vectors[PATHS * PATHS], row[PATHS];
    for (int key = 0; key < PIXELS; key++)
        for (int query = 0; query < PIXELS; query++) {
            for (int n = 0; n < PATHS; n++)
                row[n] =
                    m->y[(key * INPUTS + n / OUTPUTS) * ANSWERS + query * OUTPUTS + n % OUTPUTS];
            for (int n = 0; n < PATHS * PATHS; n++)
                gram[n] += row[n / PATHS] * row[n % PATHS] / PIXELS;
        }
    symmetric_eigen(gram, PATHS, values, vectors);
    for (int n = 0; n < PATHS; n++)
        values[n] = sqrt(fmax(values[n], 0.0));
}

/* Share of the squared singular values from number `heads` on: what that many heads lose at least,
 * whatever their weights are. */
static double lower_bound(const double *values, int heads)
{
    double rest = 0.0, all = 0.0;
    for (int n = 0; n < PATHS; n++) {
        all += values[n] * values[n];
        rest += n >= heads ? values[n] * values[n] : 0.0;
    }
    return rest / all;
}

/* One head per tap computes the kernel, and its operator has the singular values of W. */
static bool show_nine(proof *p, impulses *m, const conv_spec *spec, const double *values)
{
    conv_heads heads;
    double measured[PATHS];
    const double lost = lost_share(p, m, conv_heads_create(&heads, spec), &heads);
    measured_values(m, measured);
    proof_at_least(p, values[NEEDED - 1] / values[0], SMALLEST_SHARE,
                   "smallest / largest singular value");
    proof_at_most(p, proof_difference(values, measured, NEEDED) / values[0], 1e-12,
                  "same values from the layer's outputs, off by");
    proof_at_most(p, lost, 1e-24, "9 heads, one per tap: share lost");
    return p->status == MHA_OK;
}

/* Heads that are built for the nearest kernel of a smaller rank lose no less than the bound. */
static bool show_fewer(proof *p, impulses *m, const conv_spec *spec, const double *values)
{
    for (int count = 8; count >= 2; count -= 2) {
        conv_heads heads;
        const conv_mixture mixture = conv_mix_by_rank(spec, count - 1);
        const double least = lower_bound(values, count);
        const double lost = lost_share(p, m, conv_mixed_heads(&heads, spec, &mixture), &heads);
        if (p->status != MHA_OK)
            return false;
        proof_at_least(p, lost, least, "%d heads, built: lost; bound for any weights", count);
    }
    /* Of nine singular values, the smallest is at least SMALLEST_SHARE times the largest. */
    const double least = SMALLEST_SHARE * SMALLEST_SHARE / NEEDED;
    proof_at_least(p, lower_bound(values, 8), least, "8 heads, any weights: lost at least");
    proof_at_least(p, lower_bound(values, 4), 0.05, "4 heads, any weights: lost at least");
    return true;
}

/* A kernel with more taps than pairs of channels has the rank of the latter at most. */
static bool show_large_kernel(proof *p, rng *r)
{
    enum { SIDE = 5 };
    double weights[SIDE * SIDE * PATHS], picture[PIXELS * INPUTS], values[PATHS];
    conv_trial trial;
    proof_fill(r, weights, SIDE * SIDE * PATHS);
    proof_fill(r, picture, PIXELS * INPUTS);
    const conv_spec spec = spec_of((conv_point){EDGE, EDGE}, SIDE, INPUTS, OUTPUTS, weights);
    const conv_mixture m = conv_mix_by_rank(&spec, PATHS);
    conv_singular_values(&spec, values);
    if (!try_mixture(p, &spec, &m, picture, &trial))
        return false;
    proof_say(p, "rank(W) + 1 heads always suffice. 5x5, %d -> %d channels: W is 25 x %d.", INPUTS,
              OUTPUTS, PATHS);
    proof_at_least(p, values[PATHS - 1] / values[0], SMALLEST_SHARE,
                   "smallest / largest singular value");
    proof_at_most(p, trial.error, trial.bound, "%d heads instead of 25: largest error",
                  (int)m.heads);
    return true;
}

static bool show_channels(proof *p, impulses *m)
{
    double weights[NEEDED * PATHS], values[PATHS];
    rng r = rng_for(p->seed, 32);
    proof_fill(&r, weights, NEEDED * PATHS);
    const conv_spec spec = spec_of((conv_point){EDGE, EDGE}, 3, INPUTS, OUTPUTS, weights);
    make_impulses(m, &spec);
    conv_singular_values(&spec, values);
    proof_say(p, "Several channels: W has a row per tap, a column per pair of channels. If the");
    proof_say(p, "attention weights do not depend on content, at least rank(W) heads are needed:");
    proof_say(p, "h heads are a sum of h terms A_h (x) M_h, which has at most rank h. A random");
    proof_say(p, "3x3 kernel, %d -> %d channels: W is 9 x %d and has rank 9. Share of the squared",
              INPUTS, OUTPUTS, PATHS);
    proof_say(p, "norm that is lost, measured with all pictures of one non-zero number:");
    return show_nine(p, m, &spec, values) && show_fewer(p, m, &spec, values) &&
           show_large_kernel(p, &r);
}

bool prove_heads_needed(proof *p)
{
    impulses *const m = proof_calloc(p, sizeof *m);
    const bool fine = m != NULL && show_channel(p) && show_channels(p, m);
    free(m);
    return fine;
}
