/* SPDX-License-Identifier: MIT */
/* The server of a build without libmicrohttpd: it cannot be started, and the message says why. */
#include <stdio.h>

#include "page/http_server.h"

bool http_server_supported(void)
{
    return false;
}

http_server *http_server_start(const http_service *service, int port,
                               char message[HTTP_MESSAGE_MAX])
{
    (void)service;
    (void)port;
    snprintf(message, HTTP_MESSAGE_MAX,
             "this program was built without libmicrohttpd, which serves pages; install it "
             "(Debian: libmicrohttpd-dev) and build again, or write a page with \"mha view\"");
    return NULL;
}

const char *http_server_url(const http_server *server)
{
    (void)server;
    return "";
}

void http_server_tick(http_server *server)
{
    (void)server;
}

void http_server_stop(http_server *server)
{
    (void)server;
}
