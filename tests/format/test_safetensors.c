/* SPDX-License-Identifier: MIT */
/*
 * Tests of the safetensors reader: every handmade file of safetensors_cases.h is accepted or
 * refused with its message, on disk and in memory; truncated, odd, shrinking, very large and very
 * long files.
 */
#include "format/safetensors.h"
#include "support/safetensors_cases.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- refusal ---- */

/* The message is the path, the name of the rule, and a text that contains that of the case. */
static void check_refused(const st_case *c, const char *path, mha_status status,
                          const safetensors_file *file, const char *message)
{
    char start[600];
    snprintf(start, sizeof start, "%s: %s: ", path, c->rule);
    CHECK(status == MHA_ERR_FORMAT && !file, "%s: %s", c->name, mha_status_string(status));
    CHECK(strncmp(message, start, strlen(start)) == 0, "%s: not %s but \"%s\"", c->name, c->rule,
          message);
    CHECK(strstr(message, c->says), "%s: not \"%s\" but \"%s\"", c->name, c->says, message);
}

static void invalid_files_are_refused(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    CHECK(st_invalid_count >= 60, "only %zu", st_invalid_count);
    for (size_t n = 0; n < st_invalid_count; n++) {
        const st_case *const c = &st_invalid[n];
        size_t size;
        unsigned char *const bytes = st_case_bytes(c, &size);
        char message[600] = "";
        safetensors_file *file = NULL;
        mha_status status = safetensors_open_memory(&file, bytes, size, 0, message, sizeof message);
        check_refused(c, "memory", status, file, message);
        CHECK(file_make(path, bytes, size), "%s", path);
        status = safetensors_open(&file, path, 0, message, sizeof message);
        check_refused(c, path, status, file, message);
        free(bytes);
    }
    temp_folder_free(&folder);
}

static void short_files_are_refused(void)
{
    static const char text[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    unsigned char bytes[8] = {0};
    char message[200];
    safetensors_file *file;
    for (size_t size = 0; size < 8; size++) {
        CHECK(safetensors_open_memory(&file, bytes, size, 0, message, sizeof message) ==
                  MHA_ERR_FORMAT,
              "%zu bytes", size);
        CHECK(strstr(message, ": HeaderTooSmall: "), "%zu bytes: %s", size, message);
    }
    CHECK(safetensors_open_memory(&file, text, sizeof text, 0, message, sizeof message) ==
                  MHA_ERR_FORMAT &&
              strstr(message, "git lfs pull"),
          "a pointer of Git LFS: %s", message);
}

/* Every proper prefix of a valid file is refused. */
static void cut_files_are_refused(void)
{
    for (size_t n = 0; n < st_valid_count; n++) {
        size_t size;
        unsigned char *const bytes = st_case_bytes(&st_valid[n], &size);
        safetensors_file *file;
        for (size_t less = 0; less < size; less++) {
            unsigned char *const part = malloc(less ? less : 1);
            memcpy(part, bytes, less);
            CHECK(safetensors_open_memory(&file, part, less, 0, NULL, 0) == MHA_ERR_FORMAT,
                  "%s, %zu of %zu bytes", st_valid[n].name, less, size);
            free(part);
        }
        free(bytes);
    }
}

static void odd_files(void)
{
    const temp_folder folder = temp_folder_new();
    char message[600] = "";
    safetensors_file *file = NULL;
    CHECK(safetensors_open(&file, temp_path(&folder, "none"), 0, message, sizeof message) ==
                  MHA_ERR_FILE &&
              strstr(message, "cannot be opened: "),
          "no file: %s", message);
    CHECK(safetensors_open(&file, folder.path, 0, message, sizeof message) == MHA_ERR_FILE &&
              strstr(message, "not a regular file"),
          "a folder: %s", message);
    if (!TEST_WINDOWS) {
        CHECK(mkfifo(temp_path(&folder, "pipe"), 0600) == 0, "mkfifo");
        CHECK(safetensors_open(&file, temp_path(&folder, "pipe"), 0, message, sizeof message) ==
                      MHA_ERR_FILE &&
                  strstr(message, "not a regular file"),
              "a pipe: %s", message);
    }
    CHECK(safetensors_open(NULL, "x", 0, message, sizeof message) == MHA_ERR_NULL, "no place");
    CHECK(safetensors_open(&file, NULL, 0, message, sizeof message) == MHA_ERR_NULL, "no path");
    CHECK(safetensors_open_memory(&file, NULL, 1, 0, NULL, 0) == MHA_ERR_NULL, "no bytes");
    safetensors_close(NULL);
    temp_folder_free(&folder);
}

/* Names from a file are shortened in messages and cannot send control characters to a terminal;
 * messages are terminated within the given size. */
static void names_in_messages(void)
{
    char header[700], message[300];
    safetensors_file *file;
    size_t size;
    for (size_t length = 40; length < 70; length++) {
        char name[200] = "";
        size_t used = 0;
        for (size_t n = 0; n < length; n++)
            used += (size_t)snprintf(name + used, sizeof name - used, "%s",
                                     n % 3 == 0   ? "\xc3\xa9"
                                     : n % 3 == 1 ? "\xc2\x9b"
                                                  : "\x7f");
        snprintf(header, sizeof header, "{\"%s\":null}", name);
        unsigned char *const bytes = st_bytes(header, strlen(header), 0, 0, &size);
        CHECK(safetensors_open_memory(&file, bytes, size, 0, message, sizeof message) ==
                  MHA_ERR_FORMAT,
              "refused");
        CHECK(!strstr(message, "\xc2\x9b") && !strchr(message, '\x7f') && strlen(message) < 150,
              "%s", message);
        char *const quote = strrchr(message, '"');
        CHECK(quote && quote - message > 3 && memcmp(quote - 3, "...", 3) == 0, "%s", message);
        memset(message, '#', sizeof message);
        CHECK(safetensors_open_memory(&file, bytes, size, 0, message, length) == MHA_ERR_FORMAT,
              "refused");
        CHECK(memchr(message, 0, length) && message[length] == '#', "no end in %zu bytes", length);
        free(bytes);
    }
}

/* ------------------------------------------------------------- acceptance ---- */

static void valid_files_are_accepted(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    for (size_t n = 0; n < st_valid_count; n++) {
        const st_case *const c = &st_valid[n];
        size_t size;
        unsigned char *const bytes = st_case_bytes(c, &size);
        char message[600] = "";
        safetensors_file *file = NULL;
        CHECK(file_make(path, bytes, size), "%s", path);
        CHECK(safetensors_open(&file, path, 0, message, sizeof message) == MHA_OK && file, "%s: %s",
              c->name, message);
        if (file) {
            CHECK(file->data_bytes == c->data && file->header_bytes == size - 8 - c->data,
                  "%s: sizes", c->name);
            CHECK((file->warnings > 0) == (c->says != NULL), "%s: %zu warnings", c->name,
                  file->warnings);
            CHECK(!c->says || strstr(file->warning, c->says), "%s: %s", c->name, file->warning);
        }
        safetensors_close(file);
        const mha_status strict =
            safetensors_open(&file, path, SAFETENSORS_STRICT, message, sizeof message);
        CHECK(strict == (c->says ? MHA_ERR_FORMAT : MHA_OK), "%s: strict: %s", c->name, message);
        safetensors_close(file);
        free(bytes);
    }
    temp_folder_free(&folder);
}

static void what_is_in_a_file(void)
{
    static const char header[] =
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[3,11]},"
        "\"__metadata__\":{\"z\":\"1\",\"\\u0061\":\"\\\"\\n\"},"
        "\"caf\\u00e9\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"s\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[11,13]}}";
    size_t size;
    unsigned char *const bytes = st_bytes(header, sizeof header - 1, 13, 0, &size);
    for (size_t n = 0; n < 13; n++)
        bytes[size - 13 + n] = (unsigned char)(n + 1);
    safetensors_file *file = NULL;
    if (!CHECK(safetensors_open_memory(&file, bytes, size, 0, NULL, 0) == MHA_OK, "open"))
        return;
    CHECK(file->count == 3 && file->pair_count == 2, "counts");
    CHECK(strcmp(file->tensors[0].name, "caf\xc3\xa9") == 0 &&
              strcmp(file->tensors[1].name, "b") == 0 && strcmp(file->tensors[2].name, "s") == 0,
          "in the order of their bytes");
    const safetensors_tensor *const b = safetensors_find(file, "b");
    CHECK(b == &file->tensors[1] && b->type == SAFETENSORS_F32 && b->rank == 2 &&
              b->shape[0] == 1 && b->shape[1] == 2 && b->begin == 3 && b->end == 11,
          "b");
    CHECK(!safetensors_find(file, "c") && !safetensors_find(file, "") &&
              !safetensors_find(file, "__metadata__"),
          "tensors that are not there");
    CHECK(strcmp(file->pairs[0].key, "z") == 0 && strcmp(file->pairs[0].value, "1") == 0 &&
              strcmp(file->pairs[1].key, "a") == 0 && strcmp(file->pairs[1].value, "\"\n") == 0,
          "metadata");
    uint32_t data[2];
    CHECK(safetensors_read(file, b, data, NULL, 0) == MHA_OK && data[0] == 0x07060504 &&
              data[1] == 0x0b0a0908,
          "little-endian, from an odd address");
    safetensors_close(file);
    free(bytes);
}

/* Offsets of more than 32 bits, in a sparse file. */
static void more_than_4_gigabytes(void)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[5000000000],\"data_offsets\":[0,5000000000]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[5000000000,5000000003]}}";
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "large");
    size_t size;
    unsigned char *const bytes = st_bytes(header, sizeof header - 1, 0, 0, &size), data[3] = {0};
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    const bool made = fd >= 0 && write(fd, bytes, size) == (ssize_t)size &&
                      pwrite(fd, "xyz", 3, (off_t)(size + 5000000000)) == 3;
    if (fd >= 0)
        close(fd);
    safetensors_file *file = NULL;
    if (!made) {
        test_skip("the file system has no files that large");
    } else if (CHECK(safetensors_open(&file, path, SAFETENSORS_STRICT, NULL, 0) == MHA_OK,
                     "open")) {
        CHECK(file->data_bytes == 5000000003, "%" PRIu64, file->data_bytes);
        CHECK(safetensors_read(file, safetensors_find(file, "b"), data, NULL, 0) == MHA_OK &&
                  memcmp(data, "xyz", 3) == 0,
              "the last bytes");
    }
    safetensors_close(file);
    free(bytes);
    temp_folder_free(&folder);
}

static void file_that_shrinks(void)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[100],\"data_offsets\":[0,100]}}";
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    size_t size;
    unsigned char *const bytes = st_bytes(header, sizeof header - 1, 100, 0, &size);
    unsigned char data[100];
    char message[300] = "";
    safetensors_file *file = NULL;
    CHECK(file_make(path, bytes, size) && safetensors_open(&file, path, 0, NULL, 0) == MHA_OK,
          "open");
    if (!file)
        return;
    CHECK(truncate(path, (off_t)size - 1) == 0, "truncate");
    CHECK(safetensors_read(file, &file->tensors[0], data, message, sizeof message) ==
                  MHA_ERR_FILE &&
              strstr(message, "shorter"),
          "%s", message);
    safetensors_close(file);
    free(bytes);
    temp_folder_free(&folder);
}

/* 150,000 tensors in reverse order, with names that differ only at their ends: a quadratic
 * algorithm would take minutes. */
static void many_tensors(void)
{
    enum { COUNT = 150000, EACH = 128 };
    char *const header = malloc((size_t)COUNT * EACH);
    size_t used = 0, size;
    for (int n = COUNT - 1; n >= 0; n--)
        used += (size_t)snprintf(
            header + used, EACH,
            "%c\"layers.attention.weight.%06d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":"
            "[%d,%d]}",
            n == COUNT - 1 ? '{' : ',', n, n, n + 1);
    header[used++] = '}';
    unsigned char *const bytes = st_bytes(header, used, COUNT, 0, &size);
    const clock_t start = clock();
    safetensors_file *file = NULL;
    CHECK(safetensors_open_memory(&file, bytes, size, 0, NULL, 0) == MHA_OK, "open");
    for (int n = 0; file && n < COUNT; n++) {
        char name[64];
        snprintf(name, sizeof name, "layers.attention.weight.%06d", n);
        if (!CHECK(safetensors_find(file, name) == &file->tensors[n], "%s", name))
            break;
    }
    safetensors_close(file);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(seconds < 10, "%g s", seconds);
    free(bytes);
    free(header);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(invalid_files_are_refused);
    RUN(short_files_are_refused);
    RUN(cut_files_are_refused);
    RUN(odd_files);
    RUN(names_in_messages);
    RUN(valid_files_are_accepted);
    RUN(what_is_in_a_file);
    RUN(more_than_4_gigabytes);
    RUN(file_that_shrinks);
    RUN(many_tensors);
    return test_end();
}
