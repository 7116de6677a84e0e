/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "view_item.h"

/* An argument as a shell reads it. */
static void put_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, file);
    fputc('\'', file);
}

char *view_call_text(const view_call *call, const view_sentence *sentences, int count)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    fputs("mha view -o ", file);
    put_quoted(file, call->output);
    if (call->model_file != NULL) {
        fputs(" --model ", file);
        put_quoted(file, call->model_file);
    }
    if (call->target != NULL) {
        fputs(" --to ", file);
        put_quoted(file, call->target);
    }
    if (call->study != VIEW_STUDY_SENTENCES)
        fprintf(file, " --study %d", call->study);
    for (int n = 0; n < count; n++) {
        fputc(' ', file);
        put_quoted(file, sentences[n].text);
    }
    fclose(file);
    return text;
}
