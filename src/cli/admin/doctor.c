/** weir doctor: what this machine offers, what is missing, what to do. */
#include "cli/command.h"

#include "agent/isolation.h"
#include "agent/sandbox_enter.h"
#include "base/file.h"
#include "base/library.h"
#include "cluster/allocation.h"
#include "cluster/cluster.h"
#include "device/device.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define GIB ((double)((uint64_t)1 << 30))

enum verdict { FINE, NOTE, TROUBLE };

static const char *const verdict_texts[] = {"ok", "note", "trouble"};

struct doctor {
    struct cli_call *call;
    json_t *findings;
    bool has_trouble;
};

/* One finding: what was looked at, how it is, and what to do if it is not fine. */
static void find(struct doctor *doctor, enum verdict verdict, const char *what, const char *state,
                 const char *advice)
{
    json_array_append_new(doctor->findings,
                          json_pack("{s:s,s:s,s:s,s:s?}", "check", what, "verdict",
                                    verdict_texts[verdict], "found", state, "do", advice));
    doctor->has_trouble = doctor->has_trouble || verdict == TROUBLE;
}

static void check_processor(struct doctor *doctor)
{
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : get_nprocs();
    __builtin_cpu_init();
    const char *vectors = __builtin_cpu_supports("avx512f") ? "AVX-512"
                          : __builtin_cpu_supports("avx2")  ? "AVX2"
                                                            : "neither AVX2 nor AVX-512";
    bool is_fast = __builtin_cpu_supports("avx2");
    find(doctor, is_fast ? FINE : NOTE, "processors",
         weir_arena_printf(doctor->call->arena, "%d usable, %s%s", n, vectors,
                           __builtin_cpu_supports("avx512bf16") ? " with bf16" : ""),
         is_fast ? NULL : "training and prediction work, but slowly; a newer processor helps most");
}

static void check_memory(struct doctor *doctor)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0) {
        return;
    }
    double total = (double)info.totalram * info.mem_unit / GIB,
           free_gib = (double)info.freeram * info.mem_unit / GIB;
    find(doctor, total < 2 ? NOTE : FINE, "memory",
         weir_arena_printf(doctor->call->arena, "%.1f GiB, %.1f GiB free", total, free_gib),
         total < 2 ? "2 GiB or more are wanted for training" : NULL);
}

static void check_huge_pages(struct doctor *doctor)
{
    char *text;
    struct weir_error err;
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    if (weir_file_read(path, 4096, doctor->call->arena, &text, NULL, &err) != WEIR_OK) {
        /* sysfs files have no size that fread could use: read by hand */
        FILE *file = fopen(path, "re");
        text = weir_arena_alloc(doctor->call->arena, 256);
        if (file == NULL || fgets(text, 256, file) == NULL) {
            text = NULL;
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    bool is_off = text == NULL || strstr(text, "[never]") != NULL;
    find(doctor, is_off ? NOTE : FINE, "huge pages", is_off ? "off" : "on request",
         is_off ? "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" : NULL);
}

/* Within somebody's cluster: what this process has of the node. Elsewhere nothing is said. */
static bool find_share(struct doctor *doctor, struct weir_node_share *out)
{
    struct weir_arena *arena = doctor->call->arena;
    struct weir_error ignored;
    return weir_node_share_read("this", environ, weir_cluster_node_name(arena), arena, out,
                                &ignored) == WEIR_OK &&
           out->job_id != NULL;
}

static void check_allocation(struct doctor *doctor)
{
    struct weir_arena *arena = doctor->call->arena;
    struct weir_node_share share;
    if (!find_share(doctor, &share)) {
        return;
    }
    int64_t memory = share.memory_bytes > 0 ? share.memory_bytes : weir_isolation_own_memory_max();
    const char *amount = memory > 0
                             ? weir_arena_printf(arena, "%.1f GiB of memory", (double)memory / GIB)
                             : "no bound of memory";
    const char *cpus = share.cpus > 0
                           ? weir_arena_printf(arena, "%lld processors", (long long)share.cpus)
                           : "no bound of processors";
    bool is_told = share.n_shards == 0 || share.device_milli > 0;
    find(doctor, is_told ? FINE : NOTE, "allocation",
         weir_arena_printf(arena, "job %s of Slurm on %s: %s, %s, %s%s", share.job_id, share.host,
                           cpus, amount, share.n_devices > 0 ? "accelerators " : "no accelerators",
                           share.devices),
         is_told ? NULL
                 : "of how large parts of accelerators (shards) Slurm does not say: a "
                   "node here offers them only in an allocation that Weir asked for; "
                   "by hand ask for whole ones (--gres=gpu:N)");
}

static void check_isolation(struct doctor *doctor)
{
    struct weir_isolation isolation;
    struct weir_node_share share;
    char text[512];
    weir_isolation_probe(&isolation);
    weir_isolation_describe(&isolation, text, sizeof text);
    bool has_cpu = isolation.v2_cpu || isolation.v1_cpu[0] != '\0';
    bool has_memory = isolation.v2_memory || isolation.v1_memory[0] != '\0';
    find(doctor, has_cpu && has_memory ? FINE : NOTE, "limits of tasks", text,
         has_cpu && has_memory ? NULL
         : find_share(doctor, &share)
             ? "Slurm's control groups are not this user's to divide: tasks share what the "
               "allocation has by nice value and rlimits"
             : "run the agent as root, or let the service manager delegate a control group "
               "(systemd: Delegate=yes); until then tasks share by nice value and rlimits");
}

/* What an agent that this user starts would build around tasks, in a folder of his. */
static void check_sandbox(struct doctor *doctor)
{
    struct weir_isolation groups;
    struct sandbox_probe sandbox;
    char *dir = cli_state_dir(doctor->call->arena, doctor->call->common->state);
    weir_isolation_probe(&groups);
    sandbox_probe(weir_path_is_dir(dir) ? dir : "/", &sandbox);
    json_t *record = weir_isolation_record(true, &groups, &sandbox);
    const json_t *missing = json_object_get(record, "missing");
    bool has_user = json_is_true(json_object_get(record, "user"));
    bool has_mounts = json_is_true(json_object_get(record, "mounts"));
    const char *text = NULL;
    for (size_t i = 0; i < json_array_size(missing); i++) {
        const char *item = json_string_value(json_array_get(missing, i));
        text =
            weir_arena_printf(doctor->call->arena, "%s%s", text == NULL ? "missing: " : text, item);
        text = i + 1 < json_array_size(missing)
                   ? weir_arena_printf(doctor->call->arena, "%s; missing: ", text)
                   : text;
    }
    find(doctor, text == NULL ? FINE : NOTE, "isolation",
         has_user ? "a user, hidden folders, a private /tmp and processes of its own for each job"
         : has_mounts
             ? "hidden folders, a private /tmp and processes of its own for each job; tasks "
               "are the agent's user"
             : "a filter of system calls and no_new_privs alone: tasks are the agent's user",
         text);
    bool has_images = strcmp(json_string_value(json_object_get(record, "images")), "none") != 0;
    find(doctor, has_images ? FINE : NOTE, "images", has_images ? "started by crun" : "none",
         has_images
             ? NULL
             : "jobs in OCI images need crun (apt-get install crun) and a whole sandbox as above");
    json_decref(record);
}

static void check_state(struct doctor *doctor)
{
    char *dir = cli_state_dir(doctor->call->arena, doctor->call->common->state);
    char *existing = weir_arena_strdup(doctor->call->arena, dir);
    while (!weir_path_exists(existing) && strrchr(existing, '/') > existing) {
        *strrchr(existing, '/') = '\0';
    }
    struct statvfs fs;
    bool is_writable = access(existing, W_OK) == 0;
    double free_gib =
        statvfs(existing, &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_frsize / GIB : 0;
    find(doctor,
         !is_writable   ? TROUBLE
         : free_gib < 1 ? NOTE
                        : FINE,
         "state folder",
         weir_arena_printf(doctor->call->arena, "%s, %.1f GiB free%s", dir, free_gib,
                           is_writable ? "" : ", not writable"),
         !is_writable   ? "choose another with --state, or run as its owner"
         : free_gib < 1 ? "free some space: models, pictures and the database live there"
                        : NULL);
}

static void check_shared_memory(struct doctor *doctor)
{
    struct statvfs fs;
    double free_mib =
        statvfs("/dev/shm", &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_frsize / (1 << 20) : 0;
    find(doctor, free_mib < 64 ? NOTE : FINE, "shared memory",
         weir_arena_printf(doctor->call->arena, "%.0f MiB free in /dev/shm", free_mib),
         free_mib < 64
             ? "workers of one machine share gradients in memory: give the machine or container "
               "more (docker: --shm-size)"
             : NULL);
}

static void check_files(struct doctor *doctor)
{
    struct rlimit limit;
    bool is_low = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < 4096;
    find(doctor, is_low ? NOTE : FINE, "open files",
         weir_arena_printf(doctor->call->arena, "at most %llu", (unsigned long long)limit.rlim_max),
         is_low ? "raise the limit (ulimit -Hn 8192) for many cameras or viewers" : NULL);
}

/* A program that is looked for beside this one. @param absent  How bad it is if it is not there. @param cure  What to do then. */
static void check_program(struct doctor *doctor, const char *name, enum verdict absent,
                          const char *cure)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 32);
    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        (void)snprintf(slash + 1, 32, "%s", name);
    }
    bool is_there = access(path, X_OK) == 0;
    find(doctor, is_there ? FINE : absent, name, is_there ? path : "not beside this program",
         is_there ? NULL : cure);
}

static void check_programs(struct doctor *doctor)
{
    check_program(doctor, "weir-worker", TROUBLE,
                  "build it with `make`, or install both programs into one folder");
    check_program(doctor, "weir-camera", NOTE,
                  "cameras of the network and files of video need it: install the package "
                  "weir-camera, or build where libavformat-dev is");
}

static void check_libraries(struct doctor *doctor)
{
    const char *absent = weir_libraries_text(false, doctor->call->arena);
    find(doctor, FINE, "libraries", weir_libraries_text(true, doctor->call->arena),
         absent[0] == '\0' ? NULL
                           : weir_arena_printf(doctor->call->arena, "built without %s", absent));
}

/* One line for each kind of device that is found, and one for each that is bad. */
static void check_devices(struct doctor *doctor)
{
    static const char *const kinds[] = {"cpu", "memory", "disk", "nic", "gpu", "mig", "declared"};
    size_t n[WEIR_ARRAY_LEN(kinds)] = {0}, i;
    const struct weir_device_config config = {.declared = getenv("WEIR_DEVICES")};
    struct weir_device_context *context = weir_device_context_create(&config);
    json_t *errors, *devices = weir_device_find_all(context, &errors), *item;
    char *text = weir_arena_strdup(doctor->call->arena, "");
    json_array_foreach(devices, i, item)
    {
        const char *kind = json_string_value(json_object_get(item, "kind"));
        for (size_t k = 0; k < WEIR_ARRAY_LEN(kinds); k++) {
            n[k] += strcmp(kinds[k], kind) == 0;
        }
        if (json_is_string(json_object_get(item, "reason"))) {
            find(doctor, NOTE, "device",
                 weir_arena_printf(doctor->call->arena, "%s is bad",
                                   cli_text(doctor->call, item, "id")),
                 cli_text(doctor->call, item, "reason"));
        }
    }
    for (size_t k = 0; k < WEIR_ARRAY_LEN(kinds); k++) {
        if (n[k] > 0) {
            text = weir_arena_printf(doctor->call->arena, "%s%s%zu %s", text,
                                     text[0] != '\0' ? ", " : "", n[k], kinds[k]);
        }
    }
    find(doctor, FINE, "devices", text[0] != '\0' ? text : "none found", NULL);
    json_array_foreach(errors, i, item)
    {
        find(doctor, NOTE, "devices", "not all can be looked at", json_string_value(item));
    }
    json_decref(errors);
    json_decref(devices);
    weir_device_context_destroy(context);
}

static void check_accelerators(struct doctor *doctor)
{
    bool has_nvidia = weir_path_exists("/dev/nvidia0");
    find(doctor, FINE, "accelerators", has_nvidia ? "an NVIDIA GPU" : "none: the CPU computes",
         has_nvidia ? "trainings take it with --backend cuda, which names what lacks of NVIDIA's "
                      "libraries"
                    : NULL);
}

/* Over a network, and in the clear? */
static bool is_in_the_clear(const char *url)
{
    static const char *const fine[] = {"https://", "http://127.", "http://[::1]",
                                       "http://localhost"};
    bool is_fine = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(fine); i++) {
        is_fine = is_fine || strncmp(url, fine[i], strlen(fine[i])) == 0;
    }
    return !is_fine;
}

static void check_server(struct doctor *doctor)
{
    struct weir_error err;
    json_t *answer;
    if (cli_rest(doctor->call, "GET", "/api/v1/session", NULL, &answer, &err) == WEIR_OK) {
        const char *url = weir_client_server(doctor->call->client);
        bool is_clear = is_in_the_clear(url);
        find(doctor, is_clear ? NOTE : FINE, "server",
             weir_arena_printf(doctor->call->arena, "%s, version %s", url,
                               cli_text(doctor->call, answer, "version")),
             is_clear
                 ? "passwords, tokens and frames cross the network unencrypted: give the server "
                   "--tls-cert and --tls-key"
                 : NULL);
        json_decref(answer);
    } else {
        find(doctor, NOTE, "server", err.message, NULL); /* the message says what to do */
    }
}

/* What the server says of the whole, if one answers. */
/* "2 alerts are open, 1 of them critical"; NULL: none is, or nobody says. */
static char *open_alerts(struct doctor *doctor)
{
    json_t *alerts, *alert;
    struct weir_error ignored;
    size_t i, n, n_critical = 0;
    if (cli_rest(doctor->call, "GET", "/api/v1/alerts?state=open&limit=1000", NULL, &alerts,
                 &ignored) != WEIR_OK) {
        return NULL;
    }
    json_array_foreach(json_object_get(alerts, "items"), i, alert)
    {
        const char *severity = json_string_value(json_object_get(alert, "severity"));
        n_critical += severity != NULL && strcmp(severity, "critical") == 0;
    }
    n = json_array_size(json_object_get(alerts, "items"));
    json_decref(alerts);
    return n > 0 ? weir_arena_printf(doctor->call->arena,
                                     "%zu alert%s open, %zu of them critical: weir get alerts", n,
                                     n == 1 ? " is" : "s are", n_critical)
                 : NULL;
}

static void check_platform(struct doctor *doctor)
{
    json_t *summary;
    struct weir_error failure;
    weir_status asked =
        cli_rest(doctor->call, "GET", "/api/v1/health/summary", NULL, &summary, &failure);
    if (asked == WEIR_ERR_IO || asked == WEIR_ERR_INTERNAL || asked == WEIR_ERR_NOSPACE ||
        asked == WEIR_ERR_CORRUPT) {
        find(doctor, TROUBLE, "platform", "the server cannot say how it is", failure.message);
    }
    if (asked != WEIR_OK) {
        return; /* there is none, or the check of the server says why */
    }
    const char *status = json_string_value(json_object_get(summary, "status"));
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    bool is_down = status != NULL && strcmp(status, "down") == 0;
    bool is_ok = status != NULL && strcmp(status, "ok") == 0;
    enum verdict verdict = is_ok ? FINE : is_down ? TROUBLE : NOTE;
    find(doctor, verdict, "platform",
         weir_arena_strdup(doctor->call->arena, status != NULL ? status : "unknown"),
         reason != NULL ? weir_arena_printf(doctor->call->arena, "%s (weir get alerts)", reason)
                        : open_alerts(doctor));
    json_decref(summary);
}

/* One that lacks something is a trouble; one that is silent may come back. */
static void check_cluster(struct doctor *doctor, const json_t *cluster)
{
    const char *state = json_string_value(json_object_get(cluster, "state"));
    bool is_wrong = state != NULL && strcmp(state, "wrong") == 0;
    bool is_fine = state != NULL && strcmp(state, "ready") == 0;
    const char *said = json_string_value(json_object_get(cluster, "said"));
    find(doctor,
         is_wrong  ? TROUBLE
         : is_fine ? FINE
                   : NOTE,
         "cluster",
         weir_arena_printf(
             doctor->call->arena, "%s by %s: %s, %s of its nodes here, last answer %s",
             cli_text(doctor->call, cluster, "name"), cli_text(doctor->call, cluster, "driver"),
             cli_text(doctor->call, cluster, "state"), cli_text(doctor->call, cluster, "n_nodes"),
             cli_cell_text(doctor->call, cluster, "heard_ms")),
         weir_arena_strdup(doctor->call->arena, said));
}

/* The clusters of the server, if one answers. */
static void check_clusters(struct doctor *doctor)
{
    WEIR_AUTO(weir_json_auto_free) json_t *clusters = NULL;
    struct weir_error ignored;
    json_t *cluster;
    size_t i;
    weir_status status =
        cli_rest(doctor->call, "GET", "/api/v1/clusters?limit=1000", NULL, &clusters, &ignored);
    json_array_foreach(status == WEIR_OK ? json_object_get(clusters, "items") : NULL, i, cluster)
    {
        check_cluster(doctor, cluster);
    }
}

static void (*const checks[])(struct doctor *doctor) = {
    check_processor, check_memory,       check_huge_pages, check_shared_memory,
    check_files,     check_accelerators, check_devices,    check_allocation,
    check_isolation, check_sandbox,      check_state,      check_programs,
    check_libraries, check_server,       check_platform,   check_clusters,
};

static weir_status run_doctor(struct cli_call *call, struct weir_error *err)
{
    struct doctor doctor = {.call = call, .findings = json_array()};
    struct utsname kernel;
    if (uname(&kernel) == 0) {
        find(&doctor, FINE, "system",
             weir_arena_printf(call->arena, "%s %s %s", kernel.sysname, kernel.release,
                               kernel.machine),
             NULL);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(checks); i++) {
        checks[i](&doctor);
    }
    if (cli_is_json(call)) {
        cli_print_json(doctor.findings);
    }
    size_t i;
    json_t *finding;
    json_array_foreach(doctor.findings, i, finding)
    {
        if (cli_is_json(call)) {
            break;
        }
        printf("%-8s %-14s %s\n", cli_text(call, finding, "verdict"),
               cli_text(call, finding, "check"), cli_text(call, finding, "found"));
        if (!json_is_null(json_object_get(finding, "do"))) {
            printf("%-8s %-14s -> %s\n", "", "", cli_text(call, finding, "do"));
        }
    }
    json_decref(doctor.findings);
    return doctor.has_trouble
               ? weir_error_set(err, WEIR_ERR_UNAVAILABLE, "something here needs mending first")
               : WEIR_OK;
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .usage = "[-o json]",
    .summary = "Say what this machine offers and what is missing",
    CLI_PLAIN,
    .run = run_doctor,
};
