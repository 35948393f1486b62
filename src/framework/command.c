#include "framework/job_plan.h"
#include "framework/paths.h"

#include <string.h>

#define MEMORY_MAX_BYTES 1125899906842624 /* a pebibyte: no node has more */

struct job_command {
    const json_t *argv, *env, *files, *datasets, *tasks;
    int64_t cpu_slots, memory_max_bytes, disk_max_bytes, stop_grace_ms;
    const char *network, *image;
};

static const struct weir_option options[] = {
    WEIR_OPT_JSON(job_command, argv, "argv", TEXTS, WEIR_OPTION_REQUIRED, NULL, 0, 0,
                  "The program and its arguments"),
    WEIR_OPT_JSON(job_command, env, "env", MAP, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Environment variables"),
    WEIR_OPT_JSON(job_command, files, "files", MAP, WEIR_OPTION_SECRET, NULL, 0, 0,
                  "Text files of the task's folder, by path"),
    WEIR_OPT_JSON(job_command, tasks, "tasks", JSON, 0, NULL, 0, 0,
                  "Tasks of the gang, 1 to 1024; each has its number in WEIR_RANK, theirs in "
                  "WEIR_SIZE. {min, max}: it runs with as many of max as there is room for, and "
                  "with min at least. Else 1"),
    WEIR_OPT_JSON(job_command, cpu_slots, "cpu-slots", INT, 0, "1", 0, WEIR_FRAMEWORK_SLOTS_MAX,
                  "CPU slots of each task; 0: shares what is there"),
    WEIR_OPT_JSON(job_command, memory_max_bytes, "memory-max-bytes", INT, 0, "0", 0,
                  MEMORY_MAX_BYTES, "Memory of each task; 0: no limit of its own"),
    WEIR_OPT_JSON(job_command, disk_max_bytes, "disk-max-bytes", INT, 0, "0", 0, MEMORY_MAX_BYTES,
                  "What each task's folder and /tmp may hold; 0: what its node allows"),
    WEIR_OPT_JSON(job_command, network, "network", TEXT, 0, "host", 0, 0,
                  "host: the machine's; none: only the job's own tasks on the same node"),
    WEIR_OPT_JSON(
        job_command, image, "image", TEXT, 0, NULL, 0, 0,
        "Root file system: an OCI image, as sha256:… of a blob that holds its archive, or "
        "the name of one on the nodes (weir agent --images); else the node's own"),
    WEIR_OPT_JSON(job_command, stop_grace_ms, "stop-grace-ms", INT, 0, "5000", 0, 3600000,
                  "Time between SIGTERM and SIGKILL when a task is stopped"),
    WEIR_OPT_JSON(job_command, datasets, "datasets", TEXTS, 0, NULL, 0, 0,
                  "Names of datasets that the tasks read; WEIR_DATASETS says where they are"),
};

/* A program of the job's own folder, where only its files are: is it there, and can it be run? The
 * agent makes what begins with "#!" executable, and nothing else. */
static weir_status check_program(const struct job_command *command, struct weir_error *err)
{
    const char *given = json_string_value(json_array_get(command->argv, 0));
    const char *path = given;
    while (strncmp(path, "./", 2) == 0) {
        path += 2;
    }
    if (path[0] == '/' || strchr(given, '/') == NULL || strstr(path, "..") != NULL) {
        return WEIR_OK; /* a matter of the node */
    }
    const char *text = json_string_value(json_object_get(command->files, path));
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

/* As the agent reads it: "sha256:HEX", or a name. */
static weir_status check_image(const json_t *given, struct weir_error *err)
{
    const char *image = json_string_value(given);
    static const char blob[] = "sha256:", hex[] = "0123456789abcdef";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-+";
    if (given == NULL) {
        return WEIR_OK;
    }
    if (image == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.image: expected a string: put the value into quotes");
    }
    const char *digits = image + sizeof blob - 1;
    bool is_blob = strncmp(image, blob, sizeof blob - 1) == 0 && strlen(digits) == 64 &&
                   strspn(digits, hex) == 64;
    bool is_name = image[0] != '\0' && image[0] != '.' && strlen(image) < 128 &&
                   strspn(image, letters) == strlen(image);
    return is_blob || is_name
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.image: \"%.80s\": expected \"sha256:\" and 64 digits of a "
                                "blob, or the name of an image on the nodes (letters, digits, "
                                "\"._-+\")",
                                image);
}

/* N, or {min, max}: how many tasks are made, which is max. */
static weir_status read_tasks(const json_t *tasks, int64_t *out, struct weir_error *err)
{
    const json_t *min = json_object_get(tasks, "min"), *max = json_object_get(tasks, "max");
    bool is_range = json_is_object(tasks);
    int64_t most = tasks == NULL ? 1 : json_integer_value(is_range ? max : tasks);
    int64_t least = is_range ? json_integer_value(min) : most;
    bool is_good = tasks == NULL || json_is_integer(tasks) ||
                   (json_is_integer(min) && json_is_integer(max) && json_object_size(tasks) == 2);
    if (!is_good || least < 1 || most < least || most > WEIR_FRAMEWORK_TASKS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.tasks: expected an integer from 1 to %d, or {min, max} of "
                              "such",
                              WEIR_FRAMEWORK_TASKS_MAX);
    }
    *out = most;
    return WEIR_OK;
}

static weir_status check_values(const struct job_command *command, struct weir_error *err)
{
    int64_t n_tasks;
    WEIR_TRY(read_tasks(command->tasks, &n_tasks, err));
    if (json_object_get(command->files, "token") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.files.token: a job has its own token in the file of this "
                              "name: give yours another, or name it in .gitignore");
    }
    if (strcmp(command->network, "host") != 0 && strcmp(command->network, "none") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.network: expected \"host\" or \"none\", not \"%.60s\"",
                              command->network);
    }
    return command->image != NULL ? WEIR_OK : check_program(command, err);
}

static weir_status check_command(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_configured read;
    WEIR_TRY(weir_kind_read(&weir_job_command, spec, "$.spec", arena, &read, err));
    WEIR_TRY(check_image(json_object_get(spec, "image"), err));
    return check_values(read.options, err);
}

/* Where it writes: WEIR_OUTPUT is the folder of the one dataset that a preparation makes. */
static void add_outputs(const json_t *outputs, json_t *env, json_t *definition)
{
    const char *name;
    json_t *path;
    json_object_foreach((json_t *)outputs, name, path)
    {
        json_object_set(env, "WEIR_OUTPUT", path);
    }
    paths_describe_outputs(outputs, definition);
}

/* What the agent gets for one task. */
static json_t *definition_of(const struct job_plan *plan, int64_t rank, int64_t n_tasks)
{
    static const char *const copied[] = {"argv",           "env",     "files", "memory_max_bytes",
                                         "disk_max_bytes", "network", "image", "stop_grace_ms"};
    json_t *definition = json_object();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(copied); i++) {
        json_t *value = json_object_get(plan->job->spec, copied[i]);
        if (value != NULL) {
            json_object_set_new(definition, copied[i], json_deep_copy(value));
        }
    }
    json_t *env = json_object_get(definition, "env");
    if (!json_is_object(env)) {
        env = json_object();
        json_object_set_new(definition, "env", env);
    }
    json_object_set_new(env, "WEIR_RANK", json_sprintf("%lld", (long long)rank));
    json_object_set_new(env, "WEIR_SIZE", json_sprintf("%lld", (long long)n_tasks));
    if (plan->job->datasets != NULL) {
        json_object_set_new(env, "WEIR_DATASETS",
                            json_string(weir_json_text(plan->job->datasets, plan->arena)));
    }
    paths_describe(plan->kind, plan->job->shared_dir, NULL, plan->job->datasets, definition);
    add_outputs(plan->job->outputs, env, definition);
    return definition;
}

static weir_status plan_command(struct job_plan *plan, struct weir_error *err)
{
    struct weir_configured read;
    int64_t n_tasks;
    WEIR_TRY(weir_kind_read(plan->kind, plan->job->spec, "$.spec", plan->arena, &read, err));
    const struct job_command *command = read.options;
    WEIR_TRY(check_values(command, err));
    WEIR_TRY(read_tasks(command->tasks, &n_tasks, err));
    WEIR_TRY(job_plan_room(plan, n_tasks, err));
    for (int64_t rank = 0; rank < n_tasks; rank++) {
        job_plan_add(plan, "command", rank, command->cpu_slots, WEIGHT_WORKER,
                     definition_of(plan, rank, n_tasks));
    }
    return WEIR_OK;
}

static const struct weir_job_ops ops = {
    .names_datasets = true,
    .check = check_command,
    .plan = plan_command,
};

const struct weir_kind weir_job_command = {
    .name = "command",
    .doc = "Any program, as one task or as a gang of equal ones that start together or not at all.",
    WEIR_KIND_OPTIONS(job_command, options),
    .ops = &ops,
};
