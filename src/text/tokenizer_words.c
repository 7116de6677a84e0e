/* SPDX-License-Identifier: MIT */
/*
 * Words of a model of "mha train": English in, French out, each with a list of words in the
 * metadata of the file. Texts become words as in src/corpus/corpus_tokens.c, with the same numbers:
 *
 *      letters of ASCII become small, typographic apostrophes plain
 *      English: "don't" becomes "do not", "won't" becomes "will not"
 *      white space and punctuation divide words; "?" is a word
 *      French: words end after an apostrophe, except in "aujourd'hui"
 *
 * A word that is not in the list is <unknown>, and so are the names of marks. Words may have any
 * length; "mha translate" cuts what is longer than 60 columns.
 */
#include "text/tokenizer_words.h"
#include "format/safetensors.h"
#include "text/tokenizer_parts.h"

#include <string.h>

enum { WORD_BEGIN, WORD_END, WORD_UNKNOWN, WORDS_SPECIAL };

/* ----------------------------------------------------------------- steps ----- */

static bool add_apostrophes(tokenizer_reader *r)
{
    normalizer_step step = {.kind = NORMALIZE_REPLACE, .content = text_copy("'")};
    if (!step.content)
        return reader_no_memory(r);
    if (!make_pattern(r, &step.pattern, "\u2019", true)) {
        normalizer_step_free(&step);
        return false;
    }
    return add_normalizer(r, step);
}

static bool add_division(tokenizer_reader *r, const char *text, split_behavior behavior)
{
    pre_tokenizer_step step = {.kind = PRE_PATTERN, .behavior = behavior};
    return make_pattern(r, &step.pattern, text, false) && add_pre_tokenizer(r, step);
}

/* Text that is removed from the joined words. */
static bool add_joint(tokenizer_reader *r, const char *text, const char *content)
{
    decoder_step step = {.kind = DECODE_REPLACE, .content = text_copy(content)};
    if (!step.content)
        return reader_no_memory(r);
    if (!make_pattern(r, &step.pattern, text, true)) {
        decoder_step_free(&step);
        return false;
    }
    return add_decoder(r, step);
}

/* An apostrophe ends a word, unless it is that of a last part "aujourd'hui". */
static bool add_french(tokenizer_reader *r)
{
    return add_division(r, "'(?:(?<!\\Aaujourd')(?<!'aujourd')|(?!hui\\z))",
                        SPLIT_MERGED_WITH_PREVIOUS);
}

static bool add_steps(tokenizer_reader *r)
{
    return add_normalizer(r, (normalizer_step){.kind = NORMALIZE_LOWERCASE_ASCII}) &&
           add_apostrophes(r) &&
           (r->target || add_normalizer(r, (normalizer_step){.kind = NORMALIZE_ENGLISH_NOT})) &&
           finish_added_tokens(r) && add_division(r, "(?!\\?)[" WORD_BREAKS "]", SPLIT_REMOVED) &&
           add_division(r, "\\?", SPLIT_ISOLATED) && (!r->target || add_french(r)) &&
           add_decoder(r, (decoder_step){.kind = DECODE_SPACES}) && add_joint(r, "' ", "'") &&
           (r->target || add_joint(r, " ?", "?"));
}

/* ----------------------------------------------------------------- words ----- */

static bool add_words(tokenizer_reader *r, const json_value *list)
{
    static const char *const special[WORDS_SPECIAL] = {"<begin>", "<end>", "<unknown>"};
    const size_t count = json_tree_count(list);
    if (count < WORDS_SPECIAL || count > VOCABULARY_MAX)
        return reader_refuse(r, "the list of words has %zu elements, expected %d to %d", count,
                             WORDS_SPECIAL, VOCABULARY_MAX);
    for (size_t n = 0; n < count; n++) {
        const unsigned flags = n >= WORDS_SPECIAL  ? 0
                               : n == WORD_UNKNOWN ? PIECE_ADDED | PIECE_UNKNOWN
                                                   : PIECE_ADDED | PIECE_SPECIAL;
        const char *word;
        size_t length;
        if (!json_tree_get_string(json_tree_element(list, n), &word, &length) || length == 0 ||
            memchr(word, '\0', length) || (n < WORDS_SPECIAL && strcmp(word, special[n]) != 0))
            return reader_refuse(r, "word %zu is not %s", n,
                                 n < WORDS_SPECIAL ? special[n] : "a word");
        if (!vocab_add(r->t->v, (int32_t)n, word, length, 0, flags))
            return reader_no_memory(r);
    }
    return true;
}

static bool finish_words(tokenizer_reader *r, const json_value *list)
{
    mha_tokenizer *const t = r->t;
    t->kind = MODEL_WORDLEVEL;
    t->unknown = WORD_UNKNOWN;
    t->marks[MHA_MARK_BEGIN] = WORD_BEGIN;
    t->marks[MHA_MARK_END] = WORD_END;
    t->marks[MHA_MARK_UNKNOWN] = WORD_UNKNOWN;
    if (!add_words(r, list) || !add_steps(r))
        return false;
    add_template_text(&t->single, 0);
    return add_template_mark(r, &t->single, WORD_END, 0) && find_chat(r, NULL, 0);
}

static bool read_list(tokenizer_reader *r, const safetensors_file *file)
{
    const char *const format = safetensors_value(file, "format");
    const char *const key = r->target ? "target_vocabulary" : "source_vocabulary";
    const char *const text = safetensors_value(file, key);
    json_tree *tree;
    if (!format || strcmp(format, TRANSLATOR_FORMAT) != 0 || !text)
        return reader_refuse(r, "not a translator of \"mha train\", whose words are in its file");
    const mha_status status =
        json_tree_parse(&tree, r->path, text, strlen(text), r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    const bool ok = finish_words(r, json_tree_root(tree));
    json_tree_free(tree);
    return ok;
}

bool read_translator_words(tokenizer_reader *r, const char *path)
{
    safetensors_file *file;
    const mha_status status = safetensors_open(&file, path, 0, r->message, r->message_size);
    if (status != MHA_OK)
        return reader_failed(r, status);
    const bool ok = read_list(r, file);
    safetensors_close(file);
    return ok;
}
