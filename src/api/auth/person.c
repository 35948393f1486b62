/** Forgetting a person: what is written first, so that a killed server goes on; then control/forget.h. */
#include "api/auth/audit.h"
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "control/control.h"
#include "control/forget.h"
#include "control/freeze.h"
#include "store/table.h"

#include "base/log.h"
#include "base/uuid.h"
#include "ion/ion.h"
#include "store/stmt.h"

#include <string.h>

#define REASON_MAX_BYTES 1000
#define PERSON_MAX_BYTES 128

struct forgetting {
    struct api_call *call;
    const char *person, *project, *reason;
    struct weir_forgotten record;
    char **lists; /**< Names of IONs on whose lists the person was. */
    size_t n_lists;
    char **datasets; /**< Uploaded ones. */
    size_t n_datasets;
};

static const char sql_lists[] =
    "SELECT m.ion FROM ion_members m JOIN ions i ON i.name = m.ion WHERE m.person = :person AND"
    " i.state <> 'DELETED' AND (:project = '' OR i.project = :project) ORDER BY m.ion";
static const char sql_datasets[] = "SELECT name FROM datasets WHERE is_uploaded <> 0 AND"
                                   " (:project = '' OR project = :project) ORDER BY name";

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct forgetting *forgetting = context;
    struct weir_project project;
    if (forgetting->project[0] != '\0') {
        WEIR_TRY(weir_txn_get(txn, &weir_project_resource, forgetting->project,
                              forgetting->call->arena, &project, err));
    }
    return weir_txn_query_texts(
        txn, sql_datasets, WEIR_BINDS(WEIR_BIND_TEXT("project", forgetting->project)),
        forgetting->call->arena, &forgetting->datasets, &forgetting->n_datasets, err);
}

static weir_status leave_lists(struct forgetting *forgetting, struct weir_txn *txn,
                               struct weir_error *err)
{
    struct api_call *call = forgetting->call;
    struct control control = api_control(call);
    for (size_t i = 0; i < forgetting->n_lists; i++) {
        bool has_changed;
        WEIR_TRY(weir_ion_member_set(txn, forgetting->lists[i], forgetting->person, NULL,
                                     call->actor, call->now_ms, &has_changed, err));
        struct weir_ion_event event = {.type = WEIR_ION_EVENT_LISTS, .actor = call->actor};
        if (has_changed) {
            WEIR_TRY(control_ion_event(&control, txn, forgetting->lists[i], &event, err));
        }
    }
    return WEIR_OK;
}

static weir_status begin_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct forgetting *forgetting = context;
    struct api_call *call = forgetting->call;
    json_array_clear(call->publish);
    WEIR_TRY(weir_txn_query_texts(txn, sql_lists,
                                  WEIR_BINDS(WEIR_BIND_TEXT("person", forgetting->person),
                                             WEIR_BIND_TEXT("project", forgetting->project)),
                                  call->arena, &forgetting->lists, &forgetting->n_lists, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_forgotten_resource, &forgetting->record, err));
    WEIR_TRY(leave_lists(forgetting, txn, err));
    return audit_act(call, txn, "person_forget_asked",
                     weir_arena_printf(call->arena, "person/%s", forgetting->person),
                     weir_arena_printf(call->arena, "%s is to be forgotten in %s%s",
                                       forgetting->person,
                                       forgetting->project[0] != '\0' ? "project " : "all projects",
                                       forgetting->project),
                     err);
}

/* A freeze in progress could put photos back. */
static weir_status check_freezes(struct forgetting *forgetting, struct weir_error *err)
{
    for (size_t i = 0; i < forgetting->n_datasets; i++) {
        enum freeze_state state;
        json_t *view =
            freezer_look(forgetting->call->api->freezer, forgetting->datasets[i], 0, &state, NULL);
        bool is_running = view != NULL && state == FREEZE_RUNNING;
        json_decref(view);
        if (is_running) {
            return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                                  "dataset \"%s\" is being frozen: try again when it is done",
                                  forgetting->datasets[i]);
        }
    }
    return WEIR_OK;
}

struct finding {
    const char *name;
    struct weir_arena *arena;
    struct weir_dataset dataset;
};

static weir_status find_dataset(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct finding *finding = context;
    return weir_txn_get(txn, &weir_dataset_resource, finding->name, finding->arena,
                        &finding->dataset, err);
}

/* Versions without the person, so that galleries follow. What cannot be frozen now is told. */
static json_t *freeze_anew(struct forgetting *forgetting)
{
    json_t *summary = json_loads(forgetting->record.summary, 0, NULL);
    json_t *left = json_array(), *name;
    size_t i;
    json_array_foreach(json_object_get(summary, "datasets"), i, name)
    {
        struct weir_error why;
        uint64_t number;
        struct finding finding = {.name = json_string_value(name),
                                  .arena = forgetting->call->arena};
        if (api_read(forgetting->call, find_dataset, &finding, &why) != WEIR_OK ||
            (finding.dataset.is_uploaded &&
             freezer_start(forgetting->call->api->freezer, &finding.dataset,
                           forgetting->call->actor, NULL, &number, &why) != WEIR_OK)) {
            json_array_append(left, name);
        }
    }
    json_decref(summary);
    return left;
}

/* ---- after a kill ---------------------------------------------------------------------------- */

void api_forget_resume(struct weir_api *api)
{
    struct weir_error err = {0};
    const struct forget forget = api_forget(api);
    weir_arena_init(&api->unfrozen_arena, 0);
    forget_resume(&forget);
    if (forget_unfrozen(api->store, &api->unfrozen_arena, &api->unfrozen, &api->n_unfrozen, &err) !=
        WEIR_OK) {
        weir_log(WEIR_LOG_ERROR, "forgetting_failed", WEIR_KV_STR("error", err.message));
    }
}

void api_freeze_left(struct weir_api *api)
{
    while (api->n_unfrozen > 0) {
        struct weir_error err = {0};
        uint64_t number;
        struct finding finding = {.name = api->unfrozen[api->n_unfrozen - 1],
                                  .arena = &api->unfrozen_arena};
        weir_status status = weir_store_read(api->store, find_dataset, &finding, &err);
        if (status == WEIR_OK) {
            status = freezer_start(api->freezer, &finding.dataset, "system", NULL, &number, &err);
        }
        if (status == WEIR_ERR_UNAVAILABLE) {
            return; /* others are being frozen */
        }
        if (status != WEIR_OK) {
            weir_log(WEIR_LOG_WARN, "freeze_failed", WEIR_KV_STR("dataset", finding.name),
                     WEIR_KV_STR("error", err.message));
        }
        api->n_unfrozen--;
    }
}

/* ---- the route ------------------------------------------------------------------------------- */

static weir_status check_person(const char *person, struct weir_error *err)
{
    size_t len = strlen(person);
    if (len == 0 || len > PERSON_MAX_BYTES || person[0] == '.' || strchr(person, '/') != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.60s\": expected a person's name as a dataset's class has it: 1 "
                              "to %d bytes, no \"/\", no \".\" first",
                              person, PERSON_MAX_BYTES);
    }
    if (strcmp(person, WEIR_FORGOTTEN_NAME) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%s\" is what people are called who were forgotten", person);
    }
    return WEIR_OK;
}

static weir_status begin_and_run(struct forgetting *forgetting, struct weir_error *err)
{
    struct api_call *call = forgetting->call;
    WEIR_TRY(api_write(call, begin_in, forgetting, err));
    const struct weir_forgotten record = forgetting->record;
    const struct forget forget = api_forget(call->api);
    return forget_run(&forget, &record, call->arena, &forgetting->record, err);
}

weir_status api_person_forget(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"project", "reason", NULL};
    struct forgetting forgetting = {.call = call, .person = call->params[0]};
    char id[WEIR_UUID_BYTES];
    (void)txn;
    WEIR_TRY(check_person(call->params[0], err));
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "project", &forgetting.project, err));
    WEIR_TRY(api_body_text(call, "reason", &forgetting.reason, err));
    if (forgetting.reason != NULL && strlen(forgetting.reason) > REASON_MAX_BYTES) {
        return weir_error_set(err, WEIR_ERR_LIMIT, "$.reason: more than %d bytes",
                              REASON_MAX_BYTES);
    }
    forgetting.project = forgetting.project != NULL ? forgetting.project : "";
    weir_uuid_make(id);
    forgetting.record = (struct weir_forgotten){.id = id,
                                                .person = (char *)forgetting.person,
                                                .project = (char *)forgetting.project,
                                                .state = "running",
                                                .actor = (char *)call->actor,
                                                .reason = (char *)forgetting.reason,
                                                .created_ms = call->now_ms};
    WEIR_TRY(api_read(call, look_in, &forgetting, err));
    WEIR_TRY(check_freezes(&forgetting, err));
    if (atomic_flag_test_and_set(&call->api->makes_snapshot)) { /* it could have read the rows */
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "a snapshot is being made: try again when it is done");
    }
    weir_status status = begin_and_run(&forgetting, err);
    atomic_flag_clear(&call->api->makes_snapshot);
    WEIR_TRY(status);
    json_t *answer = weir_record_to_json(&weir_forgotten_resource, &forgetting.record);
    json_object_set_new(answer, "n_lists", json_integer((json_int_t)forgetting.n_lists));
    json_object_set_new(answer, "freeze_again", freeze_anew(&forgetting));
    api_answer(call, answer);
    return WEIR_OK;
}
