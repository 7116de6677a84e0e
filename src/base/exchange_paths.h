/* SPDX-License-Identifier: MIT */
/* Two files or folders that take each other's name in one step. */
#ifndef BASE_EXCHANGE_PATHS_H
#define BASE_EXCHANGE_PATHS_H

/* 0, or an errno; ENOSYS or EINVAL where the system or the file system cannot do this. */
int mhai_paths_exchange(const char *one, const char *other);

#endif
