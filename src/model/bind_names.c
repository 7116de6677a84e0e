/* SPDX-License-Identifier: MIT */
/* Names and extents that a rule stands for: finds the tensor of a rule under all its names, and
 * says what the description expects of it. bind.c compares the two. */
#include "model/bind_parts.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- extents ----- */

/* The attention that a rule of a layer belongs to. */
static mha_attention_kind kind_of(const rule_place *at)
{
    const size_t place = at->rule->at;
    if (at->stack == STACK_ENCODER)
        return MHA_ATTENTION_ENCODER;
    return place >= offsetof(bound_layer, cross) && place < offsetof(bound_layer, ff)
               ? MHA_ATTENTION_CROSS
               : MHA_ATTENTION_DECODER;
}

/* The outputs of W_Q. A layer may have lost some of its heads. */
static ptrdiff_t query_outputs(const binder *b, const rule_place *at)
{
    const attention_description *const a = &b->d->stack[at->stack].attention;
    const int heads =
        at->rule->scope == SCOPE_LAYER ? description_heads(b->d, kind_of(at), at->layer) : a->heads;
    return (ptrdiff_t)heads * a->head_width;
}

/* The outputs of W_K and W_V. How many key/value heads are left for some of the heads that share
 * them is known from the tensors alone: 0. bind.c checks that they fit together. */
static ptrdiff_t key_outputs(const binder *b, const rule_place *at)
{
    const attention_description *const a = &b->d->stack[at->stack].attention;
    const ptrdiff_t queries = query_outputs(b, at);
    if (a->key_heads == a->heads)
        return queries;
    return queries == (ptrdiff_t)a->heads * a->head_width ? (ptrdiff_t)a->key_heads * a->head_width
                                                          : 0;
}

ptrdiff_t binder_extent(const binder *b, const rule_place *at, tensor_extent which)
{
    const model_description *const d = b->d;
    const stack_description *const stack = &d->stack[at->stack];
    const attention_description *const a = &stack->attention;
    switch (which) {
    case EXTENT_ANY:
        return 0;
    case EXTENT_ONE:
        return 1;
    case EXTENT_WIDTH:
        return d->width;
    case EXTENT_EMBEDDING:
        return stack->embedding.width;
    case EXTENT_INNER:
        return stack->inner;
    case EXTENT_QUERIES:
        return query_outputs(b, at);
    case EXTENT_KEYS:
        return key_outputs(b, at);
    case EXTENT_HEAD:
        return a->head_width;
    case EXTENT_HEADS:
        return a->heads;
    case EXTENT_WORDS:
        return at->stack == STACK_ENCODER ? d->source_vocabulary : d->vocabulary;
    case EXTENT_POSITIONS:
        return (ptrdiff_t)d->positions + stack->embedding.position_offset;
    case EXTENT_SEGMENTS:
        return stack->embedding.segments;
    case EXTENT_BUCKETS:
        return a->relative_buckets;
    case EXTENT_PATCH:
        return (ptrdiff_t)d->channels * d->patch * d->patch;
    }
    return 0;
}

void binder_part(const binder *b, const rule_place *at, ptrdiff_t *first, ptrdiff_t *total)
{
    const ptrdiff_t queries = binder_extent(b, at, EXTENT_QUERIES);
    const ptrdiff_t keys = binder_extent(b, at, EXTENT_KEYS);
    *first = 0;
    *total = binder_extent(b, at, at->rule->outputs);
    switch (at->rule->part) {
    case PART_ALL:
        return;
    case PART_QKV_Q:
    case PART_QKV_K:
    case PART_QKV_V:
        *total = queries + 2 * keys;
        *first = at->rule->part == PART_QKV_Q ? 0 : queries;
        *first += at->rule->part == PART_QKV_V ? keys : 0;
        return;
    case PART_KV_K:
    case PART_KV_V:
        *total = 2 * keys;
        *first = at->rule->part == PART_KV_V ? keys : 0;
    }
}

/* ------------------------------------------------------------------ names ----- */

/* Appends a name with "@" and "#" replaced. */
static size_t put_name(char *to, size_t used, const char *name, size_t length, const rule_place *at)
{
    for (size_t n = 0; n < length && used + 16 < NAME_MAX_BYTES; n++)
        if (name[n] == '@')
            used += (size_t)sprintf(to + used, "%s",
                                    at->stack == STACK_ENCODER ? "encoder" : "decoder");
        else if (name[n] == '#')
            used += (size_t)sprintf(to + used, "%d", at->layer);
        else
            to[used++] = name[n];
    to[used] = '\0';
    return used;
}

/* The word of a list of alternatives, and the rest. */
static const char *next_word(const char *list, size_t *length)
{
    *length = strcspn(list, " ");
    const char *const rest = list + *length;
    return rest + strspn(rest, " ");
}

/* A linear or norm has several tensors: "NAME.weight", with "/" in names that have it. */
static size_t put_suffix(char *to, size_t used, const char *suffix)
{
    if (!suffix)
        return used;
    const char mark = strchr(to, '/') ? '/' : '.';
    return used + (size_t)snprintf(to + used, NAME_MAX_BYTES - used, "%c%s", mark, suffix);
}

/* Tries one alternative with and without the prefix, and with each suffix. */
static const weight_tensor *try_name(const binder *b, const rule_place *at, const char *lead,
                                     size_t lead_length, const char *name, size_t length,
                                     tensor_query *query)
{
    const weight_tensor *found = NULL;
    for (int bare = !b->prefixed; bare < 2 && !found; bare++)
        for (int n = 0; n < 2 && !found; n++) {
            char text[NAME_MAX_BYTES];
            if (n > 0 && !query->suffixes[n])
                break;
            size_t used =
                bare ? 0 : put_name(text, 0, b->layout->prefix, strlen(b->layout->prefix), at);
            used = put_name(text, used, lead, lead_length, at);
            used = put_name(text, used, name, length, at);
            put_suffix(text, used, query->suffixes[n]);
            found = weight_source_find(b->source, text);
            const bool expected = !bare || at->rule->scope == SCOPE_MODEL || !b->prefixed;
            if (!query->first[0] && expected)
                memcpy(query->first, text, sizeof text);
        }
    return found;
}

const weight_tensor *binder_find(const binder *b, const rule_place *at, tensor_query *query)
{
    const weight_tensor *found = NULL;
    const char *lead = at->rule->scope == SCOPE_LAYER ? b->layout->layers : "";
    do {
        size_t lead_length, length;
        const char *const next_lead = next_word(lead, &lead_length);
        const char *names = at->rule->names;
        while (*names && !found) {
            const char *const next = next_word(names, &length);
            found = try_name(b, at, lead, lead_length, names, length, query);
            names = next;
        }
        lead = next_lead;
    } while (*lead && !found);
    return found;
}
