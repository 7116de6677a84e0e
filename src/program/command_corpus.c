/* SPDX-License-Identifier: MIT */
/* mha corpus: sentence pairs of the grammar with their alignment and roles, or statistics of the
 * splits. The corpus room makes both; here they are printed. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "corpus/corpus.h"
#include "corpus/corpus_stats.h"
#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"

static const char details[] =
    "The sentences of the laboratory: each comes from a known grammar, so the true alignment and\n"
    "roles are known. Each line is an English sentence, a tab and its French translation. With a\n"
    "SENTENCE of the grammar, its pair is printed instead. Combinations of words (subject and\n"
    "verb, verb and object, adjective and noun) that occur in valid or test never occur in train;\n"
    "--stats counts them in the first N sentences of every split.\n"
    "\n"
    "Examples:\n"
    "  mha corpus --split test --count 5\n"
    "  mha corpus --json \"the cat that i saw yesterday ran away\"\n"
    "  mha corpus \"they were giving it to him\"\n"
    "  mha corpus --stats --count 20000\n";

typedef struct corpus_request {
    const char *split_name;
    corpus_split split;
    int64_t count;
    uint64_t seed;
    bool as_json, stats;
} corpus_request;

/* --------------------------------------------------------------- pairs ----- */

/* A pair of positions, left out if one side lacks the word. */
static void print_positions(json *j, const char *key, int first, int second)
{
    if (first < 0 || second < 0)
        return;
    json_open_array(j, key);
    json_integer(j, NULL, first);
    json_integer(j, NULL, second);
    json_close(j);
}

/* Pairs [English, French] of positions; a French word may come from several English ones. */
static void print_alignment(json *j, const corpus_pair *pair)
{
    json_open_array(j, "alignment");
    for (int n = 0; n < pair->side[CORPUS_FRENCH].count; n++)
        for (int source = 0; source < pair->side[CORPUS_ENGLISH].count; source++)
            if (pair->sources[n] >> source & 1)
                print_positions(j, NULL, source, n);
    json_close(j);
}

/* Every grammatical relation with its two positions in each language. */
static void print_roles(json *j, const corpus_pair *pair)
{
    json_open_array(j, "roles");
    for (int n = 0; n < pair->role_count; n++) {
        const corpus_role *role = &pair->roles[n];
        json_open_object(j, NULL);
        json_string(j, "role", corpus_role_name(role->kind));
        print_positions(j, "english", role->first[CORPUS_ENGLISH], role->second[CORPUS_ENGLISH]);
        print_positions(j, "french", role->first[CORPUS_FRENCH], role->second[CORPUS_FRENCH]);
        json_close(j);
    }
    json_close(j);
}

/* `j` is NULL for plain text. */
static void print_pair(json *j, const corpus_pair *pair)
{
    char english[CORPUS_TEXT_MAX], french[CORPUS_TEXT_MAX];
    corpus_detokenise(CORPUS_ENGLISH, &pair->side[CORPUS_ENGLISH], english);
    corpus_detokenise(CORPUS_FRENCH, &pair->side[CORPUS_FRENCH], french);
    if (j == NULL) {
        printf("%s\t%s\n", english, french);
        return;
    }
    json_open_object(j, NULL);
    json_string(j, "english", english);
    json_string(j, "french", french);
    json_strings(j, "english_tokens", pair->side[CORPUS_ENGLISH].tokens,
                 pair->side[CORPUS_ENGLISH].count);
    json_strings(j, "french_tokens", pair->side[CORPUS_FRENCH].tokens,
                 pair->side[CORPUS_FRENCH].count);
    print_alignment(j, pair);
    print_roles(j, pair);
    json_close(j);
}

/* The first `count` sentences of the split, which depend only on the seed. */
static int print_series(const corpus_request *request)
{
    json j = json_begin(stdout);
    corpus_pair pair;
    if (request->as_json)
        json_open_array(&j, NULL);
    for (int64_t n = 0; n < request->count; n++) {
        corpus_generate(request->seed, request->split, (uint64_t)n, &pair, NULL);
        print_pair(request->as_json ? &j : NULL, &pair);
    }
    if (request->as_json)
        json_close(&j);
    return EXIT_FINE;
}

/* The pair of a sentence that the grammar can parse. */
static int print_sentence(const corpus_request *request, const char *sentence)
{
    json j = json_begin(stdout);
    corpus_pair pair;
    char message[CORPUS_MESSAGE_MAX];
    if (!corpus_translate(sentence, &pair, NULL, message))
        return args_failed("not a sentence of the corpus: %s", message);
    print_pair(request->as_json ? &j : NULL, &pair);
    return EXIT_FINE;
}

/* --------------------------------------------------------------- stats ----- */

/* Number of combinations that the grammar can make in a split, over all kinds of relations. */
static int64_t possible_of(const corpus_stats *stats, int split)
{
    int64_t sum = 0;
    for (int kind = 0; kind < ROLE_KINDS; kind++)
        sum += stats->possible[kind][split];
    return sum;
}

static double mean(const corpus_stats *stats, int split, corpus_side side)
{
    return (double)stats->split[split].tokens[side] / (double)stats->sentences;
}

static void print_stats_text(const corpus_stats *stats)
{
    printf("vocabulary  %d English words, %d French\n\n", stats->vocabulary[CORPUS_ENGLISH],
           stats->vocabulary[CORPUS_FRENCH]);
    printf("%-34s %10s %10s %10s\n", "", "train", "valid", "test");
#define ROW(name, format, value)                            \
    do {                                                    \
        printf("%-34s", name);                              \
        for (int split = 0; split < CORPUS_SPLITS; split++) \
            printf(" " format, value);                      \
        putchar('\n');                                      \
    } while (0)
    ROW("combinations of the grammar", "%10" PRId64, possible_of(stats, split));
    ROW("sentences counted", "%10" PRId64, stats->sentences);
    ROW("different English sentences", "%10" PRId64, stats->split[split].distinct);
    ROW("tokens per sentence, English", "%10.2f", mean(stats, split, CORPUS_ENGLISH));
    ROW("tokens per sentence, French", "%10.2f", mean(stats, split, CORPUS_FRENCH));
    ROW("longest, English", "%10d", stats->split[split].longest[CORPUS_ENGLISH]);
    ROW("longest, French", "%10d", stats->split[split].longest[CORPUS_FRENCH]);
    ROW("English words that occur", "%10d", stats->split[split].words[CORPUS_ENGLISH]);
    ROW("French words that occur", "%10d", stats->split[split].words[CORPUS_FRENCH]);
    ROW("combinations that occur", "%10" PRId64, stats->split[split].combinations);
    ROW("of them, the split's own", "%10" PRId64, stats->split[split].held_out);
#undef ROW
    printf("\nheld-out combinations in train  %" PRId64 "\n", stats->shared_combinations);
    printf("valid or test sentences in train  %" PRId64 "\n", stats->shared_sentences);
}

static void print_stats_split(json *j, const corpus_stats *stats, corpus_split split)
{
    const corpus_split_stats *own = &stats->split[split];
    json_open_object(j, corpus_split_name(split));
    json_integer(j, "grammar_combinations", possible_of(stats, (int)split));
    json_integer(j, "distinct", own->distinct);
    json_number(j, "english_length", mean(stats, (int)split, CORPUS_ENGLISH));
    json_number(j, "french_length", mean(stats, (int)split, CORPUS_FRENCH));
    json_integer(j, "english_longest", own->longest[CORPUS_ENGLISH]);
    json_integer(j, "french_longest", own->longest[CORPUS_FRENCH]);
    json_integer(j, "english_words", own->words[CORPUS_ENGLISH]);
    json_integer(j, "french_words", own->words[CORPUS_FRENCH]);
    json_integer(j, "combinations", own->combinations);
    json_integer(j, "own_combinations", own->held_out);
    json_close(j);
}

static void print_stats_json(const corpus_stats *stats)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_integer(&j, "english_vocabulary", stats->vocabulary[CORPUS_ENGLISH]);
    json_integer(&j, "french_vocabulary", stats->vocabulary[CORPUS_FRENCH]);
    json_integer(&j, "sentences", stats->sentences);
    for (int split = 0; split < CORPUS_SPLITS; split++)
        print_stats_split(&j, stats, (corpus_split)split);
    json_integer(&j, "shared_combinations", stats->shared_combinations);
    json_integer(&j, "shared_sentences", stats->shared_sentences);
    json_close(&j);
}

static int print_stats(const corpus_request *request)
{
    corpus_stats stats;
    if (!corpus_stats_measure(&stats, request->seed, request->count))
        return args_failed("out of memory");
    if (request->as_json)
        print_stats_json(&stats);
    else
        print_stats_text(&stats);
    return EXIT_FINE;
}

/* ------------------------------------------------------------- command ----- */

int command_corpus(int argc, char **argv)
{
    corpus_request request = {.split_name = "train", .count = 10, .seed = 1};
    uint64_t given = 0;
    const arg_option options[] = {
        {"split", ARG_TEXT, &request.split_name, "S", "train, valid or test (train)", 0, 0},
        {"count", ARG_NUMBER, &request.count, "N", "number of pairs (10)", 1, 100000000},
        {"seed", ARG_SEED, &request.seed, "N", "seed of the sentences (1)", 0, 0},
        {"stats", ARG_FLAG, &request.stats, NULL, "print statistics of all splits instead", 0, 0},
        {"json", ARG_FLAG, &request.as_json, NULL, "print tokens, alignment and roles as JSON", 0,
         0},
    };
    const arg_command command = {
        .name = "corpus",
        .usage = "[--split S] [--count N] [--seed N] [--stats] [--json] [SENTENCE]",
        .summary = "Print English-French sentence pairs with known alignment and roles.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = 1,
        .given = &given,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON && request.stats)
        code = args_refuse(&command, "split", "selects one split; --stats counts all of them");
    else if (code == EXIT_GO_ON && words > 0)
        code = args_refuse(&command, "split count seed",
                           "selects sentences; leave it out with a SENTENCE");
    if (code == EXIT_GO_ON)
        code = option_split("corpus", request.split_name, &request.split);
    if (code != EXIT_GO_ON)
        return code;
    if (request.stats && words > 0)
        return args_wrong("corpus: --stats counts all sentences; leave out \"%s\"", argv[1]);
    if (request.stats)
        return print_stats(&request);
    return words > 0 ? print_sentence(&request, argv[1]) : print_series(&request);
}
