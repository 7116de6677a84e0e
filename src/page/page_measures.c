/* SPDX-License-Identifier: MIT */
/* Measures and roles on one sentence for the page. All rules are in src/heads; the page only shows
 * the numbers and names that are written here. */
#include "page/page_measures.h"

#include <math.h>
#include <stddef.h>

/* Rows that are words have no place on the picture, and so neither most measures nor roles. */
static void measure_words(page_measured *head)
{
    for (int n = 0; n < PICTURE_MEASURES; n++)
        head->picture_means[n] = NAN;
    head->picture_means[PICTURE_BREADTH] = head->means[MEASURE_BREADTH];
    head->picture_role = (picture_role){.name = "", .score = NAN, .threshold = NAN};
    head->count = 0.0;
    head->on_picture = true;
}

static void measure_picture(page_measured *head, const head_matrix *m,
                            const subject_picture *picture)
{
    head_sample samples[PICTURE_MEASURES];
    picture_measure_head(m, picture, samples);
    for (int n = 0; n < PICTURE_MEASURES; n++)
        head->picture_means[n] =
            samples[n].count > 0.0f ? (double)samples[n].sum / (double)samples[n].count : NAN;
    head->picture_role = picture_role_choose(head->picture_means);
    head->count = (double)samples[head->picture_role.measure].count;
    head->on_picture = true;
}

bool page_measure_head(page_measured *head, const head_matrix *m, const head_scene *scene,
                       const head_baselines *baselines, const subject_picture *picture)
{
    head_sample samples[MEASURES];
    if (!head_measure_sentence(m, scene, samples))
        return false;
    const head_means means = head_means_of(scene, samples, baselines);
    for (int n = 0; n < MEASURES; n++)
        head->means[n] = means.mean[n];
    head->role = head_role_choose(&means);
    head->on_picture = false;
    if (picture != NULL && scene->kind == ATTENTION_CROSS)
        measure_words(head);
    else if (picture != NULL)
        measure_picture(head, m, picture);
    return true;
}

/* An array with one measure of all heads. Alignment is shown as an error rate. */
static void put_measure(json *j, const char *name, const page_measured *heads, int count,
                        int measure)
{
    const bool error_rate = measure == MEASURE_F_SAYS || measure == MEASURE_F_READS;
    json_open_array(j, name);
    for (int n = 0; n < count; n++)
        json_number(j, NULL, error_rate ? 1.0 - heads[n].means[measure] : heads[n].means[measure]);
    json_close(j);
}

static void put_words(json *j, const page_measured *heads, int count)
{
    for (int measure = 0; measure < MEASURES; measure++)
        if (head_measure_name(measure) != NULL)
            put_measure(j, head_measure_name(measure), heads, count, measure);
    put_measure(j, "aer_says", heads, count, MEASURE_F_SAYS);
    put_measure(j, "aer_reads", heads, count, MEASURE_F_READS);
}

/* Those of pictures, and the two of words that do not depend on an order of the columns. */
static void put_patches(json *j, const page_measured *heads, int count)
{
    for (int measure = 0; measure < PICTURE_MEASURES; measure++) {
        json_open_array(j, picture_measure_name((picture_measure)measure));
        for (int n = 0; n < count; n++)
            json_number(j, NULL, heads[n].picture_means[measure]);
        json_close(j);
    }
    put_measure(j, head_measure_name(MEASURE_ENTROPY), heads, count, MEASURE_ENTROPY);
    put_measure(j, head_measure_name(MEASURE_CONFIDENCE), heads, count, MEASURE_CONFIDENCE);
}

static void put_role(json *j, const page_measured *head)
{
    if (head->on_picture)
        page_picture_role_put(j, &head->picture_role, (head_interval){NAN, NAN}, head->count);
    else
        page_role_put(j, &head->role);
}

void page_measures_put(json *j, const page_measured *heads, int count)
{
    json_open_object(j, "measures");
    if (count > 0 && heads[0].on_picture)
        put_patches(j, heads, count);
    else
        put_words(j, heads, count);
    json_close(j);
    json_open_array(j, "roles");
    for (int n = 0; n < count; n++) {
        json_open_object(j, NULL);
        put_role(j, &heads[n]);
        json_close(j);
    }
    json_close(j);
}

void page_picture_role_put(json *j, const picture_role *role, head_interval interval, double count)
{
    json_bool(j, "found", role->found);
    json_string(j, "rule", "picture");
    json_string(j, "name", role->name);
    json_number(j, "score", role->score);
    json_number(j, "threshold", role->threshold);
    json_number(j, "low", interval.low);
    json_number(j, "high", interval.high);
    json_number(j, "count", count);
    json_string(j, "next", "");
    json_number(j, "next_score", NAN);
    json_number(j, "next_threshold", NAN);
}

void page_role_put(json *j, const head_role *role)
{
    json_bool(j, "found", role->found);
    json_string(j, "rule", head_rule_name(role->best.rule));
    json_string(j, "name", role->best.name);
    json_number(j, "score", role->best.score);
    json_number(j, "threshold", role->best.threshold);
    json_number(j, "low", role->interval.low);
    json_number(j, "high", role->interval.high);
    json_number(j, "count", role->count);
    json_string(j, "next", role->next.name);
    json_number(j, "next_score", role->next.score);
    json_number(j, "next_threshold", role->next.threshold);
}
