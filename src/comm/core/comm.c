#include "comm/core/comm_private.h"

#include "base/clock.h"
#include "base/log.h"
#include "comm/core/host.h"
#include "comm/core/sum.h"
#include "comm/transport/message/message_private.h"

#include <stdarg.h>
#include <unistd.h>

/* From PREFER_TCP on: messages; from PREFER_UCX on: UCX, of whatever there is or of one kind. */
enum preference {
    PREFER_AUTO,
    PREFER_SHM,
    PREFER_TCP,
    PREFER_UCX,
    PREFER_RC,
    PREFER_DC,
    N_PREFERENCES
};

static const char *const preference_names[N_PREFERENCES] = {"auto", "shm", "tcp",
                                                            "ucx",  "rc",  "dc"};

static weir_status parse_preference(const char *text, enum preference *out, struct weir_error *err)
{
    *out = PREFER_AUTO;
    if (text == NULL) {
        return WEIR_OK;
    }
    for (int i = 0; i < N_PREFERENCES; i++) {
        if (strcmp(text, preference_names[i]) == 0) {
            *out = (enum preference)i;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "transport \"%s\": expected auto, shm, tcp, ucx, rc or dc", text);
}

weir_status comm_check_config(const struct weir_comm_config *config, struct weir_error *err)
{
    enum preference preference;
    if (config->size < 1 || config->size > WEIR_COMM_MAX_RANKS) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%d ranks: expected 1 to %d", config->size,
                              WEIR_COMM_MAX_RANKS);
    }
    if (config->rank < 0 || config->rank >= config->size) {
        return weir_error_set(err, WEIR_ERR_INVALID, "rank %d of %d: expected 0 to %d",
                              config->rank, config->size, config->size - 1);
    }
    if (config->n_servers < 0 || config->n_servers >= config->size) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%d parameter servers among %d ranks leave no worker",
                              config->n_servers, config->size);
    }
    if (config->timeout_ms < 0 || config->join_timeout_ms < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a timeout is negative");
    }
    struct comm_plan plan;
    if (config->algorithm != NULL && strcmp(config->algorithm, "auto") != 0) {
        WEIR_TRY(comm_plan_parse(config->algorithm, &plan, err));
    }
    if ((config->size > 1 || config->is_elastic) &&
        (config->secret == NULL || config->secret[0] == '\0')) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a group of several ranks needs a secret");
    }
    if (config->is_elastic && config->n_servers > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "an elastic group cannot have parameter servers");
    }
    return parse_preference(config->transport, &preference, err);
}

/* ---- transport choice: every rank decides the same from the same table ---------------------- */

static weir_status open_transport(struct weir_comm *comm, const struct comm_transport *transport,
                                  struct rendezvous *rdv, struct weir_error *err)
{
    comm->transport = transport;
    weir_status status = transport->open(comm, rdv, err);
    if (status != WEIR_OK) {
        transport->close(comm);
        comm->transport = NULL;
    }
    return status;
}

/* Which ranks share a host: comm->host_of[r] is the first rank on rank r's. And the default
 * fabric: UCX where all ranks have RDMA. */
static weir_status find_hosts(struct weir_comm *comm, struct rendezvous *rdv,
                              enum preference preference, const char *label, struct weir_error *err)
{
    uint8_t bytes[2 * COMM_HOST_ID_BYTES + 24];
    char host[COMM_HOST_ID_BYTES];
    comm_host_id(host);
    struct wire_writer writer = {.data = bytes, .cap = sizeof bytes};
    wire_put_u32(&writer, (uint32_t)preference);
    wire_put_u32(&writer, ucx_has_rdma());
    wire_put_text(&writer, host);
    wire_put_text(&writer, label == NULL ? "" : label);
    struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
    WEIR_TRY(rendezvous_exchange(rdv, bytes, writer.len, table, err));
    bool has_rdma = true;
    comm->n_hosts = 0;
    for (int r = 0; r < comm->size; r++) {
        struct wire_reader reader = {.data = table[r].data, .left = table[r].len};
        if (wire_get_u32(&reader) != (uint32_t)preference || reader.is_bad) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "rank %d asks for another transport than rank %d (%s)", r,
                                  comm->rank, preference_names[preference]);
        }
        has_rdma = wire_get_u32(&reader) != 0 && has_rdma;
        int first = 0;
        while (first < r && (table[first].len != table[r].len ||
                             memcmp(table[first].data, table[r].data, table[r].len) != 0)) {
            first++;
        }
        comm->host_of[r] = first;
        comm->n_hosts += first == r;
    }
    if (preference < PREFER_TCP) {
        comm->fabric = has_rdma ? &ucx_fabric : &tcp_fabric;
    }
    return WEIR_OK;
}

/* ---- plan: rank 0's, so that no two ranks can choose differently ---------------------------- */

struct plan_message {
    int32_t status;
    uint32_t wire;
    struct comm_plan plan;
    char problem[WEIR_ERROR_MESSAGE_BYTES];
};

/** What a tuning file is searched by. */
static struct comm_plan_key plan_key(const struct weir_comm *comm)
{
    return (struct comm_plan_key){.transport =
                                      comm->ucx_kind == NULL ? comm->fabric->name : comm->ucx_kind,
                                  .n_ranks = comm->n_workers,
                                  .n_hosts = comm->n_hosts,
                                  .wire = comm->wire};
}

static weir_status own_plan(const struct weir_comm *comm, const struct weir_comm_config *config,
                            struct comm_plan *out, struct weir_error *err)
{
    const struct comm_plan_key key = plan_key(comm);
    if (config->algorithm != NULL && strcmp(config->algorithm, "auto") != 0) {
        return comm_plan_parse(config->algorithm, out, err);
    }
    if (config->tuning != NULL) {
        return comm_plan_load(config->tuning, &key, out, err);
    }
    comm_plan_default(&key, out);
    return WEIR_OK;
}

static weir_status share_plan(struct weir_comm *comm, const struct weir_comm_config *config,
                              struct rendezvous *rdv, struct weir_error *err)
{
    struct plan_message message = {.wire = (uint32_t)comm->wire};
    if (comm->rank == 0) {
        struct weir_error why = {.status = WEIR_OK};
        message.status = own_plan(comm, config, &message.plan, &why);
        (void)snprintf(message.problem, sizeof message.problem, "%s", why.message);
    }
    if (rdv != NULL) {
        struct rendezvous_blob table[WEIR_COMM_MAX_RANKS];
        WEIR_TRY(
            rendezvous_exchange(rdv, &message, comm->rank == 0 ? sizeof message : 0, table, err));
        if (table[0].len != sizeof message) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "rank 0 has no plan for all-reduces");
        }
        memcpy(&message, table[0].data, sizeof message);
    }
    if (message.status != WEIR_OK) {
        message.problem[sizeof message.problem - 1] = '\0';
        return weir_error_set(err, message.status, "%s", message.problem);
    }
    comm->plan = comm->first_plan = message.plan;
    comm->wire = (enum comm_wire)(message.wire % COMM_N_WIRES);
    return WEIR_OK;
}

static bool has_host_with_several(const struct weir_comm *comm)
{
    int n_alone = 0;
    for (int r = 0; r < comm->n_workers; r++) {
        n_alone += comm->host_of[r] == r;
    }
    return n_alone < comm->n_workers;
}

static weir_status open_messages(struct weir_comm *comm, const struct weir_comm_config *config,
                                 struct rendezvous *rdv, bool can_share, struct weir_error *err)
{
    WEIR_TRY(share_plan(comm, config, rdv, err));
    return open_transport(comm, can_share ? &comm_hier_transport : &comm_message_transport, rdv,
                          err);
}

static weir_status choose_transport(struct weir_comm *comm, const struct weir_comm_config *config,
                                    struct rendezvous *rdv, enum preference preference,
                                    struct weir_error *err)
{
    comm->n_hosts = 1;
    comm->ucx_kind = preference > PREFER_UCX ? preference_names[preference] : NULL;
    comm->fabric = preference >= PREFER_UCX ? &ucx_fabric : &tcp_fabric;
    if (rdv != NULL) {
        WEIR_TRY(find_hosts(comm, rdv, preference, config->host, err));
    }
    if (preference == PREFER_SHM && comm->n_hosts > 1) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "transport shm needs all ranks on one host, under one user and in one "
            "pid namespace; use auto, tcp or ucx");
    }
    if (preference >= PREFER_TCP || comm->n_hosts > 1) {
        bool can_share = preference == PREFER_AUTO && has_host_with_several(comm);
        return open_messages(comm, config, rdv, can_share, err);
    }
    weir_status status = open_transport(comm, &comm_shm_transport, rdv, err);
    if (status != WEIR_OK && comm->is_refused_by_all && preference == PREFER_AUTO) {
        /* The host forbids what sharing memory takes, or has none to share. */
        weir_log(WEIR_LOG_DEBUG, "comm_shm_unusable",
                 WEIR_KV_STR("reason", err == NULL ? "" : err->message));
        status = open_messages(comm, config, rdv, false, err);
    }
    return status;
}

/* ---- life ----------------------------------------------------------------------------------- */

struct weir_comm *comm_allocate(const struct weir_comm_config *config)
{
    struct weir_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        return NULL;
    }
    int timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : COMM_DEFAULT_TIMEOUT_MS;
    comm->rank = config->rank;
    comm->size = config->size;
    comm->n_workers = config->size - config->n_servers;
    comm->timeout_ns = (uint64_t)timeout_ms * 1000000;
    comm->wake_fd = -1;
    comm->failed_rank = -1;
    (void)pthread_mutex_init(&comm->lock, NULL);
    (void)pthread_mutex_init(&comm->failure_lock, NULL);
    (void)pthread_cond_init(&comm->changed, NULL);
    return comm;
}

weir_status comm_build(const struct weir_comm_config *config, struct rendezvous *rdv,
                       struct weir_comm **out, struct weir_error *err)
{
    enum preference preference;
    enum comm_wire wire;
    WEIR_TRY(parse_preference(config->transport, &preference, err));
    WEIR_TRY(comm_wire_parse(config->wire, &wire, err));
    struct weir_comm *comm = comm_allocate(config);
    if (comm == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the communicator");
    }
    comm->wire = wire;
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(choose_transport(comm, config, rdv, preference, err), status, destroy);
    WEIR_TRY_GOTO(comm_queue_start(comm, err), status, destroy);
    weir_log(WEIR_LOG_DEBUG, "comm_created", WEIR_KV_INT("rank", comm->rank),
             WEIR_KV_INT("size", comm->size), WEIR_KV_STR("transport", weir_comm_transport(comm)));
    *out = comm;
    return WEIR_OK;
destroy:
    weir_comm_destroy(comm);
    return status;
}

weir_status weir_comm_create(const struct weir_comm_config *config, struct weir_comm **out,
                             struct weir_error *err)
{
    struct weir_error own;
    struct weir_comm *comm = NULL;
    struct rendezvous *rdv = NULL;
    err = err == NULL ? &own : err;
    WEIR_TRY(comm_check_config(config, err));
    if (config->size > 1) {
        int join_ms = config->join_timeout_ms > 0 ? config->join_timeout_ms : config->timeout_ms;
        join_ms = join_ms > 0 ? join_ms : COMM_DEFAULT_TIMEOUT_MS;
        WEIR_TRY(rendezvous_join(config, weir_mono_ns() + (uint64_t)join_ms * 1000000, &rdv, err));
    }
    weir_status status = comm_build(config, rdv, &comm, err);
    rendezvous_close(rdv);
    if (status == WEIR_OK && config->is_elastic) {
        status = comm_elastic_begin(comm, config, err);
    }
    if (status != WEIR_OK) {
        weir_comm_destroy(comm);
        return status;
    }
    *out = comm;
    return WEIR_OK;
}

void weir_comm_destroy(struct weir_comm *comm)
{
    if (comm == NULL) {
        return;
    }
    comm_elastic_end(comm);
    comm_queue_stop(comm);
    if (comm->transport != NULL) {
        comm->transport->close(comm);
    }
    if (comm->wake_fd >= 0) {
        (void)close(comm->wake_fd);
    }
    (void)pthread_cond_destroy(&comm->changed);
    (void)pthread_mutex_destroy(&comm->failure_lock);
    (void)pthread_mutex_destroy(&comm->lock);
    comm_ps_worker_close(comm);
    free(comm->ps_room);
    free(comm);
}

int weir_comm_rank(const struct weir_comm *comm)
{
    return comm->rank;
}

int weir_comm_size(const struct weir_comm *comm)
{
    return comm->size;
}

int weir_comm_n_workers(const struct weir_comm *comm)
{
    return comm->n_workers;
}

const char *weir_comm_transport(const struct weir_comm *comm)
{
    return comm->transport == &comm_message_transport ? comm->fabric->name : comm->transport->name;
}

/* ---- failure -------------------------------------------------------------------------------- */

weir_status comm_fail(struct weir_comm *comm, weir_status status, int rank, const char *fmt, ...)
{
    (void)pthread_mutex_lock(&comm->failure_lock);
    weir_status first = atomic_load(&comm->failed);
    if (first == WEIR_OK) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(comm->failure.message, sizeof comm->failure.message, fmt, args);
        va_end(args);
        comm->failure.status = status;
        comm->failed_rank = rank;
        atomic_store(&comm->failed, status);
        weir_log(WEIR_LOG_DEBUG, "comm_failed", WEIR_KV_INT("rank", comm->rank),
                 WEIR_KV_STR("reason", comm->failure.message));
        first = status;
    }
    (void)pthread_mutex_unlock(&comm->failure_lock);
    return first;
}

weir_status comm_failed(struct weir_comm *comm)
{
    return atomic_load(&comm->failed);
}

weir_status weir_comm_failure(struct weir_comm *comm, int *out_rank, struct weir_error *err)
{
    (void)pthread_mutex_lock(&comm->failure_lock);
    weir_status status = atomic_load(&comm->failed);
    if (out_rank != NULL) {
        *out_rank = comm->failed_rank;
    }
    if (err != NULL) {
        *err = comm->failure;
    }
    (void)pthread_mutex_unlock(&comm->failure_lock);
    return status;
}

uint64_t comm_deadline_ns(const struct weir_comm *comm)
{
    return weir_mono_ns() + comm->timeout_ns;
}

/* ---- collectives: the caller's thread takes the execution lock ------------------------------ */

/* A mistake of the caller alone: nothing was sent, the communicator stays good. */
static weir_status start_collective(struct weir_comm *comm)
{
    return comm->rank >= comm->n_workers ? WEIR_ERR_INVALID : comm_execution_lock(comm);
}

weir_status weir_comm_alloc(struct weir_comm *comm, size_t bytes, void **out)
{
    if (bytes == 0) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(start_collective(comm));
    weir_status status = comm->transport->alloc(comm, bytes, out);
    comm_execution_unlock(comm);
    return status;
}

/** One of the transport's sums, with the execution lock, and `n_passes` of the two times that a
 *  part of each sum goes over an emulated link. */
static weir_status carry_out(struct weir_comm *comm,
                             weir_status (*sum)(struct weir_comm *comm, void *buf, size_t n_elems,
                                                enum weir_comm_type type),
                             size_t n_passes, void *buf, size_t n_elems, enum weir_comm_type type)
{
    WEIR_TRY(start_collective(comm));
    weir_status status = sum(comm, buf, n_elems, type);
    comm_link_carry(comm, comm_allreduce_link_bytes(comm, n_elems, type) * n_passes / 2);
    comm_execution_unlock(comm);
    return status;
}

weir_status weir_comm_allreduce(struct weir_comm *comm, void *buf, size_t n_elems,
                                enum weir_comm_type type)
{
    return carry_out(comm, comm->transport->allreduce, 2, buf, n_elems, type);
}

weir_status weir_comm_reduce_scatter(struct weir_comm *comm, void *buf, size_t n_elems,
                                     enum weir_comm_type type)
{
    return carry_out(comm, comm->transport->reduce_scatter, 1, buf, n_elems, type);
}

weir_status weir_comm_allgather(struct weir_comm *comm, void *buf, size_t n_elems,
                                enum weir_comm_type type)
{
    return carry_out(comm, comm->transport->allgather, 1, buf, n_elems, type);
}

void weir_comm_slice(const struct weir_comm *comm, size_t n_elems, int rank, size_t *out_first,
                     size_t *out_n)
{
    struct comm_slice slice = comm_slice(n_elems, comm->n_workers, rank);
    *out_first = slice.first;
    *out_n = slice.n;
}

weir_status weir_comm_broadcast(struct weir_comm *comm, void *buf, size_t bytes, int root)
{
    if (root < 0 || root >= comm->n_workers) {
        return WEIR_ERR_INVALID;
    }
    WEIR_TRY(start_collective(comm));
    weir_status status = comm->transport->broadcast(comm, buf, bytes, root);
    comm_execution_unlock(comm);
    return status;
}

weir_status weir_comm_barrier(struct weir_comm *comm)
{
    WEIR_TRY(start_collective(comm));
    weir_status status = comm->transport->barrier(comm);
    comm_execution_unlock(comm);
    return status;
}

weir_status weir_comm_set_algorithm(struct weir_comm *comm, const char *algorithm,
                                    struct weir_error *err)
{
    struct comm_plan plan;
    bool is_auto = strcmp(algorithm, "auto") == 0;
    if (!is_auto) {
        WEIR_TRY(comm_plan_parse(algorithm, &plan, err));
    }
    weir_status status = comm_execution_lock(comm);
    if (status != WEIR_OK) {
        return weir_comm_failure(comm, NULL, err);
    }
    comm->plan = is_auto ? comm->first_plan : plan;
    comm_execution_unlock(comm);
    return WEIR_OK;
}

bool weir_comm_has_algorithms(const struct weir_comm *comm)
{
    return comm->first_plan.n_rules > 0;
}

void weir_comm_algorithm(const struct weir_comm *comm, uint64_t bytes, char *out, size_t out_size)
{
    char text[WEIR_COMM_ALGORITHM_BYTES] = "in-place";
    if (weir_comm_has_algorithms(comm)) {
        struct comm_plan one = {.n_rules = 1, .rules = {*comm_plan_choose(&comm->plan, bytes)}};
        comm_plan_print(&one, text);
    }
    (void)snprintf(out, out_size, "%.*s", (int)out_size - 1, text);
}

weir_status weir_comm_tuning_save(const struct weir_comm *comm, const char *path,
                                  const char *algorithm, struct weir_error *err)
{
    struct comm_plan plan;
    WEIR_TRY(comm_plan_parse(algorithm, &plan, err));
    if (!weir_comm_has_algorithms(comm)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: nothing to choose from in shared memory", path);
    }
    const struct comm_plan_key key = plan_key(comm);
    return comm_plan_save(path, &key, &plan, err);
}
