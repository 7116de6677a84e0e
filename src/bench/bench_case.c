/* SPDX-License-Identifier: MIT */
/* Creates the bench case that a word describes; memory and messages for the cases. */
#include "bench/bench_case.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/rng.h"

/* With at most this many rows a layer or linear counts as bound by memory: reading the weights
 * takes longer than the arithmetic. The number is fixed, so that a word is compared with the same
 * peak in every run. */
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

/* The numbers repeat after a prime period, which no row length equals; the speed does not depend on
 * their values. */
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

/* -------------------------------------------------------------- messages ----- */

bool bench_case_accepted(const bench_case *bench, mha_status status, const char *why, char *message,
                         size_t size)
{
    if (status != MHA_OK)
        snprintf(message, size, "%s: %s. %s", bench->word, mha_status_string(status), why);
    return status == MHA_OK;
}

bool bench_case_prepare(const bench_case *bench, mha_options *options,
                        mha_status (*prepare)(void *body, int threads), char *message, size_t size)
{
    char why[WORD_MESSAGE_MAX] = "";
    options->message = why;
    options->message_size = sizeof why;
    const mha_status status = prepare(bench->body, bench->threads);
    options->message = NULL;
    options->message_size = 0;
    return bench_case_accepted(bench, status, why, message, size);
}

/* -------------------------------------------------------------- creation ----- */

/* The peak of native products is that of their type, whatever share of the work they are. */
static peak_kind peak_of(const layer_word *w)
{
    return !w->native              ? PEAK_F32
           : w->stored == MHA_I8   ? PEAK_I8
           : w->stored == MHA_BF16 ? PEAK_BF16
                                   : PEAK_F32;
}

static bool create_layer(bench_case *bench, const layer_word *w, char *message, size_t size)
{
    layer_word_print(w, bench->word, sizeof bench->word);
    snprintf(message, size, "%s does not fit in memory", bench->word);
    bench->copies = 1;
    if (layer_word_is_model(w))
        return bench_case_model(bench, w, message, size);
    bench->flops = layer_word_flops(w);
    bench->bytes = layer_word_weight_bytes(w) + layer_word_cache_bytes(w);
    bench->peak = peak_of(w);
    bench->memory_bound = layer_word_rows(w) <= FEW_ROWS;
    bench->copies = bench->memory_bound ? bench_case_copies(bench->bytes) : 1;
    if (bench->bytes > 0x1p42)
        return false;
    switch (w->kind) {
    case WORD_LINEAR:
        return bench_case_linear(bench, w, message, size);
    case WORD_OPENBLAS:
        return bench_case_openblas(bench, w, message, size);
    case WORD_LAYER:
    case WORD_DECODE:
    case WORD_CACHE:
    case WORD_TRAIN:
    case WORD_TRANSLATE:
        break;
    }
    return bench_case_layer(bench, w, message, size);
}

static bool create_problem(bench_case *bench, const problem_word *w, char *message, size_t size)
{
    const bool bf16 = w->q_type == MHA_BF16 && w->k_type == MHA_BF16 && w->v_type == MHA_BF16;
    bench->peak = w->native && bf16 && !w->gradients ? PEAK_BF16 : PEAK_F32;
    return w->gradients ? bench_case_gradients(bench, w, message, size)
                        : bench_case_problem(bench, w, message, size);
}

bool bench_case_create(bench_case *bench, const bench_case_word *word, int threads, char *message,
                       size_t size)
{
    const int own = word->is_layer ? word->layer.threads : word->problem.threads;
    memset(bench, 0, sizeof *bench);
    bench->threads = own > 0 ? own : threads;
    const bool ok = word->is_layer ? create_layer(bench, &word->layer, message, size)
                                   : create_problem(bench, &word->problem, message, size);
    if (!ok)
        bench_case_free(bench);
    return ok;
}

void bench_case_free(bench_case *bench)
{
    if (bench->free != NULL)
        bench->free(bench->body);
    memset(bench, 0, sizeof *bench);
}
