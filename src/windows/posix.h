/* SPDX-License-Identifier: MIT */
/*
 * What the other rooms use of POSIX and mingw-w64 does not have, or does otherwise. On Windows the
 * compiler includes this file before everything else (src/windows/CMakeLists.txt), so that those
 * rooms are written for POSIX alone. A name of POSIX becomes a name of this room by a macro;
 * everything that mingw-w64 declares itself is declared before these macros begin.
 *
 *   names of files     are UTF-8, and folders end with "/" or "\"
 *   files              are never translated: a line ends with "\n" only; another process may read,
 *                      write, rename or remove a file that is open, as far as Windows allows it
 *   memory             of malloc() and aligned_alloc() alike is freed by free()
 *   main()             gets its arguments as UTF-8
 */
#ifndef WINDOWS_POSIX_H
#define WINDOWS_POSIX_H

#pragma GCC system_header /* so that a local name may be that of a function here, as everywhere */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <io.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <process.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- memory ----- */

void *mhaw_malloc(size_t size);
void *mhaw_calloc(size_t count, size_t size);
void *mhaw_realloc(void *memory, size_t size);
void *mhaw_aligned_alloc(size_t alignment, size_t size);
int mhaw_posix_memalign(void **memory, size_t alignment, size_t size);
void mhaw_free(void *memory);
size_t mhaw_malloc_usable_size(void *memory);
char *mhaw_strdup(const char *text);
char *mhaw_strndup(const char *text, size_t length);
int mhaw_vasprintf(char **text, const char *format, va_list list);
#undef strdup
#define malloc mhaw_malloc
#define calloc mhaw_calloc
#define realloc mhaw_realloc
#define aligned_alloc mhaw_aligned_alloc
#define posix_memalign mhaw_posix_memalign
#define free mhaw_free
#define malloc_usable_size mhaw_malloc_usable_size
#define strdup mhaw_strdup
#define strndup mhaw_strndup
#define vasprintf mhaw_vasprintf

/* Whole files to be read, and memory of no file. Nothing is written back. */
enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2 };
enum { MAP_PRIVATE = 2, MAP_ANONYMOUS = 32 };
enum { MADV_DONTNEED = 4 };
#define MAP_FAILED ((void *)-1)
void *mhaw_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
int mhaw_munmap(void *address, size_t size);
int mhaw_mprotect(void *address, size_t size, int protection);
int mhaw_madvise(void *address, size_t size, int advice);
#define mmap mhaw_mmap
#define munmap mhaw_munmap
#define mprotect mhaw_mprotect
#define madvise mhaw_madvise

/* ----------------------------------------------------------------- files ----- */

#undef PATH_MAX
#define PATH_MAX 4096
#undef NAME_MAX
#define NAME_MAX 1023 /* bytes of UTF-8, of at most 255 characters */
#define O_CLOEXEC 0   /* no file is inherited */
#define O_NONBLOCK 0
#define O_DIRECTORY 0x100000
#define O_NOFOLLOW 0x200000
#define AT_FDCWD (-100)
#define AT_SYMLINK_NOFOLLOW 0x100
#define AT_REMOVEDIR 0x200
#ifndef S_IFLNK
#define S_IFLNK 0xa000
#define S_ISLNK(mode) (((mode)&S_IFMT) == S_IFLNK)
#endif

struct mhaw_stat {
    uint64_t st_dev, st_ino, st_nlink;
    unsigned st_mode;
    int64_t st_size;
};
int mhaw_open(const char *path, int flags, ...);
int mhaw_openat(int folder, const char *name, int flags, ...);
ssize_t mhaw_read(int fd, void *data, size_t size);
ssize_t mhaw_pread(int fd, void *data, size_t size, off_t at);
ssize_t mhaw_pwrite(int fd, const void *data, size_t size, off_t at);
ssize_t mhaw_write(int fd, const void *data, size_t size);
int mhaw_fsync(int fd);
int mhaw_stat(const char *path, struct mhaw_stat *about);
int mhaw_lstat(const char *path, struct mhaw_stat *about);
int mhaw_fstat(int fd, struct mhaw_stat *about);
int mhaw_fstatat(int folder, const char *name, struct mhaw_stat *about, int flags);
int mhaw_access(const char *path, int mode);
int mhaw_rename(const char *from, const char *to);
int mhaw_renameat(int folder, const char *from, int other_folder, const char *to);
int mhaw_unlink(const char *path);
int mhaw_unlinkat(int folder, const char *name, int flags);
int mhaw_remove(const char *path);
int mhaw_mkdir(const char *path, int mode);
int mhaw_rmdir(const char *path);
char *mhaw_mkdtemp(char *path);
/* The path has "/" between its names. */
char *mhaw_realpath(const char *path, char *result);
#undef stat
#undef fstat
#undef lstat
#define open mhaw_open
#define openat mhaw_openat
#define read mhaw_read
#define pread mhaw_pread
#define pwrite mhaw_pwrite
#define write mhaw_write
#define fsync mhaw_fsync
#define stat mhaw_stat
#define lstat mhaw_lstat
#define fstat mhaw_fstat
#define fstatat mhaw_fstatat
#define access mhaw_access
#define rename mhaw_rename
#define renameat mhaw_renameat
#define unlink mhaw_unlink
#define unlinkat mhaw_unlinkat
#define remove mhaw_remove
#define mkdir mhaw_mkdir
#define rmdir mhaw_rmdir
#define mkdtemp mhaw_mkdtemp
#define realpath mhaw_realpath

/* Locks last until the file is closed, and do not keep others from reading it. */
enum { LOCK_EX = 2, LOCK_NB = 4 };
int mhaw_flock(int fd, int operation);
#define flock mhaw_flock

/* --------------------------------------------------------------- streams ----- */

typedef struct cookie_io_functions_t {
    ssize_t (*write)(void *cookie, const char *bytes, size_t count);
} cookie_io_functions_t;

FILE *mhaw_fopen(const char *path, const char *mode);
/* What is written goes through a temporary file, and to its end when the stream is closed. */
FILE *mhaw_open_memstream(char **text, size_t *size);
FILE *mhaw_fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions);
int mhaw_fclose(FILE *file);
ssize_t mhaw_getline(char **line, size_t *room, FILE *file);
#define fopen mhaw_fopen
#define open_memstream mhaw_open_memstream
#define fopencookie mhaw_fopencookie
#define fclose mhaw_fclose
#define getline mhaw_getline

/* ------------------------------------------------------------------ text ----- */

char *mhaw_stpcpy(char *to, const char *from);
int mhaw_strerror_r(int error, char *text, size_t size);
#define stpcpy mhaw_stpcpy
#define strerror_r mhaw_strerror_r

/* Those of mingw-w64 are made of branches that convert a double to float. */
#undef isfinite
#undef isinf
#undef isnan
#undef signbit
#define isfinite(x) __builtin_isfinite(x)
#define isinf(x) __builtin_isinf_sign(x)
#define isnan(x) __builtin_isnan(x)
#define signbit(x) (__builtin_signbit(x) != 0)

/* That of mingw-w64 rounds twice. */
float mhaw_fmaf(float x, float y, float z);
#define fmaf mhaw_fmaf

/* Elements that compare equal stay in their order, as with glibc: results must not depend on the
 * platform. */
void mhaw_qsort(void *data, size_t count, size_t size, int (*compare)(const void *, const void *));
#define qsort mhaw_qsort

/* The only locale is "C". */
typedef const char *locale_t;
enum { LC_ALL_MASK = 1 };
locale_t mhaw_newlocale(int mask, const char *name, locale_t base);
void mhaw_freelocale(locale_t locale);
double mhaw_strtod_l(const char *text, char **end, locale_t locale);
#define newlocale mhaw_newlocale
#define freelocale mhaw_freelocale
#define strtod_l mhaw_strtod_l

/* ---------------------------------------------------------------- system ----- */

int mhaw_setenv(const char *name, const char *value, int overwrite);
int mhaw_unsetenv(const char *name);
#define setenv mhaw_setenv
#define unsetenv mhaw_unsetenv

/* Ctrl-C is SIGINT. Nothing sends SIGPIPE: a write to a pipe without a reader
 * fails. */
#define SIGPIPE 13
#define SA_RESTART 0
struct sigaction {
    void (*sa_handler)(int number);
    int sa_flags, sa_mask;
};
int mhaw_sigaction(int number, const struct sigaction *action, struct sigaction *before);
#define sigaction(...) mhaw_sigaction(__VA_ARGS__)
#define sigemptyset(set) ((void)(*(set) = 0))

enum { GRND_NONBLOCK = 1 };
ssize_t mhaw_getrandom(void *data, size_t size, unsigned flags);
#define getrandom mhaw_getrandom

enum { POLLIN = 1 };
struct pollfd {
    int fd;
    short events, revents;
};
/* Can a read() from the only one of `wanted` return at once? It does not wait. */
int mhaw_poll(struct pollfd *wanted, unsigned count, int timeout);
#define poll mhaw_poll

enum { TIOCGWINSZ = 0x5413 };
struct winsize {
    int ws_col;
};
int mhaw_ioctl(int fd, int request, struct winsize *size);
#define ioctl mhaw_ioctl

enum { _SC_PAGESIZE = 30 };
long mhaw_sysconf(int name);
#define sysconf mhaw_sysconf

enum { RTLD_NOW = 0, RTLD_LOCAL = 0, RTLD_NODELETE = 0 };
void *mhaw_dlopen(const char *name, int flags);
void *mhaw_dlsym(void *library, const char *name);
int mhaw_dlclose(void *library);
#define dlopen mhaw_dlopen
#define dlsym mhaw_dlsym
#define dlclose mhaw_dlclose

/* program_start.c has the function that Windows calls. */
int mhaw_program_main(int argc, char **argv);
#define main mhaw_program_main

#endif
