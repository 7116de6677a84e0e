/* SPDX-License-Identifier: MIT */
/* Writes and reads the configuration and the vocabularies of a model as JSON, for the metadata of a
 * model file. Reading checks everything and reports the key and the byte of an error. */
#include "translator/translator_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"
#include "translator/checksum.h"

const char *model_key(int key)
{
    static const char *const keys[MODEL_KEYS] = {"format", "config", "source_vocabulary",
                                                 "target_vocabulary", CHECKSUM_KEY};
    return keys[key];
}

mha_status model_fail_memory(const safetensors_report *r)
{
    return safetensors_fail(r, MHA_ERR_MEMORY, "out of memory for the model");
}

/* ------------------------------------------------------------- writing ----- */

#define AT(member) offsetof(transformer_config, member)

static const struct config_field {
    const char *name;
    size_t at;
} fields[] = {
    {"width", AT(width)},
    {"heads", AT(heads)},
    {"ff_width", AT(ff_width)},
    {"encoder_layers", AT(layers[TRANSFORMER_SOURCE])},
    {"decoder_layers", AT(layers[TRANSFORMER_TARGET])},
    {"source_words", AT(words[TRANSFORMER_SOURCE])},
    {"target_words", AT(words[TRANSFORMER_TARGET])},
    {"positions", AT(positions)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

void model_config_text(const transformer_config *config, char text[CONFIG_TEXT_MAX])
{
    int used = 0;
    for (int n = 0; n < FIELDS; n++)
        used += snprintf(text + used, CONFIG_TEXT_MAX - (size_t)used, "%s\"%s\": %d",
                         n ? ", " : "{", fields[n].name,
                         *(const int *)(const void *)((const char *)config + fields[n].at));
    snprintf(text + used, CONFIG_TEXT_MAX - (size_t)used, "}");
}

/* Writes a word in quotes, then `separator`; escapes at most double its length. Returns the end. */
static char *put_word(char *to, const char *word, const char *separator)
{
    *to++ = '"';
    for (; *word; word++) {
        if (*word == '"' || *word == '\\')
            *to++ = '\\';
        *to++ = *word;
    }
    *to++ = '"';
    return stpcpy(to, separator);
}

char *model_vocabulary_text(const word_list *list)
{
    size_t size = sizeof "[";
    for (int n = 0; n < WORDS_SPECIAL; n++)
        size += 2 * strlen(vocabulary_special(n)) + sizeof "\"\", " - 1;
    for (int n = 0; n < list->count; n++)
        size += 2 * strlen(list->words[n]) + sizeof "\"\", " - 1;
    char *const text = malloc(size), *at = text;
    if (!text)
        return NULL;
    *at++ = '[';
    for (int n = 0; n < WORDS_SPECIAL; n++)
        at = put_word(at, vocabulary_special(n), n + 1 < WORDS_SPECIAL + list->count ? ", " : "]");
    for (int n = 0; n < list->count; n++)
        at = put_word(at, list->words[n], n + 1 < list->count ? ", " : "]");
    return text;
}

/* ------------------------------------------------------------- reading ----- */

/* A text of the metadata that is being parsed; the reader modifies the copy. */
typedef struct metadata_text {
    const safetensors_report *report;
    const char *key;
    char *copy;
    json_reader json;
} metadata_text;

static mha_status begin_text(metadata_text *t, const safetensors_report *r, const char *key,
                             const char *text)
{
    const size_t length = strlen(text);
    *t = (metadata_text){.report = r, .key = key, .copy = malloc(length + 1)};
    if (!t->copy)
        return model_fail_memory(r);
    memcpy(t->copy, text, length + 1);
    t->json = json_reader_begin(t->copy, length);
    return MHA_OK;
}

static void end_text(metadata_text *t)
{
    json_reader_free(&t->json);
    free(t->copy);
}

/* Reports a token that is an error, or that is not what it should be, which `what` states. */
static mha_status fail_token(const metadata_text *t, const char *what)
{
    const json_reader *const j = &t->json;
    if (j->fault == JSON_MEMORY)
        return model_fail_memory(t->report);
    if (j->fault == JSON_DUPLICATE)
        return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\": \"%s\" occurs twice", t->key,
                                safetensors_show(j->text).text);
    return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\", byte %zu: %s", t->key, j->position,
                            j->fault == JSON_SYNTAX ? j->problem : what);
}

/* Reads one field of the configuration; its key has just been read. */
static mha_status read_field(metadata_text *t, transformer_config *config, unsigned *seen)
{
    int n = 0;
    while (n < FIELDS && strcmp(fields[n].name, t->json.text) != 0)
        n++;
    if (n == FIELDS)
        return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\": unknown field \"%s\"", t->key,
                                safetensors_show(t->json.text).text);
    uint64_t value;
    if (json_reader_next(&t->json) != JSON_NUMBER || !json_reader_integer(&t->json, &value) ||
        value > INT_MAX)
        return fail_token(t, "this must be a whole number");
    *(int *)(void *)((char *)config + fields[n].at) = (int)value;
    *seen |= 1u << n;
    return MHA_OK;
}

/* Reads the object of the configuration: every field must be there, and no other. Duplicate keys
 * are refused by the JSON reader. */
static mha_status read_fields(metadata_text *t, transformer_config *config)
{
    unsigned seen = 0;
    json_reader_token token = json_reader_next(&t->json);
    if (token != JSON_OBJECT)
        return fail_token(t, "this must be an object");
    while ((token = json_reader_next(&t->json)) == JSON_KEY) {
        const mha_status status = read_field(t, config, &seen);
        if (status)
            return status;
    }
    if (token != JSON_OBJECT_END || json_reader_next(&t->json) != JSON_END)
        return fail_token(t, "the object must end here");
    for (int n = 0; n < FIELDS; n++)
        if (!(seen >> n & 1))
            return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\": \"%s\" is missing", t->key,
                                    fields[n].name);
    return MHA_OK;
}

mha_status model_config_read(const safetensors_report *r, const char *text,
                             transformer_config *config)
{
    metadata_text t;
    char problem[TRANSFORMER_MESSAGE_MAX];
    mha_status status = begin_text(&t, r, model_key(KEY_CONFIG), text);
    if (!status)
        status = read_fields(&t, config);
    end_text(&t);
    if (!status && !transformer_config_check(config, problem))
        status = safetensors_fail(r, MHA_ERR_FORMAT, "\"%s\": %s", model_key(KEY_CONFIG), problem);
    return status;
}

/* Words are printed to terminals unchanged, so they must not contain control characters. */
static bool is_printable(const char *word)
{
    for (; *word; word++) {
        const unsigned char c = (unsigned char)word[0], after = (unsigned char)word[1];
        if (c <= 0x20 || c == 0x7f || (c == 0xc2 && after <= 0xa0))
            return false;
    }
    return true;
}

/* Checks word n: special words come first, the others are printable and in ascending order. */
static mha_status check_word(const metadata_text *t, const char *const *words, int n)
{
    const char *const word = words[n];
    if (n < WORDS_SPECIAL)
        return strcmp(word, vocabulary_special(n)) == 0
                   ? MHA_OK
                   : safetensors_fail(t->report, MHA_ERR_FORMAT,
                                      "\"%s\": word %d is \"%s\", not \"%s\"", t->key, n,
                                      safetensors_show(word).text, vocabulary_special(n));
    if (!*word || !is_printable(word))
        return safetensors_fail(
            t->report, MHA_ERR_FORMAT,
            "\"%s\": word %d, \"%s\", is empty or has spaces or control characters", t->key, n,
            safetensors_show(word).text);
    const int order = n == WORDS_SPECIAL ? 1 : strcmp(word, words[n - 1]);
    if (order <= 0)
        return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\": word %d, \"%s\", %s", t->key, n,
                                safetensors_show(word).text,
                                order == 0 ? "occurs twice" : "is not in sorted order");
    return MHA_OK;
}

static mha_status read_words(metadata_text *t, const char **words, int count)
{
    int n = 0;
    json_reader_token token = json_reader_next(&t->json);
    if (token != JSON_ARRAY)
        return fail_token(t, "this must be an array");
    for (; (token = json_reader_next(&t->json)) == JSON_STRING; n++) {
        if (n == count)
            return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\" has more than %d words",
                                    t->key, count);
        words[n] = t->json.text;
        const mha_status status = check_word(t, words, n);
        if (status)
            return status;
    }
    if (token != JSON_ARRAY_END || json_reader_next(&t->json) != JSON_END)
        return fail_token(t, "this must be a string, or the end of the array");
    if (n < count)
        return safetensors_fail(t->report, MHA_ERR_FORMAT, "\"%s\" has %d words, not %d", t->key, n,
                                count);
    return MHA_OK;
}

mha_status model_vocabulary_read(const safetensors_report *r, int key, const char *text, int count,
                                 vocabulary *result)
{
    metadata_text t;
    const char **const words = malloc((size_t)count * sizeof *words);
    mha_status status = begin_text(&t, r, model_key(key), text);
    if (!status)
        status = words ? read_words(&t, words, count) : model_fail_memory(r);
    if (!status && !vocabulary_make(result, words + WORDS_SPECIAL, count - WORDS_SPECIAL))
        status = model_fail_memory(r);
    end_text(&t);
    free(words);
    return status;
}
