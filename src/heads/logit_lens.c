/* SPDX-License-Identifier: MIT */
/* What each layer would say (logit_lens.h). */
#include "heads/logit_lens.h"

#include <math.h>
#include <stdlib.h>

static void read_level(logit_lens *lens, const capture *run, int level, const float *logits)
{
    const int words = run->stream.words;
    for (int row = 0; row < lens->rows; row++) {
        const ptrdiff_t at = (ptrdiff_t)level * lens->rows + row;
        const float *const own = logits + (ptrdiff_t)row * words;
        likely_words_find(own, words, LENS_WORDS, lens->likely + at * LENS_WORDS);
        lens->expected[at] = row < run->scored
                                 ? (double)own[run->expected[row]] - logits_log_sum(own, words)
                                 : (double)NAN;
    }
}

mha_status logit_lens_make(logit_lens *lens, const subject *model, const capture *run,
                           mha_pool *pool)
{
    const capture_stream *const s = &run->stream;
    *lens = (logit_lens){.levels = s->layers + 1, .rows = s->rows};
    const size_t cells = (size_t)lens->levels * (size_t)lens->rows;
    float *const logits = calloc((size_t)s->rows * (size_t)s->words + 1, sizeof *logits);
    lens->likely = calloc(cells * LENS_WORDS + 1, sizeof *lens->likely);
    lens->expected = calloc(cells + 1, sizeof *lens->expected);
    mha_status status = logits && lens->likely && lens->expected ? MHA_OK : MHA_ERR_MEMORY;
    for (int level = 0; level < lens->levels && status == MHA_OK; level++) {
        status = subject_lens(model, s->rows, s->streams + (ptrdiff_t)level * s->rows * s->width,
                              logits, pool);
        if (status == MHA_OK)
            read_level(lens, run, level, logits);
    }
    free(logits);
    return status;
}

void logit_lens_free(logit_lens *lens)
{
    free(lens->likely);
    free(lens->expected);
}

double logit_lens_cost(const capture *run)
{
    const capture_stream *const s = &run->stream;
    return (double)(s->layers + 1) * s->rows * s->words * s->width;
}
