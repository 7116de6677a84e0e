/* SPDX-License-Identifier: MIT */
/* Joins tokens to words for display: weights by head_join.c, texts by appending the pieces without
 * the signs of their tokenizers. */
#include "heads/whole_words.h"

#include <stdlib.h>
#include <string.h>

#include "heads/head_join.h"

/* --------------------------------------------------------------- weights ----- */

static void free_vectors(capture_heads *h)
{
    float **const arrays[] = {&h->q, &h->k, &h->v, &h->value_norms, &h->outputs};
    for (size_t n = 0; n < sizeof arrays / sizeof arrays[0]; n++) {
        free(*arrays[n]);
        *arrays[n] = NULL;
    }
}

static bool join_kind(capture_heads *h, const word_pieces *rows, const word_pieces *columns)
{
    const ptrdiff_t from = (ptrdiff_t)h->rows * h->columns,
                    to = (ptrdiff_t)rows->words * columns->words;
    const ptrdiff_t maps = (ptrdiff_t)h->layers * h->heads;
    float *const weights = malloc((size_t)(maps * to + 1) * sizeof *weights);
    if (!weights)
        return false;
    for (ptrdiff_t n = 0; n < maps; n++)
        word_pieces_join(rows, columns, h->weights + n * from, weights + n * to);
    free(h->weights);
    h->weights = weights;
    h->rows = rows->words;
    h->columns = columns->words;
    free_vectors(h);
    return true;
}

bool capture_join_words(capture *c)
{
    word_pieces source, target, said;
    bool fine = word_pieces_make(&source, c->source_continues, c->source_count);
    fine = word_pieces_make(&target, c->target_continues, c->target_count) && fine;
    fine = word_pieces_make(&said, c->says_more, c->target_count) && fine;
    const word_pieces *const rows[ATTENTION_KINDS] = {&source, &target, &said};
    const word_pieces *const columns[ATTENTION_KINDS] = {&source, &target, &source};
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (fine && c->kind[kind].weights)
            fine = join_kind(&c->kind[kind], rows[kind], columns[kind]);
    word_pieces_free(&source);
    word_pieces_free(&target);
    word_pieces_free(&said);
    return fine;
}

/* ------------------------------------------------------------------ text ----- */

/* A piece without the sign that WordPiece gives those that continue a word. */
static const char *piece_text(const char *piece, bool continues)
{
    return continues && strncmp(piece, "##", 2) == 0 && piece[2] != '\0' ? piece + 2 : piece;
}

static size_t letters_of(const subject_side *side)
{
    size_t letters = 0;
    for (int n = 0; n < side->count; n++)
        letters += strlen(side->words[n]) + 1;
    return letters;
}

/* Joins the words of a side, if they are not known as wholes; returns where the next letters go. */
static char *join_side(subject_side *to, const subject_side *from, char *letters)
{
    for (int n = 0; n < from->count; n++) {
        const bool continues = n > 0 && from->continues[n];
        const char *const text = piece_text(from->words[n], continues);
        if (continues)
            letters--;
        else
            to->words[to->count++] = letters;
        letters = stpcpy(letters, text) + 1;
        if (!continues)
            to->marks[to->count - 1] = from->marks[n];
        if (!continues && from->wholes != NULL && from->wholes[n] != NULL)
            to->words[to->count - 1] = from->wholes[n];
    }
    return letters;
}

static bool side_make(subject_side *side, int count)
{
    const size_t size = (size_t)count + 1;
    *side = (subject_side){.words = calloc(size, sizeof *side->words),
                           .marks = calloc(size, sizeof *side->marks)};
    return side->words && side->marks;
}

bool whole_words_make(whole_words *w, const subject_text *from)
{
    *w = (whole_words){.text = {.text = from->text, .translation = from->translation}};
    subject_text *const to = &w->text;
    w->letters = malloc(letters_of(&from->source) + letters_of(&from->target) + 1);
    bool fine = side_make(&to->source, from->source.count);
    fine = side_make(&to->target, from->target.count) && fine;
    if (from->expected)
        to->expected = calloc((size_t)from->target.count + 1, sizeof *to->expected);
    if (!fine || !w->letters || (from->expected && !to->expected))
        return false;
    join_side(&to->target, &from->target, join_side(&to->source, &from->source, w->letters));
    for (int n = 0; to->expected && n < to->target.count; n++)
        to->expected[n] = n + 1 < to->target.count ? to->target.words[n + 1]
                                                   : from->expected[from->target.count - 1];
    return true;
}

void whole_words_free(whole_words *w)
{
    free((void *)w->text.source.words);
    free(w->text.source.marks);
    free((void *)w->text.target.words);
    free(w->text.target.marks);
    free((void *)w->text.expected);
    free(w->letters);
}
