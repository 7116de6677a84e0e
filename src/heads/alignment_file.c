/* SPDX-License-Identifier: MIT */
/* Reads word alignments (alignment_file.h): all lines of a file, then the links of each line. */
#include "heads/alignment_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/text_file.h"

enum { WORD_NUMBER_MAX = 1000000 };

/* A file while it is read. */
typedef struct reading {
    alignment_file *file;
    size_t link_room;
    int64_t link_count;
    const char *path;
    int line;
    char *message;
} reading;

static bool fails(const reading *r, const char *at, const char *end)
{
    int shown = (int)strcspn(at, " \t\r\n");
    if (shown > end - at)
        shown = (int)(end - at);
    snprintf(r->message, ALIGNMENT_MESSAGE_MAX,
             "%.400s:%d: \"%.*s\" is no link; a link is i-j (sure) or ipj (possible), such as 0-1, "
             "and words count from 0",
             r->path, r->line, shown < 40 ? shown : 40, at);
    return false;
}

/* A number of at most WORD_NUMBER_MAX; moves *at past it. -1: there is none. */
static int64_t take_number(const char **at, const char *end)
{
    int64_t number = -1;
    while (*at < end && **at >= '0' && **at <= '9') {
        number = (number < 0 ? 0 : number) * 10 + (**at - '0');
        if (number > WORD_NUMBER_MAX)
            return -1;
        (*at)++;
    }
    return number;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One link; moves *at past it. */
static bool take_link(reading *r, const char **at, const char *end)
{
    const char *const begin = *at;
    const int64_t first = take_number(at, end);
    const char sign = *at < end ? *(*at)++ : '\0';
    const int64_t second = take_number(at, end);
    if (first < 0 || second < 0 || strchr("-p?", sign) == NULL || sign == '\0' ||
        (*at < end && !is_space(**at)))
        return fails(r, begin, end);
    word_link *const grown = mhai_array_grow(r->file->links, &r->link_room,
                                             (size_t)r->link_count + 1, sizeof *r->file->links);
    if (!grown) {
        snprintf(r->message, ALIGNMENT_MESSAGE_MAX, "out of memory");
        return false;
    }
    r->file->links = grown;
    r->file->links[r->link_count++] = (word_link){(int)first, (int)second, sign == '-'};
    return true;
}

/* The number of the pair, if a tab follows it; moves *at past the tab. */
static int64_t take_pair_number(const char **at, const char *end)
{
    const char *after = *at;
    const int64_t number = take_number(&after, end);
    if (number < 0 || after == end || *after != '\t')
        return -1;
    *at = after + 1;
    return number;
}

static bool read_line(reading *r, const char *at, const char *end)
{
    alignment_file *const file = r->file;
    file->numbers[file->lines] = take_pair_number(&at, end);
    file->starts[file->lines++] = r->link_count;
    while (at < end) {
        if (is_space(*at))
            at++;
        else if (!take_link(r, &at, end))
            return false;
    }
    file->starts[file->lines] = r->link_count;
    return true;
}

static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text += *text == '\n') {
        text += strcspn(text, "\n");
        lines++;
    }
    return lines;
}

static bool read_text(reading *r, const char *text)
{
    const size_t lines = (size_t)count_lines(text);
    r->file->numbers = calloc(lines + 1, sizeof *r->file->numbers);
    r->file->starts = calloc(lines + 1, sizeof *r->file->starts);
    if (!r->file->numbers || !r->file->starts) {
        snprintf(r->message, ALIGNMENT_MESSAGE_MAX, "out of memory");
        return false;
    }
    for (r->line = 1; *text != '\0'; r->line++) {
        const size_t size = strcspn(text, "\n");
        if (!read_line(r, text, text + size))
            return false;
        text += size + (text[size] == '\n');
    }
    return true;
}

/* Lines of a text end with "\n"; what follows a byte of 0 would be lost. */
static bool has_zero(const reading *r, const char *text, size_t length)
{
    int line = 1;
    for (const char *at = text; *at != '\0'; at++)
        line += *at == '\n';
    if (strlen(text) < length)
        snprintf(r->message, ALIGNMENT_MESSAGE_MAX, "%.400s:%d: has a byte of 0", r->path, line);
    return strlen(text) < length;
}

bool alignment_file_read(alignment_file *file, const char *path,
                         char message[ALIGNMENT_MESSAGE_MAX])
{
    char reason[TEXT_FILE_MESSAGE_MAX];
    size_t length;
    *file = (alignment_file){.lines = 0};
    char *const text = text_file_read(path, &length, reason);
    if (!text) {
        snprintf(message, ALIGNMENT_MESSAGE_MAX, "%s", reason);
        return false;
    }
    reading r = {.file = file, .path = path, .message = message};
    const bool fine = !has_zero(&r, text, length) && read_text(&r, text);
    free(text);
    return fine;
}

void alignment_file_free(alignment_file *file)
{
    free(file->numbers);
    free(file->starts);
    free(file->links);
    *file = (alignment_file){.lines = 0};
}
