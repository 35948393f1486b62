/** Back: runs, what they read, and what made that. */
#include "control/lineage/lineage_private.h"

#include "base/grow.h"
#include "store/stmt.h"
#include "store/table.h"
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
    *LINEAGE_ADD(lineage, unknown) = weir_arena_strdup(lineage->arena, sentence);
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

static struct control_lineage_code code_of(const struct lineage_run *run)
{
    const struct weir_tag *tags = run->tags;
    size_t n = run->n_tags;
    return (struct control_lineage_code){.version = run->row.code_version,
                                         .commit = find(tags, n, "mlflow.source.git.commit"),
                                         .branch = find(tags, n, "mlflow.source.git.branch"),
                                         .repository = find(tags, n, "mlflow.source.git.repoURL"),
                                         .dirty = find(tags, n, "weir.code.dirty"),
                                         .patch = find(tags, n, "weir.code.patch"),
                                         .manifest = find(tags, n, "weir.code.manifest"),
                                         .source = find(tags, n, "mlflow.source.name")};
}

/* What it read; if that is a dataset version of this server, it is followed. */
static void add_read(struct lineage *lineage, struct lineage_run *run,
                     struct control_lineage_read read)
{
    run->reads[run->n_reads++] = read;
    if (read.version > 0) {
        (void)lineage_add(lineage, &lineage->dataset_names, read.name, read.version);
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

/* What a training reads beside its dataset, by the names in its run's parameters. */
static void add_other(struct lineage *lineage, struct lineage_run *run, const char *key)
{
    struct weir_arena *arena = lineage->arena;
    const char *name =
        find(run->parameters, run->n_parameters, weir_arena_printf(arena, "%s_dataset", key));
    const char *number = find(run->parameters, run->n_parameters,
                              weir_arena_printf(arena, "%s_dataset_version", key));
    int64_t version = number != NULL ? strtoll(number, NULL, 10) : 0;
    if (name != NULL) {
        add_read(lineage, run,
                 (struct control_lineage_read){name, WEIR_MAX(version, 0), NULL, key});
    }
}

/* Is it what add_other has found? */
static bool is_told(const struct lineage_run *run, const struct weir_run_input *input)
{
    const char *by = input->context != NULL ? input->context : "";
    const char *key = strcmp(by, "validation") == 0    ? "validation_dataset"
                      : strcmp(by, "backgrounds") == 0 ? "backgrounds_dataset"
                                                       : NULL;
    const char *name = key != NULL ? find(run->parameters, run->n_parameters, key) : NULL;
    return name != NULL && input->name != NULL && strcmp(name, input->name) == 0;
}

static void add_reads(struct lineage *lineage, struct lineage_run *run,
                      const struct weir_run_input *inputs, size_t n_inputs)
{
    const struct weir_run *row = &run->row;
    run->reads = WEIR_ARENA_ARRAY(lineage->arena, n_inputs + 3, struct control_lineage_read);
    if (row->dataset != NULL) {
        add_read(
            lineage, run,
            (struct control_lineage_read){row->dataset, row->dataset_version, NULL, "dataset"});
    }
    add_other(lineage, run, "validation");
    add_other(lineage, run, "backgrounds");
    for (size_t i = 0; i < n_inputs; i++) {
        const struct weir_run_input *input = &inputs[i];
        char *name;
        int64_t version;
        if (is_told(run, input)) {
            continue;
        }
        bool is_own = input->source_type != NULL && strcmp(input->source_type, WEIR_SOURCE) == 0 &&
                      split_source(lineage->arena, input->source, &name, &version);
        add_read(lineage, run,
                 (struct control_lineage_read){is_own ? name : input->name, is_own ? version : 0,
                                               input->digest,
                                               input->context != NULL ? input->context : "read"});
    }
}

static weir_status add_parent(struct lineage *lineage, const char *job, struct lineage_run *run,
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
        run->parent = runs[0];
    }
    return WEIR_OK;
}

static weir_status look_at_run(struct lineage *lineage, const char *id, struct weir_error *err)
{
    struct lineage_run run = {0};
    struct weir_tag *tags, *parameters;
    struct weir_run_input *inputs;
    struct weir_error missing;
    int64_t number;
    size_t n_inputs;
    weir_status status =
        weir_txn_get(lineage->txn, &weir_run_resource, id, lineage->arena, &run.row, &missing);
    if (status == WEIR_ERR_NOT_FOUND) {
        lineage_say(lineage, weir_arena_printf(lineage->arena, "Run %s is not there.", id));
        return WEIR_OK;
    }
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    WEIR_TRY(weir_run_number(lineage->txn, id, &number, err));
    WEIR_TRY(weir_run_tags(lineage->txn, number, lineage->arena, &tags, &run.n_tags, err));
    WEIR_TRY(weir_run_parameters(lineage->txn, number, lineage->arena, &parameters,
                                 &run.n_parameters, err));
    WEIR_TRY(weir_run_inputs(lineage->txn, number, lineage->arena, &inputs, &n_inputs, err));
    run.tags = tags;
    run.parameters = parameters;
    run.trigger = find(parameters, run.n_parameters, "trigger");
    run.weights = find(parameters, run.n_parameters, "weights");
    run.code = code_of(&run);
    add_reads(lineage, &run, inputs, n_inputs);
    const char *resumed = find(parameters, run.n_parameters, "resumed_from");
    if (resumed != NULL) {
        WEIR_TRY(add_parent(lineage, resumed, &run, err));
    }
    lineage->is_cut = lineage->is_cut || run.n_parameters > CONTROL_LINEAGE_PARAMETERS_MAX;
    run.n_parameters = WEIR_MIN(run.n_parameters, (size_t)CONTROL_LINEAGE_PARAMETERS_MAX);
    *LINEAGE_ADD(lineage, runs) = run;
    return WEIR_OK;
}

/* ---- dataset versions ------------------------------------------------------------------------ */

static weir_status add_forgotten(struct lineage *lineage, struct lineage_dataset *dataset,
                                 struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    size_t cap = 0;
    WEIR_TRY(weir_stmt_open(lineage->txn, sql_forgotten,
                            WEIR_BINDS(WEIR_BIND_TEXT("dataset", dataset->name.name),
                                       WEIR_BIND_INT("version", dataset->name.version)),
                            &stmt, err));
    for (;;) {
        bool has_row;
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            return WEIR_OK;
        }
        weir_arena_grow(lineage->arena, &dataset->forgotten, sizeof *dataset->forgotten,
                        dataset->n_forgotten, &cap);
        dataset->forgotten[dataset->n_forgotten++] =
            (struct control_lineage_forgotten){.person = weir_stmt_text(stmt, 0, lineage->arena),
                                               .n_files = weir_stmt_int(stmt, 1),
                                               .time_ms = weir_stmt_int(stmt, 2),
                                               .actor = weir_stmt_text(stmt, 3, lineage->arena),
                                               .reason = weir_stmt_text(stmt, 4, lineage->arena)};
    }
}

static weir_status look_at_dataset(struct lineage *lineage, const struct lineage_name *name,
                                   struct weir_error *err)
{
    struct lineage_dataset dataset = {.name = *name};
    struct weir_dataset_version *row = &dataset.row;
    struct weir_error missing;
    weir_status status = weir_dataset_version_get(lineage->txn, name->name, name->version,
                                                  lineage->arena, row, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    dataset.is_there = status == WEIR_OK;
    if (!dataset.is_there) {
        *row = (struct weir_dataset_version){
            .n_files = WEIR_INT_NONE, .n_classes = WEIR_INT_NONE, .bytes = WEIR_INT_NONE};
        lineage_say(lineage, weir_arena_printf(lineage->arena,
                                               "Dataset %s version %" PRId64 " is not there.",
                                               name->name, name->version));
    }
    if (row->run != NULL) {
        (void)lineage_add(lineage, &lineage->run_names, row->run, 0);
    }
    WEIR_TRY(add_forgotten(lineage, &dataset, err));
    *LINEAGE_ADD(lineage, datasets) = dataset;
    return WEIR_OK;
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

void lineage_take_version(const struct weir_model_version *row, struct weir_model_version *out)
{
    *out = *row;
    out->blob = out->blob != NULL && out->blob[0] != '\0' ? out->blob : NULL;
}

weir_status lineage_find_version(struct lineage *lineage, const char *id,
                                 struct weir_model_version *out, bool *out_there,
                                 struct weir_error *err)
{
    struct weir_model_version row = {0};
    struct weir_error missing;
    weir_status status = weir_txn_get(lineage->txn, &weir_model_version_resource, id,
                                      lineage->arena, &row, &missing);
    *out_there = status == WEIR_OK;
    lineage_take_version(&row, out);
    return status == WEIR_OK || status == WEIR_ERR_NOT_FOUND
               ? WEIR_OK
               : weir_error_set(err, status, "%s", missing.message);
}
