#include "vision/range.h"

weir_status ranges_check(const char *what, const struct range *ranges, size_t n,
                         struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!(ranges[i].value >= ranges[i].min && ranges[i].value <= ranges[i].max)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "%s of %s is %g: give %g to %g",
                                  ranges[i].name, what, ranges[i].value, ranges[i].min,
                                  ranges[i].max);
        }
    }
    return WEIR_OK;
}
