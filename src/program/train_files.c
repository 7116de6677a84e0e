/* SPDX-License-Identifier: MIT */
/* The file policy of "mha train": model, checkpoint, curve, log and confusion matrix are different
 * files that can be written, and existing files are not lost by mistake. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/leftover_files.h"
#include "base/output_file.h"
#include "program/args.h"
#include "program/train_request.h"

/* The name of a folder without slashes at its end, so that other names can be made from it. */
static int name_output(train_request *r)
{
    size_t length = strlen(r->output);
    while (length > 1 && r->output[length - 1] == '/')
        length--;
    if (length >= sizeof r->output_path)
        return args_wrong("train: the name of the model is too long");
    snprintf(r->output_path, sizeof r->output_path, "%.*s", (int)length, r->output);
    r->output = r->output_path;
    return EXIT_GO_ON;
}

/* "models/lab-en-fr.safetensors" -> "models/lab-en-fr.checkpoint.safetensors" */
int train_files_name(train_request *r)
{
    const int code = name_output(r);
    if (code != EXIT_GO_ON)
        return code;
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

/* Makes the folder of a model of files: whether it can be written is known before hours are spent.
 */
static int make_folder(const train_request *r)
{
    struct stat there;
    if (mkdir(r->output, 0777) != 0 && errno != EEXIST)
        return args_failed("cannot make the folder %s: %s", r->output, strerror(errno));
    if (stat(r->output, &there) == 0 && !S_ISDIR(there.st_mode))
        return args_failed("%s exists and is not a folder; with --pairs, --images and --scenes the "
                           "model is a folder",
                           r->output);
    return EXIT_GO_ON;
}

int train_files_check(const train_request *r)
{
    char inside[TRAIN_PATH_MAX + 32];
    snprintf(inside, sizeof inside, "%s/" TRAIN_MODEL_FILE, r->output);
    if (train_makes_folder(r) && make_folder(r) != EXIT_GO_ON)
        return EXIT_FAILED;
    const char *const paths[] = {train_makes_folder(r) ? inside : r->output, r->checkpoint,
                                 r->curve, r->log, r->confusion};
    for (int n = 0; n < 5; n++)
        for (int other = 0; other < n; other++)
            if (paths[n] != NULL && paths[other] != NULL && same_place(paths[n], paths[other]))
                return args_wrong("train: %s is given for two different files", paths[n]);
    for (int n = 0; n < 5; n++)
        if (paths[n] != NULL && !output_file_check(paths[n]))
            return EXIT_FAILED;
    return EXIT_GO_ON;
}

int train_files_protect(const train_request *r)
{
    struct stat there;
    char inside[TRAIN_PATH_MAX + 32];
    snprintf(inside, sizeof inside, "%s/" TRAIN_MODEL_FILE, r->output);
    /* A resumed training with --patience has already written its best model. */
    const bool protects = !r->force && !(r->resume && train_makes_folder(r));
    if (r->resume && stat(r->checkpoint, &there) != 0 && errno == ENOENT)
        return args_failed(
            "there is no checkpoint %s to resume from; leave out --resume to start a new "
            "training",
            r->checkpoint);
    if (protects && stat(train_makes_folder(r) ? inside : r->output, &there) == 0)
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

const char *train_files_in_folder(int n)
{
    static const char *const names[] = {TRAIN_MODEL_FILE,         "config.json",
                                        "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json",  "preprocessor_config.json"};
    return n < (int)(sizeof names / sizeof names[0]) ? names[n] : NULL;
}

static void clean_folder(const char *folder)
{
    char path[TRAIN_PATH_MAX + 64];
    for (int n = 0; train_files_in_folder(n) != NULL; n++) {
        snprintf(path, sizeof path, "%s/%s", folder, train_files_in_folder(n));
        leftover_files_remove(path);
    }
}

void train_files_clean(const train_request *r)
{
    const char *const paths[] = {r->output, r->checkpoint, r->curve, r->log, r->confusion};
    char validation[TRAIN_PATH_MAX + 32];
    for (int n = 0; n < 5; n++)
        if (paths[n] != NULL)
            leftover_files_remove(paths[n]);
    if (!train_makes_folder(r))
        return;
    snprintf(validation, sizeof validation, "%s" TRAIN_VALIDATION, r->output);
    clean_folder(r->output);
    clean_folder(validation);
}
