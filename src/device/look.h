/** Inside of a look: where a provider that walks through a folder puts what it finds. */
#ifndef WEIR_DEVICE_LOOK_H
#define WEIR_DEVICE_LOOK_H

#include "device/device.h"

struct look {
    struct weir_device_context *context;
    struct weir_found_list *list;
    bool is_full; /**< There was more than the list takes. */
};

/** weir_found_add, which notes if there is no room. */
static inline struct weir_found *look_add(struct look *look, const char *kind, const char *id)
{
    struct weir_found *found = weir_found_add(look->list, kind, id);
    look->is_full = look->is_full || found == NULL;
    return found;
}

static inline weir_status look_end(const struct look *look, const char *what,
                                   struct weir_error *err)
{
    return look->is_full ? weir_error_set(err, WEIR_ERR_LIMIT, "only %d %s are looked at",
                                          WEIR_FOUND_MAX, what)
                         : WEIR_OK;
}

#endif
