/* SPDX-License-Identifier: MIT */
/* The picture of a request: "picture": {"rows": 28, "columns": 28, "channels": 1, "bytes":
 * "AAEC..."} with base64 of [rows][columns][channels], 8 bits a channel, grey or red, green and
 * blue. */
#ifndef PAGE_SERVE_PICTURE_H
#define PAGE_SERVE_PICTURE_H

#include "heads/subject.h"

enum { SERVE_SIDE_MAX = 1024 }; /* rows or columns of such a picture */

/* As it is in the request; its text is not checked yet. */
typedef struct serve_picture {
    uint64_t rows, columns, channels; /* 0: missing */
    const char *bytes;                /* NULL: there is no picture */
} serve_picture;

/* Whether sizes and text can be those of a picture. NULL: they can, else a sentence. */
const char *serve_picture_fault(const serve_picture *picture);

/* The picture as the model reads it, [channels][side][side], for free(). NULL, with a message. */
uint8_t *serve_picture_read(const serve_picture *picture, const subject *model,
                            char message[SUBJECT_MESSAGE_MAX]);

/* The most bytes of the body of a request to a model: room for a picture of its size. */
size_t serve_body_most(const subject *model);

#endif
