/* SPDX-License-Identifier: MIT */
/* Average precision (precision.h). */
#include "vision/precision.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct ranked {
    double score;
    size_t number; /* in the list of what is found */
} ranked;

typedef struct measuring {
    detection_list *list;
    ranked *order;   /* [found] */
    bool *taken;     /* [truths] */
    double *precise; /* [found] of a class, after each */
    bool *hits;      /* [found] of a class */
} measuring;

static int compare(const void *a, const void *b)
{
    const ranked *const x = a, *const y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The first thing of a picture. */
static size_t first_of(const detection_list *list, int64_t picture)
{
    size_t low = 0, high = list->truth_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->truths[middle].picture < picture)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether one that is found is right; then its thing is taken. */
static bool judge(measuring *m, detection *found)
{
    const detection_list *const list = m->list;
    double most = -1.0;
    size_t best = 0;
    for (size_t n = first_of(list, found->picture);
         n < list->truth_count && list->truths[n].picture == found->picture; n++) {
        const double overlap =
            list->truths[n].class == found->class ? box_iou(&found->box, &list->truths[n].box)
                                                  : -1.0;
        if (overlap > most) {
            most = overlap;
            best = n;
        }
    }
    if (!(most >= PRECISION_OVERLAP) || m->taken[best])
        return false;
    m->taken[best] = true;
    found->right = (int)best + 1;
    return true;
}

/* The average precision of a class of which there are so many things. */
static double average(measuring *m, int class, size_t things)
{
    size_t count = 0, right = 0;
    for (size_t n = 0; n < m->list->found_count; n++) {
        detection *const found = &m->list->found[m->order[n].number];
        if (found->class != class)
            continue;
        m->hits[count] = judge(m, found);
        right += m->hits[count++];
        m->precise[count - 1] = (double)right / (double)count;
    }
    double sum = 0.0, largest = 0.0;
    for (size_t n = count; n-- > 0;) {
        largest = m->precise[n] > largest ? m->precise[n] : largest;
        sum += m->hits[n] ? largest : 0.0;
    }
    return sum / (double)things;
}

static void measure(measuring *m, double *of_class, double *mean)
{
    const detection_list *const list = m->list;
    double sum = 0.0;
    int known = 0;
    for (size_t n = 0; n < list->found_count; n++) {
        m->order[n] = (ranked){list->found[n].score, n};
        list->found[n].right = 0;
    }
    qsort(m->order, list->found_count, sizeof *m->order, compare);
    for (int class = 0; class < list->classes; class ++) {
        size_t things = 0;
        for (size_t n = 0; n < list->truth_count; n++)
            things += list->truths[n].class == class;
        of_class[class] = things > 0 ? average(m, class, things) : (double)NAN;
        known += things > 0;
        sum += things > 0 ? of_class[class] : 0.0;
    }
    *mean = known > 0 ? sum / known : (double)NAN;
}

mha_status precision_measure(detection_list *list, double *of_class, double *mean)
{
    const size_t found = list->found_count + 1, truths = list->truth_count + 1;
    measuring m = {.list = list,
                   .order = malloc(found * sizeof *m.order),
                   .taken = calloc(truths, sizeof *m.taken),
                   .precise = malloc(found * sizeof *m.precise),
                   .hits = malloc(found * sizeof *m.hits)};
    const bool fine = m.order && m.taken && m.precise && m.hits;
    if (fine)
        measure(&m, of_class, mean);
    free(m.order);
    free(m.taken);
    free(m.precise);
    free(m.hits);
    return fine ? MHA_OK : MHA_ERR_MEMORY;
}
