/* SPDX-License-Identifier: MIT */
/* Reads a lecture line by line. Texts are joined in place: a line is moved behind the one before
 * it, so that nothing has to be allocated for it. */
#include "page/page_lecture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/page_template.h"

/* A file while it is read. */
typedef struct reading {
    page_lecture *lecture;
    const char *path;
    int line;
    bool has_state; /* of the present stop */
    char *message;
} reading;

static bool wrong(const reading *r, const char *what)
{
    snprintf(r->message, TEXT_FILE_MESSAGE_MAX, "%s, line %d: %s", r->path, r->line, what);
    return false;
}

/* ---------------------------------------------------------------- lines ----- */

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* The names that the state of a page has; web/state.js defines them. */
static bool is_field(const char *name, size_t length)
{
    static const char *const fields[] = {
        "view", "sentence", "kind",    "layer", "head",   "heads", "step",   "from",
        "mode", "form",     "stretch", "row",   "column", "sort",  "find",   "other",
        "mix",  "reads",    "gold",    "words", "theme",  "text",  "closed", "stop",
        "hide", "second",   "patched", "said",  "word",   "kernel"};
    for (size_t n = 0; n < sizeof fields / sizeof fields[0]; n++)
        if (strlen(fields[n]) == length && strncmp(fields[n], name, length) == 0)
            return true;
    return false;
}

/* name=value&name=value, as after the "#" of an address. */
static bool check_state(const reading *r, const char *state)
{
    while (*state != '\0') {
        size_t length = 0;
        while (is_letter(state[length]))
            length++;
        if (state[length] != '=')
            return wrong(r, "a state is written name=value&name=value, as after the # of the "
                            "page's address");
        if (!is_field(state, length)) {
            char what[128];
            snprintf(what, sizeof what, "a page has no \"%.*s\"", (int)(length < 60 ? length : 60),
                     state);
            return wrong(r, what);
        }
        state += strcspn(state, "&");
        state += *state == '&';
    }
    return true;
}

/* "## title" */
static bool begin_stop(reading *r, char *title)
{
    page_lecture *const l = r->lecture;
    if (l->title == NULL)
        return wrong(r, "a lecture begins with \"# Title\"");
    if (*title == '\0')
        return wrong(r, "a stop needs a title after \"##\"");
    if (l->count == LECTURE_STOPS_MAX)
        return wrong(r, "a lecture has at most 100 stops");
    l->stops[l->count++] = (lecture_stop){.title = title, .state = ""};
    r->has_state = false;
    return true;
}

static bool take_state(reading *r, char *state)
{
    if (r->lecture->count == 0)
        return wrong(r, "a state belongs to a stop, which begins with \"## Title\"");
    if (r->has_state)
        return wrong(r, "the stop has a state already");
    r->has_state = true;
    state += *state == '#';
    r->lecture->stops[r->lecture->count - 1].state = state;
    return check_state(r, state);
}

/* Adds a line to the text of the present stop; an empty line begins a paragraph. */
static bool take_text(reading *r, char *line)
{
    page_lecture *const l = r->lecture;
    if (l->count == 0)
        return *line == '\0' || wrong(r, l->title == NULL ? "a lecture begins with \"# Title\""
                                                          : "text before the first stop, which "
                                                            "begins with \"## Title\"");
    lecture_stop *const stop = &l->stops[l->count - 1];
    if (stop->text == NULL) {
        stop->text = *line == '\0' ? NULL : line;
        return true;
    }
    char *const end = stop->text + strlen(stop->text);
    if ((size_t)(end - stop->text) + strlen(line) > LECTURE_STOP_MAX)
        return wrong(r, "the text of a stop has at most 8000 bytes");
    *end = '\n';
    memmove(end + 1, line, strlen(line) + 1);
    return true;
}

static bool has_control(const char *line)
{
    for (; *line != '\0'; line++)
        if ((unsigned char)*line < 0x20 && *line != '\t')
            return true;
    return false;
}

static char *after_spaces(char *text)
{
    return text + strspn(text, " \t");
}

static bool take_line(reading *r, char *line)
{
    size_t length = strlen(line);
    if (length > LECTURE_LINE_MAX)
        return wrong(r, "a line has at most 4000 bytes");
    if (has_control(line))
        return wrong(r, "a control character");
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        line[--length] = '\0';
    if (strncmp(line, "##", 2) == 0)
        return begin_stop(r, after_spaces(line + 2));
    if (line[0] == '@')
        return take_state(r, after_spaces(line + 1));
    if (line[0] == '#' && r->lecture->title == NULL) {
        r->lecture->title = after_spaces(line + 1);
        return *r->lecture->title != '\0' || wrong(r, "the lecture needs a title after \"#\"");
    }
    return take_text(r, line);
}

/* ---------------------------------------------------------------- whole ----- */

static bool read_lines(reading *r)
{
    char *at = r->lecture->memory;
    while (*at != '\0') {
        char *const line = at;
        at += strcspn(at, "\n");
        char *const end = at > line && at[-1] == '\r' ? at - 1 : at;
        at += *at == '\n';
        *end = '\0';
        r->line++;
        if (!take_line(r, line))
            return false;
    }
    return r->lecture->count > 0 || wrong(r, "there is no stop: a stop begins with \"## Title\"");
}

/* The text of our own lecture, as a file would have it. */
static char *own_text(bool pictures, size_t *length)
{
    const char *const text =
        (const char *)(pictures ? page_lecture_pictures_text : page_lecture_text);
    *length = strlen(text);
    char *const copy = malloc(*length + 1);
    if (copy != NULL)
        memcpy(copy, text, *length + 1);
    return copy;
}

bool page_lecture_read(page_lecture *lecture, const char *path, bool pictures,
                       char message[TEXT_FILE_MESSAGE_MAX])
{
    reading r = {.lecture = lecture, .path = path != NULL ? path : "lecture", .message = message};
    size_t length = 0;
    *lecture = (page_lecture){.memory = NULL};
    snprintf(message, TEXT_FILE_MESSAGE_MAX, "out of memory");
    lecture->memory =
        path != NULL ? text_file_read(path, &length, message) : own_text(pictures, &length);
    if (lecture->memory == NULL)
        return false;
    if (length > LECTURE_FILE_MAX || strlen(lecture->memory) != length) {
        snprintf(message, TEXT_FILE_MESSAGE_MAX,
                 "%s: a lecture is a text of at most 256 KB without bytes of 0", r.path);
        return false;
    }
    return read_lines(&r);
}

void page_lecture_free(page_lecture *lecture)
{
    free(lecture->memory);
    lecture->memory = NULL;
}

void page_lecture_put(json *j, const page_lecture *lecture)
{
    json_open_object(j, "lecture");
    json_string(j, "title", lecture->title);
    json_open_array(j, "stops");
    for (int n = 0; n < lecture->count; n++) {
        const lecture_stop *const stop = &lecture->stops[n];
        json_open_object(j, NULL);
        json_string(j, "title", stop->title);
        json_string(j, "state", stop->state);
        json_string(j, "text", stop->text != NULL ? stop->text : "");
        json_close(j);
    }
    json_close(j);
    json_close(j);
}
