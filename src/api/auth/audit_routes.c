/** GET /audit, GET /audit/verify: the audit, and whether it is whole (store/chain.h). */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"

#include "store/chain.h"

weir_status api_audit_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t since = api_query_time(call, "since", INT64_MIN);
    int64_t until = api_query_time(call, "until", INT64_MAX);
    const struct weir_filter filters[] = {WEIR_FILTER_TEXT("topic", EQ, AUDIT_TOPIC),
                                          WEIR_FILTER_INT("time_ms", GE, since),
                                          WEIR_FILTER_INT("time_ms", LT, until)};
    return api_list_numbered_where(call, txn, filters, WEIR_ARRAY_LEN(filters), err);
}

weir_status api_audit_verify(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_chain_report reports[WEIR_N_TRAILS];
    for (enum weir_trail trail = WEIR_TRAIL_ACTS; trail < WEIR_N_TRAILS; trail++) {
        const char *text = api_query_text(call, weir_trail_text(trail));
        const char *what =
            weir_arena_printf(call->arena, "query parameter %s", weir_trail_text(trail));
        struct weir_chain_pin pin;
        if (text != NULL) {
            WEIR_TRY(weir_chain_pin_parse(what, text, &pin, err));
        }
        WEIR_TRY(weir_chain_verify(txn, trail, text != NULL ? &pin : NULL, &reports[trail], err));
    }
    api_answer(call, weir_chain_reports_json(reports));
    return WEIR_OK;
}
