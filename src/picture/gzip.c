/* SPDX-License-Identifier: MIT */
/* gzip by zlib's inflate(), which checks the sums of each member. */
#include "picture/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"

enum { PIECE = 1 << 16, GZIP_ONLY = 16 + MAX_WBITS };

typedef struct inflating {
    z_stream stream;
    uint8_t *data;
    size_t count, room, most;
} inflating;

bool gzip_supported(void)
{
    return true;
}

/* Inflates until the end of a member. */
static const char *read_member(inflating *f)
{
    int code;
    do {
        uint8_t *const more = mhai_array_grow(f->data, &f->room, f->count + PIECE, 1);
        if (more == NULL)
            return "out of memory";
        f->data = more;
        f->stream.next_out = f->data + f->count;
        f->stream.avail_out = PIECE;
        code = inflate(&f->stream, Z_NO_FLUSH);
        f->count += PIECE - f->stream.avail_out;
        if (f->count > f->most)
            return "its content is larger than is read";
        if (code == Z_MEM_ERROR)
            return "out of memory";
        if (code == Z_BUF_ERROR)
            return "the gzip file is cut off";
        if (code != Z_OK && code != Z_STREAM_END)
            return "the gzip file is damaged";
    } while (code != Z_STREAM_END);
    return NULL;
}

static const char *read_members(inflating *f)
{
    const char *why = NULL;
    do {
        why = inflateReset(&f->stream) == Z_OK ? read_member(f) : "the gzip file is damaged";
    } while (why == NULL && f->stream.avail_in > 0);
    return why;
}

const char *gzip_inflate(const uint8_t *bytes, size_t size, size_t most, uint8_t **data,
                         size_t *count)
{
    inflating f = {.most = most};
    if (size > most)
        return "larger than is read";
    if (inflateInit2(&f.stream, GZIP_ONLY) != Z_OK)
        return "out of memory";
    f.stream.next_in = (z_const Bytef *)bytes;
    f.stream.avail_in = (uInt)size;
    const char *const why = read_members(&f);
    inflateEnd(&f.stream);
    if (why != NULL) {
        free(f.data);
        return why;
    }
    *data = f.data;
    *count = f.count;
    return NULL;
}
