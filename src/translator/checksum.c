/* SPDX-License-Identifier: MIT */
/* FNV-1a over floats, doubles and pairs of texts. */
#include "translator/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "corpus/corpus.h"

static uint64_t add(uint64_t hash, uint64_t element)
{
    return (hash ^ element) * UINT64_C(0x100000001b3);
}

uint64_t checksum_floats(uint64_t hash, const float *values, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        uint32_t bits;
        memcpy(&bits, &values[n], sizeof bits);
        hash = add(hash, bits);
    }
    return hash;
}

uint64_t checksum_doubles(uint64_t hash, const double *values, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        uint64_t bits;
        memcpy(&bits, &values[n], sizeof bits);
        hash = add(hash, bits);
    }
    return hash;
}

uint64_t checksum_pair(uint64_t hash, const safetensors_pair *pair)
{
    return corpus_hash(corpus_hash(hash, pair->key), pair->value);
}

void checksum_text(uint64_t hash, char text[CHECKSUM_TEXT_MAX])
{
    snprintf(text, CHECKSUM_TEXT_MAX, "%016" PRIx64, hash);
}
