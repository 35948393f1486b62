/**
 * Heartbeats that repeat what the one before has said write nothing. Law: two nodes say the same again and again, and the
 * server forgets what one of them has said, so that each of its heartbeats is written; whatever happens to both, people
 * see no difference between them. And: who says the same but for readings causes no commit.
 */
#include "api/caller_fixture.h"
#include "api/cluster/beats.h"
#include "api/core/call.h"

#include "base/rng.h"
#include "base/test_main.h"
#include "job/heard.h"
#include "store/live.h"
#include "store/stmt.h"

#define N_HISTORIES WEIR_TEST_TIMES(4, 2)
#define N_STEPS     60

static struct weir_rng rng;
static char bearers[2][BEARER_BYTES];
static const char *const names[2] = {"a", "b"};

/* What an agent would say; the text before the readings, and with others each time. */
struct said {
    int n_devices, first_device, bad_device, slots, version;
    bool is_unhealthy, is_idle, has_images;
    char attempts[128];
};

static int below(int n)
{
    return (int)weir_rng_below(&rng, (uint64_t)n);
}

static char *put_text(struct weir_arena *arena, const char *name, const struct said *said,
                      uint64_t seed)
{
    struct weir_rng readings;
    char *devices = "";
    weir_rng_init(&readings, seed, 1); /* both read the same */
    for (int i = said->first_device; i < said->first_device + said->n_devices; i++) {
        int pct = said->is_idle ? (int)weir_rng_below(&readings, 5)
                                : 5 + (int)weir_rng_below(&readings, 90);
        devices = weir_arena_printf(
            arena,
            "%s%s{\"id\":\"g%d\",\"kind\":\"gpu\",\"model\":\"m\",\"memory_bytes\":1000,"
            "\"state\":\"%s\",\"temperature_c\":%d,\"power_w\":%d.5,\"utilisation_pct\":%d,"
            "\"memory_used_bytes\":%d,\"ecc_errors\":%d}",
            devices, *devices != '\0' ? "," : "", i, i == said->bad_device ? "bad" : "ok",
            (int)weir_rng_below(&readings, 90), (int)weir_rng_below(&readings, 700), pct,
            (int)weir_rng_below(&readings, 1000), (int)weir_rng_below(&readings, 3));
    }
    return weir_arena_printf(
        arena,
        "PUT " API "/nodes/%s\nAuthorization: %s\n\n{\"cpu_slots\":%d,\"agent_version\":\"%d\","
        "\"disk_bytes\":1000,\"disk_free_bytes\":%d,\"time_ms\":%lld,\"unhealthy\":\"%s\","
        "\"inventory\":{\"isolation\":{\"images\":\"%s\"}},\"devices\":[%s],\"attempts\":[%s]}",
        name, bearers[name[0] - 'a'], said->slots, said->version,
        (int)weir_rng_below(&readings, 1000), (long long)callers.now_ms,
        said->is_unhealthy ? "its disk is full" : "", said->has_images ? "crun" : "none", devices,
        said->attempts);
}

/* @return Whether it was committed. */
static bool beat(const char *name, const struct said *said, uint64_t seed)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *text = put_text(&arena, name, said, seed);
    uint64_t before = weir_store_change(callers.fixture.store);
    EXPECT_STATUS(204, ask_bytes(text, strlen(text)));
    weir_arena_fini(&arena);
    return weir_store_change(callers.fixture.store) != before;
}

/* All that people see of a node, under one name. */
static char *see(const char *name, struct weir_arena *arena)
{
    size_t i;
    const json_t *device;
    EXPECT(200, "GET " API "/nodes/%s", name);
    json_array_foreach(said("devices"), i, device)
    {
        bool is_gone =
            strcmp(json_string_value(json_object_get(device, "state")), WEIR_DEVICE_GONE) == 0;
        ck_assert(is_gone == json_is_null(json_object_get(device, "temperature_c")));
    }
    char *text = json_dumps(callers.body, JSON_SORT_KEYS | JSON_INDENT(1));
    char *out = weir_arena_strdup(arena, text);
    free(text);
    const char *of_b = "\"b\"", *of_device = "\"b/";
    for (char *at = out; (at = strstr(at, of_b)) != NULL;) {
        at[1] = 'a';
    }
    for (char *at = out; (at = strstr(at, of_device)) != NULL;) {
        at[1] = 'a';
    }
    return out;
}

static void compare(int seed, int step)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *a = see("a", &arena), *b = see("b", &arena);
    ck_assert_msg(strcmp(a, b) == 0, "seed %d, step %d: %s\nwritten each time: %s", seed, step, a,
                  b);
    weir_arena_fini(&arena);
}

static void say_something_new(struct said *said)
{
    switch (below(7)) {
    case 0:
        said->n_devices = below(4);
        break;
    case 1:
        said->first_device = below(3);
        break;
    case 2:
        said->bad_device = below(4);
        break;
    case 3:
        said->slots = 1 + below(3);
        break;
    case 4:
        said->is_unhealthy = !said->is_unhealthy;
        break;
    case 5:
        said->is_idle = !said->is_idle;
        break;
    default:
        said->version++;
        said->has_images = !said->has_images;
    }
}

static weir_status leave_device(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql_left[] =
        "INSERT INTO task_devices (task, attempt, node, idx, milli, memory_bytes, is_left)"
        " VALUES (:task, 1, :node, 0, 1000, 0, 1) ON CONFLICT DO NOTHING";
    const char *node = context;
    return weir_txn_exec(txn, sql_left,
                         WEIR_BINDS(WEIR_BIND_TEXT("task", *node == 'a' ? "ta" : "tb"),
                                    WEIR_BIND_TEXT("node", node)),
                         NULL, err);
}

struct counting {
    const char *node;
    int64_t n;
};

static weir_status count_left(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char sql[] = "SELECT count(*) FROM task_devices WHERE node = :node";
    struct counting *counting = context;
    return weir_txn_query_int(txn, sql, WEIR_BINDS(WEIR_BIND_TEXT("node", counting->node)), -1,
                              &counting->n, err);
}

/* Devices of attempts that are over and not settled. */
static int64_t n_left(const char *node)
{
    struct weir_error err;
    struct counting counting = {.node = node};
    must(weir_store_read(callers.fixture.store, count_left, &counting, &err), &err);
    return counting.n;
}

/* What others do to both. */
static void something_happens(void)
{
    struct weir_error err;
    int deed = below(5);
    for (int i = 0; i < 2; i++) {
        if (deed == 0) {
            EXPECT(200, "PATCH " API "/nodes/%s\n\n{\"labels\":{\"zone\":\"z%d\"}}", names[i], 1);
        } else if (deed == 1) {
            EXPECT(200, "PATCH " API "/nodes/%s\n\n{\"is_draining\":true}", names[i]);
        } else if (deed == 2) {
            EXPECT(200, "PATCH " API "/nodes/%s\n\n{\"is_draining\":false}", names[i]);
        } else if (deed == 3) {
            must(weir_store_write(callers.fixture.store, leave_device, (void *)names[i], &err),
                 &err);
        }
    }
    callers.now_ms += deed == 4 ? below(40000) : 0;
}

static void set_up(void)
{
    callers_open();
    callers.now_ms = 1800000000000;
    for (int i = 0; i < 2; i++) {
        char id[64], task[64], more[32];
        (void)snprintf(more, sizeof more, ",\"node\":\"%s\"", names[i]);
        make_caller(i == 0 ? "agent-a" : "agent-b", "agent", more, bearers[i]);
        EXPECT_STATUS(204,
                      ask_as(bearers[i], "PUT " API "/nodes/%s\n\n{\"cpu_slots\":1}", names[i]));
        (void)snprintf(id, sizeof id, "j%s", names[i]);
        (void)snprintf(task, sizeof task, "t%s", names[i]);
        place_job(
            &(struct placed_job){.id = id, .task = task, .kind = "command", .node = names[i]});
    }
}

START_TEST(heartbeats_that_are_not_written_are_seen_as_those_that_are)
{
    struct said said = {.n_devices = 2, .bad_device = -1, .slots = 2};
    int n_quiet = 0;
    set_up();
    weir_rng_init(&rng, (uint64_t)_i, 0);
    for (int step = 0; step < N_STEPS; step++) {
        uint64_t seed = weir_rng_u64(&rng);
        if (below(4) == 0) {
            say_something_new(&said);
        }
        if (below(4) == 0) {
            something_happens();
        }
        callers.now_ms += below(6000);
        n_quiet += !beat("a", &said, seed);
        beats_forget(callers.fixture.api->beats, "b");
        ck_assert(beat("b", &said, seed));
        compare(_i, step);
        ck_assert_int_eq(n_left("a"), n_left("b"));
    }
    ck_assert_int_gt(n_quiet, N_STEPS / 4);
    callers_close();
}

END_TEST

START_TEST(who_says_the_same_but_for_readings_writes_nothing)
{
    struct said said = {.n_devices = 3, .bad_device = -1, .slots = 2};
    set_up();
    weir_rng_init(&rng, 1, 0);
    ck_assert(beat("a", &said, 0));
    for (uint64_t i = 1; i < 100; i++) {
        callers.now_ms += 5000;
        ck_assert(!beat("a", &said, i));
    }
    said.is_idle = true; /* from when on it computes nothing is news */
    ck_assert(beat("a", &said, 0));
    ck_assert(!beat("a", &said, 1));
    callers.now_ms += 60000; /* that it was silent too */
    ck_assert(beat("a", &said, 2));
    callers_close();
}

END_TEST

static weir_status keep(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_heard_keep(txn, callers.fixture.store, err);
}

static weir_status restore(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_heard_restore(txn, err);
}

START_TEST(when_a_node_was_heard_of_outlives_the_server)
{
    struct said said = {.slots = 2};
    struct weir_error err;
    set_up();
    (void)beat("a", &said, 0);
    callers.now_ms += 5000;
    ck_assert(!beat("a", &said, 1));
    must(weir_store_write(callers.fixture.store, keep, NULL, &err), &err);
    EXPECT(200, "GET " API "/nodes/a");
    char *heard = weir_xstrdup(said_text("last_seen_ms"));
    weir_live_drop(callers.fixture.store, WEIR_LIVE_NODES, "a"); /* as when it is started anew */
    EXPECT(200, "GET " API "/nodes/a");
    ck_assert_str_ne(said_text("last_seen_ms"), heard);
    must(weir_store_write(callers.fixture.store, restore, NULL, &err), &err);
    EXPECT(200, "GET " API "/nodes/a");
    ck_assert_str_eq(said_text("last_seen_ms"), heard);
    free(heard);
    callers_close();
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("heartbeat");
    TCase *tcase = tcase_create("heartbeat");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, heartbeats_that_are_not_written_are_seen_as_those_that_are, 0,
                        N_HISTORIES);
    tcase_add_test(tcase, who_says_the_same_but_for_readings_writes_nothing);
    tcase_add_test(tcase, when_a_node_was_heard_of_outlives_the_server);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
