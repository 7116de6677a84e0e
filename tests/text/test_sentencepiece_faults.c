/* SPDX-License-Identifier: MIT */
/* SentencePiece tokenizers and chats when memory runs out: an error, and everything is freed. */
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/sentencepiece_case.h"
#include "support/test.h"
#include "text/chat.h"

/* Opens a model, tokenizes and decodes a text. */
static mha_status run_model(const void *model)
{
    static const char text[] = "ab aab  \xc3\xa9 xyz ab";
    const sentencepiece_builder *const b = model;
    sentencepiece *sp = NULL;
    token_list list = {0};
    int32_t ids[64];
    char *decoded = NULL;
    size_t length;
    mha_status status = sentencepiece_open_memory(&sp, b->bytes, b->size, NULL, 0);
    if (status != MHA_OK)
        return status;
    sentencepiece_encode(sp, text, sizeof text - 1, &list);
    status = list.failed ? MHA_ERR_MEMORY : MHA_OK;
    for (ptrdiff_t n = 0; n < list.count && n < 64; n++)
        ids[n] = list.tokens[n].id;
    if (status == MHA_OK)
        status = sentencepiece_decode(sp, ids, list.count, true, &decoded, &length);
    free(decoded);
    token_list_free(&list);
    sentencepiece_free(sp);
    return status;
}

static mha_status run_chat(const void *template_text)
{
    static const mha_chat_message messages[] = {
        {"system", "Be kind"}, {"user", "a long question"}, {"assistant", "a longer answer"}};
    chat_style style;
    char *text = NULL;
    size_t length;
    mha_status status =
        chat_style_find(&style, template_text, strlen(template_text), NULL, "<s>", "</s>");
    if (status != MHA_OK)
        return status;
    status = chat_write(&style, messages, 3, true, &text, &length, NULL, 0);
    free(text);
    chat_style_free(&style);
    return status;
}

/* Every request fails once, alone and with all after it. */
static void check_faults(const char *what, mha_status (*run)(const void *), const void *input)
{
    faults_arm(MEMORY, 0, false);
    CHECK(run(input) == MHA_OK, "%s: without faults", what);
    const int requests = faults_requests(MEMORY);
    faults_disarm();
    CHECK(requests > 3, "%s: %d requests", what, requests);
    for (int n = 1; n <= requests; n++) {
        for (int for_ever = 0; for_ever < 2; for_ever++) {
            faults_arm(MEMORY, n, for_ever);
            const mha_status status = run(input);
            const int left = faults_left(MEMORY);
            faults_disarm();
            CHECK(status == MHA_ERR_MEMORY, "%s: request %d of %d: status %d", what, n, requests,
                  status);
            CHECK(left == 0, "%s: request %d: %d blocks are left", what, n, left);
        }
    }
}

static void models(void)
{
    static const charsmap_rule rules[] = {{"x", "ab"}, {"yz", ""}};
    static sentencepiece_builder b;
    static unsigned char charsmap[SENTENCEPIECE_BYTES_MAX];
    const size_t size = charsmap_build(charsmap, rules, 2);
    for (int kind = SENTENCEPIECE_UNIGRAM; kind <= SENTENCEPIECE_BPE; kind++) {
        small_model(&b, kind);
        builder_piece(&b, "aa", -7, TYPE_UNUSED);
        builder_piece(&b, "z", -7, TYPE_USER);
        builder_data(&b, NORMALIZER, CHARSMAP, charsmap, size);
        check_faults("model", run_model, &b);
    }
}

static void chats(void)
{
    check_faults("chatml", run_chat, "'<|im_start|>system\nHelp<|im_end|>'");
    check_faults("llama 3.1", run_chat,
                 "<|start_header_id|> Cutting Knowledge Date date_string = 'x'");
    check_faults("llama 2", run_chat, "<<SYS>>");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(models);
    RUN(chats);
    return test_end();
}
