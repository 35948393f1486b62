/** GET /kinds: what there are several of, from the registries (base/kind.h). */
#include "api/kind.h"

#include "api/core/answer.h"
#include "api/core/functions.h"
#include "api/core/query.h"

#include "base/names.h"
#include "cluster/driver.h"
#include "endpoint/door.h"
#include "endpoint/stage.h"
#include "framework/framework.h"
#include "identity/identity.h"
#include "ion/policy.h"
#include "ion/restart.h"
#include "ion/trigger.h"
#include "notify/action.h"
#include "notify/receiver.h"
#include "sweep/method.h"
#include "vision/detectors.h"

#include <string.h>

const struct weir_registry *const api_registries[] = {
    &weir_sources,        &weir_sinks,         &weir_stages,        &weir_triggers,
    &weir_policies,       &weir_restarts,      &weir_job_kinds,     &weir_drivers,
    &weir_receiver_kinds, &weir_alert_actions, &weir_sweep_methods, &weir_sweep_parameters,
    &weir_identity_kinds, &weir_detectors,     &weir_doors};
const size_t api_n_registries = WEIR_ARRAY_LEN(api_registries);

struct kind_record {
    char *id, *noun, *plural, *name, *doc, *options;
    bool is_planned;
};

// clang-format off
static const struct weir_field kind_fields[] = {
    WEIR_FIELD(kind_record, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "NOUN/NAME"),
    WEIR_FIELD(kind_record, noun,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What it is a kind of: source, sink, stage, door-kind, trigger, restart, policy, job-kind, driver, receiver, alert-action, sweep-method, sweep-parameter, proof or detector"),
    WEIR_FIELD(kind_record, plural,     TEXT, WEIR_FIELD_READ_ONLY, "", "Several of those"),
    WEIR_FIELD(kind_record, name,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What people write"),
    WEIR_FIELD(kind_record, is_planned, BOOL, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Known, and not in this version"),
    WEIR_FIELD(kind_record, doc,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What it is and does"),
    WEIR_FIELD(kind_record, options,    JSON, WEIR_FIELD_READ_ONLY, "", "Its options: [{name, type, doc}], and of each what it has: default, minimum, maximum, words, required, secret, path"),
};
// clang-format on

const struct weir_resource weir_kind_resource =
    WEIR_RESOURCE("kind", "kinds", kind_record, kind_fields);

static struct kind_record record_of(struct api_call *call, const struct weir_registry *registry,
                                    const char *name)
{
    return (struct kind_record){
        .id = weir_arena_printf(call->arena, "%s/%s", registry->noun, name),
        .noun = weir_arena_strdup(call->arena, registry->noun),
        .plural = weir_arena_strdup(call->arena, registry->plural),
        .name = weir_arena_strdup(call->arena, name),
    };
}

/* The kinds of one noun, then those that are planned. */
static size_t add_kinds(struct api_call *call, const struct weir_registry *registry,
                        struct kind_record *out)
{
    size_t n = 0;
    for (size_t i = 0; i < registry->n_kinds; i++) {
        const struct weir_kind *kind = registry->kinds[i];
        json_t *options = weir_kind_options(registry, kind);
        out[n] = record_of(call, registry, kind->name);
        out[n].doc = weir_arena_strdup(call->arena, kind->doc);
        out[n++].options = weir_json_text(options, call->arena);
        json_decref(options);
    }
    for (size_t i = 0; registry->planned != NULL && registry->planned[i] != NULL; i++) {
        out[n] = record_of(call, registry, registry->planned[i]);
        out[n++].is_planned = true;
    }
    return n;
}

static size_t count_kinds(const struct weir_registry *registry)
{
    size_t n = registry->n_kinds;
    for (size_t i = 0; registry->planned != NULL && registry->planned[i] != NULL; i++) {
        n++;
    }
    return n;
}

weir_status api_kind_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *noun = api_query_text(call, "noun");
    size_t n = 0, n_all = 0;
    bool is_known = noun == NULL;
    (void)txn;
    for (size_t i = 0; i < api_n_registries; i++) {
        n_all += count_kinds(api_registries[i]);
    }
    struct kind_record *items = WEIR_ARENA_ARRAY(call->arena, n_all, struct kind_record);
    for (size_t i = 0; i < api_n_registries; i++) {
        if (noun == NULL || strcmp(api_registries[i]->noun, noun) == 0) {
            n += add_kinds(call, api_registries[i], items + n);
            is_known = true;
        }
    }
    if (!is_known) {
        struct weir_names names = {0};
        for (size_t i = 0; i < api_n_registries; i++) {
            weir_names_add(&names, api_registries[i]->noun, strlen(api_registries[i]->noun));
        }
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "noun: \"%.40s\" has no kinds; there are those of %s", noun,
                              names.text);
    }
    api_answer_list(call, &weir_kind_resource, items, n, NULL);
    return WEIR_OK;
}
