/* SPDX-License-Identifier: MIT */
/*
 * The tokenizer inside of a GGUF file: "gpt2" (byte-level BPE, with the name of its pattern),
 * "bert" (WordPiece) and, by the engine of sentencepiece.h, "llama" and "t5".
 */
#include "format/gguf.h"
#include "text/known_patterns.h"
#include "text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

/* tokenizer.ggml.token_type */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4, TYPE_UNUSED = 5 };

#define KEY(name) "tokenizer.ggml." name

static bool is(gguf_string text, const char *name)
{
    return text.length == strlen(name) && memcmp(text.text, name, (size_t)text.length) == 0;
}

static int64_t type_of(const gguf_pair *types, uint64_t number)
{
    return types && number < types->count ? gguf_array_integer(types, number) : TYPE_NORMAL;
}

/* WordPiece in its other form: words begin with U+2581, pieces inside of words with nothing. */
static bool add_phantom_piece(tokenizer_reader *r, int32_t id, gguf_string piece, int64_t type)
{
    static const char space[] = "\xe2\x96\x81";
    text_buffer text = {0};
    const bool begins = piece.length >= 3 && memcmp(piece.text, space, 3) == 0;
    if (begins)
        text_buffer_add(&text, piece.text + 3, (size_t)piece.length - 3);
    else {
        const bool marked = type == TYPE_CONTROL || type == TYPE_UNKNOWN || piece.length == 0 ||
                            (piece.text[0] == '[' && piece.text[piece.length - 1] == ']');
        text_buffer_add_string(&text, marked ? "" : "##");
        text_buffer_add(&text, piece.text, (size_t)piece.length);
    }
    const bool ok = !text.failed && vocab_add(r->t->v, id, text.bytes, text.length, 0, 0);
    text_buffer_free(&text);
    return ok || reader_no_memory(r);
}

static bool read_pieces(tokenizer_reader *r, const gguf_file *file, bool phantom)
{
    const gguf_pair *const tokens = gguf_find(file, KEY("tokens"));
    const gguf_pair *types = gguf_find(file, KEY("token_type"));
    if (!tokens || tokens->type != GGUF_ARRAY || tokens->element != GGUF_STRING ||
        tokens->count > VOCABULARY_MAX)
        return reader_refuse(r, "tokenizer.ggml.tokens is not an array of at most %d strings",
                             VOCABULARY_MAX);
    if (types && (types->type != GGUF_ARRAY || types->element == GGUF_STRING ||
                  types->element == GGUF_ARRAY || types->element == GGUF_F32 ||
                  types->element == GGUF_F64 || types->element == GGUF_BOOL))
        return reader_refuse(r, "tokenizer.ggml.token_type is not an array of integers");
    uint64_t at = 0;
    for (uint64_t n = 0; n < tokens->count; n++) {
        const gguf_string piece = gguf_next_string(tokens, &at);
        if (piece.length > UINT32_MAX / 4 || memchr(piece.text, 0, (size_t)piece.length))
            return reader_refuse(r, "token %llu has a zero byte", (unsigned long long)n);
        const bool ok =
            phantom ? add_phantom_piece(r, (int32_t)n, piece, type_of(types, n))
                    : vocab_add(r->t->v, (int32_t)n, piece.text, (size_t)piece.length, 0, 0);
        if (!ok)
            return reader_no_memory(r);
    }
    return true;
}

/* Tokens that are found in texts: marks, and those that users have defined. */
static bool add_marked_pieces(tokenizer_reader *r, const gguf_file *file)
{
    const gguf_pair *const types = gguf_find(file, KEY("token_type"));
    const vocabulary *const v = r->t->v;
    for (int32_t id = 0; id < vocab_size(v); id++) {
        const int64_t type = type_of(types, (uint64_t)id);
        size_t length;
        const char *const piece = vocab_piece(v, id, &length);
        const added_token token = {.content = (char *)piece,
                                   .length = length,
                                   .id = id,
                                   .special = type == TYPE_CONTROL || type == TYPE_UNKNOWN};
        if ((type == TYPE_CONTROL || type == TYPE_USER || type == TYPE_UNKNOWN) && piece &&
            !add_token(r, token))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------- marks ----- */

static int32_t mark_of(const mha_tokenizer *t, const gguf_file *file, const char *key)
{
    int64_t id;
    const bool fits = gguf_get_integer(file, key, &id) && id >= 0 && id < VOCABULARY_MAX &&
                      vocab_piece(tokenizer_vocabulary(t), (int32_t)id, NULL);
    return fits ? (int32_t)id : -1;
}

static void read_marks(mha_tokenizer *t, const gguf_file *file)
{
    static const struct {
        mha_mark mark;
        const char *key;
    } keys[] = {{MHA_MARK_BEGIN, KEY("bos_token_id")},
                {MHA_MARK_END, KEY("eos_token_id")},
                {MHA_MARK_UNKNOWN, KEY("unknown_token_id")},
                {MHA_MARK_PAD, KEY("padding_token_id")},
                {MHA_MARK_CLASS, KEY("cls_token_id")},
                {MHA_MARK_SEPARATOR, KEY("seperator_token_id")},
                {MHA_MARK_MASK, KEY("mask_token_id")},
                {MHA_MARK_TURN_END, KEY("eot_token_id")}};
    for (size_t n = 0; n < sizeof keys / sizeof keys[0]; n++)
        t->marks[keys[n].mark] = mark_of(t, file, keys[n].key);
}

static bool add_marks_around(tokenizer_reader *r, const gguf_file *file, bool adds_begin)
{
    mha_tokenizer *const t = r->t;
    bool adds_end = false;
    gguf_get_bool(file, KEY("add_bos_token"), &adds_begin);
    gguf_get_bool(file, KEY("add_eos_token"), &adds_end);
    const int32_t begin = t->marks[MHA_MARK_BEGIN], end = t->marks[MHA_MARK_END];
    template_list *const lists[] = {&t->single, &t->pair};
    adds_begin &= begin >= 0;
    adds_end &= end >= 0;
    for (int n = 0; n < 2 && (adds_begin || adds_end); n++) {
        if (adds_begin && !add_template_mark(r, lists[n], begin, 0))
            return false;
        for (int text = 0; text <= n; text++)
            add_template_text(lists[n], text);
        if (adds_end && !add_template_mark(r, lists[n], end, n))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- models ----- */

static bool read_merges(tokenizer_reader *r, const gguf_file *file)
{
    const gguf_pair *const merges = gguf_find(file, KEY("merges"));
    if (!merges || merges->type != GGUF_ARRAY || merges->element != GGUF_STRING)
        return reader_refuse(r, "tokenizer.ggml.merges is not an array of strings");
    if (!bpe_reserve(r->t->bpe, (size_t)merges->count))
        return reader_no_memory(r);
    uint64_t at = 0;
    for (uint64_t n = 0; n < merges->count; n++) {
        const gguf_string line = gguf_next_string(merges, &at);
        if (!add_merge_line(r, line.text, (size_t)line.length, (size_t)n, NULL))
            return false;
    }
    return true;
}

static bool add_patterns(tokenizer_reader *r, const known_patterns *known)
{
    for (int n = 0; n < KNOWN_PATTERNS_MAX && known->patterns[n]; n++) {
        pre_tokenizer_step step = {.kind = PRE_PATTERN, .behavior = SPLIT_ISOLATED};
        if (!make_pattern(r, &step.pattern, known->patterns[n], false) ||
            !add_pre_tokenizer(r, step))
            return false;
    }
    return add_byte_level(r, false, NULL);
}

static bool read_gpt2(tokenizer_reader *r, const gguf_file *file)
{
    gguf_string name = {"default", 7};
    known_patterns known;
    gguf_get_string(file, KEY("pre"), &name);
    if (!known_patterns_of_gguf(name.text, (size_t)name.length, &known))
        return reader_refuse(r, "tokenizer.ggml.pre is \"%.*s\", a pattern that is not known",
                             (int)(name.length < 40 ? name.length : 40), name.text);
    const bpe_config settings = {.whole_words = known.whole_words, .unknown = -1};
    if (!read_pieces(r, file, false) || !make_bpe(r, &settings) || !read_merges(r, file) ||
        !add_marked_pieces(r, file) || !add_patterns(r, &known) || !finish_byte_level(r))
        return false;
    read_marks(r->t, file);
    return add_marks_around(r, file, known.adds_begin);
}

static bool read_bert(tokenizer_reader *r, const gguf_file *file)
{
    if (!read_pieces(r, file, true) || !finish_bert(r, true, true, true, NULL))
        return false;
    read_marks(r->t, file);
    return true;
}

static bool read_sentencepiece_gguf(tokenizer_reader *r, const gguf_file *file)
{
    const mha_status status =
        sentencepiece_from_gguf(&r->t->sentencepiece, file, r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    read_marks(r->t, file);
    return finish_sentencepiece(r);
}

static bool read_tokenizer(tokenizer_reader *r, const gguf_file *file)
{
    gguf_string model;
    if (!gguf_get_string(file, KEY("model"), &model))
        return reader_refuse(r, "the file has no tokenizer (no tokenizer.ggml.model)");
    if (is(model, "gpt2"))
        return read_gpt2(r, file);
    if (is(model, "bert"))
        return read_bert(r, file);
    if (is(model, "llama") || is(model, "t5"))
        return read_sentencepiece_gguf(r, file);
    return reader_refuse(r, "tokenizer.ggml.model is \"%.*s\", which is not supported",
                         (int)(model.length < 40 ? model.length : 40), model.text);
}

bool read_gguf(tokenizer_reader *r, const char *path)
{
    gguf_file *file;
    gguf_string chat = {NULL, 0};
    const mha_status status = gguf_open(&file, path, r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    bool ok = read_tokenizer(r, file);
    gguf_get_string(file, "tokenizer.chat_template", &chat);
    ok = ok && find_marks(r) && find_chat(r, chat.text, (size_t)chat.length);
    gguf_close(file);
    return ok;
}
