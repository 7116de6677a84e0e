/* SPDX-License-Identifier: MIT */
/* Reads options and words by a command's table, prints the help from the same table, and suggests
 * the option that was probably meant. */
#define _GNU_SOURCE /* vasprintf */
#include "program/args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mha/mha.h>

#include "base/suggest.h"
#include "base/text.h"

/* As many options as arg_command.given has bits. */
enum { OPTIONS_MAX = 64, COLUMN = 24 };

const char *args_program = "mha";

/* Messages may quote files that are not trusted: control characters, and bytes that are not UTF-8,
 * become "?". */
static void report(const char *format, va_list list)
{
    char *message = NULL;
    fputs("mha: ", stderr);
    if (vasprintf(&message, format, list) < 0)
        message = NULL;
    for (const char *at = message ? message : "out of memory"; *at != '\0';) {
        uint32_t c;
        const size_t length = text_decode(at, &c);
        const bool control = c != '\n' && (c < 0x20 || (c >= 0x7f && c < 0xa0));
        if (control || (c == 0xfffd && length == 1))
            fputc('?', stderr);
        else
            fwrite(at, 1, length, stderr);
        at += length;
    }
    fputc('\n', stderr);
    free(message);
}

int args_wrong(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    report(format, list);
    va_end(list);
    return EXIT_USAGE;
}

int args_failed(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    report(format, list);
    va_end(list);
    return EXIT_FAILED;
}

/* Options of one letter have one dash. */
static const char *dashes(const char *name)
{
    return name[1] == '\0' ? "-" : "--";
}

static void print_option(const char *name, const char *value, const char *help)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s", dashes(name), name, value ? " " : "",
             value ? value : "");
    printf("  %-*s %s\n", COLUMN - 3, left, help);
}

/* Summary, usage, one line per option, then the details. */
static int print_help(const arg_command *command)
{
    printf("%s\n\nUsage: mha %s%s%s\n\nOptions:\n", command->summary, command->name,
           *command->usage ? " " : "", command->usage);
    for (int n = 0; n < command->option_count; n++)
        print_option(command->options[n].name, command->options[n].value, command->options[n].help);
    print_option("help", NULL, "this text");
    if (command->details != NULL)
        printf("\n%s", command->details);
    return EXIT_FINE;
}

/* Suggests the nearest option of the command. */
static int unknown_option(const arg_command *command, const char *name)
{
    const char *names[OPTIONS_MAX + 1] = {"help"};
    const int count = command->option_count < OPTIONS_MAX ? command->option_count : OPTIONS_MAX;
    for (int n = 0; n < count; n++)
        names[n + 1] = command->options[n].name;
    const char *near = suggest_nearest(name, names, count + 1);
    if (near != NULL)
        return args_wrong("%s: unknown option --%s; did you mean --%s?", command->name, name, near);
    return args_wrong("%s: unknown option --%s; see \"mha %s --help\"", command->name, name,
                      command->name);
}

/* The whole value must be a decimal number within the bounds of the option. */
static bool read_number(const arg_option *option, const char *value)
{
    char *end;
    errno = 0;
    const long long n = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno == ERANGE || n < option->min || n > option->max)
        return false;
    *(int64_t *)option->target = n;
    return true;
}

/* Any unsigned number of 64 bits; strtoull() would accept a minus sign. */
static bool read_seed(const arg_option *option, const char *value)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(value, &end, 0);
    if (end == value || *end != '\0' || errno == ERANGE || strchr(value, '-') != NULL)
        return false;
    *(uint64_t *)option->target = n;
    return true;
}

/* Stores the value in the option's target, or reports why it does not fit. */
static int store(const arg_command *command, const arg_option *option, const char *value)
{
    switch (option->kind) {
    case ARG_FLAG:
        *(bool *)option->target = true;
        return EXIT_GO_ON;
    case ARG_TEXT:
        *(const char **)option->target = value;
        return EXIT_GO_ON;
    case ARG_SEED:
        if (read_seed(option, value))
            return EXIT_GO_ON;
        return args_wrong("%s: --%s %s: a seed is a number from 0 to 2^64-1", command->name,
                          option->name, value);
    case ARG_NUMBER:
        if (read_number(option, value))
            return EXIT_GO_ON;
        return args_wrong("%s: --%s %s: not a number from %lld to %lld", command->name,
                          option->name, value, (long long)option->min, (long long)option->max);
    }
    return EXIT_USAGE;
}

/* Reads one argument that begins with dashes, and moves *at past a value that is an argument too.
 */
static int parse_option(const arg_command *command, int argc, char **argv, int *at)
{
    char name[64];
    const char *text = argv[*at] + (argv[*at][1] == '-' ? 2 : 1);
    const size_t length = strcspn(text, "=");
    const char *value = text[length] == '=' ? text + length + 1 : NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    for (int n = 0; n < command->option_count; n++) {
        const arg_option *option = &command->options[n];
        if (strcmp(name, option->name) != 0)
            continue;
        if (option->kind == ARG_FLAG && value != NULL)
            return args_wrong("%s: --%s takes no value", command->name, name);
        if (command->given != NULL)
            *command->given |= UINT64_C(1) << n;
        if (option->kind != ARG_FLAG && value == NULL && *at + 1 < argc)
            value = argv[++*at];
        if (option->kind != ARG_FLAG && value == NULL)
            return args_wrong("%s: %s%s needs a value: %s%s %s", command->name, dashes(name), name,
                              dashes(name), name, option->value);
        return store(command, option, value);
    }
    return unknown_option(command, name);
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* "--..." or "-x" where there is an option "x". */
static bool is_option(const arg_command *command, const char *argument)
{
    if (strncmp(argument, "--", 2) == 0)
        return true;
    for (int n = 0; n < command->option_count; n++)
        if (argument[0] == '-' && command->options[n].name[1] == '\0' &&
            strcmp(argument + 1, command->options[n].name) == 0)
            return true;
    return false;
}

/* The name in the usage of the first required word: the first one outside brackets. */
static const char *first_word(const char *usage, int *length)
{
    while (*usage == '[') {
        usage += strcspn(usage, "]");
        usage += strspn(usage, "] ");
    }
    const char *const dots = strstr(usage, "...");
    const size_t word = strcspn(usage, " ");
    *length = (int)(dots != NULL && dots < usage + word ? (size_t)(dots - usage) : word);
    return usage;
}

/* More words than the one that is a text: a model without its option, or a text without quotes. */
static int too_many_texts(const arg_command *command, char **argv)
{
    if (access(argv[1], F_OK) == 0)
        return args_wrong(
            "%s: \"%s\" is a file; a model is named by --model: mha %s --model %s TEXT",
            command->name, argv[1], command->name, argv[1]);
    return args_wrong("%s: there is more than one TEXT; put it in quotes: mha %s \"%s %s ...\"",
                      command->name, command->name, argv[1], argv[2]);
}

/* Reports a word too many or, by its name in the usage, one that is missing. */
static int check_words(const arg_command *command, char **argv, int words)
{
    if (words > command->words_max && strstr(command->usage, "[TEXT]") != NULL)
        return too_many_texts(command, argv);
    if (words > command->words_max)
        return args_wrong("%s: \"%s\" is one word too many; usage: mha %s %s", command->name,
                          argv[command->words_max + 1], command->name, command->usage);
    if (words < command->words_min) {
        int length;
        const char *const word = first_word(command->usage, &length);
        return args_wrong("%s: %.*s is missing; usage: mha %s %s", command->name, length, word,
                          command->name, command->usage);
    }
    return EXIT_GO_ON;
}

int args_parse(const arg_command *command, int argc, char **argv, int *words)
{
    bool options_end = false;
    int count = 0;
    for (int n = 1; n < argc; n++) {
        if (!options_end && strcmp(argv[n], "--") == 0) {
            options_end = true;
        } else if (!options_end && asks_for_help(argv[n])) {
            return print_help(command);
        } else if (!options_end && is_option(command, argv[n])) {
            const int code = parse_option(command, argc, argv, &n);
            if (code != EXIT_GO_ON)
                return code;
        } else if (!options_end && argv[n][0] == '-' && argv[n][1] != '\0') {
            return args_wrong("%s: unknown option %s; see \"mha %s --help\"", command->name,
                              argv[n], command->name);
        } else {
            argv[++count] = argv[n];
        }
    }
    if (words != NULL)
        *words = count;
    return check_words(command, argv, count);
}

/* Whether `names`, separated by spaces, contains the name. */
static bool is_among(const char *name, const char *names)
{
    const size_t length = strlen(name);
    for (; *names != '\0'; names += strcspn(names, " "), names += strspn(names, " "))
        if (strncmp(names, name, length) == 0 && strcspn(names, " ") == length)
            return true;
    return false;
}

bool args_given(const arg_command *command, const char *name)
{
    for (int n = 0; n < command->option_count; n++)
        if ((*command->given >> n & 1) != 0 && strcmp(command->options[n].name, name) == 0)
            return true;
    return false;
}

int args_refuse(const arg_command *command, const char *names, const char *reason)
{
    for (int n = 0; n < command->option_count; n++) {
        const char *const name = command->options[n].name;
        if ((*command->given >> n & 1) != 0 && is_among(name, names))
            return args_wrong("%s: %s%s %s", command->name, dashes(name), name, reason);
    }
    return EXIT_GO_ON;
}

/* 0 if the variable is not set, -1 after a message if it is no number of threads. In a `list` as of
 * OMP_NUM_THREADS the first number counts. */
static int threads_from(const char *variable, bool list)
{
    const char *text = getenv(variable);
    if (text == NULL || *text == '\0')
        return 0;
    char *end;
    const long n = strtol(text, &end, 10);
    if (end == text || (*end != '\0' && !(list && *end == ',')) || n < 1 || n > MHA_MAX_THREADS) {
        args_wrong("%s=%s is not a number of threads from 1 to %d", variable, text,
                   MHA_MAX_THREADS);
        return -1;
    }
    return (int)n;
}

int args_threads(int64_t asked, int fallback)
{
    if (asked > 0)
        return (int)asked;
    int threads = threads_from("MHA_NUM_THREADS", false);
    if (threads == 0)
        threads = threads_from("OMP_NUM_THREADS", true);
    if (threads < 0)
        return 0;
    return threads > 0 ? threads : fallback;
}
