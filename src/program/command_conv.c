/* SPDX-License-Identifier: MIT */
/* mha conv: a picture filtered by multi-head attention and compared with the direct convolution.
 * The filter is in claims/picture_filter.h; here are options, files and the report. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "claims/picture_filter.h"
#include "format/json_writer.h"
#include "picture/png_file.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/conv_figure.h"
#include "program/options.h"
#include "program/session.h"

static const char details[] =
    "Pixels are tokens, and every tap of a K x K kernel is a head: h = K*K. The picture is cut\n"
    "into tiles, which form a batch. The result is compared with a plain loop.\n"
    "\n"
    "Kernels: identity blur sharpen edge emboss sobel, or a FILE with K lines of K numbers,\n"
    "K up to 11. sobel is two kernels; the result is the length of the vector of both.\n"
    "Heads:\n"
    "  gauss   tokens carry their position, and W_Q and W_K make each head attend to the pixel at\n"
    "          the offset of its tap; --alpha sets how sharply, small values blur (0.25 to 1000)\n"
    "  hard    a mask hides all pixels but that one: bit-equal to the loop\n"
    "Padding: replicate, zero, circular, or valid, which makes the picture smaller.\n"
    "\n"
    "--figure draws how one pixel is computed, for kernels up to 5 x 5: an arrow for each head to\n"
    "the pixel it attends to, what it reads, W_V W_O as taps, and their sum. --pixel selects the\n"
    "pixel of the output, counted from 0; without it, one with a large contrast is taken.\n"
    "\n"
    "Exit code: 0 success, 1 failure or further from the loop than the bound, 2 wrong usage.\n"
    "\n"
    "Examples:\n"
    "  mha conv docs/images/cat.png --kernel sobel -o edges.png\n"
    "  mha conv in.png --kernel kernel.txt --heads hard --padding zero -o out.png\n"
    "  mha conv in.png --kernel identity --alpha 0.5 -o soft.png\n"
    "  mha conv docs/images/cat.png --kernel edge --figure proof.svg\n";

typedef struct conv_request {
    const char *input, *output, *figure;
    const char *pixel_text; /* NULL: any pixel */
    conv_point pixel;
    const char *kernel_name, *heads_name, *padding_name, *alpha_text;
    conv_kernel kernel;
    picture_filter filter;
    int64_t threads;
    mha_pool *pool;
    bool as_json;
} conv_request;

/* ------------------------------------------------------------- arguments ---- */

/* The heads compute in f32, so alpha is rounded to it before it is reported. */
static int read_alpha(conv_request *request)
{
    char *end;
    const double alpha = strtod(request->alpha_text, &end);
    if (end == request->alpha_text || *end != '\0' || !(alpha >= 0.25 && alpha <= 1000.0))
        return args_wrong("conv: --alpha %s: not a number from 0.25 to 1000", request->alpha_text);
    request->filter.alpha = (double)(float)alpha;
    return EXIT_GO_ON;
}

/* "ROW,COLUMN". Whether the picture has this pixel is known only when it is read. */
static int read_pixel(conv_request *request)
{
    int end = 0;
    long row, column;
    const char *const text = request->pixel_text;
    if (text == NULL)
        return EXIT_GO_ON;
    if (strlen(text) > 16 || sscanf(text, "%ld,%ld%n", &row, &column, &end) < 2 ||
        text[end] != '\0' || row < 0 || column < 0)
        return args_wrong("conv: --pixel %s: not ROW,COLUMN, such as 12,40", text);
    request->pixel = (conv_point){row, column};
    return EXIT_GO_ON;
}

static int check_figure(conv_request *request)
{
    if (request->figure == NULL && request->pixel_text != NULL)
        return args_wrong("conv: --pixel selects what --figure draws, which is missing");
    if (request->figure != NULL && request->kernel.size > CONV_FIGURE_SIZE_MAX)
        return args_wrong("conv: --figure draws kernels up to %d x %d, not %td x %td",
                          CONV_FIGURE_SIZE_MAX, CONV_FIGURE_SIZE_MAX, request->kernel.size,
                          request->kernel.size);
    return read_pixel(request);
}

/* Finds kernel, heads and padding by their names and checks the rest of the options. */
static int check(conv_request *request)
{
    static const char *const heads[] = {"gauss", "hard"};
    static const conv_code codes[] = {CONV_ABSOLUTE, CONV_HARD};
    static const char *const paddings[] = {"replicate", "zero", "circular", "valid"};
    char message[KERNEL_MESSAGE_MAX];
    if (request->kernel_name == NULL)
        return args_wrong("conv: --kernel is missing, such as --kernel sobel");
    if (request->output == NULL && request->figure == NULL)
        return args_wrong("conv: -o OUT.png is missing, or --figure OUT.svg");
    if (!conv_kernel_find(&request->kernel, request->kernel_name, message))
        return args_wrong("conv: %s", message);
    const int code = option_choose("conv", "heads", request->heads_name, heads, 2);
    if (code < 0)
        return EXIT_USAGE;
    const int padding = option_choose("conv", "padding", request->padding_name, paddings, 4);
    if (padding < 0)
        return EXIT_USAGE;
    request->filter.kernel = &request->kernel;
    request->filter.code = codes[code];
    request->filter.padding = (conv_padding)padding;
    const int exit_code = check_figure(request);
    return exit_code == EXIT_GO_ON ? read_alpha(request) : exit_code;
}

/* ---------------------------------------------------------------- report ---- */

static const char *verdict(const filter_result *result)
{
    if (!(result->difference <= result->bound))
        return "TOO FAR";
    return result->difference == 0.0 ? "bit-equal" : "ok";
}

static void print_text(const conv_request *request, const picture *in, const picture *out,
                       const filter_result *r)
{
    printf("%s  %td x %td, %td channel%s\n", request->input, in->columns, in->rows, in->channels,
           in->channels == 1 ? "" : "s");
    printf("kernel      %s, %td x %td, padding %s\n", request->kernel_name, request->kernel.size,
           request->kernel.size, request->padding_name);
    printf("heads       %td %s", r->heads, request->heads_name);
    if (request->filter.code != CONV_HARD)
        printf(", alpha %g", request->filter.alpha);
    printf("; tiles of %td tokens; isa %s, %d thread%s\n", r->tokens, mha_isa_name(), r->threads,
           r->threads == 1 ? "" : "s");
    printf("difference  %.3g from a direct convolution, at most %.3g (white is 1): %s\n",
           r->difference, r->bound, verdict(r));
    printf("bytes       %" PRId64 " of %" PRId64 " differ\n", r->changed, r->bytes);
    printf("products    %.0f multiply-adds per pixel, loop %.0f\n", r->multiply_adds,
           r->loop_multiply_adds);
    printf("time        %.3f s, loop %.3f s\n", r->seconds, r->loop_seconds);
    if (request->output != NULL)
        printf("%s  %td x %td\n", request->output, out->columns, out->rows);
    if (request->figure != NULL)
        printf("%s  pixel %td,%td\n", request->figure, request->pixel.row, request->pixel.column);
}

static void print_json(const conv_request *request, const picture *in, const picture *out,
                       const filter_result *r)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "input", request->input);
    if (request->output != NULL)
        json_string(&j, "output", request->output);
    if (request->figure != NULL) {
        json_string(&j, "figure", request->figure);
        json_open_array(&j, "pixel");
        json_integer(&j, NULL, request->pixel.row);
        json_integer(&j, NULL, request->pixel.column);
        json_close(&j);
    }
    json_integer(&j, "rows", out->rows);
    json_integer(&j, "columns", out->columns);
    json_integer(&j, "channels", in->channels);
    json_string(&j, "kernel", request->kernel_name);
    json_integer(&j, "kernel_size", request->kernel.size);
    json_string(&j, "padding", request->padding_name);
    json_string(&j, "heads", request->heads_name);
    json_integer(&j, "head_count", r->heads);
    json_number(&j, "alpha", request->filter.code == CONV_HARD ? NAN : request->filter.alpha);
    json_integer(&j, "tile_tokens", r->tokens);
    json_number(&j, "difference", r->difference);
    json_number(&j, "bound", r->bound);
    json_bool(&j, "within_bound", r->difference <= r->bound);
    json_integer(&j, "bytes", r->bytes);
    json_integer(&j, "bytes_changed", r->changed);
    json_number(&j, "multiply_adds", r->multiply_adds);
    json_number(&j, "loop_multiply_adds", r->loop_multiply_adds);
    json_number(&j, "seconds", r->seconds);
    json_number(&j, "loop_seconds", r->loop_seconds);
    json_string(&j, "isa", mha_isa_name());
    json_integer(&j, "threads", r->threads);
    json_close(&j);
}

/* ------------------------------------------------------------------- run ---- */

/* Chooses the pixel if the user did not, and draws it. */
static int draw_figure(conv_request *request, const picture *in)
{
    const conv_point extent = picture_filter_extent(&request->filter, in);
    filter_trace trace;
    const conv_figure figure = {&trace, &request->filter, request->kernel_name};
    if (request->pixel_text == NULL)
        request->pixel = filter_trace_choose(&request->filter, in);
    if (request->pixel.row >= extent.row || request->pixel.column >= extent.column)
        return args_failed("--pixel %s: the output has %td rows and %td columns",
                           request->pixel_text, extent.row, extent.column);
    const mha_status status = filter_trace_run(&request->filter, in, request->pixel, &trace);
    if (status != MHA_OK)
        return args_failed("%s", mha_status_string(status));
    const bool written = output_file_write(request->figure, conv_figure_svg, &figure);
    filter_trace_free(&trace);
    return written ? EXIT_FINE : EXIT_FAILED;
}

/* Filters, writes the picture and the figure, and prints the report. The exit code is EXIT_FAILED
 * if the result is further from the loop than the bound. */
static int filter(conv_request *request, const picture *in, picture *out)
{
    filter_result result;
    char message[PICTURE_MESSAGE_MAX];
    const mha_status status = picture_filter_run(&request->filter, in, out, &result, request->pool);
    if (status != MHA_OK)
        return args_failed("%s", mha_status_string(status));
    if (request->figure != NULL && draw_figure(request, in) != EXIT_FINE)
        return EXIT_FAILED;
    if (request->output != NULL && !png_file_write(request->output, out, message))
        return *message != '\0' ? args_failed("%s", message) : EXIT_FAILED;
    (request->as_json ? print_json : print_text)(request, in, out, &result);
    return result.difference <= result.bound ? EXIT_FINE : EXIT_FAILED;
}

/* Whether the outputs can be written, which is checked before the work begins. */
static bool check_outputs(const conv_request *request)
{
    return (request->output == NULL || output_file_check(request->output)) &&
           (request->figure == NULL || output_file_check(request->figure));
}

static int convolve(conv_request *request)
{
    picture in, out = {0};
    char message[PICTURE_MESSAGE_MAX];
    if (!png_file_read(request->input, &in, message))
        return args_failed("%s", message);
    int code = EXIT_FAILED;
    if (request->filter.padding == CONV_VALID &&
        (in.rows < request->kernel.size || in.columns < request->kernel.size))
        args_failed("the kernel is larger than the picture; --padding valid needs a smaller one");
    else if (check_outputs(request))
        code = filter(request, &in, &out);
    picture_free(&in);
    picture_free(&out);
    return code;
}

int command_conv(int argc, char **argv)
{
    conv_request request = {.heads_name = "gauss", .padding_name = "replicate", .alpha_text = "32"};
    uint64_t given = 0;
    const arg_option options[] = {
        {"kernel", ARG_TEXT, &request.kernel_name, "NAME", "name of a kernel, or a file with one",
         0, 0},
        {"o", ARG_TEXT, &request.output, "OUT.png", "the picture to write", 0, 0},
        {"figure", ARG_TEXT, &request.figure, "OUT.svg", "draw how the heads compute a pixel", 0,
         0},
        {"pixel", ARG_TEXT, &request.pixel_text, "R,C", "row and column of that pixel", 0, 0},
        {"heads", ARG_TEXT, &request.heads_name, "KIND", "gauss or hard (gauss)", 0, 0},
        {"alpha", ARG_TEXT, &request.alpha_text, "A", "sharpness of gauss heads (32)", 0, 0},
        {"padding", ARG_TEXT, &request.padding_name, "P", "pixels outside the picture (replicate)",
         0, 0},
        {OPTION_THREADS(&request.threads)},
        {OPTION_JSON(&request.as_json)},
    };
    const arg_command command = {
        .name = "conv",
        .usage = "IN.png --kernel NAME [-o OUT.png] [--figure OUT.svg] [OPTION...]",
        .summary = "Filter a picture with a multi-head attention layer.",
        .details = details,
        ARG_OPTIONS(options),
        .words_min = 1,
        .words_max = 1,
        .given = &given,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON)
        code = check(&request);
    if (code == EXIT_GO_ON && request.filter.code == CONV_HARD)
        code = args_refuse(&command, "alpha", "is the sharpness of gauss heads, not of hard ones");
    if (code != EXIT_GO_ON)
        return code;
    request.input = argv[1];
    code = session_open_pool(&request.pool, request.threads);
    if (code == EXIT_GO_ON)
        code = convolve(&request);
    mha_pool_free(request.pool);
    return code;
}
