/* SPDX-License-Identifier: MIT */
/* The program mha: finds the command by its name and runs it, or prints the help. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "program/args.h"
#include "program/commands.h"

typedef struct entry {
    const char *name;
    int (*run)(int argc, char **argv); /* NULL: a topic of the help */
    const char *summary;
} entry;

/* In the order in which a newcomer may want them. An entry without a name begins a group. */
static const entry commands[] = {
    {NULL, NULL, "See what the heads of a trained translator do"},
    {"translate", command_translate, "translate English to French; --attention draws heads"},
    {"show", command_show, "draw every head on a sentence in the terminal"},
    {"view", command_view, "write a web page that shows every head"},
    {"serve", command_serve, "the same page live: type sentences, disable heads"},
    {NULL, NULL, "Measure these heads"},
    {"heads", command_heads, "measure what every head attends to, and its role"},
    {"ablate", command_ablate, "close heads and measure the loss"},
    {"prune", command_prune, "close the least important heads one by one"},
    {NULL, NULL, "Train such a translator"},
    {"train", command_train, "train a translator from scratch, in some minutes"},
    {"corpus", command_corpus, "print the sentences it learns from, with alignments"},
    {"tensors", command_tensors, "check safetensors files and list their tensors"},
    {NULL, NULL, "Learn about attention without a model"},
    {"demo", command_demo, "draw the heads of a small layer"},
    {"prove", command_prove, "check claims about attention, with numbers"},
    {"conv", command_conv, "filter a picture with a multi-head attention layer"},
    {NULL, NULL, "Check and measure the library"},
    {"verify", command_verify, "compare random problems with double precision"},
    {"bench", command_bench, "measure problems as a share of the machine's peak"},
    {"explain", command_explain, "say how a problem would be computed, and why"},
    {"words", NULL, "the words that name problems"},
    {NULL, NULL, "About the program"},
    {"version", command_version, "version, instruction set, compiler, threads"},
    {"help", NULL, "this text, or \"mha help COMMAND\""},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const char words_help[] =
    "Problem words name an attention problem on one line:\n"
    "\n"
    "  b2h16g4l512s2048d64v32:causal:br:bf16\n"
    "\n"
    "Extents, in any order; l and d must be given:\n"
    "  b  batch (1)                 l  queries\n"
    "  h  query heads (1)           s  keys (l)\n"
    "  g  key/value heads (h)       d  width of a query or key head\n"
    "                               v  width of a value head (d)\n"
    "\n"
    "Suffixes, in any order, each after a colon:\n"
    "  f32 f16 bf16 f64       type of q, k, v and o (f32)\n"
    "  q=T k=T v=T o=T        type of one of them\n"
    "  causal                 a query sees keys up to its own position\n"
    "  tl br offset=N         position of query 0 among the keys: 0, s-l, N\n"
    "  window=L[,R]           L keys before the position, R after it (0); -1 is open\n"
    "  mask=boolP             boolean mask, P percent attended, for all heads\n"
    "  mask=add               additive mask, for all heads\n"
    "  bias alibi sink        bias of every head; slopes; sinks\n"
    "  softcap=X scale=X      soft cap and scale (none, 1/sqrt(d))\n"
    "  dropout=P              drop weights, as in training; for bench and explain\n"
    "  pad padN               true lengths are half, or 1/N, of l and s\n"
    "  padk padkN             the same for the keys only\n"
    "  docs=N                 N documents; a query sees its own\n"
    "  packed                 sequences of different lengths, one after another\n"
    "  lse weights[=M] avg    ask for log-sum-exp, weights (softmax, raw, softcap,\n"
    "                         bias), their mean over the heads\n"
    "  stats stats=M          statistics of rows and heads; M: with columns, top (the 8\n"
    "                         largest weights of each row), or all\n"
    "  grad                   the backward pass, for bench and explain\n"
    "  layout=bhld|blhd       order of the axes in memory (bhld)\n"
    "  t=N                    threads\n"
    "\n"
    "Layer words name what stands around attention, for bench and explain:\n"
    "\n"
    "  linear:m512n2304k768     y = x W^T: m rows, n outputs, k inputs\n"
    "  openblas:m512n2304k768   the same by OpenBLAS's sgemm (gemv: its sgemv)\n"
    "  layer:bert-base:l512     projections, heads, output projection\n"
    "  decode:gpt2-small:s1024  such a layer's step: the last l (1) of s tokens,\n"
    "                           those before them in a cache\n"
    "  cache:gpt2-small:s8192   the heads of such a step alone\n"
    "  train:b128               the translator's step of training on b pairs (bench only)\n"
    "  translate:b64            b sentences translated by it; :nocache without its caches\n"
    "\n"
    "Instead of a preset: e model width, h query heads, g key/value heads (h), d and v\n"
    "widths of a head (e/h, d), as in layer:e4096h32g8l512. Further b batch (1).\n"
    "Presets: bert-base bert-large gpt2-small gpt2-large gpt3 transformer-base\n"
    "Suffixes:\n"
    "  f32 f16 bf16 i8        type of the weights, in a cache word of the cache (f32)\n"
    "  cache=T                type of the cache of a step (f32)\n"
    "  causal t=N             as above\n"
    "  grad                   a layer's step of training: forward, then all gradients\n";

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
          "  MHA_NUM_THREADS   default number of threads (else OMP_NUM_THREADS)\n"
          "  MHA_ISA           force an instruction set: c, avx2, avx512, neon\n"
          "  MHA_MODEL         the model file of the translator\n"
          "  NO_COLOR          no colours; CLICOLOR_FORCE=1: colours in files and pipes\n"
          "\n"
          "Exit codes: 0 fine, 1 failed, 2 wrong usage.\n"
          "Try: mha show \"the old king sings\"\n",
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
        fputs(words_help, stdout);
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
        return args_failed("cannot write the result: %s", strerror(errno));
    return code;
}
