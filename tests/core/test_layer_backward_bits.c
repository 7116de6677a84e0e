/* SPDX-License-Identifier: MIT */
/*
 * What a layer's gradients do not depend on: threads, layout, what else is requested, the batch a
 * sequence stands in, and what lies in places that are masked. And what an input's gradient is
 * when it stands in for others.
 */
#include "support/layer_backward_case.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_same(const layer_back *x, const unsigned char *before, const char *what, int n)
{
    size_t size;
    unsigned char *const now = layer_back_bytes(x, &size);
    CHECK(memcmp(before, now, size) == 0, "%s: other bits, %s %d", layer_case_name(x->c), what, n);
    free(now);
}

/* Elements of two cases of one shape, in whatever layout. */
static void compare_elements(const layer_back *a, const layer_back *b, const char *what)
{
    layer_numbers shape = layer_back_oracle(a);
    for (int n = 0; n < LAYER_OUTPUTS; n++) {
        ptrdiff_t count, again, other = 0;
        layer_element *const x = layer_back_elements(a, &shape, n, &count);
        layer_element *const y = layer_back_elements(b, &shape, n, &again);
        for (ptrdiff_t at = 0; count == again && at < count; at++)
            other += memcmp(x[at].at, y[at].at, sizeof(float)) != 0;
        CHECK(count == again && other == 0, "%s: %td of %td numbers of %s are other ones %s",
              layer_case_name(a->c), other, count, layer_output_name(n), what);
        free(x);
        free(y);
    }
    layer_numbers_free(&shape);
}

/* ---------------------------------------------------------------------- threads ---- */

enum { POOLS = 4 };

/* An executor that takes tasks from the last to the first. */
static void run_backwards(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int index = tasks - 1; index >= 0; index--)
        task(arg, index);
}

static void threads_do_not_matter(void)
{
    const mha_executor backwards = {sizeof backwards, NULL, 4, run_backwards};
    const uint64_t base = test_seed(62000);
    mha_pool *pools[POOLS] = {NULL};
    for (int n = 0; n < POOLS - 1; n++)
        CHECK(mha_pool_create(&pools[n], n + 1) == MHA_OK, "pool");
    CHECK(mha_pool_create_from(&pools[POOLS - 1], &backwards) == MHA_OK, "executor");
    for (int64_t n = 0; n < test_effort(120); n++) {
        layer_spec spec = layer_back_spec(base + (uint64_t)n);
        layer_back *const x = layer_back_new(&spec);
        size_t size;
        layer_back_forward(x, pools[n % POOLS]);
        layer_back_run(x, true, NULL);
        unsigned char *const alone = layer_back_bytes(x, &size);
        for (int k = 0; k < POOLS; k++) {
            layer_back_run(x, k % 2 == 0, pools[k]);
            check_same(x, alone, "pool", k);
        }
        free(alone);
        layer_back_free(x);
    }
    for (int n = 0; n < POOLS; n++)
        mha_pool_free(pools[n]);
}

/* --------------------------------------------------------------- layouts, requests ---- */

static void layout_does_not_matter(void)
{
    const uint64_t base = test_seed(63000);
    for (int64_t n = 0; n < test_effort(120); n++) {
        const layer_spec spec = layer_back_spec(base + (uint64_t)n);
        layer_back *const x = layer_back_new(&spec);
        layer_back *const y = layer_back_relayout(x, spec.seed);
        layer_back_forward(x, NULL);
        layer_back_run(x, true, NULL);
        layer_back_forward(y, NULL);
        layer_back_run(y, true, NULL);
        compare_elements(x, y, "in another layout");
        layer_back_free(y);
        layer_back_free(x);
    }
}

/* Each gradient by itself has the bits it has among the others, and is all that is written. */
static void requests_do_not_matter(void)
{
    const uint64_t base = test_seed(64000);
    for (int64_t n = 0; n < test_effort(40); n++) {
        const layer_spec spec = layer_back_spec(base + (uint64_t)n);
        layer_back *const x = layer_back_new(&spec);
        layer_back_forward(x, NULL);
        layer_back_run(x, true, NULL);
        for (int k = 0; k < LAYER_OUTPUTS; k++) {
            if (!x->out[k].block)
                continue;
            layer_back *const y = layer_back_new(&spec);
            layer_back_forward(y, NULL);
            layer_back_want(y, 1u << k);
            layer_back_run(y, true, NULL);
            for (int m = 0; m < LAYER_OUTPUTS; m++) {
                bool same = true;
                for (size_t at = 0; at < x->out[m].bytes; at++)
                    same = same && y->out[m].block[at] == (m == k ? x->out[m].block[at] : 0xa5);
                CHECK(same, "%s: %s, when only %s is wanted", layer_case_name(x->c),
                      layer_output_name(m), layer_output_name(k));
            }
            layer_back_free(y);
        }
        layer_back_free(x);
    }
}

/* Neither the tape nor a pool changes the forward pass; a tape serves more than once. */
static void tapes_do_not_matter(void)
{
    const uint64_t base = test_seed(65000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        layer_spec spec = layer_back_spec(base + (uint64_t)n);
        layer_back *const x = layer_back_new(&spec);
        size_t size;
        layer_back_forward(x, NULL);
        snapshot with = snapshot_of(x->c->memory);
        layer_back_run(x, true, NULL);
        unsigned char *const first = layer_back_bytes(x, &size);
        layer_back_run(x, false, NULL);
        check_same(x, first, "run", 2);
        x->c->p.call.tape = NULL;
        x->c->p.call.tape_size = 0;
        layer_case_run(x->c, NULL);
        CHECK(snapshot_same(&with, x->c->memory), "%s: other bits without a tape",
              layer_case_name(x->c));
        free(first);
        snapshot_free(&with);
        layer_back_free(x);
    }
}

/* ---------------------------------------------------------------- batches alone ---- */

static mha_out out_at(mha_out out, const int64_t *starts, ptrdiff_t b)
{
    const mha_view view = {out.data, out.sb, out.sh, out.sl};
    if (out.data)
        out.data = (float *)out.data + call_row_index(&view, starts, b, 0, 0);
    return out;
}

static mha_view view_at(mha_view view, mha_dtype type, const int64_t *starts, ptrdiff_t b)
{
    if (view.data)
        view.data = (const char *)view.data +
                    call_row_index(&view, starts, b, 0, 0) * (ptrdiff_t)mha_dtype_size(type);
    return view;
}

/* Batch b by itself, into the same rows of the gradients of inputs. */
static void run_batch(const layer_back *x, ptrdiff_t b)
{
    const attention_call *const whole = &x->c->memory->call;
    const int64_t *const q_starts = whole->options.q_starts;
    const int64_t *const k_starts = whole->options.k_starts;
    slice s;
    slice_begin(&s, whole);
    slice_batch(&s, b);
    if (s.call.options.gates)
        s.call.options.gates += b * s.call.options.gates_sb;
    mha_layer_call call = x->c->p.call;
    call.B = 1;
    call.L = s.call.shape.L;
    call.S = call.key.data || call.value.data ? s.call.shape.S : 0;
    call.query = s.call.q;
    call.key = s.call.k;
    call.value = s.call.v;
    call.output = s.call.o;
    call.options = &s.call.options;
    if (call.q_positions) {
        call.q_positions += q_starts ? (ptrdiff_t)q_starts[b] : b * x->c->p.call.L;
        call.k_positions += k_starts ? (ptrdiff_t)k_starts[b] : b * layer_keys(&x->c->p);
    }
    call.tape_size = mha_layer_tape_size(x->c->layer, &call);
    call.tape = aligned_alloc(64, (call.tape_size + 63) / 64 * 64);
    const mha_layer_gradients g = {
        .size = sizeof g,
        .d_output = view_at(x->call.d_output, x->call.d_output_type, q_starts, b),
        .d_output_type = x->call.d_output_type,
        .d_lse = view_at(x->call.d_lse, MHA_F32, q_starts, b),
        .d_query = out_at(x->call.d_query, q_starts, b),
        .d_key = out_at(x->call.d_key, k_starts, b),
        .d_value = out_at(x->call.d_value, k_starts, b),
    };
    mha_status status = mha_layer_run(x->c->layer, &call, NULL, 0, NULL);
    if (status == MHA_OK)
        status = mha_layer_backward(x->c->layer, &call, &g, NULL, 0, NULL);
    CHECK(status == MHA_OK, "%s: batch %td: %s", layer_case_name(x->c), b, x->c->memory->message);
    free(call.tape);
}

static void batches_alone(void)
{
    const uint64_t base = test_seed(66000);
    for (int64_t n = 0; n < test_effort(100); n++) {
        layer_spec spec = layer_back_spec(base + (uint64_t)n);
        spec.options &=
            ~(unsigned)(BACKWARD_DROPOUT | FEATURE_WEIGHTS); /* dropout knows its batch */
        layer_back *const x = layer_back_new(&spec), *const y = layer_back_new(&spec);
        layer_back_forward(x, NULL);
        layer_back_run(x, true, NULL);
        for (ptrdiff_t b = 0; b < spec.B; b++)
            run_batch(y, b);
        for (int k = PART_QUERY; k <= PART_VALUE; k++)
            CHECK(!x->out[k].block ||
                      memcmp(x->out[k].block, y->out[k].block, x->out[k].bytes) == 0,
                  "%s: other bits of %s, batch by batch", layer_case_name(x->c),
                  layer_output_name(k));
        layer_back_free(y);
        layer_back_free(x);
    }
}

/* -------------------------------------------------------------------------- NaN ---- */

/* Put a value that is not finite into rows of an input that no row sees, or that see no key. */
static ptrdiff_t poison(layer_back *x, tensor_id id, const layer_pass *pass, double value)
{
    const mha_shape *const s = &pass->op.shape;
    const int64_t *const starts =
        id == TENSOR_Q ? pass->op.options.q_starts : pass->op.options.k_starts;
    const bool queries = id == TENSOR_Q;
    ptrdiff_t poisoned = 0;
    for (ptrdiff_t b = 0; b < s->B; b++) {
        const ptrdiff_t rows = queries ? call_queries(&pass->op, b) : call_keys(&pass->op, b);
        for (ptrdiff_t r = 0; r < rows; r++) {
            bool seen = false;
            for (ptrdiff_t n = 0; n < s->H * (queries ? pass->columns : s->L); n++) {
                const ptrdiff_t i = queries ? r : n / s->H, j = queries ? n / s->H : r;
                seen = seen || pass->sees[((b * s->H + n % s->H) * s->L + i) * pass->columns + j];
            }
            for (ptrdiff_t c = 0; !seen && c < x->c->memory->tensors[id].n[3]; c++)
                problem_set(x->c->memory, id, starts ? 0 : b, 0,
                            (starts ? (ptrdiff_t)starts[b] : 0) + r, c, value);
            poisoned += !seen;
        }
    }
    return poisoned;
}

/* Cross-attention under masks that hide some keys from all rows, and all keys from some rows. */
static layer_spec masked_spec(uint64_t seed)
{
    static const unsigned masks[] = {FEATURE_ATTEND | FEATURE_BROADCAST,
                                     FEATURE_CAUSAL | FEATURE_OFFSET,
                                     FEATURE_DOCUMENTS,
                                     FEATURE_WINDOW | FEATURE_OFFSET,
                                     FEATURE_ADD | FEATURE_BROADCAST,
                                     FEATURE_IGNORE | FEATURE_BROADCAST,
                                     FEATURE_BIAS | FEATURE_BROADCAST};
    layer_spec spec = layer_back_spec(seed);
    spec.parts |= LAYER_CROSS;
    spec.options |= masks[seed % 7] | masks[seed / 7 % 7];
    spec.L = 1 + spec.L % 4;
    return spec;
}

static void hidden_rows_are_unread(void)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const uint64_t base = test_seed(67000);
    ptrdiff_t poisoned = 0;
    for (int64_t n = 0; n < test_effort(300); n++) {
        const layer_spec spec = masked_spec(base + (uint64_t)n);
        layer_back *const x = layer_back_new(&spec);
        layer_pass *const pass = layer_pass_new(&x->c->p);
        size_t size;
        layer_back_forward(x, NULL);
        layer_back_run(x, true, NULL);
        unsigned char *const clean = layer_back_bytes(x, &size);
        layer_back *const y = layer_back_new(&spec);
        poisoned += poison(y, TENSOR_Q, pass, odd[n % 3]) + poison(y, TENSOR_K, pass, odd[n % 3]);
        if (y->c->p.call.value.data)
            poison(y, TENSOR_V, pass, odd[n % 3]);
        layer_back_forward(y, NULL);
        layer_back_run(y, true, NULL);
        check_same(y, clean, "hidden rows of kind", (int)(n % 3));
        free(clean);
        layer_pass_free(pass);
        layer_back_free(y);
        layer_back_free(x);
    }
    CHECK(poisoned > test_effort(300), "only %td rows", poisoned);
}

/* --------------------------------------------------------------- inputs named twice ---- */

/* Name the query input as key and value too, whose gradients go into blocks like that of the query.
 * The call gets a tape of its own. */
static void name_three_times(layer_back *x, float *blocks[2])
{
    mha_layer_call *const call = &x->c->p.call;
    const ptrdiff_t origin = x->out[PART_QUERY].data - (float *)x->out[PART_QUERY].block;
    for (int n = 0; n < 2; n++)
        blocks[n] = calloc(x->out[PART_QUERY].bytes + sizeof(float), 1);
    call->S = call->L;
    call->key = call->value = call->query;
    call->tape_size = mha_layer_tape_size(x->c->layer, call);
    call->tape = aligned_alloc(64, (call->tape_size + 63) / 64 * 64);
    x->call.d_key = x->call.d_value = x->call.d_query;
    x->call.d_key.data = blocks[0] + origin;
    x->call.d_value.data = blocks[1] + origin;
}

/* d_query of `x` is the sum of three gradients of `y`. */
static void check_sums(const layer_back *x, const layer_back *y, float *const blocks[2])
{
    layer_numbers want = layer_back_oracle(x);
    ptrdiff_t count, again;
    layer_element *const whole = layer_back_elements(x, &want, PART_QUERY, &count);
    layer_element *const query = layer_back_elements(y, &want, PART_QUERY, &again);
    for (ptrdiff_t n = 0; n < count; n++) {
        const ptrdiff_t at = query[n].at - (float *)y->out[PART_QUERY].block;
        const double sum = (double)*query[n].at + (double)blocks[0][at] + (double)blocks[1][at];
        const double bound = 12 * 0x1p-24 * sqrt(whole[n].want.v) + (double)FLT_MIN;
        CHECK(fabs(sum - (double)*whole[n].at) <= bound, "%s: d_query[%td] is %g, not %g",
              layer_case_name(x->c), n, (double)*whole[n].at, sum);
    }
    free(whole);
    free(query);
    layer_numbers_free(&want);
}

/* Self-attention: with the input named three times there are three gradients, whose sum is that of
 * the input named once; weights do not notice. */
static void stand_ins_add_up(void)
{
    const uint64_t base = test_seed(68000);
    for (int64_t n = 0; n < test_effort(60); n++) {
        layer_spec spec = layer_back_spec(base + (uint64_t)n);
        float *blocks[2];
        spec.parts &= ~(unsigned)(LAYER_CROSS | LAYER_VALUE);
        spec.config.key_width = spec.config.value_width = 0;
        layer_back *const x = layer_back_new(&spec), *const y = layer_back_new(&spec);
        layer_back_forward(x, NULL);
        layer_back_run(x, true, NULL);
        name_three_times(y, blocks);
        layer_case_run(y->c, NULL);
        layer_back_run(y, true, NULL);
        check_sums(x, y, blocks);
        for (int k = PART_Q; k < LAYER_OUTPUTS; k++)
            CHECK(!x->out[k].block ||
                      memcmp(x->out[k].block, y->out[k].block, x->out[k].bytes) == 0,
                  "%s: other bits of %s", layer_case_name(x->c), layer_output_name(k));
        free(y->c->p.call.tape);
        free(blocks[0]);
        free(blocks[1]);
        layer_back_free(y);
        layer_back_free(x);
    }
}

/* ----------------------------------------------------------------------- nothing ---- */

static bool all_zero(const layer_back *x, int output)
{
    for (size_t at = 0; at < x->out[output].bytes / sizeof(float); at++)
        if (((float *)x->out[output].block)[at] != 0)
            return false;
    return true;
}

/* Rows that see nothing: what goes into the output projection is 0 and does not depend on anything;
 * only its bias notices. */
static void empty_rows_give_zero(void)
{
    layer_spec spec = layer_spec_small(LAYER_CROSS, FEATURE_LSE | FEATURE_SINKS | FEATURE_BIAS);
    layer_back *const x = layer_back_new(&spec);
    const int64_t none[2] = {0, 0};
    x->c->memory->call.options.k_lengths = none;
    layer_back_forward(x, NULL);
    layer_back_run(x, true, NULL);
    for (int n = 0; n < LAYER_OUTPUTS; n++)
        if (x->out[n].block)
            CHECK(all_zero(x, n) == (n != PART_O_BIAS), "%s", layer_output_name(n));
    layer_back_free(x);
}

/* Without batches or queries gradients of weights and keys are 0. */
static void nothing_is_legal(void)
{
    for (int n = 0; n < 4; n++) {
        layer_spec spec = layer_spec_small(LAYER_CROSS, 0);
        layer_back *const x = layer_back_new(&spec);
        ptrdiff_t *const extents[] = {&x->c->p.call.B, &x->c->p.call.L, &x->c->p.call.S};
        for (int k = 0; k < 3; k++)
            *extents[k] = n == k || n == 3 ? 0 : *extents[k];
        x->c->memory->call.shape.B = x->c->p.call.B;
        x->c->memory->call.shape.L = x->c->p.call.L;
        layer_back_forward(x, NULL);
        layer_back_run(x, n % 2, NULL);
        for (int k = PART_Q; k < PART_O_BIAS; k++)
            CHECK(all_zero(x, k), "extent %d: %s", n, layer_output_name(k));
        if (n != 2)
            CHECK(all_zero(x, PART_O_BIAS), "extent %d: o_bias", n);
        if (n == 1)
            CHECK(all_zero(x, PART_KEY), "no queries: d_key");
        if (n == 2)
            CHECK(all_zero(x, PART_QUERY), "no keys: d_query");
        layer_back_free(x);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(threads_do_not_matter);
    RUN(layout_does_not_matter);
    RUN(requests_do_not_matter);
    RUN(tapes_do_not_matter);
    RUN(batches_alone);
    RUN(hidden_rows_are_unread);
    RUN(stand_ins_add_up);
    RUN(empty_rows_give_zero);
    RUN(nothing_is_legal);
    return test_end();
}
