/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share: bytes become numbers, buffers of the exact size between guard pages,
 * views into them, and the options of a call. Most numbers are harmless, so that most calls are
 * valid; a few are absurd.
 */
#ifndef MHA_FUZZ_H
#define MHA_FUZZ_H

#include "mha/mha.h"
#include "support/test.h"

#include <stdbool.h>

enum {
    FUZZ_SLOT_SIZE = 1 << 17, /* the largest buffer, margin included */
    FUZZ_SLOTS = 64,
    FUZZ_OUTPUTS = 32,
    FUZZ_MARGIN = 64,
    FUZZ_MAX_BATCH = 4,
    FUZZ_MESSAGE = 32,
    FUZZ_STATUSES = 64 /* more than there are */
};

/* The bytes, and the buffers given out for them so far. */
typedef struct fuzz {
    const uint8_t *at, *end;
    uint64_t noise;
    int slots;
    int outputs[FUZZ_OUTPUTS], output_count; /* slots that the library may write */
    char *message;                           /* of the call in preparation, or NULL */
} fuzz;

fuzz fuzz_begin(const uint8_t *bytes, size_t size);

/* Say what is wrong and abort: what a fuzzer takes for a finding. */
_Noreturn void fuzz_die(const char *what);

/* In [0, n), n <= 256. 0, the harmless choice, when the bytes have run out. */
ptrdiff_t fuzz_pick(fuzz *f, ptrdiff_t n);

/* True about once in 50 times. */
bool fuzz_rare(fuzz *f);

/* A number that no extent, count or enum can be. */
int64_t fuzz_absurd(fuzz *f);

/* 1 .. usual, sometimes up to large, rarely 0 or absurd. */
ptrdiff_t fuzz_extent(fuzz *f, ptrdiff_t usual, ptrdiff_t large);

/* Any float, odd ones too. */
float fuzz_real(fuzz *f);

/* f32, f16, bf16; rarely anything. */
mha_dtype fuzz_type(fuzz *f);

/* The same and i8, as weights and caches are stored. */
mha_dtype fuzz_stored_type(fuzz *f);

/* Bytes of an element; 8 for types that do not exist. */
size_t fuzz_type_size(mha_dtype type);

/* 0 <= n < end: sizes that are safe to calculate with. */
bool fuzz_below(ptrdiff_t n, ptrdiff_t end);

/* What a caller says of its struct; a size beyond the struct would be a lie. */
size_t fuzz_struct_size(fuzz *f, size_t size);

/* `size` bytes of noise that end at a guard page; an output is filled with a pattern instead. */
void *fuzz_buffer(fuzz *f, size_t size);
void *fuzz_output(fuzz *f, size_t size);

/* Room for a message of FUZZ_MESSAGE bytes. */
char *fuzz_message(fuzz *f);

/*
 * After a call: die if its status does not exist, if anything was written before a buffer or, by a
 * call that failed, into an output, or if the message does not end. Writing past a buffer ends
 * the program by itself. All buffers are then free for the next call.
 */
void fuzz_finish(fuzz *f, mha_status status);

/* Between two calls on the same buffers, after the first has succeeded: what it wrote is from
 * now on as good as an input. */
void fuzz_succeeded(fuzz *f);

/* How many calls have ended with this status so far. */
int64_t fuzz_met(mha_status status);

typedef struct fuzz_extents {
    ptrdiff_t batches, heads, rows, width;
} fuzz_extents;

/* Strides, and a buffer that ends and begins where they do; extents that are absurd get 64 bytes.
 */
mha_view fuzz_place(fuzz *f, fuzz_extents n, size_t element, bool writable);
mha_out fuzz_place_out(fuzz *f, fuzz_extents n, size_t element);

/* Numbers in [0, full], now and then absurd ones. */
int64_t *fuzz_numbers(fuzz *f, ptrdiff_t count, ptrdiff_t full);

/*
 * Options for a call of this shape, with everything they point to; returned weights have `columns`
 * columns. Comes back: how many rows the views of queries and keys need, more than L and S if
 * sequences are packed.
 */
void fuzz_options(fuzz *f, const mha_shape *s, ptrdiff_t columns, mha_options *o, ptrdiff_t *q_rows,
                  ptrdiff_t *k_rows);

/* A workspace: none, or exactly what a call is said to need, or one byte too little. */
typedef struct fuzz_work {
    void *data;
    size_t size, needed;
} fuzz_work;

fuzz_work fuzz_work_new(fuzz *f, size_t needed);

/* Die if a size that was said to be enough was not, or if a call has run that was said to need
 * none. */
void fuzz_work_free(const fuzz_work *w, mha_status status);

/* Fills a buffer, `size` a multiple of 8, for a target that is run as a test. */
void fuzz_random_bytes(test_random *random, uint8_t *bytes, size_t size);

/* Counts an input of libFuzzer; at exit, how many there were and how many were accepted is printed:
 * a fuzzer whose inputs are all refused proves nothing. */
void fuzz_count(bool accepted);

/* The last line of a target. `one` takes bytes and their number, and returns whether they were
 * accepted; `test` runs it on pseudo-random bytes. With FUZZ_STANDALONE the target is a test
 * program, else it has libFuzzer's entry point. */
#ifdef FUZZ_STANDALONE
#define FUZZ_TARGET(one, test)      \
    int main(int argc, char **argv) \
    {                               \
        (void)one;                  \
        test_begin(argc, argv);     \
        RUN(test);                  \
        return test_end();          \
    }
#else
#define FUZZ_TARGET(one, test)                                     \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size); \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)  \
    {                                                              \
        (void)test; /* only the test program runs it */            \
        fuzz_count(one(bytes, size));                              \
        return 0;                                                  \
    }
#endif

/* A pool of 1 to 4 threads that run one after another; NULL for 1. */
mha_pool *fuzz_pool(fuzz *f);

#endif
