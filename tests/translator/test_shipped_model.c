/* SPDX-License-Identifier: MIT */
/*
 * Tests of the model in the repository: its size, its checksum, its vocabulary, the sentences of
 * the documentation, and the share of held-out sentences that it translates exactly.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/safetensors.h"
#include "support/test.h"
#include "translator/accuracy.h"

enum { EVALUATED = 500, BYTES_MAX = 5000000, COMPARED = 40 };

static translator *model;
static char message[TRANSFORMER_MESSAGE_MAX];

/* Returns false and skips the test if there is no model. */
static bool is_there(void)
{
    struct stat file;
    if (stat(MHA_MODEL_FILE, &file) != 0) {
        test_skip("models/lab-en-fr.safetensors is not there");
        return false;
    }
    return true;
}

static bool is_loaded(void)
{
    return is_there() && CHECK(model, "%s", message);
}

/* The word numbers of an English text; returns how many there are. */
static int read_text(const char *text, int words[CORPUS_TOKENS_MAX])
{
    char buffer[CORPUS_TEXT_MAX];
    corpus_sentence tokens;
    CHECK(corpus_tokenise(CORPUS_ENGLISH, text, buffer, &tokens), "\"%s\" is too long", text);
    for (int n = 0; n < tokens.count; n++)
        words[n] =
            vocabulary_find(translator_vocabulary(model, TRANSFORMER_SOURCE), tokens.tokens[n]);
    return tokens.count;
}

static void write_text(const translation *t, char text[CORPUS_TEXT_MAX])
{
    corpus_sentence tokens = {.count = 0};
    for (int n = 0; n < t->target_count && t->target[n] != WORD_END; n++)
        tokens.tokens[tokens.count++] =
            translator_vocabulary(model, TRANSFORMER_TARGET)->words[t->target[n]];
    corpus_detokenise(CORPUS_FRENCH, &tokens, text);
}

static void it_is_as_large_as_said(void)
{
    struct stat file = {.st_size = 0};
    if (!is_loaded())
        return;
    CHECK(stat(MHA_MODEL_FILE, &file) == 0 && file.st_size < BYTES_MAX, "%lld bytes",
          (long long)file.st_size);
    const transformer_config *const config = translator_config(model);
    transformer_map map;
    transformer_map_fill(&map, config);
    CHECK(config->heads == 8, "%d heads", config->heads);
    CHECK(map.count > 800000 && map.count < 1500000, "%zu parameters", map.count);
}

/* With a checksum, a damaged copy is refused. */
static void it_has_a_checksum(void)
{
    safetensors_file *file = NULL;
    if (!is_loaded() || !CHECK(safetensors_open(&file, MHA_MODEL_FILE, SAFETENSORS_STRICT, message,
                                                sizeof message) == MHA_OK,
                               "%s", message))
        return;
    bool found = false;
    for (size_t n = 0; n < file->pair_count; n++)
        found = found || strcmp(file->pairs[n].key, "checksum") == 0;
    CHECK(found, "there is none");
    safetensors_close(file);
}

static void it_knows_the_corpus(void)
{
    if (!is_loaded())
        return;
    CHECK(translator_is_laboratory(model), "it is not the laboratory");
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        corpus_vocabulary corpus;
        corpus_vocabulary_fill(&corpus, (corpus_side)side);
        for (int n = 0; n < corpus.count; n++)
            CHECK(vocabulary_find(translator_vocabulary(model, side), corpus.words[n]) !=
                      WORD_UNKNOWN,
                  "it does not know \"%s\"", corpus.words[n]);
    }
}

static void it_translates_what_it_must(void)
{
    static const char *const pairs[][2] = {
        {"The cat that I saw yesterday ran away", "le chat que j'ai vu hier s'est enfui"},
        {"The quick brown fox jumps", "le renard brun rapide saute"},
        {"He sees her", "il la voit"},
        {"I love you", "je t'aime"},
        {"They give it to him", "ils le lui donnent"},
        {"She gives the boy a book", "elle donne un livre au garçon"},
        {"He did not give them to me", "il ne me les a pas donnés"},
        {"The cat is sleeping", "le chat dort"},
        {"The cat was sleeping when the dog arrived", "le chat dormait quand le chien est arrivé"}};
    if (!is_loaded())
        return;
    for (size_t n = 0; n < sizeof pairs / sizeof pairs[0]; n++)
        for (int beam = 1; beam <= 4; beam += 3) {
            const translation_options options = {.beam = beam};
            int words[CORPUS_TOKENS_MAX];
            const int *const source = words, length = read_text(pairs[n][0], words);
            translation result;
            char text[CORPUS_TEXT_MAX];
            const mha_status status =
                translator_translate(model, &source, &length, 1, &options, &result, NULL);
            CHECK(status == MHA_OK, "%s", mha_status_string(status));
            write_text(&result, text);
            CHECK(strcmp(text, pairs[n][1]) == 0, "beam %d: \"%s\" became \"%s\", not \"%s\"", beam,
                  pairs[n][0], text, pairs[n][1]);
        }
}

static void it_is_right_on_held_out_sentences(void)
{
    const translation_options greedy = {.beam = 1};
    const int64_t count = test_effort(EVALUATED);
    int64_t right = 0;
    if (!is_loaded())
        return;
    const mha_status status = accuracy_measure(model, 1, CORPUS_TEST, count, &greedy, NULL, &right);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    /* If there are few sentences, one may be wrong whatever the share. */
    const int64_t wrong = count * 2 / 100 > 0 ? count * 2 / 100 : 1;
    CHECK(right >= count - wrong, "%lld of %lld sentences", (long long)right, (long long)count);
}

/* ------------------------------------------------------------- the bits ----- */

typedef struct held_out {
    int words[COMPARED][CORPUS_TOKENS_MAX];
    int lengths[COMPARED];
    const int *sources[COMPARED];
    translation results[2][COMPARED];
    int count;
} held_out;

static held_out *held_out_new(void)
{
    held_out *const h = calloc(1, sizeof *h);
    if (!h)
        abort();
    h->count = (int)test_effort(COMPARED);
    h->count = h->count < 1 ? 1 : h->count > COMPARED ? COMPARED : h->count;
    for (int n = 0; n < h->count; n++) {
        corpus_pair pair;
        char text[CORPUS_TEXT_MAX];
        corpus_generate(2, CORPUS_TEST, (uint64_t)n, &pair, NULL);
        corpus_detokenise(CORPUS_ENGLISH, &pair.side[CORPUS_ENGLISH], text);
        h->lengths[n] = read_text(text, h->words[n]);
        h->sources[n] = h->words[n];
    }
    return h;
}

static void check_same(const translation *a, const translation *b)
{
    const transformer_config *const config = translator_config(model);
    const size_t maps = (size_t)config->layers[TRANSFORMER_TARGET] * (size_t)config->heads;
    const size_t count = maps * (size_t)a->target_count * (size_t)a->source_count;
    CHECK(a->weights && b->weights && a->target_count == b->target_count &&
              memcmp(a->target, b->target, sizeof a->target) == 0 &&
              memcmp(&a->score, &b->score, sizeof a->score) == 0 &&
              memcmp(a->weights, b->weights, count * sizeof *a->weights) == 0,
          "other words, scores or weights");
}

static void caches_change_no_bit(void)
{
    if (!is_loaded())
        return;
    held_out *const h = held_out_new();
    for (int beam = 1; beam <= 3; beam += 2) {
        translation_options options = {.beam = beam, .weights = true};
        for (int n = 0; n < 2; n++) {
            options.no_cache = n == 1;
            const mha_status status = translator_translate(model, h->sources, h->lengths, h->count,
                                                           &options, h->results[n], NULL);
            CHECK(status == MHA_OK, "%s", mha_status_string(status));
        }
        for (int n = 0; n < h->count; n++) {
            check_same(&h->results[0][n], &h->results[1][n]);
            free(h->results[0][n].weights);
            free(h->results[1][n].weights);
        }
    }
    free(h);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    model = translator_load(MHA_MODEL_FILE, message);
    RUN(it_is_as_large_as_said);
    RUN(it_has_a_checksum);
    RUN(it_knows_the_corpus);
    RUN(it_translates_what_it_must);
    RUN(it_is_right_on_held_out_sentences);
    RUN(caches_change_no_bit);
    translator_free(model);
    return test_end();
}
