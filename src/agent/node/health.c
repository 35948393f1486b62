/* Is this node fit for tasks? A table of checks, each of which says what is wrong, or nothing. */
#include "agent/node/agent_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_EVERY_MS   60000
#define COMMAND_TIMEOUT_MS 30000
#define DISK_LEAST_BYTES   ((int64_t)256 << 20)

/* ---- the command of this node's people -------------------------------------------------------- */

static void start_command(struct agent *agent, int64_t now_ms)
{
    struct health_command *health = &agent->health;
    char *const argv[] = {"/bin/sh", "-c", (char *)agent->config->health_command, NULL};
    struct weir_error ignored;
    int fds[2];
    health->due_ms = now_ms + COMMAND_EVERY_MS;
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return;
    }
    /* A session of its own: what it starts ends with it. */
    const struct weir_spawn spawn = {
        .argv = argv, .out = fds[1], .said = fds[1], .place = WEIR_SPAWN_SESSION};
    weir_status status = weir_spawn_start(&spawn, &health->child, &ignored);
    (void)close(fds[1]);
    if (status != WEIR_OK) {
        (void)close(fds[0]);
        return;
    }
    health->fd = fds[0];
    health->begun_ms = now_ms;
    health->said[0] = '\0';
}

/* Its first line is kept; the rest is read so that it does not wait. */
static void read_command(struct health_command *health)
{
    char chunk[4096];
    ssize_t n;
    while ((n = read(health->fd, chunk, sizeof chunk)) > 0) {
        size_t len = strlen(health->said);
        if (strchr(health->said, '\n') == NULL) {
            (void)snprintf(health->said + len, sizeof health->said - len, "%.*s", (int)n, chunk);
        }
    }
}

static void end_command(struct health_command *health, const char *how)
{
    (void)kill(-health->child, SIGKILL); /* what it left behind in its session */
    health->said[strcspn(health->said, "\n")] = '\0';
    bool has_text = health->said[0] != '\0' && weir_text_is_utf8(health->said);
    health->reason[0] = '\0';
    if (how != NULL) {
        (void)snprintf(health->reason, sizeof health->reason, "its health command %s%s%s", how,
                       has_text ? ": " : "", has_text ? health->said : "");
    }
    (void)close(health->fd);
    health->child = 0;
}

bool health_look(struct agent *agent)
{
    struct health_command *health = &agent->health;
    char before[sizeof health->reason];
    int64_t now_ms = weir_mono_ms();
    int status;
    if (agent->config->health_command == NULL) {
        return false;
    }
    memcpy(before, health->reason, sizeof before);
    if (health->child == 0 && now_ms >= health->due_ms) {
        start_command(agent, now_ms);
    }
    if (health->child == 0) {
        return false;
    }
    read_command(health);
    if (waitpid(health->child, &status, WNOHANG) == health->child) {
        read_command(health);
        end_command(health, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "fails");
    } else if (now_ms - health->begun_ms >= COMMAND_TIMEOUT_MS) {
        (void)kill(-health->child, SIGKILL);
        (void)waitpid(health->child, &status, 0);
        end_command(health, "takes longer than 30 s");
    }
    return strcmp(before, health->reason) != 0;
}

void health_close(struct agent *agent)
{
    if (agent->health.child > 0) {
        (void)kill(-agent->health.child, SIGKILL);
        (void)waitpid(agent->health.child, NULL, 0);
        (void)close(agent->health.fd);
        agent->health.child = 0;
    }
}

/* ---- the checks ------------------------------------------------------------------------------ */

/* What a check looks at, and where it says what is wrong. */
struct checking {
    const struct agent *agent;
    const json_t *devices; /* NULL: not looked at */
    char *out;
    size_t size;
};

static void check_disk(struct checking *checking)
{
    int64_t total, free_bytes;
    struct weir_error ignored;
    if (weir_disk_space(checking->agent->dir, &total, &free_bytes, &ignored) == WEIR_OK &&
        free_bytes < WEIR_MIN(DISK_LEAST_BYTES, total / 100)) {
        (void)snprintf(checking->out, checking->size,
                       "the disk of its agent is full: make room below %.120s",
                       checking->agent->dir);
        return;
    }
    int reason = weir_dir_probe(checking->agent->dir);
    if (reason != 0) {
        (void)snprintf(checking->out, checking->size, "its agent cannot write below %.120s: %s",
                       checking->agent->dir, strerror(reason));
    }
}

static void check_groups(struct checking *checking)
{
    const struct weir_isolation *groups = &checking->agent->groups;
    const char *folder = groups->v1_memory;
    if (folder[0] != '\0' && !weir_path_is_dir(folder)) {
        (void)snprintf(checking->out, checking->size,
                       "the control groups that it had are gone: %.160s", folder);
    }
}

static const char *member(const json_t *device, const char *name)
{
    const char *text = json_string_value(json_object_get(device, name));
    return text != NULL ? text : "";
}

static void check_memory(struct checking *checking)
{
    size_t i;
    const json_t *device;
    json_array_foreach(checking->devices, i, device)
    {
        if (strcmp(member(device, "kind"), "memory") == 0 &&
            strcmp(member(device, "state"), "bad") == 0) {
            (void)snprintf(checking->out, checking->size, "%s", member(device, "reason"));
            return;
        }
    }
}

/* One that is bad among others is not given to tasks; without a good one there is nothing to give. */
static void check_accelerators(struct checking *checking)
{
    size_t i, n = 0, n_bad = 0;
    const json_t *device;
    const char *reason = "";
    json_array_foreach(checking->devices, i, device)
    {
        bool computes = strcmp(member(device, "kind"), "gpu") == 0;
        bool is_bad = strcmp(member(device, "state"), "bad") == 0;
        n += computes;
        n_bad += computes && is_bad;
        reason = computes && is_bad ? member(device, "reason") : reason;
    }
    if (n > 0 && n_bad == n) {
        (void)snprintf(checking->out, checking->size, "all its accelerators are bad: %.180s",
                       reason);
    }
}

static void check_command(struct checking *checking)
{
    (void)snprintf(checking->out, checking->size, "%s", checking->agent->health.reason);
}

static void (*const checks[])(struct checking *checking) = {
    check_disk, check_groups, check_memory, check_accelerators, check_command,
};

const char *health_reason(const struct agent *agent, const json_t *devices, char *out, size_t size)
{
    struct checking checking = {agent, devices, out, size};
    out[0] = '\0';
    for (size_t i = 0; i < WEIR_ARRAY_LEN(checks) && out[0] == '\0'; i++) {
        checks[i](&checking);
    }
    return out;
}
