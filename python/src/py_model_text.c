/* SPDX-License-Identifier: MIT */
/* Calls of a model on texts and prompts: _encode(), _generate() and _score(). */
#include <string.h>

#include "py_model.h"

static PyObject *or_null(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

/* The texts of a list of bytes, borrowed. */
static const char **read_texts(PyObject *list, mhap_kept *kept, ptrdiff_t *count)
{
    *count = PyList_Size(list);
    const char **const texts = mhap_keep(kept, (size_t)*count * sizeof *texts);
    for (ptrdiff_t n = 0; texts && n < *count; n++) {
        Py_ssize_t length;
        char *text;
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, n), &text, &length))
            return NULL;
        if (strlen(text) != (size_t)length) {
            PyErr_Format(PyExc_ValueError, "text %zd has a zero byte, which ends a text in C",
                         (Py_ssize_t)n);
            return NULL;
        }
        texts[n] = text;
    }
    return texts;
}

/* --------------------------------------------------------------- encode ----- */

PyObject *mhap_model_encode(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"texts",   "out",   "pooling", "normalize",
                            "longest", "heads", "threads", NULL};
    const mhap_model *const self = (const mhap_model *)object;
    char message[MHAP_MESSAGE] = "";
    mha_encode_config c = {.size = sizeof c, .message = message, .message_size = sizeof message};
    PyObject *list, *out, *settings = Py_None, *threads = Py_None;
    int pooling;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O$iinOO:_encode", names, &PyList_Type,
                                     &list, &out, &pooling, &c.normalize, &c.longest, &settings,
                                     &threads))
        return NULL;
    c.pooling = (mha_pooling)pooling;
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(self->model, &info);
    mhap_kept kept = {.count = 0};
    mhap_array array = {.object = NULL};
    mhap_heads heads;
    mha_pool *pool = NULL;
    ptrdiff_t count = 0;
    int failed = mhap_heads_take(self, settings, &heads);
    const char **const texts = failed ? NULL : read_texts(list, &kept, &count);
    failed = !texts ||
             mhap_flat(self->state, out, "out", MHAP_F32, count * info.width, true, &array) ||
             mhap_pool_for(self->state, or_null(threads), &pool);
    if (!failed) {
        c.heads = heads.settings;
        mha_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = mha_model_encode(self->model, texts, count, &c, array.data, pool);
        Py_END_ALLOW_THREADS;
        failed = mhap_check(self->state, status, message);
    }
    mhap_release(&array);
    mhap_heads_release(&heads);
    mhap_kept_free(&kept);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------------- score ----- */

PyObject *mhap_model_score(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"starts", "ids", "out", "heads", "threads", NULL};
    const mhap_model *const self = (const mhap_model *)object;
    char message[MHAP_MESSAGE] = "";
    PyObject *starts, *ids, *out, *settings = Py_None, *threads = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOO$OO:_score", names, &starts, &ids, &out,
                                     &settings, &threads))
        return NULL;
    mhap_rows rows;
    mhap_heads heads;
    mhap_array array = {.object = NULL};
    mha_pool *pool = NULL;
    memset(&rows, 0, sizeof rows);
    int failed = mhap_heads_take(self, settings, &heads) ||
                 mhap_rows_take(self->state, starts, ids, &rows) ||
                 mhap_flat(self->state, out, "out", MHAP_F64, rows.rows, true, &array) ||
                 mhap_pool_for(self->state, or_null(threads), &pool);
    if (!failed) {
        mha_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = mha_model_score(self->model, rows.B, rows.starts, rows.ids, heads.settings,
                                 array.data, message, sizeof message, pool);
        Py_END_ALLOW_THREADS;
        failed = mhap_check(self->state, status, message);
    }
    mhap_release(&array);
    mhap_rows_release(&rows);
    mhap_heads_release(&heads);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ------------------------------------------------------------- generate ----- */

/* Generation runs without the GIL, which the callback takes for every token: the caller's function
 * is called, and signals such as Ctrl-C are handled. */
typedef struct listener {
    PyThreadState *thread;
    PyObject *function; /* NULL: none */
    bool failed;        /* a Python exception is set */
} listener;

static int hear(void *context, ptrdiff_t b, int32_t id, const char *text, size_t length)
{
    listener *const l = context;
    int stop = 1;
    PyEval_RestoreThread(l->thread);
    if (!l->failed && PyErr_CheckSignals())
        l->failed = true;
    if (!l->failed && l->function) {
        PyObject *const piece = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
        PyObject *const result =
            piece ? PyObject_CallFunction(l->function, "niO", (Py_ssize_t)b, (int)id, piece) : NULL;
        stop = result ? PyObject_IsTrue(result) : -1;
        l->failed = stop < 0;
        Py_XDECREF(result);
        Py_XDECREF(piece);
    } else {
        stop = l->failed;
    }
    l->thread = PyEval_SaveThread();
    return stop != 0;
}

/* (ids, text, log_probability, ended, score, confidence) */
static PyObject *generation_tuple(const mha_generation *g)
{
    PyObject *const ids = PyList_New(g->count);
    for (ptrdiff_t n = 0; ids && n < g->count; n++) {
        PyObject *const id = PyLong_FromLong(g->ids[n]);
        if (!id || PyList_SetItem(ids, n, id)) {
            Py_DECREF(ids);
            return NULL;
        }
    }
    PyObject *const text =
        ids ? PyUnicode_DecodeUTF8(g->text ? g->text : "", (Py_ssize_t)g->length, "replace") : NULL;
    if (!text) {
        Py_XDECREF(ids);
        return NULL;
    }
    return Py_BuildValue("(NNdOdd)", ids, text, g->log_probability, g->ended ? Py_True : Py_False,
                         g->score, g->confidence);
}

static PyObject *generation_list(const mha_generation *results, ptrdiff_t count)
{
    PyObject *const list = PyList_New(count);
    for (ptrdiff_t n = 0; list && n < count; n++) {
        PyObject *const tuple = generation_tuple(&results[n]);
        if (!tuple || PyList_SetItem(list, n, tuple)) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* Generates with everything taken; the results, c->best per prompt, are freed here. */
static PyObject *generate(const mhap_model *self, const mhap_rows *rows, mha_generate_config *c,
                          PyObject *function, mha_generation *results, mha_pool *pool)
{
    char message[MHAP_MESSAGE] = "";
    listener l = {.function = function};
    c->message = message;
    c->message_size = sizeof message;
    c->callback = c->beams > 1 && !function ? NULL : hear;
    c->context = &l;
    const ptrdiff_t count = rows->B * c->best;
    memset(results, 0, (size_t)count * sizeof *results);
    l.thread = PyEval_SaveThread();
    const mha_status status =
        mha_model_generate(self->model, rows->B, rows->starts, rows->ids, c, results, pool);
    PyEval_RestoreThread(l.thread);
    PyObject *list = NULL;
    if (!l.failed && !mhap_check(self->state, status, message))
        list = generation_list(results, count);
    for (ptrdiff_t n = 0; status == MHA_OK && n < count; n++)
        mha_generation_free(&results[n]);
    return list;
}

PyObject *mhap_model_generate(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"starts",          "ids",   "most",           "temperature",
                            "top_k",           "top_p", "min_p",          "repetition_penalty",
                            "repetition_last", "seed",  "stops",          "ignore_end",
                            "state",           "heads", "callback",       "threads",
                            "beams",           "best",  "length_penalty", NULL};
    const mhap_model *const self = (const mhap_model *)object;
    mha_generate_config c = {.size = sizeof c};
    mha_sampling *const s = &c.sampling;
    PyObject *starts, *ids, *stops, *state, *settings, *function, *threads;
    unsigned long long seed;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO$nfnfffnKO!pOOOOnnd:_generate", names,
                                     &starts, &ids, &c.most, &s->temperature, &s->top_k, &s->top_p,
                                     &s->min_p, &s->repetition_penalty, &s->repetition_last, &seed,
                                     &PyList_Type, &stops, &c.ignore_end, &state, &settings,
                                     &function, &threads, &c.beams, &c.best, &c.length_penalty))
        return NULL;
    if (c.best < 1 || c.best > MHA_BEAMS_MAX) {
        PyErr_Format(PyExc_ValueError, "best is %zd; use 1 to %d", c.best, (int)MHA_BEAMS_MAX);
        return NULL;
    }
    s->seed = seed;
    mhap_kept kept = {.count = 0};
    mhap_rows rows;
    mhap_heads heads;
    mhap_sequences *sequences = NULL;
    mha_pool *pool = NULL;
    PyObject *result = NULL;
    memset(&rows, 0, sizeof rows);
    int failed = mhap_heads_take(self, settings, &heads) ||
                 mhap_rows_take(self->state, starts, ids, &rows) ||
                 !(c.stops = read_texts(stops, &kept, &c.stop_count)) ||
                 mhap_pool_for(self->state, or_null(threads), &pool) ||
                 mhap_sequences_enter(self, state, &sequences);
    mha_generation *const results =
        failed ? NULL : mhap_keep(&kept, (size_t)(rows.B * c.best) * sizeof *results);
    if (results) {
        c.state = sequences ? sequences->sequences : NULL;
        c.heads = heads.settings;
        result = generate(self, &rows, &c, or_null(function), results, pool);
    }
    mhap_sequences_leave(sequences);
    mhap_rows_release(&rows);
    mhap_heads_release(&heads);
    mhap_kept_free(&kept);
    return result;
}
