/** Replica: the objects of a prediction replica put together. For predict.h and the tests. */
#ifndef WEIR_PREDICT_REPLICA_H
#define WEIR_PREDICT_REPLICA_H

#include "base/status.h"
#include "predict/spec.h"

struct replica;

/** Start everything. The spec is borrowed until stop. */
weir_status replica_start(const struct predict_spec *spec, struct replica **out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** As weir_predict_main says of SIGTERM. NULL is accepted. */
void replica_stop(struct replica *replica);

#endif
