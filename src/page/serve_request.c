/* SPDX-License-Identifier: MIT */
/*
 * Reads {"text": ..., "to": ..., "changes": [...], "effects": ...} token by token. Unknown keys are
 * errors: they are mistakes of the client, which would otherwise get an answer to another question.
 */
#include "page/serve_request.h"

#include <stdio.h>
#include <string.h>

#include "format/json_reader.h"

/* A body while it is read. */
typedef struct reading {
    serve_request *request;
    head_shape shape;
    json_reader json;
    char *message;
} reading;

/* An element of "changes" before it is checked; all four keys are required. */
typedef struct parsed_change {
    const char *kind, *change;
    uint64_t layer, head; /* from 1; 0: missing */
} parsed_change;

/* Sets the message; returns false for the caller to return. */
static bool wrong(const reading *r, const char *what)
{
    snprintf(r->message, SUBJECT_MESSAGE_MAX, "%s", what);
    return false;
}

static bool read_string(reading *r, const char **text)
{
    if (json_reader_next(&r->json) != JSON_STRING)
        return wrong(r, "a text was expected");
    *text = r->json.text;
    return true;
}

static bool read_number(reading *r, uint64_t *number)
{
    if (json_reader_next(&r->json) != JSON_NUMBER || !json_reader_integer(&r->json, number))
        return wrong(r, "a whole number was expected");
    return true;
}

static bool read_bool(reading *r, bool *value)
{
    const json_reader_token token = json_reader_next(&r->json);
    *value = token == JSON_TRUE;
    return *value || token == JSON_FALSE || wrong(r, "true or false was expected");
}

static bool find_kind(const char *name, int *kind)
{
    for (*kind = 0; *kind < ATTENTION_KINDS; ++*kind)
        if (strcmp(name, attention_kind_name((attention_kind)*kind)) == 0)
            return true;
    return false;
}

/* Checks a change and enters it into the request. */
static bool take_change(const reading *r, const parsed_change *c)
{
    int kind;
    if (c->kind == NULL || !find_kind(c->kind, &kind))
        return wrong(r, "changes: \"kind\" must be encoder, decoder or cross");
    const int layers = r->shape.layers[kind], heads = r->shape.heads;
    if (layers * heads > SERVE_HEADS_MAX)
        return wrong(r, "changes: the model has too many heads");
    if (c->layer < 1 || c->layer > (uint64_t)layers || c->head < 1 || c->head > (uint64_t)heads)
        return wrong(r, "changes: there is no such head");
    const bool zero = c->change != NULL && strcmp(c->change, "zero") == 0;
    if (!zero && (c->change == NULL || strcmp(c->change, "uniform") != 0))
        return wrong(r, "changes: \"change\" must be zero or uniform");
    r->request->changes[kind][(int)(c->layer - 1) * heads + (int)(c->head - 1)] =
        zero ? HEAD_ZERO : HEAD_UNIFORM;
    r->request->request.changes[kind] = r->request->changes[kind];
    r->request->changed = true;
    return true;
}

/* Reads an element of "changes"; its opening brace has been read. */
static bool read_change(reading *r)
{
    parsed_change change = {NULL, NULL, 0, 0};
    json_reader_token token;
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known =
            strcmp(key, "kind") == 0     ? read_string(r, &change.kind)
            : strcmp(key, "change") == 0 ? read_string(r, &change.change)
            : strcmp(key, "layer") == 0  ? read_number(r, &change.layer)
            : strcmp(key, "head") == 0
                ? read_number(r, &change.head)
                : wrong(r, "changes: unknown key; the keys are kind, layer, head, change");
        if (!known)
            return false;
    }
    return token == JSON_OBJECT_END && take_change(r, &change);
}

static bool read_changes(reading *r)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_ARRAY)
        return wrong(r, "\"changes\" must be an array");
    while ((token = json_reader_next(&r->json)) == JSON_OBJECT)
        if (!read_change(r))
            return false;
    return token == JSON_ARRAY_END || wrong(r, "\"changes\" must contain objects only");
}

static bool read_all(reading *r)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return wrong(r, "an object was expected");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known = strcmp(key, "text") == 0 ? read_string(r, &r->request->request.text)
                           : strcmp(key, "to") == 0 ? read_string(r, &r->request->request.target)
                           : strcmp(key, "changes") == 0 ? read_changes(r)
                           : strcmp(key, "effects") == 0
                               ? read_bool(r, &r->request->effects)
                               : wrong(r, "unknown key; the keys are text, to, changes, effects");
        if (!known)
            return false;
    }
    if (token != JSON_OBJECT_END || json_reader_next(&r->json) != JSON_END)
        return false;
    return r->request->request.text != NULL || wrong(r, "there is no \"text\"");
}

bool serve_request_read(serve_request *request, head_shape shape, char *body, size_t length,
                        char message[SUBJECT_MESSAGE_MAX])
{
    reading r = {.request = request, .shape = shape, .message = message};
    *request = (serve_request){.effects = true};
    if (!mhai_utf8_valid(body, length))
        return wrong(&r, "this is not UTF-8");
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
