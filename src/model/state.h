/* SPDX-License-Identifier: MIT */
/* What state.c and state_file.c share. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/model_parts.h"

/* A state without caches; mha_state_free() frees it. */
mha_status state_allocate(mha_state **state, const mha_model *model,
                          const mha_state_config *config);

/* What cache n of the state must be. */
mha_cache_config state_cache_config(const mha_state *state, int n);

#endif
