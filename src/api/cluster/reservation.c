/** Reservations of nodes: job/reservation.h. */
#include "job/reservation.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "base/clock.h"
#include "store/event.h"
#include "store/table.h"

static weir_status tell(struct api_call *call, struct weir_txn *txn, const char *kind,
                        const struct weir_reservation *of, const char *message,
                        struct weir_error *err)
{
    const struct weir_event event = {.time_ms = call->now_ms,
                                     .topic = "nodes",
                                     .kind = (char *)kind,
                                     .subject =
                                         weir_arena_printf(call->arena, "reservation/%s", of->name),
                                     .actor = (char *)call->actor,
                                     .message = (char *)message};
    return weir_event_append(txn, &event, NULL, err);
}

weir_status api_reservation_create(struct api_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct weir_reservation made = {0};
    char from[WEIR_TIME_TEXT_BYTES], until[WEIR_TIME_TEXT_BYTES];
    WEIR_TRY(weir_record_from_json(&weir_reservation_resource, call->body, WEIR_RECORD_CREATE,
                                   call->arena, &made, err));
    made.created_by = (char *)call->actor;
    WEIR_TRY(weir_reservation_make(txn, &made, call->now_ms, call->arena, err));
    weir_time_format(made.from_ms, from);
    weir_time_format(made.until_ms, until);
    WEIR_TRY(tell(call, txn, "nodes_reserved", &made,
                  weir_arena_printf(
                      call->arena, "%s reserved nodes for %s %s from %s until %s: %.400s.",
                      call->actor, made.project != NULL ? "project" : "queue",
                      made.project != NULL ? made.project : made.queue, from, until, made.nodes),
                  err));
    api_answer_record(call, &weir_reservation_resource, &made);
    return WEIR_OK;
}

weir_status api_reservation_delete(struct api_call *call, struct weir_txn *txn,
                                   struct weir_error *err)
{
    struct weir_reservation gone;
    WEIR_TRY(
        weir_txn_get(txn, &weir_reservation_resource, call->params[0], call->arena, &gone, err));
    WEIR_TRY(weir_txn_delete(txn, &weir_reservation_resource, gone.name, err));
    WEIR_TRY(tell(
        call, txn, "reservation_ended", &gone,
        weir_arena_printf(call->arena, "%s ended reservation %s.", call->actor, gone.name), err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
