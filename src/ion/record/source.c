#include "ion/source.h"

#include "base/grow.h"
#include "ion/record/said.h"
#include "ion/replica.h"

#include <string.h>

// clang-format off
static const struct weir_field source_fields[] = {
    WEIR_FIELD(weir_ion_source, id,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:PIPELINE:REPLICA:NUMBER"),
    WEIR_FIELD(weir_ion_source, ion,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ION"),
    WEIR_FIELD(weir_ion_source, pipeline,    TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Pipeline"),
    WEIR_FIELD(weir_ion_source, replica,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Replica that reports it"),
    WEIR_FIELD(weir_ion_source, role,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "source, sink, door or server"),
    WEIR_FIELD(weir_ion_source, name,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "A door's name, else the kind"),
    WEIR_FIELD(weir_ion_source, kind,        TEXT, WEIR_FIELD_READ_ONLY, "", "Its kind"),
    WEIR_FIELD(weir_ion_source, state,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "connected; lost; unknown, if its replica does not report"),
    WEIR_FIELD(weir_ion_source, since_ms,    TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When that began"),
    WEIR_FIELD(weir_ion_source, url,         TEXT, WEIR_FIELD_READ_ONLY, "", "Where a source of requests is reached"),
    WEIR_FIELD(weir_ion_source, error,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "The last error, also of one that is connected again"),
    WEIR_FIELD(weir_ion_source, n_taken,     INT,  WEIR_FIELD_READ_ONLY, "", "Decisions that it took, or frames that it gave, since the replica started"),
    WEIR_FIELD(weir_ion_source, n_refused,   INT,  WEIR_FIELD_READ_ONLY, "", "Decisions that it refused"),
    WEIR_FIELD(weir_ion_source, reported_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When its replica reported last"),
};
// clang-format on

const struct weir_resource weir_ion_source_resource =
    WEIR_RESOURCE("endpoint", "endpoints", weir_ion_source, source_fields);

/** The list as it grows, and what its rows are of. */
struct listing {
    const struct weir_ion_state *state;
    const struct weir_ion_doc_pipeline *doc;
    char *kind; /**< The source's. */
    int64_t now_ms;
    struct weir_arena *arena;
    struct weir_ion_source *items;
    size_t n, cap;
};

static struct weir_ion_source *add(struct listing *list, const struct weir_ion_replica *replica,
                                   size_t number, const json_t *said)
{
    const json_t *connected = json_object_get(said, "connected");
    bool is_heard = replica != NULL && list->now_ms - replica->time_ms < WEIR_REPLICA_SILENT_MS;
    weir_arena_grow(list->arena, &list->items, sizeof *list->items, list->n, &list->cap);
    struct weir_ion_source *row = &list->items[list->n++];
    *row = (struct weir_ion_source){
        .id = weir_arena_printf(list->arena, "%s:%s:%s:%zu", list->state->ion.name, list->doc->name,
                                replica != NULL ? replica->replica : "", number),
        .ion = list->state->ion.name,
        .pipeline = list->doc->name,
        .replica = replica != NULL ? replica->replica : NULL,
        .role = (char *)"source",
        .name = list->kind,
        .kind = list->kind,
        .state = (char *)(is_heard && json_is_true(connected)    ? "connected"
                          : is_heard && json_is_false(connected) ? "lost"
                                                                 : "unknown"),
        .since_ms = is_heard ? said_time(said, "since") : 0,
        .url = said_text(said, "url", list->arena),
        .error = said_text(said, "error", list->arena),
        .n_refused = WEIR_MAX(json_integer_value(json_object_get(said, "refused")), 0),
        .reported_ms = replica != NULL ? replica->time_ms : 0};
    return row;
}

static void add_consumers(struct listing *list, const struct weir_ion_replica *replica)
{
    json_t *consumers =
        replica->consumers != NULL ? json_loads(replica->consumers, JSON_DECODE_ANY, NULL) : NULL;
    json_t *said;
    size_t i;
    json_array_foreach(consumers, i, said)
    {
        char *door = said_text(said, "door", list->arena);
        char *name = said_text(said, "name", list->arena);
        bool is_server = name != NULL && strcmp(name, "server") == 0;
        struct weir_ion_source *row = add(list, replica, i + 1, said);
        row->role = (char *)(door != NULL ? "door" : is_server ? "server" : "sink");
        row->name = door != NULL ? door : name;
        row->kind = door != NULL ? said_text(said, "kind", list->arena) : is_server ? NULL : name;
        row->n_taken = WEIR_MAX(json_integer_value(json_object_get(said, "taken")), 0);
    }
    json_decref(consumers);
}

static void add_pipeline(struct listing *list)
{
    const struct weir_ion_pipeline *pipeline = weir_ion_pipeline_of(list->state, list->doc->name);
    size_t n_before = list->n;
    for (size_t i = 0; i < list->state->n_replicas && pipeline != NULL; i++) {
        const struct weir_ion_replica *replica = &list->state->replicas[i];
        if (strcmp(replica->pipeline, list->doc->name) == 0 &&
            weir_ion_replica_is_of(replica->replica, pipeline->job)) {
            json_t *said =
                replica->source != NULL ? json_loads(replica->source, JSON_DECODE_ANY, NULL) : NULL;
            add(list, replica, 0, said)->n_taken = replica->frames_taken;
            json_decref(said);
            add_consumers(list, replica);
        }
    }
    if (list->n == n_before) {
        add(list, NULL, 0, NULL);
    }
}

void weir_ion_sources(const struct weir_ion_state *state, int64_t now_ms, struct weir_arena *arena,
                      struct weir_ion_source **out, size_t *out_n)
{
    struct listing list = {.state = state, .now_ms = now_ms, .arena = arena};
    for (size_t i = 0; i < state->doc.n_pipelines; i++) {
        list.doc = &state->doc.pipelines[i];
        if (list.doc->type == WEIR_PIPELINE_PREDICTION) {
            json_t *source =
                list.doc->source != NULL ? json_loads(list.doc->source, 0, NULL) : NULL;
            list.kind = said_text(source, "kind", arena);
            json_decref(source);
            add_pipeline(&list);
        }
    }
    *out = list.items;
    *out_n = list.n;
}
