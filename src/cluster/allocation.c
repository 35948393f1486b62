#include "cluster/allocation.h"

#include "cluster/driver.h"

#include "base/hash.h"
#include "base/macros.h"
#include "base/record.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_WHOLE    1000
#define CPUS_MAX        ((int64_t)4096)
#define MIB_MAX         ((int64_t)1 << 30)
#define SECONDS_MAX     ((int64_t)253402300799) /* the year 9999 */
#define TEXT_MAX_BYTES  128
#define IMAGE_MAX_BYTES 255
#define HASH_DIGITS     8
#define HOST_MIN_BYTES  4 /* so much is left of a host's name that is cut */

static const char *find(char *const *environment, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, len) == 0 && environment[i][len] == '=') {
            return environment[i] + len + 1;
        }
    }
    return NULL;
}

/* A text of so many bytes at most that can stand in a record; NULL: there is none. */
static const char *find_within(char *const *environment, const char *name, size_t max,
                               struct weir_arena *arena)
{
    const char *text = find(environment, name);
    bool is_good =
        text != NULL && text[0] != '\0' && strlen(text) <= max && weir_text_is_utf8(text);
    for (const char *c = text; is_good && *c != '\0'; c++) {
        is_good = !iscntrl((unsigned char)*c);
    }
    return is_good ? weir_arena_strdup(arena, text) : NULL;
}

static const char *find_text(char *const *environment, const char *name, struct weir_arena *arena)
{
    return find_within(environment, name, TEXT_MAX_BYTES, arena);
}

/* The first of these that there is. */
static const char *find_first(char *const *environment, const char *const *names, size_t n,
                              struct weir_arena *arena)
{
    const char *text = NULL;
    for (size_t i = 0; i < n && text == NULL; i++) {
        text = find_text(environment, names[i], arena);
    }
    return text;
}

/* A whole number from 1 to `most`; 0: there is none. */
static int64_t find_number(char *const *environment, const char *name, int64_t most)
{
    const char *text = find(environment, name);
    char *end = NULL;
    long long value = text != NULL && isdigit((unsigned char)text[0]) ? strtoll(text, &end, 10) : 0;
    return end != NULL && *end == '\0' && value <= most ? value : 0;
}

/* ---- the node's name -------------------------------------------------------------------------- */

static weir_status check_tag(const char *tag, struct weir_error *err)
{
    size_t len = strlen(tag), most = WEIR_FIELD_NAME_MAX_BYTES - HOST_MIN_BYTES - HASH_DIGITS - 2;
    bool is_tag =
        len > 0 && tag[0] != '-' && strspn(tag, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
    if (!is_tag) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "allocation \"%.80s\": expected lower-case letters, digits and -",
                              tag);
    }
    return len <= most
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "allocation \"%.80s\": longer than %zu bytes leaves no room "
                                "for the name of a node",
                                tag, most);
}

/* TAG-HOST. A host's name that cannot stand there as it is ends with a hash of it: two hosts are two nodes. */
static const char *name_node(const char *tag, const char *host, struct weir_arena *arena)
{
    char *name = weir_arena_strdup(arena, host);
    bool is_same = name[0] != '\0';
    for (char *c = name; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", *c) == NULL) {
            *c = '-';
            is_same = false;
        }
    }
    size_t room = WEIR_FIELD_NAME_MAX_BYTES - strlen(tag) - 1;
    if (is_same && strlen(name) <= room) {
        return weir_arena_printf(arena, "%s-%s", tag, name);
    }
    uint64_t hash = weir_hash_text(WEIR_HASH_BEGIN, host);
    return weir_arena_printf(arena, "%s-%.*s-%08x", tag, (int)(room - HASH_DIGITS - 1), name,
                             (unsigned)(hash ^ hash >> 32));
}

/* ---- accelerators ----------------------------------------------------------------------------- */

/* "0,3" and lists of UUIDs; what Slurm says of none is "NoDevFiles". */
static bool is_device(const char *text, size_t len)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/.";
    bool is_none = len == strlen("NoDevFiles") && strncmp(text, "NoDevFiles", len) == 0;
    return len > 0 && len < 96 && text[0] != '-' && !is_none && strspn(text, good) >= len;
}

static void read_devices(char *const *environment, struct weir_arena *arena,
                         struct weir_node_share *out)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS",
                                        "SLURM_JOB_GPUS"};
    const char *text = NULL;
    out->devices = "";
    bool has_devices = out->n_shards == 0 || out->device_milli > 0;
    for (size_t i = 0; has_devices && text == NULL && i < WEIR_ARRAY_LEN(names); i++) {
        text = find(environment, names[i]);
    }
    while (text != NULL && *text != '\0' && out->n_devices < WEIR_NODE_SHARE_DEVICES_MAX) {
        size_t len = strcspn(text, ",");
        if (is_device(text, len)) {
            out->devices = weir_arena_printf(arena, "%s%s%.*s", out->devices,
                                             out->n_devices > 0 ? "," : "", (int)len, text);
            out->n_devices++;
        }
        text += len;
        text += *text == ',';
    }
    if (out->device_milli > 0 && out->n_devices > 1) { /* how much of which nobody says */
        out->devices = "";
        out->n_devices = 0;
    }
}

/* ---- all of it -------------------------------------------------------------------------------- */

static int64_t read_memory(char *const *environment, const struct weir_node_share *share)
{
    int64_t said = find_number(environment, "WEIR_ALLOCATION_MEMORY_MIB", MIB_MAX);
    int64_t node = said > 0 ? said : find_number(environment, "SLURM_MEM_PER_NODE", MIB_MAX);
    int64_t cpu = find_number(environment, "SLURM_MEM_PER_CPU", MIB_MAX) * share->cpus;
    int64_t gpu = find_number(environment, "SLURM_MEM_PER_GPU", MIB_MAX) * share->n_devices;
    return WEIR_MIN(node > 0 ? node : cpu > 0 ? cpu : gpu, MIB_MAX) << 20;
}

weir_status weir_node_share_read(const char *tag, char *const *environment, const char *host_name,
                                 struct weir_arena *arena, struct weir_node_share *out,
                                 struct weir_error *err)
{
    static const char *const hosts[] = {"WEIR_ALLOCATION_HOST", "SLURMD_NODENAME"};
    struct weir_node_share share = {0};
    WEIR_TRY(check_tag(tag, err));
    const char *index = find_text(environment, "WEIR_ALLOCATION_INDEX", arena);
    share.host = find_first(environment, hosts, WEIR_ARRAY_LEN(hosts), arena);
    share.host = share.host != NULL ? share.host : weir_arena_strdup(arena, host_name);
    share.node = name_node(tag, index != NULL ? index : share.host, arena);
    share.pod = find_text(environment, "WEIR_ALLOCATION_POD", arena);
    share.namespace_name = find_text(environment, "WEIR_ALLOCATION_NAMESPACE", arena);
    share.image = find_within(environment, "WEIR_ALLOCATION_IMAGE", IMAGE_MAX_BYTES, arena);
    share.job_id = find_text(environment, "SLURM_JOB_ID", arena);
    share.partition = find_text(environment, "SLURM_JOB_PARTITION", arena);
    share.cpus = find_number(environment, "WEIR_ALLOCATION_CPUS", CPUS_MAX);
    share.cpus =
        share.cpus > 0 ? share.cpus : find_number(environment, "SLURM_CPUS_ON_NODE", CPUS_MAX);
    share.n_shards = find_number(environment, "SLURM_SHARDS_ON_NODE", INT32_MAX);
    share.device_milli = find_number(environment, "WEIR_ACCELERATOR_MILLI", DEVICE_WHOLE - 1);
    read_devices(environment, arena, &share);
    share.model = find_text(environment, "WEIR_ACCELERATOR_MODEL", arena);
    share.memory_bytes = read_memory(environment, &share);
    share.ends_ms = find_number(environment, "SLURM_JOB_END_TIME", SECONDS_MAX) * 1000;
    *out = share;
    return WEIR_OK;
}

void weir_node_share_apply(const struct weir_node_share *share, json_t *inventory)
{
    json_t *found = json_object_get(inventory, "inventory");
    if (share->cpus > 0) {
        json_object_set_new(inventory, "cpu_slots", json_integer(share->cpus));
    }
    if (share->memory_bytes > 0) {
        int64_t has = json_integer_value(json_object_get(inventory, "memory_bytes"));
        int64_t bytes = has > 0 ? WEIR_MIN(has, share->memory_bytes) : share->memory_bytes;
        json_object_set_new(inventory, "memory_bytes", json_integer(bytes));
    }
    json_object_set_new(inventory, "n_accelerators", json_integer(share->n_devices));
    json_object_set_new(found, "accelerators",
                        json_array()); /* the machine's; devices say its own */
    if (share->pod != NULL) {
        json_object_set_new(found, "kubernetes",
                            json_pack("{s:s?,s:s,s:s,s:s*}", "namespace", share->namespace_name,
                                      "pod", share->pod, "node", share->host, "image",
                                      share->image));
    } else {
        json_object_set_new(found, "slurm",
                            json_pack("{s:s?,s:s,s:s?}", "job_id", share->job_id, "node",
                                      share->host, "partition", share->partition));
    }
    if (share->n_shards > 0) {
        json_object_set_new(json_object_get(found, "slurm"), "shards",
                            json_integer(share->n_shards));
    }
    if (share->ends_ms > 0) {
        json_object_set_new(inventory, "ends_ms", json_integer(share->ends_ms));
    }
}
