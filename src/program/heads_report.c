/* SPDX-License-Identifier: MIT */
/* The report of mha heads: the table, a summary, with --gold what heads find of the grammar, and
 * all of it as JSON. */
#include "program/heads_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/terminal.h"

/* --------------------------------------------------------------- table ----- */

static void print_number(double value, const char *format)
{
    if (isnan(value))
        printf("%8s", "-");
    else
        printf(format, value);
}

/* Intervals come from resampling the sentences, which is meaningless for a single one. */
static bool has_intervals(const head_study *study)
{
    return study->sentences > 1;
}

static void print_interval(const head_study *study, head_interval interval)
{
    if (has_intervals(study))
        printf("  %4.2f..%4.2f", interval.low, interval.high);
    else
        printf("  %10s", "-");
}

/* Role with score and interval, then the role that comes next, or for a mixed head the nearest
 * one. */
static void print_row(const heads_row *row, bool like)
{
    char label[HEAD_LABEL_MAX];
    head_label(row->name, label);
    printf("%-12s %-21s", label, heads_role_name(row));
    if (row->role.found) {
        printf(" %5.2f", row->role.best.score);
        print_interval(row->study, row->role.interval);
        printf(" %6.0f", row->role.count);
    } else {
        printf(" %5s  %10s %6s", "", "", "");
    }
    const role_score *const next = row->role.found ? &row->role.next : &row->role.best;
    printf("  %-21s %5.2f", next->name, next->score);
    print_number(head_study_mean(row->study, row->number, MEASURE_ENTROPY), "%8.2f");
    print_number(row->importance, "%8.2f");
    if (like)
        print_number(row->apart, "%8.3f");
    printf("\n");
}

static void print_table(const heads_report *r, const terminal *screen)
{
    terminal_style(stdout, screen, STYLE_BOLD);
    printf("%-12s %-21s %5s  %10s %6s  %-21s %5s %7s %7s", "head", "role", "score", "95 %", "n",
           "next nearest role", "score", "entropy", "import.");
    if (r->like)
        printf(" %7s", "apart");
    terminal_plain(stdout, screen);
    printf("\n");
    for (int n = 0; n < r->count; n++)
        print_row(&r->rows[n], r->like);
    if (r->count == 0)
        printf("no head matches\n");
    else if (!has_intervals(r->study))
        printf("no intervals: n = 1, and intervals come from resampling sentences\n");
    if (isnan(r->all[0].raw_importance))
        printf("no importance: it needs gradients, which only the laboratory has, on its own "
               "sentences; \"mha ablate\" measures what each head costs\n");
}

/* -------------------------------------------------------------- summary ----- */

/* Counts the heads of every role, in the order in which roles first occur. */
static void print_roles(const heads_report *r)
{
    const char *comma = "";
    printf("Roles: ");
    for (int n = 0; n < r->study->heads; n++) {
        const char *const name = heads_role_name(&r->all[n]);
        bool before = false;
        int same = 0;
        for (int k = 0; k < r->study->heads; k++)
            if (strcmp(heads_role_name(&r->all[k]), name) == 0) {
                before |= k < n;
                same++;
            }
        if (!before)
            printf("%s%d %s", comma, same, name);
        comma = ", ";
    }
    printf(".\n");
}

/* How different the heads of each layer are, one line per kind. */
static void print_diversity(const heads_report *r)
{
    const head_study *const s = r->study;
    if (s->shape.heads < 2)
        return;
    printf("How different the heads of a layer are, 0 (equal) to 0.693 (disjoint):\n");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int layer = 0; layer < s->shape.layers[kind]; layer++) {
            const head_interval interval =
                head_study_diversity_interval(s, (attention_kind)kind, layer);
            printf("  %s %d: ", attention_kind_name((attention_kind)kind), layer + 1);
            print_number(head_study_diversity(s, (attention_kind)kind, layer), "%.3f");
            if (has_intervals(s))
                printf(" (%.3f..%.3f)", interval.low, interval.high);
            printf("\n");
        }
}

/* By the raw derivative: the normalised one cannot be compared between layers. */
static void print_most_important(const heads_report *r)
{
    int best[ATTENTION_KINDS] = {-1, -1, -1};
    if (isnan(r->all[0].raw_importance))
        return;
    for (int n = 0; n < r->study->heads; n++) {
        const int kind = (int)r->all[n].name.kind;
        if (best[kind] < 0 || r->all[n].raw_importance > r->all[best[kind]].raw_importance)
            best[kind] = n;
    }
    printf("Most important head of each kind, by gate gradient:");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        char label[HEAD_LABEL_MAX];
        head_label(r->all[best[kind]].name, label);
        printf("%s %s (%.2f nats per sentence)", kind > 0 ? "," : "", label,
               r->all[best[kind]].raw_importance);
    }
    printf(".\n");
}

/* The head of a kind with the largest value of a measure; -1: no head has the measure. */
static int best_head(const head_study *s, attention_kind kind, int measure)
{
    int best = -1;
    for (int n = 0; n < s->heads; n++)
        if (head_at(s->shape, n).kind == kind && !isnan(head_study_mean(s, n, measure)) &&
            (best < 0 || head_study_mean(s, n, measure) > head_study_mean(s, best, measure)))
            best = n;
    return best;
}

/* Alignments are read off the row that says a word, or off the row that reads it one step later;
 * the better of both counts. */
static void print_best_aligner(const head_study *s)
{
    const int says = best_head(s, ATTENTION_CROSS, MEASURE_F_SAYS);
    const int reads = best_head(s, ATTENTION_CROSS, MEASURE_F_READS);
    if (says < 0)
        return;
    const bool by_reading =
        head_study_mean(s, reads, MEASURE_F_READS) > head_study_mean(s, says, MEASURE_F_SAYS);
    const int best = by_reading ? reads : says;
    const int measure = by_reading ? MEASURE_F_READS : MEASURE_F_SAYS;
    char label[HEAD_LABEL_MAX];
    head_label(head_at(s->shape, best), label);
    printf("The best aligner: %s, alignment error rate %.2f, on the row that %s the word.\n", label,
           1.0 - head_study_mean(s, best, measure), by_reading ? "reads" : "says");
}

/* What "aligned" is measured against where no grammar knows the links. */
static void print_links(const head_study *s)
{
    if (s->links.words == 0)
        return;
    const head_baseline *const best = &s->baselines.alignment[0];
    printf("Alignment is measured against links that were estimated from the words of these "
           "sentences: %" PRId64 "\nof %" PRId64
           " words of the target have one. The best fixed offset "
           "finds %.2f of them%s.\n",
           s->links.linked, s->links.words, best->share,
           best->count < RELATION_COUNT_MIN ? "; there are too few for a role" : "");
}

/* ----------------------------------------------------------------- gold ----- */

static void print_relation(const head_study *s, attention_kind kind, int measure, const char *name)
{
    const head_baseline *const baseline = head_study_baseline(s, kind, measure);
    const int best = best_head(s, kind, measure);
    char label[HEAD_LABEL_MAX], offset[16];
    if (best < 0 || baseline->count < RELATION_COUNT_MIN)
        return;
    const double share = head_study_mean(s, best, measure);
    head_label(head_at(s->shape, best), label);
    snprintf(offset, sizeof offset, "(%+d)", baseline->offset);
    printf("%-8s %-21s %-12s %5.2f", attention_kind_name(kind), name, label, share);
    print_interval(s, head_study_interval(s, best, measure));
    printf(" %6d  %7.2f %5s  %s\n", baseline->count, baseline->share, offset,
           share >= baseline->share + 0.1 ? "finds it" : "");
}

static void print_relations(const head_study *s, const terminal *screen)
{
    printf("\n");
    terminal_style(stdout, screen, STYLE_BOLD);
    printf("%-8s %-21s %-12s %5s  %10s %6s  %13s", "", "from-to", "best head", "right", "95 %", "n",
           "best offset");
    terminal_plain(stdout, screen);
    printf("\n");
    for (int kind = 0; kind < ATTENTION_CROSS; kind++)
        for (int r = 0; r < RELATIONS; r++) {
            char name[ROLE_NAME_MAX];
            head_relation_name(r, name);
            print_relation(s, (attention_kind)kind, MEASURE_RELATION + r, name);
        }
    print_relation(s, ATTENTION_CROSS, MEASURE_SAYS, "says-comes from");
    print_relation(s, ATTENTION_CROSS, MEASURE_READS, "reads-comes from");
}

/* Two tables, layers by heads: for rows that say a word and for rows that read it. */
static void print_error_rates(const head_study *s, const terminal *screen)
{
    const int layers = s->shape.layers[ATTENTION_CROSS];
    for (int reads = 0; reads < 2; reads++) {
        printf("\n");
        terminal_style(stdout, screen, STYLE_BOLD);
        printf("Alignment error rate of the row that %s a French word", reads ? "reads" : "says");
        terminal_plain(stdout, screen);
        printf("\n%-8s", "layer");
        for (int h = 0; h < s->shape.heads; h++)
            printf(" %5d", h + 1);
        for (int layer = 0; layer < layers; layer++) {
            printf("\n%-8d", layer + 1);
            for (int h = 0; h < s->shape.heads; h++) {
                const int head = head_number(s->shape, (head_name){ATTENTION_CROSS, layer, h});
                printf(" %5.2f", 1.0 - head_study_mean(s, head, MEASURE_F_SAYS + reads));
            }
        }
        printf("\n");
    }
}

/* Model, sentences and tokens that the heads were measured on. */
static void print_title(const heads_report *r)
{
    const head_study *const s = r->study;
    printf("%d heads of %s\n", s->heads, r->model);
    if (r->text != NULL)
        printf("on \"%s\"", r->text);
    else if (r->texts != NULL)
        printf("on %d %s%s of %s", s->sentences, r->are_pairs ? "sentence pair" : "text",
               s->sentences == 1 ? "" : "s", r->texts);
    else
        printf("on %d sentence%s of %s, seed %" PRIu64, s->sentences, s->sentences == 1 ? "" : "s",
               corpus_split_name(r->split), r->seed);
    const int64_t source = s->tokens[ATTENTION_ENCODER], target = s->tokens[ATTENTION_DECODER];
    if (r->translates)
        printf("; %" PRId64 " English tokens, %" PRId64 " French.", source, target);
    else if (source > 0 && target > 0)
        printf("; %" PRId64 " tokens of the source, %" PRId64 " of the target.", source, target);
    else
        printf("; %" PRId64 " tokens.", source + target);
    printf(" Layers and heads count from 1.\n\n");
}

void heads_report_text(const heads_report *r)
{
    const terminal screen = terminal_query(stdout);
    print_title(r);
    print_table(r, &screen);
    if (r->gold) {
        print_relations(r->study, &screen);
        if (!isnan(head_study_mean(r->study, r->study->heads - 1, MEASURE_F_SAYS)))
            print_error_rates(r->study, &screen);
    }
    printf("\n");
    print_roles(r);
    print_diversity(r);
    print_most_important(r);
    print_best_aligner(r->study);
    print_links(r->study);
    printf("Attention weights show where a head looks, not how much the model needs it; mha ablate "
           "measures that.\n");
}

/* ----------------------------------------------------------------- JSON ----- */

static void json_score(json *j, const char *key, const role_score *score)
{
    json_open_object(j, key);
    json_string(j, "name", score->name);
    json_number(j, "score", score->score);
    json_number(j, "threshold", score->threshold);
    json_close(j);
}

/* The share of each relation that the head finds; relations that do not occur are left out. */
static void json_found(json *j, const head_study *s, int number)
{
    json_open_object(j, "found");
    for (int r = 0; r < RELATIONS; r++) {
        char name[ROLE_NAME_MAX];
        head_relation_name(r, name);
        if (!isnan(head_study_mean(s, number, MEASURE_RELATION + r)))
            json_number(j, name, head_study_mean(s, number, MEASURE_RELATION + r));
    }
    json_close(j);
}

static void json_row(json *j, const heads_row *row, bool gold)
{
    json_open_object(j, NULL);
    json_string(j, "kind", attention_kind_name(row->name.kind));
    json_integer(j, "layer", row->name.layer + 1);
    json_integer(j, "head", row->name.head + 1);
    json_string(j, "role", heads_role_name(row));
    json_score(j, row->role.found ? "best" : "nearest", &row->role.best);
    json_number(j, "low", has_intervals(row->study) ? row->role.interval.low : NAN);
    json_number(j, "high", has_intervals(row->study) ? row->role.interval.high : NAN);
    json_number(j, "n", row->role.count);
    json_score(j, "next", &row->role.next);
    json_number(j, "importance_raw", row->raw_importance);
    json_open_object(j, "measures");
    for (int n = 0; heads_column_name(n) != NULL; n++)
        if (!isnan(heads_column_value(row, n)))
            json_number(j, heads_column_name(n), heads_column_value(row, n));
    json_close(j);
    if (gold && row->name.kind != ATTENTION_CROSS)
        json_found(j, row->study, row->number);
    if (gold && row->name.kind == ATTENTION_CROSS) {
        json_number(j, "aer_says", 1.0 - head_study_mean(row->study, row->number, MEASURE_F_SAYS));
        json_number(j, "aer_reads",
                    1.0 - head_study_mean(row->study, row->number, MEASURE_F_READS));
    }
    json_close(j);
}

static void json_baseline(json *j, const head_study *s, attention_kind kind, int measure,
                          const char *name)
{
    const head_baseline *const baseline = head_study_baseline(s, kind, measure);
    if (baseline->count == 0)
        return;
    json_open_object(j, NULL);
    json_string(j, "kind", attention_kind_name(kind));
    json_string(j, "relation", name);
    json_integer(j, "n", baseline->count);
    json_integer(j, "best_offset", baseline->offset);
    json_number(j, "best_offset_right", baseline->share);
    json_close(j);
}

/* Intervals are null for a single sentence. */
static void json_layers(json *j, const head_study *s)
{
    json_open_array(j, "layers");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int layer = 0; layer < s->shape.layers[kind]; layer++) {
            const head_interval interval =
                head_study_diversity_interval(s, (attention_kind)kind, layer);
            json_open_object(j, NULL);
            json_string(j, "kind", attention_kind_name((attention_kind)kind));
            json_integer(j, "layer", layer + 1);
            json_number(j, "diversity", head_study_diversity(s, (attention_kind)kind, layer));
            json_number(j, "low", has_intervals(s) ? interval.low : NAN);
            json_number(j, "high", has_intervals(s) ? interval.high : NAN);
            json_close(j);
        }
    json_close(j);
}

/* How often the best fixed offset would find each relation: what a head must beat. */
static void json_baselines(json *j, const head_study *s)
{
    json_open_array(j, "baselines");
    for (int kind = 0; kind < ATTENTION_CROSS; kind++)
        for (int r = 0; r < RELATIONS; r++) {
            char name[ROLE_NAME_MAX];
            head_relation_name(r, name);
            json_baseline(j, s, (attention_kind)kind, MEASURE_RELATION + r, name);
        }
    json_baseline(j, s, ATTENTION_CROSS, MEASURE_SAYS, "says-comes from");
    json_baseline(j, s, ATTENTION_CROSS, MEASURE_READS, "reads-comes from");
    json_close(j);
}

void heads_report_json(const heads_report *r)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", r->model);
    if (r->text != NULL)
        json_string(&j, "text", r->text);
    else if (r->texts != NULL)
        json_string(&j, r->are_pairs ? "pairs" : "texts", r->texts);
    else
        json_string(&j, "split", corpus_split_name(r->split));
    if (r->translates && r->texts == NULL)
        json_unsigned(&j, "seed", r->seed);
    json_integer(&j, "sentences", r->study->sentences);
    json_integer(&j, "counted_from", 1);
    if (r->study->links.words > 0) {
        json_integer(&j, "words", r->study->links.words);
        json_integer(&j, "estimated_links", r->study->links.linked);
    }
    json_open_array(&j, "heads");
    for (int n = 0; n < r->count; n++)
        json_row(&j, &r->rows[n], r->gold);
    json_close(&j);
    json_layers(&j, r->study);
    if (r->gold)
        json_baselines(&j, r->study);
    json_close(&j);
}
