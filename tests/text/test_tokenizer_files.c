/* SPDX-License-Identifier: MIT */
/* Which file a path means, older files (vocab.json, ranks of tiktoken), tokenizers inside of GGUF
 * files, marks and chats from the files beside a tokenizer; and damaged ones of each. */
#include "support/gguf_builder.h"
#include "support/test.h"
#include "support/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char wordlist[] =
    "{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\": 0, "
    "\"a\": 1, "
    "\"<s>\": 2, \"</s>\": 3, \"<|im_start|>\": 4, \"<|im_end|>\": 5, \"BEGIN\": 6, \"END\": 7}}, "
    "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}}";

static void status_of(const temp_folder *folder, const char *name, mha_status wanted,
                      const char *part)
{
    char message[400] = "";
    mha_tokenizer *t = NULL;
    const char *const path = name[0] ? temp_path(folder, name) : folder->path;
    const mha_status status = mha_tokenizer_open(&t, path, message, sizeof message);
    CHECK(status == wanted && !t, "%s: status %d (%s)", name, (int)status, message);
    CHECK(strstr(message, part), "%s: \"%s\" does not say \"%s\"", name, message, part);
    mha_tokenizer_free(t);
}

/* ----------------------------------------------------------------- folders ----- */

static void folders(void)
{
    const temp_folder folder = temp_folder_new();
    status_of(&folder, "", MHA_ERR_FORMAT, "tokenizer.json");
    status_of(&folder, "nothing.json", MHA_ERR_FILE, "nothing.json");
    put_file(&folder, "weights.dat", "x");
    status_of(&folder, "weights.dat", MHA_ERR_FORMAT, "*.gguf");
    put_file(&folder, "vocab.txt", "[UNK]\na\n");
    mha_tokenizer *t = open_tokenizer(&folder, "");
    CHECK(mha_tokenizer_size(t) == 2, "vocab.txt");
    mha_tokenizer_free(t);
    /* tokenizer.json comes first. */
    put_file(&folder, "tokenizer.json", wordlist);
    t = open_tokenizer(&folder, "");
    CHECK(mha_tokenizer_size(t) == 8, "tokenizer.json");
    mha_tokenizer_free(t);
    CHECK(mha_tokenizer_open(NULL, "x", NULL, 0) == MHA_ERR_NULL, "no tokenizer");
    CHECK(mha_tokenizer_open(&t, NULL, NULL, 0) == MHA_ERR_NULL && !t, "no path");
    temp_folder_free(&folder);
}

static void settings(void)
{
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "tokenizer.json", wordlist);
    mha_tokenizer *t = open_tokenizer(&folder, "");
    CHECK(mha_tokenizer_mark(t, MHA_MARK_BEGIN) == 2, "<s> by its name");
    CHECK(mha_tokenizer_mark(t, MHA_MARK_TURN_END) == 5, "<|im_end|> by its name");
    mha_tokenizer_free(t);
    put_file(&folder, "tokenizer_config.json",
             "{\"bos_token\": \"BEGIN\", \"add_bos_token\": true, \"chat_template\": "
             "\"{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% "
             "endfor %}\"}");
    put_file(&folder, "special_tokens_map.json",
             "{\"bos_token\": \"a\", \"eos_token\": {\"content\": \"END\"}}");
    t = open_tokenizer(&folder, "");
    CHECK(mha_tokenizer_mark(t, MHA_MARK_BEGIN) == 6, "tokenizer_config.json comes first");
    CHECK(mha_tokenizer_mark(t, MHA_MARK_END) == 7, "special_tokens_map.json");
    expect_tokens(t, "a a", MHA_TEXT_MARKS, "6[] 1[0,1] 1[2,3]");
    expect_pair(t, "a", "a", "6[] 1[0,1] 6[]:1 1[0,1]:1");
    char *text = NULL;
    size_t length = 0;
    const mha_chat_message messages[] = {{"user", "Hi"}};
    CHECK(mha_tokenizer_chat(t, messages, 1, 0, &text, &length, NULL, 0) == MHA_OK, "chat");
    CHECK(text && strcmp(text, "<|im_start|>user\nHi<|im_end|>\n") == 0, "chat: %s", text);
    mha_text_free(text);
    mha_tokenizer_free(t);
    put_file(&folder, "tokenizer_config.json", "{");
    status_of(&folder, "", MHA_ERR_FORMAT, "tokenizer_config.json");
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------- vocab.json ----- */

static void vocab_json(void)
{
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<s>\": 3, \"</s>\": 4}");
    status_of(&folder, "vocab.json", MHA_ERR_FILE, "merges.txt");
    put_file(&folder, "merges.txt", "#version: 0.2\na b\n\n");
    mha_tokenizer *const t = open_tokenizer(&folder, "");
    expect_tokens(t, "aab", MHA_TEXT_MARKS, "3[]! 0[0,1] 2[1,3]+ 4[]!");
    expect_pair(t, "a", "b", "3[]! 0[0,1] 4[]! 4[]! 1[0,1]:1 4[]!");
    mha_tokenizer_free(t);
    put_file(&folder, "merges.txt", "a b\na c\n");
    status_of(&folder, "", MHA_ERR_FORMAT, "merges.txt: merge 2: \"c\"");
    put_file(&folder, "merges.txt", "ab\n");
    status_of(&folder, "", MHA_ERR_FORMAT, "merge 1");
    put_file(&folder, "vocab.json", "[1]");
    status_of(&folder, "", MHA_ERR_FORMAT, "vocab.json");
    put_file(&folder, "vocab.json", "{\"a\": 0, \"b\": 0}");
    status_of(&folder, "", MHA_ERR_FORMAT, "id 0");
    temp_folder_free(&folder);
}

static void old_names(void)
{
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "encoder.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}");
    put_file(&folder, "vocab.bpe", "#version: 0.2\na b\n");
    mha_tokenizer *const t = open_tokenizer(&folder, "");
    expect_tokens(t, "ab", MHA_TEXT_MARKS, "2[0,2]");
    mha_tokenizer_free(t);
    temp_folder_free(&folder);
}

/* --------------------------------------------------------------- tiktoken ----- */

static void encode_base64(const unsigned char *bytes, size_t count, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t n = 0; n < count; n += 3) {
        const unsigned b1 = n + 1 < count ? bytes[n + 1] : 0, b2 = n + 2 < count ? bytes[n + 2] : 0;
        const unsigned bits = (unsigned)bytes[n] << 16 | b1 << 8 | b2;
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = n + 1 < count ? digits[bits >> 6 & 63] : '=';
        *to++ = n + 2 < count ? digits[bits & 63] : '=';
    }
    *to = '\0';
}

/* The number of ranks tells which encoding it is: bytes, a few pieces, and pieces of three bytes
 * that no text here has. */
static void ranks_of_tiktoken(void)
{
    enum { RANKS = 50256 };
    static char text[RANKS * 20];
    size_t used = 0;
    for (int n = 0; n < RANKS; n++) {
        unsigned char bytes[3] = {(unsigned char)n, 0, 0};
        size_t count = 1;
        char piece[8];
        if (n == 256 || n == 257) {
            bytes[0] = n == 256 ? 'h' : 'l';
            bytes[1] = n == 256 ? 'e' : 'o';
            count = 2;
        } else if (n > 257) {
            bytes[0] = 0xff;
            bytes[1] = (unsigned char)(n >> 8);
            bytes[2] = (unsigned char)n;
            count = 3;
        }
        encode_base64(bytes, count, piece);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %d\n", piece, n);
    }
    const temp_folder folder = temp_folder_new();
    put_file(&folder, "r50k.tiktoken", text);
    mha_tokenizer *const t = open_tokenizer(&folder, "r50k.tiktoken");
    expect_tokens(t, "hello\n<|endoftext|>", 0,
                  "256[0,2] 108[2,3]+ 257[3,5]+ 10[5,6] 50256[6,19]!");
    expect_text(t, (const int32_t[]){256, 108, 257, 0xe9, -1}, 0, "hello\xe9");
    mha_tokenizer_free(t);
    put_file(&folder, "x.tiktoken", "IQ== 0\nIg== 1\n");
    status_of(&folder, "x.tiktoken", MHA_ERR_FORMAT, "2 ranks");
    put_file(&folder, "x.tiktoken", "IQ== 0\nIg== 0\n");
    status_of(&folder, "x.tiktoken", MHA_ERR_FORMAT, "line 2");
    static const char *const bad[] = {"IQ==\n",          "I? 0\n", "IQ== x\n", "IQ== -1\n",
                                      "IQ== 99999999\n", " 0\n",   "= 0\n"};
    for (size_t n = 0; n < sizeof bad / sizeof bad[0]; n++) {
        put_file(&folder, "x.tiktoken", bad[n]);
        status_of(&folder, "x.tiktoken", MHA_ERR_FORMAT, "line 1");
    }
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------------ GGUF ----- */

static gguf_builder g;

static mha_tokenizer *open_gguf(void)
{
    const temp_folder folder = temp_folder_new();
    gguf_builder_write(&g, temp_path(&folder, "x.gguf"));
    mha_tokenizer *const t = open_tokenizer(&folder, "x.gguf");
    temp_folder_free(&folder);
    return t;
}

static void refuse_gguf(const char *part)
{
    const temp_folder folder = temp_folder_new();
    gguf_builder_write(&g, temp_path(&folder, "x.gguf"));
    status_of(&folder, "x.gguf", MHA_ERR_FORMAT, part);
    temp_folder_free(&folder);
}

#define KEY(name) "tokenizer.ggml." name
static const char *const tokens[] = {"<|endoftext|>", "a",      "b", "ab", "1",
                                     "\xc4\xa0",      "<user>", NULL};
static const int32_t types[] = {3, 1, 1, 1, 1, 1, 4};
static const char *const merges[] = {"a b", NULL};

static void begin_gpt2(const char *pre)
{
    gguf_builder_free(&g);
    gguf_builder_text(&g, KEY("model"), "gpt2");
    gguf_builder_text(&g, KEY("pre"), pre);
    gguf_builder_texts(&g, KEY("tokens"), tokens);
    gguf_builder_integers(&g, KEY("token_type"), types, 7);
}

static void gguf_gpt2(void)
{
    begin_gpt2("smollm");
    gguf_builder_texts(&g, KEY("merges"), merges);
    gguf_builder_integer(&g, KEY("bos_token_id"), 0);
    gguf_builder_integer(&g, KEY("eos_token_id"), 99);
    gguf_builder_bool(&g, KEY("add_bos_token"), 1);
    gguf_builder_text(&g, "tokenizer.chat_template", "nothing that is known");
    mha_tokenizer *const t = open_gguf();
    if (!t)
        return;
    expect_tokens(t, "ab11<user><|endoftext|>", MHA_TEXT_MARKS,
                  "0[]! 3[0,2] 4[2,3] 4[3,4] 6[4,10] 0[10,23]!");
    CHECK(mha_tokenizer_mark(t, MHA_MARK_BEGIN) == 0, "begin");
    CHECK(mha_tokenizer_mark(t, MHA_MARK_END) == 0, "an id that does not exist, then by name");
    char *text;
    CHECK(mha_tokenizer_chat(t, NULL, 0, 0, &text, NULL, NULL, 0) == MHA_ERR_FLAG, "no chats");
    mha_tokenizer_free(t);
}

/* A file of the cache of huggingface_hub has no suffix. */
static void gguf_without_a_suffix(void)
{
    const temp_folder folder = temp_folder_new();
    begin_gpt2("smollm");
    gguf_builder_texts(&g, KEY("merges"), merges);
    gguf_builder_write(&g, temp_path(&folder, "0f13ac"));
    mha_tokenizer *const t = open_tokenizer(&folder, "0f13ac");
    if (t)
        expect_tokens(t, "ab", 0, "3[0,2]");
    mha_tokenizer_free(t);
    temp_folder_free(&folder);
}

static void gguf_bert(void)
{
    static const char *const pieces[] = {"[UNK]", "[CLS]", "[SEP]", "\xe2\x96\x81play",
                                         "ing",   NULL};
    gguf_builder_free(&g);
    gguf_builder_text(&g, KEY("model"), "bert");
    gguf_builder_texts(&g, KEY("tokens"), pieces);
    mha_tokenizer *const t = open_gguf();
    if (!t)
        return;
    expect_tokens(t, "Playing ing", MHA_TEXT_MARKS, "1[]! 3[0,4] 4[4,7]+ 0[8,11]? 2[]!");
    expect_text(t, (const int32_t[]){3, 4, -1}, 0, "playing");
    mha_tokenizer_free(t);
}

static void damaged_gguf(void)
{
    gguf_builder_free(&g);
    refuse_gguf("no tokenizer");
    gguf_builder_text(&g, KEY("model"), "magic");
    refuse_gguf("magic");
    begin_gpt2("nonsense");
    refuse_gguf("nonsense");
    begin_gpt2("gpt-2");
    refuse_gguf("merges");
    static const char *const bad[] = {"a b", "a c", NULL};
    gguf_builder_texts(&g, KEY("merges"), bad);
    refuse_gguf("merge 1: \"c\"");
    gguf_builder_free(&g);
    gguf_builder_text(&g, KEY("model"), "gpt2");
    gguf_builder_integer(&g, KEY("tokens"), 7);
    refuse_gguf("tokenizer.ggml.tokens");
    gguf_builder_free(&g);
    gguf_builder_text(&g, KEY("model"), "gpt2");
    gguf_builder_texts(&g, KEY("tokens"), tokens);
    gguf_builder_texts(&g, KEY("token_type"), tokens);
    refuse_gguf("token_type");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(folders);
    RUN(settings);
    RUN(vocab_json);
    RUN(old_names);
    RUN(ranks_of_tiktoken);
    RUN(gguf_gpt2);
    RUN(gguf_without_a_suffix);
    RUN(gguf_bert);
    RUN(damaged_gguf);
    return test_end();
}
