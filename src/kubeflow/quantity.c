#include "kubeflow/quantity.h"

#include "base/amount.h"

#include <stdio.h>

bool kubeflow_quantity(const json_t *value, int64_t *out_milli)
{
    char text[64];
    if (json_is_string(value)) {
        return weir_amount_parse(json_string_value(value), out_milli);
    }
    if (json_is_integer(value)) {
        (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        return weir_amount_parse(text, out_milli);
    }
    if (json_is_real(value)) {
        (void)snprintf(text, sizeof text, "%.6f", json_real_value(value));
        return weir_amount_parse(text, out_milli);
    }
    return false;
}
