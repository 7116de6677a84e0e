/* SPDX-License-Identifier: MIT */
#include "support/oracle.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- numbers */

static const struct {
    int digits, lowest; /* bits of the significand, exponent of the smallest normal number */
    double largest;
} formats[] = {
    [MHA_F32] = {24, -126, FLT_MAX},
    [MHA_F16] = {11, -14, 65504.0},
    [MHA_BF16] = {8, -126, 0x1.FEp127},
    [MHA_F64] = {53, -1022, DBL_MAX},
};

/* Distance between neighbouring numbers of a type around `value`. */
static double spacing(mha_dtype type, double value)
{
    const int lowest = formats[type].lowest;
    const int exponent = value == 0 ? lowest : ilogb(value);
    return ldexp(1.0, (exponent > lowest ? exponent : lowest) - (formats[type].digits - 1));
}

double number_round(mha_dtype type, double value)
{
    if (type == MHA_F64 || !isfinite(value) || value == 0)
        return value;
    const double step = spacing(type, value);
    const double rounded = nearbyint(value / step) * step;
    return fabs(rounded) > formats[type].largest ? copysign(INFINITY, value) : rounded;
}

static double decode_f16(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static uint16_t encode_f16(double value)
{
    const double rounded = fabs(number_round(MHA_F16, value));
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return 0x7e00;
    if (isinf(rounded))
        return (uint16_t)(sign | 0x7c00);
    if (rounded < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)(rounded * 0x1p24));
    int exponent;
    const double fraction = frexp(rounded, &exponent);
    return (uint16_t)(sign | ((exponent + 14) << 10) | (int)(fraction * 2048 - 1024));
}

static double decode_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static uint16_t encode_bf16(double value)
{
    if (isnan(value))
        return 0x7fc0;
    const float rounded = (float)number_round(MHA_BF16, value);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(bits >> 16);
}

double number_get(mha_dtype type, const void *data, ptrdiff_t index)
{
    switch (type) {
    case MHA_F32:
        return (double)((const float *)data)[index];
    case MHA_F16:
        return decode_f16(((const uint16_t *)data)[index]);
    case MHA_BF16:
        return decode_bf16(((const uint16_t *)data)[index]);
    case MHA_F64:
        return ((const double *)data)[index];
    case MHA_I8:
        break;
    }
    abort();
}

void number_set(mha_dtype type, void *data, ptrdiff_t index, double value)
{
    switch (type) {
    case MHA_F32:
        ((float *)data)[index] = (float)value;
        return;
    case MHA_F16:
        ((uint16_t *)data)[index] = encode_f16(value);
        return;
    case MHA_BF16:
        ((uint16_t *)data)[index] = encode_bf16(value);
        return;
    case MHA_F64:
        ((double *)data)[index] = value;
        return;
    case MHA_I8:
        break;
    }
    abort();
}

/* ----------------------------------------------------------------- oracle */

ptrdiff_t oracle_groups(const problem *p)
{
    return p->shape.G ? p->shape.G : p->shape.H;
}

ptrdiff_t oracle_value_width(const problem *p)
{
    return p->shape.Dv ? p->shape.Dv : p->shape.D;
}

static ptrdiff_t length_of(ptrdiff_t extent, const int64_t *starts, const int64_t *lengths,
                           ptrdiff_t b)
{
    if (lengths)
        return (ptrdiff_t)lengths[b];
    return starts ? (ptrdiff_t)(starts[b + 1] - starts[b]) : extent;
}

ptrdiff_t oracle_queries(const problem *p, ptrdiff_t b)
{
    return length_of(p->shape.L, p->options.q_starts, p->options.q_lengths, b);
}

ptrdiff_t oracle_keys(const problem *p, ptrdiff_t b)
{
    return length_of(p->shape.S, p->options.k_starts, p->options.k_lengths, b);
}

ptrdiff_t oracle_offset(const problem *p, ptrdiff_t b)
{
    const mha_options *o = &p->options;
    switch (o->position) {
    case MHA_POSITION_UNSET:
    case MHA_POSITION_TOP_LEFT:
        return 0;
    case MHA_POSITION_BOTTOM_RIGHT:
        return oracle_keys(p, b) - oracle_queries(p, b);
    case MHA_POSITION_OFFSET:
        return o->offsets ? (ptrdiff_t)o->offsets[b] : o->offset;
    }
    abort();
}

ptrdiff_t oracle_row_index(const mha_view *view, const int64_t *starts, ptrdiff_t b, ptrdiff_t h,
                           ptrdiff_t i)
{
    const ptrdiff_t batch = starts ? (ptrdiff_t)starts[b] * view->sl : b * view->sb;
    return batch + h * view->sh + i * view->sl;
}

static mha_view view_of(const mha_out *out)
{
    return (mha_view){out->data, out->sb, out->sh, out->sl};
}

static ptrdiff_t cell(const mha_view *view, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return b * view->sb + h * view->sh + i * view->sl + j;
}

static bool byte_at(const mha_view *mask, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    return ((const unsigned char *)mask->data)[cell(mask, b, h, i, j)] != 0;
}

/* Element of an additive mask or bias; 0 where none is given. */
static double addend(const mha_view *view, mha_dtype type, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i,
                     ptrdiff_t j)
{
    return view->data ? number_get(type, view->data, cell(view, b, h, i, j)) : 0.0;
}

static bool same_document(const mha_options *o, ptrdiff_t b, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t q_base = o->q_starts ? (ptrdiff_t)o->q_starts[b] : b * o->q_documents_sb;
    const ptrdiff_t k_base = o->k_starts ? (ptrdiff_t)o->k_starts[b] : b * o->k_documents_sb;
    return o->q_documents[q_base + i] == o->k_documents[k_base + j];
}

static bool in_window(const mha_options *o, ptrdiff_t position, ptrdiff_t j)
{
    const bool left = o->window_left == -1 || j >= position - o->window_left;
    const bool right = o->window_right == -1 || j <= position + o->window_right;
    return left && right;
}

bool oracle_allows(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j)
{
    const mha_options *o = &p->options;
    const ptrdiff_t position = i + oracle_offset(p, b);
    if (j >= oracle_keys(p, b))
        return false;
    if ((o->flags & MHA_CAUSAL) && j > position)
        return false;
    if ((o->flags & MHA_WINDOW) && !in_window(o, position, j))
        return false;
    if (o->attend_mask.data && !byte_at(&o->attend_mask, b, h, i, j))
        return false;
    if (o->ignore_mask.data && byte_at(&o->ignore_mask, b, h, i, j))
        return false;
    if (o->q_documents && !same_document(o, b, i, j))
        return false;
    return addend(&o->add_mask, o->add_mask_type, b, h, i, j) != -INFINITY &&
           addend(&o->bias, o->bias_type, b, h, i, j) != -INFINITY;
}

static double *doubles(ptrdiff_t count)
{
    double *const array = calloc((size_t)count + 1, sizeof *array);
    if (!array)
        abort();
    return array;
}

void oracle_row_init(oracle_row *row, const problem *p)
{
    row->o = doubles(oracle_value_width(p));
    row->o_unit = doubles(oracle_value_width(p));
    row->weights = doubles(p->shape.S);
    row->weights_unit = doubles(p->shape.S);
    row->scores = doubles(p->shape.S);
    row->sizes = doubles(p->shape.S);
    row->q = doubles(p->shape.D);
    row->k = doubles(p->shape.D);
}

void oracle_row_free(oracle_row *row)
{
    double *const arrays[] = {row->o,      row->o_unit, row->weights, row->weights_unit,
                              row->scores, row->sizes,  row->q,       row->k};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        free(arrays[a]);
}

static mha_dtype work_type(const problem *p)
{
    return p->shape.q_type == MHA_F64 ? MHA_F64 : MHA_F32;
}

/* For f64 shapes a limit of 8 units then means 1e-12. */
static double roundoff(const problem *p)
{
    return work_type(p) == MHA_F64 ? 1e-12 / 8 : 0x1p-24;
}

static double smallest(const problem *p)
{
    return work_type(p) == MHA_F64 ? DBL_MIN : (double)FLT_MIN;
}

static void load(double *to, mha_dtype type, const void *data, ptrdiff_t index, ptrdiff_t count)
{
    for (ptrdiff_t c = 0; c < count; c++)
        to[c] = number_get(type, data, index + c);
}

/* scale * q.k of key j; *size becomes scale * sum |q_c k_c|. */
static double raw_score(oracle_row *row, const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t j,
                        double *size)
{
    const ptrdiff_t D = p->shape.D;
    const ptrdiff_t g = h / (p->shape.H / oracle_groups(p));
    const double scale = p->options.scale != 0 ? (double)p->options.scale : 1 / sqrt((double)D);
    load(row->k, p->shape.k_type, p->k.data, oracle_row_index(&p->k, p->options.k_starts, b, g, j),
         D);
    double dot = 0, sum = 0;
    for (ptrdiff_t c = 0; c < D; c++) {
        dot += row->q[c] * row->k[c];
        sum += fabs(row->q[c] * row->k[c]);
    }
    *size = sum * fabs(scale);
    return dot * scale;
}

static mha_head_mode mode_of(const problem *p, ptrdiff_t h)
{
    return p->options.head_modes ? (mha_head_mode)p->options.head_modes[h] : MHA_HEAD_NORMAL;
}

static double capped(const problem *p, double score)
{
    const double cap = (double)p->options.softcap;
    return cap != 0 ? cap * tanh(score / cap) : score;
}

/* Everything added to a score; *size grows by the magnitudes. */
static double bias_of(const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i, ptrdiff_t j,
                      double *size)
{
    const mha_options *o = &p->options;
    const double mask = addend(&o->add_mask, o->add_mask_type, b, h, i, j);
    const double bias = addend(&o->bias, o->bias_type, b, h, i, j);
    const double distance = fabs((double)(i + oracle_offset(p, b) - j));
    const double alibi = o->alibi_slopes ? -(double)o->alibi_slopes[h] * distance : 0.0;
    *size += fabs(mask) + fabs(bias) + fabs(alibi);
    return mask + bias + alibi;
}

/* Fill scores, sizes and, for the modes before the softmax, weights. */
static void compute_scores(oracle_row *row, const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const mha_weights_mode mode = p->options.weights_mode;
    const bool show = p->options.weights.data != NULL;
    const bool show_masked = show && (mode == MHA_WEIGHTS_RAW || mode == MHA_WEIGHTS_SOFTCAP);
    const bool normal = mode_of(p, h) == MHA_HEAD_NORMAL;
    const double u = roundoff(p);
    row->attended = 0;
    for (ptrdiff_t j = 0; j < p->shape.S; j++) {
        const bool real = j < oracle_keys(p, b);
        const bool allowed = oracle_allows(p, b, h, i, j);
        double raw = 0, cap = 0, size = 0;
        if (normal && (allowed || (show_masked && real))) {
            raw = raw_score(row, p, b, h, j, &size);
            cap = capped(p, raw);
        }
        row->weights_unit[j] = u * (1 + size);
        row->scores[j] = !allowed ? -INFINITY : normal ? cap + bias_of(p, b, h, i, j, &size) : 0;
        row->sizes[j] = allowed ? size : -1;
        row->attended += allowed;
        if (mode == MHA_WEIGHTS_BIAS)
            row->weights_unit[j] = u * (1 + size);
        row->weights[j] = mode == MHA_WEIGHTS_RAW       ? raw
                          : mode == MHA_WEIGHTS_SOFTCAP ? cap
                                                        : row->scores[j];
    }
}

static bool attends(const oracle_row *row, ptrdiff_t j)
{
    return !(row->sizes[j] < 0);
}

/* Turn scores into probabilities; returns the size of the row. A row that attends to scores of
 * -inf only is NaN, as -inf - -inf says. */
static double softmax(oracle_row *row, const problem *p, ptrdiff_t h)
{
    const ptrdiff_t S = p->shape.S;
    const bool sinks = p->options.sinks && mode_of(p, h) == MHA_HEAD_NORMAL;
    const double sink = sinks ? (double)p->options.sinks[h] : -INFINITY;
    double size = isfinite(sink) ? fabs(sink) : 0, top = sink, sum;
    for (ptrdiff_t j = 0; j < S; j++) {
        if (attends(row, j)) {
            top = fmax(top, row->scores[j]);
            /* A score of -inf weighs nothing, and its size would tell nothing. */
            size = fmax(size, isfinite(row->sizes[j]) ? row->sizes[j] : 0);
        }
    }
    sum = sink == -INFINITY ? 0 : exp(sink - top);
    for (ptrdiff_t j = 0; j < S; j++) {
        row->scores[j] = attends(row, j) ? exp(row->scores[j] - top) : 0;
        sum += row->scores[j];
    }
    row->lse = top + log(sum);
    for (ptrdiff_t j = 0; j < S; j++)
        row->scores[j] = attends(row, j) ? row->scores[j] / sum : 0;
    return 1 + size;
}

/* A head that gives a mean has no weights. */
static void give_mean(oracle_row *row, const problem *p, ptrdiff_t h, bool show)
{
    const ptrdiff_t Dv = oracle_value_width(p);
    for (ptrdiff_t c = 0; c < Dv; c++)
        row->o[c] = (double)p->options.head_means[h * Dv + c];
    for (ptrdiff_t j = 0; show && j < p->shape.S; j++)
        row->weights[j] = row->weights_unit[j] = 0;
}

static void weigh_values(oracle_row *row, const problem *p, ptrdiff_t b, ptrdiff_t h, double size)
{
    const ptrdiff_t Dv = oracle_value_width(p);
    const ptrdiff_t g = h / (p->shape.H / oracle_groups(p));
    for (ptrdiff_t j = 0; j < p->shape.S; j++) {
        if (!attends(row, j))
            continue;
        const ptrdiff_t at = oracle_row_index(&p->v, p->options.k_starts, b, g, j);
        for (ptrdiff_t c = 0; c < Dv; c++) {
            const double value = number_get(p->shape.v_type, p->v.data, at + c);
            row->o[c] += row->scores[j] * value;
            row->o_unit[c] += roundoff(p) * size * row->scores[j] * fabs(value);
            row->o_unit[c] += smallest(p) * fabs(value);
        }
    }
}

void oracle_row_compute(oracle_row *row, const problem *p, ptrdiff_t b, ptrdiff_t h, ptrdiff_t i)
{
    const ptrdiff_t Dv = oracle_value_width(p);
    load(row->q, p->shape.q_type, p->q.data, oracle_row_index(&p->q, p->options.q_starts, b, h, i),
         p->shape.D);
    compute_scores(row, p, b, h, i);
    memset(row->o, 0, (size_t)Dv * sizeof *row->o);
    memset(row->o_unit, 0, (size_t)Dv * sizeof *row->o_unit);
    row->lse = -INFINITY;
    row->lse_unit = 0;
    const bool show = p->options.weights_mode == MHA_WEIGHTS_SOFTMAX;
    if (row->attended == 0) {
        for (ptrdiff_t j = 0; show && j < p->shape.S; j++)
            row->weights[j] = row->weights_unit[j] = 0;
        return;
    }
    const double size = softmax(row, p, h);
    row->lse_unit = roundoff(p) * (size + fabs(row->lse));
    if (mode_of(p, h) == MHA_HEAD_MEAN) {
        give_mean(row, p, h, show);
        return;
    }
    for (ptrdiff_t j = 0; show && j < p->shape.S; j++) {
        row->weights[j] = row->scores[j];
        row->weights_unit[j] =
            attends(row, j) ? roundoff(p) * size * row->scores[j] + smallest(p) : 0;
    }
    weigh_values(row, p, b, h, size);
}

/* ------------------------------------------------------------- comparison */

double oracle_error(mha_dtype type, mha_dtype work, double got, double want, double unit)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (got == want || (isinf(got) && got == number_round(type, want)))
        return 0;
    if (isinf(want))
        return INFINITY;
    const bool narrow = type != work;
    if (isinf(got) && (!narrow || (got > 0) != (want > 0)))
        return INFINITY;
    /* The number that would follow the largest one rounds to infinity. */
    const double largest = formats[type].largest;
    const double real = isinf(got) ? copysign(largest + spacing(type, largest), got) : got;
    const double nearer = fmin(fabs(real), fabs(want));
    const double free_error = narrow ? spacing(type, nearer) / 2 : 0;
    const double error = fabs(real - want) - free_error;
    return error <= 0 ? 0 : unit > 0 ? error / unit : INFINITY;
}

static void report(comparison *result, double error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(comparison *result, double error, const char *format, ...)
{
    if (error > result->worst)
        result->worst = error;
    if (error <= result->limit || result->failures++ > 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->first, sizeof result->first, format, arguments);
    va_end(arguments);
}

static void compare_row(const problem *p, const oracle_row *row, ptrdiff_t b, ptrdiff_t h,
                        ptrdiff_t i, comparison *result)
{
    const mha_view o = view_of(&p->o);
    const mha_view lse = view_of(&p->options.lse);
    const ptrdiff_t at = oracle_row_index(&o, p->options.q_starts, b, h, i);
    for (ptrdiff_t c = 0; c < oracle_value_width(p); c++) {
        const double got = number_get(p->shape.o_type, o.data, at + c);
        const double error =
            oracle_error(p->shape.o_type, work_type(p), got, row->o[c], row->o_unit[c]);
        report(result, error, "o(b%td,h%td,i%td,c%td) is %.9g, must be %.9g (E %.3g, %td keys)", b,
               h, i, c, got, row->o[c], error, row->attended);
    }
    if (lse.data) {
        const mha_dtype type = work_type(p);
        const ptrdiff_t index = oracle_row_index(&lse, p->options.q_starts, b, h, i);
        const double got = number_get(type, lse.data, index);
        const double error = oracle_error(type, type, got, row->lse, row->lse_unit);
        report(result, error, "lse(b%td,h%td,i%td) is %.9g, must be %.9g (E %.3g, %td keys)", b, h,
               i, got, row->lse, error, row->attended);
    }
}

static ptrdiff_t chosen(const int64_t *list, ptrdiff_t index)
{
    return list ? (ptrdiff_t)list[index] : index;
}

/* Compare row `row` of the weights, n-th of the heads, with want[S] and unit[S]. */
static void compare_weights_row(const problem *p, const double *want, const double *unit,
                                ptrdiff_t b, ptrdiff_t n, ptrdiff_t r, comparison *result)
{
    const mha_out *w = &p->options.weights;
    for (ptrdiff_t j = 0; j < p->shape.S; j++) {
        const ptrdiff_t at = b * w->sb + n * w->sh + r * w->sl + j;
        const double got = number_get(p->options.weights_type, w->data, at);
        const double error =
            oracle_error(p->options.weights_type, work_type(p), got, want[j], unit[j]);
        report(result, error, "weights(b%td,n%td,r%td,j%td) is %.9g, must be %.9g (E %.3g)", b, n,
               r, j, got, want[j], error);
    }
}

/* Mean over the chosen heads of the weights of query i. */
static void compare_average(const problem *p, oracle_row *row, ptrdiff_t b, ptrdiff_t r,
                            ptrdiff_t heads, comparison *result)
{
    const ptrdiff_t S = p->shape.S;
    double *const want = doubles(S), *const unit = doubles(S);
    for (ptrdiff_t n = 0; n < heads; n++) {
        oracle_row_compute(row, p, b, chosen(p->options.weights_heads, n),
                           chosen(p->options.weights_rows, r));
        for (ptrdiff_t j = 0; j < S; j++) {
            want[j] += row->weights[j] / (double)heads;
            unit[j] += row->weights_unit[j] / (double)heads;
        }
    }
    compare_weights_row(p, want, unit, b, 0, r, result);
    free(want);
    free(unit);
}

static void compare_weights(const problem *p, oracle_row *row, ptrdiff_t b, comparison *result)
{
    const mha_options *o = &p->options;
    const ptrdiff_t heads = o->weights_heads ? o->weights_head_count : p->shape.H;
    const ptrdiff_t rows = o->weights_rows ? o->weights_row_count : p->shape.L;
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (chosen(o->weights_rows, r) >= oracle_queries(p, b))
            continue;
        if (o->flags & MHA_AVERAGE_WEIGHTS) {
            compare_average(p, row, b, r, heads, result);
            continue;
        }
        for (ptrdiff_t n = 0; n < heads; n++) {
            oracle_row_compute(row, p, b, chosen(o->weights_heads, n), chosen(o->weights_rows, r));
            compare_weights_row(p, row->weights, row->weights_unit, b, n, r, result);
        }
    }
}

void oracle_compare(const problem *p, comparison *result)
{
    oracle_row row;
    result->worst = 0;
    result->failures = 0;
    result->first[0] = '\0';
    if (p->shape.D == 0)
        return;
    oracle_row_init(&row, p);
    for (ptrdiff_t b = 0; b < p->shape.B; b++) {
        for (ptrdiff_t h = 0; h < p->shape.H; h++) {
            for (ptrdiff_t i = 0; i < oracle_queries(p, b); i++) {
                oracle_row_compute(&row, p, b, h, i);
                compare_row(p, &row, b, h, i, result);
            }
        }
        if (p->options.weights.data)
            compare_weights(p, &row, b, result);
    }
    oracle_row_free(&row);
}
