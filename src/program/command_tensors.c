/* SPDX-License-Identifier: MIT */
/* mha tensors: checks safetensors files (format/safetensors.h) and prints their tensors and
 * metadata as a table or as JSON. */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <mha/mha.h>

#include "format/json_writer.h"
#include "format/safetensors.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"

static const char details[] =
    "A file is checked before anything is printed: header, dtypes, shapes, offsets, and that the\n"
    "tensors fill the file without a gap or overlap. A file that breaks a rule of the format is\n"
    "refused with the name of the rule. The values of the tensors are not read.\n"
    "\n"
    "Examples:\n"
    "  mha tensors model.safetensors\n"
    "  mha tensors --json model.safetensors\n";

enum { SHAPE_TEXT = 64, NAME_COLUMNS = 60 };

/* "[2,3]"; a shape that is too long ends in "...". */
static void shape_text(const safetensors_tensor *tensor, char text[SHAPE_TEXT])
{
    const int room = SHAPE_TEXT - 30; /* the rest is for one more extent, and the end */
    int used = snprintf(text, SHAPE_TEXT, "[");
    size_t n = 0;
    for (; n < tensor->rank && used < room; n++)
        used += snprintf(text + used, SHAPE_TEXT - (size_t)used, "%s%" PRIu64, n ? "," : "",
                         tensor->shape[n]);
    snprintf(text + used, SHAPE_TEXT - (size_t)used, n < tensor->rank ? ",...]" : "]");
}

/* Whether a control character begins here: C0 and DEL are one byte, C1 (U+0080 to U+009F) are two.
 */
static bool is_control(const char *c)
{
    const unsigned char first = (unsigned char)c[0], second = first ? (unsigned char)c[1] : 0;
    return first < 0x20 || first == 0x7f || (first == 0xc2 && second >= 0x80 && second < 0xa0);
}

/* Prints text of an untrusted file: control characters, of one byte or two, become '?'. */
static void put_text(const char *text, int columns)
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
static int name_columns(const safetensors_file *file)
{
    size_t widest = 4;
    for (size_t n = 0; n < file->count; n++) {
        const size_t length = strlen(file->tensors[n].name);
        widest = length > widest ? length : widest;
    }
    return widest < NAME_COLUMNS ? (int)widest : NAME_COLUMNS;
}

static int shape_columns(const safetensors_file *file)
{
    size_t widest = 5;
    for (size_t n = 0; n < file->count; n++) {
        char text[SHAPE_TEXT];
        shape_text(&file->tensors[n], text);
        widest = strlen(text) > widest ? strlen(text) : widest;
    }
    return (int)widest;
}

/* Metadata first, then one row per tensor in the order of the file. */
static void print_table(const char *path, const safetensors_file *file)
{
    const int names = name_columns(file), shapes = shape_columns(file);
    printf("%s: %zu tensor%s, %" PRIu64 " byte%s\n", path, file->count, file->count == 1 ? "" : "s",
           file->data_bytes, file->data_bytes == 1 ? "" : "s");
    for (size_t n = 0; n < file->pair_count; n++) {
        fputs("  ", stdout);
        put_text(file->pairs[n].key, 0);
        fputs(" = ", stdout);
        put_text(file->pairs[n].value, 0);
        putchar('\n');
    }
    if (file->count)
        printf("%-*s  %-11s  %-*s  %s\n", names, "name", "dtype", shapes, "shape", "bytes");
    for (size_t n = 0; n < file->count; n++) {
        const safetensors_tensor *const tensor = &file->tensors[n];
        char shape[SHAPE_TEXT];
        shape_text(tensor, shape);
        put_text(tensor->name, names);
        printf("  %-11s  %-*s  %" PRIu64 "\n", safetensors_type_name(tensor->type), shapes, shape,
               tensor->end - tensor->begin);
    }
}

static void print_tensor(json *j, const safetensors_tensor *tensor)
{
    json_open_object(j, NULL);
    json_string(j, "name", tensor->name);
    json_string(j, "dtype", safetensors_type_name(tensor->type));
    json_open_array(j, "shape");
    for (size_t n = 0; n < tensor->rank; n++)
        json_unsigned(j, NULL, tensor->shape[n]);
    json_close(j);
    json_unsigned(j, "offset", tensor->begin);
    json_unsigned(j, "bytes", tensor->end - tensor->begin);
    json_close(j);
}

static void print_json(json *j, const char *path, const safetensors_file *file)
{
    json_open_object(j, NULL);
    json_string(j, "file", path);
    json_unsigned(j, "header_bytes", file->header_bytes);
    json_unsigned(j, "data_bytes", file->data_bytes);
    json_open_object(j, "metadata");
    for (size_t n = 0; n < file->pair_count; n++)
        json_string(j, file->pairs[n].key, file->pairs[n].value);
    json_close(j);
    json_open_array(j, "tensors");
    for (size_t n = 0; n < file->count; n++)
        print_tensor(j, &file->tensors[n]);
    json_close(j);
    json_close(j);
}

/* Prints one file; false after a message if it is refused. Warnings go to stderr. */
static bool show(const char *path, bool strict, json *j)
{
    char message[512] = "";
    safetensors_file *file;
    if (safetensors_open(&file, path, strict ? SAFETENSORS_STRICT : 0, message, sizeof message) !=
        MHA_OK) {
        fprintf(stderr, "mha: %s\n", message);
        return false;
    }
    if (j)
        print_json(j, path, file);
    else
        print_table(path, file);
    if (file->warnings)
        fprintf(stderr, "mha: %s: warning: %s%s\n", path, file->warning,
                file->warnings > 1 ? ", and more of the kind" : "");
    safetensors_close(file);
    return true;
}

int command_tensors(int argc, char **argv)
{
    bool as_json = false, strict = false;
    const arg_option options[] = {
        {"strict", ARG_FLAG, &strict, NULL, "treat warnings as errors", 0, 0},
        {OPTION_JSON(&as_json)},
    };
    const arg_command command = {
        .name = "tensors",
        .usage = "[--strict] [--json] FILE...",
        .summary = "Check safetensors files and list their tensors.",
        .details = details,
        ARG_OPTIONS(options),
        .words_min = 1,
        .words_max = INT_MAX,
    };
    int words;
    const int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    bool fine = true;
    json j = json_begin(stdout);
    if (as_json)
        json_open_array(&j, NULL);
    for (int n = 1; n <= words; n++) {
        if (!as_json && n > 1)
            putchar('\n');
        fine &= show(argv[n], strict, as_json ? &j : NULL);
    }
    if (as_json)
        json_close(&j);
    return fine ? EXIT_FINE : EXIT_FAILED;
}
