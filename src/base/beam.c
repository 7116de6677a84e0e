/* SPDX-License-Identifier: MIT */
/* Beam search over one text: see beam.h. Hypotheses that begin alike share their first nodes. */
#include "base/beam.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

bool beam_begin(beam_search *search, int width, int limit, double penalty)
{
    *search = (beam_search){.width = width, .limit = limit, .penalty = penalty, .running_count = 1};
    search->block = calloc((size_t)width, 3 * sizeof *search->running);
    if (!search->block)
        return false;
    search->running = search->block;
    search->next = search->running + width;
    search->finished = search->next + width;
    search->running[0].node = -1;
    search->over = limit <= 0;
    return true;
}

void beam_free(beam_search *search)
{
    free(search->block);
    free(search->nodes);
    *search = (beam_search){.width = 0};
}

double beam_score(const beam_search *search, int number)
{
    const int node = search->running[number].node;
    return node < 0 ? 0.0 : search->nodes[node].score;
}

int32_t beam_token(const beam_search *search, int number)
{
    return search->nodes[search->running[number].node].token;
}

/* -------------------------------------------------------------------- step ----- */

static int compare_choices(const void *a, const void *b)
{
    const beam_choice *const x = a, *const y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

static double rank_of(const beam_search *search, double score, int length)
{
    return search->penalty == 0.0 ? score : score / pow((double)length, search->penalty);
}

/* The hypothesis that a choice makes. There is room for its node. */
static beam_hypothesis extend(beam_search *search, const beam_choice *choice)
{
    const beam_hypothesis *const from = &search->running[choice->parent];
    const int node = (int)search->node_count++, length = from->length + 1;
    search->nodes[node] = (beam_node){choice->score, choice->token, choice->parent, from->node};
    return (beam_hypothesis){rank_of(search, choice->score, length), node, length, choice->ends};
}

/* Joins the finished ones by its rank, of equal ones the earlier first. */
static void finish(beam_search *search, beam_hypothesis h)
{
    int at = search->finished_count;
    while (at > 0 && h.rank > search->finished[at - 1].rank)
        at--;
    if (at == search->width)
        return;
    if (search->finished_count < search->width)
        search->finished_count++;
    for (int n = search->finished_count - 1; n > at; n--)
        search->finished[n] = search->finished[n - 1];
    search->finished[at] = h;
}

/* Can no running hypothesis rank above the finished ones any more, as far as can be foreseen? */
static bool is_over(const beam_search *search)
{
    if (search->running_count == 0)
        return true;
    if (search->finished_count < search->width)
        return false;
    const beam_hypothesis *const best = &search->running[0];
    return !(rank_of(search, beam_score(search, 0), best->length) >
             search->finished[search->width - 1].rank);
}

bool beam_step(beam_search *search, beam_choice *choices, size_t count, int *parents)
{
    const bool last = search->running[0].length + 1 >= search->limit;
    beam_node *const nodes =
        mhai_array_grow(search->nodes, &search->node_room,
                        search->node_count + 2 * (size_t)search->width, sizeof *nodes);
    if (!nodes)
        return false;
    search->nodes = nodes;
    if (count > 0)
        qsort(choices, count, sizeof *choices, compare_choices);
    int kept = 0;
    for (size_t n = 0; n < count && (kept < search->width || n < (size_t)search->width); n++) {
        const bool ends = choices[n].ends || last;
        if (ends && n < (size_t)search->width)
            finish(search, extend(search, &choices[n]));
        if (ends || kept == search->width)
            continue;
        parents[kept] = choices[n].parent;
        search->next[kept++] = extend(search, &choices[n]);
    }
    beam_hypothesis *const before = search->running;
    search->running = search->next;
    search->next = before;
    search->running_count = kept;
    search->over = is_over(search);
    return true;
}

int beam_path(const beam_search *search, const beam_hypothesis *h, const beam_node **path)
{
    int at = h->length;
    for (int node = h->node; node >= 0; node = search->nodes[node].before)
        path[--at] = &search->nodes[node];
    return h->length;
}
