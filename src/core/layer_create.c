/* SPDX-License-Identifier: MIT */
/* Makes a layer: its configuration is checked and completed, its weights are packed. */
#include "core/layer.h"

#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------- configuration ----- */

static mha_status fill_widths(mha_layer_config *c, const mha_options *message)
{
    if (c->E < 1 || c->H < 1)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "config has E = %td, H = %td; both must be at least 1", c->E, c->H);
    if (c->D == 0 && c->E % c->H != 0)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "E = %td is not a multiple of H = %td; say how wide a head is in config.D",
                         c->E, c->H);
    c->G = c->G ? c->G : c->H;
    c->D = c->D ? c->D : c->E / c->H;
    c->Dv = c->Dv ? c->Dv : c->D;
    c->key_width = c->key_width ? c->key_width : c->E;
    c->value_width = c->value_width ? c->value_width : c->key_width;
    c->output_width = c->output_width ? c->output_width : c->E;
    c->norm_eps = c->norm_eps != 0.0f ? c->norm_eps : 1e-5f;
    if (c->rope.pairs != MHA_ROPE_NONE) {
        c->rope.width = c->rope.width ? c->rope.width : c->D;
        c->rope.base = c->rope.base != 0.0 ? c->rope.base : 10000.0;
    }
    return MHA_OK;
}

static mha_status check_widths(const mha_layer_config *c, const mha_options *message)
{
    static const char *const names[] = {"E",  "H",         "G",           "D",
                                        "Dv", "key_width", "value_width", "output_width"};
    const ptrdiff_t widths[] = {c->E,  c->H,         c->G,           c->D,
                                c->Dv, c->key_width, c->value_width, c->output_width};
    for (int n = 0; n < 8; n++) {
        if (widths[n] < 1)
            return mhai_fail(message, MHA_ERR_SHAPE, "config.%s is %td; it must be at least 1",
                             names[n], widths[n]);
        if (widths[n] > MHAI_MAX_EXTENT / (64 * MHA_MAX_HEAD_WIDTH))
            return mhai_fail(message, MHA_ERR_OVERFLOW, "config.%s is %td: larger than any memory",
                             names[n], widths[n]);
    }
    if (c->H % c->G != 0)
        return mhai_fail(message, MHA_ERR_SHAPE,
                         "H = %td query heads cannot share G = %td key/value heads; H must be a "
                         "multiple of G",
                         c->H, c->G);
    if (c->D > MHA_MAX_HEAD_WIDTH || c->Dv > MHA_MAX_HEAD_WIDTH)
        return mhai_fail(message, MHA_ERR_SHAPE, "D = %td, Dv = %td; a head is at most %d wide",
                         c->D, c->Dv, MHA_MAX_HEAD_WIDTH);
    return MHA_OK;
}

/* Four matrices must be countable in bytes. */
static mha_status check_sizes(const mha_layer_config *c, const mha_options *message)
{
    const ptrdiff_t outputs = c->H * c->D + c->G * (c->D + c->Dv) + c->output_width;
    const ptrdiff_t inputs = c->E + c->key_width + c->value_width + c->H * c->Dv;
    ptrdiff_t bytes;
    if (__builtin_mul_overflow(outputs + 16 * MHAK_MAX_VECTOR, inputs, &bytes) ||
        __builtin_mul_overflow(bytes, 16, &bytes))
        return mhai_fail(message, MHA_ERR_OVERFLOW, "the weights of this layer fit in no memory");
    return MHA_OK;
}

static mha_status check_kinds(const mha_layer_config *c, const mha_options *message)
{
    if (c->flags & ~(uint32_t)MHA_LAYER_ZERO_ATTN)
        return mhai_fail(message, MHA_ERR_FLAG, "config.flags has unknown bits 0x%x",
                         c->flags & ~(uint32_t)MHA_LAYER_ZERO_ATTN);
    if ((unsigned)c->norm > MHA_NORM_LAYER)
        return mhai_fail(message, MHA_ERR_FLAG, "config.norm is %d; use an MHA_NORM_ value",
                         (int)c->norm);
    if (!(c->norm_eps > 0.0f) || isinf(c->norm_eps))
        return mhai_fail(message, MHA_ERR_SCALE, "config.norm_eps is %g; use a positive number",
                         (double)c->norm_eps);
    const mha_status status = mhai_rope_check(&c->rope, c->D);
    if (status)
        return mhai_fail(
            message, status,
            "config.rope has pairs %d, width %td, base %g on heads of width %td: pairs "
            "is an MHA_ROPE_ value, width even and at most D, base and frequencies "
            "finite",
            (int)c->rope.pairs, c->rope.width, c->rope.base, c->D);
    const mha_status arithmetic = mhai_check_arithmetic(message, "config", c->arithmetic);
    return arithmetic ? arithmetic : mhai_check_stored(message, c->stored);
}

/* --------------------------------------------------------------- weights ----- */

static mha_status check_matrices(const mha_layer_config *c, const mha_layer_weights *w,
                                 const mha_dtype *stored, const mha_options *message)
{
    const struct {
        const char *name;
        const mha_matrix *matrix;
        ptrdiff_t outputs, inputs;
    } matrices[] = {{"weights.q", &w->q, c->H * c->D, c->E},
                    {"weights.k", &w->k, c->G * c->D, c->key_width},
                    {"weights.v", &w->v, c->G * c->Dv, c->value_width},
                    {"weights.o", &w->o, c->output_width, c->H * c->Dv}};
    mha_status status = MHA_OK;
    for (int n = 0; !status && n < MHAI_PROJECTIONS + 1; n++)
        status = mhai_check_matrix(message, matrices[n].name, matrices[n].matrix,
                                   matrices[n].outputs, matrices[n].inputs, stored[n]);
    return status;
}

static mha_status check_vectors(const mha_layer_weights *w, const mha_options *message)
{
    const struct {
        const char *name;
        const mha_vector *vector;
    } vectors[] = {
        {"weights.q_bias", &w->q_bias},           {"weights.k_bias", &w->k_bias},
        {"weights.v_bias", &w->v_bias},           {"weights.o_bias", &w->o_bias},
        {"weights.extra_key", &w->extra_key},     {"weights.extra_value", &w->extra_value},
        {"weights.q_norm", &w->q_norm},           {"weights.k_norm", &w->k_norm},
        {"weights.q_norm_bias", &w->q_norm_bias}, {"weights.k_norm_bias", &w->k_norm_bias}};
    mha_status status = MHA_OK;
    for (size_t n = 0; !status && n < sizeof vectors / sizeof vectors[0]; n++)
        status = mhai_check_vector(message, vectors[n].name, vectors[n].vector);
    return status;
}

/* `stored`: how W_Q, W_K, W_V and W_O are to be stored. */
static mha_status check_weights(const mha_layer_config *c, const mha_layer_weights *w,
                                const mha_dtype stored[MHAI_PROJECTIONS + 1],
                                const mha_options *message)
{
    mha_status status;
    if ((status = check_matrices(c, w, stored, message)) || (status = check_vectors(w, message)))
        return status;
    if (!w->extra_key.data != !w->extra_value.data)
        return mhai_fail(message, MHA_ERR_NULL,
                         "weights.extra_%s is missing: an extra key needs its value and the other "
                         "way round",
                         w->extra_key.data ? "value" : "key");
    const bool norms =
        w->q_norm.data || w->k_norm.data || w->q_norm_bias.data || w->k_norm_bias.data;
    if (norms && c->norm == MHA_NORM_NONE)
        return mhai_fail(message, MHA_ERR_FLAG,
                         "weights have a norm but config.norm is MHA_NORM_NONE; say which one");
    return MHA_OK;
}

/* --------------------------------------------------------------- packing ----- */

/* The three projections, then that of the output. */
static void fill_sections(const mha_layer_config *c, const mha_layer_weights *w,
                          mhai_section sections[MHAI_PROJECTIONS + 1])
{
    sections[MHAI_Q] = (mhai_section){c->H * c->D, w->q, w->q_bias};
    sections[MHAI_K] = (mhai_section){c->G * c->D, w->k, w->k_bias};
    sections[MHAI_V] = (mhai_section){c->G * c->Dv, w->v, w->v_bias};
    sections[MHAI_PROJECTIONS] = (mhai_section){c->output_width, w->o, w->o_bias};
}

/* Consecutive projections with the same input width and stored type become one linear. */
static mha_status pack_projections(mha_layer *layer, const mha_layer_weights *w, mha_arena *arena)
{
    const mha_layer_config *const c = &layer->config;
    const mhai_packing packing = {layer->native, c->arithmetic, arena};
    const ptrdiff_t inputs[] = {c->E, c->key_width, c->value_width};
    mhai_section sections[MHAI_PROJECTIONS + 1];
    mha_dtype types[MHAI_PROJECTIONS + 1];
    fill_sections(c, w, sections);
    for (int n = 0; n < MHAI_PROJECTIONS + 1; n++)
        types[n] = mhai_stored_type(c->stored, &sections[n].weight);
    for (int first = 0, last; first < MHAI_PROJECTIONS; first = last) {
        for (last = first + 1; last < MHAI_PROJECTIONS && inputs[last] == inputs[first] &&
                               types[last] == types[first];)
            last++;
        const mha_status status = mhai_linear_make(&layer->linears[first], &packing, inputs[first],
                                                   sections + first, last - first, types[first]);
        if (status)
            return status;
        ptrdiff_t panel = 0;
        for (int p = first; p < last; p++) {
            const ptrdiff_t panels = mhai_section_panels(layer->kernels, sections[p].outputs);
            layer->in[p] = (mhai_projection){layer->linears[first], panel, panel + panels,
                                             panels * layer->kernels->nr};
            panel += panels;
        }
    }
    return mhai_linear_make(&layer->out, &packing, c->H * c->Dv, sections + MHAI_PROJECTIONS, 1,
                            types[MHAI_PROJECTIONS]);
}

static void read_vector(const mha_vector *vector, ptrdiff_t count, float *to)
{
    for (ptrdiff_t n = 0; vector->data && n < count; n++)
        to[n] = mhai_vector_at(vector, n);
}

/* Copies a vector as f32 to *at and advances *at; NULL for no vector. */
static float *keep_vector(const mha_vector *vector, ptrdiff_t count, float **at)
{
    float *const kept = *at;
    if (!vector->data)
        return NULL;
    read_vector(vector, count, kept);
    *at += count;
    return kept;
}

static mha_status keep_vectors(mha_layer *layer, const mha_layer_weights *w)
{
    mha_layer_config *const c = &layer->config;
    const ptrdiff_t rotated = mhai_rope_width(&c->rope, c->D);
    layer->vectors =
        malloc(sizeof(float) * (size_t)(4 * c->D + c->G * (c->D + c->Dv) + rotated / 2 + 1));
    if (!layer->vectors)
        return MHA_ERR_MEMORY;
    float *at = layer->vectors;
    layer->extra_key = keep_vector(&w->extra_key, c->G * c->D, &at);
    layer->extra_value = keep_vector(&w->extra_value, c->G * c->Dv, &at);
    layer->norm[MHAI_Q] = keep_vector(&w->q_norm, c->D, &at);
    layer->norm[MHAI_K] = keep_vector(&w->k_norm, c->D, &at);
    layer->norm_bias[MHAI_Q] = keep_vector(&w->q_norm_bias, c->D, &at);
    layer->norm_bias[MHAI_K] = keep_vector(&w->k_norm_bias, c->D, &at);
    const mha_vector frequencies = {c->rope.pairs != MHA_ROPE_NONE ? c->rope.frequencies : NULL,
                                    MHA_F32};
    c->rope.frequencies = keep_vector(&frequencies, rotated / 2, &at);
    return MHA_OK;
}

/* ---------------------------------------------------------------- public ----- */

mha_status mha_layer_create(mha_layer **layer, const mha_layer_config *config,
                            const mha_layer_weights *weights)
{
    mha_layer_config c;
    mha_layer_weights w;
    if (layer)
        *layer = NULL;
    if (!config)
        return MHA_ERR_NULL;
    if (!mhai_struct_read(config, &c, offsetof(mha_layer_config, arena), sizeof c))
        return MHA_ERR_STRUCT;
    const mha_options message = {.message = c.message, .message_size = c.message_size};
    if (!layer || !weights)
        return mhai_fail(&message, MHA_ERR_NULL, "%s is NULL", layer ? "weights" : "layer");
    if (!mhai_struct_read(weights, &w, sizeof w, sizeof w))
        return mhai_fail(&message, MHA_ERR_STRUCT, "weights.size is not that of the struct");
    const mha_dtype stored[] = {c.stored, c.stored, c.stored, c.stored};
    mha_arena *const arena = c.arena;
    mha_status status;
    const mhak_native *native;
    if ((status = fill_widths(&c, &message)) || (status = check_widths(&c, &message)) ||
        (status = check_sizes(&c, &message)) || (status = check_kinds(&c, &message)) ||
        (status = check_weights(&c, &w, stored, &message)) ||
        (status = mhai_native_for(&message, &native)))
        return status;
    c.size = sizeof c;
    c.message = NULL;
    c.message_size = 0;
    c.arena = NULL;
    mha_layer *const made = calloc(1, sizeof *made);
    if (made) {
        made->config = c;
        made->kernels = native->base;
        made->native = native;
    }
    if (!made || pack_projections(made, &w, arena) || keep_vectors(made, &w)) {
        mha_layer_free(made);
        return mhai_fail(&message, MHA_ERR_MEMORY, "no memory for the layer's packed weights");
    }
    *layer = made;
    return MHA_OK;
}

/* ---------------------------------------------------------------- update ----- */

/* Biases may be added or removed; extra keys and norms must be present as before. */
static mha_status check_same(const mha_layer *layer, const mha_layer_weights *w)
{
    const bool there[] = {w->extra_key.data, w->q_norm.data, w->k_norm.data, w->q_norm_bias.data,
                          w->k_norm_bias.data};
    const bool before[] = {layer->extra_key, layer->norm[MHAI_Q], layer->norm[MHAI_K],
                           layer->norm_bias[MHAI_Q], layer->norm_bias[MHAI_K]};
    for (int n = 0; n < 5; n++)
        if (there[n] != before[n])
            return MHA_ERR_NULL;
    return MHA_OK;
}

/* Inputs of the widest linear. */
static ptrdiff_t longest_row(const mha_layer *layer)
{
    ptrdiff_t longest = layer->out->inputs;
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        longest = mhai_max(longest, layer->in[p].linear->inputs);
    return longest;
}

static void update_vectors(mha_layer *layer, const mha_layer_weights *w)
{
    const mha_layer_config *const c = &layer->config;
    read_vector(&w->extra_key, c->G * c->D, layer->extra_key);
    read_vector(&w->extra_value, c->G * c->Dv, layer->extra_value);
    read_vector(&w->q_norm, c->D, layer->norm[MHAI_Q]);
    read_vector(&w->k_norm, c->D, layer->norm[MHAI_K]);
    read_vector(&w->q_norm_bias, c->D, layer->norm_bias[MHAI_Q]);
    read_vector(&w->k_norm_bias, c->D, layer->norm_bias[MHAI_K]);
}

mha_status mha_layer_update(mha_layer *layer, const mha_layer_weights *weights)
{
    const mha_options silent = {0};
    mhai_section sections[MHAI_PROJECTIONS + 1];
    mha_layer_weights w;
    mha_status status;
    if (!layer || !weights)
        return MHA_ERR_NULL;
    if (!mhai_struct_read(weights, &w, sizeof w, sizeof w))
        return MHA_ERR_STRUCT;
    const mha_dtype stored[] = {layer->in[MHAI_Q].linear->stored, layer->in[MHAI_K].linear->stored,
                                layer->in[MHAI_V].linear->stored, layer->out->stored};
    if ((status = check_weights(&layer->config, &w, stored, &silent)) ||
        (status = check_same(layer, &w)))
        return status;
    fill_sections(&layer->config, &w, sections);
    const ptrdiff_t longest = longest_row(layer);
    float *const rows = mhai_memory_take(3 * sizeof(float) * (size_t)longest);
    if (!rows)
        return MHA_ERR_MEMORY;
    for (int first = 0, last; first < MHAI_PROJECTIONS; first = last) {
        for (last = first + 1; last < MHAI_PROJECTIONS && !layer->linears[last];)
            last++;
        mhai_linear_repack(layer->linears[first], sections + first, last - first, rows);
    }
    mhai_linear_repack(layer->out, sections + MHAI_PROJECTIONS, 1, rows);
    update_vectors(layer, &w);
    free(rows);
    return MHA_OK;
}

void mha_layer_free(mha_layer *layer)
{
    if (!layer)
        return;
    for (int p = 0; p < MHAI_PROJECTIONS; p++)
        mha_linear_free(layer->linears[p]);
    mha_linear_free(layer->out);
    free(layer->vectors);
    free(layer);
}

mha_layer_config mha_layer_get_config(const mha_layer *layer)
{
    mha_layer_config config = {0};
    if (layer)
        config = layer->config;
    config.rope.frequencies = NULL;
    return config;
}

size_t mha_layer_bytes(const mha_layer *layer)
{
    size_t bytes = layer ? mha_linear_bytes(layer->out) : 0;
    for (int p = 0; layer && p < MHAI_PROJECTIONS; p++)
        bytes += mha_linear_bytes(layer->linears[p]);
    return bytes;
}
