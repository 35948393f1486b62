#include "cluster/kubernetes/job.h"

#include "cluster/kubernetes/manifest.h"
#include "cluster/kubernetes/pod.h"
#include "cluster/kubernetes/template.h"

#include "base/base64.h"

#include <string.h>

#define AGENT_DIR      "/var/lib/weir-agent"
#define JOIN_KEY       "secret"
#define PROGRAM_DIR    "/weir"
#define PROGRAM        PROGRAM_DIR "/bin/weir"
#define COPY_DIR       "/weir-copy"
#define KEPT_S         3600 /* so long an ended Job is still there */
#define TEXT_BYTES     200
#define NAMES_MAX      1000
#define MIB            ((int64_t)1 << 20)
#define SHM_PARTS      2 /* what of its memory a pod may have as shared memory */
#define NOTE_FOR       "weir.dev/for"
#define NOTE_QUEUE     "weir.dev/queue"
#define KUEUE_QUEUE    "kueue.x-k8s.io/queue-name"
#define KUEUE_PRIORITY "kueue.x-k8s.io/priority-class"

/* What a pod of the request has. */
struct size {
    int64_t cpus, memory_bytes, n_devices;
};

/* ---- how much -------------------------------------------------------------------------------- */

static weir_status size_of(const struct kubernetes_pool *pool,
                           const struct weir_node_request *request, struct size *out,
                           struct weir_error *err)
{
    const struct weir_pool_offer *offer = &pool->offer;
    bool is_whole =
        request->cpu_slots == 0 && request->memory_bytes == 0 && request->n_accelerators == 0;
    if (request->n_nodes < 1 || request->n_nodes > offer->max_nodes) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "the pool %s has at most %lld nodes, not %lld",
                              offer->name, (long long)offer->max_nodes,
                              (long long)request->n_nodes);
    }
    if (request->cpu_slots > offer->cpu_slots || request->memory_bytes > offer->memory_bytes ||
        request->n_accelerators > offer->n_accelerators) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a node of the pool %s has %lld processors, %lld MiB of memory and "
                              "%lld accelerators: less than is asked for",
                              offer->name, (long long)offer->cpu_slots,
                              (long long)(offer->memory_bytes / MIB),
                              (long long)offer->n_accelerators);
    }
    if (request->accelerator_milli > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a node of the pool %s gives no part of an accelerator", offer->name);
    }
    *out = is_whole ? (struct size){offer->cpu_slots, offer->memory_bytes, offer->n_accelerators}
                    : (struct size){WEIR_MAX(request->cpu_slots, (int64_t)1), request->memory_bytes,
                                    request->n_accelerators};
    return WEIR_OK;
}

static json_t *text_of_number(int64_t number, const char *unit, struct weir_arena *arena)
{
    return json_string(weir_arena_printf(arena, "%lld%s", (long long)number, unit));
}

static json_t *resources_of(const struct size *size, const char *device, struct weir_arena *arena)
{
    json_t *amounts = json_object();
    json_object_set_new(amounts, "cpu", text_of_number(size->cpus, "", arena));
    if (size->memory_bytes > 0) {
        json_object_set_new(amounts, "memory",
                            text_of_number(size->memory_bytes / MIB, "Mi", arena));
    }
    if (size->n_devices > 0 && device != NULL) {
        json_object_set_new(amounts, device, text_of_number(size->n_devices, "", arena));
    }
    return json_pack("{s:O,s:o}", "requests", amounts, "limits", amounts);
}

/* ---- the container --------------------------------------------------------------------------- */

static void add_word(json_t *words, const char *flag, const char *value)
{
    if (value != NULL) {
        json_array_append_new(words, json_string(flag));
        json_array_append_new(words, json_string(value));
    }
}

static json_t *command_of(const struct kubernetes_options *options,
                          const struct weir_node_request *request,
                          const struct kubernetes_template *template, struct weir_arena *arena)
{
    json_t *words = json_pack("[s,s]", PROGRAM, "agent");
    add_word(words, "--allocation", request->tag);
    add_word(words, "--server", options->server != NULL ? options->server : request->agent.server);
    add_word(words, "--ca-file",
             options->ca_file != NULL ? options->ca_file : request->agent.ca_file);
    add_word(words, "--dir", AGENT_DIR);
    for (size_t i = 0; i < template->n_volumes; i++) {
        const struct weir_volume *volume = &template->volumes[i];
        add_word(words, "--share",
                 weir_arena_printf(arena, "%s%s", volume->path, volume->is_writable ? ":rw" : ""));
    }
    return words;
}

static void add_variable(json_t *env, const char *name, const char *value)
{
    json_array_append_new(env, json_pack("{s:s,s:s}", "name", name, "value", value));
}

static void add_field(json_t *env, const char *name, const char *path)
{
    json_array_append_new(env, json_pack("{s:s,s:{s:{s:s}}}", "name", name, "valueFrom", "fieldRef",
                                         "fieldPath", path));
}

/* It is in no file that tasks could read; the agent takes it out of its environment. */
static void add_secret(json_t *env, const char *name, const char *secret)
{
    json_array_append_new(env, json_pack("{s:s,s:{s:{s:s,s:s}}}", "name", name, "valueFrom",
                                         "secretKeyRef", "name", secret, "key", JOIN_KEY));
}

/* "0,1,2": as a container numbers the devices that it is given. */
static const char *device_list(int64_t n, struct weir_arena *arena)
{
    const char *list = "";
    for (int64_t i = 0; i < n; i++) {
        list = weir_arena_printf(arena, "%s%s%lld", list, i > 0 ? "," : "", (long long)i);
    }
    return list;
}

/* What an agent reads of its share (cluster/allocation.h). */
static json_t *env_of(const char *tag, const struct kubernetes_pool *pool, const struct size *size,
                      const struct kubernetes_template *template, struct weir_arena *arena)
{
    json_t *env = json_array();
    add_secret(env, "WEIR_JOIN_SECRET", tag);
    add_field(env, "WEIR_ALLOCATION_INDEX",
              "metadata.annotations['batch.kubernetes.io/job-completion-index']");
    add_field(env, "WEIR_ALLOCATION_HOST", "spec.nodeName");
    add_field(env, "WEIR_ALLOCATION_POD", "metadata.name");
    add_field(env, "WEIR_ALLOCATION_NAMESPACE", "metadata.namespace");
    add_variable(env, "WEIR_ALLOCATION_CPUS",
                 weir_arena_printf(arena, "%lld", (long long)size->cpus));
    if (size->memory_bytes > 0) {
        add_variable(env, "WEIR_ALLOCATION_MEMORY_MIB",
                     weir_arena_printf(arena, "%lld", (long long)(size->memory_bytes / MIB)));
    }
    if (template->wanted_image != NULL) {
        add_variable(env, "WEIR_ALLOCATION_IMAGE", template->wanted_image);
    }
    if (size->n_devices > 0) {
        add_variable(env, "CUDA_VISIBLE_DEVICES", device_list(size->n_devices, arena));
        add_variable(env, "WEIR_ACCELERATOR_MODEL", pool->offer.accelerator);
    }
    return env;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static json_t *volume_source(const struct weir_volume *volume, struct weir_arena *arena)
{
    int is_read_only = !volume->is_writable;
    if (volume->claim != NULL) {
        return json_pack("{s:{s:s,s:b}}", "persistentVolumeClaim", "claimName", volume->claim,
                         "readOnly", is_read_only);
    }
    if (volume->nfs != NULL) {
        size_t len = (size_t)(strstr(volume->nfs, ":/") - volume->nfs);
        return json_pack("{s:{s:s,s:s,s:b}}", "nfs", "server",
                         weir_arena_memdup(arena, volume->nfs, len), "path", volume->nfs + len + 1,
                         "readOnly", is_read_only);
    }
    return json_pack("{s:{s:s,s:s}}", "hostPath", "path", volume->host, "type", "Directory");
}

static void add_volume(json_t *volumes, json_t *mounts, const char *name, const char *path,
                       bool is_read_only, json_t *source)
{
    json_object_set_new(source, "name", json_string(name));
    json_array_append_new(volumes, source);
    json_array_append_new(mounts, json_pack("{s:s,s:s,s:b}", "name", name, "mountPath", path,
                                            "readOnly", is_read_only));
}

static void add_volumes(const struct kubernetes_template *template, const struct size *size,
                        json_t *volumes, json_t *mounts, struct weir_arena *arena)
{
    json_t *shm = json_pack("{s:{s:s}}", "emptyDir", "medium", "Memory");
    if (size->memory_bytes > 0) {
        json_object_set_new(json_object_get(shm, "emptyDir"), "sizeLimit",
                            text_of_number(size->memory_bytes / MIB / SHM_PARTS, "Mi", arena));
    }
    add_volume(volumes, mounts, "agent", AGENT_DIR, false, json_pack("{s:{}}", "emptyDir"));
    add_volume(volumes, mounts, "tmp", "/tmp", false, json_pack("{s:{}}", "emptyDir"));
    add_volume(volumes, mounts, "shm", "/dev/shm", false, shm);
    for (size_t i = 0; i < template->n_volumes; i++) {
        const struct weir_volume *volume = &template->volumes[i];
        add_volume(volumes, mounts, weir_arena_printf(arena, "share-%zu", i), volume->path,
                   !volume->is_writable, volume_source(volume, arena));
    }
}

/* ---- where ------------------------------------------------------------------------------------ */

static json_t *node_names(const struct kubernetes_pool *pool)
{
    json_t *names = json_array();
    for (size_t i = 0; i < pool->n_nodes; i++) {
        json_array_append_new(names, json_string(pool->node_names[i]));
    }
    return names;
}

/* The nodes are named if no label tells the pool and there are other pools. */
static void add_place(const struct kubernetes_options *options, const struct kubernetes_pool *pool,
                      size_t n_pools, const struct size *size, json_t *spec)
{
    json_t *selector =
        options->node_selector != NULL ? json_deep_copy(options->node_selector) : json_object();
    json_t *tolerations =
        options->tolerations != NULL ? json_deep_copy(options->tolerations) : json_array();
    if (pool->label != NULL) {
        json_object_set_new(selector, options->pool_label, json_string(pool->label));
    } else if (n_pools > 1 && pool->n_nodes <= NAMES_MAX) {
        json_object_set_new(spec, "affinity",
                            json_pack("{s:{s:{s:[{s:[{s:s,s:s,s:o}]}]}}}", "nodeAffinity",
                                      "requiredDuringSchedulingIgnoredDuringExecution",
                                      "nodeSelectorTerms", "matchExpressions", "key",
                                      "kubernetes.io/hostname", "operator", "In", "values",
                                      node_names(pool)));
    }
    if (size->n_devices > 0) {
        json_array_append_new(tolerations,
                              json_pack("{s:s,s:s}", "key", pool->device, "operator", "Exists"));
    }
    json_object_set_new(spec, "nodeSelector", selector);
    json_object_set_new(spec, "tolerations", tolerations);
}

/* ---- the pod --------------------------------------------------------------------------------- */

static void set_text(json_t *object, const char *member, const char *text)
{
    if (text != NULL) {
        json_object_set_new(object, member, json_string(text));
    }
}

static json_t *pull_secrets(const json_t *names)
{
    json_t *list = json_array(), *name;
    size_t i;
    json_array_foreach(names, i, name)
    {
        json_array_append_new(list, json_pack("{s:O}", "name", name));
    }
    return list;
}

const char *kubernetes_weir_image(const struct kubernetes_options *options)
{
    return options->image != NULL ? options->image : "weir:" WEIR_VERSION;
}

json_t *kubernetes_no_rights(void)
{
    return json_pack("{s:b,s:{s:[s]}}", "allowPrivilegeEscalation", 0, "capabilities", "drop",
                     "ALL");
}

json_t *kubernetes_pod_base(const struct kubernetes_options *options)
{
    json_int_t user = options->user;
    json_t *spec = json_pack("{s:s,s:b,s:b,s:{s:b,s:I,s:I,s:I,s:{s:s}}}", "serviceAccountName",
                             options->service_account != NULL ? options->service_account
                                                              : WEIR_KUBERNETES_AGENT_ACCOUNT,
                             "automountServiceAccountToken", 0, "enableServiceLinks", 0,
                             "securityContext", "runAsNonRoot", 1, "runAsUser", user, "runAsGroup",
                             user, "fsGroup", user, "seccompProfile", "type", "RuntimeDefault");
    set_text(spec, "runtimeClassName", options->runtime_class);
    if (json_array_size(options->pull_secrets) > 0) {
        json_object_set_new(spec, "imagePullSecrets", pull_secrets(options->pull_secrets));
    }
    return spec;
}

/* Weir comes into an image of somebody else's by a copy of its folder. */
static void add_weir(const struct kubernetes_options *options, json_t *spec, json_t *volumes,
                     json_t *mounts)
{
    add_volume(volumes, mounts, "weir", PROGRAM_DIR, true, json_pack("{s:{}}", "emptyDir"));
    json_object_set_new(spec, "initContainers",
                        json_pack("[{s:s,s:s,s:[s,s,s,s],s:[{s:s,s:s}],s:o}]", "name", "weir",
                                  "image", kubernetes_weir_image(options), "command", "cp", "-a",
                                  PROGRAM_DIR "/.", COPY_DIR, "volumeMounts", "name", "weir",
                                  "mountPath", COPY_DIR, "securityContext",
                                  kubernetes_no_rights()));
}

static json_t *container_of(const struct kubernetes_options *options,
                            const struct kubernetes_pool *pool,
                            const struct weir_node_request *request, const struct size *size,
                            const struct kubernetes_template *template, json_t *mounts,
                            struct weir_arena *arena)
{
    return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:s,s:o}", "name", "agent", "image",
                     template->image != NULL ? template->image : kubernetes_weir_image(options),
                     "command", command_of(options, request, template, arena), "env",
                     env_of(request->tag, pool, size, template, arena), "resources",
                     resources_of(size, pool->device, arena), "volumeMounts", mounts,
                     "terminationMessagePolicy", "FallbackToLogsOnError", "securityContext",
                     kubernetes_no_rights());
}

static json_t *pod_spec(const struct kubernetes_options *options,
                        const struct kubernetes_pool *pool, size_t n_pools,
                        const struct weir_node_request *request, const struct size *size,
                        const struct kubernetes_template *template, struct weir_arena *arena)
{
    const struct kubernetes_payer payer = kubernetes_options_payer(options, request->queue);
    int64_t time_ms = request->time_ms > 0 ? request->time_ms : kubernetes_options_time_ms(options);
    json_t *volumes = json_array(), *mounts = json_array();
    add_volumes(template, size, volumes, mounts, arena);
    json_t *spec = kubernetes_pod_base(options);
    json_object_update_new(
        spec,
        json_pack("{s:s,s:I,s:[o],s:o}", "restartPolicy", "Never", "terminationGracePeriodSeconds",
                  (json_int_t)(kubernetes_options_grace_ms(options) / 1000), "containers",
                  container_of(options, pool, request, size, template, mounts, arena), "volumes",
                  volumes));
    if (time_ms > 0) {
        json_object_set_new(spec, "activeDeadlineSeconds", json_integer((time_ms + 999) / 1000));
    }
    if (kubernetes_is_scheduled_by(options, KUBERNETES_BY_WEIR)) {
        set_text(spec, "schedulerName", KUBERNETES_MANAGER);
    }
    if (template->image != NULL) {
        add_weir(options, spec, volumes, mounts);
    }
    set_text(spec, "priorityClassName", payer.priority_class);
    add_place(options, pool, n_pools, size, spec);
    return spec;
}

/* ---- the Job --------------------------------------------------------------------------------- */

static json_t *labels_of(const struct kubernetes_options *options,
                         const struct weir_node_request *request, struct weir_arena *arena)
{
    json_t *labels = options->labels != NULL ? json_deep_copy(options->labels) : json_object();
    set_text(labels, KUBERNETES_MANAGED_LABEL, KUBERNETES_MANAGER);
    set_text(labels, WEIR_KUBERNETES_PART_LABEL, WEIR_KUBERNETES_AGENT_PART);
    set_text(labels, "app.kubernetes.io/name", "weir");
    set_text(labels, KUBERNETES_ALLOCATION_LABEL, request->tag);
    set_text(labels, KUBERNETES_NODES_LABEL,
             weir_arena_printf(arena, "%lld", (long long)request->n_nodes));
    return labels;
}

/* For people over there. */
static json_t *annotations_of(const struct kubernetes_options *options,
                              const struct weir_node_request *request, struct weir_arena *arena)
{
    json_t *notes =
        options->annotations != NULL ? json_deep_copy(options->annotations) : json_object();
    if (request->text != NULL && weir_text_is_utf8(request->text)) {
        set_text(notes, NOTE_FOR, weir_arena_printf(arena, "%.*s", TEXT_BYTES, request->text));
    }
    set_text(notes, NOTE_QUEUE, request->queue);
    return notes;
}

static json_t *metadata_of(const struct kubernetes_options *options,
                           const struct weir_node_request *request, struct weir_arena *arena)
{
    return json_pack("{s:o,s:o}", "labels", labels_of(options, request, arena), "annotations",
                     annotations_of(options, request, arena));
}

static void hand_to_kueue(const struct kubernetes_payer *payer, json_t *job)
{
    json_t *labels = json_object_get(json_object_get(job, "metadata"), "labels");
    set_text(labels, KUEUE_QUEUE, payer->kueue_queue);
    set_text(labels, KUEUE_PRIORITY, payer->priority_class);
    json_object_set_new(json_object_get(job, "spec"), "suspend", json_true());
}

weir_status kubernetes_job_make(const struct kubernetes_options *options,
                                const struct kubernetes_pool *pool, size_t n_pools,
                                const struct weir_node_request *request, struct weir_arena *arena,
                                json_t **out, struct weir_error *err)
{
    const struct kubernetes_payer payer = kubernetes_options_payer(options, request->queue);
    struct kubernetes_template template;
    struct size size = {0};
    WEIR_TRY(size_of(pool, request, &size, err));
    WEIR_TRY(kubernetes_template_make(options, request, arena, &template, err));
    json_t *metadata = metadata_of(options, request, arena);
    json_int_t n = request->n_nodes;
    *out = json_pack("{s:s,s:s,s:o,s:{s:I,s:I,s:s,s:i,s:i,s:{s:o,s:o}}}", "apiVersion", "batch/v1",
                     "kind", "Job", "metadata", metadata, "spec", "parallelism", n, "completions",
                     n, "completionMode", "Indexed", "backoffLimit", 0, "ttlSecondsAfterFinished",
                     KEPT_S, "template", "metadata", json_deep_copy(metadata), "spec",
                     pod_spec(options, pool, n_pools, request, &size, &template, arena));
    if (*out == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "what is asked for is no UTF-8");
    }
    set_text(metadata, "name", request->tag);
    if (kubernetes_is_scheduled_by(options, KUBERNETES_BY_KUEUE)) {
        hand_to_kueue(&payer, *out);
    }
    return WEIR_OK;
}

json_t *kubernetes_secret_make(const struct weir_node_request *request, const char *uid,
                               struct weir_arena *arena)
{
    const char *secret = request->agent.secret != NULL ? request->agent.secret : "";
    size_t len = strlen(secret);
    char *base64 =
        weir_base64_encode(secret, len, weir_arena_alloc(arena, WEIR_BASE64_TEXT_BYTES(len)));
    json_t *document = json_pack(
        "{s:s,s:s,s:{s:s,s:{s:s,s:s}},s:s,s:{s:s}}", "apiVersion", "v1", "kind", "Secret",
        "metadata", "name", request->tag, "labels", KUBERNETES_MANAGED_LABEL, KUBERNETES_MANAGER,
        KUBERNETES_ALLOCATION_LABEL, request->tag, "type", "Opaque", "data", JOIN_KEY, base64);
    if (uid != NULL) {
        json_object_set_new(json_object_get(document, "metadata"), "ownerReferences",
                            json_pack("[{s:s,s:s,s:s,s:s}]", "apiVersion", "batch/v1", "kind",
                                      "Job", "name", request->tag, "uid", uid));
    }
    return document;
}
