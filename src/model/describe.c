/* SPDX-License-Identifier: MIT */
/* From a whole configuration to a description: finds the family, reads its fields, refuses what is
 * not supported, and settles what follows from the fields. */
#include "model/describe.h"

#include <stdlib.h>
#include <string.h>

#include "format/image_scale.h"
#include "model/families.h"

/* ------------------------------------------------------------- conditions ----- */

/* Keys that must be absent, null or have this value: others mean another computation. */
static const struct config_condition {
    const char *key;
    config_type type;
    bool truth;
    const char *text;
} conditions[] = {
    {"is_decoder", CONFIG_BOOL, false, NULL},
    {"add_cross_attention", CONFIG_BOOL, false, NULL},
    {"use_bidirectional_attention", CONFIG_BOOL, false, NULL},
    {"position_embedding_type", CONFIG_TEXT, false, "absolute"},
};

static mha_status check_conditions(const config_reader *r)
{
    for (size_t n = 0; n < sizeof conditions / sizeof conditions[0]; n++) {
        const struct config_condition *const c = &conditions[n];
        const config_value value = config_get(r, c->key);
        if (value.type == CONFIG_ABSENT || value.type == CONFIG_NULL)
            continue;
        const bool equal = value.type == c->type &&
                           (c->text ? strcmp(value.text, c->text) == 0 : value.truth == c->truth);
        if (!equal && c->text)
            return config_fail(r, MHA_ERR_FORMAT, "\"%s\" is \"%s\", expected \"%s\"", c->key,
                               value.text, c->text);
        if (!equal)
            return config_fail(r, MHA_ERR_FORMAT, "\"%s\" must be %s", c->key,
                               c->truth ? "true" : "false");
    }
    if (json_tree_type_of(json_tree_member(r->object, "quantization_config")) == JSON_TREE_OBJECT)
        return config_fail(r, MHA_ERR_FORMAT,
                           "the weights are quantized (\"quantization_config\"), expected f32, f16 "
                           "or bf16 tensors; quantized models are read from GGUF files");
    return MHA_OK;
}

/* ----------------------------------------------------------------- settle ----- */

/* Keys and values of all heads must fit together, and products must not overflow an int. */
static mha_status settle_attention(const config_reader *r, attention_description *a, int width)
{
    if (a->key_heads == 0)
        a->key_heads = a->heads;
    if (a->head_width == 0) {
        if (width % a->heads != 0)
            return config_fail(r, MHA_ERR_FORMAT,
                               "%d heads do not divide the width of the model, which is %d",
                               a->heads, width);
        a->head_width = width / a->heads;
    }
    if (a->head_width > MHA_MAX_HEAD_WIDTH)
        return config_fail(r, MHA_ERR_FORMAT, "heads have a width of %d, expected at most %d",
                           a->head_width, MHA_MAX_HEAD_WIDTH);
    if (a->heads % a->key_heads != 0)
        return config_fail(r, MHA_ERR_FORMAT, "%d key/value heads do not divide %d heads",
                           a->key_heads, a->heads);
    if ((int64_t)a->heads * a->head_width > MODEL_WIDTH_MAX)
        return config_fail(r, MHA_ERR_FORMAT,
                           "%d heads have a width of %d each, expected at most %d together",
                           a->heads, a->head_width, MODEL_WIDTH_MAX);
    return MHA_OK;
}

static mha_status settle_positions(const config_reader *r, const model_description *d,
                                   const stack_description *stack)
{
    const attention_description *const a = &stack->attention;
    const int rope = a->rope_width ? a->rope_width : a->head_width;
    if (stack->embedding.position == POSITION_ROTARY && (rope % 2 != 0 || rope > a->head_width))
        return config_fail(r, MHA_ERR_FORMAT,
                           "positions rotate %d of %d columns of a head, expected an even number "
                           "of them",
                           rope, a->head_width);
    if ((stack->embedding.position == POSITION_SINES ||
         stack->embedding.position == POSITION_SINES_NEIGHBOURS) &&
        d->width % 2 != 0)
        return config_fail(r, MHA_ERR_FORMAT,
                           "the width of the model is %d, expected an even number", d->width);
    if (stack->embedding.position == POSITION_LEARNED && d->positions == 0)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"max_position_embeddings\" is missing, expected the number of "
                           "positions");
    if (stack->embedding.position == POSITION_RELATIVE && a->relative_buckets % 4 != 0)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"relative_attention_num_buckets\" is %d, expected a multiple of 4",
                           a->relative_buckets);
    if (stack->embedding.position == POSITION_RELATIVE &&
        a->relative_distance <= a->relative_buckets / 2)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"relative_attention_max_distance\" is %d, expected more than half of "
                           "\"relative_attention_num_buckets\", which is %d",
                           a->relative_distance, a->relative_buckets);
    return MHA_OK;
}

static int within(const int32_t *from, int count, int32_t *to, int words)
{
    int kept = 0;
    for (int n = 0; n < count; n++)
        if (from[n] < words)
            to[kept++] = from[n];
    return kept;
}

mha_status describe_marks(const config_reader *r, model_description *d)
{
    model_usage *const u = &d->usage;
    int32_t *const single[] = {&u->begin, &u->end, &u->pad, &u->first};
    for (size_t n = 0; n < sizeof single / sizeof single[0]; n++)
        if (*single[n] >= d->vocabulary)
            *single[n] = -1;
    u->end_count = within(u->ends, u->end_count, u->ends, d->vocabulary);
    u->forbidden_count = within(u->forbidden, u->forbidden_count, u->forbidden, d->vocabulary);
    if (u->end_count == 0 && u->end >= 0)
        u->ends[u->end_count++] = u->end;
    if (d->kind == MHA_MODEL_ENCODER_DECODER && u->decoder_start >= d->vocabulary)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"decoder_start_token_id\" is %d, expected less than the %d words of "
                           "the vocabulary",
                           (int)u->decoder_start, d->vocabulary);
    return MHA_OK;
}

mha_status describe_settle(const config_reader *r, model_description *d)
{
    if (d->source_vocabulary == 0)
        d->source_vocabulary = d->vocabulary;
    for (int s = 0; s < STACKS; s++) {
        stack_description *const stack = &d->stack[s];
        if (stack->layers == 0)
            continue;
        stack->causal = s == STACK_DECODER;
        if (stack->embedding.width == 0)
            stack->embedding.width = d->width;
        if (stack->embedding.sine_steps == 0)
            stack->embedding.sine_steps = d->width / 2;
        mha_status status = settle_attention(r, &stack->attention, d->width);
        if (!status)
            status = settle_positions(r, d, stack);
        if (status)
            return status;
    }
    return describe_marks(r, d);
}

/* ------------------------------------------------------------------ whole ----- */

/* Classifiers of tokens have the tensor names of classifiers of texts. */
static bool labels_tokens(const config_reader *r)
{
    const char *name = "";
    const json_value *const list = json_tree_member(r->object, "architectures");
    json_tree_get_string(json_tree_element(list, 0), &name, NULL);
    return strstr(name, "ForTokenClassification") != NULL;
}

void description_begin(model_description *d, const model_family *family)
{
    model_usage *const u = &d->usage;
    memset(d, 0, sizeof *d);
    strncpy(d->family, family->name, sizeof d->family - 1);
    d->kind = family->kind;
    u->begin = u->end = u->pad = u->decoder_start = u->first = -1;
    u->length_penalty = 1.0;
    image_scale_default(MHA_IMAGE_CHANNELS, u->image_mean, u->image_deviation);
}

mha_status describe_config(model_description *d, const model_family **family,
                           const config_reader *r)
{
    char names[MODEL_FAMILY_LIST_MAX];
    const config_value type = config_get(r, "model_type");
    memset(d, 0, sizeof *d);
    if (type.type != CONFIG_TEXT)
        return config_fail(r, MHA_ERR_FORMAT,
                           "\"model_type\" is missing: expected the configuration of a model, with "
                           "one of %s",
                           model_family_list(names));
    *family = model_family_find(type.text);
    if (!*family)
        return config_fail(r, MHA_ERR_FORMAT, "\"model_type\" is \"%s\", expected one of %s",
                           type.text, model_family_list(names));
    description_begin(d, *family);
    d->labels_per_token = labels_tokens(r);
    mha_status status = check_conditions(r);
    if (!status)
        status = config_read_fields(r, (*family)->fields, d);
    if (!status)
        status = (*family)->describe(r, d);
    if (!status)
        status = describe_tokens(r, &d->usage);
    if (!status)
        status = describe_settle(r, d);
    return status ? status : describe_pruned(r, d);
}

mha_status describe_translator_config(model_description *d, const model_family **family,
                                      const config_reader *r)
{
    *family = model_family_find("translator");
    description_begin(d, *family);
    mha_status status = config_read_fields(r, (*family)->fields, d);
    if (!status)
        status = (*family)->describe(r, d);
    return status ? status : describe_settle(r, d);
}

/* Llama of the original files: the reader has checked that the file is as long as its numbers say.
 */
mha_status describe_llama2c(model_description *d, const model_family **family,
                            const llama2c_file *file, const config_reader *r)
{
    stack_description *const stack = &d->stack[STACK_DECODER];
    attention_description *const a = &stack->attention;
    *family = model_family_find("llama");
    description_begin(d, *family);
    const struct limit {
        const char *what;
        int value, most;
    } limits[] = {{"the width", file->width, MODEL_WIDTH_MAX},
                  {"the width of the feed-forward", file->inner, MODEL_WIDTH_MAX},
                  {"the number of layers", file->layers, MODEL_LAYERS_MAX},
                  {"the number of heads", file->heads, MODEL_WIDTH_MAX},
                  {"the number of key/value heads", file->key_heads, MODEL_WIDTH_MAX},
                  {"the vocabulary", file->vocabulary, MODEL_ROWS_MAX},
                  {"the number of positions", file->positions, MODEL_ROWS_MAX}};
    for (size_t n = 0; n < sizeof limits / sizeof limits[0]; n++)
        if (limits[n].value < 1 || limits[n].value > limits[n].most)
            return config_fail(r, MHA_ERR_FORMAT, "%s is %d, expected 1 to %d", limits[n].what,
                               limits[n].value, limits[n].most);
    d->width = file->width;
    d->vocabulary = file->vocabulary;
    d->positions = file->positions;
    d->norm = MHA_NORM_RMS;
    d->norm_eps = 1e-5f;
    d->norm_first = d->gated = true;
    d->activation = MHA_ACTIVATION_SILU;
    stack->layers = file->layers;
    stack->inner = file->inner;
    stack->embedding.position = POSITION_ROTARY;
    *a = (attention_description){.heads = file->heads,
                                 .key_heads = file->key_heads,
                                 .rope_pairs = MHA_ROPE_NEIGHBOURS,
                                 .rope_base = 10000};
    d->usage.begin = 1;
    d->usage.end = 2;
    d->usage.ends[d->usage.end_count++] = 1;
    d->usage.ends[d->usage.end_count++] = 2;
    return describe_settle(r, d);
}

void description_free(model_description *d)
{
    for (int s = 0; s < STACKS; s++) {
        free(d->stack[s].attention.rope_frequencies);
        d->stack[s].attention.rope_frequencies = NULL;
    }
    free(d->pruned);
    d->pruned = NULL;
    d->pruned_count = 0;
}
