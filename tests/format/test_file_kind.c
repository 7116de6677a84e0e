/* SPDX-License-Identifier: MIT */
/* Files of models are recognised by what is in them, whatever their names; the name decides only
 * where the content says nothing. */
#include "format/file_kind.h"
#include "format/safetensors.h"
#include "support/gguf_builder.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const names[] = {"x.safetensors", "x.gguf", "x.bin", "0f13ac"};
static const file_kind by_name[] = {FILE_SAFETENSORS, FILE_GGUF, FILE_LLAMA2C, FILE_UNKNOWN};
enum { NAMES = 4 };

/* The same kind under every name. */
static void check_kind(const char *what, const void *bytes, size_t size, file_kind expected)
{
    const temp_folder folder = temp_folder_new();
    for (int n = 0; n < NAMES; n++) {
        const char *const path = temp_path(&folder, names[n]);
        CHECK(file_make(path, bytes, size), "write");
        const file_kind kind = file_kind_at(path);
        CHECK(kind == (expected ? expected : by_name[n]), "%s as %s is %d", what, names[n],
              (int)kind);
        CHECK(file_kind_of(bytes, size, path) == kind, "%s in memory", what);
    }
    temp_folder_free(&folder);
}

static void the_content_decides(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "x");
    static const float numbers[4];
    static const uint64_t shape[] = {4};
    const safetensors_item item = {"w", SAFETENSORS_F32, 1, shape, numbers};
    size_t size;
    CHECK(safetensors_write(path, &item, 1, NULL, 0, NULL, 0) == MHA_OK, "write");
    unsigned char *bytes = file_bytes(path, &size);
    check_kind("safetensors", bytes, size, FILE_SAFETENSORS);
    free(bytes);
    gguf_builder g = {.bytes = NULL};
    gguf_builder_text(&g, "general.architecture", "llama");
    bytes = gguf_builder_file(&g, &size);
    check_kind("GGUF", bytes, size, FILE_GGUF);
    check_kind("the beginning of GGUF", bytes, 4, FILE_GGUF);
    free(bytes);
    gguf_builder_free(&g);
    check_kind("a zip archive", "PK\3\4 and so on", 13, FILE_TORCH);
    check_kind("a pickle", "\x80\2\x8a\n and so on", 13, FILE_TORCH);
    temp_folder_free(&folder);
}

/* Width 2, inner 1, 123 layers, one head, 1 word, 1 position: at byte 8 is a "{". */
static void models_of_llama2c(void)
{
    enum { FLOATS = 2 + 123 * (2 + 4 * 4 + 2 + 3 * 2) + 2 + 2 };
    static int32_t numbers[7 + FLOATS + 1] = {2, 1, 123, 1, 1, 1, 1};
    const size_t size = sizeof(int32_t) * (7 + FLOATS);
    check_kind("llama2.c", numbers, size, FILE_LLAMA2C);
    check_kind("a number too many", numbers, size + 4, FILE_UNKNOWN);
    check_kind("a number missing", numbers, size - 4, FILE_UNKNOWN);
    numbers[0] = 0;
    check_kind("no width", numbers, size, FILE_UNKNOWN);
    numbers[0] = 0x616b3432;
    check_kind("version 1", numbers, size, FILE_LLAMA2C);
}

static void the_name_decides_about_the_rest(void)
{
    const temp_folder folder = temp_folder_new();
    check_kind("a text", "a text of a few words", 21, FILE_UNKNOWN);
    check_kind("a byte", "G", 1, FILE_UNKNOWN);
    check_kind("a long header", "\0\0\0\0\0\0\0\1{}", 10, FILE_UNKNOWN);
    check_kind("nothing", "", 0, FILE_UNKNOWN);
    CHECK(file_kind_at(temp_path(&folder, "none.gguf")) == FILE_GGUF, "no such file");
    CHECK(file_kind_at(folder.path) == FILE_UNKNOWN, "a folder");
    mkfifo(temp_path(&folder, "pipe"), 0600);
    CHECK(file_kind_at(temp_path(&folder, "pipe")) == FILE_UNKNOWN, "a pipe");
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(the_content_decides);
    RUN(models_of_llama2c);
    RUN(the_name_decides_about_the_rest);
    return test_end();
}
