/* SPDX-License-Identifier: MIT */
/*
 * Beam search with whole models: it finds what a search with whole forward passes and without
 * caches finds, and a text has the same bits whatever the others, their order, their number and the
 * threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/beam.h"
#include "model/model_parts.h"
#include "model/sample.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { WORDS = 60, MOST = 9, TEXTS = 5, BEST_MAX = 6 };

typedef struct texts {
    int64_t starts[TEXTS + 1];
    int32_t ids[40];
} texts;

static texts texts_new(void)
{
    texts t = {.starts = {0, 5, 6, 15, 22, 30}};
    tiny_ids(t.ids, 40, WORDS, 3);
    return t;
}

/* A model some of whose tokens end a text. */
static mha_model *model_new(tiny_kind kind)
{
    mha_model *const model = tiny_model_new(kind, MHA_STORE_AS_FILE, 4, NULL);
    model_usage *const usage = &model->files.description.usage;
    usage->end_count = 0;
    for (int n = 0; n < MODEL_ENDS_MAX; n++)
        usage->ends[usage->end_count++] = 7 * n + 3;
    usage->forbidden[usage->forbidden_count++] = 11;
    return model;
}

static mha_generate_config config_of(int beams, int best, double penalty)
{
    return (mha_generate_config){.size = sizeof(mha_generate_config),
                                 .most = MOST,
                                 .beams = beams,
                                 .best = best,
                                 .length_penalty = penalty};
}

static void generate(const mha_model *model, int count, const texts *t,
                     const mha_generate_config *config, mha_generation *results, mha_pool *pool)
{
    const mha_status status =
        mha_model_generate(model, count, t->starts, t->ids, config, results, pool);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
}

static void free_all(mha_generation *results, int count)
{
    for (int n = 0; n < count; n++)
        mha_generation_free(&results[n]);
}

static bool same(const mha_generation *a, const mha_generation *b)
{
    return a->count == b->count && a->ids && b->ids &&
           memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids) == 0 &&
           a->log_probability == b->log_probability && a->score == b->score &&
           a->confidence == b->confidence && a->ended == b->ended;
}

/* ------------------------------------------------------- without caches ----- */

typedef struct plain_text {
    const mha_model *model;
    const int32_t *prompt;
    int64_t prompt_count;
    bool pair;
} plain_text;

/* Logits after the tokens of a hypothesis. */
static void run_whole(const plain_text *t, const int32_t *tokens, int count, float *logits)
{
    int32_t ids[64] = {t->model->files.description.usage.decoder_start};
    int64_t before = 1;
    if (!t->pair)
        memcpy(ids, t->prompt, (size_t)(before = t->prompt_count) * sizeof *ids);
    memcpy(ids + before, tokens, (size_t)count * sizeof *ids);
    const int64_t starts[2] = {0, before + count}, sources[2] = {0, t->prompt_count};
    const int64_t last = before + count - 1;
    mha_model_call call = {.size = sizeof call,
                           .B = 1,
                           .starts = starts,
                           .ids = ids,
                           .logits = logits,
                           .logit_rows = &last,
                           .logit_row_count = 1};
    if (t->pair) {
        call.source_starts = sources;
        call.source_ids = t->prompt;
    }
    CHECK(mha_model_run(t->model, &call, NULL, 0, NULL) == MHA_OK, "run");
}

static size_t list_choices(const plain_text *t, const beam_search *search, int number,
                           beam_choice *choices)
{
    const model_usage *const usage = &t->model->files.description.usage;
    const beam_hypothesis *const h = &search->running[number];
    const beam_node *path[MOST];
    int32_t tokens[MOST];
    float logits[WORDS];
    size_t count = 0;
    beam_path(search, h, path);
    for (int n = 0; n < h->length; n++)
        tokens[n] = path[n]->token;
    run_whole(t, tokens, h->length, logits);
    for (int32_t id = 0; id < WORDS; id++) {
        const bool forced = h->length == 0 && usage->first >= 0;
        bool ends = false;
        for (int n = 0; n < usage->end_count; n++)
            ends |= usage->ends[n] == id;
        if (forced ? id != usage->first : id == usage->forbidden[0])
            continue;
        const double log = forced ? 0 : (double)logits[id] - sample_log_total(logits, WORDS);
        choices[count++] = (beam_choice){beam_score(search, number) + log, number, id, ends};
    }
    return count;
}

static void plain_search(const plain_text *t, beam_search *search)
{
    static beam_choice choices[BEST_MAX * WORDS];
    while (!search->over) {
        int parents[BEST_MAX];
        size_t count = 0;
        for (int n = 0; n < search->running_count; n++)
            count += list_choices(t, search, n, choices + count);
        if (!CHECK(beam_step(search, choices, count, parents), "memory"))
            return;
    }
}

static void check_result(const beam_search *search, int number, const mha_generation *result,
                         const char *what)
{
    const beam_hypothesis *const h = &search->finished[number];
    const beam_node *path[MOST];
    const int length = beam_path(search, h, path), count = length - h->ended;
    bool fine = result->count == count && result->ended == h->ended;
    for (int n = 0; fine && n < count; n++)
        fine = result->ids[n] == path[n]->token;
    CHECK(fine, "%s, rank %d: other tokens", what, number);
    const double score = path[length - 1]->score / length;
    CHECK(fabs(result->score - score) < 1e-12, "score %.17g, not %.17g", result->score, score);
    CHECK(result->confidence == exp(result->score), "confidence %g", result->confidence);
    CHECK(result->log_probability == (count > 0 ? path[count - 1]->score : 0.0),
          "log-probability %g", result->log_probability);
}

static int compare(const mha_model *model, const char *name, int beams, int best, double penalty)
{
    const texts t = texts_new();
    const mha_generate_config config = config_of(beams, best, penalty);
    const bool pair = model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    mha_generation results[TEXTS * BEST_MAX];
    int ended = 0;
    generate(model, TEXTS, &t, &config, results, NULL);
    for (int b = 0; b < TEXTS; b++) {
        const plain_text text = {model, t.ids + t.starts[b], t.starts[b + 1] - t.starts[b], pair};
        beam_search search;
        if (!CHECK(beam_begin(&search, beams, MOST, penalty), "memory"))
            return 0;
        plain_search(&text, &search);
        for (int n = 0; n < best; n++) {
            check_result(&search, n, &results[b * best + n], name);
            ended += results[b * best + n].ended;
        }
        beam_free(&search);
    }
    free_all(results, TEXTS * best);
    return ended;
}

static void it_is_a_search_without_caches(void)
{
    static const tiny_kind kinds[] = {TINY_GPT2, TINY_LLAMA, TINY_GEMMA,
                                      TINY_T5,   TINY_BART,  TINY_MARIAN};
    int ended = 0, all = 0;
    for (int k = 0; k < 6; k++) {
        mha_model *const model = model_new(kinds[k]);
        ended += compare(model, tiny_name(kinds[k]), 4, 4, 1.0);
        ended += compare(model, tiny_name(kinds[k]), 2, 1, 0.0);
        ended += compare(model, tiny_name(kinds[k]), 6, 6, 0.6);
        all += TEXTS * (4 + 1 + 6);
        mha_model_free(model);
    }
    CHECK(ended > 0 && ended < all, "%d of %d end: the test is weak", ended, all);
}

static void forced_tokens(void)
{
    mha_model *const model = model_new(TINY_BART);
    const texts t = texts_new();
    const mha_generate_config config = config_of(4, 4, 1.0), greedy = config_of(1, 1, 1.0);
    mha_generation results[TEXTS * 4], alone[TEXTS];
    model->files.description.usage.first = 9;
    compare(model, "forced", 4, 4, 1.0);
    generate(model, TEXTS, &t, &config, results, NULL);
    generate(model, TEXTS, &t, &greedy, alone, NULL);
    for (int n = 0; n < TEXTS * 4; n++)
        CHECK(results[n].ids[0] == 9, "begins with %d", (int)results[n].ids[0]);
    for (int n = 0; n < TEXTS; n++)
        CHECK(alone[n].ids[0] == 9, "begins with %d", (int)alone[n].ids[0]);
    free_all(results, TEXTS * 4);
    free_all(alone, TEXTS);
    mha_model_free(model);
}

/* ------------------------------------------------------------------ bits ----- */

static void texts_do_not_depend_on_others(void)
{
    static const tiny_kind kinds[] = {TINY_LLAMA, TINY_T5, TINY_MARIAN};
    const texts t = texts_new();
    const mha_generate_config config = config_of(4, 2, 0.8);
    mha_pool *pool;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    for (int k = 0; k < 3; k++) {
        mha_model *const model = model_new(kinds[k]);
        mha_generation together[TEXTS * 2], threads[TEXTS * 2];
        generate(model, TEXTS, &t, &config, together, NULL);
        generate(model, TEXTS, &t, &config, threads, pool);
        for (int b = 0; b < TEXTS; b++) {
            const int64_t starts[2] = {0, t.starts[b + 1] - t.starts[b]};
            mha_generation alone[2];
            CHECK(mha_model_generate(model, 1, starts, t.ids + t.starts[b], &config, alone, NULL) ==
                      MHA_OK,
                  "alone");
            for (int n = 0; n < 2; n++) {
                CHECK(same(&together[2 * b + n], &alone[n]), "text %d alone", b);
                CHECK(same(&together[2 * b + n], &threads[2 * b + n]), "text %d, threads", b);
            }
            free_all(alone, 2);
        }
        free_all(together, TEXTS * 2);
        free_all(threads, TEXTS * 2);
        mha_model_free(model);
    }
    mha_pool_free(pool);
}

/* More texts than are computed together: the same texts again and again. */
static void many_texts(void)
{
    enum { MANY = 150 };
    static int64_t starts[MANY + 1];
    static int32_t ids[MANY * 10];
    static mha_generation results[MANY * 2];
    const texts t = texts_new();
    mha_model *const model = model_new(TINY_MARIAN);
    for (int sampled = 0; sampled < 2; sampled++) {
        mha_generate_config config = config_of(sampled ? 1 : 4, sampled ? 1 : 2, 1.0);
        config.sampling.temperature = sampled ? 2.0f : 0.0f;
        for (int b = 0; b < MANY; b++) {
            const int64_t from = t.starts[b % TEXTS], count = t.starts[b % TEXTS + 1] - from;
            memcpy(ids + starts[b], t.ids + from, (size_t)count * sizeof *ids);
            starts[b + 1] = starts[b] + count;
        }
        CHECK(mha_model_generate(model, MANY, starts, ids, &config, results, NULL) == MHA_OK,
              "all");
        int equal = 0;
        for (int b = TEXTS; b < MANY; b++)
            equal += same(&results[b * (sampled ? 1 : 2)], &results[b % TEXTS * (sampled ? 1 : 2)]);
        CHECK(sampled ? equal < MANY / 2 : equal == MANY - TEXTS, "%d texts are equal", equal);
        free_all(results, sampled ? MANY : 2 * MANY);
    }
    mha_model_free(model);
}

static void one_beam_is_greedy(void)
{
    const texts t = texts_new();
    mha_model *const model = model_new(TINY_T5);
    const mha_generate_config none = config_of(0, 0, 0.0), one = config_of(1, 1, 1.0);
    mha_generation a[TEXTS], b[TEXTS];
    generate(model, TEXTS, &t, &none, a, NULL);
    generate(model, TEXTS, &t, &one, b, NULL);
    for (int n = 0; n < TEXTS; n++) {
        const double all = a[n].score * (double)(a[n].count + a[n].ended);
        CHECK(same(&a[n], &b[n]), "text %d", n);
        CHECK(a[n].score < 0 && a[n].confidence == exp(a[n].score), "score %g", a[n].score);
        CHECK(a[n].ended ? all < a[n].log_probability : fabs(all - a[n].log_probability) < 1e-9,
              "text %d: the end mark counts", n);
    }
    free_all(a, TEXTS);
    free_all(b, TEXTS);
    mha_model_free(model);
}

/* ---------------------------------------------------------------- refused ----- */

static int hear(void *context, ptrdiff_t b, int32_t id, const char *text, size_t length)
{
    (void)context, (void)b, (void)id, (void)text, (void)length;
    return 0;
}

static void wrong_requests_are_refused(void)
{
    const texts t = texts_new();
    mha_model *const model = model_new(TINY_GPT2);
    mha_state *state;
    const char *const stop = "x";
    CHECK(mha_state_create(&state, model, NULL) == MHA_OK, "state");
    const struct {
        mha_generate_config config;
        mha_status status;
        const char *says;
    } wrong[] = {
        {{.beams = -1}, MHA_ERR_SHAPE, "beams"},
        {{.beams = MHA_BEAMS_MAX + 1}, MHA_ERR_SHAPE, "beams"},
        {{.beams = 3, .best = 4}, MHA_ERR_SHAPE, "best"},
        {{.best = 2}, MHA_ERR_SHAPE, "best"},
        {{.beams = 2, .best = -1}, MHA_ERR_SHAPE, "best"},
        {{.beams = 2, .length_penalty = (double)NAN}, MHA_ERR_SCALE, "length_penalty"},
        {{.beams = 2, .sampling = {.temperature = 1}}, MHA_ERR_FLAG, "config.sampling"},
        {{.beams = 2, .sampling = {.repetition_penalty = 2}}, MHA_ERR_FLAG, "config.sampling"},
        {{.beams = 2, .callback = hear}, MHA_ERR_FLAG, "config.callback"},
        {{.beams = 2, .stops = &stop, .stop_count = 1}, MHA_ERR_FLAG, "config.stops"},
        {{.beams = 2, .state = state}, MHA_ERR_FLAG, "config.state"},
    };
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        char message[256] = "";
        mha_generate_config config = wrong[n].config;
        mha_generation result = {.count = 1};
        config.size = sizeof config;
        config.message = message;
        config.message_size = sizeof message;
        const mha_status status =
            mha_model_generate(model, 1, t.starts, t.ids, &config, &result, NULL);
        CHECK(status == wrong[n].status && strstr(message, wrong[n].says) && result.count == 0,
              "%zu: %s, \"%s\"", n, mha_status_string(status), message);
    }
    mha_state_free(state);
    mha_model_free(model);
}

static void broken_models_are_reported(void)
{
    const texts t = texts_new();
    mha_model *const model = model_new(TINY_GPT2);
    char message[256] = "";
    float gates[64];
    for (int n = 0; n < 64; n++)
        gates[n] = NAN;
    mha_head_settings heads = {.size = sizeof heads};
    heads.gates[MHA_ATTENTION_DECODER] = gates;
    mha_generate_config config = config_of(3, 1, 1.0);
    config.heads = &heads;
    config.message = message;
    config.message_size = sizeof message;
    mha_generation result;
    const mha_status status = mha_model_generate(model, 1, t.starts, t.ids, &config, &result, NULL);
    CHECK(status == MHA_ERR_FORMAT && strstr(message, "logits"), "%s: \"%s\"",
          mha_status_string(status), message);
    mha_generation_free(&result);
    mha_model_free(model);
}

/* A prompt that fills all positions leaves no room for tokens. */
static void full_texts(void)
{
    mha_model *const model = model_new(TINY_GPT2);
    const int positions = model->files.description.positions;
    int32_t ids[64];
    const int64_t starts[2] = {0, positions};
    mha_generate_config config = config_of(3, 2, 1.0);
    config.most = 0;
    mha_generation results[2];
    tiny_ids(ids, positions, WORDS, 5);
    CHECK(mha_model_generate(model, 1, starts, ids, &config, results, NULL) == MHA_OK, "full");
    for (int n = 0; n < 2; n++)
        CHECK(results[n].count == 0 && !results[n].ended && results[n].text, "%td tokens",
              results[n].count);
    free_all(results, 2);
    mha_model_free(model);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(it_is_a_search_without_caches);
    RUN(forced_tokens);
    RUN(texts_do_not_depend_on_others);
    RUN(many_texts);
    RUN(one_beam_is_greedy);
    RUN(wrong_requests_are_refused);
    RUN(broken_models_are_reported);
    RUN(full_texts);
    return test_end();
}
