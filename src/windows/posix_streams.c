/* SPDX-License-Identifier: MIT */
/*
 * Streams of stdio: files without translation of lines, and streams whose bytes go to memory or to
 * a function. mingw-w64 has no such streams, so the bytes go to a temporary file, which Windows
 * keeps in memory as far as it can, and from there to their end when the stream is closed.
 */
#include "windows/windows_parts.h"

#undef fclose

/* A stream whose bytes go to a function. */
typedef struct sink {
    struct sink *next;
    FILE *file;
    void *cookie;
    ssize_t (*write)(void *cookie, const char *bytes, size_t count);
    char **text; /* of open_memstream(), which has no function */
    size_t *size;
} sink;

static sink *sinks;
static pthread_mutex_t sinks_lock = PTHREAD_MUTEX_INITIALIZER;

/* ----------------------------------------------------------------- files ----- */

static int flags_of(const char *mode)
{
    const bool both = strchr(mode, '+') != NULL;
    switch (mode[0]) {
    case 'r':
        return both ? O_RDWR : O_RDONLY;
    case 'w':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
    default:
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
    }
}

/* A stream of a descriptor, which is closed if that fails. */
static FILE *stream_of(int fd, const char *mode)
{
    const char plain[] = {mode[0], 'b', strchr(mode, '+') ? '+' : '\0', '\0'};
    FILE *const file = fd >= 0 ? _fdopen(fd, plain) : NULL;
    if (fd >= 0 && !file)
        _close(fd);
    return file;
}

FILE *mhaw_fopen(const char *path, const char *mode)
{
    return stream_of(mhaw_openat(AT_FDCWD, path, flags_of(mode)), mode);
}

/* ----------------------------------------------------------------- sinks ----- */

/* A file without a name that others could know; it is removed when it is closed. */
static FILE *open_temporary(void)
{
    wchar_t folder[MAX_PATH + 1], name[MAX_PATH + 1];
    if (GetTempPathW(MAX_PATH, folder) == 0 || GetTempFileNameW(folder, L"mha", 0, name) == 0) {
        mhaw_fail();
        return NULL;
    }
    const HANDLE handle = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
                                      FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (handle == INVALID_HANDLE_VALUE) {
        mhaw_fail();
        return NULL;
    }
    const int fd = _open_osfhandle((intptr_t)handle, O_RDWR | O_BINARY);
    if (fd < 0)
        CloseHandle(handle);
    return stream_of(fd, "w+");
}

static FILE *open_sink(sink kind)
{
    sink *const made = malloc(sizeof *made);
    kind.file = made ? open_temporary() : NULL;
    if (!kind.file) {
        free(made);
        return NULL;
    }
    pthread_mutex_lock(&sinks_lock);
    kind.next = sinks;
    *made = kind;
    sinks = made;
    pthread_mutex_unlock(&sinks_lock);
    return kind.file;
}

FILE *mhaw_open_memstream(char **text, size_t *size)
{
    *text = NULL;
    *size = 0;
    return open_sink((sink){.text = text, .size = size});
}

FILE *mhaw_fopencookie(void *cookie, const char *mode, cookie_io_functions_t functions)
{
    (void)mode; /* "w" */
    return open_sink((sink){.cookie = cookie, .write = functions.write});
}

/* The sink of a stream, which is then no longer in the list, or NULL. */
static sink *take_sink(FILE *file)
{
    pthread_mutex_lock(&sinks_lock);
    sink **at = &sinks;
    while (*at && (*at)->file != file)
        at = &(*at)->next;
    sink *const found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&sinks_lock);
    return found;
}

/* Everything that was written, followed by a zero; NULL after an error. */
static char *read_back(FILE *file, size_t *size)
{
    struct mhaw_stat about;
    if (fflush(file) != 0 || ferror(file) || mhaw_fstat(fileno(file), &about) != 0)
        return NULL;
    *size = (size_t)about.st_size;
    char *const text = malloc(*size + 1);
    rewind(file);
    if (text && fread(text, 1, *size, file) == *size) {
        text[*size] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

static bool finish_sink(const sink *s)
{
    size_t size = 0;
    char *const text = read_back(s->file, &size);
    if (!text)
        return false;
    if (s->text) {
        *s->text = text;
        *s->size = size;
        return true;
    }
    const bool taken = size == 0 || s->write(s->cookie, text, size) == (ssize_t)size;
    free(text);
    return taken;
}

int mhaw_fclose(FILE *file)
{
    sink *const s = take_sink(file);
    const bool ok = !s || finish_sink(s);
    free(s);
    return fclose(file) == 0 && ok ? 0 : EOF;
}

/* ----------------------------------------------------------------- lines ----- */

ssize_t mhaw_getline(char **line, size_t *room, FILE *file)
{
    size_t length = 0;
    for (int c = getc(file); c != EOF; c = getc(file)) {
        if (!*line || length + 2 > *room) {
            const size_t wanted = 2 * length + 128;
            char *const longer = realloc(*line, wanted);
            if (!longer)
                return -1;
            *line = longer;
            *room = wanted;
        }
        (*line)[length++] = (char)c;
        (*line)[length] = '\0';
        if (c == '\n')
            break;
    }
    return length > 0 ? (ssize_t)length : -1;
}
