/* PyTorchJob: ranks of a job of the kind pytorch, which start their processes themselves, as there. */
#include "kubeflow/kind.h"

#include <string.h>

#define PROCESSES_MAX 64
#define NODES_MAX     1024

enum { MASTER, WORKER, N_ROLES };

static const char *const roles[] = {"Master", "Worker", NULL};

struct pytorch_job {
    struct kubeflow_place replicas, elastic, processes, policy;
};

static const struct kubeflow_field fields[] = {
    KUBEFLOW_TAKEN(pytorch_job, replicas, "pytorchReplicaSpecs", OBJECT),
    KUBEFLOW_TAKEN(pytorch_job, elastic, "elasticPolicy", OBJECT),
    KUBEFLOW_TAKEN(pytorch_job, processes, "nprocPerNode", ANY),
    KUBEFLOW_TAKEN(pytorch_job, policy, "runPolicy", OBJECT),
};

struct elastic {
    struct kubeflow_place min, max, restarts, processes;
};

#define MEETS "ranks meet where the job says, by c10d"

static const struct kubeflow_field elastic_fields[] = {
    KUBEFLOW_TAKEN(elastic, min, "minReplicas", INTEGER),
    KUBEFLOW_TAKEN(elastic, max, "maxReplicas", INTEGER),
    KUBEFLOW_TAKEN(elastic, restarts, "maxRestarts", INTEGER),
    KUBEFLOW_TAKEN(elastic, processes, "nProcPerNode", ANY),
    KUBEFLOW_REMARK_UNLESS("rdzvBackend", "c10d", MEETS),
    KUBEFLOW_REMARK("rdzvPort", MEETS),
    KUBEFLOW_REMARK("rdzvHost", MEETS),
    KUBEFLOW_REMARK("rdzvId", MEETS),
    KUBEFLOW_REMARK("rdzvConf", MEETS),
    KUBEFLOW_REMARK_UNLESS("standalone", "false", MEETS),
    KUBEFLOW_REMARK("metrics", "it has as many ranks as there is room for, up to maxReplicas"),
};

/* What is read on the way. */
struct ranks {
    struct kubeflow_replicas of[N_ROLES];
    int64_t n;
    struct kubeflow_place restarts; /* what elasticPolicy says of them */
};

/* 2, "2", or "auto": one for each accelerator, or one. */
static weir_status take_processes(struct kubeflow_reading *reading, struct kubeflow_place at,
                                  struct kubeflow_draft *draft)
{
    const char *text = json_string_value(at.value);
    int64_t n = text != NULL ? strtoll(text, NULL, 10) : json_integer_value(at.value);
    bool is_number = text == NULL ? json_is_integer(at.value)
                                  : text[0] != '\0' && strlen(text) < 4 &&
                                        strspn(text, "0123456789") == strlen(text);
    if (!kubeflow_is_there(at)) {
        return WEIR_OK;
    }
    if (text != NULL &&
        (strcmp(text, "auto") == 0 || strcmp(text, "gpu") == 0 || strcmp(text, "cpu") == 0)) {
        kubeflow_remark(reading, at,
                        "a process for each accelerator of a task, or one; a number "
                        "says how many");
        return WEIR_OK;
    }
    if (!is_number || n < 1 || n > PROCESSES_MAX) {
        return kubeflow_wrong(reading, at, "auto, gpu, cpu, or a number from 1 to 64");
    }
    if (json_object_get(draft->spec, "processes_per_node") != NULL) {
        kubeflow_remark(reading, at, "spec.nprocPerNode counts");
        return WEIR_OK;
    }
    kubeflow_mark(reading, at);
    kubeflow_draft_set(draft, "processes_per_node", n);
    return WEIR_OK;
}

/* Workers are as many as there is room for; a master is one more. */
static weir_status take_elastic(struct kubeflow_reading *reading, struct kubeflow_place at,
                                struct kubeflow_draft *draft, struct ranks *ranks)
{
    struct elastic given = {0};
    int64_t n = ranks->of[WORKER].n, n_masters = ranks->of[MASTER].n, min = n, max = n;
    WEIR_TRY(kubeflow_fields(reading, at, elastic_fields, WEIR_ARRAY_LEN(elastic_fields), &given));
    WEIR_TRY(kubeflow_integer(reading, given.min, 1, NODES_MAX, &min));
    WEIR_TRY(kubeflow_integer(reading, given.max, 1, NODES_MAX, &max));
    WEIR_TRY(take_processes(reading, given.processes, draft));
    if (min > max) {
        return kubeflow_wrong(reading, kubeflow_is_there(given.min) ? given.min : at,
                              "at most maxReplicas, or the workers' replicas");
    }
    if (min != n || max != n) {
        kubeflow_remark(reading, kubeflow_member(reading, ranks->of[WORKER].at, "replicas"),
                        "there are as many as there is room for, from minReplicas to maxReplicas");
    }
    json_object_set_new(draft->spec, "nodes",
                        json_pack("{s:I,s:I}", "min", (json_int_t)(min + n_masters), "max",
                                  (json_int_t)(max + n_masters)));
    ranks->restarts = given.restarts;
    return WEIR_OK;
}

/* All ranks run the same, and are started again alike. */
static weir_status check_alike(struct kubeflow_reading *reading, const struct ranks *ranks)
{
    const struct kubeflow_replicas *master = &ranks->of[MASTER], *worker = &ranks->of[WORKER];
    if (master->n > 1) {
        return kubeflow_wrong(reading, kubeflow_member(reading, master->at, "replicas"),
                              "1: there is one master");
    }
    if (ranks->n == 0) {
        return kubeflow_wrong(reading,
                              (struct kubeflow_place){.path = "$.spec.pytorchReplicaSpecs"},
                              "Master, Worker or both, with replicas");
    }
    WEIR_TRY(kubeflow_pod_check_command(reading, master->n > 0 ? &master->pod : &worker->pod));
    if (master->n == 0 || worker->n == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(kubeflow_pods_check(reading, &master->pod, "Master", &worker->pod, "a worker",
                                 KUBEFLOW_ALIKE));
    return kubeflow_policies_check(reading, master, worker);
}

static weir_status read_ranks(struct kubeflow_reading *reading, const struct pytorch_job *given,
                              struct kubeflow_draft *draft, struct ranks *ranks)
{
    WEIR_TRY(kubeflow_roles_read(reading, draft, given->replicas, roles, ranks->of));
    ranks->n = ranks->of[MASTER].n + ranks->of[WORKER].n;
    WEIR_TRY(check_alike(reading, ranks));
    const struct kubeflow_replicas *first = &ranks->of[ranks->of[MASTER].n > 0 ? MASTER : WORKER];
    kubeflow_draft_pod(draft, &first->pod);
    kubeflow_draft_set(draft, "nodes", ranks->n);
    json_object_set_new(draft->spec, "launcher", json_string("own"));
    return kubeflow_is_there(given->elastic) ? take_elastic(reading, given->elastic, draft, ranks)
                                             : WEIR_OK;
}

static weir_status read(struct kubeflow_reading *reading, struct kubeflow_place at,
                        struct kubeflow_draft *draft)
{
    struct pytorch_job given = {0};
    struct ranks ranks = {0};
    struct kubeflow_restarts restarts = {.fallback = "OnFailure"};
    WEIR_TRY(kubeflow_fields(reading, at, fields, WEIR_ARRAY_LEN(fields), &given));
    given.replicas.path = "$.spec.pytorchReplicaSpecs";
    WEIR_TRY(kubeflow_draft_run_policy(reading, draft, given.policy, &restarts.limit));
    WEIR_TRY(take_processes(reading, given.processes, draft));
    WEIR_TRY(read_ranks(reading, &given, draft, &ranks));
    restarts.policy = ranks.of[ranks.of[MASTER].n > 0 ? MASTER : WORKER].restart_policy;
    if (kubeflow_is_there(restarts.limit) && kubeflow_is_there(ranks.restarts)) {
        kubeflow_remark(reading, ranks.restarts, "runPolicy.backoffLimit counts");
    } else if (kubeflow_is_there(ranks.restarts)) {
        restarts.limit = ranks.restarts;
    }
    return kubeflow_draft_restarts(reading, draft, &restarts);
}

const struct kubeflow_kind kubeflow_pytorch_job = {
    .versions = "kubeflow.org/v1",
    .name = "PyTorchJob",
    .job = "pytorch",
    .runtime = "MASTER_ADDR MASTER_PORT RANK WORLD_SIZE PET_NNODES PET_NPROC_PER_NODE "
               "PET_NODE_RANK PET_MASTER_ADDR PET_MASTER_PORT PET_RDZV_BACKEND PET_RDZV_ENDPOINT "
               "PET_RDZV_ID PET_RDZV_CONF PET_MAX_RESTARTS",
    .read = read,
};
