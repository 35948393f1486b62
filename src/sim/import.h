/** What importers share: a trace that grows, texts that are kept once, times as traces write them.
 */
#ifndef WEIR_SIM_IMPORT_H
#define WEIR_SIM_IMPORT_H

#include "sim/csv.h"
#include "sim/trace.h"

#define IMPORT_SECONDS_MAX ((double)WEIR_SIM_TIME_MAX / 1000)

/** A job with nothing asked for and the defaults of what a trace may leave out, added behind the
 *  others; NULL if there are too many. The pointer is good until the next one is added. */
struct weir_sim_job *trace_add(struct weir_sim_trace *trace);

/** Take the job that was added last away again: its row tells of no work. */
void trace_leave_out(struct weir_sim_trace *trace);

/** The trace's copy of a text: the same pointer for the same text. Empty gives NULL. */
const char *trace_text(struct weir_sim_trace *trace, const char *text, size_t len);

/** "2017-10-09 07:01:55", fraction and zone optional (UTC without), T accepted. */
bool trace_time_parse(const char *text, size_t len, int64_t *out_ms);

weir_status import_csv(const char *text, size_t len, const char *what, struct weir_sim_trace *trace,
                       struct weir_error *err);
weir_status import_alibaba(const char *text, size_t len, const char *what,
                           struct weir_sim_trace *trace, struct weir_error *err);
weir_status import_philly_csv(const char *text, size_t len, const char *what,
                              struct weir_sim_trace *trace, struct weir_error *err);
weir_status import_philly_json(const char *text, size_t len, const char *what,
                               struct weir_sim_trace *trace, struct weir_error *err);
weir_status import_pollux(const char *text, size_t len, const char *what,
                          struct weir_sim_trace *trace, struct weir_error *err);
weir_status import_helios(const char *text, size_t len, const char *what,
                          struct weir_sim_trace *trace, struct weir_error *err);
weir_status import_acme(const char *text, size_t len, const char *what,
                        struct weir_sim_trace *trace, struct weir_error *err);

#endif
