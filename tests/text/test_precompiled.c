/* SPDX-License-Identifier: MIT */
/* The rules that replace characters (text/precompiled.h): matches, graphemes, and damaged bytes. */
#include <string.h>

#include "support/sentencepiece_builder.h"
#include "support/test.h"
#include "text/precompiled.h"

static const charsmap_rule some_rules[] = {
    {"a", "x"},
    {"abc", "long"},
    {"\xef\xac\x81", "fi"},    /* U+FB01 */
    {"e\xcc\x81", "\xc3\xa9"}, /* e and U+0301: U+00E9 */
    {"e", "E"},
    {"\xe2\x80\x8b", ""},  /* U+200B */
    {"\xe3\x80\x80", " "}, /* U+3000 */
};
enum { RULES = sizeof some_rules / sizeof some_rules[0] };

static unsigned char bytes[SENTENCEPIECE_BYTES_MAX];

static precompiled *make_rules(void)
{
    precompiled *rules = NULL;
    const size_t size = charsmap_build(bytes, some_rules, RULES);
    CHECK(precompiled_create(&rules, bytes, size) == MHA_OK, "the rules were refused");
    return rules;
}

static void check_match(const precompiled *rules, const char *text, size_t matched, const char *by)
{
    const replacement r = precompiled_longest(rules, text, strlen(text));
    CHECK(r.matched == matched, "%s: %zu bytes match, not %zu", text, r.matched, matched);
    if (matched > 0)
        CHECK(r.length == strlen(by) && memcmp(r.text, by, r.length) == 0, "%s: %.*s", text,
              (int)r.length, r.text);
}

static void the_longest_rule_is_taken(void)
{
    precompiled *const rules = make_rules();
    check_match(rules, "a", 1, "x");
    check_match(rules, "ab", 1, "x");
    check_match(rules, "abc", 3, "long");
    check_match(rules, "abcd", 3, "long");
    check_match(rules, "\xef\xac\x81x", 3, "fi");
    check_match(rules, "\xe2\x80\x8bx", 3, "");
    check_match(rules, "b", 0, NULL);
    check_match(rules, "\xef\xac", 0, NULL);
    CHECK(precompiled_longest(rules, "", 0).matched == 0, "an empty text has a match");
    CHECK(precompiled_longest(rules, "\0a", 2).matched == 0, "a zero byte has a match");
    precompiled_free(rules);
}

typedef struct collected {
    char text[256];
    size_t used, at;
} collected;

static bool collect(void *context, size_t begin, size_t end, const char *by, size_t length)
{
    collected *const c = context;
    CHECK(begin == c->at && end > begin, "a part [%zu, %zu) after %zu", begin, end, c->at);
    memcpy(c->text + c->used, by, length);
    c->used += length;
    c->at = end;
    return true;
}

static void check_graphemes(const precompiled *rules, const char *text, const char *wanted)
{
    collected c = {.used = 0};
    CHECK(precompiled_graphemes(rules, text, strlen(text), collect, &c), "%s: ended early", text);
    CHECK(c.at == strlen(text), "%s: %zu bytes were replaced", text, c.at);
    CHECK(c.used == strlen(wanted) && memcmp(c.text, wanted, c.used) == 0, "%s: %.*s, not %s", text,
          (int)c.used, c.text, wanted);
}

/* A cluster is replaced by the shortest match at its beginning, and what remains of it is lost: so
 * the library does it. */
static void graphemes_are_replaced_whole(void)
{
    precompiled *const rules = make_rules();
    check_graphemes(rules, "", "");
    check_graphemes(rules, "abc", "xbc");
    check_graphemes(rules, "\xef\xac\x81!", "fi!");
    check_graphemes(rules, "e\xcc\x81", "E");
    check_graphemes(rules, "a\xcc\x81z", "xz");
    check_graphemes(rules, "a\xe1\xab\x90z", "xz"); /* U+1AD0, of Unicode 17 */
    check_graphemes(rules, "z\xcc\x81z", "z\xcc\x81z");
    /* Six bytes or more: each character by itself. */
    check_graphemes(rules, "a\xcc\x81\xcc\x81\xcc\x81z", "x\xcc\x81\xcc\x81\xcc\x81z");
    precompiled_free(rules);
}

static bool refuse(void *context, size_t begin, size_t end, const char *by, size_t length)
{
    (void)begin, (void)end, (void)by, (void)length;
    ++*(int *)context;
    return false;
}

static void the_caller_can_end_it(void)
{
    precompiled *const rules = make_rules();
    int calls = 0;
    CHECK(!precompiled_graphemes(rules, "abc", 3, refuse, &calls), "went on");
    CHECK(calls == 1, "%d calls", calls);
    precompiled_free(rules);
}

static void sizes_are_checked(void)
{
    precompiled *rules = NULL;
    const size_t size = charsmap_build(bytes, some_rules, RULES);
    uint32_t trie_bytes;
    memcpy(&trie_bytes, bytes, 4);
    for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 61) {
        const mha_status status = precompiled_create(&rules, bytes, cut);
        const mha_status wanted =
            cut > 4 && cut >= 4 + (size_t)trie_bytes ? MHA_OK : MHA_ERR_FORMAT;
        CHECK(status == wanted, "%zu of %zu bytes: %d", cut, size, status);
        precompiled_free(rules);
    }
    memset(bytes, 0xff, 4);
    CHECK(precompiled_create(&rules, bytes, size) == MHA_ERR_FORMAT, "a trie of 4 GB was accepted");
    CHECK(rules == NULL, "rules in spite of an error");
}

/* Whatever the units are, a search ends and stays inside of them. */
static void damaged_units_are_harmless(void)
{
    static const char text[] = "abc e\xcc\x81 \xef\xac\x81 \xe3\x80\x80 abcabc";
    const size_t size = charsmap_build(bytes, some_rules, RULES);
    test_random random = {test_seed(5)};
    const int64_t rounds = test_effort(3000);
    static unsigned char damaged[SENTENCEPIECE_BYTES_MAX];
    for (int64_t round = 0; round < rounds; round++) {
        precompiled *rules = NULL;
        collected c = {.used = 0};
        memcpy(damaged, bytes, size);
        for (int n = 0; n < 40; n++)
            damaged[4 + test_random_below(&random, (int64_t)size - 4)] ^=
                (unsigned char)(1u << test_random_below(&random, 8));
        if (!CHECK(precompiled_create(&rules, damaged, size) == MHA_OK, "refused"))
            return;
        for (size_t at = 0; at < sizeof text - 1; at++) {
            const replacement r = precompiled_longest(rules, text + at, sizeof text - 1 - at);
            CHECK(r.matched <= sizeof text - 1 - at && r.length <= 1024, "%zu: %zu bytes", at,
                  r.matched);
        }
        precompiled_graphemes(rules, text, 3, collect, &c);
        precompiled_free(rules);
    }
}

static void long_replacements_are_ignored(void)
{
    const charsmap_rule one[] = {{"a", ""}};
    static unsigned char large[SENTENCEPIECE_BYTES_MAX];
    precompiled *rules = NULL;
    const size_t size = charsmap_build(large, one, 1);
    memset(large + size - 1, 'y', 1025);
    CHECK(precompiled_create(&rules, large, size + 1024) == MHA_OK, "refused");
    CHECK(precompiled_longest(rules, "a", 1).matched == 0, "1025 bytes were accepted");
    precompiled_free(rules);
    CHECK(precompiled_create(&rules, large, size + 1023) == MHA_OK, "refused");
    CHECK(precompiled_longest(rules, "a", 1).length == 1024, "1024 bytes were not accepted");
    precompiled_free(rules);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(the_longest_rule_is_taken);
    RUN(graphemes_are_replaced_whole);
    RUN(the_caller_can_end_it);
    RUN(sizes_are_checked);
    RUN(damaged_units_are_harmless);
    RUN(long_replacements_are_ignored);
    return test_end();
}
