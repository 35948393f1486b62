#include "bench/spawn/spawn_private.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "bench/spawn/spawn_place.h"
#include "comm/comm.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the first failure, for the others to report theirs: longer after a secondary failure, as
 * the root cause's report is on its way; then for them to notice that input closed. */
#define LINGER_MS           300
#define LINGER_SECONDARY_MS 3000
#define GRACE_MS            5000

#define LINE_BYTES   1024
#define LAST_BYTES   256
#define PORT_FIRST   20000 /* below what Linux gives to outgoing connections */
#define PORT_LAST    32767
#define SECRET_BYTES 32

enum { ENV_RANK, ENV_SIZE, ENV_HERE, ENV_RENDEZVOUS, ENV_SECRET, N_ENV };

struct child {
    pid_t pid; /**< 0 once reaped. */
    int in_fd, err_fd;
    char line[LINE_BYTES]; /**< The line that is not complete yet. */
    size_t len;
    char last[LAST_BYTES]; /**< The last complete one that is not empty. */
};

struct spawn {
    const struct weir_spawn_config *config;
    const char *by; /**< NULL: local. */
    struct spawn_places places;
    int n_ranks, n_alive;
    int place_of_rank[WEIR_COMM_MAX_RANKS];
    struct child children[WEIR_COMM_MAX_RANKS];
    char program[4096], rendezvous_dir[WEIR_DIR_TEMPORARY_BYTES], rendezvous[WEIR_HOST_BYTES + 64];
    char secret[2 * SECRET_BYTES + 1];
    int signals;
    sigset_t old_mask;
    int64_t close_ms, kill_ms; /**< Monotonic; INT64_MAX: never. */
    bool is_closed, is_stopped;
    bool is_secondary; /**< The failure known so far is the loss of another rank. */
    int failed_rank;
    struct weir_error failure; /**< status WEIR_OK: none yet. */
};

/* ---- places --------------------------------------------------------------------------------- */

static bool is_this_host(const char *host)
{
    char own[WEIR_HOST_BYTES] = "";
    if (strcmp(host, "localhost") == 0 || gethostname(own, sizeof own - 1) != 0) {
        return strcmp(host, "localhost") == 0;
    }
    size_t short_len = strcspn(own, ".");
    return strcmp(host, own) == 0 ||
           (strncmp(host, own, short_len) == 0 && host[short_len] == '\0');
}

static weir_status choose_by(const struct weir_spawn_config *config, const char **out,
                             struct weir_error *err)
{
    const char *by = config->by != NULL ? config->by : "auto";
    bool is_in_slurm = getenv("SLURM_JOB_NODELIST") != NULL;
    if (strcmp(by, "auto") == 0) {
        by = config->hosts != NULL ? "ssh" : is_in_slurm ? "srun" : "local";
    }
    if (strcmp(by, "local") == 0) {
        *out = NULL;
        return config->hosts == NULL
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID, "hosts: local ranks have none");
    }
    if (strcmp(by, "ssh") == 0 && config->hosts == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "hosts: missing; ssh needs to know where to");
    }
    if (strcmp(by, "srun") == 0 && config->hosts == NULL && !is_in_slurm) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "srun: this is no Slurm allocation (SLURM_JOB_NODELIST is not set); "
                              "begin one with salloc or sbatch");
    }
    if (strcmp(by, "ssh") != 0 && strcmp(by, "srun") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.40s\" starts no ranks: expected auto, local, ssh or srun", by);
    }
    *out = strcmp(by, "ssh") == 0 ? "ssh" : "srun";
    return WEIR_OK;
}

static weir_status find_places(struct spawn *spawn, struct weir_error *err)
{
    const struct weir_spawn_config *config = spawn->config;
    WEIR_TRY(choose_by(config, &spawn->by, err));
    if (config->hosts != NULL) {
        WEIR_TRY(spawn_places_parse(config->hosts, &spawn->places, err));
    } else if (spawn->by != NULL) {
        WEIR_TRY(spawn_places_parse_slurm(getenv("SLURM_JOB_NODELIST"),
                                          getenv("SLURM_TASKS_PER_NODE"), &spawn->places, err));
    } else {
        WEIR_TRY(spawn_places_parse("localhost", &spawn->places, err));
    }
    return spawn_places_lay_out(&spawn->places, config->n_ranks, config->hosts != NULL,
                                spawn->place_of_rank, &spawn->n_ranks, err);
}

static const char *host_of(const struct spawn *spawn, int rank)
{
    return spawn->places.list[spawn->place_of_rank[rank]].host;
}

/** NULL: started here, directly. */
static const char *helper_of(const struct spawn *spawn, int rank)
{
    bool is_here =
        spawn->by != NULL && strcmp(spawn->by, "ssh") == 0 && is_this_host(host_of(spawn, rank));
    return is_here ? NULL : spawn->by;
}

static int n_on_host_of(const struct spawn *spawn, int rank)
{
    int n = 0;
    for (int r = 0; r < spawn->n_ranks; r++) {
        n += spawn->place_of_rank[r] == spawn->place_of_rank[rank];
    }
    return n;
}

weir_status weir_spawn_count(const struct weir_spawn_config *config, int *out,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_auto_free) struct spawn *spawn = calloc(1, sizeof *spawn);
    if (spawn == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to plan the ranks");
    }
    spawn->config = config;
    WEIR_TRY(find_places(spawn, err));
    *out = spawn->n_ranks;
    return WEIR_OK;
}

/* ---- before --------------------------------------------------------------------------------- */

static void make_secret(char out[2 * SECRET_BYTES + 1])
{
    unsigned char bytes[SECRET_BYTES];
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    }
}

static weir_status choose_rendezvous(struct spawn *spawn, struct weir_error *err)
{
    bool is_all_here = true;
    for (int r = 0; r < spawn->n_ranks; r++) {
        is_all_here = is_all_here && helper_of(spawn, r) == NULL;
    }
    if (spawn->config->rendezvous != NULL) {
        return WEIR_OK;
    }
    if (is_all_here) {
        WEIR_TRY(weir_dir_make_temporary("spawn", spawn->rendezvous_dir, err));
        (void)snprintf(spawn->rendezvous, sizeof spawn->rendezvous, "file://%s",
                       spawn->rendezvous_dir);
        return WEIR_OK;
    }
    char own[WEIR_HOST_BYTES] = "localhost";
    uint16_t random = 0;
    const char *host = host_of(spawn, 0), *at = strchr(host, '@');
    if (helper_of(spawn, 0) == NULL) {
        (void)gethostname(own, sizeof own - 1); /* "localhost" means something else elsewhere */
        host = own;
    }
    weir_random_bytes(&random, sizeof random);
    (void)snprintf(spawn->rendezvous, sizeof spawn->rendezvous, "tcp://%s:%d",
                   at != NULL ? at + 1 : host, PORT_FIRST + random % (PORT_LAST - PORT_FIRST + 1));
    return WEIR_OK;
}

static weir_status find_program(struct spawn *spawn, struct weir_error *err)
{
    if (spawn->config->program != NULL) {
        (void)snprintf(spawn->program, sizeof spawn->program, "%s", spawn->config->program);
        return WEIR_OK;
    }
    ssize_t len = readlink("/proc/self/exe", spawn->program, sizeof spawn->program - 1);
    if (len < 0) {
        return weir_error_set_errno(err, errno, "cannot find this program's path");
    }
    spawn->program[len] = '\0';
    return WEIR_OK;
}

static weir_status catch_signals(struct spawn *spawn, struct weir_error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGCHLD);
    (void)pthread_sigmask(SIG_BLOCK, &set, &spawn->old_mask);
    spawn->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return spawn->signals >= 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot watch signals");
}

static weir_status start_rank(struct spawn *spawn, int rank, struct weir_error *err)
{
    char texts[N_ENV][WEIR_HOST_BYTES + 128];
    size_t n_own = 0;
    const char *const *own = spawn->config->env;
    while (own != NULL && own[n_own] != NULL) {
        n_own++;
    }
    const char **env = calloc(N_ENV + n_own + 1, sizeof *env);
    if (env == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to start a rank");
    }
    const char *rendezvous =
        spawn->config->rendezvous != NULL ? spawn->config->rendezvous : spawn->rendezvous;
    const size_t size = sizeof texts[0];
    (void)snprintf(texts[ENV_RANK], size, SPAWN_ENV_RANK "=%d", rank);
    (void)snprintf(texts[ENV_SIZE], size, SPAWN_ENV_SIZE "=%d", spawn->n_ranks);
    (void)snprintf(texts[ENV_HERE], size, SPAWN_ENV_HERE "=%d", n_on_host_of(spawn, rank));
    (void)snprintf(texts[ENV_RENDEZVOUS], size, SPAWN_ENV_RENDEZVOUS "=%s", rendezvous);
    (void)snprintf(texts[ENV_SECRET], size, SPAWN_ENV_SECRET "=%s", spawn->secret);
    for (size_t i = 0; i < N_ENV; i++) {
        env[i] = texts[i];
    }
    for (size_t i = 0; i < n_own; i++) {
        env[N_ENV + i] = own[i];
    }
    struct child *child = &spawn->children[rank];
    const struct spawn_start start = {.by = helper_of(spawn, rank),
                                      .host = host_of(spawn, rank),
                                      .program = spawn->program,
                                      .argv = spawn->config->argv,
                                      .env = env};
    weir_status status = spawn_start(&start, &child->pid, &child->in_fd, &child->err_fd, err);
    free(env);
    spawn->n_alive += status == WEIR_OK;
    return status;
}

/* ---- what ranks say ------------------------------------------------------------------------- */

static void end_line(struct child *child, int rank)
{
    char text[LINE_BYTES + 32];
    int len = snprintf(text, sizeof text, "rank %d: %.*s\n", rank, (int)child->len, child->line);
    /* One write: lines of several ranks do not mix. A closed stderr is no reason to stop. */
    (void)!weir_fd_write_all(STDERR_FILENO, text, (size_t)len, NULL);
    /* What srun says of a rank's end is less than what the rank said itself. */
    bool is_srun = strncmp(child->line, "srun: ", WEIR_MIN(child->len, (size_t)6)) == 0;
    if (child->len > 0 && (child->last[0] == '\0' || !is_srun)) {
        (void)snprintf(child->last, sizeof child->last, "%.*s", (int)child->len, child->line);
    }
    child->len = 0;
}

static void read_lines(struct child *child, int rank)
{
    char bytes[4096];
    ssize_t n = 0;
    while (child->err_fd >= 0 && (n = read(child->err_fd, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] == '\n' || child->len == LINE_BYTES) {
                end_line(child, rank);
            }
            if (bytes[i] != '\n') {
                child->line[child->len++] = bytes[i];
            }
        }
    }
    if (n == 0 && child->err_fd >= 0) {
        (void)close(child->err_fd);
        child->err_fd = -1;
    }
}

/* ---- how they end --------------------------------------------------------------------------- */

/** The first status of the list with this exit status. */
static weir_status status_of_exit(int exit_status)
{
    for (int i = 1; i < WEIR_STATUS_COUNT; i++) {
        if (weir_status_exit(-i) == exit_status) {
            return exit_status == weir_status_exit(WEIR_ERR_PEER) ? WEIR_ERR_PEER : -i;
        }
    }
    return WEIR_ERR_INTERNAL;
}

static void describe(struct spawn *spawn, int rank, int wait_status)
{
    char where[WEIR_HOST_BYTES + 8] = "";
    const char *last = spawn->children[rank].last;
    if (spawn->by != NULL) {
        (void)snprintf(where, sizeof where, " on %s", host_of(spawn, rank));
    }
    spawn->failed_rank = rank;
    if (WIFSIGNALED(wait_status)) {
        (void)weir_error_set(&spawn->failure, WEIR_ERR_PEER,
                             "rank %d%s was killed by signal %d (%s)", rank, where,
                             WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
        return;
    }
    int exit_status = WEXITSTATUS(wait_status);
    bool is_unreachable = helper_of(spawn, rank) != NULL && exit_status == 255;
    weir_status status = is_unreachable       ? WEIR_ERR_UNAVAILABLE
                         : exit_status == 127 ? WEIR_ERR_NOT_FOUND
                                              : status_of_exit(exit_status);
    if (last[0] != '\0') {
        (void)weir_error_set(&spawn->failure, status, "rank %d%s: %s", rank, where, last);
    } else {
        (void)weir_error_set(&spawn->failure, status, "rank %d%s ended with exit status %d", rank,
                             where, exit_status);
    }
}

static void note_exit(struct spawn *spawn, int rank, int wait_status)
{
    if ((WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) || spawn->is_closed) {
        return;
    }
    bool is_secondary =
        WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == weir_status_exit(WEIR_ERR_PEER);
    if (spawn->failure.status == WEIR_OK || (spawn->is_secondary && !is_secondary)) {
        spawn->is_secondary = is_secondary;
        describe(spawn, rank, wait_status);
    }
    int64_t linger_ms = spawn->is_secondary ? LINGER_SECONDARY_MS : LINGER_MS;
    spawn->close_ms = WEIR_MIN(spawn->close_ms, weir_mono_ms() + linger_ms);
}

static void reap(struct spawn *spawn)
{
    for (int r = 0; r < spawn->n_ranks; r++) {
        struct child *child = &spawn->children[r];
        int wait_status = 0;
        if (child->pid > 0 && waitpid(child->pid, &wait_status, WNOHANG) == child->pid) {
            child->pid = 0;
            spawn->n_alive--;
            read_lines(child, r); /* written before it ended */
            if (child->len > 0) {
                end_line(child, r);
            }
            note_exit(spawn, r, wait_status);
        }
    }
}

static void close_inputs(struct spawn *spawn)
{
    for (int r = 0; r < spawn->n_ranks; r++) {
        if (spawn->children[r].in_fd >= 0) {
            (void)close(spawn->children[r].in_fd);
            spawn->children[r].in_fd = -1;
        }
    }
    spawn->is_closed = true;
    spawn->close_ms = INT64_MAX;
    spawn->kill_ms = weir_mono_ms() + GRACE_MS;
}

static void kill_all(struct spawn *spawn)
{
    for (int r = 0; r < spawn->n_ranks; r++) {
        if (spawn->children[r].pid > 0) {
            (void)kill(-spawn->children[r].pid, SIGKILL);
        }
    }
    spawn->kill_ms = weir_mono_ms() + GRACE_MS;
}

static void read_signals(struct spawn *spawn)
{
    struct signalfd_siginfo info;
    while (read(spawn->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            continue;
        }
        if (spawn->is_stopped) { /* asked twice: at once */
            kill_all(spawn);
        } else {
            spawn->is_stopped = true;
            close_inputs(spawn);
        }
    }
}

static void wait_for_news(struct spawn *spawn)
{
    struct pollfd polled[WEIR_COMM_MAX_RANKS + 1];
    for (int r = 0; r < spawn->n_ranks; r++) {
        polled[r] = (struct pollfd){.fd = spawn->children[r].err_fd, .events = POLLIN};
    }
    polled[spawn->n_ranks] = (struct pollfd){.fd = spawn->signals, .events = POLLIN};
    int64_t next_ms = WEIR_MIN(spawn->close_ms, spawn->kill_ms), now_ms = weir_mono_ms();
    int timeout_ms = next_ms == INT64_MAX ? -1 : (int)WEIR_MAX(next_ms - now_ms, (int64_t)0);
    (void)poll(polled, (nfds_t)spawn->n_ranks + 1, timeout_ms);
    for (int r = 0; r < spawn->n_ranks; r++) {
        if (polled[r].revents != 0) {
            read_lines(&spawn->children[r], r);
        }
    }
}

static void watch(struct spawn *spawn)
{
    while (spawn->n_alive > 0) {
        wait_for_news(spawn);
        read_signals(spawn);
        reap(spawn);
        int64_t now_ms = weir_mono_ms();
        if (now_ms >= spawn->close_ms) {
            close_inputs(spawn);
        }
        if (now_ms >= spawn->kill_ms) {
            kill_all(spawn);
        }
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static weir_status run(struct spawn *spawn, struct weir_error *err)
{
    WEIR_TRY(find_places(spawn, err));
    WEIR_TRY(find_program(spawn, err));
    make_secret(spawn->secret);
    WEIR_TRY(choose_rendezvous(spawn, err));
    WEIR_TRY(catch_signals(spawn, err));
    weir_status status = WEIR_OK;
    for (int r = 0; r < spawn->n_ranks && status == WEIR_OK; r++) {
        status = start_rank(spawn, r, err);
    }
    if (status != WEIR_OK) {
        close_inputs(spawn);
    }
    watch(spawn);
    WEIR_TRY(status);
    if (spawn->is_stopped) {
        return weir_error_set(err, WEIR_ERR_CANCELLED, "stopped by a signal");
    }
    if (spawn->failure.status != WEIR_OK && err != NULL) {
        *err = spawn->failure;
    }
    return spawn->failure.status;
}

weir_status weir_spawn_run(const struct weir_spawn_config *config, struct weir_error *err)
{
    struct spawn *spawn = calloc(1, sizeof *spawn);
    if (spawn == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory to start ranks");
    }
    spawn->config = config;
    spawn->signals = -1;
    spawn->close_ms = spawn->kill_ms = INT64_MAX;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &spawn->old_mask);
    for (int r = 0; r < WEIR_COMM_MAX_RANKS; r++) {
        spawn->children[r].in_fd = spawn->children[r].err_fd = -1;
    }
    weir_status status = run(spawn, err);
    for (int r = 0; r < WEIR_COMM_MAX_RANKS; r++) {
        if (spawn->children[r].in_fd >= 0) {
            (void)close(spawn->children[r].in_fd);
        }
        if (spawn->children[r].err_fd >= 0) {
            (void)close(spawn->children[r].err_fd);
        }
    }
    if (spawn->signals >= 0) {
        (void)close(spawn->signals);
    }
    (void)pthread_sigmask(SIG_SETMASK, &spawn->old_mask, NULL);
    if (spawn->rendezvous_dir[0] != '\0') {
        (void)!weir_dir_remove(spawn->rendezvous_dir, NULL);
    }
    free(spawn);
    return status;
}
