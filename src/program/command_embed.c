/* SPDX-License-Identifier: MIT */
/*
 * mha embed: one vector per text, or texts ranked by their similarity to a query.
 *
 *      texts --mha_model_encode()--> vectors [count][width]; a note if texts were cut
 *      print as numbers, as JSON or as a NumPy file; with --rank: cosines with the query, sorted
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "base/terminal.h"
#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/model_session.h"
#include "program/options.h"

enum { TOGETHER = 256 };

static const char details[] =
    "Texts are the words of the command line, or the lines of standard input. Each becomes one\n"
    "vector: numbers separated by spaces, one line per text. With --rank the texts themselves are\n"
    "printed, the most similar to QUERY first, with the cosine of their vectors; blank lines are\n"
    "left out. How the vectors of the tokens become one, and whether it has length 1, is what the\n"
    "model's files say, unless --pooling or --normalize is given. Texts are cut after --longest\n"
    "tokens, or after the number that the model's files recommend, or at the limit of the model.\n"
    "\n"
    "Examples:\n"
    "  mha embed --model all-MiniLM-L6-v2/ \"a cat on a mat\" > vector.txt\n"
    "  mha embed --model all-MiniLM-L6-v2/ --npy vectors.npy < lines.txt\n"
    "  mha embed --model all-MiniLM-L6-v2/ --rank \"feline animals\" --top 5 < lines.txt\n";

typedef struct embed_request {
    model_request model;
    const char *query, *pooling, *npy;
    int64_t top, longest;
    bool normalize, as_json;
    mha_encode_config config;
} embed_request;

typedef struct embedded {
    const text_list *list;
    ptrdiff_t width;
    float *vectors; /* [count][width] */
    ptrdiff_t cut;  /* texts that were too long */
} embedded;

/* -------------------------------------------------------------- output ----- */

static void print_vectors(const embedded *e)
{
    for (ptrdiff_t n = 0; n < e->list->count; n++)
        for (ptrdiff_t c = 0; c < e->width; c++)
            printf("%.9g%c", (double)e->vectors[n * e->width + c], c + 1 < e->width ? ' ' : '\n');
}

static void print_json(const embedded *e)
{
    json j = json_begin(stdout);
    json_open_array(&j, NULL);
    for (ptrdiff_t n = 0; n < e->list->count; n++) {
        json_open_object(&j, NULL);
        json_string(&j, "text", e->list->texts[n]);
        json_numbers(&j, "vector", e->vectors + n * e->width, (int)e->width);
        json_close(&j);
    }
    json_close(&j);
}

/* Version 1.0 of NumPy's format: its header is a Python dict, padded to a multiple of 64 bytes. */
static void write_npy(FILE *file, const void *arg)
{
    enum { PREFIX = 10, ALIGNED = 128 };
    const embedded *const e = arg;
    char header[ALIGNED - PREFIX + 1];
    const int length = snprintf(header, sizeof header,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': (%td, %td), }",
                                e->list->count, e->width);
    memset(header + length, ' ', (size_t)(ALIGNED - PREFIX - length));
    header[ALIGNED - PREFIX - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, PREFIX, file);
    fwrite(header, 1, ALIGNED - PREFIX, file);
    fwrite(e->vectors, sizeof(float), (size_t)(e->list->count * e->width), file);
}

/* ---------------------------------------------------------------- rank ----- */

typedef struct ranked {
    ptrdiff_t number;
    double cosine;
} ranked;

static double cosine_of(const float *a, const float *b, ptrdiff_t width)
{
    double ab = 0, aa = 0, bb = 0;
    for (ptrdiff_t c = 0; c < width; c++) {
        ab += (double)a[c] * (double)b[c];
        aa += (double)a[c] * (double)a[c];
        bb += (double)b[c] * (double)b[c];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static int by_cosine(const void *left, const void *right)
{
    const ranked *const a = left, *const b = right;
    if (a->cosine != b->cosine)
        return a->cosine < b->cosine ? 1 : -1;
    return a->number < b->number ? -1 : 1;
}

static void print_ranked(const embedded *e, const ranked *order, ptrdiff_t count, bool as_json)
{
    json j = json_begin(stdout);
    if (as_json)
        json_open_array(&j, NULL);
    for (ptrdiff_t n = 0; n < count; n++) {
        const char *const text = e->list->texts[order[n].number];
        if (!as_json) {
            printf("%.4f\t%s\n", order[n].cosine, text);
            continue;
        }
        json_open_object(&j, NULL);
        json_number(&j, "cosine", order[n].cosine);
        json_integer(&j, "line", order[n].number + 1);
        json_string(&j, "text", text);
        json_close(&j);
    }
    if (as_json)
        json_close(&j);
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r")] == '\0';
}

static int rank(const model_session *s, const embed_request *r, const embedded *e)
{
    float *const query = malloc(sizeof(float) * (size_t)e->width);
    ptrdiff_t count = 0;
    ranked *const order = malloc(sizeof *order * (size_t)(e->list->count + 1));
    const mha_status status =
        query && order ? mha_model_encode(s->model, &r->query, 1, &r->config, query, s->pool)
                       : MHA_ERR_MEMORY;
    for (ptrdiff_t n = 0; status == MHA_OK && n < e->list->count; n++)
        if (!is_blank(e->list->texts[n]))
            order[count++] = (ranked){n, cosine_of(query, e->vectors + n * e->width, e->width)};
    if (status == MHA_OK) {
        qsort(order, (size_t)count, sizeof *order, by_cosine);
        const bool all = r->top == 0 || r->top > count;
        print_ranked(e, order, all ? count : (ptrdiff_t)r->top, r->as_json);
    }
    free(query);
    free(order);
    return status == MHA_OK ? EXIT_FINE : args_failed("embed: %s", mha_status_string(status));
}

/* ----------------------------------------------------------------- cut ----- */

/* Tokens after which mha_model_encode() cuts texts; 0: it does not. */
static ptrdiff_t limit_of(const model_session *s, const embed_request *r)
{
    const ptrdiff_t most = s->info.positions;
    const ptrdiff_t wanted = r->longest > 0 ? (ptrdiff_t)r->longest : s->info.recommended;
    return wanted > 0 && (most == 0 || wanted < most) ? wanted : most;
}

/* Says on stderr how many texts were cut. */
static void report_cut(const model_session *s, const embed_request *r, const embedded *e)
{
    const ptrdiff_t limit = limit_of(s, r);
    if (e->cut > 0)
        fprintf(stderr, "mha: %td of %td texts %s cut to %td tokens; %s\n", e->cut, e->list->count,
                e->cut == 1 ? "was" : "were", limit,
                limit == s->info.positions ? "the model reads no more" : "see --longest");
}

/* ---------------------------------------------------------------- run ----- */

static int encode_all(const model_session *s, const embed_request *r, embedded *e)
{
    char message[MODEL_MESSAGE_MAX] = "";
    mha_encode_config config = r->config;
    int64_t cut[TOGETHER];
    config.message = message;
    config.message_size = sizeof message;
    config.cut = cut;
    for (ptrdiff_t n = 0; n < e->list->count; n += TOGETHER) {
        const ptrdiff_t left = e->list->count - n, count = left < TOGETHER ? left : TOGETHER;
        progress("%td of %td texts", n, e->list->count);
        const mha_status status =
            mha_model_encode(s->model, (const char *const *)e->list->texts + n, count, &config,
                             e->vectors + n * e->width, s->pool);
        if (status != MHA_OK) {
            progress_end();
            return args_failed("embed: %s", message[0] ? message : mha_status_string(status));
        }
        for (ptrdiff_t k = 0; k < count; k++)
            e->cut += cut[k] > 0;
    }
    progress_end();
    return EXIT_GO_ON;
}

static int embed(const model_session *s, const embed_request *r, const text_list *list)
{
    embedded e = {.list = list, .width = s->info.width};
    e.vectors = malloc(sizeof(float) * (size_t)(list->count * e.width + 1));
    if (e.vectors == NULL)
        return args_failed("out of memory");
    int code = encode_all(s, r, &e);
    if (code == EXIT_GO_ON) {
        report_cut(s, r, &e);
        code = EXIT_FINE;
        if (r->query != NULL)
            code = rank(s, r, &e);
        else if (r->npy != NULL)
            code = output_file_write(r->npy, write_npy, &e) ? EXIT_FINE : EXIT_FAILED;
        else if (r->as_json)
            print_json(&e);
        else
            print_vectors(&e);
    }
    free(e.vectors);
    return code;
}

static int check(embed_request *r)
{
    static const char *const poolings[] = {"model", "mean", "first", "last", "max"};
    const int pooling = r->pooling != NULL ? option_choose("embed", "pooling", r->pooling, poolings,
                                                           sizeof poolings / sizeof poolings[0])
                                           : 0;
    if (pooling < 0)
        return EXIT_USAGE;
    if (r->query != NULL && r->npy != NULL)
        return args_wrong("embed: --rank prints texts and --npy writes vectors; choose one");
    if (r->query == NULL && r->top > 0)
        return args_wrong("embed: --top is for texts that are sorted; give --rank QUERY too");
    r->config = (mha_encode_config){.size = sizeof r->config,
                                    .pooling = (mha_pooling)pooling,
                                    .normalize = r->normalize,
                                    .longest = (ptrdiff_t)r->longest};
    return r->npy == NULL || output_file_check(r->npy) ? EXIT_GO_ON : EXIT_FAILED;
}

int command_embed(int argc, char **argv)
{
    embed_request r = {.top = 0};
    const arg_option options[] = {
        {OPTION_MODEL_PATH(&r.model.path)},
        {"rank", ARG_TEXT, &r.query, "QUERY", "sort the texts by similarity to this one", 0, 0},
        {"top", ARG_NUMBER, &r.top, "N", "with --rank: print only the first N", 1, INT_MAX},
        {"pooling", ARG_TEXT, &r.pooling, "P", "model, mean, first, last or max (model)", 0, 0},
        {"normalize", ARG_FLAG, &r.normalize, NULL, "vectors of length 1", 0, 0},
        {"longest", ARG_NUMBER, &r.longest, "N", "cut texts after N tokens (as recommended)", 2,
         INT_MAX},
        {"npy", ARG_TEXT, &r.npy, "FILE", "write the vectors to a NumPy file", 0, 0},
        {OPTION_TOKENIZER(&r.model.tokenizer)},
        {OPTION_STORE(&r.model.store)},
        {OPTION_ARITHMETIC(&r.model.arithmetic)},
        {OPTION_THREADS(&r.model.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "embed",
        .usage = "[OPTION...] [TEXT...]",
        .summary = "Print one vector per text, or rank texts by similarity.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = INT_MAX,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON)
        code = check(&r);
    if (code != EXIT_GO_ON)
        return code;
    model_session session;
    text_list list = {.count = 0};
    code = model_session_open(&session, command.name, &r.model);
    if (code == EXIT_GO_ON && model_session_tokenizer(&session, command.name) == NULL)
        code = EXIT_FAILED;
    if (code == EXIT_GO_ON)
        code = text_list_read(&list, words, argv);
    if (code == EXIT_GO_ON)
        code = embed(&session, &r, &list);
    text_list_free(&list);
    model_session_close(&session);
    return code;
}
