/** What programs tell about themselves: statistics, and whether something is well. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/ion/ion.h"

#include "base/uuid.h"
#include "ion/statistic.h"
#include "job/attempt.h"
#include "store/event.h"
#include "store/stmt.h"

#include <math.h>
#include <string.h>

#define STATISTICS_PER_CALL 200
#define TITLE_MAX_BYTES     128
#define MESSAGE_MAX_BYTES   512
#define TOLD_MAX            100 /* alerts of an ION that programs have raised and not ended */
#define DAY_MS              ((int64_t)24 * 3600 * 1000)

static const char sql_told[] = "SELECT data FROM alerts WHERE key = :key AND kind = 'told'";
static const char sql_told_well[] = "UPDATE alerts SET data = :data WHERE key = :key"
                                    " AND kind = 'told' AND state <> 'resolved'";
static const char sql_n_told[] = "SELECT count(*) FROM alerts WHERE kind = 'told'"
                                 " AND subject = :subject AND state <> 'resolved'";

static weir_status add_one(struct api_call *call, struct weir_txn *txn, const json_t *item,
                           bool *out_is_new, struct weir_error *err)
{
    struct weir_statistic statistic = {0};
    char id[WEIR_UUID_BYTES];
    WEIR_TRY(weir_record_from_json(&weir_statistic_resource, item, WEIR_RECORD_CREATE, call->arena,
                                   &statistic, err));
    if (statistic.id == NULL) {
        weir_uuid_make(id);
        statistic.id = id;
    }
    statistic.ion = (char *)call->params[0];
    statistic.actor = (char *)call->actor;
    if (call->attempt != NULL) {
        statistic.job = call->attempt->job;
        statistic.pipeline =
            statistic.pipeline != NULL ? statistic.pipeline : call->attempt->pipeline;
    }
    const json_t *time = json_object_get(item, "time_ms");
    if (time == NULL || json_is_null(time)) {
        statistic.time_ms = call->now_ms;
    }
    return weir_statistic_add(txn, &statistic, call->now_ms, out_is_new, err);
}

weir_status api_statistics_add(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "statistics");
    struct weir_ion_state state;
    size_t i, n_new = 0;
    json_t *item;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(api_body_only(call, (const char *const[]){"statistics", NULL}, err));
    if (!json_is_array(list) || json_array_size(list) > STATISTICS_PER_CALL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.statistics: expected an array of at most %d", STATISTICS_PER_CALL);
    }
    json_array_foreach(list, i, item)
    {
        struct weir_error wrong = {0};
        bool is_new;
        weir_status status = add_one(call, txn, item, &is_new, &wrong);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.statistics[%zu]: %s", i, wrong.message);
        }
        n_new += is_new;
    }
    API_ANSWER(call, api_stored_statistics, .stored = (int64_t)n_new);
    return WEIR_OK;
}

weir_status api_statistics_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    return api_list_numbered_where(call, txn, &WEIR_FILTER_TEXT("ion", EQ, call->params[0]), 1,
                                   err);
}

/* ---- whether something is well ----------------------------------------------------------------- */

struct told {
    const char *about, *title, *message;
    bool is_healthy;
    int64_t time_ms; /* of telling; 0: now, whatever was told before */
};

static weir_status read_text(const struct api_call *call, const char *key, size_t max,
                             bool is_required, const char **out, struct weir_error *err)
{
    const json_t *value = json_object_get(call->body, key);
    *out = json_string_value(value);
    bool is_absent = value == NULL || json_is_null(value);
    if ((is_absent && is_required) ||
        (!is_absent && (*out == NULL || (*out)[0] == '\0' || !api_is_plain(*out, max)))) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.%s: expected a text of at most %zu bytes without control "
                              "characters",
                              key, max);
    }
    return WEIR_OK;
}

static weir_status read_told(const struct api_call *call, struct told *out, struct weir_error *err)
{
    static const char *const abouts[] = {"data", "health", "system"};
    const json_t *is_healthy = json_object_get(call->body, "is_healthy");
    bool is_known = false;
    WEIR_TRY(api_body_only(
        call, (const char *const[]){"about", "title", "message", "is_healthy", "time_ms", NULL},
        err));
    WEIR_TRY(read_text(call, "about", 16, true, &out->about, err));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(abouts); i++) {
        is_known = is_known || strcmp(abouts[i], out->about) == 0;
    }
    if (!is_known) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.about: expected data, health or system");
    }
    if (!json_is_boolean(is_healthy)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.is_healthy: expected true or false");
    }
    out->is_healthy = json_is_true(is_healthy);
    WEIR_TRY(api_body_int(call, "time_ms", 0, &out->time_ms, err));
    if (out->time_ms < 0 || out->time_ms > call->now_ms + DAY_MS) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.time_ms: expected a time after 1970 and not in the future");
    }
    WEIR_TRY(read_text(call, "title", TITLE_MAX_BYTES, true, &out->title, err));
    return read_text(call, "message", MESSAGE_MAX_BYTES, false, &out->message, err);
}

static weir_status raise_told(struct api_call *call, struct weir_txn *txn, const struct told *told,
                              const char *key, const char *data, struct weir_error *err)
{
    char id[WEIR_UUID_BYTES];
    const char *subject = weir_arena_printf(call->arena, "ion/%s", call->params[0]);
    const struct weir_alert alert = {
        .id = id,
        .key = (char *)key,
        .kind = "told",
        .subject = (char *)subject,
        .data = (char *)data,
        .message = weir_arena_printf(call->arena, "%s: %s%s%s (%s)", told->about, told->title,
                                     told->message != NULL ? ": " : "",
                                     told->message != NULL ? told->message : "", call->actor)};
    bool is_new;
    int64_t n;
    weir_uuid_make(id);
    WEIR_TRY(weir_alert_raise(txn, &alert, call->now_ms, &is_new, err));
    WEIR_TRY(weir_txn_query_int(txn, sql_n_told, WEIR_BINDS(WEIR_BIND_TEXT("subject", subject)), 0,
                                &n, err));
    return n <= TOLD_MAX || !is_new
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "%d alerts of ION \"%s\" are told and not over: tell that some "
                                "are well again, or resolve them",
                                TOLD_MAX, call->params[0]);
}

/* When it was told last; 0: never. */
static weir_status read_last_told(struct weir_txn *txn, const char *key, int64_t *out_ms,
                                  struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    *out_ms = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_told, WEIR_BINDS(WEIR_BIND_TEXT("key", key)), &row, err));
    WEIR_TRY(weir_stmt_step(row, &has_row, err));
    while (has_row) {
        json_t *data = weir_stmt_json(row, 0);
        *out_ms = WEIR_MAX(*out_ms, (int64_t)json_integer_value(json_object_get(data, "told_ms")));
        json_decref(data);
        WEIR_TRY(weir_stmt_step(row, &has_row, err));
    }
    return WEIR_OK;
}

static weir_status note_told(struct api_call *call, struct weir_txn *txn, const struct told *told,
                             struct weir_error *err)
{
    const char *key =
        weir_arena_printf(call->arena, "told/%s/%s/%s", call->params[0], told->about, told->title);
    int64_t last_ms;
    WEIR_TRY(read_last_told(txn, key, &last_ms, err));
    if (told->time_ms > 0 && told->time_ms <= last_ms) {
        return WEIR_OK; /* sent again, or overtaken */
    }
    int64_t told_ms = told->time_ms > 0 ? told->time_ms : WEIR_MAX(call->now_ms, last_ms);
    const char *data = weir_arena_printf(call->arena, "{\"told_ms\":%lld}", (long long)told_ms);
    if (!told->is_healthy) {
        return raise_told(call, txn, told, key, data, err);
    }
    WEIR_TRY(weir_txn_exec(txn, sql_told_well,
                           WEIR_BINDS(WEIR_BIND_TEXT("data", data), WEIR_BIND_TEXT("key", key)),
                           NULL, err));
    return weir_alert_resolve(txn, key, call->now_ms, err);
}

weir_status api_ion_tell(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_ion_state state;
    struct told told = {0};
    WEIR_TRY(api_ion_load(call, txn, &state, err));
    WEIR_TRY(read_told(call, &told, err));
    WEIR_TRY(note_told(call, txn, &told, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
