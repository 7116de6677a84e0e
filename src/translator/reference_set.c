/* SPDX-License-Identifier: MIT */
/* Reads references: one file per reference of each sentence, or one file of pairs, which are sorted
 * to find those that share a source. */
#include "translator/reference_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(char message[TEXT_FILE_MESSAGE_MAX])
{
    snprintf(message, TEXT_FILE_MESSAGE_MAX, "out of memory");
    return false;
}

void reference_set_free(reference_set *set)
{
    for (int n = 0; n < set->file_count; n++)
        line_file_free(&set->files[n]);
    free(set->files);
    free(set->starts);
    free(set->references);
    free(set->sources);
    free(set->text);
    *set = (reference_set){.sentences = 0};
}

/* Reads the files and allocates room for all their lines. */
static bool read_files(reference_set *set, const char *const *paths, int count,
                       char message[TEXT_FILE_MESSAGE_MAX])
{
    *set = (reference_set){.files = calloc((size_t)count, sizeof *set->files)};
    if (set->files == NULL)
        return out_of_memory(message);
    for (; set->file_count < count; set->file_count++)
        if (!line_file_read(&set->files[set->file_count], paths[set->file_count], message)) {
            line_file_free(&set->files[set->file_count]);
            return false;
        }
    const size_t lines = set->files[0].count;
    set->starts = calloc(lines + 1, sizeof *set->starts);
    set->references = calloc(lines * (size_t)count + 1, sizeof *set->references);
    return (set->starts != NULL && set->references != NULL) || out_of_memory(message);
}

bool reference_set_read(reference_set *set, const char *const *paths, int count,
                        char message[TEXT_FILE_MESSAGE_MAX])
{
    if (!read_files(set, paths, count, message))
        return false;
    const size_t lines = set->files[0].count;
    for (int n = 1; n < count; n++)
        if (set->files[n].count != lines) {
            snprintf(message, TEXT_FILE_MESSAGE_MAX, "%.180s has %zu lines, but %.180s has %zu",
                     paths[n], set->files[n].count, paths[0], lines);
            return false;
        }
    for (size_t n = 0; n < lines; n++) {
        for (int file = 0; file < count; file++)
            set->references[n * (size_t)count + (size_t)file] = set->files[file].lines[n];
        set->starts[n + 1] = (n + 1) * (size_t)count;
    }
    set->sentences = lines;
    return true;
}

/* A line of pairs. */
typedef struct pair_line {
    const char *source, *reference;
    size_t line, first; /* its number, and that of the first line with its source */
} pair_line;

static int by_number(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int by_source(const void *a, const void *b)
{
    const pair_line *const x = a, *const y = b;
    const int order = strcmp(x->source, y->source);
    return order ? order : by_number(x->line, y->line);
}

static int by_first(const void *a, const void *b)
{
    const pair_line *const x = a, *const y = b;
    const int order = by_number(x->first, y->first);
    return order ? order : by_number(x->line, y->line);
}

/* Divides a line at its tab. */
static bool divide_line(char *line, pair_line *pair)
{
    char *const tab = strchr(line, '\t');
    if (tab == NULL)
        return false;
    *tab = '\0';
    pair->source = line;
    pair->reference = tab + 1;
    tab[1 + strcspn(tab + 1, "\t")] = '\0';
    return true;
}

static bool divide_lines(const line_file *file, pair_line *pairs, const char *path,
                         char message[TEXT_FILE_MESSAGE_MAX])
{
    for (size_t n = 0; n < file->count; n++) {
        if (!divide_line(file->lines[n], &pairs[n])) {
            snprintf(message, TEXT_FILE_MESSAGE_MAX,
                     "%.300s:%zu: has no tab; a line is a source, a tab and a reference", path,
                     n + 1);
            return false;
        }
        pairs[n].line = n;
    }
    return true;
}

static void group_by_source(pair_line *pairs, size_t count)
{
    qsort(pairs, count, sizeof *pairs, by_source);
    for (size_t n = 0; n < count; n++) {
        const bool same = n > 0 && strcmp(pairs[n].source, pairs[n - 1].source) == 0;
        pairs[n].first = same ? pairs[n - 1].first : pairs[n].line;
    }
    qsort(pairs, count, sizeof *pairs, by_first);
}

static void fill_from_groups(reference_set *set, const pair_line *pairs, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        if (pairs[n].line == pairs[n].first)
            set->sources[set->sentences++] = pairs[n].source;
        set->references[n] = pairs[n].reference;
        set->starts[set->sentences] = n + 1;
    }
}

bool reference_set_read_tsv(reference_set *set, const char *path,
                            char message[TEXT_FILE_MESSAGE_MAX])
{
    if (!read_files(set, &path, 1, message))
        return false;
    const size_t count = set->files[0].count;
    pair_line *const pairs = calloc(count + 1, sizeof *pairs);
    set->sources = calloc(count + 1, sizeof *set->sources);
    bool fine = (pairs != NULL && set->sources != NULL) || out_of_memory(message);
    fine = fine && divide_lines(&set->files[0], pairs, path, message);
    if (fine) {
        group_by_source(pairs, count);
        fill_from_groups(set, pairs, count);
    }
    free(pairs);
    return fine;
}

/* ---------------------------------------------------------------- memory ----- */

static size_t count_bytes(const pair_file *file)
{
    size_t bytes = 0;
    for (int64_t n = 0; n < file->count; n++)
        for (int side = 0; side < TRANSFORMER_SIDES; side++)
            bytes += file->pairs[n].length[side] + 1;
    return bytes;
}

/* Copies a side of a pair to *to, which moves past its end. */
static const char *copy_side(const pair_text *pair, int side, char **to)
{
    char *const copy = *to;
    memcpy(copy, pair->text[side], pair->length[side]);
    copy[pair->length[side]] = '\0';
    *to += pair->length[side] + 1;
    return copy;
}

bool reference_set_of_pairs(reference_set *set, const pair_file *file)
{
    const size_t count = (size_t)file->count;
    *set = (reference_set){.text = malloc(count_bytes(file) + 1)};
    set->starts = calloc(count + 1, sizeof *set->starts);
    set->references = calloc(count + 1, sizeof *set->references);
    set->sources = calloc(count + 1, sizeof *set->sources);
    pair_line *const pairs = calloc(count + 1, sizeof *pairs);
    const bool fine = set->text && set->starts && set->references && set->sources && pairs;
    if (fine) {
        char *to = set->text;
        for (size_t n = 0; n < count; n++) {
            pairs[n].source = copy_side(&file->pairs[n], TRANSFORMER_SOURCE, &to);
            pairs[n].reference = copy_side(&file->pairs[n], TRANSFORMER_TARGET, &to);
            pairs[n].line = n;
        }
        group_by_source(pairs, count);
        fill_from_groups(set, pairs, count);
    }
    free(pairs);
    return fine;
}
