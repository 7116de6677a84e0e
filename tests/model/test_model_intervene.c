/* SPDX-License-Identifier: MIT */
/*
 * Runs that are interfered with (model/intervene.h): heads that get their own outputs change
 * nothing, to the bit; outputs of 0 are a gate of 0; those of another run are captured as they were
 * given; a token that nobody attends to has no weight, and its id matters to no other row.
 */
#include "model/intervene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/inspect.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { L = 7, S = 5, WORDS = 60, WIDTH = 64, H_MOST = 6, D_MOST = 32, LAYERS_MOST = 4 };
enum { CELLS = H_MOST * L * D_MOST };

typedef struct intervene_case {
    mha_model *model;
    mha_attention_kind kind; /* the attention that is changed: its last layer */
    int layer;
    ptrdiff_t H, D, rows;
    int64_t starts[2], source_starts[2];
    int32_t ids[L], source[S];
    float hidden[L * WIDTH], heads[CELLS], weights[H_MOST * L * L];
    mha_capture capture;
    mha_model_call call;
} intervene_case;

static void begin(intervene_case *c, tiny_kind which, mha_attention_kind kind)
{
    model_files files;
    mha_model_info info = {.size = sizeof info};
    memset(c, 0, sizeof *c);
    c->model = tiny_model_new(which, MHA_STORE_AS_FILE, 17, &files);
    mha_model_get_info(c->model, &info);
    c->kind = kind;
    c->layer = (int)info.layers[kind] - 1;
    c->H = info.heads;
    c->D = info.head_width;
    c->starts[1] = L;
    c->source_starts[1] = S;
    tiny_ids(c->ids, L, WORDS, 3);
    tiny_ids(c->source, S, WORDS, 4);
    const bool pair = files.description.kind == MHA_MODEL_ENCODER_DECODER;
    c->rows = pair && kind == MHA_ATTENTION_ENCODER ? S : L;
    const ptrdiff_t columns = pair && kind != MHA_ATTENTION_DECODER ? S : L;
    c->capture = (mha_capture){.kind = kind,
                               .layer = c->layer,
                               .weights = mha_out_bhld(c->weights, c->H, c->rows, columns),
                               .heads = mha_out_bhld(c->heads, c->H, c->rows, c->D)};
    c->call = (mha_model_call){.size = sizeof c->call,
                               .B = 1,
                               .starts = c->starts,
                               .ids = c->ids,
                               .source_starts = pair ? c->source_starts : NULL,
                               .source_ids = pair ? c->source : NULL,
                               .hidden = c->hidden,
                               .captures = &c->capture,
                               .capture_count = 1};
}

static void run(intervene_case *c, const model_intervention *changed, const char *what)
{
    const mha_status status = model_run_changed(c->model, &c->call, changed, NULL);
    CHECK(status == MHA_OK, "%s: %s", what, mha_status_string(status));
}

/* Two heads get their own outputs, then zeros, then other numbers. */
static void check_patches(tiny_kind which, mha_attention_kind kind)
{
    static intervene_case c;
    static float plain[L * WIDTH], own[CELLS], other[CELLS];
    begin(&c, which, kind);
    const ptrdiff_t cells = c.rows * c.D;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s", tiny_name(which));
    memcpy(plain, c.hidden, sizeof plain);
    memcpy(own, c.heads, sizeof own);
    model_patch patches[2] = {{kind, c.layer, 0, own},
                              {kind, c.layer, c.H - 1, own + (c.H - 1) * cells}};
    const model_intervention changed = {NULL, patches, 2};
    run(&c, &changed, tiny_name(which));
    CHECK(memcmp(plain, c.hidden, sizeof plain) == 0, "%s %d: its own outputs change the result",
          tiny_name(which), kind);

    for (ptrdiff_t n = 0; n < cells; n++)
        other[n] = 0.25f * (float)(n % 7 - 3);
    patches[0].outputs = patches[1].outputs = other;
    run(&c, &changed, tiny_name(which));
    CHECK(memcmp(plain, c.hidden, sizeof plain) != 0, "%s %d: no change", tiny_name(which), kind);
    CHECK(memcmp(c.heads, other, (size_t)cells * sizeof *other) == 0 &&
              memcmp(c.heads + (c.H - 1) * cells, other, (size_t)cells * sizeof *other) == 0,
          "%s: the capture has other outputs", tiny_name(which));

    float zeros[CELLS] = {0}, gates[LAYERS_MOST * H_MOST], changed_hidden[L * WIDTH];
    patches[0].outputs = patches[1].outputs = zeros;
    run(&c, &changed, tiny_name(which));
    memcpy(changed_hidden, c.hidden, sizeof changed_hidden);
    for (int n = 0; n < LAYERS_MOST * H_MOST; n++)
        gates[n] = n == c.layer * c.H || n == c.layer * c.H + c.H - 1 ? 0.0f : 1.0f;
    mha_head_settings settings = {.size = sizeof settings};
    settings.gates[kind] = gates;
    c.call.heads = &settings;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s", tiny_name(which));
    for (int n = 0; n < L * WIDTH; n++)
        if (!CHECK(fabsf(c.hidden[n] - changed_hidden[n]) < 1e-5f, "%s: %g, not %g",
                   tiny_name(which), (double)changed_hidden[n], (double)c.hidden[n]))
            break;
    mha_model_free(c.model);
}

static void outputs_are_replaced(void)
{
    check_patches(TINY_BERT, MHA_ATTENTION_ENCODER);
    check_patches(TINY_GPT2, MHA_ATTENTION_DECODER);
    check_patches(TINY_LLAMA, MHA_ATTENTION_DECODER);
    check_patches(TINY_GEMMA, MHA_ATTENTION_DECODER);
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        check_patches(TINY_T5, (mha_attention_kind)kind);
        check_patches(TINY_MARIAN, (mha_attention_kind)kind);
    }
}

/* Token 2 is ignored: another id changes its own row at most. */
static void check_ignored(tiny_kind which, mha_attention_kind kind)
{
    static intervene_case c;
    static float first[L * WIDTH], plain[L * WIDTH];
    const uint8_t ignored[L] = {[2] = 1};
    const model_intervention changed = {.ignored = ignored};
    begin(&c, which, kind);
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s", tiny_name(which));
    memcpy(plain, c.hidden, sizeof plain);
    run(&c, &changed, tiny_name(which));
    CHECK(memcmp(plain, c.hidden, sizeof plain) != 0, "%s: no change", tiny_name(which));
    memcpy(first, c.hidden, sizeof first);
    for (ptrdiff_t row = 0; row < c.H * c.rows; row++)
        CHECK(c.weights[row * L + 2] == 0.0f, "%s: row %td attends to it", tiny_name(which), row);
    c.ids[2] = (c.ids[2] + 7) % WORDS;
    run(&c, &changed, tiny_name(which));
    for (int row = 0; row < L; row++)
        CHECK(row == 2 ||
                  memcmp(first + row * WIDTH, c.hidden + row * WIDTH, WIDTH * sizeof *first) == 0,
              "%s: the id matters to row %d", tiny_name(which), row);
    mha_model_free(c.model);
}

static void ignored_tokens_do_not_matter(void)
{
    check_ignored(TINY_BERT, MHA_ATTENTION_ENCODER);
    check_ignored(TINY_GPT2, MHA_ATTENTION_DECODER);
    check_ignored(TINY_LLAMA, MHA_ATTENTION_DECODER);
}

/* The stream after the last layer, through the lens, is the output of the model, to the bit. */
static void the_lens_ends_at_the_logits(void)
{
    static const tiny_kind kinds[] = {TINY_GPT2, TINY_LLAMA, TINY_GEMMA,
                                      TINY_T5,   TINY_BART,  TINY_MARIAN};
    for (size_t n = 0; n < sizeof kinds / sizeof kinds[0]; n++) {
        static intervene_case c;
        mha_model_info info = {.size = sizeof info};
        begin(&c, kinds[n], MHA_ATTENTION_DECODER);
        mha_model_get_info(c.model, &info);
        const size_t rows = L * (size_t)info.width, cells = L * (size_t)info.vocabulary;
        const size_t layers = (size_t)info.layers[MHA_ATTENTION_DECODER];
        float *const streams = calloc((layers + 1) * rows, sizeof *streams);
        float *const logits = calloc(2 * cells, sizeof *logits);
        c.call.streams = streams;
        c.call.logits = logits;
        CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s", tiny_name(kinds[n]));
        CHECK(model_lens(c.model, L, streams + layers * rows, logits + cells, NULL) == MHA_OK &&
                  memcmp(logits, logits + cells, cells * sizeof *logits) == 0,
              "%s: other logits", tiny_name(kinds[n]));
        free(streams);
        free(logits);
        mha_model_free(c.model);
    }
}

static void what_cannot_be_run_is_refused(void)
{
    static intervene_case c;
    static const float zeros[CELLS];
    begin(&c, TINY_GPT2, MHA_ATTENTION_DECODER);
    const model_patch patch = {c.kind, c.layer, 0, zeros};
    const model_intervention changed = {NULL, &patch, 1};
    c.capture.heads.data = NULL;
    CHECK(model_run_changed(c.model, &c.call, &changed, NULL) == MHA_ERR_FLAG, "no capture");
    c.call.B = 2;
    CHECK(model_run_changed(c.model, &c.call, &changed, NULL) == MHA_ERR_FLAG, "two sequences");
    mha_model_free(c.model);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(outputs_are_replaced);
    RUN(ignored_tokens_do_not_matter);
    RUN(the_lens_ends_at_the_logits);
    RUN(what_cannot_be_run_is_refused);
    return test_end();
}
