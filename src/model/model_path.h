/* SPDX-License-Identifier: MIT */
#ifndef MODEL_PATH_H
#define MODEL_PATH_H

#include <stdbool.h>

enum { MODEL_PATH_MAX = 4096 };

/*
 * Where the translator's file is: `asked` if not NULL, else what MHA_MODEL says, else the first
 * that is there of models/en-fr.safetensors, the installed one, and the one of the tree this
 * program was built in. False, with a message on stderr, if there is none.
 */
bool model_path_find(const char *asked, char path[MODEL_PATH_MAX]);

#endif
