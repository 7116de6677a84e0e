/* SPDX-License-Identifier: MIT */
/*
 * Recognises the form of chats (chat.h) in the template of a model. Templates are searched for the
 * marks of a form and for the few expressions by which published templates of the form differ.
 */
#include <stdlib.h>
#include <string.h>

#include "text/chat.h"

/* A template in two forms: as it is, and without white space, so that expressions can be found
 * however they are laid out. */
typedef struct chat_template {
    char *text, *packed;
} chat_template;

static bool template_read(chat_template *t, const char *text, size_t length)
{
    size_t used = 0;
    t->text = malloc(length + 1);
    t->packed = malloc(length + 1);
    if (t->text == NULL || t->packed == NULL)
        return false;
    for (size_t n = 0; n < length; n++) {
        const char c = text[n] == '\0' ? ' ' : text[n];
        t->text[n] = c;
        if (strchr(" \t\r\n", c) == NULL)
            t->packed[used++] = c == '"' ? '\'' : c;
    }
    t->text[length] = t->packed[used] = '\0';
    return true;
}

static bool has(const chat_template *t, const char *text)
{
    return strstr(t->text, text) != NULL;
}

static bool has_expression(const chat_template *t, const char *packed)
{
    return strstr(t->packed, packed) != NULL;
}

typedef struct form_mark {
    chat_form form;
    const char *mark;
    const char *second; /* that a vocabulary must have, too */
} form_mark;

/* In this order: Llama 2 is Mistral's form with more. */
static const form_mark marks[] = {
    {CHAT_CHATML, "<|im_start|>", "<|im_end|>"},
    {CHAT_LLAMA3, "<|start_header_id|>", "<|eot_id|>"},
    {CHAT_GEMMA, "<start_of_turn>", "<end_of_turn>"},
    {CHAT_LLAMA2, "<<SYS>>", "<</SYS>>"},
    {CHAT_MISTRAL, "[INST]", "[/INST]"},
    {CHAT_ZEPHYR, "<|user|>", "<|assistant|>"},
};
enum { MARKS = sizeof marks / sizeof marks[0] };

static chat_form form_of_template(const chat_template *t)
{
    for (int n = 0; n < MARKS; n++) {
        if (has(t, marks[n].mark))
            return marks[n].form;
    }
    return CHAT_NONE;
}

static bool has_piece(const vocabulary *v, const char *piece)
{
    return vocab_find(v, piece, strlen(piece)) >= 0;
}

static chat_form form_of_vocabulary(const vocabulary *v)
{
    for (int n = 0; v != NULL && n < MARKS; n++) {
        if (has_piece(v, marks[n].mark) && has_piece(v, marks[n].second))
            return marks[n].form;
    }
    return CHAT_NONE;
}

/* Copies a literal of Jinja up to `end`, with its escapes replaced. */
static char *unescaped(const char *begin, const char *end)
{
    char *const copy = malloc((size_t)(end - begin) + 1);
    size_t used = 0;
    for (const char *at = begin; copy != NULL && at < end; at++) {
        if (*at == '\\' && at + 1 < end) {
            at++;
            copy[used++] = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
        } else {
            copy[used++] = *at;
        }
    }
    if (copy != NULL)
        copy[used] = '\0';
    return copy;
}

/* Where a literal contains `stop`; NULL if the literal ends before. It has the quote `quote`, or
 * either of the two if that is another character. */
static const char *find_in_literal(const char *at, const char *stop, char quote)
{
    const bool any = quote != '\'' && quote != '"';
    for (; *at != '\0'; at++) {
        if (strncmp(at, stop, strlen(stop)) == 0)
            return at;
        if (any ? *at == '\'' || *at == '"' : *at == quote)
            return NULL;
        if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return NULL;
}

/* ChatML: '<|im_start|>system\nYou are ...<|im_end|>\n' is used if there is no system message. */
static bool find_system(chat_style *style, const chat_template *t)
{
    static const char head[] = "<|im_start|>system";
    for (const char *at = strstr(t->text, head); at != NULL; at = strstr(at + 1, head)) {
        const char *begin = at + strlen(head);
        if (begin[0] == '\n')
            begin++;
        else if (begin[0] == '\\' && begin[1] == 'n')
            begin += 2;
        else
            continue;
        const char quote = at > t->text ? at[-1] : '\0';
        const char *const end = find_in_literal(begin, "<|im_end|>", quote);
        if (end != NULL && end > begin) {
            style->system = unescaped(begin, end);
            return style->system != NULL;
        }
    }
    return true;
}

/* Llama 3.1 and later: {%- set date_string = "26 Jul 2024" %}. The date of the template is used,
 * not today's, so that a text does not depend on the day. */
static bool find_date(chat_style *style, const chat_template *t)
{
    if (!has(t, "Cutting Knowledge Date"))
        return true;
    static const char head[] = "date_string = ";
    for (const char *at = strstr(t->text, head); at != NULL; at = strstr(at + 1, head)) {
        const char *const begin = at + strlen(head) + 1;
        const char quote[2] = {begin[-1], '\0'};
        if (quote[0] != '\'' && quote[0] != '"')
            continue;
        const char *const end = find_in_literal(begin, quote, quote[0]);
        if (end != NULL) {
            style->date = unescaped(begin, end);
            return style->date != NULL;
        }
    }
    return true;
}

static void find_mistral_spaces(chat_style *style, const chat_template *t)
{
    style->has_system = has(t, "system_message");
    style->system_is_last = has_expression(t, "loop.lastandsystem_message");
    style->space_after = has(t, "eos_token + ' '") || has(t, "eos_token+' '");
    style->space_before = has(t, "' ' + message") || has(t, "\" \" + message");
    style->space_before_inst = has(t, "' [INST]") || has(t, "\" [INST]");
    style->tight_inst = !has(t, " [/INST]");
}

static bool read_template(chat_style *style, const chat_template *t)
{
    style->trims = has_expression(t, "|trim") || has_expression(t, ".strip()");
    style->ends_with_mark = has(t, "<|end|>");
    /* SmolLM2 begins a text with the mark that also begins each turn: written in a template it is
     * that of a turn. */
    const bool begins_turn = strcmp(style->begin, "<|im_start|>") == 0;
    const bool names_begin =
        has(t, "bos_token") || (style->begin[0] != '\0' && !begins_turn && has(t, style->begin));
    if (!names_begin)
        style->begin[0] = '\0';
    switch (style->form) {
    case CHAT_CHATML:
        return find_system(style, t);
    case CHAT_LLAMA3:
        return find_date(style, t);
    case CHAT_MISTRAL:
        find_mistral_spaces(style, t);
        return true;
    case CHAT_GEMMA:
        style->has_system = has(t, "first_user_prefix");
        return true;
    default:
        return true;
    }
}

/* What most models of a form do. */
static void assume(chat_style *style, const vocabulary *v)
{
    style->trims =
        style->form == CHAT_LLAMA2 || style->form == CHAT_LLAMA3 || style->form == CHAT_GEMMA;
    style->has_system = true;
    style->ends_with_mark = has_piece(v, "<|end|>");
    style->space_before = style->tight_inst = style->form == CHAT_MISTRAL;
    if (style->form == CHAT_CHATML || style->form == CHAT_ZEPHYR)
        style->begin[0] = '\0';
}

static char *copy_of(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *const copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

mha_status chat_style_find(chat_style *style, const char *template_text, size_t length,
                           const vocabulary *v, const char *begin, const char *end)
{
    chat_template t = {0};
    *style = (chat_style){.begin = copy_of(begin == NULL ? "" : begin),
                          .end = copy_of(end == NULL ? "" : end)};
    bool done = style->begin != NULL && style->end != NULL;
    if (done && template_text != NULL) {
        done = template_read(&t, template_text, length);
        style->form = done ? form_of_template(&t) : CHAT_NONE;
    }
    if (done && t.text != NULL && style->form != CHAT_NONE) {
        done = read_template(style, &t);
    } else if (done) {
        style->form = form_of_vocabulary(v);
        if (style->form != CHAT_NONE)
            assume(style, v);
    }
    free(t.text);
    free(t.packed);
    if (!done)
        chat_style_free(style);
    return done ? MHA_OK : MHA_ERR_MEMORY;
}

void chat_style_free(chat_style *style)
{
    free(style->begin);
    free(style->end);
    free(style->system);
    free(style->date);
    *style = (chat_style){0};
}
