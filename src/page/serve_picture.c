/* SPDX-License-Identifier: MIT */
/* Checks and decodes the picture of a request (serve_picture.h). Nothing in it is trusted. */
#include "page/serve_picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/http_server.h"
#include "picture/picture_resize.h"
#include "text/base64.h"

static size_t size_of(const serve_picture *p)
{
    return (size_t)p->rows * (size_t)p->columns * (size_t)p->channels;
}

const char *serve_picture_fault(const serve_picture *p)
{
    if (p->bytes == NULL || p->rows == 0 || p->columns == 0 || p->channels == 0)
        return "picture: \"rows\", \"columns\", \"channels\" and \"bytes\" are needed, none of "
               "them 0";
    if (p->rows > SERVE_SIDE_MAX || p->columns > SERVE_SIDE_MAX)
        return "picture: at most 1024 rows and columns; make it smaller";
    if (p->channels != 1 && p->channels != 3)
        return "picture: \"channels\" must be 1 (grey) or 3 (red, green, blue)";
    if (strlen(p->bytes) != (size_of(p) + 2) / 3 * 4)
        return "picture: \"bytes\" must be base64 of rows x columns x channels bytes";
    return NULL;
}

/* The pixels of a request without a fault; NULL pixels, with a message. */
static picture decode(const serve_picture *p, char *message)
{
    picture read = {.rows = (ptrdiff_t)p->rows,
                    .columns = (ptrdiff_t)p->columns,
                    .channels = (ptrdiff_t)p->channels};
    size_t length = 0;
    const mha_status status = base64_decode(p->bytes, strlen(p->bytes), &read.pixels, &length);
    snprintf(message, SUBJECT_MESSAGE_MAX, "%s",
             status == MHA_ERR_MEMORY
                 ? "out of memory"
                 : "picture: \"bytes\" must be base64 of rows x columns x channels bytes");
    if (status == MHA_OK && length != size_of(p)) {
        free(read.pixels);
        read.pixels = NULL;
    }
    return read;
}

uint8_t *serve_picture_read(const serve_picture *p, const subject *model,
                            char message[SUBJECT_MESSAGE_MAX])
{
    int side, channels;
    if (!subject_picture_size(model, &side, &channels)) {
        snprintf(message, SUBJECT_MESSAGE_MAX,
                 "the model reads texts, or no grey or coloured pictures; leave out \"picture\"");
        return NULL;
    }
    picture read = decode(p, message);
    if (read.pixels == NULL)
        return NULL;
    uint8_t *to = malloc((size_t)channels * (size_t)side * (size_t)side);
    if (to == NULL || !picture_input(&read, side, channels, to)) {
        snprintf(message, SUBJECT_MESSAGE_MAX, "out of memory");
        free(to);
        to = NULL;
    }
    picture_free(&read);
    return to;
}

size_t serve_body_most(const subject *model)
{
    int side, channels;
    if (!subject_picture_size(model, &side, &channels))
        return HTTP_BODY_MAX;
    return HTTP_BODY_MAX + ((size_t)side * (size_t)side * 3 + 2) / 3 * 4;
}
