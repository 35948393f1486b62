#include "ion/door.h"

#include "ion/ion.h"
#include "ion/record/said.h"
#include "ion/replica.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field lock_down_fields[] = {
    WEIR_FIELD(weir_ion_lock_down, id,      TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:DOOR"),
    WEIR_FIELD(weir_ion_lock_down, ion,     TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_lock_down, door,    TEXT, WEIR_FIELD_READ_ONLY, "", "Door"),
    WEIR_FIELD(weir_ion_lock_down, note,    TEXT, 0, "", "Why"),
    WEIR_FIELD(weir_ion_lock_down, actor,   TEXT, WEIR_FIELD_READ_ONLY, "", "The user that locked it down"),
    WEIR_FIELD(weir_ion_lock_down, time_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
static const struct weir_field door_fields[] = {
    WEIR_FIELD(weir_ion_door, id,           TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:NAME"),
    WEIR_FIELD(weir_ion_door, ion,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_ion_door, pipeline,     TEXT, WEIR_FIELD_READ_ONLY, "", "Pipeline that opens it"),
    WEIR_FIELD(weir_ion_door, name,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Name within the ION"),
    WEIR_FIELD(weir_ion_door, kind,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What reaches it: a kind of doors"),
    WEIR_FIELD(weir_ion_door, state,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "unknown, locked, open or jammed, as far as its replica knows"),
    WEIR_FIELD(weir_ion_door, contact,      TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ok; lost, if it did not answer; unknown, if no replica has reported"),
    WEIR_FIELD(weir_ion_door, since_ms,     TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When that began"),
    WEIR_FIELD(weir_ion_door, error,        TEXT, WEIR_FIELD_READ_ONLY, "", "Why contact was lost last"),
    WEIR_FIELD(weir_ion_door, locked_by,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "The user that locked it down; none: it is not locked down"),
    WEIR_FIELD(weir_ion_door, locked_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
    WEIR_FIELD(weir_ion_door, note,         TEXT, WEIR_FIELD_READ_ONLY, "", "Why"),
    WEIR_FIELD(weir_ion_door, last,         JSON, WEIR_FIELD_READ_ONLY, "", "The last command or what came in its place: {id, verb, outcome, person, camera, decision, said, time}"),
    WEIR_FIELD(weir_ion_door, last_outcome, TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "What became of it: done, repeated, late, refused, jammed; silent; locked down, not now, interlocked"),
    WEIR_FIELD(weir_ion_door, last_person,  TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "For whom"),
    WEIR_FIELD(weir_ion_door, last_ms,      TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_ion_lock_down_resource =
    WEIR_RESOURCE("lock-down", "ion_lock_downs", weir_ion_lock_down, lock_down_fields);
const struct weir_resource weir_ion_door_resource =
    WEIR_RESOURCE("door", "ion_doors", weir_ion_door, door_fields);

const struct weir_noun weir_noun_ion_lock_down = {"ion_lock_downs", WEIR_OF(ion, ions, name),
                                                  .stays = "one of each door at most"};

static const char sql_is_locked[] = "SELECT count(*) FROM ion_lock_downs WHERE id = :id";
static const char sql_lists_changed[] =
    "UPDATE ions SET list_revision = list_revision + 1 WHERE name = :name";

static weir_status change(struct weir_txn *txn, const struct weir_ion_lock_down *row,
                          bool is_locked, struct weir_error *err)
{
    WEIR_TRY(is_locked ? weir_txn_insert(txn, &weir_ion_lock_down_resource, row, err)
                       : weir_txn_delete(txn, &weir_ion_lock_down_resource, row->id, err));
    return weir_txn_exec(txn, sql_lists_changed, WEIR_BINDS(WEIR_BIND_TEXT("name", row->ion)), NULL,
                         err);
}

weir_status weir_ion_lock_down_set(struct weir_txn *txn, const struct weir_ion_lock_down *lock_down,
                                   bool is_locked, bool *out_changed, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    struct weir_ion_lock_down row = *lock_down;
    int64_t n_there;
    weir_arena_init(&arena, 0);
    row.id = weir_arena_printf(&arena, "%s:%s", row.ion, row.door);
    WEIR_TRY(weir_txn_query_int(txn, sql_is_locked, WEIR_BINDS(WEIR_BIND_TEXT("id", row.id)), 0,
                                &n_there, err));
    *out_changed = (n_there != 0) != is_locked;
    return *out_changed ? change(txn, &row, is_locked, err) : WEIR_OK;
}

/* ---- how they stand --------------------------------------------------------------------------- */

/* The replica with the last command says the state; contact is lost if one has lost it. */
static void hear(const json_t *said, struct weir_arena *arena, struct weir_ion_door *door)
{
    const json_t *last = json_object_get(said, "last");
    bool is_lost = json_is_false(json_object_get(said, "connected"));
    int64_t last_ms = said_time(last, "time");
    if (strcmp(door->contact, "lost") != 0) {
        door->contact = is_lost ? "lost" : "ok";
        door->since_ms = said_time(said, "since");
        door->error = said_text(said, "error", arena);
    }
    if (last_ms >= door->last_ms) {
        char *state = said_text(said, "state", arena);
        door->state = state != NULL ? state : door->state;
        door->last = json_is_object(last) ? weir_json_text(last, arena) : door->last;
        door->last_outcome = said_text(last, "outcome", arena);
        door->last_person = said_text(last, "person", arena);
        door->last_ms = last_ms;
    }
}

static void hear_replicas(const struct weir_ion_state *state, struct weir_arena *arena,
                          struct weir_ion_door *door)
{
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(state, door->pipeline);
    for (size_t i = 0; i < state->n_replicas && pipeline != NULL; i++) {
        const struct weir_ion_replica *replica = &state->replicas[i];
        if (strcmp(replica->pipeline, door->pipeline) != 0 ||
            !weir_ion_replica_is_of(replica->replica, pipeline->job) ||
            replica->consumers == NULL) {
            continue;
        }
        json_t *list = json_loads(replica->consumers, JSON_DECODE_ANY, NULL), *said;
        size_t k;
        json_array_foreach(list, k, said)
        {
            const char *name = json_string_value(json_object_get(said, "door"));
            if (name != NULL && strcmp(name, door->name) == 0) {
                hear(said, arena, door);
            }
        }
        json_decref(list);
    }
}

static struct weir_ion_door door_of(const struct weir_ion_state *state,
                                    const struct weir_ion_doc_pipeline *pipeline,
                                    const json_t *written, struct weir_arena *arena)
{
    struct weir_ion_door door = {.ion = state->ion.name,
                                 .pipeline = pipeline->name,
                                 .name = said_text(written, "name", arena),
                                 .kind = said_text(json_object_get(written, "by"), "kind", arena),
                                 .state = "unknown",
                                 .contact = "unknown"};
    door.id = weir_arena_printf(arena, "%s:%s", door.ion, door.name);
    for (size_t i = 0; i < state->n_lock_downs; i++) {
        const struct weir_ion_lock_down *lock_down = &state->lock_downs[i];
        if (strcmp(lock_down->door, door.name) == 0) {
            door.locked_by = lock_down->actor != NULL ? lock_down->actor : "";
            door.locked_ms = lock_down->time_ms;
            door.note = lock_down->note;
        }
    }
    hear_replicas(state, arena, &door);
    return door;
}

void weir_ion_doors(const struct weir_ion_state *state, struct weir_arena *arena,
                    struct weir_ion_door **out, size_t *out_n)
{
    size_t n = 0, room = 0;
    struct weir_ion_door *doors = NULL;
    for (int pass = 0; pass < 2; pass++) {
        doors = pass == 1 ? WEIR_ARENA_ARRAY(arena, room + 1, struct weir_ion_door) : NULL;
        for (size_t i = 0; i < state->doc.n_pipelines; i++) {
            const struct weir_ion_doc_pipeline *pipeline = &state->doc.pipelines[i];
            json_t *list = pipeline->doors != NULL ? json_loads(pipeline->doors, 0, NULL) : NULL;
            for (size_t k = 0; k < json_array_size(list) && pass == 1; k++) {
                doors[n++] = door_of(state, pipeline, json_array_get(list, k), arena);
            }
            room += json_array_size(list);
            json_decref(list);
        }
    }
    *out = doors;
    *out_n = n;
}
