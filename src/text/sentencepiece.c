/* SPDX-License-Identifier: MIT */
/*
 * The SentencePiece tokenizer (sentencepiece.h): a model becomes a tokenizer, and a text becomes
 * tokens in three steps: normalise (sentencepiece_normalize.c), split by pairs
 * (sentencepiece_merge.c) or by scores (unigram.c), and here: unknown characters, ids and offsets.
 * sentencepiece_open.c and sentencepiece_marian.c read the files, sentencepiece_decode.c makes
 * texts again.
 */
#include "text/sentencepiece.h"

#include <stdlib.h>
#include <string.h>

#include "text/sentencepiece_parts.h"

/* Whether pieces were counted and numbered: false if out of memory. */
static bool number_pieces(sentencepiece *sp)
{
    const vocabulary *const v = sp->model.vocabulary;
    const int32_t size = vocab_size(v);
    sp->unused_numbers = calloc((size_t)size + 1, sizeof *sp->unused_numbers);
    if (sp->unused_numbers == NULL)
        return false;
    for (int32_t id = 0; id < size; id++) {
        size_t length = 0;
        vocab_piece(v, id, &length);
        if (length > sp->longest_piece)
            sp->longest_piece = length;
        if (vocab_flags(v, id) & PIECE_UNUSED)
            sp->unused_numbers[id] = sp->unused_count++;
    }
    for (int byte = 0; byte < 256; byte++)
        sp->bytes[byte] = vocab_byte_id(v, (unsigned char)byte);
    return true;
}

mha_status sentencepiece_create(sentencepiece **sp, sentencepiece_model *model)
{
    sentencepiece *const made = calloc(1, sizeof *made);
    *sp = NULL;
    if (made == NULL) {
        sentencepiece_model_free(model);
        return MHA_ERR_MEMORY;
    }
    made->model = *model;
    memset(model, 0, sizeof *model);
    bool done = piece_trie_create(&made->user_symbols, made->model.vocabulary,
                                  (piece_filter){PIECE_USER, 0}) &&
                number_pieces(made);
    if (done && made->model.kind == SENTENCEPIECE_UNIGRAM) {
        made->unigram =
            unigram_create_sentencepiece(made->model.vocabulary, made->model.unknown_id);
        done = made->unigram != NULL;
    }
    if (!done) {
        sentencepiece_free(made);
        return MHA_ERR_MEMORY;
    }
    made->adds_begin = made->model.kind == SENTENCEPIECE_BPE && made->model.begin_id >= 0;
    made->adds_end = made->model.begin_id < 0 && made->model.end_id >= 0;
    *sp = made;
    return MHA_OK;
}

void sentencepiece_free(sentencepiece *sp)
{
    if (sp == NULL)
        return;
    unigram_free(sp->unigram);
    piece_trie_free(&sp->user_symbols);
    sentencepiece_model_free(&sp->model);
    vocab_free(sp->own_ids);
    free(sp->unused_numbers);
    free(sp);
}

const vocabulary *sentencepiece_vocabulary(const sentencepiece *sp)
{
    return sp->own_ids != NULL ? sp->own_ids : sp->model.vocabulary;
}

sentencepiece_info sentencepiece_get_info(const sentencepiece *sp)
{
    const sentencepiece_model *const model = &sp->model;
    sentencepiece_info info = {.kind = model->kind,
                               .unknown_id = model->unknown_id,
                               .begin_id = model->begin_id,
                               .end_id = model->end_id,
                               .pad_id = model->pad_id,
                               .adds_begin = sp->adds_begin,
                               .adds_end = sp->adds_end};
    if (sp->own_ids != NULL) {
        info.unknown_id = sp->own_unknown_id;
        info.begin_id = -1;
        info.end_id = sp->own_end_id;
        info.pad_id = sp->own_pad_id;
    }
    return info;
}

/* The id of a piece of the model, or of an unknown text, in the vocabulary that callers see. */
static int32_t own_id(const sentencepiece *sp, int32_t id, const char *text, size_t length)
{
    if (sp->own_ids == NULL)
        return id;
    const int32_t own = vocab_find(sp->own_ids, text, length);
    return own >= 0 ? own : sp->own_unknown_id;
}

/* Whether a token continues the word of the one before it: there is no space between them. */
static uint32_t continues(const sentencepiece *sp, const normalized_text *from, size_t begin)
{
    const char *const space = sp->model.escapes_spaces ? SPACE_SYMBOL : " ";
    const size_t bytes = strlen(space);
    if (begin == 0)
        return 0;
    if (sp->model.space_is_suffix)
        begin = begin < bytes ? 0 : begin - bytes;
    const bool fits = from->length - begin >= bytes;
    return fits && memcmp(from->text + begin, space, bytes) == 0 ? 0 : MHA_TOKEN_CONTINUES;
}

static void add_token(const sentencepiece *sp, const normalized_text *from, const mha_token *token,
                      size_t base, token_list *list)
{
    const int32_t id = own_id(sp, token->id, from->text + token->begin, token->end - token->begin);
    const vocabulary *const v = sentencepiece_vocabulary(sp);
    const uint32_t flags = vocab_flags(v, id) & PIECE_UNKNOWN ? MHA_TOKEN_UNKNOWN : 0;
    token_list_add(list, id, flags | continues(sp, from, token->begin),
                   base + from->origins[token->begin], base + from->origins[token->end]);
}

/* The last byte has the offsets of the character, as in the library; those before it are empty. */
static void add_bytes(const sentencepiece *sp, const normalized_text *from, const mha_token *token,
                      size_t base, token_list *list)
{
    const size_t begin = base + from->origins[token->begin];
    for (size_t n = token->begin; n < token->end; n++) {
        const unsigned char byte = (unsigned char)from->text[n];
        size_t length = 0;
        const char *const piece = vocab_piece(sp->model.vocabulary, sp->bytes[byte], &length);
        const size_t end = n + 1 == token->end ? base + from->origins[token->end] : begin;
        const uint32_t flags =
            n > token->begin ? MHA_TOKEN_CONTINUES : continues(sp, from, token->begin);
        token_list_add(list, own_id(sp, sp->bytes[byte], piece, length), flags, begin, end);
    }
}

/* Adds the tokens of a normalised text. Neighbouring unknown characters are one token, unless there
 * are bytes. */
static void add_tokens(const sentencepiece *sp, const normalized_text *from,
                       const token_list *tokens, size_t base, token_list *list)
{
    for (ptrdiff_t n = 0; n < tokens->count; n++) {
        mha_token token = tokens->tokens[n];
        const bool unknown = token.id == sp->model.unknown_id;
        if (unknown && sp->model.byte_fallback) {
            add_bytes(sp, from, &token, base, list);
            continue;
        }
        for (; unknown && n + 1 < tokens->count && tokens->tokens[n + 1].id == token.id; n++)
            token.end = tokens->tokens[n + 1].end;
        add_token(sp, from, &token, base, list);
    }
}

/* Marian: a text may begin with the mark of a language, which is one token. Returns its bytes. */
static size_t add_language(const sentencepiece *sp, const char *text, size_t length,
                           token_list *list)
{
    if (sp->own_ids == NULL || length < 2 || memcmp(text, ">>", 2) != 0)
        return 0;
    size_t bytes = 4;
    while (bytes <= length && memcmp(text + bytes - 2, "<<", 2) != 0)
        bytes++;
    if (bytes > length)
        return 0;
    const int32_t id = own_id(sp, -1, text, bytes);
    token_list_add(list, id, id == sp->own_unknown_id ? MHA_TOKEN_UNKNOWN : MHA_TOKEN_SPECIAL, 0,
                   bytes);
    return bytes;
}

void sentencepiece_encode(const sentencepiece *sp, const char *text, size_t length,
                          token_list *list)
{
    const size_t base = add_language(sp, text, length, list);
    normalized_text normalized = sentencepiece_normalize(sp, text + base, length - base);
    token_list tokens = {0};
    tokens.failed = normalized.failed || list->failed;
    if (sp->unigram != NULL)
        unigram_encode(sp->unigram, normalized.text, normalized.length, &tokens);
    else
        sentencepiece_merge(sp, normalized.text, normalized.length, &tokens);
    list->failed = tokens.failed;
    add_tokens(sp, &normalized, &tokens, base, list);
    token_list_free(&tokens);
    normalized_text_free(&normalized);
}
