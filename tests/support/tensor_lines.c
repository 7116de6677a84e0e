/* SPDX-License-Identifier: MIT */
/* Reads lists of tensors (tensor_lines.h). */
#include "support/tensor_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void builder_die(const char *what)
{
    fprintf(stderr, "a file for a test cannot be built: %s\n", what);
    exit(1);
}

/* One line of a list, for one layer. */
static tensor_line read_line(const char *line, size_t length, int layer)
{
    tensor_line tensor = {.rank = 0};
    size_t used = 0, n = 0;
    for (; n < length && line[n] != ' ' && used + 12 < TENSOR_NAME_ROOM; n++)
        if (line[n] == '#')
            used += (size_t)snprintf(tensor.name + used, TENSOR_NAME_ROOM - used, "%d", layer);
        else
            tensor.name[used++] = line[n];
    while (n < length && tensor.rank < 4) {
        char *end;
        tensor.shape[tensor.rank++] = strtoull(line + n, &end, 10);
        n = (size_t)(end - line);
    }
    return tensor;
}

size_t tensor_lines_read(const char *lines, int layers, tensor_line tensors[TENSOR_LINES_MAX])
{
    size_t count = 0;
    while (*lines) {
        const size_t length = strcspn(lines, "\n");
        const int repeat = memchr(lines, '#', length) ? layers : 1;
        for (int layer = 0; length > 0 && layer < repeat; layer++) {
            if (count == TENSOR_LINES_MAX)
                builder_die("too many tensors");
            tensors[count++] = read_line(lines, length, layer);
        }
        lines += length;
        lines += *lines == '\n';
    }
    return count;
}

size_t tensor_line_elements(const tensor_line *tensor)
{
    size_t count = 1;
    for (size_t n = 0; n < tensor->rank; n++)
        count *= (size_t)tensor->shape[n];
    return count;
}
