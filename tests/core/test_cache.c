/* SPDX-License-Identifier: MIT */
/* Every function of the cache by itself: what it does, and what it refuses. */
#include "core/cache.h"
#include "core/rope.h"
#include "support/cache_model.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { G = 2, D = 4, DV = 6, WIDEST = 512 };

static mha_cache_config config_of(mha_cache_kind kind, mha_dtype type)
{
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = 4,
                                     .capacity = 100,
                                     .page_tokens = 32,
                                     .G = G,
                                     .D = D,
                                     .Dv = DV,
                                     .k_type = type,
                                     .v_type = type};
    return config;
}

static mha_cache *cache_of(mha_cache_kind kind, mha_dtype type, ptrdiff_t pages)
{
    mha_cache_config config = config_of(kind, type);
    mha_cache *cache = NULL;
    config.pages = pages;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "create");
    return cache;
}

static float numbers[WIDEST * G * DV];

static void fill_numbers(uint64_t seed)
{
    test_random random = {seed};
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        numbers[n] = test_random_float(&random);
}

/* `count` tokens of `numbers` to one sequence. */
static mha_status append(mha_cache *cache, int64_t sequence, ptrdiff_t count)
{
    return mha_cache_append(cache, 1, &sequence, count, NULL, mha_view_blhd(numbers, G, count, D),
                            MHA_F32, mha_view_blhd(numbers, G, count, DV), MHA_F32);
}

#define IS(call, wanted)                                                \
    do {                                                                \
        const mha_status got_ = (call);                                 \
        CHECK(got_ == (wanted), #call ": %s", mha_status_string(got_)); \
    } while (0)

/* ---------------------------------------------------------------- create ----- */

static void defaults(void)
{
    mha_cache_config config = config_of(MHA_CACHE_PAGED, MHA_I8);
    char message[100];
    mha_cache *cache = NULL;
    config.page_tokens = config.Dv = 0;
    config.message = message;
    config.message_size = sizeof message;
    IS(mha_cache_create(&cache, &config), MHA_OK);
    mha_cache_config got = mha_cache_get_config(cache);
    CHECK(got.page_tokens == 128 && got.pages == 4 && got.Dv == D && got.capacity == 100,
          "%td pages of %td, Dv %td, capacity %td", got.pages, got.page_tokens, got.Dv,
          got.capacity);
    CHECK(!got.message && got.message_size == 0 && got.size == sizeof got, "the message is kept");
    CHECK(mha_cache_free_pages(cache) == 4, "%td free pages", mha_cache_free_pages(cache));
    CHECK(mha_cache_bytes(cache) >= 4 * 128 * (G * 2 * (D + sizeof(float))), "%zu bytes",
          mha_cache_bytes(cache));
    mha_cache_free(cache);

    config.kind = MHA_CACHE_RING;
    IS(mha_cache_create(&cache, &config), MHA_OK);
    got = mha_cache_get_config(cache);
    CHECK(got.capacity == 128 && got.pages == 0 && got.page_tokens == 0, "ring of %td",
          got.capacity);
    CHECK(mha_cache_free_pages(cache) == 0, "a ring has pages");
    mha_cache_free(cache);
}

static void nothing_is_there(void)
{
    const mha_cache_config none = mha_cache_get_config(NULL);
    CHECK(none.size == 0 && none.G == 0, "a config of nothing");
    CHECK(mha_cache_length(NULL, 0) == -1 && mha_cache_first(NULL, 0) == -1, "length of nothing");
    CHECK(mha_cache_free_pages(NULL) == 0 && mha_cache_bytes(NULL) == 0, "pages of nothing");
    mha_cache_free(NULL);
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 0);
    static const ptrdiff_t wrong[] = {-1, 4, PTRDIFF_MAX, PTRDIFF_MIN};
    for (int n = 0; n < 4; n++)
        CHECK(mha_cache_length(cache, wrong[n]) == -1 && mha_cache_first(cache, wrong[n]) == -1,
              "sequence %td", wrong[n]);
    CHECK(mha_cache_length(cache, 3) == 0 && mha_cache_first(cache, 3) == 0, "not empty");
    mha_cache_free(cache);
}

#define WRONG(field, value, status)                                           \
    do {                                                                      \
        mha_cache_config bad_ = config_of(MHA_CACHE_PAGED, MHA_F32);          \
        char message_[200] = "";                                              \
        mha_cache *cache_ = (mha_cache *)numbers;                             \
        bad_.field = (value);                                                 \
        bad_.message = message_;                                              \
        bad_.message_size = sizeof message_;                                  \
        IS(mha_cache_create(&cache_, &bad_), status);                         \
        CHECK(!cache_ && strlen(message_) > 10, #field ": \"%s\"", message_); \
    } while (0)

static void wrong_configs(void)
{
    WRONG(kind, (mha_cache_kind)3, MHA_ERR_FLAG);
    WRONG(kind, (mha_cache_kind)-1, MHA_ERR_FLAG);
    WRONG(sequences, 0, MHA_ERR_SHAPE);
    WRONG(sequences, -1, MHA_ERR_SHAPE);
    WRONG(sequences, PTRDIFF_MAX, MHA_ERR_OVERFLOW);
    WRONG(capacity, 0, MHA_ERR_SHAPE);
    WRONG(capacity, PTRDIFF_MAX, MHA_ERR_OVERFLOW);
    WRONG(capacity, MHAI_MAX_EXTENT, MHA_ERR_OVERFLOW);
    WRONG(page_tokens, 33, MHA_ERR_SHAPE);
    WRONG(page_tokens, -32, MHA_ERR_SHAPE);
    WRONG(page_tokens, MHAI_MAX_EXTENT / 32 * 32 + 32, MHA_ERR_OVERFLOW);
    WRONG(pages, -1, MHA_ERR_SHAPE);
    WRONG(pages, (ptrdiff_t)INT32_MAX + 1, MHA_ERR_OVERFLOW);
    WRONG(G, 0, MHA_ERR_SHAPE);
    WRONG(G, MHAI_MAX_EXTENT, MHA_ERR_OVERFLOW);
    WRONG(D, 0, MHA_ERR_SHAPE);
    WRONG(D, MHA_MAX_HEAD_WIDTH + 1, MHA_ERR_SHAPE);
    WRONG(Dv, -1, MHA_ERR_SHAPE);
    WRONG(Dv, MHA_MAX_HEAD_WIDTH + 1, MHA_ERR_SHAPE);
    WRONG(k_type, MHA_F64, MHA_ERR_DTYPE);
    WRONG(v_type, MHA_F64, MHA_ERR_DTYPE);
    WRONG(v_type, (mha_dtype)77, MHA_ERR_DTYPE);
}

static void wrong_structs(void)
{
    struct {
        mha_cache_config config;
        uint64_t past;
    } newer = {config_of(MHA_CACHE_CONTIGUOUS, MHA_F32), 0};
    mha_cache *cache = (mha_cache *)numbers;
    IS(mha_cache_create(&cache, NULL), MHA_ERR_NULL);
    CHECK(!cache, "a cache of nothing");
    IS(mha_cache_create(NULL, &newer.config), MHA_ERR_NULL);
    newer.config.size = sizeof newer;
    IS(mha_cache_create(&cache, &newer.config), MHA_OK);
    CHECK(mha_cache_get_config(cache).size == sizeof newer.config, "size");
    mha_cache_free(cache);
    newer.past = 1;
    IS(mha_cache_create(&cache, &newer.config), MHA_ERR_STRUCT);
    newer.config.size = sizeof newer.config - sizeof(size_t);
    IS(mha_cache_create(&cache, &newer.config), MHA_ERR_STRUCT);
    CHECK(!cache, "a cache of a wrong struct");
}

/* ---------------------------------------------------------------- append ----- */

static void appended_is_read(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    for (int kind = 0; kind < 3; kind++)
        for (int type = 0; type < 4; type++) {
            test_random random = {(uint64_t)(kind * 4 + type)};
            mha_cache *const cache = cache_of((mha_cache_kind)kind, types[type], 0);
            cache_model *const model = model_new(cache);
            for (ptrdiff_t count = 0; count < 30; count += 7) {
                model_rows k = model_rows_new(&random, MHA_F32, 1, count, G, D);
                model_rows v = model_rows_new(&random, MHA_BF16, 1, count, G, DV);
                const int64_t sequence = 2;
                IS(mha_cache_append(cache, 1, &sequence, count, NULL, k.view, MHA_F32, v.view,
                                    MHA_BF16),
                   MHA_OK);
                model_append(model, 2, count, &k, &v, 0);
                model_rows_free(&k);
                model_rows_free(&v);
            }
            CHECK(mha_cache_length(cache, 2) == 70, "%td tokens", mha_cache_length(cache, 2));
            model_agrees_all(model, cache, "append");
            model_free(model);
            mha_cache_free(cache);
        }
}

/* What one call refuses must leave all as it was. */
static void wrong_appends(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_CONTIGUOUS, MHA_F32, 0);
    const mha_view k = mha_view_blhd(numbers, G, 3, D), v = mha_view_blhd(numbers, G, 3, DV);
    const int64_t twice[] = {1, 3, 1}, missing[] = {0, 4}, negative[] = {0, -1};
    const int64_t too_long[] = {3, 4}, below_zero[] = {-1, 0};
    mha_view bad = k;
#define APPEND(B, sequences, L, lengths, k, k_type, v_type) \
    mha_cache_append(cache, B, sequences, L, lengths, k, k_type, v, v_type)
    IS(mha_cache_append(NULL, 1, NULL, 1, NULL, k, MHA_F32, v, MHA_F32), MHA_ERR_NULL);
    IS(APPEND(3, twice, 1, NULL, k, MHA_F32, MHA_F32), MHA_ERR_SEQUENCE);
    IS(APPEND(2, missing, 1, NULL, k, MHA_F32, MHA_F32), MHA_ERR_SEQUENCE);
    IS(APPEND(2, negative, 1, NULL, k, MHA_F32, MHA_F32), MHA_ERR_SEQUENCE);
    IS(APPEND(5, NULL, 1, NULL, k, MHA_F32, MHA_F32), MHA_ERR_SEQUENCE);
    IS(APPEND(2, NULL, 3, too_long, k, MHA_F32, MHA_F32), MHA_ERR_LENGTH);
    IS(APPEND(2, NULL, 3, below_zero, k, MHA_F32, MHA_F32), MHA_ERR_LENGTH);
    IS(APPEND(-1, NULL, 3, NULL, k, MHA_F32, MHA_F32), MHA_ERR_SHAPE);
    IS(APPEND(1, NULL, -1, NULL, k, MHA_F32, MHA_F32), MHA_ERR_SHAPE);
    IS(APPEND(1, NULL, PTRDIFF_MAX, NULL, k, MHA_F32, MHA_F32), MHA_ERR_OVERFLOW);
    IS(APPEND(1, NULL, 1, NULL, k, MHA_F64, MHA_F32), MHA_ERR_DTYPE);
    IS(APPEND(1, NULL, 1, NULL, k, MHA_F32, MHA_I8), MHA_ERR_DTYPE);
    bad.data = NULL;
    IS(APPEND(1, NULL, 1, NULL, bad, MHA_F32, MHA_F32), MHA_ERR_NULL);
    bad.data = (const char *)numbers + 1;
    IS(APPEND(1, NULL, 1, NULL, bad, MHA_F32, MHA_F32), MHA_ERR_ALIGN);
    bad = k;
    bad.sl = PTRDIFF_MAX / 2;
    IS(APPEND(1, NULL, 3, NULL, bad, MHA_F32, MHA_F32), MHA_ERR_OVERFLOW);
    IS(APPEND(2, NULL, 0, NULL, bad, MHA_F32, MHA_F32), MHA_OK);
#undef APPEND
    for (ptrdiff_t s = 0; s < 4; s++)
        CHECK(mha_cache_length(cache, s) == 0, "sequence %td has grown", s);
    for (ptrdiff_t n = 0; n < 4; n++)
        CHECK(cache->marks[n] == 0, "sequence %td stays marked", n);
    mha_cache_free(cache);
}

static void capacity_is_kept(void)
{
    for (int kind = 0; kind < 3; kind++) {
        mha_cache *const cache = cache_of((mha_cache_kind)kind, MHA_F32, 0);
        const bool ring = kind == MHA_CACHE_RING;
        IS(append(cache, 1, 99), MHA_OK);
        IS(append(cache, 1, 2), ring ? MHA_OK : MHA_ERR_FULL);
        IS(append(cache, 1, 1), MHA_OK);
        IS(append(cache, 1, 1), ring ? MHA_OK : MHA_ERR_FULL);
        CHECK(mha_cache_length(cache, 1) == (ring ? 103 : 100), "%td tokens",
              mha_cache_length(cache, 1));
        mha_cache_free(cache);
    }
}

/* One call for two sequences; the second does not fit. */
static void all_or_nothing(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 3);
    const int64_t counts[] = {32, 33};
    const mha_view k = mha_view_blhd(numbers, G, 33, D), v = mha_view_blhd(numbers, G, 33, DV);
    IS(append(cache, 3, 1), MHA_OK);
    IS(mha_cache_append(cache, 2, NULL, 33, counts, k, MHA_F32, v, MHA_F32), MHA_ERR_FULL);
    CHECK(mha_cache_length(cache, 0) == 0 && mha_cache_free_pages(cache) == 2, "half done");
    mha_cache_free(cache);
}

static void messages_of_room(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 3);
    const int64_t twice[] = {2, 2};
    char message[200] = "";
    const mha_options options = {
        .size = sizeof options, .message = message, .message_size = sizeof message};
    IS(mhai_cache_room(cache, 2, twice, 1, NULL, &options), MHA_ERR_SEQUENCE);
    CHECK(strstr(message, "sequence 2 is listed twice"), "%s", message);
    IS(mhai_cache_room(cache, 2, NULL, 50, NULL, &options), MHA_ERR_FULL);
    CHECK(strstr(message, "need 4 more pages and 3 are free"), "%s", message);
    IS(mhai_cache_room(cache, 1, NULL, 101, NULL, &options), MHA_ERR_FULL);
    CHECK(strstr(message, "capacity of 100"), "%s", message);
    mha_cache_free(cache);
}

/* ----------------------------------------------------------------- types ----- */

static void read_first(const mha_cache *cache, float *k, float *v)
{
    IS(mha_cache_read(cache, 0, 0, 1, mha_out_blhd(k, G, 1, D), mha_out_blhd(v, G, 1, DV)), MHA_OK);
}

/* Rows that i8 cannot scale: zeros, what is not finite, and the smallest numbers there are. */
static void i8_rows(void)
{
    float rows[G * DV] = {0}, k[G * D], v[G * DV];
    mha_cache *const cache = cache_of(MHA_CACHE_CONTIGUOUS, MHA_I8, 0);
    const mha_view view_k = {rows, 0, D, 0}, view_v = {rows, 0, DV, 0};
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    const int64_t sequence = 0;
    for (int n = 0; n < 3; n++) {
        rows[1] = odd[n];
        rows[2] = 5;
        IS(mha_cache_truncate(cache, 0, 0), MHA_OK);
        IS(mha_cache_append(cache, 1, &sequence, 1, NULL, view_k, MHA_F32, view_v, MHA_F32),
           MHA_OK);
        read_first(cache, k, v);
        for (int c = 0; c < D; c++)
            CHECK(isnan(k[c]) && isnan(v[c]), "%g became %g and %g", (double)odd[n], (double)k[c],
                  (double)v[c]);
        CHECK(k[D] == 0 && v[DV] == 0, "zeros became %g and %g", (double)k[D], (double)v[DV]);
    }
    static const float tiny[] = {0x1p-149f, 0x1p-140f, 0x1.8p-126f, 1e-30f, 3e38f};
    for (int n = 0; n < 5; n++) {
        rows[1] = tiny[n];
        rows[2] = -tiny[n];
        IS(mha_cache_truncate(cache, 0, 0), MHA_OK);
        IS(mha_cache_append(cache, 1, &sequence, 1, NULL, view_k, MHA_F32, view_v, MHA_F32),
           MHA_OK);
        read_first(cache, k, v);
        CHECK(k[0] == 0 && k[1] == -k[2] && fabsf(k[1] - tiny[n]) <= tiny[n] / 100 + 0x1p-142f,
              "%g became %g and %g", (double)tiny[n], (double)k[1], (double)k[2]);
    }
    mha_cache_free(cache);
}

/* Halves that come as halves are not touched. */
static void halves_stay(void)
{
    static const uint16_t bits[] = {0x8000, 0x0001, 0x7c00, 0xfbff};
    static const float wanted[] = {-0.0f, 0x1p-24f, INFINITY, -65504.0f};
    mha_cache *const cache = cache_of(MHA_CACHE_CONTIGUOUS, MHA_F16, 0);
    const mha_view view = {bits, 0, 0, 0};
    float k[G * D];
    const mha_out out = mha_out_blhd(k, G, 1, D), none = {0};
    const int64_t sequence = 0;
    IS(mha_cache_append(cache, 1, &sequence, 1, NULL, view, MHA_F16,
                        mha_view_blhd(numbers, G, 1, DV), MHA_F32),
       MHA_OK);
    IS(mha_cache_read(cache, 0, 0, 1, out, none), MHA_OK);
    CHECK(memcmp(k, wanted, sizeof wanted) == 0, "%g %g %g %g", (double)k[0], (double)k[1],
          (double)k[2], (double)k[3]);
    mha_cache_free(cache);
}

/* ------------------------------------------------------------------ read ----- */

static void wrong_reads(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_RING, MHA_F32, 0);
    float k[8 * G * D], v[8 * G * DV];
    mha_out out = mha_out_blhd(k, G, 8, D);
    const mha_out values = mha_out_blhd(v, G, 8, DV), none = {0};
    IS(append(cache, 0, 200), MHA_OK);
    IS(mha_cache_read(NULL, 0, 0, 1, out, values), MHA_ERR_NULL);
    IS(mha_cache_read(cache, 4, 0, 1, out, values), MHA_ERR_SEQUENCE);
    IS(mha_cache_read(cache, -1, 0, 1, out, values), MHA_ERR_SEQUENCE);
    IS(mha_cache_read(cache, 0, 71, 1, out, values), MHA_ERR_LENGTH);
    IS(mha_cache_read(cache, 0, 193, 8, out, values), MHA_ERR_LENGTH);
    IS(mha_cache_read(cache, 0, 192, PTRDIFF_MAX, out, values), MHA_ERR_LENGTH);
    IS(mha_cache_read(cache, 0, 192, -1, out, values), MHA_ERR_LENGTH);
    IS(mha_cache_read(cache, 0, 201, 0, out, values), MHA_ERR_LENGTH);
    IS(mha_cache_read(cache, 0, 200, 0, out, values), MHA_OK);
    IS(mha_cache_read(cache, 0, 72, 8, out, none), MHA_OK);
    IS(mha_cache_read(cache, 0, 72, 8, none, none), MHA_OK);
    IS(mha_cache_read(cache, 0, 192, 8, out, mha_out_blhd(k, G, 8, DV)), MHA_ERR_OVERLAP);
    out.sl = 1;
    IS(mha_cache_read(cache, 0, 192, 8, out, values), MHA_ERR_STRIDE);
    out = mha_out_blhd((char *)k + 2, G, 4, D);
    IS(mha_cache_read(cache, 0, 192, 4, out, values), MHA_ERR_ALIGN);
    out = mha_out_blhd(k, G, 8, D);
    out.sh = PTRDIFF_MAX / 4;
    IS(mha_cache_read(cache, 0, 192, 8, out, values), MHA_ERR_OVERFLOW);
    mha_cache_free(cache);
}

/* ----------------------------------------------------------------- pages ----- */

static void pages_come_and_go(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 6);
    IS(append(cache, 0, 64), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 4, "%td free", mha_cache_free_pages(cache));
    IS(append(cache, 0, 1), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 3, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_truncate(cache, 0, 64), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 4, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_truncate(cache, 0, 33), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 4, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_fork(cache, 1, 0), MHA_OK);
    IS(mha_cache_fork(cache, 1, 0), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 4, "a fork takes pages");
    IS(append(cache, 1, 1), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 3, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_truncate(cache, 0, 0), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 4, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_truncate(cache, 1, 0), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 6, "%td free", mha_cache_free_pages(cache));
    mha_cache_free(cache);
}

/* Four beams share a page and all append: three copies are enough, the last keeps the page. */
static void beams_need_no_page_too_many(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 4);
    static const int64_t parents[] = {2, 2, 2, 2};
    const mha_view k = mha_view_blhd(numbers, G, 1, D), v = mha_view_blhd(numbers, G, 1, DV);
    IS(append(cache, 2, 31), MHA_OK);
    IS(mha_cache_reorder(cache, parents), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 3, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_append(cache, 4, NULL, 1, NULL, k, MHA_F32, v, MHA_F32), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 0, "%td free", mha_cache_free_pages(cache));
    IS(mha_cache_append(cache, 4, NULL, 1, NULL, k, MHA_F32, v, MHA_F32), MHA_ERR_FULL);
    IS(mha_cache_reorder(cache, parents), MHA_OK);
    CHECK(mha_cache_free_pages(cache) == 3, "%td free", mha_cache_free_pages(cache));
    mha_cache_free(cache);
}

/* A write into a shared page, and no page for its copy. */
static void no_page_for_a_copy(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 2);
    const mha_rope rope = {.pairs = MHA_ROPE_HALVES};
    fill_numbers(3);
    IS(append(cache, 0, 40), MHA_OK);
    IS(mha_cache_fork(cache, 1, 0), MHA_OK);
    IS(append(cache, 1, 1), MHA_ERR_FULL);
    IS(mha_cache_copy(cache, 1, 0, 0, 1), MHA_ERR_FULL);
    IS(mha_cache_remove(cache, 1, 0, 1), MHA_ERR_FULL);
    IS(mha_cache_shift(cache, 1, 0, 1, &rope, 1), MHA_ERR_FULL);
    IS(mha_cache_shift(cache, 1, 0, 1, &rope, 0), MHA_OK);
    IS(mha_cache_remove(cache, 1, 30, 10), MHA_OK);
    CHECK(mha_cache_length(cache, 1) == 30 && mha_cache_free_pages(cache) == 0, "a tail is cut");
    mha_cache_free(cache);
}

/* ------------------------------------------------------------------ ring ----- */

static void ring_goes_round(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_RING, MHA_F32, 0);
    IS(append(cache, 0, 128), MHA_OK);
    CHECK(mha_cache_first(cache, 0) == 0, "first %td", mha_cache_first(cache, 0));
    IS(append(cache, 0, 1), MHA_OK);
    CHECK(mha_cache_first(cache, 0) == 1, "first %td", mha_cache_first(cache, 0));
    IS(append(cache, 0, 500), MHA_OK);
    CHECK(mha_cache_first(cache, 0) == 501 && mha_cache_length(cache, 0) == 629, "%td to %td",
          mha_cache_first(cache, 0), mha_cache_length(cache, 0));
    float k[128 * G * D];
    const mha_out none = {0};
    IS(mha_cache_read(cache, 0, 501, 128, mha_out_blhd(k, G, 128, D), none), MHA_OK);
    CHECK(memcmp(k, numbers + (500 - 128) * G * D, sizeof k) == 0, "not the last tokens");

    IS(mha_cache_truncate(cache, 0, 500), MHA_ERR_LENGTH);
    IS(mha_cache_truncate(cache, 0, 630), MHA_ERR_LENGTH);
    IS(mha_cache_truncate(cache, 0, 510), MHA_OK);
    CHECK(mha_cache_first(cache, 0) == 501, "what was dropped is back");
    IS(append(cache, 0, 120), MHA_OK);
    CHECK(mha_cache_first(cache, 0) == 502, "first %td", mha_cache_first(cache, 0));
    IS(mha_cache_remove(cache, 0, 510, 1), MHA_ERR_FLAG);
    IS(mha_cache_truncate(cache, 0, 502), MHA_OK);
    IS(mha_cache_truncate(cache, 0, 0), MHA_OK);
    CHECK(mha_cache_first(cache, 0) == 0 && mha_cache_length(cache, 0) == 0, "not empty");
    mha_cache_free(cache);
}

/* ------------------------------------------------------- whole sequences ----- */

static void wrong_sequences(void)
{
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 0);
    const mha_rope rope = {.pairs = MHA_ROPE_HALVES}, odd = {.pairs = MHA_ROPE_HALVES, .width = 3};
    const mha_rope unknown = {.pairs = (mha_rope_pairs)3};
    static const int64_t low[] = {0, 0, -1, 0}, high[] = {0, 4, 0, 0};
    IS(append(cache, 0, 10), MHA_OK);
    IS(mha_cache_truncate(NULL, 0, 0), MHA_ERR_NULL);
    IS(mha_cache_truncate(cache, 4, 0), MHA_ERR_SEQUENCE);
    IS(mha_cache_truncate(cache, 0, 11), MHA_ERR_LENGTH);
    IS(mha_cache_truncate(cache, 0, -1), MHA_ERR_LENGTH);
    IS(mha_cache_fork(NULL, 0, 1), MHA_ERR_NULL);
    IS(mha_cache_fork(cache, 0, 4), MHA_ERR_SEQUENCE);
    IS(mha_cache_fork(cache, -1, 0), MHA_ERR_SEQUENCE);
    IS(mha_cache_fork(cache, 0, 0), MHA_OK);
    IS(mha_cache_copy(NULL, 0, 0, 0, 1), MHA_ERR_NULL);
    IS(mha_cache_copy(cache, 4, 0, 0, 1), MHA_ERR_SEQUENCE);
    IS(mha_cache_copy(cache, 0, 4, 0, 1), MHA_ERR_SEQUENCE);
    IS(mha_cache_copy(cache, 1, 0, 9, 2), MHA_ERR_LENGTH);
    IS(mha_cache_remove(NULL, 0, 0, 1), MHA_ERR_NULL);
    IS(mha_cache_remove(cache, 4, 0, 1), MHA_ERR_SEQUENCE);
    IS(mha_cache_remove(cache, 0, 9, 2), MHA_ERR_LENGTH);
    IS(mha_cache_remove(cache, 0, -1, 2), MHA_ERR_LENGTH);
    IS(mha_cache_shift(NULL, 0, 0, 1, &rope, 1), MHA_ERR_NULL);
    IS(mha_cache_shift(cache, 0, 0, 1, NULL, 1), MHA_ERR_NULL);
    IS(mha_cache_shift(cache, 4, 0, 1, &rope, 1), MHA_ERR_SEQUENCE);
    IS(mha_cache_shift(cache, 0, 10, 1, &rope, 1), MHA_ERR_LENGTH);
    IS(mha_cache_shift(cache, 0, 0, 1, &odd, 1), MHA_ERR_SHAPE);
    IS(mha_cache_shift(cache, 0, 0, 1, &unknown, 1), MHA_ERR_FLAG);
    IS(mha_cache_reorder(NULL, low), MHA_ERR_NULL);
    IS(mha_cache_reorder(cache, NULL), MHA_ERR_NULL);
    IS(mha_cache_reorder(cache, low), MHA_ERR_SEQUENCE);
    IS(mha_cache_reorder(cache, high), MHA_ERR_SEQUENCE);
    CHECK(mha_cache_length(cache, 0) == 10 && mha_cache_length(cache, 1) == 0, "something changed");
    mha_cache_free(cache);
}

/* Keys rotated to position p, then shifted by d, are the keys at position p + d. */
static void shifted_keys_fit(void)
{
    const mha_rope rope = {.pairs = MHA_ROPE_NEIGHBOURS, .base = 100};
    mha_cache *const cache = cache_of(MHA_CACHE_PAGED, MHA_F32, 0);
    float wanted[40 * G * D], k[40 * G * D];
    const mha_out none = {0};
    fill_numbers(4);
    memcpy(wanted, numbers, sizeof wanted);
    for (int n = 0; n < 40 * G; n++) {
        mhai_rope_row(numbers + n * D, &rope, D, (double)(n / G));
        mhai_rope_row(wanted + n * D, &rope, D, (double)(n / G) - 7);
    }
    IS(append(cache, 0, 40), MHA_OK);
    IS(mha_cache_fork(cache, 1, 0), MHA_OK);
    IS(mha_cache_shift(cache, 0, 0, 40, &rope, -7), MHA_OK);
    IS(mha_cache_read(cache, 0, 0, 40, mha_out_blhd(k, G, 40, D), none), MHA_OK);
    for (int n = 0; n < 40 * G * D; n++)
        CHECK(fabsf(k[n] - wanted[n]) < 1e-6f, "%d: %g, not %g", n, (double)k[n],
              (double)wanted[n]);
    IS(mha_cache_read(cache, 1, 0, 40, mha_out_blhd(k, G, 40, D), none), MHA_OK);
    CHECK(memcmp(k, numbers, sizeof k) == 0, "the other one was shifted too");
    mha_cache_free(cache);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    fill_numbers(1);
    RUN(defaults);
    RUN(nothing_is_there);
    RUN(wrong_configs);
    RUN(wrong_structs);
    RUN(appended_is_read);
    RUN(wrong_appends);
    RUN(capacity_is_kept);
    RUN(all_or_nothing);
    RUN(messages_of_room);
    RUN(i8_rows);
    RUN(halves_stay);
    RUN(wrong_reads);
    RUN(pages_come_and_go);
    RUN(beams_need_no_page_too_many);
    RUN(no_page_for_a_copy);
    RUN(ring_goes_round);
    RUN(wrong_sequences);
    RUN(shifted_keys_fit);
    return test_end();
}
