#include "cluster/kubernetes/link.h"

#include "cluster/kubernetes/job.h"
#include "cluster/kubernetes/report.h"
#include "cluster/kubernetes/scheduler/scheduler.h"
#include "cluster/kubernetes/shown.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#define WAIT_MS       10000 /* for the first lists */
#define STALE_MS      90000 /* bookmarks come once a minute */
#define DELETED_MS    60000
#define JOBS_EACH_MAX 8 /* asked for by name */
#define EVENTS_MAX    8 /* asked for by one look */
#define MANAGED       KUBERNETES_MANAGED_LABEL "=" KUBERNETES_MANAGER

struct kubernetes_link {
    struct weir_arena arena;
    struct weir_kube *kube;
    struct weir_kube_mirror *nodes, *pods;
    struct kubernetes_options options; /* what nodes are read by: copied */
    struct kubernetes_scheduler *scheduler;
    struct kubernetes_shown *shown;
};

/* ---- made and ended -------------------------------------------------------------------------- */

static void *read_node(void *context, const json_t *node)
{
    const struct kubernetes_link *link = context;
    return kubernetes_node_read(&link->options, node);
}

static void *read_pod(void *context, const json_t *pod)
{
    (void)context;
    return kubernetes_pod_read(pod);
}

/* Options outlive their document where mirrors read nodes by them. */
static void copy_options(struct kubernetes_link *link, const struct kubernetes_options *options)
{
    link->options = (struct kubernetes_options){
        .device = weir_arena_strdup(&link->arena, options->device),
        .pool_label = weir_arena_strdup(&link->arena, options->pool_label),
        .node_selector = json_deep_copy(options->node_selector),
        .tolerations = json_deep_copy(options->tolerations)};
}

static weir_status open_kube(struct kubernetes_link *link, const struct kubernetes_options *options,
                             struct weir_error *err)
{
    size_t n = json_array_size(options->servers);
    const char **servers = WEIR_ARENA_ARRAY(&link->arena, n + 1, const char *);
    for (size_t i = 0; i < n; i++) {
        servers[i] = json_string_value(json_array_get(options->servers, i));
    }
    const struct weir_kube_place place = {.file = options->kubeconfig,
                                          .context = options->context,
                                          .namespace_name = options->namespace_name,
                                          .servers = servers,
                                          .n_servers = n};
    struct weir_kube_config config;
    WEIR_TRY(weir_kube_config_load(&place, &link->arena, &config, err));
    return weir_kube_open(&config, &link->kube, err);
}

static weir_status start_mirrors(struct kubernetes_link *link, struct weir_error *err)
{
    const struct weir_kube_mirror_config nodes = {.kube = weir_kube_config_of(link->kube),
                                                  .path = "/api/v1/nodes",
                                                  .digest = read_node,
                                                  .digest_context = link};
    const struct weir_kube_mirror_config pods = {.kube = weir_kube_config_of(link->kube),
                                                 .path = "/api/v1/pods",
                                                 .digest = read_pod,
                                                 .deleted_ms = DELETED_MS};
    WEIR_TRY(weir_kube_mirror_start(&nodes, &link->nodes, err));
    return weir_kube_mirror_start(&pods, &link->pods, err);
}

static weir_status make(struct kubernetes_link *link, const struct kubernetes_options *options,
                        struct weir_error *err)
{
    const char *wrong = kubernetes_options_wrong(options, &link->arena);
    if (wrong != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "%s", wrong);
    }
    copy_options(link, options);
    WEIR_TRY(open_kube(link, options, err));
    return start_mirrors(link, err);
}

weir_status kubernetes_link_get(struct weir_driver_link *link, struct kubernetes_link **out,
                                struct weir_error *err)
{
    if (link->kept == NULL) {
        struct kubernetes_link *made = weir_xalloc(sizeof *made);
        *made = (struct kubernetes_link){0};
        weir_arena_init(&made->arena, 0);
        weir_status status = make(made, link->options, err);
        if (status != WEIR_OK) {
            kubernetes_link_close(made);
            return status;
        }
        link->kept = made;
    }
    *out = link->kept;
    return WEIR_OK;
}

void kubernetes_link_close(void *kept)
{
    struct kubernetes_link *link = kept;
    kubernetes_scheduler_stop(link->scheduler);
    kubernetes_shown_stop(link->shown);
    weir_kube_mirror_stop(link->nodes);
    weir_kube_mirror_stop(link->pods);
    weir_kube_close(link->kube);
    json_decref((json_t *)(uintptr_t)link->options.node_selector);
    json_decref((json_t *)(uintptr_t)link->options.tolerations);
    weir_arena_fini(&link->arena);
    free(link);
}

struct weir_kube *kubernetes_link_kube(struct kubernetes_link *link)
{
    return link->kube;
}

weir_status kubernetes_link_tend(struct kubernetes_link *link,
                                 const struct kubernetes_options *options,
                                 const struct weir_sched_queue *queues, size_t n_queues,
                                 struct weir_error *err)
{
    if (link->scheduler == NULL) {
        WEIR_TRY(kubernetes_scheduler_start(weir_kube_config_of(link->kube), options,
                                            &link->scheduler, err));
    }
    kubernetes_scheduler_tend(link->scheduler, queues, n_queues);
    return WEIR_OK;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

const char *kubernetes_link_namespace(const struct kubernetes_link *link,
                                      const struct kubernetes_options *options, const char *queue)
{
    const char *space = kubernetes_options_payer(options, queue).namespace_name;
    return space != NULL ? space : weir_kube_config_of(link->kube)->namespace_name;
}

static void add_once(const char **names, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp(names[i], name) == 0) {
            return;
        }
    }
    names[(*n)++] = name;
}

const char **kubernetes_link_namespaces(const struct kubernetes_link *link,
                                        const struct kubernetes_options *options,
                                        struct weir_arena *arena, size_t *out_n)
{
    const char **names =
        WEIR_ARENA_ARRAY(arena, json_object_size(options->queues) + 1, const char *);
    const char *queue;
    json_t *payer;
    *out_n = 0;
    add_once(names, out_n, kubernetes_link_namespace(link, options, NULL));
    json_object_foreach((json_t *)(uintptr_t)options->queues, queue, payer)
    {
        add_once(names, out_n, kubernetes_link_namespace(link, options, queue));
    }
    return names;
}

/* ---- jobs that people see ---------------------------------------------------------------------- */

weir_status kubernetes_link_shown(struct kubernetes_link *link,
                                  const struct kubernetes_options *options,
                                  struct weir_arena *arena, struct kubernetes_shown **out,
                                  struct weir_error *err)
{
    if (link->shown == NULL) {
        size_t n;
        const char **spaces = kubernetes_link_namespaces(link, options, arena, &n);
        WEIR_TRY(
            kubernetes_shown_start(weir_kube_config_of(link->kube), spaces, n, &link->shown, err));
    }
    *out = link->shown;
    return WEIR_OK;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* What a look at both mirrors gathers; all of it in the arena. */
struct gathered {
    struct weir_arena *arena;
    const struct kubernetes_node **nodes;
    size_t n_nodes, nodes_cap;
    struct kubernetes_use *uses;
};

static void gather_node(void *context, const struct weir_kube_object *object)
{
    struct gathered *gathered = context;
    const struct kubernetes_node *node = object->digest;
    struct kubernetes_node *copy = WEIR_ARENA_NEW(gathered->arena, struct kubernetes_node);
    *copy = *node;
    copy->name = weir_arena_strdup(gathered->arena, node->name);
    copy->pool = weir_arena_strdup(gathered->arena, node->pool);
    copy->model = weir_arena_strdup(gathered->arena, node->model);
    copy->device = weir_arena_strdup(gathered->arena, node->device);
    copy->closed = weir_arena_strdup(gathered->arena, node->closed);
    weir_arena_grow(gathered->arena, &gathered->nodes, sizeof(void *), gathered->n_nodes,
                    &gathered->nodes_cap);
    gathered->nodes[gathered->n_nodes++] = copy;
}

static void gather_use(void *context, const struct weir_kube_object *object)
{
    struct gathered *gathered = context;
    const struct kubernetes_pod *pod = object->digest;
    bool is_there = !object->is_deleted && !pod->is_over && pod->node != NULL;
    struct kubernetes_use *use =
        is_there ? kubernetes_use_of(gathered->uses, gathered->n_nodes, pod->node) : NULL;
    if (use != NULL) {
        use->cpu_milli += pod->cpu_milli;
        use->own_cpu_milli += pod->is_of_node ? pod->cpu_milli : 0;
        use->own_memory_bytes += pod->is_of_node ? pod->memory_bytes : 0;
    }
}

weir_status kubernetes_link_pools(struct kubernetes_link *link, struct weir_arena *arena,
                                  struct kubernetes_pool **out, size_t *out_n,
                                  struct weir_error *err)
{
    struct gathered gathered = {.arena = arena};
    WEIR_TRY(weir_kube_mirror_look(link->nodes, WAIT_MS, STALE_MS, gather_node, &gathered, err));
    gathered.uses = WEIR_ARENA_ARRAY(arena, gathered.n_nodes + 1, struct kubernetes_use);
    for (size_t i = 0; i < gathered.n_nodes; i++) {
        gathered.uses[i].node = gathered.nodes[i]->name;
    }
    WEIR_TRY(weir_kube_mirror_look(link->pods, WAIT_MS, STALE_MS, gather_use, &gathered, err));
    kubernetes_pools_make(gathered.nodes, gathered.n_nodes, gathered.uses, gathered.n_nodes, arena,
                          out, out_n);
    return WEIR_OK;
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* What is seen of an allocation, while it is gathered. */
struct seen {
    struct kubernetes_facts facts;
    struct kubernetes_pod *pods;
    size_t pods_cap, gone_cap;
    bool *is_gone;
    size_t i_tag; /* place among the tags that were asked for */
};

struct watch {
    struct weir_arena *arena;
    struct seen *seen; /* sorted by tag */
    size_t n;
    struct gathered gathered;
};

static int by_tag(const void *a, const void *b)
{
    const struct seen *left = a, *right = b;
    return strcmp(left->facts.tag, right->facts.tag);
}

static struct seen *find_seen(const struct watch *watch, const char *tag)
{
    const struct seen key = {.facts = {.tag = tag}};
    return bsearch(&key, watch->seen, watch->n, sizeof watch->seen[0], by_tag);
}

static void see_pod(void *context, const struct weir_kube_object *object)
{
    struct watch *watch = context;
    const struct kubernetes_pod *pod = object->digest;
    struct seen *seen = pod->allocation != NULL ? find_seen(watch, pod->allocation) : NULL;
    if (seen == NULL) {
        return;
    }
    struct kubernetes_pod *copy = WEIR_ARENA_NEW(watch->arena, struct kubernetes_pod);
    *copy = *pod;
    copy->node = weir_arena_strdup(watch->arena, pod->node);
    copy->name = weir_arena_strdup(watch->arena, pod->name);
    copy->namespace_name = weir_arena_strdup(watch->arena, pod->namespace_name);
    copy->said = weir_arena_strdup(watch->arena, pod->said);
    copy->why = weir_arena_strdup(watch->arena, pod->why);
    size_t n = seen->facts.n_pods++;
    weir_arena_grow(watch->arena, &seen->facts.pods, sizeof(void *), n, &seen->pods_cap);
    weir_arena_grow(watch->arena, &seen->is_gone, sizeof seen->is_gone[0], n, &seen->gone_cap);
    seen->facts.pods[n] = copy;
    seen->is_gone[n] = object->is_deleted;
    seen->facts.is_gone = seen->is_gone;
}

/* Jobs of a namespace that a selector finds, each for its allocation. @param keep  What those lie in. */
static weir_status see_jobs(struct kubernetes_link *link, struct watch *watch, const char *space,
                            const char *selector, json_t *keep, struct weir_error *err)
{
    const char *next = "";
    do {
        const struct weir_kube_call call = {
            .method = "GET",
            .path = weir_arena_printf(watch->arena, "/apis/batch/v1/namespaces/%s/jobs", space),
            .query = weir_arena_printf(watch->arena, "%s&limit=500%s%s", selector,
                                       next[0] != '\0' ? "&continue=" : "",
                                       weir_kube_escape(next, watch->arena))};
        json_t *page, *job;
        size_t i;
        WEIR_TRY(weir_kube_call(link->kube, &call, watch->arena, &page, NULL, err));
        json_array_foreach(json_object_get(page, "items"), i, job)
        {
            const char *name = weir_kube_text(job, "metadata.name");
            struct seen *seen = name != NULL ? find_seen(watch, name) : NULL;
            if (seen != NULL) {
                json_array_append(keep, job);
                seen->facts.job = job;
            }
        }
        const char *more = weir_kube_text(page, "metadata.continue");
        next = more != NULL ? weir_arena_strdup(watch->arena, more) : "";
        json_decref(page);
    } while (next[0] != '\0');
    return WEIR_OK;
}

/* Selectors of the Jobs that have to be asked for: a few by their names, since ended ones stay for an hour; else all of ours. */
static const char **selectors_of(const struct watch *watch, size_t *out_n)
{
    const char **list = WEIR_ARENA_ARRAY(watch->arena, JOBS_EACH_MAX, const char *);
    *out_n = 0;
    for (size_t i = 0; i < watch->n; i++) {
        const struct kubernetes_facts *facts = &watch->seen[i].facts;
        if (!kubernetes_needs_job(facts)) {
            continue;
        }
        if (*out_n == JOBS_EACH_MAX) {
            list[0] = weir_arena_printf(watch->arena, "labelSelector=%s",
                                        weir_kube_escape(MANAGED, watch->arena));
            *out_n = 1;
            break;
        }
        list[(*out_n)++] =
            weir_arena_printf(watch->arena, "fieldSelector=metadata.name%%3D%s", facts->tag);
    }
    return list;
}

static weir_status see_all_jobs(struct kubernetes_link *link,
                                const struct kubernetes_options *options, struct watch *watch,
                                json_t *keep, struct weir_error *err)
{
    size_t n, n_selectors;
    const char **spaces = kubernetes_link_namespaces(link, options, watch->arena, &n);
    const char **selectors = selectors_of(watch, &n_selectors);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n_selectors; k++) {
            WEIR_TRY(see_jobs(link, watch, spaces[i], selectors[k], keep, err));
        }
    }
    return WEIR_OK;
}

/* What the API told last of a Job, in the arena; NULL: nothing, or it cannot be asked. */
static const char *last_event(struct kubernetes_link *link, const json_t *job,
                              struct weir_arena *arena)
{
    const char *space = weir_kube_text(job, "metadata.namespace"),
               *uid = weir_kube_text(job, "metadata.uid"), *said = NULL;
    const char *selector = weir_arena_printf(arena, "involvedObject.uid=%s", uid);
    const struct weir_kube_call call = {
        .method = "GET",
        .path = weir_arena_printf(arena, "/api/v1/namespaces/%s/events", space),
        .query = weir_arena_printf(arena, "fieldSelector=%s&limit=50",
                                   weir_kube_escape(selector, arena))};
    int64_t last_ms = -1;
    json_t *list = NULL, *event;
    size_t i;
    if (space == NULL || uid == NULL ||
        weir_kube_call(link->kube, &call, arena, &list, NULL, NULL) != WEIR_OK) {
        return NULL;
    }
    json_array_foreach(json_object_get(list, "items"), i, event)
    {
        const char *message = weir_kube_text(event, "message"),
                   *time = weir_kube_text(event, "lastTimestamp");
        int64_t time_ms =
            weir_kube_time_ms(time != NULL ? time : weir_kube_text(event, "eventTime"));
        if (message != NULL && time_ms >= last_ms) {
            last_ms = time_ms;
            said = message;
        }
    }
    said = weir_arena_strdup(arena, said);
    json_decref(list);
    return said;
}

/* A node of it that takes nothing new. */
static void close_nodes(const struct watch *watch, struct weir_allocation_report *report)
{
    for (size_t i = 0; i < report->n_nodes && report->closed_node == NULL; i++) {
        for (size_t k = 0; k < watch->gathered.n_nodes; k++) {
            const struct kubernetes_node *node = watch->gathered.nodes[k];
            if (node->closed != NULL && strcmp(node->name, report->nodes[i]) == 0) {
                report->closed_node = report->nodes[i];
                report->closed_why = node->closed;
            }
        }
    }
}

static weir_status look(struct kubernetes_link *link, const struct kubernetes_options *options,
                        struct watch *watch, json_t *keep, struct weir_allocation_report *out,
                        struct weir_error *err)
{
    WEIR_TRY(
        weir_kube_mirror_look(link->nodes, WAIT_MS, STALE_MS, gather_node, &watch->gathered, err));
    WEIR_TRY(weir_kube_mirror_look(link->pods, WAIT_MS, STALE_MS, see_pod, watch, err));
    WEIR_TRY(see_all_jobs(link, options, watch, keep, err));
    size_t n_events = 0;
    for (size_t i = 0; i < watch->n; i++) {
        struct seen *seen = &watch->seen[i];
        if (kubernetes_needs_event(&seen->facts) && n_events++ < EVENTS_MAX) {
            seen->facts.event = last_event(link, seen->facts.job, watch->arena);
        }
        kubernetes_report(&seen->facts, watch->arena, &out[seen->i_tag]);
        close_nodes(watch, &out[seen->i_tag]);
    }
    return WEIR_OK;
}

weir_status kubernetes_poll(struct kubernetes_link *link, const struct kubernetes_options *options,
                            const char *const *tags, size_t n, struct weir_arena *arena,
                            struct weir_allocation_report *out, struct weir_error *err)
{
    struct watch watch = {.arena = arena,
                          .seen = WEIR_ARENA_ARRAY(arena, n + 1, struct seen),
                          .n = n,
                          .gathered = {.arena = arena}};
    json_t *keep = json_array();
    for (size_t i = 0; i < n; i++) {
        watch.seen[i] = (struct seen){.facts = {.tag = tags[i]}, .i_tag = i};
    }
    qsort(watch.seen, n, sizeof watch.seen[0], by_tag);
    weir_status status = look(link, options, &watch, keep, out, err);
    json_decref(keep);
    return status;
}
