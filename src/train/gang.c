#include "train/gang.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the first loss the others need one failing call; after a stop, a step and a checkpoint. */
#define LOSS_GRACE_MS 15000
#define STOP_GRACE_MS 60000

/** What a failing rank writes: shorter than PIPE_BUF, so messages do not mix. */
struct last_words {
    int rank;
    struct weir_error err;
};

struct gang {
    const struct weir_train_config *config;
    int n_ranks, n_alive;
    pid_t pids[WEIR_COMM_MAX_RANKS]; /**< 0 once reaped. */
    pid_t group;
    int words[2], signals;
    int64_t kill_ms; /**< Monotonic: when who is left is killed; INT64_MAX: never. */
    bool is_stopped;
    struct gang_end end;
};

static const char *role_name(const struct gang *gang, int rank)
{
    return rank < gang->config->workers ? "worker" : "parameter server";
}

/* ---- the child ---------------------------------------------------------------------------- */

static void run_child(const struct gang *gang, const struct weir_train_hooks *hooks, int rank,
                      pid_t parent)
{
    struct weir_train_config config = *gang->config;
    struct last_words words = {.rank = rank};
    sigset_t children;
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_UNBLOCK, &children, NULL);
    (void)close(gang->signals);
    (void)close(gang->words[0]);
    /* A rank must not outlive its launcher: it stops with a checkpoint. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(1);
    }
    config.rank = rank;
    config.role = NULL;
    weir_status status = weir_train_rank(&config, hooks, &words.err);
    if (status != WEIR_OK) {
        words.err.status = status;
        ssize_t n_written = write(gang->words[1], &words, sizeof words);
        (void)n_written; /* the launcher may be gone; the exit status tells too */
    }
    (void)fflush(stdout);
    (void)fflush(stderr);
    _exit(weir_status_exit(status));
}

/* ---- start and end ------------------------------------------------------------------------ */

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

static weir_status start_rank(struct gang *gang, const struct weir_train_hooks *hooks, int rank,
                              struct weir_error *err)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        return weir_error_set_errno(err, errno, "cannot start %s %d", role_name(gang, rank), rank);
    }
    if (pid == 0) {
        (void)setpgid(0, gang->group);
        run_child(gang, hooks, rank, parent);
    }
    gang->group = gang->group != 0 ? gang->group : pid;
    (void)setpgid(pid, gang->group); /* also here: whoever comes first */
    gang->pids[rank] = pid;
    gang->n_alive++;
    return WEIR_OK;
}

/** Is `now` a better explanation of the gang's end than what is known? */
static bool is_better_cause(const struct gang *gang, weir_status now)
{
    weir_status before = gang->end.status;
    bool is_echo = now == WEIR_ERR_PEER || now == WEIR_ERR_TIMEOUT;
    bool was_echo = before == WEIR_ERR_PEER || before == WEIR_ERR_TIMEOUT;
    return before == WEIR_OK || (was_echo && !is_echo);
}

static void read_words(struct gang *gang)
{
    struct last_words words;
    while (read(gang->words[0], &words, sizeof words) == (ssize_t)sizeof words) {
        if (is_better_cause(gang, words.err.status)) {
            gang->end.status = words.err.status;
            gang->end.rank = words.rank;
            gang->end.err = words.err;
        }
    }
}

static void note_exit(struct gang *gang, int rank, int wait_status)
{
    gang->pids[rank] = 0;
    gang->n_alive--;
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        return;
    }
    expect_end(gang, LOSS_GRACE_MS);
    /* Killed by somebody else than us: that is the cause, whatever the others say of it. */
    bool is_ours = gang->kill_ms <= weir_mono_ms();
    if (WIFSIGNALED(wait_status) && !is_ours && !gang->end.is_worth_restarting) {
        gang->end.is_worth_restarting = true;
        gang->end.rank = rank;
        gang->end.status = weir_error_set(
            &gang->end.err, WEIR_ERR_PEER, "%s %d was killed by signal %d (%s)",
            role_name(gang, rank), rank, WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    } else if (gang->end.status == WEIR_OK) {
        gang->end.rank = rank;
        gang->end.status =
            weir_error_set(&gang->end.err, WEIR_ERR_INTERNAL, "%s %d ended with exit status %d",
                           role_name(gang, rank), rank, WEXITSTATUS(wait_status));
    }
}

static void reap(struct gang *gang)
{
    read_words(gang);
    for (int r = 0; r < gang->n_ranks; r++) {
        int wait_status = 0;
        if (gang->pids[r] > 0 && waitpid(gang->pids[r], &wait_status, WNOHANG) == gang->pids[r]) {
            read_words(gang); /* written before it ended */
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
        if (gang->is_stopped) { /* asked twice: at once */
            gang->kill_ms = weir_mono_ms();
        } else {
            gang->is_stopped = true;
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
                                  {.fd = gang->words[0], .events = POLLIN}};
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
    (void)sigaddset(&set, SIGCHLD);
    if (pipe2(gang->words, O_CLOEXEC | O_NONBLOCK) != 0) {
        return weir_error_set_errno(err, errno, "cannot make a pipe");
    }
    gang->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (gang->signals < 0) {
        int code = errno;
        (void)close(gang->words[0]);
        (void)close(gang->words[1]);
        return weir_error_set_errno(err, code, "cannot watch signals");
    }
    return WEIR_OK;
}

weir_status gang_run(const struct weir_train_config *config, const struct weir_train_hooks *hooks,
                     struct gang_end *out, struct weir_error *err)
{
    struct gang gang = {.config = config,
                        .n_ranks = (int)(config->workers + config->parameter_servers),
                        .kill_ms = INT64_MAX,
                        .end = {.rank = -1}};
    WEIR_TRY(open_channels(&gang, err));
    weir_status status = WEIR_OK;
    for (int r = 0; r < gang.n_ranks && status == WEIR_OK; r++) {
        status = start_rank(&gang, hooks, r, err);
    }
    if (status != WEIR_OK) {
        gang.kill_ms = weir_mono_ms();
    }
    supervise(&gang);
    (void)close(gang.signals);
    (void)close(gang.words[0]);
    (void)close(gang.words[1]);
    WEIR_TRY(status);
    gang.end.is_stopped = gang.is_stopped;
    gang.end.is_worth_restarting |=
        gang.end.status == WEIR_ERR_PEER || gang.end.status == WEIR_ERR_TIMEOUT;
    *out = gang.end;
    return WEIR_OK;
}
