/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of captures, studies, ablation, pruning and repair fails once (faults.h): the
 * functions report it, leak nothing, and succeed afterwards.
 */
#include <stdlib.h>

#include "heads/head_ablation.h"
#include "heads/head_alignment.h"
#include "heads/head_likeness.h"
#include "heads/head_pruning.h"
#include "heads/head_repair.h"
#include "heads/head_study.h"
#include "heads/subject_batch.h"
#include "heads/subject_model_parts.h"
#include "heads/whole_words.h"
#include "heads/word_ablation.h"
#include "support/faults.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_model.h"

enum { PAIRS = 2, HEADS_MAX = 24 };

static transformer_config config;
static translator *model;
static head_pair *pairs;
static subject_texts texts; /* the pairs */
static mha_model *opened;   /* the translator as any model */

/* A job returns whether it succeeded. */
typedef bool (*job)(void);

static bool take(void)
{
    static const uint8_t changes[8] = {[2] = HEAD_ZERO, [5] = HEAD_UNIFORM};
    const capture_options options = {
        .changes = {changes, NULL, changes}, .weights = true, .vectors = true};
    capture *const c = head_capture(model, &pairs[0], &options, NULL);
    capture_free(c);
    return c;
}

static bool read_corpus(void)
{
    head_pair *const again = head_pairs_of_corpus(model, 1, CORPUS_TEST, PAIRS);
    const bool done = again != NULL;
    free(again);
    return done;
}

static bool study(void)
{
    subject all;
    subject_of_translator(&all, model);
    head_study *const s =
        subject_count_words(&all) ? head_study_create(&all, &texts, NULL, NULL) : NULL;
    head_study_free(s);
    subject_close(&all);
    return s;
}

static bool ablate(void)
{
    const int heads[2] = {1, 9};
    head_damage damage;
    subject all;
    subject_of_translator(&all, model);
    head_ablation *const a = head_ablation_create(&all, &texts, HEAD_MEAN, &texts, NULL);
    const bool done = a && head_ablation_measure(a, heads, 2, &damage) == MHA_OK;
    head_ablation_free(a);
    return done;
}

/* The same on a text of the user, as for a model that is not a translator. */
static bool ablate_text(void)
{
    static const pair_request request = {.text = "the cat sleeps"};
    const int heads[2] = {1, 9};
    char message[SUBJECT_MESSAGE_MAX];
    head_damage damage;
    subject_text text;
    subject all;
    subject_of_translator(&all, model);
    const subject_texts own = {.texts = &text, .count = 1};
    bool done = subject_read(&all, &request, NULL, &text, message);
    head_ablation *const a = done ? head_ablation_create(&all, &own, HEAD_MEAN, &own, NULL) : NULL;
    done = a && head_ablation_measure(a, heads, 2, &damage) == MHA_OK;
    head_ablation_free(a);
    subject_text_free(&all, &text);
    return done;
}

static bool prune(void)
{
    pruning_step step;
    attention_cost before, after;
    head_pruning *const p = head_pruning_create(model, pairs, PAIRS, pairs, PAIRS, NULL);
    float *values = NULL;
    bool done = p && head_pruning_prune(p, &step) == MHA_OK;
    done = done && head_pruning_cost(p, &before, &after) == MHA_OK;
    done = done && (values = head_pruning_values(p)) != NULL;
    free(values);
    head_pruning_free(p);
    return done;
}

static bool repair(void)
{
    head_repair repairs[HEADS_MAX];
    const subject_texts own = {.pairs = pairs, .count = 1};
    token_texts tokens;
    subject all;
    subject_of_translator(&all, model);
    const bool done =
        token_texts_make(&tokens, &all, &own) &&
        head_repair_measure(opened, all.shape, &tokens, NULL, repairs, NULL) == MHA_OK;
    token_texts_free(&tokens);
    return done;
}

static bool compare(void)
{
    double apart[HEADS_MAX];
    subject all;
    subject_of_translator(&all, model);
    return head_likeness_measure(&all, &texts, 3, NULL, apart) == MHA_OK;
}

/* On a text of three words; and its words joined. */
static bool run_model(void)
{
    static const uint8_t changes[8] = {[2] = HEAD_ZERO, [5] = HEAD_UNIFORM};
    static int numbers[4] = {5, 7, 9, WORD_END}, said[3] = {WORD_BEGIN, 6, 3};
    static int32_t ids[4] = {5, 7, 9, WORD_END}, said_ids[3] = {WORD_BEGIN, 6, 3};
    static bool flags[4] = {false, false, true, false};
    const capture_options options = {
        .changes = {changes, NULL, changes}, .weights = true, .vectors = true};
    model_text memory = {.end = -1};
    const subject_text text = {.memory = &memory};
    char message[SUBJECT_MESSAGE_MAX];
    subject own;
    subject_of_model(&own, opened, message);
    memory.sides[TRANSFORMER_SOURCE] = (model_side){
        .ids = ids, .side = {.count = 4, .numbers = numbers, .marks = flags, .continues = flags}};
    memory.sides[TRANSFORMER_TARGET] = (model_side){
        .ids = said_ids, .side = {.count = 3, .numbers = said, .marks = flags, .continues = flags}};
    capture *const c = subject_model_run(&own, &text, &options, NULL);
    const bool done = c && capture_join_words(c);
    capture_free(c);
    return done;
}

/* A text with its translation, read by the opened model before anything fails: reading shows the
 * entries of the vocabulary where it has no memory. */
static subject any;
static subject_text any_text;

static void read_pair(void)
{
    static const pair_request request = {.text = "the cat sleeps", .target = "le chat dort"};
    char message[SUBJECT_MESSAGE_MAX] = "";
    CHECK(subject_of_model(&any, opened, message) &&
              subject_read(&any, &request, NULL, &any_text, message),
          "%s", message);
}

static bool batches(void)
{
    static const uint8_t changes[8] = {[2] = HEAD_ZERO};
    const subject_texts own = {.texts = &any_text, .count = 1};
    const capture_options options = {.changes = {changes, NULL, NULL}}, none = {.weights = false};
    head_loss loss;
    subject_batches *const b = subject_batches_create(&any, &own, NULL);
    const bool done = b && subject_batches_run(b, &options, &loss) == MHA_OK &&
                      subject_batches_run(b, &none, &loss) == MHA_OK;
    subject_batches_free(b);
    return done;
}

static bool link_words(void)
{
    word_links links;
    const bool done = word_links_find(&links, &any_text, 1);
    word_links_free(&links);
    return done;
}

static bool hide_words(void)
{
    part_loss parts[PART_COUNT];
    word_losses losses;
    const bool done = word_losses_measure(&losses, &any, &any_text, NULL, NULL);
    word_losses_free(&losses);
    return done && part_losses_measure(model, pairs, 1, NULL, parts, NULL) == MHA_OK;
}

static bool align(void)
{
    uint8_t links[9] = {LINK_SURE};
    aligned_pair pair = {.links = links, .text = any_text};
    bool done = given_words_make(&pair.words[0], "the cat sleeps", 14, false);
    done = given_words_make(&pair.words[1], "le chat dort", 12, true) && done;
    alignment_study *const s = done ? alignment_study_create(&any, &pair, 1, NULL, NULL) : NULL;
    alignment_study_free(s);
    given_words_free(&pair.words[0]);
    given_words_free(&pair.words[1]);
    return s;
}

static bool join_words(void)
{
    static const char *words[] = {"sleep", "##s"};
    static bool continues[] = {false, true}, marks[2];
    const subject_text from = {
        .text = "sleeps",
        .source = {.count = 2, .words = words, .marks = marks, .continues = continues}};
    whole_words whole;
    const bool done = whole_words_make(&whole, &from);
    whole_words_free(&whole);
    return done;
}

static void meet_failures(job work, int apart)
{
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int n = 1;; n += apart) {
            faults_arm(MEMORY, n, for_ever);
            const bool done = work();
            faults_disarm();
            const bool met = faults_requests(MEMORY) >= n;
            CHECK(done == !met, "request %d refused: %s", n, done ? "done" : "not done");
            CHECK(faults_left(MEMORY) == 0, "request %d refused: %d blocks are left", n,
                  faults_left(MEMORY));
            if (!met)
                break;
        }
}

static void capturing(void)
{
    meet_failures(take, 1);
    meet_failures(read_corpus, 1);
}

static void studying(void)
{
    meet_failures(study, 7);
    meet_failures(compare, 3);
}

static void running_models(void)
{
    meet_failures(run_model, 1);
    meet_failures(join_words, 1);
    read_pair();
    meet_failures(batches, 1);
    meet_failures(link_words, 1);
    meet_failures(hide_words, 7);
    meet_failures(align, 3);
    subject_text_free(&any, &any_text);
    subject_close(&any);
}

static void ablating(void)
{
    meet_failures(ablate, 3);
    meet_failures(ablate_text, 3);
}

static void pruning(void)
{
    meet_failures(prune, 23);
}

static void repairing(void)
{
    meet_failures(repair, 61);
}

int main(int argc, char **argv)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    test_begin(argc, argv);
    const temp_folder folder = temp_folder_new();
    config = tiny_corpus_config();
    config.positions = CORPUS_TOKENS_MAX;
    float *const values = tiny_values(&config, 3);
    model = translator_create(&config, values, message);
    pairs = model ? head_pairs_of_corpus(model, 1, CORPUS_TEST, PAIRS) : NULL;
    texts = (subject_texts){.pairs = pairs, .count = PAIRS};
    const char *const path = temp_path(&folder, "model.safetensors");
    CHECK(translator_save(path, &config, values, MHA_F32, NULL, 0, message) == MHA_OK &&
              mha_model_open(&opened, path, NULL) == MHA_OK,
          "no model");
    if (pairs) {
        RUN(capturing);
        RUN(studying);
        if (opened)
            RUN(running_models);
        RUN(ablating);
        RUN(pruning);
        if (opened)
            RUN(repairing);
    }
    free(pairs);
    mha_model_free(opened);
    translator_free(model);
    free(values);
    temp_folder_free(&folder);
    return test_end();
}
