/* SPDX-License-Identifier: MIT */
/* Finds the file or folder of a model. */
#ifndef TRANSLATOR_MODEL_PATH_H
#define TRANSLATOR_MODEL_PATH_H

#include <stdbool.h>

enum { MODEL_PATH_MAX = 4096 };

#define MODEL_TRANSLATOR "models/en-fr"
#define MODEL_LABORATORY "models/lab-en-fr.safetensors" /* which "mha train" writes */
#define MODEL_CAPTIONS "models/captions"
#define MODEL_DETECTOR "models/detector"
#define MODEL_CLASSIFIER "models/vit-fashion"

/* The models that come with the program. Each has a short name, which may be given instead of a
 * path. */
typedef enum shipped_model {
    SHIPPED_TRANSLATOR, /* "en-fr": English to French, trained on real sentences; a folder */
    SHIPPED_LABORATORY, /* "lab": the translator of the generated grammar; a file */
    SHIPPED_CAPTIONS,   /* "captions": says what is in a scene; a folder, as the next two */
    SHIPPED_DETECTOR,   /* "detector": finds the shapes of a scene */
    SHIPPED_CLASSIFIER, /* "vit-fashion": recognises pictures of clothes */
    SHIPPED_MODELS
} shipped_model;

/*
 * Finds a model: `requested` if not NULL, else the value of MHA_MODEL if that is not empty, else
 * `usual`. A short name stands for the shipped model, unless there is a file of that name. Of a
 * shipped model the first that exists is taken: in the current folder, among the installed data,
 * and in the source tree this program was built in. Returns false, with a message on stderr, if it
 * is nowhere.
 */
bool model_path_find(const char *requested, shipped_model usual, char path[MODEL_PATH_MAX]);

/* The module that pages of "mha view --live" contain. */
#define MODEL_PAGE_MODULE "mha_page.wasm"

/* Finds it: among the installed data, or where "make wasm" puts it beside the program. False, with
 * a message on stderr, if it is nowhere. */
bool model_path_find_module(char path[MODEL_PATH_MAX]);

#endif
