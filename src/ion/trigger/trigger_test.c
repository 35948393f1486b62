#include "ion/trigger.h"

#include "base/kind_laws.h"
#include "base/rng.h"
#include "ion/ion_fixture.h"

#include <inttypes.h>

#define SECOND ((int64_t)1000)

static struct weir_arena arena; /* of the test that runs */

START_TEST(triggers_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_triggers);
}

END_TEST

static struct weir_trigger_list read_list(const char *text)
{
    struct weir_trigger_list list;
    struct weir_error err;
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(weir_triggers_read(json, "$.triggers", &arena, &list, &err) == WEIR_OK, "%s",
                  err.message);
    json_decref(json);
    return list;
}

static const struct {
    const char *json, *message;
} wrong[] = {
    {"{}", "$.triggers: expected a list"},
    {"[3]", "$.triggers[0]: expected the name of a trigger"},
    {"[\"manual\",\"manual\"]", "$.triggers: there are two manual triggers"},
    {"[\"shedule\"]", "$.triggers[0]: \"shedule\" is none of "},
    {"[\"schedule\"]", "$.triggers[0].cron: "},
    {"[{\"kind\":\"schedule\",\"cron\":\"0 61 * * * ?\"}]", "$.triggers[0].cron: schedule "},
    {"[{\"kind\":\"drift\",\"k\":6,\"n\":5}]", "$.triggers[0].k: 6 is more than n, 5"},
    {"[{\"kind\":\"new-data\",\"files\":-1}]", "$.triggers[0].files: "},
    {"[{\"kind\":\"metric\",\"of\":\"kpi\",\"when\":\"above\",\"threshold\":1}]",
     "$.triggers[0].name: missing"},
    {"[{\"kind\":\"metric\",\"of\":\"accuracy\",\"name\":\"x\",\"when\":\"above\",\"threshold\":1}"
     "]",
     "$.triggers[0].name: accuracy has no name"},
    {"[{\"kind\":\"metric\",\"of\":\"run\",\"name\":\"x\",\"when\":\"near\",\"threshold\":1}]",
     "$.triggers[0].when: "},
    {"[{\"kind\":\"model-age\"}]", "$.triggers[0].max_age_s: "},
    {"[{\"kind\":\"manual\",\"least_interval_s\":-1}]", "$.triggers[0].least_interval_s: "},
};

START_TEST(what_is_wrong_is_named_by_its_place)
{
    weir_arena_init(&arena, 0);
    struct weir_trigger_list list;
    struct weir_error err = {0};
    json_t *json = json_loads(wrong[_i].json, 0, NULL);
    ck_assert_int_lt(weir_triggers_read(json, "$.triggers", &arena, &list, &err), 0);
    json_decref(json);
    ck_assert_msg(strncmp(err.message, wrong[_i].message, strlen(wrong[_i].message)) == 0, "%s: %s",
                  wrong[_i].json, err.message);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(every_list_has_a_manual_trigger)
{
    weir_arena_init(&arena, 0);
    struct weir_trigger_list list = read_list("[]");
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.items[0].text, "{\"kind\":\"manual\"}");
    list = read_list("[{\"kind\":\"manual\",\"allowed\":false},\"new-data\"]");
    ck_assert_uint_eq(list.n, 2);
    weir_arena_fini(&arena);
}

END_TEST

/* ---- the oracle: what each kind is to do, from the numbers that the test drew ---------------------- */

struct drawn {
    int64_t now, armed, started, least, next, files, used_files, wanted_files, version,
        used_version;
    int64_t model, age, alert, value_ms, value_10, threshold_10, n_values, min_values;
    int64_t k, n, n_windows;
    bool windows[12], by, allowed, above, has_value;
};

static int64_t below(struct weir_rng *rng, int64_t n)
{
    return (int64_t)weir_rng_below(rng, (uint64_t)n);
}

static struct drawn draw(struct weir_rng *rng)
{
    struct drawn d = {.now = 1000 + below(rng, 40),
                      .armed = 1000 + below(rng, 20),
                      .started = below(rng, 3) > 0 ? 1000 + below(rng, 40) : 0,
                      .least = below(rng, 3) * 8,
                      .next = below(rng, 4) > 0 ? 1000 + below(rng, 50) : 0,
                      .files = below(rng, 20),
                      .used_files = below(rng, 20),
                      .wanted_files = below(rng, 6),
                      .version = below(rng, 4),
                      .used_version = below(rng, 4),
                      .model = below(rng, 4) > 0 ? 1000 + below(rng, 40) : 0,
                      .age = 1 + below(rng, 30),
                      .alert = below(rng, 2) > 0 ? 1000 + below(rng, 40) : 0,
                      .value_ms = 1000 + below(rng, 40),
                      .value_10 = below(rng, 11),
                      .threshold_10 = below(rng, 11),
                      .n_values = below(rng, 5),
                      .min_values = 1 + below(rng, 4),
                      .n = 1 + below(rng, 8),
                      .n_windows = below(rng, 13),
                      .by = below(rng, 2) > 0,
                      .allowed = below(rng, 4) > 0,
                      .above = below(rng, 2) > 0,
                      .has_value = below(rng, 4) > 0};
    d.k = 1 + below(rng, d.n);
    for (size_t i = 0; i < 12; i++) {
        d.windows[i] = below(rng, 2) > 0;
    }
    return d;
}

/** Options of a kind with what was drawn; in seconds, as documents have them. */
static char *document_of(const char *kind, const struct drawn *d)
{
    char *least = weir_arena_printf(&arena, "\"least_interval_s\":%" PRId64, d->least);
    if (strcmp(kind, "manual") == 0) {
        return weir_arena_printf(&arena, "[{\"kind\":\"manual\",\"allowed\":%s,%s}]",
                                 d->allowed ? "true" : "false", least);
    }
    if (strcmp(kind, "schedule") == 0) {
        return weir_arena_printf(&arena, "[{\"kind\":\"schedule\",\"cron\":\"0 0 3 * * ?\",%s}]",
                                 least);
    }
    if (strcmp(kind, "new-data") == 0) {
        return weir_arena_printf(&arena, "[{\"kind\":\"new-data\",\"files\":%" PRId64 ",%s}]",
                                 d->wanted_files, least);
    }
    if (strcmp(kind, "drift") == 0) {
        return weir_arena_printf(&arena,
                                 "[{\"kind\":\"drift\",\"signal\":\"score\",\"k\":%" PRId64
                                 ",\"n\":%" PRId64 ",%s}]",
                                 d->k, d->n, least);
    }
    if (strcmp(kind, "metric") == 0) {
        return weir_arena_printf(
            &arena,
            "[{\"kind\":\"metric\",\"of\":\"accuracy\",\"when\":\"%s\",\"threshold\":%.1f,"
            "\"min_samples\":%" PRId64 ",%s}]",
            d->above ? "above" : "below", (double)d->threshold_10 / 10, d->min_values, least);
    }
    if (strcmp(kind, "alert") == 0) {
        return weir_arena_printf(&arena, "[{\"kind\":\"alert\",\"alert\":\"no_frames\",%s}]",
                                 least);
    }
    return weir_arena_printf(&arena, "[{\"kind\":\"model-age\",\"max_age_s\":%" PRId64 ",%s}]",
                             d->age, least);
}

static char *windows_of(const struct drawn *d)
{
    char *list = (char *)"";
    for (int64_t i = 0; i < d->n_windows && i < 12; i++) {
        list = weir_arena_printf(&arena, "%s%s%s", list, i > 0 ? "," : "",
                                 d->windows[i] ? "true" : "false");
    }
    return weir_arena_printf(
        &arena,
        "[{\"signal\":\"other\",\"pipeline\":\"p\",\"drifted\":[true,true,true,"
        "true,true,true,true,true]},{\"signal\":\"score\",\"pipeline\":\"p\","
        "\"drifted\":[%s]}]",
        list);
}

/** Were there no least interval. */
static bool oracle_wants(const char *kind, const struct drawn *d)
{
    int64_t armed = d->armed > d->now ? 0 : d->armed; /* the wall clock was set back */
    int64_t started = d->started > d->now ? 0 : d->started;
    int64_t since = armed > started ? armed : started;
    int64_t n_bad = 0;
    for (int64_t i = 0; i < d->n_windows && i < 12 && i < d->n; i++) {
        n_bad += d->windows[i];
    }
    switch (kind[0]) {
    case 's':
        return d->next != 0 && d->now >= d->next;
    case 'n':
        return d->version > d->used_version &&
               (d->wanted_files == 0 || d->files >= d->used_files + d->wanted_files);
    case 'd':
        return n_bad >= d->k;
    case 'a':
        return d->alert > since;
    default:
        break;
    }
    if (strcmp(kind, "manual") == 0) {
        return d->allowed && d->by;
    }
    if (strcmp(kind, "metric") == 0) {
        return d->has_value && d->value_ms > since && d->n_values >= d->min_values &&
               (d->above ? d->value_10 > d->threshold_10 : d->value_10 < d->threshold_10);
    }
    int64_t last = d->model > started ? d->model : started;
    return d->model != 0 && d->now - last >= d->age;
}

static struct weir_trigger_inputs inputs_of(const struct weir_trigger *trigger,
                                            const struct drawn *d)
{
    return (struct weir_trigger_inputs){.trigger = trigger->text,
                                        .now_ms = d->now * SECOND,
                                        .armed_ms = d->armed * SECOND,
                                        .started_ms = d->started * SECOND,
                                        .by = d->by ? (char *)"ann" : NULL,
                                        .next_ms = d->next * SECOND,
                                        .dataset = (char *)"faces",
                                        .version = d->version,
                                        .n_files = d->files,
                                        .used_version = d->used_version,
                                        .used_files = d->used_files,
                                        .windows = windows_of(d),
                                        .has_value = d->has_value,
                                        .value = (double)d->value_10 / 10,
                                        .value_ms = d->value_ms * SECOND,
                                        .n_values = d->n_values,
                                        .alert = d->alert > 0 ? (char *)"no frames" : NULL,
                                        .alert_ms = d->alert * SECOND,
                                        .model_ms = d->model * SECOND};
}

START_TEST(each_kind_fires_when_a_brute_force_model_says_so)
{
    weir_arena_init(&arena, 0);
    uint64_t seed = 17;
    struct weir_rng rng;
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    const char *kind = weir_triggers.kinds[_i]->name;
    int n_fired = 0, n_kept = 0;
    for (int round = 0; round < 3000; round++) {
        struct drawn d = draw(&rng);
        struct weir_trigger_list list = read_list(document_of(kind, &d));
        const struct weir_trigger *trigger = &list.items[0];
        struct weir_trigger_inputs inputs = inputs_of(trigger, &d);
        struct weir_trigger_verdict told = weir_trigger_decide(trigger, &inputs, &arena), again;
        bool is_early = d.started != 0 && d.started <= d.now && d.now - d.started < d.least;
        bool expected = oracle_wants(kind, &d) && !is_early;
        ck_assert_msg(told.fires == expected, "%s, seed %" PRIu64 ", round %d: %s: %s", kind, seed,
                      round, trigger->text, told.reason);
        ck_assert(told.fires || told.until_ms > inputs.now_ms);
        ck_assert_int_eq(
            weir_trigger_replay(weir_trigger_inputs_text(&inputs, &arena), &arena, &again, NULL),
            WEIR_OK);
        ck_assert(again.fires == told.fires);
        ck_assert_str_eq(again.reason, told.reason);
        n_fired += told.fires;
        n_kept += oracle_wants(kind, &d) && is_early;
        weir_arena_fini(&arena);
        weir_arena_init(&arena, 0);
    }
    ck_assert_int_gt(n_fired, 50);
    ck_assert_int_gt(n_kept, 20);
    weir_arena_fini(&arena);
}

END_TEST

/** Each followed by a time that no row has. */
static const char *const wrong_times[] = {
    "{\"trigger\":{\"kind\":\"model-age\",\"max_age_s\":9},\"now_ms\":9,\"model_ms\":",
    "{\"trigger\":{\"kind\":\"manual\",\"least_interval_s\":9},\"now_ms\":9,\"started_ms\":",
    "{\"trigger\":{\"kind\":\"manual\"},\"now_ms\":",
};

START_TEST(inputs_with_times_that_no_row_has_are_refused)
{
    static const int64_t times_ms[] = {INT64_MAX, INT64_MIN, -1, 253402300800000};
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(times_ms); i++) {
        struct weir_trigger_verdict told;
        struct weir_error err = {0};
        char *text = weir_arena_printf(&arena, "%s%" PRId64 "}", wrong_times[_i], times_ms[i]);
        ck_assert_int_eq(weir_trigger_replay(text, &arena, &told, &err), WEIR_ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, "not a time"));
    }
    weir_arena_fini(&arena);
}

END_TEST

/* ---- the engine: a year of ticks, data, ends and people, beside a model of seconds ----------------- */

#define SCHEDULE_S 600

struct model {
    int64_t now, next, started, n_started, version, files, used_version, used_files, n_fired;
    bool is_running, is_pending;
};

static void model_start(struct model *m)
{
    m->is_running = true;
    m->is_pending = false;
    m->started = m->now;
    m->n_started++;
    m->used_version = m->version;
    m->used_files = m->files;
}

static void model_fire(struct model *m)
{
    m->n_fired++;
    if (m->is_running) {
        m->is_pending = true;
    } else {
        model_start(m);
    }
}

static bool model_is_early(const struct model *m, int64_t least)
{
    return m->started != 0 && m->now < m->started + least;
}

static void model_look_at_data(struct model *m)
{
    if (m->version > m->used_version && m->files >= m->used_files + 5 && !model_is_early(m, 100)) {
        m->used_version = m->version;
        m->used_files = m->files;
        model_fire(m);
    }
}

static void model_tick(struct model *m)
{
    if (m->now >= m->next && !model_is_early(m, 900)) {
        m->next = (m->now / SCHEDULE_S + 1) * SCHEDULE_S;
        model_fire(m);
    }
    model_look_at_data(m);
}

struct engine_test {
    struct weir_ion_state state;
    struct weir_ion_actions actions;
    int64_t n_starts, n_fired;
};

static weir_status step(struct engine_test *test, const struct weir_ion_event *event, int64_t now)
{
    struct weir_error err;
    test->actions = (struct weir_ion_actions){0};
    weir_status status =
        weir_ion_step(&test->state, event, now * SECOND, &arena, &test->actions, &err);
    for (size_t i = 0; i < test->actions.n; i++) {
        const struct weir_ion_action *action = &test->actions.items[i];
        struct weir_trigger_verdict told;
        test->n_starts += action->type == WEIR_ION_ACTION_START_TRAINING;
        if (action->type == WEIR_ION_ACTION_FIRED) {
            test->n_fired++;
            ck_assert_int_eq(weir_trigger_replay(action->firing.inputs, &arena, &told, &err),
                             WEIR_OK);
            ck_assert(told.fires);
            ck_assert_str_eq(told.reason, action->firing.reason);
        }
    }
    return status;
}

START_TEST(the_engine_starts_what_a_model_of_seconds_starts)
{
    weir_arena_init(&arena, 0);
    uint64_t seed = 17;
    struct weir_rng rng;
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    struct engine_test test = {0};
    struct model m = {.now = 6000000, .next = 6000000 + SCHEDULE_S};
    struct weir_ion_event event = applied(
        &arena, "always-update",
        "[{kind: schedule, cron: '0 0/10 * * * ?', least_interval_s: 900},"
        " {kind: new-data, files: 5, least_interval_s: 100}, {kind: manual, least_interval_s: 50}]",
        1);
    weir_ion_state_new("x", &arena, &test.state);
    ck_assert_int_eq(step(&test, &event, m.now), WEIR_OK);
    for (int round = 0; round < 4000; round++) {
        m.now += 1 + below(&rng, 60);
        struct weir_ion_event tick = {.type = WEIR_ION_EVENT_TICK};
        bool is_due = weir_ion_next_tick_ms(&test.state, m.now * SECOND) <= m.now * SECOND;
        struct model before = m;
        model_tick(&m);
        ck_assert_msg(is_due == (m.n_fired != before.n_fired), "seed %" PRIu64 ", round %d", seed,
                      round);
        ck_assert_int_eq(step(&test, &tick, m.now), WEIR_OK);
        int64_t what = below(&rng, 8);
        if (what < 2) {
            m.version++;
            m.files += below(&rng, 5);
            const struct weir_ion_dataset data = {"faces", m.version, "/d", "d1",
                                                  "b1",    m.files,   10,   0};
            event = (struct weir_ion_event){
                .type = WEIR_ION_EVENT_DATASET, .datasets = &data, .n_datasets = 1};
            model_look_at_data(&m);
            ck_assert_int_eq(step(&test, &event, m.now), WEIR_OK);
        } else if (what == 2) {
            event = (struct weir_ion_event){
                .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "t", .actor = "ann"};
            bool is_refused = model_is_early(&m, 50);
            if (!is_refused) {
                model_fire(&m);
            }
            ck_assert_int_eq(step(&test, &event, m.now), is_refused ? WEIR_ERR_CONFLICT : WEIR_OK);
        } else if (what == 3 && m.is_running) {
            event =
                (struct weir_ion_event){.type = WEIR_ION_EVENT_FAILED,
                                        .pipeline = "t",
                                        .training = pipeline_of(&test.state, "t")->runs.training};
            m.is_running = false;
            if (m.is_pending) {
                model_start(&m);
            }
            ck_assert_int_eq(step(&test, &event, m.now), WEIR_OK);
        }
        ck_assert_msg(test.n_starts == m.n_started && test.n_fired == m.n_fired,
                      "seed %" PRIu64 ", round %d: %" PRId64 " starts, model %" PRId64, seed, round,
                      test.n_starts, m.n_started);
    }
    ck_assert_int_gt(m.n_started, 100);
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_was_observed_fires_once_and_not_behind_a_run)
{
    weir_arena_init(&arena, 0);
    struct engine_test test = {0};
    struct weir_ion_event event = applied(
        &arena, "always-update", "[{kind: alert, alert: no_frames, least_interval_s: 0}]", 1);
    weir_ion_state_new("x", &arena, &test.state);
    ck_assert_int_eq(step(&test, &event, 1000), WEIR_OK);
    struct weir_ion_observed seen = {
        "x:t:00", {.alert = (char *)"no frames for 300 s", .alert_ms = 1005 * SECOND}};
    const struct weir_ion_event tick = {
        .type = WEIR_ION_EVENT_TICK, .observed = &seen, .n_observed = 1};
    ck_assert_int_eq(step(&test, &tick, 1010), WEIR_OK);
    ck_assert_int_eq(test.n_starts, 1);
    ck_assert_str_eq(pipeline_of(&test.state, "t")->runs.cause,
                     "alert no_frames: no frames for 300 s");
    seen.inputs.alert_ms = 1012 * SECOND; /* while it runs */
    ck_assert_int_eq(step(&test, &tick, 1013), WEIR_OK);
    ck_assert_int_eq(test.n_fired, 1);
    event =
        (struct weir_ion_event){.type = WEIR_ION_EVENT_FINISHED, .pipeline = "t", .training = 1};
    ck_assert_int_eq(step(&test, &event, 1020), WEIR_OK);
    ck_assert_int_eq(step(&test, &tick, 1021), WEIR_OK); /* raised since the run began */
    ck_assert_int_eq(test.n_starts, 2);
    event.training = 2;
    ck_assert_int_eq(step(&test, &event, 1030), WEIR_OK);
    ck_assert_int_eq(step(&test, &tick, 1031), WEIR_OK); /* the same alert */
    ck_assert_int_eq(test.n_starts, 2);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("trigger", {triggers_keep_the_laws_of_registries, 0},
                     {what_is_wrong_is_named_by_its_place, WEIR_ARRAY_LEN(wrong)},
                     {every_list_has_a_manual_trigger, 0},
                     {inputs_with_times_that_no_row_has_are_refused, WEIR_ARRAY_LEN(wrong_times)},
                     {each_kind_fires_when_a_brute_force_model_says_so, 7},
                     {the_engine_starts_what_a_model_of_seconds_starts, 0},
                     {what_was_observed_fires_once_and_not_behind_a_run, 0})
