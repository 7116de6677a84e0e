/* SPDX-License-Identifier: MIT */
/*
 * Section 6 of mha_model.h: prompts are read in chunks, then all sequences that have not ended take
 * one token per call. What a sequence gets depends on its own prompt, number and tokens alone.
 */
#include "model/generate_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "model/state.h"

/* ROWS_TOGETHER: hypotheses in one batch, if texts can be divided into several. */
enum { CHUNK_ROWS = 512, SOURCE_ROWS = 4096, OWN_MOST = 4096, ROWS_TOGETHER = 256 };

#define fail generate_fail

/* ------------------------------------------------------------------ prepare ----- */

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

bool generate_is_end(const generator *g, int32_t id)
{
    bool end = false;
    for (int n = 0; n < g->end_count && !g->config->ignore_end; n++)
        end |= g->ends[n] == id;
    return end;
}

int32_t generate_forced(const generator *g, ptrdiff_t count)
{
    const int32_t first = g->model->files.description.usage.first;
    return count == 0 && first < g->words ? first : -1;
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
    const ptrdiff_t longest = generate_is_pair(g) ? 1 : longest_prompt(g);
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
                                     .sequences = g->B * g->beams,
                                     .capacity = limit_of(g),
                                     .source_capacity = generate_is_pair(g) ? longest_prompt(g) : 0,
                                     .message = g->config->message,
                                     .message_size = g->config->message_size};
    return generate_memory_state(g, &config, &g->state);
}

static mha_status prepare_sequence(generator *g, ptrdiff_t b)
{
    generated *const s = &g->sequences[b];
    const model_usage *const usage = &g->model->files.description.usage;
    const ptrdiff_t past = generate_past(g, b), prompt = generate_prompt(g, b), room = limit_of(g);
    s->context = s->count = past + prompt;
    s->fed = past;
    s->most = room > s->context ? room - s->context : 0;
    if (g->config->most > 0 && g->config->most < s->most)
        s->most = g->config->most;
    s->tokens = malloc((size_t)(s->context + s->most) * sizeof *s->tokens + sizeof *s->tokens);
    if (!s->tokens)
        return fail(g, MHA_ERR_MEMORY, "no memory for the tokens of sequence %td", g->first + b);
    if (past > 0)
        memcpy(s->tokens, mha_state_tokens(g->state, b), (size_t)past * sizeof *s->tokens);
    if (generate_is_pair(g))
        s->tokens[past] = usage->decoder_start >= 0 ? usage->decoder_start
                          : usage->begin >= 0       ? usage->begin
                                                    : 0;
    else
        memcpy(s->tokens + past, g->prompt_ids + g->prompt_starts[b],
               (size_t)prompt * sizeof *s->tokens);
    rng seeds = rng_for(g->config->sampling.seed, (uint64_t)(g->first + b));
    s->seed = rng_next(&seeds);
    s->live = true;
    text_stream_begin(&s->stream, g->tokenizer, s->context, g->config->stops,
                      g->config->stop_count);
    return MHA_OK;
}

static mha_status take_memory(generator *g)
{
    const size_t B = (size_t)(g->B * g->beams), words = (size_t)g->words;
    const size_t threads = (size_t)mha_pool_threads(g->pool);
    const size_t rows = B > CHUNK_ROWS ? B : CHUNK_ROWS;
    g->sequences = calloc((size_t)g->B, sizeof *g->sequences);
    g->logits = generate_memory_logits(g, B * words);
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

static void free_memory(generator *g, bool usable)
{
    beams_free(g);
    for (ptrdiff_t b = 0; g->sequences && b < g->B; b++) {
        free(g->sequences[b].tokens);
        text_stream_free(&g->sequences[b].stream);
    }
    void *const all[] = {g->sequences, g->scores, g->order,  g->starts, g->source_starts,
                         g->numbers,   g->rows,   g->owners, g->ids};
    for (size_t n = 0; n < sizeof all / sizeof all[0]; n++)
        free(all[n]);
    generate_memory_give(g, usable);
}

/* -------------------------------------------------------------------- calls ----- */

/* Adds the next tokens of sequence b to the call, at most `most`. */
static void add_rows(generator *g, mha_model_call *call, ptrdiff_t b, ptrdiff_t most)
{
    generated *const s = &g->sequences[b];
    const ptrdiff_t left = s->count - s->fed, count = left < most ? left : most;
    const ptrdiff_t first = (ptrdiff_t)g->starts[call->B];
    memcpy(g->ids + first, s->tokens + s->fed, (size_t)count * sizeof *g->ids);
    g->numbers[call->B++] = b * g->beams;
    g->starts[call->B] = first + count;
    s->fed += count;
    if (s->fed == s->count) {
        g->rows[g->owner_count] = first + count - 1;
        g->owners[g->owner_count++] = b;
    }
}

mha_model_call generate_begin_call(generator *g)
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

mha_status generate_run_call(generator *g, mha_model_call *call)
{
    if (g->owner_count > 0) {
        call->logits = g->logits;
        call->logit_rows = g->owner_count < g->starts[call->B] ? g->rows : NULL;
        call->logit_row_count = g->owner_count;
    }
    const size_t needed = mha_model_work_size(g->model, call, mha_pool_threads(g->pool));
    size_t available;
    void *const work = generate_memory_work(g, needed, &available);
    if (needed && !work)
        return fail(g, MHA_ERR_MEMORY, "no memory for %zu bytes of workspace", needed);
    /* A call that is not valid needs 0 bytes, and says why it is not. */
    return mha_model_run(g->model, call, needed ? work : NULL, available, g->pool);
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
    const int32_t forced = generate_forced(g, s->count - s->context);
    s->chosen = forced >= 0 ? forced : sample_token(&request);
    s->chosen_log = (double)logits[s->chosen] - sample_log_total(logits, g->words);
    if (forced >= 0 && !isnan(s->chosen_log))
        s->chosen_log = 0.0; /* there was no choice */
}

static bool call_back(const generator *g, ptrdiff_t b, int32_t id, bool last)
{
    generated *const s = &g->sequences[b];
    size_t length;
    const char *const text = text_stream_take(&s->stream, last, &length);
    if (!g->config->callback || (id < 0 && length == 0))
        return true;
    return g->config->callback(g->config->context, g->first + b, id, text, length) == 0;
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

mha_status generate_not_finite(const generator *g, ptrdiff_t b)
{
    return fail(
        g, MHA_ERR_FORMAT,
        "the logits of sequence %td are not numbers: weights of the model, or changes to its "
        "heads, are not finite or too large",
        g->first + b);
}

/* The chosen token joins its sequence, or ends it. */
static mha_status accept(const generator *g, ptrdiff_t b)
{
    generated *const s = &g->sequences[b];
    if (isnan(s->chosen_log))
        return generate_not_finite(g, b);
    if (s->most == 0)
        return finish(g, b, false, false);
    if (generate_is_end(g, s->chosen)) {
        s->end_log = s->chosen_log;
        s->marked = true;
        return finish(g, b, true, false);
    }
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
    if (g->beams > 1)
        return beams_accept(g);
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
        mha_model_call call = generate_begin_call(g);
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
        status = generate_run_call(g, &call);
        status = status ? status : accept_all(g);
    }
    return status;
}

/* Source texts of an encoder-decoder, each with the first token of its decoder. */
static mha_status read_sources(generator *g)
{
    mha_status status = MHA_OK;
    for (ptrdiff_t b = 0; b < g->B && !status;) {
        mha_model_call call = generate_begin_call(g);
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
        status = generate_run_call(g, &call);
        status = status ? status : accept_all(g);
    }
    return status;
}

static mha_status decode_all(generator *g)
{
    mha_status status = MHA_OK;
    while (!status) {
        mha_model_call call = generate_begin_call(g);
        for (ptrdiff_t b = 0; b < g->B; b++)
            if (g->sequences[b].live)
                add_rows(g, &call, b, 1);
        if (call.B == 0)
            break;
        status = generate_run_call(g, &call);
        status = status ? status : accept_all(g);
    }
    return status;
}

/* ------------------------------------------------------------------- results ----- */

mha_status generate_result(const generator *g, ptrdiff_t b, mha_generation *result)
{
    generated *const s = &g->sequences[b];
    const size_t count = (size_t)(s->count - s->context), scored = count + s->marked;
    *result = (mha_generation){.count = (ptrdiff_t)count,
                               .length = s->stream.length,
                               .log_probability = s->log_probability,
                               .ended = s->ended};
    if (scored > 0)
        result->score = (s->log_probability + s->end_log) / (double)scored;
    result->confidence = exp(result->score);
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

static mha_status generate_together(generator *g, mha_generation *results)
{
    mha_status status = generate_memory_take(g);
    if (!status)
        status = make_state(g);
    if (!status)
        status = take_memory(g);
    list_ends(g);
    for (ptrdiff_t b = 0; b < g->B && !status; b++)
        status = prepare_sequence(g, b);
    if (!status && g->beams > 1)
        status = beams_begin(g);
    if (!status)
        status = generate_is_pair(g) ? read_sources(g) : read_prompts(g);
    if (!status)
        status = g->beams > 1 ? beams_decode(g) : decode_all(g);
    for (ptrdiff_t b = 0; b < g->B && !status; b++)
        status = g->beams > 1 ? beams_results(g, b, results + b * g->best)
                              : generate_result(g, b, &results[b]);
    free_memory(g, !status);
    return status;
}

/* Texts do not depend on each other, so many are divided into groups, which need less memory. A
 * caller's state and callback see all of them at once. */
static mha_status generate_all(const generator *whole, mha_generation *results)
{
    const bool divided = !whole->config->state && !whole->config->callback;
    const ptrdiff_t rows = ROWS_TOGETHER / whole->beams, most = divided ? rows : whole->B;
    mha_status status = MHA_OK;
    for (ptrdiff_t first = 0; first < whole->B && !status; first += most) {
        generator g = *whole;
        g.first = first;
        g.B = whole->B - first < most ? whole->B - first : most;
        g.prompt_starts += first;
        status = generate_together(&g, results + first * g.best);
    }
    for (ptrdiff_t n = 0; n < whole->B * whole->best && status; n++)
        mha_generation_free(&results[n]);
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
    const generator g = {.model = model,
                         .config = config,
                         .tokenizer = mha_model_target_tokenizer(model),
                         .pool = pool,
                         .B = B,
                         .beams = config->beams > 1 ? config->beams : 1,
                         .best = config->best > 1 ? config->best : 1,
                         .words = model->files.description.vocabulary,
                         .prompt_starts = starts,
                         .prompt_ids = ids};
    if (B < 0)
        return fail(&g, MHA_ERR_SHAPE, "B is %td", B);
    if (B == 0)
        return MHA_OK;
    mha_status status = generate_check_beams(&g);
    memset(results, 0, (size_t)(status ? B : B * g.best) * sizeof *results);
    if (!status)
        status = generate_check(&g);
    return status ? status : generate_all(&g, results);
}
