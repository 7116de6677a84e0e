/* SPDX-License-Identifier: MIT */
/* Merges of byte pair encoding: computed by hand, and compared with a plain implementation that
 * counts all pairs again before each merge. */
#include "support/test.h"
#include "text/bpe_merges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 128, PIECES_MAX = 512, WORDS_MAX = 64, SYMBOLS_MAX = 128 };

/* A vocabulary of the letters of a text, and their ids by code point. */
typedef struct letters {
    vocabulary *v;
    int32_t ids[LETTERS];
} letters;

static letters make_letters(const char *text)
{
    letters l = {.v = vocab_create()};
    memset(l.ids, 0xff, sizeof l.ids);
    for (const char *c = text; *c; c++) {
        l.ids[(unsigned char)*c] = vocab_size(l.v);
        CHECK(vocab_add(l.v, vocab_size(l.v), c, 1, 0, 0), "a letter");
    }
    return l;
}

static void add_words(word_counts *words, const char *word, int count)
{
    for (int n = 0; n < count; n++)
        CHECK(word_counts_add(words, word, strlen(word)), "a word");
}

static void expect_merges(const letters *l, const word_counts *words, int32_t size,
                          uint64_t pair_count, const char *wanted)
{
    const bpe_merge_limits limits = {size, pair_count};
    bpe_pair_list merges = {0};
    char text[1000] = "";
    CHECK(bpe_find_merges(words, l->ids, &limits, l->v, &merges) == MHA_OK, "status");
    for (size_t n = 0; n < merges.count; n++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s+%s", used ? " " : "",
                 vocab_piece(l->v, merges.pairs[n].left, NULL),
                 vocab_piece(l->v, merges.pairs[n].right, NULL));
    }
    CHECK(strcmp(text, wanted) == 0, "\"%s\" instead of \"%s\"", text, wanted);
    bpe_pair_list_free(&merges);
}

static void check_by_hand(const char *alphabet, const char *const *texts, const int *counts,
                          int32_t size, uint64_t pair_count, const char *wanted)
{
    letters l = make_letters(alphabet);
    word_counts words = {0};
    for (int n = 0; texts[n]; n++)
        add_words(&words, texts[n], counts[n]);
    expect_merges(&l, &words, size, pair_count, wanted);
    word_counts_free(&words);
    vocab_free(l.v);
}

/*
 * With d=0 e=1 i=2 l=3 n=4 o=5 r=6 s=7 t=8 w=9 _=10, counts begin with (e,s) 9, (s,t) 9, (w,e) 8,
 * (_,l) 7, (l,o) 7, (o,w) 7; of equal ones the lower left id is first.
 */
static void merges_by_hand(void)
{
    static const char *const texts[] = {"_low", "_lower", "_newest", "_widest", NULL};
    static const int counts[] = {5, 2, 6, 3};
    check_by_hand("deilnorstw_", texts, counts, 100, 2,
                  "e+s es+t l+o _+lo _lo+w e+w n+ew _+new _new+est d+est i+dest w+idest _+widest "
                  "e+r _low+er");
    check_by_hand("deilnorstw_", texts, counts, 100, 7, "e+s es+t l+o _+lo _lo+w");
    check_by_hand("deilnorstw_", texts, counts, 13, 2, "e+s es+t");
    check_by_hand("deilnorstw_", texts, counts, 11, 2, "");
    check_by_hand("deilnorstw_", texts, counts, 5, 2, "");
}

/* Of equal counts, the left id decides and then the right one, not the order of the words. */
static void ties_by_hand(void)
{
    static const char *const texts[] = {"cd", "cb", "ab", "ad", NULL};
    static const int counts[] = {1, 1, 1, 1};
    check_by_hand("abcd", texts, counts, 100, 1, "a+b a+d c+b c+d");
    check_by_hand("dcba", texts, counts, 100, 1, "c+d c+b a+d a+b");
}

/* "aaa" has the pair twice, but only the left one is merged. */
static void overlapping_pairs(void)
{
    static const char *const five[] = {"aaaaa", NULL}, *const three[] = {"aaa", "ba", NULL};
    static const int once[] = {1, 1}, counts[] = {2, 3};
    check_by_hand("a", five, once, 100, 1, "a+a aa+a aa+aaa");
    check_by_hand("ab", three, counts, 100, 2, "a+a b+a aa+a");
}

/* A letter without a piece is merged with none, and separates its neighbours. */
static void letters_without_pieces(void)
{
    static const char *const texts[] = {"axb", "ab", "xx", NULL};
    static const int counts[] = {9, 3, 9};
    check_by_hand("ab", texts, counts, 100, 2, "a+b");
    check_by_hand("", texts, counts, 100, 1, "");
}

/* ----------------------------------------------------------------- twin ----- */

typedef struct plain_word {
    int32_t symbols[SYMBOLS_MAX];
    int count;
    uint64_t weight;
} plain_word;

typedef struct plain {
    plain_word words[WORDS_MAX];
    int word_count;
    char pieces[PIECES_MAX][64];
    int piece_count;
    bpe_pair merges[PIECES_MAX];
    size_t merge_count;
} plain;

static uint64_t plain_count(const plain *p, bpe_pair pair)
{
    uint64_t count = 0;
    for (int w = 0; w < p->word_count; w++)
        for (int n = 0; n + 1 < p->words[w].count; n++)
            if (p->words[w].symbols[n] == pair.left && p->words[w].symbols[n + 1] == pair.right)
                count += p->words[w].weight;
    return count;
}

/* Ids are tried in order, so that the first of equal counts is the one of the lower ids. */
static bool plain_best(const plain *p, uint64_t least, bpe_pair *best)
{
    uint64_t best_count = least - 1;
    for (int32_t left = 0; left < p->piece_count; left++)
        for (int32_t right = 0; right < p->piece_count; right++) {
            if (strlen(p->pieces[left]) + strlen(p->pieces[right]) > BPE_PIECE_CHARACTERS_MAX)
                continue;
            const uint64_t count = plain_count(p, (bpe_pair){left, right});
            if (count > best_count) {
                best_count = count;
                *best = (bpe_pair){left, right};
            }
        }
    return best_count >= least;
}

static void plain_replace(plain_word *word, bpe_pair pair, int32_t merged)
{
    int kept = 0;
    for (int n = 0; n < word->count; n++) {
        const bool found = n + 1 < word->count && word->symbols[n] == pair.left &&
                           word->symbols[n + 1] == pair.right;
        word->symbols[kept++] = found ? merged : word->symbols[n];
        n += found;
    }
    word->count = kept;
}

static void plain_merge(plain *p, bpe_pair pair)
{
    char piece[64];
    snprintf(piece, sizeof piece, "%.31s%.31s", p->pieces[pair.left], p->pieces[pair.right]);
    for (int n = 0; n < p->piece_count; n++)
        CHECK(strcmp(p->pieces[n], piece) != 0, "the piece %s is made twice", piece);
    p->merges[p->merge_count++] = pair;
    for (int w = 0; w < p->word_count; w++)
        plain_replace(&p->words[w], pair, p->piece_count);
    memcpy(p->pieces[p->piece_count++], piece, sizeof piece);
}

static void plain_begin(plain *p, const letters *l, const word_counts *words)
{
    memset(p, 0, sizeof *p);
    for (int32_t id = 0; id < vocab_size(l->v); id++)
        snprintf(p->pieces[p->piece_count++], sizeof p->pieces[0], "%s",
                 vocab_piece(l->v, id, NULL));
    for (size_t w = 0; w < words->count; w++) {
        plain_word *const to = &p->words[p->word_count++];
        to->weight = words->words[w].count;
        for (size_t n = 0; n < words->words[w].length; n++)
            to->symbols[to->count++] = l->ids[(unsigned char)words->bytes[words->words[w].at + n]];
    }
}

static void random_words(test_random *random, word_counts *words)
{
    const int64_t distinct = 1 + test_random_below(random, 12);
    const int64_t longest = test_random_below(random, 4) ? 8 : 100;
    const int64_t used = 1 + test_random_below(random, 5);
    for (int64_t n = 0; n < distinct; n++) {
        char word[SYMBOLS_MAX] = "";
        const int64_t length = 1 + test_random_below(random, longest);
        for (int64_t k = 0; k < length; k++)
            word[k] = (char)('a' + test_random_below(random, used));
        add_words(words, word, 1 + (int)test_random_below(random, 5));
    }
}

static void compare_with_twin(test_random *random, plain *p)
{
    static const char *const alphabets[] = {"abcde", "edcba", "ab", "cab"};
    letters l = make_letters(alphabets[test_random_below(random, 4)]);
    word_counts words = {0};
    bpe_pair_list merges = {0};
    random_words(random, &words);
    const bpe_merge_limits limits = {vocab_size(l.v) + (int32_t)test_random_below(random, 60),
                                     1 + (uint64_t)test_random_below(random, 4)};
    plain_begin(p, &l, &words);
    bpe_pair best = {0};
    while (p->piece_count < limits.vocabulary_size && plain_best(p, limits.pair_count, &best))
        plain_merge(p, best);
    CHECK(bpe_find_merges(&words, l.ids, &limits, l.v, &merges) == MHA_OK, "status");
    CHECK(merges.count == p->merge_count && vocab_size(l.v) == p->piece_count,
          "%zu merges and %d pieces instead of %zu and %d", merges.count, (int)vocab_size(l.v),
          p->merge_count, p->piece_count);
    for (size_t n = 0; n < merges.count && n < p->merge_count; n++)
        CHECK(merges.pairs[n].left == p->merges[n].left &&
                  merges.pairs[n].right == p->merges[n].right,
              "merge %zu is %d %d instead of %d %d", n, (int)merges.pairs[n].left,
              (int)merges.pairs[n].right, (int)p->merges[n].left, (int)p->merges[n].right);
    for (int32_t id = 0; id < vocab_size(l.v) && id < p->piece_count; id++)
        CHECK(strcmp(vocab_piece(l.v, id, NULL), p->pieces[id]) == 0, "piece %d", (int)id);
    bpe_pair_list_free(&merges);
    word_counts_free(&words);
    vocab_free(l.v);
}

static void equal_to_the_plain_twin(void)
{
    test_random random = {test_seed(7)};
    plain *const p = malloc(sizeof *p);
    const int64_t rounds = test_effort(300);
    for (int64_t n = 0; n < rounds && p; n++)
        compare_with_twin(&random, p);
    free(p);
}

/* Whatever the words are: pieces have a limit, and the time is not quadratic. */
static void a_word_of_a_million_letters(void)
{
    enum { LENGTH = 1 << 20 };
    char *const word = malloc(LENGTH);
    test_random random = {3};
    for (int kind = 0; kind < 3 && word; kind++) {
        letters l = make_letters("ab");
        word_counts words = {0};
        bpe_pair_list merges = {0};
        const bpe_merge_limits limits = {2000, 2};
        for (int n = 0; n < LENGTH; n++)
            word[n] = kind == 0   ? 'a'
                      : kind == 1 ? "ab"[n & 1]
                                  : (char)('a' + test_random_below(&random, 2));
        CHECK(word_counts_add(&words, word, LENGTH), "a word");
        CHECK(bpe_find_merges(&words, l.ids, &limits, l.v, &merges) == MHA_OK, "status");
        CHECK(vocab_size(l.v) == (kind == 2 ? 2000 : 7), "kind %d: %d pieces", kind,
              (int)vocab_size(l.v));
        for (int32_t id = 0; id < vocab_size(l.v); id++)
            CHECK(strlen(vocab_piece(l.v, id, NULL)) <= BPE_PIECE_CHARACTERS_MAX, "piece %d",
                  (int)id);
        bpe_pair_list_free(&merges);
        word_counts_free(&words);
        vocab_free(l.v);
    }
    free(word);
}

static void words_are_counted(void)
{
    word_counts words = {0};
    char word[32];
    for (int round = 0; round < 3; round++)
        for (int n = 0; n < 5000; n += 1 + round)
            CHECK(word_counts_add(&words, word, (size_t)snprintf(word, sizeof word, "w%d", n)),
                  "a word");
    CHECK(word_counts_add(&words, "", 0) && word_counts_add(&words, "w\0x", 3), "odd words");
    CHECK(words.count == 5001, "%zu distinct words", words.count);
    for (int n = 0; n < 5000; n++) {
        const counted_word *const w = &words.words[n];
        const int length = snprintf(word, sizeof word, "w%d", n);
        CHECK(w->length == (size_t)length && memcmp(words.bytes + w->at, word, w->length) == 0,
              "word %d", n);
        CHECK(w->count == 1u + (n % 2 == 0) + (n % 3 == 0), "count of word %d", n);
    }
    word_counts_free(&words);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(words_are_counted);
    RUN(merges_by_hand);
    RUN(ties_by_hand);
    RUN(overlapping_pairs);
    RUN(letters_without_pieces);
    RUN(equal_to_the_plain_twin);
    RUN(a_word_of_a_million_letters);
    return test_end();
}
