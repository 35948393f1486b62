#include "device/device.h"

#include "base/grow.h"
#include "base/macros.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct weir_kind *const providers[] = {
#define WEIR_KIND(name) &weir_device_##name,
#include "device/providers.def"
#undef WEIR_KIND
};

const struct weir_registry weir_device_providers = {
    .noun = "device-provider",
    .plural = "device-providers",
    .doc = "What finds devices of a node.",
    .kinds = providers,
    .n_kinds = WEIR_ARRAY_LEN(providers),
};

struct weir_found *weir_found_add(struct weir_found_list *list, const char *kind, const char *id)
{
    if (list->n >= WEIR_FOUND_MAX ||
        weir_grow(&list->items, sizeof *list->items, list->n, &list->cap) != WEIR_OK) {
        return NULL;
    }
    struct weir_found *found = &list->items[list->n++];
    *found = (struct weir_found){.kind = kind,
                                 .memory_used_bytes = -1,
                                 .numa = -1,
                                 .ecc_errors = -1,
                                 .temperature_c = NAN,
                                 .power_w = NAN,
                                 .utilisation_pct = NAN};
    (void)snprintf(found->id, sizeof found->id, "%s", id);
    return found;
}

void weir_found_list_fini(struct weir_found_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        json_decref(list->items[i].details);
    }
    free(list->items);
    *list = (struct weir_found_list){0};
}

static json_t *text_or_null(const char *text)
{
    json_t *json = text[0] != '\0' ? json_string(text) : NULL; /* NULL too if it is no UTF-8 */
    return json != NULL ? json : json_null();
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *weir_found_json(const struct weir_found *found)
{
    return json_pack("{s:o,s:s,s:o,s:I,s:o,s:o,s:I,s:s,s:o,s:o,s:o,s:o,s:I,s:I,s:O?}", "id",
                     text_or_null(found->id), "kind", found->kind, "model",
                     text_or_null(found->model), "memory_bytes", (json_int_t)found->memory_bytes,
                     "parent_id", text_or_null(found->parent_id), "profile",
                     text_or_null(found->profile), "numa", (json_int_t)found->numa, "state",
                     found->reason[0] != '\0' ? "bad" : "ok", "reason", text_or_null(found->reason),
                     "temperature_c", number_or_null(found->temperature_c), "power_w",
                     number_or_null(found->power_w), "utilisation_pct",
                     number_or_null(found->utilisation_pct), "memory_used_bytes",
                     (json_int_t)found->memory_used_bytes, "ecc_errors",
                     (json_int_t)found->ecc_errors, "details", found->details);
}

struct weir_device_context *weir_device_context_create(const struct weir_device_config *config)
{
    struct weir_device_context *context = weir_xalloc(sizeof *context);
    *context = (struct weir_device_context){.config = *config};
    return context;
}

void weir_device_context_destroy(struct weir_device_context *context)
{
    for (size_t i = 0; context != NULL && i < WEIR_ARRAY_LEN(providers); i++) {
        const struct weir_device_provider *provider = providers[i]->ops;
        if (provider->close != NULL) {
            provider->close(context);
        }
    }
    free(context);
}

json_t *weir_device_find_all(struct weir_device_context *context, json_t **out_errors)
{
    json_t *all = json_array(), *errors = json_array();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(providers); i++) {
        const struct weir_device_provider *provider = providers[i]->ops;
        struct weir_found_list list = {0};
        struct weir_error err;
        if (provider->find(context, &list, &err) != WEIR_OK) {
            json_array_append_new(errors, json_string(err.message));
        }
        for (size_t k = 0; k < list.n; k++) {
            json_array_append_new(all, weir_found_json(&list.items[k]));
        }
        weir_found_list_fini(&list);
    }
    *out_errors = errors;
    return all;
}
