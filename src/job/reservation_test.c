/* Reservations: which nodes are chosen, against a sort of those that are free; and what is refused, and why. */
#include "job/reservation.h"

#include "base/rng.h"
#include "job/job.h"
#include "store/identity.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <stdlib.h>
#include <string.h>

#define NOW_MS  INT64_C(1700000000000)
#define HOUR_MS INT64_C(3600000)
#define N_NODES 12

static struct store_fixture fixture;
static struct weir_error error;

struct making {
    struct weir_reservation *reservation;
    int64_t now_ms;
    weir_status status;
};

/* A refusal is the test's to look at: the transaction itself goes on. */
static weir_status make_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct making *making = context;
    (void)err;
    making->status =
        weir_reservation_make(txn, making->reservation, making->now_ms, &fixture.arena, &error);
    return WEIR_OK;
}

static weir_status make_at(struct weir_reservation *reservation, int64_t now_ms)
{
    struct making making = {reservation, now_ms, WEIR_OK};
    fixture_write(&fixture, make_in, &making);
    return making.status;
}

static weir_status make(struct weir_reservation *reservation)
{
    return make_at(reservation, NOW_MS);
}

static int64_t gpus_of[N_NODES];

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 0; i < N_NODES; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%02d", i);
        const struct weir_node node = {
            .name = name, .cpu_slots = 4 + i, .n_accelerators = gpus_of[i]};
        MUST(weir_node_heartbeat(txn, &node, NOW_MS, err));
    }
    return weir_txn_insert(txn, &weir_project_resource, &(struct weir_project){.name = "p"}, err);
}

static int down(const void *left, const void *right)
{
    int64_t l = *(const int64_t *)left, r = *(const int64_t *)right;
    return (l < r) - (l > r);
}

/* The fewest nodes of those not marked that have so many together; 0: all have fewer. */
static size_t fewest(const bool *is_taken, int64_t need)
{
    int64_t sorted[N_NODES], sum = 0;
    size_t n = 0;
    for (int i = 0; i < N_NODES; i++) {
        sorted[n] = gpus_of[i];
        n += !is_taken[i];
    }
    qsort(sorted, n, sizeof *sorted, down);
    for (size_t k = 0; k < n; k++) {
        sum += sorted[k];
        if (sum >= need) {
            return k + 1;
        }
    }
    return 0;
}

START_TEST(the_fewest_free_nodes_are_chosen_that_have_enough)
{
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i, 3);
    for (int i = 0; i < N_NODES; i++) {
        gpus_of[i] = (int64_t)weir_rng_below(&rng, 9);
    }
    fixture_make(&fixture, populate);

    struct {
        int64_t from_ms, until_ms;
        bool has[N_NODES];
    } made[8];

    size_t n_made = 0;
    for (int k = 0; k < 8; k++) {
        bool is_taken[N_NODES] = {0};
        int64_t from_ms = NOW_MS + HOUR_MS * (int64_t)weir_rng_below(&rng, 4);
        struct weir_reservation wanted = {
            .name = weir_arena_printf(&fixture.arena, "r%d", k),
            .project = "p",
            .gpus = 1 + (int64_t)weir_rng_below(&rng, 24),
            .from_ms = from_ms,
            .until_ms = from_ms + HOUR_MS * (1 + (int64_t)weir_rng_below(&rng, 3))};
        for (size_t m = 0; m < n_made; m++) {
            bool overlaps = made[m].from_ms < wanted.until_ms && made[m].until_ms > from_ms;
            for (int i = 0; i < N_NODES; i++) {
                is_taken[i] = is_taken[i] || (overlaps && made[m].has[i]);
            }
        }
        size_t n = fewest(is_taken, wanted.gpus);
        weir_status status = make(&wanted);
        ck_assert_msg(status == (n > 0 ? WEIR_OK : WEIR_ERR_CONFLICT), "seed %d, %d: %s", _i, k,
                      error.message);
        if (status != WEIR_OK) {
            continue;
        }
        json_t *names = json_loads(wanted.nodes, 0, NULL);
        int64_t sum = 0;
        ck_assert_msg(json_array_size(names) == n, "seed %d, %d: %s", _i, k, wanted.nodes);
        made[n_made].from_ms = from_ms;
        made[n_made].until_ms = wanted.until_ms;
        memset(made[n_made].has, 0, sizeof made[n_made].has);
        for (size_t i = 0; i < json_array_size(names); i++) {
            long at = strtol(json_string_value(json_array_get(names, i)) + 1, NULL, 10);
            ck_assert_msg(!is_taken[at], "seed %d, %d: node %ld is another's", _i, k, at);
            made[n_made].has[at] = true;
            sum += gpus_of[at];
        }
        ck_assert_int_ge(sum, wanted.gpus);
        n_made++;
        json_decref(names);
    }
    fixture_fini(&fixture);
}

END_TEST

START_TEST(what_cannot_be_reserved_is_refused_and_why)
{
    const struct weir_reservation good = {
        .name = "r", .project = "p", .nodes = "[\"n00\"]", .until_ms = NOW_MS + HOUR_MS};
    struct weir_reservation r;
    fixture_make(&fixture, populate);
#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        r = good;                                                                                  \
        __VA_ARGS__;                                                                               \
        ck_assert_int_eq(make(&r), WEIR_ERR_##status);                                             \
        ck_assert_msg(strstr(error.message, text) != NULL, "%s", error.message);                   \
    } while (0)
    REFUSED(INVALID, "for whom", r.project = NULL);
    REFUSED(INVALID, "for whom", r.queue = "q");
    REFUSED(NOT_FOUND, "", r.project = "none");
    REFUSED(NOT_FOUND, "", r.project = NULL; r.queue = "none");
    REFUSED(INVALID, "say what", r.nodes = NULL);
    REFUSED(INVALID, "say what", r.gpus = 1);
    REFUSED(INVALID, "list of names", r.nodes = "[]");
    REFUSED(NOT_FOUND, "\"n99\"", r.nodes = "[\"n99\"]");
    REFUSED(INVALID, "$.until_ms", r.until_ms = NOW_MS);
    REFUSED(INVALID, "$.until_ms", r.until_ms = NOW_MS + WEIR_RESERVATION_AHEAD_MS + 1);
    REFUSED(CONFLICT, "CPUs too few", r.nodes = NULL; r.cpus = 1000);
    r = good;
    ck_assert_int_eq(make(&r), WEIR_OK);
    ck_assert_int_eq(r.from_ms, NOW_MS);
    REFUSED(CONFLICT, "reservation r has node n00 then", r.name = "s");
    r = good;
    r.name = "s";
    r.from_ms = NOW_MS + HOUR_MS; /* When the other is over. */
    r.until_ms = NOW_MS + 2 * HOUR_MS;
    ck_assert_int_eq(make(&r), WEIR_OK);
    r = good;
    r.until_ms = 2 * WEIR_RESERVATION_KEPT_MS + NOW_MS;
    ck_assert_int_eq(make_at(&r, NOW_MS + WEIR_RESERVATION_KEPT_MS + HOUR_MS + 1), WEIR_OK);
    fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("reservation", {the_fewest_free_nodes_are_chosen_that_have_enough, 12},
                     {what_cannot_be_reserved_is_refused_and_why, 0})
