/* SPDX-License-Identifier: MIT */
/*
 * The steps of a normalizer (normalizer.h), except the normal forms, which are in
 * unicode_normalize.c. Each appends to a new text what becomes of a part of the old one.
 */
#include "text/normalizer.h"

#include "base/array.h"
#include "base/utf8.h"
#include "text/characters.h"

#include <stdlib.h>
#include <string.h>

void normalizer_step_free(normalizer_step *step)
{
    pattern_free(step->pattern);
    precompiled_free(step->rules);
    free(step->content);
    *step = (normalizer_step){0};
}

/* ------------------------------------------------------ single characters ----- */

static bool is_dropped(normalizer_kind kind, uint32_t c)
{
    switch (kind) {
    case NORMALIZE_CLEAN:
        return character_is_removed(c);
    case NORMALIZE_DROP_NONSPACING:
        return character_is_nonspacing(c);
    case NORMALIZE_STRIP_ACCENTS:
        return character_is_mark(c);
    case NORMALIZE_NMT:
        return (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
               c == 0x8f || c == 0x9f;
    default:
        return false;
    }
}

static bool becomes_space(normalizer_kind kind, uint32_t c)
{
    if (kind == NORMALIZE_CLEAN)
        return character_is_space(c);
    return kind == NORMALIZE_NMT && (c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                                     (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
                                     c == 0x2581 || c == 0xfeff || c == 0xfffd);
}

static void filter(normalizer_kind kind, const aligned_text *from, const split *part,
                   aligned_text *to)
{
    size_t bytes;
    for (size_t at = part->begin; at < part->end; at += bytes) {
        const uint32_t c = aligned_character(from, at, &bytes);
        if (!is_dropped(kind, c))
            aligned_put(to, becomes_space(kind, c) ? ' ' : c, from->spans[at]);
    }
}

static void lowercase_ascii(const aligned_text *from, const split *part, aligned_text *to)
{
    size_t bytes;
    for (size_t at = part->begin; at < part->end; at += bytes) {
        const uint32_t c = aligned_character(from, at, &bytes);
        aligned_put(to, c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c, from->spans[at]);
    }
}

static void lowercase(const aligned_text *from, const split *part, aligned_text *to)
{
    transform t = transform_begin(from, part, to);
    size_t bytes;
    for (size_t at = part->begin; at < part->end; at += bytes) {
        uint32_t lower[2];
        const size_t count = character_lower(aligned_character(from, at, &bytes), lower);
        for (size_t n = 0; n < count; n++)
            transform_put(&t, lower[n], n > 0);
    }
}

static void space_chinese(const aligned_text *from, const split *part, aligned_text *to)
{
    transform t = transform_begin(from, part, to);
    size_t bytes;
    for (size_t at = part->begin; at < part->end; at += bytes) {
        const uint32_t c = aligned_character(from, at, &bytes);
        const bool chinese = character_is_chinese(c);
        transform_put(&t, chinese ? ' ' : c, 0);
        if (chinese) {
            transform_put(&t, c, 1);
            transform_put(&t, ' ', 1);
        }
    }
}

static void strip(const normalizer_step *step, const aligned_text *from, const split *part,
                  aligned_text *to)
{
    size_t begin = part->begin, end = part->end, bytes;
    while (step->left && begin < end && character_is_space(aligned_character(from, begin, &bytes)))
        begin += bytes;
    while (step->right && begin < end) {
        size_t last = end - 1;
        while (last > begin && ((unsigned char)from->text[last] & 0xc0) == 0x80)
            last--;
        if (!character_is_space(aligned_character(from, last, &bytes)))
            break;
        end = last;
    }
    aligned_copy(to, from, begin, end);
}

void text_byte_level(const aligned_text *from, const split *part, aligned_text *to)
{
    transform t = transform_begin(from, part, to);
    size_t bytes;
    for (size_t at = part->begin; at < part->end; at += bytes) {
        aligned_character(from, at, &bytes);
        for (size_t n = 0; n < bytes; n++)
            transform_put(&t, byte_character((unsigned char)from->text[at + n]), n > 0);
    }
}

/* -------------------------------------------------------- longer contents ----- */

static void put_ascii(aligned_text *to, const char *text, span place)
{
    for (; *text; text++)
        aligned_put(to, (unsigned char)*text, place);
}

/* "don't" becomes "do not" and "won't" "will not", each word in the place of its letters. */
static void expand_not(const aligned_text *from, const split *part, aligned_text *to)
{
    for (size_t at = part->begin, end; at < part->end; at = end) {
        end = at;
        while (end < part->end && (!from->text[end] || !strchr(WORD_BREAKS, from->text[end])))
            end++;
        const char *const word = from->text + at;
        const span *const spans = from->spans + at;
        const size_t length = end - at;
        if (length > 3 && memcmp(word + length - 3, "n't", 3) == 0) {
            if (length == 5 && memcmp(word, "wo", 2) == 0)
                put_ascii(to, "will", (span){spans[0].begin, spans[1].end});
            else
                aligned_copy(to, from, at, end - 3);
            put_ascii(to, " not", (span){spans[length - 3].begin, spans[length - 1].end});
        } else {
            end += end < part->end; /* with the break */
            aligned_copy(to, from, at, end);
        }
    }
}

void text_prepend(const aligned_text *from, const split *part, const char *content,
                  aligned_text *to)
{
    if (part->begin == part->end)
        return;
    size_t bytes, first = 0;
    uint32_t c;
    aligned_character(from, part->begin, &first);
    for (const char *at = content; *at; at += bytes) {
        bytes = utf8_decode(at, strlen(at), &c);
        if (bytes == 0)
            break;
        aligned_put(to, c, from->spans[part->begin]);
    }
    aligned_copy(to, from, part->begin, part->end);
}

mha_status text_replace(const aligned_text *from, const split *part, const pattern *p,
                        const char *content, aligned_text *to, pattern_scratch *scratch)
{
    const size_t length = strlen(content);
    size_t done = part->begin;
    if (part->begin == part->end)
        return MHA_OK;
    pattern_search s =
        pattern_search_begin(p, scratch, from->text + part->begin, part->end - part->begin);
    while (pattern_search_next(&s)) {
        const size_t begin = part->begin + s.begin, end = part->begin + s.end;
        aligned_copy(to, from, done, begin);
        done = end;
        const span place = end > part->begin ? from->spans[end - 1]
                                             : (span){part->origin.begin, part->origin.begin};
        uint32_t c;
        for (size_t at = 0, bytes; at < length; at += bytes) {
            bytes = utf8_decode(content + at, length - at, &c);
            if (bytes == 0)
                break;
            aligned_put(to, c, place);
        }
    }
    aligned_copy(to, from, done, part->end);
    return s.status;
}

/* ----------------------------------------------------------- precompiled ----- */

typedef struct changed {
    uint32_t c;
    ptrdiff_t change;
} changed;

/* The new characters so far, with their changes. */
typedef struct rewriting {
    const char *text;
    changed *items;
    size_t count, room;
} rewriting;

static size_t count_characters(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t n = 0; n < length; n++)
        count += ((unsigned char)text[n] & 0xc0) != 0x80;
    return count;
}

/* Characters that are missing are counted at the character before, those that are too many are
 * inserted: as "tokenizers" has it, whose offsets these are. */
static bool rewrite_part(void *context, size_t begin, size_t end, const char *by, size_t length)
{
    rewriting *const r = context;
    const size_t old = count_characters(r->text + begin, end - begin);
    const size_t new = count_characters(by, length);
    changed *const items = mhai_array_grow(r->items, &r->room, r->count + new + 1, sizeof *items);
    if (!items)
        return false;
    r->items = items;
    size_t number = 0;
    for (size_t at = 0, bytes; at < length; at += bytes, number++) {
        uint32_t c = 0xfffd;
        bytes = utf8_decode(by + at, length - at, &c);
        bytes += bytes == 0;
        if (number < new)
            items[r->count++] = (changed){c, number >= old};
    }
    if (new < old && r->count)
        items[r->count - 1].change -= (ptrdiff_t)(old - new);
    return true;
}

static bool rewrite(const precompiled *rules, const aligned_text *from, const split *part,
                    aligned_text *to)
{
    if (part->begin == part->end)
        return true;
    rewriting r = {.text = from->text + part->begin};
    const bool ok = precompiled_graphemes(rules, r.text, part->end - part->begin, rewrite_part, &r);
    transform t = transform_begin(from, part, to);
    for (size_t n = 0; ok && n < r.count; n++)
        transform_put(&t, r.items[n].c, r.items[n].change);
    free(r.items);
    return ok;
}

mha_status normalizer_apply(const normalizer_step *step, const aligned_text *from,
                            const split *part, aligned_text *to, pattern_scratch *scratch)
{
    const normalizer_kind kind = step->kind;
    mha_status status = MHA_OK;
    switch (kind) {
    case NORMALIZE_NFC:
    case NORMALIZE_NFD:
    case NORMALIZE_NFKC:
    case NORMALIZE_NFKD:
        if (!unicode_normalize(from, part, kind == NORMALIZE_NFKC || kind == NORMALIZE_NFKD,
                               kind == NORMALIZE_NFC || kind == NORMALIZE_NFKC, to))
            status = MHA_ERR_MEMORY;
        break;
    case NORMALIZE_CLEAN:
    case NORMALIZE_DROP_NONSPACING:
    case NORMALIZE_STRIP_ACCENTS:
    case NORMALIZE_NMT:
        filter(kind, from, part, to);
        break;
    case NORMALIZE_CHINESE:
        space_chinese(from, part, to);
        break;
    case NORMALIZE_LOWERCASE:
        lowercase(from, part, to);
        break;
    case NORMALIZE_LOWERCASE_ASCII:
        lowercase_ascii(from, part, to);
        break;
    case NORMALIZE_ENGLISH_NOT:
        expand_not(from, part, to);
        break;
    case NORMALIZE_STRIP:
        strip(step, from, part, to);
        break;
    case NORMALIZE_REPLACE:
        status = text_replace(from, part, step->pattern, step->content, to, scratch);
        break;
    case NORMALIZE_PREPEND:
        text_prepend(from, part, step->content, to);
        break;
    case NORMALIZE_PRECOMPILED:
        if (!rewrite(step->rules, from, part, to))
            status = MHA_ERR_MEMORY;
        break;
    case NORMALIZE_BYTE_LEVEL:
        text_byte_level(from, part, to);
        break;
    }
    return to->failed ? MHA_ERR_MEMORY : status;
}
