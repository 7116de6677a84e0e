/* SPDX-License-Identifier: MIT */
/* The vocabulary: pieces by id and ids by piece, gaps, equal pieces, limits; and the list of
 * tokens. */
#include "support/test.h"
#include "text/token_list.h"
#include "text/vocabulary.h"

#include <stdio.h>
#include <string.h>

static bool add(vocabulary *v, int32_t id, const char *piece)
{
    return vocab_add(v, id, piece, strlen(piece), (float)id, 0);
}

static int32_t find(const vocabulary *v, const char *piece)
{
    return vocab_find(v, piece, strlen(piece));
}

static void pieces_are_found(void)
{
    enum { COUNT = 5000 };
    vocabulary *const v = vocab_create();
    char piece[32];
    CHECK(vocab_find(v, "x", 1) == -1, "an empty vocabulary has a piece");
    for (int n = COUNT - 1; n >= 0; n--) {
        snprintf(piece, sizeof piece, "piece number %d", n);
        CHECK(add(v, n, piece), "id %d", n);
    }
    CHECK(vocab_size(v) == COUNT, "size %d", vocab_size(v));
    for (int n = 0; n < COUNT; n++) {
        size_t length = 0;
        snprintf(piece, sizeof piece, "piece number %d", n);
        CHECK(find(v, piece) == n, "%s is %d", piece, find(v, piece));
        const char *const text = vocab_piece(v, n, &length);
        CHECK(text && strcmp(text, piece) == 0 && length == strlen(piece), "piece %d", n);
        CHECK(vocab_score(v, n) == (float)n, "score of %d", n);
    }
    CHECK(find(v, "piece number 5000") == -1, "a piece that was not added");
    vocab_free(v);
}

static void gaps_and_equal_pieces(void)
{
    vocabulary *const v = vocab_create();
    CHECK(add(v, 7, "a") && add(v, 3, "a") && add(v, 0, ""), "adding");
    CHECK(find(v, "a") == 7 && find(v, "") == 0, "the first of two equal pieces");
    CHECK(vocab_size(v) == 8 && !vocab_piece(v, 5, NULL), "gaps have no piece");
    CHECK(strcmp(vocab_piece(v, 3, NULL), "a") == 0, "the second of two equal pieces");
    CHECK(!add(v, 7, "b"), "an id twice");
    CHECK(!add(v, -1, "b") && !add(v, VOCABULARY_MAX, "b"), "ids out of range");
    CHECK(!vocab_piece(v, -1, NULL) && !vocab_piece(v, 8, NULL), "no such id");
    vocab_set_flags(v, 7, PIECE_SPECIAL | PIECE_BYTE);
    vocab_set_flags(v, 100, PIECE_SPECIAL);
    CHECK(vocab_flags(v, 7) == (PIECE_SPECIAL | PIECE_BYTE), "flags");
    CHECK(vocab_flags(v, 3) == 0 && vocab_flags(v, 100) == 0, "no flags");
    vocab_free(v);
    vocab_free(NULL);
}

static void tokens_are_listed(void)
{
    token_list list = {0};
    for (int n = 0; n < 1000; n++)
        token_list_add(&list, n, MHA_TOKEN_UNKNOWN, (size_t)n, (size_t)n + 1);
    CHECK(list.count == 1000 && !list.failed, "count %td", list.count);
    CHECK(list.tokens[999].id == 999 && list.tokens[999].begin == 999, "the last token");
    list.failed = true;
    token_list_add(&list, 0, 0, 0, 0);
    CHECK(list.count == 1000, "a list that failed stays as it is");
    token_list_free(&list);
    CHECK(list.count == 0 && !list.tokens, "an empty list");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(pieces_are_found);
    RUN(gaps_and_equal_pieces);
    RUN(tokens_are_listed);
    return test_end();
}
