#include "agent/task.h"

#include "agent/image/image.h"
#include "agent/sandbox/sandbox_dev.h"
#include "base/file.h"
#include "base/rolling.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_MODE 0600 /* files may hold secrets of the job */

const char *task_path(char out[TASK_PATH_BYTES], const char *dir, const char *name)
{
    (void)snprintf(out, TASK_PATH_BYTES, "%s/%s", dir, name);
    return out;
}

bool task_has(const char *dir, const char *name)
{
    char path[TASK_PATH_BYTES];
    return weir_path_exists(task_path(path, dir, name));
}

bool task_is_supervised(const char *dir)
{
    char path[TASK_PATH_BYTES];
    int fd = -1;
    weir_status status = weir_file_lock(task_path(path, dir, "lock"), &fd, NULL);
    if (status == WEIR_OK) {
        close(fd);
    }
    return status == WEIR_ERR_CONFLICT;
}

const char *task_mark(char out[TASK_MARK_BYTES], const char *dir)
{
    char attempts[TASK_PATH_BYTES];
    struct stat of_agent = {0};
    const char *slash = strrchr(dir, '/');
    (void)snprintf(attempts, sizeof attempts, "%.*s.", slash != NULL ? (int)(slash + 1 - dir) : 0,
                   dir);
    (void)stat(attempts, &of_agent);
    (void)snprintf(out, TASK_MARK_BYTES, "%.100s@%llx-%llx", slash != NULL ? slash + 1 : dir,
                   (unsigned long long)of_agent.st_dev, (unsigned long long)of_agent.st_ino);
    return out;
}

static bool is_id(const char *text, size_t len)
{
    return len > 0 && len < TASK_ID_MAX_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") >= len;
}

bool task_is_id(const char *text)
{
    return is_id(text, strlen(text));
}

bool task_key_parse(const char *key, char id[TASK_ID_MAX_BYTES], int64_t *out_attempt)
{
    const char *dot = strrchr(key, '.');
    if (dot == NULL || dot[1] == '\0' || strlen(dot + 1) > 9 ||
        strspn(dot + 1, "0123456789") != strlen(dot + 1) || !is_id(key, (size_t)(dot - key))) {
        return false;
    }
    memcpy(id, key, (size_t)(dot - key));
    id[dot - key] = '\0';
    *out_attempt = strtoll(dot + 1, NULL, 10);
    return true;
}

static weir_status read_int(const json_t *object, const char *key, int64_t fallback, int64_t min,
                            int64_t max, int64_t *out, struct weir_error *err)
{
    const json_t *value = json_object_get(object, key);
    *out = value != NULL && !json_is_null(value) ? json_integer_value(value) : fallback;
    if ((value != NULL && !json_is_null(value) && !json_is_integer(value)) || *out < min ||
        *out > max) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.%s: expected an integer from %lld to %lld", key,
                              (long long)min, (long long)max);
    }
    return WEIR_OK;
}

static weir_status read_argv(const json_t *object, struct weir_arena *arena, struct task *out,
                             struct weir_error *err)
{
    const json_t *list = json_object_get(object, "argv");
    size_t n = json_array_size(list);
    out->argv = WEIR_ARENA_ARRAY(arena, n + 1, char *);
    for (size_t i = 0; i < n; i++) {
        out->argv[i] = weir_arena_strdup(arena, json_string_value(json_array_get(list, i)));
        if (out->argv[i] == NULL) {
            n = 0;
        }
    }
    if (n == 0 || out->argv[0][0] == '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.argv: expected an array of one or more strings");
    }
    return WEIR_OK;
}

static weir_status read_pairs(const json_t *object, const char *key, struct weir_arena *arena,
                              struct task_pair **out, size_t *out_n, struct weir_error *err)
{
    json_t *map = json_object_get(object, key);
    if (map != NULL && !json_is_null(map) && !json_is_object(map)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.%s: expected an object", key);
    }
    *out = WEIR_ARENA_ARRAY(arena, json_object_size(map), struct task_pair);
    const char *name;
    json_t *value;
    json_object_foreach(map, name, value)
    {
        if (!json_is_string(value) || name[0] == '\0') {
            return weir_error_set(err, WEIR_ERR_INVALID, "task $.%s.%s: expected a string", key,
                                  name);
        }
        (*out)[(*out_n)++] = (struct task_pair){weir_arena_strdup(arena, name),
                                                weir_arena_strdup(arena, json_string_value(value))};
    }
    return WEIR_OK;
}

/* A file's name must stay inside the working directory. */
static bool is_inside(const char *name)
{
    if (name[0] == '/' || strlen(name) > 255) {
        return false;
    }
    for (const char *part = name; *part != '\0';) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && strncmp(part, "..", 2) == 0)) {
            return false;
        }
        part += len;
        part += *part == '/';
    }
    return name[strlen(name) - 1] != '/';
}

static weir_status check_pairs(const struct task *task, struct weir_error *err)
{
    for (size_t i = 0; i < task->n_files; i++) {
        if (!is_inside(task->files[i].name)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "task $.files: \"%.100s\" is not a path inside the task's folder",
                                  task->files[i].name);
        }
    }
    for (size_t i = 0; i < task->n_env; i++) {
        if (strchr(task->env[i].name, '=') != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "task $.env: \"%.100s\" is not a variable's name",
                                  task->env[i].name);
        }
    }
    return WEIR_OK;
}

/* A list of processors as the kernel reads it: "0-3,8". */
static bool is_cpuset(const char *text)
{
    return text[0] != '\0' && strlen(text) < 256 && strspn(text, "0123456789,-") == strlen(text);
}

/* Which of the machine it may use. */
static weir_status read_bounds(const json_t *object, struct weir_arena *arena,
                               struct weir_limits *limits, struct weir_error *err)
{
    const json_t *cpus = json_object_get(object, "cpuset");
    const json_t *list = json_object_get(object, "devices");
    WEIR_TRY(read_int(object, "cpu_max_milli", 0, 0, 1 << 24, &limits->cpu_max_milli, err));
    WEIR_TRY(read_int(object, "io_max_bytes_s", 0, 0, INT64_MAX, &limits->io_max_bytes_s, err));
    if (cpus != NULL && !json_is_null(cpus)) {
        if (!json_is_string(cpus) || !is_cpuset(json_string_value(cpus))) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "task $.cpuset: expected processors, as \"0-3,8\"");
        }
        limits->cpuset = weir_arena_strdup(arena, json_string_value(cpus));
    }
    if (list == NULL || json_is_null(list)) {
        return WEIR_OK;
    }
    const char **devices = WEIR_ARENA_ARRAY(arena, json_array_size(list) + 1, const char *);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *path = json_string_value(json_array_get(list, i));
        if (path == NULL || !sandbox_dev_is_node(path)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "task $.devices[%zu]: expected a path below /dev", i);
        }
        devices[limits->n_devices++] = weir_arena_strdup(arena, path);
    }
    limits->devices = devices; /* an empty list: none */
    return WEIR_OK;
}

static weir_status read_network(const json_t *object, struct task *task, struct weir_error *err)
{
    const json_t *network = json_object_get(object, "network");
    const char *text = json_is_string(network) ? json_string_value(network) : "host";
    task->is_offline = strcmp(text, "none") == 0;
    if (!task->is_offline && strcmp(text, "host") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.network: expected \"host\" or \"none\"");
    }
    return WEIR_OK;
}

static weir_status read_kill_mode(const json_t *object, struct task *task, struct weir_error *err)
{
    const json_t *given = json_object_get(object, "kill_mode");
    const char *mode = given != NULL ? json_string_value(given) : "mixed";
    if (mode == NULL || (strcmp(mode, "mixed") != 0 && strcmp(mode, "control-group") != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.kill_mode: expected \"mixed\" or \"control-group\"");
    }
    task->asks_all = strcmp(mode, "control-group") == 0;
    return WEIR_OK;
}

static weir_status read_save_signal(const json_t *object, struct task *task, struct weir_error *err)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {
        {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"INT", SIGINT}, {"TERM", SIGTERM}};

    const json_t *given = json_object_get(object, "save_signal");
    const char *name = json_string_value(given);
    if (given == NULL || json_is_null(given)) {
        return WEIR_OK;
    }
    for (size_t i = 0; name != NULL && i < WEIR_ARRAY_LEN(signals); i++) {
        if (strcmp(signals[i].name, name) == 0) {
            task->save_signal = signals[i].number;
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "task $.save_signal: expected USR1, USR2, HUP, INT or TERM");
}

static weir_status read_image(const json_t *object, struct weir_arena *arena, struct task *task,
                              struct weir_error *err)
{
    const json_t *image = json_object_get(object, "image");
    const char *folder = json_string_value(json_object_get(object, "images_dir"));
    if (image != NULL && !json_is_null(image) &&
        (!json_is_string(image) || !image_name_is_good(json_string_value(image)))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.image: expected \"sha256:HEX\" or the name of an image");
    }
    task->image = weir_arena_strdup(arena, json_string_value(image));
    task->images_dir = weir_arena_strdup(arena, folder);
    return WEIR_OK;
}

weir_status task_from_json(const json_t *object, struct weir_arena *arena, struct task *out,
                           struct weir_error *err)
{
    struct task task = {0};
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *desired = json_string_value(json_object_get(object, "desired"));
    const char *isolation = json_string_value(json_object_get(object, "isolation"));
    if (id == NULL || !is_id(id, strlen(id))) {
        return weir_error_set(err, WEIR_ERR_INVALID, "task $.id: expected an identifier");
    }
    if (desired == NULL || (strcmp(desired, "running") != 0 && strcmp(desired, "stopped") != 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "task $.desired: expected \"running\" or \"stopped\"");
    }
    task.id = weir_arena_strdup(arena, id);
    task.is_wanted = strcmp(desired, "running") == 0;
    task.is_lent = json_is_true(json_object_get(object, "is_lent"));
    task.is_isolated = isolation == NULL || strcmp(isolation, "none") != 0;
    const char *job = json_string_value(json_object_get(object, "job"));
    const char *role = json_string_value(json_object_get(object, "role"));
    task.job = weir_arena_strdup(arena, job != NULL ? job : "");
    task.role = weir_arena_strdup(arena, role != NULL ? role : "");
    WEIR_TRY(read_int(object, "attempt", -1, 0, 999999999, &task.attempt, err));
    WEIR_TRY(read_int(object, "rank", 0, 0, 1 << 20, &task.rank, err));
    WEIR_TRY(read_int(object, "cpu_weight", 100, 1, 10000, &task.limits.cpu_weight, err));
    WEIR_TRY(
        read_int(object, "memory_max_bytes", 0, 0, INT64_MAX, &task.limits.memory_max_bytes, err));
    WEIR_TRY(read_int(object, "pids_max", TASK_PIDS_MAX, 0, 1 << 22, &task.limits.pids_max, err));
    WEIR_TRY(read_int(object, "disk_max_bytes", 0, 0, INT64_MAX, &task.disk_max_bytes, err));
    WEIR_TRY(read_int(object, "files_max", 0, 0, INT64_MAX, &task.files_max, err));
    WEIR_TRY(read_int(object, "fence_ms", 0, 0, 3600000, &task.fence_ms, err));
    WEIR_TRY(read_int(object, "hold_ms", 0, 0, (int64_t)24 * 3600000, &task.hold_ms, err));
    WEIR_TRY(read_int(object, "stop_grace_ms", TASK_STOP_GRACE_MS, 0, 3600000, &task.stop_grace_ms,
                      err));
    WEIR_TRY(read_int(object, "log_max_bytes", TASK_LOG_MAX_BYTES, 1 << 18, WEIR_ROLLING_MAX_BYTES,
                      &task.log_max_bytes, err));
    WEIR_TRY(read_argv(object, arena, &task, err));
    WEIR_TRY(read_pairs(object, "env", arena, &task.env, &task.n_env, err));
    WEIR_TRY(read_pairs(object, "files", arena, &task.files, &task.n_files, err));
    WEIR_TRY(check_pairs(&task, err));
    WEIR_TRY(sandbox_from_json(object, arena, &task.sandbox, err));
    WEIR_TRY(read_network(object, &task, err));
    WEIR_TRY(read_kill_mode(object, &task, err));
    WEIR_TRY(read_save_signal(object, &task, err));
    WEIR_TRY(read_image(object, arena, &task, err));
    WEIR_TRY(read_bounds(object, arena, &task.limits, err));
    *out = task;
    return WEIR_OK;
}

typedef weir_status (*write_fn)(const char *path, const void *data, size_t len, unsigned mode,
                                struct weir_error *err);

/* Write a record and drop the reference to it. */
static weir_status write_record_by(write_fn write, const char *dir, const char *name,
                                   json_t *record, struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    WEIR_AUTO(weir_auto_free)
    char *text = record != NULL ? json_dumps(record, JSON_INDENT(1)) : NULL;
    json_decref(record);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %s/%s", dir, name);
    }
    return write(task_path(path, dir, name), text, strlen(text), RECORD_MODE, err);
}

static weir_status write_record(const char *dir, const char *name, json_t *record,
                                struct weir_error *err)
{
    return write_record_by(weir_file_write_atomic, dir, name, record, err);
}

static weir_status read_record(const char *dir, const char *name, json_t **out,
                               struct weir_error *err)
{
    char path[TASK_PATH_BYTES];
    return weir_json_load(task_path(path, dir, name), TASK_RECORD_MAX_BYTES, out, err);
}

static int64_t int_of(const json_t *record, const char *key)
{
    return json_integer_value(json_object_get(record, key));
}

static void copy_text(const json_t *record, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(record, key));
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

weir_status task_run_write(const char *dir, const struct task_run *run, struct weir_error *err)
{
    json_t *groups = json_array();
    for (size_t i = 0; i < run->group.n_dirs; i++) {
        json_array_append_new(groups, json_string(run->group.dirs[i]));
    }
    json_t *record = json_pack("{s:I, s:I, s:s, s:o, s:I}", "pid", (json_int_t)run->process.pid,
                               "start_time", (json_int_t)run->process.start_time, "boot_id",
                               run->boot_id, "groups", groups, "time_ms", (json_int_t)run->time_ms);
    WEIR_TRY(write_record_by(weir_file_replace, dir, "run.json", record, err));
    return weir_dir_sync(
        dir, err); /* that it is there must last; its text means nothing after a restart */
}

weir_status task_run_read(const char *dir, struct task_run *out, struct weir_error *err)
{
    json_t *record;
    WEIR_TRY(read_record(dir, "run.json", &record, err));
    *out = (struct task_run){
        .process = {.pid = (pid_t)int_of(record, "pid"),
                    .start_time = (uint64_t)int_of(record, "start_time")},
        .time_ms = int_of(record, "time_ms"),
    };
    copy_text(record, "boot_id", out->boot_id, sizeof out->boot_id);
    const json_t *groups = json_object_get(record, "groups");
    for (size_t i = 0; i < json_array_size(groups) && i < WEIR_GROUP_DIRS_MAX; i++) {
        const char *path = json_string_value(json_array_get(groups, i));
        (void)snprintf(out->group.dirs[out->group.n_dirs++], WEIR_GROUP_PATH_BYTES, "%s",
                       path != NULL ? path : "");
    }
    json_decref(record);
    return WEIR_OK;
}

static weir_status write_exit(const char *dir, const char *name, const struct task_exit *record,
                              struct weir_error *err)
{
    return write_record(
        dir, name,
        json_pack("{s:s, s:I, s:i, s:i, s:s, s:I, s:I, s:I, s:I}", "state",
                  record->is_lost ? "lost" : "exited", "pid", (json_int_t)record->pid, "exit_code",
                  record->exit_code, "signal", record->signal, "message", record->message,
                  "time_ms", (json_int_t)record->time_ms, "log_bytes",
                  (json_int_t)record->log_bytes, "max_rss_bytes", (json_int_t)record->max_rss_bytes,
                  "cpu_ms", (json_int_t)record->cpu_ms),
        err);
}

weir_status task_exit_write(const char *dir, const struct task_exit *record, struct weir_error *err)
{
    return write_exit(dir, "exit.json", record, err);
}

weir_status task_ended_write(const char *dir, const struct task_exit *record,
                             struct weir_error *err)
{
    return write_exit(dir, "ended.json", record, err);
}

static weir_status read_exit(const char *dir, const char *name, struct task_exit *out,
                             struct weir_error *err)
{
    json_t *record;
    WEIR_TRY(read_record(dir, name, &record, err));
    const char *state = json_string_value(json_object_get(record, "state"));
    *out = (struct task_exit){
        .is_lost = state == NULL || strcmp(state, "exited") != 0,
        .pid = int_of(record, "pid"),
        .exit_code = (int)int_of(record, "exit_code"),
        .signal = (int)int_of(record, "signal"),
        .time_ms = int_of(record, "time_ms"),
        .log_bytes = int_of(record, "log_bytes"),
        .max_rss_bytes = int_of(record, "max_rss_bytes"),
        .cpu_ms = int_of(record, "cpu_ms"),
    };
    copy_text(record, "message", out->message, sizeof out->message);
    json_decref(record);
    return WEIR_OK;
}

weir_status task_exit_read(const char *dir, struct task_exit *out, struct weir_error *err)
{
    return read_exit(dir, "exit.json", out, err);
}

weir_status task_ended_read(const char *dir, struct task_exit *out, struct weir_error *err)
{
    return read_exit(dir, "ended.json", out, err);
}

weir_status task_save_write(const char *dir, struct weir_error *err)
{
    return write_record(dir, TASK_SAVE, json_object(), err);
}

weir_status task_stop_write(const char *dir, int64_t grace_ms, struct weir_error *err)
{
    return write_record(dir, "stop", json_pack("{s:I}", "grace_ms", (json_int_t)grace_ms), err);
}

bool task_stop_read(const char *dir, int64_t *out_grace_ms)
{
    json_t *record;
    if (read_record(dir, "stop", &record, NULL) != WEIR_OK) {
        return false;
    }
    *out_grace_ms = int_of(record, "grace_ms");
    json_decref(record);
    return true;
}

weir_status task_interrupt_write(const char *dir, int64_t grace_ms, int64_t until_mono_ms,
                                 struct weir_error *err)
{
    return write_record(dir, "stop",
                        json_pack("{s:I, s:b, s:I}", "grace_ms", (json_int_t)grace_ms, "interrupt",
                                  1, "until_mono_ms", (json_int_t)until_mono_ms),
                        err);
}

bool task_interrupt_read(const char *dir, int64_t *out_until_mono_ms)
{
    json_t *record;
    if (read_record(dir, "stop", &record, NULL) != WEIR_OK) {
        return false;
    }
    bool is_interrupted = json_is_true(json_object_get(record, "interrupt"));
    *out_until_mono_ms = int_of(record, "until_mono_ms");
    json_decref(record);
    return is_interrupted;
}

bool task_is_interrupted(const char *dir)
{
    int64_t ignored;
    return task_interrupt_read(dir, &ignored);
}
