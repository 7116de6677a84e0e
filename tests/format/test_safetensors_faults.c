/* SPDX-License-Identifier: MIT */
/*
 * The safetensors reader and writer when memory allocation (faults.h) or file calls (file_faults.h)
 * fail. Opening, reading and writing must return the right status with a message, leak nothing,
 * leave the old file unchanged and leave no temporary file.
 */
#include "format/safetensors.h"
#include "support/faults.h"
#include "support/file_faults.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 40, BYTES = 600 };

static const uint64_t shape[] = {10, BYTES / 10};
static char names[TENSORS][8];
static safetensors_item items[TENSORS];
static const safetensors_pair pairs[] = {{"format", "mha"}, {"k", "v"}};

static void make_items(void)
{
    static unsigned char data[BYTES];
    for (int n = 0; n < BYTES; n++)
        data[n] = (unsigned char)(n * 7);
    for (int n = 0; n < TENSORS; n++) {
        const safetensors_item item = {names[n], SAFETENSORS_I8, 2, shape, data};
        names[n][0] = 't';
        names[n][1] = (char)('0' + n / 10);
        names[n][2] = (char)('0' + n % 10);
        items[n] = item;
    }
}

typedef mha_status (*job)(const char *path, char *message, size_t size);

static mha_status write_all(const char *path, char *message, size_t size)
{
    return safetensors_write(path, items, TENSORS, pairs, 2, message, size);
}

static mha_status open_and_read(const char *path, char *message, size_t size)
{
    unsigned char data[BYTES];
    safetensors_file *file = NULL;
    mha_status status = safetensors_open(&file, path, 0, message, size);
    CHECK((status == MHA_OK) == (file != NULL), "file and status disagree");
    if (file) {
        status = safetensors_read(file, safetensors_find(file, "t07"), data, message, size);
        CHECK(status != MHA_OK || memcmp(data, items[7].data, BYTES) == 0, "other elements");
    }
    safetensors_close(file);
    return status;
}

static const struct {
    const char *name;
    job job;
} jobs[] = {{"write", write_all}, {"read", open_and_read}};
enum { JOBS = sizeof jobs / sizeof jobs[0] };

/* Runs a job in which request n fails, alone or with all later ones. Returns whether the job made n
 * requests. */
static bool meet_failure(int which, bool memory, bool for_ever, int n, const char *path)
{
    char message[600] = "";
    file_faults_arm(memory ? 0 : n, for_ever, false);
    faults_arm(MEMORY, memory ? n : 0, for_ever);
    const mha_status status = jobs[which].job(path, message, sizeof message);
    faults_disarm();
    file_faults_disarm();
    const bool met = (memory ? faults_requests(MEMORY) : file_faults_calls()) >= n;
    const mha_status wanted = memory && met        ? MHA_ERR_MEMORY
                              : file_faults_lost() ? MHA_ERR_FILE
                                                   : MHA_OK;
    CHECK(status == wanted, "%s, request %d: %s", jobs[which].name, n, mha_status_string(status));
    CHECK((status == MHA_OK) == (message[0] == 0), "%s, request %d: message \"%s\"",
          jobs[which].name, n, message);
    CHECK(faults_left(MEMORY) == 0 && file_faults_left() == 0,
          "%s, request %d: %d blocks, %d files left", jobs[which].name, n, faults_left(MEMORY),
          file_faults_left());
    return met;
}

static void every_request_fails(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    CHECK(safetensors_write(path, items, TENSORS, NULL, 0, NULL, 0) == MHA_OK, "write");
    size_t size = 0;
    unsigned char *const old = file_bytes(path, &size);
    for (int round = 0; round < JOBS * 4; round++) {
        const int which = round / 4;
        const bool memory = round % 2 > 0, for_ever = round % 4 > 1;
        int n = 1;
        for (; n < 1000 && meet_failure(which, memory, for_ever, n, path); n++) {
            size_t now_size = 0;
            unsigned char *const now = file_bytes(path, &now_size);
            CHECK(now && now_size == size && memcmp(now, old, size) == 0,
                  "%s, request %d: the old file is gone", jobs[which].name, n);
            CHECK(temp_folder_count(&folder) == 1, "%s, request %d: files left", jobs[which].name,
                  n);
            free(now);
        }
        CHECK(n > 4, "%s makes no requests: are the wrappers linked?", jobs[which].name);
        CHECK(file_make(path, old, size), "the old file again");
    }
    free(old);
    temp_folder_free(&folder);
}

static void slow_files(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    size_t size = 0, slow_size = 0;
    CHECK(write_all(path, NULL, 0) == MHA_OK, "write");
    unsigned char *const quick = file_bytes(path, &size);
    file_faults_arm(0, false, true);
    const mha_status wrote = write_all(path, NULL, 0), got = open_and_read(path, NULL, 0);
    file_faults_disarm();
    unsigned char *const slow = file_bytes(path, &slow_size);
    CHECK(wrote == MHA_OK && got == MHA_OK, "%s, %s", mha_status_string(wrote),
          mha_status_string(got));
    CHECK(size == slow_size && memcmp(quick, slow, size) == 0, "another file");
    free(quick);
    free(slow);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    make_items();
    RUN(every_request_fails);
    RUN(slow_files);
    return test_end();
}
