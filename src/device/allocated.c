/* Accelerators of an allocation that no library of a driver tells: as many as it says, called as a process there calls
 * them. That they are well nobody knows. */
#include "look.h"
#include "visible.h"

#include <stdio.h>

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    const char *at = context->config.visible, *entry;
    size_t len;
    if (at == NULL || at[0] == '\0' || nvml_is_here(context)) {
        return WEIR_OK;
    }
    while (visible_next(&at, &entry, &len)) {
        char id[96];
        (void)snprintf(id, sizeof id, "%.*s", (int)len, entry);
        struct weir_found *found = look_add(&look, "gpu", id);
        if (found != NULL && context->config.visible_model != NULL) {
            (void)snprintf(found->model, sizeof found->model, "%s", context->config.visible_model);
        }
    }
    return look_end(&look, "accelerators of the allocation", err);
}

static const struct weir_device_provider provider = {.find = find};

const struct weir_kind weir_device_allocated = {
    .name = "allocated",
    .doc =
        "What an allocation of somebody's cluster has where no driver's library tells it: as many, "
        "called as a process there calls them.",
    .ops = &provider};
