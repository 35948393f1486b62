/* NVIDIA GPUs and their MIG slices, by the driver's library. A function that an older library lacks
 * is as one that says "not supported": what it tells stays unknown. */
#include "look.h"
#include "nvml_abi.h"
#include "sysfs.h"
#include "visible.h"

#include "base/macros.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX        64
#define PROCESSES_MAX   32
#define EVENTS_PER_LOOK 64
#define COOL_DOWN_C     3 /* below the limit, before a GPU that was too hot counts as well again */

/** What is remembered of a GPU from one look to the next. */
struct gpu {
    char uuid[NVML_DEVICE_UUID_BYTES], name[NVML_DEVICE_NAME_BYTES];
    unsigned long long xid; /* of the last error of the hardware; 0: none */
    bool is_hot;
};

struct nvml {
    void *library;
#define X(member, symbol, arguments) nvml_return(*member) arguments;
    NVML_FUNCTIONS(X)
#undef X
    nvml_event_set event_set;
    struct gpu gpus[GPUS_MAX]; /* By the driver's index. */
    int place;                 /* In a look: of the next among those that this process may use. */
    char drivers_list[1024];   /* What /proc/driver/nvidia/gpus held when the library was opened. */
};

/* Errors that a program makes, and that say nothing of the hardware (NVIDIA's XID catalogue). */
static const unsigned long long programs_xids[] = {8, 13, 31, 43, 45, 68, 109};

/* ---- the library ----------------------------------------------------------------------------- */

static void append_name(void *context, const char *name)
{
    char *list = context;
    size_t len = strlen(list);
    (void)snprintf(list + len, sizeof((struct nvml *)0)->drivers_list - len, "%s ", name);
}

static void list_gpus(struct weir_device_context *context, char list[1024])
{
    char path[SYSFS_PATH_BYTES];
    list[0] = '\0';
    sysfs_each(sysfs_path(context, path, "/proc/driver/nvidia/gpus"), "", append_name, list);
}

static void load_functions(struct nvml *nvml)
{
#define X(member, symbol, arguments) *(void **)&nvml->member = dlsym(nvml->library, symbol);
    NVML_FUNCTIONS(X)
#undef X
}

static void close_library(struct weir_device_context *context)
{
    struct nvml *nvml = context->nvml;
    if (nvml != NULL) {
        (void)nvml->shutdown();
        (void)dlclose(nvml->library);
        free(nvml);
        context->nvml = NULL;
    }
}

/* Without the library there is no NVIDIA driver, and nothing is wrong. */
static weir_status open_library(struct weir_device_context *context, struct weir_error *err)
{
    const char *name = context->config.nvml_library;
    name = name != NULL ? name : getenv("WEIR_NVML_LIBRARY");
    void *library = dlopen(name != NULL ? name : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return name != NULL
                   ? weir_error_set(err, WEIR_ERR_NOT_FOUND, "cannot load %s: %s", name, dlerror())
                   : WEIR_OK;
    }
    struct nvml *nvml = weir_xalloc(sizeof *nvml);
    *nvml = (struct nvml){.library = library};
    load_functions(nvml);
    bool has_basics = nvml->init != NULL && nvml->shutdown != NULL && nvml->count != NULL &&
                      nvml->by_index != NULL && nvml->name != NULL && nvml->uuid != NULL;
    nvml_return rc = has_basics ? nvml->init() : NVML_ERROR_NOT_SUPPORTED;
    if (rc != NVML_SUCCESS) {
        (void)dlclose(library);
        free(nvml);
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the NVIDIA driver's library does not start (NVML error %d): look at "
                              "nvidia-smi and dmesg",
                              rc);
    }
    list_gpus(context, nvml->drivers_list);
    if (nvml->events != NULL && nvml->events(&nvml->event_set) != NVML_SUCCESS) {
        nvml->event_set = NULL;
    }
    context->nvml = nvml;
    return WEIR_OK;
}

/* Cards that were put in or taken out are only seen by a library that is opened again. */
static weir_status keep_open(struct weir_device_context *context, struct weir_error *err)
{
    struct nvml *nvml = context->nvml;
    char list[sizeof nvml->drivers_list];
    if (nvml != NULL) {
        list_gpus(context, list);
        if (strcmp(list, nvml->drivers_list) != 0) {
            close_library(context);
        }
    }
    return context->nvml != NULL ? WEIR_OK : open_library(context, err);
}

bool nvml_is_here(struct weir_device_context *context)
{
    struct weir_error ignored;
    return keep_open(context, &ignored) == WEIR_OK && context->nvml != NULL;
}

#define CALL(function, ...)                                                                        \
    ((function) != NULL ? (function)(__VA_ARGS__) : (nvml_return)NVML_ERROR_NOT_SUPPORTED)

/* ---- one GPU --------------------------------------------------------------------------------- */

/* "00000000:3B:00.0" as /sys has it: "0000:3b:00.0". */
static int64_t numa_of(struct look *look, const char *bus_id)
{
    char path[SYSFS_PATH_BYTES], address[32];
    (void)snprintf(address, sizeof address, "%s", strlen(bus_id) > 12 ? bus_id + 4 : bus_id);
    for (char *at = address; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    sysfs_path(look->context, path, "/sys/bus/pci/devices/%s/numa_node", address);
    return sysfs_int(path, -1);
}

static json_t *links_of(const struct nvml *nvml, nvml_device device)
{
    json_t *links = json_array();
    for (unsigned i = 0; i < NVML_NVLINK_MAX_LINKS; i++) {
        int is_active = 0;
        struct nvml_pci_info peer = {.bus_id = ""};
        if (CALL(nvml->link_state, device, i, &is_active) != NVML_SUCCESS) {
            continue;
        }
        bool has_peer = is_active != 0 && CALL(nvml->link_peer, device, i, &peer) == NVML_SUCCESS;
        peer.bus_id[sizeof peer.bus_id - 1] = '\0';
        json_array_append_new(links,
                              json_pack("{s:i,s:b,s:s?}", "link", (int)i, "active", is_active != 0,
                                        "peer", has_peer ? peer.bus_id : NULL));
    }
    return links;
}

static json_t *processes_of(const struct nvml *nvml, nvml_device device)
{
    struct nvml_process processes[PROCESSES_MAX];
    unsigned n = PROCESSES_MAX;
    json_t *list = json_array();
    if (CALL(nvml->processes, device, &n, processes) != NVML_SUCCESS) {
        return list; /* also if there are more than fit: then nothing is said */
    }
    for (unsigned i = 0; i < WEIR_MIN(n, (unsigned)PROCESSES_MAX); i++) {
        bool is_known = processes[i].used_bytes <= (unsigned long long)INT64_MAX;
        json_array_append_new(
            list, json_pack("{s:I,s:I}", "pid", (json_int_t)processes[i].pid, "memory_bytes",
                            is_known ? (json_int_t)processes[i].used_bytes : (json_int_t)-1));
    }
    return list;
}

static void read_memory(const struct nvml *nvml, nvml_device device, struct weir_found *found)
{
    struct nvml_memory memory;
    if (CALL(nvml->memory, device, &memory) == NVML_SUCCESS) {
        found->memory_bytes = (int64_t)memory.total;
        found->memory_used_bytes = (int64_t)memory.used;
    }
}

static void read_measurements(const struct nvml *nvml, nvml_device device, struct weir_found *found)
{
    unsigned value;
    unsigned long long errors;
    struct nvml_utilization rates;
    read_memory(nvml, device, found);
    if (CALL(nvml->temperature, device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS) {
        found->temperature_c = value;
    }
    if (CALL(nvml->power, device, &value) == NVML_SUCCESS) {
        found->power_w = value / 1000.0;
    }
    if (CALL(nvml->utilization, device, &rates) == NVML_SUCCESS) {
        found->utilisation_pct = rates.gpu;
    }
    if (CALL(nvml->ecc, device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors) ==
        NVML_SUCCESS) {
        found->ecc_errors = (int64_t)errors;
    }
}

static void judge_heat(const struct nvml *nvml, nvml_device device, struct gpu *gpu,
                       struct weir_found *found)
{
    unsigned limit;
    if (CALL(nvml->threshold, device, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &limit) !=
            NVML_SUCCESS ||
        limit == 0) {
        return;
    }
    double least_c = gpu->is_hot ? (double)limit - COOL_DOWN_C : (double)limit;
    gpu->is_hot = found->temperature_c >= least_c;
    if (gpu->is_hot) {
        (void)snprintf(found->reason, sizeof found->reason,
                       "it is too hot (it slows down at %u °C): look at fans and air", limit);
    }
}

/* The worst last: it is what is told. */
static void judge(const struct nvml *nvml, nvml_device device, struct gpu *gpu,
                  struct weir_found *found)
{
    judge_heat(nvml, device, gpu, found);
    if (gpu->xid != 0) {
        (void)snprintf(found->reason, sizeof found->reason,
                       "the driver reported XID %llu, an error of the hardware: look at dmesg, "
                       "reset the GPU and start the agent again",
                       gpu->xid);
    }
    if (found->ecc_errors > 0) {
        (void)snprintf(found->reason, sizeof found->reason,
                       "its memory had %lld errors that could not be corrected: reset the GPU, or "
                       "have it exchanged",
                       (long long)found->ecc_errors);
    }
}

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb" */
static void read_profile(struct weir_found *slice)
{
    static const char mark[] = " MIG ";
    char *at = strstr(slice->model, mark);
    if (at != NULL) {
        (void)snprintf(slice->profile, sizeof slice->profile, "%.31s", at + strlen(mark));
        *at = '\0';
    }
}

static unsigned count_slices(const struct nvml *nvml, nvml_device device)
{
    unsigned now, pending, n = 0;
    bool has_any = CALL(nvml->mig_mode, device, &now, &pending) == NVML_SUCCESS && now != 0 &&
                   CALL(nvml->mig_count, device, &n) == NVML_SUCCESS;
    return has_any ? WEIR_MIN(n, 16U) : 0;
}

/* False: there is none at this index. */
static bool find_slice(const struct nvml *nvml, nvml_device device, unsigned index,
                       nvml_device *out, char uuid[NVML_DEVICE_UUID_BYTES])
{
    return CALL(nvml->mig_by_index, device, index, out) == NVML_SUCCESS &&
           nvml->uuid(*out, uuid, NVML_DEVICE_UUID_BYTES) == NVML_SUCCESS;
}

/* May this process use a slice of it? */
static bool has_visible_slice(const struct look *look, nvml_device device)
{
    const struct nvml *nvml = look->context->nvml;
    nvml_device handle;
    char uuid[NVML_DEVICE_UUID_BYTES];
    unsigned n = count_slices(nvml, device), i = 0;
    while (i < n && !(find_slice(nvml, device, i, &handle, uuid) &&
                      visible_has(look->context->config.visible, -1, uuid))) {
        i++;
    }
    return i < n;
}

/* Slices that this process may use, if it may not use the whole. */
static void add_slices(struct look *look, nvml_device device, const struct gpu *gpu, int64_t numa,
                       const char *reason, bool is_whole)
{
    const struct nvml *nvml = look->context->nvml;
    unsigned n = count_slices(nvml, device);
    for (unsigned i = 0; i < n; i++) {
        nvml_device handle;
        char uuid[NVML_DEVICE_UUID_BYTES];
        if (!find_slice(nvml, device, i, &handle, uuid) ||
            (!is_whole && !visible_has(look->context->config.visible, -1, uuid))) {
            continue;
        }
        struct weir_found *slice = look_add(look, "mig", uuid);
        if (slice == NULL) {
            return;
        }
        if (nvml->name(handle, slice->model, sizeof slice->model) != NVML_SUCCESS) {
            slice->model[0] = '\0';
        }
        read_profile(slice);
        read_memory(nvml, handle, slice);
        slice->numa = numa;
        (void)snprintf(slice->parent_id, sizeof slice->parent_id, "%s", gpu->uuid);
        (void)snprintf(slice->reason, sizeof slice->reason, "%s", reason);
        slice->details = json_pack("{s:o}", "processes", processes_of(nvml, handle));
    }
}

/* One that answers nothing any more is told by what was known of it. */
static void add_lost(struct look *look, const struct gpu *gpu, nvml_return rc)
{
    struct weir_found *found = gpu->uuid[0] != '\0' ? look_add(look, "gpu", gpu->uuid) : NULL;
    if (found != NULL) {
        (void)snprintf(found->model, sizeof found->model, "%s", gpu->name);
        (void)snprintf(found->reason, sizeof found->reason,
                       rc == NVML_ERROR_GPU_IS_LOST
                           ? "it is lost: it has fallen off the bus (NVML error %d); start the "
                             "machine again"
                           : "the driver cannot read it (NVML error %d): look at nvidia-smi and "
                             "dmesg",
                       rc);
    }
}

static void know(struct nvml *nvml, nvml_device device, struct gpu *gpu, const char *uuid)
{
    if (strcmp(gpu->uuid, uuid) == 0) {
        return;
    }
    *gpu = (struct gpu){.xid = 0};
    (void)snprintf(gpu->uuid, sizeof gpu->uuid, "%s", uuid);
    if (nvml->name(device, gpu->name, sizeof gpu->name) != NVML_SUCCESS) {
        gpu->name[0] = '\0';
    }
    if (nvml->event_set != NULL) {
        (void)CALL(nvml->listen, device, NVML_EVENT_XID, nvml->event_set);
    }
}

static void add_gpu(struct look *look, unsigned index)
{
    struct nvml *nvml = look->context->nvml;
    struct gpu *gpu = &nvml->gpus[index];
    nvml_device device;
    char uuid[NVML_DEVICE_UUID_BYTES];
    unsigned celsius;
    nvml_return rc = nvml->by_index(index, &device);
    rc = rc == NVML_SUCCESS ? nvml->uuid(device, uuid, sizeof uuid) : rc;
    if (rc == NVML_SUCCESS &&
        CALL(nvml->temperature, device, NVML_TEMPERATURE_GPU, &celsius) == NVML_ERROR_GPU_IS_LOST) {
        rc = NVML_ERROR_GPU_IS_LOST;
    }
    const char *visible = look->context->config.visible;
    if (rc != NVML_SUCCESS) {
        /* One that never answered is not this process's. */
        if (gpu->uuid[0] != '\0' && visible_has(visible, nvml->place++, gpu->uuid)) {
            add_lost(look, gpu, rc);
        }
        return;
    }
    bool is_whole = visible_has(visible, nvml->place++, uuid);
    if (!is_whole && !has_visible_slice(look, device)) {
        return;
    }
    know(nvml, device, gpu, uuid);
    struct weir_found *found = look_add(look, "gpu", uuid);
    struct nvml_pci_info pci = {.bus_id = ""};
    if (found == NULL) {
        return;
    }
    (void)snprintf(found->model, sizeof found->model, "%s", gpu->name);
    if (CALL(nvml->pci, device, &pci) == NVML_SUCCESS) {
        pci.bus_id[sizeof pci.bus_id - 1] = '\0';
        found->numa = numa_of(look, pci.bus_id);
    }
    read_measurements(nvml, device, found);
    judge(nvml, device, gpu, found);
    found->details =
        json_pack("{s:i,s:s,s:o,s:o}", "driver_index", (int)index, "pci", pci.bus_id, "links",
                  links_of(nvml, device), "processes", processes_of(nvml, device));
    char reason[sizeof found->reason]; /* the list may move */
    int64_t numa = found->numa;
    memcpy(reason, found->reason, sizeof reason);
    add_slices(look, device, gpu, numa, reason, is_whole);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_of_hardware(unsigned long long xid)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(programs_xids); i++) {
        if (programs_xids[i] == xid) {
            return false;
        }
    }
    return xid != 0;
}

static void take_events(struct nvml *nvml)
{
    struct nvml_event event;
    for (int i = 0; i < EVENTS_PER_LOOK && nvml->event_set != NULL; i++) {
        char uuid[NVML_DEVICE_UUID_BYTES];
        if (CALL(nvml->next_event, nvml->event_set, &event, 0) != NVML_SUCCESS) {
            return;
        }
        if (event.type != NVML_EVENT_XID || !is_of_hardware(event.data) ||
            nvml->uuid(event.device, uuid, sizeof uuid) != NVML_SUCCESS) {
            continue;
        }
        for (size_t k = 0; k < GPUS_MAX; k++) {
            if (strcmp(nvml->gpus[k].uuid, uuid) == 0) {
                nvml->gpus[k].xid = event.data;
            }
        }
    }
}

static weir_status find(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err)
{
    struct look look = {.context = context, .list = list};
    unsigned n = 0;
    WEIR_TRY(keep_open(context, err));
    struct nvml *nvml = context->nvml;
    if (nvml == NULL) {
        return WEIR_OK;
    }
    nvml_return rc = nvml->count(&n);
    if (rc != NVML_SUCCESS) {
        close_library(context); /* the next look opens it again */
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "the NVIDIA driver does not say what there is (NVML error %d): look "
                              "at nvidia-smi and dmesg",
                              rc);
    }
    take_events(nvml);
    nvml->place = 0;
    for (unsigned i = 0; i < WEIR_MIN(n, (unsigned)GPUS_MAX); i++) {
        add_gpu(&look, i);
    }
    return look_end(&look, "GPUs and slices", err);
}

static const struct weir_device_provider provider = {.find = find, .close = close_library};

const struct weir_kind weir_device_nvml = {
    .name = "nvml",
    .doc =
        "NVIDIA GPUs and their MIG slices, by the driver's library, which is loaded at run time: "
        "model, memory, links, errors, temperature, power, use.",
    .ops = &provider};
