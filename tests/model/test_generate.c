/* SPDX-License-Identifier: MIT */
/*
 * Generating: greedy decoding is what whole forward passes say, sequences do not depend on each
 * other, texts are complete UTF-8 and end at stops.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "model/model_parts.h"
#include "model/text_stream.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { WORDS = 60, MOST = 12 };

/* ------------------------------------------------------------------- generating ----- */

typedef struct prompts {
    int64_t starts[4];
    int32_t ids[32];
} prompts;

static prompts prompts_new(void)
{
    prompts p = {.starts = {0, 5, 6, 15}};
    tiny_ids(p.ids, 32, WORDS, 3);
    return p;
}

/* The most probable next token of a whole sequence. */
static int32_t most_probable(const mha_model *model, const int32_t *ids, int64_t count,
                             const int32_t *source, int64_t source_count)
{
    float logits[WORDS];
    const int64_t starts[2] = {0, count}, sources[2] = {0, source_count}, last = count - 1;
    mha_model_call call = {.size = sizeof call,
                           .B = 1,
                           .starts = starts,
                           .ids = ids,
                           .logits = logits,
                           .logit_rows = &last,
                           .logit_row_count = 1};
    if (source) {
        call.source_starts = sources;
        call.source_ids = source;
    }
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
    int32_t best = 0;
    for (int32_t n = 1; n < WORDS; n++)
        best = logits[n] > logits[best] ? n : best;
    return best;
}

static void greedy_is_the_argmax(void)
{
    static const tiny_kind kinds[] = {TINY_GPT2, TINY_LLAMA, TINY_T5, TINY_BART};
    const prompts p = prompts_new();
    for (int k = 0; k < 4; k++) {
        model_files files;
        mha_model *const model = tiny_model_new(kinds[k], MHA_STORE_AS_FILE, 4, &files);
        const bool pair = files.description.kind == MHA_MODEL_ENCODER_DECODER;
        const mha_generate_config config = {.size = sizeof config, .most = MOST};
        mha_generation results[3];
        const mha_status status =
            mha_model_generate(model, 3, p.starts, p.ids, &config, results, NULL);
        if (!CHECK(status == MHA_OK, "%s", mha_status_string(status)))
            return;
        for (int b = 0; b < 3; b++) {
            int32_t ids[32];
            const int32_t *const prompt = p.ids + p.starts[b];
            int64_t count = p.starts[b + 1] - p.starts[b];
            const int64_t sources = count;
            memcpy(ids, prompt, (size_t)count * 4);
            if (pair) {
                ids[0] = files.description.usage.decoder_start;
                count = 1;
            }
            CHECK(results[b].count == MOST && !results[b].ended, "%td tokens", results[b].count);
            for (int n = 0; n < MOST; n++) {
                ids[count] = most_probable(model, ids, count, pair ? prompt : NULL, sources);
                CHECK(results[b].ids[n] == ids[count], "%s, sequence %d, token %d",
                      tiny_name(kinds[k]), b, n);
                count++;
            }
            CHECK(results[b].log_probability < 0 && isfinite(results[b].log_probability),
                  "log-probability %g", results[b].log_probability);
            mha_generation_free(&results[b]);
        }
        mha_model_free(model);
    }
}

static mha_generate_config warm(uint64_t seed)
{
    return (mha_generate_config){.size = sizeof(mha_generate_config),
                                 .most = MOST,
                                 .sampling = {.temperature = 1.5f, .seed = seed}};
}

static bool same_ids(const mha_generation *a, const mha_generation *b)
{
    return a->count == b->count && memcmp(a->ids, b->ids, (size_t)a->count * 4) == 0;
}

static void sequences_do_not_depend_on_others(void)
{
    const prompts p = prompts_new();
    mha_model *const model = tiny_model_new(TINY_LLAMA, MHA_STORE_AS_FILE, 4, NULL);
    const mha_generate_config config = warm(5), other = warm(6);
    mha_generation together[3], again[3], alone, seeded;
    mha_pool *pool;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    CHECK(mha_model_generate(model, 3, p.starts, p.ids, &config, together, NULL) == MHA_OK, "3");
    CHECK(mha_model_generate(model, 3, p.starts, p.ids, &config, again, pool) == MHA_OK, "pool");
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &alone, NULL) == MHA_OK, "1");
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &other, &seeded, NULL) == MHA_OK, "seed");
    CHECK(same_ids(&together[0], &alone), "alone");
    CHECK(!same_ids(&alone, &seeded), "another seed");
    for (int b = 0; b < 3; b++) {
        CHECK(same_ids(&together[b], &again[b]), "threads");
        CHECK(together[b].log_probability == again[b].log_probability, "threads");
        mha_generation_free(&together[b]);
        mha_generation_free(&again[b]);
    }
    mha_generation_free(&alone);
    mha_generation_free(&seeded);
    mha_pool_free(pool);
    mha_model_free(model);
}

/* A state goes on where it was; its limit ends a sequence. */
static void states_continue(void)
{
    const prompts p = prompts_new();
    mha_model *const model = tiny_model_new(TINY_GPT2, MHA_STORE_AS_FILE, 4, NULL);
    const mha_state_config state_config = {.size = sizeof state_config, .capacity = 11};
    mha_generate_config config = {.size = sizeof config};
    mha_generation whole, part, rest;
    const int64_t first[2] = {0, 5};
    CHECK(mha_state_create(&config.state, model, &state_config) == MHA_OK, "state");
    CHECK(mha_model_generate(model, 1, first, p.ids, &config, &whole, NULL) == MHA_OK, "whole");
    CHECK(whole.count == 6 && !whole.ended, "%td tokens fit", whole.count);
    CHECK(mha_state_truncate(config.state, 0, 0) == MHA_OK, "truncate");
    config.most = 2;
    CHECK(mha_model_generate(model, 1, first, p.ids, &config, &part, NULL) == MHA_OK, "part");
    const int64_t last[2] = {0, 1};
    config.most = 0;
    CHECK(mha_model_generate(model, 1, last, part.ids + 1, &config, &rest, NULL) == MHA_OK, "rest");
    CHECK(part.count == 2 && rest.count == 4, "%td and %td tokens", part.count, rest.count);
    CHECK(memcmp(part.ids, whole.ids, 8) == 0 && memcmp(rest.ids, whole.ids + 2, 16) == 0, "ids");
    mha_generation_free(&whole);
    mha_generation_free(&part);
    mha_generation_free(&rest);
    mha_state_free(config.state);
    mha_model_free(model);
}

/* A prompt that fills the state is read, one that does not fit is an error. */
static void full_states_are_reported(void)
{
    static const tiny_kind kinds[] = {TINY_GPT2, TINY_BART};
    const prompts p = prompts_new();
    for (int k = 0; k < 2; k++) {
        char message[256] = "";
        mha_model *const model = tiny_model_new(kinds[k], MHA_STORE_AS_FILE, 4, NULL);
        const ptrdiff_t room = k == 0 ? 5 : 1;
        const mha_state_config state_config = {.size = sizeof state_config, .capacity = room};
        mha_generate_config config = {.size = sizeof config, .most = 3};
        mha_generation result;
        config.message = message;
        config.message_size = sizeof message;
        CHECK(mha_state_create(&config.state, model, &state_config) == MHA_OK, "state");
        CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_OK, "%s",
              message);
        CHECK(result.count == 0 && !result.ended, "%td tokens", result.count);
        CHECK(mha_state_length(config.state, 0) == room, "%s: the state has %td tokens",
              tiny_name(kinds[k]), mha_state_length(config.state, 0));
        mha_generation_free(&result);
        CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_ERR_FULL,
              "%s: a prompt that does not fit", tiny_name(kinds[k]));
        CHECK(strstr(message, "prompt 0") != NULL, "\"%s\"", message);
        mha_generation_free(&result);
        mha_state_free(config.state);
        mha_model_free(model);
    }
}

/* Damaged weights end the generation with an error. */
static void broken_models_are_reported(void)
{
    char message[256] = "";
    const prompts p = prompts_new();
    mha_model *const model = tiny_model_new(TINY_GPT2, MHA_STORE_AS_FILE, 4, NULL);
    float gates[64];
    for (int n = 0; n < 64; n++)
        gates[n] = NAN;
    mha_head_settings heads = {.size = sizeof heads};
    heads.gates[MHA_ATTENTION_DECODER] = gates;
    mha_generate_config config = warm(1);
    config.heads = &heads;
    config.sampling.top_p = 0.9f;
    config.message = message;
    config.message_size = sizeof message;
    mha_generation result;
    const mha_status status = mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL);
    CHECK(status == MHA_ERR_FORMAT && strstr(message, "logits"), "%s: \"%s\"",
          mha_status_string(status), message);
    mha_generation_free(&result);
    mha_model_free(model);
}

/* ------------------------------------------------------------------- end marks ----- */

static void end_marks_and_forced_tokens(void)
{
    const prompts p = prompts_new();
    mha_model *const model = tiny_model_new(TINY_GPT2, MHA_STORE_AS_FILE, 4, NULL);
    model_usage *const usage = &model->files.description.usage;
    mha_generate_config config = {.size = sizeof config, .most = MOST};
    mha_generation plain, ended, ignored, forced;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &plain, NULL) == MHA_OK, "plain");
    int at = MOST - 1; /* the first place of the token that ends the text */
    for (int n = MOST - 1; n >= 0; n--)
        at = plain.ids[n] == plain.ids[MOST - 1] ? n : at;
    usage->ends[usage->end_count++] = plain.ids[at];
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &ended, NULL) == MHA_OK, "ended");
    CHECK(ended.count == at && ended.ended, "%td tokens, not %d", ended.count, at);
    config.ignore_end = 1;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &ignored, NULL) == MHA_OK,
          "go on");
    CHECK(same_ids(&ignored, &plain), "ignored");
    usage->first = (plain.ids[0] + 1) % WORDS;
    usage->forbidden[usage->forbidden_count++] = plain.ids[1];
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &forced, NULL) == MHA_OK,
          "forced");
    CHECK(forced.ids[0] == usage->first, "forced");
    for (ptrdiff_t n = 0; n < forced.count; n++)
        CHECK(forced.ids[n] != plain.ids[1] || n == 0, "forbidden");
    mha_generation_free(&plain);
    mha_generation_free(&ended);
    mha_generation_free(&ignored);
    mha_generation_free(&forced);
    mha_model_free(model);
}

/* -------------------------------------------------------------------------- text ----- */

/* A vocabulary of llama2.c: three marks, 256 bytes, then letters and words. */
static mha_tokenizer *tokenizer_new(const temp_folder *folder)
{
    static const char *const words[] = {" one", " two", "three", "\xe2\x82\xac", " \xc3\xa4"};
    unsigned char bytes[8192];
    size_t used = 4;
    memset(bytes, 0, sizeof bytes);
    bytes[0] = 8;
    for (int n = 0; n < 3 + 256 + 5; n++) {
        char piece[16];
        if (n < 3)
            snprintf(piece, sizeof piece, "%s", n == 0 ? "<unk>" : n == 1 ? "<s>" : "</s>");
        else if (n < 259)
            snprintf(piece, sizeof piece, "<0x%02X>", n - 3);
        else
            snprintf(piece, sizeof piece, "%s", words[n - 259]);
        const int32_t length = (int32_t)strlen(piece);
        memcpy(bytes + used + 4, &length, 4);
        memcpy(bytes + used + 8, piece, (size_t)length);
        used += 8 + (size_t)length;
    }
    mha_tokenizer *tokenizer = NULL;
    char message[256] = "";
    CHECK(file_make(temp_path(folder, "tokenizer.bin"), bytes, used), "file");
    const mha_status status =
        mha_tokenizer_open(&tokenizer, temp_path(folder, "tokenizer.bin"), message, sizeof message);
    CHECK(status == MHA_OK, "%s", message);
    return tokenizer;
}

enum { ONE = 259, TWO = 260, EURO = 262, BYTE = 3 };

/* Adds tokens one after another; pieces must be valid UTF-8. Returns all of them. */
static void stream_all(const mha_tokenizer *tokenizer, const int32_t *ids, ptrdiff_t count,
                       const char *const *stops, ptrdiff_t stop_count, char *text, bool *stopped)
{
    text_stream stream;
    text_stream_begin(&stream, tokenizer, 1, stops, stop_count);
    text[0] = '\0';
    for (ptrdiff_t n = 2; n <= count + 1; n++) {
        const bool last = n == count + 1;
        size_t length;
        CHECK(text_stream_add(&stream, ids, last ? count : n, last) == MHA_OK, "add");
        const char *const piece = text_stream_take(&stream, last, &length);
        for (size_t at = 0; at < length;) {
            uint32_t c;
            const size_t bytes = utf8_decode(piece + at, length - at, &c);
            if (!CHECK(bytes > 0, "a piece is not complete"))
                break;
            at += bytes;
        }
        strncat(text, piece, length);
        if (stream.stopped)
            break;
    }
    *stopped = stream.stopped;
    text_stream_free(&stream);
}

static void texts_are_complete(void)
{
    const temp_folder folder = temp_folder_new();
    mha_tokenizer *const tokenizer = tokenizer_new(&folder);
    if (!tokenizer)
        return;
    static const int32_t ids[] = {1, ONE, BYTE + 0xe2, BYTE + 0x82, BYTE + 0xac, TWO, EURO};
    static const char *const stops[] = {"two\xe2", "\xac tw", "nothing"};
    char text[256];
    bool stopped;
    stream_all(tokenizer, ids, 7, NULL, 0, text, &stopped);
    CHECK(strcmp(text, "one\xe2\x82\xac two\xe2\x82\xac") == 0 && !stopped, "text \"%s\"", text);
    stream_all(tokenizer, ids, 7, stops + 2, 1, text, &stopped);
    CHECK(strcmp(text, "one\xe2\x82\xac two\xe2\x82\xac") == 0 && !stopped, "no stop: \"%s\"",
          text);
    stream_all(tokenizer, ids, 7, stops, 1, text, &stopped);
    CHECK(strcmp(text, "one\xe2\x82\xac ") == 0 && stopped, "stop: \"%s\"", text);
    static const char *const early[] = {"e\xe2\x82\xac t", "ne"};
    stream_all(tokenizer, ids, 7, early, 2, text, &stopped);
    CHECK(strcmp(text, "o") == 0 && stopped, "first stop: \"%s\"", text);
    mha_tokenizer_free(tokenizer);
    temp_folder_free(&folder);
}

typedef struct heard {
    char text[4096];
    int calls, last_calls, until;
} heard;

static int hear(void *context, ptrdiff_t b, int32_t id, const char *text, size_t length)
{
    heard *const h = context;
    CHECK(b == 0, "sequence %td", b);
    strncat(h->text, text, length);
    h->calls += id >= 0;
    h->last_calls += id < 0;
    return h->until > 0 && h->calls == h->until;
}

/* With a tokenizer the pieces of the callback are the text. */
static void callbacks_hear_the_text(void)
{
    const temp_folder folder = temp_folder_new();
    mha_model *const model = tiny_model_new(TINY_GPT2, MHA_STORE_AS_FILE, 4, NULL);
    const prompts p = prompts_new();
    heard all = {.until = 0}, some = {.until = 3}, stopped = {.until = 0};
    mha_generate_config config = warm(2);
    mha_generation result;
    model->tokenizer = model->target_tokenizer = tokenizer_new(&folder);
    config.callback = hear;
    config.context = &all;
    config.ignore_end = 1;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_OK, "all");
    CHECK(strcmp(all.text, result.text) == 0 && strlen(result.text) == result.length, "text");
    CHECK(all.calls == MOST && result.count == MOST, "%d calls", all.calls);
    const char stop[2] = {result.length > 4 ? result.text[4] : 'x', '\0'};
    const char *const stops[] = {stop};
    mha_generation_free(&result);
    config.context = &some;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_OK, "some");
    CHECK(result.count == 3 && !result.ended && some.last_calls == 0, "%td tokens", result.count);
    mha_generation_free(&result);
    config.context = &stopped;
    config.stops = stops;
    config.stop_count = 1;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_OK, "stop");
    CHECK(result.ended && result.length <= 4 && !strchr(result.text, stop[0]), "\"%s\"",
          result.text);
    CHECK(strcmp(stopped.text, result.text) == 0, "heard \"%s\"", stopped.text);
    mha_generation_free(&result);
    mha_model_free(model);
    temp_folder_free(&folder);
}

/* Rows of the embedding that the tokenizer does not have are tokens without text. */
static void tokens_without_text(void)
{
    static const char *const none[] = {NULL};
    const temp_folder folder = temp_folder_new();
    mha_tokenizer *const tokenizer = tokenizer_new(&folder);
    static const int32_t ids[] = {1, ONE, 5000, 5001, TWO, 5002};
    char text[256];
    bool stopped;
    stream_all(tokenizer, ids, 6, NULL, 0, text, &stopped);
    CHECK(strcmp(text, "one two") == 0 && !stopped, "text \"%s\"", text);
    mha_model *const model = tiny_model_new(TINY_GPT2, MHA_STORE_AS_FILE, 4, NULL);
    const prompts p = prompts_new();
    mha_generate_config config = {.size = sizeof config, .stops = none, .stop_count = 1};
    mha_generation result;
    model->tokenizer = model->target_tokenizer = tokenizer;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_ERR_NULL,
          "a stop of NULL");
    mha_model_free(model);
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------------------ scores ----- */

static void scores_are_log_probabilities(void)
{
    const prompts p = prompts_new();
    mha_model *const model = tiny_model_new(TINY_GEMMA, MHA_STORE_AS_FILE, 4, NULL);
    static float logits[15 * WORDS];
    double scores[15];
    const mha_model_call call = {
        .size = sizeof call, .B = 3, .starts = p.starts, .ids = p.ids, .logits = logits};
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "run");
    CHECK(mha_model_score(model, 3, p.starts, p.ids, NULL, scores, NULL, 0, NULL) == MHA_OK,
          "score");
    for (int b = 0; b < 3; b++)
        for (int64_t row = p.starts[b]; row < p.starts[b + 1]; row++) {
            double sum = 0, expected = 0;
            if (row > p.starts[b]) {
                const float *const before = logits + (row - 1) * WORDS;
                for (int n = 0; n < WORDS; n++)
                    sum += exp((double)before[n]);
                expected = (double)before[p.ids[row]] - log(sum);
            }
            CHECK(fabs(scores[row] - expected) < 1e-5, "token %lld: %g, not %g", (long long)row,
                  scores[row], expected);
        }
    mha_model_free(model);
}

static void wrong_requests_are_refused(void)
{
    const prompts p = prompts_new();
    mha_model *const model = tiny_model_new(TINY_GPT2, MHA_STORE_AS_FILE, 4, NULL);
    mha_model *const encoder = tiny_model_new(TINY_BERT, MHA_STORE_AS_FILE, 4, NULL);
    mha_generation result;
    const int64_t empty[2] = {0, 0}, too_long[2] = {0, 49};
    int32_t ids[49] = {0};
    double scores[49];
    const char *const stop = "x";
    mha_generate_config config = {.size = sizeof config, .most = -1};
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_ERR_SHAPE,
          "most");
    config = (mha_generate_config){.size = sizeof config, .sampling = {.temperature = NAN}};
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_ERR_SCALE,
          "temperature");
    config.sampling.temperature = INFINITY;
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_ERR_SCALE,
          "infinite temperature");
    config = (mha_generate_config){.size = sizeof config, .stops = &stop, .stop_count = 1};
    CHECK(mha_model_generate(model, 1, p.starts, p.ids, &config, &result, NULL) == MHA_ERR_FLAG,
          "stops without a tokenizer");
    CHECK(mha_model_generate(model, 1, empty, p.ids, NULL, &result, NULL) == MHA_ERR_LENGTH,
          "empty");
    CHECK(mha_model_generate(model, 1, too_long, ids, NULL, &result, NULL) == MHA_ERR_LENGTH,
          "too long");
    CHECK(mha_model_generate(encoder, 1, p.starts, p.ids, NULL, &result, NULL) == MHA_ERR_FLAG,
          "encoder");
    CHECK(mha_model_score(encoder, 1, p.starts, p.ids, NULL, scores, NULL, 0, NULL) == MHA_ERR_FLAG,
          "scores of an encoder");
    ids[3] = WORDS;
    CHECK(mha_model_score(model, 1, p.starts, ids, NULL, scores, NULL, 0, NULL) == MHA_ERR_INDEX,
          "scores of a wrong id");
    mha_model_free(model);
    mha_model_free(encoder);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(greedy_is_the_argmax);
    RUN(sequences_do_not_depend_on_others);
    RUN(states_continue);
    RUN(full_states_are_reported);
    RUN(broken_models_are_reported);
    RUN(end_marks_and_forced_tokens);
    RUN(texts_are_complete);
    RUN(callbacks_hear_the_text);
    RUN(tokens_without_text);
    RUN(scores_are_log_probabilities);
    RUN(wrong_requests_are_refused);
    return test_end();
}
