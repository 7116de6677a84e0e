/* SPDX-License-Identifier: MIT */
#include "draw/heatmap.h"

#include <string.h>

enum { CELL = 22, LETTER = 8, FONT = 13, MARGIN = 28, BAR = 34, SPACE = 26, ACROSS = 4, LINE = 18 };

typedef struct picture {
    FILE *file;
    const heatmap_sheet *sheet;
    float largest;
    int label, rise; /* pixels for the words at the left and above */
    int map_width, map_height;
    int across, down;
    int step;          /* pixels from one line of maps to the next */
    int heading, note; /* pixels for these */
    int width, height; /* of all */
} picture;

static void put_escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

static void put_text(FILE *file, int x, int y, const char *attributes, const char *text)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\"%s>", x, y, attributes);
    put_escaped(file, text);
    fputs("</text>\n", file);
}

static void put_cells(const picture *p, int head, int left, int top)
{
    const int rows = p->sheet->rows.count, columns = p->sheet->columns.count;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < (p->sheet->causal ? i + 1 : columns); j++) {
            const float weight = p->sheet->weights[(head * rows + i) * columns + j];
            const rgb c = heatmap_color(p->largest > 0.0f ? (double)(weight / p->largest) : 0.0);
            fprintf(p->file,
                    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\" "
                    "fill=\"#%02x%02x%02x\"/>\n",
                    left + j * CELL, top + i * CELL, CELL - 1, CELL - 1, c.r, c.g, c.b);
        }
    }
}

static void put_map(const picture *p, int head, int left, int top)
{
    char title[HEATMAP_TITLE_MAX], attributes[96];
    put_text(p->file, left, top - p->rise - 8 - p->note, " class=\"t\"",
             heatmap_title(p->sheet, head, title));
    if (p->note > 0)
        put_text(p->file, left, top - p->rise - 8, " class=\"d\"", p->sheet->notes[head]);
    for (int j = 0; j < p->sheet->columns.count; j++) {
        const int x = left + j * CELL + CELL / 2 + 4, y = top - 6;
        snprintf(attributes, sizeof attributes, " class=\"d\" transform=\"rotate(-90 %d %d)\"", x,
                 y);
        put_text(p->file, x, y, attributes, p->sheet->columns.words[j].bytes);
    }
    put_cells(p, head, left, top);
}

static void put_line(const picture *p, int line, int top)
{
    for (int i = 0; i < p->sheet->rows.count; i++)
        put_text(p->file, MARGIN + p->label - 8, top + i * CELL + CELL / 2 + 4,
                 " text-anchor=\"end\"", p->sheet->rows.words[i].bytes);
    for (int n = 0; n < p->across && line * p->across + n < p->sheet->heads; n++)
        put_map(p, line * p->across + n, MARGIN + p->label + n * (p->map_width + SPACE), top);
}

static void put_window(FILE *file, int width, int height, const char *caption)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
            width, height, width, height);
    put_escaped(file, caption);
    fprintf(file,
            "</title>\n<style>text{font:%dpx ui-monospace,Menlo,Consolas,monospace;fill:#d8dbe6}"
            ".t{font-weight:bold;fill:#fff}.d{fill:#9aa0b4}</style>\n"
            "<rect width=\"%d\" height=\"%d\" rx=\"10\" fill=\"#0d0f1a\"/>\n",
            FONT, width, height);
    static const char *const lights[] = {"#ff5f57", "#febc2e", "#28c840"};
    for (int n = 0; n < 3; n++)
        fprintf(file, "<circle cx=\"%d\" cy=\"18\" r=\"6\" fill=\"%s\"/>\n", 22 + 20 * n,
                lights[n]);
    put_text(file, 92, 22, " class=\"d\"", caption);
}

static void put_legend(const picture *p, int top)
{
    char text[16];
    const int left = MARGIN + p->label;
    put_text(p->file, left, top + 10, " class=\"d\"", "0");
    for (int n = 0; n < 48; n++) {
        const rgb c = heatmap_color(n / 47.0);
        fprintf(p->file,
                "<rect x=\"%d\" y=\"%d\" width=\"5\" height=\"12\" fill=\"#%02x%02x%02x\"/>\n",
                left + 16 + 4 * n, top, c.r, c.g, c.b);
    }
    snprintf(text, sizeof text, "%.2f", (double)p->largest);
    put_text(p->file, left + 16 + 4 * 48 + 8, top + 10, " class=\"d\"", text);
}

static picture lay_out(FILE *file, const heatmap_sheet *sheet)
{
    picture p = {.file = file, .sheet = sheet, .largest = heatmap_largest(sheet)};
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

static void put_sheet(const picture *p, int top)
{
    if (p->heading > 0)
        put_text(p->file, MARGIN, top + LINE, " class=\"t\"", p->sheet->heading);
    top += p->heading;
    for (int line = 0; line < p->down; line++)
        put_line(p, line, top + 30 + p->note + p->rise + line * p->step);
    put_legend(p, top + p->down * p->step + 12);
}

void heatmap_svg(FILE *file, const heatmap_sheet *sheets, int count, const char *caption)
{
    int width = 0, height = BAR;
    for (int n = 0; n < count; n++) {
        const picture p = lay_out(file, &sheets[n]);
        width = p.width > width ? p.width : width;
        height += p.height;
    }
    put_window(file, width, height, caption);
    int top = BAR;
    for (int n = 0; n < count; n++) {
        const picture p = lay_out(file, &sheets[n]);
        put_sheet(&p, top);
        top += p.height;
    }
    fputs("</svg>\n", file);
}
