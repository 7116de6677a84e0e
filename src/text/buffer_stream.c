/* SPDX-License-Identifier: MIT */
/* By fopencookie(), which Linux has, and src/windows for Windows. */
#define _GNU_SOURCE
#include "text/buffer_stream.h"

#include <sys/types.h>

static ssize_t append(void *buffer, const char *bytes, size_t length)
{
    text_buffer *const to = buffer;
    text_buffer_add(to, bytes, length);
    return to->failed ? 0 : (ssize_t)length;
}

FILE *buffer_stream_open(text_buffer *buffer)
{
    return fopencookie(buffer, "w", (cookie_io_functions_t){.write = append});
}
