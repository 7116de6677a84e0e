/* SPDX-License-Identifier: MIT */
/*
 * The tokenizer 13a replaces text in several passes, each of which goes over the result of the one
 * before: that spaces which one pass inserts are characters for the next decides how ".5" or "5.."
 * are separated. So this file has the same passes.
 */
#include "translator/metric_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

void metric_text_free(metric_text *text)
{
    free(text->bytes[0]);
    free(text->bytes[1]);
    free(text->symbols);
    *text = (metric_text){.symbols = NULL};
}

static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ------------------------------------------------------------ passes of 13a ---- */

/* Appends to one of the two buffers. */
static bool put(metric_text *text, int to, const char *bytes, size_t length)
{
    char *const grown =
        mhai_array_grow(text->bytes[to], &text->room[to], text->used[to] + length + 1, 1);
    if (grown == NULL)
        return false;
    text->bytes[to] = grown;
    memcpy(grown + text->used[to], bytes, length);
    text->used[to] += length;
    grown[text->used[to]] = '\0';
    return true;
}

/* Replaces a text everywhere, from one buffer to the other. */
static bool replace_all(metric_text *text, int from, const char *old, const char *new)
{
    const char *at = text->bytes[from], *next;
    text->used[!from] = 0;
    for (; (next = strstr(at, old)) != NULL; at = next + strlen(old))
        if (!put(text, !from, at, (size_t)(next - at)) || !put(text, !from, new, strlen(new)))
            return false;
    return put(text, !from, at, strlen(at));
}

/*
 * Patterns of 13a. Each looks at the bytes at `at`; if they match, it writes what replaces them, at
 * most PATTERN_BYTES, and returns how many bytes it replaces, 1 or 2. Else it returns 0. That a
 * byte is not a digit and that a character is not a digit are the same in UTF-8.
 */
enum { PATTERN_BYTES = 4 };
typedef size_t pattern(const char *at, char replaced[PATTERN_BYTES + 1]);

static size_t separate(char replaced[PATTERN_BYTES + 1], const char *format, const char *at,
                       size_t length)
{
    for (; *format != '\0'; format++)
        *replaced++ = *format == '1' ? at[0] : *format == '2' ? at[1] : ' ';
    *replaced = '\0';
    return length;
}

/* ASCII punctuation but ' - . and , is separated everywhere. */
static size_t symbol_anywhere(const char *at, char replaced[PATTERN_BYTES + 1])
{
    const unsigned char c = (unsigned char)*at;
    const bool matches = (c >= '{' && c <= '~') || (c >= '[' && c <= '`') ||
                         (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
                         (c >= ':' && c <= '@') || c == '/';
    return matches ? separate(replaced, " 1 ", at, 1) : 0;
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

static size_t stop_after_no_digit(const char *at, char replaced[PATTERN_BYTES + 1])
{
    return !is_digit(at[0]) && is_stop(at[1]) ? separate(replaced, "1 2 ", at, 2) : 0;
}

static size_t stop_before_no_digit(const char *at, char replaced[PATTERN_BYTES + 1])
{
    const bool matches = is_stop(at[0]) && at[1] != '\0' && !is_digit(at[1]);
    return matches ? separate(replaced, " 1 2", at, 2) : 0;
}

static size_t dash_after_digit(const char *at, char replaced[PATTERN_BYTES + 1])
{
    return is_digit(at[0]) && at[1] == '-' ? separate(replaced, "1 2 ", at, 2) : 0;
}

/* Replaces what matches, from the left and without overlaps, from one buffer to the other. */
static bool replace_pattern(metric_text *text, int from, pattern *matches)
{
    const char *at = text->bytes[from];
    char replaced[PATTERN_BYTES + 1];
    text->used[!from] = 0;
    while (*at != '\0') {
        const size_t length = matches(at, replaced);
        if (!put(text, !from, length ? replaced : at, length ? strlen(replaced) : 1))
            return false;
        at += length ? length : 1;
    }
    return put(text, !from, "", 0);
}

/* Where white space at the end of a text begins. */
static size_t end_of_text(const char *sentence)
{
    size_t at = 0, end = 0;
    uint32_t c;
    while (sentence[at] != '\0') {
        at += text_decode(sentence + at, &c);
        end = is_space(c) ? end : at;
    }
    return end;
}

const char *metric_text_separate(metric_text *text, const char *sentence)
{
    static const char *const literals[][2] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                              {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                              {"&gt;", ">"}};
    static pattern *const patterns[] = {symbol_anywhere, stop_after_no_digit, stop_before_no_digit,
                                        dash_after_digit};
    int from = 0;
    text->used[0] = 0;
    bool fine = put(text, 0, " ", 1) && put(text, 0, sentence, end_of_text(sentence)) &&
                put(text, 0, " ", 1);
    for (size_t n = 0; fine && n < sizeof literals / sizeof literals[0]; n++) {
        if (strstr(text->bytes[from], literals[n][0]) == NULL)
            continue;
        fine = replace_all(text, from, literals[n][0], literals[n][1]);
        from = !from;
    }
    for (size_t n = 0; fine && n < sizeof patterns / sizeof patterns[0]; n++, from = !from)
        fine = replace_pattern(text, from, patterns[n]);
    return fine ? text->bytes[from] : NULL;
}

/* ------------------------------------------------------------------ symbols ---- */

static mha_status add_symbol(metric_text *text, uint32_t symbol)
{
    uint32_t *const grown =
        mhai_array_grow(text->symbols, &text->symbol_room, text->count + 1, sizeof *grown);
    if (grown == NULL)
        return MHA_ERR_MEMORY;
    text->symbols = grown;
    grown[text->count++] = symbol;
    return MHA_OK;
}

static mha_status begin_symbols(metric_text *text, const char *sentence)
{
    text->count = 0;
    return strnlen(sentence, METRIC_TEXT_MAX + 1) > METRIC_TEXT_MAX ? MHA_ERR_LENGTH : MHA_OK;
}

/* Bytes that are not UTF-8 must differ from each other and from all characters. */
static uint32_t character_at(const char *at, size_t length, uint32_t c)
{
    return length == 1 && (unsigned char)*at >= 0x80 ? 0x110000u + (unsigned char)*at : c;
}

mha_status metric_text_characters(metric_text *text, const char *sentence)
{
    mha_status status = begin_symbols(text, sentence);
    while (status == MHA_OK && *sentence != '\0') {
        uint32_t c;
        const size_t length = text_decode(sentence, &c);
        if (!is_space(c))
            status = add_symbol(text, character_at(sentence, length, c));
        sentence += length;
    }
    return status;
}

/* Bytes up to the next white space or the end. */
static size_t word_length(const char *word)
{
    size_t at = 0;
    uint32_t c;
    while (word[at] != '\0') {
        const size_t length = text_decode(word + at, &c);
        if (is_space(c))
            break;
        at += length;
    }
    return at;
}

/* The node of a word; `adds` is NULL to find words only. */
static int32_t word_node(const char *word, size_t length, const ngram_trie *trie, ngram_trie *adds)
{
    int32_t node = TRIE_WORDS;
    for (size_t n = 0; n < length && node >= 0; n++) {
        const uint32_t byte = (unsigned char)word[n];
        node = adds ? ngram_trie_add(adds, node, byte) : ngram_trie_find(trie, node, byte);
    }
    return node;
}

static mha_status read_words(metric_text *text, metric_words words, const char *sentence,
                             const ngram_trie *trie, ngram_trie *adds)
{
    mha_status status = begin_symbols(text, sentence);
    if (status != MHA_OK)
        return status;
    const char *at = words == METRIC_WORDS_13A ? metric_text_separate(text, sentence) : sentence;
    if (at == NULL)
        return MHA_ERR_MEMORY;
    while (status == MHA_OK && *at != '\0') {
        uint32_t c;
        const size_t length = word_length(at);
        const int32_t node = length ? word_node(at, length, trie, adds) : METRIC_NO_WORD;
        if (length && node < 0 && adds)
            status = MHA_ERR_MEMORY;
        else if (length)
            status = add_symbol(text, (uint32_t)node);
        at += length ? length : text_decode(at, &c);
    }
    return status;
}

mha_status metric_text_say_words(metric_text *text, metric_words words, const char *sentence,
                                 ngram_trie *trie)
{
    return read_words(text, words, sentence, trie, trie);
}

mha_status metric_text_find_words(metric_text *text, metric_words words, const char *sentence,
                                  const ngram_trie *trie)
{
    return read_words(text, words, sentence, trie, NULL);
}
