/* SPDX-License-Identifier: MIT */
/*
 * The corpus: English sentences with their French translations. A grammar makes them, so for every
 * pair the alignment of the words and their grammatical roles are known exactly.
 *
 *      derivation --corpus_build()--> pair: tokens, alignment, roles         corpus_build.c
 *      seed, split, index --corpus_generate()--> derivation and pair         corpus_generate.c
 *      English text --corpus_translate()--> derivation and pair              corpus_parse.c
 *
 * Every English sentence of the language has exactly one French translation. The grammar is
 * described in docs/corpus.md; the words are in lexicon.h, derivations in corpus_grammar.h.
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus_grammar.h"

/* Limits: tokens and roles of any sentence, and tokens of an English sentence of
 * corpus_generate(). */
enum { CORPUS_TOKENS_MAX = 64, CORPUS_ENGLISH_MAX = 20, CORPUS_ROLES_MAX = 64 };
enum { CORPUS_TEXT_MAX = 1024, CORPUS_MESSAGE_MAX = 256 };

typedef enum corpus_side { CORPUS_ENGLISH, CORPUS_FRENCH, CORPUS_SIDES } corpus_side;

/* The tokens of a sentence, in lower case. An elided word (l', j', qu') is a token of its own, a
 * contraction (du, au) is one token. The texts are constants, or belong to the caller of
 * corpus_tokenise(). */
typedef struct corpus_sentence {
    const char *tokens[CORPUS_TOKENS_MAX];
    int count;
} corpus_sentence;

typedef enum corpus_role_kind {
    ROLE_SUBJECT_VERB, /* the main verb, no auxiliary; in the French past the participle */
    ROLE_VERB_OBJECT,
    ROLE_DETERMINER_NOUN,
    ROLE_ADJECTIVE_NOUN, /* also across "to be" */
    ROLE_PRONOUN_ANTECEDENT,
    ROLE_RELATIVE_ANTECEDENT, /* that, who, qui, que and the noun they refer to */
    ROLE_KINDS
} corpus_role_kind;

/* Two token positions per side, in the order of the name. Positions are -1 on a side that has no
 * such words. */
typedef struct corpus_role {
    corpus_role_kind kind;
    int first[CORPUS_SIDES], second[CORPUS_SIDES];
} corpus_role;

typedef struct corpus_pair {
    corpus_sentence side[CORPUS_SIDES];
    uint64_t sources[CORPUS_TOKENS_MAX]; /* bit i: this French token translates English token i */
    corpus_role roles[CORPUS_ROLES_MAX];
    int role_count;
} corpus_pair;

/* "subject-verb" and so on. */
const char *corpus_role_name(corpus_role_kind kind);

/* Writes the pair of a derivation. Returns false if it is too long or if it has a corpus_fault().
 */
bool corpus_build(const corpus_derivation *derivation, corpus_pair *pair);

/* -------------------------------------------------------------- splits ----- */

typedef enum corpus_split { CORPUS_TRAIN, CORPUS_VALID, CORPUS_TEST, CORPUS_SPLITS } corpus_split;

/* "train", "valid", "test". */
const char *corpus_split_name(corpus_split split);

/* Two related words, named by their English base forms. Combinations are what the splits hold
 * out: those of valid and test never occur in train. */
typedef struct corpus_combination {
    corpus_role_kind kind; /* subject-verb, verb-object or adjective-noun */
    const char *first, *second;
} corpus_combination;

enum { CORPUS_COMBINATIONS_MAX = 32 };

/* Lists the combinations of a sentence and returns their number. A pronoun counts as the noun it
 * refers to. */
int corpus_combinations(const corpus_derivation *derivation,
                        corpus_combination list[CORPUS_COMBINATIONS_MAX]);

/* FNV-1a of a text including its terminating 0, continued from the hash `start`. */
uint64_t corpus_hash(uint64_t start, const char *text);

/* The split of a combination, from a fixed hash of its words: 8 % test, 4 % valid. */
corpus_split corpus_combination_split(const corpus_combination *combination);

/*
 * Makes sentence `index` of a split. The same seed, split and index give the same sentence on every
 * machine. A training sentence has no combination of valid or test; a sentence of valid or test has
 * at least one of its own split, and none of the other. `derivation` may be NULL.
 */
void corpus_generate(uint64_t seed, corpus_split split, uint64_t index, corpus_pair *pair,
                     corpus_derivation *derivation);

/* ---------------------------------------------------------------- text ----- */

/* Translates an English sentence. Returns false, with the reason in `message`, if it is not a
 * sentence of the language. `derivation` may be NULL. */
bool corpus_translate(const char *english, corpus_pair *pair, corpus_derivation *derivation,
                      char message[CORPUS_MESSAGE_MAX]);

/* Splits text into tokens, which are stored in `buffer`: lower case, "?" as a token, other
 * punctuation dropped; English "don't" becomes "do not", French "l'ami" becomes "l'" and "ami".
 * Returns false if there are too many tokens or bytes. */
bool corpus_tokenise(corpus_side side, const char *text, char buffer[CORPUS_TEXT_MAX],
                     corpus_sentence *sentence);

/* Joins tokens to a text, without a space after an apostrophe or before an English "?". */
void corpus_detokenise(corpus_side side, const corpus_sentence *sentence,
                       char text[CORPUS_TEXT_MAX]);

/* ---------------------------------------------------------- vocabulary ----- */

enum { CORPUS_WORDS_MAX = 1024 };

/* All words of one language, sorted by their bytes. */
typedef struct corpus_vocabulary {
    const char *words[CORPUS_WORDS_MAX];
    int count;
} corpus_vocabulary;

void corpus_vocabulary_fill(corpus_vocabulary *vocabulary, corpus_side side);

/* Returns the index of a word, or -1 if it is not in the vocabulary. */
int corpus_vocabulary_find(const corpus_vocabulary *vocabulary, const char *word);

#endif
