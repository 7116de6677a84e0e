/* SPDX-License-Identifier: MIT */
/* The tokenizer.json of a learned vocabulary (tokenizer_json_write.h). */
#include "text/tokenizer_json_write.h"

#include "format/json_writer.h"
#include "text/buffer_stream.h"
#include "text/text_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE "\xe2\x96\x81" /* U+2581 */

#define LETTER "[\\p{L}\\p{M}]"
#define WORD SPACE "?\\p{L}" LETTER "*"
#define APOSTROPHE "['\xe2\x80\x99]"
#define NOT "[nN]" APOSTROPHE "[tT](?!" LETTER ")"
#define CONTRACTION APOSTROPHE "(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])(?!" LETTER ")"

/*
 * What is a word, in this order: what stands before "n't"; "n't"; "'s", "'re" and so on; a word
 * with an apostrophe before another one ("l'", "qu'"); any other word; a digit; a punctuation mark
 * or full stops, with the space or no-break space before them; spaces but the last one; a space;
 * other white space.
 */
static const char word_pattern[] =
    WORD "?(?=" NOT ")|" NOT "|" CONTRACTION "|" WORD "(?!" CONTRACTION ")" APOSTROPHE
         "(?=\\p{L})|" WORD "|" SPACE "?\\p{N}|[" SPACE "\xc2\xa0\xe2\x80\xaf]?(?:\\.+|[^\\s" SPACE
         "\\p{L}\\p{N}])|" SPACE "+(?=" SPACE ")|" SPACE "|\\s+";

static const char *const marks[LEARNED_BYTES] = {"</s>", "<unk>", "<pad>"};

vocabulary *learned_vocabulary_begin(void)
{
    vocabulary *const v = vocab_create();
    bool ok = v != NULL;
    for (int32_t id = 0; id < LEARNED_CHARACTERS && ok; id++) {
        char byte[8];
        snprintf(byte, sizeof byte, "<0x%02X>", (unsigned)(id - LEARNED_BYTES) & 0xff);
        const char *const piece = id < LEARNED_BYTES ? marks[id] : byte;
        ok = vocab_add(v, id, piece, strlen(piece), 0, 0);
    }
    if (ok)
        return v;
    vocab_free(v);
    return NULL;
}

static void write_added_tokens(json *j)
{
    json_open_array(j, "added_tokens");
    for (int id = 0; id < LEARNED_BYTES; id++) {
        json_open_object(j, NULL);
        json_integer(j, "id", id);
        json_string(j, "content", marks[id]);
        json_bool(j, "single_word", false);
        json_bool(j, "lstrip", false);
        json_bool(j, "rstrip", false);
        json_bool(j, "normalized", false);
        json_bool(j, "special", true);
        json_close(j);
    }
    json_close(j);
}

/* An object of this type, which stays open. */
static void open_step(json *j, const char *key, const char *type)
{
    json_open_object(j, key);
    json_string(j, "type", type);
}

static void write_step(json *j, const char *type)
{
    open_step(j, NULL, type);
    json_close(j);
}

/* `kind`: "String" or "Regex". */
static void write_pattern(json *j, const char *kind, const char *pattern)
{
    json_open_object(j, "pattern");
    json_string(j, kind, pattern);
    json_close(j);
}

static void write_replace(json *j, const char *old, const char *new)
{
    open_step(j, NULL, "Replace");
    write_pattern(j, "String", old);
    json_string(j, "content", new);
    json_close(j);
}

static void write_normalizer(json *j)
{
    open_step(j, "normalizer", "Sequence");
    json_open_array(j, "normalizers");
    write_step(j, "NFC");
    open_step(j, NULL, "Prepend");
    json_string(j, "prepend", SPACE);
    json_close(j);
    write_replace(j, " ", SPACE);
    json_close(j);
    json_close(j);
}

static void write_pre_tokenizer(json *j)
{
    open_step(j, "pre_tokenizer", "Split");
    write_pattern(j, "Regex", word_pattern);
    json_string(j, "behavior", "Isolated");
    json_bool(j, "invert", false);
    json_close(j);
}

/* One element of a template: a text or a mark. */
static void write_element(json *j, const char *kind, const char *id, int segment)
{
    json_open_object(j, NULL);
    json_open_object(j, kind);
    json_string(j, "id", id);
    json_integer(j, "type_id", segment);
    json_close(j);
    json_close(j);
}

static void write_template(json *j, const char *key, int texts)
{
    static const char *const names[] = {"A", "B"};
    json_open_array(j, key);
    for (int n = 0; n < texts; n++) {
        write_element(j, "Sequence", names[n], n);
        write_element(j, "SpecialToken", marks[LEARNED_END], n);
    }
    json_close(j);
}

static void write_post_processor(json *j)
{
    open_step(j, "post_processor", "TemplateProcessing");
    write_template(j, "single", 1);
    write_template(j, "pair", 2);
    json_open_object(j, "special_tokens");
    json_open_object(j, marks[LEARNED_END]);
    json_string(j, "id", marks[LEARNED_END]);
    json_open_array(j, "ids");
    json_integer(j, NULL, LEARNED_END);
    json_close(j);
    json_strings(j, "tokens", &marks[LEARNED_END], 1);
    json_close(j);
    json_close(j);
    json_close(j);
}

static void write_decoder(json *j)
{
    open_step(j, "decoder", "Sequence");
    json_open_array(j, "decoders");
    write_replace(j, SPACE, " ");
    write_step(j, "ByteFallback");
    write_step(j, "Fuse");
    open_step(j, NULL, "Strip");
    json_string(j, "content", " ");
    json_integer(j, "start", 1);
    json_integer(j, "stop", 0);
    json_close(j);
    json_close(j);
    json_close(j);
}

/* Pieces have no spaces, so a merge is its two pieces with a space between them. False: out of
 * memory. */
static bool write_merges(json *j, const vocabulary *v, const bpe_pair_list *merges)
{
    text_buffer both = {0};
    json_open_array(j, "merges");
    for (size_t n = 0; n < merges->count && !both.failed; n++) {
        both.length = 0;
        text_buffer_add_string(&both, vocab_piece(v, merges->pairs[n].left, NULL));
        text_buffer_add_string(&both, " ");
        text_buffer_add_string(&both, vocab_piece(v, merges->pairs[n].right, NULL));
        if (!both.failed)
            json_string(j, NULL, both.bytes);
    }
    json_close(j);
    const bool ok = !both.failed;
    text_buffer_free(&both);
    return ok;
}

static bool write_model(json *j, const vocabulary *v, const bpe_pair_list *merges)
{
    open_step(j, "model", "BPE");
    json_string(j, "unk_token", marks[LEARNED_UNKNOWN]);
    json_bool(j, "fuse_unk", true);
    json_bool(j, "byte_fallback", true);
    json_bool(j, "ignore_merges", false);
    json_open_object(j, "vocab");
    for (int32_t id = 0; id < vocab_size(v); id++)
        json_integer(j, vocab_piece(v, id, NULL), id);
    json_close(j);
    const bool ok = write_merges(j, v, merges);
    json_close(j);
    return ok;
}

/* False: out of memory. */
static bool write_file(FILE *file, const vocabulary *v, const bpe_pair_list *merges)
{
    json j = json_begin(file);
    json_open_object(&j, NULL);
    json_string(&j, "version", "1.0");
    write_added_tokens(&j);
    write_normalizer(&j);
    write_pre_tokenizer(&j);
    write_post_processor(&j);
    write_decoder(&j);
    const bool ok = write_model(&j, v, merges);
    json_close(&j);
    return ok;
}

char *tokenizer_json_write(const vocabulary *v, const bpe_pair_list *merges, size_t *length)
{
    text_buffer text = {0};
    FILE *const file = buffer_stream_open(&text);
    if (!file)
        return NULL;
    const bool written = write_file(file, v, merges);
    if (fclose(file) != 0 || !written || text.failed)
        text_buffer_free(&text);
    *length = text.length;
    return text.bytes;
}
