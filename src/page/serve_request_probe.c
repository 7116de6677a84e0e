/* SPDX-License-Identifier: MIT */
/* Reads the value of "probe" in a request: {"hidden": [2, 5], "row": 3, "word": 17, "lens": true}.
 */
#include <limits.h>
#include <string.h>

#include "page/serve_request_parts.h"

/* Positions of tokens, from 0; one that occurs twice is hidden once. */
static bool read_hidden(request_reading *r)
{
    serve_probe *const probe = &r->request->probe;
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_ARRAY)
        return request_wrong(r, "probe: \"hidden\" must be an array");
    while ((token = json_reader_next(&r->json)) == JSON_NUMBER) {
        uint64_t place;
        if (!json_reader_integer(&r->json, &place))
            return request_wrong(r, "probe: \"hidden\" must contain whole numbers only");
        if (place >= SERVE_TOKENS_MAX)
            return request_wrong(r, "probe: there is no such word to hide");
        probe->hidden[place] = true;
        if ((int)place >= probe->hidden_end)
            probe->hidden_end = (int)place + 1;
    }
    return token == JSON_ARRAY_END ||
           request_wrong(r, "probe: \"hidden\" must contain whole numbers only");
}

/* A number of a row or word; whether it exists is not known here. */
static bool read_index(request_reading *r, int *to)
{
    uint64_t number;
    if (!request_number(r, &number))
        return false;
    *to = number < INT_MAX ? (int)number : INT_MAX;
    return true;
}

/* Reads {"kind": "cross", "layer": 1, "head": 2}; its opening brace has been read. */
static bool read_patched(request_reading *r)
{
    const char *name = NULL;
    uint64_t layer = 0, head = 0;
    int kind, index;
    json_reader_token token;
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known =
            strcmp(key, "kind") == 0    ? request_string(r, &name)
            : strcmp(key, "layer") == 0 ? request_number(r, &layer)
            : strcmp(key, "head") == 0
                ? request_number(r, &head)
                : request_wrong(r, "patch: unknown key; the keys are kind, layer, head");
        if (!known)
            return false;
    }
    if (token != JSON_OBJECT_END || !request_head(r, "patch", name, layer, head, &kind, &index))
        return false;
    r->request->probe.patched[kind][index] = 1;
    return true;
}

static bool read_patched_list(request_reading *r, bool *any)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_ARRAY)
        return request_wrong(r, "patch: \"heads\" must be an array");
    while ((token = json_reader_next(&r->json)) == JSON_OBJECT) {
        if (!read_patched(r))
            return false;
        *any = true;
    }
    return token == JSON_ARRAY_END ||
           request_wrong(r, "patch: \"heads\" must contain objects only");
}

static bool read_patch(request_reading *r)
{
    serve_probe *const probe = &r->request->probe;
    bool any = false;
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return request_wrong(r, "probe: \"patch\" must be an object");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        const bool known =
            strcmp(key, "text") == 0 ? request_string(r, &probe->patch_text)
            : strcmp(key, "to") == 0 ? request_string(r, &probe->patch_target)
            : strcmp(key, "heads") == 0
                ? read_patched_list(r, &any)
                : request_wrong(r, "patch: unknown key; the keys are text, to, heads");
        if (!known)
            return false;
    }
    if (token != JSON_OBJECT_END)
        return false;
    return (probe->patch_text != NULL && any) ||
           request_wrong(r, "patch: \"text\" and at least one of \"heads\" are needed");
}

bool request_probe(request_reading *r)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return request_wrong(r, "\"probe\" must be an object");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const char *const key = r->json.text;
        serve_probe *const probe = &r->request->probe;
        const bool known =
            strcmp(key, "hidden") == 0 ? read_hidden(r)
            : strcmp(key, "row") == 0  ? read_index(r, &probe->row)
            : strcmp(key, "word") == 0 ? read_index(r, &probe->word)
            : strcmp(key, "lens") == 0 ? request_bool(r, &probe->lens)
            : strcmp(key, "patch") == 0
                ? read_patch(r)
                : request_wrong(r,
                                "probe: unknown key; the keys are hidden, row, word, lens, patch");
        if (!known)
            return false;
    }
    r->request->probe.asked = true;
    return token == JSON_OBJECT_END;
}
