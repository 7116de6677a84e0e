/* SPDX-License-Identifier: MIT */
/* What "mha ablate --json" found, for the page of the same model. */
#ifndef PAGE_ABLATION_H
#define PAGE_ABLATION_H

#include "format/json_writer.h"
#include "format/text_file.h"
#include "model/head_settings.h"

/* The heads that a page has; 0 layers: none of the kind. */
typedef struct page_heads {
    int layers[ATTENTION_KINDS], heads[ATTENTION_KINDS];
} page_heads;

typedef struct page_head_damage {
    bool known;
    double delta, low, high, words_right, exact; /* low, high: NaN where there is no interval */
} page_head_damage;

typedef struct page_ablation {
    const char *model, *mode, *split;
    double sentences, loss, words_right, exact; /* of the whole model */
    page_heads shape;
    page_head_damage *heads; /* kind by kind, layer by layer */
    char *text;              /* of the file */
} page_ablation;

/* False, with a message, for a file that is something else, or of a model with other heads.
 * page_ablation_free() either way. */
bool page_ablation_read(page_ablation *ablation, const char *path, const page_heads *shape,
                        char message[TEXT_FILE_MESSAGE_MAX]);
void page_ablation_free(page_ablation *ablation);

/* An object "ablation". */
void page_ablation_put(json *j, const page_ablation *ablation);

#endif
