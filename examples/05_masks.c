/* SPDX-License-Identifier: MIT */
/*
 * 5. Masks.
 *
 * A mask says which queries may attend to which keys. Rows are queries, columns keys:
 *
 *      x . . .      x x . .      x x x .
 *      x x . .      x x x .      x x x .
 *      x x x .      . x x x      x x x .
 *      x x x x      . . x x      x x x .
 *      causal       window       padding
 *
 * Causal is for decoders: no word attends to later ones. Windows limit the work for long texts.
 * Padding fills up the shorter sentences of a batch, and it is where libraries disagree: some pass
 * lengths, some a mask of the keys to ignore, some a mask of those to attend to, some numbers to
 * add, 0 and -inf. Here each has its own name, none is guessed, all of them apply together, and the
 * same mask gives the same bits in each form.
 */
#include <math.h>
#include <mha/mha.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

enum { B = 2, L = 6, D = 8 };

static float q[B][L][D], k[B][L][D], v[B][L][D];
static float o[B][L][D], weights[B][L][L];

/* Which keys a query may attend to, computed without the library. */
typedef int rule(int b, int i, int j);

static const int64_t lengths[B] = {L, 4}; /* the second sentence has four words */

static int everyone(int b, int i, int j)
{
    (void)b, (void)i, (void)j;
    return 1;
}
static int causal(int b, int i, int j)
{
    (void)b;
    return j <= i;
}
static int neighbours(int b, int i, int j)
{
    (void)b;
    return i - 1 <= j && j <= i + 1;
}
static int last_three(int b, int i, int j)
{
    (void)b;
    return i - 2 <= j && j <= i;
}
static int not_padding(int b, int i, int j)
{
    (void)i;
    return j < lengths[b];
}
static int everything(int b, int i, int j)
{
    return j <= i && j < lengths[b] && j != 1;
}
static int none_visible(int b, int i, int j)
{
    (void)b, (void)i, (void)j;
    return 0;
}

static void draw(const char *title)
{
    printf("%s\n", title);
    for (int i = 0; i < L; i++)
        for (int b = 0; b < B; b++) {
            printf("    ");
            for (int j = 0; j < L; j++)
                printf(" %c", weights[b][i][j] > 0 ? 'x' : '.');
            printf(b == B - 1 ? "\n" : "");
        }
}

/* Run with these options and compare the weights with the rule. Returns 1 if they agree. */
static int follows(const char *title, mha_options options, rule *sees)
{
    char message[256] = "";
    options.size = sizeof options;
    options.weights = mha_out_bhld(weights, 1, L, L);
    options.message = message;
    options.message_size = sizeof message;
    const mha_shape shape = {.B = B, .H = 1, .L = L, .S = L, .D = D};
    const mha_status status =
        mha_attention(&shape, mha_view_bhld(q, 1, L, D), mha_view_bhld(k, 1, L, D),
                      mha_view_bhld(v, 1, L, D), mha_out_bhld(o, 1, L, D), &options, NULL);
    if (status != MHA_OK) {
        fprintf(stderr, "%s: %s\n", title, message);
        return 0;
    }
    draw(title);
    int wrong = 0;
    for (int b = 0; b < B; b++)
        for (int i = 0; i < L; i++) {
            for (int j = 0; j < L; j++)
                wrong += (weights[b][i][j] > 0) != sees(b, i, j);
            wrong += !isfinite(o[b][i][0]);
        }
    return wrong == 0;
}

/* One mask in four conventions. A row of keys per sentence, shared by all heads and queries through
 * strides of 0. */
static int padding_four_ways(void)
{
    const unsigned char ignore[B][L] = {{0}, {0, 0, 0, 0, 1, 1}};
    const unsigned char attend[B][L] = {{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 0, 0}};
    const float add[B][L] = {{0}, {0, 0, 0, 0, -INFINITY, -INFINITY}};
    const mha_options ways[] = {{.k_lengths = lengths},
                                {.ignore_mask = {ignore, L, 0, 0}},
                                {.attend_mask = {attend, L, 0, 0}},
                                {.add_mask = {add, L, 0, 0}}};
    const char *const names[] = {"key lengths", "ignore_mask (PyTorch's key_padding_mask)",
                                 "attend_mask (Hugging Face's attention_mask)",
                                 "add_mask, 0 and -inf"};
    float first[B][L][D];
    int right = 1;
    for (int n = 0; n < 4; n++) {
        right &= follows(names[n], ways[n], not_padding);
        if (n == 0)
            memcpy(first, o, sizeof o);
        right &= memcmp(first, o, sizeof o) == 0;
    }
    printf("the same mask given in four ways: %s\n", right ? "the same bits" : "NOT the same");
    return right;
}

/* Masks that apply together; the garbage in masked keys and values affects no output. */
static int all_at_once(void)
{
    k[1][4][0] = NAN;
    v[1][5][0] = INFINITY;
    const unsigned char ignore[L] = {0, 1}; /* no query may attend to word 1 */
    const mha_options options = {.flags = MHA_CAUSAL,
                                 .k_lengths = lengths,
                                 .ignore_mask = {ignore, 0, 0, 0},
                                 /* With lengths the numbers of keys and queries may differ:
                                  * give the position of query 0. */
                                 .position = MHA_POSITION_TOP_LEFT};
    return follows("causal, lengths and ignore_mask", options, everything);
}

/* A row that attends to no key gives 0; not NaN, and not the mean of all values. */
static int nothing_to_see(void)
{
    const unsigned char ignore[L] = {1, 1, 1, 1, 1, 1};
    int right =
        follows("all keys masked", (mha_options){.ignore_mask = {ignore, 0, 0, 0}}, none_visible);
    for (int n = 0; n < B * L * D; n++)
        right &= (&o[0][0][0])[n] == 0;
    return right;
}

int main(void)
{
    numbers(&q[0][0][0], B * L * D, 1, 1.0f);
    numbers(&k[0][0][0], B * L * D, 2, 1.0f);
    numbers(&v[0][0][0], B * L * D, 3, 1.0f);
    const mha_options none = {0}, decoder = {.flags = MHA_CAUSAL};
    const mha_options window = {.flags = MHA_WINDOW, .window_left = 1, .window_right = 1};
    const mha_options both = {.flags = MHA_CAUSAL | MHA_WINDOW, .window_left = 2};
    int right = follows("no mask", none, everyone) & follows("causal", decoder, causal) &
                follows("window, one word to each side", window, neighbours) &
                follows("causal and window: the last three words", both, last_three);
    right &= padding_four_ways();
    right &= all_at_once();
    right &= nothing_to_see();
    return !right;
}
