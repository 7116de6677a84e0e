/* SPDX-License-Identifier: MIT */
/* By funopen() of macOS. */
#include "text/buffer_stream.h"

static int append(void *buffer, const char *bytes, int length)
{
    text_buffer *const to = buffer;
    text_buffer_add(to, bytes, (size_t)length);
    return to->failed ? -1 : length;
}

FILE *buffer_stream_open(text_buffer *buffer)
{
    return funopen(buffer, NULL, append, NULL, NULL);
}
