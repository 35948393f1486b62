/** The structs of what handlers answer (base/view.h), by part of the API. */
#ifndef WEIR_API_VIEWS_H
#define WEIR_API_VIEWS_H

#include "watch/watch.h"

#include "base/view_struct.h"

#include "api/core/views_platform.def"

#include "api/cluster/views_cluster.def"

#include "api/track/views_track.def"

#include "api/model/views_deployment.def"

#include "api/ion/views_ion.def"

#include "api/ion/views_decision.def"

#include "api/ion/views_snapshot.def"

#include "api/data/views_data.def"

#include "api/track/views_lineage.def"

#include "base/view_end.h"

#endif
