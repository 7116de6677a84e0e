/* SPDX-License-Identifier: MIT */
/*
 * Heat maps as TikZ, one picture per sheet. The unit is the side of a cell; a map has its upper
 * left corner at (0,0) of its scope, titles and words of columns above, words of rows at the left.
 */
#include "draw/color_scale.h"
#include "draw/heatmap.h"

enum { ACROSS = 4 };

/* In cells: width of a letter, distance between maps, height of a line of text. */
static const double letter = 0.45, space = 1.0, line = 1.1;

static void put_escaped(FILE *file, const char *text)
{
    static const struct {
        char letter;
        const char *tex;
    } names[] = {{'\\', "\\textbackslash{}"},
                 {'~', "\\textasciitilde{}"},
                 {'^', "\\textasciicircum{}"},
                 {'<', "\\textless{}"},
                 {'>', "\\textgreater{}"},
                 {'{', "\\{"},
                 {'}', "\\}"},
                 {'#', "\\#"},
                 {'$', "\\$"},
                 {'%', "\\%"},
                 {'&', "\\&"},
                 {'_', "\\_"}};
    for (; *text != '\0'; text++) {
        size_t n = 0;
        while (n < sizeof names / sizeof names[0] && names[n].letter != *text)
            n++;
        if (n < sizeof names / sizeof names[0])
            fputs(names[n].tex, file);
        else
            fputc(*text, file);
    }
}

static void put_node(FILE *file, const char *style, double x, double y, const char *text)
{
    fprintf(file, "  \\node[%s] at (%.4g,%.4g) {", style, x, y);
    put_escaped(file, text);
    fputs("};\n", file);
}

/* Each cell has its shade in per cent and its value, so that a redefined \mhacell can use either.
 */
static void put_cells(FILE *file, const heatmap_sheet *s, int head)
{
    const float largest = heatmap_largest(s);
    for (int i = 0; i < s->rows.count; i++)
        for (int j = 0; j < (s->causal ? i + 1 : s->columns.count); j++) {
            const float weight =
                s->weights[((ptrdiff_t)head * s->rows.count + i) * s->columns.count + j];
            fprintf(file, "  \\mhacell{%d}{%d}{%.0f}{%.6g}\n", j, i,
                    largest > 0.0f ? 100.0 * (double)(weight / largest) : 0.0, (double)weight);
        }
}

static void put_map(FILE *file, const heatmap_sheet *s, int head, double rise)
{
    char title[HEATMAP_TITLE_MAX];
    const bool note = s->notes != NULL && s->notes[head][0] != '\0';
    put_node(file, "mhatitle", 0.0, rise + (s->notes != NULL ? line : 0.0),
             heatmap_title(s, head, title));
    if (note)
        put_node(file, "mhanote", 0.0, rise, s->notes[head]);
    for (int j = 0; j < s->columns.count; j++)
        put_node(file, "mhacolumn", j + 0.5, 0.1, s->columns.words[j].bytes);
    for (int i = 0; head % ACROSS == 0 && i < s->rows.count; i++)
        put_node(file, "mharow", -0.1, -i - 0.5, s->rows.words[i].bytes);
    put_cells(file, s, head);
}

/* One tikzpicture, whose maps are scopes that are shifted to their places. */
static void put_sheet(FILE *file, const heatmap_sheet *s)
{
    const double rise = letter * heatmap_widest(&s->columns) + 0.3;
    const double titles = letter * heatmap_widest_title(s);
    const double wide = (titles > s->columns.count ? titles : s->columns.count) + space;
    const double high = s->rows.count + rise + (s->notes != NULL ? 2 : 1) * line + space;
    fputs("\\begin{tikzpicture}[x=4mm,y=4mm,font=\\footnotesize,\n"
          "  mhatitle/.style={anchor=south west,inner sep=0pt,font=\\footnotesize\\bfseries},\n"
          "  mhanote/.style={anchor=south west,inner sep=0pt},\n"
          "  mhacolumn/.style={anchor=west,rotate=90,inner sep=0pt},\n"
          "  mharow/.style={anchor=east,inner sep=0pt}]\n",
          file);
    if (s->heading != NULL)
        put_node(file, "mhatitle", 0.0, rise + 3 * line, s->heading);
    for (int head = 0; head < s->heads; head++) {
        fprintf(file, "\\begin{scope}[shift={(%.4g,%.4g)}]\n", head % ACROSS * wide,
                -(head / ACROSS) * high);
        put_map(file, s, head, rise);
        fputs("\\end{scope}\n", file);
    }
    fputs("\\end{tikzpicture}\n", file);
}

/* mha0 to mha100: the colours of shades in per cent. A "%" at the end of a line keeps LaTeX from
 * setting a space. */
static void put_colors(FILE *file)
{
    for (int shade = 0; shade <= 100; shade++) {
        const rgb c = color_scale(COLOR_ON_LIGHT, shade / 100.0);
        fprintf(file, "\\definecolor{mha%d}{HTML}{%02X%02X%02X}%s", shade, c.r, c.g, c.b,
                shade % 3 == 2 || shade == 100 ? "%\n" : "");
    }
}

void heatmap_tikz(FILE *file, const heatmap_sheet *sheets, int count)
{
    fputs(
        "% Made by \"mha show --tikz\". In a LaTeX document: \\usepackage{tikz}, then \\input this "
        "file.\n"
        "% A cell is \\mhacell{column}{row}{shade}{value}; the shade is the value in per cent of "
        "the\n"
        "% largest of its picture. Define \\mhacell before to draw otherwise.\n"
        "\\providecommand{\\mhacell}[4]{\\fill[mha#3] (#1,-#2) rectangle +(1,-1);}\n",
        file);
    put_colors(file);
    for (int n = 0; n < count; n++) {
        if (n > 0)
            fputs("\n\\bigskip\n", file);
        put_sheet(file, &sheets[n]);
    }
}
