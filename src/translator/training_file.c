/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: saves and loads the complete state of a training. The file is safetensors with
 *
 *      NAME                 every parameter by its name
 *      adam.mean.NAME       the optimizer's moments of each
 *      adam.square.NAME
 *      average.NAME         their average, if the settings say so
 *      history.losses       [steps done]
 *      history.validation   [marks][step, loss, words right, BLEU, chrF]
 *      "__metadata__"       the kind of file, every setting by its name, the number of steps done,
 *                           the instruction set, a hash of the vocabulary and data, and a checksum
 *                           of everything. The arithmetic is there if it is not exact: files from
 *                           before there was a choice are those of exact trainings
 *
 * Files are not trusted: the settings are checked, then all tensors are compared with those of a
 * training with these settings, and only then memory is allocated.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/safetensors.h"
#include "translator/checksum.h"
#include "translator/training_parts.h"

enum {
    PARTS_MAX = 4 * TRANSFORMER_TENSORS_MAX + 2,
    PART_NAME_MAX = TRANSFORMER_NAME_MAX + 16,
    PAIRS = TRAINING_SETTINGS + 5, /* at most: format, steps-done, isa, vocabulary, checksum */
    MARK_COLUMNS = 5
};

/* --------------------------------------------------------------- parts ----- */

/* One tensor of the file, and the array that contains its elements in memory. */
typedef enum part_array {
    ARRAY_VALUES,
    ARRAY_MEAN,
    ARRAY_SQUARE,
    ARRAY_AVERAGE,
    ARRAY_LOSSES,
    ARRAY_MARKS
} part_array;

typedef struct file_part {
    char name[PART_NAME_MAX];
    safetensors_type type;
    size_t rank;
    uint64_t shape[2];
    part_array array;
    size_t at; /* offset of the first element in the array */
} file_part;

typedef struct parts {
    transformer_tensor tensors[TRANSFORMER_TENSORS_MAX];
    file_part list[PARTS_MAX];
    size_t count;
} parts;

static void add_tensors(parts *p, int count, const char *prefix, part_array array)
{
    for (int n = 0; n < count; n++) {
        const transformer_tensor tensor = p->tensors[n];
        file_part *const added = &p->list[p->count++];
        *added = (file_part){.type = SAFETENSORS_F32,
                             .rank = (size_t)tensor.rank,
                             .shape = {(uint64_t)tensor.shape[0], (uint64_t)tensor.shape[1]},
                             .array = array,
                             .at = tensor.at};
        snprintf(added->name, sizeof added->name, "%s%s", prefix, tensor.name);
    }
}

/* Lists the tensors of a training after the given number of steps and marks. */
static void list_parts(parts *p, const training_config *config, uint64_t steps, uint64_t marks)
{
    const int count = transformer_tensors(&config->model, p->tensors);
    p->count = 0;
    add_tensors(p, count, "", ARRAY_VALUES);
    add_tensors(p, count, "adam.mean.", ARRAY_MEAN);
    add_tensors(p, count, "adam.square.", ARRAY_SQUARE);
    if (config->ema > 0.0 || config->average > 0)
        add_tensors(p, count, "average.", ARRAY_AVERAGE);
    p->list[p->count++] =
        (file_part){"history.losses", SAFETENSORS_F32, 1, {steps}, ARRAY_LOSSES, 0};
    p->list[p->count++] = (file_part){"history.validation",  SAFETENSORS_F64, 2,
                                      {marks, MARK_COLUMNS}, ARRAY_MARKS,     0};
}

/* Where the elements of a part are. `marks` are those of the training as a table of numbers. */
static void *array_of(const training *t, double *marks, const file_part *part)
{
    switch (part->array) {
    case ARRAY_VALUES:
        return t->values + part->at;
    case ARRAY_MEAN:
        return t->optimizer.mean + part->at;
    case ARRAY_SQUARE:
        return t->optimizer.square + part->at;
    case ARRAY_AVERAGE:
        return t->average + part->at;
    case ARRAY_LOSSES:
        return t->losses;
    case ARRAY_MARKS:
        return marks;
    }
    return NULL;
}

static uint64_t elements_of(const file_part *part)
{
    return part->shape[0] * (part->rank > 1 ? part->shape[1] : 1);
}

/* ------------------------------------------------------------ checksum ----- */

static uint64_t hash_part(uint64_t hash, const file_part *part, const void *data)
{
    const size_t count = (size_t)elements_of(part);
    return part->type == SAFETENSORS_F64 ? checksum_doubles(hash, data, count)
                                         : checksum_floats(hash, data, count);
}

/* ------------------------------------------------------------ metadata ----- */

typedef struct metadata {
    safetensors_pair pairs[PAIRS];
    char texts[PAIRS][TRAINING_TEXT_MAX];
    size_t count;
} metadata;

static char *add_pair(metadata *m, const char *key)
{
    char *const text = m->texts[m->count];
    m->pairs[m->count++] = (safetensors_pair){key, text};
    return text;
}

/* Fills in all pairs; the checksum over settings, words and tensors comes last. */
static void fill_metadata(metadata *m, const training *t, const char *isa, const parts *p,
                          double *marks)
{
    m->count = 0;
    snprintf(add_pair(m, "format"), TRAINING_TEXT_MAX, "%s", TRAINING_FORMAT);
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        if (training_setting_is_recorded(&t->config, n))
            training_setting_text(&t->config, n, add_pair(m, training_setting_name(n)));
    snprintf(add_pair(m, "steps-done"), TRAINING_TEXT_MAX, "%" PRId64, t->step);
    snprintf(add_pair(m, "isa"), TRAINING_TEXT_MAX, "%s", isa);
    snprintf(add_pair(m, "vocabulary"), TRAINING_TEXT_MAX, "%016" PRIx64, t->data->hash);
    uint64_t hash = 0;
    for (size_t n = 0; n < m->count; n++)
        hash = checksum_pair(hash, &m->pairs[n]);
    for (size_t n = 0; n < p->count; n++)
        hash = hash_part(hash, &p->list[n], array_of(t, marks, &p->list[n]));
    checksum_text(hash, add_pair(m, CHECKSUM_KEY));
}

static const char *find_pair(const safetensors_pair *pairs, size_t count, const char *key)
{
    for (size_t n = 0; n < count; n++)
        if (strcmp(pairs[n].key, key) == 0)
            return pairs[n].value;
    return NULL;
}

/* ---------------------------------------------------------------- save ----- */

/* Memory for saving and loading, in addition to the training. */
typedef struct file_buffers {
    parts parts;
    metadata metadata;
    safetensors_item items[PARTS_MAX];
    double *marks; /* [marks][MARK_COLUMNS] */
} file_buffers;

static file_buffers *buffers_create(size_t marks)
{
    file_buffers *const r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->marks = calloc(marks + 1, MARK_COLUMNS * sizeof *r->marks);
    if (r->marks)
        return r;
    free(r);
    return NULL;
}

static void buffers_free(file_buffers *r)
{
    if (r)
        free(r->marks);
    free(r);
}

static void marks_to_numbers(const training *t, double *numbers)
{
    for (size_t n = 0; n < t->mark_count; n++) {
        numbers[MARK_COLUMNS * n] = (double)t->marks[n].step;
        numbers[MARK_COLUMNS * n + 1] = t->marks[n].loss;
        numbers[MARK_COLUMNS * n + 2] = t->marks[n].words_right;
        numbers[MARK_COLUMNS * n + 3] = t->marks[n].bleu;
        numbers[MARK_COLUMNS * n + 4] = t->marks[n].chrf;
    }
}

mha_status training_save(const training *t, const char *path, char message[TRANSFORMER_MESSAGE_MAX])
{
    const safetensors_report report = {path, message, TRANSFORMER_MESSAGE_MAX};
    const char *const isa = training_isa(t);
    file_buffers *const r = buffers_create(t->mark_count);
    if (!r)
        return safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory");
    marks_to_numbers(t, r->marks);
    list_parts(&r->parts, &t->config, (uint64_t)t->step, t->mark_count);
    fill_metadata(&r->metadata, t, isa ? isa : "", &r->parts, r->marks);
    for (size_t n = 0; n < r->parts.count; n++) {
        const file_part *const part = &r->parts.list[n];
        r->items[n] = (safetensors_item){part->name, part->type, part->rank, part->shape,
                                         array_of(t, r->marks, part)};
    }
    const mha_status status =
        safetensors_write(path, r->items, r->parts.count, r->metadata.pairs, r->metadata.count,
                          message, TRANSFORMER_MESSAGE_MAX);
    buffers_free(r);
    return status;
}

/* ---------------------------------------------------------------- load ----- */

static mha_status read_settings(const safetensors_file *file, training_config *config,
                                const safetensors_report *r)
{
    const char *const kind = safetensors_value(file, "format");
    if (!kind || strcmp(kind, TRAINING_FORMAT) != 0)
        return safetensors_fail(r, MHA_ERR_FORMAT,
                                "not a checkpoint of a training (\"format\" is not \"%s\")",
                                TRAINING_FORMAT);
    *config = training_defaults();
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        const char *const name = training_setting_name(n);
        const char *const text = safetensors_value(file, name);
        if (!text && !training_setting_is_recorded(config, n))
            continue;
        if (!text)
            return safetensors_fail(r, MHA_ERR_FORMAT, "the setting \"%s\" is missing", name);
        char again[TRAINING_TEXT_MAX] = "";
        if (training_setting_read(config, n, text))
            training_setting_text(config, n, again);
        if (strcmp(text, again) != 0) /* also " 1" for "1": only what was written is accepted */
            return safetensors_fail(r, MHA_ERR_FORMAT, "the setting \"%s\" has no valid value",
                                    name);
    }
    char sentence[TRANSFORMER_MESSAGE_MAX];
    if (!training_config_check(config, sentence))
        return safetensors_fail(r, MHA_ERR_FORMAT, "%s", sentence);
    return MHA_OK;
}

static mha_status read_progress(const safetensors_file *file, int64_t *step, size_t *marks,
                                const safetensors_report *r)
{
    const char *const text = safetensors_value(file, "steps-done");
    const safetensors_tensor *const tensor = safetensors_find(file, "history.validation");
    char *end = NULL;
    *step = text ? strtoll(text, &end, 10) : -1;
    if (*step < 0 || end == text || *end != '\0')
        return safetensors_fail(r, MHA_ERR_FORMAT, "\"steps-done\" is not a number of steps");
    if (!tensor || tensor->rank != 2)
        return safetensors_fail(r, MHA_ERR_FORMAT,
                                "\"history.validation\" is missing or not a table");
    if (!safetensors_value(file, "isa"))
        return safetensors_fail(r, MHA_ERR_FORMAT,
                                "\"isa\", the instruction set that made it, is missing");
    *marks = (size_t)tensor->shape[0];
    return MHA_OK;
}

static mha_status compare_part(const safetensors_file *file, const file_part *part,
                               const safetensors_report *r)
{
    const safetensors_tensor *const tensor = safetensors_find(file, part->name);
    if (!tensor)
        return safetensors_fail(r, MHA_ERR_FORMAT, "the tensor \"%s\" is missing", part->name);
    if (tensor->type != part->type)
        return safetensors_fail(r, MHA_ERR_FORMAT, "the tensor \"%s\" is %s, not %s", part->name,
                                safetensors_type_name(tensor->type),
                                safetensors_type_name(part->type));
    if (tensor->rank != part->rank ||
        memcmp(tensor->shape, part->shape, part->rank * sizeof part->shape[0]) != 0)
        return safetensors_fail(r, MHA_ERR_FORMAT,
                                "the shape of the tensor \"%s\" does not match the settings",
                                part->name);
    return MHA_OK;
}

static mha_status compare_parts(const safetensors_file *file, const training_config *config,
                                const parts *p, const safetensors_report *r)
{
    size_t pairs = PAIRS;
    for (int n = 0; n < TRAINING_SETTINGS; n++)
        pairs -= !training_setting_is_recorded(config, n);
    mha_status status = MHA_OK;
    for (size_t n = 0; n < p->count && status == MHA_OK; n++)
        status = compare_part(file, &p->list[n], r);
    if (status == MHA_OK && (file->count != p->count || file->pair_count != pairs))
        status = safetensors_fail(r, MHA_ERR_FORMAT, "it contains more than a training has");
    return status;
}

/* Returns false if the steps are not ascending up to the number of steps done. */
static bool marks_from_numbers(training *t, const double *numbers, size_t count)
{
    int64_t last = 0;
    for (size_t n = 0; n < count; n++, numbers += MARK_COLUMNS) {
        if (!(numbers[0] >= (double)last && numbers[0] <= (double)t->step))
            return false;
        last = (int64_t)numbers[0];
        t->marks[n] = (training_mark){last, numbers[1], numbers[2], numbers[3], numbers[4]};
    }
    t->mark_count = count;
    return true;
}

/* The words are compared first: a checkpoint of another version of the corpus should get a
 * clearer message than a wrong checksum. */
static mha_status compare_metadata(const safetensors_file *file, const metadata *own,
                                   const safetensors_report *r)
{
    const char *const texts[] = {safetensors_value(file, "vocabulary"),
                                 safetensors_value(file, CHECKSUM_KEY)};
    if (!texts[0] || strcmp(texts[0], find_pair(own->pairs, own->count, "vocabulary")) != 0)
        return safetensors_fail(r, MHA_ERR_FORMAT,
                                "it was made with a different vocabulary or other data");
    if (!texts[1] || strcmp(texts[1], find_pair(own->pairs, own->count, CHECKSUM_KEY)) != 0)
        return safetensors_fail(r, MHA_ERR_FORMAT, CHECKSUM_WRONG);
    return MHA_OK;
}

static mha_status read_parts(const safetensors_file *file, training *t, file_buffers *b,
                             size_t marks, const safetensors_report *r)
{
    const parts *const p = &b->parts;
    for (size_t n = 0; n < p->count; n++) {
        const mha_status status = safetensors_read(file, safetensors_find(file, p->list[n].name),
                                                   array_of(t, b->marks, &p->list[n]), r->message,
                                                   TRANSFORMER_MESSAGE_MAX);
        if (status != MHA_OK)
            return status;
    }
    fill_metadata(&b->metadata, t, t->isa, p, b->marks);
    const mha_status status = compare_metadata(file, &b->metadata, r);
    if (status == MHA_OK && !marks_from_numbers(t, b->marks, marks))
        return safetensors_fail(r, MHA_ERR_FORMAT, "\"history.validation\" has steps out of order");
    return status;
}

/* Makes a training with the state in the file, without its network. */
static mha_status build(training **made, const safetensors_file *file,
                        const training_config *config, training_data *data, mha_pool *pool,
                        const safetensors_report *r)
{
    int64_t step = 0;
    size_t marks = 0;
    mha_status status = read_progress(file, &step, &marks, r);
    if (status != MHA_OK)
        return status;
    /* A table without columns may claim any number of rows; compare_parts() refuses it later. */
    file_buffers *const b = buffers_create(marks <= file->data_bytes ? marks : 0);
    if (!b)
        return safetensors_fail(r, MHA_ERR_MEMORY, "out of memory");
    list_parts(&b->parts, config, (uint64_t)step, marks);
    status = compare_parts(file, config, &b->parts, r);
    if (status == MHA_OK)
        *made = training_allocate(config, data, pool);
    if (*made && training_reserve(*made, (size_t)step, marks)) {
        (*made)->step = step;
        snprintf((*made)->isa, sizeof(*made)->isa, "%s", safetensors_value(file, "isa"));
        status = read_parts(file, *made, b, marks, r);
    } else if (status == MHA_OK) {
        status = safetensors_fail(r, MHA_ERR_MEMORY, "out of memory for its model");
    }
    buffers_free(b);
    return status;
}

/* A checkpoint of files or pictures needs their data, one of the laboratory must not have any. */
static mha_status compare_form(const training_config *config, const training_data *data,
                               const safetensors_report *r)
{
    static const char *const names[FORMS] = {"without files of pairs", "on files of pairs",
                                             "on pictures", "on scenes",
                                             "on scenes with boxes (--detect)"};
    if (config->model.form == (data ? data->form : FORM_LABORATORY))
        return MHA_OK;
    return safetensors_fail(r, MHA_ERR_FORMAT, "it is of a training %s", names[config->model.form]);
}

training *training_load(const char *path, training_data *data, mha_pool *pool,
                        char message[TRANSFORMER_MESSAGE_MAX])
{
    const safetensors_report report = {path, message, TRANSFORMER_MESSAGE_MAX};
    safetensors_file *file = NULL;
    training_config config;
    training *made = NULL;
    mha_status status =
        safetensors_open(&file, path, SAFETENSORS_STRICT, message, TRANSFORMER_MESSAGE_MAX);
    if (status == MHA_OK)
        status = read_settings(file, &config, &report);
    if (status == MHA_OK)
        status = compare_form(&config, data, &report);
    if (status == MHA_OK)
        status = build(&made, file, &config, data, pool, &report);
    if (status == MHA_OK && !training_start(made))
        status = safetensors_fail(&report, MHA_ERR_MEMORY, "out of memory for its model");
    safetensors_close(file);
    if (status == MHA_OK)
        return made;
    training_free(made);
    return NULL;
}
