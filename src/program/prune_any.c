/* SPDX-License-Identifier: MIT */
/*
 * Prunes heads of any model by their cost:
 *
 *      every head disabled alone --> costs --> order --> one more head disabled in each step
 */
#include "program/prune_any.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/head_ablation.h"

typedef struct priced_head {
    int number;
    double cost; /* loss that it costs alone */
} priced_head;

typedef struct pruned_model {
    const heads_setup *setup;
    bool predicts;
    int heads, steps;
    priced_head *order;  /* [heads], the cheapest first */
    int *disabled;       /* [heads] their numbers */
    head_damage *damage; /* [steps] after heads 0 to n were disabled */
    head_total plain;
} pruned_model;

static int by_cost(const void *a, const void *b)
{
    const priced_head *const x = a, *const y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->number - y->number;
}

/* Fills `order`. */
static mha_status price(head_ablation *a, pruned_model *p)
{
    mha_status status = MHA_OK;
    for (int head = 0; head < p->heads && status == MHA_OK; head++) {
        head_damage alone;
        status = head_ablation_measure(a, &head, 1, &alone);
        p->order[head] = (priced_head){head, alone.delta};
        heads_watch(head + 1, p->heads);
    }
    qsort(p->order, (size_t)p->heads, sizeof *p->order, by_cost);
    for (int n = 0; n < p->heads; n++)
        p->disabled[n] = p->order[n].number;
    return status;
}

static mha_status prune(head_ablation *a, pruned_model *p)
{
    p->plain = head_ablation_plain(a);
    mha_status status = price(a, p);
    for (int n = 0; n < p->steps && status == MHA_OK; n++) {
        progress("%d heads left", p->heads - n);
        status = head_ablation_measure(a, p->disabled, n + 1, &p->damage[n]);
    }
    progress_end();
    return status;
}

/* ---------------------------------------------------------------- print ----- */

static double share(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0.0;
}

static void print_step(const pruned_model *p, int left, const priced_head *head,
                       const head_total *total)
{
    char label[HEAD_LABEL_MAX] = "";
    if (head != NULL)
        head_label(head_at(p->setup->session.subject.shape, head->number), label);
    printf("%5d  %-13s", left, label);
    if (head != NULL)
        printf(" %9.4f", head->cost);
    else
        printf(" %9s", "");
    printf(" %9.4f", total->loss);
    if (p->predicts)
        printf(" %10.2f %%", share(total->right, total->words));
    printf("\n");
}

static void print_text(const pruned_model *p)
{
    const heads_setup *const s = p->setup;
    const terminal screen = terminal_query(stdout);
    printf("%s\nmeasured on %d text%s of %s. The loss is %s.\nHeads are disabled in the order of "
           "what each costs alone. Layers and heads count from 1.\n\n",
           s->session.path, p->plain.sentences, p->plain.sentences == 1 ? "" : "s", s->texts_file,
           p->predicts ? "in nats per token"
                       : "1 - the cosine of a text's vector and that of the whole model");
    terminal_style(stdout, &screen, STYLE_BOLD);
    printf("heads  disabled          alone      loss%s", p->predicts ? " tokens right" : "");
    terminal_plain(stdout, &screen);
    printf("\n");
    print_step(p, p->heads, NULL, &p->plain);
    for (int n = 0; n < p->steps; n++)
        print_step(p, p->heads - n - 1, &p->order[n], &p->damage[n].total);
}

static void print_json(const pruned_model *p)
{
    const heads_setup *const s = p->setup;
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", s->session.path);
    json_string(&j, "texts", s->texts_file);
    json_integer(&j, "sentences", p->plain.sentences);
    json_string(&j, "unit", p->predicts ? "nats per token" : "1 - cosine");
    json_integer(&j, "counted_from", 1);
    json_number(&j, "loss", p->plain.loss);
    json_open_array(&j, "steps");
    for (int n = 0; n < p->steps; n++) {
        const head_name name = head_at(s->session.subject.shape, p->order[n].number);
        json_open_object(&j, NULL);
        json_integer(&j, "heads", p->heads - n - 1);
        json_string(&j, "kind", attention_kind_name(name.kind));
        json_integer(&j, "layer", name.layer + 1);
        json_integer(&j, "head", name.head + 1);
        json_number(&j, "alone", p->order[n].cost);
        json_number(&j, "loss", p->damage[n].total.loss);
        json_close(&j);
    }
    json_close(&j);
    json_close(&j);
}

int prune_any(const heads_setup *s, int64_t keep, bool as_json)
{
    const int heads = head_count(s->session.subject.shape);
    pruned_model p = {.setup = s,
                      .predicts = subject_predicts(&s->session.subject),
                      .heads = heads,
                      .steps = heads - (int)keep};
    p.order = calloc((size_t)heads, sizeof *p.order);
    p.disabled = calloc((size_t)heads, sizeof *p.disabled);
    p.damage = calloc((size_t)heads + 1, sizeof *p.damage);
    head_ablation *const a =
        head_ablation_create(&s->session.subject, &s->texts, HEAD_ZERO, NULL, s->session.pool);
    const bool room = p.order != NULL && p.disabled != NULL && p.damage != NULL && a != NULL;
    const mha_status status = room ? prune(a, &p) : MHA_ERR_MEMORY;
    if (status == MHA_OK)
        (as_json ? print_json : print_text)(&p);
    head_ablation_free(a);
    free(p.order);
    free(p.disabled);
    free(p.damage);
    return status == MHA_OK ? EXIT_FINE : heads_failed(status);
}
