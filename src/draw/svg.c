/* SPDX-License-Identifier: MIT */
/* The frame, texts and coloured cells of SVG files; chart.c and heatmap_svg.c draw with them. */
#include "draw/svg.h"

/* The viewBox lets pages scale the picture; role and title are for screen readers. */
void svg_begin(FILE *file, int width, int height, const char *title)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
            width, height, width, height);
    svg_escaped(file, title);
    fputs("</title>\n", file);
}

void svg_end(FILE *file)
{
    fputs("</svg>\n", file);
}

void svg_escaped(FILE *file, const char *text)
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

void svg_text(FILE *file, int x, int y, const char *attributes, const char *text)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\"%s>", x, y, attributes);
    svg_escaped(file, text);
    fputs("</text>\n", file);
}

void svg_cell(FILE *file, int x, int y, int width, int height, int radius, rgb color)
{
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"", x, y, width, height);
    if (radius > 0)
        fprintf(file, " rx=\"%d\"", radius);
    fprintf(file, " fill=\"#%02x%02x%02x\"/>", color.r, color.g, color.b);
}

void svg_color_bar(FILE *file, int x, int y, int count, int step, int width, int height)
{
    for (int n = 0; n < count; n++) {
        const rgb color = color_scale(COLOR_ON_DARK, (double)n / (count - 1));
        svg_cell(file, x + n * step, y, width, height, 0, color);
        fputc('\n', file);
    }
}
