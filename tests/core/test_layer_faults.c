/* SPDX-License-Identifier: MIT */
/*
 * Linears and layers without memory, see faults.h: every request that can fail does, once and for
 * ever. The answer is MHA_ERR_MEMORY, nothing is written or lost, and the next try works. A run
 * with the caller's workspace asks for nothing at all.
 */
#include "support/faults.h"
#include "support/layer_backward_case.h"

#include <stdlib.h>

typedef mha_status (*job)(layer_case *c);

static mha_status make_linear(layer_case *c)
{
    const mha_layer_config f = layer_defaults(&c->p.config);
    const mha_linear_config config = {.size = sizeof config,
                                      .inputs = f.E,
                                      .outputs = f.H * f.D,
                                      .weight = c->p.weights.q,
                                      .bias = c->p.weights.q_bias,
                                      .stored = f.stored};
    mha_linear *linear = (mha_linear *)c;
    const mha_status status = mha_linear_create(&linear, &config);
    CHECK((status == MHA_OK) == (linear != NULL), "linear and status disagree");
    mha_linear_free(linear);
    return status;
}

static mha_status run_linear(layer_case *c)
{
    static float x[24], y[24];
    const mha_linear_config config = {
        .size = sizeof config, .inputs = 24, .outputs = 24, .weight = c->p.weights.q};
    mha_linear *linear = NULL;
    mha_status status = mha_linear_create(&linear, &config);
    if (status == MHA_OK)
        status = mha_linear_run(linear, 1, x, MHA_F32, 24, y, MHA_F32, 24, NULL, 0, NULL);
    mha_linear_free(linear);
    return status;
}

static mha_status turn_linear(layer_case *c)
{
    static float x[24], d_y[24], d_x[24], d_weight[24 * 24];
    const mha_linear_config config = {
        .size = sizeof config, .inputs = 24, .outputs = 24, .weight = c->p.weights.q};
    const mha_linear_gradients g = {.size = sizeof g,
                                    .d_y = d_y,
                                    .d_y_stride = 24,
                                    .d_x = d_x,
                                    .d_x_stride = 24,
                                    .d_weight = {d_weight, 24, 1}};
    mha_linear *linear = NULL;
    mha_status status = mha_linear_create(&linear, &config);
    if (status == MHA_OK)
        status = mha_linear_update(linear, c->p.weights.q, (mha_vector){0});
    if (status == MHA_OK)
        status = mha_linear_backward(linear, 1, x, MHA_F32, 24, &g, NULL, 0, NULL);
    mha_linear_free(linear);
    return status;
}

static mha_status make_layer(layer_case *c)
{
    mha_layer *layer = (mha_layer *)c;
    const mha_status status = mha_layer_create(&layer, &c->p.config, &c->p.weights);
    CHECK((status == MHA_OK) == (layer != NULL), "layer and status disagree");
    mha_layer_free(layer);
    return status;
}

static mha_status run_layer(layer_case *c)
{
    return mha_layer_run(c->layer, &c->p.call, NULL, 0, NULL);
}

static mha_status make_and_run(layer_case *c)
{
    mha_layer *layer = NULL;
    mha_status status = mha_layer_create(&layer, &c->p.config, &c->p.weights);
    if (status == MHA_OK)
        status = mha_layer_run(layer, &c->p.call, NULL, 0, NULL);
    mha_layer_free(layer);
    return status;
}

/* With the weights it has: what is refused must change nothing. */
static mha_status update_layer(layer_case *c)
{
    return mha_layer_update(c->layer, &c->p.weights);
}

/* Run and backward pass, each with a workspace of its own. */
static mha_status turn_layer(layer_case *c)
{
    static _Alignas(64) unsigned char tape[1 << 16];
    static float d_query[2 * 5 * 24], d_output[2 * 5 * 24];
    const mha_layer_gradients g = {.size = sizeof g,
                                   .d_output = mha_view_ble(d_output, 5, 24),
                                   .d_query = mha_out_ble(d_query, 5, 24)};
    mha_layer_call call = c->p.call;
    call.tape = tape;
    call.tape_size = sizeof tape;
    mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
    problem_reset(c->memory); /* which the run may have written before the other fails */
    if (status == MHA_OK)
        status = mha_layer_backward(c->layer, &call, &g, NULL, 0, NULL);
    return status;
}

static const struct {
    const char *name;
    job job;
    bool writes;
} jobs[] = {
    {"a linear", make_linear, false},        {"a linear's run", run_linear, false},
    {"a layer", make_layer, false},          {"a layer's run", run_layer, true},
    {"a layer and run", make_and_run, true}, {"a linear's way back", turn_linear, false},
    {"new weights", update_layer, false},    {"a layer's way back", turn_layer, false},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static layer_case *full_case(mha_dtype stored)
{
    layer_spec spec = layer_spec_small(LAYER_CROSS | LAYER_EXTRA | LAYER_Q_NORM | LAYER_K_NORM |
                                           LAYER_Q_NORM_BIAS | LAYER_FREQUENCIES,
                                       FEATURE_CAUSAL | FEATURE_OUTPUTS);
    spec.config.norm = MHA_NORM_LAYER;
    spec.config.rope.pairs = MHA_ROPE_HALVES;
    spec.config.stored = stored;
    spec.config.key_width = spec.config.value_width = 9;
    return layer_case_new(&spec);
}

static void refuse(layer_case *c, int which, int n, bool for_ever, const snapshot *wanted)
{
    problem_reset(c->memory);
    snapshot blank = snapshot_of(c->memory);
    faults_arm(MEMORY, n, for_ever);
    const mha_status status = jobs[which].job(c);
    faults_disarm();
    CHECK(status == MHA_ERR_MEMORY, "%s, request %d: %s", jobs[which].name, n,
          mha_status_string(status));
    CHECK(faults_left(MEMORY) == 0, "%s, request %d: %d blocks left", jobs[which].name, n,
          faults_left(MEMORY));
    CHECK(snapshot_same(&blank, c->memory), "%s, request %d: outputs written", jobs[which].name, n);
    CHECK(jobs[which].job(c) == MHA_OK, "%s does not work after request %d failed",
          jobs[which].name, n);
    CHECK(snapshot_same(jobs[which].writes ? wanted : &blank, c->memory),
          "%s: other bits after request %d failed", jobs[which].name, n);
    snapshot_free(&blank);
}

static void every_request_fails(void)
{
    static const mha_dtype stored[] = {MHA_F32, MHA_BF16, MHA_I8};
    for (int t = 0; t < 3; t++) {
        layer_case *const c = full_case(stored[t]);
        layer_case_run(c, NULL);
        snapshot wanted = snapshot_of(c->memory);
        for (int which = 0; which < JOBS; which++) {
            faults_arm(MEMORY, 0, false);
            CHECK(jobs[which].job(c) == MHA_OK, "%s undisturbed", jobs[which].name);
            faults_disarm();
            const int requests = faults_requests(MEMORY);
            CHECK(faults_left(MEMORY) == 0 && requests > 0, "%s: %d requests, %d left",
                  jobs[which].name, requests, faults_left(MEMORY));
            for (int n = 1; n <= requests; n++) {
                refuse(c, which, n, false, &wanted);
                refuse(c, which, n, true, &wanted);
            }
        }
        snapshot_free(&wanted);
        layer_case_free(c);
    }
}

/* Steps with a cache: without memory for a workspace the cache stays as it was. */
static void steps_without_memory(void)
{
    layer_spec spec = layer_spec_small(0, FEATURE_CAUSAL);
    layer_case *const c = layer_case_new(&spec);
    const mha_cache_config config = {
        .size = sizeof config, .sequences = 2, .capacity = 40, .G = 2, .D = 6, .Dv = 5};
    mha_options options = *c->p.call.options;
    mha_layer_call call = c->p.call;
    CHECK(mha_cache_create(&call.cache, &config) == MHA_OK, "cache");
    call.options = &options;
    for (ptrdiff_t length = 0; length < 15; length += 5) {
        faults_arm(MEMORY, 1, true);
        const mha_status status = mha_layer_run(c->layer, &call, NULL, 0, NULL);
        faults_disarm();
        CHECK(status == MHA_ERR_MEMORY, "%s", mha_status_string(status));
        CHECK(mha_cache_length(call.cache, 1) == length, "the cache grew to %td",
              mha_cache_length(call.cache, 1));
        const size_t size = mha_layer_work_size(c->layer, &call, 1);
        void *const work = malloc(size);
        faults_arm(MEMORY, 1, true);
        CHECK(mha_layer_run(c->layer, &call, work, size, NULL) == MHA_OK, "own workspace");
        faults_disarm();
        CHECK(faults_requests(MEMORY) == 0, "%d requests", faults_requests(MEMORY));
        free(work);
    }
    mha_cache_free(call.cache);
    layer_case_free(c);
}

static void backward_passes_ask_for_nothing(void)
{
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (uint64_t seed = 0; seed < 40; seed++) {
        const layer_spec spec = layer_back_spec(seed);
        layer_back *const x = layer_back_new(&spec);
        const mha_layer_call *const call = &x->c->p.call;
        layer_back_forward(x, pool);
        const size_t size = mha_layer_backward_work_size(x->c->layer, call, 3);
        void *const work = malloc(size);
        faults_arm(MEMORY, 1, true);
        const mha_status status = mha_layer_backward(x->c->layer, call, &x->call, work, size, pool);
        faults_disarm();
        CHECK(status == MHA_OK && faults_requests(MEMORY) == 0, "%s: %s, %d requests",
              layer_case_name(x->c), mha_status_string(status), faults_requests(MEMORY));
        free(work);
        layer_back_free(x);
    }
    mha_pool_free(pool);
}

static void runs_ask_for_nothing(void)
{
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (uint64_t seed = 0; seed < 40; seed++) {
        const layer_spec spec = layer_spec_random(seed);
        layer_case *const c = layer_case_new(&spec);
        const size_t size = mha_layer_work_size(c->layer, &c->p.call, 3);
        void *const work = malloc(size);
        faults_arm(MEMORY, 1, true);
        const mha_status status = mha_layer_run(c->layer, &c->p.call, work, size, pool);
        faults_disarm();
        CHECK(status == MHA_OK && faults_requests(MEMORY) == 0, "%s: %s, %d requests",
              layer_case_name(c), mha_status_string(status), faults_requests(MEMORY));
        free(work);
        layer_case_free(c);
    }
    mha_pool_free(pool);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_request_fails);
    RUN(steps_without_memory);
    RUN(runs_ask_for_nothing);
    RUN(backward_passes_ask_for_nothing);
    return test_end();
}
