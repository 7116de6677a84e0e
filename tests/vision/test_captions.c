/* SPDX-License-Identifier: MIT */
/*
 * Captions of scenes: what batches hold, that a training reaches a fixed loss with the same bits
 * for any number of threads and after an interruption, that a folder says what the network says,
 * that damaged folders are refused, and measures of captions and of cross heads against counts of
 * the test's own.
 */
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "support/scene_folder.h"
#include "support/temp_files.h"
#include "vision/caption_data.h"
#include "vision/caption_study.h"

static training_config config_of(void)
{
    training_config c = training_caption_defaults();
    c.model.width = 32;
    c.model.heads = 2;
    c.model.ff_width = 48;
    c.model.layers[TRANSFORMER_SOURCE] = 1;
    c.model.layers[TRANSFORMER_TARGET] = 2;
    c.model.vision.patch = 10;
    c.model.vision.stride = 6;
    c.model.vision.places = VISION_LEARNED;
    c.steps = 160;
    c.batch = 16;
    c.warm_up = 16;
    c.learning_rate = 5e-3;
    c.ema = 0.9;
    caption_data_configure(&c.model);
    return c;
}

/* ---------------------------------------------------------------- batches ----- */

static void batches_are_the_scenes(void)
{
    caption_data data;
    training_config c = config_of();
    caption_data_init(&data);
    batch *const b = data.base.step(&data.base, &c, 3);
    if (!CHECK(b != NULL && b->pairs == 16, "no batch"))
        return;
    for (int n = 0; n < b->pairs; n++) {
        const int64_t index = 3 * 16 + n, first = b->starts[TRANSFORMER_TARGET][n];
        const scene_language language = n % 2 ? SCENE_FRENCH : SCENE_ENGLISH;
        scene s;
        scene_caption caption;
        scene_generate(c.seed, CORPUS_TRAIN, (uint64_t)index, &s);
        scene_caption_make(&s, language, &caption);
        CHECK(b->starts[TRANSFORMER_TARGET][n + 1] - first == caption.count + 1, "rows of %d", n);
        CHECK(b->words[TRANSFORMER_TARGET][first] == WORDS_SPECIAL + (int)language, "mark of %d",
              n);
        CHECK(b->expected[first + caption.count] == WORD_END, "end of %d", n);
        for (int k = 0; k < caption.count; k++)
            CHECK(b->expected[first + k] == WORDS_SPECIAL + caption.words[k] &&
                      b->words[TRANSFORMER_TARGET][first + k + 1] == b->expected[first + k] &&
                      b->positions[TRANSFORMER_TARGET][first + k] == k,
                  "word %d of %d", k, n);
        for (int k = 0; k < SCENE_CHANNELS * SCENE_PIXELS; k++)
            if (!CHECK(fabs((double)b->pixels[(size_t)n * b->picture_floats + (size_t)k] -
                            (s.pixels[k] / 255.0 - 0.25) / 0.2) < 1e-5,
                       "pixel %d of %d", k, n))
                break;
    }
    batch *const part = batch_part(b, 5, 9);
    CHECK(part->pairs == 4 && !part->shares &&
              memcmp(part->pixels, b->pixels + 5 * b->picture_floats,
                     4 * b->picture_floats * sizeof *b->pixels) == 0 &&
              memcmp(part->expected, b->expected + b->starts[TRANSFORMER_TARGET][5],
                     (size_t)part->rows[TRANSFORMER_TARGET] * sizeof *b->expected) == 0,
          "a part");
    batch_free(part);
    batch_free(b);
}

/* --------------------------------------------------------------- training ----- */

static training *train_steps(const training_config *c, caption_data *data, int64_t steps,
                             mha_pool *pool)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training *const t = training_create(c, &data->base, pool, message);
    training_result result;
    for (int64_t n = 0; CHECK(t != NULL, "%s", message) && n < steps; n++)
        CHECK(training_step(t, &result) == MHA_OK && result.items == c->batch, "step");
    return t;
}

/* A fixed loss; the same bits with threads, and after a checkpoint. */
static void training_reaches_a_loss(void)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "checkpoint.safetensors");
    caption_data data;
    training_config c = config_of();
    training_score score;
    training_result result;
    caption_data_init(&data);
    c.dropout = 0.02;
    c.micro_batches = 3;
    training *const whole = train_steps(&c, &data, c.steps, NULL);
    CHECK(training_evaluate(whole, CORPUS_VALID, 100, &score) == MHA_OK, "no score");
    CHECK(score.loss < 1.15 && score.words_right > 0.5, "loss %g, %g right", score.loss,
          score.words_right);
    mha_pool *pool = NULL;
    mha_pool_create(&pool, 3);
    training *const half = train_steps(&c, &data, c.steps / 2, pool);
    CHECK(training_save(half, path, message) == MHA_OK, "%s", message);
    training *const rest = training_load(path, &data.base, pool, message);
    for (int64_t n = c.steps / 2; CHECK(rest != NULL, "%s", message) && n < c.steps; n++)
        training_step(rest, &result);
    transformer_map map;
    transformer_map_fill(&map, &c.model);
    CHECK(memcmp(training_values(whole), training_values(rest), map.count * sizeof(float)) == 0,
          "other bits");
    CHECK(!training_load(path, NULL, NULL, message) && strstr(message, "on scenes"), "%s", message);
    data.base.hash++;
    CHECK(!training_load(path, &data.base, NULL, message) && strstr(message, "other data"), "%s",
          message);
    training_free(whole);
    training_free(half);
    training_free(rest);
    mha_pool_free(pool);
    temp_folder_free(&folder);
}

static void changed_pictures_are_refused(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training_config c = config_of();
    CHECK(training_config_check(&c, message), "%s", message);
    c.flip = 0.5;
    CHECK(!training_config_check(&c, message) && strstr(message, "must be 0"), "%s", message);
    c = config_of();
    c.model.vision.pooling = VISION_CLASS;
    CHECK(!training_config_check(&c, message) && strstr(message, "token of the class"), "%s",
          message);
    c = config_of();
    c.model.layers[TRANSFORMER_TARGET] = 0;
    CHECK(!training_config_check(&c, message) && strstr(message, "decoder layers"), "%s", message);
}

/* ------------------------------------------------------------------ folder ----- */

typedef struct folder_case {
    temp_folder folder;
    char path[256];
    training_config config;
    caption_data data;
    float *values;
    transformer_map map;
} folder_case;

/* A model with random parameters, so large that it says different things. */
static bool setup(folder_case *f, mha_dtype type)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    test_random random = {test_seed(5)};
    *f = (folder_case){.folder = temp_folder_new(), .config = config_of()};
    caption_data_init(&f->data);
    transformer_map_fill(&f->map, &f->config.model);
    f->values = malloc(f->map.count * sizeof *f->values);
    transformer_init(&f->config.model, 3, f->values);
    for (size_t n = 0; n < f->map.count; n++)
        f->values[n] += 0.05f * test_random_normal(&random);
    snprintf(f->path, sizeof f->path, "%s", temp_path(&f->folder, "model"));
    const scene_model_content content = {
        .config = &f->config.model, .values = f->values, .type = type, .scale = &f->data.scale};
    return CHECK(scene_model_write(&captioner_kind, f->path, &content, message) == MHA_OK, "%s",
                 message);
}

static void teardown(folder_case *f)
{
    temp_folder_free(&f->folder);
    free(f->values);
}

static void folders_are_read_back(void)
{
    for (int half = 0; half < 2; half++) {
        char message[TRANSFORMER_MESSAGE_MAX] = "";
        folder_case f;
        if (!setup(&f, half ? MHA_F16 : MHA_F32))
            return;
        scene_model *const c = scene_model_load(&captioner_kind, f.path, MHA_EXACT, NULL, message);
        if (!CHECK(c != NULL, "%s", message) ||
            !CHECK(scene_model_is_folder(&captioner_kind, f.path), "what is it"))
            return;
        CHECK(memcmp(&c->config, &f.config.model, sizeof c->config) == 0, "other sizes");
        CHECK(memcmp(c->scale.table, f.data.scale.table, sizeof c->scale.table) == 0,
              "other pixels");
        for (size_t n = 0; n < f.map.count; n++) {
            const float wanted =
                half ? convert_f16_to_f32(convert_f32_to_f16(f.values[n])) : f.values[n];
            if (!CHECK(c->values[n] == wanted, "value %zu", n))
                break;
        }
        scene_model_free(c);
        teardown(&f);
    }
}

/* What is said is the most likely word at each place, of which the score is that of the network. */
static void said_words_are_the_most_likely(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    folder_case f;
    if (!setup(&f, MHA_F32))
        return;
    scene_model *const c = scene_model_load(&captioner_kind, f.path, MHA_EXACT, NULL, message);
    int different = 0, last = -1;
    for (int n = 0; CHECK(c != NULL, "%s", message) && n < 12; n++) {
        const scene_language language = caption_language(n);
        batch *const shown = caption_batch(&c->config, &c->scale, 1, CORPUS_TEST, n, 1, NULL, NULL);
        caption_said said;
        CHECK(captioner_say(c, shown->pixels, language, &said) == MHA_OK, "nothing is said");
        int ids[CAPTION_WORDS_MAX + 1], best[CAPTION_WORDS_MAX + 1];
        for (int k = 0; k < said.count; k++)
            ids[k] = said.words[k] < 0 ? WORD_UNKNOWN : WORDS_SPECIAL + said.words[k];
        const caption_ids caption = {ids, said.count, WORDS_SPECIAL + (int)language};
        batch *const b = batch_of_captions(&caption, 1, WORD_END, vision_tokens(&c->config.vision),
                                           shown->picture_floats);
        memcpy(b->pixels, shown->pixels, shown->picture_floats * sizeof *b->pixels);
        network_loss loss;
        double score = 0.0;
        CHECK(network_forward(c->network, b, &(network_mode){.said = best}, &loss) == MHA_OK,
              "network");
        for (int k = 0; k < said.count + said.complete; k++)
            score -= network_scores(c->network)[k].loss;
        for (int k = 0; k < said.count; k++)
            CHECK(best[k] == ids[k] || said.words[k] < 0, "word %d of %d", k, n);
        CHECK((best[said.count] == WORD_END) == said.complete, "the end of %d", n);
        CHECK(fabs(score - said.score) < 1e-9 * fabs(score), "%g, not %g", said.score, score);
        CHECK(said.complete || said.count == CAPTION_WORDS_MAX, "%d stopped early", n);
        different += said.count > 0 && said.words[0] != last;
        last = said.count > 0 ? said.words[0] : -1;
        batch_free(b);
        batch_free(shown);
    }
    CHECK(different > 1, "all captions are the same");
    scene_model_free(c);
    teardown(&f);
}

/* ----------------------------------------------------------------- damaged ----- */

static void damaged_configurations_are_refused(void)
{
    static const folder_damage cases[] = {
        {"config.json", "mha_captions", "mha_vit", "\"model_type\" is not \"mha_captions\""},
        {"config.json", "\"hidden_size\": 32", "\"hidden_size\": 31", "an even width"},
        {"config.json", "\"hidden_size\": 32", "\"hidden_size\": 2048", "another shape"},
        {"config.json", "\"hidden_size\": 32", "\"hidden_size\": 1.5", "is not a positive integer"},
        {"config.json", "\"hidden_size\": 32", "\"hidden_size\": -2", "is not a positive integer"},
        {"config.json", "\"decoder_layers\": 2", "\"decoder_layers\": 17", "between 1 and 16"},
        {"config.json", "\"decoder_layers\": 2", "\"decoder_layers\": 3", "there is no tensor"},
        {"config.json", "\"image_size\": 40", "\"image_size\": 2000", "between 1 and 1024"},
        {"config.json", "\"patch_size\": 10", "\"patch_size\": 41", "the side of a patch"},
        {"config.json", "\"patch_stride\": 6", "\"patch_stride\": 11", "the stride"},
        {"config.json", "\"patch_stride\": 6", "\"patch_stride\": 1", "another shape"},
        {"config.json", "\"num_channels\": 3", "\"num_channels\": 1", "\"num_channels\" is not 3"},
        {"config.json", "\"learned\"", "\"circles\"", "\"places\" is not"},
        {"config.json", "\"square\"", "\"rhombus\"", "\"words\" is not the list"},
        {"config.json", "\"square\",", "", "\"words\" is not the list"},
        {"config.json", "{", "[", "config.json"},
        {"preprocessor_config.json", "\"image_std\"", "\"image_deviation\"", "\"image_std\""},
        {"preprocessor_config.json", "{", "", "preprocessor_config.json"},
        {"model.safetensors", "decoder.layer_norm.bias", "decoder.layer_norm.bios",
         "there is no tensor"},
        {"model.safetensors", "{", "[", "model.safetensors"},
    };
    folder_case f;
    if (setup(&f, MHA_F16))
        scene_folder_damages(&captioner_kind, f.path, cases, sizeof cases / sizeof cases[0]);
    teardown(&f);
}

static void cut_and_strange_weights_are_refused(void)
{
    folder_case f;
    if (setup(&f, MHA_F16))
        scene_folder_cuts(&captioner_kind, f.path);
    teardown(&f);
}

static void say_something(const scene_model *model)
{
    static const float pixels[SCENE_CHANNELS * SCENE_PIXELS];
    caption_said said;
    captioner_say(model, pixels, SCENE_FRENCH, &said);
}

static void changed_bytes_do_no_harm(void)
{
    folder_case f;
    if (setup(&f, MHA_F16))
        scene_folder_bytes(&captioner_kind, f.path, 150, say_something);
    teardown(&f);
}

/* ------------------------------------------------------------------- study ----- */

enum { STUDIED = 70, PATCHES = 36 };

/* Counts of the test's own, one scene at a time. */
typedef struct counts {
    double heads[4][STUDIED], known[STUDIED];
    int right[SCENE_LANGUAGES], words_right;
    bool hit[STUDIED][CAPTION_WORDS_MAX][PATCHES], counts[STUDIED][CAPTION_WORDS_MAX];
} counts;

/* A patch is 10 pixels a side, every 6 pixels; it shows the shape that most of its pixels show. */
static bool patch_shows(const scene *s, int patch, int shape)
{
    int pixels[SCENE_SHAPES_MAX] = {0}, most = -1;
    for (int k = 0; k < 100; k++) {
        const int shown = s->shows[(patch / 6 * 6 + k / 10) * SCENE_SIDE + patch % 6 * 6 + k % 10];
        if (shown >= 0)
            pixels[shown]++;
    }
    for (int n = 0; n < s->count; n++)
        most = n != shape && pixels[n] > most ? pixels[n] : most;
    return pixels[shape] > 0 && pixels[shape] > most;
}

static void count_scene(counts *all, const scene_model *c, int number)
{
    static float cross[4 * (CAPTION_WORDS_MAX + 1) * PATCHES];
    scene s;
    scene_caption caption;
    network_loss loss;
    batch *const b = caption_batch(&c->config, &c->scale, 2, CORPUS_TEST, number, 1, &s, &caption);
    CHECK(network_forward(c->network, b, &(network_mode){.cross = cross}, &loss) == MHA_OK, "run");
    const int rows = caption.count + 1;
    all->right[number % 2] += loss.right == rows;
    all->words_right += (int)loss.right;
    for (int row = 0; row < caption.count; row++) {
        if (caption.shapes[row] < 0 || !network_scores(c->network)[row].right)
            continue;
        all->known[number]++;
        all->counts[number][row] = true;
        for (int patch = 0; patch < PATCHES; patch++)
            all->hit[number][row][patch] = patch_shows(&s, patch, caption.shapes[row]);
        for (int head = 0; head < 4; head++) {
            const float *const weights = cross + (head * rows + row) * PATCHES;
            int best = 0;
            for (int patch = 1; patch < PATCHES; patch++)
                best = weights[patch] > weights[best] ? patch : best;
            all->heads[head][number] += all->hit[number][row][best];
        }
    }
    batch_free(b);
}

/* The best fixed patch of every place, by trying all of them. */
static double control_of(const counts *all)
{
    double hits[STUDIED] = {0}, sum = 0.0;
    int scenes = 0;
    for (int place = 0; place < 2 * CAPTION_WORDS_MAX; place++) {
        const int language = place % 2, row = place / 2;
        int best = 0, most = -1;
        for (int patch = 0; patch < PATCHES; patch++) {
            int found = 0;
            for (int n = language; n < STUDIED; n += 2)
                found += all->counts[n][row] && all->hit[n][row][patch];
            best = found > most ? patch : best;
            most = found > most ? found : most;
        }
        for (int n = language; n < STUDIED; n += 2)
            hits[n] += all->counts[n][row] && all->hit[n][row][best];
    }
    for (int n = 0; n < STUDIED; n++)
        if (all->known[n] > 0.0) {
            sum += hits[n] / all->known[n];
            scenes++;
        }
    return sum / scenes;
}

static double mean_of(const counts *all, int head)
{
    double sum = 0.0;
    int scenes = 0;
    for (int n = 0; n < STUDIED; n++)
        if (all->known[n] > 0.0) {
            sum += all->heads[head][n] / all->known[n];
            scenes++;
        }
    return sum / scenes;
}

/* A model that has learnt a little, so that some of its words are right. */
static scene_model *trained(folder_case *f)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training *const t = train_steps(&f->config, &f->data, 90, NULL);
    const scene_model_content content = {.config = &f->config.model,
                                         .values = training_values(t),
                                         .type = MHA_F32,
                                         .scale = &f->data.scale};
    CHECK(scene_model_write(&captioner_kind, f->path, &content, message) == MHA_OK, "%s", message);
    training_free(t);
    scene_model *const c = scene_model_load(&captioner_kind, f->path, MHA_EXACT, NULL, message);
    CHECK(c != NULL, "%s", message);
    return c;
}

static void studies_count(void)
{
    static counts all;
    folder_case f;
    caption_study study;
    if (!setup(&f, MHA_F32))
        return;
    scene_model *const c = trained(&f);
    memset(&all, 0, sizeof all);
    for (int n = 0; c != NULL && n < STUDIED; n++)
        count_scene(&all, c, n);
    double known = 0.0;
    for (int n = 0; n < STUDIED; n++)
        known += all.known[n];
    CHECK(known > 50.0, "only %g words are known", known);
    CHECK(caption_study_measure(&study, c, 2, CORPUS_TEST, STUDIED) == MHA_OK, "no study");
    CHECK(study.scenes[0] == STUDIED / 2 && study.scenes[1] == STUDIED / 2 &&
              study.right[0] == all.right[0] && study.right[1] == all.right[1],
          "right captions");
    CHECK(study.words_right == all.words_right && (double)study.pointing.rows == known, "words");
    CHECK(study.pointing.layers == 2 && study.pointing.heads == 2, "heads");
    for (int head = 0; head < 4; head++)
        CHECK(fabs(study.pointing.shares[head].mean - mean_of(&all, head)) < 1e-9 &&
                  study.pointing.shares[head].half > 0.0,
              "head %d: %g, not %g", head, study.pointing.shares[head].mean, mean_of(&all, head));
    CHECK(fabs(study.pointing.control.mean - control_of(&all)) < 1e-9, "control %g, not %g",
          study.pointing.control.mean, control_of(&all));
    caption_study_free(&study);
    scene_model_free(c);
    teardown(&f);
}

static void other_sizes_are_not_measured(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    folder_case f;
    caption_study study;
    if (!setup(&f, MHA_F32))
        return;
    f.config.model.vision.side = 46;
    f.config.model.vision.places = VISION_SINES;
    const scene_model_content content = {
        .config = &f.config.model, .values = f.values, .type = MHA_F32, .scale = &f.data.scale};
    CHECK(scene_model_write(&captioner_kind, f.path, &content, message) == MHA_OK, "%s", message);
    scene_model *const c = scene_model_load(&captioner_kind, f.path, MHA_EXACT, NULL, message);
    if (CHECK(c != NULL, "%s", message))
        CHECK(caption_study_measure(&study, c, 2, CORPUS_TEST, 4) == MHA_ERR_SHAPE, "measured");
    caption_study_free(&study);
    scene_model_free(c);
    teardown(&f);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(batches_are_the_scenes);
    RUN(training_reaches_a_loss);
    RUN(changed_pictures_are_refused);
    RUN(folders_are_read_back);
    RUN(said_words_are_the_most_likely);
    RUN(damaged_configurations_are_refused);
    RUN(cut_and_strange_weights_are_refused);
    RUN(changed_bytes_do_no_harm);
    RUN(studies_count);
    RUN(other_sizes_are_not_measured);
    return test_end();
}
