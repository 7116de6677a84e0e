/* SPDX-License-Identifier: MIT */
/* Finds pairs and tensors of GGUF files by binary search, and reads values, which have any
 * alignment in the file. */
#include "format/gguf_parts.h"

#include <string.h>

/* What callers see is the first member of the open file. */
static const gguf_open_file *owner(const gguf_file *file)
{
    return (const gguf_open_file *)file;
}

const gguf_pair *gguf_find(const gguf_file *file, const char *key)
{
    const gguf_string wanted = {key, strlen(key)};
    const gguf_pair_entry *const sorted = owner(file)->sorted_pairs;
    size_t low = 0, high = file->pair_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = gguf_compare(sorted[middle].pair->key, wanted);
        if (order == 0)
            return sorted[middle].pair;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const gguf_tensor *gguf_find_tensor(const gguf_file *file, const char *name)
{
    const gguf_tensor_entry *const sorted = owner(file)->sorted_tensors;
    size_t low = 0, high = file->tensor_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(sorted[middle].tensor->name, name);
        if (order == 0)
            return sorted[middle].tensor;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---------------------------------------------------------------- values ----- */

static bool is_integer(gguf_type type)
{
    return type <= GGUF_I32 || type == GGUF_U64 || type == GGUF_I64;
}

static bool is_signed(gguf_type type)
{
    return type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64;
}

static uint64_t bits_at(const gguf_pair *pair, uint64_t number)
{
    const unsigned size = gguf_value_size(pair->element);
    return gguf_load((const unsigned char *)pair->data + number * size, size);
}

/* The value of an integer element; one above INT64_MAX becomes negative. */
static int64_t integer_at(const gguf_pair *pair, uint64_t number)
{
    const unsigned unused = 64 - 8 * gguf_value_size(pair->element);
    const uint64_t bits = bits_at(pair, number);
    /* An arithmetic shift extends the sign. */
    return is_signed(pair->element) ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

static double number_at(const gguf_pair *pair, uint64_t number)
{
    const uint64_t bits = bits_at(pair, number);
    if (pair->element == GGUF_F64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (pair->element == GGUF_F32) {
        const uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        return value;
    }
    return pair->element == GGUF_U64 ? (double)bits : (double)integer_at(pair, number);
}

bool gguf_get_integer(const gguf_file *file, const char *key, int64_t *value)
{
    const gguf_pair *const pair = gguf_find(file, key);
    if (!pair || !is_integer(pair->type))
        return false;
    if (pair->type == GGUF_U64 && bits_at(pair, 0) > INT64_MAX)
        return false;
    *value = integer_at(pair, 0);
    return true;
}

bool gguf_get_number(const gguf_file *file, const char *key, double *value)
{
    const gguf_pair *const pair = gguf_find(file, key);
    if (!pair || !(is_integer(pair->type) || pair->type == GGUF_F32 || pair->type == GGUF_F64))
        return false;
    *value = number_at(pair, 0);
    return true;
}

bool gguf_get_bool(const gguf_file *file, const char *key, bool *value)
{
    const gguf_pair *const pair = gguf_find(file, key);
    if (!pair || pair->type != GGUF_BOOL)
        return false;
    *value = bits_at(pair, 0) != 0;
    return true;
}

static gguf_string string_at(const unsigned char *bytes)
{
    return (gguf_string){(const char *)bytes + 8, gguf_load(bytes, 8)};
}

bool gguf_get_string(const gguf_file *file, const char *key, gguf_string *value)
{
    const gguf_pair *const pair = gguf_find(file, key);
    if (!pair || pair->type != GGUF_STRING)
        return false;
    *value = string_at(pair->data);
    return true;
}

gguf_string gguf_next_string(const gguf_pair *array, uint64_t *at)
{
    const gguf_string string = string_at((const unsigned char *)array->data + *at);
    *at += 8 + string.length;
    return string;
}

int64_t gguf_array_integer(const gguf_pair *array, uint64_t number)
{
    return integer_at(array, number);
}

double gguf_array_number(const gguf_pair *array, uint64_t number)
{
    return number_at(array, number);
}
