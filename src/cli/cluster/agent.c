/** weir agent: what starts and watches tasks on a node. */
#include "cli/cluster/join.h"
#include "cli/command.h"

#include "agent/agent.h"
#include "agent/isolation.h"
#include "base/file.h"
#include "cluster/allocation.h"
#include "cluster/cluster.h"
#include "device/finder.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_VARIABLE "WEIR_JOIN_SECRET"

struct agent_options {
    struct cli_common common;
    char *allocation;
    char *dir, *node, *address, *token_file, *isolation, *supervise, *shares, *images, *devices,
        *health_command, *onnxruntime;
    bool is_finding;
    int64_t cpu_slots, pids_max, task_users, disk_max, files_max, io_max;
};

static const struct weir_option agent_options[] = {
    {.name = "server",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct agent_options, common.server),
     .arg = "URL",
     .doc = "Server to work for"},
    {.name = "token",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct agent_options, common.token),
     .arg = "TOKEN",
     .doc = "Token of role agent (else --token-file)"},
    CLI_TEXT(agent_options, token_file, "token-file", 0, "FILE", "File with the token [DIR/token]"),
    WEIR_OPT(agent_options, dir, "dir", 0, TEXT, "/var/lib/weir-agent", 0, 0, "DIR",
             "The agent's folder: tasks, logs, exits"),
    CLI_TEXT(agent_options, node, "node", 0, "NAME", "Name of this node [host name]"),
    CLI_TEXT(agent_options, address, "address", 0, "IP|NETWORK|INTERFACE",
             "By which tasks on other nodes reach those here: 10.1.0.7, 10.1.0.0/16 or ib0 [the "
             "one that "
             "leads to the server]"),
    WEIR_OPT(agent_options, cpu_slots, "cpu-slots", 0, INT, "0", 0, 4096, "N",
             "Tasks that fit here at once; 0: one per CPU, at least 2"),
    WEIR_OPT(agent_options, pids_max, "pids-max", 0, INT, "4096", 16, 4194304, "N",
             "Processes and threads that a task may have"),
    WEIR_OPT(agent_options, disk_max, "disk-max", 0, INT, "0", 0, 1125899906842624, "BYTES",
             "What a task's folder and its /tmp may hold; 0: half of what is free when it starts"),
    WEIR_OPT(agent_options, files_max, "files-max", 0, INT, "0", 0, 1000000, "N",
             "Files that a task's folder and its /tmp may hold; 0: half of those that there is "
             "room for when it starts"),
    WEIR_OPT(agent_options, io_max, "io-max", 0, INT, "0", 0, 1125899906842624, "BYTES",
             "What a task may read, and write, in a second on the disk of DIR; 0: no bound"),
    WEIR_OPT(agent_options, isolation, "isolation", 0, TEXT, "auto", 0, 0, "auto|none",
             "Control groups and, as root, a user and folders of its own for each job; or none"),
    CLI_LIST(agent_options, shares, "share", 0, "DIR[:rw]",
             "Show this folder to tasks as theirs, to read or (:rw) to change; may be repeated"),
    CLI_TEXT(agent_options, onnxruntime, "onnxruntime", 0, "PATH",
             "The library onnxruntime, or its folder, for the tasks (else the system's)"),
    CLI_TEXT(agent_options, images, "images", 0, "FOLDER",
             "OCI images that jobs may name: archives and layouts [DIR/oci]"),
    WEIR_OPT(agent_options, task_users, "task-users", 0, INT, "70000", 1000, 4000000000, "N",
             "First of the 4096 user numbers that jobs are given"),
    CLI_TEXT(agent_options, common.ca_file, "ca-file", 0, "FILE",
             "Authorities that the agent and its tasks trust for https (else the system's)"),
    CLI_TEXT(agent_options, devices, "devices", 0, "FILE",
             "Devices that nothing finds: devices: [{model, count, memory}], YAML or JSON"),
    CLI_TEXT(
        agent_options, allocation, "allocation", 0, "TAG",
        "Be a node that ends: join with $WEIR_JOIN_SECRET as TAG-HOST, offer what this step of a "
        "Slurm job, or this pod, has of its node, and end with all tasks when told to"),
    CLI_TEXT(agent_options, health_command, "health-command", 0, "COMMAND",
             "Run once a minute by sh: where it fails or takes 30 s, the node gets no new tasks"),
    CLI_FLAG(agent_options, is_finding, "find-devices", 0,
             "Used by the agent itself: look at the devices and tell them on standard output"),
    CLI_TEXT(agent_options, supervise, "supervise", 0, "TASKDIR",
             "Used by the agent itself: watch one task"),
    CLI_HELP_OPTION(agent_options),
};

static int open_stop_fd(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* What the environment says that an agent in an allocation has of its node; all NULL and 0: it is in none. */
static weir_status read_share(struct cli_call *call, struct weir_node_share *out,
                              struct weir_error *err)
{
    const struct agent_options *options = call->options;
    *out = (struct weir_node_share){0};
    return options->allocation != NULL
               ? weir_node_share_read(options->allocation, environ,
                                      weir_cluster_node_name(call->arena), call->arena, out, err)
               : WEIR_OK;
}

static void find_devices(const char *declared, const struct weir_node_share *share)
{
    const struct weir_device_config config = {
        .declared = declared, .visible = share->devices, .visible_model = share->model};
    if (share->node != NULL) {
        (void)signal(SIGTERM, SIG_IGN); /* all of an allocation get it: it ends with its agent */
    }
    struct weir_device_context *context = weir_device_context_create(&config);
    weir_device_serve(context, STDOUT_FILENO, 0);
    weir_device_context_destroy(context);
}

/* The environment has it no more, also as others of this user see it. */
static char *take_secret(struct weir_arena *arena)
{
    char *value = getenv(SECRET_VARIABLE);
    char *secret = value != NULL ? weir_arena_strdup(arena, value) : NULL;
    if (value != NULL) {
        memset(value, 0, strlen(value));
        (void)unsetenv(SECRET_VARIABLE);
    }
    return secret;
}

/* The node's own token is in the folder then. Without a secret it is there already. */
static weir_status join(struct cli_call *call, const char *node, const char *secret, int stop_fd,
                        struct weir_error *err)
{
    const struct agent_options *options = call->options;
    const struct cli_joining joining = {
        .server = options->common.server,
        .ca_file = options->common.ca_file,
        .node = node,
        .dir = options->dir,
        .token_path = weir_arena_printf(call->arena, "%s/token", options->dir),
        .arena = call->arena};
    if (options->node != NULL || options->token_file != NULL || options->common.token != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--allocation gives the node its name and its token: --node, --token "
                              "and --token-file do not go with it");
    }
    if (secret == NULL && !weir_path_exists(joining.token_path)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--allocation: no secret to join with in $" SECRET_VARIABLE
                              ", and no token in %s",
                              options->dir);
    }
    return secret != NULL ? cli_join_await(&joining, secret, stop_fd, err) : WEIR_OK;
}

static weir_status run_agent(struct cli_call *call, struct weir_error *err)
{
    const struct agent_options *options = call->options;
    const char *secret = take_secret(call->arena);
    struct weir_node_share share;
    (void)umask(077); /* folders of tasks hold secrets of their jobs */
    WEIR_TRY(read_share(call, &share, err));
    if (options->supervise != NULL) {
        exit(weir_agent_supervise(options->supervise));
    }
    if (options->is_finding) {
        find_devices(options->devices, &share);
        return WEIR_OK;
    }
    if (options->common.server == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "which server? weir agent --server URL");
    }
    int stop_fd = open_stop_fd();
    if (stop_fd < 0) {
        return weir_error_set_errno(err, errno, "cannot read signals");
    }
    const char *node = options->node != NULL ? options->node : weir_cluster_node_name(call->arena);
    if (options->allocation != NULL) {
        node = share.node;
        weir_status joined = join(call, node, secret, stop_fd, err);
        if (joined != WEIR_OK) {
            (void)close(stop_fd);
            return joined;
        }
    }
    json_t *inventory = weir_cluster_inventory(options->cpu_slots);
    if (options->allocation != NULL) {
        share.memory_bytes =
            share.memory_bytes > 0 ? share.memory_bytes : weir_isolation_own_memory_max();
        weir_node_share_apply(&share, inventory);
    }
    struct weir_agent_config config = {
        .dir = options->dir,
        .server = options->common.server,
        .token = options->common.token,
        .token_file = options->token_file,
        .ca_file = options->common.ca_file,
        .node = node,
        .allocation = options->allocation,
        .pod_image = share.image,
        .address = options->address,
        .inventory = inventory,
        .isolation = options->isolation,
        .pids_max = options->pids_max,
        .disk_max_bytes = options->disk_max,
        .files_max = options->files_max,
        .io_max_bytes_s = options->io_max,
        .task_users = options->task_users,
        .shares = options->shares,
        .onnxruntime = options->onnxruntime,
        .images = options->images,
        .finds_devices = true,
        .devices = options->devices,
        .health_command = options->health_command,
        .stop_fd = stop_fd,
    };
    weir_status status = weir_agent_run(&config, err);
    json_decref(inventory);
    (void)close(stop_fd);
    return status;
}

const struct cli_command cli_agent = {
    .name = "agent",
    .usage = "--server URL [--dir DIR]",
    .summary = "Be the agent of this machine",
    .help = "Starts the tasks that the server wants here, watches them, ships logs and exits. "
            "Tasks outlive it.",
    CLI_OPTIONS(agent_options, agent_options),
    .run = run_agent,
};
