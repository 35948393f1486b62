/* MPIJob: hosts of a job of the kind mpi. The launcher's program runs once, on the first of them, and calls mpirun or
 * mpiexec itself, which start their daemons on the others through Weir. */
#include "kubeflow/kind.h"

#include <string.h>

#define SLOTS_MAX 1024

enum { LAUNCHER, WORKER, N_ROLES };

static const char *const roles[] = {"Launcher", "Worker", NULL};

struct mpi_job {
    struct kubeflow_place replicas, slots, mpi, is_worker, clean, policy;
};

static const struct kubeflow_field fields[] = {
    KUBEFLOW_TAKEN(mpi_job, replicas, "mpiReplicaSpecs", OBJECT),
    KUBEFLOW_TAKEN(mpi_job, slots, "slotsPerWorker", INTEGER),
    KUBEFLOW_WORD(mpi_job, mpi, "mpiImplementation", "OpenMPI", "MPICH", "Intel"),
    KUBEFLOW_TAKEN(mpi_job, is_worker, "runLauncherAsWorker", BOOLEAN),
    KUBEFLOW_WORD(mpi_job, clean, "cleanPodPolicy", "All", "Running", "None"),
    KUBEFLOW_TAKEN(mpi_job, policy, "runPolicy", OBJECT),
    KUBEFLOW_REMARK("sshAuthMountPath", "hosts reach each other without ssh"),
    KUBEFLOW_REMARK("launcherCreationPolicy", "all tasks of a job start together"),
    KUBEFLOW_REMARK("mainContainer", "a task is one program"),
};

/* ---- what is the launcher's, and what the workers' ------------------------------------------------ */

/* Workers wait for daemons; sshd and sleep do nothing else. */
static weir_status check_worker_command(struct kubeflow_reading *reading,
                                        const struct kubeflow_pod *worker)
{
    static const char *const idle[] = {"sshd", "sleep", "tail"};
    const json_t *argv = json_object_get(worker->spec, "argv");
    struct kubeflow_place at = kubeflow_member(reading, worker->container, "command");
    struct kubeflow_place dir = kubeflow_member(reading, worker->container, "workingDir");
    const char *text = argv != NULL ? weir_json_text(argv, reading->arena) : "";
    kubeflow_remark_path(reading, dir, "programs begin in the folder of the launcher");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(idle) && argv != NULL; i++) {
        if (strstr(text, idle[i]) != NULL) {
            kubeflow_remark(reading, at, "is not run: hosts wait for the launcher without ssh");
            kubeflow_remark_path(reading, kubeflow_member(reading, worker->container, "args"),
                                 "is not run");
            return WEIR_OK;
        }
    }
    return argv == NULL ? WEIR_OK
                        : kubeflow_refuse(reading, at,
                                          "workers have no program of their own: the launcher's "
                                          "mpirun starts all");
}

/* Programs on all hosts have the variables of both. */
static weir_status join_variables(struct kubeflow_reading *reading,
                                  const struct kubeflow_pod *launcher,
                                  const struct kubeflow_pod *worker, json_t *spec)
{
    json_t *env = kubeflow_keep(reading, json_copy(json_object_get(worker->spec, "env")));
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(launcher->spec, "env"), name, value)
    {
        const json_t *other = json_object_get(env, name);
        if (other != NULL && !json_equal(other, value)) {
            return kubeflow_refuse(reading, kubeflow_member(reading, worker->container, "env"),
                                   "%.60s has another value for the launcher: programs on all "
                                   "hosts have the same variables",
                                   name);
        }
        json_object_set(env, name, value);
    }
    json_object_set(spec, "env", env);
    return WEIR_OK;
}

static weir_status join_secrets(struct kubeflow_reading *reading,
                                const struct kubeflow_pod *launcher,
                                const struct kubeflow_pod *worker, json_t *spec)
{
    const json_t *own = json_object_get(launcher->spec, "secrets"),
                 *others = json_object_get(worker->spec, "secrets");
    if (own != NULL) {
        json_object_set(spec, "secrets", (json_t *)own);
    }
    return others == NULL || (own != NULL && json_equal(own, others))
               ? WEIR_OK
               : kubeflow_refuse(reading, kubeflow_member(reading, worker->container, "env"),
                                 "programs on all hosts have the same secrets: name them at the "
                                 "launcher, too");
}

/* The launcher is on the first host: what it would have for itself is the workers'. */
static void remark_launcher(struct kubeflow_reading *reading, const struct kubeflow_pod *launcher)
{
    static const char *const own[] = {"nodeSelector", "tolerations",
                                      "terminationGracePeriodSeconds"};
    static const char say[] = "the launcher runs on the first worker, which has the workers'";
    struct kubeflow_place spec = kubeflow_member(reading, launcher->at, "spec");
    struct kubeflow_place resources = kubeflow_member(reading, launcher->container, "resources");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(own); i++) {
        struct kubeflow_place at = kubeflow_member(reading, spec, own[i]);
        if (kubeflow_is_there(at)) {
            kubeflow_remark(reading, at, "%s", say);
        }
    }
    if (kubeflow_is_there(resources)) {
        kubeflow_remark(reading, resources, "%s", say);
    }
}

static weir_status join(struct kubeflow_reading *reading, const struct kubeflow_replicas *of,
                        struct kubeflow_draft *draft)
{
    const struct kubeflow_pod *launcher = &of[LAUNCHER].pod, *worker = &of[WORKER].pod;
    WEIR_TRY(check_worker_command(reading, worker));
    kubeflow_draft_pod(draft, worker);
    (void)json_object_del(draft->spec, "secrets");
    json_object_set(draft->spec, "argv", json_object_get(launcher->spec, "argv"));
    WEIR_TRY(join_variables(reading, launcher, worker, draft->spec));
    WEIR_TRY(join_secrets(reading, launcher, worker, draft->spec));
    remark_launcher(reading, launcher);
    if (kubeflow_is_there(of[WORKER].restart_policy)) {
        kubeflow_remark(reading, of[WORKER].restart_policy, "that of the launcher counts");
    }
    return WEIR_OK;
}

/* ---- the job -------------------------------------------------------------------------------------- */

static weir_status check_image(struct kubeflow_reading *reading, const struct kubeflow_replicas *of)
{
    for (size_t i = 0; i < N_ROLES; i++) {
        if (of[i].n > 0 && json_object_get(of[i].pod.spec, "image") != NULL) {
            return kubeflow_refuse(reading, kubeflow_member(reading, of[i].pod.container, "image"),
                                   "MPI's daemons are started outside of images: weir apply "
                                   "--image none takes the programs of the nodes");
        }
    }
    return WEIR_OK;
}

static weir_status take_implementation(struct kubeflow_reading *reading,
                                       const struct mpi_job *given)
{
    if (kubeflow_is_word(reading, given->mpi, "Intel")) {
        return kubeflow_refuse(reading, given->mpi,
                               "the launchers that are told of the hosts are those of Open MPI "
                               "and MPICH");
    }
    if (kubeflow_is_word(reading, given->mpi, "MPICH")) {
        reading->file_variable = "HYDRA_HOST_FILE";
    }
    return WEIR_OK;
}

static weir_status take_hosts(struct kubeflow_reading *reading, const struct mpi_job *given,
                              const struct kubeflow_replicas *of, struct kubeflow_draft *draft)
{
    int64_t slots = 1;
    bool is_worker = of[WORKER].n == 0;
    WEIR_TRY(kubeflow_integer(reading, given->slots, 1, SLOTS_MAX, &slots));
    WEIR_TRY(kubeflow_boolean(reading, given->is_worker, &is_worker));
    if (of[WORKER].n == 0) {
        kubeflow_remark_path(reading, given->is_worker, "there is no other");
    }
    kubeflow_draft_set(draft, "nodes", WEIR_MAX(of[WORKER].n + is_worker, (int64_t)1));
    kubeflow_draft_set(draft, "processes_per_node", slots);
    json_object_set_new(draft->spec, "mpi", json_string("none"));
    return WEIR_OK;
}

static weir_status read_roles(struct kubeflow_reading *reading, struct kubeflow_place at,
                              struct kubeflow_replicas *of, struct kubeflow_draft *draft)
{
    WEIR_TRY(kubeflow_roles_read(reading, draft, at, roles, of));
    if (of[LAUNCHER].n != 1) {
        return kubeflow_wrong(reading, kubeflow_member(reading, at, "Launcher"),
                              "one launcher, whose program calls mpirun");
    }
    WEIR_TRY(check_image(reading, of));
    WEIR_TRY(kubeflow_pod_check_command(reading, &of[LAUNCHER].pod));
    if (of[WORKER].n > 0) {
        return join(reading, of, draft);
    }
    kubeflow_draft_pod(draft, &of[LAUNCHER].pod);
    return WEIR_OK;
}

static weir_status read(struct kubeflow_reading *reading, struct kubeflow_place at,
                        struct kubeflow_draft *draft)
{
    struct mpi_job given = {0};
    struct kubeflow_replicas of[N_ROLES] = {0};
    struct kubeflow_restarts restarts = {.fallback = "Never"};
    WEIR_TRY(kubeflow_fields(reading, at, fields, WEIR_ARRAY_LEN(fields), &given));
    given.replicas.path = "$.spec.mpiReplicaSpecs";
    kubeflow_draft_clean(reading, given.clean);
    WEIR_TRY(take_implementation(reading, &given));
    WEIR_TRY(kubeflow_draft_run_policy(reading, draft, given.policy, &restarts.limit));
    WEIR_TRY(read_roles(reading, given.replicas, of, draft));
    WEIR_TRY(take_hosts(reading, &given, of, draft));
    restarts.policy = of[LAUNCHER].restart_policy;
    return kubeflow_draft_restarts(reading, draft, &restarts);
}

const struct kubeflow_kind kubeflow_mpi_job = {
    .versions = "kubeflow.org/v1 kubeflow.org/v2beta1",
    .name = "MPIJob",
    .job = "mpi",
    .runtime = "OMPI_MCA_orte_default_hostfile HYDRA_HOST_FILE",
    .file = "/etc/mpi/hostfile",
    .file_variable = "OMPI_MCA_orte_default_hostfile",
    .read = read,
};
