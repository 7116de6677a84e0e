/* SPDX-License-Identifier: MIT */
/* Generations that use the memory of earlier ones give the bits of a model that has none. */
#include <stdlib.h>
#include <string.h>

#include "model/model_parts.h"
#include "support/test.h"
#include "support/tiny_models.h"

enum { WORDS = 60, TEXTS = 200, LONGEST = 24, MOST = 10 };

static int64_t starts[TEXTS + 1];
static int32_t ids[TEXTS * LONGEST];

/* Texts of different lengths, the longest of them `longest`. */
static void make_texts(uint64_t seed, int longest)
{
    tiny_ids(ids, TEXTS * LONGEST, WORDS, seed);
    for (int n = 0; n < TEXTS; n++)
        starts[n + 1] = starts[n] + 1 + (int64_t)((seed + (uint64_t)n * 7) % (uint64_t)longest);
}

static mha_generation *generate(const mha_model *model, ptrdiff_t count, ptrdiff_t beams)
{
    const mha_generate_config config = {
        .size = sizeof config, .most = MOST, .beams = beams, .length_penalty = 1};
    mha_generation *const results = calloc((size_t)count, sizeof *results);
    const mha_status status = mha_model_generate(model, count, starts, ids, &config, results, NULL);
    CHECK(status == MHA_OK, "%s", mha_status_string(status));
    return results;
}

static void compare(mha_generation *a, mha_generation *b, ptrdiff_t count, const char *what)
{
    for (ptrdiff_t n = 0; n < count; n++) {
        CHECK(a[n].count == b[n].count && a[n].score == b[n].score &&
                  memcmp(a[n].ids, b[n].ids, (size_t)a[n].count * sizeof *a[n].ids) == 0,
              "%s: text %td differs", what, n);
        mha_generation_free(&a[n]);
        mha_generation_free(&b[n]);
    }
    free(a);
    free(b);
}

static void kept_memory_changes_nothing(void)
{
    static const struct {
        const char *name;
        ptrdiff_t count, beams;
        int longest;
    } calls[] = {{"first", TEXTS, 3, 12},        {"again", TEXTS, 3, 12},
                 {"shorter", TEXTS, 3, 5},       {"longer", TEXTS, 3, LONGEST},
                 {"fewer", TEXTS / 2, 3, 12},    {"still fewer", TEXTS / 3, 3, 9},
                 {"greedy", TEXTS, 1, 12},       {"fewer, greedy", TEXTS - 7, 1, 12},
                 {"one text", 1, 3, 12},         {"after it", TEXTS, 3, 12},
                 {"another width", TEXTS, 2, 12}};
    static const tiny_kind kinds[] = {TINY_BART, TINY_T5, TINY_GPT2};
    for (int k = 0; k < 3; k++) {
        mha_model *const model = tiny_model_new(kinds[k], MHA_STORE_AS_FILE, 4, NULL);
        for (size_t n = 0; n < sizeof calls / sizeof calls[0]; n++) {
            mha_model *const fresh = tiny_model_new(kinds[k], MHA_STORE_AS_FILE, 4, NULL);
            make_texts(n, calls[n].longest);
            mha_generation *const mine = generate(model, calls[n].count, calls[n].beams);
            CHECK(atomic_load(&model->memory) != NULL, "model %d, %s: memory", k, calls[n].name);
            compare(mine, generate(fresh, calls[n].count, calls[n].beams), calls[n].count,
                    calls[n].name);
            mha_model_free(fresh);
        }
        mha_model_free(model);
    }
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(kept_memory_changes_nothing);
    return test_end();
}
