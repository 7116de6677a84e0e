/* SPDX-License-Identifier: MIT */
/* tokenizer.json: every kind of step, its offsets, templates, decoders, added tokens; and files
 * that are damaged or hostile, which are refused with a message. The expected tokens are those of
 * the library "tokenizers". */
#include "support/test.h"
#include "support/tokens.h"
#include "text/text_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word list is the plainest model: it shows what the steps before it do. */
#define WORDS                                                                                      \
    "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"a\": 1, "  \
    "\"b\": 2, \"ab\": 3, \"e\": 4, \"1\": 5, \"12\": 6, \"-\": 7, \"--\": 8, \"a-\": 9, \"-b\": " \
    "10, "                                                                                         \
    "\"\xe2\x96\x81"                                                                               \
    "a\": 11, \"\xe2\x96\x81"                                                                      \
    "b\": 12, \" \": 13, \"\xc3\xa9\": 14, \"fi\": 15, \"i\xcc\x87\": 16, \"a b\": 17}}"

static mha_tokenizer *words_with(const char *steps)
{
    char json[4000];
    snprintf(json, sizeof json, "{%s%s%s}", steps, steps[0] ? ", " : "", WORDS);
    return open_json(json);
}

/* One text through a normalizer, with white space dividing words. */
static void normalised(const char *normalizer, const char *text, const char *wanted)
{
    char steps[1000];
    snprintf(steps, sizeof steps,
             "\"normalizer\": %s, \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}", normalizer);
    mha_tokenizer *const t = words_with(steps);
    if (t)
        expect_tokens(t, text, 0, wanted);
    mha_tokenizer_free(t);
}

static void divided(const char *pre_tokenizer, const char *text, const char *wanted)
{
    char steps[1000];
    snprintf(steps, sizeof steps, "\"pre_tokenizer\": %s", pre_tokenizer);
    mha_tokenizer *const t = words_with(steps);
    if (t)
        expect_tokens(t, text, 0, wanted);
    mha_tokenizer_free(t);
}

static void normalizers(void)
{
    normalised("null", "a b", "1[0,1] 2[2,3]");
    normalised("{\"type\": \"NFD\"}", "\xc3\xa9", "0[0,2]?");
    normalised("{\"type\": \"NFC\"}", "e\xcc\x81 a", "14[0,1] 1[4,5]");
    normalised("{\"type\": \"NFKC\"}", "\xef\xac\x81", "15[0,3]");
    normalised("{\"type\": \"NFKD\"}", "\xef\xac\x81 a", "15[0,3] 1[4,5]");
    normalised("{\"type\": \"Lowercase\"}", "AB \xc4\xb0", "3[0,2] 16[3,5]");
    normalised("{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFD\"}, "
               "{\"type\": \"StripAccents\"}]}",
               "\xc3\xa9 a", "4[0,2] 1[3,4]");
    normalised("{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}", "  a ",
               "1[2,3]");
    normalised("{\"type\": \"Replace\", \"pattern\": {\"String\": \"xx\"}, \"content\": \"b\"}",
               "axx a", "3[0,3] 1[4,5]");
    normalised("{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"x+\"}, \"content\": \"\"}",
               "axxxb", "3[0,5]");
    normalised("{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Strip\"}, {\"type\": "
               "\"Replace\", \"pattern\": {\"Regex\": \"x*\"}, \"content\": \"a\"}]}",
               "  ", "");
    normalised("{\"type\": \"Prepend\", \"prepend\": \"a\"}", "b", "3[0,1]");
    normalised("{\"type\": \"Nmt\"}", "a\tb\x01", "1[0,1] 2[2,3]");
    normalised("{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": "
               "true, \"strip_accents\": null, \"lowercase\": true}",
               "\xc3\x89 A\xc2\xad"
               "B",
               "4[0,2] 3[3,7]");
}

static void pre_tokenizers(void)
{
    divided("null", "a b", "17[0,3]");
    divided("{\"type\": \"Whitespace\"}", "ab-- a", "3[0,2] 8[2,4] 1[5,6]");
    divided("{\"type\": \"BertPreTokenizer\"}", "ab--", "3[0,2] 7[2,3] 7[3,4]");
    divided("{\"type\": \"Digits\", \"individual_digits\": true}", "a12", "1[0,1] 5[1,2] 0[2,3]?");
    divided("{\"type\": \"Digits\", \"individual_digits\": false}", "a12", "1[0,1] 6[1,3]");
    divided("{\"type\": \"CharDelimiterSplit\", \"delimiter\": \"-\"}", "a-b", "1[0,1] 2[2,3]");
    divided("{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": "
            "\"always\", \"split\": true}",
            "a b", "11[0,1] 12[1,3]");
    divided("{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": "
            "\"never\"}",
            "a b", "1[0,1] 12[1,3]");
    divided("{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, "
            "{\"type\": \"Punctuation\", \"behavior\": \"Isolated\"}]}",
            "a-b a", "1[0,1] 7[1,2] 2[2,3] 1[4,5]");
}

static void behaviors(void)
{
    static const struct {
        const char *behavior, *wanted;
    } cases[] = {{"Removed", "1[0,1] 2[3,4]"},
                 {"Isolated", "1[0,1] 7[1,2] 7[2,3] 2[3,4]"},
                 {"MergedWithPrevious", "9[0,2] 7[2,3] 2[3,4]"},
                 {"MergedWithNext", "1[0,1] 7[1,2] 10[2,4]"},
                 {"Contiguous", "1[0,1] 8[1,3] 2[3,4]"}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char step[200];
        snprintf(step, sizeof step,
                 "{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"%s\", "
                 "\"invert\": false}",
                 cases[n].behavior);
        divided(step, "a--b", cases[n].wanted);
        snprintf(step, sizeof step,
                 "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[^-]+|-(?=-)|-\"}, "
                 "\"behavior\": \"%s\", \"invert\": true}",
                 cases[n].behavior);
        if (strcmp(cases[n].behavior, "Removed") == 0)
            divided(step, "a--b", "1[0,1] 7[1,2] 7[2,3] 2[3,4]");
        snprintf(step, sizeof step, "{\"type\": \"Punctuation\", \"behavior\": \"%s\"}",
                 cases[n].behavior);
        divided(step, "a--b", cases[n].wanted);
    }
}

/* ---------------------------------------------------------- added tokens ----- */

static void added_tokens(void)
{
    mha_tokenizer *const t = words_with(
        "\"normalizer\": {\"type\": \"Lowercase\"}, "
        "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"added_tokens\": ["
        "{\"id\": 20, \"content\": \"<m>\", \"special\": true, \"normalized\": false}, "
        "{\"id\": 21, \"content\": \"<m>x\", \"special\": false, \"normalized\": false}, "
        "{\"id\": 22, \"content\": \"<Low>\", \"special\": false, \"normalized\": true}, "
        "{\"id\": 23, \"content\": \"one\", \"single_word\": true, \"normalized\": false}, "
        "{\"id\": 24, \"content\": \"<l>\", \"lstrip\": true, \"normalized\": false}, "
        "{\"id\": 25, \"content\": \"<r>\", \"rstrip\": true, \"normalized\": false}, "
        "{\"id\": 99, \"content\": \"ab\", \"normalized\": false}]");
    if (!t)
        return;
    expect_tokens(t, "a<m>b", 0, "1[0,1] 20[1,4]! 2[4,5]");
    expect_tokens(t, "a<m>xb", 0, "1[0,1] 21[1,5] 2[5,6]");
    expect_tokens(t, "<m><m>", 0, "20[0,3]! 20[3,6]!");
    expect_tokens(t, "a<LOW>b <M>", 0, "1[0,1] 22[1,6] 2[6,7] 0[8,11]?");
    expect_tokens(t, "one tone one!", 0, "23[0,3] 0[4,8]? 23[9,12] 0[12,13]?");
    expect_tokens(t, "a  <l> b", 0, "1[0,1] 24[1,6] 2[7,8]");
    expect_tokens(t, "a <r>  b", 0, "1[0,1] 25[2,7] 2[7,8]");
    /* The model has this piece already, with another id. */
    expect_tokens(t, "bab", 0, "2[0,1] 3[1,3]");
    expect_tokens(t, "a<m>", MHA_TEXT_PLAIN, "0[0,4]?");
    CHECK(mha_tokenizer_size(t) == 26 && mha_tokenizer_find(t, "<Low>") == 22, "size and id");
    CHECK(!mha_tokenizer_piece(t, 18), "an id without a piece");
    mha_tokenizer_free(t);
}

/* ---------------------------------------------------------------- models ----- */

#define BPE_VOCABULARY                                                                      \
    "\"vocab\": {\"<unk>\": 0, \"a\": 1, \"b\": 2, \"ab\": 3, \"abab\": 4, \"<0xC3>\": 5, " \
    "\"<0xA9>\": "                                                                          \
    "6}, \"merges\": "

static void bpe_models(void)
{
    static const char *const merges[] = {"[\"a b\", \"ab ab\"]",
                                         "[[\"a\", \"b\"], [\"ab\", \"ab\"]]"};
    for (int n = 0; n < 2; n++) {
        char json[600];
        snprintf(json, sizeof json,
                 "{\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"fuse_unk\": true, "
                 "\"byte_fallback\": true, " BPE_VOCABULARY "%s}}",
                 merges[n]);
        mha_tokenizer *const t = open_json(json);
        if (!t)
            continue;
        expect_tokens(t, "ababa", 0, "4[0,4] 1[4,5]+");
        expect_tokens(t, "axyb\xc3\xa9", 0, "1[0,1] 0[1,3]+? 2[3,4]+ 5[4,6]+ 6[4,6]+");
        expect_text(t, (const int32_t[]){4, 1, -1}, 0, "abab a");
        mha_tokenizer_free(t);
    }
    mha_tokenizer *const plain =
        open_json("{\"model\": {" BPE_VOCABULARY "[\"a b\"], \"ignore_merges\": true}}");
    expect_tokens(plain, "abab", 0, "4[0,4]");
    expect_tokens(plain, "xabaxb", 0, "3[0,2] 3[2,4]+");
    mha_tokenizer_free(plain);
}

static void affixes(void)
{
    mha_tokenizer *const t =
        open_json("{\"model\": {\"type\": \"BPE\", \"continuing_subword_prefix\": \"##\", "
                  "\"end_of_word_suffix\": \"</w>\", \"vocab\": {\"a\": 0, \"##b\": 1, "
                  "\"##b</w>\": 2, \"ab\": 3, "
                  "\"abb</w>\": 4, \"a</w>\": 5}, \"merges\": [\"a ##b\", \"ab ##b</w>\"]}, "
                  "\"decoder\": {\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}, "
                  "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}}");
    expect_tokens(t, "abb a", 0, "4[0,3] 5[4,5]");
    expect_tokens(t, "ab", 0, "0[0,1] 2[1,2]+");
    expect_text(t, (const int32_t[]){4, 5, -1}, 0, "abb a");
    mha_tokenizer_free(t);
}

static void unigram_model(void)
{
    mha_tokenizer *const t = open_json(
        "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", "
        "-1], "
        "[\"b\", -1.5], [\"ab\", -2], [\"\xe2\x96\x81\", -3], [\"\xe2\x96\x81"
        "a\", -2.5]]}, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": "
        "\"\xe2\x96\x81\", "
        "\"prepend_scheme\": \"always\"}, \"decoder\": {\"type\": \"Metaspace\", \"replacement\": "
        "\"\xe2\x96\x81\", \"prepend_scheme\": \"always\"}}");
    expect_tokens(t, "ab a", 0, "5[0,1] 2[1,2]+ 5[2,4]");
    expect_tokens(t, "zzb", 0, "4[0,1] 0[0,2]+? 2[2,3]+");
    expect_text(t, (const int32_t[]){5, 2, 5, -1}, 0, "ab a");
    CHECK(strcmp(mha_tokenizer_kind(t), "unigram") == 0, "kind %s", mha_tokenizer_kind(t));
    mha_tokenizer_free(t);
}

/* -------------------------------------------------------------- templates ----- */

#define MARKED                                                                                \
    "\"added_tokens\": [{\"id\": 20, \"content\": \"<s>\", \"special\": true}, {\"id\": 21, " \
    "\"content\": \"</s>\", \"special\": true}], "                                            \
    "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"post_processor\": "

static void templates(void)
{
    mha_tokenizer *t = words_with(
        MARKED
        "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", "
        "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": "
        "[{\"Sequence\": "
        "{\"id\": \"B\", \"type_id\": 1}}, {\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, "
        "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"special_tokens\": {\"<s>\": {\"id\": "
        "\"<s>\", \"ids\": [20, 21], \"tokens\": [\"<s>\", \"</s>\"]}}}");
    expect_tokens(t, "a", MHA_TEXT_MARKS, "20[]! 21[]! 1[0,1]");
    expect_tokens(t, "a", 0, "1[0,1]");
    expect_pair(t, "a", "b", "2[0,1]:1 20[]! 21[]! 1[0,1]");
    mha_tokenizer_free(t);
    t = words_with(MARKED
                   "{\"type\": \"BertProcessing\", \"sep\": [\"</s>\", 21], \"cls\": [\"<s>\", "
                   "20]}");
    expect_pair(t, "a", "b", "20[]! 1[0,1] 21[]! 2[0,1]:1 21[]!:1");
    mha_tokenizer_free(t);
    t = words_with(MARKED "{\"type\": \"RobertaProcessing\", \"sep\": [\"</s>\", 21], \"cls\": "
                          "[\"<s>\", 20], \"trim_offsets\": true, \"add_prefix_space\": false}");
    expect_pair(t, "a", "b", "20[]! 1[0,1] 21[]! 21[]! 2[0,1]:1 21[]!");
    mha_tokenizer_free(t);
}

static void decoders(void)
{
    static const struct {
        const char *decoder, *wanted;
    } cases[] = {
        {"null", "a - ab"},
        {"{\"type\": \"Fuse\"}", "a-ab"},
        {"{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"xy\"}",
         "xy-xyb"},
        {"{\"type\": \"Strip\", \"content\": \"a\", \"start\": 1, \"stop\": 0}", "-b"},
        {"{\"type\": \"WordPiece\", \"prefix\": \"a\", \"cleanup\": false}", "a -b"},
        {"{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, {\"type\": \"Strip\", "
         "\"content\": \"b\", \"start\": 0, \"stop\": 1}, {\"type\": \"ByteFallback\"}]}",
         "a-a"},
        {"{\"type\": \"ByteLevel\"}", "a-ab"}};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char step[300];
        snprintf(step, sizeof step, "\"decoder\": %s", cases[n].decoder);
        mha_tokenizer *const t = words_with(step);
        if (t)
            expect_text(t, (const int32_t[]){1, 7, 3, -1}, 0, cases[n].wanted);
        mha_tokenizer_free(t);
    }
}

/* -------------------------------------------------------------- bad files ----- */

static void refused(const char *json, const char *part)
{
    char message[400];
    const mha_status status = refusal("tokenizer.json", json, message, sizeof message);
    CHECK(status == MHA_ERR_FORMAT, "status %d for %s", (int)status, json);
    CHECK(strstr(message, part), "\"%s\" does not say \"%s\"", message, part);
    CHECK(strstr(message, "tokenizer.json: ") || part[0] == 0, "\"%s\" has no path", message);
}

static void damaged_files(void)
{
    refused("", "");
    refused("[]", "model");
    refused("{\"model\": {\"type\": \"BPE\"}}", "model.vocab");
    refused("{\"model\": {\"type\": \"Magic\"}}", "Magic");
    refused("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}}}", "merges");
    refused("{\"model\": {\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}", "same id 0");
    refused("{\"model\": {\"vocab\": {\"a\": -1}, \"merges\": []}}", "-1");
    refused("{\"model\": {\"vocab\": {\"a\": 99999999}, \"merges\": []}}", "99999999");
    refused("{\"model\": {\"vocab\": {\"a\": 1.5}, \"merges\": []}}", "not an integer");
    refused("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [\"a x\"]}}", "merge 0: \"x\"");
    refused("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [\"a a\"]}}", "merge 0: \"aa\"");
    refused("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [\"aa\"]}}", "merge 0");
    refused("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [\"a  a\"]}}", "merge 0");
    refused("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [[\"a\"]]}}", "merge 0");
    refused("{\"model\": {\"vocab\": {\"a\": 0}, \"merges\": [7]}}", "merge 0");
    refused("{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}", "[UNK]");
    refused("{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0}, "
            "\"max_input_chars_per_word\": 100000000}}",
            "max_input_chars_per_word");
    refused("{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", "element 0");
    refused("{\"model\": {\"type\": \"Unigram\", \"unk_id\": 5, \"vocab\": [[\"a\", 0]]}}",
            "unk_id");
    refused("{\"added_tokens\": [{\"id\": 1, \"content\": \"x\"}], " WORDS "}", "in use");
    refused("{\"added_tokens\": [{\"id\": 1000000, \"content\": \"x\"}], " WORDS "}",
            "out of range");
    refused("{\"model\": {\"vocab\": {\"a\": 1000000}, \"merges\": []}}", "1000000");
    refused("{\"added_tokens\": [{\"id\": -1, \"content\": \"x\"}], " WORDS "}", "added token 0");
    refused("{\"added_tokens\": [{\"id\": 77}], " WORDS "}", "added token 0");
}

static void unknown_parts(void)
{
    refused("{\"normalizer\": {\"type\": \"Zip\"}, " WORDS "}", "normalizer \"Zip\"");
    refused("{\"pre_tokenizer\": {\"type\": \"Zip\"}, " WORDS "}", "pre-tokenizer \"Zip\"");
    refused("{\"post_processor\": {\"type\": \"Zip\"}, " WORDS "}", "post-processor \"Zip\"");
    refused("{\"decoder\": {\"type\": \"CTC\"}, " WORDS "}", "decoder \"CTC\"");
    refused("{\"normalizer\": 5, " WORDS "}", "normalizer");
    refused("{\"normalizer\": {\"type\": \"Sequence\"}, " WORDS "}", "Sequence");
    refused("{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"?\"}, " WORDS
            "}",
            "precompiled_charsmap");
    refused("{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}}, " WORDS
            "}",
            "pattern \"(\"");
    refused("{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"\"}}, " WORDS
            "}",
            "empty pattern");
    refused("{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, "
            "\"behavior\": \"Sideways\"}, " WORDS "}",
            "Sideways");
    refused("{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"ab\"}, " WORDS "}",
            "replacement");
    refused(
        "{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
        "{\"id\": \"X\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {}}, " WORDS "}",
        "\"X\"");
    refused("{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": "
            "{\"id\": \"A\"}}, {\"Sequence\": {\"id\": \"A\"}}], \"pair\": []}, " WORDS "}",
            "template");
    refused("{\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"x\", 77], \"cls\": "
            "[\"x\", 1]}, " WORDS "}",
            "77");
}

/* Nested sequences end at a limit, and so do steps. */
static void many_steps(void)
{
    text_buffer json = {0};
    text_buffer_add_string(&json, "{\"normalizer\": ");
    for (int n = 0; n < 12; n++)
        text_buffer_add_string(&json, "{\"type\": \"Sequence\", \"normalizers\": [");
    for (int n = 0; n < 12; n++)
        text_buffer_add_string(&json, "]}");
    text_buffer_add_string(&json, ", " WORDS "}");
    refused(json.bytes, "Sequence");
    json.length = 0;
    text_buffer_add_string(&json, "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [");
    for (int n = 0; n < 40; n++)
        text_buffer_add_string(&json, n ? ",{\"type\": \"NFC\"}" : "{\"type\": \"NFC\"}");
    text_buffer_add_string(&json, "]}, " WORDS "}");
    refused(json.bytes, "32 normalizers");
    text_buffer_free(&json);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(normalizers);
    RUN(pre_tokenizers);
    RUN(behaviors);
    RUN(added_tokens);
    RUN(bpe_models);
    RUN(affixes);
    RUN(unigram_model);
    RUN(templates);
    RUN(decoders);
    RUN(damaged_files);
    RUN(unknown_parts);
    RUN(many_steps);
    return test_end();
}
