/* SPDX-License-Identifier: MIT */
/* Decoding over a cache that is spread over ranks: the same bits as on one rank, close to attention
 * over all tokens at once; what one rank refuses, all refuse. */
#include "mpi/mpi_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { G = 2, H = 6, D = 12, Dv = 9, TOKENS = 230, ROWS = 3, SEQUENCES = 2 };

/* Tokens of both sequences, and queries. */
typedef struct story {
    float k[SEQUENCES][G * TOKENS * D], v[SEQUENCES][G * TOKENS * Dv];
    float q[SEQUENCES * H * ROWS * D];
    float slopes[H], sinks[H];
} story;

static story *story_new(uint64_t seed)
{
    story *const s = malloc(sizeof *s);
    rng r = {seed};
    if (!s)
        abort();
    for (size_t n = 0; n < sizeof *s / sizeof(float); n++)
        ((float *)s)[n] = (float)rng_normal(&r);
    return s;
}

static mha_mpi_cache *cache_new(mha_mpi_group *group, ptrdiff_t chunk, ptrdiff_t block,
                                mha_dtype type)
{
    const mha_mpi_cache_config config = {.size = sizeof config,
                                         .sequences = SEQUENCES,
                                         .capacity = TOKENS,
                                         .chunk = chunk,
                                         .block = block,
                                         .G = G,
                                         .D = D,
                                         .Dv = Dv,
                                         .k_type = type,
                                         .v_type = type};
    mha_mpi_cache *cache = NULL;
    CHECK(mha_mpi_cache_create(&cache, group, &config) == MHA_OK, "cache");
    return cache;
}

static void append(mha_mpi_cache *cache, const story *s, ptrdiff_t sequence, ptrdiff_t first,
                   ptrdiff_t count)
{
    const mha_view k = {s->k[sequence] + first * D, 0, TOKENS * D, D};
    const mha_view v = {s->v[sequence] + first * Dv, 0, TOKENS * Dv, Dv};
    const mha_status status = mha_mpi_cache_append(cache, sequence, count, k, MHA_F32, v, MHA_F32);
    CHECK(status == MHA_OK && mha_mpi_cache_length(cache, sequence) == first + count,
          "append: %s, %td tokens", mha_status_string(status),
          mha_mpi_cache_length(cache, sequence));
}

static mha_options options_of(const story *s, uint64_t seed)
{
    mha_options o = {.size = sizeof o, .flags = MHA_CAUSAL};
    if (seed % 3 == 1) {
        o.flags |= MHA_WINDOW;
        o.window_left = 50;
    }
    o.alibi_slopes = seed % 4 == 2 ? s->slopes : NULL;
    o.sinks = seed % 2 ? s->sinks : NULL;
    o.softcap = seed % 5 == 3 ? 2.0f : 0.0f;
    return o;
}

typedef struct answer {
    float o[SEQUENCES * H * ROWS * Dv], lse[SEQUENCES * H * ROWS];
} answer;

static mha_status ask(const mha_mpi_cache *cache, const story *s, mha_options o, answer *to,
                      mha_dtype type)
{
    const mha_shape shape = {.B = SEQUENCES, .H = H, .L = ROWS, .o_type = type};
    memset(to, 0, sizeof *to);
    o.lse = mha_out_bhld(to->lse, H, ROWS, 1);
    return mha_mpi_cache_attention(cache, NULL, &shape, mha_view_bhld(s->q, H, ROWS, D),
                                   mha_out_bhld(to->o, H, ROWS, Dv), &o, NULL);
}

/* All tokens at once. */
static void compare_with_operator(const story *s, mha_options o, const ptrdiff_t *lengths,
                                  const answer *got, uint64_t seed)
{
    for (ptrdiff_t b = 0; b < SEQUENCES; b++) {
        static answer want;
        const mha_shape shape = {
            .B = 1, .H = H, .G = G, .L = ROWS, .S = lengths[b], .D = D, .Dv = Dv};
        o.position = MHA_POSITION_BOTTOM_RIGHT;
        o.lse = mha_out_bhld(want.lse, H, ROWS, 1);
        CHECK(mha_attention(&shape, mha_view_bhld(s->q + b * H * ROWS * D, H, ROWS, D),
                            mha_view_bhld(s->k[b], G, TOKENS, D),
                            mha_view_bhld(s->v[b], G, TOKENS, Dv),
                            mha_out_bhld(want.o, H, ROWS, Dv), &o, NULL) == MHA_OK,
              "operator");
        double worst = 0.0;
        for (ptrdiff_t n = 0; n < H * ROWS * Dv; n++)
            worst = fmax(worst, fabs((double)want.o[n] - (double)got->o[b * H * ROWS * Dv + n]));
        for (ptrdiff_t n = 0; n < H * ROWS; n++) {
            const float a = want.lse[n], x = got->lse[b * H * ROWS + n];
            worst = fmax(worst, a == x ? 0.0 : fabs((double)a - (double)x));
        }
        CHECK(worst < 2e-5, "seed %llu: %g from one call", (unsigned long long)seed, worst);
    }
}

static void check_story(uint64_t seed, mha_mpi_group *group, mha_mpi_group *self)
{
    rng r = {seed};
    story *const s = story_new(seed);
    const ptrdiff_t chunk = rng_between(&r, 1, 60), block = rng_between(&r, 1, 4);
    const mha_dtype type = seed % 4 == 3 ? MHA_I8 : seed % 4 == 2 ? MHA_BF16 : MHA_F32;
    const mha_dtype o_type = seed % 5 == 4 ? MHA_F16 : MHA_F32;
    mha_mpi_cache *const spread_cache = cache_new(group, chunk, block, type);
    mha_mpi_cache *const one = cache_new(self, chunk, 1, type);
    const mha_options o = options_of(s, seed);
    ptrdiff_t lengths[SEQUENCES] = {0, 0};
    for (int step = 0; step < 5; step++) {
        static answer got, want;
        for (ptrdiff_t b = 0; b < SEQUENCES; b++) {
            const ptrdiff_t count = rng_between(&r, step ? 0 : 1, (TOKENS - lengths[b]) / 2);
            append(spread_cache, s, b, lengths[b], count);
            append(one, s, b, lengths[b], count);
            lengths[b] += count;
        }
        const mha_status status = ask(spread_cache, s, o, &got, o_type);
        CHECK(status == MHA_OK && ask(one, s, o, &want, o_type) == MHA_OK, "seed %llu: %s",
              (unsigned long long)seed, mha_status_string(status));
        CHECK(memcmp(&got, &want, sizeof got) == 0, "seed %llu, step %d: other bits",
              (unsigned long long)seed, step);
        if (type == MHA_F32 && o_type == MHA_F32)
            compare_with_operator(s, o, lengths, &got, seed);
    }
    mha_mpi_cache_free(spread_cache);
    mha_mpi_cache_free(one);
    free(s);
}

static void check_refusals(mha_mpi_group *group)
{
    const int rank = mha_mpi_group_rank(group), ranks = mha_mpi_group_ranks(group);
    story *const s = story_new(1);
    mha_mpi_cache *const cache = cache_new(group, 16, 2, MHA_F32);
    const mha_view k = mha_view_bhld(s->k[0], G, TOKENS, D),
                   v = mha_view_bhld(s->v[0], G, TOKENS, Dv);
    const mha_view none = {0};
    static answer got;
    for (int wrong = 0; wrong < ranks; wrong++) {
        const bool me = rank == wrong;
        CHECK(mha_mpi_cache_append(cache, me ? 9 : 0, 3, k, MHA_F32, v, MHA_F32) ==
                  MHA_ERR_SEQUENCE,
              "no sequence");
        CHECK(mha_mpi_cache_append(cache, 0, me ? TOKENS + 1 : 3, k, MHA_F32, v, MHA_F32) ==
                  MHA_ERR_FULL,
              "too many");
        CHECK(mha_mpi_cache_append(cache, 0, 3, me ? none : k, MHA_F32, v, MHA_F32) == MHA_ERR_NULL,
              "no keys");
        CHECK(ranks == 1 || mha_mpi_cache_append(cache, 0, me ? 2 : 3, k, MHA_F32, v, MHA_F32) ==
                                MHA_ERR_AGREE,
              "other tokens");
        mha_options o = {.size = sizeof o};
        o.scale = me && ranks > 1 ? 2.0f : 0.0f;
        CHECK(ranks == 1 || ask(cache, s, o, &got, MHA_F32) == MHA_ERR_AGREE, "another scale");
        o.scale = 0.0f;
        o.flags = me ? 1u << 30 : 0;
        CHECK(ask(cache, s, o, &got, MHA_F32) == MHA_ERR_FLAG, "an unknown flag");
        o.flags = 0;
        o.attend_mask.data = me ? s : NULL;
        CHECK(ask(cache, s, o, &got, MHA_F32) == MHA_ERR_FLAG, "a mask");
        for (size_t n = 0; n < sizeof got.o / sizeof got.o[0]; n++)
            CHECK(got.o[n] == 0.0f, "an output was written");
        CHECK(mha_mpi_cache_length(cache, 0) == 0, "a refused append has stored");
    }
    const mha_options plain = {.size = sizeof plain};
    CHECK(ask(cache, s, plain, &got, MHA_F32) == MHA_OK && got.o[0] == 0.0f && isinf(got.lse[0]) &&
              got.lse[0] < 0.0f,
          "an empty cache");
    mha_mpi_cache_free(cache);
    mha_mpi_cache_free(NULL);
    free(s);
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 20;
    mha_mpi_group *const group = mpi_test_begin(&argc, &argv, NULL);
    const mha_mpi_group_config brief_config = {.size = sizeof brief_config, .message_bytes = 300};
    mha_mpi_group *self = NULL, *brief = NULL;
    CHECK(mha_mpi_group_create(&self, MPI_COMM_SELF, NULL) == MHA_OK &&
              mha_mpi_group_create(&brief, MPI_COMM_WORLD, &brief_config) == MHA_OK,
          "groups");
    mpi_test("a_spread_cache_has_the_same_bits_on_any_number_of_ranks");
    for (int n = 0; n < count; n++)
        check_story((uint64_t)n, n % 3 == 2 ? brief : group, self);
    mpi_test("what_one_rank_refuses_all_refuse");
    check_refusals(group);
    mha_mpi_group_free(self);
    mha_mpi_group_free(brief);
    return mpi_test_end(group);
}
