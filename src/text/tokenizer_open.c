/* SPDX-License-Identifier: MIT */
/*
 * mha_tokenizer_open(): which file a path means, and what the files beside it say about marks and
 * chats. The files themselves are read in tokenizer_json.c, tokenizer_files.c, tokenizer_gguf.c.
 */
#include "format/file_kind.h"
#include "text/tokenizer_parts.h"
#include "text/tokenizer_words.h"
#include "text/unicode_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ----------------------------------------------------------------- marks ----- */

/* The names that marks have in vocabularies, best first. */
static const char *const mark_names[MARKS][12] = {
    [MHA_MARK_BEGIN] = {"<s>", "<|begin_of_text|>", "<|startoftext|>", "<bos>", "[BOS]",
                        "<|endoftext|>", "[CLS]"},
    [MHA_MARK_END] = {"</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>", "[EOS]", "[SEP]"},
    [MHA_MARK_UNKNOWN] = {"<unk>", "[UNK]"},
    [MHA_MARK_PAD] = {"<pad>", "[PAD]", "<|padding|>", "<|finetune_right_pad_id|>"},
    [MHA_MARK_CLASS] = {"[CLS]"},
    [MHA_MARK_SEPARATOR] = {"[SEP]"},
    [MHA_MARK_MASK] = {"[MASK]", "<mask>"},
    [MHA_MARK_TURN_END] = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>",
                           "<|end_of_turn|>", "<|eot|>"}};

bool find_marks(tokenizer_reader *r)
{
    mha_tokenizer *const t = r->t;
    const vocabulary *const v = tokenizer_vocabulary(t);
    if (t->sentencepiece) {
        const sentencepiece_info info = sentencepiece_get_info(t->sentencepiece);
        const int32_t ids[] = {[MHA_MARK_BEGIN] = info.begin_id,
                               [MHA_MARK_END] = info.end_id,
                               [MHA_MARK_UNKNOWN] = info.unknown_id,
                               [MHA_MARK_PAD] = info.pad_id};
        for (int n = 0; n <= MHA_MARK_PAD; n++)
            t->marks[n] = t->marks[n] < 0 ? ids[n] : t->marks[n];
    }
    if (t->marks[MHA_MARK_UNKNOWN] < 0)
        t->marks[MHA_MARK_UNKNOWN] = t->unknown;
    for (int n = 0; n < MARKS; n++)
        for (int k = 0; mark_names[n][k] && t->marks[n] < 0; k++)
            t->marks[n] = vocab_find(v, mark_names[n][k], strlen(mark_names[n][k]));
    return true;
}

bool find_chat(tokenizer_reader *r, const char *template_text, size_t length)
{
    mha_tokenizer *const t = r->t;
    const vocabulary *const v = tokenizer_vocabulary(t);
    const mha_status status = chat_style_find(&t->chat, template_text, length, v,
                                              vocab_piece(v, t->marks[MHA_MARK_BEGIN], NULL),
                                              vocab_piece(v, t->marks[MHA_MARK_END], NULL));
    return status == MHA_OK || reader_no_memory(r);
}

/* -------------------------------------------------------------- settings ----- */

/* A mark is its text, or an object with a member "content". */
static void take_marks(mha_tokenizer *t, const json_value *root)
{
    static const struct {
        mha_mark mark;
        const char *name;
    } names[] = {{MHA_MARK_BEGIN, "bos_token"},   {MHA_MARK_END, "eos_token"},
                 {MHA_MARK_UNKNOWN, "unk_token"}, {MHA_MARK_PAD, "pad_token"},
                 {MHA_MARK_CLASS, "cls_token"},   {MHA_MARK_SEPARATOR, "sep_token"},
                 {MHA_MARK_MASK, "mask_token"}};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        const json_value *const value = json_tree_member(root, names[n].name);
        const char *text;
        if (t->marks[names[n].mark] < 0 &&
            (json_tree_get_string(value, &text, NULL) ||
             json_tree_get_string(json_tree_member(value, "content"), &text, NULL)))
            t->marks[names[n].mark] = vocab_find(tokenizer_vocabulary(t), text, strlen(text));
    }
}

/* A file without marks around texts gets those that the settings request. */
static bool take_added_marks(tokenizer_reader *r, const json_value *root)
{
    mha_tokenizer *const t = r->t;
    const int32_t begin = t->marks[MHA_MARK_BEGIN], end = t->marks[MHA_MARK_END];
    const bool adds_begin = member_flag(root, "add_bos_token", false) && begin >= 0;
    const bool adds_end = member_flag(root, "add_eos_token", false) && end >= 0;
    template_list *const lists[] = {&t->single, &t->pair};
    if (t->sentencepiece || t->single.count || t->pair.count || (!adds_begin && !adds_end))
        return true;
    for (int n = 0; n < 2; n++) {
        for (int text = 0; text <= n; text++) {
            if (adds_begin && !add_template_mark(r, lists[n], begin, text))
                return false;
            add_template_text(lists[n], text);
            if (adds_end && !add_template_mark(r, lists[n], end, text))
                return false;
        }
    }
    return true;
}

/* The template of chats: a text, or a list of named ones; the one named "default" is used. */
static const char *chat_template_of(const json_value *root, size_t *length)
{
    const json_value *const value = json_tree_member(root, "chat_template");
    const char *text;
    if (json_tree_get_string(value, &text, length))
        return text;
    for (size_t n = 0; n < json_tree_count(value); n++) {
        const json_value *const named = json_tree_element(value, n);
        if (strcmp(member_string(named, "name", ""), "default") == 0 &&
            json_tree_get_string(json_tree_member(named, "template"), &text, length))
            return text;
    }
    *length = 0;
    return NULL;
}

bool read_settings(tokenizer_reader *r, const char *path)
{
    json_tree *const config = read_beside(r, path, "tokenizer_config.json");
    json_tree *const map =
        r->status == MHA_OK ? read_beside(r, path, "special_tokens_map.json") : NULL;
    bool ok = r->status == MHA_OK;
    if (ok) {
        const json_value *const root = config ? json_tree_root(config) : NULL;
        size_t length = 0;
        const char *const chat = chat_template_of(root, &length);
        take_marks(r->t, root);
        take_marks(r->t, map ? json_tree_root(map) : NULL);
        ok = find_marks(r) && take_added_marks(r, root) && find_chat(r, chat, length);
    }
    json_tree_free(config);
    json_tree_free(map);
    return ok;
}

/* ----------------------------------------------------------------- files ----- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool read_gpt2_files(tokenizer_reader *r, const char *path)
{
    const bool old = ends_with(path, "encoder.json");
    char *const merges = reader_beside(r, path, old ? "vocab.bpe" : "merges.txt");
    const bool ok = merges && read_vocab_json(r, path, merges) && read_settings(r, path);
    free(merges);
    return ok;
}

/* Llama 3 calls a file of ranks tokenizer.model. */
static bool has_ranks(const char *path)
{
    char begin[7] = "";
    FILE *const file = fopen(path, "rb");
    const bool ranks = file && fread(begin, 1, 7, file) == 7 && memcmp(begin, "IQ== 0\n", 7) == 0;
    if (file)
        fclose(file);
    return ranks;
}

static bool read_file(tokenizer_reader *r, const char *path)
{
    const file_kind kind = file_kind_at(path); /* of a model that has a tokenizer inside */
    if (kind == FILE_GGUF)
        return read_gguf(r, path);
    if (kind == FILE_SAFETENSORS)
        return read_translator_words(r, path);
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    const bool pieces = ends_with(name, ".model") || ends_with(name, ".spm");
    if (strcmp(name, "vocab.json") == 0 || strcmp(name, "encoder.json") == 0)
        return read_gpt2_files(r, path);
    if (ends_with(name, ".json"))
        return read_tokenizer_json(r, path) && read_settings(r, path);
    if (ends_with(name, ".txt"))
        return read_vocab_txt(r, path) && read_settings(r, path);
    if (ends_with(name, ".tiktoken") || (pieces && has_ranks(path)))
        return read_tiktoken(r, path) && read_settings(r, path);
    if (pieces)
        return read_sentencepiece(r, path) && read_settings(r, path);
    if (ends_with(name, ".bin"))
        return read_llama2c(r, path) && read_settings(r, path);
    return reader_refuse(
        r, "not a tokenizer by its name; tokenizer.json, vocab.txt, vocab.json, "
           "*.tiktoken, *.model, *.spm, *.bin, *.gguf and translators of \"mha train\" are");
}

/* The first of these files that a folder has. */
static bool read_folder(tokenizer_reader *r, const char *folder)
{
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model",    "spiece.model",  "sentencepiece.bpe.model",
        "spm.model",      "source.spm",         "vocab.json",    "encoder.json",
        "vocab.txt",      "tokenizer.tiktoken", "qwen.tiktoken", "tokenizer.bin"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        const size_t size = strlen(folder) + strlen(names[n]) + 2;
        char *const path = malloc(size);
        if (!path)
            return reader_no_memory(r);
        snprintf(path, size, "%s/%s", folder, names[n]);
        if (access(path, F_OK) == 0) {
            r->path = path;
            const bool ok = read_file(r, path);
            r->path = folder;
            free(path);
            return ok;
        }
        free(path);
    }
    return reader_refuse(r, "the folder has no tokenizer: no tokenizer.json, tokenizer.model, "
                            "*.spm, vocab.json or vocab.txt");
}

static bool read_path(tokenizer_reader *r, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        reader_refuse(r, "cannot be opened: %s", strerror(errno));
        r->status = MHA_ERR_FILE;
        return false;
    }
    return S_ISDIR(info.st_mode) ? read_folder(r, path) : read_file(r, path);
}

mha_tokenizer *tokenizer_create(void)
{
    mha_tokenizer *const t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->unknown = -1;
    for (int n = 0; n < MARKS; n++)
        t->marks[n] = -1;
    t->v = vocab_create();
    if (!t->v) {
        free(t);
        return NULL;
    }
    return t;
}

/* Ready for reading `name`, with an empty message. */
static tokenizer_reader begin_reading(const char *name, char *message, size_t message_size)
{
    tokenizer_reader r = {.path = name, .message = message, .message_size = message_size};
    if (message && message_size)
        message[0] = '\0';
    if (!text_libraries_present()) {
        reader_refuse(&r, "this build of libmha_model has no tokenizers; build it with PCRE2 and "
                          "utf8proc");
        r.status = MHA_ERR_FLAG;
        return r;
    }
    r.t = tokenizer_create();
    if (!r.t)
        reader_no_memory(&r);
    return r;
}

/* Hands over what was read, or frees it after a fault. */
static mha_status finish_reading(tokenizer_reader *r, mha_tokenizer **tokenizer)
{
    if (r->status == MHA_OK)
        *tokenizer = r->t;
    else
        mha_tokenizer_free(r->t);
    return r->status;
}

static mha_status open_path(mha_tokenizer **tokenizer, const char *path, bool target, char *message,
                            size_t message_size)
{
    if (message && message_size)
        message[0] = '\0';
    if (tokenizer)
        *tokenizer = NULL;
    if (!tokenizer || !path)
        return MHA_ERR_NULL;
    tokenizer_reader r = begin_reading(path, message, message_size);
    r.target = target;
    if (r.status == MHA_OK)
        read_path(&r, path);
    return finish_reading(&r, tokenizer);
}

mha_status tokenizer_open_json(mha_tokenizer **tokenizer, const char *json, size_t length,
                               const char *name, char *message, size_t message_size)
{
    *tokenizer = NULL;
    tokenizer_reader r = begin_reading(name, message, message_size);
    if (r.status == MHA_OK && read_tokenizer_json_text(&r, json, length) && find_marks(&r))
        find_chat(&r, NULL, 0);
    return finish_reading(&r, tokenizer);
}

mha_status mha_tokenizer_open(mha_tokenizer **tokenizer, const char *path, char *message,
                              size_t message_size)
{
    return open_path(tokenizer, path, false, message, message_size);
}

mha_status tokenizer_open_target(mha_tokenizer **tokenizer, const char *path, char *message,
                                 size_t message_size)
{
    return open_path(tokenizer, path, true, message, message_size);
}
