/* SPDX-License-Identifier: MIT */
/*
 * The promise of mha_model.h: a sequence gives the same bits whatever the number of threads, the
 * other sequences of the call, the way it is split into calls with an f32 state, the other outputs,
 * and the owner of the workspace.
 */
#include <stdlib.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { B = 4, LENGTH = 19, SOURCE = 9, MOST = B * LENGTH, WORDS = 60, WIDTH = 64 };
enum { PIXELS = 3 * 12 * 12, PATCHES = 11 };

/* Sequences b = 0 .. B-1, alone or together. */
typedef struct bits_case {
    tiny_kind kind;
    mha_model *model;
    model_files files;
    int64_t starts[B + 1], source_starts[B + 1];
    int32_t ids[MOST], source[MOST];
    float pixels[B * PIXELS];
} bits_case;

typedef struct bits_result {
    float hidden[MOST * WIDTH], logits[MOST * WORDS];
} bits_result;

static bool is_pair(const bits_case *c)
{
    return c->files.description.kind == MHA_MODEL_ENCODER_DECODER;
}

static bool is_decoder(const bits_case *c)
{
    return c->files.description.stack[STACK_DECODER].layers > 0;
}

static void case_begin(bits_case *c, tiny_kind kind, mha_model_storage storage)
{
    static const int64_t lengths[B] = {LENGTH, 1, 6, 13}, sources[B] = {4, SOURCE, 1, 7};
    memset(c, 0, sizeof *c);
    c->kind = kind;
    c->model = tiny_model_new(kind, storage, 5, &c->files);
    for (int b = 0; b < B; b++) {
        c->starts[b + 1] = c->starts[b] + (kind == TINY_VIT ? PATCHES : lengths[b]);
        c->source_starts[b + 1] = c->source_starts[b] + sources[b];
    }
    tiny_ids(c->ids, MOST, WORDS, 6);
    tiny_ids(c->source, MOST, WORDS, 7);
    test_random random = {8};
    for (int n = 0; n < B * PIXELS; n++)
        c->pixels[n] = test_random_float(&random);
}

/* A call for sequences [first, last), with starts in the given arrays. */
static mha_model_call call_of(const bits_case *c, int first, int last, int64_t *starts,
                              int64_t *source_starts, bits_result *result)
{
    mha_model_call call = {.size = sizeof call, .B = last - first};
    for (int b = first; b <= last; b++) {
        starts[b - first] = c->starts[b] - c->starts[first];
        source_starts[b - first] = c->source_starts[b] - c->source_starts[first];
    }
    call.hidden = result->hidden + c->starts[first] * WIDTH;
    if (c->kind == TINY_VIT) {
        call.pixels = c->pixels + first * PIXELS;
        return call;
    }
    call.starts = starts;
    call.ids = c->ids + c->starts[first];
    call.logits = result->logits + c->starts[first] * WORDS;
    if (is_pair(c)) {
        call.source_starts = source_starts;
        call.source_ids = c->source + c->source_starts[first];
    }
    return call;
}

static void run_together(const bits_case *c, bits_result *result, mha_pool *pool)
{
    int64_t starts[B + 1], source_starts[B + 1];
    memset(result, 0, sizeof *result);
    const mha_model_call call = call_of(c, 0, B, starts, source_starts, result);
    const mha_status status = mha_model_run(c->model, &call, NULL, 0, pool);
    CHECK(status == MHA_OK, "%s: %s", tiny_name(c->kind), mha_status_string(status));
}

static void check_same(const bits_case *c, const bits_result *a, const bits_result *b,
                       const char *what)
{
    CHECK(memcmp(a->hidden, b->hidden, sizeof a->hidden) == 0, "%s: hidden, %s", tiny_name(c->kind),
          what);
    CHECK(memcmp(a->logits, b->logits, sizeof a->logits) == 0, "%s: logits, %s", tiny_name(c->kind),
          what);
}

typedef void bits_check(const bits_case *c, const bits_result *expected, bits_result *result);

static void for_families(bits_check *check)
{
    static bits_case c;
    static bits_result expected, result;
    for (int n = 0; n < TINY_KINDS + MHA_STORE_Q4; n++) {
        if (n < TINY_KINDS) /* one family in every storage */
            case_begin(&c, (tiny_kind)n, MHA_STORE_AS_FILE);
        else
            case_begin(&c, TINY_LLAMA, (mha_model_storage)(n - TINY_KINDS + 1));
        run_together(&c, &expected, NULL);
        memset(&result, 0, sizeof result);
        check(&c, &expected, &result);
        mha_model_free(c.model);
    }
}

/* ------------------------------------------------------------------- threads ----- */

static void check_threads(const bits_case *c, const bits_result *expected, bits_result *result)
{
    for (int threads = 2; threads <= 5; threads += 3) {
        mha_pool *pool;
        if (!CHECK(mha_pool_create(&pool, threads) == MHA_OK, "pool"))
            return;
        run_together(c, result, pool);
        check_same(c, expected, result, "threads");
        mha_pool_free(pool);
    }
}

static void any_number_of_threads(void)
{
    for_families(check_threads);
}

/* -------------------------------------------------------------------- batches ----- */

static void check_batches(const bits_case *c, const bits_result *expected, bits_result *result)
{
    static const int cuts[] = {0, 1, 3, B};
    for (int n = 0; n < 3; n++) {
        int64_t starts[B + 1], source_starts[B + 1];
        const mha_model_call call = call_of(c, cuts[n], cuts[n + 1], starts, source_starts, result);
        CHECK(mha_model_run(c->model, &call, NULL, 0, NULL) == MHA_OK, "run");
    }
    check_same(c, expected, result, "other batches");
}

static void any_batches(void)
{
    for_families(check_batches);
}

/* ------------------------------------------------------------------ workspace ----- */

static void check_workspace(const bits_case *c, const bits_result *expected, bits_result *result)
{
    int64_t starts[B + 1], source_starts[B + 1];
    const mha_model_call call = call_of(c, 0, B, starts, source_starts, result);
    const size_t size = mha_model_work_size(c->model, &call, 1);
    guard_buffer work = guard_new(size, GUARD_AFTER);
    CHECK(mha_model_run(c->model, &call, work.data, size - 1, NULL) == MHA_ERR_WORKSPACE,
          "%s: one byte less is enough", tiny_name(c->kind));
    CHECK(mha_model_run(c->model, &call, work.data, size, NULL) == MHA_OK, "run");
    CHECK(guard_intact(&work), "%s: writes outside of its workspace", tiny_name(c->kind));
    guard_free(&work);
    check_same(c, expected, result, "own workspace");
}

static void any_workspace(void)
{
    for_families(check_workspace);
}

/* --------------------------------------------------------------------- chunks ----- */

/* Feeds all sequences to a state, at most `most` tokens of each at a time. */
static void run_chunks(const bits_case *c, bits_result *result, int most, mha_pool *pool)
{
    const mha_state_config config = {.size = sizeof config, .sequences = B + 1, .capacity = LENGTH};
    mha_state *state;
    if (!CHECK(mha_state_create(&state, c->model, &config) == MHA_OK, "state"))
        return;
    for (int64_t done = 0; done < LENGTH; done += most) {
        static float hidden[MOST * WIDTH], logits[MOST * WORDS];
        int64_t starts[B + 1] = {0}, source_starts[B + 1] = {0}, sequences[B];
        int32_t ids[MOST], source[MOST];
        int owners[B];
        mha_model_call call = {.size = sizeof call,
                               .starts = starts,
                               .ids = ids,
                               .state = state,
                               .sequences = sequences,
                               .hidden = hidden,
                               .logits = logits};
        for (int b = B - 1; b >= 0; b--) {
            const int64_t length = c->starts[b + 1] - c->starts[b];
            const int64_t count = length - done < most ? length - done : most;
            if (count <= 0)
                continue;
            const int64_t words = c->source_starts[b + 1] - c->source_starts[b];
            memcpy(ids + starts[call.B], c->ids + c->starts[b] + done, (size_t)count * 4);
            memcpy(source + source_starts[call.B], c->source + c->source_starts[b],
                   (size_t)words * 4);
            starts[call.B + 1] = starts[call.B] + count;
            source_starts[call.B + 1] = source_starts[call.B] + words;
            owners[call.B] = b;
            sequences[call.B++] = b + 1;
        }
        if (is_pair(c) && done == 0) {
            call.source_starts = source_starts;
            call.source_ids = source;
        }
        const mha_status status = mha_model_run(c->model, &call, NULL, 0, pool);
        CHECK(status == MHA_OK, "%s: %s", tiny_name(c->kind), mha_status_string(status));
        for (int n = 0; n < call.B; n++) {
            const int64_t to = c->starts[owners[n]] + done, count = starts[n + 1] - starts[n];
            memcpy(result->hidden + to * WIDTH, hidden + starts[n] * WIDTH,
                   (size_t)count * WIDTH * 4);
            memcpy(result->logits + to * WORDS, logits + starts[n] * WORDS,
                   (size_t)count * WORDS * 4);
        }
    }
    for (int b = 0; b < B; b++)
        CHECK(mha_state_length(state, b + 1) == c->starts[b + 1] - c->starts[b] &&
                  memcmp(mha_state_tokens(state, b + 1), c->ids + c->starts[b],
                         (size_t)(c->starts[b + 1] - c->starts[b]) * 4) == 0,
              "%s: the state has the tokens of sequence %d", tiny_name(c->kind), b);
    mha_state_free(state);
}

static void check_chunks(const bits_case *c, const bits_result *expected, bits_result *result)
{
    static const int sizes[] = {1, 3, 7, LENGTH};
    if (!is_decoder(c))
        return;
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool"))
        return;
    for (int n = 0; n < 4; n++) {
        memset(result, 0, sizeof *result);
        run_chunks(c, result, sizes[n], n % 2 ? pool : NULL);
        check_same(c, expected, result, "chunks with a state");
    }
    mha_pool_free(pool);
}

static void any_chunks(void)
{
    for_families(check_chunks);
}

/* -------------------------------------------------------------------- outputs ----- */

/* Other outputs, captures and chosen rows change nothing. */
static void check_outputs(const bits_case *c, const bits_result *expected, bits_result *result)
{
    static float streams[4 * MOST * WIDTH], parts[12 * MOST * WIDTH];
    static float weights[B * 8 * LENGTH * LENGTH];
    int64_t starts[B + 1], source_starts[B + 1];
    static const int64_t rows[] = {20, 0, 5};
    static float chosen[3 * WORDS];
    mha_model_call call = call_of(c, 0, B, starts, source_starts, result);
    const mha_attention_kind kind = is_decoder(c) ? MHA_ATTENTION_DECODER : MHA_ATTENTION_ENCODER;
    const mha_capture capture = {
        .kind = kind, .layer = 1, .weights = mha_out_bhld(weights, 8, LENGTH, LENGTH)};
    call.streams = streams;
    call.parts = parts;
    call.captures = &capture;
    call.capture_count = 1;
    CHECK(mha_model_run(c->model, &call, NULL, 0, NULL) == MHA_OK, "run");
    check_same(c, expected, result, "captures");
    if (!call.logits)
        return;
    call.logits = chosen;
    call.logit_rows = rows;
    call.logit_row_count = 3;
    call.hidden = call.streams = call.parts = NULL;
    call.capture_count = 0;
    CHECK(mha_model_run(c->model, &call, NULL, 0, NULL) == MHA_OK, "run");
    for (int n = 0; n < 3; n++)
        CHECK(memcmp(chosen + n * WORDS, expected->logits + rows[n] * WORDS, WORDS * 4) == 0,
              "%s: chosen row %d", tiny_name(c->kind), n);
}

static void any_outputs(void)
{
    for_families(check_outputs);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(any_number_of_threads);
    RUN(any_batches);
    RUN(any_workspace);
    RUN(any_chunks);
    RUN(any_outputs);
    return test_end();
}
