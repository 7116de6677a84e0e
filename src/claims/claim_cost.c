/* SPDX-License-Identifier: MIT */
/*
 * Claim 5: parameters and operations do not grow with the number of heads h if each head has the
 * width E/h. The counts come from layers that are created here. The number of softmax exponentials
 * does grow with h; it is printed too, and so is the measured time.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "claims/claims.h"

enum { E = 256, L = 128, ROUNDS = 20 };

typedef struct count {
    double parameters, bytes;
    double products; /* flops of projections and of q.k and p.v */
    double exponentials;
    double seconds; /* fastest of ROUNDS runs */
} count;

/* Projections take 2 flops per weight and token. Heads take 2 flops per element of a query and of a
 * value, for each pair of tokens. */
static void count_work(count *c, const mha_layer *layer)
{
    const mha_layer_config made = mha_layer_get_config(layer);
    const double q = (double)(made.E * made.H * made.D), k = (double)(made.E * made.G * made.D);
    const double v = (double)(made.E * made.G * made.Dv);
    const double o = (double)(made.output_width * made.H * made.Dv);
    c->parameters = q + k + v + o;
    c->bytes = (double)mha_layer_bytes(layer);
    c->products = 2.0 * L * c->parameters + 2.0 * L * L * (double)(made.H * (made.D + made.Dv));
    c->exponentials = (double)made.H * L * L;
}

/* Runs the layer ROUNDS times and keeps the shortest time. */
static mha_status measure(count *c, const mha_layer *layer, const float *x, float *y)
{
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = L,
                                 .query = mha_view_ble(x, L, E),
                                 .output = mha_out_ble(y, L, E)};
    for (int n = 0; n < ROUNDS; n++) {
        const double begin = clock_seconds();
        const mha_status status = mha_layer_run(layer, &call, NULL, 0, NULL);
        if (status != MHA_OK)
            return status;
        const double seconds = clock_seconds() - begin;
        c->seconds = n == 0 || seconds < c->seconds ? seconds : c->seconds;
    }
    return MHA_OK;
}

/* Creates a layer, counts its work and measures it. D = 0 gives heads of width E/h. */
static mha_status count_layer(count *c, ptrdiff_t heads, ptrdiff_t D, const float *w,
                              const float *x, float *y)
{
    const ptrdiff_t wide = heads * (D > 0 ? D : E / heads);
    const mha_layer_config config = {.size = sizeof config, .E = E, .H = heads, .D = D};
    const mha_layer_weights weights = {.size = sizeof weights,
                                       .q = mha_matrix_out_in(w, MHA_F32, E),
                                       .k = mha_matrix_out_in(w, MHA_F32, E),
                                       .v = mha_matrix_out_in(w, MHA_F32, E),
                                       .o = mha_matrix_out_in(w, MHA_F32, wide)};
    mha_layer *layer;
    mha_status status = mha_layer_create(&layer, &config, &weights);
    if (status == MHA_OK) {
        count_work(c, layer);
        status = measure(c, layer, x, y);
    }
    mha_layer_free(layer);
    return status;
}

/* One block of rows: ratios to the layer with one head. */
static void compare_counts(proof *p, const count *one, const count *many, int heads)
{
    proof_at_most(p, many->parameters / one->parameters, 1.0, "h = %d: parameters", heads);
    proof_at_most(p, many->products / one->products, 1.0, "h = %d: flops of products", heads);
    proof_note(p, many->exponentials / one->exponentials, "h = %d: exponentials of softmax", heads);
    proof_note(p, many->bytes / one->bytes, "h = %d: bytes of packed weights", heads);
    proof_note(p, many->seconds / one->seconds, "h = %d: time, measured", heads);
}

static void judge(proof *p, const float *w, const float *x, float *y)
{
    count one = {0}, many = {0};
    if (!proof_ok(p, count_layer(&one, 1, 0, w, x, y)))
        return;
    proof_say(p, "A layer of width %d on %d tokens, compared with such a layer with one head:", E,
              L);
    proof_note(p, one.parameters, "h = 1: parameters, 4 E^2");
    proof_note(p, one.products, "h = 1: flops of products, 8 L E^2 + 4 L^2 E");
    for (int heads = 2; heads <= 32; heads *= 4) {
        if (!proof_ok(p, count_layer(&many, heads, 0, w, x, y)))
            return;
        compare_counts(p, &one, &many, heads);
    }
    if (!proof_ok(p, count_layer(&one, 1, 64, w, x, y)) ||
        !proof_ok(p, count_layer(&many, 8, 64, w, x, y)))
        return;
    proof_say(p, "With heads of a fixed width, 64, they do grow:");
    proof_at_least(p, many.parameters / one.parameters, 8.0, "h = 8 / h = 1: parameters");
    proof_at_least(p, many.products / one.products, 8.0, "h = 8 / h = 1: flops of products");
}

void prove_cost(proof *p)
{
    enum { WIDEST = 8 * 64 };
    float *const block = proof_calloc(p, (E * WIDEST + 2 * L * E) * sizeof *block);
    rng r = rng_for(p->seed, 50);
    if (block == NULL)
        return;
    for (int n = 0; n < E * WIDEST + 2 * L * E; n++)
        block[n] = (float)(rng_normal(&r) / 16.0);
    judge(p, block, block + E * WIDEST, block + E * WIDEST + L * E);
    free(block);
}
