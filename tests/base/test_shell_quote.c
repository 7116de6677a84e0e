/* SPDX-License-Identifier: MIT */
/* Quoted words (base/shell_quote.h), read back by a shell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shell_quote.h"
#include "support/test.h"

/* The quoted word, for free(). */
static char *quoted(void (*quote)(FILE *file, const char *word), const char *word)
{
    char *text = NULL;
    size_t size;
    FILE *const file = open_memstream(&text, &size);
    quote(file, word);
    fclose(file);
    return text;
}

static void check_read_back(const char *text, const char *word)
{
    char command[256], read[256] = "";
    snprintf(command, sizeof command, "printf '%%s.' %s", text);
    /* NOLINTNEXTLINE(cert-env33-c): what a shell makes of the word is the question */
    FILE *const shell = popen(command, "r");
    const size_t length = shell ? fread(read, 1, sizeof read - 1, shell) : 0;
    if (shell)
        pclose(shell);
    CHECK(length == strlen(word) + 1 && strncmp(read, word, strlen(word)) == 0,
          "%s is quoted as %s and read as %s", word, text, read);
}

static void a_shell_reads_the_word(void)
{
    static const char *const words[] = {"",      "plain", "two words", "it's",      "'",    "''a'",
                                        "$HOME", "`id`",  "a\\b",      "\"*?[~;&|", "a\nb", "été"};
    for (size_t n = 0; n < sizeof words / sizeof words[0]; n++) {
        char *const always = quoted(shell_quote, words[n]);
        char *const sometimes = quoted(shell_quote_if_needed, words[n]);
        check_read_back(always, words[n]);
        check_read_back(sometimes, words[n]);
        free(always);
        free(sometimes);
    }
}

static void plain_words_stay(void)
{
    char *const text = quoted(shell_quote_if_needed, "--model=a/b_c-1.5,x:y+z@%");
    CHECK(strcmp(text, "--model=a/b_c-1.5,x:y+z@%") == 0, "written as %s", text);
    free(text);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(a_shell_reads_the_word);
    RUN(plain_words_stay);
    return test_end();
}
