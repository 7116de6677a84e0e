/* SPDX-License-Identifier: MIT */
/*
 * Reads {"text": ..., "to": ..., "picture": {...}, "changes": [...], "effects": ..., "compute":
 * {...}, "probe":
 * {...}} token by token; serve_request_probe.c reads the last of them. Unknown keys are errors:
 * they are mistakes of the client, which would otherwise get an answer to another question.
 */
#include <stdio.h>
#include <string.h>

#include "page/serve_request_parts.h"

/* An element of "changes" before it is checked; all four keys are required. */
typedef struct parsed_change {
    const char *kind, *change;
    uint64_t layer, head; /* from 1; 0: missing */
} parsed_change;

bool request_wrong(const request_reading *r, const char *what)
{
    snprintf(r->message, SUBJECT_MESSAGE_MAX, "%s", what);
    return false;
}

bool request_string(request_reading *r, const char **text)
{
    if (json_reader_next(&r->json) != JSON_STRING)
        return request_wrong(r, "a text was expected");
    *text = r->json.text;
    return true;
}

bool request_number(request_reading *r, uint64_t *number)
{
    if (json_reader_next(&r->json) != JSON_NUMBER || !json_reader_integer(&r->json, number))
        return request_wrong(r, "a whole number was expected");
    return true;
}

bool request_bool(request_reading *r, bool *value)
{
    const json_reader_token token = json_reader_next(&r->json);
    *value = token == JSON_TRUE;
    return *value || token == JSON_FALSE || request_wrong(r, "true or false was expected");
}

static bool find_kind(const char *name, int *kind)
{
    for (*kind = 0; *kind < ATTENTION_KINDS; ++*kind)
        if (strcmp(name, attention_kind_name((attention_kind)*kind)) == 0)
            return true;
    return false;
}

bool request_head(const request_reading *r, const char *where, const char *name, uint64_t layer,
                  uint64_t head, int *kind, int *index)
{
    const char *wrong = NULL;
    if (name == NULL || !find_kind(name, kind))
        wrong = "\"kind\" must be encoder, decoder or cross";
    else if (r->shape.layers[*kind] * r->shape.heads > SERVE_HEADS_MAX)
        wrong = "the model has too many heads";
    else if (layer < 1 || layer > (uint64_t)r->shape.layers[*kind] || head < 1 ||
             head > (uint64_t)r->shape.heads)
        wrong = "there is no such head";
    if (wrong != NULL)
        snprintf(r->message, SUBJECT_MESSAGE_MAX, "%s: %s", where, wrong);
    else
        *index = (int)(layer - 1) * r->shape.heads + (int)(head - 1);
    return wrong == NULL;
}

/* Checks a change and enters it into the request. */
static bool take_change(const request_reading *r, const parsed_change *c)
{
    int kind, index;
    if (!request_head(r, "changes", c->kind, c->layer, c->head, &kind, &index))
        return false;
    const bool zero = c->change != NULL && strcmp(c->change, "zero") == 0;
    if (!zero && (c->change == NULL || strcmp(c->change, "uniform") != 0))
        return request_wrong(r, "changes: \"change\" must be zero or uniform");
    r->request->changes[kind][index] = zero ? HEAD_ZERO : HEAD_UNIFORM;
    r->request->request.changes[kind] = r->request->changes[kind];
    r->request->changed = true;
    return true;
}

/* Reads an element of "changes"; its opening brace has been read. */
static bool read_change(request_reading *r)
{
    parsed_change change = {NULL, NULL, 0, 0};
    json_reader_token token;
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known =
            strcmp(key, "kind") == 0     ? request_string(r, &change.kind)
            : strcmp(key, "change") == 0 ? request_string(r, &change.change)
            : strcmp(key, "layer") == 0  ? request_number(r, &change.layer)
            : strcmp(key, "head") == 0
                ? request_number(r, &change.head)
                : request_wrong(r, "changes: unknown key; the keys are kind, layer, head, change");
        if (!known)
            return false;
    }
    return token == JSON_OBJECT_END && take_change(r, &change);
}

static bool read_changes(request_reading *r)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_ARRAY)
        return request_wrong(r, "\"changes\" must be an array");
    while ((token = json_reader_next(&r->json)) == JSON_OBJECT)
        if (!read_change(r))
            return false;
    return token == JSON_ARRAY_END || request_wrong(r, "\"changes\" must contain objects only");
}

/* Reads {"kind": "encoder", "layer": 1}. */
static bool read_compute(request_reading *r)
{
    const char *name = NULL;
    uint64_t layer = 0;
    int kind;
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return request_wrong(r, "\"compute\" must be an object");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known = strcmp(key, "kind") == 0 ? request_string(r, &name)
                           : strcmp(key, "layer") == 0
                               ? request_number(r, &layer)
                               : request_wrong(r, "compute: unknown key; the keys "
                                                  "are kind and layer");
        if (!known)
            return false;
    }
    if (token != JSON_OBJECT_END)
        return false;
    if (name == NULL || !find_kind(name, &kind))
        return request_wrong(r, "compute: \"kind\" must be encoder, decoder or cross");
    if (layer < 1 || layer > (uint64_t)r->shape.layers[kind])
        return request_wrong(r, "compute: there is no such layer");
    r->request->compute = true;
    r->request->kind = (attention_kind)kind;
    r->request->layer = (int)layer - 1;
    return true;
}

/* Reads {"rows": 28, "columns": 28, "channels": 1, "bytes": "AAEC..."}. */
static bool read_picture(request_reading *r)
{
    serve_picture *const p = &r->request->picture;
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return request_wrong(r, "\"picture\" must be an object");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known = strcmp(key, "rows") == 0       ? request_number(r, &p->rows)
                           : strcmp(key, "columns") == 0  ? request_number(r, &p->columns)
                           : strcmp(key, "channels") == 0 ? request_number(r, &p->channels)
                           : strcmp(key, "bytes") == 0
                               ? request_string(r, &p->bytes)
                               : request_wrong(r, "picture: unknown key; the keys are rows, "
                                                  "columns, channels, bytes");
        if (!known)
            return false;
    }
    if (token != JSON_OBJECT_END)
        return false;
    const char *const fault = serve_picture_fault(p);
    return fault == NULL || request_wrong(r, fault);
}

static bool read_all(request_reading *r)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return request_wrong(r, "an object was expected");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known =
            strcmp(key, "text") == 0      ? request_string(r, &r->request->request.text)
            : strcmp(key, "to") == 0      ? request_string(r, &r->request->request.target)
            : strcmp(key, "changes") == 0 ? read_changes(r)
            : strcmp(key, "picture") == 0 ? read_picture(r)
            : strcmp(key, "effects") == 0 ? request_bool(r, &r->request->effects)
            : strcmp(key, "compute") == 0 ? read_compute(r)
            : strcmp(key, "probe") == 0
                ? request_probe(r)
                : request_wrong(r, "unknown key; the keys are text, to, picture, changes, "
                                   "effects, compute, probe");
        if (!known)
            return false;
    }
    if (token != JSON_OBJECT_END || json_reader_next(&r->json) != JSON_END)
        return false;
    return r->request->request.text != NULL || request_wrong(r, "there is no \"text\"");
}

bool serve_request_read(serve_request *request, head_shape shape, char *body, size_t length,
                        char message[SUBJECT_MESSAGE_MAX])
{
    request_reading r = {.request = request, .shape = shape, .message = message};
    *request = (serve_request){.effects = true, .probe = {.row = -1, .word = -1}};
    if (!mhai_utf8_valid(body, length))
        return request_wrong(&r, "this is not UTF-8");
    r.json = json_reader_begin(body, length);
    const bool fine = read_all(&r);
    if (!fine && r.json.fault != JSON_FINE)
        snprintf(message, SUBJECT_MESSAGE_MAX, "this is not JSON: %s",
                 r.json.fault == JSON_SYNTAX      ? r.json.problem
                 : r.json.fault == JSON_DUPLICATE ? "a key occurs twice"
                                                  : "out of memory");
    json_reader_free(&r.json);
    return fine;
}
