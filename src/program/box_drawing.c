/* SPDX-License-Identifier: MIT */
/* Boxes over a picture (box_drawing.h). Lines are white with a black one inside, so that they can
 * be seen on any ground. */
#include "program/box_drawing.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/output_file.h"
#include "draw/svg.h"
#include "picture/png_file.h"
#include "program/args.h"
#include "program/see_picture.h"

enum { SIDE = 480, LINE = 2, LETTER = 12 };

/* ------------------------------------------------------------------- PNG ----- */

static int within(double place)
{
    return place < 0.0 ? 0 : place > SIDE ? SIDE : (int)(place + 0.5);
}

/* The frame between pixels [left, right) x [top, bottom), LINE pixels thick. */
static void put_frame(picture *sheet, int left, int top, int right, int bottom, uint8_t shade)
{
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++)
            if (y < top + LINE || y >= bottom - LINE || x < left + LINE || x >= right - LINE)
                memset(sheet->pixels + (y * (ptrdiff_t)SIDE + x) * 3, shade, 3);
}

static void put_box(picture *sheet, const box *b)
{
    const int left = within(SIDE * (b->at[BOX_X] - b->at[BOX_WIDTH] / 2.0));
    const int right = within(SIDE * (b->at[BOX_X] + b->at[BOX_WIDTH] / 2.0));
    const int top = within(SIDE * (b->at[BOX_Y] - b->at[BOX_HEIGHT] / 2.0));
    const int bottom = within(SIDE * (b->at[BOX_Y] + b->at[BOX_HEIGHT] / 2.0));
    put_frame(sheet, left, top, right, bottom, 255);
    put_frame(sheet, left + LINE, top + LINE, right - LINE, bottom - LINE, 0);
}

static int write_png(const picture *seen, const drawn_box *boxes, int count, const char *path)
{
    char message[PICTURE_MESSAGE_MAX] = "out of memory";
    picture sheet = picture_new(SIDE, SIDE, 3);
    bool fine = sheet.pixels != NULL;
    for (ptrdiff_t n = 0; fine && n < (ptrdiff_t)SIDE * SIDE; n++) {
        const rgb c =
            see_picture_pixel(seen, n / SIDE * seen->rows / SIDE, n % SIDE * seen->columns / SIDE);
        sheet.pixels[3 * n] = c.r;
        sheet.pixels[3 * n + 1] = c.g;
        sheet.pixels[3 * n + 2] = c.b;
    }
    for (int n = count - 1; fine && n >= 0; n--) /* the best one last */
        put_box(&sheet, &boxes[n].box);
    fine = fine && png_file_write(path, &sheet, message);
    picture_free(&sheet);
    return fine ? EXIT_GO_ON : args_failed("%s", message);
}

/* ------------------------------------------------------------------- SVG ----- */

typedef struct svg_boxes {
    const picture *seen;
    const drawn_box *boxes;
    int count;
} svg_boxes;

static void put_svg_box(FILE *file, const drawn_box *b)
{
    static const struct {
        const char *color;
        int width;
    } lines[] = {{"#fff", 2 * LINE}, {"#000", LINE}};
    const double *const at = b->box.at;
    const double left = SIDE * (at[BOX_X] - at[BOX_WIDTH] / 2.0);
    const double top = SIDE * (at[BOX_Y] - at[BOX_HEIGHT] / 2.0);
    for (int n = 0; n < 2; n++)
        fprintf(file,
                "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"none\" stroke=\"%s\" stroke-width=\"%d\"/>\n",
                left, top, SIDE * at[BOX_WIDTH], SIDE * at[BOX_HEIGHT], lines[n].color,
                lines[n].width);
    svg_text(file, within(left), top < LETTER ? within(top) + LETTER : within(top) - LINE,
             " fill=\"#fff\" stroke=\"#000\" stroke-width=\"3\" paint-order=\"stroke\" "
             "font-family=\"sans-serif\" font-size=\"12\"",
             b->label);
}

static void put_svg(FILE *file, const void *arg)
{
    const svg_boxes *const s = arg;
    svg_begin(file, SIDE, SIDE, "Boxes");
    fputs("<g shape-rendering=\"crispEdges\">\n", file);
    see_picture_put(file, s->seen, SIDE, 1);
    fputs("</g>\n", file);
    for (int n = s->count - 1; n >= 0; n--)
        put_svg_box(file, &s->boxes[n]);
    svg_end(file);
}

int box_drawing_write(const picture *seen, const drawn_box *boxes, int count, const char *path)
{
    const size_t length = strlen(path);
    const svg_boxes drawn = {seen, boxes, count};
    if (length < 4 || strcmp(path + length - 4, ".svg") != 0)
        return write_png(seen, boxes, count, path);
    return output_file_write(path, put_svg, &drawn) ? EXIT_GO_ON : EXIT_FAILED;
}
