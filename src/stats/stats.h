/**
 * stats: what a signal looks like, and whether it still looks like that. Pure: no files, no clock,
 * no threads; every function is deterministic and every object is a plain struct in caller memory.
 *
 *   histogram.h  fixed bins with streaming mean and variance; travels with a model as JSON
 *   distance.h   how far two histograms lie apart, by the measures that other products use
 *   quantile.h   exact on arrays; a sketch of bounded memory for latencies
 *   drift.h      does a window of live values differ from the training's baseline?
 *   sequence.h   the same for what is too slow or too small for a window
 *   monitor.h    both, for one signal of a stream, and what is too small for a signal of its kind
 *   rate.h       exact tests of rates: missing, new, out of range
 *   claim.h      what a few comparisons can claim, and what that comes to in a day
 *   frozen.h     does a camera still see?
 *   look.h       what can be said of any picture: light, contrast, focus, entropy
 *   embedding.h  how far a vector lies from where training's lay
 *   feature.h    all of it for the features of a table or a series, with false discoveries bounded
 *
 * Drift in four lines:
 *
 *     weir_histogram_from_values(&baseline, training_scores, n);    // stored in the model file
 *     weir_drift_init(&drift, &baseline, &(struct weir_drift_config){.window = 200}, err);
 *     struct weir_drift_report report;
 *     if (weir_drift_add(&drift, score, &report) && report.is_confirmed) { … }
 *
 * Objects belong to one thread at a time.
 */
#ifndef WEIR_STATS_STATS_H
#define WEIR_STATS_STATS_H

#include "stats/distance.h"
#include "stats/drift.h"
#include "stats/embedding.h"
#include "stats/feature.h"
#include "stats/frozen.h"
#include "stats/histogram.h"
#include "stats/look.h"
#include "stats/monitor.h"
#include "stats/quantile.h"
#include "stats/rate.h"
#include "stats/sequence.h"

#endif
