/* SPDX-License-Identifier: MIT */
/* What state.c and state_file.c share. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/model_parts.h"

/* A state without caches; mha_state_free() frees it. */
mha_status state_allocate(mha_state **state, const mha_model *model,
                          const mha_state_config *config);

/* As mha_state_create(), for beam searches: `beams` sequences, one after another, share a source
 * text, which is given with the first of them. config.sequences is a multiple of `beams`. */
mha_status state_create_beams(mha_state **state, const mha_model *model,
                              const mha_state_config *config, ptrdiff_t beams);

/* Every sequence n becomes what parents[n] was; only the keys and values move, not the tokens. */
mha_status state_reorder_beams(mha_state *state, const int64_t *parents);

/* What cache n of the state must be. */
mha_cache_config state_cache_config(const mha_state *state, int n);

#endif
