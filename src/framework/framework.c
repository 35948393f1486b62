#include "framework/framework.h"

#include "base/names.h"
#include "framework/paths.h"
#include "framework/training.h"

#include <string.h>

/* cgroup v2 weights (1 … 10000): a replica answers people at once, so it beats training. */
#define WEIGHT_REPLICA          2000
#define WEIGHT_WORKER           100
#define WEIGHT_PARAMETER_SERVER 200
#define WEIGHT_MOST             10000
#define STOP_GRACE_MS           5000

struct plan {
    const struct weir_launch_job *job;
    struct weir_arena *arena;
    struct weir_launch *launches;
    size_t n;
};

typedef weir_status (*plan_fn)(struct plan *plan, struct weir_error *err);

typedef weir_status (*check_fn)(const json_t *spec, struct weir_arena *arena,
                                struct weir_error *err);

struct framework {
    const char *kind;
    plan_fn plan;   /**< NULL: not supported. */
    check_fn check; /**< Of what users hand in. */
};

static weir_status spec_int(const json_t *spec, const char *name, int64_t fallback, int64_t lo,
                            int64_t hi, int64_t *out, struct weir_error *err)
{
    const json_t *value = json_object_get(spec, name);
    if (value == NULL || json_is_null(value)) {
        *out = fallback;
        return WEIR_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < lo ||
        json_integer_value(value) > hi) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.%s: expected an integer from %lld to %lld", name,
                              (long long)lo, (long long)hi);
    }
    *out = json_integer_value(value);
    return WEIR_OK;
}

static weir_status plan_room(struct plan *plan, int64_t n_tasks, struct weir_error *err)
{
    if (n_tasks > WEIR_FRAMEWORK_TASKS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the job has %lld tasks; at most %d are supported",
                              (long long)n_tasks, WEIR_FRAMEWORK_TASKS_MAX);
    }
    size_t text_bytes = json_dumpb(plan->job->spec, NULL, 0, JSON_COMPACT);
    if ((size_t)n_tasks * text_bytes > WEIR_FRAMEWORK_TEXT_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "$.spec: %zu bytes for each of %lld tasks: together at most %zu MiB; "
                              "put large files into a folder that the tasks' nodes can read",
                              text_bytes, (long long)n_tasks, WEIR_FRAMEWORK_TEXT_MAX_BYTES >> 20);
    }
    plan->launches = WEIR_ARENA_ARRAY(plan->arena, (size_t)n_tasks, struct weir_launch);
    return WEIR_OK;
}

/* Takes the reference to `definition`. */
static void plan_add(struct plan *plan, const char *role, int64_t rank, int64_t cpu_slots,
                     int64_t cpu_weight, json_t *definition)
{
    json_object_set_new(definition, "cpu_weight", json_integer(cpu_weight));
    if (json_object_get(definition, "stop_grace_ms") == NULL) {
        json_object_set_new(definition, "stop_grace_ms", json_integer(STOP_GRACE_MS));
    }
    plan->launches[plan->n++] = (struct weir_launch){
        .role = role,
        .rank = rank,
        .cpu_slots = cpu_slots,
        .memory_bytes = json_integer_value(json_object_get(definition, "memory_max_bytes")),
        .definition = weir_json_text(definition, plan->arena),
    };
    json_decref(definition);
}

/* A weir-worker that reads its specification from a file. Takes the reference to `spec`. */
static json_t *worker_definition(const struct weir_launch_job *job, const char *role, json_t *spec)
{
    char *text = json_dumps(spec, JSON_COMPACT);
    json_t *definition = json_pack("{s:[s,s,s,s],s:{},s:{s:s}}", "argv", "weir-worker", role,
                                   "--spec", "spec.json", "env", "files", "spec.json", text);
    free(text);
    paths_describe(job->shared_dir, spec, job->datasets, definition);
    json_decref(spec);
    return definition;
}

static json_t *shared_spec(const struct weir_launch_job *job)
{
    json_t *spec = json_deep_copy(job->spec);
    if (job->server_url != NULL) {
        json_object_set_new(spec, "server", json_string(job->server_url));
        json_object_set_new(spec, "token_file", json_string("token"));
    }
    json_object_set_new(spec, "job", json_string(job->id));
    return spec;
}

static void set_checkpoint_dir(const struct weir_launch_job *job, json_t *spec)
{
    if (json_object_get(spec, "checkpoint_dir") == NULL) {
        json_object_set_new(spec, "checkpoint_dir",
                            json_sprintf("%s/checkpoints/%s", job->shared_dir, job->id));
    }
}

/* A gang is stopped when one of its tasks is lost; so the workers of an elastic training are the
 * processes of one task, a weir-worker that starts them and replaces those that are lost. */
static weir_status plan_elastic(struct plan *plan, int64_t n_workers, struct weir_error *err)
{
    WEIR_TRY(plan_room(plan, 1, err));
    json_t *spec = shared_spec(plan->job);
    set_checkpoint_dir(plan->job, spec);
    plan_add(plan, "command", 0, n_workers, WEIR_MIN(n_workers * WEIGHT_WORKER, WEIGHT_MOST),
             worker_definition(plan->job, "train", spec));
    return WEIR_OK;
}

static weir_status plan_train(struct plan *plan, struct weir_error *err)
{
    int64_t n_workers, n_servers;
    const struct weir_launch_job *job = plan->job;
    WEIR_TRY(spec_int(job->spec, "workers", 1, 1, WEIR_FRAMEWORK_TASKS_MAX, &n_workers, err));
    WEIR_TRY(
        spec_int(job->spec, "parameter_servers", 0, 0, WEIR_FRAMEWORK_TASKS_MAX, &n_servers, err));
    if (json_is_true(json_object_get(job->spec, "elastic"))) {
        return plan_elastic(plan, n_workers, err);
    }
    WEIR_TRY(plan_room(plan, n_workers + n_servers, err));
    for (int64_t rank = 0; rank < n_workers + n_servers; rank++) {
        const char *role = rank < n_workers ? "worker" : "parameter_server";
        json_t *spec = shared_spec(job);
        json_object_set_new(spec, "role", json_string(role));
        json_object_set_new(spec, "rank", json_integer(rank));
        json_object_set_new(spec, "rendezvous",
                            json_sprintf("file://%s/rendezvous/%s", job->shared_dir, job->id));
        json_object_set_new(spec, "secret", json_string(job->secret));
        set_checkpoint_dir(job, spec);
        plan_add(plan, role, rank, rank < n_workers ? 1 : 0,
                 rank < n_workers ? WEIGHT_WORKER : WEIGHT_PARAMETER_SERVER,
                 worker_definition(plan->job, "train", spec));
    }
    return WEIR_OK;
}

static weir_status plan_predict(struct plan *plan, struct weir_error *err)
{
    int64_t n_replicas;
    const struct weir_launch_job *job = plan->job;
    WEIR_TRY(spec_int(job->spec, "replicas", 1, 1, WEIR_FRAMEWORK_TASKS_MAX, &n_replicas, err));
    WEIR_TRY(plan_room(plan, n_replicas, err));
    for (int64_t rank = 0; rank < n_replicas; rank++) {
        json_t *spec = shared_spec(job);
        json_object_set_new(spec, "replica", json_sprintf("%s-%lld", job->id, (long long)rank));
        json_object_set_new(
            spec, "dir",
            json_sprintf("%s/replicas/%s-%lld", job->shared_dir, job->id, (long long)rank));
        plan_add(plan, "replica", rank, 0, WEIGHT_REPLICA, worker_definition(job, "predict", spec));
    }
    return WEIR_OK;
}

/* "env" and "files" of a command: objects of strings, or absent. */
static weir_status check_texts(const json_t *spec, const char *name, struct weir_error *err)
{
    json_t *map = json_object_get(spec, name);
    const char *key;
    json_t *value;
    if (map != NULL && !json_is_object(map)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.%s: expected an object of strings",
                              name);
    }
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.%s.%.60s: expected a string: put the value into quotes",
                                  name, key);
        }
    }
    return WEIR_OK;
}

static weir_status check_train(const json_t *spec, struct weir_arena *arena, struct weir_error *err)
{
    weir_status status = weir_training_spec_check(spec, arena, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "$.spec.");
}

/* Only an ION has what a replica serves: a job of this kind belongs to one. */
static weir_status check_predict(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    (void)arena;
    return json_is_string(json_object_get(spec, "ion")) &&
                   json_is_string(json_object_get(spec, "pipeline"))
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec: a predict job needs ion and pipeline; an ION's are "
                                "started by `weir apply`");
}

static weir_status check_command(const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    static const char *const known[] = {"argv",      "env",   "files",         "memory_max_bytes",
                                        "cpu_slots", "tasks", "stop_grace_ms", "datasets"};
    (void)arena;
    for (void *it = json_object_iter((json_t *)spec); it != NULL;
         it = json_object_iter_next((json_t *)spec, it)) {
        const char *key = json_object_iter_key(it);
        struct weir_nearest nearest = {0};
        bool is_known = false;
        for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
            is_known = is_known || strcmp(known[i], key) == 0;
            weir_nearest_see(&nearest, key, strlen(key), known[i]);
        }
        if (!is_known) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.%.60s: unknown field%s%s%s", key,
                                  nearest.name != NULL ? "; did you mean " : "",
                                  nearest.name != NULL ? nearest.name : "",
                                  nearest.name != NULL ? "?" : "");
        }
    }
    return WEIR_OK; /* the values are looked at by plan_command */
}

/* A program of the job's own folder, where only its files are: is it there, and can it be run? The
 * agent makes what begins with "#!" executable, and nothing else. */
static weir_status check_program(const json_t *spec, struct weir_error *err)
{
    const char *given = json_string_value(json_array_get(json_object_get(spec, "argv"), 0));
    const char *path = given;
    while (strncmp(path, "./", 2) == 0) {
        path += 2;
    }
    if (path[0] == '/' || strchr(given, '/') == NULL || strstr(path, "..") != NULL) {
        return WEIR_OK; /* a matter of the node */
    }
    const char *text = json_string_value(json_object_get(json_object_get(spec, "files"), path));
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

static weir_status plan_command(struct plan *plan, struct weir_error *err)
{
    static const char *const copied[] = {"argv", "env", "files", "memory_max_bytes",
                                         "stop_grace_ms"};
    int64_t n_tasks, cpu_slots, ignored;
    const json_t *spec = plan->job->spec, *argv = json_object_get(spec, "argv");
    WEIR_TRY(spec_int(spec, "tasks", 1, 1, WEIR_FRAMEWORK_TASKS_MAX, &n_tasks, err));
    WEIR_TRY(spec_int(spec, "cpu_slots", 1, 0, WEIR_FRAMEWORK_SLOTS_MAX, &cpu_slots, err));
    WEIR_TRY(spec_int(spec, "memory_max_bytes", 0, 0, INT64_MAX, &ignored, err));
    WEIR_TRY(spec_int(spec, "stop_grace_ms", 0, 0, 3600000, &ignored, err));
    WEIR_TRY(check_texts(spec, "env", err));
    WEIR_TRY(check_texts(spec, "files", err));
    if (json_object_get(json_object_get(spec, "files"), "token") != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.files.token: a job has its own token in the file of this "
                              "name: give yours another, or name it in .gitignore");
    }
    WEIR_TRY(plan_room(plan, n_tasks, err));
    for (size_t i = 0; i < json_array_size(argv) || i == 0; i++) {
        if (!json_is_string(json_array_get(argv, i))) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.argv: expected an array of one or more strings");
        }
    }
    WEIR_TRY(check_program(spec, err));
    for (int64_t rank = 0; rank < n_tasks; rank++) {
        json_t *definition = json_object();
        for (size_t i = 0; i < WEIR_ARRAY_LEN(copied); i++) {
            json_t *value = json_object_get(spec, copied[i]);
            if (value != NULL) {
                json_object_set_new(definition, copied[i], json_deep_copy(value));
            }
        }
        json_t *env = json_object_get(definition, "env");
        if (env == NULL) {
            env = json_object();
            json_object_set_new(definition, "env", env);
        }
        json_object_set_new(env, "WEIR_RANK", json_sprintf("%lld", (long long)rank));
        json_object_set_new(env, "WEIR_SIZE", json_sprintf("%lld", (long long)n_tasks));
        if (plan->job->datasets != NULL) {
            json_object_set_new(env, "WEIR_DATASETS",
                                json_string(weir_json_text(plan->job->datasets, plan->arena)));
        }
        paths_describe(plan->job->shared_dir, NULL, plan->job->datasets, definition);
        plan_add(plan, "command", rank, cpu_slots, WEIGHT_WORKER, definition);
    }
    return WEIR_OK;
}

static const struct framework frameworks[] = {
    {"train", plan_train, check_train},
    {"predict", plan_predict, check_predict},
    {"command", plan_command, check_command},
    {"pytorch", NULL, NULL},
    {"tensorflow", NULL, NULL},
    {"mpi", NULL, NULL},
};

static weir_status find_framework(const char *kind, const struct framework **out,
                                  struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(frameworks); i++) {
        if (strcmp(frameworks[i].kind, kind) == 0 && frameworks[i].plan == NULL) {
            return weir_error_set(
                err, WEIR_ERR_UNSUPPORTED,
                "jobs of kind \"%s\" are not supported yet: use a \"command\" job", kind);
        }
        if (strcmp(frameworks[i].kind, kind) == 0) {
            *out = &frameworks[i];
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "$.kind: \"%.40s\" is none of train, predict, command", kind);
}

weir_status weir_framework_check(const char *kind, const json_t *spec, struct weir_arena *arena,
                                 struct weir_error *err)
{
    const struct framework *framework;
    WEIR_TRY(find_framework(kind, &framework, err));
    return framework->check(spec, arena, err);
}

weir_status weir_framework_plan(const struct weir_launch_job *job, struct weir_arena *arena,
                                struct weir_launch **out, size_t *out_n, struct weir_error *err)
{
    struct plan plan = {.job = job, .arena = arena};
    const struct framework *framework;
    WEIR_TRY(find_framework(job->kind, &framework, err));
    WEIR_TRY(weir_framework_paths_check(job->shared_dir, "$.spec", job->spec, err));
    WEIR_TRY(framework->plan(&plan, err));
    *out = plan.launches;
    *out_n = plan.n;
    return WEIR_OK;
}
