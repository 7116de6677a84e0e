/* SPDX-License-Identifier: MIT */
#include "program/loss_curve.h"

#include <inttypes.h>
#include <math.h>

#include "model/optimizer.h"

enum { WIDTH = 760, HEIGHT = 420, LEFT = 64, RIGHT = 24, TOP = 64, BOTTOM = 52, POINTS = 320 };
enum { TICKS_ACROSS = 8, TICK_LENGTH = 5 };

typedef struct picture {
    FILE *file;
    training_history history;
    int64_t done, steps; /* steps so far, and in all */
    double low, high;    /* ends of the axis of losses, logarithms to the base 10 */
} picture;

/* ---------------------------------------------------------------- axes ----- */

/* 1, 2, 5, 10, 20 ... for 0, 1, 2, 3, 4 ...; 0.5 for -1. */
static double round_number(int n)
{
    static const double digits[] = {1.0, 2.0, 5.0};
    const int digit = (n % 3 + 3) % 3;
    return digits[digit] * pow(10.0, (n - digit) / 3);
}

/* The largest round number that is not above the loss (`up`: the smallest not below). */
static int round_near(double loss, bool up)
{
    int n = 3 * (int)floor(log10(loss)) - 1;
    while (round_number(n + 1) <= loss * (1.0 + 1e-9))
        n++;
    return up && round_number(n) < loss * (1.0 - 1e-9) ? n + 1 : n;
}

static bool counts(double loss)
{
    return isfinite(loss) && loss > 0.0;
}

static void include(double loss, double *least, double *most)
{
    if (!counts(loss))
        return;
    *least = loss < *least ? loss : *least;
    *most = loss > *most ? loss : *most;
}

/* Steps that one point of the curve stands for, and their mean loss. */
static int64_t steps_a_point(const picture *p)
{
    return p->done <= POINTS ? 1 : (p->done + POINTS - 1) / POINTS;
}

static double mean_loss(const picture *p, int64_t first, int64_t count)
{
    double sum = 0.0;
    for (int64_t n = 0; n < count; n++)
        sum += (double)p->history.losses[first + n];
    return sum / (double)count;
}

static int64_t count_at(const picture *p, int64_t first)
{
    const int64_t step = steps_a_point(p), left = p->done - first;
    return left < step ? left : step;
}

static void find_range(picture *p)
{
    double least = INFINITY, most = 0.0;
    for (int64_t first = 0; first < p->done; first += steps_a_point(p))
        include(mean_loss(p, first, count_at(p, first)), &least, &most);
    for (size_t n = 0; n < p->history.mark_count; n++)
        include(p->history.marks[n].loss, &least, &most);
    if (most == 0.0)
        least = most = 1.0;
    const int low = round_near(least, false), high = round_near(most, true);
    p->low = log10(round_number(low));
    p->high = log10(round_number(high > low ? high : low + 1));
}

static double x_of(const picture *p, int64_t step)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * (double)step / (double)p->steps;
}

static double y_of(const picture *p, double loss)
{
    const double share = (log10(loss) - p->low) / (p->high - p->low);
    return HEIGHT - BOTTOM - (double)(HEIGHT - TOP - BOTTOM) * share;
}

static void put_steps(const picture *p)
{
    int n = 0;
    while (round_number(n) * TICKS_ACROSS < (double)p->steps)
        n++;
    const int64_t apart = (int64_t)round_number(n);
    for (int64_t step = 0; step <= p->steps; step += apart) {
        const double x = x_of(p, step);
        fprintf(p->file,
                "<line class=\"a\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRId64 "</text>\n",
                x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + TICK_LENGTH, x, HEIGHT - BOTTOM + 20,
                step);
    }
    fprintf(p->file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">steps</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
}

static void put_losses(const picture *p)
{
    const int high = round_near(pow(10.0, p->high), false);
    for (int n = round_near(pow(10.0, p->low), false); n <= high; n++) {
        const double y = y_of(p, round_number(n));
        fprintf(p->file,
                "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4.0, round_number(n));
    }
    fprintf(p->file, "<line class=\"a\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT,
            HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM);
}

/* -------------------------------------------------------------- curves ----- */

static void put_point(const picture *p, int64_t step, double loss)
{
    if (counts(loss))
        fprintf(p->file, "%.1f,%.1f ", x_of(p, step), y_of(p, loss));
}

static void put_curves(const picture *p)
{
    fputs("<polyline class=\"t\" points=\"", p->file);
    for (int64_t first = 0; first < p->done; first += steps_a_point(p)) {
        const int64_t count = count_at(p, first);
        put_point(p, first + (count + 1) / 2, mean_loss(p, first, count));
    }
    fputs("\"/>\n<polyline class=\"v\" points=\"", p->file);
    for (size_t n = 0; n < p->history.mark_count; n++)
        put_point(p, p->history.marks[n].step, p->history.marks[n].loss);
    fputs("\"/>\n", p->file);
}

static void put_key(const picture *p, int left, const char *class, const char *name, double loss)
{
    fprintf(p->file,
            "<line class=\"%s\" x1=\"%d\" y1=\"46\" x2=\"%d\" y2=\"46\"/>\n"
            "<text x=\"%d\" y=\"50\">%s",
            class, left, left + 24, left + 32, name);
    if (counts(loss))
        fprintf(p->file, ", at last %.3g", loss);
    fputs("</text>\n", p->file);
}

static void put_keys(const picture *p)
{
    const int64_t tail = p->done < 50 ? p->done : 50;
    const size_t marks = p->history.mark_count;
    put_key(p, LEFT, "t", "training", tail > 0 ? mean_loss(p, p->done - tail, tail) : NAN);
    put_key(p, LEFT + 280, "v", "validation", marks > 0 ? p->history.marks[marks - 1].loss : NAN);
}

static void put_head(FILE *file)
{
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Loss of a training</title>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fputs("<style>text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#374151}"
          ".h{font-weight:bold}.b{fill:#fff}.g{stroke:#e5e7eb}.a{stroke:#6b7280}"
          ".t,.v{fill:none;stroke-width:2;stroke-linejoin:round}"
          ".t{stroke:#2563eb}.v{stroke:#c2410c}"
          "@media (prefers-color-scheme:dark){text{fill:#d1d5db}.b{fill:#0d1117}"
          ".g{stroke:#262c36}.a{stroke:#9ca3af}.t{stroke:#60a5fa}.v{stroke:#fb923c}}"
          "</style>\n",
          file);
    fprintf(file,
            "<rect class=\"b\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n"
            "<text class=\"h\" x=\"%d\" y=\"26\">Loss of a word, in nats</text>\n",
            WIDTH, HEIGHT, LEFT);
}

void loss_curve_svg(FILE *file, const void *shown)
{
    const training *const t = shown;
    picture p = {.file = file,
                 .history = training_get_history(t),
                 .done = training_steps_done(t),
                 .steps = training_get_config(t)->steps};
    p.steps = p.done > p.steps ? p.done : p.steps;
    find_range(&p);
    put_head(file);
    put_losses(&p);
    put_steps(&p);
    put_curves(&p);
    put_keys(&p);
    fputs("</svg>\n", file);
}

/* --------------------------------------------------------------- table ----- */

void loss_curve_csv(FILE *file, const void *shown)
{
    const training *const t = shown;
    const training_history history = training_get_history(t);
    const int64_t done = training_steps_done(t);
    size_t mark = 0;
    fputs("step,learning_rate,loss,valid_loss,valid_words_right\n", file);
    for (int64_t step = 1; step <= done; step++) {
        fprintf(file, "%" PRId64 ",%.6g,%.6g,", step,
                optimizer_rate(training_get_config(t), step - 1), (double)history.losses[step - 1]);
        while (mark < history.mark_count && history.marks[mark].step < step)
            mark++;
        if (mark < history.mark_count && history.marks[mark].step == step)
            fprintf(file, "%.6g,%.6g\n", history.marks[mark].loss, history.marks[mark].words_right);
        else
            fputs(",\n", file);
    }
}
