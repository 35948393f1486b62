/**
 * Device: what this machine has, found again as often as somebody looks.
 *
 * A *provider* finds devices of its kind: processors and memory by NUMA node, disks, network cards
 * with RDMA, NVIDIA GPUs by the driver's library (NVML, loaded at run time), what a file
 * declares, and what an allocation says that no library tells. Providers are kinds (base/kind.h), each a file of this folder, listed in providers.def.
 *
 *     struct weir_device_context *context = weir_device_context_create(&config);
 *     struct weir_found_list list = {0};
 *     weir_device_ops(provider)->find(context, &list, err);
 *     weir_found_list_fini(&list);
 *
 * A driver may hang, or crash its caller. So an agent does not look itself: a child process does
 * (finder.h). A provider whose hardware is not there finds nothing, and that is no error.
 */
#ifndef WEIR_DEVICE_DEVICE_H
#define WEIR_DEVICE_DEVICE_H

#include "base/json.h"
#include "base/kind.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Most devices that one provider finds; others are left out, with an error that says so. */
#define WEIR_FOUND_MAX 192

/** One device. Numbers that are not known are -1 or NaN; texts are empty. */
struct weir_found {
    char id[96];
    const char *kind; /**< "cpu", "memory", "disk", "nic", "gpu", "mig", "declared". Static. */
    char model[96];
    char parent_id[96]; /**< Of a slice. */
    char profile[32];   /**< Of a MIG slice: "1g.10gb". */
    char reason[160];   /**< Why it is bad; empty: it is well. */
    int64_t memory_bytes, memory_used_bytes, numa, ecc_errors;
    double temperature_c, power_w, utilisation_pct;
    json_t *details; /**< Object; owned; or NULL. */
};

struct weir_found_list {
    struct weir_found *items;
    size_t n, cap;
};

/** A new device in the list with nothing known of it but that; NULL if the list is full. */
struct weir_found *weir_found_add(struct weir_found_list *list, const char *kind, const char *id);

/** Free the items; the list is empty then. */
void weir_found_list_fini(struct weir_found_list *list);

/** As the server takes it: {"id","kind","model","memory_bytes","parent_id","state" …}. A new
 *  reference. */
json_t *weir_found_json(const struct weir_found *found);

struct weir_device_config {
    const char *root;         /**< In front of /sys and /proc; NULL: nothing. */
    const char *nvml_library; /**< NULL: $WEIR_NVML_LIBRARY, else libnvidia-ml.so.1. */
    const char *declared;     /**< File with what is declared (YAML or JSON); NULL: none. */
    const char *visible; /**< Only these accelerators are the agent's (visible.h); NULL: all. */
    const char *visible_model; /**< What those are that no library tells; NULL: not known. */
};

/** What providers keep from one look to the next. One thread. */
struct weir_device_context {
    struct weir_device_config config; /**< Borrowed. */
    void *nvml;                       /**< nvml.c's. */
};

struct weir_device_context *weir_device_context_create(const struct weir_device_config *config);
void weir_device_context_destroy(struct weir_device_context *context);

/** `ops` of a provider. */
struct weir_device_provider {
    /** Add what is there. An error tells what could not be found out; the list has the rest. */
    weir_status (*find)(struct weir_device_context *context, struct weir_found_list *list,
                        struct weir_error *err);
    /** Give back what it keeps in the context; NULL: nothing. */
    void (*close)(struct weir_device_context *context);
};

extern const struct weir_registry weir_device_providers;

#define WEIR_KIND(name) extern const struct weir_kind weir_device_##name;
#include "device/providers.def"
#undef WEIR_KIND

/** All devices of all providers, as a JSON array; what failed is in *out_errors, an array of
 *  sentences. New references. For a look by hand: it takes as long as the drivers do. */
json_t *weir_device_find_all(struct weir_device_context *context, json_t **out_errors);

#endif
