/* SPDX-License-Identifier: MIT */
/* A stream that writes into memory of this room. */
#ifndef TEXT_BUFFER_STREAM_H
#define TEXT_BUFFER_STREAM_H

#include <stdio.h>

#include "text/text_buffer.h"

/* What is written to it is added to the buffer, all of it once the stream is closed. NULL: out of
 * memory. */
FILE *buffer_stream_open(text_buffer *buffer);

#endif
