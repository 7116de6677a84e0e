/* SPDX-License-Identifier: MIT */
/* Converts between text and tokens, and collects the vocabulary of a language. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/corpus.h"

/* ---------------------------------------------------------- vocabulary ----- */

static void add_word(void *context, const char *word)
{
    corpus_vocabulary *vocabulary = context;
    for (int n = 0; n < vocabulary->count; n++)
        if (strcmp(vocabulary->words[n], word) == 0)
            return;
    if (vocabulary->count < CORPUS_WORDS_MAX)
        vocabulary->words[vocabulary->count++] = word;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void corpus_vocabulary_fill(corpus_vocabulary *vocabulary, corpus_side side)
{
    vocabulary->count = 0;
    lexicon_each_word((int)side, add_word, vocabulary);
    qsort(vocabulary->words, (size_t)vocabulary->count, sizeof vocabulary->words[0], compare_words);
}

int corpus_vocabulary_find(const corpus_vocabulary *vocabulary, const char *word)
{
    const char *const *found = bsearch(&word, vocabulary->words, (size_t)vocabulary->count,
                                       sizeof vocabulary->words[0], compare_words);
    return found == NULL ? -1 : (int)(found - vocabulary->words);
}

/* -------------------------------------------------------------- tokens ----- */

typedef struct tokeniser {
    corpus_side side;
    char *buffer;
    size_t used;
    corpus_sentence *sentence;
    bool full;
} tokeniser;

/* Copies a token into the buffer; sets `full` if there is no room. */
static void add_token(tokeniser *c, const char *text, size_t length)
{
    if (length == 0)
        return;
    if (c->sentence->count == CORPUS_TOKENS_MAX || c->used + length + 1 > CORPUS_TEXT_MAX) {
        c->full = true;
        return;
    }
    char *token = c->buffer + c->used;
    memcpy(token, text, length);
    token[length] = '\0';
    c->used += length + 1;
    c->sentence->tokens[c->sentence->count++] = token;
}

/* "don't" becomes "do not". Other contractions ("can't") are not words of the corpus. */
static void add_english(tokeniser *c, const char *text, size_t length)
{
    const bool negated = length > 3 && strncmp(text + length - 3, "n't", 3) == 0;
    if (!negated) {
        add_token(c, text, length);
        return;
    }
    if (length == 5 && strncmp(text, "won't", 5) == 0)
        add_token(c, "will", 4);
    else
        add_token(c, text, length - 3);
    add_token(c, "not", 3);
}

/* Splits after every apostrophe, except in "aujourd'hui". */
static void add_french(tokeniser *c, const char *text, size_t length)
{
    static const char today[] = "aujourd'hui";
    const char *apostrophe = memchr(text, '\'', length);
    const bool whole = length == sizeof today - 1 && strncmp(text, today, length) == 0;
    if (apostrophe == NULL || whole) {
        add_token(c, text, length);
        return;
    }
    const size_t head = (size_t)(apostrophe - text) + 1;
    add_token(c, text, head);
    add_french(c, apostrophe + 1, length - head);
}

static void add_word_of(tokeniser *c, const char *text, size_t length)
{
    if (c->side == CORPUS_ENGLISH)
        add_english(c, text, length);
    else
        add_french(c, text, length);
}

/* Converts ASCII letters to lower case and typographic apostrophes to "'". Returns the length, or
 * SIZE_MAX if the text is too long. */
static size_t simplify(const char *text, char plain[CORPUS_TEXT_MAX])
{
    size_t length = 0;
    while (*text != '\0') {
        if (length + 1 >= CORPUS_TEXT_MAX)
            return SIZE_MAX;
        if (strncmp(text, "\u2019", 3) == 0) {
            plain[length++] = '\'';
            text += 3;
        } else {
            plain[length++] = (char)tolower((unsigned char)*text++);
        }
    }
    plain[length] = '\0';
    return length;
}

bool corpus_tokenise(corpus_side side, const char *text, char buffer[CORPUS_TEXT_MAX],
                     corpus_sentence *sentence)
{
    static const char breaks[] = " \t\r\n.,;:!?\"";
    char plain[CORPUS_TEXT_MAX] = "";
    tokeniser c = {.side = side, .buffer = buffer, .sentence = sentence};
    sentence->count = 0;
    if (simplify(text, plain) == SIZE_MAX)
        return false;
    for (const char *at = plain; *at != '\0';) {
        const size_t length = strcspn(at, breaks);
        add_word_of(&c, at, length);
        at += length;
        if (*at == '?')
            add_token(&c, "?", 1);
        at += *at != '\0';
    }
    return !c.full;
}

void corpus_detokenise(corpus_side side, const corpus_sentence *sentence,
                       char text[CORPUS_TEXT_MAX])
{
    size_t used = 0;
    for (int n = 0; n < sentence->count; n++) {
        const char *token = sentence->tokens[n];
        const size_t length = strlen(token);
        const bool tight = used == 0 || text[used - 1] == '\'' ||
                           (side == CORPUS_ENGLISH && strcmp(token, "?") == 0);
        if (used + length + 2 > CORPUS_TEXT_MAX)
            break;
        if (!tight)
            text[used++] = ' ';
        memcpy(text + used, token, length);
        used += length;
    }
    text[used] = '\0';
}
