/* SPDX-License-Identifier: MIT */
/*
 * A trained model that translates.
 *
 *      translator_load()        file -> parameters, vocabularies           translator_file.c,
 *                                                                           model_metadata.c
 *      translator_create()      parameters -> packed layers                translator.c
 *      translator_translate()   greedy or beam search, a word a step       beam_search.c
 *          source words -> memory, kept as keys and values; a step         decoding.c
 *
 * The file is safetensors with the tensors of transformer.h, each F16 or F32, and in its metadata
 *
 *      "format"              "mha-translator-1"
 *      "config"              {"width": 128, "heads": 8, ...}
 *      "source_vocabulary"   ["<begin>", "<end>", "<unknown>", "a", "about", ...]
 *      "target_vocabulary"   the words behind the special ones in the order of their bytes
 *      "checksum"            of all numbers and of the other texts; other writers may leave it out
 *
 * and what notes the writer left there. Files are taken for hostile: one that is not whole and
 * sound is refused with a sentence that says what is wrong and where.
 */
#ifndef MODEL_TRANSLATOR_H
#define MODEL_TRANSLATOR_H

#include "corpus/corpus.h"
#include "model/transformer.h"

/* Words of one side by number. The special ones come first, the others in the order of their
 * bytes. */
typedef struct vocabulary {
    const char **words;
    int count;
    char *text; /* all of them */
} vocabulary;

/* The number of a word; WORD_UNKNOWN for one that is not there, and for special ones. */
int vocabulary_find(const vocabulary *v, const char *word);

typedef struct translator translator;

/* Write parameters and vocabularies of the corpus as a model file. type: MHA_F16 or MHA_F32. Pairs
 * of `notes` (name, text), such as what it was trained with, are kept in the metadata. */
typedef struct translator_note {
    const char *name, *text;
} translator_note;
mha_status translator_save(const char *path, const transformer_config *config, const float *values,
                           mha_dtype type, const translator_note *notes, int note_count,
                           char message[TRANSFORMER_MESSAGE_MAX]);

/* The same for other parameters of `model`: with its vocabularies and its notes, but for those that
 * `notes` has anew. */
mha_status translator_save_changed(const char *path, const translator *model, const float *values,
                                   mha_dtype type, const translator_note *notes, int note_count,
                                   char message[TRANSFORMER_MESSAGE_MAX]);

/* NULL, with a sentence, for a file that is not a whole and sound model. */
translator *translator_load(const char *path, char message[TRANSFORMER_MESSAGE_MAX]);

/* The same from parameters in memory: for evaluating a training under way. The vocabularies are the
 * corpus's, or empty for a side that has another number of words. */
translator *translator_create(const transformer_config *config, const float *values,
                              char message[TRANSFORMER_MESSAGE_MAX]);
void translator_free(translator *t);

const transformer_config *translator_config(const translator *t);
const vocabulary *translator_vocabulary(const translator *t, int side);
const char *translator_note_text(const translator *t, const char *name); /* or NULL */

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

/* Tokens of the longest sentence on either side, end included. */
int translator_longest(const translator *t);

enum { TRANSLATION_BEAM_MAX = 64 };

typedef struct translation_options {
    int beam;              /* 1: greedy; at most TRANSLATION_BEAM_MAX */
    bool no_cache;         /* compute every step from all words anew: the same bits, slower */
    bool weights;          /* keep cross-attention weights of the best translation */
    double length_penalty; /* translations are ranked by score / length^penalty; 0: none */
    int nbest;             /* translations a sentence, at most `beam`; 0: 1 */
} translation_options;

typedef struct translation {
    int source[CORPUS_TOKENS_MAX], source_count; /* WORD_END included */
    int target[CORPUS_TOKENS_MAX], target_count; /* WORD_END included, if it came to an end */
    double score;                                /* log-probability of the target */
    float *weights; /* [layers][heads][target_count][source_count], or NULL */
} translation;

/*
 * Translate `count` sentences of word numbers (without WORD_END) together. Results are the same to
 * the bit however many there are, for any number of threads and with the caches or without.
 * results[count * nbest]: those of a sentence stand together, the best first; where the search ends
 * with fewer, target_count is 0. free() the weights, which the first of each sentence has. After an
 * error there are none.
 *
 * MHA_ERR_LENGTH: a sentence is longer than the model's positions. MHA_ERR_INDEX: a number is none
 * of a word. MHA_ERR_FLAG: options that cannot be.
 */
mha_status translator_translate(const translator *model, const int *const *sources,
                                const int *lengths, int count, const translation_options *options,
                                translation *results, mha_pool *pool);

#endif
