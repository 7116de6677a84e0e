/* SPDX-License-Identifier: MIT */
/* The program mha: finds the command by its name and runs it, or prints the help. */
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

/* In the order in which a newcomer may want them. An entry without a name begins a group. */
static const entry commands[] = {
    {NULL, NULL, "See the heads of any model, by default those of a real translator"},
    {"show", command_show, "draw every head on a sentence in the terminal"},
    {"see", command_see, "say what is in pictures, and draw every head over them"},
    {"view", command_view, "write a web page that shows every head"},
    {"serve", command_serve, "the same page live: type sentences, disable heads"},
    {NULL, NULL, "Measure the heads of any model, by default those of the laboratory"},
    {"heads", command_heads, "measure what every head attends to, and its role"},
    {"ablate", command_ablate, "disable heads and measure the loss"},
    {"prune", command_prune, "disable the least important heads one by one"},
    {NULL, NULL, "Run models of any family: BERT, GPT-2, Llama, T5, Marian, ..."},
    {"translate", command_translate, "translate English to French; --attention draws heads"},
    {"inspect", command_inspect, "say what a model is, with a drawing of one layer"},
    {"embed", command_embed, "texts to vectors; --rank sorts texts by similarity"},
    {"generate", command_generate, "continue a text, or chat"},
    {"score", command_score, "how probable a model finds texts"},
    {"tokenize", command_tokenize, "texts to tokens and back"},
    {"tensors", command_tensors, "check files of weights and list their tensors"},
    {NULL, NULL, "Train and measure models"},
    {"train", command_train, "train a translator, or a model of pictures"},
    {"sweep", command_sweep, "train with different numbers of heads, and compare"},
    {"corpus", command_corpus, "print the sentences it learns from, with alignments"},
    {"scenes", command_scenes, "make pictures of shapes with known truth and captions"},
    {"bleu", command_bleu, "BLEU and chrF of translations, as sacrebleu has them"},
    {NULL, NULL, "Learn about attention without a model"},
    {"demo", command_demo, "draw the heads of a small layer"},
    {"prove", command_prove, "check claims about attention, with numbers"},
    {"conv", command_conv, "filter a picture with a multi-head attention layer"},
    {NULL, NULL, "Check and measure the library"},
    {"verify", command_verify, "compare random problems with double precision"},
    {"bench", command_bench, "measure problems as a share of the machine's peak"},
    {"explain", command_explain, "explain how a problem would be computed, and why"},
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
          "Two models are part of the program: --model en-fr, a translator trained on real "
          "sentences,\n"
          "and --model lab, the laboratory, a translator trained on a generated grammar: every "
          "sentence\n"
          "comes from this known grammar, so the true alignment and roles are known.\n"
          "\n"
          "Environment:\n"
          "  MHA_NUM_THREADS   default number of threads (else OMP_NUM_THREADS)\n"
          "  MHA_ISA           force an instruction set: c, avx2, avx512, neon, wasm,\n"
          "                    or one of native arithmetic such as avx512bf16\n"
          "  MHA_MODEL         the model, if --model is not given\n"
          "  NO_COLOR          no colours; CLICOLOR_FORCE=1: colours in files and pipes\n"
          "\n"
          "Exit codes: 0 success, 1 failure, 2 wrong usage.\n"
          "Try: mha show --words \"The old king sings.\"\n"
          "     mha view --model all-MiniLM-L6-v2 \"The tired cat ran away.\"\n",
          file);
}

/* NULL for an unknown name, and for topics that only the help has. */
static const entry *find_command(const char *name)
{
    for (int n = 0; n < COMMAND_COUNT; n++)
        if (commands[n].run != NULL && strcmp(name, commands[n].name) == 0)
            return &commands[n];
    return NULL;
}

/* Suggests the nearest command or topic of the help. */
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

/* The general help, the help on problem words, or "COMMAND --help". */
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

/* Runs the command; without one, the help goes to stderr and the exit code is EXIT_USAGE. */
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
    /* When the reader of a pipe exits, the program ends, even if its parent ignored the signal. */
    signal(SIGPIPE, SIG_DFL);
    if (argc > 0)
        args_program = argv[0];
    const int code = dispatch(argc, argv);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == EXIT_FINE)
        return args_failed("cannot write the result: %s",
                           errno ? strerror(errno) : "standard output does not take it");
    return code;
}
