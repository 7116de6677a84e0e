/* SPDX-License-Identifier: MIT */
/* "mha prune" of a model that is no translator. */
#ifndef PROGRAM_PRUNE_ANY_H
#define PROGRAM_PRUNE_ANY_H

#include "program/heads_setup.h"

typedef struct prune_any_request {
    const heads_setup *setup;
    int64_t keep;        /* heads */
    const char *output;  /* where the pruned model is written; NULL: nowhere */
    bool zeros, replace; /* as in mha_save_config */
    bool as_json;
} prune_any_request;

/* What would only fail after all measurements. EXIT_GO_ON, or the exit code after a message. */
int prune_any_check(const prune_any_request *request);

/*
 * Disables heads of a model one after another, the least costly first, until `keep` are left, and
 * prints what the model then loses on the texts of the setup. The order is that of the loss that
 * each head costs alone, which is measured once: such models have no gradients here. A model that
 * is written keeps at least one head in every layer. Returns an exit code.
 */
int prune_any(const prune_any_request *request);

#endif
