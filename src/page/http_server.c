/* SPDX-License-Identifier: MIT */
/*
 * The server on libmicrohttpd:
 *
 *      headers --begin_request()--> refused, or a request with a route
 *      body --on_request()--> collected, up to what the service takes
 *      end of the body --make_answer()--> the route's function --send_answer()--> client
 *
 * libmicrohttpd's own timeout restarts with each byte, so a client could hold a connection for ever
 * with one byte at a time. Therefore each connection has a deadline here, and http_server_tick()
 * shuts down those that have passed it. A client could also open many connections and send nothing:
 * on_connection() makes room for others.
 */
#include "page/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { CONNECTION_MEMORY = 32768, QUEUE = 128 };

/* An open connection. */
typedef struct open_connection {
    bool used;
    bool finished; /* its request is complete, or it was shut down */
    int fd;
    double deadline; /* as clock_seconds() */
} open_connection;

struct http_server {
    const http_service *service;
    struct MHD_Daemon *daemon;
    int port;
    char secret[HTTP_SECRET_LETTERS + 1];
    char url[HTTP_URL_MAX + HTTP_SECRET_LETTERS];
    /* Guards the fields below: http_server_tick() is called from another thread. */
    pthread_mutex_t lock;
    bool busy; /* an answer is being made: deadlines of waiting connections do not apply */
    open_connection connections[HTTP_CONNECTIONS];
};

/* A request while its body is received. */
typedef struct request {
    const http_route *route;
    size_t length, room; /* bytes of the body; what there is memory for */
    char *body;          /* a 0 follows it */
} request;

/* ------------------------------------------------------------- answers ----- */

/* Headers that keep other sites from using an answer, and caches and histories from storing it. The
 * connection is closed after each answer. */
static bool put_headers(struct MHD_Response *response, const char *type)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Content-Security-Policy", "frame-ancestors 'none'"},
        {"Connection", "close"},
    };
    bool fine = MHD_add_response_header(response, "Content-Type", type) == MHD_YES;
    for (size_t n = 0; n < sizeof headers / sizeof headers[0]; n++)
        fine &= MHD_add_response_header(response, headers[n][0], headers[n][1]) == MHD_YES;
    return fine;
}

/* Takes over answer->text. `allowed`: the methods that would not be refused; NULL: it was not. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, const http_answer *answer,
                                   const char *allowed)
{
    struct MHD_Response *const response =
        MHD_create_response_from_buffer(strlen(answer->text), answer->text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(answer->text);
        return MHD_NO;
    }
    const bool fine =
        put_headers(response, answer->type) &&
        (allowed == NULL || MHD_add_response_header(response, "Allow", allowed) == MHD_YES);
    const enum MHD_Result result =
        fine ? MHD_queue_response(connection, answer->status, response) : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    const http_answer answer = {status, "text/plain; charset=utf-8", strdup(text)};
    return answer.text != NULL ? send_answer(connection, &answer, NULL) : MHD_NO;
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection, const http_route *route)
{
    const http_answer answer = {MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain; charset=utf-8",
                                strdup("This method is not allowed here.\n")};
    const char *const allowed = strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method;
    return answer.text != NULL ? send_answer(connection, &answer, allowed) : MHD_NO;
}

/* -------------------------------------------------------------- checks ----- */

/* Takes the same time for every guess, so that it cannot be found letter by letter. */
static bool same_secret(const char *secret, const char *guess)
{
    unsigned different = 0;
    for (int n = 0; n < HTTP_SECRET_LETTERS; n++)
        different |= (unsigned char)secret[n] ^ (unsigned char)guess[n];
    return different == 0;
}

/* The path after the secret; NULL: the secret is missing or wrong. */
static const char *path_of(const http_server *server, const char *url)
{
    if (url[0] != '/' || strnlen(url, HTTP_SECRET_LETTERS + 2) < HTTP_SECRET_LETTERS + 2 ||
        url[HTTP_SECRET_LETTERS + 1] != '/' || !same_secret(server->secret, url + 1))
        return NULL;
    return url + HTTP_SECRET_LETTERS + 2;
}

/* Whether the request is for this host. A foreign name that resolves to 127.0.0.1 is refused:
 * pages of that site would count as the same origin (DNS rebinding). */
static bool has_own_host(const http_server *server, struct MHD_Connection *connection)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    const char *const host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    char port[16];
    snprintf(port, sizeof port, ":%d", server->port);
    for (size_t n = 0; host != NULL && n < sizeof names / sizeof names[0]; n++) {
        const size_t length = strlen(names[n]);
        if (strncasecmp(host, names[n], length) == 0 &&
            (strcmp(host + length, port) == 0 || (server->port == 80 && host[length] == '\0')))
            return true;
    }
    return false;
}

static enum MHD_Result count_host(void *arg, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    int *const hosts = arg;
    (void)kind;
    (void)value;
    *hosts += strcasecmp(name, "Host") == 0;
    return MHD_YES;
}

/* Two Host headers are refused: a proxy may use one of them and the check above the other. */
static bool has_two_hosts(struct MHD_Connection *connection)
{
    int hosts = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &hosts);
    return hosts > 1;
}

static const http_route *find_route(const http_service *service, const char *path)
{
    for (int n = 0; n < service->route_count; n++)
        if (strcmp(service->routes[n].path, path) == 0)
            return &service->routes[n];
    return NULL;
}

/* HEAD is answered as GET is; libmicrohttpd leaves out the body. */
static bool is_allowed(const http_route *route, const char *method)
{
    return strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0;
}

static size_t body_most(const http_server *server)
{
    return server->service->body_most > 0 ? server->service->body_most : HTTP_BODY_MAX;
}

/* Whether the body is announced to be too long; a chunked one is counted as it arrives. */
static bool announces_too_much(const http_server *server, struct MHD_Connection *connection)
{
    const char *const length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    return length != NULL && strtoull(length, NULL, 10) > body_most(server);
}

/* Called when the headers are complete: refuses the request, or sets *state to a new one. */
static enum MHD_Result begin_request(const http_server *server, struct MHD_Connection *connection,
                                     const char *url, const char *method, void **state)
{
    const char *const path = path_of(server, url);
    if (has_two_hosts(connection))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "There is more than one Host header.\n");
    if (!has_own_host(server, connection) || path == NULL)
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "The address is not complete: take the one that \"mha serve\" printed.\n");
    const http_route *const route = find_route(server->service, path);
    if (route == NULL)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "Not found.\n");
    if (!is_allowed(route, method))
        return refuse_method(connection, route);
    if (announces_too_much(server, connection))
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "The request is too long.\n");
    request *const r = calloc(1, sizeof *r);
    char *const body = calloc(1, 1);
    if (r == NULL || body == NULL) {
        free(r);
        free(body);
        return MHD_NO;
    }
    *r = (request){.route = route, .room = 1, .body = body};
    *state = r;
    return MHD_YES;
}

/* ----------------------------------------------------------- deadlines ----- */

static open_connection *find_connection(http_server *server, int fd)
{
    for (int n = 0; n < HTTP_CONNECTIONS; n++)
        if (server->connections[n].used && server->connections[n].fd == fd)
            return &server->connections[n];
    return NULL;
}

static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

static void add_connection(http_server *server, int fd)
{
    for (int n = 0; n < HTTP_CONNECTIONS; n++)
        if (!server->connections[n].used) {
            server->connections[n] = (open_connection){
                .used = true, .fd = fd, .deadline = clock_seconds() + HTTP_SECONDS};
            return;
        }
}

/* If too many connections have not sent their request, the oldest of them ends. */
static void limit_unfinished(http_server *server)
{
    open_connection *oldest = NULL;
    int count = 0;
    for (int n = 0; n < HTTP_CONNECTIONS; n++) {
        open_connection *const each = &server->connections[n];
        if (!each->used || each->finished)
            continue;
        count++;
        if (oldest == NULL || each->deadline < oldest->deadline)
            oldest = each;
    }
    if (count <= HTTP_UNFINISHED)
        return;
    oldest->finished = true;
    shutdown(oldest->fd, SHUT_RDWR);
}

/* Called when a connection is opened and before its descriptor is closed. So no entry has a
 * descriptor that the system has given to another file since. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    http_server *const server = arg;
    const int fd = fd_of(connection);
    (void)state;
    pthread_mutex_lock(&server->lock);
    open_connection *const there = find_connection(server, fd);
    if (there != NULL)
        there->used = false;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        add_connection(server, fd);
        limit_unfinished(server);
    }
    pthread_mutex_unlock(&server->lock);
}

static void set_busy(http_server *server, bool busy)
{
    pthread_mutex_lock(&server->lock);
    server->busy = busy;
    pthread_mutex_unlock(&server->lock);
}

/* Making an answer took some seconds, in which other connections could not proceed: their deadlines
 * are later by as much. The connection that gets the answer has HTTP_SECONDS to receive it. */
static void extend_deadlines(http_server *server, struct MHD_Connection *connection, double seconds)
{
    pthread_mutex_lock(&server->lock);
    for (int n = 0; n < HTTP_CONNECTIONS; n++)
        server->connections[n].deadline += seconds;
    open_connection *const own = find_connection(server, fd_of(connection));
    if (own != NULL) {
        own->deadline = clock_seconds() + HTTP_SECONDS;
        own->finished = true;
    }
    pthread_mutex_unlock(&server->lock);
}

static bool is_crowded(const http_server *server)
{
    for (int n = 0; n < HTTP_CONNECTIONS; n++)
        if (!server->connections[n].used)
            return false;
    return true;
}

void http_server_tick(http_server *server)
{
    pthread_mutex_lock(&server->lock);
    const double earlier = is_crowded(server) ? HTTP_SECONDS - HTTP_CROWDED_SECONDS : 0;
    const double now = clock_seconds() + earlier;
    for (int n = 0; n < HTTP_CONNECTIONS; n++)
        if (!server->busy && server->connections[n].used && server->connections[n].deadline < now)
            shutdown(server->connections[n].fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
}

/* ------------------------------------------------------------ requests ----- */

/* Calls the function of the route; deadlines do not apply meanwhile. */
static http_answer make_answer(http_server *server, struct MHD_Connection *connection, request *r)
{
    const double begin = clock_seconds();
    set_busy(server, true);
    const http_answer answer = r->route->answer(server->service->arg, r->body, r->length);
    extend_deadlines(server, connection, clock_seconds() - begin);
    set_busy(server, false);
    return answer;
}

/* False: out of memory. */
static bool add_to_body(request *r, const char *data, size_t size)
{
    const size_t needed = r->length + size + 1;
    if (needed > r->room) {
        const size_t room = needed > 2 * r->room ? needed : 2 * r->room;
        char *const body = realloc(r->body, room);
        if (body == NULL)
            return false;
        r->body = body;
        r->room = room;
    }
    memcpy(r->body + r->length, data, size);
    r->length += size;
    r->body[r->length] = '\0';
    return true;
}

/* libmicrohttpd calls this first without a state (headers), then with parts of the body, at last
 * with an empty part (end of the body). MHD_NO closes the connection. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state)
{
    http_server *const server = arg;
    request *const r = *state;
    (void)version;
    if (r == NULL)
        return begin_request(server, connection, url, method, state);
    if (*size > 0) {
        if (*size > body_most(server) - r->length || !add_to_body(r, data, *size))
            return MHD_NO;
        *size = 0;
        return MHD_YES;
    }
    const http_answer answer = make_answer(server, connection, r);
    return answer.text != NULL ? send_answer(connection, &answer, NULL) : MHD_NO;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)connection;
    (void)code;
    request *const r = *state;
    if (r != NULL)
        free(r->body);
    free(r);
    *state = NULL;
}

/* ------------------------------------------------------- start and stop ----- */

bool http_server_supported(void)
{
    return true;
}

/* Random hexadecimal digits. False: the system gives no random numbers. */
static bool make_secret(char secret[HTTP_SECRET_LETTERS + 1])
{
    unsigned char bytes[HTTP_SECRET_LETTERS / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t n = 0; n < sizeof bytes; n++)
        snprintf(secret + 2 * n, 3, "%02x", (unsigned)bytes[n]);
    return true;
}

/* Opens a socket that listens on 127.0.0.1. Sets a port of 0 to the one that the system chose. -1:
 * failed, see errno. */
static int listen_at(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)*port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (const struct sockaddr *)&address, size) == 0 && listen(fd, QUEUE) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        *port = ntohs(address.sin_port);
        return fd;
    }
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Takes over the socket. */
static struct MHD_Daemon *start_daemon(http_server *server, int fd)
{
    return MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC, 0, NULL,
                            NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);
}

static bool start(http_server *server, int port, char *message)
{
    if (!make_secret(server->secret)) {
        snprintf(message, HTTP_MESSAGE_MAX, "the system gives no random numbers");
        return false;
    }
    server->port = port;
    const int fd = listen_at(&server->port);
    if (fd < 0) {
        snprintf(message, HTTP_MESSAGE_MAX, "cannot listen on port %d: %s", port, strerror(errno));
        return false;
    }
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d/%s/", server->port,
             server->secret);
    if ((server->daemon = start_daemon(server, fd)) != NULL)
        return true;
    snprintf(message, HTTP_MESSAGE_MAX, "the server cannot be started");
    return false;
}

http_server *http_server_start(const http_service *service, int port,
                               char message[HTTP_MESSAGE_MAX])
{
    http_server *const server = calloc(1, sizeof *server);
    if (server == NULL) {
        snprintf(message, HTTP_MESSAGE_MAX, "out of memory");
        return NULL;
    }
    server->service = service;
    pthread_mutex_init(&server->lock, NULL);
    if (start(server, port, message))
        return server;
    http_server_stop(server);
    return NULL;
}

const char *http_server_url(const http_server *server)
{
    return server->url;
}

void http_server_stop(http_server *server)
{
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
