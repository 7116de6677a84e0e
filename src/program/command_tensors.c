/* SPDX-License-Identifier: MIT */
/* mha tensors: checks files of weights and prints their tensors and metadata as a table or as JSON.
 * Safetensors files are listed here, other kinds by tensor_list_models.c. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <mha/mha.h>

#include "format/file_kind.h"
#include "format/json_writer.h"
#include "format/safetensors.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"
#include "program/tensor_list.h"

static const char details[] =
    "A file is a safetensors file, a GGUF file, or a model of llama2.c (*.bin). It is checked\n"
    "before anything is printed: header, dtypes, shapes, offsets, and that the tensors are inside\n"
    "of the file and do not overlap. A file that breaks a rule of its format is refused; the "
    "rules\n"
    "of safetensors have names. The values of the tensors are not read.\n"
    "\n"
    "Examples:\n"
    "  mha tensors model.safetensors\n"
    "  mha tensors --json model.gguf\n";

static tensor_row safetensors_row(const void *file, size_t number)
{
    const safetensors_tensor *const t = &((const safetensors_file *)file)->tensors[number];
    return (tensor_row){
        t->name, safetensors_type_name(t->type), t->rank, t->shape, t->end - t->begin, true,
        t->begin};
}

/* Metadata first, then one row per tensor in the order of the file. */
static void print_table(const safetensors_file *file, const tensor_list *list)
{
    tensor_list_print_title(list);
    for (size_t n = 0; n < file->pair_count; n++) {
        fputs("  ", stdout);
        tensor_list_print_text(file->pairs[n].key, 0);
        fputs(" = ", stdout);
        tensor_list_print_text(file->pairs[n].value, 0);
        putchar('\n');
    }
    tensor_list_print_table(list);
}

static void print_json(json *j, const safetensors_file *file, const tensor_list *list)
{
    json_open_object(j, NULL);
    json_string(j, "file", list->path);
    json_unsigned(j, "header_bytes", file->header_bytes);
    json_unsigned(j, "data_bytes", file->data_bytes);
    json_open_object(j, "metadata");
    for (size_t n = 0; n < file->pair_count; n++)
        json_string(j, file->pairs[n].key, file->pairs[n].value);
    json_close(j);
    tensor_list_print_json(j, list);
    json_close(j);
}

/* Prints one file; false after a message if it is refused. Warnings go to stderr. */
static bool show_safetensors(const char *path, bool strict, json *j)
{
    char message[512] = "";
    safetensors_file *file;
    if (safetensors_open(&file, path, strict ? SAFETENSORS_STRICT : 0, message, sizeof message) !=
        MHA_OK) {
        fprintf(stderr, "mha: %s\n", message);
        return false;
    }
    const tensor_list list = {path, file->count, file->data_bytes, file, safetensors_row};
    if (j)
        print_json(j, file, &list);
    else
        print_table(file, &list);
    if (file->warnings)
        fprintf(stderr, "mha: %s: warning: %s%s\n", path, file->warning,
                file->warnings > 1 ? ", and more of the kind" : "");
    safetensors_close(file);
    return true;
}

static bool show(const char *path, bool strict, json *j)
{
    switch (file_kind_at(path)) {
    case FILE_GGUF:
        return tensor_list_show_gguf(path, j);
    case FILE_LLAMA2C:
        return tensor_list_show_llama2c(path, j);
    default:
        return show_safetensors(path, strict, j);
    }
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
        .summary = "Check safetensors, GGUF and llama2.c files and list their tensors.",
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
