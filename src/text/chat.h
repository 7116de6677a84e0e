/* SPDX-License-Identifier: MIT */
/*
 * Forms of chats: the text that a list of messages becomes, as models were trained on it.
 *
 *      CHAT_CHATML    <|im_start|>user\n...<|im_end|>\n
 *      CHAT_LLAMA2    <s>[INST] <<SYS>>\n...\n<</SYS>>\n\n... [/INST] ... </s>
 *      CHAT_LLAMA3    <|start_header_id|>user<|end_header_id|>\n\n...<|eot_id|>
 *      CHAT_ZEPHYR    <|user|>\n...</s>\n, also with <|end|>
 *      CHAT_GEMMA     <start_of_turn>user\n...<end_of_turn>\n
 *      CHAT_MISTRAL   <s>[INST] ... [/INST] ...</s>
 *
 * Models come with a template, a program in the language Jinja. It is not run: the form is
 * recognised by its marks, and what varies within a form is read out of it, such as the system
 * message that is used if the caller has none. The result is the same text for the templates of
 * these forms that are in use.
 */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include "text/vocabulary.h"

#include <mha/mha_model.h>

typedef enum chat_form {
    CHAT_NONE,
    CHAT_CHATML,
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_ZEPHYR,
    CHAT_GEMMA,
    CHAT_MISTRAL
} chat_form;

typedef struct chat_style {
    chat_form form;
    char *begin, *end;      /* the texts of the marks around a chat; "" if there is none */
    char *system;           /* used if the first message is not the system's; NULL: none */
    char *date;             /* Llama 3.1: the date in the system message; NULL: it has none */
    bool trims;             /* white space at both ends of messages is removed */
    bool has_system;        /* Gemma, Mistral: system messages are accepted */
    bool system_is_last;    /* Mistral: the system message is in the last turn of the user */
    bool ends_with_mark;    /* Zephyr: <|end|> ends a turn, and the end mark a chat without reply */
    bool space_before;      /* Mistral: between [/INST] and the assistant's text */
    bool space_after;       /* Mistral: after the end mark */
    bool space_before_inst; /* Mistral: " [INST]" */
    bool tight_inst;        /* Mistral: "[/INST]" without a space before it */
} chat_style;

/*
 * Finds the style by a template (NULL: none) and, if that does not show a form, by the marks of the
 * vocabulary. `begin` and `end` are the marks of the model, NULL if there is none. The form is
 * CHAT_NONE if none is known. MHA_ERR_MEMORY is the only error.
 */
mha_status chat_style_find(chat_style *style, const char *template_text, size_t length,
                           const vocabulary *v, const char *begin, const char *end);
void chat_style_free(chat_style *style);

/* See mha_tokenizer_chat(). The text has all marks, so it is encoded without MHA_TEXT_MARKS. */
mha_status chat_write(const chat_style *style, const mha_chat_message *messages, ptrdiff_t count,
                      bool reply, char **text, size_t *length, char *message, size_t message_size);

#endif
