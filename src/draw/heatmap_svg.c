/* SPDX-License-Identifier: MIT */
/*
 * Heat maps as SVG, in the frame of a dark terminal window: the caption in its bar, then the sheets
 * one below the other, each with its heading, lines of up to four maps, and a legend.
 */
#include <string.h>

#include "draw/heatmap.h"
#include "draw/svg.h"

/* Pixels, but for ACROSS (maps side by side) and LEGEND_CELLS. */
enum { CELL = 22, LETTER = 8, FONT = 13, MARGIN = 28, BAR = 34, SPACE = 26, ACROSS = 4, LINE = 18 };
enum { LEGEND_CELLS = 48, LEGEND_STEP = 4 };

typedef struct layout {
    FILE *file;
    const heatmap_sheet *sheet;
    float largest;
    int label, rise; /* pixels for the words at the left and above */
    int map_width, map_height;
    int across, down;
    int step;          /* pixels from one line of maps to the next */
    int heading, note; /* pixels for these */
    int width, height; /* of all */
} layout;

/* Causal maps have no cells after the diagonal. */
static void put_cells(const layout *p, int head, int left, int top)
{
    const int rows = p->sheet->rows.count, columns = p->sheet->columns.count;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < (p->sheet->causal ? i + 1 : columns); j++) {
            const float weight = p->sheet->weights[((ptrdiff_t)head * rows + i) * columns + j];
            const rgb color =
                color_scale(COLOR_ON_DARK, p->largest > 0.0f ? (double)(weight / p->largest) : 0.0);
            svg_cell(p->file, left + j * CELL, top + i * CELL, CELL - 1, CELL - 1, 2, color);
            fputc('\n', p->file);
        }
    }
}

/* One map with its title, note and the words of its columns, rotated by 90 degrees; (left, top) is
 * the corner of its first cell. */
static void put_map(const layout *p, int head, int left, int top)
{
    char title[HEATMAP_TITLE_MAX], attributes[96];
    svg_text(p->file, left, top - p->rise - 8 - p->note, " class=\"t\"",
             heatmap_title(p->sheet, head, title));
    if (p->note > 0)
        svg_text(p->file, left, top - p->rise - 8, " class=\"d\"", p->sheet->notes[head]);
    for (int j = 0; j < p->sheet->columns.count; j++) {
        const int x = left + j * CELL + CELL / 2 + 4, y = top - 6;
        snprintf(attributes, sizeof attributes, " class=\"d\" transform=\"rotate(-90 %d %d)\"", x,
                 y);
        svg_text(p->file, x, y, attributes, p->sheet->columns.words[j].bytes);
    }
    put_cells(p, head, left, top);
}

/* A line of maps side by side; the words of the rows are written once, at the left. */
static void put_line(const layout *p, int line, int top)
{
    for (int i = 0; i < p->sheet->rows.count; i++)
        svg_text(p->file, MARGIN + p->label - 8, top + i * CELL + CELL / 2 + 4,
                 " text-anchor=\"end\"", p->sheet->rows.words[i].bytes);
    for (int n = 0; n < p->across && line * p->across + n < p->sheet->heads; n++)
        put_map(p, line * p->across + n, MARGIN + p->label + n * (p->map_width + SPACE), top);
}

static void put_window(FILE *file, int width, int height, const char *caption)
{
    svg_begin(file, width, height, caption);
    fprintf(file,
            "<style>text{font:%dpx ui-monospace,Menlo,Consolas,monospace;fill:#d8dbe6}"
            ".t{font-weight:bold;fill:#fff}.d{fill:#9aa0b4}</style>\n"
            "<rect width=\"%d\" height=\"%d\" rx=\"10\" fill=\"#0d0f1a\"/>\n",
            FONT, width, height);
    static const char *const lights[] = {"#ff5f57", "#febc2e", "#28c840"};
    for (int n = 0; n < 3; n++)
        fprintf(file, "<circle cx=\"%d\" cy=\"18\" r=\"6\" fill=\"%s\"/>\n", 22 + 20 * n,
                lights[n]);
    svg_text(file, 92, 22, " class=\"d\"", caption);
}

static void put_legend(const layout *p, int top)
{
    char text[16];
    const int left = MARGIN + p->label;
    svg_text(p->file, left, top + 10, " class=\"d\"", "0");
    svg_color_bar(p->file, left + 16, top, LEGEND_CELLS, LEGEND_STEP, LEGEND_STEP + 1, 12);
    snprintf(text, sizeof text, "%.2f", (double)p->largest);
    svg_text(p->file, left + 16 + LEGEND_STEP * LEGEND_CELLS + 8, top + 10, " class=\"d\"", text);
}

/* Sizes of a sheet. Text is measured by the number of letters, since SVG has no widths of fonts. */
static layout lay_out(FILE *file, const heatmap_sheet *sheet)
{
    layout p = {.file = file, .sheet = sheet, .largest = heatmap_largest(sheet)};
    const int titles = heatmap_widest_title(sheet) * LETTER;
    p.rise = heatmap_widest(&sheet->columns) * LETTER + 6;
    p.label = heatmap_widest(&sheet->rows) * LETTER + 10;
    p.map_width = sheet->columns.count * CELL;
    p.map_width = titles > p.map_width ? titles : p.map_width;
    p.map_height = sheet->rows.count * CELL;
    p.across = sheet->heads < ACROSS ? sheet->heads : ACROSS;
    p.down = (sheet->heads + p.across - 1) / p.across;
    p.heading = sheet->heading != NULL ? 2 * LINE : 0;
    p.note = sheet->notes != NULL ? LINE : 0;
    p.step = p.map_height + p.rise + p.note + 30 + SPACE;
    p.width = 2 * MARGIN + p.label + p.across * (p.map_width + SPACE) - SPACE;
    const int words =
        sheet->heading != NULL ? 2 * MARGIN + (int)strlen(sheet->heading) * LETTER : 0;
    p.width = words > p.width ? words : p.width;
    p.height = p.heading + p.down * p.step + 48;
    return p;
}

static void put_sheet(const layout *p, int top)
{
    if (p->heading > 0)
        svg_text(p->file, MARGIN, top + LINE, " class=\"t\"", p->sheet->heading);
    top += p->heading;
    for (int line = 0; line < p->down; line++)
        put_line(p, line, top + 30 + p->note + p->rise + line * p->step);
    put_legend(p, top + p->down * p->step + 12);
}

void heatmap_svg(FILE *file, const heatmap_sheet *sheets, int count, const char *caption)
{
    int width = 0, height = BAR;
    for (int n = 0; n < count; n++) {
        const layout p = lay_out(file, &sheets[n]);
        width = p.width > width ? p.width : width;
        height += p.height;
    }
    put_window(file, width, height, caption);
    int top = BAR;
    for (int n = 0; n < count; n++) {
        const layout p = lay_out(file, &sheets[n]);
        put_sheet(&p, top);
        top += p.height;
    }
    svg_end(file);
}
