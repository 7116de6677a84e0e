/* SPDX-License-Identifier: MIT */
/* Searches for models, and the module of live pages, also relative to the running program. */
#include "translator/model_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program_path.h"

/* The installed data folder, relative to the folder of the program. */
#ifndef MHA_DATA_FROM_PROGRAM
#define MHA_DATA_FROM_PROGRAM "../share"
#endif

static const struct {
    const char *name, *path;
} shipped[SHIPPED_MODELS] = {
    [SHIPPED_TRANSLATOR] = {"en-fr", MODEL_TRANSLATOR},
    [SHIPPED_LABORATORY] = {"lab", MODEL_LABORATORY},
    [SHIPPED_CAPTIONS] = {"captions", MODEL_CAPTIONS},
    [SHIPPED_DETECTOR] = {"detector", MODEL_DETECTOR},
    [SHIPPED_CLASSIFIER] = {"vit-fashion", MODEL_CLASSIFIER},
};

/* The folder of the running program, without "/" at the end and without symbolic links; "." if it
 * cannot be determined. */
static void program_folder(char folder[MODEL_PATH_MAX])
{
    char *const slash = program_path(folder, MODEL_PATH_MAX) ? strrchr(folder, '/') : NULL;
    if (slash != NULL)
        *slash = '\0';
    else
        memcpy(folder, ".", sizeof ".");
}

static bool given(const char *path, char result[MODEL_PATH_MAX])
{
    if (snprintf(result, MODEL_PATH_MAX, "%s", path) < MODEL_PATH_MAX)
        return true;
    fprintf(stderr, "mha: the name of the model has more than %d bytes\n", MODEL_PATH_MAX - 1);
    return false;
}

/* Joins `folder`, a folder relative to it and a name, removing ".." if the folder is absolute.
 * Returns false if it is too long. */
static bool join(const char *folder, const char *relative, const char *name,
                 char path[MODEL_PATH_MAX])
{
    size_t length = strlen(folder);
    while (folder[0] == '/' && strncmp(relative, "..", 2) == 0) {
        while (length > 0 && folder[--length] != '/')
            ;
        relative += relative[2] == '/' ? 3 : 2;
    }
    return snprintf(path, MODEL_PATH_MAX, "%.*s/%s%s%s", (int)length, folder, relative,
                    *relative ? "/" : "", name) < MODEL_PATH_MAX;
}

/* The first place that has the model; false after a message if none has. */
static bool find_shipped(shipped_model model, char path[MODEL_PATH_MAX])
{
    static const char *const places[] = {MHA_DATA_FROM_PROGRAM "/mha", ".."};
    const char *const name = shipped[model].path;
    char folder[MODEL_PATH_MAX], installed[MODEL_PATH_MAX];
    if (access(name, R_OK) == 0)
        return given(name, path);
    program_folder(folder);
    for (int n = 0; n < 2; n++)
        if (join(folder, places[n], name, path) && access(path, R_OK) == 0)
            return true;
    join(folder, places[0], name, installed);
    fprintf(stderr,
            "mha: there is no model. Looked for %s here, %s and %s.\n"
            "Train one with \"mha train\", or name one with --model PATH or MHA_MODEL.\n",
            name, installed, path);
    return false;
}

bool model_path_find(const char *requested, shipped_model usual, char path[MODEL_PATH_MAX])
{
    const char *const name = requested != NULL ? requested : getenv("MHA_MODEL");
    if (name == NULL || (requested == NULL && *name == '\0'))
        return find_shipped(usual, path);
    if (access(name, F_OK) != 0)
        for (int n = 0; n < SHIPPED_MODELS; n++)
            if (strcmp(name, shipped[n].name) == 0)
                return find_shipped((shipped_model)n, path);
    return given(name, path);
}

bool model_path_find_module(char path[MODEL_PATH_MAX])
{
    static const char *const places[] = {MHA_DATA_FROM_PROGRAM "/mha", "wasm"};
    char folder[MODEL_PATH_MAX], installed[MODEL_PATH_MAX];
    program_folder(folder);
    for (int n = 0; n < 2; n++)
        if (join(folder, places[n], MODEL_PAGE_MODULE, path) && access(path, R_OK) == 0)
            return true;
    join(folder, places[0], MODEL_PAGE_MODULE, installed);
    fprintf(stderr,
            "mha: --live needs " MODEL_PAGE_MODULE
            ", which runs the model in the browser. Looked for %s and %s.\n"
            "\"make wasm\" in the source tree builds it; \"make install\" then installs it too.\n",
            installed, path);
    return false;
}
