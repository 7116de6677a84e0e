/* SPDX-License-Identifier: MIT */
/* Text of generated tokens, piece by piece: see text_stream.h. */
#include "model/text_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

enum { CONTEXT_TOKENS = 4, HELD_TOKENS = 8 };

void text_stream_begin(text_stream *stream, const mha_tokenizer *tokenizer, ptrdiff_t context,
                       const char *const *stops, ptrdiff_t stop_count)
{
    *stream = (text_stream){.tokenizer = tokenizer,
                            .stops = stops,
                            .stop_count = stop_count,
                            .prefix = context > CONTEXT_TOKENS ? context - CONTEXT_TOKENS : 0,
                            .read = context};
}

void text_stream_free(text_stream *stream)
{
    free(stream->text);
    stream->text = NULL;
}

/* ------------------------------------------------------------------- decode ----- */

/* Does the text end inside of a character, or with one that stands for such an end? */
static bool ends_inside(const char *text, size_t length)
{
    static const char replacement[] = "\xef\xbf\xbd";
    if (length >= 3 && memcmp(text + length - 3, replacement, 3) == 0)
        return true;
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        const unsigned char c = (unsigned char)text[length - back];
        if (c >= 0xc0)
            return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u);
        if (c < 0x80)
            return false;
    }
    return false;
}

static bool append(text_stream *stream, const char *text, size_t length)
{
    char *const moved =
        mhai_array_grow(stream->text, &stream->room, stream->length + length + 1, 1);
    if (!moved)
        return false;
    stream->text = moved;
    memcpy(moved + stream->length, text, length);
    stream->length += length;
    moved[stream->length] = '\0';
    return true;
}

/* The text of some tokens. A model may have more ids than its tokenizer: those have no text. */
static mha_status decode_ids(const mha_tokenizer *tokenizer, const int32_t *ids, ptrdiff_t count,
                             char **text, size_t *length)
{
    const ptrdiff_t words = mha_tokenizer_size(tokenizer);
    int32_t *const known = malloc((size_t)(count + 1) * sizeof *known);
    ptrdiff_t kept = 0;
    if (!known)
        return MHA_ERR_MEMORY;
    for (ptrdiff_t n = 0; n < count; n++)
        if (ids[n] >= 0 && ids[n] < words)
            known[kept++] = ids[n];
    const mha_status status =
        mha_tokenizer_decode(tokenizer, known, kept, MHA_TEXT_SKIP_MARKS, text, length);
    free(known);
    return status;
}

/* The text of tokens [prefix, count) that is not in the text of [prefix, read). */
static mha_status decode(text_stream *stream, const int32_t *ids, ptrdiff_t count, bool last)
{
    char *known, *all;
    size_t known_length, length;
    mha_status status = decode_ids(stream->tokenizer, ids + stream->prefix,
                                   stream->read - stream->prefix, &known, &known_length);
    if (status)
        return status;
    status =
        decode_ids(stream->tokenizer, ids + stream->prefix, count - stream->prefix, &all, &length);
    mha_text_free(known);
    if (status)
        return status;
    const bool wait = !last && ends_inside(all, length) && count - stream->read < HELD_TOKENS;
    if (!wait && length > known_length &&
        !append(stream, all + known_length, length - known_length))
        status = MHA_ERR_MEMORY;
    if (!wait && length > known_length) {
        stream->prefix = stream->read;
        stream->read = count;
    }
    mha_text_free(all);
    return status;
}

/* -------------------------------------------------------------------- stops ----- */

static size_t longest_stop(const text_stream *stream)
{
    size_t longest = 0;
    for (ptrdiff_t n = 0; n < stream->stop_count; n++) {
        const size_t length = strlen(stream->stops[n]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* Where `stop` begins in the text, from `from` on; NULL: nowhere. */
static char *find_text(const text_stream *stream, size_t from, const char *stop)
{
    const size_t length = strlen(stop);
    for (size_t at = from; length > 0 && at + length <= stream->length; at++)
        if (memcmp(stream->text + at, stop, length) == 0)
            return stream->text + at;
    return NULL;
}

/* Cuts the text at the first stop in it. */
static void find_stop(text_stream *stream)
{
    const size_t longest = longest_stop(stream);
    const size_t from = stream->searched >= longest ? stream->searched - longest + 1 : 0;
    char *first = NULL;
    for (ptrdiff_t n = 0; n < stream->stop_count; n++) {
        char *const found = find_text(stream, from, stream->stops[n]);
        if (found && (!first || found < first))
            first = found;
    }
    stream->searched = stream->length;
    if (first) {
        stream->length = (size_t)(first - stream->text);
        *first = '\0';
        stream->stopped = true;
    }
}

/* Bytes at the end that may be the beginning of a stop. */
static size_t held_back(const text_stream *stream)
{
    size_t held = 0;
    for (ptrdiff_t n = 0; n < stream->stop_count; n++) {
        const size_t length = strlen(stream->stops[n]);
        for (size_t part = length < stream->length ? length : stream->length; part > held; part--)
            if (part < length &&
                memcmp(stream->text + stream->length - part, stream->stops[n], part) == 0)
                held = part;
    }
    return held;
}

mha_status text_stream_add(text_stream *stream, const int32_t *ids, ptrdiff_t count, bool last)
{
    if (!stream->tokenizer || stream->stopped)
        return MHA_OK;
    const mha_status status = decode(stream, ids, count, last);
    if (!status)
        find_stop(stream);
    return status;
}

const char *text_stream_take(text_stream *stream, bool last, size_t *length)
{
    const size_t held = last || stream->stopped ? 0 : held_back(stream);
    const size_t safe = stream->length - held;
    const size_t from = stream->sent < safe ? stream->sent : safe;
    *length = safe - from;
    stream->sent = safe > stream->sent ? safe : stream->sent;
    return stream->text ? stream->text + from : "";
}
