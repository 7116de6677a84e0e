/* SPDX-License-Identifier: MIT */
/*
 * Detection in scenes: what batches hold, that a training reaches a fixed loss with the same bits
 * for any number of threads and after an interruption, that a folder finds what the network finds,
 * that damaged folders are refused, and average precision and pointing against computations of the
 * test's own.
 */
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scene_folder.h"
#include "support/temp_files.h"
#include "vision/detection_data.h"
#include "vision/detection_study.h"

enum { QUERIES = 5, OUTPUTS = SCENE_COLORS + SCENE_KINDS + 1 + BOX_NUMBERS };

static training_config config_of(void)
{
    training_config c = training_detection_defaults();
    c.model.width = 32;
    c.model.heads = 2;
    c.model.ff_width = 48;
    c.model.layers[TRANSFORMER_SOURCE] = 1;
    c.model.layers[TRANSFORMER_TARGET] = 2;
    c.model.positions = QUERIES;
    c.model.vision.patch = 10;
    c.model.vision.stride = 6;
    c.model.vision.places = VISION_LEARNED;
    c.steps = 160;
    c.batch = 16;
    c.warm_up = 16;
    c.learning_rate = 5e-3;
    c.ema = 0.9;
    detection_data_configure(&c.model);
    return c;
}

/* ---------------------------------------------------------------- batches ----- */

static void batches_are_the_scenes(void)
{
    detection_data data;
    training_config c = config_of();
    detection_data_init(&data);
    batch *const b = data.base.step(&data.base, &c, 3);
    if (!CHECK(b != NULL && b->pairs == 16 && b->rows[TRANSFORMER_TARGET] == 16 * QUERIES,
               "no batch"))
        return;
    for (int n = 0; n < b->pairs; n++) {
        scene s;
        scene_generate(c.seed, CORPUS_TRAIN, (uint64_t)(3 * 16 + n), &s);
        CHECK(b->thing_counts[n] == s.count, "things of %d", n);
        for (int k = 0; k < s.count; k++) {
            const batch_thing *const thing = &b->things[n * b->things_room + k];
            const scene_shape *const shape = &s.shapes[k];
            const double *const at = thing->box.at;
            CHECK(thing->classes[0] == (int)shape->color && thing->classes[1] == (int)shape->kind,
                  "classes of %d", n);
            CHECK(fabs(40.0 * (at[0] - at[2] / 2.0) - shape->box.left) < 1e-9 &&
                      fabs(40.0 * (at[0] + at[2] / 2.0) - shape->box.right) < 1e-9 &&
                      fabs(40.0 * (at[1] - at[3] / 2.0) - shape->box.top) < 1e-9 &&
                      fabs(40.0 * (at[1] + at[3] / 2.0) - shape->box.bottom) < 1e-9,
                  "box of %d", n);
        }
        for (int k = 0; k < SCENE_CHANNELS * SCENE_PIXELS; k++)
            if (!CHECK(fabs((double)b->pixels[(size_t)n * b->picture_floats + (size_t)k] -
                            (s.pixels[k] / 255.0 - 0.25) / 0.2) < 1e-5,
                       "pixel %d of %d", k, n))
                break;
    }
    batch *const part = batch_part(b, 5, 9);
    CHECK(part->pairs == 4 && part->things_room == b->things_room &&
              memcmp(part->thing_counts, b->thing_counts + 5, 4 * sizeof *b->thing_counts) == 0 &&
              memcmp(part->things, b->things + 5 * b->things_room,
                     4 * (size_t)b->things_room * sizeof *b->things) == 0 &&
              memcmp(part->words[TRANSFORMER_TARGET],
                     b->words[TRANSFORMER_TARGET] + (size_t)5 * QUERIES,
                     (size_t)4 * QUERIES * sizeof(int)) == 0,
          "a part");
    batch_free(part);
    batch_free(b);
}

/* --------------------------------------------------------------- training ----- */

static training *train_steps(const training_config *c, detection_data *data, int64_t steps,
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
    detection_data data;
    training_config c = config_of();
    training_score first, score;
    training_result result;
    detection_data_init(&data);
    c.dropout = 0.02;
    c.micro_batches = 3;
    training *const none = train_steps(&c, &data, 0, NULL);
    CHECK(training_evaluate(none, CORPUS_VALID, 100, &first) == MHA_OK, "no score");
    training *const whole = train_steps(&c, &data, c.steps, NULL);
    CHECK(training_evaluate(whole, CORPUS_VALID, 100, &score) == MHA_OK, "no score");
    CHECK(first.loss > 5.0 && score.loss < 3.7, "loss %g, then %g", first.loss, score.loss);
    CHECK(score.words == 100 * QUERIES && score.words_right == score.whole_right &&
              score.whole_right >= 0.0 && score.whole_right <= 1.0,
          "precision %g", score.whole_right);
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
    CHECK(!training_load(path, NULL, NULL, message) && strstr(message, "--detect"), "%s", message);
    data.base.hash++;
    CHECK(!training_load(path, &data.base, NULL, message) && strstr(message, "other data"), "%s",
          message);
    training_free(none);
    training_free(whole);
    training_free(half);
    training_free(rest);
    mha_pool_free(pool);
    temp_folder_free(&folder);
}

/* The settings of a detector are in its checkpoint, and only in that. */
static void settings_are_those_of_detectors(void)
{
    const training_config detects = config_of(), captions = training_caption_defaults();
    static const char *const own[] = {"queries", "nothing-weight", "box-weight", "overlap-weight"};
    for (int n = 0; n < 4; n++) {
        const int number = training_setting_find(own[n]);
        CHECK(number >= 0 && training_setting_is_recorded(&detects, number) &&
                  !training_setting_is_recorded(&captions, number),
              "%s", own[n]);
    }
    const int positions = training_setting_find("positions");
    CHECK(!training_setting_is_recorded(&detects, positions) &&
              training_setting_is_recorded(&captions, positions),
          "positions");
    transformer_map map;
    training_config c = training_detection_defaults();
    detection_data_configure(&c.model);
    transformer_map_fill(&map, &c.model);
    CHECK(2 * map.count < 3000000, "%zu parameters are more than 3 MB as f16", map.count);
}

static void wrong_settings_are_refused(void)
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
    c = config_of();
    c.model.positions = 65;
    CHECK(!training_config_check(&c, message) && strstr(message, "queries"), "%s", message);
    c = config_of();
    c.detection.box = -1.0;
    CHECK(!training_config_check(&c, message) && strstr(message, "box-weight -1"), "%s", message);
    c.detection.box = NAN;
    CHECK(!training_config_check(&c, message) && strstr(message, "box-weight"), "%s", message);
}

/* -------------------------------------------------------------- precision ----- */

/* The definition, plainly: the area under the largest precision at this or a higher recall. */
static double plain_precision(const detection_list *list, int class)
{
    const size_t count = list->found_count;
    size_t things = 0, said = 0, right = 0;
    bool *const done = calloc(count + 1, sizeof *done);
    bool *const taken = calloc(list->truth_count + 1, sizeof *taken);
    double *const recall = calloc(count + 1, sizeof *recall);
    double *const precision = calloc(count + 1, sizeof *precision);
    double area = 0.0, last = 0.0;
    for (size_t n = 0; n < list->truth_count; n++)
        things += list->truths[n].class == class;
    for (;;) {
        size_t best = count, hit = list->truth_count;
        for (size_t n = count; n-- > 0;)
            if (!done[n] && list->found[n].class == class &&
                (best == count || list->found[n].score >= list->found[best].score))
                best = n;
        if (best == count)
            break;
        done[best] = true;
        double most = 0.5;
        for (size_t n = 0; n < list->truth_count; n++) {
            const detection *const truth = &list->truths[n];
            const double overlap = box_iou(&list->found[best].box, &truth->box);
            if (truth->class == class && truth->picture == list->found[best].picture &&
                (hit == list->truth_count ? overlap >= most : overlap > most)) {
                most = overlap;
                hit = n;
            }
        }
        if (hit < list->truth_count && !taken[hit]) {
            taken[hit] = true;
            right++;
        }
        said++;
        recall[said - 1] = (double)right / (double)things;
        precision[said - 1] = (double)right / (double)said;
    }
    for (size_t n = 0; n < said; n++) {
        double most = 0.0;
        for (size_t k = n; k < said; k++)
            most = precision[k] > most ? precision[k] : most;
        area += (recall[n] - last) * most;
        last = recall[n];
    }
    free(done), free(taken), free(recall), free(precision);
    return things > 0 ? area : (double)NAN;
}

/* Some pictures with up to three things of few classes, and boxes near them or not. */
static void make_list(detection_list *list, test_random *random, int pictures)
{
    for (int picture = 0; picture < pictures; picture++)
        for (int n = (int)test_random_below(random, 4); n > 0; n--) {
            detection thing = {.picture = picture,
                               .class = (int)test_random_below(random, 3),
                               .box = {{0.5, 0.5, 0.2, 0.2}}};
            thing.box.at[0] += 0.3 * (double)test_random_float(random);
            thing.box.at[1] += 0.3 * (double)test_random_float(random);
            list->truths[list->truth_count++] = thing;
            for (int k = (int)test_random_below(random, 4); k > 0; k--) {
                detection found = thing;
                found.class = test_random_below(random, 4) ? thing.class : 2;
                found.score = (double)test_random_below(random, 20) / 20.0; /* with ties */
                for (int c = 0; c < BOX_NUMBERS; c++)
                    found.box.at[c] *= 1.0 + 0.2 * (double)test_random_float(random);
                list->found[list->found_count++] = found;
            }
        }
}

static void precision_is_the_definition(void)
{
    enum { PICTURES = 12 };
    test_random random = {test_seed(21)};
    detection found[PICTURES * 9], truths[PICTURES * 3];
    int right = 0, wrong = 0;
    for (int round = 0; round < 300; round++) {
        detection_list list = {.found = found, .truths = truths, .classes = 4};
        double of_class[4], mean = -1.0, sum = 0.0;
        int known = 0;
        make_list(&list, &random, 1 + round % PICTURES);
        CHECK(precision_measure(&list, of_class, &mean) == MHA_OK, "no precision");
        for (int class = 0; class < 4; class ++) {
            const double wanted = plain_precision(&list, class);
            CHECK(isnan(wanted) ? isnan(of_class[class]) : fabs(of_class[class] - wanted) < 1e-12,
                  "class %d: %g, not %g", class, of_class[class], wanted);
            known += !isnan(wanted);
            sum += isnan(wanted) ? 0.0 : wanted;
        }
        CHECK(known > 0 ? fabs(mean - sum / known) < 1e-12 : isnan(mean), "mean %g", mean);
        for (size_t n = 0; n < list.found_count; n++) {
            const int thing = list.found[n].right - 1;
            right += thing >= 0;
            wrong += thing < 0;
            CHECK(thing < 0 || (truths[thing].class == found[n].class &&
                                truths[thing].picture == found[n].picture &&
                                box_iou(&truths[thing].box, &found[n].box) >= 0.5),
                  "its thing");
        }
    }
    CHECK(right > 100 && wrong > 100, "%d right, %d wrong", right, wrong);
}

static void precision_is_known(void)
{
    const box here = {{0.3, 0.3, 0.2, 0.2}}, there = {{0.7, 0.7, 0.2, 0.2}};
    detection truths[] = {{.picture = 0, .box = here}, {.picture = 1, .box = here}};
    detection found[] = {{.picture = 1, .score = 0.8, .box = here},
                         {.picture = 0, .score = 0.9, .box = there},
                         {.picture = 1, .score = 0.7, .box = here},
                         {.picture = 0, .score = 0.6, .box = here}};
    detection_list list = {found, truths, 4, 2, 1};
    double of_class, mean = -1.0;
    /* Wrong, right, wrong (found before), right: precisions 0, 1/2, 1/3, 1/2. */
    CHECK(precision_measure(&list, &of_class, &mean) == MHA_OK && fabs(mean - 0.5) < 1e-12, "%g",
          mean);
    CHECK(found[0].right == 2 && found[1].right == 0 && found[2].right == 0 && found[3].right == 1,
          "which are right");
    list.found_count = 0;
    CHECK(precision_measure(&list, &of_class, &mean) == MHA_OK && mean == 0.0, "nothing found");
    list.truth_count = 0;
    CHECK(precision_measure(&list, &of_class, &mean) == MHA_OK && isnan(mean), "nothing there");
}

/* What a query says: the largest logits, "nothing" left out, and the product of probabilities. */
static void outputs_become_detections(void)
{
    training_config c = config_of();
    float outputs[OUTPUTS] = {0};
    outputs[SCENE_BLUE] = 2.0f;
    outputs[SCENE_COLORS + SCENE_RING] = 1.0f;
    outputs[SCENE_COLORS + SCENE_KINDS] = 3.0f; /* nothing */
    outputs[OUTPUTS - 1] = -1.0f;
    const detection d = detection_of_outputs(&c.model, outputs);
    const double color = exp(2.0) / (5.0 + exp(2.0));
    const double kind = exp(1.0) / (5.0 + exp(1.0) + exp(3.0));
    char name[DETECTION_NAME_MAX];
    detection_name(d.class, name);
    CHECK(strcmp(name, "blue ring") == 0, "%s", name);
    CHECK(fabs(d.score - color * kind) < 1e-12, "%g, not %g", d.score, color * kind);
    CHECK(d.box.at[0] == 0.5 && fabs(d.box.at[3] - 1.0 / (1.0 + exp(1.0))) < 1e-12, "a box");
    outputs[0] = NAN;
    CHECK(detection_of_outputs(&c.model, outputs).score == 0.0, "a score that is no number");
}

/* ------------------------------------------------------------------ folder ----- */

typedef struct folder_case {
    temp_folder folder;
    char path[256];
    training_config config;
    detection_data data;
    float *values;
    transformer_map map;
} folder_case;

static bool write_folder(const folder_case *f, const float *values, mha_dtype type)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const scene_model_content content = {
        .config = &f->config.model, .values = values, .type = type, .scale = &f->data.scale};
    return CHECK(scene_model_write(&detector_kind, f->path, &content, message) == MHA_OK, "%s",
                 message);
}

/* A model with random parameters. */
static bool setup(folder_case *f, mha_dtype type)
{
    test_random random = {test_seed(5)};
    *f = (folder_case){.folder = temp_folder_new(), .config = config_of()};
    detection_data_init(&f->data);
    transformer_map_fill(&f->map, &f->config.model);
    f->values = malloc(f->map.count * sizeof *f->values);
    transformer_init(&f->config.model, 3, f->values);
    for (size_t n = 0; n < f->map.count; n++)
        f->values[n] += 0.05f * test_random_normal(&random);
    snprintf(f->path, sizeof f->path, "%s", temp_path(&f->folder, "model"));
    return write_folder(f, f->values, type);
}

static void teardown(folder_case *f)
{
    temp_folder_free(&f->folder);
    free(f->values);
}

static scene_model *load(const folder_case *f)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    scene_model *const m = scene_model_load(&detector_kind, f->path, MHA_EXACT, NULL, message);
    CHECK(m != NULL, "%s", message);
    return m;
}

/* What is found is what the network says of the same picture, also among others. */
static void folders_find_what_the_network_says(void)
{
    folder_case f;
    if (!setup(&f, MHA_F32))
        return;
    scene_model *const m = load(&f);
    batch *const b = detection_batch(&f.config.model, &f.data.scale, 1, CORPUS_TEST, 0, 6, NULL);
    static float outputs[6 * QUERIES * OUTPUTS];
    network_loss loss;
    CHECK(m && memcmp(&m->config, &f.config.model, sizeof m->config) == 0, "other sizes");
    CHECK(m && memcmp(m->values, f.values, f.map.count * sizeof *f.values) == 0, "other values");
    CHECK(m && network_forward(m->network, b, &(network_mode){.outputs = outputs}, &loss) == MHA_OK,
          "network");
    for (int n = 0; m && n < 6; n++) {
        detection found[QUERIES];
        CHECK(detector_find(m, b->pixels + (size_t)n * b->picture_floats, found) == MHA_OK, "find");
        for (int q = 0; q < QUERIES; q++) {
            const detection wanted =
                detection_of_outputs(&m->config, outputs + (n * QUERIES + q) * OUTPUTS);
            CHECK(found[q].class == wanted.class && found[q].score == wanted.score &&
                      memcmp(&found[q].box, &wanted.box, sizeof wanted.box) == 0,
                  "query %d of %d", q, n);
        }
    }
    batch_free(b);
    scene_model_free(m);
    teardown(&f);
}

static void damaged_configurations_are_refused(void)
{
    static const folder_damage cases[] = {
        {"config.json", "mha_detector", "mha_captions", "\"model_type\" is not \"mha_detector\""},
        {"config.json", "\"hidden_size\": 32", "\"hidden_size\": 2048", "another shape"},
        {"config.json", "\"hidden_size\": 32", "\"hidden_size\": 33", "multiple of the 2 heads"},
        {"config.json", "\"decoder_layers\": 2", "\"decoder_layers\": 3", "there is no tensor"},
        {"config.json", "\"num_queries\": 5", "\"num_queries\": 6", "another shape"},
        {"config.json", "\"num_queries\": 5", "\"num_queries\": 65", "the number of queries"},
        {"config.json", "\"num_queries\": 5", "\"num_queries\": 0", "is not a positive integer"},
        {"config.json", "\"num_channels\": 3", "\"num_channels\": 1", "\"num_channels\" is not 3"},
        {"config.json", "\"square\"", "\"rhombus\"", "\"kinds\" is not the list"},
        {"config.json", "\"red\",", "", "\"colors\" is not the list"},
        {"config.json", "{", "[", "config.json"},
        {"preprocessor_config.json", "\"image_std\"", "\"image_deviation\"", "\"image_std\""},
        {"model.safetensors", "detector.bias", "detector.bios", "there is no tensor"},
        {"model.safetensors", "decoder.queries", "decoder.answers", "there is no tensor"},
    };
    folder_case f;
    if (setup(&f, MHA_F16))
        scene_folder_damages(&detector_kind, f.path, cases, sizeof cases / sizeof cases[0]);
    teardown(&f);
}

static void cut_and_strange_weights_are_refused(void)
{
    folder_case f;
    if (setup(&f, MHA_F16))
        scene_folder_cuts(&detector_kind, f.path);
    teardown(&f);
}

static void find_something(const scene_model *model)
{
    static const float pixels[SCENE_CHANNELS * SCENE_PIXELS];
    detection found[64];
    detector_find(model, pixels, found);
}

static void changed_bytes_do_no_harm(void)
{
    folder_case f;
    if (setup(&f, MHA_F16))
        scene_folder_bytes(&detector_kind, f.path, 150, find_something);
    teardown(&f);
}

/* ------------------------------------------------------------------- study ----- */

enum { STUDIED = 70, PATCHES = 36 };

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

/* Counts of the test's own, one scene at a time. A thing is found if a query says it, and the one
 * of highest score counts. */
typedef struct counts {
    int things, right, of_query[QUERIES];
    double x[QUERIES], heads[4], control_heads;
    int scenes;
} counts;

static int query_of(const detection *found, const scene_shape *shape)
{
    const double side = SCENE_SIDE;
    const box truth = {{(shape->box.left + shape->box.right) / 2.0 / side,
                        (shape->box.top + shape->box.bottom) / 2.0 / side,
                        (shape->box.right - shape->box.left) / side,
                        (shape->box.bottom - shape->box.top) / side}};
    int best = -1;
    for (int q = 0; q < QUERIES; q++)
        if (found[q].class == (int)shape->color * SCENE_KINDS + (int)shape->kind &&
            box_iou(&found[q].box, &truth) >= 0.5 &&
            (best < 0 || found[q].score > found[best].score))
            best = q;
    return best;
}

static void count_scene(counts *all, const scene_model *m, int number)
{
    static float weights[QUERIES * 4 * PATCHES];
    scene s;
    detection found[QUERIES];
    double hits[4] = {0};
    int known = 0;
    batch *const b = detection_batch(&m->config, &m->scale, 2, CORPUS_TRAIN, number, 1, &s);
    CHECK(detector_find(m, b->pixels, found) == MHA_OK, "find");
    CHECK(detector_weights(m, b->pixels, weights) == MHA_OK, "weights");
    all->things += s.count;
    for (int k = 0; k < s.count; k++) {
        const int q = query_of(found, &s.shapes[k]);
        if (q < 0)
            continue;
        known++;
        all->right++;
        all->of_query[q]++;
        all->x[q] += found[q].box.at[0];
        for (int head = 0; head < 4; head++) {
            const float *const own = weights + (q * 4 + head) * PATCHES;
            int best = 0;
            for (int patch = 1; patch < PATCHES; patch++)
                best = own[patch] > own[best] ? patch : best;
            hits[head] += patch_shows(&s, best, k);
        }
    }
    all->scenes += known > 0;
    for (int head = 0; head < 4 && known > 0; head++)
        all->heads[head] += hits[head] / known;
    batch_free(b);
}

/* Always the same scenes. */
static batch *same_scenes(training_data *base, const training_config *config, int64_t number)
{
    (void)number;
    const detection_data *const d = (const detection_data *)base;
    return detection_batch(&config->model, &d->scale, 2, CORPUS_TRAIN, 0, config->batch, NULL);
}

/* A model that has learnt some scenes by heart, so that it finds what is in these. */
static bool train_by_heart(folder_case *f)
{
    f->data.base.step = same_scenes;
    f->config.steps = 200;
    training *const t = train_steps(&f->config, &f->data, f->config.steps, NULL);
    const float *const losses = training_get_history(t).losses;
    CHECK(losses[0] > 4.0f && losses[199] < 1.0f, "loss %g, then %g", (double)losses[0],
          (double)losses[199]);
    const bool fine = write_folder(f, training_values(t), MHA_F32);
    training_free(t);
    return fine;
}

static void studies_count(void)
{
    folder_case f;
    detection_study study;
    counts all = {.things = 0};
    if (!setup(&f, MHA_F32) || !train_by_heart(&f))
        return;
    scene_model *const m = load(&f);
    for (int n = 0; m && n < STUDIED; n++)
        count_scene(&all, m, n);
    CHECK(m && detection_study_measure(&study, m, 2, CORPUS_TRAIN, STUDIED) == MHA_OK, "no study");
    CHECK(all.right > 15, "only %d of %d are found", all.right, all.things);
    CHECK(study.things == all.things && study.right == all.right &&
              study.pointing.rows == all.right && study.queries == QUERIES,
          "%d of %d", (int)study.right, (int)study.things);
    for (int q = 0; q < QUERIES; q++)
        CHECK(study.of_query[q].right == all.of_query[q] &&
                  (all.of_query[q] == 0 ||
                   fabs(study.of_query[q].x - all.x[q] / all.of_query[q]) < 1e-9),
              "query %d", q);
    for (int head = 0; head < 4; head++)
        CHECK(fabs(study.pointing.shares[head].mean - all.heads[head] / all.scenes) < 1e-9,
              "head %d: %g, not %g", head, study.pointing.shares[head].mean,
              all.heads[head] / all.scenes);
    CHECK(study.pointing.control.mean > 0.0 && study.pointing.control.mean <= 1.0, "control");
    double sum = 0.0;
    int known = 0;
    for (int n = 0; n < SCENE_THINGS; n++) {
        known += study.class_things[n] > 0;
        sum += study.class_things[n] > 0 ? study.of_class[n] : 0.0;
        CHECK((study.class_things[n] > 0) == !isnan(study.of_class[n]), "class %d", n);
    }
    CHECK(fabs(study.mean - sum / known) < 1e-12 && study.mean > 0.0, "mean %g", study.mean);
    detection_study_free(&study);
    scene_model_free(m);
    teardown(&f);
}

static void other_sizes_are_not_measured(void)
{
    folder_case f;
    detection_study study;
    if (!setup(&f, MHA_F32))
        return;
    f.config.model.vision.side = 46;
    f.config.model.vision.places = VISION_SINES;
    write_folder(&f, f.values, MHA_F32);
    scene_model *const m = load(&f);
    CHECK(m && detection_study_measure(&study, m, 2, CORPUS_TEST, 4) == MHA_ERR_SHAPE, "measured");
    detection_study_free(&study);
    scene_model_free(m);
    teardown(&f);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(batches_are_the_scenes);
    RUN(training_reaches_a_loss);
    RUN(settings_are_those_of_detectors);
    RUN(wrong_settings_are_refused);
    RUN(precision_is_the_definition);
    RUN(precision_is_known);
    RUN(outputs_become_detections);
    RUN(folders_find_what_the_network_says);
    RUN(damaged_configurations_are_refused);
    RUN(cut_and_strange_weights_are_refused);
    RUN(changed_bytes_do_no_harm);
    RUN(studies_count);
    RUN(other_sizes_are_not_measured);
    return test_end();
}
