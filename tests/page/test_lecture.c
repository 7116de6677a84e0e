/* SPDX-License-Identifier: MIT */
/* Lectures of "mha view": files that are read, and files that are refused with the right line. */
#include "page/page_lecture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

static page_lecture lecture;
static char message[TEXT_FILE_MESSAGE_MAX];

/* Reads these bytes from a file; what was read before is freed. */
static bool read_bytes(const char *bytes, size_t length)
{
    char path[] = "/tmp/mha-lecture-XXXXXX";
    const int number = mkstemp(path);
    FILE *const file = fdopen(number, "wb");
    CHECK(fwrite(bytes, 1, length, file) == length, "%s cannot be written", path);
    fclose(file);
    page_lecture_free(&lecture);
    message[0] = '\0';
    const bool fine = page_lecture_read(&lecture, path, false, message);
    unlink(path);
    return fine;
}

static bool read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void our_own_has_ten_stops(void)
{
    page_lecture_free(&lecture);
    CHECK(page_lecture_read(&lecture, NULL, true, message), "%s", message);
    CHECK(lecture.count == 8, "%d stops on pictures", lecture.count);
    page_lecture_free(&lecture);
    CHECK(page_lecture_read(&lecture, NULL, false, message), "%s", message);
    CHECK(lecture.count == 10, "%d stops", lecture.count);
    for (int n = 0; n < lecture.count; n++)
        CHECK(lecture.stops[n].text != NULL && lecture.stops[n].state[0] != '\0', "stop %d", n + 1);
}

static void a_file_becomes_stops(void)
{
    CHECK(read_text("# A talk\r\n\r\n## One\r\n@ #view=head&head=2\r\nfirst line\r\nsecond\r\n\r\n"
                    "a paragraph  \r\n## Two\nno state"),
          "%s", message);
    CHECK(lecture.count == 2 && strcmp(lecture.title, "A talk") == 0, "%d stops", lecture.count);
    CHECK(strcmp(lecture.stops[0].title, "One") == 0, "%s", lecture.stops[0].title);
    CHECK(strcmp(lecture.stops[0].state, "view=head&head=2") == 0, "%s", lecture.stops[0].state);
    CHECK(strcmp(lecture.stops[0].text, "first line\nsecond\n\na paragraph") == 0, "%s",
          lecture.stops[0].text);
    CHECK(strcmp(lecture.stops[1].state, "") == 0, "%s", lecture.stops[1].state);
    CHECK(strcmp(lecture.stops[1].text, "no state") == 0, "%s", lecture.stops[1].text);
}

static void wrong_files_are_refused_with_the_line(void)
{
    static const char *const cases[][3] = {
        {"", "line 0", "no stop"},
        {"# T\n", "line 1", "no stop"},
        {"text\n", "line 1", "begins with \"# Title\""},
        {"## A\n", "line 1", "begins with \"# Title\""},
        {"#\n", "line 1", "needs a title"},
        {"# T\n\n##  \n", "line 3", "needs a title"},
        {"# T\ntext\n", "line 2", "before the first stop"},
        {"# T\n@ view=head\n", "line 2", "belongs to a stop"},
        {"# T\n## A\n@ view=head\n@ view=flow\n", "line 4", "already"},
        {"# T\n## A\n@ view\n", "line 3", "name=value"},
        {"# T\n## A\n@ view=head&colour=3\n", "line 3", "no \"colour\""},
        {"# T\n## A\n@ <script>=1\n", "line 3", "name=value"},
        {"# T\n## A\nbell \a\n", "line 3", "control character"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        CHECK(!read_text(cases[n][0]), "read: %s", cases[n][0]);
        CHECK(strstr(message, cases[n][1]) != NULL && strstr(message, cases[n][2]) != NULL,
              "%s: %s", cases[n][0], message);
    }
    CHECK(!read_bytes("# T\n## A\n\0\n", 11) && strstr(message, "bytes of 0") != NULL, "%s",
          message);
    CHECK(!read_bytes("# \xff\n## A\n", 9) && strstr(message, "UTF-8") != NULL, "%s", message);
}

/* `count` times a text after a beginning, for free(). */
static char *repeated(const char *begin, const char *text, int count)
{
    char *const all = malloc(strlen(begin) + strlen(text) * (size_t)count + 1);
    char *at = all + sprintf(all, "%s", begin);
    for (int n = 0; n < count; n++)
        at += sprintf(at, "%s", text);
    return all;
}

static void long_files_are_refused(void)
{
    static const struct {
        const char *begin, *text;
        int count;
        const char *why;
    } cases[] = {
        {"# T\n", "## S\n", LECTURE_STOPS_MAX + 1, "at most 100 stops"},
        {"# T\n## S\n", "x", LECTURE_LINE_MAX + 1, "at most 4000 bytes"},
        {"# T\n## S\n", "a line of text that is not long\n", 300, "at most 8000 bytes"},
        {"# T\n## S\n", "0123456789\n", 30000, "256 KB"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char *const text = repeated(cases[n].begin, cases[n].text, cases[n].count);
        CHECK(!read_text(text) && strstr(message, cases[n].why) != NULL, "%s: %s", cases[n].why,
              message);
        free(text);
    }
    char *const most = repeated("# T\n", "## S\n", LECTURE_STOPS_MAX);
    CHECK(read_text(most) && lecture.count == LECTURE_STOPS_MAX, "%s", message);
    free(most);
}

/* Bytes of a good file are changed: no crash, and no refusal without a message. */
static void damaged_files(void)
{
    static const char good[] =
        "# T\n## One\n@ view=head&head=2\ntext\n\nmore\n## Two\n@ view=flow\n";
    test_random random = {test_seed(11)};
    for (int64_t n = test_effort(400); n > 0; n--) {
        char bytes[sizeof good];
        memcpy(bytes, good, sizeof good);
        for (int64_t hits = test_random_below(&random, 4); hits >= 0; hits--)
            bytes[test_random_below(&random, (int64_t)sizeof good - 1)] =
                (char)test_random_below(&random, 256);
        CHECK(read_bytes(bytes, sizeof good - 1) || message[0] != '\0', "no message");
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(our_own_has_ten_stops);
    RUN(a_file_becomes_stops);
    RUN(wrong_files_are_refused_with_the_line);
    RUN(long_files_are_refused);
    RUN(damaged_files);
    page_lecture_free(&lecture);
    return test_end();
}
