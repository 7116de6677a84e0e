/* SPDX-License-Identifier: MIT */
/*
 * A call cut into parts, as libmha_mpi cuts it: rows, heads and keys of a larger problem give the
 * bits of the whole, dropout included; checks say what calls would say; tokens of a cache travel as
 * they are stored; merging on a pool changes no bit.
 */
#include "support/call.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { B = 2, G = 2, R = 2, H = G * R, L = 150, S = 300, D = 20, Dv = 12 };

/* One problem with everything that attention and its backward pass read and write. */
typedef struct whole {
    float q[B * H * L * D], k[B * G * S * D], v[B * G * S * Dv], d_o[B * H * L * Dv];
    float o[B * H * L * Dv], lse[B * H * L];
    float d_q[B * H * L * D], d_k[B * G * S * D], d_v[B * G * S * Dv], d_sinks[H];
    float sinks[H];
} whole;

static void fill(test_random *random, float *x, size_t count)
{
    for (size_t n = 0; n < count; n++)
        x[n] = test_random_normal(random);
}

static whole *whole_new(uint64_t seed)
{
    whole *const w = calloc(1, sizeof *w);
    test_random random = {seed};
    if (!w)
        abort();
    fill(&random, w->q, B * H * L * D);
    fill(&random, w->k, B * G * S * D);
    fill(&random, w->v, B * G * S * Dv);
    fill(&random, w->d_o, B * H * L * Dv);
    fill(&random, w->sinks, H);
    return w;
}

static const mha_shape shape_of_all = {.B = B, .H = H, .G = G, .L = L, .S = S, .D = D, .Dv = Dv};

static mha_options options_of(float dropout, bool causal)
{
    return (mha_options){.size = sizeof(mha_options),
                         .flags = MHA_TRAINING | (causal ? MHA_CAUSAL : 0u),
                         .position = MHA_POSITION_OFFSET,
                         .offset = S - L,
                         .dropout = dropout,
                         .dropout_seed = 77};
}

static void run_whole(whole *w, const mha_options *given)
{
    mha_options o = *given;
    o.sinks = w->sinks;
    o.lse = mha_out_bhld(w->lse, H, L, 1);
    const mha_view q = mha_view_bhld(w->q, H, L, D), k = mha_view_bhld(w->k, G, S, D);
    const mha_view v = mha_view_bhld(w->v, G, S, Dv);
    CHECK(mha_attention(&shape_of_all, q, k, v, mha_out_bhld(w->o, H, L, Dv), &o, NULL) == MHA_OK,
          "whole");
    const mha_gradients g = {.size = sizeof g,
                             .d_o = mha_view_bhld(w->d_o, H, L, Dv),
                             .d_q = mha_out_bhld(w->d_q, H, L, D),
                             .d_k = mha_out_bhld(w->d_k, G, S, D),
                             .d_v = mha_out_bhld(w->d_v, G, S, Dv),
                             .d_sinks = w->d_sinks};
    CHECK(mha_attention_backward(&shape_of_all, q, k, v, mha_view_bhld(w->o, H, L, Dv), &o, &g,
                                 NULL, 0, NULL) == MHA_OK,
          "whole, backward");
}

/* Batch b, the query heads of group g, rows [i, i + rows), keys [j, j + keys). */
typedef struct part {
    ptrdiff_t b, g, i, rows, j, keys;
} part;

static mha_options part_options(const whole *w, const mha_options *given, const part *p)
{
    mha_options o = *given;
    o.offset = S - L + p->i - p->j;
    o.sinks = w->sinks + p->g * R;
    o.dropout_first[0] = p->b;
    o.dropout_first[1] = p->g * R;
    o.dropout_first[2] = p->i;
    o.dropout_first[3] = p->j;
    return o;
}

static mha_view view_at(const float *x, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t head,
                        ptrdiff_t row)
{
    return (mha_view){x + (head * rows + row) * width, 0, rows * width, width};
}

/* Compares rows of `heads` heads, written side by side, with those of the whole. */
static bool same_rows(const float *got, const float *want, ptrdiff_t heads, ptrdiff_t rows,
                      ptrdiff_t all, ptrdiff_t row, ptrdiff_t width)
{
    bool same = true;
    for (ptrdiff_t h = 0; h < heads; h++)
        same = same && memcmp(got + h * rows * width, want + (h * all + row) * width,
                              sizeof(float) * (size_t)(rows * width)) == 0;
    return same;
}

static void check_rows(const whole *w, const mha_options *given, const part *p)
{
    static float o[R * L * Dv], lse[R * L], d_q[R * L * D];
    const ptrdiff_t head = p->b * H + p->g * R, group = p->b * G + p->g;
    const mha_shape shape = {.B = 1, .H = R, .G = 1, .L = p->rows, .S = S, .D = D, .Dv = Dv};
    mha_options options = part_options(w, given, p);
    const mha_view q = view_at(w->q, L, D, head, p->i), k = view_at(w->k, S, D, group, 0);
    const mha_view v = view_at(w->v, S, Dv, group, 0);
    options.lse = mha_out_bhld(lse, R, p->rows, 1);
    CHECK(mha_attention(&shape, q, k, v, mha_out_bhld(o, R, p->rows, Dv), &options, NULL) == MHA_OK,
          "rows");
    CHECK(same_rows(o, w->o + head * L * Dv, R, p->rows, L, p->i, Dv) &&
              same_rows(lse, w->lse + head * L, R, p->rows, L, p->i, 1),
          "rows %td to %td of group %td of batch %td: other bits", p->i, p->i + p->rows, p->g,
          p->b);
    const mha_gradients g = {.size = sizeof g,
                             .d_o = view_at(w->d_o, L, Dv, head, p->i),
                             .d_q = mha_out_bhld(d_q, R, p->rows, D)};
    CHECK(mha_attention_backward(&shape, q, k, v, mha_view_bhld(o, R, p->rows, Dv), &options, &g,
                                 NULL, 0, NULL) == MHA_OK,
          "rows, backward");
    CHECK(same_rows(d_q, w->d_q + head * L * D, R, p->rows, L, p->i, D),
          "d_q of rows %td to %td: other bits", p->i, p->i + p->rows);
}

/* Some keys with all rows, and the log-sum-exp and output over all keys. */
static void check_keys(const whole *w, const mha_options *given, const part *p)
{
    static float d_k[S * D], d_v[S * Dv], lse[R * L], d_sinks[R];
    const ptrdiff_t head = p->b * H + p->g * R, group = p->b * G + p->g;
    const mha_shape shape = {.B = 1, .H = R, .G = 1, .L = L, .S = p->keys, .D = D, .Dv = Dv};
    mha_options options = part_options(w, given, p);
    memcpy(lse, w->lse + head * L, sizeof lse);
    options.lse = mha_out_bhld(lse, R, L, 1);
    const mha_gradients g = {.size = sizeof g,
                             .d_o = view_at(w->d_o, L, Dv, head, 0),
                             .d_k = mha_out_bhld(d_k, 1, p->keys, D),
                             .d_v = mha_out_bhld(d_v, 1, p->keys, Dv),
                             .d_sinks = d_sinks};
    CHECK(mha_attention_backward(&shape, view_at(w->q, L, D, head, 0),
                                 view_at(w->k, S, D, group, p->j),
                                 view_at(w->v, S, Dv, group, p->j), view_at(w->o, L, Dv, head, 0),
                                 &options, &g, NULL, 0, NULL) == MHA_OK,
          "keys");
    CHECK(same_rows(d_k, w->d_k + group * S * D, 1, p->keys, S, p->j, D) &&
              same_rows(d_v, w->d_v + group * S * Dv, 1, p->keys, S, p->j, Dv),
          "gradients of keys %td to %td of group %td of batch %td: other bits", p->j,
          p->j + p->keys, p->g, p->b);
    memcpy(lse, w->lse + head * L, sizeof lse);
}

static void parts_have_the_bits_of_the_whole(void)
{
    const uint64_t base = test_seed(181000);
    for (int64_t n = 0; n < test_effort(24); n++) {
        whole *const w = whole_new(base + (uint64_t)n);
        test_random random = {base + (uint64_t)n};
        const mha_options options = options_of(n % 3 == 0 ? 0.0f : 0.25f, n % 2 == 0);
        run_whole(w, &options);
        for (int cut = 0; cut < 6; cut++) {
            part p = {.b = test_random_below(&random, B), .g = test_random_below(&random, G)};
            p.i = test_random_below(&random, L);
            p.rows = 1 + test_random_below(&random, L - p.i);
            check_rows(w, &options, &p);
            p.i = 0;
            p.j = test_random_below(&random, S);
            p.keys = 1 + test_random_below(&random, S - p.j);
            check_keys(w, &options, &p);
        }
        free(w);
    }
}

/* Gradients of sinks need no keys: a part with all rows of a batch of one has all of them. */
static void sinks_need_all_rows_and_no_keys(void)
{
    whole *const w = whole_new(9);
    const mha_options given = options_of(0.0f, true);
    float few[H], all[H];
    run_whole(w, &given);
    for (int n = 0; n < 2; n++) {
        const mha_shape shape = {.B = B, .H = H, .G = G, .L = L, .S = n ? S : 1, .D = D, .Dv = Dv};
        mha_options o = given;
        o.sinks = w->sinks;
        o.lse = mha_out_bhld(w->lse, H, L, 1);
        const mha_gradients g = {
            .size = sizeof g, .d_o = mha_view_bhld(w->d_o, H, L, Dv), .d_sinks = n ? all : few};
        CHECK(mha_attention_backward(&shape, mha_view_bhld(w->q, H, L, D),
                                     mha_view_bhld(w->k, G, S, D), mha_view_bhld(w->v, G, S, Dv),
                                     mha_view_bhld(w->o, H, L, Dv), &o, &g, NULL, 0,
                                     NULL) == MHA_OK,
              "sinks");
    }
    CHECK(memcmp(few, all, sizeof few) == 0 && memcmp(all, w->d_sinks, sizeof all) == 0,
          "gradients of sinks depend on the keys");
    free(w);
}

/* The f64 path drops the same weights. */
static void reference_counts_alike(void)
{
    enum { ROWS = 5, KEYS = 41, W = 3 };
    double q[ROWS * W], k[KEYS * W], v[KEYS], o[ROWS], whole_o[ROWS];
    test_random random = {5};
    for (int n = 0; n < ROWS * W; n++)
        q[n] = (double)test_random_normal(&random);
    for (int n = 0; n < KEYS * W; n++)
        k[n] = (double)test_random_normal(&random);
    for (int n = 0; n < KEYS; n++)
        v[n] = (double)test_random_normal(&random);
    mha_options options = {
        .size = sizeof options, .flags = MHA_TRAINING, .dropout = 0.5f, .dropout_seed = 3};
    mha_shape shape = {.B = 1, .H = 1, .G = 1, .L = ROWS, .S = KEYS, .D = W, .Dv = 1};
    shape.q_type = shape.k_type = shape.v_type = shape.o_type = MHA_F64;
    CHECK(mha_attention(&shape, mha_view_bhld(q, 1, ROWS, W), mha_view_bhld(k, 1, KEYS, W),
                        mha_view_bhld(v, 1, KEYS, 1), mha_out_bhld(whole_o, 1, ROWS, 1), &options,
                        NULL) == MHA_OK,
          "f64");
    shape.L = 2;
    options.dropout_first[2] = 3;
    CHECK(mha_attention(&shape, mha_view_bhld(q + 3 * W, 1, ROWS, W), mha_view_bhld(k, 1, KEYS, W),
                        mha_view_bhld(v, 1, KEYS, 1), mha_out_bhld(o, 1, ROWS, 1), &options,
                        NULL) == MHA_OK,
          "f64, part");
    CHECK(memcmp(o, whole_o + 3, 2 * sizeof o[0]) == 0, "f64: other weights dropped");
}

/* ------------------------------------------------------------------ merge ---- */

static void pools_merge_alike(void)
{
    enum { ROWS = 333, W = 17 };
    static float o[2][3 * ROWS * W], lse[2][3 * ROWS], o2[3 * ROWS * W], lse2[3 * ROWS];
    const mha_shape shape = {.B = 1, .H = 3, .L = ROWS, .D = W, .Dv = W};
    test_random random = {12};
    mha_pool *pool;
    fill(&random, o[0], 3 * ROWS * W);
    fill(&random, lse[0], 3 * ROWS);
    fill(&random, o2, 3 * ROWS * W);
    fill(&random, lse2, 3 * ROWS);
    memcpy(o[1], o[0], sizeof o[0]);
    memcpy(lse[1], lse[0], sizeof lse[0]);
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int n = 0; n < 2; n++) {
        const mha_out to = mha_out_bhld(o[n], 3, ROWS, W), sum = mha_out_bhld(lse[n], 3, ROWS, 1);
        const mha_view from = mha_view_bhld(o2, 3, ROWS, W), sum2 = mha_view_bhld(lse2, 3, ROWS, 1);
        CHECK((n ? mha_merge_pooled(&shape, to, sum, from, sum2, pool)
                 : mha_merge(&shape, to, sum, from, sum2)) == MHA_OK,
              "merge");
    }
    CHECK(memcmp(o[0], o[1], sizeof o[0]) == 0 && memcmp(lse[0], lse[1], sizeof lse[0]) == 0,
          "merged on a pool: other bits");
    CHECK(memcmp(o[0], o2, sizeof o2) != 0, "nothing was merged");
    mha_pool_free(pool);
}

/* ----------------------------------------------------------------- checks ---- */

static void checks_say_what_calls_say(void)
{
    const mha_shape shape = call_small_shape();
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        for (int wrong = 0; wrong < 6; wrong++) {
            call *const c = call_new((call_kind)kind, &shape, 3);
            call *const d = call_new((call_kind)kind, &shape, 3);
            call *const both[] = {c, d};
            for (int n = 0; n < 2; n++) {
                call *const x = both[n];
                if (wrong == 1)
                    x->q.data = NULL;
                if (wrong == 2)
                    x->o.sl = 1;
                if (wrong == 3)
                    x->o.data = (void *)x->q.data;
                if (wrong == 4)
                    x->options.dropout_first[2] = -1;
                if (wrong == 5)
                    x->shape.H = 3;
                call_clear(x);
            }
            const mha_status checked =
                mha_attention_check(&c->shape, c->q, c->k, c->v, c->o, &c->options);
            CHECK(wrong == 3 || call_equal(c, d), "a check has written");
            CHECK(checked == call_attend(d, NULL), "kind %d, fault %d: checked %s", kind, wrong,
                  mha_status_string(checked));
            CHECK((checked != MHA_OK) == (wrong > 0), "kind %d, fault %d: %s", kind, wrong,
                  mha_status_string(checked));
            call_free(c);
            call_free(d);
        }
    }
}

static void backward_checks_say_what_calls_say(void)
{
    whole *const w = whole_new(31);
    const mha_options given = options_of(0.0f, true);
    run_whole(w, &given);
    for (int wrong = 0; wrong < 4; wrong++) {
        mha_options o = given;
        o.sinks = w->sinks;
        o.lse = mha_out_bhld(w->lse, H, L, 1);
        mha_gradients g = {.size = sizeof g,
                           .d_o = mha_view_bhld(w->d_o, H, L, Dv),
                           .d_q = mha_out_bhld(w->d_q, H, L, D)};
        if (wrong == 1)
            g.d_q.data = w->q;
        if (wrong == 2)
            o.lse.data = NULL;
        if (wrong == 3)
            g.d_gates = w->d_sinks;
        const mha_view q = mha_view_bhld(w->q, H, L, D), k = mha_view_bhld(w->k, G, S, D);
        const mha_view v = mha_view_bhld(w->v, G, S, Dv), out = mha_view_bhld(w->o, H, L, Dv);
        w->d_q[0] = 42.0f;
        const mha_status checked =
            mha_attention_backward_check(&shape_of_all, q, k, v, out, &o, &g);
        CHECK(w->d_q[0] == 42.0f, "a check has written");
        CHECK(checked == mha_attention_backward(&shape_of_all, q, k, v, out, &o, &g, NULL, 0, NULL),
              "fault %d: checked %s", wrong, mha_status_string(checked));
        CHECK((checked != MHA_OK) == (wrong > 0), "fault %d: %s", wrong,
              mha_status_string(checked));
    }
    free(w);
}

/* ------------------------------------------------------------------ cache ---- */

static mha_cache *cache_of(mha_cache_kind kind, mha_dtype k_type, mha_dtype v_type)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = 2,
                                     .capacity = 160,
                                     .page_tokens = kind == MHA_CACHE_PAGED ? 32 : 0,
                                     .G = 2,
                                     .D = 5,
                                     .Dv = 7,
                                     .k_type = k_type,
                                     .v_type = v_type};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "cache");
    return cache;
}

/* From one cache to another of a different kind, in two pieces: the same numbers, and exporting
 * those again gives the same bytes. */
static void check_journey(mha_dtype k_type, mha_dtype v_type)
{
    enum { TOKENS = 101, FIRST = 40 };
    mha_cache *const from = cache_of(MHA_CACHE_CONTIGUOUS, k_type, v_type);
    mha_cache *const to = cache_of(MHA_CACHE_PAGED, k_type, v_type);
    static float k[TOKENS * 2 * 5], v[TOKENS * 2 * 7], read[2][TOKENS * 2 * 7];
    test_random random = {44};
    fill(&random, k, TOKENS * 2 * 5);
    fill(&random, v, TOKENS * 2 * 7);
    CHECK(mha_cache_append(from, 1, NULL, TOKENS, NULL, mha_view_blhd(k, 2, TOKENS, 5), MHA_F32,
                           mha_view_blhd(v, 2, TOKENS, 7), MHA_F32) == MHA_OK,
          "append");
    const int64_t second = 1;
    CHECK(mha_cache_append(to, 1, &second, 3, NULL, mha_view_blhd(k, 2, 3, 5), MHA_F32,
                           mha_view_blhd(v, 2, 3, 7), MHA_F32) == MHA_OK,
          "append before");
    const ptrdiff_t cuts[] = {0, FIRST, TOKENS};
    for (int n = 0; n < 2; n++) {
        const ptrdiff_t count = cuts[n + 1] - cuts[n];
        const size_t bytes = mha_cache_export_size(from, count);
        unsigned char *const data = malloc(bytes), *const again = malloc(bytes);
        CHECK(mha_cache_export(from, 0, cuts[n], count, data, bytes) == MHA_OK, "export");
        CHECK(mha_cache_import(to, 1, count, data, bytes - 1) == MHA_ERR_LENGTH, "too short");
        CHECK(mha_cache_import(to, 2, count, data, bytes) == MHA_ERR_SEQUENCE, "no sequence");
        CHECK(mha_cache_import(to, 1, count, data, bytes) == MHA_OK, "import");
        CHECK(mha_cache_export(to, 1, 3 + cuts[n], count, again, bytes) == MHA_OK, "again");
        CHECK(memcmp(data, again, bytes) == 0, "other bytes after a journey");
        free(data);
        free(again);
    }
    CHECK(mha_cache_length(to, 1) == 3 + TOKENS, "length %td", mha_cache_length(to, 1));
    const mha_out none = {0};
    CHECK(mha_cache_read(from, 0, 0, TOKENS, none, mha_out_bhld(read[0], 2, TOKENS, 7)) == MHA_OK &&
              mha_cache_read(to, 1, 3, TOKENS, none, mha_out_bhld(read[1], 2, TOKENS, 7)) == MHA_OK,
          "read");
    CHECK(memcmp(read[0], read[1], sizeof read[0]) == 0, "other numbers after a journey");
    mha_cache_free(from);
    mha_cache_free(to);
}

static void tokens_travel_as_they_are_stored(void)
{
    const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    for (int k = 0; k < 4; k++)
        for (int v = 0; v < 4; v++)
            check_journey(types[k], types[v]);
    mha_cache *const full = cache_of(MHA_CACHE_CONTIGUOUS, MHA_F32, MHA_F32);
    const size_t bytes = mha_cache_export_size(full, 161);
    unsigned char *const data = calloc(1, bytes);
    CHECK(mha_cache_import(full, 0, 161, data, bytes) == MHA_ERR_FULL, "more than the capacity");
    CHECK(mha_cache_import(full, 0, 1, NULL, mha_cache_export_size(full, 1)) == MHA_ERR_NULL,
          "no data");
    CHECK(mha_cache_export(full, 0, 0, 1, data, mha_cache_export_size(full, 1)) == MHA_ERR_LENGTH,
          "tokens that are not there");
    CHECK(mha_cache_length(full, 0) == 0, "a failed import has changed the cache");
    free(data);
    mha_cache_free(full);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(parts_have_the_bits_of_the_whole);
    RUN(sinks_need_all_rows_and_no_keys);
    RUN(reference_counts_alike);
    RUN(pools_merge_alike);
    RUN(checks_say_what_calls_say);
    RUN(backward_checks_say_what_calls_say);
    RUN(tokens_travel_as_they_are_stored);
    return test_end();
}
