/* SPDX-License-Identifier: MIT */
/* Heads over a picture, as PNG, as SVG and in the terminal (see_heads.h). */
#include "program/see_heads.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "draw/color_scale.h"
#include "draw/svg.h"
#include "model/inspect.h"
#include "picture/picture_resize.h"
#include "picture/png_file.h"
#include "program/args.h"
#include "program/see_picture.h"

enum {
    CELL = 112,
    HALF_SIDE = 48,
    GAP = 8,
    DEFS_SIDE = 64,
    LABEL = 64,
    TITLE = 40,
    NAME_BYTES = 48
};

/* --------------------------------------------------------------- weights ----- */

/* What the classifying row, or the mean of all rows, gives to each patch. */
static void take_shares(const head_maps *m, const float *weights, int tokens, float *to)
{
    const int marks = tokens - m->across * m->across, rows = marks > 0 ? 1 : tokens;
    for (int j = marks; j < tokens; j++) {
        double sum = 0.0;
        for (int i = 0; i < rows; i++)
            sum += (double)weights[i * tokens + j];
        to[j - marks] = (float)(sum / rows);
    }
}

static float *shares_of(const head_maps *m, int layer, int head)
{
    return m->shares + ((ptrdiff_t)layer * m->heads + head) * m->across * m->across;
}

static int capture(head_maps *m, const mha_model *model, int tokens, const float *pixels,
                   float *weights, mha_capture *captures, mha_pool *pool)
{
    const ptrdiff_t square = (ptrdiff_t)tokens * tokens;
    char message[256] = "";
    for (int n = 0; n < m->layers; n++)
        captures[n] = (mha_capture){
            .kind = MHA_ATTENTION_ENCODER,
            .layer = n,
            .weights = {weights + n * m->heads * square, m->heads * square, square, tokens}};
    const mha_model_call call = {.size = sizeof call,
                                 .B = 1,
                                 .pixels = pixels,
                                 .captures = captures,
                                 .capture_count = m->layers,
                                 .message = message,
                                 .message_size = sizeof message};
    const mha_status status = mha_model_run(model, &call, NULL, 0, pool);
    if (status != MHA_OK)
        return args_failed("%s", *message ? message : mha_status_string(status));
    for (int layer = 0; layer < m->layers; layer++)
        for (int head = 0; head < m->count[layer]; head++)
            take_shares(m, weights + (layer * m->heads + head) * square, tokens,
                        shares_of(m, layer, head));
    return EXIT_GO_ON;
}

int head_maps_make(head_maps *m, const mha_model *model, const mha_model_info *info,
                   const float *pixels, const picture *seen, mha_pool *pool)
{
    *m = (head_maps){.layers = (int)info->layers[MHA_ATTENTION_ENCODER],
                     .across = model_picture_across(model),
                     .side = (int)info->image_size,
                     .patch = (int)info->patch,
                     .stride = model_picture_stride(model),
                     .seen = seen};
    const int tokens = m->across * m->across + model_picture_marks(model);
    m->count = calloc((size_t)m->layers, sizeof *m->count);
    for (int n = 0; m->count != NULL && n < m->layers; n++) {
        m->count[n] = (int)mha_model_heads(model, MHA_ATTENTION_ENCODER, n);
        m->heads = m->count[n] > m->heads ? m->count[n] : m->heads;
    }
    const size_t maps = (size_t)m->layers * (size_t)m->heads;
    m->shares = calloc(maps * (size_t)(m->across * m->across) + 1, sizeof *m->shares);
    float *const weights = malloc((maps * (size_t)tokens * (size_t)tokens + 1) * sizeof *weights);
    mha_capture *const captures = calloc((size_t)m->layers + 1, sizeof *captures);
    const int code = m->count && m->shares && weights && captures
                         ? capture(m, model, tokens, pixels, weights, captures, pool)
                         : args_failed("out of memory for the weights of all heads");
    free(weights);
    free(captures);
    return code;
}

int head_maps_count(head_maps *m)
{
    m->count = calloc((size_t)m->layers, sizeof *m->count);
    if (m->count == NULL)
        return args_failed("out of memory for the weights of all heads");
    for (int n = 0; n < m->layers; n++)
        m->count[n] = m->heads;
    return EXIT_GO_ON;
}

void head_maps_free(head_maps *m)
{
    free(m->count);
    free(m->shares);
}

/* "layer 1", or the word of a row; "1.2", the layer and number of a head. */
static void name_row(const head_maps *m, int row, char text[NAME_BYTES])
{
    if (m->words != NULL)
        snprintf(text, NAME_BYTES, "%s", m->words[row]);
    else
        snprintf(text, NAME_BYTES, "layer %d", row + 1);
}

static void name_head(const head_maps *m, int row, int head, char text[NAME_BYTES])
{
    const bool words = m->words != NULL;
    snprintf(text, NAME_BYTES, "%d.%d", (words ? head / m->heads_of_layer : row) + 1,
             (words ? head % m->heads_of_layer : head) + 1);
}

static float largest_of(const head_maps *m, int layer, int head)
{
    const float *const shares = shares_of(m, layer, head);
    float largest = 0.0f;
    for (int n = 0; n < m->across * m->across; n++)
        largest = shares[n] > largest ? shares[n] : largest;
    return largest > 0.0f ? largest : 1.0f;
}

/* heats[side][side]: the share of every pixel, from 0 to 1, as the mean of the patches that it is
 * in. `counts` has the same size. */
static void find_heats(const head_maps *m, int layer, int head, double *heats, int *counts)
{
    const float *const shares = shares_of(m, layer, head);
    const double largest = (double)largest_of(m, layer, head);
    const int pixels = m->side * m->side;
    memset(counts, 0, (size_t)pixels * sizeof *counts);
    for (int n = 0; n < pixels; n++)
        heats[n] = 0.0;
    for (int n = 0; n < m->across * m->across; n++) {
        const int top = n / m->across * m->stride, left = n % m->across * m->stride;
        for (int k = 0; k < m->patch * m->patch; k++) {
            const int at = (top + k / m->patch) * m->side + left + k % m->patch;
            heats[at] += (double)shares[n] / largest;
            counts[at]++;
        }
    }
    for (int n = 0; n < pixels; n++)
        heats[n] /= counts[n] > 0 ? counts[n] : 1;
}

/* ---------------------------------------------------------------- pixels ----- */

static uint8_t blend(uint8_t below, uint8_t above, double share)
{
    return (uint8_t)((1.0 - share) * below + share * above + 0.5);
}

/* One head, `cell` pixels a side: its colour covers the picture the more, the larger its share. */
static void put_cell(const head_maps *m, int layer, int head, picture *sheet, ptrdiff_t top,
                     ptrdiff_t left, int cell, double *heats, int *counts)
{
    find_heats(m, layer, head, heats, counts);
    for (int y = 0; y < cell; y++)
        for (int x = 0; x < cell; x++) {
            const int row = y * m->side / cell, column = x * m->side / cell;
            const double heat = heats[row * m->side + column];
            const rgb below = see_picture_pixel(m->seen, row, column);
            const rgb above = color_scale(COLOR_ON_DARK, heat);
            uint8_t *const to = sheet->pixels + ((top + y) * sheet->columns + left + x) * 3;
            to[0] = blend(below.r / 2, above.r, 0.8 * heat);
            to[1] = blend(below.g / 2, above.g, 0.8 * heat);
            to[2] = blend(below.b / 2, above.b, 0.8 * heat);
        }
}

/* ------------------------------------------------------------------- PNG ----- */

static int write_png(const head_maps *m, const char *path)
{
    char message[PICTURE_MESSAGE_MAX] = "";
    picture sheet = picture_new(m->layers * (CELL + GAP) + GAP, m->heads * (CELL + GAP) + GAP, 3);
    double *const heats = malloc((size_t)m->side * (size_t)m->side * sizeof *heats);
    int *const counts = malloc((size_t)m->side * (size_t)m->side * sizeof *counts);
    bool fine = sheet.pixels != NULL && heats != NULL && counts != NULL;
    if (!fine)
        snprintf(message, sizeof message, "out of memory");
    for (int layer = 0; fine && layer < m->layers; layer++)
        for (int head = 0; head < m->count[layer]; head++)
            put_cell(m, layer, head, &sheet, GAP + layer * (CELL + GAP), GAP + head * (CELL + GAP),
                     CELL, heats, counts);
    fine = fine && png_file_write(path, &sheet, message);
    if (!fine && *message != '\0')
        args_failed("%s", message);
    free(heats);
    free(counts);
    picture_free(&sheet);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

/* ------------------------------------------------------------------- SVG ----- */

typedef struct svg_sheet {
    const head_maps *maps;
    const picture *small; /* the picture, at most DEFS_SIDE pixels a side */
    const char *title;
} svg_sheet;

/* The picture once, to be used below every head. */
static void put_picture(FILE *file, const picture *p)
{
    fputs("<defs><g id=\"p\" shape-rendering=\"crispEdges\">\n", file);
    see_picture_put(file, p, CELL, 2);
    fputs("</g></defs>\n", file);
}

static void put_head(FILE *file, const head_maps *m, int layer, int head, int left, int top)
{
    const double scale = (double)CELL / m->side, largest = (double)largest_of(m, layer, head);
    const float *const shares = shares_of(m, layer, head);
    char row[NAME_BYTES], name[NAME_BYTES];
    name_row(m, layer, row);
    name_head(m, layer, head, name);
    fprintf(file, "<g transform=\"translate(%d %d)\"><title>%s, head %s</title>", left, top, row,
            name);
    fputs("<use href=\"#p\"/>\n", file);
    for (int n = 0; n < m->across * m->across; n++) {
        const double share = (double)shares[n] / largest;
        const rgb c = color_scale(COLOR_ON_DARK, share);
        fprintf(file,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                "fill=\"#%02x%02x%02x\" fill-opacity=\"%.3f\"/>\n",
                scale * (n % m->across * m->stride), scale * (n / m->across * m->stride),
                scale * m->stride, scale * m->stride, c.r, c.g, c.b, 0.8 * share);
    }
    fputs("</g>\n", file);
}

static void put_svg(FILE *file, const void *arg)
{
    const svg_sheet *const s = arg;
    const head_maps *const m = s->maps;
    const int width = LABEL + m->heads * (CELL + GAP) + GAP;
    const int height = TITLE + m->layers * (CELL + GAP) + GAP;
    const char *const style = " fill=\"#e6edf3\" font-family=\"sans-serif\" font-size=\"13\"";
    char text[NAME_BYTES];
    svg_begin(file, width, height, s->title);
    fprintf(file, "<rect width=\"%d\" height=\"%d\" fill=\"#0d1117\"/>\n", width, height);
    put_picture(file, s->small);
    svg_text(file, GAP, TITLE - 16, style, s->title);
    for (int layer = 0; layer < m->layers; layer++) {
        const int top = TITLE + layer * (CELL + GAP);
        name_row(m, layer, text);
        svg_text(file, GAP, top + CELL / 2, style, text);
        for (int head = 0; head < m->count[layer]; head++)
            put_head(file, m, layer, head, LABEL + head * (CELL + GAP), top);
    }
    svg_end(file);
}

static int write_svg(const head_maps *m, const char *path, const char *title)
{
    const int side = m->side < DEFS_SIDE ? m->side : DEFS_SIDE;
    picture small = picture_resize(m->seen, side, side);
    if (small.pixels == NULL)
        return args_failed("out of memory");
    const svg_sheet sheet = {m, &small, title};
    const bool fine = output_file_write(path, put_svg, &sheet);
    picture_free(&small);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

int head_maps_write(const head_maps *m, const char *path, const char *title)
{
    const size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".svg") == 0 ? write_svg(m, path, title)
                                                                : write_png(m, path);
}

/* -------------------------------------------------------------- terminal ----- */

/* Two columns for a patch: a colour, or a character from light to dark. */
static void print_patch(const terminal *t, double share)
{
    static const char shades[] = " .:-=+*#%@";
    if (t->color == COLOR_NONE) {
        const char shade = shades[(int)(share * (sizeof shades - 2) + 0.5)];
        printf("%c%c", shade, shade);
        return;
    }
    terminal_background(stdout, t, color_scale(COLOR_ON_DARK, share));
    fputs("  ", stdout);
}

/* The names of heads [first, end) of a layer, each over a head of so many columns. */
static void print_names(const head_maps *m, int layer, int first, int end, int columns)
{
    char title[NAME_BYTES];
    if (m->words != NULL && first == 0)
        printf("%s\n", m->words[layer]);
    for (int head = first; head < end; head++) {
        name_head(m, layer, head, title);
        printf("%-*s", columns + 2, title);
    }
    putchar('\n');
}

/* Heads [first, end) of a layer side by side. */
static void print_heads(const head_maps *m, const terminal *t, int layer, int first, int end)
{
    print_names(m, layer, first, end, 2 * m->across);
    for (int row = 0; row < m->across; row++) {
        for (int head = first; head < end; head++) {
            const float *const shares = shares_of(m, layer, head) + row * m->across;
            for (int n = 0; n < m->across; n++)
                print_patch(t, (double)shares[n] / (double)largest_of(m, layer, head));
            terminal_plain(stdout, t);
            fputs(head + 1 < end ? "  " : "\n", stdout);
        }
    }
    putchar('\n');
}

/* A line of a head: two pixels of its picture, one above the other, in each character. */
static void print_halves(const terminal *t, const picture *p, ptrdiff_t row)
{
    for (ptrdiff_t n = 0; n < p->columns; n++) {
        terminal_foreground(stdout, t, see_picture_pixel(p, row, n));
        if (row + 1 < p->rows)
            terminal_background(stdout, t, see_picture_pixel(p, row + 1, n));
        fputs("\u2580", stdout);
    }
    terminal_plain(stdout, t);
}

/* The picture with a head over it, `side` pixels a side. NULL pixels: no memory. */
static picture head_picture(const head_maps *m, int layer, int head, int side)
{
    const size_t pixels = (size_t)m->side * (size_t)m->side;
    picture whole = picture_new(m->side, m->side, 3), small = {0};
    double *const heats = malloc(pixels * sizeof *heats);
    int *const counts = malloc(pixels * sizeof *counts);
    if (whole.pixels != NULL && heats != NULL && counts != NULL) {
        put_cell(m, layer, head, &whole, 0, 0, m->side, heats, counts);
        small = picture_resize(&whole, side, side);
    }
    free(heats);
    free(counts);
    picture_free(&whole);
    return small;
}

/* As print_heads(), over the picture. */
static bool print_pictures(const head_maps *m, const terminal *t, int layer, int first, int end,
                           int side)
{
    picture heads[TERMINAL_WIDTH_MAX];
    bool fine = true;
    for (int n = 0; n < end - first; n++) {
        heads[n] = head_picture(m, layer, first + n, side);
        fine = fine && heads[n].pixels != NULL;
    }
    if (fine)
        print_names(m, layer, first, end, side);
    for (int row = 0; fine && row < side; row += 2)
        for (int n = 0; n < end - first; n++) {
            print_halves(t, &heads[n], row);
            fputs(n + 1 < end - first ? "  " : "\n", stdout);
        }
    if (fine)
        putchar('\n');
    for (int n = 0; n < end - first; n++)
        picture_free(&heads[n]);
    return fine;
}

/* The pixels a side of a head over the picture; 0 where the terminal cannot show them. */
static int half_side(const head_maps *m, const terminal *t)
{
    const int side = m->side < HALF_SIDE ? m->side : HALF_SIDE;
    return t->color == COLOR_NONE || !t->unicode ? 0 : side < t->width ? side : t->width;
}

int head_maps_print(const head_maps *m)
{
    const terminal t = terminal_query(stdout);
    const int side = half_side(m, &t);
    const int wide = t.width / ((side > 0 ? side : 2 * m->across) + 2);
    const int fit = wide < 1 ? 1 : wide;
    for (int layer = 0; layer < m->layers; layer++)
        for (int first = 0; first < m->count[layer]; first += fit) {
            const int end = first + fit < m->count[layer] ? first + fit : m->count[layer];
            if (side == 0)
                print_heads(m, &t, layer, first, end);
            else if (!print_pictures(m, &t, layer, first, end, side))
                return args_failed("out of memory for the pictures of heads");
        }
    return EXIT_FINE;
}
