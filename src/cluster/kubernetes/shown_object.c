#include "cluster/kubernetes/shown_object.h"

#include "cluster/kubernetes/block.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/macros.h"
#include "base/uuid.h"
#include "kube/client.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* An object's name has so much of a job's name, and of the end of its identifier. */
#define NAME_BYTES 40
#define TAIL_BYTES 12

/* What Weir writes of an object; what else stands there does not count. */
static const char *const spec_members[] = {"name", "project", "queue", "kind", "server"};
static const char *const status_members[] = {"job",   "state",     "reason",
                                             "nodes", "startTime", "completionTime"};

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t hash_members(uint64_t hash, const json_t *object, const char *const *names,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *text = json_dumps(json_object_get(object, names[i]),
                                JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        hash = weir_hash_text(hash, text != NULL ? text : "");
        hash = weir_hash_bytes(hash, "", 1);
        free(text);
    }
    return hash;
}

static uint64_t hash_spec(const char *label, const json_t *spec)
{
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, label != NULL ? label : "");
    return hash_members(hash, spec, spec_members, WEIR_ARRAY_LEN(spec_members));
}

static uint64_t hash_status(const json_t *status)
{
    return hash_members(WEIR_HASH_BEGIN, status, status_members, WEIR_ARRAY_LEN(status_members));
}

uint64_t shown_server_hash(const char *server)
{
    return weir_hash_text(WEIR_HASH_BEGIN, server != NULL ? server : "");
}

uint64_t shown_spec_hash(const struct weir_shown_job *job, const char *server)
{
    WEIR_AUTO(weir_json_auto_free) json_t *spec = shown_spec(job, server);
    return hash_spec(job->id, spec);
}

uint64_t shown_status_hash(const struct weir_shown_job *job)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    WEIR_AUTO(weir_json_auto_free) json_t *status = shown_status(job, &arena);
    return hash_status(status);
}

/* ---- what is there --------------------------------------------------------------------------- */

static int32_t place_of_finalizer(const json_t *object)
{
    size_t i;
    json_t *one;
    json_array_foreach(weir_kube_at(object, "metadata.finalizers"), i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), SHOWN_FINALIZER) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

struct shown_object *shown_object_read(const json_t *object)
{
    static const size_t texts[] = {offsetof(struct shown_object, uid),
                                   offsetof(struct shown_object, job)};
    const json_t *labels = weir_kube_at(object, "metadata.labels");
    const char *label = json_string_value(json_object_get(labels, SHOWN_JOB_LABEL));
    const char *job = weir_kube_text(object, "status.job");
    const struct shown_object read = {
        .uid = weir_kube_text_or(object, "metadata.uid", ""),
        .job = job != NULL && weir_uuid_is_valid(job) ? job : NULL,
        .spec = hash_spec(label, json_object_get(object, "spec")),
        .status = hash_status(json_object_get(object, "status")),
        .server = shown_server_hash(weir_kube_text(object, "spec.server")),
        .ended_ms = weir_kube_time_ms(weir_kube_text(object, "status.completionTime")),
        .finalizer = place_of_finalizer(object),
        .is_leaving = weir_kube_text(object, "metadata.deletionTimestamp") != NULL,
        .is_refused = weir_kube_is(object, "status.state", SHOWN_NOT_SUPPORTED)};
    return kubernetes_block(&read, sizeof read, texts, WEIR_ARRAY_LEN(texts));
}

/* ---- what should be there -------------------------------------------------------------------- */

/* Small letters, digits and "-", with a letter or digit at both ends; "job" where nothing of it is left. */
static const char *made_name(const char *name, struct weir_arena *arena)
{
    char text[NAME_BYTES + 1];
    size_t n = 0;
    for (size_t i = 0; name != NULL && name[i] != '\0' && n < NAME_BYTES; i++) {
        unsigned char c = (unsigned char)tolower((unsigned char)name[i]);
        bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (is_kept || n > 0) {
            text[n++] = is_kept ? (char)c : '-';
        }
    }
    while (n > 0 && text[n - 1] == '-') {
        n--;
    }
    return n > 0 ? weir_arena_memdup(arena, text, n) : "job";
}

const char *shown_key(const char *space, const struct weir_shown_job *job, struct weir_arena *arena)
{
    size_t len = strlen(job->id);
    return weir_arena_printf(arena, "%s/%s-%s", space, made_name(job->name, arena),
                             job->id + (len > TAIL_BYTES ? len - TAIL_BYTES : 0));
}

json_t *shown_spec(const struct weir_shown_job *job, const char *server)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "name", weir_json_string(job->name, ""), "project",
                     weir_json_string(job->project, ""), "queue", weir_json_string(job->queue, ""),
                     "kind", weir_json_string(job->kind, ""), "server",
                     weir_json_string(server, ""));
}

/* Kubernetes keeps seconds. */
static void put_time(json_t *status, const char *name, int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms > 0) {
        weir_time_format(time_ms, text);
        text[strcspn(text, ".Z")] = '\0';
        json_object_set_new(status, name, json_sprintf("%sZ", text));
    }
}

/* The beginning of a text, to the end of a character. */
static const char *cut(const char *text, size_t bytes, struct weir_arena *arena)
{
    size_t len = strlen(text);
    if (len > bytes) {
        for (len = bytes; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80; len--) {
        }
    }
    return weir_arena_memdup(arena, text, len);
}

json_t *shown_status(const struct weir_shown_job *job, struct weir_arena *arena)
{
    const char *reason = cut(job->reason != NULL ? job->reason : "", SHOWN_REASON_BYTES, arena);
    json_t *status = json_pack("{s:s,s:s,s:o,s:I}", "job", job->id, "state", job->state, "reason",
                               weir_json_string(reason, ""), "nodes", (json_int_t)job->n_nodes);
    put_time(status, "startTime", job->started_ms);
    put_time(status, "completionTime", job->ended_ms);
    return status;
}

json_t *shown_refusal(void)
{
    return json_pack("{s:s,s:s}", "state", SHOWN_NOT_SUPPORTED, "reason",
                     "a WeirJob shows a job of Weir's and makes none, this is not supported: jobs "
                     "are made by `weir apply -f FILE`");
}
