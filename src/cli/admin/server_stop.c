/** weir server stop, weir agent stop: end a server, or an agent and its tasks, on this machine. */
#include "cli/command.h"

#include "agent/shutdown.h"
#include "base/file.h"

#include <unistd.h>

#define SERVER_PATIENCE_MS 15000 /* several times what an orderly end takes */

struct stop_options {
    struct cli_common common;
    bool has_tasks;
    int64_t timeout_s;
    char *dir;
};

static const struct weir_option stop_options[] = {
    {.name = "state",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct stop_options, common.state),
     .arg = "DIR",
     .doc = "State folder of the server [/var/lib/weir as root, else ~/.local/share/weir]"},
    CLI_FLAG(stop_options, has_tasks, "tasks", 0,
             "Also end this machine's agent and every task on it"),
    WEIR_OPT(stop_options, timeout_s, "timeout", 0, INT, "60", 1, 3600, "S",
             "How long tasks may take to end; then they are killed"),
    CLI_OUTPUT_OPTIONS(stop_options),
};

static const struct weir_option agent_stop_options[] = {
    WEIR_OPT(stop_options, dir, "dir", 0, TEXT, "/var/lib/weir-agent", 0, 0, "DIR",
             "The agent's folder"),
    WEIR_OPT(stop_options, timeout_s, "timeout", 0, INT, "60", 1, 3600, "S",
             "How long tasks may take to end; then they are killed"),
    CLI_OUTPUT_OPTIONS(stop_options),
};

/* What is said while it goes on; with -o json only the answer at the end. */
struct stop {
    struct cli_call *call;
    const struct stop_options *options;
    char *state;
    enum weir_lock_end server, agent;
    bool has_told_agent;
    size_t n_tasks;
};

static const char *const words[] = {[WEIR_LOCK_WAS_FREE] = "not running",
                                    [WEIR_LOCK_ENDED] = "stopped",
                                    [WEIR_LOCK_KILLED] = "killed"};

static void say(const struct stop *stop, const char *what, enum weir_lock_end how)
{
    if (!cli_is_json(stop->call)) {
        printf("%s: %s\n", what, words[how]);
        (void)fflush(stdout);
    }
}

/* The agent has ended when its tasks are counted. */
static void say_left(void *context, size_t n_left)
{
    struct stop *stop = context;
    if (!stop->has_told_agent) {
        say(stop, "agent", stop->agent);
        stop->has_told_agent = true;
    }
    if (!cli_is_json(stop->call) && n_left > 0) {
        printf("tasks still running: %zu\n", n_left);
        (void)fflush(stdout);
    }
}

static weir_status stop_agent(struct stop *stop, const char *dir, struct weir_error *err)
{
    struct weir_agent_shutdown config = {.dir = dir,
                                         .patience_ms = stop->options->timeout_s * 1000,
                                         .on_left = say_left,
                                         .context = stop};
    return weir_agent_shutdown(&config, &stop->agent, &stop->n_tasks, err);
}

/* Nothing may start from the folder while its tasks are ended: the server's lock is ours. */
static weir_status stop_all(struct stop *stop, struct weir_error *err)
{
    char *lock = weir_arena_printf(stop->call->arena, "%s/server.lock", stop->state);
    char *about = weir_arena_printf(stop->call->arena, "%s/server.json", stop->state);
    int lock_fd;
    WEIR_TRY(weir_lock_take_over(lock, SERVER_PATIENCE_MS, &lock_fd, &stop->server, err));
    (void)unlink(about); /* left by a server that was killed */
    say(stop, "server", stop->server);
    weir_status status = WEIR_OK;
    if (stop->options->has_tasks) {
        status =
            stop_agent(stop, weir_arena_printf(stop->call->arena, "%s/agent", stop->state), err);
    }
    (void)close(lock_fd);
    return status;
}

static void print_end(const struct stop *stop)
{
    if (cli_is_json(stop->call)) {
        json_t *answer =
            json_pack("{s:s,s:s}", "state", stop->state, "server", words[stop->server]);
        if (stop->options->has_tasks) {
            json_object_set_new(answer, "agent", json_string(words[stop->agent]));
            json_object_set_new(answer, "tasks", json_integer((json_int_t)stop->n_tasks));
        }
        cli_print_json(answer);
        json_decref(answer);
    } else if (stop->options->has_tasks) {
        printf("tasks: %zu stopped; nothing of %s runs on this machine\n", stop->n_tasks,
               stop->state);
    } else {
        printf("Agent and tasks go on; `weir server stop --tasks` ends them too.\n");
    }
}

static weir_status run_stop(struct cli_call *call, struct weir_error *err)
{
    struct stop stop = {.call = call,
                        .options = call->options,
                        .state = cli_state_dir(call->arena, call->common->state)};
    if (!weir_path_is_dir(stop.state)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no state folder %s: name it with --state or $WEIR_STATE",
                              stop.state);
    }
    if (!weir_path_exists(weir_arena_printf(call->arena, "%s/weir.db", stop.state))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s is no state folder of a Weir server: it has no weir.db",
                              stop.state);
    }
    WEIR_TRY(stop_all(&stop, err));
    print_end(&stop);
    return WEIR_OK;
}

const struct cli_command cli_server_stop = {
    .name = "server stop",
    .usage = "[--tasks] [--state DIR]",
    .summary = "Stop the server of a state folder",
    .help = "Asks the server that runs from the state folder to end, and waits until it has. With\n"
            "--tasks its agent on this machine and every task there end too; jobs that were "
            "running\n"
            "start again when the server does. Works as well when server, agent or supervisors "
            "were\n"
            "killed: what they left is found by its locks and ended.",
    CLI_OPTIONS(stop_options, stop_options),
    .run = run_stop,
};

static weir_status run_agent_stop(struct cli_call *call, struct weir_error *err)
{
    struct stop stop = {.call = call, .options = call->options};
    const char *dir = stop.options->dir;
    if (!weir_path_exists(weir_arena_printf(call->arena, "%s/lock", dir))) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "%s is no folder of an agent: name it with --dir or $WEIR_DIR", dir);
    }
    WEIR_TRY(stop_agent(&stop, dir, err));
    if (cli_is_json(call)) {
        json_t *answer = json_pack("{s:s,s:s,s:I}", "dir", dir, "agent", words[stop.agent], "tasks",
                                   (json_int_t)stop.n_tasks);
        cli_print_json(answer);
        json_decref(answer);
    } else {
        printf("tasks: %zu stopped; nothing of %s runs on this machine\n", stop.n_tasks, dir);
    }
    return WEIR_OK;
}

const struct cli_command cli_agent_stop = {
    .name = "agent stop",
    .usage = "[--dir DIR]",
    .summary = "Stop this machine's agent and its tasks",
    .help = "For a machine that is taken away or upgraded: its agent and every task of it end. The "
            "jobs go\n"
            "on elsewhere, or here when the agent is back. (SIGTERM ends an agent alone; tasks "
            "outlive it.)",
    CLI_OPTIONS(stop_options, agent_stop_options),
    .run = run_agent_stop,
};
