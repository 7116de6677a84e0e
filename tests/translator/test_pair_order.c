/* SPDX-License-Identifier: MIT */
/* The order of pairs in a training: every epoch has each pair once, in batches of similar lengths
 * that keep their limit, and follows from seed and step alone. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "translator/pair_order.h"

enum { PAIRS = 1000, TOKENS = 200 };

static int source[PAIRS], target[PAIRS];

static pair_order *order_of(uint64_t seed)
{
    return pair_order_create(source, target, PAIRS, TOKENS, seed);
}

static void every_epoch_has_every_pair_once(void)
{
    pair_order *const order = order_of(test_seed(3));
    const int64_t batches = pair_order_batches(order);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[PAIRS] = {0};
        for (int64_t step = 0; step < batches; step++) {
            int count = 0, tokens = 0;
            const int32_t *const pairs = pair_order_step(order, epoch * batches + step, &count);
            CHECK(count > 0, "an empty batch");
            for (int n = 0; n < count; n++) {
                seen[pairs[n]]++;
                tokens += target[pairs[n]];
            }
            CHECK(tokens <= TOKENS || count == 1, "%d tokens in a batch", tokens);
        }
        for (int n = 0; n < PAIRS; n++)
            CHECK(seen[n] == 1, "epoch %d has pair %d %d times", (int)epoch, n, seen[n]);
    }
    pair_order_free(order);
}

/* Sorted by target and then source length, so the lengths of a batch are neighbours. */
static void batches_have_similar_lengths(void)
{
    pair_order *const order = order_of(1);
    int64_t spread = 0;
    for (int64_t step = 0; step < pair_order_batches(order); step++) {
        int count = 0;
        const int32_t *const pairs = pair_order_step(order, step, &count);
        for (int n = 1; n < count; n++) {
            const int before = target[pairs[n - 1]], now = target[pairs[n]];
            CHECK(before < now || (before == now && source[pairs[n - 1]] <= source[pairs[n]]),
                  "not sorted");
        }
        spread += target[pairs[count - 1]] - target[pairs[0]];
    }
    CHECK(spread <= pair_order_batches(order), "lengths differ by %d in all", (int)spread);
    pair_order_free(order);
}

static void steps_follow_from_the_seed(void)
{
    pair_order *const first = order_of(1), *const again = order_of(1), *const other = order_of(2);
    const int64_t batches = pair_order_batches(first);
    int64_t same_epoch = 0, same_seed = 0;
    for (int64_t step = 3 * batches - 1; step >= 0; step--) { /* backwards: no history needed */
        int counts[3];
        const int32_t *const a = pair_order_step(again, step, &counts[1]);
        const int32_t *const b = pair_order_step(other, step, &counts[2]);
        int32_t *const kept = malloc((size_t)counts[1] * sizeof *kept);
        memcpy(kept, a, (size_t)counts[1] * sizeof *kept);
        const int32_t *const forward = pair_order_step(first, step, &counts[0]);
        CHECK(counts[0] == counts[1] &&
                  memcmp(forward, kept, (size_t)counts[0] * sizeof *kept) == 0,
              "step %d differs", (int)step);
        same_seed +=
            counts[2] == counts[0] && memcmp(b, kept, (size_t)counts[0] * sizeof *kept) == 0;
        const int32_t *const next = pair_order_step(first, step + batches, &counts[0]);
        same_epoch +=
            counts[0] == counts[1] && memcmp(next, kept, (size_t)counts[0] * sizeof *kept) == 0;
        free(kept);
    }
    CHECK(same_seed < batches / 2, "another seed, the same order");
    CHECK(same_epoch < batches / 2, "another epoch, the same order");
    pair_order_free(first);
    pair_order_free(again);
    pair_order_free(other);
}

static void a_pair_may_be_longer_than_a_batch(void)
{
    const int lengths[] = {5, 500, 0};
    pair_order *const order = pair_order_create(lengths, lengths, 3, 10, 1);
    CHECK(pair_order_batches(order) == 2, "%d batches", (int)pair_order_batches(order));
    pair_order_free(order);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    test_random random = {7};
    for (int n = 0; n < PAIRS; n++) {
        source[n] = 1 + (int)test_random_below(&random, 12);
        target[n] = 1 + (int)test_random_below(&random, 15);
    }
    RUN(every_epoch_has_every_pair_once);
    RUN(batches_have_similar_lengths);
    RUN(steps_follow_from_the_seed);
    RUN(a_pair_may_be_longer_than_a_batch);
    return test_end();
}
