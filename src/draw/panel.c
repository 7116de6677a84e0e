/* SPDX-License-Identifier: MIT */
/* Small charts with a logarithmic axis, several in a picture (panel.h). */
#include "draw/panel.h"

#include <math.h>

#include "draw/round_number.h"
#include "draw/svg.h"

enum { MARK = 5, CAP = 4, KEY = 22 };

/* Colours on light and on dark grounds. */
static const char *const colors[PANEL_COLORS][2] = {
    {"#7c3aed", "#a78bfa"}, {"#2563eb", "#60a5fa"}, {"#0891b2", "#22d3ee"}, {"#059669", "#34d399"},
    {"#a16207", "#facc15"}, {"#c2410c", "#fb923c"}, {"#dc2626", "#f87171"}, {"#9d174d", "#f472b6"},
};

/* Classes: h title, b ground, g level, a axis, c0 ... the colours, d dashed, f filled. */
void panel_style(FILE *file, int width, int height)
{
    fputs("<style>text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
          ".h{font-weight:bold}.b{fill:#fff}.g{stroke:#e5e7eb}.a{stroke:#6b7280}"
          ".l{fill:none;stroke-width:2;stroke-linejoin:round}.e{stroke-width:1.5}"
          ".d{stroke-dasharray:5 4;stroke-width:1.5}",
          file);
    for (int n = 0; n < PANEL_COLORS; n++)
        fprintf(file, ".c%d{stroke:%s}.f%d{fill:%s}", n, colors[n][0], n, colors[n][0]);
    fputs("@media (prefers-color-scheme:dark){text{fill:#d1d5db}.b{fill:#0d1117}"
          ".g{stroke:#262c36}.a{stroke:#9ca3af}",
          file);
    for (int n = 0; n < PANEL_COLORS; n++)
        fprintf(file, ".c%d{stroke:%s}.f%d{fill:%s}", n, colors[n][1], n, colors[n][1]);
    fprintf(file, "}</style>\n<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width,
            height);
}

void panel_range(panel *p, double least, double most)
{
    p->low = round_number_near(least, false);
    p->high = round_number_near(most, true);
    if (p->high == p->low)
        p->high++;
}

double panel_x(const panel *p, double value)
{
    return p->left + p->width * (value - p->first) / (p->last - p->first);
}

double panel_y(const panel *p, double value)
{
    const double low = round_number(p->low), high = round_number(p->high);
    const double share = value > low ? log(value / low) / log(high / low) : 0.0;
    return p->top + p->height * (1.0 - (share < 1.0 ? share : 1.0));
}

static void line(const panel *p, const char *class, double x1, double y1, double x2, double y2)
{
    fprintf(p->file, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            class, x1, y1, x2, y2);
}

void panel_frame(const panel *p, const char *title, const char *axis)
{
    svg_text(p->file, p->left, p->top - 14, " class=\"h\"", title);
    for (int n = p->low; n <= p->high; n++) {
        const double y = panel_y(p, round_number(n));
        line(p, n == p->low ? "a" : "g", p->left, y, p->left + p->width, y);
        fprintf(p->file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", p->left - 8,
                y + 4.0, round_number(n));
    }
    svg_text(p->file, p->left + p->width / 2, p->top + p->height + 38, " text-anchor=\"middle\"",
             axis);
}

void panel_tick(const panel *p, double value, const char *label)
{
    const double x = panel_x(p, value);
    const int base = p->top + p->height;
    line(p, "a", x, base, x, base + MARK);
    fprintf(p->file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, base + 20,
            label);
}

void panel_line_begin(const panel *p, int color, int dashed)
{
    fprintf(p->file, "<polyline class=\"l c%d%s\" points=\"", color % PANEL_COLORS,
            dashed ? " d" : "");
}

void panel_line_point(const panel *p, double x, double y)
{
    fprintf(p->file, "%.1f,%.1f ", x, y);
}

void panel_line_end(const panel *p)
{
    fputs("\"/>\n", p->file);
}

void panel_dot(const panel *p, int color, double x, double y)
{
    fprintf(p->file, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n",
            color % PANEL_COLORS, x, y);
}

void panel_bar(const panel *p, int color, double x, double y_low, double y_high)
{
    char class[32];
    snprintf(class, sizeof class, "e c%d", color % PANEL_COLORS);
    line(p, class, x, y_low, x, y_high);
    line(p, class, x - CAP, y_low, x + CAP, y_low);
    line(p, class, x - CAP, y_high, x + CAP, y_high);
}

void panel_key(FILE *file, int x, int y, int color, int dashed, const char *text)
{
    fprintf(file, "<line class=\"l c%d%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n",
            color % PANEL_COLORS, dashed ? " d" : "", x, y - 4, x + KEY, y - 4);
    svg_text(file, x + KEY + 6, y, "", text);
}
