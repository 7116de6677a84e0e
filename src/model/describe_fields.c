/* SPDX-License-Identifier: MIT */
/* Reads numbers, switches and names of a configuration by tables, and checks their ranges. The rest
 * of describe_*.c calls it. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "format/safetensors.h"
#include "model/describe.h"

mha_status config_fail(const config_reader *r, mha_status status, const char *format, ...)
{
    if (!r->message || r->message_size == 0)
        return status;
    va_list arguments;
    va_start(arguments, format);
    char text[400];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(r->message, r->message_size, "%s: %s", r->path, text);
    return status;
}

mha_status config_fail_memory(const config_reader *r)
{
    return config_fail(r, MHA_ERR_MEMORY, "out of memory for the description of the model");
}

/* ------------------------------------------------------------------ get ----- */

static config_value number_value(double number)
{
    return (config_value){.type = CONFIG_NUMBER, .number = number};
}

static config_value text_value(const char *text, size_t length)
{
    config_value value = {.type = CONFIG_TEXT};
    snprintf(value.text, sizeof value.text, "%.*s", (int)(length < 1000 ? length : 1000), text);
    for (char *c = value.text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    return value;
}

/* An array of equal numbers, such as "image_size": [224, 224], counts as the number. */
static config_value json_array(const json_value *array)
{
    double first, other;
    if (!json_tree_get_number(json_tree_element(array, 0), &first))
        return (config_value){.type = CONFIG_OTHER};
    for (size_t n = 1; n < json_tree_count(array); n++)
        if (!json_tree_get_number(json_tree_element(array, n), &other) || other != first)
            return (config_value){.type = CONFIG_OTHER};
    return number_value(first);
}

static config_value from_json(const json_value *value)
{
    const char *text;
    size_t length;
    config_value result = {.type = CONFIG_OTHER};
    if (!value)
        return (config_value){.type = CONFIG_ABSENT};
    if (json_tree_type_of(value) == JSON_TREE_NULL)
        return (config_value){.type = CONFIG_NULL};
    if (json_tree_get_number(value, &result.number))
        return number_value(result.number);
    if (json_tree_get_bool(value, &result.truth))
        return (config_value){.type = CONFIG_BOOL, .truth = result.truth};
    if (json_tree_get_string(value, &text, &length))
        return text_value(text, length);
    return json_tree_type_of(value) == JSON_TREE_ARRAY ? json_array(value) : result;
}

static config_value json_get(const json_value *object, const char *key)
{
    char name[CONFIG_KEY_MAX];
    const char *dot;
    while ((dot = strchr(key, '.'))) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
        object = json_tree_member(object, name);
        key = dot + 1;
    }
    return from_json(json_tree_member(object, key));
}

static config_value gguf_array(const gguf_pair *pair)
{
    if (pair->count == 0 || pair->element == GGUF_STRING || pair->element == GGUF_BOOL)
        return (config_value){.type = CONFIG_OTHER};
    const double first = gguf_array_number(pair, 0);
    for (uint64_t n = 1; n < pair->count; n++)
        if (gguf_array_number(pair, n) != first)
            return (config_value){.type = CONFIG_OTHER};
    return number_value(first);
}

static config_value gguf_get(const gguf_file *file, const char *key)
{
    config_value value = {.type = CONFIG_OTHER};
    gguf_string text;
    const gguf_pair *const pair = gguf_find(file, key);
    if (!pair)
        return (config_value){.type = CONFIG_ABSENT};
    if (pair->type == GGUF_ARRAY)
        return gguf_array(pair);
    if (gguf_get_bool(file, key, &value.truth))
        value.type = CONFIG_BOOL;
    else if (gguf_get_number(file, key, &value.number))
        value.type = CONFIG_NUMBER;
    else if (gguf_get_string(file, key, &text))
        return text_value(text.text, (size_t)text.length);
    return value;
}

config_value config_get(const config_reader *r, const char *key)
{
    char whole[2 * CONFIG_KEY_MAX];
    if (r->object)
        return json_get(r->object, key);
    if (!r->gguf)
        return (config_value){.type = CONFIG_ABSENT};
    snprintf(whole, sizeof whole, "%s.%s", r->prefix, key);
    return gguf_get(r->gguf, whole);
}

config_value config_get_any(const config_reader *r, const char *keys, char key[CONFIG_KEY_MAX])
{
    char name[CONFIG_KEY_MAX];
    config_value value = {.type = CONFIG_ABSENT};
    key[0] = '\0';
    while (*keys && value.type == CONFIG_ABSENT) {
        const size_t length = strcspn(keys, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, keys);
        if (!key[0])
            memcpy(key, name, sizeof name);
        value = config_get(r, name);
        if (value.type != CONFIG_ABSENT)
            memcpy(key, name, sizeof name);
        keys += length;
        keys += strspn(keys, " ");
    }
    return value;
}

/* ------------------------------------------------------------- activation ----- */

static const struct activation_name {
    const char *name;
    mha_activation activation;
} activation_names[] = {
    {"relu", MHA_ACTIVATION_RELU},
    {"gelu", MHA_ACTIVATION_GELU},
    {"gelu_python", MHA_ACTIVATION_GELU},
    {"gelu_new", MHA_ACTIVATION_GELU_TANH},
    {"gelu_fast", MHA_ACTIVATION_GELU_TANH},
    {"gelu_pytorch_tanh", MHA_ACTIVATION_GELU_TANH},
    {"gelu_python_tanh", MHA_ACTIVATION_GELU_TANH},
    {"quick_gelu", MHA_ACTIVATION_GELU_QUICK},
    {"silu", MHA_ACTIVATION_SILU},
    {"swish", MHA_ACTIVATION_SILU},
    {"tanh", MHA_ACTIVATION_TANH},
    {"linear", MHA_ACTIVATION_NONE},
};

bool config_activation(const char *name, mha_activation *activation)
{
    for (size_t n = 0; n < sizeof activation_names / sizeof activation_names[0]; n++)
        if (strcmp(activation_names[n].name, name) == 0) {
            *activation = activation_names[n].activation;
            return true;
        }
    return false;
}

/* --------------------------------------------------------------- fields ----- */

static const struct field_range {
    double least, most;
    bool whole;
    bool null_is_least; /* else null counts as a key that is not there */
} ranges[] = {
    [FIELD_LAYERS] = {1, MODEL_LAYERS_MAX, true, false},
    [FIELD_WIDTH] = {1, MODEL_WIDTH_MAX, true, false},
    [FIELD_WIDTH_ZERO] = {0, MODEL_WIDTH_MAX, true, true},
    [FIELD_HEADS] = {1, MODEL_WIDTH_MAX, true, false},
    [FIELD_HEADS_ZERO] = {0, MODEL_WIDTH_MAX, true, true},
    [FIELD_ROWS] = {1, MODEL_ROWS_MAX, true, false},
    [FIELD_ROWS_ZERO] = {0, MODEL_ROWS_MAX, true, true},
    [FIELD_TOKEN] = {-1, MODEL_ROWS_MAX, true, true},
    [FIELD_END] = {-1, MODEL_ROWS_MAX, true, true},
    [FIELD_BOOL] = {0, 1, true, false},
    [FIELD_EPS] = {1e-30, 1, false, false},
    [FIELD_NUMBER] = {0, 1e9, false, true},
    [FIELD_ACTIVATION] = {MHA_ACTIVATION_NONE, MHA_ACTIVATION_TANH, true, false},
};

static mha_status check_range(const config_reader *r, const char *key, double value,
                              const struct field_range *range)
{
    if (range->whole && value != floor(value))
        return config_fail(r, MHA_ERR_FORMAT, "\"%s\" is %g, expected a whole number", key, value);
    if (!(value >= range->least && value <= range->most))
        return config_fail(r, MHA_ERR_FORMAT, "\"%s\" is %.15g, expected %.15g to %.15g", key,
                           value, range->least, range->most);
    return MHA_OK;
}

/* The number of a field: `value` was found at `key`. */
static mha_status field_number(const config_reader *r, const config_field *field, const char *key,
                               const config_value *value, double *number)
{
    mha_activation activation;
    switch (value->type) {
    case CONFIG_ABSENT:
        *number = field->otherwise;
        return MHA_OK;
    case CONFIG_NULL:
        *number = ranges[field->kind].null_is_least ? ranges[field->kind].least : field->otherwise;
        return MHA_OK;
    case CONFIG_TEXT:
        if (field->kind != FIELD_ACTIVATION)
            break;
        if (!config_activation(value->text, &activation))
            return config_fail(r, MHA_ERR_FORMAT,
                               "\"%s\" is \"%s\", expected relu, gelu, gelu_new, "
                               "gelu_pytorch_tanh, quick_gelu, silu or tanh",
                               key, value->text);
        *number = (double)activation;
        return MHA_OK;
    case CONFIG_BOOL:
        if (field->kind != FIELD_BOOL)
            break;
        *number = value->truth;
        return MHA_OK;
    case CONFIG_NUMBER:
        if (field->kind == FIELD_BOOL || field->kind == FIELD_ACTIVATION)
            break;
        *number = value->number;
        return check_range(r, key, *number, &ranges[field->kind]);
    case CONFIG_OTHER:
        if (field->kind != FIELD_END)
            break;
        *number = field->otherwise;
        return MHA_OK;
    }
    return config_fail(r, MHA_ERR_FORMAT, "\"%s\" must be %s", key,
                       field->kind == FIELD_BOOL         ? "true or false"
                       : field->kind == FIELD_ACTIVATION ? "the name of an activation"
                                                         : "a number");
}

static void store(const config_field *field, double number, model_description *d)
{
    void *const at = (char *)d + field->at;
    switch (field->kind) {
    case FIELD_BOOL:
        *(bool *)at = number != 0;
        break;
    case FIELD_EPS:
    case FIELD_NUMBER:
        *(float *)at = (float)number;
        break;
    case FIELD_ACTIVATION:
        *(mha_activation *)at = (mha_activation)(int)number;
        break;
    default:
        *(int *)at = (int)number;
    }
}

mha_status config_read_fields(const config_reader *r, const config_field *fields,
                              model_description *d)
{
    for (; fields->keys; fields++) {
        char key[CONFIG_KEY_MAX];
        double number = 0;
        const config_value value = config_get_any(r, fields->keys, key);
        const mha_status status = field_number(r, fields, key, &value, &number);
        if (status)
            return status;
        if (isnan(number))
            return config_fail(r, MHA_ERR_FORMAT, "\"%s\" is missing", key);
        store(fields, number, d);
    }
    return MHA_OK;
}

mha_status config_read_bool(const config_reader *r, const char *keys, bool *value)
{
    char key[CONFIG_KEY_MAX];
    const config_value found = config_get_any(r, keys, key);
    if (found.type == CONFIG_ABSENT || found.type == CONFIG_NULL)
        return MHA_OK;
    if (found.type != CONFIG_BOOL)
        return config_fail(r, MHA_ERR_FORMAT, "\"%s\" must be true or false", key);
    *value = found.truth;
    return MHA_OK;
}

mha_status config_read_number(const config_reader *r, const char *keys, double least, double most,
                              double *value)
{
    char key[CONFIG_KEY_MAX];
    const config_value found = config_get_any(r, keys, key);
    if (found.type == CONFIG_ABSENT || found.type == CONFIG_NULL)
        return MHA_OK;
    if (found.type != CONFIG_NUMBER)
        return config_fail(r, MHA_ERR_FORMAT, "\"%s\" must be a number", key);
    const mha_status status =
        check_range(r, key, found.number, &(struct field_range){least, most, false, false});
    if (!status)
        *value = found.number;
    return status;
}
