#include "client/client_private.h"

#include "http/tunnel.h"

#define BODY_MAX_BYTES ((size_t)128 << 10)

weir_status weir_client_upgrade(struct weir_client *client, const char *path, const char *protocol,
                                const char *header, struct weir_http_tunnel **out,
                                struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_http_reply reply = {0};
    weir_arena_init(&arena, 0);
    weir_buf_init(&reply.body, BODY_MAX_BYTES);
    const struct weir_http_tunnel_config config = {
        .url = weir_arena_printf(&arena, "%s%s", client->server, path),
        .protocol = protocol,
        .bearer = client->token,
        .header = header,
        .ca_file = client->ca_file,
        .timeout_ms = client->timeout_ms};
    weir_status status = weir_http_tunnel_open(&config, out, &reply.http_status, &reply.body, err);
    if (status == WEIR_ERR_INVALID && reply.body.len > 0) {
        status = client_error(&reply, "GET", path, err);
    }
    weir_buf_fini(&reply.body);
    weir_arena_fini(&arena);
    return status;
}
