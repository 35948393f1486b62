#include "server/server.h"

#include "control/engine.h"
#include "control/serving.h"
#include "control/supplier.h"
#include "control/vitals.h"
#include "server/bootstrap.h"
#include "server/local_agent.h"
#include "server/privacy.h"

#include "api/api.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "blob/blob.h"
#include "capture/snapshot.h"
#include "cluster/cluster.h"
#include "gateway/figures.h"
#include "gateway/gateway.h"
#include "http/http.h"
#include "ion/policy_drift.h"
#include "job/node_watch.h"
#include "notify/sender.h"
#include "nouns/nouns.h"
#include "proxy/proxy.h"
#include "retain/retain.h"
#include "store/pulse.h"
#include "store/set_clock.h"
#include "store/store.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOP_DEADLINE_MS     3000
#define AGENTS_QUEUED_MAX    4096 /* as many as connections: what they say is short */
#define TASKS_QUEUED_MAX     1024
#define HEAP_PIECE_MAX_BYTES (256 << 10)

/* Everything that is open, in the order it was opened. */
struct server {
    const struct weir_server_config *config;
    struct weir_arena arena;
    char *state; /**< Absolute. */
    char *url;
    const char *onnxruntime; /**< Absolute; NULL: the system's. */
    const char *grpc;        /**< Where gRPC is answered; NULL: nowhere. */
    unsigned char task_key[BOOTSTRAP_TASK_KEY_BYTES];
    int lock_fd, signal_fd;
    int64_t started_ms;
    struct privacy *privacy;
    struct local_agent *agent;
    bool is_announced; /**< server.json is ours. */
    struct weir_store *store;
    struct weir_blobs *blobs;
    struct weir_packs *pictures;
    struct weir_retainer *retainer;
    struct vitals vitals; /**< Once there is a store. */
    struct weir_gateway *gateway;
    struct serving *serving; /**< Keeps the gateway's table. */
    struct weir_api *api;
    struct weir_http_server *http;
    struct weir_proxy *proxy;
    struct weir_http_server *services; /**< The proxy's listener; NULL: there is none. */
    struct weir_sender *sender;        /**< Of alerts. Set before requests come in. */
    struct supplier *supplier;         /**< It brings nodes of clusters; the engine notifies it. */
    _Atomic(struct engine *) engine;   /**< Set while requests already come in. */
};

static void notify_engine(void *context)
{
    engine_notify(((struct server *)context)->engine);
}

static void notify_supplier(void *context)
{
    supplier_notify(((struct server *)context)->supplier);
}

static void notify_sender(void *context)
{
    weir_sender_notify(((struct server *)context)->sender);
}

static weir_status authorise(void *context, const char *token,
                             const struct weir_http_request *request, struct weir_arena *arena,
                             struct weir_gateway_caller *out, struct weir_error *err)
{
    return weir_api_authorise(((struct server *)context)->api, token, request, arena, out, err);
}

/* A request waits at a deployment that has no replica: the engine sees it in the deployment's load. */
static void on_request_waits(void *context, const char *deployment)
{
    (void)deployment;
    notify_engine(context);
}

static void publish_table(void *context, struct weir_gateway_table *table)
{
    weir_gateway_publish(((struct server *)context)->gateway, table);
}

static bool load_of(void *context, const char *deployment, struct weir_deploy_load *out)
{
    struct weir_gateway_load load;
    bool is_known = weir_gateway_load(((struct server *)context)->gateway, deployment, &load);
    *out = (struct weir_deploy_load){.n_outstanding = is_known ? load.n_in_flight : 0,
                                     .n_held = is_known ? load.n_held : 0};
    return is_known;
}

struct figures_of {
    const char *deployment;
    int64_t version, live, mirror, slow_us;
    struct weir_arena *arena;
    struct weir_ion_figures *out;
    bool is_known;
};

static char *outputs_of(const struct weir_gateway_figures *figures, struct weir_arena *arena)
{
    return weir_policy_outputs_text(figures->classes, figures->scores, arena);
}

static void see_figures(void *context, const struct weir_gateway_figures *figures)
{
    struct figures_of *of = context;
    if (strcmp(figures->deployment, of->deployment) != 0) {
        return;
    }
    of->is_known = true;
    if (figures->version == of->version) {
        of->out->made = figures->made;
        of->out->n_requests = figures->n_requests;
        of->out->n_failed = figures->n_failed;
        of->out->n_unaccepted = figures->n_unaccepted;
        of->out->n_slow = of->slow_us > 0 ? weir_gateway_figures_slow(figures, of->slow_us) : 0;
        of->out->outputs = outputs_of(figures, of->arena);
    }
    if (of->live > 0 && figures->version == of->live) {
        of->out->live_outputs = outputs_of(figures, of->arena);
        of->out->live_made = figures->made;
        of->out->live_requests = figures->n_requests;
        of->out->live_unaccepted = figures->n_unaccepted;
    }
    if (of->mirror > 0 && figures->version == of->mirror) {
        of->out->n_compared = figures->n_mirrored;
        of->out->n_disagreed = figures->n_disagreed;
        of->out->compared_us = figures->compared_us;
        of->out->copies_us = figures->copies_us;
        bool is_copy = of->mirror == of->version; /* else it was asked first */
        of->out->n_only = is_copy ? figures->n_only_copy : figures->n_only_first;
        of->out->n_neither = figures->n_neither;
        of->out->live_only = is_copy ? figures->n_only_first : figures->n_only_copy;
    }
}

static bool figures_of(void *context, const char *deployment, int64_t version, int64_t live,
                       int64_t mirror, int64_t slow_us, struct weir_arena *arena,
                       struct weir_ion_figures *out)
{
    struct server *server = context;
    *out = (struct weir_ion_figures){.server_ms = server->started_ms};
    struct figures_of of = {deployment, version, live, mirror, slow_us, arena, out, false};
    weir_gateway_figures_each(server->gateway, see_figures, &of);
    return of.is_known;
}

static weir_status open_gateway(struct server *server, struct weir_error *err)
{
    struct weir_gateway_config config = {.authorise = authorise,
                                         .authorise_context = server,
                                         .start = on_request_waits,
                                         .start_context = server,
                                         .version = WEIR_VERSION,
                                         .key = server->task_key};
    WEIR_TRY(weir_gateway_create(&config, &server->gateway, err));
    return serving_start(server->store, publish_table, server, &server->serving, err);
}

static char *path_in(struct server *server, const char *name)
{
    return weir_arena_printf(&server->arena, "%s/%s", server->state, name);
}

/* Whoever uses it has another working directory. */
static weir_status find_onnxruntime(struct server *server, struct weir_error *err)
{
    if (server->config->onnxruntime == NULL) {
        return WEIR_OK;
    }
    char *absolute = realpath(server->config->onnxruntime, NULL);
    if (absolute == NULL) {
        return weir_error_set_errno(err, errno, "--onnxruntime %.300s",
                                    server->config->onnxruntime);
    }
    server->onnxruntime = weir_arena_strdup(&server->arena, absolute);
    free(absolute);
    return WEIR_OK;
}

/* From here on the server's time goes on evenly, where the server before left it if the machine runs since. */
static weir_status keep_clock_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t offset_ms;
    (void)context;
    WEIR_TRY(weir_clock_kept(txn, &offset_ms, err));
    weir_clock_steady(offset_ms);
    return weir_clock_keep(txn, weir_clock_offset_ms(), weir_time_ms(), err);
}

static weir_status open_state(struct server *server, struct weir_error *err)
{
    WEIR_TRY(find_onnxruntime(server, err));
    WEIR_TRY(weir_dir_make(server->config->state, 0700, err));
    char *absolute = realpath(server->config->state, NULL);
    if (absolute == NULL) {
        return weir_error_set_errno(err, errno, "cannot resolve %s", server->config->state);
    }
    server->state = weir_arena_strdup(&server->arena, absolute);
    free(absolute);
    WEIR_TRY(privacy_close_folder(server->state, err));
    weir_status status =
        weir_file_lock_after(path_in(server, "server.lock"), &server->lock_fd, err);
    if (status == WEIR_ERR_CONFLICT) {
        return weir_error_set(
            err, WEIR_ERR_CONFLICT,
            "another server uses the state folder %s: stop it first (`weir server stop`), or "
            "choose another folder with --state",
            server->state);
    }
    if (status != WEIR_OK) {
        (void)weir_error_prefix(err, "the state folder %s cannot be used: ", server->state);
        return status;
    }
    WEIR_TRY(privacy_start(server->state, &server->privacy, err));
    struct weir_store_config store = {.path = path_in(server, "weir.db"), .noun_at = weir_noun_at};
    WEIR_TRY(weir_store_open(&store, &server->store, err));
    WEIR_TRY(weir_store_write(server->store, keep_clock_in, NULL, err));
    WEIR_TRY(weir_blobs_open(path_in(server, "blobs"), &server->blobs, err));
    vitals_init(&server->vitals, server->store, server->blobs, server->state);
    /* Whoever was sending when the server was killed sends again: half an upload is of no use. */
    WEIR_TRY(weir_dir_remove(path_in(server, "uploads"), err));
    WEIR_TRY(weir_dir_make(path_in(server, "uploads"), 0700, err));
    const struct weir_capture capture = {.state_dir = server->state, .blobs = server->blobs};
    WEIR_TRY(weir_snapshots_sweep(server->store, &capture, err));
    WEIR_TRY(weir_packs_open(path_in(server, "pictures"), 0, &server->pictures, err));
    struct weir_retainer_config retainer = {.store = server->store,
                                            .blobs = server->blobs,
                                            .pictures = server->pictures,
                                            .state_dir = server->state};
    server->retainer = weir_retainer_create(&retainer);
    const char *node = server->config->node;
    return bootstrap(server->store, server->state,
                     node != NULL ? node : weir_cluster_node_name(&server->arena), &server->arena,
                     server->task_key, err);
}

/* Loud where others than this machine can connect. */
static void warn_of_network(const char *listen, const char *effect)
{
    if (strncmp(listen, "127.", 4) != 0 && strncmp(listen, "[::1]", 5) != 0 &&
        strncmp(listen, "localhost:", 10) != 0) {
        weir_log(WEIR_LOG_WARN, "listening_without_tls", WEIR_KV_STR("listen", listen),
                 WEIR_KV_STR("effect", effect));
    }
}

static weir_status listen_http(struct server *server, struct weir_error *err)
{
    struct weir_api_config api = {.store = server->store,
                                  .blobs = server->blobs,
                                  .retainer = server->retainer,
                                  .pictures = server->pictures,
                                  .vitals = &server->vitals,
                                  .state_dir = server->state,
                                  .task_key = server->task_key,
                                  .proofs = server->config->proofs,
                                  .artifact_max_bytes = server->config->artifact_max_bytes,
                                  .notify = notify_engine,
                                  .notify_context = server,
                                  .onnxruntime = server->onnxruntime,
                                  .told = notify_sender,
                                  .told_context = server,
                                  .gateway = server->gateway};
    struct weir_http_config http = {
        .listen = server->config->listen,
        .n_classes = WEIR_API_CLASSES,
        .has_upgrades = true, /* visits */
        .max_queued_of =
            {[WEIR_API_AGENTS] = AGENTS_QUEUED_MAX, [WEIR_API_TASKS] = TASKS_QUEUED_MAX},
        .body_rule = weir_api_body_rule,
        .admit = weir_api_admit,
        .upload_dir = path_in(server, "uploads"),
        .tls_cert_file = server->config->tls_cert,
        .tls_key_file = server->config->tls_key,
        .content_security_policy = weir_api_content_security_policy};
    WEIR_TRY(weir_api_create(&api, &server->api, err));
    WEIR_TRY(weir_http_server_start(&http, weir_api_handle, server->api, &server->http, err));
    const char *colon = strrchr(server->config->listen, ':');
    int host_len = colon != NULL ? (int)(colon - server->config->listen) : 0;
    const char *scheme = server->config->tls_cert != NULL ? "https" : "http";
    bool is_any = strncmp(server->config->listen, "0.0.0.0:", 8) == 0 ||
                  strncmp(server->config->listen, "[::]:", 5) == 0;
    server->url =
        is_any ? weir_arena_printf(&server->arena, "%s://127.0.0.1:%d", scheme,
                                   weir_http_server_port(server->http))
               : weir_arena_printf(&server->arena, "%s://%.*s:%d", scheme, host_len,
                                   server->config->listen, weir_http_server_port(server->http));
    weir_api_attach(server->api, server->http, server->url);
    if (server->config->tls_cert == NULL) {
        warn_of_network(server->config->listen,
                        "passwords, tokens and frames cross the network unencrypted: give "
                        "--tls-cert and --tls-key, or listen on 127.0.0.1");
    }
    return WEIR_OK;
}

static weir_status listen_grpc(struct server *server, struct weir_error *err)
{
    const char *listen = server->config->grpc_listen;
    if (listen == NULL) {
        return WEIR_OK;
    }
    int port;
    WEIR_TRY(weir_gateway_grpc_start(server->gateway, listen, &port, err));
    server->grpc = weir_arena_printf(&server->arena, "%.*s:%d",
                                     (int)(strrchr(listen, ':') - listen), listen, port);
    warn_of_network(server->grpc,
                    "tokens and tensors cross the network unencrypted: put a proxy that "
                    "ends TLS in front, or listen on 127.0.0.1");
    return WEIR_OK;
}

/* The port behind the console's, on its host. */
static char *default_services_listen(struct server *server)
{
    const char *listen = server->config->listen, *colon = strrchr(listen, ':');
    int port = colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
    return weir_arena_printf(&server->arena, "%.*s:%d", (int)(colon != NULL ? colon - listen : 0),
                             listen, port > 0 && port < 65535 ? port + 1 : 0);
}

static weir_status start_services(struct server *server, const char *listen, struct weir_error *err)
{
    struct weir_http_config http = {.listen = listen,
                                    .n_handlers = 4,
                                    .n_io_threads = 1,
                                    .has_upgrades = true,
                                    .body_rule = weir_proxy_body_rule,
                                    .admit = weir_proxy_admit,
                                    .tls_cert_file = server->config->tls_cert,
                                    .tls_key_file = server->config->tls_key};
    return weir_http_server_start(&http, weir_proxy_handle, server->proxy, &server->services, err);
}

/* Where browsers find services: an origin of its own, so that their pages are no pages of the console. */
static weir_status listen_services(struct server *server, struct weir_error *err)
{
    const char *listen = server->config->services_listen;
    struct weir_proxy_config proxy = {.ops = &weir_api_proxy_ops,
                                      .context = server->api,
                                      .domain = server->config->services_domain,
                                      .console_url = server->config->public_url,
                                      .console_port = weir_http_server_port(server->http)};
    if (listen != NULL && strcmp(listen, "off") == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_proxy_create(&proxy, &server->proxy, err));
    const char *wanted = listen != NULL ? listen : default_services_listen(server);
    weir_status status = start_services(server, wanted, err);
    if (status == WEIR_ERR_CONFLICT && listen == NULL) {
        weir_log(WEIR_LOG_WARN, "services_port_taken", WEIR_KV_STR("listen", wanted),
                 WEIR_KV_STR("effect", "services are found at another port, which changes with "
                                       "every start: give --services-listen"));
        const char *any = weir_arena_printf(&server->arena, "%.*s:0",
                                            (int)(strrchr(wanted, ':') - wanted), wanted);
        status = start_services(server, any, err);
    }
    if (status == WEIR_OK) {
        weir_api_attach_services(server->api, proxy.domain,
                                 weir_http_server_port(server->services));
    }
    return status;
}

static weir_status announce(struct server *server, struct weir_error *err)
{
    json_t *about = json_pack("{s:s,s:i,s:s,s:s*}", "url", server->url, "pid", (int)getpid(),
                              "version", WEIR_VERSION, "grpc", server->grpc);
    char *text = weir_json_text(about, &server->arena);
    json_decref(about);
    const char *path = path_in(server, "server.json");
    weir_status status = weir_file_write_atomic(path, text, strlen(text), 0600, err);
    if (status == WEIR_ERR_NOSPACE && weir_path_exists(path)) {
        status = weir_file_write(path, text, strlen(text), 0600, err); /* it needs no inode */
    }
    WEIR_TRY(status);
    server->is_announced = true;
    weir_log(WEIR_LOG_INFO, "server_ready", WEIR_KV_STR("url", server->url),
             WEIR_KV_STR("state", server->state), WEIR_KV_STR("version", WEIR_VERSION));
    return WEIR_OK;
}

static weir_status start_agent(struct server *server, struct weir_error *err)
{
    if (!server->config->has_agent) {
        return WEIR_OK;
    }
    struct weir_local_agent agent = {.dir = path_in(server, "agent"),
                                     .server = server->url,
                                     .ca_file = server->config->ca_file,
                                     .node = server->config->node,
                                     .cpu_slots = server->config->cpu_slots,
                                     .shares = server->config->shares,
                                     .onnxruntime = server->onnxruntime,
                                     .task_users = server->config->task_users};
    if (server->config->renew_agent != NULL) {
        server->config->renew_agent(agent.dir);
    }
    return local_agent_start(&agent, &server->agent, err);
}

/* Answers of megabytes go back to the system when they have been sent: left alone, glibc takes the size of
 * the largest one that was freed for usual, and keeps such pieces in the pool of every thread. */
static void bound_heap(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_PIECE_MAX_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, 4 * HEAP_PIECE_MAX_BYTES);
}

static weir_status start_all(struct server *server, struct weir_error *err)
{
    bound_heap();
    if (server->config->node_timeout_s > 0) {
        weir_node_set_timeout_ms(server->config->node_timeout_s * 1000);
    }
    WEIR_TRY(open_state(server, err));
    const struct weir_sender_config sender = {.store = server->store};
    WEIR_TRY(open_gateway(server, err));
    WEIR_TRY(weir_sender_start(&sender, &server->sender, err));
    WEIR_TRY(listen_http(server, err));
    WEIR_TRY(listen_services(server, err));
    WEIR_TRY(listen_grpc(server, err));
    struct engine_config engine = {.store = server->store,
                                   .listener = weir_api_listener(server->api),
                                   .blobs = server->blobs,
                                   .freezer = weir_api_freezer(server->api),
                                   .state_dir = server->state,
                                   .server_url = server->url,
                                   .vitals = &server->vitals,
                                   .load = load_of,
                                   .figures = {figures_of, server},
                                   .load_context = server,
                                   .asked = notify_supplier,
                                   .asked_context = server,
                                   .told = notify_sender,
                                   .told_context = server};
    const struct supplier_config supplier = {.store = server->store,
                                             .listener = weir_api_listener(server->api),
                                             .changed = notify_engine,
                                             .changed_context = server,
                                             .state_dir = server->state,
                                             .server_url = server->url};
    struct engine *started;
    server->started_ms = weir_time_ms();
    WEIR_TRY(supplier_start(&supplier, &server->supplier, err));
    WEIR_TRY(engine_start(&engine, &started, err));
    server->engine = started;
    WEIR_TRY(weir_retainer_start(server->retainer, err));
    WEIR_TRY(announce(server, err));
    WEIR_TRY(weir_store_check_start(server->store, err));
    return start_agent(server, err);
}

static void stop_all(struct server *server)
{
    if (server->is_announced) {
        /* What it says is over: nobody is to call this address or signal this process any more. */
        (void)unlink(path_in(server, "server.json"));
    }
    local_agent_stop(server->agent);
    weir_api_stop(server->api);
    /* The engine's commits wake the HTTP server, whose requests notify the engine: each is still
     * there when the other ends. */
    engine_stop(server->engine);
    supplier_stop(server->supplier);
    weir_sender_stop(server->sender);
    serving_stop(server->serving);
    weir_proxy_stop(server->proxy);
    weir_http_server_stop(server->services, STOP_DEADLINE_MS);
    weir_proxy_destroy(server->proxy);
    weir_gateway_stop(server->gateway); /* the HTTP server waits for the requests it has */
    weir_http_server_stop(server->http, STOP_DEADLINE_MS);
    engine_destroy(server->engine);
    weir_sender_destroy(server->sender);
    weir_api_destroy(server->api);
    weir_gateway_destroy(server->gateway);
    weir_retainer_destroy(server->retainer);
    weir_packs_close(server->pictures);
    weir_blobs_close(server->blobs);
    weir_store_close(server->store);
    privacy_stop(server->privacy);
    if (server->signal_fd >= 0) {
        (void)close(server->signal_fd);
    }
    if (server->lock_fd >= 0) {
        (void)close(server->lock_fd);
    }
    weir_arena_fini(&server->arena);
}

/* Signals are read, not handled: blocked before the first thread starts. */
static weir_status block_signals(struct server *server, struct weir_error *err)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) {
        return weir_error_set_errno(err, errno, "cannot block signals");
    }
    server->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    return server->signal_fd >= 0 ? WEIR_OK
                                  : weir_error_set_errno(err, errno, "cannot read signals");
}

weir_status weir_server_run(const struct weir_server_config *config, struct weir_error *err)
{
    struct server server = {.config = config, .lock_fd = -1, .signal_fd = -1};
    weir_arena_init(&server.arena, 0);
    (void)umask(077); /* what the state folder holds is its owner's alone */
    weir_status status = block_signals(&server, err);
    if (status == WEIR_OK) {
        status = start_all(&server, err);
    }
    if (status == WEIR_ERR_NOSPACE) {
        (void)weir_error_prefix(
            err, "the disk of the state folder can hold no more: make room on it, or remove "
                 "files if its inodes are used up (df -i): ");
    }
    if (status == WEIR_OK && config->on_ready != NULL) {
        config->on_ready(config->context);
    }
    if (status == WEIR_OK) {
        struct signalfd_siginfo info;
        while (read(server.signal_fd, &info, sizeof info) < 0 && errno == EINTR) {
        }
        weir_log(WEIR_LOG_INFO, "server_stopping", WEIR_KV_INT("signal", (int64_t)info.ssi_signo));
    }
    stop_all(&server);
    return status;
}
