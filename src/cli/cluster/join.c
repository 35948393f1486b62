#include "cli/cluster/join.h"

#include "base/file.h"
#include "base/log.h"
#include "client/client.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static weir_status open_client(const struct cli_joining *joining, const char *token,
                               const char *token_file, struct weir_client **out,
                               struct weir_error *err)
{
    const struct weir_client_config config = {.server = joining->server,
                                              .token = token,
                                              .token_file = token_file,
                                              .ca_file = joining->ca_file};
    return weir_client_open(&config, out, err);
}

/* A node that never reported has no record yet. */
weir_status cli_join_is_done(const struct cli_joining *joining, bool *out, struct weir_error *err)
{
    struct weir_client *client;
    *out = false;
    if (!weir_path_exists(joining->token_path)) {
        return WEIR_OK;
    }
    WEIR_TRY(open_client(joining, NULL, joining->token_path, &client, err));
    char *path = weir_client_path(joining->arena, "/api/v1/nodes/{}/desired", &joining->node, 1);
    weir_status status = weir_client_call(client, "GET", path, NULL, NULL, err);
    weir_client_close(client);
    if (status == WEIR_ERR_UNAUTH) {
        return WEIR_OK; /* it left, or its token was revoked */
    }
    if (status == WEIR_ERR_DENIED) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "%s has the token of another node of this server: `weir node leave` "
                              "first, or choose another folder (--dir)",
                              joining->dir);
    }
    *out = status == WEIR_OK || status == WEIR_ERR_NOT_FOUND;
    return *out ? WEIR_OK : status;
}

weir_status cli_join_exchange(const struct cli_joining *joining, const char *secret,
                              struct weir_error *err)
{
    struct weir_client *client;
    json_t *answer = NULL;
    /* Before the token is used up: it can be written. */
    WEIR_TRY(weir_dir_make(joining->dir, 0700, err));
    WEIR_TRY(weir_file_write_atomic(joining->token_path, "", 0, 0600, err));
    WEIR_TRY(open_client(joining, secret, NULL, &client, err));
    json_t *body = json_pack("{s:s,s:s}", "token", secret, "node", joining->node);
    weir_status status = body != NULL
                             ? weir_client_call(client, "POST", "/api/v1/join", body, &answer, err)
                             : weir_error_set(err, WEIR_ERR_INVALID, "this is no token");
    json_decref(body);
    weir_client_close(client);
    const char *token = json_string_value(json_object_get(answer, "secret"));
    if (status == WEIR_OK && token == NULL) {
        status = weir_error_set(err, WEIR_ERR_CORRUPT, "the server's answer has no token");
    }
    if (status == WEIR_OK) {
        char *line = weir_arena_printf(joining->arena, "%s\n", token);
        status = weir_file_write_atomic(joining->token_path, line, strlen(line), 0600, err);
    }
    if (status != WEIR_OK) {
        (void)unlink(joining->token_path);
    }
    json_decref(answer);
    return status;
}

static weir_status try_once(const struct cli_joining *joining, const char *secret,
                            struct weir_error *err)
{
    bool is_done;
    WEIR_TRY(cli_join_is_done(joining, &is_done, err));
    return is_done ? WEIR_OK : cli_join_exchange(joining, secret, err);
}

weir_status cli_join_await(const struct cli_joining *joining, const char *secret, int stop_fd,
                           struct weir_error *err)
{
    struct weir_backoff backoff = {.base_ms = 100, .max_ms = 5000};
    weir_status status;
    for (bool is_told = false; weir_client_can_retry(status = try_once(joining, secret, err));) {
        if (!is_told) {
            weir_log(WEIR_LOG_WARN, "node_cannot_join_yet", WEIR_KV_STR("error", err->message));
            is_told = true;
        }
        struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
        if (poll(&stop, 1, (int)weir_backoff_next_ms(&backoff)) > 0) {
            return weir_error_set(err, WEIR_ERR_CANCELLED, "ended before it could join");
        }
    }
    return status;
}
