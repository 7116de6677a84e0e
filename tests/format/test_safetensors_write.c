/* SPDX-License-Identifier: MIT */
/* Tests of the safetensors writer: written files read back the same, the same content gives the
 * same bytes, and after an error the old file is still there. */
#include "format/safetensors.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mha_status write_items(const temp_folder *folder, const safetensors_item *items,
                              size_t count, const safetensors_pair *pairs, size_t pair_count)
{
    char message[600] = "";
    const mha_status status = safetensors_write(temp_path(folder, "file"), items, count, pairs,
                                                pair_count, message, sizeof message);
    CHECK((status == MHA_OK) == (message[0] == 0), "%s: \"%s\"", mha_status_string(status),
          message);
    return status;
}

static safetensors_file *open_written(const temp_folder *folder)
{
    char message[600] = "";
    safetensors_file *file = NULL;
    CHECK(safetensors_open(&file, temp_path(folder, "file"), SAFETENSORS_STRICT, message,
                           sizeof message) == MHA_OK,
          "%s", message);
    return file;
}

/* The file has the tensor of an item, with the same type, shape and elements, aligned. */
static void check_item(const safetensors_file *file, const safetensors_item *item)
{
    const safetensors_tensor *const tensor = safetensors_find(file, item->name);
    uint64_t bytes = 0;
    if (!CHECK(tensor, "%s is missing", item->name))
        return;
    CHECK(safetensors_bytes(item->type, item->rank, item->shape, &bytes) == MHA_OK, "bytes");
    CHECK(tensor->type == item->type && tensor->rank == item->rank &&
              tensor->end - tensor->begin == bytes,
          "%s: type, rank or bytes", item->name);
    for (size_t n = 0; n < item->rank && n < tensor->rank; n++)
        CHECK(tensor->shape[n] == item->shape[n], "%s: extent %zu", item->name, n);
    const unsigned bits = safetensors_type_bits(item->type), element = bits < 8 ? 1 : bits / 8;
    CHECK((8 + file->header_bytes + tensor->begin) % element == 0, "%s: not aligned", item->name);
    unsigned char *const data = malloc(bytes ? bytes : 1);
    CHECK(safetensors_read(file, tensor, data, NULL, 0) == MHA_OK &&
              (!bytes || memcmp(data, item->data, bytes) == 0),
          "%s: other elements", item->name);
    free(data);
}

/* Every type, as an empty tensor, a single element (where that is whole bytes) and a matrix. */
static void every_type_round_trips(void)
{
    static const uint64_t shapes[][2] = {{0, 7}, {4, 5}};
    static const size_t ranks[] = {2, 0, 2};
    static char names[SAFETENSORS_TYPES * 3][32];
    unsigned char data[4 * 5 * 8];
    safetensors_item items[SAFETENSORS_TYPES * 3];
    size_t count = 0;
    for (size_t n = 0; n < sizeof data; n++)
        data[n] = (unsigned char)(n * 37 + 1);
    for (int type = 0; type < SAFETENSORS_TYPES; type++)
        for (int kind = 0; kind < 3; kind++) {
            if (kind == 1 && safetensors_type_bits((safetensors_type)type) < 8)
                continue;
            snprintf(names[count], sizeof names[count], "%d.%s", kind,
                     safetensors_type_name((safetensors_type)type));
            const safetensors_item item = {names[count], (safetensors_type)type, ranks[kind],
                                           kind == 1 ? NULL : shapes[kind / 2], kind ? data : NULL};
            items[count++] = item;
        }
    const temp_folder folder = temp_folder_new();
    CHECK(write_items(&folder, items, count, NULL, 0) == MHA_OK, "write");
    safetensors_file *const file = open_written(&folder);
    if (file) {
        CHECK(file->count == count && file->pair_count == 0, "%zu tensors", file->count);
        for (size_t n = 0; n < count; n++)
            check_item(file, &items[n]);
    }
    safetensors_close(file);
    temp_folder_free(&folder);
}

static void names_and_metadata_round_trip(void)
{
    static const char *const texts[] = {"",
                                        "plain",
                                        "quote \" backslash \\ slash /",
                                        "\x01\x02\b\t\n\v\f\r\x1f\x7f",
                                        "caf\xc3\xa9 \xe6\x9d\xb1 \xf0\x9f\x98\x80",
                                        "{\"dtype\":\"F32\"}",
                                        "trailing \\"};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    static const uint64_t shape[] = {1};
    static const unsigned char byte = 9;
    safetensors_item items[TEXTS];
    safetensors_pair pairs[TEXTS];
    for (size_t n = 0; n < TEXTS; n++) {
        const safetensors_item item = {texts[n], SAFETENSORS_U8, 1, shape, &byte};
        const safetensors_pair pair = {texts[n], texts[TEXTS - 1 - n]};
        items[n] = item;
        pairs[n] = pair;
    }
    const temp_folder folder = temp_folder_new();
    CHECK(write_items(&folder, items, TEXTS, pairs, TEXTS) == MHA_OK, "write");
    safetensors_file *const file = open_written(&folder);
    CHECK(!file || file->pair_count == TEXTS, "pairs");
    for (size_t n = 0; file && n < TEXTS; n++) {
        bool found = false;
        check_item(file, &items[n]);
        for (size_t m = 0; m < file->pair_count; m++)
            found |= strcmp(file->pairs[m].key, pairs[n].key) == 0 &&
                     strcmp(file->pairs[m].value, pairs[n].value) == 0;
        CHECK(found, "pair %zu", n);
    }
    safetensors_close(file);
    temp_folder_free(&folder);
}

/* The file does not depend on the order in which items and pairs are given: the widest types come
 * first, then tensors are sorted by name. */
static void order_does_not_matter(void)
{
    static const uint64_t shape[] = {3};
    static const unsigned char data[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const safetensors_item items[] = {{"d", SAFETENSORS_U8, 1, shape, data},
                                             {"b", SAFETENSORS_F32, 1, shape, data},
                                             {"a", SAFETENSORS_U8, 1, shape, data},
                                             {"c", SAFETENSORS_F64, 1, shape, data}};
    static const safetensors_pair pairs[] = {{"y", "1"}, {"x", "2"}};
    static const char *const order[] = {"c", "b", "a", "d"};
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    size_t size = 0;
    unsigned char *first = NULL;
    for (int turn = 0; turn < 4; turn++) {
        safetensors_item rotated[4];
        const safetensors_pair swapped[] = {pairs[turn % 2], pairs[1 - turn % 2]};
        for (int n = 0; n < 4; n++)
            rotated[n] = items[(n + turn) % 4];
        CHECK(write_items(&folder, rotated, 4, swapped, 2) == MHA_OK, "write");
        size_t now_size = 0;
        unsigned char *const now = file_bytes(path, &now_size);
        if (turn == 0) {
            first = now;
            size = now_size;
        } else {
            CHECK(now && size == now_size && memcmp(now, first, size) == 0, "turn %d", turn);
            free(now);
        }
    }
    safetensors_file *const file = open_written(&folder);
    CHECK(first && first[8] == '{' && file && file->header_bytes % 8 == 0,
          "begins with {, ends at a multiple of 8");
    for (size_t n = 0; file && n < file->count; n++)
        CHECK(strcmp(file->tensors[n].name, order[n]) == 0, "place %zu", n);
    safetensors_close(file);
    free(first);
    temp_folder_free(&folder);
}

static void what_cannot_be_written(void)
{
    static const uint64_t shape[] = {3}, huge[] = {1ull << 32, 1ull << 32};
    static const unsigned char data[24] = {0};
    static const safetensors_item good = {"good", SAFETENSORS_U8, 1, shape, data};
    static const safetensors_pair pairs[] = {
        {"k", "1"}, {"k", "2"}, {NULL, "1"}, {"k", NULL}, {"k", "\xff"}};
    static const struct {
        safetensors_item item;
        mha_status status;
    } cases[] = {
        {{NULL, SAFETENSORS_U8, 1, shape, data}, MHA_ERR_NULL},
        {{"a", SAFETENSORS_U8, 1, NULL, data}, MHA_ERR_NULL},
        {{"a", SAFETENSORS_U8, 1, shape, NULL}, MHA_ERR_NULL},
        {{"a", SAFETENSORS_TYPES, 1, shape, data}, MHA_ERR_DTYPE},
        {{"a", (safetensors_type)-1, 1, shape, data}, MHA_ERR_DTYPE},
        {{"a", SAFETENSORS_F4, 1, shape, data}, MHA_ERR_SHAPE},
        {{"a", SAFETENSORS_U8, 2, huge, data}, MHA_ERR_OVERFLOW},
        {{"__metadata__", SAFETENSORS_U8, 1, shape, data}, MHA_ERR_FORMAT},
        {{"\xc3", SAFETENSORS_U8, 1, shape, data}, MHA_ERR_FORMAT},
        {{"good", SAFETENSORS_F64, 1, shape, data}, MHA_ERR_FORMAT},
    };
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "file");
    CHECK(file_make(path, "old", 3), "the old file");
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const safetensors_item both[] = {good, cases[n].item};
        CHECK(write_items(&folder, both, 2, NULL, 0) == cases[n].status, "case %zu", n);
    }
    CHECK(write_items(&folder, NULL, 1, NULL, 0) == MHA_ERR_NULL, "no items");
    CHECK(write_items(&folder, &good, 1, NULL, 1) == MHA_ERR_NULL, "no pairs");
    CHECK(write_items(&folder, &good, 1, pairs, 2) == MHA_ERR_FORMAT, "a key twice");
    CHECK(write_items(&folder, &good, 1, pairs + 2, 1) == MHA_ERR_NULL, "no key");
    CHECK(write_items(&folder, &good, 1, pairs + 3, 1) == MHA_ERR_NULL, "no value");
    CHECK(write_items(&folder, &good, 1, pairs + 4, 1) == MHA_ERR_FORMAT, "a value not UTF-8");
    CHECK(safetensors_write(NULL, &good, 1, NULL, 0, NULL, 0) == MHA_ERR_NULL, "no path");
    CHECK(safetensors_write("/nonexistent/file", &good, 1, NULL, 0, NULL, 0) == MHA_ERR_FILE,
          "no folder");
    CHECK(safetensors_write(folder.path, &good, 1, NULL, 0, NULL, 0) == MHA_ERR_FILE, "a folder");
    size_t size = 0;
    unsigned char *const now = file_bytes(path, &size);
    CHECK(now && size == 3 && memcmp(now, "old", 3) == 0, "the old file is gone");
    CHECK(temp_folder_count(&folder) == 1, "%d files", temp_folder_count(&folder));
    free(now);
    temp_folder_free(&folder);
}

/* The largest header that can be written has 100,000,000 bytes. */
static void largest_header(void)
{
    static const uint64_t shape[] = {0};
    const temp_folder folder = temp_folder_new();
    char *const value = malloc(100000001);
    memset(value, 'x', 100000000);
    /* {"__metadata__":{"k":"..."}} and spaces */
    const size_t most = 100000000 - strlen("{\"__metadata__\":{\"k\":\"\"}}");
    const safetensors_pair pair = {"k", value};
    value[most] = '\0';
    CHECK(write_items(&folder, NULL, 0, &pair, 1) == MHA_OK, "the largest");
    safetensors_file *const file = open_written(&folder);
    CHECK(file && file->header_bytes == 100000000 && strlen(file->pairs[0].value) == most, "read");
    safetensors_close(file);
    value[most] = 'x';
    value[most + 1] = '\0';
    CHECK(write_items(&folder, NULL, 0, &pair, 1) == MHA_ERR_FORMAT, "one byte more");
    const safetensors_item item = {value, SAFETENSORS_U8, 1, shape, NULL};
    CHECK(write_items(&folder, &item, 1, NULL, 0) == MHA_ERR_FORMAT, "a name as long");
    free(value);
    temp_folder_free(&folder);
}

/* A file stays readable while it is open, even if another one is written to its path. */
static void written_over_its_source(void)
{
    static const uint64_t shape[] = {4};
    unsigned char data[4] = "abc";
    const temp_folder folder = temp_folder_new();
    const safetensors_item item = {"a", SAFETENSORS_U8, 1, shape, data},
                           none = {"b", SAFETENSORS_U8, 0, 0, data};
    CHECK(write_items(&folder, &item, 1, NULL, 0) == MHA_OK, "write");
    safetensors_file *const file = open_written(&folder);
    CHECK(write_items(&folder, &none, 1, NULL, 0) == MHA_OK, "write over it");
    memset(data, 0, sizeof data);
    CHECK(file && safetensors_read(file, safetensors_find(file, "a"), data, NULL, 0) == MHA_OK &&
              memcmp(data, "abc", 4) == 0,
          "the old file, still");
    safetensors_close(file);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_type_round_trips);
    RUN(names_and_metadata_round_trip);
    RUN(order_does_not_matter);
    RUN(what_cannot_be_written);
    RUN(largest_header);
    RUN(written_over_its_source);
    return test_end();
}
