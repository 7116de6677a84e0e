/* SPDX-License-Identifier: MIT */
/* How much memory this program really uses, as Linux says. */
#ifndef MHA_MEMORY_USE_H
#define MHA_MEMORY_USE_H

#include <stddef.h>

/* Bytes in memory now, and the most since memory_peak_reset(). 0: the system does not say, or a
 * sanitizer has memory of its own. */
size_t memory_now(void);
size_t memory_peak(void);
void memory_peak_reset(void);

#endif
