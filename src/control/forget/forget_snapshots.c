/* A person's rows in snapshots. */
#include "control/forget/forget_private.h"

#include "capture/forget.h"
#include "store/stmt.h"

#define SNAPSHOTS " FROM snapshots WHERE :project = '' OR project = :project ORDER BY name"
static const char sql_ids[] = "SELECT id" SNAPSHOTS;
static const char sql_names[] = "SELECT name" SNAPSHOTS;
static const char sql_changed[] =
    "UPDATE snapshots SET changed_ms = :changed, n_rows = :rows, bytes = :bytes WHERE id = :id"
    " AND (changed_ms <> :changed OR :n > 0)";

struct found {
    struct forget_work *work;
    char **ids, **names;
    size_t n;
};

static weir_status find_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct found *found = context;
    struct weir_arena *arena = found->work->arena;
    const struct weir_bind binds[] = {WEIR_BIND_TEXT("project", found->work->record->project)};
    WEIR_TRY(weir_txn_query_texts(txn, sql_ids, binds, 1, arena, &found->ids, &found->n, err));
    return weir_txn_query_texts(txn, sql_names, binds, 1, arena, &found->names, &found->n, err);
}

struct noting {
    const char *id;
    struct weir_snapshot_forgotten result;
};

static weir_status note_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct noting *noting = context;
    return weir_txn_exec(txn, sql_changed,
                         WEIR_BINDS(WEIR_BIND_TEXT("id", noting->id),
                                    WEIR_BIND_INT("changed", noting->result.changed_ms),
                                    WEIR_BIND_INT("rows", noting->result.n_rows),
                                    WEIR_BIND_INT("bytes", noting->result.bytes),
                                    WEIR_BIND_INT("n", noting->result.n_changed)),
                         NULL, err);
}

/* The file first. Killed behind it, the next time finds by its manifest that it was changed. */
static weir_status forget_in(struct forget_work *work, const char *id, struct weir_error *err)
{
    const struct forget *forget = work->forget;
    const struct weir_capture capture = {.state_dir = forget->state_dir, .blobs = forget->blobs};
    struct noting noting = {.id = id};
    forget_step(work, "snapshot");
    weir_status status = weir_snapshot_forget(&capture, id, work->record->person, forget->now_ms,
                                              &noting.result, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return WEIR_OK; /* it is being deleted */
    }
    WEIR_TRY(status);
    forget_step(work, "snapshot's row");
    work->n_snapshots += noting.result.n_changed > 0;
    return weir_store_write(forget->store, note_in, &noting, err);
}

weir_status forget_snapshots(struct forget_work *work, struct weir_error *err)
{
    struct found found = {.work = work};
    WEIR_TRY(weir_store_read(work->forget->store, find_in, &found, err));
    for (size_t i = 0; i < found.n; i++) {
        if (forget_in(work, found.ids[i], err) != WEIR_OK) {
            return weir_error_prefix(err, "snapshot \"%s\": ", found.names[i]);
        }
    }
    return WEIR_OK;
}
