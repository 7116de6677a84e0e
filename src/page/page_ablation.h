/* SPDX-License-Identifier: MIT */
/* What "mha ablate --json" found, for the page of the same model. */
#ifndef PAGE_ABLATION_H
#define PAGE_ABLATION_H

#include "format/json_writer.h"
#include "format/text_file.h"
#include "model/head_settings.h"

/* The heads that a page has; 0 layers: none of the kind. */
typedef struct view_heads {
    int layers[ATTENTION_KINDS], heads[ATTENTION_KINDS];
} view_heads;

typedef struct view_damage {
    bool known;
    double delta, low, high, words_right, exact; /* low, high: NaN where there is no interval */
} view_damage;

typedef struct view_ablation {
    const char *model, *mode, *split;
    double sentences, loss, words_right, exact; /* of the whole model */
    view_heads shape;
    view_damage *heads; /* kind by kind, layer by layer */
    char *text;         /* of the file */
} view_ablation;

/* False, with a message, for a file that is something else, or of a model with other heads.
 * view_ablation_free() either way. */
bool view_ablation_read(view_ablation *ablation, const char *path, const view_heads *shape,
                        char message[VIEW_MESSAGE_MAX]);
void view_ablation_free(view_ablation *ablation);

/* An object "ablation". */
void view_ablation_put(json *j, const view_ablation *ablation);

#endif
