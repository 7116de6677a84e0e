/* SPDX-License-Identifier: MIT */
/*
 * learn_lines FILE SIZE [MIN_PAIR MIN_CHARACTER]: learns a vocabulary of SIZE pieces from the lines
 * on standard input and writes it to FILE, for compare_learned.py. A tab separates two texts of a
 * line.
 */
#include "text/bpe_learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "learn_lines: %s\n", what);
    exit(1);
}

static void add_line(bpe_learner *learner, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    for (char *text = strtok(line, "\t"); text; text = strtok(NULL, "\t"))
        if (bpe_learner_add(learner, text, strlen(text)) != MHA_OK)
            fail("a line cannot be added");
}

int main(int argc, char **argv)
{
    char message[300] = "", *line = NULL;
    size_t room = 0;
    bpe_learner *learner;
    bpe_learned learned;
    if (argc != 3 && argc != 5)
        fail("usage: learn_lines FILE SIZE [MIN_PAIR MIN_CHARACTER]");
    const bpe_learn_options options = {.vocabulary_size = (int32_t)strtol(argv[2], NULL, 10),
                                       .min_pair_count = argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
                                       .min_character_count =
                                           argc > 3 ? strtoull(argv[4], NULL, 10) : 0};
    if (bpe_learner_create(&learner, message, sizeof message) != MHA_OK)
        fail(message);
    while (getline(&line, &room, stdin) > 0)
        add_line(learner, line);
    free(line);
    if (bpe_learner_finish(learner, &options, &learned, message, sizeof message) != MHA_OK ||
        bpe_learned_save(&learned, argv[1], message, sizeof message) != MHA_OK)
        fail(message);
    printf("%d pieces, %d of them characters\n", (int)learned.size, (int)learned.characters);
    bpe_learned_free(&learned);
    bpe_learner_free(learner);
    return 0;
}
