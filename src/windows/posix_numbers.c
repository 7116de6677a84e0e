/* SPDX-License-Identifier: MIT */
/* Arithmetic and sorting with the results of glibc. */
#include "windows/posix.h"

/*
 * The product of two floats is exact in double precision. Adding z rounds once, and rounding to
 * float a second time: the sum is therefore rounded to odd, so that the second rounding sees
 * whether anything was lost.
 */
float mhaw_fmaf(float x, float y, float z)
{
    const double product = (double)x * (double)y, addend = (double)z;
    const double sum = product + addend;
    if (!isfinite(sum))
        return (float)sum;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (lost != 0.0 && (bits & 1) == 0)
        bits +=
            (lost > 0.0) == (sum > 0.0) ? 1 : UINT64_MAX; /* the neighbour on the side of `lost` */
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

typedef struct sorting {
    char *room;
    size_t size;
    int (*compare)(const void *, const void *);
} sorting;

/* Sorts `count` elements by merging two sorted halves. */
static void merge_sort(const sorting *s, char *data, size_t count)
{
    if (count < 2)
        return;
    const size_t half = count / 2;
    char *left = data, *right = data + half * s->size, *to = s->room;
    char *const left_end = right, *const right_end = data + count * s->size;
    merge_sort(s, left, half);
    merge_sort(s, right, count - half);
    while (left < left_end && right < right_end) {
        char **const first = s->compare(left, right) <= 0 ? &left : &right;
        memcpy(to, *first, s->size);
        *first += s->size;
        to += s->size;
    }
    memcpy(to, left,
           (size_t)(left_end - left)); /* what is left of the right half is in its place */
    to += left_end - left;
    memcpy(data, s->room, (size_t)(to - s->room));
}

/* Without memory, by inserting one element after another: slow, but the same result. */
static void insertion_sort(char *data, size_t count, size_t size,
                           int (*compare)(const void *, const void *))
{
    for (size_t n = 1; n < count; n++)
        for (char *at = data + n * size; at > data && compare(at - size, at) > 0; at -= size)
            for (size_t byte = 0; byte < size; byte++) {
                const char kept = at[byte];
                at[byte] = at[byte - size];
                at[byte - size] = kept;
            }
}

void mhaw_qsort(void *data, size_t count, size_t size, int (*compare)(const void *, const void *))
{
#undef malloc /* as in glibc, whose memory for this no test makes fail */
#undef free
    const sorting s = {size > 0 && count <= SIZE_MAX / size ? malloc(count * size) : NULL, size,
                       compare};
    if (s.room)
        merge_sort(&s, data, count);
    else
        insertion_sort(data, count, size, compare);
    free(s.room);
}
