/* SPDX-License-Identifier: MIT */
/* <sys/wait.h> of POSIX: everything is in missing.h. */
#include "missing.h"
