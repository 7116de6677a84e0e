/* SPDX-License-Identifier: MIT */
/*
 * A lecture: stops, each of which is a state of the page and a text. It is written as a file:
 *
 *      # Title of the lecture
 *
 *      ## Title of the first stop
 *      @ view=compute&step=project&head=3
 *      A paragraph. It may have several lines;
 *
 *      an empty line begins another one.
 *
 *      ## Title of the second stop
 *
 * Without the line "@" a stop shows the wall. Files are not trusted: what is wrong is refused with
 * the number of its line. The page escapes every text.
 */
#ifndef PAGE_LECTURE_H
#define PAGE_LECTURE_H

#include <stdbool.h>

#include "format/json_writer.h"
#include "format/text_file.h"

enum {
    LECTURE_STOPS_MAX = 100,
    LECTURE_FILE_MAX = 256 << 10,
    LECTURE_LINE_MAX = 4000, /* bytes of one line */
    LECTURE_STOP_MAX = 8000, /* bytes of the text of a stop */
};

typedef struct lecture_stop {
    const char *title, *state; /* state "": the wall */
    char *text;                /* lines as in the file, without empty ones at both ends */
} lecture_stop;

typedef struct page_lecture {
    char *memory; /* of the file; titles and texts point into it */
    const char *title;
    lecture_stop stops[LECTURE_STOPS_MAX];
    int count;
} page_lecture;

/* Reads a file, or our own lecture if path is NULL: that on words, or that on pictures. False, with
 * a message: it cannot be read, or is no lecture. page_lecture_free() either way. */
bool page_lecture_read(page_lecture *lecture, const char *path, bool pictures,
                       char message[TEXT_FILE_MESSAGE_MAX]);
void page_lecture_free(page_lecture *lecture);

/* Writes "lecture": {"title": ..., "stops": [{"title": ..., "state": ..., "text": ...}]}. */
void page_lecture_put(json *j, const page_lecture *lecture);

#endif
