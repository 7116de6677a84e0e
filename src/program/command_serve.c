/* SPDX-License-Identifier: MIT */
/*
 * mha serve: the page of "mha view", live: it translates what is typed, and disables heads.
 *
 *      model, study --> serve_app.c makes the answers --> http_server.c sends them
 *
 * The first thread only waits for a signal that ends the program.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/restrict_calls.h"
#include "base/terminal.h"
#include "page/serve_app.h"
#include "page/serve_picture.h"
#include "program/args.h"
#include "program/commands.h"
#include "program/heads_setup.h"
#include "program/options.h"
#include "program/page_examples.h"
#include "program/session.h"
#include "program/texts.h"

static const char details[] =
    "Prints the address of a page for a browser on this machine. Type a sentence for the model to\n"
    "read; click a head to open it. Its buttons disable it or make its attention uniform, and the\n"
    "page shows the effect on the translation, or on the vector or the likelihood of the text, "
    "and\n"
    "on the other heads. The server accepts connections from this machine only, and only with the\n"
    "secret in the printed URL, which changes on every start. Ctrl-C ends it. The model is as for\n"
    "\"mha heads\", roles are found as by \"mha view\", once at the start. With a model that "
    "reads\n"
    "pictures, such as vit-fashion, choose a picture on the page or drop it there; each PICTURE "
    "is\n"
    "one to try.\n"
    "\n"
    "Examples:\n"
    "  mha serve --open\n"
    "  mha serve --port 8080 --model my.safetensors\n"
    "  mha serve --model all-MiniLM-L6-v2\n"
    "  mha serve --model vit-fashion shoe.png bag.png\n";

typedef struct serve_options {
    const char *model_file, *texts, *lecture;
    int64_t port, threads;
    bool open;
    char **pictures; /* [picture_count] */
    int picture_count;
} serve_options;

static void set_ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

/* Opens a browser with a second fork(), so that it is no child that would have to be waited for.
 * Its output goes to stderr: stdout has only the address. */
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

/* Waits for one of the signals, which must be blocked. */
static void wait_for(const sigset_t *signals, http_server *server)
{
    const struct timespec second = {.tv_sec = 1};
    while (sigtimedwait(signals, NULL, &second) < 0)
        http_server_tick(server);
}

/* Runs the server until a signal ends it. The address is the only line on stdout. */
static bool serve(const serve_options *r, serve_app *app)
{
    static const http_route routes[] = {
        {"", "GET", serve_page},
        {"api/view", "POST", serve_view},
    };
    const http_service service = {.routes = routes,
                                  .route_count = sizeof routes / sizeof routes[0],
                                  .arg = app,
                                  .body_most = serve_body_most(app->model)};
    char message[HTTP_MESSAGE_MAX];
    sigset_t signals;
    set_ending_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    /* A browser that closes a connection in the middle of an answer must not end the server. */
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
    (void)restrict_calls(); /* where the system can do it: the requests are not trusted */
    wait_for(&signals, server);
    http_server_stop(server);
    return true;
}

/* session_open() with the signals blocked: the threads of the pool inherit that, and leave the
 * signals to the first thread. */
static int open_session(session *s, const serve_options *r)
{
    sigset_t signals, before;
    set_ending_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const int code = session_open(s, r->model_file, SHIPPED_TRANSLATOR, r->threads);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* The roles on the texts of --texts, or on the sentences that come with the model; without both the
 * page shows those on the sentence. `from` gets the name of the file. */
static bool study_texts(serve_app *app, const session *s, const char *given, page_study *study,
                        char from[MODEL_SENTENCES_MAX])
{
    text_set set;
    bool fine = text_set_read_study(&set, s, given, PAGE_STUDY_SENTENCES, from) == EXIT_GO_ON;
    const subject_texts texts = text_set_texts(&set);
    if (texts.count == 0)
        app->study = NULL;
    else if (fine && page_study_texts(study, app->model, &texts, from, app->pool) != MHA_OK)
        fine = heads_failed(MHA_ERR_MEMORY) == EXIT_GO_ON;
    text_set_free(&set, s);
    return fine;
}

/* Finds the roles of the heads, once. A model that is too short for the corpus gets a page without.
 */
static bool make_study(serve_app *app, const session *s, const char *texts, page_study *study,
                       char from[MODEL_SENTENCES_MAX])
{
    if (texts != NULL || s->model == NULL)
        return study_texts(app, s, texts, study, from);
    const mha_status status = page_study_make(study, app->model, PAGE_STUDY_SENTENCES, app->pool);
    if (status == MHA_ERR_LENGTH) {
        heads_too_short(app->model->translator);
        fprintf(stderr, "mha: the page will not show the roles of heads\n");
        app->study = NULL;
    } else if (status != MHA_OK) {
        heads_failed(status);
    }
    return status == MHA_OK || status == MHA_ERR_LENGTH;
}

static int run_with(const serve_options *r, session *s)
{
    char from[MODEL_SENTENCES_MAX], message[TEXT_FILE_MESSAGE_MAX];
    page_study study = {.heads = NULL};
    page_lecture lecture;
    serve_app app = {.model = &s->subject,
                     .model_file = r->model_file,
                     .texts = r->texts,
                     .pool = s->pool,
                     .study = &study,
                     .lecture = &lecture};
    bool fine = page_lecture_read(&lecture, r->lecture, s->subject.reads_pictures, message);
    if (!fine)
        args_failed("%s", message);
    page_examples examples = {.count = 0};
    if (fine && s->subject.reads_pictures)
        fine = page_examples_read(&examples, s, r->pictures, r->picture_count) == EXIT_GO_ON;
    app.examples = examples.list;
    app.example_count = examples.count;
    fine = fine && make_study(&app, s, r->texts, &study, from) && serve(r, &app);
    page_examples_free(&examples);
    page_study_free(&study);
    page_lecture_free(&lecture);
    return fine ? EXIT_FINE : EXIT_FAILED;
}

static int run_command(const serve_options *r)
{
    char missing[HTTP_MESSAGE_MAX];
    session s;
    if (!http_server_supported()) {
        http_server_start(NULL, 0, missing);
        return args_failed("%s", missing);
    }
    int code = open_session(&s, r);
    if (code == EXIT_GO_ON && !s.subject.reads_pictures && r->picture_count > 0)
        code =
            args_wrong("serve: %s: this model reads texts, which are typed on the page; leave it "
                       "out",
                       r->pictures[0]);
    if (code == EXIT_GO_ON)
        code = run_with(r, &s);
    session_close(&s);
    return code;
}

int command_serve(int argc, char **argv)
{
    serve_options r = {.port = 0};
    const arg_option options[] = {
        {"port", ARG_NUMBER, &r.port, "N", "the port to listen on (0: any free one)", 0, 65535},
        {OPTION_MODEL(&r.model_file, "en-fr")},
        {OPTION_TEXTS(&r.texts)},
        {"lecture", ARG_TEXT, &r.lecture, "FILE", "a lecture to give with the page (our own)", 0,
         0},
        {OPTION_THREADS(&r.threads)},
        {"open", ARG_FLAG, &r.open, NULL, "open the address in a browser (xdg-open)", 0, 0},
    };
    const arg_command command = {
        .name = "serve",
        .usage = "[OPTION...] [PICTURE...]",
        .summary = "Serve the page of \"mha view\" live, on this machine only.",
        .details = details,
        ARG_OPTIONS(options),
        .words_max = 16,
    };
    const int code = args_parse(&command, argc, argv, &r.picture_count);
    r.pictures = argv + 1;
    return code != EXIT_GO_ON ? code : run_command(&r);
}
