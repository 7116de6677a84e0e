/* SPDX-License-Identifier: MIT */
/* Describes a plan in words: mha_plan_explain(). */
#include "core/plan.h"

#include <stdarg.h>
#include <stdio.h>

/* Text that the buffer may cut short; its full length is counted anyway. */
typedef struct text {
    char *at;
    size_t size, length;
} text;

__attribute__((format(printf, 2, 3))) static void say(text *t, const char *format, ...)
{
    const size_t room = t->length < t->size ? t->size - t->length : 0;
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(room ? t->at + t->length : NULL, room, format, list);
    va_end(list);
    t->length += length > 0 ? (size_t)length : 0;
}

static const char *type_name(mha_dtype type)
{
    static const char *const names[] = {"f32", "f16", "bf16", "f64"};
    return names[type];
}

/* A number with a unit that fits its size. */
static void say_amount(text *t, double x, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int n = 0;
    for (; n < 5 && x >= 1000; n++)
        x /= 1000;
    say(t, "%.4g %s%s", x, prefixes[n], unit);
}

static void say_work(text *t, const mha_plan *plan)
{
    const mha_shape *const s = &plan->shape;
    const double pairs = (double)s->B * (double)s->H * (double)s->L * (double)s->S;
    const double keys = (double)s->B * (double)s->G * (double)s->S;
    const double rows = (double)s->B * (double)s->H * (double)s->L;
    const double key = (double)s->D * (double)mha_dtype_size(s->k_type) +
                       (double)s->Dv * (double)mha_dtype_size(s->v_type);
    const double row = (double)s->D * (double)mha_dtype_size(s->q_type) +
                       (double)s->Dv * (double)mha_dtype_size(s->o_type);
    say(t, "work       ");
    say_amount(t, pairs * 2 * (double)(s->D + s->Dv), "FLOP");
    say(t, " if nothing is masked; q, k, v and o are ");
    say_amount(t, keys * key + rows * row, "B\n");
}

static const char *tile_reason(const mha_plan *plan, ptrdiff_t rows)
{
    if (rows <= plan->row_tile)
        return "there are no more";
    return plan->edge ? "low, since the corner of a tile at a mask's edge is wasted"
                      : "with their scores and a panel of K they fill the first-level cache";
}

static const char *packed_words(const mha_plan *plan)
{
    return plan->pairs ? "packed to panels of pairs of bf16, once for all rows of a task"
                       : "packed to f32 panels, once for all rows of a task";
}

static void say_tiles(text *t, const mha_plan *plan)
{
    const mhak_table *const k = plan->kernels;
    const mhai_tiling tiling = mhai_plan_tiling(plan, 1);
    const ptrdiff_t rows = tiling.heads * mhai_min(tiling.rows, plan->shape.L);
    if (plan->pairs)
        say(t, "kernels    %s, and products of pairs of bf16 by %s in panels of %d keys\n", k->name,
            plan->pairs->name, plan->pairs->nr);
    else
        say(t,
            "kernels    %s: q.k in tiles of %d rows x %d keys, p.v in tiles of %d rows x %d "
            "columns\n",
            k->name, k->mr_qk, k->nr, k->mr_pv, k->nc);
    say(t,
        "softmax    online, blocks of %d keys, partial sums of %d keys merged in ascending order: "
        "the bits of a row depend on nothing else\n",
        MHAK_BLOCK, MHAI_SPLIT);
    say(t, "tasks      %td of up to %td rows", tiling.row_tasks, rows);
    if (tiling.heads > 1)
        say(t, " (%td query heads that share keys and values go together: these are read once)",
            tiling.heads);
    say(t, "\ntiles      %td rows at a time: %s\n", mhai_min(rows, plan->row_tile),
        tile_reason(plan, rows));
    say(t, "keys       %s\n",
        mhai_keys_in_place(plan, rows) ? "read in place: too few rows for packing to pay off"
                                       : packed_words(plan));
    say(t, "values     %s\n",
        mhai_values_in_place(plan, rows) ? "read in place: too few rows for packing to pay off"
        : plan->shape.v_type == MHA_F32
            ? "f32 rows with a small stride are read in place, others packed once per task"
            : packed_words(plan));
}

size_t mha_plan_explain(const mha_plan *plan, char *at, size_t size)
{
    if (!plan)
        return 0;
    const mha_shape *const s = &plan->shape;
    text t = {at, at ? size : 0, 0};
    if (t.size)
        at[0] = '\0';
    say(&t, "attention  B=%td H=%td G=%td L=%td S=%td D=%td Dv=%td, q %s k %s v %s o %s\n", s->B,
        s->H, s->G, s->L, s->S, s->D, s->Dv, type_name(s->q_type), type_name(s->k_type),
        type_name(s->v_type), type_name(s->o_type));
    if (plan->empty) {
        say(&t, "nothing to do: B, H, L or D is 0\n");
        return t.length;
    }
    if (plan->kernels)
        say_tiles(&t, plan);
    else
        say(&t, "kernels    none: f64 goes along the reference path, row by row in plain C\n");
    if (plan->arithmetic == MHA_NATIVE)
        say(&t, "arithmetic %s\n", plan->kernels ? plan->arithmetic_words : "exact, in f64");
    say_work(&t, plan);
    say(&t, "workspace  %zu bytes for 1 thread, %zu for 2\n", mhai_run_work_size(plan, 1),
        mhai_run_work_size(plan, 2));
    if (plan->one_pass)
        say(&t, "weights    made of scores that are held until a row is done%s\n",
            plan->one_pass_mean ? "; the heads of a row go one after another, for their mean" : "");
    else if (plan->weights)
        say(&t, "weights    worked out after the rows, for the chosen heads and rows only\n");
    if (plan->statistics)
        say(&t, "statistics gathered while the rows are computed%s\n",
            plan->columns ? ", those of a head one after another: keys receive in that order" : "");
    return t.length;
}
