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
            : strcmp(key, "lens") == 0
                ? request_bool(r, &probe->lens)
                : request_wrong(r, "probe: unknown key; the keys are hidden, row, word, lens");
        if (!known)
            return false;
    }
    r->request->probe.asked = true;
    return token == JSON_OBJECT_END;
}
