/* SPDX-License-Identifier: MIT */
/* The results of mha ablate as tables with a summary, and as JSON; ablate_svg.c draws them. */
#include "program/ablate_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/terminal.h"

static double percent(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0.0;
}

const char *ablate_mode_words(const char *mode)
{
    if (strcmp(mode, "mean") == 0)
        return "output their mean";
    return strcmp(mode, "uniform") == 0 ? "attend to all positions equally" : "output zero";
}

const char *ablate_unit(const ablate_report *r)
{
    return !r->predicts ? "1 - cosine" : r->translates ? "nats per word" : "nats per token";
}

const char *ablate_texts(const ablate_report *r, char room[ABLATE_TEXTS_MAX])
{
    const int count = r->plain.sentences;
    snprintf(room, ABLATE_TEXTS_MAX, "%d %s%s of %.256s", count,
             r->texts != NULL ? r->unit : "sentence", count == 1 ? "" : "s",
             r->texts != NULL ? r->texts : corpus_split_name(r->split));
    return room;
}

/* ---------------------------------------------------------------- text ----- */

static void print_heading(const char *text)
{
    const terminal screen = terminal_query(stdout);
    terminal_style(stdout, &screen, STYLE_BOLD);
    printf("%s", text);
    terminal_plain(stdout, &screen);
    printf("\n");
}

/* Values that are printed as 0.0000 lose their sign. */
static double nats(double value)
{
    return fabs(value) < 0.00005 ? 0.0 : value;
}

/* The columns of one measurement: rise of the loss with its 95 % interval, words right, exact
 * sentences, which an encoder does not have. One sentence has no interval. */
static void print_damage(const ablate_report *r, const head_damage *d)
{
    printf(" %8.4f", nats(d->delta));
    if (d->total.sentences > 1)
        printf("  %8.4f..%8.4f", nats(d->interval.low), nats(d->interval.high));
    else
        printf("  %18s", "-");
    if (r->predicts)
        printf("  %6.2f %% %6.1f %%", percent(d->total.right, d->total.words),
               percent(d->total.exact, d->total.sentences));
}

/* How much of a head's direct effect the rest of the model compensates. Nothing is printed for
 * heads of the encoder: they have no direct effect on the logits. */
static void print_repair(const ablate_report *r, int head)
{
    const head_repair *const repair = &r->repairs[head];
    char label[HEAD_LABEL_MAX];
    if (head_at(r->shape, head).kind == ATTENTION_ENCODER)
        return;
    printf("  %7.2f %7.2f %7.2f", repair->direct, repair->removed, repair->lost);
    if (repair->known)
        printf(" %7.2f %7.2f", repair->repair, repair->norm);
    else
        printf(" %7s %7s", "-", "-");
    if (repair->helper >= 0 && repair->help >= 0.005) {
        head_label(head_at(r->shape, repair->helper), label);
        printf("  %s (+%.2f)", label, repair->help);
    }
}

/* The heading of the columns of print_damage(), after `first`. */
static void print_columns(const ablate_report *r, const char *first, const char *rest)
{
    char text[160];
    snprintf(text, sizeof text, "%-16sloss +               95 %%%s%s", first,
             !r->predicts    ? ""
             : r->translates ? "   words right  exact"
                             : "  tokens right  exact",
             rest);
    print_heading(text);
}

/* One row per head, disabled alone. */
static void print_heads(const ablate_report *r)
{
    print_columns(r, "disabled",
                  r->repairs ? "   direct removed    lost  repair    norm  helper" : "");
    for (int head = 0; head < r->heads; head++) {
        char label[HEAD_LABEL_MAX];
        head_label(head_at(r->shape, head), label);
        printf("%-13s", label);
        print_damage(r, &r->single[head]);
        if (r->repairs)
            print_repair(r, head);
        printf("\n");
    }
}

/* One row per layer with all its heads disabled, beside the sum of what its heads cost alone. */
static void print_layers(const ablate_report *r)
{
    printf("\n");
    print_columns(r, "all heads of", "  sum of single ones");
    for (int n = 0; n < r->layer_count; n++) {
        const ablate_layer *const l = &r->layers[n];
        char label[HEAD_LABEL_MAX];
        snprintf(label, sizeof label, "%s %d", attention_kind_name(l->kind), l->layer + 1);
        printf("%-13s", label);
        print_damage(r, &l->damage);
        printf("  %8.4f\n", nats(l->sum));
    }
}

static void print_pair(const ablate_report *r, const ablate_pair *pair)
{
    for (int n = 0; n < 2; n++) {
        char label[HEAD_LABEL_MAX];
        head_label(head_at(r->shape, pair->heads[n]), label);
        printf("%-13s", label);
    }
    printf(" %8.4f %8.4f %8.4f %9.4f\n", nats(pair->damage.delta),
           nats(r->single[pair->heads[0]].delta), nats(r->single[pair->heads[1]].delta),
           nats(pair->extra));
}

enum { PAIRS_SHOWN = 10 };

/* The pairs are sorted by `extra`: the first ones compensate for each other, the last ones do
 * their work only together. */
static void print_pairs(const ablate_report *r)
{
    const int shown = r->pair_count < PAIRS_SHOWN ? r->pair_count : PAIRS_SHOWN;
    printf("\nPairs that compensate for each other most: disabling both costs more than the sum of "
           "each alone\n");
    print_heading("                              both    first   second     extra");
    for (int n = 0; n < shown; n++)
        print_pair(r, &r->pairs[n]);
    printf("\nPairs that depend on each other most: disabling both costs less than the sum of each "
           "alone\n");
    for (int n = r->pair_count - 1; n >= r->pair_count - shown && n >= 0; n--)
        print_pair(r, &r->pairs[n]);
}

/* Nats per word; the summary does not interpret a smaller loss of a layer. */
static const double loss_that_matters = 0.02;

/* A head is harmless if the interval of its loss contains 0. A layer's heads compensate for each
 * other if even the lower end of its loss is clearly above the sum of its heads. */
static void print_summary(const ablate_report *r)
{
    int worst = 0, harmless = 0, better = 0;
    char label[HEAD_LABEL_MAX];
    if (r->plain.sentences == 1) {
        printf("\nNo intervals: n = 1, and intervals come from resampling sentences.\n");
        return;
    }
    for (int n = 0; n < r->heads; n++) {
        worst = r->single[n].delta > r->single[worst].delta ? n : worst;
        harmless += r->single[n].interval.low <= 0.0 && r->single[n].interval.high >= 0.0;
        better += r->single[n].interval.high < 0.0;
    }
    head_label(head_at(r->shape, worst), label);
    if (r->predicts)
        printf("\nOf %d heads, %d can be disabled alone without a measurable loss and %d with a "
               "gain; the most costly is %s.\n",
               r->heads, harmless, better, label);
    else
        printf("\nOf %d heads, the most costly is %s.\n", r->heads, label);
    for (int n = 0; n < r->layer_count; n++) {
        const ablate_layer *const l = &r->layers[n];
        const double sum = l->sum > 0.0 ? l->sum : 0.0;
        printf("%s layer %d: disabling all heads costs %.3f%s%s, the sum of single heads is "
               "%.3f",
               attention_kind_name(l->kind), l->layer + 1, l->damage.delta, r->predicts ? " " : "",
               r->predicts ? ablate_unit(r) : "", l->sum);
        if (l->damage.interval.low > 1.2 * sum && l->damage.delta > loss_that_matters)
            printf(":\n    the other heads or the norm compensate for a single disabled head%s",
                   r->predicts ? " (--repair)" : "");
        printf(".\n");
    }
}

/* What the columns of print_repair() are. */
static void print_repair_words(const ablate_report *r)
{
    printf(
        "direct: what the head adds to the logit of the correct %s, mean per row, past all other "
        "parts and with\nnorms that divide by what they divide by in the whole model; removed: "
        "the same, but the norms are computed\nagain; lost: how much the logit drops if the head "
        "is disabled (--mode zero); repair = 1 - lost / direct; norm:\nwhat norms contribute to "
        "repair by dividing by less; helper: the head whose contribution grows most with the\n"
        "norms held fixed.\n",
        r->translates ? "word" : "token");
}

/* What was measured, and on what. */
static void print_title(const ablate_report *r)
{
    char texts[ABLATE_TEXTS_MAX];
    printf("%s\non %s", r->model, ablate_texts(r, texts));
    if (r->texts == NULL)
        printf(", seed %" PRIu64, r->seed);
    if (r->predicts)
        printf(": loss %.4f %s, %.2f %% of %s right, %.1f %% of %s exact.\n", r->plain.loss,
               ablate_unit(r), percent(r->plain.right, r->plain.words),
               r->translates ? "words" : "tokens", percent(r->plain.exact, r->plain.sentences),
               r->translates ? "sentences" : "texts");
    else
        printf(".\nThe loss of a %s is 1 - the cosine of its vector and that of the whole "
               "model.\n",
               r->unit);
    printf("Disabled heads %s. Layers and heads count from 1.\n\n", ablate_mode_words(r->mode));
}

void ablate_report_text(const ablate_report *r)
{
    print_title(r);
    print_heads(r);
    if (r->repairs)
        print_repair_words(r);
    print_layers(r);
    if (r->pairs)
        print_pairs(r);
    print_summary(r);
}

/* ---------------------------------------------------------------- JSON ----- */

/* An encoder has no words to predict: null. */
static void json_total(json *j, const ablate_report *r, const head_total *t)
{
    json_number(j, "loss", t->loss);
    json_number(j, "words_right", r->predicts ? percent(t->right, t->words) / 100.0 : NAN);
    json_number(j, "exact", r->predicts ? percent(t->exact, t->sentences) / 100.0 : NAN);
}

/* Intervals are null for a single sentence. */
static void json_damage(json *j, const ablate_report *r, const head_damage *d)
{
    json_number(j, "delta", d->delta);
    json_number(j, "low", d->total.sentences > 1 ? d->interval.low : NAN);
    json_number(j, "high", d->total.sentences > 1 ? d->interval.high : NAN);
    json_total(j, r, &d->total);
}

static void json_name(json *j, const ablate_report *r, int head)
{
    const head_name name = head_at(r->shape, head);
    json_string(j, "kind", attention_kind_name(name.kind));
    json_integer(j, "layer", name.layer + 1);
    json_integer(j, "head", name.head + 1);
}

static void json_heads(json *j, const ablate_report *r)
{
    json_open_array(j, "heads");
    for (int n = 0; n < r->heads; n++) {
        json_open_object(j, NULL);
        json_name(j, r, n);
        json_damage(j, r, &r->single[n]);
        if (r->repairs && head_at(r->shape, n).kind != ATTENTION_ENCODER) {
            const head_repair *const repair = &r->repairs[n];
            json_number(j, "direct", repair->direct);
            json_number(j, "removed", repair->removed);
            json_number(j, "lost", repair->lost);
            json_number(j, "repair", repair->repair);
            json_number(j, "repair_by_norm", repair->norm);
            json_number(j, "help", repair->help);
            if (repair->helper >= 0) {
                json_open_object(j, "helper");
                json_name(j, r, repair->helper);
                json_close(j);
            }
        }
        json_close(j);
    }
    json_close(j);
}

static void json_layers(json *j, const ablate_report *r)
{
    json_open_array(j, "layers");
    for (int n = 0; n < r->layer_count; n++) {
        json_open_object(j, NULL);
        json_string(j, "kind", attention_kind_name(r->layers[n].kind));
        json_integer(j, "layer", r->layers[n].layer + 1);
        json_damage(j, r, &r->layers[n].damage);
        json_number(j, "sum_of_heads", r->layers[n].sum);
        json_close(j);
    }
    json_close(j);
}

/* All pairs, not only those that the text shows. */
static void json_pairs(json *j, const ablate_report *r)
{
    json_open_array(j, "pairs");
    for (int n = 0; n < r->pair_count; n++) {
        json_open_object(j, NULL);
        json_open_array(j, "heads");
        for (int k = 0; k < 2; k++) {
            json_open_object(j, NULL);
            json_name(j, r, r->pairs[n].heads[k]);
            json_close(j);
        }
        json_close(j);
        json_damage(j, r, &r->pairs[n].damage);
        json_number(j, "extra", r->pairs[n].extra);
        json_close(j);
    }
    json_close(j);
}

void ablate_report_json(const ablate_report *r)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", r->model);
    json_string(&j, "mode", r->mode);
    json_string(&j, "split", r->texts != NULL ? r->texts : corpus_split_name(r->split));
    if (r->texts == NULL)
        json_unsigned(&j, "seed", r->seed);
    json_string(&j, "unit", ablate_unit(r));
    json_integer(&j, "sentences", r->plain.sentences);
    json_integer(&j, "counted_from", 1);
    json_open_object(&j, "plain");
    json_total(&j, r, &r->plain);
    json_close(&j);
    json_heads(&j, r);
    json_layers(&j, r);
    if (r->pairs)
        json_pairs(&j, r);
    json_close(&j);
}
