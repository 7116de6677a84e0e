/* SPDX-License-Identifier: MIT */
/* Configuration, parameters and sentences of the small translator for tests. */
#include "support/tiny_model.h"

#include <stdlib.h>

#include "support/test.h"

transformer_config tiny_config(void)
{
    return (transformer_config){.width = 32,
                                .heads = 4,
                                .ff_width = 48,
                                .layers = {2, 2},
                                .words = {20, 24},
                                .positions = 12};
}

transformer_config tiny_corpus_config(void)
{
    transformer_config config = tiny_config();
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        corpus_vocabulary corpus;
        corpus_vocabulary_fill(&corpus, (corpus_side)side);
        config.words[side] = WORDS_SPECIAL + corpus.count;
    }
    return config;
}

float *tiny_values(const transformer_config *config, uint64_t seed)
{
    transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    transformer_map map;
    test_random random = {seed};
    transformer_map_fill(&map, config);
    float *const values = malloc(map.count * sizeof *values);
    if (!values)
        abort();
    transformer_init(config, seed, values);
    for (int n = 0; n < transformer_tensors(config, list); n++)
        for (size_t k = list[n].at; k < list[n].at + list[n].count; k++)
            values[k] = values[k] * (list[n].kind == PARAMETER_MATRIX ? 2.5f : 1.0f) +
                        0.05f * test_random_normal(&random);
    float *const end = values + map.embedding[TRANSFORMER_TARGET] + WORD_END * config->width;
    float *const bias = values + map.norm[TRANSFORMER_TARGET].bias;
    for (int c = 0; c < config->width; c++) {
        bias[c] = test_random_below(&random, 2) ? 0.5f : -0.5f;
        end[c] += 0.4f * bias[c];
    }
    return values;
}

void tiny_sentences_fill(tiny_sentences *s, const transformer_config *config, uint64_t seed)
{
    test_random random = {seed};
    for (int n = 0; n < TINY_SENTENCES; n++) {
        s->lengths[n] = n % config->positions;
        s->sources[n] = s->words[n];
        for (int i = 0; i < s->lengths[n]; i++)
            s->words[n][i] = WORD_UNKNOWN + (int)test_random_below(&random, config->words[0] - 2);
    }
}
