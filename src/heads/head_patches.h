/* SPDX-License-Identifier: MIT */
/*
 * Activation patching: outputs of chosen heads, before W_O, that are taken from the run of a model
 * on another text. Row i of a head gets what row i of the same head had there, so its attention
 * must have as many rows in both texts.
 */
#ifndef HEADS_HEAD_PATCHES_H
#define HEADS_HEAD_PATCHES_H

#include "heads/subject.h"

typedef struct head_patches {
    head_patch *list; /* for capture_options */
    int count;
} head_patches;

/* The patches of the heads that are not 0 in chosen[kind], [layers][heads]. `from` is the other
 * run, which has its outputs and must outlive them. False, with a message: a chosen head has
 * another number of rows in `to`, or out of memory. head_patches_free() either way. */
bool head_patches_make(head_patches *patches, const capture *from, const subject_text *to,
                       const uint8_t *const chosen[ATTENTION_KINDS],
                       char message[SUBJECT_MESSAGE_MAX]);
void head_patches_free(head_patches *patches);

#endif
