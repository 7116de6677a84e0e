/* SPDX-License-Identifier: MIT */
/* Counts combinations of scenes, for "mha scenes --stats". */
#include "scenes/scene_stats.h"

#include <string.h>

static void count_possible(scene_stats *stats)
{
    for (int n = 0; n < SCENE_COMBINATIONS; n++) {
        const scene_combination c = scene_combination_at(n);
        stats->split[scene_combination_split(&c)].possible++;
    }
}

static void count_scene(scene_split_stats *own, const scene *s, bool seen[SCENE_COMBINATIONS])
{
    scene_combination list[SCENE_PAIRS_MAX];
    const int count = scene_combinations(s, list);
    bool hides = false;
    int shown = 0;
    for (int n = 0; n < count; n++)
        seen[scene_combination_number(&list[n])] = true;
    for (int n = 0; n < s->count; n++) {
        hides = hides || s->shapes[n].visible < s->shapes[n].drawn;
        shown += s->shapes[n].visible;
    }
    own->shapes[s->count]++;
    own->hidden += hides;
    own->ground += (double)(SCENE_PIXELS - shown) / SCENE_PIXELS;
}

static void count_split(scene_stats *stats, corpus_split split, uint64_t seed,
                        bool seen[SCENE_COMBINATIONS])
{
    scene_split_stats *const own = &stats->split[split];
    scene s;
    memset(seen, 0, SCENE_COMBINATIONS * sizeof *seen);
    for (int64_t n = 0; n < stats->scenes; n++) {
        scene_generate(seed, split, (uint64_t)n, &s);
        count_scene(own, &s, seen);
    }
    own->ground /= stats->scenes > 0 ? (double)stats->scenes : 1.0;
    for (int n = 0; n < SCENE_COMBINATIONS; n++) {
        const scene_combination c = scene_combination_at(n);
        const corpus_split belongs = scene_combination_split(&c);
        own->combinations += seen[n];
        own->own += seen[n] && belongs == split;
        stats->shared += split == CORPUS_TRAIN && seen[n] && belongs != CORPUS_TRAIN;
    }
}

void scene_stats_measure(scene_stats *stats, uint64_t seed, int64_t scenes)
{
    bool seen[SCENE_COMBINATIONS];
    *stats = (scene_stats){.scenes = scenes};
    count_possible(stats);
    for (int split = 0; split < CORPUS_SPLITS; split++)
        count_split(stats, (corpus_split)split, seed, seen);
}
