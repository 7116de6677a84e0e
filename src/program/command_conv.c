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
    "Exit code: 0 success, 1 failure or further from the loop than the bound, 2 wrong usage.\n"
    "\n"
    "Examples:\n"
    "  mha conv docs/images/cat.png --kernel sobel -o edges.png\n"
    "  mha conv in.png --kernel kernel.txt --heads hard --padding zero -o out.png\n"
    "  mha conv in.png --kernel identity --alpha 0.5 -o soft.png\n";

typedef struct conv_request {
    const char *input, *output;
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

/* Finds kernel, heads and padding by their names and checks the rest of the options. */
static int check(conv_request *request)
{
    static const char *const heads[] = {"gauss", "hard"};
    static const conv_code codes[] = {CONV_ABSOLUTE, CONV_HARD};
    static const char *const paddings[] = {"replicate", "zero", "circular", "valid"};
    char message[KERNEL_MESSAGE_MAX];
    if (request->kernel_name == NULL)
        return args_wrong("conv: --kernel is missing, such as --kernel sobel");
    if (request->output == NULL)
        return args_wrong("conv: -o OUT.png is missing");
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
    return read_alpha(request);
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
    printf("time        %.3f s, loop %.3f s\n", r->seconds, r->loop_seconds);
    printf("%s  %td x %td\n", request->output, out->columns, out->rows);
}

static void print_json(const conv_request *request, const picture *in, const picture *out,
                       const filter_result *r)
{
    json j = json_begin(stdout);
    json_open_object(&j, NULL);
    json_string(&j, "input", request->input);
    json_string(&j, "output", request->output);
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
    json_number(&j, "seconds", r->seconds);
    json_number(&j, "loop_seconds", r->loop_seconds);
    json_string(&j, "isa", mha_isa_name());
    json_integer(&j, "threads", r->threads);
    json_close(&j);
}

/* ------------------------------------------------------------------- run ---- */

/* Filters, writes the picture and prints the report. The exit code is EXIT_FAILED if the result is
 * further from the loop than the bound. */
static int filter(const conv_request *request, const picture *in, picture *out)
{
    filter_result result;
    char message[PICTURE_MESSAGE_MAX];
    const mha_status status = picture_filter_run(&request->filter, in, out, &result, request->pool);
    if (status != MHA_OK)
        return args_failed("%s", mha_status_string(status));
    if (!png_file_write(request->output, out, message))
        return *message != '\0' ? args_failed("%s", message) : EXIT_FAILED;
    (request->as_json ? print_json : print_text)(request, in, out, &result);
    return result.difference <= result.bound ? EXIT_FINE : EXIT_FAILED;
}

/* Reads the picture; checks that the output can be written before the work begins. */
static int convolve(const conv_request *request)
{
    picture in, out = {0};
    char message[PICTURE_MESSAGE_MAX];
    if (!png_file_read(request->input, &in, message))
        return args_failed("%s", message);
    int code = EXIT_FAILED;
    if (request->filter.padding == CONV_VALID &&
        (in.rows < request->kernel.size || in.columns < request->kernel.size))
        args_failed("the kernel is larger than the picture; --padding valid needs a smaller one");
    else if (output_file_check(request->output))
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
        {"heads", ARG_TEXT, &request.heads_name, "KIND", "gauss or hard (gauss)", 0, 0},
        {"alpha", ARG_TEXT, &request.alpha_text, "A", "sharpness of gauss heads (32)", 0, 0},
        {"padding", ARG_TEXT, &request.padding_name, "P", "pixels outside the picture (replicate)",
         0, 0},
        {OPTION_THREADS(&request.threads)},
        {OPTION_JSON(&request.as_json)},
    };
    const arg_command command = {
        .name = "conv",
        .usage = "IN.png --kernel NAME -o OUT.png [OPTION...]",
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
