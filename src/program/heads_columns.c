/* SPDX-License-Identifier: MIT */
/* The columns of the table of heads by name, the conditions of --where, which are parsed and
 * applied one after another, and the order of --sort. */
#include "program/heads_columns.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "program/options.h"

/* Columns that are not a head_measure. */
enum { OWN_LAYER = MEASURES, OWN_HEAD, OWN_SCORE, OWN_IMPORTANCE, OWN_SINK, OWN_AER, OWN_APART };

static const char *const own_names[] = {
    [OWN_LAYER - MEASURES] = "layer", [OWN_HEAD - MEASURES] = "head",
    [OWN_SCORE - MEASURES] = "score", [OWN_IMPORTANCE - MEASURES] = "importance",
    [OWN_SINK - MEASURES] = "sink",   [OWN_AER - MEASURES] = "aer",
    [OWN_APART - MEASURES] = "apart",
};

/* In the order of the help. */
static const int columns[] = {
    OWN_LAYER,
    OWN_HEAD,
    OWN_SCORE,
    OWN_IMPORTANCE,
    MEASURE_ENTROPY,
    MEASURE_SMOOTHED,
    MEASURE_BREADTH,
    MEASURE_CONFIDENCE,
    MEASURE_DISTANCE,
    MEASURE_REACH,
    OWN_SINK,
    MEASURE_FIRST,
    MEASURE_END,
    MEASURE_MASS + OFFSET_FAR - 1,
    MEASURE_MASS + OFFSET_FAR,
    MEASURE_MASS + OFFSET_FAR + 1,
    MEASURE_DUPLICATE,
    MEASURE_INDUCTION,
    MEASURE_QUESTION,
    MEASURE_RARE,
    MEASURE_ONE,
    OWN_AER,
    MEASURE_SAYS,
    MEASURE_READS,
    OWN_APART,
};
enum { COLUMNS = sizeof columns / sizeof columns[0], COLUMN_NAME_MAX = 24 };

const char *heads_column_name(int column)
{
    if (column >= COLUMNS)
        return NULL;
    const int what = columns[column];
    return what < MEASURES ? head_measure_name(what) : own_names[what - MEASURES];
}

/* The larger of two numbers, where NaN is smaller than any. */
static double larger(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

double heads_column_value(const heads_row *row, int column)
{
    const int what = columns[column];
    switch (what) {
    case OWN_LAYER:
        return row->name.layer + 1;
    case OWN_HEAD:
        return row->name.head + 1;
    case OWN_SCORE:
        return row->role.best.score;
    case OWN_IMPORTANCE:
        return row->importance;
    case OWN_SINK:
        return larger(head_study_mean(row->study, row->number, MEASURE_FIRST),
                      head_study_mean(row->study, row->number, MEASURE_END));
    case OWN_AER:
        return 1.0 - larger(head_study_mean(row->study, row->number, MEASURE_F_SAYS),
                            head_study_mean(row->study, row->number, MEASURE_F_READS));
    case OWN_APART:
        return row->apart;
    default:
        return head_study_mean(row->study, row->number, what);
    }
}

const char *heads_role_name(const heads_row *row)
{
    return row->role.found ? row->role.best.name : ROLE_NONE;
}

/* ------------------------------------------------------------- filters ----- */

typedef struct condition {
    int column; /* -1: the role */
    char relation[3];
    double number;
    char text[ROLE_NAME_MAX]; /* of a role */
} condition;

static int find_column(const char *command, const char *name, int *column)
{
    const char *names[COLUMNS];
    for (int n = 0; n < COLUMNS; n++)
        names[n] = heads_column_name(n);
    *column = option_choose(command, "column", name, names, COLUMNS);
    return *column < 0 ? EXIT_USAGE : EXIT_GO_ON;
}

static int wrong_condition(const char *command, const char *at)
{
    return args_wrong("%s: --where takes conditions such as \"prev>0.9 layer<2\", not \"%s\"",
                      command, at);
}

/* Reads the name and the relation of a condition, and moves *at past them. */
static int read_left(const char *command, const char **at, condition *c)
{
    char name[COLUMN_NAME_MAX];
    const size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyz_");
    const char *const relation = *at + length + strspn(*at + length, " ");
    const size_t signs = strspn(relation, "<>=");
    if (length == 0 || length >= sizeof name || signs == 0 || signs > 2 ||
        (signs == 2 && (relation[0] == '=' || relation[1] != '=')))
        return wrong_condition(command, *at);
    memcpy(name, *at, length);
    name[length] = '\0';
    memcpy(c->relation, relation, signs);
    c->relation[signs] = '\0';
    c->column = -1;
    *at = relation + signs + strspn(relation + signs, " ");
    return strcmp(name, "role") == 0 ? EXIT_GO_ON : find_column(command, name, &c->column);
}

/* Suggests the nearest role and lists all. */
static int no_such_role(const char *command, const char *text,
                        char names[ROLE_NAMES][ROLE_NAME_MAX], int count)
{
    const char *list[ROLE_NAMES];
    char all[ROLE_NAMES * (ROLE_NAME_MAX + 2)] = "";
    size_t used = 0;
    for (int n = 0; n < count; n++) {
        list[n] = names[n];
        used +=
            (size_t)snprintf(all + used, sizeof all - used, "%s%s", n > 0 ? ", " : "", names[n]);
    }
    const char *near = suggest_nearest(text, list, count);
    if (near != NULL)
        return args_wrong("%s: no role \"%s\"; did you mean \"%s\"? There are: %s", command, text,
                          near, all);
    return args_wrong("%s: no role \"%s\"; there are: %s", command, text, all);
}

/* Whether the text is the beginning of the name of a role. */
static int check_role(const char *command, const char *text)
{
    char names[ROLE_NAMES][ROLE_NAME_MAX];
    const int count = head_role_names(names);
    for (int n = 0; n < count; n++)
        if (strncmp(names[n], text, strlen(text)) == 0)
            return EXIT_GO_ON;
    return no_such_role(command, text, names, count);
}

/* The name of a role may have spaces: it ends at a comma, or where another condition begins. */
static size_t role_length(const char *text)
{
    size_t length = strcspn(text, " ,");
    while (text[length] == ' ') {
        const char *const next = text + length + strspn(text + length, " ");
        const size_t word = strcspn(next, " ,<>=");
        const char *const after = next + word + strspn(next + word, " ");
        if (word == 0 || strspn(after, "<>=") > 0)
            break;
        length = (size_t)(next - text) + word;
    }
    return length;
}

/* Reads one condition and moves *at past it. Columns are compared with numbers, and only "=" is
 * allowed for roles. */
static int read_condition(const char *command, const char **at, condition *c)
{
    const char *const begin = *at;
    const int code = read_left(command, at, c);
    if (code != EXIT_GO_ON)
        return code;
    if (c->column < 0) {
        const size_t length = role_length(*at);
        if (strcmp(c->relation, "=") != 0 || length == 0 || length >= sizeof c->text)
            return wrong_condition(command, begin);
        memcpy(c->text, *at, length);
        c->text[length] = '\0';
        *at += length;
        return check_role(command, c->text);
    }
    char *end;
    c->number = strtod(*at, &end);
    if (end == *at || isspace((unsigned char)**at) || (*end != '\0' && strchr(" ,", *end) == NULL))
        return wrong_condition(command, begin);
    *at = end;
    return EXIT_GO_ON;
}

/* NaN fulfils no condition. */
static bool holds(const condition *c, const heads_row *row)
{
    if (c->column < 0)
        return strncmp(heads_role_name(row), c->text, strlen(c->text)) == 0;
    const double value = heads_column_value(row, c->column);
    const bool equal = value == c->number && strchr(c->relation, '=') != NULL;
    return equal ||
           (c->relation[0] == '<' ? value < c->number : c->relation[0] == '>' && value > c->number);
}

int heads_filter(const char *command, const char *where, heads_row *rows, int *count)
{
    const char *at = where + strspn(where, " ,");
    while (*at != '\0') {
        condition c = {0};
        const int code = read_condition(command, &at, &c);
        if (code != EXIT_GO_ON)
            return code;
        int kept = 0;
        for (int n = 0; n < *count; n++)
            if (holds(&c, &rows[n]))
                rows[kept++] = rows[n];
        *count = kept;
        at += strspn(at, " ,");
    }
    return EXIT_GO_ON;
}

/* ------------------------------------------------------------- sorting ----- */

/* Whether b belongs before a. Heads without the number come last. */
static bool is_after(const heads_row *a, const heads_row *b, int column)
{
    const double x = heads_column_value(a, column), y = heads_column_value(b, column);
    const bool ascending = columns[column] == OWN_LAYER || columns[column] == OWN_HEAD ||
                           columns[column] == OWN_AER || columns[column] == OWN_APART;
    if (isnan(x) || isnan(y))
        return isnan(x) && !isnan(y);
    return ascending ? y < x : y > x;
}

int heads_sort(const char *column_name, heads_row *rows, int count)
{
    int column = 0;
    const int code = find_column("heads", column_name, &column);
    if (code != EXIT_GO_ON)
        return code;
    for (int n = 1; n < count; n++) {
        const heads_row row = rows[n];
        int at = n;
        for (; at > 0 && is_after(&rows[at - 1], &row, column); at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
    return EXIT_GO_ON;
}
