/* SPDX-License-Identifier: MIT */
/*
 * The test harness. One program per topic:
 *
 *      static void rows_sum_to_one(void) { ... CHECK(fabs(sum - 1) < 1e-6, "row %d: %g", i, sum); }
 *      int main(int argc, char **argv)
 *      {
 *          test_begin(argc, argv);
 *          RUN(rows_sum_to_one);
 *          return test_end();
 *      }
 *
 * A program runs all its tests, or with arguments only those whose name contains one of them.
 * Its last line is "NAME: N passed, N failed, N skipped"; it exits with 0 if nothing failed.
 */
#ifndef MHA_TEST_H
#define MHA_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

void test_begin(int argc, char **argv);
int test_end(void);

/* Run one test under its own name. */
void test_run(const char *name, void (*body)(void));
#define RUN(body) test_run(#body, body)

/* Record a failure of the running test, with place and message, and go on. Outside of tests, where
 * main() sets something up, it is a failure of its own. Only the first 10 of a test are printed.
 * Evaluates to the condition, so that a test can give up: if (!CHECK(...)). */
bool test_check(bool ok, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define CHECK(condition, ...) test_check((condition), __FILE__, __LINE__, __VA_ARGS__)
#ifdef __clang_analyzer__ /* which cannot see what test_check() returns */
#undef CHECK
#define CHECK(condition, ...)                                \
    ({                                                       \
        const bool holds_ = (condition);                     \
        test_check(holds_, __FILE__, __LINE__, __VA_ARGS__); \
        holds_;                                              \
    })
#endif

/* Was this built with a sanitizer that has memory of its own? */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* Say that the running test cannot be done here; return from it right after. */
void test_skip(const char *reason);

/* Windows has no fork(), and neither links nor named pipes in folders. */
#ifdef _WIN32
#define TEST_WINDOWS 1
#else
#define TEST_WINDOWS 0
#endif

/* Skips the running test on Windows, where there is no such thing; return from it if this is true.
 */
static inline bool test_lacks(const char *what)
{
    if (TEST_WINDOWS)
        test_skip(what);
    return TEST_WINDOWS;
}

/* Numbers for tests: those of base/rng.h. */
typedef rng test_random;
static inline uint64_t test_random_u64(test_random *random)
{
    return rng_next(random);
}
static inline int64_t test_random_below(test_random *random, int64_t n)
{
    return rng_below(random, n);
}
/* In [-1, 1). */
static inline float test_random_float(test_random *random)
{
    return (float)(rng_next(random) >> 40) * 0x1p-23f - 1.0f;
}
/* Roughly normal: mean 0, variance 1. */
static inline float test_random_normal(test_random *random)
{
    return (float)rng_normal(random);
}

/* A seed for randomised tests: MHA_TEST_SEED if set, else `fallback`; printed when a test fails. */
uint64_t test_seed(uint64_t fallback);
/* How much randomised tests do: MHA_TEST_EFFORT (a factor, default 1) times `base`. */
int64_t test_effort(int64_t base);

#endif
