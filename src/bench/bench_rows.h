/* SPDX-License-Identifier: MIT */
/* The cases of the project's own table, and what each is to reach. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

typedef enum row_kind {
    ROW_SHARE,       /* share of the peak or of the bandwidth */
    ROW_TIME,        /* seconds of `word` / seconds of `against`; small is good */
    ROW_SPEED,       /* seconds of `against` / seconds of `word` */
    ROW_SHARE_RATIO, /* share of `word` / share of `against` */
    ROW_WORKSPACE    /* MiB of workspace a thread; small is good */
} row_kind;

typedef struct row {
    row_kind kind;
    const char *word, *against;
    double reach; /* 0: only to be known */
} row;

/* Rows of the same word stand one after another: they are measured together. */
typedef struct row_section {
    const char *name, *title;
    const row *rows;
    int count;
} row_section;

extern const row_section row_sections[];
extern const int row_section_count;

#endif
