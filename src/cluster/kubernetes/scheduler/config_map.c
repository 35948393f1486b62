#include "cluster/kubernetes/scheduler/config_map.h"

#include "cluster/kubernetes/job.h"

#include <string.h>

static weir_status check_is_ours(const json_t *found, const char *name, struct weir_error *err)
{
    const char *manager = json_string_value(
        json_object_get(weir_kube_at(found, "metadata.labels"), KUBERNETES_MANAGED_LABEL));
    return manager != NULL && strcmp(manager, KUBERNETES_MANAGER) == 0
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_CONFLICT,
                     "%s is there and is not Weir's: it has no label " KUBERNETES_MANAGED_LABEL
                     "=" KUBERNETES_MANAGER "; name one that is not there, Weir makes it",
                     name);
}

/* The object that was looked at is changed, and no other; its owners are added to. */
static weir_status change(struct weir_kube *kube, const char *path, const json_t *wanted,
                          struct weir_arena *arena, struct weir_kube_refusal *refusal,
                          struct weir_error *err)
{
    const struct weir_kube_call look = {.method = "GET", .path = path};
    WEIR_AUTO(weir_json_auto_free) json_t *found = NULL, *patch = NULL;
    WEIR_TRY(weir_kube_call(kube, &look, arena, &found, refusal, err));
    WEIR_TRY(check_is_ours(found, weir_kube_text_or(wanted, "metadata.name", ""), err));
    patch =
        json_pack("{s:{s:O?,s:O?},s:O?}", "metadata", "uid", weir_kube_at(found, "metadata.uid"),
                  "ownerReferences", weir_kube_at(wanted, "metadata.ownerReferences"), "data",
                  json_object_get(wanted, "data"));
    const struct weir_kube_call call = {.method = "PATCH",
                                        .path = path,
                                        .body = patch,
                                        .content_type = "application/strategic-merge-patch+json",
                                        .takes_no = true};
    return weir_kube_call(kube, &call, arena, NULL, refusal, err);
}

weir_status config_map_write(struct weir_kube *kube, const json_t *wanted, struct weir_arena *arena,
                             struct weir_kube_refusal *refusal, struct weir_error *err)
{
    const char *folder =
        weir_arena_printf(arena, "/api/v1/namespaces/%s/configmaps",
                          weir_kube_text_or(wanted, "metadata.namespace", "default"));
    const struct weir_kube_call call = {
        .method = "POST", .path = folder, .body = wanted, .takes_no = true};
    weir_status status = weir_kube_call(kube, &call, arena, NULL, refusal, err);
    if (status != WEIR_ERR_CONFLICT) {
        return status;
    }
    const char *path =
        weir_arena_printf(arena, "%s/%s", folder, weir_kube_text_or(wanted, "metadata.name", ""));
    return change(kube, path, wanted, arena, refusal, err);
}
