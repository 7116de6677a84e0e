/* SPDX-License-Identifier: MIT */
/* Words: every status code is returned by a real call; codes, types and versions have names. */
#define _GNU_SOURCE
#include "support/call.h"
#include "support/test.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------ one maker a code ---- */

static int64_t wrong_numbers[] = {-1, 99, -1, 99};

/* Each spoils a valid CALL_FULL and runs it. */
static mha_status make_ok(call *c)
{
    return call_attend(c, NULL);
}

static mha_status make_null(call *c)
{
    c->q.data = NULL;
    return call_attend(c, NULL);
}

static mha_status make_struct(call *c)
{
    c->options.size = 3;
    return call_attend(c, NULL);
}

static mha_status make_shape(call *c)
{
    c->shape.H = 3;
    return call_attend(c, NULL);
}

static mha_status make_overflow(call *c)
{
    c->k.sl = PTRDIFF_MAX;
    return call_attend(c, NULL);
}

static mha_status make_dtype(call *c)
{
    c->shape.v_type = MHA_F64;
    return call_attend(c, NULL);
}

static mha_status make_stride(call *c)
{
    c->o.sl = 1;
    return call_attend(c, NULL);
}

static mha_status make_align(call *c)
{
    c->v.data = (const char *)c->v.data + 1;
    return call_attend(c, NULL);
}

static mha_status make_overlap(call *c)
{
    c->o.data = (void *)c->q.data;
    return call_attend(c, NULL);
}

static mha_status make_scale(call *c)
{
    c->options.scale = NAN;
    return call_attend(c, NULL);
}

static mha_status make_softcap(call *c)
{
    c->options.softcap = -1;
    return call_attend(c, NULL);
}

static mha_status make_flag(call *c)
{
    c->options.flags = 1u << 20;
    return call_attend(c, NULL);
}

static mha_status make_window(call *c)
{
    c->options.window_left = -2;
    return call_attend(c, NULL);
}

static mha_status make_position(call *c)
{
    c->options.position = MHA_POSITION_UNSET;
    return call_attend(c, NULL);
}

static mha_status make_length(call *c)
{
    c->options.k_lengths = wrong_numbers;
    return call_attend(c, NULL);
}

static mha_status make_index(call *c)
{
    c->options.weights_heads = wrong_numbers;
    return call_attend(c, NULL);
}

static mha_status make_workspace(call *c)
{
    c->work_size = 1;
    return call_plan(c, NULL);
}

static mha_status make_plan(call *c)
{
    mha_plan *plan = NULL;
    mha_status status = mha_plan_create(&plan, &c->shape, NULL);
    if (status == MHA_OK)
        status = call_run_plan(c, plan, NULL);
    mha_plan_free(plan);
    return status;
}

static mha_status make_thread(call *c)
{
    mha_pool *pool = NULL;
    (void)c;
    return mha_pool_create(&pool, MHA_MAX_THREADS + 1);
}

static mha_status make_isa(call *c)
{
    setenv("MHA_ISA", "abacus", 1);
    return call_attend(c, NULL);
}

static void run_in_order(void *context, int tasks, void (*task)(void *arg, int index), void *arg)
{
    (void)context;
    for (int i = 0; i < tasks; i++)
        task(arg, i);
}

/* Run by a child process: no more memory from now on. False where that has no effect. */
static bool refuse_memory(void)
{
    const struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_AS, &none) == 0 &&
           mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

/*
 * A child process that may have no more memory asks for the workspace of many threads. Emulators
 * do not refuse memory, and with a sanitizer refusal ends the program: there is nothing to see
 * then, and test_faults has other means.
 */
static mha_status make_memory(call *c)
{
    const mha_shape wide = {.B = 1, .H = 64, .G = 64, .L = 4, .S = 4, .D = 1024, .Dv = 1024};
    const mha_executor executor = {sizeof executor, NULL, 256, run_in_order};
    call *big = call_new(CALL_PLAIN, &wide, 1);
    mha_pool *pool = NULL;
    (void)c;
    mha_status status = mha_pool_create_from(&pool, &executor);
    const pid_t child = status == MHA_OK ? fork() : -1;
    if (child == 0)
        _exit(!TEST_SANITIZED && refuse_memory() ? -call_attend(big, pool) : -MHA_ERR_MEMORY);
    int code = 0;
    if (child > 0 && waitpid(child, &code, 0) == child && WIFEXITED(code))
        status = (mha_status)-WEXITSTATUS(code);
    mha_pool_free(pool);
    call_free(big);
    return status;
}

/* A cache for one token, queried for what it does not hold. */
static mha_cache *small_cache(void)
{
    const mha_cache_config config = {
        .size = sizeof config, .sequences = 1, .capacity = 1, .G = 1, .D = 1};
    mha_cache *cache = NULL;
    CHECK(mha_cache_create(&cache, &config) == MHA_OK, "no cache");
    return cache;
}

static mha_status append_to(int64_t sequence, ptrdiff_t count)
{
    const float numbers[2] = {1, 2};
    const mha_view view = mha_view_bhld(numbers, 1, 2, 1);
    mha_cache *const cache = small_cache();
    const mha_status status =
        mha_cache_append(cache, 1, &sequence, count, NULL, view, MHA_F32, view, MHA_F32);
    mha_cache_free(cache);
    return status;
}

static mha_status make_full(call *c)
{
    (void)c;
    return append_to(0, 2);
}

static mha_status make_sequence(call *c)
{
    (void)c;
    return append_to(1, 1);
}

static mha_status make_file(call *c)
{
    mha_cache *cache = NULL;
    (void)c;
    return mha_cache_load(&cache, "/nowhere/cache", NULL, 0);
}

static mha_status make_format(call *c)
{
    mha_cache *cache = NULL;
    (void)c;
    return mha_cache_load(&cache, "/proc/self/exe", NULL, 0);
}

static mha_status make_dropout(call *c)
{
    c->options.dropout = 1.0f;
    return call_attend(c, NULL);
}

static const struct {
    mha_status status;
    const char *name;
    mha_status (*make)(call *c);
} codes[] = {
    {MHA_OK, "MHA_OK", make_ok},
    {MHA_ERR_NULL, "MHA_ERR_NULL", make_null},
    {MHA_ERR_STRUCT, "MHA_ERR_STRUCT", make_struct},
    {MHA_ERR_SHAPE, "MHA_ERR_SHAPE", make_shape},
    {MHA_ERR_OVERFLOW, "MHA_ERR_OVERFLOW", make_overflow},
    {MHA_ERR_DTYPE, "MHA_ERR_DTYPE", make_dtype},
    {MHA_ERR_STRIDE, "MHA_ERR_STRIDE", make_stride},
    {MHA_ERR_ALIGN, "MHA_ERR_ALIGN", make_align},
    {MHA_ERR_OVERLAP, "MHA_ERR_OVERLAP", make_overlap},
    {MHA_ERR_SCALE, "MHA_ERR_SCALE", make_scale},
    {MHA_ERR_SOFTCAP, "MHA_ERR_SOFTCAP", make_softcap},
    {MHA_ERR_FLAG, "MHA_ERR_FLAG", make_flag},
    {MHA_ERR_WINDOW, "MHA_ERR_WINDOW", make_window},
    {MHA_ERR_POSITION, "MHA_ERR_POSITION", make_position},
    {MHA_ERR_LENGTH, "MHA_ERR_LENGTH", make_length},
    {MHA_ERR_INDEX, "MHA_ERR_INDEX", make_index},
    {MHA_ERR_WORKSPACE, "MHA_ERR_WORKSPACE", make_workspace},
    {MHA_ERR_PLAN, "MHA_ERR_PLAN", make_plan},
    {MHA_ERR_MEMORY, "MHA_ERR_MEMORY", make_memory},
    {MHA_ERR_THREAD, "MHA_ERR_THREAD", make_thread},
    {MHA_ERR_ISA, "MHA_ERR_ISA", make_isa},
    {MHA_ERR_FULL, "MHA_ERR_FULL", make_full},
    {MHA_ERR_SEQUENCE, "MHA_ERR_SEQUENCE", make_sequence},
    {MHA_ERR_FILE, "MHA_ERR_FILE", make_file},
    {MHA_ERR_FORMAT, "MHA_ERR_FORMAT", make_format},
    {MHA_ERR_DROPOUT, "MHA_ERR_DROPOUT", make_dropout},
    {MHA_ERR_MPI, "MHA_ERR_MPI", NULL}, /* those of libmha_mpi: tests/mpi has their calls */
    {MHA_ERR_TIMEOUT, "MHA_ERR_TIMEOUT", NULL},
    {MHA_ERR_AGREE, "MHA_ERR_AGREE", NULL},
};
enum { CODES = sizeof codes / sizeof codes[0] };

/* ------------------------------------------------------------ the environment ---- */

/* What MHA_ISA was before a test changed it. */
typedef struct saved_isa {
    bool set;
    char text[64];
} saved_isa;

static saved_isa save_isa(void)
{
    saved_isa saved = {getenv("MHA_ISA") != NULL, ""};
    if (saved.set)
        snprintf(saved.text, sizeof saved.text, "%s", getenv("MHA_ISA"));
    return saved;
}

static void restore_isa(const saved_isa *saved)
{
    if (saved->set)
        setenv("MHA_ISA", saved->text, 1);
    else
        unsetenv("MHA_ISA");
}

/* ----------------------------------------------------------------------- tests ---- */

static void every_code_is_reachable(void)
{
    const mha_shape shape = call_small_shape();
    for (int i = 0; i < CODES; i++) {
        if (!codes[i].make)
            continue;
        const saved_isa isa = save_isa();
        call *c = call_new(CALL_FULL, &shape, 1);
        const mha_status status = codes[i].make(c);
        restore_isa(&isa);
        CHECK(status == codes[i].status, "%s: got %d, %s", codes[i].name, (int)status,
              mha_status_string(status));
        call_free(c);
    }
}

static void numbers_are_frozen(void)
{
    int known = 0;
    while (call_status_known((mha_status)-known))
        known++;
    CHECK(CODES == known, "the library knows %d codes, this test %d", known, CODES);
    for (int i = 0; i < CODES; i++)
        CHECK(codes[i].status == -i, "%s is %d, not %d", codes[i].name, (int)codes[i].status, -i);
}

static void strings_say_name_and_meaning(void)
{
    for (int i = 0; i < CODES; i++) {
        const char *text = mha_status_string(codes[i].status);
        const size_t length = strlen(codes[i].name);
        CHECK(strncmp(text, codes[i].name, length) == 0 && strlen(text) > length + 2,
              "%s is called \"%s\"", codes[i].name, text);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(text, mha_status_string(codes[j].status)) != 0, "%s twice", text);
    }
}

static void unknown_codes(void)
{
    static const int unknown[] = {1, -CODES, 100, INT_MIN, INT_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        CHECK(strcmp(mha_status_string((mha_status)unknown[i]), "unknown status") == 0, "%d is %s",
              unknown[i], mha_status_string((mha_status)unknown[i]));
}

static void type_sizes(void)
{
    CHECK(mha_dtype_size(MHA_F32) == 4 && mha_dtype_size(MHA_F64) == 8, "f32, f64");
    CHECK(mha_dtype_size(MHA_F16) == 2 && mha_dtype_size(MHA_BF16) == 2, "f16, bf16");
    CHECK(mha_dtype_size(MHA_I8) == 1, "i8");
    static const int unknown[] = {-1, 5, 100, INT_MIN, INT_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        CHECK(mha_dtype_size((mha_dtype)unknown[i]) == 0, "type %d has a size", unknown[i]);
}

static void version(void)
{
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", MHA_VERSION_MAJOR, MHA_VERSION_MINOR,
             MHA_VERSION_PATCH);
    CHECK(strcmp(mha_version_string(), text) == 0, "%s, not %s", mha_version_string(), text);
    CHECK(mha_version() ==
              MHA_VERSION_MAJOR * 1000000 + MHA_VERSION_MINOR * 1000 + MHA_VERSION_PATCH,
          "%d", mha_version());
}

static const char *const isas[] = {"c",          "avx2", "avx2vnni", "avx512",   "avx512vnni",
                                   "avx512bf16", "neon", "neondot",  "neonbf16", "wasm"};
enum { ISAS = sizeof isas / sizeof isas[0] };

static bool is_known_isa(const char *name)
{
    for (int n = 0; n < ISAS; n++)
        if (!strcmp(name, isas[n]))
            return true;
    return false;
}

static void forced_instruction_sets(void)
{
    const saved_isa isa = save_isa();
    const mha_shape shape = call_small_shape();
    for (int i = 0; i < ISAS; i++) {
        call *c = call_new(CALL_FULL, &shape, 1);
        setenv("MHA_ISA", isas[i], 1);
        const char *const name = mha_isa_name(), *const base = mha_isa_base();
        const mha_status status = call_attend(c, NULL);
        if (name)
            CHECK(!strcmp(name, isas[i]) && status == MHA_OK && base &&
                      !strncmp(base, name, strlen(base)),
                  "%s gives %s, based on %s", isas[i], name, base ? base : "nothing");
        else
            CHECK(i > 0 && status == MHA_ERR_ISA && !base, "%s: %s", isas[i],
                  mha_status_string(status));
        call_free(c);
    }
    unsetenv("MHA_ISA");
    CHECK(mha_isa_name() && is_known_isa(mha_isa_name()), "no name by default");
    restore_isa(&isa);
}

static void unknown_instruction_sets(void)
{
    static const char *const names[] = {"abacus", "AVX2", "avx", "avx2 ", " c", "cc"};
    const saved_isa isa = save_isa();
    const mha_shape shape = call_small_shape();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        call *c = call_new(CALL_FULL, &shape, 1), *blank = call_new(CALL_FULL, &shape, 1);
        char message[200] = "";
        mha_plan *plan = (mha_plan *)c;
        c->options.message = message;
        c->options.message_size = sizeof message;
        setenv("MHA_ISA", names[i], 1);
        CHECK(!mha_isa_name(), "\"%s\" has a name", names[i]);
        CHECK(call_attend(c, NULL) == MHA_ERR_ISA && message[0], "\"%s\" runs", names[i]);
        CHECK(mha_plan_create(&plan, &shape, NULL) == MHA_ERR_ISA && !plan, "\"%s\" plans",
              names[i]);
        CHECK(call_equal(c, blank), "\"%s\" writes", names[i]);
        call_free(c);
        call_free(blank);
    }
    restore_isa(&isa);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_code_is_reachable);
    RUN(numbers_are_frozen);
    RUN(strings_say_name_and_meaning);
    RUN(unknown_codes);
    RUN(type_sizes);
    RUN(version);
    RUN(forced_instruction_sets);
    RUN(unknown_instruction_sets);
    return test_end();
}
