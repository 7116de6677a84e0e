/* SPDX-License-Identifier: MIT */
/*
 * Heat maps for the terminal, in blocks of maps side by side:
 *
 *                 head 1            head 2
 *                 previous          self       notes, where there are some
 *                     y                 y
 *                 T c a             T c a      words from top to bottom, ending at their column
 *            The  ######            ######
 *            cat  ######            ######
 *            ...  ######            ######
 */
#include "draw/heatmap.h"

#include <string.h>

#include "draw/color_scale.h"

enum { GAP = 2, LEGEND_CELLS = 24 };

typedef struct frame {
    FILE *file;
    const heatmap_sheet *sheet;
    const terminal *t;
    float largest;
    int label;  /* columns for the words at the left */
    int rise;   /* lines for the words above */
    int cell;   /* columns of one cell */
    int gap;    /* columns between maps, more if titles are wider than maps */
    int across; /* maps side by side */
} frame;

float heatmap_largest(const heatmap_sheet *sheet)
{
    const size_t cells =
        (size_t)sheet->heads * (size_t)sheet->rows.count * (size_t)sheet->columns.count;
    float largest = 0.0f;
    for (size_t n = 0; n < cells; n++)
        if (sheet->weights[n] > largest)
            largest = sheet->weights[n];
    return largest;
}

const char *heatmap_title(const heatmap_sheet *sheet, int head, char text[HEATMAP_TITLE_MAX])
{
    if (sheet->titles != NULL)
        return sheet->titles[head];
    snprintf(text, HEATMAP_TITLE_MAX, "head %d", head + 1);
    return text;
}

int heatmap_widest_title(const heatmap_sheet *sheet)
{
    size_t widest = 0;
    for (int head = 0; head < sheet->heads; head++) {
        char text[HEATMAP_TITLE_MAX];
        const size_t title = strlen(heatmap_title(sheet, head, text));
        const size_t note = sheet->notes != NULL ? strlen(sheet->notes[head]) : 0;
        widest = title > widest ? title : widest;
        widest = note > widest ? note : widest;
    }
    return (int)widest;
}

int heatmap_widest(const heatmap_words *words)
{
    int widest = 0;
    for (int n = 0; n < words->count; n++)
        widest = words->words[n].columns > widest ? words->words[n].columns : widest;
    return widest;
}

static void put_spaces(FILE *file, int count)
{
    for (int n = 0; n < count; n++)
        fputc(' ', file);
}

/* One cell of a share from 0 to 1, `columns` wide. */
static void put_cell(const frame *f, double x, int columns)
{
    static const char *const ascii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
    static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
    const int steps = f->t->unicode ? 5 : 10;
    int step = (int)(x * steps);
    step = step < 0 ? 0 : step >= steps ? steps - 1 : step;
    if (f->t->color != COLOR_NONE)
        terminal_background(f->file, f->t, color_scale(COLOR_ON_DARK, x));
    for (int n = 0; n < columns; n++)
        fputs(f->t->color != COLOR_NONE ? " "
              : f->t->unicode           ? shades[step]
                                        : ascii[step],
              f->file);
}

static double strength(const frame *f, int head, int i, int j)
{
    const size_t rows = (size_t)f->sheet->rows.count, columns = (size_t)f->sheet->columns.count;
    const size_t at = ((size_t)head * rows + (size_t)i) * columns + (size_t)j;
    return f->largest > 0.0f ? (double)(f->sheet->weights[at] / f->largest) : 0.0;
}

static void put_map_row(const frame *f, int head, int i)
{
    for (int j = 0; j < f->sheet->columns.count; j++) {
        if (f->sheet->causal && j > i) {
            terminal_plain(f->file, f->t);
            put_spaces(f->file, f->cell);
        } else {
            put_cell(f, strength(f, head, i, j), f->cell);
        }
    }
    terminal_plain(f->file, f->t);
}

/* The line of titles of maps first..end-1, or of their notes. */
static void put_titles(const frame *f, int first, int end, bool notes)
{
    put_spaces(f->file, f->label + 1);
    for (int head = first; head < end; head++) {
        terminal_style(f->file, f->t, notes ? STYLE_DIM : STYLE_BOLD);
        char text[HEATMAP_TITLE_MAX];
        const char *const title =
            notes ? f->sheet->notes[head] : heatmap_title(f->sheet, head, text);
        const int used = fprintf(f->file, "%s", title);
        terminal_plain(f->file, f->t);
        if (head + 1 < end)
            put_spaces(f->file, f->cell * f->sheet->columns.count + f->gap - used);
    }
    fputc('\n', f->file);
}

/* The letter of a column's word on one line above the map. Words end at the bottom line. */
static void put_letter(const frame *f, const text_word *word, int line)
{
    const char *letter;
    const int index = line - (f->rise - word->letters);
    const size_t length = index < 0 ? 0 : text_letter(word, index, &letter);
    int columns = 0;
    if (length > 0) {
        fprintf(f->file, "%.*s", (int)length, letter);
        columns = text_letter_columns(letter);
    }
    put_spaces(f->file, f->cell - columns);
}

static void put_rise(const frame *f, int first, int end)
{
    terminal_style(f->file, f->t, STYLE_DIM);
    for (int line = 0; line < f->rise; line++) {
        put_spaces(f->file, f->label + 1);
        for (int head = first; head < end; head++) {
            for (int j = 0; j < f->sheet->columns.count; j++)
                put_letter(f, &f->sheet->columns.words[j], line);
            if (head + 1 < end)
                put_spaces(f->file, f->gap);
        }
        fputc('\n', f->file);
    }
    terminal_plain(f->file, f->t);
}

static void put_block(const frame *f, int first, int end)
{
    put_titles(f, first, end, false);
    if (f->sheet->notes != NULL)
        put_titles(f, first, end, true);
    put_rise(f, first, end);
    for (int i = 0; i < f->sheet->rows.count; i++) {
        const text_word *word = &f->sheet->rows.words[i];
        put_spaces(f->file, f->label - word->columns);
        fprintf(f->file, "%s ", word->bytes);
        for (int head = first; head < end; head++) {
            put_map_row(f, head, i);
            if (head + 1 < end)
                put_spaces(f->file, f->gap);
        }
        fputc('\n', f->file);
    }
    fputc('\n', f->file);
}

static void put_legend(const frame *f)
{
    const int room = f->t->width - f->label - 8;
    const int cells = room < LEGEND_CELLS ? room : LEGEND_CELLS;
    put_spaces(f->file, f->label + 1);
    fputs("0 ", f->file);
    for (int n = 0; n < cells; n++)
        put_cell(f, cells > 1 ? (double)n / (cells - 1) : 1.0, 1);
    terminal_plain(f->file, f->t);
    fprintf(f->file, " %.2f\n", (double)f->largest);
}

/* Chooses widths so that as many maps as possible are side by side. */
static void fit(frame *f)
{
    const heatmap_words *columns = &f->sheet->columns;
    f->label = heatmap_widest(&f->sheet->rows);
    for (int n = 0; n < columns->count; n++)
        f->rise = columns->words[n].letters > f->rise ? columns->words[n].letters : f->rise;
    const int room = f->t->width - f->label - 1;
    f->cell = 2 * columns->count <= room ? 2 : 1;
    const int map = f->cell * columns->count, title = heatmap_widest_title(f->sheet);
    const int wide = title > map ? title : map;
    f->gap = wide - map + GAP;
    f->across = (room + GAP) / (wide + GAP);
    f->across = f->across < 1 ? 1 : f->across > f->sheet->heads ? f->sheet->heads : f->across;
    /* The same number of maps in every line looks better than full lines and a rest. */
    const int lines = (f->sheet->heads + f->across - 1) / f->across;
    f->across = (f->sheet->heads + lines - 1) / lines;
}

void heatmap_draw(FILE *file, const heatmap_sheet *sheet, const terminal *t)
{
    frame f = {.file = file, .sheet = sheet, .t = t, .largest = heatmap_largest(sheet)};
    fit(&f);
    if (sheet->heading != NULL) {
        terminal_style(file, t, STYLE_BOLD);
        fputs(sheet->heading, file);
        terminal_plain(file, t);
        fputs("\n\n", file);
    }
    for (int first = 0; first < sheet->heads; first += f.across) {
        const int end = first + f.across < sheet->heads ? first + f.across : sheet->heads;
        put_block(&f, first, end);
    }
    put_legend(&f);
}
