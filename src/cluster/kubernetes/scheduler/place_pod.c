#include "cluster/kubernetes/pod.h"
#include "cluster/kubernetes/scheduler/part.h"
#include "cluster/kubernetes/scheduler/place.h"
#include "cluster/kubernetes/scheduler/rather.h"
#include "cluster/kubernetes/scheduler/reservation.h"

#include "base/amount.h"
#include "base/hash.h"
#include "base/macros.h"
#include "kube/client.h"

#include <string.h>

#define HOST_NAME "kubernetes.io/hostname"

/* ---- what it asks for ------------------------------------------------------------------------- */

static void add_amount(struct place_pod *pod, const char *name, int64_t count)
{
    for (size_t i = 0; i < pod->n_amounts; i++) {
        if (strcmp(pod->amounts[i].name, name) == 0) {
            return;
        }
    }
    if (count > 0) {
        pod->amounts[pod->n_amounts++] =
            (struct place_amount){weir_arena_strdup(&pod->held.arena, name), count};
    }
}

static void add_requests(struct place_pod *pod, const json_t *object, const json_t *requests)
{
    const char *resource;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)requests, resource, value)
    {
        if (strcmp(resource, "cpu") != 0 && strcmp(resource, "memory") != 0) {
            add_amount(pod, resource, (kubernetes_pod_requests(object, resource) + 999) / 1000);
        }
    }
}

/* A port of the host is something of which a node has one. */
static void add_ports(struct place_pod *pod, const json_t *container)
{
    size_t i;
    json_t *port;
    json_array_foreach(weir_kube_at(container, "ports"), i, port)
    {
        json_int_t number = json_integer_value(json_object_get(port, "hostPort"));
        if (number > 0) {
            add_amount(pod,
                       weir_arena_printf(&pod->held.arena, PLACE_PORT "%s/%lld",
                                         weir_kube_text_or(port, "protocol", "TCP"),
                                         (long long)number),
                       1);
        }
    }
}

static size_t count_amounts(const json_t *pod, const char *list)
{
    size_t n = 0, i;
    json_t *one;
    json_array_foreach(weir_kube_at(pod, list), i, one)
    {
        n += json_object_size(weir_kube_at(one, "resources.requests")) +
             json_array_size(weir_kube_at(one, "ports"));
    }
    return n;
}

static void read_amounts(const json_t *object, struct place_pod *pod)
{
    static const char *const lists[] = {"spec.containers", "spec.initContainers"};
    const json_t *overhead = weir_kube_at(object, "spec.overhead");
    size_t n = json_object_size(overhead);
    for (size_t k = 0; k < WEIR_ARRAY_LEN(lists); k++) {
        n += count_amounts(object, lists[k]);
    }
    pod->amounts = WEIR_ARENA_ARRAY(&pod->held.arena, n + 1, struct place_amount);
    pod->cpu_milli = kubernetes_pod_requests(object, "cpu");
    pod->memory_bytes = kubernetes_pod_requests(object, "memory") / 1000;
    for (size_t k = 0; k < WEIR_ARRAY_LEN(lists); k++) {
        size_t i;
        json_t *one;
        json_array_foreach(weir_kube_at(object, lists[k]), i, one)
        {
            add_requests(pod, object, weir_kube_at(one, "resources.requests"));
            add_ports(pod, one);
        }
    }
    add_requests(pod, object, overhead);
}

/* ---- where it may lie ------------------------------------------------------------------------- */

static const char *copy_of(struct place_pod *pod, const char *text)
{
    return weir_arena_strdup(&pod->held.arena, text);
}

static void read_tolerations(const json_t *tolerations, struct place_pod *pod)
{
    size_t i;
    json_t *one;
    pod->tolerations = WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(tolerations) + 1,
                                        struct place_toleration);
    json_array_foreach(tolerations, i, one)
    {
        struct place_toleration *out = &pod->tolerations[pod->n_tolerations++];
        bool is_any = weir_kube_is(one, "operator", "Exists");
        out->key = copy_of(pod, weir_kube_text_or(one, "key", NULL));
        out->effect = copy_of(pod, weir_kube_text_or(one, "effect", NULL));
        out->value = is_any ? NULL : copy_of(pod, weir_kube_text_or(one, "value", ""));
    }
}

static void read_node_terms(const json_t *required, struct place_pod *pod)
{
    const json_t *terms = json_object_get(required, "nodeSelectorTerms");
    size_t i;
    json_t *one;
    pod->has_node_terms = json_is_object(required);
    pod->node_terms =
        WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(terms) + 1, struct select_all);
    json_array_foreach(terms, i, one)
    {
        pod->node_terms[pod->n_node_terms++] = select_read_node_term(one, &pod->held.arena);
    }
}

static void read_spaces(const json_t *term, struct place_pod *pod, struct place_term *out)
{
    const json_t *named = json_object_get(term, "namespaces"),
                 *selector = json_object_get(term, "namespaceSelector");
    size_t i;
    json_t *one;
    out->is_everywhere = json_is_object(selector) && json_object_size(selector) == 0;
    out->has_selector = json_object_size(selector) > 0;
    out->selector = select_read(selector, &pod->held.arena);
    out->spaces = WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(named) + 1, const char *);
    json_array_foreach(named, i, one)
    {
        out->spaces[out->n_spaces++] = copy_of(pod, json_string_value(one));
    }
    if (out->n_spaces == 0 && !json_is_object(selector)) {
        out->spaces[out->n_spaces++] = pod->space;
    }
}

static void read_term(const json_t *term, struct place_pod *pod, struct place_term *out)
{
    char *text = json_dumps(term, JSON_COMPACT | JSON_SORT_KEYS);
    *out = (struct place_term){
        .key = copy_of(pod, weir_kube_text_or(term, "topologyKey", "")),
        .pods = select_read(json_object_get(term, "labelSelector"), &pod->held.arena),
        .text = weir_arena_printf(&pod->held.arena, "%s %s", pod->space, text != NULL ? text : ""),
        .max_skew = json_integer_value(json_object_get(term, "maxSkew"))};
    free(text);
}

static void read_terms(const json_t *terms, struct place_pod *pod, struct place_terms *out)
{
    size_t i;
    json_t *one;
    out->rows = WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(terms) + 1, struct place_term);
    json_array_foreach(terms, i, one)
    {
        struct place_term *row = &out->rows[out->n++];
        read_term(one, pod, row);
        read_spaces(one, pod, row);
        pod->selects_spaces = pod->selects_spaces || row->has_selector;
        pod->sees_spaces = pod->selects_spaces || pod->sees_spaces;
    }
}

static uint32_t number_of(const char *text)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, text);
    return (uint32_t)((hash ^ hash >> 32) & 0x3fffffff) | 1;
}

/* A term that does not bind. */
static void read_rather(const json_t *term, int64_t weight, struct place_pod *pod)
{
    struct place_term *row = &pod->rather.rows[pod->rather.n++];
    read_term(term, pod, row);
    read_spaces(term, pod, row);
    row->weight = (int32_t)WEIR_MAX(WEIR_MIN(weight, (int64_t)RATHER_WEIGHT_MAX),
                                    -(int64_t)RATHER_WEIGHT_MAX);
    pod->sees_spaces = pod->sees_spaces || row->has_selector;
}

/* Hard ones bind; those by hosts are kept by the planner, too, where that costs nothing. */
static void read_spread(const json_t *constraints, struct place_pod *pod)
{
    size_t i;
    json_t *one;
    pod->spread.rows =
        WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(constraints) + 1, struct place_term);
    json_array_foreach(constraints, i, one)
    {
        if (!weir_kube_is(one, "whenUnsatisfiable", "DoNotSchedule")) {
            read_rather(one, RATHER_SPREAD, pod);
            continue;
        }
        struct place_term *row = &pod->spread.rows[pod->spread.n++];
        read_term(one, pod, row);
        read_spaces(one, pod, row);
        if (strcmp(row->key, HOST_NAME) == 0) {
            pod->rather_apart = number_of(row->text);
        }
    }
}

/* @param sign  -1: rather apart. */
static void read_rather_terms(const json_t *preferred, int64_t sign, struct place_pod *pod)
{
    size_t i;
    json_t *one;
    json_array_foreach(preferred, i, one)
    {
        read_rather(json_object_get(one, "podAffinityTerm"),
                    sign * json_integer_value(json_object_get(one, "weight")), pod);
    }
}

static void read_rather_nodes(const json_t *preferred, struct place_pod *pod)
{
    size_t i;
    json_t *one;
    pod->rather_nodes =
        WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(preferred) + 1, struct place_nodes_wish);
    json_array_foreach(preferred, i, one)
    {
        int64_t weight = json_integer_value(json_object_get(one, "weight"));
        pod->rather_nodes[pod->n_rather_nodes++] = (struct place_nodes_wish){
            .nodes = select_read_node_term(json_object_get(one, "preference"), &pod->held.arena),
            .weight = (int32_t)WEIR_MAX(WEIR_MIN(weight, (int64_t)RATHER_WEIGHT_MAX), (int64_t)0)};
    }
}

static void read_place(const json_t *object, struct place_pod *pod)
{
    const json_t *affinity = weir_kube_at(object, "spec.affinity");
#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
    pod->labels = select_labels_read(weir_kube_at(object, "metadata.labels"), &pod->held.arena);
    pod->node_selector =
        select_labels_read(weir_kube_at(object, "spec.nodeSelector"), &pod->held.arena);
    read_tolerations(weir_kube_at(object, "spec.tolerations"), pod);
    read_node_terms(weir_kube_at(affinity, "nodeAffinity." REQUIRED), pod);
    read_terms(weir_kube_at(affinity, "podAffinity." REQUIRED), pod, &pod->with);
    read_terms(weir_kube_at(affinity, "podAntiAffinity." REQUIRED), pod, &pod->apart);
    const json_t *with = weir_kube_at(affinity, "podAffinity." PREFERRED),
                 *apart = weir_kube_at(affinity, "podAntiAffinity." PREFERRED),
                 *spread = weir_kube_at(object, "spec.topologySpreadConstraints");
    pod->rather.rows = WEIR_ARENA_ARRAY(&pod->held.arena,
                                        json_array_size(with) + json_array_size(apart) +
                                            json_array_size(spread) + 1,
                                        struct place_term);
    read_rather_nodes(weir_kube_at(affinity, "nodeAffinity." PREFERRED), pod);
    read_rather_terms(with, 1, pod);
    read_rather_terms(apart, -1, pod);
    read_spread(spread, pod);
#undef PREFERRED
#undef REQUIRED
}

/* One that is made for the pod has the names of both. */
static void read_claims(const json_t *volumes, struct place_pod *pod)
{
    size_t i;
    json_t *one;
    pod->claims =
        WEIR_ARENA_ARRAY(&pod->held.arena, json_array_size(volumes) + 1, struct place_claim);
    json_array_foreach(volumes, i, one)
    {
        const char *name = weir_kube_text(one, "persistentVolumeClaim.claimName");
        bool is_ephemeral = json_is_object(json_object_get(one, "ephemeral"));
        if (name != NULL) {
            pod->claims[pod->n_claims++].key =
                weir_arena_printf(&pod->held.arena, "%s/%s", pod->space, name);
        } else if (is_ephemeral) {
            pod->claims[pod->n_claims++] = (struct place_claim){
                .key = weir_arena_printf(&pod->held.arena, "%s/%s-%s", pod->space, pod->name,
                                         weir_kube_text_or(one, "name", "")),
                .is_ephemeral = true};
        }
    }
}

/* ---- its queue, and how it is ---------------------------------------------------------------- */

/* What a label says, else an annotation; NULL: neither does. */
static const char *note_of(const json_t *object, const char *key)
{
    const char *said =
        json_string_value(json_object_get(weir_kube_at(object, "metadata.labels"), key));
    return said != NULL ? said
                        : json_string_value(
                              json_object_get(weir_kube_at(object, "metadata.annotations"), key));
}

static int64_t number_note(const json_t *object, const char *key)
{
    const char *text = note_of(object, key);
    int64_t milli = 0;
    return text != NULL && weir_amount_parse(text, &milli)
               ? WEIR_MIN(milli / 1000, (int64_t)PLACE_GANG_MAX)
               : 0;
}

/* Weir's own agents' pods are one gang for each allocation. */
static void read_gang(const json_t *object, struct place_pod *pod)
{
    const char *own = note_of(object, KUBERNETES_ALLOCATION_LABEL),
               *gang = own != NULL ? own : note_of(object, PLACE_GANG);
    if (gang == NULL || gang[0] == '\0') {
        return;
    }
    pod->gang = weir_arena_printf(&pod->held.arena, "%s/%s%s", pod->space,
                                  own != NULL ? "allocation " : "", gang);
    pod->gang_size = number_note(object, own != NULL ? KUBERNETES_NODES_LABEL : PLACE_GANG_SIZE);
}

static void read_state(const json_t *object, struct place_pod *pod)
{
    const json_t *scheduled = weir_kube_condition(object, "PodScheduled");
    int64_t deadline_s = json_integer_value(weir_kube_at(object, "spec.activeDeadlineSeconds"));
    pod->has_succeeded = weir_kube_is(object, "status.phase", "Succeeded");
    pod->is_over = pod->has_succeeded || weir_kube_is(object, "status.phase", "Failed");
    pod->is_gated = json_array_size(weir_kube_at(object, "spec.schedulingGates")) > 0;
    pod->created_ms = weir_kube_time_ms(weir_kube_text(object, "metadata.creationTimestamp"));
    pod->gone_ms = weir_kube_time_ms(weir_kube_text(object, "metadata.deletionTimestamp"));
    pod->time_limit_ms = WEIR_MAX(deadline_s, (int64_t)0) * 1000;
    if (weir_kube_is(scheduled, "status", "True")) {
        pod->bound_ms = weir_kube_time_ms(weir_kube_text(scheduled, "lastTransitionTime"));
    } else if (weir_kube_is(scheduled, "reason", "Unschedulable")) {
        pod->said = copy_of(pod, weir_kube_text(scheduled, "message"));
    }
}

static void read_owner(const json_t *object, struct place_pod *pod)
{
    const char *queue = note_of(object, PLACE_QUEUE);
    pod->is_ours = weir_kube_is(object, "spec.schedulerName", PLACE_SCHEDULER);
    pod->queue = queue != NULL && queue[0] != '\0' ? copy_of(pod, queue) : PLACE_DEFAULT_QUEUE;
    pod->priority = json_integer_value(weir_kube_at(object, "spec.priority"));
    pod->never_preempts = weir_kube_is(object, "spec.preemptionPolicy", "Never");
    const char *preemptible = json_string_value(
        json_object_get(weir_kube_at(object, "metadata.labels"), PLACE_PREEMPTIBLE));
    pod->is_preemptible = preemptible == NULL || strcmp(preemptible, "false") != 0;
}

struct place_pod *place_pod_read(const json_t *object)
{
    const char *name = weir_kube_text(object, "metadata.name");
    if (name == NULL) {
        return NULL;
    }
    struct place_pod *pod = weir_xalloc(sizeof *pod);
    *pod = (struct place_pod){.held = {.n_holders = 1}};
    weir_arena_init(&pod->held.arena, 0);
    pod->name = copy_of(pod, name);
    pod->space = copy_of(pod, weir_kube_text_or(object, "metadata.namespace", "default"));
    pod->key = weir_arena_printf(&pod->held.arena, "%s/%s", pod->space, pod->name);
    pod->uid = copy_of(pod, weir_kube_text_or(object, "metadata.uid", ""));
    pod->node = copy_of(pod, weir_kube_text_or(object, "spec.nodeName", NULL));
    pod->nominated = copy_of(pod, weir_kube_text_or(object, "status.nominatedNodeName", NULL));
    read_owner(object, pod);
    read_state(object, pod);
    read_amounts(object, pod);
    read_place(object, pod);
    read_claims(weir_kube_at(object, "spec.volumes"), pod);
    if (pod->is_ours) {
        read_gang(object, pod);
        part_read(object, pod);
    }
    reservation_read(object, pod);
    return pod;
}
