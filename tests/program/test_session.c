/* SPDX-License-Identifier: MIT */
/*
 * What commands open before they compute (program/session.h): where no thread can be started, every
 * command that starts some says so in the same words, exits with 1 and leaves no thread and no
 * file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/commands.h"
#include "support/faults.h"
#include "support/temp_files.h"
#include "support/test.h"

enum { ARGUMENTS = 12, TEXT = 512 };

static temp_folder folder;

/* Runs a command in the folder without threads; what it says on stderr goes to `said`. */
static int run_without_threads(int (*command)(int argc, char **argv), const char *line,
                               char said[TEXT])
{
    char words[TEXT], *argv[ARGUMENTS + 1] = {NULL}, *rest = words;
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    while (argc < ARGUMENTS && (argv[argc] = strsep(&rest, " ")) != NULL)
        argc++;
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    const int file = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    faults_arm(THREAD, 1, true);
    const int code = command(argc, argv);
    faults_disarm();
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    const ssize_t length = pread(file, said, TEXT - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    close(file);
    unlink("said");
    return code;
}

static void no_threads(void)
{
    static const struct {
        int (*command)(int argc, char **argv);
        const char *line;
    } cases[] = {
        {command_translate, "translate --threads 2 the cat sleeps"},
        {command_show, "show --threads 2 the cat sleeps"},
        {command_view, "view --threads 2 the cat sleeps"},
        {command_heads, "heads --threads 2 --sentences 2"},
        {command_ablate, "ablate --threads 2 --sentences 2"},
        {command_prune, "prune --threads 2 --sentences 2"},
        {command_train, "train --threads 2 -o new.safetensors --steps 2"},
        {command_conv, "conv --threads 2 --kernel blur -o out.png in.png"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char said[TEXT];
        const int code = run_without_threads(cases[n].command, cases[n].line, said);
        CHECK(code == 1, "mha %s: exits with %d", cases[n].line, code);
        CHECK(strncmp(said, "mha: no threads: ", 17) == 0, "mha %s: says %s", cases[n].line, said);
        CHECK(faults_left(THREAD) == 0, "mha %s: %d threads are left", cases[n].line,
              faults_left(THREAD));
        CHECK(temp_folder_count(&folder) == 0, "mha %s: leaves files", cases[n].line);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    folder = temp_folder_new();
    setenv("MHA_MODEL", MHA_MODEL_FILE, 1);
    if (chdir(folder.path) == 0)
        RUN(no_threads);
    temp_folder_free(&folder);
    return test_end();
}
