/* SPDX-License-Identifier: MIT */
/* Reads lines of a file or pipe, as many at once as are available: lines from a terminal are
 * answered one by one, a file is processed in groups. */
#ifndef BASE_LINE_READER_H
#define BASE_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_BYTES = 8192, LINE_BUFFER = 65536 };

/* A line without its end. Zero bytes become spaces; a line that is too long is cut. */
typedef struct input_line {
    char text[LINE_BYTES];
    bool cut;
} input_line;

/* Initialised to zero except for fd. */
typedef struct line_reader {
    int fd;
    int error; /* errno of a read that failed; the lines before it were returned */
    bool ended;

    /* private */
    char buffer[LINE_BUFFER];
    size_t at, end;
    input_line begun; /* the line that has not ended yet */
    size_t used;
    bool begins;
} line_reader;

/* Waits for a line, then returns all that are available, at most `limit`. Returns their number; 0
 * at the end. */
int line_reader_take(line_reader *reader, input_line *lines, int limit);

#endif
