/* SPDX-License-Identifier: MIT */
#include "serve_wish.h"

#include <stdio.h>
#include <string.h>

#include "json_text.h"

/* A body at work. */
typedef struct reading {
    serve_wish *wish;
    const transformer_config *config;
    mhai_json json;
    char *message;
} reading;

/* A change as it is written: all four must be there. */
typedef struct written_change {
    const char *kind, *change;
    uint64_t layer, head; /* from 1; 0: not there */
} written_change;

static bool wrong(const reading *r, const char *what)
{
    snprintf(r->message, PAIR_MESSAGE_MAX, "%s", what);
    return false;
}

static bool read_string(reading *r, const char **text)
{
    if (mhai_json_next(&r->json) != MHAI_JSON_STRING)
        return wrong(r, "a text was expected");
    *text = r->json.text;
    return true;
}

static bool read_number(reading *r, uint64_t *number)
{
    if (mhai_json_next(&r->json) != MHAI_JSON_NUMBER || !mhai_json_integer(&r->json, number))
        return wrong(r, "a whole number was expected");
    return true;
}

static bool find_kind(const char *name, int *kind)
{
    for (*kind = 0; *kind < CAPTURE_KINDS; ++*kind)
        if (strcmp(name, capture_kind_name((capture_kind)*kind)) == 0)
            return true;
    return false;
}

static bool take_change(const reading *r, const written_change *c)
{
    int kind;
    if (c->kind == NULL || !find_kind(c->kind, &kind))
        return wrong(r, "changes: \"kind\" is encoder, decoder or cross");
    const int layers = capture_kind_layers(r->config, (capture_kind)kind), heads = r->config->heads;
    if (layers * heads > SERVE_HEADS_MAX)
        return wrong(r, "changes: the model has too many heads");
    if (c->layer < 1 || c->layer > (uint64_t)layers || c->head < 1 || c->head > (uint64_t)heads)
        return wrong(r, "changes: there is no such head");
    const bool zero = c->change != NULL && strcmp(c->change, "zero") == 0;
    if (!zero && (c->change == NULL || strcmp(c->change, "uniform") != 0))
        return wrong(r, "changes: \"change\" is zero or uniform");
    r->wish->changes[kind][(int)(c->layer - 1) * heads + (int)(c->head - 1)] =
        zero ? CAPTURE_ZERO : CAPTURE_UNIFORM;
    r->wish->wish.changes[kind] = r->wish->changes[kind];
    r->wish->changed = true;
    return true;
}

/* Behind the opening brace. */
static bool read_change(reading *r)
{
    written_change change = {NULL, NULL, 0, 0};
    mhai_json_token token;
    while ((token = mhai_json_next(&r->json)) == MHAI_JSON_KEY) {
        const char *const key = r->json.text;
        const bool known =
            strcmp(key, "kind") == 0     ? read_string(r, &change.kind)
            : strcmp(key, "change") == 0 ? read_string(r, &change.change)
            : strcmp(key, "layer") == 0  ? read_number(r, &change.layer)
            : strcmp(key, "head") == 0
                ? read_number(r, &change.head)
                : wrong(r, "changes: a key that is not known; there are kind, layer, head, change");
        if (!known)
            return false;
    }
    return token == MHAI_JSON_OBJECT_END && take_change(r, &change);
}

static bool read_changes(reading *r)
{
    mhai_json_token token = mhai_json_next(&r->json);
    if (token != MHAI_JSON_ARRAY)
        return wrong(r, "\"changes\" is an array");
    while ((token = mhai_json_next(&r->json)) == MHAI_JSON_OBJECT)
        if (!read_change(r))
            return false;
    return token == MHAI_JSON_ARRAY_END || wrong(r, "\"changes\" has objects");
}

static bool read_all(reading *r)
{
    mhai_json_token token = mhai_json_next(&r->json);
    if (token != MHAI_JSON_OBJECT)
        return wrong(r, "an object was expected");
    while ((token = mhai_json_next(&r->json)) == MHAI_JSON_KEY) {
        const char *const key = r->json.text;
        const bool known = strcmp(key, "text") == 0 ? read_string(r, &r->wish->wish.text)
                           : strcmp(key, "to") == 0 ? read_string(r, &r->wish->wish.target)
                           : strcmp(key, "changes") == 0
                               ? read_changes(r)
                               : wrong(r, "a key that is not known; there are text, to, changes");
        if (!known)
            return false;
    }
    if (token != MHAI_JSON_OBJECT_END || mhai_json_next(&r->json) != MHAI_JSON_END)
        return false;
    return r->wish->wish.text != NULL || wrong(r, "there is no \"text\"");
}

bool serve_wish_read(serve_wish *wish, const transformer_config *config, char *body, size_t length,
                     char message[PAIR_MESSAGE_MAX])
{
    reading r = {.wish = wish, .config = config, .message = message};
    *wish = (serve_wish){.changed = false};
    if (!mhai_utf8_valid(body, length))
        return wrong(&r, "this is not UTF-8");
    r.json = mhai_json_begin(body, length);
    const bool fine = read_all(&r);
    if (!fine && r.json.fault != MHAI_JSON_FINE)
        snprintf(message, PAIR_MESSAGE_MAX, "this is not JSON: %s",
                 r.json.fault == MHAI_JSON_SYNTAX      ? r.json.problem
                 : r.json.fault == MHAI_JSON_DUPLICATE ? "a key stands twice"
                                                       : "out of memory");
    mhai_json_free(&r.json);
    return fine;
}
