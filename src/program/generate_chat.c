/* SPDX-License-Identifier: MIT */
/*
 * Chats of "mha generate": the turns so far become one text in the model's own form. Only its end
 * is new to the state.
 */
#include "program/generate_chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/args.h"

typedef struct chat {
    mha_chat_message *messages;
    ptrdiff_t count;
} chat;

/* Keeps a copy of the content. */
static bool add_message(chat *c, const char *role, const char *content)
{
    mha_chat_message *const more = realloc(c->messages, sizeof *more * (size_t)(c->count + 1));
    if (more == NULL)
        return false;
    c->messages = more;
    char *const copy = strdup(content);
    if (copy == NULL)
        return false;
    c->messages[c->count++] = (mha_chat_message){role, copy};
    return true;
}

static void free_chat(chat *c)
{
    for (ptrdiff_t n = 0; n < c->count; n++)
        free((char *)(uintptr_t)c->messages[n].content);
    free(c->messages);
}

/* What the user says, and the reply to it. */
static int take_turn(generate_run *run, chat *c, const char *said)
{
    char message[MODEL_MESSAGE_MAX] = "", *text, *reply = NULL;
    size_t length;
    if (!add_message(c, "user", said))
        return args_failed("out of memory");
    const mha_status status = mha_tokenizer_chat(run->tokenizer, c->messages, c->count, 1, &text,
                                                 &length, message, sizeof message);
    if (status != MHA_OK)
        return args_failed("generate: %s", message[0] ? message : mha_status_string(status));
    int code = generate_turn(run, text, 0, &reply);
    mha_text_free(text);
    if (code == EXIT_GO_ON && !add_message(c, "assistant", reply))
        code = args_failed("out of memory");
    free(reply);
    return code;
}

static int read_turns(generate_run *run, chat *c)
{
    const bool live = isatty(STDIN_FILENO);
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int code = EXIT_GO_ON;
    while (code == EXIT_GO_ON) {
        if (live)
            fputs("> ", stderr);
        if ((length = getline(&line, &room, stdin)) < 0)
            break;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        if (length == 0)
            break;
        code = take_turn(run, c, line);
    }
    free(line);
    return code;
}

int generate_chat(generate_run *run, const char *text)
{
    chat c = {.count = 0};
    int code = EXIT_GO_ON;
    if (run->request->system != NULL && !add_message(&c, "system", run->request->system))
        code = args_failed("out of memory");
    if (code == EXIT_GO_ON)
        code = text != NULL ? take_turn(run, &c, text) : read_turns(run, &c);
    free_chat(&c);
    return code;
}
