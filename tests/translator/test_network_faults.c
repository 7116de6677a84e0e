/* SPDX-License-Identifier: MIT */
/* Batches and networks when memory allocation fails (faults.h), at every request in turn. Nothing
 * leaks, and the next attempt succeeds. */
#include "support/faults.h"
#include "support/network_oracle.h"
#include "support/test.h"

#include <stdlib.h>

static void batches(void)
{
    static word_numbers numbers;
    const uint64_t indices[3] = {4, 5, 6};
    word_numbers_fill(&numbers);
    faults_arm(MEMORY, 1, false);
    const batch *const none = batch_create(&numbers, 1, CORPUS_TRAIN, indices, 3, 0.0);
    CHECK(none == NULL && faults_left(MEMORY) == 0, "a batch without memory");
    faults_disarm();
}

static void making(void)
{
    float *const values = network_case_values(&network_small, 3);
    bool made = false;
    for (int fail_at = 1; !made && fail_at < 1000; fail_at++) {
        faults_arm(MEMORY, fail_at, false);
        network *const net = network_create(&network_small, values, MHA_EXACT, NULL);
        made = net != NULL;
        CHECK(made == (faults_requests(MEMORY) < fail_at), "request %d", fail_at);
        network_free(net);
        CHECK(faults_left(MEMORY) == 0, "request %d: %d blocks lost", fail_at, faults_left(MEMORY));
        faults_disarm();
    }
    CHECK(made, "never made");
    free(values);
}

/* One step: a small batch, then one that needs more memory, the backward pass, and new values. */
static mha_status step(network *net, const batch *const batches[2], const float *values,
                       double losses[2], float *gradients)
{
    const network_mode mode = {.training = true, .dropout = 0.1, .attention_dropout = 0.1};
    mha_status status = MHA_OK;
    for (int n = 0; n < 2 && status == MHA_OK; n++) {
        network_loss loss = {0};
        status = network_forward(net, batches[n], &mode, &loss);
        losses[n] = loss.sum;
        if (status == MHA_OK)
            status = network_backward(net, gradients);
    }
    return status == MHA_OK ? network_update(net, values) : status;
}

static void steps(void)
{
    transformer_map map;
    transformer_map_fill(&map, &network_small);
    float *const values = network_case_values(&network_small, 3);
    float *const gradients = malloc(map.count * sizeof *gradients);
    batch *const small = network_case_batch(&network_small, 1, 2, 4);
    batch *const large = network_case_batch(&network_small, 2, 20, 12);
    const batch *const both[2] = {small, large};
    double wanted[2] = {0}, losses[2] = {0};
    bool done = false;
    for (int fail_at = 0; !done && fail_at < 1000; fail_at++) {
        network *const net = network_create(&network_small, values, MHA_EXACT, NULL);
        faults_arm(MEMORY, fail_at, false);
        const mha_status status = step(net, both, values, losses, gradients);
        done = fail_at > 0 && faults_requests(MEMORY) < fail_at;
        faults_disarm();
        CHECK(status == (done || fail_at == 0 ? MHA_OK : MHA_ERR_MEMORY), "request %d: %s", fail_at,
              mha_status_string(status));
        CHECK(network_update(net, values) == MHA_OK, "request %d: no update after it", fail_at);
        CHECK(step(net, both, values, fail_at ? losses : wanted, gradients) == MHA_OK,
              "request %d: no step after it", fail_at);
        CHECK(fail_at == 0 || (losses[0] == wanted[0] && losses[1] == wanted[1]),
              "request %d: another loss after it", fail_at);
        network_free(net);
    }
    CHECK(done, "never done");
    free(values);
    free(gradients);
    free(small);
    free(large);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(batches);
    RUN(making);
    RUN(steps);
    return test_end();
}
