/* SPDX-License-Identifier: MIT */
/* Reads golden files and runs a test for each of them (golden_file.h). */
#include "support/golden_file.h"

#include "support/test.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const golden_entry *golden_find(const golden *g, const char *name)
{
    for (int n = 0; n < g->count; n++)
        if (strcmp(g->entries[n].name, name) == 0)
            return &g->entries[n];
    return NULL;
}

double golden_number(const golden *g, const char *name)
{
    const golden_entry *const found = golden_find(g, name);
    return found ? found->number : 0;
}

ptrdiff_t golden_extent(const golden *g, const char *name)
{
    return (ptrdiff_t)golden_number(g, name);
}

const void *golden_data(const golden *g, const char *name)
{
    const golden_entry *const found = golden_find(g, name);
    return found ? found->data : NULL;
}

mha_view golden_mask(const golden *g, const char *name)
{
    const golden_entry *const e = golden_find(g, name);
    if (!e)
        return (mha_view){0};
    const ptrdiff_t *const n = e->extents;
    return (mha_view){e->data, n[0] > 1 ? n[1] * n[2] * n[3] : 0, n[1] > 1 ? n[2] * n[3] : 0,
                      n[2] > 1 ? n[3] : 0};
}

/* ---------------------------------------------------------------- reading */

/* Reads a line of the text; returns false for an unknown one. */
static bool read_line(golden_entry *e, char *line, size_t *size)
{
    char type[8], rest[120], *end;
    if (sscanf(line, "set %31s %119s", e->name, rest) == 2) {
        e->number = strtod(rest, &end);
        return end != rest && *end == '\0';
    }
    if (sscanf(line, "tensor %31s %7s %119[0-9 ]", e->name, type, rest) != 3)
        return false;
    int rank = 0;
    e->count = 1;
    for (char *at = rest; rank < GOLDEN_RANK; at = end) {
        const ptrdiff_t extent = strtol(at, &end, 10);
        if (end == at)
            break;
        e->extents[rank++] = extent;
        e->count *= (size_t)extent;
    }
    *size = strcmp(type, "f32") == 0 ? 4 : strcmp(type, "i64") == 0 ? 8 : 1;
    return *size != 1 || strcmp(type, "u8") == 0;
}

static bool read_file(golden *g, FILE *file, const char *title)
{
    char line[200];
    size_t sizes[GOLDEN_ENTRIES] = {0};
    if (!fgets(line, sizeof line, file) || strcspn(line, "\n") != strlen(title) ||
        strncmp(line, title, strlen(title)) != 0)
        return false;
    while (fgets(line, sizeof line, file) && strcmp(line, "end\n") != 0) {
        if (g->count == GOLDEN_ENTRIES || !read_line(&g->entries[g->count], line, &sizes[g->count]))
            return false;
        g->count++;
    }
    for (int n = 0; n < g->count; n++) {
        golden_entry *const e = &g->entries[n];
        if (e->count == 0)
            continue;
        e->data = malloc(e->count * sizes[n] + 1);
        if (!e->data || fread(e->data, sizes[n], e->count, file) != e->count)
            return false;
    }
    return fgetc(file) == EOF;
}

bool golden_read(golden *g, const char *path, const char *title)
{
    memset(g, 0, sizeof *g);
    FILE *const file = fopen(path, "rb");
    if (!file)
        return false;
    const bool ok = read_file(g, file, title);
    fclose(file);
    return ok;
}

void golden_free(golden *g)
{
    for (int n = 0; n < g->count; n++)
        free(g->entries[n].data);
}

/* ---------------------------------------------------------------- running */

char golden_path[PATH_MAX];

enum { FILES_MAX = 1000, FILE_NAME_MAX = 256 };

static bool is_golden(const char *name)
{
    const char *const end = strrchr(name, '.');
    return end && strcmp(end, ".golden") == 0 && strlen(name) < FILE_NAME_MAX;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int golden_run_all(const char *folder, void (*body)(void))
{
    static char names[FILES_MAX][FILE_NAME_MAX];
    DIR *const list = opendir(folder);
    int count = 0;
    for (const struct dirent *found; list && (found = readdir(list));)
        if (is_golden(found->d_name) && CHECK(count < FILES_MAX, "too many files in %s", folder))
            memcpy(names[count++], found->d_name, strlen(found->d_name) + 1);
    if (list)
        closedir(list);
    qsort(names, (size_t)count, sizeof names[0], by_name);
    for (int n = 0; n < count; n++) {
        snprintf(golden_path, sizeof golden_path, "%s/%.*s", folder, FILE_NAME_MAX - 1, names[n]);
        *strrchr(names[n], '.') = '\0';
        test_run(names[n], body);
    }
    return count;
}
