/* SPDX-License-Identifier: MIT */
/* Texts of the user on which the heads of any model are measured: one, or those of a file. */
#ifndef PROGRAM_TEXTS_H
#define PROGRAM_TEXTS_H

#include "program/session.h"

/* A row of option tables. */
#define OPTION_TEXTS(target) \
    "texts", ARG_TEXT, target, "FILE", "measure on the texts of a file, one per line", 0, 0

#define OPTION_PAIRS(target) \
    "pairs", ARG_TEXT, target, "FILE", "measure on sentence pairs: two columns, or A,B", 0, 0

#define OPTION_IMAGES(target)          \
    "images", ARG_TEXT, target, "SET", \
        "measure on the pictures of a set, as \"mha train\" reads it", 0, 0

typedef struct text_set {
    subject_text *texts; /* [count] */
    int count;
    int too_long; /* pairs that were left out, since the model has not enough positions */
} text_set;

/* Reads the first `most` lines of a file that are not empty, as texts of the session's model.
 * EXIT_GO_ON, or the exit code after a message. text_set_free() either way. */
int text_set_read(text_set *set, const session *session, const char *path, int64_t most);

/* The same with sentence pairs, of which the decoder reads the given translation; `given` is "FILE"
 * or "SOURCE,TARGET", as in "mha train --pairs". Pairs for which the model has not enough positions
 * are left out, counted, and mentioned on stderr. */
int text_set_read_pairs(text_set *set, const session *session, const char *given, int64_t most);

/* The same with `most` pictures of a set, those for its test if it has any, at equal distances. */
int text_set_read_images(text_set *set, const session *session, const char *folder, int64_t most);

/* Sentence pairs that come with an encoder-decoder, on which its heads are measured unless the user
 * gives others: a file of this name in the model's folder. False: there is none. */
#define MODEL_SENTENCES "sentences.tsv"
enum { MODEL_SENTENCES_MAX = MODEL_PATH_MAX + sizeof "/" MODEL_SENTENCES };
bool model_sentences(const session *session, char path[MODEL_SENTENCES_MAX]);

/* Texts to find the roles of heads on: those of `given`, the file of --texts, or if it is NULL, the
 * sentences of the model; `from` gets the name of the file. No texts: there are none. */
int text_set_read_study(text_set *set, const session *session, const char *given, int64_t most,
                        char from[MODEL_SENTENCES_MAX]);

/* The same with a single text. */
int text_set_one(text_set *set, const session *session, const char *text);

void text_set_free(text_set *set, const session *session);

/* The set as an argument of functions that measure heads. */
subject_texts text_set_texts(const text_set *set);

/* Says that a model that is no translator has no corpus; returns EXIT_USAGE. `instead` is what can
 * be given: "a TEXT, or --texts FILE". */
int texts_needed(const char *command, const char *instead);

#endif
