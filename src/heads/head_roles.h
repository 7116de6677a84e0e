/* SPDX-License-Identifier: MIT */
/*
 * The role of a head: the first of these rules that holds.
 *
 *      sink            at least 0.6 of its weight on the first column, or on the end marks of what
 *                      the encoder reads
 *      offset          the largest weight at one fixed offset in 0.9 of the rows (Voita), or half
 *                      of the weight there (Clark)
 *      self            half of its weight at offset 0; in cross-attention: "same place"
 *      duplicate, induction    0.4 of its weight where the detector says
 *      question        0.6 of its weight on "?"
 *      rare            the largest weight on the rarest word in half of the rows
 *      relation        finds the other word of a relation of the grammar in 0.1 more of the cases
 *                      than the best fixed offset does; in cross-attention: a word that the word
 *                      of the target translates, where the grammar knows it, or as far as it was
 *                      estimated (word_links.h). Needs RELATION_COUNT_MIN cases.
 *      one             in 0.6 of the rows more than half of the weight on the same word
 *      broad           entropy at least 0.9 of that of equal weights
 *      far             mean distance at least a third of the columns
 *
 * and "mixed" if none holds. The rules are the same for one sentence and for many, in the terminal
 * and on the page of "mha view", which prints what head_role_choose() found. Thresholds without a
 * name are our choice. tests/golden/roles.json pins rules, names and thresholds.
 */
#ifndef HEADS_HEAD_ROLES_H
#define HEADS_HEAD_ROLES_H

#include "heads/head_study.h"

typedef enum role_rule {
    RULE_SINK,
    RULE_OFFSET,
    RULE_SELF,
    RULE_DUPLICATE,
    RULE_INDUCTION,
    RULE_QUESTION,
    RULE_RARE,
    RULE_RELATION,
    RULE_ONE,
    RULE_BROAD,
    RULE_FAR,
    RULES
} role_rule;

enum { ROLE_NAME_MAX = 48, RELATION_COUNT_MIN = 20 };

/* How near a head is to a rule. */
typedef struct role_score {
    role_rule rule;
    int measure; /* a head_measure */
    char name[ROLE_NAME_MAX];
    double score, threshold;
} role_score;

typedef struct head_role {
    bool found; /* else it is mixed, and `best` is the nearest rule */
    role_score best;
    role_score next;        /* the nearest of the other rules */
    head_interval interval; /* of the score; NaN from head_role_choose() */
    double count;           /* what the score is a mean over */
} head_role;

/* What the rules read of one head. */
typedef struct head_means {
    attention_kind kind;
    bool begins;                            /* the first column is the begin mark */
    double mean[MEASURES], count[MEASURES]; /* NaN and 0: not measured */
    const head_baselines *baselines;        /* NULL: no relation is known */
} head_means;

/* The means of one sentence. */
head_means head_means_of(const head_scene *scene, const head_sample samples[MEASURES],
                         const head_baselines *baselines);

/* The role of a head with these means; for a head of a study with the interval of the score. */
head_role head_role_choose(const head_means *means);
head_role head_role_find(const head_study *study, int head);

/* The name of a rule in JSON: "sink", "offset" and so on. */
const char *head_rule_name(role_rule rule);

/* The names of all roles, and ROLE_NONE; returns how many there are, at most ROLE_NAMES. */
#define ROLE_NONE "mixed"
enum { ROLE_NAMES = 17 + 2 * OFFSET_FAR + RELATIONS };
int head_role_names(char names[ROLE_NAMES][ROLE_NAME_MAX]);

/* "previous", "2 after". */
void head_offset_name(int offset, char name[ROLE_NAME_MAX]);
/* "subject-verb", "verb-subject": from its first word to the second, and back. */
void head_relation_name(int relation, char name[ROLE_NAME_MAX]);

#endif
