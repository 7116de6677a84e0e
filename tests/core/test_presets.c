/* SPDX-License-Identifier: MIT */
/* The published configurations, by name and one after another. */
#include "support/test.h"

#include <mha/mha.h>

#include <string.h>

static const mha_preset_info published[] = {
    {"bert-base", "BERT-Base", 768, 12, 64, 12, 512, 0},
    {"bert-large", "BERT-Large", 1024, 16, 64, 24, 512, 0},
    {"gpt2-small", "GPT-2 Small", 768, 12, 64, 12, 1024, 1},
    {"gpt2-large", "GPT-2 Large", 1280, 20, 64, 36, 1024, 1},
    {"gpt3", "GPT-3 175B", 12288, 96, 128, 96, 2048, 1},
    {"transformer-base", "Transformer (base)", 512, 8, 64, 6, 512, 0},
};

enum { PUBLISHED = sizeof published / sizeof published[0] };

static void every_preset_is_as_published(void)
{
    for (int n = 0; n < PUBLISHED; n++) {
        const mha_preset_info *const want = &published[n];
        const mha_preset_info *const got = mha_preset(want->name);
        CHECK(got != NULL, "%s: no such preset", want->name);
        if (!got)
            continue;
        CHECK(!strcmp(got->name, want->name) && !strcmp(got->title, want->title), "%s is \"%s\"",
              want->name, got->title);
        CHECK(got->E == want->E && got->H == want->H && got->D == want->D,
              "%s: E %td, H %td, D %td", want->name, got->E, got->H, got->D);
        CHECK(got->layers == want->layers && got->tokens == want->tokens &&
                  got->causal == want->causal,
              "%s: %td layers, %td tokens, causal %d", want->name, got->layers, got->tokens,
              got->causal);
    }
}

static void heads_share_the_width(void)
{
    for (int n = 0; mha_preset_at(n); n++) {
        const mha_preset_info *const p = mha_preset_at(n);
        CHECK(p->H * p->D == p->E, "%s: %td heads of %td in a width of %td", p->name, p->H, p->D,
              p->E);
    }
}

static void presets_are_counted_from_0(void)
{
    int count = 0;
    for (; mha_preset_at(count); count++)
        CHECK(mha_preset(mha_preset_at(count)->name) == mha_preset_at(count),
              "preset %d has the name of another one", count);
    CHECK(count == PUBLISHED, "%d presets, not %d", count, PUBLISHED);
    CHECK(!mha_preset_at(-1) && !mha_preset_at(count + 1) && !mha_preset_at(1 << 30),
          "a preset outside the list");
}

static void unknown_names_have_no_preset(void)
{
    static const char *const names[] = {"", "bert", "BERT-Base", "gpt2-small ", "gpt", "gpt33"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        CHECK(!mha_preset(names[n]), "\"%s\" has a preset", names[n]);
    CHECK(!mha_preset(NULL), "NULL has a preset");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(every_preset_is_as_published);
    RUN(heads_share_the_width);
    RUN(presets_are_counted_from_0);
    RUN(unknown_names_have_no_preset);
    return test_end();
}
