/** Quantities as Kubernetes writes them: "500m", "2", "1.5Gi", "1e3", "128M". Pure. */
#ifndef WEIR_KUBEFLOW_QUANTITY_H
#define WEIR_KUBEFLOW_QUANTITY_H

#include "base/json.h"

/**
 * In thousandths, rounded up.
 * @return False, and *out_milli untouched: it is none, it is less than 0, or more than 2^53.
 */
bool kubeflow_quantity(const json_t *value, int64_t *out_milli);

#endif
