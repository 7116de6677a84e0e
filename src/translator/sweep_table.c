/* SPDX-License-Identifier: MIT */
/* The results of a sweep as a CSV file and back (sweep_table.h). */
#include "translator/sweep_table.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/line_file.h"

#define FORMAT_LINE "# mha sweep 1"
#define ISA_LINE "# isa "
/* COLUMNS: those before the validations. */
enum { SETTINGS_MAX = TRAINING_SETTINGS * 2 * TRAINING_TEXT_MAX, HEAD_LINES = 4, COLUMNS = 6 };

/* --------------------------------------------------------------- table ----- */

const sweep_result *sweep_table_find(const sweep_table *t, const sweep_key *key)
{
    for (int n = 0; n < t->count; n++) {
        const sweep_key *const other = &t->results[n].key;
        if (other->data == key->data && other->heads == key->heads && other->seed == key->seed)
            return &t->results[n];
    }
    return NULL;
}

bool sweep_table_add(sweep_table *t, const sweep_result *result)
{
    sweep_result *const more =
        mhai_array_grow(t->results, &t->room, (size_t)t->count + 1, sizeof *t->results);
    if (more == NULL)
        return false;
    t->results = more;
    t->results[t->count++] = *result;
    return true;
}

void sweep_table_free(sweep_table *t)
{
    free(t->results);
    t->results = NULL;
    t->count = 0;
    t->room = 0;
}

/* --------------------------------------------------------------- write ----- */

/* Heads, seed and sentences are those of each training. */
static bool is_common(int setting)
{
    const char *const name = training_setting_name(setting);
    return strcmp(name, "heads") != 0 && strcmp(name, "seed") != 0 &&
           strcmp(name, "sentences") != 0;
}

static void settings_line(const sweep_settings *s, char line[SETTINGS_MAX])
{
    char text[TRAINING_TEXT_MAX];
    size_t used = (size_t)snprintf(line, SETTINGS_MAX, "#");
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        if (!is_common(n) || !training_setting_is_recorded(&s->config, n))
            continue;
        training_setting_text(&s->config, n, text);
        used += (size_t)snprintf(line + used, SETTINGS_MAX - used, " %s=%s",
                                 training_setting_name(n), text);
    }
    snprintf(line + used, SETTINGS_MAX - used, " evaluate=%" PRId64 " points=%d", s->evaluate,
             s->points);
}

static void write_result(FILE *file, const sweep_settings *s, const sweep_result *r)
{
    fprintf(file, "%" PRId64 ",%d,%" PRIu64 ",%.8g,%.8g,%.8g", r->key.data, r->key.heads,
            r->key.seed, r->train_loss, r->words_right, r->exact);
    for (int n = 0; n < s->points; n++)
        fprintf(file, ",%.8g", r->valid[n]);
    fputc('\n', file);
}

void sweep_table_write(FILE *file, const void *table)
{
    const sweep_table *const t = table;
    char line[SETTINGS_MAX];
    settings_line(&t->settings, line);
    fprintf(file, FORMAT_LINE "\n" ISA_LINE "%s\n%s\ndata,heads,seed,train_loss,words_right,exact",
            t->isa[0] != '\0' ? t->isa : mha_isa_base(), line);
    for (int n = 0; n < t->settings.points; n++)
        fprintf(file, ",valid@%" PRId64, sweep_step(&t->settings, n));
    fputc('\n', file);
    for (int n = 0; n < t->count; n++)
        write_result(file, &t->settings, &t->results[n]);
}

void sweep_table_write_curves(FILE *file, const void *table)
{
    const sweep_table *const t = table;
    fputs("data,heads,seed,step,valid_loss\n", file);
    for (int n = 0; n < t->count; n++)
        for (int point = 0; point < t->settings.points; point++) {
            const sweep_key *const key = &t->results[n].key;
            fprintf(file, "%" PRId64 ",%d,%" PRIu64 ",%" PRId64 ",%.8g\n", key->data, key->heads,
                    key->seed, sweep_step(&t->settings, point), t->results[n].valid[point]);
        }
}

/* ---------------------------------------------------------------- read ----- */

typedef struct sweep_reader {
    const char *path;
    size_t line; /* counted from 1 */
    char *message;
} sweep_reader;

__attribute__((format(printf, 2, 3))) static bool refuse(const sweep_reader *r, const char *format,
                                                         ...)
{
    char reason[SWEEP_MESSAGE_MAX / 2];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    snprintf(r->message, SWEEP_MESSAGE_MAX, "%.400s, line %zu: %s", r->path, r->line, reason);
    return false;
}

/* Compares two lines of settings, word by word. */
static bool compare_settings(const sweep_reader *r, const char *theirs, const char *ours)
{
    while (*theirs == *ours && *ours != '\0') {
        const size_t a = strcspn(theirs, " "), b = strcspn(ours, " ");
        if (a != b || strncmp(theirs, ours, a) != 0)
            break;
        theirs += a + (theirs[a] == ' ');
        ours += b + (ours[b] == ' ');
    }
    if (strcmp(theirs, ours) == 0)
        return true;
    return refuse(r,
                  "these results were made with other settings: %.*s there, %.*s now. Give the "
                  "same settings, or another file with -o FILE",
                  (int)strcspn(theirs, " "), theirs, (int)strcspn(ours, " "), ours);
}

/* The number up to the next comma or the end; *at is then past it. */
static bool read_number(const char **at, double low, double high, double *value)
{
    char *end;
    *value = strtod(*at, &end);
    if (end == *at || (*end != ',' && *end != '\0') || !(*value >= low && *value <= high))
        return false;
    *at = *end == ',' ? end + 1 : end;
    return true;
}

static bool read_seed(const char **at, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(*at, &end, 10);
    if (**at < '0' || **at > '9' || *end != ',' || errno != 0)
        return false;
    *at = end + 1;
    return true;
}

static int count_commas(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++)
        count += *text == ',';
    return count;
}

static bool read_result(sweep_table *t, const char *at, sweep_result *result)
{
    double data, heads;
    if (count_commas(at) != COLUMNS - 1 + t->settings.points)
        return false;
    if (!read_number(&at, 0.0, 0x1p53, &data) || !read_number(&at, 1.0, INT_MAX, &heads) ||
        data != floor(data) || heads != floor(heads) || !read_seed(&at, &result->key.seed) ||
        !read_number(&at, 0.0, 1e9, &result->train_loss) ||
        !read_number(&at, 0.0, 1.0, &result->words_right) ||
        !read_number(&at, 0.0, 1.0, &result->exact))
        return false;
    result->key.data = (int64_t)data;
    result->key.heads = (int)heads;
    for (int n = 0; n < t->settings.points; n++)
        if (!read_number(&at, 0.0, 1e9, &result->valid[n]))
            return false;
    return true;
}

static bool read_results(sweep_table *t, sweep_reader *r, const line_file *file)
{
    for (size_t n = HEAD_LINES; n < file->count; n++) {
        sweep_result result = {.train_loss = 0.0};
        r->line = n + 1;
        if (!read_result(t, file->lines[n], &result))
            return refuse(r, "not a result of a training with %d validations", t->settings.points);
        if (sweep_table_find(t, &result.key) != NULL)
            return refuse(r, "this training is in the file twice");
        if (!sweep_table_add(t, &result))
            return refuse(r, "out of memory");
    }
    return true;
}

/* The columns follow from the settings, so the line that names them is not looked at. */
static bool read_lines(sweep_table *t, sweep_reader *r, const line_file *file)
{
    char ours[SETTINGS_MAX];
    r->line = 1;
    if (file->count < HEAD_LINES || strcmp(file->lines[0], FORMAT_LINE) != 0)
        return refuse(r, "not a file of \"mha sweep\"");
    r->line = 2;
    if (strncmp(file->lines[1], ISA_LINE, sizeof ISA_LINE - 1) != 0)
        return refuse(r, "the instruction set is missing");
    snprintf(t->isa, sizeof t->isa, "%s", file->lines[1] + sizeof ISA_LINE - 1);
    r->line = 3;
    settings_line(&t->settings, ours);
    return compare_settings(r, file->lines[2], ours) && read_results(t, r, file);
}

bool sweep_table_read(sweep_table *t, const char *path, char message[SWEEP_MESSAGE_MAX])
{
    line_file file = {.text = NULL};
    sweep_reader r = {.path = path, .message = message};
    char problem[TEXT_FILE_MESSAGE_MAX];
    bool fine = line_file_read(&file, path, problem);
    if (!fine)
        snprintf(message, SWEEP_MESSAGE_MAX, "%s", problem);
    fine = fine && read_lines(t, &r, &file);
    line_file_free(&file);
    return fine;
}
