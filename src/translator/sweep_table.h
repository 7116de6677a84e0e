/* SPDX-License-Identifier: MIT */
/*
 * The results of a sweep, and the CSV file that keeps them:
 *
 *      # mha sweep 1
 *      # isa avx512
 *      # form=laboratory width=64 ff=256 ... evaluate=500 points=25
 *      data,heads,seed,train_loss,words_right,exact,valid@40,valid@80,...
 *      1000,1,1,0.51220703,0.84512,0.214,5.0217,4.3318,...
 *
 * The third line has all settings that the trainings have in common, so that results of other
 * settings are never mixed with these. Files are not trusted.
 */
#ifndef TRANSLATOR_SWEEP_TABLE_H
#define TRANSLATOR_SWEEP_TABLE_H

#include <stdio.h>

#include "translator/head_sweep.h"

enum { SWEEP_MESSAGE_MAX = 1024, SWEEP_ISA_MAX = 32 };

typedef struct sweep_table {
    sweep_settings settings;
    char isa[SWEEP_ISA_MAX]; /* of the file that was read; "" if none was */
    sweep_result *results;
    int count;
    size_t room;
} sweep_table;

/* The result with this key; NULL: there is none. Valid until the next sweep_table_add(). */
const sweep_result *sweep_table_find(const sweep_table *table, const sweep_key *key);

/* Returns false if out of memory. */
bool sweep_table_add(sweep_table *table, const sweep_result *result);
void sweep_table_free(sweep_table *table);

/* Writes the file; for output_file_write(), so `table` is a const sweep_table *. */
void sweep_table_write(FILE *file, const void *table);

/* The learning curves in another form, a line per validation: data,heads,seed,step,valid_loss. */
void sweep_table_write_curves(FILE *file, const void *table);

/* Adds the results of a file to a table whose settings are set. False, with the reason in
 * `message`, if the file is damaged, or if it has other settings: the first of them is named. */
bool sweep_table_read(sweep_table *table, const char *path, char message[SWEEP_MESSAGE_MAX]);

#endif
