/** Doors: how they stand, locked down and released by hand, and alerts of barred people. */
#include "ion/door.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/ion/door.h"
#include "api/ion/ion.h"
#include "base/names.h"
#include "base/uuid.h"
#include "control/control.h"
#include "ion/ion.h"
#include "ion/order.h"
#include "store/stmt.h"

#include <string.h>

#define NOTE_MAX_BYTES     500
#define ORDERS_OF_DECISION 1000

/* An ION that cannot be loaded says so elsewhere. */
static void add_doors(struct api_call *call, struct weir_txn *txn, const char *name, json_t *items)
{
    struct weir_ion_state state;
    struct weir_ion_door *doors;
    struct weir_error ignored;
    size_t n;
    if (weir_ion_load(txn, name, call->arena, &state, &ignored) != WEIR_OK) {
        return;
    }
    weir_ion_doors(&state, call->arena, &doors, &n);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(items, weir_record_to_json(&weir_ion_door_resource, &doors[i]));
    }
}

weir_status api_door_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    char **names;
    size_t n;
    const char *ion = api_query_text(call, "ion");
    WEIR_TRY(weir_ion_list_active(txn, call->arena, &names, &n, err));
    json_t *items = json_array();
    for (size_t i = 0; i < n; i++) {
        if (ion == NULL || strcmp(ion, names[i]) == 0) {
            add_doors(call, txn, names[i], items);
        }
    }
    api_answer_items(call, items, NULL);
    return WEIR_OK;
}

/* ---- what they were told ---------------------------------------------------------------------- */

weir_status api_order_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_timed(call, txn, "sent_ms", &(struct weir_query){0}, err);
}

/* A few: one for each door of the decision's camera. */
weir_status api_decision_orders(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_decision decision;
    WEIR_TRY(
        weir_txn_get(txn, &weir_decision_resource, call->params[0], call->arena, &decision, err));
    const struct weir_query of = {
        WEIR_FILTERS(
            WEIR_FILTER_TEXT("decision", EQ, decision.id),
            (struct weir_filter){
                .field = "ion", .op = WEIR_OP_EQ, .text = decision.ion, .is_common = true}),
        .condition = "decision IS NOT NULL", .order_by = "sent_ms", .limit = ORDERS_OF_DECISION};
    return api_list_of(call, txn, &of, err);
}

/* ---- lock-down -------------------------------------------------------------------------------- */

static weir_status check_door(struct api_call *call, const struct weir_ion_state *state,
                              struct weir_error *err)
{
    struct weir_ion_door *doors;
    struct weir_nearest nearest = {0};
    size_t n;
    weir_ion_doors(state, call->arena, &doors, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(doors[i].name, call->params[1]) == 0) {
            return WEIR_OK;
        }
        weir_nearest_see(&nearest, call->params[1], strlen(call->params[1]), doors[i].name);
    }
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND, "ion \"%s\" has no door \"%s\"%s%s%s", call->params[0],
        call->params[1], nearest.name != NULL ? "; did you mean \"" : "",
        nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "\"?" : "");
}

static weir_status set_lock_down(struct api_call *call, struct weir_txn *txn, const char *note,
                                 bool is_locked, struct weir_error *err)
{
    struct control control = api_control(call);
    const struct weir_ion_lock_down row = {.ion = (char *)call->params[0],
                                           .door = (char *)call->params[1],
                                           .note = (char *)note,
                                           .actor = (char *)call->actor,
                                           .time_ms = call->now_ms};
    bool has_changed;
    WEIR_TRY(weir_ion_lock_down_set(txn, &row, is_locked, &has_changed, err));
    if (!has_changed) {
        return WEIR_OK;
    }
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_LISTS, .actor = call->actor};
    WEIR_TRY(control_ion_event(&control, txn, call->params[0], &event, err));
    return control_log(&control, txn, "ions", is_locked ? "door_locked_down" : "door_released",
                       weir_arena_printf(call->arena, "ion/%s", call->params[0]),
                       weir_arena_printf(call->arena, "Door %s is %s%s%s", call->params[1],
                                         is_locked ? "locked down" : "released",
                                         note != NULL ? ": " : ".", note != NULL ? note : ""),
                       err);
}

weir_status api_door_lock_down(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    const char *note = NULL;
    WEIR_TRY(api_body_only(call, (const char *const[]){"note", NULL}, err));
    WEIR_TRY(api_body_text(call, "note", &note, err));
    if (note != NULL && !api_is_plain(note, NOTE_MAX_BYTES)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.note: expected at most %d bytes without control characters",
                              NOTE_MAX_BYTES);
    }
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(check_door(call, &state, err));
    WEIR_TRY(set_lock_down(call, txn, note, true, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* Also of a door that the document does not have any more. */
weir_status api_door_release(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    bool is_locked = false;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    for (size_t i = 0; i < state.n_lock_downs; i++) {
        is_locked = is_locked || strcmp(state.lock_downs[i].door, call->params[1]) == 0;
    }
    if (!is_locked) {
        WEIR_TRY(check_door(call, &state, err));
    }
    WEIR_TRY(set_lock_down(call, txn, NULL, false, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

/* ---- barred people ----------------------------------------------------------------------------- */

static const char sql_is_barred[] =
    "SELECT count(*) FROM ion_members WHERE ion = :ion AND person = :person AND list = 'deny'";

static weir_status raise_barred(struct weir_txn *txn, const struct weir_decision *decision,
                                int64_t now_ms, struct weir_arena *arena, bool *out_is_new,
                                struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    WEIR_AUTO(weir_json_auto_free)
    json_t *data =
        json_pack("{s:s,s:s,s:s,s:s}", "decision", decision->id, "pipeline", decision->pipeline,
                  "camera", decision->camera, "person", decision->person);
    if (decision->image != NULL) {
        json_object_set_new(data, "image",
                            json_sprintf("/api/v1/decisions/%s/image", decision->id));
    }
    const struct weir_alert alert = {
        .id = id,
        .key = weir_arena_printf(arena, "barred_at_door:%s:%s:%s", decision->ion, decision->camera,
                                 decision->person),
        .kind = "barred_at_door",
        .subject = weir_arena_printf(arena, "ion/%s", decision->ion),
        .message = weir_arena_printf(arena, "%s, who is barred, is at %s", decision->person,
                                     decision->camera),
        .data = weir_json_text(data, arena),
    };
    return weir_alert_raise(txn, &alert, now_ms, out_is_new, err);
}

weir_status api_barred_raise(struct weir_txn *txn, const struct weir_decision *decisions, size_t n,
                             int64_t now_ms, size_t *out_n_new, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    *out_n_new = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_decision *decision = &decisions[i];
        int64_t is_barred = 0;
        bool is_new = false;
        if (decision->is_sandbox || decision->person == NULL ||
            strcmp(decision->verdict, "deny") != 0 ||
            decision->time_ms < now_ms - API_BARRED_RECENT_MS) {
            continue;
        }
        WEIR_TRY(weir_txn_query_int(txn, sql_is_barred,
                                    WEIR_BINDS(WEIR_BIND_TEXT("ion", decision->ion),
                                               WEIR_BIND_TEXT("person", decision->person)),
                                    0, &is_barred, err));
        if (is_barred > 0) {
            WEIR_TRY(raise_barred(txn, decision, now_ms, &arena, &is_new, err));
        }
        *out_n_new += is_new;
    }
    return WEIR_OK;
}
