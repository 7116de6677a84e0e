/* SPDX-License-Identifier: MIT */
#ifndef CLI_KIND_NAME_H
#define CLI_KIND_NAME_H

/* The capture_kind of this name, in capitals or not; CAPTURE_KINDS, which means all, for NULL.
 * EXIT_GO_ON, or EXIT_USAGE after a message that begins with the command's name. */
int kind_find(const char *command, const char *name, int *kind);

#endif
