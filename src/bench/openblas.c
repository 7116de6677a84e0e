/* SPDX-License-Identifier: MIT */
/* Loads OpenBLAS with dlopen() and calls its C interface. */
#include "bench/openblas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Constants of the C interface to BLAS. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

static void *open_library(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        void *library = dlopen(names[n], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library != NULL)
            return library;
    }
    return NULL;
}

bool openblas_open(openblas *o, char *message, size_t size)
{
    *o = (openblas){.library = open_library()};
    if (o->library == NULL) {
        snprintf(message, size, "OpenBLAS is not installed; Debian has it in %s", OPENBLAS_PACKAGE);
        return false;
    }
    *(void **)&o->sgemm = dlsym(o->library, "cblas_sgemm");
    *(void **)&o->sgemv = dlsym(o->library, "cblas_sgemv");
    *(void **)&o->set_threads = dlsym(o->library, "openblas_set_num_threads");
    if (o->sgemm != NULL && o->sgemv != NULL && o->set_threads != NULL)
        return true;
    snprintf(message, size, "the installed OpenBLAS has no C interface; Debian has one in %s",
             OPENBLAS_PACKAGE);
    openblas_close(o);
    return false;
}

void openblas_close(openblas *o)
{
    if (o->library != NULL)
        dlclose(o->library);
    memset(o, 0, sizeof *o);
}

void openblas_product(const openblas *o, openblas_layout layout, int m, int n, int k,
                      const float *x, const float *weight, float *y)
{
    const bool out_in = layout == OPENBLAS_OUT_IN;
    o->sgemm(ROW_MAJOR, NO_TRANS, out_in ? TRANS : NO_TRANS, m, n, k, 1.0f, x, k, weight,
             out_in ? k : n, 0.0f, y, n);
}

void openblas_vector_product(const openblas *o, openblas_layout layout, int n, int k,
                             const float *x, const float *weight, float *y)
{
    if (layout == OPENBLAS_OUT_IN)
        o->sgemv(ROW_MAJOR, NO_TRANS, n, k, 1.0f, weight, k, x, 1, 0.0f, y, 1);
    else
        o->sgemv(ROW_MAJOR, TRANS, k, n, 1.0f, weight, n, x, 1, 0.0f, y, 1);
}
