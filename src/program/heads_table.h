/* SPDX-License-Identifier: MIT */
/* All heads of a model, measured on the sentences of a setup, as rows with role and importance. */
#ifndef PROGRAM_HEADS_TABLE_H
#define PROGRAM_HEADS_TABLE_H

#include "program/heads_columns.h"
#include "program/heads_setup.h"

typedef struct heads_table {
    head_study *study;
    heads_row *rows; /* [study->heads] */
} heads_table;

/* `like` is the number of the head that all are compared with; -1: none. heads_table_free() either
 * way. */
mha_status heads_table_make(heads_table *table, const heads_setup *setup, int like);
void heads_table_free(heads_table *table);

#endif
