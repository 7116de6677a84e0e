/* SPDX-License-Identifier: MIT */
/*
 * Losses of many texts in batches are those of the texts one by one: with the whole model, with
 * changed heads of each kind in any order, so that a kept encoder is never one of another change,
 * and with any number of threads; and an ablation has them.
 */
#include "heads/head_ablation.h"
#include "heads/subject_batch.h"
#include "support/test.h"
#include "support/tiny_marian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 150 };

static tiny_marian marian;
static subject_text texts[TEXTS];
static const subject_texts all = {.texts = texts, .count = TEXTS};

/* Enough rows for several batches. */
static void read_texts(void)
{
    static const char *const sources[] = {"The zebra sleeps.", "A dog ran away, didn't it?", "Yes",
                                          "The cat that I saw yesterday is here."};
    static const char *const targets[] = {"Le zèbre dort.", "Oui", "Un chien s'est enfui ?",
                                          "Le chat que j'ai vu hier est ici."};
    for (int n = 0; n < TEXTS; n++)
        texts[n] = tiny_marian_read(&marian, sources[n % 4], targets[n / 4 % 4]);
}

static head_loss loss_of(const capture *c)
{
    head_loss loss = {.words = c->scored};
    for (int i = 0; i < c->scored; i++) {
        loss.loss -= c->log_likelihood[i];
        loss.right += c->predicted[i] == c->expected[i];
    }
    return loss;
}

/* All texts in batches, the first 16 also one by one: these are all different ones. */
static double compare(subject_batches *b, const capture_options *options, const char *what)
{
    head_loss each[TEXTS];
    double sum = 0.0;
    CHECK(subject_batches_run(b, options, each) == MHA_OK, "%s: cannot run", what);
    for (int n = 0; n < TEXTS; n++)
        sum += each[n].loss;
    for (int n = 0; n < 16; n++) {
        capture *const c = subject_run(&marian.subject, &texts[n], options, NULL);
        const head_loss wanted = loss_of(c);
        CHECK(fabs(each[n].loss - wanted.loss) < 1e-5 * wanted.loss, "%s, text %d: %.9g, not %.9g",
              what, n, each[n].loss, wanted.loss);
        CHECK(each[n].words == wanted.words && each[n].right == wanted.right, "%s, text %d", what,
              n);
        for (int same = n + 16; same < TEXTS; same += 16)
            CHECK(each[same].loss == each[n].loss, "%s: text %d is another than %d", what, same, n);
        capture_free(c);
    }
    return sum;
}

static void losses_are_those_of_single_texts(void)
{
    static const head_mode modes[] = {HEAD_ZERO, HEAD_UNIFORM, HEAD_MEAN};
    static const int order[] = {1, 0, 2, 0, 1}; /* kinds: the encoder between others */
    const head_shape shape = marian.subject.shape;
    uint8_t changes[8] = {0};
    float means[8 * 8];
    subject_batches *const b = subject_batches_create(&marian.subject, &all, NULL);
    CHECK(shape.heads * 2 == 8 && shape.width == 8 && b, "another model");
    CHECK(subject_batches_fit(&marian.subject, &all), "batches are not used");
    for (int n = 0; n < 64; n++)
        means[n] = 0.1f * (float)(n % 7);
    const capture_options none = {.weights = false};
    const double plain = compare(b, &none, "the whole model");
    for (size_t n = 0; n < sizeof order / sizeof order[0]; n++)
        for (size_t mode = 0; mode < 3; mode++) {
            capture_options options = {.weights = false};
            options.changes[order[n]] = changes;
            options.means[order[n]] = means;
            changes[5] = (uint8_t)modes[mode];
            const double sum = compare(b, &options, "a changed head");
            CHECK(fabs(sum - plain) > 1e-6, "kind %d, mode %zu: no effect", order[n], mode);
            changes[5] = HEAD_NORMAL;
        }
    CHECK(compare(b, &none, "the whole model again") == plain, "another result");
    subject_batches_free(b);
}

static void threads_do_not_matter(void)
{
    static const capture_options none = {.weights = false};
    mha_pool *pool = NULL;
    head_loss one[TEXTS], three[TEXTS];
    CHECK(mha_pool_create(&pool, 3) == MHA_OK, "no threads");
    subject_batches *const a = subject_batches_create(&marian.subject, &all, NULL);
    subject_batches *const b = subject_batches_create(&marian.subject, &all, pool);
    CHECK(subject_batches_run(a, &none, one) == MHA_OK, "one thread");
    CHECK(subject_batches_run(b, &none, three) == MHA_OK, "three threads");
    for (int n = 0; n < TEXTS; n++)
        CHECK(one[n].loss == three[n].loss, "text %d", n);
    subject_batches_free(a);
    subject_batches_free(b);
    mha_pool_free(pool);
}

static void an_ablation_has_these_losses(void)
{
    const int head = head_number(marian.subject.shape, (head_name){ATTENTION_CROSS, 1, 1});
    const subject_texts few = {.texts = texts, .count = 16};
    head_ablation *const a = head_ablation_create(&marian.subject, &few, HEAD_ZERO, NULL, NULL);
    head_damage damage;
    uint8_t changes[8] = {[5] = HEAD_ZERO};
    capture_options options = {.weights = false};
    head_loss each[16];
    options.changes[ATTENTION_CROSS] = changes;
    for (int n = 0; n < 16; n++) {
        capture *const c = subject_run(&marian.subject, &texts[n], &options, NULL);
        each[n] = loss_of(c);
        capture_free(c);
    }
    const head_total wanted = head_total_of(each, 16);
    CHECK(head_ablation_measure(a, &head, 1, &damage) == MHA_OK, "cannot measure");
    CHECK(fabs(damage.total.loss - wanted.loss) < 1e-5, "%g, not %g", damage.total.loss,
          wanted.loss);
    CHECK(damage.interval.low <= damage.delta && damage.delta <= damage.interval.high,
          "%g is not in %g..%g", damage.delta, damage.interval.low, damage.interval.high);
    head_ablation_free(a);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    if (tiny_marian_open(&marian, 9)) {
        read_texts();
        RUN(losses_are_those_of_single_texts);
        RUN(threads_do_not_matter);
        RUN(an_ablation_has_these_losses);
        for (int n = 0; n < TEXTS; n++)
            subject_text_free(&marian.subject, &texts[n]);
    }
    tiny_marian_close(&marian);
    return test_end();
}
