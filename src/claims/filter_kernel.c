/* SPDX-License-Identifier: MIT */
/*
 * Kernels of mha conv: a table of those with a name, and a reader for text files. The reader checks
 * that the kernel is square and small, and reports the line of a mistake. A name that is neither in
 * the table nor a file gets a suggestion.
 */
#include "claims/filter_kernel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

static const conv_kernel named[] = {
    {"identity", 3, 1, {{0, 0, 0, 0, 1, 0, 0, 0, 0}}},
    {"blur", 3, 1, {{0.0625, 0.125, 0.0625, 0.125, 0.25, 0.125, 0.0625, 0.125, 0.0625}}},
    {"sharpen", 3, 1, {{0, -1, 0, -1, 5, -1, 0, -1, 0}}},
    {"edge", 3, 1, {{-1, -1, -1, -1, 8, -1, -1, -1, -1}}},
    {"emboss", 3, 1, {{-2, -1, 0, -1, 1, 1, 0, 1, 2}}},
    {"sobel", 3, 2, {{-1, 0, 1, -2, 0, 2, -1, 0, 1}, {-1, -2, -1, 0, 0, 0, 1, 2, 1}}},
};
enum { NAMED = sizeof named / sizeof named[0] };

/* ------------------------------------------------------------------ file ----- */

enum { FILE_MAX_BYTES = 1 << 16 };

typedef struct reader {
    const char *path;
    int line;
    char *message;
} reader;

/* Writes a message about the file, and the line if there is one. A number follows the text unless
 * it is NaN. Always returns false. */
static bool wrong(const reader *r, const char *why, double number)
{
    char place[32] = "", end[16] = "";
    if (r->line > 0)
        snprintf(place, sizeof place, ", line %d", r->line);
    if (!isnan(number))
        snprintf(end, sizeof end, " %.0f", number);
    snprintf(r->message, KERNEL_MESSAGE_MAX, "%s%s: %s%s", r->path, place, why, end);
    return false;
}

/* Reads the numbers of one line and returns how many there are, or -1 after a message. They are
 * rounded to f32. */
static int read_numbers(const reader *r, char *line, double *numbers)
{
    static const char blanks[] = " \t\r\n";
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, blanks, &rest); word != NULL;
         word = strtok_r(NULL, blanks, &rest)) {
        char *end;
        const double number = strtod(word, &end);
        if (*end != '\0' || !isfinite(number) || fabs(number) > 1e6) {
            snprintf(r->message, KERNEL_MESSAGE_MAX,
                     "%s, line %d: \"%.40s\" is not a number from -1e6 to 1e6", r->path, r->line,
                     word);
            return -1;
        }
        if (count == KERNEL_SIZE_MAX) {
            wrong(r, "more numbers than", KERNEL_SIZE_MAX);
            return -1;
        }
        numbers[count++] = (double)(float)number;
    }
    return count;
}

/* Adds one line of the file to the kernel, unless it is blank or a comment. `rows` counts the rows
 * so far. */
static bool add_line(reader *r, char *line, conv_kernel *kernel, ptrdiff_t *rows)
{
    double numbers[KERNEL_SIZE_MAX];
    line[strcspn(line, "#")] = '\0';
    const int count = read_numbers(r, line, numbers);
    if (count <= 0)
        return count == 0;
    if (*rows == 0)
        kernel->size = count;
    if (count != kernel->size)
        return wrong(r, "a kernel is square: this line should have as many numbers as the first,",
                     (double)kernel->size);
    if (*rows == kernel->size)
        return wrong(r, "a kernel is square: there should be no more lines than numbers in one,",
                     (double)kernel->size);
    memcpy(kernel->taps[0] + *rows * kernel->size, numbers, (size_t)count * sizeof *numbers);
    ++*rows;
    return true;
}

/* Reads all lines of the text, which it destroys. */
static bool read_lines(reader *r, char *text, conv_kernel *kernel)
{
    ptrdiff_t rows = 0;
    for (char *next = text; next != NULL;) {
        char *const line = next;
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        r->line++;
        if (!add_line(r, line, kernel, &rows))
            return false;
    }
    r->line = 0;
    if (rows == 0)
        return wrong(r, "there are no numbers", NAN);
    if (rows < kernel->size)
        return wrong(r, "a kernel is square: the file should have as many lines of numbers as",
                     (double)kernel->size);
    return true;
}

static bool read_text(reader *r, FILE *file, conv_kernel *kernel)
{
    char *const text = malloc(FILE_MAX_BYTES + 1);
    const size_t count = text != NULL ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
    bool fine = false;
    if (text == NULL)
        wrong(r, "out of memory", NAN);
    else if (ferror(file))
        wrong(r, strerror(errno), NAN);
    else if (count == FILE_MAX_BYTES || memchr(text, '\0', count) != NULL)
        wrong(r, "too long, or no text, for a kernel", NAN);
    else {
        text[count] = '\0';
        fine = read_lines(r, text, kernel);
    }
    free(text);
    return fine;
}

/* Reports a name that is neither in the table nor a file. Always returns false. */
static bool unknown(const char *name, char *message)
{
    const char *names[NAMED];
    for (int n = 0; n < NAMED; n++)
        names[n] = named[n].name;
    const char *const near = suggest_nearest(name, names, NAMED);
    if (near != NULL)
        snprintf(message, KERNEL_MESSAGE_MAX, "no kernel or file \"%s\"; did you mean \"%s\"?",
                 name, near);
    else
        snprintf(message, KERNEL_MESSAGE_MAX,
                 "no kernel or file \"%s\"; kernels are identity, blur, sharpen, edge, emboss and "
                 "sobel",
                 name);
    return false;
}

bool conv_kernel_find(conv_kernel *kernel, const char *name, char *message)
{
    for (int n = 0; n < NAMED; n++)
        if (strcmp(name, named[n].name) == 0) {
            *kernel = named[n];
            return true;
        }
    reader r = {name, 0, message};
    *kernel = (conv_kernel){.name = name, .count = 1};
    errno = 0;
    FILE *const file = fopen(name, "r");
    if (file == NULL && errno == ENOENT)
        return unknown(name, message);
    if (file == NULL) {
        snprintf(message, KERNEL_MESSAGE_MAX, "%s: %s", name, strerror(errno));
        return false;
    }
    const bool fine = read_text(&r, file, kernel);
    fclose(file);
    return fine;
}
