/* SPDX-License-Identifier: MIT */
/*
 * Training on pairs of files, from text to a folder: a vocabulary is learnt, the pairs become ids,
 * a small model learns them by heart, and libmha_model, which has a forward pass of its own, opens
 * the folder that is written and agrees with the network.
 */
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/convert.h"
#include "support/temp_files.h"
#include "text/bpe_learn.h"
#include "text/unicode_library.h"
#include "translator/marian_folder.h"
#include "translator/text_data.h"
#include "translator/training_parts.h"

static const char pairs_text[] = "Hello.\tBonjour.\n"
                                 "I am tired.\tJe suis fatigué.\n"
                                 "I am tired.\tJe suis fatiguée.\n"
                                 "Where is the station?\tOù est la gare ?\n"
                                 "The cat sleeps.\tLe chat dort.\n"
                                 "The dog sleeps.\tLe chien dort.\n"
                                 "She loves him.\tElle l'aime.\n"
                                 "It costs 12 euros.\tÇa coûte 12 euros.\n";
enum { POSITIONS = 64, WORDS = 400 };

typedef struct text_case {
    temp_folder folder;
    pair_file pairs;
    bpe_learned learned;
    mha_tokenizer *tokenizer;
    text_data *data;
    text_counts counts[2];
} text_case;

static mha_status learn(text_case *c, char *message)
{
    const bpe_learn_options options = {.vocabulary_size = WORDS, .min_character_count = 1};
    bpe_learner *learner = NULL;
    mha_status status = bpe_learner_create(&learner, message, TRANSFORMER_MESSAGE_MAX);
    for (int64_t n = 0; n < c->pairs.count && status == MHA_OK; n++)
        for (int side = 0; side < TRANSFORMER_SIDES && status == MHA_OK; side++)
            status = bpe_learner_add(learner, c->pairs.pairs[n].text[side],
                                     c->pairs.pairs[n].length[side]);
    if (status == MHA_OK)
        status =
            bpe_learner_finish(learner, &options, &c->learned, message, TRANSFORMER_MESSAGE_MAX);
    if (status == MHA_OK)
        status = bpe_learned_open(&c->learned, &c->tokenizer, message, TRANSFORMER_MESSAGE_MAX);
    bpe_learner_free(learner);
    return status;
}

static bool setup(text_case *c, const char *text, int positions)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    if (!text_libraries_present()) {
        test_skip("this build has no tokenizers");
        return false;
    }
    *c = (text_case){.folder = temp_folder_new()};
    const char *const path = temp_path(&c->folder, "pairs.tsv");
    CHECK(file_make(path, text, strlen(text)), "write");
    mha_status status = pair_file_open(&c->pairs, path, NULL, message);
    if (status == MHA_OK)
        status = learn(c, message);
    if (status == MHA_OK)
        status = text_data_create(&c->data, &c->pairs, &c->pairs, c->tokenizer, positions, NULL,
                                  c->counts);
    return CHECK(status == MHA_OK, "%s %s", mha_status_string(status), message);
}

static void teardown(text_case *c)
{
    text_data_free(c->data);
    mha_tokenizer_free(c->tokenizer);
    bpe_learned_free(&c->learned);
    pair_file_close(&c->pairs);
    temp_folder_free(&c->folder);
}

static training_config small_config(const text_case *c)
{
    training_config config = training_text_defaults();
    const int words = (int)mha_tokenizer_size(c->tokenizer);
    config.model = (transformer_config){.form = FORM_MARIAN,
                                        .width = 32,
                                        .heads = 4,
                                        .ff_width = 64,
                                        .layers = {2, 2},
                                        .words = {words, words},
                                        .positions = POSITIONS};
    config.batch_tokens = 60;
    config.steps = 400;
    config.warm_up = 40;
    config.learning_rate = 4e-3;
    config.dropout = 0.0;
    config.label_smoothing = 0.0;
    config.ema = 0.9;
    return config;
}

/* ---------------------------------------------------------------- data ----- */

static void batches_are_the_texts(void)
{
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    const training_config config = small_config(&c);
    training_data *const data = text_data_base(c.data);
    batch *const b = data->some(data, &config, CORPUS_VALID, 3, 1);
    const int32_t begin = mha_tokenizer_mark(c.tokenizer, MHA_MARK_PAD);
    const int32_t end = mha_tokenizer_mark(c.tokenizer, MHA_MARK_END);
    char *text = NULL;
    CHECK(b->words[TRANSFORMER_SOURCE][b->rows[TRANSFORMER_SOURCE] - 1] == end, "source end");
    CHECK(b->words[TRANSFORMER_TARGET][0] == begin, "the decoder begins with <pad>");
    CHECK(b->expected[b->rows[TRANSFORMER_TARGET] - 1] == end, "target end");
    CHECK(mha_tokenizer_decode(c.tokenizer, b->expected, b->rows[TRANSFORMER_TARGET] - 1, 0, &text,
                               NULL) == MHA_OK &&
              strcmp(text, "Où est la gare ?") == 0,
          "\"%s\"", text);
    mha_text_free(text);
    batch_free(b);
    teardown(&c);
}

/* How many of these characters are on a side of the first step, whose batch has all pairs. */
static int count_characters(const text_case *c, const training_config *config, int side,
                            const char *characters)
{
    training_data *const data = text_data_base(c->data);
    batch *const b = data->step(data, config, 0);
    const int32_t *const ids = side == TRANSFORMER_SOURCE ? b->words[side] : b->expected;
    char *text = NULL;
    int found = 0;
    CHECK(mha_tokenizer_decode(c->tokenizer, ids, b->rows[side], 0, &text, NULL) == MHA_OK,
          "decoding");
    for (const char *at = text; at && *at != '\0'; at++)
        found += strchr(characters, *at) != NULL;
    mha_text_free(text);
    batch_free(b);
    return found;
}

static void steps_leave_out_final_marks(void)
{
    static const double shares[] = {0.0, 1.0};
    for (int n = 0; n < 2; n++) {
        text_case c;
        if (!setup(&c, pairs_text, POSITIONS))
            return;
        training_config config = small_config(&c);
        config.batch_tokens = 1000;
        config.bare = shares[n];
        config.join = 0.0;
        config.copy = 0.0;
        config.bpe_dropout = 0.0;
        for (int side = 0; side < TRANSFORMER_SIDES; side++) {
            const int marks = count_characters(&c, &config, side, ".!?");
            CHECK(marks == (n == 0 ? 8 : 0), "bare %g, side %d: %d marks", shares[n], side, marks);
        }
        teardown(&c);
    }
}

/* All pairs end with a mark on both sides, so each of them is followed by another. */
static void steps_join_pairs(void)
{
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    training_config config = small_config(&c);
    config.batch_tokens = 1000;
    config.bare = config.copy = config.bpe_dropout = 0.0;
    config.join = 1.0;
    for (int side = 0; side < TRANSFORMER_SIDES; side++) {
        const int marks = count_characters(&c, &config, side, ".!?");
        CHECK(marks == 16, "side %d: %d marks", side, marks);
    }
    teardown(&c);
}

static void steps_replace_names_by_numbers(void)
{
    static const double shares[] = {0.0, 1.0};
    for (int n = 0; n < 2; n++) {
        text_case c;
        if (!setup(&c, "Tom sleeps.\tTom dort.\nTom is tired.\tTom est fatigué.\n", POSITIONS))
            return;
        training_config config = small_config(&c);
        config.batch_tokens = 1000;
        config.join = config.bare = config.bpe_dropout = 0.0;
        config.copy = 1.0;
        config.numbers = shares[n];
        const int source = count_characters(&c, &config, TRANSFORMER_SOURCE, "0123456789"),
                  target = count_characters(&c, &config, TRANSFORMER_TARGET, "0123456789");
        CHECK(source == target && (n == 0 ? source == 0 : source >= 2), "%d and %d digits", source,
              target);
        teardown(&c);
    }
}

static void long_pairs_are_counted(void)
{
    text_case whole, part;
    if (!setup(&whole, pairs_text, POSITIONS) || !setup(&part, pairs_text, 6))
        return;
    CHECK(whole.counts[0].pairs == 8 && whole.counts[0].too_long == 0, "%d pairs",
          (int)whole.counts[0].pairs);
    CHECK(part.counts[0].pairs > 0 && part.counts[0].too_long > 0 &&
              part.counts[0].pairs + part.counts[0].too_long == 8,
          "%d pairs, %d too long", (int)part.counts[0].pairs, (int)part.counts[0].too_long);
    CHECK(text_data_base(whole.data)->hash != text_data_base(part.data)->hash,
          "other pairs, the same hash");
    text_data *none;
    text_counts counts[2];
    CHECK(text_data_create(&none, &whole.pairs, &whole.pairs, whole.tokenizer, 2, NULL, counts) ==
                  MHA_ERR_LENGTH &&
              !none,
          "pairs of no tokens");
    teardown(&whole);
    teardown(&part);
}

/* ------------------------------------------------------------- training ----- */

/* The loss per token that `t` reaches on its own pairs. */
static double train(training *t)
{
    training_result result;
    training_score score = {.loss = NAN};
    while (training_steps_done(t) < training_get_config(t)->steps)
        if (!CHECK(training_step(t, &result) == MHA_OK, "step"))
            return NAN;
    CHECK(training_validate(t, 1000, &score) == MHA_OK, "validation");
    return score.loss;
}

/* One source has two translations, so 1/8 of the sentences cannot be known: each has one token more
 * or less, with probability 1/2. */
static void pairs_are_learnt_by_heart(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    double losses[2] = {NAN, NAN};
    for (int n = 0; n < 2; n++) {
        training_config config = small_config(&c);
        config.arithmetic = n ? MHA_NATIVE : MHA_EXACT;
        training *const t = training_create(&config, text_data_base(c.data), NULL, message);
        if (CHECK(t, "%s", message)) {
            losses[n] = train(t);
            CHECK(losses[n] < 0.06, "arithmetic %d: loss %g", n, losses[n]);
            CHECK(training_is_best(t) && !training_is_exhausted(t), "one validation");
        }
        training_free(t);
    }
    CHECK(losses[0] != losses[1] && fabs(losses[0] - losses[1]) < 0.01, "loss %g, natively %g",
          losses[0], losses[1]);
    teardown(&c);
}

/* The loss of the first step, and a value of a query's matrix before it. */
static double first_loss(const text_case *c, const training_config *config, float *query)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    training_result result = {.loss = NAN};
    transformer_map map;
    training *const t = training_create(config, text_data_base(c->data), NULL, message);
    if (!CHECK(t, "%s", message))
        return NAN;
    transformer_map_fill(&map, &config->model);
    *query = t->values[map.layers[TRANSFORMER_TARGET][0].cross.q.weight];
    CHECK(training_step(t, &result) == MHA_OK, "step");
    training_free(t);
    return result.loss;
}

static void attention_has_settings_of_its_own(void)
{
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    training_config config = small_config(&c);
    float query, scaled;
    config.dropout = 0.2;
    const double same = first_loss(&c, &config, &query);
    config.attention_dropout = 0.2;
    CHECK(first_loss(&c, &config, &query) == same, "the dropout of all is not that of attention");
    config.attention_dropout = 0.0;
    CHECK(first_loss(&c, &config, &query) != same, "attention weights are dropped as before");
    CHECK(config.attention_gain == 0.7071, "a gain of %g", config.attention_gain);
    config.attention_gain = 1.0;
    first_loss(&c, &config, &query);
    config.attention_gain = 0.5;
    first_loss(&c, &config, &scaled);
    CHECK(scaled == 0.5f * query, "%g, without a gain %g", (double)scaled, (double)query);
    teardown(&c);
}

static void head_dropout_and_means_are_reproducible(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    training_config config = small_config(&c);
    config.steps = 30;
    config.warm_up = 3;
    config.ema = 0.0;
    config.average = 3;
    config.average_every = 5;
    config.head_dropout = 0.3;
    config.attention_gain = 0.5;
    config.dropout = 0.2;
    config.attention_dropout = 0.1;
    training *const whole = training_create(&config, text_data_base(c.data), NULL, message);
    training *const half = training_create(&config, text_data_base(c.data), NULL, message);
    training_result result;
    for (int n = 0; n < 22; n++)
        CHECK(training_step(half, &result) == MHA_OK, "step");
    const char *const path = temp_path(&c.folder, "checkpoint");
    CHECK(training_save(half, path, message) == MHA_OK, "%s", message);
    mha_pool *pool = NULL;
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool");
    training *const resumed = training_load(path, text_data_base(c.data), pool, message);
    if (CHECK(resumed, "%s", message)) {
        CHECK(train(whole) == train(resumed), "another loss");
        CHECK(memcmp(training_values(whole), training_values(resumed),
                     whole->count * sizeof(float)) == 0,
              "other bits after a checkpoint");
        CHECK(training_values(whole) != whole->values, "no mean");
    }
    CHECK(!training_load(path, NULL, NULL, message) && strstr(message, "files of pairs"), "%s",
          message);
    training_free(whole);
    training_free(half);
    training_free(resumed);
    mha_pool_free(pool);
    teardown(&c);
}

static void patience_ends_a_training(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    text_case c;
    training_score score;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    training_config config = small_config(&c);
    config.patience = 2;
    training *const t = training_create(&config, text_data_base(c.data), NULL, message);
    CHECK(!training_is_best(t) && !training_is_exhausted(t), "without a validation");
    for (int n = 0; n < 3; n++) { /* no step between them: the loss stays the same */
        CHECK(training_validate(t, 4, &score) == MHA_OK, "validation");
        CHECK(training_is_best(t) == (n == 0), "validation %d is %sthe best", n, n ? "" : "not ");
        CHECK(training_is_exhausted(t) == (n == 2), "after %d validations", n + 1);
    }
    training_free(t);
    teardown(&c);
}

/* --------------------------------------------------------------- folder ----- */

static marian_content content_of(const text_case *c, const transformer_config *config,
                                 const float *values, mha_dtype type)
{
    return (marian_content){.config = config,
                            .values = values,
                            .type = type,
                            .tokenizer = c->learned.json,
                            .begin = mha_tokenizer_mark(c->tokenizer, MHA_MARK_PAD),
                            .end = mha_tokenizer_mark(c->tokenizer, MHA_MARK_END)};
}

/* Log-probability of the expected tokens of a pair, by the opened model. */
static double log_probability(const mha_model *model, const batch *b, int words)
{
    const ptrdiff_t rows = b->rows[TRANSFORMER_TARGET];
    float *const logits = malloc((size_t)(rows * words) * sizeof *logits);
    const int64_t starts[] = {0, rows}, source_starts[] = {0, b->rows[TRANSFORMER_SOURCE]};
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .starts = starts,
                                 .ids = b->words[TRANSFORMER_TARGET],
                                 .source_starts = source_starts,
                                 .source_ids = b->words[TRANSFORMER_SOURCE],
                                 .logits = logits,
                                 .logit_row_count = rows,
                                 .message = message,
                                 .message_size = sizeof message};
    CHECK(mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK, "%s", message);
    double sum = 0.0;
    for (ptrdiff_t row = 0; row < rows; row++) {
        double total = 0.0;
        for (int w = 0; w < words; w++)
            total += exp((double)logits[row * words + w]);
        /* cppcheck-suppress invalidFunctionArg ; exp() is positive */
        sum += (double)logits[row * words + b->expected[row]] - log(total);
    }
    free(logits);
    return sum;
}

static void the_library_opens_the_folder_and_agrees(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    training_config config = small_config(&c);
    config.steps = 60;
    training *const t = training_create(&config, text_data_base(c.data), NULL, message);
    train(t);
    const char *const path = temp_path(&c.folder, "model");
    const marian_content content = content_of(&c, &config.model, training_values(t), MHA_F32);
    mha_model *model = NULL;
    const mha_model_config request = {
        .size = sizeof request, .message = message, .message_size = sizeof message};
    CHECK(marian_folder_write(path, &content, message) == MHA_OK, "%s", message);
    if (CHECK(mha_model_open(&model, path, &request) == MHA_OK, "%s", message))
        for (int n = 0; n < 8; n++) {
            training_data *const data = text_data_base(c.data);
            batch *const b = data->some(data, &config, CORPUS_VALID, n, 1);
            network_loss loss;
            const network_mode plain = {.training = false};
            CHECK(network_update(t->network, training_values(t)) == MHA_OK &&
                      network_forward(t->network, b, &plain, &loss) == MHA_OK,
                  "network");
            const double wanted = -loss.sum,
                         found = log_probability(model, b, config.model.words[0]);
            CHECK(fabs(found - wanted) < 1e-4 * (1.0 - wanted), "pair %d: %g, not %g", n, found,
                  wanted);
            batch_free(b);
        }
    mha_model_free(model);
    training_free(t);
    teardown(&c);
}

static void values_that_do_not_fit_are_refused(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    const training_config config = small_config(&c);
    transformer_map map;
    transformer_map_fill(&map, &config.model);
    float *const values = calloc(map.count, sizeof *values);
    const marian_content content = content_of(&c, &config.model, values, MHA_F16);
    const char *const path = temp_path(&c.folder, "model");
    values[map.layers[TRANSFORMER_TARGET][1].ff.in.weight + 5] = 70000.0f;
    CHECK(marian_folder_write(path, &content, message) == MHA_ERR_FORMAT &&
              strstr(message, "element 5 of \"decoder.layers.1.fc1.weight\" is 70000"),
          "%s", message);
    CHECK(marian_folder_write("/nonexistent/folder", &content, message) == MHA_ERR_FILE, "%s",
          message);
    free(values);
    teardown(&c);
}

/* Writes `text` in the place of `old`, which the file must contain. */
static void change_file(const char *path, const char *old, const char *text)
{
    char bytes[8192], message[TRANSFORMER_MESSAGE_MAX];
    FILE *file = fopen(path, "rb");
    const size_t length = file ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
    if (file)
        fclose(file);
    bytes[length] = '\0';
    char *const at = strstr(bytes, old);
    file = at ? fopen(path, "wb") : NULL;
    snprintf(message, sizeof message, "%s has no %s", path, old);
    if (!CHECK(file != NULL, "%s", message))
        return;
    fprintf(file, "%.*s%s%s", (int)(at - bytes), bytes, text, at + strlen(old));
    fclose(file);
}

/* Changes config.json and expects that the folder is refused for this reason. */
static void expect_refused(const char *folder, const char *old, const char *text,
                           const char *reason)
{
    char path[4096], message[TRANSFORMER_MESSAGE_MAX] = "";
    transformer_config config = {.width = -1};
    snprintf(path, sizeof path, "%s/config.json", folder);
    change_file(path, old, text);
    CHECK(marian_folder_config(folder, &config, message) == MHA_ERR_FORMAT &&
              strstr(message, reason) && config.width == -1,
          "%s", message);
    change_file(path, text, old);
}

static void a_folder_is_read_back(void)
{
    char message[TRANSFORMER_MESSAGE_MAX] = "";
    text_case c;
    if (!setup(&c, pairs_text, POSITIONS))
        return;
    training_config config = small_config(&c);
    training *const t = training_create(&config, text_data_base(c.data), NULL, message);
    const size_t bytes = t->count * sizeof(float);
    const char *const path = temp_path(&c.folder, "model");
    float *values = NULL;
    transformer_config read;
    for (int half = 0; half < 2; half++) {
        const marian_content content =
            content_of(&c, &config.model, t->values, half ? MHA_F16 : MHA_F32);
        CHECK(marian_folder_write(path, &content, message) == MHA_OK, "%s", message);
        CHECK(marian_folder_config(path, &read, message) == MHA_OK, "%s", message);
        CHECK(memcmp(&read, &config.model, sizeof read) == 0, "other sizes");
        free(values);
        CHECK(marian_folder_values(path, &read, &values, message) == MHA_OK, "%s", message);
        for (size_t n = 0; n < t->count; n++)
            if (!CHECK(values[n] == (half ? convert_f16_to_f32(convert_f32_to_f16(t->values[n]))
                                          : t->values[n]),
                       "value %zu", n))
                break;
    }
    training *const again =
        training_create_from(&config, values, text_data_base(c.data), NULL, message);
    CHECK(memcmp(again->values, values, bytes) == 0, "the training begins with other values");
    expect_refused(path, "\"marian\"", "\"bart\"", "\"model_type\" is not \"marian\"");
    expect_refused(path, "\"relu\"", "\"gelu\"", "\"activation_function\" is not \"relu\"");
    expect_refused(path, "\"scale_embedding\": true", "\"scale_embedding\": false", "is not true");
    expect_refused(path, "\"d_model\": ", "\"d_model\": -", "\"d_model\" is not a positive");
    expect_refused(path, "\"decoder_ffn_dim\": ", "\"decoder_ffn_dim\": 1",
                   "\"decoder_ffn_dim\" is not that of the encoder");
    read.ff_width++;
    free(values);
    CHECK(marian_folder_values(path, &read, &values, message) == MHA_ERR_FORMAT && !values &&
              strstr(message, "has another shape than config.json says"),
          "%s", message);
    read.ff_width--;
    read.layers[TRANSFORMER_SOURCE]++;
    free(values);
    CHECK(marian_folder_values(path, &read, &values, message) == MHA_ERR_FORMAT && !values &&
              strstr(message, "there is no tensor \"model.encoder.layers."),
          "%s", message);
    CHECK(marian_folder_config("/nonexistent", &read, message) == MHA_ERR_FILE, "%s", message);
    training_free(again);
    training_free(t);
    free(values);
    teardown(&c);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(batches_are_the_texts);
    RUN(steps_leave_out_final_marks);
    RUN(steps_join_pairs);
    RUN(steps_replace_names_by_numbers);
    RUN(long_pairs_are_counted);
    RUN(pairs_are_learnt_by_heart);
    RUN(attention_has_settings_of_its_own);
    RUN(head_dropout_and_means_are_reproducible);
    RUN(patience_ends_a_training);
    RUN(the_library_opens_the_folder_and_agrees);
    RUN(values_that_do_not_fit_are_refused);
    RUN(a_folder_is_read_back);
    return test_end();
}
