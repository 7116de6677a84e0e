/* SPDX-License-Identifier: MIT */
/*
 * Bytes as a tokenizer.json and a text. Whatever they are, reading ends; what is accepted encodes
 * the text into tokens whose ids exist and whose places are in the text, and decodes them again.
 *
 *      clang -fsanitize=fuzzer,address ... fuzz_tokenizer.c    a libFuzzer target
 *      cc -DFUZZ_STANDALONE ... fuzz_tokenizer.c test.c        a test with pseudo-random files
 *
 * The JSON ends at the first zero byte; the text follows.
 */
#include "support/fuzz.h"
#include "text/tokenizer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_tokens(const mha_tokenizer *t, const mha_tokens *tokens, size_t length)
{
    for (ptrdiff_t n = 0; n < tokens->count; n++) {
        const mha_token *const token = &tokens->tokens[n];
        if (!mha_tokenizer_piece(t, token->id))
            fuzz_die("a token without a piece");
        if (token->begin > token->end || token->end > length)
            fuzz_die("a token outside of the text");
    }
}

static void use(const mha_tokenizer *t, const char *text, size_t length)
{
    mha_tokens tokens;
    const mha_status status = mha_tokenizer_encode(t, text, length, MHA_TEXT_MARKS, &tokens);
    if (status == MHA_ERR_LENGTH)
        return; /* a pattern took too many steps */
    if (status != MHA_OK)
        fuzz_die("encoding failed");
    check_tokens(t, &tokens, length);
    int32_t *const ids = malloc(((size_t)tokens.count + 1) * sizeof *ids);
    for (ptrdiff_t n = 0; n < tokens.count; n++)
        ids[n] = tokens.tokens[n].id;
    char *decoded = NULL;
    size_t decoded_length;
    const mha_status back =
        mha_tokenizer_decode(t, ids, tokens.count, 0, &decoded, &decoded_length);
    if (back != MHA_OK && back != MHA_ERR_LENGTH)
        fuzz_die("decoding failed");
    if (back == MHA_OK && decoded[decoded_length] != '\0')
        fuzz_die("a text that does not end");
    mha_text_free(decoded);
    free(ids);
    mha_tokens_free(&tokens);
}

static bool fuzz_one(const uint8_t *bytes, size_t size)
{
    const uint8_t *const zero = size ? memchr(bytes, 0, size) : NULL;
    const size_t json = zero ? (size_t)(zero - bytes) : size;
    char message[200];
    tokenizer_reader r = {.t = tokenizer_create(),
                          .path = "tokenizer.json",
                          .message = message,
                          .message_size = sizeof message};
    if (!r.t)
        return false;
    const bool ok = read_tokenizer_json_text(&r, (const char *)bytes, json);
    if (ok != (r.status == MHA_OK))
        fuzz_die("result and status disagree");
    if (ok && zero)
        use(r.t, (const char *)zero + 1, size - json - 1);
    mha_tokenizer_free(r.t);
    return ok;
}

/* ------------------------------------------------------- pseudo-random files ----- */

static const char *const normalizers[] = {
    "null",
    "{\"type\":\"NFC\"}",
    "{\"type\":\"NFKD\"}",
    "{\"type\":\"Lowercase\"}",
    "{\"type\":\"BertNormalizer\"}",
    "{\"type\":\"Strip\"}",
    "{\"type\":\"ByteLevel\"}",
    "{\"type\":\"Prepend\",\"prepend\":\"ab\"}",
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*\"},\"content\":\"b\"}",
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":\"StripAccents\"}]}",
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"ab\"},\"content\":\"\"}",
    "{\"type\":\"Nmt\"}"};
static const char *const pre_tokenizers[] = {
    "null",
    "{\"type\":\"Whitespace\"}",
    "{\"type\":\"BertPreTokenizer\"}",
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
    "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"first\"}",
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a|(?=b)\"},\"behavior\":\"MergedWithPrevious\"}",
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"b*\"},\"behavior\":\"Contiguous\"}",
    "{\"type\":\"Digits\"}"};
#define BPE_PIECES "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"?\":3,\"<0xC3>\":4,\"##a\":5,\"##b\":6}"
static const char *const models[] = {
    "{" BPE_PIECES ",\"merges\":[\"a b\"],\"unk_token\":\"?\",\"byte_fallback\":true}",
    "{" BPE_PIECES ",\"merges\":[[\"a\",\"##b\"]],\"continuing_subword_prefix\":\"##\"}",
    "{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2,\"ab\":3}}",
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"ab\",-1.5]]}",
    "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1}}"};
#define DECODER(type, more) "\"decoder\":{\"type\":\"" type "\"" more "},"
#define ADDED(more) "\"added_tokens\":[{\"id\":9," more "}],"
#define POST(type, more) "\"post_processor\":{\"type\":\"" type "\"," more "},"
static const char *const others[] = {
    "",
    DECODER("ByteLevel", ""),
    DECODER("WordPiece", ""),
    DECODER("Metaspace", ",\"replacement\":\"_\""),
    DECODER("ByteFallback", ""),
    DECODER("Strip", ",\"content\":\"a\",\"start\":2,\"stop\":2"),
    ADDED("\"content\":\"A\",\"lstrip\":true,\"normalized\":true"),
    ADDED("\"content\":\"bb\",\"rstrip\":true,\"single_word\":true"),
    POST("ByteLevel", "\"trim_offsets\":true"),
    POST("BertProcessing", "\"sep\":[\"a\",0],\"cls\":[\"b\",1]")};

#define PICK(random, list) list[test_random_below(random, (int64_t)(sizeof list / sizeof list[0]))]

/* A file, a zero byte and a text of letters, marks and bytes; rarely with a wrong byte. */
static size_t random_case(test_random *random, char *bytes, size_t room)
{
    static const char *const parts[] = {"a",
                                        "b",
                                        "ab",
                                        " ",
                                        "A",
                                        "1",
                                        "_",
                                        "\n",
                                        "-",
                                        "e",
                                        "bb",
                                        "  ",
                                        "\xc3\xa9",
                                        "\xff",
                                        "\xe2\x82",
                                        "\xcc\x81",
                                        "\xe4\xb8\xad",
                                        "\xef\xac\x81",
                                        "\xc4\xb0",
                                        "\xf0\x9f\x98\x80"};
    size_t used =
        (size_t)snprintf(bytes, room, "{%s\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":%s}",
                         PICK(random, others), PICK(random, normalizers),
                         PICK(random, pre_tokenizers), PICK(random, models));
    if (test_random_below(random, 5) == 0)
        bytes[test_random_below(random, (int64_t)used)] = (char)test_random_u64(random);
    used = strlen(bytes) + 1;
    for (int64_t n = test_random_below(random, 40); n > 0; n--)
        used += (size_t)snprintf(bytes + used, room - used, "%s", PICK(random, parts));
    return used;
}

static void pseudo_random_files(void)
{
    char bytes[2000];
    test_random random = {test_seed(11)};
    const int64_t rounds = test_effort(20000);
    int64_t valid = 0;
    for (int64_t n = 0; n < rounds; n++)
        valid += fuzz_one((const uint8_t *)bytes, random_case(&random, bytes, sizeof bytes));
    CHECK(rounds < 1000 || valid > rounds / 3, "only %lld of %lld were read", (long long)valid,
          (long long)rounds);
}

FUZZ_TARGET(fuzz_one, pseudo_random_files)
