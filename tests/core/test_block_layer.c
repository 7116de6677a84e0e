/* SPDX-License-Identifier: MIT */
/* Layers whose weights are of a block type, compared with the same weights as f32; without heads,
 * and where that is not possible. */
#include "support/block_rows.h"
#include "support/test.h"

#include <mha/mha.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { E = 128, H = 4, G = 2, D = 32, L = 5 };

typedef struct blocks_of_layer {
    uint8_t *rows[4];
    float *wide[4];
    mha_layer_weights weights, plain; /* blocks, and the same as f32 */
} blocks_of_layer;

static blocks_of_layer layer_blocks(mha_dtype type, uint64_t seed)
{
    static const ptrdiff_t outputs[] = {H * D, G * D, G * D, E}, inputs[] = {E, E, E, H * D};
    blocks_of_layer b = {.weights = {.size = sizeof(mha_layer_weights)},
                         .plain = {.size = sizeof(mha_layer_weights)}};
    mha_matrix *const to[] = {&b.weights.q, &b.weights.k, &b.weights.v, &b.weights.o};
    mha_matrix *const plain[] = {&b.plain.q, &b.plain.k, &b.plain.v, &b.plain.o};
    for (int n = 0; n < 4; n++) {
        b.rows[n] = block_rows_random(type, outputs[n], inputs[n], seed + (uint64_t)n);
        b.wide[n] = block_rows_f32(type, b.rows[n], outputs[n], inputs[n]);
        *to[n] = mha_matrix_out_in(b.rows[n], type, inputs[n]);
        *plain[n] = mha_matrix_out_in(b.wide[n], MHA_F32, inputs[n]);
    }
    return b;
}

static void layer_blocks_free(blocks_of_layer *b)
{
    for (int n = 0; n < 4; n++) {
        free(b->rows[n]);
        free(b->wide[n]);
    }
}

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

static float *attend(const mha_layer *layer, const float *x, const float *gates)
{
    float *const y = block_memory(sizeof(float) * L * E);
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL, .gates = gates};
    const mha_layer_call call = {.size = sizeof call,
                                 .B = 1,
                                 .L = L,
                                 .query = mha_view_ble(x, L, E),
                                 .output = mha_out_ble(y, L, E),
                                 .options = &options};
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_OK, "run");
    return y;
}

static double largest_difference(const float *a, const float *b, ptrdiff_t count)
{
    double most = 0, size = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const double difference = fabs((double)a[n] - (double)b[n]), here = fabs((double)b[n]);
        if (isnan(difference))
            return INFINITY;
        most = difference > most ? difference : most;
        size = here > size ? here : size;
    }
    return most / size;
}

static void layers_have_the_weights_of_their_blocks(void)
{
    float *const x = random_numbers(L * E, 88);
    for (int t = 0; t < 3; t++) {
        blocks_of_layer b = layer_blocks(block_types[t], 80),
                        other = layer_blocks(block_types[t], 800);
        mha_layer *const layer = layer_of(&b.weights, block_types[t]);
        mha_layer *const plain = layer_of(&b.plain, MHA_F32);
        mha_layer *const changed = layer_of(&other.weights, block_types[t]);
        float *const y = attend(layer, x, NULL), *const wanted = attend(plain, x, NULL);
        CHECK(largest_difference(y, wanted, L * E) < 2e-5, "type %d: %g", block_types[t],
              largest_difference(y, wanted, L * E));
        CHECK(mha_layer_update(changed, &b.weights) == MHA_OK, "update");
        float *const same = attend(changed, x, NULL);
        CHECK(memcmp(same, y, sizeof(float) * L * E) == 0, "type %d: after an update",
              block_types[t]);
        mha_layer_free(layer);
        mha_layer_free(plain);
        mha_layer_free(changed);
        layer_blocks_free(&b);
        layer_blocks_free(&other);
        free(y);
        free(wanted);
        free(same);
    }
    free(x);
}

static void pruned_layers(void)
{
    static const uint8_t keep[H] = {1, 0, 0, 1};
    static const float gates[H] = {1, 0, 0, 1};
    float *const x = random_numbers(L * E, 98);
    for (int t = 0; t < 3; t++) {
        blocks_of_layer b = layer_blocks(block_types[t], 90);
        mha_layer *const layer = layer_of(&b.weights, block_types[t]), *pruned = NULL;
        char message[200] = "";
        CHECK(mha_layer_prune(&pruned, layer, keep, message, sizeof message) == MHA_OK, "%s",
              message);
        float *const y = attend(pruned, x, NULL), *const wanted = attend(layer, x, gates);
        CHECK(largest_difference(y, wanted, L * E) < 2e-5, "type %d: %g", block_types[t],
              largest_difference(y, wanted, L * E));
        mha_layer_free(layer);
        mha_layer_free(pruned);
        layer_blocks_free(&b);
        free(y);
        free(wanted);
    }
    free(x);
}

/* Heads of 16 end inside a block of W_O, so they cannot be removed. */
static void heads_inside_a_block(void)
{
    static const uint8_t keep[] = {1, 0};
    static const uint8_t data[32 * 20];
    const mha_matrix zeros = mha_matrix_out_in(data, MHA_Q4_1, 32);
    const mha_layer_weights w = {.size = sizeof w, .q = zeros, .k = zeros, .v = zeros, .o = zeros};
    const mha_layer_config config = {.size = sizeof config, .E = 32, .H = 2, .stored = MHA_Q4_1};
    mha_layer *layer = NULL, *pruned = (mha_layer *)&layer;
    char message[200] = "";
    CHECK(mha_layer_create(&layer, &config, &w) == MHA_OK, "create");
    CHECK(mha_layer_prune(&pruned, layer, keep, message, sizeof message) == MHA_ERR_SHAPE &&
              !pruned,
          "pruned");
    CHECK(strstr(message, "multiple of 32"), "%s", message);
    mha_layer_free(layer);
}

static void layers_have_no_backward_pass(void)
{
    static float tape[1 << 14] __attribute__((aligned(64)));
    float *const x = random_numbers(L * E, 108), y[L * E];
    blocks_of_layer b = layer_blocks(MHA_Q8_0, 100);
    mha_layer *const layer = layer_of(&b.weights, MHA_Q8_0);
    char message[200] = "";
    const mha_options options = {
        .size = sizeof options, .message = message, .message_size = sizeof message};
    mha_layer_call call = {.size = sizeof call,
                           .B = 1,
                           .L = L,
                           .query = mha_view_ble(x, L, E),
                           .output = mha_out_ble(y, L, E),
                           .options = &options};
    CHECK(mha_layer_tape_size(layer, &call) == 0, "a tape");
    CHECK(mha_layer_backward_work_size(layer, &call, 1) == 0, "a workspace");
    call.tape = tape;
    call.tape_size = sizeof tape;
    CHECK(mha_layer_run(layer, &call, NULL, 0, NULL) == MHA_ERR_DTYPE, "run with a tape");
    CHECK(strstr(message, "MHA_Q8_0 have no backward pass"), "%s", message);
    mha_layer_free(layer);
    layer_blocks_free(&b);
    free(x);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(layers_have_the_weights_of_their_blocks);
    RUN(pruned_layers);
    RUN(heads_inside_a_block);
    RUN(layers_have_no_backward_pass);
    return test_end();
}
