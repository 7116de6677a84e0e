/* SPDX-License-Identifier: MIT */
/*
 * The tables of this CPU in turn, arrays between guard pages with random contents, and plain models
 * of the arithmetic of a table.
 */
#include "support/kernel_bench.h"

#include "core/internal.h"
#include "support/problems.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- tables */

/* native NULL: not part of this build. */
typedef struct table {
    const char *name;
    const mhak_native *native;
} table;

#ifdef MHA_HAVE_AVX2
#define AVX2(x) &mhak_native_##x
#else
#define AVX2(x) NULL
#endif
#ifdef MHA_HAVE_AVX512
#define AVX512(x) &mhak_native_##x
#else
#define AVX512(x) NULL
#endif
#ifdef MHA_HAVE_NEON
#define NEON(x) &mhak_native_##x
#else
#define NEON(x) NULL
#endif
#ifdef MHA_HAVE_WASM
#define WASM(x) &mhak_native_##x
#else
#define WASM(x) NULL
#endif

static const table tables[] = {
    {"c", &mhak_native_c},
    {"avx2", AVX2(avx2)},
    {"avx2vnni", AVX2(avx2vnni)},
    {"avx512", AVX512(avx512)},
    {"avx512vnni", AVX512(avx512vnni)},
    {"avx512bf16", AVX512(avx512bf16)},
    {"neon", NEON(neon)},
    {"neondot", NEON(neondot)},
    {"neonbf16", NEON(neonbf16)},
    {"wasm", WASM(wasm)},
};

enum { TABLES = sizeof tables / sizeof tables[0] };

static struct {
    const mhak_native *native;
    void (*body)(const mhak_table *kernels);
    void (*native_body)(const mhak_native *native);
    const char *missing;
} now;

static bool wanted(const char *isa)
{
    const char *const forced = getenv("MHA_ISA");
    return !forced || !*forced || !strcmp(forced, isa);
}

static void run_body(void)
{
    if (now.body)
        now.body(now.native->base);
    else
        now.native_body(now.native);
}

/* Does it have kernels of its own, beside those of native arithmetic? */
static bool is_base(const mhak_native *native)
{
    return !strcmp(native->name, native->base->name);
}

static void run_all(const char *name)
{
    for (int n = 0; n < TABLES; n++) {
        const mhak_native *const native = tables[n].native;
        if (!wanted(tables[n].name) || !native || !mhai_cpu_runs(tables[n].name) ||
            (now.body && !is_base(native)))
            continue;
        char full[100];
        snprintf(full, sizeof full, "%s/%s", name, tables[n].name);
        now.native = native;
        test_run(full, run_body);
    }
}

void kernel_run(const char *name, void (*body)(const mhak_table *kernels))
{
    now.body = body;
    run_all(name);
}

void native_run(const char *name, void (*body)(const mhak_native *native))
{
    now.body = NULL;
    now.native_body = body;
    run_all(name);
}

static void say_missing(void)
{
    test_skip(now.missing);
}

void kernel_report_missing(void)
{
    for (int n = 0; n < TABLES; n++) {
        now.missing = !tables[n].native                ? "not part of this build"
                      : !mhai_cpu_runs(tables[n].name) ? "this CPU cannot run it"
                                                       : NULL;
        if (wanted(tables[n].name) && now.missing) {
            char full[100];
            snprintf(full, sizeof full, "kernels/%s", tables[n].name);
            test_run(full, say_missing);
        }
    }
}

/* ------------------------------------------------------------------ spans */

const element storage_types[STORAGE_TYPES] = {E_F32, E_F16, E_BF16, E_I8};

element random_storage(test_random *random)
{
    return storage_types[test_random_below(random, STORAGE_TYPES)];
}

static size_t element_size(element kind)
{
    return kind == E_BYTE || kind == E_I8 ? 1 : kind == E_F16 || kind == E_BF16 ? 2 : 4;
}

static span span_raw(element kind, ptrdiff_t low, ptrdiff_t high, guard_side side)
{
    const size_t size = element_size(kind);
    span s = {guard_new((size_t)(high - low) * size, side), kind, low, high, NULL};
    s.origin = (char *)s.memory.data - low * (ptrdiff_t)size;
    return s;
}

span span_new(test_random *random, element kind, ptrdiff_t low, ptrdiff_t high)
{
    const guard_side side = test_random_below(random, 2) ? GUARD_AFTER : GUARD_BEFORE;
    const span s = span_raw(kind, low, high, side);
    unsigned char *const bytes = s.memory.data;
    for (size_t n = 0; n < s.memory.size; n += sizeof(uint64_t)) {
        const uint64_t bits = test_random_u64(random);
        const size_t left = s.memory.size - n;
        memcpy(bytes + n, &bits, left < sizeof bits ? left : sizeof bits);
    }
    return s;
}

span span_rows(test_random *random, element kind, ptrdiff_t first, ptrdiff_t last, ptrdiff_t stride,
               ptrdiff_t width)
{
    if (first >= last)
        return span_new(random, kind, 0, 0);
    const ptrdiff_t a = first * stride, b = (last - 1) * stride;
    return span_new(random, kind, mhai_min(a, b), mhai_max(a, b) + width);
}

span span_copy(const span *from)
{
    const span copy = span_raw(from->kind, from->low, from->high, GUARD_AFTER);
    memcpy(copy.memory.data, from->memory.data, from->memory.size);
    return copy;
}

void span_free(span *s)
{
    guard_free(&s->memory);
}

float span_get(const span *s, ptrdiff_t i)
{
    if (s->kind == E_I8)
        return (float)((const int8_t *)s->origin)[i];
    return (float)number_get((mha_dtype)s->kind, s->origin, i);
}

void span_set(const span *s, ptrdiff_t i, double x)
{
    if (s->kind == E_I8)
        ((int8_t *)s->origin)[i] = (int8_t)nearbyint(x);
    else
        number_set((mha_dtype)s->kind, s->origin, i, x);
}

static double random_i8(test_random *random)
{
    return random_between(random, INT8_MIN, INT8_MAX);
}

void span_fill_normal(const span *s, test_random *random)
{
    for (ptrdiff_t i = s->low; i < s->high; i++)
        span_set(s, i, s->kind == E_I8 ? random_i8(random) : (double)test_random_normal(random));
}

void span_fill_unit(const span *s, test_random *random)
{
    for (ptrdiff_t i = s->low; i < s->high; i++)
        span_set(s, i,
                 s->kind == E_I8 ? random_i8(random) : fabs((double)test_random_float(random)));
}

void span_seal(const span *s)
{
    guard_seal(&s->memory);
}

static uint32_t bits_of(const span *s, ptrdiff_t i)
{
    const size_t size = element_size(s->kind);
    uint32_t bits = 0;
    memcpy(&bits, (const char *)s->memory.data + (size_t)(i - s->low) * size, size);
    return bits;
}

static bool same_element(const span *a, const span *b, ptrdiff_t i)
{
    return bits_of(a, i) == bits_of(b, i) ||
           (a->kind <= E_BF16 && isnan(span_get(a, i)) && isnan(span_get(b, i)));
}

void span_check(const span *got, const span *want, const char *format, ...)
{
    ptrdiff_t i = got->low;
    while (i < got->high && same_element(got, want, i))
        i++;
    const bool beside = !guard_intact(&got->memory);
    if (i == got->high && !beside)
        return;
    char words[200];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    if (beside)
        CHECK(false, "%s: written outside", words);
    if (i < got->high && got->kind <= E_BF16)
        CHECK(false, "%s: element %td is %a, not %a", words, i, (double)span_get(got, i),
              (double)span_get(want, i));
    else if (i < got->high)
        CHECK(false, "%s: element %td is %#x, not %#x", words, i, bits_of(got, i),
              bits_of(want, i));
}

/* ----------------------------------------------------------------- models */

bool kernel_fuses(const mhak_table *kernels)
{
    return strcmp(kernels->name, "c") != 0 && strcmp(kernels->name, "wasm") != 0;
}

float kernel_fma(const mhak_table *kernels, float a, float b, float c)
{
    return kernel_fuses(kernels) ? fmaf(a, b, c) : a * b + c;
}

float kernel_exp(const mhak_table *kernels, float x)
{
    float in[MHAK_MAX_VECTOR], out[MHAK_MAX_VECTOR];
    for (int i = 0; i < MHAK_MAX_VECTOR; i++)
        in[i] = x;
    kernels->exp_row(in, kernels->vector, out);
    return out[0];
}

float finite_base(float m)
{
    return m == -INFINITY ? 0.0f : m;
}

int whole_vectors(const mhak_table *kernels, int n)
{
    return (n + kernels->vector - 1) / kernels->vector * kernels->vector;
}

bool bit_of(const uint32_t *keep, ptrdiff_t j)
{
    return keep[j / 32] >> (j % 32) & 1u;
}

bool same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

int random_between(test_random *random, int low, int high)
{
    return low + (int)test_random_below(random, high - low + 1);
}
