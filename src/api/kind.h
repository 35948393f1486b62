/** Kinds as records: what GET /kinds lists. */
#ifndef WEIR_API_KIND_H
#define WEIR_API_KIND_H

#include "base/record.h"

/** A kind of source, sink, policy, job or driver, from its registry. */
extern const struct weir_resource weir_kind_resource;

struct weir_registry;
extern const struct weir_registry *const api_registries[];
extern const size_t api_n_registries;

#endif
