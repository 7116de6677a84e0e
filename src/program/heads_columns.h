/* SPDX-License-Identifier: MIT */
/* Heads as rows of a table whose columns have names: what --where filters by and --sort sorts by.
 */
#ifndef PROGRAM_HEADS_COLUMNS_H
#define PROGRAM_HEADS_COLUMNS_H

#include "heads/head_roles.h"

typedef struct heads_row {
    const head_study *study;
    int number;
    head_name name;
    head_role role;
    double raw_importance, importance;
    double apart; /* from the head of --like, in nats; NaN: of another kind, or no --like */
} heads_row;

/* The name of each column from 0 on; NULL after the last. */
const char *heads_column_name(int column);

/* NaN where the head has no such number. */
double heads_column_value(const heads_row *row, int column);

/* "mixed", or the name of its role. */
const char *heads_role_name(const heads_row *row);

/*
 * Conditions with spaces or commas between them, all of which must hold: COLUMN>NUMBER, also >=,
 * <, <=, =; and role=TEXT, where roles that begin with the text do. EXIT_GO_ON, or EXIT_USAGE
 * after a message that begins with the command's name. Rows that do not fit are dropped from
 * rows[*count].
 */
int heads_filter(const char *command, const char *where, heads_row *rows, int *count);

/* By a column, the largest first; layer, head, aer and apart the smallest. Others keep their order.
 */
int heads_sort(const char *column_name, heads_row *rows, int count);

#endif
