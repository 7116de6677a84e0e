/* SPDX-License-Identifier: MIT */
/*
 * mha serve: the page of "mha view", live: it translates what is typed, and closes heads.
 *
 *      model, study --> serve_app.c: what is answered --> http_server.c: to whom
 *
 * The first thread waits for a signal that ends it all.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/terminal.h"
#include "model/model_path.h"
#include "page/serve_app.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/heads_setup.h"

static const char details[] =
    "Prints an address for a browser on this machine. There, what is typed is translated\n"
    "at once, a click closes a head or makes it look at all words alike, and the\n"
    "translation and the other heads show what that does. Only this machine is listened to,\n"
    "and only whoever knows the address is answered; it is another one each time. Ctrl-C\n"
    "ends it. The model is sought as by \"mha translate\".\n"
    "\n"
    "Examples:\n"
    "  mha serve --open\n"
    "  mha serve --port 8080 --model my.safetensors\n";

typedef struct serve_request {
    const char *model_file;
    int64_t port, threads;
    bool open;
} serve_request;

static void set_ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

/* A browser on the page, as a process that is nobody's child. What it prints is talk. */
static void open_browser(const char *url)
{
    const pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        if (fork() == 0) {
            execlp("xdg-open", "xdg-open", url, (char *)NULL);
            fprintf(stderr, "mha: cannot open a browser: xdg-open: %s\n", strerror(errno));
        }
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Until one of the signals comes, which must be blocked. */
static void wait_for(const sigset_t *signals, http_server *server)
{
    const struct timespec second = {.tv_sec = 1};
    while (sigtimedwait(signals, NULL, &second) < 0)
        http_server_tick(server);
}

static bool serve(const serve_request *r, serve_app *app)
{
    static const http_route routes[] = {
        {"", "GET", serve_page},
        {"api/view", "POST", serve_view},
    };
    const http_service service = {routes, sizeof routes / sizeof routes[0], app};
    char message[HTTP_MESSAGE_MAX];
    sigset_t signals;
    set_ending_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    /* A browser that goes away in the middle of an answer is none of our troubles. */
    signal(SIGPIPE, SIG_IGN);
    http_server *const server = http_server_start(&service, (int)r->port, message);
    if (server == NULL) {
        fprintf(stderr, "mha: %s\n", message);
        return false;
    }
    printf("%s\n", http_server_url(server));
    fflush(stdout);
    fprintf(stderr, "mha: open this address in a browser on this machine; Ctrl-C ends it\n");
    if (r->open)
        open_browser(http_server_url(server));
    wait_for(&signals, server);
    http_server_stop(server);
    return true;
}

/* Threads that leave the signals to the first one. */
static mha_status make_pool(mha_pool **pool, int threads)
{
    sigset_t signals, before;
    set_ending_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const mha_status status = mha_pool_create(pool, threads > 0 ? threads : 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* What the page says of roles, where the model can read the corpus: without it there are none. */
static bool make_study(serve_app *app, page_study *study)
{
    const mha_status status = page_study_make(study, app->model, PAGE_STUDY_SENTENCES, app->pool);
    if (status == MHA_ERR_LENGTH) {
        heads_too_short(app->model);
        fprintf(stderr, "mha: going on without the roles of heads\n");
        app->study = NULL;
    } else if (status != MHA_OK) {
        heads_failed(status);
    }
    return status == MHA_OK || status == MHA_ERR_LENGTH;
}

static bool count_words(serve_app *app)
{
    if (head_words_count(&app->words, app->model))
        return true;
    heads_failed(MHA_ERR_MEMORY);
    return false;
}

static bool run_with_model(const serve_request *r, const translator *model, int threads)
{
    page_study study = {.heads = NULL};
    serve_app app = {.model = model, .model_file = r->model_file, .study = &study};
    const mha_status status = make_pool(&app.pool, threads);
    if (status != MHA_OK)
        fprintf(stderr, "mha: no threads: %s\n", mha_status_string(status));
    const bool fine =
        status == MHA_OK && count_words(&app) && make_study(&app, &study) && serve(r, &app);
    head_words_free(&app.words);
    page_study_free(&study);
    mha_pool_free(app.pool);
    return fine;
}

static int run_command(const serve_request *r)
{
    char path[MODEL_PATH_MAX], message[TRANSFORMER_MESSAGE_MAX] = "", missing[HTTP_MESSAGE_MAX];
    const int threads = args_threads(r->threads, -1);
    if (threads == 0)
        return EXIT_USAGE;
    if (!http_server_supported()) {
        http_server_start(NULL, 0, missing);
        fprintf(stderr, "mha: %s\n", missing);
        return EXIT_FAILED;
    }
    if (require_isa() == NULL || !model_path_find(r->model_file, path))
        return EXIT_FAILED;
    translator *const model = translator_load(path, message);
    if (model == NULL) {
        fprintf(stderr, "mha: %s\n", message);
        return EXIT_FAILED;
    }
    const bool fine = run_with_model(r, model, threads);
    translator_free(model);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

int command_serve(int argc, char **argv)
{
    serve_request r = {.port = 0};
    const arg_option options[] = {
        {"port", ARG_NUMBER, &r.port, "N", "the port to listen on (0: any that is free)", 0, 65535},
        {"model", ARG_TEXT, &r.model_file, "FILE", "the model (models/en-fr.safetensors)", 0, 0},
        {"threads", ARG_NUMBER, &r.threads, "T", "threads (one for every CPU)", 1, MHA_MAX_THREADS},
        {"open", ARG_FLAG, &r.open, NULL, "open the address in a browser (xdg-open)", 0, 0},
    };
    const arg_command command = {
        .name = "serve",
        .usage = "[OPTION...]",
        .summary = "Serve the page of every head live, on this machine only.",
        .details = details,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .words_min = 0,
        .words_max = 0,
    };
    int words;
    const int code = args_parse(&command, argc, argv, &words);
    return code != EXIT_GO_ON ? code : run_command(&r);
}
