/* SPDX-License-Identifier: MIT */
#include "subject.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rng.h"

/* With so few rows weights are read faster than memory gives them: bound by memory. A fixed number:
 * which peak a word is held against must not change from run to run. */
enum { FEW_ROWS = 8 };

bool subject_word_parse(subject_word *word, const char *text, char *message, size_t size)
{
    word->is_layer = layer_word_meant(text);
    if (word->is_layer)
        return layer_word_parse(&word->layer, text, message, size);
    return word_parse(&word->problem, text, message, size);
}

/* ---------------------------------------------------------------- memory ----- */

int subject_copies(double bytes)
{
    const double copies = ceil((double)SUBJECT_BYTES / bytes);
    return copies < 65536.0 ? (int)copies : 65536;
}

void *subject_memory(size_t size)
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
float *subject_numbers(double count, float scale)
{
    enum { PERIOD = 65521 };
    if (count > 0x1p40)
        return NULL;
    const size_t all = (size_t)count;
    float *numbers = subject_memory(all * sizeof *numbers);
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

static bool create_layer(subject *s, const layer_word *w, char *message, size_t size)
{
    layer_word_print(w, s->word, sizeof s->word);
    snprintf(message, size, "%s does not fit in memory", s->word);
    s->copies = 1;
    if (layer_word_is_model(w))
        return subject_model(s, w, message, size);
    s->flops = layer_word_flops(w);
    s->bytes = layer_word_weight_bytes(w) + layer_word_cache_bytes(w);
    s->memory_bound = layer_word_rows(w) <= FEW_ROWS;
    s->copies = s->memory_bound ? subject_copies(s->bytes) : 1;
    if (s->bytes > 0x1p42)
        return false;
    switch (w->kind) {
    case WORD_LINEAR:
        return subject_linear(s, w, message, size);
    case WORD_OPENBLAS:
        return subject_openblas(s, w, message, size);
    case WORD_LAYER:
    case WORD_DECODE:
    case WORD_CACHE:
    case WORD_TRAIN:
    case WORD_TRANSLATE:
        break;
    }
    return subject_layer(s, w, message, size);
}

static bool create_problem(subject *s, const problem_word *w, char *message, size_t size)
{
    return w->gradients ? subject_gradients(s, w, message, size)
                        : subject_problem(s, w, message, size);
}

bool subject_create(subject *s, const subject_word *word, int threads, char *message, size_t size)
{
    const int own = word->is_layer ? word->layer.threads : word->problem.threads;
    memset(s, 0, sizeof *s);
    s->threads = own > 0 ? own : threads;
    const bool ok = word->is_layer ? create_layer(s, &word->layer, message, size)
                                   : create_problem(s, &word->problem, message, size);
    if (!ok)
        subject_free(s);
    return ok;
}

void subject_free(subject *s)
{
    if (s->free != NULL)
        s->free(s->body);
    memset(s, 0, sizeof *s);
}
