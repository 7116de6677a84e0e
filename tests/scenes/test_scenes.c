/* SPDX-License-Identifier: MIT */
/*
 * Scenes: that they never change, that masks, boxes and counts are those of what is drawn, that
 * shapes can be seen and told apart, that relations are never in doubt, that no combination of
 * valid or test is in train, over all combinations there are; and captions, which are read back to
 * the shapes by a grammar of their own.
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "scenes/scene_caption.h"
#include "scenes/scene_stats.h"

enum { SCENES = 1500 };

static corpus_split split_of(int n)
{
    return (corpus_split)(n % CORPUS_SPLITS);
}

/* A colour and kind as one number, in the order of captions. */
static int thing_of(scene_color color, scene_kind kind)
{
    return (int)color * SCENE_KINDS + (int)kind;
}

/* ----------------------------------------------------------------- pixels ----- */

static uint64_t hash_bytes_of(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *const at = bytes;
    for (size_t n = 0; n < count; n++)
        hash = (hash ^ at[n]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Models depend on them. A changed number here means that all must be trained again. */
static void scenes_never_change(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int n = 0; n < 300; n++) {
        scene s;
        scene_generate(1, split_of(n), (uint64_t)n, &s);
        hash = hash_bytes_of(hash, s.pixels, sizeof s.pixels);
        hash = hash_bytes_of(hash, s.shows, sizeof s.shows);
    }
    CHECK(hash == UINT64_C(0xd2d04d3a37c668f0), "the scenes have changed: 0x%016llx",
          (unsigned long long)hash);
}

static void seeds_splits_and_numbers_matter(void)
{
    scene s, other;
    scene_generate(1, CORPUS_TRAIN, 5, &s);
    scene_generate(1, CORPUS_TRAIN, 5, &other);
    CHECK(memcmp(s.pixels, other.pixels, sizeof s.pixels) == 0, "not the same again");
    scene_generate(2, CORPUS_TRAIN, 5, &other);
    CHECK(memcmp(s.pixels, other.pixels, sizeof s.pixels) != 0, "another seed");
    scene_generate(1, CORPUS_TRAIN, 6, &other);
    CHECK(memcmp(s.pixels, other.pixels, sizeof s.pixels) != 0, "another number");
    scene_generate(1, CORPUS_TEST, 5, &other);
    CHECK(memcmp(s.pixels, other.pixels, sizeof s.pixels) != 0, "another split");
}

/* The forms in the words of geometry, in pixels as real numbers. */
static bool form_covers(const scene_shape *shape, double x, double y)
{
    const double r = shape->radius / 2.0, dx = x - shape->x / 2.0, dy = y - shape->y / 2.0;
    const double across = dx < 0 ? -dx : dx, down = dy < 0 ? -dy : dy;
    switch (shape->kind) {
    case SCENE_CIRCLE:
        return dx * dx + dy * dy <= r * r;
    case SCENE_SQUARE:
        return across <= 0.875 * r && down <= 0.875 * r;
    case SCENE_TRIANGLE:
        return dy <= 0.75 * r && across * 1.75 <= dy + r;
    case SCENE_CROSS:
        return (across <= r && down * 3.0 <= r) || (down <= r && across * 3.0 <= r);
    case SCENE_RING:
        return dx * dx + dy * dy <= r * r && dx * dx + dy * dy >= r * r / 4.0;
    case SCENE_BAR:
        return across <= r && down <= 0.4 * r + 1e-9;
    case SCENE_KINDS:
        break;
    }
    return false;
}

static void check_pixels(const scene *s, int number)
{
    scene_box boxes[SCENE_SHAPES_MAX];
    int visible[SCENE_SHAPES_MAX] = {0}, drawn[SCENE_SHAPES_MAX] = {0};
    for (int n = 0; n < s->count; n++)
        boxes[n] = (scene_box){99, 99, -1, -1};
    for (int at = 0; at < SCENE_PIXELS; at++) {
        const int x = at % SCENE_SIDE, y = at / SCENE_SIDE;
        int shown = SCENE_GROUND, depth = -1;
        for (int n = 0; n < s->count; n++)
            if (form_covers(&s->shapes[n], x + 0.5, y + 0.5)) {
                drawn[n]++;
                if (s->shapes[n].depth > depth) {
                    depth = s->shapes[n].depth;
                    shown = n;
                }
            }
        CHECK(s->shows[at] == shown, "scene %d, pixel %d, %d: shows %d, not %d", number, x, y,
              s->shows[at], shown);
        if (shown == SCENE_GROUND)
            continue;
        scene_box *const box = &boxes[shown];
        visible[shown]++;
        box->left = x < box->left ? x : box->left;
        box->top = y < box->top ? y : box->top;
        box->right = x >= box->right ? x + 1 : box->right;
        box->bottom = y >= box->bottom ? y + 1 : box->bottom;
    }
    for (int n = 0; n < s->count; n++) {
        CHECK(memcmp(&boxes[n], &s->shapes[n].box, sizeof boxes[n]) == 0,
              "scene %d: the box of shape %d is not tight", number, n);
        CHECK(visible[n] == s->shapes[n].visible && drawn[n] == s->shapes[n].drawn,
              "scene %d: pixels of shape %d: %d of %d", number, n, visible[n], drawn[n]);
        CHECK(visible[n] * 10 >= drawn[n] * 7 && drawn[n] >= 9,
              "scene %d: only %d of %d pixels of shape %d are seen", number, visible[n], drawn[n],
              n);
    }
}

static void truth_is_what_is_drawn(void)
{
    for (int n = 0; n < SCENES; n++) {
        scene s;
        scene_generate(7, split_of(n), (uint64_t)n, &s);
        check_pixels(&s, n);
    }
}

/* The mean colour of what a mask says is nearest to that of the shape's name; and the ground is
 * grey and darker than any shape. */
static void masks_have_the_colours(void)
{
    static const int wanted[SCENE_COLORS][3] = {{215, 45, 45},  {50, 175, 60},  {55, 90, 230},
                                                {235, 210, 55}, {165, 60, 190}, {235, 235, 235}};
    for (int n = 0; n < SCENES; n++) {
        scene s;
        scene_generate(8, split_of(n), (uint64_t)n, &s);
        for (int k = 0; k < s.count; k++) {
            double sums[3] = {0}, best = 1e9;
            int named = -1;
            for (int at = 0; at < SCENE_PIXELS; at++)
                for (int c = 0; c < 3 && s.shows[at] == k; c++)
                    sums[c] += s.pixels[c * SCENE_PIXELS + at];
            for (int color = 0; color < SCENE_COLORS; color++) {
                double distance = 0.0;
                for (int c = 0; c < 3; c++) {
                    const double dark = s.shapes[k].texture == SCENE_PLAIN ? 1.0 : 0.875;
                    const double apart = sums[c] / s.shapes[k].visible - dark * wanted[color][c];
                    distance += apart * apart;
                }
                named = distance < best ? color : named;
                best = distance < best ? distance : best;
            }
            CHECK(named == (int)s.shapes[k].color, "scene %d: shape %d looks %s, not %s", n, k,
                  scene_color_name((scene_color)named), scene_color_name(s.shapes[k].color));
        }
    }
}

static void relations_are_clear(void)
{
    bool met[SCENE_RELATIONS] = {false};
    for (int n = 0; n < SCENES; n++) {
        scene s;
        scene_generate(9, split_of(n), (uint64_t)n, &s);
        for (int a = 0; a < s.count; a++)
            for (int b = 0; b < s.count; b++) {
                if (a == b)
                    continue;
                const scene_relation relation = scene_relation_of(&s, a, b);
                const int right = s.shapes[a].x - s.shapes[b].x;
                const int down = s.shapes[a].y - s.shapes[b].y;
                const int along[SCENE_RELATIONS] = {-down, down, -right, right};
                for (int other = 0; other < SCENE_RELATIONS; other++)
                    CHECK(other == (int)relation || along[other] + SCENE_CLEAR <= along[relation],
                          "scene %d: shape %d %s %d is in doubt", n, a,
                          scene_relation_name(relation), b);
                CHECK(scene_relation_of(&s, b, a) == scene_relation_reversed(relation),
                      "scene %d: shapes %d and %d", n, a, b);
                CHECK(a > b || thing_of(s.shapes[a].color, s.shapes[a].kind) <
                                   thing_of(s.shapes[b].color, s.shapes[b].kind),
                      "scene %d: shapes %d and %d are not in the order of captions", n, a, b);
                met[relation] = true;
            }
    }
    for (int n = 0; n < SCENE_RELATIONS; n++)
        CHECK(met[n], "never %s", scene_relation_name((scene_relation)n));
}

/* ----------------------------------------------------------------- splits ----- */

static void combinations_are_numbered(void)
{
    for (int n = 0; n < SCENE_COMBINATIONS; n++) {
        const scene_combination c = scene_combination_at(n);
        CHECK(scene_combination_number(&c) == n, "combination %d", n);
        CHECK(c.first_color < c.second_color ||
                  (c.first_color == c.second_color && c.first_kind < c.second_kind),
              "combination %d is not in the order of captions", n);
    }
}

/* Every colour and kind is learnt on either side of every relation, and every pair of things in at
 * least one: what the splits hold out is the whole, not its parts. */
static void parts_of_held_out_combinations_are_trained(void)
{
    bool first[SCENE_THINGS][SCENE_RELATIONS] = {{false}}, second[SCENE_THINGS][SCENE_RELATIONS];
    int counts[CORPUS_SPLITS] = {0};
    memset(second, 0, sizeof second);
    for (int n = 0; n < SCENE_COMBINATIONS; n++) {
        const scene_combination c = scene_combination_at(n);
        const corpus_split split = scene_combination_split(&c);
        counts[split]++;
        if (split != CORPUS_TRAIN)
            continue;
        first[thing_of(c.first_color, c.first_kind)][c.relation] = true;
        second[thing_of(c.second_color, c.second_kind)][c.relation] = true;
    }
    for (int n = 0; n < SCENE_THINGS; n++)
        for (int r = 0; r < SCENE_RELATIONS; r++) {
            CHECK(first[n][r] || n == SCENE_THINGS - 1, "thing %d never comes first, %d", n, r);
            CHECK(second[n][r] || n == 0, "thing %d never comes second, %d", n, r);
        }
    CHECK(counts[CORPUS_TEST] > SCENE_COMBINATIONS * 8 / 100 &&
              counts[CORPUS_TEST] < SCENE_COMBINATIONS * 12 / 100 &&
              counts[CORPUS_VALID] > SCENE_COMBINATIONS * 3 / 100 &&
              counts[CORPUS_VALID] < SCENE_COMBINATIONS * 7 / 100,
          "%d test, %d valid of %d", counts[CORPUS_TEST], counts[CORPUS_VALID], SCENE_COMBINATIONS);
}

/* The proof: of all combinations, those of valid and test do not occur in train, by a count of all
 * pairs of shapes that does not use the room's own. Scenes of valid and test have one of theirs
 * and none of the other. So many scenes are made that nearly all combinations occur. */
static void splits_do_not_overlap(void)
{
    static bool seen[CORPUS_SPLITS][SCENE_COMBINATIONS];
    int met[CORPUS_SPLITS] = {0};
    memset(seen, 0, sizeof seen);
    for (int n = 0; n < 8 * SCENES; n++) {
        const corpus_split split = split_of(n);
        int own = 0, others = 0;
        scene s;
        scene_generate(10, split, (uint64_t)n, &s);
        for (int a = 0; a < s.count; a++)
            for (int b = a + 1; b < s.count; b++) {
                const scene_combination c = {s.shapes[a].color, s.shapes[a].kind,
                                             scene_relation_of(&s, a, b), s.shapes[b].color,
                                             s.shapes[b].kind};
                const corpus_split belongs = scene_combination_split(&c);
                own += belongs == split;
                others += belongs != split && belongs != CORPUS_TRAIN;
                seen[split][scene_combination_number(&c)] = true;
            }
        CHECK(others == 0, "scene %d of %s has a combination of another", n,
              corpus_split_name(split));
        CHECK(own > 0 || split == CORPUS_TRAIN, "scene %d of %s has none of its own", n,
              corpus_split_name(split));
    }
    for (int n = 0; n < SCENE_COMBINATIONS; n++) {
        const scene_combination c = scene_combination_at(n);
        const corpus_split belongs = scene_combination_split(&c);
        for (int split = 0; split < CORPUS_SPLITS; split++)
            CHECK(!seen[split][n] || belongs == CORPUS_TRAIN || (int)belongs == split,
                  "combination %d of %s is in %s", n, corpus_split_name(belongs),
                  corpus_split_name((corpus_split)split));
        met[belongs] += seen[belongs][n];
    }
    for (int split = 0; split < CORPUS_SPLITS; split++)
        CHECK(met[split] > 90, "only %d combinations of %s occurred", met[split],
              corpus_split_name((corpus_split)split));
}

static void statistics_count(void)
{
    scene_stats stats;
    scene_stats_measure(&stats, 3, 400);
    int all = 0;
    for (int split = 0; split < CORPUS_SPLITS; split++) {
        const scene_split_stats *const own = &stats.split[split];
        all += own->possible;
        CHECK(own->shapes[1] + own->shapes[2] + own->shapes[3] == 400, "split %d", split);
        CHECK(own->own <= own->possible && own->own <= own->combinations && own->own > 0,
              "split %d", split);
        CHECK((own->shapes[1] == 0) == (split != CORPUS_TRAIN), "single shapes of split %d", split);
        CHECK(own->hidden > 20 && own->hidden < 300, "split %d: %lld scenes with hidden pixels",
              split, (long long)own->hidden);
    }
    CHECK(all == SCENE_COMBINATIONS && stats.shared == 0, "%d combinations, %d shared", all,
          stats.shared);
}

/* --------------------------------------------------------------- captions ----- */

static void caption_of(const scene *s, scene_language language, char text[CAPTION_TEXT_MAX])
{
    scene_caption caption;
    scene_caption_make(s, language, &caption);
    caption_text(caption.words, caption.count, text);
}

static void captions_read_well(void)
{
    char text[CAPTION_TEXT_MAX];
    scene s = {.count = 2};
    s.shapes[0] = (scene_shape){
        .color = SCENE_RED, .kind = SCENE_SQUARE, .size = SCENE_SMALL, .x = 30, .y = 20};
    s.shapes[1] = (scene_shape){
        .color = SCENE_BLUE, .kind = SCENE_CIRCLE, .size = SCENE_MIDDLE, .x = 34, .y = 60};
    caption_of(&s, SCENE_ENGLISH, text);
    CHECK(strcmp(text, "a small red square above a blue circle") == 0, "%s", text);
    caption_of(&s, SCENE_FRENCH, text);
    CHECK(strcmp(text, "un petit carré rouge au-dessus d'un cercle bleu") == 0, "%s", text);
    s.shapes[2] = (scene_shape){
        .color = SCENE_WHITE, .kind = SCENE_BAR, .size = SCENE_LARGE, .x = 60, .y = 22};
    s.count = 3;
    caption_of(&s, SCENE_ENGLISH, text);
    CHECK(strcmp(text, "a small red square above a blue circle and to the left of a large white "
                       "bar") == 0,
          "%s", text);
    caption_of(&s, SCENE_FRENCH, text);
    CHECK(strcmp(text, "un petit carré rouge au-dessus d'un cercle bleu et à gauche d'une grande "
                       "barre blanche") == 0,
          "%s", text);
    const int strange[] = {-1, caption_word_count(), 2};
    caption_text(strange, 3, text);
    CHECK(strcmp(text, "? ? a") == 0, "%s", text);
}

/* Words of a caption in order; `next` is -1 where none of the given ones comes next. */
typedef struct reader {
    const scene_caption *caption;
    int at;
} reader;

static int next(reader *r, const char *const *names, int count)
{
    if (r->at >= r->caption->count)
        return -1;
    const char *const word = caption_word(r->caption->words[r->at]);
    for (int n = 0; n < count; n++)
        if (word != NULL && strcmp(word, names[n]) == 0) {
            r->at++;
            return n;
        }
    return -1;
}

/* A word about a shape says which. */
static int next_of(reader *r, int shape, const char *const *names, int count)
{
    const int found = next(r, names, count);
    CHECK(found < 0 || r->caption->shapes[r->at - 1] == shape, "word %d is about shape %d, not %d",
          r->at - 1, r->caption->shapes[r->at - 1], shape);
    return found;
}

typedef struct thing_said {
    int color, kind, size;
} thing_said;

static const char *const english_sizes[] = {"small", "large"};
static const char *const english_colors[] = {"red", "green", "blue", "yellow", "purple", "white"};
static const char *const english_kinds[] = {"circle", "square", "triangle", "cross", "ring", "bar"};
static const char *const french_articles[] = {"un", "une"};
static const char *const french_sizes[2][2] = {{"petit", "grand"}, {"petite", "grande"}};
static const char *const french_colors[2][6] = {
    {"rouge", "vert", "bleu", "jaune", "violet", "blanc"},
    {"rouge", "verte", "bleue", "jaune", "violette", "blanche"}};
static const char *const french_kinds[2][6] = {{"cercle", "carré", "triangle", "-", "anneau", "-"},
                                               {"-", "-", "-", "croix", "-", "barre"}};

static thing_said read_shape(reader *r, scene_language language, int number)
{
    static const char *const a[] = {"a"};
    thing_said s;
    if (language == SCENE_ENGLISH) {
        CHECK(next(r, a, 1) == 0, "no article");
        s.size = next_of(r, number, english_sizes, 2);
        s.color = next_of(r, number, english_colors, 6);
        s.kind = next_of(r, number, english_kinds, 6);
        return s;
    }
    const int gender = next(r, french_articles, 2);
    if (!CHECK(gender >= 0, "no article"))
        return (thing_said){-1, -1, -1};
    s.size = next_of(r, number, french_sizes[gender], 2);
    s.kind = next_of(r, number, french_kinds[gender], 6);
    s.color = next_of(r, number, french_colors[gender], 6);
    return s;
}

static int read_relation(reader *r, scene_language language)
{
    static const char *const above[2][2] = {{"above", "below"}, {"au-dessus", "au-dessous"}};
    static const char *const beside[2][2] = {{"left", "right"}, {"gauche", "droite"}};
    static const char *const to[] = {"to"}, *const the[] = {"the"}, *const of[] = {"of"},
                             *const at[] = {"à"}, *const from[] = {"d'"};
    int relation = next(r, above[language], 2);
    if (relation < 0 && language == SCENE_ENGLISH)
        relation = next(r, to, 1) == 0 && next(r, the, 1) == 0 ? 2 + next(r, beside[0], 2) : -1;
    else if (relation < 0)
        relation = next(r, at, 1) == 0 ? 2 + next(r, beside[1], 2) : -1;
    if (language == SCENE_ENGLISH)
        CHECK(relation < 2 || next(r, of, 1) == 0, "no \"of\"");
    else
        CHECK(next(r, from, 1) == 0, "no \"d'\"");
    return relation;
}

/* A caption says of every shape what is true, and nothing else. */
static void captions_are_understood(void)
{
    static const char *const and[] = {"and", "et"};
    int longest = 0;
    for (int n = 0; n < SCENES; n++) {
        const scene_language language = (scene_language)(n / 3 % 2);
        scene s;
        scene_caption caption;
        scene_generate(11, split_of(n), (uint64_t)n, &s);
        scene_caption_make(&s, language, &caption);
        reader r = {&caption, 0};
        for (int k = 0; k < s.count; k++) {
            const scene_shape *const shape = &s.shapes[k];
            const int size = shape->size == SCENE_SMALL ? 0 : shape->size == SCENE_LARGE ? 1 : -1;
            CHECK(k < 2 || next(&r, and+language, 1) == 0, "scene %d: no \"and\"", n);
            if (k > 0)
                CHECK(read_relation(&r, language) == (int)scene_relation_of(&s, 0, k),
                      "scene %d: another relation", n);
            const thing_said said = read_shape(&r, language, k);
            CHECK(said.color == (int)shape->color && said.kind == (int)shape->kind &&
                      said.size == size,
                  "scene %d: shape %d is said to be another", n, k);
        }
        CHECK(r.at == caption.count, "scene %d: more is said", n);
        longest = caption.count > longest ? caption.count : longest;
    }
    CHECK(longest == CAPTION_WORDS_MAX, "the longest caption has %d words", longest);
}

/* Every word of the list is used, and none is there twice. */
static void all_words_occur(void)
{
    bool used[64] = {[SCENE_ENGLISH] = true, [SCENE_FRENCH] = true};
    const int count = caption_word_count();
    if (!CHECK(count <= 64, "%d words", count))
        return;
    for (int n = 0; n < SCENES; n++)
        for (int language = 0; language < SCENE_LANGUAGES; language++) {
            scene s;
            scene_caption caption;
            scene_generate(12, CORPUS_TRAIN, (uint64_t)n, &s);
            scene_caption_make(&s, (scene_language)language, &caption);
            for (int k = 0; k < caption.count; k++)
                if (CHECK(caption.words[k] < count, "a word that is not in the list"))
                    used[caption.words[k]] = true;
        }
    for (int n = 0; n < count; n++) {
        CHECK(used[n], "\"%s\" is never said", caption_word(n));
        for (int k = 0; k < n; k++)
            CHECK(strcmp(caption_word(k), caption_word(n)) != 0, "\"%s\" twice", caption_word(n));
    }
    CHECK(caption_word(count) == NULL && caption_word(-1) == NULL, "a word too many");
    scene_language language = SCENE_ENGLISH;
    CHECK(scene_language_find("french", &language) && language == SCENE_FRENCH, "french");
    CHECK(!scene_language_find("latin", &language), "latin");
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(scenes_never_change);
    RUN(seeds_splits_and_numbers_matter);
    RUN(truth_is_what_is_drawn);
    RUN(masks_have_the_colours);
    RUN(relations_are_clear);
    RUN(combinations_are_numbered);
    RUN(parts_of_held_out_combinations_are_trained);
    RUN(splits_do_not_overlap);
    RUN(statistics_count);
    RUN(captions_read_well);
    RUN(captions_are_understood);
    RUN(all_words_occur);
    return test_end();
}
