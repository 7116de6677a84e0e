/* SPDX-License-Identifier: MIT */
/* Shared by subject_model.c, which reads texts, subject_model_side.c, which lists their tokens, and
 * subject_model_run.c, which runs a model. */
#ifndef HEADS_SUBJECT_MODEL_PARTS_H
#define HEADS_SUBJECT_MODEL_PARTS_H

#include <mha/mha_model.h>

#include "heads/subject.h"

/* The memory of one side of a text: of a subject_side, with the words themselves. */
typedef struct model_side {
    subject_side side;
    int32_t *ids; /* [count] */
    char (*room)[SUBJECT_WORD_MAX];
    char (*whole_room)[SUBJECT_WORD_MAX]; /* of words that have several tokens */
} model_side;

/* The memory of a text. */
typedef struct model_text {
    model_side sides[TRANSFORMER_SIDES];
    const char **expected;
    int32_t end; /* the token that is expected after the last one; -1: not known */
    char end_word[SUBJECT_WORD_MAX];
    char *text, *given, *translation;
    double confidence; /* of a translation that was written; else 0 */
    bool too_long;     /* for the positions of the model */
    float *pixels;     /* of a model that reads pictures, [channels][size][size] */
    uint8_t *bytes;    /* the same before they were scaled */
    bool *object;      /* of its patches, see subject_picture; or NULL */
    subject_picture picture;
} model_text;

static inline const mha_model *model_of(const subject *s)
{
    return s->model;
}

/* Writes "out of memory"; returns false. */
bool model_out_of_memory(char *message);

/* Copies a text without control characters: they become their pictures of Unicode, or spaces. */
void model_copy_printable(char *to, size_t room, const char *from, bool pictures);

/* The word of a token. */
void model_show_word(const mha_tokenizer *tokenizer, int32_t id, char room[SUBJECT_WORD_MAX]);

/* Makes room for the tokens of a side, and for their places in the text. False, with a message: out
 * of memory. model_side_free() either way. */
bool model_side_make(model_side *side, int count, char *message);
bool model_side_places(model_side *side, int count, char *message);
void model_side_free(model_side *side);

/* Adds a token, for which there is room; then, after the last one, makes whole words. */
void model_side_add(model_side *side, const mha_tokenizer *tokenizer, int32_t id, bool continues);
bool model_side_join(model_side *side, const mha_tokenizer *tokenizer, char *message);

/* Which of the tokens that a model has written continue words. It may write a word in other pieces
 * than its tokenizer cuts it into; where words begin, the tokenizer finds in the text. */
void model_continues(const mha_tokenizer *tokenizer, const int32_t *ids, ptrdiff_t count,
                     bool *continues);

/* Reads a picture as the text of a model that reads pictures (subject_picture.c). */
bool subject_picture_read(const subject *subject, const pair_request *request, model_text *text,
                          char *message);

/* What a run returns for the steps of computation.h; NULL: they are not requested. */
typedef struct model_steps {
    int rows, source_rows, layers; /* of the stack that reads ids or pixels */
    ptrdiff_t width;
    float *streams; /* [layers + 1][rows][width] as in mha_model_call */
    float *parts;   /* [parts][rows][width] as in mha_model_call */
    float *memory;  /* [source_rows][width] what the encoder of an encoder-decoder computes */
} model_steps;

/* Makes room before the run, and fills the steps of the options after it (subject_model_steps.c).
 * False: out of memory. model_steps_free() either way. */
bool model_steps_make(model_steps *steps, const subject *subject, const capture_options *options,
                      const model_text *text);
bool model_steps_fill(const model_steps *steps, const subject *subject, const capture *capture,
                      const capture_options *options);
void model_steps_free(model_steps *steps);

/* The factor that queries of a capture have, so that scores are q . k / sqrt(width) in all models.
 */
double query_factor(const mha_model *model, mha_attention_kind kind, ptrdiff_t layer, int width);

/* subject_methods.run of a model. */
capture *subject_model_run(const subject *subject, const subject_text *text,
                           const capture_options *options, mha_pool *pool);

/* subject_methods.write of a model, and the most tokens that it writes (subject_model.c). */
char *subject_model_write(const subject *subject, const subject_text *text,
                          const capture_options *options, mha_pool *pool);
ptrdiff_t model_written_most(const subject *subject);

/* The text of tokens of the target, without marks and control characters; for free(). NULL: out of
 * memory. */
char *model_target_text(const mha_model *model, const int32_t *ids, int count);

/* Changes of heads in the form of the library. `memory` is for free(). */
typedef struct model_changes {
    mha_head_settings settings;
    float *gates;
    uint8_t *modes;
} model_changes;

/* False: out of memory. model_changes_free() either way. `changes` and `means` as in
 * capture_options. */
bool model_changes_make(model_changes *changes, head_shape shape,
                        const uint8_t *const modes[ATTENTION_KINDS],
                        const float *const means[ATTENTION_KINDS]);
void model_changes_free(model_changes *changes);

#endif
