/** GET /audit, GET /audit/verify: the audit, and whether it is whole (store/chain.h). */
#include "api/api_private.h"

#include "store/chain.h"

#include <stdlib.h>
#include <string.h>

weir_status api_audit_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    int64_t since, until;
    WEIR_TRY(api_query_time(call, "since", INT64_MIN, &since, err));
    WEIR_TRY(api_query_time(call, "until", INT64_MAX, &until, err));
    const struct weir_filter filters[] = {WEIR_FILTER_TEXT("topic", EQ, AUDIT_TOPIC),
                                          WEIR_FILTER_INT("time_ms", GE, since),
                                          WEIR_FILTER_INT("time_ms", LT, until)};
    return api_list_numbered_where(call, txn, filters, WEIR_ARRAY_LEN(filters), err);
}

/* "17:ab12…": what was noted of the chain's end. */
static weir_status read_pin(const struct api_call *call, const char *name,
                            struct weir_chain_pin *pin, const struct weir_chain_pin **out,
                            struct weir_error *err)
{
    const char *text = weir_http_request_query(call->request, name);
    char *end;
    *out = NULL;
    if (text == NULL) {
        return WEIR_OK;
    }
    long long number = strtoll(text, &end, 10);
    if (end == text || *end != ':' || number <= 0 || !weir_blob_name_is_valid(end + 1)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter %s: expected NUMBER:HASH, got \"%.90s\"", name,
                              text);
    }
    *pin = (struct weir_chain_pin){.number = number, .hash = end + 1};
    *out = pin;
    return WEIR_OK;
}

weir_status api_audit_verify(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const names[WEIR_N_TRAILS] = {NULL, "acts", "accesses"};
    struct weir_chain_report reports[WEIR_N_TRAILS];
    for (int trail = WEIR_TRAIL_ACTS; trail < WEIR_N_TRAILS; trail++) {
        struct weir_chain_pin pin;
        const struct weir_chain_pin *given;
        WEIR_TRY(read_pin(call, names[trail], &pin, &given, err));
        WEIR_TRY(weir_chain_verify(txn, (enum weir_trail)trail, given, &reports[trail], err));
    }
    api_answer(call, weir_chain_reports_json(reports));
    return WEIR_OK;
}
