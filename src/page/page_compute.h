/* SPDX-License-Identifier: MIT */
/*
 * The computation of single attentions for the page's view Compute:
 *
 *      "steps": [{"kind": "encoder", "layer": 1, "rows": 9, "columns": 9, "width": 128,
 *                 "inner": 512, "norm_first": true, "norm": "layer", "norm_eps": 1e-05,
 *                 "turn": {"normed": false, "neighbours": false, "query_factor": 1, "angles": []},
 *                 "heads": "...", "stream": "...", ...}, ...]
 *      "matrices": [{"kind": "encoder", "layer": 1,
 *                    "q": {"outputs": 128, "inputs": 128, "weight": "...", "bias": "..."}, ...}]
 *
 * Steps have the matrices of heads/computation.h under their names there, as far as they are known,
 * "turn" only if something is done with queries and keys, and "heads" [heads][rows][width of a
 * head], the outputs before W_O. Matrices are the same for any sentence. All texts are those of
 * page_numbers_text(). Layers are counted from 1.
 */
#ifndef PAGE_COMPUTE_H
#define PAGE_COMPUTE_H

#include "format/json_writer.h"
#include "heads/subject.h"

/* Larger matrices are left out of pages, and of answers of "mha serve"; so are steps of texts whose
 * stream is larger. */
enum { PAGE_MATRIX_CELLS = 1 << 16, PAGE_LIVE_MATRIX_CELLS = 1 << 18, PAGE_STEP_CELLS = 1 << 17 };

/* The steps of one text, of at most one layer of each kind. */
typedef struct page_steps {
    capture *heads;
    computation steps[ATTENTION_KINDS];
    bool has[ATTENTION_KINDS];
} page_steps;

/* layers[kind]: which, from 0; -1: none. A text that is too long has none either. False: out of
 * memory. page_steps_free() in either case. */
bool page_steps_make(page_steps *steps, const subject *model, const subject_text *text,
                     const uint8_t *const changes[ATTENTION_KINDS],
                     const int layers[ATTENTION_KINDS], mha_pool *pool);
void page_steps_free(page_steps *steps);

/* The parameters of the same layers. */
typedef struct page_matrices {
    computation_weights weights[ATTENTION_KINDS];
    bool has[ATTENTION_KINDS];
    bool live; /* for an answer: with those of the feed-forward, which are large */
} page_matrices;

bool page_matrices_make(page_matrices *matrices, const subject *model,
                        const int layers[ATTENTION_KINDS], bool live);
void page_matrices_free(page_matrices *matrices);

/* Write the arrays above into an open object. False: out of memory. */
bool page_steps_put(json *j, const page_steps *steps);
bool page_matrices_put(json *j, const page_matrices *matrices);

#endif
