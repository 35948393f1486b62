#include "client/client_private.h"

#include "base/file.h"

#include <string.h>

#define TOKEN_FILE_MAX_BYTES  4096
#define SERVER_FILE_MAX_BYTES 65536

/* The first line of a small file, without its end. */
static weir_status read_line(const char *path, char **out, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *data;
    size_t len;
    WEIR_TRY(weir_file_read(path, TOKEN_FILE_MAX_BYTES, &arena, &data, &len, err));
    data[strcspn(data, "\r\n")] = '\0';
    *out = weir_xstrdup(data);
    explicit_bzero(data, len);
    return WEIR_OK;
}

static weir_status server_of_state_dir(const char *state_dir, char **out, struct weir_error *err)
{
    static const char hint[] =
        "start one with `weir server`, or name one with --server or $WEIR_SERVER";
    if (state_dir == NULL) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no server is named: %s", hint);
    }
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = weir_arena_printf(&arena, "%s/server.json", state_dir);
    json_t *file = NULL;
    weir_status status = weir_json_load(path, SERVER_FILE_MAX_BYTES, &file, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        status = weir_error_set(err, WEIR_ERR_UNAVAILABLE, "no server runs from %s: %s", state_dir,
                                hint);
    } else if (status == WEIR_OK) {
        const char *url = json_string_value(json_object_get(file, "url"));
        if (url != NULL) {
            *out = weir_xstrdup(url);
        } else {
            status = weir_error_set(err, WEIR_ERR_CORRUPT, "%s has no \"url\"", path);
        }
    }
    json_decref(file);
    weir_arena_fini(&arena);
    return status;
}

/* The local administrator's token, if this user may read it: others must bring their own. */
static weir_status token_of_state_dir(const char *state_dir, char **out, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *path = weir_arena_printf(&arena, "%s/admin.token", state_dir);
    weir_status status = read_line(path, out, err);
    weir_arena_fini(&arena);
    return status == WEIR_ERR_NOT_FOUND || status == WEIR_ERR_DENIED ? WEIR_OK : status;
}

/* "http://lab:8470@elsewhere" is a server called elsewhere: a person reads another, and a password would be printed. */
static weir_status check_server(const char *server, struct weir_error *err)
{
    const char *host = strstr(server, "://");
    bool is_http = strncmp(server, "http://", 7) == 0 || strncmp(server, "https://", 8) == 0;
    size_t n = 0;
    while ((unsigned char)server[n] > ' ' && server[n] != 0x7f) {
        n++;
    }
    if (!is_http || server[n] != '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "server \"%.*s\": expected http://HOST:PORT or https://HOST:PORT",
                              (int)n, server);
    }
    return memchr(host + 3, '@', strcspn(host + 3, "/")) == NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "the server's address names a user before its host: who you are "
                                "is said by a token (weir login URL --user USER)");
}

weir_status client_discover(const struct weir_client_config *config, char **out_server,
                            char **out_token, struct weir_error *err)
{
    char *server = NULL;
    char *token = NULL;
    bool is_local = config->server == NULL;
    if (is_local) {
        WEIR_TRY(server_of_state_dir(config->state_dir, &server, err));
    } else {
        server = weir_xstrdup(config->server);
    }
    weir_status status = WEIR_OK;
    if (config->token != NULL) {
        token = weir_xstrdup(config->token);
    } else if (config->token_file != NULL) {
        status = read_line(config->token_file, &token, err);
    } else if (is_local) {
        /* Never sent to a server that was named: it may not be the one of this folder. */
        status = token_of_state_dir(config->state_dir, &token, err);
    }
    status = status == WEIR_OK ? check_server(server, err) : status;
    if (status != WEIR_OK) {
        free(server);
        free(token);
        return status;
    }
    size_t len = strlen(server);
    while (len > 0 && server[len - 1] == '/') {
        server[--len] = '\0';
    }
    *out_server = server;
    *out_token = token;
    return WEIR_OK;
}
