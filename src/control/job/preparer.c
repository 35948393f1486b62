#include "control/job/preparer.h"

#include "base/log.h"
#include "store/stmt.h"
#include "store/table.h"

#include <stdio.h>
#include <string.h>

/** A pipeline that is FREEZING. */
struct freezing {
    char *ion, *pipeline, *id, *run;
    int64_t training;
    struct weir_dataset dataset; /**< name NULL: what it makes is not known (any more). */
};

struct look {
    struct preparer *preparer;
    struct control control;
    struct freezing *items;
    size_t n;
    /* Of one that has ended. */
    const struct freezing *ended;
    struct weir_ion_event event;
};

static const char sql_freezing[] =
    "SELECT p.ion, p.name, p.training, p.run FROM ion_pipelines p JOIN ions i"
    " ON i.name = p.ion WHERE p.state = 'FREEZING'"
    " AND i.state = 'ACTIVE' ORDER BY p.id";

/* ---- which --------------------------------------------------------------------------------- */

static weir_status list_rows(struct look *look, struct weir_txn *txn, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_arena *arena = look->control.arena;
    bool has_row = true;
    WEIR_TRY(weir_stmt_open(txn, sql_freezing, WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row && look->n < PREPARER_MAX) {
        struct freezing *one = &look->items[look->n++];
        one->ion = weir_stmt_text(stmt, 0, arena);
        one->pipeline = weir_stmt_text(stmt, 1, arena);
        one->training = weir_stmt_int(stmt, 2);
        one->run = weir_stmt_text(stmt, 3, arena);
        one->id = weir_arena_printf(arena, "%s:%s", one->ion, one->pipeline);
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    return WEIR_OK;
}

/** @return CORRUPT: nobody can say what it makes. */
static weir_status find_dataset(struct look *look, struct weir_txn *txn, struct freezing *one,
                                struct weir_error *err)
{
    struct weir_ion ion;
    struct weir_ion_doc doc;
    struct weir_arena *arena = look->control.arena;
    WEIR_TRY(weir_ion_load_doc(txn, one->ion, arena, &ion, &doc, err));
    const struct weir_ion_doc_pipeline *pipeline = weir_ion_doc_pipeline(&doc, one->pipeline);
    weir_status status =
        pipeline != NULL && pipeline->output != NULL
            ? weir_txn_get(txn, &weir_dataset_resource, pipeline->output, arena, &one->dataset, err)
            : WEIR_ERR_NOT_FOUND;
    if (status == WEIR_ERR_NOT_FOUND) {
        one->dataset.name = NULL;
        status = WEIR_OK;
    }
    return status;
}

/* Of an ION that cannot be loaded the engine has an alert: its rows stay as they are. */
static weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    size_t n = 0;
    look->n = 0;
    WEIR_TRY(list_rows(look, txn, err));
    for (size_t i = 0; i < look->n; i++) {
        weir_status status = find_dataset(look, txn, &look->items[i], err);
        if (status == WEIR_OK) {
            look->items[n++] = look->items[i];
        } else if (status != WEIR_ERR_CORRUPT) {
            return status;
        }
    }
    look->n = n;
    return WEIR_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static weir_status end_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct look *look = context;
    json_array_clear(look->control.publish);
    return control_ion_event(&look->control, txn, look->ended->ion, &look->event, err);
}

/** The pipeline learns how its freeze ended. @return Whether it did. */
static bool tell(struct look *look, const struct freezing *one, int64_t version, const char *why)
{
    struct weir_error err = {0};
    look->ended = one;
    look->event =
        (struct weir_ion_event){.type = why == NULL ? WEIR_ION_EVENT_FROZEN : WEIR_ION_EVENT_FAILED,
                                .actor = "system",
                                .pipeline = one->pipeline,
                                .training = one->training,
                                .version = version,
                                .note = why};
    if (weir_store_write(look->preparer->store, end_in, look, &err) != WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "freeze_not_told", WEIR_KV_STR("pipeline", one->id),
                 WEIR_KV_STR("error", err.message));
        return false; /* tried again with the next look */
    }
    control_publish_all(&look->preparer->listener, look->control.publish);
    return true;
}

/* ---- freezes --------------------------------------------------------------------------------- */

static struct preparer_freeze *find(struct preparer *preparer, const struct freezing *one)
{
    for (size_t i = 0; i < PREPARER_MAX; i++) {
        struct preparer_freeze *freeze = &preparer->freezes[i];
        if (strcmp(freeze->pipeline, one->id) == 0 && freeze->training == one->training &&
            strcmp(freeze->dataset, one->dataset.name) == 0) {
            return freeze;
        }
    }
    return NULL;
}

/** Those of runs that freeze no more. */
static void forget(struct look *look)
{
    for (size_t i = 0; i < PREPARER_MAX; i++) {
        struct preparer_freeze *freeze = &look->preparer->freezes[i];
        bool is_there = false;
        for (size_t k = 0; k < look->n; k++) {
            is_there = is_there || (look->items[k].dataset.name != NULL &&
                                    find(look->preparer, &look->items[k]) == freeze);
        }
        if (!is_there) {
            *freeze = (struct preparer_freeze){0};
        }
    }
}

static struct preparer_freeze *ensure(struct preparer *preparer, const struct freezing *one)
{
    struct preparer_freeze *freeze = find(preparer, one);
    for (size_t i = 0; i < PREPARER_MAX && freeze == NULL; i++) {
        if (preparer->freezes[i].pipeline[0] == '\0') {
            freeze = &preparer->freezes[i];
            freeze->training = one->training;
            (void)snprintf(freeze->pipeline, sizeof freeze->pipeline, "%s", one->id);
            (void)snprintf(freeze->dataset, sizeof freeze->dataset, "%s", one->dataset.name);
        }
    }
    return freeze;
}

/** Begin, unless one of somebody else's is in progress: it may have looked too early. */
static void begin(struct look *look, const struct freezing *one, struct preparer_freeze *freeze)
{
    enum freeze_state state = FREEZE_DONE;
    struct weir_error ignored;
    struct freezer *freezer = look->preparer->freezer;
    json_decref(freezer_look(freezer, one->dataset.name, 0, &state, NULL));
    char *actor = weir_arena_printf(look->control.arena, "ion/%s", one->ion);
    if (state == FREEZE_RUNNING || freezer_start(freezer, &one->dataset, actor, one->run,
                                                 &freeze->number, &ignored) != WEIR_OK) {
        freeze->number = 0; /* tried again with the next look */
    }
}

static void look_at(struct look *look, const struct freezing *one)
{
    enum freeze_state state;
    struct weir_error why = {0};
    if (one->dataset.name == NULL) {
        (void)tell(look, one, 0, "the dataset that it makes is not there");
        return;
    }
    struct preparer_freeze *freeze = ensure(look->preparer, one);
    if (freeze == NULL) {
        return; /* PREPARER_MAX others */
    }
    json_t *view = freeze->number > 0 ? freezer_look(look->preparer->freezer, one->dataset.name,
                                                     freeze->number, &state, &why)
                                      : NULL;
    bool has_ended = false;
    if (view == NULL) {
        begin(look, one, freeze);
    } else if (state == FREEZE_DONE) {
        json_t *version = json_object_get(view, "version");
        has_ended = tell(look, one, json_integer_value(json_object_get(version, "version")), NULL);
    } else if (state == FREEZE_FAILED && why.status == WEIR_ERR_CANCELLED) {
        freeze->number = 0; /* the server stops: the next one begins again */
    } else if (state == FREEZE_FAILED) {
        has_ended =
            tell(look, one, 0,
                 weir_arena_printf(look->control.arena,
                                   "no version could be made of what it wrote: %s", why.message));
    }
    json_decref(view);
    if (has_ended) {
        *freeze = (struct preparer_freeze){0};
    }
}

bool preparer_look(struct preparer *preparer, int64_t now_ms)
{
    struct weir_arena arena;
    struct weir_error err;
    if (preparer->freezer == NULL) {
        return false;
    }
    weir_arena_init(&arena, 0);
    struct look look = {.preparer = preparer,
                        .control = {.arena = &arena,
                                    .now_ms = now_ms,
                                    .actor = "system",
                                    .state_dir = preparer->state_dir,
                                    .publish = json_array()},
                        .items = WEIR_ARENA_ARRAY(&arena, PREPARER_MAX, struct freezing)};
    if (weir_store_read(preparer->store, list_in, &look, &err) != WEIR_OK) {
        look.n = 0;
    } else {
        forget(&look);
    }
    for (size_t i = 0; i < look.n; i++) {
        look_at(&look, &look.items[i]);
    }
    bool is_any = look.n > 0;
    json_decref(look.control.publish);
    weir_arena_fini(&arena);
    return is_any;
}
