/* SPDX-License-Identifier: MIT */
/*
 * The readers of model files when memory allocation (faults.h), file calls (file_faults.h) or
 * mmap() fail. Opening must return the right status with a message and leak nothing. A file that
 * cannot be mapped is read.
 */
#include "format/safetensors.h"
#include "format/weight_source.h"
#include "support/faults.h"
#include "support/file_faults.h"
#include "support/gguf_cases.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ------------------------------------------------------------------ jobs ----- */

static temp_folder folder;

static const char *const jobs[] = {"shards", "x.gguf", "x.bin"};
enum { JOBS = sizeof jobs / sizeof jobs[0] };

/* The path of the files of a job; the shards are in the folder itself. */
static const char *path_of(int job)
{
    return job == 0 ? folder.path : temp_path(&folder, jobs[job]);
}

static void make_files(void)
{
    static const uint64_t shape[] = {2};
    static const float numbers[] = {1, 2};
    static const char index[] =
        "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}";
    const safetensors_item a = {"a", SAFETENSORS_F32, 1, shape, numbers},
                           b = {"b", SAFETENSORS_F32, 1, shape, numbers};
    static const int32_t header[] = {2, 1, 1, 1, 1, 1, 1};
    int32_t model[64] = {0};
    const size_t count = 7 + 2 + 2 + 4 * 4 + 2 + 6 + 2 + 2;
    size_t size;
    unsigned char *const gguf = gguf_case_bytes(&gguf_sample, &size);
    memcpy(model, header, sizeof header);
    folder = temp_folder_new();
    CHECK(file_make(temp_path(&folder, "model.safetensors.index.json"), index, sizeof index - 1) &&
              safetensors_write(temp_path(&folder, "1.safetensors"), &a, 1, NULL, 0, NULL, 0) ==
                  MHA_OK &&
              safetensors_write(temp_path(&folder, "2.safetensors"), &b, 1, NULL, 0, NULL, 0) ==
                  MHA_OK &&
              file_make(temp_path(&folder, "x.gguf"), gguf, size) &&
              file_make(temp_path(&folder, "x.bin"), model, 4 * count),
          "make");
    free(gguf);
}

static mha_status open_and_close(int job, char *message, size_t size)
{
    weight_source *source = NULL;
    const mha_status status = weight_source_open(&source, path_of(job), message, size);
    CHECK((status == MHA_OK) == (source != NULL), "source and status disagree");
    weight_source_close(source);
    return status;
}

/* Runs a job in which request n fails, alone or with all later ones. Returns whether the job made n
 * requests. */
static bool meet_failure(int job, bool memory, bool for_ever, int n)
{
    char message[600] = "";
    file_faults_arm(memory ? 0 : n, for_ever, false);
    faults_arm(MEMORY, memory ? n : 0, for_ever);
    const mha_status status = open_and_close(job, message, sizeof message);
    faults_disarm();
    file_faults_disarm();
    const bool met = (memory ? faults_requests(MEMORY) : file_faults_calls()) >= n;
    const mha_status wanted = memory && met        ? MHA_ERR_MEMORY
                              : file_faults_lost() ? MHA_ERR_FILE
                                                   : MHA_OK;
    CHECK(status == wanted, "%s, request %d: %s", jobs[job], n, mha_status_string(status));
    CHECK((status == MHA_OK) == (message[0] == 0), "%s, request %d: message \"%s\"", jobs[job], n,
          message);
    CHECK(faults_left(MEMORY) == 0 && file_faults_left() == 0,
          "%s, request %d: %d blocks, %d files left", jobs[job], n, faults_left(MEMORY),
          file_faults_left());
    return met;
}

static void every_request_fails(void)
{
    for (int round = 0; round < JOBS * 8; round++) {
        const int job = round / 8;
        const bool memory = round % 2 > 0, for_ever = round % 4 > 1;
        int n = 1;
        file_faults_refuse_maps(round % 8 >= 4);
        while (n < 1000 && meet_failure(job, memory, for_ever, n))
            n++;
        file_faults_refuse_maps(false);
        CHECK(n > 2, "%s makes no requests: are the wrappers linked?", jobs[job]);
    }
}

static void read_instead_of_mapped(void)
{
    for (int job = 0; job < JOBS; job++) {
        char message[600] = "";
        weight_source *source;
        file_faults_refuse_maps(true);
        file_faults_arm(0, false, true); /* a few bytes at a time, with interruptions */
        const mha_status status =
            weight_source_open(&source, path_of(job), message, sizeof message);
        file_faults_disarm();
        file_faults_refuse_maps(false);
        if (!CHECK(status == MHA_OK, "%s", message))
            continue;
        weight_source *mapped;
        CHECK(weight_source_open(&mapped, path_of(job), NULL, 0) == MHA_OK, "mapped");
        CHECK(weight_source_count(source) == weight_source_count(mapped), "count");
        for (size_t n = 0; n < weight_source_count(source); n++) {
            const weight_tensor *const a = weight_source_at(source, n), *const b = weight_source_at(
                                                                            mapped, n);
            weight_source_release(source, a); /* does nothing */
            CHECK(strcmp(a->name, b->name) == 0 && a->bytes == b->bytes &&
                      memcmp(a->data, b->data, (size_t)a->bytes) == 0,
                  "%s", a->name);
        }
        weight_source_close(mapped);
        weight_source_close(source);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    make_files();
    RUN(every_request_fails);
    RUN(read_instead_of_mapped);
    temp_folder_free(&folder);
    return test_end();
}
