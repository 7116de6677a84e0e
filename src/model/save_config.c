/* SPDX-License-Identifier: MIT */
/*
 * config.json of a saved model: that of the source, with the heads that are not there any more.
 *
 *      "pruned_heads"                       families that transformers 4 prunes
 *      "num_attention_heads", "head_dim"    Llama and its relatives, if all layers have the same
 *      "num_key_value_heads"                number of heads: any version of transformers reads this
 *      "mha_pruned_heads"                   everything else (describe_pruned.c)
 *      "num_hidden_groups"                  ALBERT, if its layers do not share their weights now
 */
#include <stdlib.h>
#include <string.h>

#include "format/json_edit.h"
#include "format/json_tree.h"
#include "format/mapped_file.h"
#include "model/families.h"
#include "model/save_parts.h"
#include "text/text_buffer.h"

enum { CHANGES_MAX = 5, NUMBER_MAX = 24 };

typedef struct config_changes {
    const model_saving *s;
    json_change list[CHANGES_MAX];
    size_t count;
    char numbers[CHANGES_MAX][NUMBER_MAX];
    text_buffer heads; /* the value of a list of removed heads */
} config_changes;

/* ------------------------------------------------------------ removed heads ----- */

/* Whether the saved files have no weights for a head of a layer, as the whole model numbers it.
 * Heads are requested in order: `next` is the first one that is left and was not requested. */
static bool is_removed(const model_saving *s, mha_attention_kind kind, int layer, int head,
                       ptrdiff_t *next)
{
    const model_description *const d = &s->model->files.description;
    const model_attention *const at = model_attention_at(s->model, kind, layer);
    const bool shared = d->stack[attention_stack(kind)].shared;
    if (s->zeros)
        return description_is_pruned(d, kind, shared ? 0 : layer, head);
    if (!at || !at->kept)
        return false;
    const bool is_left = *next < at->heads && at->kept[*next] == head;
    *next += is_left;
    return !is_left;
}

static void add_number(text_buffer *text, const char *before, int number)
{
    char digits[NUMBER_MAX];
    snprintf(digits, sizeof digits, "%d", number);
    text_buffer_add_string(text, before);
    text_buffer_add_string(text, digits);
}

/* "3": [0, 5]. Returns whether there is something to write. */
static bool add_layer(const model_saving *s, mha_attention_kind kind, int layer, bool first,
                      text_buffer *text)
{
    const model_description *const d = &s->model->files.description;
    const int heads = d->stack[attention_stack(kind)].attention.heads;
    ptrdiff_t next = 0;
    bool any = false;
    for (int h = 0; h < heads; h++) {
        if (!is_removed(s, kind, layer, h, &next))
            continue;
        if (!any) {
            add_number(text, first ? "\"" : ", \"", layer);
            text_buffer_add_string(text, "\": [");
        }
        add_number(text, any ? ", " : "", h);
        any = true;
    }
    if (any)
        text_buffer_add_string(text, "]");
    return any;
}

/* {"0": [1, 5], "3": [0]} of one kind of attention. */
static void add_layers(const model_saving *s, mha_attention_kind kind, text_buffer *text)
{
    const stack_description *const stack =
        &s->model->files.description.stack[attention_stack(kind)];
    const int layers = stack->shared && !s->split ? 1 : stack->layers;
    bool first = true;
    text_buffer_add_string(text, "{");
    for (int n = 0; n < layers; n++)
        if (add_layer(s, kind, n, first, text))
            first = false;
    text_buffer_add_string(text, "}");
}

static bool has_removed(const model_saving *s, mha_attention_kind kind)
{
    const model_stack *const stack = &s->model->stack[attention_stack(kind)];
    for (int n = 0; n < stack->layers; n++) {
        const model_attention *const at = model_attention_at(s->model, kind, n);
        if (at && at->kept)
            return true;
    }
    return false;
}

/* The same by kind. */
static void add_kinds(const model_saving *s, text_buffer *text)
{
    bool first = true;
    text_buffer_add_string(text, "{");
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        if (!has_removed(s, (mha_attention_kind)kind))
            continue;
        text_buffer_add_string(text, first ? "\"" : ", \"");
        text_buffer_add_string(text, attention_key((mha_attention_kind)kind));
        text_buffer_add_string(text, "\": ");
        add_layers(s, (mha_attention_kind)kind, text);
        first = false;
    }
    text_buffer_add_string(text, "}");
}

/* ------------------------------------------------------------------ changes ----- */

static void change(config_changes *c, const char *key, const char *value)
{
    c->list[c->count++] = (json_change){key, value};
}

static void change_number(config_changes *c, const char *key, ptrdiff_t number)
{
    snprintf(c->numbers[c->count], NUMBER_MAX, "%td", number);
    change(c, key, c->numbers[c->count]);
}

/* Whether a decoder with rotary positions has the same number of heads in all layers. */
static bool is_even(const model_saving *s)
{
    const model_stack *const stack = &s->model->stack[STACK_DECODER];
    const stack_description *const d = &s->model->files.description.stack[STACK_DECODER];
    if (stack->layers == 0 || d->embedding.position != POSITION_ROTARY)
        return false;
    const mha_layer_config first = mha_layer_get_config(stack->layer[0].self.layer);
    for (int n = 1; n < stack->layers; n++) {
        const mha_layer_config other = mha_layer_get_config(stack->layer[n].self.layer);
        if (other.H != first.H || other.G != first.G)
            return false;
    }
    return true;
}

static void change_heads(config_changes *c)
{
    const model_saving *const s = c->s;
    const model_description *const d = &s->model->files.description;
    const model_family *const family = model_family_find(d->family);
    if (family && family->has_pruned_heads) {
        add_layers(s, d->kind == MHA_MODEL_DECODER ? MHA_ATTENTION_DECODER : MHA_ATTENTION_ENCODER,
                   &c->heads);
        change(c, PRUNED_KEY, c->heads.bytes);
    } else if (is_even(s)) {
        const mha_layer_config even =
            mha_layer_get_config(s->model->stack[STACK_DECODER].layer[0].self.layer);
        change_number(c, "num_attention_heads", even.H);
        change_number(c, "num_key_value_heads", even.G);
        change_number(c, "head_dim", even.D);
        if (d->pruned_count > 0)
            change(c, PRUNED_OWN_KEY, "{}");
    } else {
        add_kinds(s, &c->heads);
        change(c, PRUNED_OWN_KEY, c->heads.bytes);
    }
}

static mha_status write_changed(const config_changes *c, const char *from, const char *to)
{
    const model_saving *const s = c->s;
    char *text, *made = NULL;
    size_t length;
    mha_status status =
        mapped_file_read(&text, &length, from, JSON_TREE_MAX, s->message, s->message_size);
    if (!status)
        status =
            json_edit(&made, from, text, length, c->list, c->count, s->message, s->message_size);
    if (!status)
        status = saving_write_bytes(s, to, made, strlen(made));
    free(text);
    free(made);
    return status;
}

mha_status saving_write_config(const model_saving *s, const char *path)
{
    config_changes c = {.s = s};
    const size_t size = strlen(s->model->files.folder) + sizeof "/config.json";
    char *const from = malloc(size);
    if (s->count > 0 && (!s->zeros || s->split))
        change_heads(&c);
    if (s->split)
        change_number(&c, "num_hidden_groups", s->model->stack[STACK_ENCODER].layers);
    mha_status status = MHA_ERR_MEMORY;
    if (from && !c.heads.failed) {
        snprintf(from, size, "%s/config.json", s->model->files.folder);
        status = write_changed(&c, from, path);
    } else {
        status = saving_fail(s, status, "no memory for config.json");
    }
    text_buffer_free(&c.heads);
    free(from);
    return status;
}
