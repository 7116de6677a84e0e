/* SPDX-License-Identifier: MIT */
/* Losses of closed heads as grids, one a kind: rows are layers, columns heads. */
#include <math.h>

#include "ablate_report.h"
#include "heatmap.h"

enum { CELL = 52, CELL_HEIGHT = 30, LEFT = 60, TOP = 64, GAP = 46, RIGHT = 24 };

static double largest(const ablate_report *r)
{
    double most = 1e-9;
    for (int n = 0; n < r->heads; n++)
        most = r->single[n].delta > most ? r->single[n].delta : most;
    return most;
}

static int grid_top(const ablate_report *r, int kind)
{
    int top = TOP;
    for (int n = 0; n < kind; n++)
        top += capture_kind_layers(&r->config, (capture_kind)n) * CELL_HEIGHT + GAP;
    return top;
}

/* A root brings out small losses beside large ones. */
static void put_cell(FILE *file, const ablate_report *r, int head, double most)
{
    const head_name name = head_at(&r->config, head);
    const double delta = r->single[head].delta, share = delta > 0.0 ? sqrt(delta / most) : 0.0;
    const rgb color = heatmap_color(share);
    const int x = LEFT + name.head * CELL;
    const int y = grid_top(r, (int)name.kind) + name.layer * CELL_HEIGHT;
    fprintf(file,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"#%02x%02x%02x\"/>"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" style=\"fill:%s\">%.3f</text>\n",
            x, y, CELL - 2, CELL_HEIGHT - 2, color.r, color.g, color.b, x + CELL / 2 - 1,
            y + CELL_HEIGHT / 2 + 3, share > 0.6 ? "#111827" : "#f9fafb", delta);
}

static void put_labels(FILE *file, const ablate_report *r, int kind)
{
    const int top = grid_top(r, kind);
    fprintf(file, "<text class=\"h\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT, top - 8,
            capture_kind_name((capture_kind)kind));
    for (int n = 0; n < capture_kind_layers(&r->config, (capture_kind)kind); n++)
        fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">layer %d</text>\n", LEFT - 8,
                top + n * CELL_HEIGHT + CELL_HEIGHT / 2 + 3, n + 1);
}

void ablate_report_svg(FILE *file, const void *report)
{
    const ablate_report *const r = report;
    const int least = 560, wide = LEFT + r->config.heads * CELL + RIGHT;
    const int width = wide > least ? wide : least, height = grid_top(r, CAPTURE_KINDS) - GAP + 40;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>What closing a head costs</title>\n"
            "<style>text{font:11px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
            ".h{font-weight:bold}.b{fill:#fff}"
            "@media (prefers-color-scheme:dark){text{fill:#d1d5db}.b{fill:#0d1117}}</style>\n"
            "<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
            "<text class=\"h\" x=\"%d\" y=\"24\">Loss of a word, in nats, that closing a head adds "
            "(%s)</text>\n",
            width, height, width, height, width, height, LEFT, r->mode);
    const double most = largest(r);
    for (int kind = 0; kind < CAPTURE_KINDS; kind++)
        put_labels(file, r, kind);
    for (int head = 0; head < r->heads; head++)
        put_cell(file, r, head, most);
    fprintf(file,
            "<text x=\"%d\" y=\"%d\">whole model: %.4f nats; %d sentences of %s; heads count from "
            "1, left to right</text>\n</svg>\n",
            LEFT, height - 14, r->plain.loss, r->plain.sentences, corpus_split_name(r->split));
}
