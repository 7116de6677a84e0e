/* SPDX-License-Identifier: MIT */
/*
 * Learns a vocabulary (bpe_learn.h). Lines go through the steps of a tokenizer that has been opened
 * from the same tokenizer.json, without merges, as the result will be; so words are the same.
 */
#include "text/bpe_learn.h"

#include "base/replace_file.h"
#include "base/utf8.h"
#include "format/json_reader.h"
#include "text/tokenizer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_POINTS = 0x110000 };

struct bpe_learner {
    mha_tokenizer *steps;
    text_work work;
    word_counts words;
};

static mha_status no_memory(char *message, size_t size)
{
    if (message && size)
        snprintf(message, size, "out of memory for learning a vocabulary");
    return MHA_ERR_MEMORY;
}

/* ----------------------------------------------------------------- words ----- */

/* A tokenizer of marks and bytes. */
static mha_status open_steps(mha_tokenizer **steps, char *message, size_t size)
{
    bpe_learned empty = {0};
    vocabulary *const v = learned_vocabulary_begin();
    if (v)
        empty.json = tokenizer_json_write(v, &(bpe_pair_list){0}, &empty.length);
    vocab_free(v);
    const mha_status status =
        empty.json ? bpe_learned_open(&empty, steps, message, size) : no_memory(message, size);
    bpe_learned_free(&empty);
    return status;
}

mha_status bpe_learner_create(bpe_learner **learner, char *message, size_t message_size)
{
    bpe_learner *const l = calloc(1, sizeof *l);
    *learner = NULL;
    if (!l)
        return no_memory(message, message_size);
    mha_status status = open_steps(&l->steps, message, message_size);
    if (status == MHA_OK && !text_work_create(&l->work))
        status = no_memory(message, message_size);
    if (status == MHA_OK)
        *learner = l;
    else
        bpe_learner_free(l);
    return status;
}

void bpe_learner_free(bpe_learner *learner)
{
    if (!learner)
        return;
    mha_tokenizer_free(learner->steps);
    text_work_free(&learner->work);
    word_counts_free(&learner->words);
    free(learner);
}

mha_status bpe_learner_add(bpe_learner *learner, const char *text, size_t length)
{
    text_work *const work = &learner->work;
    if (length == 0)
        return MHA_OK;
    if (!mhai_utf8_valid(text, length))
        return MHA_ERR_FORMAT;
    const mha_status status = tokenizer_divide(learner->steps, text, length, true, work);
    if (status != MHA_OK)
        return status;
    for (size_t n = 0; n < work->splits.count; n++) {
        const split *const word = &work->splits.splits[n];
        if (!word_counts_add(&learner->words, work->text.text + word->begin,
                             word->end - word->begin))
            return MHA_ERR_MEMORY;
    }
    return MHA_OK;
}

/* ------------------------------------------------------------ characters ----- */

typedef struct counted_character {
    uint32_t c;
    uint64_t count;
} counted_character;

static int by_count(const void *left, const void *right)
{
    const counted_character *const a = left, *const b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->c < b->c ? -1 : a->c > b->c;
}

static int by_code_point(const void *left, const void *right)
{
    const counted_character *const a = left, *const b = right;
    return a->c < b->c ? -1 : a->c > b->c;
}

static void count_characters(const word_counts *words, uint64_t *counts)
{
    for (size_t n = 0; n < words->count; n++) {
        const counted_word *const word = &words->words[n];
        for (size_t at = 0; at < word->length;) {
            uint32_t c = 0;
            at += utf8_decode(words->bytes + word->at + at, word->length - at, &c);
            counts[c] += word->count;
        }
    }
}

/* The characters that become pieces, by their code points. NULL: out of memory. */
static counted_character *choose_characters(const word_counts *words, uint64_t min_count,
                                            size_t limit, size_t *count)
{
    uint64_t *const counts = calloc(CODE_POINTS, sizeof *counts);
    counted_character *const chosen = malloc(CODE_POINTS * sizeof *chosen);
    *count = 0;
    if (counts && chosen) {
        count_characters(words, counts);
        counts[LEARNED_SPACE] = UINT64_MAX;        /* no byte can stand for it: see the decoder */
        for (uint32_t c = 1; c < CODE_POINTS; c++) /* a piece has no zero byte */
            if (counts[c] >= min_count)
                chosen[(*count)++] = (counted_character){c, counts[c]};
        qsort(chosen, *count, sizeof *chosen, by_count);
        *count = *count < limit ? *count : limit;
        qsort(chosen, *count, sizeof *chosen, by_code_point);
    }
    free(counts);
    if (counts)
        return chosen;
    free(chosen);
    return NULL;
}

/* Adds the pieces of characters; returns their ids by code point. NULL: out of memory. */
static int32_t *add_characters(const word_counts *words, const bpe_learn_options *options,
                               vocabulary *v)
{
    const uint64_t min_count = options->min_character_count ? options->min_character_count : 5;
    const size_t room = (size_t)(options->vocabulary_size - LEARNED_CHARACTERS);
    const size_t limit = room - room / 2;
    size_t count;
    counted_character *const chosen = choose_characters(words, min_count, limit, &count);
    int32_t *const pieces = malloc(CODE_POINTS * sizeof *pieces);
    bool ok = chosen && pieces;
    if (ok)
        memset(pieces, 0xff, CODE_POINTS * sizeof *pieces);
    for (size_t n = 0; n < count && ok; n++) {
        char bytes[4];
        const int32_t id = vocab_size(v);
        pieces[chosen[n].c] = id;
        ok = vocab_add(v, id, bytes, utf8_encode(bytes, chosen[n].c), 0, 0);
    }
    free(chosen);
    if (ok)
        return pieces;
    free(pieces);
    return NULL;
}

/* ---------------------------------------------------------------- result ----- */

static mha_status learn(const word_counts *words, const bpe_learn_options *options, vocabulary *v,
                        bpe_learned *learned)
{
    const bpe_merge_limits limits = {options->vocabulary_size,
                                     options->min_pair_count ? options->min_pair_count : 2};
    bpe_pair_list merges = {0};
    int32_t *const pieces = add_characters(words, options, v);
    learned->characters = vocab_size(v) - LEARNED_CHARACTERS;
    mha_status status =
        pieces ? bpe_find_merges(words, pieces, &limits, v, &merges) : MHA_ERR_MEMORY;
    if (status == MHA_OK) {
        learned->size = vocab_size(v);
        learned->json = tokenizer_json_write(v, &merges, &learned->length);
        status = learned->json ? MHA_OK : MHA_ERR_MEMORY;
    }
    free(pieces);
    bpe_pair_list_free(&merges);
    return status;
}

mha_status bpe_learner_finish(const bpe_learner *learner, const bpe_learn_options *options,
                              bpe_learned *learned, char *message, size_t message_size)
{
    *learned = (bpe_learned){0};
    if (options->vocabulary_size < LEARNED_MIN || options->vocabulary_size > VOCABULARY_MAX) {
        if (message && message_size)
            snprintf(message, message_size,
                     "a vocabulary of %d pieces is not possible: choose %d to %d, which includes "
                     "%d marks, 256 bytes and the space",
                     (int)options->vocabulary_size, LEARNED_MIN, VOCABULARY_MAX, LEARNED_BYTES);
        return MHA_ERR_SHAPE;
    }
    vocabulary *const v = learned_vocabulary_begin();
    const mha_status status = v ? learn(&learner->words, options, v, learned) : MHA_ERR_MEMORY;
    vocab_free(v);
    if (status == MHA_ERR_MEMORY)
        no_memory(message, message_size);
    else if (status != MHA_OK && message && message_size)
        snprintf(message, message_size,
                 "too much text: its distinct words have more than %u characters",
                 BPE_MERGE_CHARACTERS_MAX);
    return status;
}

void bpe_learned_free(bpe_learned *learned)
{
    free(learned->json);
    *learned = (bpe_learned){0};
}

mha_status bpe_learned_open(const bpe_learned *learned, mha_tokenizer **tokenizer, char *message,
                            size_t message_size)
{
    return tokenizer_open_json(tokenizer, learned->json, learned->length, "tokenizer.json", message,
                               message_size);
}

mha_status bpe_learned_save(const bpe_learned *learned, const char *path, char *message,
                            size_t message_size)
{
    const size_t size = strlen(path) + MHAI_FILE_SUFFIX;
    char *const name = malloc(size);
    if (!name)
        return no_memory(message, message_size);
    int fd, error = mhai_file_open_new(path, name, size, &fd);
    if (!error) {
        error = mhai_file_write(fd, learned->json, learned->length);
        error = mhai_file_finish_new(fd, name, path, error);
    }
    free(name);
    if (error && message && message_size)
        snprintf(message, message_size, "%s: cannot be written: %s", path, strerror(error));
    return error ? MHA_ERR_FILE : MHA_OK;
}
