/* SPDX-License-Identifier: MIT */
/*
 * Reads the words of an imported page. Words are cut out of the text of the file in place, for both
 * sides at once where the file does not distinguish them. Their number is compared with that of the
 * weights at the end, for a message that has both.
 */
#include "page/page_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"

/* A file while it is read. */
typedef struct reading {
    page_words *words;
    const char *path;
    int found[PAGE_SIDES]; /* words read so far; -1: the side is not in the file */
    char *message;
} reading;

static bool wrong(const reading *r, const char *what)
{
    snprintf(r->message, TEXT_FILE_MESSAGE_MAX, "%s: %s", r->path, what);
    return false;
}

/* Adds a word to a side. Words for which there is no room are only counted. */
static void take(reading *r, int side, const char *word)
{
    if (r->found[side] < r->words->count[side])
        r->words->words[side][r->found[side]] = word;
    r->found[side]++;
}

static void take_both(reading *r, const char *word)
{
    for (int side = 0; side < PAGE_SIDES; side++)
        take(r, side, word);
}

/* ---------------------------------------------------------------- text ----- */

/* Ends each line with a 0 in place. */
static void read_lines(reading *r)
{
    char *at = r->words->text;
    while (*at != '\0') {
        char *const line = at;
        at += strcspn(at, "\n");
        char *const end = at > line && at[-1] == '\r' ? at - 1 : at;
        at += *at == '\n';
        *end = '\0';
        take_both(r, line);
    }
}

/* ---------------------------------------------------------------- JSON ----- */

/* Reads words up to the closing bracket; the opening one has been read. PAGE_SIDES: for both
 * sides. */
static bool read_array(reading *r, json_reader *j, int side)
{
    json_reader_token token;
    while ((token = json_reader_next(j)) == JSON_STRING)
        if (side == PAGE_SIDES)
            take_both(r, j->text);
        else
            take(r, side, j->text);
    return token == JSON_ARRAY_END || wrong(r, "an array of strings was expected");
}

/* Reads {"source": [...], "target": [...]}; its opening brace has been read. */
static bool read_object(reading *r, json_reader *j)
{
    json_reader_token token;
    r->found[PAGE_SOURCE] = r->found[PAGE_TARGET] = -1;
    while ((token = json_reader_next(j)) == JSON_KEY) {
        const bool source = strcmp(j->text, "source") == 0;
        if (!source && strcmp(j->text, "target") != 0)
            return wrong(r, "only the keys \"source\" and \"target\" are allowed");
        const int side = source ? PAGE_SOURCE : PAGE_TARGET;
        r->found[side] = 0;
        if (json_reader_next(j) != JSON_ARRAY)
            return wrong(r, "\"source\" and \"target\" must be arrays of strings");
        if (!read_array(r, j, side))
            return false;
    }
    return token == JSON_OBJECT_END;
}

static bool read_json(reading *r, size_t length)
{
    json_reader j = json_reader_begin(r->words->text, length);
    const json_reader_token first = json_reader_next(&j);
    bool fine = first == JSON_ARRAY    ? read_array(r, &j, PAGE_SIDES)
                : first == JSON_OBJECT ? read_object(r, &j)
                                       : wrong(r, "an array of strings was expected");
    fine = fine && json_reader_next(&j) == JSON_END;
    if (!fine && j.fault != JSON_FINE)
        wrong(r, j.fault == JSON_SYNTAX ? j.problem : "a key occurs twice");
    json_reader_free(&j);
    return fine;
}

/* --------------------------------------------------------------- whole ----- */

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), own = strlen(end);
    return length >= own && strcmp(text + length - own, end) == 0;
}

static bool read_file(reading *r)
{
    size_t length;
    r->words->text = text_file_read(r->path, &length, r->message);
    if (r->words->text == NULL)
        return false;
    if (ends_in(r->path, ".json")) {
        if (!read_json(r, length))
            return false;
    } else if (strlen(r->words->text) < length) {
        return wrong(r, "has a byte of 0");
    } else {
        read_lines(r);
    }
    static const char *const names[PAGE_SIDES] = {"source", "target"};
    for (int side = 0; side < PAGE_SIDES; side++)
        if (r->words->count[side] > 0 && r->found[side] != r->words->count[side]) {
            if (r->found[side] < 0)
                snprintf(r->message, TEXT_FILE_MESSAGE_MAX, "%s: there is no \"%s\"", r->path,
                         names[side]);
            else
                snprintf(r->message, TEXT_FILE_MESSAGE_MAX,
                         "%s: %d words, but the weights are of %d words in the %s", r->path,
                         r->found[side], r->words->count[side], names[side]);
            return false;
        }
    return true;
}

/* Makes words "1", "2", ... which both sides share. False: out of memory. */
static bool make_numbers(page_words *words)
{
    enum { DIGITS = 12 };
    const size_t most =
        (size_t)(words->count[PAGE_SOURCE] > words->count[PAGE_TARGET] ? words->count[PAGE_SOURCE]
                                                                       : words->count[PAGE_TARGET]);
    if ((words->text = malloc((most + 1) * DIGITS)) == NULL)
        return false;
    for (size_t n = 0; n < most; n++) {
        char *const word = words->text + n * DIGITS;
        snprintf(word, DIGITS, "%d", (int)n + 1);
        for (int side = 0; side < PAGE_SIDES; side++)
            if ((int)n < words->count[side])
                words->words[side][n] = word;
    }
    return true;
}

/* Numbers the words of a side: each has the index of its first occurrence. */
static void find_same_words(const page_words *words, int side)
{
    for (int n = 0; n < words->count[side]; n++) {
        int same = 0;
        while (same < n && strcmp(words->words[side][same], words->words[side][n]) != 0)
            same++;
        words->numbers[side][n] = same;
    }
}

/* ---------------------------------------------------- marks and pieces ----- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The marks that tokenizers add, and everything between "<|" and "|>". Other words in brackets,
 * such as "<dog>", are text. */
static bool is_mark(const char *word)
{
    static const char *const marks[] = {
        "[CLS]", "[SEP]", "[PAD]",   "[UNK]", "[MASK]",    "[BOS]", "[EOS]",
        "<s>",   "</s>",  "<pad>",   "<unk>", "<mask>",    "<bos>", "<eos>",
        "<sep>", "<cls>", "<begin>", "<end>", "<unknown>",
    };
    const size_t length = strlen(word);
    for (size_t n = 0; n < sizeof marks / sizeof marks[0]; n++)
        if (strcmp(word, marks[n]) == 0)
            return true;
    return length > 4 && starts_with(word, "<|") && strcmp(word + length - 2, "|>") == 0;
}

/* Whether any word begins as SentencePiece and byte-level BPE mark the beginning of a word. */
static bool marks_beginnings(const page_words *words, int side)
{
    for (int n = 0; n < words->count[side]; n++)
        if (starts_with(words->words[side][n], "\xe2\x96\x81") ||
            starts_with(words->words[side][n], "\xc4\xa0"))
            return true;
    return false;
}

static void find_pieces(const page_words *words, int side)
{
    const bool beginnings = marks_beginnings(words, side);
    for (int n = 0; n < words->count[side]; n++) {
        const char *const word = words->words[side][n];
        const bool begins = starts_with(word, "\xe2\x96\x81") || starts_with(word, "\xc4\xa0");
        words->marks[side][n] = is_mark(word);
        words->continues[side][n] = n > 0 && !words->marks[side][n] && !words->marks[side][n - 1] &&
                                    (beginnings ? !begins : starts_with(word, "##"));
    }
}

/* One element more than needed, so that no size is 0. Words are "" until they are read, so that a
 * file with too few of them leaves no NULL. */
static bool allocate(page_words *words)
{
    bool fine = true;
    for (int side = 0; side < PAGE_SIDES; side++) {
        const size_t count = (size_t)words->count[side] + 1;
        words->words[side] = calloc(count, sizeof *words->words[side]);
        words->numbers[side] = calloc(count, sizeof *words->numbers[side]);
        words->marks[side] = calloc(count, sizeof *words->marks[side]);
        words->continues[side] = calloc(count, sizeof *words->continues[side]);
        fine = fine && words->words[side] != NULL && words->numbers[side] != NULL &&
               words->marks[side] != NULL && words->continues[side] != NULL;
        for (size_t n = 0; fine && n < count; n++)
            words->words[side][n] = "";
    }
    return fine;
}

bool page_words_read(page_words *words, const char *path, const int count[PAGE_SIDES],
                     char message[TEXT_FILE_MESSAGE_MAX])
{
    *words = (page_words){.count = {count[PAGE_SOURCE], count[PAGE_TARGET]}};
    reading r = {words, path, {0, 0}, message};
    if (!allocate(words) || (path == NULL && !make_numbers(words))) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX, "out of memory");
        return false;
    }
    if (path != NULL && !read_file(&r))
        return false;
    for (int side = 0; side < PAGE_SIDES; side++) {
        find_same_words(words, side);
        find_pieces(words, side);
    }
    return true;
}

void page_words_free(page_words *words)
{
    for (int side = 0; side < PAGE_SIDES; side++) {
        free((void *)words->words[side]);
        free(words->numbers[side]);
        free(words->marks[side]);
        free(words->continues[side]);
    }
    free(words->text);
}

static void put_flags(json *j, const char *name, const char *what, const bool *flags, int count)
{
    char key[32];
    snprintf(key, sizeof key, "%s_%s", name, what);
    json_open_array(j, key);
    for (int n = 0; n < count; n++)
        json_integer(j, NULL, flags[n]);
    json_close(j);
}

void page_side_put(json *j, const char *name, const char *const *words, const bool *marks,
                   const bool *continues, int count)
{
    json_strings(j, name, words, count);
    put_flags(j, name, "marks", marks, count);
    put_flags(j, name, "continues", continues, count);
}
