/* SPDX-License-Identifier: MIT */
/*
 * The peak of the machine (peak.h). The loops are written once, as macros over a vector type, and
 * compiled for every instruction set with target attributes. Twelve accumulators hide the latency
 * of two FMA pipes (4 or 5 cycles) and leave four of sixteen registers to the compiler. The empty
 * asm statements keep the compiler from combining the accumulators.
 */
#include "bench/peak.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET_AVX2 __attribute__((target("avx2,fma")))
#define TARGET_AVX512 __attribute__((target("avx512f")))
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef float vec16 __attribute__((vector_size(16)));
#if defined(__x86_64__)
typedef float vec32 __attribute__((vector_size(32)));
typedef float vec64 __attribute__((vector_size(64)));
#define REGISTER "+x"
#define REGISTER_512 "+v"
#elif defined(__aarch64__)
#define REGISTER "+w"
#else
#define REGISTER "+m"
#endif

enum { CHAINS = 12, LINE = 64 };

/* ------------------------------------------------------------ arithmetic ----- */

#define FMA_KERNEL(NAME, TARGET, VEC, FMA, CONSTRAINT)                                            \
    TARGET static float NAME(long iterations)                                                     \
    {                                                                                             \
        VEC a0 = {0}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0;                                \
        VEC a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0, a11 = a0;                               \
        VEC x = a0 + 0.5f, y = a0 + 1.0f;                                                         \
        __asm__ volatile("" : CONSTRAINT(x), CONSTRAINT(y));                                      \
        for (long n = 0; n < iterations; n++) {                                                   \
            a0 = FMA(a0, x, y);                                                                   \
            a1 = FMA(a1, x, y);                                                                   \
            a2 = FMA(a2, x, y);                                                                   \
            a3 = FMA(a3, x, y);                                                                   \
            a4 = FMA(a4, x, y);                                                                   \
            a5 = FMA(a5, x, y);                                                                   \
            a6 = FMA(a6, x, y);                                                                   \
            a7 = FMA(a7, x, y);                                                                   \
            a8 = FMA(a8, x, y);                                                                   \
            a9 = FMA(a9, x, y);                                                                   \
            a10 = FMA(a10, x, y);                                                                 \
            a11 = FMA(a11, x, y);                                                                 \
            __asm__ volatile(""                                                                   \
                             : CONSTRAINT(a0), CONSTRAINT(a1), CONSTRAINT(a2), CONSTRAINT(a3),    \
                               CONSTRAINT(a4), CONSTRAINT(a5), CONSTRAINT(a6), CONSTRAINT(a7),    \
                               CONSTRAINT(a8), CONSTRAINT(a9), CONSTRAINT(a10), CONSTRAINT(a11)); \
        }                                                                                         \
        const VEC sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;              \
        return sum[0];                                                                            \
    }

#define PLAIN
#define MULTIPLY_ADD(A, X, Y) ((A) * (X) + (Y))

FMA_KERNEL(fma_c, PLAIN, vec16, MULTIPLY_ADD, REGISTER)
#if defined(__x86_64__)
#define FMA_256(A, X, Y) ((vec32)_mm256_fmadd_ps((__m256)(A), (__m256)(X), (__m256)(Y)))
#define FMA_512(A, X, Y) ((vec64)_mm512_fmadd_ps((__m512)(A), (__m512)(X), (__m512)(Y)))
FMA_KERNEL(fma_avx2, TARGET_AVX2, vec32, FMA_256, REGISTER)
FMA_KERNEL(fma_avx512, TARGET_AVX512, vec64, FMA_512, REGISTER_512)
#define TARGET_AVX_VNNI __attribute__((target("avx2,fma,avxvnni")))
#define TARGET_VNNI __attribute__((target("avx512f,avx512vnni")))
#define TARGET_BF16 __attribute__((target("avx512f,avx512bf16")))
#define I8_256(A, X, Y) ((vec32)_mm256_dpbusd_avx_epi32((__m256i)(A), (__m256i)(X), (__m256i)(Y)))
#define I8_512(A, X, Y) ((vec64)_mm512_dpbusd_epi32((__m512i)(A), (__m512i)(X), (__m512i)(Y)))
#define BF16_512(A, X, Y) ((vec64)_mm512_dpbf16_ps((__m512)(A), (__m512bh)(X), (__m512bh)(Y)))
FMA_KERNEL(i8_avx2vnni, TARGET_AVX_VNNI, vec32, I8_256, REGISTER)
FMA_KERNEL(i8_avx512vnni, TARGET_VNNI, vec64, I8_512, REGISTER_512)
FMA_KERNEL(bf16_avx512bf16, TARGET_BF16, vec64, BF16_512, REGISTER_512)
#elif defined(__aarch64__)
#define FMA_128(A, X, Y) ((vec16)vfmaq_f32((float32x4_t)(Y), (float32x4_t)(A), (float32x4_t)(X)))
FMA_KERNEL(fma_neon, PLAIN, vec16, FMA_128, REGISTER)
#define TARGET_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#define TARGET_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#define I8_128(A, X, Y) ((vec16)vdotq_s32((int32x4_t)(A), (int8x16_t)(X), (int8x16_t)(Y)))
#define BF16_128(A, X, Y) \
    ((vec16)vbfdotq_f32((float32x4_t)(A), (bfloat16x8_t)(X), (bfloat16x8_t)(Y)))
FMA_KERNEL(i8_neondot, TARGET_DOT, vec16, I8_128, REGISTER)
FMA_KERNEL(bf16_neonbf16, TARGET_BF16, vec16, BF16_128, REGISTER)
#endif

/* ----------------------------------------------------------------- reads ----- */

/* Reads `lines` lines of 64 bytes at each of `streams` positions that are `lines` lines apart. All
 * bits are combined into one number, so that the compiler cannot drop a read. */
#define READ_KERNEL(NAME, TARGET, VEC)                                                        \
    TARGET static float NAME(const char *memory, size_t lines, int streams, int prefetch)     \
    {                                                                                         \
        enum { PARTS = LINE / sizeof(VEC) };                                                  \
        typedef int32_t bits __attribute__((vector_size(sizeof(VEC))));                       \
        bits sum[PARTS];                                                                      \
        memset(sum, 0, sizeof sum);                                                           \
        for (size_t n = 0; n < lines; n++) {                                                  \
            for (int s = 0; s < streams; s++) {                                               \
                const char *line = memory + ((size_t)s * lines + n) * LINE;                   \
                if (prefetch > 0)                                                             \
                    __builtin_prefetch(line + prefetch);                                      \
                _Pragma("GCC unroll 4") for (int part = 0; part < PARTS; part++) sum[part] ^= \
                    ((const bits *)line)[part];                                               \
            }                                                                                 \
        }                                                                                     \
        int32_t all = 0;                                                                      \
        for (int part = 0; part < PARTS; part++)                                              \
            all ^= sum[part][0];                                                              \
        return (float)all;                                                                    \
    }

READ_KERNEL(read_c, PLAIN, vec16)
#if defined(__x86_64__)
READ_KERNEL(read_avx2, TARGET_AVX2, vec32)
READ_KERNEL(read_avx512, TARGET_AVX512, vec64)
#endif

/* -------------------------------------------------------------- dispatch ----- */

typedef struct kernels {
    const char *isa; /* or the beginning of its name */
    peak_kind kind;
    float (*fma)(long iterations);
    float (*read)(const char *memory, size_t lines, int streams, int prefetch);
    int products; /* of one instruction */
} kernels;

/* Those of f32 come last: they stand for all that an instruction set does not have. */
static const kernels *find_kernels(const peak_meter *meter)
{
    static const kernels table[] = {
#if defined(__x86_64__)
        {"avx512bf16", PEAK_BF16, bf16_avx512bf16, read_avx512, 32},
        {"avx512bf16", PEAK_I8, i8_avx512vnni, read_avx512, 64},
        {"avx512vnni", PEAK_I8, i8_avx512vnni, read_avx512, 64},
        {"avx2vnni", PEAK_I8, i8_avx2vnni, read_avx2, 32},
        {"avx512", PEAK_F32, fma_avx512, read_avx512, 16},
        {"avx2", PEAK_F32, fma_avx2, read_avx2, 8},
#elif defined(__aarch64__)
        {"neonbf16", PEAK_BF16, bf16_neonbf16, read_c, 8},
        {"neonbf16", PEAK_I8, i8_neondot, read_c, 16},
        {"neondot", PEAK_I8, i8_neondot, read_c, 16},
        {"neon", PEAK_F32, fma_neon, read_c, 4},
#endif
        {"", PEAK_F32, fma_c, read_c, 4},
    };
    const kernels *k = table;
    while (strncmp(k->isa, meter->isa, strlen(k->isa)) != 0 ||
           (k->kind != meter->kind && k->kind != PEAK_F32))
        k++;
    return k;
}

/* --------------------------------------------------------------- threads ----- */

/* A barrier that all threads leave at the same time, or give up if one of them did not start. */
enum { GATE_CLOSED = 0, GATE_OPEN = 1, GATE_GIVEN_UP = 2 };

typedef struct gate {
    atomic_int arrived, state;
} gate;

typedef struct member {
    const peak_meter *meter;
    const char *memory; /* NULL: arithmetic */
    size_t lines;       /* per stream */
    gate *entry;
    double begin, end;
    float result;
} member;

double peak_seconds(const peak_meter *meter)
{
    return meter->cpu_time ? clock_thread_seconds() : clock_seconds();
}

static void work(member *m)
{
    const kernels *k = find_kernels(m->meter);
    m->begin = peak_seconds(m->meter);
    if (m->memory == NULL)
        m->result = k->fma(m->meter->fma_iterations);
    else
        m->result = k->read(m->memory, m->lines, m->meter->streams, m->meter->prefetch);
    m->end = peak_seconds(m->meter);
}

/* Spins at the gate: sleeping threads would wake late and one after another. */
static void *thread_main(void *argument)
{
    member *m = argument;
    int state;
    atomic_fetch_add(&m->entry->arrived, 1);
    while ((state = atomic_load(&m->entry->state)) == GATE_CLOSED)
        sched_yield();
    if (state == GATE_OPEN)
        work(m);
    return NULL;
}

/* Runs all members at once. Returns the seconds from the first begin to the last end, 0 if a thread
 * cannot be started. */
static double run_together(member *members, int count, gate *entry)
{
    pthread_t threads[PEAK_MAX_THREADS];
    int started = 1;
    for (int n = 0; n < count; n++)
        members[n].entry = entry;
    while (started < count &&
           pthread_create(&threads[started], NULL, thread_main, &members[started]) == 0)
        started++;
    while (atomic_load(&entry->arrived) < started - 1)
        sched_yield();
    atomic_store(&entry->state, started == count ? GATE_OPEN : GATE_GIVEN_UP);
    if (started == count)
        work(&members[0]);
    double begin = members[0].begin, end = members[0].end;
    for (int n = 1; n < started; n++) {
        pthread_join(threads[n], NULL);
        begin = members[n].begin < begin ? members[n].begin : begin;
        end = members[n].end > end ? members[n].end : end;
    }
    return started == count ? end - begin : 0.0;
}

/* ---------------------------------------------------------- measurements ----- */

static double flops_of(const peak_meter *meter)
{
    return 2.0 * CHAINS * find_kernels(meter)->products * (double)meter->fma_iterations *
           meter->threads;
}

double peak_flops(const peak_meter *meter)
{
    member members[PEAK_MAX_THREADS] = {0};
    gate entry = {0};
    for (int n = 0; n < meter->threads; n++)
        members[n].meter = meter;
    const double seconds = run_together(members, meter->threads, &entry);
    return seconds > 0.0 ? flops_of(meter) / seconds : 0.0;
}

double peak_bytes(const peak_meter *meter, const void *memory, size_t size)
{
    member members[PEAK_MAX_THREADS] = {0};
    gate entry = {0};
    const size_t lines = size / LINE / (size_t)meter->threads / (size_t)meter->streams;
    const size_t part = lines * LINE * (size_t)meter->streams;
    for (int n = 0; n < meter->threads; n++)
        members[n] = (member){
            .meter = meter, .lines = lines, .memory = (const char *)memory + (size_t)n * part};
    const double seconds = run_together(members, meter->threads, &entry);
    return seconds > 0.0 ? (double)part * meter->threads / seconds : 0.0;
}

/* Increases the iterations, at most tenfold at a time, until a measurement takes long enough. */
peak_meter peak_create(const char *isa, peak_kind kind, int threads, double seconds)
{
    peak_meter meter = {
        .isa = isa, .kind = kind, .threads = threads, .fma_iterations = 1000, .streams = 1};
    meter.cpu_time = threads == 1;
    if (threads > PEAK_MAX_THREADS)
        meter.threads = PEAK_MAX_THREADS;
    for (;;) {
        const double speed = peak_flops(&meter);
        if (speed == 0.0)
            return meter;
        const double took = flops_of(&meter) / speed;
        const double factor = seconds / took;
        if (factor < 2.0) {
            meter.fma_iterations = (long)((double)meter.fma_iterations * factor) + 1;
            return meter;
        }
        meter.fma_iterations =
            (long)((double)meter.fma_iterations * (factor < 10.0 ? factor : 10.0));
    }
}

void peak_calibrate_reads(peak_meter *meter, const void *memory, size_t size)
{
    static const int streams[] = {1, 2, 4, 8, 16};
    static const int ahead[] = {0, 512, 2048};
    double best = 0.0;
    peak_meter fastest = *meter;
    for (size_t s = 0; s < sizeof streams / sizeof streams[0]; s++) {
        for (size_t a = 0; a < sizeof ahead / sizeof ahead[0]; a++) {
            meter->streams = streams[s];
            meter->prefetch = ahead[a];
            const double speed = peak_bytes(meter, memory, size);
            if (speed > best) {
                best = speed;
                fastest = *meter;
            }
        }
    }
    *meter = fastest;
}
