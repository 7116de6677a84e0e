/* SPDX-License-Identifier: MIT */
/* mha tokenize: texts to tokens and back, with the tokenizer of a model. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json_writer.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/model_session.h"
#include "program/options.h"
#include "program/tensor_list.h"
#include "translator/model_path.h"

static const char details[] =
    "Prints the tokens of each TEXT, or of each line of standard input: id, bytes of the text\n"
    "from which the token was made, and the entry of the vocabulary. Marks that the model\n"
    "expects around a text are added unless --plain is given.\n"
    "\n"
    "Examples:\n"
    "  mha tokenize --model all-MiniLM-L6-v2/ \"unbelievable heads\"\n"
    "  mha tokenize --model model.gguf --ids < text.txt\n"
    "  mha tokenize --model model.gguf --decode 504 3575 282\n";

typedef struct tokenize_request {
    const char *path;
    bool plain, ids, count, decode, as_json;
} tokenize_request;

static void print_tokens(const mha_tokenizer *tokenizer, const mha_tokens *tokens, const char *text)
{
    for (ptrdiff_t n = 0; n < tokens->count; n++) {
        const mha_token *const t = &tokens->tokens[n];
        const char *const piece = mha_tokenizer_piece(tokenizer, t->id);
        printf("%7d  %5zu-%-5zu  ", (int)t->id, t->begin, t->end);
        tensor_list_print_text(piece ? piece : "", 0);
        puts(t->flags & MHA_TOKEN_SPECIAL ? "   (mark)" : "");
    }
    printf("%td token%s, %zu bytes\n", tokens->count, tokens->count == 1 ? "" : "s", strlen(text));
}

static void print_ids(const mha_tokens *tokens)
{
    for (ptrdiff_t n = 0; n < tokens->count; n++)
        printf("%s%d", n > 0 ? " " : "", (int)tokens->tokens[n].id);
    putchar('\n');
}

static void put_json(json *j, const mha_tokenizer *tokenizer, const mha_tokens *tokens,
                     const char *text)
{
    json_open_object(j, NULL);
    json_string(j, "text", text);
    json_open_array(j, "tokens");
    for (ptrdiff_t n = 0; n < tokens->count; n++) {
        const mha_token *const t = &tokens->tokens[n];
        const char *const piece = mha_tokenizer_piece(tokenizer, t->id);
        json_open_object(j, NULL);
        json_integer(j, "id", t->id);
        json_string(j, "piece", piece ? piece : "");
        json_unsigned(j, "begin", t->begin);
        json_unsigned(j, "end", t->end);
        json_bool(j, "mark", (t->flags & MHA_TOKEN_SPECIAL) != 0);
        json_bool(j, "continues", (t->flags & MHA_TOKEN_CONTINUES) != 0);
        json_close(j);
    }
    json_close(j);
    json_close(j);
}

static int encode_text(const mha_tokenizer *tokenizer, const tokenize_request *r, const char *text,
                       json *j)
{
    mha_tokens tokens;
    const unsigned flags = r->plain ? MHA_TEXT_PLAIN : MHA_TEXT_MARKS;
    const mha_status status = mha_tokenizer_encode(tokenizer, text, strlen(text), flags, &tokens);
    if (status != MHA_OK)
        return args_failed("tokenize: %s", mha_status_string(status));
    if (r->as_json)
        put_json(j, tokenizer, &tokens, text);
    else if (r->count)
        printf("%td\n", tokens.count);
    else if (r->ids)
        print_ids(&tokens);
    else
        print_tokens(tokenizer, &tokens, text);
    mha_tokens_free(&tokens);
    return EXIT_GO_ON;
}

/* The ids of one text, separated by spaces. */
static int read_ids(const char *text, int32_t **ids, ptrdiff_t *count)
{
    *ids = malloc(sizeof **ids * (strlen(text) / 2 + 2));
    *count = 0;
    if (*ids == NULL)
        return args_failed("out of memory");
    for (const char *at = text + strspn(text, " \t,"); *at != '\0'; at += strspn(at, " \t,")) {
        char *end;
        const long id = strtol(at, &end, 10);
        if (end == at || id < 0 || id > INT32_MAX || strchr(" \t,", *end) == NULL)
            return args_wrong("tokenize: --decode: \"%s\" is not a token id", at);
        (*ids)[(*count)++] = (int32_t)id;
        at = end;
    }
    return EXIT_GO_ON;
}

static int decode_text(const mha_tokenizer *tokenizer, const char *text)
{
    int32_t *ids;
    ptrdiff_t count;
    int code = read_ids(text, &ids, &count);
    char *decoded;
    size_t length;
    if (code == EXIT_GO_ON) {
        const mha_status status = mha_tokenizer_decode(tokenizer, ids, count, 0, &decoded, &length);
        if (status != MHA_OK) {
            code = status == MHA_ERR_INDEX
                       ? args_failed("tokenize: --decode: an id does not exist; the ids are 0 to "
                                     "%td",
                                     mha_tokenizer_size(tokenizer) - 1)
                       : args_failed("tokenize: %s", mha_status_string(status));
        } else {
            fwrite(decoded, 1, length, stdout);
            putchar('\n');
            mha_text_free(decoded);
        }
    }
    free(ids);
    return code;
}

/* Ids given as words are one text. */
static int join_words(int words, char **argv, char **joined)
{
    size_t length = 1;
    for (int n = 1; n <= words; n++)
        length += strlen(argv[n]) + 1;
    if ((*joined = calloc(length, 1)) == NULL)
        return args_failed("out of memory");
    for (int n = 1; n <= words; n++) {
        strcat(*joined, argv[n]);
        strcat(*joined, " ");
    }
    return EXIT_GO_ON;
}

static int tokenize(const mha_tokenizer *tokenizer, const tokenize_request *r, int words,
                    char **argv)
{
    text_list list;
    char *joined = NULL;
    int code = EXIT_GO_ON;
    if (r->decode && words > 0) {
        code = join_words(words, argv, &joined);
        argv[1] = joined;
        words = 1;
    }
    if (code == EXIT_GO_ON)
        code = text_list_read(&list, words, argv);
    else
        list = (text_list){.count = 0};
    json j = json_begin(stdout);
    if (r->as_json && code == EXIT_GO_ON)
        json_open_array(&j, NULL);
    for (ptrdiff_t n = 0; n < list.count && code == EXIT_GO_ON; n++)
        code = r->decode ? decode_text(tokenizer, list.texts[n])
                         : encode_text(tokenizer, r, list.texts[n], &j);
    if (r->as_json && code == EXIT_GO_ON)
        json_close(&j);
    text_list_free(&list);
    free(joined);
    return code == EXIT_GO_ON ? EXIT_FINE : code;
}

int command_tokenize(int argc, char **argv)
{
    tokenize_request r = {.path = getenv("MHA_MODEL")};
    char message[MODEL_MESSAGE_MAX] = "";
    const arg_option options[] = {
        {OPTION_MODEL_PATH(&r.path)},
        {"plain", ARG_FLAG, &r.plain, NULL, "no marks; marks in the text are plain text", 0, 0},
        {"ids", ARG_FLAG, &r.ids, NULL, "print the ids alone, one line per text", 0, 0},
        {"count", ARG_FLAG, &r.count, NULL, "print the number of tokens alone", 0, 0},
        {"decode", ARG_FLAG, &r.decode, NULL, "ids to text instead", 0, 0},
        {OPTION_JSON(&r.as_json)},
    };
    const arg_command command = {
        .name = "tokenize",
        .usage = "[OPTION...] [TEXT...]",
        .summary = "Print the tokens of texts, or the text of tokens.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = INT_MAX,
    };
    int words;
    int code = args_parse(&command, argc, argv, &words);
    if (code != EXIT_GO_ON)
        return code;
    if (r.path == NULL || *r.path == '\0')
        return args_wrong("tokenize: no model; give --model with a model or a tokenizer's file");
    mha_tokenizer *tokenizer;
    char path[MODEL_PATH_MAX];
    if (!model_path_find(r.path, SHIPPED_TRANSLATOR, path))
        return EXIT_FAILED;
    const mha_status status = mha_tokenizer_open(&tokenizer, path, message, sizeof message);
    if (status != MHA_OK)
        return args_failed("%s", message[0] != '\0' ? message : mha_status_string(status));
    code = tokenize(tokenizer, &r, words, argv);
    mha_tokenizer_free(tokenizer);
    return code;
}
