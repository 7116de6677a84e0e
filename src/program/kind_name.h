/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_KIND_NAME_H
#define PROGRAM_KIND_NAME_H

/* The attention_kind of this name, in capitals or not; ATTENTION_KINDS, which means all, for NULL.
 * EXIT_GO_ON, or EXIT_USAGE after a message that begins with the command's name. */
int kind_find(const char *command, const char *name, int *kind);

#endif
