/** Tests: the control plane over a store of its own, under a driven clock, with agents that do what
 *  the test says. No thread, no network. */
#ifndef WEIR_CONTROL_CONTROL_FIXTURE_H
#define WEIR_CONTROL_CONTROL_FIXTURE_H

#include "control/control.h"
#include "ion/ion_fixture.h"
#include "nouns/nouns.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <string.h>

#define FIXTURE_MAX_TASKS 16

struct control_fixture {
    struct store_fixture store;
    int64_t now_ms;
    const char *state_dir; /**< NULL: "/s", which is not there. */
    json_t *published;     /**< [topic, record] of every commit so far. */
    struct weir_error err;
};

typedef weir_status (*control_fn)(struct control *control, struct weir_txn *txn, void *context,
                                  struct weir_error *err);

/** One transaction, as a route or the engine runs it. */
struct control_turn {
    struct control_fixture *fixture;
    control_fn fn;
    void *context;
    bool fails; /**< At the very end: nothing of it may stay. */
    json_t *publish;
};

static inline weir_status run_turn(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct control_turn *turn = context;
    struct control control = {
        .arena = &turn->fixture->store.arena,
        .now_ms = turn->fixture->now_ms,
        .actor = "ann",
        .state_dir = turn->fixture->state_dir != NULL ? turn->fixture->state_dir : "/s",
        .server_url = "http://h:1",
        .publish = turn->publish};
    json_array_clear(turn->publish);
    WEIR_TRY(turn->fn(&control, txn, turn->context, err));
    return turn->fails ? weir_error_set(err, WEIR_ERR_PEER, "the client is gone") : WEIR_OK;
}

static inline weir_status try_turn(struct control_fixture *fixture, control_fn fn, void *context,
                                   bool fails)
{
    struct control_turn turn = {fixture, fn, context, fails, json_array()};
    weir_status status = weir_store_write(fixture->store.store, run_turn, &turn, &fixture->err);
    if (status == WEIR_OK) {
        json_array_extend(fixture->published, turn.publish);
    }
    json_decref(turn.publish);
    return status;
}

/** The transaction must succeed. */
static inline void turn(struct control_fixture *fixture, control_fn fn, void *context)
{
    weir_status status = try_turn(fixture, fn, context, false);
    ck_assert_msg(status == WEIR_OK, "%s: %s", weir_status_name(status), fixture->err.message);
}

/** A store with the project "default", the frozen datasets "faces" and "people", and node "n". */
static inline weir_status populate_control(struct weir_txn *txn, void *context,
                                           struct weir_error *err)
{
    static const char *const names[] = {"faces", "people"};
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "default"},
                         err));
    for (size_t i = 0; i < 2; i++) {
        char *name = (char *)names[i];
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        const struct weir_dataset dataset = {.name = name,
                                             .project = "default",
                                             .kind = "folder",
                                             .path = weir_arena_printf(&arena, "/data/%s", name)};
        struct weir_dataset_version version = {.id = weir_arena_printf(&arena, "%s-1", name),
                                               .dataset = name,
                                               .digest = "d1",
                                               .blob = "b1",
                                               .n_files = 4,
                                               .n_classes = 2};
        MUST(weir_txn_insert(txn, &weir_dataset_resource, &dataset, err));
        MUST(weir_dataset_add_version(txn, &version, 1, &arena, &version, NULL, err));
        weir_arena_fini(&arena);
    }
    return weir_node_heartbeat(txn, &(struct weir_node){.name = "n", .cpu_slots = 64}, 1, err);
}

static inline void control_fixture_make(struct control_fixture *fixture)
{
    *fixture = (struct control_fixture){.now_ms = 1000, .published = json_array()};
    fixture_init(&fixture->store);
    fixture_open(&fixture->store, (struct weir_store_config){.noun_at = weir_noun_at});
    fixture_write(&fixture->store, populate_control, NULL);
}

static inline void control_fixture_fini(struct control_fixture *fixture)
{
    json_decref(fixture->published);
    fixture_fini(&fixture->store);
}

/* ---- what is there --------------------------------------------------------------------------- */

struct lookup {
    struct control_fixture *fixture;
    const struct weir_resource *resource;
    const char *key;
    void *out;
    size_t n;
    weir_status status;
};

static inline weir_status get_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct lookup *lookup = context;
    lookup->status = weir_txn_get(txn, lookup->resource, lookup->key, &lookup->fixture->store.arena,
                                  lookup->out, err);
    return WEIR_OK;
}

/** The record with this key; false: there is none. */
static inline bool find_record(struct control_fixture *fixture,
                               const struct weir_resource *resource, const char *key, void *out)
{
    struct lookup lookup = {fixture, resource, key, out, 0, WEIR_OK};
    fixture_read(&fixture->store, get_in, &lookup);
    return lookup.status == WEIR_OK;
}

static inline weir_status list_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct lookup *lookup = context;
    struct weir_query query = {.limit = WEIR_QUERY_LIMIT_MAX};
    return weir_txn_list(txn, lookup->resource, &query, &lookup->fixture->store.arena, lookup->out,
                         &lookup->n, NULL, err);
}

/** All records of a resource, by key. */
static inline size_t list_records(struct control_fixture *fixture,
                                  const struct weir_resource *resource, void **out)
{
    struct lookup lookup = {fixture, resource, NULL, out, 0, WEIR_OK};
    fixture_read(&fixture->store, list_in, &lookup);
    return lookup.n;
}

static inline size_t count_records(struct control_fixture *fixture,
                                   const struct weir_resource *resource)
{
    void *items;
    return list_records(fixture, resource, &items);
}

static inline struct weir_job job_record(struct control_fixture *fixture, const char *id)
{
    struct weir_job job;
    REQUIRE(find_record(fixture, &weir_job_resource, id, &job));
    return job;
}

/** State of the newest alert whose key begins so; "" if there is none. */
static inline const char *alert_state(struct control_fixture *fixture, const char *prefix)
{
    void *items;
    const char *state = "";
    size_t n = list_records(fixture, &weir_alert_resource, &items);
    for (size_t i = 0; i < n; i++) {
        const struct weir_alert *alert = (const struct weir_alert *)items + i;
        if (strncmp(alert->key, prefix, strlen(prefix)) == 0) {
            state = alert->state;
        }
    }
    return state;
}

static inline size_t n_published(const struct control_fixture *fixture, const char *topic)
{
    size_t i, n = 0;
    json_t *entry;
    json_array_foreach(fixture->published, i, entry)
    {
        n += strcmp(json_string_value(json_array_get(entry, 0)), topic) == 0;
    }
    return n;
}

/* ---- people and agents ----------------------------------------------------------------------- */

struct make_job {
    const char *name, *kind, *spec;
    char *id; /**< Out. */
};

static inline weir_status make_job_in(struct control *control, struct weir_txn *txn, void *context,
                                      struct weir_error *err)
{
    struct make_job *make = context;
    struct weir_job job;
    json_t *spec = json_loads(make->spec, 0, NULL);
    REQUIRE(spec != NULL);
    struct control_job wanted = {
        .name = make->name, .project = "default", .kind = make->kind, .spec = spec};
    weir_status status = control_job_create(control, txn, &wanted, &job, err);
    json_decref(spec);
    make->id = status == WEIR_OK ? job.id : NULL;
    return status;
}

static inline char *make_job(struct control_fixture *fixture, const char *name, const char *kind,
                             const char *spec)
{
    struct make_job make = {name, kind, spec, NULL};
    turn(fixture, make_job_in, &make);
    return make.id;
}

struct job_turn {
    const char *job;
    struct weir_job_event event;
};

static inline weir_status job_event_in(struct control *control, struct weir_txn *txn, void *context,
                                       struct weir_error *err)
{
    const struct job_turn *job_turn = context;
    return control_job_event(control, txn, job_turn->job, &job_turn->event, err);
}

static inline weir_status try_job_event(struct control_fixture *fixture, const char *job,
                                        struct weir_job_event event)
{
    struct job_turn job_turn = {job, event};
    return try_turn(fixture, job_event_in, &job_turn, false);
}

static inline weir_status place_in(struct control *control, struct weir_txn *txn, void *context,
                                   struct weir_error *err)
{
    struct weir_job_state state;
    size_t wants[FIXTURE_MAX_TASKS];
    const char *nodes[FIXTURE_MAX_TASKS];
    WEIR_TRY(weir_job_load(txn, context, control->arena, &state, err));
    REQUIRE(state.n_tasks <= FIXTURE_MAX_TASKS);
    size_t n = weir_job_wants(&state, control->now_ms, wants);
    for (size_t i = 0; i < n; i++) {
        nodes[i] = "n";
    }
    struct weir_job_event event = {.type = WEIR_JOB_EVENT_BIND, .place = nodes, .n_place = n};
    return n > 0 ? control_job_event(control, txn, context, &event, err) : WEIR_OK;
}

/** Every task that wants a node gets node "n". */
static inline void place(struct control_fixture *fixture, char *job)
{
    turn(fixture, place_in, job);
}

struct report {
    const char *job;
    int64_t rank;
    enum weir_job_event_type type;
    int64_t exit_code;
};

static inline weir_status report_in(struct control *control, struct weir_txn *txn, void *context,
                                    struct weir_error *err)
{
    const struct report *report = context;
    struct weir_job_state state;
    WEIR_TRY(weir_job_load(txn, report->job, control->arena, &state, err));
    const struct weir_task *task = &state.tasks[report->rank];
    struct weir_job_event event = {.type = report->type,
                                   .task = task->id,
                                   .attempt = task->attempt,
                                   .pid = 42,
                                   .exit_code = report->exit_code};
    return control_job_event(control, txn, report->job, &event, err);
}

/** The agent says that the task of this rank runs. */
static inline void runs(struct control_fixture *fixture, const char *job, int64_t rank)
{
    turn(fixture, report_in, &(struct report){job, rank, WEIR_JOB_EVENT_TASK_RUNNING, 0});
}

static inline void exits(struct control_fixture *fixture, const char *job, int64_t rank,
                         int64_t exit_code)
{
    turn(fixture, report_in, &(struct report){job, rank, WEIR_JOB_EVENT_TASK_EXITED, exit_code});
}

/** A job of one task from its placement to its end. */
static inline void play(struct control_fixture *fixture, char *job, int64_t exit_code)
{
    place(fixture, job);
    runs(fixture, job, 0);
    exits(fixture, job, 0, exit_code);
}

/* ---- IONs ------------------------------------------------------------------------------------ */

static inline weir_status ion_event_in(struct control *control, struct weir_txn *txn, void *context,
                                       struct weir_error *err)
{
    return control_ion_event(control, txn, "x", context, err);
}

static inline weir_status apply_in(struct control *control, struct weir_txn *txn, void *context,
                                   struct weir_error *err)
{
    struct weir_ion_state state;
    struct weir_ion_actions actions = {0};
    if (weir_ion_load(txn, "x", control->arena, &state, err) != WEIR_OK) {
        weir_ion_state_new("x", control->arena, &state);
    }
    WEIR_TRY(weir_ion_step(&state, context, control->now_ms, control->arena, &actions, err));
    return weir_ion_save(txn, &state, &actions, control->now_ms, err);
}

/** Apply the ION "x": training t of a lenet on "faces" → prediction p over "people". Replicas as
 *  YAML. */
static inline void apply_as(struct control_fixture *fixture, const char *policy,
                            const char *replicas)
{
    static const struct weir_ion_dataset datasets[] = {
        {.name = "faces", .version = 1, .path = "/data/faces", .digest = "d1", .blob = "b1"},
        {.name = "people", .version = 1, .path = "/data/people", .digest = "d1", .blob = "b1"}};
    struct weir_arena *arena = &fixture->store.arena;
    char *text, *yaml = weir_arena_printf(
                    arena,
                    "{name: x, pipelines: [{name: t, type: training, dataset: faces, model: lenet},"
                    " {name: p, type: prediction, replicas: %s, source: {kind: http},"
                    " gallery: {dataset: people, default: allow}}],"
                    " links: [{from: t, to: p, policy: %s}]}",
                    replicas, policy);
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(arena, yaml, &text);
    event.document = text;
    event.datasets = datasets;
    event.n_datasets = 2;
    turn(fixture, apply_in, &event);
}

static inline void apply(struct control_fixture *fixture, const char *policy, int replicas)
{
    apply_as(fixture, policy, weir_arena_printf(&fixture->store.arena, "%d", replicas));
}

static inline void trigger(struct control_fixture *fixture)
{
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_TRIGGER, .actor = "ann", .pipeline = "t"};
    turn(fixture, ion_event_in, &event);
}

static inline weir_status load_ion_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct lookup *lookup = context;
    return weir_ion_load(txn, "x", &lookup->fixture->store.arena, lookup->out, err);
}

static inline struct weir_ion_state ion_state(struct control_fixture *fixture)
{
    struct weir_ion_state state;
    struct lookup lookup = {.fixture = fixture, .out = &state};
    fixture_read(&fixture->store, load_ion_in, &lookup);
    return state;
}

static inline struct weir_ion_pipeline pipeline_record(struct control_fixture *fixture,
                                                       const char *name)
{
    struct weir_ion_state state = ion_state(fixture);
    return *pipeline_of(&state, name);
}

struct take_actions {
    struct weir_outbox *items;
    size_t n;
};

static inline weir_status take_actions_in(struct control *control, struct weir_txn *txn,
                                          void *context, struct weir_error *err)
{
    struct take_actions *take = context;
    return weir_outbox_take(txn, control->now_ms, 1000, 100, control->arena, &take->items, &take->n,
                            err);
}

static inline weir_status do_action_in(struct control *control, struct weir_txn *txn, void *context,
                                       struct weir_error *err)
{
    const struct weir_outbox *action = context;
    WEIR_TRY(control_execute(control, txn, action->kind, action->payload, err));
    return weir_outbox_done(txn, action->seq, control->now_ms, err);
}

/** Carry out what the outbox holds, and what follows from it; each action fails `n_failures` times
 *  at the end of its transaction first. @return How many there were. */
static inline size_t carry_out(struct control_fixture *fixture, int n_failures)
{
    size_t n = 0;
    for (;;) {
        struct take_actions take = {0};
        turn(fixture, take_actions_in, &take);
        if (take.n == 0) {
            return n;
        }
        for (size_t i = 0; i < take.n; i++, n++) {
            for (int k = 0; k < n_failures; k++) {
                ck_assert_int_eq(try_turn(fixture, do_action_in, &take.items[i], true),
                                 WEIR_ERR_PEER);
            }
            turn(fixture, do_action_in, &take.items[i]);
        }
    }
}

struct registration {
    const char *id, *run;
    struct weir_model_version out;
};

static inline weir_status register_in(struct control *control, struct weir_txn *txn, void *context,
                                      struct weir_error *err)
{
    struct registration *registration = context;
    struct weir_model_version version = {.id = (char *)registration->id,
                                         .model = "x.t",
                                         .run = (char *)registration->run,
                                         .blob = "b10b",
                                         .metrics = "{\"accuracy\":0.9}"};
    return control_model_register(control, txn, &version, &registration->out, err);
}

static inline struct weir_model_version register_model(struct control_fixture *fixture,
                                                       const char *id, const char *run)
{
    struct registration registration = {.id = id, .run = run};
    turn(fixture, register_in, &registration);
    return registration.out;
}

#endif
