/* Documents of Kubeflow and Kubernetes as jobs: what they become, what is remarked on, and what is refused where. */
#include "kubeflow/kubeflow.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "framework/framework.h"
#include "kubeflow/quantity.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;
static struct weir_kubeflow job;
static struct weir_kubeflow_given given;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
    given = (struct weir_kubeflow_given){0};
    job = (struct weir_kubeflow){0};
}

static void tear_down(void)
{
    weir_kubeflow_fini(&job);
    weir_arena_fini(&arena);
}

/* The first document; the others are ConfigMaps that it may name. */
static weir_status read_text(const char *text)
{
    json_t *documents;
    err.message[0] = '\0';
    weir_kubeflow_fini(&job);
    ck_assert_msg(weir_yaml_parse(text, strlen(text), "test", true, &documents, &err) == WEIR_OK,
                  "%s\n%s", err.message, text);
    given.config_maps = documents;
    weir_status status =
        weir_kubeflow_read(json_array_get(documents, 0), &given, &arena, &job, &err);
    json_decref(documents);
    return status;
}

static json_t *spec_of(const char *text)
{
    ck_assert_msg(read_text(text) == WEIR_OK, "%s\n%s", err.message, text);
    json_t *spec = json_object_get(job.body, "spec");
    const char *kind = json_string_value(json_object_get(job.body, "kind"));
    struct weir_error wrong;
    ck_assert_msg(weir_framework_check(kind, spec, &arena, &wrong) == WEIR_OK, "%s\n%s",
                  wrong.message, text);
    return spec;
}

/* Of the specification, or of the body; as JSON. */
static const char *said(const char *member)
{
    const json_t *value = json_object_get(json_object_get(job.body, "spec"), member);
    value = value != NULL ? value : json_object_get(job.body, member);
    return value != NULL ? weir_json_text(value, &arena) : "-";
}

static const char *remark_at(const char *path)
{
    for (size_t i = 0; i < job.n_remarks; i++) {
        if (strcmp(job.remarks[i].path, path) == 0) {
            return job.remarks[i].say;
        }
    }
    return NULL;
}

/* A Job with these lines in its spec, its pod and its container. */
static char *job_text(const char *spec, const char *pod, const char *container)
{
    return weir_arena_printf(
        &arena,
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: pi}\nspec:\n%s  template:\n    spec:\n"
        "      restartPolicy: Never\n%s      containers:\n      - name: pi\n"
        "%s",
        spec, pod,
        container[0] != '\0' ? container : "        command: [perl, -e, print bpi(2000)]\n");
}

#define POD(command) "{spec: {containers: [{name: c, command: [" command "]}]}}"

/* ---- kinds ---------------------------------------------------------------------------------------- */

START_TEST(a_pytorch_job_is_ranks_that_start_their_processes_themselves)
{
    spec_of(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: mnist}\n"
        "spec:\n  nprocPerNode: \"2\"\n"
        "  runPolicy: {backoffLimit: 3, activeDeadlineSeconds: 600, suspend: true}\n"
        "  pytorchReplicaSpecs:\n"
        "    Master: {replicas: 1, restartPolicy: OnFailure, template: " POD(
            "python3, t.py") "}\n"
                             "    Worker: {replicas: 2, restartPolicy: OnFailure, template: " POD(
                                 "python3, t.py") "}\n");
    ck_assert_str_eq(said("kind"), "\"pytorch\"");
    ck_assert_str_eq(said("nodes"), "3");
    ck_assert_str_eq(said("processes_per_node"), "2");
    ck_assert_str_eq(said("launcher"), "\"own\"");
    ck_assert_str_eq(said("argv"), "[\"python3\",\"t.py\"]");
    ck_assert_str_eq(said("max_restarts"), "3");
    ck_assert_str_eq(said("time_limit"), "600");
    ck_assert_str_eq(said("held"), "true");
    ck_assert_uint_eq(job.n_remarks, 0);
}

END_TEST

START_TEST(claims_and_images_of_registries_are_those_of_pods)
{
    spec_of("apiVersion: batch/v1\nkind: Job\nmetadata: {name: e}\nspec:\n  template:\n    spec:\n"
            "      restartPolicy: Never\n"
            "      volumes:\n      - {name: v, persistentVolumeClaim: {claimName: c}}\n"
            "      - {name: n, nfs: {server: h, path: /x, readOnly: true}}\n"
            "      - {name: r, persistentVolumeClaim: {claimName: d}}\n"
            "      containers:\n      - {image: \"python:3.11\", command: [a], volumeMounts: "
            "[{name: v, mountPath: /c}, {name: n, mountPath: /n}, "
            "{name: r, mountPath: /r, readOnly: true}]}\n");
    ck_assert_str_eq(said("image"), "\"python:3.11\"");
    ck_assert_str_eq(said("volumes"),
                     "[{\"path\":\"/c\",\"claim\":\"c\",\"writable\":true},"
                     "{\"path\":\"/n\",\"nfs\":\"h:/x\"},{\"path\":\"/r\",\"claim\":\"d\"}]");
    ck_assert_ptr_nonnull(remark_at("$.spec.template.spec.containers[0].image"));
}

END_TEST

START_TEST(an_elastic_one_has_as_many_ranks_as_there_is_room_for)
{
    spec_of(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: e}\n"
        "spec:\n  elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: c10d, "
        "maxRestarts: 9}\n"
        "  pytorchReplicaSpecs:\n    Worker: {replicas: 2, template: " POD("torchrun, t.py") "}\n");
    ck_assert_str_eq(said("nodes"), "{\"min\":1,\"max\":3}");
    ck_assert_str_eq(said("max_restarts"), "9");
    ck_assert_ptr_nonnull(remark_at("$.spec.pytorchReplicaSpecs.Worker.replicas"));
    ck_assert_uint_eq(job.n_remarks, 1);
}

END_TEST

START_TEST(a_tf_job_is_tasks_of_the_types_of_tensorflow)
{
    spec_of(
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: tf}\nspec:\n"
        "  tfReplicaSpecs:\n"
        "    Chief: {template: " POD(
            "python3, t.py") "}\n"
                             "    PS: {replicas: 2, template: " POD(
                                 "python3, t.py") "}\n"
                                                  "    Worker: {replicas: 3, template: " POD(
                                                      "python3, t.py") "}\n"
                                                                       "    Evaluator: {replicas: "
                                                                       "1, template: " POD(
                                                                           "python3, t.py") "}\n");
    ck_assert_str_eq(said("kind"), "\"tensorflow\"");
    ck_assert_str_eq(said("workers"), "3");
    ck_assert_str_eq(said("parameter_servers"), "2");
    ck_assert_str_eq(said("chief"), "true");
    ck_assert_str_eq(said("evaluator"), "true");
    ck_assert_str_eq(said("max_restarts"), "0");
    ck_assert_uint_eq(job.n_remarks, 0);
}

END_TEST

#define MPI_JOB(spec, words, worker)                                                               \
    "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: pi}\nspec:\n"                \
    "  slotsPerWorker: 2\n" spec "  mpiReplicaSpecs:\n"                                            \
    "    Launcher: {template: {spec: {containers: [{name: l, command: [" words "], env: "          \
    "[{name: A, value: x}]}]}}}\n"                                                                 \
    "    Worker: {replicas: 2, template: {spec: {containers: [{name: w, " worker "}]}}}\n"

START_TEST(an_mpi_job_is_hosts_whose_first_has_the_launcher)
{
    spec_of(MPI_JOB("", "mpirun, --hostfile, /etc/mpi/hostfile, pi",
                    "command: [/usr/sbin/sshd, -De], resources: {limits: {cpu: 1}}"));
    ck_assert_str_eq(said("nodes"), "2");
    ck_assert_str_eq(said("processes_per_node"), "2");
    ck_assert_str_eq(said("mpi"), "\"none\"");
    ck_assert_str_eq(said("cpus"), "1");
    ck_assert_str_eq(said("env"), "{\"A\":\"x\"}");
    ck_assert_ptr_nonnull(strstr(said("argv"), "''\\\"${OMPI_MCA_orte_default_hostfile}\\\"''"));
    ck_assert_ptr_nonnull(
        remark_at("$.spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command"));
    spec_of(MPI_JOB("  mpiImplementation: MPICH\n  runLauncherAsWorker: true\n",
                    "mpiexec, -f, /etc/mpi/hostfile, pi", "env: []"));
    ck_assert_str_eq(said("nodes"), "3");
    ck_assert_ptr_nonnull(strstr(said("argv"), "${HYDRA_HOST_FILE}"));
}

END_TEST

START_TEST(a_job_is_one_task_or_an_array)
{
    static const struct {
        const char *spec, *array, *parallel, *restarts;
    } rows[] = {
        {"", "-", "-", "6"},
        {"  completions: 5\n  parallelism: 2\n  completionMode: Indexed\n", "5", "2", "6"},
        {"  completions: 5\n  parallelism: 5\n", "5", "-", "6"},
        {"  completions: 1\n  completionMode: Indexed\n", "1", "-", "6"},
        {"  parallelism: 3\n", "3", "-", "6"},
        {"  backoffLimit: 0\n", "-", "-", "0"},
        {"  completions: 2\n  completionMode: Indexed\n  backoffLimitPerIndex: 1\n", "2", "1", "1"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        spec_of(job_text(rows[i].spec, "", ""));
        ck_assert_str_eq(said("array"), rows[i].array);
        ck_assert_str_eq(said("parallel"), rows[i].parallel);
        ck_assert_str_eq(said("max_restarts"), rows[i].restarts);
    }
}

END_TEST

/* ---- containers ----------------------------------------------------------------------------------- */

/* As Kubernetes reads words; what only a task knows is left to a shell. */
START_TEST(words_have_their_variables_filled_in)
{
    static const struct {
        const char *words, *argv;
    } rows[] = {
        {"[a, \"--x=$(A)\"]", "[\"a\",\"--x=1 2\"]"},
        {"[\"$(B)\", \"$$(A)\", \"$(date)\", \"$A\", \"$$\", \"$(\"]",
         "[\"1 2!\",\"$(A)\",\"$(date)\",\"$A\",\"$\",\"$(\"]"},
        {"[a, \"it's $(S)$(A)\"]",
         "[\"/bin/sh\",\"-c\",\"exec 'a' 'it'\\\\''s '\\\"${S}\\\"'1 2'\"]"},
        {"[a, \"$(JOB_COMPLETION_INDEX)\"]",
         "[\"/bin/sh\",\"-c\",\"exec 'a' ''\\\"${JOB_COMPLETION_INDEX}\\\"''\"]"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        spec_of(job_text(
            "", "",
            weir_arena_printf(&arena,
                              "        command: %s\n        env:\n        - {name: A, value: 1 2}\n"
                              "        - {name: B, value: $(A)!}\n"
                              "        - {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}\n",
                              rows[i].words)));
        ck_assert_str_eq(said("argv"), rows[i].argv);
        ck_assert_str_eq(said("env"), "{\"A\":\"1 2\",\"B\":\"1 2!\"}");
        ck_assert_str_eq(said("secrets"), "[\"S=s.k\"]");
    }
    spec_of(job_text("", "", "        command: [ls]\n        workingDir: /it's\n"));
    ck_assert_str_eq(said("argv"), "[\"/bin/sh\",\"-c\",\"cd '/it'\\\\''s' && exec 'ls'\"]");
}

END_TEST

START_TEST(variables_come_from_config_maps_fields_and_resources)
{
    spec_of(weir_arena_printf(
        &arena, "%s---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {k: v, l: w}\n",
        job_text("", "",
                 "        command: [a]\n        envFrom: [{prefix: P_, configMapRef: {name: m}}]\n"
                 "        resources: {limits: {memory: 1500Mi, cpu: 1500m}}\n        env:\n"
                 "        - {name: K, valueFrom: {configMapKeyRef: {name: m, key: k}}}\n"
                 "        - {name: N, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
                 "        - {name: C, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}\n"
                 "        - {name: M, valueFrom: {resourceFieldRef: {resource: limits.memory, "
                 "divisor: 1Gi}}}\n")));
    ck_assert_str_eq(said("env"),
                     "{\"P_k\":\"v\",\"P_l\":\"w\",\"K\":\"v\",\"N\":\"pi\",\"C\":\"2\","
                     "\"M\":\"2\"}");
    ck_assert_str_eq(said("memory_max_bytes"), "1572864000");
    ck_assert_str_eq(said("cpus"), "1.5");
}

END_TEST

START_TEST(resources_and_places_are_those_of_a_job)
{
    spec_of(job_text(
        "",
        "      nodeSelector: {zone: a, kubernetes.io/os: linux}\n      tolerations:\n"
        "      - {key: nvidia.com/gpu, operator: Exists}\n      - {key: t, value: v}\n"
        "      terminationGracePeriodSeconds: 7\n      priorityClassName: \"80\"\n"
        "      volumes: [{name: shm, emptyDir: {medium: Memory}}, {name: d, hostPath: {path: "
        "/d}}]\n",
        "        command: [a]\n        image: python.tar\n        resources:\n"
        "          limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 2, ephemeral-storage: 5G}\n"
        "          requests: {cpu: 500m, memory: 1024Mi, nvidia.com/gpu: \"2\"}\n"
        "        volumeMounts: [{name: shm, mountPath: /dev/shm}, {name: d, mountPath: /d}]\n"));
    ck_assert_str_eq(said("cpus"), "0.5");
    ck_assert_str_eq(said("memory_max_bytes"), "1073741824");
    ck_assert_str_eq(said("disk_max_bytes"), "5000000000");
    ck_assert_str_eq(said("resources"), "{\"accelerators\":2}");
    ck_assert_str_eq(said("image"), "\"python.tar\"");
    ck_assert_str_eq(said("node_selector"), "{\"zone\":\"a\"}");
    ck_assert_str_eq(said("tolerations"),
                     "[{\"key\":\"nvidia.com/gpu\"},{\"key\":\"t\",\"value\":\"v\"}]");
    ck_assert_str_eq(said("stop_grace_ms"), "7000");
    ck_assert_str_eq(said("priority"), "80");
    ck_assert_uint_eq(job.n_remarks, 2);
    ck_assert_ptr_nonnull(remark_at("$.spec.template.spec.volumes[1].hostPath.path"));
}

END_TEST

/* ---- whose it is ---------------------------------------------------------------------------------- */

#define WITH_METADATA(lines)                                                                       \
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n" lines                                \
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, command: [a]}]}}}\n"

START_TEST(project_queue_and_priority_are_what_the_first_of_them_says)
{
    spec_of(WITH_METADATA("  namespace: vision\n"));
    ck_assert_str_eq(said("project"), "\"vision\"");
    ck_assert_ptr_nonnull(strstr(remark_at("$.metadata.namespace"), "--project"));
    spec_of(WITH_METADATA("  namespace: vision\n  labels: {kueue.x-k8s.io/queue-name: q, "
                          "kueue.x-k8s.io/priority-class: \"70\"}\n"
                          "  annotations: {weir.dev/clusters: \"hpc,local\", weir.dev/queue: own, "
                          "weir.dev/gpu-model: H100}\n"));
    ck_assert_str_eq(said("project"), "-");
    ck_assert_str_eq(job.queue, "own");
    ck_assert_str_eq(said("priority"), "70");
    ck_assert_str_eq(said("clusters"), "[\"hpc\",\"local\"]");
    ck_assert_ptr_nonnull(remark_at("$.metadata.labels['kueue.x-k8s.io/queue-name']"));
    given.project = "mine";
    spec_of(WITH_METADATA("  namespace: vision\n  labels: {weir.dev/queue: own}\n"));
    ck_assert_str_eq(said("project"), "\"mine\"");
    ck_assert_ptr_null(job.queue);
    ck_assert_uint_eq(job.n_remarks, 2);
}

END_TEST

/* ---- refusals ------------------------------------------------------------------------------------- */

/* Kueue has jobs begin suspended, and lets them go itself. */
START_TEST(a_suspended_job_is_held_unless_a_queue_of_kueue_has_it)
{
#define SUSPENDED(labels)                                                                          \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j" labels "}\nspec:\n  suspend: true\n"     \
    "  template: {spec: {restartPolicy: Never, containers: [{name: c, command: [a]}]}}\n"
    spec_of(SUSPENDED(""));
    ck_assert_str_eq(said("held"), "true");
    spec_of(SUSPENDED(", labels: {kueue.x-k8s.io/queue-name: q}"));
    ck_assert_str_eq(said("held"), "-");
    ck_assert_ptr_nonnull(remark_at("$.spec.suspend"));
}

END_TEST

START_TEST(what_cannot_be_is_refused_with_its_path)
{
    static const struct {
        const char *spec, *pod, *container, *message;
    } rows[] = {
        {"  paralelism: 2\n", "", "",
         "$.spec.paralelism: there is no such field; did you mean parallelism?"},
        {"  parallelism: \"2\"\n", "", "", "$.spec.parallelism: expected an integer, got \"2\""},
        {"  completions: 2000\n", "", "", "$.spec.completions: expected an integer from 1 to 1024"},
        {"  completionMode: Idx\n", "", "",
         "$.spec.completionMode: expected Indexed or NonIndexed, got \"Idx\""},
        {"  completionMode: Indexed\n", "", "", "$.spec.completionMode: expected completions"},
        {"", "      initContainers: [{name: a}]\n", "",
         "$.spec.template.spec.initContainers: a task is one program"},
        {"", "      dnsPolcy: x\n", "",
         "$.spec.template.spec.dnsPolcy: there is no such field; did you mean dnsPolicy?"},
        {"", "", "        command: [a]\n        lifecycle: {preStop: {}}\n",
         "$.spec.template.spec.containers[0].lifecycle: tasks have no hooks"},
        {"", "", "        args: [a]\n", "$.spec.template.spec.containers[0].args: the entry point"},
        {"", "", "        tty: false\n", "$.spec.template.spec.containers[0].command: is needed"},
        {"", "", "        command: [a]\n      - name: sidecar\n",
         "$.spec.template.spec.containers[1]: a task is one program"},
        {"", "", "        command: [a]\n        resources: {limits: {rdma/hca: 1}}\n",
         "$.spec.template.spec.containers[0].resources.limits['rdma/hca']: nodes have no such"},
        {"", "", "        command: [a]\n        resources: {limits: {cpu: many}}\n",
         "$.spec.template.spec.containers[0].resources.limits.cpu: expected a quantity"},
        {"", "      volumes: [{name: v, persistentVolumeClaim: {}}]\n",
         "        command: [a]\n        volumeMounts: [{name: v, mountPath: /d}]\n",
         "$.spec.template.spec.volumes[0].persistentVolumeClaim: expected {claimName}"},
        {"", "      volumes: [{name: v, nfs: {server: h}}]\n",
         "        command: [a]\n        volumeMounts: [{name: v, mountPath: /d}]\n",
         "$.spec.template.spec.volumes[0].nfs: expected {server, path}"},
        {"", "      volumes: [{name: v, cephfs: {monitors: [h]}}]\n",
         "        command: [a]\n        volumeMounts: [{name: v, mountPath: /d}]\n",
         "$.spec.template.spec.volumes[0].cephfs: mount it on the nodes"},
        {"", "      volumes: [{name: v, hostPath: {path: /e}}]\n",
         "        command: [a]\n        volumeMounts: [{name: v, mountPath: /d}]\n",
         "$.spec.template.spec.containers[0].volumeMounts[0].mountPath: tasks see a folder"},
        {"", "", "        command: [a]\n        env: [{name: A, value: 1}]\n",
         "$.spec.template.spec.containers[0].env[0].value: expected a text: put the value into"},
        {"", "",
         "        command: [a]\n        env: [{name: A, valueFrom: {fieldRef: {fieldPath: "
         "status.podIP}}}]\n",
         "$.spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: MASTER_ADDR"},
        {"", "",
         "        command: [a]\n        env: [{name: A, valueFrom: {configMapKeyRef: {name: m, "
         "key: k}}}]\n",
         "$.spec.template.spec.containers[0].env[0].valueFrom.configMapKeyRef: no ConfigMap m"},
        {"", "      tolerations: [{operator: Exists}]\n", "",
         "$.spec.template.spec.tolerations[0]: name the taint"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        weir_status status = read_text(job_text(rows[i].spec, rows[i].pod, rows[i].container));
        ck_assert_msg(status != WEIR_OK &&
                          strncmp(err.message, rows[i].message, strlen(rows[i].message)) == 0,
                      "%s: %s", rows[i].message, err.message);
    }
}

END_TEST

START_TEST(replicas_that_differ_are_no_one_job)
{
    static const char head[] =
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: m}\n"
        "spec:\n  pytorchReplicaSpecs:\n    Master: {template: " POD("a, b") "}\n    Worker: ";

    static const struct {
        const char *worker, *message;
    } rows[] = {
        {"{template: " POD("a, c") "}", "template.spec.containers[0].command: differs from that "
                                        "of Master: all tasks of a job run the same program"},
        {"{restartPolicy: Never, template: " POD("a, b") "}", "restartPolicy: differs"},
        {"{template: {spec: {nodeSelector: {a: b}, containers: [{name: c, command: [a, b]}]}}}",
         "template.spec.nodeSelector: differs"},
        {"{template: {spec: {containers: [{name: c, command: [a, b], resources: {limits: {cpu: "
         "1}}}]}}}",
         "template.spec.containers[0].resources: differs"},
        {"{template: {spec: {containers: [{name: c, image: x, command: [a, b]}]}}}",
         "template.spec.containers[0].image: differs"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        char *path =
            weir_arena_printf(&arena, "$.spec.pytorchReplicaSpecs.Worker.%s", rows[i].message);
        ck_assert_int_eq(read_text(weir_arena_printf(&arena, "%s%s\n", head, rows[i].worker)),
                         WEIR_ERR_UNSUPPORTED);
        ck_assert_msg(strncmp(err.message, path, strlen(path)) == 0, "%s", err.message);
    }
    given.image = "none";
    spec_of(weir_arena_printf(&arena, "%s%s\n", head, rows[WEIR_ARRAY_LEN(rows) - 1].worker));
    ck_assert_str_eq(said("image"), "-");
}

END_TEST

START_TEST(other_kinds_are_refused_with_what_to_do)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{apiVersion: v1, kind: Secret}", "$.kind: Secret is no job: secrets are the project's"},
        {"{apiVersion: v1, kind: Pod}", "$.kind: \"Pod\" does not become a job: PyTorchJob, TFJob"},
        {"{apiVersion: kubeflow.org/v2, kind: TFJob}", "$.apiVersion: expected kubeflow.org/v1"},
        {"{apiVersion: batch/v1, kind: Job, metadata: {name: A}}", "$.metadata.name: expected a"},
        {"{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {weir.dev/que: b}}}",
         "$.metadata.labels['weir.dev/que']: there is no such mark; did you mean weir.dev/queue?"},
        {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}}", "$.spec.template: expected"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_int_ne(read_text(rows[i].text), WEIR_OK);
        ck_assert_msg(strncmp(err.message, rows[i].message, strlen(rows[i].message)) == 0, "%s",
                      err.message);
    }
}

END_TEST

START_TEST(quantities_have_all_of_kubernetes_forms)
{
    static const struct {
        const char *text;
        int64_t milli;
    } rows[] = {
        {"\"500m\"", 500},
        {"2", 2000},
        {"0.5", 500},
        {"\"1.5Gi\"", 1610612736000},
        {"\"1e3\"", 1000000},
        {"\"12E-1\"", 1200},
        {"\"1E\"", -1},
        {"\"100M\"", 100000000000},
        {"\"1u\"", 1},
        {"\"1500n\"", 1},
        {"\"0.1Ki\"", 102400},
        {"\"2k\"", 2000000},
        {"\"\"", -1},
        {"\"-1\"", -1},
        {"\"1.2.3\"", -1},
        {"\"1 G\"", -1},
        {"\"1gb\"", -1},
        {"\"1000000000P\"", -1},
        {"true", -1},
        {"\".5\"", 500},
        {"\"5.\"", 5000},
        {"\"1e99\"", -1},
        {"\"9999999999999999999\"", -1},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        int64_t milli = -1;
        json_t *value = json_loads(rows[i].text, JSON_DECODE_ANY, NULL);
        ck_assert_int_eq(kubeflow_quantity(value, &milli), rows[i].milli >= 0);
        ck_assert_msg(milli == rows[i].milli, "%s: %lld", rows[i].text, (long long)milli);
        json_decref(value);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "kubeflow", set_up, tear_down, a_pytorch_job_is_ranks_that_start_their_processes_themselves,
    claims_and_images_of_registries_are_those_of_pods,
    an_elastic_one_has_as_many_ranks_as_there_is_room_for,
    a_tf_job_is_tasks_of_the_types_of_tensorflow, an_mpi_job_is_hosts_whose_first_has_the_launcher,
    a_job_is_one_task_or_an_array, words_have_their_variables_filled_in,
    variables_come_from_config_maps_fields_and_resources, resources_and_places_are_those_of_a_job,
    project_queue_and_priority_are_what_the_first_of_them_says,
    a_suspended_job_is_held_unless_a_queue_of_kueue_has_it, what_cannot_be_is_refused_with_its_path,
    replicas_that_differ_are_no_one_job, other_kinds_are_refused_with_what_to_do,
    quantities_have_all_of_kubernetes_forms)
