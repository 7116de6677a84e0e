/* SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRANSLATE_JSON_H
#define PROGRAM_TRANSLATE_JSON_H

#include "format/json_writer.h"
#include "translator/sentence.h"

typedef struct translate_json_parts {
    bool weights; /* [layer][head][target][source] of the best result */
    bool others;  /* the results after the best one */
    bool gold;
} translate_json_parts;

/* Writes one object for one sentence. */
void translate_json(json *j, const translated *t, const translate_json_parts *parts);

#endif
