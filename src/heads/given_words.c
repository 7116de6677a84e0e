/* SPDX-License-Identifier: MIT */
/* Words that are separated by spaces, as the text that a model reads (given_words.h). */
#include "heads/given_words.h"

#include <stdlib.h>
#include <string.h>

typedef struct word_span {
    const char *text;
    size_t length;
} word_span;

/* Takes the next word off `rest`. */
static bool take_word(word_span *rest, word_span *word)
{
    size_t skipped = 0;
    while (skipped < rest->length && strchr(" \t\r", rest->text[skipped]) != NULL)
        skipped++;
    rest->text += skipped;
    rest->length -= skipped;
    *word = (word_span){rest->text, 0};
    while (word->length < rest->length && strchr(" \t\r", rest->text[word->length]) == NULL)
        word->length++;
    rest->text += word->length;
    rest->length -= word->length;
    return word->length > 0;
}

/* ----------------------------------------------------------- apostrophes ----- */

static const char curly[] = "\xe2\x80\x99";

static bool begins_with(word_span w, const char *with)
{
    return w.length >= strlen(with) && memcmp(w.text, with, strlen(with)) == 0;
}

static bool ends_with(word_span w, const char *with)
{
    return w.length > strlen(with) &&
           memcmp(w.text + w.length - strlen(with), with, strlen(with)) == 0;
}

static bool is_elided(word_span w)
{
    return ends_with(w, "'") || ends_with(w, curly);
}

void elision_count_add(elision_count *count, const char *line, size_t length)
{
    word_span rest = {line, length}, word;
    while (take_word(&rest, &word)) {
        count->words++;
        count->elided += is_elided(word);
    }
}

bool elision_count_holds(const elision_count *count)
{
    return count->elided > 0 && count->elided * 100 >= count->words;
}

/* ----------------------------------------------------------------- spaces ----- */

/* Whether all bytes of a word are among these. */
static bool is_all(word_span w, const char *signs)
{
    for (size_t n = 0; n < w.length; n++)
        if (strchr(signs, w.text[n]) == NULL)
            return false;
    return true;
}

/* The end of an English contraction. A word in quotation marks is none. */
static bool is_contraction(word_span w)
{
    static const char *const ends[] = {"s", "ll", "re", "ve", "d", "m", "t"};
    const size_t before = begins_with(w, "n") ? 1 : 0;
    const word_span rest = {w.text + before, w.length - before};
    const size_t sign = begins_with(rest, "'") ? 1 : begins_with(rest, curly) ? strlen(curly) : 0;
    for (size_t n = 0; sign > 0 && n < sizeof ends / sizeof ends[0]; n++)
        if (rest.length - sign == strlen(ends[n]) &&
            memcmp(rest.text + sign, ends[n], strlen(ends[n])) == 0)
            return (before == 1) == (ends[n][0] == 't');
    return false;
}

static bool joins_left(word_span w, bool elided)
{
    return is_all(w, elided ? ",.)]}" : ",.)]};:!?") || begins_with(w, "\xe2\x80\xa6") ||
           is_contraction(w);
}

static bool joins_right(word_span w)
{
    return is_all(w, "([{") || is_elided(w);
}

/* ------------------------------------------------------------------- words ----- */

static int count_words(word_span rest)
{
    word_span word;
    int count = 0;
    while (take_word(&rest, &word))
        count++;
    return count;
}

bool given_words_make(given_words *w, const char *line, size_t length, bool elided)
{
    word_span rest = {line, length}, word, before = {"(", 1};
    const size_t count = (size_t)count_words(rest);
    size_t used = 0;
    *w = (given_words){.begins = calloc(count + 1, sizeof *w->begins),
                       .ends = calloc(count + 1, sizeof *w->ends),
                       .text = malloc(length + count + 1)};
    if (!w->begins || !w->ends || !w->text)
        return false;
    while (take_word(&rest, &word)) {
        if (!joins_right(before) && !joins_left(word, elided))
            w->text[used++] = ' ';
        w->begins[w->count] = (int)used;
        memcpy(w->text + used, word.text, word.length);
        used += word.length;
        w->ends[w->count++] = (int)used;
        before = word;
    }
    w->text[used] = '\0';
    return true;
}

void given_words_free(given_words *w)
{
    free(w->begins);
    free(w->ends);
    free(w->text);
    *w = (given_words){.count = 0};
}

void given_words_of_tokens(const given_words *w, const subject_side *side, token_words *to)
{
    int first = 0;
    for (int n = 0; n < side->count; n++) {
        to[n] = (token_words){0, 0};
        if (side->marks[n])
            continue;
        while (first < w->count && w->ends[first] <= side->begins[n])
            first++;
        int end = first;
        while (end < w->count && w->begins[end] < side->ends[n])
            end++;
        if (end == first && first < w->count)
            end++; /* the space before a word, as a token of its own */
        to[n] = (token_words){first, end};
    }
}
