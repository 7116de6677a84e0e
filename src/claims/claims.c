/* SPDX-License-Identifier: MIT */
/*
 * The table of claims, and what all of them use: rows of text and numbers are collected in a proof,
 * an assertion compares a number with its bound, and the first call of the library that fails voids
 * the proof. Each claim is in a file of its own, prove_*.c; command_prove.c prints the rows.
 */
#include "claims/claims.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const claim claims[CLAIM_COUNT] = {
    {"scores", "without projections no score exceeds both tokens' own scores", prove_scores},
    {"pointwise", "a head whose tokens attend to themselves is a 1x1 convolution", prove_pointwise},
    {"convolution", "K^2 heads compute any K x K convolution, two any of one channel",
     prove_convolution},
    {"places", "one number per token: one head cannot read two places, two can", prove_places},
    {"cost", "parameters and flops do not grow with h at d = E/h", prove_cost},
    {"fold", "W_V and W_O fold into one matrix if there is one head", prove_fold},
    {"heads", "several heads are better than one where the task needs them", prove_heads},
    {"data", "attention needs more data than a convolution that fits the task", prove_data},
};

void proof_free(proof *p)
{
    free(p->rows);
    *p = (proof){.seed = p->seed};
}

/* Appends a row with the formatted text. Returns NULL if out of memory, and voids the proof.
 */
static proof_row *add_row(proof *p, proof_kind kind, const char *format, va_list list)
{
    proof_row *const rows = realloc(p->rows, (size_t)(p->count + 1) * sizeof *rows);
    if (rows == NULL) {
        proof_ok(p, MHA_ERR_MEMORY);
        return NULL;
    }
    p->rows = rows;
    proof_row *const row = &rows[p->count++];
    *row = (proof_row){.kind = kind, .holds = true};
    vsnprintf(row->text, sizeof row->text, format, list);
    return row;
}

void proof_say(proof *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_row(p, PROOF_SAY, format, list);
    va_end(list);
}

void proof_note(proof *p, double value, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    proof_row *const row = add_row(p, PROOF_NOTE, format, list);
    va_end(list);
    if (row != NULL)
        row->value = value;
}

/* Compares the value with the bound, in the direction that the kind of the row says. A comparison
 * with NaN is false, so that NaN never holds. */
static void judge(proof *p, proof_row *row, double value, double bound)
{
    if (row == NULL)
        return;
    row->value = value;
    row->bound = bound;
    row->holds = row->kind == PROOF_AT_MOST ? value <= bound : value >= bound;
    p->asserted++;
    p->failed += !row->holds;
}

void proof_at_most(proof *p, double value, double bound, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    judge(p, add_row(p, PROOF_AT_MOST, format, list), value, bound);
    va_end(list);
}

void proof_at_least(proof *p, double value, double bound, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    judge(p, add_row(p, PROOF_AT_LEAST, format, list), value, bound);
    va_end(list);
}

bool proof_ok(proof *p, mha_status status)
{
    if (p->status == MHA_OK)
        p->status = status;
    return status == MHA_OK;
}

void *proof_calloc(proof *p, size_t size)
{
    void *const room = calloc(1, size);
    if (room == NULL)
        proof_ok(p, MHA_ERR_MEMORY);
    return room;
}

double proof_larger(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

double proof_smaller(double a, double b)
{
    return -proof_larger(-a, -b);
}

static double dot(const double *a, const double *b, ptrdiff_t count)
{
    double sum = 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

/* Subtracts from x its component along `direction`. */
static void remove_component(double *x, const double *direction, ptrdiff_t count)
{
    const double square = dot(direction, direction, count);
    const double factor = square > 0.0 ? dot(x, direction, count) / square : 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] -= factor * direction[n];
}

/* The modified Gram-Schmidt method: each column loses its components along the columns before it.
 */
double proof_unexplained(double *columns, int count, double *target, ptrdiff_t rows)
{
    for (int c = 0; c < count; c++) {
        for (int before = 0; before < c; before++)
            remove_component(columns + c * rows, columns + before * rows, rows);
        remove_component(target, columns + c * rows, rows);
    }
    return dot(target, target, rows);
}

bool proof_holds(const proof *p)
{
    return p->status == MHA_OK && p->failed == 0 && p->asserted > 0;
}
