/* SPDX-License-Identifier: MIT */
/* What the files of spread.h share: the tensors of a problem, in one table. */
#ifndef MHA_TEST_SPREAD_PARTS_H
#define MHA_TEST_SPREAD_PARTS_H

#include "mpi/spread.h"

enum { SPREAD_PATTERN = 0xa5, SPREAD_TENSORS = 20, SPREAD_TOP = 3 };

/* The tensors that have rows. */
typedef struct spread_tensor {
    const char *name;
    size_t at;      /* in spread_data */
    bool keys;      /* rows of keys; else of queries */
    bool out, back; /* written; of the backward pass */
    bool padded;    /* has all rows of all sequences, also if they are packed */
    mha_dtype type;
    ptrdiff_t heads, width;
    bool batches; /* false: shared by all */
} spread_tensor;

/* Zeroed memory. */
void *spread_block(size_t bytes);

/* Fills the table; returns SPREAD_TENSORS. */
int spread_tensors(const spread *s, spread_tensor t[SPREAD_TENSORS]);
char **spread_at(const spread_data *d, const spread_tensor *t);
ptrdiff_t spread_batches(const spread *s, const spread_tensor *t);
size_t spread_bytes(const spread *s, const spread_data *d, const spread_tensor *t);

/* Row `row` of those that the whole, or this rank, has: of a batch and head. */
char *spread_row(const spread *s, const spread_data *d, const spread_tensor *t, ptrdiff_t b,
                 ptrdiff_t h, ptrdiff_t row);

/* The packed sequence of a token. */
ptrdiff_t spread_sequence(const spread *s, ptrdiff_t token);

/* Results of heads without rows. */
typedef struct spread_result {
    const char *name;
    size_t at; /* in spread_data */
    bool back;
    size_t bytes;
} spread_result;

enum { SPREAD_RESULTS = 6 };
void spread_results(const spread *s, spread_result r[SPREAD_RESULTS]);
char **spread_result_at(const spread_data *d, const spread_result *r);

#endif
