/* SPDX-License-Identifier: MIT */
/* Text to tokens: the steps of tokenizer_parts.h, one after another, on the text of one call. */
#include "base/utf8.h"
#include "text/characters.h"
#include "text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

mha_status tokenizer_normalize(const mha_tokenizer *t, text_work *work)
{
    mha_status status = MHA_OK;
    for (size_t n = 0; n < t->normalizer_count && status == MHA_OK; n++) {
        for (size_t k = 0; k < work->splits.count && status == MHA_OK; k++) {
            split *const part = &work->splits.splits[k];
            const size_t begin = work->next.length;
            if (part->id >= 0)
                continue;
            status =
                normalizer_apply(&t->normalizers[n], &work->text, part, &work->next, work->scratch);
            part->begin = begin;
            part->end = work->next.length;
        }
        const mha_status swapped = text_work_swap_text(work);
        status = status == MHA_OK ? swapped : status;
    }
    return status;
}

/* ----------------------------------------------------------------- model ----- */

/* What one call needs beside the texts. */
typedef struct model_work {
    token_list tokens; /* of one split */
    bpe_work *bpe;
} model_work;

static void encode_word(const mha_tokenizer *t, const char *text, size_t length, model_work *work)
{
    token_list *const list = &work->tokens;
    switch (t->kind) {
    case MODEL_WORDPIECE:
        wordpiece_encode(&t->wordpiece, text, length, list);
        break;
    case MODEL_BPE:
        bpe_encode(t->bpe, text, length, work->bpe, list);
        break;
    case MODEL_UNIGRAM:
        unigram_encode(t->unigram, text, length, list);
        break;
    case MODEL_WORDLEVEL: {
        const int32_t id = vocab_find_model(t->v, text, length);
        if (id >= 0 || t->unknown >= 0)
            token_list_add(list, id >= 0 ? id : t->unknown, 0, 0, length);
        break;
    }
    }
}

static bool begins_word(const char *text, size_t length)
{
    return length >= 2 && (memcmp(text, "\xc4\xa0", 2) == 0 ||
                           (length >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0));
}

/* The place of a token in the original, from its bytes of a split. A token without bytes, or past
 * the end of the split, keeps its own numbers. */
static span place_of(const aligned_text *text, const split *part, const mha_token *token)
{
    const size_t length = part->end - part->begin;
    if (token->begin >= token->end || token->end > length) {
        const size_t begin = token->begin < length ? token->begin : length;
        const uint32_t at = begin < length ? text->spans[part->begin + begin].begin
                            : length       ? text->spans[part->end - 1].end
                                           : part->origin.begin;
        return (span){at, at};
    }
    return (span){text->spans[part->begin + token->begin].begin,
                  text->spans[part->begin + token->end - 1].end};
}

static uint32_t flags_of(const mha_tokenizer *t, int32_t id)
{
    const unsigned flags = vocab_flags(tokenizer_vocabulary(t), id);
    return (flags & PIECE_SPECIAL ? MHA_TOKEN_SPECIAL : 0u) |
           (flags & PIECE_UNKNOWN ? MHA_TOKEN_UNKNOWN : 0u);
}

/* The tokens of one split that is text. */
static void encode_split(const mha_tokenizer *t, const aligned_text *text, const split *part,
                         model_work *work, token_list *list)
{
    const char *const bytes = text->text + part->begin;
    const size_t length = part->end - part->begin;
    work->tokens.count = 0;
    if (t->sentencepiece)
        sentencepiece_encode(t->sentencepiece, bytes, length, &work->tokens);
    else
        encode_word(t, bytes, length, work);
    list->failed |= work->tokens.failed;
    for (ptrdiff_t n = 0; n < work->tokens.count; n++) {
        const mha_token *const token = &work->tokens.tokens[n];
        const span place = place_of(text, part, token);
        uint32_t flags = flags_of(t, token->id);
        if (flags & MHA_TOKEN_UNKNOWN) /* it stands for text */
            flags &= ~(uint32_t)MHA_TOKEN_SPECIAL;
        if (t->sentencepiece)
            flags |= token->flags & MHA_TOKEN_CONTINUES;
        else if (n > 0 && token->begin < length &&
                 !begins_word(bytes + token->begin, length - token->begin))
            flags |= MHA_TOKEN_CONTINUES;
        token_list_add(list, token->id, flags, place.begin, place.end);
    }
}

/* --------------------------------------------------------------- offsets ----- */

/* The next character of the original, from `at` to `end`. */
static size_t step_forward(const char *text, size_t at, size_t end)
{
    uint32_t c;
    const size_t bytes = at < end ? utf8_decode(text + at, end - at, &c) : 0;
    return at < end ? at + (bytes ? bytes : 1) : end;
}

static size_t step_back(const char *text, size_t begin, size_t at)
{
    if (at > begin)
        at--;
    while (at > begin && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* The characters at the ends of a piece that stand for white space. */
static void count_spaces(const char *piece, size_t length, uint32_t *leading, uint32_t *trailing)
{
    uint32_t run = 0;
    bool any = false;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        uint32_t c = 0;
        bytes = utf8_decode(piece + at, length - at, &c);
        bytes += bytes == 0;
        if (c == byte_character(' ') || character_is_space(c)) {
            run++;
        } else {
            if (!any)
                *leading = run;
            any = true;
            run = 0;
        }
    }
    *trailing = run;
    if (!any)
        *leading = run;
}

/* As "tokenizers" does it for byte-level pieces. A single space of the first token was added, and
 * is not in the text. */
static void trim(const mha_tokenizer *t, const char *text, mha_token *token, bool first,
                 uint32_t leading, uint32_t trailing)
{
    if (leading == 1 && t->trims_prefix && (first || token->begin == 0))
        leading = 0;
    for (; leading && token->begin < token->end; leading--)
        token->begin = step_forward(text, token->begin, token->end);
    for (; trailing && token->begin < token->end; trailing--)
        token->end = step_back(text, token->begin, token->end);
}

static mha_status encode_splits(const mha_tokenizer *t, const char *text, text_work *work,
                                model_work *model, token_list *list)
{
    const ptrdiff_t first = list->count;
    for (size_t n = 0; n < work->splits.count && !list->failed; n++) {
        const split *const part = &work->splits.splits[n];
        const ptrdiff_t before = list->count;
        if (part->id >= 0)
            token_list_add(list, part->id, flags_of(t, part->id), part->origin.begin,
                           part->origin.end);
        else
            encode_split(t, &work->text, part, model, list);
        for (ptrdiff_t k = before; k < list->count && t->trims_offsets; k++) {
            uint32_t leading = part->leading, trailing = part->trailing;
            size_t length = 0;
            const char *const piece = vocab_piece(t->v, list->tokens[k].id, &length);
            if (part->id < 0 && piece)
                count_spaces(piece, length, &leading, &trailing);
            trim(t, text, &list->tokens[k], k == first, leading, trailing);
        }
    }
    return list->failed ? MHA_ERR_MEMORY : MHA_OK;
}

mha_status tokenizer_divide(const mha_tokenizer *t, const char *text, size_t length, bool plain,
                            text_work *work)
{
    if (length >= (size_t)1 << 29) /* places are 32 bits, and a byte may become three */
        return MHA_ERR_LENGTH;
    aligned_begin(&work->text, text, length);
    work->splits.count = 0;
    split_list_add(
        &work->splits,
        (split){.end = work->text.length, .origin = {0, (uint32_t)work->text.length}, .id = -1});
    mha_status status = work->splits.failed || work->text.failed ? MHA_ERR_MEMORY : MHA_OK;
    if (status == MHA_OK)
        status = added_tokens_divide(&t->raw, plain, t->word, work);
    if (status == MHA_OK)
        status = tokenizer_normalize(t, work);
    if (status == MHA_OK && !t->sentencepiece)
        status = added_tokens_divide(&t->normalized, plain, t->word, work);
    for (size_t n = 0; n < t->pre_count && status == MHA_OK; n++)
        status = pre_tokenizer_apply(&t->pre[n], work);
    return status;
}

mha_status tokenizer_encode_text(const mha_tokenizer *t, const char *text, size_t length,
                                 unsigned flags, const bpe_dropout *dropout, token_list *list)
{
    text_work work;
    model_work model = {0};
    if (length == 0)
        return MHA_OK;
    mha_status status = text_work_create(&work) ? MHA_OK : MHA_ERR_MEMORY;
    if (t->bpe) {
        model.bpe = bpe_work_create(dropout);
        status = model.bpe ? status : MHA_ERR_MEMORY;
    }
    if (status == MHA_OK)
        status = tokenizer_divide(t, text, length, flags & MHA_TEXT_PLAIN, &work);
    if (status == MHA_OK)
        status = encode_splits(t, text, &work, &model, list);
    token_list_free(&model.tokens);
    bpe_work_free(model.bpe);
    text_work_free(&work);
    return status;
}
