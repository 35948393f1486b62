/* The attempts this node knows: found on disk, named by the desired state, observed in the folders. */
#include "agent/node/agent_private.h"
#include "agent/node/disk_watch.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

static struct attempt *find(struct agent *agent, const char *id, int64_t number)
{
    for (struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        if (a->number == number && strcmp(a->id, id) == 0) {
            return a;
        }
    }
    return NULL;
}

/* Remember an attempt; NULL if there are too many. */
static struct attempt *add(struct agent *agent, const char *id, int64_t number)
{
    if (agent->n_attempts == ATTEMPTS_MAX) {
        weir_log(WEIR_LOG_ERROR, "too_many_attempts", WEIR_KV_STR("task", id),
                 WEIR_KV_INT("max", ATTEMPTS_MAX));
        return NULL;
    }
    struct attempt *a = weir_xalloc(sizeof *a);
    memset(a, 0, sizeof *a);
    (void)snprintf(a->id, sizeof a->id, "%s", id);
    (void)snprintf(a->dir, sizeof a->dir, "%s/%s.%lld", agent->tasks_dir, id, (long long)number);
    a->number = number;
    a->log_offset = -1;
    a->stop_grace_ms = TASK_STOP_GRACE_MS;
    a->next = agent->attempts;
    agent->attempts = a;
    agent->next_use_ms = 0; /* there was perhaps none to look at */
    agent->n_attempts++;
    return a;
}

/* A task without a job, or of one with no proper name, is a job of its own. */
static void note_job(struct attempt *a, const json_t *task)
{
    const char *job = json_string_value(json_object_get(task, "job"));
    (void)snprintf(a->job, sizeof a->job, "%s", job != NULL && task_is_id(job) ? job : a->id);
    given_read(task, &a->given);
}

/* What an earlier agent was told of it. A record that the machine's end has spoiled before anything
 * was started is made again, as if the making had been interrupted. */
static void recall_job(struct attempt *a)
{
    char path[TASK_PATH_BYTES];
    json_t *task = NULL;
    if (weir_json_load(task_path(path, a->dir, "task.json"), TASK_RECORD_MAX_BYTES, &task, NULL) ==
        WEIR_OK) {
        note_job(a, task);
        json_decref(task);
    } else if (!task_has(a->dir, "run.json") && !task_has(a->dir, "exit.json")) {
        (void)unlink(path);
    }
}

static void watch(struct agent *agent, const struct attempt *a)
{
    (void)inotify_add_watch(agent->inotify_fd, a->dir, IN_MOVED_TO | IN_MODIFY);
}

/* A folder without task.json is one whose making was interrupted: nothing can have been started. */
void attempts_scan(struct agent *agent)
{
    DIR *dir = opendir(agent->tasks_dir);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        char id[TASK_ID_MAX_BYTES];
        int64_t number;
        if (!task_key_parse(entry->d_name, id, &number)) {
            continue;
        }
        struct attempt *a = add(agent, id, number);
        if (a != NULL) {
            recall_job(a);
            watch(agent, a);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

/* A variable that the task's own definition does not set. */
static void offer_variable(json_t *env, const char *name, const char *value)
{
    if (value != NULL && json_object_get(env, name) == NULL) {
        json_object_set_new(env, name, json_string(value));
    }
}

/* What a client of MLflow reads, if the task does not track elsewhere: mlflow/environment_variables.py
 * and mlflow/utils/rest_utils.py name these. */
static void offer_tracking(const struct agent *agent, const json_t *task, json_t *env)
{
    const json_t *tracking = json_object_get(task, "tracking");
    const char *project = json_string_value(json_object_get(tracking, "project"));
    const char *token = json_string_value(json_object_get(json_object_get(task, "files"), "token"));
    if (project == NULL || token == NULL || json_object_get(env, "MLFLOW_TRACKING_URI") != NULL) {
        return;
    }
    json_object_set_new(env, "MLFLOW_TRACKING_URI",
                        json_sprintf("%s/p/%s", weir_client_server(agent->client), project));
    offer_variable(env, "MLFLOW_TRACKING_TOKEN", token);
    offer_variable(env, "MLFLOW_TRACKING_SERVER_CERT_PATH", agent->ca_path);
    offer_variable(env, "MLFLOW_RUN_ID", json_string_value(json_object_get(tracking, "run")));
    offer_variable(env, "MLFLOW_EXPERIMENT_ID",
                   json_string_value(json_object_get(tracking, "experiment")));
}

/* How this node reaches the server, and where its libraries are: the server cannot know it, and it
 * may differ from node to node. A task that is no object where one is expected is refused later. */
static void add_surroundings(const struct agent *agent, json_t *task)
{
    json_t *env = json_object_get(task, "env");
    if (env == NULL || json_is_null(env)) {
        env = json_object();
        json_object_set_new(task, "env", env);
    }
    offer_variable(env, "WEIR_SERVER", weir_client_server(agent->client));
    offer_variable(env, "WEIR_CA_FILE", agent->ca_path);
    offer_variable(env, "WEIR_ONNXRUNTIME", agent->onnxruntime_path);
    offer_tracking(agent, task, env);
    /* For the supervisor, which trusts no variable of the task's own. */
    json_object_set_new(task, "surroundings",
                        json_pack("{s:s,s:s?,s:s?,s:s}", "server",
                                  weir_client_server(agent->client), "ca_file", agent->ca_path,
                                  "address", agent->config->address, "node", agent->config->node));
}

/* The task's own limit on processes, if it is tighter than this node's. */
static int64_t pids_max(const struct agent *agent, const json_t *task)
{
    int64_t most = agent->config->pids_max > 0 ? agent->config->pids_max : TASK_PIDS_MAX;
    int64_t wanted = json_integer_value(json_object_get(task, "pids_max"));
    return wanted > 0 ? WEIR_MIN(wanted, most) : most;
}

/* What wants the image that this pod is made of is in it. */
static void be_in_image(const struct agent *agent, json_t *task)
{
    const char *is = agent->config->pod_image;
    const char *wanted = json_string_value(json_object_get(task, "image"));
    if (is != NULL && wanted != NULL && strcmp(is, wanted) == 0) {
        (void)json_object_del(task, "image");
    }
}

/* The tighter of two bounds, of which 0 is none. */
static int64_t tighter(int64_t a, int64_t b)
{
    return a > 0 && b > 0 ? WEIR_MIN(a, b) : WEIR_MAX(a, b);
}

/* What the operator lets a task have of the disk. */
static void bound_disk(const struct agent *agent, json_t *task)
{
    struct statvfs fs;
    const struct weir_agent_config *config = agent->config;
    int64_t disk_max = config->disk_max_bytes, files_max = config->files_max;
    bool is_known = statvfs(agent->dir, &fs) == 0;
    if (disk_max <= 0 && is_known) {
        disk_max = WEIR_MAX((int64_t)(fs.f_bavail * fs.f_frsize / 2), (int64_t)1);
    }
    if (files_max <= 0) { /* a file system without a bound says that it has 0 */
        int64_t half =
            is_known && fs.f_files > 0 ? (int64_t)(fs.f_favail / 2) : DISK_WATCH_ENTRIES_MAX;
        files_max = WEIR_MAX(WEIR_MIN(half, (int64_t)DISK_WATCH_ENTRIES_MAX), (int64_t)1);
    }
    int64_t disk_wanted = json_integer_value(json_object_get(task, "disk_max_bytes"));
    int64_t io_wanted = json_integer_value(json_object_get(task, "io_max_bytes_s"));
    json_object_set_new(task, "disk_max_bytes", json_integer(tighter(disk_wanted, disk_max)));
    json_object_set_new(
        task, "files_max",
        json_integer(tighter(json_integer_value(json_object_get(task, "files_max")), files_max)));
    json_object_set_new(task, "io_max_bytes_s",
                        json_integer(tighter(io_wanted, config->io_max_bytes_s)));
}

/* Make the folder and its task.json, unless they are there. */
static weir_status write_task(struct agent *agent, struct attempt *a, const json_t *task,
                              struct weir_error *err)
{
    json_t *sandbox = NULL;
    const struct weir_agent_config *config = agent->config;
    char path[TASK_PATH_BYTES];
    if (task_has(a->dir, "task.json")) {
        return WEIR_OK;
    }
    WEIR_TRY(jobs_sandbox(agent, a->job, &sandbox, err));
    weir_status made = weir_dir_make(a->dir, 0700, err);
    if (made != WEIR_OK) {
        json_decref(sandbox);
        return made;
    }
    json_t *copy = json_deep_copy(task);
    be_in_image(agent, copy);
    json_object_set_new(copy, "isolation",
                        json_string(config->isolation != NULL ? config->isolation : "auto"));
    (void)json_object_del(copy, "cell"); /* the server has no say in it */
    if (sandbox != NULL) {
        json_object_set_new(copy, "cell", sandbox);
    }
    json_object_set_new(copy, "is_lent", json_boolean(config->allocation != NULL));
    json_object_set_new(copy, "pids_max", json_integer(pids_max(agent, task)));
    bound_disk(agent, copy);
    given_apply(copy, "/proc");
    add_surroundings(agent, copy);
    json_object_set_new(copy, "images_dir",
                        config->images != NULL ? json_string(config->images)
                                               : json_sprintf("%s/oci", agent->dir));
    if (config->log_max_bytes > 0) {
        json_object_set_new(copy, "log_max_bytes", json_integer(config->log_max_bytes));
    }
    char *text = json_dumps(copy, JSON_INDENT(1));
    json_decref(copy);
    weir_status status =
        weir_file_replace(task_path(path, a->dir, "task.json"), text, strlen(text), 0600, err);
    free(text);
    a->log_offset = 0; /* it is new: nothing of it was sent */
    return status;
}

/* One task of the desired state. A task that cannot be read is refused: its exit says why. */
static void apply_task(struct agent *agent, const json_t *object)
{
    struct weir_arena arena;
    struct weir_error err;
    struct task task = {0};
    weir_arena_init(&arena, 0);
    const char *id = json_string_value(json_object_get(object, "id"));
    int64_t number = json_integer_value(json_object_get(object, "attempt"));
    weir_status status = task_from_json(object, &arena, &task, &err);
    char key[TASK_ID_MAX_BYTES + 16];
    char checked_id[TASK_ID_MAX_BYTES];
    (void)snprintf(key, sizeof key, "%.63s.%lld", id != NULL ? id : "", (long long)number);
    if (!task_key_parse(key, checked_id, &number) || (id != NULL && strcmp(id, checked_id) != 0)) {
        weir_log(WEIR_LOG_ERROR, "task_refused", WEIR_KV_STR("error", err.message));
        weir_arena_fini(&arena);
        return;
    }
    const char *desired = json_string_value(json_object_get(object, "desired"));
    bool is_wanted =
        status == WEIR_OK ? task.is_wanted : desired == NULL || strcmp(desired, "stopped") != 0;
    struct attempt *a = find(agent, checked_id, number);
    if (a == NULL) {
        a = add(agent, checked_id, number);
    }
    if (a != NULL) {
        note_job(a, object);
        a->desired = is_wanted ? PLAN_DESIRED_RUN : PLAN_DESIRED_STOP;
        a->seen.is_to_save = json_is_true(json_object_get(object, "asked_to_save"));
        a->stop_grace_ms = status == WEIR_OK ? task.stop_grace_ms : TASK_STOP_GRACE_MS;
        /* An unreadable task is handed on: its supervisor writes down why it cannot be started. */
        status = write_task(agent, a, object, &err);
        if (status != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "task_not_stored", WEIR_KV_STR("task", checked_id),
                     WEIR_KV_STR("error", err.message));
            a->desired = PLAN_DESIRED_UNKNOWN; /* tried again with the next desired state */
        } else {
            watch(agent, a);
        }
    }
    weir_arena_fini(&arena);
}

void attempts_apply_desired(struct agent *agent)
{
    for (struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        a->desired = PLAN_DESIRED_ABSENT;
    }
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(agent->desired.document, "tasks"), i, task)
    {
        apply_task(agent, task);
    }
    for (struct attempt *a = agent->attempts; a != NULL; a = a->next) {
        a->seen.is_forgotten = a->desired == PLAN_DESIRED_ABSENT && a->exit_acknowledged_ms > 0 &&
                               agent->desired.asked_at_ms > a->exit_acknowledged_ms;
    }
}

static void reap(struct attempt *a)
{
    int status;
    if (a->supervisor > 0 && waitpid(a->supervisor, &status, WNOHANG) != 0) {
        a->supervisor = 0;
        a->spawned_ms = 0; /* it is over: if there is work left, another one may start */
    }
}

static bool is_crowded(const struct agent *agent, const struct attempt *a)
{
    struct given sum = a->given;
    for (const struct attempt *other = agent->attempts; other != NULL; other = other->next) {
        bool is_same = strcmp(other->id, a->id) == 0;
        bool is_alive = other != a && (is_same || other->given.n > 0) &&
                        !task_has(other->dir, "exit.json") &&
                        (task_has(other->dir, "run.json") || task_is_supervised(other->dir));
        if (is_alive && (is_same || given_add(&sum, &other->given))) {
            return true;
        }
    }
    return false;
}

void attempts_observe(struct agent *agent, struct attempt *a)
{
    struct plan_seen *seen = &a->seen;
    reap(a);
    if (a->has_exit_record) {
        return; /* nothing in the folder changes any more */
    }
    /* The lock before the files: a supervisor writes its record, then lets go of the lock. */
    bool is_spawning = a->spawned_ms > 0 && weir_mono_ms() - a->spawned_ms < SPAWN_PATIENCE_MS;
    seen->is_supervised = is_spawning || task_is_supervised(a->dir);
    seen->has_run = task_has(a->dir, "run.json");
    seen->has_exit = task_has(a->dir, "exit.json");
    seen->has_stop = task_has(a->dir, "stop");
    seen->has_save = seen->is_to_save && task_has(a->dir, TASK_SAVE);
    seen->is_crowded = !seen->has_run && !seen->has_exit && is_crowded(agent, a);
    if (seen->has_exit && task_exit_read(a->dir, &a->exit, NULL) == WEIR_OK) {
        a->has_exit_record = true;
        seen->is_log_complete = a->exit.log_bytes == 0;
        jobs_release(agent, a->job);
    }
}

static void unlink_attempt(struct agent *agent, struct attempt *attempt)
{
    for (struct attempt **link = &agent->attempts; *link != NULL; link = &(*link)->next) {
        if (*link == attempt) {
            *link = attempt->next;
            agent->n_attempts--;
            break;
        }
    }
}

void attempts_remove(struct agent *agent, struct attempt *attempt)
{
    struct weir_error err;
    if (weir_dir_remove(attempt->dir, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "task_folder_not_removed", WEIR_KV_STR("dir", attempt->dir),
                 WEIR_KV_STR("error", err.message));
        return;
    }
    unlink_attempt(agent, attempt);
    jobs_release(agent, attempt->job);
    free(attempt);
}

void attempts_free(struct agent *agent)
{
    while (agent->attempts != NULL) {
        struct attempt *a = agent->attempts;
        agent->attempts = a->next;
        free(a);
    }
}
