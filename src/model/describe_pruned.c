/* SPDX-License-Identifier: MIT */
/*
 * Heads that a folder does not have any more, as config.json lists them:
 *
 *      "pruned_heads": {"0": [1, 5]}                     one kind of attention, by layer; the key
 * of transformers 4 "mha_pruned_heads": {"decoder": {"0": [1, 5]},    by kind and layer; our own
 * key "cross": {"2": [0]}}
 *
 * Numbers are those of the model before it was pruned.
 */
#include <stdlib.h>
#include <string.h>

#include "model/describe.h"

static const char *const kind_names[MHA_ATTENTION_KINDS] = {"encoder", "decoder", "cross"};

const char *attention_key(mha_attention_kind kind)
{
    return kind_names[kind];
}

/* Layers of a kind that have weights of their own. */
static int layers_of(const model_description *d, mha_attention_kind kind)
{
    const stack_description *const stack =
        &d->stack[kind == MHA_ATTENTION_ENCODER ? STACK_ENCODER : STACK_DECODER];
    if (kind == MHA_ATTENTION_CROSS && d->kind != MHA_MODEL_ENCODER_DECODER)
        return 0;
    return stack->shared ? 1 : stack->layers;
}

static int heads_of(const model_description *d, mha_attention_kind kind)
{
    return d->stack[kind == MHA_ATTENTION_ENCODER ? STACK_ENCODER : STACK_DECODER].attention.heads;
}

/* --------------------------------------------------------------- the list ----- */

static int compare_heads(const void *left, const void *right)
{
    const pruned_head *const a = left, *const b = right;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->layer != b->layer ? a->layer - b->layer : a->head - b->head;
}

/* The place of a head in the list, or where it would be. */
static size_t find_place(const model_description *d, pruned_head head)
{
    size_t low = 0, high = d->pruned_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_heads(&d->pruned[middle], &head) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int description_pruned_before(const model_description *d, mha_attention_kind kind, int layer,
                              int head)
{
    const size_t first = find_place(d, (pruned_head){kind, layer, 0});
    return (int)(find_place(d, (pruned_head){kind, layer, head}) - first);
}

int description_heads(const model_description *d, mha_attention_kind kind, int layer)
{
    const int heads = heads_of(d, kind);
    return heads - description_pruned_before(d, kind, layer, heads);
}

bool description_is_pruned(const model_description *d, mha_attention_kind kind, int layer, int head)
{
    const pruned_head wanted = {kind, layer, head};
    const size_t place = find_place(d, wanted);
    return place < d->pruned_count && compare_heads(&d->pruned[place], &wanted) == 0;
}

/* --------------------------------------------------------------- the text ----- */

/* Where a list of heads is, for messages. */
typedef struct head_list {
    const config_reader *r;
    model_description *d;
    const char *key;
    mha_attention_kind kind;
    int layer;
} head_list;

/* The layer of a key of digits; -1 if the model has no such layer. */
static int layer_of(const head_list *list, const char *key)
{
    const size_t length = strlen(key);
    if (length == 0 || length > 6 || strspn(key, "0123456789") != length)
        return -1;
    const int layer = (int)strtol(key, NULL, 10);
    return layer < layers_of(list->d, list->kind) ? layer : -1;
}

static mha_status add_heads(const head_list *list, const json_value *heads)
{
    model_description *const d = list->d;
    const int most = heads_of(d, list->kind);
    const size_t count = json_tree_count(heads);
    if (json_tree_type_of(heads) != JSON_TREE_ARRAY)
        return config_fail(list->r, MHA_ERR_FORMAT, "\"%s\" must have a list of heads for layer %d",
                           list->key, list->layer);
    for (size_t n = 0; n < count; n++) {
        int64_t head;
        if (!json_tree_get_integer(json_tree_element(heads, n), &head) || head < 0 || head >= most)
            return config_fail(list->r, MHA_ERR_FORMAT,
                               "\"%s\" of layer %d has heads that are not 0 to %d", list->key,
                               list->layer, most - 1);
        d->pruned[d->pruned_count++] = (pruned_head){list->kind, list->layer, (int)head};
    }
    return MHA_OK;
}

/* The lists of all layers of a kind. */
static mha_status read_layers(head_list list, const json_value *layers)
{
    model_description *const d = list.d;
    const size_t count = json_tree_count(layers);
    size_t more = 0;
    if (json_tree_type_of(layers) != JSON_TREE_OBJECT)
        return config_fail(list.r, MHA_ERR_FORMAT, "\"%s\" is not an object of layers", list.key);
    for (size_t n = 0; n < count; n++)
        more += json_tree_count(json_tree_element(layers, n));
    if (more == 0)
        return MHA_OK;
    pruned_head *const grown = realloc(d->pruned, (d->pruned_count + more) * sizeof *grown);
    if (!grown)
        return config_fail_memory(list.r);
    d->pruned = grown;
    for (size_t n = 0; n < count; n++) {
        const char *const key = json_tree_key(layers, n, NULL);
        list.layer = layer_of(&list, key);
        if (list.layer < 0)
            return config_fail(list.r, MHA_ERR_FORMAT,
                               "\"%s\" has the layer \"%.20s\", expected 0 to %d", list.key, key,
                               layers_of(d, list.kind) - 1);
        const mha_status status = add_heads(&list, json_tree_element(layers, n));
        if (status)
            return status;
    }
    return MHA_OK;
}

static mha_status read_kinds(head_list list, const json_value *kinds)
{
    if (json_tree_type_of(kinds) != JSON_TREE_OBJECT)
        return config_fail(list.r, MHA_ERR_FORMAT, "\"%s\" is not an object of attentions",
                           list.key);
    for (size_t n = 0; n < json_tree_count(kinds); n++) {
        const char *const key = json_tree_key(kinds, n, NULL);
        int kind = 0;
        while (kind < MHA_ATTENTION_KINDS && strcmp(kind_names[kind], key) != 0)
            kind++;
        if (kind == MHA_ATTENTION_KINDS || layers_of(list.d, (mha_attention_kind)kind) == 0)
            return config_fail(list.r, MHA_ERR_FORMAT,
                               "\"%s\" has \"%.20s\", expected an attention of the model: "
                               "encoder, decoder or cross",
                               list.key, key);
        list.kind = (mha_attention_kind)kind;
        const mha_status status = read_layers(list, json_tree_element(kinds, n));
        if (status)
            return status;
    }
    return MHA_OK;
}

/* No head twice, and every layer keeps one. */
static mha_status check_list(const head_list *list)
{
    const model_description *const d = list->d;
    int count = 0;
    for (size_t n = 0; n < d->pruned_count; n++) {
        const pruned_head *const at = &d->pruned[n];
        const bool same = n > 0 && at[-1].kind == at->kind && at[-1].layer == at->layer;
        count = same ? count + 1 : 1;
        if (same && at[-1].head == at->head)
            return config_fail(list->r, MHA_ERR_FORMAT, "\"%s\" has head %d of layer %d twice",
                               list->key, at->head, at->layer);
        if (count == heads_of(d, at->kind))
            return config_fail(list->r, MHA_ERR_FORMAT, "\"%s\" leaves no head in layer %d",
                               list->key, at->layer);
    }
    return MHA_OK;
}

mha_status describe_pruned(const config_reader *r, model_description *d)
{
    const json_value *const plain = json_tree_member(r->object, PRUNED_KEY);
    const json_value *const own = json_tree_member(r->object, PRUNED_OWN_KEY);
    const bool single = d->kind != MHA_MODEL_ENCODER_DECODER, is_plain = json_tree_count(plain) > 0;
    head_list list = {.r = r, .d = d, .key = is_plain ? PRUNED_KEY : PRUNED_OWN_KEY};
    if (is_plain && (json_tree_count(own) > 0 || !single))
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"" PRUNED_KEY "\" is not empty%s, expected only \"" PRUNED_OWN_KEY
                           "\"",
                           single ? "" : ", which does not say of which attention");
    list.kind = d->kind == MHA_MODEL_DECODER ? MHA_ATTENTION_DECODER : MHA_ATTENTION_ENCODER;
    mha_status status = MHA_OK;
    if (is_plain)
        status = read_layers(list, plain);
    else if (json_tree_type_of(own) != JSON_TREE_NULL)
        status = read_kinds(list, own);
    if (status || d->pruned_count == 0)
        return status;
    qsort(d->pruned, d->pruned_count, sizeof *d->pruned, compare_heads);
    return check_list(&list);
}
