/* SPDX-License-Identifier: MIT */
#include "claims/claims.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const claim claims[CLAIM_COUNT] = {
    {"scores", "without projections no score beats both tokens' own", prove_scores},
    {"pointwise", "one head that looks at itself is a 1x1 convolution", prove_pointwise},
    {"convolution", "h heads are a sqrt(h) x sqrt(h) convolution", prove_convolution},
    {"places", "one head cannot read two places apart, two heads can", prove_places},
    {"cost", "parameters and flops do not grow with h at d = E/h", prove_cost},
    {"fold", "W_V and W_O are one matrix if there is one head", prove_fold},
};

void proof_free(proof *p)
{
    free(p->rows);
    *p = (proof){.seed = p->seed};
}

/* A new row, its text from `format`. NULL: no memory, which voids the proof. */
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

void *proof_room(proof *p, size_t size)
{
    void *const room = calloc(1, size);
    if (room == NULL)
        proof_ok(p, MHA_ERR_MEMORY);
    return room;
}

double proof_worse(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

static double dot(const double *a, const double *b, ptrdiff_t count)
{
    double sum = 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        sum += a[n] * b[n];
    return sum;
}

/* Takes from x its part along `direction`. */
static void take_part(double *x, const double *direction, ptrdiff_t count)
{
    const double square = dot(direction, direction, count);
    const double part = square > 0.0 ? dot(x, direction, count) / square : 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        x[n] -= part * direction[n];
}

/* By Gram and Schmidt, as modified: each column loses its part along those before it. */
double proof_unexplained(double *columns, int count, double *target, ptrdiff_t rows)
{
    for (int c = 0; c < count; c++) {
        for (int before = 0; before < c; before++)
            take_part(columns + c * rows, columns + before * rows, rows);
        take_part(target, columns + c * rows, rows);
    }
    return dot(target, target, rows);
}

bool proof_holds(const proof *p)
{
    return p->status == MHA_OK && p->failed == 0 && p->asserted > 0;
}
