#include "cluster/local_agent.h"

#include "cluster/cluster.h"

#include "base/file.h"
#include "base/spawn.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MAX_BYTES ((size_t)1 << 20)

bool weir_local_agent_is_running(const char *dir)
{
    char path[4096];
    int fd = -1;
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    weir_status status = weir_file_lock(path, &fd, NULL);
    if (status == WEIR_OK) {
        (void)close(fd);
    }
    return status == WEIR_ERR_CONFLICT;
}

static size_t count_lines(const char *text)
{
    size_t n = text != NULL;
    for (const char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL; at++) {
        n++;
    }
    return n;
}

static char **make_argv(const struct weir_local_agent *agent, const char *node,
                        struct weir_arena *arena)
{
    char **argv = WEIR_ARENA_ARRAY(arena, count_lines(agent->shares) + 10, char *);
    size_t n = 0;
    argv[n++] = weir_arena_strdup(arena, "weir");
    argv[n++] = weir_arena_strdup(arena, "agent");
    argv[n++] = weir_arena_printf(arena, "--dir=%s", agent->dir);
    argv[n++] = weir_arena_printf(arena, "--server=%s", agent->server);
    argv[n++] = weir_arena_printf(arena, "--node=%s", node);
    argv[n++] = weir_arena_printf(arena, "--cpu-slots=%lld", (long long)agent->cpu_slots);
    if (agent->ca_file != NULL) {
        argv[n++] = weir_arena_printf(arena, "--ca-file=%s", agent->ca_file);
    }
    if (agent->task_users > 0) {
        argv[n++] = weir_arena_printf(arena, "--task-users=%lld", (long long)agent->task_users);
    }
    if (agent->onnxruntime != NULL) {
        argv[n++] = weir_arena_printf(arena, "--onnxruntime=%s", agent->onnxruntime);
    }
    for (const char *at = agent->shares; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "\n");
        argv[n++] = weir_arena_printf(arena, "--share=%.*s", (int)len, at);
        at += len;
        at += *at == '\n';
    }
    return argv;
}

/* What an agent is started with, but for its folder and server: in lines. */
static char *options_text(char *const *argv, struct weir_arena *arena)
{
    char *text = weir_arena_strdup(arena, "");
    for (size_t i = 4; argv[i] != NULL; i++) {
        text = weir_arena_printf(arena, "%s%s\n", text, argv[i]);
    }
    return text;
}

static char **argv_of(const struct weir_local_agent *agent, struct weir_arena *arena)
{
    return make_argv(agent, agent->node != NULL ? agent->node : weir_cluster_node_name(arena),
                     arena);
}

bool weir_local_agent_differs(const struct weir_local_agent *agent)
{
    struct weir_arena arena;
    char *noted;
    size_t len;
    weir_arena_init(&arena, 0);
    char *path = weir_arena_printf(&arena, "%s/options", agent->dir);
    bool differs = weir_file_read(path, OPTIONS_MAX_BYTES, &arena, &noted, &len, NULL) == WEIR_OK &&
                   strcmp(noted, options_text(argv_of(agent, &arena), &arena)) != 0;
    weir_arena_fini(&arena);
    return differs;
}

/* Ours, but for the token of the person that started the server: an agent speaks with that of its folder. */
static char **env_of(struct weir_arena *arena)
{
    size_t n = 0, n_kept = 0;
    while (environ[n] != NULL) {
        n++;
    }
    char **env = WEIR_ARENA_ARRAY(arena, n + 1, char *);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], "WEIR_TOKEN=", strlen("WEIR_TOKEN=")) != 0) {
            env[n_kept++] = environ[i];
        }
    }
    return env;
}

/* Write down what it is given, and start it. */
static weir_status start_agent(const struct weir_local_agent *agent, struct weir_arena *arena,
                               struct weir_error *err)
{
    char **argv = argv_of(agent, arena);
    char *options = options_text(argv, arena);
    WEIR_TRY(weir_file_write_atomic(weir_arena_printf(arena, "%s/options", agent->dir), options,
                                    strlen(options), 0600, err));
    const struct weir_spawn spawn = {.program = "/proc/self/exe",
                                     .argv = argv,
                                     .env = env_of(arena),
                                     .log = weir_arena_printf(arena, "%s/agent.log", agent->dir),
                                     .place = WEIR_SPAWN_DETACHED};
    pid_t none;
    return weir_spawn_start(&spawn, &none, err);
}

weir_status weir_local_agent_start(const struct weir_local_agent *agent, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    char *url_path = weir_arena_printf(&arena, "%s/server.url", agent->dir);
    weir_status status = weir_dir_make(agent->dir, 0700, err);
    if (status == WEIR_OK) {
        status = weir_file_write_atomic(url_path, agent->server, strlen(agent->server), 0600, err);
    }
    if (status == WEIR_ERR_NOSPACE && weir_path_exists(url_path)) {
        /* No inode for a new file may be free: the old one has its own. */
        status = weir_file_write(url_path, agent->server, strlen(agent->server), 0600, err);
    }
    if (status == WEIR_OK && !weir_local_agent_is_running(agent->dir)) {
        status = start_agent(agent, &arena, err);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_local_agent_end(const char *dir, struct weir_error *err)
{
    char option[4096];
    char *const argv[] = {"weir", "agent", "stop", option, NULL};
    const struct weir_spawn spawn = {
        .program = "/proc/self/exe", .argv = argv, .said = WEIR_SPAWN_OWN};
    pid_t pid;
    if (!weir_local_agent_is_running(dir)) {
        return WEIR_OK;
    }
    (void)snprintf(option, sizeof option, "--dir=%s", dir);
    WEIR_TRY(weir_spawn_start(&spawn, &pid, err));
    return weir_spawn_wait(pid) == 0 ? WEIR_OK
                                     : weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                                      "the agent of %s could not be ended", dir);
}
