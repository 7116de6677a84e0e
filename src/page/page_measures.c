/* SPDX-License-Identifier: MIT */
#include "page/page_measures.h"

#include <math.h>
#include <stddef.h>

enum { OFFSET_FARTHEST = 3 };

/* Mean weight on one column. */
static double mass_on(const head_matrix *m, int column)
{
    double sum = 0.0;
    int rows = 0;
    for (int i = 0; i < m->rows; i++)
        if (head_seen(m, i) > 1) {
            rows++;
            if (column < head_seen(m, i))
                sum += (double)m->weights[(ptrdiff_t)i * m->columns + column];
        }
    return rows > 0 ? sum / rows : 0.0;
}

/* The offset that comes nearest to one of the thresholds of "mha heads": half of the weight (Clark
 * et al.), or the largest one in nine rows of ten (Voita et al.). */
static void measure_offsets(const head_matrix *m, double *values)
{
    double best = -1.0;
    for (int r = -OFFSET_FARTHEST; r <= (m->causal ? -1 : OFFSET_FARTHEST); r++) {
        if (r == 0)
            continue;
        const double mass = head_offset_mass(m, r), share = head_offset_argmax(m, r);
        if (fmax(mass / 0.5, share / 0.9) > best) {
            best = fmax(mass / 0.5, share / 0.9);
            values[VIEW_OFFSET] = r;
            values[VIEW_OFFSET_MASS] = mass;
            values[VIEW_OFFSET_SHARE] = share;
        }
    }
}

static void measure_alignment(const head_matrix *m, const view_scene *scene, bool reads,
                              double *values)
{
    const corpus_pair *const gold = scene->gold;
    const head_links links =
        head_align(m, reads, gold->sources, gold->side[CORPUS_FRENCH].count, scene->special);
    const int pairs = links.found + links.known;
    values[reads ? VIEW_READS : VIEW_SAYS] =
        links.words > 0 ? (double)links.words_right / links.words : 0.0;
    values[reads ? VIEW_AER_READS : VIEW_AER_SAYS] =
        pairs > 0 ? 1.0 - 2.0 * links.right / pairs : 1.0;
}

void view_measure_head(const head_matrix *m, const view_scene *scene, double *values)
{
    for (int n = 0; n < VIEW_MEASURES; n++)
        values[n] = NAN;
    values[VIEW_ENTROPY] = head_entropy(m);
    values[VIEW_BROAD] = head_breadth(m);
    values[VIEW_CONFIDENCE] = head_confidence(m, scene->special);
    values[VIEW_DISTANCE] = head_distance(m, scene->special);
    values[VIEW_FAR] = values[VIEW_DISTANCE] / m->columns;
    values[VIEW_FIRST] = mass_on(m, 0);
    if (scene->kind != ATTENTION_DECODER)
        values[VIEW_END] = mass_on(m, m->columns - 1);
    values[VIEW_PREV] = head_offset_mass(m, -1);
    values[VIEW_SELF] = head_offset_mass(m, 0);
    values[VIEW_NEXT] = head_offset_mass(m, 1);
    measure_offsets(m, values);
    if (scene->kind != ATTENTION_CROSS) {
        values[VIEW_DUPLICATE] = head_detect(m, head_is_duplicate, scene->tokens);
        values[VIEW_INDUCTION] = head_detect(m, head_is_induction, scene->tokens);
    } else if (scene->gold != NULL) {
        measure_alignment(m, scene, false, values);
        measure_alignment(m, scene, true, values);
    }
}

void view_measures_put(json *j, const double *values, int count)
{
    static const char *const names[VIEW_MEASURES] = {
        "entropy",      "broad", "confidence", "distance",  "far",       "first",  "end",
        "prev",         "self",  "next",       "duplicate", "induction", "offset", "offset_mass",
        "offset_share", "says",  "reads",      "aer_says",  "aer_reads",
    };
    json_open_object(j, "measures");
    for (int n = 0; n < VIEW_MEASURES; n++) {
        json_open_array(j, names[n]);
        for (int map = 0; map < count; map++)
            json_number(j, NULL, values[(ptrdiff_t)map * VIEW_MEASURES + n]);
        json_close(j);
    }
    json_close(j);
}
