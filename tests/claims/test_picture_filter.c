/* SPDX-License-Identifier: MIT */
/* Pictures filtered by heads, against a loop over bytes; and the kernels that are read. */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "claims/picture_filter.h"
#include "support/temp_files.h"

/* --------------------------------------------------------------- pictures -- */

static picture random_picture(test_random *random, ptrdiff_t rows, ptrdiff_t columns,
                              ptrdiff_t channels)
{
    picture p = picture_new(rows, columns, channels);
    for (ptrdiff_t n = 0; n < rows * columns * channels; n++)
        p.pixels[n] = (uint8_t)test_random_below(random, 256);
    return p;
}

/* A byte of a colour, at a place that may be outside. */
static double byte_at(const picture *p, conv_padding padding, ptrdiff_t row, ptrdiff_t column,
                      ptrdiff_t channel)
{
    if (padding == CONV_ZERO && (row < 0 || column < 0 || row >= p->rows || column >= p->columns))
        return 0.0;
    if (padding == CONV_CIRCULAR) {
        row = (row + 20 * p->rows) % p->rows;
        column = (column + 20 * p->columns) % p->columns;
    }
    row = row < 0 ? 0 : row >= p->rows ? p->rows - 1 : row;
    column = column < 0 ? 0 : column >= p->columns ? p->columns - 1 : column;
    return p->pixels[(row * p->columns + column) * p->channels + channel];
}

/* What a pixel is to be, in levels, not rounded. */
static double level(const conv_kernel *kernel, const picture *in, conv_padding padding,
                    ptrdiff_t row, ptrdiff_t column, ptrdiff_t channel)
{
    const ptrdiff_t back = padding == CONV_VALID ? 0 : (kernel->size - 1) / 2;
    double sums[KERNELS_AT_ONCE] = {0};
    for (int n = 0; n < kernel->count; n++)
        for (ptrdiff_t t = 0; t < kernel->size * kernel->size; t++)
            sums[n] += kernel->taps[n][t] * byte_at(in, padding, row - back + t / kernel->size,
                                                    column - back + t % kernel->size, channel);
    const double value = kernel->count == 1 ? sums[0] : hypot(sums[0], sums[1]);
    return value < 0.0 ? 0.0 : value > 255.0 ? 255.0 : value;
}

static void check_filter(const picture_filter *filter, const picture *in)
{
    picture out;
    filter_result result;
    const ptrdiff_t lost = filter->padding == CONV_VALID ? filter->kernel->size - 1 : 0;
    const ptrdiff_t colours = in->channels >= 3 ? 3 : 1, crop = lost / 2;
    if (!CHECK(picture_filter_run(filter, in, &out, &result, NULL) == MHA_OK, "run"))
        return;
    CHECK(out.rows == in->rows - lost && out.columns == in->columns - lost, "%td x %td", out.rows,
          out.columns);
    CHECK(result.difference <= result.bound && result.changed == 0, "%g of %g, %d bytes",
          result.difference, result.bound, (int)result.changed);
    CHECK(filter->code != CONV_HARD || result.difference == 0.0, "not bit-equal: %g",
          result.difference);
    CHECK(result.bytes == out.rows * out.columns * colours, "%d bytes", (int)result.bytes);
    for (ptrdiff_t n = 0; n < out.rows * out.columns * out.channels; n++) {
        const ptrdiff_t c = n % out.channels, pixel = n / out.channels;
        const ptrdiff_t row = pixel / out.columns, column = pixel % out.columns;
        const double wanted =
            c < colours
                ? level(filter->kernel, in, filter->padding, row, column, c)
                : in->pixels[((row + crop) * in->columns + column + crop) * in->channels + c];
        CHECK(fabs(out.pixels[n] - wanted) <= 0.502, "%s, padding %d, (%td, %td, %td): %d, not %g",
              filter->kernel->name, (int)filter->padding, row, column, c, out.pixels[n], wanted);
    }
    picture_free(&out);
}

static void heads_filter_pictures(void)
{
    static const char *const names[] = {"identity", "blur", "sharpen", "edge", "emboss", "sobel"};
    test_random random = {test_seed(1)};
    char message[KERNEL_MESSAGE_MAX];
    for (int n = 0; n < 6 * 4 * 2; n++) {
        conv_kernel kernel;
        picture in = random_picture(&random, 3 + test_random_below(&random, 16),
                                    3 + test_random_below(&random, 16), 1 + n % 4);
        const picture_filter filter = {&kernel, n % 2 ? CONV_HARD : CONV_ABSOLUTE, 32.0,
                                       (conv_padding)(n / 12)};
        if (CHECK(conv_kernel_find(&kernel, names[n % 6], message), "%s", message))
            check_filter(&filter, &in);
        picture_free(&in);
    }
}

/* Even, large, larger than the picture. */
static void kernels_of_all_sizes(void)
{
    test_random random = {test_seed(2)};
    for (ptrdiff_t size = 1; size <= KERNEL_SIZE_MAX; size += size < 6 ? 1 : 5) {
        conv_kernel kernel = {.name = "random", .size = size, .count = 1};
        for (ptrdiff_t t = 0; t < size * size; t++)
            kernel.taps[0][t] = (double)(test_random_float(&random) / (float)size);
        for (int padding = CONV_REPLICATE; padding <= CONV_VALID; padding++) {
            const bool fits = padding != CONV_VALID || size <= 7;
            picture in = random_picture(&random, fits ? 7 : 12, fits ? 9 : 13, 3);
            const picture_filter filter = {&kernel, CONV_HARD, 0.0, (conv_padding)padding};
            check_filter(&filter, &in);
            picture_free(&in);
        }
    }
}

static void identity_leaves_the_picture(void)
{
    test_random random = {test_seed(3)};
    char message[KERNEL_MESSAGE_MAX];
    conv_kernel kernel;
    picture in = random_picture(&random, 17, 23, 4), out;
    filter_result result;
    CHECK(conv_kernel_find(&kernel, "identity", message), "%s", message);
    for (int n = 0; n < 2; n++) {
        const picture_filter filter = {&kernel, n ? CONV_HARD : CONV_ABSOLUTE, 32.0,
                                       CONV_REPLICATE};
        if (CHECK(picture_filter_run(&filter, &in, &out, &result, NULL) == MHA_OK, "run"))
            CHECK(memcmp(in.pixels, out.pixels, 17 * 23 * 4) == 0, "changed by %d", n);
        picture_free(&out);
    }
    picture_free(&in);
}

/* Soft heads blur: the middle of a white point is what the Gaussian leaves of it. No seams where
 * tiles meet: a picture of one colour stays one colour. */
static void soft_heads_blur(void)
{
    char message[KERNEL_MESSAGE_MAX];
    conv_kernel kernel;
    picture point = picture_new(19, 19, 1), plain = picture_new(19, 19, 1), out;
    filter_result result;
    const picture_filter filter = {&kernel, CONV_ABSOLUTE, 0.5, CONV_REPLICATE};
    double line = 0.0;
    for (int n = -30; n <= 30; n++)
        line += exp(-0.5 * n * n);
    CHECK(conv_kernel_find(&kernel, "identity", message), "%s", message);
    point.pixels[7 * 19 + 8] = 255; /* at the corner of four tiles */
    memset(plain.pixels, 100, 19 * 19);
    if (CHECK(picture_filter_run(&filter, &point, &out, &result, NULL) == MHA_OK, "run")) {
        const double wanted = 255.0 / (line * line), beside = wanted * exp(-0.5);
        CHECK(fabs(out.pixels[7 * 19 + 8] - wanted) < 0.51, "%d, not %g", out.pixels[7 * 19 + 8],
              wanted);
        CHECK(fabs(out.pixels[7 * 19 + 7] - beside) < 0.51 &&
                  fabs(out.pixels[8 * 19 + 8] - beside) < 0.51,
              "%d and %d, not %g", out.pixels[7 * 19 + 7], out.pixels[8 * 19 + 8], beside);
        CHECK(result.difference <= result.bound && result.difference > 0.5, "%g of %g",
              result.difference, result.bound);
        picture_free(&out);
    }
    if (CHECK(picture_filter_run(&filter, &plain, &out, &result, NULL) == MHA_OK, "run")) {
        CHECK(memcmp(out.pixels, plain.pixels, 19 * 19) == 0, "one colour became several");
        picture_free(&out);
    }
    picture_free(&point);
    picture_free(&plain);
}

static void threads_change_nothing(void)
{
    test_random random = {test_seed(4)};
    char message[KERNEL_MESSAGE_MAX];
    conv_kernel kernel;
    picture in = random_picture(&random, 20, 41, 3), alone, many;
    filter_result result;
    mha_pool *pool;
    const picture_filter filter = {&kernel, CONV_ABSOLUTE, 1.0, CONV_CIRCULAR};
    CHECK(conv_kernel_find(&kernel, "sharpen", message), "%s", message);
    if (CHECK(mha_pool_create(&pool, 3) == MHA_OK, "pool") &&
        CHECK(picture_filter_run(&filter, &in, &alone, &result, NULL) == MHA_OK, "alone") &&
        CHECK(picture_filter_run(&filter, &in, &many, &result, pool) == MHA_OK, "many")) {
        CHECK(result.threads == 3, "%d threads", result.threads);
        CHECK(memcmp(alone.pixels, many.pixels, 20 * 41 * 3) == 0, "other bytes");
        picture_free(&alone);
        picture_free(&many);
    }
    mha_pool_free(pool);
    picture_free(&in);
}

/* ------------------------------------------------------------------ trace -- */

/* What one pixel is made of is what the filter computes: the taps, where the heads look, and sums.
 */
static void check_trace(const picture_filter *filter, const picture *in, conv_point pixel)
{
    const ptrdiff_t size = filter->kernel->size, first = (size - 1) / 2;
    filter_trace trace;
    if (!CHECK(filter_trace_run(filter, in, pixel, &trace) == MHA_OK, "trace"))
        return;
    CHECK(trace.heads == size * size && trace.kernels == filter->kernel->count, "%td heads",
          trace.heads);
    for (ptrdiff_t n = 0; n < trace.kernels; n++) {
        double sum = 0.0;
        for (ptrdiff_t h = 0; h < trace.heads; h++) {
            const ptrdiff_t row = trace.reads[h].row - trace.query.row;
            const ptrdiff_t column = trace.reads[h].column - trace.query.column;
            CHECK(row == h / size - first && column == h % size - first, "head %td: %td, %td", h,
                  row, column);
            CHECK(trace.taps[n][h] == filter->kernel->taps[n][h], "tap %td: %g, not %g", h,
                  trace.taps[n][h], filter->kernel->taps[n][h]);
            sum += trace.taps[n][h] * trace.values[h];
        }
        const double far = fabs(sum - trace.sums[n]), off = fabs(trace.sums[n] - trace.loop[n]);
        CHECK(far < 1e-5 && off < 1e-4, "%g from the layer, %g from the loop", far, off);
    }
    const double value = trace.kernels == 1 ? trace.sums[0] : hypot(trace.sums[0], trace.sums[1]);
    const double wanted =
        level(filter->kernel, in, filter->padding, pixel.row, pixel.column, trace.colour);
    CHECK(fabs(255.0 * fmin(fmax(value, 0.0), 1.0) - wanted) < 0.01, "%g, not %g", 255.0 * value,
          wanted);
    filter_trace_free(&trace);
}

static void one_pixel_taken_apart(void)
{
    static const char *const names[] = {"blur", "sharpen", "emboss", "sobel"};
    test_random random = {test_seed(5)};
    char message[KERNEL_MESSAGE_MAX];
    for (int n = 0; n < 32; n++) {
        conv_kernel kernel;
        picture in = random_picture(&random, 3 + test_random_below(&random, 20),
                                    3 + test_random_below(&random, 20), 1 + n / 8);
        const picture_filter filter = {&kernel, n % 2 ? CONV_HARD : CONV_ABSOLUTE, 32.0,
                                       (conv_padding)(n / 2 % 4)};
        CHECK(conv_kernel_find(&kernel, names[n % 4], message), "%s", message);
        const conv_point extent = picture_filter_extent(&filter, &in);
        const conv_point pixel = {test_random_below(&random, (int)extent.row),
                                  test_random_below(&random, (int)extent.column)};
        check_trace(&filter, &in, pixel);
        check_trace(&filter, &in, filter_trace_choose(&filter, &in));
        picture_free(&in);
    }
}

/* One white pixel on black: any window that holds it has the largest contrast, and the first one
 * that is not at the border of a tile is taken; of a plain picture the first pixel. */
static void a_pixel_worth_showing(void)
{
    char message[KERNEL_MESSAGE_MAX];
    conv_kernel kernel;
    picture in = picture_new(20, 20, 3);
    const picture_filter filter = {&kernel, CONV_HARD, 0.0, CONV_REPLICATE};
    CHECK(conv_kernel_find(&kernel, "edge", message), "%s", message);
    memset(in.pixels, 0, 20 * 20 * 3);
    conv_point pixel = filter_trace_choose(&filter, &in);
    CHECK(pixel.row == 0 && pixel.column == 0, "%td, %td", pixel.row, pixel.column);
    in.pixels[(11 * 20 + 8) * 3 + 1] = 255;
    pixel = filter_trace_choose(&filter, &in);
    CHECK(pixel.row == 10 && pixel.column == 9, "%td, %td", pixel.row, pixel.column);
    filter_trace trace;
    if (CHECK(filter_trace_run(&filter, &in, pixel, &trace) == MHA_OK, "trace")) {
        CHECK(trace.colour == 1 && trace.values[6] == 1.0 && trace.sums[0] == -1.0,
              "colour %td, %g, %g", trace.colour, trace.values[6], trace.sums[0]);
        CHECK(trace.corner.row == 7 && trace.corner.column == 7 && trace.query.row == 3,
              "corner %td, %td", trace.corner.row, trace.corner.column);
    }
    filter_trace_free(&trace);
    picture_free(&in);
}

/* ---------------------------------------------------------------- kernels -- */

static void check_kernel_file(const temp_folder *folder, const char *text, const char *reason)
{
    conv_kernel kernel;
    char message[KERNEL_MESSAGE_MAX] = "";
    const char *const path = temp_path(folder, "kernel.txt");
    CHECK(file_make(path, text, strlen(text)), "write");
    CHECK(!conv_kernel_find(&kernel, path, message), "\"%s\" was read", text);
    CHECK(strstr(message, reason) != NULL, "\"%s\", not \"%s\"", message, reason);
}

static void kernel_files(void)
{
    const temp_folder folder = temp_folder_new();
    const char *const path = temp_path(&folder, "kernel.txt");
    const char good[] = "# a kernel\n\n 1 -2.5\t3e-1 # first\n0 .5 +4\r\n\n7 8 9";
    static const float wanted[] = {1.0f, -2.5f, 0.3f, 0.0f, 0.5f, 4.0f, 7.0f, 8.0f, 9.0f};
    char message[KERNEL_MESSAGE_MAX] = "";
    conv_kernel kernel;
    CHECK(file_make(path, good, strlen(good)), "write");
    if (CHECK(conv_kernel_find(&kernel, path, message), "%s", message)) {
        CHECK(kernel.size == 3 && kernel.count == 1, "%td, %d", kernel.size, kernel.count);
        for (int n = 0; n < 9; n++)
            CHECK(kernel.taps[0][n] == (double)wanted[n], "tap %d: %g", n, kernel.taps[0][n]);
    }
    check_kernel_file(&folder, "", "no numbers");
    check_kernel_file(&folder, "# nothing\n\n", "no numbers");
    check_kernel_file(&folder, "1 2\n3\n", "line 2: a kernel is square");
    check_kernel_file(&folder, "1 2\n3 4 5\n", "line 2: a kernel is square");
    check_kernel_file(&folder, "1 2\n3 4\n5 6\n", "line 3: a kernel is square");
    check_kernel_file(&folder, "1 2\n", "as many lines of numbers as 2");
    check_kernel_file(&folder, "1 x\n2 3\n", "line 1: \"x\" is not a number");
    check_kernel_file(&folder, "1 2,\n2 3\n", "\"2,\" is not a number");
    check_kernel_file(&folder, "nan\n", "\"nan\" is not a number");
    check_kernel_file(&folder, "inf\n", "\"inf\" is not a number");
    check_kernel_file(&folder, "1e9\n", "\"1e9\" is not a number from -1e6 to 1e6");
    check_kernel_file(&folder, "1 2 3 4 5 6 7 8 9 10 11 12\n", "more numbers than 11");
    CHECK(file_make(path, "1\0 2\n", 5), "write");
    CHECK(!conv_kernel_find(&kernel, path, message) && strstr(message, "no text"), "%s", message);
    char *const large = calloc(1 << 17, 1);
    memset(large, ' ', (1 << 17) - 1);
    check_kernel_file(&folder, large, "too long");
    free(large);
    CHECK(!conv_kernel_find(&kernel, folder.path, message) && strstr(message, "directory"), "%s",
          message);
    temp_folder_free(&folder);
}

static void kernel_names(void)
{
    char message[KERNEL_MESSAGE_MAX] = "";
    conv_kernel kernel;
    CHECK(conv_kernel_find(&kernel, "sobel", message) && kernel.count == 2, "sobel");
    CHECK(!conv_kernel_find(&kernel, "sobol", message), "sobol");
    CHECK(strstr(message, "did you mean \"sobel\"?"), "%s", message);
    CHECK(!conv_kernel_find(&kernel, "nothing-like-it", message), "nothing");
    CHECK(strstr(message, "kernels are identity, blur"), "%s", message);
}

int main(int argc, char **argv)
{
    test_begin(argc, argv);
    RUN(heads_filter_pictures);
    RUN(kernels_of_all_sizes);
    RUN(identity_leaves_the_picture);
    RUN(soft_heads_blur);
    RUN(threads_change_nothing);
    RUN(one_pixel_taken_apart);
    RUN(a_pixel_worth_showing);
    RUN(kernel_files);
    RUN(kernel_names);
    return test_end();
}
