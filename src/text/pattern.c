/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions (pattern.h) by PCRE2. A pattern is compiled once, for its just-in-time
 * compiler where there is one; threads share it. Patterns come from files, so the work of a match
 * is limited.
 */
#include "text/pattern.h"

#include "text/pattern_translate.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERN_BYTES_MAX = 1 << 16,
    MATCH_LIMIT = 50 * 1000 * 1000, /* steps of one match */
    DEPTH_LIMIT = 1000 * 1000,
    HEAP_LIMIT_KIB = 256 * 1024
};

struct pattern {
    pcre2_code *code;
};

struct pattern_scratch {
    pcre2_match_context *context;
    pcre2_match_data *data;
};

static void *take_memory(size_t size, void *unused)
{
    (void)unused;
    return malloc(size);
}

static void give_memory(void *memory, void *unused)
{
    (void)unused;
    free(memory);
}

static pcre2_code *compile(const text_buffer *text, int *error, size_t *place)
{
    pcre2_general_context *const general =
        pcre2_general_context_create(take_memory, give_memory, NULL);
    pcre2_compile_context *const context = general ? pcre2_compile_context_create(general) : NULL;
    pcre2_code *code = NULL;
    *error = PCRE2_ERROR_NOMEMORY;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        code = pcre2_compile((PCRE2_SPTR)text->bytes, text->length,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             error, place, context);
    }
    if (code)
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it matching is slower */
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return code;
}

static mha_status refuse(char *message, size_t size, const char *text, const char *why)
{
    if (message && size)
        snprintf(message, size, "the pattern \"%.60s\": %s", text, why);
    return MHA_ERR_FORMAT;
}

static mha_status no_memory(char *message, size_t size)
{
    if (message && size)
        snprintf(message, size, "out of memory for a pattern");
    return MHA_ERR_MEMORY;
}

mha_status pattern_create(pattern **made, const char *text, bool literal, char *message,
                          size_t message_size)
{
    text_buffer translated = {0};
    *made = NULL;
    if (strlen(text) > PATTERN_BYTES_MAX)
        return refuse(message, message_size, text, "longer than 64 KiB");
    const char *const problem = pattern_translate(text, literal, &translated);
    if (problem || translated.failed) {
        text_buffer_free(&translated);
        return problem ? refuse(message, message_size, text, problem)
                       : no_memory(message, message_size);
    }
    int error;
    size_t place;
    pcre2_code *const code = compile(&translated, &error, &place);
    text_buffer_free(&translated);
    if (!code && error != PCRE2_ERROR_NOMEMORY && error != PCRE2_ERROR_HEAP_FAILED) {
        PCRE2_UCHAR why[200];
        pcre2_get_error_message(error, why, sizeof why);
        return refuse(message, message_size, text, (const char *)why);
    }
    *made = code ? malloc(sizeof **made) : NULL;
    if (!*made) {
        pcre2_code_free(code);
        return no_memory(message, message_size);
    }
    (*made)->code = code;
    return MHA_OK;
}

void pattern_free(pattern *p)
{
    if (p)
        pcre2_code_free(p->code);
    free(p);
}

pattern_scratch *pattern_scratch_create(void)
{
    pattern_scratch *const scratch = calloc(1, sizeof *scratch);
    pcre2_general_context *const general =
        scratch ? pcre2_general_context_create(take_memory, give_memory, NULL) : NULL;
    if (general) {
        scratch->context = pcre2_match_context_create(general);
        scratch->data = pcre2_match_data_create(1, general);
    }
    pcre2_general_context_free(general);
    if (!scratch || !scratch->context || !scratch->data) {
        pattern_scratch_free(scratch);
        return NULL;
    }
    pcre2_set_match_limit(scratch->context, MATCH_LIMIT);
    pcre2_set_depth_limit(scratch->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(scratch->context, HEAP_LIMIT_KIB);
    return scratch;
}

void pattern_scratch_free(pattern_scratch *scratch)
{
    if (!scratch)
        return;
    pcre2_match_data_free(scratch->data);
    pcre2_match_context_free(scratch->context);
    free(scratch);
}

/* -------------------------------------------------------------- matching ----- */

pattern_search pattern_search_begin(const pattern *p, pattern_scratch *scratch, const char *text,
                                    size_t length)
{
    return (pattern_search){.pattern = p,
                            .scratch = scratch,
                            .text = text ? text : "",
                            .length = length,
                            .status = MHA_OK};
}

/* The text is known to be valid; checking it in each call would take quadratic time. */
static int match(const pattern_search *s, uint32_t options)
{
    return pcre2_match(s->pattern->code, (PCRE2_SPTR)s->text, s->length, s->from,
                       PCRE2_NO_UTF_CHECK | options, s->scratch->data, s->scratch->context);
}

static size_t next_character(const pattern_search *s)
{
    size_t at = s->from + 1;
    while (at < s->length && ((unsigned char)s->text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

bool pattern_search_next(pattern_search *search)
{
    pattern_search *const s = search;
    while (s->from <= s->length && s->status == MHA_OK) {
        int found = match(s, 0);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found = match(s, PCRE2_NO_JIT);
        if (found == PCRE2_ERROR_NOMATCH)
            return false;
        if (found < 0) {
            s->status = found == PCRE2_ERROR_NOMEMORY ? MHA_ERR_MEMORY : MHA_ERR_LENGTH;
            return false;
        }
        const PCRE2_SIZE *const place = pcre2_get_ovector_pointer(s->scratch->data);
        /* \K is refused, but a lookbehind may still not move the beginning. */
        s->begin = place[0];
        s->end = place[1];
        if (s->begin == s->end && s->any && s->last_end == s->end) {
            s->from = next_character(s);
            continue;
        }
        s->any = true;
        s->from = s->last_end = s->end;
        return true;
    }
    return false;
}
