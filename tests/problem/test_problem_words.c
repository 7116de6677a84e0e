/* SPDX-License-Identifier: MIT */
/* Problem words: what is read is what was meant, what is printed reads back the same, and what is
 * wrong is named. */
#include "support/test.h"

#include <string.h>

#include "problem/problem_spec.h"
#include "problem/problem_word.h"

static bool same_word(const problem_word *a, const problem_word *b)
{
    return a->b == b->b && a->h == b->h && a->g == b->g && a->l == b->l && a->s == b->s &&
           a->d == b->d && a->v == b->v && a->q_type == b->q_type && a->k_type == b->k_type &&
           a->v_type == b->v_type && a->o_type == b->o_type && a->causal == b->causal &&
           a->window == b->window && a->position == b->position && a->offset == b->offset &&
           a->window_left == b->window_left && a->window_right == b->window_right &&
           a->bool_percent == b->bool_percent && a->add_mask == b->add_mask && a->bias == b->bias &&
           a->alibi == b->alibi && a->sink == b->sink && a->softcap == b->softcap &&
           a->scale == b->scale && a->dropout == b->dropout && a->pad == b->pad &&
           a->pad_keys_only == b->pad_keys_only && a->documents == b->documents &&
           a->packed == b->packed && a->lse == b->lse && a->weights == b->weights &&
           a->average == b->average && a->weights_mode == b->weights_mode &&
           a->statistics == b->statistics && a->gradients == b->gradients &&
           a->layout == b->layout && a->threads == b->threads;
}

/* Reads a word that is right; the canonical spelling must be `canonical`. */
static problem_word read_word(const char *text, const char *canonical)
{
    problem_word word, again;
    char message[WORD_MESSAGE_MAX], printed[WORD_TEXT_MAX];
    if (!CHECK(word_parse(&word, text, message, sizeof message), "%s: %s", text, message))
        return word_default();
    CHECK(message[0] == '\0', "%s: a message: %s", text, message);
    const size_t length = word_print(&word, printed, sizeof printed);
    CHECK(length == strlen(printed), "%s: length %zu", text, length);
    CHECK(strcmp(printed, canonical) == 0, "%s: printed %s, not %s", text, printed, canonical);
    CHECK(word_parse(&again, printed, message, sizeof message), "%s: %s", printed, message);
    CHECK(same_word(&word, &again), "%s: %s reads as something else", text, printed);
    return word;
}

static void defaults(void)
{
    const problem_word w = read_word("l7d5", "b1h1l7d5");
    CHECK(w.b == 1 && w.h == 1 && w.g == 1 && w.l == 7 && w.s == 7 && w.d == 5 && w.v == 5, "l7d5");
    CHECK(w.q_type == MHA_F32 && w.o_type == MHA_F32 && w.bool_percent == -1, "l7d5");
    CHECK(!w.causal && !w.window && w.scale == 0.0f && w.threads == 0, "l7d5");
    const problem_word h = read_word("h12l1d2", "b1h12l1d2");
    CHECK(h.g == 12, "g is h unless said: %td", h.g);
}

static void extents_in_any_order(void)
{
    const problem_word w = read_word("v32d64s2048l512g4h16b2", "b2h16g4l512s2048d64v32");
    CHECK(w.b == 2 && w.h == 16 && w.g == 4 && w.l == 512 && w.s == 2048 && w.d == 64 && w.v == 32,
          "extents");
    read_word("b0h2l3d4", "b0h2l3d4");
    read_word("l0s5d4", "b1h1l0s5d4");
    read_word("g3h3l1d1v1s1", "b1h3l1d1");
}

static void types(void)
{
    const problem_word all = read_word("l1d1:bf16", "b1h1l1d1:bf16");
    CHECK(all.q_type == MHA_BF16 && all.o_type == MHA_BF16, "bf16");
    const problem_word mixed = read_word("l1d1:o=f32:f16", "b1h1l1d1:q=f16:k=f16:v=f16");
    CHECK(mixed.o_type == MHA_F32 && mixed.k_type == MHA_F16, "own type wins in any order");
    read_word("l1d1:f32", "b1h1l1d1");
    read_word("l1d1:f64", "b1h1l1d1:f64");
    read_word("l1d1:v=bf16:k=f16", "b1h1l1d1:k=f16:v=bf16");
}

static void positions(void)
{
    read_word("l4d1:causal", "b1h1l4d1:causal");
    read_word("l4s8d1:br:causal", "b1h1l4s8d1:causal:br");
    read_word("l4s8d1:tl:causal", "b1h1l4s8d1:causal:tl");
    const problem_word w = read_word("l4s8d1:causal:offset=-3", "b1h1l4s8d1:causal:offset=-3");
    CHECK(w.position == MHA_POSITION_OFFSET && w.offset == -3, "offset %td", w.offset);
    const problem_word left = read_word("l4d1:window=256", "b1h1l4d1:window=256");
    CHECK(left.window_left == 256 && left.window_right == 0, "window");
    const problem_word open = read_word("l4d1:window=-1,2", "b1h1l4d1:window=-1,2");
    CHECK(open.window && open.window_left == -1 && open.window_right == 2, "window");
    read_word("l4d1:window=3,0", "b1h1l4d1:window=3");
    read_word("l4d1:window=3,-1", "b1h1l4d1:window=3,-1");
}

static void masks_and_numbers(void)
{
    const problem_word both = read_word("l4d1:mask=add:mask=bool7", "b1h1l4d1:mask=bool7:mask=add");
    CHECK(both.add_mask && both.bool_percent == 7, "both masks");
    read_word("l4d1:mask=bool", "b1h1l4d1:mask=bool50");
    read_word("l4d1:sink:alibi:bias", "b1h1l4d1:bias:alibi:sink");
    const problem_word w = read_word("l4d1:scale=0.1:softcap=30", "b1h1l4d1:softcap=30:scale=0.1");
    CHECK(w.scale == 0.1f && w.softcap == 30.0f, "numbers");
    read_word("l4d1:scale=-0.333333343", "b1h1l4d1:scale=-0.33333334");
    read_word("l4d1:scale=1e-20", "b1h1l4d1:scale=1e-20");
    const problem_word dropout = read_word("l4d1:dropout=0.1:sink", "b1h1l4d1:sink:dropout=0.1");
    CHECK(dropout.dropout == 0.1f, "dropout");
    CHECK(word_options(&dropout).flags == MHA_TRAINING, "dropout is for training");
}

static void lengths_and_outputs(void)
{
    const problem_word pad = read_word("l4d1:pad2", "b1h1l4d1:pad");
    CHECK(pad.pad == 2 && !pad.pad_keys_only, "pad");
    const problem_word keys = read_word("l4d1:padk3", "b1h1l4d1:padk3");
    CHECK(keys.pad == 3 && keys.pad_keys_only, "padk");
    read_word("b3l4d1:packed:docs=2", "b3h1l4d1:docs=2:packed");
    const problem_word raw = read_word("l4d1:avg:weights=raw:lse", "b1h1l4d1:lse:weights=raw:avg");
    CHECK(raw.weights && raw.average && raw.weights_mode == MHA_WEIGHTS_RAW, "weights");
    read_word("l4d1:avg", "b1h1l4d1:weights:avg");
    read_word("l4d1:weights=softmax", "b1h1l4d1:weights");
    read_word("l4d1:weights=bias:layout=blhd:t=8", "b1h1l4d1:weights=bias:layout=blhd:t=8");
    read_word("l4d1:weights=softcap:layout=bhld", "b1h1l4d1:weights=softcap");
    const problem_word grad = read_word("l4d1:grad:causal:lse", "b1h1l4d1:causal:lse:grad");
    CHECK(grad.gradients && grad.lse && !grad.weights, "grad");
    const problem_word stats = read_word("l4d1:stats:avg", "b1h1l4d1:weights:avg:stats");
    CHECK(stats.statistics == STATISTICS_ROWS && !grad.statistics, "stats");
    read_word("l4d1:stats=rows", "b1h1l4d1:stats");
    read_word("l4d1:stats=columns", "b1h1l4d1:stats=columns");
    const problem_word top = read_word("l4d1:stats=top", "b1h1l4d1:stats=top");
    CHECK(top.statistics == (STATISTICS_ROWS | STATISTICS_TOP), "stats=top");
    read_word("l4d1:stats=all", "b1h1l4d1:stats=all");
}

/* The message names what is wrong, and what was probably meant. */
static void wrong_words_are_named(void)
{
    static const char *const cases[][2] = {
        {"", "a part is missing"},
        {"l4", "l (queries) and d"},
        {"d4", "l (queries) and d"},
        {"l4d4:", "a part is missing at column 6"},
        {"l4d4::causal", "a part is missing at column 6"},
        {"l4d4x2", "'x' is none of the extents"},
        {"l4d", "'d' needs a number"},
        {"l4l4d4", "'l' was given before"},
        {"l99999999999999999999d4", "'l' is at most"},
        {"b1s3000000000l4d4", "'s' is at most"},
        {"l4d4v1025", "'v': a head is at most"},
        {"l4d4:window=3:window=4", "window was given before"},
        {"l4d4:causal:causal", "causal was given before"},
        {"l4d4:mask=bool5:mask=bool6", "given before"},
        {"l4d2000", "at most 1024"},
        {"h3g2l4d4", "h3 is not a multiple of g2"},
        {"h3g0l4d4", "not a multiple"},
        {"l4d4v0", "'v' must be at least 1"},
        {"l4d4:dropout=1", "larger than 0 and at most 0.999"},
        {"l4d4:dropout=-0.1", "larger than 0 and at most 0.999"},
        {"l4d4:grad:weights", "grad returns no weights"},
        {"l4d4:grad:f64", "not for f64"},
        {"l4d4:stats:grad", "grad gathers no statistics"},
        {"l4d4:causla", "did you mean \"causal\"?"},
        {"l4d4:soft=3", "did you mean \"softcap\"?"},
        {"l4d4:wieghts", "did you mean \"weights\"?"},
        {"l4d4:xyzzy", "mha help words"},
        {"l4d4:causal=1", "takes no value"},
        {"l4d4:window", "needs a value"},
        {"l4d4:window=", "not a whole number"},
        {"l4d4:window=1,", "not a whole number"},
        {"l4d4:window=-2", "is not in"},
        {"l4d4:window=1,2,3", "not a whole number"},
        {"l4d4:mask=bool101", "is not in 0..100"},
        {"l4d4:mask=bol", "neither boolP"},
        {"l4d4:k=f23", "did you mean \"f32\"?"},
        {"l4d4:k=int8", "none of f32, f16, bf16, f64"},
        {"l4d4:k=f64", "f64 goes with f64 only"},
        {"l4d4:f16:bf16", "was given before"},
        {"l4d4:br:tl", "only one of"},
        {"l4s5d4:causal", "add br"},
        {"l4s5d4:window=1", "add br"},
        {"l4d4:alibi:padk", "add br"},
        {"l4d4:packed:pad", "no padding"},
        {"l4d4:pad1", "is not in"},
        {"l4d4:pad:padk", "given before"},
        {"l4d4:softcap=-1", "must be positive"},
        {"l4d4:softcap=nan", "finite"},
        {"l4d4:scale=inf", "finite"},
        {"l4d4:scale=1x", "not a number"},
        {"l4d4:t=0", "is not in 1..1024"},
        {"l4d4:layout=bhdl", "did you mean \"bhld\"?"},
        {"l4d4:weights=row", "did you mean \"raw\"?"},
        {"l4d4:offset=1.5", "not a whole number"},
        {"l4d4:docs=0", "is not in"},
        {"l4d4:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too long"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        problem_word word;
        char message[WORD_MESSAGE_MAX] = "";
        CHECK(!word_parse(&word, cases[n][0], message, sizeof message), "%s was read", cases[n][0]);
        CHECK(strstr(message, cases[n][1]) != NULL, "%s: \"%s\" does not say \"%s\"", cases[n][0],
              message, cases[n][1]);
    }
}

/* A message or text that does not fit is cut, terminated, and nothing is written past it. */
static void small_buffers(void)
{
    problem_word word = read_word("b2h16g4l512s2048d64", "b2h16g4l512s2048d64");
    for (size_t size = 0; size < 64; size++) {
        char text[65];
        memset(text, '#', sizeof text);
        const size_t length = word_print(&word, text, size);
        CHECK(length == strlen("b2h16g4l512s2048d64"), "length %zu", length);
        CHECK(size == 0 || strlen(text) < size, "size %zu: not terminated", size);
        CHECK(text[size] == '#', "size %zu: written past the end", size);
        memset(text, '#', sizeof text);
        word_parse(&word, "l4d4:causla", text, size);
        CHECK(size == 0 || strlen(text) < size, "size %zu: message not terminated", size);
        CHECK(text[size] == '#', "size %zu: message written past the end", size);
        word = read_word("b2h16g4l512s2048d64", "b2h16g4l512s2048d64");
    }
}

static void random_words_read_back(void)
{
    const uint64_t seed = test_seed(11);
    for (int64_t n = 0; n < test_effort(3000); n++) {
        const problem_spec spec = problem_spec_case(seed, (uint64_t)n);
        problem_word word = problem_spec_word(&spec), again;
        rng random = rng_for(seed, (uint64_t)n);
        char text[WORD_TEXT_MAX], message[WORD_MESSAGE_MAX];
        word.bool_percent = (int)rng_between(&random, -1, 100);
        word.documents = (int)rng_below(&random, 6);
        word.layout = rng_chance(&random, 50) ? WORD_BLHD : WORD_BHLD;
        word.threads = (int)rng_below(&random, 9);
        word.pad = word.packed ? 0 : 1 + (int)rng_below(&random, 4);
        word.pad = word.pad == 1 ? 0 : word.pad;
        word.pad_keys_only = word.pad > 0 && word.position != MHA_POSITION_UNSET;
        word_print(&word, text, sizeof text);
        CHECK(word_parse(&again, text, message, sizeof message), "%s", message);
        CHECK(same_word(&word, &again), "%s reads as something else", text);
    }
}

/* Every byte string is either a word or an error, never a crash; what is a word reads back. */
static void mutilated_words(void)
{
    static const char alphabet[] = "bhglsdv0123456789:=,-.causlwindomkfp";
    test_random random = {test_seed(12)};
    for (int64_t n = 0; n < test_effort(20000); n++) {
        char text[64] = "b2h4g2l8s9d4:causal:br:window=3,1:mask=bool50", message[WORD_MESSAGE_MAX];
        for (int64_t change = test_random_below(&random, 4); change >= 0; change--)
            text[test_random_below(&random, (int64_t)strlen(text))] =
                alphabet[test_random_below(&random, (int64_t)sizeof alphabet - 1)];
        problem_word word, again;
        if (!word_parse(&word, text, message, sizeof message)) {
            CHECK(message[0] != '\0', "%s: no message", text);
            continue;
        }
        char printed[WORD_TEXT_MAX];
        word_print(&word, printed, sizeof printed);
        CHECK(word_parse(&again, printed, message, sizeof message) && same_word(&word, &again),
              "%s: %s reads as something else", text, printed);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(defaults);
    RUN(extents_in_any_order);
    RUN(types);
    RUN(positions);
    RUN(masks_and_numbers);
    RUN(lengths_and_outputs);
    RUN(wrong_words_are_named);
    RUN(small_buffers);
    RUN(random_words_read_back);
    RUN(mutilated_words);
    return test_end();
}
