/* SPDX-License-Identifier: MIT */
/*
 * A small HTTP server for one user: it listens on 127.0.0.1 only, and answers only requests that
 * have its secret as the first part of their path: http://127.0.0.1:8080/SECRET/path.
 *
 * A connection carries one request. Requests are answered one after another on one thread, so the
 * functions that answer them need no locks. A slow client loses its connection after HTTP_SECONDS,
 * or after HTTP_CROWDED_SECONDS while all HTTP_CONNECTIONS are in use and others have to wait. All
 * clients have the same address, so none can be given a share of its own. Instead at most
 * HTTP_UNFINISHED connections may be without a complete request: one more closes the oldest of
 * them, and slow clients, however many, never keep others out.
 */
#ifndef PAGE_HTTP_SERVER_H
#define PAGE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_SECRET_LETTERS = 32, /* 128 bits */
    HTTP_BODY_MAX = 16384,    /* bytes of the body of a request, unless the service says more */
    HTTP_CONNECTIONS = 512,   /* at a time; more wait in the system's queue */
    HTTP_UNFINISHED = 384,    /* of them may still be sending their request */
    HTTP_SECONDS = 10,        /* time to send a request, and again to receive its answer */
    HTTP_CROWDED_SECONDS = 3, /* the same while no connection is free */
    HTTP_URL_MAX = 64,
    HTTP_MESSAGE_MAX = 256
};

typedef struct http_answer {
    unsigned status;
    const char *type; /* of the content, in static memory */
    char *text;       /* freed by the server; NULL: out of memory, the connection is closed */
} http_answer;

/* The function that answers a path, without the secret. */
typedef struct http_route {
    const char *path, *method;
    /* body[length] is 0; the body may be overwritten. `arg` is that of the service. */
    http_answer (*answer)(void *arg, char *body, size_t length);
} http_route;

typedef struct http_service {
    const http_route *routes;
    int route_count;
    void *arg;
    size_t body_most; /* of this service; 0: HTTP_BODY_MAX */
} http_service;

typedef struct http_server http_server;

/* Whether the program was built with libmicrohttpd; if not, http_server_start() fails and its
 * message says so. */
bool http_server_supported(void);

/* Starts a server on a port; 0: any free one. `service` must outlive the server. NULL, with a
 * message: it cannot be started. The server's thread has the signal mask of the caller. */
http_server *http_server_start(const http_service *service, int port,
                               char message[HTTP_MESSAGE_MAX]);

/* The address of the server, with the secret; valid until it is stopped. */
const char *http_server_url(const http_server *server);

/* To be called about once a second, from any thread: ends connections whose time is over. */
void http_server_tick(http_server *server);

void http_server_stop(http_server *server);

#endif
