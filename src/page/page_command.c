/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "page/page_sentence.h"

/* An argument as a shell reads it. */
static void put_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, file);
    fputc('\'', file);
}

static void put_option(FILE *file, const char *name, const char *value)
{
    if (value == NULL)
        return;
    fputs(name, file);
    put_quoted(file, value);
}

char *page_command_text(const page_command *call, const page_sentence *sentences, int count)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    put_option(file, "mha view -o ", call->output);
    put_option(file, " --model ", call->model_file);
    put_option(file, " --to ", call->target);
    put_option(file, " --weights ", call->weights);
    put_option(file, " --tokens ", call->tokens);
    put_option(file, " --ablation ", call->ablation);
    if (call->study != PAGE_STUDY_SENTENCES)
        fprintf(file, " --study %d", call->study);
    for (int n = 0; n < count; n++)
        put_option(file, " ", sentences[n].text);
    fclose(file);
    return text;
}
