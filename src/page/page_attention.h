/* SPDX-License-Identifier: MIT */
/*
 * The heads of one kind of attention, an element of "kinds" in the page's JSON:
 *
 *      "name": "encoder", "layers": 2, "heads": 4, "rows": 7, "columns": 7, "causal": false,
 *      "compact": false, "weights": ["AACAPw...", ... one text per head], "measures": {...},
 *      "roles": [...]
 *
 * A kind with at most PAGE_EXACT_CELLS weights has them exactly, a larger one in the compact form
 * of page_weights.h. If a head has more than PAGE_PICTURE_SIDE rows or columns, "pictures" has a
 * small picture of each head.
 */
#ifndef PAGE_ATTENTION_H
#define PAGE_ATTENTION_H

#include "page/page_measures.h"

enum { PAGE_EXACT_CELLS = 1 << 20 };

typedef struct page_attention {
    head_scene scene;
    const head_baselines *baselines; /* NULL: not known */
    const subject_picture *picture;  /* rows and columns are patches of it; NULL: they are words */
    int layers, heads, rows, columns;
    bool causal;
    /* Returns the weights of a layer, [heads][rows][columns], which are valid until the next call.
     * NULL: they cannot be read. So only one layer of a large file is in memory at a time. */
    const float *(*weights)(void *arg, int layer);
    void *arg;
} page_attention;

/* Writes the keys into the open object. False: out of memory, or weights cannot be read. */
bool page_attention_put(json *j, const page_attention *attention);

#endif
