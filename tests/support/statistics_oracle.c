/* SPDX-License-Identifier: MIT */
/*
 * What the statistics of a row must be, from weights in double precision, and their comparison with
 * what the library wrote. The weights of a call come from problem/oracle.h.
 */
#include "support/statistics_oracle.h"

#include "support/test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5, LIMIT = 8 };

static const double u = 0x1p-24;

/* ------------------------------------------------------------------ sheets */

static void *block(ptrdiff_t count, size_t size)
{
    void *const data = calloc((size_t)count + (count == 0), size);
    if (!data)
        abort();
    return data;
}

/* The parts one after another: address, elements of a head, bytes of an element. */
typedef struct part {
    unsigned char *data;
    ptrdiff_t count;
    size_t size;
} part;

enum { PARTS = 5, PART_COLUMNS = 2 };

static part part_of(const sheet *s, int n)
{
    const mha_statistics *const w = &s->wanted;
    const part parts[PARTS] = {
        {(unsigned char *)w->rows, s->L, sizeof *w->rows},
        {(unsigned char *)w->heads, 1, sizeof *w->heads},
        {(unsigned char *)w->columns, s->S, sizeof *w->columns},
        {(unsigned char *)w->top_keys, s->L * w->top, sizeof *w->top_keys},
        {(unsigned char *)w->top_weights, s->L * w->top, sizeof *w->top_weights}};
    return parts[n];
}

sheet *sheet_new(const mha_shape *shape, ptrdiff_t first_keys, ptrdiff_t top)
{
    sheet *const s = block(1, sizeof *s);
    const ptrdiff_t heads = shape->B * shape->H, rows = heads * shape->L;
    *s = (sheet){.B = shape->B, .H = shape->H, .L = shape->L, .S = shape->S};
    s->wanted = (mha_statistics){.size = sizeof s->wanted, .first_keys = first_keys, .top = top};
    s->wanted.rows = block(rows, sizeof *s->wanted.rows);
    s->wanted.heads = block(heads, sizeof *s->wanted.heads);
    s->wanted.columns = block(heads * shape->S, sizeof *s->wanted.columns);
    s->wanted.top_keys = block(rows * top, sizeof *s->wanted.top_keys);
    s->wanted.top_weights = block(rows * top, sizeof *s->wanted.top_weights);
    s->columns = block(heads * shape->S, sizeof *s->columns);
    s->units = block(heads * shape->S, sizeof *s->units);
    sheet_clear(s);
    return s;
}

void sheet_free(sheet *s)
{
    for (int n = 0; n < PARTS; n++)
        free(part_of(s, n).data);
    free(s->columns);
    free(s->units);
    free(s);
}

void sheet_clear(sheet *s)
{
    for (int n = 0; n < PARTS; n++) {
        const part p = part_of(s, n);
        memset(p.data, PATTERN, (size_t)(s->B * s->H * p.count) * p.size);
    }
    for (ptrdiff_t n = 0; n < s->B * s->H * s->S; n++)
        s->columns[n] = s->units[n] = 0;
}

bool sheets_same_head(const sheet *a, ptrdiff_t b, ptrdiff_t h, const sheet *of, ptrdiff_t of_b,
                      ptrdiff_t of_h)
{
    for (int n = 0; n < PARTS; n++) {
        const part x = part_of(a, n), y = part_of(of, n);
        const size_t mine = (size_t)((b * a->H + h) * x.count) * x.size;
        const size_t theirs = (size_t)((of_b * of->H + of_h) * y.count) * y.size;
        if (memcmp(x.data + mine, y.data + theirs, (size_t)x.count * x.size) != 0)
            return false;
    }
    return true;
}

bool sheets_same(const sheet *a, const sheet *b)
{
    for (ptrdiff_t n = 0; n < a->B * a->H; n++)
        if (!sheets_same_head(a, n / a->H, n % a->H, b, n / a->H, n % a->H))
            return false;
    return true;
}

static bool holds_pattern(const unsigned char *bytes, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (bytes[n] != PATTERN)
            return false;
    return true;
}

bool sheet_untouched(const sheet *s)
{
    for (int n = 0; n < PARTS; n++) {
        const part p = part_of(s, n);
        if (!holds_pattern(p.data, (size_t)(s->B * s->H * p.count) * p.size))
            return false;
    }
    return true;
}

bool sheet_row_untouched(const sheet *s, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    for (int n = 0; n < PARTS; n++) {
        const part p = part_of(s, n);
        const bool by_row = n == 0 || n > PART_COLUMNS;
        const ptrdiff_t each = by_row && s->L > 0 ? p.count / s->L : 0;
        const size_t at = (size_t)((b * s->H + h) * p.count + i * each) * p.size;
        if (!holds_pattern(p.data + at, (size_t)each * p.size))
            return false;
    }
    return true;
}

/* -------------------------------------------------------------------- rows */

/* Sums over the weights of a row. */
typedef struct wanted {
    double entropy, largest, distance, self, previous, next, first, mass;
} wanted;

static double weight_at(const sheet_row *row, ptrdiff_t j)
{
    return j >= 0 && j < row->keys ? row->weights[j] : 0.0;
}

static wanted wanted_of(const sheet *s, const sheet_row *row)
{
    const ptrdiff_t first = s->wanted.first_keys > 0 ? s->wanted.first_keys : 1;
    wanted x = {.self = weight_at(row, row->position),
                .previous = weight_at(row, row->position - 1),
                .next = weight_at(row, row->position + 1)};
    for (ptrdiff_t j = 0; j < row->keys; j++) {
        const double w = row->weights[j];
        x.mass += w;
        x.entropy -= w > 0 ? w * log(w) : 0;
        x.distance += w * fabs((double)(row->position - j));
        x.largest = fmax(x.largest, w);
        x.first += j < first ? w : 0;
    }
    return x;
}

/* How far f32 may be from a sum of `magnitude` over the keys of the row. */
static double room(const sheet_row *row, double magnitude)
{
    return (LIMIT * row->unit + u * (2 + (double)row->keys / 64)) * magnitude + 2 * (double)FLT_MIN;
}

/* Smaller weights may be none. */
static bool counts(double weight)
{
    return weight > 2 * (double)FLT_MIN;
}

static void check_number(const sheet_row *row, const char *name, const char *what, float got,
                         double want, double magnitude)
{
    CHECK(fabs((double)got - want) <= room(row, magnitude),
          "%s: %s of (%td,%td,%td) is %.9g, must be %.9g (%td keys, unit %g)", name, what, row->b,
          row->h, row->i, (double)got, want, row->keys, row->unit);
}

static void check_record(const sheet *s, const sheet_row *row, const wanted *want, const char *name)
{
    const mha_row_statistics *const got = &s->wanted.rows[(row->b * s->H + row->h) * s->L + row->i];
    check_number(row, name, "entropy", got->entropy, want->entropy, want->entropy + want->mass);
    check_number(row, name, "largest", got->largest, want->largest, want->largest);
    check_number(row, name, "distance", got->distance, want->distance, want->distance);
    check_number(row, name, "self", got->self, want->self, want->self);
    check_number(row, name, "previous", got->previous, want->previous, want->previous);
    check_number(row, name, "next", got->next, want->next, want->next);
    check_number(row, name, "first", got->first, want->first, want->first);
    check_number(row, name, "mass", got->mass, want->mass, want->mass);
    if (counts(want->largest))
        check_number(row, name, "the weight of key", got->largest,
                     weight_at(row, (ptrdiff_t)got->key), want->largest);
    else
        CHECK(got->key == -1 || got->largest > 0, "%s: key %lld of nothing", name,
              (long long)got->key);
}

/* ----------------------------------------------------------------- largest */

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

static bool listed_before(const int64_t *keys, ptrdiff_t n)
{
    for (ptrdiff_t m = 0; m < n; m++)
        if (keys[m] == keys[n])
            return true;
    return false;
}

static void check_top(const sheet *s, const sheet_row *row, const char *name)
{
    const ptrdiff_t top = s->wanted.top, at = ((row->b * s->H + row->h) * s->L + row->i) * top;
    const int64_t *const keys = s->wanted.top_keys + at;
    const float *const weights = s->wanted.top_weights + at;
    double *const sorted = block(row->keys, sizeof *sorted);
    memcpy(sorted, row->weights, (size_t)row->keys * sizeof *sorted);
    qsort(sorted, (size_t)row->keys, sizeof *sorted, descending);
    for (ptrdiff_t n = 0; n < top; n++) {
        const double want = n < row->keys ? sorted[n] : 0;
        check_number(row, name, "a listed weight", weights[n], want, want);
        CHECK(n == 0 || weights[n] <= weights[n - 1], "%s: weights ascend", name);
        CHECK((keys[n] < 0) == (weights[n] == 0), "%s: key %lld weighs %g", name,
              (long long)keys[n], (double)weights[n]);
        if (keys[n] < 0)
            continue;
        CHECK(!listed_before(keys, n), "%s: key %lld twice", name, (long long)keys[n]);
        check_number(row, name, "the weight of a listed key", weights[n],
                     weight_at(row, (ptrdiff_t)keys[n]), want);
    }
    free(sorted);
}

void sheet_check_row(sheet *s, const sheet_row *row, const char *name)
{
    const wanted want = wanted_of(s, row);
    check_record(s, row, &want, name);
    if (s->wanted.top > 0)
        check_top(s, row, name);
    for (ptrdiff_t j = 0; j < row->keys; j++) {
        const ptrdiff_t at = (row->b * s->H + row->h) * s->S + j;
        s->columns[at] += row->weights[j];
        s->units[at] += room(row, row->weights[j]) + u * s->columns[at];
    }
}

/* ------------------------------------------------------------------- heads */

static void add_row(mha_head_statistics *sum, const mha_row_statistics *row)
{
    sum->entropy += (double)row->entropy;
    sum->largest += (double)row->largest;
    sum->distance += (double)row->distance;
    sum->self += (double)row->self;
    sum->previous += (double)row->previous;
    sum->next += (double)row->next;
    sum->first += (double)row->first;
    sum->mass += (double)row->mass;
    sum->rows += 1;
}

static void check_means(const sheet *s, ptrdiff_t head, ptrdiff_t queries, const char *name)
{
    mha_head_statistics sum = {0};
    for (ptrdiff_t i = 0; i < queries; i++)
        if (s->wanted.rows[head * s->L + i].key >= 0)
            add_row(&sum, &s->wanted.rows[head * s->L + i]);
    const mha_head_statistics *const got = &s->wanted.heads[head];
    const double n = sum.rows > 0 ? (double)sum.rows : 1;
    CHECK(got->rows == sum.rows && got->entropy == sum.entropy / n &&
              got->largest == sum.largest / n && got->distance == sum.distance / n &&
              got->self == sum.self / n && got->previous == sum.previous / n &&
              got->next == sum.next / n && got->first == sum.first / n && got->mass == sum.mass / n,
          "%s: means of head %td over %lld rows", name, head, (long long)sum.rows);
}

void sheet_check_heads(const sheet *s, const int64_t *queries, const char *name)
{
    for (ptrdiff_t n = 0; n < s->B * s->H; n++) {
        check_means(s, n, queries ? (ptrdiff_t)queries[n / s->H] : s->L, name);
        for (ptrdiff_t j = n * s->S; j < (n + 1) * s->S; j++)
            CHECK(fabs((double)s->wanted.columns[j] - s->columns[j]) <= s->units[j],
                  "%s: key %td of head %td receives %.9g, must be %.9g", name, j - n * s->S, n,
                  (double)s->wanted.columns[j], s->columns[j]);
    }
}

static void check_oracle_row(sheet *s, const attention_call *p, oracle_row *row, sheet_row *at,
                             const char *name)
{
    oracle_row_compute(row, p, at->b, at->h, at->i);
    at->weights = row->weights;
    at->unit = (p->shape.q_type == MHA_F64 ? 0x1p-50 : 0x1p-24) * row->lse_size;
    sheet_check_row(s, at, name);
}

void sheet_check(sheet *s, const attention_call *p, const char *name)
{
    attention_call plain = *p;
    plain.options.weights_mode = MHA_WEIGHTS_SOFTMAX;
    oracle_row row;
    oracle_row_init(&row, &plain);
    int64_t *const queries = block(s->B, sizeof *queries);
    for (ptrdiff_t b = 0; b < s->B; b++) {
        queries[b] = call_queries(p, b);
        for (ptrdiff_t n = 0; n < s->H * s->L; n++) {
            sheet_row at = {.b = b, .h = n / s->L, .i = n % s->L, .keys = call_keys(p, b)};
            at.position = at.i + call_offset(p, b);
            if (at.i < queries[b])
                check_oracle_row(s, &plain, &row, &at, name);
            else
                CHECK(sheet_row_untouched(s, b, at.h, at.i), "%s: row %td is past the length", name,
                      at.i);
        }
    }
    sheet_check_heads(s, queries, name);
    oracle_row_free(&row);
    free(queries);
}
