/* SPDX-License-Identifier: MIT */
/*
 * The backward pass of layers against PyTorch's autograd: every tests/golden/layer_backward/
 * NAME.golden is a test of its own. The library and the oracle of the other tests must both give
 * what is written there. How the files are made is described in
 * tests/golden/make_layer_backward_goldens.py.
 */
#include "support/layer_backward_oracle.h"
#include "support/layer_golden.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ where to ---- */

/* A block for every answer of the golden, by the number of its entry. */
typedef struct results {
    float *of[GOLDEN_ENTRIES];
} results;

static bool is_answer(const golden_entry *e)
{
    return e->count > 0 && strncmp(e->name, "d_", 2) == 0 && strcmp(e->name, "d_output") != 0;
}

static results results_new(const golden *g)
{
    results r = {0};
    for (int n = 0; n < g->count; n++)
        if (is_answer(&g->entries[n]) && !(r.of[n] = calloc(g->entries[n].count, sizeof(float))))
            abort();
    return r;
}

static void results_free(results *r)
{
    for (int n = 0; n < GOLDEN_ENTRIES; n++)
        free(r->of[n]);
}

static float *room_for(const golden *g, const results *r, const char *name)
{
    const golden_entry *const e = golden_find(g, name);
    return e ? r->of[e - g->entries] : NULL;
}

static mha_out rows_for(const golden *g, const results *r, const char *name, ptrdiff_t rows,
                        ptrdiff_t width)
{
    const mha_view view = layer_golden_rows(g, name, rows, width);
    return (mha_out){room_for(g, r, name), view.sb, view.sh, view.sl};
}

static mha_matrix_out matrix_for(const golden *g, const results *r, const char *name)
{
    const golden_entry *const e = golden_find(g, name);
    if (!e)
        return (mha_matrix_out){0};
    const bool transposed = golden_extent(g, "conv");
    return (mha_matrix_out){room_for(g, r, name), transposed ? 1 : e->extents[1],
                            transposed ? e->extents[1] : 1};
}

/* The part of a fused matrix from output `first` on. */
static mha_matrix_out matrix_from(mha_matrix_out m, ptrdiff_t first)
{
    m.data += first * m.out_stride;
    return m;
}

static mha_out mask_for(const golden *g, const results *r, const char *name)
{
    const mha_view view = golden_mask(g, name);
    return (mha_out){room_for(g, r, name), view.sb, view.sh, view.sl};
}

static mha_layer_gradients gradients_for(const golden *g, const results *r, const layer_problem *p)
{
    const mha_layer_config full = layer_defaults(&p->config);
    const ptrdiff_t k = full.H * full.D, v = k + full.G * full.D;
    const ptrdiff_t L = p->call.L, S = p->call.S;
    mha_layer_gradients to = {
        .size = sizeof to,
        .d_output = layer_golden_rows(g, "d_output", L, full.output_width),
        .d_query = rows_for(g, r, "d_query", L, full.E),
        .d_key = rows_for(g, r, "d_key", S, full.key_width),
        .d_value = rows_for(g, r, "d_value", S, full.value_width),
        .q = matrix_for(g, r, "d_q_weight"),
        .k = matrix_for(g, r, "d_k_weight"),
        .v = matrix_for(g, r, "d_v_weight"),
        .o = matrix_for(g, r, "d_o_weight"),
        .q_bias = room_for(g, r, "d_q_bias"),
        .k_bias = room_for(g, r, "d_k_bias"),
        .v_bias = room_for(g, r, "d_v_bias"),
        .o_bias = room_for(g, r, "d_o_bias"),
        .extra_key = room_for(g, r, "d_extra_key"),
        .extra_value = room_for(g, r, "d_extra_value"),
        .q_norm = room_for(g, r, "d_q_norm"),
        .k_norm = room_for(g, r, "d_k_norm"),
        .q_norm_bias = room_for(g, r, "d_q_norm_bias"),
        .k_norm_bias = room_for(g, r, "d_k_norm_bias"),
        .d_add_mask = mask_for(g, r, "d_add_mask"),
        .d_alibi_slopes = room_for(g, r, "d_alibi"),
        .d_sinks = room_for(g, r, "d_sinks"),
    };
    if (golden_find(g, "d_in_weight")) {
        to.q = matrix_for(g, r, "d_in_weight");
        to.k = matrix_from(to.q, k);
        to.v = matrix_from(to.q, v);
    }
    if (golden_find(g, "d_in_bias")) {
        to.q_bias = room_for(g, r, "d_in_bias");
        to.k_bias = to.q_bias + k;
        to.v_bias = to.q_bias + v;
    }
    return to;
}

/* ----------------------------------------------------------------- comparing ---- */

static bool close_enough(double got, double want, double largest)
{
    return isfinite(got) && isfinite(want) && fabs(got - want) <= 4e-6 * largest;
}

static void compare(const char *source, const golden_entry *e, const float *got)
{
    const float *const want = e->data;
    double largest = 1;
    for (size_t n = 0; n < e->count; n++)
        largest = fabs((double)want[n]) > largest ? fabs((double)want[n]) : largest;
    for (size_t n = 0; n < e->count; n++)
        if (!CHECK(close_enough((double)got[n], (double)want[n], largest),
                   "%s: %s[%zu] is %.9g, not %.9g", source, e->name, n, (double)got[n],
                   (double)want[n]))
            break;
}

static void compare_all(const golden *g, const char *source, const results *r)
{
    for (int n = 0; n < g->count; n++)
        if (r->of[n])
            compare(source, &g->entries[n], r->of[n]);
}

static void comparator_is_strict(void)
{
    CHECK(close_enough(1, 1 + 1e-6, 1), "a rounding error");
    CHECK(!close_enough(1, 1 + 1e-5, 1), "an error");
    CHECK(!close_enough((double)NAN, 0, 1) && !close_enough(0, (double)NAN, 1), "NaN");
}

/* ------------------------------------------------------------------- running ---- */

static mha_status run_layer(const mha_layer *layer, mha_layer_call *call,
                            const mha_layer_gradients *to)
{
    call->tape_size = mha_layer_tape_size(layer, call);
    call->tape = aligned_alloc(64, (call->tape_size + 63) / 64 * 64);
    mha_status status = mha_layer_run(layer, call, NULL, 0, NULL);
    if (status == MHA_OK)
        status = mha_layer_backward(layer, call, to, NULL, 0, NULL);
    free(call->tape);
    return status;
}

static void run_library(const golden *g, const layer_problem *p)
{
    const golden_entry *const output = golden_find(g, "output");
    const ptrdiff_t width = layer_defaults(&p->config).output_width;
    results r = results_new(g);
    const mha_layer_gradients to = gradients_for(g, &r, p);
    float *const y = calloc(output->count, sizeof *y);
    mha_layer_call call = p->call;
    mha_layer *layer = NULL;
    call.output = golden_extent(g, "sequence_first") ? mha_out_lbe(y, call.B, width)
                                                     : mha_out_ble(y, call.L, width);
    mha_status status = mha_layer_create(&layer, &p->config, &p->weights);
    if (status == MHA_OK)
        status = run_layer(layer, &call, &to);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    compare("library", output, y);
    compare_all(g, "library", &r);
    mha_layer_free(layer);
    results_free(&r);
    free(y);
}

/* -------------------------------------------------------------------- oracle ---- */

static void store_rows(const mha_out *to, const num *from, ptrdiff_t B, ptrdiff_t rows,
                       ptrdiff_t width)
{
    for (ptrdiff_t n = 0; to->data && n < B * rows * width; n++) {
        const ptrdiff_t b = n / width / rows, i = n / width % rows;
        ((float *)to->data)[b * to->sb + i * to->sl + n % width] = (float)from[n].x;
    }
}

static void store_matrix(const mha_matrix_out *to, const num *from, ptrdiff_t count,
                         ptrdiff_t inputs)
{
    for (ptrdiff_t n = 0; to->data && n < count; n++)
        to->data[n / inputs * to->out_stride + n % inputs * to->in_stride] = (float)from[n].x;
}

static void store_mask(const mha_out *to, const num *from, const mha_shape *s)
{
    const ptrdiff_t count = s->B * s->H * s->L * s->S;
    for (ptrdiff_t n = 0; to->data && n < count; n++) {
        const ptrdiff_t row = n / s->S, i = row % s->L, h = row / s->L % s->H;
        ((float *)to->data)[row / s->L / s->H * to->sb + h * to->sh + i * to->sl + n % s->S] +=
            (float)from[n].x;
    }
}

static void store_vectors(const mha_layer_gradients *to, const layer_numbers *from)
{
    const struct {
        float *to;
        layer_part from;
    } vectors[] = {
        {to->q_bias, PART_Q_BIAS},           {to->k_bias, PART_K_BIAS},
        {to->v_bias, PART_V_BIAS},           {to->o_bias, PART_O_BIAS},
        {to->extra_key, PART_EXTRA_KEY},     {to->extra_value, PART_EXTRA_VALUE},
        {to->q_norm, PART_Q_NORM},           {to->k_norm, PART_K_NORM},
        {to->q_norm_bias, PART_Q_NORM_BIAS}, {to->k_norm_bias, PART_K_NORM_BIAS},
        {to->d_alibi_slopes, PART_SLOPES},   {to->d_sinks, PART_SINKS},
    };
    for (size_t n = 0; n < sizeof vectors / sizeof *vectors; n++)
        for (ptrdiff_t at = 0; vectors[n].to && at < from->count[vectors[n].from]; at++)
            vectors[n].to[at] = (float)from->of[vectors[n].from][at].x;
}

static void store_numbers(const layer_pass *pass, const layer_numbers *from,
                          const mha_layer_gradients *to)
{
    const mha_layer_config *const c = &pass->config;
    const mha_shape *const s = &pass->op.shape;
    store_rows(&to->d_query, from->of[PART_QUERY], s->B, s->L, c->E);
    store_rows(&to->d_key, from->of[PART_KEY], s->B, s->S, c->key_width);
    store_rows(&to->d_value, from->of[PART_VALUE], s->B, s->S, c->value_width);
    store_matrix(&to->q, from->of[PART_Q], from->count[PART_Q], c->E);
    store_matrix(&to->k, from->of[PART_K], from->count[PART_K], c->key_width);
    store_matrix(&to->v, from->of[PART_V], from->count[PART_V], c->value_width);
    store_matrix(&to->o, from->of[PART_O], from->count[PART_O], c->H * c->Dv);
    store_mask(&to->d_add_mask, from->of[PART_SCORES], s);
    store_vectors(to, from);
}

static void run_oracle(const golden *g, const layer_problem *p)
{
    layer_pass *const pass = layer_pass_new(p);
    const mha_shape *const s = &pass->op.shape;
    const ptrdiff_t width = pass->config.output_width;
    results r = results_new(g);
    const mha_layer_gradients to = gradients_for(g, &r, p);
    num *const d_output = nums(s->B * s->L * width);
    for (ptrdiff_t n = 0; n < s->B * s->L * width; n++) {
        const ptrdiff_t b = n / width / s->L, i = n / width % s->L;
        d_output[n] = num_exact(number_get(MHA_F32, to.d_output.data,
                                           b * to.d_output.sb + i * to.d_output.sl + n % width));
    }
    layer_pass_forward(pass);
    layer_numbers numbers = layer_pass_backward(pass, d_output, NULL);
    store_numbers(pass, &numbers, &to);
    compare_all(g, "oracle", &r);
    layer_numbers_free(&numbers);
    layer_pass_free(pass);
    results_free(&r);
    free(d_output);
}

static void run_golden(void)
{
    golden g;
    mha_options options;
    if (CHECK(golden_read(&g, golden_path, "mha-layer-backward-golden 1"), "%s cannot be read",
              golden_path)) {
        const layer_problem p = layer_golden_problem(&g, &options);
        run_oracle(&g, &p);
        run_library(&g, &p);
    }
    golden_free(&g);
}

static int golden_count;

static void files_are_there(void)
{
    CHECK(golden_count >= 45, "%d golden files in %s", golden_count, MHA_GOLDEN_FOLDER);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(comparator_is_strict);
    golden_count = golden_run_all(MHA_GOLDEN_FOLDER "/layer_backward", run_golden);
    RUN(files_are_there);
    return test_end();
}
