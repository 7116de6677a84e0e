/* SPDX-License-Identifier: MIT */
/*
 * model_outputs MODEL IDS OUTPUT: what a model computes, for compare_transformers.py. IDS has two
 * lines of token ids per sequence, source and target; an image encoder gets numbers that both
 * programs make. OUTPUT receives, per sequence, hidden states and, if the model has them, logits,
 * labels and the pooler's result, all as f32. Prints which of them there are.
 */
#include <mha/mha_model.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 512, LINE_MAX_BYTES = 8192 };

typedef struct outputs {
    float *hidden, *logits, *labels, *pooled;
} outputs;

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "model_outputs: %s\n", what);
    exit(1);
}

static int read_line(FILE *file, int32_t ids[IDS_MAX])
{
    char line[LINE_MAX_BYTES], *at = line;
    int count = 0;
    if (!fgets(line, sizeof line, file))
        return -1;
    while (count < IDS_MAX) {
        char *end;
        const long id = strtol(at, &end, 10);
        if (end == at)
            break;
        ids[count++] = (int32_t)id;
        at = end;
    }
    return count;
}

static float *floats(ptrdiff_t count)
{
    float *const numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        fail("out of memory");
    return numbers;
}

/* Pixel n is ((37 n) mod 101)/50 - 1. */
static float *make_pixels(const mha_model_info *info)
{
    const ptrdiff_t count = info->channels * info->image_size * info->image_size;
    float *const pixels = floats(count);
    for (ptrdiff_t n = 0; n < count; n++)
        pixels[n] = (float)(n * 37 % 101) / 50.0f - 1.0f;
    return pixels;
}

/* The pooler is not in mha_model_info: without one the call is refused. */
static bool try_run(const mha_model *model, mha_model_call *call, outputs *o)
{
    char message[400] = "";
    call->message = message;
    call->message_size = sizeof message;
    call->pooled = o->pooled;
    if (mha_model_run(model, call, NULL, 0, NULL) == MHA_OK)
        return true;
    call->pooled = NULL;
    if (mha_model_run(model, call, NULL, 0, NULL) != MHA_OK)
        fail(message);
    return false;
}

static void write_floats(FILE *file, const float *numbers, ptrdiff_t count)
{
    if (fwrite(numbers, sizeof *numbers, (size_t)count, file) != (size_t)count)
        fail("the output cannot be written");
}

/* One sequence. Returns whether there is a pooler. */
static bool run_one(const mha_model *model, const mha_model_info *info, const int32_t *source,
                    int source_count, const int32_t *ids, int count, FILE *file)
{
    const bool image = info->kind == MHA_MODEL_IMAGE_ENCODER;
    const ptrdiff_t rows = image ? info->positions : count;
    const int64_t starts[] = {0, count}, source_starts[] = {0, source_count};
    outputs o = {.hidden = floats(rows * info->width),
                 .logits = floats(rows * info->vocabulary),
                 .labels = floats(info->labels),
                 .pooled = floats(info->width)};
    mha_model_call call = {.size = sizeof call, .B = 1, .hidden = o.hidden};
    float *const pixels = image ? make_pixels(info) : NULL;
    call.pixels = pixels;
    if (!image) {
        call.starts = starts;
        call.ids = ids;
    }
    if (info->kind == MHA_MODEL_ENCODER_DECODER) {
        call.source_starts = source_starts;
        call.source_ids = source;
    }
    call.logits = info->has_logits ? o.logits : NULL;
    call.logit_row_count = info->has_logits ? rows : 0;
    call.labels = info->labels > 0 ? o.labels : NULL;
    const bool pooled = try_run(model, &call, &o);
    write_floats(file, o.hidden, rows * info->width);
    write_floats(file, o.logits, info->has_logits ? rows * info->vocabulary : 0);
    write_floats(file, o.labels, info->labels);
    write_floats(file, o.pooled, pooled ? info->width : 0);
    free(o.hidden);
    free(o.logits);
    free(o.labels);
    free(o.pooled);
    free(pixels);
    return pooled;
}

int main(int argc, char **argv)
{
    static int32_t source[IDS_MAX], ids[IDS_MAX];
    char message[400] = "";
    mha_model *model;
    if (argc != 4)
        fail("expected MODEL IDS OUTPUT");
    mha_model_config config = {.size = sizeof config,
                               .storage = MHA_STORE_F32,
                               .message = message,
                               .message_size = sizeof message};
    if (mha_model_open(&model, argv[1], &config) != MHA_OK)
        fail(message);
    mha_model_info info = {.size = sizeof info};
    FILE *const in = fopen(argv[2], "r"), *const out = fopen(argv[3], "wb");
    if (mha_model_get_info(model, &info) != MHA_OK || !in || !out)
        fail("the files cannot be opened");
    bool pooled = false;
    for (int count; (count = read_line(in, source)) >= 0;) {
        const int target_count = read_line(in, ids);
        pooled = run_one(model, &info, source, count, ids, target_count, out);
    }
    printf("%d %d %d %d\n", (int)info.kind, info.has_logits, info.labels > 0, pooled);
    fclose(in);
    if (fclose(out) != 0)
        fail("the output cannot be written");
    mha_model_free(model);
    return 0;
}
