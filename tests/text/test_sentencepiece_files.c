/* SPDX-License-Identifier: MIT */
/* The other sources of SentencePiece tokenizers (text/sentencepiece.h): T5's extra ids, Marian's
 * folders, llama2.c's tokenizer.bin and GGUF files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "support/gguf_builder.h"
#include "support/sentencepiece_case.h"
#include "support/temp_files.h"
#include "support/test.h"

static sentencepiece_builder b;

static void write_text(const char *path, const char *text)
{
    CHECK(file_make(path, text, strlen(text)), "%s", path);
}

static void extra_ids_of_t5(void)
{
    const temp_folder folder = temp_folder_new();
    char message[512] = "";
    sentencepiece *sp = NULL;
    small_model(&b, SENTENCEPIECE_UNIGRAM);
    builder_number(&b, TRAINER, BEGIN_ID, -1);
    file_make(temp_path(&folder, "spiece.model"), b.bytes, b.size);
    write_text(temp_path(&folder, "tokenizer_config.json"), "{\"extra_ids\": 3}");
    const char *const path = temp_path(&folder, "spiece.model");
    CHECK(sentencepiece_open(&sp, path, message, 512) == MHA_OK, "%s", message);
    if (sp != NULL) {
        const vocabulary *const v = sentencepiece_vocabulary(sp);
        CHECK(vocab_size(v) == 13, "%d pieces", vocab_size(v));
        CHECK(vocab_find(v, "<extra_id_0>", 12) == 12, "<extra_id_0>");
        CHECK(vocab_find(v, "<extra_id_2>", 12) == 10, "<extra_id_2>");
        CHECK(sentencepiece_get_info(sp).adds_end && !sentencepiece_get_info(sp).adds_begin,
              "the marks");
        check_text(sp, IDS(8, 12), false, "ab<extra_id_0>");
        check_tokens(sp, "ab", "8:0-2");
    }
    sentencepiece_free(sp);
    write_text(temp_path(&folder, "tokenizer_config.json"), "{\"extra_ids\": 5000}");
    CHECK(sentencepiece_open(&sp, temp_path(&folder, "spiece.model"), message, 512) ==
              MHA_ERR_FORMAT,
          "5000 extra ids");
    CHECK(strstr(message, "tokenizer_config.json: extra_ids") != NULL, "%s", message);
    temp_folder_free(&folder);
}

/* Ids of a text through the public interface, with marks around it. */
static void check_ids(const mha_tokenizer *t, const char *text, unsigned flags, const char *wanted)
{
    char written[128] = "";
    size_t used = 0;
    mha_tokens tokens = {0};
    CHECK(mha_tokenizer_encode(t, text, strlen(text), flags, &tokens) == MHA_OK, "%s", text);
    for (ptrdiff_t n = 0; n < tokens.count; n++)
        used += (size_t)snprintf(written + used, sizeof written - used, "%s%d", n ? " " : "",
                                 tokens.tokens[n].id);
    CHECK(strcmp(written, wanted) == 0, "%s: %s, not %s", text, written, wanted);
    mha_tokens_free(&tokens);
}

static void marks_in_a_text_are_found(void)
{
    const temp_folder folder = temp_folder_new();
    char message[512] = "";
    mha_tokenizer *t = NULL;
    small_model(&b, SENTENCEPIECE_BPE);
    file_make(temp_path(&folder, "tokenizer.model"), b.bytes, b.size);
    const char *const path = temp_path(&folder, "tokenizer.model");
    if (CHECK(mha_tokenizer_open(&t, path, message, sizeof message) == MHA_OK, "%s", message)) {
        check_ids(t, "ab</s>ab", MHA_TEXT_MARKS, "1 8 2 8");
        check_ids(t, "ab<unk>ab", MHA_TEXT_MARKS, "1 8 0 8");
        check_ids(t, "ab<s>", MHA_TEXT_MARKS | MHA_TEXT_PLAIN, "1 8 0");
    }
    mha_tokenizer_free(t);
    temp_folder_free(&folder);
}

static void marian_has_ids_of_its_own(void)
{
    const temp_folder folder = temp_folder_new();
    char message[512] = "";
    sentencepiece *sp = NULL;
    small_model(&b, SENTENCEPIECE_UNIGRAM);
    file_make(temp_path(&folder, "source.spm"), b.bytes, b.size);
    write_text(
        temp_path(&folder, "vocab.json"),
        "{\"</s>\": 0, \"<unk>\": 1, \"\\u2581ab\": 2, \"a\": 3, \">>fr<<\": 4, \"<pad>\": 5, "
        "\"\\u4e2d\": 6}");
    const char *const path = temp_path(&folder, "source.spm");
    CHECK(sentencepiece_open(&sp, path, message, 512) == MHA_OK, "%s", message);
    if (sp != NULL) {
        const sentencepiece_info info = sentencepiece_get_info(sp);
        check_tokens(sp, "ab", "2:0-2");
        check_tokens(sp, ">>fr<<ab", "4:0-6 2:6-8");
        check_tokens(sp, ">>xx<< ab b", "1:0-6 2:7-9 1:9-10 1:10-11");
        check_tokens(sp, ">>ab", "1:0-0 1:0-2 1:2-4");
        check_tokens(sp, "ab\xe4\xb8\xad", "2:0-2 6:2-5");
        check_text(sp, IDS(2, 2, 3, 0), true, "ab aba");
        CHECK(info.end_id == 0 && info.unknown_id == 1 && info.pad_id == 5 && info.adds_end, "ids");
        CHECK(vocab_flags(sentencepiece_vocabulary(sp), 4) & PIECE_SPECIAL, "the language");
    }
    sentencepiece_free(sp);
    write_text(temp_path(&folder, "vocab.json"), "{\"a\": 0}");
    CHECK(sentencepiece_open(&sp, temp_path(&folder, "source.spm"), message, 512) == MHA_ERR_FORMAT,
          "no <unk>");
    write_text(temp_path(&folder, "vocab.json"), "{\"a\": 0, \"<unk>\": 0}");
    CHECK(sentencepiece_open(&sp, temp_path(&folder, "source.spm"), message, 512) == MHA_ERR_FORMAT,
          "an id twice");
    CHECK(sentencepiece_open(&sp, temp_path(&folder, "none.spm"), message, 512) == MHA_ERR_FILE,
          "no file");
    temp_folder_free(&folder);
}

static size_t put_u32(unsigned char *to, uint32_t value)
{
    memcpy(to, &value, 4);
    return 4;
}

/* "<unk>", two marks, the bytes, then a few pieces with spaces. */
static size_t llama2c_file(unsigned char *to, bool raw_bytes)
{
    static const char *const pieces[] = {" ", "a", "b", "ab", " a", " ab"};
    static const float scores[] = {-5, -4, -4, -2, -3, -1};
    size_t used = put_u32(to, 27);
    for (int n = 0; n < 3 + 256 + 6; n++) {
        char piece[16] = "<unk>";
        float score = 0;
        if (n > 0 && n < 3)
            snprintf(piece, sizeof piece, n == 1 ? "\n<s>\n" : "\n</s>\n");
        else if (n >= 3 && n < 259)
            snprintf(piece, sizeof piece, "<0x%02X>", (unsigned)(n - 3) & 0xff);
        else if (n >= 259) {
            snprintf(piece, sizeof piece, "%s", pieces[n - 259]);
            score = scores[n - 259];
        }
        memcpy(to + used, &score, 4);
        used += 4;
        if (raw_bytes && n >= 3 && n < 259) {
            const uint32_t bytes = n < 131 ? 1 : 2;
            used += put_u32(to + used, bytes);
            used += utf8_encode((char *)to + used, (uint32_t)n - 3);
            continue;
        }
        used += put_u32(to + used, (uint32_t)strlen(piece));
        for (const char *c = piece; *c; c++)
            to[used++] = (unsigned char)*c;
    }
    return used;
}

static void llama2c_files_are_read(void)
{
    static unsigned char bytes[8192];
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "tokenizer.bin");
    const size_t size = llama2c_file(bytes, false);
    char message[512] = "";
    sentencepiece *sp = NULL;
    file_make(path, bytes, size);
    CHECK(sentencepiece_from_llama2c(&sp, path, message, 512) == MHA_OK, "%s", message);
    if (sp != NULL) {
        check_tokens(sp, "ab aab", "264:0-2 263:2-4 262:4-6");
        check_tokens(sp, "a\n", "263:0-1 13:1-2");
        check_text(sp, IDS(1, 264, 264), true, "ab ab");
        check_text(sp, IDS(1, 264), false, "<s> ab");
        CHECK(sentencepiece_get_info(sp).adds_begin, "begin");
        CHECK(strcmp(vocab_piece(sentencepiece_vocabulary(sp), 264, NULL), SPACE "ab") == 0, "264");
    }
    sentencepiece_free(sp);
    for (size_t cut = 1; cut < size; cut += 13) {
        file_make(path, bytes, cut);
        const mha_status status = sentencepiece_from_llama2c(&sp, path, NULL, 0);
        CHECK(status == MHA_OK || status == MHA_ERR_FORMAT, "%zu bytes: %d", cut, status);
        sentencepiece_free(sp);
    }
    temp_folder_free(&folder);
}

/* Older files write a byte as the character of its number. */
static void llama2c_files_with_bytes(void)
{
    static unsigned char bytes[8192];
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "tokenizer.bin");
    char message[512] = "";
    sentencepiece *sp = NULL;
    file_make(path, bytes, llama2c_file(bytes, true));
    CHECK(sentencepiece_from_llama2c(&sp, path, message, 512) == MHA_OK, "%s", message);
    if (sp != NULL) {
        check_tokens(sp, "a\n", "263:0-1 13:1-2");
        check_tokens(sp, "\xc3\xa9", "259:0-0 198:0-0 172:0-2");
        check_text(sp, IDS(1, 264, 13, 198, 172), true, "ab\n\xc3\xa9");
        CHECK(strcmp(vocab_piece(sentencepiece_vocabulary(sp), 3, NULL), "<0x00>") == 0, "3");
    }
    sentencepiece_free(sp);
    temp_folder_free(&folder);
}

static void gguf_begin(gguf_builder *g, const char *model)
{
    gguf_builder_free(g);
    gguf_builder_text(g, "tokenizer.ggml.model", model);
}

/* Ids as in small_model(). */
static void gguf_pieces(gguf_builder *g, int scores)
{
    static const char space_a[] = SPACE "a", space_ab[] = SPACE "ab";
    const char *const pieces[] = {"<unk>", "<s>",   "</s>",   SPACE,      "a", "b",
                                  "ab",    space_a, space_ab, "\xc3\xa9", NULL};
    static const float values[] = {0, 0, 0, -5, -4, -4, -2, -3, -1, -6};
    static const int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    gguf_builder_texts(g, "tokenizer.ggml.tokens", pieces);
    gguf_builder_reals(g, "tokenizer.ggml.scores", values, (size_t)scores);
    gguf_builder_integers(g, "tokenizer.ggml.token_type", types, 10);
}

static mha_status open_gguf(sentencepiece **sp, const gguf_builder *g, char *message)
{
    gguf_file *file = NULL;
    size_t size;
    unsigned char *const bytes = gguf_builder_file(g, &size);
    *sp = NULL;
    mha_status status = gguf_open_memory(&file, bytes, size, message, 256);
    if (status == MHA_OK)
        status = sentencepiece_from_gguf(sp, file, message, 256);
    gguf_close(file);
    free(bytes);
    return status;
}

static void gguf_files_are_read(void)
{
    gguf_builder g = {.bytes = NULL};
    char message[256] = "";
    sentencepiece *sp;
    gguf_begin(&g, "llama");
    gguf_pieces(&g, 10);
    CHECK(open_gguf(&sp, &g, message) == MHA_OK, "%s", message);
    check_tokens(sp, " ab", "3:0-0 8:0-3");
    check_tokens(sp, "aab", "7:0-1 6:1-3");
    if (sp != NULL)
        CHECK(sentencepiece_get_info(sp).adds_begin && !sentencepiece_get_info(sp).adds_end,
              "the marks");
    sentencepiece_free(sp);
    gguf_builder_bool(&g, "tokenizer.ggml.add_space_prefix", 0);
    gguf_builder_bool(&g, "tokenizer.ggml.add_bos_token", 0);
    CHECK(open_gguf(&sp, &g, message) == MHA_OK, "%s", message);
    check_tokens(sp, "ab ab", "6:0-2 8:2-5");
    if (sp != NULL)
        CHECK(!sentencepiece_get_info(sp).adds_begin, "the begin");
    sentencepiece_free(sp);
    gguf_begin(&g, "t5");
    gguf_pieces(&g, 10);
    CHECK(open_gguf(&sp, &g, message) == MHA_OK, "%s", message);
    check_tokens(sp, "  ab  ab ", "8:2-4 8:4-8");
    sentencepiece_free(sp);
    gguf_builder_free(&g);
}

static void wrong_gguf_files_are_refused(void)
{
    gguf_builder g = {.bytes = NULL};
    char message[256] = "";
    sentencepiece *sp;
    gguf_begin(&g, "gpt2");
    CHECK(open_gguf(&sp, &g, message) == MHA_ERR_FORMAT, "gpt2");
    CHECK(strstr(message, "neither llama nor t5") != NULL, "%s", message);
    gguf_begin(&g, "llama");
    CHECK(open_gguf(&sp, &g, message) == MHA_ERR_FORMAT, "no tokens");
    CHECK(strstr(message, "tokenizer.ggml.tokens") != NULL, "%s", message);
    gguf_pieces(&g, 9);
    CHECK(open_gguf(&sp, &g, message) == MHA_ERR_FORMAT, "9 scores");
    CHECK(strstr(message, "tokenizer.ggml.scores") != NULL, "%s", message);
    gguf_builder_free(&g);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(extra_ids_of_t5);
    RUN(marks_in_a_text_are_found);
    RUN(marian_has_ids_of_its_own);
    RUN(llama2c_files_are_read);
    RUN(llama2c_files_with_bytes);
    RUN(gguf_files_are_read);
    RUN(wrong_gguf_files_are_refused);
    return test_end();
}
