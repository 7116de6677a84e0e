/* SPDX-License-Identifier: MIT */
/*
 * Translations by any encoder-decoder. Texts, or the lines of standard input that are available,
 * are tokenised with the model's marks and translated by beam search, many together; what is
 * printed has their order. A text that the model cannot read is reported, and its line is empty.
 */
#include "program/translate_any.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/line_reader.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "heads/unsure_translation.h"
#include "program/args.h"
#include "program/model_session.h"

/* A translation that does not end is cut off after MOST tokens. */
enum { TOGETHER = 256, MOST = 512 };

typedef struct any_text {
    const char *text;
    bool translated; /* it has results */
    char problem[128];
} any_text;

typedef struct any_run {
    const session *session;
    const mha_model *model; /* that of the session */
    const translate_any_request *request;
    int beam, best;
    ptrdiff_t positions; /* most tokens of a text; 0: no limit */
    terminal screen;
    bool marks; /* unsure translations are marked */
    json json;
    any_text texts[TOGETHER];
    double length_penalty;
    mha_generation *results; /* [TOGETHER][best] */
    int64_t done;            /* texts before this group */
    bool lines, failed;      /* lines: of standard input */
} any_run;

/* -------------------------------------------------------------------- print ----- */

/* May the translation be wrong? If a number is missing it is copied to `number`, which else is
 * empty. */
static bool doubts(const char *source, const mha_generation *result, char number[LOST_NUMBER_MAX])
{
    const bool lost = unsure_lost_number(source, result->text, number);
    return lost || result->confidence < UNSURE_CONFIDENCE;
}

static void print_result(json *j, const char *source, const mha_generation *result)
{
    char number[LOST_NUMBER_MAX];
    json_string(j, "target", result->text);
    json_number(j, "log_probability", result->log_probability);
    json_number(j, "score", result->score);
    json_number(j, "confidence", result->confidence);
    json_bool(j, "complete", result->ended != 0);
    json_bool(j, "unsure", doubts(source, result, number));
    if (number[0] != '\0')
        json_string(j, "lost_number", number);
}

static void print_json(any_run *run, const any_text *text, const mha_generation *results)
{
    json *const j = &run->json;
    json_open_object(j, NULL);
    json_string(j, "source", text->text);
    if (text->problem[0] != '\0')
        json_string(j, "error", text->problem);
    else if (!text->translated)
        json_string(j, "target", "");
    else
        print_result(j, text->text, results);
    if (text->translated && run->request->best > 0) {
        json_open_array(j, "others");
        for (int n = 1; n < run->best && results[n].count > 0; n++) {
            json_open_object(j, NULL);
            print_result(j, text->text, &results[n]);
            json_close(j);
        }
        json_close(j);
    }
    json_close(j);
}

static void print_doubts(const any_run *run, const char *source, const mha_generation *result)
{
    char number[LOST_NUMBER_MAX];
    if (!doubts(source, result, number))
        return;
    terminal_style(stdout, &run->screen, STYLE_DIM);
    printf("  (unsure: %.2f%s%s)", result->confidence, number[0] != '\0' ? ", without " : "",
           number);
    terminal_plain(stdout, &run->screen);
}

static void print_plain(const any_run *run, const any_text *text, const mha_generation *results)
{
    if (!text->translated)
        printf("\n");
    for (int n = 0; text->translated && n < run->best && (n == 0 || results[n].count > 0); n++) {
        if (run->request->best > 0)
            printf("%.4f\t", results[n].confidence);
        printf("%s", results[n].text);
        if (n == 0 && run->marks)
            print_doubts(run, text->text, &results[n]);
        printf("\n");
    }
}

static void warn(const any_run *run, int number, const char *what)
{
    if (run->lines)
        fprintf(stderr, "mha: line %lld: %s\n", (long long)run->done + number + 1, what);
    else
        fprintf(stderr, "mha: %s\n", what);
}

/* --------------------------------------------------------------------- group ----- */

/* Adds a text to the group, unless it is empty or the model cannot read it. */
static int read_text(any_run *run, any_text *text, id_batch *group)
{
    text->translated = false;
    if (text->problem[0] != '\0' || text->text[strspn(text->text, " \t\r\n")] == '\0')
        return EXIT_GO_ON;
    const int code =
        id_batch_add(group, mha_model_tokenizer(run->model), text->text, MHA_TEXT_MARKS);
    if (code != EXIT_GO_ON)
        return code;
    const ptrdiff_t last = group->count - 1;
    const int64_t tokens = group->starts[last + 1] - group->starts[last];
    text->translated = tokens > 0 && (run->positions == 0 || tokens <= run->positions);
    if (tokens > 0 && !text->translated)
        snprintf(text->problem, sizeof text->problem,
                 "the text is too long: it has %lld tokens, and the model reads up to %td",
                 (long long)tokens, run->positions);
    group->count -= !text->translated;
    return EXIT_GO_ON;
}

static int compute(any_run *run, const id_batch *group)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const mha_generate_config config = {.size = sizeof config,
                                        .most = MOST,
                                        .beams = run->beam,
                                        .best = run->best,
                                        .length_penalty = run->length_penalty,
                                        .message = message,
                                        .message_size = sizeof message};
    const mha_status status =
        mha_model_generate(run->model, group->count, group->starts, group->ids, &config,
                           run->results, run->session->pool);
    return status == MHA_OK
               ? EXIT_GO_ON
               : args_failed("translate: %s", message[0] ? message : mha_status_string(status));
}

/* The maps of --attention and --svg. What is wrong has been reported then. */
static void draw_maps(any_run *run, const any_text *text, const mha_generation *result)
{
    const translate_maps_request *const maps = &run->request->maps;
    if (text->translated && (maps->attention || maps->svg != NULL))
        run->failed |= translate_maps_draw(run->session, maps, text->text, result->text,
                                           &run->screen) != EXIT_GO_ON;
}

/* Prints the texts of a group in their order, and frees the results. */
static void print_group(any_run *run, int count)
{
    mha_generation *results = run->results;
    for (int n = 0; n < count; n++) {
        const any_text *const text = &run->texts[n];
        if (text->problem[0] != '\0')
            warn(run, n, text->problem);
        else if (text->translated && !results->ended)
            warn(run, n, "the translation is cut off: it has no end");
        run->failed |= text->problem[0] != '\0';
        if (run->request->as_json)
            print_json(run, text, results);
        else
            print_plain(run, text, results);
        draw_maps(run, text, results);
        for (int k = 0; text->translated && k < run->best; k++)
            mha_generation_free(results++);
    }
}

static int translate_group(any_run *run, int count)
{
    id_batch group;
    int code = id_batch_begin(&group, count);
    for (int n = 0; n < count && code == EXIT_GO_ON; n++)
        code = read_text(run, &run->texts[n], &group);
    if (code == EXIT_GO_ON && group.count > 0)
        code = compute(run, &group);
    id_batch_free(&group);
    progress_end();
    if (code == EXIT_GO_ON)
        print_group(run, count);
    run->done += count;
    return code;
}

/* ---------------------------------------------------------------------- texts ----- */

static int translate_words(any_run *run, char **texts, int count)
{
    int code = EXIT_GO_ON;
    for (int first = 0; first < count && code == EXIT_GO_ON; first += TOGETHER) {
        const int some = count - first < TOGETHER ? count - first : TOGETHER;
        for (int n = 0; n < some; n++)
            run->texts[n] = (any_text){.text = texts[first + n]};
        code = translate_group(run, some);
    }
    return code;
}

/* A line ends with "\n" or "\r\n". */
static void take_line(any_text *text, input_line *line)
{
    const size_t length = strlen(line->text);
    if (length > 0 && line->text[length - 1] == '\r')
        line->text[length - 1] = '\0';
    *text = (any_text){.text = line->text};
    if (line->cut)
        snprintf(text->problem, sizeof text->problem,
                 "the line is too long: it has more than %d bytes", LINE_BYTES - 1);
}

static int translate_lines(any_run *run)
{
    line_reader reader = {.fd = STDIN_FILENO};
    input_line *const lines = malloc(TOGETHER * sizeof *lines);
    int code = lines != NULL ? EXIT_GO_ON : args_failed("out of memory"), count;
    announce_terminal();
    run->lines = true;
    while (code == EXIT_GO_ON && (count = line_reader_take(&reader, lines, TOGETHER)) > 0) {
        for (int n = 0; n < count; n++)
            take_line(&run->texts[n], &lines[n]);
        if (!isatty(STDOUT_FILENO))
            progress("%lld lines translated", (long long)run->done);
        code = translate_group(run, count);
        fflush(stdout);
    }
    free(lines);
    if (code == EXIT_GO_ON && reader.error != 0)
        code = args_failed("cannot read standard input: %s", strerror(reader.error));
    return code;
}

static int run_all(any_run *run, int words, char **argv)
{
    run->results = calloc(TOGETHER * (size_t)run->best, sizeof *run->results);
    if (run->results == NULL)
        return args_failed("out of memory");
    run->json = json_begin(stdout);
    if (run->request->as_json)
        json_open_array(&run->json, NULL);
    const int code = words > 0 ? translate_words(run, argv + 1, words) : translate_lines(run);
    if (run->request->as_json)
        json_close(&run->json);
    free(run->results);
    return code != EXIT_GO_ON ? code : run->failed ? EXIT_FAILED : EXIT_FINE;
}

int translate_any(const session *opened, const translate_any_request *request, int words,
                  char **argv)
{
    const mha_model *const model = opened->any;
    mha_model_info info = {.size = sizeof info};
    mha_model_get_info(model, &info);
    if (info.kind != MHA_MODEL_ENCODER_DECODER)
        return args_failed("translate: the model is not an encoder-decoder; \"mha generate\" "
                           "continues texts");
    if (mha_model_tokenizer(model) == NULL)
        return args_failed("translate: no tokenizer was found beside the model");
    const int checked = translate_maps_check(opened, &request->maps);
    if (checked != EXIT_GO_ON)
        return checked;
    any_run *const run = calloc(1, sizeof *run);
    if (run == NULL)
        return args_failed("out of memory");
    run->session = opened;
    run->model = model;
    run->request = request;
    run->best = request->best > 0 ? request->best : 1;
    run->beam = request->beam > 0                ? request->beam
                : run->best > TRANSLATE_ANY_BEAM ? run->best
                                                 : TRANSLATE_ANY_BEAM;
    run->length_penalty =
        isnan(request->length_penalty) ? info.length_penalty : request->length_penalty;
    run->positions = info.positions;
    run->screen = terminal_query(stdout);
    run->marks = isatty(STDOUT_FILENO) || run->screen.color != COLOR_NONE;
    const int code = run_all(run, words, argv);
    free(run);
    return code;
}
