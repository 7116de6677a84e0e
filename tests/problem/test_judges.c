/* SPDX-License-Identifier: MIT */
/* The parts of the program that judge others: conversions, the error measure, which query attends
 * to which key, the random cases; and that a planted mistake is found. */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/text.h"
#include "bench/measure.h"
#include "format/convert.h"
#include "format/json_writer.h"
#include "problem/problem_check.h"
#include "problem/problem_cost.h"
#include "problem/problem_masks.h"
#include "problem/problem_slices.h"

/* ----------------------------------------------------------- conversions ----- */

static void f16_reads_back(void)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const float x = convert_f16_to_f32((uint16_t)bits);
        const uint16_t back = convert_f32_to_f16(x);
        if (isnan(x))
            CHECK(isnan(convert_f16_to_f32(back)), "%04x: NaN became %04x", bits, back);
        else
            CHECK(back == bits, "%04x became %04x", bits, back);
    }
}

static void bf16_reads_back(void)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const float x = convert_bf16_to_f32((uint16_t)bits);
        const uint16_t back = convert_f32_to_bf16(x);
        if (isnan(x))
            CHECK(isnan(convert_bf16_to_f32(back)), "%04x: NaN became %04x", bits, back);
        else
            CHECK(back == bits, "%04x became %04x", bits, back);
    }
}

/* Halfway between two neighbours the even one wins; a hair off it, the nearer one. */
static void f16_rounds_to_nearest_even(void)
{
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        const float low = convert_f16_to_f32((uint16_t)bits);
        const float high = convert_f16_to_f32((uint16_t)(bits + 1));
        const float half = low + (high - low) / 2;
        const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
        CHECK(convert_f32_to_f16(half) == even, "%04x: halfway", bits);
        CHECK(convert_f32_to_f16(-half) == (even | 0x8000), "%04x: halfway below 0", bits);
        CHECK(convert_f32_to_f16(nextafterf(half, 0)) == bits, "%04x: below", bits);
        CHECK(convert_f32_to_f16(nextafterf(half, high)) == bits + 1, "%04x: above", bits);
    }
    CHECK(convert_f32_to_f16(65519.996f) == 0x7bff, "largest");
    CHECK(convert_f32_to_f16(65520.0f) == 0x7c00, "halfway to infinity");
    CHECK(convert_f32_to_f16(1e-30f) == 0, "tiny");
}

static void bf16_rounds_to_nearest_even(void)
{
    for (uint32_t bits = 0; bits < 0x7f7f; bits++) {
        const float low = convert_bf16_to_f32((uint16_t)bits);
        const float high = convert_bf16_to_f32((uint16_t)(bits + 1));
        const float half = low + (high - low) / 2;
        const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
        CHECK(convert_f32_to_bf16(half) == even, "%04x: halfway", bits);
        CHECK(convert_f32_to_bf16(nextafterf(half, high)) == bits + 1, "%04x: above", bits);
    }
}

/* --------------------------------------------------------------- measure ----- */

static void quantiles(void)
{
    double values[] = {5.0, 1.0, 3.0, 2.0, 4.0};
    CHECK(measure_quantile(values, 5, 0.5) == 3.0, "median");
    CHECK(measure_quantile(values, 5, 0.75) == 4.0, "upper quartile");
    CHECK(measure_quantile(values, 5, 1.0) == 5.0, "best");
    CHECK(fabs(measure_quantile(values, 4, 0.5) - 2.5) < 1e-12, "median of four");
    CHECK(measure_quantile(values, 1, 0.75) == 1.0, "of one");
}

/* ------------------------------------------------------ problems and work ----- */

static bool make(problem *p, const char *text)
{
    problem_word word = word_default();
    char message[WORD_MESSAGE_MAX] = "";
    memset(p, 0, sizeof *p);
    return CHECK(word_parse(&word, text, message, sizeof message) &&
                     problem_create(p, &word, 0, message, sizeof message),
                 "%s: %s", text, message);
}

static void expect_work(const char *text, double pairs, double bytes)
{
    problem p;
    if (!make(&p, text))
        return;
    const double flops = 2.0 * (double)(p.call.shape.D + p.call.shape.Dv) * pairs;
    CHECK(call_pairs(&p.call) == pairs, "%s: %g pairs", text, call_pairs(&p.call));
    CHECK(call_flops(&p.call) == flops, "%s: %g flops", text, call_flops(&p.call));
    CHECK(call_bytes(&p.call) == bytes, "%s: %g bytes", text, call_bytes(&p.call));
    problem_free(&p);
}

/* Half the keys at random: every group of 16 holds some, so all of them count as work. */
static void expect_scattered_work(void)
{
    problem p;
    if (!make(&p, "l64s64d4:mask=bool50"))
        return;
    CHECK(call_pairs(&p.call) < 0.6 * 64 * 64, "%g pairs", call_pairs(&p.call));
    CHECK(call_flops(&p.call) == 2.0 * 8 * 64 * 64, "%g flops", call_flops(&p.call));
    problem_free(&p);
}

static void needed_work_is_counted(void)
{
    expect_work("b2h3l5s7d4", 2 * 3 * 35, 2 * 3 * 4 * (2 * 7 * 4 + 2 * 5 * 4));
    expect_work("h2l6d4:causal", 2 * 21, 2 * 4 * 4 * 6 * 4);
    expect_work("l4s8d4:causal:tl", 10, 4 * (2 * 4 * 4 + 2 * 4 * 4));
    expect_work("l4s8d4:causal:br", 5 + 6 + 7 + 8, 4 * (2 * 8 * 4 + 2 * 4 * 4));
    expect_work("l4s8d4:causal:offset=-2", 3, 4 * (2 * 2 * 4 + 2 * 4 * 4));
    expect_work("l6d4:window=1,2", 3 + 4 + 4 + 4 + 3 + 2, 4 * 4 * 6 * 4);
    expect_work("l8d4:pad", 16, 4 * 4 * 4 * 4);
    expect_work("l8d4:padk", 32, 4 * (2 * 4 * 4 + 2 * 8 * 4));
    expect_work("l32d4:docs=2", 512, 4 * 4 * 32 * 4);
    expect_work("b2l4d4:packed", 4 + 16, 4 * 4 * 6 * 4);
    expect_work("l8d4:mask=bool0", 0, 4 * 2 * 8 * 4);
    expect_work("l8d4:mask=bool100", 64, 4 * 4 * 8 * 4);
    expect_scattered_work();
    expect_work("h4g1l1s10d8v2:f16", 40, 2 * (10 * (8 + 2) + 4 * (8 + 2)));
}

/* The shortcut that counts ranges agrees with asking for every pair. */
static void pairs_agree_with_the_predicate(void)
{
    const uint64_t seed = test_seed(21);
    for (int64_t n = 0; n < test_effort(60); n++) {
        const problem_spec spec = problem_spec_case(seed, (uint64_t)n);
        problem p;
        char message[WORD_MESSAGE_MAX];
        if (!CHECK(problem_build(&p, &spec, message, sizeof message), "%s", message))
            return;
        const problem_word word = p.word;
        double pairs = 0.0;
        for (ptrdiff_t b = 0; b < word.b; b++)
            for (ptrdiff_t h = 0; h < word.h; h++)
                for (ptrdiff_t i = 0; i < word.l; i++)
                    for (ptrdiff_t j = 0; j < word.s; j++)
                        pairs += call_attends(&p.call, b, h, i, j);
        CHECK(pairs == call_pairs(&p.call), "case %d: %g and %g pairs", (int)n, pairs,
              call_pairs(&p.call));
        problem_free(&p);
    }
}

/* The same seed and index give the same problem, to the byte. */
static void random_cases_repeat(void)
{
    const uint64_t seed = test_seed(22);
    for (int64_t n = 0; n < test_effort(40); n++) {
        problem p[2];
        char message[WORD_MESSAGE_MAX];
        for (int k = 0; k < 2; k++) {
            const problem_spec spec = problem_spec_case(seed, (uint64_t)n);
            if (!CHECK(problem_build(&p[k], &spec, message, sizeof message), "%s", message))
                return;
        }
        for (int id = 0; id < TENSOR_COUNT; id++) {
            const tensor *const a = &p[0].tensors[id], *const b = &p[1].tensors[id];
            CHECK(a->bytes == b->bytes &&
                      (!a->memory || memcmp(a->memory, b->memory, a->bytes) == 0),
                  "case %d: other bytes in tensor %d", (int)n, id);
        }
        problem_free(&p[0]);
        problem_free(&p[1]);
    }
}

/* An executor that runs every task, then flips a bit of one byte in one of the runs. */
typedef struct saboteur {
    int runs, spoiled; /* number of runs so far, and the one that is spoiled */
    unsigned char *byte;
} saboteur;

static void spoiling_run(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    saboteur *const s = context;
    for (int n = 0; n < tasks; n++)
        task(arg, n);
    if (s->runs++ == s->spoiled && s->byte != NULL)
        *s->byte ^= 0x40;
}

/* Memory that reports where the output of the f64 twin is: no other block has its size. */
enum { TWIN_OUTPUT_BYTES = 2 * 16 * 5 * 8 };
static saboteur planted;
static bool twin_is_spoiled;

static void *reporting_take(size_t bytes, void **handle)
{
    *handle = malloc(bytes + 1);
    if (twin_is_spoiled && bytes == TWIN_OUTPUT_BYTES)
        planted.byte = (unsigned char *)*handle + 6;
    return *handle;
}

enum { IN_NONE, IN_RESULT, PAST_LENGTH, IN_TWIN };

static void expect_mistake(int place, int run, const char *what)
{
    static const problem_memory reporting = {reporting_take, free};
    const problem_spec spec = {.shape = {.B = 1, .H = 2, .G = 2, .L = 16, .S = 9, .D = 8, .Dv = 5},
                               .features = FEATURE_LSE | FEATURE_Q_LENGTHS,
                               .seed = 1,
                               .memory = &reporting};
    const mha_executor executor = {sizeof executor, &planted, 2, spoiling_run};
    char message[WORD_MESSAGE_MAX];
    check_result result;
    mha_pool *pool;
    problem p;
    planted = (saboteur){.spoiled = run};
    twin_is_spoiled = place == IN_TWIN;
    if (!CHECK(problem_build(&p, &spec, message, sizeof message), "%s", message))
        return;
    const tensor *const o = &p.tensors[TENSOR_O];
    const ptrdiff_t queries = call_queries(&p.call, 0);
    CHECK(queries > 7 && queries <= 15, "%td queries", queries);
    if (place == IN_RESULT)
        planted.byte = (unsigned char *)tensor_at(o, 0, 1, 7, 2) + 2;
    if (place == PAST_LENGTH)
        planted.byte = tensor_at(o, 0, 1, 15, 0);
    if (CHECK(mha_pool_create_from(&pool, &executor) == MHA_OK, "no pool")) {
        check_problem(&p, pool, &result);
        CHECK(result.failed == (place != IN_NONE), "place %d, run %d: %s", place, run, result.what);
        CHECK(strncmp(result.what, what, strlen(what)) == 0, "place %d, run %d: %s", place, run,
              result.what);
        mha_pool_free(pool);
    }
    problem_free(&p);
}

/* The pool is used for the run of the f64 twin, when the results are in memory already; for the
 * planned run; and for the run without extra outputs. */
static void planted_mistakes_are_found(void)
{
    expect_mistake(IN_NONE, 0, "");
    expect_mistake(IN_RESULT, 0, "result: 1 wrong");
    expect_mistake(PAST_LENGTH, 0, "result output: 1 bytes outside");
    expect_mistake(IN_TWIN, 0, "f64: ");
    expect_mistake(IN_RESULT, 1, "other bits with a plan");
    expect_mistake(IN_RESULT, 2, "other bits without log-sum-exp");
}

/* The last digits of scale and soft cap are those of f64 calls alone: a twin must not have them. */
static void twins_are_the_same_problem(void)
{
    static const mha_dtype types[] = {MHA_F32, MHA_BF16, MHA_F64};
    for (int n = 0; n < 3; n++) {
        const mha_dtype type = types[n];
        const problem_spec spec = {.shape = {1, 2, 2, 16, 9, 8, 5, type, type, type, type},
                                   .features = FEATURE_LSE | FEATURE_SCALE | FEATURE_SOFTCAP,
                                   .seed = 1};
        char message[WORD_MESSAGE_MAX];
        check_result result;
        problem p;
        if (!CHECK(problem_build(&p, &spec, message, sizeof message), "%s", message))
            return;
        CHECK(p.call.options.scale64 != (double)p.call.options.scale, "no last digits");
        check_problem(&p, NULL, &result);
        CHECK(!result.failed, "type %d: %s", (int)type, result.what);
        problem_free(&p);
    }
}

/* A refused call is a failure too, and says why. */
static void refused_calls_are_found(void)
{
    problem p;
    check_result result;
    if (!make(&p, "h2l16d8"))
        return;
    p.call.options.softcap = -1.0f;
    check_problem(&p, NULL, &result);
    CHECK(result.failed && result.what[0] != '\0', "not found");
    problem_free(&p);
}

/* ------------------------------------------------------------------ text ----- */

static void suggestions(void)
{
    static const char *const names[] = {"verify", "bench", "explain", "version"};
    const char *near = suggest_nearest("verfiy", names, 4);
    CHECK(near != NULL && strcmp(near, "verify") == 0, "verfiy");
    near = suggest_nearest("expl", names, 4);
    CHECK(near != NULL && strcmp(near, "explain") == 0, "expl");
    CHECK(suggest_nearest("", names, 4) == NULL, "nothing");
    CHECK(suggest_nearest("zzzzzz", names, 4) == NULL, "zzzzzz");
    CHECK(suggest_nearest("an-argument-of-more-than-thirty-one-letters", names, 4) == NULL, "long");
}

static void sentences_are_split(void)
{
    text_word words[4];
    CHECK(text_split("  one\ttwo\nthree ", words, 4, 10) == 3, "count");
    CHECK(strcmp(words[2].bytes, "three") == 0 && words[2].columns == 5, "three");
    CHECK(text_split("a b c d e f", words, 4, 10) == 6, "more than fit");
    CHECK(text_split("", words, 4, 10) == 0 && text_split(" \n", words, 4, 10) == 0, "empty");
    text_split("abcdefghij abcdefghijk", words, 4, 10);
    CHECK(strcmp(words[0].bytes, "abcdefghij") == 0, "just fits: %s", words[0].bytes);
    CHECK(strcmp(words[1].bytes, "abcdefghi~") == 0, "is cut: %s", words[1].bytes);
    text_split("\xe6\x9d\xb1\xe4\xba\xac e\xcc\x81 \x1b[31m \xff\xc3", words, 4, 10);
    CHECK(words[0].columns == 4 && words[0].letters == 2, "wide letters");
    CHECK(words[1].columns == 1 && words[1].letters == 1, "a letter with a mark");
    CHECK(strcmp(words[2].bytes, "\ufffd[31m") == 0, "control: %s", words[2].bytes);
    CHECK(strcmp(words[3].bytes, "\ufffd\ufffd") == 0, "bad bytes: %s", words[3].bytes);
    char many[101];
    memset(many, '\xff', 100);
    many[100] = '\0';
    text_split(many, words, 4, 60);
    const size_t length = strlen(words[0].bytes);
    CHECK(length < TEXT_WORD_BYTES && words[0].bytes[length - 1] == '~' && length % 3 == 1,
          "%zu bytes of no text: %s", length, words[0].bytes);
}

/* Bytes that are no UTF-8, and control characters of one byte or two. */
static void json_is_valid_for_any_text(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!CHECK(file != NULL, "no memory stream"))
        return;
    json j = json_begin(file);
    json_open_array(&j, NULL);
    json_string(&j, NULL, "a\xff\xc3 \xed\xa0\x80 \xc3\xa9 \xf0\x9f\x98\x80\x7f\xc2\x9b\x1b");
    json_close(&j);
    fclose(file);
    CHECK(strcmp(text,
                 "[\n  \"a\ufffd\ufffd \ufffd\ufffd\ufffd \u00e9 \U0001f600\\u007f\\u009b\\u001b\""
                 "\n]\n") == 0,
          "%s", text);
    free(text);
}

static void json_is_escaped(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!CHECK(file != NULL, "no memory stream"))
        return;
    json j = json_begin(file);
    json_open_object(&j, NULL);
    json_string(&j, "a\"b", "line\nend\\\x01");
    json_open_array(&j, "list");
    json_number(&j, NULL, 0.5);
    json_number(&j, NULL, (double)NAN);
    json_close(&j);
    json_bool(&j, "yes", true);
    json_close(&j);
    fclose(file);
    CHECK(strcmp(text, "{\n  \"a\\\"b\": \"line\\nend\\\\\\u0001\",\n  \"list\": [\n    0.5,\n"
                       "    null\n  ],\n  \"yes\": true\n}\n") == 0,
          "%s", text);
    free(text);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(f16_reads_back);
    RUN(bf16_reads_back);
    RUN(f16_rounds_to_nearest_even);
    RUN(bf16_rounds_to_nearest_even);
    RUN(quantiles);
    RUN(needed_work_is_counted);
    RUN(pairs_agree_with_the_predicate);
    RUN(random_cases_repeat);
    RUN(planted_mistakes_are_found);
    RUN(twins_are_the_same_problem);
    RUN(refused_calls_are_found);
    RUN(suggestions);
    RUN(sentences_are_split);
    RUN(json_is_valid_for_any_text);
    RUN(json_is_escaped);
    return test_end();
}
