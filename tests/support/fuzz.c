/* SPDX-License-Identifier: MIT */
/*
 * The part that all fuzz targets share: bytes to numbers, slots of guarded memory, options of a
 * call, and the checks after it.
 */
#include "support/fuzz.h"

#include "support/call.h"
#include "support/guard.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5 };

static guard_buffer slots[FUZZ_SLOTS];
static size_t slot_used[FUZZ_SLOTS];
static int64_t met[FUZZ_STATUSES];

fuzz fuzz_begin(const uint8_t *bytes, size_t size)
{
    return (fuzz){.at = bytes, .end = bytes + size, .noise = size};
}

_Noreturn void fuzz_die(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* ----------------------------------------------------------- numbers from bytes ---- */

ptrdiff_t fuzz_pick(fuzz *f, ptrdiff_t n)
{
    return f->at < f->end ? *f->at++ % n : 0;
}

bool fuzz_rare(fuzz *f)
{
    return fuzz_pick(f, 256) > 250;
}

int64_t fuzz_absurd(fuzz *f)
{
    static const int64_t numbers[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX - 1, -2};
    return numbers[fuzz_pick(f, 5)];
}

ptrdiff_t fuzz_extent(fuzz *f, ptrdiff_t usual, ptrdiff_t large)
{
    if (fuzz_rare(f))
        return (ptrdiff_t)fuzz_absurd(f);
    if (fuzz_rare(f))
        return 0;
    return 1 + (fuzz_pick(f, 16) == 15 ? fuzz_pick(f, large) : fuzz_pick(f, usual));
}

float fuzz_real(fuzz *f)
{
    static const float numbers[] = {0, 1, 0.125f, -1, 30, 1e-30f, 3e38f, NAN, INFINITY, -INFINITY};
    const ptrdiff_t n = fuzz_pick(f, 64);
    return n < 10 ? numbers[n] : (float)n / 32;
}

mha_dtype fuzz_type(fuzz *f)
{
    return fuzz_rare(f) ? (mha_dtype)fuzz_pick(f, 7) : (mha_dtype)fuzz_pick(f, 3);
}

mha_dtype fuzz_stored_type(fuzz *f)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    return fuzz_rare(f) ? (mha_dtype)fuzz_pick(f, 7) : types[fuzz_pick(f, 4)];
}

size_t fuzz_type_size(mha_dtype type)
{
    const size_t size = mha_dtype_size(type);
    return size ? size : 8;
}

bool fuzz_below(ptrdiff_t n, ptrdiff_t end)
{
    return n >= 0 && n < end;
}

size_t fuzz_struct_size(fuzz *f, size_t size)
{
    return fuzz_rare(f) ? (size_t)fuzz_pick(f, size < 256 ? (ptrdiff_t)size : 256) : size;
}

/* --------------------------------------------------------------- exact buffers ---- */

static unsigned char *data_of(int slot)
{
    return (unsigned char *)slots[slot].data + FUZZ_SLOT_SIZE - slot_used[slot];
}

void *fuzz_buffer(fuzz *f, size_t size)
{
    if (f->slots == FUZZ_SLOTS || size + FUZZ_MARGIN > FUZZ_SLOT_SIZE)
        fuzz_die("a buffer too many or too large");
    const int slot = f->slots++;
    if (!slots[slot].data)
        slots[slot] = guard_new(FUZZ_SLOT_SIZE, GUARD_AFTER);
    slot_used[slot] = size;
    unsigned char *const data = data_of(slot);
    memset(data - FUZZ_MARGIN, PATTERN, FUZZ_MARGIN);
    for (size_t i = 0; i < size; i += sizeof f->noise) {
        f->noise = f->noise * 6364136223846793005u + 1442695040888963407u;
        const uint64_t word = f->noise ^ f->noise >> 29;
        memcpy(data + i, &word, size - i < sizeof word ? size - i : sizeof word);
    }
    return data;
}

void *fuzz_output(fuzz *f, size_t size)
{
    if (f->output_count == FUZZ_OUTPUTS)
        fuzz_die("an output too many");
    f->outputs[f->output_count++] = f->slots;
    void *const data = fuzz_buffer(f, size);
    memset(data, PATTERN, size);
    return data;
}

char *fuzz_message(fuzz *f)
{
    f->message = fuzz_buffer(f, FUZZ_MESSAGE);
    memset(f->message, 'x', FUZZ_MESSAGE);
    return f->message;
}

static void check_memory(const fuzz *f, bool failed)
{
    for (int i = 0; i < f->slots; i++)
        for (int n = 1; n <= FUZZ_MARGIN; n++)
            if (data_of(i)[-n] != PATTERN)
                fuzz_die("written before a buffer");
    for (int i = 0; failed && i < f->output_count; i++)
        for (size_t n = 0; n < slot_used[f->outputs[i]]; n++)
            if (data_of(f->outputs[i])[n] != PATTERN)
                fuzz_die("an output was written by a call that failed");
}

void fuzz_finish(fuzz *f, mha_status status)
{
    if (!call_status_known(status) || -status >= FUZZ_STATUSES)
        fuzz_die("a status that does not exist");
    check_memory(f, status < 0);
    if (f->message && f->message[0] != 'x' && !memchr(f->message, 0, FUZZ_MESSAGE))
        fuzz_die("a message that does not end");
    met[-status]++;
    f->slots = f->output_count = 0;
    f->message = NULL;
}

void fuzz_succeeded(fuzz *f)
{
    check_memory(f, false);
    met[-MHA_OK]++;
    f->output_count = 0;
}

int64_t fuzz_met(mha_status status)
{
    return met[-status];
}

/* ---------------------------------------------------------------------- views ---- */

static bool is_small(fuzz_extents n)
{
    return n.batches > 0 && n.heads > 0 && n.rows > 0 && n.width > 0 &&
           n.batches <= FUZZ_MAX_BATCH && n.heads <= 64 && n.rows <= 1024 &&
           n.width <= MHA_MAX_HEAD_WIDTH;
}

static ptrdiff_t stride(fuzz *f, ptrdiff_t dense)
{
    switch (fuzz_pick(f, 32)) {
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

static void *take(fuzz *f, size_t size, bool writable)
{
    return writable ? fuzz_output(f, size) : fuzz_buffer(f, size);
}

mha_view fuzz_place(fuzz *f, fuzz_extents n, size_t element, bool writable)
{
    mha_view view = {0};
    if (!is_small(n)) {
        view.data = take(f, 64, writable);
        return view;
    }
    const bool rows_outside = fuzz_pick(f, 2);
    view.sl = stride(f, rows_outside ? n.heads * n.width : n.width);
    view.sh = stride(f, rows_outside ? n.width : n.rows * n.width);
    view.sb = stride(f, n.heads * n.rows * n.width);
    const ptrdiff_t reach[] = {(n.batches - 1) * view.sb, (n.heads - 1) * view.sh,
                               (n.rows - 1) * view.sl};
    ptrdiff_t low = 0, high = n.width;
    for (int i = 0; i < 3; i++)
        *(reach[i] < 0 ? &low : &high) += reach[i];
    if ((size_t)(high - low) * element + FUZZ_MARGIN > FUZZ_SLOT_SIZE) {
        view.sb = view.sh = view.sl = low = 0;
        high = n.width;
    }
    char *const data = take(f, (size_t)(high - low) * element, writable);
    view.data = data - low * (ptrdiff_t)element;
    if (fuzz_rare(f))
        *(fuzz_pick(f, 2) ? &view.sl : &view.sh) = fuzz_pick(f, 2) ? PTRDIFF_MAX : PTRDIFF_MIN;
    return view;
}

mha_out fuzz_place_out(fuzz *f, fuzz_extents n, size_t element)
{
    const mha_view view = fuzz_place(f, n, element, true);
    return (mha_out){(void *)view.data, view.sb, view.sh, view.sl};
}

/* --------------------------------------------------------------------- options ---- */

int64_t *fuzz_numbers(fuzz *f, ptrdiff_t count, ptrdiff_t full)
{
    if (count < 0 || count > 64)
        count = 1;
    int64_t *data = fuzz_buffer(f, (size_t)count * 8);
    for (ptrdiff_t i = 0; i < count; i++) {
        const bool known = full > 0 && full < 256;
        data[i] = known ? fuzz_pick(f, full) : 0;
        if (fuzz_rare(f))
            data[i] = known && fuzz_pick(f, 2) ? full + 1 : fuzz_absurd(f);
    }
    return data;
}

/* Ascending, each step in [0, full]; now and then not. Returns how many rows the view needs. */
static int64_t *starts(fuzz *f, ptrdiff_t B, ptrdiff_t full, ptrdiff_t *rows)
{
    if (B < 0 || B > FUZZ_MAX_BATCH || full < 0 || full > 1024)
        B = 0;
    int64_t *data = fuzz_buffer(f, (size_t)(B + 1) * 8);
    data[0] = fuzz_pick(f, 4);
    for (ptrdiff_t b = 0; b < B; b++) {
        data[b + 1] = data[b] + fuzz_pick(f, full < 255 ? full + 1 : 255);
        if (fuzz_rare(f))
            data[b + 1] -= 3;
    }
    *rows = (ptrdiff_t)data[B] > 0 ? (ptrdiff_t)data[B] : 1;
    if (fuzz_rare(f))
        data[fuzz_pick(f, B + 1)] = fuzz_absurd(f);
    return data;
}

/* A mask or bias: each axis by its stride or broadcast. */
static mha_view mask(fuzz *f, const mha_shape *s, size_t size)
{
    const fuzz_extents n = {s->B, s->H, s->L, s->S};
    if (!is_small(n) ||
        n.batches * n.heads * n.rows * n.width * (ptrdiff_t)size > FUZZ_SLOT_SIZE / 2)
        return (mha_view){0};
    return fuzz_place(f, n, size, false);
}

static void fill_masks(fuzz *f, const mha_shape *s, mha_options *o)
{
    o->add_mask_type = fuzz_type(f);
    o->bias_type = fuzz_type(f);
    if (fuzz_pick(f, 4) == 3)
        o->attend_mask = mask(f, s, 1);
    if (fuzz_pick(f, 4) == 3)
        o->ignore_mask = mask(f, s, 1);
    if (fuzz_pick(f, 4) == 3)
        o->add_mask = mask(f, s, fuzz_type_size(o->add_mask_type));
    if (fuzz_pick(f, 4) == 3)
        o->bias = mask(f, s, fuzz_type_size(o->bias_type));
    const size_t heads = s->H > 0 && s->H <= 64 ? (size_t)s->H : 1;
    if (fuzz_pick(f, 4) == 3)
        o->alibi_slopes = fuzz_buffer(f, heads * 4);
    if (fuzz_pick(f, 4) == 3)
        o->sinks = fuzz_buffer(f, heads * 4);
}

static ptrdiff_t distance(fuzz *f)
{
    static const ptrdiff_t far[] = {PTRDIFF_MIN, PTRDIFF_MAX, INT_MIN, INT_MAX, -2};
    return fuzz_rare(f) ? far[fuzz_pick(f, 5)] : fuzz_pick(f, 12) - 1;
}

static void fill_positions(fuzz *f, const mha_shape *s, mha_options *o)
{
    o->flags = (uint32_t)fuzz_pick(f, fuzz_rare(f) ? 256 : 8);
    o->position = (mha_position)(fuzz_rare(f) ? fuzz_pick(f, 6) : 1 + fuzz_pick(f, 3));
    o->offset = distance(f);
    o->window_left = distance(f);
    o->window_right = distance(f);
    if (fuzz_pick(f, 4) == 3)
        o->offsets = fuzz_numbers(f, s->B, 9);
}

static void fill_lengths(fuzz *f, const mha_shape *s, mha_options *o, ptrdiff_t *q_rows,
                         ptrdiff_t *k_rows)
{
    *q_rows = s->L;
    *k_rows = s->S;
    if (fuzz_pick(f, 4) == 3)
        o->q_lengths = fuzz_numbers(f, s->B, s->L);
    if (fuzz_pick(f, 4) == 3)
        o->k_lengths = fuzz_numbers(f, s->B, s->S);
    if (fuzz_pick(f, 4) == 3)
        o->q_starts = starts(f, s->B, s->L, q_rows);
    if (fuzz_pick(f, 4) == 3)
        o->k_starts = starts(f, s->B, s->S, k_rows);
    const ptrdiff_t batches = s->B > 0 && s->B <= FUZZ_MAX_BATCH ? s->B : 1;
    if (fuzz_pick(f, 4) != 3 || *q_rows < 0 || *k_rows < 0 || *q_rows > 2048 || *k_rows > 2048)
        return;
    o->q_documents_sb = *q_rows;
    o->k_documents_sb = *k_rows;
    o->q_documents = fuzz_buffer(f, (size_t)(batches * *q_rows) * 4);
    o->k_documents = fuzz_buffer(f, (size_t)(batches * *k_rows) * 4);
}

static void fill_outputs(fuzz *f, const mha_shape *s, ptrdiff_t columns, mha_options *o,
                         ptrdiff_t q_rows)
{
    const bool exact = s->o_type == MHA_F64;
    if (fuzz_pick(f, 3) == 2) {
        const fuzz_extents n = {o->q_starts ? 1 : s->B, s->H, q_rows, 1};
        o->lse = fuzz_place_out(f, n, exact ? 8 : 4);
    }
    if (fuzz_pick(f, 3) != 2)
        return;
    o->weights_type = exact && fuzz_pick(f, 2) ? MHA_F64 : fuzz_type(f);
    o->weights_mode = (mha_weights_mode)(fuzz_rare(f) ? fuzz_pick(f, 8) : fuzz_pick(f, 4));
    fuzz_extents n = {s->B, s->H, s->L, columns};
    if (fuzz_pick(f, 2)) {
        n.heads = o->weights_head_count = fuzz_pick(f, 4);
        o->weights_heads = fuzz_numbers(f, n.heads, s->H);
    }
    if (fuzz_pick(f, 2)) {
        n.rows = o->weights_row_count = fuzz_pick(f, 6);
        o->weights_rows = fuzz_numbers(f, n.rows, s->L);
    }
    o->weights = fuzz_place_out(f, n, fuzz_type_size(o->weights_type));
}

/* An output of so many elements, or now and then none. */
static void *maybe_output(fuzz *f, ptrdiff_t count, size_t size)
{
    return fuzz_pick(f, 4) ? fuzz_output(f, (size_t)count * size) : NULL;
}

/* Columns may have more keys than are known here: `columns` of them. */
static void fill_statistics(fuzz *f, const mha_shape *s, ptrdiff_t columns, mha_options *o)
{
    const ptrdiff_t extents[] = {s->B, s->H, s->L, s->S, columns};
    for (int n = 0; n < 5; n++)
        if (!fuzz_below(extents[n], 201))
            return;
    const ptrdiff_t heads = s->B * s->H, rows = heads * s->L;
    const ptrdiff_t keys = columns > s->S ? columns : s->S;
    mha_statistics *const to = fuzz_buffer(f, sizeof *to);
    *to = (mha_statistics){.size = fuzz_struct_size(f, sizeof *to)};
    to->first_keys = fuzz_rare(f) ? (ptrdiff_t)fuzz_absurd(f) : fuzz_pick(f, 9);
    to->top = fuzz_pick(f, 3) ? 0 : fuzz_pick(f, 66);
    if ((rows * to->top + heads * keys) * 8 + FUZZ_MARGIN > FUZZ_SLOT_SIZE)
        to->top = 0;
    to->rows = maybe_output(f, rows, sizeof *to->rows);
    to->heads = maybe_output(f, heads, sizeof *to->heads);
    to->columns = maybe_output(f, heads * keys, sizeof *to->columns);
    to->top_keys = maybe_output(f, rows * to->top, sizeof *to->top_keys);
    to->top_weights = maybe_output(f, rows * to->top, sizeof *to->top_weights);
    o->statistics = to;
}

/* Means are as wide as any head that is meant: a cache or a layer has its own widths. */
static void fill_modes(fuzz *f, const mha_shape *s, mha_options *o)
{
    const ptrdiff_t heads = s->H > 0 && s->H <= 64 ? s->H : 1;
    const ptrdiff_t width = fuzz_below(s->D, 128) && fuzz_below(s->Dv, 128) ? 128 : 1025;
    uint8_t *const modes = fuzz_buffer(f, (size_t)heads);
    for (ptrdiff_t h = 0; h < heads; h++)
        modes[h] = (uint8_t)(fuzz_rare(f) ? fuzz_pick(f, 256) : fuzz_pick(f, 3));
    o->head_modes = modes;
    if (!fuzz_rare(f) && heads * width * 4 + FUZZ_MARGIN <= FUZZ_SLOT_SIZE)
        o->head_means = fuzz_buffer(f, (size_t)(heads * width) * sizeof(float));
}

static void fill_training(fuzz *f, const mha_shape *s, mha_options *o)
{
    const ptrdiff_t heads = s->H > 0 && s->H <= 64 ? s->H : 1;
    const ptrdiff_t batches = s->B > 0 && s->B <= FUZZ_MAX_BATCH ? s->B : 1;
    if (fuzz_pick(f, 8) == 7) {
        o->gates = fuzz_buffer(f, (size_t)(batches * heads) * sizeof(float));
        o->gates_sb = fuzz_rare(f) ? (ptrdiff_t)fuzz_absurd(f) : fuzz_pick(f, 2) ? heads : 0;
    }
    if (fuzz_pick(f, 8) == 7) {
        o->flags |= MHA_TRAINING;
        o->dropout = fuzz_rare(f) ? fuzz_real(f) : (float)fuzz_pick(f, 200) / 256;
        o->dropout_seed = (uint64_t)fuzz_pick(f, 256);
        for (int n = 0; n < 4; n++)
            o->dropout_first[n] = (int64_t)(o->dropout_seed * (uint64_t)(n + 1)) - 2;
    }
}

void fuzz_options(fuzz *f, const mha_shape *s, ptrdiff_t columns, mha_options *o, ptrdiff_t *q_rows,
                  ptrdiff_t *k_rows)
{
    fill_lengths(f, s, o, q_rows, k_rows);
    o->scale = fuzz_real(f);
    o->softcap = fuzz_pick(f, 4) == 3 ? fuzz_real(f) : 0;
    if (fuzz_rare(f)) {
        o->scale64 = (double)fuzz_real(f);
        o->softcap64 = (double)fuzz_real(f);
    }
    fill_positions(f, s, o);
    fill_masks(f, s, o);
    fill_training(f, s, o);
    fill_outputs(f, s, columns, o, *q_rows);
    if (fuzz_pick(f, 8) == 7)
        fill_statistics(f, s, columns, o);
    if (fuzz_pick(f, 16) == 15)
        fill_modes(f, s, o);
}

/* --------------------------------------------------------- workspaces and pools ---- */

fuzz_work fuzz_work_new(fuzz *f, size_t needed)
{
    const ptrdiff_t kind = fuzz_pick(f, 8);
    if (kind < 4)
        return (fuzz_work){NULL, 0, needed};
    const size_t size = kind == 7 && needed > 0 ? needed - 1 : needed;
    const fuzz_work w = {malloc(size ? size : 1), size, needed};
    if (!w.data)
        fuzz_die("no memory");
    return w;
}

void fuzz_work_free(const fuzz_work *w, mha_status status)
{
    if (status == MHA_ERR_WORKSPACE && w->size == w->needed && w->needed > 0)
        fuzz_die("a workspace of the required size is too small");
    if (status == MHA_OK && w->needed == 0)
        fuzz_die("a call that was said to need no workspace has run");
    free(w->data);
}

static void run_in_order(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int i = 0; i < tasks; i++)
        task(arg, i);
}

mha_pool *fuzz_pool(fuzz *f)
{
    const int threads = 1 + (int)fuzz_pick(f, 4);
    const mha_executor executor = {sizeof executor, NULL, threads, run_in_order};
    mha_pool *pool = NULL;
    if (threads > 1 && mha_pool_create_from(&pool, &executor))
        fuzz_die("no pool");
    return pool;
}

static int64_t inputs, accepted_inputs;

static void print_share(void)
{
    fprintf(stderr, "accepted %lld of %lld inputs\n", (long long)accepted_inputs,
            (long long)inputs);
}

void fuzz_count(bool accepted)
{
    if (inputs++ == 0)
        (void)atexit(print_share);
    accepted_inputs += accepted;
}

void fuzz_random_bytes(test_random *random, uint8_t *bytes, size_t size)
{
    for (size_t n = 0; n + 8 <= size; n += 8) {
        const uint64_t word = test_random_u64(random);
        memcpy(bytes + n, &word, 8);
    }
}
