/* SPDX-License-Identifier: MIT */
/* Tests of the transformer's layout, names and initial values, of its embedding and its norm. */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "translator/transformer.h"

static const transformer_config small = {
    .width = 24, .heads = 4, .ff_width = 40, .layers = {2, 3}, .words = {11, 13}, .positions = 30};

/* ----------------------------------------------------------------- map ----- */

static void tensors_fill_the_map(void)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    transformer_map map;
    transformer_map_fill(&map, &small);
    const int count = transformer_tensors(&small, list);
    CHECK(count == 6 + 2 * 16 + 3 * 26, "%d tensors", count);
    size_t at = 0;
    for (int n = 0; n < count; n++) {
        const size_t columns = list[n].rank == 2 ? (size_t)list[n].shape[1] : 1;
        CHECK(list[n].at == at, "%s at %zu, not %zu", list[n].name, list[n].at, at);
        CHECK(list[n].count == (size_t)list[n].shape[0] * columns, "%s", list[n].name);
        at += list[n].count;
        for (int other = 0; other < n; other++)
            CHECK(strcmp(list[n].name, list[other].name) != 0, "%s twice", list[n].name);
    }
    CHECK(at == map.count, "%zu of %zu", at, map.count);
}

static void the_largest_model_has_room_for_its_tensors(void)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    transformer_config large = small;
    large.layers[0] = large.layers[1] = TRANSFORMER_LAYERS_MAX;
    int count = transformer_tensors(&large, list);
    CHECK(count == TRANSFORMER_TENSORS_MAX - 2, "%d", count);
    CHECK(strcmp(list[count - 1].name, "decoder.layer_norm.bias") == 0, "%s", list[count - 1].name);
    large.form = FORM_CAPTIONS;
    large.words[0] = 0;
    large.vision =
        (vision_shape){.side = 8, .channels = 3, .patch = 4, .stride = 4, .pooling = VISION_MEAN};
    count = transformer_tensors(&large, list);
    CHECK(count == TRANSFORMER_TENSORS_MAX, "%d", count);
    CHECK(strcmp(list[count - 1].name, "decoder.layer_norm.bias") == 0, "%s", list[count - 1].name);
}

typedef struct named_place {
    const char *name;
    size_t at;
    int rank, rows, columns;
    parameter_kind kind;
} named_place;

static void names_stand_for_places(void)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    transformer_map map;
    transformer_map_fill(&map, &small);
    const layer_at *const encoder = map.layers[TRANSFORMER_SOURCE];
    const layer_at *const decoder = map.layers[TRANSFORMER_TARGET];
    const named_place places[] = {
        {"encoder.embed_tokens.weight", map.embedding[0], 2, 11, 24, PARAMETER_EMBEDDING},
        {"decoder.embed_tokens.weight", map.embedding[1], 2, 13, 24, PARAMETER_EMBEDDING},
        {"encoder.layers.1.self_attn.q_proj.weight", encoder[1].self.q.weight, 2, 24, 24,
         PARAMETER_MATRIX},
        {"decoder.layers.0.encoder_attn.q_proj.weight", decoder[0].cross.q.weight, 2, 24, 24,
         PARAMETER_MATRIX},
        {"decoder.layers.2.encoder_attn.k_proj.bias", decoder[2].cross.k.bias, 1, 24, 1,
         PARAMETER_BIAS},
        {"decoder.layers.2.self_attn.out_proj.bias", decoder[2].self.o.bias, 1, 24, 1,
         PARAMETER_BIAS},
        {"decoder.layers.1.encoder_attn_layer_norm.weight", decoder[1].cross.norm.weight, 1, 24, 1,
         PARAMETER_NORM},
        {"encoder.layers.0.fc1.weight", encoder[0].ff.in.weight, 2, 40, 24, PARAMETER_MATRIX},
        {"encoder.layers.0.fc2.weight", encoder[0].ff.out.weight, 2, 24, 40, PARAMETER_MATRIX},
        {"encoder.layers.0.final_layer_norm.bias", encoder[0].ff.norm.bias, 1, 24, 1,
         PARAMETER_BIAS},
        {"encoder.layer_norm.weight", map.norm[0].weight, 1, 24, 1, PARAMETER_NORM},
    };
    const int count = transformer_tensors(&small, list);
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        const transformer_tensor *found = NULL;
        for (int n = 0; n < count; n++)
            if (strcmp(list[n].name, places[p].name) == 0)
                found = &list[n];
        if (CHECK(found != NULL, "no %s", places[p].name))
            CHECK(found->at == places[p].at && found->rank == places[p].rank &&
                      found->shape[0] == places[p].rows && found->shape[1] == places[p].columns &&
                      found->kind == places[p].kind,
                  "%s", places[p].name);
    }
}

static void impossible_models_are_refused(void)
{
    char message[TRANSFORMER_MESSAGE_MAX];
    CHECK(transformer_config_check(&small, message), "%s", message);
    transformer_config bad[14];
    size_t count = 0;
    for (; count < sizeof bad / sizeof bad[0]; count++)
        bad[count] = small;
    bad[0].width = 0;
    bad[1].width = 25, bad[1].heads = 5;
    bad[2].heads = 5;
    bad[3].heads = 0;
    bad[4].ff_width = 0;
    bad[5].layers[0] = 0;
    bad[6].layers[1] = TRANSFORMER_LAYERS_MAX + 1;
    bad[7].words[0] = WORDS_SPECIAL;
    bad[8].words[1] = -1;
    bad[9].positions = 1; /* no room for a word and WORD_END */
    bad[10].width = 1 << 30;
    bad[11].words[0] = 1 << 30;
    bad[12].width = 4096, bad[12].heads = 2;
    bad[13].heads = -4;
    for (size_t n = 0; n < count; n++) {
        message[0] = '\0';
        CHECK(!transformer_config_check(&bad[n], message), "configuration %zu is accepted", n);
        CHECK(strlen(message) > 20, "configuration %zu: \"%s\"", n, message);
    }
}

static void layers_see_their_weights(void)
{
    transformer_map map;
    transformer_map_fill(&map, &small);
    float *const values = malloc(2 * map.count * sizeof *values);
    float *const gradients = values + map.count;
    const attention_at *const at = &map.layers[TRANSFORMER_TARGET][1].cross;
    const mha_layer_weights w = transformer_layer_weights(&small, at, values);
    const mha_layer_gradients g = transformer_layer_gradients(&small, at, gradients);
    CHECK(w.q.data == values + at->q.weight && w.k.data == values + at->k.weight &&
              w.v.data == values + at->v.weight && w.o.data == values + at->o.weight,
          "weights");
    CHECK(w.q_bias.data == values + at->q.bias && w.k_bias.data == values + at->k.bias &&
              w.v_bias.data == values + at->v.bias && w.o_bias.data == values + at->o.bias,
          "biases");
    CHECK(g.q.data == gradients + at->q.weight && g.k.data == gradients + at->k.weight &&
              g.v.data == gradients + at->v.weight && g.o.data == gradients + at->o.weight,
          "gradients of weights");
    CHECK(g.q_bias == gradients + at->q.bias && g.k_bias == gradients + at->k.bias &&
              g.v_bias == gradients + at->v.bias && g.o_bias == gradients + at->o.bias,
          "gradients of biases");
    CHECK(w.q.out_stride == 24 && w.q.in_stride == 1 && g.o.out_stride == 24 && g.o.in_stride == 1,
          "strides");
    free(values);
}

/* ---------------------------------------------------------------- init ----- */

static void check_spread(const transformer_tensor *tensor, const float *values, double variance)
{
    double sum = 0.0, squares = 0.0, largest = 0.0;
    for (size_t n = 0; n < tensor->count; n++) {
        sum += (double)values[n];
        squares += (double)values[n] * (double)values[n];
        largest = fmax(largest, fabs((double)values[n]));
    }
    const double n = (double)tensor->count, deviation = sqrt(variance);
    CHECK(fabs(sum / n) < 5.0 * deviation / sqrt(n), "%s: mean %g", tensor->name, sum / n);
    CHECK(fabs(squares / n / variance - 1.0) < 8.0 / sqrt(n), "%s: variance %g, not %g",
          tensor->name, squares / n, variance);
    const double most = tensor->kind == PARAMETER_MATRIX ? sqrt(3.0) * deviation : 6.0 * deviation;
    CHECK(largest <= most * (1.0 + 1e-6), "%s: %g", tensor->name, largest);
}

static void first_values_have_their_spread(void)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    transformer_map map;
    transformer_map_fill(&map, &small);
    float *const values = malloc(map.count * sizeof *values);
    transformer_init(&small, 7, values);
    const int count = transformer_tensors(&small, list);
    for (int n = 0; n < count; n++) {
        const transformer_tensor *const t = &list[n];
        if (t->kind == PARAMETER_EMBEDDING)
            check_spread(t, values + t->at, 1.0 / t->shape[1]);
        else if (t->kind == PARAMETER_MATRIX)
            check_spread(t, values + t->at, 2.0 / (t->shape[0] + t->shape[1]));
        else
            for (size_t k = 0; k < t->count; k++)
                CHECK(values[t->at + k] == (t->kind == PARAMETER_NORM ? 1.0f : 0.0f), "%s",
                      t->name);
    }
    free(values);
}

static void a_gain_is_of_queries_keys_and_values(void)
{
    static transformer_tensor list[TRANSFORMER_TENSORS_MAX];
    const transformer_config vision = {.form = FORM_VISION,
                                       .width = 8,
                                       .heads = 2,
                                       .ff_width = 16,
                                       .layers = {2, 0},
                                       .words = {0, 3},
                                       .positions = 4,
                                       .vision = {.side = 4,
                                                  .channels = 1,
                                                  .patch = 2,
                                                  .stride = 2,
                                                  .pooling = VISION_MEAN,
                                                  .places = VISION_LEARNED}};
    const transformer_config *const configs[] = {&small, &vision};
    for (int c = 0; c < 2; c++) {
        transformer_map map;
        int scaled = 0;
        transformer_map_fill(&map, configs[c]);
        float *const values = malloc(2 * map.count * sizeof *values), *const first =
                                                                          values + map.count;
        transformer_init(configs[c], 7, values);
        transformer_init(configs[c], 7, first);
        transformer_scale_attention(configs[c], 0.5, values);
        const int count = transformer_tensors(configs[c], list);
        for (int n = 0; n < count; n++) {
            const char *const name = list[n].name;
            const bool is_scaled =
                list[n].kind == PARAMETER_MATRIX &&
                (strstr(name, "q_proj") || strstr(name, "k_proj") || strstr(name, "v_proj") ||
                 strstr(name, "query") || strstr(name, "key") || strstr(name, "value"));
            scaled += is_scaled;
            for (size_t e = list[n].at; e < list[n].at + list[n].count; e++)
                if (!CHECK(values[e] == (is_scaled ? 0.5f : 1.0f) * first[e], "%s", name))
                    break;
        }
        const int *const layers = configs[c]->layers;
        CHECK(scaled == 3 * (layers[0] + 2 * layers[1]), "%d matrices", scaled);
        free(values);
    }
}

static void a_seed_is_one_model(void)
{
    transformer_map map;
    transformer_map_fill(&map, &small);
    float *const values = malloc(3 * map.count * sizeof *values);
    transformer_init(&small, 7, values);
    transformer_init(&small, 7, values + map.count);
    transformer_init(&small, 8, values + 2 * map.count);
    const size_t size = map.count * sizeof *values;
    CHECK(memcmp(values, values + map.count, size) == 0, "the same seed, other values");
    CHECK(memcmp(values, values + 2 * map.count, size) != 0, "another seed, the same values");
    const layer_at *const layers = map.layers[TRANSFORMER_SOURCE];
    CHECK(values[layers[0].self.q.weight] != values[layers[1].self.q.weight], "layers are alike");
    free(values);
}

/* ----------------------------------------------------------- embedding ----- */

static void embedding_is_the_formula(void)
{
    enum { ROWS = 9 };
    static const int words[ROWS] = {0, 3, 12, 3, 1, 5, 5, 11, 2};
    static const int positions[ROWS] = {0, 1, 2, 29, 0, 7, 8, 3, 28};
    test_random random = {test_seed(3)};
    float embedding[13 * 24], x[ROWS * 24], codes[30 * 24];
    for (int n = 0; n < 13 * 24; n++)
        embedding[n] = test_random_normal(&random);
    transformer_embed(&small, embedding, words, positions, ROWS, x);
    transformer_positions(&small, 0, 30, codes);
    for (int row = 0; row < ROWS; row++)
        for (int c = 0; c < 24; c++) {
            const double angle = positions[row] * pow(10000.0, -(double)(c / 2 * 2) / 24.0);
            const double code = c % 2 ? cos(angle) : sin(angle);
            const double wanted = (double)embedding[words[row] * 24 + c] * sqrt(24.0) + code;
            CHECK(fabs((double)x[row * 24 + c] - wanted) < 2e-6 * (1.0 + fabs(wanted)),
                  "row %d column %d: %g, not %g", row, c, (double)x[row * 24 + c], wanted);
            CHECK(fabs((double)codes[positions[row] * 24 + c] - code) < 1e-7, "code %d %d", row, c);
        }
}

/* ---------------------------------------------------------------- norm ----- */

enum { NORM_ROWS_MAX = 70, NORM_WIDTH_MAX = 131 };

typedef struct norm_case {
    ptrdiff_t rows;
    int width;
    float x[NORM_ROWS_MAX * NORM_WIDTH_MAX];
    float weight[NORM_WIDTH_MAX], bias[NORM_WIDTH_MAX];
} norm_case;

static void fill_case(norm_case *c, ptrdiff_t rows, int width)
{
    test_random random = {test_seed(5) + (uint64_t)width};
    c->rows = rows;
    c->width = width;
    for (ptrdiff_t n = 0; n < rows * width; n++)
        c->x[n] = 3.0f * test_random_normal(&random) + 2.0f;
    for (int n = 0; n < width; n++) {
        c->x[n] = 1.5f; /* row 0 has no variance */
        c->weight[n] = test_random_normal(&random);
        c->bias[n] = test_random_normal(&random);
    }
}

static void check_norm_row(const norm_case *c, ptrdiff_t row, const float *y, const float *stats)
{
    const float *const x = c->x + row * c->width;
    double mean = 0.0, variance = 0.0;
    for (int n = 0; n < c->width; n++)
        mean += (double)x[n] / c->width;
    for (int n = 0; n < c->width; n++)
        variance += ((double)x[n] - mean) * ((double)x[n] - mean) / c->width;
    const double inverse = 1.0 / sqrt(variance + 1e-5);
    CHECK(fabs((double)stats[0] - mean) < 1e-5, "mean %g, not %g", (double)stats[0], mean);
    CHECK(fabs((double)stats[1] / inverse - 1.0) < 1e-5, "%g, not %g", (double)stats[1], inverse);
    for (int n = 0; n < c->width; n++) {
        const double wanted = ((double)x[n] - mean) * inverse * (double)c->weight[n];
        CHECK(fabs((double)y[n] - wanted - (double)c->bias[n]) < 1e-5 * (1.0 + fabs(wanted)),
              "width %d row %td column %d: %g", c->width, row, n, (double)y[n]);
    }
}

static void norm_is_the_formula(void)
{
    static const int widths[] = {2, 7, 16, 24, 131};
    static norm_case c;
    static float y[NORM_ROWS_MAX * NORM_WIDTH_MAX], stats[2 * NORM_ROWS_MAX];
    for (size_t n = 0; n < sizeof widths / sizeof widths[0]; n++) {
        fill_case(&c, NORM_ROWS_MAX, widths[n]);
        transformer_norm(c.x, c.rows, c.width, c.weight, c.bias, y, stats, NULL);
        for (ptrdiff_t row = 0; row < c.rows; row++)
            check_norm_row(&c, row, y + row * c.width, stats + 2 * row);
    }
}

static void norm_has_the_same_bits_everywhere(void)
{
    static norm_case c;
    static float y[NORM_ROWS_MAX * NORM_WIDTH_MAX], again[NORM_ROWS_MAX * NORM_WIDTH_MAX];
    static float stats[2 * NORM_ROWS_MAX];
    fill_case(&c, NORM_ROWS_MAX, 24);
    const size_t size = (size_t)(c.rows * c.width) * sizeof *y;
    transformer_norm(c.x, c.rows, c.width, c.weight, c.bias, y, stats, NULL);
    mha_pool *pool;
    if (!CHECK(mha_pool_create(&pool, 3) == MHA_OK, "no pool"))
        return;
    transformer_norm(c.x, c.rows, c.width, c.weight, c.bias, again, NULL, pool);
    CHECK(memcmp(y, again, size) == 0, "three threads");
    memcpy(again, c.x, size);
    transformer_norm(again, c.rows, c.width, c.weight, c.bias, again, NULL, pool);
    CHECK(memcmp(y, again, size) == 0, "in place");
    transformer_norm(c.x + 5 * c.width, 1, c.width, c.weight, c.bias, again, NULL, pool);
    CHECK(memcmp(y + 5 * c.width, again, (size_t)c.width * sizeof *y) == 0, "a row alone");
    mha_pool_free(pool);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(tensors_fill_the_map);
    RUN(the_largest_model_has_room_for_its_tensors);
    RUN(names_stand_for_places);
    RUN(impossible_models_are_refused);
    RUN(layers_see_their_weights);
    RUN(first_values_have_their_spread);
    RUN(a_gain_is_of_queries_keys_and_values);
    RUN(a_seed_is_one_model);
    RUN(embedding_is_the_formula);
    RUN(norm_is_the_formula);
    RUN(norm_has_the_same_bits_everywhere);
    return test_end();
}
