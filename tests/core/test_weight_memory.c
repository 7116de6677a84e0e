/* SPDX-License-Identifier: MIT */
/* Memory of packed weights: aligned, not shared, and freed in any order on any thread. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "core/work.h"
#include "support/test.h"

enum { BLOCKS = 60, THREADS = 4 };

static size_t size_of(test_random *random)
{
    static const int64_t most[] = {100, 70000, 3 << 20, 9 << 20};
    return (size_t)test_random_below(random, most[test_random_below(random, 4)]);
}

/* Takes and frees blocks at random; each keeps its own byte. */
static void *use_memory(void *seed)
{
    unsigned char *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    test_random random = {*(const uint64_t *)seed};
    for (int step = 0; step < 4 * BLOCKS; step++) {
        const int n = (int)test_random_below(&random, BLOCKS);
        if (blocks[n]) {
            const unsigned char *const b = blocks[n];
            const bool kept =
                sizes[n] == 0 || (b[0] == n && b[sizes[n] / 2] == n && b[sizes[n] - 1] == n);
            CHECK(kept, "block %d was overwritten", n);
            mhai_weights_free(blocks[n]);
            blocks[n] = NULL;
            continue;
        }
        sizes[n] = size_of(&random);
        blocks[n] = mhai_weights_take(sizes[n]);
        if (!CHECK(blocks[n] && (uintptr_t)blocks[n] % MHAI_ALIGN == 0, "%zu bytes", sizes[n]))
            break;
        memset(blocks[n], n, sizes[n]);
    }
    for (int n = 0; n < BLOCKS; n++)
        mhai_weights_free(blocks[n]);
    return NULL;
}

static void blocks_in_any_order(void)
{
    for (uint64_t seed = 1; seed < 4; seed++)
        use_memory(&seed);
}

static void blocks_on_any_thread(void)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    for (int n = 0; n < THREADS; n++) {
        seeds[n] = 10 + (uint64_t)n;
        if (!CHECK(pthread_create(&threads[n], NULL, use_memory, &seeds[n]) == 0, "thread"))
            return;
    }
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
}

static void impossible_sizes_are_refused(void)
{
    CHECK(!mhai_weights_take(SIZE_MAX) && !mhai_weights_take(SIZE_MAX - 64), "too large");
    mhai_weights_free(NULL);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(blocks_in_any_order);
    RUN(blocks_on_any_thread);
    RUN(impossible_sizes_are_refused);
    return test_end();
}
