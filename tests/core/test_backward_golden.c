/* SPDX-License-Identifier: MIT */
/*
 * The backward pass against PyTorch's autograd: every tests/golden/backward/NAME.golden is a test
 * of its own. The library and the oracle of the other tests must both give what is written there.
 * How the files are made is described in tests/golden/make_backward_goldens.py.
 */
#include "support/backward_oracle.h"
#include "support/golden_file.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static mha_shape shape_of(const golden *g)
{
    mha_shape s = {
        .B = golden_extent(g, "B"),
        .H = golden_extent(g, "H"),
        .G = golden_extent(g, "G"),
        .L = golden_extent(g, "L"),
        .S = golden_extent(g, "S"),
        .D = golden_extent(g, "D"),
        .Dv = golden_extent(g, "Dv"),
    };
    s.G = s.G ? s.G : s.H;
    s.Dv = s.Dv ? s.Dv : s.D;
    return s;
}

static mha_options options_of(const golden *g)
{
    mha_options o = {
        .size = sizeof o,
        .flags = golden_extent(g, "causal") ? MHA_CAUSAL : 0,
        .scale = (float)golden_number(g, "scale"),
        .softcap = (float)golden_number(g, "softcap"),
        .attend_mask = golden_mask(g, "attend_mask"),
        .bias = golden_mask(g, "bias"),
        .alibi_slopes = golden_data(g, "alibi"),
        .sinks = golden_data(g, "sinks"),
    };
    if (golden_extent(g, "window_left")) {
        o.flags |= MHA_WINDOW;
        o.window_left = golden_extent(g, "window_left") - 1;
        o.window_right = golden_extent(g, "window_right") - 1;
    }
    return o;
}

/* Room for as many numbers as the entry has; NULL where there is no such entry. */
static float *room_for(const golden *g, const char *name)
{
    const golden_entry *const e = golden_find(g, name);
    float *const numbers = e ? calloc(e->count, sizeof *numbers) : NULL;
    if (e && !numbers)
        abort();
    return numbers;
}

/* The answers by name, and what came out instead. */
enum { ANSWERS = 7 };
static const char *const names[ANSWERS] = {"output", "d_query", "d_key",  "d_value",
                                           "d_bias", "d_alibi", "d_sinks"};
typedef struct results {
    float *of[ANSWERS];
} results;

static void compare(const golden *g, const char *source, int answer, double got, size_t at)
{
    const golden_entry *const e = golden_find(g, names[answer]);
    const float *const want = e->data;
    double largest = 1e-3;
    for (size_t n = 0; n < e->count; n++)
        largest = fabs((double)want[n]) > largest ? fabs((double)want[n]) : largest;
    CHECK(fabs(got - (double)want[at]) <= 4e-6 * largest, "%s: %s[%zu] is %.9g, not %.9g", source,
          names[answer], at, got, (double)want[at]);
}

/* Forward and backward through the library. */
static void run_library(const golden *g, attention_call *p, results *r)
{
    const mha_shape *const s = &p->shape;
    const mha_view bias = p->options.bias;
    p->o = mha_out_bhld(r->of[0], s->H, s->L, s->Dv);
    mha_status status = mha_attention(s, p->q, p->k, p->v, p->o, &p->options, NULL);
    const mha_gradients gradients = {
        .size = sizeof gradients,
        .d_o = mha_view_bhld(golden_data(g, "d_output"), s->H, s->L, s->Dv),
        .d_lse = mha_view_bhld(golden_data(g, "d_lse"), s->H, s->L, 1),
        .d_q = mha_out_bhld(r->of[1], s->H, s->L, s->D),
        .d_k = mha_out_bhld(r->of[2], s->G, s->S, s->D),
        .d_v = mha_out_bhld(r->of[3], s->G, s->S, s->Dv),
        .d_bias = {r->of[4], bias.sb, bias.sh, bias.sl},
        .d_alibi_slopes = r->of[5],
        .d_sinks = r->of[6],
    };
    const mha_view o = mha_view_bhld(r->of[0], s->H, s->L, s->Dv);
    if (status == MHA_OK)
        status =
            mha_attention_backward(s, p->q, p->k, p->v, o, &p->options, &gradients, NULL, 0, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    for (int n = 0; n < ANSWERS; n++)
        for (size_t at = 0; r->of[n] && at < golden_find(g, names[n])->count; at++)
            compare(g, "library", n, (double)r->of[n][at], at);
}

/* The oracle's gradients of biases are per pair: sum what the golden shares. */
static void compare_bias(const golden *g, const gradient *pairs)
{
    const golden_entry *const e = golden_find(g, "d_bias");
    const mha_view view = golden_mask(g, "d_bias");
    if (!e)
        return;
    double *const sums = calloc(e->count, sizeof *sums);
    if (!sums)
        abort();
    const ptrdiff_t *const n = pairs->n;
    for (ptrdiff_t at = 0; at < gradient_count(pairs); at++) {
        const ptrdiff_t j = at % n[3], i = at / n[3] % n[2], h = at / n[3] / n[2] % n[1];
        const ptrdiff_t b = at / n[3] / n[2] / n[1];
        sums[b * view.sb + h * view.sh + i * view.sl + j] += pairs->x[at];
    }
    for (size_t at = 0; at < e->count; at++)
        compare(g, "oracle", 4, sums[at], at);
    free(sums);
}

static void run_oracle(const golden *g, const attention_call *p)
{
    static const gradient_id ids[ANSWERS] = {GRAD_COUNT, GRAD_Q,     GRAD_K,    GRAD_V,
                                             GRAD_BIAS,  GRAD_ALIBI, GRAD_SINKS};
    const mha_shape *const s = &p->shape;
    const backward_problem back = {
        .forward = *p,
        .d_o = mha_view_bhld(golden_data(g, "d_output"), s->H, s->L, s->Dv),
        .d_lse = mha_view_bhld(golden_data(g, "d_lse"), s->H, s->L, 1),
    };
    backward_answer answer = backward_oracle(&back);
    compare_bias(g, &answer.of[GRAD_BIAS]);
    for (int n = 1; n < ANSWERS; n++)
        for (ptrdiff_t at = 0; ids[n] != GRAD_BIAS && golden_find(g, names[n]) &&
                               at < gradient_count(&answer.of[ids[n]]);
             at++)
            compare(g, "oracle", n, answer.of[ids[n]].x[at], (size_t)at);
    backward_answer_free(&answer);
}

static void run_golden(void)
{
    golden g;
    if (CHECK(golden_read(&g, golden_path, "mha-backward-golden 1"), "%s cannot be read",
              golden_path)) {
        const mha_shape s = shape_of(&g);
        attention_call p = {
            .shape = s,
            .q = mha_view_bhld(golden_data(&g, "query"), s.H, s.L, s.D),
            .k = mha_view_bhld(golden_data(&g, "key"), s.G, s.S, s.D),
            .v = mha_view_bhld(golden_data(&g, "value"), s.G, s.S, s.Dv),
            .options = options_of(&g),
        };
        results r;
        float *const lse = calloc((size_t)(s.B * s.H * s.L) + 1, sizeof *lse);
        p.options.lse = mha_out_bhld(lse, s.H, s.L, 1);
        for (int n = 0; n < ANSWERS; n++)
            r.of[n] = room_for(&g, names[n]);
        run_oracle(&g, &p);
        run_library(&g, &p, &r);
        for (int n = 0; n < ANSWERS; n++)
            free(r.of[n]);
        free(lse);
    }
    golden_free(&g);
}

static int golden_count;

static void files_are_there(void)
{
    CHECK(golden_count >= 16, "%d golden files in %s", golden_count, MHA_GOLDEN_FOLDER);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    golden_count = golden_run_all(MHA_GOLDEN_FOLDER "/backward", run_golden);
    RUN(files_are_there);
    return test_end();
}
