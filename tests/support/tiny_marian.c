/* SPDX-License-Identifier: MIT */
/* Learns a vocabulary of a few sentences, makes random parameters, and writes and opens a folder.
 */
#include "support/tiny_marian.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "text/bpe_learn.h"
#include "translator/marian_folder.h"

static const char *const lines[] = {
    "Hello.",           "Bonjour.",        "I am tired.",
    "Je suis fatigué.", "The cat sleeps.", "Le chat dort.",
    "The dog sleeps.",  "Le chien dort.",  "Where is the station?",
    "Où est la gare ?", "She loves him.",  "Elle l'aime.",
};
enum { WORDS = 340 };

static bool learn(bpe_learned *learned, mha_tokenizer **tokenizer, char *message)
{
    const bpe_learn_options options = {.vocabulary_size = WORDS, .min_character_count = 1};
    bpe_learner *learner = NULL;
    mha_status status = bpe_learner_create(&learner, message, TRANSFORMER_MESSAGE_MAX);
    for (size_t n = 0; n < sizeof lines / sizeof lines[0] && status == MHA_OK; n++)
        status = bpe_learner_add(learner, lines[n], strlen(lines[n]));
    if (status == MHA_OK)
        status = bpe_learner_finish(learner, &options, learned, message, TRANSFORMER_MESSAGE_MAX);
    if (status == MHA_OK)
        status = bpe_learned_open(learned, tokenizer, message, TRANSFORMER_MESSAGE_MAX);
    bpe_learner_free(learner);
    return CHECK(status == MHA_OK, "%s", message);
}

/* Larger matrices than those of a training's beginning, so that heads differ; no bias is 0. */
static float *random_values(const transformer_config *config, uint64_t seed)
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
    return values;
}

static bool write_folder(tiny_marian *m, const char *path, uint64_t seed, char *message)
{
    bpe_learned learned = {.json = NULL};
    mha_tokenizer *tokenizer = NULL;
    if (!learn(&learned, &tokenizer, message))
        return false;
    const int words = (int)mha_tokenizer_size(tokenizer);
    m->config = (transformer_config){.form = FORM_MARIAN,
                                     .width = 32,
                                     .heads = 4,
                                     .ff_width = 48,
                                     .layers = {2, 2},
                                     .words = {words, words},
                                     .positions = 64};
    m->values = random_values(&m->config, seed);
    const marian_content content = {.config = &m->config,
                                    .values = m->values,
                                    .type = MHA_F32,
                                    .tokenizer = learned.json,
                                    .begin = mha_tokenizer_mark(tokenizer, MHA_MARK_PAD),
                                    .end = mha_tokenizer_mark(tokenizer, MHA_MARK_END)};
    const bool fine = CHECK(marian_folder_write(path, &content, message) == MHA_OK, "%s", message);
    mha_tokenizer_free(tokenizer);
    bpe_learned_free(&learned);
    return fine;
}

bool tiny_marian_open(tiny_marian *m, uint64_t seed)
{
    char message[SUBJECT_MESSAGE_MAX] = "";
    const mha_model_config request = {
        .size = sizeof request, .message = message, .message_size = sizeof message};
    *m = (tiny_marian){.folder = temp_folder_new()};
    const char *const path = temp_path(&m->folder, "model");
    return write_folder(m, path, seed, message) &&
           CHECK(mha_model_open(&m->model, path, &request) == MHA_OK, "%s", message) &&
           CHECK(subject_of_model(&m->subject, m->model, message), "%s", message);
}

void tiny_marian_close(tiny_marian *m)
{
    subject_close(&m->subject);
    mha_model_free(m->model);
    free(m->values);
    temp_folder_free(&m->folder);
}

subject_text tiny_marian_read(const tiny_marian *m, const char *text, const char *target)
{
    const pair_request request = {.text = text, .target = target};
    char message[SUBJECT_MESSAGE_MAX] = "";
    subject_text read;
    if (!subject_read(&m->subject, &request, NULL, &read, message)) {
        fprintf(stderr, "%s\n", message);
        abort();
    }
    return read;
}
