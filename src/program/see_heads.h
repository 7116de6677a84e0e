/* SPDX-License-Identifier: MIT */
/*
 * Every head of a classifier drawn over a picture: how much of the weights of the row that is
 * classified by (the token of the class, or the mean of all rows) goes to each patch. Or every
 * cross head of a model of captions, word by word, or of a detector, query by query.
 */
#ifndef PROGRAM_SEE_HEADS_H
#define PROGRAM_SEE_HEADS_H

#include <mha/mha_model.h>

#include "picture/picture.h"

typedef struct head_maps {
    int layers, heads;   /* heads of the largest layer; of scenes: rows, and heads of all layers */
    int *count;          /* [layers] heads of each */
    int across;          /* patches along a side */
    int side;            /* pixels of the picture as the model reads it */
    int patch, stride;   /* pixels */
    float *shares;       /* [layers][heads][across * across] */
    const picture *seen; /* the picture as the model reads it, 1 or 3 channels */
    const char *const *words; /* [layers] of scenes: words, or what queries found; NULL: layers */
    int heads_of_layer;       /* of scenes */
} head_maps;

/* Runs the model on pixels[channels][side][side]. Returns EXIT_GO_ON, or EXIT_FAILED after a
 * message on stderr; head_maps_free() is needed in any case. */
int head_maps_make(head_maps *maps, const mha_model *model, const mha_model_info *info,
                   const float *pixels, const picture *seen, mha_pool *pool);
/* Fills in `count`: all layers have `heads`. Returns as above; the shares are freed with it. */
int head_maps_count(head_maps *maps);
void head_maps_free(head_maps *maps);

/* Draws a row of pictures for every layer: to a file that ends in .png or .svg, or to standard
 * output, there with the picture below where the terminal has colours and the locale is a UTF-8
 * one. Both return EXIT_FINE or EXIT_FAILED after a message. */
int head_maps_write(const head_maps *maps, const char *path, const char *title);
int head_maps_print(const head_maps *maps);

#endif
