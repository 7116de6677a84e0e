/* SPDX-License-Identifier: MIT */
/* What a process that only answers requests can do without. */
#ifndef BASE_RESTRICT_CALLS_H
#define BASE_RESTRICT_CALLS_H

#include <stdbool.h>

/*
 * Gives up, for all threads and for good: starting processes and programs, opening sockets,
 * creating, writing, renaming and removing files, changing their owners and rights, reading other
 * processes. A call for any of it fails with EPERM. What is open stays usable, files can be opened
 * for reading and threads be started. False if this system cannot do it.
 */
bool restrict_calls(void);

#endif
