/* Clients of the server. A server that is started again may listen elsewhere; the one who starts it
 * writes its address to dir/server.url (cluster driver), and the token may have changed too. */
#include "agent/node/agent_private.h"

#include "base/file.h"
#include "base/log.h"

#include <string.h>

#define URL_FILE_MAX_BYTES 4096

weir_status connect_open(struct agent *agent, const char *server, struct weir_client **out,
                         struct weir_error *err)
{
    const struct weir_agent_config *config = agent->config;
    struct weir_client_config client = {
        .server = server,
        .token = config->token,
        .token_file = agent->token_path,
        .ca_file = agent->ca_path,
        .timeout_ms = CALL_TIMEOUT_MS,
    };
    return weir_client_open(&client, out, err);
}

/* The address in dir/server.url, in the arena; NULL if there is none. */
static char *read_url(struct agent *agent, struct weir_arena *arena)
{
    char *data;
    size_t len;
    char *path = weir_arena_printf(arena, "%s/server.url", agent->config->dir);
    if (weir_file_read(path, URL_FILE_MAX_BYTES, arena, &data, &len, NULL) != WEIR_OK) {
        return NULL;
    }
    data[strcspn(data, "\r\n")] = '\0';
    return data[0] != '\0' ? data : NULL;
}

bool connect_refresh(struct agent *agent, struct weir_client **client, weir_status status)
{
    if (status == WEIR_OK || status == WEIR_ERR_CANCELLED) {
        return false;
    }
    struct weir_arena arena;
    struct weir_client *fresh = NULL;
    weir_arena_init(&arena, 0);
    const char *current = weir_client_server(*client);
    const char *url = read_url(agent, &arena);
    bool is_elsewhere = url != NULL && strcmp(url, current) != 0;
    bool is_refused = status == WEIR_ERR_UNAUTH && agent->config->token == NULL;
    if (is_elsewhere || is_refused) {
        if (connect_open(agent, is_elsewhere ? url : current, &fresh, NULL) == WEIR_OK) {
            pthread_mutex_lock(&agent->lock); /* stop_main cancels what it finds here */
            struct weir_client *old = *client;
            *client = fresh;
            pthread_mutex_unlock(&agent->lock);
            weir_client_close(old);
            /* A cancellation that went to the old one must not be lost. */
            if (atomic_load(&agent->is_stopping)) {
                weir_client_cancel(fresh);
            }
        }
    }
    if (fresh != NULL && is_elsewhere) {
        weir_log(WEIR_LOG_INFO, "server_moved", WEIR_KV_STR("server", url));
    }
    weir_arena_fini(&arena);
    return fresh != NULL && is_elsewhere;
}
