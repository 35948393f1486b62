/* TFJob: tasks of a job of the kind tensorflow, which TF_CONFIG tells their type and number. */
#include "kubeflow/kind.h"

#include <string.h>

enum { CHIEF, MASTER, WORKER, SERVER, EVALUATOR, N_ROLES };

static const char *const roles[] = {"Chief", "Master", "Worker", "PS", "Evaluator", NULL};

struct tf_job {
    struct kubeflow_place replicas, success, policy;
};

static const struct kubeflow_field fields[] = {
    KUBEFLOW_TAKEN(tf_job, replicas, "tfReplicaSpecs", OBJECT),
    KUBEFLOW_WORD(tf_job, success, "successPolicy", "", "AllWorkers"),
    KUBEFLOW_TAKEN(tf_job, policy, "runPolicy", OBJECT),
    KUBEFLOW_REMARK_UNLESS("enableDynamicWorker", "false",
                           "a job has its workers from its begin on"),
};

/* Roles of which there is one task. */
static weir_status check_alone(struct kubeflow_reading *reading, const struct kubeflow_replicas *of)
{
    static const int alone[] = {CHIEF, MASTER, EVALUATOR};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(alone); i++) {
        if (of[alone[i]].n > 1) {
            return kubeflow_wrong(reading, kubeflow_member(reading, of[alone[i]].at, "replicas"),
                                  "1: there is one such task");
        }
    }
    return of[CHIEF].n == 0 || of[MASTER].n == 0
               ? WEIR_OK
               : kubeflow_refuse(reading, of[MASTER].at,
                                 "is the task chief, as Chief is: leave one "
                                 "of them out");
}

/* The role that says which program all have. */
static weir_status find_first(struct kubeflow_reading *reading, struct kubeflow_place at,
                              const struct kubeflow_replicas *of, int *out)
{
    for (int i = CHIEF; i <= WORKER; i++) {
        if (of[i].n > 0) {
            *out = i;
            return WEIR_OK;
        }
    }
    return kubeflow_wrong(reading, at, "a Chief or a Worker, with replicas");
}

static weir_status check_alike(struct kubeflow_reading *reading, const struct kubeflow_replicas *of,
                               int first)
{
    WEIR_TRY(kubeflow_pod_check_command(reading, &of[first].pod));
    for (int i = first + 1; i < N_ROLES; i++) {
        if (of[i].n == 0) {
            continue;
        }
        const char *role = weir_arena_printf(reading->arena, "of the type %s", roles[i]);
        WEIR_TRY(kubeflow_pods_check(reading, &of[first].pod, roles[first], &of[i].pod, role,
                                     i == SERVER ? KUBEFLOW_UNLIKE_RESOURCES : KUBEFLOW_ALIKE));
        WEIR_TRY(kubeflow_policies_check(reading, &of[first], &of[i]));
    }
    return WEIR_OK;
}

/* Where the tasks are not quite those of the document. */
static weir_status remark_roles(struct kubeflow_reading *reading,
                                const struct kubeflow_replicas *of)
{
    bool has_chief = of[CHIEF].n + of[MASTER].n > 0;
    struct kubeflow_place resources =
        kubeflow_member(reading, of[SERVER].pod.container, "resources");
    if (of[MASTER].n > 0) {
        kubeflow_remark_path(reading, of[MASTER].at, "is the task chief of TF_CONFIG");
    }
    if (of[SERVER].n > 0 && kubeflow_is_there(resources)) {
        kubeflow_remark(reading, resources, "a parameter server gets no resources of its own");
    }
    if (of[SERVER].n > 0 && !has_chief) {
        kubeflow_remark_path(reading, of[SERVER].at,
                             "a task chief is there beside the workers, "
                             "which coordinates them");
    }
    if (of[WORKER].n == 0 && of[SERVER].n + of[EVALUATOR].n > 0) {
        return kubeflow_refuse(reading, of[SERVER].n > 0 ? of[SERVER].at : of[EVALUATOR].at,
                               "needs a Worker beside it");
    }
    if (of[WORKER].n == 0) {
        kubeflow_remark_path(reading, of[CHIEF].n > 0 ? of[CHIEF].at : of[MASTER].at,
                             "is the task worker of TF_CONFIG, as there is no other");
    }
    return WEIR_OK;
}

static void take_roles(const struct kubeflow_replicas *of, struct kubeflow_draft *draft)
{
    bool has_chief = of[CHIEF].n + of[MASTER].n > 0;
    kubeflow_draft_set(draft, "workers", WEIR_MAX(of[WORKER].n, (int64_t)1));
    if (of[SERVER].n > 0) {
        kubeflow_draft_set(draft, "parameter_servers", of[SERVER].n);
    }
    if (has_chief && of[WORKER].n > 0) {
        json_object_set_new(draft->spec, "chief", json_true());
    }
    if (of[EVALUATOR].n > 0) {
        json_object_set_new(draft->spec, "evaluator", json_true());
    }
}

/* A job ends with its chief where it has servers, else with all workers. */
static void remark_success(struct kubeflow_reading *reading, struct kubeflow_place at,
                           bool has_servers)
{
    bool is_all = kubeflow_is_word(reading, at, "AllWorkers");
    if (kubeflow_is_there(at) && is_all == has_servers) {
        kubeflow_remark(reading, at,
                        has_servers ? "with parameter servers it ends with its chief"
                                    : "all workers must end well");
    }
}

static weir_status read(struct kubeflow_reading *reading, struct kubeflow_place at,
                        struct kubeflow_draft *draft)
{
    struct tf_job given = {0};
    struct kubeflow_replicas of[N_ROLES] = {0};
    struct kubeflow_restarts restarts = {.fallback = "Never"};
    int first = 0;
    WEIR_TRY(kubeflow_fields(reading, at, fields, WEIR_ARRAY_LEN(fields), &given));
    given.replicas.path = "$.spec.tfReplicaSpecs";
    WEIR_TRY(kubeflow_draft_run_policy(reading, draft, given.policy, &restarts.limit));
    WEIR_TRY(kubeflow_roles_read(reading, draft, given.replicas, roles, of));
    WEIR_TRY(check_alone(reading, of));
    WEIR_TRY(find_first(reading, given.replicas, of, &first));
    WEIR_TRY(check_alike(reading, of, first));
    WEIR_TRY(remark_roles(reading, of));
    kubeflow_draft_pod(draft, &of[first].pod);
    take_roles(of, draft);
    remark_success(reading, given.success, of[SERVER].n > 0);
    restarts.policy = of[first].restart_policy;
    return kubeflow_draft_restarts(reading, draft, &restarts);
}

const struct kubeflow_kind kubeflow_tf_job = {
    .versions = "kubeflow.org/v1",
    .name = "TFJob",
    .job = "tensorflow",
    .runtime = "TF_CONFIG",
    .read = read,
};
