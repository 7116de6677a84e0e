/* SPDX-License-Identifier: MIT */
/* Heads as options name them. */
#ifndef PROGRAM_HEAD_OPTION_H
#define PROGRAM_HEAD_OPTION_H

#include "model/head_settings.h"

typedef struct head_choice {
    int kind;        /* ATTENTION_KINDS: not said */
    int layer, head; /* from 1 on; layer 0: not said */
} head_choice;

/*
 * "cross 2.4" as it is printed everywhere, "cross L2 H4", "cross.2.4", "Cross, layer 2, head 4": in
 * capitals or not. Without a kind it is of any kind, without a layer of any layer: "2.4", "4".
 * EXIT_GO_ON, or EXIT_USAGE after a message.
 */
int head_option_read(const char *command, const char *option, const char *text,
                     head_choice *choice);

#endif
