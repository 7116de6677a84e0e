/* SPDX-License-Identifier: MIT */
/*
 * 12. Vectors of sentences.
 *
 * A sentence encoder such as all-MiniLM-L6-v2 makes one vector of every text. Texts that mean
 * something similar have vectors with a large cosine. With vectors of length 1 the cosine is the
 * dot product.
 *
 *      12_sentence_vectors MODEL [TEXT...]     prints the cosines of all pairs
 *
 * docs/models.md says where to get a model. Without one only this usage is printed.
 */
#include <mha/mha_model.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const sentences[] = {"A cat sleeps on the sofa.", "The kitten naps on a couch.",
                                        "Interest rates rose again in March."};

static void print_cosines(const float *vectors, ptrdiff_t count, ptrdiff_t width,
                          const char *const *texts)
{
    for (ptrdiff_t a = 0; a < count; a++)
        for (ptrdiff_t b = a + 1; b < count; b++) {
            double cosine = 0;
            for (ptrdiff_t c = 0; c < width; c++)
                cosine += (double)vectors[a * width + c] * (double)vectors[b * width + c];
            printf("%6.3f  %s | %s\n", cosine, texts[a], texts[b]);
        }
}

static mha_status compare(const mha_model *model, const char *const *texts, ptrdiff_t count,
                          char *message, size_t message_size)
{
    mha_model_info info = {.size = sizeof info};
    mha_status status = mha_model_get_info(model, &info);
    if (status != MHA_OK)
        return status;
    float *const vectors = malloc((size_t)(count * info.width) * sizeof *vectors);
    if (vectors == NULL)
        return MHA_ERR_MEMORY;
    const mha_encode_config config = {
        .size = sizeof config, .normalize = 1, .message = message, .message_size = message_size};
    status = mha_model_encode(model, texts, count, &config, vectors, NULL);
    if (status == MHA_OK)
        print_cosines(vectors, count, info.width, texts);
    free(vectors);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        printf("usage: 12_sentence_vectors MODEL [TEXT...]\n");
        return 0;
    }
    char message[512] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model = NULL;
    mha_status status = mha_model_open(&model, argv[1], &config);
    if (status == MHA_OK && argc > 2)
        status = compare(model, (const char *const *)argv + 2, argc - 2, message, sizeof message);
    else if (status == MHA_OK)
        status = compare(model, sentences, 3, message, sizeof message);
    if (status != MHA_OK)
        fprintf(stderr, "%s: %s\n", mha_status_string(status), message);
    mha_model_free(model);
    return status != MHA_OK;
}
