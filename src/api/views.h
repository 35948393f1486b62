/** The structs of what handlers answer (base/view.h), by part of the API. */
#ifndef WEIR_API_VIEWS_H
#define WEIR_API_VIEWS_H

#include "watch/watch.h"

#include "base/view_struct.h"

#include "api/views_platform.def"

#include "api/views_cluster.def"

#include "api/views_track.def"

#include "api/views_deployment.def"

#include "api/views_ion.def"

#include "api/views_decision.def"

#include "api/views_snapshot.def"

#include "api/views_data.def"

#include "api/views_lineage.def"

#include "base/view_end.h"

#endif
