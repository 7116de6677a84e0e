/* SPDX-License-Identifier: MIT */
/* The program mha: finds the command and hands over. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "problem/layer_word.h"
#include "problem/problem_word.h"
#include "program/args.h"
#include "program/commands.h"

typedef struct entry {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: a topic of the help */
    const char *summary;
} entry;

/* By what a newcomer wants first. A name of NULL begins a group. */
static const entry commands[] = {
    {NULL, NULL, "See what the heads of a trained translator do"},
    {"translate", command_translate, "English to French; --attention draws heads"},
    {"show", command_show, "draw every head on a sentence, in the terminal"},
    {"view", command_view, "a page for a browser that shows every head"},
    {"serve", command_serve, "the same live: type a sentence, close heads"},
    {NULL, NULL, "Measure these heads"},
    {"heads", command_heads, "what every head looks at, and its role"},
    {"ablate", command_ablate, "close heads and measure what that costs"},
    {"prune", command_prune, "close the least important heads one by one"},
    {NULL, NULL, "Train such a translator"},
    {"train", command_train, "from nothing, in some minutes"},
    {"corpus", command_corpus, "the sentences it learns from, with their truth"},
    {"tensors", command_tensors, "check safetensors files and list what they hold"},
    {NULL, NULL, "Learn about attention without a model"},
    {"demo", command_demo, "draw the heads of a small layer"},
    {"prove", command_prove, "claims about attention, run live, with numbers"},
    {"conv", command_conv, "filter a picture with a multi-head attention layer"},
    {NULL, NULL, "Check and measure the library"},
    {"verify", command_verify, "random problems against double precision"},
    {"bench", command_bench, "problems as a share of the machine's peak"},
    {"explain", command_explain, "how a problem would be computed, and why"},
    {"words", NULL, "the words that name problems"},
    {NULL, NULL, "About the program"},
    {"version", command_version, "version, instruction set, compiler, threads"},
    {"help", NULL, "this text, or \"mha help COMMAND\""},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *file)
{
    fputs("mha: multi-head attention on CPUs, every head fast, exact and visible.\n"
          "\n"
          "Usage: mha COMMAND [OPTION...]\n",
          file);
    for (int n = 0; n < COMMAND_COUNT; n++)
        if (commands[n].name == NULL)
            fprintf(file, "\n%s:\n", commands[n].summary);
        else
            fprintf(file, "  %-10s %s\n", commands[n].name, commands[n].summary);
    fputs("\n"
          "Environment:\n"
          "  MHA_NUM_THREADS   threads where no option says (else OMP_NUM_THREADS)\n"
          "  MHA_ISA           force an instruction set: c, avx2, avx512, neon\n"
          "  MHA_MODEL         the file of the translator\n"
          "  NO_COLOR          no colours; CLICOLOR_FORCE=1: colours without a terminal\n"
          "\n"
          "Exit codes: 0 fine, 1 failed, 2 wrong usage.\n"
          "Try: mha show \"the old king sings\"\n",
          file);
}

static const entry *find_command(const char *name)
{
    for (int n = 0; n < COMMAND_COUNT; n++)
        if (commands[n].run != NULL && strcmp(name, commands[n].name) == 0)
            return &commands[n];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    int count = 0;
    for (int n = 0; n < COMMAND_COUNT; n++)
        if (commands[n].name != NULL)
            names[count++] = commands[n].name;
    const char *near = suggest_nearest(name, names, count);
    if (near != NULL)
        return args_wrong("unknown command \"%s\"; did you mean \"%s\"?", name, near);
    return args_wrong("unknown command \"%s\"; see \"mha --help\"", name);
}

static bool names_words(const char *topic)
{
    return strcmp(topic, "words") == 0 || strcmp(topic, "word") == 0;
}

static int help(const char *topic)
{
    if (topic == NULL || strcmp(topic, "help") == 0) {
        print_help(stdout);
        return EXIT_FINE;
    }
    if (names_words(topic)) {
        problem_word_help(stdout);
        fputs("\n", stdout);
        layer_word_help(stdout);
        return EXIT_FINE;
    }
    const entry *command = find_command(topic);
    if (command == NULL)
        return unknown_command(topic);
    char name[16], option[] = "--help";
    snprintf(name, sizeof name, "%s", topic);
    char *arguments[] = {name, option, NULL};
    return command->run(2, arguments);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(NULL);
    if (strcmp(name, "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0)
        return command_version(1, argv + 1);
    if (names_words(name))
        return help(name);
    const entry *command = find_command(name);
    if (command != NULL)
        return command->run(argc - 1, argv + 1);
    if (name[0] == '-')
        return args_wrong("unknown option %s; see \"mha --help\"", name);
    return unknown_command(name);
}

int main(int argc, char **argv)
{
    /* A reader that has seen enough ends the program, even if a parent ignored the signal. */
    signal(SIGPIPE, SIG_DFL);
    if (argc > 0)
        args_program = argv[0];
    const int code = dispatch(argc, argv);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_FINE) {
        fprintf(stderr, "mha: cannot write the result: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    return code;
}
