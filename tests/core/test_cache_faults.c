/* SPDX-License-Identifier: MIT */
/*
 * Caches and failing memory (faults.h) and files (file_faults.h). Creating, loading and saving must
 * answer with their status, leak nothing, leave the old file as it was and no other beside it. All
 * the rest asks for nothing.
 */
#include "mha/mha.h"
#include "support/faults.h"
#include "support/file_faults.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refuse request `fail_at` for memory, or about a file, and all later ones `for_ever`. */
static void arm(bool memory, int fail_at, bool for_ever)
{
    file_faults_arm(memory ? 0 : fail_at, for_ever, false);
    faults_arm(MEMORY, memory ? fail_at : 0, for_ever);
}

static void disarm(void)
{
    faults_disarm();
    file_faults_disarm();
}

/* ------------------------------------------------------------------ work ----- */

enum { G = 2, D = 4, TOKENS = 40 };

static const mha_cache_config config = {.size = sizeof config,
                                        .kind = MHA_CACHE_PAGED,
                                        .sequences = 3,
                                        .capacity = 100,
                                        .page_tokens = 32,
                                        .G = G,
                                        .D = D,
                                        .v_type = MHA_I8};

static mha_status append(mha_cache *cache, int64_t sequence, float start)
{
    float numbers[TOKENS * G * D];
    for (int n = 0; n < TOKENS * G * D; n++)
        numbers[n] = start + (float)n;
    const mha_view view = mha_view_blhd(numbers, G, TOKENS, D);
    return mha_cache_append(cache, 1, &sequence, TOKENS, NULL, view, MHA_F32, view, MHA_F32);
}

static mha_cache *good_cache(void)
{
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK && append(cache, 1, 1) == MHA_OK, "create");
    return cache;
}

/* Jobs work on `cache` and the file at `path`. */
typedef mha_status (*job)(mha_cache *cache, const char *path);

static mha_status create(mha_cache *cache, const char *path)
{
    mha_cache *made = cache;
    (void)path;
    const mha_status status = mha_cache_create(&made, &config);
    CHECK((status == MHA_OK) == (made != NULL), "cache and status disagree");
    mha_cache_free(made);
    return status;
}

static mha_status load(mha_cache *cache, const char *path)
{
    mha_cache *made = cache;
    const mha_status status = mha_cache_load(&made, path, NULL, 0);
    CHECK((status == MHA_OK) == (made != NULL), "cache and status disagree");
    mha_cache_free(made);
    return status;
}

static mha_status save(mha_cache *cache, const char *path)
{
    char message[300] = "";
    const mha_status status = mha_cache_save(cache, path, message, sizeof message);
    CHECK((status == MHA_OK) == (message[0] == 0), "message \"%s\"", message);
    return status;
}

static const struct {
    const char *name;
    job job;
} jobs[] = {{"create", create}, {"load", load}, {"save", save}};
enum { JOBS = sizeof jobs / sizeof jobs[0] };

/* ----------------------------------------------------------------- tests ----- */

/* The file is one of those that were saved, whole: the old one, or the new one after a success. */
static void file_is_whole(const temp_folder *folder, const char *when, const unsigned char *old,
                          size_t size)
{
    size_t now_size = 0;
    unsigned char *const now = file_bytes(temp_path(folder, "cache"), &now_size);
    CHECK(now && now_size == size && memcmp(now, old, size) == 0, "%s: the old file is gone", when);
    CHECK(temp_folder_count(folder) == 1, "%s: %d files are left", when, temp_folder_count(folder));
    free(now);
}

/* Refuse request n; returns whether there was one. */
static bool meet_failure(int which, bool memory, bool for_ever, int n, mha_cache *cache,
                         const temp_folder *folder)
{
    const char *const path = temp_path(folder, "cache");
    arm(memory, n, for_ever);
    const mha_status status = jobs[which].job(cache, path);
    disarm();
    const bool met = (memory ? faults_requests(MEMORY) : file_faults_calls()) >= n;
    const mha_status wanted = memory && met        ? MHA_ERR_MEMORY
                              : file_faults_lost() ? MHA_ERR_FILE
                                                   : MHA_OK;
    CHECK(status == wanted, "%s, request %d: %s", jobs[which].name, n, mha_status_string(status));
    CHECK(faults_left(MEMORY) == 0 && file_faults_left() == 0,
          "%s, request %d: %d blocks, %d files left", jobs[which].name, n, faults_left(MEMORY),
          file_faults_left());
    return met;
}

static void every_request_fails(void)
{
    const temp_folder folder = temp_folder_new();
    mha_cache *const cache = good_cache();
    CHECK(save(cache, temp_path(&folder, "cache")) == MHA_OK, "save");
    size_t size = 0;
    unsigned char *const old = file_bytes(temp_path(&folder, "cache"), &size);
    CHECK(append(cache, 0, 7) == MHA_OK, "append");
    for (int which = 0; which < JOBS; which++)
        for (int round = 0; round < 4; round++) {
            const bool memory = round % 2 > 0, for_ever = round > 1;
            int n = 1;
            while (n < 1000 && meet_failure(which, memory, for_ever, n, cache, &folder)) {
                file_is_whole(&folder, jobs[which].name, old, size);
                n++;
            }
            CHECK(n > 2 || (jobs[which].job == create && !memory),
                  "%s asks for nothing: are the wraps linked?", jobs[which].name);
            CHECK(file_make(temp_path(&folder, "cache"), old, size), "the old file again");
        }
    free(old);
    mha_cache_free(cache);
    temp_folder_free(&folder);
}

static void slow_files(void)
{
    const temp_folder folder = temp_folder_new();
    mha_cache *const cache = good_cache();
    size_t size = 0, slow_size = 0;
    CHECK(save(cache, temp_path(&folder, "cache")) == MHA_OK, "save");
    unsigned char *const quick = file_bytes(temp_path(&folder, "cache"), &size);
    file_faults_arm(0, false, true);
    const mha_status saved = save(cache, temp_path(&folder, "cache"));
    const mha_status loaded = load(cache, temp_path(&folder, "cache"));
    disarm();
    unsigned char *const slow = file_bytes(temp_path(&folder, "cache"), &slow_size);
    CHECK(saved == MHA_OK && loaded == MHA_OK, "%s, %s", mha_status_string(saved),
          mha_status_string(loaded));
    CHECK(size == slow_size && memcmp(quick, slow, size) == 0, "another file");
    free(quick);
    free(slow);
    mha_cache_free(cache);
    temp_folder_free(&folder);
}

/* What changes a cache needs no memory. */
static void the_rest_asks_for_nothing(void)
{
    mha_cache *const cache = good_cache();
    const mha_rope rope = {.pairs = MHA_ROPE_HALVES};
    static const int64_t parents[] = {2, 1, 1};
    float k[G * D];
    const mha_out out = mha_out_blhd(k, G, 1, D), none = {0};
    arm(true, 1, false);
    CHECK(append(cache, 2, 3) == MHA_OK, "append");
    CHECK(mha_cache_fork(cache, 0, 1) == MHA_OK, "fork");
    CHECK(mha_cache_copy(cache, 0, 2, 3, 30) == MHA_OK, "copy");
    CHECK(mha_cache_shift(cache, 0, 1, 20, &rope, 5) == MHA_OK, "shift");
    CHECK(mha_cache_remove(cache, 0, 1, 20) == MHA_OK, "remove");
    CHECK(mha_cache_reorder(cache, parents) == MHA_OK, "reorder");
    CHECK(mha_cache_read(cache, 1, 0, 1, out, none) == MHA_OK, "read");
    CHECK(mha_cache_truncate(cache, 1, 0) == MHA_OK, "truncate");
    disarm();
    CHECK(faults_requests(MEMORY) == 0, "%d requests", faults_requests(MEMORY));
    mha_cache_free(cache);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_request_fails);
    RUN(slow_files);
    RUN(the_rest_asks_for_nothing);
    return test_end();
}
