#include "cluster/kubernetes/shown_do.h"

#include "cluster/kubernetes/job.h"

#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define CALL_MS   5000
#define EACH_MS   500    /* from one thing asked of an object to the next */
#define AGAIN_MS  60000  /* by then the mirror has told what came of it */
#define FAILED_MS 300000 /* the longest pause after failures */
#define LOG_MS    60000
#define DOUBLINGS 9

/* One object that something is asked of. */
struct doing {
    struct weir_kube *kube;
    const struct shown_step *step;
    const char *server;
    const char *space, *name;
    struct weir_arena *arena;
};

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *path_of(const struct doing *doing, const char *subresource)
{
    return weir_arena_printf(doing->arena,
                             SHOWN_GROUP_PATH "/namespaces/%s/" SHOWN_RESOURCE "/%s%s",
                             doing->space, doing->name, subresource);
}

/* @param metadata, part  Taken. */
static weir_status apply(const struct doing *doing, const char *subresource, json_t *metadata,
                         const char *part, json_t *value, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", SHOWN_API, "kind", SHOWN_KIND,
                             "metadata", metadata, part, value);
    const struct weir_kube_call call = {.method = "PATCH",
                                        .path = path_of(doing, subresource),
                                        .query = "fieldManager=" KUBERNETES_MANAGER "&force=true",
                                        .content_type = "application/apply-patch+yaml",
                                        .body = body,
                                        .timeout_ms = CALL_MS};
    return weir_kube_call(doing->kube, &call, doing->arena, NULL, NULL, err);
}

static weir_status put_spec(const struct doing *doing, struct weir_error *err)
{
    const struct weir_shown_job *job = doing->step->told->job;
    json_t *metadata =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:[s]}", "name", doing->name, "namespace", doing->space,
                  "labels", KUBERNETES_MANAGED_LABEL, KUBERNETES_MANAGER, SHOWN_JOB_LABEL, job->id,
                  "finalizers", SHOWN_FINALIZER);
    return apply(doing, "", metadata, "spec", shown_spec(job, doing->server), err);
}

/* @param status  Taken. */
static weir_status put_status(const struct doing *doing, json_t *status, struct weir_error *err)
{
    json_t *metadata = json_pack("{s:s,s:s}", "name", doing->name, "namespace", doing->space);
    return apply(doing, "/status", metadata, "status", status, err);
}

static weir_status put_state(const struct doing *doing, struct weir_error *err)
{
    return put_status(doing, shown_status(doing->step->told->job, doing->arena), err);
}

/* The finalizer at its place; if another stands there by now it is refused, and the mirror tells of it. */
static weir_status release(const struct doing *doing, struct weir_error *err)
{
    const char *at = weir_arena_printf(doing->arena, "/metadata/finalizers/%d",
                                       (int)doing->step->object->finalizer);
    WEIR_AUTO(weir_json_auto_free)
    json_t *patch = json_pack("[{s:s,s:s,s:s},{s:s,s:s}]", "op", "test", "path", at, "value",
                              SHOWN_FINALIZER, "op", "remove", "path", at);
    const struct weir_kube_call call = {.method = "PATCH",
                                        .path = path_of(doing, ""),
                                        .query = "fieldManager=" KUBERNETES_MANAGER,
                                        .content_type = "application/json-patch+json",
                                        .body = patch,
                                        .timeout_ms = CALL_MS};
    return weir_kube_call(doing->kube, &call, doing->arena, NULL, NULL, err);
}

/* That object, and no other that has its name by now. */
static weir_status delete_it(const struct doing *doing, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *options = json_pack("{s:s,s:s,s:{s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                                "preconditions", "uid", doing->step->object->uid);
    const struct weir_kube_call call = {.method = "DELETE",
                                        .path = path_of(doing, ""),
                                        .body = options,
                                        .timeout_ms = CALL_MS,
                                        .takes_no = true};
    return weir_kube_call(doing->kube, &call, doing->arena, NULL, NULL, err);
}

static weir_status do_step(const struct doing *doing, struct weir_error *err)
{
    switch (doing->step->what) {
    case SHOWN_PUT:
        WEIR_TRY(put_spec(doing, err));
        return put_state(doing, err);
    case SHOWN_STATE:
        return put_state(doing, err);
    case SHOWN_RELEASE:
        return release(doing, err);
    case SHOWN_REMOVE:
        if (doing->step->object->finalizer >= 0) {
            WEIR_TRY(release(doing, err));
        }
        return delete_it(doing, err);
    case SHOWN_REFUSE:
        return put_status(doing, shown_refusal(), err);
    case SHOWN_NOTHING:
    case SHOWN_DELETED:
        break;
    }
    return WEIR_OK;
}

/* What is gone meanwhile needs nothing more. */
static weir_status carry_out(const struct doing *doing, struct weir_error *err)
{
    weir_status status = do_step(doing, err);
    bool was_there = doing->step->object != NULL && doing->step->what != SHOWN_PUT;
    return status == WEIR_ERR_NOT_FOUND && was_there ? WEIR_OK : status;
}

/* ---- what was asked -------------------------------------------------------------------------- */

/* The place of a key among them, or where it would be. */
static size_t place_of(const struct shown_do *doing, const char *key, bool *is_there)
{
    size_t low = 0, high = doing->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(doing->asked[middle].key, key);
        if (order == 0) {
            *is_there = true;
            return middle;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    *is_there = false;
    return low;
}

static struct shown_asked *asked_of(struct shown_do *doing, const char *key)
{
    bool is_there;
    size_t at = place_of(doing, key, &is_there);
    if (!is_there) {
        weir_xgrow(&doing->asked, sizeof doing->asked[0], doing->n, &doing->cap);
        memmove(&doing->asked[at + 1], &doing->asked[at], (doing->n - at) * sizeof doing->asked[0]);
        doing->asked[at] = (struct shown_asked){.key = weir_xstrdup(key)};
        doing->n++;
    }
    return &doing->asked[at];
}

/* What is not due any more need not be known. */
static void forget(struct shown_do *doing, int64_t now_ms)
{
    size_t n = 0;
    for (size_t i = 0; i < doing->n; i++) {
        bool is_kept =
            now_ms < doing->asked[i].again_ms || now_ms < doing->asked[i].due_ms ||
            (doing->asked[i].n_failed > 0 && now_ms < doing->asked[i].due_ms + FAILED_MS);
        if (is_kept) {
            doing->asked[n++] = doing->asked[i];
        } else {
            free(doing->asked[i].key);
        }
    }
    doing->n = n;
}

void shown_do_fini(struct shown_do *doing)
{
    for (size_t i = 0; i < doing->n; i++) {
        free(doing->asked[i].key);
    }
    free(doing->asked);
    *doing = (struct shown_do){.n = 0};
}

static uint64_t hash_of(const struct shown_step *step)
{
    const struct shown_object *object = step->object;
    const uint64_t parts[] = {step->what,
                              step->told != NULL ? step->told->spec : 0,
                              step->told != NULL ? step->told->status : 0,
                              object != NULL,
                              object != NULL ? object->spec : 0,
                              object != NULL ? object->status : 0,
                              object != NULL ? (uint64_t)object->finalizer : 0,
                              object != NULL && object->is_leaving};
    return weir_hash_bytes(WEIR_HASH_BEGIN, parts, sizeof parts);
}

static int64_t due_of(const struct shown_asked *asked, uint64_t hash)
{
    return asked->n_failed == 0 && asked->asked == hash ? WEIR_MAX(asked->due_ms, asked->again_ms)
                                                        : asked->due_ms;
}

static void log_failure(struct shown_do *doing, const struct shown_step *step,
                        const struct weir_error *err)
{
    int64_t now_ms = weir_mono_ms();
    if (now_ms < doing->log_due_ms) {
        doing->n_unlogged++;
        return;
    }
    weir_log(WEIR_LOG_WARN, "weirjob_not_written", WEIR_KV_STR("weirjob", step->key),
             WEIR_KV_STR("error", err->message), WEIR_KV_INT("others", doing->n_unlogged));
    doing->log_due_ms = now_ms + LOG_MS;
    doing->n_unlogged = 0;
}

static void note(struct shown_do *doing, struct shown_asked *asked, const struct shown_step *step,
                 weir_status status, const struct weir_error *err)
{
    int64_t now_ms = weir_mono_ms();
    asked->asked = hash_of(step);
    if (status != WEIR_OK) {
        int64_t pause_ms = (int64_t)EACH_MS << WEIR_MIN(asked->n_failed, (unsigned)DOUBLINGS);
        log_failure(doing, step, err);
        asked->n_failed++;
        asked->due_ms = now_ms + WEIR_MIN(pause_ms, (int64_t)FAILED_MS);
        return;
    }
    asked->n_failed = 0;
    asked->due_ms = now_ms + EACH_MS;
    asked->again_ms = now_ms + AGAIN_MS;
}

/* ---- all of a plan --------------------------------------------------------------------------- */

static weir_status do_one(struct shown_do *doing, struct shown_asked *asked,
                          const struct shown_step *step, const char *server,
                          struct weir_arena *arena)
{
    const char *slash = strchr(step->key, '/');
    struct weir_error err;
    if (slash == NULL) {
        return WEIR_OK;
    }
    const struct doing one = {.kube = doing->kube,
                              .step = step,
                              .server = server,
                              .space =
                                  weir_arena_memdup(arena, step->key, (size_t)(slash - step->key)),
                              .name = slash + 1,
                              .arena = arena};
    weir_status status = carry_out(&one, &err);
    if (status == WEIR_ERR_CANCELLED) { /* it is being stopped */
        return status;
    }
    note(doing, asked, step, status, &err);
    return status;
}

int64_t shown_do(struct shown_do *doing, const struct shown_step *steps, size_t n,
                 const char *server, struct weir_arena *arena)
{
    int64_t due_ms = INT64_MAX;
    size_t n_calls = 0, n_refusals = 0;
    forget(doing, weir_mono_ms());
    for (size_t i = 0; i < n; i++) {
        if (steps[i].what == SHOWN_DELETED) {
            continue;
        }
        struct shown_asked *asked = asked_of(doing, steps[i].key);
        int64_t now_ms = weir_mono_ms(), its_due_ms = due_of(asked, hash_of(&steps[i]));
        bool is_refusal = steps[i].what == SHOWN_REFUSE;
        if (now_ms < its_due_ms || n_calls >= SHOWN_CALLS_MAX ||
            (is_refusal && n_refusals >= SHOWN_REFUSALS)) {
            due_ms = WEIR_MIN(due_ms, WEIR_MAX(its_due_ms, now_ms + EACH_MS));
            continue;
        }
        n_calls++;
        n_refusals += is_refusal;
        weir_status status = do_one(doing, asked, &steps[i], server, arena);
        if (status == WEIR_ERR_UNAVAILABLE || status == WEIR_ERR_CANCELLED) {
            return asked->due_ms;
        }
        due_ms = status != WEIR_OK ? WEIR_MIN(due_ms, asked->due_ms) : due_ms;
    }
    return due_ms;
}
