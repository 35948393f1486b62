/* Memory: one device for each NUMA node; one with errors that could not be corrected is bad. */
#include "look.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct errors {
    struct weir_device_context *context;
    int64_t n; /* -1: the machine counts none */
};

static void count_controller(void *context, const char *name)
{
    struct errors *errors = context;
    char path[SYSFS_PATH_BYTES];
    sysfs_path(errors->context, path, "/sys/devices/system/edac/mc/%s/ue_count", name);
    int64_t n = sysfs_int(path, -1);
    if (n >= 0) {
        errors->n = (errors->n > 0 ? errors->n : 0) + n;
    }
}

static void add_node(void *context, const char *name)
{
    struct look *look = context;
    char path[SYSFS_PATH_BYTES], text[64], id[64];
    sysfs_path(look->context, path, "/sys/devices/system/node/%s/meminfo", name);
    sysfs_key(path, "MemTotal", text, sizeof text);
    int64_t kib = strtoll(text, NULL, 10);
    if (kib <= 0) {
        return;
    }
    int64_t numa = strtoll(name + strlen("node"), NULL, 10);
    (void)snprintf(id, sizeof id, "memory%lld", (long long)numa);
    struct weir_found *found = look_add(look, "memory", id);
    if (found != NULL) {
        found->numa = numa;
        found->memory_bytes = kib * 1024;
    }
}

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    struct errors errors = {context, -1};
    char path[SYSFS_PATH_BYTES];
    sysfs_each(sysfs_path(context, path, "/sys/devices/system/edac/mc"), "mc", count_controller,
               &errors);
    sysfs_each(sysfs_path(context, path, "/sys/devices/system/node"), "node", add_node, &look);
    /* Which controller is nearest to which node the kernel does not say. */
    for (size_t i = 0; i < list->n; i++) {
        list->items[i].ecc_errors = errors.n;
        if (errors.n > 0) {
            (void)snprintf(list->items[i].reason, sizeof list->items[i].reason,
                           "the machine's memory had %lld errors that could not be corrected "
                           "since it started",
                           (long long)errors.n);
        }
    }
    return look_end(&look, "NUMA nodes", err);
}

static const struct weir_device_provider provider = {.find = find};

const struct weir_kind weir_device_memory = {
    .name = "memory",
    .doc = "Memory, by NUMA node, and its errors (EDAC), from /sys.",
    .ops = &provider};
