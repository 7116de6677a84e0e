/* SPDX-License-Identifier: MIT */
/* Sampling of one token: see sample.h. A heap gives the most probable tokens one after another, so
 * that a large vocabulary is never sorted as a whole. */
#include "model/sample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "model/scan.h"

double sample_log_total(const float *logits, ptrdiff_t words)
{
    const float most = scan_most(logits, words);
    return (double)most + log(scan_exp_sum(logits, words, most));
}

static bool is_listed(const int32_t *ids, ptrdiff_t count, ptrdiff_t id)
{
    bool found = false;
    for (ptrdiff_t n = 0; n < count; n++)
        found |= ids[n] == id;
    return found;
}

ptrdiff_t sample_best(const float *logits, ptrdiff_t words, const int32_t *forbidden,
                      ptrdiff_t forbidden_count, ptrdiff_t room, int32_t *ids)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t n = 0; n < words; n++) {
        if (n % SCAN_BLOCK == 0 && count == room) {
            n = scan_above(logits, words, n, logits[ids[count - 1]]);
            if (n == words)
                break; /* nothing that is left is above the last of them */
        }
        if ((count == room && !(logits[n] > logits[ids[count - 1]])) ||
            is_listed(forbidden, forbidden_count, n))
            continue;
        ptrdiff_t at = count < room ? count++ : count - 1;
        for (; at > 0 && logits[n] > logits[ids[at - 1]]; at--)
            ids[at] = ids[at - 1];
        ids[at] = (int32_t)n;
    }
    return count;
}

/* ------------------------------------------------------------------ scores ----- */

static void penalise(const sample_request *r)
{
    const float penalty = r->sampling->repetition_penalty;
    const ptrdiff_t last = r->sampling->repetition_last;
    ptrdiff_t first = 0;
    if (penalty == 0.0f || penalty == 1.0f)
        return;
    if (last > 0 && last < r->history_count)
        first = r->history_count - last;
    for (ptrdiff_t n = first; n < r->history_count; n++) {
        const int32_t id = r->history[n];
        if (id < 0 || id >= r->words)
            continue;
        /* From the logit itself: a token that occurs twice is penalised once. */
        r->scores[id] = r->logits[id] > 0.0f ? r->logits[id] / penalty : r->logits[id] * penalty;
    }
}

/* NaN becomes a score that is never drawn, since sums of shares must be numbers. */
static void fill_scores(const sample_request *r)
{
    memcpy(r->scores, r->logits, (size_t)r->words * sizeof *r->scores);
    penalise(r);
    for (ptrdiff_t n = 0; n < r->words; n++)
        r->scores[n] = isnan(r->scores[n]) ? -INFINITY : r->scores[n];
    for (ptrdiff_t n = 0; n < r->forbidden_count; n++)
        if (r->forbidden[n] >= 0 && r->forbidden[n] < r->words)
            r->scores[r->forbidden[n]] = -INFINITY;
}

/* Without a penalty the logits themselves are the scores. */
static bool is_greedy(const mha_sampling *s)
{
    const bool plain = s->repetition_penalty == 0.0f || s->repetition_penalty == 1.0f;
    return plain && !(s->temperature > 0.0f);
}

static int32_t best_logit(const sample_request *r)
{
    float most = -INFINITY;
    ptrdiff_t best = 0;
    for (ptrdiff_t n = 0; n < r->words; n++) {
        if (n % SCAN_BLOCK == 0)
            n = scan_above(r->logits, r->words, n, most);
        if (n < r->words && r->logits[n] > most &&
            !is_listed(r->forbidden, r->forbidden_count, n)) {
            most = r->logits[n];
            best = n;
        }
    }
    return (int32_t)best;
}

static int32_t most_probable(const float *scores, ptrdiff_t words)
{
    ptrdiff_t best = 0;
    for (ptrdiff_t n = 1; n < words; n++)
        if (scores[n] > scores[best])
            best = n;
    return (int32_t)best;
}

/* -------------------------------------------------------------------- heap ----- */

typedef struct token_heap {
    const float *scores;
    int32_t *ids;
    ptrdiff_t count;
} token_heap;

static int comes_before(const token_heap *heap, int32_t a, int32_t b)
{
    return heap->scores[a] > heap->scores[b] || (heap->scores[a] == heap->scores[b] && a < b);
}

static void sink(const token_heap *heap, ptrdiff_t at)
{
    for (;;) {
        ptrdiff_t child = 2 * at + 1;
        if (child >= heap->count)
            return;
        if (child + 1 < heap->count && comes_before(heap, heap->ids[child + 1], heap->ids[child]))
            child++;
        if (!comes_before(heap, heap->ids[child], heap->ids[at]))
            return;
        const int32_t id = heap->ids[at];
        heap->ids[at] = heap->ids[child];
        heap->ids[child] = id;
        at = child;
    }
}

/* Moves the first token to the end of the array, which no longer belongs to the heap. */
static int32_t pop(token_heap *heap)
{
    const int32_t first = heap->ids[0];
    heap->ids[0] = heap->ids[--heap->count];
    heap->ids[heap->count] = first;
    sink(heap, 0);
    return first;
}

static void fill_heap(token_heap *heap, const sample_request *r)
{
    *heap = (token_heap){r->scores, r->ordered, r->words};
    for (ptrdiff_t n = 0; n < r->words; n++)
        heap->ids[n] = (int32_t)n;
    for (ptrdiff_t n = r->words / 2; n-- > 0;)
        sink(heap, n);
}

/* -------------------------------------------------------------------- draw ----- */

/* A token's share, relative to the most probable one. */
static double share(const sample_request *r, int32_t id, float most)
{
    return exp(((double)r->scores[id] - (double)most) / (double)r->sampling->temperature);
}

static int32_t draw_from_all(const sample_request *r, float most)
{
    double total = 0.0, sum = 0.0;
    int32_t last = most_probable(r->scores, r->words);
    for (ptrdiff_t n = 0; n < r->words; n++)
        total += share(r, (int32_t)n, most);
    for (ptrdiff_t n = 0; n < r->words; n++) {
        const double part = share(r, (int32_t)n, most);
        sum += part;
        last = part > 0.0 ? (int32_t)n : last;
        if (sum > r->draw * total)
            break;
    }
    return last;
}

/* The total that top_p is a part of: that of the k first, or of all. */
static double total_share(const sample_request *r, ptrdiff_t k, float most)
{
    token_heap heap;
    double total = 0.0;
    if (k == r->words) {
        for (ptrdiff_t n = 0; n < r->words; n++)
            total += share(r, (int32_t)n, most);
        return total;
    }
    fill_heap(&heap, r);
    for (ptrdiff_t n = 0; n < k; n++)
        total += share(r, pop(&heap), most);
    return total;
}

static int32_t draw_from_first(const sample_request *r, float most)
{
    const mha_sampling *const s = r->sampling;
    const ptrdiff_t k = s->top_k > 0 && s->top_k < r->words ? s->top_k : r->words;
    const int whole = s->top_p <= 0.0f || s->top_p >= 1.0f;
    const double enough = whole ? INFINITY : (double)s->top_p * total_share(r, k, most);
    token_heap heap;
    fill_heap(&heap, r);
    double sum = 0.0;
    ptrdiff_t kept = 0;
    while (kept < k && sum < enough) {
        const double part = share(r, pop(&heap), most);
        if (kept > 0 && (part < (double)s->min_p || part == 0.0))
            break;
        sum += part;
        kept++;
    }
    double so_far = 0.0;
    for (ptrdiff_t n = 0; n < kept; n++) {
        const int32_t id = r->ordered[r->words - 1 - n];
        so_far += share(r, id, most);
        if (so_far > r->draw * sum)
            return id;
    }
    return r->ordered[r->words - kept];
}

int32_t sample_token(const sample_request *r)
{
    const mha_sampling *const s = r->sampling;
    if (is_greedy(s))
        return best_logit(r);
    fill_scores(r);
    if (!(s->temperature > 0.0f))
        return most_probable(r->scores, r->words);
    const float most = scan_most(r->scores, r->words);
    if (!isfinite(most))
        return most_probable(r->scores, r->words);
    const int all = s->top_k <= 0 && (s->top_p <= 0.0f || s->top_p >= 1.0f) && s->min_p <= 0.0f;
    return all ? draw_from_all(r, most) : draw_from_first(r, most);
}
