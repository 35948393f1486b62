/**
 * Health: do live frames still look like what the model was trained on?
 *
 * Signals are compared with the model's baseline (weir.baseline in its file): *brightness*, *contrast*,
 * *sharpness* and *entropy* of every decoded frame (stats/look.h), *embedding*, the distance of its
 * vector from training's (stats/embedding.h), and *score* of the recognised ones. Scores below the
 * threshold belong to impostors, whom the baseline does not hold; so only scores above a cut are
 * compared, the cut being the baseline's first bin edge at or above the threshold, and the baseline's
 * own values below it are left out too. A baseline with fewer than WEIR_DRIFT_MIN_VALUES values is not
 * used, and a model from before a signal was known is not watched for it.
 *
 * The test takes values for independent, and frames of one person standing before a camera are not:
 * of each camera one value per interval is counted. What is drift says stats/monitor.h, window by
 * window; one that is too slow for a window is reported as "slow".
 *
 * Every frame is also compared with those before it of its camera (stats/frozen.h): *frozen* drifts
 * while any camera shows the same picture all the time, *duplicate* while more of a window's frames
 * than one in a hundred were seen shortly before. Neither needs a baseline. A camera that was silent
 * for ten times as long as it takes to be called frozen (10 s at least) is forgotten.
 *
 * A report goes to the server when a drift begins or ends, and after every window, but of one signal
 * once in 10 s at most. It names the frames since the one before whose value lies farthest from training
 * (farthest.h). Everything begins anew when model or threshold change.
 *
 * The engine only leaves values in a bounded mailbox; tests and reports happen on health's own
 * thread. A full mailbox drops values, a server that is away loses reports.
 */
#ifndef WEIR_PREDICT_HEALTH_H
#define WEIR_PREDICT_HEALTH_H

#include "predict/serving.h"
#include "predict/spec.h"

struct health;

weir_status health_start(const struct predict_spec *spec, struct health **out,
                         struct weir_error *err) WEIR_MUST_CHECK;
void health_stop(struct health *health);

/** What is known of a frame. */
struct health_values {
    const char *camera;
    int64_t frame; /**< Its number. */
    int64_t time_ms;
    double of[MODEL_N_SIGNALS]; /**< If is_due; NaN: not known. */
    uint64_t digest;            /**< Of the picture; if has_digest. */
    bool has_digest, is_due;
};

/**
 * Is a frame's value to be counted? If so, others of its camera are not until the interval is over.
 * The engine's thread, once for each frame.
 */
bool health_is_due(struct health *health, struct serving *serving, const char *camera,
                   int64_t time_ms);

/** A frame was decided. The engine's thread; never waits. */
void health_note(struct health *health, struct serving *serving,
                 const struct health_values *values);

#endif
