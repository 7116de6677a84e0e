/* SPDX-License-Identifier: MIT */
/* The rows of the benchmark table: words to measure, and the goal of each. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

typedef enum row_kind {
    ROW_SHARE,       /* share of the peak or of the bandwidth */
    ROW_TIME,        /* seconds of `word` / seconds of `against`; smaller is better */
    ROW_SPEED,       /* seconds of `against` / seconds of `word` */
    ROW_SHARE_RATIO, /* share of `word` / share of `against` */
    ROW_WORKSPACE    /* MiB of workspace per thread; smaller is better */
} row_kind;

typedef struct row {
    row_kind kind;
    const char *word, *against;
    double reach; /* the goal; 0: none, the row is informative */
} row;

/* Rows of the same word are adjacent, since they are measured together. */
typedef struct row_section {
    const char *name, *title;
    const row *rows;
    int count;
} row_section;

extern const row_section row_sections[];
extern const int row_section_count;

#endif
