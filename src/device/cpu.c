/* Processors: one device for each NUMA node that has some. */
#include "look.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t count_list(const char *list)
{
    int64_t n = 0;
    for (const char *at = list; *at != '\0';) {
        char *end;
        int64_t first = strtoll(at, &end, 10), last = first;
        if (end == at) {
            break;
        }
        if (*end == '-') {
            last = strtoll(end + 1, &end, 10);
        }
        n += last >= first ? last - first + 1 : 0;
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void add_node(void *context, const char *name)
{
    struct look *look = context;
    char path[SYSFS_PATH_BYTES], cpus[1024], id[64];
    sysfs_text(sysfs_path(look->context, path, "/sys/devices/system/node/%s/cpulist", name), cpus,
               sizeof cpus);
    if (cpus[0] == '\0') {
        return;
    }
    int64_t numa = strtoll(name + strlen("node"), NULL, 10);
    (void)snprintf(id, sizeof id, "cpu%lld", (long long)numa);
    struct weir_found *found = look_add(look, "cpu", id);
    if (found != NULL) {
        found->numa = numa;
        sysfs_key(sysfs_path(look->context, path, "/proc/cpuinfo"), "model name", found->model,
                  sizeof found->model);
        found->details = json_pack("{s:s,s:I}", "processors", cpus, "n_processors",
                                   (json_int_t)count_list(cpus));
    }
}

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    char path[SYSFS_PATH_BYTES];
    sysfs_each(sysfs_path(context, path, "/sys/devices/system/node"), "node", add_node, &look);
    return look_end(&look, "NUMA nodes", err);
}

static const struct weir_device_provider provider = {.find = find};

const struct weir_kind weir_device_cpu = {
    .name = "cpu", .doc = "Processors, by NUMA node, from /sys.", .ops = &provider};
