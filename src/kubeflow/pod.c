#include "kubeflow/pod.h"

#include "kubeflow/draft.h"
#include "kubeflow/expand.h"

#include <string.h>

#define GRACE_FALLBACK_S 30 /* Kubernetes' */
#define GRACE_MOST_S     3600

/* ---- the container -------------------------------------------------------------------------------- */

struct container {
    struct kubeflow_place name, image, command, args, dir, env, env_from, resources, mounts;
};

static const struct kubeflow_field container_fields[] = {
    KUBEFLOW_TAKEN(container, name, "name", TEXT),
    KUBEFLOW_TAKEN(container, image, "image", TEXT),
    KUBEFLOW_TAKEN(container, command, "command", LIST),
    KUBEFLOW_TAKEN(container, args, "args", LIST),
    KUBEFLOW_TAKEN(container, dir, "workingDir", TEXT),
    KUBEFLOW_TAKEN(container, env, "env", LIST),
    KUBEFLOW_TAKEN(container, env_from, "envFrom", LIST),
    KUBEFLOW_TAKEN(container, resources, "resources", OBJECT),
    KUBEFLOW_TAKEN(container, mounts, "volumeMounts", LIST),
    KUBEFLOW_REMARK("ports", "each task has the ports of its machine, and those at which tasks of "
                             "a job meet are told them: MASTER_PORT, TF_CONFIG"),
    KUBEFLOW_REMARK("imagePullPolicy", "an image is on the nodes, or is sent once"),
    KUBEFLOW_REMARK("livenessProbe",
                    "tasks are not probed: activeDeadlineSeconds ends one that hangs"),
    KUBEFLOW_REMARK("readinessProbe", "tasks are not probed: those of a job meet by themselves"),
    KUBEFLOW_REMARK("startupProbe", "tasks are not probed"),
    KUBEFLOW_REFUSED("lifecycle",
                     "tasks have no hooks: let the program do it first, and at SIGTERM"),
    KUBEFLOW_REMARK("securityContext", "a task is a user of its own, without further rights"),
    KUBEFLOW_REMARK_UNLESS("stdin", "false", "a task has no input: weir job shell goes into one"),
    KUBEFLOW_REMARK_UNLESS("stdinOnce", "false", "a task has no input"),
    KUBEFLOW_REMARK_UNLESS("tty", "false", "a task has no terminal: weir job shell gives one"),
    KUBEFLOW_REMARK("terminationMessagePath", "the last lines of its log say how a task ended"),
    KUBEFLOW_REMARK("terminationMessagePolicy", "the last lines of its log say how a task ended"),
    KUBEFLOW_REMARK("resizePolicy", "the resources of a task stay as they are"),
    KUBEFLOW_REFUSED("restartPolicy", "say it of the replicas, or of the pod"),
    KUBEFLOW_REFUSED("restartPolicyRules", "statuses are not looked at: remove it"),
    KUBEFLOW_REFUSED("volumeDevices", "tasks have no block devices of their own"),
};

static weir_status read_image(struct kubeflow_reading *reading, const struct kubeflow_draft *draft,
                              struct kubeflow_place at, json_t *spec)
{
    const char *image = NULL;
    bool has_none = draft->image != NULL && strcmp(draft->image, WEIR_KUBEFLOW_NO_IMAGE) == 0;
    WEIR_TRY(kubeflow_text(reading, at, &image));
    if (draft->image != NULL && image != NULL) {
        kubeflow_remark(reading, at,
                        has_none ? "the program is one of the nodes, as --image or weir.dev/image "
                                   "says"
                                 : "another is used, as --image or weir.dev/image says");
    }
    image = draft->image != NULL ? draft->image : image;
    if (image == NULL || strcmp(image, WEIR_KUBEFLOW_NO_IMAGE) == 0) {
        return WEIR_OK;
    }
    if (draft->image == NULL && strpbrk(image, "/:") != NULL) {
        kubeflow_remark(reading, at,
                        "pods of Kubernetes have it; on other nodes --image NAME is an image on "
                        "the nodes or an archive that is sent, and --image none the programs of "
                        "the nodes (so says the annotation weir.dev/image)");
    }
    json_object_set_new(spec, "image", weir_json_string(image, ""));
    return WEIR_OK;
}

static weir_status read_words(struct kubeflow_reading *reading, const struct container *container,
                              json_t *spec)
{
    const struct kubeflow_place lists[2] = {container->command, container->args};
    const struct kubeflow_variables variables = {.env = json_object_get(spec, "env"),
                                                 .secrets = json_object_get(spec, "secrets")};
    const char *dir = NULL;
    json_t *words;
    WEIR_TRY(kubeflow_text(reading, container->dir, &dir));
    if (json_array_size(lists[0].value) == 0 && json_array_size(lists[1].value) > 0) {
        return kubeflow_refuse(reading, lists[1],
                               "the entry point of an image is not used here: say what it is in "
                               "command");
    }
    WEIR_TRY(kubeflow_expand_words(reading, lists, dir, &variables, &words));
    if (json_array_size(words) > 0) {
        json_object_set(spec, "argv", words);
    }
    return WEIR_OK;
}

/* {VARIABLE: NAME} as a job's list: "VARIABLE=NAME". */
static void settle_secrets(json_t *spec)
{
    json_t *list = json_array(), *name;
    const char *variable;
    json_object_foreach(json_object_get(spec, "secrets"), variable, name)
    {
        json_array_append_new(list, json_sprintf("%s=%s", variable, json_string_value(name)));
    }
    (void)json_object_del(spec, "secrets");
    if (json_array_size(list) > 0) {
        json_object_set(spec, "secrets", list);
    }
    json_decref(list);
}

static weir_status read_container(struct kubeflow_reading *reading,
                                  const struct kubeflow_draft *draft, struct kubeflow_place volumes,
                                  struct kubeflow_pod *pod)
{
    struct container container = {0};
    WEIR_TRY(kubeflow_fields(reading, pod->container, container_fields,
                             WEIR_ARRAY_LEN(container_fields), &container));
    kubeflow_mark(reading, container.name); /* only other containers would need it */
    WEIR_TRY(read_image(reading, draft, container.image, pod->spec));
    WEIR_TRY(kubeflow_env_read(reading, pod, container.env, container.env_from));
    WEIR_TRY(read_words(reading, &container, pod->spec));
    settle_secrets(pod->spec);
    WEIR_TRY(kubeflow_resources_read(reading, draft, pod, container.resources));
    return kubeflow_volumes_read(reading, volumes, container.mounts, pod->spec);
}

/* ---- the pod -------------------------------------------------------------------------------------- */

struct pod_spec {
    struct kubeflow_place containers, volumes, restart_policy, grace, selector, tolerations,
        priority_class, priority;
};

static const struct kubeflow_field pod_fields[] = {
    KUBEFLOW_TAKEN(pod_spec, containers, "containers", LIST),
    KUBEFLOW_TAKEN(pod_spec, volumes, "volumes", LIST),
    KUBEFLOW_WORD(pod_spec, restart_policy, "restartPolicy", "Always", "OnFailure", "Never"),
    KUBEFLOW_TAKEN(pod_spec, grace, "terminationGracePeriodSeconds", INTEGER),
    KUBEFLOW_TAKEN(pod_spec, selector, "nodeSelector", OBJECT),
    KUBEFLOW_TAKEN(pod_spec, tolerations, "tolerations", LIST),
    KUBEFLOW_TAKEN(pod_spec, priority_class, "priorityClassName", TEXT),
    KUBEFLOW_TAKEN(pod_spec, priority, "priority", INTEGER),
    KUBEFLOW_REFUSED("activeDeadlineSeconds", "say it of the job: a job has one time limit"),
    KUBEFLOW_REFUSED("initContainers", "a task is one program: let it, or a script, do that first"),
    KUBEFLOW_REFUSED("ephemeralContainers", "weir job shell goes into a task"),
    KUBEFLOW_REFUSED("affinity", "say it as nodeSelector, by labels of nodes (weir node label)"),
    KUBEFLOW_REFUSED("nodeName", "say it as nodeSelector, by a label of that node"),
    KUBEFLOW_REFUSED("hostAliases", "tasks have the names of their machine"),
    KUBEFLOW_REFUSED("resourceClaims", "devices are asked for in resources.limits"),
    KUBEFLOW_REFUSED("resources", "say them of the container"),
    KUBEFLOW_REFUSED("schedulingGates", "suspend: true holds a job: weir job resume"),
    KUBEFLOW_REFUSED_UNLESS("hostPID", "false", "tasks do not see processes of others"),
    KUBEFLOW_REFUSED_UNLESS("hostIPC", "false", "tasks do not share memory with others"),
    KUBEFLOW_REMARK_UNLESS("hostNetwork", "true", "a task has the network of its machine"),
    KUBEFLOW_REMARK("hostUsers", "a task is a user of its own"),
    KUBEFLOW_REMARK("shareProcessNamespace", "a task is one container"),
    KUBEFLOW_REMARK("securityContext", "a task is a user of its own, without further rights"),
    KUBEFLOW_REMARK("dnsPolicy", "a task has the names of its machine"),
    KUBEFLOW_REMARK("dnsConfig", "a task has the names of its machine"),
    KUBEFLOW_REMARK("hostname", "tasks have no names of their own: MASTER_ADDR, TF_CONFIG and "
                                "WEIR_RANK say who is where"),
    KUBEFLOW_REMARK("subdomain", "tasks have no names of their own: MASTER_ADDR, TF_CONFIG and "
                                 "WEIR_RANK say who is where"),
    KUBEFLOW_REMARK("setHostnameAsFQDN", "tasks have no names of their own"),
    KUBEFLOW_REMARK("serviceAccountName", "a job has a token of its own, with few rights"),
    KUBEFLOW_REMARK("serviceAccount", "a job has a token of its own, with few rights"),
    KUBEFLOW_REMARK("automountServiceAccountToken", "a job has a token of its own"),
    KUBEFLOW_REMARK("imagePullSecrets", "nodes ask no registry"),
    KUBEFLOW_REMARK("schedulerName", "Weir's own scheduler places it"),
    KUBEFLOW_REMARK("topologySpreadConstraints", "tasks go where there is room: topology of a "
                                                 "Weir job has them near each other"),
    KUBEFLOW_REMARK("runtimeClassName", "nodes start tasks as their agents do"),
    KUBEFLOW_REMARK("preemptionPolicy", "its queue says whom it may stop"),
    KUBEFLOW_REMARK("enableServiceLinks", "there are no services of Kubernetes"),
    KUBEFLOW_REMARK("readinessGates", "tasks are not probed"),
    KUBEFLOW_REMARK("overhead", "a task takes what it asks for"),
    KUBEFLOW_REMARK_UNLESS("os", "{\"name\":\"linux\"}", "nodes run Linux"),
};

struct template
{
    struct kubeflow_place metadata, spec;
};

static const struct kubeflow_field template_fields[] = {
    KUBEFLOW_TAKEN(template, metadata, "metadata", OBJECT),
    KUBEFLOW_TAKEN(template, spec, "spec", OBJECT),
};

static weir_status read_selector(struct kubeflow_reading *reading, struct kubeflow_place at,
                                 json_t *spec)
{
    const char *key;
    struct kubeflow_place item;
    json_t *labels = kubeflow_keep(reading, json_object());
    for (void *it = NULL; kubeflow_next(reading, at, &it, &key, &item);) {
        const char *value = NULL;
        WEIR_TRY(kubeflow_text(reading, item, &value));
        if (value == NULL) {
            return kubeflow_wrong(reading, item, "a text");
        }
        if (strcmp(key, "kubernetes.io/os") != 0) {
            json_object_set_new(labels, key, weir_json_string(value, ""));
        } else if (strcmp(value, "linux") != 0) {
            return kubeflow_refuse(reading, item, "nodes run Linux");
        }
    }
    if (json_object_size(at.value) == 0) {
        kubeflow_mark(reading, at);
    }
    if (json_object_size(labels) > 0) {
        json_object_set(spec, "node_selector", labels);
    }
    return WEIR_OK;
}

struct toleration {
    struct kubeflow_place key, operator, value, effect;
};

static const struct kubeflow_field toleration_fields[] = {
    KUBEFLOW_TAKEN(toleration, key, "key", TEXT),
    KUBEFLOW_WORD(toleration, operator, "operator", "Exists", "Equal"),
    KUBEFLOW_TAKEN(toleration, value, "value", TEXT),
    KUBEFLOW_REMARK("effect", "it tolerates the taint whatever its effect is"),
    KUBEFLOW_REMARK("tolerationSeconds", "it tolerates the taint for ever"),
};

static weir_status read_toleration(struct kubeflow_reading *reading, struct kubeflow_place at,
                                   json_t *list)
{
    struct toleration given = {0};
    const char *key = NULL, *value = NULL;
    WEIR_TRY(
        kubeflow_fields(reading, at, toleration_fields, WEIR_ARRAY_LEN(toleration_fields), &given));
    bool is_any = kubeflow_is_word(reading, given.operator, "Exists");
    WEIR_TRY(kubeflow_text(reading, given.key, &key));
    WEIR_TRY(kubeflow_text(reading, given.value, &value));
    if (key == NULL || key[0] == '\0') {
        return kubeflow_refuse(reading, at,
                               "name the taint that it tolerates: there is none "
                               "that stands for all");
    }
    if (is_any && value != NULL && value[0] != '\0') {
        return kubeflow_wrong(reading, given.value, "none where the operator is Exists");
    }
    json_t *toleration = json_pack("{s:s}", "key", key);
    if (!is_any) {
        json_object_set_new(toleration, "value", weir_json_string(value != NULL ? value : "", ""));
    }
    json_array_append_new(list, toleration);
    return WEIR_OK;
}

static weir_status read_tolerations(struct kubeflow_reading *reading, struct kubeflow_place at,
                                    json_t *spec)
{
    json_t *list = kubeflow_keep(reading, json_array());
    for (size_t i = 0; i < json_array_size(at.value); i++) {
        WEIR_TRY(read_toleration(reading, kubeflow_item(reading, at, i), list));
    }
    if (json_array_size(list) > 0) {
        json_object_set(spec, "tolerations", list);
    } else {
        kubeflow_mark(reading, at);
    }
    return WEIR_OK;
}

/* Kubernetes' own of 30 s, where nothing is said: programs reckon with it. */
static weir_status read_grace(struct kubeflow_reading *reading, struct kubeflow_place at,
                              json_t *spec)
{
    int64_t seconds = GRACE_FALLBACK_S;
    WEIR_TRY(kubeflow_integer(reading, at, 0, GRACE_MOST_S, &seconds));
    json_object_set_new(spec, "stop_grace_ms", json_integer(seconds * 1000));
    return WEIR_OK;
}

static weir_status take_container(struct kubeflow_reading *reading, struct kubeflow_place list,
                                  struct kubeflow_pod *pod)
{
    if (json_array_size(list.value) == 0) {
        return kubeflow_wrong(reading, list.path != NULL ? list : pod->at, "a container");
    }
    pod->container = kubeflow_item(reading, list, 0);
    return json_array_size(list.value) == 1
               ? WEIR_OK
               : kubeflow_refuse(reading, kubeflow_item(reading, list, 1),
                                 "a task is one program: leave out what stands beside it");
}

static void remark_metadata(struct kubeflow_reading *reading, struct kubeflow_place at)
{
    const char *name;
    struct kubeflow_place member;
    for (void *it = NULL; kubeflow_next(reading, at, &it, &name, &member);) {
        if (kubeflow_is_there(member)) {
            kubeflow_remark(reading, member, "tasks have no names and labels of their own");
        }
        kubeflow_mark(reading, member);
    }
    if (json_object_size(at.value) == 0) {
        kubeflow_mark(reading, at);
    }
}

weir_status kubeflow_pod_read(struct kubeflow_reading *reading, struct kubeflow_draft *draft,
                              struct kubeflow_place at, struct kubeflow_pod *out)
{
    struct template template = {0};
    struct pod_spec given = {0};
    *out = (struct kubeflow_pod){.at = at, .spec = kubeflow_keep(reading, json_object())};
    WEIR_TRY(
        kubeflow_fields(reading, at, template_fields, WEIR_ARRAY_LEN(template_fields), &template));
    WEIR_TRY(
        kubeflow_fields(reading, template.spec, pod_fields, WEIR_ARRAY_LEN(pod_fields), &given));
    remark_metadata(reading, template.metadata);
    out->restart_policy = given.restart_policy;
    WEIR_TRY(take_container(reading, given.containers, out));
    WEIR_TRY(read_container(reading, draft, given.volumes, out));
    WEIR_TRY(read_grace(reading, given.grace, out->spec));
    WEIR_TRY(read_selector(reading, given.selector, out->spec));
    WEIR_TRY(read_tolerations(reading, given.tolerations, out->spec));
    WEIR_TRY(kubeflow_draft_priority(reading, draft, given.priority_class));
    return kubeflow_draft_priority(reading, draft, given.priority);
}

weir_status kubeflow_pod_check_command(struct kubeflow_reading *reading,
                                       const struct kubeflow_pod *pod)
{
    return json_object_get(pod->spec, "argv") != NULL
               ? WEIR_OK
               : kubeflow_refuse(reading, kubeflow_member(reading, pod->container, "command"),
                                 "is needed: the entry point of an image is not used here");
}

/* ---- are two alike? ------------------------------------------------------------------------------- */

/* Members of a specification, and where they stand in a template. */
static const struct part {
    const char *member, *path;
    bool is_resource;
} parts[] = {
    {"argv", ".spec.containers[0].command", false},
    {"image", ".spec.containers[0].image", false},
    {"volumes", ".spec.volumes", false},
    {"env", ".spec.containers[0].env", false},
    {"secrets", ".spec.containers[0].env", false},
    {"cpus", ".spec.containers[0].resources", true},
    {"memory_max_bytes", ".spec.containers[0].resources", true},
    {"disk_max_bytes", ".spec.containers[0].resources", true},
    {"resources", ".spec.containers[0].resources", true},
    {"node_selector", ".spec.nodeSelector", false},
    {"tolerations", ".spec.tolerations", false},
    {"stop_grace_ms", ".spec.terminationGracePeriodSeconds", false},
};

weir_status kubeflow_pods_check(struct kubeflow_reading *reading, const struct kubeflow_pod *first,
                                const char *first_role, const struct kubeflow_pod *pod,
                                const char *role, enum kubeflow_unlike may)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(parts); i++) {
        const json_t *one = json_object_get(first->spec, parts[i].member);
        const json_t *other = json_object_get(pod->spec, parts[i].member);
        bool is_alike = one == other || (one != NULL && other != NULL && json_equal(one, other));
        if (!is_alike && !(parts[i].is_resource && may == KUBEFLOW_UNLIKE_RESOURCES)) {
            return weir_error_set(reading->err, WEIR_ERR_UNSUPPORTED,
                                  "%s%s: differs from that of %s: all tasks of a job run the same "
                                  "program with the same resources; let the program find out that "
                                  "it is %s, by its rank",
                                  pod->at.path, parts[i].path, first_role, role);
        }
    }
    return WEIR_OK;
}
