/* SPDX-License-Identifier: MIT */
/*
 * Reads the output of "mha ablate --json" and writes what the page shows of it:
 *
 *      {"model": ..., "mode": ..., "split": ..., "sentences": ..., "plain": {"loss": ...},
 *       "heads": [{"kind": "cross", "layer": 1, "head": 2, "delta": ...}, ...]}
 *
 * The file is not trusted: types and numbers are checked, and each head of the page must be there
 * exactly once. Unknown keys are skipped, so that files of later versions can be read.
 */
#include "page/page_ablation.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"

/* A file while it is read. */
typedef struct reading {
    page_ablation *ablation;
    json_reader json;
    const char *path;
    char *message; /* [TEXT_FILE_MESSAGE_MAX] */
} reading;

/* An element of "heads" before it is checked. */
typedef struct parsed_head {
    const char *kind;
    double layer, head; /* from 1 */
    page_head_damage damage;
} parsed_head;

typedef struct number_field {
    const char *key;
    double *value;
    bool may_be_null; /* null is read as NaN */
} number_field;

typedef struct text_field {
    const char *key;
    const char **value;
} text_field;

/* Writes a message that begins with the path; returns false for the caller to return. */
__attribute__((format(printf, 2, 3))) static bool wrong(const reading *r, const char *format, ...)
{
    va_list list;
    const int used = snprintf(r->message, TEXT_FILE_MESSAGE_MAX, "%s: ", r->path);
    va_start(list, format);
    if (used >= 0 && used < TEXT_FILE_MESSAGE_MAX)
        vsnprintf(r->message + used, TEXT_FILE_MESSAGE_MAX - (size_t)used, format, list);
    va_end(list);
    return false;
}

static bool not_ablate(const reading *r, const char *what)
{
    return wrong(r, "this is not what \"mha ablate --json\" prints: %s", what);
}

int page_heads_before(const page_heads *heads, int kind)
{
    int before = 0;
    for (int n = 0; n < kind; n++)
        before += heads->layers[n] * heads->heads[n];
    return before;
}

/* -------------------------------------------------------------- fields ----- */

static bool read_number(reading *r, const number_field *field)
{
    const json_reader_token token = json_reader_next(&r->json);
    if (token == JSON_NULL && field->may_be_null) {
        *field->value = NAN;
        return true;
    }
    if (token != JSON_NUMBER)
        return wrong(r, "\"%s\" must be a number", field->key);
    *field->value = strtod(r->json.text, NULL);
    return isfinite(*field->value) || wrong(r, "\"%s\" is too large", field->key);
}

/* Reads the value of the present key into its field; the lists end with a key of NULL, `texts` may
 * be NULL. Values of unknown keys are skipped. */
static bool read_field(reading *r, const number_field *numbers, const text_field *texts)
{
    const char *const key = r->json.text;
    for (; numbers->key != NULL; numbers++)
        if (strcmp(key, numbers->key) == 0)
            return read_number(r, numbers);
    for (; texts != NULL && texts->key != NULL; texts++)
        if (strcmp(key, texts->key) == 0) {
            if (json_reader_next(&r->json) != JSON_STRING)
                return wrong(r, "\"%s\" must be a string", texts->key);
            *texts->value = r->json.text;
            return true;
        }
    return json_reader_skip(&r->json);
}

/* --------------------------------------------------------------- heads ----- */

/* Puts a head into its place of the page. */
static bool take_head(const reading *r, const parsed_head *h)
{
    const page_heads *const shape = &r->ablation->shape;
    int kind = 0;
    while (kind < ATTENTION_KINDS &&
           strcmp(h->kind, attention_kind_name((attention_kind)kind)) != 0)
        kind++;
    if (kind == ATTENTION_KINDS)
        return not_ablate(r, "\"kind\" must be encoder, decoder or cross");
    const int layers = shape->layers[kind], heads = shape->heads[kind];
    if (!(h->layer >= 1 && h->layer <= layers && h->head >= 1 && h->head <= heads))
        return wrong(r,
                     "has %s %.0f.%.0f, which is not on this page (%d layers of %d heads of "
                     "that kind): the file belongs to another model",
                     h->kind, h->layer, h->head, layers, heads);
    page_head_damage *const own =
        &r->ablation->heads[page_heads_before(shape, kind) + ((int)h->layer - 1) * heads +
                            (int)h->head - 1];
    if (own->known)
        return wrong(r, "%s %.0f.%.0f occurs twice", h->kind, h->layer, h->head);
    *own = h->damage;
    own->known = true;
    return true;
}

/* Reads an element of "heads"; its opening brace has been read. */
static bool read_head(reading *r)
{
    parsed_head h = {NULL, 0.0, 0.0, {false, NAN, NAN, NAN, NAN, NAN}};
    page_head_damage *const d = &h.damage;
    const number_field numbers[] = {
        {"layer", &h.layer, false},  {"head", &h.head, false},
        {"delta", &d->delta, false}, {"low", &d->low, true},
        {"high", &d->high, true},    {"words_right", &d->words_right, false},
        {"exact", &d->exact, false}, {NULL, NULL, false},
    };
    const text_field texts[] = {{"kind", &h.kind}, {NULL, NULL}};
    json_reader_token token;
    while ((token = json_reader_next(&r->json)) == JSON_KEY)
        if (!read_field(r, numbers, texts))
            return false;
    if (token != JSON_OBJECT_END)
        return false;
    if (h.kind == NULL || isnan(d->delta + d->words_right + d->exact))
        return not_ablate(r, "a head needs kind, layer, head, delta, words_right and exact");
    return take_head(r, &h);
}

static bool read_heads(reading *r)
{
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_ARRAY)
        return not_ablate(r, "\"heads\" must be an array");
    while ((token = json_reader_next(&r->json)) == JSON_OBJECT)
        if (!read_head(r))
            return false;
    return token == JSON_ARRAY_END || not_ablate(r, "\"heads\" must contain objects only");
}

/* --------------------------------------------------------------- whole ----- */

/* Reads "plain": the whole model. */
static bool read_plain(reading *r)
{
    page_ablation *const a = r->ablation;
    const number_field numbers[] = {{"loss", &a->loss, false},
                                    {"words_right", &a->words_right, false},
                                    {"exact", &a->exact, false},
                                    {NULL, NULL, false}};
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return not_ablate(r, "\"plain\" must be an object");
    while ((token = json_reader_next(&r->json)) == JSON_KEY)
        if (!read_field(r, numbers, NULL))
            return false;
    return token == JSON_OBJECT_END;
}

static bool read_all(reading *r)
{
    page_ablation *const a = r->ablation;
    const number_field numbers[] = {{"sentences", &a->sentences, false}, {NULL, NULL, false}};
    const text_field texts[] = {
        {"model", &a->model}, {"mode", &a->mode}, {"split", &a->split}, {NULL, NULL}};
    json_reader_token token = json_reader_next(&r->json);
    if (token != JSON_OBJECT)
        return not_ablate(r, "an object was expected");
    while ((token = json_reader_next(&r->json)) == JSON_KEY) {
        const bool fine = strcmp(r->json.text, "heads") == 0   ? read_heads(r)
                          : strcmp(r->json.text, "plain") == 0 ? read_plain(r)
                                                               : read_field(r, numbers, texts);
        if (!fine)
            return false;
    }
    return token == JSON_OBJECT_END && json_reader_next(&r->json) == JSON_END;
}

/* Checks that no key is missing, and no head of the page. */
static bool check_complete(const reading *r)
{
    const page_ablation *const a = r->ablation;
    const page_head_damage *damage = a->heads;
    if (a->model == NULL || a->mode == NULL || a->split == NULL || isnan(a->sentences) ||
        isnan(a->loss + a->words_right + a->exact))
        return not_ablate(r, "model, mode, split, sentences or plain are missing");
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        for (int n = 0; n < a->shape.layers[kind] * a->shape.heads[kind]; n++, damage++)
            if (!damage->known)
                return wrong(r,
                             "has no %s %d.%d, which is on this page: the file belongs to "
                             "another model",
                             attention_kind_name((attention_kind)kind),
                             n / a->shape.heads[kind] + 1, n % a->shape.heads[kind] + 1);
    return true;
}

bool page_ablation_read(page_ablation *a, const char *path, const page_heads *shape,
                        char message[TEXT_FILE_MESSAGE_MAX])
{
    reading r = {.ablation = a, .path = path, .message = message};
    size_t length;
    *a = (page_ablation){
        .sentences = NAN, .loss = NAN, .words_right = NAN, .exact = NAN, .shape = *shape};
    a->heads = calloc((size_t)page_heads_before(shape, ATTENTION_KINDS) + 1, sizeof *a->heads);
    if (a->heads == NULL)
        return wrong(&r, "out of memory");
    if ((a->text = text_file_read(path, &length, message)) == NULL)
        return false;
    r.json = json_reader_begin(a->text, length);
    message[0] = '\0';
    const bool read = read_all(&r);
    if (!read && r.json.fault != JSON_FINE)
        not_ablate(&r, r.json.fault == JSON_SYNTAX      ? r.json.problem
                       : r.json.fault == JSON_DUPLICATE ? "a key occurs twice"
                                                        : "out of memory");
    else if (!read && message[0] == '\0')
        not_ablate(&r, "something is in the wrong place");
    json_reader_free(&r.json);
    return read && check_complete(&r);
}

void page_ablation_free(page_ablation *a)
{
    free(a->heads);
    free(a->text);
}

static void put_head(json *j, const page_head_damage *d)
{
    json_open_object(j, NULL);
    json_number(j, "delta", d->delta);
    json_number(j, "low", d->low);
    json_number(j, "high", d->high);
    json_number(j, "words_right", d->words_right);
    json_number(j, "exact", d->exact);
    json_close(j);
}

void page_ablation_put(json *j, const page_ablation *a)
{
    const page_head_damage *damage = a->heads;
    json_open_object(j, "ablation");
    json_string(j, "model", a->model);
    json_string(j, "mode", a->mode);
    json_string(j, "split", a->split);
    json_number(j, "sentences", a->sentences);
    json_number(j, "loss", a->loss);
    json_number(j, "words_right", a->words_right);
    json_number(j, "exact", a->exact);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++) {
        json_open_array(j, attention_kind_name((attention_kind)kind));
        for (int n = 0; n < a->shape.layers[kind] * a->shape.heads[kind]; n++)
            put_head(j, damage++);
        json_close(j);
    }
    json_close(j);
}
