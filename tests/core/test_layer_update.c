/* SPDX-License-Identifier: MIT */
/*
 * New weights in a layer: from then on it is one that was made with them, to the bit, forward and
 * backward. Weights that are refused leave the old ones in place.
 */
#include "support/layer_backward_case.h"

#include <stdlib.h>
#include <string.h>

/* A spec for weights of the same layer: other numbers, another type, transposed, other biases. */
static layer_spec other_weights(const layer_spec *spec)
{
    layer_spec other = *spec;
    other.seed += 1000;
    other.weight_type = (mha_dtype)((spec->weight_type + 1) % 3);
    other.parts ^= LAYER_IN_OUT | LAYER_Q_BIAS | LAYER_V_BIAS;
    return other;
}

static layer_spec update_spec(uint64_t seed)
{
    layer_spec spec = layer_back_spec(seed);
    spec.parts &= ~(unsigned)LAYER_FREQUENCIES; /* drawn from the seed, and not a weight */
    return spec;
}

/* Output and gradients of both cases. */
static void compare(layer_back *x, layer_back *y)
{
    size_t size;
    layer_back_forward(x, NULL);
    layer_back_forward(y, NULL);
    snapshot output = snapshot_of(y->c->memory);
    CHECK(snapshot_same(&output, x->c->memory), "%s: other bits after an update",
          layer_case_name(x->c));
    layer_back_run(x, true, NULL);
    layer_back_run(y, true, NULL);
    unsigned char *const a = layer_back_bytes(x, &size), *const b = layer_back_bytes(y, &size);
    CHECK(memcmp(a, b, size) == 0, "%s: other gradients after an update", layer_case_name(x->c));
    free(a);
    free(b);
    snapshot_free(&output);
}

static void updated_layers_are_new_layers(void)
{
    const uint64_t base = test_seed(70000);
    for (int64_t n = 0; n < test_effort(120); n++) {
        const layer_spec spec = update_spec(base + (uint64_t)n), other = other_weights(&spec);
        layer_back *const x = layer_back_new(&spec), *const y = layer_back_new(&spec);
        layer_case *const donor = layer_case_new(&other);
        const size_t bytes = mha_layer_bytes(x->c->layer);
        const mha_status status = mha_layer_update(x->c->layer, &donor->p.weights);
        CHECK(status == MHA_OK, "%s: %s", layer_case_name(x->c), mha_status_string(status));
        CHECK(mha_layer_bytes(x->c->layer) == bytes, "%s: grown", layer_case_name(x->c));
        mha_layer_free(y->c->layer);
        CHECK(mha_layer_create(&y->c->layer, &y->c->p.config, &donor->p.weights) == MHA_OK,
              "layer");
        layer_case_free(donor); /* weights are copied */
        compare(x, y);
        layer_back_free(x);
        layer_back_free(y);
    }
}

/* There and back again. */
static void old_weights_come_back(void)
{
    const uint64_t base = test_seed(71000);
    for (int64_t n = 0; n < test_effort(40); n++) {
        const layer_spec spec = update_spec(base + (uint64_t)n), other = other_weights(&spec);
        layer_back *const x = layer_back_new(&spec), *const y = layer_back_new(&spec);
        layer_case *const donor = layer_case_new(&other);
        CHECK(mha_layer_update(x->c->layer, &donor->p.weights) == MHA_OK, "there");
        CHECK(mha_layer_update(x->c->layer, &x->c->p.weights) == MHA_OK, "and back");
        compare(x, y);
        layer_case_free(donor);
        layer_back_free(x);
        layer_back_free(y);
    }
}

/* ----------------------------------------------------------------------- errors ---- */

/* A layer with everything, and weights for it that a fault can be put into. */
typedef struct subject {
    mha_layer_weights weights;
    uint64_t after; /* not zero: what weights.size finds when it is too large */
} subject;

#define FAULT_SUBJECT subject
#include "support/fault_table.h"

#define WRONG_MATRIX(name)                                                                       \
    PUT(1, weights.name.data, 0, IS(NULL)), MOVE(1, weights.name.data, 1),                       \
        WRONG_TYPE(1, weights.name.type), HUGE_STRIDE(1, weights.name.out_stride, IS(OVERFLOW)), \
        HUGE_STRIDE(1, weights.name.in_stride, IS(OVERFLOW))

#define WRONG_VECTOR(name) MOVE(1, weights.name.data, 2), WRONG_TYPE(1, weights.name.type)

static const fault faults[] = {
    PUT(1, weights.size, 0, IS(STRUCT)),
    PUT(1, weights.size, 7, IS(STRUCT)),
    PUT(1, weights.size, -1, IS(STRUCT)),
    PUT(1, weights.size, sizeof(mha_layer_weights) - 1, IS(STRUCT)),
    PUT(1, weights.size, sizeof(mha_layer_weights) + 8, IS(STRUCT)),
    WRONG_MATRIX(q),
    WRONG_MATRIX(k),
    WRONG_MATRIX(v),
    WRONG_MATRIX(o),
    WRONG_VECTOR(q_bias),
    WRONG_VECTOR(k_bias),
    WRONG_VECTOR(v_bias),
    WRONG_VECTOR(o_bias),
    WRONG_VECTOR(extra_key),
    WRONG_VECTOR(extra_value),
    WRONG_VECTOR(q_norm),
    WRONG_VECTOR(k_norm),
    WRONG_VECTOR(q_norm_bias),
    WRONG_VECTOR(k_norm_bias),
    /* What was there must be there. */
    PUT(1, weights.extra_key.data, 0, IS(NULL)),
    PUT(1, weights.extra_value.data, 0, IS(NULL)),
    PUT(1, weights.q_norm.data, 0, IS(NULL)),
    PUT(1, weights.k_norm.data, 0, IS(NULL)),
    PUT(1, weights.q_norm_bias.data, 0, IS(NULL)),
    PUT(1, weights.k_norm_bias.data, 0, IS(NULL)),
};

static layer_spec full_spec(void)
{
    layer_spec spec =
        layer_spec_small(LAYER_EVERYTHING & ~(unsigned)(LAYER_FREQUENCIES | LAYER_IN_OUT), 0);
    spec.config.norm = MHA_NORM_LAYER;
    return spec;
}

static void refused_weights_change_nothing(void)
{
    layer_spec spec = full_spec();
    layer_case *const c = layer_case_new(&spec);
    spec.seed++;
    layer_case *const donor = layer_case_new(&spec);
    layer_case_run(c, NULL);
    snapshot before = snapshot_of(c->memory);
    for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
        subject s = {.weights = donor->p.weights, .after = 1};
        fault_apply(&faults[n], &s);
        const mha_status status = mha_layer_update(c->layer, &s.weights);
        CHECK(status < 0 && faults[n].statuses >> -status & 1, "%s: %s", faults[n].name,
              mha_status_string(status));
        layer_case_run(c, NULL);
        CHECK(snapshot_same(&before, c->memory), "%s: the old weights are gone", faults[n].name);
    }
    CHECK(mha_layer_update(NULL, &donor->p.weights) == MHA_ERR_NULL, "no layer");
    CHECK(mha_layer_update(c->layer, NULL) == MHA_ERR_NULL, "no weights");
    CHECK(mha_layer_update(c->layer, &donor->p.weights) == MHA_OK, "good ones");
    layer_case_run(c, NULL);
    CHECK(!snapshot_same(&before, c->memory), "the old weights are still there");
    snapshot_free(&before);
    layer_case_free(donor);
    layer_case_free(c);
}

/* Nor can there be what was not there. */
static void surplus_weights_are_refused(void)
{
    static const unsigned parts[] = {LAYER_EXTRA, LAYER_Q_NORM, LAYER_K_NORM, LAYER_Q_NORM_BIAS,
                                     LAYER_K_NORM_BIAS};
    const layer_spec full = full_spec();
    layer_case *const donor = layer_case_new(&full);
    for (int n = 0; n < 5; n++) {
        layer_spec spec = full;
        spec.parts &= ~parts[n];
        layer_case *const c = layer_case_new(&spec);
        layer_case_run(c, NULL);
        snapshot before = snapshot_of(c->memory);
        const mha_status status = mha_layer_update(c->layer, &donor->p.weights);
        CHECK(status == MHA_ERR_NULL, "part %d: %s", n, mha_status_string(status));
        layer_case_run(c, NULL);
        CHECK(snapshot_same(&before, c->memory), "part %d: the old weights are gone", n);
        snapshot_free(&before);
        layer_case_free(c);
    }
    layer_case_free(donor);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(updated_layers_are_new_layers);
    RUN(old_weights_come_back);
    RUN(refused_weights_change_nothing);
    RUN(surplus_weights_are_refused);
    return test_end();
}
