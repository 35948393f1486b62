#include "api/shape.h"

#include "api/role.h"
#include "capture/snapshot.h"
#include "deploy/deploy.h"
#include "ion/decision.h"
#include "ion/feedback.h"
#include "ion/ion.h"
#include "ion/kpi.h"
#include "ion/replica.h"
#include "ion/revision.h"
#include "ion/statistic.h"
#include "job/device.h"
#include "job/job.h"
#include "job/queue.h"
#include "job/secret.h"
#include "job/service.h"
#include "notify/notify.h"
#include "retain/retain.h"
#include "store/event.h"
#include "store/identity.h"
#include "sweep/sweep.h"
#include "track/artifact.h"
#include "track/experiment.h"
#include "track/forgotten.h"
#include "track/model_baseline.h"
#include "track/track.h"

#include <string.h>

/* A member that is always there with a value; one that may be null; one that may be missing. */
#define ALWAYS(name, type, doc)                                                                    \
    {                                                                                              \
        (name), (type), false, false, (doc)                                                        \
    }
#define OR_NULL(name, type, doc)                                                                   \
    {                                                                                              \
        (name), (type), true, false, (doc)                                                         \
    }
#define MAY_MISS(name, type, doc)                                                                  \
    {                                                                                              \
        (name), (type), true, true, (doc)                                                          \
    }

static const struct api_member caller_members[] = {
    ALWAYS("user", "text", "Who calls"),
    ALWAYS("role", "text", "At most this role"),
    OR_NULL("csrf", "text",
            "What a browser repeats in X-Weir-Csrf with each change; null for tokens"),
    ALWAYS("version", "text", "Version of the server"),
    ALWAYS("rights", "list of text", "What the caller may on the platform and in all projects"),
    ALWAYS("projects", "map of list of text", "What the caller may in single projects, by name"),
};
static const struct api_member role_members[] = {
    ALWAYS("rights", "list of text", "What whoever has it on the platform may: cancel jobs …"),
    ALWAYS("project_rights", "list of text", "What of it whoever has it in a project may there"),
};
static const struct api_member health_members[] = {
    ALWAYS("status", "text", "ok, waiting (for a first model), degraded or down"),
    OR_NULL("reason", "text", "Why, in a sentence"),
    OR_NULL("since", "time", "Since when"),
};
static const struct api_member reason_members[] = {
    ALWAYS("status", "text", "What it makes of the whole: degraded or down"),
    OR_NULL("reason", "text", "What is wrong, in a sentence"),
    OR_NULL("since", "time", "Since when"),
    ALWAYS("kind", "text", "Kind of the alert"),
    ALWAYS("severity", "text", "Severity of the alert"),
    OR_NULL("subject", "text", "About what: ion/NAME, node/NAME …"),
    ALWAYS("alert", "text", "Identifier of the alert"),
};
static const struct api_member health_summary_members[] = {
    ALWAYS("status", "text", "ok, waiting (for a first model), degraded or down"),
    OR_NULL("reason", "text", "Why, in a sentence"),
    OR_NULL("since", "time", "Since when"),
    ALWAYS("reasons", "list of health reason", "One for each alert that makes it so"),
};
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
static const struct api_member missing_blobs_members[] = {
    ALWAYS("missing", "list of text", "Of those that were asked about, in their order"),
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
static const struct api_member node_members[] = {
    MAY_MISS("state", "text", "ready, silent, lost, or left"),
    MAY_MISS("devices", "list of device", "What it has; not in lists"),
    OR_NULL("inventory", "map of any", "What the agent found: cpu_model, accelerators …"),
    OR_NULL("labels", "map of any", "What people say of it, for selectors"),
    OR_NULL("taints", "list of any", "What a task must tolerate: key, value, effect"),
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
static const struct api_member model_of_deployment_members[] = {
    ALWAYS("name", "text", "Model"),
    ALWAYS("version", "integer", "Its version"),
};
static const struct api_member gallery_of_deployment_members[] = {
    ALWAYS("dataset", "text", "Dataset"),
    ALWAYS("version", "integer", "Its version"),
};
static const struct api_member deployment_members[] = {
    MAY_MISS("model", "deployed model", "Model that frames are decided by"),
    MAY_MISS("gallery", "deployed gallery", "Gallery that people are recognised by"),
};
static const struct api_member pipeline_members[] = {
    OR_NULL("deployment", "pipeline deployment",
            "What replicas must serve; secrets are shown as ***"),
    OR_NULL("threshold", "threshold", "How a replica set the threshold last"),
    MAY_MISS("dataset", "text", "Dataset that a run begins with, gallery of a prediction"),
    MAY_MISS("output", "text", "Dataset that a preparation makes"),
    MAY_MISS("against", "text", "Where the model serves that a comparison compares with"),
    MAY_MISS("critical", "bool", "The ION is down if it fails"),
    MAY_MISS("restart", "text", "Restart rule"),
    MAY_MISS("model", "text", "Architecture that is trained"),
    MAY_MISS("workers", "integer", "Workers of a training"),
    MAY_MISS("kind", "text", "Kind of a training's jobs; null: it is no training"),
    MAY_MISS("registers", "text",
             "Model that a training makes versions of; null: it is no training"),
    MAY_MISS("parameter_servers", "integer", "Parameter servers of a training"),
    MAY_MISS("schedule", "text", "When it runs by itself"),
    MAY_MISS("new_data", "bool", "It runs whenever its dataset gets a new version"),
    MAY_MISS("replicas", "integer", "Replicas of a prediction"),
    MAY_MISS("gallery_dataset", "text", "Dataset of the gallery"),
    MAY_MISS("impostors", "text", "Dataset of people who belong to nobody"),
    MAY_MISS("false_accept_rate", "number", "Share of impostors that may be accepted"),
    MAY_MISS("false_deny_rate", "number", "Share of impostors that may be taken for the deny list"),
    MAY_MISS("gallery_default", "text", "What becomes of people on no list"),
    MAY_MISS("source", "any", "Where frames come from; its token is shown as ***"),
    MAY_MISS("triggers", "list of armed trigger",
             "What makes it run, in the order of the document"),
};
static const struct api_member waiting_members[] = {
    ALWAYS("version", "integer", "Version of the model"),
    ALWAYS("model", "text", "Model"),
    ALWAYS("state", "text", "PENDING_REVIEW, WAITING, APPROVED, SHADOW or CANARY"),
    ALWAYS("position", "integer", "Policy of the chain where it stands, from 0"),
    OR_NULL("policy", "text", "That policy"),
    OR_NULL("why", "text", "What it waits for, in words"),
    ALWAYS("until_ms", "integer", "When the policy is asked again, ms since 1970; 0: no time"),
    ALWAYS("approvals", "list of any", "Who has approved it there: by, roles, time_ms"),
};
static const struct api_member link_members[] = {
    ALWAYS("id", "text", "FROM:TO"),
    ALWAYS("from", "text", "Training pipeline, or model/NAME of a registered model"),
    ALWAYS("to", "text", "Prediction pipeline, or deployment/NAME"),
    ALWAYS("policy", "text", "Policies that let versions through, in words"),
    ALWAYS("policies", "list of text", "Their kinds, in the order of the chain"),
    OR_NULL("serving_version", "integer", "What replicas serve"),
    OR_NULL("serving_model", "text", "Its model"),
    OR_NULL("wanted_version", "integer", "What the link has chosen"),
    OR_NULL("deployment_state", "text", "Of that one: DEPLOYING, SERVING or DEPLOY_FAILED"),
    ALWAYS("pending_versions", "list of integer", "What waits for a person"),
    ALWAYS("waiting", "list of waiting version",
           "What stands in the chain, for a person or a time"),
};
static const struct api_member start_members[] = {
    ALWAYS("id", "text", "FROM:TO"),
    ALWAYS("from", "text", "Pipeline, or model/NAME of a registered model"),
    ALWAYS("to", "text", "Pipeline that is started"),
    OR_NULL("dataset", "text", "Dataset whose versions start it; null: versions of a model do"),
};
#define ION_MEMBERS                                                                                \
    ALWAYS("pipelines", "list of pipeline", "Its pipelines"),                                      \
        ALWAYS("links", "list of link", "Its links, in the order of the document"),                \
        ALWAYS("starts", "list of starting link",                                                  \
               "Its links that start pipelines: with a dataset's versions, or with models to "     \
               "measure"),                                                                         \
        MAY_MISS("firings", "list of trigger firing",                                              \
                 "The newest firings of its triggers, newest first"),                              \
        MAY_MISS("health", "health", "Is all well?")
static const struct api_member ion_members[] = {ION_MEMBERS};
static const struct api_member applied_ion_members[] = {
    ION_MEMBERS,
    ALWAYS("warnings", "list of text", "What looks wrong from here, but may be right elsewhere"),
    MAY_MISS("effects", "list of effect", "Of a dry run: what would come of it"),
};
static const struct api_member effect_members[] = {
    ALWAYS("kind", "text", "start, stop, deploy, decide or alert"),
    OR_NULL("pipeline", "text", "Pipeline that it is about"),
    OR_NULL("link", "text", "Link that it is about"),
    ALWAYS("text", "text", "In a sentence"),
};
static const struct api_member candidate_members[] = {
    ALWAYS("link_from", "text", "Training pipeline of the link, or model/NAME"),
    ALWAYS("link_to", "text", "Prediction pipeline of the link, or deployment/NAME"),
    OR_NULL("metrics", "map of any", "Measured quality"),
};
static const struct api_member registered_members[] = {
    ALWAYS("model", "text", "Model"),
    ALWAYS("version", "integer", "Its version"),
};
static const struct api_member experiment_members[] = {
    ALWAYS("tags", "map of text", "Tags"),
    ALWAYS("n_runs", "integer", "Runs that are not deleted"),
};
static const struct api_member new_experiment_members[] = {
    ALWAYS("name", "text", "Name, once in a project"),
    MAY_MISS("project", "text", "Project; else the only one the caller has, or \"default\""),
    MAY_MISS("artifact_location", "text", "Where its runs' artifacts go; else to the server"),
    MAY_MISS("description", "any", "What it is: the tag mlflow.note.content"),
    MAY_MISS("tags", "map of text", "Tags"),
};
static const struct api_member changed_experiment_members[] = {
    MAY_MISS("name", "text", "Another name"),
    MAY_MISS("description", "any", "What it is: the tag mlflow.note.content; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
};
static const struct api_member new_run_members[] = {
    MAY_MISS("name", "text", "Name; else its identifier"),
    MAY_MISS("project", "text", "Project; else the only one the caller has, or \"default\""),
    MAY_MISS("experiment", "any",
             "Number of its experiment, or a name that is made where it is new; else \"Default\""),
    MAY_MISS("params", "map of any", "Parameters"),
    MAY_MISS("tags", "map of any", "Tags"),
    MAY_MISS("user", "text", "Whom the program names as its user"),
    MAY_MISS("start_ms", "integer", "When it began (ms since 1970); else now"),
};
static const struct api_member changed_run_members[] = {
    MAY_MISS("status", "text", "RUNNING, SCHEDULED, FINISHED, FAILED or KILLED"),
    MAY_MISS("summary", "any", "What came out"),
    MAY_MISS("name", "text", "Another name"),
    MAY_MISS("description", "any", "What it is: the tag mlflow.note.content; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
    MAY_MISS("params", "map of any", "Parameters, each of which is written once"),
    MAY_MISS("lifecycle", "text", "active or deleted"),
};
static const struct api_member run_summary_members[] = {
    ALWAYS("n", "integer", "Runs that the filter fits"),
    ALWAYS("metrics", "list of text", "Names of metrics that the newest 1000 of them have"),
    ALWAYS("params", "list of text", "Names of their parameters"),
    ALWAYS("tags", "list of text", "Names of their tags"),
};
static const struct api_member run_group_members[] = {
    OR_NULL("value", "text", "What the runs of the group have; null: they have none"),
    ALWAYS("n_runs", "integer", "Runs of the group"),
    ALWAYS("n_measured", "integer", "Runs of it whose metric is a number"),
    OR_NULL("mean", "number", "Of their last measurements"),
    OR_NULL("least", "number", "The least of them"),
    OR_NULL("greatest", "number", "The greatest of them"),
};
static const struct api_member run_groups_members[] = {
    ALWAYS("items", "list of run group", "Groups by value, the runs without one first"),
    OR_NULL("next", "text", "Cursor of the page after this one; null: it is the last"),
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
static const struct api_member upload_part_members[] = {
    ALWAYS("number", "integer", "From 1 on"),
    ALWAYS("bytes", "integer", "Its size (bytes)"),
    ALWAYS("sha256", "text", "Of its bytes"),
};
static const struct api_member upload_members[] = {
    ALWAYS("parts", "list of upload part", "The parts that came"),
};
static const struct api_member run_input_members[] = {
    ALWAYS("name", "text", "What the program calls the data"),
    ALWAYS("digest", "text", "What tells its versions apart"),
    OR_NULL("context", "text", "What it was read for: training …"),
    OR_NULL("source_type", "text", "Kind of its source"),
    OR_NULL("source", "text", "Where it came from, as the program says"),
};
static const struct api_member run_lineage_members[] = {
    ALWAYS("inputs", "list of run input", "Data that the program says it read"),
    ALWAYS("versions", "list of model version",
           "Model versions that came of the run, the oldest first, without what is large"),
};
static const struct api_member run_members[] = {
    ALWAYS("params", "map of text", "Parameters, also those inside of `parameters`, as \"a.b\""),
    ALWAYS("tags", "map of text", "Tags"),
    ALWAYS("experiment_name", "text", "Name of its experiment"),
    ALWAYS("metrics", "map of number", "Last measurement of each key; null = not a number"),
    OR_NULL("epoch", "number", "Epoch that it is in"),
    OR_NULL("epochs", "number", "Epochs in all"),
    OR_NULL("progress", "number", "How far it is, 0 to 1"),
    OR_NULL("loss", "number", "Of the last mini-batches of training"),
    OR_NULL("accuracy", "number", "Of the last mini-batches of training"),
    OR_NULL("images_per_second", "number", "How fast it trains"),
    OR_NULL("validation_loss", "number", "Of data that is not trained with"),
    OR_NULL("validation_accuracy", "number", "Of data that is not trained with"),
    OR_NULL("model", "any", "Architecture that is trained"),
    OR_NULL("parameters", "map of any", "What it was started with; secrets are shown as ***"),
    OR_NULL("registered", "registered version", "Model version that came of it"),
    OR_NULL("started_ms", "time", "When its job began to run; null while it waits"),
};
static const struct api_member share_members[] = {
    ALWAYS("version", "integer", "Version"),
    ALWAYS("percent", "number", "Its part of the requests"),
};
static const struct api_member served_version_members[] = {
    ALWAYS("version", "integer", "Version"),
    ALWAYS("percent", "number", "Share that is asked for"),
    ALWAYS("live_percent", "number", "Share in effect"),
    ALWAYS("is_mirror", "bool", "It gets a copy of each request"),
    OR_NULL("state", "text", "READY on some replica, LOADING or FAILED; null: no replica says"),
    OR_NULL("reason", "text", "Why it failed"),
    ALWAYS("n_ready", "integer", "Replicas that have it ready"),
};
static const struct api_member deployed_replica_members[] = {
    OR_NULL("versions", "list of any", "What it has loaded: version, state, reason, executor …"),
    OR_NULL("stats", "map of any", "Its figures"),
    OR_NULL("job_state", "text", "State of its job"),
    OR_NULL("reason", "text", "Why its job waits or failed"),
};
static const struct api_member deployment_version_figures_members[] = {
    ALWAYS("version", "integer", "Version; 0: requests for which none was chosen"),
#define X(field, name, help) ALWAYS(#field, "integer", help),
#include "gateway/figures.def"
#undef X
    ALWAYS("n_in_flight", "integer", "Now, at replicas"),
    ALWAYS("n_held", "integer", "Now, waiting for a replica"),
    ALWAYS("sum_us", "integer", "Times from request to answer, added up (us)"),
    ALWAYS("p50_us", "integer", "Half of the requests took no longer (us)"),
    ALWAYS("p99_us", "integer", "99 % took no longer (us)"),
    ALWAYS(
        "buckets", "list of any",
        "[end, count]: how many took less than end, in us, and not less than the end before; the "
        "difference of two answers is what came between them"),
};
static const struct api_member deployment_figures_members[] = {
    ALWAYS("time_ms", "time", "When they were read (ms)"),
    ALWAYS("items", "list of deployment version figures", "By version"),
    OR_NULL("next", "text", "Always null: all versions are there"),
};
static const struct api_member served_members[] = {
    OR_NULL("previous", "list of share", "Shares in effect before these"),
    ALWAYS("versions", "list of served version", "What its replicas load"),
    ALWAYS("replicas", "list of deployment replica", "Its replicas"),
    ALWAYS("n_ready", "integer", "Replicas that answer"),
    ALWAYS("traffic", "text", "Shares in effect: v3=90,v4=10; none"),
    ALWAYS("is_settled", "bool", "What was asked for is in effect, or has failed"),
};
static const struct api_member model_version_members[] = {
    OR_NULL("signature", "map of any", "What it takes and gives, and what runs it"),
    MAY_MISS("executor", "text", "What runs it, by its signature"),
    MAY_MISS("aliases", "list of text", "Its names"),
    MAY_MISS("tags", "map of text", "Tags"),
    MAY_MISS("deployments", "list of text", "Where it has a share, or is the mirror"),
    OR_NULL("parameters", "map of any", "Training parameters"),
    OR_NULL("metrics", "map of any", "Measured quality"),
};
static const struct api_member model_members[] = {
    MAY_MISS("tags", "map of text", "Tags; a list leaves them out"),
};
static const struct api_member changed_model_members[] = {
    MAY_MISS("description", "any", "What it is; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
};
static const struct api_member changed_version_members[] = {
    MAY_MISS("description", "any", "What it is; null takes it away"),
    MAY_MISS("tags", "map of any", "Tags to set; null takes one away"),
    MAY_MISS("stage", "text", "None, Staging, Production or Archived; changes nothing that runs"),
    MAY_MISS("archive_others", "boolean", "The others of that stage become Archived"),
};
static const struct api_member new_version_members[] = {
    MAY_MISS("labels", "list of text",
             "Names of its classes, in their order; else as the file says"),
    MAY_MISS("preprocess", "map of any",
             "How a picture becomes its input: width, height, fit, mean, std …"),
    MAY_MISS("alias", "text", "Name that the version is given"),
    MAY_MISS("project", "text", "Of a model that is made by it: whose it is"),
};
static const struct api_member count_members[] = {
    ALWAYS("grant", "integer", "Granted"),
    ALWAYS("deny", "integer", "Denied"),
    ALWAYS("unknown", "integer", "Nobody known, or no label"),
    ALWAYS("error", "integer", "Not decided"),
    ALWAYS("label", "integer", "A label, of a classifier"),
};
static const struct api_member bucket_members[] = {
    ALWAYS("time_ms", "time", "Begin of this part of the time"),
    ALWAYS("grant", "integer", "Granted"),
    ALWAYS("deny", "integer", "Denied"),
    ALWAYS("unknown", "integer", "Nobody known, or no label"),
    ALWAYS("error", "integer", "Not decided"),
    ALWAYS("label", "integer", "A label, of a classifier"),
};
static const struct api_member latency_members[] = {
    OR_NULL("p50", "number", "Median (ms)"),
    OR_NULL("p90", "number", "90 % are no slower (ms)"),
    OR_NULL("p99", "number", "99 % are no slower (ms)"),
    OR_NULL("max", "number", "The slowest (ms)"),
};
static const struct api_member decision_summary_members[] = {
    ALWAYS("decisions", "integer", "How many were counted"),
    ALWAYS("verdicts", "verdict counts", "By verdict"),
    ALWAYS("latency_ms", "latency quantiles", "From frame to decision"),
    OR_NULL("durable_p99_ms", "number", "99 % were on disk no later (ms)"),
    ALWAYS("last_seq", "integer", "Number of the newest; 0: none"),
    OR_NULL("from_ms", "time", "From when on the counts are complete"),
    ALWAYS("per_second", "number", "Rate since then"),
    MAY_MISS("buckets", "list of decision bucket",
             "Counts by equal parts of the time, if asked for"),
};
#define ACCURACY                                                                                   \
    ALWAYS("n", "integer", "Decisions whose truth is known"),                                      \
        ALWAYS("right", "integer", "Those that said it"),                                          \
        OR_NULL("accuracy", "number", "Their share; null: none is known"),                         \
        ALWAYS("low", "number", "Lower end of its 95 % interval"),                                 \
        ALWAYS("high", "number", "Upper end of that interval")
static const struct api_member accuracy_members[] = {ACCURACY};
static const struct api_member accuracy_group_members[] = {
    ALWAYS("name", "text", "Camera, person, label, version, pipeline or day"),
    ACCURACY,
};
static const struct api_member ion_health_members[] = {
    ALWAYS("ion", "text", "ION"),
    OR_NULL("since_ms", "time", "Of decisions from then on"),
    ALWAYS("accuracy", "live accuracy", "How often decisions were right, as far as that is known"),
    ALWAYS("by", "text",
           "What the groups are: camera, truth, decided, model_version, pipeline, day"),
    ALWAYS("groups", "list of accuracy group", "The same by group, most errors first"),
    ALWAYS("kpis", "list of kpi", "The newest value of each business figure"),
};
static const struct api_member signal_members[] = {
    ALWAYS("pipeline", "text", "Pipeline"),
    ALWAYS("signal", "text", "What was compared: score, brightness, feature:NAME …"),
    OR_NULL("replica", "text", "Replica of the last report"),
    ALWAYS("model_version", "integer", "Model version of the last report"),
    ALWAYS("statistic", "text", "What moved: location, spread, shape, rate … or none"),
    OR_NULL("value", "number", "How far"),
    OR_NULL("p_value", "number", "How often a window like the last comes if nothing has changed"),
    ALWAYS("drifted", "bool", "A confirmed drift, by the last report"),
    ALWAYS("state", "text", "drifts; watch: its p-value is small even among so many signals; none"),
    ALWAYS("n_samples", "integer", "Values of all its windows"),
    ALWAYS("n_windows", "integer", "Reports of this span of time"),
    ALWAYS("n_drifted", "integer", "Those of them with drift"),
    ALWAYS("time_ms", "time", "When the last report came"),
    OR_NULL("began_ms", "time", "Since when it drifts; null: it does not"),
    OR_NULL("effect", "number", "Size of the difference, whatever the number of values"),
    OR_NULL("live_mean", "number", "Mean of the last window"),
    OR_NULL("live_stddev", "number", "Its standard deviation"),
    OR_NULL("baseline_mean", "number", "Mean of training"),
    OR_NULL("baseline_stddev", "number", "Its standard deviation"),
    OR_NULL("distances", "map of number", "ks, psi, js … of the last window"),
    OR_NULL("baseline", "map of any", "Training: edges, counts"),
    OR_NULL("cameras", "list of text", "Which cameras, where that is known"),
    OR_NULL("live", "map of any", "The same of all windows of the span: edges, counts"),
    ALWAYS("cells", "list of any", "Smallest p-value of each part of the time, or null"),
};
static const struct api_member ion_drift_members[] = {
    ALWAYS("ion", "text", "ION"),
    ALWAYS("since_ms", "time", "From then on"),
    ALWAYS("until_ms", "time", "Until then"),
    ALWAYS("times", "list of text", "Begin of each part of the time, as of signals' cells"),
    ALWAYS("signals", "list of drift signal", "Those that drift first, then by p-value"),
    ALWAYS("is_cut", "bool", "There are more reports than were looked at: take a shorter span"),
};
static const struct api_member finding_members[] = {
    ALWAYS("signal", "text", "feature:NAME, missing:NAME, category:NAME or range:NAME"),
    ALWAYS("statistic", "text", "What moved: location, spread, shape or none; rate"),
    ALWAYS("value", "number", "In standard deviations; of a rate the share of the window"),
    ALWAYS("p_value", "number", "How often a window like this comes if nothing has changed"),
    ALWAYS("differs", "bool", "It differs, among all that was asked of this window"),
    ALWAYS("drifted", "bool", "So did one of the two windows before: a drift"),
};
static const struct api_member window_members[] = {
    ALWAYS("findings", "list of finding", "What was asked of each feature, answered"),
};
static const struct api_member baseline_members[] = {
    ALWAYS("baseline", "map of any", "{features: {NAME: {kind, histogram or counts}}}"),
};
static const struct api_member feedback_answer_members[] = {
    ALWAYS("stored", "integer", "How many truths were stored"),
    ALWAYS("right", "integer", "Decisions among them that were right"),
};
static const struct api_member statistics_answer_members[] = {
    ALWAYS("stored", "integer", "How many were stored; those that were there are not counted"),
};
static const struct api_member step_members[] = {
    ALWAYS("n", "integer", "Steps of deletion since the start"),
    ALWAYS("n_over_10_ms", "integer", "Those that took longer than 10 ms"),
    ALWAYS("longest_ms", "number", "The longest (ms)"),
};
static const struct api_member store_usage_members[] = {
    ALWAYS("items", "list of usage", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
    ALWAYS("total_bytes", "integer", "What the state folder takes (bytes)"),
    ALWAYS("disk_bytes", "integer", "Size of its disk (bytes)"),
    ALWAYS("disk_free_bytes", "integer", "Free on its disk (bytes)"),
    ALWAYS("steps", "deletion steps", "How long deleting held others up"),
};
static const struct api_member limit_members[] = {
    ALWAYS("kind", "text", "What grows"),
    ALWAYS("what", "text", "What it is"),
    ALWAYS("rule", "text", "What of it goes, and in which order"),
    ALWAYS("limit", "text", "Age and size it may reach"),
    ALWAYS("default", "text", "The limit unless it is changed"),
};
static const struct api_member retention_members[] = {
    ALWAYS("items", "list of retention limit", "By kind"),
    OR_NULL("next", "text", "Always null: all kinds are there"),
};
static const struct api_member chain_finding_members[] = {
    ALWAYS("what", "text", "Kind of damage, for programs"),
    ALWAYS("seq", "integer", "Event where it shows"),
    ALWAYS("number", "integer", "Its row in the chain"),
    ALWAYS("message", "text", "In a sentence"),
};
static const struct api_member chain_cut_members[] = {
    ALWAYS("n", "integer", "How many"),
    ALWAYS("first_seq", "integer", "First event"),
    ALWAYS("last_seq", "integer", "Last event"),
    ALWAYS("first_ms", "time", "When the first was written"),
    ALWAYS("last_ms", "time", "When the last was written"),
};
static const struct api_member chain_members[] = {
    ALWAYS("chain", "text", "acts or accesses"),
    ALWAYS("is_whole", "bool", "No row was altered, taken out or put in"),
    ALWAYS("number", "integer", "Of its last row"),
    ALWAYS("hash", "text", "Of its last row: who notes it can compare later"),
    ALWAYS("n_rows", "integer", "Rows that were looked at"),
    ALWAYS("n_before", "integer", "Events older than the chain"),
    ALWAYS("begins_after", "integer", "Event that it begins after"),
    OR_NULL("cut", "chain cut", "Rows that retention took"),
    OR_NULL("finding", "chain finding", "The first damage; null: none"),
};
static const struct api_member audit_members[] = {
    ALWAYS("is_whole", "bool", "All of its chains are"),
    ALWAYS("chains", "list of verified chain", "Acts, then accesses"),
};
static const struct api_member alert_members[] = {
    ALWAYS("status", "text", "Now: raised, acknowledged, silenced or resolved"),
    MAY_MISS("firings", "list of firing", "Of a single one: what rules made of it"),
    MAY_MISS("deliveries", "list of delivery", "Of a single one: who was told, and when"),
};
static const struct api_member rule_members[] = {
    ALWAYS("n_fired", "integer", "Alerts that it told of in the last 30 days"),
};
static const struct api_member receiver_members[] = {
    ALWAYS("n_waiting", "integer", "Messages that wait for it"),
};
static const struct api_member alive_members[] = {
    ALWAYS("status", "text", "ok"),
    ALWAYS("version", "text", "Version of the server"),
};

static const struct api_member dataset_version_members[] = {
    MAY_MISS("tombstones", "list of tombstone", "People who were deleted from it; in the list"),
    MAY_MISS("n_forgotten", "integer", "Files that went with them; in the list"),
};
static const struct api_member snapshot_members[] = {
    MAY_MISS("rows", "map of integer", "Records by table; of a single one"),
    MAY_MISS("files", "list of snapshot file", "What is in it; of a single one"),
};
static const struct api_member snapshot_file_members[] = {
    ALWAYS("name", "text", "In the folder timeline-export/"),
    ALWAYS("bytes", "integer", "Size"),
    ALWAYS("sha256", "text", "SHA-256"),
};

static const struct api_member state_pipeline_members[] = {
    ALWAYS("name", "text", "Name"),
    ALWAYS("type", "text", "training, prediction, preparation, evaluation or comparison"),
};
static const struct api_member state_waiting_members[] = {
    ALWAYS("version", "integer", "Version"),
    OR_NULL("policy", "text", "Where it stood"),
    OR_NULL("rule", "text", "What it waited for, in words"),
    OR_NULL("since_ms", "time", "Since when"),
};
static const struct api_member state_link_members[] = {
    ALWAYS("id", "text", "FROM:TO"),
    ALWAYS("from", "text", "Pipeline, or model/NAME"),
    ALWAYS("to", "text", "Pipeline"),
    OR_NULL("policy", "any", "As the document had it"),
    OR_NULL("version", "integer", "That it had chosen by then"),
    OR_NULL("model", "text", "Whose version"),
    OR_NULL("since_ms", "time", "Since when"),
    OR_NULL("verdict", "text", "promote, set or rollback"),
    OR_NULL("rule", "text", "Why, in words"),
    OR_NULL("actor", "text", "Who, or policy"),
    ALWAYS("waiting", "list of snapshot waiting", "Versions that waited"),
};
static const struct api_member state_count_members[] = {
    ALWAYS("n", "integer", "Decisions since the span began"),
    ALWAYS("grant", "integer", "Of them"),
    ALWAYS("deny", "integer", "Of them"),
    ALWAYS("unknown", "integer", "Of them"),
    ALWAYS("error", "integer", "Of them"),
    ALWAYS("label", "integer", "Of them"),
};
static const struct api_member state_members[] = {
    ALWAYS("time_ms", "time", "The moment"),
    ALWAYS("revision", "integer", "Of the document by then"),
    OR_NULL("document", "any", "As it was; secrets are shown as ***"),
    ALWAYS("pipelines", "list of snapshot pipeline", "Of that document"),
    ALWAYS("links", "list of snapshot link", "With what each served and what waited"),
    ALWAYS("health", "list of health report", "The last report of each signal by then"),
    ALWAYS("alerts", "list of alert", "That were open"),
    ALWAYS("events", "list of event", "By then, newest first, 200 at most"),
    ALWAYS("decisions", "snapshot decisions", "Counted from the span's begin"),
    MAY_MISS("course", "list of snapshot part", "With points: what was decided in each part"),
};
static const struct api_member state_part_members[] = {
    ALWAYS("time_ms", "time", "Its end"),    ALWAYS("n", "integer", "Decisions in it"),
    ALWAYS("grant", "integer", "Of them"),   ALWAYS("deny", "integer", "Of them"),
    ALWAYS("unknown", "integer", "Of them"), ALWAYS("error", "integer", "Of them"),
    ALWAYS("label", "integer", "Of them"),
};
static const struct api_member told_members[] = {
    ALWAYS("verdict", "text", "pass, promote, wait, skip, reject"),
    ALWAYS("rule", "text", "In words"),
    MAY_MISS("options", "any", "The policy, with its options"),
};
static const struct api_member replayed_decision_members[] = {
    ALWAYS("id", "text", "Of the policy decision"),
    ALWAYS("time_ms", "time", "When it was made"),
    ALWAYS("link", "text", "FROM:TO"),
    ALWAYS("version", "integer", "Of the model"),
    ALWAYS("policy", "text", "That decided"),
    ALWAYS("position", "integer", "In its chain, from 0"),
    ALWAYS("recorded", "told verdict", "What was decided"),
    OR_NULL("replayed", "told verdict", "What would have been; null: nothing asks any more"),
    ALWAYS("differs", "bool", "Is the verdict another?"),
    OR_NULL("why", "text", "Which option changed, and the rule; null: all is the same"),
};
static const struct api_member replayed_policies_members[] = {
    ALWAYS("n", "integer", "Policy decisions of the span"),
    ALWAYS("n_same", "integer", "Of them, the same again, byte for byte"),
    ALWAYS("n_reworded", "integer", "Of them, the same verdict, said otherwise"),
    ALWAYS("n_differ", "integer", "Of them, another verdict"),
    ALWAYS("n_by_hand", "integer", "Of them, made by people without a policy"),
    ALWAYS("decisions", "list of replayed decision", "In their order"),
};
static const struct api_member replayed_version_members[] = {
    ALWAYS("link", "text", "FROM:TO"),
    ALWAYS("version", "integer", "Of the model"),
    ALWAYS("recorded", "told verdict", "What became of it"),
    OR_NULL("replayed", "told verdict", "What would have; null: there is no such link"),
    ALWAYS("differs", "bool", "Are they different?"),
    OR_NULL("why", "text", "If so, why"),
};
static const struct api_member drift_window_members[] = {
    ALWAYS("time_ms", "time", "Of its last value"),
    ALWAYS("window", "integer", "Number, from 0"),
    ALWAYS("n_values", "integer", "In it"),
    ALWAYS("p_value", "number", "How often one like this comes if nothing has changed"),
    ALWAYS("effect", "number", "How large the difference is"),
    ALWAYS("kind", "text", "location, spread, shape or none"),
    ALWAYS("drifted", "bool", "Does it differ?"),
    ALWAYS("confirmed", "bool", "Do enough of the last ones?"),
    ALWAYS("level", "number", "How far what is too slow for a window has added up: 1 is an alarm"),
    ALWAYS("alarm", "bool", "Is it drift, confirmed or added up?"),
};
static const struct api_member replayed_signal_members[] = {
    ALWAYS("pipeline", "text", "Pipeline"),
    ALWAYS("replica", "text", "Replica"),
    ALWAYS("model_version", "integer", "Version that decided"),
    ALWAYS("signal", "text", "score or brightness"),
    ALWAYS("n_values", "integer", "Compared"),
    ALWAYS("n_windows", "integer", "Tested"),
    OR_NULL("recorded_alarm", "time", "First that was reported then"),
    OR_NULL("replayed_alarm", "time", "First with these thresholds"),
    ALWAYS("differs", "bool", "Is there one where there was none, or the other way round?"),
    OR_NULL("why", "text", "If so, why; or why it was not tested"),
    ALWAYS("windows", "list of replayed window", "The first 1000"),
};
static const struct api_member replayed_drift_members[] = {
    ALWAYS("false_alarm_rate", "number", "Per window; 0: nothing was tested"),
    ALWAYS("min_effect", "number", "Least effect"),
    ALWAYS("window", "integer", "Values in a window"),
    ALWAYS("confirm_k", "integer", "Windows that must differ"),
    ALWAYS("confirm_n", "integer", "Of so many"),
    ALWAYS("signals", "list of replayed signal", "By replica and model version"),
};
static const struct api_member replay_members[] = {
    ALWAYS("is_same", "bool", "Nothing would have been decided otherwise"),
    ALWAYS("policies", "replayed policies", "Each decision made again"),
    ALWAYS("candidates", "list of replayed version",
           "Where each version gets in the document's chains; empty without a document"),
    ALWAYS("drift", "replayed drift", "Detectors over the decisions' values"),
};

#define SHAPE(name, record, route, table)                                                          \
    {                                                                                              \
        (name), (record), NULL, (route), NULL, (table), WEIR_ARRAY_LEN(table)                      \
    }
#define RECORD(name, record, filled, table)                                                        \
    {                                                                                              \
        (name), &(record), (filled), NULL, NULL, (table), WEIR_ARRAY_LEN(table)                    \
    }
/* What a route's body has beside the record's fields. */
#define BODY(name, record, route, table)                                                           \
    {                                                                                              \
        (name), &(record), NULL, NULL, (route), (table), WEIR_ARRAY_LEN(table)                     \
    }
/* A body that is no record's. */
#define SHAPE_OF_BODY(name, route, table)                                                          \
    {                                                                                              \
        (name), NULL, NULL, NULL, (route), (table), WEIR_ARRAY_LEN(table)                          \
    }
#define PLAIN_RECORD(name, record, filled)                                                         \
    {                                                                                              \
        (name), &(record), (filled), NULL, NULL, NULL, 0                                           \
    }

const struct api_shape api_shapes[] = {
    SHAPE("alive", NULL, "GET /health", alive_members),
    SHAPE("caller", NULL, "GET /api/v1/session", caller_members),
    RECORD("role", weir_role_resource, "name", role_members),
    SHAPE("health", NULL, NULL, health_members),
    SHAPE("health reason", NULL, NULL, reason_members),
    SHAPE("health summary", NULL, "GET /api/v1/health/summary", health_summary_members),
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
    SHAPE("help", NULL, NULL, help_members),
    SHAPE("explanation", NULL, "GET /api/v1/jobs/{id}/explanation", explanation_members),
    SHAPE("changed job", NULL, NULL, changed_job_members),
    SHAPE("queue share", NULL, NULL, queue_share_members),
    SHAPE("changed queue", NULL, NULL, changed_queue_members),
    SHAPE("guarantees", NULL, NULL, guarantees_members),
    SHAPE("queue list", NULL, "GET /api/v1/queues", queue_list_members),
    SHAPE("missing blobs", NULL, "POST /api/v1/blobs/missing", missing_blobs_members),
    SHAPE("what if", NULL, "POST /api/v1/what-if", what_if_members),
    RECORD("service", weir_service_resource, "", service_members),
    RECORD("node", weir_node_resource, "", node_members),
    SHAPE("deployed model", NULL, NULL, model_of_deployment_members),
    SHAPE("deployed gallery", NULL, NULL, gallery_of_deployment_members),
    SHAPE("pipeline deployment", NULL, NULL, deployment_members),
    RECORD("pipeline", weir_ion_pipeline_resource, "ion name type state", pipeline_members),
    SHAPE("waiting version", NULL, NULL, waiting_members),
    SHAPE("link", NULL, NULL, link_members),
    SHAPE("starting link", NULL, NULL, start_members),
    RECORD("ION", weir_ion_resource, "project state mode created_by created_ms updated_ms",
           ion_members),
    {"applied ION", &weir_ion_resource, "project state mode created_by created_ms updated_ms",
     "POST /api/v1/ions", NULL, applied_ion_members, WEIR_ARRAY_LEN(applied_ion_members)},
    SHAPE("effect", NULL, NULL, effect_members),
    PLAIN_RECORD("revision", weir_ion_revision_resource, "ion document time_ms"),
    SHAPE("snapshot pipeline", NULL, NULL, state_pipeline_members),
    SHAPE("snapshot waiting", NULL, NULL, state_waiting_members),
    SHAPE("snapshot link", NULL, NULL, state_link_members),
    SHAPE("snapshot decisions", NULL, NULL, state_count_members),
    SHAPE("snapshot part", NULL, NULL, state_part_members),
    SHAPE("snapshot state", NULL, "GET /api/v1/snapshots/{name}/state", state_members),
    SHAPE("told verdict", NULL, NULL, told_members),
    SHAPE("replayed decision", NULL, NULL, replayed_decision_members),
    SHAPE("replayed policies", NULL, NULL, replayed_policies_members),
    SHAPE("replayed version", NULL, NULL, replayed_version_members),
    SHAPE("replayed window", NULL, NULL, drift_window_members),
    SHAPE("replayed signal", NULL, NULL, replayed_signal_members),
    SHAPE("replayed drift", NULL, NULL, replayed_drift_members),
    SHAPE("replay", NULL, "POST /api/v1/snapshots/{name}/replay", replay_members),
    PLAIN_RECORD("health report", weir_health_report_resource,
                 "ion pipeline signal statistic time_ms"),
    SHAPE("snapshot file", NULL, NULL, snapshot_file_members),
    RECORD("snapshot", weir_snapshot_resource, "id ion project models created_ms from_ms to_ms",
           snapshot_members),
    RECORD("candidate", weir_ion_candidate_resource,
           "ion link model model_version blob state created_ms", candidate_members),
    SHAPE("registered version", NULL, NULL, registered_members),
    RECORD("experiment", weir_experiment_resource, "name project created_ms updated_ms",
           experiment_members),
    SHAPE_OF_BODY("new experiment", "POST /api/v1/experiments", new_experiment_members),
    SHAPE_OF_BODY("changed experiment", "PATCH /api/v1/experiments/{id}",
                  changed_experiment_members),
    SHAPE_OF_BODY("new run", "POST /api/v1/runs", new_run_members),
    SHAPE_OF_BODY("changed run", "PATCH /api/v1/runs/{id}", changed_run_members),
    RECORD("run", weir_run_resource, "name project kind status created_ms", run_members),
    SHAPE("run input", NULL, NULL, run_input_members),
    SHAPE("upload part", NULL, NULL, upload_part_members),
    RECORD("upload", weir_artifact_upload_resource, "run path created_ms", upload_members),
    SHAPE("share", NULL, NULL, share_members),
    SHAPE("served version", NULL, NULL, served_version_members),
    RECORD("deployment replica", weir_deployment_replica_resource, "deployment state created_ms",
           deployed_replica_members),
    RECORD("deployment", weir_deployment_resource,
           "project model state created_ms updated_ms state_ms", served_members),
    SHAPE("deployment version figures", NULL, NULL, deployment_version_figures_members),
    SHAPE("deployment figures", NULL, "GET /api/v1/deployments/{name}/figures",
          deployment_figures_members),
    PLAIN_RECORD("model alias", weir_model_alias_resource, "model alias updated_ms"),
    RECORD("model version", weir_model_version_resource, "model created_ms", model_version_members),
    BODY("new model version", weir_model_version_resource, "POST /api/v1/models/{name}/versions",
         new_version_members),
    SHAPE("run lineage", NULL, "GET /api/v1/runs/{id}/lineage", run_lineage_members),
    SHAPE("verdict counts", NULL, NULL, count_members),
    SHAPE("decision bucket", NULL, NULL, bucket_members),
    SHAPE("latency quantiles", NULL, NULL, latency_members),
    SHAPE("run summary", NULL, "GET /api/v1/runs/summary", run_summary_members),
    SHAPE("run group", NULL, NULL, run_group_members),
    SHAPE("run groups", NULL, "GET /api/v1/runs/groups", run_groups_members),
    SHAPE("decision summary", NULL, "GET /api/v1/decisions/summary", decision_summary_members),
    SHAPE("live accuracy", NULL, NULL, accuracy_members),
    SHAPE("accuracy group", NULL, NULL, accuracy_group_members),
    SHAPE("ION health", NULL, "GET /api/v1/ions/{name}/health", ion_health_members),
    SHAPE("drift signal", NULL, NULL, signal_members),
    SHAPE("ION drift", NULL, "GET /api/v1/ions/{name}/drift", ion_drift_members),
    SHAPE("finding", NULL, NULL, finding_members),
    SHAPE("tested window", NULL, "POST /api/v1/ions/{name}/pipelines/{pipeline}/windows",
          window_members),
    SHAPE("stored feedback", NULL, "POST /api/v1/feedback", feedback_answer_members),
    SHAPE("stored statistics", NULL, "POST /api/v1/ions/{name}/statistics",
          statistics_answer_members),
    SHAPE("deletion steps", NULL, NULL, step_members),
    SHAPE("store usage", NULL, "GET /api/v1/store/usage", store_usage_members),
    SHAPE("retention limit", NULL, NULL, limit_members),
    SHAPE("retention", NULL, "GET /api/v1/retention", retention_members),
    PLAIN_RECORD("firing", weir_alert_firing_resource, "rule alert state raised_ms"),
    PLAIN_RECORD("delivery", weir_alert_delivery_resource,
                 "receiver event message state created_ms"),
    SHAPE("chain finding", NULL, NULL, chain_finding_members),
    SHAPE("chain cut", NULL, NULL, chain_cut_members),
    SHAPE("verified chain", NULL, NULL, chain_members),
    SHAPE("verified audit", NULL, "GET /api/v1/audit/verify", audit_members),
    RECORD("alert", weir_alert_resource, "key severity kind message state raised_ms last_ms",
           alert_members),
    RECORD("alert rule", weir_alert_rule_resource, "group_by created_by created_ms updated_ms",
           rule_members),
    RECORD("alert receiver", weir_alert_receiver_resource, "created_by created_ms updated_ms",
           receiver_members),
    PLAIN_RECORD("silence", weir_alert_silence_resource, "until_ms created_by created_ms"),
    PLAIN_RECORD("dataset", weir_dataset_resource, "project kind path created_ms"),
    PLAIN_RECORD("tombstone", weir_tombstone_resource, "dataset time_ms"),
    RECORD("dataset version", weir_dataset_version_resource, "dataset digest blob created_ms",
           dataset_version_members),
    PLAIN_RECORD("decision", weir_decision_resource, "ion pipeline time_ms"),
    PLAIN_RECORD("event", weir_event_resource, "topic kind message severity time_ms"),
    PLAIN_RECORD("feedback", weir_feedback_resource,
                 "ion pipeline camera decided truth decided_ms time_ms"),
    PLAIN_RECORD("statistic", weir_statistic_resource, "id ion time_ms"),
    RECORD("model baseline", weir_model_baseline_resource, "time_ms", baseline_members),
    PLAIN_RECORD("kpi", weir_kpi_resource, "ion time_ms"),
    PLAIN_RECORD("job", weir_job_resource, "project state created_by created_ms"),
    SHAPE("secret use", NULL, NULL, secret_use_members),
    RECORD("secret", weir_secret_resource, "project name created_by created_ms updated_ms",
           secret_members),
    PLAIN_RECORD("member", weir_ion_member_resource, "ion person time_ms"),
    PLAIN_RECORD("metric", weir_metric_resource, "run"),
    RECORD("model", weir_model_resource, "project created_ms", model_members),
    SHAPE_OF_BODY("changed model", "PATCH /api/v1/models/{name}", changed_model_members),
    SHAPE_OF_BODY("changed version", "PATCH /api/v1/models/{name}/versions/{version}",
                  changed_version_members),
    PLAIN_RECORD("policy decision", weir_policy_decision_resource,
                 "ion link candidate model_version policy rule verdict actor time_ms"),
    PLAIN_RECORD("project", weir_project_resource, "created_ms"),
    PLAIN_RECORD("replica", weir_ion_replica_resource, "ion pipeline replica time_ms"),
    PLAIN_RECORD("task", weir_task_resource, "job role state desired"),
    PLAIN_RECORD("armed trigger", weir_ion_trigger_resource, "pipeline kind state armed_ms"),
    PLAIN_RECORD("trigger firing", weir_trigger_firing_resource,
                 "pipeline kind training reason time_ms"),
    PLAIN_RECORD("usage", weir_retain_usage_resource, "what rule unit"),
};
const size_t api_n_shapes = WEIR_ARRAY_LEN(api_shapes);

const struct api_shape *api_shape_of_record(const struct weir_resource *record)
{
    for (size_t i = 0; i < api_n_shapes; i++) {
        const struct api_shape *shape = &api_shapes[i];
        if (record != NULL && shape->record == record && shape->route == NULL &&
            shape->body == NULL) {
            return shape;
        }
    }
    return NULL;
}

static bool is_route(const char *route, const char *method, const char *pattern)
{
    size_t len = strlen(method);
    return route != NULL && strncmp(route, method, len) == 0 && route[len] == ' ' &&
           strcmp(route + len + 1, pattern) == 0;
}

const struct api_shape *api_shape_of_route(const char *method, const char *pattern)
{
    for (size_t i = 0; i < api_n_shapes; i++) {
        if (is_route(api_shapes[i].route, method, pattern)) {
            return &api_shapes[i];
        }
    }
    return NULL;
}

const struct api_shape *api_shape_of_body(const char *method, const char *pattern)
{
    for (size_t i = 0; i < api_n_shapes; i++) {
        if (is_route(api_shapes[i].body, method, pattern)) {
            return &api_shapes[i];
        }
    }
    return NULL;
}
