/* SPDX-License-Identifier: MIT */
/* Two pairs as one (joined_pair.h). */
#include "translator/joined_pair.h"

#include "translator/bare_pair.h"

bool joined_pair_make(const pair_text *first, const pair_text *second, pair_buffer *joined)
{
    pair_text bare = *first;
    bool fits = bare_pair_make(&bare);
    for (int side = 0; side < TRANSFORMER_SIDES && fits; side++) {
        joined->length[side] = 0;
        fits = pair_buffer_append(joined, side, first->text[side], first->length[side]) &&
               pair_buffer_append(joined, side, " ", 1) &&
               pair_buffer_append(joined, side, second->text[side], second->length[side]);
    }
    return fits;
}
