/* SPDX-License-Identifier: MIT */
/*
 * Writes the text of a chat in the form of a model (chat.h); chat_style.c has found the form.
 */
#include "text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

typedef struct writing {
    const chat_style *style;
    const mha_chat_message *messages;
    ptrdiff_t count;
    ptrdiff_t first;    /* the first message that is not the system's */
    const char *system; /* the system's message; NULL: none */
    bool reply;
    char *text;
    size_t length, room;
    bool failed;
    const char *wrong; /* a message that the form cannot have */
} writing;

static void put_bytes(writing *w, const char *text, size_t length)
{
    if (!w->failed && w->room - w->length <= length) {
        const size_t room = (w->length + length + 1) * 2;
        char *const moved = realloc(w->text, room);
        w->failed = moved == NULL;
        if (moved != NULL) {
            w->text = moved;
            w->room = room;
        }
    }
    if (w->failed)
        return;
    memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = '\0';
}

static void put_texts(writing *w, const char *const *texts, size_t count)
{
    for (size_t n = 0; n < count; n++)
        put_bytes(w, texts[n], strlen(texts[n]));
}

/* Writes one or more texts. */
#define TEXTS(...) ((const char *const[]){__VA_ARGS__})
#define PUT(w, ...) put_texts(w, TEXTS(__VA_ARGS__), sizeof TEXTS(__VA_ARGS__) / sizeof(char *))

/* As Python's str.isspace(), which templates use to trim. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* The bytes of a text between the white space at its ends. */
typedef struct part {
    size_t begin, end;
} part;

static part trimmed(const char *text, size_t length)
{
    part inner = {0, 0};
    for (size_t at = 0; at < length;) {
        uint32_t c = 0;
        const size_t bytes = utf8_decode(text + at, length - at, &c);
        const bool space = bytes > 0 && is_space(c);
        const size_t next = at + (bytes > 0 ? bytes : 1);
        if (!space) {
            inner.begin = inner.end == 0 ? at : inner.begin;
            inner.end = next;
        }
        at = next;
    }
    return inner;
}

static void put_trimmed(writing *w, const char *text)
{
    const part inner = trimmed(text, strlen(text));
    put_bytes(w, text + inner.begin, inner.end - inner.begin);
}

static void put_content(writing *w, const char *text)
{
    if (w->style->trims)
        put_trimmed(w, text);
    else
        PUT(w, text);
}

static bool is_role(const mha_chat_message *message, const char *role)
{
    return strcmp(message->role, role) == 0;
}

static bool is_user(const writing *w, ptrdiff_t n)
{
    return is_role(&w->messages[n], "user");
}

static void write_chatml(writing *w)
{
    PUT(w, w->style->begin);
    if (w->system == NULL && w->count > 0 && w->style->system != NULL)
        PUT(w, "<|im_start|>system\n", w->style->system, "<|im_end|>\n");
    for (ptrdiff_t n = 0; n < w->count; n++) {
        PUT(w, "<|im_start|>", w->messages[n].role, "\n");
        put_content(w, w->messages[n].content);
        PUT(w, "<|im_end|>\n");
    }
    if (w->reply)
        PUT(w, "<|im_start|>assistant\n");
}

static void put_llama3_head(writing *w, const char *role)
{
    PUT(w, "<|start_header_id|>", role, "<|end_header_id|>\n\n");
}

static void write_llama3(writing *w)
{
    const char *const date = w->style->date;
    if (w->count > 0)
        PUT(w, w->style->begin);
    if (date != NULL) {
        put_llama3_head(w, "system");
        PUT(w, "Cutting Knowledge Date: December 2023\nToday Date: ", date, "\n\n");
        put_content(w, w->system == NULL ? "" : w->system);
        PUT(w, "<|eot_id|>");
    }
    for (ptrdiff_t n = date != NULL ? w->first : 0; n < w->count; n++) {
        put_llama3_head(w, w->messages[n].role);
        put_content(w, w->messages[n].content);
        PUT(w, "<|eot_id|>");
    }
    if (w->reply)
        put_llama3_head(w, "assistant");
}

static void write_zephyr(writing *w)
{
    const bool marked = w->style->ends_with_mark;
    PUT(w, w->style->begin);
    for (ptrdiff_t n = 0; n < w->count; n++) {
        const mha_chat_message *const message = &w->messages[n];
        PUT(w, "<|", message->role, "|>\n");
        put_content(w, message->content);
        PUT(w, marked ? "<|end|>" : w->style->end, "\n");
    }
    if (w->reply && (marked || w->count > 0))
        PUT(w, "<|assistant|>\n");
    else if (marked)
        PUT(w, w->style->end);
}

/* The first, third, ... message must be the user's, and no other. */
static void check_turns(writing *w)
{
    for (ptrdiff_t n = w->first; n < w->count; n++) {
        if (is_user(w, n) != ((n - w->first) % 2 == 0))
            w->wrong = "the user and the assistant must take turns, beginning with the user";
    }
    if (w->system != NULL && w->first == w->count)
        w->wrong = "the system's message must be followed by one of the user";
}

/* Trimmed together: an empty message leaves no empty lines after the system's. */
static void put_with_system(writing *w, const char *content)
{
    const size_t begin = w->length;
    PUT(w, "<<SYS>>\n", w->system, "\n<</SYS>>\n\n", content);
    if (w->style->trims && !w->failed)
        w->length = begin + trimmed(w->text + begin, w->length - begin).end;
}

static void write_llama2(writing *w)
{
    for (ptrdiff_t n = w->first; n < w->count; n++) {
        const mha_chat_message *const message = &w->messages[n];
        if (is_user(w, n)) {
            PUT(w, w->style->begin, "[INST] ");
            if (n == w->first && w->system != NULL) {
                put_with_system(w, message->content);
            } else {
                put_content(w, message->content);
            }
            PUT(w, " [/INST]");
        } else {
            PUT(w, " ");
            put_content(w, message->content);
            PUT(w, " ", w->style->end);
        }
    }
}

static void write_mistral(writing *w)
{
    const chat_style *const style = w->style;
    const ptrdiff_t last = w->count - 1;
    const ptrdiff_t with_system = style->system_is_last ? last : w->first;
    PUT(w, style->begin);
    for (ptrdiff_t n = w->first; n < w->count; n++) {
        const mha_chat_message *const message = &w->messages[n];
        if (is_user(w, n)) {
            PUT(w, style->space_before_inst ? " " : "", "[INST] ");
            if (w->system != NULL && n == with_system)
                PUT(w, w->system, "\n\n");
            PUT(w, message->content, style->tight_inst ? "[/INST]" : " [/INST]");
        } else {
            PUT(w, style->space_before ? " " : "");
            put_content(w, message->content);
            PUT(w, style->end, style->space_after ? " " : "");
        }
    }
}

static void write_gemma(writing *w)
{
    PUT(w, w->style->begin);
    for (ptrdiff_t n = w->first; n < w->count; n++) {
        const mha_chat_message *const message = &w->messages[n];
        const bool assistant = is_role(message, "assistant");
        PUT(w, "<start_of_turn>", assistant ? "model" : message->role, "\n");
        if (n == w->first && w->system != NULL)
            PUT(w, w->system, "\n\n");
        put_content(w, message->content);
        PUT(w, "<end_of_turn>\n");
    }
    if (w->reply)
        PUT(w, "<start_of_turn>model\n");
}

static void write_chat(writing *w)
{
    switch (w->style->form) {
    case CHAT_CHATML:
        write_chatml(w);
        return;
    case CHAT_LLAMA3:
        write_llama3(w);
        return;
    case CHAT_ZEPHYR:
        write_zephyr(w);
        return;
    default:
        break;
    }
    check_turns(w);
    if (w->system != NULL && w->style->form != CHAT_LLAMA2 && !w->style->has_system)
        w->wrong = "the model has no form for the system's message: put it into the user's";
    if (w->wrong != NULL)
        return;
    if (w->style->form == CHAT_LLAMA2)
        write_llama2(w);
    else if (w->style->form == CHAT_MISTRAL)
        write_mistral(w);
    else
        write_gemma(w);
}

static void say(char *message, size_t message_size, const char *what)
{
    if (message != NULL && message_size > 0)
        snprintf(message, message_size, "%s", what);
}

static bool is_complete(const mha_chat_message *messages, ptrdiff_t count)
{
    bool complete = messages != NULL || count == 0;
    for (ptrdiff_t n = 0; complete && n < count; n++)
        complete = messages[n].role != NULL && messages[n].content != NULL;
    return complete;
}

mha_status chat_write(const chat_style *style, const mha_chat_message *messages, ptrdiff_t count,
                      bool reply, char **text, size_t *length, char *message, size_t message_size)
{
    writing w = {.style = style, .messages = messages, .count = count, .reply = reply};
    *text = NULL;
    *length = 0;
    if (!is_complete(messages, count)) {
        say(message, message_size, "a message has no role or no content");
        return MHA_ERR_NULL;
    }
    if (style->form == CHAT_NONE) {
        say(message, message_size,
            "the model's form of chats is not known; ChatML, Llama 2 and Llama 3 are supported");
        return MHA_ERR_FLAG;
    }
    if (count > 0 && is_role(&messages[0], "system")) {
        w.system = messages[0].content;
        w.first = 1;
    }
    PUT(&w, "");
    write_chat(&w);
    if (w.wrong != NULL || w.failed) {
        free(w.text);
        say(message, message_size, w.wrong != NULL ? w.wrong : "out of memory");
        return w.wrong != NULL ? MHA_ERR_FLAG : MHA_ERR_MEMORY;
    }
    *text = w.text;
    *length = w.length;
    return MHA_OK;
}
