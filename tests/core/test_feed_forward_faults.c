/* SPDX-License-Identifier: MIT */
/*
 * Feed-forwards without memory, see faults.h: every request that can fail does, once and for ever.
 * The answer is MHA_ERR_MEMORY, nothing is written or lost, and the next try works. Norms,
 * activations, and runs with the caller's workspace request nothing at all.
 */
#include "mha/mha.h"
#include "support/faults.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 24, INNER = 40, ROWS = 3 };

static float weights[WIDTH * INNER], x[ROWS * WIDTH], y[ROWS * WIDTH];

static mha_status make(mha_feed_forward **ff, bool gated, mha_dtype stored)
{
    const mha_matrix in = mha_matrix_out_in(weights, MHA_F32, WIDTH);
    mha_feed_forward_config c = {.size = sizeof c,
                                 .inputs = WIDTH,
                                 .inner = INNER,
                                 .activation = MHA_ACTIVATION_GELU,
                                 .gated = gated,
                                 .up = in,
                                 .down = mha_matrix_out_in(weights, MHA_F32, INNER),
                                 .stored = stored};
    if (gated)
        c.gate = in;
    return mha_feed_forward_create(ff, &c);
}

/* Makes a feed-forward and runs it with a workspace of its own. */
static mha_status make_and_run(bool gated, mha_dtype stored)
{
    mha_feed_forward *ff = (mha_feed_forward *)&x;
    mha_status status = make(&ff, gated, stored);
    CHECK((status == MHA_OK) == (ff != NULL), "feed-forward and status disagree");
    if (status == MHA_OK)
        status = mha_feed_forward_run(ff, ROWS, x, WIDTH, NULL, 0, y, WIDTH, NULL, 0, NULL);
    mha_feed_forward_free(ff);
    return status;
}

static void refuse(bool gated, mha_dtype stored, int n, bool for_ever)
{
    memset(y, 0xa5, sizeof y);
    faults_arm(MEMORY, n, for_ever);
    const mha_status status = make_and_run(gated, stored);
    faults_disarm();
    CHECK(status == MHA_ERR_MEMORY, "request %d: %s", n, mha_status_string(status));
    CHECK(faults_left(MEMORY) == 0, "request %d: %d blocks left", n, faults_left(MEMORY));
    for (size_t i = 0; i < sizeof y; i++)
        CHECK(((unsigned char *)y)[i] == 0xa5, "request %d: y was written", n);
    CHECK(make_and_run(gated, stored) == MHA_OK, "does not work after request %d failed", n);
}

static void every_request_fails(void)
{
    static const mha_dtype stored[] = {MHA_F32, MHA_BF16, MHA_I8};
    for (int t = 0; t < 6; t++) {
        faults_arm(MEMORY, 0, false);
        CHECK(make_and_run(t % 2, stored[t / 2]) == MHA_OK, "undisturbed");
        faults_disarm();
        const int requests = faults_requests(MEMORY);
        CHECK(faults_left(MEMORY) == 0 && requests > 0, "%d requests, %d left", requests,
              faults_left(MEMORY));
        for (int n = 1; n <= requests; n++) {
            refuse(t % 2, stored[t / 2], n, false);
            refuse(t % 2, stored[t / 2], n, true);
        }
    }
}

static void runs_request_nothing(void)
{
    mha_feed_forward *ff = NULL;
    mha_pool *pool = NULL;
    CHECK(make(&ff, true, MHA_F32) == MHA_OK && mha_pool_create(&pool, 3) == MHA_OK, "create");
    const size_t size = mha_feed_forward_work_size(ff, ROWS, 3);
    void *const work = malloc(size);
    const mha_norm_config norm = {.size = sizeof norm, .kind = MHA_NORM_LAYER, .width = WIDTH};
    faults_arm(MEMORY, 1, true);
    const mha_status run =
        mha_feed_forward_run(ff, ROWS, x, WIDTH, x, WIDTH, y, WIDTH, work, size, pool);
    const mha_status normalise = mha_norm_run(&norm, ROWS, x, WIDTH, y, WIDTH, pool);
    const mha_status activate = mha_activation_run(MHA_ACTIVATION_GELU, ROWS * WIDTH, x, y, pool);
    faults_disarm();
    CHECK(run == MHA_OK && normalise == MHA_OK && activate == MHA_OK, "%d, %d, %d", (int)run,
          (int)normalise, (int)activate);
    CHECK(faults_requests(MEMORY) == 0, "%d requests", faults_requests(MEMORY));
    free(work);
    mha_pool_free(pool);
    mha_feed_forward_free(ff);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_request_fails);
    RUN(runs_request_nothing);
    return test_end();
}
