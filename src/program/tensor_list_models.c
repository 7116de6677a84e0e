/* SPDX-License-Identifier: MIT */
/*
 * "mha tensors" for GGUF files and models of llama2.c: their metadata, then the tensors by
 * tensor_list.c. An array of metadata, such as the pieces of a tokenizer, can be long: its type,
 * its length and the first elements are printed.
 */
#include "program/tensor_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mha/mha.h>

#include "base/utf8.h"
#include "format/gguf.h"
#include "format/llama2c.h"

enum { FIRST = 8, TEXT_MAX = 60 }; /* elements of an array; columns of a string in the table */

/* ------------------------------------------------------------- GGUF values ----- */

/* Copies a string of the file. Zero bytes and bytes that are not UTF-8 become '?', and a `limit`
 * other than 0 cuts it, between two characters. The caller frees it; NULL if out of memory. */
static char *text_of(gguf_string string, size_t limit)
{
    const size_t end = limit && string.length > limit ? limit : (size_t)string.length;
    char *const text = malloc(end + 4);
    size_t at = 0;
    while (text && at < end) {
        uint32_t c;
        const size_t length = utf8_decode(string.text + at, (size_t)string.length - at, &c);
        if (at + length > end)
            break;
        if (length == 0 || c == 0)
            text[at++] = '?';
        else
            memcpy(text + at, string.text + at, length);
        at += length && c ? length : 0;
    }
    if (text)
        memcpy(text + at, at < string.length ? "..." : "", at < string.length ? 4 : 1);
    return text;
}

/* The string of a scalar, or one of the first of an array. */
static gguf_string string_of(const gguf_pair *pair, uint64_t number)
{
    uint64_t at = 0;
    gguf_string string = gguf_next_string(pair, &at);
    while (number-- > 0)
        string = gguf_next_string(pair, &at);
    return string;
}

static bool is_float(gguf_type type)
{
    return type == GGUF_F32 || type == GGUF_F64;
}

static void print_element(const gguf_pair *pair, uint64_t number)
{
    if (pair->element == GGUF_STRING) {
        char *const text = text_of(string_of(pair, number), TEXT_MAX);
        tensor_list_print_text(text ? text : "", 0);
        free(text);
    } else if (pair->element == GGUF_BOOL) {
        fputs(gguf_array_integer(pair, number) ? "true" : "false", stdout);
    } else if (is_float(pair->element)) {
        printf("%g", gguf_array_number(pair, number));
    } else if (pair->element == GGUF_U64) {
        printf("%" PRIu64, (uint64_t)gguf_array_integer(pair, number));
    } else {
        printf("%" PRId64, gguf_array_integer(pair, number));
    }
}

static void print_pair(const gguf_pair *pair)
{
    char *const key = text_of(pair->key, 0);
    fputs("  ", stdout);
    tensor_list_print_text(key ? key : "", 0);
    fputs(" = ", stdout);
    free(key);
    if (pair->type != GGUF_ARRAY) {
        print_element(pair, 0);
    } else {
        printf("[");
        for (uint64_t n = 0; n < pair->count && n < FIRST; n++) {
            fputs(n ? ", " : "", stdout);
            print_element(pair, n);
        }
        if (pair->count > FIRST)
            printf(", ...] (%" PRIu64 " elements)", pair->count);
        else
            printf("]");
    }
    putchar('\n');
}

static void print_json_element(json *j, const char *key, const gguf_pair *pair, uint64_t number)
{
    if (pair->element == GGUF_STRING) {
        char *const text = text_of(string_of(pair, number), 0);
        json_string(j, key, text ? text : "");
        free(text);
    } else if (pair->element == GGUF_BOOL) {
        json_bool(j, key, gguf_array_integer(pair, number) != 0);
    } else if (is_float(pair->element)) {
        json_number(j, key, gguf_array_number(pair, number));
    } else if (pair->element == GGUF_U64) {
        json_unsigned(j, key, (uint64_t)gguf_array_integer(pair, number));
    } else {
        json_integer(j, key, gguf_array_integer(pair, number));
    }
}

static void print_json_pair(json *j, const gguf_pair *pair)
{
    char *const text = text_of(pair->key, 0);
    const char *const key = text ? text : "";
    if (pair->type != GGUF_ARRAY) {
        print_json_element(j, key, pair, 0);
    } else {
        json_open_object(j, key);
        json_unsigned(j, "count", pair->count);
        json_open_array(j, "first");
        for (uint64_t n = 0; n < pair->count && n < FIRST; n++)
            print_json_element(j, NULL, pair, n);
        json_close(j);
        json_close(j);
    }
    free(text);
}

/* -------------------------------------------------------------------- GGUF ----- */

static tensor_row gguf_row(const void *file, size_t number)
{
    const gguf_tensor *const t = &((const gguf_file *)file)->tensors[number];
    return (tensor_row){.name = t->name,
                        .type = gguf_tensor_type_name(t->ggml_type),
                        .rank = (size_t)t->rank,
                        .shape = t->shape,
                        .bytes = t->bytes};
}

static void begin_object(json *j, const tensor_list *list, const char *format, uint64_t bytes)
{
    json_open_object(j, NULL);
    json_string(j, "file", list->path);
    json_string(j, "format", format);
    json_unsigned(j, "file_bytes", bytes);
    json_unsigned(j, "data_bytes", list->bytes);
    json_open_object(j, "metadata");
}

static void end_object(json *j, const tensor_list *list)
{
    json_close(j);
    tensor_list_print_json(j, list);
    json_close(j);
}

static void list_gguf(const gguf_file *file, const tensor_list *list, json *j)
{
    if (j) {
        begin_object(j, list, "gguf", file->bytes);
        for (size_t n = 0; n < file->pair_count; n++)
            print_json_pair(j, &file->pairs[n]);
        end_object(j, list);
        return;
    }
    tensor_list_print_title(list);
    for (size_t n = 0; n < file->pair_count; n++)
        print_pair(&file->pairs[n]);
    tensor_list_print_table(list);
}

bool tensor_list_show_gguf(const char *path, json *j)
{
    char message[512] = "";
    gguf_file *file;
    if (gguf_open(&file, path, message, sizeof message) != MHA_OK) {
        fprintf(stderr, "mha: %s\n", message);
        return false;
    }
    tensor_list list = {path, file->tensor_count, 0, file, gguf_row};
    for (size_t n = 0; n < file->tensor_count; n++)
        list.bytes += file->tensors[n].bytes;
    list_gguf(file, &list, j);
    gguf_close(file);
    return true;
}

/* ---------------------------------------------------------------- llama2.c ----- */

static tensor_row llama2c_row(const void *file, size_t number)
{
    const llama2c_tensor *const t = &((const llama2c_file *)file)->tensors[number];
    return (tensor_row){.name = t->name,
                        .type = "F32",
                        .rank = (size_t)t->rank,
                        .shape = t->shape,
                        .bytes = 4 * t->shape[0] * (t->rank > 1 ? t->shape[1] : 1)};
}

static void list_llama2c(const llama2c_file *file, const tensor_list *list, json *j)
{
    const struct {
        const char *name; /* as llama2.c names it */
        int32_t value;
    } numbers[] = {{"dim", file->width},
                   {"hidden_dim", file->inner},
                   {"n_layers", file->layers},
                   {"n_heads", file->heads},
                   {"n_kv_heads", file->key_heads},
                   {"vocab_size", file->vocabulary},
                   {"seq_len", file->positions}};
    const size_t count = sizeof numbers / sizeof numbers[0];
    if (j) {
        begin_object(j, list, "llama2.c", file->bytes);
        for (size_t n = 0; n < count; n++)
            json_integer(j, numbers[n].name, numbers[n].value);
        end_object(j, list);
        return;
    }
    tensor_list_print_title(list);
    for (size_t n = 0; n < count; n++)
        printf("  %s = %" PRId32 "\n", numbers[n].name, numbers[n].value);
    tensor_list_print_table(list);
}

bool tensor_list_show_llama2c(const char *path, json *j)
{
    char message[512] = "";
    llama2c_file *file;
    if (llama2c_open(&file, path, message, sizeof message) != MHA_OK) {
        fprintf(stderr, "mha: %s\n", message);
        return false;
    }
    tensor_list list = {path, file->tensor_count, 0, file, llama2c_row};
    for (size_t n = 0; n < file->tensor_count; n++)
        list.bytes += llama2c_row(file, n).bytes;
    list_llama2c(file, &list, j);
    llama2c_close(file);
    return true;
}
