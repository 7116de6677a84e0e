/* SPDX-License-Identifier: MIT */
#include "heads/head_roles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names that several places have. */
static const char *const sink_names[] = {"sink: first word", "sink: begin", "sink: end"};
static const char *const aligned_names[] = {"aligned: says", "aligned: reads"};
static const char same_place[] = "same place";

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

/* Takes the score if it is nearer to its threshold than what is there. */
static void offer(role_score *best, bool *any, const role_score *score)
{
    if (isnan(score->score) ||
        (*any && score->score / score->threshold <= best->score / best->threshold))
        return;
    *best = *score;
    *any = true;
}

static role_score make(const head_study *study, int head, role_rule rule, int measure,
                       double threshold, const char *name)
{
    role_score score = {rule, measure, "", head_study_mean(study, head, measure), threshold};
    snprintf(score.name, sizeof score.name, "%s", name);
    return score;
}

static bool score_sink(const head_study *study, int head, attention_kind kind, role_score *best)
{
    bool any = false;
    const role_score first =
        make(study, head, RULE_SINK, MEASURE_FIRST, 0.6, sink_names[kind == ATTENTION_DECODER]);
    const role_score end = make(study, head, RULE_SINK, MEASURE_END, 0.6, sink_names[2]);
    offer(best, &any, &first);
    offer(best, &any, &end);
    return any;
}

static bool score_offset(const head_study *study, int head, attention_kind kind, role_score *best)
{
    bool any = false;
    for (int r = -OFFSET_FAR; r <= OFFSET_FAR; r++) {
        char name[ROLE_NAME_MAX];
        if (r == 0 || (kind == ATTENTION_DECODER && r > 0))
            continue;
        head_offset_name(r, name);
        const role_score argmax =
            make(study, head, RULE_OFFSET, MEASURE_ARGMAX + OFFSET_FAR + r, 0.9, name);
        const role_score mass =
            make(study, head, RULE_OFFSET, MEASURE_MASS + OFFSET_FAR + r, 0.5, name);
        offer(best, &any, &argmax);
        offer(best, &any, &mass);
    }
    return any;
}

static void offer_relation(const head_study *study, int head, attention_kind kind, int measure,
                           const char *name, role_score *best, bool *any)
{
    const head_baseline *const baseline = head_study_baseline(study, kind, measure);
    if (baseline->count < RELATION_COUNT_MIN)
        return;
    const role_score score = make(study, head, RULE_RELATION, measure, baseline->share + 0.1, name);
    offer(best, any, &score);
}

static bool score_relation(const head_study *study, int head, attention_kind kind, role_score *best)
{
    bool any = false;
    for (int r = 0; kind != ATTENTION_CROSS && r < RELATIONS; r++) {
        char name[ROLE_NAME_MAX];
        head_relation_name(r, name);
        offer_relation(study, head, kind, MEASURE_RELATION + r, name, best, &any);
    }
    if (kind == ATTENTION_CROSS) {
        offer_relation(study, head, kind, MEASURE_SAYS, aligned_names[0], best, &any);
        offer_relation(study, head, kind, MEASURE_READS, aligned_names[1], best, &any);
    }
    return any;
}

bool head_rule_score(const head_study *study, int head, role_rule rule, role_score *score)
{
    const attention_kind kind = head_at(&study->config, head).kind;
    bool any = false;
    switch (rule) {
    case RULE_SINK:
        return score_sink(study, head, kind, score);
    case RULE_OFFSET:
        return score_offset(study, head, kind, score);
    case RULE_RELATION:
        return score_relation(study, head, kind, score);
    default: {
        const bool cross_self = rule == RULE_SELF && kind == ATTENTION_CROSS;
        const role_score one = make(study, head, rule, plain[rule].measure, plain[rule].threshold,
                                    cross_self ? same_place : plain[rule].name);
        offer(score, &any, &one);
        return any;
    }
    }
}

head_role head_role_find(const head_study *study, int head)
{
    role_score scores[RULES];
    bool there[RULES], any = false, next = false;
    head_role role = {0};
    int chosen = -1;
    for (int rule = 0; rule < RULES; rule++) {
        there[rule] = head_rule_score(study, head, (role_rule)rule, &scores[rule]);
        if (!role.found && there[rule] && scores[rule].score >= scores[rule].threshold) {
            role.found = any = true;
            role.best = scores[rule];
        }
    }
    for (int rule = 0; rule < RULES && !role.found; rule++)
        if (there[rule])
            offer(&role.best, &any, &scores[rule]);
    chosen = any ? (int)role.best.rule : -1;
    for (int rule = 0; rule < RULES; rule++)
        if (there[rule] && rule != chosen)
            offer(&role.next, &next, &scores[rule]);
    if (any) {
        role.interval = head_study_interval(study, head, role.best.measure);
        role.count = head_study_count(study, head, role.best.measure);
    }
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
