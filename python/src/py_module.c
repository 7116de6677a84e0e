/* SPDX-License-Identifier: MIT */
/* The module mha._core: its functions, types and state. */
#include "py_functions.h"
#include "py_layer.h"
#include "py_libraries.h"
#include "py_linear.h"
#include "py_module_docs.h"
#ifdef MHAP_HAS_MODEL
#include "py_model.h"
#endif

/* Searches the base classes: Python classes derived from ours have no C module. */
mhap_state *mhap_state_of(PyTypeObject *type)
{
    mhap_state *state = PyType_GetModuleState(type);
    while (!state && (type = PyType_GetSlot(type, Py_tp_base)) != NULL) {
        PyErr_Clear();
        state = PyType_GetModuleState(type);
    }
    return state;
}

static PyObject *isa(PyObject *module, PyObject *unused)
{
    (void)unused;
    const char *const name = mha_isa_name();
    if (!name)
        mhap_check(PyModule_GetState(module), MHA_ERR_ISA, NULL);
    return name ? PyUnicode_FromString(name) : NULL;
}

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef functions[] = {
    {"attention", FAST(mhap_attention), ATTENTION_DOC},
    {"attention_backward", FAST(mhap_attention_backward), BACKWARD_DOC},
    {"attention_weights", FAST(mhap_attention_weights), WEIGHTS_DOC},
    {"head_statistics", FAST(mhap_head_statistics), STATISTICS_DOC},
    {"merge", FAST(mhap_merge), MERGE_DOC},
    {"norm", (PyCFunction)(void (*)(void))mhap_norm, METH_VARARGS | METH_KEYWORDS, NORM_DOC},
    {"set_threads", mhap_set_threads, METH_O, SET_THREADS_DOC},
    {"get_threads", mhap_get_threads, METH_NOARGS, GET_THREADS_DOC},
    {"isa", isa, METH_NOARGS, ISA_DOC},
    {NULL, NULL, 0, NULL},
};

/* The types of libmha_model, if it was there when the extension was built. */
static int add_model_types(PyObject *module, mhap_state *state)
{
#ifdef MHAP_HAS_MODEL
    return mhap_tokenizer_type_add(module, state) || mhap_model_type_add(module, state) ||
           mhap_sequences_type_add(module, state);
#else
    (void)module;
    (void)state;
    return 0;
#endif
}

int mhap_type_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *const type = PyType_FromModuleAndSpec(module, spec, NULL);
    const int status = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return status;
}

static int module_exec(PyObject *module)
{
    mhap_state *const state = PyModule_GetState(module);
    return mhap_option_names_add(state) || mhap_errors_add(module, state) ||
                   mhap_array_type_add(module, state) || mhap_layer_types_add(module, state) ||
                   mhap_cache_type_add(module, state) || add_model_types(module, state) ||
                   mhap_linear_type_add(module, state) ||
                   mhap_feed_forward_type_add(module, state) ||
                   mhap_stack_type_add(module, state) ||
                   PyModule_AddStringConstant(module, "version", mha_version_string())
               ? -1
               : 0;
}

/* The objects of the state by number, for traversing and clearing; NULL after the last. */
static PyObject **state_object(mhap_state *state, int number)
{
    PyObject **const single[] = {
        &state->error,          &state->array_type,       &state->result_type,
        &state->gradients_type, &state->statistics_type,  &state->layer_type,
        &state->cache_type,     &state->tape_type,        &state->model_type,
        &state->sequences_type, &state->feed_forward_type};
    const int singles = sizeof single / sizeof *single;
    if (number < singles)
        return single[number];
    number -= singles;
    return number < MHAP_OPTIONS ? &state->option_names[number] : NULL;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    mhap_state *const state = PyModule_GetState(module);
    PyObject **object;
    for (int n = 0; (object = state_object(state, n)); n++)
        Py_VISIT(*object);
    const int status = mhap_library_visit(&state->numpy, visit, arg);
    return status ? status : mhap_library_visit(&state->torch, visit, arg);
}

static int module_clear(PyObject *module)
{
    mhap_state *const state = PyModule_GetState(module);
    PyObject **object;
    for (int n = 0; (object = state_object(state, n)); n++)
        Py_CLEAR(*object);
    mhap_library_clear(&state->numpy);
    mhap_library_clear(&state->torch);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}};

static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                 .m_name = "mha._core",
                                 .m_doc = "The compiled part of mha.",
                                 .m_size = sizeof(mhap_state),
                                 .m_methods = functions,
                                 .m_slots = slots,
                                 .m_traverse = module_traverse,
                                 .m_clear = module_clear,
                                 .m_free = module_free};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
