/* SPDX-License-Identifier: MIT */
/* mha translate --json: source, tokens, result, unknown words, and on request other results, the
 * grammar's translation and the weights. */
#include "program/translate_json.h"

/* The tokens with the end of the sentence, so that there is one per row or column of the weights.
 */
static void print_tokens(json *j, const char *key, const corpus_sentence *tokens, bool ends,
                         const vocabulary *words)
{
    json_open_array(j, key);
    for (int n = 0; n < tokens->count; n++)
        json_string(j, NULL, tokens->tokens[n]);
    if (ends)
        json_string(j, NULL, words->words[WORD_END]);
    json_close(j);
}

static void print_result(json *j, const translated *t, int number)
{
    const translation *const result = &t->results[number];
    corpus_sentence tokens;
    char text[CORPUS_TEXT_MAX];
    target_tokens(t, number, &tokens);
    corpus_detokenise(CORPUS_FRENCH, &tokens, text);
    json_string(j, "target", text);
    print_tokens(j, "target_tokens", &tokens, target_ends(result),
                 translator_vocabulary(t->model, TRANSFORMER_TARGET));
    json_number(j, "score", result->score);
    json_bool(j, "complete", target_ends(result));
}

/* Words that the model does not know, with their position and similar words. */
static void print_unknown(json *j, const source_sentence *source)
{
    json_open_array(j, "unknown");
    for (int n = 0; n < source->unknown_count; n++) {
        const unknown_word *const unknown = &source->unknown[n];
        json_open_object(j, NULL);
        json_string(j, "word", source->tokens.tokens[unknown->position]);
        json_integer(j, "position", unknown->position);
        json_strings(j, "suggestions", unknown->near, unknown->near_count);
        json_close(j);
    }
    json_close(j);
}

/* Whether the grammar of the laboratory has the sentence. */
static void print_grammar(json *j, const source_sentence *source)
{
    json_bool(j, "in_grammar", source->outside[0] == '\0');
    if (source->outside[0] != '\0')
        json_string(j, "outside", source->outside);
}

/* Cross-attention of the best result: layers, heads, target tokens, source tokens. */
static void print_weights(json *j, const translated *t)
{
    const transformer_config *const config = translator_config(t->model);
    const translation *const result = t->results;
    const float *row = result->weights;
    json_open_array(j, "weights");
    for (int layer = 0; layer < config->layers[TRANSFORMER_TARGET]; layer++) {
        json_open_array(j, NULL);
        for (int head = 0; head < config->heads; head++) {
            json_open_array(j, NULL);
            for (int i = 0; i < result->target_count; i++, row += result->source_count)
                json_numbers(j, NULL, row, result->source_count);
            json_close(j);
        }
        json_close(j);
    }
    json_close(j);
}

/* The grammar's translation, or why the grammar cannot parse the sentence. */
static void print_gold(json *j, const translated *t)
{
    gold_translation gold;
    gold_find(&gold, t);
    json_open_object(j, "gold");
    json_bool(j, "known", gold.known);
    if (gold.known) {
        json_string(j, "target", gold.text);
        json_bool(j, "agrees", gold.agrees);
    } else {
        json_string(j, "reason", gold.reason);
    }
    json_close(j);
}

static void print_others(json *j, const translated *t)
{
    json_open_array(j, "others");
    for (int n = 1; n < t->count && t->results[n].target_count > 0; n++) {
        json_open_object(j, NULL);
        print_result(j, t, n);
        json_close(j);
    }
    json_close(j);
}

void translate_json(json *j, const translated *t, const translate_json_parts *parts)
{
    const source_sentence *const source = t->source;
    json_open_object(j, NULL);
    json_string(j, "source", source->text);
    if (source->problem[0] != '\0')
        json_string(j, "error", source->problem);
    if (t->results != NULL) {
        print_tokens(j, "source_tokens", &source->tokens, true,
                     translator_vocabulary(t->model, TRANSFORMER_SOURCE));
        print_result(j, t, 0);
        print_unknown(j, source);
        if (translator_is_laboratory(t->model))
            print_grammar(j, source);
        if (parts->others)
            print_others(j, t);
        if (parts->gold)
            print_gold(j, t);
        if (parts->weights)
            print_weights(j, t);
    } else if (source->problem[0] == '\0') {
        json_string(j, "target", "");
    }
    json_close(j);
}
