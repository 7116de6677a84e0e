/* SPDX-License-Identifier: MIT */
/* Golden files: numbers and arrays by name. Their form is told in golden/make_layer_goldens.py. */
#ifndef MHA_TEST_GOLDEN_FILE_H
#define MHA_TEST_GOLDEN_FILE_H

#include <mha/mha.h>

#include <stdbool.h>

enum { GOLDEN_ENTRIES = 64, GOLDEN_RANK = 4 };

typedef struct golden_entry {
    char name[32];
    double number; /* of a field */
    ptrdiff_t extents[GOLDEN_RANK];
    size_t count; /* elements; 0: a field */
    void *data;
} golden_entry;

typedef struct golden {
    golden_entry entries[GOLDEN_ENTRIES];
    int count;
} golden;

/* False where there is no such file, or it is not one with this first line. Free it either way. */
bool golden_read(golden *g, const char *path, const char *title);
void golden_free(golden *g);

/* NULL, 0 or NULL where there is no entry of that name. */
const golden_entry *golden_find(const golden *g, const char *name);
double golden_number(const golden *g, const char *name);
ptrdiff_t golden_extent(const golden *g, const char *name);
const void *golden_data(const golden *g, const char *name);

/* A mask or bias: axes of extent 1 are the same for all; none where there is no such array. */
mha_view golden_mask(const golden *g, const char *name);

/* Run `body` as a test of its own for every golden file in the folder; returns how many there are.
 * The path stands in golden_path meanwhile. */
extern char golden_path[];
int golden_run_all(const char *folder, void (*body)(void));

#endif
