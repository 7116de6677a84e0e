/* SPDX-License-Identifier: MIT */
/* Texts as token numbers, and in batches (token_batch.h). */
#include "heads/token_batch.h"

#include <stdlib.h>
#include <string.h>

#include "heads/subject_model_parts.h"

/* ---------------------------------------------------------------- texts ----- */

/* The number of tokens of both sides of text n. A pair of the corpus is without its marks. */
static size_t count_tokens(const subject_texts *texts, int n)
{
    if (texts->pairs) {
        const int *const count = texts->pairs[n].words.count;
        return (size_t)count[CORPUS_ENGLISH] + (size_t)count[CORPUS_FRENCH] + 2;
    }
    return (size_t)texts->texts[n].source.count + (size_t)texts->texts[n].target.count;
}

static int32_t *append(int32_t *to, const int *numbers, int count)
{
    for (int n = 0; n < count; n++)
        to[n] = numbers[n];
    return to + count;
}

/* Writes text n to `ids`; returns the end. */
static int32_t *add_text(token_text *to, const subject *s, const subject_texts *texts, int n,
                         int32_t *ids)
{
    const subject_text *const text = &texts->texts[n];
    *to = (token_text){.source = ids, .end = WORD_END};
    ids = append(ids, text->source.numbers, text->source.count);
    to->source_count = text->source.count;
    to->target = ids;
    to->target_count = text->target.count;
    if (!s->translator)
        to->end = ((const model_text *)text->memory)->end;
    return append(ids, text->target.numbers, text->target.count);
}

static int32_t *add_pair(token_text *to, const numbered_pair *pair, int32_t *ids)
{
    *to = (token_text){.source = ids, .end = WORD_END};
    ids = append(ids, pair->words[CORPUS_ENGLISH], pair->count[CORPUS_ENGLISH]);
    *ids++ = WORD_END;
    to->source_count = pair->count[CORPUS_ENGLISH] + 1;
    to->target = ids;
    to->target_count = pair->count[CORPUS_FRENCH] + 1;
    *ids++ = WORD_BEGIN;
    return append(ids, pair->words[CORPUS_FRENCH], pair->count[CORPUS_FRENCH]);
}

bool token_texts_make(token_texts *made, const subject *s, const subject_texts *texts)
{
    size_t tokens = 1;
    for (int n = 0; n < texts->count; n++)
        tokens += count_tokens(texts, n);
    *made = (token_texts){.texts = calloc((size_t)texts->count + 1, sizeof *made->texts),
                          .ids = malloc(tokens * sizeof *made->ids),
                          .count = texts->count};
    if (!made->texts || !made->ids)
        return false;
    int32_t *ids = made->ids;
    for (int n = 0; n < texts->count; n++)
        ids = texts->pairs ? add_pair(&made->texts[n], &texts->pairs[n].words, ids)
                           : add_text(&made->texts[n], s, texts, n, ids);
    return true;
}

void token_texts_free(token_texts *texts)
{
    free(texts->texts);
    free(texts->ids);
}

/* -------------------------------------------------------------- batches ----- */

/* One more than the last text of the batch that begins with `first`. */
static int batch_end(const token_texts *texts, int first, int64_t most)
{
    int64_t source_rows = 0, rows = 0;
    int end = first;
    while (end < texts->count) {
        source_rows += texts->texts[end].source_count;
        rows += texts->texts[end].target_count;
        if (end > first && (source_rows > BATCH_ROWS || rows > most))
            break;
        end++;
    }
    return end;
}

static bool allocate(token_batch *t, int64_t rows, int64_t source_rows)
{
    const size_t count = (size_t)t->count + 1;
    t->starts = calloc(count, sizeof *t->starts);
    t->source_starts = calloc(count, sizeof *t->source_starts);
    t->ids = calloc((size_t)rows + 1, sizeof *t->ids);
    t->source_ids = calloc((size_t)source_rows + 1, sizeof *t->source_ids);
    t->expected = calloc((size_t)rows + 1, sizeof *t->expected);
    return t->starts && t->source_starts && t->ids && t->source_ids && t->expected;
}

/* Appends the tokens of one text. */
static void pack_text(token_batch *t, int n, const token_text *text)
{
    const int64_t row = t->starts[n], source_row = t->source_starts[n];
    t->starts[n + 1] = row + text->target_count;
    t->source_starts[n + 1] = source_row + text->source_count;
    memcpy(t->source_ids + source_row, text->source, (size_t)text->source_count * sizeof *t->ids);
    memcpy(t->ids + row, text->target, (size_t)text->target_count * sizeof *t->ids);
    for (int k = 0; k < text->target_count; k++)
        t->expected[row + k] = k + 1 < text->target_count ? text->target[k + 1] : text->end;
}

static bool pack(token_batch *t, const token_text *texts)
{
    int64_t rows = 0, source_rows = 0;
    for (int n = 0; n < t->count; n++) {
        rows += texts[n].target_count;
        source_rows += texts[n].source_count;
    }
    if (!allocate(t, rows, source_rows))
        return false;
    for (int n = 0; n < t->count; n++)
        pack_text(t, n, &texts[n]);
    return true;
}

bool token_batches_make(token_batches *made, const token_texts *texts, int64_t most_rows)
{
    const int64_t most = most_rows < BATCH_ROWS ? most_rows : BATCH_ROWS;
    *made = (token_batches){.batches = calloc((size_t)texts->count + 1, sizeof *made->batches)};
    for (int first = 0; made->batches && first < texts->count;) {
        token_batch *const t = &made->batches[made->count++];
        *t = (token_batch){.first = first, .count = batch_end(texts, first, most) - first};
        if (!pack(t, texts->texts + first))
            return false;
        made->most_rows =
            token_batch_rows(t) > made->most_rows ? token_batch_rows(t) : made->most_rows;
        first += t->count;
    }
    return made->batches;
}

void token_batches_free(token_batches *b)
{
    for (int n = 0; n < b->count; n++) {
        token_batch *const t = &b->batches[n];
        free(t->starts);
        free(t->source_starts);
        free(t->ids);
        free(t->source_ids);
        free(t->expected);
        mha_state_free(t->state);
    }
    free(b->batches);
}

int64_t token_batch_rows(const token_batch *b)
{
    return b->starts[b->count];
}

bool token_batch_has_source(const token_batch *b)
{
    return b->source_starts[b->count] > 0;
}

/* ------------------------------------------------------------------ run ----- */

static int64_t longest(const int64_t *starts, int count)
{
    int64_t most = 1;
    for (int n = 0; n < count; n++)
        most = starts[n + 1] - starts[n] > most ? starts[n + 1] - starts[n] : most;
    return most;
}

mha_status token_batch_keep(token_batch *b, const mha_model *model, mha_pool *pool)
{
    const mha_state_config config = {.size = sizeof config,
                                     .sequences = b->count,
                                     .capacity = (ptrdiff_t)longest(b->starts, b->count),
                                     .source_capacity =
                                         (ptrdiff_t)longest(b->source_starts, b->count)};
    const mha_status status = mha_state_create(&b->state, model, &config);
    if (status != MHA_OK)
        return status;
    const mha_model_call call = {.size = sizeof call,
                                 .B = b->count,
                                 .starts = b->starts,
                                 .ids = b->ids,
                                 .source_starts = b->source_starts,
                                 .source_ids = b->source_ids,
                                 .state = b->state};
    return mha_model_run(model, &call, NULL, 0, pool);
}

mha_status token_batch_call(const token_batch *b, bool again, mha_model_call *call)
{
    const bool kept = b->state && !again, encodes = token_batch_has_source(b) && !kept;
    mha_status status = MHA_OK;
    for (int n = 0; kept && n < b->count && status == MHA_OK; n++)
        status = mha_state_truncate(b->state, n, 0);
    *call = (mha_model_call){.size = sizeof *call,
                             .B = b->count,
                             .starts = b->starts,
                             .ids = b->ids,
                             .source_starts = encodes ? b->source_starts : NULL,
                             .source_ids = encodes ? b->source_ids : NULL,
                             .state = kept ? b->state : NULL};
    return status;
}
