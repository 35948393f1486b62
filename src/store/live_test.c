/* Live values against a model: whatever is put, dropped and moved, every statement on every connection sees what is live,
 * and what its column holds where nothing is. */
#include "store/live.h"

#include "base/rng.h"
#include "store/row_scope.h"
#include "store/store_fixture.h"

#include <math.h>
#include <string.h>

#define N_STEPS WEIR_TEST_TIMES(1500, 300)
#define N_NODES 6
#define N_KEYS  (N_NODES + 2 * N_NODES) /* nodes, and two devices of each */
#define STORED  7.0

static struct store_fixture fixture;
static struct weir_rng rng;

struct model {
    char key[16];
    double values[WEIR_LIVE_VALUES_MAX];
    unsigned mask;
};

static struct model models[N_KEYS];

static enum weir_live_noun noun_of(int i)
{
    return i < N_NODES ? WEIR_LIVE_NODES : WEIR_LIVE_DEVICES;
}

/* "n1" and "n11": one begins with the other. */
static void name_keys(void)
{
    for (int i = 0; i < N_NODES; i++) {
        (void)snprintf(models[i].key, sizeof models[i].key, "n%.*s", 1 + i, "111111");
        for (int k = 0; k < 2; k++) {
            struct model *device = &models[N_NODES + 2 * i + k];
            (void)snprintf(device->key, sizeof device->key, "n%.*s/g%d", 1 + i, "111111", k);
        }
    }
}

struct looking {
    int i, value;
    double seen; /* Out; NaN: NULL. */
    bool is_integer;
};

static weir_status look_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    static const char *const sql[2][WEIR_LIVE_VALUES_MAX] = {
        {"SELECT weir_live('nodes.last_seen_ms', :key, 7)",
         "SELECT weir_live('nodes.disk_free_bytes', :key, 7)"},
        {"SELECT weir_live('devices.temperature_c', :key, 7)",
         "SELECT weir_live('devices.power_w', :key, 7)",
         "SELECT weir_live('devices.utilisation_pct', :key, 7)",
         "SELECT weir_live('devices.memory_used_bytes', :key, 7)",
         "SELECT weir_live('devices.ecc_errors', :key, 7)"}};
    struct looking *looking = context;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *row = NULL;
    bool has_row;
    MUST(weir_stmt_open(txn, sql[noun_of(looking->i)][looking->value],
                        WEIR_BINDS(WEIR_BIND_TEXT("key", models[looking->i].key)), &row, err));
    MUST(weir_stmt_step(row, &has_row, err));
    looking->seen = weir_stmt_f64(row, 0);
    return WEIR_OK;
}

static void look(int step)
{
    static const char *const projects[] = {"default"};
    const struct weir_row_scope scope = {.projects = projects, .n_projects = 1};
    struct looking looking = {.i = (int)weir_rng_below(&rng, N_KEYS)};
    const struct model *model = &models[looking.i];
    looking.value = (int)weir_rng_below(&rng, looking.i < N_NODES ? 2 : WEIR_LIVE_VALUES_MAX);
    double expected =
        (model->mask >> looking.value & 1) != 0 ? model->values[looking.value] : STORED;
    uint64_t where = weir_rng_below(&rng, 3);
    weir_status status =
        where == 0   ? weir_store_write(fixture.store, look_in, &looking, NULL)
        : where == 1 ? weir_store_read(fixture.store, look_in, &looking, NULL)
                     : weir_store_read_scoped(fixture.store, &scope, look_in, &looking, NULL);
    ck_assert_int_eq(status, WEIR_OK);
    ck_assert_msg(looking.seen == expected || (isnan(looking.seen) && isnan(expected)),
                  "step %d: %s %d is %g, not %g", step, model->key, looking.value, looking.seen,
                  expected);
}

static void put(int i)
{
    double values[WEIR_LIVE_VALUES_MAX];
    unsigned mask = (unsigned)weir_rng_below(&rng, i < N_NODES ? 4 : 32);
    for (int k = 0; k < WEIR_LIVE_VALUES_MAX; k++) {
        values[k] = i >= N_NODES && weir_rng_below(&rng, 4) == 0
                        ? NAN
                        : (double)weir_rng_below(&rng, 1000000);
        models[i].values[k] = (mask >> k & 1) != 0 ? values[k] : models[i].values[k];
    }
    models[i].mask |= mask;
    weir_live_put(fixture.store, noun_of(i), models[i].key, values, mask);
}

static void drop(int node, enum weir_live_noun noun)
{
    weir_live_drop(fixture.store, noun, models[node].key);
    for (int k = 0; k < 2 && noun == WEIR_LIVE_DEVICES; k++) {
        models[N_NODES + 2 * node + k].mask = 0;
    }
    models[node].mask = noun == WEIR_LIVE_NODES ? 0 : models[node].mask;
}

static void move(int64_t by_ms)
{
    weir_live_move(fixture.store, by_ms);
    for (int i = 0; i < N_NODES; i++) {
        models[i].values[WEIR_LIVE_LAST_SEEN] += (double)by_ms;
    }
}

static void check_list(void)
{
    struct weir_live_row *rows;
    size_t n, n_live = 0;
    weir_live_list(fixture.store, WEIR_LIVE_NODES, &fixture.arena, &rows, &n);
    for (int i = 0; i < N_NODES; i++) {
        n_live += models[i].mask != 0;
        for (size_t k = 0; k < n; k++) {
            bool is_it = strcmp(rows[k].key, models[i].key) == 0;
            ck_assert(!is_it || rows[k].mask == models[i].mask);
        }
    }
    ck_assert_uint_ge(n, n_live); /* a row of which nothing was put is one too */
}

START_TEST(statements_see_what_is_live)
{
    fixture_make(&fixture, NULL);
    name_keys();
    weir_rng_init(&rng, 1, 0);
    for (int step = 0; step < N_STEPS; step++) {
        int i = (int)weir_rng_below(&rng, N_KEYS);
        switch (weir_rng_below(&rng, 8)) {
        case 0:
            drop(i % N_NODES, step % 2 == 0 ? WEIR_LIVE_NODES : WEIR_LIVE_DEVICES);
            break;
        case 1:
            move((int64_t)weir_rng_below(&rng, 2000) - 1000);
            break;
        case 2:
            check_list();
            break;
        default:
            put(i);
        }
        look(step);
    }
    fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_MAIN("live", statements_see_what_is_live)
