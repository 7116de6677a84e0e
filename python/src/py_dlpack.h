/* SPDX-License-Identifier: MIT */
/* The structs of DLPack that this extension reads or writes: versions 0 ("dltensor" capsules) and 1
 * ("dltensor_versioned"), and the table of C functions of version 1.3. */
#ifndef MHAP_DLPACK_H
#define MHAP_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11, DL_CUDA_MANAGED = 13 };

enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

enum { DL_READ_ONLY = 1, DL_COPIED = 2 };

typedef struct dl_tensor {
    void *data;
    int32_t device, device_number;
    int32_t axes;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C-contiguous */
    uint64_t start;   /* in bytes from data */
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*drop)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*drop)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

typedef struct dl_exchange {
    uint32_t major, minor;
    const struct dl_exchange *older;
    void (*allocate)(void);
    int (*from_object)(void *object, dl_versioned **tensor); /* -1: a Python exception is set */
} dl_exchange;

#endif
