#include "cluster/kubernetes/check.h"

#include "cluster/kubernetes/job.h"
#include "cluster/kubernetes/rights.h"
#include "cluster/kubernetes/shown.h"

#include <stdlib.h>
#include <string.h>

#define DRY_RUN_TAG "weir-check"
#define ANSWER_MS   5000 /* a cluster that is silent is known soon */

/* ---- its version ------------------------------------------------------------------------------ */

/* "27+" is 27. */
static int64_t number_of(const char *text)
{
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

static weir_status check_version(struct weir_kube *kube, struct weir_arena *arena,
                                 const char **out_missing, struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "GET", .path = "/version", .timeout_ms = ANSWER_MS};
    const struct weir_kube_config *config = weir_kube_config_of(kube);
    json_t *version;
    weir_status status = weir_kube_call(kube, &call, arena, &version, NULL, err);
    if (status != WEIR_OK) {
        struct weir_error said = *err;
        return weir_error_set(err, status, "%s: %s", config->from, said.message);
    }
    int64_t major = number_of(weir_kube_text(version, "major")),
            minor = number_of(weir_kube_text(version, "minor"));
    const char *name = weir_kube_text(version, "gitVersion");
    if (major == 0) {
        *out_missing = weir_arena_printf(arena, "%s: what answers at %s is no API server",
                                         config->from, config->servers[0]);
    } else if (major == 1 && minor < KUBERNETES_MINOR_MIN) {
        *out_missing =
            weir_arena_printf(arena, "the cluster has Kubernetes %s: 1.%d or newer is needed",
                              name != NULL ? name : "?", KUBERNETES_MINOR_MIN);
    }
    json_decref(version);
    return WEIR_OK;
}

/* ---- rights ----------------------------------------------------------------------------------- */

static json_t *review_of(const struct kubernetes_right *right, const char *space)
{
    const char *slash = strchr(right->resource, '/');
    size_t len = slash != NULL ? (size_t)(slash - right->resource) : strlen(right->resource);
    return json_pack("{s:s,s:s,s:{s:{s:s,s:s,s:s%,s:s,s:s}}}", "apiVersion",
                     "authorization.k8s.io/v1", "kind", "SelfSubjectAccessReview", "spec",
                     "resourceAttributes", "verb", right->verb, "group", right->group, "resource",
                     right->resource, len, "subresource", slash != NULL ? slash + 1 : "",
                     "namespace", right->is_cluster_wide ? "" : space);
}

static weir_status is_allowed(struct weir_kube *kube, const struct kubernetes_right *right,
                              const char *space, struct weir_arena *arena, bool *out,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *review = review_of(right, space);
    const struct weir_kube_call call = {
        .method = "POST",
        .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        .body = review};
    json_t *answer;
    WEIR_TRY(weir_kube_call(kube, &call, arena, &answer, NULL, err));
    *out = json_is_true(weir_kube_at(answer, "status.allowed"));
    json_decref(answer);
    return WEIR_OK;
}

/* The first right of these that lacks, in a namespace. */
static weir_status check_rights(struct weir_kube *kube, const bool needs[KUBERNETES_N_RIGHT_WHO],
                                const char *space, struct weir_arena *arena,
                                const char **out_missing, struct weir_error *err)
{
    for (size_t i = 0; i < kubernetes_n_rights && *out_missing == NULL; i++) {
        const struct kubernetes_right *right = &kubernetes_rights[i];
        bool is_held = false;
        if (!needs[right->who]) {
            continue;
        }
        WEIR_TRY(is_allowed(kube, right, space, arena, &is_held, err));
        if (!is_held) {
            *out_missing = weir_arena_printf(
                arena,
                "the role lacks the verb \"%s\" on %s%s%s, %s%s: Weir needs it %s; `weir cluster "
                "manifest` prints roles that have it",
                right->verb, right->resource, right->group[0] != '\0' ? " of " : "", right->group,
                right->is_cluster_wide ? "cluster-wide" : "in the namespace ",
                right->is_cluster_wide ? "" : space, right->purpose);
        }
    }
    return WEIR_OK;
}

/* The same, in each namespace. */
static weir_status check_rights_everywhere(struct kubernetes_link *link,
                                           const struct kubernetes_options *options,
                                           const bool needs[KUBERNETES_N_RIGHT_WHO],
                                           struct weir_arena *arena, const char **out_missing,
                                           struct weir_error *err)
{
    size_t n;
    const char **spaces = kubernetes_link_namespaces(link, options, arena, &n);
    for (size_t i = 0; i < n && *out_missing == NULL; i++) {
        WEIR_TRY(
            check_rights(kubernetes_link_kube(link), needs, spaces[i], arena, out_missing, err));
    }
    return WEIR_OK;
}

/* ---- what is there ---------------------------------------------------------------------------- */

static weir_status check_kueue(struct weir_kube *kube, const struct kubernetes_options *options,
                               struct weir_arena *arena, const char **out_missing,
                               struct weir_error *err)
{
    const struct weir_kube_call call = {.method = "GET", .path = "/apis/kueue.x-k8s.io"};
    weir_status status = WEIR_OK;
    if (kubernetes_is_scheduled_by(options, KUBERNETES_BY_KUEUE)) {
        status = weir_kube_call(kube, &call, arena, NULL, NULL, err);
    }
    if (status == WEIR_ERR_NOT_FOUND) {
        *out_missing = "scheduler: Kueue is not installed in this cluster (it has no API group "
                       "kueue.x-k8s.io): install it, or set scheduler=cluster";
        return WEIR_OK;
    }
    return status;
}

static weir_status check_pools(struct kubernetes_link *link,
                               const struct kubernetes_options *options, struct weir_arena *arena,
                               struct kubernetes_pool **out, size_t *out_n,
                               const char **out_missing, struct weir_error *err)
{
    WEIR_TRY(kubernetes_link_pools(link, arena, out, out_n, err));
    if (*out_n > 0) {
        return WEIR_OK;
    }
    if (options->pool_label != NULL) {
        *out_missing = weir_arena_printf(
            arena, "pool_label: no node%s has the label \"%s\"",
            options->node_selector != NULL ? " that the node_selector matches" : "",
            options->pool_label);
    } else {
        *out_missing = options->node_selector != NULL
                           ? "node_selector: no node of the cluster has these labels"
                           : "the cluster has no nodes";
    }
    return WEIR_OK;
}

/* What the API server says of an object, without making it. */
static weir_status try_object(struct kubernetes_link *link, const char *group, const char *resource,
                              const char *space, const json_t *object, struct weir_arena *arena,
                              const char **out_missing, struct weir_error *err)
{
    const struct weir_kube_call call = {
        .method = "POST",
        .path = weir_arena_printf(arena, "%s/namespaces/%s/%s", group, space, resource),
        .query = "dryRun=All&fieldValidation=Strict",
        .body = object};
    weir_status status = weir_kube_call(kubernetes_link_kube(link), &call, arena, NULL, NULL, err);
    if (status == WEIR_OK || status == WEIR_ERR_CONFLICT) {
        return WEIR_OK;
    }
    if (status != WEIR_ERR_UNAVAILABLE) {
        *out_missing =
            weir_arena_printf(arena, "%s in the namespace %s are refused by the API server: %s",
                              resource, space, err->message);
        return WEIR_OK;
    }
    return status;
}

/* One of a Job's pods: what it would be refused for, a Job is not. */
static json_t *pod_of(const json_t *job)
{
    json_t *pod = json_deep_copy(weir_kube_at(job, "spec.template"));
    json_object_set_new(pod, "apiVersion", json_string("v1"));
    json_object_set_new(pod, "kind", json_string("Pod"));
    json_object_set_new(weir_kube_at(pod, "metadata"), "name", json_string(DRY_RUN_TAG));
    return pod;
}

/* A pool's smallest Job, and a pod of it. */
static weir_status try_job(struct kubernetes_link *link, const struct kubernetes_options *options,
                           const struct kubernetes_pool *pool, const char *queue,
                           struct weir_arena *arena, const char **out_missing,
                           struct weir_error *err)
{
    const struct weir_node_request request = {.tag = DRY_RUN_TAG,
                                              .pool = pool->offer.name,
                                              .n_nodes = 1,
                                              .cpu_slots = 1,
                                              .queue = queue,
                                              .agent = {.server = "http://server"}};
    const char *space = kubernetes_link_namespace(link, options, queue);
    json_t *made;
    WEIR_TRY(kubernetes_job_make(options, pool, 1, &request, arena, &made, err));
    WEIR_AUTO(weir_json_auto_free) json_t *job = made;
    WEIR_TRY(try_object(link, "/apis/batch/v1", "jobs", space, job, arena, out_missing, err));
    if (*out_missing != NULL) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_json_auto_free) json_t *pod = pod_of(job);
    return try_object(link, "/api/v1", "pods", space, pod, arena, out_missing, err);
}

/* Namespaces and classes of queues are tried, each once. */
static weir_status try_jobs(struct kubernetes_link *link, const struct kubernetes_options *options,
                            const struct kubernetes_pool *pool, struct weir_arena *arena,
                            const char **out_missing, struct weir_error *err)
{
    const char *queue;
    json_t *payer;
    WEIR_TRY(try_job(link, options, pool, NULL, arena, out_missing, err));
    json_object_foreach((json_t *)(uintptr_t)options->queues, queue, payer)
    {
        if (*out_missing == NULL) {
            WEIR_TRY(try_job(link, options, pool, queue, arena, out_missing, err));
        }
    }
    return WEIR_OK;
}

weir_status kubernetes_check(struct kubernetes_link *link, const struct kubernetes_options *options,
                             struct weir_arena *arena, const char **out_missing,
                             struct weir_error *err)
{
    struct weir_kube *kube = kubernetes_link_kube(link);
    struct kubernetes_pool *pools = NULL;
    size_t n_pools = 0;
    const bool needs[KUBERNETES_N_RIGHT_WHO] = {
        [KUBERNETES_RIGHT_ALWAYS] = true,
        [KUBERNETES_RIGHT_WEIR] = kubernetes_is_scheduled_by(options, KUBERNETES_BY_WEIR)};
    *out_missing = NULL;
    WEIR_TRY(check_version(kube, arena, out_missing, err));
    if (*out_missing == NULL) {
        WEIR_TRY(check_rights_everywhere(link, options, needs, arena, out_missing, err));
    }
    if (*out_missing == NULL) {
        WEIR_TRY(check_kueue(kube, options, arena, out_missing, err));
    }
    if (*out_missing == NULL) {
        WEIR_TRY(check_pools(link, options, arena, &pools, &n_pools, out_missing, err));
    }
    return *out_missing == NULL ? try_jobs(link, options, &pools[0], arena, out_missing, err)
                                : WEIR_OK;
}

weir_status kubernetes_check_shown(struct kubernetes_link *link,
                                   const struct kubernetes_options *options,
                                   struct weir_arena *arena, const char **out_missing,
                                   struct weir_error *err)
{
    const bool needs[KUBERNETES_N_RIGHT_WHO] = {[KUBERNETES_RIGHT_JOBS] = true};
    enum kubernetes_shown_place place;
    *out_missing = NULL;
    WEIR_TRY(kubernetes_shown_place(kubernetes_link_kube(link), arena, &place, err));
    return place == KUBERNETES_SHOWN_THERE
               ? check_rights_everywhere(link, options, needs, arena, out_missing, err)
               : WEIR_OK;
}

/* ---- guessed ----------------------------------------------------------------------------------- */

static void guess_text(json_t *document, const char *option, const char *value)
{
    if (value != NULL && json_object_get(document, option) == NULL) {
        json_object_set_new(document, option, json_string(value));
    }
}

/* The kubeconfig and its context are kept by their names: what is current can change. */
weir_status kubernetes_guess(json_t *document, struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_kube_place place = {
        .file = json_string_value(json_object_get(document, "kubeconfig")),
        .context = json_string_value(json_object_get(document, "context")),
        .namespace_name = json_string_value(json_object_get(document, "namespace"))};
    struct weir_kube_config config;
    WEIR_TRY(weir_kube_config_load(&place, arena, &config, err));
    guess_text(document, "kubeconfig", config.file);
    guess_text(document, "context", config.context);
    guess_text(document, "namespace", config.namespace_name);
    return WEIR_OK;
}
