/* SPDX-License-Identifier: MIT */
/*
 * Direct effects and self-repair:
 *
 *      families        following the residual stream of every family gives the model's logits, and
 *                      following it backwards what a head adds to them
 *      norms before    the numbers of the formula of such models, by which they were once computed
 *      norms after     a plain implementation of the definition, forwards and one row at a time
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/direct_path.h"
#include "heads/head_repair.h"
#include "heads/subject_model_parts.h"
#include "support/temp_files.h"
#include "support/test.h"
#include "support/tiny_marian.h"
#include "support/tiny_model.h"
#include "support/tiny_models.h"

/* -------------------------------------------------------------- families ----- */

static const direct_removal nothing = {-1, NULL};

enum { ROWS = 7, WIDTH = 64, WORDS = 60, PARTS_MAX = 16, LAYERS_MAX = 8, INNER_MAX = 256 };

/* Without any output of a head, and with held deviations, the logit changes by the product of that
 * output and the gradient. */
static void check_gradient(tiny_kind kind, const direct_path *path, const direct_rows *rows,
                           int row, const double *word, double *inverse)
{
    static float pulled[PARTS_MAX * INNER_MAX];
    double parts[PARTS_MAX];
    float output[WIDTH];
    double room[2 * WIDTH], added[WIDTH];
    test_random random = {77};
    CHECK(path->inner <= INNER_MAX && path->head_width <= WIDTH, "room");
    direct_sums sums = {.run = rows, .row = row, .parts = parts};
    const double logit =
        direct_walk(path, rows, row, word, &(direct_removal){.part = -1}, true, inverse, room);
    direct_gradient(path, word, inverse, pulled, &sums, room);
    double sum = sums.embedded + sums.norms;
    for (int n = 0; n < path->stream.parts; n++)
        sum += parts[n];
    CHECK(fabs(sum - logit) < 1e-9 * (1.0 + fabs(logit)), "%s: the shares sum to %.12g, not %.12g",
          tiny_name(kind), sum, logit);
    for (int a = 0; a < path->attention_count; a++) {
        const int head = a % (int)(path->inner / path->head_width);
        const direct_removal removal = {path->attentions[a], added};
        double product = 0.0;
        for (ptrdiff_t c = 0; c < path->head_width; c++) {
            output[c] = test_random_normal(&random);
            product +=
                (double)output[c] * (double)pulled[a * path->inner + head * path->head_width + c];
        }
        direct_output(path, a, head, output, added);
        const double with = direct_walk(path, rows, row, word, &nothing, true, inverse, room);
        const double without = direct_walk(path, rows, row, word, &removal, true, inverse, room);
        CHECK(fabs(with - without - product) < 1e-5 * (1.0 + fabs(product)),
              "%s, attention %d: %g, not %g", tiny_name(kind), a, product, with - without);
    }
}

static void check_path(tiny_kind kind)
{
    static float hidden[ROWS * WIDTH], logits[ROWS * WORDS], parts[PARTS_MAX * ROWS * WIDTH];
    static float streams[LAYERS_MAX * ROWS * WIDTH];
    static const int64_t starts[2] = {0, ROWS}, source_starts[2] = {0, 4};
    int32_t ids[ROWS], source[4];
    mha_model_info info = {.size = sizeof info};
    mha_model *const model = tiny_model_new(kind, MHA_STORE_F32, 3, NULL);
    mha_model_get_info(model, &info);
    const bool pair = info.kind == MHA_MODEL_ENCODER_DECODER;
    tiny_ids(ids, ROWS, WORDS, 4);
    tiny_ids(source, 4, WORDS, 5);
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .starts = starts,
                                 .ids = ids,
                                 .source_starts = pair ? source_starts : NULL,
                                 .source_ids = pair ? source : NULL,
                                 .hidden = hidden,
                                 .logits = logits,
                                 .streams = streams,
                                 .parts = parts};
    const head_shape shape = {.heads = (int)info.heads, .width = (int)info.head_width};
    direct_path path;
    CHECK(direct_path_make(&path, model, shape) == MHA_OK &&
              mha_model_run(model, &call, NULL, 0, NULL) == MHA_OK && info.width == WIDTH &&
              path.stream.parts <= PARTS_MAX,
          "%s: cannot run", tiny_name(kind));
    const direct_rows rows = {streams, parts, ROWS};
    for (int row = 0; row < ROWS; row++) {
        double word[WIDTH], room[2 * WIDTH], inverse[2 * PARTS_MAX + 1], wanted = 0.0, mean = 0.0;
        float one[WIDTH];
        CHECK(direct_word(&path, ids[row], one, word) == MHA_OK, "%s: word", tiny_name(kind));
        const double found = direct_walk(&path, &rows, row, word, &nothing, false, inverse, room);
        for (int c = 0; c < WIDTH; c++)
            wanted += (double)hidden[row * WIDTH + c] * word[c];
        CHECK(fabs(found - wanted) < 1e-4 * (1.0 + fabs(wanted)), "%s, row %d: %g, not %g",
              tiny_name(kind), row, found, wanted);
        CHECK(direct_walk(&path, &rows, row, word, &nothing, true, inverse, room) == found,
              "%s: held deviations", tiny_name(kind));
        check_gradient(kind, &path, &rows, row, word, inverse);
        for (int w = 0; w < WORDS; w++)
            mean += (double)logits[row * WORDS + w] / WORDS;
        /* Gemma's logits are capped, those of BART and Marian have a bias. */
        if (kind == TINY_GPT2 || kind == TINY_LLAMA || kind == TINY_T5)
            CHECK(fabs((double)logits[row * WORDS + ids[row]] - mean - found) < 1e-3,
                  "%s: logit %g", tiny_name(kind), found);
    }
    direct_path_free(&path);
    mha_model_free(model);
}

static void paths_of_families_end_at_their_logits(void)
{
    static const tiny_kind kinds[] = {TINY_GPT2, TINY_LLAMA, TINY_GEMMA,
                                      TINY_T5,   TINY_BART,  TINY_MARIAN};
    for (size_t n = 0; n < sizeof kinds / sizeof kinds[0]; n++)
        check_path(kinds[n]);
}

static void a_transform_before_the_logits_is_refused(void)
{
    mha_model *const model = tiny_model_new(TINY_BERT, MHA_STORE_F32, 3, NULL);
    direct_path path;
    CHECK(direct_path_make(&path, model, (head_shape){.heads = 4, .width = 16}) == MHA_ERR_FLAG,
          "not refused");
    direct_path_free(&path);
    mha_model_free(model);
}

/* ---------------------------------------------------------- norms before ----- */

/*
 * Decoder and cross of tiny_values(.., 11) on eight sentences. These numbers come from a program
 * for such models alone: direct effect = gradient of the logit through the last norm, with its
 * deviation as a constant; norm = (decrease at that deviation - decrease) / direct effect.
 */
static const struct {
    double direct, lost, repair, norm;
    int helper;
    double help;
} golden[] = {
    {0.09810735, 0.2570256, -1.619841, 0.1142169, 14, 0.02029675},
    {-0.009530063, -0.07705319, NAN, NAN, 13, 0.03556611},
    {0.01716857, -0.0006732233, NAN, NAN, 20, 0.02100654},
    {0.03512305, 0.002749107, NAN, NAN, 23, 0.01789552},
    {-0.06588678, -0.1093223, -0.6592454, 0.01637396, 20, 0.007292349},
    {-0.03771624, -0.01300256, NAN, NAN, 20, 0.01028508},
    {-0.04880484, -0.0467947, NAN, NAN, 22, 0.002588218},
    {0.00190861, -0.006789172, NAN, NAN, 22, 0.005423217},
    {0.03576268, -0.05573078, NAN, NAN, 20, 0.0261713},
    {0.05520151, 0.01144926, 0.7925916, 0.07854998, 12, 0.02080154},
    {0.01077643, 0.026323, NAN, NAN, 14, 0.008316864},
    {0.006975002, -0.04044855, NAN, NAN, 14, 0.02032273},
    {-0.002528435, 0.009672445, NAN, NAN, -1, 0.0},
    {-0.008725671, -0.0281007, NAN, NAN, -1, 0.0},
    {-0.03672971, -0.05421348, NAN, NAN, -1, 0.0},
    {-0.0536403, -0.01788281, 0.6666161, 0.003983672, -1, 0.0},
};
enum { ENCODER_HEADS = 8, HEADS = 24, PAIRS = 8 };

static bool is_near(double a, double b, double bound)
{
    return isnan(a) ? isnan(b) : fabs(a - b) < bound;
}

static void check_golden(const head_repair *repairs)
{
    for (int n = 0; n < HEADS; n++) {
        const head_repair *const r = &repairs[n];
        if (n < ENCODER_HEADS) {
            CHECK(!r->known && r->direct == 0.0 && isnan(r->repair) && r->helper < 0, "head %d", n);
            continue;
        }
        CHECK(is_near(golden[n - ENCODER_HEADS].direct, r->direct, 1e-5) &&
                  is_near(golden[n - ENCODER_HEADS].lost, r->lost, 1e-5) &&
                  is_near(golden[n - ENCODER_HEADS].repair, r->repair, 3e-4) &&
                  is_near(golden[n - ENCODER_HEADS].norm, r->norm, 3e-4),
              "head %d: %g %g %g %g", n, r->direct, r->lost, r->repair, r->norm);
        CHECK(golden[n - ENCODER_HEADS].helper == r->helper &&
                  is_near(golden[n - ENCODER_HEADS].help, r->help, 1e-5),
              "head %d: helper %d, %g", n, r->helper, r->help);
    }
}

static void norms_before_give_the_known_numbers(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "model.safetensors");
    char message[TRANSFORMER_MESSAGE_MAX];
    transformer_config config = tiny_corpus_config();
    config.positions = CORPUS_TOKENS_MAX;
    float *const values = tiny_values(&config, 11);
    translator *const own = translator_create(&config, values, message);
    head_pair *const pairs = head_pairs_of_corpus(own, 1, CORPUS_TEST, PAIRS);
    const subject_texts texts = {.pairs = pairs, .count = PAIRS};
    mha_model *model = NULL;
    token_texts tokens = {.texts = NULL};
    head_repair repairs[HEADS] = {{0}};
    subject s;
    subject_of_translator(&s, own);
    CHECK(translator_save(path, &config, values, MHA_F32, NULL, 0, message) == MHA_OK &&
              mha_model_open(&model, path, NULL) == MHA_OK && token_texts_make(&tokens, &s, &texts),
          "no model");
    CHECK(head_repair_measure(model, s.shape, &tokens, NULL, repairs, NULL) == MHA_OK, "measure");
    check_golden(repairs);
    token_texts_free(&tokens);
    mha_model_free(model);
    subject_close(&s);
    translator_free(own);
    free(pairs);
    free(values);
    temp_folder_free(&folder);
}

/* ----------------------------------------------------------- norms after ----- */

enum { E = 32, H = 4, D = 8, LAYERS = 2, PARTS = 3 * LAYERS, TEXTS = 3, LENGTH = 40 };

static tiny_marian marian;
static transformer_map map;

/* One text, run with or without a head. */
typedef struct plain_run {
    float hidden[LENGTH * E], streams[(LAYERS + 1) * LENGTH * E], parts[PARTS * LENGTH * E];
    float outputs[2][LAYERS][LENGTH * E]; /* self, cross */
} plain_run;

static void run_text(const model_text *text, const mha_head_settings *heads, plain_run *to)
{
    const model_side *const source = &text->sides[0], *const target = &text->sides[1];
    const int64_t starts[2] = {0, target->side.count}, source_starts[2] = {0, source->side.count};
    mha_capture captures[2 * LAYERS];
    for (int n = 0; n < 2 * LAYERS; n++)
        captures[n] = (mha_capture){.kind = n % 2 ? MHA_ATTENTION_CROSS : MHA_ATTENTION_DECODER,
                                    .layer = n / 2,
                                    .heads = {to->outputs[n % 2][n / 2], 0, D, E}};
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .starts = starts,
                                 .ids = target->ids,
                                 .source_starts = source_starts,
                                 .source_ids = source->ids,
                                 .hidden = to->hidden,
                                 .streams = to->streams,
                                 .parts = to->parts,
                                 .heads = heads,
                                 .captures = captures,
                                 .capture_count = 2 * LAYERS};
    CHECK(target->side.count <= LENGTH &&
              mha_model_run(marian.model, &call, NULL, 0, NULL) == MHA_OK,
          "run");
}

/* The norm after part n, from the parameters. */
static const weight_at *norm_after(int n)
{
    const layer_at *const at = &map.layers[TRANSFORMER_TARGET][n / 3];
    return n % 3 == 0 ? &at->self.norm : n % 3 == 1 ? &at->cross.norm : &at->ff.norm;
}

/* What one row's stream ends as. deviations[PARTS]: used if `held`, else found. */
static void follow(const plain_run *run, int rows, int row, int part, const double *minus,
                   bool held, double *deviations, double *x)
{
    for (int c = 0; c < E; c++)
        x[c] = (double)run->streams[row * E + c];
    for (int n = 0; n < PARTS; n++) {
        const weight_at *const norm = norm_after(n);
        double mean = 0.0, variance = 0.0;
        for (int c = 0; c < E; c++) {
            x[c] += (double)run->parts[(n * rows + row) * E + c] - (n == part ? minus[c] : 0.0);
            mean += x[c] / E;
        }
        for (int c = 0; c < E; c++)
            variance += (x[c] - mean) * (x[c] - mean) / E;
        if (!held)
            deviations[n] = sqrt(variance + 1e-5);
        for (int c = 0; c < E; c++)
            x[c] = (x[c] - mean) / deviations[n] * (double)marian.values[norm->weight + (size_t)c] +
                   (double)marian.values[norm->bias + (size_t)c];
    }
}

/* x . (embedding of the word - mean of all embeddings) */
static double logit_of(const double *x, int word)
{
    const float *const all = marian.values + map.embedding[TRANSFORMER_TARGET];
    const int words = marian.config.words[TRANSFORMER_TARGET];
    double sum = 0.0;
    for (int c = 0; c < E; c++) {
        double mean = 0.0;
        for (int w = 0; w < words; w++)
            mean += (double)all[w * E + c] / words;
        sum += x[c] * ((double)all[word * E + c] - mean);
    }
    return sum;
}

typedef struct plain_sums {
    double direct, removed, lost, held;
    int rows;
} plain_sums;

/* Adds the rows of one text for one head of self- or cross-attention. */
static void add_text(const model_text *text, int cross, int layer, int head, plain_sums *sums)
{
    static plain_run whole, without;
    float gates[LAYERS * H];
    const int rows = text->sides[1].side.count, part = 3 * layer + cross;
    const layer_at *const at = &map.layers[TRANSFORMER_TARGET][layer];
    const weight_at *const o = cross ? &at->cross.o : &at->self.o;
    mha_head_settings settings = {.size = sizeof settings};
    settings.gates[cross ? MHA_ATTENTION_CROSS : MHA_ATTENTION_DECODER] = gates;
    for (int n = 0; n < LAYERS * H; n++)
        gates[n] = n == layer * H + head ? 0.0f : 1.0f;
    run_text(text, NULL, &whole);
    run_text(text, &settings, &without);
    for (int row = 0; row < rows; row++) {
        const int word = row + 1 < rows ? text->sides[1].ids[row + 1] : text->end;
        double deviations[PARTS], spare[PARTS], x[E], minus[E] = {0};
        for (int c = 0; c < E; c++)
            for (int d = 0; d < D; d++)
                minus[c] += (double)marian.values[o->weight + (size_t)(c * E + head * D + d)] *
                            (double)whole.outputs[cross][layer][row * E + head * D + d];
        follow(&whole, rows, row, -1, minus, false, deviations, x);
        const double logit = logit_of(x, word);
        follow(&whole, rows, row, part, minus, true, deviations, x);
        sums->direct += logit - logit_of(x, word);
        follow(&whole, rows, row, part, minus, false, spare, x);
        sums->removed += logit - logit_of(x, word);
        follow(&without, rows, row, -1, minus, true, deviations, x);
        sums->held += logit - logit_of(x, word);
        for (int c = 0; c < E; c++)
            x[c] = (double)without.hidden[row * E + c];
        sums->lost += logit - logit_of(x, word);
    }
    sums->rows += rows;
}

static void check_head(const head_repair *r, const subject_text *texts, int cross, int layer,
                       int head)
{
    plain_sums s = {.rows = 0};
    for (int n = 0; n < TEXTS; n++)
        add_text(texts[n].memory, cross, layer, head, &s);
    CHECK(is_near(s.direct / s.rows, r->direct, 1e-5) &&
              is_near(s.removed / s.rows, r->removed, 1e-5) &&
              is_near(s.lost / s.rows, r->lost, 1e-5) && is_near(s.held / s.rows, r->held, 1e-5),
          "%s %d.%d: %g %g %g %g, not %g %g %g %g", cross ? "cross" : "decoder", layer, head,
          r->direct, r->removed, r->lost, r->held, s.direct / s.rows, s.removed / s.rows,
          s.lost / s.rows, s.held / s.rows);
}

static void norms_after_give_the_definition(void)
{
    static const char *const given[TEXTS][2] = {{"The cat sleeps.", "Le chat dort."},
                                                {"Where is the station?", "Où est la gare ?"},
                                                {"I am tired.", "Je suis fatigué."}};
    subject_text read[TEXTS];
    const subject_texts texts = {.texts = read, .count = TEXTS};
    const head_shape shape = marian.subject.shape;
    head_repair repairs[HEADS] = {{0}}, threaded[HEADS] = {{0}};
    token_texts tokens = {.texts = NULL};
    mha_pool *pool = NULL;
    int differ = 0;
    for (int n = 0; n < TEXTS; n++)
        read[n] = tiny_marian_read(&marian, given[n][0], given[n][1]);
    CHECK(head_count(shape) == HEADS && token_texts_make(&tokens, &marian.subject, &texts) &&
              head_repair_measure(marian.model, shape, &tokens, NULL, repairs, NULL) == MHA_OK,
          "measure");
    for (int n = 0; n < HEADS; n++) {
        const head_name name = head_at(shape, n);
        if (name.kind == ATTENTION_ENCODER)
            continue;
        check_head(&repairs[n], read, name.kind == ATTENTION_CROSS, name.layer, name.head);
        differ += fabs(repairs[n].direct - repairs[n].lost) > 1e-3 &&
                  fabs(repairs[n].direct - repairs[n].removed) > 1e-3 &&
                  fabs(repairs[n].held - repairs[n].lost) > 1e-3;
    }
    CHECK(differ >= 4, "the numbers of only %d heads differ", differ);
    CHECK(mha_pool_create(&pool, 3) == MHA_OK &&
              head_repair_measure(marian.model, shape, &tokens, pool, threaded, NULL) == MHA_OK,
          "threads");
    for (int n = 0; n < HEADS; n++)
        CHECK(threaded[n].direct == repairs[n].direct && threaded[n].lost == repairs[n].lost &&
                  threaded[n].removed == repairs[n].removed && threaded[n].help == repairs[n].help,
              "head %d: threads matter", n);
    mha_pool_free(pool);
    token_texts_free(&tokens);
    for (int n = 0; n < TEXTS; n++)
        subject_text_free(&marian.subject, &read[n]);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(paths_of_families_end_at_their_logits);
    RUN(a_transform_before_the_logits_is_refused);
    RUN(norms_before_give_the_known_numbers);
    if (tiny_marian_open(&marian, 9)) {
        transformer_map_fill(&map, &marian.config);
        RUN(norms_after_give_the_definition);
    }
    tiny_marian_close(&marian);
    return test_end();
}
