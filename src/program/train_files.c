/* SPDX-License-Identifier: MIT */
/* The file policy of "mha train": model, checkpoint, curve and log are different files that can be
 * written, and existing files are not lost by mistake. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "program/args.h"
#include "program/train_request.h"

/* "models/en-fr.safetensors" -> "models/en-fr.checkpoint.safetensors" */
int train_files_name(train_request *r)
{
    static const char suffix[] = ".safetensors";
    const size_t all = strlen(r->output), end = sizeof suffix - 1;
    const bool has = all > end && strcmp(r->output + all - end, suffix) == 0;
    if (r->checkpoint != NULL)
        return EXIT_GO_ON;
    if (all + sizeof ".checkpoint.safetensors" > sizeof r->checkpoint_path)
        return args_wrong("train: the name of the model is too long");
    snprintf(r->checkpoint_path, sizeof r->checkpoint_path, "%.*s.checkpoint%s",
             (int)(has ? all - end : all), r->output, suffix);
    r->checkpoint = r->checkpoint_path;
    return EXIT_GO_ON;
}

/* Whether two paths are the same name in the same folder, however the folder is written. */
static bool same_place(const char *a, const char *b)
{
    struct stat folder_a, folder_b;
    char copy_a[TRAIN_PATH_MAX], copy_b[TRAIN_PATH_MAX];
    snprintf(copy_a, sizeof copy_a, "%s", a);
    snprintf(copy_b, sizeof copy_b, "%s", b);
    if (strcmp(basename(copy_a), basename(copy_b)) != 0)
        return false;
    snprintf(copy_a, sizeof copy_a, "%s", a);
    snprintf(copy_b, sizeof copy_b, "%s", b);
    return stat(dirname(copy_a), &folder_a) == 0 && stat(dirname(copy_b), &folder_b) == 0 &&
           folder_a.st_dev == folder_b.st_dev && folder_a.st_ino == folder_b.st_ino;
}

int train_files_check(const train_request *r)
{
    const char *const paths[] = {r->output, r->checkpoint, r->curve, r->log};
    for (int n = 0; n < 4; n++)
        for (int other = 0; other < n; other++)
            if (paths[n] != NULL && paths[other] != NULL && same_place(paths[n], paths[other]))
                return args_wrong("train: %s is given for two different files", paths[n]);
    for (int n = 0; n < 4; n++)
        if (paths[n] != NULL && !output_file_check(paths[n]))
            return EXIT_FAILED;
    return EXIT_GO_ON;
}

int train_files_protect(const train_request *r)
{
    struct stat there;
    if (r->resume && stat(r->checkpoint, &there) != 0 && errno == ENOENT)
        return args_failed(
            "there is no checkpoint %s to resume from; leave out --resume to start a new "
            "training",
            r->checkpoint);
    if (!r->force && stat(r->output, &there) == 0)
        return args_failed(
            "the model %s exists. Write another with -o FILE, or replace it with --force",
            r->output);
    if (!r->resume && stat(r->checkpoint, &there) == 0)
        return args_failed(
            "the checkpoint %s exists. Continue with --resume, or delete it to start "
            "again",
            r->checkpoint);
    return EXIT_GO_ON;
}
