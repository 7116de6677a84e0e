/* SPDX-License-Identifier: MIT */
/* Golden files: numbers and arrays by name. make_layer_goldens.py describes their format. */
#ifndef MHA_TEST_GOLDEN_FILE_H
#define MHA_TEST_GOLDEN_FILE_H

#include <mha/mha.h>

#include <stdbool.h>

enum { GOLDEN_ENTRIES = 64, GOLDEN_RANK = 4 };

typedef struct golden_entry {
    char name[32];
    double number; /* the value of a field */
    ptrdiff_t extents[GOLDEN_RANK];
    size_t count; /* elements of an array; 0: this is a field */
    void *data;
} golden_entry;

typedef struct golden {
    golden_entry entries[GOLDEN_ENTRIES];
    int count;
} golden;

/* Returns false if the file cannot be read, or does not begin with this line. Free it either way.
 */
bool golden_read(golden *g, const char *path, const char *title);
void golden_free(golden *g);

/* Return NULL, 0 or NULL if there is no entry of that name. */
const golden_entry *golden_find(const golden *g, const char *name);
double golden_number(const golden *g, const char *name);
ptrdiff_t golden_extent(const golden *g, const char *name);
const void *golden_data(const golden *g, const char *name);

/* A mask or bias, in which axes of extent 1 are broadcast; no mask if there is no such array. */
mha_view golden_mask(const golden *g, const char *name);

/* Runs `body` as a separate test for every golden file in the folder, with its path in golden_path.
 * Returns the number of files. */
extern char golden_path[];
int golden_run_all(const char *folder, void (*body)(void));

#endif
