/** weir server, agent, train, evaluate: start something on this machine. */
#include "cli/admin/background.h"
#include "cli/command.h"

#include "agent/agent.h"
#include "agent/lock.h"
#include "base/log.h"
#include "base/quantity.h"
#include "server/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGENT_PATIENCE_MS 10000 /* of one that is told to end */

/* ---- server ---------------------------------------------------------------------------------- */

struct server_options {
    struct cli_common common;
    char *listen, *grpc_listen, *services_listen, *services_domain, *public_url, *tls_cert,
        *tls_key, *node, *log_level, *shares, *onnxruntime;
    char *artifact_max, *proofs;
    int64_t cpu_slots, task_users, node_timeout_s;
    bool has_agent, is_json_log, is_background;
};

static const struct weir_option server_options[] = {
    {.name = "state",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct server_options, common.state),
     .arg = "DIR",
     .doc = "State folder [/var/lib/weir as root, else ~/.local/share/weir]"},
    WEIR_OPT(server_options, listen, "listen", 0, TEXT, "127.0.0.1:8470", 0, 0, "ADDRESS",
             "Where to listen; port 0 takes any free one"),
    CLI_TEXT(server_options, grpc_listen, "grpc-listen", 0, "ADDRESS",
             "Where to answer inference requests by gRPC, without TLS (else nowhere)"),
    CLI_TEXT(server_options, services_listen, "services-listen", 0, "ADDRESS",
             "Where browsers find services and notebooks [the port behind that of --listen]; off: "
             "nowhere"),
    CLI_TEXT(server_options, services_domain, "services-domain", 0, "HOST[:PORT]",
             "Give each service a host below this one, which separates them from each other"),
    CLI_TEXT(
        server_options, public_url, "public-url", 0, "URL",
        "The console as browsers reach it, if services are on another host (else as they name it)"),
    CLI_TEXT(server_options, proofs, "proofs", 0, "KINDS",
             "How people and programs may prove who they are, in the order of the login page, with "
             "commas: password,{kind: link, minutes: 5},token [password,link,basic,token]; weir "
             "explain proofs says more"),
    CLI_TEXT(server_options, tls_cert, "tls-cert", 0, "FILE", "Certificate (PEM): serve https"),
    CLI_TEXT(server_options, tls_key, "tls-key", 0, "FILE", "Its key (PEM)"),
    CLI_TEXT(server_options, common.ca_file, "ca-file", 0, "FILE",
             "Authorities that this machine's agent trusts for https (else the system's)"),
    WEIR_OPT(server_options, has_agent, "agent", 0, BOOL, "true", 0, 0, NULL,
             "Start this machine's agent (--no-agent: do not)"),
    CLI_TEXT(server_options, node, "node", 0, "NAME", "Name of this machine's node [host name]"),
    WEIR_OPT(server_options, cpu_slots, "cpu-slots", 0, INT, "0", 0, 4096, "N",
             "Tasks that fit on this machine at once; 0: one per CPU, at least 2"),
    CLI_LIST(server_options, shares, "share", 0, "DIR[:rw]",
             "Show this folder to tasks on this machine as theirs, to read or (:rw) to change; may "
             "be repeated"),
    CLI_TEXT(server_options, onnxruntime, "onnxruntime", 0, "PATH",
             "The library onnxruntime, or its folder, for models that Weir cannot run itself: for "
             "pushed models and this machine's agent (else the system's)"),
    WEIR_OPT(server_options, task_users, "task-users", 0, INT, "70000", 1000, 4000000000, "N",
             "First of the 4096 user numbers that this machine's jobs are given"),
    WEIR_OPT(server_options, node_timeout_s, "node-timeout", 0, INT, "15", 10, 3600, "SECONDS",
             "A node that has not been heard of for so long is lost: its tasks are started "
             "elsewhere. Agents report every 5 s"),
    WEIR_OPT(server_options, artifact_max, "artifact-max", 0, TEXT, "64GiB", 0, 0, "SIZE",
             "Size that one file of a run may have"),
    CLI_FLAG(server_options, is_background, "background", 0,
             "Return when the server answers, and let it go on; its log is where this command's "
             "standard error is"),
    WEIR_OPT(server_options, log_level, "log-level", 0, TEXT, "info", 0, 0, "LEVEL",
             "error, warn, info or debug"),
    CLI_FLAG(server_options, is_json_log, "log-json", 0, "Log JSON lines"),
    CLI_HELP_OPTION(server_options),
};

static weir_status set_log(const char *level_text, bool is_json, struct weir_error *err)
{
    enum weir_log_level level;
    if (!weir_log_level_from_text(level_text, &level)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--log-level: expected error, warn, info or debug, got "
                              "\"%.40s\"",
                              level_text);
    }
    weir_log_set_level(level);
    weir_log_set_json(is_json);
    return WEIR_OK;
}

static weir_status read_artifact_max(const char *text, uint64_t *out, struct weir_error *err)
{
    int64_t bytes;
    if (!weir_bytes_parse(text, &bytes) || bytes < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--artifact-max: expected a size, as 64GiB, got \"%.40s\"", text);
    }
    *out = (uint64_t)bytes;
    return WEIR_OK;
}

static void tell_ready(void *fd)
{
    cli_background_ready(*(int *)fd);
}

/* An upgrade leaves the agent of before running. It outlives servers so that tasks are looked after, not so that it
 * stays old. */
static void renew_agent(const char *dir)
{
    char lock[4096], exe[64];
    struct stat own, its;
    struct process_id holder;
    struct weir_error err;
    enum weir_lock_end how;
    int fd;
    const char *path = lock;
    (void)snprintf(lock, sizeof lock, "%s/lock", dir);
    weir_lock_holders(&path, 1, &holder);
    (void)snprintf(exe, sizeof exe, "/proc/%d/exe", (int)holder.pid);
    if (holder.pid == 0 || stat("/proc/self/exe", &own) != 0 || stat(exe, &its) != 0 ||
        (own.st_dev == its.st_dev && own.st_ino == its.st_ino)) {
        return;
    }
    weir_log(WEIR_LOG_INFO, "agent_renewed", WEIR_KV_INT("pid", (int64_t)holder.pid),
             WEIR_KV_STR("why", "it is of another version than the server; its tasks go on"));
    if (weir_lock_take_over(lock, AGENT_PATIENCE_MS, &fd, &how, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "agent_not_renewed", WEIR_KV_STR("error", err.message));
        return;
    }
    (void)close(fd);
}

static weir_status run_server(struct cli_call *call, struct weir_error *err)
{
    const struct server_options *options = call->options;
    struct weir_server_config config = {.state = cli_state_dir(call->arena, options->common.state),
                                        .listen = options->listen,
                                        .grpc_listen = options->grpc_listen,
                                        .services_listen = options->services_listen,
                                        .services_domain = options->services_domain,
                                        .public_url = options->public_url,
                                        .proofs = options->proofs,
                                        .tls_cert = options->tls_cert,
                                        .tls_key = options->tls_key,
                                        .ca_file = options->common.ca_file,
                                        .has_agent = options->has_agent,
                                        .cpu_slots = options->cpu_slots,
                                        .node = options->node,
                                        .shares = options->shares,
                                        .onnxruntime = options->onnxruntime,
                                        .node_timeout_s = options->node_timeout_s,
                                        .renew_agent = renew_agent,
                                        .task_users = options->task_users};
    WEIR_TRY(set_log(options->log_level, options->is_json_log, err));
    WEIR_TRY(read_artifact_max(options->artifact_max, &config.artifact_max_bytes, err));
    WEIR_TRY(weir_agent_shares_check(options->shares, err));
    int ready_fd;
    if (options->is_background) {
        WEIR_TRY(cli_background_start(&ready_fd, err));
        config.on_ready = tell_ready;
        config.context = &ready_fd;
    }
    return weir_server_run(&config, err);
}

const struct cli_command cli_server = {
    .name = "server",
    .usage = "[--state DIR] [--listen ADDRESS]",
    .summary = "Run the server",
    .help = "Keeps everything in its state folder, and starts this machine's agent. Loopback only "
            "unless\n"
            "--listen says otherwise. `weir server stop` ends it; agents and tasks go on.",
    CLI_OPTIONS(server_options, server_options),
    .run = run_server,
};

/* ---- training and evaluation: weir-worker does it, or a job -------------------------------------
 */

weir_status cli_exec_worker(struct cli_call *call, const char *role, int i_first,
                            struct weir_error *err)
{
    char **argv = WEIR_ARENA_ARRAY(call->arena, (size_t)call->argc + 3, char *);
    size_t n = 0;
    argv[n++] = weir_arena_strdup(call->arena, "weir-worker");
    argv[n++] = weir_arena_strdup(call->arena, role);
    for (int i = i_first; i < call->argc; i++) {
        argv[n++] = call->argv[i];
    }
    (void)fflush(stdout);
    return cli_exec_beside("weir-worker", argv, err);
}

static weir_status run_train(struct cli_call *call, struct weir_error *err)
{
    static const char *const of_jobs[] = {"--cpus",    "--memory",          "--gpus",
                                          "--project", "--hold-on-failure", "--follow"};
    for (int i = 0; i < call->argc; i++) {
        for (size_t k = 0; k < WEIR_ARRAY_LEN(of_jobs); k++) {
            size_t len = strlen(of_jobs[k]);
            if (strncmp(call->argv[i], of_jobs[k], len) == 0 &&
                (call->argv[i][len] == '\0' || call->argv[i][len] == '=')) {
                return weir_error_set(err, WEIR_ERR_INVALID,
                                      "%s is of jobs: `weir train` trains on this machine, in "
                                      "--workers N processes. As a job: `weir job submit -f FILE`, "
                                      "with a file as docs/howto/train-your-own-data.md has it",
                                      of_jobs[k]);
            }
        }
    }
    return cli_exec_worker(call, "train", 0, err);
}

const struct cli_command cli_train = {
    .name = "train",
    .usage = "--model M --data DIR [--workers N] [--parameter-servers P] …",
    .summary = "Train a model on this machine (as a job, with --cpus, --memory: weir job submit)",
    .flags = CLI_RAW,
    .run = run_train,
};

static weir_status run_evaluate(struct cli_call *call, struct weir_error *err)
{
    return cli_exec_worker(call, "evaluate", 0, err);
}

const struct cli_command cli_evaluate = {
    .name = "evaluate",
    .usage = "--weights FILE --data DIR | --protocol identification --data DIR …",
    .summary = "Measure a model on data",
    .flags = CLI_RAW,
    .run = run_evaluate,
};
