/* SPDX-License-Identifier: MIT */
/*
 * A run that is interfered with, for tools that study a model: tokens that no other token may
 * attend to, and outputs of heads that are replaced by given ones. It is otherwise that of
 * mha_model_run(), to the bit.
 */
#ifndef MODEL_INTERVENE_H
#define MODEL_INTERVENE_H

#include <mha/mha_model.h>

/* The output of a head before W_O, for all rows of its attention: [rows][head width]. */
typedef struct model_patch {
    mha_attention_kind kind;
    ptrdiff_t layer, head;
    const float *outputs;
} model_patch;

typedef struct model_intervention {
    const uint8_t *ignored; /* [rows of ids or pixels] not 0: no token of the stack that reads them
                             * attends to this one; NULL: none */
    const model_patch *patches;
    ptrdiff_t patch_count;
} model_intervention;

/*
 * Runs one sequence (B is 1), without a state. An attention that has a patch must be captured with
 * its `heads`, which then are the patched ones. The caller has checked that the heads exist. The
 * errors are those of mha_model_run(); MHA_ERR_FLAG: another B, a state, an attention that is not
 * captured, or one whose W_O cannot be run alone.
 */
mha_status model_run_changed(const mha_model *model, const mha_model_call *call,
                             const model_intervention *intervention, mha_pool *pool);

#endif
