/* SPDX-License-Identifier: MIT */
/*
 * What the tests of kernels share.
 *
 *      tables      each test runs once for every table this CPU can run
 *      spans       arrays that hold exactly the elements a kernel may touch
 *      models      what multiply-adds and exponentials of a table must give, to the bit
 *
 * The shape of a test of a slot: make spans for its arguments, copy the one it writes, call the
 * slot on the original and a plain model on the copy, and compare the two completely. What the
 * slot must not write is then compared as well, and what it must not read or write outside is
 * out of reach.
 */
#ifndef MHA_KERNEL_BENCH_H
#define MHA_KERNEL_BENCH_H

#include "core/kernels/native.h"
#include "support/guard.h"
#include "support/test.h"

/* ----------------------------------------------------------------- tables */

/* Run a test for every table this CPU can run, under the name "body/isa". With MHA_ISA set, for
 * that table only. */
void kernel_run(const char *name, void (*body)(const mhak_table *kernels));
#define RUN_KERNELS(body) kernel_run(#body, body)

/* The same for every table of native arithmetic. */
void native_run(const char *name, void (*body)(const mhak_native *native));
#define RUN_NATIVE(body) native_run(#body, body)

/* Report each table that cannot be tested here as skipped. */
void kernel_report_missing(void);

/* ------------------------------------------------------------------ spans */

/* Kinds of elements; the storage types have the numbers of mha_dtype. */
typedef enum element { E_F32 = 0, E_F16 = 1, E_BF16 = 2, E_I8 = 4, E_WORD, E_BYTE } element;

/* All storage types that a kernel reads. Those it also writes are E_F32 to E_BF16. */
enum { STORAGE_TYPES = 4 };
extern const element storage_types[STORAGE_TYPES];
element random_storage(test_random *random);

/* Elements [low, high) of an array, between pages that must not be touched. */
typedef struct span {
    guard_buffer memory;
    element kind;
    ptrdiff_t low, high;
    void *origin; /* where element 0 lies, or would lie */
} span;

/* Filled with random bits. The forbidden page lies right before or right after, by chance. */
span span_new(test_random *random, element kind, ptrdiff_t low, ptrdiff_t high);

/* Rows [first, last) of `width` elements each, `stride` apart; any sign. */
span span_rows(test_random *random, element kind, ptrdiff_t first, ptrdiff_t last, ptrdiff_t stride,
               ptrdiff_t width);

span span_copy(const span *from);
void span_free(span *s);

/* Element i as a number, and back (rounded to nearest even). For the storage types. */
float span_get(const span *s, ptrdiff_t i);
void span_set(const span *s, ptrdiff_t i, double x);

/* Every element a number: roughly normal, or uniform in [0, 1). i8: any of its integers. */
void span_fill_normal(const span *s, test_random *random);
void span_fill_unit(const span *s, test_random *random);

/* From here on only reading is allowed. */
void span_seal(const span *s);

/*
 * Record a failure, with the given words, unless both hold the same bits in every element and
 * nothing was written beside `got`. A NaN equals any other NaN.
 */
void span_check(const span *got, const span *want, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ----------------------------------------------------------------- models */

/* Whether it has a fused multiply-add. */
bool kernel_fuses(const mhak_table *kernels);

/* a*b + c with the roundings of this table: one where the machine has the instruction. */
float kernel_fma(const mhak_table *kernels, float a, float b, float c);

/* exp(x) as this table gives it (test_exp holds its error). */
float kernel_exp(const mhak_table *kernels, float x);

/* What m has to be subtracted as: m, or 0 where it is -inf. */
float finite_base(float m);

/* n rounded up to whole vectors. */
int whole_vectors(const mhak_table *kernels, int n);

bool bit_of(const uint32_t *keep, ptrdiff_t j);

/* Equal bits, or NaN both. */
bool same_float(float a, float b);

/* A random number in [low, high]. */
int random_between(test_random *random, int low, int high);

#endif
