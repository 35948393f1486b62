/* Writing a snapshot: rows of the store into a tar. */
#include "capture/snapshot.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/uuid.h"
#include "blob/blob.h"
#include "capture/csv.h"
#include "capture/rows.h"
#include "capture/tar.h"
#include "ion/ion.h"
#include "store/chain.h"
#include "store/table.h"
#include "track/track.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_ROWS  2000
#define COPY_BYTES ((size_t)256 << 10)

/* One snapshot being written. */
struct weir_snapshot_taking {
    struct weir_txn *txn; /* NULL: the records are written */
    struct weir_capture capture;
    const struct weir_snapshot_wanted *wanted;
    struct weir_arena *arena;
    struct weir_snapshot made;
    struct weir_ion ion;
    char *subject; /* "ion/NAME" */
    struct tar_writer tar;
    struct csv_files csv;
    json_t *files, *rows, *models, *pipelines; /* the last: [{"name","type"}], for people */
    json_t *seen;                              /* identifiers of versions */
    char **runs, **versions;                   /* identifiers that other tables have named */
    size_t n_runs, cap_runs, n_versions, cap_versions;
    int64_t n_in_table;
};

/* ---- members --------------------------------------------------------------------------------- */

static weir_status begin(struct weir_snapshot_taking *taking, const char *name,
                         struct weir_error *err)
{
    return tar_begin(&taking->tar,
                     weir_arena_printf(taking->arena, WEIR_SNAPSHOT_FOLDER "%s", name), err);
}

static weir_status end(struct weir_snapshot_taking *taking, const char *name,
                       struct weir_error *err)
{
    struct tar_made made;
    WEIR_TRY(tar_end(&taking->tar, &made, err));
    json_array_append_new(taking->files, json_pack("{s:s,s:I,s:s}", "name", name, "bytes",
                                                   (json_int_t)made.bytes, "sha256", made.sha256));
    return WEIR_OK;
}

static weir_status put_file(struct weir_snapshot_taking *taking, const char *name, const void *data,
                            size_t len, struct weir_error *err)
{
    WEIR_TRY(begin(taking, name, err));
    WEIR_TRY(tar_write(&taking->tar, data, len, err));
    return end(taking, name, err);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void remember(struct weir_snapshot_taking *taking, const char *id, char ***ids, size_t *n,
                     size_t *cap)
{
    weir_arena_grow(taking->arena, ids, sizeof **ids, *n, cap);
    (*ids)[(*n)++] = weir_arena_strdup(taking->arena, id);
}

/* Does a candidate matter in the span: did it come, change, stand or serve in it? */
static bool matters(const struct weir_snapshot_taking *taking,
                    const struct weir_ion_candidate *candidate)
{
    static const char *const over[] = {WEIR_CANDIDATE_RETIRED, WEIR_CANDIDATE_REJECTED,
                                       WEIR_CANDIDATE_ROLLED_BACK};
    bool is_over = false;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(over); i++) {
        is_over = is_over || strcmp(candidate->state, over[i]) == 0;
    }
    return !is_over || candidate->updated_ms >= taking->made.from_ms;
}

static void note_row(struct weir_snapshot_taking *taking, const struct weir_noun *table,
                     const void *record)
{
    if (table == &weir_noun_run) {
        remember(taking, ((const struct weir_run *)record)->id, &taking->runs, &taking->n_runs,
                 &taking->cap_runs);
    } else if (table == &weir_noun_ion_candidate && matters(taking, record)) {
        remember(taking, ((const struct weir_ion_candidate *)record)->model_version,
                 &taking->versions, &taking->n_versions, &taking->cap_versions);
    } else if (table == &weir_noun_ion_pipeline) {
        const struct weir_ion_pipeline *pipeline = record;
        json_array_append_new(taking->pipelines, json_pack("{s:s,s:s}", "name", pipeline->name,
                                                           "type", pipeline->type));
    }
    csv_files_add(&taking->csv, table, record);
}

static weir_status put_row(struct weir_snapshot_taking *taking, const struct weir_noun *table,
                           const void *record, struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_resource *resource = table->captured->resource;
    if (++taking->made.n_rows > WEIR_SNAPSHOT_ROWS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the span holds more than %d records: take a shorter one",
                              WEIR_SNAPSHOT_ROWS_MAX);
    }
    json_t *json = weir_record_to_json(resource, record);
    char *text = weir_json_text(json, arena);
    json_decref(json);
    note_row(taking, table, record);
    if (taking->csv.is_full) {
        return csv_files_end(&taking->csv, err);
    }
    taking->n_in_table++;
    WEIR_TRY(tar_write(&taking->tar, text, strlen(text), err));
    return tar_write(&taking->tar, "\n", 1, err);
}

static int64_t time_in(const struct weir_resource *resource, const char *field, const void *record)
{
    return *(const int64_t *)weir_field_cptr(weir_resource_field(resource, field), record);
}

static bool is_over_before(const struct weir_captured *table, const void *record, int64_t from_ms)
{
    int64_t ended_ms = table->ended != NULL ? time_in(table->resource, table->ended, record) : 0;
    return ended_ms > 0 && ended_ms < from_ms;
}

/* One page of a table; *cursor: of the next. */
static weir_status put_page(struct weir_snapshot_taking *taking, const struct weir_noun *noun,
                            char **cursor, struct weir_error *err)
{
    const struct weir_captured *table = noun->captured;
    struct weir_filter filters[4];
    struct weir_query query = {.filters = filters,
                               .order_by = table->time,
                               .limit = PAGE_ROWS,
                               .max_bytes = (size_t)64 << 20,
                               .cursor = *cursor};
    struct weir_arena arena;
    char *items, *next = NULL;
    void *page;
    size_t n;
    bool is_subject = strcmp(table->by, "subject") == 0;
    filters[query.n_filters++] =
        WEIR_FILTER_TEXT(table->by, EQ, is_subject ? taking->subject : taking->ion.name);
    if (noun == &weir_noun_event) {
        /* Who may take or look at a snapshot may not look into the audit. */
        filters[query.n_filters++] = WEIR_FILTER_TEXT("topic", NE, WEIR_AUDIT_TOPIC);
    }
    if (table->time != NULL) {
        filters[query.n_filters++] = WEIR_FILTER_INT(table->time, LE, taking->made.to_ms);
    }
    if (table->time != NULL && !table->since_always) {
        filters[query.n_filters++] = WEIR_FILTER_INT(table->time, GE, taking->made.from_ms);
    }
    weir_arena_init(&arena, 0);
    weir_status status =
        weir_txn_list(taking->txn, table->resource, &query, &arena, &page, &n, &next, err);
    items = page;
    for (size_t i = 0; status == WEIR_OK && i < n; i++) {
        const void *record = items + i * table->resource->size;
        if (!is_over_before(table, record, taking->made.from_ms)) {
            status = put_row(taking, noun, record, &arena, err);
        }
    }
    *cursor = status == WEIR_OK ? weir_arena_strdup(taking->arena, next) : NULL;
    weir_arena_fini(&arena);
    return status;
}

static weir_status put_metric(void *context, const struct weir_metric *metric,
                              struct weir_error *err)
{
    struct weir_snapshot_taking *taking = context;
    if (metric->time_ms > taking->made.to_ms) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return put_row(taking, &weir_noun_metric, metric, &arena, err);
}

static weir_status put_metrics(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    for (size_t i = 0; i < taking->n_runs; i++) {
        WEIR_TRY(weir_metrics_each(taking->txn, taking->runs[i], put_metric, taking, err));
    }
    return WEIR_OK;
}

static weir_status put_versions(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    for (size_t i = 0; i < taking->n_versions; i++) {
        struct weir_model_version version;
        struct weir_arena arena;
        if (json_object_get(taking->seen, taking->versions[i]) != NULL) {
            continue; /* on another link too */
        }
        json_object_set_new(taking->seen, taking->versions[i], json_true());
        if (json_array_size(taking->models) == WEIR_SNAPSHOT_MODELS_MAX) {
            return weir_error_set(err, WEIR_ERR_LIMIT,
                                  "the span holds more than %d model versions: take a shorter one",
                                  WEIR_SNAPSHOT_MODELS_MAX);
        }
        weir_arena_init(&arena, 0);
        weir_status status = weir_txn_get(taking->txn, &weir_model_version_resource,
                                          taking->versions[i], &arena, &version, err);
        if (status == WEIR_OK) {
            /* The file of one that was deleted may be gone at any moment. */
            bool is_whole = taking->wanted->with_models && version.deleted_ms == 0;
            status = put_row(taking, &weir_noun_model_version, &version, &arena, err);
            json_array_append_new(taking->models,
                                  json_pack("{s:s,s:I,s:s,s:s,s:I,s:b}", "model", version.model,
                                            "version", (json_int_t)version.version, "id",
                                            version.id, "blob", version.blob, "bytes",
                                            (json_int_t)version.bytes, "is_whole", (int)is_whole));
        }
        weir_arena_fini(&arena);
        WEIR_TRY(status);
    }
    return WEIR_OK;
}

static weir_status put_table(struct weir_snapshot_taking *taking, const struct weir_noun *table,
                             struct weir_error *err)
{
    const char *name = table->captured->name;
    char *file = weir_arena_printf(taking->arena, "rows/%s.jsonl", name), *cursor = NULL;
    taking->n_in_table = 0;
    WEIR_TRY(begin(taking, file, err));
    if (table == &weir_noun_metric) {
        WEIR_TRY(put_metrics(taking, err));
    } else if (table == &weir_noun_model_version) {
        WEIR_TRY(put_versions(taking, err));
    } else {
        do {
            WEIR_TRY(put_page(taking, table, &cursor, err));
        } while (cursor != NULL);
    }
    json_object_set_new(taking->rows, name, json_integer(taking->n_in_table));
    return end(taking, file, err);
}

/* ---- what is for people ---------------------------------------------------------------------- */

/* MCenter's form, which its users read: one line a fact. */
static weir_status put_details(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    struct weir_buf buf;
    json_t *document =
        taking->ion.document != NULL ? json_loads(taking->ion.document, 0, NULL) : NULL;
    json_t *item;
    size_t i;
    weir_buf_init(&buf, (size_t)4 << 20);
    (void)weir_buf_printf(&buf, "WorkflowID: %s revision: %" PRId64 " project: %s\nwfNodes: [",
                          taking->ion.name, taking->ion.revision, taking->ion.project);
    json_array_foreach(taking->pipelines, i, item)
    {
        const char *type = json_string_value(json_object_get(item, "type"));
        (void)weir_buf_printf(&buf, "%sPipelineID: %s Mode: %s Type: %s", i > 0 ? ", " : "",
                              json_string_value(json_object_get(item, "name")),
                              strcmp(type, "prediction") == 0 ? "online" : "offline",
                              strcmp(type, "prediction") == 0   ? "model_consumer"
                              : strcmp(type, "training") == 0   ? "model_producer"
                              : strcmp(type, "comparison") == 0 ? "pipeline_comparator"
                                                                : "auxiliary");
    }
    (void)weir_buf_puts(&buf, "]\n");
    json_array_foreach(json_object_get(document, "links"), i, item)
    {
        char *from = json_dumps(json_object_get(item, "from"), JSON_ENCODE_ANY);
        char *to = json_dumps(json_object_get(item, "to"), JSON_ENCODE_ANY);
        char *policy = json_dumps(json_object_get(item, "policy"), JSON_ENCODE_ANY);
        (void)weir_buf_printf(&buf, "link: %s -> %s modelPolicy: %s\n", from != NULL ? from : "",
                              to != NULL ? to : "", policy != NULL ? policy : "\"manual\"");
        free(from);
        free(to);
        free(policy);
    }
    json_decref(document);
    weir_status status = buf.status == WEIR_OK
                             ? put_file(taking, "ion-details.txt", buf.data, buf.len, err)
                             : weir_error_set(err, buf.status, "ion-details.txt is too large");
    weir_buf_fini(&buf);
    return status;
}

static weir_status put_csvs(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    struct csv_files *csv = &taking->csv;
    const char *ion = taking->ion.name, *id = taking->made.id;
    WEIR_TRY(csv_files_end(csv, err));
    WEIR_TRY(put_file(taking, weir_arena_printf(taking->arena, "%s-events-%s.csv", ion, id),
                      csv->events.data, csv->events.len, err));
    WEIR_TRY(put_file(taking, weir_arena_printf(taking->arena, "%s-aggregates-%s.csv", ion, id),
                      csv->aggregates.data, csv->aggregates.len, err));
    WEIR_TRY(put_file(taking, weir_arena_printf(taking->arena, "%s-kpis-%s.csv", ion, id),
                      csv->kpis.data, csv->kpis.len, err));
    for (size_t i = 0; i < csv->n_pipelines; i++) {
        const struct csv_pipeline *pipeline = &csv->pipelines[i];
        WEIR_TRY(put_file(taking,
                          weir_arena_printf(taking->arena, "%s-stats-%s-Instance-%s-Agent-all.csv",
                                            ion, id, pipeline->name),
                          pipeline->stats.data, pipeline->stats.len, err));
    }
    return WEIR_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

static weir_status copy_blob(struct weir_snapshot_taking *taking, const char *path,
                             struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return weir_error_set_errno(err, errno, "cannot read a model's file");
    }
    char *chunk = weir_xalloc(COPY_BYTES);
    weir_status status = WEIR_OK;
    for (ssize_t n = 1; n > 0 && status == WEIR_OK;) {
        n = read(fd, chunk, COPY_BYTES);
        if (n < 0) {
            status = weir_error_set_errno(err, errno, "reading a model's file");
        } else if (n > 0) {
            status = tar_write(&taking->tar, chunk, (size_t)n, err);
        }
    }
    free(chunk);
    (void)close(fd);
    return status;
}

static weir_status put_models(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    size_t i;
    json_t *model;
    json_t *done = json_object(); /* two versions may be the same bytes */
    weir_status status = WEIR_OK;
    json_array_foreach(taking->models, i, model)
    {
        char *path;
        const char *blob = json_string_value(json_object_get(model, "blob"));
        char *name = weir_arena_printf(taking->arena, "models/%s", blob);
        if (json_object_get(done, blob) != NULL ||
            !json_is_true(json_object_get(model, "is_whole"))) {
            continue;
        }
        json_object_set_new(done, blob, json_true());
        status = weir_blob_path(taking->capture.blobs, blob, taking->arena, &path, NULL, err);
        status = status == WEIR_OK ? begin(taking, name, err) : status;
        status = status == WEIR_OK ? copy_blob(taking, path, err) : status;
        status = status == WEIR_OK ? end(taking, name, err) : status;
        if (status == WEIR_ERR_NOT_FOUND) {
            status = weir_error_set(err, status,
                                    "the file of version %lld of model \"%s\" is gone: if it was "
                                    "deleted meanwhile, take the snapshot again",
                                    json_integer_value(json_object_get(model, "version")),
                                    json_string_value(json_object_get(model, "model")));
        }
        if (status != WEIR_OK) {
            break;
        }
    }
    json_decref(done);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status put_manifest(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    char from[WEIR_TIME_TEXT_BYTES], to[WEIR_TIME_TEXT_BYTES], created[WEIR_TIME_TEXT_BYTES];
    const struct weir_snapshot *made = &taking->made;
    struct tar_made of_manifest, ignored;
    weir_time_format(made->from_ms, from);
    weir_time_format(made->to_ms, to);
    weir_time_format(made->created_ms, created);
    json_t *manifest = json_pack(
        "{s:s,s:i,s:s,s:s,s:s,s:s,s:I,s:s,s:s,s:s,s:s?,s:s,s:b,s:O,s:O,s:O}", "format",
        WEIR_SNAPSHOT_FORMAT, "version", WEIR_SNAPSHOT_VERSION, "id", made->id, "name", made->name,
        "ion", made->ion, "project", made->project, "revision", (json_int_t)made->revision, "from",
        from, "to", to, "created", created, "created_by", made->created_by, "weir", WEIR_VERSION,
        "has_models", (int)made->has_models, "rows", taking->rows, "models", taking->models,
        "files", taking->files);
    if (manifest == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "the manifest's text is not UTF-8");
    }
    char *text = json_dumps(manifest, JSON_INDENT(1));
    json_decref(manifest);
    weir_status status = begin(taking, "manifest.json", err);
    status = status == WEIR_OK ? tar_write(&taking->tar, text, strlen(text), err) : status;
    free(text);
    WEIR_TRY(status);
    WEIR_TRY(tar_end(&taking->tar, &of_manifest, err));
    char *sums = weir_snapshot_sums(taking->files, of_manifest.sha256, taking->arena);
    WEIR_TRY(begin(taking, "SHA256SUMS", err));
    WEIR_TRY(tar_write(&taking->tar, sums, strlen(sums), err));
    return tar_end(&taking->tar, &ignored, err);
}

/* What the database knows. */
static weir_status put_records(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    const char *half =
        weir_arena_printf(taking->arena, "%s.tmp",
                          weir_snapshot_path(&taking->capture, taking->made.id, taking->arena));
    WEIR_TRY(tar_create(&taking->tar, half, WEIR_SNAPSHOT_MAX_BYTES, taking->made.created_ms, err));
    const struct weir_noun *table;
    for (size_t i = 0; (table = weir_captured_at(i)) != NULL; i++) {
        WEIR_TRY(put_table(taking, table, err));
    }
    WEIR_TRY(put_details(taking, err));
    return put_csvs(taking, err);
}

static weir_status put_rest(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    if (taking->wanted->with_models) {
        WEIR_TRY(put_models(taking, err));
    }
    WEIR_TRY(put_manifest(taking, err));
    WEIR_TRY(tar_finish(&taking->tar,
                        weir_snapshot_path(&taking->capture, taking->made.id, taking->arena), err));
    taking->made.bytes = (int64_t)taking->tar.offset;
    taking->made.models = weir_json_text(taking->models, taking->arena);
    return WEIR_OK;
}

static void end_taking(struct weir_snapshot_taking *taking)
{
    tar_abandon(&taking->tar);
    json_decref(taking->files);
    json_decref(taking->rows);
    json_decref(taking->models);
    json_decref(taking->pipelines);
    json_decref(taking->seen);
}

static weir_status check_wanted(struct weir_snapshot_taking *taking, struct weir_error *err)
{
    const struct weir_snapshot_wanted *wanted = taking->wanted;
    char id[WEIR_UUID_BYTES];
    if (!weir_name_is_valid(wanted->name)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "\"%.80s\" is no name for a snapshot: a-z 0-9 . _ and -, at most 63",
                              wanted->name);
    }
    WEIR_TRY(weir_txn_get(taking->txn, &weir_ion_resource, wanted->ion, taking->arena, &taking->ion,
                          err));
    weir_uuid_make(id);
    taking->subject = weir_arena_printf(taking->arena, "ion/%s", taking->ion.name);
    taking->made = (struct weir_snapshot){
        .name = weir_arena_strdup(taking->arena, wanted->name),
        .id = weir_arena_strdup(taking->arena, id),
        .ion = taking->ion.name,
        .project = taking->ion.project,
        .from_ms = wanted->from_ms > 0 ? wanted->from_ms : taking->ion.created_ms,
        .to_ms = wanted->to_ms > 0 ? WEIR_MIN(wanted->to_ms, wanted->now_ms) : wanted->now_ms,
        .revision = taking->ion.revision,
        .has_models = wanted->with_models,
        .created_by = weir_arena_strdup(taking->arena, wanted->actor),
        .created_ms = wanted->now_ms};
    return taking->made.from_ms <= taking->made.to_ms
               ? WEIR_OK
               : weir_error_set(
                     err, WEIR_ERR_INVALID,
                     "the span ends before it begins: from is later than to, or than now");
}

weir_status weir_snapshot_take(struct weir_txn *txn, const struct weir_capture *capture,
                               const struct weir_snapshot_wanted *wanted, struct weir_arena *arena,
                               struct weir_snapshot_taking **out, struct weir_error *err)
{
    struct weir_snapshot_taking *taking = WEIR_ARENA_NEW(arena, struct weir_snapshot_taking);
    *taking = (struct weir_snapshot_taking){
        .txn = txn, .capture = *capture, .wanted = wanted, .arena = arena, .tar = {.fd = -1}};
    WEIR_TRY(check_wanted(taking, err));
    WEIR_TRY(
        weir_dir_make(weir_arena_printf(arena, "%s/snapshots", capture->state_dir), 0700, err));
    taking->files = json_array();
    taking->rows = json_object();
    taking->models = json_array();
    taking->pipelines = json_array();
    taking->seen = json_object();
    csv_files_init(&taking->csv, arena);
    weir_status status = put_records(taking, err);
    csv_files_fini(&taking->csv);
    taking->txn = NULL;
    if (status != WEIR_OK) {
        end_taking(taking);
        return status;
    }
    *out = taking;
    return WEIR_OK;
}

weir_status weir_snapshot_seal(struct weir_snapshot_taking *taking, struct weir_snapshot *out,
                               struct weir_error *err)
{
    weir_status status = put_rest(taking, err);
    end_taking(taking);
    WEIR_TRY(status);
    *out = taking->made;
    return WEIR_OK;
}
