/* SPDX-License-Identifier: MIT */
/*
 * BLEU and chrF: values that sacrebleu 2.6.0 computed, the tokenizer 13a, references from files,
 * and failing memory (faults.h). compare_bleu.py compares many more with sacrebleu itself.
 */
#include "translator/bleu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "translator/chrf.h"
#include "translator/metric_text.h"
#include "translator/reference_set.h"

enum { SENTENCES_MAX = 3, REFERENCES_MAX = 3 };

typedef struct known_case {
    const char *name;
    struct {
        const char *said;
        const char *references[REFERENCES_MAX];
    } sentences[SENTENCES_MAX];
    double score, precisions[BLEU_ORDER], brevity;
    int length, reference_length;
    double chrf;
} known_case;

/* clang-format off */
static const known_case known_cases[] = {
    {"one sentence",
     {{"the cat sat on the mat", {"the cat is on the mat"}}},
     37.99178428257963, {83.33333333333333, 60.0, 25.0, 16.666666666666668}, 1.0, 6, 6, 64.5779420625287},
    {"identical",
     {{"the cat sat on the mat .", {"the cat sat on the mat ."}}},
     100.00000000000004, {100.0, 100.0, 100.0, 100.0}, 1.0, 7, 7, 100.0},
    {"nothing in common",
     {{"alpha beta gamma", {"delta epsilon zeta eta"}}},
     0.0, {0.0, 0.0, 0.0, 0.0}, 0.7165313105737893, 3, 4, 9.484188715198732},
    {"an empty hypothesis",
     {{"", {"the cat"}}},
     0.0, {0.0, 0.0, 0.0, 0.0}, 0.0, 0, 2, 0.0},
    {"an empty reference",
     {{"the cat", {""}}},
     0.0, {0.0, 0.0, 0.0, 0.0}, 1.0, 2, 0, 0.0},
    {"both empty",
     {{"", {""}}},
     0.0, {0.0, 0.0, 0.0, 0.0}, 1.0, 0, 0, 0.0},
    {"too short for four words",
     {{"the cat", {"the cat"}}},
     0.0, {100.0, 100.0, 0.0, 0.0}, 1.0, 2, 2, 100.0},
    {"smoothed orders",
     {{"the dog sat down here today", {"a dog sat up there today"}}},
     17.965205598154213, {50.0, 20.0, 12.5, 8.333333333333334}, 1.0, 6, 6, 59.738814517067254},
    {"brevity",
     {{"the cat", {"the cat is on the mat over there"}}, {"it rains today in the north", {"it rains today in the south of the country"}}},
     25.22713380372246, {87.5, 83.33333333333333, 75.0, 66.66666666666667}, 0.32465246735834974, 8, 17, 39.267663898788015},
    {"the closest length, the shorter of two",
     {{"a b c d e", {"a b c d", "a b c d e f", "a b x"}}, {"a b c d", {"a b c d e f g", "b c d"}}},
     100.00000000000004, {100.0, 100.0, 100.0, 100.0}, 1.0, 9, 7, 90.20106053910737},
    {"counts of several references",
     {{"the the the the cat", {"the cat the", "the the cat sat", "cat"}}},
     39.76353643835252, {60.0, 50.0, 33.333333333333336, 25.0}, 1.0, 5, 4, 64.63061054040472},
    {"different numbers of references",
     {{"le chat dort .", {"le chat dort .", "le chat est endormi ."}}, {"il mange", {"il mange une pomme"}}, {"elle lit un livre", {"elle lit le livre", "elle lit un livre", "un livre est lu"}}},
     81.87307530779823, {100.0, 100.0, 100.0, 100.0}, 0.8187307530779819, 10, 12, 78.72136890662898},
    {"French, with its spaces",
     {{"« L’été\xc2\xa0», dit-il\xe2\x80\xaf: aujourd’hui\xc2\xa0!", {"« L'été\xc2\xa0», dit-elle\xe2\x80\xaf: demain\xc2\xa0!"}}},
     13.888095170058955, {62.5, 14.285714285714286, 8.333333333333334, 5.0}, 1.0, 8, 8, 35.112648198827124},
    {"numbers and entities",
     {{"It cost $1,000.50 (5-10% more) &amp; 3.14.", {"It cost $1,000.5 (5-10 % more) & 3.14 ."}}},
     78.25422900366432, {92.85714285714286, 84.61538461538461, 75.0, 63.63636363636363}, 1.0, 14, 14, 78.91930051423822},
    {"line ends inside",
     {{"a bro-\nken line\nhere is", {"a broken line here is"}}},
     100.00000000000004, {100.0, 100.0, 100.0, 100.0}, 1.0, 5, 5, 81.36354235890786},
    {"other scripts",
     {{"猫は魚が好き です 😀", {"犬は魚が好きです 😀"}}, {"кот спит", {"кот спит дома"}}},
     0.0, {60.0, 33.333333333333336, 50.0, 0.0}, 1.0, 5, 5, 68.59551276910986},
    {"a best reference for chrF that is not BLEU's",
     {{"abcdef ghij", {"abcdef xyz ghij klmnop", "abcdefg hij"}}},
     0.0, {100.0, 50.0, 0.0, 0.0}, 1.0, 2, 2, 100.0},
};

static const char *const separated[][2] = {
    {"Hello, world!", "Hello , world !"},
    {"a..b", "a . . b"},
    {"5..5", "5 . . 5"},
    {"5.", "5 ."},
    {"x.5", "x . 5"},
    {"3,000.5 km", "3,000.5 km"},
    {"1-2 a-b -3", "1 - 2 a-b -3"},
    {"don't (stop)", "don't ( stop )"},
    {"a&amp;lt;b &quot;c&quot;", "a < b \" c \""},
    {"<skipped>x<skipped>", "x"},
    {"-<skipped>\ny", "y"},
    {"a\xc2\xa0""b", "a b"},
    {"...", ". . ."},
    {".,5,.", ". ,5 , ."},
    {"end.\n\n", "end ."},
    {"http://a.b/c?d=1", "http : / / a . b / c ? d = 1"},
};
/* clang-format on */

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9;
}

static int count_references(const char *const references[REFERENCES_MAX])
{
    int count = 0;
    while (count < REFERENCES_MAX && references[count] != NULL)
        count++;
    return count;
}

/* Adds sentences [first, first + count) of a case. */
static mha_status add_case(const known_case *known, int first, int count, bleu *b, chrf *c)
{
    mha_status status = MHA_OK;
    for (int n = first; n < first + count && known->sentences[n].said && status == MHA_OK; n++) {
        const char *const *const references = known->sentences[n].references;
        status = bleu_add(b, known->sentences[n].said, references, count_references(references));
        if (status == MHA_OK)
            status =
                chrf_add(c, known->sentences[n].said, references, count_references(references));
    }
    return status;
}

static void check_case(const known_case *known, const bleu *b, const chrf *c)
{
    const bleu_score got = bleu_read(b);
    CHECK(near(got.score, known->score), "%s: BLEU %.17g, not %.17g", known->name, got.score,
          known->score);
    for (int n = 0; n < BLEU_ORDER; n++)
        CHECK(near(got.precisions[n], known->precisions[n]), "%s: precision %d is %.17g, not %.17g",
              known->name, n + 1, got.precisions[n], known->precisions[n]);
    CHECK(near(got.brevity, known->brevity), "%s: brevity penalty %.17g, not %.17g", known->name,
          got.brevity, known->brevity);
    CHECK(got.length == known->length && got.reference_length == known->reference_length,
          "%s: lengths %d and %d", known->name, (int)got.length, (int)got.reference_length);
    CHECK(near(chrf_read(c), known->chrf), "%s: chrF %.17g, not %.17g", known->name, chrf_read(c),
          known->chrf);
}

static void scores_are_those_of_sacrebleu(void)
{
    for (size_t n = 0; n < sizeof known_cases / sizeof known_cases[0]; n++) {
        bleu *const b = bleu_new(METRIC_WORDS_13A);
        chrf *const c = chrf_new();
        CHECK(add_case(&known_cases[n], 0, SENTENCES_MAX, b, c) == MHA_OK, "%s",
              known_cases[n].name);
        check_case(&known_cases[n], b, c);
        bleu_free(b);
        chrf_free(c);
    }
}

/* One object after another sentence is like a new one: sums of all cases are sums of single ones.
 */
static void sentences_do_not_influence_each_other(void)
{
    bleu *const all = bleu_new(METRIC_WORDS_13A);
    chrf *const c = chrf_new();
    int64_t length = 0, matches = 0, totals = 0, sentences = 0;
    for (size_t n = 0; n < sizeof known_cases / sizeof known_cases[0]; n++) {
        bleu *const one = bleu_new(METRIC_WORDS_13A);
        add_case(&known_cases[n], 0, SENTENCES_MAX, one, c);
        add_case(&known_cases[n], 0, SENTENCES_MAX, all, c);
        const bleu_score s = bleu_read(one);
        length += s.length;
        sentences += s.sentences;
        for (int order = 0; order < BLEU_ORDER; order++) {
            matches += s.matches[order];
            totals += s.totals[order];
        }
        bleu_free(one);
    }
    const bleu_score s = bleu_read(all);
    for (int order = 0; order < BLEU_ORDER; order++) {
        matches -= s.matches[order];
        totals -= s.totals[order];
    }
    CHECK(s.length == length && s.sentences == sentences && matches == 0 && totals == 0,
          "%d of %d words, matches differ by %d", (int)s.length, (int)length, (int)matches);
    bleu_free(all);
    chrf_free(c);
}

/* As str.split() and " ".join() of Python; the texts here have only spaces and U+00A0. */
static void squeeze(const char *text, char *to)
{
    char *const begin = to;
    for (; *text != '\0'; text++) {
        const bool wide = strncmp(text, "\xc2\xa0", 2) == 0;
        text += wide;
        if (!wide && *text != ' ')
            *to++ = *text;
        else if (to > begin && to[-1] != ' ')
            *to++ = ' ';
    }
    to -= to > begin && to[-1] == ' ';
    *to = '\0';
}

static void words_are_separated_as_by_13a(void)
{
    metric_text text = {.count = 0};
    for (size_t n = 0; n < sizeof separated / sizeof separated[0]; n++) {
        char got[256];
        squeeze(metric_text_separate(&text, separated[n][0]), got);
        CHECK(strcmp(got, separated[n][1]) == 0, "\"%s\" gives \"%s\", not \"%s\"", separated[n][0],
              got, separated[n][1]);
    }
    metric_text_free(&text);
}

static void bytes_that_are_no_text_are_characters(void)
{
    const char *const same = "a\xff\xfe z", *const other = "a\xfe\xff z";
    chrf *const c = chrf_new();
    CHECK(chrf_add(c, same, &same, 1) == MHA_OK && near(chrf_read(c), 100), "%g", chrf_read(c));
    CHECK(chrf_add(c, same, &other, 1) == MHA_OK && chrf_read(c) < 90, "%g", chrf_read(c));
    chrf_free(c);
}

static void a_sentence_needs_a_reference(void)
{
    bleu *const b = bleu_new(METRIC_WORDS_13A);
    chrf *const c = chrf_new();
    CHECK(bleu_add(b, "a", NULL, 0) == MHA_ERR_LENGTH, "BLEU without a reference");
    CHECK(chrf_add(c, "a", NULL, 0) == MHA_ERR_LENGTH, "chrF without a reference");
    CHECK(bleu_read(b).sentences == 0 && bleu_read(b).score == 0 && chrf_read(c) == 0, "added");
    bleu_free(b);
    chrf_free(c);
}

/* Takes a second; with quadratic time it would take hours. */
static void long_sentences_take_linear_time(void)
{
    enum { WORDS = 300000, WORD_BYTES = 8 };
    char *const same = malloc(WORDS * 2 + 1), *const different = malloc(WORDS * WORD_BYTES + 1);
    for (int n = 0; n < WORDS; n++) {
        memcpy(same + 2 * n, "a ", 3);
        snprintf(different + (size_t)n * WORD_BYTES, WORD_BYTES + 1, "%07d ", n);
    }
    const char *const references[] = {different, same};
    bleu *const b = bleu_new(METRIC_WORDS_13A);
    chrf *const c = chrf_new();
    CHECK(bleu_add(b, same, references, 2) == MHA_OK, "one word again and again");
    CHECK(bleu_add(b, different, references, 2) == MHA_OK, "different words");
    CHECK(near(bleu_read(b).score, 100), "%g", bleu_read(b).score);
    CHECK(chrf_add(c, same, references, 2) == MHA_OK, "one character again and again");
    CHECK(chrf_add(c, different, references, 2) == MHA_OK, "different characters");
    CHECK(near(chrf_read(c), 100), "%g", chrf_read(c));
    bleu_free(b);
    chrf_free(c);
    free(same);
    free(different);
}

/* ---------------------------------------------------------------- files ---- */

static temp_folder folder;

static const char *write_file(const char *name, const char *text)
{
    const char *const path = temp_path(&folder, name);
    CHECK(file_make(path, text, strlen(text)), "%s", path);
    return path;
}

static void pairs_are_grouped_by_their_source(void)
{
    reference_set set;
    char message[TEXT_FILE_MESSAGE_MAX] = "";
    const char *const path = write_file("pairs", "b\tB1\na\tA1\tmore\nb\tB2\n\tnone\na\t\nb\tB3");
    if (!CHECK(reference_set_read_tsv(&set, path, message), "%s", message))
        return;
    const char *const sources[] = {"b", "a", ""};
    const char *const references[] = {"B1", "B2", "B3", "A1", "", "none"};
    const size_t starts[] = {0, 3, 5, 6};
    if (CHECK(set.sentences == 3, "%zu sentences", set.sentences)) {
        for (int n = 0; n < 3; n++)
            CHECK(strcmp(set.sources[n], sources[n]) == 0, "source %d: %s", n, set.sources[n]);
        for (int n = 0; n < 6; n++)
            CHECK(strcmp(set.references[n], references[n]) == 0, "%d: %s", n, set.references[n]);
        CHECK(memcmp(set.starts, starts, sizeof starts) == 0, "starts");
    }
    reference_set_free(&set);
}

static void files_of_references_are_checked(void)
{
    reference_set set;
    char message[TEXT_FILE_MESSAGE_MAX];
    const char *const two = write_file("two", "a\n\n"), *const three = write_file("three", "\n\nc");
    const char *const paths[] = {two, three};
    CHECK(!reference_set_read(&set, paths, 2, message) && strstr(message, "has 3 lines"), "%s",
          message);
    reference_set_free(&set);
    CHECK(!reference_set_read_tsv(&set, two, message) && strstr(message, "two:1: has no tab"), "%s",
          message);
    reference_set_free(&set);
    const char *const missing = temp_path(&folder, "missing");
    CHECK(!reference_set_read(&set, &missing, 1, message) && strstr(message, "cannot be opened"),
          "%s", message);
    reference_set_free(&set);
    const char *const empty = write_file("empty", "");
    CHECK(reference_set_read_tsv(&set, empty, message) && set.sentences == 0, "an empty file");
    reference_set_free(&set);
    CHECK(file_make(empty, "a\0b\n", 4), "%s", empty);
    CHECK(!reference_set_read(&set, &empty, 1, message) && strstr(message, "byte of 0"), "%s",
          message);
    reference_set_free(&set);
}

/* ------------------------------------------------------------- no memory ---- */

/* Whether a case can be added; if not, its first sentence must not have been added in part. */
static bool add_with_faults(const known_case *known)
{
    bleu *const b = bleu_new(METRIC_WORDS_13A);
    chrf *const c = chrf_new();
    mha_status status = b && c ? MHA_OK : MHA_ERR_MEMORY;
    for (int n = 0; n < SENTENCES_MAX && status == MHA_OK; n++) {
        const bleu_score before = bleu_read(b);
        const double chrf_before = chrf_read(c);
        status = add_case(known, n, 1, b, c);
        const bleu_score after = bleu_read(b);
        CHECK(status == MHA_OK || after.sentences > before.sentences ||
                  memcmp(&before, &after, sizeof before) == 0,
              "BLEU has changed");
        CHECK(status == MHA_OK || chrf_before == chrf_read(c), "chrF has changed");
    }
    CHECK(status == MHA_OK || status == MHA_ERR_MEMORY, "%s", mha_status_string(status));
    if (status == MHA_OK)
        check_case(known, b, c);
    bleu_free(b);
    chrf_free(c);
    return status == MHA_OK;
}

static bool read_pairs(const known_case *known)
{
    reference_set set;
    char message[TEXT_FILE_MESSAGE_MAX] = "";
    (void)known;
    const bool fine = reference_set_read_tsv(&set, temp_path(&folder, "memory"), message);
    CHECK(fine || strstr(message, "out of memory"), "%s", message);
    reference_set_free(&set);
    return fine;
}

/* Every allocation of a job fails once, alone and with all after it. */
static void fails_everywhere(bool (*job)(const known_case *known), const known_case *known)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        bool fine = false;
        int at = 1;
        for (; !fine && at < 1000; at++) {
            faults_arm(MEMORY, at, for_ever);
            fine = job(known);
            const int left = faults_left(MEMORY);
            faults_disarm();
            CHECK(left == 0, "request %d fails: %d blocks left", at, left);
        }
        CHECK(fine && at > 4, "%d requests", at);
    }
}

static void memory_can_fail(void)
{
    for (size_t n = 0; n < sizeof known_cases / sizeof known_cases[0]; n++)
        fails_everywhere(add_with_faults, &known_cases[n]);
    write_file("memory", "a\tb\nc\td\na\te\n");
    fails_everywhere(read_pairs, NULL);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    folder = temp_folder_new();
    RUN(scores_are_those_of_sacrebleu);
    RUN(sentences_do_not_influence_each_other);
    RUN(words_are_separated_as_by_13a);
    RUN(bytes_that_are_no_text_are_characters);
    RUN(a_sentence_needs_a_reference);
    RUN(long_sentences_take_linear_time);
    RUN(pairs_are_grouped_by_their_source);
    RUN(files_of_references_are_checked);
    RUN(memory_can_fail);
    temp_folder_free(&folder);
    return test_end();
}
