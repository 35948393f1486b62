#include "control/engine/watcher.h"

#include "base/file.h"
#include "base/log.h"
#include "control/enrolled.h"

#include <sys/statvfs.h>

#define LOOK_EVERY_MS     2000
#define ENROLLED_EVERY_MS 30000 /* Reads the galleries' manifests. */

/* One look: what is seen, found, and whether alerts differ from it. */
struct look {
    struct watcher *watcher;
    struct weir_arena *arena;
    struct weir_watch_seen seen;
    struct weir_watch_findings findings;
    const char *only_kind;
    int64_t mono_ms;
    size_t n_differs;
};

static void look_at_disk(struct look *look)
{
    struct statvfs fs;
    if (statvfs(look->watcher->state_dir, &fs) == 0) {
        look->seen.disk_bytes = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize;
        look->seen.disk_free_bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
        char *id = weir_arena_alloc(look->arena, WEIR_DISK_ID_BYTES);
        look->seen.disk_id = weir_disk_id(look->watcher->state_dir, id);
    }
}

static weir_status load_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    return weir_watch_load(txn, &look->seen, look->arena, err);
}

static weir_status differs_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    return weir_watch_differs(txn, &look->findings, look->only_kind, look->seen.now_ms, look->arena,
                              &look->n_differs, err);
}

static weir_status sync_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    return weir_watch_sync(txn, &look->findings, look->only_kind, look->seen.now_ms, look->arena,
                           err);
}

static weir_status bring_up_to_date(struct look *look, struct weir_error *err)
{
    struct weir_store *store = look->watcher->store;
    WEIR_TRY(weir_store_read(store, differs_in, look, err));
    if (look->n_differs == 0) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_store_write(store, sync_in, look, err));
    json_t *news = json_array();
    json_array_append_new(news, json_pack("[s,{s:b}]", "alerts", "new", 1));
    control_publish_all(&look->watcher->listener, news);
    json_decref(news);
    return WEIR_OK;
}

/* Who is on a list of an ION and in none of its galleries. */
static void find_not_enrolled(struct look *look, const struct weir_ion_state *ion)
{
    const char **missing;
    size_t n;
    struct weir_error err;
    if (enrolled_missing(look->watcher->blobs, ion, look->arena, &missing, &n, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "gallery_not_read", WEIR_KV_STR("ion", ion->ion.name),
                 WEIR_KV_STR("error", err.message));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        weir_watch_add(
            &look->findings, look->arena,
            (struct weir_watch_finding){
                .key = weir_arena_printf(look->arena, "member_not_enrolled:%s:%s", ion->ion.name,
                                         missing[i]),
                .kind = "member_not_enrolled",
                .subject = weir_arena_printf(look->arena, "ion/%s", ion->ion.name),
                .message = weir_arena_printf(
                    look->arena,
                    "%s is on a list of ION %s, and nobody of that name is enrolled: the "
                    "list does nothing for them.",
                    missing[i], ion->ion.name)});
    }
}

static weir_status look_at_members(struct look *look, struct weir_error *err)
{
    look->findings = (struct weir_watch_findings){0};
    look->only_kind = "member_not_enrolled";
    for (size_t i = 0; i < look->seen.n_ions; i++) {
        find_not_enrolled(look, &look->seen.ions[i]);
    }
    return bring_up_to_date(look, err);
}

/* What is found without the store comes first: it may be why the rest cannot be found. */
static weir_status look_at_server(struct look *look, struct weir_error *err)
{
    look_at_disk(look);
    weir_watch_find(&look->seen, look->arena, &look->findings);
    vitals_find(look->watcher->vitals, look->arena, &look->findings);
    look->only_kind = WEIR_WATCH_SERVER;
    weir_status status = bring_up_to_date(look, err);
    look->only_kind = NULL;
    look->seen.disk_bytes = 0; /* has been told */
    return status;
}

static weir_status look_once(struct look *look, bool with_members, struct weir_error *err)
{
    WEIR_TRY(look_at_server(look, err));
    WEIR_TRY(weir_store_read(look->watcher->store, load_in, look, err));
    weir_watch_find(&look->seen, look->arena, &look->findings);
    refusals_look(&look->watcher->refusals, look->watcher->figures, &look->seen, look->mono_ms,
                  look->arena, &look->findings);
    WEIR_TRY(bring_up_to_date(look, err));
    return with_members ? look_at_members(look, err) : WEIR_OK;
}

void watcher_fini(struct watcher *watcher)
{
    refusals_fini(&watcher->refusals);
}

void watcher_look(struct watcher *watcher, const struct weir_watch_seen *about, int64_t mono_ms)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    if (mono_ms < watcher->next_mono_ms) {
        return;
    }
    bool with_members = watcher->blobs != NULL && mono_ms >= watcher->next_enrolled_mono_ms;
    watcher->next_mono_ms = mono_ms + LOOK_EVERY_MS;
    if (with_members) {
        watcher->next_enrolled_mono_ms = mono_ms + ENROLLED_EVERY_MS;
    }
    weir_arena_init(&arena, 0);
    struct look look = {.watcher = watcher, .arena = &arena, .mono_ms = mono_ms, .seen = *about};
    weir_status status = look_once(&look, with_members, &err);
    vitals_note(watcher->vitals, VITALS_LOOK, status, &err);
    if (status != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "watch_failed", WEIR_KV_STR("error", err.message));
    }
    weir_arena_fini(&arena);
}
