/** What belongs to the runs of a page: statements that stay prepared, names of keys looked up once. */
#include "track/run_search.h"

#include "store/stmt.h"

#include <math.h>

#define N_PARTS 3

#define SQL_METRICS                                                                                \
    "SELECT key, value, step, time_ms, is_nan FROM latest_metrics WHERE run = ? ORDER BY key"

static const char *const sql_parts[N_PARTS] = {
    [WEIR_RUN_METRICS] = SQL_METRICS,
    [WEIR_RUN_PARAMETERS] = "SELECT key, value FROM run_parameters WHERE run = ? ORDER BY key",
    [WEIR_RUN_TAGS] = "SELECT key, value FROM run_tags WHERE run = ? ORDER BY key",
};
static const char sql_inputs[] = "SELECT 1 FROM run_inputs WHERE run = ? LIMIT 1";
static const char sql_name[] = "SELECT name FROM track_keys WHERE id = ?";

struct weir_run_reader {
    struct weir_arena *arena;
    struct weir_stmt *parts[N_PARTS], *name, *inputs;
    enum weir_run_part part;

    /* Names by the number of their key: an open table of hashes, at most half full. */
    struct slot {
        int64_t key;
        const char *name;
    } * slots;

    size_t n_names, n_slots;
};

weir_status weir_run_reader_open(struct weir_txn *txn, struct weir_arena *arena,
                                 struct weir_run_reader **out, struct weir_error *err)
{
    struct weir_run_reader *reader = WEIR_ARENA_NEW(arena, struct weir_run_reader);
    weir_status status = weir_stmt_open(txn, sql_name, WEIR_NO_BINDS, &reader->name, err);
    if (status == WEIR_OK) {
        status = weir_stmt_open(txn, sql_inputs, WEIR_NO_BINDS, &reader->inputs, err);
    }
    for (size_t i = 0; i < N_PARTS && status == WEIR_OK; i++) {
        status = weir_stmt_open(txn, sql_parts[i], WEIR_NO_BINDS, &reader->parts[i], err);
    }
    if (status != WEIR_OK) {
        weir_run_reader_close(reader);
        return status;
    }
    reader->arena = arena;
    reader->n_slots = 256;
    reader->slots = WEIR_ARENA_ARRAY(arena, reader->n_slots, struct slot);
    *out = reader;
    return WEIR_OK;
}

void weir_run_reader_close(struct weir_run_reader *reader)
{
    if (reader != NULL) {
        for (size_t i = 0; i < N_PARTS; i++) {
            weir_stmt_close(reader->parts[i]);
        }
        weir_stmt_close(reader->inputs);
        weir_stmt_close(reader->name);
    }
}

void weir_run_reader_auto_close(struct weir_run_reader **reader)
{
    weir_run_reader_close(*reader);
}

static struct slot *find_slot(struct slot *slots, size_t n_slots, int64_t key)
{
    size_t i = (size_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> 20) % n_slots;
    while (slots[i].name != NULL && slots[i].key != key) {
        i = (i + 1) % n_slots;
    }
    return &slots[i];
}

static void grow_slots(struct weir_run_reader *reader)
{
    size_t n_slots = reader->n_slots * 4;
    struct slot *slots = WEIR_ARENA_ARRAY(reader->arena, n_slots, struct slot);
    for (size_t i = 0; i < reader->n_slots; i++) {
        if (reader->slots[i].name != NULL) {
            *find_slot(slots, n_slots, reader->slots[i].key) = reader->slots[i];
        }
    }
    reader->slots = slots;
    reader->n_slots = n_slots;
}

static weir_status name_of(struct weir_run_reader *reader, int64_t key, const char **out,
                           struct weir_error *err)
{
    struct slot *slot = find_slot(reader->slots, reader->n_slots, key);
    if (slot->name == NULL) {
        bool has_row;
        if (2 * ++reader->n_names > reader->n_slots) {
            grow_slots(reader);
            slot = find_slot(reader->slots, reader->n_slots, key);
        }
        WEIR_TRY(weir_stmt_rebind(reader->name, WEIR_BINDS(WEIR_BIND_INT(NULL, key)), err));
        WEIR_TRY(weir_stmt_step(reader->name, &has_row, err));
        const char *name = has_row ? weir_stmt_text(reader->name, 0, reader->arena) : NULL;
        *slot = (struct slot){key, name != NULL ? name : ""};
        WEIR_TRY(weir_arena_check(reader->arena, "names of runs' metrics and parameters", err));
    }
    *out = slot->name;
    return WEIR_OK;
}

weir_status weir_run_reader_begin(struct weir_run_reader *reader, enum weir_run_part part,
                                  int64_t run, struct weir_error *err)
{
    reader->part = part;
    return weir_stmt_rebind(reader->parts[part], WEIR_BINDS(WEIR_BIND_INT(NULL, run)), err);
}

weir_status weir_run_reader_next(struct weir_run_reader *reader, struct weir_run_item *out,
                                 bool *out_has, struct weir_error *err)
{
    struct weir_stmt *stmt = reader->parts[reader->part];
    WEIR_TRY(weir_stmt_step(stmt, out_has, err));
    if (!*out_has) {
        return WEIR_OK;
    }
    WEIR_TRY(name_of(reader, weir_stmt_int(stmt, 0), &out->key, err));
    if (reader->part == WEIR_RUN_METRICS) {
        out->value = weir_stmt_int(stmt, 4) != 0 ? NAN : weir_stmt_f64(stmt, 1);
        out->step = weir_stmt_int(stmt, 2);
        out->time_ms = weir_stmt_int(stmt, 3);
    } else {
        out->text = weir_stmt_peek(stmt, 1, &out->text_len);
    }
    return WEIR_OK;
}

weir_status weir_run_reader_has_inputs(struct weir_run_reader *reader, int64_t run, bool *out,
                                       struct weir_error *err)
{
    WEIR_TRY(weir_stmt_rebind(reader->inputs, WEIR_BINDS(WEIR_BIND_INT(NULL, run)), err));
    return weir_stmt_step(reader->inputs, out, err);
}
