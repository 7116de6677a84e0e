/* SPDX-License-Identifier: MIT */
/* mha bleu: BLEU and chrF of translations, compared with one or more references of each. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"
#include "translator/bleu.h"
#include "translator/chrf.h"
#include "translator/reference_set.h"

static const char details[] =
    "Line N of HYPOTHESES is a translation, line N of every file of REFERENCES a translation of\n"
    "the same sentence by a person. The numbers are those of sacrebleu with its defaults: BLEU\n"
    "with the tokenizer 13a and exponential smoothing, chrF2 with 6-grams of characters.\n"
    "With --tokenize none the words of BLEU are what white space separates: for texts that are\n"
    "tokenized already, as those of many papers.\n"
    "\n"
    "With --tsv a line of REFERENCES is a source, a tab and a reference. Lines with the same\n"
    "source are references of one sentence. Line N of HYPOTHESES translates the source that\n"
    "appears as the N-th different one.\n"
    "\n"
    "Examples:\n"
    "  mha bleu output.fr reference.fr\n"
    "  mha bleu output.fr reference-1.fr reference-2.fr\n"
    "  cut -f 1 pairs.tsv | awk '!seen[$0]++' | mha translate >output.fr\n"
    "  mha bleu --tsv output.fr pairs.tsv\n";

typedef struct metrics {
    bleu *bleu;
    chrf *chrf;
    size_t references_min, references_max;
} metrics;

/* The files as they are compared. */
typedef struct comparison {
    line_file hypotheses;
    reference_set references;
} comparison;

static int read_files(comparison *files, char **words, int count, bool tsv)
{
    char message[TEXT_FILE_MESSAGE_MAX];
    const char *const *const paths = (const char *const *)words;
    if (!line_file_read(&files->hypotheses, paths[0], message))
        return args_failed("%s", message);
    const bool fine = tsv ? reference_set_read_tsv(&files->references, paths[1], message)
                          : reference_set_read(&files->references, paths + 1, count - 1, message);
    if (!fine)
        return args_failed("%s", message);
    const size_t said = files->hypotheses.count, wanted = files->references.sentences;
    if (said != wanted)
        return args_failed("%s has %zu lines, but %s has %zu %s", paths[0], said, paths[1], wanted,
                           tsv ? "different sources" : "lines");
    return said > 0 ? EXIT_GO_ON : args_failed("%s: there are no sentences in it", paths[0]);
}

static mha_status add_sentence(metrics *sums, const comparison *files, size_t n)
{
    const size_t first = files->references.starts[n], end = files->references.starts[n + 1];
    const char *const said = files->hypotheses.lines[n];
    const char *const *const references = files->references.references + first;
    const size_t count = end - first;
    sums->references_min = n == 0 || count < sums->references_min ? count : sums->references_min;
    sums->references_max = count > sums->references_max ? count : sums->references_max;
    const mha_status status = bleu_add(sums->bleu, said, references, (int)count);
    return status == MHA_OK ? chrf_add(sums->chrf, said, references, (int)count) : status;
}

static int measure(metrics *sums, const comparison *files, metric_words words)
{
    mha_status status = MHA_OK;
    *sums = (metrics){.bleu = bleu_new(words), .chrf = chrf_new()};
    if (sums->bleu == NULL || sums->chrf == NULL)
        status = MHA_ERR_MEMORY;
    for (size_t n = 0; n < files->hypotheses.count && status == MHA_OK; n++)
        status = add_sentence(sums, files, n);
    return status == MHA_OK ? EXIT_GO_ON : args_failed("bleu: %s", mha_status_string(status));
}

static void print_text(const metrics *sums)
{
    const bleu_score b = bleu_read(sums->bleu);
    printf("BLEU   %6.2f  precisions %.1f/%.1f/%.1f/%.1f, brevity penalty %.3f\n", b.score,
           b.precisions[0], b.precisions[1], b.precisions[2], b.precisions[3], b.brevity);
    printf("chrF2  %6.2f\n", chrf_read(sums->chrf));
    printf("%lld sentence%s, %lld words, %lld in the references (ratio %.3f), ",
           (long long)b.sentences, b.sentences == 1 ? "" : "s", (long long)b.length,
           (long long)b.reference_length, b.ratio);
    if (sums->references_min == sums->references_max)
        printf("%zu reference%s each\n", sums->references_max,
               sums->references_max == 1 ? "" : "s");
    else
        printf("%zu to %zu references each\n", sums->references_min, sums->references_max);
}

static void print_counts(json *j, const char *key, const int64_t counts[BLEU_ORDER])
{
    json_open_array(j, key);
    for (int n = 0; n < BLEU_ORDER; n++)
        json_integer(j, NULL, counts[n]);
    json_close(j);
}

static void print_json(const metrics *sums)
{
    const bleu_score b = bleu_read(sums->bleu);
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_exact(&j, "bleu", b.score);
    json_open_array(&j, "precisions");
    for (int n = 0; n < BLEU_ORDER; n++)
        json_exact(&j, NULL, b.precisions[n]);
    json_close(&j);
    print_counts(&j, "matches", b.matches);
    print_counts(&j, "totals", b.totals);
    json_exact(&j, "brevity_penalty", b.brevity);
    json_exact(&j, "ratio", b.ratio);
    json_integer(&j, "words", b.length);
    json_integer(&j, "reference_words", b.reference_length);
    json_exact(&j, "chrf2", chrf_read(sums->chrf));
    json_integer(&j, "sentences", b.sentences);
    json_integer(&j, "references_min", (int64_t)sums->references_min);
    json_integer(&j, "references_max", (int64_t)sums->references_max);
    json_close(&j);
}

int command_bleu(int argc, char **argv)
{
    bool tsv = false, as_json = false;
    const char *tokenizer = "13a";
    const arg_option options[] = {
        {"tsv", ARG_FLAG, &tsv, NULL, "REFERENCES has lines of source, tab and reference", 0, 0},
        {"tokenize", ARG_TEXT, &tokenizer, "T", "words of BLEU: 13a, or none: as given (13a)", 0,
         0},
        {OPTION_JSON(&as_json)},
    };
    const arg_command command = {
        .name = "bleu",
        .usage = "[OPTION...] HYPOTHESES REFERENCES...",
        .summary = "Print BLEU and chrF of translations.",
        .details = details,
        ARG_OPTIONS(options),
        .words_min = 2,
        .words_max = INT_MAX,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    if (tsv && words > 2)
        return args_wrong("bleu: --tsv takes one file of references, not %d", words - 1);
    const bool given = strcmp(tokenizer, "none") == 0;
    if (!given && strcmp(tokenizer, "13a") != 0)
        return args_wrong("bleu: --tokenize \"%s\": it must be 13a or none", tokenizer);
    comparison files = {.references = {.sentences = 0}};
    metrics sums = {.bleu = NULL};
    code = read_files(&files, argv + 1, words, tsv);
    if (code == EXIT_GO_ON)
        code = measure(&sums, &files, given ? METRIC_WORDS_GIVEN : METRIC_WORDS_13A);
    if (code == EXIT_GO_ON) {
        (as_json ? print_json : print_text)(&sums);
        code = EXIT_FINE;
    }
    bleu_free(sums.bleu);
    chrf_free(sums.chrf);
    line_file_free(&files.hypotheses);
    reference_set_free(&files.references);
    return code;
}
