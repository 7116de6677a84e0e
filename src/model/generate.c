/* SPDX-License-Identifier: MIT */
/*
 * Section 6 of mha_model.h: prompts are read in chunks, then all sequences that have not ended take
 * one token per call. What a sequence gets depends on its own prompt, number and tokens alone.
 */
#include "model/forward.h"
#include "model/sample.h"
#include "model/text_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { CHUNK_ROWS = 512, SOURCE_ROWS = 4096, OWN_MOST = 4096 };

/* One sequence. */
typedef struct generated {
    int32_t *tokens; /* what the decoder has read or will read: context, then new tokens */
    ptrdiff_t context, count, most;
    ptrdiff_t fed; /* tokens that the state has, or that the current call appends */
    uint64_t seed;
    text_stream stream;
    double log_probability;
    int32_t chosen; /* by the last step */
    double chosen_log;
    bool live, ended;
} generated;

typedef struct generator {
    const mha_model *model;
    const mha_generate_config *config;
    const mha_tokenizer *tokenizer;
    mha_pool *pool;
    ptrdiff_t B, words;
    const int64_t *prompt_starts; /* of the caller: prompts, or source texts */
    const int32_t *prompt_ids;
    generated *sequences; /* [B] */
    mha_state *state, *own_state;
    float *logits;  /* [B][words] */
    float *scores;  /* [threads][words] */
    int32_t *order; /* [threads][words] */
    int64_t *starts, *source_starts, *numbers, *rows;
    int32_t *ids;
    ptrdiff_t *owners; /* sequences whose logits are there, in their order */
    ptrdiff_t owner_count;
    void *work;
    size_t work_size;
    int32_t ends[2 * MODEL_ENDS_MAX];
    int end_count;
} generator;

#define fail(g, status, ...) \
    model_fail((g)->config->message, (g)->config->message_size, status, __VA_ARGS__)

/* ------------------------------------------------------------------ prepare ----- */

static bool is_pair(const generator *g)
{
    return g->model->files.description.kind == MHA_MODEL_ENCODER_DECODER;
}

static void add_end(generator *g, int32_t id)
{
    if (id >= 0 && g->end_count < (int)(sizeof g->ends / sizeof g->ends[0]))
        g->ends[g->end_count++] = id;
}

static void list_ends(generator *g)
{
    const model_usage *const usage = &g->model->files.description.usage;
    for (int n = 0; n < usage->end_count; n++)
        add_end(g, usage->ends[n]);
    add_end(g, usage->end);
    if (g->tokenizer) {
        add_end(g, mha_tokenizer_mark(g->tokenizer, MHA_MARK_END));
        add_end(g, mha_tokenizer_mark(g->tokenizer, MHA_MARK_TURN_END));
    }
}

static bool is_end(const generator *g, int32_t id)
{
    bool end = false;
    for (int n = 0; n < g->end_count && !g->config->ignore_end; n++)
        end |= g->ends[n] == id;
    return end;
}

/* Tokens that the state has of a sequence, and that this call will give it. */
static ptrdiff_t past_of(const generator *g, ptrdiff_t b)
{
    return g->config->state ? mha_state_length(g->config->state, b) : 0;
}
static ptrdiff_t prompt_of(const generator *g, ptrdiff_t b)
{
    return is_pair(g) ? 1 : (ptrdiff_t)(g->prompt_starts[b + 1] - g->prompt_starts[b]);
}

static ptrdiff_t longest_prompt(const generator *g)
{
    int64_t longest = 0;
    for (ptrdiff_t b = 0; b < g->B; b++) {
        const int64_t length = g->prompt_starts[b + 1] - g->prompt_starts[b];
        longest = length > longest ? length : longest;
    }
    return (ptrdiff_t)longest;
}

/* The most tokens of a sequence, with its prompt. */
static ptrdiff_t limit_of(const generator *g)
{
    const int positions = g->model->files.description.positions;
    const ptrdiff_t longest = is_pair(g) ? 1 : longest_prompt(g);
    ptrdiff_t limit = positions > 0 ? positions : PTRDIFF_MAX;
    if (g->config->state)
        return g->state->capacity < limit ? g->state->capacity : limit;
    const ptrdiff_t most = g->config->most > 0 ? g->config->most : OWN_MOST;
    return longest < limit - most ? longest + most : limit;
}

static mha_status make_state(generator *g)
{
    g->state = g->config->state;
    if (g->state)
        return MHA_OK;
    const mha_state_config config = {.size = sizeof config,
                                     .sequences = g->B,
                                     .capacity = limit_of(g),
                                     .source_capacity = is_pair(g) ? longest_prompt(g) : 0,
                                     .message = g->config->message,
                                     .message_size = g->config->message_size};
    const mha_status status = mha_state_create(&g->own_state, g->model, &config);
    g->state = g->own_state;
    return status;
}

static mha_status prepare_sequence(generator *g, ptrdiff_t b)
{
    generated *const s = &g->sequences[b];
    const model_usage *const usage = &g->model->files.description.usage;
    const ptrdiff_t past = past_of(g, b), prompt = prompt_of(g, b), room = limit_of(g);
    s->context = s->count = past + prompt;
    s->fed = past;
    s->most = room > s->context ? room - s->context : 0;
    if (g->config->most > 0 && g->config->most < s->most)
        s->most = g->config->most;
    s->tokens = malloc((size_t)(s->context + s->most) * sizeof *s->tokens + sizeof *s->tokens);
    if (!s->tokens)
        return fail(g, MHA_ERR_MEMORY, "no memory for the tokens of sequence %td", b);
    if (past > 0)
        memcpy(s->tokens, mha_state_tokens(g->state, b), (size_t)past * sizeof *s->tokens);
    if (is_pair(g))
        s->tokens[past] = usage->decoder_start >= 0 ? usage->decoder_start
                          : usage->begin >= 0       ? usage->begin
                                                    : 0;
    else
        memcpy(s->tokens + past, g->prompt_ids + g->prompt_starts[b],
               (size_t)prompt * sizeof *s->tokens);
    rng seeds = rng_for(g->config->sampling.seed, (uint64_t)b);
    s->seed = rng_next(&seeds);
    s->live = true;
    text_stream_begin(&s->stream, g->tokenizer, s->context, g->config->stops,
                      g->config->stop_count);
    return MHA_OK;
}

static mha_status take_memory(generator *g)
{
    const size_t B = (size_t)g->B, words = (size_t)g->words;
    const size_t threads = (size_t)mha_pool_threads(g->pool);
    const size_t rows = B > CHUNK_ROWS ? B : CHUNK_ROWS;
    g->sequences = calloc(B, sizeof *g->sequences);
    g->logits = calloc(B * words, sizeof *g->logits);
    g->scores = calloc(threads * words, sizeof *g->scores);
    g->order = calloc(threads * words, sizeof *g->order);
    g->starts = calloc(B + 1, sizeof *g->starts);
    g->source_starts = calloc(B + 1, sizeof *g->source_starts);
    g->numbers = calloc(B, sizeof *g->numbers);
    g->rows = calloc(B, sizeof *g->rows);
    g->owners = calloc(B, sizeof *g->owners);
    g->ids = calloc(rows, sizeof *g->ids);
    return g->sequences && g->logits && g->scores && g->order && g->starts && g->source_starts &&
                   g->numbers && g->rows && g->owners && g->ids
               ? MHA_OK
               : fail(g, MHA_ERR_MEMORY, "no memory for %td sequences", g->B);
}

static void free_memory(generator *g)
{
    for (ptrdiff_t b = 0; g->sequences && b < g->B; b++) {
        free(g->sequences[b].tokens);
        text_stream_free(&g->sequences[b].stream);
    }
    void *const all[] = {g->sequences, g->logits, g->scores, g->order, g->starts, g->source_starts,
                         g->numbers,   g->rows,   g->owners, g->ids,   g->work};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        free(all[n]);
    mha_state_free(g->own_state);
}

/* -------------------------------------------------------------------- calls ----- */

/* Adds the next tokens of sequence b to the call, at most `most`. */
static void add_rows(generator *g, mha_model_call *call, ptrdiff_t b, ptrdiff_t most)
{
    generated *const s = &g->sequences[b];
    const ptrdiff_t left = s->count - s->fed, count = left < most ? left : most;
    const ptrdiff_t first = (ptrdiff_t)g->starts[call->B];
    memcpy(g->ids + first, s->tokens + s->fed, (size_t)count * sizeof *g->ids);
    g->numbers[call->B++] = b;
    g->starts[call->B] = first + count;
    s->fed += count;
    if (s->fed == s->count) {
        g->rows[g->owner_count] = first + count - 1;
        g->owners[g->owner_count++] = b;
    }
}

static mha_model_call begin_call(generator *g)
{
    const mha_model_call call = {.size = sizeof call,
                                 .starts = g->starts,
                                 .ids = g->ids,
                                 .state = g->state,
                                 .sequences = g->numbers,
                                 .heads = g->config->heads,
                                 .message = g->config->message,
                                 .message_size = g->config->message_size};
    g->owner_count = 0;
    g->starts[0] = 0;
    return call;
}

/* Runs the call; logits of sequences that have read all their tokens are then in their order. */
static mha_status run_call(generator *g, mha_model_call *call)
{
    if (g->owner_count > 0) {
        call->logits = g->logits;
        call->logit_rows = g->rows;
        call->logit_row_count = g->owner_count;
    }
    const size_t needed = mha_model_work_size(g->model, call, mha_pool_threads(g->pool));
    if (needed > g->work_size) {
        free(g->work);
        g->work_size = 0;
        g->work = work_allocate(needed);
        if (!g->work)
            return fail(g, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
        g->work_size = needed;
    }
    /* A call that is not valid needs 0 bytes, and says why it is not. */
    return mha_model_run(g->model, call, needed ? g->work : NULL, g->work_size, g->pool);
}

/* ------------------------------------------------------------------- tokens ----- */

static void choose_task(void *arg, int worker, ptrdiff_t n)
{
    const generator *const g = arg;
    generated *const s = &g->sequences[g->owners[n]];
    const model_usage *const usage = &g->model->files.description.usage;
    const float *const logits = g->logits + n * g->words;
    rng random = rng_for(s->seed, (uint64_t)(s->count - s->context));
    const sample_request request = {.sampling = &g->config->sampling,
                                    .logits = logits,
                                    .words = g->words,
                                    .history = s->tokens,
                                    .history_count = s->count,
                                    .forbidden = usage->forbidden,
                                    .forbidden_count = usage->forbidden_count,
                                    .draw = rng_unit(&random),
                                    .scores = g->scores + worker * g->words,
                                    .ordered = g->order + worker * g->words};
    const bool forced = s->count == s->context && usage->first >= 0 && usage->first < g->words;
    s->chosen = forced ? usage->first : sample_token(&request);
    s->chosen_log = sample_log_probability(logits, g->words, s->chosen);
}

static bool call_back(const generator *g, ptrdiff_t b, int32_t id, bool last)
{
    generated *const s = &g->sequences[b];
    size_t length;
    const char *const text = text_stream_take(&s->stream, last, &length);
    if (!g->config->callback || (id < 0 && length == 0))
        return true;
    return g->config->callback(g->config->context, b, id, text, length) == 0;
}

/* What was held back is given out, unless the callback has ended the sequence. */
static mha_status finish(const generator *g, ptrdiff_t b, bool ended, bool silent)
{
    generated *const s = &g->sequences[b];
    s->live = false;
    const mha_status status = text_stream_add(&s->stream, s->tokens, s->count, true);
    s->ended = ended || s->stream.stopped;
    if (!status && !silent)
        call_back(g, b, -1, true);
    return status;
}

/* The chosen token joins its sequence, or ends it. */
static mha_status accept(const generator *g, ptrdiff_t b)
{
    generated *const s = &g->sequences[b];
    if (isnan(s->chosen_log))
        return fail(g, MHA_ERR_FORMAT,
                    "the logits of sequence %td are not numbers: weights of the model, or changes "
                    "to its heads, are not finite or too large",
                    b);
    if (s->most == 0)
        return finish(g, b, false, false);
    if (is_end(g, s->chosen))
        return finish(g, b, true, false);
    s->tokens[s->count++] = s->chosen;
    s->log_probability += s->chosen_log;
    const mha_status status = text_stream_add(&s->stream, s->tokens, s->count, false);
    if (status)
        return status;
    const bool more = call_back(g, b, s->chosen, false);
    if (!more || s->stream.stopped || s->count - s->context >= s->most)
        return finish(g, b, false, !more);
    return MHA_OK;
}

static mha_status accept_all(generator *g)
{
    mha_status status = MHA_OK;
    mha_pool_run(g->pool, g->owner_count, choose_task, g);
    for (ptrdiff_t n = 0; n < g->owner_count && !status; n++)
        status = accept(g, g->owners[n]);
    return status;
}

/* -------------------------------------------------------------------- phases ----- */

/* Prompts of a decoder, in chunks of bounded rows; a sequence is once in a call. */
static mha_status read_prompts(generator *g)
{
    mha_status status = MHA_OK;
    for (ptrdiff_t b = 0; b < g->B && !status;) {
        mha_model_call call = begin_call(g);
        while (b < g->B && g->starts[call.B] < CHUNK_ROWS) {
            const ptrdiff_t room = CHUNK_ROWS - (ptrdiff_t)g->starts[call.B];
            if (g->sequences[b].live)
                add_rows(g, &call, b, room);
            if (g->sequences[b].live && g->sequences[b].fed < g->sequences[b].count)
                break;
            b++;
        }
        if (call.B == 0)
            break;
        status = run_call(g, &call);
        status = status ? status : accept_all(g);
    }
    return status;
}

/* Source texts of an encoder-decoder, each with the first token of its decoder. */
static mha_status read_sources(generator *g)
{
    mha_status status = MHA_OK;
    for (ptrdiff_t b = 0; b < g->B && !status;) {
        mha_model_call call = begin_call(g);
        const int64_t first = g->prompt_starts[b];
        g->source_starts[0] = 0;
        while (b < g->B && call.B < CHUNK_ROWS &&
               (call.B == 0 || g->prompt_starts[b + 1] - first <= SOURCE_ROWS)) {
            add_rows(g, &call, b, 1);
            g->source_starts[call.B] = g->prompt_starts[b + 1] - first;
            b++;
        }
        call.source_starts = g->source_starts;
        call.source_ids = g->prompt_ids + first;
        status = run_call(g, &call);
        status = status ? status : accept_all(g);
    }
    return status;
}

static mha_status decode_all(generator *g)
{
    mha_status status = MHA_OK;
    while (!status) {
        mha_model_call call = begin_call(g);
        for (ptrdiff_t b = 0; b < g->B; b++)
            if (g->sequences[b].live)
                add_rows(g, &call, b, 1);
        if (call.B == 0)
            break;
        status = run_call(g, &call);
        status = status ? status : accept_all(g);
    }
    return status;
}

/* ------------------------------------------------------------------- results ----- */

static mha_status fill_result(const generator *g, ptrdiff_t b, mha_generation *result)
{
    generated *const s = &g->sequences[b];
    const size_t count = (size_t)(s->count - s->context);
    *result = (mha_generation){.count = (ptrdiff_t)count,
                               .length = s->stream.length,
                               .log_probability = s->log_probability,
                               .ended = s->ended};
    result->ids = malloc((count + 1) * sizeof *result->ids);
    if (!result->ids)
        return fail(g, MHA_ERR_MEMORY, "no memory for %zu tokens", count);
    memcpy(result->ids, s->tokens + s->context, count * sizeof *result->ids);
    result->text = s->stream.text ? s->stream.text : calloc(1, 1);
    s->stream.text = NULL;
    return result->text ? MHA_OK : fail(g, MHA_ERR_MEMORY, "no memory for a text");
}

void mha_generation_free(mha_generation *generation)
{
    if (!generation)
        return;
    free(generation->ids);
    free(generation->text);
    memset(generation, 0, sizeof *generation);
}

static bool is_unusable(float x)
{
    return !(x >= 0.0f && x < INFINITY);
}

static mha_status check_prompt(const generator *g, ptrdiff_t b)
{
    const mha_state *const state = g->config->state;
    const int positions = g->model->files.description.positions;
    const ptrdiff_t count = past_of(g, b) + prompt_of(g, b);
    if (positions > 0 && count > positions)
        return fail(g, MHA_ERR_LENGTH, "prompt %td has %td tokens; the model reads %d", b, count,
                    positions);
    if (state && count > state->capacity)
        return fail(g, MHA_ERR_FULL,
                    "prompt %td and what the state has before it are %td tokens; it has room for "
                    "%td",
                    b, count, state->capacity);
    return MHA_OK;
}

static mha_status check(const generator *g)
{
    const mha_generate_config *const c = g->config;
    const mha_sampling *const s = &c->sampling;
    if (!g->model->stack[STACK_DECODER].layers || !g->model->output)
        return fail(g, MHA_ERR_FLAG, "the model does not generate tokens");
    if (c->most < 0 || c->stop_count < 0 || (c->stop_count > 0 && !c->stops))
        return fail(g, MHA_ERR_SHAPE, "config.most is %td, config.stop_count %td", c->most,
                    c->stop_count);
    if (is_unusable(s->temperature) || is_unusable(s->top_p) || is_unusable(s->min_p) ||
        s->top_k < 0 || is_unusable(s->repetition_penalty) || s->repetition_last < 0)
        return fail(g, MHA_ERR_SCALE,
                    "config.sampling has a number that is negative or not finite");
    for (ptrdiff_t n = 0; n < c->stop_count; n++)
        if (!c->stops[n])
            return fail(g, MHA_ERR_NULL, "config.stops[%td] is NULL", n);
    if (c->stop_count > 0 && !g->tokenizer)
        return fail(g, MHA_ERR_FLAG, "config.stops need a tokenizer, and the model has none");
    if (c->state && (c->state->model != g->model || c->state->sequences < g->B))
        return fail(g, MHA_ERR_SEQUENCE,
                    "config.state is of another model, or has less than %td sequences", g->B);
    if (g->prompt_starts[0] != 0)
        return fail(g, MHA_ERR_LENGTH, "starts[0] is not 0");
    for (ptrdiff_t b = 0; b < g->B; b++) {
        if (g->prompt_starts[b + 1] <= g->prompt_starts[b])
            return fail(g, MHA_ERR_LENGTH, "prompt %td is empty", b);
        const mha_status status = check_prompt(g, b);
        if (status)
            return status;
    }
    return MHA_OK;
}

static mha_status generate_all(generator *g, mha_generation *results)
{
    mha_status status = make_state(g);
    if (!status)
        status = take_memory(g);
    list_ends(g);
    for (ptrdiff_t b = 0; b < g->B && !status; b++)
        status = prepare_sequence(g, b);
    if (!status)
        status = is_pair(g) ? read_sources(g) : read_prompts(g);
    if (!status)
        status = decode_all(g);
    for (ptrdiff_t b = 0; b < g->B && !status; b++)
        status = fill_result(g, b, &results[b]);
    for (ptrdiff_t b = 0; b < g->B && status; b++)
        mha_generation_free(&results[b]);
    return status;
}

mha_status mha_model_generate(const mha_model *model, ptrdiff_t B, const int64_t *starts,
                              const int32_t *ids, const mha_generate_config *config,
                              mha_generation *results, mha_pool *pool)
{
    const mha_generate_config none = {.size = sizeof none};
    config = config ? config : &none;
    if (!model || !starts || !ids || !results)
        return MHA_ERR_NULL;
    if (config->size != sizeof *config)
        return MHA_ERR_STRUCT;
    generator g = {.model = model,
                   .config = config,
                   .tokenizer = mha_model_target_tokenizer(model),
                   .pool = pool,
                   .B = B,
                   .words = model->files.description.vocabulary,
                   .prompt_starts = starts,
                   .prompt_ids = ids};
    if (B < 0)
        return fail(&g, MHA_ERR_SHAPE, "B is %td", B);
    if (B == 0)
        return MHA_OK;
    memset(results, 0, (size_t)B * sizeof *results);
    mha_status status = check(&g);
    if (!status)
        status = generate_all(&g, results);
    free_memory(&g);
    return status;
}
