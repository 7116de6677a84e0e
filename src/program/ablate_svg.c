/* SPDX-License-Identifier: MIT */
/*
 * Losses of disabled heads as grids, one per kind:
 *
 *      encoder    1     2     3    ...       all
 *      layer 1   0.0   0.1   0.0   ...       6.0
 *      layer 2   0.4   0.2   0.1   ...      11.9
 *
 * "all" is the loss with all heads of the layer disabled. It has no colour: it is so much larger
 * that single heads could not be told apart on one scale.
 */
#include <math.h>

#include "draw/svg.h"
#include "program/ablate_report.h"

enum {
    CELL = 52,
    CELL_HEIGHT = 30,
    LEFT = 72,
    TOP = 84,
    GAP = 50,
    ALL = 72, /* columns of "all" */
    RIGHT = 24,
    LEGEND_STEPS = 60,
    LEGEND_STEP = 4
};

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
        top += r->shape.layers[n] > 0 ? r->shape.layers[n] * CELL_HEIGHT + GAP : 0;
    return top;
}

/* Thousandths of a nat; what is printed as 0.0 loses its sign. */
static const char *number_text(double nats, char text[32])
{
    const double value = 1e3 * nats;
    if (fabs(value) >= 99.95)
        snprintf(text, 32, "%.0f", value);
    else
        snprintf(text, 32, "%.1f", fabs(value) < 0.05 ? 0.0 : value);
    return text;
}

/* The colour is by the square root of the loss, which shows small losses beside large ones. */
static void put_cell(FILE *file, const ablate_report *r, int head, double most)
{
    const head_name name = head_at(r->shape, head);
    const double delta = r->single[head].delta, share = delta > 0.0 ? sqrt(delta / most) : 0.0;
    const rgb color = color_scale(COLOR_ON_DARK, share);
    const int x = LEFT + name.head * CELL;
    const int y = grid_top(r, (int)name.kind) + name.layer * CELL_HEIGHT;
    char text[32];
    svg_cell(file, x, y, CELL - 2, CELL_HEIGHT - 2, 3, color);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" style=\"fill:%s\">%s</text>\n",
            x + CELL / 2 - 1, y + CELL_HEIGHT / 2 + 3,
            color_is_light(color) ? "#111827" : "#f9fafb", number_text(delta, text));
}

static int all_right(const ablate_report *r)
{
    return LEFT + r->shape.heads * CELL + ALL - 16;
}

static void put_layer(FILE *file, const ablate_report *r, const ablate_layer *layer)
{
    const int y = grid_top(r, (int)layer->kind) + layer->layer * CELL_HEIGHT + CELL_HEIGHT / 2 + 3;
    char text[32];
    fprintf(file,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">layer %d</text>"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n",
            LEFT - 10, y, layer->layer + 1, all_right(r), y,
            number_text(layer->damage.delta, text));
}

static void put_heading(FILE *file, const ablate_report *r, int kind)
{
    const int y = grid_top(r, kind) - 8;
    fprintf(file, "<text class=\"h\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 10,
            y, attention_kind_name((attention_kind)kind));
    for (int head = 0; head < r->shape.heads; head++)
        fprintf(file, "<text class=\"n\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                LEFT + head * CELL + CELL / 2 - 1, y, head + 1);
    fprintf(file, "<text class=\"n\" x=\"%d\" y=\"%d\" text-anchor=\"end\">all</text>\n",
            all_right(r), y);
}

/* Because of the square root, the middle of the scale is a quarter of the largest loss. */
static void put_legend(FILE *file, double most, int y)
{
    static const double shares[] = {0.0, 0.5, 1.0};
    char text[32];
    svg_color_bar(file, LEFT, y, LEGEND_STEPS, LEGEND_STEP, LEGEND_STEP, 10);
    for (int n = 0; n < 3; n++)
        fprintf(file, "<text class=\"n\" x=\"%g\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                LEFT + shares[n] * LEGEND_STEPS * LEGEND_STEP, y + 24,
                number_text(shares[n] * shares[n] * most, text));
}

static void put_frame(FILE *file, const ablate_report *r, int width, int height)
{
    char texts[ABLATE_TEXTS_MAX];
    svg_begin(file, width, height, "What disabling a head costs");
    fprintf(file,
            "<style>text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
            ".h{font-weight:bold}.n{fill:#6b7280}.b{fill:#fff}"
            "@media (prefers-color-scheme:dark){text{fill:#d1d5db}.n{fill:#9ca3af}"
            ".b{fill:#0d1117}}</style>\n"
            "<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
            "<text class=\"h\" x=\"16\" y=\"24\">What disabling a head costs: %s</text>\n"
            "<text class=\"n\" x=\"16\" y=\"44\">of %.1f for the whole model; ",
            width, height,
            !r->predicts    ? "1 - cosine of the text's vector, in thousandths"
            : r->translates ? "loss per word, in thousandths of a nat"
                            : "loss per token, in thousandths of a nat",
            1e3 * r->plain.loss);
    svg_escaped(file, ablate_texts(r, texts));
    fprintf(file, "; disabled heads %s</text>\n", ablate_mode_words(r->mode));
}

void ablate_report_svg(FILE *file, const void *report)
{
    const ablate_report *const r = report;
    const int least = 560, wide = LEFT + r->shape.heads * CELL + ALL + RIGHT;
    const int width = wide > least ? wide : least;
    const int bottom = grid_top(r, ATTENTION_KINDS) - GAP;
    const double most = largest(r);
    put_frame(file, r, width, bottom + 64);
    for (int kind = 0; kind < ATTENTION_KINDS; kind++)
        if (r->shape.layers[kind] > 0)
            put_heading(file, r, kind);
    for (int n = 0; n < r->layer_count; n++)
        put_layer(file, r, &r->layers[n]);
    for (int head = 0; head < r->heads; head++)
        put_cell(file, r, head, most);
    put_legend(file, most, bottom + 18);
    svg_end(file);
}
