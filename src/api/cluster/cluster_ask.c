#include "api/cluster/cluster_ask.h"

#include "cluster/driver.h"
#include "control/supplier.h"
#include "job/cluster.h"

#include <string.h>

char *cluster_ask_text(const char *what, const char *name, const char *driver,
                       const json_t *options, struct weir_arena *arena)
{
    json_t *question = json_pack("{s:s,s:s?,s:s,s:O}", "ask", what, "name", name, "driver", driver,
                                 "options", options);
    char *text = weir_json_text(question, arena);
    json_decref(question);
    return text;
}

/* What lacks, or else the pools, which are appended. */
static weir_status look(const struct weir_driver_ops *ops, struct weir_driver_link *link,
                        const char *name, struct weir_arena *arena, const char **out_missing,
                        json_t *pools, struct weir_error *err)
{
    struct weir_pool_offer *offers;
    size_t n = 0;
    *out_missing = NULL;
    WEIR_TRY(ops->check(link, arena, out_missing, err));
    if (*out_missing == NULL && ops->check_show != NULL) {
        WEIR_TRY(ops->check_show(link, arena, out_missing, err));
    }
    if (*out_missing == NULL) {
        WEIR_TRY(ops->list(link, arena, &offers, &n, err));
    }
    for (size_t i = 0; i < n && i < WEIR_POOLS_MAX; i++) {
        const struct weir_pool pool = supplier_pool(name, &offers[i], arena);
        json_array_append_new(pools, weir_record_to_json(&weir_pool_resource, &pool));
    }
    return WEIR_OK;
}

static weir_status check(const struct weir_configured *driver, const char *name,
                         struct weir_arena *arena, json_t *out, struct weir_error *err)
{
    const char *missing;
    json_t *pools = json_array();
    json_object_set_new(out, "pools", pools);
    struct weir_driver_link link = {.options = driver->options};
    weir_status status = look(driver->kind->ops, &link, name, arena, &missing, pools, err);
    weir_driver_close(driver->kind->ops, &link);
    if (status == WEIR_ERR_NOMEM || status == WEIR_ERR_INTERNAL) {
        return status;
    }
    missing = status != WEIR_OK ? err->message : missing;
    json_object_set_new(out, "missing", missing != NULL ? json_string(missing) : json_null());
    return WEIR_OK;
}

static weir_status guess(const struct weir_kind *kind, json_t *options, struct weir_arena *arena,
                         json_t *out, struct weir_error *err)
{
    const struct weir_driver_ops *ops = kind->ops;
    WEIR_AUTO(weir_json_auto_free) json_t *document = json_deep_copy(options);
    json_object_set_new(document, "kind", json_string(kind->name));
    if (ops->guess != NULL) {
        WEIR_TRY(ops->guess(document, arena, err));
    }
    (void)json_object_del(document, "kind");
    json_object_set_new(out, "driver", json_string(kind->name));
    json_object_set(out, "options", document);
    return WEIR_OK;
}

weir_status cluster_ask_run(void *context, const char *question, struct weir_arena *arena,
                            char **out, struct weir_error *err)
{
    const struct weir_registry *drivers = context;
    struct weir_configured driver;
    json_t *parsed;
    WEIR_TRY(weir_json_parse(question, strlen(question), "question", &parsed, err));
    WEIR_AUTO(weir_json_auto_free) json_t *asked = parsed;
    WEIR_AUTO(weir_json_auto_free) json_t *said = json_object();
    const char *what = json_string_value(json_object_get(asked, "ask"));
    const char *name = json_string_value(json_object_get(asked, "name"));
    json_t *options = json_object_get(asked, "options");
    WEIR_TRY(weir_registry_find(drivers, json_string_value(json_object_get(asked, "driver")),
                                "$.driver", &driver.kind, err));
    if (strcmp(what, CLUSTER_ASK_GUESS) == 0) {
        WEIR_TRY(guess(driver.kind, options, arena, said, err));
    } else {
        WEIR_TRY(weir_kind_read(driver.kind, options, "$.options", arena, &driver, err));
        WEIR_TRY(check(&driver, name != NULL ? name : "", arena, said, err));
    }
    *out = weir_json_text(said, arena);
    return WEIR_OK;
}
