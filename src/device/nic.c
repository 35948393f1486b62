/* Network cards, each with the RDMA device it has: InfiniBand, or RoCE where its link is Ethernet. */
#include "look.h"
#include "sysfs.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define GID_TYPES_MAX 16 /* the first of a port's table; a card has all its types there */

struct types {
    const char *folder;
    json_t *names;
    int n;
};

static void add_type(void *context, const char *name)
{
    struct types *types = context;
    char path[SYSFS_PATH_BYTES], text[64];
    size_t i;
    json_t *known;
    if (types->n++ >= GID_TYPES_MAX) {
        return;
    }
    (void)snprintf(path, sizeof path, "%.400s/%.60s", types->folder, name);
    bool is_known = sysfs_text(path, text, sizeof text)[0] == '\0';
    json_array_foreach(types->names, i, known)
    {
        is_known = is_known || strcmp(json_string_value(known), text) == 0;
    }
    if (!is_known) {
        json_array_append_new(types->names, json_string(text));
    }
}

struct ports {
    struct look *look;
    const char *card;
    json_t *items;
};

static void add_port(void *context, const char *name)
{
    struct ports *ports = context;
    const struct weir_device_context *device = ports->look->context;
    char path[SYSFS_PATH_BYTES], state[64], rate[64], layer[64];
    const char *folder = "/sys/class/infiniband";
    sysfs_text(sysfs_path(device, path, "%s/%s/ports/%s/state", folder, ports->card, name), state,
               sizeof state);
    sysfs_text(sysfs_path(device, path, "%s/%s/ports/%s/rate", folder, ports->card, name), rate,
               sizeof rate);
    sysfs_text(sysfs_path(device, path, "%s/%s/ports/%s/link_layer", folder, ports->card, name),
               layer, sizeof layer);
    struct types types = {
        sysfs_path(device, path, "%s/%s/ports/%s/gid_attrs/types", folder, ports->card, name),
        json_array(), 0};
    sysfs_each(types.folder, "", add_type, &types);
    json_array_append_new(ports->items,
                          json_pack("{s:s,s:s,s:s,s:s,s:o}", "port", name, "state", state, "rate",
                                    rate, "link_layer", layer, "gid_types", types.names));
}

static void add_rdma(void *context, const char *name)
{
    struct look *look = context;
    char path[SYSFS_PATH_BYTES];
    struct weir_found *found = look_add(look, "nic", name);
    if (found == NULL) {
        return;
    }
    struct ports ports = {look, name, json_array()};
    sysfs_each(sysfs_path(look->context, path, "/sys/class/infiniband/%s/ports", name), "",
               add_port, &ports);
    sysfs_text(sysfs_path(look->context, path, "/sys/class/infiniband/%s/board_id", name),
               found->model, sizeof found->model);
    sysfs_path(look->context, path, "/sys/class/infiniband/%s/device/numa_node", name);
    found->numa = sysfs_int(path, -1);
    found->details = json_pack("{s:b,s:o}", "rdma", true, "ports", ports.items);
}

static void add_net(void *context, const char *name)
{
    struct look *look = context;
    char path[SYSFS_PATH_BYTES], link[32];
    if (!weir_path_exists(sysfs_path(look->context, path, "/sys/class/net/%s/device", name))) {
        return; /* not hardware */
    }
    struct weir_found *found = look_add(look, "nic", name);
    if (found == NULL) {
        return;
    }
    sysfs_path(look->context, path, "/sys/class/net/%s/device/numa_node", name);
    found->numa = sysfs_int(path, -1);
    sysfs_text(sysfs_path(look->context, path, "/sys/class/net/%s/operstate", name), link,
               sizeof link);
    sysfs_path(look->context, path, "/sys/class/net/%s/speed", name);
    int64_t mbit_s = sysfs_int(path, -1);
    sysfs_path(look->context, path, "/sys/class/net/%s/mtu", name);
    found->details = json_pack("{s:b,s:s,s:I,s:I}", "rdma", false, "link", link, "mbit_s",
                               (json_int_t)mbit_s, "mtu", (json_int_t)sysfs_int(path, -1));
}

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    char path[SYSFS_PATH_BYTES];
    sysfs_each(sysfs_path(context, path, "/sys/class/net"), "", add_net, &look);
    sysfs_each(sysfs_path(context, path, "/sys/class/infiniband"), "", add_rdma, &look);
    return look_end(&look, "network cards", err);
}

static const struct weir_device_provider provider = {.find = find};

const struct weir_kind weir_device_nic = {
    .name = "nic",
    .doc =
        "Network cards with link and speed, and their RDMA ports with link layer (InfiniBand, or "
        "Ethernet: RoCE), rate and kinds of addresses, from /sys.",
    .ops = &provider};
