/* SPDX-License-Identifier: MIT */
/*
 * 14. The heads of a model: see one, then disable it.
 *
 *      14_heads_of_a_model MODEL [TEXT]
 *
 * One run computes the final hidden states and copies the attention weights of one head out: the
 * first head of the first layer. A second run sets the gate of this head to 0. The distance between
 * both results is what the head contributes to this text. docs/models.md says where to get a model.
 * Without one only this usage is printed.
 */
#include <math.h>
#include <mha/mha_model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 64 };

typedef struct text_ids {
    ptrdiff_t count;
    int32_t ids[LONGEST];
    const char *pieces[LONGEST];
} text_ids;

static mha_status read_text(text_ids *to, const mha_tokenizer *tokenizer, const char *text)
{
    mha_tokens tokens;
    const mha_status status =
        mha_tokenizer_encode(tokenizer, text, strlen(text), MHA_TEXT_MARKS, &tokens);
    for (ptrdiff_t n = 0; status == MHA_OK && n < tokens.count && n < LONGEST; n++) {
        to->ids[n] = tokens.tokens[n].id;
        to->pieces[n] = mha_tokenizer_piece(tokenizer, to->ids[n]);
        to->count = n + 1;
    }
    mha_tokens_free(&tokens);
    return status;
}

/* The first row of the decoder of an encoder-decoder is the mark that begins a text. */
static mha_model_call call_for(const mha_model_info *info, const text_ids *text,
                               const int64_t *starts, const int64_t *one)
{
    mha_model_call call = {.size = sizeof call, .B = 1, .starts = starts, .ids = text->ids};
    if (info->kind == MHA_MODEL_ENCODER_DECODER) {
        call.source_starts = starts;
        call.source_ids = text->ids;
        call.starts = one;
    }
    return call;
}

static void print_weights(const text_ids *text, const float *weights)
{
    for (ptrdiff_t i = 0; i < text->count; i++) {
        ptrdiff_t best = 0;
        for (ptrdiff_t j = 1; j < text->count; j++)
            best = weights[i * text->count + j] > weights[i * text->count + best] ? j : best;
        printf("  %-12s attends most to %-12s %.3f\n", text->pieces[i], text->pieces[best],
               weights[i * text->count + best]);
    }
}

static double distance(const float *x, const float *y, ptrdiff_t count)
{
    double sum = 0;
    for (ptrdiff_t n = 0; n < count; n++)
        sum += ((double)x[n] - (double)y[n]) * ((double)x[n] - (double)y[n]);
    return sqrt(sum);
}

static mha_status run_both(const mha_model *model, const mha_model_info *info, const text_ids *text,
                           float *results, float *gates, double *moved)
{
    const int pair = info->kind == MHA_MODEL_ENCODER_DECODER;
    const mha_attention_kind kind =
        info->kind == MHA_MODEL_DECODER ? MHA_ATTENTION_DECODER : MHA_ATTENTION_ENCODER;
    static float weights[LONGEST * LONGEST];
    static const int64_t first_head = 0, one[] = {0, 1};
    const int64_t starts[] = {0, text->count};
    const ptrdiff_t numbers = text->count * info->width;
    const mha_capture capture = {.kind = kind,
                                 .weights = mha_out_bhld(weights, 1, text->count, text->count),
                                 .weights_heads = &first_head,
                                 .weights_head_count = 1};
    mha_model_call call = call_for(info, text, starts, one);
    *(pair ? &call.source_hidden : &call.hidden) = results;
    call.captures = &capture;
    call.capture_count = 1;
    mha_status status = mha_model_run(model, &call, NULL, 0, NULL);
    if (status != MHA_OK)
        return status;
    print_weights(text, weights);

    mha_head_settings settings = {.size = sizeof settings};
    settings.gates[kind] = gates;
    gates[0] = 0;
    call.heads = &settings;
    call.capture_count = 0;
    *(pair ? &call.source_hidden : &call.hidden) = results + numbers;
    status = mha_model_run(model, &call, NULL, 0, NULL);
    *moved = distance(results, results + numbers, numbers);
    return status;
}

static mha_status study(const mha_model *model, const char *text, double *moved)
{
    static text_ids ids;
    mha_model_info info = {.size = sizeof info};
    mha_status status = mha_model_get_info(model, &info);
    if (status == MHA_OK)
        status = read_text(&ids, mha_model_tokenizer(model), text);
    if (status != MHA_OK)
        return status;
    const ptrdiff_t layers =
        info.layers[MHA_ATTENTION_ENCODER] + info.layers[MHA_ATTENTION_DECODER];
    const size_t heads = (size_t)(layers * info.heads);
    float *const results = calloc((size_t)(2 * ids.count * info.width), sizeof *results);
    float *const gates = malloc(heads * sizeof *gates);
    status = results && gates ? MHA_OK : MHA_ERR_MEMORY;
    for (size_t h = 0; h < heads && status == MHA_OK; h++)
        gates[h] = 1;
    if (status == MHA_OK)
        status = run_both(model, &info, &ids, results, gates, moved);
    free(results);
    free(gates);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        printf("usage: 14_heads_of_a_model MODEL [TEXT]\n");
        return 0;
    }
    char message[512] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model;
    double moved = 0;
    mha_status status = mha_model_open(&model, argv[1], &config);
    if (status == MHA_OK)
        status = study(model, argc > 2 ? argv[2] : "The cat sleeps because it is tired.", &moved);
    if (status == MHA_OK)
        printf("without this head the hidden states move by %.3f\n", moved);
    else
        fprintf(stderr, "%s: %s\n", mha_status_string(status), message);
    mha_model_free(model);
    return status != MHA_OK || !(moved > 0);
}
