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
 *      ...     for every cache its bytes (8), then a file as mha_cache_save() writes it
 *      8       FNV-1a of everything before
 *
 * Caches go through files of their own, in a temporary folder beside the file: their layout belongs
 * to libmha.
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

enum { VERSION = 1, HEADER_NUMBERS = 7, BUFFER = 1 << 16, SEQUENCES_MAX = 1 << 24 };

typedef struct state_file {
    const char *path;
    char *message;
    size_t message_size;
    int fd, error; /* errno of the first failure */
    uint64_t hash, left;
    char *folder, *cache; /* the temporary folder, and the file in it */
} state_file;

#define fail(file, status, ...) \
    model_fail((file)->message, (file)->message_size, status, __VA_ARGS__)

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, size_t count)
{
    for (size_t n = 0; n < count; n++)
        hash = (hash ^ bytes[n]) * 0x100000001b3u;
    return hash;
}

static mha_status fail_file(const state_file *file, const char *done)
{
    return fail(file, MHA_ERR_FILE, "%s: cannot be %s: %s", file->path, done,
                strerror(file->error ? file->error : EIO));
}

/* ------------------------------------------------------------ temporary folder ----- */

/* Reading needs only a place for scratch, which is not always beside the file. */
static mha_status folder_open(state_file *file, bool beside)
{
    const char *const system = getenv("TMPDIR");
    const char *const base = beside ? file->path : system && *system ? system : "/tmp";
    const size_t size = strlen(base) + 32;
    file->folder = malloc(size);
    file->cache = malloc(size);
    if (!file->folder || !file->cache)
        return fail(file, MHA_ERR_MEMORY, "%s: no memory for a name", file->path);
    snprintf(file->folder, size, beside ? "%s.XXXXXX" : "%s/mha-state-XXXXXX", base);
    if (!mkdtemp(file->folder)) {
        file->error = errno;
        free(file->folder);
        file->folder = NULL;
        return fail_file(file, beside ? "written" : "unpacked");
    }
    snprintf(file->cache, size, "%s/cache", file->folder);
    return MHA_OK;
}

static void folder_close(state_file *file)
{
    if (file->folder && file->cache) {
        unlink(file->cache);
        rmdir(file->folder);
    }
    free(file->folder);
    free(file->cache);
}

/* -------------------------------------------------------------------- writing ----- */

static void put(state_file *file, const void *data, size_t count)
{
    file->hash = hash_bytes(file->hash, data, count);
    if (!file->error)
        file->error = mhai_file_write(file->fd, data, count);
}

static void put_number(state_file *file, uint64_t x)
{
    mhai_file_swap(&x, sizeof x, 1);
    put(file, &x, sizeof x);
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
        for (int64_t n = 0; n < state->lengths[s]; n++) {
            int32_t token = state->tokens[s * state->capacity + n];
            mhai_file_swap(&token, sizeof token, 1);
            put(file, &token, sizeof token);
        }
}

/* Copies a whole file, after its size. */
static void put_copy(state_file *file, char *buffer)
{
    struct stat about;
    const int from = open(file->cache, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &about)) {
        file->error = file->error ? file->error : errno;
    } else {
        uint64_t left = (uint64_t)about.st_size;
        put_number(file, left);
        while (left > 0 && !file->error) {
            const ssize_t count = read(from, buffer, BUFFER);
            if (count <= 0 || (uint64_t)count > left)
                file->error = count < 0 ? errno : EIO;
            else
                put(file, buffer, (size_t)count);
            left -= file->error ? 0 : (uint64_t)count;
        }
    }
    if (from >= 0)
        close(from);
}

static mha_status put_caches(state_file *file, const mha_state *state, char *buffer)
{
    for (int n = 0; n < state->cache_count; n++) {
        const mha_status status =
            mha_cache_save(state->caches[n], file->cache, file->message, file->message_size);
        if (status)
            return status;
        put_copy(file, buffer);
        unlink(file->cache);
    }
    uint64_t hash = file->hash;
    put_number(file, hash);
    return file->error ? fail_file(file, "written") : MHA_OK;
}

static mha_status save(state_file *file, const mha_state *state, char *name, size_t name_size,
                       char *buffer)
{
    mha_status status = folder_open(file, true);
    if (status)
        return status;
    file->error = mhai_file_open_new(file->path, name, name_size, &file->fd);
    if (file->error)
        return fail_file(file, "written");
    put_header(file, state);
    status = put_caches(file, state, buffer);
    const int error = mhai_file_finish_new(file->fd, name, file->path,
                                           status && !file->error ? EIO : file->error);
    if (!status && error) {
        file->error = error;
        status = fail_file(file, "written");
    }
    return status;
}

mha_status mha_state_save(const mha_state *state, const char *path, char *message,
                          size_t message_size)
{
    if (!state || !path)
        return model_fail(message, message_size, MHA_ERR_NULL, "%s is NULL",
                          state ? "path" : "state");
    state_file file = {.path = path,
                       .message = message,
                       .message_size = message_size,
                       .fd = -1,
                       .hash = 0xcbf29ce484222325u};
    const size_t name_size = strlen(path) + MHAI_FILE_SUFFIX;
    char *const name = malloc(name_size), *const buffer = malloc(BUFFER);
    const mha_status status = name && buffer ? save(&file, state, name, name_size, buffer)
                                             : model_fail(message, message_size, MHA_ERR_MEMORY,
                                                          "%s: no memory for writing", path);
    folder_close(&file);
    free(name);
    free(buffer);
    return status;
}

/* -------------------------------------------------------------------- reading ----- */

static mha_status damaged(const state_file *file, const char *what)
{
    return fail(file, MHA_ERR_FORMAT, "%s: %s", file->path, what);
}

/* False at the end of the file, too. */
static bool get(state_file *file, void *data, size_t count)
{
    char *to = data;
    if (count > file->left)
        return false;
    file->left -= count;
    for (size_t done = 0; done < count;) {
        const ssize_t part = read(file->fd, to + done, count - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        done += (size_t)part;
    }
    file->hash = hash_bytes(file->hash, data, count);
    return true;
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
    for (ptrdiff_t s = 0; s < state->sequences; s++)
        for (int64_t n = 0; n < state->lengths[s]; n++) {
            int32_t *const token = &state->tokens[s * state->capacity + n];
            if (!get(file, token, sizeof *token))
                return damaged(file, "ends inside of its tokens");
            mhai_file_swap(token, sizeof *token, 1);
            if (*token < 0 || *token >= words)
                return damaged(file, "has a token that the model does not have");
        }
    return MHA_OK;
}

/* One cache, through a file of its own. */
static mha_status get_copy(state_file *file, char *buffer)
{
    uint64_t bytes;
    if (!get_number(file, &bytes) || bytes > file->left)
        return damaged(file, "ends inside of its keys and values");
    const int to = open(file->cache, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    file->error = to < 0 ? errno : 0;
    while (bytes > 0 && !file->error) {
        const size_t part = bytes < BUFFER ? (size_t)bytes : BUFFER;
        if (!get(file, buffer, part)) {
            close(to);
            return damaged(file, "ends inside of its keys and values");
        }
        file->error = mhai_file_write(to, buffer, part);
        bytes -= part;
    }
    if (to >= 0 && close(to) && !file->error)
        file->error = errno;
    return file->error ? fail_file(file, "unpacked") : MHA_OK;
}

static bool same_cache(const mha_state *state, int n)
{
    const mha_cache_config want = state_cache_config(state, n);
    const mha_cache_config is = mha_cache_get_config(state->caches[n]);
    const int64_t *const lengths =
        n < state->model->stack[STACK_DECODER].layers ? state->lengths : state->source_lengths;
    if (is.kind != want.kind || is.sequences != want.sequences || is.capacity != want.capacity ||
        is.G != want.G || is.D != want.D || is.Dv != want.Dv || is.k_type != want.k_type ||
        is.v_type != want.v_type)
        return false;
    for (ptrdiff_t s = 0; s < state->sequences; s++)
        if (mha_cache_length(state->caches[n], s) != lengths[s] ||
            mha_cache_first(state->caches[n], s) != 0)
            return false;
    return true;
}

static mha_status get_caches(state_file *file, mha_state *state, char *buffer)
{
    for (int n = 0; n < state->cache_count; n++) {
        mha_status status = get_copy(file, buffer);
        if (!status)
            status =
                mha_cache_load(&state->caches[n], file->cache, file->message, file->message_size);
        if (status)
            return status;
        if (!same_cache(state, n))
            return damaged(file, "has keys and values that do not belong to its tokens");
    }
    const uint64_t hash = file->hash;
    uint64_t said;
    if (!get_number(file, &said) || said != hash || file->left != 0)
        return damaged(file, "is damaged: its checksum does not agree");
    return MHA_OK;
}

static mha_status load(state_file *file, mha_state **state, const mha_model *model, char *buffer)
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
    if (status || (status = get_lengths(file, *state)) || (status = folder_open(file, false)))
        return status;
    return get_caches(file, *state, buffer);
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
    state_file file = {.path = path,
                       .message = message,
                       .message_size = message_size,
                       .fd = -1,
                       .hash = 0xcbf29ce484222325u};
    char *const buffer = malloc(BUFFER);
    mha_state *made = NULL;
    mha_status status = buffer ? load(&file, &made, model, buffer)
                               : model_fail(message, message_size, MHA_ERR_MEMORY,
                                            "%s: no memory for reading", path);
    if (file.fd >= 0)
        close(file.fd);
    folder_close(&file);
    free(buffer);
    if (status) {
        mha_state_free(made);
        return status;
    }
    *state = made;
    return MHA_OK;
}
