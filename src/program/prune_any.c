/* SPDX-License-Identifier: MIT */
/*
 * Prunes heads of any model by their cost:
 *
 *      every head disabled alone --> costs --> order --> one more head disabled in each step
 *                                                    --> the model without them, if requested
 */
#include "program/prune_any.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftover_files.h"
#include "base/output_file.h"
#include "base/replace_folder.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/head_ablation.h"

typedef struct priced_head {
    int number;
    double cost; /* loss that it costs alone */
    head_interval interval;
} priced_head;

typedef struct pruned_model {
    const prune_any_request *request;
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

/* Moves heads to the end if a layer would lose its last one with them: a layer that is
 * written has at least one. Returns false if out of memory. */
static bool spare_last_heads(pruned_model *p)
{
    const int per_layer = p->setup->session.subject.shape.heads;
    const size_t heads = (size_t)p->heads;
    int *const left = calloc(heads, sizeof *left);
    priced_head *const spared = malloc(heads * sizeof *spared);
    int count = 0, spared_count = 0;
    for (int n = 0; left && spared && n < p->heads; n++) {
        const priced_head head = p->order[n];
        if (++left[head.number / per_layer] == per_layer)
            spared[spared_count++] = head;
        else
            p->order[count++] = head;
    }
    if (left && spared)
        memcpy(p->order + count, spared, (size_t)spared_count * sizeof *spared);
    const bool fine = left && spared;
    free(left);
    free(spared);
    return fine;
}

/* Fills `order`. */
static mha_status price(head_ablation *a, pruned_model *p)
{
    mha_status status = MHA_OK;
    for (int head = 0; head < p->heads && status == MHA_OK; head++) {
        head_damage alone;
        status = head_ablation_measure(a, &head, 1, &alone);
        p->order[head] = (priced_head){head, alone.delta, alone.interval};
        heads_watch(head + 1, p->heads);
    }
    qsort(p->order, (size_t)p->heads, sizeof *p->order, by_cost);
    if (p->request->output != NULL && !spare_last_heads(p))
        return MHA_ERR_MEMORY;
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

/* One step; `damage` is what all heads that are disabled by then cost, NULL: none is. */
static void print_step(const pruned_model *p, int left, const priced_head *head,
                       const head_damage *damage)
{
    const head_total *const total = damage != NULL ? &damage->total : &p->plain;
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
    if (damage != NULL && total->sentences > 1)
        printf("  %8.4f  %8.4f..%8.4f", damage->delta, damage->interval.low, damage->interval.high);
    printf("\n");
}

static void print_text(const pruned_model *p)
{
    const heads_setup *const s = p->setup;
    const terminal screen = terminal_query(stdout);
    printf("%s\nmeasured on %d %s%s of %s. The loss is %s.\nHeads are disabled in the order of "
           "what each costs alone. Layers and heads count from 1.\n\n",
           s->session.path, p->plain.sentences, heads_setup_unit(s),
           p->plain.sentences == 1 ? "" : "s", heads_setup_file(s),
           p->predicts ? "in nats per token"
                       : "1 - the cosine of a text's vector and that of the whole model");
    terminal_style(stdout, &screen, STYLE_BOLD);
    printf("heads  disabled          alone      loss%s%s", p->predicts ? " tokens right" : "",
           p->plain.sentences > 1 ? "    loss +                95 %" : "");
    terminal_plain(stdout, &screen);
    printf("\n");
    print_step(p, p->heads, NULL, NULL);
    for (int n = 0; n < p->steps; n++)
        print_step(p, p->heads - n - 1, &p->order[n], &p->damage[n]);
}

static void print_json(const pruned_model *p)
{
    const heads_setup *const s = p->setup;
    const bool several = p->plain.sentences > 1; /* else there are no intervals */
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "model", s->session.path);
    json_string(&j, heads_setup_key(s), heads_setup_file(s));
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
        json_number(&j, "alone_low", several ? p->order[n].interval.low : NAN);
        json_number(&j, "alone_high", several ? p->order[n].interval.high : NAN);
        json_number(&j, "loss", p->damage[n].total.loss);
        json_number(&j, "delta", p->damage[n].delta);
        json_number(&j, "low", several ? p->damage[n].interval.low : NAN);
        json_number(&j, "high", several ? p->damage[n].interval.high : NAN);
        json_close(&j);
    }
    json_close(&j);
    json_close(&j);
}

/* ----------------------------------------------------------------- save ----- */

static int save_failed(mha_status status, const char *message)
{
    return args_failed("%s", message[0] != '\0' ? message : mha_status_string(status));
}

/* Removes the disabled heads, whose lists are in `keep`, and writes what is left. */
static int write_without(const pruned_model *p, const uint8_t *keep)
{
    const head_shape shape = p->setup->session.subject.shape;
    const prune_any_request *const r = p->request;
    const uint8_t *lists[MHA_ATTENTION_KINDS];
    char message[512] = "";
    mha_model *pruned;
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++)
        lists[kind] = keep + head_number(shape, (head_name){(attention_kind)kind, 0, 0});
    mha_status status =
        mha_model_prune(&pruned, p->setup->session.any, lists, message, sizeof message);
    const mha_save_config config = {.size = sizeof config,
                                    .zeros = r->zeros,
                                    .replace = r->replace,
                                    .message = message,
                                    .message_size = sizeof message};
    if (status == MHA_OK)
        status = mha_model_save(pruned, r->output, &config);
    mha_model_free(pruned);
    return status == MHA_OK ? EXIT_FINE : save_failed(status, message);
}

static int save(const pruned_model *p)
{
    uint8_t *const keep = malloc((size_t)p->heads + 1);
    if (keep == NULL)
        return heads_failed(MHA_ERR_MEMORY);
    memset(keep, 1, (size_t)p->heads);
    for (int n = 0; n < p->steps; n++)
        keep[p->disabled[n]] = 0;
    const int code = write_without(p, keep);
    free(keep);
    return code;
}

/* Whether the model is one file: those have no place for layers of different sizes. */
static bool is_single_file(const char *path)
{
    struct stat about;
    const char *const dot = strrchr(path, '.');
    return stat(path, &about) == 0 && !S_ISDIR(about.st_mode) &&
           !(dot != NULL && strcmp(dot, ".safetensors") == 0);
}

/* Whether a folder, or a file, can be written at the path of the request. */
static int check_place(const prune_any_request *r, bool folder)
{
    const size_t size = strlen(r->output) + MHAI_FOLDER_SUFFIX;
    if (!folder && (r->replace || access(r->output, F_OK) != 0))
        return output_file_check(r->output) ? EXIT_GO_ON : EXIT_FAILED;
    char *const name = malloc(size);
    const char *const mark = r->replace ? "config.json" : NULL;
    int held, error = name == NULL ? ENOMEM : folder ? 0 : EEXIST;
    leftover_files_remove(r->output);
    if (error == 0 && (error = mhai_folder_open_new(r->output, mark, name, size, &held)) == 0)
        mhai_folder_finish_new(held, name, r->output, mark, ECANCELED);
    free(name);
    if (error == EEXIST)
        return args_failed("%s exists already; give --replace to replace it", r->output);
    return error == 0 ? EXIT_GO_ON : args_failed("cannot write %s: %s", r->output, strerror(error));
}

int prune_any_check(const prune_any_request *r)
{
    const session *const s = &r->setup->session;
    const int layers = head_count(s->subject.shape) / s->subject.shape.heads;
    if (r->output == NULL)
        return EXIT_GO_ON;
    if (s->any == NULL)
        return args_wrong("prune: -o: a translator is written without --texts and --pairs");
    if (r->keep < layers)
        return args_wrong("prune: --keep %d: the model has %d layers, and each of them keeps at "
                          "least one head if it is written",
                          (int)r->keep, layers);
    const bool folder = !is_single_file(s->path);
    if (!r->zeros && !folder)
        return args_wrong("prune: -o: %s is one file, which has one number of heads for all "
                          "layers; give --zeros",
                          s->path);
    return check_place(r, folder);
}

/* ------------------------------------------------------------------ run ----- */

int prune_any(const prune_any_request *r)
{
    const heads_setup *const s = r->setup;
    const int heads = head_count(s->session.subject.shape);
    pruned_model p = {.request = r,
                      .setup = s,
                      .predicts = subject_predicts(&s->session.subject),
                      .heads = heads,
                      .steps = heads - (int)r->keep};
    p.order = calloc((size_t)heads, sizeof *p.order);
    p.disabled = calloc((size_t)heads, sizeof *p.disabled);
    p.damage = calloc((size_t)heads + 1, sizeof *p.damage);
    head_ablation *const a =
        head_ablation_create(&s->session.subject, &s->texts, HEAD_ZERO, NULL, s->session.pool);
    const bool room = p.order != NULL && p.disabled != NULL && p.damage != NULL && a != NULL;
    const mha_status status = room ? prune(a, &p) : MHA_ERR_MEMORY;
    int code = EXIT_FINE;
    if (status != MHA_OK)
        code = heads_failed(status);
    else {
        (r->as_json ? print_json : print_text)(&p);
        code = r->output != NULL ? save(&p) : EXIT_FINE;
    }
    head_ablation_free(a);
    free(p.order);
    free(p.disabled);
    free(p.damage);
    return code;
}
