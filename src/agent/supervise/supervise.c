/* The supervisor: parent of one task attempt; see agent.h for what it promises. */
#include "agent/agent.h"

#include "agent/code/prepare.h"
#include "agent/image/image_run.h"
#include "agent/node/contact.h"
#include "agent/node/disk_quota.h"
#include "agent/node/disk_watch.h"
#include "agent/node/members.h"
#include "agent/supervise/carry.h"
#include "agent/supervise/ending.h"
#include "agent/supervise/last_words.h"
#include "agent/supervise/launch.h"
#include "agent/supervise/log_sink.h"
#include "agent/task.h"
#include "agent/visit/visit.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS              1000
#define KILL_TICK_MS         50
#define LINGER_TICK_MS       100
#define SHUTDOWN_PATIENCE_MS 200
#define LEFTOVER_PATIENCE_MS 5000 /* a process in uninterruptible sleep cannot be killed */
#define DRAIN_PATIENCE_MS    500
#define SHELL_SIGNAL         128
#define FIRST_MEASURE_MS     500 /* the first of its disk: not while it is being started */
#define FENCED               "stopped itself: its node does not reach the server, and it is fenced"

#define TAKEN_BACK "stopped: its node was taken back by the cluster that lent it"

struct supervisor {
    const char *dir;
    struct weir_arena arena;
    struct task task;
    struct weir_group group;
    struct namespaces ns;
    struct members members;
    struct carry carry;
    struct log_sink log;
    int64_t log_bytes; /* the log's size, where the task is not started */
    int log_fd, signal_fd, inotify_fd, image_fd;
    pid_t pid;
    bool is_over; /* the task's own process has ended */
    int wait_status;
    struct rusage usage;
    bool is_stopping, is_killing, is_passed_on;
    int asked_signal; /* the last that it got: to save, or to end; 0: none */
    bool is_to_save, has_saved;
    int64_t grace_ms, kill_at_ms;
    const char *stop_reason;
    struct contact *contact; /* where the task is fenced; NULL: the server was never reached */
    struct disk_watch disk;
    char work[TASK_PATH_BYTES], tmp[TASK_PATH_BYTES]; /* what it watches */
    char disk_reason[WEIR_ERROR_MESSAGE_BYTES];       /* "": within its bound */
    bool is_interrupted;           /* stopped, but not because its end is wanted */
    bool is_held;                  /* its program failed, and its place is kept for a look */
    struct weir_limits own_limits; /* those that its group does not set */
};

/* Wait for an event, at most timeout_ms. */
static void wait_event(const struct supervisor *s, int64_t timeout_ms)
{
    struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->inotify_fd, .events = POLLIN},
                           {.fd = s->log_fd, .events = POLLIN}};
    (void)poll(fds, WEIR_ARRAY_LEN(fds), (int)WEIR_MAX((int64_t)0, timeout_ms));
}

/* Collect children that have ended: the task's own process, and orphans that were adopted. */
static void reap(struct supervisor *s)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (pid == s->pid) {
            s->is_over = true;
            s->wait_status = status;
            s->usage = usage;
        }
        carry_note_end(&s->carry, pid);
        s->members.helper = s->carry.pid;
        tunnel_note_end(&s->task.tunnel, s->is_over ? 0 : pid, &s->ns);
    }
}

/* Take what the task has written; false at the end of the stream. */
static bool read_log(struct supervisor *s)
{
    char bytes[65536];
    while (s->log_fd >= 0) {
        ssize_t n = read(s->log_fd, bytes, sizeof bytes);
        if (n > 0) {
            log_sink_write(&s->log, bytes, (size_t)n);
            continue;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        }
        close(s->log_fd);
        s->log_fd = -1;
    }
    return false;
}

/* The program alone knows which of its processes it still needs in order to save. */
static void ask(struct supervisor *s, int number)
{
    struct process_id program;
    s->asked_signal = number;
    s->is_passed_on = s->is_over; /* then they all get it at once */
    if (s->is_over || s->task.asks_all) {
        (void)members_signal(&s->members, number);
    } else if (s->task.image != NULL && image_run_find(s->dir, s->pid, &program)) {
        (void)process_signal(&program, number);
    } else {
        (void)kill(s->pid, number); /* not yet collected: its number is its own */
    }
}

static void begin_stop(struct supervisor *s, int64_t grace_ms, const char *reason)
{
    if (!s->is_stopping) {
        s->is_stopping = true;
        s->grace_ms = grace_ms;
        s->kill_at_ms = weir_mono_ms() + grace_ms;
        s->stop_reason = reason;
        weir_log(WEIR_LOG_INFO, "task_stops", WEIR_KV_STR("why", reason),
                 WEIR_KV_INT("grace_ms", grace_ms));
        ask(s, SIGTERM);
    }
}

/* 0: none. A shell, and crun, say so of a program that they waited for. */
static int ending_signal(const struct supervisor *s)
{
    int code = WEXITSTATUS(s->wait_status);
    if (WIFSIGNALED(s->wait_status)) {
        return WTERMSIG(s->wait_status);
    }
    return code > SHELL_SIGNAL && code <= SHELL_SIGNAL + 64 ? code - SHELL_SIGNAL : 0;
}

/* Did it die of what it was asked by, now or before? */
static bool has_died_of_it(const struct supervisor *s)
{
    int number = ending_signal(s);
    return number != 0 &&
           (number == s->asked_signal || (s->is_to_save && number == s->task.save_signal));
}

/* A shell dies of the signal and leaves the program that it waited for, which was not asked: it is
 * now, and has the rest of the grace. After a program that ended by itself nothing is waited for. */
static bool is_ended(struct supervisor *s)
{
    if (!s->is_over || s->is_killing || !has_died_of_it(s)) {
        return s->is_over;
    }
    if (!s->is_passed_on) {
        s->is_passed_on = true;
        (void)members_signal(&s->members, s->asked_signal);
    }
    return members_count(&s->members, s->task.tunnel.pid) == 0;
}

/* Without a word of warning: it would write on. */
static void look_at_disk(struct supervisor *s)
{
    if (!s->is_stopping &&
        disk_watch_is_over(&s->disk, weir_mono_ms(), s->disk_reason, sizeof s->disk_reason)) {
        s->is_stopping = s->is_killing = true;
        s->kill_at_ms = weir_mono_ms();
        s->stop_reason = s->disk_reason;
        (void)members_kill(&s->members);
    }
}

/* Also without the agent, which may be stopped or dead: soon the task may be started elsewhere. */
static void look_at_fence(struct supervisor *s)
{
    int64_t fence_ms = s->task.fence_ms, grace_ms = contact_grace_ms(fence_ms);
    if (fence_ms > 0 && contact_left_ms(s->contact, fence_ms) == 0) {
        s->is_interrupted = s->is_interrupted || !s->is_stopping;
        begin_stop(s, grace_ms, FENCED);
        s->kill_at_ms =
            WEIR_MIN(s->kill_at_ms, weir_mono_ms() + grace_ms); /* so is a longer grace */
    }
}

static void look_at_image(struct supervisor *s)
{
    bool is_asking = s->is_stopping && !s->is_killing;
    if (s->task.image != NULL && !s->is_over && !(is_asking && s->is_passed_on) &&
        image_run_end(s->dir, s->pid, is_asking ? SIGTERM : SIGKILL)) {
        s->is_passed_on = is_asking;
    }
}

/* Asked to save, it goes on: it says that it has by a file of its own, or ends. */
static void look_for_save(struct supervisor *s)
{
    char path[TASK_PATH_BYTES];
    struct stat mark;
    (void)task_path(path, s->dir, "work/" TASK_SAVED_MARK);
    if (!s->is_to_save && !s->is_stopping && s->task.save_signal != 0 &&
        task_has(s->dir, TASK_SAVE)) {
        s->is_to_save = true;
        (void)unlink(path); /* it may be there from an earlier time */
        weir_log(WEIR_LOG_INFO, "task_asked_to_save", WEIR_KV_INT("signal", s->task.save_signal));
        ask(s, s->task.save_signal);
    }
    if (s->is_to_save && !s->has_saved && lstat(path, &mark) == 0) {
        s->has_saved = weir_file_write_atomic(task_path(path, s->dir, TASK_SAVED), "", 0, 0600,
                                              NULL) == WEIR_OK;
        weir_log(WEIR_LOG_INFO, "task_has_saved");
    }
}

static void look_for_stop(struct supervisor *s)
{
    char events[4096];
    while (read(s->inotify_fd, events, sizeof events) > 0) {
    }
    int64_t grace_ms;
    const struct visit_host host = {s->dir, &s->task, &s->group, &s->own_limits,
                                    &s->ns, s->pid,   s->is_held};
    visit_start_all(&host);
    if (!s->is_stopping && task_stop_read(s->dir, &grace_ms)) {
        s->is_interrupted = task_is_interrupted(s->dir);
        begin_stop(s, grace_ms,
                   !s->is_interrupted ? "stopped"
                   : s->task.is_lent  ? TAKEN_BACK
                                      : "stopped with its agent");
    }
    look_for_save(s);
}

static void take_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            /* Nobody wanted the task's end: a machine that shuts down, or somebody's kill. */
            s->is_interrupted = s->is_interrupted || !s->is_stopping;
            begin_stop(
                s, s->task.stop_grace_ms,
                s->task.is_lent
                    ? TAKEN_BACK
                    : "killed by the shutdown of its machine: its supervisor was told to end");
        }
    }
}

/* Is there nothing to wait for any more? */
static bool is_watched_out(struct supervisor *s, int64_t held_until_ms)
{
    return s->is_held ? s->is_stopping || weir_mono_ms() >= held_until_ms : is_ended(s);
}

/* Until the task's own process has ended, and what it was to pass the signal on to; then, if it is held, until that is
 * over. */
static void watch(struct supervisor *s, int64_t held_until_ms)
{
    while (!is_watched_out(s, held_until_ms)) {
        int64_t timeout_ms = s->is_held ? WEIR_MIN(held_until_ms - weir_mono_ms(), (int64_t)TICK_MS)
                             : s->is_over ? LINGER_TICK_MS
                                          : TICK_MS;
        if (s->is_stopping) {
            int64_t left_ms = s->kill_at_ms - weir_mono_ms();
            if (left_ms <= 0) {
                if (!s->is_killing) {
                    weir_log(WEIR_LOG_INFO, "task_killed", WEIR_KV_INT("after_ms", s->grace_ms));
                }
                s->is_killing = true;
                (void)members_kill(&s->members);
                left_ms = KILL_TICK_MS;
            }
            timeout_ms = WEIR_MIN(timeout_ms, left_ms);
        } else if (s->task.fence_ms > 0) {
            timeout_ms = WEIR_MIN(timeout_ms, contact_left_ms(s->contact, s->task.fence_ms));
        }
        wait_event(s, timeout_ms);
        (void)read_log(s); /* first: somebody waits for the line */
        take_signals(s);
        look_for_stop(s);
        look_at_fence(s);
        (void)read_log(s);
        reap(s);
        look_at_disk(s);
        look_at_image(s);
    }
}

static void explain_exit(const struct supervisor *s, size_t n_left, struct task_exit *record)
{
    char *out = record->message;
    size_t size = sizeof record->message;
    bool is_failure = !s->is_stopping && (record->signal != 0 || record->exit_code != 0);
    if (weir_group_oom_kills(&s->group) > 0 && record->signal == SIGKILL) {
        (void)snprintf(out, size, "killed: over its memory limit of %lld bytes",
                       (long long)s->task.limits.memory_max_bytes);
    } else if (weir_group_pids_refused(&s->group) > 0 && is_failure) {
        (void)snprintf(out, size,
                       "over its limit of %lld processes and threads: %lld times it was refused "
                       "another one (weir agent --pids-max)",
                       (long long)s->task.limits.pids_max,
                       (long long)weir_group_pids_refused(&s->group));
    } else if (s->disk_reason[0] != '\0') {
        (void)snprintf(out, size, "%s", s->disk_reason);
    } else if (s->is_killing) {
        (void)snprintf(out, size, "%s; killed after %lld ms of grace", s->stop_reason,
                       (long long)s->grace_ms);
    } else if (s->is_stopping) {
        (void)snprintf(out, size, "%s", s->stop_reason);
    } else if (record->signal != 0) {
        (void)snprintf(out, size, "ended by signal %d (%s)", record->signal,
                       strsignal(record->signal));
    } else if (n_left > 0) {
        (void)snprintf(out, size, "%zu of its processes could not be killed", n_left);
    } else if (record->exit_code != 0) {
        char path[TASK_PATH_BYTES];
        last_words_read(task_path(path, s->dir, "log"), s->task.argv, out);
    }
}

static void fill_exit(const struct supervisor *s, size_t n_left, struct task_exit *record)
{
    bool is_signal = WIFSIGNALED(s->wait_status);
    int code = WEXITSTATUS(s->wait_status), number = is_signal ? WTERMSIG(s->wait_status) : 0;
    if (!is_signal && s->task.image != NULL && ending_signal(s) != 0) {
        number = ending_signal(s); /* what crun says of a program that a signal ended */
        is_signal = true;
    }
    *record = (struct task_exit){
        .is_lost = s->is_interrupted,
        .pid = s->pid,
        .exit_code = is_signal ? -1 : code,
        .signal = number,
        .time_ms = weir_time_ms(),
        .max_rss_bytes = (int64_t)s->usage.ru_maxrss * 1024,
        .cpu_ms = (int64_t)(s->usage.ru_utime.tv_sec + s->usage.ru_stime.tv_sec) * 1000 +
                  (s->usage.ru_utime.tv_usec + s->usage.ru_stime.tv_usec) / 1000,
    };
    explain_exit(s, n_left, record);
    if (s->task.image != NULL) {
        image_run_explain(record);
    }
}

/* Its program failed: people have a while to look at what is there. */
static void hold(struct supervisor *s)
{
    char path[TASK_PATH_BYTES], text[WEIR_ERROR_MESSAGE_BYTES], when[32];
    struct tm tm;
    struct task_exit record;
    bool has_failed = WIFSIGNALED(s->wait_status) || WEXITSTATUS(s->wait_status) != 0;
    if (s->task.hold_ms <= 0 || s->is_stopping || s->is_to_save || s->task.image != NULL ||
        !has_failed) {
        return;
    }
    fill_exit(s, 0, &record);
    time_t until = (time_t)((weir_time_ms() + s->task.hold_ms) / 1000);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&until, &tm));
    int len = snprintf(text, sizeof text,
                       "held until %s for a look: its program failed with %s %d%s%.200s", when,
                       record.signal != 0 ? "signal" : "exit",
                       record.signal != 0 ? record.signal : record.exit_code,
                       record.message[0] != '\0' ? ": " : "", record.message);
    if (weir_file_write_atomic(task_path(path, s->dir, TASK_HELD), text, (size_t)len, 0600, NULL) !=
        WEIR_OK) {
        return;
    }
    s->is_held = true;
    watch(s, weir_mono_ms() + s->task.hold_ms);
    /* It failed before it was told to end, and of nothing else. */
    s->is_stopping = s->is_killing = s->is_interrupted = false;
    s->disk_reason[0] = '\0';
}

/* A machine that shuts down signals the task and its supervisor one after the other, and the task
 * may have ended of it before the supervisor is told. */
static void await_own_signal(struct supervisor *s)
{
    bool may_be_shutdown =
        WIFSIGNALED(s->wait_status) && WTERMSIG(s->wait_status) == SIGTERM && !s->is_stopping;
    int64_t give_up_ms = weir_mono_ms() + (may_be_shutdown ? SHUTDOWN_PATIENCE_MS : 0);
    take_signals(s);
    while (!s->is_stopping && weir_mono_ms() < give_up_ms) {
        struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
        (void)poll(&fd, 1, (int)WEIR_MAX((int64_t)1, give_up_ms - weir_mono_ms()));
        take_signals(s);
    }
}

/* Whatever the task left behind ends with it. Returns how many processes could not be killed. */
static size_t kill_leftovers(struct supervisor *s)
{
    close(s->inotify_fd); /* it is over: no request matters any more */
    s->inotify_fd = -1;
    int64_t give_up_ms = weir_mono_ms() + LEFTOVER_PATIENCE_MS;
    size_t n = members_kill(&s->members);
    while (n > 0 && weir_mono_ms() < give_up_ms) {
        wait_event(s, KILL_TICK_MS);
        take_signals(s);
        (void)read_log(s);
        reap(s);
        n = members_kill(&s->members);
    }
    int64_t drain_until_ms = weir_mono_ms() + DRAIN_PATIENCE_MS;
    while (read_log(s) && weir_mono_ms() < drain_until_ms) {
        wait_event(s, KILL_TICK_MS);
        take_signals(s);
        reap(s);
    }
    return n;
}

/* The program was never started: exit statuses as a shell gives them. */
static weir_status write_not_started(const struct supervisor *s, int exit_code, int signal_number,
                                     const char *message)
{
    struct task_exit record = {.is_lost = s->is_interrupted || task_is_interrupted(s->dir),
                               .exit_code = exit_code,
                               .signal = signal_number,
                               .log_bytes = s->log_bytes,
                               .time_ms = weir_time_ms()};
    (void)snprintf(record.message, sizeof record.message, "%s", message);
    return ending_write(s->dir, &record);
}

/* Signals and stop requests arrive as readable descriptors. */
static weir_status open_events(struct supervisor *s, struct weir_error *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->signal_fd < 0 || s->inotify_fd < 0 ||
        inotify_add_watch(s->inotify_fd, s->dir, IN_MOVED_TO) < 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        return weir_error_set_errno(err, errno, "cannot watch the task");
    }
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) { /* the one that must survive to tell; needs privileges */
        (void)!write(fd, "-900", 4);
        close(fd);
    }
    return WEIR_OK;
}

/* Put the held process into its group and write down its identity. */
static weir_status record_run(struct supervisor *s, const struct launch *launch,
                              struct weir_error *err)
{
    struct task_run run = {.time_ms = weir_time_ms()};
    struct weir_error why;
    if (weir_group_add(&s->group, launch->pid, &why) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "group_not_joined", WEIR_KV_STR("task", s->task.id),
                 WEIR_KV_STR("error", why.message));
        s->group.has_cpu_limit = false;
        s->group.has_memory_limit = false;
        s->group.has_pids_limit = false;
        s->group.has_cpuset = false;
    }
    run.group = s->group;
    process_boot_id(run.boot_id);
    if (!process_identify(launch->pid, &run.process)) {
        return weir_error_set(err, WEIR_ERR_IO, "the new process cannot be identified");
    }
    return task_run_write(s->dir, &run, err);
}

/* The folders that it fills, still empty: bounded by the file system where that can be, and
 * measured. */
static weir_status watch_disk(struct supervisor *s, struct weir_error *err)
{
    const char *job_dir = s->task.sandbox.job_dir;
    s->disk =
        (struct disk_watch){.dirs = {task_path(s->work, s->dir, "work"),
                                     job_dir != NULL ? task_path(s->tmp, job_dir, "tmp") : NULL},
                            .max_bytes = s->task.disk_max_bytes,
                            .max_files = s->task.files_max,
                            .next_ms = weir_mono_ms() + FIRST_MEASURE_MS,
                            .members = members_find,
                            .context = &s->members};
    for (size_t i = 0; i < DISK_WATCH_DIRS_MAX && s->disk.dirs[i] != NULL; i++) {
        WEIR_TRY(weir_dir_make(s->disk.dirs[i], 0700, err));
        (void)disk_quota_set(s->disk.dirs[i], s->disk.max_bytes, s->disk.max_files);
    }
    return WEIR_OK;
}

/* What it adds to what its project shares counts too: else a task could fill the disk there. */
static void watch_cache(struct supervisor *s)
{
    const char *dir = s->task.sandbox.cache_dir;
    if (dir == NULL) {
        return;
    }
    struct disk_use use = disk_watch_measure(dir);
    for (size_t i = 0; i < DISK_WATCH_DIRS_MAX; i++) {
        if (s->disk.dirs[i] == NULL) {
            s->disk.dirs[i] = dir;
            s->disk.max_bytes += s->disk.max_bytes > 0 ? use.bytes : 0;
            s->disk.max_files += s->disk.max_files > 0 ? use.files : 0;
            return;
        }
    }
}

/* Nor does one begin that would have to stop. */
static weir_status check_fence(struct supervisor *s, struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    if (s->task.fence_ms == 0) {
        return WEIR_OK;
    }
    s->contact = contact_follow(task_path(path, s->dir, "../.."));
    s->is_interrupted = contact_left_ms(s->contact, s->task.fence_ms) == 0;
    return s->is_interrupted ? weir_error_set(err, WEIR_ERR_PEER, FENCED) : WEIR_OK;
}

/* The log is open. */
static weir_status start_logged(struct supervisor *s, struct launch *launch, struct weir_error *err)
{
    char mark[TASK_MARK_BYTES];
    struct weir_isolation isolation = {0};
    if (s->task.image != NULL) { /* held until this process ends */
        WEIR_TRY(image_run_get(s->dir, &s->task, &s->log, &s->arena, &s->image_fd, err));
    }
    if (s->task.is_isolated) {
        weir_isolation_probe(&isolation);
    }
    s->task.limits.io_path = s->dir;
    weir_group_create(&isolation, task_mark(mark, s->dir), &s->task.limits, &s->group);
    WEIR_TRY(check_fence(s, err));
    WEIR_TRY(launch_fork(s->dir, &s->task, &s->ns, &s->arena, launch, err));
    s->pid = launch->pid;
    s->log_fd = launch->log_fd;
    weir_status status = record_run(s, launch, err);
    if (status != WEIR_OK) {
        s->log_fd = -1;
        launch_abandon(launch);
    }
    return status;
}

static weir_status start(struct supervisor *s, const json_t *document, struct launch *launch,
                         struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    s->members = (struct members){.dir = s->dir, .group = &s->group, .ns = &s->ns};
    WEIR_TRY(watch_disk(s, err));
    WEIR_TRY(launch_prepare(s->dir, &s->task, &s->arena, err));
    WEIR_TRY(prepare_task(s->dir, document, &s->task, &s->arena, err));
    carry_read(s->dir, document, &s->task, &s->arena, &s->carry);
    s->carry.used_fd = s->task.checkpoint_fd > 0 ? s->task.checkpoint_fd : -1;
    watch_cache(s);
    if (s->task.sandbox.is_alone) {
        WEIR_TRY(namespaces_join(s->task.sandbox.job_dir, !s->task.is_offline, &s->ns, err));
    } else if (s->task.is_offline) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "network \"none\" is not supported on this node: weir doctor says "
                              "what its tasks are not separated by");
    }
    WEIR_TRY(open_events(s, err));
    WEIR_TRY(log_sink_open(&s->log, task_path(path, s->dir, "log"), s->task.log_max_bytes, err));
    weir_status status = start_logged(s, launch, err);
    if (status != WEIR_OK) {
        s->log_bytes = log_sink_close(&s->log);
    }
    return status;
}

/* Start the program, be its parent, write down its end. */
static weir_status run_task(struct supervisor *s, const json_t *document)
{
    struct weir_error err;
    struct launch launch;
    weir_status status = start(s, document, &launch, &err);
    if (status != WEIR_OK) {
        bool is_stopped = status == WEIR_ERR_CANCELLED && task_has(s->dir, "stop");
        weir_group_remove(&s->group);
        return write_not_started(s, is_stopped ? -1 : weir_status_exit(status),
                                 is_stopped ? SIGTERM : 0, err.message);
    }
    const struct weir_limits *wanted = &s->task.limits;
    s->own_limits = (struct weir_limits){
        .cpu_weight = s->group.has_cpu_limit ? 0 : wanted->cpu_weight,
        .memory_max_bytes = s->group.has_memory_limit ? 0 : wanted->memory_max_bytes,
        .pids_max = s->group.has_pids_limit ? 0 : wanted->pids_max,
        .cpuset = s->group.has_cpuset ? NULL : wanted->cpuset,
    };
    struct launch_failure failure;
    bool is_started = launch_release(&launch, &s->own_limits, &failure);
    namespaces_take_sandbox(&s->ns, launch.user_fd, launch.mount_fd); /* for visitors */
    tunnel_start(&s->task.tunnel, &s->ns);
    if (is_started) {
        carry_start(&s->carry);
        s->members.helper = s->carry.pid;
    }
    watch(s, 0);
    await_own_signal(s);
    if (is_started) {
        hold(s);
    }
    size_t n_left = kill_leftovers(s);
    int64_t log_bytes = log_sink_close(&s->log);
    struct task_exit record;
    fill_exit(s, n_left, &record);
    record.log_bytes = log_bytes;
    if (!is_started) {
        launch_explain(&failure, s->dir, &s->task, &record);
    }
    weir_group_remove(&s->group);
    return ending_finish(s->dir, document, &s->task, &s->carry, &record, s->signal_fd);
}

/* The lock is held: which of the steps has this attempt behind it? */
static weir_status settle(struct supervisor *s)
{
    char path[TASK_PATH_BYTES];
    struct weir_error err;
    int64_t grace_ms;
    if (task_has(s->dir, "exit.json")) {
        return WEIR_OK;
    }
    if (task_has(s->dir, "ended.json") && open_events(s, &err) == WEIR_OK &&
        ending_resume(s->dir, s->signal_fd) == WEIR_OK) {
        return WEIR_OK;
    }
    if (task_has(s->dir, "run.json")) {
        weir_log(WEIR_LOG_INFO, "task_lost", WEIR_KV_STR("why", "its supervisor ended before it"));
        return ending_lost(s->dir);
    }
    if (task_stop_read(s->dir, &grace_ms)) {
        return write_not_started(s, -1, SIGTERM, "stopped before it was started");
    }
    json_t *object;
    if (weir_json_load(task_path(path, s->dir, "task.json"), TASK_RECORD_MAX_BYTES, &object,
                       &err) != WEIR_OK) {
        return write_not_started(s, WEIR_EXIT_NOT_RUN, 0, err.message);
    }
    weir_status status = task_from_json(object, &s->arena, &s->task, &err);
    status = status == WEIR_OK ? run_task(s, object)
                               : write_not_started(s, WEIR_EXIT_NOT_RUN, 0, err.message);
    json_decref(object);
    return status;
}

int weir_agent_supervise(const char *task_dir)
{
    struct supervisor s = {
        .dir = task_dir, .ns = NAMESPACES_NONE, .log_fd = -1, .signal_fd = -1, .inotify_fd = -1};
    char path[TASK_PATH_BYTES];
    struct weir_error err;
    int lock_fd;
    if (!weir_path_is_dir(task_dir)) {
        return 0; /* removed: the attempt is over and forgotten */
    }
    weir_status status = weir_file_lock_after(task_path(path, task_dir, "lock"), &lock_fd, &err);
    if (status != WEIR_OK) {
        return status == WEIR_ERR_CONFLICT ? 0 : 1; /* another one is at it */
    }
    weir_arena_init(&s.arena, 0);
    status = settle(&s);
    contact_close(s.contact);
    weir_arena_fini(&s.arena);
    /* The lock goes with this process: when it is free, nothing of the attempt runs any more. */
    return status == WEIR_OK ? 0 : 1;
}
