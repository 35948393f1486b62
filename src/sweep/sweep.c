#include "sweep/sweep.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Like those of a job, inside of the document. */
#define DOCUMENT_SECRETS                                                                           \
    "job.spec.env.* job.spec.files.* job.spec.secret job.spec.source.token "                       \
    "job.spec.source.password"

// clang-format off
static const struct weir_field sweep_fields[] = {
    WEIR_FIELD(weir_sweep, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Identifier"),
    WEIR_FIELD(weir_sweep, name,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name"),
    WEIR_FIELD(weir_sweep, project,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Project it belongs to"),
    WEIR_FIELD(weir_sweep, state,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "RUNNING, PAUSED, STOPPING, SUCCEEDED, FAILED or CANCELLED"),
    WEIR_FIELD(weir_sweep, reason,      TEXT, WEIR_FIELD_READ_ONLY, "", "Why it is stopping or over; null if it had all its trials"),
    WEIR_FIELD(weir_sweep, ends_as,     TEXT, WEIR_FIELD_READ_ONLY, "", "While STOPPING: the state to come"),
    WEIR_FIELD_HIDING(weir_sweep, document, WEIR_FIELD_READ_ONLY, DOCUMENT_SECRETS, "", "What it was made from, with its seed"),
    WEIR_FIELD(weir_sweep, method,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Kind of its method"),
    WEIR_FIELD(weir_sweep, metric,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Metric of its goal"),
    WEIR_FIELD(weir_sweep, n_trials,    INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Trials that there are to be, at most"),
    WEIR_FIELD(weir_sweep, n_made,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Trials so far"),
    WEIR_FIELD(weir_sweep, n_open,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Of them, those that are under way: neither over nor paused"),
    WEIR_FIELD(weir_sweep, n_paused,    INT,  WEIR_FIELD_READ_ONLY, "", "Of them, those that wait at a rung"),
    WEIR_FIELD(weir_sweep, n_succeeded, INT,  WEIR_FIELD_READ_ONLY, "", "Trials that had all their work"),
    WEIR_FIELD(weir_sweep, n_stopped,   INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Trials that were stopped early"),
    WEIR_FIELD(weir_sweep, n_failed,    INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Trials that failed"),
    WEIR_FIELD(weir_sweep, best,        INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number of the best trial; 0: none has a value yet"),
    WEIR_FIELD(weir_sweep, best_value,  F64,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Its value"),
    WEIR_FIELD(weir_sweep, work,        F64,  WEIR_FIELD_READ_ONLY, "", "How far its trials have come, added up, in the unit of its rungs"),
    WEIR_FIELD(weir_sweep, created_by,  TEXT, WEIR_FIELD_READ_ONLY, "", "Who made it"),
    WEIR_FIELD(weir_sweep, limited_to,  TEXT, WEIR_FIELD_READ_ONLY, "", "Role of the token that it was made with: tasks of its trials may no more"),
    WEIR_FIELD(weir_sweep, created_ms,  TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When"),
    WEIR_FIELD(weir_sweep, paused_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it is paused; 0: it is not"),
    WEIR_FIELD(weir_sweep, pauses_ms,   INT,  WEIR_FIELD_READ_ONLY, "ms", "How long it was paused before, which its time limit does not count"),
    WEIR_FIELD(weir_sweep, ended_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was over"),
};
static const struct weir_field trial_fields[] = {
    WEIR_FIELD(weir_sweep_trial, id,         TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "SWEEP:NUMBER"),
    WEIR_FIELD(weir_sweep_trial, sweep,      TEXT, WEIR_FIELD_READ_ONLY, "", "Sweep"),
    WEIR_FIELD(weir_sweep_trial, number,     INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number, from 1 on"),
    WEIR_FIELD(weir_sweep_trial, state,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "WANTED, RUNNING, PAUSING, PAUSED, STOPPING, SUCCEEDED, STOPPED, FAILED or CANCELLED"),
    WEIR_FIELD(weir_sweep_trial, parameters, JSON, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What it tries, by name"),
    WEIR_FIELD(weir_sweep_trial, point,      JSON, WEIR_FIELD_READ_ONLY, "", "The same as coordinates from 0 to 1"),
    WEIR_FIELD(weir_sweep_trial, job,        TEXT, WEIR_FIELD_READ_ONLY, "", "Its job"),
    WEIR_FIELD(weir_sweep_trial, run,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "The run of that"),
    WEIR_FIELD(weir_sweep_trial, ends_as,    TEXT, WEIR_FIELD_READ_ONLY, "", "While STOPPING: the state to come"),
    WEIR_FIELD(weir_sweep_trial, reason,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Why it was stopped or failed"),
    WEIR_FIELD(weir_sweep_trial, value,      F64,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Value of the goal's metric so far"),
    WEIR_FIELD(weir_sweep_trial, resource,   F64,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "How far it is, in the unit of the sweep's rungs"),
    WEIR_FIELD(weir_sweep_trial, step,       INT,  WEIR_FIELD_READ_ONLY, "", "Step of the last measurement that was looked at; -1: none"),
    WEIR_FIELD(weir_sweep_trial, rungs,      JSON, WEIR_FIELD_READ_ONLY, "", "Its values at the rungs that it has come to"),
    WEIR_FIELD(weir_sweep_trial, created_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was chosen"),
    WEIR_FIELD(weir_sweep_trial, started_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When its job was seen to run first"),
    WEIR_FIELD(weir_sweep_trial, ended_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "When it was over"),
};
// clang-format on

const struct weir_resource weir_sweep_resource =
    WEIR_RESOURCE("sweep", "sweeps", weir_sweep, sweep_fields);
const struct weir_resource weir_sweep_trial_resource =
    WEIR_RESOURCE("trial", "sweep_trials", weir_sweep_trial, trial_fields);

#define OVER WEIR_WORK_OVER_SQL

const struct weir_noun weir_noun_sweep = {
    "sweeps", .project = "project", WEIR_SUBJECT(sweep, id),
    .rules = {WEIR_RULE(
        "sweeps", "Sweeps that are over, with what their trials tried",
        "Those that ended longest ago go first.", 160, {WEIR_DAYS(365), WEIR_MB(10)}, 60000, 4,
        .is_of_project = true, .time = "ended_ms", .where = OVER,
        .remove = {"DELETE FROM sweep_trials WHERE id IN (SELECT t.id FROM sweep_trials t"
                   " JOIN sweeps s ON s.id = t.sweep WHERE s.id = :key AND s." OVER " LIMIT :n)",
                   "DELETE FROM sweeps WHERE id = :key AND " OVER})}};

static const char sql_open[] = "SELECT id FROM sweeps WHERE state IN ('RUNNING', 'PAUSED', "
                               "'STOPPING') ORDER BY created_ms, id";
static const char sql_has_job[] = "SELECT 1 FROM sweep_trials WHERE job = :job";
static const char sql_forget_trials[] = "DELETE FROM sweep_trials WHERE sweep = :sweep";

bool weir_sweep_is_over(const struct weir_sweep *sweep)
{
    return strcmp(sweep->state, "RUNNING") != 0 && strcmp(sweep->state, "PAUSED") != 0 &&
           strcmp(sweep->state, "STOPPING") != 0;
}

bool weir_sweep_trial_is_open(const struct weir_sweep_trial *trial)
{
    return weir_sweep_trial_is_under_way(trial) || strcmp(trial->state, "PAUSED") == 0;
}

bool weir_sweep_trial_is_under_way(const struct weir_sweep_trial *trial)
{
    static const char *const states[] = {"WANTED", "RUNNING", "PAUSING", "STOPPING"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(states); i++) {
        if (strcmp(trial->state, states[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* As a UUIDv7: ordered by when the trial was chosen, then by number; the rest is a hash. */
void weir_sweep_trial_id(const struct weir_sweep_trial *trial, const char *what,
                         char out[WEIR_UUID_BYTES])
{
    struct weir_sha256_stream hash;
    char sum[WEIR_SHA256_TEXT_BYTES];
    weir_sha256_begin(&hash);
    weir_sha256_add(&hash, trial->id, strlen(trial->id));
    weir_sha256_add(&hash, what, strlen(what) + 1);
    weir_sha256_end(&hash, sum);
    uint64_t ms = (uint64_t)trial->created_ms & 0xffffffffffffu;
    (void)snprintf(out, WEIR_UUID_BYTES, "%08" PRIx64 "-%04" PRIx64 "-7%03x-8%.3s-%.12s", ms >> 16,
                   ms & 0xffffu, (unsigned)trial->number & 0xfffu, sum, sum + 3);
}

/* ---- loading --------------------------------------------------------------------------------- */

static weir_status read_document(struct weir_sweep_state *state, struct weir_arena *arena,
                                 struct weir_error *err)
{
    struct weir_error why = {0};
    const char *text = state->sweep.document;
    WEIR_TRY(weir_json_parse(text, strlen(text), "stored sweep", &state->document, err));
    return weir_sweep_doc_read(state->document, arena, &state->doc, &why) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "sweep %s: its document: %s",
                                state->sweep.id, why.message);
}

static double *numbers_of(const char *text, size_t least, size_t *out_n, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *array = text != NULL ? json_loads(text, 0, NULL) : NULL;
    size_t n = json_array_size(array);
    double *numbers = WEIR_ARENA_ARRAY(arena, WEIR_MAX(n, least) + 1, double);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(array, i);
        numbers[i] = json_is_number(one) ? json_number_value(one) : (double)NAN;
    }
    *out_n = n;
    return numbers;
}

static weir_status load_trials(struct weir_txn *txn, struct weir_sweep_state *state,
                               struct weir_arena *arena, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("sweep", EQ, state->sweep.id)),
                                     .order_by = "number", .limit = WEIR_SWEEP_TRIALS_MAX};
    void *rows;
    WEIR_TRY(weir_txn_list(txn, &weir_sweep_trial_resource, &query, arena, &rows, &state->n_trials,
                           NULL, err));
    size_t room = WEIR_MAX(state->n_trials, (size_t)state->doc.n_trials);
    state->trials = WEIR_ARENA_ARRAY(arena, room + 1, struct weir_sweep_trial_state);
    for (size_t i = 0; i < state->n_trials; i++) {
        struct weir_sweep_trial_state *trial = &state->trials[i];
        size_t n;
        trial->row = ((struct weir_sweep_trial *)rows)[i];
        trial->point = numbers_of(trial->row.point, state->doc.space.n, &n, arena);
        const double *values = numbers_of(trial->row.rungs, 0, &n, arena);
        trial->n_rungs = WEIR_MIN(n, (size_t)WEIR_SWEEP_RUNGS_MAX);
        memcpy(trial->rung_values, values, trial->n_rungs * sizeof *values);
        if (trial->row.number != (int64_t)i + 1) {
            return weir_error_set(err, WEIR_ERR_CORRUPT, "sweep %s: trial %zu is missing",
                                  state->sweep.id, i + 1);
        }
    }
    return WEIR_OK;
}

weir_status weir_sweep_load(struct weir_txn *txn, const char *id, struct weir_arena *arena,
                            struct weir_sweep_state *out, struct weir_error *err)
{
    struct weir_sweep_state state = {0};
    WEIR_TRY(weir_txn_get(txn, &weir_sweep_resource, id, arena, &state.sweep, err));
    weir_status status = read_document(&state, arena, err);
    status = status == WEIR_OK ? load_trials(txn, &state, arena, err) : status;
    if (status != WEIR_OK) {
        weir_sweep_state_fini(&state);
        return status;
    }
    *out = state;
    return WEIR_OK;
}

void weir_sweep_state_fini(struct weir_sweep_state *state)
{
    json_decref(state->document);
    state->document = NULL;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static char *text_of_numbers(const double *numbers, size_t n, struct weir_arena *arena)
{
    WEIR_AUTO(weir_json_auto_free) json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(array, isfinite(numbers[i]) ? json_real(numbers[i]) : json_null());
    }
    return weir_json_text(array, arena);
}

weir_status weir_sweep_save(struct weir_txn *txn, struct weir_sweep_state *state,
                            struct weir_arena *arena, struct weir_error *err)
{
    if (state->is_new || state->is_changed) {
        WEIR_TRY(weir_txn_upsert(txn, &weir_sweep_resource, &state->sweep, err));
    }
    for (size_t i = 0; i < state->n_trials; i++) {
        struct weir_sweep_trial_state *trial = &state->trials[i];
        if (trial->is_new || trial->is_changed) {
            trial->row.point = text_of_numbers(trial->point, state->doc.space.n, arena);
            trial->row.rungs = text_of_numbers(trial->rung_values, trial->n_rungs, arena);
            WEIR_TRY(weir_txn_upsert(txn, &weir_sweep_trial_resource, &trial->row, err));
            trial->is_new = trial->is_changed = false;
        }
    }
    state->is_new = state->is_changed = false;
    return WEIR_OK;
}

weir_status weir_sweep_begin(json_t *document, const char *created_by, int64_t now_ms,
                             struct weir_arena *arena, struct weir_sweep_state *out,
                             struct weir_error *err)
{
    struct weir_sweep_state state = {.is_new = true};
    WEIR_TRY(weir_sweep_doc_read(document, arena, &state.doc, err));
    state.document = json_incref(document);
    if (state.doc.seed < 0) {
        uint64_t seed;
        weir_random_bytes(&seed, sizeof seed);
        state.doc.seed = (int64_t)(seed & WEIR_SWEEP_SEED_MAX);
        json_object_set_new(document, "seed", json_integer((json_int_t)state.doc.seed));
    }
    char *id = weir_arena_alloc(arena, WEIR_UUID_BYTES);
    weir_uuid_make(id);
    state.sweep = (struct weir_sweep){
        .id = id,
        .name = weir_arena_strdup(arena, state.doc.name),
        .project = weir_arena_strdup(arena, state.doc.project),
        .state = weir_arena_strdup(arena, "RUNNING"),
        .document = weir_json_text(document, arena),
        .method = weir_arena_strdup(arena, state.doc.method.kind->name),
        .metric = weir_arena_strdup(arena, state.doc.metric),
        .n_trials = state.doc.n_trials,
        .best_value = NAN,
        .created_by = weir_arena_strdup(arena, created_by),
        .created_ms = now_ms,
    };
    state.trials =
        WEIR_ARENA_ARRAY(arena, (size_t)state.doc.n_trials + 1, struct weir_sweep_trial_state);
    *out = state;
    return WEIR_OK;
}

/* ---- others ---------------------------------------------------------------------------------- */

weir_status weir_sweep_list_open(struct weir_txn *txn, struct weir_arena *arena, char ***out_ids,
                                 size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_open, WEIR_NO_BINDS, arena, out_ids, out_n, err);
}

weir_status weir_sweep_has_job(struct weir_txn *txn, const char *job, bool *out,
                               struct weir_error *err)
{
    int64_t found;
    WEIR_TRY(weir_txn_query_int(txn, sql_has_job, WEIR_BINDS(WEIR_BIND_TEXT("job", job)), 0, &found,
                                err));
    *out = found != 0;
    return WEIR_OK;
}

weir_status weir_sweep_delete(struct weir_txn *txn, const char *id, struct weir_error *err)
{
    struct weir_sweep sweep;
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    WEIR_TRY(weir_txn_get(txn, &weir_sweep_resource, id, &arena, &sweep, err));
    if (!weir_sweep_is_over(&sweep)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "sweep %s is %s: `weir sweep stop` ends it first", sweep.name,
                              sweep.state);
    }
    WEIR_TRY(
        weir_txn_exec(txn, sql_forget_trials, WEIR_BINDS(WEIR_BIND_TEXT("sweep", id)), NULL, err));
    return weir_txn_delete(txn, &weir_sweep_resource, id, err);
}
