/* SPDX-License-Identifier: MIT */
/*
 * Roles: every rule gives its label at its threshold and not below it, rules hold in their order,
 * and scores of made-up samples have their means and intervals. On a small model with the sentences
 * of the corpus the counts are those of the sentences. test_role_golden.c has whole heads.
 */
#include "heads/head_roles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/head_ablation.h"
#include "heads/head_pruning.h"
#include "support/test.h"
#include "support/tiny_model.h"

enum { SENTENCES = 4, ENCODER = 0, DECODER = 2, CROSS = 4, HEADS = 6 };

/* A study of six heads, two of each kind, without any samples yet. */
typedef struct six_heads {
    head_study study;
    head_sample samples[HEADS * MEASURES * SENTENCES];
} six_heads;

static six_heads *six_heads_new(void)
{
    six_heads *const s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->study = (head_study){.shape = {.layers = {1, 1, 1}, .heads = 2, .width = 4},
                            .heads = HEADS,
                            .sentences = SENTENCES,
                            .samples = s->samples,
                            .begins = {[ATTENTION_DECODER] = true}};
    for (int kind = 0; kind < ATTENTION_CROSS; kind++)
        for (int r = 0; r < RELATIONS; r++)
            s->study.baselines.relation[kind][r] = (head_baseline){1, 0.5, 40};
    for (int n = 0; n < 2; n++)
        s->study.baselines.alignment[n] = (head_baseline){0, 0.5, 40};
    return s;
}

static void put(six_heads *s, int head, int measure, double value)
{
    for (int n = 0; n < SENTENCES; n++)
        s->samples[(head * MEASURES + measure) * SENTENCES + n] = (head_sample){(float)value, 1.0f};
}

static void is(const six_heads *s, int head, const char *wanted)
{
    const head_role role = head_role_find(&s->study, head);
    const char *const name = role.found ? role.best.name : "mixed";
    CHECK(strcmp(name, wanted) == 0, "%s, not %s", name, wanted);
}

typedef struct rule_case {
    int head, measure;
    double threshold;
    const char *name;
} rule_case;

static const rule_case cases[] = {
    {ENCODER, MEASURE_FIRST, 0.6, "sink: first word"},
    {DECODER, MEASURE_FIRST, 0.6, "sink: begin"},
    {CROSS, MEASURE_END, 0.6, "sink: end"},
    {ENCODER, MEASURE_ARGMAX + OFFSET_FAR - 1, 0.9, "previous"},
    {ENCODER, MEASURE_MASS + OFFSET_FAR + 1, 0.5, "next"},
    {CROSS, MEASURE_MASS + OFFSET_FAR + 2, 0.5, "2 after"},
    {DECODER, MEASURE_MASS + OFFSET_FAR - 3, 0.5, "3 before"},
    {ENCODER, MEASURE_MASS + OFFSET_FAR, 0.5, "self"},
    {CROSS, MEASURE_MASS + OFFSET_FAR, 0.5, "same place"},
    {DECODER, MEASURE_DUPLICATE, 0.4, "duplicate"},
    {DECODER, MEASURE_INDUCTION, 0.4, "induction"},
    {ENCODER, MEASURE_QUESTION, 0.6, "question mark"},
    {ENCODER, MEASURE_RARE, 0.5, "rare word"},
    {ENCODER, MEASURE_RELATION + 2 * ROLE_SUBJECT_VERB, 0.6, "subject-verb"},
    {DECODER, MEASURE_RELATION + 2 * ROLE_ADJECTIVE_NOUN + 1, 0.6, "noun-adjective"},
    {CROSS, MEASURE_SAYS, 0.6, "aligned: says"},
    {CROSS, MEASURE_READS, 0.6, "aligned: reads"},
    {CROSS, MEASURE_ONE, 0.6, "one word"},
    {ENCODER, MEASURE_BREADTH, 0.9, "broad"},
    {ENCODER, MEASURE_REACH, 1.0 / 3.0, "far"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void rules_hold_from_their_threshold_on(void)
{
    for (int n = 0; n < CASES; n++) {
        const rule_case *const c = &cases[n];
        six_heads *const s = six_heads_new();
        put(s, c->head, c->measure, c->threshold - 0.001);
        is(s, c->head, "mixed");
        CHECK(strcmp(head_role_find(&s->study, c->head).best.name, c->name) == 0,
              "%s is not the nearest", c->name);
        put(s, c->head, c->measure, c->threshold + 0.001);
        is(s, c->head, c->name);
        CHECK(fabs(head_role_find(&s->study, c->head).best.score - c->threshold - 0.001) < 1e-6,
              "another score");
        free(s);
    }
}

static void earlier_rules_go_first(void)
{
    six_heads *const s = six_heads_new();
    put(s, ENCODER, MEASURE_REACH, 0.9);
    is(s, ENCODER, "far");
    put(s, ENCODER, MEASURE_BREADTH, 0.99);
    is(s, ENCODER, "broad");
    put(s, ENCODER, MEASURE_RELATION, 0.7);
    is(s, ENCODER, "subject-verb");
    put(s, ENCODER, MEASURE_MASS + OFFSET_FAR, 0.55);
    is(s, ENCODER, "self");
    put(s, ENCODER, MEASURE_MASS + OFFSET_FAR - 1, 0.51);
    is(s, ENCODER, "previous");
    put(s, ENCODER, MEASURE_END, 0.61);
    is(s, ENCODER, "sink: end");
    const head_role role = head_role_find(&s->study, ENCODER);
    CHECK(strcmp(role.next.name, "far") == 0, "the nearest of the others is %s", role.next.name);
    is(s, ENCODER + 1, "mixed");
    free(s);
}

static void a_decoder_cannot_look_ahead(void)
{
    six_heads *const s = six_heads_new();
    put(s, DECODER, MEASURE_MASS + OFFSET_FAR + 1, 0.9);
    is(s, DECODER, "mixed");
    free(s);
}

static void few_words_make_no_relation(void)
{
    six_heads *const s = six_heads_new();
    s->study.baselines.relation[ATTENTION_ENCODER][0].count = RELATION_COUNT_MIN - 1;
    put(s, ENCODER, MEASURE_RELATION, 1.0);
    is(s, ENCODER, "mixed");
    free(s);
}

static void relations_have_names(void)
{
    char name[ROLE_NAME_MAX];
    head_relation_name(2 * ROLE_PRONOUN_ANTECEDENT, name);
    CHECK(strcmp(name, "pronoun-antecedent") == 0, "%s", name);
    head_relation_name(2 * ROLE_PRONOUN_ANTECEDENT + 1, name);
    CHECK(strcmp(name, "antecedent-pronoun") == 0, "%s", name);
}

static void intervals_hold_the_mean(void)
{
    head_sample same[50], spread[50];
    for (int n = 0; n < 50; n++) {
        same[n] = (head_sample){0.25f, 1.0f};
        spread[n] = (head_sample){n % 2 ? 1.0f : 0.0f, 1.0f};
    }
    const head_interval one = head_interval_of(same, 50, 7), two = head_interval_of(spread, 50, 7);
    CHECK(one.low == 0.25 && one.high == 0.25, "%g to %g", one.low, one.high);
    /* 0.5 +- 1.96 * 0.5 / sqrt(50) */
    CHECK(fabs(two.low - 0.361) < 0.03 && fabs(two.high - 0.639) < 0.03, "%g to %g", two.low,
          two.high);
    memset(same, 0, sizeof same);
    CHECK(isnan(head_interval_of(same, 50, 7).low), "an interval of nothing");
}

/* ----------------------------------------------------- a model on sentences ----- */

enum { PAIRS = 24, HEADS_MAX = 24 };

typedef struct trial {
    transformer_config config;
    float *values;
    translator *model;
    head_pair *pairs;
    subject subject;
    subject_texts texts;
} trial;

static trial trial_new(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    trial t = {.config = tiny_corpus_config()};
    t.config.positions = CORPUS_TOKENS_MAX;
    t.values = tiny_values(&t.config, 24);
    t.model = translator_create(&t.config, t.values, message);
    CHECK(t.model, "no model: %s", message);
    t.pairs = head_pairs_of_corpus(t.model, 1, CORPUS_TEST, PAIRS);
    CHECK(t.pairs, "no sentences");
    subject_of_translator(&t.subject, t.model);
    CHECK(subject_count_words(&t.subject), "no memory");
    t.texts = (subject_texts){.pairs = t.pairs, .count = PAIRS};
    return t;
}

static void trial_free(trial *t)
{
    subject_close(&t->subject);
    free(t->pairs);
    free(t->values);
    translator_free(t->model);
}

static void heads_have_numbers(void)
{
    const transformer_config config = {.heads = 4, .layers = {3, 2}};
    const head_shape shape = head_shape_of(&config);
    CHECK(head_count(shape) == 28, "%d heads", head_count(shape));
    for (int n = 0; n < 28; n++)
        CHECK(head_number(shape, head_at(shape, n)) == n, "head %d", n);
    const head_name name = head_at(shape, 21);
    CHECK(name.kind == ATTENTION_CROSS && name.layer == 0 && name.head == 1, "head 21");
}

static void studies_count_what_there_is(void)
{
    trial t = trial_new();
    head_study *const study = head_study_create(&t.subject, &t.texts, NULL, NULL);
    if (CHECK(study, "no study")) {
        int64_t words = 0;
        double aligned = 0, links = 0;
        for (int n = 0; n < PAIRS; n++) {
            const corpus_pair *const gold = &t.pairs[n].gold;
            words += gold->side[CORPUS_ENGLISH].count + 1;
            for (int k = 0; k < gold->side[CORPUS_FRENCH].count; k++) {
                aligned += gold->sources[k] != 0;
                links += 1 + __builtin_popcountll(gold->sources[k]);
            }
        }
        CHECK(study->tokens[ATTENTION_ENCODER] == words, "other words");
        const int last = study->heads - 1;
        CHECK(head_study_count(study, last, MEASURE_SAYS) == aligned, "other aligned words");
        CHECK(head_study_count(study, last, MEASURE_F_READS) == links, "other links");
        CHECK(head_study_count(study, 0, MEASURE_ENTROPY) == PAIRS, "other sentences");
        CHECK(isnan(head_study_mean(study, last, MEASURE_DUPLICATE)),
              "duplicates across languages");
        CHECK(isnan(head_study_mean(study, 0, MEASURE_SAYS)), "alignment in the encoder");
        for (int head = 0; head < study->heads; head++) {
            const double entropy = head_study_mean(study, head, MEASURE_ENTROPY);
            const head_interval interval = head_study_interval(study, head, MEASURE_ENTROPY);
            CHECK(interval.low <= entropy && entropy <= interval.high, "head %d: %g not in %g, %g",
                  head, entropy, interval.low, interval.high);
        }
    }
    head_study_free(study);
    trial_free(&t);
}

/* The decoder reads what the model says. This model has learnt nothing, so that it says something
 * else than the grammar. */
static void a_text_has_the_translation_of_the_model(void)
{
    static const translation_options options = {.beam = 1};
    trial t = trial_new();
    char message[HEAD_MESSAGE_MAX] = "";
    head_pair pair;
    translation said;
    CHECK(head_pair_of_text(t.model, "The cat that I saw yesterday ran away", &pair, NULL, message),
          "%s", message);
    const numbered_pair *const w = &pair.words;
    const int *const source = w->words[CORPUS_ENGLISH];
    CHECK(!pair.known && w->count[CORPUS_ENGLISH] == 8, "the grammar's");
    CHECK(translator_translate(t.model, &source, &w->count[CORPUS_ENGLISH], 1, &options, &said,
                               NULL) == MHA_OK,
          "not translated");
    for (int n = 0; n < w->count[CORPUS_FRENCH]; n++)
        CHECK(w->words[CORPUS_FRENCH][n] == said.target[n], "word %d", n);
    CHECK(head_pair_of_text(t.model, "cat the zyzzyva cat", &pair, NULL, message), "%s", message);
    CHECK(!pair.known && pair.words.words[CORPUS_ENGLISH][2] == WORD_UNKNOWN, "known");
    CHECK(!head_pair_of_text(t.model, " . ", &pair, NULL, message) && *message, "no words");
    trial_free(&t);
}

/* The importance of heads on many sentences is the mean of that on each, as long as it is an
 * absolute value of each that is meant. */
static void importance_is_a_mean_over_sentences(void)
{
    trial t = trial_new();
    const int heads = head_count(head_shape_of(&t.config));
    double raw[HEADS_MAX], normal[HEADS_MAX], one[HEADS_MAX], sum[HEADS_MAX] = {0};
    head_eval *const all = head_eval_create(t.model, t.pairs, PAIRS, NULL);
    CHECK(head_eval_importance(all, NULL, raw, normal) == MHA_OK, "no importance");
    for (int n = 0; n < PAIRS; n++) {
        double unused[HEADS_MAX];
        head_eval *const alone = head_eval_create(t.model, &t.pairs[n], 1, NULL);
        CHECK(head_eval_importance(alone, NULL, one, unused) == MHA_OK, "no importance");
        for (int head = 0; head < heads; head++)
            sum[head] += one[head];
        head_eval_free(alone);
    }
    for (int first = 0; first < heads; first += t.config.heads) {
        double squares = 0;
        for (int head = first; head < first + t.config.heads; head++) {
            CHECK(fabs(sum[head] / PAIRS - raw[head]) < 1e-3 * raw[head], "head %d: %g, not %g",
                  head, raw[head], sum[head] / PAIRS);
            squares += normal[head] * normal[head];
        }
        CHECK(fabs(squares - 1) < 1e-9, "a layer of length %g", squares);
    }
    head_eval_free(all);
    trial_free(&t);
}

/* Disabling heads by settings, and by columns of W_O that are 0, is the same. */
static void pruned_models_lose_what_closed_heads_cost(void)
{
    trial t = trial_new();
    head_pruning *const p = head_pruning_create(t.model, t.pairs, PAIRS, t.pairs, PAIRS, NULL);
    pruning_step step;
    attention_cost before, after;
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    if (!CHECK(p, "no pruning"))
        return;
    for (int n = 0; n < 9; n++)
        CHECK(head_pruning_prune(p, &step) == MHA_OK, "step %d", n);
    CHECK(head_pruning_left(p) == 15, "%d heads left", head_pruning_left(p));
    CHECK(!head_pruning_keeps(p, step.pruned), "the last one is still there");
    CHECK(head_pruning_cost(p, &before, &after) == MHA_OK && after.bytes < before.bytes,
          "not smaller");
    float *const values = head_pruning_values(p);
    translator *const pruned = translator_create(&t.config, values, message);
    head_eval *const eval = head_eval_create(pruned, t.pairs, PAIRS, NULL);
    head_loss each[PAIRS];
    CHECK(head_eval_run(eval, NULL, each, NULL) == MHA_OK, "no losses");
    CHECK(fabs(head_total_of(each, PAIRS).loss - step.total.loss) < 1e-5, "%g, not %g",
          head_total_of(each, PAIRS).loss, step.total.loss);
    head_eval_free(eval);
    translator_free(pruned);
    free(values);
    head_pruning_free(p);
    trial_free(&t);
}

/* What a disabled head costs is the difference of two captures, and nothing stays changed. */
static void damage_is_the_difference_of_losses(void)
{
    trial t = trial_new();
    head_ablation *const a = head_ablation_create(&t.subject, &t.texts, HEAD_ZERO, NULL, NULL);
    head_damage first, again, both;
    uint8_t changes[8] = {[3] = HEAD_ZERO};
    capture_options options = {0};
    double loss = 0;
    int64_t words = 0;
    const int head = 8 + 3, two[2] = {head, 0};
    if (!CHECK(a, "no ablation"))
        return;
    options.changes[ATTENTION_DECODER] = changes;
    CHECK(head_ablation_measure(a, &head, 1, &first) == MHA_OK, "no damage");
    CHECK(head_ablation_measure(a, two, 2, &both) == MHA_OK, "no damage");
    CHECK(head_ablation_measure(a, &head, 1, &again) == MHA_OK, "no damage");
    CHECK(first.delta == again.delta && first.delta != both.delta, "%g, then %g", first.delta,
          again.delta);
    for (int n = 0; n < PAIRS; n++) {
        const numbered_pair *const w = &t.pairs[n].words;
        capture *const c = capture_create(t.model, w->words[0], w->count[0], w->words[1],
                                          w->count[1], &options, NULL);
        for (int row = 0; c && row < c->target_count; row++, words++)
            loss -= c->log_likelihood[row];
        capture_free(c);
    }
    CHECK(fabs(first.total.loss - loss / (double)words) < 1e-5, "%g, not %g", first.total.loss,
          loss / (double)words);
    head_ablation_free(a);
    trial_free(&t);
}

/* A greedy search says a sentence right if and only if each of its words follows the right ones. */
static void exact_sentences_are_those_of_a_greedy_search(void)
{
    trial t = trial_new();
    const translation_options options = {.beam = 1};
    int ended = 0;
    for (int n = 0; n < PAIRS; n++) {
        /* A model of no skill is right where it is asked for what it says. */
        const numbered_pair *const w = &t.pairs[n].words;
        const int *const source = w->words[CORPUS_ENGLISH];
        translation said;
        CHECK(translator_translate(t.model, &source, &w->count[CORPUS_ENGLISH], 1, &options, &said,
                                   NULL) == MHA_OK,
              "not translated");
        const int count = said.target_count - 1;
        if (said.target[count] != WORD_END)
            continue;
        ended++;
        head_pair own = t.pairs[n];
        memcpy(own.words.words[CORPUS_FRENCH], said.target, sizeof said.target);
        own.words.count[CORPUS_FRENCH] = count;
        head_eval *const one = head_eval_create(t.model, &own, 1, NULL);
        head_loss loss;
        CHECK(head_eval_run(one, NULL, &loss, NULL) == MHA_OK, "no loss");
        CHECK(loss.right == loss.words && loss.words == count + 1, "%d of %d right", loss.right,
              loss.words);
        CHECK(fabs(loss.loss + said.score) < 1e-4, "%g, not %g", loss.loss, -said.score);
        head_eval_free(one);
    }
    CHECK(ended > PAIRS / 2, "only %d translations end", ended);
    trial_free(&t);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(rules_hold_from_their_threshold_on);
    RUN(earlier_rules_go_first);
    RUN(a_decoder_cannot_look_ahead);
    RUN(few_words_make_no_relation);
    RUN(relations_have_names);
    RUN(intervals_hold_the_mean);
    RUN(heads_have_numbers);
    RUN(studies_count_what_there_is);
    RUN(a_text_has_the_translation_of_the_model);
    RUN(importance_is_a_mean_over_sentences);
    RUN(pruned_models_lose_what_closed_heads_cost);
    RUN(damage_is_the_difference_of_losses);
    RUN(exact_sentences_are_those_of_a_greedy_search);
    return test_end();
}
