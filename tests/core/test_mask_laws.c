/* SPDX-License-Identifier: MIT */
/*
 * Laws of masks and batches: two ways to say which keys a query sees give the same bits.
 */
#include "support/problems.h"

#include <math.h>

static int64_t rounds(void)
{
    return test_effort(40);
}

/* Run again and compare with the bits of the first run. */
static void expect_same_bits(problem *c, snapshot *before, const char *law)
{
    problem_run(c, NULL);
    CHECK(snapshot_same(before, c), "%s: other bits, %s", law, c->name);
}

/* ------------------------------------------------------ ways to say a mask */

/* A case with all ways to mask that the following laws swap, and others beside them. */
static problem *masked_case(uint64_t seed, unsigned features)
{
    const unsigned others[] = {0, FEATURE_CAUSAL | FEATURE_OFFSET, FEATURE_SOFTCAP | FEATURE_ALIBI,
                               FEATURE_K_LENGTHS | FEATURE_SINKS};
    const problem_spec spec =
        problem_spec_with(seed, features | FEATURE_OUTPUTS | others[seed % 4]);
    return problem_new(&spec);
}

static void open_windows_and_full_masks_are_none(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem *const c =
            masked_case(52000 + (uint64_t)n, FEATURE_ATTEND | FEATURE_IGNORE | FEATURE_OFFSET);
        mha_options *const o = &c->call.options;
        const mha_options full = *o;
        const ptrdiff_t far = 2 * (c->call.shape.L + c->call.shape.S) + 10;
        problem_set_all(c, TENSOR_ATTEND, 1);
        problem_set_all(c, TENSOR_IGNORE, 0);
        o->attend_mask = o->ignore_mask = (mha_view){0};
        problem_run(c, NULL);
        snapshot plain = snapshot_of(c);
        o->flags |= MHA_WINDOW;
        o->window_left = o->window_right = -1;
        expect_same_bits(c, &plain, "open window");
        o->window_left = o->window_right = far;
        expect_same_bits(c, &plain, "wide window");
        o->flags &= ~(unsigned)MHA_WINDOW;
        o->attend_mask = full.attend_mask;
        expect_same_bits(c, &plain, "attend to all");
        o->ignore_mask = full.ignore_mask;
        expect_same_bits(c, &plain, "ignore none");
        snapshot_free(&plain);
        problem_delete(c);
    }
}

/* Write into tensor `id` the mask that TENSOR_ATTEND holds, as `on` and `off`. */
static void translate_mask(problem *c, tensor_id id, double on, double off)
{
    const ptrdiff_t *const n = c->tensors[TENSOR_ATTEND].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++) {
        const ptrdiff_t i = r % n[2], h = r / n[2] % n[1], b = r / n[2] / n[1];
        for (ptrdiff_t j = 0; j < n[3]; j++)
            problem_set(c, id, b, h, i, j,
                        problem_get(c, TENSOR_ATTEND, b, h, i, j) != 0 ? on : off);
    }
}

static void four_ways_to_mask_a_key(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem *const c =
            masked_case(53000 + (uint64_t)n, FEATURE_ATTEND | FEATURE_IGNORE | FEATURE_ADD |
                                                 FEATURE_BIAS | FEATURE_MASK_TYPES);
        mha_options *const o = &c->call.options;
        const mha_options full = *o;
        translate_mask(c, TENSOR_IGNORE, 0, 1);
        translate_mask(c, TENSOR_ADD, 0, -INFINITY);
        translate_mask(c, TENSOR_BIAS, 0, -INFINITY);
        o->ignore_mask = o->add_mask = o->bias = (mha_view){0};
        problem_run(c, NULL);
        snapshot attend = snapshot_of(c);
        o->attend_mask = (mha_view){0};
        o->ignore_mask = full.ignore_mask;
        expect_same_bits(c, &attend, "ignore = not attend");
        o->ignore_mask = (mha_view){0};
        o->add_mask = full.add_mask;
        expect_same_bits(c, &attend, "-inf in the additive mask");
        o->add_mask = (mha_view){0};
        o->bias = full.bias;
        expect_same_bits(c, &attend, "-inf in the bias");
        snapshot_free(&attend);
        problem_delete(c);
    }
}

static void documents_are_a_block_mask(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem *const c = masked_case(54000 + (uint64_t)n, FEATURE_ATTEND | FEATURE_DOCUMENTS);
        const mha_shape *const s = &c->call.shape;
        mha_options *const o = &c->call.options;
        const mha_view mask = o->attend_mask;
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
            const ptrdiff_t i = r % s->L, h = r / s->L % s->H, b = r / s->L / s->H;
            for (ptrdiff_t j = 0; j < s->S; j++)
                problem_set(c, TENSOR_ATTEND, b, h, i, j,
                            o->q_documents[b * o->q_documents_sb + i] ==
                                o->k_documents[b * o->k_documents_sb + j]);
        }
        o->attend_mask = (mha_view){0};
        problem_run(c, NULL);
        snapshot documents = snapshot_of(c);
        o->q_documents = o->k_documents = NULL;
        o->attend_mask = mask;
        expect_same_bits(c, &documents, "documents");
        snapshot_free(&documents);
        problem_delete(c);
    }
}

/* Causal and window as a boolean mask. */
static void positions_are_a_mask(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const unsigned kind =
            n % 3 == 0 ? FEATURE_CAUSAL : FEATURE_WINDOW | (n % 3 == 1 ? FEATURE_CAUSAL : 0);
        problem *const c = masked_case(55000 + (uint64_t)n, FEATURE_ATTEND | FEATURE_OFFSET | kind);
        const mha_shape *const s = &c->call.shape;
        mha_options *const o = &c->call.options;
        const mha_view mask = o->attend_mask;
        o->attend_mask = (mha_view){0};
        for (ptrdiff_t r = 0; r < s->B * s->H * s->L; r++) {
            const ptrdiff_t i = r % s->L, h = r / s->L % s->H, b = r / s->L / s->H;
            for (ptrdiff_t j = 0; j < s->S; j++)
                problem_set(c, TENSOR_ATTEND, b, h, i, j, call_attends(&c->call, b, h, i, j));
        }
        problem_run(c, NULL);
        snapshot positions = snapshot_of(c);
        o->flags &= ~(unsigned)(MHA_CAUSAL | MHA_WINDOW);
        o->attend_mask = mask;
        expect_same_bits(c, &positions, "causal or window");
        snapshot_free(&positions);
        problem_delete(c);
    }
}

static void positions_can_be_said_in_three_ways(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem *const c = masked_case(56000 + (uint64_t)n, FEATURE_CAUSAL | FEATURE_WINDOW);
        mha_options *const o = &c->call.options;
        int64_t offsets[8];
        o->position = n % 2 ? MHA_POSITION_TOP_LEFT : MHA_POSITION_BOTTOM_RIGHT;
        for (ptrdiff_t b = 0; b < c->call.shape.B; b++)
            offsets[b] = call_offset(&c->call, b);
        problem_run(c, NULL);
        snapshot named = snapshot_of(c);
        o->position = MHA_POSITION_OFFSET;
        o->offsets = offsets;
        expect_same_bits(c, &named, "offsets");
        if (!o->k_lengths) {
            o->offsets = NULL;
            o->offset = (ptrdiff_t)offsets[0];
            expect_same_bits(c, &named, "offset");
        }
        snapshot_free(&named);
        problem_delete(c);
    }
}

/* --------------------------------------------------------------- batches */

static void causal_prefix_is_a_shorter_run(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        problem_spec spec = problem_spec_with(57000 + (uint64_t)n, FEATURE_CAUSAL | FEATURE_LSE);
        spec.shape.S = spec.shape.L;
        problem *const a = problem_new(&spec), *const b = problem_new(&spec);
        problem_run(a, NULL);
        b->call.shape.L = b->call.shape.S = 1 + (ptrdiff_t)(n * 31) % spec.shape.L;
        problem_run(b, NULL);
        a->tensors[TENSOR_O].n[2] = a->tensors[TENSOR_LSE].n[2] = b->call.shape.L;
        CHECK(tensors_same(&a->tensors[TENSOR_O], &b->tensors[TENSOR_O]) &&
                  tensors_same(&a->tensors[TENSOR_LSE], &b->tensors[TENSOR_LSE]),
              "other bits in the first %td rows: %s", b->call.shape.L, a->name);
        problem_delete(a);
        problem_delete(b);
    }
}

static void packed_batches_are_separate_calls(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const unsigned masks = n % 2 ? FEATURE_CAUSAL | FEATURE_ATTEND | FEATURE_DOCUMENTS : 0;
        const unsigned lengths = n % 4 < 2 ? FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS : 0;
        const problem_spec spec =
            problem_spec_with(58000 + (uint64_t)n, FEATURE_PACKED | FEATURE_LSE | masks | lengths);
        problem *const c = problem_new(&spec);
        problem_run(c, NULL);
        snapshot whole = snapshot_of(c);
        problem_reset(c);
        for (ptrdiff_t b = 0; b < spec.shape.B; b++) {
            slice s;
            slice_begin(&s, &c->call);
            slice_batch(&s, b);
            slice_run(&s, NULL);
        }
        CHECK(snapshot_same(&whole, c), "other bits: %s", c->name);
        snapshot_free(&whole);
        problem_delete(c);
    }
}

static void lengths_are_a_truncated_call(void)
{
    for (int64_t n = 0; n < rounds(); n++) {
        const unsigned masks = n % 2 ? FEATURE_CAUSAL | FEATURE_ATTEND | FEATURE_BIAS : 0;
        const problem_spec spec = problem_spec_with(
            59000 + (uint64_t)n, FEATURE_Q_LENGTHS | FEATURE_K_LENGTHS | FEATURE_LSE | masks);
        problem *const c = problem_new(&spec);
        problem_run(c, NULL);
        snapshot whole = snapshot_of(c);
        problem_reset(c);
        for (ptrdiff_t b = 0; b < spec.shape.B; b++) {
            slice s;
            slice_begin(&s, &c->call);
            slice_batch(&s, b);
            slice_queries(&s, 0, (ptrdiff_t)s.q_lengths[0]);
            slice_keys(&s, (ptrdiff_t)s.k_lengths[0]);
            s.call.options.q_lengths = s.call.options.k_lengths = NULL;
            slice_run(&s, NULL);
        }
        CHECK(snapshot_same(&whole, c), "other bits: %s", c->name);
        snapshot_free(&whole);
        problem_delete(c);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(open_windows_and_full_masks_are_none);
    RUN(four_ways_to_mask_a_key);
    RUN(documents_are_a_block_mask);
    RUN(positions_are_a_mask);
    RUN(positions_can_be_said_in_three_ways);
    RUN(causal_prefix_is_a_shorter_run);
    RUN(packed_batches_are_separate_calls);
    RUN(lengths_are_a_truncated_call);
    return test_end();
}
