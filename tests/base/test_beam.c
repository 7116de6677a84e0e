/* SPDX-License-Identifier: MIT */
/* Beam search over one text (base/beam.h), compared with the same search written plainly: whole
 * histories, all continuations listed and sorted. */
#include "base/beam.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

enum { WORDS = 9, LONGEST = 12, END = 2, OTHER_END = 5 };

/* ------------------------------------------------------------ a language ----- */

typedef struct language {
    uint64_t seed;
    bool flat; /* all tokens are equally probable */
} language;

static bool is_end(int token)
{
    return token == END || token == OTHER_END;
}

/* Log-probabilities of the next token: any function of the tokens before it. */
static void next_tokens(const language *l, const int *tokens, int count, double *logs)
{
    uint64_t number = l->seed;
    double sum = 0;
    for (int n = 0; n < count; n++)
        number = number * 31 + (uint64_t)tokens[n] + 1;
    test_random random = rng_for(number, (uint64_t)count);
    for (int n = 0; n < WORDS; n++) {
        logs[n] = l->flat ? 0 : 2 * (double)test_random_normal(&random);
        sum += exp(logs[n]);
    }
    for (int n = 0; n < WORDS; n++)
        logs[n] -= log(sum);
}

/* ----------------------------------------------------------------- plainly ----- */

typedef struct plain {
    int tokens[LONGEST], count;
    double score, rank;
    bool ended;
    int order; /* how ties are decided */
} plain;

static int by_score(const void *a, const void *b)
{
    const plain *const x = a, *const y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->order - y->order;
}

static int by_rank(const void *a, const void *b)
{
    const plain *const x = a, *const y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return x->order - y->order;
}

typedef struct plain_search {
    plain running[BEAM_WIDTH_MAX], finished[1024];
    plain all[BEAM_WIDTH_MAX * WORDS];
    int running_count, finished_count;
} plain_search;

static int list_all(plain_search *s, const language *l, double penalty)
{
    int count = 0;
    for (int h = 0; h < s->running_count; h++) {
        double logs[WORDS];
        next_tokens(l, s->running[h].tokens, s->running[h].count, logs);
        for (int n = 0; n < WORDS; n++) {
            plain *const one = &s->all[count];
            *one = s->running[h];
            one->tokens[one->count++] = n;
            one->score += logs[n];
            one->rank = one->score / pow(one->count, penalty);
            one->ended = is_end(n);
            one->order = count++;
        }
    }
    qsort(s->all, (size_t)count, sizeof s->all[0], by_score);
    return count;
}

static void plain_step(plain_search *s, const language *l, int width, int limit, double penalty)
{
    const bool last = s->running[0].count + 1 == limit;
    const int count = list_all(s, l, penalty);
    s->running_count = 0;
    for (int n = 0; n < count; n++) {
        const bool ends = s->all[n].ended || last;
        if (ends && n < width) {
            s->all[n].order = s->finished_count;
            s->finished[s->finished_count++] = s->all[n];
        } else if (!ends && s->running_count < width) {
            s->running[s->running_count++] = s->all[n];
        }
    }
    plain sorted[1024];
    memcpy(sorted, s->finished, sizeof sorted);
    qsort(sorted, (size_t)s->finished_count, sizeof sorted[0], by_rank);
    if (s->finished_count >= width && s->running_count > 0 &&
        !(s->running[0].rank > sorted[width - 1].rank))
        s->running_count = 0;
}

static void plain_run(plain_search *s, const language *l, int width, int limit, double penalty)
{
    *s = (plain_search){.running_count = 1};
    while (s->running_count > 0)
        plain_step(s, l, width, limit, penalty);
    qsort(s->finished, (size_t)s->finished_count, sizeof s->finished[0], by_rank);
    s->finished_count = s->finished_count < width ? s->finished_count : width;
}

/* ------------------------------------------------------------------ beam.h ----- */

typedef struct histories {
    int tokens[BEAM_WIDTH_MAX][LONGEST];
} histories;

/* One step, with all tokens as choices. Checks that parents and tokens make up the histories. */
static bool step(beam_search *search, const language *l, histories *h)
{
    beam_choice choices[BEAM_WIDTH_MAX * WORDS];
    int parents[BEAM_WIDTH_MAX];
    const int length = search->running[0].length;
    size_t count = 0;
    for (int n = 0; n < search->running_count; n++) {
        double logs[WORDS];
        next_tokens(l, h->tokens[n], length, logs);
        for (int token = WORDS - 1; token >= 0; token--)
            choices[count++] =
                (beam_choice){beam_score(search, n) + logs[token], n, token, is_end(token)};
    }
    if (!CHECK(beam_step(search, choices, count, parents), "out of memory"))
        return false;
    histories after = *h;
    for (int n = 0; n < search->running_count; n++) {
        memcpy(after.tokens[n], h->tokens[parents[n]], sizeof after.tokens[n]);
        after.tokens[n][length] = beam_token(search, n);
    }
    *h = after;
    return true;
}

static void check_found(const beam_search *search, const plain_search *expected, const char *what)
{
    const beam_node *path[LONGEST];
    if (!CHECK(search->finished_count == expected->finished_count, "%s: %d results, not %d", what,
               search->finished_count, expected->finished_count))
        return;
    for (int n = 0; n < search->finished_count; n++) {
        const plain *const e = &expected->finished[n];
        const int count = beam_path(search, &search->finished[n], path);
        bool same = count == e->count;
        for (int i = 0; same && i < count; i++)
            same = path[i]->token == e->tokens[i];
        CHECK(same, "%s: rank %d has other tokens", what, n);
        CHECK(path[count - 1]->score == e->score && search->finished[n].ended == e->ended,
              "%s: rank %d has score %g, not %g", what, n, path[count - 1]->score, e->score);
    }
}

static int compare(const language *l, int width, int limit, double penalty)
{
    static plain_search expected;
    beam_search search;
    histories h = {{{0}}};
    char what[80];
    int steps = 0;
    snprintf(what, sizeof what, "seed %llu, width %d, penalty %g", (unsigned long long)l->seed,
             width, penalty);
    if (!CHECK(beam_begin(&search, width, limit, penalty), "out of memory"))
        return 0;
    for (; !search.over && step(&search, l, &h); steps++)
        ;
    plain_run(&expected, l, width, limit, penalty);
    check_found(&search, &expected, what);
    beam_free(&search);
    return steps;
}

/* ------------------------------------------------------------------- tests ----- */

static void it_is_the_plain_search(void)
{
    static const int widths[] = {1, 2, 3, 4, 7, 16};
    static const double penalties[] = {0, 1, 0.6, 2, -1};
    int early = 0;
    for (int64_t n = 0; n < test_effort(60); n++)
        for (int w = 0; w < 6; w++)
            for (int p = 0; p < 5; p++) {
                const language l = {test_seed(9) + (uint64_t)n, false};
                early += compare(&l, widths[w], LONGEST, penalties[p]) < LONGEST;
            }
    CHECK(early > 0, "no search is over before its limit");
}

static void ties_are_decided_by_number(void)
{
    const language l = {1, true};
    for (int width = 1; width <= 8; width++)
        compare(&l, width, 4, 0);
}

static void short_limits(void)
{
    const language l = {3, false};
    for (int limit = 1; limit <= 3; limit++)
        compare(&l, 4, limit, 1);
    beam_search search;
    CHECK(beam_begin(&search, 4, 0, 1) && search.over, "a limit of 0");
    beam_free(&search);
}

/* A width of 1 takes the most probable token until it is an end. */
static void one_is_greedy(void)
{
    for (uint64_t n = 0; n < 50; n++) {
        const language l = {n, false};
        beam_search search;
        histories h = {{{0}}};
        int tokens[LONGEST], count = 0;
        while (count < LONGEST && (count == 0 || !is_end(tokens[count - 1]))) {
            double logs[WORDS];
            next_tokens(&l, tokens, count, logs);
            int best = 0;
            for (int k = 1; k < WORDS; k++)
                best = logs[k] > logs[best] ? k : best;
            tokens[count++] = best;
        }
        if (!CHECK(beam_begin(&search, 1, LONGEST, 0.5), "out of memory"))
            return;
        while (!search.over && step(&search, &l, &h))
            ;
        const beam_node *path[LONGEST];
        bool same = beam_path(&search, &search.finished[0], path) == count;
        for (int i = 0; same && i < count; i++)
            same = path[i]->token == tokens[i];
        CHECK(same, "seed %llu", (unsigned long long)n);
        beam_free(&search);
    }
}

/* Without any choice the search is over; what it has found stays. */
static void no_choices(void)
{
    beam_search search;
    int parents[2];
    beam_choice end = {-1.0, 0, END, true};
    CHECK(beam_begin(&search, 2, 5, 0) && beam_step(&search, NULL, 0, parents), "a step");
    CHECK(search.over && search.finished_count == 0, "%d results", search.finished_count);
    beam_free(&search);
    CHECK(beam_begin(&search, 2, 5, 0) && beam_step(&search, &end, 1, parents), "a step");
    CHECK(search.over && search.finished_count == 1, "%d results", search.finished_count);
    beam_free(&search);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(it_is_the_plain_search);
    RUN(ties_are_decided_by_number);
    RUN(short_limits);
    RUN(one_is_greedy);
    RUN(no_choices);
    return test_end();
}
