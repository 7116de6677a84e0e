/* SPDX-License-Identifier: MIT */
/*
 * Heads as alignments: files of links, which are hostile; words that are separated by spaces and
 * the text that a model reads for them; error rates that are known by hand; a head that is compared
 * with its own alignment; and the laboratory, whose grammar knows the alignments.
 */
#include "heads/alignment_file.h"
#include "heads/head_alignment.h"
#include "heads/whole_words.h"
#include "support/test.h"
#include "support/tiny_marian.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tiny_marian marian;

/* ---------------------------------------------------------------- files ----- */

static bool read_links(alignment_file *file, const char *content, size_t length, char *message)
{
    const char *const path = temp_path(&marian.folder, "links.txt");
    FILE *const out = fopen(path, "wb");
    fwrite(content, 1, length, out);
    fclose(out);
    message[0] = '\0';
    return alignment_file_read(file, path, message);
}

static void links_are_read(void)
{
    static const char content[] = "0-0 1p2  10?3\r\n\n7\t2-1 \n8\t\n9\t0-1";
    char message[ALIGNMENT_MESSAGE_MAX];
    alignment_file file;
    if (!CHECK(read_links(&file, content, strlen(content), message), "%s", message))
        return;
    CHECK(file.lines == 5, "%d lines", file.lines);
    CHECK(file.starts[1] == 3 && file.starts[2] == 3 && file.starts[3] == 4 &&
              file.starts[4] == 4 && file.starts[5] == 5,
          "links per line");
    CHECK(file.numbers[0] == -1 && file.numbers[2] == 7 && file.numbers[3] == 8, "numbers");
    CHECK(file.links[0].sure && !file.links[1].sure && !file.links[2].sure && file.links[3].sure,
          "sure links");
    CHECK(file.links[2].first == 10 && file.links[2].second == 3, "places");
    alignment_file_free(&file);
}

static void hostile_links_are_refused(void)
{
    static const struct {
        const char *content;
        size_t length;
        const char *says;
    } cases[] = {
        {"0-0\n1-\n", 0, ":2: \"1-\" is no link"},
        {"0-0 1x1", 0, ":1: \"1x1\" is no link"},
        {"0-0\n\n-1-2", 0, ":3: \"-1-2\" is no link"},
        {"0--1", 0, ":1: \"0--1\" is no link"},
        {"0-1-2", 0, ":1: \"0-1-2\" is no link"},
        {"3", 0, ":1: \"3\" is no link"},
        {"99999999999999999999-1", 0, ":1: \"99999999999999999999-1\" is no link"},
        {"1-2,3-4", 0, ":1: \"1-2,3-4\" is no link"},
        {"5\t6\t0-0", 0, ":1: \"6\" is no link"},
        {"0-0\n1-1\0 2-2\n", 13, ":2: has a byte of 0"},
        {"\0", 1, ":1: has a byte of 0"},
        {"\xff", 1, "UTF-8"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char message[ALIGNMENT_MESSAGE_MAX];
        alignment_file file;
        const size_t length = cases[n].length > 0 ? cases[n].length : strlen(cases[n].content);
        CHECK(!read_links(&file, cases[n].content, length, message), "case %zu is read", n);
        CHECK(strstr(message, cases[n].says), "case %zu: %s", n, message);
        alignment_file_free(&file);
    }
    char message[ALIGNMENT_MESSAGE_MAX];
    alignment_file file;
    CHECK(!alignment_file_read(&file, temp_path(&marian.folder, "nowhere"), message), "no file");
    alignment_file_free(&file);
}

/* ---------------------------------------------------------------- words ----- */

static void check_text(const char *line, bool elided, const char *wanted)
{
    given_words words;
    if (!CHECK(given_words_make(&words, line, strlen(line), elided), "no memory"))
        return;
    CHECK(strcmp(words.text, wanted) == 0, "\"%s\", not \"%s\"", words.text, wanted);
    const char *at = line;
    for (int n = 0; n < words.count; n++) {
        at += strspn(at, " \t");
        const size_t length = strcspn(at, " \t");
        CHECK((size_t)(words.ends[n] - words.begins[n]) == length &&
                  memcmp(words.text + words.begins[n], at, length) == 0,
              "word %d has another place", n);
        at += length;
    }
    CHECK(at[strspn(at, " \t")] == '\0', "words are missing");
    given_words_free(&words);
}

static void spaces_are_those_of_text(void)
{
    check_text("fine houses , both in town ; and ( gold ) .", false,
               "fine houses, both in town; and (gold).");
    check_text("he 's here , is n't he ?", false, "he's here, isn't he?");
    check_text("I don ’t and they ’ll say ' yes '", false, "I don ’t and they’ll say ' yes '");
    check_text("qu' il n' était : d' or ! l’ or ?", true, "qu'il n'était : d'or ! l’or ?");
    check_text("  a \t b ", false, "a b");
    check_text("'twas n 't", false, "'twas n 't");
    check_text("", false, "");
    check_text(", .", false, ",.");
}

static void elision_is_counted(void)
{
    elision_count none = {0, 0}, few = {199, 1}, enough = {0, 0};
    elision_count_add(&none, "it 's a dog , isn't it", 22);
    CHECK(none.words == 7 && !elision_count_holds(&none), "%ld of %ld", none.elided, none.words);
    CHECK(!elision_count_holds(&few), "one in 199");
    elision_count_add(&enough, "c' est qu’ il", 14);
    CHECK(enough.elided == 2 && elision_count_holds(&enough), "%ld", enough.elided);
}

/* A pair of lines with the subject's tokens. */
static aligned_pair read_pair(const char *source, const char *target)
{
    aligned_pair pair = {.links = NULL};
    CHECK(given_words_make(&pair.words[0], source, strlen(source), false) &&
              given_words_make(&pair.words[1], target, strlen(target), true),
          "no memory");
    pair.links = calloc((size_t)(pair.words[0].count * pair.words[1].count) + 1, 1);
    pair.text = tiny_marian_read(&marian, pair.words[0].text, pair.words[1].text);
    return pair;
}

/* Every token belongs to the word of the file that its text is in, also if the tokenizer does not
 * begin a word there. */
static void tokens_belong_to_words(void)
{
    aligned_pair pair = read_pair("The zebra , ( 😀 ) sleeps .", "l' zèbre dort !");
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const subject_side *const tokens = side == 0 ? &pair.text.source : &pair.text.target;
        const given_words *const words = &pair.words[side];
        token_words *const of = calloc((size_t)tokens->count, sizeof *of);
        int *const found = calloc((size_t)words->count, sizeof *found);
        given_words_of_tokens(words, tokens, of);
        for (int n = 0; n < tokens->count; n++)
            for (int w = of[n].first; w < of[n].end; w++) {
                CHECK(!tokens->marks[n], "token %d is a mark", n);
                CHECK(tokens->begins[n] < words->ends[w] && tokens->ends[n] >= words->begins[w],
                      "token %d is not in word %d", n, w);
                found[w]++;
            }
        for (int n = 0; n < tokens->count; n++)
            CHECK(tokens->marks[n] || of[n].first < of[n].end, "token %d has no word", n);
        for (int w = 0; w < words->count; w++)
            CHECK(found[w] > 0, "side %d: word %d has no token", side, w);
        CHECK(found[1] > 1, "\"zebra\" is cut");
        free(of);
        free(found);
    }
    aligned_pair_free(&marian.subject, &pair);
}

/* ---------------------------------------------------------- error rates ----- */

/* Five words of the target, four of the source. The head is right on two sure links and on one
 * possible one, wrong on one, and one row has no weight: 4 links. 3 links are sure. */
static void error_rate_of_a_hand_example(void)
{
    static uint8_t links[5 * 4] = {LINK_SURE, LINK_NONE, LINK_NONE, LINK_NONE, LINK_NONE,
                                   LINK_SURE, LINK_NONE, LINK_NONE, LINK_NONE, LINK_POSSIBLE,
                                   LINK_NONE, LINK_NONE, LINK_NONE, LINK_NONE, LINK_SURE,
                                   LINK_NONE, LINK_NONE, LINK_NONE, LINK_NONE, LINK_POSSIBLE};
    static const float weights[5 * 4] = {0.7f, 0.1f, 0.1f, 0.1f, 0.2f, 0.5f, 0.3f,
                                         0.0f, 0.1f, 0.6f, 0.2f, 0.1f, 0.4f, 0.1f,
                                         0.3f, 0.2f, 0.0f, 0.0f, 0.0f, 0.0f};
    const aligned_pair pair = {.words = {{.count = 4}, {.count = 5}}, .links = links};
    const head_sample score = alignment_score(&pair, weights);
    CHECK(score.sum == 2.0f + 3.0f, "|M and S| + |M and P| = %g", (double)score.sum);
    CHECK(score.count == 4.0f + 3.0f, "|M| + |S| = %g", (double)score.count);
}

/* Joined weights of a word sum to 1 less what its rows have on the end mark. */
static void joined_rows_sum_to_one(void)
{
    static const capture_options options = {.weights = true};
    aligned_pair pair = read_pair("The zebra , it sleeps .", "Le zèbre , il dort .");
    capture *const c = subject_run(&marian.subject, &pair.text, &options, NULL);
    const int sources = pair.words[0].count, targets = pair.words[1].count;
    const head_matrix m = head_matrix_of(c, (head_name){ATTENTION_CROSS, 1, 2});
    for (int reads = 0; reads < READINGS; reads++) {
        float *const joined = calloc((size_t)sources * (size_t)targets, sizeof *joined);
        CHECK(alignment_join(&pair, &m, reads, 1.0f, joined), "no memory");
        int first = 1, end = 2; /* tokens of a word; "Le" is one, "zèbre" several */
        for (int word = 0; word < 2; word++) {
            double sum = 0.0;
            for (int n = first; n < end; n++)
                sum += (double)m.weights[(reads ? n : n - 1) * m.columns + m.columns - 1] /
                       (end - first);
            for (int j = 0; j < sources; j++)
                sum += (double)joined[word * sources + j];
            CHECK(fabs(sum - 1.0) < 1e-6, "word %d: %g", word, sum);
            first = end++;
            while (pair.text.target.continues[end])
                end++;
        }
        free(joined);
    }
    capture_free(c);
    aligned_pair_free(&marian.subject, &pair);
}

/* The links that a head itself has, found from words that the tokenizer has joined. */
static void take_own_links(aligned_pair *pair, int layer, int head)
{
    static const capture_options options = {.weights = true};
    capture *const c = subject_run(&marian.subject, &pair->text, &options, NULL);
    const int sources = pair->words[0].count, targets = pair->words[1].count;
    CHECK(capture_join_words(c), "no memory");
    const head_matrix m = head_matrix_of(c, (head_name){ATTENTION_CROSS, layer, head});
    const bool skip[16] = {[3] = true}; /* the end mark */
    CHECK(sources == 3 && m.columns == 4 && m.rows >= targets, "%d columns", m.columns);
    for (int t = 0; t < targets; t++)
        pair->links[t * sources + head_argmax(&m, t, skip)] = LINK_SURE;
    capture_free(c);
}

static void a_head_agrees_with_itself(void)
{
    aligned_pair pairs[2] = {read_pair("The zebra sleeps", "Le zèbre dort bien"),
                             read_pair("A dog ran", "Un chien a couru")};
    take_own_links(&pairs[0], 1, 2);
    take_own_links(&pairs[1], 1, 2);
    alignment_study *const s = alignment_study_create(&marian.subject, pairs, 2, NULL, NULL);
    if (!CHECK(s, "no study"))
        return;
    const int own = alignment_way_head(s, 1, 2);
    const head_interval interval = alignment_interval(s, false, own);
    CHECK(alignment_error_rate(s, false, own) == 0.0, "%g", alignment_error_rate(s, false, own));
    CHECK(interval.low == 0.0 && interval.high == 0.0, "%g..%g", interval.low, interval.high);
    CHECK(s->sure == 8 && s->possible == 0 && s->words[0] == 6 && s->words[1] == 8, "counts");
    double others = 0.0;
    for (int way = 0; way < alignment_ways(s); way++)
        others += alignment_error_rate(s, true, way);
    CHECK(others > 0.5, "all ways agree: %g", others);
    alignment_study_free(s);
    for (int n = 0; n < 2; n++)
        aligned_pair_free(&marian.subject, &pairs[n]);
}

/* On a pair of equal lengths whose links are the diagonal. */
static void the_diagonal_is_a_control(void)
{
    aligned_pair pair = read_pair("The zebra sleeps", "Le zèbre dort");
    for (int n = 0; n < 3; n++)
        pair.links[n * 3 + n] = n == 1 ? LINK_POSSIBLE : LINK_SURE;
    alignment_study *const s = alignment_study_create(&marian.subject, &pair, 1, NULL, NULL);
    CHECK(alignment_error_rate(s, false, alignment_way_diagonal(s)) == 0.0, "the diagonal");
    CHECK(s->sure == 2 && s->possible == 1, "counts");
    alignment_study_free(s);
    memset(pair.links, 0, 9);
    pair.links[0] = LINK_SURE;
    alignment_study *const t = alignment_study_create(&marian.subject, &pair, 1, NULL, NULL);
    CHECK(fabs(alignment_error_rate(t, true, alignment_way_diagonal(t)) - 0.5) < 1e-12,
          "3 links, one of them right: 1 - 2 / (3 + 1)");
    alignment_study_free(t);
    aligned_pair_free(&marian.subject, &pair);
}

/* ------------------------------------------------------------ laboratory ----- */

enum { PAIRS = 30 };

/* A sentence of the corpus as a line of a file. */
static void make_line(const corpus_sentence *sentence, char line[CORPUS_TEXT_MAX])
{
    size_t used = 0;
    for (int n = 0; n < sentence->count; n++)
        used += (size_t)snprintf(line + used, CORPUS_TEXT_MAX - used, "%s%s", n ? " " : "",
                                 sentence->tokens[n]);
}

/* A pair of the grammar, read from its two lines, with its alignment as sure links. */
static void read_gold(const subject *model, const corpus_pair *gold, aligned_pair *pair)
{
    char line[CORPUS_TEXT_MAX], message[SUBJECT_MESSAGE_MAX] = "";
    const int sources = gold->side[0].count, targets = gold->side[1].count;
    *pair = (aligned_pair){.links = calloc((size_t)sources * (size_t)targets, 1)};
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        make_line(&gold->side[side], line);
        CHECK(given_words_make(&pair->words[side], line, strlen(line), side == 1), "no memory");
    }
    const pair_request request = {.text = pair->words[0].text, .target = pair->words[1].text};
    CHECK(subject_read(model, &request, NULL, &pair->text, message), "%s", message);
    CHECK(pair->words[0].count == sources && pair->words[1].count == targets, "words");
    for (int t = 0; t < targets; t++)
        for (int n = 0; n < sources; n++)
            pair->links[t * sources + n] = gold->sources[t] >> n & 1 ? LINK_SURE : LINK_NONE;
}

static void compare_rates(const head_study *known, const alignment_study *s)
{
    double best = 1.0;
    for (int layer = 0; layer < s->layers; layer++)
        for (int h = 0; h < s->heads; h++)
            for (int reads = 0; reads < READINGS; reads++) {
                const head_name name = {ATTENTION_CROSS, layer, h};
                const double wanted = 1.0 - head_study_mean(known, head_number(known->shape, name),
                                                            MEASURE_F_SAYS + reads);
                const double got = alignment_error_rate(s, reads, alignment_way_head(s, layer, h));
                best = got < best ? got : best;
                CHECK(fabs(got - wanted) < 0.01, "cross %d.%d: %g, not %g", layer + 1, h + 1, got,
                      wanted);
            }
    CHECK(best < 0.15, "no head aligns: %g", best);
}

/* The laboratory, opened as any other model, has the error rates that the grammar gives it. */
static void rates_of_the_laboratory_are_those_of_its_grammar(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "", reason[SUBJECT_MESSAGE_MAX] = "";
    translator *const own = translator_load(MHA_MODEL_FILE, message);
    mha_model *any = NULL;
    if (!own || mha_model_open(&any, MHA_MODEL_FILE, NULL) != MHA_OK) {
        test_skip("models/lab-en-fr.safetensors is not there");
        translator_free(own);
        return;
    }
    subject laboratory, other;
    subject_of_translator(&laboratory, own);
    CHECK(subject_count_words(&laboratory) && subject_of_model(&other, any, reason), "%s", reason);
    head_pair *const gold = head_pairs_of_corpus(own, 1, CORPUS_TEST, PAIRS);
    const subject_texts texts = {.pairs = gold, .count = PAIRS};
    head_study *const known = head_study_create(&laboratory, &texts, NULL, NULL);
    aligned_pair pairs[PAIRS];
    for (int n = 0; n < PAIRS; n++)
        read_gold(&other, &gold[n].gold, &pairs[n]);
    alignment_study *const s = alignment_study_create(&other, pairs, PAIRS, NULL, NULL);
    if (CHECK(known && s, "no memory"))
        compare_rates(known, s);
    alignment_study_free(s);
    for (int n = 0; n < PAIRS; n++)
        aligned_pair_free(&other, &pairs[n]);
    head_study_free(known);
    free(gold);
    subject_close(&other);
    subject_close(&laboratory);
    mha_model_free(any);
    translator_free(own);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    if (tiny_marian_open(&marian, 5)) {
        RUN(links_are_read);
        RUN(hostile_links_are_refused);
        RUN(spaces_are_those_of_text);
        RUN(elision_is_counted);
        RUN(tokens_belong_to_words);
        RUN(error_rate_of_a_hand_example);
        RUN(joined_rows_sum_to_one);
        RUN(a_head_agrees_with_itself);
        RUN(the_diagonal_is_a_control);
    }
    tiny_marian_close(&marian);
    RUN(rates_of_the_laboratory_are_those_of_its_grammar);
    return test_end();
}
