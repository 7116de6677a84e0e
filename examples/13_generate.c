/* SPDX-License-Identifier: MIT */
/*
 * 13. A model that writes.
 *
 *      13_generate MODEL [TEXT...]
 *
 * All texts are continued in one batch, and every new token is reported as soon as it is known. A
 * model of the kind encoder-decoder reads the texts and writes its own. Each sequence gives the
 * same tokens alone and in a batch, which the program checks. docs/models.md says where to get a
 * model. Without one only this usage is printed.
 */
#include <mha/mha_model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 8, IDS = 4096 };

static const char *const sentences[] = {"Once upon a time", "The cat"};

typedef struct batch {
    ptrdiff_t count;
    int64_t starts[TEXTS + 1];
    int32_t ids[IDS];
} batch;

static mha_status add_text(batch *to, const mha_tokenizer *tokenizer, const char *text)
{
    mha_tokens tokens;
    mha_status status =
        mha_tokenizer_encode(tokenizer, text, strlen(text), MHA_TEXT_MARKS, &tokens);
    if (status != MHA_OK)
        return status;
    const int64_t start = to->starts[to->count];
    if (to->count == TEXTS || start + tokens.count > IDS)
        status = MHA_ERR_LENGTH;
    for (ptrdiff_t n = 0; n < tokens.count && status == MHA_OK; n++)
        to->ids[start + n] = tokens.tokens[n].id;
    if (status == MHA_OK)
        to->starts[++to->count] = start + tokens.count;
    mha_tokens_free(&tokens);
    return status;
}

/* Text arrives in whole characters; the last call of a sequence has id -1. */
static int print_token(void *context, ptrdiff_t b, int32_t id, const char *text, size_t length)
{
    (void)context;
    printf("  sequence %td, token %d: \"%.*s\"\n", b, id, (int)length, text);
    return 0;
}

/* Whether sequence b alone gives the same tokens. */
static int same_alone(const mha_model *model, const batch *texts, ptrdiff_t b,
                      const mha_generation *expected)
{
    const int64_t starts[] = {0, texts->starts[b + 1] - texts->starts[b]};
    const mha_generate_config config = {.size = sizeof config, .most = 40};
    mha_generation alone;
    if (mha_model_generate(model, 1, starts, texts->ids + texts->starts[b], &config, &alone,
                           NULL) != MHA_OK)
        return 0;
    const int same = alone.count == expected->count &&
                     memcmp(alone.ids, expected->ids, (size_t)alone.count * sizeof *alone.ids) == 0;
    mha_generation_free(&alone);
    return same;
}

static mha_status generate(const mha_model *model, const batch *texts, char *message,
                           size_t message_size, int *right)
{
    mha_generation results[TEXTS];
    const mha_generate_config config = {.size = sizeof config,
                                        .most = 40,
                                        .callback = print_token,
                                        .message = message,
                                        .message_size = message_size};
    const mha_status status =
        mha_model_generate(model, texts->count, texts->starts, texts->ids, &config, results, NULL);
    for (ptrdiff_t b = 0; b < texts->count && status == MHA_OK; b++) {
        printf("%s (%td tokens, log-probability %.3f)\n", results[b].text, results[b].count,
               results[b].log_probability);
        *right &= same_alone(model, texts, b, &results[b]);
        mha_generation_free(&results[b]);
    }
    return status;
}

int main(int argc, char **argv)
{
    static batch texts;
    if (argc < 2) {
        printf("usage: 13_generate MODEL [TEXT...]\n");
        return 0;
    }
    char message[512] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model;
    int right = 1;
    mha_status status = mha_model_open(&model, argv[1], &config);
    const char *const *const given = argc > 2 ? (const char *const *)argv + 2 : sentences;
    for (int n = 0; n < (argc > 2 ? argc - 2 : 2) && status == MHA_OK; n++)
        status = add_text(&texts, mha_model_tokenizer(model), given[n]);
    if (status == MHA_OK)
        status = generate(model, &texts, message, sizeof message, &right);
    if (status != MHA_OK)
        fprintf(stderr, "%s: %s\n", mha_status_string(status), message);
    else
        printf("each sequence alone gives the same tokens: %s\n", right ? "yes" : "no");
    mha_model_free(model);
    return status != MHA_OK || !right;
}
