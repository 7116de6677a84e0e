/* SPDX-License-Identifier: MIT */
/*
 * What the gradients of linears and layers must be, written from the public header alone as plain
 * loops over numbers that know their own error (tracked.h).
 *
 *      layer_pass_new()        every number a call depends on, by name, out of its memory
 *      layer_pass_forward()    output and log-sum-exp, with everything in between kept
 *      layer_pass_backward()   a gradient for every one of those numbers
 *
 * Numbers may be changed between two forward passes: central differences do.
 */
#ifndef MHA_TEST_LAYER_BACKWARD_ORACLE_H
#define MHA_TEST_LAYER_BACKWARD_ORACLE_H

#include "support/layer_oracle.h"
#include "support/tracked.h"

/* Zeros; to be freed. */
num *nums(ptrdiff_t count);

/* ----------------------------------------------------------------- linear */

/* y = x W^T + bias for one row; w [outputs][inputs]; bias NULL: none. */
void linear_row(const num *w, const num *bias, ptrdiff_t inputs, ptrdiff_t outputs, const num *x,
                num *y);

/* What one row adds to d_x [inputs], d_w as w, and d_bias [outputs]. NULL: not wanted. */
void linear_row_backward(const num *w, ptrdiff_t inputs, ptrdiff_t outputs, const num *x,
                         const num *d_y, num *d_x, num *d_w, num *d_bias);

/* The weights as `config->stored` keeps them, [outputs][inputs]; to be freed. */
num *linear_weights(const mha_linear_config *config);

/* ------------------------------------------------------------------ layer */

typedef enum layer_part {
    PART_QUERY, /* [B][L][E]; of inputs only rows that count, the others are 0 */
    PART_KEY,   /* [B][S][key_width]; an input that the call leaves out has no numbers */
    PART_VALUE,
    PART_Q, /* [outputs][inputs], as stored */
    PART_K,
    PART_V,
    PART_O,
    PART_Q_BIAS, /* biases and norms are there even if the layer has none: 0, and 1 for weights */
    PART_K_BIAS,
    PART_V_BIAS,
    PART_O_BIAS,
    PART_EXTRA_KEY,
    PART_EXTRA_VALUE,
    PART_Q_NORM, /* norms only if the layer normalises */
    PART_K_NORM,
    PART_Q_NORM_BIAS,
    PART_K_NORM_BIAS,
    PART_SCORES, /* [B][H][L][S]: 0, added to the scores beside what the options say; its gradient
                  * is that of bias and additive mask */
    PART_SLOPES, /* [H] */
    PART_SINKS,  /* [H] */
    PART_GATES,  /* [B][H] */
    PARTS
} layer_part;

extern const char *const layer_part_names[PARTS];

typedef struct layer_numbers {
    num *of[PARTS];
    ptrdiff_t count[PARTS]; /* 0: the call has no such part */
} layer_numbers;

/* Zeros in the shape of the other one. */
layer_numbers layer_numbers_like(const layer_numbers *other);
void layer_numbers_free(layer_numbers *numbers);

typedef struct layer_pass {
    const layer_problem *p;
    mha_layer_config config; /* defaults filled in */
    attention_call op;       /* lengths, offsets and masks */
    ptrdiff_t columns;       /* keys, and those that every row sees */
    layer_numbers in;
    num *projected[3]; /* Q [B][L][H][D], K [B][columns][G][D], V [B][columns][G][Dv] */
    num *shaped[2];    /* Q and K after norm and rotation */
    bool *sees;        /* as weights: does the row attend to the column? */
    num *weights;      /* [B][H][L][columns] */
    num *cap;          /* as weights: the derivative of the soft cap */
    num *heads;        /* [B][L][H][Dv] */
    num *lse;          /* [B][H][L]; -inf for an empty row */
    num *output;       /* [B][L][output_width] */
} layer_pass;

/* `p` must outlive the result. */
layer_pass *layer_pass_new(const layer_problem *p);
void layer_pass_free(layer_pass *pass);

void layer_pass_forward(layer_pass *pass);

/* To be called after a forward pass. d_output and d_lse are shaped as output and lse; d_lse NULL:
 * 0. Rows past a length are not read, nor is the d_lse of an empty row. */
layer_numbers layer_pass_backward(const layer_pass *pass, const num *d_output, const num *d_lse);

#endif
