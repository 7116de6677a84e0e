/* SPDX-License-Identifier: MIT */
/*
 * The public functions of tokenizers, except mha_tokenizer_open(), which is in tokenizer_open.c.
 * tokenizer_encode.c encodes one text; here are the marks around texts, decoding, and the functions
 * for single tokens.
 */
#include "text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

const vocabulary *tokenizer_vocabulary(const mha_tokenizer *t)
{
    return t->sentencepiece ? sentencepiece_vocabulary(t->sentencepiece) : t->v;
}

void mha_tokenizer_free(mha_tokenizer *tokenizer)
{
    mha_tokenizer *const t = tokenizer;
    if (!t)
        return;
    for (size_t n = 0; n < t->normalizer_count; n++)
        normalizer_step_free(&t->normalizers[n]);
    for (size_t n = 0; n < t->pre_count; n++)
        pre_tokenizer_step_free(&t->pre[n]);
    for (size_t n = 0; n < t->decoder_count; n++)
        decoder_step_free(&t->decoders[n]);
    added_tokens_free(&t->raw);
    added_tokens_free(&t->normalized);
    pattern_free(t->word);
    wordpiece_free(&t->wordpiece);
    bpe_free(t->bpe);
    unigram_free(t->unigram);
    sentencepiece_free(t->sentencepiece);
    vocab_free(t->v);
    chat_style_free(&t->chat);
    free(t);
}

ptrdiff_t mha_tokenizer_size(const mha_tokenizer *tokenizer)
{
    return tokenizer ? vocab_size(tokenizer_vocabulary(tokenizer)) : 0;
}

const char *mha_tokenizer_kind(const mha_tokenizer *tokenizer)
{
    const mha_tokenizer *const t = tokenizer;
    if (!t)
        return NULL;
    if (t->sentencepiece)
        return sentencepiece_get_info(t->sentencepiece).kind == SENTENCEPIECE_UNIGRAM
                   ? "SentencePiece unigram"
                   : "SentencePiece BPE";
    switch (t->kind) {
    case MODEL_WORDPIECE:
        return "WordPiece";
    case MODEL_BPE:
        return t->byte_level ? "byte-level BPE" : "BPE";
    case MODEL_UNIGRAM:
        return "unigram";
    default:
        return "word list";
    }
}

/* ---------------------------------------------------------------- encode ----- */

typedef struct text_part {
    const char *text;
    size_t length;
    token_list tokens;
} text_part;

static void append(token_list *list, const token_list *from, int32_t segment)
{
    for (ptrdiff_t n = 0; n < from->count; n++) {
        const mha_token *const token = &from->tokens[n];
        token_list_add(list, token->id, token->flags, token->begin, token->end);
        if (!list->failed)
            list->tokens[list->count - 1].segment = segment;
    }
}

/* The texts and, if they are requested, the marks around them. */
static void fill_template(const mha_tokenizer *t, const text_part *texts, int count, unsigned flags,
                          token_list *list)
{
    const template_list *const template = count == 2 ? &t->pair : &t->single;
    for (int n = 0; n < count && template->count == 0; n++)
        append(list, &texts[n].tokens, n);
    for (size_t n = 0; n < template->count; n++) {
        const template_part part = template->parts[n];
        if (part.id == TEMPLATE_FIRST || part.id == TEMPLATE_SECOND) {
            append(list, &texts[part.id == TEMPLATE_SECOND].tokens, part.id == TEMPLATE_SECOND);
        } else if (flags & MHA_TEXT_MARKS) {
            token_list_add(list, part.id, mha_tokenizer_flags(t, part.id), 0, 0);
            if (!list->failed)
                list->tokens[list->count - 1].segment = part.segment;
        }
    }
}

static mha_status encode_texts(const mha_tokenizer *t, text_part *texts, int count, unsigned flags,
                               const bpe_dropout *dropout, mha_tokens *tokens)
{
    token_list list = {0};
    mha_status status = MHA_OK;
    for (int n = 0; n < count && status == MHA_OK; n++)
        status = tokenizer_encode_text(t, texts[n].text, texts[n].length, flags, dropout,
                                       &texts[n].tokens);
    if (status == MHA_OK)
        fill_template(t, texts, count, flags, &list);
    if (status == MHA_OK && list.failed)
        status = MHA_ERR_MEMORY;
    for (int n = 0; n < count; n++)
        token_list_free(&texts[n].tokens);
    if (status == MHA_OK)
        *tokens = (mha_tokens){list.tokens, list.count};
    else
        token_list_free(&list);
    return status;
}

static bool flags_are_known(unsigned flags, unsigned known)
{
    return (flags & ~known) == 0;
}

static mha_status encode_one(const mha_tokenizer *tokenizer, const char *text, size_t length,
                             unsigned flags, const bpe_dropout *dropout, mha_tokens *tokens)
{
    if (tokens)
        *tokens = (mha_tokens){0};
    if (!tokenizer || !tokens || (!text && length))
        return MHA_ERR_NULL;
    if (!flags_are_known(flags, MHA_TEXT_MARKS | MHA_TEXT_PLAIN) || (dropout && !tokenizer->bpe))
        return MHA_ERR_FLAG;
    if (dropout && !(dropout->probability >= 0 && dropout->probability < 1))
        return MHA_ERR_DROPOUT;
    text_part part = {.text = text, .length = length};
    return encode_texts(tokenizer, &part, 1, flags, dropout, tokens);
}

mha_status mha_tokenizer_encode(const mha_tokenizer *tokenizer, const char *text, size_t length,
                                unsigned flags, mha_tokens *tokens)
{
    return encode_one(tokenizer, text, length, flags, NULL, tokens);
}

mha_status tokenizer_encode_dropout(const mha_tokenizer *tokenizer, const char *text, size_t length,
                                    unsigned flags, const bpe_dropout *dropout, mha_tokens *tokens)
{
    return encode_one(tokenizer, text, length, flags, dropout, tokens);
}

mha_status mha_tokenizer_encode_pair(const mha_tokenizer *tokenizer, const char *first,
                                     size_t first_length, const char *second, size_t second_length,
                                     unsigned flags, mha_tokens *tokens)
{
    if (tokens)
        *tokens = (mha_tokens){0};
    if (!tokenizer || !tokens || (!first && first_length) || (!second && second_length))
        return MHA_ERR_NULL;
    if (!flags_are_known(flags, MHA_TEXT_MARKS | MHA_TEXT_PLAIN))
        return MHA_ERR_FLAG;
    text_part parts[2] = {{.text = first, .length = first_length},
                          {.text = second, .length = second_length}};
    return encode_texts(tokenizer, parts, 2, flags, NULL, tokens);
}

void mha_tokens_free(mha_tokens *tokens)
{
    if (!tokens)
        return;
    free(tokens->tokens);
    *tokens = (mha_tokens){0};
}

/* ---------------------------------------------------------------- decode ----- */

static mha_status collect_pieces(const mha_tokenizer *t, const int32_t *ids, ptrdiff_t count,
                                 bool skip, piece_list *pieces)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        size_t length;
        const char *const piece = vocab_piece(t->v, ids[n], &length);
        if (!piece)
            return MHA_ERR_INDEX;
        if (skip && vocab_flags(t->v, ids[n]) & PIECE_SPECIAL)
            continue;
        text_buffer_add(&pieces->text, piece, length);
        piece_list_end(pieces);
    }
    return pieces->failed ? MHA_ERR_MEMORY : MHA_OK;
}

mha_status mha_tokenizer_decode(const mha_tokenizer *tokenizer, const int32_t *ids, ptrdiff_t count,
                                unsigned flags, char **text, size_t *length)
{
    const mha_tokenizer *const t = tokenizer;
    size_t unused;
    length = length ? length : &unused;
    if (text)
        *text = NULL;
    *length = 0;
    if (!t || !text || (!ids && count))
        return MHA_ERR_NULL;
    if (!flags_are_known(flags, MHA_TEXT_SKIP_MARKS))
        return MHA_ERR_FLAG;
    if (count < 0)
        return MHA_ERR_LENGTH;
    const bool skip = flags & MHA_TEXT_SKIP_MARKS;
    if (t->sentencepiece)
        return sentencepiece_decode(t->sentencepiece, ids, count, skip, text, length);
    piece_list pieces = {0}, next = {0};
    mha_status status = collect_pieces(t, ids, count, skip, &pieces);
    if (status == MHA_OK)
        status = decoder_apply(t->decoders, t->decoder_count, &pieces, &next);
    text_buffer_add(&pieces.text, "", 0); /* a text of nothing is terminated too */
    if (status == MHA_OK && pieces.text.failed)
        status = MHA_ERR_MEMORY;
    if (status == MHA_OK) {
        *text = pieces.text.bytes;
        *length = pieces.text.length;
        pieces.text = (text_buffer){0};
    }
    piece_list_free(&pieces);
    piece_list_free(&next);
    return status;
}

void mha_text_free(char *text)
{
    free(text);
}

/* -------------------------------------------------------------- questions ----- */

const char *mha_tokenizer_piece(const mha_tokenizer *tokenizer, int32_t id)
{
    return tokenizer ? vocab_piece(tokenizer_vocabulary(tokenizer), id, NULL) : NULL;
}

int32_t mha_tokenizer_find(const mha_tokenizer *tokenizer, const char *piece)
{
    if (!tokenizer || !piece)
        return -1;
    return vocab_find(tokenizer_vocabulary(tokenizer), piece, strlen(piece));
}

uint32_t mha_tokenizer_flags(const mha_tokenizer *tokenizer, int32_t id)
{
    const unsigned flags = tokenizer ? vocab_flags(tokenizer_vocabulary(tokenizer), id) : 0;
    return (flags & PIECE_SPECIAL ? MHA_TOKEN_SPECIAL : 0u) |
           (flags & PIECE_UNKNOWN ? MHA_TOKEN_UNKNOWN : 0u);
}

int32_t mha_tokenizer_mark(const mha_tokenizer *tokenizer, mha_mark mark)
{
    const unsigned number = (unsigned)mark;
    return tokenizer && number < MARKS ? tokenizer->marks[number] : -1;
}

mha_status mha_tokenizer_chat(const mha_tokenizer *tokenizer, const mha_chat_message *messages,
                              ptrdiff_t count, int reply, char **text, size_t *length,
                              char *message, size_t message_size)
{
    size_t unused;
    length = length ? length : &unused;
    if (text)
        *text = NULL;
    *length = 0;
    if (message && message_size)
        message[0] = '\0';
    if (!tokenizer || !text || (!messages && count))
        return MHA_ERR_NULL;
    if (count < 0)
        return MHA_ERR_LENGTH;
    return chat_write(&tokenizer->chat, messages, count, reply != 0, text, length, message,
                      message_size);
}
