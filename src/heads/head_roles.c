/* SPDX-License-Identifier: MIT */
/*
 * Names the role of a head from its means, which head_measures.c and head_study.c make. Each rule
 * has a score and a threshold; the first rule whose score reaches its threshold gives the role.
 * Scores divided by their thresholds show which rule is nearest.
 */
#include "heads/head_roles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names that are used more than once. */
static const char *const sink_names[] = {"sink: first word", "sink: begin", "sink: end"};
static const char *const aligned_names[] = {"aligned: says", "aligned: reads"};
static const char same_place[] = "same place";

/* The rules with a single measure; sink, offset and relation have functions of their own. */
static const struct {
    int measure;
    double threshold;
    const char *name;
} plain[RULES] = {
    [RULE_SELF] = {MEASURE_MASS + OFFSET_FAR, 0.5, "self"},
    [RULE_DUPLICATE] = {MEASURE_DUPLICATE, 0.4, "duplicate"},
    [RULE_INDUCTION] = {MEASURE_INDUCTION, 0.4, "induction"},
    [RULE_QUESTION] = {MEASURE_QUESTION, 0.6, "question mark"},
    [RULE_RARE] = {MEASURE_RARE, 0.5, "rare word"},
    [RULE_ONE] = {MEASURE_ONE, 0.6, "one word"},
    [RULE_BROAD] = {MEASURE_BREADTH, 0.9, "broad"},
    [RULE_FAR] = {MEASURE_REACH, 1.0 / 3.0, "far"},
};

void head_offset_name(int offset, char name[ROLE_NAME_MAX])
{
    if (offset == 0)
        snprintf(name, ROLE_NAME_MAX, "self");
    else if (offset == -1 || offset == 1)
        snprintf(name, ROLE_NAME_MAX, "%s", offset < 0 ? "previous" : "next");
    else
        snprintf(name, ROLE_NAME_MAX, "%d %s", offset < 0 ? -offset : offset,
                 offset < 0 ? "before" : "after");
}

void head_relation_name(int relation, char name[ROLE_NAME_MAX])
{
    const char *const both = corpus_role_name((corpus_role_kind)(relation / 2));
    const char *const second = strchr(both, '-');
    if (relation % 2 == 0 || !second)
        snprintf(name, ROLE_NAME_MAX, "%s", both);
    else
        snprintf(name, ROLE_NAME_MAX, "%s-%.*s", second + 1, (int)(second - both), both);
}

const char *head_rule_name(role_rule rule)
{
    static const char *const names[RULES] = {
        "sink", "offset",   "self", "duplicate", "induction", "question",
        "rare", "relation", "one",  "broad",     "far",
    };
    return names[rule];
}

/* Takes the score if it is nearer to its threshold than the one so far. */
static void offer(role_score *best, bool *any, const role_score *score)
{
    if (isnan(score->score) ||
        (*any && score->score / score->threshold <= best->score / best->threshold))
        return;
    *best = *score;
    *any = true;
}

/* Samples are floats, so that thresholds are compared as floats: 9 rows of 10 are 0.9. */
static bool holds(const role_score *score)
{
    return (float)score->score >= (float)score->threshold;
}

/* The score of a measure; NaN if it was not measured. */
static role_score make(const head_means *h, role_rule rule, int measure, double threshold,
                       const char *name)
{
    role_score score = {rule, measure, "", h->mean[measure], threshold};
    snprintf(score.name, sizeof score.name, "%s", name);
    return score;
}

/* The score_ functions find the best score of a rule; false: nothing was measured for it. */
static bool score_sink(const head_means *h, role_score *best)
{
    bool any = false;
    const role_score first = make(h, RULE_SINK, MEASURE_FIRST, 0.6, sink_names[h->begins]);
    const role_score end = make(h, RULE_SINK, MEASURE_END, 0.6, sink_names[2]);
    offer(best, &any, &first);
    offer(best, &any, &end);
    return any;
}

static bool score_offset(const head_means *h, role_score *best)
{
    bool any = false;
    for (int r = -OFFSET_FAR; r <= OFFSET_FAR; r++) {
        char name[ROLE_NAME_MAX];
        if (r == 0 || (h->kind == ATTENTION_DECODER && r > 0))
            continue;
        head_offset_name(r, name);
        const role_score argmax = make(h, RULE_OFFSET, MEASURE_ARGMAX + OFFSET_FAR + r, 0.9, name);
        const role_score mass = make(h, RULE_OFFSET, MEASURE_MASS + OFFSET_FAR + r, 0.5, name);
        offer(best, &any, &argmax);
        offer(best, &any, &mass);
    }
    return any;
}

/* A relation must be found in 0.1 more of its cases than the baseline finds, and be frequent. */
static void offer_relation(const head_means *h, const head_baseline *baseline, int measure,
                           const char *name, role_score *best, bool *any)
{
    if (baseline->count < RELATION_COUNT_MIN)
        return;
    const role_score score = make(h, RULE_RELATION, measure, baseline->share + 0.1, name);
    offer(best, any, &score);
}

static bool score_relation(const head_means *h, role_score *best)
{
    bool any = false;
    if (!h->baselines)
        return false;
    for (int r = 0; h->kind != ATTENTION_CROSS && r < RELATIONS; r++) {
        char name[ROLE_NAME_MAX];
        head_relation_name(r, name);
        offer_relation(h, &h->baselines->relation[h->kind][r], MEASURE_RELATION + r, name, best,
                       &any);
    }
    for (int reads = 0; h->kind == ATTENTION_CROSS && reads < 2; reads++)
        offer_relation(h, &h->baselines->alignment[reads], MEASURE_SAYS + reads,
                       aligned_names[reads], best, &any);
    return any;
}

/* The best score of a rule; false where nothing of the kind occurred, or too little of it. */
static bool score_rule(const head_means *h, role_rule rule, role_score *score)
{
    bool any = false;
    switch (rule) {
    case RULE_SINK:
        return score_sink(h, score);
    case RULE_OFFSET:
        return score_offset(h, score);
    case RULE_RELATION:
        return score_relation(h, score);
    default: {
        const bool cross_self = rule == RULE_SELF && h->kind == ATTENTION_CROSS;
        const role_score one = make(h, rule, plain[rule].measure, plain[rule].threshold,
                                    cross_self ? same_place : plain[rule].name);
        offer(score, &any, &one);
        return any;
    }
    }
}

head_role head_role_choose(const head_means *means)
{
    role_score scores[RULES];
    bool there[RULES], any = false, next = false;
    head_role role = {.interval = {NAN, NAN}};
    for (int rule = 0; rule < RULES; rule++) {
        there[rule] = score_rule(means, (role_rule)rule, &scores[rule]);
        if (!role.found && there[rule] && holds(&scores[rule])) {
            role.found = any = true;
            role.best = scores[rule];
        }
    }
    for (int rule = 0; rule < RULES && !role.found; rule++)
        if (there[rule])
            offer(&role.best, &any, &scores[rule]);
    for (int rule = 0; rule < RULES; rule++)
        if (there[rule] && !(any && rule == (int)role.best.rule))
            offer(&role.next, &next, &scores[rule]);
    if (any)
        role.count = means->count[role.best.measure];
    return role;
}

head_means head_means_of(const head_scene *scene, const head_sample samples[MEASURES],
                         const head_baselines *baselines)
{
    head_means h = {.kind = scene->kind, .begins = scene->begins, .baselines = baselines};
    for (int n = 0; n < MEASURES; n++) {
        h.count[n] = (double)samples[n].count;
        h.mean[n] = samples[n].count > 0.0f ? (double)samples[n].sum / h.count[n] : NAN;
    }
    return h;
}

head_role head_role_find(const head_study *study, int head)
{
    const attention_kind kind = head_at(study->shape, head).kind;
    head_means h = {.kind = kind, .begins = study->begins[kind], .baselines = &study->baselines};
    for (int n = 0; n < MEASURES; n++) {
        h.mean[n] = head_study_mean(study, head, n);
        h.count[n] = head_study_count(study, head, n);
    }
    head_role role = head_role_choose(&h);
    if (role.count > 0.0)
        role.interval = head_study_interval(study, head, role.best.measure);
    return role;
}

static void add_name(char names[ROLE_NAMES][ROLE_NAME_MAX], int *count, const char *name)
{
    snprintf(names[(*count)++], ROLE_NAME_MAX, "%s", name);
}

int head_role_names(char names[ROLE_NAMES][ROLE_NAME_MAX])
{
    int count = 0;
    for (int n = 0; n < 3; n++)
        add_name(names, &count, sink_names[n]);
    for (int r = -OFFSET_FAR; r <= OFFSET_FAR; r++)
        if (r != 0)
            head_offset_name(r, names[count++]);
    add_name(names, &count, same_place);
    for (int rule = 0; rule < RULES; rule++)
        if (plain[rule].name)
            add_name(names, &count, plain[rule].name);
    for (int r = 0; r < RELATIONS; r++)
        head_relation_name(r, names[count++]);
    for (int n = 0; n < 2; n++)
        add_name(names, &count, aligned_names[n]);
    add_name(names, &count, ROLE_NONE);
    return count;
}
