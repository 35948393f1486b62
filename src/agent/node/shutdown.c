#include "agent/shutdown.h"

#include "agent/node/agent_private.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/grow.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGENT_PATIENCE_MS 10000
#define GRACE_MARGIN_MS   3000 /* from the end of a task's grace until its folder says so */
#define SEND_MARGIN_MS    4000 /* from the end of what is sent, on a busy disk */
/* After the kill. A busy machine takes seconds to start a process and look through all others. */
#define SETTLE_PATIENCE_MS 20000
#define LOOK_MS            100
#define KEY_MAX_BYTES      (TASK_ID_MAX_BYTES + 10)

/* One attempt that had not ended when it was first looked at. */
struct ending {
    char dir[TASK_PATH_BYTES], lock[TASK_PATH_BYTES];
    int64_t spawned_ms; /* a supervisor was started to settle it; 0: none */
    bool is_over;
};

struct shutdown {
    const struct weir_agent_shutdown *config;
    const char *program;
    struct ending *endings;
    size_t n, cap;
    int64_t give_up_ms;
};

/* A folder without task.json is one whose making was interrupted: nothing was started in it. */
static void add(struct shutdown *s, const char *tasks_dir, const char *name)
{
    weir_xgrow(&s->endings, sizeof *s->endings, s->n, &s->cap);
    struct ending *ending = &s->endings[s->n++];
    memset(ending, 0, sizeof *ending);
    (void)snprintf(ending->dir, sizeof ending->dir, "%.900s/%.*s", tasks_dir, KEY_MAX_BYTES, name);
    (void)task_path(ending->lock, ending->dir, "lock");
    bool is_begun = task_has(ending->dir, "task.json");
    bool has_ended = task_has(ending->dir, "exit.json") && !task_is_supervised(ending->dir);
    s->n -= !is_begun || has_ended;
}

static weir_status list_endings(struct shutdown *s, struct weir_error *err)
{
    char real[PATH_MAX], tasks_dir[TASK_PATH_BYTES];
    if (realpath(s->config->dir, real) == NULL || strlen(real) > TASK_PATH_BYTES / 2) {
        return weir_error_set(err, WEIR_ERR_INVALID, "cannot use the folder %s", s->config->dir);
    }
    DIR *dir = opendir(task_path(tasks_dir, real, "tasks"));
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        char id[TASK_ID_MAX_BYTES];
        int64_t number;
        if (task_key_parse(entry->d_name, id, &number)) {
            add(s, tasks_dir, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return WEIR_OK;
}

/* The task's own grace, but within our patience. */
static int64_t grace_of(const struct shutdown *s, const struct ending *ending)
{
    char path[TASK_PATH_BYTES];
    json_t *task = NULL;
    int64_t grace_ms = TASK_STOP_GRACE_MS;
    if (weir_json_load(task_path(path, ending->dir, "task.json"), TASK_RECORD_MAX_BYTES, &task,
                       NULL) == WEIR_OK) {
        const json_t *given = json_object_get(task, "stop_grace_ms");
        grace_ms = json_is_integer(given) ? json_integer_value(given) : grace_ms;
        json_decref(task);
    }
    int64_t left_ms = WEIR_MAX(s->config->patience_ms - GRACE_MARGIN_MS, (int64_t)0);
    return WEIR_MIN(grace_ms, left_ms);
}

static weir_status ask_all(struct shutdown *s, struct weir_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        struct ending *ending = &s->endings[i];
        if (!task_has(ending->dir, "exit.json")) {
            WEIR_TRY(task_interrupt_write(ending->dir, grace_of(s, ending),
                                          s->give_up_ms - SEND_MARGIN_MS, err));
        }
    }
    return WEIR_OK;
}

/* Has it ended? One that runs without a supervisor gets one, which ends it. */
static bool look(struct shutdown *s, struct ending *ending)
{
    struct weir_error ignored;
    pid_t pid;
    if (task_is_supervised(ending->dir)) {
        return false;
    }
    if (task_has(ending->dir, "exit.json")) {
        return true;
    }
    /* Not even begun, and with the request to stop it never will be. But a supervisor that was
     * just started may still be on its way to the lock: another one settles that too. */
    if (ending->spawned_ms == 0 || weir_mono_ms() - ending->spawned_ms > SPAWN_PATIENCE_MS) {
        ending->spawned_ms = weir_mono_ms();
        (void)spawn_supervisor(s->program, ending->dir, &pid, &ignored);
    }
    return false;
}

static size_t look_at_all(struct shutdown *s)
{
    size_t n_left = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct ending *ending = &s->endings[i];
        ending->is_over = ending->is_over || look(s, ending);
        n_left += !ending->is_over;
    }
    return n_left;
}

/* Supervisors that do not answer: the next look settles what they leave, and sends no more. */
static void kill_supervisors(struct shutdown *s)
{
    struct weir_error ignored;
    const char **paths = weir_xalloc((s->n + 1) * sizeof *paths);
    struct process_id *holders = weir_xalloc((s->n + 1) * sizeof *holders);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct ending *ending = &s->endings[i];
        if (!ending->is_over) {
            paths[n++] = ending->lock;
            weir_status status = task_interrupt_write(ending->dir, 0, weir_mono_ms(), &ignored);
            (void)status; /* a full disk: it takes longer */
        }
    }
    weir_lock_holders(paths, n, holders);
    for (size_t i = 0; i < n; i++) {
        (void)process_signal(&holders[i], SIGKILL);
    }
    free(paths);
    free(holders);
}

/* What of it is still there: "its supervisor is still there: process 12 (weir), …". */
static void describe(const struct ending *ending, char *out, size_t size)
{
    struct process_id id;
    char mark[TASK_MARK_BYTES], entry[TASK_MARK_BYTES + 16], text[PROCESS_TEXT_BYTES];
    const char *lock = ending->lock, *whose = "its supervisor";
    weir_lock_holders(&lock, 1, &id);
    if (id.pid == 0) {
        (void)snprintf(entry, sizeof entry, "WEIR_TASK_KEY=%s", task_mark(mark, ending->dir));
        id.pid = process_with_environment(entry, &id, 1) > 0 ? id.pid : 0;
        whose = "its program";
    }
    if (id.pid != 0 && process_describe(&id, text)) {
        (void)snprintf(out, size, "%s is still there: %s", whose, text);
    } else {
        (void)snprintf(out, size, "nothing of it runs, but its end is not written down");
    }
}

static weir_status cannot_end(const struct shutdown *s, size_t n_left, struct weir_error *err)
{
    char what[PROCESS_TEXT_BYTES + 64];
    size_t i = 0;
    while (s->endings[i].is_over) {
        i++;
    }
    describe(&s->endings[i], what, sizeof what);
    return weir_error_set(err, WEIR_ERR_TIMEOUT,
                          "%zu %s ended in %lld s%s: %s (%s, whose supervisor.log says what was "
                          "done); the same command again goes on with it",
                          n_left, n_left == 1 ? "task has not" : "tasks have not",
                          (long long)((s->config->patience_ms + SETTLE_PATIENCE_MS) / 1000),
                          n_left == 1 ? "" : ", of the first", what, s->endings[i].dir);
}

static weir_status wait_for_all(struct shutdown *s, struct weir_error *err)
{
    size_t n_told = SIZE_MAX;
    bool has_killed = false;
    for (;;) {
        size_t n_left = look_at_all(s);
        if (n_left != n_told && s->config->on_left != NULL) {
            s->config->on_left(s->config->context, n_left);
        }
        n_told = n_left;
        if (n_left == 0) {
            return WEIR_OK;
        }
        if (weir_mono_ms() >= s->give_up_ms) {
            if (has_killed) {
                return cannot_end(s, n_left, err);
            }
            kill_supervisors(s);
            has_killed = true;
            s->give_up_ms = weir_mono_ms() + SETTLE_PATIENCE_MS;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static weir_status end_tasks(const struct weir_agent_shutdown *config, size_t *out_n_tasks,
                             struct weir_error *err)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = '\0';
    struct shutdown s = {.config = config,
                         .program = config->program != NULL ? config->program : self,
                         .give_up_ms = weir_mono_ms() + config->patience_ms};
    weir_status status = WEIR_OK;
    WEIR_TRY_GOTO(list_endings(&s, err), status, free_endings);
    if (s.n > 0) {
        WEIR_TRY_GOTO(ask_all(&s, err), status, free_endings);
    }
    WEIR_TRY_GOTO(wait_for_all(&s, err), status, free_endings);
    jobs_remove_all(config->dir);
    *out_n_tasks = s.n;
free_endings:
    free(s.endings);
    return status;
}

weir_status weir_agent_shutdown(const struct weir_agent_shutdown *config,
                                enum weir_lock_end *out_agent, size_t *out_n_tasks,
                                struct weir_error *err)
{
    char lock[TASK_PATH_BYTES];
    int lock_fd;
    if (!weir_path_is_dir(config->dir)) {
        *out_agent = WEIR_LOCK_WAS_FREE;
        *out_n_tasks = 0;
        return WEIR_OK;
    }
    WEIR_TRY(weir_lock_take_over(task_path(lock, config->dir, "lock"), AGENT_PATIENCE_MS, &lock_fd,
                                 out_agent, err));
    weir_status status = end_tasks(config, out_n_tasks, err);
    (void)close(lock_fd);
    return status;
}
