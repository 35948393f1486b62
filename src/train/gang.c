#include "train/gang.h"

#include "base/clock.h"
#include "base/log.h"
#include "train/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the first loss the others need one failing call; after a stop, a step and a checkpoint. */
#define LOSS_GRACE_MS 15000
#define STOP_GRACE_MS 60000
/* A request to stop that comes twice within this is one request. */
#define SAME_REQUEST_MS 2000
/* An elastic group would go on by itself: it has to be ended. */
#define ELASTIC_GRACE_MS 1000

/** What a rank writes into the pipe: shorter than PIPE_BUF, so that reports do not mix. */
struct rank_report {
    int rank;
    bool is_ready;         /**< It is about to take its first step; otherwise it fails. */
    struct weir_error err; /**< Why it fails. */
};

struct gang {
    const struct train_task *task;
    const struct weir_train_config *config; /**< The task's. */
    const struct weir_train_hooks *hooks;
    int n_ranks, n_alive, n_done;
    int64_t n_replaced;                    /**< Workers started in place of lost ones. */
    bool is_newcomer[WEIR_COMM_MAX_RANKS]; /**< Such a one. */
    bool is_ready[WEIR_COMM_MAX_RANKS];
    struct weir_error failures[WEIR_COMM_MAX_RANKS]; /**< Failure reports; OK: none. */
    pid_t pids[WEIR_COMM_MAX_RANKS];                 /**< 0 once reaped. */
    pid_t group;
    int report_fds[2], signals;
    int64_t kill_ms; /**< Monotonic: when the rest is killed; INT64_MAX: never. */
    bool is_stopped;
    int64_t stopped_ms; /**< Monotonic: when that was asked first. */
    struct gang_exit exits[WEIR_COMM_MAX_RANKS];
    int n_exits;
};

static const char *role_name(const struct gang *gang, int rank)
{
    return rank < gang->config->group.workers ? "worker" : "parameter server";
}

/* ---- the child ------------------------------------------------------------------------------ */

static void send_report(const struct gang *gang, const struct rank_report *report)
{
    ssize_t n_written = write(gang->report_fds[1], report, sizeof *report);
    (void)n_written; /* the launcher may be gone; the exit status tells too */
}

static void on_ready(void *context, int rank)
{
    const struct gang *gang = context;
    send_report(gang, &(struct rank_report){.rank = rank, .is_ready = true});
    if (gang->hooks != NULL && gang->hooks->on_ready != NULL) {
        gang->hooks->on_ready(gang->hooks->context, rank);
    }
}

static void on_step(void *context, const struct weir_train_step *step)
{
    const struct gang *gang = context;
    gang->hooks->on_step(gang->hooks->context, step);
}

static void run_child(struct gang *gang, int rank, pid_t parent)
{
    struct weir_train_config config = *gang->config;
    struct train_task task = *gang->task; /* this process' own now */
    struct rank_report report = {.rank = rank};
    const bool has_steps = gang->hooks != NULL && gang->hooks->on_step != NULL;
    const struct weir_train_hooks hooks = {
        .on_ready = on_ready, .on_step = has_steps ? on_step : NULL, .context = gang};
    sigset_t children;
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_UNBLOCK, &children, NULL);
    (void)close(gang->signals);
    (void)close(gang->report_fds[0]);
    /* A rank must not outlive its launcher: it stops with a checkpoint. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(1);
    }
    config.group.rank = rank;
    config.group.role = NULL;
    config.group.join = gang->is_newcomer[rank];
    task.config = &config;
    weir_status status = train_rank_run(&task, &hooks, &report.err);
    if (status != WEIR_OK) {
        report.err.status = status;
        send_report(gang, &report);
    }
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(weir_status_exit(status));
}

/* ---- start and end -------------------------------------------------------------------------- */

static void kill_all(struct gang *gang, int signal_number)
{
    for (int r = 0; r < gang->n_ranks; r++) {
        if (gang->pids[r] > 0) {
            (void)kill(gang->pids[r], signal_number);
        }
    }
}

static void expect_end(struct gang *gang, int64_t grace_ms)
{
    gang->kill_ms = WEIR_MIN(gang->kill_ms, weir_mono_ms() + grace_ms);
}

static weir_status start_rank(struct gang *gang, int rank, struct weir_error *err)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        return weir_error_set_errno(err, errno, "cannot start %s %d", role_name(gang, rank), rank);
    }
    if (pid == 0) {
        (void)setpgid(0, gang->group);
        run_child(gang, rank, parent);
    }
    gang->group = gang->group != 0 ? gang->group : pid;
    (void)setpgid(pid, gang->group); /* also here: whichever runs first */
    gang->pids[rank] = pid;
    gang->n_alive++;
    return WEIR_OK;
}

static void read_reports(struct gang *gang)
{
    struct rank_report report;
    while (read(gang->report_fds[0], &report, sizeof report) == (ssize_t)sizeof report) {
        if (report.is_ready) {
            gang->is_ready[report.rank] = true;
        } else {
            gang->failures[report.rank] = report.err;
        }
    }
}

/** Before the first step the group cannot go on without a member. */
static bool is_formed(const struct gang *gang)
{
    for (int r = 0; r < gang->n_ranks; r++) {
        if (!gang->is_ready[r]) {
            return false;
        }
    }
    return true;
}

/** Was this worker lost from a group that goes on without it? */
static bool is_survived(const struct gang *gang, int rank, int wait_status)
{
    const struct weir_train_config *config = gang->config;
    weir_status reported = gang->failures[rank].status;
    /* A newcomer that did not get in, or was lost with the group it found, changes nothing. */
    bool is_lost =
        WIFSIGNALED(wait_status) ||
        (gang->is_newcomer[rank] && (reported == WEIR_ERR_PEER || reported == WEIR_ERR_TIMEOUT));
    bool is_ending = gang->is_stopped || gang->kill_ms != INT64_MAX || gang->n_done > 0;
    return config->group.elastic && is_formed(gang) && is_lost && !is_ending && gang->n_alive > 0 &&
           gang->n_alive >= config->group.min_workers;
}

/** Start another worker in place of a lost one; if that fails the group is smaller. */
static void replace(struct gang *gang, int rank)
{
    struct weir_error err;
    if (gang->n_replaced == gang->config->group.max_restarts) {
        weir_log(WEIR_LOG_WARN, "worker_not_replaced", WEIR_KV_INT("worker", rank),
                 WEIR_KV_INT("left", gang->n_alive), WEIR_KV_INT("replaced", gang->n_replaced));
        return;
    }
    gang->n_replaced++;
    gang->is_newcomer[rank] = true;
    gang->failures[rank] = (struct weir_error){.status = WEIR_OK};
    if (start_rank(gang, rank, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "worker_not_replaced", WEIR_KV_INT("worker", rank),
                 WEIR_KV_STR("reason", err.message));
    }
}

static void note_exit(struct gang *gang, int rank, int wait_status)
{
    gang->pids[rank] = 0;
    gang->n_alive--;
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        gang->n_done++;
        return;
    }
    if (is_survived(gang, rank, wait_status)) {
        replace(gang, rank);
        return;
    }
    gang->exits[gang->n_exits++] = (struct gang_exit){.rank = rank,
                                                      .role = role_name(gang, rank),
                                                      .wait_status = wait_status,
                                                      .is_ours = gang->kill_ms <= weir_mono_ms(),
                                                      .failure = gang->failures[rank]};
    expect_end(gang, gang->config->group.elastic ? ELASTIC_GRACE_MS : LOSS_GRACE_MS);
}

static void reap(struct gang *gang)
{
    read_reports(gang);
    for (int r = 0; r < gang->n_ranks; r++) {
        int wait_status = 0;
        if (gang->pids[r] > 0 && waitpid(gang->pids[r], &wait_status, WNOHANG) == gang->pids[r]) {
            read_reports(gang); /* written before it ended */
            note_exit(gang, r, wait_status);
        }
    }
}

static void read_signals(struct gang *gang)
{
    struct signalfd_siginfo info;
    while (read(gang->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            continue;
        }
        if (gang->is_stopped && weir_mono_ms() - gang->stopped_ms > SAME_REQUEST_MS) {
            gang->kill_ms = weir_mono_ms(); /* asked again: at once */
        } else if (!gang->is_stopped) {
            gang->is_stopped = true;
            gang->stopped_ms = weir_mono_ms();
            kill_all(gang, SIGTERM);
            expect_end(gang, STOP_GRACE_MS);
        }
    }
}

static void supervise(struct gang *gang)
{
    while (gang->n_alive > 0) {
        int64_t left_ms = gang->kill_ms - weir_mono_ms();
        if (left_ms <= 0) {
            kill_all(gang, SIGKILL);
            left_ms = 1000;
        }
        struct pollfd polled[] = {{.fd = gang->signals, .events = POLLIN},
                                  {.fd = gang->report_fds[0], .events = POLLIN}};
        (void)poll(polled, WEIR_ARRAY_LEN(polled), (int)WEIR_MIN(left_ms, (int64_t)60000));
        read_signals(gang);
        reap(gang);
    }
}

static weir_status open_channels(struct gang *gang, struct weir_error *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGCHLD);
    if (pipe2(gang->report_fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return weir_error_set_errno(err, errno, "cannot make a pipe");
    }
    gang->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (gang->signals < 0) {
        int code = errno;
        (void)close(gang->report_fds[0]);
        (void)close(gang->report_fds[1]);
        return weir_error_set_errno(err, code, "cannot watch signals");
    }
    return WEIR_OK;
}

weir_status gang_run(const struct train_task *task, const struct weir_train_hooks *hooks,
                     struct gang_end *out, struct weir_error *err)
{
    const struct weir_train_config *config = task->config;
    struct gang gang = {.task = task,
                        .config = config,
                        .hooks = hooks,
                        .n_ranks = (int)(config->group.workers + config->group.parameter_servers),
                        .kill_ms = INT64_MAX};
    WEIR_TRY(open_channels(&gang, err));
    weir_status status = WEIR_OK;
    for (int r = 0; r < gang.n_ranks && status == WEIR_OK; r++) {
        status = start_rank(&gang, r, err);
    }
    if (status != WEIR_OK) {
        gang.kill_ms = weir_mono_ms();
    }
    supervise(&gang);
    (void)close(gang.signals);
    (void)close(gang.report_fds[0]);
    (void)close(gang.report_fds[1]);
    WEIR_TRY(status);
    gang_root_cause(gang.exits, gang.n_exits, gang.is_stopped, out);
    return WEIR_OK;
}
