/** What answers have about the cluster: nodes, queues, what they are used for, jobs, services, secrets, sweeps. */
#include "api/shape_private.h"

#include "job/device.h"
#include "job/job.h"
#include "job/queue.h"
#include "job/secret.h"
#include "job/service.h"
#include "store/identity.h"
#include "sweep/sweep.h"

static const struct api_member amount_members[] = {
    ALWAYS("accelerators", "number",
           "Devices, whatever their model; of each model with a share too"),
    ALWAYS("cpus", "number", "CPUs"),
    ALWAYS("memory", "integer", "Bytes"),
};
static const struct api_member queue_members[] = {
    OR_NULL("shares", "map of any", "What is its: accelerators, cpus, memory, models"),
    OR_NULL("times", "list of any", "Other shares at times of the week: days, from, until, shares"),
    ALWAYS("is_set", "bool", "Somebody set it; else it is implied by a project with jobs"),
    ALWAYS("guarantee", "amounts", "Its guarantee that holds now, by the time of the week"),
    ALWAYS("fair_share", "amounts", "What it may have now, by all queues' shares"),
    ALWAYS("used", "amounts", "What its jobs and those of its parts have"),
    ALWAYS("borrowed", "amounts", "What of it is above the guarantee that holds now"),
    ALWAYS("waiting", "amounts", "What jobs ask for that have no node"),
    ALWAYS("n_running", "integer", "Jobs on nodes; a replica counts as one"),
    ALWAYS("n_waiting", "integer", "Jobs that wait for one"),
};
#define USAGE_FIGURES                                                                              \
    ALWAYS("asked_device_s", "number",                                                             \
           "Device seconds asked for: those given, and those waited for"),                         \
        ALWAYS("given_device_s", "number", "Device seconds that tasks had"),                       \
        OR_NULL("used_device_s", "number",                                                         \
                "Of those given, by what the devices said; null: they said nothing"),              \
        ALWAYS("unknown_device_s", "number", "Of those given, while the devices said nothing"),    \
        ALWAYS("idle_device_s", "number", "Of those given, while devices did next to nothing"),    \
        ALWAYS("borrowed_device_s", "number", "Of those given, above the queue's guarantee"),      \
        ALWAYS("asked_cpu_s", "number", "CPU seconds asked for"),                                  \
        ALWAYS("given_cpu_s", "number", "CPU seconds that tasks had"),                             \
        ALWAYS("borrowed_cpu_s", "number", "Of those, above the queue's guarantee")
static const struct api_member usage_figures_members[] = {USAGE_FIGURES};
static const struct api_member usage_row_members[] = {
    OR_NULL("key", "text", "Project, user, job, model, or when the day or hour began"),
    OR_NULL("name", "text", "Of a job: its name"),
    OR_NULL("project", "text", "Of a project or a job"),
    USAGE_FIGURES,
};
static const struct api_member usage_members[] = {
    ALWAYS("by", "text", "By what it is added up"),
    ALWAYS("from", "time", "From this hour on"),
    ALWAYS("to", "time", "Until before this one"),
    ALWAYS("items", "list of usage row", "Those with the most given first; or by time"),
    ALWAYS("total", "usage figures", "All of them"),
    OR_NULL("next", "text", "Always null"),
};
static const struct api_member queue_amounts_members[] = {
    ALWAYS("accelerators", "number", "Devices"),
    ALWAYS("cpus", "number", "CPUs"),
};
static const struct api_member queue_point_members[] = {
    ALWAYS("time", "time", "Where the step begins"),
    ALWAYS("queue", "text", "Queue"),
    OR_NULL("project", "text", "Whose it is; null: a department"),
    ALWAYS("asked", "queue amounts", "What it had and what it waited for"),
    ALWAYS("guarantee", "queue amounts", "What it was guaranteed"),
    ALWAYS("used", "queue amounts", "What its jobs had"),
    ALWAYS("borrowed", "queue amounts", "What of it was above the guarantee"),
    ALWAYS("waiting", "queue amounts", "What jobs asked for that had no node"),
};
static const struct api_member queue_series_members[] = {
    ALWAYS("from", "time", "From this hour on"),
    ALWAYS("to", "time", "Until before this one"),
    ALWAYS("step_s", "integer", "Length of a step"),
    ALWAYS("items", "list of queue point",
           "Means by step and queue; steps without a sample are left out"),
    OR_NULL("next", "text", "Always null"),
};
static const struct api_member board_members[] = {
    ALWAYS("values", "map of text", "By key: those whose tasks are still at it"),
    ALWAYS("revision", "integer", "Of the newest of them, for `after`; 0: there is none"),
};
static const struct api_member explanation_members[] = {
    ALWAYS("id", "text", "Job"),
    ALWAYS("name", "text", "Its name"),
    ALWAYS("project", "text", "Its project"),
    OR_NULL("queue", "text", "Queue that it waits in"),
    ALWAYS("state", "text", "State of the job"),
    OR_NULL("why", "text", "Why it waits, in a sentence"),
    OR_NULL("since", "time", "Since when"),
    OR_NULL("expected_start", "time", "Until when, if jobs end as expected"),
    OR_NULL("expected_earliest", "time",
            "It may start from then on, by runs of the like; null: unknown"),
    OR_NULL("expected_latest", "time", "And until then"),
    OR_NULL(
        "expected_by", "integer",
        "By so many runs or more of each job that runs: with n, at least n - 1 of n + 1 starts lie "
        "between the two"),
    ALWAYS("is_kept", "bool", "It has waited for long: what gets free is kept for it"),
    ALWAYS("ahead", "list of text", "Names of the first jobs that go before it in its queue"),
    OR_NULL("code", "text", "Why, for programs: full, queue_limit, gang …"),
    OR_NULL("resource", "text", "Of what: accelerators, cpus, memory, tasks, or a model"),
    OR_NULL("need", "number", "How much of it is needed"),
    OR_NULL("have", "number", "How much there is"),
    ALWAYS("n_ahead", "integer", "Jobs that go before it in its queue"),
    ALWAYS("helps", "list of help", "Changes with which it would not wait so"),
};
static const struct api_member help_members[] = {
    ALWAYS("change", "text", "What would be otherwise"),
    ALWAYS("outcome", "text", "What would become of the job then: starts …"),
    ALWAYS("why", "text", "Where, or why"),
};
static const struct api_member what_if_members[] = {
    ALWAYS("before", "map of integer", "Jobs by what the next cycle does with them"),
    ALWAYS("after", "map of integer", "The same with the change"),
    ALWAYS("jobs", "list of changed job", "Those that it makes a difference to"),
    ALWAYS("n_others", "integer", "Jobs of projects that the caller does not see, of those"),
    ALWAYS("others", "map of integer", "What becomes of them, by outcome"),
    ALWAYS("queues", "list of changed queue",
           "Those that it makes a difference to, and the one that changes"),
    ALWAYS("guarantees", "guarantees", "Of all queues together, with the change"),
};
static const struct api_member queue_share_members[] = {
    ALWAYS("guarantee", "amounts", "Never taken away while it is asked for"),
    ALWAYS("fair_share", "amounts", "What it may have, by all queues' shares"),
    ALWAYS("used", "amounts", "What its jobs have after the cycle"),
    ALWAYS("borrowed", "amounts", "What of it is above the guarantee"),
    ALWAYS("waiting", "amounts", "What jobs ask for that have no node"),
};
static const struct api_member changed_queue_members[] = {
    ALWAYS("name", "text", "Queue"),
    OR_NULL("before", "queue share", "As it is; null: it is not there yet"),
    OR_NULL("after", "queue share", "With the change"),
};
static const struct api_member guarantees_members[] = {
    ALWAYS("sum", "amounts", "Guarantees of all queues"),
    ALWAYS("capacity", "amounts", "What the nodes have"),
    ALWAYS("can_be_kept", "bool", "There is enough for all of them"),
    OR_NULL("why", "text", "If not: of what there is too little, and who does not use theirs"),
};
static const struct api_member queue_list_members[] = {
    ALWAYS("items", "list of queue", "Those that the caller may see"),
    OR_NULL("next", "text", "Always null: all are there"),
    ALWAYS("others", "map of integer",
           "Of the rest: n_queues, n_running and n_waiting, which are jobs"),
};
static const struct api_member changed_job_members[] = {
    ALWAYS("id", "text", "Job"),
    ALWAYS("name", "text", "Its name"),
    ALWAYS("project", "text", "Its project"),
    ALWAYS("queue", "text", "Its queue"),
    ALWAYS("before", "text", "What the next cycle does with it: starts, waits, evicted, stays …"),
    ALWAYS("after", "text", "The same with the change"),
    ALWAYS("why_before", "text", "Why, or where"),
    ALWAYS("why_after", "text", "The same with the change"),
};
#define USE_MEMBERS(IS, OR_NOT)                                                                    \
    OR_NOT("cpus_busy", "number", "CPUs that its tasks use, as agents said it last"),              \
        OR_NOT("memory_used_bytes", "integer", "Memory that they use, bytes"),                     \
        IS("memory_kept_bytes", "integer", "Memory that is kept for them, bytes"),                 \
        IS("accelerators_used", "number", "Accelerators that they have"),                          \
        IS("n_tasks", "integer", "How many they are")
static const struct api_member node_members[] = {
    MAY_MISS("state", "text", "ready, silent, lost, or left"),
    MAY_MISS("devices", "list of device", "What it has; not in lists"),
    MAY_MISS("cpus_used", "number", "CPUs that are kept for the tasks on it"),
    MAY_MISS("cpus_free", "number", "CPUs that are left for tasks of whole ones"),
    USE_MEMBERS(MAY_MISS, MAY_MISS),
    OR_NULL("inventory", "map of any", "What the agent found: cpu_model, accelerators …"),
    OR_NULL("labels", "map of any", "What people say of it, for selectors"),
    OR_NULL("taints", "list of any", "What a task must tolerate: key, value, effect"),
};
static const struct api_member busy_job_members[] = {
    ALWAYS("id", "text", "Job"),
    ALWAYS("name", "text", "Its name"),
    ALWAYS("project", "text", "Its project"),
    ALWAYS("kind", "text", "Its kind"),
    OR_NULL("created_by", "text", "Who submitted it"),
    ALWAYS("cpus_used", "number", "CPUs that are kept for its tasks on nodes"),
    USE_MEMBERS(ALWAYS, OR_NULL),
};
static const struct api_member busy_jobs_members[] = {
    ALWAYS("items", "list of busy job", "Those that use most first; at most 1000"),
    OR_NULL("next", "text", "Always null"),
};
static const struct api_member service_members[] = {
    ALWAYS("state", "text", "STARTING, RUNNING, STOPPING, STOPPED or FAILED"),
    OR_NULL("why", "text", "Why it is so, in a sentence"),
    OR_NULL("node", "text", "Where it runs"),
    ALWAYS("is_mine", "bool", "The caller may open it"),
    OR_NULL("url", "text", "Where a browser finds it; null: this server has no address for them"),
};
static const struct api_member device_members[] = {
    OR_NULL("details", "map of any", "What its kind tells besides: links, processes, speed"),
};
static const struct api_member join_members[] = {
    ALWAYS("node", "text", "Name of the node"),
    ALWAYS("secret", "text", "The node's own token"),
};
static const struct api_member node_join_members[] = {
    MAY_MISS("secret", "text", "To join with; when it is made, and never again"),
};
static const struct api_member secret_use_members[] = {
    ALWAYS("kind", "text", "job, service or sweep"),
    ALWAYS("id", "text", "Its identifier"),
    ALWAYS("name", "text", "Its name"),
    ALWAYS("state", "text", "How it is; of a service, its kind"),
};
static const struct api_member secret_members[] = {
    MAY_MISS("used_by", "list of secret use",
             "Of a list: jobs that are not over, services, and sweeps that run, which name it"),
};

static const struct api_member visit_members[] = {
    ALWAYS("id", "text", "Identifier"),
    ALWAYS("kind", "text", "shell, exec, read, write, forward or top"),
    ALWAYS("job", "text", "Job"),
    ALWAYS("task", "text", "Task: its role and rank"),
    ALWAYS("who", "text", "Who is inside"),
    ALWAYS("what", "text", "The command, path or port; \"\" of a shell"),
    ALWAYS("since_ms", "time", "Since when"),
};
static const struct api_member visit_list_members[] = {
    ALWAYS("items", "list of visit", "Those who are inside"),
    OR_NULL("next", "text", "Always null"),
};
static const struct api_member new_visit_members[] = {
    ALWAYS("kind", "text", "shell, exec, read, write, forward or top"),
    MAY_MISS("task", "text",
             "Its rank, its role and rank (worker-0) or identifier; the first that "
             "runs if it is not said"),
    MAY_MISS("command", "list of text", "Of exec"),
    MAY_MISS("tty", "bool", "It has a terminal"),
    MAY_MISS("term", "text", "The terminal's TERM"),
    MAY_MISS("rows", "integer", "Its size"),
    MAY_MISS("columns", "integer", "Its size"),
    MAY_MISS("port", "integer", "Of forward"),
    MAY_MISS("path", "text", "Of read and write: a file, absolute or of the task's folder"),
};

static const struct api_shape shapes[] = {
    SHAPE("visit", NULL, "POST /api/v1/jobs/{id}/visits", visit_members),
    SHAPE("visit list", NULL, "GET /api/v1/jobs/{id}/visits", visit_list_members),
    SHAPE_OF_BODY("new visit", "POST /api/v1/jobs/{id}/visits", new_visit_members),
    RECORD("device", weir_device_resource, "node id kind state changed_ms", device_members),
    SHAPE("joined node", NULL, "POST /api/v1/join", join_members),
    RECORD("node join", weir_node_join_resource, "created_by created_ms expires_ms",
           node_join_members),
    PLAIN_RECORD("sweep", weir_sweep_resource,
                 "name project state document method metric created_ms"),
    PLAIN_RECORD("trial", weir_sweep_trial_resource,
                 "sweep state parameters point rungs created_ms"),
    SHAPE("amounts", NULL, NULL, amount_members),
    RECORD("queue", weir_queue_resource, "priority min_run_ms idle_after_ms", queue_members),
    SHAPE("usage figures", NULL, NULL, usage_figures_members),
    SHAPE("usage row", NULL, NULL, usage_row_members),
    SHAPE("cluster usage", NULL, "GET /api/v1/usage", usage_members),
    SHAPE("queue amounts", NULL, NULL, queue_amounts_members),
    SHAPE("queue point", NULL, NULL, queue_point_members),
    SHAPE("queue series", NULL, "GET /api/v1/usage/queues", queue_series_members),
    SHAPE("board", NULL, "GET /api/v1/jobs/{id}/board", board_members),
    SHAPE("busy job", NULL, NULL, busy_job_members),
    SHAPE("busy jobs", NULL, "GET /api/v1/top/jobs", busy_jobs_members),
    SHAPE("help", NULL, NULL, help_members),
    SHAPE("explanation", NULL, "GET /api/v1/jobs/{id}/explanation", explanation_members),
    SHAPE("changed job", NULL, NULL, changed_job_members),
    SHAPE("queue share", NULL, NULL, queue_share_members),
    SHAPE("changed queue", NULL, NULL, changed_queue_members),
    SHAPE("guarantees", NULL, NULL, guarantees_members),
    SHAPE("queue list", NULL, "GET /api/v1/queues", queue_list_members),
    SHAPE("what if", NULL, "POST /api/v1/what-if", what_if_members),
    RECORD("service", weir_service_resource, "", service_members),
    RECORD("node", weir_node_resource, "", node_members),
    PLAIN_RECORD("job", weir_job_resource, "project state created_by created_ms"),
    SHAPE("secret use", NULL, NULL, secret_use_members),
    RECORD("secret", weir_secret_resource, "project name created_by created_ms updated_ms",
           secret_members),
    PLAIN_RECORD("task", weir_task_resource, "job role state desired"),
};

const struct api_shape_list api_shapes_of_cluster = API_SHAPE_LIST(shapes);
