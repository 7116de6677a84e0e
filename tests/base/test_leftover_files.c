/* SPDX-License-Identifier: MIT */
/* Temporary files and folders of killed processes are removed; those of running processes and other
 * files are not. */
#include "base/leftover_files.h"
#include "base/replace_file.h"
#include "base/replace_folder.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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
    CHECK(TEST_WINDOWS || !is_there(&folder, "model.12-4.tmp"), "the folder is left");
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

/* A folder with a file in it, and perhaps one in a folder in it. */
static void make_folder(const temp_folder *folder, const char *name, bool deep)
{
    char path[340];
    snprintf(path, sizeof path, "%s", temp_path(folder, name));
    CHECK(mkdir(path, 0700) == 0, "%s", name);
    snprintf(path, sizeof path, "%s/config.json", temp_path(folder, name));
    CHECK(file_make(path, "x", 1), "%s", path);
    for (int n = 0; n < (deep ? 2 : 0); n++) {
        snprintf(path, sizeof path, "%s%s", temp_path(folder, name), n == 0 ? "/a" : "/a/b");
        CHECK(mkdir(path, 0700) == 0, "%s", path);
    }
}

static void remove_deep(const temp_folder *folder, const char *name)
{
    static const char *const parts[] = {"a/b", "a", "config.json", ""};
    char path[340];
    for (int n = 0; n < 4; n++) {
        snprintf(path, sizeof path, "%s/%s", temp_path(folder, name), parts[n]);
        remove(path);
    }
}

static void folders_too(void)
{
    if (test_lacks("locks of folders"))
        return;
    const temp_folder folder = temp_folder_new();
    char path[300], name[300 + MHAI_FOLDER_SUFFIX], config[400];
    int held;
    snprintf(path, sizeof path, "%s", temp_path(&folder, "model"));
    make_folder(&folder, "model.12-3.tmp", false);
    make_folder(&folder, "model.12-4.tmp", true);
    CHECK(mhai_folder_open_new(path, NULL, name, sizeof name, &held) == 0 && held >= 0, "new");
    const int again = openat(held, ".", O_RDONLY | O_DIRECTORY);
    CHECK(flock(again, LOCK_EX | LOCK_NB) != 0, "the new folder is not locked");
    leftover_files_remove(path);
    close(again);
    CHECK(!is_there(&folder, "model.12-3.tmp"), "the folder is left");
    CHECK(is_there(&folder, "model.12-4.tmp"), "what this program does not write was removed");
    snprintf(config, sizeof config, "%s/a", temp_path(&folder, "model.12-4.tmp"));
    CHECK(access(config, F_OK) == 0, "the half of it was removed");
    CHECK(mhai_folder_finish_new(held, name, path, NULL, 0) == 0, "ours");
    CHECK(is_there(&folder, "model"), "ours has no name");
    remove_deep(&folder, "model.12-4.tmp");
    remove_deep(&folder, "model");
    temp_folder_free(&folder);
}

/* A process died after it had moved the old folder away: the folder is back, or no longer wanted.
 */
static void folders_that_were_moved_away(void)
{
    if (test_lacks("locks of folders"))
        return;
    const temp_folder folder = temp_folder_new();
    char path[300];
    snprintf(path, sizeof path, "%s", temp_path(&folder, "model"));
    make_folder(&folder, "model.12-old.tmp", false);
    leftover_files_remove(path);
    CHECK(is_there(&folder, "model"), "the old folder is not back");
    make_folder(&folder, "model.13-old.tmp", false);
    leftover_files_remove(path);
    CHECK(is_there(&folder, "model") && !is_there(&folder, "model.13-old.tmp"), "it is left");
    remove_deep(&folder, "model");
    temp_folder_free(&folder);
}

/* Two folders exchange their names: there is one of this name at any time. */
static void folders_are_replaced(void)
{
    const temp_folder folder = temp_folder_new();
    char path[300], name[300 + MHAI_FOLDER_SUFFIX], config[400];
    int held;
    snprintf(path, sizeof path, "%s", temp_path(&folder, "model"));
    snprintf(config, sizeof config, "%s/config.json", path);
    make_folder(&folder, "model", false);
    CHECK(mhai_folder_open_new(path, NULL, name, sizeof name, &held) == EEXIST, "no mark");
    CHECK(mhai_folder_open_new(path, "config.json", name, sizeof name, &held) == 0, "new");
    CHECK(mhai_folder_finish_new(held, name, path, "config.json", 0) == 0, "replaced");
    CHECK(access(config, F_OK) != 0 && temp_folder_count(&folder) == 1, "the old one is left");
    rmdir(path);
    temp_folder_free(&folder);
}

static void names_that_begin_alike(void)
{
    const temp_folder folder = temp_folder_new();
    char path[300];
    snprintf(path, sizeof path, "%s", temp_path(&folder, "."));
    make(&folder, "test-01.png.12-3.tmp");
    make(&folder, "test-01.png");
    make(&folder, "test-.12.tmp");
    make(&folder, "text-01.png.12-3.tmp");
    leftover_files_remove_all(path, "test-");
    CHECK(!is_there(&folder, "test-01.png.12-3.tmp"), "it is left");
    CHECK(temp_folder_count(&folder) == 3, "%d files", temp_folder_count(&folder));
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
    RUN(folders_too);
    RUN(folders_that_were_moved_away);
    RUN(folders_are_replaced);
    RUN(names_that_begin_alike);
    RUN(folders_that_are_not_there);
    return test_end();
}
