/* SPDX-License-Identifier: MIT */
/*
 * The heads of one kind of attention as the page has them:
 *
 *      "name": "encoder", "layers": 2, "heads": 4, "rows": 7, "columns": 7, "causal": false,
 *      "compact": false, "weights": ["AACAPw...", ... one text per head], "measures": {...},
 * "roles": [...]
 *
 * Weights of a kind are exact up to PAGE_EXACT_CELLS of them and compact above (page_weights.h).
 * Heads with more rows or columns than a small picture has come with one: "pictures".
 */
#ifndef PAGE_ATTENTION_H
#define PAGE_ATTENTION_H

#include "page/page_measures.h"

enum { PAGE_EXACT_CELLS = 1 << 20 };

typedef struct page_attention {
    head_scene scene;
    const head_baselines *baselines; /* NULL: not known */
    int layers, heads, rows, columns;
    bool causal;
    /* [heads][rows][columns] of a layer, until the next is asked for; NULL: they are not to be
     * had. */
    const float *(*weights)(void *arg, int layer);
    void *arg;
} page_attention;

/* Into an object that is open. False: no memory, or no weights. */
bool page_attention_put(json *j, const page_attention *kind);

/* A text as it is made by page_weights.h, which it frees; false for NULL. */
bool page_put_text(json *j, const char *key, char *text);

#endif
