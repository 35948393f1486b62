/** Model cards: what records say of a version, collected; api/model/card.h. */
#include "api/model/card.h"

#include "api/core/answer.h"
#include "api/core/call.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/core/views.h"
#include "api/model/model.h"
#include "api/track/lineage.h"
#include "base/grow.h"
#include "blob/blob.h"
#include "control/lineage.h"
#include "framework/model_names.h"
#include "ion/decision.h"
#include "ion/feedback.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/model_baseline.h"
#include "track/registry.h"
#include "track/run.h"
#include "track/track.h"

#include <string.h>

#define CARD_MAX_BYTES     ((size_t)8 << 20)
#define MANIFEST_MAX_BYTES ((size_t)32 << 20)
#define COUNTED_FILES_MAX  100000 /* of a version whose classes are counted */
#define REPORTS_MAX        5000
#define SIGNALS_MAX        64

/** Texts that grow, in the call's arena. */
struct texts {
    char **items;
    size_t n, cap;
};

/** A card in the making. Its lineage and version are owned until it is written. */
struct card {
    struct api_call *call;
    struct weir_txn *txn;
    struct weir_model model;
    struct weir_model_version version;
    struct api_tags tags;
    struct texts limits, baseline;
    struct api_model_card out;
};

static void add_text(struct card *card, struct texts *texts, const char *text)
{
    weir_arena_grow(card->call->arena, &texts->items, sizeof *texts->items, texts->n, &texts->cap);
    texts->items[texts->n++] = weir_arena_strdup(card->call->arena, text);
}

static void say(struct card *card, const char *sentence)
{
    add_text(card, &card->limits, sentence);
}

static void give_up(struct card *card)
{
    json_decref(card->out.lineage);
    json_decref(card->out.version);
    card->out = (struct api_model_card){.n_labels = WEIR_INT_NONE};
    card->limits.n = card->baseline.n = 0;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static weir_status add_model(struct card *card, struct weir_error *err)
{
    struct weir_tag *tags;
    WEIR_TRY(weir_model_tags(card->txn, card->model.name, card->call->arena, &tags,
                             &card->tags.n_tags, err));
    card->tags.tags = tags;
    card->out.model = (struct api_model){.row = &card->model, .tags = &card->tags};
    return WEIR_OK;
}

/* The first labels; how many there are stands beside. */
static void cut_labels(struct card *card)
{
    json_t *signature = json_object_get(card->out.version, "signature");
    const json_t *labels = json_object_get(signature, "labels");
    if (json_is_array(labels)) {
        card->out.n_labels = (int64_t)json_array_size(labels);
    }
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
    version.baseline = NULL; /* large, and no text for people */
    WEIR_TRY(api_version_view(card->call, card->txn, &version, &card->out.version, err));
    cut_labels(card);
    card->out.architecture = json_string_value(
        json_object_get(json_object_get(card->out.version, "parameters"), "model"));
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
    struct api_card_class *classes =
        WEIR_ARENA_ARRAY(card->call->arena, CARD_CLASSES_MAX, struct api_card_class);
    struct api_card_data *data = &card->out.data;
    const char *class;
    json_t *n;
    json_object_foreach((json_t *)counts, class, n)
    {
        if (data->n_classes < CARD_CLASSES_MAX) {
            classes[data->n_classes++] = (struct api_card_class){
                weir_arena_strdup(card->call->arena, class), json_integer_value(n)};
        }
    }
    data->classes = classes;
    data->n_others = (int64_t)(json_object_size(counts) - data->n_classes);
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
    const json_t *run = json_array_get(json_object_get(card->out.lineage, "runs"), 0);
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
    training_data(card, &name, &number);
    card->out.data = (struct api_card_data){.dataset = name, .version = WEIR_MAX(number, 0)};
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
    json_array_foreach(json_object_get(card->out.lineage, "datasets"), i, one)
    {
        const char *its = json_string_value(json_object_get(one, "dataset"));
        if (its != NULL && strcmp(its, name) == 0 &&
            json_integer_value(json_object_get(one, "version")) == number) {
            dataset = one;
        }
    }
    card->out.data.why = read_classes(card, &version, dataset);
    return WEIR_OK;
}

/* Names of what the baseline has, in its file or attached. */
static weir_status add_baseline(struct card *card, struct weir_error *err)
{
    struct weir_model_baseline attached;
    struct weir_error missing;
    const char *name;
    json_t *value;
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
            add_text(card, &card->baseline, name);
        }
        json_decref(baseline);
    }
    if (card->baseline.n == 0) {
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

static weir_status evaluation_view(struct card *card, const char *id,
                                   struct api_card_evaluation *out, struct weir_error *err)
{
    struct weir_run run;
    struct weir_metric *metrics;
    int64_t number;
    size_t n;
    WEIR_TRY(weir_txn_get(card->txn, &weir_run_resource, id, card->call->arena, &run, err));
    WEIR_TRY(weir_run_number(card->txn, id, &number, err));
    WEIR_TRY(weir_run_metrics(card->txn, number, card->call->arena, &metrics, &n, err));
    *out = (struct api_card_evaluation){.run = run.id,
                                        .name = run.name,
                                        .dataset = run.dataset,
                                        .dataset_version = WEIR_MAX(run.dataset_version, 0),
                                        .created_by = run.created_by,
                                        .created_ms = run.created_ms,
                                        .metrics = metrics,
                                        .n_metrics = n};
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
    const json_t *metrics = json_object_get(card->out.version, "metrics");
    WEIR_TRY(weir_txn_query_texts(card->txn, sql_evaluations,
                                  WEIR_BINDS(WEIR_BIND_TEXT("project", card->model.project),
                                             WEIR_BIND_TEXT("model", model),
                                             WEIR_BIND_INT("max", CARD_EVALUATIONS_MAX)),
                                  card->call->arena, &runs, &n, err));
    struct api_card_evaluation *evaluations =
        WEIR_ARENA_ARRAY(card->call->arena, n, struct api_card_evaluation);
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(evaluation_view(card, runs[i], &evaluations[i], err));
    }
    card->out.evaluations = evaluations;
    card->out.n_evaluations = n;
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
    const char *own = card->out.architecture;
    const struct weir_model_name *known = own != NULL ? weir_model_name_find(own) : NULL;
    if (known != NULL && known->is_detector) {
        say(card,
            "It is a detector of the enrolled: it has learnt faces like those of its data, and "
            "its recall and precision are of composed scenes, not of a camera's.");
    }
    return WEIR_OK;
}

/* ---- live ------------------------------------------------------------------------------------ */

static const char sql_cameras[] =
    "SELECT camera, count(*), sum(is_right) FROM feedback WHERE ion = :ion AND decided_ms >= :since"
    " AND pipeline = :pipeline AND model_version = :version GROUP BY camera ORDER BY camera"
    " LIMIT :max";

static struct api_card_accuracy accuracy_view(const char *name, int64_t n, int64_t n_right)
{
    struct weir_accuracy of = weir_accuracy_of(n, n_right);
    return (struct api_card_accuracy){name, n, n_right, of.accuracy, of.low, of.high};
}

static weir_status add_accuracy(struct card *card, struct api_card_live *live,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    struct weir_arena *arena = card->call->arena;
    struct api_card_accuracy *cameras =
        WEIR_ARENA_ARRAY(arena, WEIR_ACCURACY_GROUPS_MAX, struct api_card_accuracy);
    int64_t n = 0, n_right = 0;
    bool has_row;
    WEIR_TRY(weir_stmt_open(card->txn, sql_cameras,
                            WEIR_BINDS(WEIR_BIND_TEXT("ion", live->ion),
                                       WEIR_BIND_TEXT("pipeline", live->pipeline),
                                       WEIR_BIND_INT("since", live->since_ms),
                                       WEIR_BIND_INT("version", card->version.version),
                                       WEIR_BIND_INT("max", WEIR_ACCURACY_GROUPS_MAX)),
                            &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    while (has_row) {
        n += weir_stmt_int(stmt, 1);
        n_right += weir_stmt_int(stmt, 2);
        cameras[live->n_cameras++] = accuracy_view(weir_stmt_text(stmt, 0, arena),
                                                   weir_stmt_int(stmt, 1), weir_stmt_int(stmt, 2));
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    }
    live->cameras = cameras;
    live->accuracy = accuracy_view(NULL, n, n_right);
    if (n == 0) {
        say(card, weir_arena_printf(arena,
                                    "How right it is at %s / %s is not known: nobody has told the "
                                    "truth about its decisions of the last 7 days.",
                                    live->ion, live->pipeline));
    }
    return WEIR_OK;
}

static bool is_listed(const struct weir_health_report *signals, size_t n, const char *signal)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(signals[i].signal, signal) == 0) {
            return true;
        }
    }
    return false;
}

/* The newest report of each signal that is about this version. */
static weir_status add_drift(struct card *card, struct api_card_live *live, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, live->ion),
                                                  WEIR_FILTER_INT("time_ms", GE, live->since_ms)),
                                     .order_by = "time_ms", .is_descending = true,
                                     .limit = REPORTS_MAX, .max_bytes = API_ANSWER_MAX_BYTES};
    struct weir_arena *arena = card->call->arena;
    struct weir_health_report *signals =
        WEIR_ARENA_ARRAY(arena, SIGNALS_MAX, struct weir_health_report);
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(card->txn, &weir_health_report_resource, &query, arena, &items, &n, NULL,
                           err));
    for (size_t i = 0; i < n && live->n_signals < SIGNALS_MAX; i++) {
        const struct weir_health_report *report = (const struct weir_health_report *)items + i;
        if (strcmp(report->pipeline, live->pipeline) == 0 &&
            report->model_version == card->version.version &&
            !is_listed(signals, live->n_signals, report->signal)) {
            signals[live->n_signals++] = *report;
        }
    }
    live->signals = signals;
    if (live->n_signals == 0) {
        say(card, weir_arena_printf(arena, "No drift was measured at %s / %s in the last 7 days.",
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
    json_t *place;
    const json_t *places = json_object_get(card->out.lineage, "places");
    struct api_card_live *live =
        WEIR_ARENA_ARRAY(card->call->arena, json_array_size(places), struct api_card_live);
    card->out.live = live;
    json_array_foreach((json_t *)places, i, place)
    {
        const char *pipeline = json_string_value(json_object_get(place, "pipeline"));
        if (pipeline != NULL && is_live(place)) {
            *live = (struct api_card_live){.ion = json_string_value(json_object_get(place, "ion")),
                                           .pipeline = pipeline,
                                           .since_ms = card->call->now_ms - CARD_LIVE_MS};
            WEIR_TRY(add_accuracy(card, live, err));
            WEIR_TRY(add_drift(card, live++, err));
            card->out.n_live++;
        }
    }
    return WEIR_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void say_of_code(struct card *card)
{
    const json_t *run = json_array_get(json_object_get(card->out.lineage, "runs"), 0);
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
                                     call->arena, &card->out.lineage, err));
    card->out.made_ms = call->now_ms;
    WEIR_TRY(add_model(card, err));
    WEIR_TRY(add_version(card, err));
    WEIR_TRY(add_data(card, err));
    WEIR_TRY(add_baseline(card, err));
    WEIR_TRY(add_quality(card, err));
    WEIR_TRY(add_live(card, err));
    say_of_code(card);
    json_array_foreach(json_object_get(card->out.lineage, "unknown"), i, one)
    {
        say(card, json_string_value(one));
    }
    card->out.limits = card->limits.items;
    card->out.n_limits = card->limits.n;
    card->out.baseline = card->baseline.items;
    card->out.n_baseline = card->baseline.n;
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
    give_up(card);
    card->txn = txn;
    WEIR_TRY(
        weir_model_version_get(txn, name, asked->version, card->call->arena, &card->version, err));
    WEIR_TRY(weir_model_get(txn, name, card->call->arena, &card->model, err));
    return collect(card, err);
}

weir_status api_model_card(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    const char *format = api_query_text(call, "format");
    struct card card = {.call = call};
    struct asked asked = {.card = &card};
    (void)txn;
    WEIR_TRY(api_read_version(call->params[1], &asked.version, err));
    weir_status status = api_lineage_read(call, card_in, &asked, err);
    if (status != WEIR_OK) {
        give_up(&card);
        return status;
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *out = weir_view_to_json(api_model_card_view(), &card.out);
    if (format != NULL && strcmp(format, "markdown") == 0) {
        return answer_markdown(call, out, err);
    }
    api_answer(call, json_incref(out));
    return WEIR_OK;
}
