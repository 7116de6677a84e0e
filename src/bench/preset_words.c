/* SPDX-License-Identifier: MIT */
/* The words to measure for a preset such as bert-base. */
#include "bench/preset_words.h"

#include <stdio.h>

#include "base/suggest.h"

/* A layer wider than this is measured with fewer rows than its model was trained with: the 2048 of
 * GPT-3 would take half a minute per round. */
enum { WIDE = 4096, WIDE_ROWS = 512 };

static bench_case_word word_of(layer_word layer)
{
    return (bench_case_word){.is_layer = true, .layer = layer};
}

static layer_word linear(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    return (layer_word){.kind = WORD_LINEAR, .m = m, .n = n, .k = k};
}

static layer_word layer(const mha_preset_info *x, layer_word_kind kind)
{
    return (layer_word){.kind = kind,
                        .preset = x,
                        .e = x->E,
                        .h = x->H,
                        .g = x->H,
                        .d = x->D,
                        .v = x->D,
                        .b = 1,
                        .l = 1,
                        .s = 1};
}

static int unknown(const char *name, char *message, size_t size)
{
    const char *names[PRESETS_MAX];
    const int count = layer_word_presets(names, PRESETS_MAX);
    const char *near = suggest_nearest(name, names, count);
    if (near != NULL)
        snprintf(message, size, "no preset \"%s\"; did you mean \"%s\"?", name, near);
    else
        snprintf(message, size, "no preset \"%s\"; see \"mha help words\"", name);
    return 0;
}

int preset_words(const char *name, bench_case_word *words, char *message, size_t size)
{
    static const ptrdiff_t rows[] = {512, 2048, 1};
    const mha_preset_info *x = mha_preset(name);
    int count = 0;
    if (x == NULL)
        return unknown(name, message, size);
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        words[count++] = word_of(linear(rows[n], 3 * x->H * x->D, x->E));
        words[count++] = word_of(linear(rows[n], x->E, x->H * x->D));
    }
    layer_word whole = layer(x, WORD_LAYER), step = layer(x, WORD_DECODE);
    whole.l = x->E > WIDE ? WIDE_ROWS : x->tokens;
    whole.causal = x->causal != 0;
    words[count++] = word_of(whole);
    step.s = x->tokens;
    if (x->causal)
        words[count++] = word_of(step);
    return count;
}
