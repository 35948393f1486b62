/**
 * Metrics: what loaded versions have computed, in Prometheus' text form. Triton's names
 * (nv_inference_…, microseconds) stand beside Weir's own (weir_serve_…, seconds).
 */
#ifndef WEIR_SERVE_METRICS_H
#define WEIR_SERVE_METRICS_H

#include "base/buf.h"
#include "serve/replica/versions.h"

/** @param arena  Of what is needed on the way. */
void metrics_write(const struct versions_view *view, struct weir_arena *arena,
                   struct weir_buf *out);

#endif
