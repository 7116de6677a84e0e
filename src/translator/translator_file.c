/* SPDX-License-Identifier: MIT */
/*
 * Saves and loads model files; translator.h describes the format. A file is loaded in this order:
 * safetensors header, metadata, presence and shapes of all tensors, numbers, checksum,
 * vocabularies. Memory for the parameters is allocated only after the tensors have been checked.
 */
#include "translator/translator_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "translator/checksum.h"
#include "translator/training.h"

#define FORMAT "mha-translator-1"

static int key_number(const char *name)
{
    for (int n = 0; n < MODEL_KEYS; n++)
        if (strcmp(model_key(n), name) == 0)
            return n;
    return -1;
}

/* The checksum of all pairs except the checksum itself. It does not depend on their order, which
 * other writers may change. */
static uint64_t hash_pairs(const safetensors_pair *pairs, size_t count)
{
    uint64_t sum = 0;
    for (size_t n = 0; n < count; n++)
        if (key_number(pairs[n].key) != KEY_CHECKSUM)
            sum += checksum_pair(0, &pairs[n]);
    return sum;
}

/* ---------------------------------------------------------------- save ----- */

/* The content of a model file. */
typedef struct model_content {
    const transformer_config *config;
    const float *values;
    mha_dtype type;
    word_list words[TRANSFORMER_SIDES];
    const translator_note *notes;
    int note_count;
} model_content;

/* Everything that is needed while a file is written. */
typedef struct model_writer {
    safetensors_report report;
    const model_content *content;
    transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    uint64_t shapes[TRANSFORMER_TENSORS_MAX][2];
    safetensors_item items[TRANSFORMER_TENSORS_MAX];
    int count;
    uint16_t *halves; /* all parameters as F16, or NULL */
    char config[CONFIG_TEXT_MAX], *vocabularies[TRANSFORMER_SIDES];
    uint64_t hash; /* checksum of the whole content */
    char checksum[CHECKSUM_TEXT_MAX];
    safetensors_pair *pairs; /* keys, then notes */
} model_writer;

static mha_status check_vocabularies(const model_writer *w)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const int wanted = w->content->config->words[side];
        const int there = WORDS_SPECIAL + w->content->words[side].count;
        if (wanted != there)
            return safetensors_fail(&w->report, MHA_ERR_SHAPE,
                                    "the model has %d %s words and its vocabulary %d", wanted,
                                    side == TRANSFORMER_SOURCE ? "source" : "target", there);
    }
    return MHA_OK;
}

static mha_status make_texts(model_writer *w)
{
    model_config_text(w->content->config, w->config);
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        if (!(w->vocabularies[side] = model_vocabulary_text(&w->content->words[side])))
            return model_fail_memory(&w->report);
    return MHA_OK;
}

static mha_status make_pairs(model_writer *w)
{
    const translator_note *const notes = w->content->notes;
    const int count = w->content->note_count;
    const char *const texts[MODEL_KEYS] = {FORMAT, w->config, w->vocabularies[TRANSFORMER_SOURCE],
                                           w->vocabularies[TRANSFORMER_TARGET], w->checksum};
    for (int n = 0; n < count; n++)
        if (key_number(notes[n].name) >= 0)
            return safetensors_fail(&w->report, MHA_ERR_FORMAT,
                                    "a note cannot have the name \"%s\", which is the model's own",
                                    notes[n].name);
    w->pairs = calloc(MODEL_KEYS + (size_t)count, sizeof *w->pairs);
    if (!w->pairs)
        return model_fail_memory(&w->report);
    for (int n = 0; n < MODEL_KEYS; n++)
        w->pairs[n] = (safetensors_pair){model_key(n), texts[n]};
    for (int n = 0; n < count; n++)
        w->pairs[MODEL_KEYS + n] = (safetensors_pair){notes[n].name, notes[n].text};
    w->hash = hash_pairs(w->pairs, MODEL_KEYS + (size_t)count);
    return MHA_OK;
}

/* Converts a tensor to F16 if requested. Numbers that are not finite, also after the conversion,
 * are refused. */
static mha_status convert_tensor(model_writer *w, const transformer_tensor *tensor)
{
    for (size_t n = 0; n < tensor->count; n++) {
        const float value = w->content->values[tensor->at + n];
        if (w->halves)
            w->halves[tensor->at + n] = convert_f32_to_f16(value);
        const float kept = w->halves ? convert_f16_to_f32(w->halves[tensor->at + n]) : value;
        if (!isfinite(kept))
            return safetensors_fail(&w->report, MHA_ERR_FORMAT,
                                    "element %zu of \"%s\" is %g: not a finite %s", n, tensor->name,
                                    (double)value, w->halves ? "F16" : "number");
        w->hash = checksum_floats(w->hash, &kept, 1);
    }
    return MHA_OK;
}

static mha_status make_items(model_writer *w)
{
    transformer_map map;
    transformer_map_fill(&map, w->content->config);
    w->count = transformer_tensors(w->content->config, w->list);
    if (w->content->type == MHA_F16 && !(w->halves = malloc(map.count * sizeof *w->halves)))
        return model_fail_memory(&w->report);
    for (int n = 0; n < w->count; n++) {
        const transformer_tensor *const tensor = &w->list[n];
        const mha_status status = convert_tensor(w, tensor);
        if (status)
            return status;
        for (int axis = 0; axis < tensor->rank; axis++)
            w->shapes[n][axis] = (uint64_t)tensor->shape[axis];
        w->items[n] =
            (safetensors_item){.name = tensor->name,
                               .type = w->halves ? SAFETENSORS_F16 : SAFETENSORS_F32,
                               .rank = (size_t)tensor->rank,
                               .shape = w->shapes[n],
                               .data = w->halves ? (const void *)(w->halves + tensor->at)
                                                 : (const void *)(w->content->values + tensor->at)};
    }
    return MHA_OK;
}

static mha_status write_model(model_writer *w)
{
    mha_status status;
    char problem[TRANSFORMER_MESSAGE_MAX];
    if (w->content->type != MHA_F16 && w->content->type != MHA_F32)
        return safetensors_fail(&w->report, MHA_ERR_DTYPE, "models are written as F16 or F32");
    if (!transformer_config_check(w->content->config, problem))
        return safetensors_fail(&w->report, MHA_ERR_SHAPE, "%s", problem);
    if ((status = check_vocabularies(w)) || (status = make_texts(w)) || (status = make_pairs(w)) ||
        (status = make_items(w)))
        return status;
    checksum_text(w->hash, w->checksum);
    return safetensors_write(w->report.path, w->items, (size_t)w->count, w->pairs,
                             MODEL_KEYS + (size_t)w->content->note_count, w->report.message,
                             TRANSFORMER_MESSAGE_MAX);
}

static mha_status save(const safetensors_report *r, const model_content *content)
{
    model_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return model_fail_memory(r);
    w->report = *r;
    w->content = content;
    const mha_status status = write_model(w);
    for (int side = 0; side < TRANSFORMER_SIDES; side++)
        free(w->vocabularies[side]);
    free(w->pairs);
    free(w->halves);
    free(w);
    return status;
}

mha_status translator_save(const char *path, const transformer_config *config, const float *values,
                           mha_dtype type, const translator_note *notes, int note_count,
                           char message[TRANSFORMER_MESSAGE_MAX])
{
    const safetensors_report r = {path, message, TRANSFORMER_MESSAGE_MAX};
    model_content content = {config, values, type, {{NULL, 0}}, notes, note_count};
    corpus_vocabulary corpus[TRANSFORMER_SIDES];
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        corpus_vocabulary_fill(&corpus[side], (corpus_side)side);
        content.words[side] = (word_list){corpus[side].words, corpus[side].count};
    }
    return save(&r, &content);
}

/* Lists the notes of the model that are not replaced, then the new ones. Returns their number. */
static int merge_notes(translator_note *all, const translator *model, const translator_note *notes,
                       int count)
{
    int total = 0;
    for (int n = 0; n < model->note_count; n++) {
        int same = 0;
        while (same < count && strcmp(notes[same].name, model->notes[n].name) != 0)
            same++;
        if (same == count)
            all[total++] = model->notes[n];
    }
    for (int n = 0; n < count; n++)
        all[total++] = notes[n];
    return total;
}

mha_status translator_save_changed(const char *path, const translator *model, const float *values,
                                   mha_dtype type, const translator_note *notes, int note_count,
                                   char message[TRANSFORMER_MESSAGE_MAX])
{
    const safetensors_report r = {path, message, TRANSFORMER_MESSAGE_MAX};
    const size_t room = (size_t)model->note_count + (size_t)note_count + 1;
    translator_note *const all = calloc(room, sizeof *all);
    if (!all)
        return model_fail_memory(&r);
    model_content content = {&model->config, values, type, {{NULL, 0}}, all, 0};
    content.note_count = merge_notes(all, model, notes, note_count);
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const vocabulary *const words = &model->words[side];
        content.words[side] = (word_list){words->words ? words->words + WORDS_SPECIAL : NULL,
                                          words->count - WORDS_SPECIAL};
    }
    const mha_status status = save(&r, &content);
    free(all);
    return status;
}

/* ---------------------------------------------------------------- load ----- */

typedef struct model_reader {
    safetensors_report report;
    safetensors_file *file;
    const char *texts[MODEL_KEYS];
    transformer_config config;
    transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    int count;
} model_reader;

static mha_status read_metadata(model_reader *r)
{
    for (size_t n = 0; n < r->file->pair_count; n++) {
        const int key = key_number(r->file->pairs[n].key);
        if (key >= 0)
            r->texts[key] = r->file->pairs[n].value;
    }
    if (r->texts[KEY_FORMAT] && strcmp(r->texts[KEY_FORMAT], TRAINING_FORMAT) == 0)
        return safetensors_fail(
            &r->report, MHA_ERR_FORMAT,
            "a checkpoint, not a model: \"mha train --resume\" makes a model from it");
    for (int n = 0; n < MODEL_KEYS_NEEDED; n++)
        if (!r->texts[n])
            return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                    "not a translator: its metadata has no \"%s\"", model_key(n));
    if (strcmp(r->texts[KEY_FORMAT], FORMAT) != 0)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                "\"format\" is \"%s\", not \"" FORMAT "\"",
                                safetensors_show(r->texts[KEY_FORMAT]).text);
    return model_config_read(&r->report, r->texts[KEY_CONFIG], &r->config);
}

static mha_status check_tensor(const model_reader *r, const transformer_tensor *wanted)
{
    const safetensors_tensor *const found = safetensors_find(r->file, wanted->name);
    if (!found)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT, "the tensor \"%s\" is missing",
                                wanted->name);
    if (found->type != SAFETENSORS_F16 && found->type != SAFETENSORS_F32)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                "the tensor \"%s\" is %s, not F16 or F32", wanted->name,
                                safetensors_type_name(found->type));
    if (found->rank != (size_t)wanted->rank)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                "the tensor \"%s\" has %zu extents, not %d", wanted->name,
                                found->rank, wanted->rank);
    for (int axis = 0; axis < wanted->rank; axis++)
        if (found->shape[axis] != (uint64_t)wanted->shape[axis])
            return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                    "extent %d of the tensor \"%s\" is %" PRIu64 ", not %d", axis,
                                    wanted->name, found->shape[axis], wanted->shape[axis]);
    return MHA_OK;
}

static bool is_listed(const model_reader *r, const char *name)
{
    for (int n = 0; n < r->count; n++)
        if (strcmp(r->list[n].name, name) == 0)
            return true;
    return false;
}

/* Checks that the file has exactly the tensors of the model, with the right shapes. */
static mha_status check_tensors(model_reader *r)
{
    r->count = transformer_tensors(&r->config, r->list);
    for (int n = 0; n < r->count; n++) {
        const mha_status status = check_tensor(r, &r->list[n]);
        if (status)
            return status;
    }
    for (size_t n = 0; r->file->count > (size_t)r->count && n < r->file->count; n++)
        if (!is_listed(r, r->file->tensors[n].name))
            return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                    "the tensor \"%s\" does not belong to this model",
                                    safetensors_show(r->file->tensors[n].name).text);
    return MHA_OK;
}

/* Reads a tensor as f32. `halves` has room for the largest tensor as F16. */
static mha_status read_tensor(const model_reader *r, const transformer_tensor *tensor,
                              uint16_t *halves, float *to)
{
    const safetensors_tensor *const found = safetensors_find(r->file, tensor->name);
    const bool half = found->type == SAFETENSORS_F16;
    const mha_status status = safetensors_read(r->file, found, half ? (void *)halves : (void *)to,
                                               r->report.message, TRANSFORMER_MESSAGE_MAX);
    if (status)
        return status;
    for (size_t n = 0; n < tensor->count; n++) {
        if (half)
            to[n] = convert_f16_to_f32(halves[n]);
        if (!isfinite(to[n]))
            return safetensors_fail(&r->report, MHA_ERR_FORMAT,
                                    "element %zu of the tensor \"%s\" is not a finite number", n,
                                    tensor->name);
    }
    return MHA_OK;
}

static mha_status read_tensors(const model_reader *r, uint16_t *halves, float *values)
{
    for (int n = 0; n < r->count; n++) {
        const mha_status status = read_tensor(r, &r->list[n], halves, values + r->list[n].at);
        if (status)
            return status;
    }
    return MHA_OK;
}

/* Checks the checksum, if the file has one. */
static mha_status check_checksum(const model_reader *r, const float *values)
{
    char own[CHECKSUM_TEXT_MAX];
    uint64_t hash = hash_pairs(r->file->pairs, r->file->pair_count);
    for (int n = 0; n < r->count; n++)
        hash = checksum_floats(hash, values + r->list[n].at, r->list[n].count);
    checksum_text(hash, own);
    if (r->texts[KEY_CHECKSUM] && strcmp(r->texts[KEY_CHECKSUM], own) != 0)
        return safetensors_fail(&r->report, MHA_ERR_FORMAT, CHECKSUM_WRONG);
    return MHA_OK;
}

/* Reads all parameters. The tensors have been checked, so the file is as large as the memory that
 * is allocated here. Returns NULL after an error. */
static float *read_values(const model_reader *r)
{
    transformer_map map;
    size_t largest = 1;
    transformer_map_fill(&map, &r->config);
    for (int n = 0; n < r->count; n++)
        largest = r->list[n].count > largest ? r->list[n].count : largest;
    float *values = malloc(map.count * sizeof *values);
    uint16_t *const halves = malloc(largest * sizeof *halves);
    if (!values || !halves)
        model_fail_memory(&r->report);
    if (!values || !halves || read_tensors(r, halves, values) || check_checksum(r, values)) {
        free(values);
        values = NULL;
    }
    free(halves);
    return values;
}

/* Name and text of a note are one block, which the name points to. */
static bool copy_note(translator_note *note, const safetensors_pair *pair)
{
    const size_t name = strlen(pair->key) + 1, text = strlen(pair->value) + 1;
    char *const block = malloc(name + text);
    if (!block)
        return false;
    memcpy(block, pair->key, name);
    memcpy(block + name, pair->value, text);
    note->name = block;
    note->text = block + name;
    return true;
}

static bool copy_notes(const model_reader *r, translator *t)
{
    t->notes = calloc(r->file->pair_count, sizeof *t->notes);
    for (size_t n = 0; t->notes && n < r->file->pair_count; n++) {
        if (key_number(r->file->pairs[n].key) >= 0)
            continue;
        if (!copy_note(&t->notes[t->note_count], &r->file->pairs[n]))
            return false;
        t->note_count++;
    }
    return t->notes;
}

static mha_status add_words_and_notes(const model_reader *r, translator *t)
{
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const int key = side == TRANSFORMER_SOURCE ? KEY_SOURCE : KEY_TARGET;
        const mha_status status = model_vocabulary_read(&r->report, key, r->texts[key],
                                                        r->config.words[side], &t->words[side]);
        if (status)
            return status;
    }
    return copy_notes(r, t) ? MHA_OK : model_fail_memory(&r->report);
}

/* Opens the file. For another kind of file, the message says what is expected in addition to the
 * rule of the format that it violates. */
static mha_status open_file(model_reader *r)
{
    char rule[TRANSFORMER_MESSAGE_MAX] = "";
    const size_t path = strlen(r->report.path) + 2; /* every message begins with "PATH: " */
    const mha_status status =
        safetensors_open(&r->file, r->report.path, SAFETENSORS_STRICT, rule, sizeof rule);
    if (status == MHA_ERR_FORMAT && path < strlen(rule))
        return safetensors_fail(&r->report, status,
                                "not a model file as \"mha train\" writes it (safetensors), or "
                                "damaged: %s",
                                rule + path);
    snprintf(r->report.message, r->report.size, "%s", rule);
    return status;
}

static translator *read_model(model_reader *r)
{
    if (open_file(r) || read_metadata(r) || check_tensors(r))
        return NULL;
    float *const values = read_values(r);
    translator *const t = values ? translator_build(&r->config, values, r->report.message) : NULL;
    if (t && add_words_and_notes(r, t)) {
        translator_free(t);
        return NULL;
    }
    if (t)
        translator_find_laboratory(t);
    return t;
}

translator *translator_load(const char *path, char message[TRANSFORMER_MESSAGE_MAX])
{
    const safetensors_report at = {path, message, TRANSFORMER_MESSAGE_MAX};
    model_reader *const r = calloc(1, sizeof *r);
    if (!r) {
        model_fail_memory(&at);
        return NULL;
    }
    *message = 0;
    r->report = at;
    translator *const t = read_model(r);
    safetensors_close(r->file);
    free(r);
    return t;
}
