/* SPDX-License-Identifier: MIT */
/*
 * Tests of the weight source: every kind of file and folder, shards and their index, names of
 * shards that lead out of the folder, files that are refused with advice, and the release of
 * memory.
 */
#include "format/safetensors.h"
#include "format/weight_source.h"
#include "support/gguf_cases.h"
#include "support/memory_use.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t shape[] = {2, 3}, long_shape[] = {1, 1, 1, 1, 1};
static const float numbers[] = {1, 2, 3, 4, 5, 6};

/* Writes a file with tensors of two rows and three columns. */
static void make_shard(const char *path, const char *const *names, size_t count)
{
    safetensors_item items[4];
    for (size_t n = 0; n < count; n++)
        items[n] = (safetensors_item){names[n], SAFETENSORS_F32, 2, shape, numbers};
    CHECK(safetensors_write(path, items, count, NULL, 0, NULL, 0) == MHA_OK, "write %s", path);
}

static void make_text(const temp_folder *folder, const char *name, const char *text)
{
    CHECK(file_make(temp_path(folder, name), text, strlen(text)), "make %s", name);
}

static void make_index(const temp_folder *folder, const char *map)
{
    char text[600];
    snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":1},\"weight_map\":%s}", map);
    make_text(folder, "model.safetensors.index.json", text);
}

static void expect_refusal(const char *path, mha_status wanted, const char *says)
{
    char message[600] = "";
    weight_source *source = (weight_source *)1;
    const mha_status status = weight_source_open(&source, path, message, sizeof message);
    CHECK(status == wanted && !source, "%s: %s (%s)", says, mha_status_string(status), message);
    CHECK(strstr(message, says), "\"%s\" is not in the message %s", says, message);
}

/* Ends the program if the source is refused. */
static weight_source *open_source(const char *path)
{
    char message[600] = "";
    weight_source *source;
    if (!CHECK(weight_source_open(&source, path, message, sizeof message) == MHA_OK, "%s", message))
        exit(1);
    return source;
}

/* ----------------------------------------------------------------- files ----- */

static void one_safetensors_file(void)
{
    const temp_folder folder = temp_folder_new();
    static const int64_t ids[] = {7};
    static const uint64_t one[] = {1};
    const safetensors_item items[] = {{"w", SAFETENSORS_F32, 2, shape, numbers},
                                      {"half", SAFETENSORS_BF16, 2, shape, numbers},
                                      {"ids", SAFETENSORS_I64, 1, one, ids},
                                      {"deep", SAFETENSORS_F32, 5, long_shape, numbers}};
    /* A file of the cache of huggingface_hub has no suffix. */
    static const char *const names[] = {"x.safetensors", "0f13ac"};
    for (int n = 0; n < 2; n++) {
        const char *const path = temp_path(&folder, names[n]);
        CHECK(safetensors_write(path, items, 4, NULL, 0, NULL, 0) == MHA_OK, "write");
        weight_source *const source = open_source(path);
        const weight_tensor *const w = weight_source_find(source, "w");
        const weight_tensor *const half = weight_source_find(source, "half");
        const weight_tensor *const list = weight_source_find(source, "ids");
        const weight_tensor *const deep = weight_source_find(source, "deep");
        CHECK(w && w->usable && w->type == MHA_F32 && w->rank == 2 && w->shape[0] == 2 &&
                  w->shape[1] == 3 && w->bytes == 24 && memcmp(w->data, numbers, 24) == 0,
              "w");
        CHECK(half && half->usable && half->type == MHA_BF16 && half->bytes == 12, "half");
        CHECK(list && !list->usable && list->bytes == 8, "ids");
        CHECK(deep && !deep->usable && deep->rank == 5, "deep");
        CHECK(weight_source_count(source) == 4 && weight_source_bytes(source) == 24 + 12 + 8 + 4,
              "count and bytes");
        CHECK(!weight_source_find(source, "v") && !weight_source_at(source, 4), "absent");
        CHECK(!weight_source_gguf(source) && !weight_source_llama2c(source), "other kinds");
        weight_source_close(source);
    }
    weight_source_close(NULL);
    temp_folder_free(&folder);
}

static void gguf_files(void)
{
    const temp_folder folder = temp_folder_new();
    size_t size;
    unsigned char *const bytes = gguf_case_bytes(&gguf_sample, &size);
    CHECK(file_make(temp_path(&folder, "x.gguf"), bytes, size), "make");
    weight_source *const source = open_source(temp_path(&folder, "x.gguf"));
    const weight_tensor *const blocks = weight_source_find(source, "blocks");
    const weight_tensor *const plain = weight_source_find(source, "bytes");
    CHECK(blocks && blocks->usable && blocks->type == MHA_Q4_0 && blocks->rank == 2 &&
              blocks->shape[0] == 2 && blocks->shape[1] == 64 && blocks->bytes == 72,
          "blocks");
    CHECK(plain && !plain->usable, "bytes");
    CHECK(weight_source_count(source) == 5, "count");
    CHECK(weight_source_gguf(source) && gguf_find(weight_source_gguf(source), "words"), "gguf");
    weight_source_close(source);
    CHECK(file_make(temp_path(&folder, "x.gguf"), bytes, size - 1), "make");
    expect_refusal(temp_path(&folder, "x.gguf"), MHA_ERR_FORMAT,
                   "x.gguf: the tensor \"scalar\" of 8 bytes");
    make_text(&folder, "y.gguf", "text");
    expect_refusal(temp_path(&folder, "y.gguf"), MHA_ERR_FORMAT, "y.gguf: not a GGUF file");
    free(bytes);
    temp_folder_free(&folder);
}

static void split_gguf(void)
{
    static const char body[] = "\13\0\0\0\0\0\0\0split.count\2\0\0\0\3\0"
                               "\1\0\0\0\0\0\0\0t\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const gguf_case c = {"split", 3, 1, 1, body, sizeof body, 32, 4, NULL};
    const temp_folder folder = temp_folder_new();
    size_t size;
    unsigned char *const bytes = gguf_case_bytes(&c, &size);
    CHECK(file_make(temp_path(&folder, "x.gguf"), bytes, size), "make");
    expect_refusal(temp_path(&folder, "x.gguf"), MHA_ERR_FORMAT,
                   "is split into 3 parts: merge them with \"llama-gguf-split --merge\"");
    free(bytes);
    temp_folder_free(&folder);
}

static void llama2c_files(void)
{
    /* 640 is 0x280: the first bytes are those of a pickle, too. */
    enum { D = 640, COUNT = 7 + 2 * D + 2 * D + D + D * D * 4 + 3 * D + 2 * D };
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "x.bin");
    int32_t *const file = calloc(COUNT, 4);
    const int32_t header[] = {D, 1, 1, 1, 1, 2, 2};
    memcpy(file, header, sizeof header);
    CHECK(file_make(path, file, 4 * (size_t)COUNT), "make");
    weight_source *const source = open_source(path);
    const weight_tensor *const w2 = weight_source_find(source, "layers.0.w2");
    const weight_tensor *const norm = weight_source_find(source, "norm");
    CHECK(w2 && w2->usable && w2->type == MHA_F32 && w2->rank == 2 && w2->shape[0] == D &&
              w2->shape[1] == 1 && w2->bytes == 4 * D,
          "w2");
    CHECK(norm && norm->rank == 1 && norm->bytes == 4 * D, "norm");
    CHECK(weight_source_llama2c(source) && weight_source_llama2c(source)->width == D, "llama2c");
    weight_source_close(source);
    CHECK(file_make(path, file, 4 * (size_t)COUNT - 4), "make");
    expect_refusal(path, MHA_ERR_FORMAT,
                   "x.bin: not a model of llama2.c, or not complete: its header asks for more");
    free(file);
    temp_folder_free(&folder);
}

static void other_files(void)
{
    const temp_folder folder = temp_folder_new();
    expect_refusal(temp_path(&folder, "absent"), MHA_ERR_FILE, "absent: cannot be opened");
    make_text(&folder, "x.bin", "PK\3\4 and the rest of an archive of PyTorch");
    expect_refusal(temp_path(&folder, "x.bin"), MHA_ERR_FORMAT, "convert the model to safetensors");
    make_text(&folder, "x.bin",
              "\x80\2\x8a\nl\xfc\x9c"
              "F and the rest of a pickle");
    expect_refusal(temp_path(&folder, "x.bin"), MHA_ERR_FORMAT, "convert the model to safetensors");
    make_text(&folder, "x.txt", "a text, not a model");
    expect_refusal(temp_path(&folder, "x.txt"), MHA_ERR_FORMAT,
                   "not a safetensors, GGUF or llama2");
    make_text(&folder, "x.safetensors", "");
    expect_refusal(temp_path(&folder, "x.safetensors"), MHA_ERR_FORMAT, "the file is empty");
    make_text(&folder, "x.safetensors", "\2\0\0\0");
    expect_refusal(temp_path(&folder, "x.safetensors"), MHA_ERR_FORMAT,
                   "x.safetensors: HeaderTooSmall");
    make_text(&folder, "x.safetensors",
              "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    expect_refusal(temp_path(&folder, "x.safetensors"), MHA_ERR_FORMAT,
                   "this is a Git LFS pointer, not the file: fetch the file itself with \"git lfs");
    CHECK(file_make(temp_path(&folder, "y.safetensors"), "\2\0\0\0\0\0\0\0{}", 10), "make");
    expect_refusal(temp_path(&folder, "y.safetensors"), MHA_ERR_FORMAT, "there are no tensors");
    expect_refusal("/dev/null", MHA_ERR_FILE, "is not a regular file");
    temp_folder_free(&folder);
}

/* --------------------------------------------------------------- folders ----- */

static void single_folder(void)
{
    const temp_folder folder = temp_folder_new();
    static const char *const names[] = {"a"};
    expect_refusal(folder.path, MHA_ERR_FILE, "the folder has neither model.safetensors nor");
    make_text(&folder, "pytorch_model.bin", "PK");
    expect_refusal(folder.path, MHA_ERR_FORMAT,
                   "the folder has pytorch_model.bin but no model.safetensors: convert");
    make_shard(temp_path(&folder, "model.safetensors"), names, 1);
    make_index(&folder, "{}"); /* not read if there is a single file */
    weight_source *const source = open_source(folder.path);
    CHECK(weight_source_count(source) == 1 && weight_source_find(source, "a"), "tensors");
    weight_source_close(source);
    temp_folder_free(&folder);
}

static void sharded_folder(void)
{
    const temp_folder folder = temp_folder_new();
    static const char *const first[] = {"b", "a"}, *const second[] = {"d", "c"};
    make_shard(temp_path(&folder, "m-1.safetensors"), first, 2);
    make_shard(temp_path(&folder, "m-2.safetensors"), second, 2);
    /* "c" is not in the index, but in a shard. */
    make_index(&folder, "{\"d\":\"m-2.safetensors\",\"a\":\"m-1.safetensors\","
                        "\"b\":\"m-1.safetensors\"}");
    weight_source *const source = open_source(folder.path);
    CHECK(weight_source_count(source) == 4 && weight_source_bytes(source) == 96, "tensors");
    for (char name[] = "a"; name[0] <= 'd'; name[0]++) {
        const weight_tensor *const tensor = weight_source_find(source, name);
        CHECK(tensor && tensor->bytes == 24 && memcmp(tensor->data, numbers, 24) == 0, "%s", name);
    }
    weight_source_close(source);

    static const char *const again[] = {"d", "a"};
    make_shard(temp_path(&folder, "m-2.safetensors"), again, 2);
    expect_refusal(folder.path, MHA_ERR_FORMAT, "the tensor \"a\" is in two files");
    unlink(temp_path(&folder, "m-2.safetensors"));
    expect_refusal(folder.path, MHA_ERR_FILE,
                   "the file \"m-2.safetensors\" of the index cannot be found");
    make_index(&folder, "{\"e\":\"m-1.safetensors\"}");
    expect_refusal(folder.path, MHA_ERR_FORMAT,
                   "the tensor \"e\" is not in \"m-1.safetensors\", as the index says");
    make_text(&folder, "m-3.safetensors", "\377\377\377\377\377\377\377\377");
    make_index(&folder, "{\"e\":\"m-3.safetensors\"}");
    expect_refusal(folder.path, MHA_ERR_FORMAT, "m-3.safetensors: HeaderTooLarge");
    temp_folder_free(&folder);
}

static void wrong_index(void)
{
    const temp_folder folder = temp_folder_new();
    static const char *const names[] = {"a"};
    static const struct {
        const char *map, *says;
    } cases[] = {
        {"{}", "no weight_map with tensors"},
        {"[]", "no weight_map with tensors"},
        {"{\"a\":1}", "the file of the tensor \"a\" in weight_map is not a string"},
        {"{\"a\":\"\"}", "names the file \"\", which is not in the folder"},
        {"{\"a\":\".\"}", "names the file \".\""},
        {"{\"a\":\"..\"}", "names the file \"..\""},
        {"{\"a\":\"../x.safetensors\"}", "names the file \"../x.safetensors\""},
        {"{\"a\":\"/etc/passwd\"}", "names the file \"/etc/passwd\""},
        {"{\"a\":\"x/../m.safetensors\"}", "which is not in the folder"},
        {"{\"a\":\"x\\\\y\"}", "which is not in the folder"},
        {"{\"a\":\"m.safetensors\",\"a\":\"n\"}", "\"a\" occurs twice"},
    };
    make_shard(temp_path(&folder, "m.safetensors"), names, 1);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        make_index(&folder, cases[n].map);
        expect_refusal(folder.path, MHA_ERR_FORMAT, cases[n].says);
    }
    make_text(&folder, "model.safetensors.index.json", "{\"weight_map\":");
    expect_refusal(folder.path, MHA_ERR_FORMAT, "index.json: not JSON at byte 14");
    temp_folder_free(&folder);
}

/* A link to another folder is refused; one inside of the folder is not. */
static void links(void)
{
    if (test_lacks("no links"))
        return;
    const temp_folder folder = temp_folder_new(), other = temp_folder_new();
    static const char *const names[] = {"a"};
    char target[300];
    snprintf(target, sizeof target, "%s/m.safetensors", other.path);
    make_shard(target, names, 1);
    make_index(&folder, "{\"a\":\"link.safetensors\"}");
    CHECK(symlink(target, temp_path(&folder, "link.safetensors")) == 0, "link");
    expect_refusal(folder.path, MHA_ERR_FORMAT, "is a link that leads out of the folder");
    unlink(temp_path(&folder, "link.safetensors"));
    make_shard(temp_path(&folder, "m.safetensors"), names, 1);
    CHECK(symlink("m.safetensors", temp_path(&folder, "link.safetensors")) == 0, "link");
    weight_source_close(open_source(folder.path));
    /* A folder whose name begins in the same way is another folder. */
    unlink(temp_path(&folder, "link.safetensors"));
    snprintf(target, sizeof target, "%s-2", folder.path);
    CHECK(mkdir(target, 0700) == 0, "mkdir");
    snprintf(target, sizeof target, "%s-2/m.safetensors", folder.path);
    make_shard(target, names, 1);
    CHECK(symlink(target, temp_path(&folder, "link.safetensors")) == 0, "link");
    expect_refusal(folder.path, MHA_ERR_FORMAT, "is a link that leads out of the folder");
    unlink(target);
    *strrchr(target, '/') = '\0';
    rmdir(target);
    temp_folder_free(&folder);
    temp_folder_free(&other);
}

/* The cache of huggingface_hub: snapshots/REVISION has links to ../../blobs. */
static void download_cache(void)
{
    if (test_lacks("no links"))
        return;
    const temp_folder folder = temp_folder_new();
    static const char *const names[] = {"a"};
    temp_folder snapshot;
    CHECK(mkdir(temp_path(&folder, "blobs"), 0700) == 0 &&
              mkdir(temp_path(&folder, "snapshots"), 0700) == 0 &&
              mkdir(temp_path(&folder, "snapshots/1f0"), 0700) == 0,
          "mkdir");
    snprintf(snapshot.path, sizeof snapshot.path, "%s", temp_path(&folder, "snapshots/1f0"));
    make_shard(temp_path(&folder, "blobs/abc"), names, 1);
    make_index(&snapshot, "{\"a\":\"m.safetensors\"}");
    CHECK(symlink("../../blobs/abc", temp_path(&snapshot, "m.safetensors")) == 0, "link");
    weight_source_close(open_source(snapshot.path));
    unlink(temp_path(&snapshot, "m.safetensors"));
    make_shard(temp_path(&folder, "abc"), names, 1);
    CHECK(symlink("../../abc", temp_path(&snapshot, "m.safetensors")) == 0, "link");
    expect_refusal(snapshot.path, MHA_ERR_FORMAT, "is a link that leads out of the folder");
    temp_folder_free(&snapshot);
    unlink(temp_path(&folder, "blobs/abc"));
    temp_folder_free(&folder);
}

/* --------------------------------------------------------------- release ----- */

static void release(void)
{
    enum { COUNT = 4 << 20 };
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "x.safetensors");
    const uint64_t size[] = {COUNT};
    float *const data = malloc(COUNT * sizeof *data);
    for (int n = 0; n < COUNT; n++)
        data[n] = (float)n;
    const safetensors_item items[] = {{"a", SAFETENSORS_F32, 2, shape, numbers},
                                      {"b", SAFETENSORS_F32, 1, size, data}};
    CHECK(safetensors_write(path, items, 2, NULL, 0, NULL, 0) == MHA_OK, "write");
    weight_source *const source = open_source(path);
    const weight_tensor *const a = weight_source_find(source, "a"), *const b = weight_source_find(
                                                                        source, "b");
    CHECK(memcmp(b->data, data, sizeof *data * COUNT) == 0, "before");
    const size_t before = memory_now();
    weight_source_release(source, a); /* smaller than a page */
    weight_source_release(source, b);
    const size_t after = memory_now();
    CHECK(before == 0 || before > after + sizeof *data * COUNT / 2, "%zu bytes before, %zu after",
          before, after);
    CHECK(memcmp(b->data, data, sizeof *data * COUNT) == 0 && memcmp(a->data, numbers, 24) == 0,
          "after");
    weight_source_close(source);
    free(data);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(one_safetensors_file);
    RUN(gguf_files);
    RUN(split_gguf);
    RUN(llama2c_files);
    RUN(other_files);
    RUN(single_folder);
    RUN(sharded_folder);
    RUN(wrong_index);
    RUN(links);
    RUN(download_cache);
    RUN(release);
    return test_end();
}
