/* SPDX-License-Identifier: MIT */
/* "mha translate" with any encoder-decoder of libmha_model: Marian, as "mha train --pairs" writes
 * it, T5, BART. */
#ifndef PROGRAM_TRANSLATE_ANY_H
#define PROGRAM_TRANSLATE_ANY_H

#include <stdbool.h>

#include "base/beam.h"
#include "program/translate_maps.h"

enum { TRANSLATE_ANY_BEAM = BEAM_USUAL }; /* the beam if none is given */

typedef struct translate_any_request {
    int beam, best;        /* 0: not given */
    double length_penalty; /* NaN: as the files of the model recommend */
    bool as_json;
    translate_maps_request maps;
} translate_any_request;

/* Translates the words of the command line or, if there are none, the lines of standard input, and
 * prints them in their order. Returns the exit code. */
int translate_any(const session *opened, const translate_any_request *request, int words,
                  char **argv);

#endif
