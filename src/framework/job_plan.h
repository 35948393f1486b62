/** What the kinds of jobs make their tasks with. */
#ifndef WEIR_FRAMEWORK_JOB_PLAN_H
#define WEIR_FRAMEWORK_JOB_PLAN_H

#include "framework/framework.h"

/* cgroup v2 weights (1 … 10000) of one CPU: a replica answers people at once, so it beats training. A
 * task has so much for each CPU that it asks for, and that of one if it asks for none: where all want
 * the processors each has at least what it asked for, and what some leave the others may use. */
#define WEIGHT_REPLICA          2000
#define WEIGHT_WORKER           100
#define WEIGHT_PARAMETER_SERVER 200
#define WEIGHT_MOST             10000

/** The tasks that are being made, in the arena. */
struct job_plan {
    const struct weir_kind *kind;
    const struct weir_launch_job *job;
    struct weir_job_request request;
    struct weir_arena *arena;
    struct weir_launch *launches;
    size_t n;
};

/** Make room; LIMIT for too many tasks, or too much text of all together. */
weir_status job_plan_room(struct job_plan *plan, int64_t n_tasks,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Add one task, with the CPUs, memory and accelerators that the job asks for. A parameter server,
 *  which computes nothing, gets none of those. Takes the reference to `definition`.
 *  @param cpu_millis  Unless the job's "resources" say it. */
void job_plan_add(struct job_plan *plan, const char *role, int64_t rank, int64_t cpu_millis,
                  int64_t cpu_weight, json_t *definition);

/** Computing threads of a task, by the CPUs that the job's "resources" say; at least one. */
int64_t job_plan_threads(const struct job_plan *plan);

/** A copy of the specification that says where to report; a new reference. */
json_t *job_plan_spec(const struct job_plan *plan);

/** The definition of a weir-worker that reads `spec` from a file. Takes the reference to `spec`. */
json_t *job_plan_worker(const struct job_plan *plan, const char *verb, json_t *spec);

#endif
