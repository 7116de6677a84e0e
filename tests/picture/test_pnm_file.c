/* SPDX-License-Identifier: MIT */
/* Pictures of PGM and PPM files, and files that are not what they say. */
#include "picture/pnm_file.h"

#include <stdlib.h>
#include <string.h>

#include "picture/picture_file.h"
#include "picture/picture_resize.h"
#include "support/temp_files.h"
#include "support/test.h"

static temp_folder folder;

static const char *path(void)
{
    return temp_path(&folder, "picture.pnm");
}

static void store(const char *bytes, size_t size)
{
    CHECK(file_make(path(), bytes, size), "cannot write %s", path());
}

static void reads(void)
{
    char message[PICTURE_MESSAGE_MAX];
    picture p;
    store("P5 # one\n# two\n 3\t2\n255\nabcdef", 30);
    CHECK(pnm_file_is(path()), "a PGM file");
    if (CHECK(picture_file_read(path(), &p, message), "%s", message)) {
        CHECK(p.rows == 2 && p.columns == 3 && p.channels == 1, "%td x %td x %td", p.rows,
              p.columns, p.channels);
        CHECK(memcmp(p.pixels, "abcdef", 6) == 0, "other pixels");
        picture_free(&p);
    }
    store("P6\n1 2\n255\nabcdef", 17);
    if (CHECK(picture_file_read(path(), &p, message), "%s", message)) {
        uint8_t planes[3 * 2 * 2];
        CHECK(p.rows == 2 && p.columns == 1 && p.channels == 3, "colours");
        if (CHECK(picture_input(&p, 2, 3, planes), "as the input of a model"))
            CHECK(memcmp(planes, "aaddbbeeccff", 12) == 0, "%.12s", (const char *)planes);
        picture_free(&p);
    }
}

static void refuses(const char *bytes, size_t size, const char *why)
{
    char message[PICTURE_MESSAGE_MAX] = "";
    picture p;
    store(bytes, size);
    if (!CHECK(!pnm_file_read(path(), &p, message), "read: %s", why))
        picture_free(&p);
    CHECK(strstr(message, why) != NULL && p.pixels == NULL, "\"%s\", not \"%s\"", message, why);
}

static void damaged(void)
{
    refuses("P5 3 2 255\nabcde", 16, "cut off");
    refuses("P5 3 2 254\nabcdef", 17, "and 255");
    refuses("P5 0 2 255\nabcdef", 17, "columns, rows");
    refuses("P5 -3 2 255\nabcdef", 18, "columns, rows");
    refuses("P5 3x2 255\nabcdef", 17, "columns, rows");
    refuses("P5 3 2", 6, "columns, rows");
    refuses("P5 # no end", 11, "columns, rows");
    refuses("P5 99999999999999999999 2 255\nabc", 33, "too large");
    refuses("P5 16384 16384 255\nabc", 22, "too large");
    refuses("P4 3 2 255\nabcdef", 17, "no PGM or PPM");
    refuses("", 0, "no PGM or PPM");
}

static void missing(void)
{
    char message[PICTURE_MESSAGE_MAX];
    picture p;
    CHECK(!pnm_file_is("/nonexistent/p.pgm"), "a file that is not there");
    CHECK(!picture_file_read("/nonexistent/p.pgm", &p, message), "read: nothing");
    CHECK(!pnm_file_read("/nonexistent/p.pgm", &p, message) &&
              strstr(message, "/nonexistent/p.pgm") != NULL,
          "%s", message);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    folder = temp_folder_new();
    RUN(reads);
    RUN(damaged);
    RUN(missing);
    temp_folder_free(&folder);
    return test_end();
}
