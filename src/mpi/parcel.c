/* SPDX-License-Identifier: MIT */
/*
 * Rows of tokens from one tensor to another. A parcel, what one rank sends another, is a tensor
 * too: one without gaps, [batch][head][row].
 */
#include "mpi/mpi_parts.h"

#include <string.h>

enum { ALIGN = 64 };

mhai_mpi_work mhai_mpi_work_begin(void *memory)
{
    const uintptr_t misfit = (uintptr_t)memory % ALIGN;
    return (mhai_mpi_work){.base = memory ? (char *)memory + (misfit ? ALIGN - misfit : 0) : NULL};
}

void *mhai_mpi_take(mhai_mpi_work *work, size_t bytes)
{
    char *const at = work->base ? work->base + work->used : NULL;
    work->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

char *mhai_mpi_at(const mhai_mpi_tensor *t, ptrdiff_t b, ptrdiff_t head, ptrdiff_t token)
{
    const ptrdiff_t first =
        t->starts ? mhai_mpi_row_of(t->rows, (ptrdiff_t)t->starts[b]) : t->row_first;
    const ptrdiff_t row = t->sl ? mhai_mpi_row_of(t->rows, token) - first : 0;
    return t->data + b * t->sb + (head - t->head_first) * t->per_group * t->sh + row * t->sl;
}

ptrdiff_t mhai_mpi_count_rows(const mhai_mpi_rows *owner, mhai_mpi_tokens tokens)
{
    return mhai_mpi_row_of(owner, tokens.last) - mhai_mpi_row_of(owner, tokens.first);
}

size_t mhai_mpi_parcel_bytes(const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                             mhai_mpi_heads heads, mhai_mpi_tokens tokens)
{
    return (size_t)(t->batches * mhai_mpi_heads_of(t, heads) * mhai_mpi_count_rows(owner, tokens)) *
           t->bytes;
}

mhai_mpi_tensor mhai_mpi_packed(const mhai_mpi_tensor *t, const mhai_mpi_rows *owner,
                                mhai_mpi_heads heads, mhai_mpi_tokens tokens, char *data)
{
    mhai_mpi_tensor packed = *t;
    packed.data = data;
    packed.starts = NULL;
    packed.rows = owner;
    packed.row_first = mhai_mpi_row_of(owner, tokens.first);
    packed.head_first = heads.first;
    packed.sl = (ptrdiff_t)t->bytes;
    packed.sh = packed.sl * mhai_mpi_count_rows(owner, tokens);
    packed.sb = packed.sh * mhai_mpi_heads_of(t, heads);
    return packed;
}

static void copy_block(char *to, ptrdiff_t to_sl, const char *from, ptrdiff_t from_sl, size_t bytes,
                       ptrdiff_t rows)
{
    if (to_sl == (ptrdiff_t)bytes && from_sl == (ptrdiff_t)bytes) {
        memcpy(to, from, bytes * (size_t)rows);
        return;
    }
    for (ptrdiff_t row = 0; row < rows; row++)
        memcpy(to + row * to_sl, from + row * from_sl, bytes);
}

/* Tokens of batch or sequence b, where a tensor that knows no sequences has batch 0. */
static void copy_batch(const mhai_mpi_tensor *to, const mhai_mpi_tensor *from,
                       const mhai_mpi_rows *owner, mhai_mpi_heads heads, mhai_mpi_tokens tokens,
                       ptrdiff_t b)
{
    const bool sequence = to->starts || from->starts;
    const ptrdiff_t count = mhai_mpi_heads_of(to, heads);
    for (ptrdiff_t n = 0; n < owner->runs; n++) {
        const ptrdiff_t first = mhai_mpi_max(owner->run[n].first, tokens.first);
        const ptrdiff_t last = mhai_mpi_min(owner->run[n].last, tokens.last);
        if (first >= last)
            continue;
        char *const at = mhai_mpi_at(to, sequence && !to->starts ? 0 : b, heads.first, first);
        const char *const source =
            mhai_mpi_at(from, sequence && !from->starts ? 0 : b, heads.first, first);
        for (ptrdiff_t h = 0; h < count; h++)
            copy_block(at + h * to->sh, to->sl, source + h * from->sh, from->sl, to->bytes,
                       last - first);
    }
}

void mhai_mpi_copy(const mhai_mpi_tensor *to, const mhai_mpi_tensor *from,
                   const mhai_mpi_rows *owner, mhai_mpi_heads heads, mhai_mpi_tokens tokens)
{
    const mhai_mpi_tensor *const t = to->starts ? to : from;
    for (ptrdiff_t b = 0; !t->starts && b < to->batches; b++)
        copy_batch(to, from, owner, heads, tokens, b);
    for (ptrdiff_t b = 0; t->starts && b < t->sequences; b++)
        copy_batch(to, from, owner, heads,
                   (mhai_mpi_tokens){mhai_mpi_max(tokens.first, (ptrdiff_t)t->starts[b]),
                                     mhai_mpi_min(tokens.last, (ptrdiff_t)t->starts[b + 1])},
                   b);
}
