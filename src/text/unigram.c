/* SPDX-License-Identifier: MIT */
/*
 * The unigram model (unigram.h). One walk through the text keeps, for every byte, the best way to
 * write the text up to there; the pieces are then read off backwards. SentencePiece calls this for
 * whole texts (sentencepiece.c), the pipeline of tokenizer.json for every part of one.
 */
#include "text/unigram.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/piece_trie.h"

struct unigram {
    const vocabulary *vocabulary;
    piece_trie trie;
    double *scores; /* by id */
    double unknown_score;
    int32_t unknown_id;
    bool rounds; /* as SentencePiece sums */
    bool fuses;  /* neighbouring unknown characters are one token */
    bool has_bytes;
    int32_t bytes[256];
};

static const double unknown_penalty = 10;

int32_t vocab_byte_id(const vocabulary *v, unsigned char byte)
{
    char piece[8];
    const int length = snprintf(piece, sizeof piece, "<0x%02X>", byte);
    return vocab_find(v, piece, (size_t)length);
}

size_t character_length(const char *text, size_t length)
{
    static const unsigned char lengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    const size_t n = lengths[(unsigned char)text[0] >> 4];
    return n < length ? n : length;
}

static unigram *create(const vocabulary *v, int32_t unknown_id, piece_filter filter)
{
    unigram *const model = calloc(1, sizeof *model);
    const int32_t size = vocab_size(v);
    if (model == NULL)
        return NULL;
    model->vocabulary = v;
    model->unknown_id = unknown_id;
    model->scores = malloc(((size_t)size + 1) * sizeof *model->scores);
    if (model->scores == NULL || !piece_trie_create(&model->trie, v, filter)) {
        unigram_free(model);
        return NULL;
    }
    for (int32_t id = 0; id < size; id++)
        model->scores[id] = vocab_score(v, id);
    return model;
}

unigram *unigram_create(const vocabulary *v, int32_t unknown_id, bool byte_fallback)
{
    unigram *const model = create(v, unknown_id, (piece_filter){0, 0});
    double smallest = INFINITY;
    if (model == NULL)
        return NULL;
    for (int32_t id = 0; id < vocab_size(v); id++) {
        if (vocab_piece(v, id, NULL) != NULL && model->scores[id] < smallest)
            smallest = model->scores[id];
    }
    model->unknown_score = smallest - unknown_penalty;
    model->fuses = true;
    model->has_bytes = byte_fallback;
    for (int byte = 0; byte < 256; byte++)
        model->bytes[byte] = vocab_byte_id(v, (unsigned char)byte);
    return model;
}

/* A user's symbol has a score so large that it is always taken: see SentencePiece. */
unigram *unigram_create_sentencepiece(const vocabulary *v, int32_t unknown_id)
{
    enum { LEFT_OUT = PIECE_SPECIAL | PIECE_UNKNOWN | PIECE_BYTE | PIECE_UNUSED };
    unigram *const model = create(v, unknown_id, (piece_filter){0, LEFT_OUT});
    float smallest = FLT_MAX, largest = FLT_MIN;
    if (model == NULL)
        return NULL;
    for (int32_t id = 0; id < vocab_size(v); id++) {
        const float score = (float)vocab_score(v, id);
        if (vocab_piece(v, id, NULL) == NULL || vocab_flags(v, id) != 0)
            continue;
        smallest = score < smallest ? score : smallest;
        largest = score > largest ? score : largest;
    }
    for (int32_t id = 0; id < vocab_size(v); id++) {
        size_t length = 0;
        if (vocab_flags(v, id) & PIECE_USER && vocab_piece(v, id, &length) != NULL)
            model->scores[id] = (double)((float)length * largest) - 0.1;
    }
    model->unknown_score = (double)(smallest - (float)unknown_penalty);
    model->rounds = true;
    return model;
}

void unigram_free(unigram *model)
{
    if (model == NULL)
        return;
    piece_trie_free(&model->trie);
    free(model->scores);
    free(model);
}

/* The best way to write the text up to some byte: its score, and its last piece. */
typedef struct path {
    double score;
    uint32_t begin; /* of the last piece; NO_PATH: no way known so far */
    int32_t id;
} path;

#define NO_PATH UINT32_MAX

static void offer(const unigram *model, path *at, double score, size_t begin, int32_t id)
{
    const double sum = model->rounds ? (double)(float)score : score;
    if (at->begin == NO_PATH || sum > at->score)
        *at = (path){sum, (uint32_t)begin, id};
}

/* Offers all pieces that begin at `begin`, and the unknown character if none of them is as long as
 * the character. Returns where the next character begins. */
static size_t offer_pieces(const unigram *model, const char *text, size_t length, size_t begin,
                           path *paths)
{
    const size_t next = begin + character_length(text + begin, length - begin);
    const double score = paths[begin].score;
    bool has_character = false;
    int32_t node = PIECE_TRIE_ROOT;
    for (size_t end = begin; end < length;) {
        node = piece_trie_child(&model->trie, node, (unsigned char)text[end++]);
        if (node < 0)
            break;
        const int32_t id = model->trie.ids[node];
        if (id < 0)
            continue;
        offer(model, paths + end, score + model->scores[id], begin, id);
        has_character |= end == next;
    }
    if (!has_character)
        offer(model, paths + next, score + model->unknown_score, begin, model->unknown_id);
    return next;
}

static bool has_all_bytes(const unigram *model, const char *text, size_t begin, size_t end)
{
    bool all = model->has_bytes;
    for (size_t n = begin; all && n < end; n++)
        all = model->bytes[(unsigned char)text[n]] >= 0;
    /* The piece of the unknown mark, written in the text, is that piece. */
    return all && vocab_find(model->vocabulary, text + begin, end - begin) < 0;
}

static void add_unknown(const unigram *model, const char *text, size_t begin, size_t end,
                        token_list *list)
{
    if (has_all_bytes(model, text, begin, end)) {
        for (size_t n = begin; n < end; n++)
            token_list_add(list, model->bytes[(unsigned char)text[n]], 0, begin, end);
    } else if (model->unknown_id >= 0) {
        token_list_add(list, model->unknown_id, MHA_TOKEN_UNKNOWN, begin, end);
    }
}

/* Reverses the links of the best way: afterwards paths[n].begin, where n is the first byte of a
 * piece, is the end of that piece, and paths[n].id is its id. */
static void reverse_links(path *paths, size_t length)
{
    size_t end = length;
    int32_t id = paths[end].id;
    uint32_t begin = paths[end].begin;
    while (end > 0) {
        const uint32_t next_begin = paths[begin].begin;
        const int32_t next_id = paths[begin].id;
        paths[begin].begin = (uint32_t)end;
        paths[begin].id = id;
        end = begin;
        begin = next_begin;
        id = next_id;
    }
}

static void add_tokens(const unigram *model, const char *text, size_t length, const path *paths,
                       token_list *list)
{
    for (size_t begin = 0; begin < length;) {
        size_t end = paths[begin].begin;
        const int32_t id = paths[begin].id;
        if (id != model->unknown_id) {
            token_list_add(list, id, 0, begin, end);
        } else {
            while (model->fuses && end < length && paths[end].id == id)
                end = paths[end].begin;
            add_unknown(model, text, begin, end, list);
        }
        begin = end;
    }
}

void unigram_encode(const unigram *model, const char *normalized, size_t length, token_list *list)
{
    if (length == 0 || list->failed)
        return;
    path *const paths = length < UINT32_MAX ? malloc((length + 1) * sizeof *paths) : NULL;
    if (paths == NULL) {
        list->failed = true;
        return;
    }
    for (size_t n = 0; n <= length; n++)
        paths[n] = (path){0, NO_PATH, -1};
    for (size_t begin = 0; begin < length;)
        begin = offer_pieces(model, normalized, length, begin, paths);
    reverse_links(paths, length);
    add_tokens(model, normalized, length, paths, list);
    free(paths);
}
