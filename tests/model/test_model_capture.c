/* SPDX-License-Identifier: MIT */
/*
 * What heads compute can be copied out and changed: weights are those of the captured q and k,
 * statistics those of the weights, gates and modes act on the chosen heads, a pruned model gives
 * what gates of 0 give, and ignored tokens of a source play no part.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "support/tiny_models.h"

enum { B = 2, L = 9, S = 6, WORDS = 60, WIDTH = 64, H_MOST = 6, D_MOST = 32, ROWS = 13 };

typedef struct capture_case {
    mha_model *model;
    model_files files;
    int64_t starts[B + 1], source_starts[B + 1];
    int32_t ids[ROWS], source[ROWS];
    float hidden[ROWS * WIDTH];
    float weights[B * H_MOST * L * L];
    float q[ROWS * H_MOST * D_MOST], k[ROWS * H_MOST * D_MOST], v[ROWS * H_MOST * D_MOST],
        heads[ROWS * H_MOST * D_MOST];
    mha_model_call call;
} capture_case;

static void case_begin(capture_case *c, tiny_kind kind)
{
    memset(c, 0, sizeof *c);
    c->model = tiny_model_new(kind, MHA_STORE_AS_FILE, 31, &c->files);
    c->starts[1] = 4;
    c->starts[2] = ROWS;
    c->source_starts[1] = S;
    c->source_starts[2] = S + 2;
    tiny_ids(c->ids, ROWS, WORDS, 1);
    tiny_ids(c->source, ROWS, WORDS, 2);
    c->call = (mha_model_call){
        .size = sizeof c->call, .B = B, .starts = c->starts, .ids = c->ids, .hidden = c->hidden};
    if (c->files.description.kind == MHA_MODEL_ENCODER_DECODER) {
        c->call.source_starts = c->source_starts;
        c->call.source_ids = c->source;
    }
}

static const attention_description *attention_of(const capture_case *c, mha_attention_kind kind)
{
    return &c->files.description.stack[kind == MHA_ATTENTION_ENCODER ? 0 : 1].attention;
}

static mha_capture capture_of(capture_case *c, mha_attention_kind kind, int layer, ptrdiff_t keys)
{
    const attention_description *const a = attention_of(c, kind);
    const ptrdiff_t D = a->head_width;
    const bool source =
        kind == MHA_ATTENTION_ENCODER && c->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    const mha_capture capture = {.kind = kind,
                                 .layer = layer,
                                 .weights =
                                     mha_out_bhld(c->weights, a->heads, source ? S : L, keys),
                                 .q = {c->q, 0, D, a->heads * D},
                                 .k = {c->k, 0, D, a->key_heads * D},
                                 .v = {c->v, 0, D, a->key_heads * D},
                                 .heads = {c->heads, 0, D, a->heads * D}};
    return capture;
}

/* Recomputes one row of one head from what was captured. */
static void check_row(const capture_case *c, const mha_capture *capture, int b, ptrdiff_t h,
                      ptrdiff_t i, ptrdiff_t rows, ptrdiff_t keys, const int64_t *row_starts,
                      const int64_t *key_starts)
{
    const attention_description *const a = attention_of(c, capture->kind);
    const ptrdiff_t D = a->head_width, H = a->heads, G = a->key_heads, g = h / (H / G);
    const bool causal = capture->kind == MHA_ATTENTION_DECODER;
    const int window = causal ? attention_window(a, (int)capture->layer) : 0;
    const double scale = a->scale != 0 ? (double)a->scale : 1 / sqrt((double)D);
    const float *const w = (const float *)capture->weights.data + b * capture->weights.sb +
                           h * capture->weights.sh + i * capture->weights.sl;
    double p[ROWS], sum = 0, all = 0;
    for (ptrdiff_t j = 0; j < keys; j++) {
        double score = 0;
        for (ptrdiff_t n = 0; n < D; n++)
            score += (double)c->q[((row_starts[b] + i) * H + h) * D + n] *
                     (double)c->k[((key_starts[b] + j) * G + g) * D + n];
        score *= scale;
        if (a->softcap > 0)
            score = a->softcap * tanh(score / a->softcap);
        const bool hidden = causal && (j > i || (window > 0 && i - j >= window));
        sum += p[j] = hidden ? 0 : exp(score);
        all += (double)w[j];
    }
    CHECK(fabs(all - 1) < 1e-5, "weights sum to %g", all);
    for (ptrdiff_t j = 0; j < keys; j++)
        CHECK(fabs((double)w[j] - p[j] / sum) < 1e-5,
              "head %td, row %td of %td, key %td: %g, not %g", h, i, rows, j, (double)w[j],
              p[j] / sum);
    for (ptrdiff_t n = 0; n < D; n++) {
        double value = 0;
        for (ptrdiff_t j = 0; j < keys; j++)
            value += p[j] / sum * (double)c->v[((key_starts[b] + j) * G + g) * D + n];
        const double is = (double)c->heads[((row_starts[b] + i) * H + h) * D + n];
        CHECK(fabs(is - value) < 1e-4, "head %td, row %td: %g, not %g", h, i, is, value);
    }
}

static void check_capture(capture_case *c, mha_attention_kind kind, int layer)
{
    const bool pair = c->files.description.kind == MHA_MODEL_ENCODER_DECODER;
    const int64_t *const rows =
        pair && kind == MHA_ATTENTION_ENCODER ? c->source_starts : c->starts;
    const int64_t *const keys =
        pair && kind != MHA_ATTENTION_DECODER ? c->source_starts : c->starts;
    const ptrdiff_t longest = keys == c->starts ? L : S;
    const mha_capture capture = capture_of(c, kind, layer, longest);
    c->call.captures = &capture;
    c->call.capture_count = 1;
    const mha_status status = mha_model_run(c->model, &c->call, NULL, 0, NULL);
    if (!CHECK(status == MHA_OK, "kind %d: %s", (int)kind, mha_status_string(status)))
        return;
    for (int b = 0; b < B; b++)
        for (ptrdiff_t h = 0; h < attention_of(c, kind)->heads; h++)
            for (ptrdiff_t i = 0; i < rows[b + 1] - rows[b]; i++)
                check_row(c, &capture, b, h, i, (ptrdiff_t)(rows[b + 1] - rows[b]),
                          (ptrdiff_t)(keys[b + 1] - keys[b]), rows, keys);
}

static void weights_come_from_q_and_k(void)
{
    static capture_case c;
    static const struct {
        tiny_kind kind;
        mha_attention_kind attention;
        int layer;
    } cases[] = {{TINY_BERT, MHA_ATTENTION_ENCODER, 2},   {TINY_GPT2, MHA_ATTENTION_DECODER, 0},
                 {TINY_LLAMA, MHA_ATTENTION_DECODER, 0},  {TINY_LLAMA, MHA_ATTENTION_DECODER, 1},
                 {TINY_ALBERT, MHA_ATTENTION_ENCODER, 1}, {TINY_BART, MHA_ATTENTION_ENCODER, 1},
                 {TINY_BART, MHA_ATTENTION_DECODER, 1},   {TINY_BART, MHA_ATTENTION_CROSS, 0},
                 {TINY_T5, MHA_ATTENTION_CROSS, 2}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        case_begin(&c, cases[n].kind);
        check_capture(&c, cases[n].attention, cases[n].layer);
        mha_model_free(c.model);
    }
}

/* ------------------------------------------------------------------- statistics ----- */

static void statistics_are_of_the_weights(void)
{
    static capture_case c;
    static mha_row_statistics rows[B * 4 * L];
    const mha_statistics statistics = {.size = sizeof statistics, .rows = rows};
    case_begin(&c, TINY_GPT2);
    mha_capture capture = capture_of(&c, MHA_ATTENTION_DECODER, 1, L);
    capture.statistics = &statistics;
    c.call.captures = &capture;
    c.call.capture_count = 1;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "run");
    for (int h = 0; h < 4; h++)
        for (int i = 0; i < L; i++) {
            const float *const w = c.weights + ((4 + h) * L + i) * L;
            const mha_row_statistics *const r = &rows[(4 + h) * L + i];
            double entropy = 0, distance = 0;
            for (int j = 0; j <= i; j++) {
                entropy -= w[j] > 0 ? (double)w[j] * log((double)w[j]) : 0;
                distance += (double)w[j] * (i - j);
            }
            CHECK(fabs((double)r->entropy - entropy) < 1e-4, "entropy %g, not %g",
                  (double)r->entropy, entropy);
            CHECK(fabs((double)r->distance - distance) < 1e-4, "distance");
            CHECK(fabsf(r->self - w[i]) < 1e-6f, "self %g, not %g", (double)r->self, (double)w[i]);
        }
    mha_model_free(c.model);
}

/* ---------------------------------------------------------------------- changes ----- */

static double distance(const float *x, const float *y, ptrdiff_t count)
{
    double most = 0;
    for (ptrdiff_t n = 0; n < count; n++) {
        const double difference = fabs((double)x[n] - (double)y[n]);
        most = difference > most || isnan(difference) ? difference : most;
    }
    return most;
}

/* A state fits the heads that are left: the first sequence in two calls has the same bits. */
static void check_pruned_state(const capture_case *c, const mha_model *pruned, const char *name)
{
    const mha_state_config config = {.size = sizeof config, .capacity = L};
    float hidden[4 * WIDTH];
    mha_state *state;
    if (c->files.description.stack[STACK_DECODER].layers == 0 ||
        !CHECK(mha_state_create(&state, pruned, &config) == MHA_OK, "%s: state", name))
        return;
    for (int part = 0; part < 2; part++) {
        const int64_t starts[2] = {0, part ? 3 : 1};
        mha_model_call call = {.size = sizeof call,
                               .B = 1,
                               .starts = starts,
                               .ids = c->ids + part,
                               .state = state,
                               .hidden = hidden + part * WIDTH};
        if (part == 0) {
            call.source_starts = c->call.source_starts;
            call.source_ids = c->call.source_ids;
        }
        CHECK(mha_model_run(pruned, &call, NULL, 0, NULL) == MHA_OK, "%s: run", name);
    }
    CHECK(memcmp(hidden, c->hidden, sizeof hidden) == 0, "%s: pruned with a state", name);
    mha_state_free(state);
}

/* Gates of 0 in some heads of all attentions, and the model without these heads. `layers`: those
 * after the first ones lose no head. */
static void check_pruned(tiny_kind which, int layers)
{
    static capture_case c;
    float gates[MHA_ATTENTION_KINDS][64], gated[ROWS * WIDTH], plain[ROWS * WIDTH];
    uint8_t keep[MHA_ATTENTION_KINDS][64];
    mha_head_settings settings = {.size = sizeof settings};
    const uint8_t *list[MHA_ATTENTION_KINDS];
    case_begin(&c, which);
    for (int kind = 0; kind < MHA_ATTENTION_KINDS; kind++) {
        for (int n = 0; n < 64; n++) {
            keep[kind][n] = n >= 4 * layers || (n % 3 != 1 && n != 2 + kind);
            gates[kind][n] = keep[kind][n] ? 1.0f : 0.0f;
        }
        settings.gates[kind] = gates[kind];
        list[kind] = keep[kind];
    }
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "run");
    memcpy(plain, c.hidden, sizeof plain);
    c.call.heads = &settings;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "run with gates");
    memcpy(gated, c.hidden, sizeof gated);
    CHECK(distance(plain, gated, ROWS * WIDTH) > 1e-2, "%s: gates change nothing",
          tiny_name(which));
    mha_model *pruned;
    char message[256] = "";
    const mha_status status = mha_model_prune(&pruned, c.model, list, message, sizeof message);
    if (CHECK(status == MHA_OK, "%s: %s", tiny_name(which), message)) {
        mha_model_free(c.model); /* its weights live on */
        c.call.heads = NULL;
        CHECK(mha_model_run(pruned, &c.call, NULL, 0, NULL) == MHA_OK, "run pruned");
        CHECK(distance(c.hidden, gated, ROWS * WIDTH) < 2e-5, "%s, %d layers pruned: differs by %g",
              tiny_name(which), layers, distance(c.hidden, gated, ROWS * WIDTH));
        check_pruned_state(&c, pruned, tiny_name(which));
        c.model = pruned;
    }
    mha_model_free(c.model);
}

static void pruned_models_equal_gates(void)
{
    static const tiny_kind kinds[] = {TINY_BERT, TINY_LLAMA, TINY_T5, TINY_BART, TINY_ALBERT};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int layers = 1; layers <= 3; layers++)
            check_pruned(kinds[k], layers);
}

static void uniform_heads_have_equal_weights(void)
{
    static capture_case c;
    uint8_t modes[3 * 4] = {0};
    const mha_head_settings settings = {.size = sizeof settings,
                                        .modes = {[MHA_ATTENTION_DECODER] = modes}};
    case_begin(&c, TINY_GPT2);
    modes[4 + 2] = MHA_HEAD_UNIFORM;
    const mha_capture capture = capture_of(&c, MHA_ATTENTION_DECODER, 1, L);
    c.call.captures = &capture;
    c.call.capture_count = 1;
    c.call.heads = &settings;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "run");
    for (int i = 0; i < L; i++)
        for (int j = 0; j <= i; j++) {
            const float w = c.weights[((4 + 2) * L + i) * L + j];
            CHECK(fabsf(w - 1.0f / (float)(i + 1)) < 1e-6f, "row %d, key %d: %g", i, j, (double)w);
        }
    mha_model_free(c.model);
}

/* Source tokens at the end that are ignored are as if they were not there; of those in the middle
 * the id does not matter, and cross-attention gives them no weight. */
static void check_ignored(tiny_kind which)
{
    static capture_case c;
    static const int64_t shorter[B + 1] = {0, S - 2, S};
    uint8_t ignored[S + 2] = {[S - 2] = 1, [S - 1] = 1};
    float first[ROWS * WIDTH];
    case_begin(&c, which);
    const mha_capture capture = capture_of(&c, MHA_ATTENTION_CROSS, 0, S - 2);
    c.call.source_ignored = ignored;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s: run", tiny_name(which));
    memcpy(first, c.hidden, sizeof first);
    c.call.source_ignored = NULL;
    c.call.source_starts = shorter;
    memmove(c.source + S - 2, c.source + S, 2 * sizeof *c.source);
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s: shorter",
          tiny_name(which));
    CHECK(distance(first, c.hidden, ROWS * WIDTH) < 1e-5, "%s: differs by %g", tiny_name(which),
          distance(first, c.hidden, ROWS * WIDTH));
    memset(ignored, 0, sizeof ignored);
    ignored[1] = 1;
    c.call.source_ignored = ignored;
    c.call.captures = &capture;
    c.call.capture_count = 1;
    for (int pass = 0; pass < 2; pass++) {
        CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_OK, "%s: run",
              tiny_name(which));
        CHECK(pass == 0 || memcmp(first, c.hidden, sizeof first) == 0, "%s: the id matters",
              tiny_name(which));
        memcpy(first, c.hidden, sizeof first);
        c.source[1] = (c.source[1] + 7) % WORDS;
    }
    for (int i = 0; i < 4; i++)
        CHECK(c.weights[i * (S - 2) + 1] == 0.0f && c.weights[i * (S - 2)] > 0.0f, "row %d", i);
    mha_model_free(c.model);
}

static void ignored_tokens_do_not_matter(void)
{
    check_ignored(TINY_T5);
    check_ignored(TINY_BART);
    check_ignored(TINY_MARIAN);
}

static void ignored_tokens_need_a_source(void)
{
    static capture_case c;
    const uint8_t ignored[ROWS] = {0};
    const mha_state_config config = {.size = sizeof config, .sequences = B, .capacity = L};
    case_begin(&c, TINY_MARIAN);
    c.call.source_ignored = ignored;
    CHECK(mha_state_create(&c.call.state, c.model, &config) == MHA_OK, "state");
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_ERR_FLAG, "with a state");
    mha_state_free(c.call.state);
    mha_model_free(c.model);
    case_begin(&c, TINY_GPT2);
    c.call.source_ignored = ignored;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_ERR_FLAG, "no source");
    mha_model_free(c.model);
}

static void wrong_captures_are_refused(void)
{
    static capture_case c;
    case_begin(&c, TINY_GPT2);
    mha_capture captures[2] = {capture_of(&c, MHA_ATTENTION_DECODER, 1, L),
                               capture_of(&c, MHA_ATTENTION_DECODER, 1, L)};
    c.call.captures = captures;
    c.call.capture_count = 2;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_ERR_FLAG, "twice");
    c.call.capture_count = 1;
    captures[0].layer = 3;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_ERR_INDEX, "no such layer");
    captures[0].layer = 1;
    captures[0].kind = MHA_ATTENTION_CROSS;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_ERR_INDEX, "no such kind");
    captures[0].kind = MHA_ATTENTION_DECODER;
    const int64_t head = 4;
    captures[0].weights_heads = &head;
    captures[0].weights_head_count = 1;
    CHECK(mha_model_run(c.model, &c.call, NULL, 0, NULL) == MHA_ERR_INDEX, "no such head");
    CHECK(mha_model_work_size(c.model, &c.call, 1) == 0, "work size of a wrong call");
    mha_model_free(c.model);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(weights_come_from_q_and_k);
    RUN(statistics_are_of_the_weights);
    RUN(pruned_models_equal_gates);
    RUN(uniform_heads_have_equal_weights);
    RUN(ignored_tokens_do_not_matter);
    RUN(ignored_tokens_need_a_source);
    RUN(wrong_captures_are_refused);
    return test_end();
}
