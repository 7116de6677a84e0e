/* SPDX-License-Identifier: MIT */
/*
 * The reader finds where the values of the outermost object begin and end in a copy of the text,
 * which it changes; the new text is put together from the original one:
 *
 *      {"width": 8, "pruned": {}}
 *                             ^^      replaced: bytes of a value
 *                               ^     added: before the closing brace
 */
#include "format/json_edit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_reader.h"
#include "format/safetensors.h"

/* Where the value of a change is now; end 0: there is none. */
typedef struct value_place {
    size_t begin, end;
} value_place;

typedef struct object_places {
    value_place *values; /* [count] */
    size_t close;        /* of the closing brace */
    bool is_empty;
} object_places;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* From the end of a key to the first byte of its value. */
static size_t value_begin(const char *text, size_t length, size_t at)
{
    while (at < length && (is_space(text[at]) || text[at] == ':'))
        at++;
    return at;
}

/* Reads the members of the object. `copy` is changed. */
static mha_status find_places(object_places *places, const char *text, char *copy, size_t length,
                              const json_change *changes, size_t count)
{
    json_reader reader = json_reader_begin(copy, length);
    bool fine = json_reader_next(&reader) == JSON_OBJECT;
    places->is_empty = true;
    while (fine && json_reader_next(&reader) == JSON_KEY) {
        size_t n = 0;
        places->is_empty = false;
        while (n < count && strcmp(changes[n].key, reader.text) != 0)
            n++;
        const size_t begin = value_begin(text, length, reader.position);
        fine = json_reader_skip(&reader);
        if (n < count)
            places->values[n] = (value_place){begin, reader.position};
    }
    places->close = reader.position - 1;
    fine = fine && json_reader_next(&reader) == JSON_END;
    const bool out_of_memory = reader.fault == JSON_MEMORY;
    json_reader_free(&reader);
    return fine ? MHA_OK : out_of_memory ? MHA_ERR_MEMORY : MHA_ERR_FORMAT;
}

/* ------------------------------------------------------------------ result ----- */

static char *put(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    return to + length;
}

static char *put_string(char *to, const char *text)
{
    return put(to, text, strlen(text));
}

/* The value that begins at or after `from` first; NULL if there is none. */
static const value_place *next_value(const object_places *places, size_t count, size_t from)
{
    const value_place *first = NULL;
    for (size_t n = 0; n < count; n++) {
        const value_place *const at = &places->values[n];
        if (at->end > 0 && at->begin >= from && (!first || at->begin < first->begin))
            first = at;
    }
    return first;
}

/* Members that were not there, before the closing brace. */
static char *put_new(char *to, const object_places *places, const json_change *changes,
                     size_t count)
{
    bool first = places->is_empty;
    for (size_t n = 0; n < count; n++) {
        if (places->values[n].end > 0)
            continue;
        to = put_string(to, first ? "\n  \"" : ",\n  \"");
        to = put_string(to, changes[n].key);
        to = put_string(to, "\": ");
        to = put_string(to, changes[n].value);
        first = false;
    }
    return to;
}

static void put_together(char *to, const char *text, size_t length, const object_places *places,
                         const json_change *changes, size_t count)
{
    size_t at = 0, end = places->close;
    for (const value_place *next; (next = next_value(places, count, at));) {
        to = put(to, text + at, next->begin - at);
        to = put_string(to, changes[next - places->values].value);
        at = next->end;
    }
    while (end > at && is_space(text[end - 1]))
        end--;
    to = put(to, text + at, end - at);
    to = put_new(to, places, changes, count);
    to = put_string(to, "\n");
    to = put(to, text + places->close, length - places->close);
    *to = '\0';
}

/* The most bytes that the result may have. */
static size_t room_for(size_t length, const json_change *changes, size_t count)
{
    size_t room = length + 2;
    for (size_t n = 0; n < count; n++)
        room += strlen(changes[n].key) + strlen(changes[n].value) + 8;
    return room;
}

static mha_status edit(char *made, const char *text, size_t length, object_places *places,
                       const json_change *changes, size_t count)
{
    char *const copy = malloc(length + 1);
    if (!copy)
        return MHA_ERR_MEMORY;
    memcpy(copy, text, length);
    const mha_status status = mhai_utf8_valid(text, length)
                                  ? find_places(places, text, copy, length, changes, count)
                                  : MHA_ERR_FORMAT;
    free(copy);
    if (!status)
        put_together(made, text, length, places, changes, count);
    return status;
}

mha_status json_edit(char **result, const char *name, const char *text, size_t length,
                     const json_change *changes, size_t count, char *message, size_t message_size)
{
    const safetensors_report report = {name, message, message_size};
    object_places places = {.values = calloc(count + 1, sizeof *places.values)};
    char *const made = malloc(room_for(length, changes, count));
    const mha_status status =
        places.values && made ? edit(made, text, length, &places, changes, count) : MHA_ERR_MEMORY;
    free(places.values);
    *result = status ? NULL : made;
    if (!status)
        return MHA_OK;
    free(made);
    return safetensors_fail(&report, status, "%s",
                            status == MHA_ERR_MEMORY ? "out of memory for the text"
                                                     : "the text is not a JSON object in UTF-8");
}
