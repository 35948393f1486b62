/** What replicas decided, and what their monitors found. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/records.h"
#include "api/core/views.h"
#include "api/ion/door.h"
#include "api/ion/health.h"
#include "api/ion/passage.h"
#include "control/control.h"

#include "base/base64.h"
#include "base/file.h"
#include "base/uuid.h"
#include "endpoint/stage/classify.h"
#include "ion/decision.h"
#include "job/attempt.h"
#include "job/code.h"
#include "retain/project.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define DECISIONS_PER_CALL 1000
#define LABEL_MAX_BYTES    256
#define CAMERAS_NAMED      8 /* in a sentence */

static bool is_verdict(const char *text)
{
    static const char *const known[] = {"grant", "deny", "unknown", "error", "label"};
    for (size_t i = 0; text != NULL && i < WEIR_ARRAY_LEN(known); i++) {
        if (strcmp(known[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_sha256(const char *text)
{
    return strlen(text) == WEIR_SHA256_TEXT_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == WEIR_SHA256_TEXT_BYTES - 1;
}

/* [{"label", "score"}], as stage "classify" gives them. */
static weir_status check_labels(const char *text, struct weir_error *err)
{
    json_t *labels = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL, *one;
    size_t i;
    bool is_good =
        text == NULL || json_is_null(labels) ||
        (json_is_array(labels) && json_array_size(labels) <= WEIR_STAGE_CLASSIFY_TOP_MAX);
    json_array_foreach(labels, i, one)
    {
        const char *label = json_string_value(json_object_get(one, "label"));
        is_good = is_good && json_object_size(one) == 2 && label != NULL &&
                  api_is_plain(label, LABEL_MAX_BYTES) &&
                  json_is_number(json_object_get(one, "score"));
    }
    json_decref(labels);
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "$.labels: expected at most %d objects with a label of at most "
                                    "%d bytes and a score",
                                    WEIR_STAGE_CLASSIFY_TOP_MAX, LABEL_MAX_BYTES);
}

/* What a replica says is shown to people and used in paths: refuse what no replica of ours sends.
 */
static weir_status check_decision(const struct weir_decision *decision, struct weir_error *err)
{
    const struct {
        const char *name, *text;
        size_t max_bytes;
    } texts[] = {
        {"id", decision->id, 64},
        {"ion", decision->ion, 63},
        {"pipeline", decision->pipeline, 63},
        {"replica", decision->replica, 128},
        {"camera", decision->camera, 63},
        {"key", decision->key, 128},
        {"person", decision->person, 256},
        {"label", decision->label, LABEL_MAX_BYTES},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        if (!api_is_plain(texts[i].text, texts[i].max_bytes)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.%s: expected at most %zu bytes without control characters",
                                  texts[i].name, texts[i].max_bytes);
        }
    }
    if (!is_verdict(decision->verdict)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.verdict: expected grant, deny, unknown, error or label");
    }
    WEIR_TRY(check_labels(decision->labels, err));
    WEIR_TRY(api_passage_check(decision->passage, err));
    if (decision->image != NULL && !is_sha256(decision->image)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.image: expected a SHA-256 in hexadecimal");
    }
    return WEIR_OK;
}

weir_status api_decision_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_timed(call, txn, "time_ms", &(struct weir_query){0}, err);
}

weir_status api_passage_list(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    /* One that tells how long something counted was in a place is no passage's. */
    const struct weir_query of = {.condition = "passage IS NOT NULL AND counted IS NULL"};
    return api_list_timed(call, txn, "time_ms", &of, err);
}

/* Bytes that a text of `room` bytes may say at most. */
static size_t decoded_room(const char *text)
{
    return text != NULL ? strlen(text) / 4 * 3 + 1 : 0;
}

/* Add a film that is as long as the frames say to the picture. Else there is none, as if it were no longer there. */
static size_t add_film(const char *film, const struct weir_decision *decision, char *bytes,
                       size_t n_picture)
{
    size_t n_film = 0, room = decoded_room(film);
    bool is_film = film != NULL &&
                   weir_base64_decode(film, bytes + n_picture, room, &n_film) == WEIR_OK &&
                   n_film == api_passage_film_bytes(decision->passage) &&
                   n_picture + n_film <= WEIR_PACK_ITEM_MAX_BYTES;
    return is_film ? n_film : 0;
}

/* A picture of what was decided. One that is damaged or too large is left out, like one that the
 * replica no longer has; a disk that is full is the caller's to wait for. */
static weir_status store_picture(struct api_call *call, const char *text, const char *film,
                                 struct weir_decision *decision, struct weir_error *err)
{
    struct weir_pack_place place;
    char digest[WEIR_SHA256_TEXT_BYTES];
    size_t size = decoded_room(text), len;
    char *bytes = weir_arena_alloc(call->arena, size + decoded_room(film));
    decision->image = NULL;
    if (weir_base64_decode(text, bytes, size, &len) != WEIR_OK) {
        return WEIR_OK;
    }
    size_t n_film = add_film(film, decision, bytes, len);
    weir_status status =
        weir_packs_append(call->api->pictures, decision->id, bytes, len + n_film, &place, err);
    if (status == WEIR_ERR_LIMIT || status == WEIR_ERR_INVALID) {
        return WEIR_OK;
    }
    WEIR_TRY(status);
    weir_sha256(bytes, len, digest);
    decision->image = weir_arena_strdup(call->arena, digest);
    decision->pack = place.pack;
    decision->pack_offset = place.offset;
    decision->pack_bytes = place.bytes;
    decision->film_bytes = (int64_t)n_film;
    return WEIR_OK;
}

struct named {
    const struct api_call *call;
    const char *image;
    bool is_sent;
};

static weir_status find_sent(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct named *named = context;
    return weir_code_has_sent(txn, named->call->attempt->project, &named->image, 1, &named->is_sent,
                              err);
}

/* A task may name as its picture what its project has sent: else whoever sees the decision would see a file
 * of another project, of which the task knows the SHA-256. */
static weir_status check_named_picture(struct api_call *call, struct weir_decision *decision,
                                       struct weir_error *err)
{
    struct named named = {call, decision->image, false};
    if (call->attempt == NULL || decision->image == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_store_read(call->api->store, find_sent, &named, err));
    decision->image = named.is_sent ? decision->image : NULL;
    return WEIR_OK;
}

/* What the store said last: pictures from this pipeline that are as old as this time are not kept. */
struct kept_from {
    struct api_call *call;
    const struct weir_decision *decision;
    const char *ion, *pipeline;
    int64_t before;
};

static weir_status find_kept(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct kept_from *from = context;
    return weir_retain_pictures_before(txn, from->call->arena, from->decision->ion,
                                       from->decision->pipeline, from->call->now_ms, &from->before,
                                       err);
}

/* A shipment is of one pipeline: the store is asked once. */
static weir_status is_kept(struct kept_from *from, const struct weir_decision *decision, bool *out,
                           struct weir_error *err)
{
    *out = true;
    if (decision->ion == NULL || decision->pipeline == NULL) {
        return WEIR_OK;
    }
    if (from->ion == NULL || strcmp(from->ion, decision->ion) != 0 ||
        strcmp(from->pipeline, decision->pipeline) != 0) {
        from->decision = decision;
        WEIR_TRY(weir_store_read(from->call->api->store, find_kept, from, err));
        from->ion = decision->ion;
        from->pipeline = decision->pipeline;
    }
    *out = decision->time_ms > from->before;
    return WEIR_OK;
}

static weir_status read_decision(struct api_call *call, struct kept_from *from, const json_t *item,
                                 struct weir_decision *out, struct weir_error *err)
{
    bool is_to_keep;
    const char *picture = json_string_value(json_object_get(item, "picture"));
    const char *film = json_string_value(json_object_get(item, "film"));
    struct weir_error wrong = {0};
    out->score = out->threshold = out->brightness = NAN;
    json_t *fields = json_copy((json_t *)item);
    (void)json_object_del(fields, "picture");
    (void)json_object_del(fields, "film");
    weir_status status = weir_record_from_json(&weir_decision_resource, fields, WEIR_RECORD_REPORT,
                                               call->arena, out, &wrong);
    json_decref(fields);
    if (status == WEIR_OK) {
        status = check_decision(out, &wrong);
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", wrong.message + 1);
    }
    out->pack = out->pack_offset = out->pack_bytes = out->film_bytes =
        0; /* not a caller's to say */
    WEIR_TRY(is_kept(from, out, &is_to_keep, err));
    if (!is_to_keep) {
        out->image = NULL;
    } else {
        WEIR_TRY(picture != NULL ? store_picture(call, picture, film, out, err)
                                 : check_named_picture(call, out, err));
    }
    api_passage_tell(out, call->arena);
    return WEIR_OK;
}

struct shipment {
    struct weir_decision *decisions;
    size_t n, n_stored;
    struct weir_arena *arena;
    struct weir_decision_picture *erased;
    size_t n_erased;
    int64_t now_ms;
    size_t n_alerts; /**< That are new. */
};

static weir_status store_shipment(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct shipment *shipment = context;
    WEIR_TRY(weir_decisions_store(txn, shipment->decisions, shipment->n, shipment->erased,
                                  shipment->n_erased, &shipment->n_stored, err));
    return api_barred_raise(txn, shipment->decisions, shipment->n, shipment->now_ms,
                            &shipment->n_alerts, err);
}

static weir_status find_replaced(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct shipment *shipment = context;
    return weir_decisions_replaced(txn, shipment->decisions, shipment->n, shipment->arena,
                                   &shipment->erased, &shipment->n_erased, err);
}

/* The pictures of what was only tried go before their rows do: killed in between, a row says that its
 * picture is no longer kept. */
static weir_status erase_replaced(struct api_call *call, struct shipment *shipment,
                                  struct weir_error *err)
{
    WEIR_TRY(api_read(call, find_replaced, shipment, err));
    for (size_t i = 0; i < shipment->n_erased; i++) {
        const struct weir_decision_picture *picture = &shipment->erased[i];
        const struct weir_pack_place place = {picture->pack, picture->offset, picture->bytes};
        WEIR_TRY(weir_packs_erase(call->api->pictures, picture->id, &place, err));
    }
    return WEIR_OK;
}

/* Pictures first: they are no part of the transaction, which may run twice. */
weir_status api_decisions_put(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const json_t *list = json_object_get(call->body, "decisions");
    size_t n = json_array_size(list), i;
    json_t *item;
    (void)txn;
    WEIR_TRY(api_body_only(call, (const char *const[]){"ion", "pipeline", "decisions", NULL}, err));
    if (!json_is_array(list) || n > DECISIONS_PER_CALL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.decisions: expected an array of at most %d",
                              DECISIONS_PER_CALL);
    }
    struct shipment shipment = {.decisions =
                                    WEIR_ARENA_ARRAY(call->arena, n + 1, struct weir_decision),
                                .n = n,
                                .arena = call->arena,
                                .now_ms = call->now_ms};
    struct kept_from from = {.call = call};
    json_array_foreach(list, i, item)
    {
        struct weir_error wrong = {0};
        weir_status status = read_decision(call, &from, item, &shipment.decisions[i], &wrong);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "$.decisions[%zu]%s", i, wrong.message);
        }
    }
    WEIR_TRY(erase_replaced(call, &shipment, err));
    WEIR_TRY(api_write(call, store_shipment, &shipment, err));
    if (shipment.n_alerts > 0 && call->api->notify != NULL) {
        call->api->notify(call->api->notify_context);
    }
    API_ANSWER(call, api_stored_decisions, .stored = (int64_t)shipment.n_stored,
               .duplicates = (int64_t)(n - shipment.n_stored));
    return WEIR_OK;
}

/* What is kept of a decision in a pack: its picture and the film; whatever else lies there now is not it. */
static weir_status read_packed(struct api_call *call, const struct weir_decision *decision,
                               char **out_data, struct weir_error *err)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    size_t len;
    struct weir_error gone = {0};
    struct weir_pack_place place = {decision->pack, decision->pack_offset, decision->pack_bytes};
    weir_status status = weir_packs_read(call->api->pictures, decision->id, &place, call->arena,
                                         out_data, &len, &gone);
    if (status == WEIR_OK) {
        weir_sha256(*out_data, (size_t)(decision->pack_bytes - decision->film_bytes), digest);
    }
    if (status == WEIR_ERR_NOT_FOUND ||
        (status == WEIR_OK && strcmp(digest, decision->image) != 0)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "the picture of decision %s is no longer kept", decision->id);
    }
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "%s", gone.message);
}

/* Answer with a part of it. */
static weir_status answer_part(struct api_call *call, const struct weir_decision *decision,
                               size_t offset, size_t len, struct weir_error *err)
{
    char *data, *path;
    if (decision->pack != 0) {
        WEIR_TRY(read_packed(call, decision, &data, err));
        assert(offset + len <= (size_t)decision->pack_bytes);
        weir_http_response_bytes(call->response, 200, "image/jpeg", data + offset, len);
    } else {
        WEIR_TRY(weir_blob_path(call->api->blobs, decision->image, call->arena, &path, NULL, err));
        weir_http_response_file(call->response, 200, "image/jpeg", path);
    }
    weir_http_response_header(call->response, "Cache-Control", "private, max-age=86400, immutable");
    return WEIR_OK;
}

static weir_status get_shown(struct api_call *call, struct weir_txn *txn, struct weir_decision *out,
                             struct weir_error *err)
{
    WEIR_TRY(weir_txn_get(txn, &weir_decision_resource, call->params[0], call->arena, out, err));
    return out->image != NULL
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_NOT_FOUND,
                                "decision %s has no picture: none was kept, or its time is over",
                                out->id);
}

weir_status api_decision_image(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_decision decision;
    WEIR_TRY(get_shown(call, txn, &decision, err));
    return answer_part(call, &decision, 0, (size_t)(decision.pack_bytes - decision.film_bytes),
                       err);
}

weir_status api_decision_frame(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_decision decision;
    size_t offset, len;
    WEIR_TRY(get_shown(call, txn, &decision, err));
    WEIR_TRY(api_passage_find(&decision, call->params[1], &offset, &len, err));
    return answer_part(call, &decision, offset, len, err);
}

static double quantile(int64_t us)
{
    return us < 0 ? NAN : (double)us / 1000.0;
}

weir_status api_decisions_summary(struct api_call *call, struct weir_txn *txn,
                                  struct weir_error *err)
{
    struct weir_decision_summary summary;
    struct weir_decision_window window = {.ion = api_query_text(call, "ion")};
    window.after_seq = api_query_int(call, "after");
    window.since_ms = api_query_time(call, "since", 0);
    window.until_ms = api_query_time(call, "until", 0);
    int64_t n_buckets = api_query_int(call, "buckets");
    int64_t end_ms = window.until_ms > 0 ? window.until_ms : call->now_ms;
    if (window.ion == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "query parameter ion: missing");
    }
    if (window.after_seq > 0 && window.since_ms > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameters after and since: give one of them");
    }
    if (n_buckets > 0 && (window.since_ms <= 0 || end_ms <= window.since_ms)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "query parameter buckets: needs since, and an end after it");
    }
    if (n_buckets > 0) {
        window.until_ms = end_ms;
        window.n_buckets = (size_t)n_buckets;
    }
    WEIR_TRY(weir_decisions_summary(txn, &window, call->arena, &summary, err));
    double covered_s = (double)WEIR_MAX(end_ms - summary.from_ms, 1000) / 1000.0;
    API_ANSWER(call, api_decision_summary, .decisions = summary.n, .verdicts = &summary,
               .latency_ms = {quantile(summary.latency_p50_us), quantile(summary.latency_p90_us),
                              quantile(summary.latency_p99_us), quantile(summary.latency_max_us)},
               .durable_p99_ms = quantile(summary.durable_p99_us), .last_seq = summary.last_seq,
               .from_ms = summary.n > 0 ? summary.from_ms : 0,
               .per_second = (double)summary.n / covered_s, .buckets = summary.buckets,
               .n_buckets = window.n_buckets);
    return WEIR_OK;
}

/* Cameras that a report names: "door-1, door-2"; NULL: none. */
static const char *cameras_of(struct api_call *call, const struct weir_health_report *report)
{
    json_t *detail = report->detail != NULL ? json_loads(report->detail, 0, NULL) : NULL, *camera;
    const char *text = NULL;
    size_t i;
    json_array_foreach(json_object_get(detail, "cameras"), i, camera)
    {
        const char *name = json_string_value(camera);
        if (name != NULL && i < CAMERAS_NAMED) {
            text = text != NULL ? weir_arena_printf(call->arena, "%s, %s", text, name)
                                : weir_arena_strdup(call->arena, name);
        }
    }
    json_decref(detail);
    return text;
}

/* What a person is told of a drift. */
static char *drift_sentence(struct api_call *call, const struct weir_health_report *report)
{
    const char *cameras = cameras_of(call, report);
    if (strcmp(report->signal, "frozen") == 0) {
        return weir_arena_printf(
            call->arena,
            "%s: %s shows the same picture again and again (%lld frames): look "
            "at the camera",
            report->pipeline, cameras != NULL ? cameras : "a camera", (long long)report->n_samples);
    }
    if (strcmp(report->signal, "duplicate") == 0) {
        return weir_arena_printf(call->arena,
                                 "%s gets frames more than once: %.3g %% of %lld were seen shortly "
                                 "before",
                                 report->pipeline, 100 * report->value,
                                 (long long)report->n_samples);
    }
    return weir_arena_printf(call->arena,
                             "%s of %s no longer looks like the training data (%s %.3f, "
                             "p = %.2g over %lld %s)",
                             report->signal, report->pipeline, report->statistic, report->value,
                             report->p_value, (long long)report->n_samples,
                             strchr(report->signal, ':') != NULL ? "values" : "frames");
}

weir_status api_health_store(struct api_call *call, struct weir_txn *txn,
                             const struct weir_health_report *given, struct weir_error *err)
{
    struct weir_health_report report = *given;
    struct control control = api_control(call);
    WEIR_TRY(weir_health_report_store(txn, &report, err));
    char *key = weir_arena_printf(call->arena, "drift:%s:%s:%s", report.ion, report.pipeline,
                                  report.signal);
    if (report.drifted) {
        char alert_id[WEIR_UUID_BYTES];
        weir_uuid_make(alert_id);
        struct weir_alert alert = {
            .id = alert_id,
            .key = key,
            .severity = "warning",
            .kind = "drift",
            .subject = weir_arena_printf(call->arena, "ion/%s", report.ion),
            .message = drift_sentence(call, &report),
            .data = report.detail,
        };
        bool is_new;
        WEIR_TRY(weir_alert_raise(txn, &alert, call->now_ms, &is_new, err));
        control_publish(&control, "alerts", json_pack("{s:s,s:b}", "kind", "drift", "new", is_new));
        return WEIR_OK;
    }
    bool is_elsewhere;
    WEIR_TRY(weir_health_drifts_elsewhere(txn, &report, &is_elsewhere, err));
    return is_elsewhere ? WEIR_OK : weir_alert_resolve(txn, key, call->now_ms, err);
}

weir_status api_health_report(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_health_report report = {0};
    WEIR_TRY(weir_record_from_json(&weir_health_report_resource, call->body, WEIR_RECORD_REPORT,
                                   call->arena, &report, err));
    char id[WEIR_UUID_BYTES];
    weir_uuid_make(id);
    report.id = report.id != NULL ? report.id : id;
    report.time_ms = call->now_ms;
    WEIR_TRY(api_health_store(call, txn, &report, err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
