/* SPDX-License-Identifier: MIT */
/*
 * mha demo: multi-head self-attention on one sentence, every head drawn.
 *
 *      X [L,E] = word vectors + positions
 *      q, k, v = X . W_Q, X . W_K, X . W_V          [L, H*D] each, heads side by side
 *      weights [H,L,L], o [L, H*D]                  one call of mha_attention()
 *
 * Vectors and matrices are seeded, not trained: the same word gets the same vector everywhere.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mha/mha.h>

#include "base/output_file.h"
#include "base/rng.h"
#include "draw/heatmap.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/session.h"

enum { WIDTH = 64, HEADS = 8, WORDS_MAX = 64, COLUMNS_MAX = 12 };

#define SENTENCE "The cat that I saw yesterday ran away"

static const char details[] =
    "Row i, column j of a map shows how much word i attends to word j. The word vectors and the\n"
    "matrices are seeded random numbers, not a trained model.\n"
    "\n"
    "Examples:\n"
    "  mha demo --causal\n"
    "  mha demo --sentence \"to be or not to be\" --heads 4\n"
    "  mha demo --svg heads.svg\n";

typedef struct demo {
    const char *sentence, *svg;
    uint64_t seed;
    int64_t heads;
    bool causal;
    text_word words[WORDS_MAX];
    int count;
    float *x, *qkv[3], *o, *weights; /* [L,E], [L,E] each, [L,E], [H,L,L] */
} demo;

/* One block for all arrays; freed through d->x. */
static bool allocate(demo *d)
{
    const size_t L = (size_t)d->count, row = L * WIDTH;
    float *block = calloc(5 * row + (size_t)d->heads * L * L, sizeof *block);
    if (block == NULL)
        return false;
    d->x = block;
    for (int n = 0; n < 3; n++)
        d->qkv[n] = block + (size_t)(n + 1) * row;
    d->o = block + 4 * row;
    d->weights = block + 5 * row;
    return true;
}

/* The same word, in capitals or not, gives the same number. */
static uint64_t hash_word(const char *word)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *word != '\0'; word++) {
        const char c = *word >= 'A' && *word <= 'Z' ? (char)(*word - 'A' + 'a') : *word;
        hash = (hash ^ (uint8_t)c) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Word vectors plus sines and cosines of the position, as in the original transformer but with a
 * shorter longest wave. */
static void embed(demo *d)
{
    for (int i = 0; i < d->count; i++) {
        rng r = rng_for(d->seed, hash_word(d->words[i].bytes));
        for (int c = 0; c < WIDTH; c += 2) {
            const double angle = i / pow(30.0, (double)c / WIDTH);
            d->x[i * WIDTH + c] = (float)(0.7 * rng_normal(&r) + 1.2 * sin(angle));
            d->x[i * WIDTH + c + 1] = (float)(0.7 * rng_normal(&r) + 1.2 * cos(angle));
        }
    }
}

/*
 * The matrix for q, k or v. The columns of a key head are a mixture of those of its query head and
 * of fresh ones: the first heads look for something else than themselves, the last ones for words
 * like themselves, and near.
 */
static double matrix_element(const demo *d, int which, int row, int column)
{
    const int width = WIDTH / (int)d->heads, head = column / width;
    const uint64_t cell = (uint64_t)row * WIDTH + (uint64_t)column;
    rng fresh = rng_for(d->seed + 1 + (uint64_t)which, cell), query = rng_for(d->seed + 1, cell);
    const double gain = which == 2 ? 1.0 : 1.35;
    double value = rng_normal(&fresh);
    if (which == 1 && d->heads > 1) {
        const double like = 0.95 * head / (double)(d->heads - 1);
        value = like * rng_normal(&query) + sqrt(1.0 - like * like) * value;
    }
    return gain * value / sqrt((double)WIDTH);
}

/* Adds x . W to zeros; the matrix is generated element by element and not stored. */
static void project(demo *d, int which)
{
    for (int row = 0; row < WIDTH; row++)
        for (int column = 0; column < WIDTH; column++) {
            const float w = (float)matrix_element(d, which, row, column);
            for (int i = 0; i < d->count; i++)
                d->qkv[which][i * WIDTH + column] += d->x[i * WIDTH + row] * w;
        }
}

static bool attend(demo *d)
{
    const ptrdiff_t L = d->count, H = (ptrdiff_t)d->heads, D = WIDTH / H;
    char message[256] = "";
    const mha_shape shape = {.B = 1, .H = H, .L = L, .S = L, .D = D};
    const mha_options options = {.size = sizeof options,
                                 .flags = d->causal ? MHA_CAUSAL : 0,
                                 .weights = mha_out_bhld(d->weights, H, L, L),
                                 .message = message,
                                 .message_size = sizeof message};
    const mha_status status = mha_attention(
        &shape, mha_view_blhd(d->qkv[0], H, L, D), mha_view_blhd(d->qkv[1], H, L, D),
        mha_view_blhd(d->qkv[2], H, L, D), mha_out_blhd(d->o, H, L, D), &options, NULL);
    if (status != MHA_OK)
        fprintf(stderr, "mha: %s. %s\n", mha_status_string(status), message);
    return status == MHA_OK;
}

/* ---------------------------------------------------------------- report ----- */

/* How many words a head attends to at a time (the exponential of its mean entropy), and its
 * largest weight. */
static void print_strongest(const demo *d, int head)
{
    const float *map = d->weights + (size_t)head * (size_t)(d->count * d->count);
    int best = 0;
    double entropy = 0.0;
    for (int n = 0; n < d->count * d->count; n++) {
        /* A word's attention to itself is not reported: in a causal map the first word has no
         * other. */
        const int i = n / d->count, j = n % d->count;
        if (i != j && (map[n] > map[best] || best == 0))
            best = n;
        if (map[n] > 0.0f)
            entropy -= (double)map[n] * log((double)map[n]);
    }
    printf("  head %-3d %4.1f words at a time", head + 1, exp(entropy / d->count));
    if (d->count > 1)
        printf("; most (besides itself): %s -> %s %.2f", d->words[best / d->count].bytes,
               d->words[best % d->count].bytes, (double)map[best]);
    printf("\n");
}

static void print_next(const terminal *t, bool causal)
{
    static const char *const next[][2] = {
        {"demo --causal", "every word sees only what came before"},
        {"demo --sentence \"to be or not to be\" --heads 4", ""},
        {"explain b1h8l8d8", "how the library computes this"},
        {"verify --configs 200", "check it against double precision"},
        {"bench b1h12l1024d64", "how near the machine's peak it runs"},
    };
    printf("\n");
    terminal_style(stdout, t, STYLE_BOLD);
    printf("Try next");
    terminal_plain(stdout, t);
    printf("\n");
    for (size_t n = causal ? 1 : 0; n < sizeof next / sizeof next[0]; n++)
        printf("  %s %-26s%s\n", args_program, next[n][0], next[n][1]);
}

static void report(const demo *d, const heatmap_sheet *sheet)
{
    const terminal t = terminal_query(stdout);
    terminal_style(stdout, &t, STYLE_BOLD);
    printf("Multi-head self-attention");
    terminal_plain(stdout, &t);
    printf("  %d word%s, width %d, %d head%s of %d%s, isa %s\n", d->count, d->count == 1 ? "" : "s",
           WIDTH, (int)d->heads, d->heads == 1 ? "" : "s", WIDTH / (int)d->heads,
           d->causal ? ", causal" : "", mha_isa_name());
    printf(
        "Each row is a word; bright cells are the words it attends to. Seeded, not trained.\n\n");
    heatmap_draw(stdout, sheet, &t);
    printf("\n");
    for (int head = 0; head < (int)d->heads; head++)
        print_strongest(d, head);
    print_next(&t, d->causal);
}

typedef struct demo_picture {
    const heatmap_sheet *sheet;
    const char *command;
} demo_picture;

static void write_svg(FILE *file, const void *arg)
{
    const demo_picture *const shown = arg;
    heatmap_svg(file, shown->sheet, 1, shown->command);
}

static int run(demo *d)
{
    if (require_isa() == NULL)
        return EXIT_FAILED;
    if (!allocate(d))
        return args_failed("out of memory");
    embed(d);
    for (int which = 0; which < 3; which++)
        project(d, which);
    int code = EXIT_FAILED;
    if (attend(d)) {
        const heatmap_words axis = {d->words, d->count};
        const heatmap_sheet sheet = {.rows = axis,
                                     .columns = axis,
                                     .heads = (int)d->heads,
                                     .weights = d->weights,
                                     .causal = d->causal};
        code = EXIT_FINE;
        const demo_picture shown = {&sheet, d->causal ? "$ mha demo --causal" : "$ mha demo"};
        if (d->svg != NULL)
            code = output_file_write(d->svg, write_svg, &shown) ? EXIT_FINE : EXIT_FAILED;
        else
            report(d, &sheet);
    }
    free(d->x);
    return code;
}

static int check(demo *d)
{
    const int words = text_split(d->sentence, d->words, WORDS_MAX, COLUMNS_MAX);
    if (words == 0)
        return args_wrong("demo: the sentence has no words");
    if (words > WORDS_MAX)
        return args_wrong("demo: %d words; %d fit on a screen", words, WORDS_MAX);
    if (WIDTH % d->heads != 0)
        return args_wrong("demo: --heads %d does not divide the width %d; try 1, 2, 4, 8, 16, 32",
                          (int)d->heads, WIDTH);
    d->count = words;
    return d->svg == NULL || output_file_check(d->svg) ? EXIT_GO_ON : EXIT_FAILED;
}

int command_demo(int argc, char **argv)
{
    demo d = {.sentence = SENTENCE, .seed = 7, .heads = HEADS};
    const arg_option options[] = {
        {"sentence", ARG_TEXT, &d.sentence, "TEXT", "the sentence to process", 0, 0},
        {"causal", ARG_FLAG, &d.causal, NULL, "every word attends only to words before it", 0, 0},
        {"heads", ARG_NUMBER, &d.heads, "N", "number of heads, a divisor of 64 (8)", 1, WIDTH},
        {"seed", ARG_SEED, &d.seed, "N", "seed of vectors and matrices (7)", 0, 0},
        {"svg", ARG_TEXT, &d.svg, "FILE", "write the maps to an SVG file instead", 0, 0},
    };
    const arg_command command = {
        .name = "demo",
        .usage = "[--sentence TEXT] [--causal] [--heads N] [--seed N] [--svg FILE]",
        .summary = "Draw what every head of a small example attends to.",
        .details = details,
        ARG_OPTIONS(options),
    };
    int code = args_parse(&command, argc, argv, NULL);
    if (code == EXIT_GO_ON)
        code = check(&d);
    return code == EXIT_GO_ON ? run(&d) : code;
}
