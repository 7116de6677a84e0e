/* SPDX-License-Identifier: MIT */
/* Layer words: what is read is what was meant, what is printed reads back the same, what is wrong
 * is named, and the work that is counted is the work there is. */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "bench/preset_words.h"
#include "problem/explain_layer.h"
#include "problem/layer_word.h"

static bool same_word(const layer_word *a, const layer_word *b)
{
    return a->kind == b->kind && a->preset == b->preset && a->m == b->m && a->n == b->n &&
           a->k == b->k && a->e == b->e && a->h == b->h && a->g == b->g && a->d == b->d &&
           a->v == b->v && a->b == b->b && a->l == b->l && a->s == b->s && a->stored == b->stored &&
           a->cache == b->cache && a->causal == b->causal && a->gemv == b->gemv &&
           a->no_cache == b->no_cache && a->text == b->text && a->threads == b->threads;
}

/* Reads a word that is right; the canonical spelling must be `canonical`. */
static layer_word read_word(const char *text, const char *canonical)
{
    layer_word word = {0}, again;
    char message[WORD_MESSAGE_MAX], printed[WORD_TEXT_MAX];
    CHECK(layer_word_meant(text), "%s is not taken for a layer word", text);
    if (!CHECK(layer_word_parse(&word, text, message, sizeof message), "%s: %s", text, message))
        return word;
    CHECK(message[0] == '\0', "%s: a message: %s", text, message);
    const size_t length = layer_word_print(&word, printed, sizeof printed);
    CHECK(length == strlen(printed), "%s: length %zu", text, length);
    CHECK(strcmp(printed, canonical) == 0, "%s: printed %s, not %s", text, printed, canonical);
    CHECK(layer_word_parse(&again, printed, message, sizeof message), "%s: %s", printed, message);
    CHECK(same_word(&word, &again), "%s: %s reads as something else", text, printed);
    return word;
}

static void linears(void)
{
    const layer_word w = read_word("linear:k768m512n2304:bf16", "linear:m512n2304k768:bf16");
    CHECK(w.kind == WORD_LINEAR && w.m == 512 && w.n == 2304 && w.k == 768, "extents");
    CHECK(w.stored == MHA_BF16 && w.threads == 0, "type");
    read_word("linear:m1n2k3:f32", "linear:m1n2k3");
    read_word("linear:m1n2k3:t=2:i8", "linear:m1n2k3:i8:t=2");
    const layer_word native = read_word("linear:m1n2k3:native:bf16", "linear:m1n2k3:bf16:native");
    CHECK(layer_word_arithmetic(&native) == MHA_NATIVE, "native");
    CHECK(layer_word_arithmetic(&w) == MHA_EXACT, "exact");
    const layer_word o = read_word("openblas:m1n2k3:t=2:gemv", "openblas:m1n2k3:gemv:t=2");
    CHECK(o.kind == WORD_OPENBLAS && o.gemv && o.threads == 2, "openblas");
}

static void layers(void)
{
    const layer_word w =
        read_word("layer:gpt2-large:l1024:causal", "layer:gpt2-large:l1024:causal");
    CHECK(w.kind == WORD_LAYER && w.preset == mha_preset("gpt2-large") && w.causal, "gpt2-large");
    CHECK(w.e == 1280 && w.h == 20 && w.g == 20 && w.d == 64 && w.v == 64, "its widths");
    CHECK(w.b == 1 && w.l == 1024 && w.stored == MHA_F32, "its rows");
    read_word("layer:bert-base:l128b8:f16", "layer:bert-base:b8l128:f16");
    read_word("layer:gpt3:l512:bf16", "layer:gpt3:l512:bf16");
    const layer_word own = read_word("layer:l7e512h8", "layer:e512h8l7");
    CHECK(own.preset == NULL && own.g == 8 && own.d == 64 && own.v == 64, "own widths");
    read_word("layer:e512h8d64g8l7", "layer:e512h8l7");
    read_word("layer:e100h8g2d24v40b3l7:i8", "layer:e100h8g2d24v40b3l7:i8");
}

static void caches(void)
{
    const layer_word w =
        read_word("decode:gpt2-small:s1024:cache=i8:bf16", "decode:gpt2-small:s1024:bf16:cache=i8");
    CHECK(w.kind == WORD_DECODE && w.s == 1024 && w.l == 1, "a step");
    CHECK(w.stored == MHA_BF16 && w.cache == MHA_I8, "its types");
    read_word("decode:e64h2b2l3s9", "decode:e64h2b2l3s9");
    read_word("decode:bert-base:s9l1:cache=f32", "decode:bert-base:s9");
    const layer_word c = read_word("cache:gpt2-small:s8192:i8", "cache:gpt2-small:s8192:i8");
    CHECK(c.kind == WORD_CACHE && c.cache == MHA_I8 && c.stored == MHA_F32, "a cache");
    read_word("cache:s9d128g8h32", "cache:h32g8d128s9");
}

static void models(void)
{
    const layer_word w = read_word("train:b128:t=2", "train:b128:t=2");
    CHECK(w.kind == WORD_TRAIN && w.b == 128 && !w.text && w.threads == 2, "the laboratory");
    const layer_word text = read_word("train:b430:t=1:text", "train:b430:text:t=1");
    CHECK(text.kind == WORD_TRAIN && text.b == 430 && text.text, "files");
    CHECK(layer_word_is_model(&w) && layer_word_is_model(&text), "models");
    const layer_word translate = read_word("translate:b64:nocache", "translate:b64:nocache");
    CHECK(translate.kind == WORD_TRANSLATE && translate.no_cache, "translation");
}

static void problem_words_are_none(void)
{
    static const char *const words[] = {"b1h12l1024d64", "l4d4:causal", "", ":", "l4"};
    for (size_t n = 0; n < sizeof words / sizeof words[0]; n++)
        CHECK(!layer_word_meant(words[n]), "%s is taken for a layer word", words[n]);
}

/* The message names what is wrong, and what was probably meant. */
static void wrong_words_are_named(void)
{
    static const char *const cases[][2] = {
        {"liner:m1n1k1", "did you mean \"linear\"?"},
        {"xyzzy:m1n1k1", "mha help words"},
        {"linear", "extents are missing"},
        {"linear:", "a part is missing at column 8"},
        {"linear::f32", "a part is missing at column 8"},
        {"linear:m4n4", "the extent k must be given"},
        {"linear:m4n4k0", "'k' must be at least 1"},
        {"linear:m4n4k4l4", "none of the extents m n k"},
        {"linear:m4m4n4k4", "'m' was given before"},
        {"linear:m4n4k", "'k' needs a number"},
        {"linear:bert-base", "none of the extents"},
        {"linear:m4n4k4:f16:bf16", "a type was given before"},
        {"linear:m4n4k4:f16:f16", "a type was given before"},
        {"linear:m4n4k4:f64", "did you mean"},
        {"linear:m4n4k4:causal", "does not go with linear"},
        {"linear:m4n4k4:gemv", "does not go with linear"},
        {"linear:m4n4k4:t", "needs a value"},
        {"linear:m4n4k4:t=0", "is not in 1..1024"},
        {"linear:m4n4k4:t=1:t=1", "t was given before"},
        {"linear:m4n4k4:i8=1", "takes no value"},
        {"cache:gpt2-small:s8:native", "does not go with cache"},
        {"layer:bert-base:l4:native:native", "native was given before"},
        {"openblas:m4n4k4:gemv", "has m1"},
        {"openblas:m4n4k4:bf16", "does not go with openblas"},
        {"translate:b4:text", "does not go with translate"},
        {"train:b4:nocache", "does not go with train"},
        {"layer:bert:l4", "did you mean \"bert-base\"?"},
        {"layer:gpt2:l4", "did you mean \"gpt2-small\"?"},
        {"layer:xyzzy:l4", "unknown preset"},
        {"layer:bert-base", "as in layer:bert-base:l512"},
        {"decode:gpt3", "as in decode:gpt3:s1024"},
        {"layer:bert-base:b4", "the extent l must be given"},
        {"layer:bert-base:e4l4", "none of the extents b l"},
        {"layer:bert-base:l4s4", "none of the extents b l"},
        {"layer:e12l4", "the extent h must be given"},
        {"layer:e10h3l4", "not a multiple of h3"},
        {"layer:e10h0l4", "not a multiple of h0"},
        {"layer:e12h4g3l4", "h4 is not a multiple of g3"},
        {"layer:e12h4g0l4", "'g' must be at least 1"},
        {"layer:e4096h2l4", "'d': a head is at most 1024"},
        {"layer:e12h3l4v2000", "'v': a head is at most 1024"},
        {"layer:bert-base:l4:cache=i8", "does not go with layer"},
        {"decode:bert-base:l4", "the extent s must be given"},
        {"decode:bert-base:l4s3", "l4 new tokens are more"},
        {"decode:bert-base:s3:cahce=i8", "did you mean \"cache\"?"},
        {"decode:bert-base:s3:cache=i9", "none of f32, f16, bf16, i8; did you mean \"i8\"?"},
        {"decode:bert-base:s3:cache", "needs a value"},
        {"cache:h4s3", "the extent d must be given"},
        {"cache:e4h4d1s3", "none of the extents"},
        {"cache:bert-base:s99999999999", "'s' is at most"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        layer_word word;
        char message[WORD_MESSAGE_MAX] = "";
        CHECK(!layer_word_parse(&word, cases[n][0], message, sizeof message), "%s was read",
              cases[n][0]);
        CHECK(strstr(message, cases[n][1]) != NULL, "%s: \"%s\" does not say \"%s\"", cases[n][0],
              message, cases[n][1]);
    }
}

static void work_is_counted(void)
{
    const layer_word linear = read_word("linear:m5n7k3:i8", "linear:m5n7k3:i8");
    CHECK(layer_word_flops(&linear) == 2.0 * 5 * 7 * 3, "flops of a linear");
    CHECK(layer_word_weight_bytes(&linear) == 7 * 3 + 7 * 4, "its bytes");
    const layer_word layer = read_word("layer:e10h4g2d3v5b2l6:f16", "layer:e10h4g2d3v5b2l6:f16");
    const double weights = 10 * (4 * 3 + 2 * 3 + 2 * 5) + 4 * 5 * 10;
    CHECK(layer_word_weights(&layer) == weights, "weights of a layer");
    CHECK(layer_word_weight_bytes(&layer) == 2 * weights, "their bytes");
    CHECK(layer_word_cache_bytes(&layer) == 0.0, "no cache");
    CHECK(layer_word_flops(&layer) == 2.0 * 12 * weights + 2.0 * 8 * 2 * 4 * 36, "its flops");
    layer_word causal = layer;
    causal.causal = true;
    CHECK(layer_word_flops(&causal) == 2.0 * 12 * weights + 2.0 * 8 * 2 * 4 * 21, "causal");
    const layer_word step = read_word("cache:h4g2d3v5l2s9:i8", "cache:h4g2d3v5l2s9:i8");
    CHECK(layer_word_flops(&step) == 2.0 * 8 * 4 * (8 + 9), "a cache's flops");
    CHECK(layer_word_cache_bytes(&step) == 9 * 2 * (8 + 8), "its bytes");
    CHECK(layer_word_weight_bytes(&step) == 0.0 && layer_word_weights(&step) == 0.0, "no weights");
    CHECK(layer_word_rows(&linear) == 5 && layer_word_rows(&layer) == 12, "rows");
}

/* Every word of every preset prints and reads back as itself. */
static void words_of_presets(void)
{
    const char *names[PRESETS_MAX];
    const int presets = layer_word_presets(names, PRESETS_MAX);
    CHECK(presets >= 6, "%d presets", presets);
    for (int p = 0; p < presets; p++) {
        bench_case_word words[PRESET_WORDS_MAX];
        char message[WORD_MESSAGE_MAX] = "", text[WORD_TEXT_MAX], again[WORD_TEXT_MAX];
        const int count = preset_words(names[p], words, message, sizeof message);
        CHECK(count >= 7 && count <= PRESET_WORDS_MAX, "%s: %d words", names[p], count);
        for (int n = 0; n < count; n++) {
            layer_word word;
            layer_word_print(&words[n].layer, text, sizeof text);
            CHECK(layer_word_parse(&word, text, message, sizeof message), "%s", message);
            layer_word_print(&word, again, sizeof again);
            CHECK(strcmp(text, again) == 0, "%s reads back as %s", text, again);
            CHECK(layer_word_flops(&word) == layer_word_flops(&words[n].layer), "%s", text);
        }
    }
    bench_case_word words[PRESET_WORDS_MAX];
    char message[WORD_MESSAGE_MAX] = "";
    CHECK(preset_words("gpt-3", words, message, sizeof message) == 0, "gpt-3 is a preset");
    CHECK(strstr(message, "did you mean \"gpt3\"?") != NULL, "%s", message);
}

static void explanations(void)
{
    const layer_word w =
        read_word("decode:gpt2-small:s1024:cache=i8", "decode:gpt2-small:s1024:cache=i8");
    char text[2048];
    const size_t length = explain_layer(&w, text, sizeof text);
    CHECK(length == strlen(text), "length %zu", length);
    CHECK(strstr(text, "GPT-2 Small") != NULL, "%s", text);
    CHECK(strstr(text, "1 row, 768 inputs, 2304 outputs") != NULL, "%s", text);
    CHECK(strstr(text, "b1h12l1s1024d64") != NULL, "%s", text);
    CHECK(strstr(text, "as i8: 1.671 MB") != NULL, "%s", text);
}

/* Every byte string is either a word or an error, never a crash; what is a word reads back. */
static void mutilated_words(void)
{
    static const char alphabet[] = "mnkehgdvbls0123456789:=-.decocahit";
    static const char *const seeds[] = {"decode:gpt2-small:b2l3s9:bf16:cache=i8:t=2",
                                        "layer:e64h4g2d16v8b2l9:causal:f16",
                                        "linear:m512n2304k768:i8:t=3", "openblas:m1n2k3:gemv"};
    test_random random = {test_seed(13)};
    for (int64_t n = 0; n < test_effort(20000); n++) {
        char text[64], message[WORD_MESSAGE_MAX], printed[WORD_TEXT_MAX];
        snprintf(text, sizeof text, "%s", seeds[n % 4]);
        for (int64_t change = test_random_below(&random, 3); change >= 0; change--)
            text[test_random_below(&random, (int64_t)strlen(text))] =
                alphabet[test_random_below(&random, (int64_t)sizeof alphabet - 1)];
        layer_word word, again;
        if (!layer_word_parse(&word, text, message, sizeof message)) {
            CHECK(message[0] != '\0', "%s: no message", text);
            continue;
        }
        layer_word_print(&word, printed, sizeof printed);
        CHECK(layer_word_parse(&again, printed, message, sizeof message) &&
                  same_word(&word, &again),
              "%s: %s reads as something else", text, printed);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(linears);
    RUN(layers);
    RUN(caches);
    RUN(models);
    RUN(problem_words_are_none);
    RUN(wrong_words_are_named);
    RUN(work_is_counted);
    RUN(words_of_presets);
    RUN(explanations);
    RUN(mutilated_words);
    return test_end();
}
