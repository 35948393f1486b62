/**
 * Threshold report: how the threshold of a serving came about, for the log, the server and whoever
 * asks `weir describe`.
 */
#ifndef WEIR_PREDICT_THRESHOLD_REPORT_H
#define WEIR_PREDICT_THRESHOLD_REPORT_H

#include "base/json.h"
#include "predict/serving.h"

/**
 * New object with the members of the server's record "threshold" (ion/threshold.h). `replica` is
 * who reports.
 */
json_t *threshold_report(const struct serving *serving, const char *replica);

#endif
