/* SPDX-License-Identifier: MIT */
/*
 * More of the vector vocabulary of simd.h: rows of storage to vectors of columns. Keys lie in rows,
 * but a product needs one number of many keys in a vector.
 */
#ifndef MHAK_COLUMNS_H
#define MHAK_COLUMNS_H

#include "core/kernels/simd.h"

/*
 * Inside each quarter (four lanes) of two vectors a = a0 a1 a2 a3, b = b0 b1 b2 b3:
 *
 *      vzip_low  a0 b0 a1 b1      vzip_high  a2 b2 a3 b3
 *      vpair_low a0 a1 b0 b1      vpair_high a2 a3 b2 b3
 *
 * vquads loads VL/4 quarters, `step` elements apart, of a storage type. vcolumns makes eight
 * vectors of elements 0 to 7 of VL rows: rows[0] to rows[3], the next four `step` elements after
 * them, and so on.
 */
#if defined(MHAK_ISA_AVX512)
typedef __m256i vh; /* VL halves */
#define HALVES(operation) _mm256_##operation

INLINE vf vzip_low(vf a, vf b)
{
    return _mm512_unpacklo_ps(a, b);
}
INLINE vf vzip_high(vf a, vf b)
{
    return _mm512_unpackhi_ps(a, b);
}
INLINE vf vpair_low(vf a, vf b)
{
    return _mm512_shuffle_ps(a, b, 0x44);
}
INLINE vf vpair_high(vf a, vf b)
{
    return _mm512_shuffle_ps(a, b, 0xee);
}
INLINE vf vquads_f32(const float *p, ptrdiff_t step)
{
    const __m256 low = _mm256_loadu2_m128(p + step, p);
    const __m256 high = _mm256_loadu2_m128(p + 3 * step, p + 2 * step);
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
INLINE __m128i two_quads_u16(const uint16_t *p, ptrdiff_t step)
{
    return _mm_unpacklo_epi64(_mm_loadu_si64(p), _mm_loadu_si64(p + step));
}
INLINE __m256i four_quads_u16(const uint16_t *p, ptrdiff_t step)
{
    return _mm256_set_m128i(two_quads_u16(p + 2 * step, step), two_quads_u16(p, step));
}
INLINE vf vquads_f16(const uint16_t *p, ptrdiff_t step)
{
    return _mm512_cvtph_ps(four_quads_u16(p, step));
}
INLINE vf vquads_bf16(const uint16_t *p, ptrdiff_t step)
{
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(four_quads_u16(p, step)), 16);
}
INLINE vi vquads_pairs(const uint16_t *p, ptrdiff_t step)
{
    const __m256i low = _mm256_loadu2_m128i((const __m128i *)(p + step), (const __m128i *)p);
    const __m256i high =
        _mm256_loadu2_m128i((const __m128i *)(p + 3 * step), (const __m128i *)(p + 2 * step));
    return (vi)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
/* Of row t and row t + 8, for t < 8. */
INLINE vh halves_of_rows(const void *const rows[4], ptrdiff_t step, int t)
{
    const uint16_t *const p = (const uint16_t *)rows[t % 4] + t / 4 * step;
    return _mm256_loadu2_m128i((const __m128i *)(p + 2 * step), (const __m128i *)p);
}
INLINE vf vwiden_f16(vh x)
{
    return _mm512_cvtph_ps(x);
}
#elif defined(MHAK_ISA_AVX2)
typedef __m128i vh; /* VL halves */
#define HALVES(operation) _mm_##operation

INLINE vf vzip_low(vf a, vf b)
{
    return _mm256_unpacklo_ps(a, b);
}
INLINE vf vzip_high(vf a, vf b)
{
    return _mm256_unpackhi_ps(a, b);
}
INLINE vf vpair_low(vf a, vf b)
{
    return _mm256_shuffle_ps(a, b, 0x44);
}
INLINE vf vpair_high(vf a, vf b)
{
    return _mm256_shuffle_ps(a, b, 0xee);
}
INLINE vf vquads_f32(const float *p, ptrdiff_t step)
{
    return _mm256_loadu2_m128(p + step, p);
}
INLINE __m128i two_quads_u16(const uint16_t *p, ptrdiff_t step)
{
    return _mm_unpacklo_epi64(_mm_loadu_si64(p), _mm_loadu_si64(p + step));
}
INLINE vf vquads_f16(const uint16_t *p, ptrdiff_t step)
{
    return _mm256_cvtph_ps(two_quads_u16(p, step));
}
INLINE vf vquads_bf16(const uint16_t *p, ptrdiff_t step)
{
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(two_quads_u16(p, step)), 16);
}
INLINE vi vquads_pairs(const uint16_t *p, ptrdiff_t step)
{
    return (vi)_mm256_loadu2_m128i((const __m128i *)(p + step), (const __m128i *)p);
}
INLINE vh halves_of_rows(const void *const rows[4], ptrdiff_t step, int t)
{
    return _mm_loadu_si128((const __m128i *)((const uint16_t *)rows[t % 4] + t / 4 * step));
}
INLINE vf vwiden_f16(vh x)
{
    return _mm256_cvtph_ps(x);
}
#else
INLINE vf vzip_low(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
INLINE vf vzip_high(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
INLINE vf vpair_low(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 0, 1, 4, 5);
}
INLINE vf vpair_high(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 2, 3, 6, 7);
}
#endif

/* bf16 is the upper half of an f32. */
INLINE vf vload_bf16(const uint16_t *p)
{
    return (vf)(vload_u16(p) << 16);
}
/* Rounded to nearest even, in the lower half of every lane. */
INLINE vu vround_bf16(vf x)
{
    const vu bits = (vu)x;
    const vu even = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const vi nan = x != x;
    const vu quiet = (bits >> 16) | 0x40u;
    return (vu)((nan & (vi)quiet) | (~nan & (vi)even));
}
INLINE void vstore_bf16(uint16_t *p, vf x)
{
    vstore_u16(p, (vi)vround_bf16(x));
}

#if defined(MHAK_ISA_NEON) || defined(MHAK_ISA_WASM) || defined(MHAK_ISA_C)
INLINE vf vquads_f32(const float *p, ptrdiff_t step)
{
    return (void)step, vload(p);
}
INLINE vf vquads_f16(const uint16_t *p, ptrdiff_t step)
{
    return (void)step, vload_f16(p);
}
INLINE vf vquads_bf16(const uint16_t *p, ptrdiff_t step)
{
    return (void)step, vload_bf16(p);
}
#endif

/* A transposition of 4 x 4 inside each quarter. */
INLINE void vtranspose(const vf rows[4], vf x[4])
{
    const vf low01 = vzip_low(rows[0], rows[1]), high01 = vzip_high(rows[0], rows[1]);
    const vf low23 = vzip_low(rows[2], rows[3]), high23 = vzip_high(rows[2], rows[3]);
    x[0] = vpair_low(low01, low23);
    x[1] = vpair_high(low01, low23);
    x[2] = vpair_low(high01, high23);
    x[3] = vpair_high(high01, high23);
}

/* The same for F32_COLUMNS elements of f32. */
#if defined(MHAK_ISA_AVX512)
enum { F32_COLUMNS = 8 };

INLINE vf two_eights(const float *a, const float *b)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(a)), _mm256_loadu_ps(b), 1);
}
/* Eight elements of rows t and t + 4 in a[t], of rows t + 8 and t + 12 in b[t]. */
INLINE void eights_to_columns(const vf a[4], const vf b[4], vf x[8])
{
    vf low[4], high[4];
    vtranspose(a, low);
    vtranspose(b, high);
    for (int t = 0; t < 4; t++) {
        x[t] = _mm512_shuffle_f32x4(low[t], high[t], 0x88);
        x[4 + t] = _mm512_shuffle_f32x4(low[t], high[t], 0xdd);
    }
}
/* Half as many loads as with quarters of rows; loads are the bottleneck of these kernels. */
INLINE void vcolumns_f32(const void *const rows[4], ptrdiff_t step, vf x[8])
{
    vf a[4], b[4];
    for (int t = 0; t < 4; t++) {
        const float *const p = rows[t];
        a[t] = two_eights(p, p + step);
        b[t] = two_eights(p + 2 * step, p + 3 * step);
    }
    eights_to_columns(a, b, x);
}
/* The same for VL rows that may lie anywhere, from element c on. */
INLINE void vcolumns_of(const float *const rows[VL], ptrdiff_t c, vf x[8])
{
    vf a[4], b[4];
    for (int t = 0; t < 4; t++) {
        a[t] = two_eights(rows[t] + c, rows[t + 4] + c);
        b[t] = two_eights(rows[t + 8] + c, rows[t + 12] + c);
    }
    eights_to_columns(a, b, x);
}
#else
enum { F32_COLUMNS = 4 };

INLINE void vcolumns_of(const float *const rows[VL], ptrdiff_t c, vf x[4])
{
    vf quads[4];
    for (int t = 0; t < 4; t++)
        quads[t] = vquads_f32(rows[t] + c, VL > 4 ? rows[(t + 4) % VL] - rows[t] : 0);
    vtranspose(quads, x);
}
INLINE void vcolumns_f32(const void *const rows[4], ptrdiff_t step, vf x[4])
{
    vf quads[4];
    for (int t = 0; t < 4; t++)
        quads[t] = vquads_f32(rows[t], step);
    vtranspose(quads, x);
}
#endif

#if defined(MHAK_ISA_AVX512) || defined(MHAK_ISA_AVX2)
/* Halves are transposed as they are stored, 8 x 8 in each 16 bytes, and then widened. */
INLINE void vcolumns_f16(const void *const rows[4], ptrdiff_t step, vf x[8])
{
    vh a[8], b[8];
    for (int t = 0; t < 4; t++) {
        const vh even = halves_of_rows(rows, step, 2 * t);
        const vh odd = halves_of_rows(rows, step, 2 * t + 1);
        a[t] = HALVES(unpacklo_epi16)(even, odd);
        a[4 + t] = HALVES(unpackhi_epi16)(even, odd);
    }
    for (int t = 0; t < 8; t += 2) {
        b[t] = HALVES(unpacklo_epi32)(a[t], a[t + 1]);
        b[t + 1] = HALVES(unpackhi_epi32)(a[t], a[t + 1]);
    }
    for (int t = 0; t < 8; t += 4)
        for (int n = 0; n < 2; n++) {
            x[t + 2 * n] = vwiden_f16(HALVES(unpacklo_epi64)(b[t + n], b[t + n + 2]));
            x[t + 2 * n + 1] = vwiden_f16(HALVES(unpackhi_epi64)(b[t + n], b[t + n + 2]));
        }
}
/* Pairs of neighbours are transposed as numbers of 32 bits, and then separated. */
INLINE void vcolumns_bf16(const void *const rows[4], ptrdiff_t step, vf x[8])
{
    vf quads[4], pairs[4];
    for (int t = 0; t < 4; t++)
        quads[t] = (vf)vquads_pairs(rows[t], step);
    vtranspose(quads, pairs);
    for (int t = 0; t < 4; t++) {
        x[2 * t] = (vf)((vu)pairs[t] << 16);
        x[2 * t + 1] = (vf)((vu)pairs[t] & 0xffff0000u);
    }
}
#else
/* Four columns at a time, from quarters that are widened first. */
INLINE void vcolumns_halves(bool bf16, const void *const rows[4], ptrdiff_t step, vf x[8])
{
    for (int c = 0; c < 8; c += 4) {
        vf quads[4];
        for (int t = 0; t < 4; t++) {
            const uint16_t *const p = (const uint16_t *)rows[t] + c;
            quads[t] = bf16 ? vquads_bf16(p, step) : vquads_f16(p, step);
        }
        vtranspose(quads, x + c);
    }
}
INLINE void vcolumns_f16(const void *const rows[4], ptrdiff_t step, vf x[8])
{
    vcolumns_halves(false, rows, step, x);
}
INLINE void vcolumns_bf16(const void *const rows[4], ptrdiff_t step, vf x[8])
{
    vcolumns_halves(true, rows, step, x);
}
#endif

/*
 * bf16 in pairs, for files that are compiled for products of them: vcolumns_pairs makes four
 * vectors of elements 0 and 1, 2 and 3, .. of VL rows as above. vzip_rows puts 2 VL elements of two
 * rows side by side, in two vectors. vstore_pairs rounds two vectors of floats to 2 VL numbers in a
 * row, to nearest even; subnormal numbers become 0. vzip_pairs rounds them in the same way, to
 * pairs of an element of each.
 */
#if defined(MHAK_DOT_BF16)
#if defined(MHAK_ISA_AVX512)
INLINE void vcolumns_pairs(const void *const rows[4], ptrdiff_t step, vu x[4])
{
    vf quads[4], pairs[4];
    for (int t = 0; t < 4; t++)
        quads[t] = (vf)vquads_pairs(rows[t], step);
    vtranspose(quads, pairs);
    for (int t = 0; t < 4; t++)
        x[t] = (vu)pairs[t];
}
INLINE void vzip_rows(const uint16_t *a, const uint16_t *b, vu x[2])
{
    const __m512i low = _mm512_set_epi32(0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b, 0x2a000a,
                                         0x290009, 0x280008, 0x270007, 0x260006, 0x250005, 0x240004,
                                         0x230003, 0x220002, 0x210001, 0x200000);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const __m512i first = _mm512_loadu_si512(a), second = _mm512_loadu_si512(b);
    x[0] = (vu)_mm512_permutex2var_epi16(first, low, second);
    x[1] = (vu)_mm512_permutex2var_epi16(first, high, second);
}
INLINE void vstore_pairs(uint16_t *p, vf a, vf b)
{
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(b, a));
}
INLINE vu vzip_pairs(vf a, vf b)
{
    const __m512i order = _mm512_set_epi32(
        0x1f000f, 0x1e000e, 0x1d000d, 0x1c000c, 0x1b000b, 0x1a000a, 0x190009, 0x180008, 0x170007,
        0x160006, 0x150005, 0x140004, 0x130003, 0x120002, 0x110001, 0x100000);
    return (vu)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(b, a));
}
#else
INLINE void vcolumns_pairs(const void *const rows[4], ptrdiff_t step, vu x[4])
{
    vf quads[4], pairs[4];
    (void)step;
    for (int t = 0; t < 4; t++)
        quads[t] = (vf)vload_u32(rows[t]);
    vtranspose(quads, pairs);
    for (int t = 0; t < 4; t++)
        x[t] = (vu)pairs[t];
}
INLINE void vzip_rows(const uint16_t *a, const uint16_t *b, vu x[2])
{
    const uint16x8_t first = vld1q_u16(a), second = vld1q_u16(b);
    x[0] = (vu)vzip1q_u16(first, second);
    x[1] = (vu)vzip2q_u16(first, second);
}
/* The instruction rounds subnormal numbers as others: products take them as 0. */
INLINE void vstore_pairs(uint16_t *p, vf a, vf b)
{
    const bfloat16x8_t low = vcvtq_low_bf16_f32((float32x4_t)a);
    vst1q_u16(p, (uint16x8_t)vcvtq_high_bf16_f32(low, (float32x4_t)b));
}
INLINE vu vzip_pairs(vf a, vf b)
{
    const bfloat16x8_t low = vcvtq_low_bf16_f32((float32x4_t)a);
    const uint16x8_t both = (uint16x8_t)vcvtq_high_bf16_f32(low, (float32x4_t)b);
    return (vu)vzip1q_u16(both, vextq_u16(both, both, 4));
}
#endif
#else
INLINE vu vzip_pairs(vf a, vf b)
{
    return vround_bf16(a) | vround_bf16(b) << 16;
}
#endif

#endif
