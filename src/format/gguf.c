/* SPDX-License-Identifier: MIT */
/*
 * Opens GGUF files: the header and the pairs of keys and values; gguf_tensors.c reads the tensors,
 * which follow. The file is read once from front to back with a cursor. Every count is compared
 * with the bytes that remain before anything of that size is allocated, so that the memory of a
 * hostile file is at most a few times the file. Strings and numbers stay in the file.
 */
#include "format/gguf_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"

#define REFUSE(c, ...) safetensors_fail((c)->report, MHA_ERR_FORMAT, __VA_ARGS__)

/* ---------------------------------------------------------------- cursor ----- */

uint64_t gguf_load(const unsigned char *bytes, unsigned size)
{
    uint64_t value = 0;
    for (unsigned n = 0; n < size; n++)
        value |= (uint64_t)bytes[n] << 8 * n;
    return value;
}

static uint64_t left(const gguf_cursor *c)
{
    return c->size - c->at;
}

bool gguf_take_u32(gguf_cursor *c, uint32_t *value)
{
    if (left(c) < 4)
        return false;
    *value = (uint32_t)gguf_load(c->bytes + c->at, 4);
    c->at += 4;
    return true;
}

bool gguf_take_u64(gguf_cursor *c, uint64_t *value)
{
    if (left(c) < 8)
        return false;
    *value = gguf_load(c->bytes + c->at, 8);
    c->at += 8;
    return true;
}

bool gguf_take_string(gguf_cursor *c, gguf_string *string)
{
    const uint64_t before = c->at;
    uint64_t length;
    if (!gguf_take_u64(c, &length))
        return false;
    if (length > left(c)) {
        c->at = before;
        return false;
    }
    *string = (gguf_string){(const char *)c->bytes + c->at, length};
    c->at += length;
    return true;
}

int gguf_compare(gguf_string a, gguf_string b)
{
    const uint64_t shorter = a.length < b.length ? a.length : b.length;
    const int order = shorter ? memcmp(a.text, b.text, (size_t)shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

safetensors_shown gguf_show(gguf_string string)
{
    char text[sizeof(safetensors_shown) + 4];
    const size_t room = sizeof text - 1;
    const size_t length = string.length < room ? (size_t)string.length : room;
    if (length)
        memcpy(text, string.text, length);
    text[length] = '\0';
    return safetensors_show(text);
}

/* ---------------------------------------------------------------- values ----- */

unsigned gguf_value_size(gguf_type type)
{
    static const unsigned char sizes[] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2,  [GGUF_I16] = 2,    [GGUF_U32] = 4,
        [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_STRING] = 0, [GGUF_ARRAY] = 0,
        [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};
    return sizes[type];
}

static mha_status cut_value(const gguf_cursor *c, const gguf_pair *pair)
{
    return REFUSE(c, "the file ends within the value of the key \"%s\"", gguf_show(pair->key).text);
}

static mha_status take_type(gguf_cursor *c, const gguf_pair *pair, gguf_type *type)
{
    uint32_t number;
    if (!gguf_take_u32(c, &number))
        return cut_value(c, pair);
    if (number > GGUF_F64)
        return REFUSE(c, "the key \"%s\" has a value of the unknown type %" PRIu32,
                      gguf_show(pair->key).text, number);
    *type = (gguf_type)number;
    return MHA_OK;
}

/* Checks the strings of an array. */
static mha_status take_strings(gguf_cursor *c, const gguf_pair *pair)
{
    gguf_string string;
    if (pair->count > left(c) / 8) /* each has a length of 8 bytes at least */
        return cut_value(c, pair);
    for (uint64_t n = 0; n < pair->count; n++)
        if (!gguf_take_string(c, &string))
            return cut_value(c, pair);
    return MHA_OK;
}

static mha_status take_numbers(gguf_cursor *c, const gguf_pair *pair, unsigned size)
{
    if (pair->count > left(c) / size)
        return cut_value(c, pair);
    if (pair->element == GGUF_BOOL)
        for (uint64_t n = 0; n < pair->count; n++)
            if (c->bytes[c->at + n] > 1)
                return REFUSE(c, "the key \"%s\" has a bool that is neither 0 nor 1",
                              gguf_show(pair->key).text);
    c->at += pair->count * size;
    return MHA_OK;
}

static mha_status take_array_header(gguf_cursor *c, gguf_pair *pair)
{
    const mha_status status = take_type(c, pair, &pair->element);
    if (status != MHA_OK)
        return status;
    if (pair->element == GGUF_ARRAY)
        return REFUSE(c, "the key \"%s\" has an array of arrays, which is not supported",
                      gguf_show(pair->key).text);
    return gguf_take_u64(c, &pair->count) ? MHA_OK : cut_value(c, pair);
}

static mha_status take_value(gguf_cursor *c, gguf_pair *pair)
{
    mha_status status = take_type(c, pair, &pair->type);
    pair->element = pair->type;
    pair->count = 1;
    if (status == MHA_OK && pair->type == GGUF_ARRAY)
        status = take_array_header(c, pair);
    if (status != MHA_OK)
        return status;
    pair->data = c->bytes + c->at;
    if (pair->type == GGUF_STRING) {
        gguf_string string;
        return gguf_take_string(c, &string) ? MHA_OK : cut_value(c, pair);
    }
    const unsigned size = gguf_value_size(pair->element);
    return size ? take_numbers(c, pair, size) : take_strings(c, pair);
}

/* ----------------------------------------------------------------- pairs ----- */

static mha_status take_key(gguf_cursor *c, gguf_pair *pair, uint64_t number)
{
    if (!gguf_take_string(c, &pair->key))
        return REFUSE(c, "the file ends within key %" PRIu64, number);
    const gguf_string key = pair->key;
    if (key.length > GGUF_KEY_MAX)
        return REFUSE(c, "key %" PRIu64 " has %" PRIu64 " bytes; %d are allowed", number,
                      key.length, GGUF_KEY_MAX);
    if (memchr(key.text, '\0', (size_t)key.length) ||
        !mhai_utf8_valid(key.text, (size_t)key.length))
        return REFUSE(c, "key %" PRIu64 " is not UTF-8 text", number);
    return MHA_OK;
}

static int compare_pairs(const void *left_item, const void *right_item)
{
    const gguf_pair_entry *const a = left_item, *const b = right_item;
    return gguf_compare(a->pair->key, b->pair->key);
}

static mha_status sort_pairs(gguf_open_file *f, const gguf_cursor *c)
{
    const size_t count = f->file.pair_count;
    for (size_t n = 0; n < count; n++)
        f->sorted_pairs[n].pair = &f->pairs[n];
    qsort(f->sorted_pairs, count, sizeof *f->sorted_pairs, compare_pairs);
    for (size_t n = 1; n < count; n++)
        if (compare_pairs(&f->sorted_pairs[n - 1], &f->sorted_pairs[n]) == 0)
            return REFUSE(c, "the key \"%s\" occurs twice",
                          gguf_show(f->sorted_pairs[n].pair->key).text);
    return MHA_OK;
}

static mha_status read_pairs(gguf_open_file *f, gguf_cursor *c, uint64_t count)
{
    if (count > left(c) / GGUF_PAIR_MIN)
        return REFUSE(c, "the header announces %" PRIu64 " keys, for which the file is too short",
                      count);
    if (count == 0)
        return MHA_OK;
    f->pairs = calloc((size_t)count, sizeof *f->pairs);
    f->sorted_pairs = malloc((size_t)count * sizeof *f->sorted_pairs);
    if (!f->pairs || !f->sorted_pairs)
        return safetensors_fail(c->report, MHA_ERR_MEMORY, "out of memory for %" PRIu64 " keys",
                                count);
    f->file.pairs = f->pairs;
    for (size_t n = 0; n < count; n++) {
        f->file.pair_count = n + 1;
        mha_status status = take_key(c, &f->pairs[n], n);
        if (status == MHA_OK)
            status = take_value(c, &f->pairs[n]);
        if (status != MHA_OK)
            return status;
    }
    return sort_pairs(f, c);
}

/* ------------------------------------------------------------ whole files ----- */

static mha_status read_version(gguf_open_file *f, gguf_cursor *c)
{
    uint32_t version;
    if (c->size < 4 || memcmp(c->bytes, "GGUF", 4) != 0)
        return REFUSE(c, "not a GGUF file: it does not begin with \"GGUF\"");
    c->at = 4;
    if (!gguf_take_u32(c, &version))
        return REFUSE(c, "the file ends within its header");
    if ((version & 0xffff) == 0 && version != 0)
        return REFUSE(c, "a big-endian GGUF file; only little-endian files are supported");
    if (version == 1)
        return REFUSE(c, "GGUF version 1 is not supported: convert the model again with a current "
                         "version of llama.cpp");
    if (version != 2 && version != 3)
        return REFUSE(c, "GGUF version %" PRIu32 " is unknown; versions 2 and 3 are supported",
                      version);
    f->file.version = version;
    return MHA_OK;
}

static mha_status find_alignment(const gguf_open_file *f, const gguf_cursor *c, uint32_t *alignment)
{
    const gguf_pair *const pair = gguf_find(&f->file, "general.alignment");
    *alignment = GGUF_ALIGNMENT;
    if (!pair)
        return MHA_OK;
    if (pair->type != GGUF_U32)
        return REFUSE(c, "general.alignment is not a u32");
    *alignment = (uint32_t)gguf_load(pair->data, 4);
    if (*alignment == 0 || (*alignment & (*alignment - 1)) != 0)
        return REFUSE(c, "general.alignment is %" PRIu32 ", not a power of two", *alignment);
    return MHA_OK;
}

static mha_status read_file(void *open, const void *bytes, size_t size,
                            const safetensors_report *report)
{
    gguf_open_file *const f = open;
    gguf_cursor c = {bytes, size, 0, report};
    uint64_t tensors = 0, pairs = 0;
    uint32_t alignment = GGUF_ALIGNMENT;
    f->file.bytes = size;
    mha_status status = read_version(f, &c);
    if (status == MHA_OK && (!gguf_take_u64(&c, &tensors) || !gguf_take_u64(&c, &pairs)))
        status = REFUSE(&c, "the file ends within its header");
    if (status == MHA_OK)
        status = read_pairs(f, &c, pairs);
    if (status == MHA_OK)
        status = find_alignment(f, &c, &alignment);
    return status == MHA_OK ? gguf_read_tensors(f, &c, tensors, alignment) : status;
}

static void close_file(void *open)
{
    gguf_open_file *const f = open;
    free(f->pairs);
    free(f->sorted_pairs);
    free(f->tensors);
    free(f->sorted_tensors);
    free(f->names);
    mapped_file_close(&f->map);
    free(f);
}

/* What callers see is the beginning of the open file. */
static const mapped_format format = {sizeof(gguf_open_file), offsetof(gguf_open_file, map),
                                     read_file, close_file};

mha_status gguf_open(gguf_file **file, const char *path, char *message, size_t message_size)
{
    mha_status status;
    *file = mapped_format_open(&format, path, NULL, 0, message, message_size, &status);
    return status;
}

mha_status gguf_open_memory(gguf_file **file, const void *bytes, size_t size, char *message,
                            size_t message_size)
{
    mha_status status;
    *file = mapped_format_open(&format, NULL, bytes, size, message, message_size, &status);
    return status;
}

void gguf_close(gguf_file *file)
{
    if (file)
        close_file(file);
}
