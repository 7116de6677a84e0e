/* SPDX-License-Identifier: MIT */
/*
 * Writes chats for compare_chat.py. A record of the input is a list of texts, each a length (u32
 * little-endian) and as many bytes, after their number: the template, the begin and the end mark,
 * "1" if a reply follows, then role and content of each message. For each record a line is written:
 * the text in hexadecimal, or "-" if the chat has no such form.
 */
#include "text/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATE, BEGIN, END, REPLY, MESSAGES, TEXTS_MAX = 64 };

static bool read_number(uint32_t *number)
{
    unsigned char b[4];
    if (fread(b, 1, 4, stdin) != 4)
        return false;
    *number = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return true;
}

static char *read_text(void)
{
    uint32_t length;
    if (!read_number(&length))
        return NULL;
    char *const text = malloc((size_t)length + 1);
    text[fread(text, 1, length, stdin)] = '\0';
    return text;
}

static void write_chat(char *const *texts, uint32_t count)
{
    mha_chat_message messages[TEXTS_MAX];
    chat_style style;
    const ptrdiff_t message_count = ((ptrdiff_t)count - MESSAGES) / 2;
    char *text;
    size_t length;
    for (ptrdiff_t n = 0; n < message_count; n++)
        messages[n] = (mha_chat_message){texts[MESSAGES + 2 * n], texts[MESSAGES + 2 * n + 1]};
    if (chat_style_find(&style, texts[TEMPLATE], strlen(texts[TEMPLATE]), NULL, texts[BEGIN],
                        texts[END]) != MHA_OK)
        exit(1);
    if (chat_write(&style, messages, message_count, texts[REPLY][0] == '1', &text, &length, NULL,
                   0) == MHA_OK) {
        for (size_t n = 0; n < length; n++)
            printf("%02x", (unsigned char)text[n]);
        free(text);
    } else {
        printf("-");
    }
    printf("\n");
    chat_style_free(&style);
}

int main(void)
{
    char *texts[TEXTS_MAX];
    uint32_t count;
    while (read_number(&count) && count >= MESSAGES && count <= TEXTS_MAX) {
        for (uint32_t n = 0; n < count; n++) {
            texts[n] = read_text();
            if (texts[n] == NULL)
                return 1;
        }
        write_chat(texts, count);
        for (uint32_t n = 0; n < count; n++)
            free(texts[n]);
    }
    return 0;
}
