/* SPDX-License-Identifier: MIT */
/* What the terminal can show, by its environment variables; colours by escape sequences; and a line
 * of progress that is overwritten. */
#include "base/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

enum { WIDTH_DEFAULT = 80 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

static bool forced(void)
{
    const char *value = variable("CLICOLOR_FORCE");
    return *value != '\0' && strcmp(value, "0") != 0;
}

/* By COLORTERM and TERM; terminals do not report their colours reliably. */
static color_depth query_color(FILE *file)
{
    const char *term = variable("TERM"), *color = variable("COLORTERM");
    if (*variable("NO_COLOR") != '\0' || strcmp(term, "dumb") == 0)
        return COLOR_NONE;
    if (!forced() && !isatty(fileno(file)))
        return COLOR_NONE;
    if (strcmp(color, "truecolor") == 0 || strcmp(color, "24bit") == 0)
        return COLOR_TRUE;
    return strstr(term, "256color") != NULL ? COLOR_256 : COLOR_16;
}

/* COLUMNS has priority, so that output to a file can be given a width. */
static int query_width(FILE *file)
{
    struct winsize size;
    long width = strtol(variable("COLUMNS"), NULL, 10);
    if (width <= 0 && ioctl(fileno(file), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        return WIDTH_DEFAULT;
    return width < TERMINAL_WIDTH_MIN   ? TERMINAL_WIDTH_MIN
           : width > TERMINAL_WIDTH_MAX ? TERMINAL_WIDTH_MAX
                                        : (int)width;
}

/* The first variable that is set decides, as in setlocale(3). */
static bool query_unicode(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int n = 0; n < 3; n++) {
        const char *value = variable(names[n]);
        if (*value == '\0')
            continue;
        const char *dot = strchr(value, '.');
        return dot != NULL &&
               (strncasecmp(dot, ".utf-8", 6) == 0 || strncasecmp(dot, ".utf8", 5) == 0);
    }
    return false;
}

terminal terminal_query(FILE *file)
{
    return (terminal){query_color(file), query_width(file), query_unicode()};
}

/* ---------------------------------------------------------------- colour ----- */

/* The nearest of the six steps of the xterm colour cube. */
static int cube_step(int x)
{
    return x < 48 ? 0 : x < 115 ? 1 : (x - 35) / 40;
}

/* The nearest colour of the cube among the 256 of an xterm. */
static int cube_color(rgb c)
{
    return 16 + 36 * cube_step(c.r) + 6 * cube_step(c.g) + cube_step(c.b);
}

static int squared(int x)
{
    return x * x;
}

/* The nearest of the 16 basic colours in their usual shades, as the code of a foreground. */
static int basic_color(rgb c)
{
    static const rgb shades[16] = {{0, 0, 0},     {170, 0, 0},    {0, 170, 0},    {170, 85, 0},
                                   {0, 0, 170},   {170, 0, 170},  {0, 170, 170},  {170, 170, 170},
                                   {85, 85, 85},  {255, 85, 85},  {85, 255, 85},  {255, 255, 85},
                                   {85, 85, 255}, {255, 85, 255}, {85, 255, 255}, {255, 255, 255}};
    int best = 0, least = 1 << 30;
    for (int n = 0; n < 16; n++) {
        const int far =
            squared(c.r - shades[n].r) + squared(c.g - shades[n].g) + squared(c.b - shades[n].b);
        if (far < least) {
            least = far;
            best = n;
        }
    }
    return best < 8 ? 30 + best : 90 + best - 8;
}

/* Codes of backgrounds are those of foregrounds, plus 10. */
static void set_color(FILE *file, const terminal *t, rgb c, int more)
{
    switch (t->color) {
    case COLOR_NONE:
        break;
    case COLOR_16:
        fprintf(file, "\033[%dm", basic_color(c) + more);
        break;
    case COLOR_256:
        fprintf(file, "\033[%d;5;%dm", 38 + more, cube_color(c));
        break;
    case COLOR_TRUE:
        fprintf(file, "\033[%d;2;%d;%d;%dm", 38 + more, c.r, c.g, c.b);
        break;
    }
}

void terminal_background(FILE *file, const terminal *t, rgb c)
{
    set_color(file, t, c, 10);
}

void terminal_foreground(FILE *file, const terminal *t, rgb c)
{
    set_color(file, t, c, 0);
}

void terminal_style(FILE *file, const terminal *t, text_style style)
{
    static const char *const codes[] = {"1", "2", "32", "31"};
    if (t->color != COLOR_NONE)
        fprintf(file, "\033[%sm", codes[style]);
}

void terminal_plain(FILE *file, const terminal *t)
{
    if (t->color != COLOR_NONE)
        fputs("\033[0m", file);
}

/* -------------------------------------------------------------- progress ----- */

static bool progress_shown;

bool progress_is_live(void)
{
    return isatty(STDERR_FILENO) && strcmp(variable("TERM"), "dumb") != 0;
}

void progress(const char *format, ...)
{
    static double last;
    const double now = clock_seconds();
    if (!progress_is_live() || now - last < 0.1)
        return;
    va_list list;
    va_start(list, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, list);
    fflush(stderr);
    va_end(list);
    last = now;
    progress_shown = true;
}

void progress_end(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}
