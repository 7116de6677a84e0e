/* SPDX-License-Identifier: MIT */
/* Runs a model on pictures and keeps what its heads do (picture_study.h). */
#include "heads/picture_study.h"

#include <math.h>
#include <stdlib.h>

static head_sample *samples_of(const picture_study *s, int head, int measure)
{
    return &s->samples[((ptrdiff_t)head * PICTURE_MEASURES + measure) * s->pictures];
}

static bool study_picture(picture_study *s, const subject *model, const subject_texts *texts, int n,
                          mha_pool *pool)
{
    static const capture_options options = {.weights = true};
    const subject_picture *const picture = &texts->texts[n].picture;
    capture *const c = subject_texts_run(model, texts, n, &options, pool);
    if (!c)
        return false;
    for (int head = 0; head < s->heads; head++) {
        const head_matrix m = head_matrix_of(c, head_at(s->shape, head));
        head_sample samples[PICTURE_MEASURES];
        picture_measure_head(&m, picture, samples);
        for (int measure = 0; measure < PICTURE_MEASURES; measure++)
            samples_of(s, head, measure)[n] = samples[measure];
    }
    s->across = picture->across;
    s->with_object += picture->object != NULL;
    capture_free(c);
    return true;
}

picture_study *picture_study_create(const subject *model, const subject_texts *texts,
                                    mha_pool *pool, void (*watch)(int done, int count))
{
    picture_study *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->shape = model->shape;
    s->heads = head_count(s->shape);
    s->pictures = texts->count;
    s->samples =
        calloc((size_t)s->heads * PICTURE_MEASURES * (size_t)texts->count, sizeof *s->samples);
    bool fine = s->samples != NULL;
    for (int n = 0; n < s->pictures && fine; n++) {
        fine = study_picture(s, model, texts, n, pool);
        if (watch)
            watch(n + 1, s->pictures);
    }
    if (fine)
        return s;
    picture_study_free(s);
    return NULL;
}

void picture_study_free(picture_study *s)
{
    if (s)
        free(s->samples);
    free(s);
}

/* ---------------------------------------------------------------- means ----- */

static double mean_of(const head_sample *samples, int count)
{
    double sum = 0.0, counted = 0.0;
    for (int n = 0; n < count; n++) {
        sum += (double)samples[n].sum;
        counted += (double)samples[n].count;
    }
    return counted > 0.0 ? sum / counted : NAN;
}

double picture_study_mean(const picture_study *s, int head, picture_measure measure)
{
    return mean_of(samples_of(s, head, (int)measure), s->pictures);
}

double picture_study_count(const picture_study *s, int head, picture_measure measure)
{
    const head_sample *const samples = samples_of(s, head, (int)measure);
    double counted = 0.0;
    for (int n = 0; n < s->pictures; n++)
        counted += (double)samples[n].count;
    return counted;
}

head_interval picture_study_interval(const picture_study *s, int head, picture_measure measure)
{
    return head_interval_of(samples_of(s, head, (int)measure), s->pictures,
                            (uint64_t)(head * PICTURE_MEASURES + (int)measure));
}

/* One sample for each picture, of all heads of the layer; for free(). NULL: out of memory. */
static head_sample *join_layer(const picture_study *s, int layer, picture_measure measure)
{
    head_sample *const joined = calloc((size_t)s->pictures, sizeof *joined);
    for (int h = 0; joined && h < s->shape.heads; h++) {
        const int head = head_number(s->shape, (head_name){ATTENTION_ENCODER, layer, h});
        const head_sample *const own = samples_of(s, head, (int)measure);
        for (int n = 0; n < s->pictures; n++) {
            joined[n].sum += own[n].sum;
            joined[n].count += own[n].count;
        }
    }
    return joined;
}

double picture_study_layer_mean(const picture_study *s, int layer, picture_measure measure)
{
    head_sample *const joined = join_layer(s, layer, measure);
    const double mean = joined ? mean_of(joined, s->pictures) : NAN;
    free(joined);
    return mean;
}

head_interval picture_study_layer_interval(const picture_study *s, int layer,
                                           picture_measure measure)
{
    head_sample *const joined = join_layer(s, layer, measure);
    const head_interval interval =
        joined ? head_interval_of(joined, s->pictures, (uint64_t)layer) : (head_interval){NAN, NAN};
    free(joined);
    return interval;
}

double picture_even_distance(int across)
{
    double sum = 0.0;
    for (int down = -(across - 1); down < across; down++)
        for (int right = -(across - 1); right < across; right++)
            sum += sqrt((double)(down * down + right * right)) * (across - abs(down)) *
                   (across - abs(right));
    return sum / pow((double)across, 4.0);
}

picture_role picture_study_role(const picture_study *s, int head)
{
    double means[PICTURE_MEASURES];
    for (int measure = 0; measure < PICTURE_MEASURES; measure++)
        means[measure] = picture_study_mean(s, head, (picture_measure)measure);
    return picture_role_choose(means);
}
