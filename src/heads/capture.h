/* SPDX-License-Identifier: MIT */
/*
 * Everything that the heads of a model compute on one text: the encoder reads the source, the
 * decoder the target, which is given (teacher forcing), so rows and columns are known in advance. A
 * model without an encoder has no source, one without a decoder no target.
 *
 *      kind      rows             columns
 *      encoder   source tokens    the same
 *      decoder   target tokens    the same, up to the row
 *      cross     target tokens    source tokens
 *
 * Row i of decoder and cross predicts expected token i. For a translator the source ends with
 * WORD_END, the target begins with WORD_BEGIN, and the last expected word is WORD_END.
 */
#ifndef HEADS_CAPTURE_H
#define HEADS_CAPTURE_H

#include "heads/computation.h"
#include "translator/head_settings.h"
#include "translator/translator.h"

/* The output of a head, before W_O, that a run uses instead of its own. */
typedef struct head_patch {
    attention_kind kind;
    int layer, head;
    const float *outputs; /* [rows][width of a head] */
} head_patch;

typedef struct capture_options {
    const uint8_t *changes[ATTENTION_KINDS]; /* [layers][heads] of head_mode; NULL: none */
    const float *means[ATTENTION_KINDS];     /* [layers][heads][width of a head], for HEAD_MEAN */
    const bool *hidden; /* [source tokens, or target tokens if there is no source] no token attends
                         * to these, in self-attention over them and in cross-attention; positions
                         * stay as they are. NULL: none */
    const head_patch *patches; /* [patch_count] */
    int patch_count;
    bool weights; /* capture the weights */
    bool vectors; /* capture all arrays of capture_heads */
    bool outputs; /* capture the outputs of heads */
    bool stream;  /* capture a capture_stream, if the model predicts tokens */
    computation *steps[ATTENTION_KINDS]; /* filled for the layers that they name; NULL: none. Also
                                          * if the run fails they are for computation_free() */
} capture_options;

/* The heads of one kind. Arrays that were not requested are NULL. */
typedef struct capture_heads {
    int layers, heads, rows, columns, width; /* width of a head */
    bool scores_differ; /* scores have another part than q . k / sqrt(width): a position bias */
    float *weights;     /* [layers][heads][rows][columns] */
    float *q;           /* [layers][heads][rows][width], as in q . k / sqrt(width) */
    float *k, *v;       /* [layers][heads][columns][width] */
    float *value_norms; /* [layers][heads][columns]: |W_O v_j|, with the head's part of W_O */
    float *outputs;     /* [layers][heads][rows][width]: weights times values, before W_O */
} capture_heads;

/* The residual stream of the decoder, and what it says: of a model that predicts tokens. */
typedef struct capture_stream {
    int layers, parts, rows, width, words; /* parts: of all layers; words: of the vocabulary */
    float *streams; /* [layers + 1][rows][width] before each layer, and after the last one */
    float *added; /* [parts][rows][width] what self-attention, cross-attention, if there is any, and
                   * feed-forward of each layer compute, before they join the stream */
    float *logits; /* [rows][words] */
} capture_stream;

typedef struct capture {
    int source_count, target_count;
    int *source, *target;   /* [source_count], [target_count] token numbers */
    bool *source_marks;     /* [source_count] a mark such as [CLS], </s> or WORD_END, not text */
    bool *target_marks;     /* [target_count] the same */
    bool *source_continues; /* [source_count] continues the word that the token before it began */
    bool *target_continues; /* [target_count] the same */
    bool *says_more; /* [target_count] the row says a token that continues the word of which the row
                      * before it says a token: rows of cross-attention are joined by these */
    int scored;      /* the number of rows whose expected token is known: the first ones */
    int *expected;   /* [target_count] the right next tokens */
    int *predicted;  /* [target_count] of largest logit; never WORD_BEGIN */
    double *log_likelihood; /* [target_count] of the expected tokens */
    double *logit;          /* [target_count] of the expected tokens, minus the mean of all */
    float *vector;          /* [vector_width] of the whole text, of length 1; NULL: has a decoder */
    int vector_width;
    int class_count;       /* of a classifier of pictures; 0: it is none */
    double *probabilities; /* [class_count] of the classes */
    capture_heads kind[ATTENTION_KINDS];
    capture_stream stream; /* all 0: not requested */
} capture;

/* A capture with room for the tokens of both sides, all 0. NULL: out of memory. */
capture *capture_new(int source_count, int target_count);

/* Runs a translator on a pair; source and target are word numbers without WORD_BEGIN and WORD_END.
 * NULL: out of memory, or words that the model does not have, or too many of them. */
capture *capture_create(const translator *model, const int *source, int source_count,
                        const int *target, int target_count, const capture_options *options,
                        mha_pool *pool);
void capture_free(capture *capture);

/* logits[rows][target words] of rows of the decoder's stream, [rows][width], as if no layer came
 * after them: the last norm and the output matrix. */
mha_status translator_lens(const translator *model, int rows, const float *stream, float *logits,
                           mha_pool *pool);

/* The mean log-likelihood of the expected tokens, an end mark included: the score of a translation;
 * its confidence is exp(score), the geometric mean of their probabilities. NaN: there are none. */
double capture_score(const capture *capture);

#endif
