/* SPDX-License-Identifier: MIT */
/* Reads with read(2) and poll(2) instead of stdio, because only then is it known whether the next
 * line would have to be waited for. */
#include "base/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Whether read() would return at once. */
static bool is_ready(int fd)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    return poll(&wanted, 1, 0) > 0;
}

/* Reads the next buffer. False at the end and after an error. */
static bool refill(line_reader *r)
{
    ssize_t count;
    do {
        count = read(r->fd, r->buffer, sizeof r->buffer);
    } while (count < 0 && errno == EINTR);
    if (count < 0)
        r->error = errno;
    r->ended = count <= 0;
    r->at = 0;
    r->end = count > 0 ? (size_t)count : 0;
    return !r->ended;
}

/* Hands out the line that was read and begins the next. */
static void finish_line(line_reader *r, input_line *line)
{
    r->begun.text[r->used] = '\0';
    *line = r->begun;
    r->begun.cut = false;
    r->used = 0;
    r->begins = false;
}

/* Takes bytes up to the end of the line. False if the buffer ends first. */
static bool take_line(line_reader *r)
{
    while (r->at < r->end) {
        const char c = r->buffer[r->at++];
        if (c == '\n')
            return true;
        r->begins = true;
        if (r->used + 1 < LINE_BYTES)
            r->begun.text[r->used++] = c == '\0' ? ' ' : c;
        else
            r->begun.cut = true;
    }
    return false;
}

int line_reader_take(line_reader *r, input_line *lines, int limit)
{
    int count = 0;
    while (count < limit && !r->ended) {
        if (take_line(r)) {
            finish_line(r, &lines[count++]);
        } else if (count > 0 && !is_ready(r->fd)) {
            break;
        } else if (!refill(r) && r->begins) {
            finish_line(r, &lines[count++]);
        }
    }
    return count;
}
