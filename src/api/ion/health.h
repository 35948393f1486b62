/** Health of IONs, and what reports of drift make of it. */
#ifndef WEIR_API_HEALTH_H
#define WEIR_API_HEALTH_H

#include "api/core/call.h"

/** Add what the server shows of itself now (control/vitals.h) and no alert in the list tells yet. Text and list lie in
 *  the call's arena. */
struct weir_alert;
void api_add_vitals(struct api_call *call, struct weir_alert **alerts, size_t *n);

/** Store a report of drift, and raise or resolve its alert. */
struct weir_health_report;
weir_status api_health_store(struct api_call *call, struct weir_txn *txn,
                             const struct weir_health_report *report,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
