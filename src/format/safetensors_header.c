/* SPDX-License-Identifier: MIT */
/*
 * Parses and checks the header of a safetensors file; the rules are in safetensors.h.
 *
 * First the JSON is read in one pass, which fills three arrays: tensors, extents of all shapes, and
 * metadata. Then the tensors are sorted by offset and checked: sizes, gaps, overlap and the end of
 * the file. Last an index by name is made. Every function returns MHA_OK or has reported an error;
 * what has been allocated is freed by the caller together with the file.
 */
#include "format/safetensors_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/json_reader.h"

typedef struct parse {
    json_reader json;
    safetensors_open_file *f;
    const safetensors_report *report;
    bool strict;
    size_t tensor_room, extent_room, pair_room; /* allocated elements of the arrays in `f` */
    size_t extent_count;
} parse;

/* ---------------------------------------------------------------- errors ----- */

#define REFUSE(p, rule, ...) safetensors_fail((p)->report, MHA_ERR_FORMAT, rule ": " __VA_ARGS__)

static mha_status no_memory(const parse *p)
{
    return safetensors_fail(p->report, MHA_ERR_MEMORY,
                            "out of memory for a header of %" PRIu64 " bytes",
                            p->f->file.header_bytes);
}

/* Reports the fault after the reader has returned JSON_ERROR. */
static mha_status refuse_json(const parse *p)
{
    const json_reader *const j = &p->json;
    if (j->fault == JSON_MEMORY)
        return no_memory(p);
    if (j->fault == JSON_DUPLICATE)
        return REFUSE(p, "DuplicateKey", "\"%s\" occurs twice in the header",
                      safetensors_show(j->text).text);
    return REFUSE(p, "InvalidHeaderDeserialization", "not JSON at byte %zu of the header: %s",
                  j->position, j->problem);
}

/* Reports a token that is an error or of the wrong kind, which `what` describes. */
static mha_status refuse_token(const parse *p, json_reader_token token, const char *owner,
                               const char *what)
{
    if (token == JSON_ERROR)
        return refuse_json(p);
    return REFUSE(p, "InvalidHeaderDeserialization", "\"%s\": %s", safetensors_show(owner).text,
                  what);
}

/* Something that the format does not describe but that its readers accept: an error if the caller
 * asked for strict reading. */
static mha_status warn(parse *p, const char *owner, const char *what)
{
    safetensors_file *const file = &p->f->file;
    const safetensors_shown shown = safetensors_show(owner);
    if (p->strict)
        return REFUSE(p, "InvalidHeaderDeserialization", "\"%s\": %s", shown.text, what);
    if (file->warnings++ == 0)
        snprintf(file->warning, sizeof file->warning, "\"%s\": %s", shown.text, what);
    return MHA_OK;
}

/* ------------------------------------------------------------- one tensor ----- */

static mha_status read_type(parse *p, safetensors_tensor *tensor)
{
    const json_reader_token token = json_reader_next(&p->json);
    if (token != JSON_STRING)
        return refuse_token(p, token, tensor->name, "dtype is not a string");
    if (safetensors_type_find(p->json.text, &tensor->type))
        return MHA_OK;
    return REFUSE(p, "InvalidHeaderDeserialization", "\"%s\": unknown dtype \"%s\"",
                  safetensors_show(tensor->name).text, safetensors_show(p->json.text).text);
}

static mha_status read_shape(parse *p, safetensors_tensor *tensor)
{
    json_reader_token token = json_reader_next(&p->json);
    uint64_t extent;
    if (token != JSON_ARRAY)
        return refuse_token(p, token, tensor->name, "shape is not an array");
    while ((token = json_reader_next(&p->json)) == JSON_NUMBER) {
        if (!json_reader_integer(&p->json, &extent))
            return refuse_token(p, token, tensor->name,
                                "an extent of the shape is not a whole number below 2^64");
        const mha_status status =
            extent >> 48 ? warn(p, tensor->name, "an extent of the shape is 2^48 or more") : MHA_OK;
        if (status != MHA_OK)
            return status;
        uint64_t *const extents =
            mhai_array_grow(p->f->extents, &p->extent_room, p->extent_count + 1, sizeof *extents);
        if (!extents)
            return no_memory(p);
        p->f->extents = extents;
        extents[p->extent_count++] = extent;
        tensor->rank++;
    }
    if (token != JSON_ARRAY_END)
        return refuse_token(p, token, tensor->name, "shape contains something other than numbers");
    return MHA_OK;
}

static mha_status read_offsets(parse *p, safetensors_tensor *tensor)
{
    static const char wanted[] = "data_offsets are not two whole numbers below 2^64";
    uint64_t *const offsets[] = {&tensor->begin, &tensor->end};
    json_reader_token token = json_reader_next(&p->json);
    if (token != JSON_ARRAY)
        return refuse_token(p, token, tensor->name, "data_offsets is not an array");
    for (int n = 0; n < 2; n++) {
        token = json_reader_next(&p->json);
        if (token != JSON_NUMBER || !json_reader_integer(&p->json, offsets[n]))
            return refuse_token(p, token, tensor->name, wanted);
    }
    token = json_reader_next(&p->json);
    return token == JSON_ARRAY_END ? MHA_OK : refuse_token(p, token, tensor->name, wanted);
}

typedef enum field { FIELD_TYPE, FIELD_SHAPE, FIELD_OFFSETS, FIELDS } field;

static const char *const fields[FIELDS] = {"dtype", "shape", "data_offsets"};

static mha_status read_unknown(parse *p, const char *owner)
{
    const mha_status status = warn(p, owner, "unknown field");
    if (status != MHA_OK)
        return status;
    return json_reader_skip(&p->json) ? MHA_OK : refuse_json(p);
}

static mha_status read_field(parse *p, safetensors_tensor *tensor, unsigned *seen)
{
    static mha_status (*const readers[FIELDS])(parse *, safetensors_tensor *) = {
        read_type, read_shape, read_offsets};
    for (int n = 0; n < FIELDS; n++)
        if (strcmp(p->json.text, fields[n]) == 0) {
            /* The JSON reader finds duplicate keys only at the end of the object; by then two
             * shapes would have been read as one. */
            if (*seen & 1u << n)
                return REFUSE(p, "DuplicateKey", "\"%s\": %s occurs twice",
                              safetensors_show(tensor->name).text, fields[n]);
            *seen |= 1u << n;
            return readers[n](p, tensor);
        }
    return read_unknown(p, tensor->name);
}

static mha_status read_fields(parse *p, safetensors_tensor *tensor)
{
    json_reader_token token = json_reader_next(&p->json);
    unsigned seen = 0;
    if (token != JSON_OBJECT)
        return refuse_token(p, token, tensor->name, "not an object");
    while ((token = json_reader_next(&p->json)) == JSON_KEY) {
        const mha_status status = read_field(p, tensor, &seen);
        if (status != MHA_OK)
            return status;
    }
    if (token != JSON_OBJECT_END)
        return refuse_json(p);
    for (int n = 0; n < FIELDS; n++)
        if (!(seen & 1u << n))
            return REFUSE(p, "InvalidHeaderDeserialization", "\"%s\" has no %s",
                          safetensors_show(tensor->name).text, fields[n]);
    return MHA_OK;
}

static mha_status read_tensor(parse *p)
{
    safetensors_open_file *const f = p->f;
    safetensors_tensor tensor = {.name = p->json.text};
    const mha_status status = read_fields(p, &tensor);
    if (status != MHA_OK)
        return status;
    safetensors_tensor *const tensors =
        mhai_array_grow(f->tensors, &p->tensor_room, f->file.count + 1, sizeof tensor);
    if (!tensors)
        return no_memory(p);
    f->tensors = tensors;
    tensors[f->file.count++] = tensor;
    return MHA_OK;
}

/* -------------------------------------------------------- the whole header ----- */

static mha_status read_pair(parse *p)
{
    safetensors_open_file *const f = p->f;
    const char *const key = p->json.text;
    const json_reader_token token = json_reader_next(&p->json);
    if (token != JSON_STRING)
        return refuse_token(p, token, key, "a value of __metadata__ is not a string");
    const safetensors_pair pair = {key, p->json.text};
    safetensors_pair *const pairs =
        mhai_array_grow(f->pairs, &p->pair_room, f->file.pair_count + 1, sizeof pair);
    if (!pairs)
        return no_memory(p);
    f->pairs = pairs;
    pairs[f->file.pair_count++] = pair;
    return MHA_OK;
}

static mha_status read_metadata(parse *p)
{
    json_reader_token token = json_reader_next(&p->json);
    if (token == JSON_NULL)
        return warn(p, SAFETENSORS_METADATA, "null instead of an object");
    if (token != JSON_OBJECT)
        return refuse_token(p, token, SAFETENSORS_METADATA, "not an object");
    while ((token = json_reader_next(&p->json)) == JSON_KEY) {
        const mha_status status = read_pair(p);
        if (status != MHA_OK)
            return status;
    }
    return token == JSON_OBJECT_END ? MHA_OK : refuse_json(p);
}

static mha_status read_root(parse *p)
{
    json_reader_token token = json_reader_next(&p->json);
    if (token == JSON_ERROR)
        return refuse_json(p);
    if (token != JSON_OBJECT)
        return REFUSE(p, "InvalidHeaderDeserialization", "the header is not an object");
    while ((token = json_reader_next(&p->json)) == JSON_KEY) {
        const bool metadata = strcmp(p->json.text, SAFETENSORS_METADATA) == 0;
        const mha_status status = metadata ? read_metadata(p) : read_tensor(p);
        if (status != MHA_OK)
            return status;
    }
    if (token == JSON_ERROR || json_reader_next(&p->json) != JSON_END)
        return refuse_json(p);
    return MHA_OK;
}

/* Sets the pointers to shapes. The extents are stored in the order in which the tensors were read,
 * and their array does not grow any more. */
static void place_shapes(safetensors_open_file *f)
{
    size_t at = 0;
    for (size_t n = 0; n < f->file.count; n++) {
        f->tensors[n].shape = f->extents ? f->extents + at : NULL;
        at += f->tensors[n].rank;
    }
}

static int compare_offsets(const void *left, const void *right)
{
    const safetensors_tensor *const a = left, *const b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Sorts by offset. Most files are in order already. */
static void sort_tensors(safetensors_open_file *f)
{
    for (size_t n = 1; n < f->file.count; n++)
        if (compare_offsets(&f->tensors[n - 1], &f->tensors[n]) > 0) {
            qsort(f->tensors, f->file.count, sizeof *f->tensors, compare_offsets);
            return;
        }
}

/* Checks a tensor that must begin at offset `begin`. */
static mha_status check_tensor(const parse *p, const safetensors_tensor *tensor, uint64_t begin)
{
    uint64_t bytes = 0;
    if (tensor->begin != begin || tensor->end < begin)
        return REFUSE(p, "InvalidOffset",
                      "\"%s\" has the bytes %" PRIu64 " to %" PRIu64
                      " but should begin at %" PRIu64,
                      safetensors_show(tensor->name).text, tensor->begin, tensor->end, begin);
    switch (safetensors_bytes(tensor->type, tensor->rank, tensor->shape, &bytes)) {
    case MHA_OK:
        break;
    case MHA_ERR_SHAPE:
        return REFUSE(p, "MisalignedSlice", "\"%s\": its elements of %u bits end within a byte",
                      safetensors_show(tensor->name).text, safetensors_type_bits(tensor->type));
    default:
        return REFUSE(p, "ValidationOverflow", "\"%s\": its shape has 2^64 bits or more",
                      safetensors_show(tensor->name).text);
    }
    if (tensor->end - begin != bytes)
        return REFUSE(p, "TensorInvalidInfo",
                      "\"%s\": its shape has %" PRIu64 " bytes, its offsets %" PRIu64,
                      safetensors_show(tensor->name).text, bytes, tensor->end - begin);
    return MHA_OK;
}

/* Checks that the sorted tensors fill the file to its end without gap or overlap. */
static mha_status check_tensors(const parse *p)
{
    const safetensors_file *const file = &p->f->file;
    uint64_t at = 0;
    for (size_t n = 0; n < file->count; n++) {
        const mha_status status = check_tensor(p, &p->f->tensors[n], at);
        if (status != MHA_OK)
            return status;
        at = p->f->tensors[n].end;
    }
    if (at == file->data_bytes)
        return MHA_OK;
    return REFUSE(p, "MetadataIncompleteBuffer",
                  "the tensors have %" PRIu64 " bytes, the file has %" PRIu64 " for them", at,
                  file->data_bytes);
}

static int compare_entries(const void *left, const void *right)
{
    const safetensors_entry *const a = left, *const b = right;
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

/* Makes the index for safetensors_find(), sorted by hash. */
static mha_status make_index(const parse *p)
{
    safetensors_open_file *const f = p->f;
    const size_t count = f->file.count;
    f->index = calloc(count ? count : 1, sizeof *f->index);
    if (!f->index)
        return no_memory(p);
    for (size_t n = 0; n < count; n++) {
        const safetensors_entry entry = {mhai_text_hash(f->tensors[n].name), &f->tensors[n]};
        f->index[n] = entry;
    }
    qsort(f->index, count, sizeof *f->index, compare_entries);
    return MHA_OK;
}

mha_status safetensors_parse(safetensors_open_file *f, unsigned flags,
                             const safetensors_report *report)
{
    const size_t length = (size_t)f->file.header_bytes;
    parse p = {.f = f, .report = report, .strict = flags & SAFETENSORS_STRICT};
    if (!mhai_utf8_valid(f->header, length))
        return REFUSE(&p, "InvalidHeader", "the header is not UTF-8");
    p.json = json_reader_begin(f->header, length);
    mha_status status = read_root(&p);
    json_reader_free(&p.json);
    if (status != MHA_OK)
        return status;
    place_shapes(f);
    sort_tensors(f);
    status = check_tensors(&p);
    if (status == MHA_OK)
        status = make_index(&p);
    f->file.tensors = f->tensors;
    f->file.pairs = f->pairs;
    return status;
}
