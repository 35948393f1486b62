#include "cluster/driver.h"

static const struct weir_kind *const drivers[] = {
#define WEIR_KIND(name) &weir_driver_##name,
#include "cluster/drivers.def"
#undef WEIR_KIND
};

void weir_driver_close(const struct weir_driver_ops *ops, struct weir_driver_link *link)
{
    if (link->kept != NULL) {
        ops->close(link->kept);
    }
    link->kept = NULL;
}

const struct weir_registry weir_drivers = {
    .noun = "driver",
    .plural = "drivers",
    .doc = "Who supplies nodes.",
    .kinds = drivers,
    .n_kinds = WEIR_ARRAY_LEN(drivers),
};
