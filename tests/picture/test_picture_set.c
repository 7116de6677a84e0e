/* SPDX-License-Identifier: MIT */
/* Sets of pictures: IDX files plain and compressed, CIFAR-10's files, folders of PNG files; what is
 * wrong with a file is said, and where. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "picture/cifar.h"
#include "picture/gzip.h"
#include "picture/idx.h"
#include "picture/picture_resize.h"
#include "picture/picture_set.h"
#include "picture/png_file.h"
#include "support/temp_files.h"

enum { BYTES_MAX = 1 << 16, CIFAR_RECORD = 3073 };

static temp_folder folder;

static void put_number(uint8_t *at, uint32_t value)
{
    for (int n = 0; n < 4; n++)
        at[n] = (uint8_t)(value >> (24 - 8 * n));
}

/* An IDX file of pictures whose pixels count up, and one of labels 0, 1, 2, 0, ... */
static size_t idx_pictures(uint8_t *to, uint32_t count, uint32_t rows, uint32_t columns)
{
    const size_t pixels = (size_t)count * rows * columns;
    put_number(to, 0x803);
    put_number(to + 4, count);
    put_number(to + 8, rows);
    put_number(to + 12, columns);
    for (size_t n = 0; n < pixels; n++)
        to[16 + n] = (uint8_t)n;
    return 16 + pixels;
}

static size_t idx_labels(uint8_t *to, uint32_t count)
{
    put_number(to, 0x801);
    put_number(to + 4, count);
    for (uint32_t n = 0; n < count; n++)
        to[8 + n] = (uint8_t)(n % 3);
    return 8 + (size_t)count;
}

/* gzip without compression: a member of one stored block. */
static size_t gzip_of(const uint8_t *from, size_t size, uint8_t *to)
{
    static const uint8_t header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    uint32_t crc = 0xffffffffu;
    for (size_t n = 0; n < size; n++) {
        crc ^= from[n];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    const uint32_t ends[2] = {~crc, (uint32_t)size};
    memcpy(to, header, sizeof header);
    uint8_t *at = to + sizeof header;
    *at++ = 1;
    for (int n = 0; n < 2; n++)
        *at++ = (uint8_t)(size >> 8 * n);
    for (int n = 0; n < 2; n++)
        *at++ = (uint8_t) ~(size >> 8 * n);
    memcpy(at, from, size);
    at += size;
    for (int n = 0; n < 8; n++)
        *at++ = (uint8_t)(ends[n / 4] >> 8 * (n % 4));
    return (size_t)(at - to);
}

static void store(const char *name, const uint8_t *bytes, size_t size, bool gzip)
{
    static uint8_t packed[2 * BYTES_MAX];
    char with_end[128];
    const size_t length = gzip ? gzip_of(bytes, size, packed) : size;
    snprintf(with_end, sizeof with_end, "%s%s", name, gzip ? ".gz" : "");
    CHECK(file_make(temp_path(&folder, with_end), gzip ? packed : bytes, length), "%s", name);
}

static void make_idx(bool gzip)
{
    static uint8_t bytes[BYTES_MAX];
    store("train-images-idx3-ubyte", bytes, idx_pictures(bytes, 7, 4, 5), gzip);
    store("train-labels-idx1-ubyte", bytes, idx_labels(bytes, 7), gzip);
    store("t10k-images-idx3-ubyte", bytes, idx_pictures(bytes, 2, 4, 5), gzip);
    store("t10k-labels-idx1-ubyte", bytes, idx_labels(bytes, 2), gzip);
}

/* ------------------------------------------------------------------ IDX ----- */

static void idx_is_read(bool gzip)
{
    char message[PICTURE_MESSAGE_MAX] = "";
    picture_set train, test;
    folder = temp_folder_new();
    make_idx(gzip);
    if (CHECK(picture_set_open(folder.path, 0, &train, &test, message), "%s", message)) {
        CHECK(train.count == 7 && train.rows == 4 && train.columns == 5 && train.channels == 1,
              "%td of %d x %d", train.count, train.rows, train.columns);
        CHECK(train.classes == 3 && test.classes == 3 && test.count == 2, "%d, %d classes",
              train.classes, test.classes);
        for (int n = 0; n < 140; n++)
            CHECK(train.pixels[n] == n, "pixel %d is %d", n, train.pixels[n]);
        for (int n = 0; n < 7; n++)
            CHECK(train.labels[n] == n % 3, "label %d is %d", n, train.labels[n]);
        CHECK(strcmp(test.names[2], "2") == 0, "class 2 is %s", test.names[2]);
    }
    picture_set_free(&train);
    picture_set_free(&test);
    temp_folder_free(&folder);
}

static void plain_idx_is_read(void)
{
    idx_is_read(false);
}

static void compressed_idx_is_read(void)
{
    if (gzip_supported())
        idx_is_read(true);
}

/* Every prefix of the files, and what the header may not say. */
static void wrong_idx_is_refused(void)
{
    static uint8_t pictures[BYTES_MAX], labels[64];
    const size_t size = idx_pictures(pictures, 3, 2, 2), label_size = idx_labels(labels, 3);
    char message[PICTURE_MESSAGE_MAX];
    picture_set set;
    for (size_t n = 0; n < size + label_size; n++) {
        const size_t a = n < size ? n : size, b = n < size ? label_size : n - size;
        message[0] = '\0';
        CHECK(!idx_read(pictures, a, "P", labels, b, "L", &set, message) && set.pixels == NULL,
              "%zu and %zu bytes are read", a, b);
        CHECK(message[0] == (n < size ? 'P' : 'L') && strlen(message) > 10, "it says \"%s\"",
              message);
    }
    CHECK(idx_read(pictures, size, "P", labels, label_size, "L", &set, message), "%s", message);
    picture_set_free(&set);
    static const struct {
        int at;
        uint32_t value;
        const char *said;
    } cases[] = {{0, 0x801, "not an IDX"},     {4, 0, "0 pictures of"},
                 {4, 4, "need 16 bytes"},      {8, 0, "0 x 2"},
                 {8, 4096, "4096 x 2"},        {12, 0x7fffffff, "x 2147483647"},
                 {4, 0xffffffff, "4294967295"}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        idx_pictures(pictures, 3, 2, 2);
        put_number(pictures + cases[n].at, cases[n].value);
        CHECK(!idx_read(pictures, size, "P", labels, label_size, "L", &set, message) &&
                  strstr(message, cases[n].said),
              "case %zu: %s", n, message);
    }
}

static void wrong_gzip_is_refused(void)
{
    static const uint8_t thousand_zeros[] = {31, 139, 8,  0,  0,   0,   0,  0,  2,   3,
                                             99, 96,  24, 5,  163, 96,  20, 12, 119, 0,
                                             0,  128, 23, 11, 6,   232, 3,  0,  0};
    static uint8_t plain[64], packed[256];
    uint8_t *data = NULL;
    size_t count;
    if (!gzip_supported())
        return;
    const size_t size = gzip_of(plain, sizeof plain, packed);
    for (size_t n = 0; n < size; n++)
        CHECK(gzip_inflate(packed, n, 1 << 20, &data, &count) != NULL && data == NULL,
              "%zu bytes are read", n);
    CHECK(gzip_inflate(packed, size, sizeof plain - 1, &data, &count) != NULL,
          "more than the limit");
    for (size_t n = 10; n < size; n++) {
        packed[n] ^= 4;
        CHECK(gzip_inflate(packed, size, 1 << 20, &data, &count) != NULL, "byte %zu is wrong", n);
        packed[n] ^= 4;
    }
    CHECK(gzip_inflate(thousand_zeros, sizeof thousand_zeros, 999, &data, &count) != NULL &&
              data == NULL,
          "more comes out than the limit");
    CHECK(gzip_inflate(thousand_zeros, sizeof thousand_zeros, 1000, &data, &count) == NULL &&
              count == 1000,
          "as much as the limit");
    free(data);
    memcpy(packed + size, packed, size);
    CHECK(gzip_inflate(packed, 2 * size, 1 << 20, &data, &count) == NULL && count == 128,
          "two members");
    free(data);
}

/* --------------------------------------------------------------- CIFAR ----- */

static void cifar_is_read(void)
{
    static uint8_t bytes[3 * CIFAR_RECORD];
    char message[PICTURE_MESSAGE_MAX] = "";
    picture_set train, test;
    folder = temp_folder_new();
    for (size_t n = 0; n < sizeof bytes; n++)
        bytes[n] = (uint8_t)(n % CIFAR_RECORD == 0 ? 7 + n / CIFAR_RECORD : n * 31);
    file_make(temp_path(&folder, "data_batch_1.bin"), bytes, 2 * CIFAR_RECORD);
    file_make(temp_path(&folder, "data_batch_2.bin"), bytes + CIFAR_RECORD, CIFAR_RECORD);
    file_make(temp_path(&folder, "test_batch.bin"), bytes, CIFAR_RECORD);
    file_make(temp_path(&folder, "batches.meta.txt"), "airplane\nautomobile\n", 20);
    if (CHECK(picture_set_open(folder.path, 0, &train, &test, message), "%s", message)) {
        CHECK(train.count == 3 && train.channels == 3 && train.rows == 32 && test.count == 1,
              "%td and %td", train.count, test.count);
        CHECK(train.labels[0] == 7 && train.labels[1] == 8 && train.labels[2] == 8, "labels");
        CHECK(memcmp(train.pixels + 3072, bytes + CIFAR_RECORD + 1, 3072) == 0, "pixels");
        CHECK(strcmp(train.names[1], "automobile") == 0 && strcmp(train.names[9], "9") == 0,
              "%s, %s", train.names[1], train.names[9]);
    }
    picture_set_free(&train);
    picture_set_free(&test);
    bytes[CIFAR_RECORD] = 10;
    CHECK(!cifar_read(bytes, sizeof bytes, "F", &train, message) &&
              strstr(message, "picture 1 has class 10"),
          "%s", message);
    CHECK(!cifar_read(bytes, sizeof bytes - 1, "F", &train, message) && strstr(message, "9218"),
          "%s", message);
    CHECK(!cifar_read(bytes, 0, "F", &train, message), "nothing");
    temp_folder_free(&folder);
}

/* ---------------------------------------------------------------- folder ----- */

static void make_png(const char *part, const char *class, const char *name, int channels, int value)
{
    char path[512], message[PICTURE_MESSAGE_MAX];
    picture p = picture_new(6, 9, channels);
    memset(p.pixels, value, (size_t)(54 * channels));
    snprintf(path, sizeof path, "%s/%s", folder.path, part);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", folder.path, part, class);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s/%s", folder.path, part, class, name);
    CHECK(png_file_write(path, &p, message), "%s", message);
    picture_free(&p);
}

static void folders_are_read(void)
{
    char message[PICTURE_MESSAGE_MAX] = "";
    picture_set train, test;
    if (!png_file_supported())
        return;
    folder = temp_folder_new();
    make_png("train", "dog", "a.png", 3, 10);
    make_png("train", "cat", "b.png", 1, 20);
    make_png("train", "cat", "a.png", 3, 30);
    make_png("test", "dog", "a.png", 3, 40);
    if (CHECK(picture_set_open(folder.path, 4, &train, &test, message), "%s", message)) {
        CHECK(train.count == 3 && train.channels == 3 && train.rows == 4 && train.columns == 4,
              "%td of %d", train.count, train.channels);
        CHECK(train.labels[0] == 0 && train.labels[1] == 0 && train.labels[2] == 1, "labels");
        CHECK(train.pixels[0] == 30 && train.pixels[48 + 47] == 20 && train.pixels[96] == 10,
              "%d, %d, %d", train.pixels[0], train.pixels[95], train.pixels[96]);
        CHECK(strcmp(train.names[0], "cat") == 0 && strcmp(test.names[1], "dog") == 0, "names");
        CHECK(test.count == 1 && test.labels[0] == 1 && test.pixels[0] == 40, "test");
    }
    picture_set_free(&train);
    picture_set_free(&test);
    make_png("test", "cow", "a.png", 3, 40);
    CHECK(!picture_set_open(folder.path, 4, &train, &test, message) && strstr(message, "cow"), "%s",
          message);
    CHECK(file_make(temp_path(&folder, "train/dog/z.png"), "no", 2), "z.png");
    CHECK(!picture_set_open(folder.path, 4, &train, &test, message) &&
              strstr(message, "z.png: not a PNG file"),
          "%s", message);
    CHECK(train.pixels == NULL && test.pixels == NULL, "something is left");
    temp_folder_free(&folder);
}

static void other_folders_are_refused(void)
{
    char message[PICTURE_MESSAGE_MAX] = "";
    picture_set train, test;
    folder = temp_folder_new();
    CHECK(!picture_set_open(folder.path, 0, &train, &test, message) &&
              strstr(message, "a folder of PNG files for each"),
          "%s", message);
    CHECK(!picture_set_open("/nowhere", 0, &train, &test, message) && strstr(message, "/nowhere"),
          "%s", message);
    temp_folder_free(&folder);
}

/* --------------------------------------------------------------- resize ----- */

/* The mean of a picture stays, one of the same size stays as it is, and halving is a mean. */
static void resizing_keeps_means(void)
{
    picture p = picture_new(4, 4, 1);
    for (int n = 0; n < 16; n++)
        p.pixels[n] = (uint8_t)(n % 4 < 2 ? 0 : 200);
    picture same = picture_resize(&p, 4, 4), wide = picture_resize(&p, 8, 8);
    picture small = picture_resize(&p, 2, 2);
    CHECK(memcmp(same.pixels, p.pixels, 16) == 0, "the same size");
    CHECK(wide.pixels[0] == 0 && wide.pixels[7] == 200 && wide.pixels[3] == 50 &&
              wide.pixels[4] == 150,
          "%d %d %d %d", wide.pixels[0], wide.pixels[3], wide.pixels[4], wide.pixels[7]);
    CHECK(small.pixels[0] + small.pixels[1] == 200 && small.pixels[0] < 40, "%d %d",
          small.pixels[0], small.pixels[1]);
    picture_free(&p);
    picture_free(&same);
    picture_free(&wide);
    picture_free(&small);
    picture colour = picture_new(1, 1, 4);
    memcpy(colour.pixels, "\xff\x80\x00\x80", 4);
    uint8_t planes[3];
    picture_planes(&colour, 3, planes);
    CHECK(planes[0] == 128 && planes[1] == 64 && planes[2] == 0, "%d %d %d", planes[0], planes[1],
          planes[2]);
    picture_planes(&colour, 1, planes);
    CHECK(planes[0] == 76, "grey %d", planes[0]);
    picture_free(&colour);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(plain_idx_is_read);
    RUN(compressed_idx_is_read);
    RUN(wrong_idx_is_refused);
    RUN(wrong_gzip_is_refused);
    RUN(cifar_is_read);
    RUN(folders_are_read);
    RUN(other_folders_are_refused);
    RUN(resizing_keeps_means);
    return test_end();
}
