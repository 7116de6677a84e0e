/* SPDX-License-Identifier: MIT */
/*
 * Models and tokenizers never change: threads that share them get what one thread gets, to the
 * bit. ThreadSanitizer sees these runs, too.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_parts.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { WORDS = 60, TOKENS = 9, THREADS = 3, ROUNDS = 4, TEXTS = 2, WIDTH_MAX = 128 };

static const int64_t starts[3] = {0, 5, TOKENS};
static const char *const texts[TEXTS] = {"a b a", "b"};

/* What one thread computes. */
typedef struct outcome {
    mha_status status[4];
    float logits[TOKENS * WORDS];
    float vectors[TEXTS * WIDTH_MAX];
    double scores[TOKENS];
    int32_t ids[2][4];
    ptrdiff_t tokens;
} outcome;

typedef struct shared {
    const mha_model *decoder, *encoder;
    int32_t ids[TOKENS];
} shared;

typedef struct worker {
    const shared *models;
    outcome result;
} worker;

static void generate(const shared *s, outcome *to)
{
    const mha_generate_config config = {.size = sizeof config,
                                        .most = 4,
                                        .sampling = {.temperature = 1, .top_p = 0.9f},
                                        .ignore_end = 1};
    mha_generation results[2];
    to->status[1] = mha_model_generate(s->decoder, 2, starts, s->ids, &config, results, NULL);
    for (int b = 0; b < 2; b++) {
        if (!to->status[1])
            memcpy(to->ids[b], results[b].ids, (size_t)results[b].count * sizeof(int32_t));
        mha_generation_free(&results[b]);
    }
}

static void run_with_state(const shared *s, outcome *to)
{
    mha_state *state;
    const mha_state_config config = {.size = sizeof config, .sequences = 2, .capacity = 16};
    to->status[0] = mha_state_create(&state, s->decoder, &config);
    const mha_model_call call = {.size = sizeof call,
                                 .B = 2,
                                 .starts = starts,
                                 .ids = s->ids,
                                 .state = state,
                                 .logits = to->logits};
    if (!to->status[0])
        to->status[0] = mha_model_run(s->decoder, &call, NULL, 0, NULL);
    mha_state_free(state);
}

static void compute(const shared *s, outcome *to)
{
    mha_tokens tokens;
    memset(to, 0, sizeof *to);
    run_with_state(s, to);
    generate(s, to);
    to->status[2] = mha_model_score(s->decoder, 2, starts, s->ids, NULL, to->scores, NULL, 0, NULL);
    to->status[3] = mha_model_encode(s->encoder, texts, TEXTS, NULL, to->vectors, NULL);
    if (!mha_tokenizer_encode(mha_model_tokenizer(s->encoder), "a b c \xff", 7, MHA_TEXT_MARKS,
                              &tokens)) {
        to->tokens = tokens.count;
        mha_tokens_free(&tokens);
    }
}

static void *work(void *arg)
{
    worker *const w = arg;
    for (int n = 0; n < ROUNDS; n++)
        compute(w->models, &w->result);
    return NULL;
}

static void threads_share_a_model(void)
{
    const temp_folder folder = temp_folder_new();
    shared s = {.decoder = tiny_model_new(TINY_LLAMA, MHA_STORE_Q8, 4, NULL)};
    mha_model *const encoder = tiny_model_new(TINY_BERT, MHA_STORE_AS_FILE, 4, NULL);
    static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n";
    mha_tokenizer *tokenizer = NULL;
    tiny_ids(s.ids, TOKENS, WORDS, 3);
    CHECK(file_make(temp_path(&folder, "vocab.txt"), vocabulary, sizeof vocabulary - 1), "file");
    CHECK(mha_tokenizer_open(&tokenizer, temp_path(&folder, "vocab.txt"), NULL, 0) == MHA_OK,
          "tokenizer");
    encoder->tokenizer = encoder->target_tokenizer = tokenizer;
    s.encoder = encoder;
    static outcome alone;
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    compute(&s, &alone);
    for (int n = 0; n < 4; n++)
        CHECK(alone.status[n] == MHA_OK, "%d: %s", n, mha_status_string(alone.status[n]));
    CHECK(alone.tokens == 5, "%td tokens", alone.tokens);
    for (int n = 0; n < THREADS; n++) {
        workers[n].models = &s;
        CHECK(pthread_create(&threads[n], NULL, work, &workers[n]) == 0, "thread");
    }
    for (int n = 0; n < THREADS; n++) {
        pthread_join(threads[n], NULL);
        CHECK(memcmp(&workers[n].result, &alone, sizeof alone) == 0, "thread %d differs", n);
    }
    mha_model_free((mha_model *)(uintptr_t)s.decoder);
    mha_model_free(encoder);
    temp_folder_free(&folder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(threads_share_a_model);
    return test_end();
}
