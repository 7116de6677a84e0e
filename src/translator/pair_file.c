/* SPDX-License-Identifier: MIT */
/* Reads files of sentence pairs (pair_file.h). */
#include "translator/pair_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

/* --------------------------------------------------------------- lines ----- */

typedef struct text_span {
    const char *text;
    size_t length;
} text_span;

/* Takes the next line off `rest`, without its end. Returns false if there is none. */
static bool take_line(text_span *rest, text_span *line)
{
    if (rest->length == 0)
        return false;
    const char *const end = memchr(rest->text, '\n', rest->length);
    const size_t length = end ? (size_t)(end - rest->text) : rest->length;
    const size_t taken = end ? length + 1 : length;
    *line =
        (text_span){rest->text, length > 0 && rest->text[length - 1] == '\r' ? length - 1 : length};
    *rest = (text_span){rest->text + taken, rest->length - taken};
    return true;
}

/* Without spaces at both ends. */
static text_span trim(text_span s)
{
    while (s.length > 0 && s.text[0] == ' ') {
        s.text++;
        s.length--;
    }
    while (s.length > 0 && s.text[s.length - 1] == ' ')
        s.length--;
    return s;
}

/* Why a sentence cannot be used; NULL if it can. */
static const char *fault_of(text_span s)
{
    if (s.length == 0)
        return "a side is empty";
    if (s.length > PAIR_LINE_MAX)
        return "too long";
    for (size_t at = 0; at < s.length;) {
        uint32_t c;
        const size_t bytes = utf8_decode(s.text + at, s.length - at, &c);
        if (bytes == 0)
            return "not UTF-8";
        if (c == 0)
            return "a zero byte";
        at += bytes;
    }
    return NULL;
}

/* ---------------------------------------------------------------- pairs ----- */

static void add_fault(pair_file *file, const char *reason)
{
    if (file->fault_count < PAIR_FAULTS_SHOWN)
        file->faults[file->fault_count] = (pair_fault){file->lines, reason};
    file->fault_count++;
}

/* Adds the pair of the current line, or its fault. */
static mha_status add_pair(pair_file *file, text_span source, text_span target)
{
    const text_span sides[] = {trim(source), trim(target)};
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const char *const reason = fault_of(sides[side]);
        if (reason) {
            add_fault(file, reason);
            return MHA_OK;
        }
    }
    pair_text *const grown =
        mhai_array_grow(file->pairs, &file->room, (size_t)file->count + 1, sizeof *file->pairs);
    if (!grown)
        return MHA_ERR_MEMORY;
    file->pairs = grown;
    file->pairs[file->count++] = (pair_text){
        {sides[0].text, sides[1].text}, {sides[0].length, sides[1].length}, file->lines};
    return MHA_OK;
}

static mha_status add_columns(pair_file *file, text_span line)
{
    const char *const tab = memchr(line.text, '\t', line.length);
    if (!tab) {
        add_fault(file, "no tab between two sentences");
        return MHA_OK;
    }
    const size_t first = (size_t)(tab - line.text), left = line.length - first - 1;
    const char *const second = memchr(tab + 1, '\t', left);
    return add_pair(file, (text_span){line.text, first},
                    (text_span){tab + 1, second ? (size_t)(second - tab - 1) : left});
}

static text_span content(const mapped_file *file)
{
    return (text_span){(const char *)file->bytes, file->size};
}

static mha_status read_columns(pair_file *file)
{
    text_span rest = content(&file->files[0]), line;
    mha_status status = MHA_OK;
    while (status == MHA_OK && take_line(&rest, &line)) {
        file->lines++;
        status = add_columns(file, line);
    }
    return status;
}

/* Corresponding lines of two files. */
static mha_status read_files(pair_file *file, char message[TRANSFORMER_MESSAGE_MAX])
{
    text_span rest[] = {content(&file->files[0]), content(&file->files[1])}, line[2];
    mha_status status = MHA_OK;
    while (status == MHA_OK) {
        const bool there[] = {take_line(&rest[0], &line[0]), take_line(&rest[1], &line[1])};
        if (!there[0] && !there[1])
            return MHA_OK;
        if (there[0] != there[1]) {
            snprintf(message, TRANSFORMER_MESSAGE_MAX,
                     "the two files must have the same number of lines, but %s ends after %" PRId64,
                     there[0] ? "the second" : "the first", file->lines);
            return MHA_ERR_FORMAT;
        }
        file->lines++;
        status = add_pair(file, line[0], line[1]);
    }
    return status;
}

/* ----------------------------------------------------------------- file ----- */

static mha_status read_all(pair_file *file, const char *path, const char *target,
                           char message[TRANSFORMER_MESSAGE_MAX])
{
    mha_status status = mapped_file_open(&file->files[0], path, message, TRANSFORMER_MESSAGE_MAX);
    if (status == MHA_OK && target)
        status = mapped_file_open(&file->files[1], target, message, TRANSFORMER_MESSAGE_MAX);
    if (status != MHA_OK)
        return status;
    status = target ? read_files(file, message) : read_columns(file);
    if (status == MHA_ERR_MEMORY)
        snprintf(message, TRANSFORMER_MESSAGE_MAX, "out of memory for the pairs of %s", path);
    if (status == MHA_OK && file->count == 0) {
        snprintf(message, TRANSFORMER_MESSAGE_MAX,
                 "%s: none of its %" PRId64 " lines is a pair (line %" PRId64 ": %s)", path,
                 file->lines, file->faults[0].line, file->faults[0].reason);
        status = MHA_ERR_FORMAT;
    }
    return status;
}

mha_status pair_file_open(pair_file *file, const char *path, const char *target,
                          char message[TRANSFORMER_MESSAGE_MAX])
{
    *file = (pair_file){.count = 0};
    const mha_status status = read_all(file, path, target, message);
    if (status != MHA_OK)
        pair_file_close(file);
    return status;
}

void pair_file_close(pair_file *file)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        mapped_file_close(&file->files[side]);
    free(file->pairs);
    *file = (pair_file){.count = 0};
}
