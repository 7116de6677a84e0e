/* SPDX-License-Identifier: MIT */
/*
 * Properties of every generated sentence (parser and generator agree, alignment, roles, elision,
 * tokens), of the splits, and of the vocabulary. A stored hash shows that the corpus never changes.
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "corpus/corpus.h"
#include "corpus/corpus_stats.h"

enum { SENTENCES = 20000 };

static void text_of(const corpus_pair *pair, corpus_side side, char text[CORPUS_TEXT_MAX])
{
    corpus_detokenise(side, &pair->side[side], text);
}

static bool same_tokens(const corpus_sentence *a, const corpus_sentence *b)
{
    if (a->count != b->count)
        return false;
    for (int n = 0; n < a->count; n++)
        if (strcmp(a->tokens[n], b->tokens[n]) != 0)
            return false;
    return true;
}

static bool same_pairs(const corpus_pair *a, const corpus_pair *b)
{
    return same_tokens(&a->side[CORPUS_ENGLISH], &b->side[CORPUS_ENGLISH]) &&
           same_tokens(&a->side[CORPUS_FRENCH], &b->side[CORPUS_FRENCH]) &&
           memcmp(a->sources, b->sources,
                  (size_t)a->side[CORPUS_FRENCH].count * sizeof a->sources[0]) == 0 &&
           a->role_count == b->role_count &&
           memcmp(a->roles, b->roles, (size_t)a->role_count * sizeof a->roles[0]) == 0;
}

/* The parser is independent of the generator. If both agree, an English sentence has one
 * translation, one alignment and one set of roles. */
static void every_sentence_is_understood(void)
{
    const uint64_t seed = test_seed(11);
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair, again;
        char english[CORPUS_TEXT_MAX], message[CORPUS_MESSAGE_MAX];
        corpus_generate(seed, (corpus_split)(n % CORPUS_SPLITS), n, &pair, NULL);
        text_of(&pair, CORPUS_ENGLISH, english);
        if (CHECK(corpus_translate(english, &again, NULL, message), "%s: %s", english, message))
            CHECK(same_pairs(&pair, &again), "%s is understood differently", english);
    }
}

static void every_token_is_aligned(void)
{
    const uint64_t seed = test_seed(12);
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        char english[CORPUS_TEXT_MAX];
        uint64_t used = 0;
        bool all = true;
        corpus_generate(seed, CORPUS_TRAIN, n, &pair, NULL);
        text_of(&pair, CORPUS_ENGLISH, english);
        for (int k = 0; k < pair.side[CORPUS_FRENCH].count; k++) {
            all &= pair.sources[k] != 0;
            used |= pair.sources[k];
        }
        CHECK(all, "a French token of nothing: %s", english);
        CHECK(used == (UINT64_C(1) << pair.side[CORPUS_ENGLISH].count) - 1,
              "an English token leads nowhere: %s", english);
    }
}

/* The French words of a role are aligned with its English words. */
static void roles_follow_the_alignment(void)
{
    const uint64_t seed = test_seed(13);
    int met[ROLE_KINDS] = {0};
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(seed, CORPUS_TEST, n, &pair, NULL);
        for (int k = 0; k < pair.role_count; k++) {
            const corpus_role *role = &pair.roles[k];
            const int first = role->first[CORPUS_FRENCH], second = role->second[CORPUS_FRENCH];
            met[role->kind]++;
            if (!CHECK(first >= 0 && second >= 0, "role %d without French", k))
                continue;
            CHECK(pair.sources[first] >> role->first[CORPUS_ENGLISH] & 1, "sentence %d, %s", (int)n,
                  corpus_role_name(role->kind));
            CHECK(pair.sources[second] >> role->second[CORPUS_ENGLISH] & 1, "sentence %d, %s",
                  (int)n, corpus_role_name(role->kind));
        }
    }
    for (int kind = 0; kind < ROLE_KINDS; kind++)
        CHECK(met[kind] > SENTENCES / 50, "%s: only %d", corpus_role_name((corpus_role_kind)kind),
              met[kind]);
}

/* No French word that should be elided precedes a vowel, and nothing is left to contract. Written
 * independently of the grammar's own code. */
static bool may_not_follow(const char *word, const char *next)
{
    static const char *const open[] = {"je", "ne", "de", "que", "le", "la", "se",
                                       "me", "te", "ce", "ma",  "ta", "sa"};
    const bool vowel = lexicon_begins_with_vowel(next);
    for (size_t n = 0; n < sizeof open / sizeof open[0]; n++)
        if (strcmp(word, open[n]) == 0 && vowel)
            return true;
    if (word[strlen(word) - 1] == '\'' && !vowel)
        return true;
    return (strcmp(word, "de") == 0 || strcmp(word, "à") == 0) &&
           (strcmp(next, "le") == 0 || strcmp(next, "les") == 0);
}

static void french_is_elided_and_contracted(void)
{
    const uint64_t seed = test_seed(14);
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(seed, CORPUS_TRAIN, n, &pair, NULL);
        const corpus_sentence *french = &pair.side[CORPUS_FRENCH];
        for (int k = 0; k + 1 < french->count; k++)
            CHECK(!may_not_follow(french->tokens[k], french->tokens[k + 1]), "%s %s",
                  french->tokens[k], french->tokens[k + 1]);
    }
}

static bool is_one_of(const char *word, const char *const *list, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (strcmp(word, list[n]) == 0)
            return true;
    return false;
}

/* Pronouns before a verb have a fixed order: me, te, nous, then le, la, les, then lui, leur.
 * Written without the grammar's own code. */
static void french_pronouns_are_in_order(void)
{
    static const char *const first[] = {"me", "m'", "te", "t'"};
    static const char *const second[] = {"le", "la", "les", "l'"};
    static const char *const third[] = {"lui", "leur"};
    const uint64_t seed = test_seed(17);
    int met = 0;
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(seed, CORPUS_TRAIN, n, &pair, NULL);
        const corpus_sentence *french = &pair.side[CORPUS_FRENCH];
        for (int k = 0; k + 1 < french->count; k++) {
            const char *const a = french->tokens[k], *const b = french->tokens[k + 1];
            const bool to_first = is_one_of(b, first, 4), to_second = is_one_of(b, second, 4);
            const bool from_third = is_one_of(a, third, 2), from_second = is_one_of(a, second, 4);
            met += (is_one_of(a, first, 4) && to_second) || (from_second && is_one_of(b, third, 2));
            CHECK(!((from_second || from_third) && to_first) && !(from_third && to_second),
                  "sentence %d: %s %s", (int)n, a, b);
        }
    }
    CHECK(met > SENTENCES / 500, "only %d pairs of pronouns", met);
}

/* Every construction of the grammar is frequent enough to be learnt: one sentence in 400. */
static void constructions_occur(void)
{
    enum { SHIFTED, DATIVE, TWO, PROGRESSIVE, IMPERFECT, TALK, SPEAKER, KINDS };
    static const char *const names[KINDS] = {"the boy a book", "to him",       "it to him",
                                             "is sleeping",    "was sleeping", "talk to him",
                                             "me, you, us"};
    int met[KINDS] = {0};
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        corpus_derivation d;
        corpus_generate(test_seed(18), CORPUS_TRAIN, n, &pair, &d);
        for (int k = 0; k < CORPUS_CLAUSES_MAX; k++) {
            const corpus_clause *const c = &d.clauses[k];
            const bool object = c->object.pronoun != PRONOUN_NONE;
            const bool recipient = c->recipient.pronoun != PRONOUN_NONE;
            if (!corpus_has_clause(&d, k))
                continue;
            met[SHIFTED] += c->shifted;
            met[DATIVE] += recipient;
            met[TWO] += recipient && object;
            met[PROGRESSIVE] += c->progressive && c->tense == TENSE_PRESENT;
            met[IMPERFECT] += c->progressive && c->tense == TENSE_PAST;
            met[TALK] += object && c->verb->frame == FRAME_TO;
            met[SPEAKER] += corpus_is_speaker(c->object.pronoun);
        }
    }
    for (int kind = 0; kind < KINDS; kind++)
        CHECK(met[kind] > SENTENCES / 400, "%s: only %d", names[kind], met[kind]);
}

static void text_and_tokens_are_the_same(void)
{
    const uint64_t seed = test_seed(15);
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(seed, CORPUS_TRAIN, n, &pair, NULL);
        for (int side = 0; side < CORPUS_SIDES; side++) {
            char text[CORPUS_TEXT_MAX], buffer[CORPUS_TEXT_MAX];
            corpus_sentence again;
            text_of(&pair, (corpus_side)side, text);
            CHECK(corpus_tokenise((corpus_side)side, text, buffer, &again) &&
                      same_tokens(&pair.side[side], &again),
                  "%s", text);
        }
    }
}

static void tokeniser_corners(void)
{
    char buffer[CORPUS_TEXT_MAX], text[CORPUS_TEXT_MAX], longest[2 * CORPUS_TEXT_MAX];
    corpus_sentence sentence;
    CHECK(corpus_tokenise(CORPUS_ENGLISH, "  The CAT, won\u2019t\tsleep!  Why?", buffer, &sentence),
          "refused");
    corpus_detokenise(CORPUS_ENGLISH, &sentence, text);
    CHECK(strcmp(text, "the cat will not sleep why?") == 0, "%s", text);
    CHECK(
        corpus_tokenise(CORPUS_FRENCH, "L'ami qu\u2019elle a vu aujourd'hui ?", buffer, &sentence),
        "refused");
    CHECK(sentence.count == 8, "%d tokens", sentence.count);
    CHECK(corpus_tokenise(CORPUS_ENGLISH, "", buffer, &sentence) && sentence.count == 0, "empty");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK(!corpus_tokenise(CORPUS_ENGLISH, longest, buffer, &sentence), "too long a word");
    for (size_t n = 1; n < 400; n += 2)
        longest[n] = ' ';
    longest[400] = '\0';
    CHECK(!corpus_tokenise(CORPUS_ENGLISH, longest, buffer, &sentence), "too many words");
}

/* Random words of the vocabulary are refused or give a pair; they never crash the parser. */
static void random_words_are_handled(void)
{
    test_random random = {test_seed(16)};
    corpus_vocabulary vocabulary;
    corpus_vocabulary_fill(&vocabulary, CORPUS_ENGLISH);
    const int64_t cases = test_effort(20000);
    for (int64_t n = 0; n < cases; n++) {
        corpus_pair pair;
        corpus_sentence sentence;
        char text[CORPUS_TEXT_MAX], message[CORPUS_MESSAGE_MAX];
        /* A sentence with a few words replaced gets deeper into the parser than random words. */
        corpus_generate(1, CORPUS_TRAIN, (uint64_t)n, &pair, NULL);
        sentence = pair.side[CORPUS_ENGLISH];
        for (int64_t k = test_random_below(&random, 4); k >= 0; k--)
            sentence.tokens[test_random_below(&random, sentence.count)] =
                vocabulary.words[test_random_below(&random, vocabulary.count)];
        corpus_detokenise(CORPUS_ENGLISH, &sentence, text);
        if (!corpus_translate(text, &pair, NULL, message))
            CHECK(message[0] != '\0', "%s: no reason", text);
    }
}

/* The corpus is the same on every machine and in every version: its hash is stored here. */
static void the_corpus_is_fixed(void)
{
    uint64_t hash = 0;
    for (uint64_t n = 0; n < 1000; n++)
        for (int split = 0; split < CORPUS_SPLITS; split++) {
            corpus_pair pair;
            char text[CORPUS_TEXT_MAX];
            corpus_generate(1, (corpus_split)split, n, &pair, NULL);
            for (int side = 0; side < CORPUS_SIDES; side++) {
                text_of(&pair, (corpus_side)side, text);
                hash = corpus_hash(hash, text);
            }
        }
    CHECK(hash == UINT64_C(0x8fc9ed26e41dd9cb), "%#llx", (unsigned long long)hash);
}

static void indices_and_seeds_differ(void)
{
    corpus_pair a, b;
    int same_index = 0, same_seed = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        corpus_generate(1, CORPUS_TRAIN, n, &a, NULL);
        corpus_generate(1, CORPUS_TRAIN, n + 1, &b, NULL);
        same_index += same_pairs(&a, &b);
        corpus_generate(2, CORPUS_TRAIN, n, &b, NULL);
        same_seed += same_pairs(&a, &b);
    }
    CHECK(same_index < 20 && same_seed < 20, "%d %d", same_index, same_seed);
}

/* --------------------------------------------------------------- splits ---- */

typedef struct combination_list {
    corpus_combination *items;
    size_t count;
} combination_list;

static int compare(const void *a, const void *b)
{
    const corpus_combination *x = a, *y = b;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    const int first = strcmp(x->first, y->first);
    return first != 0 ? first : strcmp(x->second, y->second);
}

static combination_list combinations_of(corpus_split split, int sentences)
{
    combination_list list = {
        calloc((size_t)sentences * CORPUS_COMBINATIONS_MAX, sizeof *list.items), 0};
    for (int n = 0; n < sentences && list.items != NULL; n++) {
        corpus_pair pair;
        corpus_derivation d;
        corpus_generate(21, split, (uint64_t)n, &pair, &d);
        list.count += (size_t)corpus_combinations(&d, list.items + list.count);
    }
    if (list.count > 0)
        qsort(list.items, list.count, sizeof *list.items, compare);
    return list;
}

/* Every sentence of valid and test has a combination that no training sentence has. */
static void what_is_held_out_is_never_in_train(void)
{
    const combination_list train = combinations_of(CORPUS_TRAIN, SENTENCES);
    if (!CHECK(train.items != NULL && train.count > 0, "no memory"))
        return;
    for (int split = CORPUS_VALID; split < CORPUS_SPLITS; split++)
        for (int n = 0; n < SENTENCES; n++) {
            corpus_pair pair;
            corpus_derivation d;
            corpus_combination own[CORPUS_COMBINATIONS_MAX];
            int unseen = 0;
            corpus_generate(21, (corpus_split)split, (uint64_t)n, &pair, &d);
            const int count = corpus_combinations(&d, own);
            for (int k = 0; k < count; k++) {
                const bool seen =
                    bsearch(&own[k], train.items, train.count, sizeof own[0], compare) != NULL;
                const corpus_split home = corpus_combination_split(&own[k]);
                unseen += home == (corpus_split)split && !seen;
                CHECK(home == CORPUS_TRAIN || home == (corpus_split)split, "%s %s strayed",
                      own[k].first, own[k].second);
                CHECK(home == CORPUS_TRAIN || !seen, "%s %s was seen in training", own[k].first,
                      own[k].second);
            }
            CHECK(unseen > 0, "%s sentence %d has nothing of its own",
                  corpus_split_name((corpus_split)split), n);
        }
    free(train.items);
}

/* The statistics agree with a plain count, and train contains every word but rare participles. */
static void statistics_are_true(void)
{
    corpus_stats stats;
    corpus_vocabulary english;
    if (!CHECK(corpus_stats_measure(&stats, 3, SENTENCES), "no memory"))
        return;
    corpus_vocabulary_fill(&english, CORPUS_ENGLISH);
    CHECK(stats.shared_combinations == 0 && stats.shared_sentences == 0, "overlap");
    CHECK(stats.vocabulary[CORPUS_ENGLISH] == english.count, "vocabulary");
    CHECK(stats.split[CORPUS_TRAIN].words[CORPUS_ENGLISH] == english.count, "%d English words",
          stats.split[CORPUS_TRAIN].words[CORPUS_ENGLISH]);
    CHECK(stats.split[CORPUS_TRAIN].words[CORPUS_FRENCH] * 100 >=
              stats.vocabulary[CORPUS_FRENCH] * 97,
          "%d French words", stats.split[CORPUS_TRAIN].words[CORPUS_FRENCH]);
    int64_t tokens = 0;
    for (uint64_t n = 0; n < SENTENCES; n++) {
        corpus_pair pair;
        corpus_generate(3, CORPUS_TEST, n, &pair, NULL);
        tokens += pair.side[CORPUS_FRENCH].count;
        CHECK(pair.side[CORPUS_ENGLISH].count <= CORPUS_ENGLISH_MAX, "too long");
    }
    CHECK(stats.split[CORPUS_TEST].tokens[CORPUS_FRENCH] == tokens, "tokens");
}

/* ----------------------------------------------------------- vocabulary ---- */

static void vocabulary_is_sorted_and_complete(void)
{
    for (int side = 0; side < CORPUS_SIDES; side++) {
        corpus_vocabulary v;
        corpus_vocabulary_fill(&v, (corpus_side)side);
        CHECK(v.count > 300 && v.count < CORPUS_WORDS_MAX, "%d words", v.count);
        for (int n = 0; n < v.count; n++) {
            CHECK(n == 0 || strcmp(v.words[n - 1], v.words[n]) < 0, "%s", v.words[n]);
            CHECK(corpus_vocabulary_find(&v, v.words[n]) == n, "%s", v.words[n]);
        }
        CHECK(corpus_vocabulary_find(&v, "xyzzy") == -1, "a word that is none");
        for (uint64_t n = 0; n < SENTENCES; n++) {
            corpus_pair pair;
            corpus_generate(5, CORPUS_VALID, n, &pair, NULL);
            for (int k = 0; k < pair.side[side].count; k++)
                CHECK(corpus_vocabulary_find(&v, pair.side[side].tokens[k]) >= 0, "%s is missing",
                      pair.side[side].tokens[k]);
        }
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_sentence_is_understood);
    RUN(every_token_is_aligned);
    RUN(roles_follow_the_alignment);
    RUN(french_is_elided_and_contracted);
    RUN(french_pronouns_are_in_order);
    RUN(constructions_occur);
    RUN(text_and_tokens_are_the_same);
    RUN(tokeniser_corners);
    RUN(random_words_are_handled);
    RUN(the_corpus_is_fixed);
    RUN(indices_and_seeds_differ);
    RUN(what_is_held_out_is_never_in_train);
    RUN(statistics_are_true);
    RUN(vocabulary_is_sorted_and_complete);
    return test_end();
}
