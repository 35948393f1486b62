/** Amounts as Kubernetes writes them: "500m", "2", "1.5Gi", "1e3", "128M". Pure; any thread. */
#ifndef WEIR_BASE_AMOUNT_H
#define WEIR_BASE_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * In thousandths, exact, rounded up. At most 18 digits.
 * @return False, and *out_milli untouched: it is none, or more than 2^53.
 */
bool weir_amount_parse(const char *text, int64_t *out_milli);

#endif
