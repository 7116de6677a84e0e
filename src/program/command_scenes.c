/* SPDX-License-Identifier: MIT */
/* mha scenes: pictures of coloured shapes with everything that is true of them, or statistics of
 * the splits. The scenes room makes both; here they are printed and written. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/leftover_files.h"
#include "base/output_file.h"
#include "format/json_writer.h"
#include "picture/png_file.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/options.h"
#include "scenes/scene_caption.h"
#include "scenes/scene_stats.h"

static const char details[] =
    "Each picture has one to three coloured shapes on a textured, noisy ground, and everything is\n"
    "known about it: colour, kind, size, texture, box and pixels of each shape, and how they lie "
    "to\n"
    "each other. Each line is a caption in English, a tab and the same in French.\n"
    "\n"
    "-o writes the pictures as PNG files, for each a second one in which every pixel is the "
    "number\n"
    "of the shape that it shows (from 1 on, 0 for the ground), and truth.json, which --json "
    "prints.\n"
    "\n"
    "Combinations of two colours and kinds with their relation that occur in valid or test never\n"
    "occur in train; --stats counts them in the first N scenes of every split.\n"
    "\n"
    "Examples:\n"
    "  mha scenes --split test --count 5\n"
    "  mha scenes --count 20 -o scenes\n"
    "  mha scenes --stats --count 20000\n";

typedef struct scenes_request {
    const char *split_name, *folder;
    corpus_split split;
    int64_t count;
    uint64_t seed;
    bool as_json, stats;
} scenes_request;

enum { PATH_BYTES = 4096, NAME_BYTES = 40 };

/* "test-000012.png" and "test-000012-shapes.png". */
static void name_picture(const scenes_request *r, int64_t index, const char *what,
                         char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%s-%06" PRId64 "%s.png", corpus_split_name(r->split), index, what);
}

/* ------------------------------------------------------------------ truth ----- */

static void put_shape(json *j, const scene_shape *shape)
{
    json_open_object(j, NULL);
    json_string(j, "color", scene_color_name(shape->color));
    json_string(j, "kind", scene_kind_name(shape->kind));
    json_string(j, "size", scene_size_name(shape->size));
    json_string(j, "texture", scene_texture_name(shape->texture));
    const float box[] = {(float)shape->box.left, (float)shape->box.top, (float)shape->box.right,
                         (float)shape->box.bottom};
    json_numbers(j, "box", box, 4);
    json_integer(j, "pixels", shape->visible);
    json_integer(j, "hidden_pixels", shape->drawn - shape->visible);
    json_close(j);
}

static void put_relations(json *j, const scene *s)
{
    json_open_array(j, "relations");
    for (int second = 1; second < s->count; second++)
        for (int first = 0; first < second; first++) {
            json_open_object(j, NULL);
            json_integer(j, "shape", first + 1);
            json_string(j, "relation", scene_relation_name(scene_relation_of(s, first, second)));
            json_integer(j, "other", second + 1);
            json_close(j);
        }
    json_close(j);
}

static void put_captions(json *j, const scene *s)
{
    for (int n = 0; n < SCENE_LANGUAGES; n++) {
        char text[CAPTION_TEXT_MAX];
        scene_caption caption;
        scene_caption_make(s, (scene_language)n, &caption);
        caption_text(caption.words, caption.count, text);
        json_string(j, scene_language_name((scene_language)n), text);
    }
}

static void put_truth(FILE *file, const void *arg)
{
    const scenes_request *const r = arg;
    json j = json_begin(file);
    json_open_array(&j, NULL);
    for (int64_t n = 0; n < r->count; n++) {
        scene s;
        char name[NAME_BYTES], shapes[NAME_BYTES];
        scene_generate(r->seed, r->split, (uint64_t)n, &s);
        name_picture(r, n, "", name);
        name_picture(r, n, "-shapes", shapes);
        json_open_object(&j, NULL);
        json_string(&j, "picture", name);
        json_string(&j, "shapes_picture", shapes);
        put_captions(&j, &s);
        json_open_array(&j, "shapes");
        for (int k = 0; k < s.count; k++)
            put_shape(&j, &s.shapes[k]);
        json_close(&j);
        put_relations(&j, &s);
        json_close(&j);
    }
    json_close(&j);
}

/* --------------------------------------------------------------- pictures ----- */

static int write_png(const char *folder, const char *name, int channels, const uint8_t *planes)
{
    char path[PATH_BYTES], message[PICTURE_MESSAGE_MAX] = "";
    picture p = picture_new(SCENE_SIDE, SCENE_SIDE, channels);
    if (p.pixels == NULL)
        return args_failed("out of memory");
    for (int at = 0; at < SCENE_PIXELS; at++)
        for (int c = 0; c < channels; c++)
            p.pixels[at * channels + c] = planes[c * SCENE_PIXELS + at];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const bool written = png_file_write(path, &p, message);
    picture_free(&p);
    if (written)
        return EXIT_GO_ON;
    return *message ? args_failed("%s", message) : EXIT_FAILED;
}

static int write_scene(const scenes_request *r, int64_t index)
{
    scene s;
    char name[NAME_BYTES];
    uint8_t shown[SCENE_PIXELS];
    scene_generate(r->seed, r->split, (uint64_t)index, &s);
    for (int at = 0; at < SCENE_PIXELS; at++)
        shown[at] = (uint8_t)(s.shows[at] + 1);
    name_picture(r, index, "", name);
    const int code = write_png(r->folder, name, SCENE_CHANNELS, s.pixels);
    name_picture(r, index, "-shapes", name);
    return code == EXIT_GO_ON ? write_png(r->folder, name, 1, shown) : code;
}

/* truth.json comes last: what it names is there. */
static int write_folder(const scenes_request *r)
{
    char path[PATH_BYTES];
    if (strlen(r->folder) > PATH_BYTES - NAME_BYTES - 1)
        return args_wrong("scenes: the name of the folder is too long");
    if (mkdir(r->folder, 0777) != 0 && errno != EEXIST)
        return args_failed("cannot make the folder %s: %s", r->folder, strerror(errno));
    snprintf(path, sizeof path, "%s-", corpus_split_name(r->split));
    leftover_files_remove_all(r->folder, path);
    snprintf(path, sizeof path, "%s/truth.json", r->folder);
    if (!output_file_check(path))
        return EXIT_FAILED;
    for (int64_t n = 0; n < r->count; n++) {
        const int code = write_scene(r, n);
        if (code != EXIT_GO_ON)
            return code;
    }
    return output_file_write(path, put_truth, r) ? EXIT_FINE : EXIT_FAILED;
}

static int print_captions(const scenes_request *r)
{
    for (int64_t n = 0; n < r->count; n++) {
        scene s;
        scene_generate(r->seed, r->split, (uint64_t)n, &s);
        for (int k = 0; k < SCENE_LANGUAGES; k++) {
            char text[CAPTION_TEXT_MAX];
            scene_caption caption;
            scene_caption_make(&s, (scene_language)k, &caption);
            caption_text(caption.words, caption.count, text);
            printf("%s%s", k > 0 ? "\t" : "", text);
        }
        putchar('\n');
    }
    return EXIT_FINE;
}

/* ------------------------------------------------------------------ stats ----- */

static double share(const scene_stats *stats, int64_t count)
{
    return 100.0 * (double)count / (double)stats->scenes;
}

static void print_stats_text(const scene_stats *stats)
{
    printf("%-34s %10s %10s %10s\n", "", "train", "valid", "test");
#define ROW(name, format, value)                            \
    do {                                                    \
        printf("%-34s", name);                              \
        for (int split = 0; split < CORPUS_SPLITS; split++) \
            printf(" " format, value);                      \
        putchar('\n');                                      \
    } while (0)
    ROW("combinations there can be", "%10d", stats->split[split].possible);
    ROW("scenes counted", "%10" PRId64, stats->scenes);
    ROW("with one shape, %", "%10.2f", share(stats, stats->split[split].shapes[1]));
    ROW("with two", "%10.2f", share(stats, stats->split[split].shapes[2]));
    ROW("with three", "%10.2f", share(stats, stats->split[split].shapes[3]));
    ROW("in which one hides some of another", "%10.2f", share(stats, stats->split[split].hidden));
    ROW("pixels of the ground, %", "%10.2f", 100.0 * stats->split[split].ground);
    ROW("combinations that occur", "%10d", stats->split[split].combinations);
    ROW("of them, the split's own", "%10d", stats->split[split].own);
#undef ROW
    printf("\nheld-out combinations in train  %d\n", stats->shared);
}

static void print_stats_json(const scene_stats *stats)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_integer(&j, "scenes", stats->scenes);
    for (int split = 0; split < CORPUS_SPLITS; split++) {
        const scene_split_stats *const own = &stats->split[split];
        json_open_object(&j, corpus_split_name((corpus_split)split));
        json_integer(&j, "possible_combinations", own->possible);
        json_integer(&j, "one_shape", own->shapes[1]);
        json_integer(&j, "two_shapes", own->shapes[2]);
        json_integer(&j, "three_shapes", own->shapes[3]);
        json_integer(&j, "hiding", own->hidden);
        json_number(&j, "ground", own->ground);
        json_integer(&j, "combinations", own->combinations);
        json_integer(&j, "own_combinations", own->own);
        json_close(&j);
    }
    json_integer(&j, "shared_combinations", stats->shared);
    json_close(&j);
}

static int print_stats(const scenes_request *r)
{
    scene_stats stats;
    scene_stats_measure(&stats, r->seed, r->count);
    if (r->as_json)
        print_stats_json(&stats);
    else
        print_stats_text(&stats);
    return EXIT_FINE;
}

/* ---------------------------------------------------------------- command ----- */

int command_scenes(int argc, char **argv)
{
    scenes_request request = {.split_name = "train", .count = 10, .seed = 1};
    uint64_t given = 0;
    const arg_option options[] = {
        {"split", ARG_TEXT, &request.split_name, "S", "train, valid or test (train)", 0, 0},
        {"count", ARG_NUMBER, &request.count, "N", "number of scenes (10)", 1, 1000000},
        {"seed", ARG_SEED, &request.seed, "N", "seed of the scenes (1)", 0, 0},
        {"o", ARG_TEXT, &request.folder, "FOLDER", "write pictures and truth.json here", 0, 0},
        {"stats", ARG_FLAG, &request.stats, NULL, "print statistics of all splits instead", 0, 0},
        {"json", ARG_FLAG, &request.as_json, NULL, "print the truth as JSON", 0, 0},
    };
    const arg_command command = {
        .name = "scenes",
        .usage = "[--split S] [--count N] [--seed N] [-o FOLDER] [--stats] [--json]",
        .summary = "Make pictures of coloured shapes with known truth and captions.",
        .details = details,
        ARG_OPTIONS(options),
        .given = &given,
    };
    int code = args_parse(&command, argc, argv, NULL);
    if (code == EXIT_GO_ON && request.stats)
        code = args_refuse(&command, "split o",
                           "is for the scenes of one split; --stats counts all of them");
    if (code == EXIT_GO_ON && request.folder != NULL)
        code = args_refuse(&command, "json", "prints what -o writes to truth.json");
    if (code == EXIT_GO_ON)
        code = option_split("scenes", request.split_name, &request.split);
    if (code != EXIT_GO_ON)
        return code;
    if (request.stats)
        return print_stats(&request);
    if (request.folder != NULL)
        return write_folder(&request);
    if (!request.as_json)
        return print_captions(&request);
    put_truth(stdout, &request);
    return EXIT_FINE;
}
