/* SPDX-License-Identifier: MIT */
/*
 * A small HTTP server for one person: it listens on 127.0.0.1 only, and answers nobody who does not
 * know its secret, which is the first part of every path: http://127.0.0.1:8080/SECRET/path.
 *
 * A connection carries one request. Requests are answered one after another on one thread, so that
 * what answers them needs no locks. Whoever is slow loses the connection after HTTP_SECONDS, and
 * where there are HTTP_CONNECTIONS of them, who keep others waiting, after HTTP_CROWDED_SECONDS.
 */
#ifndef PAGE_HTTP_SERVER_H
#define PAGE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HTTP_SECRET_LETTERS = 32, /* 128 bits */
    HTTP_BODY_MAX = 16384,
    HTTP_CONNECTIONS = 32,    /* more wait in the queue of the system */
    HTTP_SECONDS = 10,        /* a request must be there this soon, and its answer be taken */
    HTTP_CROWDED_SECONDS = 3, /* the same while no connection is free */
    HTTP_URL_MAX = 64,
    HTTP_MESSAGE_MAX = 256
};

typedef struct http_answer {
    unsigned status;
    const char *type; /* of the content, in static memory */
    char *text;       /* for free(); NULL: no memory */
} http_answer;

/* What stands at a path behind the secret. */
typedef struct http_route {
    const char *path, *method;
    /* body[length] is 0; it may be overwritten. */
    http_answer (*answer)(void *arg, char *body, size_t length);
} http_route;

typedef struct http_service {
    const http_route *routes;
    int route_count;
    void *arg;
} http_service;

typedef struct http_server http_server;

/* Whether the program was built with what this needs; else http_server_start() says so. */
bool http_server_supported(void);

/* port 0: any that is free. `service` must live as long as the server does. NULL, with a message,
 * if it cannot. Threads get the signal mask of the caller. */
http_server *http_server_start(const http_service *service, int port,
                               char message[HTTP_MESSAGE_MAX]);

/* Where it is, secret included. */
const char *http_server_url(const http_server *server);

/* To be called about once a second: ends connections that have had their time. */
void http_server_tick(http_server *server);

void http_server_stop(http_server *server);

#endif
