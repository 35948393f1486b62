/* Job of Kubernetes: one task, or an array of independent ones, of the kind command. */
#include "kubeflow/kind.h"

#include <string.h>

#define TASKS_MAX 1024

struct batch_job {
    struct kubeflow_place template, completions, parallelism, mode, per_index, failures;
    struct kubeflow_policy policy;
};

static const struct kubeflow_field fields[] = {
    KUBEFLOW_TAKEN(batch_job, template, "template", OBJECT),
    KUBEFLOW_TAKEN(batch_job, completions, "completions", INTEGER),
    KUBEFLOW_TAKEN(batch_job, parallelism, "parallelism", INTEGER),
    KUBEFLOW_WORD(batch_job, mode, "completionMode", "Indexed", "NonIndexed"),
    KUBEFLOW_TAKEN(batch_job, per_index, "backoffLimitPerIndex", INTEGER),
    KUBEFLOW_TAKEN(batch_job, failures, "podFailurePolicy", OBJECT),
    KUBEFLOW_POLICY_FIELDS(batch_job),
    KUBEFLOW_REMARK("maxFailedIndexes", "the other tasks go on, however many fail"),
    KUBEFLOW_REFUSED("successPolicy", "a job has succeeded when all its tasks have"),
    KUBEFLOW_REMARK("podReplacementPolicy", "a task is started again when it has ended"),
    KUBEFLOW_REMARK("selector", "a job knows its tasks"),
    KUBEFLOW_REMARK_UNLESS("manualSelector", "false", "a job knows its tasks"),
};

/* ---- failures ------------------------------------------------------------------------------------- */

struct failures {
    struct kubeflow_place rules;
};

static const struct kubeflow_field failures_fields[] = {
    KUBEFLOW_TAKEN(failures, rules, "rules", LIST),
};

struct rule {
    struct kubeflow_place action, exits, conditions;
};

static const struct kubeflow_field rule_fields[] = {
    KUBEFLOW_WORD(rule, action, "action", "FailJob", "FailIndex", "Ignore", "Count"),
    KUBEFLOW_TAKEN(rule, exits, "onExitCodes", OBJECT),
    KUBEFLOW_TAKEN(rule, conditions, "onPodConditions", LIST),
};

/* A task that was stopped for others, or lost its node, has not failed here either. */
static weir_status read_rule(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    struct rule rule = {0};
    WEIR_TRY(kubeflow_fields(reading, at, rule_fields, WEIR_ARRAY_LEN(rule_fields), &rule));
    bool is_ignored = kubeflow_is_word(reading, rule.action, "Ignore");
    if (is_ignored && kubeflow_is_there(rule.conditions) && !kubeflow_is_there(rule.exits)) {
        kubeflow_remark(reading, at,
                        "a task that was stopped for others, or whose node was lost, "
                        "counts as no failure; others do");
    } else {
        kubeflow_remark(reading, at,
                        "exit statuses are not looked at: an error is tried again as "
                        "backoffLimit says; a program that cannot be run, 126 or 127, "
                        "is not");
    }
    return WEIR_OK;
}

static weir_status read_failures(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    struct failures given = {0};
    WEIR_TRY(
        kubeflow_fields(reading, at, failures_fields, WEIR_ARRAY_LEN(failures_fields), &given));
    for (size_t i = 0; i < json_array_size(given.rules.value); i++) {
        WEIR_TRY(read_rule(reading, kubeflow_item(reading, given.rules, i)));
    }
    if (json_array_size(given.rules.value) == 0) {
        kubeflow_mark(reading, given.rules);
    }
    return WEIR_OK;
}

/* ---- tasks ---------------------------------------------------------------------------------------- */

/* Without completions a Job of Kubernetes is a queue of work, which its pods share among themselves. */
static weir_status take_tasks(struct kubeflow_reading *reading, const struct batch_job *given,
                              struct kubeflow_draft *draft, bool *out_is_array)
{
    bool is_indexed = kubeflow_is_word(reading, given->mode, "Indexed");
    bool has_completions = kubeflow_is_there(given->completions);
    int64_t n = 1, parallel = 1;
    if (is_indexed && !has_completions) {
        return kubeflow_wrong(reading, given->mode, "completions beside Indexed");
    }
    WEIR_TRY(kubeflow_integer(reading, given->completions, 1, TASKS_MAX, &n));
    WEIR_TRY(kubeflow_integer(reading, given->parallelism, 1, TASKS_MAX, &parallel));
    if (!has_completions && parallel > 1) {
        kubeflow_remark(reading, given->parallelism,
                        "so many independent tasks, and all of them "
                        "must end well");
        n = parallel;
    } else if (parallel > n) {
        kubeflow_remark(reading, given->parallelism, "there are no more than completions");
    }
    *out_is_array = is_indexed || n > 1;
    if (*out_is_array) {
        kubeflow_draft_set(draft, "array", n);
    }
    if (*out_is_array && parallel < n) {
        kubeflow_draft_set(draft, "parallel", parallel);
    }
    return WEIR_OK;
}

static weir_status take_restarts(struct kubeflow_reading *reading, const struct batch_job *given,
                                 const struct kubeflow_pod *pod, bool is_array,
                                 struct kubeflow_draft *draft)
{
    bool is_each = kubeflow_is_there(given->per_index);
    const struct kubeflow_restarts restarts = {
        .fallback = "OnFailure", .limit = is_each ? given->per_index : given->policy.backoff};
    const char *policy = "";
    WEIR_TRY(kubeflow_text(reading, pod->restart_policy, &policy));
    if (strcmp(policy, "Always") == 0 || policy[0] == '\0') {
        return kubeflow_wrong(reading,
                              policy[0] != '\0' ? pod->restart_policy
                                                : kubeflow_member(reading, pod->at, "spec"),
                              "a restartPolicy of Never or OnFailure");
    }
    if (is_each && kubeflow_is_there(given->policy.backoff)) {
        kubeflow_remark(reading, given->policy.backoff, "backoffLimitPerIndex counts");
    } else if (is_array && kubeflow_is_there(given->policy.backoff)) {
        kubeflow_remark(reading, given->policy.backoff,
                        "each task is tried again so often, and the others go on");
    }
    return kubeflow_draft_restarts(reading, draft, &restarts);
}

static weir_status read(struct kubeflow_reading *reading, struct kubeflow_place at,
                        struct kubeflow_draft *draft)
{
    struct batch_job given = {0};
    struct kubeflow_pod pod;
    bool is_array = false;
    WEIR_TRY(kubeflow_fields(reading, at, fields, WEIR_ARRAY_LEN(fields), &given));
    if (!kubeflow_is_there(given.template)) {
        return kubeflow_wrong(reading, kubeflow_member(reading, at, "template"), "a template");
    }
    WEIR_TRY(kubeflow_pod_read(reading, draft, given.template, &pod));
    WEIR_TRY(kubeflow_pod_check_command(reading, &pod));
    kubeflow_draft_pod(draft, &pod);
    WEIR_TRY(take_tasks(reading, &given, draft, &is_array));
    WEIR_TRY(read_failures(reading, given.failures));
    WEIR_TRY(kubeflow_draft_policy(reading, draft, &given.policy));
    return take_restarts(reading, &given, &pod, is_array, draft);
}

const struct kubeflow_kind kubeflow_batch_job = {
    .versions = "batch/v1",
    .name = "Job",
    .job = "command",
    .runtime = "JOB_COMPLETION_INDEX",
    .read = read,
};
