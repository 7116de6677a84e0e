/* SPDX-License-Identifier: MIT */
/*
 * The vector vocabulary. A kernel file defines one MHAK_ISA_* and includes this header; every
 * word below then means that instruction set. Most words are GNU vector operations; an intrinsic
 * appears only as the body of a named word.
 *
 *      vf, vi           vectors of VL floats or int32
 *      vload vstore     any alignment
 *      vload_some(p,n)  n lanes, the others 0; no memory outside of them is touched
 *      vstore_some      the same for a store
 *      vtouch           load and forget: brings a line into the L1 cache
 *      vset1            the same number in every lane
 *      vfma(a,b,c)      a*b + c, in one rounding where the hardware has it
 *      vmax(a,b)        b where either is NaN
 *      vsel(t,a,b)      lane by lane: t (all ones or zeros) ? a : b
 *      vpick(a,b,x,y)   lane by lane: a > b ? x : y
 *      vlook(t,i)       t[i mod VL], lane by lane; AVX-512 alone has it
 *      vmask(t)         bit i of lane i of t, all ones or zeros
 *      vreach(a,b)      bit i where a >= b in lane i
 *      vpush(a,b)       the last lane of a, then all but the last of b
 *      vd, vlow, vhigh  vectors of VL/2 doubles, and the halves of a vector as such
 *      vload_f16 ...    VL stored halves to floats, and back with round to nearest even
 *      vload_i8         VL stored integers to floats
 *      vmul_wide        32 x 32 to 64 bits, in two halves
 *      vround, vsum_i32 the nearest whole numbers, and a sum of lanes, where there is vdot
 *      vdot(b,c,q,x)    c + the sum of four products of bytes in every lane, q unsigned, of b bits,
 * x signed; AVX2 and AVX-512 alone have it, and its callers are DOT_TARGET. vdot_begin() starts
 * with a sum, vdot_end() gives what has become of it after at most vdot_run() such steps
 *      vdot_bf16(c,w,x) c + the sum of two products of bf16 in every lane, where MHAK_DOT_BF16 is
 * defined; vdot_i8(c,w,x) c + the sum of four products of bytes, where MHAK_DOT_I8 is: w has
 * MHAK_DOT_I8_BIAS added to it and is a byte without a sign if that is not 0, x has a sign
 *      byte_bits(p)     bit i set where byte i of BYTES bytes is not 0
 */
#ifndef MHAK_SIMD_H
#define MHAK_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(MHAK_ISA_AVX512)
#include <immintrin.h>
enum { VL = 16, BYTES = 32 };
#elif defined(MHAK_ISA_AVX2)
#include <immintrin.h>
enum { VL = 8, BYTES = 32 };
#elif defined(MHAK_ISA_NEON)
#include <arm_neon.h>
enum { VL = 4, BYTES = 16 };
#elif defined(MHAK_ISA_WASM)
#include <wasm_simd128.h>
enum { VL = 4, BYTES = 16 };
#elif defined(MHAK_ISA_C)
enum { VL = 4, BYTES = 8 };
#else
#error "define MHAK_ISA_AVX512, MHAK_ISA_AVX2, MHAK_ISA_NEON, MHAK_ISA_WASM or MHAK_ISA_C"
#endif

/* Forces what is computed from p to be computed where it is used: compilers like to keep the
 * addresses of many rows over a loop, in more registers than there are. */
INLINE const void *vforget(const void *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* The next row, with the same effect. */
INLINE float *next_row(float *row, ptrdiff_t stride)
{
    float *next = row + stride;
    __asm__("" : "+r"(next));
    return next;
}

typedef float vf __attribute__((vector_size(4 * VL)));
typedef double vd __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));
typedef uint32_t vu __attribute__((vector_size(4 * VL)));
typedef int8_t vb __attribute__((vector_size(VL)));
typedef float vf_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));
typedef int32_t vi_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));

INLINE vf vload(const float *p)
{
    return *(const vf_any *)p;
}
INLINE void vstore(float *p, vf x)
{
    *(vf_any *)p = x;
}
INLINE void vtouch(const void *p)
{
    (void)*(const volatile vf_any *)p;
}
INLINE vi vload_i32(const int32_t *p)
{
    return *(const vi_any *)p;
}
INLINE vu vload_u32(const void *p)
{
    return (vu) * (const vi_any *)p;
}
INLINE void vstore_i32(int32_t *p, vi x)
{
    *(vi_any *)p = x;
}
INLINE vu vset1_u32(uint32_t x)
{
    return x - (vu){0};
}
INLINE vf vsel(vi t, vf a, vf b)
{
    return (vf)((t & (vi)a) | (~t & (vi)b));
}

/* ------------------------------------------------ words that differ ----- */

#if defined(MHAK_ISA_AVX512)

INLINE vf vset1(float x)
{
    return _mm512_set1_ps(x);
}
INLINE vf vfma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
INLINE vf vmax(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
INLINE vf vpush(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                                   30);
}
INLINE vf vpick(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}
INLINE vi vlook(vi table, vi index)
{
    return (vi)_mm512_permutexvar_epi32((__m512i)index, (__m512i)table);
}
INLINE vf vkeep(uint32_t bits, vf a, vf b)
{
    return _mm512_mask_blend_ps((__mmask16)bits, b, a);
}
INLINE vf vload_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE void vstore_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE vi vload_u16(const uint16_t *p)
{
    return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
INLINE void vstore_u16(uint16_t *p, vi x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16((__m512i)x));
}
INLINE vf vload_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
INLINE uint32_t vmask(vi t)
{
    return _mm512_movepi32_mask((__m512i)t);
}
INLINE uint32_t vreach(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
INLINE float vsum(vf x)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
INLINE float vmax_lanes(vf x)
{
    const __m256 a = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

#elif defined(MHAK_ISA_AVX2)

INLINE vf vset1(float x)
{
    return _mm256_set1_ps(x);
}
INLINE vf vfma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
INLINE vf vmax(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
INLINE vf vpush(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 7, 8, 9, 10, 11, 12, 13, 14);
}
INLINE vf vpick(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
INLINE vf vkeep(uint32_t bits, vf a, vf b)
{
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i set = _mm256_and_si256(_mm256_set1_epi32((int)bits), lane);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, lane)));
}
INLINE vf vload_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INLINE void vstore_f16(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)p,
                     _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE vi vload_u16(const uint16_t *p)
{
    return (vi)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE void vstore_u16(uint16_t *p, vi x)
{
    const __m256i packed = _mm256_packus_epi32((__m256i)x, (__m256i)x);
    const __m256i joined = _mm256_permute4x64_epi64(packed, 0x08);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(joined));
}
INLINE vf vload_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadu_si64(p)));
}
INLINE uint32_t vmask(vi t)
{
    return (uint32_t)_mm256_movemask_ps((__m256)t);
}
INLINE uint32_t vreach(vf a, vf b)
{
    return vmask(a >= b);
}
INLINE float vsum(vf x)
{
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
INLINE float vmax_lanes(vf x)
{
    const __m128 b = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

#else /* four lanes: NEON, WebAssembly and plain C */

#if defined(MHAK_ISA_WASM)
INLINE vf vmax(vf a, vf b)
{
    return (vf)wasm_f32x4_pmax((v128_t)b, (v128_t)a);
}
INLINE vi vload_u16(const uint16_t *p)
{
    return (vi)wasm_u32x4_load16x4(p);
}
INLINE void vstore_u16(uint16_t *p, vi x)
{
    wasm_v128_store64_lane(p, wasm_u16x8_narrow_i32x4((v128_t)x, (v128_t)x), 0);
}
INLINE vf vload_i8(const int8_t *p)
{
    const v128_t wide = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(p));
    return (vf)wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(wide));
}
INLINE uint32_t vmask(vi t)
{
    return (uint32_t)wasm_i32x4_bitmask((v128_t)t);
}
#else
INLINE vf vmax(vf a, vf b)
{
    return vsel(a > b, a, b);
}
INLINE vi vload_u16(const uint16_t *p)
{
    return (vi){p[0], p[1], p[2], p[3]};
}
INLINE void vstore_u16(uint16_t *p, vi x)
{
    for (int i = 0; i < VL; i++)
        p[i] = (uint16_t)x[i];
}
INLINE vf vload_i8(const int8_t *p)
{
    return (vf){(float)p[0], (float)p[1], (float)p[2], (float)p[3]};
}
INLINE uint32_t vmask(vi t)
{
    const vi b = t & (vi){1, 2, 4, 8};
    return (uint32_t)(b[0] | b[1] | b[2] | b[3]);
}
#endif

#if defined(MHAK_ISA_NEON)
INLINE vf vfma(vf a, vf b, vf c)
{
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
INLINE vf vload_f16(const uint16_t *p)
{
    return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
INLINE void vstore_f16(uint16_t *p, vf x)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)x)));
}
#else
INLINE vf vfma(vf a, vf b, vf c)
{
    return a * b + c;
}

/* Halves by integer arithmetic: exponent and mantissa are shifted up, then scaled by 2^112.
 * Subnormal halves become normal in the multiplication; an exponent of all ones is handled
 * separately. */
INLINE vf vload_f16(const uint16_t *p)
{
    const vi h = vload_u16(p);
    const vi magnitude = (h & 0x7fff) << 13;
    const vf scaled = (vf)magnitude * 0x1p112f;
    const vi special = magnitude >= (0x7c00 << 13);
    const vi bits = (special & (magnitude | 0x7f800000)) | (~special & (vi)scaled);
    return (vf)(bits | ((h & 0x8000) << 16));
}
INLINE uint16_t half_from_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
    if (magnitude >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* subnormal half: let the adder round at 2^-24 */
        float m;
        memcpy(&m, &magnitude, 4);
        const float shifted = m + 0.5f;
        memcpy(&bits, &shifted, 4);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    const uint32_t even = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | ((even - 0x38000000u) >> 13));
}
INLINE void vstore_f16(uint16_t *p, vf x)
{
    for (int i = 0; i < VL; i++)
        p[i] = half_from_float(x[i]);
}
#endif

INLINE vf vset1(float x)
{
    return (vf){x, x, x, x};
}
INLINE vf vpush(vf a, vf b)
{
    return __builtin_shufflevector(a, b, 3, 4, 5, 6);
}
INLINE vf vpick(vf a, vf b, vf x, vf y)
{
    return vsel(a > b, x, y);
}
INLINE vf vkeep(uint32_t bits, vf a, vf b)
{
    const vi lane = {1, 2, 4, 8};
    const int32_t w = (int32_t)bits;
    return vsel((((vi){w, w, w, w}) & lane) == lane, a, b);
}
INLINE uint32_t vreach(vf a, vf b)
{
    return vmask(a >= b);
}
INLINE float vsum(vf x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}
INLINE float vmax_lanes(vf x)
{
    const float a = x[0] > x[2] ? x[0] : x[2];
    const float b = x[1] > x[3] ? x[1] : x[3];
    return a > b ? a : b;
}

#endif

#if defined(MHAK_ISA_AVX512)
INLINE vd vlow(vf x)
{
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
}
INLINE vd vhigh(vf x)
{
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
}
#elif defined(MHAK_ISA_AVX2)
INLINE vd vlow(vf x)
{
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
}
INLINE vd vhigh(vf x)
{
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
}
#else
INLINE vd vlow(vf x)
{
    return (vd){(double)x[0], (double)x[1]};
}
INLINE vd vhigh(vf x)
{
    return (vd){(double)x[2], (double)x[3]};
}
#endif

/* Parts of a vector. Where there is no instruction for them, they go through a small buffer. */
#if defined(MHAK_ISA_AVX512)
INLINE vf vload_some(const float *p, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
INLINE void vstore_some(float *p, vf x, int n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}
#else
#if defined(MHAK_ISA_AVX2)
INLINE vf vload_some(const float *p, int n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
}
#else
INLINE vf vload_some(const float *p, int n)
{
    float x[VL] = {0};
    for (int t = 0; t < VL && t < n; t++)
        x[t] = p[t];
    return vload(x);
}
#endif
INLINE void vstore_some(float *p, vf x, int n)
{
    for (int t = 0; t < VL; t++)
        if (t < n)
            p[t] = x[t];
}
#endif

/* Lane by lane a * b as 64 bits, in two halves. */
#if defined(MHAK_ISA_AVX512)
INLINE void vmul_wide(vu a, uint32_t b, vu *high, vu *low)
{
    const __m512i x = (__m512i)a, m = _mm512_set1_epi32((int)b);
    const __m512i even = _mm512_mul_epu32(x, m);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), m);
    *low = (vu)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    *high = (vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}
#elif defined(MHAK_ISA_AVX2)
INLINE void vmul_wide(vu a, uint32_t b, vu *high, vu *low)
{
    const __m256i x = (__m256i)a, m = _mm256_set1_epi32((int)b);
    const __m256i even = _mm256_mul_epu32(x, m);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);
    *low = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}
#elif defined(MHAK_ISA_WASM)
INLINE void vmul_wide(vu a, uint32_t b, vu *high, vu *low)
{
    const v128_t m = wasm_u32x4_splat(b);
    const vu x = (vu)wasm_u64x2_extmul_low_u32x4((v128_t)a, m);
    const vu y = (vu)wasm_u64x2_extmul_high_u32x4((v128_t)a, m);
    *low = __builtin_shufflevector(x, y, 0, 2, 4, 6);
    *high = __builtin_shufflevector(x, y, 1, 3, 5, 7);
}
#else
INLINE void vmul_wide(vu a, uint32_t b, vu *high, vu *low)
{
    for (int t = 0; t < VL; t++) {
        const uint64_t product = (uint64_t)a[t] * b;
        (*high)[t] = (uint32_t)(product >> 32);
        (*low)[t] = (uint32_t)product;
    }
}
#endif

/* Four products of bytes, and the words around them: for weights of block types. */
typedef struct vdots {
    vi low, high;
} vdots;
#if defined(MHAK_ISA_AVX512)
#define MHAK_HAVE_DOT
INLINE vi vround(vf x)
{
    return (vi)_mm512_cvtps_epi32(x);
}
INLINE int32_t vsum_i32(vi x)
{
    return _mm512_reduce_add_epi32((__m512i)x);
}
#define DOT_TARGET __attribute__((target("avx512vnni")))
INLINE int vdot_run(const int bits)
{
    (void)bits;
    return 8;
}
INLINE vdots vdot_begin(vi sum)
{
    return (vdots){.low = sum};
}
INLINE DOT_TARGET vdots vdot(const int bits, vdots c, vu q, vu x)
{
    (void)bits;
    return (vdots){.low = (vi)_mm512_dpbusd_epi32((__m512i)c.low, (__m512i)q, (__m512i)x)};
}
INLINE vi vdot_end(const int bits, vi sum, vdots c)
{
    (void)bits;
    (void)sum;
    return c.low;
}
#elif defined(MHAK_ISA_AVX2)
#define MHAK_HAVE_DOT
INLINE vi vround(vf x)
{
    return (vi)_mm256_cvtps_epi32(x);
}
INLINE int32_t vsum_i32(vi x)
{
    const __m128i a =
        _mm_add_epi32(_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1));
    const __m128i b = _mm_add_epi32(a, _mm_unpackhi_epi64(a, a));
    return _mm_cvtsi128_si32(b) + _mm_extract_epi32(b, 1);
}
#define DOT_TARGET
/* Sums of two products are kept in 16 bits: for so many quads none can overflow. Numbers of 8 bits
 * are taken as two halves of 4. */
INLINE int vdot_run(const int bits)
{
    return bits == 6 ? 2 : bits == 5 ? 4 : 8;
}
INLINE vdots vdot_begin(vi sum)
{
    (void)sum;
    return (vdots){{0}, {0}};
}
/* The compiler would reorder such sums until its registers do not suffice. */
INLINE vi add_pairs(vi c, vu q, vu x)
{
    __m256i sum = _mm256_add_epi16((__m256i)c, _mm256_maddubs_epi16((__m256i)q, (__m256i)x));
    __asm__("" : "+x"(sum));
    return (vi)sum;
}
INLINE vdots vdot(const int bits, vdots c, vu q, vu x)
{
    if (bits == 8) {
        c.high = add_pairs(c.high, q >> 4 & 0x0f0f0f0fu, x);
        q &= 0x0f0f0f0fu;
    }
    c.low = add_pairs(c.low, q, x);
    return c;
}
INLINE vi vdot_end(const int bits, vi sum, vdots c)
{
    const __m256i one = _mm256_set1_epi16(1);
    sum += (vi)_mm256_madd_epi16((__m256i)c.low, one);
    return bits == 8 ? sum + ((vi)_mm256_madd_epi16((__m256i)c.high, one) << 4) : sum;
}
#endif

/* Products of native arithmetic, in files that are compiled for them. */
#if defined(MHAK_DOT_BF16) && defined(MHAK_ISA_AVX512)
INLINE vf vdot_bf16(vf sum, vu w, vu x)
{
    return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)w, (__m512bh)x);
}
#elif defined(MHAK_DOT_BF16) && defined(MHAK_ISA_NEON)
INLINE vf vdot_bf16(vf sum, vu w, vu x)
{
    return (vf)vbfdotq_f32((float32x4_t)sum, (bfloat16x8_t)w, (bfloat16x8_t)x);
}
#endif
#if defined(MHAK_DOT_I8) && defined(MHAK_ISA_AVX512)
#define MHAK_DOT_I8_BIAS 128
INLINE vi vdot_i8(vi sum, vu w, vu x)
{
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
}
#elif defined(MHAK_DOT_I8) && defined(MHAK_ISA_AVX2)
#define MHAK_DOT_I8_BIAS 128
INLINE vi vdot_i8(vi sum, vu w, vu x)
{
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
}
#elif defined(MHAK_DOT_I8) && defined(MHAK_ISA_NEON)
#define MHAK_DOT_I8_BIAS 0
INLINE vi vdot_i8(vi sum, vu w, vu x)
{
    return (vi)vdotq_s32((int32x4_t)sum, (int8x16_t)w, (int8x16_t)x);
}
#endif

/* Bytes to bits: for the boolean masks. */
#if defined(MHAK_ISA_AVX512) || defined(MHAK_ISA_AVX2)
INLINE uint32_t byte_bits(const uint8_t *p)
{
    const __m256i zero =
        _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)p), _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_epi8(zero);
}
#elif defined(MHAK_ISA_NEON)
INLINE uint32_t byte_bits(const uint8_t *p)
{
    static const uint8_t weight[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t x = vld1q_u8(p);
    const uint8x16_t set = vandq_u8(vtstq_u8(x, x), vld1q_u8(weight));
    return (uint32_t)vaddv_u8(vget_low_u8(set)) | (uint32_t)vaddv_u8(vget_high_u8(set)) << 8;
}
#elif defined(MHAK_ISA_WASM)
INLINE uint32_t byte_bits(const uint8_t *p)
{
    const v128_t zero = wasm_i8x16_eq(wasm_v128_load(p), wasm_i8x16_splat(0));
    return ~(uint32_t)wasm_i8x16_bitmask(zero) & 0xffffu;
}
#else
INLINE uint32_t byte_bits(const uint8_t *p)
{
    uint32_t bits = 0;
    for (int i = 0; i < BYTES; i++)
        bits |= (uint32_t)(p[i] != 0) << i;
    return bits;
}
#endif

#endif
