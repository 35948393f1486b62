/** An attempt that a test's own program supervises: whoever includes this answers
 *  "agent --supervise DIR" by weir_agent_supervise (see main of supervise_test.c). */
#ifndef WEIR_AGENT_SUPERVISE_FIXTURE_H
#define WEIR_AGENT_SUPERVISE_FIXTURE_H

#include "agent/agent.h"

#include "agent/node/contact.h"
#include "agent/task.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rolling.h"
#include "base/test_main.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char root[64];
static char dir[160]; /* of the attempt "t1.1" */
static char self[512];
static char log_text[1 << 20];

/* From here on `dir` is the attempt of this agent. */
static inline void use_agent(const char *name)
{
    (void)snprintf(dir, sizeof dir, "%s/%s/t1.1", root, name);
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
}

static inline void start(void)
{
    strncpy(root, "/tmp/weir-supervise-XXXXXX", sizeof root - 1);
    ck_assert_ptr_nonnull(mkdtemp(root));
    use_agent("agent");
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
}

static inline void stop(void)
{
    ck_assert_int_eq(weir_dir_remove(root, NULL), WEIR_OK);
}

/* task.json with members added to those that every task has. Takes `more`. */
static inline void write_task(json_t *argv, json_t *more)
{
    char path[TASK_PATH_BYTES];
    json_t *task =
        json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:o}", "id", "t1", "job", "j1", "attempt", 1,
                  "role", "command", "rank", 0, "desired", "running", "argv", argv);
    json_object_update(task, more);
    json_decref(more);
    char *text = json_dumps(task, 0);
    ck_assert_int_eq(
        weir_file_write_atomic(task_path(path, dir, "task.json"), text, strlen(text), 0600, NULL),
        WEIR_OK);
    free(text);
    json_decref(task);
}

static inline void write_script(const char *script, json_t *more)
{
    write_task(json_pack("[s,s,s]", "/bin/sh", "-c", script), more);
}

/* Loop tests run with control groups (0) and without (1). */
static inline json_t *with_isolation(int i)
{
    return json_pack("{s:s}", "isolation", i == 0 ? "auto" : "none");
}

static inline pid_t supervise(void)
{
    char *const argv[] = {self, "agent", "--supervise", dir, NULL};
    pid_t pid;
    ck_assert_int_eq(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
    return pid;
}

static inline struct task_exit end_of(pid_t supervisor)
{
    struct task_exit record;
    struct weir_error err = {0};
    int status;
    ck_assert_int_eq(waitpid(supervisor, &status, 0), supervisor);
    ck_assert_int_eq(status, 0);
    weir_status read = task_exit_read(dir, &record, &err);
    ck_assert_msg(read == WEIR_OK, "%s", err.message);
    return record;
}

static inline struct task_exit run(void)
{
    return end_of(supervise());
}

/* A file of the attempt; of its log what is there of it, without a word of what is left out. */
static inline const char *read_text(const char *name)
{
    char path[TASK_PATH_BYTES];
    struct weir_rolling_part part = {0};
    size_t n = 0;
    do {
        n += part.n;
        ck_assert_int_eq(weir_rolling_read(task_path(path, dir, name), part.from + (int64_t)part.n,
                                           log_text + n, sizeof log_text - 1 - n, &part, NULL),
                         WEIR_OK);
    } while (part.n > 0);
    log_text[n] = '\0';
    return log_text;
}

static inline void await_file(const char *name)
{
    int64_t give_up_ms = weir_mono_ms() + 20000;
    while (!task_has(dir, name)) {
        ck_assert_msg(weir_mono_ms() < give_up_ms, "no %s", name);
        (void)usleep(1000);
    }
}

static inline size_t count_processes(void)
{
    struct process_id ids[64];
    char mark[TASK_MARK_BYTES], marker[TASK_MARK_BYTES + 16];
    (void)snprintf(marker, sizeof marker, "WEIR_TASK_KEY=%s", task_mark(mark, dir));
    return process_with_environment(marker, ids, 64);
}

#endif
