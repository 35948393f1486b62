/* Any bytes on a connection: answered or closed, and nothing left. The preface comes first, so that the
 * bytes are frames, unless the first of them is 0xff. */
#include "grpc/server_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void echo(void *context, struct weir_grpc_call *call)
{
    struct weir_buf reply;
    const struct weir_grpc_request *request = weir_grpc_call_request(call);
    (void)context;
    weir_buf_init(&reply, 1 << 20);
    (void)weir_buf_append(&reply, request->message, request->len);
    weir_grpc_answer(call, WEIR_GRPC_OK, "", &reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_grpc_server server;
    const struct weir_grpc_config config = {.max_message_bytes = 1 << 16,
                                            .max_held_bytes = 1 << 17};
    int fds[2];
    grpc_server_init(&server, &config, echo, NULL);
    if (grpc_session_make_callbacks(&server) != WEIR_OK ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
        grpc_server_fini(&server);
        return 0;
    }
    server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct connection *connection = grpc_connection_open(&server, fds[0], NULL);
    bool is_open = !connection->is_closing;
    if (is_open && (size == 0 || data[0] != 0xff)) {
        is_open = grpc_session_take(connection, (const uint8_t *)NGHTTP2_CLIENT_MAGIC,
                                    NGHTTP2_CLIENT_MAGIC_LEN);
    }
    is_open = is_open && grpc_session_take(connection, data, size);
    (void)grpc_server_take_answers(&server);
    if (is_open && !connection->is_closing) {
        grpc_connection_flush(connection);
    }
    grpc_connection_close(connection);
    grpc_connections_free_closed(&server);
    must(server.peers.held.n_bytes == 0 && server.strange.n_bytes == 0 && server.n_out == 0 &&
         server.n_connections == 0);
    grpc_server_fini(&server);
    close(fds[1]);
    return 0;
}
