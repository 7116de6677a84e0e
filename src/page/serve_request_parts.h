/* SPDX-License-Identifier: MIT */
/* Shared by serve_request.c and serve_request_probe.c, which read the body of a request. */
#ifndef PAGE_SERVE_REQUEST_PARTS_H
#define PAGE_SERVE_REQUEST_PARTS_H

#include "format/json_reader.h"
#include "page/serve_request.h"

/* A body while it is read. */
typedef struct request_reading {
    serve_request *request;
    head_shape shape;
    json_reader json;
    char *message;
} request_reading;

/* Sets the message; returns false for the caller to return. */
bool request_wrong(const request_reading *r, const char *what);

/* Read a value; false with a message: it is of another type. */
bool request_string(request_reading *r, const char **text);
bool request_number(request_reading *r, uint64_t *number);
bool request_bool(request_reading *r, bool *value);

/* Finds a head, layer and head counted from 1, as an index into serve_request.changes[*kind]; false
 * with a message that begins with `where`. `name` may be NULL: it is missing. */
bool request_head(const request_reading *r, const char *where, const char *name, uint64_t layer,
                  uint64_t head, int *kind, int *index);

/* Reads the value of "probe". */
bool request_probe(request_reading *r);

#endif
