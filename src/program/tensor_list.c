/* SPDX-License-Identifier: MIT */
/* Prints a list of tensors as a table or as JSON (tensor_list.h). */
#include "program/tensor_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE_TEXT = 64, NAME_COLUMNS = 60 };

/* "[2,3]"; a shape that is too long ends in "...". */
static void shape_text(const tensor_row *row, char text[SHAPE_TEXT])
{
    const int room = SHAPE_TEXT - 30; /* the rest is for one more extent, and the end */
    int used = snprintf(text, SHAPE_TEXT, "[");
    size_t n = 0;
    for (; n < row->rank && used < room; n++)
        used += snprintf(text + used, SHAPE_TEXT - (size_t)used, "%s%" PRIu64, n ? "," : "",
                         row->shape[n]);
    snprintf(text + used, SHAPE_TEXT - (size_t)used, n < row->rank ? ",...]" : "]");
}

/* Whether a control character begins here: C0 and DEL are one byte, C1 (U+0080 to U+009F) are two.
 */
static bool is_control(const char *c)
{
    const unsigned char first = (unsigned char)c[0], second = first ? (unsigned char)c[1] : 0;
    return first < 0x20 || first == 0x7f || (first == 0xc2 && second >= 0x80 && second < 0xa0);
}

void tensor_list_print_text(const char *text, int columns)
{
    int used = 0;
    for (; *text; text++) {
        const bool control = is_control(text);
        putchar(control ? '?' : *text);
        used += ((unsigned char)*text & 0xc0) != 0x80;
        if (control && *text == '\xc2')
            text++;
    }
    for (; used < columns; used++)
        putchar(' ');
}

/* Width of the column of names; longer names push the rest of their row to the right. */
static int name_columns(const tensor_list *list)
{
    size_t widest = 4;
    for (size_t n = 0; n < list->count; n++) {
        const size_t length = strlen(list->row(list->file, n).name);
        widest = length > widest ? length : widest;
    }
    return widest < NAME_COLUMNS ? (int)widest : NAME_COLUMNS;
}

static int shape_columns(const tensor_list *list)
{
    size_t widest = 5;
    for (size_t n = 0; n < list->count; n++) {
        char text[SHAPE_TEXT];
        const tensor_row row = list->row(list->file, n);
        shape_text(&row, text);
        widest = strlen(text) > widest ? strlen(text) : widest;
    }
    return (int)widest;
}

void tensor_list_print_title(const tensor_list *list)
{
    printf("%s: %zu tensor%s, %" PRIu64 " byte%s\n", list->path, list->count,
           list->count == 1 ? "" : "s", list->bytes, list->bytes == 1 ? "" : "s");
}

void tensor_list_print_table(const tensor_list *list)
{
    const int names = name_columns(list), shapes = shape_columns(list);
    if (list->count)
        printf("%-*s  %-11s  %-*s  %s\n", names, "name", "dtype", shapes, "shape", "bytes");
    for (size_t n = 0; n < list->count; n++) {
        const tensor_row row = list->row(list->file, n);
        char shape[SHAPE_TEXT];
        shape_text(&row, shape);
        tensor_list_print_text(row.name, names);
        printf("  %-11s  %-*s  %" PRIu64 "\n", row.type, shapes, shape, row.bytes);
    }
}

void tensor_list_print_json(json *j, const tensor_list *list)
{
    json_open_array(j, "tensors");
    for (size_t n = 0; n < list->count; n++) {
        const tensor_row row = list->row(list->file, n);
        json_open_object(j, NULL);
        json_string(j, "name", row.name);
        json_string(j, "dtype", row.type);
        json_open_array(j, "shape");
        for (size_t i = 0; i < row.rank; i++)
            json_unsigned(j, NULL, row.shape[i]);
        json_close(j);
        if (row.has_offset)
            json_unsigned(j, "offset", row.offset);
        json_unsigned(j, "bytes", row.bytes);
        json_close(j);
    }
    json_close(j);
}
