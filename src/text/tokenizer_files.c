/* SPDX-License-Identifier: MIT */
/*
 * Tokenizers in older files: vocab.txt of BERT, vocab.json with merges.txt of GPT-2, ranks of
 * tiktoken; and files of other engines. They have no steps of their own: these are known.
 */
#include "format/json_reader.h"
#include "format/mapped_file.h"
#include "text/base64.h"
#include "text/characters.h"
#include "text/known_patterns.h"
#include "text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

enum { VOCABULARY_FILE_MAX = 64 << 20 };

/* One line after another, without its end. */
typedef struct lines {
    const char *at, *end;
} lines;

static bool next_line(lines *l, const char **line, size_t *length)
{
    if (l->at == l->end)
        return false;
    const char *const newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
    *line = l->at;
    *length = (size_t)((newline ? newline : l->end) - l->at);
    l->at = newline ? newline + 1 : l->end;
    return true;
}

static bool read_lines(tokenizer_reader *r, const char *path, char **text, lines *l)
{
    size_t length;
    const mha_status status =
        mapped_file_read(text, &length, path, VOCABULARY_FILE_MAX, r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    if (!mhai_utf8_valid(*text, length))
        return reader_refuse(r, "not UTF-8 text");
    *l = (lines){*text, *text + length};
    return true;
}

static bool add_piece(tokenizer_reader *r, int32_t id, const char *piece, size_t length)
{
    if (id >= VOCABULARY_MAX)
        return reader_refuse(r, "more than %d pieces", VOCABULARY_MAX);
    if (memchr(piece, 0, length))
        return reader_refuse(r, "piece %d has a zero byte", (int)id);
    return vocab_add(r->t->v, id, piece, length, 0, 0) || reader_no_memory(r);
}

/* Pieces that are marks if the vocabulary has them. */
bool add_known_marks(tokenizer_reader *r, const char *const *names, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        const size_t length = strlen(names[n]);
        const added_token token = {.content = (char *)names[n],
                                   .length = length,
                                   .id = vocab_find(r->t->v, names[n], length),
                                   .left = strcmp(names[n], "<mask>") == 0,
                                   .special = true};
        if (token.id >= 0 && !add_token(r, token))
            return false;
    }
    return true;
}

/* "added_tokens_decoder" of tokenizer_config.json: {"id": {"content": ..., "special": ...}}. */
static bool add_listed_tokens(tokenizer_reader *r, const json_value *config)
{
    const json_value *const list = json_tree_member(config, "added_tokens_decoder");
    for (size_t n = 0; n < json_tree_count(list); n++) {
        const json_value *const value = json_tree_element(list, n);
        const char *const key = json_tree_key(list, n, NULL);
        const long long id = key ? strtoll(key, NULL, 10) : -1;
        const char *content;
        size_t length;
        if (!json_tree_get_string(json_tree_member(value, "content"), &content, &length) ||
            id < 0 || id >= VOCABULARY_MAX)
            return reader_refuse(r,
                                 "tokenizer_config.json: added token %zu has no content, or no "
                                 "id in 0 .. %d",
                                 n, VOCABULARY_MAX - 1);
        const added_token token = {.content = (char *)content,
                                   .length = length,
                                   .id = (int32_t)id,
                                   .single_word = member_flag(value, "single_word", false),
                                   .left = member_flag(value, "lstrip", false),
                                   .right = member_flag(value, "rstrip", false),
                                   .normalized = member_flag(value, "normalized", false),
                                   .special = member_flag(value, "special", false)};
        if (!add_token(r, token))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------- vocab.txt ----- */

bool finish_bert(tokenizer_reader *r, bool lower, bool strip, bool chinese,
                 const json_value *config)
{
    static const char *const marks[] = {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
    mha_tokenizer *const t = r->t;
    decoder_step decoder = {.kind = DECODE_WORDPIECE, .cleanup = true};
    const int32_t first = vocab_find(t->v, "[CLS]", 5), last = vocab_find(t->v, "[SEP]", 5);
    t->kind = MODEL_WORDPIECE;
    t->unknown = vocab_find(t->v, "[UNK]", 5);
    if (t->unknown < 0)
        return reader_refuse(r, "the vocabulary has no [UNK]");
    vocab_set_flags(t->v, t->unknown, PIECE_UNKNOWN);
    t->wordpiece.longest_word = 100;
    if (!finish_wordpiece(r, "##") || !add_bert_normalizer(r, true, chinese, strip, lower) ||
        !add_known_marks(r, marks, sizeof marks / sizeof marks[0]) ||
        !add_listed_tokens(r, config) || !finish_added_tokens(r) || !add_bert_pre_tokenizer(r))
        return false;
    if (first >= 0 && last >= 0 && !add_two_marks(r, &t->single, &t->pair, first, last, false))
        return false;
    decoder.content = text_copy("##");
    return decoder.content ? add_decoder(r, decoder) : reader_no_memory(r);
}

bool read_vocab_txt(tokenizer_reader *r, const char *path)
{
    char *text = NULL;
    lines l = {0};
    const char *line;
    size_t length;
    bool ok = read_lines(r, path, &text, &l);
    /* As Python reads lines: "\r\n" ends a line too. */
    for (int32_t id = 0; ok && next_line(&l, &line, &length); id++)
        ok = add_piece(r, id, line, length - (length && line[length - 1] == '\r'));
    free(text);
    json_tree *const config = ok ? read_beside(r, path, "tokenizer_config.json") : NULL;
    const json_value *const root = config ? json_tree_root(config) : NULL;
    ok = ok && r->status == MHA_OK;
    if (ok) {
        const bool lower = member_flag(root, "do_lower_case", true);
        ok = finish_bert(r, lower, member_flag(root, "strip_accents", lower),
                         member_flag(root, "tokenize_chinese_chars", true), root);
    }
    json_tree_free(config);
    return ok;
}

/* -------------------------------------------------- vocab.json, merges.txt ----- */

static bool read_pieces(tokenizer_reader *r, const json_value *root)
{
    if (json_tree_type_of(root) != JSON_TREE_OBJECT)
        return reader_refuse(r, "it is not an object of pieces and ids");
    for (size_t n = 0; n < json_tree_count(root); n++) {
        size_t length;
        int64_t id;
        const char *const piece = json_tree_key(root, n, &length);
        if (!json_tree_get_integer(json_tree_element(root, n), &id) || id < 0 ||
            id >= vocab_limit(json_tree_count(root)))
            return reader_refuse(r, "the id of the piece \"%.40s\" is not in 0 .. %d", piece,
                                 (int)vocab_limit(json_tree_count(root)) - 1);
        if (vocab_piece(r->t->v, (int32_t)id, NULL))
            return reader_refuse(r, "two pieces have the id %lld", (long long)id);
        if (!vocab_add(r->t->v, (int32_t)id, piece, length, 0, 0))
            return reader_no_memory(r);
    }
    return true;
}

static bool read_merges(tokenizer_reader *r, const char *path)
{
    char *text = NULL;
    lines l = {0};
    const char *line;
    size_t length;
    const char *const json = r->path;
    r->path = path;
    bool ok = read_lines(r, path, &text, &l);
    for (size_t n = 0; ok && next_line(&l, &line, &length); n++) {
        length -= length && line[length - 1] == '\r';
        if (length == 0 || (n == 0 && length > 8 && memcmp(line, "#version", 8) == 0))
            continue;
        ok = add_merge_line(r, line, length, n + 1, NULL);
    }
    r->path = ok ? json : r->path;
    free(text);
    return ok;
}

/* What byte-level BPE needs after its pieces and merges. */
bool finish_byte_level(tokenizer_reader *r)
{
    return finish_added_tokens(r) && add_decoder(r, (decoder_step){.kind = DECODE_BYTE_LEVEL});
}

static bool finish_gpt2(tokenizer_reader *r, const json_value *config)
{
    static const char *const marks[] = {"<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>"};
    mha_tokenizer *const t = r->t;
    const int32_t first = vocab_find(t->v, "<s>", 3), last = vocab_find(t->v, "</s>", 4);
    const bool prefix = member_flag(config, "add_prefix_space", false);
    const bool roberta = first >= 0 && last >= 0; /* and BART; GPT-2 does not have these marks */
    t->trims_offsets = roberta;
    t->trims_prefix = prefix;
    if (!add_known_marks(r, marks, sizeof marks / sizeof marks[0]) ||
        !add_listed_tokens(r, config) || !add_byte_level(r, prefix, gpt2_pattern) ||
        !finish_byte_level(r))
        return false;
    return !roberta || add_two_marks(r, &t->single, &t->pair, first, last, true);
}

bool read_vocab_json(tokenizer_reader *r, const char *path, const char *merges)
{
    json_tree *pieces = NULL, *config = NULL;
    const bpe_config settings = {.unknown = -1};
    const mha_status status = json_tree_read_file(&pieces, path, r->message, r->message_size);
    bool ok = status == MHA_OK ? read_pieces(r, json_tree_root(pieces)) : reader_failed(r, status);
    json_tree_free(pieces);
    ok = ok && make_bpe(r, &settings) && read_merges(r, merges);
    if (ok)
        config = read_beside(r, path, "tokenizer_config.json");
    ok = ok && r->status == MHA_OK && finish_gpt2(r, config ? json_tree_root(config) : NULL);
    json_tree_free(config);
    return ok;
}

/* -------------------------------------------------------------- tiktoken ----- */

/* "base64 rank": the bytes of a piece, written with the characters that stand for bytes. */
static bool read_rank(tokenizer_reader *r, const char *line, size_t length, size_t number,
                      text_buffer *piece)
{
    const char *const space = memchr(line, ' ', length);
    unsigned char *bytes = NULL;
    size_t count = 0;
    char *end = NULL;
    const size_t first = space ? (size_t)(space - line) : 0;
    const mha_status status = base64_decode(line, first, &bytes, &count);
    const long long rank = space ? strtoll(space + 1, &end, 10) : -1;
    piece->length = 0;
    for (size_t n = 0; n < count; n++)
        text_buffer_add_character(piece, byte_character(bytes[n]));
    free(bytes);
    if (status == MHA_ERR_MEMORY || piece->failed)
        return reader_no_memory(r);
    if (status != MHA_OK || count == 0 || rank < 0 || rank >= vocab_limit(number) ||
        end != line + length)
        return reader_refuse(r, "line %zu is not a piece in base64 and its rank", number);
    if (vocab_piece(r->t->v, (int32_t)rank, NULL))
        return reader_refuse(r, "line %zu has the rank %lld for the second time", number, rank);
    return vocab_add(r->t->v, (int32_t)rank, piece->bytes, piece->length, 0, 0) ||
           reader_no_memory(r);
}

static bool add_rank_marks(tokenizer_reader *r, const known_ranks *known)
{
    for (const known_mark *mark = known->marks; mark->text; mark++) {
        const added_token token = {.content = (char *)mark->text,
                                   .length = strlen(mark->text),
                                   .id = mark->id,
                                   .special = true};
        if (!add_token(r, token))
            return false;
    }
    return true;
}

static bool add_begin(tokenizer_reader *r, const char *name)
{
    mha_tokenizer *const t = r->t;
    const int32_t id = vocab_find(t->v, name, strlen(name));
    if (id < 0)
        return true;
    if (!add_template_mark(r, &t->single, id, 0) || !add_template_mark(r, &t->pair, id, 0))
        return false;
    add_template_text(&t->single, 0);
    add_template_text(&t->pair, 0);
    add_template_text(&t->pair, 1);
    return true;
}

bool read_tiktoken(tokenizer_reader *r, const char *path)
{
    const bpe_config settings = {.by_vocabulary = true, .whole_words = true, .unknown = -1};
    char *text = NULL;
    lines l = {0};
    const char *line;
    size_t length;
    text_buffer piece = {0};
    pre_tokenizer_step step = {.kind = PRE_PATTERN, .behavior = SPLIT_ISOLATED};
    bool ok = read_lines(r, path, &text, &l);
    for (size_t n = 1; ok && next_line(&l, &line, &length); n++)
        if (length)
            ok = read_rank(r, line, length, n, &piece);
    text_buffer_free(&piece);
    free(text);
    if (!ok)
        return false;
    const known_ranks *const known = known_ranks_of(vocab_size(r->t->v));
    if (!known)
        return reader_refuse(r,
                             "%d ranks are none of r50k_base, p50k_base, cl100k_base, "
                             "o200k_base, Llama 3 and Qwen, so the pattern is not known",
                             (int)vocab_size(r->t->v));
    return make_bpe(r, &settings) && add_rank_marks(r, known) &&
           make_pattern(r, &step.pattern, known->pattern, false) && add_pre_tokenizer(r, step) &&
           add_byte_level(r, false, NULL) && finish_byte_level(r) &&
           add_begin(r, "<|begin_of_text|>");
}

/* --------------------------------------------------------- SentencePiece ----- */

/* Marks of the engine are found in texts like added tokens. */
bool finish_sentencepiece(tokenizer_reader *r)
{
    mha_tokenizer *const t = r->t;
    const vocabulary *const v = sentencepiece_vocabulary(t->sentencepiece);
    const sentencepiece_info info = sentencepiece_get_info(t->sentencepiece);
    t->kind = MODEL_UNIGRAM;
    t->unknown = info.unknown_id;
    for (int32_t id = 0; id < vocab_size(v); id++) {
        size_t length;
        const char *const piece = vocab_piece(v, id, &length);
        const added_token token = {
            .content = (char *)piece, .length = length, .id = id, .special = true};
        if (piece && length <= ADDED_TOKEN_BYTES_MAX &&
            vocab_flags(v, id) & (PIECE_SPECIAL | PIECE_UNKNOWN) && !add_token(r, token))
            return false;
    }
    template_list *const lists[] = {&t->single, &t->pair};
    for (int n = 0; n < 2 && (info.adds_begin || info.adds_end); n++) {
        if (info.adds_begin && info.begin_id >= 0 &&
            !add_template_mark(r, lists[n], info.begin_id, 0))
            return false;
        for (int text = 0; text <= n; text++) {
            add_template_text(lists[n], text);
            if (info.adds_end && info.end_id >= 0 &&
                !add_template_mark(r, lists[n], info.end_id, text))
                return false;
        }
    }
    return finish_added_tokens(r);
}

bool read_sentencepiece(tokenizer_reader *r, const char *path)
{
    const mha_status status =
        sentencepiece_open(&r->t->sentencepiece, path, r->message, r->message_size);
    return status == MHA_OK ? finish_sentencepiece(r) : reader_failed(r, status);
}

bool read_llama2c(tokenizer_reader *r, const char *path)
{
    const mha_status status =
        sentencepiece_from_llama2c(&r->t->sentencepiece, path, r->message, r->message_size);
    return status == MHA_OK ? finish_sentencepiece(r) : reader_failed(r, status);
}
