/* SPDX-License-Identifier: MIT */
/* Temporary files of killed processes are removed; those of running processes and other files are
 * not. */
#include "base/leftover_files.h"
#include "base/replace_file.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_there(const temp_folder *folder, const char *name)
{
    struct stat about;
    return lstat(temp_path(folder, name), &about) == 0;
}

static void make(const temp_folder *folder, const char *name)
{
    CHECK(file_make(temp_path(folder, name), "x", 1), "%s", name);
}

static void only_names_of_its_own(void)
{
    static const char *const others[] = {
        "model.tmp",        "model.12.tmp",       "model.12-.tmp",   "model.-3.tmp",
        "model.12-old.tmp", "model.12-3.tmp.bak", "model.12-3tmp",   "model2.12-3.tmp",
        "a.model.12-3.tmp", "model.x.12-3.tmp",   "model.1-2-3.tmp", "model"};
    const temp_folder folder = temp_folder_new();
    char path[300];
    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
        make(&folder, others[n]);
    make(&folder, "model.12-3.tmp");
    make(&folder, "model.4194304-99.tmp");
    mkdir(temp_path(&folder, "model.12-4.tmp"), 0700);
    if (!TEST_WINDOWS) {
        CHECK(symlink("model", temp_path(&folder, "model.12-5.tmp")) == 0, "link");
        CHECK(mkfifo(temp_path(&folder, "model.12-6.tmp"), 0600) == 0, "pipe");
    }
    snprintf(path, sizeof path, "%s", temp_path(&folder, "model"));
    leftover_files_remove(path);
    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
        CHECK(is_there(&folder, others[n]), "%s was removed", others[n]);
    CHECK(!is_there(&folder, "model.12-3.tmp"), "the first is left");
    CHECK(!is_there(&folder, "model.4194304-99.tmp"), "the second is left");
    CHECK(is_there(&folder, "model.12-4.tmp"), "the folder was removed");
    CHECK(TEST_WINDOWS || is_there(&folder, "model.12-5.tmp"), "the link was removed");
    CHECK(TEST_WINDOWS || is_there(&folder, "model.12-6.tmp"), "the pipe was removed");
    rmdir(temp_path(&folder, "model.12-4.tmp"));
    temp_folder_free(&folder);
}

/* A process that has opened a new file next to `path`, and waits. */
static pid_t writer(const char *path, char *name, size_t size)
{
    int ready[2], fd;
    char byte = 0;
    if (!CHECK(pipe(ready) == 0, "pipe"))
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        if (mhai_file_open_new(path, name, size, &fd) == 0 && write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1, "the process did not begin");
    close(ready[0]);
    return child;
}

static void running_processes_keep_theirs(void)
{
    if (test_lacks("no fork()"))
        return;
    const temp_folder folder = temp_folder_new();
    char path[300], name[300 + MHAI_FILE_SUFFIX];
    int fd;
    snprintf(path, sizeof path, "%s", temp_path(&folder, "model"));
    const pid_t child = writer(path, name, sizeof name);
    CHECK(mhai_file_open_new(path, name, sizeof name, &fd) == 0, "our own");
    leftover_files_remove(path);
    CHECK(temp_folder_count(&folder) == 2, "%d files", temp_folder_count(&folder));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    leftover_files_remove(path);
    CHECK(temp_folder_count(&folder) == 1, "%d files after it died", temp_folder_count(&folder));
    CHECK(mhai_file_finish_new(fd, name, path, 0) == 0 && is_there(&folder, "model"), "ours");
    temp_folder_free(&folder);
}

static void folders_that_are_not_there(void)
{
    leftover_files_remove("/nowhere/at/all");
    leftover_files_remove("");
    CHECK(true, "nothing happens");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(only_names_of_its_own);
    RUN(running_processes_keep_theirs);
    RUN(folders_that_are_not_there);
    return test_end();
}
