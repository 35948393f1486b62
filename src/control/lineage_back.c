/** Back: runs, what they read, and what made that. */
#include "control/lineage_private.h"

#include "base/clock.h"
#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/forgotten.h"
#include "track/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WEIR_SOURCE                                                                                \
    "weir" /* source_type of inputs that are versions of the server's own datasets */

static const char sql_run_of_job[] =
    "SELECT id FROM runs WHERE job = :job ORDER BY created_ms DESC, id LIMIT 1";
static const char sql_forgotten[] =
    "SELECT t.person, t.n_files, t.time_ms, f.actor, f.reason FROM dataset_tombstones t"
    " LEFT JOIN forgotten_people f ON f.id = t.forgotten"
    " WHERE t.dataset = :dataset AND t.version = :version ORDER BY t.time_ms, t.person";

/* ---- names ----------------------------------------------------------------------------------- */

void lineage_init(struct lineage *lineage, struct weir_txn *txn, struct weir_arena *arena)
{
    *lineage = (struct lineage){.txn = txn,
                                .arena = arena,
                                .runs = json_array(),
                                .datasets = json_array(),
                                .versions = json_array(),
                                .places = json_array(),
                                .galleries = json_array(),
                                .unknown = json_array()};
}

void lineage_auto_fini(struct lineage *lineage)
{
    json_decref(lineage->runs);
    json_decref(lineage->datasets);
    json_decref(lineage->versions);
    json_decref(lineage->places);
    json_decref(lineage->galleries);
    json_decref(lineage->unknown);
}

bool lineage_add(struct lineage *lineage, struct lineage_names *names, const char *name,
                 int64_t version)
{
    for (size_t i = 0; i < names->n; i++) {
        if (names->items[i].version == version && strcmp(names->items[i].name, name) == 0) {
            return false;
        }
    }
    if (names->n == CONTROL_LINEAGE_MAX) {
        lineage->is_cut = true;
        return false;
    }
    weir_arena_grow(lineage->arena, &names->items, sizeof *names->items, names->n, &names->cap);
    names->items[names->n++] =
        (struct lineage_name){weir_arena_strdup(lineage->arena, name), version};
    return true;
}

void lineage_say(struct lineage *lineage, const char *sentence)
{
    json_array_append_new(lineage->unknown, json_string(sentence));
}

json_t *lineage_time(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    if (time_ms == 0) {
        return json_null();
    }
    weir_time_format(time_ms, text);
    return json_string(text);
}

json_t *lineage_text(const char *text)
{
    json_t *value = text != NULL ? json_string(text) : NULL;
    return value != NULL ? value : json_null();
}

/* ---- runs ------------------------------------------------------------------------------------ */

static const char *find(const struct weir_tag *tags, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tags[i].key, key) == 0) {
            return tags[i].value;
        }
    }
    return NULL;
}

/** A run being looked at. */
struct looked {
    struct weir_run run;
    struct weir_tag *tags, *parameters;
    size_t n_tags, n_parameters;
    struct weir_run_input *inputs;
    size_t n_inputs;
    json_t *reads; /* owned by the view */
};

static json_t *code_view(const struct looked *looked)
{
    static const struct {
        const char *member, *tag;
    } texts[] = {{"commit", "mlflow.source.git.commit"},
                 {"branch", "mlflow.source.git.branch"},
                 {"repository", "mlflow.source.git.repoURL"},
                 {"dirty", "weir.code.dirty"},
                 {"patch", "weir.code.patch"},
                 {"manifest", "weir.code.manifest"},
                 {"source", "mlflow.source.name"}};

    json_t *view = json_object();
    json_object_set_new(view, "version", lineage_text(looked->run.code_version));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        json_object_set_new(view, texts[i].member,
                            lineage_text(find(looked->tags, looked->n_tags, texts[i].tag)));
    }
    return view;
}

static json_t *parameters_view(struct lineage *lineage, const struct looked *looked)
{
    json_t *view = json_object();
    for (size_t i = 0; i < looked->n_parameters && i < CONTROL_LINEAGE_PARAMETERS_MAX; i++) {
        json_object_set_new(view, looked->parameters[i].key,
                            lineage_text(looked->parameters[i].value));
    }
    lineage->is_cut = lineage->is_cut || looked->n_parameters > CONTROL_LINEAGE_PARAMETERS_MAX;
    return view;
}

/* What it read; if that is a dataset version of this server, it is followed. */
static void add_read(struct lineage *lineage, struct looked *looked, const char *name,
                     int64_t version, const char *digest, const char *as)
{
    json_t *read = json_object();
    json_object_set_new(read, "name", lineage_text(name));
    json_object_set_new(read, "version", version > 0 ? json_integer(version) : json_null());
    json_object_set_new(read, "digest", lineage_text(digest));
    json_object_set_new(read, "as", json_string(as));
    json_array_append_new(looked->reads, read);
    if (version > 0) {
        (void)lineage_add(lineage, &lineage->dataset_names, name, version);
    }
}

/* "NAME@vN" in two parts; false: it is none. */
static bool split_source(struct weir_arena *arena, const char *source, char **out_name,
                         int64_t *out_version)
{
    char *name = weir_arena_strdup(arena, source != NULL ? source : "");
    char *at = strrchr(name, '@'), *end;
    if (at == NULL || at[1] != 'v') {
        return false;
    }
    *out_version = strtoll(at + 2, &end, 10);
    *at = '\0';
    *out_name = name;
    return *end == '\0' && *out_version > 0;
}

static void add_reads(struct lineage *lineage, struct looked *looked)
{
    const struct weir_run *run = &looked->run;
    const char *validation = find(looked->parameters, looked->n_parameters, "validation_dataset");
    const char *number =
        find(looked->parameters, looked->n_parameters, "validation_dataset_version");
    if (run->dataset != NULL) {
        add_read(lineage, looked, run->dataset, run->dataset_version, NULL, "dataset");
    }
    if (validation != NULL) {
        add_read(lineage, looked, validation, number != NULL ? strtoll(number, NULL, 10) : 0, NULL,
                 "validation");
    }
    for (size_t i = 0; i < looked->n_inputs; i++) {
        const struct weir_run_input *input = &looked->inputs[i];
        char *name;
        int64_t version;
        bool is_own = input->source_type != NULL && strcmp(input->source_type, WEIR_SOURCE) == 0 &&
                      split_source(lineage->arena, input->source, &name, &version);
        add_read(lineage, looked, is_own ? name : input->name, is_own ? version : 0, input->digest,
                 input->context != NULL ? input->context : "read");
    }
}

static weir_status add_parent(struct lineage *lineage, const char *job, json_t *view,
                              struct weir_error *err)
{
    char **runs;
    size_t n;
    WEIR_TRY(weir_txn_query_texts(lineage->txn, sql_run_of_job,
                                  WEIR_BINDS(WEIR_BIND_TEXT("job", job)), lineage->arena, &runs, &n,
                                  err));
    if (n == 0) {
        lineage_say(lineage, weir_arena_printf(lineage->arena,
                                               "The job %s, whose checkpoints a training went on "
                                               "from, is gone.",
                                               job));
    } else {
        (void)lineage_add(lineage, &lineage->run_names, runs[0], 0);
        json_object_set_new(view, "parent", json_string(runs[0]));
    }
    return WEIR_OK;
}

static weir_status add_run_view(struct lineage *lineage, struct looked *looked,
                                struct weir_error *err)
{
    const struct weir_run *run = &looked->run;
    const char *resumed = find(looked->parameters, looked->n_parameters, "resumed_from");
    json_t *view = json_object();
    json_array_append_new(lineage->runs, view);

    const struct {
        const char *name, *text;
    } texts[] = {{"id", run->id},
                 {"name", run->name},
                 {"kind", run->kind},
                 {"status", run->status},
                 {"project", run->project},
                 {"job", run->job},
                 {"ion", run->ion},
                 {"pipeline", run->pipeline},
                 {"created_by", run->created_by},
                 {"user", run->user},
                 {"trigger", find(looked->parameters, looked->n_parameters, "trigger")},
                 {"weights", find(looked->parameters, looked->n_parameters, "weights")}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        json_object_set_new(view, texts[i].name, lineage_text(texts[i].text));
    }
    json_object_set_new(view, "created_ms", lineage_time(run->created_ms));
    json_object_set_new(view, "finished_ms", lineage_time(run->finished_ms));
    json_object_set_new(view, "deleted_ms", lineage_time(run->deleted_ms));
    json_object_set_new(view, "code", code_view(looked));
    json_object_set_new(view, "parameters", parameters_view(lineage, looked));
    looked->reads = json_array();
    json_object_set_new(view, "reads", looked->reads);
    add_reads(lineage, looked);
    json_object_set_new(view, "parent", json_null());
    return resumed != NULL ? add_parent(lineage, resumed, view, err) : WEIR_OK;
}

static weir_status look_at_run(struct lineage *lineage, const char *id, struct weir_error *err)
{
    struct looked looked = {0};
    struct weir_error missing;
    int64_t number;
    weir_status status =
        weir_txn_get(lineage->txn, &weir_run_resource, id, lineage->arena, &looked.run, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        lineage_say(lineage, weir_arena_printf(lineage->arena, "Run %s is not there.", id));
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    WEIR_TRY(weir_run_number(lineage->txn, id, &number, err));
    WEIR_TRY(
        weir_run_tags(lineage->txn, number, lineage->arena, &looked.tags, &looked.n_tags, err));
    WEIR_TRY(weir_run_parameters(lineage->txn, number, lineage->arena, &looked.parameters,
                                 &looked.n_parameters, err));
    WEIR_TRY(weir_run_inputs(lineage->txn, number, lineage->arena, &looked.inputs, &looked.n_inputs,
                             err));
    return add_run_view(lineage, &looked, err);
}

/* ---- dataset versions ------------------------------------------------------------------------ */

static weir_status add_forgotten(struct lineage *lineage, const struct lineage_name *name,
                                 json_t *view, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    json_t *list = json_array();
    json_object_set_new(view, "forgotten", list);
    WEIR_TRY(weir_stmt_open(
        lineage->txn, sql_forgotten,
        WEIR_BINDS(WEIR_BIND_TEXT("dataset", name->name), WEIR_BIND_INT("version", name->version)),
        &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        json_t *one = json_object();
        json_object_set_new(one, "person", lineage_text(weir_stmt_peek(stmt, 0, NULL)));
        json_object_set_new(one, "n_files", json_integer(weir_stmt_int(stmt, 1)));
        json_object_set_new(one, "time_ms", lineage_time(weir_stmt_int(stmt, 2)));
        json_object_set_new(one, "actor", lineage_text(weir_stmt_peek(stmt, 3, NULL)));
        json_object_set_new(one, "reason", lineage_text(weir_stmt_peek(stmt, 4, NULL)));
        json_array_append_new(list, one);
    }
}

static weir_status look_at_dataset(struct lineage *lineage, const struct lineage_name *name,
                                   struct weir_error *err)
{
    struct weir_dataset_version version = {0};
    struct weir_error missing;
    weir_status status = weir_dataset_version_get(lineage->txn, name->name, name->version,
                                                  lineage->arena, &version, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    bool is_there = status == WEIR_OK;
    if (!is_there) {
        lineage_say(lineage, weir_arena_printf(lineage->arena,
                                               "Dataset %s version %" PRId64 " is not there.",
                                               name->name, name->version));
    }
    json_t *view = json_object();
    json_array_append_new(lineage->datasets, view);
    json_object_set_new(view, "dataset", lineage_text(name->name));
    json_object_set_new(view, "version", json_integer(name->version));
    json_object_set_new(view, "is_there", json_boolean(is_there));
    json_object_set_new(view, "digest", lineage_text(version.digest));
    json_object_set_new(view, "n_files", is_there ? json_integer(version.n_files) : json_null());
    json_object_set_new(view, "n_classes",
                        is_there ? json_integer(version.n_classes) : json_null());
    json_object_set_new(view, "bytes", is_there ? json_integer(version.bytes) : json_null());
    json_object_set_new(view, "created_by", lineage_text(version.created_by));
    json_object_set_new(view, "created_ms", lineage_time(version.created_ms));
    json_object_set_new(view, "run", lineage_text(version.run));
    if (version.run != NULL) {
        (void)lineage_add(lineage, &lineage->run_names, version.run, 0);
    }
    return add_forgotten(lineage, name, view, err);
}

weir_status lineage_go_back(struct lineage *lineage, struct weir_error *err)
{
    struct lineage_names *runs = &lineage->run_names, *datasets = &lineage->dataset_names;
    while (runs->n_done < runs->n || datasets->n_done < datasets->n) {
        if (runs->n_done < runs->n) {
            WEIR_TRY(look_at_run(lineage, runs->items[runs->n_done++].name, err));
        } else {
            const struct lineage_name name = datasets->items[datasets->n_done++];
            WEIR_TRY(look_at_dataset(lineage, &name, err));
        }
        WEIR_TRY(weir_arena_check(lineage->arena, "a lineage", err));
    }
    return WEIR_OK;
}

/* ---- model versions -------------------------------------------------------------------------- */

weir_status lineage_find_version(struct lineage *lineage, const char *id,
                                 struct weir_model_version *out, bool *out_there,
                                 struct weir_error *err)
{
    struct weir_error missing;
    weir_status status =
        weir_txn_get(lineage->txn, &weir_model_version_resource, id, lineage->arena, out, &missing);
    *out_there = status == WEIR_OK;
    return status == WEIR_OK || status == WEIR_ERR_NOT_FOUND
               ? WEIR_OK
               : weir_error_set(err, status, "%s", missing.message);
}

json_t *lineage_version_view(const struct weir_model_version *version)
{
    json_t *view = json_object();

    const struct {
        const char *name, *text;
    } texts[] = {{"id", version->id},
                 {"model", version->model},
                 {"run", version->run},
                 {"source", version->source},
                 {"source_run", version->source_run},
                 {"dataset", version->dataset},
                 {"code_version", version->code_version},
                 {"blob", version->blob != NULL && version->blob[0] != '\0' ? version->blob : NULL},
                 {"stage", version->stage},
                 {"created_by", version->created_by},
                 {"deleted_by", version->deleted_by}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        json_object_set_new(view, texts[i].name, lineage_text(texts[i].text));
    }
    json_object_set_new(view, "version", json_integer(version->version));
    json_object_set_new(view, "dataset_version",
                        version->dataset_version > 0 ? json_integer(version->dataset_version)
                                                     : json_null());
    json_object_set_new(view, "bytes", json_integer(version->bytes));
    json_object_set_new(view, "created_ms", lineage_time(version->created_ms));
    json_object_set_new(view, "deleted_ms", lineage_time(version->deleted_ms));
    return view;
}
