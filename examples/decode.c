/* SPDX-License-Identifier: MIT */
/*
 * Token by token, as a decoder runs: keys and values are appended to a cache of fixed capacity
 * and the key length grows. One plan, one workspace, no allocation in the loop. The rows are the
 * same to the bit as those of one causal call over the whole sentence.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { H = 4, G = 2, T = 48, D = 64 };

static float q[T][H][D], k[T][G][D], v[T][G][D];
static float at_once[T][H][D], stepwise[T][H][D];

static void fill(float *data, int count, float step)
{
    for (int i = 0; i < count; i++)
        data[i] = sinf((float)i * step);
}

static mha_status whole_sentence(void)
{
    const mha_shape shape = {.B = 1, .H = H, .G = G, .L = T, .S = T, .D = D};
    const mha_options options = {.size = sizeof options, .flags = MHA_CAUSAL};
    return mha_attention(&shape, mha_view_blhd(q, H, T, D), mha_view_blhd(k, G, T, D),
                         mha_view_blhd(v, G, T, D), mha_out_blhd(at_once, H, T, D), &options, NULL);
}

/* The cache is k and v themselves: at token t only its first t + 1 rows count. */
static mha_status token_by_token(const mha_plan *plan, void *work, size_t work_size)
{
    for (int t = 0; t < T; t++) {
        const int64_t length = t + 1;
        const mha_options options = {.size = sizeof options, .k_lengths = &length};
        const mha_status status =
            mha_plan_run(plan, mha_view_blhd(q[t], H, 1, D), mha_view_blhd(k, G, T, D),
                         mha_view_blhd(v, G, T, D), mha_out_blhd(stepwise[t], H, 1, D), &options,
                         work, work_size, NULL);
        if (status != MHA_OK)
            return status;
    }
    return MHA_OK;
}

int main(void)
{
    fill(&q[0][0][0], T * H * D, 0.37f);
    fill(&k[0][0][0], T * G * D, 0.73f);
    fill(&v[0][0][0], T * G * D, 0.11f);

    const mha_shape step = {.B = 1, .H = H, .G = G, .L = 1, .S = T, .D = D};
    const int64_t any_length = T;
    const mha_options options = {.size = sizeof options, .k_lengths = &any_length};
    mha_plan *plan = NULL;
    mha_status status = mha_plan_create(&plan, &step, &options);
    const size_t work_size = mha_plan_work_size(plan, 1);
    void *work = malloc(work_size);
    if (status == MHA_OK)
        status = token_by_token(plan, work, work_size);
    if (status == MHA_OK)
        status = whole_sentence();

    const int same = memcmp(at_once, stepwise, sizeof at_once) == 0;
    printf("%s: %d tokens one by one with %zu bytes of workspace; %s\n", mha_status_string(status),
           T, work_size, same ? "same bits as all at once" : "DIFFERENT from all at once");
    free(work);
    mha_plan_free(plan);
    return status != MHA_OK || !same;
}
