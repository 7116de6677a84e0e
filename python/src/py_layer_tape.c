/* SPDX-License-Identifier: MIT */
/*
 * The type mha.Tape: a call of a layer that is kept with all its arguments, so that gradients can
 * be computed later.
 */
#include "py_layer.h"
#include "py_pairs.h"

#include <stdlib.h>
#include <string.h>

typedef struct tape {
    PyObject ob_base;
    mhap_layer_run run;
    PyObject *result;
    unsigned version; /* of the layer at the time of the call */
} tape;

/* The gradients that can be requested: inputs, then weights, then options. */
enum { INPUTS = 3, MASK = INPUTS + MHAP_WEIGHTS, BIAS, SLOPES, SINKS, GATES, KINDS };

static const char *kind_name(int kind)
{
    static const char *const inputs[INPUTS] = {"query", "key", "value"};
    static const char *const options[] = {"mask", "bias", "alibi_slopes", "sinks", "gates"};
    if (kind < INPUTS)
        return inputs[kind];
    return kind < MASK ? mhap_weight_names[kind - INPUTS] : options[kind - MASK];
}

static const mhap_array *input_of(const mhap_layer_run *run, int kind)
{
    const mhap_array *const inputs[INPUTS] = {&run->query, &run->key, &run->value};
    return inputs[kind];
}

/* One backward pass: inputs, and arrays for the results. */
typedef struct pass {
    mhap_layer_run *run;
    mha_layer_config config;
    mha_layer_gradients c;
    uint32_t wanted;
    mhap_array d_output, d_lse;
    mhap_array arrays[KINDS];
    PyObject *objects[KINDS];
    float *mask_columns, *bias_columns; /* to be summed after the call, see py_pairs.h */
    mhap_kept kept;
} pass;

/* ----------------------------------------------------------------- want ----- */

/* The default: the inputs that were given, and all weights of the layer. */
static uint32_t usual(const mhap_layer_run *run)
{
    uint32_t wanted = run->layer->given << INPUTS;
    for (int n = 0; n < INPUTS; n++)
        wanted |= input_of(run, n)->object ? UINT32_C(1) << n : 0;
    return wanted;
}

static int want_one(PyObject *name, uint32_t *wanted)
{
    for (int n = 0; n < KINDS && PyUnicode_Check(name); n++) {
        if (PyUnicode_CompareWithASCIIString(name, kind_name(n)) == 0) {
            *wanted |= UINT32_C(1) << n;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "want has a %R; there are query, key, value, the names of weights, mask, bias, "
                 "alibi_slopes, sinks and gates",
                 name);
    return -1;
}

static int read_want(PyObject *want, uint32_t *wanted)
{
    PyObject *const iterator = PyObject_GetIter(want);
    PyObject *name;
    int status = iterator ? 0 : -1;
    while (!status && (name = PyIter_Next(iterator)) != NULL) {
        status = want_one(name, wanted);
        Py_DECREF(name);
    }
    Py_XDECREF(iterator);
    return status || PyErr_Occurred() ? -1 : 0;
}

/* -------------------------------------------------------------- outputs ----- */

/* The shape of the input or weight that a gradient belongs to. Returns the number of axes, or -1 if
 * the call did not have it. */
static int gradient_shape(const pass *p, int kind, ptrdiff_t shape[MHAP_MAX_AXES])
{
    const mhap_options *const o = &p->run->o;
    const mha_options *const c = &o->c;
    const mhap_array *like = NULL;
    if (kind >= INPUTS && kind < MASK)
        return mhap_weight_shape(&p->config, kind - INPUTS, shape);
    if (kind < INPUTS)
        like = input_of(p->run, kind);
    else if (kind == MASK || kind == BIAS)
        like = kind == BIAS ? &o->bias : &o->mask;
    if (like) {
        memcpy(shape, like->shape, sizeof like->shape);
        return like->object && !(kind == MASK && c->attend_mask.data) ? like->axes : -1;
    }
    const float *const given[] = {c->alibi_slopes, c->sinks, c->gates};
    const bool each = kind == GATES && c->gates_sb != 0;
    shape[0] = each ? p->run->shape.B : p->config.H;
    shape[1] = p->config.H;
    return given[kind - SLOPES] ? 1 + each : -1;
}

static void enter_weight(pass *p, int weight, const mhap_array *array)
{
    mha_layer_gradients *const g = &p->c;
    mha_matrix_out *const matrices[MHAP_MATRICES] = {&g->q, &g->k, &g->v, &g->o};
    float **const vectors[] = {&g->q_bias,      &g->k_bias,      &g->v_bias, &g->o_bias,
                               &g->extra_key,   &g->extra_value, &g->q_norm, &g->k_norm,
                               &g->q_norm_bias, &g->k_norm_bias};
    if (weight < MHAP_MATRICES)
        *matrices[weight] = (mha_matrix_out){array->data, array->strides[0], 1};
    else
        *vectors[weight - MHAP_MATRICES] = array->data;
}

static int enter(pass *p, int kind, const mhap_array *array)
{
    mha_layer_gradients *const g = &p->c;
    const mhap_options *const o = &p->run->o;
    mha_out *const inputs[INPUTS] = {&g->d_query, &g->d_key, &g->d_value};
    float **const options[] = {&g->d_alibi_slopes, &g->d_sinks, &g->d_gates};
    if (kind < INPUTS)
        *inputs[kind] = mhap_rows_out(array, p->run->batch_first);
    else if (kind < MASK)
        enter_weight(p, kind - INPUTS, array);
    else if (kind == MASK)
        return mhap_pairs_out(&p->run->shape, &o->mask, array, &p->kept, &g->d_add_mask,
                              &p->mask_columns);
    else if (kind == BIAS)
        return mhap_pairs_out(&p->run->shape, &o->bias, array, &p->kept, &g->d_bias,
                              &p->bias_columns);
    else
        *options[kind - SLOPES] = array->data;
    return 0;
}

/* Initially 0, since rows between packed sequences are not written. */
static int make_gradient(mhap_state *state, pass *p, int kind)
{
    ptrdiff_t shape[MHAP_MAX_AXES];
    mhap_array *const array = &p->arrays[kind];
    const int axes = gradient_shape(p, kind, shape);
    if (axes < 0)
        return mhap_fail(state, MHA_ERR_NULL,
                         "the gradient of %s is wanted, but the call was made without it, or with "
                         "a boolean one",
                         kind_name(kind));
    p->objects[kind] = mhap_new(state, &p->run->query, MHAP_F32, axes, shape, array);
    if (!p->objects[kind])
        return -1;
    if (kind < INPUTS && p->run->o.B >= 0)
        memset(array->data, 0, (size_t)mhap_count(axes, shape) * sizeof(float));
    return enter(p, kind, array);
}

/* --------------------------------------------------------------- inputs ----- */

static int take_d_output(mhap_state *state, PyObject *object, pass *p)
{
    const mhap_array *const output = &p->run->output;
    mhap_array *const d = &p->d_output;
    if (mhap_take(state, object, "d_output", d) || mhap_check_float(state, d, "d_output") ||
        mhap_check_shape(state, d, "d_output", output->axes, output->shape) ||
        mhap_check_rows(state, d, "d_output"))
        return -1;
    p->c.d_output = mhap_rows_view(d, p->run->batch_first);
    p->c.d_output_type = (mha_dtype)d->type;
    return 0;
}

/* The shape in which the call returns its log-sum-exp: (B, H, L), (H, L) without a batch, (H, rows)
 * if packed. */
static int take_d_lse(mhap_state *state, PyObject *object, pass *p)
{
    const mhap_layer_run *const run = p->run;
    mhap_array *const d = &p->d_lse;
    const bool packed = run->form.packed_rows >= 0, batch = run->form.batch && !packed;
    const ptrdiff_t shape[] = {run->shape.B, run->shape.H,
                               packed ? run->form.packed_rows : run->shape.L};
    if (!object || object == Py_None)
        return 0;
    if (mhap_take(state, object, "d_lse", d) ||
        mhap_check_shape(state, d, "d_lse", 2 + batch, shape + !batch))
        return -1;
    if (d->type != MHAP_F32)
        return mhap_fail(state, MHA_ERR_DTYPE, "d_lse is %s; it must be f32",
                         mhap_type_name(d->type));
    const ptrdiff_t *const s = d->strides;
    p->c.d_lse = batch ? (mha_view){d->data, s[0], s[1], s[2]} : (mha_view){d->data, 0, s[0], s[1]};
    return 0;
}

/* ------------------------------------------------------------- backward ----- */

static int compute(mhap_state *state, pass *p, PyObject *threads)
{
    mhap_layer *const layer = p->run->layer;
    const mha_layer_call *const call = &p->run->call;
    mha_pool *pool;
    mha_status status;
    if (mhap_pool_for(state, threads ? threads : layer->threads, &pool))
        return -1;
    const size_t size = mha_layer_backward_work_size(layer->layer, call, mha_pool_threads(pool));
    void *const work = mhap_scratch_take(&layer->scratch, size);
    layer->runs++;
    Py_BEGIN_ALLOW_THREADS;
    status = mha_layer_backward(layer->layer, call, &p->c, work, work ? size : 0, pool);
    mhap_pairs_sum(&p->run->shape, p->mask_columns, &p->arrays[MASK]);
    mhap_pairs_sum(&p->run->shape, p->bias_columns, &p->arrays[BIAS]);
    Py_END_ALLOW_THREADS;
    layer->runs--;
    mhap_scratch_give(&layer->scratch, work);
    return mhap_check(state, status, p->run->o.message);
}

static PyObject *collect(const pass *p)
{
    PyObject *const gradients = PyDict_New();
    for (int n = 0; gradients && n < KINDS; n++) {
        if (p->objects[n] && PyDict_SetItemString(gradients, kind_name(n), p->objects[n])) {
            Py_DECREF(gradients);
            return NULL;
        }
    }
    return gradients;
}

static void pass_end(pass *p)
{
    mhap_release(&p->d_output);
    mhap_release(&p->d_lse);
    mhap_kept_free(&p->kept);
    for (int n = 0; n < KINDS; n++) {
        mhap_release(&p->arrays[n]);
        Py_XDECREF(p->objects[n]);
    }
}

static int prepare(mhap_state *state, tape *self, PyObject *d_output, PyObject *d_lse,
                   PyObject *want, pass *p)
{
    const bool chosen = want && want != Py_None;
    p->wanted = chosen ? 0 : usual(&self->run);
    if ((chosen && read_want(want, &p->wanted)) || take_d_output(state, d_output, p) ||
        take_d_lse(state, d_lse, p))
        return -1;
    for (int n = 0; n < KINDS; n++)
        if (p->wanted >> n & 1 && make_gradient(state, p, n))
            return -1;
    /* Checked last, since reading arrays may run arbitrary code. */
    if (self->version != self->run.layer->version)
        return mhap_fail(state, MHA_ERR_FLAG,
                         "the weights of the layer were updated since this "
                         "tape was made; call layer.tape() again");
    return 0;
}

static PyObject *tape_backward(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"d_output", "d_lse", "want", "threads", NULL};
    tape *const self = (tape *)object;
    mhap_state *const state = self->run.layer->state;
    PyObject *d_output, *d_lse = NULL, *want = NULL, *threads = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OOO:backward", names, &d_output, &d_lse,
                                     &want, &threads))
        return NULL;
    pass p = {.run = &self->run,
              .config = mha_layer_get_config(self->run.layer->layer),
              .c = {.size = sizeof p.c}};
    PyObject *gradients = NULL;
    if (threads == Py_None)
        threads = NULL;
    if (!prepare(state, self, d_output, d_lse, want, &p) && !compute(state, &p, threads))
        gradients = collect(&p);
    pass_end(&p);
    return gradients;
}

/* ----------------------------------------------------------------- type ----- */

PyObject *mhap_layer_tape(PyObject *object, PyObject *args, PyObject *keywords)
{
    mhap_layer *const layer = (mhap_layer *)object;
    mhap_state *const state = layer->state;
    PyTypeObject *const type = (PyTypeObject *)state->tape_type;
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tape *const self = (tape *)make(type, 0);
    if (!self)
        return NULL;
    self->version = layer->version;
    self->result = mhap_layer_run_call(layer, args, keywords, true, &self->run);
    if (!self->result) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void tape_dealloc(PyObject *object)
{
    tape *const self = (tape *)object;
    PyTypeObject *const type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(self->result);
    mhap_layer_run_end(&self->run);
    release(object);
    Py_DECREF(type);
}

static PyObject *tape_result(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((const tape *)object)->result);
}

/* The output: the first element if it is a Result, which is a tuple; arrays are not tuples. */
static PyObject *tape_output(PyObject *object, void *unused)
{
    (void)unused;
    PyObject *const result = ((const tape *)object)->result;
    return PyTuple_Check(result) ? PySequence_GetItem(result, 0) : Py_NewRef(result);
}

static PyMethodDef methods[] = {
    {"backward", (PyCFunction)(void (*)(void))tape_backward, METH_VARARGS | METH_KEYWORDS,
     "backward($self, d_output, *, d_lse=None, want=None, threads=None)\n--\n\n"
     "Gradients from those of the output: a dict of f32 arrays.\n\n"
     "want: names out of query, key, value, those of the layer's weights, mask, bias,\n"
     "alibi_slopes, sinks, gates. None: the inputs that were given, and all weights. An input\n"
     "that was left out adds to the one that stood in for it: the query of a self-attention\n"
     "has the whole."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef attributes[] = {{"result", tape_result, NULL, "What the layer returned.", NULL},
                                   {"output", tape_output, NULL, "The output alone.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static const char doc[] =
    "A call of a layer that is remembered, made by Layer.tape().\n\n"
    "It holds on to the arrays it was given: they must not change before backward().";

static PyType_Slot slots[] = {{Py_tp_doc, (void *)doc},
                              {Py_tp_dealloc, tape_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, attributes},
                              {0, NULL}};

static PyType_Spec spec = {.name = "mha.Tape",
                           .basicsize = sizeof(tape),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};

int mhap_tape_type_add(PyObject *module, mhap_state *state)
{
    state->tape_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return state->tape_type ? PyModule_AddType(module, (PyTypeObject *)state->tape_type) : -1;
}
