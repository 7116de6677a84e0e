/* SPDX-License-Identifier: MIT */
/* "mha prune" of a model that is no translator. */
#ifndef PROGRAM_PRUNE_ANY_H
#define PROGRAM_PRUNE_ANY_H

#include "program/heads_setup.h"

/*
 * Disables heads of a model one after another, the least costly first, until `keep` are left, and
 * prints what the model then loses on the texts of the setup. The order is that of the loss that
 * each head costs alone, which is measured once: such models have no gradients here. Returns an
 * exit code.
 */
int prune_any(const heads_setup *setup, int64_t keep, bool as_json);

#endif
