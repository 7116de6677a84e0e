/* SPDX-License-Identifier: MIT */
/* Writes the command line of a page: options that have their default value are left out. */
#include "page/page_command.h"

#include <stdio.h>

#include "base/shell_quote.h"
#include "page/page.h"

static void put_option(FILE *file, const char *name, const char *value)
{
    if (value == NULL)
        return;
    fputs(name, file);
    shell_quote(file, value);
}

char *page_command_text(const page_command *command, const page_sentence *sentences, int count)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    if (command->output == NULL)
        fputs("mha serve", file);
    put_option(file, "mha view -o ", command->output);
    if (command->live)
        fputs(" --live", file);
    put_option(file, " --model ", command->model_file);
    put_option(file, " --to ", command->target);
    put_option(file, " --weights ", command->weights);
    put_option(file, " --tokens ", command->tokens);
    put_option(file, " --ablation ", command->ablation);
    put_option(file, " --texts ", command->texts);
    put_option(file, " --lecture ", command->lecture);
    put_option(file, " --store ", command->store);
    if (command->words)
        fputs(" --words", file);
    if (command->study != PAGE_STUDY_SENTENCES)
        fprintf(file, " --study %d", command->study);
    if (command->output != NULL && command->weights == NULL && command->layer != 1)
        fprintf(file, " --layer %d", command->layer);
    for (int n = 0; n < count; n++)
        put_option(file, " ", sentences[n].text.text);
    for (int n = count > 0; n < command->example_count; n++)
        put_option(file, " ", command->examples[n].name);
    fclose(file);
    return text;
}
