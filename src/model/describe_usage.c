/* SPDX-License-Identifier: MIT */
/* What files say about the use of a model: marks that begin and end texts, and how a sentence
 * encoder makes one vector of a text. */
#include "model/describe_usage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/image_scale.h"

static bool read_token(const json_value *value, int32_t *token)
{
    int64_t number;
    if (!json_tree_get_integer(value, &number) || number < 0 || number > MODEL_ROWS_MAX)
        return false;
    *token = (int32_t)number;
    return true;
}

/* One token, or an array of them. Returns their number, at most MODEL_ENDS_MAX. */
static int read_tokens(const json_value *value, int32_t tokens[MODEL_ENDS_MAX])
{
    int count = 0;
    if (read_token(value, &tokens[0]))
        return 1;
    if (json_tree_type_of(value) != JSON_TREE_ARRAY)
        return 0;
    for (size_t n = 0; n < json_tree_count(value) && count < MODEL_ENDS_MAX; n++)
        count += read_token(json_tree_element(value, n), &tokens[count]);
    return count;
}

/* Words of one token that are never generated; longer ones cannot be forbidden token by token. */
static int read_bad_words(const json_value *lists, int32_t tokens[MODEL_ENDS_MAX])
{
    int count = 0;
    for (size_t n = 0; n < json_tree_count(lists) && count < MODEL_ENDS_MAX; n++) {
        const json_value *const word = json_tree_element(lists, n);
        if (json_tree_count(word) == 1)
            count += read_token(json_tree_element(word, 0), &tokens[count]);
    }
    return count;
}

enum { LENGTH_PENALTY_MOST = 10 };

/* An exponent for lengths of up to some hundred tokens. */
static mha_status read_length_penalty(const config_reader *r, double *penalty)
{
    const config_value value = config_get(r, "length_penalty");
    if (value.type == CONFIG_ABSENT || value.type == CONFIG_NULL)
        return MHA_OK;
    if (value.type != CONFIG_NUMBER || !(fabs(value.number) <= LENGTH_PENALTY_MOST))
        return config_fail(r, MHA_ERR_FORMAT, "\"length_penalty\" is not a number from -%d to %d",
                           LENGTH_PENALTY_MOST, LENGTH_PENALTY_MOST);
    *penalty = value.number;
    return MHA_OK;
}

mha_status describe_tokens(const config_reader *r, model_usage *usage)
{
    int32_t tokens[MODEL_ENDS_MAX];
    int count = read_tokens(json_tree_member(r->object, "eos_token_id"), tokens);
    if (count > 0) {
        memcpy(usage->ends, tokens, sizeof tokens);
        usage->end_count = count;
        usage->end = tokens[0];
    }
    count = read_bad_words(json_tree_member(r->object, "bad_words_ids"), tokens);
    if (count > 0) {
        memcpy(usage->forbidden, tokens, sizeof tokens);
        usage->forbidden_count = count;
    }
    read_token(json_tree_member(r->object, "bos_token_id"), &usage->begin);
    read_token(json_tree_member(r->object, "pad_token_id"), &usage->pad);
    read_token(json_tree_member(r->object, "decoder_start_token_id"), &usage->decoder_start);
    read_token(json_tree_member(r->object, "forced_bos_token_id"), &usage->first);
    return read_length_penalty(r, &usage->length_penalty);
}

mha_status describe_pixels(const config_reader *r, model_description *d)
{
    model_usage *const u = &d->usage;
    if (d->channels > MHA_IMAGE_CHANNELS ||
        image_scale_read(r->object, d->channels, u->image_mean, u->image_deviation))
        return MHA_OK;
    return config_fail(r, MHA_ERR_FORMAT,
                       "\"image_mean\" and \"image_std\" must have %d numbers each, the second "
                       "above 0",
                       d->channels);
}

/* -------------------------------------------------------- sentence encoders ----- */

static const struct pooling_name {
    const char *key;
    mha_pooling pooling;
} pooling_names[] = {{"pooling_mode_cls_token", MHA_POOLING_FIRST},
                     {"pooling_mode_mean_tokens", MHA_POOLING_MEAN},
                     {"pooling_mode_max_tokens", MHA_POOLING_MAX},
                     {"pooling_mode_lasttoken", MHA_POOLING_LAST}};

/* "pooling_mode": "mean", of newer files. */
static const struct pooling_name mode_names[] = {{"cls", MHA_POOLING_FIRST},
                                                 {"mean", MHA_POOLING_MEAN},
                                                 {"max", MHA_POOLING_MAX},
                                                 {"lasttoken", MHA_POOLING_LAST}};

mha_status describe_pooling(const config_reader *r, model_usage *usage)
{
    int count = 0;
    const config_value mode = config_get(r, "pooling_mode");
    for (size_t n = 0; n < sizeof mode_names / sizeof mode_names[0]; n++)
        if (mode.type == CONFIG_TEXT && strcmp(mode.text, mode_names[n].key) == 0) {
            usage->pooling = mode_names[n].pooling;
            return MHA_OK;
        }
    for (size_t n = 0; n < sizeof pooling_names / sizeof pooling_names[0]; n++) {
        bool on = false;
        const mha_status status = config_read_bool(r, pooling_names[n].key, &on);
        if (status)
            return status;
        if (on)
            usage->pooling = pooling_names[n].pooling;
        count += on;
    }
    return count == 1 ? MHA_OK
                      : config_fail(r, MHA_ERR_FORMAT,
                                    "expected one kind of pooling of cls, mean, max and last token,"
                                    " found %d",
                                    count);
}

mha_status describe_sentences(const config_reader *r, model_usage *usage)
{
    double longest = 0;
    const mha_status status = config_read_number(r, "max_seq_length", 1, MODEL_ROWS_MAX, &longest);
    usage->longest = (int)longest;
    return status;
}

/* The module types of sentence-transformers end with these names. */
static bool is_module(const char *type, const char *name)
{
    const char *const dot = strrchr(type, '.');
    return strcmp(dot ? dot + 1 : type, name) == 0;
}

mha_status describe_modules(const config_reader *r, model_usage *usage,
                            char pooling_folder[MODEL_FOLDER_MAX])
{
    for (size_t n = 0; n < json_tree_count(r->object); n++) {
        const json_value *const module = json_tree_element(r->object, n);
        const char *type = "", *path = "";
        json_tree_get_string(json_tree_member(module, "type"), &type, NULL);
        json_tree_get_string(json_tree_member(module, "path"), &path, NULL);
        if (is_module(type, "Transformer"))
            continue;
        if (is_module(type, "Normalize"))
            usage->normalize = true;
        else if (is_module(type, "Pooling") && strlen(path) < MODEL_FOLDER_MAX &&
                 !strchr(path, '/') && path[0] != '.')
            snprintf(pooling_folder, MODEL_FOLDER_MAX, "%s", path);
        else
            return config_fail(
                r, MHA_ERR_FORMAT,
                "module %zu is \"%.60s\", expected Transformer, Pooling or Normalize", n, type);
    }
    return MHA_OK;
}
