/* SPDX-License-Identifier: MIT */
/*
 * The steps of a pre-tokenizer (pre_tokenizer.h). A step that divides finds the matches in each
 * split, and the rest between them; its behaviour says how they become new splits. Splits that are
 * tokens already, and empty ones, are never divided.
 */
#include "text/pre_tokenizer.h"

#include "base/utf8.h"
#include "text/characters.h"
#include "text/normalizer.h"

#include <string.h>

void pre_tokenizer_step_free(pre_tokenizer_step *step)
{
    pattern_free(step->pattern);
    *step = (pre_tokenizer_step){0};
}

/* ------------------------------------------------------------------ work ----- */

bool text_work_create(text_work *work)
{
    *work = (text_work){.scratch = pattern_scratch_create()};
    return work->scratch != NULL;
}

void text_work_free(text_work *work)
{
    aligned_free(&work->text);
    aligned_free(&work->next);
    split_list_free(&work->splits);
    split_list_free(&work->next_splits);
    split_list_free(&work->matches);
    pattern_scratch_free(work->scratch);
}

mha_status text_work_swap_text(text_work *work)
{
    const aligned_text old = work->text;
    work->text = work->next;
    work->next = old;
    work->next.length = 0;
    return work->text.failed ? MHA_ERR_MEMORY : MHA_OK;
}

mha_status text_work_swap_splits(text_work *work)
{
    const split_list old = work->splits;
    work->splits = work->next_splits;
    work->next_splits = old;
    work->next_splits.count = 0;
    return work->splits.failed || work->matches.failed ? MHA_ERR_MEMORY : MHA_OK;
}

/* --------------------------------------------------------------- matches ----- */

static void add_match(split_list *matches, size_t begin, size_t end, bool is_match)
{
    split_list_add(matches, (split){.begin = begin, .end = end, .id = is_match});
}

static bool is_delimiter(const pre_tokenizer_step *step, uint32_t c)
{
    switch (step->kind) {
    case PRE_SPACE:
        return character_is_space(c);
    case PRE_PUNCTUATION:
        return character_is_punctuation(c);
    case PRE_NUMERIC:
        return character_is_numeric(c);
    default:
        return c == step->character;
    }
}

/* Each character is a match of its own. */
static void match_characters(const pre_tokenizer_step *step, const split *part, text_work *work)
{
    size_t done = part->begin, bytes;
    for (size_t at = part->begin; at < part->end; at += bytes) {
        if (!is_delimiter(step, aligned_character(&work->text, at, &bytes)))
            continue;
        if (done < at)
            add_match(&work->matches, done, at, false);
        add_match(&work->matches, at, at + bytes, true);
        done = at + bytes;
    }
    if (done < part->end)
        add_match(&work->matches, done, part->end, false);
}

static mha_status match_pattern(const pattern *p, bool invert, const split *part, text_work *work)
{
    size_t done = part->begin;
    pattern_search s = pattern_search_begin(p, work->scratch, work->text.text + part->begin,
                                            part->end - part->begin);
    while (pattern_search_next(&s)) {
        const size_t begin = part->begin + s.begin, end = part->begin + s.end;
        if (done < begin)
            add_match(&work->matches, done, begin, invert);
        add_match(&work->matches, begin, end, !invert);
        done = end;
    }
    if (done < part->end)
        add_match(&work->matches, done, part->end, invert);
    return s.status;
}

/* Appends the new splits that matches and the rest become, according to a behaviour. */
static void add_splits(split_behavior behavior, text_work *work)
{
    const split *const matches = work->matches.splits;
    const size_t count = work->matches.count;
    for (size_t n = 0; n < count; n++) {
        const size_t begin = matches[n].begin;
        size_t end = matches[n].end;
        if (behavior == SPLIT_REMOVED && matches[n].id)
            continue;
        if (behavior == SPLIT_CONTIGUOUS)
            for (; n + 1 < count && matches[n + 1].id == matches[n].id; n++)
                end = matches[n + 1].end;
        /* A match that follows no match goes to what is before it. */
        if (behavior == SPLIT_MERGED_WITH_PREVIOUS && !matches[n].id && n + 1 < count &&
            matches[n + 1].id)
            end = matches[++n].end;
        /* A match that no match follows goes to what is after it. */
        if (behavior == SPLIT_MERGED_WITH_NEXT && matches[n].id && n + 1 < count &&
            !matches[n + 1].id)
            end = matches[++n].end;
        if (begin < end)
            split_list_add(&work->next_splits, split_of(&work->text, begin, end));
    }
    work->matches.count = 0;
}

static mha_status divide(const pre_tokenizer_step *step, const pattern *p, split_behavior behavior,
                         text_work *work)
{
    for (size_t n = 0; n < work->splits.count; n++) {
        const split part = work->splits.splits[n];
        mha_status status = MHA_OK;
        if (part.id >= 0) {
            split_list_add(&work->next_splits, part);
            continue;
        }
        if (p)
            status = match_pattern(p, step->invert, &part, work);
        else
            match_characters(step, &part, work);
        if (status != MHA_OK)
            return status;
        if (work->matches.failed)
            return MHA_ERR_MEMORY;
        add_splits(behavior, work);
    }
    return text_work_swap_splits(work);
}

/* ------------------------------------------------- steps that change text ----- */

static bool begins_with(const aligned_text *text, const split *part, uint32_t c)
{
    size_t bytes;
    return part->begin < part->end && aligned_character(text, part->begin, &bytes) == c;
}

typedef mha_status rewrite_split(const pre_tokenizer_step *step, const split *part,
                                 text_work *work);

/* Appends each split, rewritten, to the next text. The place of a split in the original stays. */
static mha_status rewrite_all(const pre_tokenizer_step *step, rewrite_split *rewrite,
                              text_work *work)
{
    for (size_t n = 0; n < work->splits.count; n++) {
        split *const part = &work->splits.splits[n];
        const size_t begin = work->next.length;
        if (part->id >= 0)
            continue;
        const mha_status status = rewrite(step, part, work);
        if (status != MHA_OK)
            return status;
        part->begin = begin;
        part->end = work->next.length;
    }
    return text_work_swap_text(work);
}

static mha_status add_space(const pre_tokenizer_step *step, const split *part, text_work *work)
{
    (void)step;
    if (begins_with(&work->text, part, ' '))
        aligned_copy(&work->next, &work->text, part->begin, part->end);
    else
        text_prepend(&work->text, part, " ", &work->next);
    return MHA_OK;
}

static mha_status bytes_to_characters(const pre_tokenizer_step *step, const split *part,
                                      text_work *work)
{
    (void)step;
    text_byte_level(&work->text, part, &work->next);
    return MHA_OK;
}

static mha_status byte_level(const pre_tokenizer_step *step, text_work *work)
{
    mha_status status = MHA_OK;
    if (step->prefix_space)
        status = rewrite_all(step, add_space, work);
    if (status == MHA_OK && step->pattern)
        status = divide(step, step->pattern, SPLIT_ISOLATED, work);
    if (status == MHA_OK)
        status = rewrite_all(step, bytes_to_characters, work);
    return status;
}

static mha_status replace_spaces(const pre_tokenizer_step *step, const split *part, text_work *work)
{
    const aligned_text *const text = &work->text;
    const bool wanted = step->scheme == PREPEND_ALWAYS ||
                        (step->scheme == PREPEND_FIRST && part->origin.begin == 0);
    size_t bytes;
    if (part->begin < part->end && wanted && !begins_with(text, part, step->character) &&
        !begins_with(text, part, ' '))
        aligned_put(&work->next, step->character, text->spans[part->begin]);
    for (size_t at = part->begin; at < part->end; at += bytes) {
        const uint32_t c = aligned_character(text, at, &bytes);
        aligned_put(&work->next, c == ' ' ? step->character : c, text->spans[at]);
    }
    return MHA_OK;
}

static mha_status metaspace(const pre_tokenizer_step *step, text_work *work)
{
    const mha_status status = rewrite_all(step, replace_spaces, work);
    if (status != MHA_OK || !step->divides)
        return status;
    return divide(step, NULL, SPLIT_MERGED_WITH_NEXT, work);
}

mha_status pre_tokenizer_apply(const pre_tokenizer_step *step, text_work *work)
{
    switch (step->kind) {
    case PRE_BYTE_LEVEL:
        return byte_level(step, work);
    case PRE_METASPACE:
        return metaspace(step, work);
    default:
        return divide(step, step->pattern, step->behavior, work);
    }
}
