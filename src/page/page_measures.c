/* SPDX-License-Identifier: MIT */
/* Measures and roles on one sentence for the page. All rules are in src/heads; the page only shows
 * the numbers and names that are written here. */
#include "page/page_measures.h"

#include <stddef.h>

bool page_measure_head(page_measured *head, const head_matrix *m, const head_scene *scene,
                       const head_baselines *baselines)
{
    head_sample samples[MEASURES];
    if (!head_measure_sentence(m, scene, samples))
        return false;
    const head_means means = head_means_of(scene, samples, baselines);
    for (int n = 0; n < MEASURES; n++)
        head->means[n] = means.mean[n];
    head->role = head_role_choose(&means);
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

void page_measures_put(json *j, const page_measured *heads, int count)
{
    json_open_object(j, "measures");
    for (int measure = 0; measure < MEASURES; measure++)
        if (head_measure_name(measure) != NULL)
            put_measure(j, head_measure_name(measure), heads, count, measure);
    put_measure(j, "aer_says", heads, count, MEASURE_F_SAYS);
    put_measure(j, "aer_reads", heads, count, MEASURE_F_READS);
    json_close(j);
    json_open_array(j, "roles");
    for (int n = 0; n < count; n++) {
        json_open_object(j, NULL);
        page_role_put(j, &heads[n].role);
        json_close(j);
    }
    json_close(j);
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
