/* SPDX-License-Identifier: MIT */
/* Ranges of characters with a property, sorted. */
#ifndef TEXT_UNICODE_TABLES_H
#define TEXT_UNICODE_TABLES_H

#include <stddef.h>
#include <stdint.h>

typedef struct character_range {
    uint32_t first, last;
} character_range;

typedef struct character_category {
    uint32_t first, last;
    const char *category; /* "Lu", ...; all marks are "M", symbols "S", punctuation "P" */
} character_category;

extern const character_range unicode_removed[], unicode_punctuation[], unicode_numeric[],
    unicode_nonspacing[], unicode_mark[], unicode_not_decomposed[];
extern const size_t unicode_removed_count, unicode_punctuation_count, unicode_numeric_count,
    unicode_nonspacing_count, unicode_mark_count, unicode_not_decomposed_count;
extern const character_category unicode_new[];
extern const size_t unicode_new_count;

#endif
