/* SPDX-License-Identifier: MIT */
/*
 * What the commands of any model need: the model, its threads, and the texts of the command line or
 * of standard input.
 *
 * Functions that return int return EXIT_GO_ON, or the exit code after a message on stderr.
 */
#ifndef PROGRAM_MODEL_SESSION_H
#define PROGRAM_MODEL_SESSION_H

#include <mha/mha_model.h>

#include <stdbool.h>

enum { MODEL_MESSAGE_MAX = 512 };

/* Rows of option tables, to be put into braces. */
#define OPTION_MODEL_PATH(target) \
    "model", ARG_TEXT, target, "PATH", "a folder, a GGUF file, ... (the variable MHA_MODEL)", 0, 0
#define OPTION_TOKENIZER(target) \
    "tokenizer", ARG_TEXT, target, "PATH", "the tokenizer, if it is not beside the model", 0, 0
#define OPTION_STORE(target) \
    "store", ARG_TEXT, target, "TYPE", "weights as f32, f16, bf16, i8, q8 or q4 (as the file)", 0, 0

#define OPTION_ARITHMETIC(target)        \
    "arithmetic", ARG_TEXT, target, "A", \
        "products: exact, or native in the weights' type (exact)", 0, 0

typedef struct model_request {
    const char *path, *tokenizer, *store, *arithmetic; /* NULL: not given */
    int64_t threads;                                   /* 0: not given */
} model_request;

typedef struct model_session {
    mha_model *model;
    mha_pool *pool;
    mha_model_info info;
} model_session;

/* Reads --store and --arithmetic, NULL where they are not given, into a configuration. */
int model_storage_read(const char *command, const char *store, const char *arithmetic,
                       mha_model_config *config);

/* Says on stderr that native arithmetic was requested and there is none in this model. */
void model_arithmetic_note(const mha_model *model, const mha_model_config *config);

/* Opens the model and starts the threads. `command` is named in messages. The caller
 * ends with model_session_close(), after an error too. */
int model_session_open(model_session *session, const char *command, const model_request *request);
void model_session_close(model_session *session);

/* The tokenizer of the session; NULL after a message if it has none. */
const mha_tokenizer *model_session_tokenizer(const model_session *session, const char *command);

/* Texts: words of the command line or, if there are none, lines of standard input. */
typedef struct text_list {
    char **texts; /* [count], each terminated */
    ptrdiff_t count;
} text_list;

/* If standard input is a terminal, says on stderr that texts are read from it. */
void announce_terminal(void);

/* Reads all lines. A line with a byte of 0 is an error. */
int text_list_read(text_list *list, int words, char **argv);
void text_list_free(text_list *list);

/* Token ids of many texts, one after the other. */
typedef struct id_batch {
    int32_t *ids;
    int64_t *starts; /* [count + 1] */
    ptrdiff_t count;
} id_batch;

/* A batch without texts, with room for `most`. id_batch_free() frees it after an error, too. */
int id_batch_begin(id_batch *made, ptrdiff_t most);
/* Tokenises one more text. */
int id_batch_add(id_batch *made, const mha_tokenizer *tokenizer, const char *text, unsigned flags);

/* Tokenises texts with these flags. */
int id_batch_make(id_batch *made, const mha_tokenizer *tokenizer, const char *const *texts,
                  ptrdiff_t count, unsigned flags);
void id_batch_free(id_batch *made);

/* A number of an option that was given as text; *value is unchanged if `text` is NULL. */
int option_real(const char *command, const char *option, const char *text, double min, double max,
                double *value);

#endif
