/* SPDX-License-Identifier: MIT */
/*
 * mha ablate --words:
 *
 *      TEXT      --word_losses_measure()--> target words x source words: a heat map, JSON, SVG
 *      corpus    --part_losses_measure()--> one row per part of speech: a table, JSON
 */
#include "program/ablate_words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/word_ablation.h"
#include "program/maps.h"

/* --------------------------------------------------------------- a text ----- */

typedef struct word_map {
    const ablate_words_request *request;
    const subject_text *text;
    const word_losses *losses;
    heatmap_sheet sheet;
    text_word *rows, *columns;
    float *weights; /* losses; 0 where there is a gain */
} word_map;

static bool map_make(word_map *map)
{
    const word_losses *const l = map->losses;
    const size_t cells = (size_t)l->targets * (size_t)l->sources;
    static const char *const titles[] = {"nats lost"};
    map->rows = calloc((size_t)l->targets + 1, sizeof *map->rows);
    map->columns = calloc((size_t)l->sources + 1, sizeof *map->columns);
    map->weights = calloc(cells + 1, sizeof *map->weights);
    if (map->rows == NULL || map->columns == NULL || map->weights == NULL)
        return false;
    for (size_t n = 0; n < cells; n++)
        map->weights[n] = l->lost[n] > 0.0 ? (float)l->lost[n] : 0.0f;
    map->sheet =
        (heatmap_sheet){.rows = layer_map_label(map->rows, l->target_words, l->targets),
                        .columns = layer_map_label(map->columns, l->source_words, l->sources),
                        .heads = 1,
                        .weights = map->weights,
                        .titles = titles,
                        .heading = "what each word of the translation loses, in nats, when "
                                   "a word above is hidden"};
    return true;
}

static void map_free(word_map *map)
{
    free(map->rows);
    free(map->columns);
    free(map->weights);
}

static double column_sum(const word_losses *l, int source)
{
    double sum = 0.0;
    for (int t = 0; t < l->targets; t++)
        sum += l->lost[(ptrdiff_t)t * l->sources + source];
    return sum;
}

/* The target word that loses most without a source word. */
static int worst_target(const word_losses *l, int source)
{
    int worst = 0;
    for (int t = 1; t < l->targets; t++)
        if (l->lost[(ptrdiff_t)t * l->sources + source] >
            l->lost[(ptrdiff_t)worst * l->sources + source])
            worst = t;
    return worst;
}

static void print_map(const word_map *map)
{
    const word_losses *const l = map->losses;
    const terminal screen = terminal_query(stdout);
    printf("%s\n%s\n\n", map->text->text,
           map->text->translation != NULL ? map->text->translation : "");
    heatmap_draw(stdout, &map->sheet, &screen);
    printf("\n");
    terminal_style(stdout, &screen, STYLE_BOLD);
    printf("hidden            nats lost  most of it by");
    terminal_plain(stdout, &screen);
    printf("\n");
    for (int s = 0; s < l->sources; s++) {
        const int worst = worst_target(l, s);
        const double lost = l->lost[(ptrdiff_t)worst * l->sources + s];
        text_word word;
        text_split(l->source_words[s], &word, 1, 16);
        printf("%s%*s %9.2f", word.bytes, 17 - word.columns, "", column_sum(l, s));
        if (lost >= 0.005)
            printf("  %s (%.2f)", l->target_words[worst], lost);
        printf("\n");
    }
    printf("\nA hidden word is attended to by no token, in the encoder and in cross-attention; the "
           "others keep their\npositions, and the decoder reads the same translation. Gains are "
           "drawn as 0.\n");
}

static void json_map(const word_map *map)
{
    const word_losses *const l = map->losses;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", map->request->setup->session.path);
    json_string(&j, "text", map->text->text);
    json_string(&j, "translation", map->text->translation);
    json_string(&j, "unit", "nats");
    json_strings(&j, "source", l->source_words, l->sources);
    json_strings(&j, "target", l->target_words, l->targets);
    json_open_array(&j, "log_likelihood");
    for (int t = 0; t < l->targets; t++)
        json_number(&j, NULL, l->plain[t]);
    json_close(&j);
    json_open_array(&j, "lost");
    for (int t = 0; t < l->targets; t++) {
        json_open_array(&j, NULL);
        for (int s = 0; s < l->sources; s++)
            json_number(&j, NULL, l->lost[(ptrdiff_t)t * l->sources + s]);
        json_close(&j);
    }
    json_close(&j);
    json_close(&j);
}

static void write_svg(FILE *file, const void *arg)
{
    const word_map *const map = arg;
    heatmap_svg(file, &map->sheet, 1, "$ mha ablate --words");
}

static int deliver(const ablate_words_request *r, const subject_text *text,
                   const word_losses *losses)
{
    word_map map = {.request = r, .text = text, .losses = losses};
    int code = map_make(&map) ? EXIT_FINE : heads_failed(MHA_ERR_MEMORY);
    if (code == EXIT_FINE)
        (r->as_json ? json_map : print_map)(&map);
    if (code == EXIT_FINE && r->svg != NULL && !output_file_write(r->svg, write_svg, &map))
        code = EXIT_FAILED;
    map_free(&map);
    return code;
}

static int of_text(const ablate_words_request *r)
{
    const session *const s = &r->setup->session;
    const pair_request request = {.text = r->text, .target = r->target};
    char message[SUBJECT_MESSAGE_MAX];
    subject_text text;
    word_losses losses;
    if (!subject_read(&s->subject, &request, s->pool, &text, message)) {
        subject_text_free(&s->subject, &text);
        return args_failed("%s", message);
    }
    subject_warn(&s->subject, &text);
    const bool fine = word_losses_measure(&losses, &s->subject, &text, s->pool, heads_watch);
    progress_end();
    const int code = fine ? deliver(r, &text, &losses) : heads_failed(MHA_ERR_MEMORY);
    word_losses_free(&losses);
    subject_text_free(&s->subject, &text);
    return code;
}

/* ------------------------------------------------------ parts of speech ----- */

/* Parts of speech, the most costly first. */
static void sort_parts(const part_loss *parts, int order[PART_COUNT])
{
    int count = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        int at = count++;
        while (at > 0 && parts[part].lost > parts[order[at - 1]].lost) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = part;
    }
}

static void print_parts(const ablate_words_request *r, const part_loss *parts)
{
    const heads_setup *const s = r->setup;
    const terminal screen = terminal_query(stdout);
    int order[PART_COUNT];
    sort_parts(parts, order);
    printf("%s\non %d sentence%s of %s, seed %" PRIu64
           ": what the translation loses, in nats, when one English word is hidden\n\n",
           s->session.path, (int)s->sentences, s->sentences == 1 ? "" : "s",
           corpus_split_name(s->split), s->seed);
    terminal_style(stdout, &screen, STYLE_BOLD);
    printf("hidden          lost           95 %%      n  by its own translation  words wrong");
    terminal_plain(stdout, &screen);
    printf("\n");
    for (int n = 0; n < PART_COUNT; n++) {
        const part_loss *const p = &parts[order[n]];
        if (p->words == 0)
            continue;
        printf("%-13s %6.2f", corpus_part_name((corpus_part)order[n]), p->lost);
        if (s->sentences > 1)
            printf("  %5.2f..%5.2f", p->interval.low, p->interval.high);
        else
            printf("  %12s", "-");
        printf(" %6d  %18.2f (%3.0f %%)  %11.2f\n", p->words, p->own, 100.0 * p->own / p->lost,
               p->wrong);
    }
    printf("\nA hidden word is attended to by no token, in the encoder and in cross-attention; the "
           "others keep their\npositions, and the decoder reads the correct words. Its own "
           "translation are the French words that are\naligned with it. Words wrong: how many more "
           "are not the most likely ones, ends included.\n");
}

static void json_parts(const ablate_words_request *r, const part_loss *parts)
{
    const heads_setup *const s = r->setup;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", s->session.path);
    json_string(&j, "split", corpus_split_name(s->split));
    json_unsigned(&j, "seed", s->seed);
    json_integer(&j, "sentences", s->sentences);
    json_string(&j, "unit", "nats per hidden word");
    json_open_array(&j, "parts");
    for (int part = 0; part < PART_COUNT; part++) {
        json_open_object(&j, NULL);
        json_string(&j, "part", corpus_part_name((corpus_part)part));
        json_integer(&j, "n", parts[part].words);
        json_number(&j, "lost", parts[part].lost);
        json_number(&j, "low", s->sentences > 1 ? parts[part].interval.low : NAN);
        json_number(&j, "high", s->sentences > 1 ? parts[part].interval.high : NAN);
        json_number(&j, "own", parts[part].own);
        json_number(&j, "wrong", parts[part].wrong);
        json_close(&j);
    }
    json_close(&j);
    json_close(&j);
}

static int of_corpus(const ablate_words_request *r)
{
    const heads_setup *const s = r->setup;
    part_loss parts[PART_COUNT];
    const mha_status status = part_losses_measure(s->session.model, s->pairs, (int)s->sentences,
                                                  s->session.pool, parts, heads_watch);
    progress_end();
    if (status != MHA_OK)
        return heads_failed(status);
    (r->as_json ? json_parts : print_parts)(r, parts);
    return EXIT_FINE;
}

int ablate_words(const ablate_words_request *r)
{
    if (r->setup->session.subject.shape.layers[ATTENTION_CROSS] == 0)
        return args_wrong("ablate: --words: the model has no encoder and decoder: there are no "
                          "source words to hide");
    return r->text != NULL ? of_text(r) : of_corpus(r);
}
