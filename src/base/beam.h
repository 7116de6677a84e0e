/* SPDX-License-Identifier: MIT */
/*
 * Beam search over one text: which hypotheses continue, which have ended, and when to stop. Whoever
 * searches computes the probabilities of the next tokens; this file decides what becomes of them.
 *
 *      A step extends every running hypothesis by tokens, and ranks all these continuations by
 *      their score, the sum of the logarithms of their tokens' probabilities. Of the best `width`,
 *      those that end are finished; the best `width` that do not end run on.
 *
 *      Finished hypotheses are ranked by score / length^penalty, where the length counts the end
 *      mark, and the best `width` are kept. The search is over if there are `width` of them and the
 *      best running one, with its present length, does not rank above the last of them. At the
 *      limit of the length the best `width` continuations are finished as they are.
 *
 * A width of 1 is greedy search. Equal scores are ordered by the number of the hypothesis, then by
 * the token, so that a text does not depend on anything but its own probabilities.
 */
#ifndef BASE_BEAM_H
#define BASE_BEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BEAM_WIDTH_MAX = 64 };

/* The width with which encoder-decoders of libmha_model translate unless the user gives another, in
 * the terminal and wherever their heads are shown; the penalty is then 1. */
enum { BEAM_USUAL = 4 };

/* A continuation: a running hypothesis, by its number, and its next token. */
typedef struct beam_choice {
    double score; /* of the whole hypothesis with this token */
    int parent;
    int32_t token;
    bool ends;
} beam_choice;

/* A hypothesis ends at a node; the nodes before it have its other tokens. */
typedef struct beam_node {
    double score;
    int32_t token;
    int parent; /* the number that the hypothesis had when this token extended it */
    int before; /* a node; -1: none */
} beam_node;

typedef struct beam_hypothesis {
    double rank; /* score / length^penalty; only of finished ones */
    int node;    /* -1: it has no tokens */
    int length;
    bool ended; /* false: it was cut off at the limit */
} beam_hypothesis;

typedef struct beam_search {
    int width, limit; /* limit: tokens of a hypothesis, the end mark included */
    double penalty;
    int running_count, finished_count;
    beam_hypothesis *running, *next, *finished; /* [width], best first */
    void *block;                                /* the memory of these three */
    beam_node *nodes;
    size_t node_count, node_room;
    bool over;
} beam_search;

/* One running hypothesis without tokens. False if out of memory; beam_free() frees what there is
 * then, too. */
bool beam_begin(beam_search *search, int width, int limit, double penalty);
void beam_free(beam_search *search);

/* The score of a running hypothesis, and its last token. */
double beam_score(const beam_search *search, int number);
int32_t beam_token(const beam_search *search, int number);

/*
 * One step. `choices` must have the best `width` continuations that end and those that do not, of
 * each running hypothesis, as far as there are any; it is sorted here. parents[n] becomes the
 * number that the running hypothesis n extends. False if out of memory.
 */
bool beam_step(beam_search *search, beam_choice *choices, size_t count, int *parents);

/* The nodes of a finished hypothesis in the order of its tokens; path[limit]. Returns their number,
 * which is `length`. */
int beam_path(const beam_search *search, const beam_hypothesis *h, const beam_node **path);

#endif
