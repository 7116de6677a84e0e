/* SPDX-License-Identifier: MIT */
/*
 * Draws a filter_trace as SVG: the tile, a panel with an arrow for every head, and the matrices of
 * what heads read, of taps and of products. Positions are pixels of the drawing; all numbers are
 * those of the trace.
 */
#include "program/conv_figure.h"

#include <math.h>
#include <string.h>

#include "draw/svg.h"

enum { MARGIN = 32, TOP = 112, TILE_WIDTH = 220, SPACE = 36, FOOT = 62 };
enum { PANEL = 100, PANEL_GAP = 16, PANEL_NOTE = 40 };
enum { CELL_WIDTH = 60, CELL_HEIGHT = 36, SIGN = 36, KERNEL_NOTE = 66 };

typedef struct layout {
    FILE *file;
    const conv_figure *figure;
    const filter_trace *trace;
    int size;                    /* rows of the kernel */
    int heads_left, matrix_left; /* where these columns begin */
    int width, height;
} layout;

static layout lay_out(FILE *file, const conv_figure *figure)
{
    layout p = {.file = file, .figure = figure, .trace = figure->trace};
    p.size = (int)figure->filter->kernel->size;
    p.heads_left = MARGIN + TILE_WIDTH + SPACE;
    p.matrix_left = p.heads_left + p.size * (PANEL + PANEL_GAP) - PANEL_GAP + SPACE;
    p.width = p.matrix_left + 3 * p.size * CELL_WIDTH + 2 * SIGN + MARGIN;
    const int heads = p.size * (PANEL + PANEL_NOTE);
    const int matrices = (int)p.trace->kernels * (p.size * CELL_HEIGHT + KERNEL_NOTE);
    const int tile = TILE_WIDTH + 96;
    p.height = heads > matrices ? heads : matrices;
    p.height = TOP + FOOT + (tile > p.height ? tile : p.height);
    return p;
}

/* Classes: h title, b ground, q query, k and w an arrow's halo and line, p and n cells of positive
 * and negative numbers, o outline of a cell, m middle, s small. */
static void put_frame(const layout *p)
{
    char title[160];
    snprintf(title, sizeof title, "%td heads compute a %d x %d convolution: pixel (%td, %td)",
             p->trace->heads, p->size, p->size, p->trace->pixel.row, p->trace->pixel.column);
    svg_begin(p->file, p->width, p->height, title);
    fprintf(p->file,
            "<style>text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
            ".h{font-weight:bold}.t{font-size:18px;font-weight:bold}.s{font-size:12px}"
            ".m{text-anchor:middle}.l{font-size:20px;text-anchor:middle}.b{fill:#fff}"
            ".q{fill:none;stroke:#fff;stroke-width:4}.r{fill:none;stroke:#dc2626;stroke-width:2}"
            ".k{fill:none;stroke:#fff;stroke-width:5;stroke-linecap:round}"
            ".w{fill:none;stroke:#dc2626;stroke-width:2.5;stroke-linecap:round}"
            ".p{fill:#2563eb}.n{fill:#c2410c}.o{fill:none;stroke:#9ca3af}.g{fill:#6b7280}"
            "@media (prefers-color-scheme:dark){text{fill:#d1d5db}.b{fill:#0d1117}"
            ".p{fill:#60a5fa}.n{fill:#fb923c}.o{stroke:#4b5563}.g{fill:#9ca3af}}"
            "</style>\n<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
            p->width, p->height);
    svg_text(p->file, MARGIN, 38, " class=\"t\"", title);
}

/* ------------------------------------------------------------------ pixels -- */

static rgb color_at(const filter_trace *trace, ptrdiff_t row, ptrdiff_t column)
{
    const double *const pixel = trace->tile + (row * trace->side + column) * trace->colours;
    const ptrdiff_t last = trace->colours - 1;
    const rgb color = {(unsigned char)lround(255.0 * pixel[0]),
                       (unsigned char)lround(255.0 * pixel[last / 2]),
                       (unsigned char)lround(255.0 * pixel[last])};
    return color;
}

/* A square of the picture; `share` from 0 (pale) to 1. */
static void put_pixel(const layout *p, double x, double y, double cell, rgb color, double share)
{
    fprintf(p->file,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
            "fill=\"#%02x%02x%02x\" fill-opacity=\"%.3f\"/>\n",
            x, y, cell - 0.5, cell - 0.5, color.r, color.g, color.b, 0.15 + 0.85 * share);
}

static void put_square(const layout *p, const char *class, double x, double y, double width)
{
    fprintf(p->file, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
            class, x, y, width, width);
}

static const char *colour_name(const filter_trace *trace)
{
    static const char *const names[] = {"red", "green", "blue"};
    return trace->colours == 1 ? "grey" : names[trace->colour];
}

/* The name of the kernel for people: of a file without its folders. XML allows no control
 * characters and no broken UTF-8, so all bytes but printable ASCII become "?". */
static void name_kernel(const char *name, char *text, size_t room)
{
    const char *const slash = strrchr(name, '/');
    snprintf(text, room, "kernel: %.24s", slash != NULL ? slash + 1 : name);
    for (char *c = text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

/* All keys of the tile; the query and the window of the kernel are outlined. */
static void put_tile(const layout *p)
{
    const filter_trace *const t = p->trace;
    const double cell = (double)TILE_WIDTH / (double)t->side;
    char text[128];
    svg_text(p->file, MARGIN, TOP - 30, " class=\"h\"", "1. Pixels are tokens");
    snprintf(text, sizeof text, "a tile of %td keys, white is 1", t->side * t->side);
    svg_text(p->file, MARGIN, TOP - 12, " class=\"s\"", text);
    for (ptrdiff_t r = 0; r < t->side; r++)
        for (ptrdiff_t c = 0; c < t->side; c++)
            put_pixel(p, MARGIN + cell * (double)c, TOP + cell * (double)r, cell, color_at(t, r, c),
                      1.0);
    const double back = (double)((p->size - 1) / 2);
    const double x = MARGIN + cell * (double)t->query.column;
    const double y = TOP + cell * (double)t->query.row;
    put_square(p, "q", x - cell * back, y - cell * back, cell * p->size);
    put_square(p, "r", x - cell * back, y - cell * back, cell * p->size);
    put_square(p, "q", x, y, cell);
    put_square(p, "r", x, y, cell);
    snprintf(text, sizeof text, "query: row %td, column %td", t->pixel.row, t->pixel.column);
    svg_text(p->file, MARGIN, TOP + TILE_WIDTH + 24, " class=\"s\"", text);
    name_kernel(p->figure->kernel_name, text, sizeof text);
    svg_text(p->file, MARGIN, TOP + TILE_WIDTH + 44, " class=\"s\"", text);
    snprintf(text, sizeof text, "numbers: the channel %s", colour_name(t));
    svg_text(p->file, MARGIN, TOP + TILE_WIDTH + 64, " class=\"s\"", text);
}

/* ------------------------------------------------------------------- heads -- */

/* A line with a head, or a ring if it leads nowhere else. */
static void put_arrow(const layout *p, const char *class, double x, double y, double dx, double dy)
{
    const double length = hypot(dx, dy);
    if (length < 1.0) {
        fprintf(p->file, "<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"7\"/>\n", class, x, y);
        return;
    }
    const double ux = dx / length * 7.0, uy = dy / length * 7.0;
    const double ex = x + dx, ey = y + dy;
    fprintf(p->file,
            "<path class=\"%s\" d=\"M%.2f %.2fL%.2f %.2fM%.2f %.2fL%.2f %.2fL%.2f %.2f\"/>\n",
            class, x, y, ex, ey, ex - ux - 0.6 * uy, ey - uy + 0.6 * ux, ex, ey, ex - ux + 0.6 * uy,
            ey - uy - 0.6 * ux);
}

/* The pixels around the query; what the head does not attend to is pale. */
static void put_neighbours(const layout *p, int head, int left, int top, double cell)
{
    const filter_trace *const t = p->trace;
    const int back = (p->size - 1) / 2 + 1;
    const double *const weights = t->weights + head * t->side * t->side;
    const double most = weights[t->reads[head].row * t->side + t->reads[head].column];
    for (int n = 0; n < (p->size + 2) * (p->size + 2); n++) {
        const int r = n / (p->size + 2), c = n % (p->size + 2);
        const ptrdiff_t row = t->query.row - back + r, column = t->query.column - back + c;
        if (row < 0 || column < 0 || row >= t->side || column >= t->side)
            continue; /* no key of this tile */
        put_pixel(p, left + cell * c, top + cell * r, cell, color_at(t, row, column),
                  most > 0.0 ? weights[row * t->side + column] / most : 0.0);
    }
}

static void put_head(const layout *p, int head, int left, int top)
{
    const filter_trace *const t = p->trace;
    const double cell = (double)PANEL / (p->size + 2);
    const double middle = cell * ((p->size - 1) / 2 + 1.5);
    const ptrdiff_t row = t->reads[head].row - t->query.row;
    const ptrdiff_t column = t->reads[head].column - t->query.column;
    const double weight =
        t->weights[(head * t->side + t->reads[head].row) * t->side + t->reads[head].column];
    char text[64];
    put_neighbours(p, head, left, top, cell);
    put_square(p, "o", left, top, PANEL - 0.5);
    put_square(p, "o", left + middle + cell * ((double)column - 0.5),
               top + middle + cell * ((double)row - 0.5), cell - 0.5);
    fprintf(p->file,
            "<g data-head=\"%d\" data-row=\"%td\" data-column=\"%td\" data-weight=\"%.9g\">\n",
            head + 1, row, column, weight);
    for (int n = 0; n < 2; n++)
        put_arrow(p, n == 0 ? "k" : "w", left + middle, top + middle, cell * (double)column,
                  cell * (double)row);
    fputs("</g>\n", p->file);
    snprintf(text, sizeof text, "head %d: (%td, %td)", head + 1, row, column);
    svg_text(p->file, left + PANEL / 2, top + PANEL + 15, " class=\"s m\"", text);
    snprintf(text, sizeof text, "weight %.3f", weight);
    svg_text(p->file, left + PANEL / 2, top + PANEL + 29, " class=\"s m\"", text);
}

static void put_heads(const layout *p)
{
    char text[96];
    snprintf(text, sizeof text, "2. Each of %td heads attends to its pixel", p->trace->heads);
    svg_text(p->file, p->heads_left, TOP - 30, " class=\"h\"", text);
    svg_text(p->file, p->heads_left, TOP - 12, " class=\"s\"",
             "largest weight: (rows down, columns right)");
    for (int h = 0; h < (int)p->trace->heads; h++)
        put_head(p, h, p->heads_left + h % p->size * (PANEL + PANEL_GAP),
                 TOP + h / p->size * (PANEL + PANEL_NOTE));
}

/* ---------------------------------------------------------------- matrices -- */

static double largest(const double *numbers, ptrdiff_t count)
{
    double most = 0.0;
    for (ptrdiff_t n = 0; n < count; n++)
        most = fmax(most, fabs(numbers[n]));
    return most;
}

/* Cells for the numbers of all heads. `data` is NULL or the name of the attribute for them. */
static void put_matrix(const layout *p, const double *numbers, int left, int top, const char *data)
{
    const double most = largest(numbers, p->trace->heads);
    for (int h = 0; h < (int)p->trace->heads; h++) {
        const int x = left + h % p->size * CELL_WIDTH, y = top + h / p->size * CELL_HEIGHT;
        char text[32];
        fprintf(p->file,
                "<rect class=\"%c\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                "fill-opacity=\"%.3f\"/>\n",
                numbers[h] < 0.0 ? 'n' : 'p', x, y, CELL_WIDTH - 1, CELL_HEIGHT - 1,
                most > 0.0 ? 0.05 + 0.4 * fabs(numbers[h]) / most : 0.05);
        fprintf(p->file, "<text class=\"m\" x=\"%d\" y=\"%d\"", x + CELL_WIDTH / 2,
                y + CELL_HEIGHT / 2 + 5);
        if (data != NULL)
            fprintf(p->file, " %s=\"%.17g\"", data, numbers[h]);
        snprintf(text, sizeof text, "%.4g", numbers[h] + 0.0); /* no -0 */
        fprintf(p->file, ">%s</text>\n", text);
    }
}

static void put_sign(const layout *p, int left, int top, const char *sign)
{
    svg_text(p->file, left + SIGN / 2, top + p->size * CELL_HEIGHT / 2 + 7, " class=\"l\"", sign);
}

/* What heads read, times the taps of one kernel, and the sum. */
static void put_kernel(const layout *p, int kernel, int top)
{
    const filter_trace *const t = p->trace;
    const int step = p->size * CELL_WIDTH;
    double products[KERNEL_SIZE_MAX * KERNEL_SIZE_MAX];
    char text[128];
    for (ptrdiff_t h = 0; h < t->heads; h++)
        products[h] = t->values[h] * t->taps[kernel][h] + 0.0;
    put_matrix(p, t->values, p->matrix_left, top, NULL);
    put_sign(p, p->matrix_left + step, top, "\303\227");
    put_matrix(p, t->taps[kernel], p->matrix_left + step + SIGN, top, "data-tap");
    put_sign(p, p->matrix_left + 2 * step + SIGN, top, "=");
    put_matrix(p, products, p->matrix_left + 2 * (step + SIGN), top, "data-product");
    snprintf(text, sizeof text, "sum = %.6g of the layer, %.6g of the loop", t->sums[kernel],
             t->loop[kernel]);
    fprintf(p->file,
            "<text class=\"h\" x=\"%d\" y=\"%d\" text-anchor=\"end\" data-sum=\"%.17g\" "
            "data-loop=\"%.17g\">%s</text>\n",
            p->width - MARGIN, top + p->size * CELL_HEIGHT + 24, t->sums[kernel], t->loop[kernel],
            text);
}

static void put_matrices(const layout *p)
{
    static const char *const titles[] = {"3. A X: what they read", "4. W_V W_O: taps",
                                         "5. Products and sum"};
    for (int n = 0; n < 3; n++)
        svg_text(p->file, p->matrix_left + n * (p->size * CELL_WIDTH + SIGN), TOP - 30,
                 " class=\"h\"", titles[n]);
    for (int n = 0; n < (int)p->trace->kernels; n++)
        put_kernel(p, n, TOP + n * (p->size * CELL_HEIGHT + KERNEL_NOTE));
    if (p->trace->kernels == 2) {
        char text[96];
        snprintf(text, sizeof text, "length of both sums = %.6g",
                 hypot(p->trace->sums[0], p->trace->sums[1]));
        svg_text(p->file, p->width - MARGIN, TOP + 2 * p->size * CELL_HEIGHT + KERNEL_NOTE + 46,
                 " class=\"h\" text-anchor=\"end\"", text);
    }
}

void conv_figure_svg(FILE *file, const void *figure)
{
    const layout p = lay_out(file, figure);
    put_frame(&p);
    put_tile(&p);
    put_heads(&p);
    put_matrices(&p);
    svg_text(file, MARGIN, p.height - 26, " class=\"s g\"",
             "Y[q] = sum over heads of A_h X W_V W_O: one head per tap is a convolution. "
             "The numbers are those of the layer, by \"mha conv --figure\".");
    svg_end(file);
}
