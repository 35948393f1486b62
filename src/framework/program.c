#include "framework/program.h"

#include "base/buf.h"
#include "framework/code.h"
#include "framework/paths.h"
#include "framework/pod.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HOSTS_MAX_BYTES ((size_t)WEIR_FRAMEWORK_TASKS_MAX * 32)

/* A program of the job's own folder, where only its files are: is it there, and can it be run? The
 * agent makes what begins with "#!" executable, and nothing else. */
static weir_status check_program(const struct program *program, struct weir_error *err)
{
    const char *given = json_string_value(json_array_get(program->argv, 0));
    const char *path = given;
    while (strncmp(path, "./", 2) == 0) {
        path += 2;
    }
    if (path[0] == '/' || strchr(given, '/') == NULL || strstr(path, "..") != NULL) {
        return WEIR_OK; /* a matter of the node */
    }
    const char *text = json_string_value(json_object_get(program->files, path));
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.argv[0]: \"%.60s\" is none of the job's files: send it with "
                              "the job (text files only: weir job run --dir), or give its whole "
                              "path on the nodes",
                              given);
    }
    return strncmp(text, "#!", 2) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.argv[0]: \"%.60s\" may not be run: its first line does not "
                                "begin with \"#!\"; put \"#!/bin/sh\" there, or name its program "
                                "in front of it",
                                given);
}

static weir_status check_values(const struct program *program, struct weir_error *err)
{
    if (json_object_get(program->files, "token") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.files.token: a job has its own token in the file of this "
                              "name: give yours another, or name it in .gitignore");
    }
    if (strcmp(program->network, "host") != 0 && strcmp(program->network, "none") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.network: expected \"host\" or \"none\", not \"%.60s\"",
                              program->network);
    }
    WEIR_TRY(code_check(program->code, err));
    WEIR_TRY(code_check_python(program->python, err));
    bool has_own_files = program->image == NULL && program->code == NULL;
    return has_own_files ? check_program(program, err) : WEIR_OK;
}

static bool says(const json_t *spec, const char *member)
{
    const json_t *value = json_object_get(spec, member);
    return value != NULL && !json_is_null(value);
}

int64_t program_cpu_millis(const struct job_plan *plan, const struct program *program)
{
    return says(plan->job->spec, "cpu_slots") ? program->cpu_slots * 1000 : program->cpu_millis;
}

weir_status program_check(const struct program *program, const json_t *spec, struct weir_error *err)
{
    if (says(spec, "cpus") && says(spec, "cpu_slots")) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.cpus, or $.spec.cpu_slots? Give one of the two: cpus");
    }
    WEIR_TRY(weir_pod_check(spec, err));
    return check_values(program, err);
}

weir_status program_read_tasks(const json_t *tasks, const char *member, int64_t *out,
                               struct weir_error *err)
{
    const json_t *min = json_object_get(tasks, "min"), *max = json_object_get(tasks, "max");
    bool is_range = json_is_object(tasks);
    int64_t most = tasks == NULL ? 1 : json_integer_value(is_range ? max : tasks);
    int64_t least = is_range ? json_integer_value(min) : most;
    bool is_good = tasks == NULL || json_is_integer(tasks) ||
                   (json_is_integer(min) && json_is_integer(max) && json_object_size(tasks) == 2);
    if (!is_good || least < 1 || most < least || most > WEIR_FRAMEWORK_TASKS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.%s: expected an integer from 1 to %d, or {min, max} of such",
                              member, WEIR_FRAMEWORK_TASKS_MAX);
    }
    *out = most;
    return WEIR_OK;
}

/* Where it writes: WEIR_OUTPUT is the folder of the one dataset that a preparation makes. */
static void add_outputs(const json_t *outputs, json_t *definition)
{
    const char *name;
    json_t *path;
    json_object_foreach((json_t *)outputs, name, path)
    {
        json_object_set(json_object_get(definition, "env"), "WEIR_OUTPUT", path);
    }
    paths_describe_outputs(outputs, definition);
}

/* Its address for browsers, and its folder, which outlives the job. */
static void add_service(const struct weir_launch_job *job, json_t *definition)
{
    const json_t *service = json_object_get(job->spec, PROGRAM_SERVICE);
    const char *id = json_string_value(json_object_get(service, "id"));
    const char *path = json_string_value(json_object_get(service, "path"));
    if (id == NULL || path == NULL) {
        return;
    }
    program_env(definition, "WEIR_SERVICE", "%s", id);
    program_env(definition, "WEIR_SERVICE_PATH", "%s", path);
    program_env(definition, "WEIR_FOLDER", "%s/services/%s", job->shared_dir, id);
    json_array_append_new(json_object_get(definition, "paths"),
                          json_pack("{s:o,s:s}", "path",
                                    json_sprintf("%s/services/%s", job->shared_dir, id), "access",
                                    "write"));
}

void program_env(json_t *definition, const char *name, const char *format, ...)
{
    char text[PROGRAM_ENV_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_object_set_new(json_object_get(definition, "env"), name, json_string(text));
}

void program_meet(json_t *definition, int64_t n_tasks, int64_t n_wait)
{
    json_object_set_new(definition, "meet",
                        json_pack("{s:I,s:I,s:{},s:{},s:[]}", "size", (json_int_t)n_tasks, "wait",
                                  (json_int_t)n_wait, "env", "files", "launcher"));
}

void program_meet_env(json_t *definition, const char *name, const char *text)
{
    json_t *env = json_object_get(json_object_get(definition, "meet"), "env");
    json_object_set_new(env, name, json_string(text));
}

void program_meet_file(json_t *definition, const char *name, const char *text)
{
    json_t *files = json_object_get(json_object_get(definition, "meet"), "files");
    json_object_set_new(files, name, json_string(text));
}

void program_meet_launcher(json_t *definition, const char *format, ...)
{
    char text[PROGRAM_ENV_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(json_object_get(json_object_get(definition, "meet"), "launcher"),
                          json_string(text));
}

json_t *program_definition(const struct job_plan *plan, int64_t rank, int64_t n_tasks)
{
    static const char *const copied[] = {
        "argv",      "env",     "files",   "memory_max_bytes", "disk_max_bytes",
        "files_max", "network", "image",   "stop_grace_ms",    "kill_mode",
        "code",      "python",  "secrets", PROGRAM_SERVICE};
    json_t *definition = json_object();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(copied); i++) {
        json_t *value = json_object_get(plan->job->spec, copied[i]);
        if (value != NULL) {
            json_object_set_new(definition, copied[i], json_deep_copy(value));
        }
    }
    if (!json_is_object(json_object_get(definition, "env"))) {
        json_object_set_new(definition, "env", json_object());
    }
    program_env(definition, "WEIR_RANK", "%lld", (long long)rank);
    program_env(definition, "WEIR_SIZE", "%lld", (long long)n_tasks);
    if (plan->job->datasets != NULL) {
        json_object_set_new(json_object_get(definition, "env"), "WEIR_DATASETS",
                            json_string(weir_json_text(plan->job->datasets, plan->arena)));
    }
    /* A folder of the job's that outlives its attempts: for what a program goes on from. */
    json_object_set_new(definition, "checkpoint",
                        json_sprintf("%s/checkpoints/%s", plan->job->shared_dir, plan->job->id));
    json_object_set_new(definition, "is_tracked", json_true());
    paths_describe(plan->kind, plan->job, NULL, definition);
    add_outputs(plan->job->outputs, definition);
    add_service(plan->job, definition);
    return definition;
}

/* A file of hosts, by names that stand for tasks; `separator` is what stands before a host's slots. */
static void add_hosts(json_t *definition, const char *name, int64_t n_hosts, const char *separator,
                      int64_t n_slots)
{
    struct weir_buf text;
    json_t *files = json_object_get(definition, "files");
    weir_buf_init(&text, HOSTS_MAX_BYTES);
    for (int64_t i = 0; i < n_hosts; i++) {
        (void)weir_buf_printf(&text, "rank-%lld%s%lld\n", (long long)i, separator,
                              (long long)n_slots);
    }
    if (!json_is_object(files)) {
        files = json_object();
        json_object_set_new(definition, "files", files);
    }
    json_object_set_new(files, name, json_string(text.data));
    weir_buf_fini(&text);
}

void program_add_hosts(json_t *definition, int64_t n_hosts, int64_t n_slots)
{
    add_hosts(definition, "mpi.hosts.openmpi", n_hosts, " slots=", n_slots);
    add_hosts(definition, "mpi.hosts.mpich", n_hosts, ":", n_slots);
}
