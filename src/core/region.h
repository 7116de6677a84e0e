/* SPDX-License-Identifier: MIT */
#ifndef MHAI_REGION_H
#define MHAI_REGION_H

#include "internal.h"

/* Check pointers, extents and strides of every tensor and array of a call: aligned, addressable,
 * outputs free of overlap with themselves, with each other, with inputs and with the workspace. */
mha_status mhai_check_memory(const mhai_call *call, const void *work, size_t work_size);

#endif
