/* SPDX-License-Identifier: MIT */
/* A process that has restricted itself reads files and starts threads, and does nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/restrict_calls.h"
#include "support/temp_files.h"
#include "support/test.h"

enum { CANNOT = 100, ALLOWED = 101, REFUSED = 102, OTHER_ERROR = 103 };

static const char *given_path;

static int try_fork(void)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child < 0 ? -1 : 0;
}

static int try_exec(void)
{
    return execl("/bin/true", "true", (char *)NULL);
}

static int try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static int try_create(void)
{
    return open(given_path, O_WRONLY | O_CREAT, 0600);
}

static int try_write(void)
{
    return open(given_path, O_RDWR);
}

static int try_remove(void)
{
    return unlink(given_path);
}

static int try_rename(void)
{
    return rename(given_path, given_path);
}

static int try_rights(void)
{
    return chmod(given_path, 0700);
}

static int try_read(void)
{
    char byte;
    const int file = open(given_path, O_RDONLY);
    return file >= 0 && read(file, &byte, 1) == 1 ? 0 : -1;
}

static void *nothing(void *arg)
{
    return arg;
}

static int try_thread(void)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    return errno == 0 && pthread_join(thread, NULL) == 0 ? 0 : -1;
}

/* Restricts a process of its own and lets it try; what it exits with. */
static int outcome(int (*attempt)(void))
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (!restrict_calls())
            _exit(CANNOT);
        if (attempt() >= 0)
            _exit(ALLOWED);
        _exit(errno == EPERM ? REFUSED : OTHER_ERROR);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "child");
    return WEXITSTATUS(status);
}

static void only_harmless_calls_are_left(void)
{
    static const struct {
        const char *name;
        int (*attempt)(void);
        int expected;
    } attempts[] = {{"reading", try_read, ALLOWED},    {"a thread", try_thread, ALLOWED},
                    {"a process", try_fork, REFUSED},  {"a program", try_exec, REFUSED},
                    {"a socket", try_socket, REFUSED}, {"creating", try_create, REFUSED},
                    {"writing", try_write, REFUSED},   {"removing", try_remove, REFUSED},
                    {"renaming", try_rename, REFUSED}, {"rights", try_rights, REFUSED}};
    const temp_folder folder = temp_folder_new();
    given_path = temp_path(&folder, "file");
    CHECK(file_make(given_path, "x", 1), "file");
    if (outcome(try_read) == CANNOT) {
        test_skip("this system cannot restrict a process");
    } else {
        for (size_t n = 0; n < sizeof attempts / sizeof attempts[0]; n++) {
            const int got = outcome(attempts[n].attempt);
            CHECK(got == attempts[n].expected, "%s: %d", attempts[n].name, got);
        }
        CHECK(try_write() >= 0, "the process itself is not restricted");
    }
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(only_harmless_calls_are_left);
    return test_end();
}
