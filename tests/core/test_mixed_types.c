/* SPDX-License-Identifier: MIT */
/*
 * MHA_AS_GIVEN: linears, layers and feed-forwards whose matrices keep the types in which they are
 * given. Projections and feed-forwards have the bits of separate linears; a whole layer is compared
 * with one whose matrices were converted to f32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mha/mha.h"
#include "support/test.h"

enum { E = 256, H = 4, G = 2, D = 64, L = 5, MATRICES = 4 };

static const mha_dtype types[] = {MHA_F32,  MHA_F16,  MHA_BF16, MHA_Q8_0,
                                  MHA_Q4_1, MHA_Q4_K, MHA_Q6_K};
enum { TYPES = 7, PLAIN_TYPES = 3 };

static void *take(size_t bytes)
{
    void *const memory = malloc(bytes + 1);
    if (!memory)
        abort();
    return memory;
}

/* A matrix as it is given, and its numbers. */
typedef struct given {
    mha_matrix matrix;
    uint8_t *rows;
    float *wide;
    ptrdiff_t outputs, inputs;
} given;

static size_t scale_at(mha_dtype type)
{
    return type == MHA_Q6_K ? 208 : 0;
}

/* Weights of about 1/16 in size: small scales, everything else at random. */
static given given_new(mha_dtype type, ptrdiff_t outputs, ptrdiff_t inputs, uint64_t seed)
{
    test_random random = {seed};
    const size_t row = mha_row_bytes(type, inputs), bytes = row * (size_t)outputs;
    const size_t block = mha_row_bytes(type, type < MHA_Q4_K ? 32 : 256);
    given g = {.rows = take(bytes),
               .wide = take(sizeof(float) * (size_t)(outputs * inputs)),
               .outputs = outputs,
               .inputs = inputs};
    for (size_t n = 0; n < bytes; n++)
        g.rows[n] = (uint8_t)test_random_u64(&random);
    for (size_t at = 0; type >= MHA_Q8_0 && at < bytes; at += block) {
        const uint16_t head[2] = {type == MHA_Q4_1   ? 0x1c00
                                  : type == MHA_Q8_0 ? 0x1000
                                                     : 0x0500,
                                  type == MHA_Q4_1 ? 0xa000 : 0x1000};
        memcpy(g.rows + at + scale_at(type), head, type == MHA_Q8_0 || type == MHA_Q6_K ? 2 : 4);
    }
    for (size_t n = 0; type == MHA_F32 && n < bytes / 4; n++) {
        const float number = 0.06f * test_random_normal(&random);
        memcpy(g.rows + 4 * n, &number, 4);
    }
    for (size_t n = 0; (type == MHA_F16 || type == MHA_BF16) && n < bytes / 2; n++) {
        const uint16_t size = type == MHA_F16 ? 0x2800 : 0x3d00;
        const uint16_t bits =
            (uint16_t)(size + test_random_below(&random, 0x80) + 0x8000 * (int64_t)(n * 7 / 3 % 2));
        memcpy(g.rows + 2 * n, &bits, 2);
    }
    for (ptrdiff_t n = 0; n < outputs; n++)
        CHECK(mha_row_to_f32(type, g.rows + (size_t)n * row, inputs, g.wide + n * inputs) == MHA_OK,
              "row");
    g.matrix = mha_matrix_out_in(g.rows, type, inputs);
    return g;
}

static void given_free(given *g)
{
    free(g->rows);
    free(g->wide);
}

static float *random_rows(ptrdiff_t count, uint64_t seed)
{
    test_random random = {seed};
    float *const x = take(sizeof(float) * (size_t)count);
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] = test_random_normal(&random);
    return x;
}

static mha_linear *linear_of(const given *g, mha_dtype stored)
{
    mha_linear *linear = NULL;
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = g->inputs,
                                      .outputs = g->outputs,
                                      .weight = g->matrix,
                                      .stored = stored};
    CHECK(mha_linear_create(&linear, &config) == MHA_OK, "linear");
    return linear;
}

/* y of a linear of its own. */
static float *product(const given *g, mha_dtype stored, const float *x, ptrdiff_t rows)
{
    mha_linear *const linear = linear_of(g, stored);
    float *const y = take(sizeof(float) * (size_t)(rows * g->outputs));
    CHECK(mha_linear_run(linear, rows, x, MHA_F32, g->inputs, y, MHA_F32, g->outputs, NULL, 0,
                         NULL) == MHA_OK,
          "run");
    mha_linear_free(linear);
    return y;
}

static bool same(const float *a, const float *b, ptrdiff_t count)
{
    return memcmp(a, b, sizeof(float) * (size_t)count) == 0;
}

/* Is b nearly a, for the size of all of a? */
static bool near(const float *a, const float *b, ptrdiff_t count)
{
    double most = 0, apart = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const double size = fabs((double)a[n]), difference = fabs((double)a[n] - (double)b[n]);
        most = size > most ? size : most;
        apart = difference > apart || isnan(difference) ? difference : apart;
    }
    return most > 0 && apart <= 2e-5 * most;
}

/* ------------------------------------------------------------------------ linears ---- */

static void linears_keep_the_type(void)
{
    float *const x = random_rows(L * E, 3);
    for (int t = 0; t < TYPES; t++) {
        given g = given_new(types[t], 40, E, 4);
        mha_linear *const a = linear_of(&g, MHA_AS_GIVEN), *const b = linear_of(&g, types[t]);
        float *const y = product(&g, MHA_AS_GIVEN, x, L), *const z = product(&g, types[t], x, L);
        CHECK(same(y, z, L * 40) && mha_linear_bytes(a) == mha_linear_bytes(b), "type %d",
              (int)types[t]);
        mha_linear_free(a);
        mha_linear_free(b);
        free(y);
        free(z);
        given_free(&g);
    }
    free(x);
}

static void no_matrix_has_this_type(void)
{
    mha_linear *linear;
    char message[200] = "";
    const float w[4] = {0};
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = 2,
                                      .outputs = 2,
                                      .weight = mha_matrix_out_in(w, MHA_AS_GIVEN, 2),
                                      .stored = MHA_AS_GIVEN,
                                      .message = message,
                                      .message_size = sizeof message};
    CHECK(mha_linear_create(&linear, &config) == MHA_ERR_DTYPE && strstr(message, "config.weight"),
          "%s", message);
    CHECK(mha_dtype_size(MHA_AS_GIVEN) == 0 && mha_row_bytes(MHA_AS_GIVEN, 32) == 0, "sizes");
}

/* ------------------------------------------------------------------------- layers ---- */

typedef struct layer_parts {
    given given[MATRICES]; /* q, k, v, o */
    mha_layer_weights as_given, wide;
    mha_layer *layer, *plain; /* plain: of f32 */
} layer_parts;

static mha_layer *layer_of(const mha_layer_weights *weights, mha_dtype stored)
{
    mha_layer *layer = NULL;
    char message[200] = "";
    const mha_layer_config config = {.size = sizeof config,
                                     .E = E,
                                     .H = H,
                                     .G = G,
                                     .D = D,
                                     .stored = stored,
                                     .message = message,
                                     .message_size = sizeof message};
    CHECK(mha_layer_create(&layer, &config, weights) == MHA_OK, "%s", message);
    return layer;
}

static layer_parts layer_parts_new(const mha_dtype type[MATRICES], uint64_t seed)
{
    static const ptrdiff_t outputs[MATRICES] = {H * D, G * D, G * D, E};
    layer_parts p = {.as_given.size = sizeof p.as_given};
    mha_matrix wide[MATRICES];
    for (int n = 0; n < MATRICES; n++) {
        p.given[n] = given_new(type[n], outputs[n], n == 3 ? H * D : E, seed + (uint64_t)n);
        wide[n] = mha_matrix_out_in(p.given[n].wide, MHA_F32, p.given[n].inputs);
    }
    p.wide = p.as_given;
    p.as_given.q = p.given[0].matrix;
    p.as_given.k = p.given[1].matrix;
    p.as_given.v = p.given[2].matrix;
    p.as_given.o = p.given[3].matrix;
    p.wide.q = wide[0];
    p.wide.k = wide[1];
    p.wide.v = wide[2];
    p.wide.o = wide[3];
    p.layer = layer_of(&p.as_given, MHA_AS_GIVEN);
    p.plain = layer_of(&p.wide, MHA_F32);
    return p;
}

static void layer_parts_free(layer_parts *p)
{
    for (int n = 0; n < MATRICES; n++)
        given_free(&p->given[n]);
    mha_layer_free(p->layer);
    mha_layer_free(p->plain);
}

static mha_layer_call call_of(const float *x, float *y)
{
    return (mha_layer_call){.size = sizeof(mha_layer_call),
                            .B = 1,
                            .L = L,
                            .query = mha_view_ble(x, L, E),
                            .output = mha_out_ble(y, L, E)};
}

/* Runs with a workspace of exactly the size that is needed. */
static float *run_layer(const mha_layer *layer, const float *x, float *captured[3], mha_pool *pool)
{
    float *const y = take(sizeof(float) * L * E);
    mha_layer_call call = call_of(x, y);
    if (captured) {
        call.captured_q = (mha_out){captured[0], 0, D, H * D};
        call.captured_k = (mha_out){captured[1], 0, D, G * D};
        call.captured_v = (mha_out){captured[2], 0, D, G * D};
    }
    const size_t size = mha_layer_work_size(layer, &call, mha_pool_threads(pool));
    void *const work = take(size);
    const mha_status status = mha_layer_run(layer, &call, work, size, pool);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    free(work);
    return y;
}

static size_t bytes_apart(const layer_parts *p)
{
    size_t bytes = 0;
    for (int n = 0; n < MATRICES; n++) {
        mha_linear *const linear = linear_of(&p->given[n], MHA_AS_GIVEN);
        bytes += mha_linear_bytes(linear);
        mha_linear_free(linear);
    }
    return bytes;
}

static void random_types(test_random *random, int count, mha_dtype type[MATRICES])
{
    for (int n = 0; n < MATRICES; n++)
        type[n] = types[test_random_below(random, count)];
    if (test_random_below(random, 2))
        type[1] = type[0];
}

static void layers_of_mixed_types(void)
{
    test_random random = {test_seed(11)};
    float *const x = random_rows(L * E, 12);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(40); n++) {
        mha_dtype type[MATRICES] = {MHA_Q4_K, MHA_Q4_K, MHA_Q6_K, MHA_Q4_K};
        if (n > 0)
            random_types(&random, TYPES, type);
        layer_parts p = layer_parts_new(type, (uint64_t)n * 10);
        float *captured[3];
        for (int k = 0; k < 3; k++)
            captured[k] = take(sizeof(float) * (size_t)(L * p.given[k].outputs));
        float *const y = run_layer(p.layer, x, captured, NULL);
        float *const threads = run_layer(p.layer, x, NULL, pool);
        float *const wanted = run_layer(p.plain, x, NULL, NULL);
        CHECK(near(wanted, y, L * E) && same(y, threads, L * E), "types %d, %d, %d, %d", type[0],
              type[1], type[2], type[3]);
        for (int k = 0; k < 3; k++) {
            float *const alone = product(&p.given[k], type[k], x, L);
            CHECK(same(alone, captured[k], L * p.given[k].outputs),
                  "types %d, %d, %d: matrix %d has other bits than alone", type[0], type[1],
                  type[2], k);
            free(alone);
            free(captured[k]);
        }
        CHECK(mha_layer_bytes(p.layer) == bytes_apart(&p), "bytes");
        CHECK(mha_layer_get_config(p.layer).stored == MHA_AS_GIVEN, "configuration");
        const mha_layer_call call = call_of(x, y);
        CHECK(mha_layer_work_size(p.layer, &call, 2) == mha_layer_work_size(p.plain, &call, 2),
              "the workspace depends on the types");
        free(y);
        free(threads);
        free(wanted);
        layer_parts_free(&p);
    }
    mha_pool_free(pool);
    free(x);
}

static void updates_keep_the_types(void)
{
    static const mha_dtype type[MATRICES] = {MHA_Q4_K, MHA_Q6_K, MHA_Q8_0, MHA_F16};
    static const mha_dtype others[MATRICES] = {MHA_Q4_K, MHA_Q6_K, MHA_F32, MHA_F32};
    float *const x = random_rows(L * E, 22);
    layer_parts p = layer_parts_new(type, 20), next = layer_parts_new(type, 30),
                other = layer_parts_new(others, 40);
    const size_t bytes = mha_layer_bytes(p.layer);
    float *const before = run_layer(p.layer, x, NULL, NULL);
    CHECK(mha_layer_update(p.layer, &p.wide) == MHA_ERR_DTYPE, "f32 cannot become Q4_K");
    float *const still = run_layer(p.layer, x, NULL, NULL);
    CHECK(same(before, still, L * E), "a refused update changed the layer");
    CHECK(mha_layer_update(p.layer, &next.as_given) == MHA_OK, "update");
    float *const y = run_layer(p.layer, x, NULL, NULL);
    float *const wanted = run_layer(next.layer, x, NULL, NULL);
    CHECK(same(y, wanted, L * E) && mha_layer_bytes(p.layer) == bytes, "updated");
    CHECK(mha_layer_update(p.layer, &other.as_given) == MHA_OK, "v and o are converted");
    CHECK(mha_layer_bytes(p.layer) == bytes, "types have changed");
    free(before);
    free(still);
    free(y);
    free(wanted);
    layer_parts_free(&p);
    layer_parts_free(&next);
    layer_parts_free(&other);
    free(x);
}

static void pruned_layers_keep_the_types(void)
{
    static const uint8_t keep[H] = {1, 0, 0, 1};
    static const float gates[H] = {1, 0, 0, 1};
    static const mha_dtype o_types[] = {MHA_F16, MHA_Q8_0, MHA_F32};
    float *const x = random_rows(L * E, 32);
    for (int n = 0; n < 3; n++) {
        const mha_dtype type[MATRICES] = {MHA_Q4_K, n == 1 ? MHA_Q6_K : MHA_Q4_K, MHA_Q6_K,
                                          o_types[n]};
        layer_parts p = layer_parts_new(type, 50);
        mha_layer *pruned = NULL;
        CHECK(mha_layer_prune(&pruned, p.layer, keep, NULL, 0) == MHA_OK, "prune");
        float *const y = run_layer(pruned, x, NULL, NULL);
        float *const wanted = take(sizeof(float) * L * E);
        const mha_options options = {.size = sizeof options, .gates = gates};
        mha_layer_call call = call_of(x, wanted);
        call.options = &options;
        CHECK(mha_layer_run(p.layer, &call, NULL, 0, NULL) == MHA_OK, "run");
        CHECK(near(wanted, y, L * E) && mha_layer_bytes(pruned) < mha_layer_bytes(p.layer),
              "W_O in type %d", (int)o_types[n]);
        mha_layer_free(pruned);
        free(y);
        free(wanted);
        layer_parts_free(&p);
    }
    free(x);
}

/* Blocks of 256 inputs of W_O span several heads. */
static void heads_within_a_block_are_not_removed(void)
{
    static const uint8_t keep[H] = {1, 0, 1, 1};
    static const mha_dtype type[MATRICES] = {MHA_F32, MHA_F32, MHA_F32, MHA_Q6_K};
    layer_parts p = layer_parts_new(type, 60);
    mha_layer *pruned;
    char message[200] = "";
    CHECK(mha_layer_prune(&pruned, p.layer, keep, message, sizeof message) == MHA_ERR_SHAPE &&
              !pruned && strstr(message, "MHA_Q6_K"),
          "%s", message);
    layer_parts_free(&p);
}

/* ---------------------------------------------------------------------- gradients ---- */

static void *take_aligned(size_t bytes)
{
    void *const memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory)
        abort();
    return memory;
}

static float *gradient_of(const mha_layer *layer, const float *x, const float *d_y)
{
    float *const y = take(sizeof(float) * L * E), *const d_x = take(sizeof(float) * L * E);
    mha_layer_call call = call_of(x, y);
    call.tape_size = mha_layer_tape_size(layer, &call);
    call.tape = take_aligned(call.tape_size);
    const size_t size = mha_layer_backward_work_size(layer, &call, 1);
    void *const work = take(size);
    const mha_layer_gradients gradients = {.size = sizeof gradients,
                                           .d_output = mha_view_ble(d_y, L, E),
                                           .d_query = mha_out_ble(d_x, L, E)};
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "run");
    CHECK(mha_layer_backward(layer, &call, &gradients, work, size, NULL) == MHA_OK, "backward");
    free(call.tape);
    free(work);
    free(y);
    return d_x;
}

static void gradients_of_mixed_types(void)
{
    test_random random = {test_seed(41)};
    float *const x = random_rows(L * E, 42), *const d_y = random_rows(L * E, 43);
    for (int n = 0; n < 12; n++) {
        mha_dtype type[MATRICES];
        random_types(&random, PLAIN_TYPES, type);
        layer_parts p = layer_parts_new(type, (uint64_t)n);
        float *const d_x = gradient_of(p.layer, x, d_y);
        float *const wanted = gradient_of(p.plain, x, d_y);
        CHECK(near(wanted, d_x, L * E), "types %d, %d, %d, %d", type[0], type[1], type[2], type[3]);
        free(d_x);
        free(wanted);
        layer_parts_free(&p);
    }
    free(x);
    free(d_y);
}

static void blocks_have_no_gradients(void)
{
    float *const x = random_rows(L * E, 52), *const y = take(sizeof(float) * L * E);
    for (int n = 0; n < MATRICES; n++) {
        mha_dtype type[MATRICES] = {MHA_F32, MHA_F32, MHA_F16, MHA_F32};
        type[n] = MHA_Q6_K;
        layer_parts p = layer_parts_new(type, 70);
        char message[200] = "";
        const mha_options options = {
            .size = sizeof options, .message = message, .message_size = sizeof message};
        mha_layer_call call = call_of(x, y);
        call.options = &options;
        CHECK(mha_layer_tape_size(p.layer, &call) == 0, "matrix %d: a tape", n);
        call.tape_size = 1 << 20;
        call.tape = take_aligned(call.tape_size);
        CHECK(mha_layer_run(p.layer, &call, NULL, 0, NULL) == MHA_ERR_DTYPE &&
                  strstr(message, "MHA_Q6_K have no backward pass"),
              "matrix %d: %s", n, message);
        free(call.tape);
        layer_parts_free(&p);
    }
    free(x);
    free(y);
}

/* ------------------------------------------------------------------ feed-forwards ---- */

static void feed_forwards_of_mixed_types(void)
{
    enum { INNER = 512, MOST = 450 };
    static const ptrdiff_t rows[] = {1, 3, 14, MOST};
    test_random random = {test_seed(61)};
    float *const x = random_rows(MOST * E, 62);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int64_t n = 0; n < test_effort(30); n++) {
        mha_dtype type[MATRICES] = {MHA_Q4_K, MHA_Q6_K, MHA_Q8_0, MHA_F32};
        if (n > 0)
            random_types(&random, TYPES, type);
        given gate = given_new(type[0], INNER, E, 1), up = given_new(type[1], INNER, E, 2),
              down = given_new(type[2], E, INNER, 3);
        const ptrdiff_t count = rows[n % 4];
        mha_feed_forward *ff = NULL;
        const mha_feed_forward_config config = {.size = sizeof config,
                                                .inputs = E,
                                                .inner = INNER,
                                                .activation = MHA_ACTIVATION_SILU,
                                                .gated = 1,
                                                .gate = gate.matrix,
                                                .up = up.matrix,
                                                .down = down.matrix,
                                                .stored = MHA_AS_GIVEN};
        CHECK(mha_feed_forward_create(&ff, &config) == MHA_OK, "create");
        float *const a = product(&gate, type[0], x, count), *const b =
                                                                product(&up, type[1], x, count);
        CHECK(mha_activation_run(MHA_ACTIVATION_SILU, count * INNER, a, a, NULL) == MHA_OK, "silu");
        for (ptrdiff_t k = 0; k < count * INNER; k++)
            a[k] *= b[k];
        float *const wanted = product(&down, type[2], a, count);
        float *const y = take(sizeof(float) * (size_t)(count * E));
        for (int threads = 1; threads <= 3; threads += 2) {
            mha_pool *const workers = threads > 1 ? pool : NULL;
            const size_t size = mha_feed_forward_work_size(ff, count, threads);
            void *const work = take(size);
            CHECK(mha_feed_forward_run(ff, count, x, E, NULL, 0, y, E, work, size, workers) ==
                      MHA_OK,
                  "run");
            CHECK(same(wanted, y, count * E), "types %d, %d, %d, %td rows, %d threads", type[0],
                  type[1], type[2], count, threads);
            free(work);
        }
        mha_linear *const linears[] = {linear_of(&gate, type[0]), linear_of(&up, type[1]),
                                       linear_of(&down, type[2])};
        CHECK(mha_feed_forward_bytes(ff) == mha_linear_bytes(linears[0]) +
                                                mha_linear_bytes(linears[1]) +
                                                mha_linear_bytes(linears[2]),
              "bytes");
        for (int k = 0; k < 3; k++)
            mha_linear_free(linears[k]);
        mha_feed_forward_free(ff);
        free(a);
        free(b);
        free(y);
        free(wanted);
        given_free(&gate);
        given_free(&up);
        given_free(&down);
    }
    mha_pool_free(pool);
    free(x);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(linears_keep_the_type);
    RUN(no_matrix_has_this_type);
    RUN(layers_of_mixed_types);
    RUN(updates_keep_the_types);
    RUN(pruned_layers_keep_the_types);
    RUN(heads_within_a_block_are_not_removed);
    RUN(gradients_of_mixed_types);
    RUN(blocks_have_no_gradients);
    RUN(feed_forwards_of_mixed_types);
    return test_end();
}
