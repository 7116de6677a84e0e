/* SPDX-License-Identifier: MIT */
/* Damaged folders of models that read scenes (scene_folder.h). */
#include "support/scene_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_files.h"
#include "support/test.h"

static void expect_refused(const scene_model_kind *kind, const char *folder, const char *reason)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    scene_model *const m = scene_model_load(kind, folder, MHA_EXACT, NULL, message);
    CHECK(m == NULL && strstr(message, reason), "\"%s\": %s", reason, m ? "accepted" : message);
    scene_model_free(m);
}

/* Where `old` begins; `size` if it is not there. */
static size_t find(const unsigned char *bytes, size_t size, const char *old)
{
    const size_t length = strlen(old);
    for (size_t at = 0; at + length <= size; at++)
        if (memcmp(bytes + at, old, length) == 0)
            return at;
    return size;
}

static void damage(const scene_model_kind *kind, const char *folder, const folder_damage *d)
{
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, d->file);
    unsigned char *const bytes = file_bytes(path, &size);
    const size_t old = strlen(d->old), new = strlen(d->new), at = find(bytes, size, d->old);
    unsigned char *const changed = malloc(size + new + 1);
    if (CHECK(at < size, "no \"%s\" in %s", d->old, d->file)) {
        memcpy(changed, bytes, at);
        memcpy(changed + at, d->new, new);
        memcpy(changed + at + new, bytes + at + old, size - at - old);
        CHECK(file_make(path, changed, size - old + new), "%s", path);
        expect_refused(kind, folder, d->reason);
        CHECK(file_make(path, bytes, size), "%s", path);
    }
    free(changed);
    free(bytes);
}

void scene_folder_damages(const scene_model_kind *kind, const char *folder,
                          const folder_damage *list, size_t count)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    for (size_t n = 0; n < count; n++)
        damage(kind, folder, &list[n]);
    scene_model *const m = scene_model_load(kind, folder, MHA_EXACT, NULL, message);
    CHECK(m != NULL, "%s", message);
    scene_model_free(m);
}

void scene_folder_cuts(const scene_model_kind *kind, const char *folder)
{
    char path[512];
    size_t size;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unsigned char *const bytes = file_bytes(path, &size);
    for (size_t length = 0; length < size; length += size / 97 + 1) {
        file_make(path, bytes, length);
        expect_refused(kind, folder, "model.safetensors");
    }
    /* The last bytes are a number: infinity. */
    bytes[size - 2] = 0x00;
    bytes[size - 1] = 0x7c;
    file_make(path, bytes, size);
    expect_refused(kind, folder, "is inf");
    remove(path);
    expect_refused(kind, folder, "model.safetensors");
    CHECK(scene_model_is_folder(kind, folder), "config.json is there");
    snprintf(path, sizeof path, "%s/config.json", folder);
    remove(path);
    expect_refused(kind, folder, "config.json");
    CHECK(!scene_model_is_folder(kind, folder), "nothing is there");
    free(bytes);
}

void scene_folder_bytes(const scene_model_kind *kind, const char *folder, int rounds,
                        void (*run)(const scene_model *model))
{
    static const char *const files[] = {"config.json", "preprocessor_config.json",
                                        "model.safetensors"};
    test_random random = {test_seed(8)};
    int accepted = 0;
    for (int n = 0; n < rounds; n++) {
        char path[512], message[TRANSFORMER_MESSAGE_MAX] = "";
        size_t size;
        snprintf(path, sizeof path, "%s/%s", folder, files[n % 3]);
        unsigned char *const bytes = file_bytes(path, &size);
        const size_t most = size < 4000 ? size : 4000;
        const size_t at = (size_t)test_random_below(&random, (int64_t)most);
        const unsigned char kept = bytes[at];
        bytes[at] = (unsigned char)test_random_below(&random, 256);
        file_make(path, bytes, size);
        scene_model *const m = scene_model_load(kind, folder, MHA_EXACT, NULL, message);
        CHECK(m != NULL || *message != '\0', "no reason");
        if (m != NULL && m->config.vision.side <= SCENE_SIDE)
            run(m);
        accepted += m != NULL;
        scene_model_free(m);
        bytes[at] = kept;
        file_make(path, bytes, size);
        free(bytes);
    }
    CHECK(accepted > 0 && accepted < rounds, "%d of %d accepted", accepted, rounds);
}
