/* SPDX-License-Identifier: MIT */
/* A temporary folder per test, and whole files in it (temp_files.h). */
#include "support/temp_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

temp_folder temp_folder_new(void)
{
    const char *const base = getenv("TMPDIR");
    temp_folder folder;
    snprintf(folder.path, sizeof folder.path, "%s/mha_test_XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder.path)) {
        perror(folder.path);
        exit(2);
    }
    return folder;
}

/* Counts the entries of a folder, and removes them with everything in them if requested. */
static int each_entry(const char *path, bool clear)
{
    int count = 0;
    DIR *const list = opendir(path);
    if (!list)
        return 0;
    for (const struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        char inner[1024];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        count++;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (clear && remove(inner) != 0) {
            each_entry(inner, true);
            rmdir(inner);
        }
    }
    closedir(list);
    return count;
}

void temp_folder_free(const temp_folder *folder)
{
    each_entry(folder->path, true);
    rmdir(folder->path);
}

int temp_folder_count(const temp_folder *folder)
{
    return each_entry(folder->path, false);
}

const char *temp_path(const temp_folder *folder, const char *name)
{
    static char paths[2][512];
    static int turn;
    turn = 1 - turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder->path, name);
    return paths[turn];
}

unsigned char *file_bytes(const char *path, size_t *size)
{
    FILE *const file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *const bytes = malloc(*size + 1);
    const bool whole = bytes && fread(bytes, 1, *size, file) == *size;
    fclose(file);
    if (whole)
        return bytes;
    free(bytes);
    return NULL;
}

bool file_make(const char *path, const void *bytes, size_t size)
{
    remove(path); /* faster: some file systems flush a file that is overwritten */
    FILE *const file = fopen(path, "wb");
    if (!file)
        return false;
    const bool whole = size == 0 || fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && whole;
}
