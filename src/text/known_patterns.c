/* SPDX-License-Identifier: MIT */
/* Patterns of well-known vocabularies (known_patterns.h). */
#include "text/known_patterns.h"

#include <string.h>

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* cl100k_base and those made after it differ in how many digits are one word. */
#define CL100K(digits)                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K(endings, digits)                                                                     \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" endings "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER \
    "*" endings "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

typedef struct named {
    const char *names; /* between spaces */
    known_patterns patterns;
} named;

static const named table[] = {
    {" gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v2-code gigachat roberta-bpe mpt "
     "olmo jais trillion granite-docling ",
     {{GPT2}, false, false}},
    {" smollm starcoder refact command-r codeshell minerva-7b exaone ",
     {{"\\p{N}", GPT2}, false, false}},
    {" llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 ",
     {{CL100K("\\p{N}{1,3}")}, true, true}},
    {" dbrx smaug-bpe chatglm-bpe glm4 ", {{CL100K("\\p{N}{1,3}")}, false, false}},
    {" qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez kormo ", {{CL100K("\\p{N}")}, false, false}},
    {" gpt-4o llama4 ", {{O200K(ENDINGS, "\\p{N}{1,3}")}, false, false}},
    {" tekken ", {{O200K("", "\\p{N}")}, true, true}},
    {" falcon ", {{"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}, false, false}},
    {" default ",
     {{"[\\p{P}\\$\\+<=>\\^~\\|]+",
       "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)", "\\p{N}+",
       "[0-9][0-9][0-9]"},
      false,
      false}},
};

bool known_patterns_of_gguf(const char *name, size_t length, known_patterns *found)
{
    for (size_t n = 0; n < sizeof table / sizeof table[0]; n++)
        for (const char *at = table[n].names; (at = strchr(at, ' ')) != NULL;) {
            at++;
            if (length && strncmp(at, name, length) == 0 && at[length] == ' ') {
                *found = table[n].patterns;
                return true;
            }
        }
    return false;
}

static const known_ranks ranks_table[] = {
    {"r50k_base", 50256, GPT2, {{"<|endoftext|>", 50256}}},
    {"p50k_base", 50281, GPT2, {{"<|endoftext|>", 50256}}},
    {"cl100k_base",
     100256,
     CL100K("\\p{N}{1,3}"),
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {"o200k_base",
     199998,
     O200K(ENDINGS, "\\p{N}{1,3}"),
     {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
    {"llama3",
     128000,
     CL100K("\\p{N}{1,3}"),
     {{"<|begin_of_text|>", 128000},
      {"<|end_of_text|>", 128001},
      {"<|start_header_id|>", 128006},
      {"<|end_header_id|>", 128007},
      {"<|eom_id|>", 128008},
      {"<|eot_id|>", 128009},
      {"<|python_tag|>", 128010}}},
    {"qwen",
     151643,
     CL100K("\\p{N}"),
     {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}}},
};

const known_ranks *known_ranks_of(int ranks)
{
    for (size_t n = 0; n < sizeof ranks_table / sizeof ranks_table[0]; n++)
        if (ranks_table[n].ranks == ranks)
            return &ranks_table[n];
    return NULL;
}
