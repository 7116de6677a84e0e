/* SPDX-License-Identifier: MIT */
/* Opens a model of any family for a command, and reads the texts it works on. */
#include "program/model_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/args.h"
#include "program/options.h"
#include "program/session.h"

/* --------------------------------------------------------------- model ----- */

/* In the order of mha_model_storage. */
static const char *const stores[] = {"file", "f32", "f16", "bf16", "i8", "q8", "q4"};
enum { STORE_COUNT = sizeof stores / sizeof stores[0] };

static int find_path(const char *command, const char *given, char path[MODEL_PATH_MAX])
{
    const char *const variable = getenv("MHA_MODEL");
    const char *const name = given != NULL ? given : variable;
    if (name != NULL && *name != '\0')
        return model_path_find(name, SHIPPED_TRANSLATOR, path) ? EXIT_GO_ON : EXIT_FAILED;
    return args_wrong("%s: no model; give --model with a folder or a file of a model, or set "
                      "MHA_MODEL",
                      command);
}

/* In the order of mha_arithmetic. */
static const char *const arithmetics[] = {"exact", "native"};

int model_storage_read(const char *command, const char *store, const char *arithmetic,
                       mha_model_config *config)
{
    const int type =
        store != NULL ? option_choose(command, "type of weights", store, stores, STORE_COUNT) : 0;
    const int kind =
        arithmetic != NULL ? option_choose(command, "arithmetic", arithmetic, arithmetics, 2) : 0;
    config->storage = (mha_model_storage)type;
    config->arithmetic = (mha_arithmetic)kind;
    return type < 0 || kind < 0 ? EXIT_USAGE : EXIT_GO_ON;
}

void model_arithmetic_note(const mha_model *model, const mha_model_config *config)
{
    const char *const words = mha_model_arithmetic(model);
    if (config->arithmetic == MHA_NATIVE && words != NULL && strncmp(words, "native", 6) != 0)
        fprintf(
            stderr,
            "mha: note: no weights of this model are stored in a type with "
            "native products, so products are exact; --store bf16 or --store i8 stores them so\n");
}

int model_session_open(model_session *s, const char *command, const model_request *request)
{
    char message[MODEL_MESSAGE_MAX] = "";
    char path[MODEL_PATH_MAX];
    *s = (model_session){.info = {.size = sizeof s->info}};
    int code = find_path(command, request->path, path);
    if (code != EXIT_GO_ON)
        return code;
    mha_model_config config = {.size = sizeof config,
                               .tokenizer = request->tokenizer,
                               .message = message,
                               .message_size = sizeof message};
    code = model_storage_read(command, request->store, request->arithmetic, &config);
    if (code != EXIT_GO_ON)
        return code;
    if ((code = session_open_pool(&s->pool, request->threads)) != EXIT_GO_ON)
        return code;
    const mha_status status = mha_model_open(&s->model, path, &config);
    if (status != MHA_OK)
        return args_failed("%s", message[0] != '\0' ? message : mha_status_string(status));
    model_arithmetic_note(s->model, &config);
    mha_model_get_info(s->model, &s->info);
    return EXIT_GO_ON;
}

void model_session_close(model_session *s)
{
    mha_model_free(s->model);
    mha_pool_free(s->pool);
}

const mha_tokenizer *model_session_tokenizer(const model_session *s, const char *command)
{
    const mha_tokenizer *const tokenizer = mha_model_tokenizer(s->model);
    if (tokenizer == NULL)
        args_failed(
            "%s: no tokenizer was found beside the model (tokenizer.json, vocab.txt, vocab.json, "
            "tokenizer.model, spiece.model; for llama2.c tokenizer.bin); give its path with "
            "--tokenizer",
            command);
    return tokenizer;
}

/* --------------------------------------------------------------- texts ----- */

static bool add_text(text_list *list, const char *text)
{
    if ((list->count & (list->count + 1)) == 0 || list->count == 0) {
        char **const more = realloc(list->texts, sizeof *more * (size_t)(2 * list->count + 2));
        if (more == NULL)
            return false;
        list->texts = more;
    }
    if ((list->texts[list->count] = strdup(text)) == NULL)
        return false;
    list->count++;
    return true;
}

/* Without the end of the line, "\n" or "\r\n". */
static void cut_line(char *line, ssize_t length)
{
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        line[--length] = '\0';
}

void announce_terminal(void)
{
    if (isatty(STDIN_FILENO))
        fputs("mha: reading texts from the terminal; Ctrl-D ends\n", stderr);
}

static int read_lines(text_list *list)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool fine = true, zero = false;
    announce_terminal();
    while (fine && !zero && (length = getline(&line, &room, stdin)) >= 0) {
        zero = memchr(line, '\0', (size_t)length) != NULL;
        cut_line(line, length);
        fine = add_text(list, line);
    }
    const int error = fine && ferror(stdin) ? errno : 0;
    free(line);
    if (zero)
        return args_failed("standard input, line %td: has a byte of 0", list->count);
    if (error)
        return args_failed("cannot read standard input: %s", strerror(error));
    return fine ? EXIT_GO_ON : args_failed("out of memory");
}

int text_list_read(text_list *list, int words, char **argv)
{
    *list = (text_list){.count = 0};
    if (words == 0)
        return read_lines(list);
    for (int n = 1; n <= words; n++)
        if (!add_text(list, argv[n]))
            return args_failed("out of memory");
    return EXIT_GO_ON;
}

void text_list_free(text_list *list)
{
    for (ptrdiff_t n = 0; n < list->count; n++)
        free(list->texts[n]);
    free(list->texts);
}

/* -------------------------------------------------------------- tokens ----- */

static bool add_ids(id_batch *made, const mha_tokens *tokens)
{
    const int64_t first = made->starts[made->count], end = first + tokens->count;
    int32_t *const more = realloc(made->ids, sizeof *more * (size_t)(end + 1));
    if (more == NULL)
        return false;
    made->ids = more;
    for (ptrdiff_t n = 0; n < tokens->count; n++)
        more[first + n] = tokens->tokens[n].id;
    made->starts[++made->count] = end;
    return true;
}

int id_batch_begin(id_batch *made, ptrdiff_t most)
{
    *made = (id_batch){.starts = calloc((size_t)most + 1, sizeof *made->starts)};
    return made->starts != NULL ? EXIT_GO_ON : args_failed("out of memory");
}

int id_batch_add(id_batch *made, const mha_tokenizer *tokenizer, const char *text, unsigned flags)
{
    mha_tokens tokens;
    const mha_status status = mha_tokenizer_encode(tokenizer, text, strlen(text), flags, &tokens);
    if (status != MHA_OK)
        return args_failed("text %td cannot be tokenised: %s", made->count + 1,
                           mha_status_string(status));
    const bool fine = add_ids(made, &tokens);
    mha_tokens_free(&tokens);
    return fine ? EXIT_GO_ON : args_failed("out of memory");
}

int id_batch_make(id_batch *made, const mha_tokenizer *tokenizer, const char *const *texts,
                  ptrdiff_t count, unsigned flags)
{
    int code = id_batch_begin(made, count);
    for (ptrdiff_t n = 0; n < count && code == EXIT_GO_ON; n++)
        code = id_batch_add(made, tokenizer, texts[n], flags);
    return code;
}

void id_batch_free(id_batch *made)
{
    free(made->ids);
    free(made->starts);
}

/* ------------------------------------------------------------- options ----- */

int option_real(const char *command, const char *option, const char *text, double min, double max,
                double *value)
{
    char *end;
    if (text == NULL)
        return EXIT_GO_ON;
    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !(*value >= min && *value <= max))
        return args_wrong("%s: --%s %s: not a number from %g to %g", command, option, text, min,
                          max);
    return EXIT_GO_ON;
}
