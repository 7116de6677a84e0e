/* SPDX-License-Identifier: MIT */
/*
 * The normal forms of Unicode, with alignment: characters are decomposed, sorted by
 * combining class and, for NFC and NFKC, composed again. Each character carries how the number of
 * characters changed, as transform_put() expects it.
 */
#include "text/normalizer.h"
#include "text/unicode_tables.h"

#include "base/array.h"
#include "text/characters.h"

#include "text/unicode_library.h"
#include <stdlib.h>

typedef struct item {
    uint32_t c;
    int change;
    int class;
    size_t number; /* keeps the order of equal classes */
} item;

typedef struct item_list {
    item *items;
    size_t count, room;
    bool failed;
} item_list;

static void put(item_list *list, uint32_t c, int change, int class)
{
    item *const items =
        list->failed ? NULL
                     : mhai_array_grow(list->items, &list->room, list->count + 1, sizeof *items);
    if (!items) {
        list->failed = true;
        return;
    }
    list->items = items;
    items[list->count] = (item){c, change, class, list->count};
    list->count++;
}

static bool is_decomposed(uint32_t c)
{
    for (size_t n = 0; n < unicode_not_decomposed_count; n++)
        if (c >= unicode_not_decomposed[n].first && c <= unicode_not_decomposed[n].last)
            return false;
    return true;
}

static int class_of(uint32_t c)
{
    if (c < 0x300 || !character_is_mark(c))
        return 0;
    return unicode_combining_class(c);
}

/* ----------------------------------------------------------- decomposing ----- */

static int compare_items(const void *left, const void *right)
{
    const item *const a = left, *const b = right;
    if (a->class != b->class)
        return a->class - b->class;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Sorts the marks after the last character of class 0. */
static void sort_marks(item_list *list, size_t *first)
{
    if (list->count > *first + 1)
        qsort(list->items + *first, list->count - *first, sizeof *list->items, compare_items);
    *first = list->count;
}

static void decompose(item_list *list, uint32_t c, bool compatible, size_t *first)
{
    uint32_t parts[UNICODE_PARTS_MAX] = {c};
    const int count = c >= 0xa0 && is_decomposed(c) ? unicode_decompose(c, compatible, parts) : 1;
    for (int n = 0; n < count; n++) {
        const int class = class_of(parts[n]);
        if (class == 0)
            sort_marks(list, first);
        put(list, parts[n], n > 0, class);
        if (class == 0)
            *first = list->count;
    }
}

/* ------------------------------------------------------------- composing ----- */

/* The character that two become, or 0. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    if (b < 0x300)
        return 0;
    if (a - 0x1100 < 19 && b - 0x1161 < 21)
        return 0xac00 + ((a - 0x1100) * 21 + (b - 0x1161)) * 28;
    if (a - 0xac00 < 11172 && (a - 0xac00) % 28 == 0 && b - 0x11a8 < 27)
        return a + (b - 0x11a7);
    const uint32_t composed = unicode_compose(a, b);
    return composed != 0 && is_decomposed(composed) ? composed : 0;
}

/*
 * Composes in place. `to` is where the next character goes, `base` the last character of class 0
 * that may still grow, or -1. Between them are marks that did not compose with it.
 */
static void compose_all(item_list *list)
{
    item *const items = list->items;
    size_t to = 0;
    ptrdiff_t base = -1;
    for (size_t n = 0; n < list->count; n++) {
        const item now = items[n];
        const bool follows = base >= 0 && (size_t)base + 1 == to;
        const bool blocked = base >= 0 && !follows && items[to - 1].class >= now.class;
        const uint32_t composed = base >= 0 && !blocked ? compose(items[base].c, now.c) : 0;
        if (composed) {
            items[base].c = composed;
            items[base].change += now.change - 1;
            continue;
        }
        if (now.class == 0)
            base = (ptrdiff_t)to;
        items[to++] = now;
    }
    list->count = to;
}

static bool all_ascii(const aligned_text *text, const split *part)
{
    unsigned char any = 0;
    for (size_t n = part->begin; n < part->end; n++)
        any |= (unsigned char)text->text[n];
    return any < 0x80;
}

bool unicode_normalize(const aligned_text *from, const split *part, bool compatible, bool composed,
                       aligned_text *to)
{
    if (all_ascii(from, part)) {
        aligned_copy(to, from, part->begin, part->end);
        return !to->failed;
    }
    item_list list = {0};
    size_t first = 0, bytes;
    for (size_t at = part->begin; at < part->end; at += bytes)
        decompose(&list, aligned_character(from, at, &bytes), compatible, &first);
    sort_marks(&list, &first);
    if (composed)
        compose_all(&list);
    transform t = transform_begin(from, part, to);
    for (size_t n = 0; n < list.count; n++)
        transform_put(&t, list.items[n].c, list.items[n].change);
    const bool ok = !list.failed && !to->failed;
    free(list.items);
    return ok;
}
