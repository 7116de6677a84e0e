/* SPDX-License-Identifier: MIT */
/* Searches for the model file, also relative to the running program. */
#include "translator/model_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The installed data folder, relative to the folder of the program. */
#ifndef MHA_DATA_FROM_PROGRAM
#define MHA_DATA_FROM_PROGRAM "../share"
#endif

const char *model_path_default(void)
{
    return MODEL_LABORATORY;
}

/* The folder of the running program, without "/" at the end and without symbolic links; "." if it
 * cannot be determined. */
static void program_folder(char folder[MODEL_PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", folder, MODEL_PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *const slash = strrchr(folder, '/');
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

bool model_path_find(const char *requested, char path[MODEL_PATH_MAX])
{
    static const char *const places[] = {MHA_DATA_FROM_PROGRAM "/mha", ".."};
    const char *const name = model_path_default();
    const char *variable = getenv("MHA_MODEL");
    char folder[MODEL_PATH_MAX], installed[MODEL_PATH_MAX];
    if (requested != NULL)
        return given(requested, path);
    if (variable != NULL && *variable != '\0')
        return given(variable, path);
    if (access(name, R_OK) == 0)
        return given(name, path);
    program_folder(folder);
    for (int n = 0; n < 2; n++)
        if (join(folder, places[n], name, path) && access(path, R_OK) == 0)
            return true;
    join(folder, places[0], name, installed);
    fprintf(stderr,
            "mha: there is no model. Looked for %s here, %s and %s.\n"
            "Train one with \"mha train\", or name one with --model FILE or MHA_MODEL.\n",
            name, installed, path);
    return false;
}
