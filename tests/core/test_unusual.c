/* SPDX-License-Identifier: MIT */
/*
 * Arguments that look odd and are legal: they are accepted, and give the bits of the same call
 * in plain clothes.
 */
#include "support/call.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copy rows of `width` floats between two layouts of (b, h, i). */
static void copy_rows(mha_out to, mha_view from, ptrdiff_t B, ptrdiff_t H, ptrdiff_t L,
                      ptrdiff_t width)
{
    for (ptrdiff_t b = 0; b < B; b++)
        for (ptrdiff_t h = 0; h < H; h++)
            for (ptrdiff_t i = 0; i < L; i++)
                memcpy((float *)to.data + b * to.sb + h * to.sh + i * to.sl,
                       (const float *)from.data + b * from.sb + h * from.sh + i * from.sl,
                       (size_t)width * sizeof(float));
}

static mha_view read_only(mha_out out)
{
    return (mha_view){out.data, out.sb, out.sh, out.sl};
}

static void expect_ok(const char *what, mha_status status)
{
    CHECK(status == MHA_OK, "%s: %s", what, mha_status_string(status));
}

/* Run `c` with other views on copies of its inputs, copy the output home, compare to the bit. */
static void same_in_layout(const char *what, call_kind kind, const mha_shape *shape, mha_out q,
                           mha_out k, mha_out v, mha_out o)
{
    call *usual = call_new(kind, shape, 11), *c = call_new(kind, shape, 11);
    expect_ok("usual layout", call_attend(usual, NULL));
    copy_rows(q, c->q, shape->B, shape->H, shape->L, shape->D);
    copy_rows(k, c->k, shape->B, shape->G, shape->S, shape->D);
    copy_rows(v, c->v, shape->B, shape->G, shape->S, shape->Dv);
    copy_rows(o, read_only(c->o), shape->B, shape->H, shape->L, shape->Dv);
    const mha_out home = c->o;
    c->q = read_only(q);
    c->k = read_only(k);
    c->v = read_only(v);
    c->o = o;
    expect_ok(what, call_attend(c, NULL));
    copy_rows(home, read_only(o), shape->B, shape->H, shape->L, shape->Dv);
    CHECK(call_equal(usual, c), "%s: other bits", what);
    call_free(usual);
    call_free(c);
}

/* q, k, v and o side by side in one buffer [B, L, 4, H, D]: no element is shared. */
static void fused_buffer(void)
{
    const mha_shape shape = {.B = 2, .H = 3, .G = 3, .L = 9, .S = 9, .D = 16, .Dv = 16};
    float *all = calloc((size_t)(2 * 9 * 4 * 3 * 16), sizeof *all);
    mha_out part[4];
    for (int i = 0; i < 4; i++)
        part[i] = (mha_out){all + i * 48, 9 * 4 * 48, 16, 4 * 48};
    same_in_layout("fused", CALL_PLAIN, &shape, part[0], part[1], part[2], part[3]);
    same_in_layout("fused", CALL_FULL, &shape, part[3], part[0], part[1], part[2]);
    free(all);
}

/* One element further and o writes into q. */
static void fused_buffer_off_by_one(void)
{
    const mha_shape shape = {.B = 2, .H = 3, .G = 3, .L = 9, .S = 9, .D = 16, .Dv = 16};
    float *all = calloc((size_t)(2 * 9 * 4 * 3 * 16) + 96, sizeof *all);
    for (int shift = -48; shift <= 48; shift++) {
        const mha_view q = {all + 48, 9 * 4 * 48, 16, 4 * 48};
        const mha_out o = {all + 96 + shift, 9 * 4 * 48, 16, 4 * 48};
        const mha_status status = mha_attention(&shape, q, q, q, o, NULL, NULL);
        const mha_status wanted = shift < 0 ? MHA_ERR_OVERLAP : MHA_OK;
        CHECK(status == wanted, "shift %d: %s", shift, mha_status_string(status));
    }
    free(all);
}

static void negative_strides(void)
{
    const mha_shape shape = {.B = 2, .H = 4, .G = 2, .L = 7, .S = 9, .D = 8, .Dv = 12};
    float *m[4];
    for (int i = 0; i < 4; i++)
        m[i] = calloc(2 * 4 * 9 * 12, sizeof **m);
    const mha_out q = {m[0] + 2 * 4 * 7 * 8 - 8, -4 * 7 * 8, -7 * 8, -8};
    const mha_out k = {m[1] + 8 * 8, 2 * 9 * 8, 9 * 8, -8};
    const mha_out v = {m[2] + 9 * 12, 2 * 9 * 12, -9 * 12, 12};
    const mha_out o = {m[3] + 2 * 4 * 7 * 12 - 12, -4 * 7 * 12, -7 * 12, -12};
    same_in_layout("negative", CALL_PLAIN, &shape, q, k, v, o);
    same_in_layout("negative", CALL_FULL, &shape, q, k, v, o);
    for (int i = 0; i < 4; i++)
        free(m[i]);
}

/* The same key and value for every batch and head by stride 0, and by copies. */
static void broadcast_inputs(void)
{
    const mha_shape shape = {.B = 3, .H = 4, .G = 4, .L = 5, .S = 7, .D = 8, .Dv = 8};
    call *a = call_new(CALL_FULL, &shape, 5), *b = call_new(CALL_FULL, &shape, 5);
    a->k.sb = a->k.sh = a->v.sb = a->v.sh = a->q.sb = 0;
    const mha_view k = a->k, v = a->v, q = a->q;
    copy_rows((mha_out){(void *)b->k.data, b->k.sb, b->k.sh, b->k.sl}, k, 3, 4, 7, 8);
    copy_rows((mha_out){(void *)b->v.data, b->v.sb, b->v.sh, b->v.sl}, v, 3, 4, 7, 8);
    copy_rows((mha_out){(void *)b->q.data, b->q.sb, b->q.sh, b->q.sl}, q, 3, 4, 5, 8);
    expect_ok("broadcast", call_attend(a, NULL));
    expect_ok("copies", call_attend(b, NULL));
    CHECK(call_equal(a, b), "broadcast inputs give other bits");
    call_free(a);
    call_free(b);
}

static void inputs_may_share_memory(void)
{
    const mha_shape shape = {.B = 2, .H = 4, .G = 4, .L = 6, .S = 6, .D = 8, .Dv = 8};
    call *c = call_new(CALL_PLAIN, &shape, 5);
    c->k = c->v = c->q;
    c->options.add_mask = (mha_view){c->q.data, 0, 0, 1};
    expect_ok("q = k = v = mask", call_attend(c, NULL));
    call_free(c);
}

/* o slides along q: an overlap is one byte in common, no more and no less. */
static void overlap_is_exact(void)
{
    enum { BYTES = 64 };
    const mha_shape shape = {.B = 1, .H = 1, .L = 4, .S = 4, .D = 4};
    float *buffer = calloc(64, sizeof *buffer), *other = calloc(16, sizeof *other);
    for (int shift = -24; shift <= 24; shift++) {
        const mha_view q = mha_view_bhld(buffer + 24, 1, 4, 4);
        const mha_view kv = mha_view_bhld(other, 1, 4, 4);
        const mha_out o = mha_out_bhld(buffer + 24 + shift, 1, 4, 4);
        const mha_status status = mha_attention(&shape, q, kv, kv, o, NULL, NULL);
        const mha_status wanted = abs(shift) * 4 < BYTES ? MHA_ERR_OVERLAP : MHA_OK;
        CHECK(status == wanted, "shift %d: %s", shift, mha_status_string(status));
    }
    free(buffer);
    free(other);
}

/* A call with one extent 0, and without the arrays that speak of rows or heads it has no more. */
static call *call_with_zero(call_kind kind, int extent)
{
    const mha_shape shape = call_small_shape();
    call *c = call_new(kind, &shape, 3);
    mha_options *o = &c->options;
    ptrdiff_t *const extents[] = {&c->shape.B, &c->shape.H, &c->shape.L, &c->shape.D};
    *extents[extent] = 0;
    if (extent == 1)
        o->weights_heads = NULL;
    if (extent == 2)
        o->q_lengths = o->q_starts = o->weights_rows = NULL;
    return c;
}

static void zero_sizes(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++)
        for (int extent = 0; extent < 4; extent++) {
            call *c = call_with_zero((call_kind)kind, extent);
            call *before = call_with_zero((call_kind)kind, extent);
            expect_ok("a size of 0", call_attend(c, NULL));
            expect_ok("a size of 0 in a plan", call_plan(c, NULL));
            CHECK(call_equal(c, before), "kind %d, extent %d: written", kind, extent);
            call_free(c);
            call_free(before);
        }
}

static void nothing_needs_no_pointers(void)
{
    const mha_view none = {NULL, 0, 0, 0};
    const mha_out nowhere = {NULL, 0, 0, 0};
    const mha_shape shapes[] = {
        {.B = 0, .H = 2, .L = 3, .S = 4, .D = 8},
        {.B = 1, .H = 0, .L = 3, .S = 4, .D = 8},
        {.B = 1, .H = 2, .L = 0, .S = 4, .D = 8},
        {.B = 1, .H = 2, .L = 3, .S = 4, .D = 0},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        expect_ok("nothing to do",
                  mha_attention(&shapes[i], none, none, none, nowhere, NULL, NULL));
}

/* No keys: every row is empty, and keys and values are not needed at all. */
static void no_keys(void)
{
    const mha_shape shape = {.B = 2, .H = 4, .G = 2, .L = 5, .S = 0, .D = 8, .Dv = 8};
    float q[2 * 4 * 5 * 8] = {1}, o[2 * 4 * 5 * 8], lse[2 * 4 * 5];
    memset(o, 0xff, sizeof o);
    const mha_options options = {.size = sizeof options, .lse = {lse, 20, 5, 1}};
    const mha_view none = {NULL, 0, 0, 0};
    expect_ok("no keys", mha_attention(&shape, mha_view_bhld(q, 4, 5, 8), none, none,
                                       mha_out_bhld(o, 4, 5, 8), &options, NULL));
    for (size_t i = 0; i < sizeof o / sizeof *o; i++)
        CHECK(o[i] == 0.0f, "o[%zu] = %g", i, (double)o[i]);
    for (size_t i = 0; i < sizeof lse / sizeof *lse; i++)
        CHECK(lse[i] == -INFINITY, "lse[%zu] = %g", i, (double)lse[i]);
}

static void zero_means_default(void)
{
    const mha_shape shape = {.B = 2, .H = 3, .G = 3, .L = 5, .S = 7, .D = 16, .Dv = 16};
    call *a = call_new(CALL_FULL, &shape, 9), *b = call_new(CALL_FULL, &shape, 9);
    a->shape.G = a->shape.Dv = 0;
    b->options.scale = 0.25f;
    expect_ok("defaults", call_attend(a, NULL));
    expect_ok("in full", call_attend(b, NULL));
    CHECK(call_equal(a, b), "a default is not what the header says");
    call_free(a);
    call_free(b);
}

/* What lies past options.size belongs to somebody else. */
static void older_options(void)
{
    const mha_shape shape = call_small_shape();
    call *plain = call_new(CALL_PLAIN, &shape, 4);
    plain->options.softcap = 2;
    expect_ok("plain", call_attend(plain, NULL));
    for (size_t size = offsetof(mha_options, offset); size <= sizeof(mha_options);
         size += _Alignof(mha_options)) {
        call *c = call_new(CALL_PLAIN, &shape, 4);
        c->options.softcap = 2;
        memset((char *)&c->options + size, 0xee, sizeof c->options - size);
        c->options.size = size;
        expect_ok("older options", call_attend(c, NULL));
        CHECK(call_equal(c, plain), "options of %zu bytes give other bits", size);
        call_free(c);
    }
    call_free(plain);
}

static void newer_options(void)
{
    const mha_shape shape = call_small_shape();
    call *c = call_new(CALL_FULL, &shape, 4);
    struct {
        mha_options options;
        unsigned char more[256];
    } newer = {.options = c->options};
    newer.options.size = sizeof newer;
    for (int at = -1; at < 256; at++) {
        if (at >= 0)
            newer.more[at] = 1;
        const mha_status status =
            mha_attention(&c->shape, c->q, c->k, c->v, c->o, &newer.options, NULL);
        CHECK(status == (at < 0 ? MHA_OK : MHA_ERR_STRUCT), "byte %d: %s", at,
              mha_status_string(status));
        if (at >= 0)
            newer.more[at] = 0;
    }
    call_free(c);
}

/* With packed sequences sb is not used, whatever it is. */
static void unused_strides(void)
{
    const mha_shape shape = call_small_shape();
    call *a = call_new(CALL_PACKED, &shape, 6), *b = call_new(CALL_PACKED, &shape, 6);
    b->q.sb = b->k.sb = b->v.sb = b->o.sb = b->options.lse.sb = PTRDIFF_MAX;
    b->options.q_documents_sb = b->options.k_documents_sb = PTRDIFF_MIN;
    expect_ok("packed", call_attend(a, NULL));
    expect_ok("packed, sb unused", call_attend(b, NULL));
    CHECK(call_equal(a, b), "sb was used");
    call_free(a);
    call_free(b);
}

/* Fields that only speak of an output that is not wanted. */
static void unused_choices(void)
{
    static const ptrdiff_t counts[] = {-1, PTRDIFF_MIN, PTRDIFF_MAX};
    static const int64_t nonsense[] = {-5, 99, INT64_MAX};
    const mha_shape shape = call_small_shape();
    for (int i = 0; i < 3; i++) {
        call *c = call_new(CALL_PLAIN, &shape, 6), *plain = call_new(CALL_PLAIN, &shape, 6);
        c->options.weights_heads = c->options.weights_rows = nonsense;
        c->options.weights_head_count = c->options.weights_row_count = counts[i];
        c->options.flags = MHA_AVERAGE_WEIGHTS;
        c->options.window_left = c->options.window_right = -7;
        expect_ok("unused choices", call_attend(c, NULL));
        expect_ok("plain", call_attend(plain, NULL));
        CHECK(call_equal(c, plain), "an unused field changes bits");
        call_free(c);
        call_free(plain);
    }
}

static void extreme_widths(void)
{
    static const ptrdiff_t widths[] = {1, 2, 3, MHA_MAX_HEAD_WIDTH - 1, MHA_MAX_HEAD_WIDTH};
    for (int i = 0; i < 25; i++) {
        const mha_shape shape = {
            .B = 1, .H = 2, .G = 1, .L = 3, .S = 5, .D = widths[i / 5], .Dv = widths[i % 5]};
        call *c = call_new(CALL_FULL, &shape, 8);
        expect_ok("width", call_attend(c, NULL));
        call_free(c);
    }
}

static void far_positions(void)
{
    static const ptrdiff_t far[] = {PTRDIFF_MIN, PTRDIFF_MAX, INT32_MIN, INT32_MAX, -1, 0};
    const mha_shape shape = call_small_shape();
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        call *c = call_new(CALL_FULL, &shape, 8);
        c->options.offsets = NULL;
        c->options.offset = far[i];
        c->options.window_left = far[i] < -1 ? PTRDIFF_MAX : far[i];
        c->options.window_right = PTRDIFF_MAX;
        const mha_status status = call_attend(c, NULL);
        CHECK(status == MHA_OK || status == MHA_ERR_LENGTH || status == MHA_ERR_POSITION,
              "offset %td: %s", far[i], mha_status_string(status));
        call_free(c);
    }
}

static void no_room_for_a_message(void)
{
    const mha_shape shape = call_small_shape();
    call *c = call_new(CALL_PLAIN, &shape, 8);
    c->q.data = NULL;
    c->options.message_size = 100;
    CHECK(call_attend(c, NULL) == MHA_ERR_NULL, "message NULL");
    char one = 'x';
    c->options.message = &one;
    c->options.message_size = 0;
    CHECK(call_attend(c, NULL) == MHA_ERR_NULL && one == 'x', "message of size 0");
    call_free(c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(fused_buffer);
    RUN(fused_buffer_off_by_one);
    RUN(negative_strides);
    RUN(broadcast_inputs);
    RUN(inputs_may_share_memory);
    RUN(overlap_is_exact);
    RUN(zero_sizes);
    RUN(nothing_needs_no_pointers);
    RUN(no_keys);
    RUN(zero_means_default);
    RUN(older_options);
    RUN(newer_options);
    RUN(unused_strides);
    RUN(unused_choices);
    RUN(extreme_widths);
    RUN(far_positions);
    RUN(no_room_for_a_message);
    return test_end();
}
