/* SPDX-License-Identifier: MIT */
/*
 * Learns a vocabulary of subwords from lines of text, by byte pair encoding:
 *
 *      bpe_learner_create(&learner, ...);
 *      for each line: bpe_learner_add(learner, line, length);
 *      bpe_learner_finish(learner, &options, &learned, ...);
 *      bpe_learned_save(&learned, "tokenizer.json", ...);
 *
 * Lines are divided into words exactly as the finished tokenizer divides texts; that is described
 * in tokenizer_json_write.h. Ids: the marks "</s>", "<unk>" and "<pad>", all 256 bytes, characters
 * by their code points, then pieces in the order of the merges. The result depends on how often
 * each word occurs and on nothing else: not on the order of the lines, nor on the machine.
 * bpe_merges.h says which of two equally frequent pairs is merged first.
 */
#ifndef TEXT_BPE_LEARN_H
#define TEXT_BPE_LEARN_H

#include "text/tokenizer_json_write.h"

#include <mha/mha_model.h>

typedef struct bpe_learner bpe_learner;

/* On an error `message`, which may be NULL, says why. MHA_ERR_FLAG: a build without tokenizers. */
mha_status bpe_learner_create(bpe_learner **learner, char *message, size_t message_size);
void bpe_learner_free(bpe_learner *learner);

/* Counts the words of one line. MHA_ERR_FORMAT: it is not UTF-8; MHA_ERR_LENGTH: it has 2^29 bytes
 * or more, or takes too long to divide. Neither counts anything. After MHA_ERR_MEMORY the learner
 * can only be freed. */
mha_status bpe_learner_add(bpe_learner *learner, const char *text, size_t length);

typedef struct bpe_learn_options {
    int32_t vocabulary_size;      /* at most so many pieces, with marks and bytes */
    uint64_t min_pair_count;      /* rarer pairs are not merged; 0: 2 */
    uint64_t min_character_count; /* rarer characters are written as bytes; 0: 5 */
} bpe_learn_options;

typedef struct bpe_learned {
    char *json; /* the tokenizer.json, terminated */
    size_t length;
    int32_t size;       /* pieces; fewer than requested if no more pairs are frequent enough */
    int32_t characters; /* pieces of one character */
} bpe_learned;

/* Half of the pieces after the bytes are left for merges: if there are more characters, the most
 * frequent ones get pieces. MHA_ERR_SHAPE: vocabulary_size is not in LEARNED_MIN ..
 * VOCABULARY_MAX. The learner is not changed. */
mha_status bpe_learner_finish(const bpe_learner *learner, const bpe_learn_options *options,
                              bpe_learned *learned, char *message, size_t message_size);
void bpe_learned_free(bpe_learned *learned);

/* The tokenizer itself, as mha_tokenizer_open() opens it from the file. */
mha_status bpe_learned_open(const bpe_learned *learned, mha_tokenizer **tokenizer, char *message,
                            size_t message_size);

/* Replaces the file at `path` completely or, after an error, not at all. */
mha_status bpe_learned_save(const bpe_learned *learned, const char *path, char *message,
                            size_t message_size);

#endif
