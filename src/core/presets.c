/* SPDX-License-Identifier: MIT */
/* Published configurations by their usual names. */
#include <mha/mha.h>

#include <string.h>

static const mha_preset_info presets[] = {
    {.name = "bert-base",
     .title = "BERT-Base",
     .E = 768,
     .H = 12,
     .D = 64,
     .layers = 12,
     .tokens = 512},
    {.name = "bert-large",
     .title = "BERT-Large",
     .E = 1024,
     .H = 16,
     .D = 64,
     .layers = 24,
     .tokens = 512},
    {.name = "gpt2-small",
     .title = "GPT-2 Small",
     .E = 768,
     .H = 12,
     .D = 64,
     .layers = 12,
     .tokens = 1024,
     .causal = 1},
    {.name = "gpt2-large",
     .title = "GPT-2 Large",
     .E = 1280,
     .H = 20,
     .D = 64,
     .layers = 36,
     .tokens = 1024,
     .causal = 1},
    {.name = "gpt3",
     .title = "GPT-3 175B",
     .E = 12288,
     .H = 96,
     .D = 128,
     .layers = 96,
     .tokens = 2048,
     .causal = 1},
    /* Encoder and decoder have 6 layers each. Its positions are sines and have no limit. The paper
     * names no longest input; 512 is one that sentences of translation do not exceed. */
    {.name = "transformer-base",
     .title = "Transformer (base)",
     .E = 512,
     .H = 8,
     .D = 64,
     .layers = 6,
     .tokens = 512},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const mha_preset_info *mha_preset(const char *name)
{
    for (int n = 0; name && n < PRESETS; n++)
        if (!strcmp(name, presets[n].name))
            return &presets[n];
    return NULL;
}

const mha_preset_info *mha_preset_at(int number)
{
    return number >= 0 && number < PRESETS ? &presets[number] : NULL;
}
