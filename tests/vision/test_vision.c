/* SPDX-License-Identifier: MIT */
/*
 * Pictures as data of a training, random changes, and the folder of a classifier: what each change
 * does, that orders repeat and cover the set, that a training reaches a fixed loss with the same
 * bits for any number of threads and after an interruption, and that libmha_model computes the
 * logits of the network from the folder.
 */
#include "support/test.h"

#include <math.h>
#include <mha/mha_model.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_files.h"
#include "translator/network.h"
#include "vision/classes.h"
#include "vision/confusion.h"
#include "vision/vision_data.h"
#include "vision/vision_folder.h"

enum { SIDE = 8, CLASSES = 4, COUNT = 200 };

/* ---------------------------------------------------------------- pictures ----- */

/* Class n has a bright quarter, number n, in noise. */
static bool make_set(picture_set *set, int channels, ptrdiff_t count, uint64_t seed)
{
    test_random random = {seed};
    *set = (picture_set){.rows = SIDE, .columns = SIDE, .channels = channels};
    if (!CHECK(picture_set_allocate(set, count, CLASSES), "no memory"))
        return false;
    picture_set_number_classes(set);
    for (ptrdiff_t n = 0; n < count; n++) {
        const int class = (int)(n % CLASSES);
        set->labels[n] = (uint16_t) class;
        for (int k = 0; k < channels * SIDE * SIDE; k++) {
            const int y = k / SIDE % SIDE, x = k % SIDE;
            const bool bright = y / (SIDE / 2) == class / 2 && x / (SIDE / 2) == class % 2;
            set->pixels[n * channels * SIDE * SIDE + k] =
                (uint8_t)(test_random_below(&random, 100) + (bright ? 100 : 0));
        }
    }
    return true;
}

static training_config config_of(const vision_data *data)
{
    training_config c = training_vision_defaults();
    c.model.width = 16;
    c.model.heads = 2;
    c.model.ff_width = 32;
    c.model.layers[TRANSFORMER_SOURCE] = 2;
    c.model.vision.patch = 3;
    c.model.vision.stride = 2;
    c.steps = 150;
    c.batch = 20;
    c.warm_up = 6;
    c.learning_rate = 5e-3;
    c.crop = 1;
    c.flip = 0.0;
    c.ema = 0.9;
    vision_data_configure(data, &c.model);
    return c;
}

/* ----------------------------------------------------------------- changes ----- */

static void changes_do_what_they_say(void)
{
    uint8_t bytes[SIDE * SIDE];
    float to[SIDE * SIDE];
    pixel_scale scale = {.mean = {0.5f}, .deviation = {0.25f}};
    rng r = {1};
    pixel_scale_fill(&scale, 1);
    for (int n = 0; n < SIDE * SIDE; n++)
        bytes[n] = (uint8_t)n;
    const augmentation moved = {.down = 2, .right = -1};
    augment(&moved, &r, bytes, 1, SIDE, &scale, to);
    CHECK(to[2 * SIDE] == scale.table[0][1] && to[SIDE] == scale.table[0][0] &&
              to[3 * SIDE + 7] == scale.table[0][0] && to[7 * SIDE + 6] == scale.table[0][47],
          "moved");
    CHECK(fabsf(scale.table[0][255] - 2.0f) < 1e-6f && scale.table[0][0] == -2.0f, "scale");
    const augmentation mirrored = {.flip = true};
    augment(&mirrored, &r, bytes, 1, SIDE, &scale, to);
    CHECK(to[0] == scale.table[0][7] && to[SIDE + 2] == scale.table[0][13], "mirrored");
    const augmentation erased = {.top = 1, .left = 2, .height = 3, .width = 4};
    augment(&erased, &r, bytes, 1, SIDE, &scale, to);
    int changed = 0;
    for (int n = 0; n < SIDE * SIDE; n++) {
        const bool inside = n / SIDE >= 1 && n / SIDE < 4 && n % SIDE >= 2 && n % SIDE < 6;
        changed += to[n] != scale.table[0][n];
        CHECK(inside || to[n] == scale.table[0][n], "pixel %d is erased", n);
    }
    CHECK(changed == 12, "%d pixels are noise", changed);
}

static void draws_are_within_bounds(void)
{
    int moved = 0, flipped = 0, erased = 0;
    double shares = 0.0;
    for (uint64_t n = 0; n < 4000; n++) {
        rng r = rng_for(3, n);
        const augmentation a = augmentation_draw(&r, SIDE, 2, 0.5, 0.25);
        CHECK(abs(a.down) <= 2 && abs(a.right) <= 2, "moved by %d, %d", a.down, a.right);
        CHECK(a.height == 0 || (a.top >= 0 && a.left >= 0 && a.height >= 1 && a.width >= 1 &&
                                a.top + a.height <= SIDE && a.left + a.width <= SIDE),
              "a rectangle outside");
        moved += a.down == 2 && a.right == -2;
        flipped += a.flip;
        erased += a.height > 0;
        const double share = mix_share_draw(&r, 0.2);
        CHECK(share >= 0.0 && share <= 0.5, "share %g", share);
        shares += share;
    }
    CHECK(abs(moved - 160) < 60 && abs(flipped - 2000) < 200 && abs(erased - 1000) < 150,
          "%d moved, %d flipped, %d erased", moved, flipped, erased);
    /* Beta(0.2, 0.2) is closer to 0 or 1 than the uniform distribution, whose mean would be 0.25.
     */
    CHECK(shares / 4000 > 0.05 && shares / 4000 < 0.15, "mean share %g", shares / 4000);
}

/* -------------------------------------------------------------------- data ----- */

/* Every picture that is not for validation comes once in an epoch; steps repeat; epochs differ. */
static void epochs_cover_the_set(void)
{
    picture_set train, test = {0};
    char message[PICTURE_MESSAGE_MAX];
    if (!make_set(&train, 1, COUNT, 5))
        return;
    for (ptrdiff_t n = 0; n < COUNT; n++)
        train.pixels[n * SIDE * SIDE] = (uint8_t)n; /* a mark to know it by */
    vision_data *const data = vision_data_create(&train, &test, message);
    training_config c = config_of(data);
    training_data *const base = vision_data_base(data);
    int seen[256] = {0}, orders = 0;
    c.crop = 0;
    c.erase = 0.0;
    CHECK(base->valid == 20, "%lld for validation", (long long)base->valid);
    for (int64_t step = 0; step < 9; step++) {
        batch *const b = base->step(base, &c, step), *const later = base->step(base, &c, step + 9);
        batch *const again = base->step(base, &c, step);
        CHECK(memcmp(b->pixels, again->pixels, 20 * b->picture_floats * sizeof(float)) == 0,
              "step %lld does not repeat", (long long)step);
        orders += memcmp(b->pixels, later->pixels, 20 * b->picture_floats * sizeof(float)) != 0;
        for (int n = 0; n < 20; n++)
            for (int k = 0; k < 256; k++)
                seen[k] += b->pixels[(size_t)n * b->picture_floats] ==
                           vision_data_scale(data)->table[0][k];
        batch_free(b);
        batch_free(later);
        batch_free(again);
    }
    batch *const valid = base->some(base, &c, CORPUS_VALID, 0, 20);
    for (int n = 0; n < 20; n++)
        for (int k = 0; k < 256; k++)
            seen[k] += valid->pixels[(size_t)n * valid->picture_floats] ==
                       vision_data_scale(data)->table[0][k];
    for (int k = 0; k < COUNT; k++)
        CHECK(seen[k] == 1, "picture %d is seen %d times", k, seen[k]);
    CHECK(orders == 9, "epochs have one order");
    batch_free(valid);
    vision_data_free(data);
    picture_set_free(&train);
}

static void mixed_pictures_are_sums(void)
{
    picture_set train, test = {0};
    char message[PICTURE_MESSAGE_MAX];
    if (!make_set(&train, 1, COUNT, 5))
        return;
    vision_data *const data = vision_data_create(&train, &test, message);
    training_config c = config_of(data);
    training_data *const base = vision_data_base(data);
    batch *const plain = base->step(base, &c, 3);
    c.mix_up = 0.4;
    batch *const mixed = base->step(base, &c, 3);
    for (int n = 0; n < 20; n++) {
        const int other = (n + 1) % 20;
        const float share = mixed->shares[n];
        CHECK(mixed->expected[n] == plain->expected[n] &&
                  mixed->others[n] == plain->expected[other] && share >= 0.0f && share <= 0.5f,
              "picture %d", n);
        for (size_t k = 0; k < plain->picture_floats; k++) {
            const float a = plain->pixels[(size_t)n * plain->picture_floats + k];
            const float b = plain->pixels[(size_t)other * plain->picture_floats + k];
            CHECK(fabsf(mixed->pixels[(size_t)n * plain->picture_floats + k] -
                        ((1.0f - share) * a + share * b)) < 1e-5f,
                  "pixel %zu of %d", k, n);
        }
    }
    batch_free(plain);
    batch_free(mixed);
    vision_data_free(data);
    picture_set_free(&train);
}

static void unfit_sets_are_refused(void)
{
    picture_set set, none = {0};
    char message[PICTURE_MESSAGE_MAX];
    if (!make_set(&set, 1, 9, 5))
        return;
    CHECK(!vision_data_create(&set, &none, message) && strstr(message, "at least 10"), "%s",
          message);
    set.columns = SIDE / 2;
    CHECK(!vision_data_create(&set, &none, message) && strstr(message, "8 x 4"), "%s", message);
    picture_set_free(&set);
}

/* ---------------------------------------------------------------- training ----- */

static training *train_steps(const training_config *c, vision_data *data, int64_t steps,
                             mha_pool *pool)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    training *const t = training_create(c, vision_data_base(data), pool, message);
    training_result result;
    for (int64_t n = 0; CHECK(t != NULL, "%s", message) && n < steps; n++)
        CHECK(training_step(t, &result) == MHA_OK && result.items == c->batch, "step");
    return t;
}

/* A fixed loss; the same bits with threads, and after a checkpoint. */
static void training_reaches_a_loss(void)
{
    picture_set train, test;
    char message[TRANSFORMER_MESSAGE_MAX];
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "checkpoint.safetensors");
    if (!make_set(&train, 1, COUNT, 5) || !make_set(&test, 1, 80, 6))
        return;
    vision_data *const data = vision_data_create(&train, &test, message);
    training_config c = config_of(data);
    c.mix_up = 0.2;
    c.dropout = 0.05;
    c.head_dropout = 0.1;
    c.micro_batches = 3;
    training *const whole = train_steps(&c, data, c.steps, NULL);
    training_score score;
    CHECK(training_evaluate(whole, CORPUS_TEST, 80, &score) == MHA_OK && score.words == 80,
          "no score");
    CHECK(score.loss < 0.3 && score.words_right > 0.98, "loss %g, %g right", score.loss,
          score.words_right);
    mha_pool *pool = NULL;
    mha_pool_create(&pool, 3);
    training *const half = train_steps(&c, data, c.steps / 2, pool);
    CHECK(training_save(half, path, message) == MHA_OK, "%s", message);
    training *const rest = training_load(path, vision_data_base(data), pool, message);
    training_result result;
    for (int64_t n = c.steps / 2; CHECK(rest != NULL, "%s", message) && n < c.steps; n++)
        training_step(rest, &result);
    transformer_map map;
    transformer_map_fill(&map, &c.model);
    CHECK(memcmp(training_values(whole), training_values(rest), map.count * sizeof(float)) == 0,
          "other bits");
    train.labels[0]++;
    vision_data *const changed = vision_data_create(&train, &test, message);
    CHECK(!training_load(path, vision_data_base(changed), NULL, message) &&
              strstr(message, "other data"),
          "%s", message);
    CHECK(!training_load(path, NULL, NULL, message) && strstr(message, "on pictures"), "%s",
          message);
    training_free(whole);
    training_free(half);
    training_free(rest);
    vision_data_free(data);
    vision_data_free(changed);
    mha_pool_free(pool);
    picture_set_free(&train);
    picture_set_free(&test);
    temp_folder_free(&folder);
}

/* ------------------------------------------------------------------ folder ----- */

/* The mean loss of the network, and that of the logits of the model of the folder. */
static void compare_losses(const training_config *c, const float *values, const mha_model *model,
                           training_data *base)
{
    enum { AT_ONCE = 12 };
    const network_mode mode = {.training = false};
    float logits[AT_ONCE * CLASSES];
    network_loss loss;
    batch *const b = base->some(base, c, CORPUS_VALID, 0, AT_ONCE);
    network *const net = network_create(&c->model, values, MHA_EXACT, NULL);
    const mha_model_call call = {
        .size = sizeof call, .B = AT_ONCE, .pixels = b->pixels, .labels = logits};
    CHECK(network_forward(net, b, &mode, &loss) == MHA_OK, "network");
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "model");
    for (int n = 0; n < AT_ONCE; n++) {
        double sum = 0.0;
        for (int k = 0; k < CLASSES; k++)
            sum += exp((double)logits[n * CLASSES + k]);
        const double wanted = log(sum) - (double)logits[n * CLASSES + b->expected[n]];
        CHECK(fabs(network_scores(net)[n].loss - wanted) < 1e-5, "picture %d: %g, not %g", n,
              network_scores(net)[n].loss, wanted);
    }
    network_free(net);
    batch_free(b);
}

static void folders_give_the_same_logits(void)
{
    static const picture_class_name names[CLASSES] = {"a", "b c", "\"d\"", "e"};
    for (int n = 0; n < 8; n++) {
        picture_set train, test = {0};
        char message[TRANSFORMER_MESSAGE_MAX] = "";
        const temp_folder folder = temp_folder_new();
        const char *const path = temp_path(&folder, "model");
        if (!make_set(&train, n % 2 ? 3 : 1, COUNT, 9))
            return;
        vision_data *const data = vision_data_create(&train, &test, message);
        training_config c = config_of(data);
        c.model.vision.stride = n & 2 ? 2 : c.model.vision.patch;
        c.model.vision.pooling = n & 4 ? VISION_MEAN : VISION_CLASS;
        c.model.vision.places = n % 3 ? VISION_LEARNED : VISION_SINES;
        vision_data_configure(data, &c.model);
        transformer_map map;
        transformer_map_fill(&map, &c.model);
        float *const values = malloc(map.count * sizeof *values);
        transformer_init(&c.model, 4, values);
        const vision_content content = {.config = &c.model,
                                        .values = values,
                                        .type = MHA_F32,
                                        .scale = vision_data_scale(data),
                                        .names = names};
        CHECK(vision_folder_write(path, &content, message) == MHA_OK, "%s", message);
        const mha_model_config config = {
            .size = sizeof config, .message = message, .message_size = sizeof message};
        mha_model *model = NULL;
        if (CHECK(mha_model_open(&model, path, &config) == MHA_OK, "%s", message)) {
            mha_model_info info = {.size = sizeof info};
            mha_model_get_info(model, &info);
            CHECK(strcmp(info.family, (n & 4) || (n & 2) ? "mha_vit" : "vit") == 0 &&
                      info.labels == CLASSES && info.positions == c.model.positions,
                  "%s, %td labels, %td tokens", info.family, info.labels, info.positions);
            compare_losses(&c, values, model, vision_data_base(data));
            picture_class_name read[CLASSES];
            pixel_scale scale;
            CHECK(classes_read(path, read, CLASSES, message) && strcmp(read[1], "b c") == 0 &&
                      strcmp(read[2], "\"d\"") == 0,
                  "%s: %s", message, read[2]);
            CHECK(classes_read_scale(path, &scale, train.channels, message) &&
                      memcmp(scale.table[0], vision_data_scale(data)->table[0],
                             sizeof scale.table[0]) == 0,
                  "%s: another scale", message);
            CHECK(!classes_read_scale(path, &scale, 2, message) && strstr(message, "2 numbers"),
                  "%s", message);
        }
        mha_model_free(model);
        free(values);
        vision_data_free(data);
        picture_set_free(&train);
        temp_folder_free(&folder);
    }
}

static void confusion_counts(void)
{
    static const float logits[][3] = {{1, 0, 0}, {0, 1, 1}, {0, 0, 1}, {2, 3, 1}};
    static const int classes[] = {0, 2, 2, 0};
    confusion c;
    CHECK(confusion_init(&c, 3), "no memory");
    for (int n = 0; n < 4; n++)
        confusion_add(&c, classes[n], logits[n]);
    CHECK(confusion_total(&c, -1) == 4 && confusion_right(&c, -1) == 2, "all");
    CHECK(confusion_total(&c, 2) == 2 && confusion_right(&c, 2) == 1 && c.counts[2 * 3 + 1] == 1,
          "class 2");
    CHECK(confusion_total(&c, 1) == 0 && c.counts[1] == 1, "class 1");
    confusion_free(&c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(changes_do_what_they_say);
    RUN(draws_are_within_bounds);
    RUN(epochs_cover_the_set);
    RUN(mixed_pictures_are_sums);
    RUN(unfit_sets_are_refused);
    RUN(training_reaches_a_loss);
    RUN(folders_give_the_same_logits);
    RUN(confusion_counts);
    return test_end();
}
