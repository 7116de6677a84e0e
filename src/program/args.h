/* SPDX-License-Identifier: MIT */
/*
 * Arguments of a command: --name, --name=value, --name value, -n value, and words in any order;
 * "--" ends the options. The same table that is parsed prints the help.
 */
#ifndef PROGRAM_ARGS_H
#define PROGRAM_ARGS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum arg_kind {
    ARG_FLAG,   /* bool */
    ARG_NUMBER, /* int64_t within min..max */
    ARG_SEED,   /* uint64_t, decimal or 0x... */
    ARG_TEXT    /* const char * */
} arg_kind;

typedef struct arg_option {
    const char *name; /* without the dashes: two, or one before a single letter */
    arg_kind kind;
    void *target;
    const char *value; /* placeholder of the value in the help; NULL for a flag */
    const char *help;
    int64_t min, max;
} arg_option;

typedef struct arg_command {
    const char *name;
    const char *usage;   /* after "mha NAME" */
    const char *summary; /* one line */
    const char *details; /* after the options; may be NULL */
    const arg_option *options;
    int option_count;
    int words_min, words_max;
    uint64_t *given; /* bit n: option n was given; may be NULL */
} arg_command;

/* The two fields of a command for its table of options. */
#define ARG_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])

enum { EXIT_GO_ON = -1, EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/*
 * argv[0] is the command's name. Words are moved to argv[1] and on, and counted in *words, which
 * may be NULL for a command that takes none.
 * Returns EXIT_GO_ON, or the exit code: EXIT_FINE after --help, EXIT_USAGE after a message on
 * stderr.
 */
int args_parse(const arg_command *command, int argc, char **argv, int *words);

/*
 * Refuses options that would have no effect beside others: if one of `names`, which are separated
 * by spaces, was given, prints "--NAME REASON" on stderr and returns EXIT_USAGE. Else returns
 * EXIT_GO_ON. To be called after args_parse() of a command with `given`.
 */
int args_refuse(const arg_command *command, const char *names, const char *reason);

/* Whether an option was given, of a command with `given`. */
bool args_given(const arg_command *command, const char *name);

/* The name by which the program was called, for command lines in messages; set by main(). */
extern const char *args_program;

/* "mha: " and the message on stderr; the first returns EXIT_USAGE, the second EXIT_FAILED. */
int args_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
int args_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Threads to use: `asked` if positive, else MHA_NUM_THREADS, else OMP_NUM_THREADS (its first
 * number), else `fallback`. 0, with a message on stderr, for a variable that is no thread count.
 */
int args_threads(int64_t asked, int fallback);

#endif
