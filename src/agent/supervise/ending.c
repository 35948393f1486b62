#include "agent/supervise/ending.h"

#include "agent/supervise/log_sink.h"
#include "agent/supervise/output.h"
#include "base/clock.h"
#include "base/log.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_MS             1000
#define RECORD_PATIENCE_MS  60000 /* full disk */
#define STOPPED_PATIENCE_MS 60000 /* a person who cancels a job wants what it made */
#define CARRIED_PATIENCE_MS ((int64_t)300 * 1000) /* it is to go on elsewhere from its checkpoint */
#define KILL_TICK_MS        50
#define MEMBERS_MAX         4096
#define LEAVING_PATIENCE_MS 10000 /* the machine, or the agent, goes down */

weir_status ending_write(const char *dir, const struct task_exit *record)
{
    struct weir_error err;
    int64_t give_up_ms = weir_mono_ms() + RECORD_PATIENCE_MS;
    weir_status status = task_exit_write(dir, record, &err);
    while (status != WEIR_OK && weir_mono_ms() < give_up_ms) {
        (void)poll(NULL, 0, TICK_MS);
        status = task_exit_write(dir, record, &err);
    }
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "exit_not_recorded", WEIR_KV_STR("dir", dir),
                 WEIR_KV_STR("error", err.message));
    }
    return status;
}

/** How long sending may take yet. */
struct patience {
    const char *dir;
    int signal_fd;
    int64_t stopped_ms; /* where its end is wanted */
    int64_t give_up_ms; /* 0: as long as it takes */
};

static void shorten(struct patience *p, int64_t give_up_ms)
{
    p->give_up_ms = p->give_up_ms == 0 ? give_up_ms : WEIR_MIN(p->give_up_ms, give_up_ms);
}

static bool must_end(void *context)
{
    struct patience *p = context;
    struct signalfd_siginfo info;
    int64_t grace_ms, until_ms, now_ms = weir_mono_ms();
    while (read(p->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            shorten(p, now_ms + LEAVING_PATIENCE_MS);
        }
    }
    if (p->give_up_ms == 0 && task_interrupt_read(p->dir, &until_ms)) {
        shorten(p, WEIR_MIN(until_ms, now_ms + LEAVING_PATIENCE_MS));
    } else if (p->give_up_ms == 0 && task_stop_read(p->dir, &grace_ms)) {
        shorten(p, now_ms + p->stopped_ms);
    }
    return p->give_up_ms != 0 && now_ms >= p->give_up_ms;
}

/* Behind what the task wrote. Its length is the file's: a supervisor that was killed may have written here. */
static void say_in_log(const char *dir, const char *line, int64_t max_bytes,
                       struct task_exit *record)
{
    char path[TASK_PATH_BYTES];
    struct log_sink log;
    struct weir_error ignored;
    if (log_sink_open(&log, task_path(path, dir, "log"), max_bytes, &ignored) != WEIR_OK) {
        return;
    }
    if (line[0] != '\0') {
        log_sink_write(&log, line, strlen(line));
        log_sink_write(&log, "\n", 1);
    }
    record->log_bytes = log_sink_close(&log);
}

static void send_output(const char *dir, const json_t *document, const struct task *task,
                        struct task_exit *record, int signal_fd)
{
    char line[OUTPUT_LINE_BYTES];
    struct output output;
    struct patience patience = {
        .dir = dir, .signal_fd = signal_fd, .stopped_ms = STOPPED_PATIENCE_MS};
    output_read(dir, document, task, &output);
    weir_log(WEIR_LOG_INFO, "output_sent_from_here");
    output_send(&output, must_end, &patience, line);
    say_in_log(dir, line, task->log_max_bytes, record);
}

static void bring_checkpoint(const char *dir, const struct task *task, struct carry *carry,
                             struct task_exit *record, int signal_fd)
{
    char line[CARRY_LINE_BYTES];
    struct patience patience = {
        .dir = dir, .signal_fd = signal_fd, .stopped_ms = CARRIED_PATIENCE_MS};
    carry_finish(carry, must_end, &patience, line);
    if (line[0] != '\0') {
        say_in_log(dir, line, task->log_max_bytes, record);
    }
}

weir_status ending_finish(const char *dir, const json_t *document, const struct task *task,
                          struct carry *carry, struct task_exit *record, int signal_fd)
{
    struct weir_error err;
    bool has_output = output_is_there(dir), has_checkpoint = carry->folder != NULL;
    if (!has_output && !has_checkpoint) {
        return ending_write(dir, record);
    }
    if (!task_has(dir, "ended.json") && task_ended_write(dir, record, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "end_not_recorded", WEIR_KV_STR("dir", dir),
                 WEIR_KV_STR("error", err.message)); /* a kill now would lose the end */
    }
    if (has_checkpoint) {
        bring_checkpoint(dir, task, carry, record, signal_fd);
    }
    if (has_output) {
        send_output(dir, document, task, record, signal_fd);
    }
    return ending_write(dir, record);
}

weir_status ending_resume(const char *dir, int signal_fd)
{
    char path[TASK_PATH_BYTES];
    struct weir_arena arena;
    struct weir_error err;
    struct task task = {0};
    struct task_exit record;
    json_t *document WEIR_AUTO(weir_json_auto_free) = NULL;
    WEIR_TRY(task_ended_read(dir, &record, &err));
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_json_load(task_path(path, dir, "task.json"), TASK_RECORD_MAX_BYTES, &document, &err);
    if (status == WEIR_OK) {
        status = task_from_json(document, &arena, &task, &err);
    }
    struct carry carry;
    carry_read(dir, document, &task, &arena, &carry);
    status = status == WEIR_OK ? ending_finish(dir, document, &task, &carry, &record, signal_fd)
                               : ending_write(dir, &record);
    weir_arena_fini(&arena);
    return status;
}

weir_status ending_lost(const char *dir)
{
    struct task_run run;
    struct task_exit record = {.is_lost = true, .exit_code = -1, .time_ms = weir_time_ms()};
    char boot_id[PROCESS_BOOT_ID_BYTES];
    const char *why = "its record cannot be read";
    if (task_run_read(dir, &run, NULL) == WEIR_OK) {
        record.pid = run.process.pid;
        process_boot_id(boot_id);
        why = "its supervisor ended before it; what was left of it was killed";
        if (strcmp(boot_id, run.boot_id) != 0) {
            why = "the machine was restarted";
        } else {
            static struct process_id ids[MEMBERS_MAX];
            char mark[TASK_MARK_BYTES], marker[TASK_MARK_BYTES + 16];
            (void)snprintf(marker, sizeof marker, "WEIR_TASK_KEY=%s", task_mark(mark, dir));
            pid_t member;
            (void)process_signal(&run.process, SIGKILL);
            weir_group_kill(&run.group);
            size_t n = process_with_environment(marker, ids, MEMBERS_MAX);
            for (size_t i = 0; i < n; i++) {
                (void)process_signal(&ids[i], SIGKILL);
            }
            for (int i = 0; i < 20 && weir_group_members(&run.group, &member, 1) > 0; i++) {
                weir_group_kill(&run.group);
                (void)poll(NULL, 0, KILL_TICK_MS);
            }
            weir_group_remove(&run.group);
        }
    }
    (void)snprintf(record.message, sizeof record.message, "lost: %s", why);
    return ending_write(dir, &record);
}
