/* SPDX-License-Identifier: MIT */
/*
 * Reader of llama2.c's model files (llama2c.h). A file is a header and then parts in a fixed order:
 * a part is one tensor, or one tensor per layer. The order of each version is a table; the length
 * of the file is computed from it and compared before anything is allocated.
 */
#include "format/llama2c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/mapped_file.h"
#include "format/safetensors.h"

enum { NUMBERS = 7, HEADER_0 = 4 * NUMBERS, HEADER_1 = 256, MAGIC = 0x616b3432, PARTS_MAX = 13 };

typedef struct open_file {
    llama2c_file file; /* what callers see; the first member */
    mapped_file map;
    llama2c_tensor *tensors;
    const unsigned char *bytes;
    uint64_t header; /* bytes of it */
    uint64_t head;   /* width of a head */
    int version;
    const safetensors_report *report;
} open_file;

#define REFUSE(f, ...) safetensors_fail((f)->report, MHA_ERR_FORMAT, __VA_ARGS__)

/* ---------------------------------------------------------------- header ----- */

static int32_t number_at(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24);
}

static mha_status cut_header(const open_file *f)
{
    return REFUSE(f, "not a model of llama2.c: the file ends within its header");
}

static mha_status check_numbers(open_file *f)
{
    const llama2c_file *const m = &f->file;
    if (m->width <= 0 || m->inner <= 0 || m->layers <= 0 || m->heads <= 0 || m->key_heads <= 0 ||
        m->vocabulary <= 0 || m->positions <= 0)
        return REFUSE(f, "not a model of llama2.c: a number of its header is not positive");
    if (m->width % m->heads != 0 || m->width / m->heads % 2 != 0 || m->heads % m->key_heads != 0)
        return REFUSE(f,
                      "not a model of llama2.c: %" PRId32 " heads with %" PRId32
                      " key heads do not fit the width %" PRId32,
                      m->heads, m->key_heads, m->width);
    f->head = (uint64_t)(m->width / m->heads);
    return MHA_OK;
}

/* Version 0 has a negative vocabulary size if the output has a matrix of its own. */
static mha_status read_numbers(open_file *f, const unsigned char *at)
{
    llama2c_file *const m = &f->file;
    int32_t *const numbers[NUMBERS] = {&m->width,     &m->inner,      &m->layers,   &m->heads,
                                       &m->key_heads, &m->vocabulary, &m->positions};
    for (int n = 0; n < NUMBERS; n++)
        *numbers[n] = number_at(at + 4 * n);
    if (f->version == 0) {
        m->tied = m->vocabulary > 0;
        if (m->vocabulary < 0 && m->vocabulary > INT32_MIN)
            m->vocabulary = -m->vocabulary;
    }
    return check_numbers(f);
}

static mha_status read_header(open_file *f)
{
    const uint64_t size = f->file.bytes;
    if (size < HEADER_0)
        return cut_header(f);
    f->header = HEADER_0;
    if (number_at(f->bytes) != MAGIC)
        return read_numbers(f, f->bytes);
    f->version = number_at(f->bytes + 4);
    f->header = HEADER_1;
    if (f->version == 2)
        return REFUSE(f, "a model of llama2.c quantized to Q8_0 (version 2); only f32 models "
                         "(versions 0 and 1) are supported");
    if (f->version != 1)
        return REFUSE(f, "a model of llama2.c of the unknown version %d", f->version);
    if (size < HEADER_1)
        return cut_header(f);
    f->file.tied = f->bytes[8 + 4 * NUMBERS] != 0;
    return read_numbers(f, f->bytes + 8);
}

/* ----------------------------------------------------------------- parts ----- */

typedef struct part {
    const char *name; /* NULL: not a tensor of the model */
    bool per_layer;
    uint64_t rows, columns; /* 0 columns: a vector */
} part;

typedef enum part_name {
    END,
    EMBEDDINGS,
    ATTENTION_NORM,
    WQ,
    WK,
    WV,
    WO,
    FFN_NORM,
    W1,
    W2,
    W3,
    NORM,
    ROTATION, /* the tables of cosines and sines that version 0 still has, which no reader needs */
    OUTPUT
} part_name;

static part describe(const open_file *f, part_name which)
{
    const llama2c_file *const m = &f->file;
    const uint64_t width = (uint64_t)m->width, inner = (uint64_t)m->inner;
    const uint64_t keys = f->head * (uint64_t)m->key_heads, words = (uint64_t)m->vocabulary;
    const part parts[] = {[END] = {NULL, false, 0, 0},
                          [EMBEDDINGS] = {"tok_embeddings", false, words, width},
                          [ATTENTION_NORM] = {"attention_norm", true, width, 0},
                          [WQ] = {"wq", true, width, width},
                          [WK] = {"wk", true, keys, width},
                          [WV] = {"wv", true, keys, width},
                          [WO] = {"wo", true, width, width},
                          [FFN_NORM] = {"ffn_norm", true, width, 0},
                          [W1] = {"w1", true, inner, width},
                          [W2] = {"w2", true, width, inner},
                          [W3] = {"w3", true, inner, width},
                          [NORM] = {"norm", false, width, 0},
                          [ROTATION] = {NULL, false, (uint64_t)m->positions, f->head},
                          [OUTPUT] = {"output", false, words, width}};
    return parts[which];
}

/* The order of the parts, without OUTPUT, which is the last one if there is one. */
static const part_name *order_of(int version)
{
    static const part_name orders[2][PARTS_MAX] = {
        {EMBEDDINGS, ATTENTION_NORM, WQ, WK, WV, WO, FFN_NORM, W1, W2, W3, NORM, ROTATION, END},
        {ATTENTION_NORM, FFN_NORM, NORM, EMBEDDINGS, WQ, WK, WV, WO, W1, W2, W3, END, END}};
    return orders[version == 1];
}

static uint64_t elements_of(const part *p)
{
    return p->rows * (p->columns ? p->columns : 1); /* both are less than 2^31 */
}

/* Subtracts the bytes of a part with all its layers from those that are left; false if there are
 * not so many. */
static bool take_part(const open_file *f, part_name which, uint64_t *left)
{
    const part p = describe(f, which);
    const uint64_t copies = p.per_layer ? (uint64_t)f->file.layers : 1;
    const uint64_t bytes = 4 * elements_of(&p), most = copies > 1 ? *left / copies : *left;
    if (bytes > most)
        return false;
    *left -= copies * bytes;
    return true;
}

static mha_status check_length(const open_file *f)
{
    const llama2c_file *const m = &f->file;
    uint64_t left = m->bytes - f->header;
    bool fits = true;
    for (const part_name *at = order_of(f->version); *at != END; at++)
        fits = fits && take_part(f, *at, &left);
    if (!m->tied)
        fits = fits && take_part(f, OUTPUT, &left);
    if (!fits)
        return REFUSE(f,
                      "not a model of llama2.c, or not complete: its header asks for more than the "
                      "%" PRIu64 " bytes of the file",
                      m->bytes);
    if (left != 0)
        return REFUSE(f,
                      "not a model of llama2.c: its header asks for %" PRIu64
                      " bytes, the file has %" PRIu64,
                      m->bytes - left, m->bytes);
    return MHA_OK;
}

/* Adds the tensors of a part and returns the place after them. */
static const unsigned char *place_part(open_file *f, part_name which, const unsigned char *at)
{
    const part p = describe(f, which);
    const int32_t copies = p.per_layer ? f->file.layers : 1;
    for (int32_t n = 0; n < copies; n++, at += 4 * elements_of(&p)) {
        if (!p.name)
            continue;
        llama2c_tensor *const t = &f->tensors[f->file.tensor_count++];
        if (p.per_layer)
            snprintf(t->name, sizeof t->name, "layers.%" PRId32 ".%s", n, p.name);
        else
            snprintf(t->name, sizeof t->name, "%s", p.name);
        t->rank = p.columns ? 2 : 1;
        t->shape[0] = p.rows;
        t->shape[1] = p.columns;
        t->data = at;
    }
    return at;
}

static mha_status place_tensors(open_file *f)
{
    /* The file has more bytes than that for each layer. */
    const size_t count = 9 * (size_t)f->file.layers + 2 + !f->file.tied;
    f->tensors = calloc(count, sizeof *f->tensors);
    if (!f->tensors)
        return safetensors_fail(f->report, MHA_ERR_MEMORY, "out of memory for %zu tensors", count);
    f->file.tensors = f->tensors;
    const unsigned char *at = f->bytes + f->header;
    for (const part_name *which = order_of(f->version); *which != END; which++)
        at = place_part(f, *which, at);
    if (!f->file.tied)
        place_part(f, OUTPUT, at);
    return MHA_OK;
}

/* ----------------------------------------------------------------- files ----- */

bool llama2c_begins(const void *bytes, uint64_t size)
{
    const safetensors_report silent = {"", NULL, 0};
    open_file f = {.file = {.bytes = size}, .bytes = bytes, .report = &silent};
    if (size >= 4 && number_at(bytes) == MAGIC)
        return true;
    return read_header(&f) == MHA_OK && check_length(&f) == MHA_OK;
}

static mha_status read_file(void *open, const void *bytes, size_t size,
                            const safetensors_report *report)
{
    open_file *const f = open;
    f->bytes = bytes;
    f->file.bytes = size;
    f->report = report;
    mha_status status = read_header(f);
    if (status == MHA_OK)
        status = check_length(f);
    if (status == MHA_OK)
        status = place_tensors(f);
    f->report = NULL;
    return status;
}

static void close_file(void *open)
{
    open_file *const f = open;
    free(f->tensors);
    mapped_file_close(&f->map);
    free(f);
}

static const mapped_format format = {sizeof(open_file), offsetof(open_file, map), read_file,
                                     close_file};

mha_status llama2c_open(llama2c_file **file, const char *path, char *message, size_t message_size)
{
    mha_status status;
    *file = mapped_format_open(&format, path, NULL, 0, message, message_size, &status);
    return status;
}

mha_status llama2c_open_memory(llama2c_file **file, const void *bytes, size_t size, char *message,
                               size_t message_size)
{
    mha_status status;
    *file = mapped_format_open(&format, NULL, bytes, size, message, message_size, &status);
    return status;
}

void llama2c_close(llama2c_file *file)
{
    if (file)
        close_file(file);
}
