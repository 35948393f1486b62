/* The fabric UCX: tag messages over whatever UCX finds, RDMA above all. */
#include "comm/transport/message/message_private.h"

#include "base/clock.h"
#include "base/log.h"

#include <dirent.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#define RDMA_DEVICES "/sys/class/infiniband"

enum {
    WINDOW_BYTES = 1 << 20,
    CHUNK_BYTES = 256 << 10, /**< Stays in the cache between arrival and sum. */
};

struct ucp {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h eps[WEIR_COMM_MAX_RANKS]; /**< NULL: own rank, or closed. */
};

/* UCX prints to standard output, where a program's own output belongs. */
WEIR_PRINTF(6, 0)

static ucs_log_func_rc_t forward_log(const char *file, unsigned line, const char *function,
                                     ucs_log_level_t level,
                                     const ucs_log_component_config_t *component,
                                     const char *message, va_list args)
{
    (void)file;
    (void)line;
    (void)component;
    if (level <= UCS_LOG_LEVEL_WARN) {
        char text[512];
        (void)vsnprintf(text, sizeof text, message, args);
        weir_log(WEIR_LOG_DEBUG, "ucx_message", WEIR_KV_STR("in", function),
                 WEIR_KV_STR("text", text));
    }
    return UCS_LOG_FUNC_RC_STOP;
}

static void push_log_handler(void)
{
    ucs_log_push_handler(forward_log);
}

static struct ucp *ucp_of(const struct message_state *state)
{
    return state->fabric_state;
}

static void on_endpoint_error(void *argument, ucp_ep_h ep, ucs_status_t status)
{
    struct message_state *state = argument;
    (void)status;
    for (int r = 0; r < state->comm->size; r++) {
        if (ucp_of(state)->eps[r] == ep) {
            message_peer_broke(state, r);
        }
    }
}

static weir_status ucx_problem(const struct message_state *state, ucs_status_t status,
                               const char *what, struct weir_error *err)
{
    if (state->comm->ucx_kind != NULL &&
        (status == UCS_ERR_NO_DEVICE || status == UCS_ERR_UNREACHABLE)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: no device here carries transport \"%s\"; use auto or tcp", what,
                              state->comm->ucx_kind);
    }
    return weir_error_set(err, status == UCS_ERR_NO_MEMORY ? WEIR_ERR_NOMEM : WEIR_ERR_IO, "%s: %s",
                          what, ucs_status_string(status));
}

/* Is there a device that messages could be handed to whole? */
bool ucx_has_rdma(void)
{
    bool has_device = false;
    DIR *dir = opendir(RDMA_DEVICES);
    if (dir == NULL) {
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        has_device = has_device || entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return has_device;
}

static weir_status open_context(struct message_state *state, struct weir_error *err)
{
    struct ucp *ucp = ucp_of(state);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    ucp_config_t *config = NULL;
    (void)pthread_once(&once, push_log_handler);
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return ucx_problem(state, status, "reading UCX's configuration", err);
    }
    /* The default, 20 s, is how long a lost host goes unnoticed on fabrics without connections. */
    (void)ucp_config_modify(config, "KEEPALIVE_INTERVAL", "1s");
    if (!ucx_has_rdma()) {
        /* Over TCP to ask before sending only adds a round trip: receives are posted ahead, and our
         * window bounds what comes before. */
        (void)ucp_config_modify(config, "RNDV_THRESH", "inf");
    }
    if (state->comm->ucx_kind != NULL) {
        char transports[32];
        (void)snprintf(transports, sizeof transports, "%s,self", state->comm->ucx_kind);
        (void)ucp_config_modify(config, "TLS", transports);
    }
    ucp_params_t params = {.field_mask =
                               UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
                           .estimated_num_eps = (size_t)state->comm->size};
    status = ucp_init(&params, config, &ucp->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return ucx_problem(state, status, "starting UCX", err);
    }
    /* Serialized: several threads, one at a time (the communicator's execution lock). */
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    status = ucp_worker_create(ucp->context, &worker, &ucp->worker);
    if (status == UCS_OK) {
        status = ucp_worker_get_efd(ucp->worker, &state->event_fd);
    }
    return status == UCS_OK ? WEIR_OK : ucx_problem(state, status, "starting a UCX worker", err);
}

static weir_status connect_to(struct message_state *state, int rank, const uint8_t *address,
                              struct weir_error *err)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (const ucp_address_t *)(const void *)address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_endpoint_error, .arg = state}};
    struct ucp *ucp = ucp_of(state);
    ucs_status_t status = ucp_ep_create(ucp->worker, &params, &ucp->eps[rank]);
    state->peers[rank].is_connected = status == UCS_OK;
    if (status != UCS_OK) {
        ucp->eps[rank] = NULL;
        (void)ucx_problem(state, status, "connecting", err);
        return weir_error_prefix(err, "rank %d to rank %d by UCX: ", state->comm->rank, rank);
    }
    return WEIR_OK;
}

/* UCX reads an address as a structure: aligned. */
enum { ADDRESS_ALIGN = 16 };

struct addresses {
    uint8_t *bytes;
    size_t at[WEIR_COMM_MAX_RANKS];
};

static weir_status keep_addresses(const struct weir_comm *comm,
                                  const struct rendezvous_blob table[], struct addresses *out,
                                  struct weir_error *err)
{
    size_t total = 0;
    for (int r = 0; r < comm->size; r++) {
        if (table[r].len == 0) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "rank %d has no UCX address", r);
        }
        out->at[r] = total;
        total += (table[r].len + ADDRESS_ALIGN - 1) / ADDRESS_ALIGN * ADDRESS_ALIGN;
    }
    out->bytes = malloc(total);
    if (out->bytes == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the addresses of the ranks");
    }
    for (int r = 0; r < comm->size; r++) {
        memcpy(out->bytes + out->at[r], table[r].data, table[r].len);
    }
    return WEIR_OK;
}

static weir_status exchange_addresses(struct message_state *state, struct rendezvous *rdv,
                                      struct addresses *out, struct weir_error *err)
{
    ucp_address_t *own = NULL;
    size_t own_bytes = 0;
    ucs_status_t ucs = ucp_worker_get_address(ucp_of(state)->worker, &own, &own_bytes);
    if (ucs != UCS_OK) {
        return ucx_problem(state, ucs, "asking UCX for an address", err);
    }
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    weir_status status = rendezvous_exchange(rdv, own, own_bytes, table, err);
    ucp_worker_release_address(ucp_of(state)->worker, own);
    return status == WEIR_OK ? keep_addresses(state->comm, table, out, err) : status;
}

/*
 * Exchange addresses and connect all ranks. None connects before all have what it
 * takes: a rank that leaves while another connects to it can make UCX 1.13 abort that one's process
 * (an assertion of its TCP connection manager).
 */
static weir_status connect_all(struct message_state *state, struct rendezvous *rdv,
                               struct weir_error *err)
{
    struct addresses addresses = {.bytes = NULL};
    struct rendezvous_blob ready[WEIR_COMM_MAX_RANKS];
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(exchange_addresses(state, rdv, &addresses, err), status, free_addresses);
    WEIR_TRY_GOTO(rendezvous_exchange(rdv, "", 0, ready, err), status, free_addresses);
    for (int r = 0; r < state->comm->size; r++) {
        if (r != state->comm->rank) {
            WEIR_TRY_GOTO(connect_to(state, r, addresses.bytes + addresses.at[r], err), status,
                          free_addresses);
        }
    }
free_addresses:
    free(addresses.bytes);
    return status;
}

/* ---- messages ------------------------------------------------------------------------------- */

static enum message_outcome outcome_of(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return MESSAGE_DONE;
    case UCS_INPROGRESS:
        return MESSAGE_PENDING;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return MESSAGE_TRUNCATED;
    case UCS_ERR_NO_MEMORY:
        return MESSAGE_NOMEM;
    default:
        return MESSAGE_LOST;
    }
}

static enum message_outcome started(struct message_request *request, ucs_status_ptr_t handle)
{
    if (UCS_PTR_IS_PTR(handle)) {
        request->handle = handle;
        return MESSAGE_PENDING;
    }
    return outcome_of(UCS_PTR_STATUS(handle));
}

static enum message_outcome start_send(struct message_state *state, const void *buf, uint64_t tag,
                                       struct message_request *request)
{
    static const ucp_request_param_t plain = {.op_attr_mask = 0};
    return started(request, ucp_tag_send_nbx(ucp_of(state)->eps[request->rank], buf, request->bytes,
                                             tag, &plain));
}

static enum message_outcome start_receive(struct message_state *state, void *buf, uint64_t tag,
                                          uint64_t mask, struct message_request *request)
{
    /* Always by request: its end tells how many bytes came. */
    static const ucp_request_param_t by_request = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
    return started(request, ucp_tag_recv_nbx(ucp_of(state)->worker, buf, request->bytes, tag, mask,
                                             &by_request));
}

static enum message_outcome test(struct message_request *request)
{
    ucp_tag_recv_info_t info = {.length = request->bytes};
    ucs_status_t status = request->is_receive ? ucp_tag_recv_request_test(request->handle, &info)
                                              : ucp_request_check_status(request->handle);
    if (status != UCS_INPROGRESS) {
        ucp_request_free(request->handle);
    }
    return status == UCS_OK && info.length != request->bytes ? MESSAGE_TRUNCATED
                                                             : outcome_of(status);
}

static bool has_come(const struct message_request *request)
{
    return ucp_request_check_status(request->handle) == UCS_OK;
}

static void cancel(struct message_state *state, struct message_request *request)
{
    ucp_request_cancel(ucp_of(state)->worker, request->handle);
}

static void free_sent(void *handle, ucs_status_t status, void *context)
{
    (void)status;
    (void)context;
    ucp_request_free(handle);
}

static void send_aside(struct message_state *state, int rank, const struct message_notice *notice,
                       uint64_t tag)
{
    static const ucp_request_param_t unattended = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK,
                                                   .cb.send = free_sent};
    (void)ucp_tag_send_nbx(ucp_of(state)->eps[rank], notice, sizeof *notice, tag, &unattended);
}

/* Progress until `handle` (of a send, close or flush) is over or the time is; frees it. */
static void finish(struct message_state *state, ucs_status_ptr_t handle, uint64_t deadline_ns)
{
    unsigned n_idle = 0;
    if (!UCS_PTR_IS_PTR(handle)) {
        return;
    }
    while (ucp_request_check_status(handle) == UCS_INPROGRESS && weir_mono_ns() < deadline_ns) {
        message_progress_or_sleep(state, deadline_ns, &n_idle);
    }
    ucp_request_free(handle);
}

/* Sent means handed to UCX; only a flush hands it to the wire before the close drops it. One by
 * one: that of all ends with the first that fails. */
static void broadcast(struct message_state *state, const struct message_notice *notice,
                      uint64_t tag, int except, uint64_t deadline_ns)
{
    static const ucp_request_param_t plain = {.op_attr_mask = 0};
    struct ucp *ucp = ucp_of(state);
    ucs_status_ptr_t sends[WEIR_COMM_MAX_RANKS], flushes[WEIR_COMM_MAX_RANKS];
    if (except < 0) {
        /* Behind what takes several messages to deliver, too. A rank that reports a fault does
         * not wait for that. */
        finish(state, ucp_worker_flush_nbx(ucp->worker, &plain), deadline_ns);
    }
    for (int r = 0; r < state->comm->size; r++) {
        bool is_notified = r != except && ucp->eps[r] != NULL && !state->peers[r].is_broken;
        sends[r] = flushes[r] = NULL;
        if (is_notified) {
            sends[r] = ucp_tag_send_nbx(ucp->eps[r], notice, sizeof *notice, tag, &plain);
            flushes[r] = ucp_ep_flush_nbx(ucp->eps[r], &plain);
        }
    }
    for (int r = 0; r < state->comm->size; r++) {
        finish(state, sends[r], deadline_ns);
        finish(state, flushes[r], deadline_ns);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool progress(struct message_state *state)
{
    return ucp_worker_progress(ucp_of(state)->worker) != 0;
}

static bool arm(struct message_state *state)
{
    return ucp_worker_arm(ucp_of(state)->worker) == UCS_OK;
}

static void wake(struct message_state *state)
{
    (void)ucp_worker_signal(ucp_of(state)->worker);
}

static void disconnect(struct message_state *state, uint64_t deadline_ns)
{
    static const ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                              .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t closing[WEIR_COMM_MAX_RANKS];
    for (int r = 0; r < state->comm->size; r++) {
        ucp_ep_h *ep = &ucp_of(state)->eps[r];
        closing[r] = *ep == NULL ? NULL : ucp_ep_close_nbx(*ep, &force);
        *ep = NULL;
        state->peers[r].is_connected = false;
    }
    for (int r = 0; r < state->comm->size; r++) {
        finish(state, closing[r], deadline_ns);
    }
}

static void *register_memory(struct message_state *state, void *base, size_t bytes)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                 UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                   .address = base,
                                   .length = bytes};
    ucp_mem_h handle = NULL;
    return ucp_mem_map(ucp_of(state)->context, &params, &handle) == UCS_OK ? handle : NULL;
}

static void unregister_memory(struct message_state *state, void *handle)
{
    (void)ucp_mem_unmap(ucp_of(state)->context, handle);
}

static weir_status open_fabric(struct message_state *state, struct weir_error *err)
{
    state->fabric_state = calloc(1, sizeof(struct ucp));
    if (state->fabric_state == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    weir_status status = open_context(state, err);
    if (status != WEIR_OK) {
        state->fabric->close(state);
    }
    return status;
}

static void close_fabric(struct message_state *state)
{
    struct ucp *ucp = ucp_of(state);
    if (ucp == NULL) {
        return;
    }
    if (ucp->worker != NULL) {
        ucp_worker_destroy(ucp->worker);
    }
    if (ucp->context != NULL) {
        ucp_cleanup(ucp->context);
    }
    free(ucp);
    state->fabric_state = NULL;
}

const struct message_fabric ucx_fabric = {
    .name = "ucx",
    .works_while_idle = true,
    .window_bytes = WINDOW_BYTES,
    .chunk_bytes = CHUNK_BYTES,
    .open = open_fabric,
    .connect = connect_all,
    .send = start_send,
    .receive = start_receive,
    .test = test,
    .has_come = has_come,
    .cancel = cancel,
    .send_aside = send_aside,
    .broadcast = broadcast,
    .progress = progress,
    .arm = arm,
    .signal = wake,
    .disconnect = disconnect,
    .map = register_memory,
    .unmap = unregister_memory,
    .close = close_fabric,
};
