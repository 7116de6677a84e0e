/* SPDX-License-Identifier: MIT */
/*
 * A model whose heads can be looked at: what the measures, the reports and the page know of any
 * model.
 *
 *      text --subject_read()--> subject_text: the tokens of both sides, as numbers and as words
 *           --subject_run()---> capture: weights, queries, keys, values ... of all heads, with or
 *                               without changes to some of them
 *
 * subject_translator.c implements it for our translator, subject_model.c for models of
 * libmha_model; computation_weights.c copies the parameters of either. The corpus, its grammar and
 * gradients are known for a translator only: functions that need them take its `translator`, which
 * is NULL for other models.
 */
#ifndef HEADS_SUBJECT_H
#define HEADS_SUBJECT_H

#include <mha/mha_model.h>

#include "heads/capture.h"
#include "heads/head_measures.h"
#include "heads/head_names.h"
#include "heads/head_pairs.h"
#include "heads/sentence_pair.h"

enum { SUBJECT_MESSAGE_MAX = PAIR_MESSAGE_MAX, SUBJECT_WORD_MAX = 128 };

/* The tokens of one side, as they are shown. */
typedef struct subject_side {
    int count;
    const char **words;
    int *numbers;        /* equal for equal tokens */
    bool *marks;         /* as in a capture */
    bool *continues;     /* as in a capture */
    const char **wholes; /* [count] the word that a token begins, as a whole; NULL for a token that
                          * continues one. No array: each token is a word, or pieces are joined */
    int *begins, *ends;  /* [count] bytes of the text that a token stands for, of marks none; no
                          * arrays: not known, since the text was written by the model */
} subject_side;

/* A picture as a model reads it, and what is known of it. */
typedef struct subject_picture {
    int marks, across;    /* tokens before the patches; patches along a side */
    int side, channels;   /* pixels along a side */
    int patch, stride;    /* pixels along a side of a patch; from one patch to the next */
    const uint8_t *bytes; /* [channels][side][side] before they are scaled to numbers */
    const bool *object; /* [across * across] the patch shows the object, not the ground; NULL: it is
                         * not known what is ground, see picture_object.h */
} subject_picture;

/* What a query of a detector finds: a box as shares of the sides of the picture, and how sure. */
typedef struct subject_box {
    double left, top, width, height, score;
} subject_box;

/* A text as a model reads it. */
typedef struct subject_text {
    const char *text;         /* made printable */
    const char *given;        /* the target of the request, made printable; NULL: none */
    const char *translation;  /* the text of the target, if it is not `text` itself; else NULL */
    double confidence;        /* of a translation that the model wrote itself: the geometric mean of
                               * the probabilities of its tokens; 0: not known */
    subject_side source;      /* what the encoder reads; no tokens: there is no encoder */
    subject_side target;      /* what the decoder reads; no tokens: there is no decoder */
    const char **expected;    /* [target.count] what it should say; NULL: there is no decoder */
    const corpus_pair *gold;  /* the grammar's relations; NULL: not known */
    const char *no_gold;      /* why not; NULL: the grammar is not that of the model */
    const char *outside;      /* why the grammar of the model does not have it; NULL: it does */
    subject_picture picture;  /* of a model that reads pictures; else across is 0 */
    const subject_box *boxes; /* [target.count] of a detector; NULL: it is none */
    bool too_long;            /* it could not be read: the model has not enough positions */
    void *memory;             /* of the implementation */
} subject_text;

typedef struct subject subject;

/* The implementation of a kind of models; see the functions below. */
typedef struct subject_methods {
    bool (*read)(const subject *subject, const pair_request *request, mha_pool *pool,
                 subject_text *text, char message[SUBJECT_MESSAGE_MAX]);
    void (*text_free)(subject_text *text);
    void (*warn)(const subject_text *text);
    capture *(*run)(const subject *subject, const subject_text *text,
                    const capture_options *options, mha_pool *pool);
    const char *(*word)(const subject *subject, int number, char room[SUBJECT_WORD_MAX]);
    bool (*weights)(const subject *subject, computation_weights *weights);
    char *(*write)(const subject *subject, const subject_text *text, const capture_options *options,
                   mha_pool *pool);
    mha_status (*lens)(const subject *subject, int rows, const float *stream, float *logits,
                       mha_pool *pool);
} subject_methods;

struct subject {
    const subject_methods *methods;
    head_shape shape;
    bool reads_pictures; /* a text is the name of a picture (subject_picture.c) */
    int width;           /* of the residual stream */
    const char *family;  /* "translator", "bert" ... */
    const char *side_names[TRANSFORMER_SIDES]; /* "English", "French", "the text" */
    const char *first_text;                    /* an example to begin with */
    int class_count;                           /* of a classifier of pictures; 0: it is none */
    const char *const *classes; /* [class_count] their names; NULL: they have numbers only */
    double run_cost; /* multiplications of one run, per token; for long texts it is more */
    head_words words;
    const translator *translator; /* NULL: another model */
    const void *model;            /* of the implementation */
};

/* A subject for a translator, which must outlive it. subject_count_words() completes it for
 * measures; subject_close() frees what that allocated, but not the translator. */
void subject_of_translator(subject *subject, const translator *model);
bool subject_count_words(subject *subject);

/* A subject for any model of libmha_model that reads texts, which must outlive it. False, with a
 * message: it has no tokenizer. subject_close() either way. */
bool subject_of_model(subject *subject, const mha_model *model, char message[SUBJECT_MESSAGE_MAX]);
void subject_close(subject *subject);

/* The size of the grey or coloured pictures that the model reads; false: it reads none. */
bool subject_picture_size(const subject *subject, int *side, int *channels);

/* Whether the model predicts tokens: then the loss of a text is in nats. Otherwise it is an
 * encoder, and the loss is 1 - the cosine of the text's vector and that of the unchanged model. */
bool subject_predicts(const subject *subject);

/* Reads a request. False, with a message: there are no words or too many of them, the model has no
 * target to be given, or out of memory. subject_text_free() is called in either case. */
bool subject_read(const subject *subject, const pair_request *request, mha_pool *pool,
                  subject_text *text, char message[SUBJECT_MESSAGE_MAX]);
void subject_text_free(const subject *subject, subject_text *text);

/* Prints warnings to stderr, such as unknown words. */
void subject_warn(const subject *subject, const subject_text *text);

/* Runs the model on a text. NULL: out of memory. */
capture *subject_run(const subject *subject, const subject_text *text,
                     const capture_options *options, mha_pool *pool);

/* The parameters of an attention; kind and layer are set, and must exist. False: out of memory.
 * computation_weights_free() either way. */
bool subject_weights(const subject *subject, computation_weights *weights);

/* The translation of a text that the model writes itself, token by token, each the likeliest of
 * all, under these options, which have no patches; for free(). The model must have cross-attention.
 * NULL: out of memory. */
char *subject_write(const subject *subject, const subject_text *text,
                    const capture_options *options, mha_pool *pool);

/* logits[rows][words] of rows of a capture_stream, [rows][width], as if no layer came after them:
 * the last norm, if the model has one, and the output matrix. Of the stream after the last layer
 * these are the logits of the capture, to the bit. */
mha_status subject_lens(const subject *subject, int rows, const float *stream, float *logits,
                        mha_pool *pool);

/* The word of a token of the target, which may be in `room`. */
const char *subject_word(const subject *subject, int number, char room[SUBJECT_WORD_MAX]);

/* Implementations of subject_weights(). */
bool computation_weights_of_translator(const subject *subject, computation_weights *weights);
bool computation_weights_of_model(const subject *subject, computation_weights *weights);

/* What a text loses when heads are changed. `plain` is the capture of the unchanged model. For a
 * model that predicts: the decrease of the log-likelihood of the expected tokens. */
double subject_loss(const subject *subject, const capture *plain, const capture *changed);

/* Texts on which heads are measured: sentence pairs of the corpus, for a translator, or any. */
typedef struct subject_texts {
    const head_pair *pairs;    /* [count], or NULL */
    const subject_text *texts; /* [count], if there are no pairs */
    int count;
} subject_texts;

/* Runs the model on one of them. NULL: out of memory. */
capture *subject_texts_run(const subject *subject, const subject_texts *texts, int n,
                           const capture_options *options, mha_pool *pool);

/* What the grammar knows of one of them; NULL: nothing. */
const corpus_pair *subject_texts_gold(const subject_texts *texts, int n);

#endif
