/** weir node join, leave: this machine becomes a node of a server, or stops being one. */
#include "cli/cluster/join.h"
#include "cli/command.h"

#include "agent/agent.h"
#include "agent/shutdown.h"
#include "base/file.h"
#include "base/record.h"
#include "base/spawn.h"
#include "cluster/cluster.h"
#include "cluster/local_agent.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_MAX_BYTES   256
#define RECORD_MAX_BYTES  ((size_t)64 << 10)
#define LEAVE_PATIENCE_MS 60000

struct join_options {
    struct cli_common common;
    char *dir, *node, *shares;
    int64_t cpu_slots;
};

static const struct weir_option join_options[] = {
    WEIR_OPT(join_options, dir, "dir", 0, TEXT, "/var/lib/weir-agent", 0, 0, "DIR",
             "The agent's folder"),
    CLI_TEXT(join_options, node, "node", 0, "NAME", "Name of this node [host name]"),
    WEIR_OPT(join_options, cpu_slots, "cpu-slots", 0, INT, "0", 0, 4096, "N",
             "Tasks that fit here at once; 0: one per CPU, at least 2"),
    CLI_LIST(join_options, shares, "share", 0, "DIR[:rw]",
             "Show this folder to tasks as theirs, to read or (:rw) to change; may be repeated"),
    CLI_TEXT(join_options, common.ca_file, "ca-file", 0, "FILE",
             "Authorities to trust for https (else the system's)"),
    CLI_OUTPUT_OPTIONS(join_options),
};

static const struct weir_option leave_options[] = {
    WEIR_OPT(join_options, dir, "dir", 0, TEXT, "/var/lib/weir-agent", 0, 0, "DIR",
             "The agent's folder"),
    CLI_TEXT(join_options, common.ca_file, "ca-file", 0, "FILE",
             "Authorities to trust for https (else the system's)"),
    CLI_OUTPUT_OPTIONS(join_options),
};

/** One run of either command. */
struct join {
    struct cli_call *call;
    const struct join_options *options;
    const char *server, *node;
    char *token_path;
};

static void say(const struct join *join, const char *what, const char *how)
{
    if (cli_is_json(join->call)) {
        cli_print_change(json_pack("{s:s,s:s,s:s,s:s}", "node", join->node, "server", join->server,
                                   what, how, "dir", join->options->dir));
    } else {
        printf("%s: %s %s; its agent %s\n", join->node, what, join->server, how);
    }
}

/* ---- the agent ------------------------------------------------------------------------------- */

static bool has_systemd(void)
{
    return geteuid() == 0 && weir_path_is_dir("/run/systemd/system");
}

static weir_status systemctl(const char *verb, struct weir_error *err)
{
    char *const argv[] = {"systemctl", (char *)verb, "--now", "weir-agent.service", NULL};
    const struct weir_spawn spawn = {
        .argv = argv, .in = WEIR_SPAWN_OWN, .out = WEIR_SPAWN_OWN, .said = WEIR_SPAWN_OWN};
    pid_t pid;
    WEIR_TRY(weir_spawn_start(&spawn, &pid, err));
    return weir_spawn_wait(pid) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                "systemctl %s weir-agent.service failed: is Weir installed (`make "
                                "install`)? This machine has joined: then try again",
                                verb);
}

/* The unit reads its options from there: one line each, as the agent's environment. */
static weir_status write_environment(const struct join *join, struct weir_error *err)
{
    const struct join_options *options = join->options;
    struct weir_arena *arena = join->call->arena;
    if (options->shares != NULL && strchr(options->shares, '\n') != NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "more than one --share is not supported for the systemd unit yet: "
                              "edit its ExecStart (systemctl edit weir-agent)");
    }
    char *text =
        weir_arena_printf(arena, "WEIR_SERVER=%s\nWEIR_NODE=%s\nWEIR_DIR=%s\nWEIR_CPU_SLOTS=%lld\n",
                          join->server, join->node, options->dir, (long long)options->cpu_slots);
    if (options->common.ca_file != NULL) {
        text = weir_arena_printf(arena, "%sWEIR_CA_FILE=%s\n", text, options->common.ca_file);
    }
    if (options->shares != NULL) {
        text = weir_arena_printf(arena, "%sWEIR_SHARE=%s\n", text, options->shares);
    }
    WEIR_TRY(weir_dir_make("/etc/weir", 0755, err));
    return weir_file_write_atomic("/etc/weir/agent.env", text, strlen(text), 0600, err);
}

static weir_status start_agent(const struct join *join, const char **out_how,
                               struct weir_error *err)
{
    const struct join_options *options = join->options;
    if (has_systemd()) {
        WEIR_TRY(write_environment(join, err));
        *out_how = "runs as weir-agent.service";
        return systemctl("enable", err);
    }
    const struct weir_local_agent agent = {.dir = options->dir,
                                           .server = join->server,
                                           .ca_file = options->common.ca_file,
                                           .node = join->node,
                                           .cpu_slots = options->cpu_slots,
                                           .shares = options->shares};
    *out_how = weir_local_agent_is_running(options->dir)
                   ? "runs"
                   : "was started (no systemd here: start it again after a reboot, with the same "
                     "command)";
    return weir_local_agent_start(&agent, err);
}

/* ---- join ------------------------------------------------------------------------------------ */

static struct cli_joining joining_of(const struct join *join)
{
    return (struct cli_joining){.server = join->server,
                                .ca_file = join->options->common.ca_file,
                                .node = join->node,
                                .dir = join->options->dir,
                                .token_path = join->token_path,
                                .arena = join->call->arena};
}

static weir_status read_secret(const struct join *join, char out[TOKEN_MAX_BYTES],
                               struct weir_error *err)
{
    const char *word = join->call->words[1];
    if (strcmp(word, "-") == 0 && fgets(out, TOKEN_MAX_BYTES, stdin) == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "no token on standard input");
    }
    if (strcmp(word, "-") != 0) {
        (void)snprintf(out, TOKEN_MAX_BYTES, "%s", word);
    }
    out[strcspn(out, "\r\n")] = '\0';
    return WEIR_OK;
}

static weir_status run_join(struct cli_call *call, struct weir_error *err)
{
    const struct join_options *options = call->options;
    struct join join = {.call = call,
                        .options = options,
                        .server = call->words[0],
                        .node = options->node != NULL ? options->node
                                                      : weir_cluster_node_name(call->arena),
                        .token_path = weir_arena_printf(call->arena, "%s/token", options->dir)};
    const char *how;
    bool has_joined;
    (void)umask(077);
    if (!weir_name_is_valid(join.node)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--node \"%.80s\": expected lower-case letters, digits, . _ -",
                              join.node);
    }
    if (options->shares != NULL) {
        WEIR_TRY(weir_agent_shares_check(options->shares, err));
    }
    const struct cli_joining joining = joining_of(&join);
    WEIR_TRY(cli_join_is_done(&joining, &has_joined, err));
    if (!has_joined) {
        char secret[TOKEN_MAX_BYTES];
        WEIR_TRY(read_secret(&join, secret, err));
        WEIR_TRY(cli_join_exchange(&joining, secret, err));
    }
    WEIR_TRY(start_agent(&join, &how, err));
    say(&join, has_joined ? "has joined already" : "has joined", how);
    return WEIR_OK;
}

const struct cli_command cli_node_join = {
    .name = "node join",
    .usage = "URL TOKEN [--node NAME] [--dir DIR]",
    .summary = "Make this machine a node of a server",
    .help =
        "TOKEN is what `weir node token` prints, for as many machines as it says; - reads it from "
        "standard input.\n"
        "It is exchanged for the node's own token, and the agent is started: as the systemd unit "
        "weir-agent\n"
        "where systemd runs and this is root, else in the background. Again, it starts the agent "
        "if it does not run.",
    CLI_WORDS(2, 2),
    CLI_OPTIONS(join_options, join_options),
    .run = run_join,
};

/* ---- leave ----------------------------------------------------------------------------------- */

/* Where the agent of this folder belongs, as it wrote it down itself. */
static weir_status read_membership(struct join *join, struct weir_error *err)
{
    struct weir_arena *arena = join->call->arena;
    const char *dir = join->options->dir;
    char *text;
    size_t len;
    json_t *record;
    if (!weir_path_exists(join->token_path)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "%s has no token: no node joined from there",
                              dir);
    }
    WEIR_TRY(weir_file_read(weir_arena_printf(arena, "%s/agent.json", dir), RECORD_MAX_BYTES, arena,
                            &text, &len, err));
    WEIR_TRY(weir_json_parse(text, len, "agent.json", &record, err));
    const char *server = json_string_value(json_object_get(record, "server"));
    const char *node = json_string_value(json_object_get(record, "node"));
    join->server = weir_arena_strdup(arena, server);
    join->node = weir_arena_strdup(arena, node);
    json_decref(record);
    return join->server != NULL && join->node != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "%s/agent.json names no server and node",
                                dir);
}

/* A token that the server does not know any more has left. */
static weir_status tell_leave(const struct join *join, struct weir_error *err)
{
    struct weir_client *client;
    const struct weir_client_config config = {.server = join->server,
                                              .token_file = join->token_path,
                                              .ca_file = join->options->common.ca_file};
    WEIR_TRY(weir_client_open(&config, &client, err));
    char *path = weir_client_path(join->call->arena, "/api/v1/nodes/{}", &join->node, 1);
    weir_status status = weir_client_call(client, "DELETE", path, NULL, NULL, err);
    weir_client_close(client);
    return status == WEIR_ERR_UNAUTH ? WEIR_OK : status;
}

static weir_status run_leave(struct cli_call *call, struct weir_error *err)
{
    const struct join_options *options = call->options;
    struct join join = {.call = call,
                        .options = options,
                        .token_path = weir_arena_printf(call->arena, "%s/token", options->dir)};
    struct weir_agent_shutdown shutdown = {.dir = options->dir, .patience_ms = LEAVE_PATIENCE_MS};
    enum weir_lock_end how;
    size_t n_tasks;
    WEIR_TRY(read_membership(&join, err));
    WEIR_TRY(tell_leave(&join, err));
    if (has_systemd() && weir_path_exists("/etc/weir/agent.env")) {
        WEIR_TRY(systemctl("disable", err));
    }
    WEIR_TRY(weir_agent_shutdown(&shutdown, &how, &n_tasks, err));
    (void)unlink(join.token_path);
    say(&join, "has left", how == WEIR_LOCK_WAS_FREE ? "did not run" : "has ended");
    return WEIR_OK;
}

const struct cli_command cli_node_leave = {
    .name = "node leave",
    .usage = "[--dir DIR]",
    .summary = "Take this machine out of its server's cluster",
    .help =
        "Its token ends, and its agent. While tasks run here it is refused: drain the node first.",
    CLI_OPTIONS(join_options, leave_options),
    .run = run_leave,
};
