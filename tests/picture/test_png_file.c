/* SPDX-License-Identifier: MIT */
/* Pictures from and to PNG files: every kind of file, and files that are not what they say. */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "picture/png_file.h"
#include "support/png_builder.h"
#include "support/temp_files.h"

static temp_folder folder;

static const char *path(void)
{
    return temp_path(&folder, "picture.png");
}

static bool store(const png_builder *png)
{
    return CHECK(file_make(path(), png->bytes, png->size), "cannot write %s", path());
}

/* ---------------------------------------------------------------- kinds ---- */

static void round_trips(void)
{
    static const ptrdiff_t sizes[][2] = {{1, 1}, {3, 5}, {1, 40}, {67, 33}};
    test_random random = {test_seed(1)};
    char message[PICTURE_MESSAGE_MAX];
    for (int n = 0; n < 16; n++) {
        picture out = picture_new(sizes[n / 4][0], sizes[n / 4][1], 1 + n % 4), in;
        const size_t bytes = (size_t)(out.rows * out.columns * out.channels);
        for (size_t k = 0; k < bytes; k++)
            out.pixels[k] = (uint8_t)test_random_below(&random, 256);
        CHECK(png_file_write(path(), &out, message), "write: %s", message);
        if (CHECK(png_file_read(path(), &in, message), "read: %s", message)) {
            CHECK(in.rows == out.rows && in.columns == out.columns && in.channels == out.channels,
                  "%td x %td x %td", in.rows, in.columns, in.channels);
            CHECK(memcmp(in.pixels, out.pixels, bytes) == 0, "other pixels, case %d", n);
        }
        picture_free(&in);
        picture_free(&out);
    }
}

/* What a file of 2 x 2 pixels is read as. */
static void check_pixels(const png_builder *png, const char *name, ptrdiff_t channels,
                         const uint8_t *wanted)
{
    picture in;
    char message[PICTURE_MESSAGE_MAX] = "";
    if (!store(png) || !CHECK(png_file_read(path(), &in, message), "%s: %s", name, message))
        return;
    CHECK(in.rows == 2 && in.columns == 2 && in.channels == channels, "%s: %td x %td x %td", name,
          in.rows, in.columns, in.channels);
    if (in.channels == channels)
        CHECK(memcmp(in.pixels, wanted, (size_t)(4 * channels)) == 0, "%s: %d %d %d %d", name,
              in.pixels[0], in.pixels[1], in.pixels[2], in.pixels[3]);
    picture_free(&in);
}

static void all_kinds_become_8_bits(void)
{
    static const uint8_t colours[] = {255, 0, 0, 10, 20, 30, 0, 0, 255, 7, 8, 9};
    png_builder png = png_begin(2, 2, 1, PNG_GREY, 0);
    png_pixels(&png, "\0\x80\0\x40", 4);
    png_end(&png);
    check_pixels(&png, "1 bit", 1, (const uint8_t[]){255, 0, 0, 255});

    png = png_begin(2, 2, 4, PNG_GREY, 0);
    png_pixels(&png, "\0\x1f\0\x70", 4);
    png_end(&png);
    check_pixels(&png, "4 bits", 1, (const uint8_t[]){17, 255, 119, 0});

    png = png_begin(2, 2, 8, PNG_PALETTE, 0);
    png_chunk(&png, "PLTE", colours, sizeof colours);
    png_pixels(&png, "\0\0\1\0\2\3", 6);
    png_end(&png);
    check_pixels(&png, "palette", 3, colours);

    png = png_begin(2, 2, 2, PNG_PALETTE, 0);
    png_chunk(&png, "PLTE", colours, sizeof colours);
    png_pixels(&png, "\0\x10\0\xb0", 4);
    png_end(&png);
    check_pixels(&png, "palette of 2 bits", 3, colours);

    png = png_begin(2, 2, 8, PNG_GREY, 1); /* Adam7: the first pixel, then the column, then row 1 */
    png_pixels(&png, "\0\1\0\2\0\3\4", 7);
    png_end(&png);
    check_pixels(&png, "interlaced", 1, (const uint8_t[]){1, 2, 3, 4});

    png = png_begin(2, 2, 8, PNG_GREY, 0);
    png_chunk(&png, "tRNS", "\0\2", 2);
    png_pixels(&png, "\0\1\2\0\3\4", 6);
    png_end(&png);
    check_pixels(&png, "a grey that is transparent", 2,
                 (const uint8_t[]){1, 255, 2, 0, 3, 255, 4, 255});
}

/* Wider numbers lose their lower half, more or less: libpng rounds. */
static void sixteen_bits_are_read(void)
{
    picture in;
    char message[PICTURE_MESSAGE_MAX];
    png_builder png = png_begin(1, 2, 16, PNG_GREY, 0);
    png_pixels(&png, "\0\0\0\0\xff\xff", 6);
    png_end(&png);
    if (store(&png) && CHECK(png_file_read(path(), &in, message), "%s", message)) {
        CHECK(in.pixels[0] == 0 && in.pixels[1] == 255, "%d %d", in.pixels[0], in.pixels[1]);
        picture_free(&in);
    }
}

/* --------------------------------------------------------------- refused --- */

static void check_refused(const char *file, const char *reason)
{
    picture in = {.rows = 7};
    char message[PICTURE_MESSAGE_MAX] = "";
    CHECK(!png_file_read(file, &in, message), "%s was read", reason);
    CHECK(strstr(message, reason) != NULL, "\"%s\", not \"%s\"", message, reason);
    CHECK(in.pixels == NULL && in.rows == 0, "something is left");
}

static void what_is_no_picture_is_refused(void)
{
    check_refused(temp_path(&folder, "none.png"), "No such file");
    check_refused(folder.path, "directory");
    CHECK(file_make(path(), "", 0), "write");
    check_refused(path(), "not a PNG file");
    CHECK(file_make(path(), "\x89PNG", 4), "write");
    check_refused(path(), "not a PNG file");
    CHECK(file_make(path(), "GIF89a and more of it", 21), "write");
    check_refused(path(), "not a PNG file");
}

static void check_header(uint32_t columns, uint32_t rows, int depth, int type, const char *reason)
{
    png_builder png = png_begin(columns, rows, depth, type, 0);
    png_pixels(&png, "\0\0", 2);
    png_end(&png);
    if (store(&png))
        check_refused(path(), reason);
}

static void sizes_are_limited(void)
{
    check_header(100000, 1, 8, PNG_GREY, "100000 x 1 pixels");
    check_header(1, 20000, 8, PNG_GREY, "1 x 20000 pixels");
    check_header(16384, 16384, 1, PNG_GREY, "16384 x 16384 pixels");
    check_header(4097, 4096, 8, PNG_COLOUR_ALPHA, "4097 x 4096 pixels");
    check_header(0x7fffffff, 0x7fffffff, 16, PNG_COLOUR_ALPHA, "");
    check_header(0xffffffff, 1, 8, PNG_GREY, "damaged");
    check_header(0, 1, 8, PNG_GREY, "damaged");
    check_header(1, 0, 8, PNG_GREY, "damaged");
    check_header(1, 1, 3, PNG_GREY, "damaged");
    check_header(1, 1, 8, 5, "damaged");
    check_header(2000, 2000, 8, PNG_COLOUR, "damaged"); /* and then there are no pixels */
}

static png_builder small_file(void)
{
    png_builder png = png_begin(5, 4, 8, PNG_COLOUR, 0);
    uint8_t rows[4 * 16] = {0};
    for (size_t n = 0; n < sizeof rows; n++)
        rows[n] = (uint8_t)(n % 16 == 0 ? n / 16 : 3 * n);
    png_pixels(&png, rows, sizeof rows);
    png_end(&png);
    return png;
}

/* libpng does not need the end of the file, but all of its pixels. */
static void cut_files_are_refused(void)
{
    const png_builder whole = small_file();
    picture in;
    char message[PICTURE_MESSAGE_MAX];
    for (size_t size = 0; size < whole.size - 16; size++) {
        CHECK(file_make(path(), whole.bytes, size), "write");
        CHECK(!png_file_read(path(), &in, message), "%zu of %zu bytes were read", size, whole.size);
        picture_free(&in);
    }
}

/* Any byte of a file may be wrong: it is read or refused, and nothing else happens. */
static void damage_is_survived(void)
{
    const png_builder whole = small_file();
    test_random random = {test_seed(2)};
    int read = 0, refused = 0;
    for (int64_t n = 0; n < test_effort(1000); n++) {
        png_builder png = whole;
        picture in;
        char message[PICTURE_MESSAGE_MAX] = "";
        for (int64_t k = test_random_below(&random, 3); k >= 0; k--)
            png.bytes[test_random_below(&random, (int64_t)png.size)] =
                (uint8_t)test_random_below(&random, 256);
        if (!store(&png))
            return;
        const bool fine = png_file_read(path(), &in, message);
        read += fine;
        refused += !fine;
        CHECK(fine == (in.pixels != NULL), "pixels without success");
        CHECK(fine || message[0] != '\0', "refused without a word");
        picture_free(&in);
    }
    CHECK(refused > read, "%d read, %d refused", read, refused);
}

static void what_cannot_be_written_is_said(void)
{
    picture out = picture_new(2, 2, 1);
    char message[PICTURE_MESSAGE_MAX] = "old";
    CHECK(!png_file_write("/nonexistent/folder/out.png", &out, message), "written");
    CHECK(message[0] == '\0', "stderr says it, and so does \"%s\"", message);
    picture_free(&out);
}

/* Such a program says what it lacks. */
static void without_libpng(void)
{
    check_refused("any.png", "libpng-dev");
    test_skip("built without libpng");
}

static void with_libpng(void)
{
    folder = temp_folder_new();
    RUN(round_trips);
    RUN(all_kinds_become_8_bits);
    RUN(sixteen_bits_are_read);
    RUN(what_is_no_picture_is_refused);
    RUN(sizes_are_limited);
    RUN(cut_files_are_refused);
    RUN(damage_is_survived);
    RUN(what_cannot_be_written_is_said);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    if (png_file_supported())
        with_libpng();
    else
        RUN(without_libpng);
    return test_end();
}
