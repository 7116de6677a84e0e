/* SPDX-License-Identifier: MIT */
/*
 * States: truncate, fork, reorder, files, and calls that fail. After each of them the next token
 * must have the same logits, to the bit, as in a sequence that was computed in one go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { LENGTH = 12, SOURCE = 5, WORDS = 60, SEQUENCES = 3 };

static const tiny_kind kinds[] = {TINY_GPT2, TINY_LLAMA, TINY_GEMMA, TINY_T5, TINY_BART};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

typedef struct state_case {
    mha_model *model;
    mha_state *state;
    bool pair;
    int32_t ids[SEQUENCES][LENGTH], source[SEQUENCES][SOURCE];
} state_case;

static void case_begin(state_case *c, tiny_kind kind, mha_dtype type)
{
    model_files files;
    c->model = tiny_model_new(kind, MHA_STORE_AS_FILE, 50, &files);
    c->pair = files.description.kind == MHA_MODEL_ENCODER_DECODER;
    for (int s = 0; s < SEQUENCES; s++) {
        tiny_ids(c->ids[s], LENGTH, WORDS, 60 + (uint64_t)s);
        tiny_ids(c->source[s], SOURCE, WORDS, 70 + (uint64_t)s);
    }
    const mha_state_config config = {.size = sizeof config,
                                     .sequences = SEQUENCES,
                                     .capacity = LENGTH,
                                     .source_capacity = SOURCE,
                                     .type = type};
    CHECK(mha_state_create(&c->state, c->model, &config) == MHA_OK, "state");
}

static void case_end(state_case *c)
{
    mha_state_free(c->state);
    mha_model_free(c->model);
}

/* Tokens [first, last) of text `text` go into sequence `to`; logits of the last one. */
static mha_status feed(const state_case *c, mha_state *state, int to, int text, int first, int last,
                       float *logits)
{
    const int64_t starts[2] = {0, last - first}, sources[2] = {0, SOURCE}, sequence = to,
                  row = last - first - 1;
    mha_model_call call = {.size = sizeof call,
                           .B = 1,
                           .starts = starts,
                           .ids = c->ids[text] + first,
                           .state = state,
                           .sequences = &sequence,
                           .logits = logits,
                           .logit_rows = &row,
                           .logit_row_count = logits ? 1 : 0};
    if (c->pair && first == 0) {
        call.source_starts = sources;
        call.source_ids = c->source[text];
    }
    return mha_model_run(c->model, &call, NULL, 0, NULL);
}

/* Logits of the last of `count` tokens of a text, by a state of its own. */
static void expect(const state_case *c, mha_dtype type, int text, int count, float *logits)
{
    const mha_state_config config = {
        .size = sizeof config, .capacity = LENGTH, .source_capacity = SOURCE, .type = type};
    mha_state *state;
    CHECK(mha_state_create(&state, c->model, &config) == MHA_OK, "state");
    CHECK(feed(c, state, 0, text, 0, count - 1, NULL) == MHA_OK, "prompt");
    CHECK(feed(c, state, 0, text, count - 1, count, logits) == MHA_OK, "token");
    mha_state_free(state);
}

/* Token `count` - 1 of text `text` now follows in sequence `to`, as if nothing had happened. */
static void check_next(const state_case *c, mha_state *state, mha_dtype type, int to, int text,
                       int count, const char *what)
{
    float is[WORDS], expected[WORDS];
    expect(c, type, text, count, expected);
    CHECK(mha_state_length(state, to) == count - 1, "%s: length %td", what,
          mha_state_length(state, to));
    CHECK(memcmp(mha_state_tokens(state, to), c->ids[text], (size_t)(count - 1) * 4) == 0,
          "%s: tokens", what);
    const mha_status status = feed(c, state, to, text, count - 1, count, is);
    CHECK(status == MHA_OK, "%s: %s", what, mha_status_string(status));
    CHECK(memcmp(is, expected, sizeof is) == 0, "%s: logits of sequence %d differ", what, to);
}

/* -------------------------------------------------------------------- changes ----- */

static void sequences_change(void)
{
    for (int k = 0; k < KINDS; k++) {
        state_case c;
        case_begin(&c, kinds[k], MHA_F32);
        for (int s = 0; s < SEQUENCES; s++)
            CHECK(feed(&c, c.state, s, s, 0, 4 + s, NULL) == MHA_OK, "prompt");
        CHECK(mha_state_truncate(c.state, 1, 3) == MHA_OK, "truncate");
        check_next(&c, c.state, MHA_F32, 1, 1, 4, "truncated");
        CHECK(mha_state_fork(c.state, 0, 2) == MHA_OK, "fork");
        check_next(&c, c.state, MHA_F32, 0, 2, 7, "forked");
        check_next(&c, c.state, MHA_F32, 2, 2, 7, "forked from");
        static const int64_t parents[] = {1, 2, 1};
        CHECK(mha_state_reorder(c.state, parents) == MHA_OK, "reorder");
        check_next(&c, c.state, MHA_F32, 0, 1, 5, "reordered");
        check_next(&c, c.state, MHA_F32, 1, 2, 8, "reordered");
        check_next(&c, c.state, MHA_F32, 2, 1, 5, "reordered");
        case_end(&c);
    }
}

static void wrong_changes_are_refused(void)
{
    state_case c;
    case_begin(&c, TINY_GPT2, MHA_F32);
    CHECK(feed(&c, c.state, 1, 0, 0, 4, NULL) == MHA_OK, "prompt");
    static const int64_t parents[] = {0, 3, 1};
    CHECK(mha_state_reorder(c.state, parents) == MHA_ERR_SEQUENCE, "parent");
    static const int64_t far[] = {0, (int64_t)1 << 32, 1};
    CHECK(mha_state_reorder(c.state, far) == MHA_ERR_SEQUENCE, "parent beyond 32 bits");
    CHECK(mha_state_truncate(c.state, 3, 0) == MHA_ERR_SEQUENCE, "sequence");
    CHECK(mha_state_truncate(c.state, 1, 5) == MHA_ERR_LENGTH, "longer");
    CHECK(mha_state_fork(c.state, 0, -1) == MHA_ERR_SEQUENCE, "from");
    CHECK(mha_state_length(c.state, 3) == -1 && !mha_state_tokens(c.state, 3), "no such sequence");
    CHECK(mha_state_capacity(c.state) > 0 && mha_state_capacity(NULL) == 0, "capacity");
    check_next(&c, c.state, MHA_F32, 1, 0, 5, "refused");
    case_end(&c);
    mha_model *const encoder = tiny_model_new(TINY_BERT, MHA_STORE_AS_FILE, 1, NULL);
    mha_state *state;
    CHECK(mha_state_create(&state, encoder, NULL) == MHA_ERR_FLAG && !state, "encoder");
    mha_model_free(encoder);
}

/* Calls that fail leave the state as it was. */
static void failed_calls_change_nothing(void)
{
    for (int k = 0; k < KINDS; k++) {
        state_case c;
        case_begin(&c, kinds[k], MHA_F32);
        CHECK(feed(&c, c.state, 1, 1, 0, 5, NULL) == MHA_OK, "prompt");
        const int64_t starts[3] = {0, 1, 2}, twice[2] = {1, 1}, beyond[2] = {1, SEQUENCES},
                      empty[3] = {0, 0, 1}, sequences[2] = {1, 2}, long_starts[2] = {0, LENGTH},
                      far = 7;
        const int32_t wrong[2] = {1, WORDS}, negative[2] = {-1, 0};
        const int64_t sources[3] = {0, 1, 2};
        float logits[2 * WORDS];
        char work[64];
        mha_model_call call = {.size = sizeof call,
                               .B = 2,
                               .starts = starts,
                               .ids = c.ids[0],
                               .state = c.state,
                               .sequences = sequences,
                               .logits = logits};
        mha_model_call bad = call;
        bad.sequences = twice;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_SEQUENCE, "twice");
        bad.sequences = beyond;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_SEQUENCE, "beyond");
        bad = call;
        bad.starts = empty;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_LENGTH, "empty");
        bad = call;
        bad.ids = wrong;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_INDEX, "id");
        bad.ids = negative;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_INDEX, "negative id");
        bad = call;
        bad.B = 1;
        bad.starts = long_starts;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_FULL, "too long");
        bad = call;
        bad.logit_rows = &far;
        bad.logit_row_count = 1;
        CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) ==
                  (c.pair ? MHA_ERR_NULL : MHA_ERR_INDEX),
              "row");
        if (c.pair) {
            CHECK(mha_model_run(c.model, &call, NULL, 0, NULL) == MHA_ERR_NULL, "no source");
            bad = call;
            bad.source_ids = c.source[0];
            bad.source_starts = sources;
            CHECK(mha_model_run(c.model, &bad, NULL, 0, NULL) == MHA_ERR_FLAG, "second source");
        } else {
            CHECK(mha_model_run(c.model, &call, work, sizeof work, NULL) == MHA_ERR_WORKSPACE,
                  "workspace");
        }
        check_next(&c, c.state, MHA_F32, 1, 1, 6, "failed calls");
        case_end(&c);
    }
}

/* ----------------------------------------------------------------------- files ----- */

static void files_keep_every_bit(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_F16, MHA_BF16, MHA_I8};
    const temp_folder folder = temp_folder_new();
    for (int k = 0; k < KINDS; k++)
        for (int t = 0; t < 4; t++) {
            state_case c;
            char message[256] = "";
            case_begin(&c, kinds[k], types[t]);
            for (int s = 0; s < 2; s++) /* the last sequence stays empty */
                CHECK(feed(&c, c.state, s, s, 0, 5 + 2 * s, NULL) == MHA_OK, "prompt");
            const char *const path = temp_path(&folder, "state");
            mha_state *loaded;
            CHECK(mha_state_save(c.state, path, message, sizeof message) == MHA_OK, "%s", message);
            CHECK(temp_folder_count(&folder) == 1, "files are left over");
            const mha_status status =
                mha_state_load(&loaded, c.model, path, message, sizeof message);
            if (CHECK(status == MHA_OK, "load: %s", message)) {
                check_next(&c, loaded, types[t], 0, 0, 6, "loaded");
                check_next(&c, loaded, types[t], 1, 1, 8, "loaded");
                CHECK(mha_state_length(loaded, 2) == 0, "empty");
                mha_state_free(loaded);
            }
            case_end(&c);
        }
    temp_folder_free(&folder);
}

static void damaged_files_are_refused(void)
{
    const temp_folder folder = temp_folder_new();
    state_case c;
    mha_state *loaded;
    case_begin(&c, TINY_BART, MHA_F32);
    CHECK(feed(&c, c.state, 1, 1, 0, 5, NULL) == MHA_OK, "prompt");
    char path[256], damaged[256];
    snprintf(path, sizeof path, "%s", temp_path(&folder, "state"));
    snprintf(damaged, sizeof damaged, "%s", temp_path(&folder, "damaged"));
    CHECK(mha_state_save(c.state, path, NULL, 0) == MHA_OK, "save");
    size_t size;
    unsigned char *const bytes = file_bytes(path, &size);
    test_random random = {test_seed(9)};
    for (int64_t n = 0; bytes && n < test_effort(300); n++) {
        const size_t at = n < 120 ? (size_t)n : (size_t)test_random_below(&random, (int64_t)size);
        const unsigned char old = bytes[at];
        const bool cut = n % 3 == 0;
        bytes[at] ^= (unsigned char)(1 + test_random_below(&random, 255));
        CHECK(file_make(damaged, bytes, cut ? at : size), "file");
        const mha_status status = mha_state_load(&loaded, c.model, damaged, NULL, 0);
        CHECK(status == MHA_ERR_FORMAT || status == MHA_ERR_MEMORY, "byte %zu%s: %s", at,
              cut ? ", cut" : "", mha_status_string(status));
        CHECK(!loaded, "a state in spite of damage");
        bytes[at] = old;
    }
    CHECK(mha_state_load(&loaded, c.model, temp_path(&folder, "none"), NULL, 0) == MHA_ERR_FILE,
          "no such file");
    mha_model *const other = tiny_model_new(TINY_BART, MHA_STORE_AS_FILE, 51, NULL);
    CHECK(mha_state_load(&loaded, other, path, NULL, 0) == MHA_ERR_FORMAT, "another model");
    mha_model_free(other);
    CHECK(mha_state_save(c.state, "/nowhere/at/all", NULL, 0) == MHA_ERR_FILE, "no such folder");
    free(bytes);
    case_end(&c);
    temp_folder_free(&folder);
}

/* A state is loaded where nothing can be written, and saved with no other file than its own. */
static void files_need_no_other_place(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "state");
    state_case c;
    mha_state *loaded;
    case_begin(&c, TINY_LLAMA, MHA_F32);
    CHECK(mha_state_save(c.state, path, NULL, 0) == MHA_OK, "save");
    setenv("TMPDIR", "/nowhere/at/all", 1);
    CHECK(mha_state_load(&loaded, c.model, path, NULL, 0) == MHA_OK, "load");
    unsetenv("TMPDIR");
    mha_state_free(loaded);
    case_end(&c);
    temp_folder_free(&folder);
}

/* Long sequences are kept in pages; the bits are the same. */
static void pages_change_nothing(void)
{
    state_case c;
    float expected[WORDS], is[WORDS];
    mha_state *state;
    const mha_state_config config = {.size = sizeof config, .capacity = 3000, .sequences = 2};
    case_begin(&c, TINY_LLAMA, MHA_F32);
    expect(&c, MHA_F32, 0, LENGTH, expected);
    CHECK(mha_state_create(&state, c.model, &config) == MHA_OK, "state");
    CHECK(feed(&c, state, 0, 0, 0, 5, NULL) == MHA_OK, "prompt");
    CHECK(mha_state_fork(state, 1, 0) == MHA_OK, "fork");
    CHECK(feed(&c, state, 0, 1, 5, 9, NULL) == MHA_OK, "other tokens");
    CHECK(feed(&c, state, 1, 0, 5, LENGTH, is) == MHA_OK, "rest");
    CHECK(memcmp(is, expected, sizeof is) == 0, "logits");
    mha_state_free(state);
    case_end(&c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(sequences_change);
    RUN(wrong_changes_are_refused);
    RUN(failed_calls_change_nothing);
    RUN(files_keep_every_bit);
    RUN(damaged_files_are_refused);
    RUN(files_need_no_other_place);
    RUN(pages_change_nothing);
    return test_end();
}
