/* SPDX-License-Identifier: MIT */
/* Joins the pieces of words, see head_join.h. Roles and measures (head_measures.c) are those of
 * whole words. */
#include "heads/head_join.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- pieces ----- */

bool word_pieces_make(word_pieces *p, const bool *continues, int tokens)
{
    *p = (word_pieces){.tokens = tokens, .word_of = calloc((size_t)tokens + 1, sizeof *p->word_of)};
    for (int n = 0; p->word_of != NULL && n < tokens; n++) {
        p->words += n == 0 || !continues || !continues[n];
        p->word_of[n] = p->words - 1;
    }
    return p->word_of != NULL;
}

void word_pieces_free(word_pieces *p)
{
    free(p->word_of);
    p->word_of = NULL;
}

/* The number of tokens of the word that token n belongs to. */
static int pieces_of(const word_pieces *p, int n)
{
    int first = n, end = n + 1;
    while (first > 0 && p->word_of[first - 1] == p->word_of[n])
        first--;
    while (end < p->tokens && p->word_of[end] == p->word_of[n])
        end++;
    return end - first;
}

void word_pieces_join(const word_pieces *rows, const word_pieces *columns, const float *weights,
                      float *to)
{
    memset(to, 0, (size_t)rows->words * (size_t)columns->words * sizeof *to);
    for (int i = 0; i < rows->tokens; i++) {
        const float share = 1.0f / (float)pieces_of(rows, i);
        float *const row = to + (ptrdiff_t)rows->word_of[i] * columns->words;
        for (int j = 0; j < columns->tokens; j++)
            row[columns->word_of[j]] += share * weights[(ptrdiff_t)i * columns->tokens + j];
    }
}

/* ---------------------------------------------------------------- head ----- */

static bool any_of(const bool *flags, int count)
{
    for (int n = 1; flags && n < count; n++)
        if (flags[n])
            return true;
    return false;
}

bool head_join_needed(const head_matrix *m, const head_scene *scene)
{
    return any_of(scene->row_continues, m->rows) || any_of(scene->column_continues, m->columns);
}

/* Whether two words have the same tokens; a and b are their first ones. */
static bool same_word(const word_pieces *p, const int *tokens, int a, int b)
{
    const int count = pieces_of(p, a);
    return pieces_of(p, b) == count &&
           memcmp(tokens + a, tokens + b, (size_t)count * sizeof *tokens) == 0;
}

/* A word of one token has the number of its token, one of several a negative number, which equal
 * words share. */
static void number_words(const word_pieces *p, const head_scene *scene, head_join *join)
{
    for (int n = 0; n < p->tokens; n++) {
        int first = 0;
        if (n > 0 && p->word_of[n] == p->word_of[n - 1])
            continue;
        while (first < n && ((first > 0 && p->word_of[first] == p->word_of[first - 1]) ||
                             !same_word(p, scene->tokens, first, n)))
            first++;
        join->tokens[p->word_of[n]] = pieces_of(p, n) == 1 ? scene->tokens[n] : -1 - first;
        join->special[p->word_of[n]] = scene->special && scene->special[n];
        if (n == scene->question)
            join->scene.question = p->word_of[n];
    }
}

static bool fill(head_join *join, const head_matrix *m, const head_scene *scene,
                 const word_pieces *rows, const word_pieces *columns)
{
    const size_t words = (size_t)columns->words + 1;
    join->weights = calloc((size_t)rows->words * words + 1, sizeof *join->weights);
    join->tokens = calloc(words, sizeof *join->tokens);
    join->special = calloc(words, sizeof *join->special);
    if (!join->weights || !join->tokens || !join->special)
        return false;
    join->scene = *scene;
    number_words(columns, scene, join);
    word_pieces_join(rows, columns, m->weights, join->weights);
    join->matrix = (head_matrix){join->weights, rows->words, columns->words, m->causal};
    join->scene.tokens = join->tokens;
    join->scene.special = join->special;
    join->scene.row_continues = join->scene.column_continues = NULL;
    return true;
}

bool head_join_make(head_join *join, const head_matrix *m, const head_scene *scene)
{
    word_pieces rows, columns;
    *join = (head_join){.weights = NULL};
    bool fine = word_pieces_make(&rows, scene->row_continues, m->rows);
    fine = word_pieces_make(&columns, scene->column_continues, m->columns) && fine;
    fine = fine && fill(join, m, scene, &rows, &columns);
    word_pieces_free(&rows);
    word_pieces_free(&columns);
    return fine;
}

void head_join_free(head_join *join)
{
    free(join->weights);
    free(join->tokens);
    free(join->special);
}
