/* SPDX-License-Identifier: MIT */
/*
 * Tests of model files: a saved model is loaded with the same bits, and an invalid or damaged file
 * is refused with a message that says what is wrong.
 */
#include "translator/translator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "format/safetensors.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_model.h"

static temp_folder folder;

/* ------------------------------------------------------- save and load ----- */

static size_t value_count(const transformer_config *config)
{
    transformer_map map;
    transformer_map_fill(&map, config);
    return map.count;
}

static void check_same_translations(const translator *a, const translator *b)
{
    static tiny_sentences sentences;
    static translation results[2][TINY_SENTENCES];
    const translation_options options = {.beam = 2};
    const translator *const both[] = {a, b};
    tiny_sentences_fill(&sentences, translator_config(a), 9);
    for (int n = 0; n < 2; n++)
        CHECK(translator_translate(both[n], sentences.sources, sentences.lengths, TINY_SENTENCES,
                                   &options, results[n], NULL) == MHA_OK,
              "no translations");
    CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0, "other translations");
}

static void check_same_words(const translator *a, const translator *b)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const vocabulary *const v = translator_vocabulary(a, side);
        const vocabulary *const w = translator_vocabulary(b, side);
        CHECK(v->count == w->count, "%d words, %d words", v->count, w->count);
        for (int n = 0; n < v->count && n < w->count; n++)
            CHECK(strcmp(v->words[n], w->words[n]) == 0, "word %d: \"%s\", \"%s\"", n, v->words[n],
                  w->words[n]);
    }
}

/* A file of this type contains the model with its parameters rounded to the type. */
static void check_type(mha_dtype type)
{
    static const translator_note notes[] = {{"trained-with", "mha train --seed \"1\"\n\xc3\xa9"},
                                            {"steps", "12"}};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 4);
    const char *const path = temp_path(&folder, "model");
    const mha_status status = translator_save(path, &config, values, type, notes, 2, message);
    CHECK(status == MHA_OK, "%s: %s", mha_status_string(status), message);
    translator *const loaded = translator_load(path, message);
    for (size_t n = 0; type == MHA_F16 && n < value_count(&config); n++)
        values[n] = convert_f16_to_f32(convert_f32_to_f16(values[n]));
    translator *const made = translator_create(&config, values, message);
    if (CHECK(loaded && made, "%s", message)) {
        CHECK(memcmp(translator_config(loaded), &config, sizeof config) == 0, "another model");
        CHECK(strcmp(translator_note_text(loaded, "trained-with"), notes[0].text) == 0, "a note");
        CHECK(strcmp(translator_note_text(loaded, "steps"), "12") == 0, "the other note");
        CHECK(!translator_note_text(loaded, "config"), "the configuration is no note");
        check_same_words(loaded, made);
        check_same_translations(loaded, made);
    }
    translator_free(loaded);
    translator_free(made);
    free(values);
}

static void files_bring_everything_back(void)
{
    check_type(MHA_F32);
    check_type(MHA_F16);
}

static void check_save(const transformer_config *config, const float *values, mha_dtype type,
                       const translator_note *notes, mha_status wanted, const char *words)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const char *const path = temp_path(&folder, "refused");
    const mha_status status =
        translator_save(path, config, values, type, notes, notes ? 1 : 0, message);
    CHECK(status == wanted && strstr(message, words), "wanted \"%s\", got %s, \"%s\"", words,
          mha_status_string(status), message);
    size_t size;
    unsigned char *const bytes = file_bytes(path, &size);
    CHECK(!bytes, "there is a file");
    free(bytes);
}

static void what_cannot_be_saved(void)
{
    static const translator_note note = {"config", "mine"}, sum = {"checksum", "mine"};
    transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 4);
    check_save(&config, values, MHA_BF16, NULL, MHA_ERR_DTYPE, "F16 or F32");
    check_save(&config, values, MHA_F32, &note, MHA_ERR_FORMAT, "\"config\"");
    check_save(&config, values, MHA_F32, &sum, MHA_ERR_FORMAT, "\"checksum\"");
    values[0] = 70000.0f;
    check_save(&config, values, MHA_F16, NULL, MHA_ERR_FORMAT,
               "element 0 of \"encoder.embed_tokens.weight\" is 70000: not a finite F16");
    values[0] = NAN;
    check_save(&config, values, MHA_F32, NULL, MHA_ERR_FORMAT, "not a finite number");
    config.words[TRANSFORMER_TARGET]++;
    check_save(&config, values, MHA_F32, NULL, MHA_ERR_SHAPE, "target words");
    config.heads = 7;
    check_save(&config, values, MHA_F32, NULL, MHA_ERR_SHAPE, "heads");
    free(values);
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const transformer_config good = tiny_corpus_config();
    float *const fine = tiny_values(&good, 4);
    CHECK(translator_save("/nonexistent/model", &good, fine, MHA_F32, NULL, 0, message) ==
              MHA_ERR_FILE,
          "a folder that is not there: \"%s\"", message);
    free(fine);
}

/* ------------------------------------------------------------ bad files ----- */

/* The pieces of a file, each of which a case may change. */
typedef struct pieces {
    transformer_config config;
    float *values;
    transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    uint64_t shapes[TRANSFORMER_TENSORS_MAX][3];
    safetensors_item items[TRANSFORMER_TENSORS_MAX + 1];
    int count;
    char words[TRANSFORMER_SIDES][1024];
    safetensors_pair pairs[6];
    int pair_count;
} pieces;

static const char tiny_config_text[] =
    "{\"width\":32,\"heads\":4,\"ff_width\":48,\"encoder_layers\":2,\"decoder_layers\":2,"
    "\"source_words\":20,\"target_words\":24,\"positions\":12}";

/* ["<begin>", "<end>", "<unknown>", "wa", "wb", ...] */
static void fill_words(char *text, size_t size, int count)
{
    int used = snprintf(text, size, "[\"<begin>\",\"<end>\",\"<unknown>\"");
    for (int n = 0; n < count - WORDS_SPECIAL; n++)
        used += snprintf(text + used, size - (size_t)used, ",\"w%c\"", 'a' + n);
    snprintf(text + used, size - (size_t)used, "]");
}

static pieces *pieces_new(void)
{
    pieces *const p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->config = tiny_config();
    p->values = tiny_values(&p->config, 2);
    p->count = transformer_tensors(&p->config, p->list);
    for (int n = 0; n < p->count; n++) {
        for (int axis = 0; axis < 2; axis++)
            p->shapes[n][axis] = (uint64_t)p->list[n].shape[axis];
        p->items[n] = (safetensors_item){p->list[n].name, SAFETENSORS_F32, (size_t)p->list[n].rank,
                                         p->shapes[n], p->values + p->list[n].at};
    }
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        fill_words(p->words[side], sizeof p->words[side], p->config.words[side]);
    const safetensors_pair pairs[] = {{"format", "mha-translator-1"},
                                      {"config", tiny_config_text},
                                      {"source_vocabulary", p->words[TRANSFORMER_SOURCE]},
                                      {"target_vocabulary", p->words[TRANSFORMER_TARGET]}};
    memcpy(p->pairs, pairs, sizeof pairs);
    p->pair_count = 4;
    return p;
}

/* Writes the pieces, loads the file; frees the pieces. */
static translator *pieces_load(pieces *p, char message[TRANSFORMER_MESSAGE_MAX])
{
    const char *const path = temp_path(&folder, "pieces");
    const mha_status status =
        safetensors_write(path, p->items, (size_t)p->count, p->pairs, (size_t)p->pair_count,
                          message, TRANSFORMER_MESSAGE_MAX);
    CHECK(status == MHA_OK, "cannot write: %s", message);
    free(p->values);
    free(p);
    return translator_load(path, message);
}

/* Checks that the file is refused with these words in the message. */
static void check_refused(pieces *p, const char *words)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator *const t = pieces_load(p, message);
    CHECK(!t && strstr(message, words) && strstr(message, "pieces: "), "wanted \"%s\", got \"%s\"",
          words, message);
    translator_free(t);
}

static void pieces_make_a_model(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator *const t = pieces_load(pieces_new(), message);
    if (CHECK(t, "%s", message)) {
        CHECK(strcmp(translator_vocabulary(t, TRANSFORMER_TARGET)->words[23], "wu") == 0, "words");
        CHECK(vocabulary_find(translator_vocabulary(t, TRANSFORMER_SOURCE), "wq") == 19, "find");
    }
    translator_free(t);
}

/* Words that are not in the corpus, some that need escapes in JSON, and notes of all kinds. */
static pieces *pieces_of_another(void)
{
    pieces *const p = pieces_new();
    static char words[1100];
    const char *const word = strstr(p->words[TRANSFORMER_TARGET], "\"wc\"");
    snprintf(words, sizeof words, "%.*s\"wb\\\"\\\\\"%s",
             (int)(word - p->words[TRANSFORMER_TARGET]), p->words[TRANSFORMER_TARGET],
             word + strlen("\"wc\""));
    p->pairs[3].value = words;
    p->pairs[p->pair_count++] = (safetensors_pair){"licence", "\xc2\xa9 \"someone\"\n"};
    p->pairs[p->pair_count++] = (safetensors_pair){"pruned", "not yet"};
    return p;
}

/* Words and notes of a model are kept when its parameters change. */
static void changed_models_keep_words_and_notes(void)
{
    static const translator_note note = {"pruned", "2 of 24 heads kept"};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const char *const path = temp_path(&folder, "changed");
    const transformer_config config = tiny_config();
    float *const values = tiny_values(&config, 8);
    translator *const from = pieces_load(pieces_of_another(), message);
    translator *to = NULL;
    if (CHECK(from, "%s", message)) {
        CHECK(strcmp(translator_vocabulary(from, TRANSFORMER_TARGET)->words[5], "wb\"\\") == 0,
              "the word is \"%s\"", translator_vocabulary(from, TRANSFORMER_TARGET)->words[5]);
        const mha_status status =
            translator_save_changed(path, from, values, MHA_F32, &note, 1, message);
        CHECK(status == MHA_OK, "%s", message);
        to = translator_load(path, message);
    }
    translator *const made = translator_create(&config, values, message);
    if (CHECK(to && made, "%s", message)) {
        check_same_words(from, to);
        check_same_translations(made, to);
        CHECK(strcmp(translator_note_text(to, "licence"), "\xc2\xa9 \"someone\"\n") == 0, "a note");
        CHECK(strcmp(translator_note_text(to, "pruned"), note.text) == 0, "the new note");
    }
    translator_free(from);
    translator_free(to);
    translator_free(made);
    free(values);
}

/* A model made from parameters, with another number of words than the corpus, has no vocabulary. */
static void models_without_words_are_not_written(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const transformer_config config = tiny_config();
    float *const values = tiny_values(&config, 8);
    translator *const t = translator_create(&config, values, message);
    if (CHECK(t, "%s", message))
        CHECK(translator_save_changed(temp_path(&folder, "none"), t, values, MHA_F32, NULL, 0,
                                      message) == MHA_ERR_SHAPE &&
                  strstr(message, "20 source words and its vocabulary 0"),
              "\"%s\"", message);
    translator_free(t);
    free(values);
}

static void keys_that_are_missing(void)
{
    static const char *const words[] = {"not a translator: its metadata has no \"format\"",
                                        "no \"config\"", "no \"source_vocabulary\"",
                                        "no \"target_vocabulary\""};
    for (int n = 0; n < 4; n++) {
        pieces *const p = pieces_new();
        p->pairs[n].key = "another";
        check_refused(p, words[n]);
    }
    pieces *const none = pieces_new();
    none->pair_count = 0;
    check_refused(none, "no \"format\"");
    pieces *const other = pieces_new();
    other->pairs[0].value = "mha-translator-2";
    check_refused(other, "\"format\" is \"mha-translator-2\", not \"mha-translator-1\"");
}

/* Replaces `from` by `to` in a text of the metadata. */
typedef struct change {
    const char *from, *to, *message;
} change;

static void check_change(int pair, const change *c)
{
    static char text[4096];
    pieces *const p = pieces_new();
    const char *const old = p->pairs[pair].value, *const at = strstr(old, c->from);
    if (!CHECK(at, "there is no \"%s\"", c->from))
        abort();
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - old), old, c->to, at + strlen(c->from));
    p->pairs[pair].value = text;
    check_refused(p, c->message);
}

static void invalid_configurations(void)
{
    static const change changes[] = {
        {"\"heads\":4,", "", "\"config\": \"heads\" is missing"},
        {"\"heads\":4", "\"heads\":4,\"heads\":4", "\"heads\" occurs twice"},
        {"\"heads\":4", "\"heads\":4,\"tails\":4", "unknown field \"tails\""},
        {"\"heads\":4", "\"heads\":4,\"\\u001b[31m\":4", "unknown field \"?[31m\""},
        {"\"heads\":4", "\"heads\":\"4\"", "must be a whole number"},
        {"\"heads\":4", "\"heads\":4.5", "must be a whole number"},
        {"\"heads\":4", "\"heads\":-4", "must be a whole number"},
        {"\"heads\":4", "\"heads\":4294967300", "must be a whole number"},
        {"\"heads\":4", "\"heads\":null", "must be a whole number"},
        {"\"heads\":4", "\"heads\":5", "multiple of the 5 heads"},
        {"\"heads\":4", "\"heads\":0", "number of heads"},
        {"\"heads\":4", "\"heads\" 4", "\"config\", byte"},
        {"\"width\":32", "\"width\":64", "extent 1 of the tensor \"encoder.embed_tokens.weight\""},
        {"\"positions\":12", "\"positions\":2147483647", "number of positions"},
        {"\"encoder_layers\":2", "\"encoder_layers\":3", "is missing"},
        {"\"decoder_layers\":2", "\"decoder_layers\":1", "does not belong to this model"},
        {"\"source_words\":20", "\"source_words\":21", "is 20, not 21"},
        {"}", "", "\"config\", byte"},
        {"}", "} x", "\"config\", byte"},
        {"{", "[{", "this must be an object"},
    };
    for (size_t n = 0; n < sizeof changes / sizeof changes[0]; n++)
        check_change(1, &changes[n]);
}

static void invalid_vocabularies(void)
{
    static const change changes[] = {
        {"\"<end>\"", "\"<stop>\"", "word 1 is \"<stop>\", not \"<end>\""},
        {"\"wc\"", "\"wb\"", "word 5, \"wb\", occurs twice"},
        {"\"wc\"", "\"wa\"", "word 5, \"wa\", is not in sorted order"},
        {"\"wc\"", "\"\"", "is empty"},
        {"\"wc\"", "\"w c\"", "spaces or control characters"},
        {"\"wc\"", "\"wb\\u001b[2J\"", "word 5, \"wb?[2J\", is empty or has spaces"},
        {"\"wc\"", "\"wb\\u009b2J\"", "spaces or control characters"},
        {"\"wc\"", "7", "must be a string, or the end of the array"},
        {"\"wc\"", "[\"wc\"]", "must be a string, or the end of the array"},
        {"\"wc\",", "", "words, not"},
        {"]", ",\"wz\"]", "has more than"},
        {"]", "]]", "vocabulary\", byte"},
        {"[\"<begin>\"", "{\"<begin>\"", "this must be an array"},
        {"\"wc\"", "\"wc", "vocabulary\", byte"},
    };
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        for (size_t n = 0; n < sizeof changes / sizeof changes[0]; n++)
            check_change(2 + side, &changes[n]);
}

static void invalid_tensors(void)
{
    pieces *p = pieces_new();
    p->items[7].name = "decoy";
    check_refused(p, "is missing");
    p = pieces_new();
    p->items[p->count] = (safetensors_item){"one more", SAFETENSORS_F32, 0, NULL, p->values};
    p->count++;
    check_refused(p, "the tensor \"one more\" does not belong to this model");
    p = pieces_new();
    p->items[0].type = SAFETENSORS_I32;
    check_refused(p, "the tensor \"encoder.embed_tokens.weight\" is I32, not F16 or F32");
    p = pieces_new();
    p->shapes[0][0] = 10;
    p->shapes[0][1] = 64;
    check_refused(p, "extent 0 of the tensor \"encoder.embed_tokens.weight\" is 10, not 20");
    p = pieces_new();
    p->items[0].rank = 3;
    p->shapes[0][2] = 1;
    check_refused(p, "has 3 extents, not 2");
    static const float poison[] = {NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 3; n++) {
        p = pieces_new();
        p->values[p->list[3].at + 5] = poison[n];
        check_refused(p, "element 5 of the tensor");
    }
}

/* A file may have tensors of both types; an F16 that is not finite is found too. */
static void mixed_types(void)
{
    static uint16_t halves[64];
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    for (int n = 0; n < 64; n++)
        halves[n] = 0x3c00;
    for (int bad = 0; bad < 2; bad++) {
        pieces *const p = pieces_new();
        p->items[1].type = SAFETENSORS_F16;
        p->items[1].data = halves;
        halves[9] = bad ? 0x7c00 : 0x3c00;
        if (bad) {
            check_refused(p, "element 9 of the tensor");
            continue;
        }
        translator *const t = pieces_load(p, message);
        CHECK(t, "%s", message);
        translator_free(t);
    }
}

/* ---------------------------------------------------------- other files ----- */

static void check_bytes(const unsigned char *bytes, size_t size, const char *what)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const char *const path = temp_path(&folder, "bytes");
    CHECK(file_make(path, bytes, size), "cannot make a file");
    translator *const t = translator_load(path, message);
    CHECK(!t && message[0], "%s was loaded, \"%s\"", what, message);
    translator_free(t);
}

static void other_files_are_refused(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    CHECK(!translator_load("/nonexistent/model", message) && strstr(message, "/nonexistent/model"),
          "\"%s\"", message);
    CHECK(!translator_load(folder.path, message), "a folder was loaded");
    check_bytes(NULL, 0, "nothing");
    check_bytes((const unsigned char *)"plain text, not a model", 23, "a text");
    const unsigned char bare[] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    check_bytes(bare, sizeof bare, "a file without tensors");
}

/* The bytes of the valid file; the caller frees them. */
static unsigned char *sound_bytes(size_t *size)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    translator_free(pieces_load(pieces_new(), message));
    return file_bytes(temp_path(&folder, "pieces"), size);
}

static void files_that_were_cut(void)
{
    size_t size;
    unsigned char *const bytes = sound_bytes(&size);
    for (int n = 0; n < 40; n++)
        check_bytes(bytes, size * (size_t)n / 40, "a part of a file");
    check_bytes(bytes, size - 1, "a file without its last byte");
    free(bytes);
}

/* A file with a changed byte is refused or gives a working model; it never crashes. */
static void files_that_were_damaged(void)
{
    static const int source[] = {3, 4, 5};
    const int *const sources[] = {source};
    const int length = 3;
    const translation_options options = {.beam = 2};
    test_random random = {test_seed(17)};
    char message[TRANSFORMER_MESSAGE_MAX];
    size_t size;
    unsigned char *const bytes = sound_bytes(&size);
    const char *const path = temp_path(&folder, "damaged");
    for (int64_t n = 0; n < test_effort(300); n++) {
        const size_t header = 3000, within = n % 3 ? header : size;
        const size_t at = (size_t)test_random_below(&random, (int64_t)within);
        const unsigned char old = bytes[at];
        bytes[at] = (unsigned char)(old ^ (1u << test_random_below(&random, 8)));
        CHECK(file_make(path, bytes, size), "cannot make a file");
        bytes[at] = old;
        translator *const t = translator_load(path, message);
        translation result;
        CHECK(!t || translator_translate(t, sources, &length, 1, &options, &result, NULL) == MHA_OK,
              "a model that does not work");
        translator_free(t);
    }
    free(bytes);
}

/* In a file with a checksum, every changed bit of numbers or notes is found. */
static void check_bit(unsigned char *bytes, size_t size, size_t at, int bit)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const char *const path = temp_path(&folder, "flipped");
    bytes[at] = (unsigned char)(bytes[at] ^ (1u << bit));
    CHECK(file_make(path, bytes, size), "cannot make a file");
    bytes[at] = (unsigned char)(bytes[at] ^ (1u << bit));
    translator *const t = translator_load(path, message);
    CHECK(!t && (strstr(message, "checksum does not agree") || strstr(message, "not a finite")),
          "bit %d of byte %zu: \"%s\"", bit, at, message);
    translator_free(t);
}

static void check_bits_of(mha_dtype type)
{
    static const translator_note note = {"steps", "12"};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const char *const path = temp_path(&folder, "whole");
    const transformer_config config = tiny_corpus_config();
    float *const values = tiny_values(&config, 5);
    test_random random = {test_seed(23)};
    const mha_status status = translator_save(path, &config, values, type, &note, 1, message);
    CHECK(status == MHA_OK, "%s", message);
    size_t size;
    unsigned char *const bytes = file_bytes(path, &size);
    const size_t numbers = value_count(&config) * (type == MHA_F16 ? 2 : 4);
    for (int64_t n = 0; n < test_effort(200); n++) {
        const size_t at = size - numbers + (size_t)test_random_below(&random, (int64_t)numbers);
        check_bit(bytes, size, at, (int)test_random_below(&random, 8));
    }
    for (int bit = 0; bit < 8; bit++) {
        check_bit(bytes, size, size - numbers, bit);
        check_bit(bytes, size, size - 1, bit);
    }
    const char *const text = strstr((const char *)bytes + 8, "\"steps\":\"12\"");
    if (CHECK(text, "no note"))
        check_bit(bytes, size, (size_t)(text - (const char *)bytes) + 10, 0);
    free(bytes);
    free(values);
}

static void changed_bits_are_found(void)
{
    check_bits_of(MHA_F16);
    check_bits_of(MHA_F32);
    pieces *const p = pieces_new();
    p->pairs[p->pair_count++] = (safetensors_pair){"checksum", "0123456789abcdef"};
    check_refused(p, "damaged: its checksum does not agree");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    folder = temp_folder_new();
    RUN(files_bring_everything_back);
    RUN(what_cannot_be_saved);
    RUN(pieces_make_a_model);
    RUN(changed_models_keep_words_and_notes);
    RUN(models_without_words_are_not_written);
    RUN(keys_that_are_missing);
    RUN(invalid_configurations);
    RUN(invalid_vocabularies);
    RUN(invalid_tensors);
    RUN(mixed_types);
    RUN(other_files_are_refused);
    RUN(files_that_were_cut);
    RUN(files_that_were_damaged);
    RUN(changed_bits_are_found);
    temp_folder_free(&folder);
    return test_end();
}
