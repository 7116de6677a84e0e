/* SPDX-License-Identifier: MIT */
#include <mha/mha_model.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 512 };

int main(int argc, char **argv)
{
    if (argc != 3) {
        printf("usage: %s MODEL TEXT\n", argv[0]);
        return 0;
    }
    const char *const text = argv[2];
    char message[512] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model = NULL;
    mha_tokens tokens = {0};
    mha_generation result = {0};
    mha_status status = mha_model_open(&model, argv[1], &config);
    if (status == MHA_OK)
        status = mha_tokenizer_encode(mha_model_tokenizer(model), text, strlen(text),
                                      MHA_TEXT_MARKS, &tokens);
    if (status == MHA_OK && tokens.count > LONGEST) {
        status = MHA_ERR_LENGTH;
        snprintf(message, sizeof message, "the text has %td tokens, more than %d", tokens.count,
                 LONGEST);
    }
    if (status == MHA_OK) {
        int32_t ids[LONGEST];
        for (ptrdiff_t n = 0; n < tokens.count; n++)
            ids[n] = tokens.tokens[n].id;
        const int64_t starts[] = {0, tokens.count};
        const mha_generate_config request = {
            .size = sizeof request, .most = 40, .message = message, .message_size = sizeof message};
        status = mha_model_generate(model, 1, starts, ids, &request, &result, NULL);
    }
    if (status == MHA_OK && result.text != NULL)
        printf("%s\n", result.text);
    else
        fprintf(stderr, "%s: %s\n", mha_status_string(status), message);
    const int failed = result.text == NULL;
    mha_generation_free(&result);
    mha_tokens_free(&tokens);
    mha_model_free(model);
    return failed;
}
