/* SPDX-License-Identifier: MIT */
/*
 * The random specs of `mha verify` and of the tests of the operator: every feature, type and kind
 * of extent is drawn often enough, and has an effect on the problem that is built. A generator that
 * stops drawing one of them would leave it untested without any other sign. The seeds are fixed, so
 * the counts are the same in every run.
 */
#include "support/problems.h"

#include <math.h>

enum { SPECS = 4000 };

/* Something that specs can have, and the least share of specs that must have it. */
typedef struct trait {
    const char *name;
    double percent;
    bool (*has)(const problem_spec *spec, int64_t argument);
    int64_t argument;
} trait;

static void expect_traits(const trait *traits, size_t count, problem_spec (*draw)(uint64_t n))
{
    for (size_t t = 0; t < count; t++) {
        int64_t found = 0;
        for (uint64_t n = 0; n < SPECS; n++) {
            const problem_spec spec = draw(n);
            found += traits[t].has(&spec, traits[t].argument);
        }
        const double percent = 100.0 * (double)found / SPECS;
        CHECK(percent >= traits[t].percent, "%s: %.2f %% of specs, at least %g %% are needed",
              traits[t].name, percent, traits[t].percent);
    }
}

static problem_spec draw_random(uint64_t n)
{
    return problem_spec_random(n, 1e5);
}

static problem_spec draw_case(uint64_t n)
{
    return problem_spec_case(17, n);
}

/* ---------------------------------------------------------------- traits ----- */

static bool has_feature(const problem_spec *spec, int64_t feature)
{
    return (spec->features & (unsigned)feature) != 0;
}

static bool has_q_type(const problem_spec *spec, int64_t type)
{
    return spec->shape.q_type == (mha_dtype)type;
}

static bool has_k_type(const problem_spec *spec, int64_t type)
{
    return spec->shape.k_type == (mha_dtype)type;
}

static bool has_v_type(const problem_spec *spec, int64_t type)
{
    return spec->shape.v_type == (mha_dtype)type;
}

static bool has_o_type(const problem_spec *spec, int64_t type)
{
    return spec->shape.o_type == (mha_dtype)type;
}

static bool has_values(const problem_spec *spec, int64_t values)
{
    return spec->values == (problem_values)values;
}

static bool has_queries(const problem_spec *spec, int64_t count)
{
    return spec->shape.L == (ptrdiff_t)count;
}

static bool has_keys(const problem_spec *spec, int64_t count)
{
    return spec->shape.S == (ptrdiff_t)count;
}

static bool has_more_keys_than(const problem_spec *spec, int64_t count)
{
    return spec->shape.S > (ptrdiff_t)count;
}

static bool has_large_logits(const problem_spec *spec, int64_t least)
{
    return spec->logits > (double)least;
}

static bool has_groups(const problem_spec *spec, int64_t unused)
{
    (void)unused;
    return spec->shape.H > spec->shape.G && spec->shape.G > 1;
}

static bool has_other_value_width(const problem_spec *spec, int64_t unused)
{
    (void)unused;
    return spec->shape.Dv != 0 && spec->shape.Dv != spec->shape.D;
}

static bool has_statistics(const problem_spec *spec, int64_t kind)
{
    return (problem_spec_word(spec).statistics & (unsigned)kind) != 0;
}

static bool has_position(const problem_spec *spec, int64_t position)
{
    return problem_spec_word(spec).position == (mha_position)position;
}

static bool has_weights_mode(const problem_spec *spec, int64_t mode)
{
    const problem_word word = problem_spec_word(spec);
    return word.weights && word.weights_mode == (mha_weights_mode)mode;
}

static bool has_average(const problem_spec *spec, int64_t unused)
{
    (void)unused;
    return problem_spec_word(spec).average;
}

static bool has_negative_scale(const problem_spec *spec, int64_t unused)
{
    (void)unused;
    return problem_spec_word(spec).scale < 0.0f;
}

#define FEATURE(name)                                       \
    {                                                       \
        "feature " #name, 20.0, has_feature, FEATURE_##name \
    }
#define TYPES(which, least, type)                                 \
    {                                                             \
#which " of type " #type, least, has_##which##_type, type \
    }

/* Of random specs and of the cases of `mha verify`. */
static const trait common[] = {
    FEATURE(CAUSAL),
    FEATURE(WINDOW),
    FEATURE(ATTEND),
    FEATURE(IGNORE),
    FEATURE(ADD),
    FEATURE(BIAS),
    FEATURE(ALIBI),
    FEATURE(SINKS),
    FEATURE(SOFTCAP),
    FEATURE(Q_LENGTHS),
    FEATURE(K_LENGTHS),
    FEATURE(PACKED),
    FEATURE(DOCUMENTS),
    FEATURE(SCALE),
    FEATURE(OFFSET),
    FEATURE(LSE),
    FEATURE(WEIGHTS),
    FEATURE(STRIDES),
    FEATURE(BROADCAST),
    FEATURE(MASK_TYPES),
    FEATURE(POISON),
    TYPES(q, 30.0, MHA_F32),
    TYPES(q, 5.0, MHA_F16),
    TYPES(q, 5.0, MHA_BF16),
    TYPES(q, 4.0, MHA_F64),
    TYPES(k, 30.0, MHA_F32),
    TYPES(k, 5.0, MHA_F16),
    TYPES(k, 5.0, MHA_BF16),
    TYPES(v, 30.0, MHA_F32),
    TYPES(v, 5.0, MHA_F16),
    TYPES(v, 5.0, MHA_BF16),
    TYPES(o, 30.0, MHA_F32),
    TYPES(o, 5.0, MHA_F16),
    TYPES(o, 5.0, MHA_BF16),
    {"normal values", 50.0, has_values, VALUES_NORMAL},
    {"values of the same sign", 4.0, has_values, VALUES_SAME_SIGN},
    {"alternating values", 7.0, has_values, VALUES_ALTERNATING},
    {"one query", 5.0, has_queries, 1},
    {"one key", 2.0, has_keys, 1},
    {"more than 100 keys", 5.0, has_more_keys_than, 100},
    {"large scores", 5.0, has_large_logits, 30},
    {"groups of heads", 40.0, has_groups, 0},
    {"values of another width", 20.0, has_other_value_width, 0},
    {"position top left", 5.0, has_position, MHA_POSITION_TOP_LEFT},
    {"position bottom right", 5.0, has_position, MHA_POSITION_BOTTOM_RIGHT},
    {"position by offset", 5.0, has_position, MHA_POSITION_OFFSET},
    {"weights after softmax", 5.0, has_weights_mode, MHA_WEIGHTS_SOFTMAX},
    {"averaged weights", 4.0, has_average, 0},
    {"negative scale", 2.0, has_negative_scale, 0},
};

/* Of the cases of `mha verify` only. */
static const trait of_cases[] = {
    {"no queries", 1.0, has_queries, 0},
    {"no keys", 1.0, has_keys, 0},
    {"statistics", 8.0, has_feature, FEATURE_STATISTICS},
    {"statistics of columns", 4.0, has_statistics, STATISTICS_COLUMNS},
    {"statistics of the largest weights", 4.0, has_statistics, STATISTICS_TOP},
};

static void random_specs_have_everything(void)
{
    expect_traits(common, sizeof common / sizeof *common, draw_random);
}

static void verify_cases_have_everything(void)
{
    expect_traits(common, sizeof common / sizeof *common, draw_case);
    expect_traits(of_cases, sizeof of_cases / sizeof *of_cases, draw_case);
}

/* A new feature has to be added to the table above, unless random specs never draw it. */
static void all_features_are_counted(void)
{
    unsigned counted = 0;
    for (size_t t = 0; t < sizeof common / sizeof *common; t++)
        counted |= common[t].has == has_feature ? (unsigned)common[t].argument : 0u;
    CHECK(counted == FEATURE_EVERYTHING, "counted %#x of %#x", counted,
          (unsigned)FEATURE_EVERYTHING);
    for (uint64_t n = 0; n < SPECS; n++) {
        const unsigned others = draw_random(n).features & ~(unsigned)FEATURE_EVERYTHING;
        CHECK(others == 0, "seed %d: features %#x", (int)n, others);
    }
}

/* ------------------------------------------------------- built problems ----- */

static bool is_strided(const problem *p)
{
    const tensor *const k = &p->tensors[TENSOR_K];
    return k->s[0] < 0 || k->s[1] < 0 || k->s[2] < 0 || k->s[2] > k->n[3];
}

static bool is_shared(const problem *p)
{
    const tensor *const k = &p->tensors[TENSOR_K];
    return k->s[0] == 0 || k->s[1] == 0;
}

/* A key that is NaN, and so is its value. */
static bool has_nan_key(const problem *p)
{
    const ptrdiff_t *const n = p->tensors[TENSOR_K].n;
    for (ptrdiff_t r = 0; r < n[0] * n[1] * n[2]; r++) {
        const ptrdiff_t b = r / n[2] / n[1], g = r / n[2] % n[1], j = r % n[2];
        if (isnan(problem_get(p, TENSOR_K, b, g, j, 0)))
            return isnan(problem_get(p, TENSOR_V, b, g, j, 0));
    }
    return false;
}

static bool has_other_mask_type(const problem *p)
{
    return p->call.options.add_mask_type != MHA_F32;
}

static bool has_short_queries(const problem *p)
{
    return p->call.options.q_lengths[0] < p->call.shape.L;
}

static bool has_short_keys(const problem *p)
{
    return p->call.options.k_lengths[0] < p->call.shape.S;
}

static bool has_late_start(const problem *p)
{
    return p->call.options.q_starts[0] > 0;
}

static bool has_offsets(const problem *p)
{
    return p->call.options.offsets != NULL;
}

static bool has_lists(const problem *p)
{
    return p->call.options.weights_heads != NULL && p->call.options.weights_rows != NULL;
}

static bool has_documents(const problem *p)
{
    return p->call.options.q_documents != NULL && p->call.options.k_documents != NULL;
}

static bool has_sinks(const problem *p)
{
    return p->call.options.sinks != NULL;
}

static bool has_slopes(const problem *p)
{
    return p->call.options.alibi_slopes != NULL;
}

/* Features whose details are drawn while the problem is built. */
static void features_have_an_effect(void)
{
    static const struct {
        const char *name;
        unsigned features;
        int least; /* of 100 problems */
        bool (*seen)(const problem *p);
    } effects[] = {
        {"strides", FEATURE_STRIDES, 50, is_strided},
        {"broadcast", FEATURE_BROADCAST, 50, is_shared},
        {"poison past lengths", FEATURE_POISON | FEATURE_K_LENGTHS, 30, has_nan_key},
        {"poison outside of windows", FEATURE_POISON | FEATURE_WINDOW, 10, has_nan_key},
        {"mask types", FEATURE_MASK_TYPES | FEATURE_ADD, 40, has_other_mask_type},
        {"query lengths", FEATURE_Q_LENGTHS, 30, has_short_queries},
        {"key lengths", FEATURE_K_LENGTHS, 30, has_short_keys},
        {"packed", FEATURE_PACKED, 10, has_late_start},
        {"offsets", FEATURE_OFFSET, 10, has_offsets},
        {"weights", FEATURE_WEIGHTS, 10, has_lists},
        {"documents", FEATURE_DOCUMENTS, 100, has_documents},
        {"sinks", FEATURE_SINKS, 100, has_sinks},
        {"slopes", FEATURE_ALIBI, 100, has_slopes},
    };
    for (size_t e = 0; e < sizeof effects / sizeof *effects; e++) {
        int seen = 0;
        for (uint64_t seed = 0; seed < 100; seed++) {
            const problem_spec spec = {.shape = {.B = 2, .H = 2, .G = 2, .L = 5, .S = 7, .D = 4},
                                       .features = effects[e].features,
                                       .seed = seed};
            problem *const p = problem_new(&spec);
            seen += effects[e].seen(p);
            problem_delete(p);
        }
        CHECK(seen >= effects[e].least, "%s: in %d of 100 problems", effects[e].name, seen);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(all_features_are_counted);
    RUN(random_specs_have_everything);
    RUN(verify_cases_have_everything);
    RUN(features_have_an_effect);
    return test_end();
}
