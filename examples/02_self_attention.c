/* SPDX-License-Identifier: MIT */
/*
 * 2. Self-attention without weights.
 *
 * Use the vectors of the words themselves as queries, keys and values: every word attends to every
 * word of its own sentence, and becomes a mean of what it finds. There are no parameters. This page
 * shows what that can do, and three reasons why it is too weak:
 *
 *      - scores are symmetric: if "cat" matters to "sat", "sat" matters to "cat" just as much;
 *      - nothing is more similar to a word than the word itself, so each attends mostly to itself;
 *      - the order of the words makes no difference: both "the" become the same vector.
 */
#include <mha/mha.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

enum { L = 6, E = 16 };

static const char *const words[L] = {"the", "cat", "sat", "on", "the", "mat"};
static float x[L][E], y[L][E];
static float scores[L][L], weights[L][L];

/* One vector per word, +1 or -1 in each place: all of the same length. Equal words have equal
 * vectors; cat and mat, which are both things, share half of theirs. */
static void embed(void)
{
    numbers(&x[0][0], L * E, 5, 1.0f);
    for (int i = 0; i < L; i++)
        for (int c = 0; c < E; c++)
            x[i][c] = x[i][c] < 0 ? -1.0f : 1.0f;
    memcpy(x[4], x[0], sizeof x[0]);
    memcpy(x[5], x[1], sizeof x[1] / 2);
}

/* q = k = v = x. The caller chooses what is returned beside the output: here scale * q.k, or the
 * weights. */
static mha_status attend(float *shown, mha_weights_mode mode)
{
    const mha_shape shape = {.B = 1, .H = 1, .L = L, .S = L, .D = E};
    const mha_options options = {
        .size = sizeof options, .weights = mha_out_bhld(shown, 1, L, L), .weights_mode = mode};
    const mha_view in = mha_view_bhld(x, 1, L, E);
    return mha_attention(&shape, in, in, in, mha_out_bhld(y, 1, L, E), &options, NULL);
}

static void show(const char *title, float table[L][L])
{
    printf("%s\n%5s", title, "");
    for (int j = 0; j < L; j++)
        printf(" %6s", words[j]);
    for (int i = 0; i < L; i++) {
        printf("\n%5s", words[i]);
        for (int j = 0; j < L; j++)
            printf(" %6.3f", (double)table[i][j]);
    }
    printf("\n\n");
}

static int symmetric(void)
{
    int wrong = 0;
    for (int i = 0; i < L; i++)
        for (int j = 0; j < L; j++)
            wrong += scores[i][j] != scores[j][i];
    printf("scores that differ from their mirror image: %d\n", wrong);
    return wrong == 0;
}

/* The weight that words give to themselves, including equal words, compared with 2/L or 1/L for
 * uniform attention. */
static int looks_at_itself(void)
{
    int right = 1;
    for (int i = 0; i < L; i++) {
        float own = 0, even = 0;
        for (int j = 0; j < L; j++)
            if (strcmp(words[i], words[j]) == 0) {
                own += weights[i][j];
                even += 1.0f / L;
            }
        printf("\"%s\" attends to itself with %.0f %% (uniform attention: %.0f %%)\n", words[i],
               100 * (double)own, 100 * (double)even);
        right &= own > 0.5f;
    }
    return right;
}

static int order_is_lost(void)
{
    const int same = memcmp(y[0], y[4], sizeof y[0]) == 0;
    printf("the first \"the\" and the second get %s output\n", same ? "the same" : "ANOTHER");
    return same;
}

int main(void)
{
    embed();
    mha_status status = attend(&scores[0][0], MHA_WEIGHTS_RAW);
    if (status == MHA_OK)
        status = attend(&weights[0][0], MHA_WEIGHTS_SOFTMAX);
    if (status != MHA_OK) {
        fprintf(stderr, "%s\n", mha_status_string(status));
        return 1;
    }
    show("scores, scale * x[i].x[j]", scores);
    show("weights, softmax of each row", weights);
    const int right = symmetric() & looks_at_itself() & order_is_lost();
    /* The solution is on the next page: every word gets three vectors, one to ask with, one to be
     * found by, and one to answer with. */
    return !right;
}
