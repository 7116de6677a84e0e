/* SPDX-License-Identifier: MIT */
/*
 * The tensors of a model, from any kind of file (weight_source.h). A file is mapped here and given
 * to the reader of its kind as bytes in memory, so that pages can be released whatever the kind.
 * Then its tensors are added to one list. weight_folder.c finds the files of a folder.
 */
#include "format/file_kind.h"
#include "format/weight_source_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/replace_file.h"

/* ------------------------------------------------------------- the tensors ----- */

static mha_status no_memory(const safetensors_report *report)
{
    return safetensors_fail(report, MHA_ERR_MEMORY, "out of memory for the list of tensors");
}

/* Makes room for `more` tensors. */
static bool grow(weight_source *source, size_t more)
{
    size_t needed;
    if (__builtin_add_overflow(source->count, more, &needed))
        return false;
    weight_tensor *const tensors =
        mhai_array_grow(source->tensors, &source->room, needed, sizeof *tensors);
    if (tensors)
        source->tensors = tensors;
    return tensors != NULL;
}

static void add_tensor(weight_source *source, const weight_tensor *tensor)
{
    source->tensors[source->count++] = *tensor;
    source->bytes += tensor->bytes; /* at most the bytes of all files in memory */
}

static bool find_type(safetensors_type type, mha_dtype *result)
{
    static const struct {
        safetensors_type from;
        mha_dtype to;
    } types[] = {{SAFETENSORS_F32, MHA_F32},
                 {SAFETENSORS_F16, MHA_F16},
                 {SAFETENSORS_BF16, MHA_BF16},
                 {SAFETENSORS_F64, MHA_F64}};
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++)
        if (types[n].from == type) {
            *result = types[n].to;
            return true;
        }
    return false;
}

/* Whether the matrices of bytes in a file are blocks of MHA_Q8_0. */
static bool has_blocks(const safetensors_file *file)
{
    for (size_t n = 0; n < file->pair_count; n++)
        if (strcmp(file->pairs[n].key, WEIGHT_BLOCKS) == 0)
            return strcmp(file->pairs[n].value, WEIGHT_BLOCKS_Q8_0) == 0;
    return false;
}

/* Makes a matrix of bytes one of blocks, if it is one. */
static void find_blocks(const safetensors_file *file, const safetensors_tensor *t,
                        weight_tensor *tensor)
{
    enum { ELEMENTS = 32, BYTES = 2 + ELEMENTS }; /* of a block: a scale of f16, then bytes */
    if (t->type != SAFETENSORS_U8 || t->rank != 2 || t->shape[1] % BYTES != 0 || !has_blocks(file))
        return;
    tensor->usable = true;
    tensor->type = MHA_Q8_0;
    tensor->shape[1] = t->shape[1] / BYTES * ELEMENTS;
}

static weight_tensor from_safetensors(const weight_file *file, const safetensors_tensor *t)
{
    const unsigned char *const data =
        file->map.bytes + SAFETENSORS_LENGTH_BYTES + file->safetensors->header_bytes;
    weight_tensor tensor = {.name = t->name,
                            .rank = t->rank < INT_MAX ? (int)t->rank : INT_MAX,
                            .data = data + t->begin,
                            .bytes = t->end - t->begin};
    tensor.usable = find_type(t->type, &tensor.type) && t->rank <= WEIGHT_RANK_MAX;
    for (size_t n = 0; n < t->rank && n < WEIGHT_RANK_MAX; n++)
        tensor.shape[n] = t->shape[n];
    find_blocks(file->safetensors, t, &tensor);
    return tensor;
}

static weight_tensor from_gguf(const gguf_tensor *t)
{
    weight_tensor tensor = {.name = t->name,
                            .usable = t->usable,
                            .type = t->type,
                            .rank = t->rank,
                            .data = t->data,
                            .bytes = t->bytes};
    memcpy(tensor.shape, t->shape, sizeof t->shape);
    return tensor;
}

static weight_tensor from_llama2c(const llama2c_tensor *t)
{
    weight_tensor tensor = {.name = t->name,
                            .usable = true,
                            .type = MHA_F32,
                            .rank = t->rank,
                            .shape = {t->shape[0], t->shape[1]},
                            .data = t->data};
    tensor.bytes = 4 * t->shape[0] * (t->rank > 1 ? t->shape[1] : 1);
    return tensor;
}

static bool add_tensors(weight_source *source, const weight_file *file)
{
    const size_t count = file->safetensors ? file->safetensors->count
                         : file->gguf      ? file->gguf->tensor_count
                                           : file->llama2c->tensor_count;
    if (count == 0)
        return true;
    if (!grow(source, count))
        return false;
    for (size_t n = 0; n < count; n++) {
        const weight_tensor tensor = file->safetensors
                                         ? from_safetensors(file, &file->safetensors->tensors[n])
                                     : file->gguf ? from_gguf(&file->gguf->tensors[n])
                                                  : from_llama2c(&file->llama2c->tensors[n]);
        add_tensor(source, &tensor);
    }
    return true;
}

static int compare_names(const void *left, const void *right)
{
    const weight_entry *const a = left, *const b = right;
    return strcmp(a->tensor->name, b->tensor->name);
}

static mha_status sort_tensors(weight_source *source, const safetensors_report *report)
{
    if (source->count == 0)
        return safetensors_fail(report, MHA_ERR_FORMAT, "there are no tensors");
    source->sorted = malloc(source->count * sizeof *source->sorted);
    if (!source->sorted)
        return no_memory(report);
    for (size_t n = 0; n < source->count; n++)
        source->sorted[n].tensor = &source->tensors[n];
    qsort(source->sorted, source->count, sizeof *source->sorted, compare_names);
    for (size_t n = 1; n < source->count; n++)
        if (compare_names(&source->sorted[n - 1], &source->sorted[n]) == 0)
            return safetensors_fail(report, MHA_ERR_FORMAT, "the tensor \"%s\" is in two files",
                                    safetensors_show(source->sorted[n].tensor->name).text);
    return MHA_OK;
}

/* --------------------------------------------------------------- the files ----- */

/* The readers call bytes in memory "memory"; the message gets the path instead. */
static mha_status pass_on(const safetensors_report *report, mha_status status, const char *text)
{
    static const char name[] = "memory: ";
    const size_t length = sizeof name - 1;
    return safetensors_fail(report, status, "%s",
                            strncmp(text, name, length) == 0 ? text + length : text);
}

static mha_status refuse_split(const weight_file *file, const safetensors_report *report)
{
    int64_t parts;
    if (!gguf_get_integer(file->gguf, "split.count", &parts) || parts <= 1)
        return MHA_OK;
    return safetensors_fail(report, MHA_ERR_FORMAT,
                            "a GGUF file that is split into %" PRId64
                            " parts: merge them with \"llama-gguf-split --merge\"",
                            parts);
}

static mha_status read_kind(weight_file *file, file_kind kind, const safetensors_report *report)
{
    const mapped_file *const map = &file->map;
    char text[512] = "";
    mha_status status;
    switch (kind) {
    case FILE_SAFETENSORS:
        status = safetensors_open_memory(&file->safetensors, map->bytes, map->size, 0, text,
                                         sizeof text);
        break;
    case FILE_GGUF:
        status = gguf_open_memory(&file->gguf, map->bytes, map->size, text, sizeof text);
        if (status == MHA_OK)
            return refuse_split(file, report);
        break;
    case FILE_LLAMA2C:
        status = llama2c_open_memory(&file->llama2c, map->bytes, map->size, text, sizeof text);
        break;
    case FILE_TORCH:
        return safetensors_fail(report, MHA_ERR_FORMAT,
                                "a PyTorch file, which can contain programs and is not read: "
                                "convert the model to safetensors, with "
                                "model.save_pretrained(FOLDER) of the Python library transformers");
    default:
        return safetensors_fail(report, MHA_ERR_FORMAT, "not a safetensors, GGUF or llama2.c file");
    }
    return status == MHA_OK ? MHA_OK : pass_on(report, status, text);
}

/* Maps the file and reads it; FILE_UNKNOWN: the kind is found out. */
static mha_status add_file(weight_source *source, const char *path, file_kind kind,
                           const safetensors_report *outer)
{
    const safetensors_report report = {path, outer->message, outer->size};
    weight_file *const files =
        mhai_array_grow(source->files, &source->file_room, source->file_count + 1, sizeof *files);
    if (!files)
        return no_memory(&report);
    source->files = files;
    weight_file *const file = &files[source->file_count];
    memset(file, 0, sizeof *file);
    mha_status status = mapped_file_open(&file->map, path, report.message, report.size);
    if (status != MHA_OK)
        return status;
    source->file_count++; /* it is closed with the source from here on */
    status =
        read_kind(file, kind ? kind : file_kind_of(file->map.bytes, file->map.size, path), &report);
    if (status == MHA_OK && !add_tensors(source, file))
        status = no_memory(&report);
    return status;
}

mha_status weight_source_add_safetensors(weight_source *source, const char *path,
                                         const safetensors_report *report)
{
    return add_file(source, path, FILE_SAFETENSORS, report);
}

/* -------------------------------------------------------------- interface ----- */

mha_status weight_source_open(weight_source **source, const char *path, char *message,
                              size_t message_size)
{
    const safetensors_report report = {path, message, message_size};
    struct stat about;
    *source = NULL;
    weight_source *const made = calloc(1, sizeof *made);
    if (!made)
        return no_memory(&report);
    const bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    mha_status status = folder ? weight_source_add_folder(made, path, &report)
                               : add_file(made, path, FILE_UNKNOWN, &report);
    if (status == MHA_OK)
        status = sort_tensors(made, &report);
    if (status == MHA_OK)
        *source = made;
    else
        weight_source_close(made);
    return status;
}

void weight_source_close(weight_source *source)
{
    if (!source)
        return;
    for (size_t n = 0; n < source->file_count; n++) {
        safetensors_close(source->files[n].safetensors);
        gguf_close(source->files[n].gguf);
        llama2c_close(source->files[n].llama2c);
        mapped_file_close(&source->files[n].map);
    }
    free(source->files);
    free(source->tensors);
    free(source->sorted);
    free(source);
}

const weight_tensor *weight_source_find(const weight_source *source, const char *name)
{
    size_t low = 0, high = source->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(source->sorted[middle].tensor->name, name);
        if (order == 0)
            return source->sorted[middle].tensor;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t weight_source_count(const weight_source *source)
{
    return source->count;
}

const weight_tensor *weight_source_at(const weight_source *source, size_t number)
{
    return number < source->count ? &source->tensors[number] : NULL;
}

uint64_t weight_source_bytes(const weight_source *source)
{
    return source->bytes;
}

void weight_source_release(const weight_source *source, const weight_tensor *tensor)
{
    const uintptr_t data = (uintptr_t)tensor->data;
    for (size_t n = 0; n < source->file_count; n++) {
        const mapped_file *const map = &source->files[n].map;
        const uintptr_t begin = (uintptr_t)map->bytes;
        if (data >= begin && data - begin < map->size)
            mapped_file_release(map, data - begin, (size_t)tensor->bytes);
    }
}

void weight_source_release_all(const weight_source *source)
{
    for (size_t n = 0; n < source->file_count; n++)
        mapped_file_release(&source->files[n].map, 0, source->files[n].map.size);
}

const gguf_file *weight_source_gguf(const weight_source *source)
{
    return source->files[0].gguf;
}

const llama2c_file *weight_source_llama2c(const weight_source *source)
{
    return source->files[0].llama2c;
}

const safetensors_file *weight_source_safetensors(const weight_source *source)
{
    return source->files[0].safetensors;
}

/* ------------------------------------------------------------------- copies ----- */

bool weight_source_item(const weight_source *source, size_t number, safetensors_item *item)
{
    if (number >= source->count || !source->files[0].safetensors)
        return false;
    const weight_tensor *const tensor = &source->tensors[number];
    size_t f = 0;
    while (number >= source->files[f].safetensors->count)
        number -= source->files[f++].safetensors->count;
    const safetensors_tensor *const t = &source->files[f].safetensors->tensors[number];
    *item = (safetensors_item){
        .name = t->name, .type = t->type, .rank = t->rank, .shape = t->shape, .data = tensor->data};
    return true;
}

static int write_zeros(int fd, uint64_t at, uint64_t count)
{
    static const unsigned char zeros[4096];
    while (count > 0) {
        const size_t most = count < sizeof zeros ? (size_t)count : sizeof zeros;
        const ssize_t wrote = pwrite(fd, zeros, most, (off_t)at);
        if (wrote <= 0 && errno != EINTR)
            return wrote == 0 ? EIO : errno;
        if (wrote > 0) {
            at += (uint64_t)wrote;
            count -= (uint64_t)wrote;
        }
    }
    return 0;
}

static int write_copy(int fd, const mapped_file *map, const weight_range *zeros, size_t count)
{
    int error = mhai_file_write(fd, map->bytes, map->size);
    for (size_t n = 0; n < count && !error; n++) {
        const unsigned char *const data = zeros[n].tensor->data;
        error = write_zeros(fd, (uint64_t)(data - map->bytes) + zeros[n].begin, zeros[n].count);
    }
    return error;
}

mha_status weight_source_copy(const weight_source *source, const char *path,
                              const weight_range *zeros, size_t count, char *message,
                              size_t message_size)
{
    const safetensors_report report = {path, message, message_size};
    const size_t size = strlen(path) + MHAI_FILE_SUFFIX;
    char *const name = malloc(size);
    int fd;
    if (!name)
        return safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory for a name");
    int error = mhai_file_open_new(path, name, size, &fd);
    if (!error)
        error = mhai_file_finish_new(fd, name, path,
                                     write_copy(fd, &source->files[0].map, zeros, count));
    free(name);
    return error ? safetensors_fail_file(&report, "written", error) : MHA_OK;
}
