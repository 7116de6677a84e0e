/* SPDX-License-Identifier: MIT */
/* The forms of chats (text/chat.h). compare_chat.py compares more of them with transformers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "text/chat.h"

static const mha_chat_message question[] = {{"user", " Hi "}};
static const mha_chat_message three[] = {{"user", "Hi"}, {"assistant", "Hello "}, {"user", "Bye"}};
static const mha_chat_message with_system[] = {{"system", "Be kind"}, {"user", "Hi"}};

#define COUNT(messages) (ptrdiff_t)(sizeof(messages) / sizeof(messages)[0])

static void check_chat(const char *template_text, const vocabulary *v,
                       const mha_chat_message *messages, ptrdiff_t count, bool reply,
                       const char *wanted)
{
    chat_style style;
    char *text = NULL;
    char message[256] = "";
    size_t length = 0;
    const size_t template_length = template_text == NULL ? 0 : strlen(template_text);
    CHECK(chat_style_find(&style, template_text, template_length, v, "<s>", "</s>") == MHA_OK,
          "memory");
    const mha_status status =
        chat_write(&style, messages, count, reply, &text, &length, message, sizeof message);
    if (wanted == NULL) {
        CHECK(status == MHA_ERR_FLAG && text == NULL && message[0] != '\0', "status %d", status);
    } else if (CHECK(status == MHA_OK, "status %d: %s", status, message)) {
        CHECK(length == strlen(text) && strcmp(text, wanted) == 0, "got\n%s\nwanted\n%s", text,
              wanted);
    }
    free(text);
    chat_style_free(&style);
}

static void chatml(void)
{
    static const char plain[] = "{{'<|im_start|>' + message['role']}}";
    check_chat(plain, NULL, question, 1, true,
               "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
    check_chat(plain, NULL, with_system, 2, false,
               "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
    check_chat(plain, NULL, NULL, 0, false, "");
}

/* The mark that begins a text may be the one that begins a turn; it is written once. */
static void a_turn_mark_that_begins_texts(void)
{
    static const char plain[] = "{{'<|im_start|>' + message['role']}}";
    chat_style style;
    char *text = NULL;
    size_t length = 0;
    CHECK(chat_style_find(&style, plain, strlen(plain), NULL, "<|im_start|>", "<|im_end|>") ==
              MHA_OK,
          "style");
    CHECK(chat_write(&style, question, 1, false, &text, &length, NULL, 0) == MHA_OK, "chat");
    CHECK(text && strcmp(text, "<|im_start|>user\n Hi <|im_end|>\n") == 0, "%s", text);
    free(text);
    chat_style_free(&style);
}

static void the_system_message_of_a_template(void)
{
    static const char late[] = "{{ '<|im_start|>system\n' + m + '<|im_end|>' }}"
                               "{{ '<|im_start|>system\nI am \"it\"<|im_end|>'";
    static const char *const templates[] = {
        "{{ '<|im_start|>system\nI am \"it\"<|im_end|>\n' }}",
        "{{ '<|im_start|>system\\nI am \"it\"<|im_end|>\\n' }}",
        "{{ \"<|im_start|>system\\nI am \\\"it\\\"<|im_end|>\" }}", late};
    for (int n = 0; n < 4; n++) {
        check_chat(templates[n], NULL, question, 1, false,
                   "<|im_start|>system\nI am \"it\"<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n");
        check_chat(templates[n], NULL, with_system, 2, false,
                   "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
    }
    check_chat("'<|im_start|>system", NULL, question, 1, false,
               "<|im_start|>user\n Hi <|im_end|>\n");
    check_chat("'<|im_start|>system\n", NULL, question, 1, false,
               "<|im_start|>user\n Hi <|im_end|>\n");
    check_chat("'<|im_start|>system\\", NULL, question, 1, false,
               "<|im_start|>user\n Hi <|im_end|>\n");
}

static void llama2(void)
{
    static const char form[] = "'<<SYS>>\\n' bos_token + '[INST] ' + content.strip() + ' [/INST]'";
    check_chat(form, NULL, question, 1, true, "<s>[INST] Hi [/INST]");
    check_chat(form, NULL, with_system, 2, true,
               "<s>[INST] <<SYS>>\nBe kind\n<</SYS>>\n\nHi [/INST]");
    check_chat(form, NULL, three, 3, false, "<s>[INST] Hi [/INST] Hello </s><s>[INST] Bye [/INST]");
    check_chat(form, NULL, with_system, 1, false, NULL);
    check_chat(form, NULL, three + 1, 2, false, NULL);
}

static void llama3(void)
{
    static const char form[] = "bos_token '<|start_header_id|>' message['content'] | trim";
    static const char dated[] = "bos_token {%- set date_string = \"26 Jul 2024\" %} "
                                "'<|start_header_id|>' 'Cutting Knowledge Date: '";
    check_chat(form, NULL, question, 1, true,
               "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n");
    check_chat(dated, NULL, with_system, 2, false,
               "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December "
               "2023\nToday Date: 26 Jul 2024\n\nBe kind<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>");
}

static void zephyr(void)
{
    check_chat("'<|user|>\n' eos_token", NULL, with_system, 2, true,
               "<|system|>\nBe kind</s>\n<|user|>\nHi</s>\n<|assistant|>\n");
    check_chat("'<|user|>\n' '<|end|>'", NULL, question, 1, false, "<|user|>\n Hi <|end|>\n</s>");
}

static void gemma(void)
{
    check_chat("bos_token '<start_of_turn>' | trim", NULL, three, 3, true,
               "<s><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n"
               "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
    check_chat("bos_token '<start_of_turn>' | trim", NULL, with_system, 2, true, NULL);
    check_chat("'<start_of_turn>' first_user_prefix", NULL, with_system, 2, false,
               "<start_of_turn>user\nBe kind\n\nHi<end_of_turn>\n");
}

static void mistral(void)
{
    check_chat("bos_token '[INST] ' ' [/INST]' eos_token + ' '", NULL, three, 3, true,
               "<s>[INST] Hi [/INST]Hello </s> [INST] Bye [/INST]");
    check_chat("bos_token '[INST] ' ' [/INST]' eos_token", NULL, with_system, 2, true, NULL);
    check_chat("bos_token \"[INST] \" \"[/INST]\" loop.last and system_message \" \" + message",
               NULL, with_system, 2, true, "<s>[INST] Be kind\n\nHi[/INST]");
}

static void a_vocabulary_shows_the_form(void)
{
    vocabulary *const v = vocab_create();
    check_chat(NULL, v, question, 1, true, NULL);
    vocab_add(v, 0, "<|im_start|>", 12, 0, 0);
    check_chat(NULL, v, question, 1, true, NULL);
    vocab_add(v, 1, "<|im_end|>", 10, 0, 0);
    check_chat(NULL, v, question, 1, false, "<|im_start|>user\n Hi <|im_end|>\n");
    check_chat("{{ unknown }}", v, question, 1, false, "<|im_start|>user\n Hi <|im_end|>\n");
    check_chat("'<|start_header_id|>'|trim", v, question, 1, false,
               "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>");
    vocab_free(v);
}

static void incomplete_messages_are_refused(void)
{
    static const mha_chat_message broken[] = {{"user", NULL}, {NULL, "Hi"}};
    chat_style style;
    char *text;
    size_t length;
    CHECK(chat_style_find(&style, "<|im_start|>", 12, NULL, NULL, NULL) == MHA_OK, "memory");
    CHECK(chat_write(&style, broken, 1, true, &text, &length, NULL, 0) == MHA_ERR_NULL, "content");
    CHECK(chat_write(&style, broken + 1, 1, true, &text, &length, NULL, 0) == MHA_ERR_NULL, "role");
    CHECK(chat_write(&style, NULL, 1, true, &text, &length, NULL, 0) == MHA_ERR_NULL, "messages");
    chat_style_free(&style);
}

/* Templates come from files: whatever they are, a chat is written or refused. */
static void any_template_is_harmless(void)
{
    static const char *const parts[] = {"<|im_start|>",
                                        "system",
                                        "\n",
                                        "\\n",
                                        "'",
                                        "\"",
                                        "\\",
                                        "<|im_end|>",
                                        "date_string = ",
                                        "<|start_header_id|>",
                                        "Cutting Knowledge Date",
                                        "[INST]",
                                        "<<SYS>>",
                                        "<|user|>",
                                        "x",
                                        "<start_of_turn>",
                                        "bos_token",
                                        "| trim",
                                        "\xc3",
                                        "<|end|>"};
    test_random random = {test_seed(4)};
    const int64_t rounds = test_effort(20000);
    for (int64_t round = 0; round < rounds; round++) {
        char text[512] = "";
        char *chat = NULL;
        size_t used = 0, length;
        chat_style style;
        for (int64_t n = test_random_below(&random, 16); n > 0; n--)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                     parts[test_random_below(&random, 20)]);
        char *const exact = malloc(used + 1); /* for the sanitizer */
        memcpy(exact, text, used);
        CHECK(chat_style_find(&style, exact, used, NULL, "<s>", "</s>") == MHA_OK, "%s", text);
        const mha_status status =
            chat_write(&style, three, COUNT(three), true, &chat, &length, NULL, 0);
        CHECK(status == (style.form == CHAT_NONE ? MHA_ERR_FLAG : MHA_OK), "%s: %d", text, status);
        free(chat);
        free(exact);
        chat_style_free(&style);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(chatml);
    RUN(a_turn_mark_that_begins_texts);
    RUN(the_system_message_of_a_template);
    RUN(llama2);
    RUN(llama3);
    RUN(zephyr);
    RUN(gemma);
    RUN(mistral);
    RUN(a_vocabulary_shows_the_form);
    RUN(incomplete_messages_are_refused);
    RUN(any_template_is_harmless);
    return test_end();
}
