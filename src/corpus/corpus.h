/* SPDX-License-Identifier: MIT */
/*
 * The corpus: English sentences with their French translations, made by a grammar, so that the
 * truth about them is known: which word comes from which, and what every word does.
 *
 *      derivation --corpus_build()--> pair: tokens, alignment, roles         corpus_build.c
 *      seed, split, index --corpus_generate()--> derivation and pair         corpus_generate.c
 *      English text --corpus_translate()--> derivation and pair              corpus_parse.c
 *
 * An English sentence of the language has one French translation. The grammar is told in
 * docs/corpus.md, its words are in lexicon.h, the shape of a derivation in corpus_grammar.h.
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corpus/corpus_grammar.h"

/* An English sentence that corpus_generate() makes has at most CORPUS_ENGLISH_MAX tokens. */
enum { CORPUS_TOKENS_MAX = 64, CORPUS_ENGLISH_MAX = 20, CORPUS_ROLES_MAX = 64 };
enum { CORPUS_TEXT_MAX = 1024, CORPUS_MESSAGE_MAX = 256 };

typedef enum corpus_side { CORPUS_ENGLISH, CORPUS_FRENCH, CORPUS_SIDES } corpus_side;

/* Lower case; elided words (l', j', qu') are tokens of their own, contractions (du, au) are one.
 * The texts are constant, or belong to whoever cut them (corpus_tokenise). */
typedef struct corpus_sentence {
    const char *tokens[CORPUS_TOKENS_MAX];
    int count;
} corpus_sentence;

typedef enum corpus_role_kind {
    ROLE_SUBJECT_VERB, /* the verb with the meaning; in the French past the participle */
    ROLE_VERB_OBJECT,
    ROLE_DETERMINER_NOUN,
    ROLE_ADJECTIVE_NOUN, /* also across "to be" */
    ROLE_PRONOUN_ANTECEDENT,
    ROLE_RELATIVE_ANTECEDENT, /* that, who, qui, que and the noun they take up */
    ROLE_KINDS
} corpus_role_kind;

/* Two token positions on each side, in the order of the name. A pair of positions is -1 on a side
 * that has no such words. */
typedef struct corpus_role {
    corpus_role_kind kind;
    int first[CORPUS_SIDES], second[CORPUS_SIDES];
} corpus_role;

typedef struct corpus_pair {
    corpus_sentence side[CORPUS_SIDES];
    uint64_t sources[CORPUS_TOKENS_MAX]; /* bit i: this French token comes from English token i */
    corpus_role roles[CORPUS_ROLES_MAX];
    int role_count;
} corpus_pair;

/* "subject-verb" and so on. */
const char *corpus_role_name(corpus_role_kind kind);

/* False for a derivation that has no sentence: too long, or a pronoun without one clear noun. */
bool corpus_build(const corpus_derivation *derivation, corpus_pair *pair);

/* -------------------------------------------------------------- splits ----- */

typedef enum corpus_split { CORPUS_TRAIN, CORPUS_VALID, CORPUS_TEST, CORPUS_SPLITS } corpus_split;

/* "train", "valid", "test". */
const char *corpus_split_name(corpus_split split);

/* Two words with a relation between them, named by their English base forms: what
 * is held out. */
typedef struct corpus_combination {
    corpus_role_kind kind; /* subject-verb, verb-object or adjective-noun */
    const char *first, *second;
} corpus_combination;

enum { CORPUS_COMBINATIONS_MAX = 32 };

/* Those of a sentence; a pronoun counts as the noun it stands for. Returns how many. */
int corpus_combinations(const corpus_derivation *derivation,
                        corpus_combination list[CORPUS_COMBINATIONS_MAX]);

/* FNV-1a of a text and its end, going on from `start`. */
uint64_t corpus_hash(uint64_t start, const char *text);

/* Where a combination belongs: a fixed hash of its words, 8 % test, 4 % valid. */
corpus_split corpus_combination_split(const corpus_combination *combination);

/*
 * Sentence `index` of a split. The same numbers give the same sentence on every machine.
 * A training sentence has no combination of valid or test; a sentence of these has at least one
 * of its own split, and none of the other. `derivation` may be NULL.
 */
void corpus_generate(uint64_t seed, corpus_split split, uint64_t index, corpus_pair *pair,
                     corpus_derivation *derivation);

/* ---------------------------------------------------------------- text ----- */

/* The pair of an English sentence. False, with a sentence in `message`, for one that is not in
 * the language. `derivation` may be NULL. */
bool corpus_translate(const char *english, corpus_pair *pair, corpus_derivation *derivation,
                      char message[CORPUS_MESSAGE_MAX]);

/* Cuts text into tokens, written to `buffer`: lower case, "?" on its own, other punctuation
 * dropped; English "don't" becomes "do not", French "l'ami" "l'" and "ami". False if it does not
 * fit. */
bool corpus_tokenise(corpus_side side, const char *text, char buffer[CORPUS_TEXT_MAX],
                     corpus_sentence *sentence);

/* Tokens as text: no space after an apostrophe; none before an English "?". */
void corpus_detokenise(corpus_side side, const corpus_sentence *sentence,
                       char text[CORPUS_TEXT_MAX]);

/* ---------------------------------------------------------- vocabulary ----- */

enum { CORPUS_WORDS_MAX = 1024 };

/* All words of a side, in the order of their bytes. */
typedef struct corpus_vocabulary {
    const char *words[CORPUS_WORDS_MAX];
    int count;
} corpus_vocabulary;

void corpus_vocabulary_fill(corpus_vocabulary *vocabulary, corpus_side side);

/* The index of a word, -1 if it is none. */
int corpus_vocabulary_find(const corpus_vocabulary *vocabulary, const char *word);

#endif
