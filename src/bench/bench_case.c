/* SPDX-License-Identifier: MIT */
#include "bench/bench_case.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rng.h"

/* With so few rows weights are read faster than memory gives them: bound by memory. A fixed number:
 * which peak a word is held against must not change from run to run. */
enum { FEW_ROWS = 8 };

bool bench_case_word_parse(bench_case_word *word, const char *text, char *message, size_t size)
{
    word->is_layer = layer_word_meant(text);
    if (word->is_layer)
        return layer_word_parse(&word->layer, text, message, size);
    return word_parse(&word->problem, text, message, size);
}

/* ---------------------------------------------------------------- memory ----- */

int bench_case_copies(double bytes)
{
    const double copies = ceil((double)BENCH_CASE_BYTES / bytes);
    return copies < 65536.0 ? (int)copies : 65536;
}

void *bench_case_memory(size_t size)
{
    const size_t large = (size_t)2 << 20, align = size > large ? large : 64;
    const size_t rounded = (size / align + 1) * align;
    void *memory = rounded > size ? aligned_alloc(align, rounded) : NULL;
    if (memory == NULL)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == large)
        madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memset(memory, 0, rounded);
}

/* Numbers repeat after a prime length, which no row has: the speed cannot tell. */
float *bench_case_numbers(double count, float scale)
{
    enum { PERIOD = 65521 };
    if (count > 0x1p40)
        return NULL;
    const size_t all = (size_t)count;
    float *numbers = bench_case_memory(all * sizeof *numbers);
    if (numbers == NULL)
        return NULL;
    rng random = rng_for(1, all);
    for (size_t n = 0; n < all && n < PERIOD; n++)
        numbers[n] = scale * (float)rng_normal(&random);
    for (size_t n = PERIOD; n < all; n += PERIOD)
        memcpy(numbers + n, numbers, (all - n < PERIOD ? all - n : PERIOD) * sizeof *numbers);
    return numbers;
}

/* -------------------------------------------------------------- creation ----- */

static bool create_layer(bench_case *s, const layer_word *w, char *message, size_t size)
{
    layer_word_print(w, s->word, sizeof s->word);
    snprintf(message, size, "%s does not fit in memory", s->word);
    s->copies = 1;
    if (layer_word_is_model(w))
        return bench_case_model(s, w, message, size);
    s->flops = layer_word_flops(w);
    s->bytes = layer_word_weight_bytes(w) + layer_word_cache_bytes(w);
    s->memory_bound = layer_word_rows(w) <= FEW_ROWS;
    s->copies = s->memory_bound ? bench_case_copies(s->bytes) : 1;
    if (s->bytes > 0x1p42)
        return false;
    switch (w->kind) {
    case WORD_LINEAR:
        return bench_case_linear(s, w, message, size);
    case WORD_OPENBLAS:
        return bench_case_openblas(s, w, message, size);
    case WORD_LAYER:
    case WORD_DECODE:
    case WORD_CACHE:
    case WORD_TRAIN:
    case WORD_TRANSLATE:
        break;
    }
    return bench_case_layer(s, w, message, size);
}

static bool create_problem(bench_case *s, const problem_word *w, char *message, size_t size)
{
    return w->gradients ? bench_case_gradients(s, w, message, size)
                        : bench_case_problem(s, w, message, size);
}

bool bench_case_create(bench_case *s, const bench_case_word *word, int threads, char *message,
                       size_t size)
{
    const int own = word->is_layer ? word->layer.threads : word->problem.threads;
    memset(s, 0, sizeof *s);
    s->threads = own > 0 ? own : threads;
    const bool ok = word->is_layer ? create_layer(s, &word->layer, message, size)
                                   : create_problem(s, &word->problem, message, size);
    if (!ok)
        bench_case_free(s);
    return ok;
}

void bench_case_free(bench_case *s)
{
    if (s->free != NULL)
        s->free(s->body);
    memset(s, 0, sizeof *s);
}
