/** The code of the kinds of sources, sinks and stages (endpoint/sources.def, sinks.def, stages.def). */
#ifndef WEIR_PREDICT_KINDS_H
#define WEIR_PREDICT_KINDS_H

#include "base/kind.h"

/** A struct source_ops, sink_ops or stage_ops, as the kind is a source, a sink or a stage; NULL: it is
 *  none of them. */
const void *predict_ops_of(const struct weir_kind *kind);

#endif
