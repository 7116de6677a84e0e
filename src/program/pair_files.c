/* SPDX-License-Identifier: MIT */
/* Opens files of sentence pairs (pair_files.h). */
#include "program/pair_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "program/args.h"

enum { PATH_MAX_BYTES = 4096 };

static void say_faults(const char *path, const pair_file *file)
{
    if (file->fault_count == 0)
        return;
    fprintf(stderr, "mha: %s: %" PRId64 " of %" PRId64 " lines skipped:", path, file->fault_count,
            file->lines);
    for (int n = 0; n < PAIR_FAULTS_SHOWN && n < file->fault_count; n++)
        fprintf(stderr, "%s line %" PRId64 " (%s)", n ? "," : "", file->faults[n].line,
                file->faults[n].reason);
    fprintf(stderr, "%s\n", file->fault_count > PAIR_FAULTS_SHOWN ? " and others" : "");
}

int pair_files_open(pair_file *file, const char *given)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "", source[PATH_MAX_BYTES];
    struct stat there;
    const char *const comma = strchr(given, ',');
    const bool two = comma != NULL && stat(given, &there) != 0;
    snprintf(source, sizeof source, "%.*s", two ? (int)(comma - given) : (int)strlen(given), given);
    if (pair_file_open(file, source, two ? comma + 1 : NULL, message) != MHA_OK)
        return args_failed("%s", message);
    say_faults(given, file);
    return EXIT_GO_ON;
}
