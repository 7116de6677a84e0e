/* SPDX-License-Identifier: MIT */
/* Runs an experiment and writes its JSON (page_probe.h). */
#include "page/page_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_writer.h"
#include "heads/head_patches.h"
#include "heads/logit_lens.h"
#include "heads/probe.h"
#include "heads/word_shares.h"
#include "page/page_words.h"

/* An experiment while it is made. */
typedef struct probing {
    const subject *model;
    const serve_request *request;
    mha_pool *pool;
    subject_text text;
    capture_options changed;
    probe run;
    subject_text second; /* of a patch */
    capture *other;      /* the run on it; NULL: no patch */
    head_patches patches;
    int row, word; /* to be taken apart; row -1: none */
    char *message;
} probing;

static bool fail(const probing *p, const char *what)
{
    snprintf(p->message, SUBJECT_MESSAGE_MAX, "%s", what);
    return false;
}

/* ------------------------------------------------------------------- run ----- */

/* The side whose words can be hidden. */
static const subject_side *read_side(const probing *p)
{
    return p->text.source.count > 0 ? &p->text.source : &p->text.target;
}

static bool take_hidden(probing *p)
{
    const serve_probe *const asked = &p->request->probe;
    const int count = read_side(p)->count;
    int hidden = 0;
    if (asked->hidden_end > count)
        return fail(p, "probe: there is no such word to hide");
    for (int n = 0; n < asked->hidden_end; n++)
        hidden += asked->hidden[n];
    if (hidden == count)
        return fail(p, "probe: all words are hidden; leave one for the model to attend to");
    if (count > SERVE_TOKENS_MAX)
        return fail(p, "probe: the text is too long for this view; shorten it");
    p->changed.hidden = hidden > 0 ? asked->hidden : NULL;
    return true;
}

/* Reads the target of the text as a text: the tokens of one that the model wrote itself may be
 * others than its tokenizer finds in it, and both texts need the same. */
static bool read_again(probing *p)
{
    if (p->text.translation == NULL || p->text.given != NULL)
        return true;
    char *const target = strdup(p->text.translation);
    const pair_request request = {.text = p->request->request.text, .target = target};
    bool fine = target != NULL || fail(p, "out of memory");
    subject_text_free(p->model, &p->text);
    fine = fine && subject_read(p->model, &request, p->pool, &p->text, p->message);
    free(target);
    return fine;
}

/* The run on the other text, and the outputs that are taken from it. */
static bool take_patches(probing *p)
{
    const serve_probe *const asked = &p->request->probe;
    const capture_options options = {.outputs = true, .stream = true};
    const uint8_t *const chosen[ATTENTION_KINDS] = {asked->patched[ATTENTION_ENCODER],
                                                    asked->patched[ATTENTION_DECODER],
                                                    asked->patched[ATTENTION_CROSS]};
    if (asked->patch_text == NULL)
        return true;
    if (p->model->reads_pictures)
        return fail(p, "patch: this model reads pictures; heads are patched between texts");
    if (!read_again(p))
        return false;
    const pair_request request = {.text = asked->patch_text,
                                  .target = asked->patch_target != NULL ? asked->patch_target
                                                                        : p->text.translation};
    if (!subject_read(p->model, &request, p->pool, &p->second, p->message))
        return false;
    p->other = subject_run(p->model, &p->second, &options, p->pool);
    if (p->other == NULL)
        return fail(p, "out of memory");
    if (!head_patches_make(&p->patches, p->other, &p->text, chosen, p->message))
        return false;
    p->changed.patches = p->patches.list;
    p->changed.patch_count = p->patches.count;
    return true;
}

/* Whether the row and the word of the request exist; the word is known after the runs. */
static bool take_row(probing *p)
{
    const serve_probe *const asked = &p->request->probe;
    const capture *const c = p->run.before;
    p->row = subject_predicts(p->model) ? asked->row : -1;
    p->word = asked->word;
    if (p->row < 0)
        return true;
    if (p->row >= c->target_count)
        return fail(p, "probe: there is no such row");
    if (p->word < 0 && p->row >= c->scored)
        return fail(p, "probe: it is not known which word this row should say; give \"word\"");
    if (p->word >= c->stream.words)
        return fail(p, "probe: there is no such word");
    p->word = p->word < 0 ? c->expected[p->row] : p->word;
    return true;
}

static bool make(probing *p)
{
    pair_request plain = p->request->request;
    memset(plain.changes, 0, sizeof plain.changes);
    memcpy(p->changed.changes, p->request->request.changes, sizeof p->changed.changes);
    return subject_read(p->model, &plain, p->pool, &p->text, p->message) && take_patches(p) &&
           take_hidden(p) &&
           (probe_make(&p->run, p->model, &p->text, &p->changed, p->request->probe.row >= 0,
                       p->pool) ||
            fail(p, "out of memory")) &&
           take_row(p);
}

/* ------------------------------------------------------------------ JSON ----- */

static void put_words(json *j, const char *key, const subject *model, const likely_word *words,
                      int count)
{
    char room[SUBJECT_WORD_MAX];
    json_open_array(j, key);
    for (int n = 0; n < count && words[n].number >= 0; n++) {
        json_open_object(j, NULL);
        json_string(j, "word", subject_word(model, words[n].number, room));
        json_integer(j, "number", words[n].number);
        json_exact(j, "p", words[n].probability);
        json_close(j);
    }
    json_close(j);
}

static void put_likely(json *j, const char *key, const subject *model, const capture *run, int row)
{
    likely_word words[PROBE_LIKELY];
    likely_words_find(run->stream.logits + (ptrdiff_t)row * run->stream.words, run->stream.words,
                      PROBE_LIKELY, words);
    put_words(j, key, model, words, PROBE_LIKELY);
}

/* Whether the decoder reads the same tokens in the text of a patch. */
static bool reads_the_same(const probing *p)
{
    const capture *const a = p->run.before, *const b = p->other;
    return b != NULL && a->target_count == b->target_count &&
           memcmp(a->target, b->target, (size_t)a->target_count * sizeof *a->target) == 0;
}

static void put_rows(json *j, const probing *p)
{
    const capture *const before = p->run.before, *const after = p->run.after;
    const bool second = reads_the_same(p);
    json_open_array(j, "rows");
    for (int row = 0; row < before->target_count; row++) {
        json_open_object(j, NULL);
        if (row < before->scored) {
            const int word = before->expected[row];
            json_string(j, "word", p->text.expected[row]);
            json_integer(j, "number", word);
            json_exact(j, "before", probe_log_probability(before, row, word));
            json_exact(j, "after", probe_log_probability(after, row, word));
            if (second)
                json_exact(j, "second", probe_log_probability(p->other, row, word));
        }
        put_likely(j, "likely_before", p->model, before, row);
        put_likely(j, "likely_after", p->model, after, row);
        json_close(j);
    }
    json_close(j);
}

static void put_share(json *j, const char *name, int layer, double share)
{
    json_open_object(j, NULL);
    json_string(j, "name", name);
    if (layer >= 0)
        json_integer(j, "layer", layer + 1);
    json_exact(j, "share", share);
    json_close(j);
}

static void put_head_shares(json *j, const word_shares *s)
{
    json_open_array(j, "heads");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int n = 0; s->heads[kind] != NULL && n < s->layers * s->heads_per_layer; n++) {
            json_open_object(j, NULL);
            json_string(j, "kind", attention_kind_name((attention_kind)kind));
            json_integer(j, "layer", n / s->heads_per_layer + 1);
            json_integer(j, "head", n % s->heads_per_layer + 1);
            json_exact(j, "share", s->heads[kind][n]);
            json_close(j);
        }
    json_close(j);
}

static void put_other_shares(json *j, const word_shares *s)
{
    json_open_array(j, "others");
    put_share(j, "embedding", -1, s->embedded);
    for (int n = 0; n < s->layers; n++)
        put_share(j, "feed-forward", n, s->feed_forward[n]);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int n = 0; s->biases[kind] != NULL && n < s->layers; n++)
            put_share(j, kind == ATTENTION_CROSS ? "bias of W_O, cross" : "bias of W_O, decoder", n,
                      s->biases[kind][n]);
    put_share(j, "biases of norms", -1, s->norms);
    put_share(j, "bias of the output matrix", -1, s->output);
    json_close(j);
}

/* False: out of memory. */
static bool put_shares(json *j, const probing *p)
{
    word_shares s;
    char room[SUBJECT_WORD_MAX];
    const mha_status status = word_shares_make(&s, p->model, p->run.after, p->row, p->word);
    if (status == MHA_OK) {
        json_open_object(j, "shares");
        json_integer(j, "row", s.row);
        json_string(j, "word", subject_word(p->model, s.word, room));
        json_integer(j, "number", s.word);
        json_exact(j, "logit", s.logit);
        json_exact(j, "sum", s.sum);
        put_head_shares(j, &s);
        put_other_shares(j, &s);
        json_close(j);
    } else {
        json_string(j, "no_shares",
                    status == MHA_ERR_FLAG ? "The logits of this model are not a matrix times its "
                                             "residual stream, so they have no shares."
                                           : "The matrices of this model are stored in a form that "
                                             "is not read row by row.");
    }
    word_shares_free(&s);
    return status != MHA_ERR_MEMORY;
}

/* False: out of memory. */
static bool put_lens(json *j, const probing *p)
{
    logit_lens lens;
    if (logit_lens_cost(p->run.after) > PROBE_LENS_COST) {
        json_string(j, "no_lens",
                    "For this model and a text of this length it would take too long.");
        return true;
    }
    const bool fine = logit_lens_make(&lens, p->model, p->run.after, p->pool) == MHA_OK;
    json_open_array(j, "lens");
    for (int row = 0; fine && row < lens.rows; row++) {
        json_open_array(j, NULL);
        for (int level = 0; level < lens.levels; level++) {
            const ptrdiff_t at = (ptrdiff_t)level * lens.rows + row;
            json_open_object(j, NULL);
            json_exact(j, "expected", lens.expected[at]);
            put_words(j, "likely", p->model, lens.likely + at * LENS_WORDS, LENS_WORDS);
            json_close(j);
        }
        json_close(j);
    }
    json_close(j);
    logit_lens_free(&lens);
    return fine;
}

/* Of an encoder; the probabilities are those of a classifier of pictures. */
static void put_turned(json *j, const probing *p)
{
    const capture *const runs[] = {p->run.before, p->run.after};
    json_exact(j, "turned", subject_loss(p->model, p->run.before, p->run.after));
    for (int n = 0; n < 2 && runs[n]->class_count > 0; n++) {
        json_open_array(j, n == 0 ? "classes_before" : "classes_after");
        for (int c = 0; c < runs[n]->class_count; c++)
            json_exact(j, NULL, runs[n]->probabilities[c]);
        json_close(j);
    }
}

static void put_side(json *j, const char *name, const subject_side *side)
{
    if (side->count > 0)
        page_side_put(j, name, side->words, side->marks, side->continues, side->count);
}

/* False: out of memory. */
static bool put_all(json *j, const probing *p)
{
    bool fine = true;
    json_open_object(j, NULL);
    json_string(j, "format", "mha-probe-1");
    json_string(j, "text", p->text.text);
    put_side(j, "source", &p->text.source);
    put_side(j, "target", &p->text.target);
    if (p->other != NULL) {
        json_open_object(j, "patch");
        json_string(j, "text", p->second.text);
        put_side(j, "source", &p->second.source);
        put_side(j, "target", &p->second.target);
        json_close(j);
    }
    if (p->run.written_after != NULL) {
        json_open_object(j, "written");
        json_string(j, "before", p->run.written_before);
        json_string(j, "after", p->run.written_after);
        json_close(j);
    }
    if (subject_predicts(p->model))
        put_rows(j, p);
    else
        put_turned(j, p);
    if (p->row >= 0)
        fine = put_shares(j, p);
    if (p->request->probe.lens && subject_predicts(p->model))
        fine &= put_lens(j, p);
    json_close(j);
    return fine;
}

static char *write_json(const probing *p)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    json j = json_begin(file);
    bool fine = put_all(&j, p) && ferror(file) == 0;
    fine = fclose(file) == 0 && fine;
    if (!fine) {
        free(text);
        text = NULL;
    }
    return text;
}

char *page_probe_json(const subject *model, const serve_request *request, mha_pool *pool,
                      char message[SUBJECT_MESSAGE_MAX])
{
    probing p = {.model = model, .request = request, .pool = pool, .message = message};
    char *text = NULL;
    if (make(&p)) {
        fail(&p, "out of memory");
        text = write_json(&p);
    }
    probe_free(&p.run);
    head_patches_free(&p.patches);
    capture_free(p.other);
    subject_text_free(model, &p.second);
    subject_text_free(model, &p.text);
    return text;
}
