/* SPDX-License-Identifier: MIT */
/*
 * Layers against PyTorch: every tests/golden/NAME.golden is a test of its own. The library and the
 * oracle of the other tests must both give what is written there. How the files are made, and what
 * is in them, is told in tests/golden/make_layer_goldens.py.
 */
#include "layer_oracle.h"
#include "test.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 64, MAX_RANK = 4 };

typedef struct entry {
    char name[32];
    double number; /* of a field */
    ptrdiff_t extents[MAX_RANK];
    size_t count; /* elements; 0: a field */
    void *data;
} entry;

typedef struct golden {
    entry entries[MAX_ENTRIES];
    int count;
} golden;

/* -------------------------------------------------------------------- reading ---- */

static const entry *find(const golden *g, const char *name)
{
    for (int n = 0; n < g->count; n++)
        if (strcmp(g->entries[n].name, name) == 0)
            return &g->entries[n];
    return NULL;
}

static double number_of(const golden *g, const char *name)
{
    const entry *const found = find(g, name);
    return found ? found->number : 0;
}

static ptrdiff_t extent_of(const golden *g, const char *name)
{
    return (ptrdiff_t)number_of(g, name);
}

static const void *data_of(const golden *g, const char *name)
{
    const entry *const found = find(g, name);
    return found ? found->data : NULL;
}

/* A line of the text; false for one that is not known. */
static bool read_line(entry *e, char *line, size_t *size)
{
    char type[8], rest[120], *end;
    if (sscanf(line, "set %31s %119s", e->name, rest) == 2) {
        e->number = strtod(rest, &end);
        return end != rest && *end == '\0';
    }
    if (sscanf(line, "tensor %31s %7s %119[0-9 ]", e->name, type, rest) != 3)
        return false;
    int rank = 0;
    e->count = 1;
    for (char *at = rest; rank < MAX_RANK; at = end) {
        const ptrdiff_t extent = strtol(at, &end, 10);
        if (end == at)
            break;
        e->extents[rank++] = extent;
        e->count *= (size_t)extent;
    }
    *size = strcmp(type, "f32") == 0 ? 4 : strcmp(type, "i64") == 0 ? 8 : 1;
    return *size != 1 || strcmp(type, "u8") == 0;
}

static bool read_golden(golden *g, FILE *file)
{
    char line[200];
    size_t sizes[MAX_ENTRIES] = {0};
    if (!fgets(line, sizeof line, file) || strcmp(line, "mha-layer-golden 1\n") != 0)
        return false;
    while (fgets(line, sizeof line, file) && strcmp(line, "end\n") != 0) {
        if (g->count == MAX_ENTRIES || !read_line(&g->entries[g->count], line, &sizes[g->count]))
            return false;
        g->count++;
    }
    for (int n = 0; n < g->count; n++) {
        entry *const e = &g->entries[n];
        if (e->count == 0)
            continue;
        e->data = malloc(e->count * sizes[n] + 1);
        if (!e->data || fread(e->data, sizes[n], e->count, file) != e->count)
            return false;
    }
    return fgetc(file) == EOF;
}

static void free_golden(golden *g)
{
    for (int n = 0; n < g->count; n++)
        free(g->entries[n].data);
}

/* -------------------------------------------------------- from golden to problem ---- */

static mha_layer_config config_of(const golden *g)
{
    return (mha_layer_config){
        .size = sizeof(mha_layer_config),
        .flags = extent_of(g, "zero_attn") ? MHA_LAYER_ZERO_ATTN : 0,
        .norm_eps = (float)number_of(g, "norm_eps"),
        .E = extent_of(g, "E"),
        .H = extent_of(g, "H"),
        .G = extent_of(g, "G"),
        .D = extent_of(g, "D"),
        .Dv = extent_of(g, "Dv"),
        .key_width = extent_of(g, "key_width"),
        .value_width = extent_of(g, "value_width"),
        .output_width = extent_of(g, "output_width"),
        .norm = (mha_norm)extent_of(g, "norm"),
        .rope = {.pairs = (mha_rope_pairs)extent_of(g, "rope"),
                 .width = extent_of(g, "rope_width"),
                 .base = number_of(g, "rope_base"),
                 .frequencies = data_of(g, "frequencies")},
    };
}

static mha_matrix matrix_of(const golden *g, const char *name)
{
    const entry *const e = find(g, name);
    if (!e)
        return (mha_matrix){0};
    return extent_of(g, "conv") ? mha_matrix_in_out(e->data, MHA_F32, e->extents[1])
                                : mha_matrix_out_in(e->data, MHA_F32, e->extents[1]);
}

static mha_vector vector_of(const golden *g, const char *name)
{
    return (mha_vector){data_of(g, name), MHA_F32};
}

static mha_vector vector_from(mha_vector vector, ptrdiff_t first)
{
    if (vector.data)
        vector.data = (const float *)vector.data + first;
    return vector;
}

static mha_layer_weights weights_of(const golden *g)
{
    const mha_layer_config config = config_of(g), full = layer_defaults(&config);
    const ptrdiff_t k = full.H * full.D, v = k + full.G * full.D;
    mha_layer_weights w = {
        .size = sizeof w,
        .q = matrix_of(g, "q_weight"),
        .k = matrix_of(g, "k_weight"),
        .v = matrix_of(g, "v_weight"),
        .o = matrix_of(g, "o_weight"),
        .q_bias = vector_of(g, "q_bias"),
        .k_bias = vector_of(g, "k_bias"),
        .v_bias = vector_of(g, "v_bias"),
        .o_bias = vector_of(g, "o_bias"),
        .extra_key = vector_of(g, "extra_key"),
        .extra_value = vector_of(g, "extra_value"),
        .q_norm = vector_of(g, "q_norm"),
        .k_norm = vector_of(g, "k_norm"),
        .q_norm_bias = vector_of(g, "q_norm_bias"),
        .k_norm_bias = vector_of(g, "k_norm_bias"),
    };
    if (find(g, "in_weight")) {
        w.q = matrix_of(g, "in_weight");
        w.k = mha_matrix_from(w.q, k);
        w.v = mha_matrix_from(w.q, v);
    }
    if (find(g, "in_bias")) {
        w.q_bias = vector_of(g, "in_bias");
        w.k_bias = vector_from(w.q_bias, k);
        w.v_bias = vector_from(w.q_bias, v);
    }
    return w;
}

/* Rows of an input or output, batch or sequence first. */
static mha_view rows_of(const golden *g, const char *name, ptrdiff_t rows, ptrdiff_t width)
{
    const void *const data = data_of(g, name);
    if (!data)
        return (mha_view){0};
    return extent_of(g, "sequence_first") ? mha_view_lbe(data, extent_of(g, "B"), width)
                                          : mha_view_ble(data, rows, width);
}

static mha_view mask_of(const golden *g, const char *name)
{
    const entry *const e = find(g, name);
    if (!e)
        return (mha_view){0};
    const ptrdiff_t *const n = e->extents;
    return (mha_view){e->data, n[0] > 1 ? n[1] * n[2] * n[3] : 0, n[1] > 1 ? n[2] * n[3] : 0,
                      n[2] > 1 ? n[3] : 0};
}

static mha_options options_of(const golden *g)
{
    mha_options o = {
        .size = sizeof o,
        .flags = extent_of(g, "causal") ? MHA_CAUSAL : 0,
        .scale = (float)number_of(g, "scale"),
        .softcap = (float)number_of(g, "softcap"),
        .attend_mask = mask_of(g, "attend_mask"),
        .ignore_mask = mask_of(g, "ignore_mask"),
        .add_mask = mask_of(g, "add_mask"),
        .alibi_slopes = data_of(g, "alibi"),
        .sinks = data_of(g, "sinks"),
    };
    if (extent_of(g, "window_left") || extent_of(g, "window_right")) {
        o.flags |= MHA_WINDOW;
        o.window_left = extent_of(g, "window_left") - 1;
        o.window_right = extent_of(g, "window_right") - 1;
    }
    o.flags |= extent_of(g, "average") ? (unsigned)MHA_AVERAGE_WEIGHTS : 0u;
    return o;
}

/* Everything but where results go. */
static layer_problem problem_of(const golden *g, mha_options *options)
{
    layer_problem p = {.config = config_of(g), .weights = weights_of(g)};
    const mha_layer_config full = layer_defaults(&p.config);
    *options = options_of(g);
    p.call = (mha_layer_call){
        .size = sizeof p.call,
        .B = extent_of(g, "B"),
        .L = extent_of(g, "L"),
        .S = extent_of(g, "S"),
        .query = rows_of(g, "query", extent_of(g, "L"), full.E),
        .key = rows_of(g, "key", extent_of(g, "S"), full.key_width),
        .value = rows_of(g, "value", extent_of(g, "S"), full.value_width),
        .q_positions = data_of(g, "q_positions"),
        .k_positions = data_of(g, "k_positions"),
        .options = options,
    };
    return p;
}

/* ------------------------------------------------------------------- comparing ---- */

/* Both sides are right to a few units of f32 of the largest number around. */
static bool close_enough(double got, double want, double magnitude)
{
    return isfinite(got) && isfinite(want) && fabs(got - want) <= 2e-6 * magnitude;
}

static double magnitude_of(const float *numbers, size_t count)
{
    double largest = 1e-3;
    for (size_t n = 0; n < count; n++)
        largest = fmax(largest, fabs((double)numbers[n])); /* fmax passes NaN over */
    return largest;
}

/* PyTorch gives NaN for a row that sees no key. Here its weights are 0, and its output is what the
 * output projection makes of 0: the bias. */
static double wanted(float golden_number, const float *bias, size_t column)
{
    return isnan(golden_number) ? (bias ? (double)bias[column] : 0.0) : (double)golden_number;
}

static void compare(const char *who, const entry *want, const float *got, const float *bias,
                    size_t width)
{
    const float *const numbers = want->data;
    const double magnitude = magnitude_of(numbers, want->count);
    for (size_t n = 0; n < want->count; n++) {
        const double number = wanted(numbers[n], bias, n % width);
        CHECK(close_enough((double)got[n], number, magnitude), "%s: %s[%zu] is %.9g, not %.9g", who,
              want->name, n, (double)got[n], number);
    }
}

static void comparator_is_strict(void)
{
    CHECK(close_enough(1, 1 + 1e-6, 1), "a rounding error");
    CHECK(!close_enough(1, 1 + 1e-5, 1), "an error");
    CHECK(!close_enough((double)NAN, 0, 1) && !close_enough(0, (double)NAN, 1), "NaN");
    CHECK(!close_enough((double)INFINITY, (double)INFINITY, 1), "infinity");
}

/* -------------------------------------------------------------------- running ---- */

static void run_library(const layer_problem *p, const golden *g)
{
    const entry *const output = find(g, "output"), *const weights = find(g, "weights");
    const ptrdiff_t width = layer_defaults(&p->config).output_width;
    float *const y = malloc(output->count * sizeof *y);
    float *const w = malloc((weights ? weights->count : 1) * sizeof *w);
    layer_problem now = *p;
    mha_options options = *p->call.options;
    now.call.options = &options;
    now.call.output = extent_of(g, "sequence_first") ? mha_out_lbe(y, p->call.B, width)
                                                     : mha_out_ble(y, p->call.L, width);
    if (weights) {
        const ptrdiff_t columns = layer_columns(p);
        const ptrdiff_t heads = extent_of(g, "average") ? 1 : p->config.H;
        options.weights = mha_out_bhld(w, heads, p->call.L, columns);
    }
    mha_layer *layer = NULL;
    mha_status status = mha_layer_create(&layer, &now.config, &now.weights);
    if (status == MHA_OK)
        status = mha_layer_run(layer, &now.call, NULL, 0, NULL);
    if (CHECK(status == MHA_OK, "%s", mha_status_string(status))) {
        compare("library", output, y, p->weights.o_bias.data, (size_t)width);
        if (weights)
            compare("library", weights, w, NULL, 1);
    }
    mha_layer_free(layer);
    free(y);
    free(w);
}

static void run_oracle(const layer_problem *p, const golden *g)
{
    const entry *const output = find(g, "output"), *const weights = find(g, "weights");
    const mha_layer_config full = layer_defaults(&p->config);
    const ptrdiff_t B = p->call.B, L = p->call.L, cells = L * layer_columns(p);
    const bool turned = extent_of(g, "sequence_first"), average = extent_of(g, "average");
    layer_answer answer = layer_oracle(p);
    float *const y = calloc(output->count, sizeof *y);
    float *const w = calloc(weights ? weights->count : 1, sizeof *w);
    for (ptrdiff_t n = 0; n < B * L * full.output_width; n++) {
        const ptrdiff_t b = n / full.output_width / L, i = n / full.output_width % L;
        const ptrdiff_t row = turned ? i * B + b : b * L + i;
        y[row * full.output_width + n % full.output_width] = (float)answer.output[n].x;
    }
    for (ptrdiff_t n = 0; weights && n < B * full.H * cells; n++)
        if (average)
            w[n / cells / full.H * cells + n % cells] +=
                (float)(answer.weights[n].x / (double)full.H);
        else
            w[n] = (float)answer.weights[n].x;
    compare("oracle", output, y, p->weights.o_bias.data, (size_t)full.output_width);
    if (weights)
        compare("oracle", weights, w, NULL, 1);
    layer_answer_free(&answer);
    free(y);
    free(w);
}

static char golden_path[PATH_MAX];

static void run_golden(void)
{
    golden g = {0};
    mha_options options;
    FILE *const file = fopen(golden_path, "rb");
    if (CHECK(file && read_golden(&g, file), "%s cannot be read", golden_path)) {
        const layer_problem p = problem_of(&g, &options);
        run_oracle(&p, &g);
        run_library(&p, &g);
    }
    free_golden(&g);
    if (file)
        fclose(file);
}

static int is_golden(const struct dirent *found)
{
    const char *const end = strrchr(found->d_name, '.');
    return end && strcmp(end, ".golden") == 0;
}

static int golden_count;

static void files_are_there(void)
{
    CHECK(golden_count >= 40, "%d golden files in %s", golden_count, MHA_GOLDEN_FOLDER);
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    test_begin(argc, argv);
    RUN(comparator_is_strict);
    golden_count = scandir(MHA_GOLDEN_FOLDER, &entries, is_golden, alphasort);
    RUN(files_are_there);
    for (int n = 0; n < golden_count; n++) {
        snprintf(golden_path, sizeof golden_path, "%s/%s", MHA_GOLDEN_FOLDER, entries[n]->d_name);
        *strrchr(entries[n]->d_name, '.') = '\0';
        test_run(entries[n]->d_name, run_golden);
        free(entries[n]);
    }
    free(entries);
    return test_end();
}
