/* SPDX-License-Identifier: MIT */
/* Outputs of heads on another text (head_patches.h). */
#include "heads/head_patches.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether the attentions of a kind have as many rows in both texts. */
static bool same_rows(const capture *from, const subject_text *to, int kind, char *message)
{
    const bool source = kind == ATTENTION_ENCODER;
    const int there = from->kind[kind].rows, here = source ? to->source.count : to->target.count;
    if (there != here)
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "heads of the %s have a row for each token that it reads: %d in this text, %d in "
                 "the other one. Outputs can only be exchanged between equal numbers of tokens",
                 source ? "encoder" : "decoder", here, there);
    return there == here;
}

static bool list_kind(head_patches *p, const capture *from, int kind, const uint8_t *chosen,
                      const subject_text *to, char *message)
{
    const capture_heads *const h = &from->kind[kind];
    for (int n = 0; chosen && n < h->layers * h->heads; n++) {
        if (!chosen[n])
            continue;
        if (!same_rows(from, to, kind, message))
            return false;
        p->list[p->count++] =
            (head_patch){.kind = (attention_kind)kind,
                         .layer = n / h->heads,
                         .head = n % h->heads,
                         .outputs = h->outputs + (ptrdiff_t)n * h->rows * h->width};
    }
    return true;
}

bool head_patches_make(head_patches *p, const capture *from, const subject_text *to,
                       const uint8_t *const chosen[ATTENTION_KINDS],
                       char message[SUBJECT_MESSAGE_MAX])
{
    size_t all = 0;
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        all += (size_t)from->kind[kind].layers * (size_t)from->kind[kind].heads;
    *p = (head_patches){.list = calloc(all + 1, sizeof *p->list)};
    if (!p->list) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
        return false;
    }
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (!list_kind(p, from, kind, chosen[kind], to, message))
            return false;
    return true;
}

void head_patches_free(head_patches *p)
{
    free(p->list);
}
