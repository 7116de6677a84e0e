/* SPDX-License-Identifier: MIT */
/* Files of sentence pairs: what is read, which lines are skipped and why, what is refused. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_files.h"
#include "translator/pair_file.h"

static temp_folder folder;

/* Writes a file of `size` bytes and opens it. */
static mha_status open_bytes(pair_file *file, const char *bytes, size_t size, char *message)
{
    const char *const path = temp_path(&folder, "pairs.tsv");
    message[0] = '\0';
    CHECK(file_make(path, bytes, size), "write");
    return pair_file_open(file, path, NULL, message);
}

static void expect_pair_text(const pair_file *file, int64_t number, const char *source,
                             const char *target, int64_t line)
{
    const char *const wanted[] = {source, target};
    if (!CHECK(number < file->count, "there is no pair %d", (int)number))
        return;
    const pair_text *const pair = &file->pairs[number];
    CHECK(pair->line == line, "pair %d is line %d", (int)number, (int)pair->line);
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        CHECK(pair->length[side] == strlen(wanted[side]) &&
                  memcmp(pair->text[side], wanted[side], pair->length[side]) == 0,
              "pair %d: \"%.*s\", not \"%s\"", (int)number, (int)pair->length[side],
              pair->text[side], wanted[side]);
}

static void lines_are_pairs(void)
{
    static const char text[] = "Hello.\tBonjour.\r\n"
                               " I am here. \t Je suis là.\tby somebody\tand more\n"
                               "Yes.\tOui.";
    char message[TRANSFORMER_MESSAGE_MAX];
    pair_file file;
    if (!CHECK(open_bytes(&file, text, strlen(text), message) == MHA_OK, "%s", message))
        return;
    CHECK(file.count == 3 && file.lines == 3 && file.fault_count == 0, "%d pairs", (int)file.count);
    expect_pair_text(&file, 0, "Hello.", "Bonjour.", 1);
    expect_pair_text(&file, 1, "I am here.", "Je suis là.", 2);
    expect_pair_text(&file, 2, "Yes.", "Oui.", 3);
    pair_file_close(&file);
}

static void bad_lines_are_skipped_and_named(void)
{
    static const char text[] = "one\tun\n"
                               "no tab here\n"
                               "\tempty source\n"
                               "empty target\t\n"
                               "\n"
                               "bad \xff byte\tmauvais\n"
                               "surrogate\t\xed\xa0\x80\n"
                               "zero \0 byte\tzéro\n"
                               "two\tdeux\n";
    static const char *const reasons[] = {"no tab", "empty", "empty", "no tab", "UTF-8"};
    char message[TRANSFORMER_MESSAGE_MAX];
    pair_file file;
    if (!CHECK(open_bytes(&file, text, sizeof text - 1, message) == MHA_OK, "%s", message))
        return;
    CHECK(file.count == 2 && file.lines == 9 && file.fault_count == 7, "%d pairs, %d faults",
          (int)file.count, (int)file.fault_count);
    expect_pair_text(&file, 0, "one", "un", 1);
    expect_pair_text(&file, 1, "two", "deux", 9);
    for (int n = 0; n < PAIR_FAULTS_SHOWN; n++)
        CHECK(file.faults[n].line == n + 2 && strstr(file.faults[n].reason, reasons[n]) != NULL,
              "line %d: %s", (int)file.faults[n].line, file.faults[n].reason);
    pair_file_close(&file);
}

static void long_lines_are_skipped(void)
{
    const size_t size = PAIR_LINE_MAX + 10;
    char *const text = malloc(size);
    char message[TRANSFORMER_MESSAGE_MAX];
    pair_file file;
    memset(text, 'a', size);
    memcpy(text, "a\tb\n", 4);
    text[size - 3] = '\t';
    if (CHECK(open_bytes(&file, text, size, message) == MHA_OK, "%s", message))
        CHECK(file.count == 1 && file.fault_count == 1 && file.faults[0].line == 2 &&
                  strcmp(file.faults[0].reason, "too long") == 0,
              "%d faults", (int)file.fault_count);
    pair_file_close(&file);
    free(text);
}

static void two_files_correspond(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    char source[160], target[160];
    pair_file file;
    snprintf(source, sizeof source, "%s", temp_path(&folder, "a"));
    snprintf(target, sizeof target, "%s", temp_path(&folder, "b"));
    CHECK(file_make(source, "one\n\nthree\tx\n", 13) && file_make(target, "un\ndeux\ntrois", 13),
          "write");
    if (CHECK(pair_file_open(&file, source, target, message) == MHA_OK, "%s", message)) {
        CHECK(file.count == 2 && file.fault_count == 1 && file.faults[0].line == 2, "%d pairs",
              (int)file.count);
        expect_pair_text(&file, 1, "three\tx", "trois", 3);
    }
    pair_file_close(&file);
    CHECK(file_make(target, "un\ndeux\n", 8), "write");
    CHECK(pair_file_open(&file, source, target, message) == MHA_ERR_FORMAT &&
              strstr(message, "the second ends after 2") != NULL,
          "%s", message);
    CHECK(file.pairs == NULL && file.count == 0, "not zero after an error");
}

static void files_without_pairs_are_refused(void)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    pair_file file;
    CHECK(open_bytes(&file, "a b c\n\n", 7, message) == MHA_ERR_FORMAT &&
              strstr(message, "line 1: no tab") != NULL,
          "%s", message);
    CHECK(open_bytes(&file, "", 0, message) != MHA_OK && message[0] != '\0', "an empty file");
    CHECK(pair_file_open(&file, "/nonexistent/pairs", NULL, message) == MHA_ERR_FILE &&
              strstr(message, "/nonexistent/pairs") != NULL,
          "%s", message);
    CHECK(pair_file_open(&file, folder.path, NULL, message) != MHA_OK, "a folder");
    pair_file_close(&file);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    folder = temp_folder_new();
    RUN(lines_are_pairs);
    RUN(bad_lines_are_skipped_and_named);
    RUN(long_lines_are_skipped);
    RUN(two_files_correspond);
    RUN(files_without_pairs_are_refused);
    temp_folder_free(&folder);
    return test_end();
}
