/* SPDX-License-Identifier: MIT */
/*
 * A trained model that translates.
 *
 *      translator_load()        file -> parameters, vocabularies           translator_file.c,
 *                                                                           model_metadata.c
 *      translator_create()      parameters -> packed layers                translator.c
 *      translator_translate()   greedy or beam search, a word per step     beam_search.c
 *                               encoder, and steps of the decoder          decoding.c
 *
 * The file is safetensors with the tensors of transformer.h, each F16 or F32, and this metadata:
 *
 *      "format"              "mha-translator-1"
 *      "config"              {"width": 128, "heads": 8, ...}
 *      "source_vocabulary"   ["<begin>", "<end>", "<unknown>", "a", "about", ...]
 *      "target_vocabulary"   after the special words, words are sorted by their bytes
 *      "checksum"            of all numbers and of the other texts; optional
 *
 * and notes, which are all other keys. Files are not trusted: an invalid or damaged one is refused
 * with a message that says what is wrong and where.
 */
#ifndef TRANSLATOR_H
#define TRANSLATOR_H

#include "corpus/corpus.h"
#include "translator/transformer.h"

/* The words of one side by number. The special words come first, the others are sorted by their
 * bytes. */
typedef struct vocabulary {
    const char **words;
    int count;
    char *text; /* one block that contains all words */
} vocabulary;

/* The number of a word; WORD_UNKNOWN if it is not in the vocabulary, or a special word. */
int vocabulary_find(const vocabulary *v, const char *word);

typedef struct translator translator;

/* Writes a model file with these parameters and the vocabularies of the corpus. `type` is MHA_F16
 * or MHA_F32. `notes`, such as the settings of the training, are kept in the metadata. */
typedef struct translator_note {
    const char *name, *text;
} translator_note;
mha_status translator_save(const char *path, const transformer_config *config, const float *values,
                           mha_dtype type, const translator_note *notes, int note_count,
                           char message[TRANSFORMER_MESSAGE_MAX]);

/* The same for a changed copy of `model`, with its vocabularies and its notes; `notes` replace
 * those of the same name. */
mha_status translator_save_changed(const char *path, const translator *model, const float *values,
                                   mha_dtype type, const translator_note *notes, int note_count,
                                   char message[TRANSFORMER_MESSAGE_MAX]);

/* Loads a model file. Returns NULL, with a message, if it is not a valid model. */
translator *translator_load(const char *path, char message[TRANSFORMER_MESSAGE_MAX]);

/* Makes a translator from parameters in memory, which are copied; used to evaluate a running
 * training. The vocabularies are those of the corpus, or empty for a side with another number of
 * words. Returns NULL with a message on an error. */
translator *translator_create(const transformer_config *config, const float *values,
                              char message[TRANSFORMER_MESSAGE_MAX]);
void translator_free(translator *t);

const transformer_config *translator_config(const translator *t);
const vocabulary *translator_vocabulary(const translator *t, int side);
const char *translator_note_text(const translator *t, const char *name); /* or NULL */

/* Whether it is a translator of the laboratory: one whose words are those of the corpus, so that
 * the grammar knows the translation, the alignment and the roles of what it was trained on. */
bool translator_is_laboratory(const translator *t);

/* The packed layers of one encoder or decoder block. */
typedef struct coder_layer {
    mha_layer *self, *cross; /* cross: decoder only */
    mha_linear *in, *out;    /* feed-forward */
} coder_layer;

/* The parts of a model, for code that runs it step by step or builds a changed copy of it: the
 * parameters, where each of them is (transformer.h), and the packed layers. */
const float *translator_values(const translator *t);
const transformer_map *translator_map(const translator *t);
const coder_layer *translator_layer(const translator *t, int side, int layer);
const mha_linear *translator_logits(const translator *t);

/* Tokens of the longest sentence on either side, WORD_END included. */
int translator_longest(const translator *t);

enum { TRANSLATION_BEAM_MAX = 64 };

typedef struct translation_options {
    int beam;              /* 1: greedy; at most TRANSLATION_BEAM_MAX */
    bool no_cache;         /* compute every step from all words again: the same bits, slower */
    bool weights;          /* return the cross-attention weights of the best translation */
    double length_penalty; /* translations are ranked by score / length^penalty; 0: by score */
    int nbest;             /* translations per sentence, at most `beam`; 0 means 1 */
} translation_options;

typedef struct translation {
    int source[CORPUS_TOKENS_MAX], source_count; /* WORD_END included */
    int target[CORPUS_TOKENS_MAX], target_count; /* WORD_END included, if it is complete */
    double score;                                /* log-probability of the target */
    float *weights; /* [layers][heads][target_count][source_count], or NULL */
} translation;

/*
 * Translates `count` sentences of word numbers (without WORD_END) together. The result of a
 * sentence has the same bits for any other sentences, any number of threads, and with or without
 * caches. results[count * nbest]: those of a sentence are adjacent, the best first; if the search
 * finds fewer, the rest have target_count 0. The first result of each sentence has the weights,
 * which the caller frees. After an error there are none.
 *
 * MHA_ERR_LENGTH: a sentence is longer than the model's positions. MHA_ERR_INDEX: a word number is
 * out of range. MHA_ERR_FLAG: invalid options.
 */
mha_status translator_translate(const translator *model, const int *const *sources,
                                const int *lengths, int count, const translation_options *options,
                                translation *results, mha_pool *pool);

#endif
