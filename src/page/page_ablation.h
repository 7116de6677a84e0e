/* SPDX-License-Identifier: MIT */
/* The result of "mha ablate --json" on a page of the same model. */
#ifndef PAGE_ABLATION_H
#define PAGE_ABLATION_H

#include "format/json_writer.h"
#include "format/text_file.h"
#include "translator/head_settings.h"

/* How many heads a page shows. page_heads_of() in page.h finds them. */
typedef struct page_heads {
    int layers[ATTENTION_KINDS], heads[ATTENTION_KINDS]; /* heads per layer; 0 layers: none */
} page_heads;

/* The number of heads of all kinds before `kind`: the index of its first head in an array of all
 * heads, kind by kind and layer by layer. ATTENTION_KINDS: the number of all heads. */
int page_heads_before(const page_heads *heads, int kind);

/* What the model loses without one head. */
typedef struct page_head_damage {
    bool known;                /* the file has this head */
    double delta;              /* increase of the loss per word, in nats */
    double low, high;          /* its 95 % interval; NaN where the file has none */
    double words_right, exact; /* shares, without the head */
} page_head_damage;

typedef struct page_ablation {
    const char *model, *mode, *split;           /* inside `text` */
    double sentences, loss, words_right, exact; /* of the whole model */
    page_heads shape;
    page_head_damage *heads; /* of all heads, ordered as page_heads_before() says */
    char *text;              /* of the file */
} page_ablation;

/* Reads a file. False, with a message, if it is not the output of "mha ablate --json", or of a
 * model with other heads than `shape`. page_ablation_free() is called in either case. */
bool page_ablation_read(page_ablation *ablation, const char *path, const page_heads *shape,
                        char message[TEXT_FILE_MESSAGE_MAX]);
void page_ablation_free(page_ablation *ablation);

/* Writes the object "ablation". */
void page_ablation_put(json *j, const page_ablation *ablation);

#endif
