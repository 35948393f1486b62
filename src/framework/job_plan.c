#include "framework/job_plan.h"

#include "base/quantity.h"
#include "framework/paths.h"

#include <stdlib.h>
#include <string.h>

#define STOP_GRACE_MS 5000

weir_status job_plan_room(struct job_plan *plan, int64_t n_tasks, struct weir_error *err)
{
    if (n_tasks > WEIR_FRAMEWORK_TASKS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the job has %lld tasks; at most %d are supported",
                              (long long)n_tasks, WEIR_FRAMEWORK_TASKS_MAX);
    }
    size_t text_bytes = json_dumpb(plan->job->spec, NULL, 0, JSON_COMPACT);
    if (plan->job->pinned != NULL) {
        text_bytes += json_dumpb(plan->job->pinned, NULL, 0, JSON_COMPACT);
    }
    if ((size_t)n_tasks * text_bytes > WEIR_FRAMEWORK_TEXT_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "$.spec: %zu bytes for each of %lld tasks: together at most %zu MiB; "
                              "put large files into a folder that the tasks' nodes can read",
                              text_bytes, (long long)n_tasks, WEIR_FRAMEWORK_TEXT_MAX_BYTES >> 20);
    }
    plan->launches = WEIR_ARENA_ARRAY(plan->arena, (size_t)n_tasks, struct weir_launch);
    return WEIR_OK;
}

static int64_t weight_of(int64_t weight, int64_t cpu_millis)
{
    int64_t wanted = cpu_millis > 0 ? weight * cpu_millis / 1000 : weight;
    return WEIR_MAX(WEIR_MIN(wanted, (int64_t)WEIGHT_MOST), (int64_t)1);
}

void job_plan_add(struct job_plan *plan, const char *role, int64_t rank, int64_t cpu_millis,
                  int64_t cpu_weight, json_t *definition)
{
    if (json_object_get(definition, "stop_grace_ms") == NULL) {
        json_object_set_new(definition, "stop_grace_ms", json_integer(STOP_GRACE_MS));
    }
    bool computes = strcmp(role, "parameter_server") != 0;
    const struct weir_job_request *request = &plan->request;
    int64_t millis = computes && request->cpu_millis >= 0 ? request->cpu_millis : cpu_millis;
    json_object_set_new(definition, "cpu_weight",
                        json_integer((json_int_t)weight_of(cpu_weight, millis)));
    if (computes && request->memory_bytes > 0) {
        json_object_set_new(definition, "memory_max_bytes", json_integer(request->memory_bytes));
    }
    if (request->is_fenced) {
        json_object_set_new(definition, "fence_ms", json_integer(plan->job->node_timeout_ms));
    }
    if (request->hold_ms > 0) {
        json_object_set_new(definition, "hold_ms", json_integer(request->hold_ms));
    }
    if (request->save_signal != NULL) {
        json_object_set_new(definition, "save_signal", json_string(request->save_signal));
    }
    plan->launches[plan->n++] = (struct weir_launch){
        .role = role,
        .rank = rank,
        .cpu_millis = millis,
        .accelerators = computes ? request->accelerators : (struct weir_accelerators){0},
        .memory_bytes = json_integer_value(json_object_get(definition, "memory_max_bytes")),
        .definition = weir_json_text(definition, plan->arena),
    };
    json_decref(definition);
}

int64_t job_plan_threads(const struct job_plan *plan)
{
    return WEIR_MAX(weir_cpus_whole(plan->request.cpu_millis), (int64_t)1);
}

json_t *job_plan_spec(const struct job_plan *plan)
{
    json_t *spec = json_deep_copy(plan->job->spec);
    if (plan->job->pinned != NULL) {
        json_object_update(spec, (json_t *)plan->job->pinned);
    }
    if (plan->job->server_url != NULL) {
        json_object_set_new(spec, "server", json_string(plan->job->server_url));
        json_object_set_new(spec, "token_file", json_string("token"));
    }
    json_object_set_new(spec, "job", json_string(plan->job->id));
    return spec;
}

json_t *job_plan_worker(const struct job_plan *plan, const char *verb, json_t *spec)
{
    char *text = json_dumps(spec, JSON_COMPACT);
    json_t *definition = json_pack("{s:[s,s,s,s],s:{},s:{s:s}}", "argv", "weir-worker", verb,
                                   "--spec", "spec.json", "env", "files", "spec.json", text);
    free(text);
    paths_describe(plan->kind, plan->job, spec, definition);
    json_decref(spec);
    return definition;
}
