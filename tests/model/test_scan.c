/* SPDX-License-Identifier: MIT */
/* Passes over logits find what plain loops find, at every length and with numbers of any kind. */
#include "model/scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/sample.h"
#include "support/test.h"

enum { MOST = 1200, FEW = 5 };

static float logits[MOST];

/* Numbers from -spread to spread; every eighth is the one before it again. */
static void fill(uint64_t seed, ptrdiff_t count, double spread)
{
    rng random = rng_for(seed, (uint64_t)count);
    for (ptrdiff_t n = 0; n < count; n++) {
        logits[n] = (float)((2 * rng_unit(&random) - 1) * spread);
        if (n % 8 == 7)
            logits[n] = logits[n - 1];
    }
}

static void sums_are_those_of_doubles(void)
{
    static const double spreads[] = {0.1, 5, 40, 200};
    for (ptrdiff_t count = 1; count <= MOST; count += count < 70 ? 1 : 113)
        for (size_t s = 0; s < sizeof spreads / sizeof spreads[0]; s++) {
            double sum = 0;
            float most = -INFINITY;
            fill(s, count, spreads[s]);
            for (ptrdiff_t n = 0; n < count; n++)
                most = logits[n] > most ? logits[n] : most;
            for (ptrdiff_t n = 0; n < count; n++)
                sum += exp((double)logits[n] - (double)most);
            CHECK(scan_most(logits, count) == most, "%td: most %g", count,
                  (double)scan_most(logits, count));
            const double found = scan_exp_sum(logits, count, most);
            CHECK(fabs(found - sum) < 1e-6 * sum, "%td: sum %.9g, not %.9g", count, found, sum);
        }
}

static void what_is_not_finite_shows(void)
{
    static const int places[] = {0, 15, 16, 63, 64, 99};
    for (size_t n = 0; n < sizeof places / sizeof places[0]; n++) {
        fill(7, 100, 3);
        const double before = sample_log_total(logits, 100);
        logits[places[n]] = NAN;
        CHECK(isnan(sample_log_total(logits, 100)), "NaN at %d", places[n]);
        logits[places[n]] = INFINITY;
        CHECK(isnan(sample_log_total(logits, 100)), "infinity at %d", places[n]);
        logits[places[n]] = -INFINITY;
        const double after = sample_log_total(logits, 100);
        CHECK(after < before && after > before - 1, "-infinity at %d: %g", places[n], after);
    }
    for (int n = 0; n < 20; n++)
        logits[n] = -INFINITY;
    CHECK(isnan(sample_log_total(logits, 20)), "nothing but -infinity");
}

static void blocks_above_a_limit_are_found(void)
{
    for (ptrdiff_t count = 1; count <= 400; count += 13) {
        fill(3, count, 1);
        for (ptrdiff_t n = 0; n < count; n += 7) {
            ptrdiff_t expected = 0;
            const float limit = logits[n];
            while (expected < count && !(logits[expected] > limit))
                expected++;
            expected = expected < count ? expected / SCAN_BLOCK * SCAN_BLOCK : count;
            const ptrdiff_t found = scan_above(logits, count, 0, limit);
            /* A last block that is not whole need not be looked at. */
            const bool rest = found < count && found + SCAN_BLOCK > count;
            CHECK(found == expected || (rest && expected == count), "%td numbers: %td, not %td",
                  count, found, expected);
        }
    }
}

/* The plain definition of sample_best(). */
static ptrdiff_t sorted(ptrdiff_t count, int32_t forbidden, int32_t *ids)
{
    ptrdiff_t used = 0;
    static bool taken[MOST];
    memset(taken, 0, sizeof taken);
    taken[forbidden] = true;
    while (used < FEW) {
        ptrdiff_t best = -1;
        for (ptrdiff_t n = 0; n < count; n++)
            if (!taken[n] && (best < 0 || logits[n] > logits[best]))
                best = n;
        if (best < 0)
            break;
        taken[best] = true;
        ids[used++] = (int32_t)best;
    }
    return used;
}

static void the_best_are_found_in_order(void)
{
    for (ptrdiff_t count = 1; count <= MOST; count += count < 70 ? 1 : 61) {
        int32_t ids[FEW], expected[FEW];
        fill(5, count, 2);
        const int32_t forbidden = (int32_t)(count / 2);
        const ptrdiff_t used = sample_best(logits, count, &forbidden, 1, FEW, ids);
        const ptrdiff_t right = sorted(count, forbidden, expected);
        CHECK(used == right, "%td numbers: %td found, not %td", count, used, right);
        for (ptrdiff_t n = 0; n < used && n < right; n++)
            CHECK(ids[n] == expected[n], "%td numbers: rank %td is %d, not %d", count, n,
                  (int)ids[n], (int)expected[n]);
        const sample_request greedy = {.sampling = &(mha_sampling){0},
                                       .logits = logits,
                                       .words = count,
                                       .forbidden = &forbidden,
                                       .forbidden_count = 1};
        CHECK(right == 0 || sample_token(&greedy) == expected[0], "%td numbers, greedy: %d", count,
              (int)sample_token(&greedy));
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(sums_are_those_of_doubles);
    RUN(what_is_not_finite_shows);
    RUN(blocks_above_a_limit_are_found);
    RUN(the_best_are_found_in_order);
    return test_end();
}
