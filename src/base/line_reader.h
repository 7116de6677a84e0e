/* SPDX-License-Identifier: MIT */
/* Lines of a file or pipe, as many at once as are there: a reader at a terminal gets an answer
 * after every line, a file goes through in groups. */
#ifndef BASE_LINE_READER_H
#define BASE_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_BYTES = 2048, LINE_BUFFER = 16384 };

/* Without its end. Bytes of 0 are spaces; what is too long is cut. */
typedef struct input_line {
    char text[LINE_BYTES];
    bool cut;
} input_line;

/* All zero but for fd. */
typedef struct line_reader {
    int fd;
    int error; /* errno of a read that failed; the lines before it were handed out */
    bool ended;

    /* private */
    char buffer[LINE_BUFFER];
    size_t at, end;
    input_line begun; /* the line that has not ended yet */
    size_t used;
    bool begins;
} line_reader;

/* Waits for a line, then takes those that are there, `limit` at most. Returns how many; 0 at the
 * end. */
int line_reader_take(line_reader *reader, input_line *lines, int limit);

#endif
