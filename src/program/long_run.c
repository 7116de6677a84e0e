/* SPDX-License-Identifier: MIT */
/* Signals during long computations, and the time that is left (long_run.h). */
#include "program/long_run.h"

#include <stdio.h>
#include <time.h>

#include "base/shell_quote.h"
#include "program/args.h"

/* One keystroke may send several signals (to the program and by its parent): only a signal that
 * comes later than this ends the program at once. */
enum { PATIENCE = 1 /* second */ };

static volatile sig_atomic_t signal_met;
static volatile time_t signal_time;

/* Handler: the first signal asks for an orderly end, a later one ends the program. */
static void meet_signal(int number)
{
    const time_t now = time(NULL);
    if (signal_met != 0 && now - signal_time > PATIENCE) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    if (signal_met == 0)
        signal_time = now;
    signal_met = number;
}

static const int signals[LONG_RUN_SIGNALS] = {SIGINT, SIGTERM};

/* A signal that is ignored stays ignored: shells start background programs that way. */
void long_run_begin(long_run *run)
{
    struct sigaction action = {.sa_handler = meet_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    signal_met = 0;
    for (int n = 0; n < LONG_RUN_SIGNALS; n++) {
        sigaction(signals[n], NULL, &run->before[n]);
        if (run->before[n].sa_handler != SIG_IGN)
            sigaction(signals[n], &action, NULL);
    }
}

void long_run_end(const long_run *run)
{
    for (int n = 0; n < LONG_RUN_SIGNALS; n++)
        sigaction(signals[n], &run->before[n], NULL);
}

int long_run_signal(void)
{
    return (int)signal_met;
}

void long_run_say_resume(int argc, char **argv, bool add)
{
    fputs("continue with: ", stderr);
    shell_quote_if_needed(stderr, args_program);
    for (int n = 0; n < argc; n++) {
        fputc(' ', stderr);
        shell_quote_if_needed(stderr, argv[n]);
    }
    fprintf(stderr, "%s\n", add ? " --resume" : "");
}

void long_run_time_left(double seconds, char text[32])
{
    if (seconds < 90.0)
        snprintf(text, 32, "%.0f s left", seconds);
    else if (seconds < 90.0 * 60.0)
        snprintf(text, 32, "%.0f min left", seconds / 60.0);
    else
        snprintf(text, 32, "%.1f h left", seconds / 3600.0);
}
