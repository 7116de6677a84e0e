/* SPDX-License-Identifier: MIT */
/*
 * mha heads --alignments:
 *
 *      sentence pairs, links --read_pairs()--> aligned pairs, those that are too long left out
 *                            --alignment_study_create()--> error rates --> text or JSON
 */
#include "program/heads_alignment.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/alignment_file.h"
#include "heads/head_alignment.h"
#include "program/args.h"
#include "program/heads_setup.h"
#include "program/pair_files.h"
#include "program/session.h"

typedef struct alignment_run {
    const alignment_request *request;
    session session;
    pair_file file;
    alignment_file links;
    bool numbered;                  /* every sentence has its number and a tab before it */
    bool elided[TRANSFORMER_SIDES]; /* as in given_words.h */
    aligned_pair *pairs;            /* [count] */
    int count, too_long;
    alignment_study *study;
} alignment_run;

/* ------------------------------------------------------------ sentences ----- */

/* The number before a tab at the beginning of a sentence, which is then removed; -1: none. */
static int64_t take_number(const char **text, size_t *length)
{
    int64_t number = 0;
    size_t n = 0;
    while (n < *length && n < 9 && (*text)[n] >= '0' && (*text)[n] <= '9')
        number = number * 10 + ((*text)[n++] - '0');
    if (n == 0 || n == *length || (*text)[n] != '\t')
        return -1;
    *text += n + 1;
    *length -= n + 1;
    return number;
}

/* A sentence of a pair without its number. */
static int64_t sentence_of(const alignment_run *r, const pair_text *pair, int side,
                           const char **text, size_t *length)
{
    *text = pair->text[side];
    *length = pair->length[side];
    return r->numbered ? take_number(text, length) : -1;
}

/* Finds what all sentences have in common: numbers, and where spaces are left out. */
static void look_at_sentences(alignment_run *r)
{
    elision_count counts[TRANSFORMER_SIDES] = {{0, 0}};
    r->numbered = true;
    for (int64_t n = 0; n < r->file.count; n++)
        for (int side = 0; side < TRANSFORMER_SIDES; side++) {
            const char *text = r->file.pairs[n].text[side];
            size_t length = r->file.pairs[n].length[side];
            r->numbered &= take_number(&text, &length) >= 0;
            elision_count_add(&counts[side], text, length);
        }
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        r->elided[side] = elision_count_holds(&counts[side]);
}

/* ----------------------------------------------------------------- links ----- */

static int check_link(const alignment_run *r, int line, word_link link, const int words[])
{
    static const char *const names[] = {"source", "target"};
    const bool swapped = r->request->target_first;
    const int places[] = {swapped ? link.second : link.first, swapped ? link.first : link.second};
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        if (places[side] >= words[side])
            return args_failed(
                "%s:%d: link %d%c%d: there is no word %d, the %s has %d words, which count from 0; "
                "the word of the %s comes first in a link%s",
                r->request->alignments, line, link.first, link.sure ? '-' : 'p', link.second,
                places[side], names[side], words[side], names[swapped],
                swapped ? " with --target-first" : ", or give --target-first");
    return EXIT_GO_ON;
}

/* Fills the links of a pair from a line, counted from 1. */
static int take_links(const alignment_run *r, int line, aligned_pair *pair)
{
    const int words[] = {pair->words[0].count, pair->words[1].count};
    const int64_t end = r->links.starts[line];
    int code = EXIT_GO_ON;
    pair->links = calloc((size_t)words[0] * (size_t)words[1] + 1, sizeof *pair->links);
    if (pair->links == NULL)
        return args_failed("out of memory");
    for (int64_t n = r->links.starts[line - 1]; n < end && code == EXIT_GO_ON; n++) {
        const word_link link = r->links.links[n];
        code = check_link(r, line, link, words);
        if (code != EXIT_GO_ON)
            break;
        const int source = r->request->target_first ? link.second : link.first;
        const int target = r->request->target_first ? link.first : link.second;
        uint8_t *const cell = &pair->links[(ptrdiff_t)target * words[0] + source];
        *cell = link.sure || *cell == LINK_SURE ? LINK_SURE : LINK_POSSIBLE;
    }
    return code;
}

/* ----------------------------------------------------------------- pairs ----- */

/* The words of both sides. The numbers of sentences and links must agree. */
static int take_words(const alignment_run *r, const pair_text *from, aligned_pair *pair)
{
    const int line = (int)from->line;
    int64_t number = r->links.numbers[line - 1];
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const char *text;
        size_t length;
        const int64_t own = sentence_of(r, from, side, &text, &length);
        if (number >= 0 && own >= 0 && own != number)
            return args_failed("%s:%d: the sentences and links of a pair have different numbers: "
                               "%" PRId64 " and %" PRId64,
                               r->request->alignments, line, own, number);
        number = number < 0 ? own : number;
        if (!given_words_make(&pair->words[side], text, length, r->elided[side]))
            return args_failed("out of memory");
    }
    return EXIT_GO_ON;
}

/* Reads one pair as the next of r->pairs, unless it is too long; then its links are not read. */
static int read_pair(alignment_run *r, const pair_text *from)
{
    aligned_pair *const pair = &r->pairs[r->count++];
    char message[SUBJECT_MESSAGE_MAX];
    const int code = take_words(r, from, pair);
    if (code != EXIT_GO_ON)
        return code;
    const pair_request request = {.text = pair->words[0].text, .target = pair->words[1].text};
    if (subject_read(&r->session.subject, &request, r->session.pool, &pair->text, message))
        return take_links(r, (int)from->line, pair);
    if (!pair->text.too_long)
        return args_failed("%s:%" PRId64 ": %s", r->request->pairs, from->line, message);
    aligned_pair_free(&r->session.subject, pair);
    *pair = (aligned_pair){.links = NULL};
    r->too_long++;
    r->count--;
    return EXIT_GO_ON;
}

static int read_pairs(alignment_run *r)
{
    const int64_t asked = r->request->sentences;
    const int64_t most = asked > 0 && asked < r->file.count ? asked : r->file.count;
    int code = EXIT_GO_ON;
    r->pairs = calloc((size_t)most + 1, sizeof *r->pairs);
    if (r->pairs == NULL)
        return args_failed("out of memory");
    look_at_sentences(r);
    for (int64_t n = 0; n < r->file.count && r->count < most && code == EXIT_GO_ON; n++)
        code = read_pair(r, &r->file.pairs[n]);
    if (code == EXIT_GO_ON && r->count == 0)
        code = args_failed("%s: all %d sentence pairs are longer than the model's positions",
                           r->request->pairs, r->too_long);
    return code;
}

static int open_files(alignment_run *r)
{
    char message[ALIGNMENT_MESSAGE_MAX];
    const int code = pair_files_open(&r->file, r->request->pairs);
    if (code != EXIT_GO_ON)
        return code;
    if (!alignment_file_read(&r->links, r->request->alignments, message))
        return args_failed("%s", message);
    if (r->links.lines != r->file.lines)
        return args_failed(
            "%s has %d lines, but %s has %" PRId64 ": line n has the links of pair n",
            r->request->alignments, r->links.lines, r->request->pairs, r->file.lines);
    return EXIT_GO_ON;
}

static int open_model(alignment_run *r)
{
    const int code =
        session_open(&r->session, r->request->model_file, SHIPPED_TRANSLATOR, r->request->threads);
    if (code != EXIT_GO_ON)
        return code;
    if (r->session.model != NULL)
        return args_wrong("heads: --alignments: the laboratory knows its own alignments; give "
                          "--gold instead, or --model with another translator");
    if (r->session.subject.shape.layers[ATTENTION_CROSS] == 0)
        return args_wrong("heads: --alignments: the model has no cross-attention");
    return EXIT_GO_ON;
}

/* ---------------------------------------------------------------- print ----- */

static const char *const reading_names[READINGS] = {"says", "reads"};

/* Two lines for a layer: error rates, and their intervals. The last column is the mean of the
 * heads. */
static void print_layer(const alignment_run *r, bool reads, int layer, const terminal *screen)
{
    const alignment_study *const s = r->study;
    printf("%-6d", layer + 1);
    for (int h = 0; h <= s->heads; h++) {
        const int way =
            h < s->heads ? alignment_way_head(s, layer, h) : alignment_way_layer(s, layer);
        printf("%9.3f", alignment_error_rate(s, reads, way));
    }
    printf("\n");
    if (s->sentences < 2)
        return;
    terminal_style(stdout, screen, STYLE_DIM);
    printf("%-6s", "");
    for (int h = 0; h <= s->heads; h++) {
        const int way =
            h < s->heads ? alignment_way_head(s, layer, h) : alignment_way_layer(s, layer);
        const head_interval interval = alignment_interval(s, reads, way);
        printf("  %3.0f-%-3.0f", 100.0 * interval.low, 100.0 * interval.high);
    }
    terminal_plain(stdout, screen);
    printf("\n");
}

static void print_grid(const alignment_run *r, bool reads, const terminal *screen)
{
    terminal_style(stdout, screen, STYLE_BOLD);
    printf("The row that %s a word of the target", reading_names[reads]);
    terminal_plain(stdout, screen);
    printf("\n%-6s", "layer");
    for (int h = 0; h < r->study->heads; h++)
        printf("%9d", h + 1);
    printf("%9s\n", "mean");
    for (int layer = 0; layer < r->study->layers; layer++)
        print_layer(r, reads, layer, screen);
    printf("\n");
}

/* A way and a reading. */
typedef struct alignment_choice {
    bool reads;
    int way;
} alignment_choice;

/* The smallest error rate of the ways [first, end), in both readings. */
static alignment_choice best_of(const alignment_study *s, int first, int end)
{
    alignment_choice best = {false, first};
    for (int reads = 0; reads < READINGS; reads++)
        for (int way = first; way < end; way++)
            if (alignment_error_rate(s, reads, way) < alignment_error_rate(s, best.reads, best.way))
                best = (alignment_choice){reads, way};
    return best;
}

static alignment_choice best_head(const alignment_study *s)
{
    return best_of(s, 0, alignment_way_layer(s, 0));
}

static alignment_choice best_layer(const alignment_study *s)
{
    return best_of(s, alignment_way_layer(s, 0), alignment_way_all(s));
}

static alignment_choice best_all(const alignment_study *s)
{
    return best_of(s, alignment_way_all(s), alignment_way_all(s) + 1);
}

static void print_choice(const alignment_run *r, const char *name, alignment_choice choice)
{
    const head_interval interval = alignment_interval(r->study, choice.reads, choice.way);
    printf("%-36s%.3f", name, alignment_error_rate(r->study, choice.reads, choice.way));
    if (r->study->sentences > 1)
        printf(" (%.3f..%.3f)", interval.low, interval.high);
    if (choice.way != alignment_way_diagonal(r->study))
        printf("  the row that %s a word", reading_names[choice.reads]);
    printf("\n");
}

static void print_best(const alignment_run *r)
{
    const alignment_study *const s = r->study;
    const alignment_choice head = best_head(s), layer = best_layer(s);
    char name[64];
    snprintf(name, sizeof name, "best head, cross %d.%d", head.way / s->heads + 1,
             head.way % s->heads + 1);
    print_choice(r, name, head);
    snprintf(name, sizeof name, "best layer, mean of the heads of %d",
             layer.way - alignment_way_layer(s, 0) + 1);
    print_choice(r, name, layer);
    print_choice(r, "mean of all heads", best_all(s));
    print_choice(r, "the diagonal, without a model",
                 (alignment_choice){false, alignment_way_diagonal(s)});
    printf("\nThe error rate is 1 - (|M and S| + |M and P|) / (|M| + |S|): M are the links of a "
           "head, one per word of\nthe target; S sure links; P sure and possible ones. Means are "
           "of weights, not of error rates. The\nbest of several is chosen on the same sentences, "
           "which flatters it a little.\n");
}

static void print_text(const alignment_run *r)
{
    const terminal screen = terminal_query(stdout);
    const alignment_study *const s = r->study;
    printf("%s\nAlignment error rate of %d heads of cross-attention on %d sentence pair%s of %s",
           r->session.path, s->layers * s->heads, s->sentences, s->sentences == 1 ? "" : "s",
           r->request->pairs);
    if (r->too_long > 0)
        printf("\n(%d longer than the model's positions left out)", r->too_long);
    printf(": %" PRId64 " and %" PRId64 " words, %" PRId64 " sure and %" PRId64
           " possible links.\n95 %% intervals, in per cent below each number, come from resampling "
           "sentence pairs. Layers and heads\ncount from 1.\n\n",
           s->words[0], s->words[1], s->sure, s->possible);
    for (int reads = 0; reads < READINGS; reads++)
        print_grid(r, reads, &screen);
    print_best(r);
}

/* ----------------------------------------------------------------- JSON ----- */

/* Intervals are null for a single sentence. */
static void json_rate(json *j, const alignment_study *s, alignment_choice choice)
{
    const head_interval interval = alignment_interval(s, choice.reads, choice.way);
    json_number(j, "aer", alignment_error_rate(s, choice.reads, choice.way));
    json_number(j, "low", s->sentences > 1 ? interval.low : NAN);
    json_number(j, "high", s->sentences > 1 ? interval.high : NAN);
}

/* Layer and head of a way, counted from 1, as far as it has them. */
static void json_way(json *j, const alignment_study *s, const char *key, alignment_choice choice)
{
    json_open_object(j, key);
    if (choice.way != alignment_way_diagonal(s))
        json_string(j, "row", reading_names[choice.reads]);
    if (choice.way < alignment_way_layer(s, 0)) {
        json_integer(j, "layer", choice.way / s->heads + 1);
        json_integer(j, "head", choice.way % s->heads + 1);
    } else if (choice.way < alignment_way_all(s)) {
        json_integer(j, "layer", choice.way - alignment_way_layer(s, 0) + 1);
    }
    json_rate(j, s, choice);
    json_close(j);
}

static void json_ways(json *j, const alignment_study *s, const char *key, int first, int end)
{
    json_open_array(j, key);
    for (int reads = 0; reads < READINGS; reads++)
        for (int way = first; way < end; way++)
            json_way(j, s, NULL, (alignment_choice){reads, way});
    json_close(j);
}

static void print_json(const alignment_run *r)
{
    const alignment_study *const s = r->study;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", r->session.path);
    json_string(&j, "pairs", r->request->pairs);
    json_string(&j, "alignments", r->request->alignments);
    json_integer(&j, "sentences", s->sentences);
    json_integer(&j, "too_long", r->too_long);
    json_integer(&j, "counted_from", 1);
    json_integer(&j, "source_words", s->words[TRANSFORMER_SOURCE]);
    json_integer(&j, "target_words", s->words[TRANSFORMER_TARGET]);
    json_integer(&j, "sure", s->sure);
    json_integer(&j, "possible", s->possible);
    json_ways(&j, s, "heads", 0, alignment_way_layer(s, 0));
    json_ways(&j, s, "layers", alignment_way_layer(s, 0), alignment_way_all(s));
    json_ways(&j, s, "all", alignment_way_all(s), alignment_way_all(s) + 1);
    json_way(&j, s, "best_head", best_head(s));
    json_way(&j, s, "best_layer", best_layer(s));
    json_way(&j, s, "best_all", best_all(s));
    json_way(&j, s, "diagonal", (alignment_choice){false, alignment_way_diagonal(s)});
    json_close(&j);
}

/* ------------------------------------------------------------------ run ----- */

static int measure(alignment_run *r)
{
    r->study = alignment_study_create(&r->session.subject, r->pairs, r->count, r->session.pool,
                                      heads_watch);
    progress_end();
    if (r->study == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    (r->request->as_json ? print_json : print_text)(r);
    return EXIT_FINE;
}

int heads_alignment(const alignment_request *request)
{
    alignment_run r = {.request = request};
    int code = open_model(&r);
    if (code == EXIT_GO_ON)
        code = open_files(&r);
    if (code == EXIT_GO_ON)
        code = read_pairs(&r);
    if (code == EXIT_GO_ON)
        code = measure(&r);
    alignment_study_free(r.study);
    for (int n = 0; n < r.count; n++)
        aligned_pair_free(&r.session.subject, &r.pairs[n]);
    free(r.pairs);
    alignment_file_free(&r.links);
    pair_file_close(&r.file);
    session_close(&r.session);
    return code;
}
