/* SPDX-License-Identifier: MIT */
/* Finds the model file. */
#ifndef TRANSLATOR_MODEL_PATH_H
#define TRANSLATOR_MODEL_PATH_H

#include <stdbool.h>

enum { MODEL_PATH_MAX = 4096 };

/* The laboratory: the translator of the generated grammar, which "mha train" makes. */
#define MODEL_LABORATORY "models/lab-en-fr.safetensors"

/* The file that commands use if no model is given: for now the laboratory. */
const char *model_path_default(void);

/*
 * Finds the model file: `requested` if not NULL, else the value of MHA_MODEL, else the first that
 * exists of model_path_default() in the current folder, the installed model, and the model of the
 * source tree this program was built in. Returns false, with a message on stderr, if there is
 * none.
 */
bool model_path_find(const char *requested, char path[MODEL_PATH_MAX]);

#endif
