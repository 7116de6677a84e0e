/* SPDX-License-Identifier: MIT */
/* Tokenizers when memory allocation fails (faults.h): opening each kind of file, encoding and
 * decoding return MHA_ERR_MEMORY and leak nothing. A pattern that cannot be compiled just in time
 * is only slower, so such a request may fail without a consequence. */
#include "support/faults.h"
#include "support/gguf_builder.h"
#include "support/test.h"
#include "support/tokens.h"

#include <string.h>

static const char everything[] =
    "{\"added_tokens\": [{\"id\": 30, \"content\": \"[M]\", \"special\": true}, {\"id\": 31, "
    "\"content\": \"One\", \"normalized\": true, \"single_word\": true}], \"normalizer\": "
    "{\"type\": "
    "\"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, {\"type\": \"Lowercase\"}, {\"type\": "
    "\"Replace\", \"pattern\": {\"Regex\": \"x+\"}, \"content\": \"a\"}, {\"type\": \"Prepend\", "
    "\"prepend\": \"a\"}]}, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
    "[{\"type\": "
    "\"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"Isolated\"}, {\"type\": "
    "\"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"always\"}]}, \"model\": "
    "{\"type\": "
    "\"BPE\", \"unk_token\": \"?\", \"end_of_word_suffix\": \"</w>\", \"vocab\": {\"?\": 0, \"a\": "
    "1, "
    "\"b\": 2, \"ab\": 3, \"_\": 4, \"_a\": 5, \"b</w>\": 6}, \"merges\": [\"a b\", \"_ a\"]}, "
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
    "{\"id\": "
    "\"[M]\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], "
    "\"special_tokens\": {\"[M]\": {\"id\": \"[M]\", \"ids\": [30]}}}, \"decoder\": {\"type\": "
    "\"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": \"_\"}, "
    "\"content\": \" \"}, {\"type\": \"WordPiece\", \"prefix\": \"a\", \"cleanup\": true}, "
    "{\"type\": "
    "\"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]}}";

static const char unigram[] = "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": "
                              "[[\"?\", 0], [\"a\", -1], [\"ab\", "
                              "-1]]}, \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"decoder\": "
                              "{\"type\": \"ByteFallback\"}}";

typedef struct kind {
    const char *name;
    void (*write)(const temp_folder *folder);
} kind;

static void write_json(const temp_folder *folder)
{
    put_file(folder, "tokenizer.json", everything);
    put_file(folder, "tokenizer_config.json", "{\"bos_token\": \"[M]\"}");
}

static void write_unigram(const temp_folder *folder)
{
    put_file(folder, "tokenizer.json", unigram);
}

static void write_vocab_txt(const temp_folder *folder)
{
    put_file(folder, "vocab.txt", "[UNK]\na\n##b\n[CLS]\n[SEP]\n");
    put_file(folder, "tokenizer_config.json", "{\"do_lower_case\": false}");
}

static void write_gpt2(const temp_folder *folder)
{
    put_file(folder, "vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2, \"<s>\": 3, \"</s>\": 4}");
    put_file(folder, "merges.txt", "a b\n");
}

static void write_gguf(const temp_folder *folder)
{
    static const char *const tokens[] = {"<|endoftext|>", "a", "b", "ab", NULL};
    static const char *const merges[] = {"a b", NULL};
    static const int32_t types[] = {3, 1, 1, 1};
    gguf_builder g = {.bytes = NULL};
    gguf_builder_text(&g, "tokenizer.ggml.model", "gpt2");
    gguf_builder_text(&g, "tokenizer.ggml.pre", "qwen2");
    gguf_builder_texts(&g, "tokenizer.ggml.tokens", tokens);
    gguf_builder_texts(&g, "tokenizer.ggml.merges", merges);
    gguf_builder_integers(&g, "tokenizer.ggml.token_type", types, 4);
    gguf_builder_write(&g, temp_path(folder, "x.gguf"));
    gguf_builder_free(&g);
}

static const kind kinds[] = {{"", write_json},
                             {"", write_unigram},
                             {"", write_vocab_txt},
                             {"", write_gpt2},
                             {"x.gguf", write_gguf}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Encodes and decodes; the texts take every step. */
static mha_status use(const mha_tokenizer *t)
{
    static const char *const texts[] = {"ab a-b One xx [M] \xc3\xa9"
                                        "e\xcc\x81\xef\xac\x81 zz",
                                        "abababababababababababababababababababababababababababab"};
    mha_status status = MHA_OK;
    for (int n = 0; n < 2 && status == MHA_OK; n++) {
        mha_tokens tokens;
        status = mha_tokenizer_encode(t, texts[n], strlen(texts[n]), MHA_TEXT_MARKS, &tokens);
        CHECK(status == MHA_OK || (!tokens.tokens && !tokens.count), "tokens after an error");
        if (status != MHA_OK)
            break;
        int32_t ids[100];
        ptrdiff_t count = tokens.count < 100 ? tokens.count : 100;
        for (ptrdiff_t k = 0; k < count; k++)
            ids[k] = tokens.tokens[k].id;
        mha_tokens_free(&tokens);
        char *text = NULL;
        status = mha_tokenizer_decode(t, ids, count, 0, &text, NULL);
        CHECK((status == MHA_OK) == (text != NULL), "text and status disagree");
        mha_text_free(text);
    }
    return status;
}

static mha_status open_and_use(const char *path)
{
    char message[300] = "";
    mha_tokenizer *t = NULL;
    mha_status status = mha_tokenizer_open(&t, path, message, sizeof message);
    CHECK((status == MHA_OK) == (t != NULL), "tokenizer and status disagree");
    CHECK(status == MHA_OK || message[0], "no message");
    if (status == MHA_OK)
        status = use(t);
    mha_tokenizer_free(t);
    return status;
}

static void every_request_fails(void)
{
    for (int round = 0; round < KINDS * 2; round++) {
        const kind *const k = &kinds[round / 2];
        const bool for_ever = round % 2;
        const temp_folder folder = temp_folder_new();
        k->write(&folder);
        const char *const path = k->name[0] ? temp_path(&folder, k->name) : folder.path;
        int failures = 0, n = 1;
        for (bool met = true; met && n < 5000; n++) {
            faults_arm(MEMORY, n, for_ever);
            const mha_status status = open_and_use(path);
            faults_disarm();
            met = faults_requests(MEMORY) >= n;
            failures += status == MHA_ERR_MEMORY;
            CHECK(status == MHA_ERR_MEMORY || status == MHA_OK, "kind %d, request %d: status %d",
                  round / 2, n, (int)status);
            CHECK(faults_left(MEMORY) == 0, "kind %d, request %d: %d blocks left", round / 2, n,
                  faults_left(MEMORY));
        }
        CHECK(n > 50 && failures > n * 3 / 4, "kind %d: only %d of %d requests matter", round / 2,
              failures, n);
        temp_folder_free(&folder);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_request_fails);
    return test_end();
}
