/* SPDX-License-Identifier: MIT */
/*
 * The public conformance cases of ONNX's Attention operator. The environment variable
 * MHA_ONNX_CASES names a folder with one folder a case, each with model.onnx and
 * test_data_set_0/{input,output}_N.pb; every case is a test of its own.
 *
 *      what ONNX says                      what libmha is given
 *      Q, K, V of rank 4 / rank 3          views [B,heads,rows,width] / [B,rows,heads,width]
 *      past_key, past_value                put in front of K and V here; offset = past length.
 *                                          Then once more through a cache: past and new tokens
 *                                          are appended, present_* is what it holds
 *      is_causal                           MHA_CAUSAL with an explicit offset
 *      nonpad_kv_seqlen                    k_lengths; offsets[b] = nonpad[b] - L
 *      attn_mask, bool / number            attend_mask / add_mask; columns it lacks are masked
 *      qk_matmul_output_mode 0, 1, 2, 3    weights RAW, SOFTCAP, BIAS, SOFTMAX
 */
#define _GNU_SOURCE
#include "mha/mha.h"
#include "support/onnx_file.h"
#include "support/test.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BATCH = 16 };

typedef struct onnx_case {
    const char *folder;
    onnx_node node;
    onnx_tensor in[ONNX_INPUTS], out[ONNX_OUTPUTS];

    mha_shape shape;
    mha_options options;
    ptrdiff_t past;    /* rows of past_key */
    int64_t type;      /* ONNX type of Q, K, V and the outputs */
    void *key, *value; /* past and new together, [B,G,S,width]; NULL without a past */
    void *mask;        /* attn_mask with all its columns */
    int64_t offsets[MAX_BATCH];
    void *y, *qk;
} onnx_case;

/* ------------------------------------------------------------------ reading ---- */

static bool read_tensors(const onnx_case *c, const char *kind, const bool *given,
                         onnx_tensor *tensors, int count)
{
    int file = 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX + 64];
        if (!given[i])
            continue;
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", c->folder, kind, file++);
        const char *error = onnx_read_tensor(path, &tensors[i]);
        if (!CHECK(!error, "%s: %s", path, error))
            return false;
    }
    return true;
}

static bool read_case(onnx_case *c)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/model.onnx", c->folder);
    const char *error = onnx_read_node(path, &c->node);
    return CHECK(!error, "%s: %s", path, error) &&
           read_tensors(c, "input", c->node.has_input, c->in, ONNX_INPUTS) &&
           read_tensors(c, "output", c->node.has_output, c->out, ONNX_OUTPUTS);
}

static void free_case(onnx_case *c)
{
    for (int i = 0; i < ONNX_INPUTS; i++)
        onnx_free_tensor(&c->in[i]);
    for (int i = 0; i < ONNX_OUTPUTS; i++)
        onnx_free_tensor(&c->out[i]);
    free(c->key);
    free(c->value);
    free(c->mask);
    free(c->y);
    free(c->qk);
}

/* ------------------------------------------------------- ONNX's words to ours ---- */

static mha_dtype type_of(int64_t onnx)
{
    return onnx == ONNX_FLOAT16 ? MHA_F16 : onnx == ONNX_BFLOAT16 ? MHA_BF16 : MHA_F32;
}

static ptrdiff_t heads_of(const onnx_tensor *t, int64_t heads)
{
    return t->rank == 4 ? t->dims[1] : (ptrdiff_t)heads;
}

static ptrdiff_t rows_of(const onnx_tensor *t)
{
    return t->dims[t->rank - 2];
}

static ptrdiff_t width_of(const onnx_tensor *t, int64_t heads)
{
    return t->rank == 4 ? t->dims[3] : t->dims[2] / (ptrdiff_t)heads;
}

static mha_view view_of(const onnx_tensor *t, const void *data, ptrdiff_t heads)
{
    const ptrdiff_t rows = rows_of(t), width = width_of(t, heads);
    return t->rank == 4 ? mha_view_bhld(data, heads, rows, width)
                        : mha_view_blhd(data, heads, rows, width);
}

static bool fill_shape(onnx_case *c)
{
    const onnx_node *n = &c->node;
    const onnx_tensor *q = &c->in[ONNX_Q], *k = &c->in[ONNX_K], *v = &c->in[ONNX_V];
    if (!CHECK(q->rank >= 3 && k->rank == q->rank && v->rank == q->rank, "ranks") ||
        !CHECK(q->rank == 4 || (n->q_num_heads > 0 && n->kv_num_heads > 0), "head counts"))
        return false;
    const mha_dtype type = type_of(q->type);
    c->type = q->type;
    c->past = c->in[ONNX_PAST_KEY].data ? c->in[ONNX_PAST_KEY].dims[2] : 0;
    c->shape = (mha_shape){
        .B = q->dims[0],
        .H = heads_of(q, n->q_num_heads),
        .G = heads_of(k, n->kv_num_heads),
        .L = rows_of(q),
        .S = rows_of(k) + c->past,
        .D = width_of(q, n->q_num_heads),
        .Dv = width_of(v, n->kv_num_heads),
        .q_type = type,
        .k_type = type,
        .v_type = type,
        .o_type = type,
    };
    return CHECK(c->shape.B <= MAX_BATCH, "a batch of %td", c->shape.B);
}

/* [B,G,S,width]: the rows of `past`, then those of `now`. */
static void *join(const onnx_case *c, const onnx_tensor *past, const onnx_tensor *now,
                  ptrdiff_t width)
{
    const size_t size = onnx_type_size(c->type);
    const mha_shape *s = &c->shape;
    const mha_view view = view_of(now, now->data, s->G);
    char *all = malloc((size_t)(s->B * s->G * s->S * width) * size + 1);
    char *to = all;
    for (ptrdiff_t row = 0; row < s->B * s->G * s->S; row++, to += (size_t)width * size) {
        const ptrdiff_t b = row / (s->G * s->S), g = row / s->S % s->G, j = row % s->S;
        const ptrdiff_t at = j < c->past ? ((b * s->G + g) * c->past + j) * width
                                         : b * view.sb + g * view.sh + (j - c->past) * view.sl;
        const char *from = j < c->past ? past->data : now->data;
        memcpy(to, from + at * (ptrdiff_t)size, (size_t)width * size);
    }
    return all;
}

static void fill_masked(void *element, int64_t type)
{
    const uint32_t f32 = 0xff800000u;
    const uint16_t f16 = 0xfc00u, bf16 = 0xff80u;
    if (type == ONNX_FLOAT)
        memcpy(element, &f32, 4);
    else if (type == ONNX_FLOAT16)
        memcpy(element, &f16, 2);
    else if (type == ONNX_BFLOAT16)
        memcpy(element, &bf16, 2);
    else
        memset(element, 0, 1);
}

/* The mask with S columns. Axes it lacks, or of extent 1, get stride 0. */
static mha_view widen_mask(onnx_case *c)
{
    const onnx_tensor *m = &c->in[ONNX_MASK];
    const size_t size = onnx_type_size(m->type);
    const ptrdiff_t S = c->shape.S, columns = m->dims[m->rank - 1];
    const ptrdiff_t rows = columns ? (ptrdiff_t)m->count / columns : 0;
    char *to = c->mask = malloc((size_t)(rows * S) * size + 1);
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < S; j++, to += size) {
            fill_masked(to, m->type);
            if (j < columns)
                memcpy(to, (char *)m->data + (size_t)(i * columns + j) * size, size);
        }

    mha_view view = {c->mask, 0, 0, 0};
    ptrdiff_t *const strides[] = {&view.sl, &view.sh, &view.sb};
    ptrdiff_t stride = S;
    for (int axis = 0; axis < 3 && axis < m->rank - 1; axis++) {
        const ptrdiff_t extent = m->dims[m->rank - 2 - axis];
        *strides[axis] = extent == 1 ? 0 : stride;
        stride *= extent;
    }
    return view;
}

static void fill_positions(onnx_case *c)
{
    mha_options *o = &c->options;
    o->position = MHA_POSITION_OFFSET;
    o->offset = c->past;
    o->flags = c->node.is_causal ? MHA_CAUSAL : 0;
    if (!c->in[ONNX_NONPAD].data)
        return;
    o->k_lengths = c->in[ONNX_NONPAD].data;
    for (ptrdiff_t b = 0; b < c->shape.B; b++)
        c->offsets[b] = o->k_lengths[b] - c->shape.L;
    o->offsets = c->offsets;
}

static void fill_weights(onnx_case *c)
{
    static const mha_weights_mode modes[] = {MHA_WEIGHTS_RAW, MHA_WEIGHTS_SOFTCAP, MHA_WEIGHTS_BIAS,
                                             MHA_WEIGHTS_SOFTMAX};
    const mha_shape *s = &c->shape;
    c->qk = malloc((size_t)(s->B * s->H * s->L * s->S) * onnx_type_size(c->type) + 1);
    c->options.weights = mha_out_bhld(c->qk, s->H, s->L, s->S);
    c->options.weights_type = s->q_type;
    c->options.weights_mode = modes[c->node.qk_matmul_output_mode & 3];
}

static void fill_options(onnx_case *c)
{
    c->options.size = sizeof c->options;
    c->options.scale = c->node.scale;
    c->options.softcap = c->node.softcap;
    fill_positions(c);
    if (c->in[ONNX_MASK].data && c->in[ONNX_MASK].type == ONNX_BOOL)
        c->options.attend_mask = widen_mask(c);
    else if (c->in[ONNX_MASK].data)
        c->options.add_mask = widen_mask(c);
    c->options.add_mask_type = type_of(c->in[ONNX_MASK].type);
    if (c->node.has_output[ONNX_QK])
        fill_weights(c);
}

/* ---------------------------------------------------------------- comparing ---- */

/*
 * f32: both sides are sums of a few dozen terms of size 1, good to a few units in the last place.
 * f16: both sides are rounded once to 11 bits, so they may be one unit, 2^-10, apart.
 */
static bool close_enough(double got, double want, int64_t type)
{
    const double relative = type == ONNX_FLOAT ? 1e-5 : 0x1p-10;
    const double absolute = type == ONNX_FLOAT ? 1e-6 : 1e-4;
    if (isnan(got) || isnan(want))
        return false;
    if (isinf(got) || isinf(want))
        return got == want;
    return fabs(got - want) <= absolute + relative * fabs(want);
}

static void comparator_is_strict(void)
{
    CHECK(close_enough(1.0, 1.0 + 1e-6, ONNX_FLOAT), "a rounding error");
    CHECK(!close_enough(1.0, 1.0 + 1e-4, ONNX_FLOAT), "an error");
    CHECK(!close_enough(1.0, 1.01, ONNX_FLOAT16), "an error in f16");
    CHECK(!close_enough((double)NAN, 0.0, ONNX_FLOAT), "NaN for 0");
    CHECK(!close_enough((double)NAN, (double)NAN, ONNX_FLOAT), "NaN is never right");
    CHECK(!close_enough(0.0, (double)-INFINITY, ONNX_FLOAT), "0 for -inf");
    CHECK(!close_enough((double)-INFINITY, -1e30, ONNX_FLOAT), "-inf for a number");
    CHECK(close_enough((double)-INFINITY, (double)-INFINITY, ONNX_FLOAT), "-inf for -inf");
}

static void compare(const char *name, const void *got, const onnx_tensor *want)
{
    for (size_t i = 0; i < want->count; i++) {
        const double a = onnx_number(got, want->type, i);
        const double b = onnx_number(want->data, want->type, i);
        CHECK(close_enough(a, b, want->type), "%s[%zu] is %.9g, not %.9g", name, i, a, b);
    }
}

/* ------------------------------------------------------------------ running ---- */

static mha_out make_output(onnx_case *c)
{
    const mha_shape *s = &c->shape;
    free(c->y);
    c->y = malloc((size_t)(s->B * s->H * s->L * s->Dv) * onnx_type_size(c->type) + 1);
    return c->in[ONNX_Q].rank == 4 ? mha_out_bhld(c->y, s->H, s->L, s->Dv)
                                   : mha_out_blhd(c->y, s->H, s->L, s->Dv);
}

static void run_attention(onnx_case *c)
{
    const mha_shape *s = &c->shape;
    const onnx_tensor *q = &c->in[ONNX_Q], *k = &c->in[ONNX_K], *v = &c->in[ONNX_V];
    mha_view kv = view_of(k, k->data, s->G), vv = view_of(v, v->data, s->G);
    if (c->past > 0) {
        c->key = join(c, &c->in[ONNX_PAST_KEY], k, s->D);
        c->value = join(c, &c->in[ONNX_PAST_VALUE], v, s->Dv);
        kv = mha_view_bhld(c->key, s->G, s->S, s->D);
        vv = mha_view_bhld(c->value, s->G, s->S, s->Dv);
    }
    char message[256] = "";
    c->options.message = message;
    c->options.message_size = sizeof message;
    const mha_status status =
        mha_attention(s, view_of(q, q->data, s->H), kv, vv, make_output(c), &c->options, NULL);
    c->options.message = NULL;
    CHECK(status == MHA_OK, "%s: %s", mha_status_string(status), message);
}

static void compare_outputs(const onnx_case *c)
{
    const mha_shape *s = &c->shape;
    if (CHECK(c->out[ONNX_Y].count == (size_t)(s->B * s->H * s->L * s->Dv), "size of Y"))
        compare("Y", c->y, &c->out[ONNX_Y]);
    if (c->out[ONNX_QK].data &&
        CHECK(c->out[ONNX_QK].count == (size_t)(s->B * s->H * s->L * s->S), "size of QK"))
        compare("qk_matmul_output", c->qk, &c->out[ONNX_QK]);
}

/* -------------------------------------------------------------- with a cache ---- */

static mha_status append(const onnx_case *c, mha_cache *cache, ptrdiff_t rows, mha_view k,
                         mha_view v)
{
    const mha_shape *s = &c->shape;
    return mha_cache_append(cache, s->B, NULL, rows, NULL, k, s->k_type, v, s->v_type);
}

static mha_cache *fill_cache(const onnx_case *c, mha_cache_kind kind)
{
    const mha_shape *s = &c->shape;
    const onnx_tensor *k = &c->in[ONNX_K], *v = &c->in[ONNX_V];
    const mha_cache_config config = {.size = sizeof config,
                                     .kind = kind,
                                     .sequences = s->B,
                                     .capacity = s->S,
                                     .page_tokens = kind == MHA_CACHE_PAGED ? 32 : 0,
                                     .G = s->G,
                                     .D = s->D,
                                     .Dv = s->Dv,
                                     .k_type = s->k_type,
                                     .v_type = s->v_type};
    mha_cache *cache = NULL;
    mha_status status = mha_cache_create(&cache, &config);
    if (status == MHA_OK)
        status =
            append(c, cache, c->past, mha_view_bhld(c->in[ONNX_PAST_KEY].data, s->G, c->past, s->D),
                   mha_view_bhld(c->in[ONNX_PAST_VALUE].data, s->G, c->past, s->Dv));
    if (status == MHA_OK)
        status = append(c, cache, rows_of(k), view_of(k, k->data, s->G), view_of(v, v->data, s->G));
    CHECK(status == MHA_OK, "cache %d: %s", (int)kind, mha_status_string(status));
    return cache;
}

/* Tokens of one sequence, keys or values, as the cache gives them back. */
static void compare_sequence(const onnx_case *c, const float *got, const onnx_tensor *want,
                             ptrdiff_t b, ptrdiff_t width, const char *name)
{
    const ptrdiff_t count = c->shape.G * c->shape.S * width;
    if (!CHECK(want->count == (size_t)(c->shape.B * count), "size of %s", name))
        return;
    for (ptrdiff_t n = 0; n < count; n++)
        CHECK((double)got[n] == onnx_number(want->data, want->type, (size_t)(b * count + n)),
              "%s of sequence %td differs at %td", name, b, n);
}

static void compare_present(const onnx_case *c, const mha_cache *cache)
{
    const mha_shape *s = &c->shape;
    float *k = malloc((size_t)(s->G * s->S * s->D) * sizeof *k + 1);
    float *v = malloc((size_t)(s->G * s->S * s->Dv) * sizeof *v + 1);
    for (ptrdiff_t b = 0; b < s->B; b++) {
        const mha_status status =
            mha_cache_read(cache, b, 0, s->S, mha_out_bhld(k, s->G, s->S, s->D),
                           mha_out_bhld(v, s->G, s->S, s->Dv));
        CHECK(status == MHA_OK, "read: %s", mha_status_string(status));
        if (c->out[ONNX_PRESENT_KEY].data)
            compare_sequence(c, k, &c->out[ONNX_PRESENT_KEY], b, s->D, "present_key");
        if (c->out[ONNX_PRESENT_VALUE].data)
            compare_sequence(c, v, &c->out[ONNX_PRESENT_VALUE], b, s->Dv, "present_value");
    }
    free(k);
    free(v);
}

static void run_cached(onnx_case *c, mha_cache_kind kind)
{
    const mha_shape *s = &c->shape;
    const onnx_tensor *q = &c->in[ONNX_Q];
    mha_cache *cache = fill_cache(c, kind);
    compare_present(c, cache);
    const mha_status status = mha_cache_attention(cache, NULL, s, view_of(q, q->data, s->H),
                                                  make_output(c), &c->options, NULL, 0, NULL);
    if (CHECK(status == MHA_OK, "cache %d: %s", (int)kind, mha_status_string(status)))
        compare_outputs(c);
    mha_cache_free(cache);
}

static char case_folder[PATH_MAX];

static void run_case(void)
{
    onnx_case c = {.folder = case_folder};
    if (read_case(&c) && fill_shape(&c)) {
        fill_options(&c);
        run_attention(&c);
        compare_outputs(&c);
        if (c.past > 0) {
            run_cached(&c, MHA_CACHE_CONTIGUOUS);
            run_cached(&c, MHA_CACHE_PAGED);
        } else {
            CHECK(!c.out[ONNX_PRESENT_KEY].data, "present_key without a past");
        }
    }
    free_case(&c);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_case(const char *folder, const char *name)
{
    char path[PATH_MAX + 64];
    snprintf(case_folder, sizeof case_folder, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s/model.onnx", case_folder);
    FILE *file = fopen(path, "rb");
    return file && fclose(file) == 0;
}

static void no_cases(void)
{
    const char *folder = getenv("MHA_ONNX_CASES");
    if (!folder || !*folder)
        test_skip("MHA_ONNX_CASES does not name a folder with the ONNX Attention cases");
    else
        CHECK(false, "no cases in %s", folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(comparator_is_strict);
    const char *folder = getenv("MHA_ONNX_CASES");
    struct dirent **entries = NULL;
    const int count = folder && *folder ? scandir(folder, &entries, is_visible, alphasort) : 0;
    int cases = 0;
    for (int i = 0; i < count; i++) {
        if (is_case(folder, entries[i]->d_name) && ++cases)
            test_run(entries[i]->d_name, run_case);
        free(entries[i]);
    }
    free(entries);
    if (cases == 0)
        RUN(no_cases);
    return test_end();
}
