/* SPDX-License-Identifier: MIT */
/* The interface between models and what is done with their heads (heads/subject.h), as a
 * translator implements it, and words that are joined from pieces (heads/head_join.h). */
#include "heads/head_ablation.h"
#include "heads/head_join.h"
#include "heads/head_roles.h"
#include "support/test.h"
#include "support/tiny_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *values;
static translator *model;
static subject all;

static bool make_model(void)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    transformer_config config = tiny_corpus_config();
    config.positions = CORPUS_TOKENS_MAX;
    values = tiny_values(&config, 5);
    model = translator_create(&config, values, message);
    if (model)
        subject_of_translator(&all, model);
    return model && subject_count_words(&all);
}

static void a_text_has_words_and_marks(void)
{
    const pair_request request = {.text = "The black cat sleeps.", .target = "le chat noir dort"};
    const capture_options options = {.weights = true};
    char message[SUBJECT_MESSAGE_MAX], room[SUBJECT_WORD_MAX];
    subject_text text;
    if (!CHECK(subject_read(&all, &request, NULL, &text, message), "%s", message))
        return;
    CHECK(text.target.count == 5 && text.source.marks[text.source.count - 1] &&
              text.target.marks[0] && !text.target.marks[1] && !text.source.marks[0],
          "marks");
    CHECK(strcmp(text.target.words[4], "dort") == 0 && strcmp(text.expected[3], "dort") == 0 &&
              strcmp(text.given, "le chat noir dort") == 0,
          "words");
    CHECK(text.gold != NULL && text.no_gold == NULL, "the grammar knows it: %s", text.no_gold);
    capture *const c = subject_run(&all, &text, &options, NULL);
    CHECK(c && c->source_count == text.source.count && c->target_count == text.target.count &&
              c->scored == c->target_count,
          "rows");
    for (int n = 0; c && n < c->target_count; n++)
        CHECK(c->target[n] == text.target.numbers[n] && c->target_marks[n] == text.target.marks[n],
              "token %d", n);
    CHECK(c && strcmp(subject_word(&all, c->expected[3], room), "dort") == 0, "a word by number");
    capture_free(c);
    subject_text_free(&all, &text);
}

/* One text after the other, as for any model, or in batches, as only for a translator. */
static void both_ways_of_ablation_agree(void)
{
    enum { TEXTS = 3 };
    static const char *const english[TEXTS] = {"the cat sleeps", "the old king sings",
                                               "does the black cat sleep ?"};
    static const head_mode modes[] = {HEAD_ZERO, HEAD_UNIFORM, HEAD_MEAN};
    char message[SUBJECT_MESSAGE_MAX];
    head_pair pairs[TEXTS];
    subject_text texts[TEXTS];
    for (int n = 0; n < TEXTS; n++) {
        const pair_request request = {.text = english[n]};
        CHECK(head_pair_of_text(model, english[n], &pairs[n], NULL, message), "%s", message);
        CHECK(subject_read(&all, &request, NULL, &texts[n], message), "%s", message);
    }
    const subject_texts grouped = {.pairs = pairs, .count = TEXTS};
    const subject_texts single = {.texts = texts, .count = TEXTS};
    /* Means are taken over one text: of several, both ways weigh different lengths differently. */
    const subject_texts grouped_means = {.pairs = pairs, .count = 1};
    const subject_texts single_means = {.texts = texts, .count = 1};
    for (int mode = 0; mode < 3; mode++) {
        const bool means = modes[mode] == HEAD_MEAN;
        head_ablation *const a =
            head_ablation_create(&all, &grouped, modes[mode], means ? &grouped_means : NULL, NULL);
        head_ablation *const b =
            head_ablation_create(&all, &single, modes[mode], means ? &single_means : NULL, NULL);
        for (int head = 0; a && b && head < head_count(all.shape); head += 3) {
            head_damage x, y;
            CHECK(head_ablation_measure(a, &head, 1, &x) == MHA_OK &&
                      head_ablation_measure(b, &head, 1, &y) == MHA_OK,
                  "head %d", head);
            CHECK(fabs(x.total.loss - y.total.loss) < 1e-4 && x.total.right == y.total.right &&
                      x.total.words == y.total.words,
                  "mode %d, head %d: %g and %g", mode, head, x.total.loss, y.total.loss);
        }
        CHECK(a && b, "mode %d", mode);
        head_ablation_free(a);
        head_ablation_free(b);
    }
    for (int n = 0; n < TEXTS; n++)
        subject_text_free(&all, &texts[n]);
}

/* Two words, the second of three pieces, between two marks. */
static void pieces_are_joined(void)
{
    static const float weights[25] = {
        0.1f, 0.2f, 0.3f, 0.3f, 0.1f, 0.0f, 0.5f, 0.2f, 0.1f, 0.2f, 0.9f, 0.1f, 0.0f,
        0.0f, 0.0f, 0.0f, 0.1f, 0.2f, 0.3f, 0.4f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f,
    };
    static const float wanted[16] = {0.1f,  0.2f, 0.6f,  0.1f, 0.0f, 0.5f, 0.3f, 0.2f,
                                     0.45f, 0.1f, 0.25f, 0.2f, 0.2f, 0.2f, 0.4f, 0.2f};
    static const bool continues[5] = {false, false, false, true, false};
    static const bool special[5] = {true, false, false, false, true};
    static const int tokens[5] = {7, 8, 9, 10, 11};
    const head_matrix m = {weights, 5, 5, false};
    const head_scene scene = {.kind = ATTENTION_ENCODER,
                              .tokens = tokens,
                              .special = special,
                              .begins = true,
                              .row_continues = continues,
                              .column_continues = continues,
                              .question = 4};
    head_join join;
    CHECK(head_join_needed(&m, &scene), "needed");
    if (CHECK(head_join_make(&join, &m, &scene), "no memory")) {
        CHECK(join.matrix.rows == 4 && join.matrix.columns == 4 && join.scene.question == 3,
              "%d x %d", join.matrix.rows, join.matrix.columns);
        for (int n = 0; n < 16; n++)
            CHECK(fabsf(join.weights[n] - wanted[n]) < 1e-6f, "cell %d: %g", n,
                  (double)join.weights[n]);
        CHECK(join.special[0] && !join.special[2] && join.special[3], "marks");
        CHECK(join.tokens[1] == 8 && join.tokens[2] < 0 && join.tokens[3] == 11, "tokens");
    }
    head_join_free(&join);
}

static void equal_words_have_equal_numbers(void)
{
    static const bool continues[8] = {false, true, false, true, false, false, true, true};
    static const int tokens[8] = {5, 6, 5, 6, 5, 5, 6, 6};
    static const float weights[64];
    const head_matrix m = {weights, 8, 8, true};
    const head_scene scene = {.kind = ATTENTION_DECODER,
                              .tokens = tokens,
                              .row_continues = continues,
                              .column_continues = continues,
                              .question = -1};
    head_join join;
    if (CHECK(head_join_make(&join, &m, &scene), "no memory"))
        CHECK(join.matrix.columns == 4 && join.matrix.causal && join.tokens[0] == join.tokens[1] &&
                  join.tokens[0] != join.tokens[3] && join.tokens[2] == 5,
              "%d %d %d %d", join.tokens[0], join.tokens[1], join.tokens[2], join.tokens[3]);
    head_join_free(&join);
}

/* All pieces of one word together attend to the other word. */
static void roles_are_those_of_whole_words(void)
{
    static const float weights[16] = {0.25f, 0.25f, 0.25f, 0.25f, 0.0f, 0.0f, 0.5f, 0.5f,
                                      0.0f,  0.4f,  0.6f,  0.0f,  0.0f, 0.4f, 0.0f, 0.6f};
    static const bool continues[4] = {false, false, false, true};
    static const int tokens[4] = {1, 2, 3, 4};
    const head_matrix m = {weights, 4, 4, false};
    head_scene scene = {.kind = ATTENTION_ENCODER, .tokens = tokens, .question = -1};
    head_sample samples[MEASURES];
    CHECK(head_measure_sentence(&m, &scene, samples), "no memory");
    const double pieces = (double)samples[MEASURE_MASS + OFFSET_FAR + 1].sum;
    scene.row_continues = scene.column_continues = continues;
    CHECK(head_measure_sentence(&m, &scene, samples), "no memory");
    const double words = (double)samples[MEASURE_MASS + OFFSET_FAR + 1].sum;
    CHECK(fabs(pieces - 0.1875) < 1e-6 && fabs(words - (0.25 + 1.0) / 3.0) < 1e-6, "%g and %g",
          pieces, words);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    if (make_model()) {
        RUN(a_text_has_words_and_marks);
        RUN(both_ways_of_ablation_agree);
    } else {
        CHECK(false, "no model");
    }
    RUN(pieces_are_joined);
    RUN(equal_words_have_equal_numbers);
    RUN(roles_are_those_of_whole_words);
    subject_close(&all);
    translator_free(model);
    free(values);
    return test_end();
}
