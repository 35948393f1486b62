#include "comm/ucx/ucx_private.h"

#include "base/log.h"

#include <dirent.h>
#include <sys/mman.h>
#include <ucs/debug/log_def.h>

#define RDMA_DEVICES "/sys/class/infiniband"

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

static void on_endpoint_error(void *argument, ucp_ep_h ep, ucs_status_t status)
{
    struct ucx_state *ucx = argument;
    for (int r = 0; r < ucx->comm->size; r++) {
        if (ucx->peers[r].ep == ep && ucx->peers[r].broken == UCS_OK) {
            ucx->peers[r].broken = status;
            ucx->first_broken = ucx->first_broken < 0 ? r : ucx->first_broken;
            ucx->n_broken++;
        }
    }
}

static weir_status ucx_problem(const struct ucx_state *ucx, ucs_status_t status, const char *what,
                               struct weir_error *err)
{
    if (ucx->comm->ucx_kind != NULL &&
        (status == UCS_ERR_NO_DEVICE || status == UCS_ERR_UNREACHABLE)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: no device here carries transport \"%s\"; use auto or tcp", what,
                              ucx->comm->ucx_kind);
    }
    return weir_error_set(err, status == UCS_ERR_NO_MEMORY ? WEIR_ERR_NOMEM : WEIR_ERR_IO, "%s: %s",
                          what, ucs_status_string(status));
}

/* Is there a device that messages could be handed to whole? */
static bool has_rdma(const char *ucx_kind)
{
    bool has_device = false;
    DIR *dir = ucx_kind != NULL && strcmp(ucx_kind, "tcp") == 0 ? NULL : opendir(RDMA_DEVICES);
    if (dir == NULL) {
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        has_device = has_device || entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return has_device;
}

static weir_status open_context(struct ucx_state *ucx, struct weir_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    ucp_config_t *config = NULL;
    (void)pthread_once(&once, push_log_handler);
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return ucx_problem(ucx, status, "reading UCX's configuration", err);
    }
    /* The default, 20 s, is how long a lost host goes unnoticed on fabrics without connections. */
    (void)ucp_config_modify(config, "KEEPALIVE_INTERVAL", "1s");
    if (!has_rdma(ucx->comm->ucx_kind)) {
        /* Over TCP to ask before sending only adds a round trip: receives are posted ahead, and our
         * window bounds what comes before. */
        (void)ucp_config_modify(config, "RNDV_THRESH", "inf");
    }
    if (ucx->comm->ucx_kind != NULL) {
        char transports[32];
        (void)snprintf(transports, sizeof transports, "%s,self", ucx->comm->ucx_kind);
        (void)ucp_config_modify(config, "TLS", transports);
    }
    ucp_params_t params = {.field_mask =
                               UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
                           .estimated_num_eps = (size_t)ucx->comm->size};
    status = ucp_init(&params, config, &ucx->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return ucx_problem(ucx, status, "starting UCX", err);
    }
    /* Serialized: several threads, one at a time (the communicator's turn). */
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    status = ucp_worker_create(ucx->context, &worker, &ucx->worker);
    if (status == UCS_OK) {
        status = ucp_worker_get_efd(ucx->worker, &ucx->event_fd);
    }
    return status == UCS_OK ? WEIR_OK : ucx_problem(ucx, status, "starting a UCX worker", err);
}

static weir_status allocate_buffers(struct ucx_state *ucx, struct weir_error *err)
{
    size_t n_ranks = (size_t)ucx->comm->size, share = UCX_SCRATCH_BYTES / UCX_WINDOW / n_ranks;
    ucx->chunk_bytes = WEIR_MIN(share, (size_t)UCX_MAX_CHUNK_BYTES);
    ucx->chunk_bytes = WEIR_MAX(ucx->chunk_bytes, (size_t)UCX_MIN_CHUNK_BYTES) / 64 * 64;
    ucx->scratch = malloc(UCX_WINDOW * n_ranks * ucx->chunk_bytes);
    ucx->requests = calloc(UCX_WINDOW * 4 * n_ranks, sizeof *ucx->requests);
    if (ucx->scratch == NULL || ucx->requests == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator's buffers");
    }
    return WEIR_OK;
}

static weir_status connect_to(struct ucx_state *ucx, int rank, const uint8_t *address,
                              struct weir_error *err)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (const ucp_address_t *)(const void *)address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_endpoint_error, .arg = ucx}};
    ucs_status_t status = ucp_ep_create(ucx->worker, &params, &ucx->peers[rank].ep);
    if (status != UCS_OK) {
        ucx->peers[rank].ep = NULL;
        (void)ucx_problem(ucx, status, "connecting", err);
        return weir_error_prefix(err, "rank %d to rank %d by UCX: ", ucx->comm->rank, rank);
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

static weir_status exchange_addresses(struct ucx_state *ucx, struct rendezvous *rdv,
                                      struct addresses *out, struct weir_error *err)
{
    ucp_address_t *own = NULL;
    size_t own_bytes = 0;
    ucs_status_t ucs = ucp_worker_get_address(ucx->worker, &own, &own_bytes);
    if (ucs != UCS_OK) {
        return ucx_problem(ucx, ucs, "asking UCX for an address", err);
    }
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    weir_status status = rendezvous_exchange(rdv, own, own_bytes, table, err);
    ucp_worker_release_address(ucx->worker, own);
    return status == WEIR_OK ? keep_addresses(ucx->comm, table, out, err) : status;
}

/*
 * Exchange addresses and connect everybody with everybody. Nobody connects before all have what it
 * takes: a rank that leaves while another connects to it can make UCX 1.13 abort that one's process
 * (an assertion of its TCP connection manager).
 */
static weir_status connect_all(struct ucx_state *ucx, struct rendezvous *rdv,
                               struct weir_error *err)
{
    struct addresses addresses = {.bytes = NULL};
    struct rendezvous_blob ready[WEIR_COMM_MAX_RANKS];
    weir_status status = exchange_addresses(ucx, rdv, &addresses, err);
    if (status == WEIR_OK) {
        status = rendezvous_exchange(rdv, "", 0, ready, err);
    }
    for (int r = 0; r < ucx->comm->size && status == WEIR_OK; r++) {
        if (r != ucx->comm->rank) {
            status = connect_to(ucx, r, addresses.bytes + addresses.at[r], err);
        }
    }
    free(addresses.bytes);
    return status;
}

static weir_status ucx_open(struct weir_comm *comm, struct rendezvous *rdv, struct weir_error *err)
{
    struct ucx_state *ucx = calloc(1, sizeof *ucx);
    if (ucx == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    comm->state = ucx;
    ucx->comm = comm;
    ucx->event_fd = ucx->first_broken = -1;
    ucx->n_spins = 2;
    ucx->workers = (struct ucx_group){.n_ranks = comm->n_workers, .self = comm->rank};
    for (int r = 0; r < comm->n_workers; r++) {
        ucx->workers.ranks[r] = r;
    }
    WEIR_TRY(open_context(ucx, err));
    WEIR_TRY(allocate_buffers(ucx, err));
    if (rdv == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(connect_all(ucx, rdv, err));
    weir_status status = ucx_expect_notice(ucx);
    if (status == WEIR_OK) {
        status = ucx_meet(ucx, comm->size);
    }
    ucx->n_ops = 0; /* servers take part in this one only */
    if (status != WEIR_OK) {
        (void)weir_comm_failure(comm, NULL, err);
    }
    return status;
}

static void free_memories(struct ucx_state *ucx)
{
    for (int i = 0; i < ucx->n_memories; i++) {
        if (ucx->memories[i].handle != NULL) {
            (void)ucp_mem_unmap(ucx->context, ucx->memories[i].handle);
        }
        if (!ucx->memories[i].is_borrowed) {
            (void)munmap(ucx->memories[i].base, ucx->memories[i].bytes);
        }
    }
    free(ucx->memories);
}

static void ucx_close(struct weir_comm *comm)
{
    struct ucx_state *ucx = comm->state;
    if (ucx == NULL) {
        return;
    }
    if (ucx->worker != NULL) {
        if (comm_failed(comm) == WEIR_OK && comm->size > 1) {
            ucx_say_goodbye(ucx);
        }
        ucx_close_endpoints(ucx);
    }
    if (ucx->context != NULL) {
        free_memories(ucx);
    }
    if (ucx->worker != NULL) {
        ucp_worker_destroy(ucx->worker);
    }
    if (ucx->context != NULL) {
        ucp_cleanup(ucx->context);
    }
    ucx_group_fini(&ucx->workers);
    free(ucx->ps_sum);
    free(ucx->ps_weights);
    free(ucx->requests);
    free(ucx->scratch);
    free(ucx);
    comm->state = NULL;
}

/* The waiting thread looks at the failure when it wakes up. */
static void ucx_interrupt(struct weir_comm *comm)
{
    struct ucx_state *ucx = comm->state;
    (void)comm_fail(comm, WEIR_ERR_CANCELLED, comm->rank, "the communicator is being destroyed");
    (void)ucp_worker_signal(ucx->worker);
}

static int ucx_event_fd(struct weir_comm *comm)
{
    return ((struct ucx_state *)comm->state)->event_fd;
}

/* Answer what other ranks need from UCX itself, and arm the descriptor for the next time. */
static void ucx_progress(struct weir_comm *comm)
{
    struct ucx_state *ucx = comm->state;
    do {
        while (ucp_worker_progress(ucx->worker) != 0) {
        }
    } while (ucp_worker_arm(ucx->worker) == UCS_ERR_BUSY);
}

const struct comm_transport comm_ucx_transport = {
    .name = "ucx",
    .open = ucx_open,
    .close = ucx_close,
    .interrupt = ucx_interrupt,
    .alloc = ucx_alloc,
    .allreduce = ucx_allreduce,
    .reduce_scatter = ucx_reduce_scatter,
    .allgather = ucx_allgather,
    .broadcast = ucx_broadcast,
    .barrier = ucx_barrier,
    .ps_request = ucx_ps_request,
    .ps_answer = ucx_ps_answer,
    .event_fd = ucx_event_fd,
    .progress = ucx_progress,
};
