/** The code of the kinds of sources, sinks, stages and doors (endpoint/sources.def, sinks.def, stages.def, doors.def). */
#ifndef WEIR_PREDICT_KINDS_H
#define WEIR_PREDICT_KINDS_H

#include "base/kind.h"

/** A struct source_ops, sink_ops, stage_ops or door_ops, as the kind is a source, a sink, a stage or a door; NULL: it is
 *  none of them. */
const void *predict_ops_of(const struct weir_kind *kind);

#endif
