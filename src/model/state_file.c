/* SPDX-License-Identifier: MIT */
/*
 * A state as one file. All numbers are little-endian:
 *
 *      bytes
 *      8       "MHASTATE"
 *      8       version of the format
 *      8       fingerprint of the model
 *      8 x 4   sequences, capacity, source_capacity, element type
 *      8       number of caches
 *      16 x    for every sequence its length and the length of its source
 *      4 x     the tokens of all sequences, one after another
 *      ...     every cache, as mha_cache_save_to() writes it
 *      8       FNV-1a of everything before
 */
#include "model/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace_file.h"

static const char magic[8] = "MHASTATE";

enum { VERSION = 2, HEADER_NUMBERS = 7, CHECKSUM_BYTES = 8, SEQUENCES_MAX = 1 << 24 };

typedef struct state_file {
    const char *path;
    char *message;
    size_t message_size;
    int fd, error; /* errno of the first failure */
    uint64_t hash; /* of everything written or read so far */
    uint64_t left; /* reading: bytes of the file that were not read yet */
} state_file;

#define fail(file, status, ...) \
    model_fail((file)->message, (file)->message_size, status, __VA_ARGS__)

static state_file state_file_of(const char *path, char *message, size_t message_size)
{
    const state_file file = {.path = path,
                             .message = message,
                             .message_size = message_size,
                             .fd = -1,
                             .hash = MHAI_FILE_HASH_START};
    return file;
}

static mha_status fail_file(const state_file *file, const char *done)
{
    return fail(file, MHA_ERR_FILE, "%s: cannot be %s: %s", file->path, done,
                strerror(file->error ? file->error : EIO));
}

/* -------------------------------------------------------------------- writing ----- */

static void put(state_file *file, const void *data, size_t count)
{
    file->hash = mhai_file_hash(file->hash, data, count);
    if (!file->error)
        file->error = mhai_file_write(file->fd, data, count);
}

/* For mha_stream. */
static int put_part(void *context, const void *data, size_t count)
{
    state_file *const file = context;
    put(file, data, count);
    return file->error;
}

static void put_number(state_file *file, uint64_t x)
{
    mhai_file_swap(&x, sizeof x, 1);
    put(file, &x, sizeof x);
}

static void put_tokens(state_file *file, const int32_t *tokens, int64_t count)
{
    int32_t part[1024];
    for (int64_t done = 0, some; done < count; done += some) {
        some = count - done < 1024 ? count - done : 1024;
        memcpy(part, tokens + done, (size_t)some * sizeof *part);
        mhai_file_swap(part, sizeof *part, (size_t)some);
        put(file, part, (size_t)some * sizeof *part);
    }
}

static void put_header(state_file *file, const mha_state *state)
{
    put(file, magic, sizeof magic);
    const uint64_t numbers[HEADER_NUMBERS] = {VERSION,
                                              state->model->fingerprint,
                                              (uint64_t)state->sequences,
                                              (uint64_t)state->capacity,
                                              (uint64_t)state->source_capacity,
                                              (uint64_t)state->type,
                                              (uint64_t)state->cache_count};
    for (int n = 0; n < HEADER_NUMBERS; n++)
        put_number(file, numbers[n]);
    for (ptrdiff_t s = 0; s < state->sequences; s++) {
        put_number(file, (uint64_t)state->lengths[s]);
        put_number(file, (uint64_t)state->source_lengths[s]);
    }
    for (ptrdiff_t s = 0; s < state->sequences; s++)
        put_tokens(file, state->tokens + s * state->capacity, state->lengths[s]);
}

static mha_status put_state(state_file *file, const mha_state *state)
{
    const mha_stream stream = {.size = sizeof stream,
                               .write = put_part,
                               .context = file,
                               .name = file->path,
                               .message = file->message,
                               .message_size = file->message_size};
    mha_status status = MHA_OK;
    put_header(file, state);
    for (int n = 0; n < state->cache_count && !status; n++)
        status = mha_cache_save_to(state->caches[n], &stream);
    put_number(file, file->hash);
    return status || !file->error ? status : fail_file(file, "written");
}

static mha_status save(state_file *file, const mha_state *state, char *name, size_t name_size)
{
    file->error = mhai_file_open_new(file->path, name, name_size, &file->fd);
    if (file->error)
        return fail_file(file, "written");
    const mha_status status = put_state(file, state);
    file->error = mhai_file_finish_new(file->fd, name, file->path, status ? ECANCELED : 0);
    return status || !file->error ? status : fail_file(file, "written");
}

mha_status mha_state_save(const mha_state *state, const char *path, char *message,
                          size_t message_size)
{
    if (!state || !path)
        return model_fail(message, message_size, MHA_ERR_NULL, "%s is NULL",
                          state ? "path" : "state");
    state_file file = state_file_of(path, message, message_size);
    const size_t name_size = strlen(path) + MHAI_FILE_SUFFIX;
    char *const name = malloc(name_size);
    const mha_status status = name
                                  ? save(&file, state, name, name_size)
                                  : fail(&file, MHA_ERR_MEMORY, "%s: no memory for its name", path);
    free(name);
    return status;
}

/* -------------------------------------------------------------------- reading ----- */

static mha_status damaged(const state_file *file, const char *what)
{
    return file->error ? fail_file(file, "read")
                       : fail(file, MHA_ERR_FORMAT, "%s: %s", file->path, what);
}

/* False at the end of the file, too. */
static bool get(state_file *file, void *data, size_t count)
{
    if (count > file->left || file->error)
        return false;
    file->left -= count;
    file->error = mhai_file_read(file->fd, data, count);
    if (!file->error)
        file->hash = mhai_file_hash(file->hash, data, count);
    return !file->error;
}

/* For mha_stream. */
static int get_part(void *context, void *data, size_t count)
{
    state_file *const file = context;
    return get(file, data, count) ? 0 : file->error ? file->error : EIO;
}

static bool get_number(state_file *file, uint64_t *x)
{
    if (!get(file, x, sizeof *x))
        return false;
    mhai_file_swap(x, sizeof *x, 1);
    return true;
}

static mha_status get_config(state_file *file, const mha_model *model, mha_state_config *config)
{
    char begin[sizeof magic];
    uint64_t numbers[HEADER_NUMBERS];
    if (!get(file, begin, sizeof begin) || memcmp(begin, magic, sizeof magic) != 0)
        return damaged(file, "is not a state of mha_state_save()");
    for (int n = 0; n < HEADER_NUMBERS; n++)
        if (!get_number(file, &numbers[n]))
            return damaged(file, "ends inside of its header");
    if (numbers[0] != VERSION)
        return damaged(file, "has a version that is not known here");
    if (numbers[1] != model->fingerprint)
        return damaged(file, "belongs to a model of other weights");
    const uint64_t caches = (uint64_t)model->stack[STACK_DECODER].layers *
                            (model->stack[STACK_ENCODER].layers ? 2u : 1u);
    if (numbers[2] == 0 || numbers[2] > SEQUENCES_MAX || numbers[2] > file->left / 16 ||
        numbers[3] == 0 || numbers[3] > INT32_MAX || numbers[4] == 0 || numbers[4] > INT32_MAX ||
        numbers[5] > MHA_I8 || numbers[6] != caches)
        return damaged(file, "has a header with impossible numbers");
    *config = (mha_state_config){.size = sizeof *config,
                                 .sequences = (ptrdiff_t)numbers[2],
                                 .capacity = (ptrdiff_t)numbers[3],
                                 .source_capacity = (ptrdiff_t)numbers[4],
                                 .type = (mha_dtype)numbers[5]};
    return MHA_OK;
}

static mha_status get_lengths(state_file *file, mha_state *state)
{
    uint64_t all = 0;
    for (ptrdiff_t s = 0; s < state->sequences; s++) {
        uint64_t length, source;
        if (!get_number(file, &length) || !get_number(file, &source) ||
            length > (uint64_t)state->capacity || source > (uint64_t)state->source_capacity)
            return damaged(file, "has an impossible length");
        state->lengths[s] = (int64_t)length;
        state->source_lengths[s] = (int64_t)source;
        all += length;
    }
    if (all > file->left / sizeof(int32_t))
        return damaged(file, "ends inside of its tokens");
    const ptrdiff_t words = state->model->files.binding.stack[STACK_DECODER].tokens.outputs;
    for (ptrdiff_t s = 0; s < state->sequences; s++) {
        int32_t *const tokens = state->tokens + s * state->capacity;
        const size_t count = (size_t)state->lengths[s];
        if (!get(file, tokens, count * sizeof *tokens))
            return damaged(file, "ends inside of its tokens");
        mhai_file_swap(tokens, sizeof *tokens, count);
        for (size_t n = 0; n < count; n++)
            if (tokens[n] < 0 || tokens[n] >= words)
                return damaged(file, "has a token that the model does not have");
    }
    return MHA_OK;
}

/* Do the tokens of cache n belong to those of the state? */
static bool same_lengths(const mha_state *state, int n)
{
    const int64_t *const lengths =
        n < state->model->stack[STACK_DECODER].layers ? state->lengths : state->source_lengths;
    for (ptrdiff_t s = 0; s < state->sequences; s++)
        if (mha_cache_length(state->caches[n], s) != lengths[s] ||
            mha_cache_first(state->caches[n], s) != 0)
            return false;
    return true;
}

static mha_status get_caches(state_file *file, const mha_state *state)
{
    mha_stream stream = {.size = sizeof stream,
                         .read = get_part,
                         .context = file,
                         .name = file->path,
                         .message = file->message,
                         .message_size = file->message_size};
    for (int n = 0; n < state->cache_count; n++) {
        const mha_cache_config expected = state_cache_config(state, n);
        stream.bytes = file->left < CHECKSUM_BYTES ? 0 : file->left - CHECKSUM_BYTES;
        const mha_status status = mha_cache_load_from(&state->caches[n], &stream, &expected);
        if (status)
            return status;
        if (!same_lengths(state, n))
            return damaged(file, "has keys and values that do not belong to its tokens");
    }
    return MHA_OK;
}

static mha_status check_hash(state_file *file)
{
    const uint64_t hash = file->hash;
    uint64_t said;
    if (!get_number(file, &said) || said != hash || file->left != 0)
        return damaged(file, "is damaged: its checksum does not agree");
    return MHA_OK;
}

static mha_status load(state_file *file, mha_state **state, const mha_model *model)
{
    struct stat about;
    mha_state_config config;
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &about)) {
        file->error = errno;
        return fail_file(file, "opened");
    }
    if (!S_ISREG(about.st_mode))
        return fail(file, MHA_ERR_FILE, "%s: is not a regular file", file->path);
    file->left = (uint64_t)about.st_size;
    mha_status status = get_config(file, model, &config);
    if (!status && state_allocate(state, model, &config))
        status = fail(file, MHA_ERR_MEMORY, "%s: no memory for the state", file->path);
    if (status || (status = get_lengths(file, *state)) || (status = get_caches(file, *state)))
        return status;
    return check_hash(file);
}

mha_status mha_state_load(mha_state **state, const mha_model *model, const char *path,
                          char *message, size_t message_size)
{
    if (!state)
        return MHA_ERR_NULL;
    *state = NULL;
    if (!model || !path)
        return model_fail(message, message_size, MHA_ERR_NULL, "%s is NULL",
                          model ? "path" : "model");
    if (!model->stack[STACK_DECODER].layers)
        return model_fail(message, message_size, MHA_ERR_FLAG,
                          "the model is an encoder, which has no state");
    state_file file = state_file_of(path, message, message_size);
    mha_state *made = NULL;
    const mha_status status = load(&file, &made, model);
    if (file.fd >= 0)
        close(file.fd);
    if (status) {
        mha_state_free(made);
        return status;
    }
    *state = made;
    return MHA_OK;
}
