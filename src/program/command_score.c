/* SPDX-License-Identifier: MIT */
/* mha score: how probable a language model finds texts, in all and token by token. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/model_session.h"
#include "program/options.h"

static const char details[] =
    "Prints for each TEXT, or each line of standard input, the log-probability in nats, the "
    "number\n"
    "of tokens that were predicted, the perplexity, and the text. The first token of a text is "
    "not\n"
    "predicted: it is the begin mark for models that have one.\n"
    "\n"
    "Examples:\n"
    "  mha score --model model.gguf \"The cat sat on the mat.\" \"The mat sat on the cat.\"\n"
    "  mha score --model model.gguf --tokens \"The capital of France is Paris.\"\n";

typedef struct score_request {
    model_request model;
    bool tokens, as_json;
} score_request;

typedef struct scored {
    const mha_tokenizer *tokenizer;
    const char *text;
    const int32_t *ids;
    const double *scores;
    ptrdiff_t count;
    double sum;
} scored;

static double perplexity(const scored *s)
{
    return s->count > 1 ? exp(-s->sum / (double)(s->count - 1)) : 1;
}

static void print_text(const scored *s, bool tokens)
{
    printf("%.4f\t%td\t%.4f\t%s\n", s->sum, s->count > 0 ? s->count - 1 : 0, perplexity(s),
           s->text);
    for (ptrdiff_t n = 1; tokens && n < s->count; n++) {
        const char *const piece = mha_tokenizer_piece(s->tokenizer, s->ids[n]);
        printf("  %9.4f  %s\n", s->scores[n], piece ? piece : "");
    }
}

static void put_json(json *j, const scored *s)
{
    json_open_object(j, NULL);
    json_string(j, "text", s->text);
    json_number(j, "log_probability", s->sum);
    json_number(j, "perplexity", perplexity(s));
    json_open_array(j, "tokens");
    for (ptrdiff_t n = 0; n < s->count; n++) {
        const char *const piece = mha_tokenizer_piece(s->tokenizer, s->ids[n]);
        json_open_object(j, NULL);
        json_integer(j, "id", s->ids[n]);
        json_string(j, "piece", piece ? piece : "");
        json_number(j, "log_probability", s->scores[n]);
        json_close(j);
    }
    json_close(j);
    json_close(j);
}

static int score_text(const model_session *session, const mha_tokenizer *tokenizer,
                      const char *text, const score_request *r, json *j)
{
    char message[MODEL_MESSAGE_MAX] = "";
    id_batch batch;
    int code = id_batch_make(&batch, tokenizer, &text, 1, MHA_TEXT_MARKS);
    const ptrdiff_t count = code == EXIT_GO_ON ? (ptrdiff_t)batch.starts[1] : 0;
    double *const scores = calloc((size_t)count + 1, sizeof *scores);
    if (code == EXIT_GO_ON && scores == NULL)
        code = args_failed("out of memory");
    if (code == EXIT_GO_ON && count > 1) {
        const mha_status status = mha_model_score(session->model, 1, batch.starts, batch.ids, NULL,
                                                  scores, message, sizeof message, session->pool);
        if (status != MHA_OK)
            code = args_failed("score: %s", message[0] ? message : mha_status_string(status));
    }
    if (code == EXIT_GO_ON) {
        scored s = {tokenizer, text, batch.ids, scores, count, 0};
        for (ptrdiff_t n = 1; n < count; n++)
            s.sum += scores[n];
        if (r->as_json)
            put_json(j, &s);
        else
            print_text(&s, r->tokens);
    }
    free(scores);
    id_batch_free(&batch);
    return code;
}

static int score_all(const model_session *session, const score_request *r, const text_list *list)
{
    const mha_tokenizer *const tokenizer = model_session_tokenizer(session, "score");
    if (tokenizer == NULL)
        return EXIT_FAILED;
    if (session->info.kind != MHA_MODEL_DECODER)
        return args_failed("score: the model does not predict the next token; use a decoder such "
                           "as GPT-2 or Llama");
    json j = json_begin(stdout);
    int code = EXIT_GO_ON;
    if (r->as_json)
        json_open_array(&j, NULL);
    for (ptrdiff_t n = 0; n < list->count && code == EXIT_GO_ON; n++)
        code = score_text(session, tokenizer, list->texts[n], r, &j);
    if (r->as_json)
        json_close(&j);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}

int command_score(int argc, char **argv)
{
    score_request r = {.tokens = false};
    const arg_option options[] = {
        {OPTION_MODEL_PATH(&r.model.path)},
        {"tokens", ARG_FLAG, &r.tokens, NULL, "also the log-probability of each token", 0, 0},
        {OPTION_TOKENIZER(&r.model.tokenizer)},
        {OPTION_STORE(&r.model.store)},
        {OPTION_ARITHMETIC(&r.model.arithmetic)},
        {OPTION_THREADS(&r.model.threads)},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "score",
        .usage = "[OPTION...] [TEXT...]",
        .summary = "Print how probable a language model finds texts.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = INT_MAX,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    model_session session;
    text_list list = {.count = 0};
    code = model_session_open(&session, command.name, &r.model);
    if (code == EXIT_GO_ON)
        code = text_list_read(&list, words, argv);
    if (code == EXIT_GO_ON)
        code = score_all(&session, &r, &list);
    text_list_free(&list);
    model_session_close(&session);
    return code;
}
