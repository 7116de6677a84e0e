/* SPDX-License-Identifier: MIT */
/* Frame, style sheet, axes and keys of charts. The curves themselves belong to the reports that
 * draw them: losses of a training, and what is left when heads are disabled. */
#include "draw/chart.h"

enum { WIDTH = 760, HEIGHT = 420, LEFT = 64, RIGHT = 24, TOP = 64, BOTTOM = 52 };
enum { BASE = HEIGHT - BOTTOM, MARK = 5 };

/* Classes of the style sheet: h heading, b ground, g level, a axis, t and v the curves. */
void chart_begin(FILE *file, const char *title, const char *heading, bool dashed)
{
    svg_begin(file, WIDTH, HEIGHT, title);
    fprintf(file,
            "<style>text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
            ".h{font-weight:bold}.b{fill:#fff}.g{stroke:#e5e7eb}.a{stroke:#6b7280}"
            ".t,.v{fill:none;stroke-width:2;stroke-linejoin:round}"
            ".t{stroke:#2563eb%s}.v{stroke:#c2410c}"
            "@media (prefers-color-scheme:dark){text{fill:#d1d5db}.b{fill:#0d1117}"
            ".g{stroke:#262c36}.a{stroke:#9ca3af}.t{stroke:#60a5fa}.v{stroke:#fb923c}}"
            "</style>\n"
            "<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
            "<text class=\"h\" x=\"%d\" y=\"26\">",
            dashed ? ";stroke-dasharray:6 3" : "", WIDTH, HEIGHT, LEFT);
    svg_escaped(file, heading);
    fputs("</text>\n", file);
}

double chart_x(double value, double whole)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * value / whole;
}

double chart_y(double value, double whole)
{
    return BASE - (double)(BASE - TOP) * value / whole;
}

void chart_level(FILE *file, double y, const char *label)
{
    fprintf(file,
            "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
            LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4.0, label);
}

void chart_axis(FILE *file)
{
    fprintf(file, "<line class=\"a\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, BASE,
            WIDTH - RIGHT, BASE);
}

void chart_axis_name(FILE *file, const char *name)
{
    svg_text(file, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, " text-anchor=\"middle\"", name);
}

void chart_tick(FILE *file, double x, long long number, bool mark)
{
    if (mark)
        fprintf(file, "<line class=\"a\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", x, BASE,
                x, BASE + MARK);
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n", x, BASE + 20,
            number);
}

void chart_curve_begin(FILE *file, const char *class)
{
    fprintf(file, "<polyline class=\"%s\" points=\"", class);
}

void chart_curve_point(FILE *file, double x, double y)
{
    fprintf(file, "%.1f,%.1f ", x, y);
}

void chart_curve_end(FILE *file)
{
    fputs("\"/>\n", file);
}

void chart_key(FILE *file, int right, const char *class, const char *name)
{
    const int left = LEFT + right;
    fprintf(file, "<line class=\"%s\" x1=\"%d\" y1=\"46\" x2=\"%d\" y2=\"46\"/>\n", class, left,
            left + 24);
    svg_text(file, left + 32, 50, "", name);
}
