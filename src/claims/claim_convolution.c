/* SPDX-License-Identifier: MIT */
/*
 * Claim 3: K^2 heads compute any K x K convolution. First half: every positional code, padding,
 * factoring, stride and dilation on small pictures; how the error falls with alpha; and what
 * happens at the border. The second half, how many heads are needed, is in claim_heads_needed.c.
 */
#include <math.h>
#include <stdlib.h>

#include "claims/claim_tools.h"

static const char *const code_names[] = {"quadratic", "absolute", "one-hot", "hard"};

/* ---------------------------------------------------------- all layers ----- */

enum { INPUTS = 2, OUTPUTS = 3, TAPS_MAX = 25, PIXELS_MAX = 30 };

/* Totals over all layers of one code and type. */
typedef struct sums {
    int runs;
    double worst;            /* largest error / bound */
    double unequal, outputs; /* numbers compared bit by bit, and those that differ */
} sums;

typedef struct material {
    double picture[PIXELS_MAX * INPUTS], bias[OUTPUTS];
    double full[TAPS_MAX * INPUTS * OUTPUTS], rank_1[TAPS_MAX * INPUTS * OUTPUTS];
} material;

/* A tap of rank 1. Its factors have 12 bits, so that their products are exact in f32. */
static void fill_rank_1(rng *r, double *w)
{
    double left[INPUTS], right[OUTPUTS];
    for (int c = 0; c < INPUTS; c++)
        left[c] = (double)rng_between(r, -2047, 2047) / 2048.0;
    for (int n = 0; n < OUTPUTS; n++)
        right[n] = (double)rng_between(r, -2047, 2047) / 2048.0;
    for (int n = 0; n < INPUTS * OUTPUTS; n++)
        w[n] = left[n / OUTPUTS] * right[n % OUTPUTS];
}

static void fill_material(material *m, uint64_t seed)
{
    rng r = rng_for(seed, 30);
    proof_fill(&r, m->picture, PIXELS_MAX * INPUTS);
    proof_fill(&r, m->bias, OUTPUTS);
    proof_fill(&r, m->full, TAPS_MAX * INPUTS * OUTPUTS);
    for (int t = 0; t < TAPS_MAX; t++)
        fill_rank_1(&r, m->rank_1 + t * INPUTS * OUTPUTS);
}

/* Adds one layer. Factored by rank, heads have width 1 and the loop adds in another order: bits
 * are not compared then. */
static bool add_run(proof *p, const material *m, const conv_spec *spec, sums *s)
{
    conv_trial trial;
    if (!proof_convolve(p, spec, m->picture, &trial))
        return false;
    if (trial.outputs == 0)
        return true;
    s->runs++;
    s->worst = proof_larger(s->worst, trial.error / trial.bound);
    if (spec->factoring != CONV_BY_RANK) {
        s->unequal += (double)trial.unequal;
        s->outputs += (double)trial.outputs;
    }
    return true;
}

/* All kernels, paddings, factorings, strides and dilations with one code. The pictures are not
 * square, and one has fewer rows than the largest kernel. */
static bool all_of_code(proof *p, const material *m, conv_code code, mha_dtype type, sums *s)
{
    static const ptrdiff_t kernels[] = {1, 2, 3, 5};
    static const conv_point pictures[] = {{6, 5}, {4, 7}};
    enum { KERNELS = 4, PADDINGS = 4, FACTORINGS = 3, STRIDES = 2, DILATIONS = 2 };
    for (int n = 0; n < KERNELS * PADDINGS * FACTORINGS * STRIDES * DILATIONS; n++) {
        const int padding = n / KERNELS % PADDINGS, rest = n / (KERNELS * PADDINGS);
        const int factoring = rest / (STRIDES * DILATIONS);
        const conv_spec spec = {.picture = pictures[(n + rest) % 2],
                                .kernel = {kernels[n % KERNELS], kernels[n % KERNELS]},
                                .inputs = INPUTS,
                                .outputs = OUTPUTS,
                                .stride = 1 + rest % STRIDES,
                                .dilation = 1 + rest / STRIDES % DILATIONS,
                                .padding = (conv_padding)padding,
                                .code = code,
                                .factoring = (conv_factoring)factoring,
                                .sharpness = type == MHA_F64 ? 64.0 : 32.0,
                                .type = type,
                                .weights = factoring == CONV_BY_RANK ? m->rank_1 : m->full,
                                .bias = m->bias};
        if (!add_run(p, m, &spec, s))
            return false;
    }
    return true;
}

static bool show_all_layers(proof *p)
{
    material m;
    fill_material(&m, p->seed);
    proof_say(p, "Largest error / bound over kernels 1x1, 2x2, 3x3, 5x5; padding replicate,");
    proof_say(p, "zero, circular, valid; stride 1, 2; dilation 1, 2; W_V W_O factored in 3 ways:");
    for (int type = 0; type < 2; type++)
        for (int code = CONV_QUADRATIC; code <= CONV_HARD; code++) {
            sums s = {0};
            const char *const name = type == 0 ? "f64" : "f32";
            if (!all_of_code(p, &m, (conv_code)code, type == 0 ? MHA_F64 : MHA_F32, &s))
                return false;
            proof_at_most(p, s.worst, 1.0, "%s %s, %d layers", name, code_names[code], s.runs);
            if (code == CONV_HARD)
                proof_at_most(p, s.unequal, 0.0, "  of %.0f numbers, not bit-equal", s.outputs);
            else
                proof_note(p, s.unequal, "  of %.0f numbers, not bit-equal", s.outputs);
        }
    return true;
}

/* --------------------------------------------------------------- error ----- */

enum { ROWS = 10, COLUMNS = 9, WIDE_IN = 3, WIDE_OUT = 4, TAPS = 9 };

/* The picture and the kernel of the measurements below. */
typedef struct scene {
    double picture[ROWS * COLUMNS * WIDE_IN], weights[TAPS * WIDE_IN * WIDE_OUT];
} scene;

static conv_spec scene_spec(const scene *s, mha_dtype type, double alpha)
{
    return (conv_spec){.picture = {ROWS, COLUMNS},
                       .kernel = {3, 3},
                       .inputs = WIDE_IN,
                       .outputs = WIDE_OUT,
                       .stride = 1,
                       .dilation = 1,
                       .code = CONV_QUADRATIC,
                       .sharpness = alpha,
                       .type = type,
                       .weights = s->weights};
}

static bool show_sharpness(proof *p, const scene *s)
{
    static const double alphas[] = {4, 8, 16, 20, 32, 40};
    proof_say(p,
              "The error falls as 4 exp(-alpha), until rounding. %d x %d pixels, %d -> %d:", ROWS,
              COLUMNS, WIDE_IN, WIDE_OUT);
    for (int n = 0; n < 12; n++) {
        const mha_dtype type = n < 6 ? MHA_F64 : MHA_F32;
        const conv_spec spec = scene_spec(s, type, alphas[n % 6]);
        conv_trial trial;
        if (!proof_convolve(p, &spec, s->picture, &trial))
            return false;
        proof_at_most(p, trial.error, trial.bound, "%s alpha = %g", n < 6 ? "f64" : "f32",
                      spec.sharpness);
    }
    return true;
}

/* The slope of ln(error) between alpha = 6 and 16, and the weight beside the tap against its bound.
 */
static bool show_slope(proof *p, const scene *s)
{
    const conv_spec soft = scene_spec(s, MHA_F64, 6.0), sharp = scene_spec(s, MHA_F64, 16.0);
    conv_heads heads;
    conv_trial first, last;
    double beside;
    if (!proof_convolve(p, &soft, s->picture, &first) ||
        !proof_convolve(p, &sharp, s->picture, &last) ||
        !proof_ok(p, conv_heads_create(&heads, &soft)))
        return false;
    const double slope = log(last.error / first.error) / 10.0, leak = conv_leak(&heads);
    const bool fine = proof_leak(p, &heads, s->picture, &beside);
    conv_heads_free(&heads);
    proof_at_most(p, fabs(slope + 1.0), 0.02, "slope of ln error is %.4f: off -1 by", slope);
    proof_at_most(p, beside, leak / (1.0 + leak) * (1.0 + 1e-12),
                  "alpha = 6: weight beside the tap, eps/(1+eps)");
    return fine;
}

/* -------------------------------------------------------------- border ----- */

/* Error of one-hot heads on a picture that is not padded: where the tap lies outside, no key has
 * the larger score, and the row is uniform. */
static bool one_hot_at_border(proof *p, const scene *s, double *error)
{
    const conv_spec spec = scene_spec(s, MHA_F64, 32.0);
    conv_heads heads;
    conv_trial trial;
    if (!proof_ok(p, conv_heads_create(&heads, &spec)))
        return false;
    for (ptrdiff_t n = 0; n < heads.H * heads.L * heads.S; n++)
        heads.bias[n] = heads.bias[n] == 0.0 ? 32.0 : 0.0;
    const bool fine = proof_convolve_heads(p, &heads, s->picture, &trial);
    conv_heads_free(&heads);
    *error = trial.error;
    return fine;
}

static bool show_border(proof *p, const scene *s)
{
    double replicate[ROWS * COLUMNS * WIDE_OUT], zero[ROWS * COLUMNS * WIDE_OUT], uniform;
    conv_spec spec = scene_spec(s, MHA_F64, 64.0);
    conv_trial trial;
    conv_direct(&spec, CONV_F64, s->picture, replicate);
    spec.padding = CONV_ZERO;
    conv_direct(&spec, CONV_F64, s->picture, zero);
    spec.padding = CONV_REPLICATE;
    if (!proof_convolve(p, &spec, s->picture, &trial) || !one_hot_at_border(p, s, &uniform))
        return false;
    proof_say(p, "At the border softmax sees only existing pixels: plain heads are a convolution");
    proof_say(p, "with REPLICATE padding. Zeros need a padded picture, or fully masked rows.");
    proof_at_most(p, trial.error, trial.bound, "alpha = 64, not padded: from replicate");
    proof_at_least(p, proof_difference(replicate, zero, ROWS * COLUMNS * WIDE_OUT), 0.1,
                   "replicate from zero padding");
    proof_at_least(p, uniform, 0.05, "one-hot, not padded: from replicate");
    return true;
}

void prove_convolution(proof *p)
{
    scene s;
    rng r = rng_for(p->seed, 33);
    proof_fill(&r, s.picture, ROWS * COLUMNS * WIDE_IN);
    proof_fill(&r, s.weights, TAPS * WIDE_IN * WIDE_OUT);
    proof_say(p, "Pixels are tokens. With one head per tap, the head attends to the pixel of its");
    proof_say(p, "tap and W_V_h W_O_h is the tap's matrix: K^2 heads compute any K x K kernel.");
    if (show_all_layers(p) && show_sharpness(p, &s) && show_slope(p, &s) && show_border(p, &s))
        prove_heads_needed(p);
}
