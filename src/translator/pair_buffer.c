/* SPDX-License-Identifier: MIT */
/* Memory of a changed pair (pair_buffer.h). */
#include "translator/pair_buffer.h"

#include <string.h>

bool pair_buffer_append(pair_buffer *buffer, int side, const char *text, size_t length)
{
    size_t *const used = &buffer->length[side];
    if (length > PAIR_BUFFER_MAX - *used)
        return false;
    memcpy(buffer->text[side] + *used, text, length);
    *used += length;
    return true;
}

pair_text pair_buffer_text(const pair_buffer *buffer, int64_t line)
{
    return (pair_text){
        {buffer->text[0], buffer->text[1]}, {buffer->length[0], buffer->length[1]}, line};
}
