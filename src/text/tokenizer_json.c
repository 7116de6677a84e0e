/* SPDX-License-Identifier: MIT */
/*
 * tokenizer.json of the library "tokenizers": the vocabulary, the model and the added tokens. The
 * steps around them are read in tokenizer_json_steps.c. The settings "truncation" and "padding" are
 * ignored: they belong to the program that runs a model.
 */
#include "text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ vocabulary ----- */

/* Ids may have gaps, but memory stays proportional to the pieces: `limit` is vocab_limit(). */
static bool add_piece(tokenizer_reader *r, const char *piece, size_t length, int64_t id,
                      double score, int32_t limit)
{
    if (id < 0 || id >= limit)
        return reader_refuse(r, "the piece \"%.40s\" has the id %lld, which is not in 0 .. %d",
                             piece, (long long)id, (int)limit - 1);
    if (vocab_piece(r->t->v, (int32_t)id, NULL))
        return reader_refuse(r, "the pieces \"%.40s\" and \"%.40s\" have the same id %lld",
                             vocab_piece(r->t->v, (int32_t)id, NULL), piece, (long long)id);
    return vocab_add(r->t->v, (int32_t)id, piece, length, score, 0) || reader_no_memory(r);
}

/* {"piece": id, ...} */
static bool read_vocabulary(tokenizer_reader *r, const json_value *vocab)
{
    if (json_tree_type_of(vocab) != JSON_TREE_OBJECT)
        return reader_refuse(r, "model.vocab is not an object");
    const int32_t limit = vocab_limit(json_tree_count(vocab));
    for (size_t n = 0; n < json_tree_count(vocab); n++) {
        size_t length;
        int64_t id;
        const char *const piece = json_tree_key(vocab, n, &length);
        if (!json_tree_get_integer(json_tree_element(vocab, n), &id))
            return reader_refuse(r, "the id of the piece \"%.40s\" is not an integer", piece);
        if (!add_piece(r, piece, length, id, 0, limit))
            return false;
    }
    return true;
}

/* [["piece", score], ...] */
static bool read_scored_vocabulary(tokenizer_reader *r, const json_value *vocab)
{
    if (json_tree_type_of(vocab) != JSON_TREE_ARRAY)
        return reader_refuse(r, "model.vocab is not an array");
    for (size_t n = 0; n < json_tree_count(vocab); n++) {
        const json_value *const pair = json_tree_element(vocab, n);
        size_t length;
        const char *piece;
        double score;
        if (json_tree_count(pair) != 2 ||
            !json_tree_get_string(json_tree_element(pair, 0), &piece, &length) ||
            !json_tree_get_number(json_tree_element(pair, 1), &score))
            return reader_refuse(r, "element %zu of model.vocab is not [piece, score]", n);
        if (!add_piece(r, piece, length, (int64_t)n, score, VOCABULARY_MAX))
            return false;
    }
    return true;
}

/* The id of model.unk_token; -1 if there is none. A model may need one. */
static bool find_unknown(tokenizer_reader *r, const json_value *model, const char *otherwise)
{
    const char *const name = member_string(model, "unk_token", otherwise);
    r->t->unknown = name ? vocab_find(r->t->v, name, strlen(name)) : -1;
    if (r->t->unknown >= 0)
        vocab_set_flags(r->t->v, r->t->unknown, PIECE_UNKNOWN);
    if (otherwise && r->t->unknown < 0)
        return reader_refuse(r, "model.unk_token \"%.40s\" is not in the vocabulary", name);
    return true;
}

/* ---------------------------------------------------------------- models ----- */

static bool read_wordpiece(tokenizer_reader *r, const json_value *model)
{
    wordpiece *const w = &r->t->wordpiece;
    const int64_t longest = member_integer(model, "max_input_chars_per_word", 100);
    if (longest < 1 || longest > WORDPIECE_CHARACTERS_MAX)
        return reader_refuse(r, "model.max_input_chars_per_word is %lld, not 1 .. %d",
                             (long long)longest, WORDPIECE_CHARACTERS_MAX);
    r->t->kind = MODEL_WORDPIECE;
    if (!read_vocabulary(r, json_tree_member(model, "vocab")) || !find_unknown(r, model, "[UNK]"))
        return false;
    w->longest_word = (size_t)longest;
    return finish_wordpiece(r, member_string(model, "continuing_subword_prefix", "##"));
}

static bool read_merge(tokenizer_reader *r, const json_value *value, size_t number,
                       const char *prefix)
{
    const char *left, *right;
    size_t length;
    if (json_tree_type_of(value) == JSON_TREE_ARRAY)
        return (json_tree_count(value) == 2 &&
                json_tree_get_string(json_tree_element(value, 0), &left, NULL) &&
                json_tree_get_string(json_tree_element(value, 1), &right, NULL))
                   ? add_merge(r, left, right, number, prefix)
                   : reader_refuse(r, "merge %zu is not a pair of pieces", number);
    if (!json_tree_get_string(value, &left, &length))
        return reader_refuse(r, "merge %zu is not a pair of pieces", number);
    return add_merge_line(r, left, length, number, prefix);
}

static bool read_bpe(tokenizer_reader *r, const json_value *model)
{
    const json_value *const merges = json_tree_member(model, "merges");
    const char *const prefix = member_string(model, "continuing_subword_prefix", NULL);
    if (!read_vocabulary(r, json_tree_member(model, "vocab")) || !find_unknown(r, model, NULL))
        return false;
    const bpe_config config = {.whole_words = member_flag(model, "ignore_merges", false),
                               .byte_fallback = member_flag(model, "byte_fallback", false),
                               .fuse_unknown = member_flag(model, "fuse_unk", false),
                               .unknown = r->t->unknown,
                               .prefix = prefix,
                               .suffix = member_string(model, "end_of_word_suffix", NULL)};
    if (!make_bpe(r, &config))
        return false;
    if (json_tree_type_of(merges) != JSON_TREE_ARRAY)
        return reader_refuse(r, "model.merges is not an array");
    if (!bpe_reserve(r->t->bpe, json_tree_count(merges)))
        return reader_no_memory(r);
    for (size_t n = 0; n < json_tree_count(merges); n++)
        if (!read_merge(r, json_tree_element(merges, n), n, prefix))
            return false;
    return true;
}

static bool read_unigram(tokenizer_reader *r, const json_value *model)
{
    mha_tokenizer *const t = r->t;
    if (!read_scored_vocabulary(r, json_tree_member(model, "vocab")))
        return false;
    const int64_t unknown = member_integer(model, "unk_id", -1);
    if (unknown < -1 || unknown >= vocab_size(t->v))
        return reader_refuse(r, "model.unk_id is %lld, which the vocabulary does not have",
                             (long long)unknown);
    t->kind = MODEL_UNIGRAM;
    t->unknown = (int32_t)unknown;
    if (unknown >= 0)
        vocab_set_flags(t->v, t->unknown, PIECE_UNKNOWN);
    t->unigram = unigram_create(t->v, t->unknown, member_flag(model, "byte_fallback", false));
    return t->unigram || reader_no_memory(r);
}

static bool read_wordlevel(tokenizer_reader *r, const json_value *model)
{
    r->t->kind = MODEL_WORDLEVEL;
    return read_vocabulary(r, json_tree_member(model, "vocab")) && find_unknown(r, model, "<unk>");
}

/* Old files do not say which model they have. */
static const char *guess_model(const json_value *model)
{
    if (json_tree_type_of(json_tree_member(model, "vocab")) == JSON_TREE_ARRAY)
        return "Unigram";
    if (json_tree_member(model, "merges"))
        return "BPE";
    return json_tree_member(model, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

bool read_model(tokenizer_reader *r, const json_value *model)
{
    if (json_tree_type_of(model) != JSON_TREE_OBJECT)
        return reader_refuse(r, "it has no object \"model\": not a tokenizer.json");
    const char *const type = member_string(model, "type", guess_model(model));
    if (strcmp(type, "WordPiece") == 0)
        return read_wordpiece(r, model);
    if (strcmp(type, "BPE") == 0)
        return read_bpe(r, model);
    if (strcmp(type, "Unigram") == 0)
        return read_unigram(r, model);
    if (strcmp(type, "WordLevel") == 0)
        return read_wordlevel(r, model);
    return reader_refuse(r, "the model \"%.40s\" is not supported", type);
}

/* ---------------------------------------------------------- added tokens ----- */

bool read_added_tokens(tokenizer_reader *r, const json_value *list)
{
    for (size_t n = 0; n < json_tree_count(list); n++) {
        const json_value *const value = json_tree_element(list, n);
        const char *content;
        size_t length;
        const int64_t id = member_integer(value, "id", -1);
        if (!json_tree_get_string(json_tree_member(value, "content"), &content, &length) ||
            id < 0 || id >= VOCABULARY_MAX)
            return reader_refuse(r, "added token %zu has no content, or no id in 0 .. %d", n,
                                 VOCABULARY_MAX - 1);
        const bool special = member_flag(value, "special", false);
        const added_token token = {.content = (char *)content,
                                   .length = length,
                                   .id = (int32_t)id,
                                   .single_word = member_flag(value, "single_word", false),
                                   .left = member_flag(value, "lstrip", false),
                                   .right = member_flag(value, "rstrip", false),
                                   .normalized = member_flag(value, "normalized", !special),
                                   .special = special};
        if (!add_token(r, token))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ file ----- */

static bool read_root(tokenizer_reader *r, const json_value *root)
{
    return read_model(r, json_tree_member(root, "model")) &&
           read_normalizer(r, json_tree_member(root, "normalizer")) &&
           read_added_tokens(r, json_tree_member(root, "added_tokens")) && finish_added_tokens(r) &&
           read_pre_tokenizer(r, json_tree_member(root, "pre_tokenizer")) &&
           read_post_processor(r, json_tree_member(root, "post_processor")) &&
           read_decoder(r, json_tree_member(root, "decoder"));
}

bool read_tokenizer_json(tokenizer_reader *r, const char *path)
{
    json_tree *tree;
    const mha_status status = json_tree_read_file(&tree, path, r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    const bool ok = read_root(r, json_tree_root(tree));
    json_tree_free(tree);
    return ok;
}

bool read_tokenizer_json_text(tokenizer_reader *r, const char *text, size_t length)
{
    json_tree *tree;
    const mha_status status =
        json_tree_parse(&tree, r->path, text, length, r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    const bool ok = read_root(r, json_tree_root(tree));
    json_tree_free(tree);
    return ok;
}
