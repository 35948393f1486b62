/**
 * Health: do live frames still look like what the model was trained on?
 *
 * Two signals are compared with the model's baseline (weir.baseline in its file): *brightness* of
 * every decoded frame, and *score* of the recognised ones. Scores below the threshold belong to
 * impostors, whom the baseline does not hold; so only scores above a cut are compared, the cut
 * being the baseline's first bin edge at or above the threshold, and the baseline's own values
 * below it are left out too. A baseline with fewer than WEIR_DRIFT_MIN_VALUES values is not used.
 *
 * The test takes values for independent, and frames of one person standing before a camera are not:
 * of each camera one value per interval is counted. Windows and confirmation are those of
 * stats/drift.h. A report goes to the server when a confirmed drift begins or ends, and after every
 * 10th window. Everything begins anew when model or threshold change.
 *
 * The engine only leaves values in a bounded mailbox; tests and reports happen on health's own
 * thread. A full mailbox drops values, a server that is away loses reports (the next 10th comes).
 */
#ifndef WEIR_PREDICT_HEALTH_H
#define WEIR_PREDICT_HEALTH_H

#include "predict/serving.h"
#include "predict/spec.h"

struct health;

weir_status health_start(const struct predict_spec *spec, struct health **out,
                         struct weir_error *err) WEIR_MUST_CHECK;
void health_stop(struct health *health);

/** A frame was decided. The engine's thread; never waits. */
void health_note(struct health *health, struct serving *serving, const char *camera,
                 int64_t time_ms, double score, double brightness);

/**
 * The baseline of recognised scores: a copy of `score` without the bins below the cut. Pure.
 * @return false if too few values are left.
 */
bool health_score_baseline(const struct weir_histogram *score, double threshold,
                           struct weir_histogram *out, double *out_cut);

#endif
