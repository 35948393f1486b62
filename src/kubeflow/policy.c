/* How a job begins, ends and is started again, and its replicas: what Kubeflow's documents have alike. */
#include "kubeflow/draft.h"

#include "base/names.h"

#include <string.h>

#define DEADLINE_MAX_S  31622400 /* 366 days */
#define RESTARTS_UNSAID 6        /* a Job's backoffLimit, where none is said */
#define REPLICAS_MAX    1024
#define ROLES_MAX       8

/* ---- restarts ------------------------------------------------------------------------------------- */

/* Policies that are not quite what they are there. */
static const struct restart_word {
    const char *word, *say;
} restart_words[] = {
    {"Always", "what ends well is not started again; an error is"},
    {"ExitCode", "any error is tried again; a program that cannot be run, 126 or 127, is not"},
};

weir_status kubeflow_draft_restarts(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                    const struct kubeflow_restarts *restarts)
{
    const char *policy = restarts->fallback;
    int64_t limit = RESTARTS_UNSAID;
    WEIR_TRY(kubeflow_text(reading, restarts->policy, &policy));
    WEIR_TRY(kubeflow_integer(reading, restarts->limit, 0, KUBEFLOW_RESTARTS_MAX, &limit));
    bool is_never = strcmp(policy, "Never") == 0, has_limit = kubeflow_is_there(restarts->limit);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(restart_words); i++) {
        if (strcmp(restart_words[i].word, policy) == 0) {
            kubeflow_remark(reading, restarts->policy, "%s", restart_words[i].say);
        }
    }
    if (is_never && has_limit) {
        kubeflow_remark(reading, restarts->limit, "has no effect where restartPolicy is Never%s",
                        kubeflow_is_there(restarts->policy) ? "" : ", as it is where none is said");
    } else if (!is_never && !has_limit && kubeflow_is_there(restarts->policy)) {
        kubeflow_remark(reading, restarts->policy, "without a backoffLimit %d times at most",
                        RESTARTS_UNSAID);
    }
    draft->max_restarts = is_never ? 0 : limit;
    return WEIR_OK;
}

/* ---- the run policy ------------------------------------------------------------------------------- */

weir_status kubeflow_draft_policy(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                  const struct kubeflow_policy *policy)
{
    int64_t seconds = 0;
    WEIR_TRY(kubeflow_integer(reading, policy->deadline, 1, DEADLINE_MAX_S, &seconds));
    if (seconds > 0) {
        kubeflow_draft_set(draft, "time_limit", seconds);
    }
    WEIR_TRY(kubeflow_boolean(reading, policy->suspend, &draft->is_held));
    if (draft->is_held && draft->is_kueued) {
        kubeflow_remark(reading, policy->suspend,
                        "its queue lets it begin when there is room, as Kueue does");
        draft->is_held = false;
    }
    return WEIR_OK;
}

struct run_policy {
    struct kubeflow_policy policy;
    struct kubeflow_place clean, scheduling;
};

static const struct kubeflow_field run_policy_fields[] = {
    KUBEFLOW_POLICY_FIELDS(run_policy),
    KUBEFLOW_WORD(run_policy, clean, "cleanPodPolicy", "All", "Running", "None"),
    KUBEFLOW_TAKEN(run_policy, scheduling, "schedulingPolicy", OBJECT),
};

struct scheduling {
    struct kubeflow_place queue, priority_class;
};

static const struct kubeflow_field scheduling_fields[] = {
    KUBEFLOW_TAKEN(scheduling, queue, "queue", TEXT),
    KUBEFLOW_TAKEN(scheduling, priority_class, "priorityClass", TEXT),
    KUBEFLOW_REMARK("minAvailable", "all tasks of a job start together, or none; those of an "
                                    "elastic one as its elasticPolicy says"),
    KUBEFLOW_REMARK("minResources", "a job takes what its tasks ask for"),
    KUBEFLOW_REMARK("scheduleTimeoutSeconds", "it waits until there is room: weir explain job "
                                              "says for what"),
};

void kubeflow_draft_clean(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    if (kubeflow_is_word(reading, at, "None")) {
        kubeflow_remark(reading, at, "all tasks of a job end with it; their logs stay");
    }
}

weir_status kubeflow_draft_run_policy(struct kubeflow_reading *reading,
                                      struct kubeflow_draft *draft, struct kubeflow_place at,
                                      struct kubeflow_place *out_backoff)
{
    struct run_policy given = {0};
    struct scheduling scheduling = {0};
    WEIR_TRY(
        kubeflow_fields(reading, at, run_policy_fields, WEIR_ARRAY_LEN(run_policy_fields), &given));
    WEIR_TRY(kubeflow_fields(reading, given.scheduling, scheduling_fields,
                             WEIR_ARRAY_LEN(scheduling_fields), &scheduling));
    kubeflow_draft_clean(reading, given.clean);
    WEIR_TRY(kubeflow_draft_queue(reading, draft, scheduling.queue));
    WEIR_TRY(kubeflow_draft_priority(reading, draft, scheduling.priority_class));
    *out_backoff = given.policy.backoff;
    return kubeflow_draft_policy(reading, draft, &given.policy);
}

/* ---- replicas ------------------------------------------------------------------------------------- */

struct replicas {
    struct kubeflow_place n, template, restart_policy;
};

static const struct kubeflow_field replicas_fields[] = {
    KUBEFLOW_TAKEN(replicas, n, "replicas", INTEGER),
    KUBEFLOW_TAKEN(replicas, template, "template", OBJECT),
    KUBEFLOW_WORD(replicas, restart_policy, "restartPolicy", "Always", "OnFailure", "Never",
                  "ExitCode"),
};

weir_status kubeflow_replicas_read(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                   struct kubeflow_place at, struct kubeflow_replicas *out)
{
    struct replicas given = {0};
    *out = (struct kubeflow_replicas){.at = at};
    if (!kubeflow_is_there(at)) {
        return WEIR_OK;
    }
    out->n = 1;
    WEIR_TRY(
        kubeflow_fields(reading, at, replicas_fields, WEIR_ARRAY_LEN(replicas_fields), &given));
    WEIR_TRY(kubeflow_integer(reading, given.n, 0, REPLICAS_MAX, &out->n));
    if (out->n == 0) {
        kubeflow_remark(reading, at, "has no replicas");
        out->at = (struct kubeflow_place){0};
        return WEIR_OK;
    }
    out->restart_policy = given.restart_policy;
    given.template.path = given.template.path != NULL ? given.template.path : at.path;
    WEIR_TRY(kubeflow_pod_read(reading, draft, given.template, &out->pod));
    if (kubeflow_is_there(out->pod.restart_policy)) {
        kubeflow_remark(reading, out->pod.restart_policy, "restartPolicy of the replicas counts");
    }
    return WEIR_OK;
}

weir_status kubeflow_roles_read(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                                struct kubeflow_place at, const char *const *roles,
                                struct kubeflow_replicas *out)
{
    struct kubeflow_field fields[ROLES_MAX];
    struct kubeflow_place places[ROLES_MAX] = {{0}};
    size_t n = 0;
    for (; roles[n] != NULL && n < ROLES_MAX; n++) {
        fields[n] = (struct kubeflow_field){
            .name = roles[n], .type = KUBEFLOW_OBJECT, .offset = n * sizeof(struct kubeflow_place)};
    }
    if (!kubeflow_is_there(at)) {
        return kubeflow_wrong(reading, at, "replicas");
    }
    WEIR_TRY(kubeflow_fields(reading, at, fields, n, places));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(kubeflow_replicas_read(reading, draft, places[i], &out[i]));
    }
    return WEIR_OK;
}

weir_status kubeflow_policies_check(struct kubeflow_reading *reading,
                                    const struct kubeflow_replicas *first,
                                    const struct kubeflow_replicas *other)
{
    const char *one = json_string_value(first->restart_policy.value);
    const char *another = json_string_value(other->restart_policy.value);
    kubeflow_mark(reading, other->restart_policy);
    if (one == NULL && another == NULL) {
        return WEIR_OK;
    }
    return one != NULL && another != NULL && strcmp(one, another) == 0
               ? WEIR_OK
               : kubeflow_refuse(reading, kubeflow_member(reading, other->at, "restartPolicy"),
                                 "differs from that at %s: all tasks of a job are started again "
                                 "together",
                                 first->at.path);
}

void kubeflow_draft_pod(struct kubeflow_draft *draft, const struct kubeflow_pod *pod)
{
    (void)json_object_update(draft->spec, pod->spec);
}
