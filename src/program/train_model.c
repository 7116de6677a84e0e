/* SPDX-License-Identifier: MIT */
/* Writes and judges the model of a training (train_model.h). */
#include "program/train_model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program/args.h"
#include "program/model_session.h"
#include "translator/marian_folder.h"
#include "translator/translator.h"

/* --------------------------------------------------------------- notes ----- */

enum { NOTES = TRAINING_SETTINGS + 4, NOTE_NAME_MAX = TRAINING_TEXT_MAX + 16 };

typedef struct note_list {
    char names[NOTES][NOTE_NAME_MAX], texts[NOTES][TRAINING_TEXT_MAX];
    int count;
} note_list;

static void add_number(note_list *list, const char *name, double value)
{
    if (value != value)
        return;
    snprintf(list->names[list->count], sizeof list->names[0], "%s", name);
    snprintf(list->texts[list->count++], sizeof list->texts[0], "%.6g", value);
}

/* The settings and the last validation. */
static void make_notes(note_list *list, const training *t)
{
    const training_history history = training_get_history(t);
    list->count = 0;
    for (int n = 0; n < TRAINING_SETTINGS; n++) {
        if (!training_setting_is_recorded(training_get_config(t), n))
            continue;
        snprintf(list->names[list->count], sizeof list->names[0], "training.%s",
                 training_setting_name(n));
        training_setting_text(training_get_config(t), n, list->texts[list->count++]);
    }
    if (history.mark_count == 0)
        return;
    const training_mark *const last = &history.marks[history.mark_count - 1];
    add_number(list, "validation.loss", last->loss);
    static const char *const names[FORMS] = {[FORM_VISION] = "validation.pictures-right",
                                             [FORM_DETECTION] = "validation.average-precision"};
    const char *const name = names[training_get_config(t)->model.form];
    add_number(list, name != NULL ? name : "validation.words-right", last->words_right);
    add_number(list, "validation.bleu", last->bleu);
    add_number(list, "validation.chrf", last->chrf);
}

/* ------------------------------------------------------------- writing ----- */

static mha_status write_laboratory(const train_model *m, const training *t, const note_list *list,
                                   const char *path, char message[TRANSFORMER_MESSAGE_MAX])
{
    translator_note notes[NOTES];
    for (int n = 0; n < list->count; n++)
        notes[n] = (translator_note){list->names[n], list->texts[n]};
    return translator_save(path, &training_get_config(t)->model, training_values(t),
                           m->request->type, notes, list->count, message);
}

static mha_status write_pictures(const train_model *m, const training *t, const note_list *list,
                                 const char *path, char message[TRANSFORMER_MESSAGE_MAX])
{
    safetensors_pair notes[NOTES];
    for (int n = 0; n < list->count; n++)
        notes[n] = (safetensors_pair){list->names[n], list->texts[n]};
    const size_t count = (size_t)list->count;
    return m->sources.images
               ? train_images_write(m->sources.images, m->request, t, notes, count, path, message)
               : train_scenes_write(m->sources.scenes, m->request, t, notes, count, path, message);
}

static mha_status write_folder(const train_model *m, const training *t, const note_list *list,
                               const char *path, char message[TRANSFORMER_MESSAGE_MAX])
{
    const mha_tokenizer *const tokenizer = m->sources.text->tokenizer;
    safetensors_pair notes[NOTES];
    for (int n = 0; n < list->count; n++)
        notes[n] = (safetensors_pair){list->names[n], list->texts[n]};
    const marian_content content = {.config = &training_get_config(t)->model,
                                    .values = training_values(t),
                                    .type = m->request->type,
                                    .tokenizer = m->sources.text->json,
                                    .begin = mha_tokenizer_mark(tokenizer, MHA_MARK_PAD),
                                    .end = mha_tokenizer_mark(tokenizer, MHA_MARK_END),
                                    .notes = notes,
                                    .note_count = (size_t)list->count};
    return marian_folder_write(path, &content, message);
}

mha_status train_model_write(const train_model *m, const training *t, const char *path)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    note_list notes;
    make_notes(&notes, t);
    const train_sources *const from = &m->sources;
    const mha_status status = from->text ? write_folder(m, t, &notes, path, message)
                              : from->images || from->scenes
                                  ? write_pictures(m, t, &notes, path, message)
                                  : write_laboratory(m, t, &notes, path, message);
    if (status != MHA_OK)
        fprintf(stderr, "mha: no model: %s\n", message);
    return status;
}

/* ------------------------------------------------------------- judging ----- */

int train_model_score_folder(const train_model *m, const char *folder, int64_t most,
                             translation_score *score)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const mha_model_config config = {
        .size = sizeof config, .message = message, .message_size = sizeof message};
    mha_model *model = NULL;
    const mha_status status = mha_model_open(&model, folder, &config);
    int code = status == MHA_OK ? EXIT_GO_ON : args_failed("%s", message);
    if (code == EXIT_GO_ON)
        code = translation_score_measure(model, &m->references, most,
                                         m->request->quiet ? NULL : "translating", m->pool, score);
    mha_model_free(model);
    return code;
}

static void delete_folder(const char *folder)
{
    char path[TRAIN_PATH_MAX + 64];
    for (int n = 0; train_files_in_folder(n) != NULL; n++) {
        snprintf(path, sizeof path, "%s/%s", folder, train_files_in_folder(n));
        unlink(path);
    }
    rmdir(folder);
}

int train_model_score(const train_model *m, const training *t, int64_t most,
                      translation_score *score)
{
    char folder[TRAIN_PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%s" TRAIN_VALIDATION, m->request->output);
    int code = train_model_write(m, t, folder) == MHA_OK ? EXIT_GO_ON : EXIT_FAILED;
    if (code == EXIT_GO_ON)
        code = train_model_score_folder(m, folder, most, score);
    delete_folder(folder);
    return code;
}

/* ------------------------------------------------------------ creation ----- */

int train_model_open(train_model *m, const train_request *request, train_sources sources,
                     mha_pool *pool)
{
    *m = (train_model){.request = request, .sources = sources, .pool = pool};
    if (sources.text == NULL)
        return EXIT_GO_ON;
    return reference_set_of_pairs(&m->references, &sources.text->valid)
               ? EXIT_GO_ON
               : args_failed("out of memory");
}

void train_model_close(train_model *m)
{
    reference_set_free(&m->references);
}
