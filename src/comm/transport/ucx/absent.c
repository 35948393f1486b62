/* In place of ucx.c, where the build has no UCX: the fabric is refused. Hosts without it count as hosts without RDMA. */
#include "comm/transport/message/message_private.h"

#include "base/library.h"

static weir_status open_fabric(struct message_state *state, struct weir_error *err)
{
    (void)state;
    return weir_library_need("ucx", "transport ucx", err);
}

static void close_fabric(struct message_state *state)
{
    (void)state;
}

const struct message_fabric ucx_fabric = {
    .name = "ucx", .open = open_fabric, .close = close_fabric};

bool ucx_has_rdma(void)
{
    return false;
}
