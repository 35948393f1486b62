/** Inside of the REST client. */
#ifndef WEIR_CLIENT_CLIENT_PRIVATE_H
#define WEIR_CLIENT_CLIENT_PRIVATE_H

#include "client/client.h"

#include "http/http_client.h"

#include <stdatomic.h>

struct weir_client {
    struct weir_http_client *http;
    char *server;  /* no slash at the end */
    char *token;   /* NULL: none */
    char *ca_file; /* NULL: the system's */
    int64_t timeout_ms;
    atomic_bool is_cancelled; /* seen by subscribe between two connections */
    int wake_fd;              /* eventfd: interrupts the pause between two tries */
};

/* discover.c: where the server is and with what token; both malloc'd, *out_token may be NULL. */
weir_status client_discover(const struct weir_client_config *config, char **out_server,
                            char **out_token, struct weir_error *err);

/** One HTTP call to `path` of the server, with its token; fills url and bearer of `call`. */
weir_status client_http(struct weir_client *client, struct weir_http_call *call, const char *path,
                        struct weir_http_reply *reply, struct weir_error *err);

/** The weir_error in the answer to a failed call; `what` ("GET /x") for answers that are not ours.
 */
weir_status client_error(const struct weir_http_reply *reply, const char *method, const char *path,
                         struct weir_error *err);

/** Wait, unless cancelled; CANCELLED then. */
weir_status client_pause(struct weir_client *client, int64_t ms, struct weir_error *err);

#endif
