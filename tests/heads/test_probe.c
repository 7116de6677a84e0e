/* SPDX-License-Identifier: MIT */
/*
 * Experiments on one text (heads/probe.h), of a laboratory translator (norms before its parts, and
 * a last one) and of a model of Marian's form (norms after its parts). Weights with hidden words
 * are computed again from queries and keys, probabilities from logits in double.
 */
#include "heads/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/head_patches.h"
#include "heads/logit_lens.h"
#include "heads/word_shares.h"
#include "support/test.h"
#include "support/tiny_marian.h"
#include "support/tiny_model.h"

static tiny_marian marian;
static translator *own;
static subject laboratory;

typedef struct example {
    const subject *model;
    subject_text text;
} example;
enum { EXAMPLES = 2 };
static example examples[EXAMPLES];

static void read_examples(void)
{
    char message[SUBJECT_MESSAGE_MAX] = "";
    const pair_request request = {.text = "the cat sees the dog",
                                  .target = "le chat voit le chien"};
    examples[0].model = &laboratory;
    CHECK(subject_read(&laboratory, &request, NULL, &examples[0].text, message), "%s", message);
    examples[1].model = &marian.subject;
    examples[1].text = tiny_marian_read(&marian, "The zebra sleeps.", "Le zèbre dort.");
}

static void free_examples(void)
{
    for (int n = 0; n < EXAMPLES; n++)
        subject_text_free(examples[n].model, &examples[n].text);
}

/* ------------------------------------------------------------ hidden words ----- */

/* Row i of a head: softmax(q . k / sqrt(width)) over the columns that it sees. */
static void check_row(const capture_heads *h, attention_kind kind, const bool *hidden, int head,
                      int i)
{
    const float *const q = h->q + ((ptrdiff_t)head * h->rows + i) * h->width;
    const float *const k = h->k + (ptrdiff_t)head * h->columns * h->width;
    const float *const weights = h->weights + ((ptrdiff_t)head * h->rows + i) * h->columns;
    double powers[64] = {0.0}, sum = 0.0;
    for (int j = 0; j < h->columns; j++) {
        double score = 0.0;
        for (int c = 0; c < h->width; c++)
            score += (double)q[c] * (double)k[j * h->width + c];
        if (kind == ATTENTION_DECODER ? j > i : hidden[j])
            continue;
        powers[j] = exp(score / sqrt((double)h->width));
        sum += powers[j];
    }
    for (int j = 0; j < h->columns; j++)
        CHECK(fabs((double)weights[j] - powers[j] / sum) < 1e-5, "head %d, row %d, column %d: %g",
              head, i, j, (double)weights[j]);
}

/* Outputs are weights times values, so that nothing else of a hidden word is left. */
static void check_output(const capture_heads *h, int head, int i)
{
    for (int c = 0; c < h->width; c++) {
        double sum = 0.0;
        for (int j = 0; j < h->columns; j++)
            sum += (double)h->weights[((ptrdiff_t)head * h->rows + i) * h->columns + j] *
                   (double)h->v[((ptrdiff_t)head * h->columns + j) * h->width + c];
        CHECK(fabs(sum - (double)h->outputs[((ptrdiff_t)head * h->rows + i) * h->width + c]) < 1e-4,
              "head %d, row %d", head, i);
    }
}

static void hidden_words_have_no_weight(void)
{
    for (int n = 0; n < EXAMPLES; n++) {
        bool hidden[64] = {[1] = true, [2] = true};
        probe p;
        const capture_options changed = {.hidden = hidden};
        if (!CHECK(probe_make(&p, examples[n].model, &examples[n].text, &changed, true, NULL),
                   "no memory"))
            continue;
        for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
            const capture_heads *const h = &p.after->kind[kind];
            for (int head = 0; head < h->layers * h->heads; head++)
                for (int i = 0; i < h->rows; i++) {
                    check_row(h, (attention_kind)kind, hidden, head, i);
                    check_output(h, head, i);
                }
        }
        double moved = 0.0;
        for (int row = 0; row < p.before->scored; row++)
            moved += fabs(p.before->log_likelihood[row] - p.after->log_likelihood[row]);
        CHECK(moved > 1e-3, "the words did not matter: %g", moved);
        CHECK(p.written_before && p.written_after, "no translations");
        probe_free(&p);
    }
}

/* ---------------------------------------------------------- probabilities ----- */

static void probabilities_are_those_of_the_model(void)
{
    for (int n = 0; n < EXAMPLES; n++) {
        probe p;
        const capture_options changed = {.weights = false};
        if (!CHECK(probe_make(&p, examples[n].model, &examples[n].text, &changed, false, NULL),
                   "no memory"))
            continue;
        const capture_stream *const s = &p.before->stream;
        const size_t cells = (size_t)s->rows * (size_t)s->words;
        CHECK(memcmp(s->logits, p.after->stream.logits, cells * sizeof *s->logits) == 0,
              "nothing is changed, but the logits differ");
        CHECK(!p.written_after, "written although nothing is changed");
        for (int row = 0; row < p.before->scored; row++) {
            likely_word all[8];
            const float *const logits = s->logits + (ptrdiff_t)row * s->words;
            const double own_log = probe_log_probability(p.before, row, p.before->expected[row]);
            likely_words_find(logits, s->words, 8, all);
            CHECK(fabs(own_log - p.before->log_likelihood[row]) < 1e-5, "row %d: %g and %g", row,
                  own_log, p.before->log_likelihood[row]);
            for (int k = 0; k < 8; k++) {
                CHECK(fabs(log(all[k].probability) -
                           probe_log_probability(p.before, row, all[k].number)) < 1e-9,
                      "word %d", k);
                CHECK(k == 0 || all[k].probability <= all[k - 1].probability, "sorted");
            }
            int above = 0;
            for (int w = 0; w < s->words; w++)
                above += logits[w] > logits[all[7].number];
            CHECK(above == 7, "%d words are likelier than the eighth", above);
        }
        probe_free(&p);
    }
}

static void few_words_are_all_listed(void)
{
    const float logits[3] = {1.0f, 3.0f, 1.0f};
    likely_word all[5];
    likely_words_find(logits, 3, 5, all);
    CHECK(all[0].number == 1 && all[1].number == 0 && all[2].number == 2 && all[3].number == -1,
          "%d %d %d %d", all[0].number, all[1].number, all[2].number, all[3].number);
    CHECK(fabs(all[0].probability + all[1].probability + all[2].probability - 1.0) < 1e-12, "sum");
}

/* What a translator writes word by word without changes is its greedy translation. */
static void written_translations_are_greedy(void)
{
    static const capture_options plain = {.weights = false};
    const pair_request request = {.text = "the cat sees the dog"};
    char message[SUBJECT_MESSAGE_MAX] = "";
    subject_text text;
    CHECK(subject_read(&laboratory, &request, NULL, &text, message), "%s", message);
    char *const written = subject_write(&laboratory, &text, &plain, NULL);
    CHECK(written && strcmp(written, text.translation) == 0, "\"%s\", not \"%s\"", written,
          text.translation);
    free(written);
    subject_text_free(&laboratory, &text);
}

/* ----------------------------------------------------------------- shares ----- */

static double sum_of(const double *list, int count)
{
    double sum = 0.0;
    for (int n = 0; list && n < count; n++)
        sum += list[n];
    return sum;
}

/* All shares of a word sum to its logit in the model. */
static void shares_sum_to_the_logit(void)
{
    for (int n = 0; n < EXAMPLES; n++) {
        bool hidden[64] = {[1] = true};
        const capture_options changed = {.hidden = hidden};
        probe p;
        CHECK(probe_make(&p, examples[n].model, &examples[n].text, &changed, true, NULL),
              "no memory");
        for (int row = 0; row < p.after->scored; row++) {
            word_shares s;
            const int word = row % 2 ? p.after->expected[row] : row + 3;
            const mha_status status = word_shares_make(&s, examples[n].model, p.after, row, word);
            if (!CHECK(status == MHA_OK, "%s", mha_status_string(status)))
                break;
            double sum = s.embedded + s.norms + s.output + sum_of(s.feed_forward, s.layers);
            for (int kind = 0; kind < ATTENTION_KINDS; kind++)
                sum += sum_of(s.heads[kind], s.layers * s.heads_per_layer) +
                       sum_of(s.biases[kind], s.layers);
            CHECK(fabs(sum - s.sum) < 1e-9 && fabs(sum - s.logit) < 2e-4,
                  "example %d, row %d: %g, %g and %g", n, row, sum, s.sum, s.logit);
            CHECK(!s.heads[ATTENTION_ENCODER] && s.heads[ATTENTION_CROSS], "kinds");
            word_shares_free(&s);
        }
        probe_free(&p);
    }
}

/* u_w . (what N, the last norm of a translator, makes of a vector that is a part of x), where u_w
 * is relative to the mean of all words. */
static double share_of(const capture *c, int row, int word, const double *part)
{
    const transformer_config *const config = translator_config(own);
    const float *const values = translator_values(own), *const x = c->stream.streams +
                                                                   ((ptrdiff_t)c->stream.layers *
                                                                        c->stream.rows +
                                                                    row) *
                                                                       config->width;
    const float *const norm = values + translator_map(own)->norm[TRANSFORMER_TARGET].weight;
    const float *const words = values + translator_map(own)->embedding[TRANSFORMER_TARGET];
    const int E = config->width, all = config->words[TRANSFORMER_TARGET];
    double mean = 0.0, squares = 0.0, part_mean = 0.0, share = 0.0;
    for (int e = 0; e < E; e++) {
        mean += (double)x[e] / E;
        part_mean += part[e] / E;
    }
    for (int e = 0; e < E; e++)
        squares += ((double)x[e] - mean) * ((double)x[e] - mean) / E;
    for (int e = 0; e < E; e++) {
        double direction = (double)words[word * E + e];
        for (int w = 0; w < all; w++)
            direction -= (double)words[w * E + e] / all;
        share += direction * (double)norm[e] * (part[e] - part_mean) / sqrt(squares + 1e-5);
    }
    return share;
}

/* The shares of the heads of a translator by their formula: W_O times the head's own output. */
static void shares_of_heads_are_their_outputs(void)
{
    const capture_options changed = {.weights = false};
    const int E = translator_config(own)->width, heads = translator_config(own)->heads, row = 2;
    probe p;
    word_shares s;
    CHECK(probe_make(&p, &laboratory, &examples[0].text, &changed, true, NULL), "no memory");
    const int word = p.after->expected[row];
    CHECK(word_shares_make(&s, &laboratory, p.after, row, word) == MHA_OK, "no shares");
    for (int kind = ATTENTION_DECODER; kind <= ATTENTION_CROSS; kind++)
        for (int n = 0; n < s.layers * heads; n++) {
            const capture_heads *const h = &p.after->kind[kind];
            const layer_at *const at = &translator_map(own)->layers[TRANSFORMER_TARGET][n / heads];
            const float *const o =
                translator_values(own) + (kind == ATTENTION_CROSS ? at->cross : at->self).o.weight;
            double part[64] = {0.0};
            for (int e = 0; e < E; e++)
                for (int c = 0; c < h->width; c++)
                    part[e] += (double)o[e * E + n % heads * h->width + c] *
                               (double)h->outputs[((ptrdiff_t)n * h->rows + row) * h->width + c];
            const double wanted = share_of(p.after, row, word, part);
            CHECK(fabs(s.heads[kind][n] - wanted) < 1e-5 && fabs(wanted) > 1e-7,
                  "kind %d, head %d: %g, not %g", kind, n, s.heads[kind][n], wanted);
        }
    word_shares_free(&s);
    probe_free(&p);
}

/* ------------------------------------------------------------------- lens ----- */

/* After the last layer the lens says what the model says, to the bit. */
static void the_last_level_is_the_output(void)
{
    for (int n = 0; n < EXAMPLES; n++) {
        const capture_options changed = {.weights = false};
        probe p;
        logit_lens lens;
        CHECK(probe_make(&p, examples[n].model, &examples[n].text, &changed, false, NULL),
              "no memory");
        CHECK(logit_lens_make(&lens, examples[n].model, p.after, NULL) == MHA_OK, "no lens");
        const capture_stream *const s = &p.after->stream;
        CHECK(lens.levels == s->layers + 1 && lens.rows == s->rows, "%d levels", lens.levels);
        for (int row = 0; row < lens.rows; row++) {
            const ptrdiff_t at = (ptrdiff_t)s->layers * s->rows + row;
            likely_word own_words[LENS_WORDS];
            likely_words_find(s->logits + (ptrdiff_t)row * s->words, s->words, LENS_WORDS,
                              own_words);
            for (int k = 0; k < LENS_WORDS; k++)
                CHECK(own_words[k].number == lens.likely[at * LENS_WORDS + k].number &&
                          fabs(own_words[k].probability -
                               lens.likely[at * LENS_WORDS + k].probability) == 0.0,
                      "example %d, row %d, word %d", n, row, k);
            if (row < p.after->scored)
                CHECK(fabs(lens.expected[at] - p.after->log_likelihood[row]) < 1e-5, "row %d", row);
        }
        logit_lens_free(&lens);
        probe_free(&p);
    }
}

/* Level 1 of a translator: its last norm and its words, in double. A stream of `normed` is
 * multiplied as it is. */
static double plain_logit(const float *x, const float *word, const float *norm, const float *bias,
                          int E)
{
    double mean = 0.0, squares = 0.0, logit = 0.0;
    for (int e = 0; e < E; e++)
        mean += (double)x[e] / E;
    for (int e = 0; e < E; e++)
        squares += ((double)x[e] - mean) * ((double)x[e] - mean) / E;
    for (int e = 0; e < E; e++)
        logit +=
            (double)word[e] *
            (norm ? ((double)x[e] - mean) / sqrt(squares + 1e-5) * (double)norm[e] + (double)bias[e]
                  : (double)x[e]);
    return logit;
}

/* The log-probabilities of expected words after one layer. */
static void earlier_levels_are_computed_as_the_output_is(void)
{
    const transformer_config *const forms[EXAMPLES] = {translator_config(own), &marian.config};
    const float *const values[EXAMPLES] = {translator_values(own), marian.values};
    for (int n = 0; n < EXAMPLES; n++) {
        const capture_options changed = {.weights = false};
        transformer_map map;
        probe p;
        logit_lens lens;
        transformer_map_fill(&map, forms[n]);
        const weight_at *const last = &map.norm[TRANSFORMER_TARGET];
        const bool normed = forms[n]->form == FORM_LABORATORY;
        const float *const words = values[n] + map.embedding[TRANSFORMER_TARGET];
        const int E = forms[n]->width;
        CHECK(probe_make(&p, examples[n].model, &examples[n].text, &changed, false, NULL),
              "no memory");
        CHECK(logit_lens_make(&lens, examples[n].model, p.after, NULL) == MHA_OK, "no lens");
        const capture_stream *const s = &p.after->stream;
        for (int row = 0; row < p.after->scored; row++) {
            const float *const x = s->streams + (ptrdiff_t)(s->rows + row) * E;
            double powers = 0.0, own_logit = 0.0;
            for (int w = 0; w < s->words; w++) {
                const double logit = plain_logit(x, words + (ptrdiff_t)w * E,
                                                 normed ? values[n] + last->weight : NULL,
                                                 normed ? values[n] + last->bias : NULL, E);
                powers += exp(logit);
                own_logit = w == p.after->expected[row] ? logit : own_logit;
            }
            CHECK(fabs(own_logit - log(powers) - lens.expected[s->rows + row]) < 1e-3,
                  "example %d, row %d: %g, not %g", n, row, lens.expected[s->rows + row],
                  own_logit - log(powers));
        }
        logit_lens_free(&lens);
        probe_free(&p);
    }
}

/* ---------------------------------------------------------------- patches ----- */

enum { HEADS_MOST = 16 };

/* The whole model on another source, with the same target. */
static capture *run_other(const example *e, const char *source, const char *target,
                          subject_text *text)
{
    const pair_request request = {.text = source, .target = target};
    const capture_options options = {.outputs = true, .stream = true};
    char message[SUBJECT_MESSAGE_MAX] = "";
    CHECK(subject_read(e->model, &request, NULL, text, message), "%s", message);
    return subject_run(e->model, text, &options, NULL);
}

static bool same_logits(const capture *a, const capture *b)
{
    return memcmp(a->stream.logits, b->stream.logits,
                  (size_t)a->stream.rows * (size_t)a->stream.words * sizeof(float)) == 0;
}

/* Runs an example with all heads of some kinds from another run. */
static void run_patched(const example *e, const capture *from, const bool kinds[ATTENTION_KINDS],
                        probe *p)
{
    uint8_t all[HEADS_MOST];
    char message[SUBJECT_MESSAGE_MAX] = "";
    head_patches patches;
    const uint8_t *chosen[ATTENTION_KINDS] = {NULL};
    memset(all, 1, sizeof all);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        chosen[kind] = kinds[kind] ? all : NULL;
    CHECK(head_patches_make(&patches, from, &e->text, chosen, message), "%s", message);
    const capture_options changed = {.patches = patches.list, .patch_count = patches.count};
    CHECK(probe_make(p, e->model, &e->text, &changed, false, NULL), "no memory");
    CHECK(!p->written_after, "patches only fit this target");
    head_patches_free(&patches);
}

static const char *const same_sources[EXAMPLES] = {"the cat sees the dog", "The zebra sleeps."};
static const char *const other_sources[EXAMPLES] = {"the dog sees the cat", "zebra The sleeps."};
static const char *const targets[EXAMPLES] = {"le chat voit le chien", "Le zèbre dort."};

static void patching_from_the_same_text_changes_nothing(void)
{
    static const bool all[ATTENTION_KINDS] = {true, true, true};
    for (int n = 0; n < EXAMPLES; n++) {
        subject_text text;
        probe p;
        capture *const from = run_other(&examples[n], same_sources[n], targets[n], &text);
        run_patched(&examples[n], from, all, &p);
        CHECK(same_logits(p.before, p.after), "example %d", n);
        probe_free(&p);
        capture_free(from);
        subject_text_free(examples[n].model, &text);
    }
}

/* The decoder knows the source by cross-attention only: with all of its heads from another text,
 * the model says what it says there. */
static void all_of_cross_attention_is_the_other_text(void)
{
    static const bool cross[ATTENTION_KINDS] = {[ATTENTION_CROSS] = true};
    static const bool decoder[ATTENTION_KINDS] = {[ATTENTION_DECODER] = true};
    for (int n = 0; n < EXAMPLES; n++) {
        subject_text text;
        probe p;
        capture *const from = run_other(&examples[n], other_sources[n], targets[n], &text);
        run_patched(&examples[n], from, cross, &p);
        CHECK(same_logits(p.after, from) && !same_logits(p.before, from), "example %d", n);
        probe_free(&p);
        run_patched(&examples[n], from, decoder, &p);
        CHECK(!same_logits(p.after, from) && !same_logits(p.before, p.after), "example %d", n);
        probe_free(&p);
        capture_free(from);
        subject_text_free(examples[n].model, &text);
    }
}

static void other_lengths_are_refused(void)
{
    uint8_t one[HEADS_MOST] = {[3] = 1};
    const uint8_t *const encoder[ATTENTION_KINDS] = {one}, *const cross[ATTENTION_KINDS] = {
                                                               [ATTENTION_CROSS] = one};
    char message[SUBJECT_MESSAGE_MAX] = "";
    subject_text text;
    head_patches patches;
    capture *const from = run_other(&examples[0], "the cat sleeps", targets[0], &text);
    CHECK(!head_patches_make(&patches, from, &examples[0].text, encoder, message) &&
              strstr(message, "6 in this text, 4 in the other"),
          "%s", message);
    head_patches_free(&patches);
    CHECK(head_patches_make(&patches, from, &examples[0].text, cross, message) &&
              patches.count == 1 && patches.list[0].layer == 0 && patches.list[0].head == 3,
          "%s", message);
    head_patches_free(&patches);
    capture_free(from);
    subject_text_free(&laboratory, &text);
}

int main(int argc, char **argv)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    test_begin(argc, argv);
    transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 12);
    own = translator_create(&config, values, message);
    if (CHECK(own, "%s", message) && tiny_marian_open(&marian, 5)) {
        subject_of_translator(&laboratory, own);
        read_examples();
        RUN(hidden_words_have_no_weight);
        RUN(probabilities_are_those_of_the_model);
        RUN(few_words_are_all_listed);
        RUN(written_translations_are_greedy);
        RUN(shares_sum_to_the_logit);
        RUN(shares_of_heads_are_their_outputs);
        RUN(patching_from_the_same_text_changes_nothing);
        RUN(all_of_cross_attention_is_the_other_text);
        RUN(other_lengths_are_refused);
        RUN(the_last_level_is_the_output);
        RUN(earlier_levels_are_computed_as_the_output_is);
        free_examples();
        subject_close(&laboratory);
    }
    tiny_marian_close(&marian);
    translator_free(own);
    free(values);
    return test_end();
}
