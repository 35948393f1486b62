/** A report as JSON, as text for a terminal, and as one page for a browser. */
#ifndef WEIR_SIM_REPORT_H
#define WEIR_SIM_REPORT_H

#include "base/buf.h"
#include "base/json.h"
#include "sim/replay.h"

/**
 * Everything but the single jobs; times in seconds. docs/reference/simulator.md lists the members.
 * The caller owns it.
 */
json_t *weir_sim_report_json(const struct weir_sim_report *report);

/** Append tables, at most 100 columns wide. What does not fit into `out` shows in its status. */
void weir_sim_report_text(const struct weir_sim_report *report, struct weir_buf *out);

/**
 * Append a page with figures, curves and tables. It loads nothing from anywhere, follows the
 * reader's choice of light or dark, and is readable on a phone.
 *
 * @param title  Of the page: what was played on what.
 */
void weir_sim_report_html(const struct weir_sim_report *report, const char *title,
                          struct weir_buf *out);

/** Seconds for people: "850 ms", "42 s", "17 min", "3.4 h", "12 d". */
#define WEIR_SIM_SPAN_BYTES 24
const char *weir_sim_span_text(double seconds, char out[WEIR_SIM_SPAN_BYTES]);

#endif
