/* SPDX-License-Identifier: MIT */
#ifndef CLI_TRANSLATE_JSON_H
#define CLI_TRANSLATE_JSON_H

#include "json.h"
#include "translate_text.h"

typedef struct translate_json_parts {
    bool weights; /* [layer][head][target][source] of the best result */
    bool others;  /* the results behind it */
    bool gold;
} translate_json_parts;

/* One object for one sentence. */
void translate_json(json *j, const translated *t, const translate_json_parts *parts);

#endif
