/* SPDX-License-Identifier: MIT */
/*
 * Bytes become a whole call: shape, strides, every option, buffers of the exact size between guard
 * pages. Whatever the bytes say, the library returns a status, touches nothing outside the
 * buffers, and on error leaves the outputs alone.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_call.c     a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_call.c test.c         a test with pseudo-random bytes
 */
#include "call.h"
#include "guard.h"
#include "mha/mha.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_SIZE = 1 << 17, SLOTS = 24, MARGIN = 64, PATTERN = 0xa5, MAX_BATCH = 4, STATUSES = 64 };

/* The bytes, and the buffers given out for them so far. */
typedef struct fuzz {
    const uint8_t *at, *end;
    uint64_t noise;
    int slots;
    int outputs[3], output_count; /* slots that the library may write */
} fuzz;

static guard_buffer slots[SLOTS];
static size_t slot_used[SLOTS];

static void die(const char *what)
{
    fprintf(stderr, "fuzz_call: %s\n", what);
    abort();
}

/* ----------------------------------------------------------- numbers from bytes ---- */

/* In [0, n), n <= 256. 0, the harmless choice, when the bytes have run out. */
static ptrdiff_t pick(fuzz *f, ptrdiff_t n)
{
    return f->at < f->end ? *f->at++ % n : 0;
}

static bool rare(fuzz *f)
{
    return pick(f, 256) > 250;
}

/* A number that no extent, count or enum can be. */
static int64_t absurd(fuzz *f)
{
    static const int64_t numbers[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX - 1, -2};
    return numbers[pick(f, 5)];
}

static ptrdiff_t extent(fuzz *f, ptrdiff_t usual, ptrdiff_t large)
{
    if (rare(f))
        return (ptrdiff_t)absurd(f);
    if (rare(f))
        return 0;
    return 1 + (pick(f, 16) == 15 ? pick(f, large) : pick(f, usual));
}

static float real(fuzz *f)
{
    static const float numbers[] = {0, 1, 0.125f, -1, 30, 1e-30f, 3e38f, NAN, INFINITY, -INFINITY};
    const ptrdiff_t n = pick(f, 64);
    return n < 10 ? numbers[n] : (float)n / 32;
}

/* --------------------------------------------------------------- exact buffers ---- */

/* `size` bytes that end at a guard page, filled with noise. */
static void *buffer(fuzz *f, size_t size)
{
    if (f->slots == SLOTS || size + MARGIN > SLOT_SIZE)
        die("a buffer too many or too large");
    const int slot = f->slots++;
    if (!slots[slot].data)
        slots[slot] = guard_new(SLOT_SIZE, GUARD_AFTER);
    unsigned char *data = (unsigned char *)slots[slot].data + SLOT_SIZE - size;
    slot_used[slot] = size;
    memset(data - MARGIN, PATTERN, MARGIN);
    for (size_t i = 0; i < size; i += sizeof f->noise) {
        f->noise = f->noise * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = f->noise ^ f->noise >> 29;
        memcpy(data + i, &word, size - i < sizeof word ? size - i : sizeof word);
    }
    return data;
}

static void *output(fuzz *f, size_t size)
{
    f->outputs[f->output_count++] = f->slots;
    void *data = buffer(f, size);
    memset(data, PATTERN, size);
    return data;
}

/* Nothing was written before the data of any slot; on error nothing into outputs either. */
static void check_memory(const fuzz *f, bool failed)
{
    for (int i = 0; i < f->slots; i++) {
        const unsigned char *data = (unsigned char *)slots[i].data + SLOT_SIZE - slot_used[i];
        for (int n = 1; n <= MARGIN; n++)
            if (data[-n] != PATTERN)
                die("written before a buffer");
    }
    for (int i = 0; failed && i < f->output_count; i++) {
        const int slot = f->outputs[i];
        const unsigned char *end = (unsigned char *)slots[slot].data + SLOT_SIZE;
        for (const unsigned char *p = end - slot_used[slot]; p < end; p++)
            if (*p != PATTERN)
                die("an output was written by a call that failed");
    }
}

/* ---------------------------------------------------------------------- views ---- */

typedef struct extents {
    ptrdiff_t batches, heads, rows, width;
} extents;

static bool is_small(extents n)
{
    return n.batches > 0 && n.heads > 0 && n.rows > 0 && n.width > 0 && n.batches <= MAX_BATCH &&
           n.heads <= 64 && n.rows <= 1024 && n.width <= MHA_MAX_HEAD_WIDTH;
}

static ptrdiff_t stride(fuzz *f, ptrdiff_t dense)
{
    switch (pick(f, 32)) {
    case 1:
        return 0;
    case 2:
        return -dense;
    case 3:
        return dense + 1;
    case 4:
        return 1;
    case 5:
        return dense - 1;
    default:
        return dense;
    }
}

/* Strides, and a buffer that ends and begins where they do. */
static mha_view place(fuzz *f, extents n, size_t size, bool writable)
{
    mha_view view = {0};
    if (!is_small(n)) {
        view.data = writable ? output(f, 64) : buffer(f, 64);
        return view;
    }
    const bool rows_outside = pick(f, 2);
    view.sl = stride(f, rows_outside ? n.heads * n.width : n.width);
    view.sh = stride(f, rows_outside ? n.width : n.rows * n.width);
    view.sb = stride(f, n.heads * n.rows * n.width);
    const ptrdiff_t reach[] = {(n.batches - 1) * view.sb, (n.heads - 1) * view.sh,
                               (n.rows - 1) * view.sl};
    ptrdiff_t low = 0, high = n.width;
    for (int i = 0; i < 3; i++)
        *(reach[i] < 0 ? &low : &high) += reach[i];
    const size_t bytes = (size_t)(high - low) * size;
    if (bytes + MARGIN > SLOT_SIZE) {
        view.sb = view.sh = view.sl = 0;
        low = 0;
    }
    const size_t given = bytes + MARGIN > SLOT_SIZE ? (size_t)n.width * size : bytes;
    char *data = writable ? output(f, given) : buffer(f, given);
    view.data = data - low * (ptrdiff_t)size;
    if (rare(f))
        *(pick(f, 2) ? &view.sl : &view.sh) = pick(f, 2) ? PTRDIFF_MAX : PTRDIFF_MIN;
    return view;
}

/* --------------------------------------------------------------------- options ---- */

static size_t type_size(mha_dtype type)
{
    const size_t size = mha_dtype_size(type);
    return size ? size : 8;
}

static mha_dtype type(fuzz *f)
{
    return rare(f) ? (mha_dtype)pick(f, 6) : (mha_dtype)pick(f, 3);
}

static mha_shape shape(fuzz *f)
{
    mha_shape s = {0};
    s.B = extent(f, 3, MAX_BATCH);
    s.G = extent(f, 2, 4);
    s.H = s.G > 0 && s.G < 8 ? s.G * (1 + pick(f, 3)) : extent(f, 4, 8);
    s.L = extent(f, 6, 40);
    s.S = extent(f, 8, 200);
    s.D = extent(f, 9, 80);
    s.Dv = rare(f) ? 0 : extent(f, 9, 80);
    s.q_type = type(f);
    s.k_type = type(f);
    s.v_type = type(f);
    s.o_type = type(f);
    if (pick(f, 8) == 7)
        s.q_type = s.k_type = s.v_type = s.o_type = MHA_F64;
    if (pick(f, 16) == 15)
        s.D = MHA_MAX_HEAD_WIDTH + (rare(f) ? 1 : 0), s.L = s.S = 2;
    return s;
}

/* Numbers in [0, full], now and then absurd ones. */
static int64_t *small_numbers(fuzz *f, ptrdiff_t count, ptrdiff_t full)
{
    if (count < 0 || count > 64)
        count = 1;
    int64_t *data = buffer(f, (size_t)count * 8);
    for (ptrdiff_t i = 0; i < count; i++) {
        const bool known = full > 0 && full < 256;
        data[i] = known ? pick(f, full) : 0;
        if (rare(f))
            data[i] = known && pick(f, 2) ? full + 1 : absurd(f);
    }
    return data;
}

/* Ascending, each step in [0, full]; now and then not. Returns how many rows the view needs. */
static int64_t *starts(fuzz *f, ptrdiff_t B, ptrdiff_t full, ptrdiff_t *rows)
{
    if (B < 0 || B > MAX_BATCH || full < 0 || full > 1024)
        B = 0;
    int64_t *data = buffer(f, (size_t)(B + 1) * 8);
    data[0] = pick(f, 4);
    for (ptrdiff_t b = 0; b < B; b++) {
        data[b + 1] = data[b] + pick(f, full < 255 ? full + 1 : 255);
        if (rare(f))
            data[b + 1] -= 3;
    }
    *rows = (ptrdiff_t)data[B] > 0 ? (ptrdiff_t)data[B] : 1;
    if (rare(f))
        data[pick(f, B + 1)] = absurd(f);
    return data;
}

/* A mask or bias: each axis by its stride or broadcast. */
static mha_view mask(fuzz *f, const mha_shape *s, size_t size)
{
    const extents n = {s->B, s->H, s->L, s->S};
    if (!is_small(n) || n.batches * n.heads * n.rows * n.width * (ptrdiff_t)size > SLOT_SIZE / 2)
        return (mha_view){0};
    return place(f, n, size, false);
}

static void fill_masks(fuzz *f, const mha_shape *s, mha_options *o)
{
    o->add_mask_type = type(f);
    o->bias_type = type(f);
    if (pick(f, 4) == 3)
        o->attend_mask = mask(f, s, 1);
    if (pick(f, 4) == 3)
        o->ignore_mask = mask(f, s, 1);
    if (pick(f, 4) == 3)
        o->add_mask = mask(f, s, type_size(o->add_mask_type));
    if (pick(f, 4) == 3)
        o->bias = mask(f, s, type_size(o->bias_type));
    const size_t heads = s->H > 0 && s->H <= 64 ? (size_t)s->H : 1;
    if (pick(f, 4) == 3)
        o->alibi_slopes = buffer(f, heads * 4);
    if (pick(f, 4) == 3)
        o->sinks = buffer(f, heads * 4);
}

static ptrdiff_t distance(fuzz *f)
{
    static const ptrdiff_t far[] = {PTRDIFF_MIN, PTRDIFF_MAX, INT_MIN, INT_MAX, -2};
    return rare(f) ? far[pick(f, 5)] : pick(f, 12) - 1;
}

static void fill_positions(fuzz *f, const mha_shape *s, mha_options *o)
{
    o->flags = (uint32_t)pick(f, rare(f) ? 256 : 8);
    o->position = (mha_position)(rare(f) ? pick(f, 6) : 1 + pick(f, 3));
    o->offset = distance(f);
    o->window_left = distance(f);
    o->window_right = distance(f);
    if (pick(f, 4) == 3)
        o->offsets = small_numbers(f, s->B, 9);
}

static void fill_lengths(fuzz *f, const mha_shape *s, mha_options *o, ptrdiff_t *q_rows,
                         ptrdiff_t *k_rows)
{
    *q_rows = s->L;
    *k_rows = s->S;
    if (pick(f, 4) == 3)
        o->q_lengths = small_numbers(f, s->B, s->L);
    if (pick(f, 4) == 3)
        o->k_lengths = small_numbers(f, s->B, s->S);
    if (pick(f, 4) == 3)
        o->q_starts = starts(f, s->B, s->L, q_rows);
    if (pick(f, 4) == 3)
        o->k_starts = starts(f, s->B, s->S, k_rows);
    const ptrdiff_t batches = s->B > 0 && s->B <= MAX_BATCH ? s->B : 1;
    if (pick(f, 4) != 3 || *q_rows < 0 || *k_rows < 0 || *q_rows > 2048 || *k_rows > 2048)
        return;
    o->q_documents_sb = *q_rows;
    o->k_documents_sb = *k_rows;
    o->q_documents = buffer(f, (size_t)(batches * *q_rows) * 4);
    o->k_documents = buffer(f, (size_t)(batches * *k_rows) * 4);
}

static void fill_outputs(fuzz *f, const mha_shape *s, mha_options *o, ptrdiff_t q_rows)
{
    const bool exact = s->o_type == MHA_F64;
    if (pick(f, 3) == 2) {
        const extents n = {o->q_starts ? 1 : s->B, s->H, q_rows, 1};
        const mha_view lse = place(f, n, exact ? 8 : 4, true);
        o->lse = (mha_out){(void *)lse.data, lse.sb, lse.sh, lse.sl};
    }
    if (pick(f, 3) != 2)
        return;
    o->weights_type = exact && pick(f, 2) ? MHA_F64 : type(f);
    o->weights_mode = (mha_weights_mode)(rare(f) ? pick(f, 8) : pick(f, 4));
    extents n = {s->B, s->H, s->L, s->S};
    if (pick(f, 2)) {
        n.heads = o->weights_head_count = pick(f, 4);
        o->weights_heads = small_numbers(f, n.heads, s->H);
    }
    if (pick(f, 2)) {
        n.rows = o->weights_row_count = pick(f, 6);
        o->weights_rows = small_numbers(f, n.rows, s->L);
    }
    const mha_view weights = place(f, n, type_size(o->weights_type), true);
    o->weights = (mha_out){(void *)weights.data, weights.sb, weights.sh, weights.sl};
}

/* -------------------------------------------------------------------- the call ---- */

static void run_in_order(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int i = 0; i < tasks; i++)
        task(arg, i);
}

typedef struct fuzz_call {
    mha_shape shape;
    mha_view q, k, v;
    mha_out o;
    const mha_options *options;
} fuzz_call;

static mha_status run_plan(const fuzz_call *c, int threads, size_t missing, mha_pool *pool)
{
    mha_plan *plan = NULL;
    mha_status status = mha_plan_create(&plan, &c->shape, c->options);
    if (status == MHA_OK) {
        const size_t need = mha_plan_work_size(plan, threads);
        const size_t size = need > missing ? need - missing : 0;
        char *work = malloc(size ? size : 1);
        status = mha_plan_run(plan, c->q, c->k, c->v, c->o, c->options, work, size, pool);
        free(work);
    }
    mha_plan_free(plan);
    return status;
}

static mha_status run(fuzz *f, const fuzz_call *c)
{
    const int threads = 1 + (int)pick(f, 4);
    const mha_executor executor = {sizeof executor, NULL, threads, run_in_order};
    mha_pool *pool = NULL;
    mha_status status = threads > 1 ? mha_pool_create_from(&pool, &executor) : MHA_OK;
    const bool planned = pick(f, 2);
    const size_t missing = planned && rare(f) ? 1 : 0;
    if (status == MHA_OK)
        status = planned ? run_plan(c, threads, missing, pool)
                         : mha_attention(&c->shape, c->q, c->k, c->v, c->o, c->options, pool);
    mha_pool_free(pool);
    return status;
}

static mha_status fuzz_one(const uint8_t *bytes, size_t size)
{
    fuzz f = {.at = bytes, .end = bytes + size, .noise = size};
    char message[32];
    mha_options o = {.size = sizeof o, .message = message, .message_size = sizeof message};
    memset(message, 'x', sizeof message);
    ptrdiff_t q_rows, k_rows;
    fuzz_call c = {.shape = shape(&f), .options = &o};
    const mha_shape *s = &c.shape;
    fill_lengths(&f, s, &o, &q_rows, &k_rows);
    const extents q = {o.q_starts ? 1 : s->B, s->H, q_rows, s->D};
    const extents out = {q.batches, s->H, q_rows, s->Dv ? s->Dv : s->D};
    const extents k = {o.k_starts ? 1 : s->B, s->G ? s->G : s->H, k_rows, s->D};
    const extents v = {k.batches, k.heads, k_rows, out.width};
    c.q = place(&f, q, type_size(s->q_type), false);
    c.k = place(&f, k, type_size(s->k_type), false);
    c.v = place(&f, v, type_size(s->v_type), false);
    const mha_view view = place(&f, out, type_size(s->o_type), true);
    c.o = (mha_out){(void *)view.data, view.sb, view.sh, view.sl};
    o.scale = real(&f);
    o.softcap = pick(&f, 4) == 3 ? real(&f) : 0;
    fill_positions(&f, s, &o);
    fill_masks(&f, s, &o);
    fill_outputs(&f, s, &o, q_rows);
    if (rare(&f) && !o.q_starts && !o.k_starts)
        c.options = NULL;

    const mha_status status = run(&f, &c);
    if (!call_status_known(status) || -status >= STATUSES)
        die("a status that does not exist");
    if (status < 0 && c.options && !memchr(message, 0, sizeof message))
        die("a message that does not end");
    check_memory(&f, status < 0);
    return status;
}

#ifdef FUZZ_STANDALONE

#include "test.h"

static void pseudo_random_calls(void)
{
    uint8_t bytes[400];
    int counts[STATUSES] = {0};
    test_random random = {test_seed(2024)};
    const int64_t rounds = test_effort(60000);
    for (int64_t i = 0; i < rounds; i++) {
        for (size_t n = 0; n < sizeof bytes; n += 8) {
            const uint64_t word = test_random_u64(&random);
            memcpy(bytes + n, &word, 8);
        }
        counts[-fuzz_one(bytes, sizeof bytes)]++;
    }
    int met = 0;
    for (int i = 0; i < STATUSES; i++)
        met += counts[i] > 0;
    CHECK(counts[0] > rounds / 5, "only %d of %lld calls were valid", counts[0], (long long)rounds);
    CHECK(rounds < 1000 || met > 8, "only %d different statuses", met);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(pseudo_random_calls);
    return test_end();
}

#else

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_one(bytes, size);
    return 0;
}

#endif
