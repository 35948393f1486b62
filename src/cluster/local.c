#include "cluster/cluster.h"

#include "base/file.h"
#include "base/record.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU_SLOTS_MIN 2

static int usable_processors(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : get_nprocs();
}

/* "model name" of the first processor. */
static void cpu_model(char *out, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    out[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            colon[strcspn(colon, "\n")] = '\0';
            (void)snprintf(out, size, "%s", colon + 2);
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

json_t *weir_cluster_inventory(int64_t cpu_slots)
{
    struct utsname kernel = {0};
    struct sysinfo info = {0};
    char model[128];
    int n = usable_processors();
    (void)uname(&kernel);
    (void)sysinfo(&info);
    cpu_model(model, sizeof model);
    const char *cgroup = weir_path_exists("/sys/fs/cgroup/cgroup.controllers") ? "v2"
                         : weir_path_is_dir("/sys/fs/cgroup/cpu")              ? "v1"
                                                                               : "none";
    int64_t slots = cpu_slots > 0 ? cpu_slots : WEIR_MAX(n, CPU_SLOTS_MIN);
    return json_pack("{s:I,s:I,s:i,s:{s:s,s:s,s:i,s:s,s:s}}", "cpu_slots", (json_int_t)slots,
                     "memory_bytes", (json_int_t)((uint64_t)info.totalram * info.mem_unit),
                     "n_accelerators", 0, "inventory", "hostname", kernel.nodename, "kernel",
                     kernel.release, "processors", n, "cpu_model", model, "cgroup", cgroup);
}

char *weir_cluster_node_name(struct weir_arena *arena)
{
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    for (char *p = host; *p != '\0'; p++) {
        *p = (char)tolower((unsigned char)*p);
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", *p) == NULL) {
            *p = '-';
        }
    }
    return weir_name_is_valid(host) ? weir_arena_strdup(arena, host)
                                    : weir_arena_strdup(arena, "node");
}

static weir_status exec_agent(const struct weir_cluster_agent *agent, char *const *argv)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/agent.log", agent->dir);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600),
        nothing = open("/dev/null", O_RDONLY);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (log < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
        return WEIR_ERR_IO;
    }
    (void)close_range(3, ~0U, 0);
    (void)execv("/proc/self/exe", argv);
    return WEIR_ERR_NOT_FOUND;
}

/* Two forks: the agent must be nobody's child, so that nobody's end reaps or signals it. */
static weir_status spawn_detached(const struct weir_cluster_agent *agent, char *const *argv,
                                  struct weir_error *err)
{
    pid_t child = fork();
    if (child < 0) {
        return weir_error_set_errno(err, errno, "cannot fork");
    }
    if (child == 0) {
        if (setsid() < 0) {
            _exit(1);
        }
        pid_t grandchild = fork();
        if (grandchild != 0) {
            _exit(grandchild < 0);
        }
        (void)exec_agent(agent, argv);
        _exit(127);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0 ? WEIR_OK : weir_error_set(err, WEIR_ERR_IO, "cannot start the agent");
}

weir_status weir_cluster_start_local_agent(const struct weir_cluster_agent *agent,
                                           struct weir_error *err)
{
    struct weir_arena arena;
    struct weir_error ignored;
    int lock_fd;
    weir_arena_init(&arena, 0);
    weir_status status = weir_dir_make(agent->dir, 0700, err);
    char *url_file = weir_arena_printf(&arena, "%s/server.url", agent->dir);
    if (status == WEIR_OK) {
        status = weir_file_write_atomic(url_file, agent->server, strlen(agent->server), 0600, err);
    }
    if (status == WEIR_OK && weir_file_lock(weir_arena_printf(&arena, "%s/lock", agent->dir),
                                            &lock_fd, &ignored) == WEIR_OK) {
        (void)close(lock_fd); /* nobody holds it: no agent runs */
        char *node = agent->node != NULL ? weir_arena_strdup(&arena, agent->node)
                                         : weir_cluster_node_name(&arena);
        char *argv[] = {weir_arena_strdup(&arena, "weir"),
                        weir_arena_strdup(&arena, "agent"),
                        weir_arena_printf(&arena, "--dir=%s", agent->dir),
                        weir_arena_printf(&arena, "--server=%s", agent->server),
                        weir_arena_printf(&arena, "--node=%s", node),
                        weir_arena_printf(&arena, "--cpu-slots=%lld", (long long)agent->cpu_slots),
                        NULL};
        status = spawn_detached(agent, argv, err);
    }
    weir_arena_fini(&arena);
    return status;
}

weir_status weir_cluster_driver_check(const char *driver, struct weir_error *err)
{
    static const char *const planned[] = {"slurm", "kubernetes"};
    if (strcmp(driver, "local") == 0) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(planned); i++) {
        if (strcmp(driver, planned[i]) == 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "the cluster driver \"%s\" is not supported yet; \"local\" is",
                                  driver);
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID, "there is no cluster driver \"%.40s\"", driver);
}
