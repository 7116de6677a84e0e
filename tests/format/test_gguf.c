/* SPDX-License-Identifier: MIT */
/*
 * Tests of the GGUF reader: values of every type, sizes of every element type, a file for each rule
 * that it violates, files cut at every byte and with every bit flipped, and hostile counts.
 */
#include "format/gguf.h"
#include "support/gguf_cases.h"
#include "support/temp_files.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Opens the file of a case; ends the program if it is refused. The bytes are freed by the caller.
 */
static gguf_file *open_case(const gguf_case *c, unsigned char **bytes)
{
    char message[300] = "";
    size_t size;
    gguf_file *file;
    *bytes = gguf_case_bytes(c, &size);
    const mha_status status = gguf_open_memory(&file, *bytes, size, message, sizeof message);
    if (!CHECK(status == MHA_OK, "%s: %s", c->name, message))
        exit(1);
    return file;
}

static void expect_refusal(const char *name, const void *bytes, size_t size, const char *says)
{
    char message[300] = "";
    gguf_file *file = (gguf_file *)1;
    const mha_status status = gguf_open_memory(&file, bytes, size, message, sizeof message);
    CHECK(status == MHA_ERR_FORMAT && !file, "%s: %s", name, mha_status_string(status));
    CHECK(strncmp(message, "memory: ", 8) == 0 && strstr(message, says), "%s: %s", name, message);
}

static void every_rule(void)
{
    for (size_t n = 0; n < gguf_invalid_count; n++) {
        size_t size;
        unsigned char *const bytes = gguf_case_bytes(&gguf_invalid[n], &size);
        expect_refusal(gguf_invalid[n].name, bytes, size, gguf_invalid[n].says);
        free(bytes);
    }
    for (size_t n = 0; n < gguf_valid_count; n++) {
        unsigned char *bytes;
        gguf_file *const file = open_case(&gguf_valid[n], &bytes);
        CHECK(file->tensor_count == gguf_valid[n].tensors &&
                  file->pair_count == gguf_valid[n].pairs && file->version == gguf_valid[n].version,
              "%s", gguf_valid[n].name);
        gguf_close(file);
        free(bytes);
    }
    gguf_close(NULL);
}

static void other_files(void)
{
    expect_refusal("nothing", "", 0, "does not begin with \"GGUF\"");
    expect_refusal("another file", "GGML\3\0\0\0", 8, "does not begin with \"GGUF\"");
}

/* The longest key that is allowed, and one byte more. */
static void long_keys(void)
{
    for (int more = 0; more < 2; more++) {
        const size_t length = 65535 + (size_t)more;
        char *const body = calloc(8 + length + 5, 1);
        for (int n = 0; n < 3; n++)
            body[n] = (char)(length >> 8 * n);
        memset(body + 8, 'k', length);
        const gguf_case c = {"long key", 3, 0, 1, body, 8 + length + 5, 1, 0, NULL};
        size_t size;
        unsigned char *const bytes = gguf_case_bytes(&c, &size);
        gguf_file *file;
        if (more)
            expect_refusal("long key", bytes, size, "key 0 has 65536 bytes; 65535 are allowed");
        else
            CHECK(gguf_open_memory(&file, bytes, size, NULL, 0) == MHA_OK, "65535 bytes");
        if (!more)
            gguf_close(file);
        free(bytes);
        free(body);
    }
}

/* ---------------------------------------------------------------- values ----- */

static void integers_and_numbers(void)
{
    static const struct {
        const char *key;
        bool is_integer;
        int64_t integer;
        bool is_number;
        double number;
    } cases[] = {
        {"u8", true, 255, true, 255},
        {"i8", true, -2, true, -2},
        {"u16", true, 65534, true, 65534},
        {"i16", true, -2, true, -2},
        {"u32", true, 4294967294, true, 4294967294.0},
        {"i32", true, -2, true, -2},
        {"u64", true, 9, true, 9},
        {"i64", true, -2, true, -2},
        {"huge", false, 0, true, 0x1p64},
        {"f32", false, 0, true, -1.5},
        {"f64", false, 0, true, -2.5},
        {"true", false, 0, false, 0},
        {"string", false, 0, false, 0},
        {"words", false, 0, false, 0},
        {"types", false, 0, false, 0},
        {"absent", false, 0, false, 0},
    };
    unsigned char *bytes;
    gguf_file *const file = open_case(&gguf_sample, &bytes);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        int64_t integer = 0;
        double number = 0;
        CHECK(gguf_get_integer(file, cases[n].key, &integer) == cases[n].is_integer &&
                  integer == cases[n].integer,
              "%s as an integer: %lld", cases[n].key, (long long)integer);
        CHECK(gguf_get_number(file, cases[n].key, &number) == cases[n].is_number &&
                  number == cases[n].number,
              "%s as a number: %g", cases[n].key, number);
    }
    gguf_close(file);
    free(bytes);
}

static bool is_text(gguf_string string, const char *text, uint64_t length)
{
    return string.length == length && memcmp(string.text, text, (size_t)length) == 0;
}

static void strings_and_arrays(void)
{
    unsigned char *bytes;
    gguf_file *const file = open_case(&gguf_sample, &bytes);
    gguf_string string = {NULL, 0};
    bool truth = false, falsehood = true;
    CHECK(gguf_get_bool(file, "true", &truth) && truth, "true");
    CHECK(gguf_get_bool(file, "false", &falsehood) && !falsehood, "false");
    CHECK(!gguf_get_bool(file, "u8", &truth) && !gguf_get_bool(file, "absent", &truth), "no bool");
    CHECK(gguf_get_string(file, "string", &string) && is_text(string, "h\303\251l", 5), "string");
    CHECK(!gguf_get_string(file, "words", &string) && !gguf_get_string(file, "absent", &string),
          "no string");
    const gguf_pair *const words = gguf_find(file, "words");
    static const char *const wanted[] = {"one", "", "\303\251", "z"};
    CHECK(words && words->type == GGUF_ARRAY && words->element == GGUF_STRING && words->count == 4,
          "words");
    uint64_t at = 0;
    for (int n = 0; words && n < 4; n++)
        CHECK(is_text(gguf_next_string(words, &at), wanted[n], strlen(wanted[n])), "word %d", n);
    const gguf_pair *const scores = gguf_find(file, "scores"),
                           *const types = gguf_find(file, "types"),
                           *const flags = gguf_find(file, "flags");
    CHECK(scores && scores->count == 3 && gguf_array_number(scores, 0) == 1 &&
              gguf_array_number(scores, 1) == -2 && gguf_array_number(scores, 2) == 0.5,
          "scores");
    CHECK(types && gguf_array_integer(types, 0) == 1 && gguf_array_integer(types, 1) == -1 &&
              gguf_array_number(types, 1) == -1,
          "types");
    CHECK(flags && flags->element == GGUF_BOOL && gguf_array_integer(flags, 0) == 1 &&
              gguf_array_integer(flags, 1) == 0,
          "flags");
    for (size_t n = 0; n < file->pair_count; n++) {
        char key[32] = "";
        memcpy(key, file->pairs[n].key.text, (size_t)file->pairs[n].key.length);
        CHECK(gguf_find(file, key) == &file->pairs[n], "%s is not found", key);
    }
    gguf_close(file);
    free(bytes);
}

/* --------------------------------------------------------------- tensors ----- */

static void shapes_and_places(void)
{
    static const struct {
        const char *name;
        uint32_t ggml_type;
        bool usable;
        mha_dtype type;
        int rank;
        uint64_t shape[4], offset, bytes;
    } wanted[] = {
        {"token.embd", 0, true, MHA_F32, 2, {2, 3}, 0, 24},
        {"blocks", 2, true, MHA_Q4_0, 2, {2, 64}, 32, 72},
        {"cubes", 1, true, MHA_F16, 4, {1, 3, 2, 1}, 128, 12},
        {"bytes", 24, false, MHA_F32, 1, {7}, 160, 7},
        {"scalar", 28, true, MHA_F64, 0, {0}, 192, 8},
    };
    unsigned char *bytes;
    gguf_file *const file = open_case(&gguf_sample, &bytes);
    const unsigned char *const begin = bytes + file->bytes - gguf_sample.data;
    CHECK(file->tensor_count == 5, "%zu tensors", file->tensor_count);
    for (size_t n = 0; n < 5; n++) {
        const gguf_tensor *const t = gguf_find_tensor(file, wanted[n].name);
        if (!CHECK(t == &file->tensors[n], "%s is not found", wanted[n].name))
            continue;
        CHECK(t->ggml_type == wanted[n].ggml_type && t->usable == wanted[n].usable &&
                  t->type == wanted[n].type && t->rank == wanted[n].rank &&
                  memcmp(t->shape, wanted[n].shape, sizeof t->shape) == 0 &&
                  t->bytes == wanted[n].bytes,
              "%s", t->name);
        CHECK((const unsigned char *)t->data == begin + wanted[n].offset, "place of %s", t->name);
    }
    CHECK(!gguf_find_tensor(file, "absent") && !gguf_find_tensor(file, ""), "absent");
    gguf_close(file);
    free(bytes);
}

/* The elements and bytes of a block of each type, as ggml defines them. */
static void sizes_of_types(void)
{
    static const struct {
        uint32_t type;
        const char *name;
        int block, bytes;
        mha_dtype usable;
    } types[] = {
        {0, "F32", 1, 4, MHA_F32},        {1, "F16", 1, 2, MHA_F16},
        {2, "Q4_0", 32, 18, MHA_Q4_0},    {3, "Q4_1", 32, 20, MHA_Q4_1},
        {6, "Q5_0", 32, 22, MHA_I8},      {7, "Q5_1", 32, 24, MHA_I8},
        {8, "Q8_0", 32, 34, MHA_Q8_0},    {9, "Q8_1", 32, 36, MHA_I8},
        {10, "Q2_K", 256, 84, MHA_I8},    {11, "Q3_K", 256, 110, MHA_I8},
        {12, "Q4_K", 256, 144, MHA_Q4_K}, {13, "Q5_K", 256, 176, MHA_Q5_K},
        {14, "Q6_K", 256, 210, MHA_Q6_K}, {15, "Q8_K", 256, 292, MHA_I8},
        {16, "IQ2_XXS", 256, 66, MHA_I8}, {17, "IQ2_XS", 256, 74, MHA_I8},
        {18, "IQ3_XXS", 256, 98, MHA_I8}, {19, "IQ1_S", 256, 50, MHA_I8},
        {20, "IQ4_NL", 32, 18, MHA_I8},   {21, "IQ3_S", 256, 110, MHA_I8},
        {22, "IQ2_S", 256, 82, MHA_I8},   {23, "IQ4_XS", 256, 136, MHA_I8},
        {24, "I8", 1, 1, MHA_I8},         {25, "I16", 1, 2, MHA_I8},
        {26, "I32", 1, 4, MHA_I8},        {27, "I64", 1, 8, MHA_I8},
        {28, "F64", 1, 8, MHA_F64},       {29, "IQ1_M", 256, 56, MHA_I8},
        {30, "BF16", 1, 2, MHA_BF16},     {34, "TQ1_0", 256, 54, MHA_I8},
        {35, "TQ2_0", 256, 66, MHA_I8},   {39, "MXFP4", 32, 17, MHA_I8},
        {40, "NVFP4", 64, 36, MHA_I8},    {41, "Q1_0", 128, 18, MHA_I8},
        {42, "Q2_0", 64, 18, MHA_I8},
    };
    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++) {
        /* One axis of two blocks. MHA_I8 in the table stands for a type that is not usable. */
        char body[] = "\1\0\0\0\0\0\0\0t\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        const bool usable = types[n].usable != MHA_I8;
        body[13] = (char)(2 * types[n].block);
        body[14] = (char)(2 * types[n].block >> 8);
        body[21] = (char)types[n].type;
        const gguf_case c = {
            types[n].name, 3, 1, 0, body, sizeof body - 1, 32, 2 * (size_t)types[n].bytes, NULL};
        unsigned char *bytes;
        gguf_file *const file = open_case(&c, &bytes);
        const gguf_tensor *const t = &file->tensors[0];
        CHECK(t->bytes == c.data && t->shape[0] == 2 * (uint64_t)types[n].block, "%s: %d bytes",
              c.name, (int)t->bytes);
        CHECK(t->usable == usable && (!usable || t->type == types[n].usable), "%s", c.name);
        CHECK(strcmp(gguf_tensor_type_name(types[n].type), c.name) == 0, "name of %s", c.name);
        expect_refusal(c.name, bytes, (size_t)file->bytes - 1, "not inside of the file");
        gguf_close(file);
        free(bytes);
    }
    CHECK(!gguf_tensor_type_name(5) && !gguf_tensor_type_name(UINT32_MAX), "no name");
}

/* ---------------------------------------------------------- damaged files ----- */

static void cut_files(void)
{
    size_t size;
    unsigned char *const bytes = gguf_case_bytes(&gguf_sample, &size);
    for (size_t length = 0; length < size; length++) {
        unsigned char *const copy = malloc(length ? length : 1);
        memcpy(copy, bytes, length);
        expect_refusal("cut", copy, length, "");
        free(copy);
    }
    free(bytes);
}

/* Reads every value and the first and last byte of every tensor. */
static uint64_t read_everything(const gguf_file *file)
{
    uint64_t sum = 0;
    for (size_t n = 0; n < file->pair_count; n++) {
        const gguf_pair *const pair = &file->pairs[n];
        for (uint64_t i = 0, at = 0; pair->type == GGUF_ARRAY && i < pair->count; i++)
            if (pair->element == GGUF_STRING) {
                const gguf_string s = gguf_next_string(pair, &at);
                sum += s.length ? (unsigned char)s.text[s.length - 1] : 0;
            } else {
                sum += (uint64_t)gguf_array_integer(pair, i);
            }
        sum += pair->type != GGUF_ARRAY && *(const unsigned char *)pair->data;
    }
    for (size_t n = 0; n < file->tensor_count; n++) {
        const gguf_tensor *const t = &file->tensors[n];
        const unsigned char *const data = t->data;
        sum += t->bytes ? data[0] + data[t->bytes - 1] : 0;
        sum += gguf_find_tensor(file, t->name) == t;
    }
    return sum;
}

static void flipped_bits(void)
{
    size_t size;
    unsigned char *const bytes = gguf_case_bytes(&gguf_sample, &size);
    uint64_t sum = 0;
    int accepted = 0, refused = 0;
    for (size_t n = 0; n < 8 * (size - gguf_sample.data); n++) {
        char message[300] = "";
        gguf_file *file;
        bytes[n / 8] ^= (unsigned char)(1 << n % 8);
        const mha_status status = gguf_open_memory(&file, bytes, size, message, sizeof message);
        if (status == MHA_OK)
            sum += read_everything(file);
        else
            CHECK(status == MHA_ERR_FORMAT && !file && strlen(message) > 20, "bit %zu: %s", n,
                  message);
        accepted += status == MHA_OK;
        refused += status != MHA_OK;
        gguf_close(file);
        bytes[n / 8] ^= (unsigned char)(1 << n % 8);
    }
    CHECK(accepted > 100 && refused > 1000, "%d accepted, %d refused (%llu)", accepted, refused,
          (unsigned long long)sum);
    free(bytes);
}

/* Many pairs with long common prefixes are sorted and searched in a short time. */
static void many_keys(void)
{
    enum { COUNT = 200000, ENTRY = 8 + 24 + 4 + 1 };
    char *const body = calloc(COUNT, ENTRY);
    for (int n = 0; n < COUNT; n++) {
        char *const at = body + (size_t)n * ENTRY;
        at[0] = 24;
        /* The last byte, a zero, is written again by the type. */
        snprintf(at + 8, 25, "model.layers.keys.%06d", n);
    }
    const gguf_case c = {"many", 3, 0, COUNT, body, (size_t)COUNT * ENTRY, 1, 0, NULL};
    const clock_t start = clock();
    unsigned char *bytes;
    gguf_file *const file = open_case(&c, &bytes);
    for (int n = 0; n < COUNT; n += 997) {
        char key[32];
        snprintf(key, sizeof key, "model.layers.keys.%06d", n);
        CHECK(gguf_find(file, key) == &file->pairs[n], "%s is not found", key);
    }
    gguf_close(file);
    free(bytes);
    free(body);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(seconds < 5, "%g s", seconds);
}

static void files(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "model.gguf");
    char message[300] = "";
    gguf_file *file;
    size_t size;
    unsigned char *const bytes = gguf_case_bytes(&gguf_sample, &size);
    CHECK(gguf_open(&file, path, message, sizeof message) == MHA_ERR_FILE && !file &&
              strstr(message, "model.gguf: cannot be opened"),
          "no file: %s", message);
    CHECK(file_make(path, bytes, size - 1), "make");
    CHECK(gguf_open(&file, path, message, sizeof message) == MHA_ERR_FORMAT && !file &&
              strstr(message, "model.gguf: the tensor \"scalar\" of 8 bytes"),
          "cut: %s", message);
    CHECK(file_make(path, bytes, size), "make");
    if (CHECK(gguf_open(&file, path, NULL, 0) == MHA_OK, "open"))
        CHECK(file->bytes == size && file->tensor_count == 5 && read_everything(file) > 0, "read");
    gguf_close(file);
    free(bytes);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_rule);
    RUN(other_files);
    RUN(long_keys);
    RUN(integers_and_numbers);
    RUN(strings_and_arrays);
    RUN(shapes_and_places);
    RUN(sizes_of_types);
    RUN(cut_files);
    RUN(flipped_bits);
    RUN(many_keys);
    RUN(files);
    return test_end();
}
