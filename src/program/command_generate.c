/* SPDX-License-Identifier: MIT */
/*
 * mha generate: continues a text, or holds a chat, while the tokens come.
 *
 *      prompt --tokenizer--> ids; those that the state has already are not computed again
 *      mha_model_generate() --callback--> text on standard output, piece by piece
 *      at the end: tokens per second on standard error
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/generate_chat.h"
#include "program/model_session.h"
#include "program/options.h"

static const char details[] =
    "The prompt is TEXT, or all of standard input. The text is printed as it is made; tokens per\n"
    "second follow on standard error. An encoder-decoder (T5, BART, Marian) reads TEXT and writes\n"
    "its own. With --chat, TEXT is the message of the user, and the model answers; without TEXT\n"
    "every line of standard input is a message, until an empty line or the end of the input.\n"
    "\n"
    "Without --temperature the most probable token is taken each time, so a prompt always gives\n"
    "the same text. --prompt-cache keeps the computed prompt in a file for the next run.\n"
    "\n"
    "Examples:\n"
    "  mha generate --model model.gguf \"Once upon a time\"\n"
    "  mha generate --model model.gguf --chat \"What is the capital of France?\"\n"
    "  mha generate --model model.gguf --chat --system \"Answer in one word.\" --temperature 0.7\n";

/* ------------------------------------------------------------ printing ----- */

typedef struct stream {
    double first, last; /* when the first and the last token came; 0: none yet */
    ptrdiff_t tokens;
    bool quiet;
} stream;

static int print_piece(void *context, ptrdiff_t b, int32_t id, const char *text, size_t length)
{
    stream *const s = context;
    (void)b;
    if (id >= 0) {
        s->last = clock_seconds();
        s->first = s->tokens++ == 0 ? s->last : s->first;
    }
    fwrite(text, 1, length, stdout);
    fflush(stdout);
    return ferror(stdout);
}

/* The time up to the first token is the prompt's. */
static void print_speed(const stream *s, double begin, ptrdiff_t prompt)
{
    if (s->quiet || s->tokens == 0)
        return;
    fprintf(stderr, "prompt: %td tokens", prompt);
    if (s->first > begin && prompt > 0)
        fprintf(stderr, ", %.1f tokens/s", (double)prompt / (s->first - begin));
    fprintf(stderr, "; text: %td tokens", s->tokens);
    if (s->tokens > 1 && s->last > s->first)
        fprintf(stderr, ", %.1f tokens/s", (double)(s->tokens - 1) / (s->last - s->first));
    fputc('\n', stderr);
}

/* ---------------------------------------------------------------- turn ----- */

/* Ids of `text` that the state lacks: tokens that both begin with stay, but the last id is always
 * computed, since its logits are needed. */
static ptrdiff_t reuse_state(mha_state *state, const int32_t *ids, ptrdiff_t count)
{
    const int32_t *const known = mha_state_tokens(state, 0);
    const ptrdiff_t length = mha_state_length(state, 0);
    ptrdiff_t same = 0;
    while (same < length && same < count - 1 && known[same] == ids[same])
        same++;
    mha_state_truncate(state, 0, same);
    return same;
}

int generate_turn(generate_run *run, const char *text, unsigned flags, char **reply)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const generate_request *const r = run->request;
    id_batch batch;
    int code = id_batch_make(&batch, run->tokenizer, &text, 1, flags);
    if (code == EXIT_GO_ON && batch.starts[1] == 0)
        code = args_failed("generate: the prompt has no tokens");
    const ptrdiff_t count = code == EXIT_GO_ON ? (ptrdiff_t)batch.starts[1] : 0;
    const ptrdiff_t same = run->state && count > 0 ? reuse_state(run->state, batch.ids, count) : 0;
    stream out = {.quiet = r->quiet};
    mha_generate_config config = {.size = sizeof config,
                                  .most = (ptrdiff_t)r->most,
                                  .sampling = r->sampling,
                                  .stops = &r->stop,
                                  .stop_count = r->stop != NULL,
                                  .state = run->state,
                                  .callback = print_piece,
                                  .context = &out,
                                  .message = message,
                                  .message_size = sizeof message};
    const int64_t starts[] = {0, count - same};
    mha_generation result = {.count = 0};
    const double begin = clock_seconds();
    if (code == EXIT_GO_ON) {
        const mha_status status = mha_model_generate(
            run->session.model, 1, starts, batch.ids + same, &config, &result, run->session.pool);
        if (status != MHA_OK)
            code = args_failed("generate: %s", message[0] ? message : mha_status_string(status));
    }
    if (code == EXIT_GO_ON) {
        putchar('\n');
        fflush(stdout);
        print_speed(&out, begin, count - same);
        if (reply != NULL && (*reply = strdup(result.text ? result.text : "")) == NULL)
            code = args_failed("out of memory");
        mha_generation_free(&result);
    }
    id_batch_free(&batch);
    return code;
}

/* --------------------------------------------------------------- state ----- */

static bool has_state(const generate_run *run)
{
    return run->session.info.kind == MHA_MODEL_DECODER;
}

static mha_status new_state(generate_run *run, char message[MODEL_MESSAGE_MAX])
{
    const mha_state_config config = {.size = sizeof config,
                                     .sequences = 1,
                                     .capacity = (ptrdiff_t)run->request->context,
                                     .message = message,
                                     .message_size = MODEL_MESSAGE_MAX};
    return mha_state_create(&run->state, run->session.model, &config);
}

/* The file of --prompt-cache, unless it has less room than --context requests. */
static mha_status load_state(generate_run *run, char message[MODEL_MESSAGE_MAX])
{
    const generate_request *const r = run->request;
    const mha_status status = mha_state_load(&run->state, run->session.model, r->prompt_cache,
                                             message, MODEL_MESSAGE_MAX);
    if (status != MHA_OK || mha_state_capacity(run->state) >= r->context)
        return status;
    fprintf(stderr, "mha: %s has room for %td tokens; the prompt is computed again\n",
            r->prompt_cache, mha_state_capacity(run->state));
    mha_state_free(run->state);
    run->state = NULL;
    return new_state(run, message);
}

/* From the file of --prompt-cache if there is one, else empty. */
static int open_state(generate_run *run)
{
    char message[MODEL_MESSAGE_MAX] = "";
    const char *const path = run->request->prompt_cache;
    if (!has_state(run))
        return path == NULL ? EXIT_GO_ON
                            : args_wrong("generate: --prompt-cache is for decoders such as GPT-2 "
                                         "and Llama");
    const bool saved = path != NULL && access(path, F_OK) == 0;
    const mha_status status = saved ? load_state(run, message) : new_state(run, message);
    if (status == MHA_OK)
        return EXIT_GO_ON;
    return args_failed("generate: %s", message[0] ? message : mha_status_string(status));
}

static int save_state(const generate_run *run)
{
    char message[MODEL_MESSAGE_MAX] = "";
    if (run->request->prompt_cache == NULL || run->state == NULL)
        return EXIT_GO_ON;
    if (mha_state_save(run->state, run->request->prompt_cache, message, sizeof message) == MHA_OK)
        return EXIT_GO_ON;
    return args_failed("generate: %s", message);
}

/* ----------------------------------------------------------------- run ----- */

/* All of standard input as one text. */
static int read_prompt(char **prompt)
{
    size_t used = 0, room = 1 << 12;
    *prompt = malloc(room);
    while (*prompt != NULL) {
        used += fread(*prompt + used, 1, room - used - 1, stdin);
        if (used + 1 < room)
            break;
        char *const more = realloc(*prompt, room *= 2);
        if (more == NULL)
            free(*prompt);
        *prompt = more;
    }
    if (*prompt == NULL)
        return args_failed("out of memory");
    (*prompt)[used] = '\0';
    if (ferror(stdin))
        return args_failed("cannot read standard input");
    return strlen(*prompt) == used ? EXIT_GO_ON : args_failed("standard input: has a byte of 0");
}

static int generate(generate_run *run, const char *text)
{
    char *prompt = NULL;
    int code = EXIT_GO_ON;
    if (run->request->chat)
        return generate_chat(run, text);
    if (text == NULL)
        announce_terminal();
    if (text == NULL)
        code = read_prompt(&prompt);
    if (code == EXIT_GO_ON)
        code = generate_turn(run, text != NULL ? text : prompt, MHA_TEXT_MARKS, NULL);
    free(prompt);
    return code;
}

static int check(generate_request *r)
{
    double temperature = 0, top_p = 0, min_p = 0, penalty = 0;
    int code;
    if ((code = option_real("generate", "temperature", r->temperature, 0, 100, &temperature)) !=
            EXIT_GO_ON ||
        (code = option_real("generate", "top-p", r->top_p, 0, 1, &top_p)) != EXIT_GO_ON ||
        (code = option_real("generate", "min-p", r->min_p, 0, 1, &min_p)) != EXIT_GO_ON ||
        (code = option_real("generate", "repetition-penalty", r->penalty, 0.1, 100, &penalty)) !=
            EXIT_GO_ON)
        return code;
    if (temperature == 0 && (r->top_k > 0 || top_p > 0 || min_p > 0))
        return args_wrong("generate: --top-k, --top-p and --min-p choose among tokens that are "
                          "drawn at random; give --temperature too, such as 0.8");
    if (r->system != NULL && !r->chat)
        return args_wrong("generate: --system is for --chat");
    r->sampling = (mha_sampling){.temperature = (float)temperature,
                                 .top_k = (ptrdiff_t)r->top_k,
                                 .top_p = (float)top_p,
                                 .min_p = (float)min_p,
                                 .repetition_penalty = (float)penalty,
                                 .seed = r->seed};
    return EXIT_GO_ON;
}

static int run_request(const generate_request *r, const char *text)
{
    generate_run run = {.request = r};
    int code = model_session_open(&run.session, "generate", &r->model);
    if (code == EXIT_GO_ON &&
        (run.tokenizer = model_session_tokenizer(&run.session, "generate")) == NULL)
        code = EXIT_FAILED;
    if (code == EXIT_GO_ON && !run.session.info.has_logits)
        code = args_failed("generate: the model does not predict tokens; use a decoder such as "
                           "GPT-2 or Llama, or an encoder-decoder");
    if (code == EXIT_GO_ON)
        code = open_state(&run);
    if (code == EXIT_GO_ON)
        code = generate(&run, text);
    if (code == EXIT_GO_ON)
        code = save_state(&run);
    mha_state_free(run.state);
    model_session_close(&run.session);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}

int command_generate(int argc, char **argv)
{
    generate_request r = {.most = 256, .seed = 1};
    const arg_option options[] = {
        {OPTION_MODEL_PATH(&r.model.path)},
        {"most", ARG_NUMBER, &r.most, "N", "tokens at most (256)", 1, INT_MAX},
        {"chat", ARG_FLAG, &r.chat, NULL, "a chat, in the form that the model was trained on", 0,
         0},
        {"system", ARG_TEXT, &r.system, "TEXT", "with --chat: how the assistant should behave", 0,
         0},
        {"temperature", ARG_TEXT, &r.temperature, "X", "draw tokens at random (0: greedy)", 0, 0},
        {"top-k", ARG_NUMBER, &r.top_k, "N", "draw among the N most probable tokens", 1, INT_MAX},
        {"top-p", ARG_TEXT, &r.top_p, "P", "draw among the first that have probability P", 0, 0},
        {"min-p", ARG_TEXT, &r.min_p, "P", "at least P times the largest probability", 0, 0},
        {"repetition-penalty", ARG_TEXT, &r.penalty, "X", "divide logits of tokens seen (1)", 0, 0},
        {"seed", ARG_SEED, &r.seed, "N", "seed of the random numbers (1)", 0, 0},
        {"stop", ARG_TEXT, &r.stop, "TEXT", "end before this text", 0, 0},
        {"context", ARG_NUMBER, &r.context, "N", "tokens that are kept (the model's limit)", 1,
         INT_MAX},
        {"prompt-cache", ARG_TEXT, &r.prompt_cache, "FILE", "keep the computed prompt here", 0, 0},
        {"quiet", ARG_FLAG, &r.quiet, NULL, "no speed on standard error", 0, 0},
        {OPTION_TOKENIZER(&r.model.tokenizer)},
        {OPTION_STORE(&r.model.store)},
        {OPTION_ARITHMETIC(&r.model.arithmetic)},
        {OPTION_THREADS(&r.model.threads)},
    };
    const arg_command command = {
        .name = "generate",
        .usage = "[OPTION...] [TEXT]",
        .summary = "Continue a text with a language model, or chat with it.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = 1,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code == EXIT_GO_ON)
        code = check(&r);
    return code == EXIT_GO_ON ? run_request(&r, words > 0 ? argv[1] : NULL) : code;
}
