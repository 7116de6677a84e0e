/* SPDX-License-Identifier: MIT */
/*
 * Makes a layer case with a tape and all gradients of its inputs and weights, runs both passes, and
 * compares what comes out with layer_backward_oracle.c.
 */
#include "support/layer_backward_case.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERN = 0xa5, NOWHERE = 0xff };

const char *layer_output_name(int n)
{
    return n == OUT_ADD_MASK ? "d_add_mask" : n == PART_SCORES ? "d_bias" : layer_part_names[n];
}

layer_spec layer_back_spec(uint64_t seed)
{
    layer_spec spec = layer_spec_random(seed);
    spec.options |= seed % 3 == 0 ? (unsigned)BACKWARD_GATES : 0u;
    spec.options |= seed % 4 == 0 ? (unsigned)BACKWARD_DROPOUT : 0u;
    return spec;
}

/* ------------------------------------------------------------------ extents */

static const attention_call *operator_of(const layer_back *x)
{
    return &x->c->memory->call;
}

static const int64_t *starts_of(const layer_back *x, int part)
{
    const mha_options *const o = &operator_of(x)->options;
    return part == PART_QUERY ? o->q_starts : o->k_starts;
}

/* Rows of an input that belong to a batch, those past its length too. */
static ptrdiff_t rows_of(const layer_back *x, int part, ptrdiff_t b)
{
    const int64_t *const starts = starts_of(x, part);
    if (starts)
        return (ptrdiff_t)(starts[b + 1] - starts[b]);
    return part == PART_QUERY ? x->c->p.call.L : layer_keys(&x->c->p);
}

static ptrdiff_t gate_count(const layer_back *x)
{
    const mha_options *const o = &operator_of(x)->options;
    const ptrdiff_t B = x->c->spec.B;
    return o->gates && B > 0 ? (B - 1) * o->gates_sb + x->c->spec.config.H : 0;
}

/* -------------------------------------------------------------------- build */

static bool strided(const layer_back *x)
{
    return (x->c->spec.options & FEATURE_STRIDES) != 0;
}

/* Rows of `heads` heads, laid out as the spec says; packed if starts say so. */
static tensor *make_rows(layer_back *x, tensor_id id, const int64_t *starts, ptrdiff_t heads,
                         ptrdiff_t rows, ptrdiff_t width, test_random *random)
{
    const ptrdiff_t B = x->c->spec.B;
    const ptrdiff_t n[4] = {starts ? 1 : B, heads, starts ? (ptrdiff_t)starts[B] : rows, width};
    const mha_dtype type = id == TENSOR_LSE ? MHA_F32 : problem_type(x->memory, id);
    problem_tensor(x->memory, id, mha_dtype_size(type), n, strided(x) ? random : NULL, 0);
    tensor *const t = &x->memory->tensors[id];
    if (x->c->spec.parts & LAYER_SEQUENCE_FIRST && !strided(x) && !starts && heads == 1) {
        t->s[0] = width;
        t->s[2] = B * width;
    }
    return t;
}

static void keep_tensor(layer_back *x, int output, const tensor *t)
{
    x->out[output].block = t->memory;
    x->out[output].bytes = t->bytes;
    x->out[output].data = tensor_at(t, 0, 0, 0, 0);
}

/* Normal numbers in the rows that count; the others stay NaN. */
static void fill_given(layer_back *x, tensor_id id, test_random *random)
{
    const tensor *const t = &x->memory->tensors[id];
    const attention_call op = layer_operator(&x->c->p);
    const int64_t *const starts = op.options.q_starts;
    memset(t->memory, NOWHERE, t->bytes);
    for (ptrdiff_t b = 0; b < x->c->spec.B; b++)
        for (ptrdiff_t n = 0; n < t->n[1] * call_queries(&op, b); n++)
            for (ptrdiff_t c = 0; c < t->n[3]; c++)
                problem_set(x->memory, id, starts ? 0 : b, n % t->n[1],
                            (starts ? (ptrdiff_t)starts[b] : 0) + n / t->n[1], c,
                            (double)test_random_normal(random));
}

static void make_given(layer_back *x, test_random *random)
{
    const mha_layer_config f = layer_defaults(&x->c->p.config);
    const int64_t *const starts = operator_of(x)->options.q_starts;
    make_rows(x, TENSOR_O, starts, 1, x->c->spec.L, f.output_width, random);
    fill_given(x, TENSOR_O, random);
    if (test_random_below(random, 3) == 0) {
        make_rows(x, TENSOR_LSE, starts, f.H, x->c->spec.L, 1, random);
        fill_given(x, TENSOR_LSE, random);
    }
}

static void make_inputs(layer_back *x, test_random *random)
{
    const mha_layer_config f = layer_defaults(&x->c->p.config);
    const mha_layer_call *const call = &x->c->p.call;
    const ptrdiff_t S = layer_keys(&x->c->p);
    keep_tensor(x, PART_QUERY,
                make_rows(x, TENSOR_Q, starts_of(x, PART_QUERY), 1, call->L, f.E, random));
    if (call->key.data)
        keep_tensor(x, PART_KEY,
                    make_rows(x, TENSOR_K, starts_of(x, PART_KEY), 1, S, f.key_width, random));
    if (call->value.data)
        keep_tensor(x, PART_VALUE,
                    make_rows(x, TENSOR_V, starts_of(x, PART_VALUE), 1, S, f.value_width, random));
}

/* Summed over the axes the bias is the same along, or over any. */
static void make_bias(layer_back *x, int output, tensor_id id, test_random *random)
{
    const tensor *const t = &x->c->memory->tensors[id];
    const ptrdiff_t n[4] = {x->c->spec.B, x->c->spec.config.H, x->c->spec.L, layer_keys(&x->c->p)};
    unsigned axes = (unsigned)test_random_below(random, 8);
    if (test_random_below(random, 2))
        axes = (t->s[0] == 0) * 1u + (t->s[1] == 0) * 2u + (t->s[2] == 0) * 4u;
    if (!t->memory)
        return;
    problem_tensor(x->memory, id, sizeof(float), n, strided(x) ? random : NULL, axes);
    keep_tensor(x, output, &x->memory->tensors[id]);
}

/* [outputs][inputs] or the other way round, perhaps with a gap after each line. */
static mha_matrix_out make_matrix(layer_back *x, int output, ptrdiff_t inputs, ptrdiff_t outputs,
                                  test_random *random)
{
    const bool transposed = test_random_below(random, 2);
    const ptrdiff_t gap = strided(x) ? (ptrdiff_t)test_random_below(random, 4) : 0;
    const ptrdiff_t line = transposed ? outputs : inputs, lines = transposed ? inputs : outputs;
    const ptrdiff_t count = lines > 0 ? (lines - 1) * (line + gap) + line : 0;
    x->out[output].bytes = (size_t)count * sizeof(float);
    x->out[output].block = problem_alloc(x->memory, x->out[output].bytes);
    x->out[output].data = (float *)x->out[output].block;
    return (mha_matrix_out){x->out[output].data, transposed ? 1 : line + gap,
                            transposed ? line + gap : 1};
}

static float *make_vector(layer_back *x, int output, ptrdiff_t count)
{
    if (count == 0)
        return NULL;
    x->out[output].bytes = (size_t)count * sizeof(float);
    x->out[output].block = problem_alloc(x->memory, x->out[output].bytes);
    return x->out[output].data = (float *)x->out[output].block;
}

static void connect(layer_back *x, test_random *random)
{
    const mha_layer_config f = layer_defaults(&x->c->p.config);
    const mha_options *const o = &operator_of(x)->options;
    const tensor *const t = x->memory->tensors;
    const bool extra = x->c->p.weights.extra_key.data != NULL;
    const ptrdiff_t normed = f.norm == MHA_NORM_NONE ? 0 : f.D;
    x->call = (mha_layer_gradients){
        .size = sizeof x->call,
        .d_output = tensor_view(&t[TENSOR_O]),
        .d_output_type = x->memory->call.shape.o_type,
        .d_lse = tensor_view(&t[TENSOR_LSE]),
        .d_query = tensor_out(&t[TENSOR_Q]),
        .d_key = tensor_out(&t[TENSOR_K]),
        .d_value = tensor_out(&t[TENSOR_V]),
        .q = make_matrix(x, PART_Q, f.E, f.H * f.D, random),
        .k = make_matrix(x, PART_K, f.key_width, f.G * f.D, random),
        .v = make_matrix(x, PART_V, f.value_width, f.G * f.Dv, random),
        .o = make_matrix(x, PART_O, f.H * f.Dv, f.output_width, random),
        .q_bias = make_vector(x, PART_Q_BIAS, f.H * f.D),
        .k_bias = make_vector(x, PART_K_BIAS, f.G * f.D),
        .v_bias = make_vector(x, PART_V_BIAS, f.G * f.Dv),
        .o_bias = make_vector(x, PART_O_BIAS, f.output_width),
        .extra_key = make_vector(x, PART_EXTRA_KEY, extra ? f.G * f.D : 0),
        .extra_value = make_vector(x, PART_EXTRA_VALUE, extra ? f.G * f.Dv : 0),
        .q_norm = make_vector(x, PART_Q_NORM, normed),
        .k_norm = make_vector(x, PART_K_NORM, normed),
        .q_norm_bias = make_vector(x, PART_Q_NORM_BIAS, normed),
        .k_norm_bias = make_vector(x, PART_K_NORM_BIAS, normed),
        .d_bias = tensor_out(&t[TENSOR_BIAS]),
        .d_add_mask = tensor_out(&t[TENSOR_ADD]),
        .d_alibi_slopes = make_vector(x, PART_SLOPES, o->alibi_slopes ? f.H : 0),
        .d_sinks = make_vector(x, PART_SINKS, o->sinks ? f.H : 0),
        .d_gates = make_vector(x, PART_GATES, gate_count(x)),
    };
}

/* Aligned to 64 bytes, at a guard page where the size allows. */
static void make_tape(layer_back *x)
{
    mha_layer_call *const call = &x->c->p.call;
    const size_t size = mha_layer_tape_size(x->c->layer, call);
    CHECK(size > 0, "%s: no size of a tape", layer_case_name(x->c));
    x->tape = guard_new(size, size % 64 == 0 ? GUARD_AFTER : GUARD_BEFORE);
    call->tape = x->tape.data;
    call->tape_size = size;
}

layer_back *layer_back_new(const layer_spec *spec)
{
    test_random random = {spec->seed ^ 0x6c617965};
    layer_back *const x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->c = layer_case_new(spec);
    backward_add_training(x->c->memory);
    problem_spec shadow = x->c->memory->spec;
    shadow.shape.q_type = shadow.shape.k_type = shadow.shape.v_type = MHA_F32;
    shadow.shape.o_type = (mha_dtype)test_random_below(&random, 3);
    x->memory = problem_new_bare(&shadow);
    make_given(x, &random);
    make_inputs(x, &random);
    make_bias(x, PART_SCORES, TENSOR_BIAS, &random);
    make_bias(x, OUT_ADD_MASK, TENSOR_ADD, &random);
    connect(x, &random);
    make_tape(x);
    layer_back_clear(x);
    return x;
}

/* Inputs, masks and output of the call. */
static void move_call(layer_back *x, const layer_back *original, uint64_t seed)
{
    mha_layer_call *const call = &x->c->p.call;
    x->kept[0] = problem_new_layout(original->c->memory, seed);
    const attention_call *const op = &x->kept[0]->call;
    call->query = op->q;
    call->key = op->k;
    call->value = op->v;
    call->output = op->o;
    call->options = &op->options;
}

/* Tensors of gradients, and those that are given. */
static void move_tensors(layer_back *x, const layer_back *original, uint64_t seed)
{
    static const tensor_id given[] = {TENSOR_O, TENSOR_LSE};
    static const struct {
        tensor_id id;
        int output;
    } wanted[] = {{TENSOR_Q, PART_QUERY},
                  {TENSOR_K, PART_KEY},
                  {TENSOR_V, PART_VALUE},
                  {TENSOR_BIAS, PART_SCORES},
                  {TENSOR_ADD, OUT_ADD_MASK}};
    x->kept[1] = x->memory;
    x->memory = problem_new_layout(original->memory, seed);
    for (int k = 0; k < 2; k++) {
        const tensor *const from = &original->memory->tensors[given[k]];
        const ptrdiff_t *const n = from->n;
        for (ptrdiff_t r = 0; from->memory && r < n[0] * n[1] * n[2]; r++)
            memcpy(tensor_at(&x->memory->tensors[given[k]], r / n[2] / n[1], r / n[2] % n[1],
                             r % n[2], 0),
                   tensor_at(from, r / n[2] / n[1], r / n[2] % n[1], r % n[2], 0),
                   (size_t)n[3] * from->element);
    }
    for (int k = 0; k < 5; k++)
        if (x->out[wanted[k].output].block)
            keep_tensor(x, wanted[k].output, &x->memory->tensors[wanted[k].id]);
}

static mha_matrix_out turn_matrix(layer_back *x, int output, mha_matrix_out was, ptrdiff_t inputs,
                                  ptrdiff_t outputs)
{
    const bool transposed = was.in_stride == 1;
    x->out[output].bytes = (size_t)(inputs * outputs) * sizeof(float);
    x->out[output].block = problem_alloc(x->memory, x->out[output].bytes);
    x->out[output].data = (float *)x->out[output].block;
    return (mha_matrix_out){x->out[output].data, transposed ? 1 : inputs, transposed ? outputs : 1};
}

layer_back *layer_back_relayout(const layer_back *original, uint64_t seed)
{
    layer_back *const x = layer_back_new(&original->c->spec);
    const mha_layer_config f = layer_defaults(&x->c->p.config);
    const tensor *t;
    move_call(x, original, seed);
    move_tensors(x, original, seed + 1);
    t = x->memory->tensors;
    x->call.d_output = tensor_view(&t[TENSOR_O]);
    x->call.d_lse = tensor_view(&t[TENSOR_LSE]);
    x->call.d_query = tensor_out(&t[TENSOR_Q]);
    x->call.d_key = tensor_out(&t[TENSOR_K]);
    x->call.d_value = tensor_out(&t[TENSOR_V]);
    x->call.d_bias = tensor_out(&t[TENSOR_BIAS]);
    x->call.d_add_mask = tensor_out(&t[TENSOR_ADD]);
    x->call.q = turn_matrix(x, PART_Q, x->call.q, f.E, f.H * f.D);
    x->call.k = turn_matrix(x, PART_K, x->call.k, f.key_width, f.G * f.D);
    x->call.v = turn_matrix(x, PART_V, x->call.v, f.value_width, f.G * f.Dv);
    x->call.o = turn_matrix(x, PART_O, x->call.o, f.H * f.Dv, f.output_width);
    layer_back_clear(x);
    return x;
}

void layer_back_free(layer_back *x)
{
    for (int n = 0; n < 2; n++)
        if (x->kept[n])
            problem_delete(x->kept[n]);
    layer_case_free(x->c);
    problem_delete(x->memory);
    guard_free(&x->tape);
    free(x);
}

/* ---------------------------------------------------------------------- run */

void layer_back_clear(layer_back *x)
{
    for (int n = 0; n < LAYER_OUTPUTS; n++)
        if (x->out[n].block)
            memset(x->out[n].block, PATTERN, x->out[n].bytes);
}

void layer_back_forward(layer_back *x, mha_pool *pool)
{
    layer_case_run(x->c, pool);
    CHECK(guard_intact(&x->tape), "%s: written outside the tape", layer_case_name(x->c));
    guard_seal(&x->tape);
}

void layer_back_run(layer_back *x, bool workspace, mha_pool *pool)
{
    layer_case *const c = x->c;
    const size_t size = mha_layer_backward_work_size(c->layer, &c->p.call, mha_pool_threads(pool));
    guard_buffer work = guard_new(size, c->spec.seed % 2 ? GUARD_AFTER : GUARD_BEFORE);
    layer_back_clear(x);
    c->memory->message[0] = '\0';
    CHECK(size > 0, "%s: no workspace size", layer_case_name(c));
    const mha_status status = mha_layer_backward(
        c->layer, &c->p.call, &x->call, workspace ? work.data : NULL, workspace ? size : 0, pool);
    CHECK(status == MHA_OK, "%s: backward: status %d, %s", layer_case_name(c), (int)status,
          c->memory->message);
    CHECK(guard_intact(&work), "%s: written outside the workspace", layer_case_name(c));
    guard_free(&work);
}

void layer_back_want(layer_back *x, unsigned wanted)
{
    mha_layer_gradients *const g = &x->call;
    void **const rows[] = {&g->d_query.data, &g->d_key.data, &g->d_value.data};
    float **const numbers[] = {
        &g->q.data,         &g->k.data,  &g->v.data,      &g->o.data,      &g->q_bias,
        &g->k_bias,         &g->v_bias,  &g->o_bias,      &g->extra_key,   &g->extra_value,
        &g->q_norm,         &g->k_norm,  &g->q_norm_bias, &g->k_norm_bias, NULL,
        &g->d_alibi_slopes, &g->d_sinks, &g->d_gates,
    };
    for (int n = 0; n < LAYER_OUTPUTS; n++) {
        float *const data = wanted & 1u << n ? x->out[n].data : NULL;
        if (n == PART_SCORES)
            g->d_bias.data = data;
        else if (n == OUT_ADD_MASK)
            g->d_add_mask.data = data;
        else if (n < PART_Q)
            *rows[n] = data;
        else
            *numbers[n - PART_Q] = data;
    }
}

/* ------------------------------------------------------------------- answer */

num *layer_back_d_output(const layer_back *x)
{
    const attention_call op = layer_operator(&x->c->p);
    const ptrdiff_t width = layer_defaults(&x->c->p.config).output_width;
    num *const d = nums(op.shape.B * op.shape.L * width);
    for (ptrdiff_t b = 0; b < op.shape.B; b++)
        for (ptrdiff_t i = 0; i < call_queries(&op, b); i++) {
            const ptrdiff_t at = call_row_index(&x->call.d_output, op.options.q_starts, b, 0, i);
            for (ptrdiff_t c = 0; c < width; c++)
                d[(b * op.shape.L + i) * width + c] =
                    num_exact(number_get(x->call.d_output_type, x->call.d_output.data, at + c));
        }
    return d;
}

num *layer_back_d_lse(const layer_back *x)
{
    const attention_call op = layer_operator(&x->c->p);
    const mha_shape *const s = &op.shape;
    if (!x->call.d_lse.data)
        return NULL;
    num *const d = nums(s->B * s->H * s->L);
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t h = 0; h < s->H; h++)
            for (ptrdiff_t i = 0; i < call_queries(&op, b); i++)
                d[(b * s->H + h) * s->L + i] = num_exact(
                    number_get(MHA_F32, x->call.d_lse.data,
                               call_row_index(&x->call.d_lse, op.options.q_starts, b, h, i)));
    return d;
}

layer_numbers layer_back_oracle(const layer_back *x)
{
    layer_pass *const pass = layer_pass_new(&x->c->p);
    num *const d_output = layer_back_d_output(x), *const d_lse = layer_back_d_lse(x);
    layer_pass_forward(pass);
    const layer_numbers answer = layer_pass_backward(pass, d_output, d_lse);
    layer_pass_free(pass);
    free(d_output);
    free(d_lse);
    return answer;
}

/* ----------------------------------------------------------------- elements */

typedef struct element_list {
    layer_element *items;
    ptrdiff_t count;
} element_list;

static void append(element_list *list, float *at, num want)
{
    list->items[list->count++] = (layer_element){at, want};
}

static void list_rows(const layer_back *x, const num *want, int part, element_list *list)
{
    const tensor *const t = &x->memory->tensors[part];
    const int64_t *const starts = starts_of(x, part);
    const ptrdiff_t extent = part == PART_QUERY ? x->c->p.call.L : layer_keys(&x->c->p);
    for (ptrdiff_t b = 0; b < x->c->p.call.B; b++)
        for (ptrdiff_t i = 0; i < rows_of(x, part, b); i++)
            for (ptrdiff_t c = 0; c < t->n[3]; c++)
                append(list,
                       tensor_at(t, starts ? 0 : b, 0, (starts ? (ptrdiff_t)starts[b] : 0) + i, c),
                       want[(b * extent + i) * t->n[3] + c]);
}

static void list_matrix(const layer_back *x, const num *want, int part, element_list *list)
{
    const mha_layer_config f = layer_defaults(&x->c->p.config);
    const mha_matrix_out out[] = {x->call.q, x->call.k, x->call.v, x->call.o};
    const mha_matrix_out *const m = &out[part - PART_Q];
    const ptrdiff_t inputs[] = {f.E, f.key_width, f.value_width, f.H * f.Dv};
    const ptrdiff_t outputs[] = {f.H * f.D, f.G * f.D, f.G * f.Dv, f.output_width};
    const ptrdiff_t width = inputs[part - PART_Q];
    for (ptrdiff_t n = 0; n < outputs[part - PART_Q]; n++)
        for (ptrdiff_t c = 0; c < width; c++)
            append(list, x->out[part].data + n * m->out_stride + c * m->in_stride,
                   want[n * width + c]);
}

/* Pairs of queries and keys that share an element are summed. */
static void list_scores(const layer_back *x, const num *want, int output, element_list *list)
{
    const tensor *const t = &x->memory->tensors[output == OUT_ADD_MASK ? TENSOR_ADD : TENSOR_BIAS];
    const ptrdiff_t *const n = t->n;
    const ptrdiff_t H = x->c->spec.config.H, L = x->c->spec.L, S = n[3];
    num *const sums = nums(n[0] * n[1] * n[2] * S);
    for (ptrdiff_t at = 0; at < x->c->spec.B * H * L * S; at++) {
        const ptrdiff_t row = at / S, i = row % L, h = row / L % H, b = row / L / H;
        num *const sum = &sums[(((n[0] == 1 ? 0 : b) * n[1] + (n[1] == 1 ? 0 : h)) * n[2] +
                                (n[2] == 1 ? 0 : i)) *
                                   S +
                               at % S];
        *sum = num_add(*sum, want[at]);
    }
    for (ptrdiff_t at = 0; at < n[0] * n[1] * n[2] * S; at++) {
        const ptrdiff_t row = at / S;
        append(list, tensor_at(t, row / n[2] / n[1], row / n[2] % n[1], row % n[2], at % S),
               sums[at]);
    }
    free(sums);
}

static void list_gates(const layer_back *x, const num *want, element_list *list)
{
    const ptrdiff_t H = x->c->spec.config.H, B = x->c->spec.B;
    const ptrdiff_t stride = operator_of(x)->options.gates_sb;
    for (ptrdiff_t n = 0; n < (stride == 0 ? 1 : B) * H; n++) {
        num sum = want[n];
        for (ptrdiff_t b = 1; b < B && stride == 0; b++)
            sum = num_add(sum, want[b * H + n]);
        append(list, x->out[PART_GATES].data + n / H * stride + n % H, sum);
    }
}

static void list_output(const layer_back *x, const layer_numbers *want, int n, element_list *list)
{
    const int part = n == OUT_ADD_MASK ? PART_SCORES : n;
    const num *const numbers = want->of[part];
    if (part == PART_SCORES)
        list_scores(x, numbers, n, list);
    else if (part == PART_GATES)
        list_gates(x, numbers, list);
    else if (part < PART_Q)
        list_rows(x, numbers, part, list);
    else if (part < PART_Q_BIAS)
        list_matrix(x, numbers, part, list);
    else
        for (ptrdiff_t at = 0; at < want->count[part]; at++)
            append(list, x->out[part].data + at, numbers[at]);
}

layer_element *layer_back_elements(const layer_back *x, const layer_numbers *want, int n,
                                   ptrdiff_t *count)
{
    const int part = n == OUT_ADD_MASK ? PART_SCORES : n;
    element_list list = {calloc((size_t)want->count[part] + 1, sizeof *list.items), 0};
    if (!list.items)
        abort();
    if (x->out[n].block)
        list_output(x, want, n, &list);
    *count = list.count;
    return list.items;
}

/* -------------------------------------------------------------------- bytes */

void layer_back_check_untouched(layer_back *x, const layer_numbers *shape)
{
    for (int n = 0; n < LAYER_OUTPUTS; n++) {
        ptrdiff_t count;
        size_t touched = 0;
        layer_element *const list = layer_back_elements(x, shape, n, &count);
        for (ptrdiff_t at = 0; at < count; at++)
            memset(list[at].at, PATTERN, sizeof(float));
        for (size_t at = 0; at < x->out[n].bytes; at++)
            touched += x->out[n].block[at] != PATTERN;
        CHECK(touched == 0, "%s: %zu bytes beside %s written", layer_case_name(x->c), touched,
              layer_output_name(n));
        free(list);
    }
}

unsigned char *layer_back_bytes(const layer_back *x, size_t *size)
{
    *size = 0;
    for (int n = 0; n < LAYER_OUTPUTS; n++)
        *size += x->out[n].bytes;
    unsigned char *const bytes = malloc(*size + 1), *at = bytes;
    if (!bytes)
        abort();
    for (int n = 0; n < LAYER_OUTPUTS; n++)
        if (x->out[n].block) {
            memcpy(at, x->out[n].block, x->out[n].bytes);
            at += x->out[n].bytes;
        }
    return bytes;
}
