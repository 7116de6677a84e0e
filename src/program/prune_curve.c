/* SPDX-License-Identifier: MIT */
#include "program/prune_curve.h"

enum { WIDTH = 760, HEIGHT = 420, LEFT = 64, RIGHT = 24, TOP = 64, BOTTOM = 52 };

static double x_of(const prune_curve *c, int closed)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * closed / c->heads;
}

static double y_of(double percent)
{
    return HEIGHT - BOTTOM - (double)(HEIGHT - TOP - BOTTOM) * percent / 100.0;
}

static double words(const head_total *t)
{
    return 100.0 * (double)t->right / (double)t->words;
}

static double exact(const head_total *t)
{
    return 100.0 * t->exact / t->sentences;
}

static void put_axes(FILE *file, const prune_curve *c)
{
    const int apart = c->heads <= 12 ? 1 : (c->heads + 11) / 12;
    for (int percent = 0; percent <= 100; percent += 20)
        fprintf(file,
                "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n",
                LEFT, y_of(percent), WIDTH - RIGHT, y_of(percent), LEFT - 8, y_of(percent) + 4.0,
                percent);
    for (int closed = 0; closed <= c->heads; closed += apart)
        fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                x_of(c, closed), HEIGHT - BOTTOM + 20, closed);
    fprintf(file,
            "<line class=\"a\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">heads closed, of %d</text>\n",
            LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 12, c->heads);
}

static void put_curve(FILE *file, const prune_curve *c, const char *class,
                      double (*value)(const head_total *total))
{
    fprintf(file, "<polyline class=\"%s\" points=\"", class);
    for (int n = 0; n < c->count; n++)
        fprintf(file, "%.1f,%.1f ", x_of(c, n), y_of(value(&c->steps[n].total)));
    fputs("\"/>\n", file);
}

static void put_key(FILE *file, int left, const char *class, const char *name)
{
    fprintf(file,
            "<line class=\"%s\" x1=\"%d\" y1=\"46\" x2=\"%d\" y2=\"46\"/>\n"
            "<text x=\"%d\" y=\"50\">%s</text>\n",
            class, left, left + 24, left + 32, name);
}

void prune_curve_svg(FILE *file, const void *curve)
{
    const prune_curve *const c = curve;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>What is left when heads go</title>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fputs("<style>text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
          ".h{font-weight:bold}.b{fill:#fff}.g{stroke:#e5e7eb}.a{stroke:#6b7280}"
          ".t,.v{fill:none;stroke-width:2;stroke-linejoin:round}"
          ".t{stroke:#2563eb;stroke-dasharray:6 3}.v{stroke:#c2410c}"
          "@media (prefers-color-scheme:dark){text{fill:#d1d5db}.b{fill:#0d1117}"
          ".g{stroke:#262c36}.a{stroke:#9ca3af}.t{stroke:#60a5fa}.v{stroke:#fb923c}}"
          "</style>\n",
          file);
    fprintf(
        file,
        "<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
        "<text class=\"h\" x=\"%d\" y=\"26\">What is left when the least important heads go, %d "
        "sentences of %s</text>\n",
        WIDTH, HEIGHT, LEFT, c->steps[0].total.sentences, corpus_split_name(c->split));
    put_axes(file, c);
    put_curve(file, c, "t", words);
    put_curve(file, c, "v", exact);
    put_key(file, LEFT, "t", "words right");
    put_key(file, LEFT + 200, "v", "sentences exact");
    fputs("</svg>\n", file);
}
