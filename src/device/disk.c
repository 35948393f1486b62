/* Disks: block devices that are hardware. */
#include "look.h"
#include "sysfs.h"

#include "base/file.h"

#define SECTOR_BYTES 512 /* of /sys, whatever the disk's are */

static void add_disk(void *context, const char *name)
{
    struct look *look = context;
    char path[SYSFS_PATH_BYTES];
    if (!weir_path_exists(sysfs_path(look->context, path, "/sys/block/%s/device", name))) {
        return; /* loop, ram, device mapper */
    }
    struct weir_found *found = look_add(look, "disk", name);
    if (found == NULL) {
        return;
    }
    sysfs_path(look->context, path, "/sys/block/%s/size", name);
    found->memory_bytes = sysfs_int(path, 0) * SECTOR_BYTES;
    sysfs_text(sysfs_path(look->context, path, "/sys/block/%s/device/model", name), found->model,
               sizeof found->model);
    found->numa =
        sysfs_int(sysfs_path(look->context, path, "/sys/block/%s/device/numa_node", name), -1);
    sysfs_path(look->context, path, "/sys/block/%s/queue/rotational", name);
    found->details = json_pack("{s:b}", "rotates", sysfs_int(path, 0) != 0);
}

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    char path[SYSFS_PATH_BYTES];
    sysfs_each(sysfs_path(context, path, "/sys/block"), "", add_disk, &look);
    return look_end(&look, "disks", err);
}

static const struct weir_device_provider provider = {.find = find};

const struct weir_kind weir_device_disk = {
    .name = "disk", .doc = "Disks, with size and model, from /sys.", .ops = &provider};
