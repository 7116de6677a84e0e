/* SPDX-License-Identifier: MIT */
/*
 * Kernels that move numbers between storage and f32: pack_k, pack_v, load_row(s), store_row(s),
 * add_row, finish_row, scale_row. All of them are exact, so every comparison here is of bits.
 */
#include "support/kernel_bench.h"
#include "support/problems.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { VALUES = 65536 };

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A stride without overlap, one shared by all rows, or a negative one. */
static ptrdiff_t random_stride(test_random *random, int width)
{
    switch (test_random_below(random, 4)) {
    case 0:
        return width;
    case 1:
        return 0;
    case 2:
        return -(ptrdiff_t)random_between(random, width, width + 5);
    default:
        return random_between(random, width + 1, width + 9);
    }
}

/* --------------------------------------------------------------- packing K */

static void model_pack_k(const span *k, ptrdiff_t stride, int keys, int d, int width,
                         const span *panel)
{
    for (int c = 0; c < d; c++)
        for (int j = 0; j < width; j++)
            span_set(panel, c * width + j, j < keys ? (double)span_get(k, j * stride + c) : 0.0);
}

static void check_pack_k(const mhak_table *kernels, test_random *random, element type, int keys,
                         int d, int width)
{
    const ptrdiff_t stride = random_stride(random, d);
    span k = span_rows(random, type, 0, keys, stride, d);
    span panel = span_new(random, E_F32, 0, (ptrdiff_t)d * width);
    span want = span_copy(&panel);
    span_seal(&k);
    kernels->pack_k[type](k.origin, stride, keys, d, width, panel.origin);
    model_pack_k(&k, stride, keys, d, width, &want);
    span_check(&panel, &want, "type %d, %d keys of %d, d %d, stride %td", (int)type, keys, width, d,
               stride);
    span_free(&k);
    span_free(&panel);
    span_free(&want);
}

static void pack_k_lays_out_panels(const mhak_table *kernels)
{
    static const int widths[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,  12,
                                 15, 17, 31, 63, 64, 65, 66, 127, 131};
    test_random random = {test_seed(41)};
    for (int keys = 1; keys <= kernels->nr; keys++)
        for (size_t n = 0; n < sizeof widths / sizeof widths[0]; n++)
            for (int type = E_F32; type <= E_BF16; type++) {
                check_pack_k(kernels, &random, (element)type, keys, widths[n], kernels->nr);
                if (keys <= MHAK_GROUP)
                    check_pack_k(kernels, &random, (element)type, keys, widths[n], MHAK_GROUP);
            }
}

/* --------------------------------------------------------------- packing V */

typedef struct value_case {
    element type;
    int first, last, dv;
    ptrdiff_t stride;
    bool masked;
    uint32_t keep[MHAK_WORDS];
} value_case;

static bool looked_at(const value_case *c, int j)
{
    return !c->masked || bit_of(c->keep, j);
}

/* Only the rows from the first to the last that may be read. */
static span values_of(const value_case *c, test_random *random)
{
    int first = c->first, last = c->last;
    while (first < last && !looked_at(c, first))
        first++;
    while (last > first && !looked_at(c, last - 1))
        last--;
    return span_rows(random, c->type, first, last, c->stride, c->dv);
}

/* The floats from the first to the last that may be written. */
static span value_panels(const mhak_table *kernels, const value_case *c, test_random *random)
{
    const int nc = kernels->nc;
    if (c->first == c->last)
        return span_new(random, E_F32, 0, 0);
    const int panel = (c->dv - 1) / nc;
    const int columns = whole_vectors(kernels, c->dv - panel * nc);
    return span_new(random, E_F32, (ptrdiff_t)c->first * nc,
                    (ptrdiff_t)panel * MHAK_BLOCK * nc + (c->last - 1) * nc + columns);
}

static void model_pack_v(const mhak_table *kernels, const value_case *c, const span *v,
                         const span *panels)
{
    const int nc = kernels->nc;
    for (int j = c->first; j < c->last; j++)
        for (int col = 0; col < whole_vectors(kernels, c->dv); col++)
            span_set(panels, (ptrdiff_t)(col / nc) * MHAK_BLOCK * nc + j * nc + col % nc,
                     col < c->dv && looked_at(c, j) ? (double)span_get(v, j * c->stride + col)
                                                    : 0.0);
}

static void check_pack_v(const mhak_table *kernels, test_random *random, const value_case *c)
{
    span v = values_of(c, random), panels = value_panels(kernels, c, random);
    span want = span_copy(&panels);
    span_seal(&v);
    kernels->pack_v[c->type](v.origin, c->stride, c->first, c->last, c->dv,
                             c->masked ? c->keep : NULL, panels.origin);
    model_pack_v(kernels, c, &v, &want);
    span_check(&panels, &want, "type %d, rows [%d, %d), dv %d, stride %td, %s", (int)c->type,
               c->first, c->last, c->dv, c->stride, c->masked ? "masked" : "not masked");
    span_free(&v);
    span_free(&panels);
    span_free(&want);
}

static void random_keep(test_random *random, uint32_t *keep)
{
    const int64_t how = test_random_below(random, 4);
    for (int w = 0; w < MHAK_WORDS; w++) {
        const uint64_t bits = test_random_u64(random);
        keep[w] = how == 0 ? 0 : how == 1 ? (uint32_t)(bits & bits >> 32) : (uint32_t)bits;
    }
}

static void pack_v_lays_out_panels(const mhak_table *kernels)
{
    test_random random = {test_seed(42)};
    for (int dv = 1; dv <= 3 * kernels->nc + kernels->vector + 1; dv++)
        for (int n = 0; n < 2 * STORAGE_TYPES; n++) {
            value_case c = {.type = storage_types[n / 2], .dv = dv, .masked = n % 2};
            c.first = dv % 3 == 0 ? 0 : random_between(&random, 0, MHAK_BLOCK - 1);
            c.last = dv % 3 == 1 ? MHAK_BLOCK : random_between(&random, c.first, MHAK_BLOCK);
            c.stride = random_stride(&random, dv);
            random_keep(&random, c.keep);
            check_pack_v(kernels, &random, &c);
        }
}

/* ------------------------------------------------------------------- rows */

static void check_load_row(const mhak_table *kernels, test_random *random, element type, int n,
                           float factor)
{
    span from = span_new(random, type, 0, n), to = span_new(random, E_F32, 0, n);
    span want = span_copy(&to);
    span_seal(&from);
    kernels->load_row[type](from.origin, n, factor, to.origin);
    for (int i = 0; i < n; i++)
        span_set(&want, i, (double)(span_get(&from, i) * factor));
    span_check(&to, &want, "type %d, %d elements, factor %a", (int)type, n, (double)factor);
    span_free(&from);
    span_free(&to);
    span_free(&want);
}

static void load_row_scales(const mhak_table *kernels)
{
    test_random random = {test_seed(43)};
    for (int n = 0; n <= 3 * kernels->vector + 1; n++)
        for (int t = 0; t < STORAGE_TYPES; t++) {
            check_load_row(kernels, &random, storage_types[t], n, 1.0f);
            check_load_row(kernels, &random, storage_types[t], n, test_random_normal(&random));
        }
}

/* Rows with gaps between them, which stay as they are. */
static void check_load_rows(const mhak_table *kernels, test_random *random, element type, int rows,
                            int n)
{
    const int stride = n + 3, ldd = n + 5;
    const float factor = test_random_normal(random);
    span from = span_new(random, type, 0, rows > 0 ? (rows - 1) * stride + n : 0);
    span to = span_new(random, E_F32, 0, rows * ldd), want = span_copy(&to);
    span_seal(&from);
    kernels->load_rows[type](from.origin, stride, rows, n, factor, to.origin, ldd);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++)
            span_set(&want, r * ldd + i, (double)(span_get(&from, r * stride + i) * factor));
    span_check(&to, &want, "type %d, %d rows of %d", (int)type, rows, n);
    span_free(&from);
    span_free(&to);
    span_free(&want);
}

static void load_rows_loads_each(const mhak_table *kernels)
{
    test_random random = {test_seed(47)};
    for (int rows = 0; rows <= 5; rows++)
        for (int n = 1; n <= 3 * kernels->vector + 1; n += 5)
            for (int t = 0; t < STORAGE_TYPES; t++)
                check_load_rows(kernels, &random, storage_types[t], rows, n);
}

/* Stores, and compares with a rounding in plain C. */
static void check_stored(const mhak_table *kernels, test_random *random, const span *from,
                         element type, float factor)
{
    const int n = (int)from->high;
    span to = span_new(random, type, 0, n), want = span_copy(&to);
    kernels->store_row[type](from->origin, n, factor, to.origin);
    for (int i = 0; i < n; i++)
        span_set(&want, i, (double)(span_get(from, i) * factor + 0.0f));
    span_check(&to, &want, "type %d, %d elements, factor %a", (int)type, n, (double)factor);
    span_free(&to);
    span_free(&want);
}

static void store_row_scales_and_rounds(const mhak_table *kernels)
{
    test_random random = {test_seed(44)};
    for (int n = 0; n <= 3 * kernels->vector + 1; n++)
        for (int type = E_F32; type <= E_BF16; type++) {
            span from = span_new(&random, E_F32, 0, n);
            check_stored(kernels, &random, &from, (element)type, 1.0f);
            span_fill_normal(&from, &random);
            check_stored(kernels, &random, &from, (element)type, test_random_normal(&random));
            span_free(&from);
        }
}

static void check_store_rows(const mhak_table *kernels, test_random *random, element type, int rows,
                             int n)
{
    enum { MOST = 5 };
    const int stride = n + 3, lds = n + 5;
    float factors[MOST];
    for (int r = 0; r < rows; r++)
        factors[r] = test_random_normal(random);
    span from = span_new(random, E_F32, 0, rows > 0 ? (rows - 1) * lds + n : 0);
    span_fill_normal(&from, random);
    span to = span_new(random, type, 0, rows * stride), want = span_copy(&to);
    span_seal(&from);
    kernels->store_rows[type](from.origin, lds, rows, n, factors, to.origin, stride);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++)
            span_set(&want, r * stride + i, (double)(span_get(&from, r * lds + i) * factors[r]));
    span_check(&to, &want, "type %d, %d rows of %d", (int)type, rows, n);
    span_free(&from);
    span_free(&to);
    span_free(&want);
}

static void store_rows_stores_each(const mhak_table *kernels)
{
    test_random random = {test_seed(48)};
    for (int rows = 0; rows <= 5; rows++)
        for (int n = 1; n <= 3 * kernels->vector + 1; n += 5)
            for (int type = E_F32; type <= E_BF16; type++)
                check_store_rows(kernels, &random, (element)type, rows, n);
}

static void store_row_knows_no_negative_zero(const mhak_table *kernels)
{
    for (int type = E_F32; type <= E_BF16; type++) {
        float from[2 * MHAK_MAX_VECTOR + 1], to[2 * MHAK_MAX_VECTOR + 1];
        const int n = 2 * kernels->vector + 1;
        for (int i = 0; i < n; i++)
            from[i] = i % 2 ? 0.0f : -0.0f;
        memset(to, 0xff, sizeof to);
        kernels->store_row[type](from, n, 1.0f, to);
        const unsigned char *const bytes = (const unsigned char *)to;
        for (size_t i = 0; i < mha_dtype_size((mha_dtype)type) * (size_t)n; i++)
            CHECK(bytes[i] == 0, "type %d: byte %zu is %d", type, i, bytes[i]);
    }
}

static void add_row_adds(const mhak_table *kernels)
{
    test_random random = {test_seed(45)};
    for (int n = 0; n <= 3 * kernels->vector + 1; n++)
        for (int type = E_F32; type <= E_BF16; type++) {
            span from = span_new(&random, (element)type, 0, n);
            span s = span_new(&random, E_F32, 0, n);
            span_fill_normal(&s, &random);
            span want = span_copy(&s);
            span_seal(&from);
            kernels->add_row[type](s.origin, from.origin, n);
            for (int i = 0; i < n; i++)
                span_set(&want, i, (double)(span_get(&want, i) + span_get(&from, i)));
            span_check(&s, &want, "type %d, %d elements", type, n);
            span_free(&from);
            span_free(&s);
            span_free(&want);
        }
}

/* Normal numbers, or any bits, NaN and infinities among them. */
static span finish_input(test_random *random, int n, bool normal)
{
    const span s = span_new(random, E_F32, 0, n);
    if (normal)
        span_fill_normal(&s, random);
    return s;
}

static void check_finish_row(const mhak_table *kernels, test_random *random, element type, int n,
                             bool scaled)
{
    const bool normal = test_random_below(random, 4) != 0;
    span from = finish_input(random, n, normal), scales = finish_input(random, n, normal);
    span bias = finish_input(random, n, normal);
    span to = span_new(random, type, 0, n), want = span_copy(&to);
    span_seal(&from);
    span_seal(&scales);
    span_seal(&bias);
    kernels->finish_row[type](from.origin, n, scaled ? scales.origin : NULL, bias.origin,
                              to.origin);
    for (int i = 0; i < n; i++) {
        const float x = scaled ? span_get(&from, i) * span_get(&scales, i) : span_get(&from, i);
        span_set(&want, i, (double)(x + span_get(&bias, i)));
    }
    span_check(&to, &want, "type %d, %d elements, %s", (int)type, n,
               scaled ? "scaled" : "not scaled");
    span *const all[] = {&from, &scales, &bias, &to, &want};
    for (int i = 0; i < 5; i++)
        span_free(all[i]);
}

static void finish_row_scales_adds_and_rounds(const mhak_table *kernels)
{
    test_random random = {test_seed(48)};
    for (int n = 0; n <= 3 * kernels->vector + 1; n++)
        for (int type = E_F32; type <= E_BF16; type++)
            for (int repeat = 0; repeat < 4; repeat++) {
                check_finish_row(kernels, &random, (element)type, n, false);
                check_finish_row(kernels, &random, (element)type, n, true);
            }
}

static void scale_row_scales(const mhak_table *kernels)
{
    test_random random = {test_seed(49)};
    for (int n = 0; n <= MHAK_BLOCK; n++) {
        const int width = whole_vectors(kernels, n);
        span x = span_new(&random, E_F32, 0, width), y = span_new(&random, E_F32, 0, width);
        if (n % 4) {
            span_fill_normal(&x, &random);
            span_fill_normal(&y, &random);
        }
        span want = span_copy(&x);
        span_seal(&y);
        kernels->scale_row(x.origin, y.origin, n);
        for (int i = 0; i < width; i++)
            span_set(&want, i, (double)(span_get(&want, i) * span_get(&y, i)));
        span_check(&x, &want, "%d elements", n);
        span_free(&x);
        span_free(&y);
        span_free(&want);
    }
}

/* ------------------------------------------------------------ every number */

static void every_i8_loads_exactly(const mhak_table *kernels)
{
    int8_t bits[256];
    float x[256];
    for (int i = 0; i < 256; i++)
        bits[i] = (int8_t)(i - 128);
    kernels->load_row[MHA_I8](bits, 256, 1.0f, x);
    for (int i = 0; i < 256; i++)
        CHECK(same_float(x[i], (float)(i - 128)), "%d is %a", i - 128, (double)x[i]);
}

static void every_half_loads_exactly(const mhak_table *kernels)
{
    static uint16_t bits[VALUES];
    static float x[VALUES];
    for (int i = 0; i < VALUES; i++)
        bits[i] = (uint16_t)i;
    for (int type = E_F16; type <= E_BF16; type++) {
        kernels->load_row[type](bits, VALUES, 1.0f, x);
        for (int i = 0; i < VALUES; i++) {
            const float want = (float)number_get((mha_dtype)type, bits, i);
            CHECK(same_float(x[i], want), "type %d: %#x is %a, not %a", type, (unsigned)i,
                  (double)x[i], (double)want);
        }
    }
}

static void every_half_survives_a_round_trip(const mhak_table *kernels)
{
    static uint16_t bits[VALUES], back[VALUES];
    static float x[VALUES];
    for (int i = 0; i < VALUES; i++)
        bits[i] = (uint16_t)i;
    for (int type = E_F16; type <= E_BF16; type++) {
        kernels->load_row[type](bits, VALUES, 1.0f, x);
        kernels->store_row[type](x, VALUES, 1.0f, back);
        for (int i = 0; i < VALUES; i++) {
            const uint16_t want = i == 0x8000 ? 0 : bits[i];
            CHECK(back[i] == want || (isnan(x[i]) && isnan(number_get((mha_dtype)type, back, i))),
                  "type %d: %#x comes back as %#x", type, (unsigned)i, back[i]);
        }
    }
}

/* On, just below and just above the middle between each number and the next one. */
static void every_tie_goes_to_even(const mhak_table *kernels)
{
    test_random random = {test_seed(46)};
    for (int type = E_F16; type <= E_BF16; type++) {
        span from = span_new(&random, E_F32, 0, 3 * VALUES);
        for (int i = 0; i < VALUES; i++) {
            const uint16_t bits[2] = {(uint16_t)i, (uint16_t)(i + 1)};
            const double low = number_get((mha_dtype)type, bits, 0);
            const double high = number_get((mha_dtype)type, bits, 1);
            /* The last finite number rounds as if the next were a number. */
            const double step = low - number_get((mha_dtype)type, (uint16_t[]){bits[0] - 1}, 0);
            const double middle = isfinite(high) ? low / 2 + high / 2 : low + step / 2;
            span_set(&from, 3 * i, middle);
            span_set(&from, 3 * i + 1, (double)nextafterf((float)middle, INFINITY));
            span_set(&from, 3 * i + 2, (double)nextafterf((float)middle, -INFINITY));
        }
        check_stored(kernels, &random, &from, (element)type, 1.0f);
        span_free(&from);
    }
}

static void floats_round_to_nearest_even(const mhak_table *kernels)
{
    enum { CHUNK = 4096, STEP = 16381 };
    test_random random = {test_seed(47)};
    span from = span_new(&random, E_F32, 0, CHUNK);
    float *const x = from.origin;
    for (uint64_t at = 0; at <= UINT32_MAX; at += (uint64_t)STEP * CHUNK) {
        for (int i = 0; i < CHUNK; i++)
            x[i] = float_of((uint32_t)(at + (uint64_t)i * STEP));
        for (int type = E_F32; type <= E_BF16; type++)
            check_stored(kernels, &random, &from, (element)type, 1.0f);
    }
    span_free(&from);
}

/* The types a slot must have, as bits 1 << type; 0 if `at` lies in no slot with types. */
static unsigned types_of_slot(size_t at, size_t *first)
{
    enum { FLOATS = 1u << E_F32 | 1u << E_F16 | 1u << E_BF16, ALL = FLOATS | 1u << E_I8 };
    static const struct {
        size_t at;
        unsigned types;
    } slots[] = {{offsetof(mhak_table, pack_k), FLOATS},
                 {offsetof(mhak_table, pack_v), ALL},
                 {offsetof(mhak_table, load_row), ALL},
                 {offsetof(mhak_table, load_rows), ALL},
                 {offsetof(mhak_table, store_row), FLOATS},
                 {offsetof(mhak_table, store_rows), FLOATS},
                 {offsetof(mhak_table, product), ALL},
                 {offsetof(mhak_table, product_groups), ALL},
                 {offsetof(mhak_table, finish_row), FLOATS},
                 {offsetof(mhak_table, qk_in_place), FLOATS},
                 {offsetof(mhak_table, pv), ALL},
                 {offsetof(mhak_table, add_row), FLOATS},
                 {offsetof(mhak_table, keep_above), FLOATS}};
    for (size_t n = 0; n < sizeof slots / sizeof slots[0]; n++)
        if (at >= slots[n].at && at < slots[n].at + sizeof((mhak_table *)0)->pack_k) {
            *first = slots[n].at;
            return slots[n].types;
        }
    return 0;
}

/* Everything in the table but its name and sizes is a function. Those of whole numbers, at its end,
 * exist together or not at all. */
static void every_slot_is_filled(const mhak_table *kernels)
{
    const size_t digits = offsetof(mhak_table, digits_rows);
    typedef void (*slot)(void);
    const size_t begin = offsetof(mhak_table, pack_k);
    _Static_assert((sizeof(mhak_table) - offsetof(mhak_table, pack_k)) % sizeof(slot) == 0,
                   "functions up to the end");
    for (size_t at = begin; at < sizeof *kernels; at += sizeof(slot)) {
        slot function;
        size_t first = at;
        const unsigned types = types_of_slot(at, &first);
        const bool wanted = at >= digits ? kernels->digits_rows != NULL
                                         : !types || (types >> (at - first) / sizeof(slot) & 1u);
        memcpy(&function, (const char *)kernels + at, sizeof function);
        CHECK((function != NULL) == wanted, "slot %zu after pack_k is %s",
              (at - begin) / sizeof function, wanted ? "empty" : "not empty");
    }
    CHECK(kernels->vector > 0 && kernels->nr > 0 && kernels->nc > 0, "sizes of panels");
    CHECK(kernels->mr_qk > 0 && kernels->mr_pv > 0 && kernels->mr_in_place > 0, "rows of tiles");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    kernel_report_missing();
    RUN_KERNELS(every_slot_is_filled);
    RUN_KERNELS(pack_k_lays_out_panels);
    RUN_KERNELS(pack_v_lays_out_panels);
    RUN_KERNELS(load_row_scales);
    RUN_KERNELS(load_rows_loads_each);
    RUN_KERNELS(store_row_scales_and_rounds);
    RUN_KERNELS(store_rows_stores_each);
    RUN_KERNELS(store_row_knows_no_negative_zero);
    RUN_KERNELS(add_row_adds);
    RUN_KERNELS(finish_row_scales_adds_and_rounds);
    RUN_KERNELS(scale_row_scales);
    RUN_KERNELS(every_i8_loads_exactly);
    RUN_KERNELS(every_half_loads_exactly);
    RUN_KERNELS(every_half_survives_a_round_trip);
    RUN_KERNELS(every_tie_goes_to_even);
    RUN_KERNELS(floats_round_to_nearest_even);
    return test_end();
}
