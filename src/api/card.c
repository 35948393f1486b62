/** Model cards: what records say of a version, collected; api/card.h. */
#include "api/card.h"

#include "api/answer.h"
#include "api/call.h"
#include "api/functions.h"
#include "api/lineage.h"
#include "api/model.h"
#include "api/query.h"
#include "blob/blob.h"
#include "control/lineage.h"
#include "ion/decision.h"
#include "ion/feedback.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/model_baseline.h"
#include "track/registry.h"
#include "track/run.h"
#include "track/track.h"

#include <math.h>
#include <string.h>

#define CARD_MAX_BYTES     ((size_t)8 << 20)
#define MANIFEST_MAX_BYTES ((size_t)32 << 20)
#define COUNTED_FILES_MAX  100000 /* of a version whose classes are counted */
#define REPORTS_MAX        5000
#define SIGNALS_MAX        64

/** A card in the making. */
struct card {
    struct api_call *call;
    struct weir_txn *txn;
    struct weir_model model;
    struct weir_model_version version;
    json_t *out, *lineage, *limits; /**< `out` owns the others. */
};

static void say(struct card *card, const char *sentence)
{
    json_array_append_new(card->limits, json_string(sentence));
}

static json_t *text_json(const char *text)
{
    json_t *value = text != NULL ? json_string(text) : NULL;
    return value != NULL ? value : json_null();
}

static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *time_json(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms == 0) {
        return json_null();
    }
    weir_time_format(time_ms, text);
    return json_string(text);
}

/* ---- what it is ------------------------------------------------------------------------------ */

static weir_status add_model(struct card *card, struct weir_error *err)
{
    struct weir_tag *tags;
    size_t n;
    json_t *view = weir_record_to_json(&weir_model_resource, &card->model);
    json_t *its = json_object();
    json_object_set_new(card->out, "model", view);
    json_object_set_new(view, "tags", its);
    WEIR_TRY(weir_model_tags(card->txn, card->model.name, card->call->arena, &tags, &n, err));
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(its, tags[i].key, text_json(tags[i].value));
    }
    return WEIR_OK;
}

/* The first labels; how many there are stands beside. */
static void cut_labels(struct card *card, json_t *version)
{
    json_t *signature = json_object_get(version, "signature");
    const json_t *labels = json_object_get(signature, "labels");
    json_t *n =
        json_is_array(labels) ? json_integer((json_int_t)json_array_size(labels)) : json_null();
    json_object_set_new(card->out, "n_labels", n);
    if (json_array_size(labels) > CARD_LABELS_MAX) {
        json_t *first = json_array();
        for (size_t i = 0; i < CARD_LABELS_MAX; i++) {
            json_array_append(first, json_array_get(labels, i));
        }
        json_object_set_new(signature, "labels", first);
    }
}

static weir_status add_version(struct card *card, struct weir_error *err)
{
    struct weir_model_version version = card->version;
    json_t *view;
    version.baseline = NULL; /* large, and no text for people */
    WEIR_TRY(api_version_view(card->call, card->txn, &version, &view, err));
    json_object_set_new(card->out, "version", view);
    cut_labels(card, view);
    const json_t *model = json_object_get(json_object_get(view, "parameters"), "model");
    json_object_set_new(card->out, "architecture",
                        json_is_string(model) ? json_copy((json_t *)model) : json_null());
    if (version.signature == NULL) {
        say(card, version.unservable != NULL
                      ? "What it takes and gives is not known: it has no file that can be served."
                      : "What it takes and gives is not known: nobody has looked at its file.");
    }
    if (version.description == NULL || version.description[0] == '\0') {
        say(card, "Nobody has described this version.");
    }
    return WEIR_OK;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Is this class a person who was forgotten? Their name is not told again. */
static bool is_forgotten(const json_t *dataset, const char *class)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(dataset, "forgotten"), i, one)
    {
        const char *person = json_string_value(json_object_get(one, "person"));
        if (person != NULL && strcmp(person, class) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *count_classes(const json_t *manifest, const json_t *dataset)
{
    size_t i;
    json_t *file, *counts = json_object();
    json_array_foreach(json_object_get(manifest, "files"), i, file)
    {
        const char *class = json_string_value(json_object_get(file, "class"));
        if (class != NULL && class[0] != '\0' && !is_forgotten(dataset, class)) {
            json_int_t n = json_integer_value(json_object_get(counts, class));
            json_object_set_new(counts, class, json_integer(n + 1));
        }
    }
    return counts;
}

/* By name, as the manifest has them. */
static void add_classes(struct card *card, const json_t *counts)
{
    const char *class;
    json_t *n, *data = json_object_get(card->out, "data");
    json_t *list = json_object_get(data, "classes");
    json_object_foreach((json_t *)counts, class, n)
    {
        if (json_array_size(list) < CARD_CLASSES_MAX) {
            json_array_append_new(list, json_pack("{s:s,s:O}", "name", class, "n_files", n));
        }
    }
    json_object_set_new(
        data, "n_others",
        json_integer((json_int_t)(json_object_size(counts) - json_array_size(list))));
    if (json_object_size(counts) == 1) {
        say(card, "Its training data has one class: whatever it answers is right there, and its "
                  "accuracy says nothing.");
    }
}

/* @return Why the classes are not counted, or NULL. */
static const char *read_classes(struct card *card, const struct weir_dataset_version *version,
                                const json_t *dataset)
{
    char *path;
    json_t *manifest;
    struct weir_error missing;
    if (version->n_files > COUNTED_FILES_MAX) {
        return "it has more files than a card counts";
    }
    if (version->blob == NULL ||
        weir_blob_path(card->call->api->blobs, version->blob, card->call->arena, &path, NULL,
                       &missing) != WEIR_OK ||
        weir_json_load(path, MANIFEST_MAX_BYTES, &manifest, &missing) != WEIR_OK) {
        return "its list of files is not there";
    }
    json_t *counts = count_classes(manifest, dataset);
    bool has_classes = json_object_size(counts) > 0;
    add_classes(card, counts);
    json_decref(counts);
    json_decref(manifest);
    return has_classes || version->n_files == 0 ? NULL : "its classes are no folders of it";
}

/* The dataset that it was trained with: the version's own, else that of its run. */
static void training_data(const struct card *card, const char **out_name, int64_t *out_version)
{
    const json_t *run = json_array_get(json_object_get(card->lineage, "runs"), 0);
    const json_t *read = json_array_get(json_object_get(run, "reads"), 0);
    *out_name = card->version.dataset;
    *out_version = card->version.dataset_version;
    if (*out_name == NULL || *out_version == 0) {
        *out_name = json_string_value(json_object_get(read, "name"));
        *out_version = json_integer_value(json_object_get(read, "version"));
    }
}

static weir_status add_data(struct card *card, struct weir_error *err)
{
    const char *name;
    int64_t number;
    struct weir_dataset_version version;
    struct weir_error missing;
    json_t *data = json_object();
    json_object_set_new(card->out, "data", data);
    training_data(card, &name, &number);
    json_object_set_new(data, "dataset", text_json(name));
    json_object_set_new(data, "version", number > 0 ? json_integer(number) : json_null());
    json_object_set_new(data, "classes", json_array());
    json_object_set_new(data, "n_others", json_integer(0));
    json_object_set_new(data, "why", json_null());
    if (name == NULL || number == 0) {
        say(card, name == NULL ? "What it was trained with is not known."
                               : "Which version of its dataset it was trained with is not known.");
        return WEIR_OK;
    }
    weir_status status =
        weir_dataset_version_get(card->txn, name, number, card->call->arena, &version, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        say(card, "The dataset version that it was trained with is not there.");
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    size_t i;
    json_t *one, *dataset = NULL;
    json_array_foreach(json_object_get(card->lineage, "datasets"), i, one)
    {
        const char *its = json_string_value(json_object_get(one, "dataset"));
        if (its != NULL && strcmp(its, name) == 0 &&
            json_integer_value(json_object_get(one, "version")) == number) {
            dataset = one;
        }
    }
    json_object_set_new(data, "why", text_json(read_classes(card, &version, dataset)));
    return WEIR_OK;
}

/* Names of what the baseline has, in its file or attached. */
static weir_status add_baseline(struct card *card, struct weir_error *err)
{
    struct weir_model_baseline attached;
    struct weir_error missing;
    const char *name;
    json_t *value, *names = json_array();
    json_object_set_new(card->out, "baseline", names);
    const char *texts[2] = {card->version.baseline, NULL};
    weir_status status = weir_txn_get(card->txn, &weir_model_baseline_resource, card->version.id,
                                      card->call->arena, &attached, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    texts[1] = status == WEIR_OK ? attached.baseline : NULL;
    for (size_t i = 0; i < 2; i++) {
        json_t *baseline = texts[i] != NULL ? json_loads(texts[i], 0, NULL) : NULL;
        json_t *features = json_object_get(baseline, "features");
        json_object_foreach(json_is_object(features) ? features : baseline, name, value)
        {
            json_array_append_new(names, json_string(name));
        }
        json_decref(baseline);
    }
    if (json_array_size(names) == 0) {
        say(card, "There is no baseline of its training data: whether live data drifts from it "
                  "cannot be told.");
    }
    return WEIR_OK;
}

/* ---- how good it is -------------------------------------------------------------------------- */

static const char sql_evaluations[] =
    "SELECT r.id FROM runs r JOIN track_keys k ON k.name = 'model' JOIN run_parameters p ON"
    " p.run = r.number AND p.key = k.id WHERE r.project = :project AND r.kind = 'measure' AND"
    " r.status = 'FINISHED' AND r.deleted_ms = 0 AND p.value = :model"
    " ORDER BY r.created_ms DESC LIMIT :max";

static weir_status add_evaluation(struct card *card, const char *id, json_t *list,
                                  struct weir_error *err)
{
    struct weir_run run;
    struct weir_metric *metrics;
    int64_t number;
    size_t n;
    WEIR_TRY(weir_txn_get(card->txn, &weir_run_resource, id, card->call->arena, &run, err));
    WEIR_TRY(weir_run_number(card->txn, id, &number, err));
    WEIR_TRY(weir_run_metrics(card->txn, number, card->call->arena, &metrics, &n, err));
    json_t *view = json_object(), *figures = json_object();
    json_object_set_new(view, "run", text_json(run.id));
    json_object_set_new(view, "name", text_json(run.name));
    json_object_set_new(view, "dataset", text_json(run.dataset));
    json_object_set_new(view, "dataset_version",
                        run.dataset_version > 0 ? json_integer(run.dataset_version) : json_null());
    json_object_set_new(view, "created_by", text_json(run.created_by));
    json_object_set_new(view, "created_ms", time_json(run.created_ms));
    json_object_set_new(view, "metrics", figures);
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(figures, metrics[i].key, real_json(metrics[i].value));
    }
    json_array_append_new(list, view);
    return WEIR_OK;
}

static bool has_validation(const json_t *metrics)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metrics, key, value)
    {
        if (strstr(key, "val") != NULL && json_is_number(value)) {
            return true;
        }
    }
    return false;
}

static weir_status add_quality(struct card *card, struct weir_error *err)
{
    char **runs, *model = weir_arena_printf(card->call->arena, "%s@v%lld", card->version.model,
                                            (long long)card->version.version);
    size_t n;
    json_t *list = json_array();
    const json_t *metrics = json_object_get(json_object_get(card->out, "version"), "metrics");
    json_object_set_new(card->out, "evaluations", list);
    WEIR_TRY(weir_txn_query_texts(card->txn, sql_evaluations,
                                  WEIR_BINDS(WEIR_BIND_TEXT("project", card->model.project),
                                             WEIR_BIND_TEXT("model", model),
                                             WEIR_BIND_INT("max", CARD_EVALUATIONS_MAX)),
                                  card->call->arena, &runs, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(add_evaluation(card, runs[i], list, err));
    }
    if (!has_validation(metrics)) {
        say(card,
            json_object_size(metrics) > 0
                ? "No validation was measured: its figures are those of its training data, or "
                  "nobody has said of which."
                : "No validation was measured, and no other figure.");
    }
    if (n == 0) {
        say(card, "It was not evaluated on a named dataset.");
    }
    return WEIR_OK;
}

/* ---- live ------------------------------------------------------------------------------------ */

static const char sql_cameras[] =
    "SELECT camera, count(*), sum(is_right) FROM feedback WHERE ion = :ion AND decided_ms >= :since"
    " AND pipeline = :pipeline AND model_version = :version GROUP BY camera ORDER BY camera"
    " LIMIT :max";

/** A pipeline that serves the version. */
struct live {
    struct card *card;
    const char *ion, *pipeline;
    int64_t since_ms;
    json_t *view;
};

static json_t *accuracy_view(const char *name, int64_t n, int64_t n_right)
{
    struct weir_accuracy accuracy = weir_accuracy_of(n, n_right);
    json_t *view = json_object();
    json_object_set_new(view, "name", text_json(name));
    json_object_set_new(view, "n", json_integer(n));
    json_object_set_new(view, "right", json_integer(n_right));
    json_object_set_new(view, "accuracy", real_json(accuracy.accuracy));
    json_object_set_new(view, "low", real_json(accuracy.low));
    json_object_set_new(view, "high", real_json(accuracy.high));
    return view;
}

static weir_status add_accuracy(struct live *live, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    int64_t n = 0, n_right = 0;
    json_t *cameras = json_array();
    bool has_row;
    json_object_set_new(live->view, "cameras", cameras);
    WEIR_TRY(weir_stmt_open(live->card->txn, sql_cameras,
                            WEIR_BINDS(WEIR_BIND_TEXT("ion", live->ion),
                                       WEIR_BIND_TEXT("pipeline", live->pipeline),
                                       WEIR_BIND_INT("since", live->since_ms),
                                       WEIR_BIND_INT("version", live->card->version.version),
                                       WEIR_BIND_INT("max", WEIR_ACCURACY_GROUPS_MAX)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        n += weir_stmt_int(stmt, 1);
        n_right += weir_stmt_int(stmt, 2);
        json_array_append_new(cameras,
                              accuracy_view(weir_stmt_peek(stmt, 0, NULL), weir_stmt_int(stmt, 1),
                                            weir_stmt_int(stmt, 2)));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    json_object_set_new(live->view, "accuracy", accuracy_view(NULL, n, n_right));
    if (n == 0) {
        say(live->card,
            weir_arena_printf(live->card->call->arena,
                              "How right it is at %s / %s is not known: nobody has told the truth "
                              "about its decisions of the last 7 days.",
                              live->ion, live->pipeline));
    }
    return WEIR_OK;
}

static bool is_listed(const json_t *signals, const char *signal)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)signals, i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "signal")), signal) == 0) {
            return true;
        }
    }
    return false;
}

/* The newest report of each signal that is about this version. */
static weir_status add_drift(struct live *live, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, live->ion),
                                                  WEIR_FILTER_INT("time_ms", GE, live->since_ms)),
                                     .order_by = "time_ms", .is_descending = true,
                                     .limit = REPORTS_MAX, .max_bytes = API_ANSWER_MAX_BYTES};
    void *items;
    size_t n;
    json_t *signals = json_array();
    json_object_set_new(live->view, "signals", signals);
    WEIR_TRY(weir_txn_list(live->card->txn, &weir_health_report_resource, &query,
                           live->card->call->arena, &items, &n, NULL, err));
    for (size_t i = 0; i < n && json_array_size(signals) < SIGNALS_MAX; i++) {
        const struct weir_health_report *report = (const struct weir_health_report *)items + i;
        if (strcmp(report->pipeline, live->pipeline) != 0 ||
            report->model_version != live->card->version.version ||
            is_listed(signals, report->signal)) {
            continue;
        }
        json_t *view = json_object();
        json_object_set_new(view, "signal", text_json(report->signal));
        json_object_set_new(view, "statistic", text_json(report->statistic));
        json_object_set_new(view, "value", real_json(report->value));
        json_object_set_new(view, "p_value", real_json(report->p_value));
        json_object_set_new(view, "drifted", json_boolean(report->drifted));
        json_object_set_new(view, "n_samples", json_integer(report->n_samples));
        json_object_set_new(view, "time_ms", time_json(report->time_ms));
        json_array_append_new(signals, view);
    }
    if (json_array_size(signals) == 0) {
        say(live->card, weir_arena_printf(live->card->call->arena,
                                          "No drift was measured at %s / %s in the last 7 days.",
                                          live->ion, live->pipeline));
    }
    return WEIR_OK;
}

/* Where nobody knows which of two models decided, the figures are nobody's. */
static bool is_live(const json_t *place)
{
    const char *state = json_string_value(json_object_get(place, "state"));
    const json_t *counts = json_object_get(place, "decisions");
    return state != NULL && strcmp(state, "SERVING") == 0 &&
           json_is_integer(json_object_get(counts, "n_made"));
}

static weir_status add_live(struct card *card, struct weir_error *err)
{
    size_t i;
    json_t *place, *list = json_array();
    json_object_set_new(card->out, "live", list);
    json_array_foreach(json_object_get(card->lineage, "places"), i, place)
    {
        struct live live = {.card = card,
                            .ion = json_string_value(json_object_get(place, "ion")),
                            .pipeline = json_string_value(json_object_get(place, "pipeline")),
                            .since_ms = card->call->now_ms - CARD_LIVE_MS};
        if (live.pipeline == NULL || !is_live(place)) {
            continue;
        }
        live.view = json_object();
        json_array_append_new(list, live.view);
        json_object_set_new(live.view, "ion", json_string(live.ion));
        json_object_set_new(live.view, "pipeline", json_string(live.pipeline));
        json_object_set_new(live.view, "since_ms", time_json(live.since_ms));
        WEIR_TRY(add_accuracy(&live, err));
        WEIR_TRY(add_drift(&live, err));
    }
    return WEIR_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void say_of_code(struct card *card)
{
    const json_t *run = json_array_get(json_object_get(card->lineage, "runs"), 0);
    const json_t *code = json_object_get(run, "code");
    static const char *const members[] = {"version", "commit", "manifest"};
    bool is_known = card->version.code_version != NULL;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        is_known = is_known || json_is_string(json_object_get(code, members[i]));
    }
    if (!is_known) {
        say(card, "What code made it is not known.");
    }
}

static weir_status collect(struct card *card, struct weir_error *err)
{
    struct api_call *call = card->call;
    size_t i;
    json_t *one;
    WEIR_TRY(control_lineage_version(card->txn, card->version.model, card->version.version,
                                     call->arena, &card->lineage, err));
    json_object_set_new(card->out, "lineage", card->lineage);
    card->limits = json_array();
    json_object_set_new(card->out, "limits", card->limits);
    json_object_set_new(card->out, "made_ms", time_json(call->now_ms));
    WEIR_TRY(add_model(card, err));
    WEIR_TRY(add_version(card, err));
    WEIR_TRY(add_data(card, err));
    WEIR_TRY(add_baseline(card, err));
    WEIR_TRY(add_quality(card, err));
    WEIR_TRY(add_live(card, err));
    say_of_code(card);
    json_array_foreach(json_object_get(card->lineage, "unknown"), i, one)
    {
        json_array_append(card->limits, one);
    }
    return weir_arena_check(call->arena, "a model card", err);
}

static weir_status answer_markdown(struct api_call *call, const json_t *card,
                                   struct weir_error *err)
{
    struct weir_buf text;
    weir_buf_init(&text, CARD_MAX_BYTES);
    card_markdown(card, &text);
    if (text.status != WEIR_OK) {
        weir_status status = text.status;
        weir_buf_fini(&text);
        return weir_error_set(err, status, "the card is larger than %zu bytes", CARD_MAX_BYTES);
    }
    weir_http_response_buf(call->response, 200, "text/markdown; charset=utf-8", &text);
    weir_http_response_header(
        call->response, "Content-Disposition",
        weir_arena_printf(call->arena, "attachment; filename=\"%s-v%s.md\"",
                          weir_http_percent_encode(call->arena, call->params[0]), call->params[1]));
    return WEIR_OK;
}

struct asked {
    struct card *card;
    int64_t version;
};

static weir_status card_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asked *asked = context;
    struct card *card = asked->card;
    const char *name = card->call->params[0];
    json_object_clear(card->out);
    card->txn = txn;
    WEIR_TRY(
        weir_model_version_get(txn, name, asked->version, card->call->arena, &card->version, err));
    WEIR_TRY(weir_model_get(txn, name, card->call->arena, &card->model, err));
    return collect(card, err);
}

weir_status api_model_card(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *format = api_query_text(call, "format");
    WEIR_AUTO(weir_json_auto_free) json_t *out = json_object();
    struct card card = {.call = call, .out = out};
    struct asked asked = {.card = &card};
    (void)txn;
    WEIR_TRY(api_read_version(call->params[1], &asked.version, err));
    WEIR_TRY(api_lineage_read(call, card_in, &asked, err));
    if (format != NULL && strcmp(format, "markdown") == 0) {
        return answer_markdown(call, out, err);
    }
    api_answer(call, json_incref(out));
    return WEIR_OK;
}
