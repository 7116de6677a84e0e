/* SPDX-License-Identifier: MIT */
/*
 * A translation that a model of libmha_model writes under any changes. mha_model_generate(), which
 * keeps the keys of earlier tokens, knows no hidden words, so each token is the likeliest one of a
 * run over all tokens before it.
 */
#include <stdlib.h>
#include <string.h>

#include "heads/subject_model_parts.h"
#include "model/inspect.h"

/* Room for a target that grows; false: out of memory. */
static bool make_side(model_side *side, ptrdiff_t most)
{
    const size_t count = (size_t)most + 1;
    side->ids = calloc(count, sizeof *side->ids);
    side->side.numbers = calloc(count, sizeof *side->side.numbers);
    side->side.marks = calloc(count, sizeof *side->side.marks);
    side->side.continues = calloc(count, sizeof *side->side.continues);
    return side->ids && side->side.numbers && side->side.marks && side->side.continues;
}

static void free_side(model_side *side)
{
    free(side->ids);
    free(side->side.numbers);
    free(side->side.marks);
    free(side->side.continues);
}

static void add_token(model_side *side, int32_t id)
{
    side->ids[side->side.count] = id;
    side->side.numbers[side->side.count++] = id;
}

/* The likeliest token after the last one; never the one that the decoder begins with. -1: out of
 * memory. */
static int32_t next_token(const subject *s, const model_text *text, const capture_options *options,
                          int32_t start, mha_pool *pool)
{
    const subject_text read = {.memory = (void *)text};
    capture *const c = subject_model_run(s, &read, options, pool);
    if (!c)
        return -1;
    const float *const logits =
        c->stream.logits + (ptrdiff_t)(c->stream.rows - 1) * c->stream.words;
    int32_t best = start == 0 ? 1 : 0;
    for (int32_t w = best; w < c->stream.words; w++)
        if (w != start && logits[w] > logits[best])
            best = w;
    capture_free(c);
    return best;
}

char *subject_model_write(const subject *s, const subject_text *text,
                          const capture_options *options, mha_pool *pool)
{
    const mha_model *const model = model_of(s);
    const int32_t start = model_decoder_start(model);
    const int32_t end = mha_tokenizer_mark(mha_model_target_tokenizer(model), MHA_MARK_END);
    const ptrdiff_t most = model_written_most(s);
    model_text grown = *(const model_text *)text->memory;
    model_side *const side = &grown.sides[TRANSFORMER_TARGET];
    capture_options each = *options;
    int32_t id = start;
    *side = (model_side){.ids = NULL};
    each.stream = true;
    grown.end = -1;
    char *written = NULL;
    if (make_side(side, most)) {
        for (; id >= 0 && id != end && side->side.count < most;
             id = next_token(s, &grown, &each, start, pool))
            add_token(side, id);
        if (id >= 0)
            written = model_target_text(model, side->ids, side->side.count);
    }
    free_side(side);
    return written;
}
