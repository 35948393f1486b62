/*
 * The driver of a cluster under Kubernetes: an allocation is one Job, named as its tag, of one pod with an agent per node. Its
 * pods, not the Job's counters, tell how it is; they and the nodes are mirrored (kubernetes/link.h). Nothing else is
 * kept: whatever is known of an allocation, the API server is asked. Jobs are shown to its people as WeirJobs (kubernetes/shown.h).
 */
#include "cluster/driver.h"

#include "cluster/kubernetes/check.h"
#include "cluster/kubernetes/job.h"
#include "cluster/kubernetes/link.h"
#include "cluster/kubernetes/shown.h"

#include <string.h>

static weir_status check(struct weir_driver_link *link, struct weir_arena *arena,
                         const char **out_missing, struct weir_error *err)
{
    struct kubernetes_link *kept;
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    return kubernetes_check(kept, link->options, arena, out_missing, err);
}

static weir_status list(struct weir_driver_link *link, struct weir_arena *arena,
                        struct weir_pool_offer **out, size_t *out_n, struct weir_error *err)
{
    struct kubernetes_link *kept;
    struct kubernetes_pool *pools;
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    WEIR_TRY(kubernetes_link_pools(kept, arena, &pools, out_n, err));
    *out = WEIR_ARENA_ARRAY(arena, *out_n + 1, struct weir_pool_offer);
    for (size_t i = 0; i < *out_n; i++) {
        (*out)[i] = pools[i].offer;
    }
    return WEIR_OK;
}

/* ---- asking for nodes ------------------------------------------------------------------------- */

/* What a request goes through. */
struct asking {
    struct weir_kube *kube;
    const struct weir_node_request *request;
    const char *space; /* namespace */
    struct weir_arena *arena;
};

static const char *path_of(const struct asking *asking, const char *group, const char *resource,
                           const char *name)
{
    return weir_arena_printf(asking->arena, "%s/namespaces/%s/%s%s%s", group, asking->space,
                             resource, name != NULL ? "/" : "", name != NULL ? name : "");
}

static weir_status put_secret(const struct asking *asking, const char *uid, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *secret = kubernetes_secret_make(asking->request, uid, asking->arena);
    const struct weir_kube_call call = {
        .method = "PATCH",
        .path = path_of(asking, "/api/v1", "secrets", asking->request->tag),
        .query = "fieldManager=" KUBERNETES_MANAGER "&force=true",
        .content_type = "application/apply-patch+yaml",
        .body = secret};
    return weir_kube_call(asking->kube, &call, asking->arena, NULL, NULL, err);
}

/* Gone already is as good. */
static weir_status delete (const struct asking *asking, const char *path, struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "DELETE", .path = path, .query = "propagationPolicy=Background"};
    weir_status status = weir_kube_call(asking->kube, &call, asking->arena, NULL, NULL, err);
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

static weir_status delete_secret(const struct asking *asking, struct weir_error *err)
{
    return delete (asking, path_of(asking, "/api/v1", "secrets", asking->request->tag), err);
}

/* The Job of this tag, if it was asked for before. @param out_uid  NULL: it was not. */
static weir_status find_job(const struct asking *asking, const char **out_uid,
                            struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "GET",
        .path = path_of(asking, "/apis/batch/v1", "jobs", NULL),
        .query = weir_arena_printf(asking->arena, "fieldSelector=metadata.name%%3D%s",
                                   asking->request->tag)};
    json_t *list;
    WEIR_TRY(weir_kube_call(asking->kube, &call, asking->arena, &list, NULL, err));
    const json_t *job = json_array_get(json_object_get(list, "items"), 0);
    *out_uid = weir_arena_strdup(asking->arena, weir_kube_text(job, "metadata.uid"));
    json_decref(list);
    return WEIR_OK;
}

/* @return CONFLICT: it was there already. */
static weir_status post_job(const struct asking *asking, const json_t *job, const char **out_uid,
                            struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "POST", .path = path_of(asking, "/apis/batch/v1", "jobs", NULL), .body = job};
    json_t *made;
    WEIR_TRY(weir_kube_call(asking->kube, &call, asking->arena, &made, NULL, err));
    *out_uid = weir_arena_strdup(asking->arena, weir_kube_text(made, "metadata.uid"));
    json_decref(made);
    return WEIR_OK;
}

/* Secret, Job, and that the first goes away with the second: whatever is lost between, the next try goes on with. */
static weir_status make(const struct asking *asking, const json_t *job, struct weir_error *err)
{
    const char *uid;
    WEIR_TRY(find_job(asking, &uid, err));
    WEIR_TRY(put_secret(asking, uid, err));
    if (uid != NULL) {
        return WEIR_OK;
    }
    weir_status status = post_job(asking, job, &uid, err);
    if (status == WEIR_ERR_CONFLICT) { /* the answer to a first try was lost */
        status = find_job(asking, &uid, err);
    } else if (status != WEIR_OK && status != WEIR_ERR_UNAVAILABLE) {
        (void)delete_secret(asking, NULL);
    }
    return status == WEIR_OK ? put_secret(asking, uid, err) : status;
}

static const struct kubernetes_pool *find_pool(const struct kubernetes_pool *pools, size_t n,
                                               const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(pools[i].offer.name, name) == 0) {
            return &pools[i];
        }
    }
    return NULL;
}

/* What the API server refuses for good is the request's fault. */
static weir_status refuse(weir_status status, const struct asking *asking, struct weir_error *err)
{
    if (status == WEIR_OK || status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_NOMEM) {
        return status;
    }
    struct weir_error said = *err;
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "the API server refuses the Job in the namespace %s: %s", asking->space,
                          said.message);
}

static weir_status request(struct weir_driver_link *link, const struct weir_node_request *request,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct kubernetes_options *options = link->options;
    struct kubernetes_link *kept;
    struct kubernetes_pool *pools;
    size_t n;
    weir_arena_init(&arena, 0);
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    WEIR_TRY(kubernetes_link_pools(kept, &arena, &pools, &n, err));
    const struct kubernetes_pool *pool = find_pool(pools, n, request->pool);
    if (pool == NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "the cluster has no pool \"%.80s\"",
                              request->pool);
    }
    const struct asking asking = {.kube = kubernetes_link_kube(kept),
                                  .request = request,
                                  .space = kubernetes_link_namespace(kept, options, request->queue),
                                  .arena = &arena};
    json_t *job;
    WEIR_TRY(kubernetes_job_make(options, pool, n, request, &arena, &job, err));
    weir_status status = make(&asking, job, err);
    json_decref(job);
    return refuse(status, &asking, err);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static weir_status poll_kept(struct weir_driver_link *link, const char *const *tags, size_t n,
                             struct weir_arena *arena, struct weir_allocation_report *out,
                             struct weir_error *err)
{
    struct kubernetes_link *kept;
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    return kubernetes_poll(kept, link->options, tags, n, arena, out, err);
}

static weir_status poll(struct weir_driver_link *link, const char *const *tags, size_t n,
                        struct weir_arena *arena, struct weir_allocation_report *out,
                        struct weir_error *err)
{
    weir_status status = poll_kept(link, tags, n, arena, out, err);
    if (status != WEIR_OK && status != WEIR_ERR_UNAVAILABLE) { /* nothing is known of any */
        struct weir_error said = *err;
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s", said.message);
    }
    return status;
}

/* Nobody says in which namespace it was asked for. */
static weir_status release(struct weir_driver_link *link, const char *tag, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct kubernetes_link *kept;
    size_t n;
    weir_arena_init(&arena, 0);
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    const struct weir_node_request request = {.tag = tag};
    const char **spaces = kubernetes_link_namespaces(kept, link->options, &arena, &n);
    for (size_t i = 0; i < n; i++) {
        const struct asking asking = {.kube = kubernetes_link_kube(kept),
                                      .request = &request,
                                      .space = spaces[i],
                                      .arena = &arena};
        WEIR_TRY(delete (&asking, path_of(&asking, "/apis/batch/v1", "jobs", tag), err));
        WEIR_TRY(delete_secret(&asking, err));
    }
    return WEIR_OK;
}

/* Only where it is to place pods. */
static weir_status tend(struct weir_driver_link *link, const struct weir_sched_queue *queues,
                        size_t n_queues, struct weir_error *err)
{
    struct kubernetes_link *kept;
    if (!kubernetes_is_scheduled_by(link->options, KUBERNETES_BY_WEIR)) {
        return WEIR_OK;
    }
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    return kubernetes_link_tend(kept, link->options, queues, n_queues, err);
}

static weir_status check_show(struct weir_driver_link *link, struct weir_arena *arena,
                              const char **out_missing, struct weir_error *err)
{
    struct kubernetes_link *kept;
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    return kubernetes_check_shown(kept, link->options, arena, out_missing, err);
}

static weir_status shown(struct weir_driver_link *link, struct weir_arena *arena,
                         struct weir_shown *out, struct weir_error *err)
{
    struct kubernetes_link *kept;
    struct kubernetes_shown *shows;
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    WEIR_TRY(kubernetes_link_shown(kept, link->options, arena, &shows, err));
    kubernetes_shown_look(shows, arena, out);
    return WEIR_OK;
}

static weir_status show(struct weir_driver_link *link, const struct weir_showing *showing,
                        struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    const struct kubernetes_options *options = link->options;
    struct weir_showing here = *showing;
    struct kubernetes_link *kept;
    struct kubernetes_shown *shows;
    weir_arena_init(&arena, 0);
    WEIR_TRY(kubernetes_link_get(link, &kept, err));
    WEIR_TRY(kubernetes_link_shown(kept, options, &arena, &shows, err));
    here.server = options->server != NULL ? options->server : showing->server;
    const char **spaces = WEIR_ARENA_ARRAY(&arena, here.n + 1, const char *);
    for (size_t i = 0; i < here.n; i++) {
        spaces[i] = kubernetes_link_namespace(kept, options, here.jobs[i].queue);
    }
    kubernetes_shown_tell(shows, &here, spaces);
    return WEIR_OK;
}

/* Namespace, queue of Kueue's and priority class are names, in which there is no "/"; the image comes last. */
static const char *payer(const void *configured, const char *queue, struct weir_arena *arena)
{
    const struct kubernetes_payer pays = kubernetes_options_payer(configured, queue);
    return weir_arena_printf(arena, "%s/%s/%s/%s",
                             pays.namespace_name != NULL ? pays.namespace_name : "",
                             pays.kueue_queue != NULL ? pays.kueue_queue : "",
                             pays.priority_class != NULL ? pays.priority_class : "",
                             pays.pod_image != NULL ? pays.pod_image : "");
}

static const struct weir_option options[] = {
    WEIR_OPT_JSON(kubernetes_options, kubeconfig, "kubeconfig", TEXT, 0, NULL, 0, 0,
                  "Kubeconfig on the server's machine; without it KUBECONFIG, else ~/.kube/config, "
                  "else the service account of the server's own pod"),
    WEIR_OPT_JSON(kubernetes_options, context, "context", TEXT, 0, NULL, 0, 0,
                  "Context of the kubeconfig; without it its current one"),
    WEIR_OPT_JSON(kubernetes_options, namespace_name, "namespace", TEXT, 0, NULL, 0, 0,
                  "Namespace of the pods; without it the context's"),
    WEIR_OPT_JSON(kubernetes_options, servers, "servers", TEXTS, 0, NULL, 0, 0,
                  "Further addresses of the cluster's API servers, which are tried when one is "
                  "away: [\"https://10.0.0.2:6443\"]"),
    WEIR_OPT_JSON(kubernetes_options, scheduler, "scheduler", TEXT, 0, "cluster", 0, 0,
                  "Who finds nodes for the pods: cluster (its own scheduler), kueue (a LocalQueue "
                  "of Kueue's admits them), or weir (the pods say schedulerName: weir)"),
    WEIR_OPT_JSON(kubernetes_options, kueue_queue, "kueue-queue", TEXT, 0, NULL, 0, 0,
                  "LocalQueue of Kueue's, with scheduler=kueue"),
    WEIR_OPT_JSON(kubernetes_options, priority_class, "priority-class", TEXT, 0, NULL, 0, 0,
                  "PriorityClass of the pods; without it the cluster's default"),
    WEIR_OPT_JSON(kubernetes_options, queues, "queues", JSON, 0, NULL, 0, 0,
                  "Namespace, queue and class of allocations for one queue: {\"vision\": "
                  "{\"namespace\": \"team-vision\", \"priority_class\": \"high\"}}"),
    WEIR_OPT_JSON(kubernetes_options, image, "image", TEXT, 0, NULL, 0, 0,
                  "Image of the pods, with Weir in /weir; without it weir:VERSION, as `make image` "
                  "names it"),
    WEIR_OPT_JSON(kubernetes_options, pod_image, "pod-image", TEXT, 0, NULL, 0, 0,
                  "Image that tasks find in the pods, of any system: \"pytorch/pytorch:2.3.0\"; an "
                  "init container brings Weir into it; without it Weir's own"),
    WEIR_OPT_JSON(kubernetes_options, pull_secrets, "pull-secrets", TEXTS, 0, NULL, 0, 0,
                  "Secrets with which the image is pulled"),
    WEIR_OPT_JSON(kubernetes_options, device, "device", TEXT, 0, NULL, 0, 0,
                  "Extended resource that is an accelerator; without it each whose name ends in "
                  "\"/gpu\""),
    WEIR_OPT_JSON(kubernetes_options, pool_label, "pool-label", TEXT, 0, NULL, 0, 0,
                  "Label of nodes by whose value they are pools; without it those of one shape are "
                  "one"),
    WEIR_OPT_JSON(
        kubernetes_options, topology, "topology", TEXTS, 0, NULL, 0, 0,
        "With scheduler=weir: labels that say where nodes are, the widest first; gangs lie "
        "rather in one place. Without it [\"topology.kubernetes.io/zone\"]"),
    WEIR_OPT_JSON(kubernetes_options, node_selector, "node-selector", MAP, 0, NULL, 0, 0,
                  "Labels that nodes must have: {\"team\": \"ml\"}"),
    WEIR_OPT_JSON(kubernetes_options, tolerations, "tolerations", JSON, 0, NULL, 0, 0,
                  "Taints that the pods tolerate, as Kubernetes has them: [{\"key\": \"ml\", "
                  "\"operator\": \"Exists\"}]; those of accelerators are, if they ask for some"),
    WEIR_OPT_JSON(kubernetes_options, labels, "labels", MAP, 0, NULL, 0, 0,
                  "Further labels of Jobs and pods"),
    WEIR_OPT_JSON(kubernetes_options, annotations, "annotations", MAP, 0, NULL, 0, 0,
                  "Further annotations of Jobs and pods"),
    WEIR_OPT_JSON(kubernetes_options, volumes, "volumes", JSON, 0, NULL, 0, 0,
                  "Folders that tasks see as theirs: [{\"path\": \"/data\", \"claim\": "
                  "\"datasets\"}, {\"path\": \"/home\", \"nfs\": \"10.0.0.3:/home\", \"writable\": "
                  "true}, {\"path\": \"/scratch\", \"host\": \"/scratch\"}]"),
    WEIR_OPT_JSON(kubernetes_options, job_images, "job-images", TEXTS, 0, NULL, 0, 0,
                  "Beginnings of names of images that jobs may want of their pods: "
                  "[\"registry.example/\"]; without it any"),
    WEIR_OPT_JSON(kubernetes_options, job_volumes, "job-volumes", TEXTS, 0, NULL, 0, 0,
                  "Volumes that jobs may want of their pods: [\"claim:datasets:ro\", "
                  "\"nfs:10.0.0.3:/home\"], \"claim:*\" is each claim; queues with a namespace of "
                  "their own have the claims there"),
    WEIR_OPT_JSON(kubernetes_options, runtime_class, "runtime-class", TEXT, 0, NULL, 0, 0,
                  "RuntimeClass of the pods"),
    WEIR_OPT_JSON(
        kubernetes_options, service_account, "service-account", TEXT, 0, NULL, 0, 0,
        "Service account of the pods, whose token they do not get; without it weir-agent"),
    WEIR_OPT_JSON(kubernetes_options, user, "user", INT, 0, "65532", 1, 4294967294,
                  "Number of the user and group that the pods run as"),
    WEIR_OPT_JSON(kubernetes_options, time, "time", TEXT, 0, NULL, 0, 0,
                  "For how long an allocation is asked for if its job does not say: \"8h\"; "
                  "without it until it is released"),
    WEIR_OPT_JSON(kubernetes_options, grace, "grace", TEXT, 0, NULL, 0, 0,
                  "How long a pod that has to go may take to save: \"90s\"; without it a minute"),
    WEIR_OPT_JSON(
        kubernetes_options, server, "server", TEXT, 0, NULL, 0, 0,
        "Address of this server as the pods reach it; without it the one by which it is known"),
    WEIR_OPT_JSON(kubernetes_options, ca_file, "ca-file", TEXT, 0, NULL, 0, 0,
                  "Authorities to trust for https, a file in the pods; without it the system's"),
};

static const struct weir_driver_ops ops = {.makes_pods = true,
                                           .check = check,
                                           .list = list,
                                           .request = request,
                                           .poll = poll,
                                           .release = release,
                                           .tend = tend,
                                           .check_show = check_show,
                                           .shown = shown,
                                           .show = show,
                                           .guess = kubernetes_guess,
                                           .payer = payer,
                                           .close = kubernetes_link_close};

const struct weir_kind weir_driver_kubernetes = {
    .name = "kubernetes",
    .doc = "A cluster under Kubernetes: an allocation is a Job of pods with an agent each, which "
           "the cluster's scheduler, Kueue or Weir finds nodes for.",
    .ops = &ops,
    WEIR_KIND_OPTIONS(kubernetes_options, options),
};
