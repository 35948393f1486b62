#include "store/table.h"

#include "base/rng.h"
#include "store/store_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/** A record with a field of every type. */
struct weir_thing {
    char *id;
    char *name;
    char *owner;
    int64_t n;
    double x;
    bool is_good;
    int64_t made_ms;
    char *data;
};

// clang-format off
static const struct weir_field thing_fields[] = {
    WEIR_FIELD(weir_thing, id,      TEXT, WEIR_FIELD_KEY, "", "Identifier"),
    WEIR_FIELD(weir_thing, name,    TEXT, 0, "", "Name"),
    WEIR_FIELD(weir_thing, owner,   TEXT, 0, "", "Who has it"),
    WEIR_FIELD(weir_thing, n,       INT,  0, "", "Number"),
    WEIR_FIELD(weir_thing, x,       F64,  0, "", "Amount"),
    WEIR_FIELD(weir_thing, is_good, BOOL, 0, "", "Good"),
    WEIR_FIELD(weir_thing, made_ms, TIME, 0, "ms", "Made"),
    WEIR_FIELD(weir_thing, data,    JSON, 0, "", "Anything"),
};
// clang-format on

static const struct weir_resource thing_resource =
    WEIR_RESOURCE("thing", "things", weir_thing, thing_fields);

static const char sql_things[] =
    "CREATE TABLE things (id TEXT NOT NULL PRIMARY KEY, name TEXT UNIQUE,"
    " owner TEXT REFERENCES things (id), n BIGINT NOT NULL CHECK (n > -100), x DOUBLE PRECISION,"
    " is_good INTEGER NOT NULL, made_ms BIGINT NOT NULL, data TEXT)";

static struct store_fixture fixture;

static weir_status make_table(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, sql_things, WEIR_NO_BINDS, NULL, err);
}

static void set_up(void)
{
    fixture_make(&fixture, make_table);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

static bool is_same_text(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void assert_same(const struct weir_thing *a, const struct weir_thing *b)
{
    ck_assert_str_eq(a->id, b->id);
    ck_assert(is_same_text(a->name, b->name));
    ck_assert(is_same_text(a->owner, b->owner));
    ck_assert(is_same_text(a->data, b->data));
    ck_assert_int_eq(a->n, b->n);
    ck_assert_int_eq(a->made_ms, b->made_ms);
    ck_assert(a->is_good == b->is_good);
    ck_assert((isnan(a->x) && isnan(b->x)) || a->x == b->x);
}

static weir_status round_trip(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_thing in[] = {
        {"a", "first; DROP TABLE things; --", NULL, INT64_MAX, 0.1, true, 1769853600123,
         "{\"k\":1}"},
        {"b", "größe \"quoted\" 'x'", "a", -99, -INFINITY, false, 0, NULL},
        {"c", NULL, "a", 0, NAN, true, INT64_MIN, "[]"},
        {"d", "", NULL, 0, 1e-310, false, 7, "null"},
    };
    struct weir_thing out;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(in); i++) {
        MUST(weir_txn_insert(txn, &thing_resource, &in[i], err));
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(in); i++) {
        MUST(weir_txn_get(txn, &thing_resource, in[i].id, &fixture.arena, &out, err));
        assert_same(&in[i], &out);
        if (in[i].name != NULL) {
            MUST(weir_txn_get_by(txn, &thing_resource, "name", in[i].name, &fixture.arena, &out,
                                 err));
            assert_same(&in[i], &out);
        }
    }
    in[2].name = "third";
    in[2].n = 5;
    in[2].is_good = false;
    MUST(weir_txn_update(txn, &thing_resource, &in[2], WEIR_FIELDS("name", "n"), err));
    MUST(weir_txn_get(txn, &thing_resource, "c", &fixture.arena, &out, err));
    in[2].is_good = true;
    assert_same(&in[2], &out);
    in[3].owner = "c";
    MUST(weir_txn_upsert(txn, &thing_resource, &in[3], err));
    MUST(weir_txn_get(txn, &thing_resource, "d", &fixture.arena, &out, err));
    assert_same(&in[3], &out);
    return WEIR_OK;
}

START_TEST(a_record_comes_back_as_it_was_put)
{
    fixture_write(&fixture, round_trip, NULL);
}

END_TEST

static weir_status refusals(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    struct weir_thing a = {.id = "a", .name = "n"}, b = {.id = "b", .name = "n"}, out;
    MUST(weir_txn_insert(txn, &thing_resource, &a, err));
    ck_assert_int_eq(weir_txn_insert(txn, &thing_resource, &a, err), WEIR_ERR_EXISTS);
    ck_assert_str_eq(err->message, "thing \"a\" exists already (things.name)");
    struct weir_thing namesake = {.id = "a", .name = "m"};
    ck_assert_int_eq(weir_txn_insert(txn, &thing_resource, &namesake, err), WEIR_ERR_EXISTS);
    ck_assert_str_eq(err->message, "thing \"a\" exists already");
    ck_assert_int_eq(weir_txn_insert(txn, &thing_resource, &b, err), WEIR_ERR_EXISTS);
    ck_assert_ptr_nonnull(strstr(err->message, "name"));
    b.name = NULL;
    b.owner = "nobody";
    ck_assert_int_eq(weir_txn_insert(txn, &thing_resource, &b, err), WEIR_ERR_CONFLICT);
    b.owner = "a";
    b.n = -100;
    ck_assert_int_eq(weir_txn_insert(txn, &thing_resource, &b, err), WEIR_ERR_INVALID);
    ck_assert_int_eq(weir_txn_get(txn, &thing_resource, "b", &fixture.arena, &out, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_str_eq(err->message, "there is no thing \"b\"");
    b.n = 0;
    ck_assert_int_eq(weir_txn_update(txn, &thing_resource, &b, WEIR_FIELDS("n"), err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(weir_txn_update(txn, &thing_resource, &a, WEIR_FIELDS("m"), err),
                     WEIR_ERR_INVALID);
    MUST(weir_txn_insert(txn, &thing_resource, &b, err));
    ck_assert_int_eq(weir_txn_delete(txn, &thing_resource, "a", err), WEIR_ERR_CONFLICT);
    ck_assert_str_eq(err->message, "thing \"a\" is still in use");
    MUST(weir_txn_delete(txn, &thing_resource, "b", err));
    MUST(weir_txn_delete(txn, &thing_resource, "a", err));
    ck_assert_int_eq(weir_txn_delete(txn, &thing_resource, "a", err), WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(what_cannot_be_is_refused_with_the_reason_and_the_transaction_goes_on)
{
    fixture_write(&fixture, refusals, NULL);
}

END_TEST

#define N_THINGS 200
static struct weir_thing things[N_THINGS];

static weir_status fill(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_rng *rng = context;
    for (size_t i = 0; i < N_THINGS; i++) {
        things[i] = (struct weir_thing){
            .id = weir_arena_printf(&fixture.arena, "%c-%03" PRIu64 "-%zu", (char)('a' + i % 5),
                                    weir_rng_below(rng, 1000), i),
            .owner = weir_rng_below(rng, 3) == 0 || i == 0
                         ? NULL
                         : things[weir_rng_below(rng, WEIR_MIN(i, (size_t)6))].id,
            .n = (int64_t)weir_rng_below(rng, 20) - 10,
            .x = weir_rng_f64(rng),
            .is_good = weir_rng_below(rng, 2) == 0,
            .made_ms = (int64_t)weir_rng_below(rng, 8),
        };
        MUST(weir_txn_insert(txn, &thing_resource, &things[i], err));
    }
    return WEIR_OK;
}

static bool holds(int order, enum weir_op op)
{
    switch (op) {
    case WEIR_OP_EQ:
        return order == 0;
    case WEIR_OP_NE:
        return order != 0;
    case WEIR_OP_LT:
        return order < 0;
    case WEIR_OP_LE:
        return order <= 0;
    case WEIR_OP_GT:
        return order > 0;
    case WEIR_OP_GE:
        return order >= 0;
    }
    return false;
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/** The oracle: does a thing pass a filter? Absent text passes only IS NULL, as in SQL. */
static bool passes(const struct weir_thing *thing, const struct weir_filter *filter)
{
    if (strcmp(filter->field, "n") == 0) {
        return holds(COMPARE(thing->n, filter->i64), filter->op);
    }
    if (strcmp(filter->field, "x") == 0) {
        return holds(COMPARE(thing->x, filter->f64), filter->op);
    }
    if (strcmp(filter->field, "is_good") == 0) {
        return holds(COMPARE((int64_t)thing->is_good, filter->i64), filter->op);
    }
    if (filter->text == NULL) {
        return (thing->owner == NULL) == (filter->op == WEIR_OP_EQ);
    }
    return thing->owner != NULL && holds(strcmp(thing->owner, filter->text), filter->op);
}

/** What the oracle sorts by; qsort has no context. */
static const struct weir_query *sorting;

static int compare_things(const void *left, const void *right)
{
    const struct weir_thing *a = left, *b = right;
    int order = 0;
    if (sorting->order_by != NULL && strcmp(sorting->order_by, "n") == 0) {
        order = COMPARE(a->n, b->n);
    } else if (sorting->order_by != NULL && strcmp(sorting->order_by, "made_ms") == 0) {
        order = COMPARE(a->made_ms, b->made_ms);
    } else if (sorting->order_by != NULL && strcmp(sorting->order_by, "owner") == 0) {
        order = strcmp(a->owner != NULL ? a->owner : "", b->owner != NULL ? b->owner : "");
    }
    if (order == 0) {
        order = strcmp(a->id, b->id);
    }
    return sorting->is_descending ? -order : order;
}

static void random_query(struct weir_rng *rng, struct weir_filter filters[3],
                         struct weir_query *query)
{
    static const char *const orders[] = {NULL, "id", "n", "made_ms", "owner"};
    static const char *const fields[] = {"n", "x", "is_good", "owner"};
    *query = (struct weir_query){.filters = filters,
                                 .n_filters = weir_rng_below(rng, 4),
                                 .order_by = orders[weir_rng_below(rng, 5)],
                                 .is_descending = weir_rng_below(rng, 2) == 0,
                                 .limit = 1 + weir_rng_below(rng, 60)};
    for (size_t i = 0; i < query->n_filters; i++) {
        filters[i] = (struct weir_filter){
            .field = fields[weir_rng_below(rng, 4)],
            .op = (enum weir_op)weir_rng_below(rng, 6),
            .text = weir_rng_below(rng, 3) == 0 ? NULL : things[weir_rng_below(rng, 6)].id,
            .i64 = (int64_t)weir_rng_below(rng, 4) - 1,
            .f64 = weir_rng_f64(rng),
        };
        if (filters[i].text == NULL) {
            filters[i].op = weir_rng_below(rng, 2) == 0 ? WEIR_OP_EQ : WEIR_OP_NE;
        }
    }
}

static weir_status list_as_the_oracle(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_rng *rng = context;
    for (int i_trial = 0; i_trial < 300; i_trial++) {
        struct weir_filter filters[3];
        struct weir_query query;
        random_query(rng, filters, &query);
        struct weir_thing expected[N_THINGS];
        size_t n_expected = 0;
        for (size_t i = 0; i < N_THINGS; i++) {
            bool is_in = true;
            for (size_t k = 0; k < query.n_filters; k++) {
                is_in = is_in && passes(&things[i], &filters[k]);
            }
            if (is_in) {
                expected[n_expected++] = things[i];
            }
        }
        sorting = &query;
        qsort(expected, n_expected, sizeof(expected[0]), compare_things);
        int64_t n_counted;
        MUST(weir_txn_count(txn, &thing_resource, &query, &n_counted, err));
        ck_assert_int_eq(n_counted, (int64_t)n_expected);
        size_t n_seen = 0;
        char *next = NULL;
        do {
            void *items;
            size_t n;
            query.cursor = next;
            MUST(weir_txn_list(txn, &thing_resource, &query, &fixture.arena, &items, &n, &next,
                               err));
            ck_assert_uint_eq(n, WEIR_MIN(query.limit, n_expected - n_seen));
            for (size_t i = 0; i < n; i++) {
                assert_same(&((struct weir_thing *)items)[i], &expected[n_seen + i]);
            }
            n_seen += n;
        } while (next != NULL);
        ck_assert_uint_eq(n_seen, n_expected);
    }
    return WEIR_OK;
}

START_TEST(pages_of_random_queries_equal_a_sorted_array)
{
    uint64_t seed = 20260131;
    printf("seed %" PRIu64 "\n", seed);
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    fixture_write(&fixture, fill, &rng);
    fixture_read(&fixture, list_as_the_oracle, &rng);
}

END_TEST

static weir_status bad_queries(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    void *items;
    size_t n;
    struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_INT("nn", EQ, 1))};
    ck_assert_int_eq(
        weir_txn_list(txn, &thing_resource, &query, &fixture.arena, &items, &n, NULL, err),
        WEIR_ERR_INVALID);
    query = (struct weir_query){.order_by = "x"};
    ck_assert_int_eq(
        weir_txn_list(txn, &thing_resource, &query, &fixture.arena, &items, &n, NULL, err),
        WEIR_ERR_INVALID);
    query = (struct weir_query){.order_by = "n", .cursor = "elephant"};
    ck_assert_int_eq(
        weir_txn_list(txn, &thing_resource, &query, &fixture.arena, &items, &n, NULL, err),
        WEIR_ERR_INVALID);
    query = (struct weir_query){.order_by = "n", .cursor = "elephant~a"};
    ck_assert_int_eq(
        weir_txn_list(txn, &thing_resource, &query, &fixture.arena, &items, &n, NULL, err),
        WEIR_ERR_INVALID);
    return WEIR_OK;
}

START_TEST(queries_that_make_no_sense_are_refused)
{
    fixture_read(&fixture, bad_queries, NULL);
}

END_TEST

/* Rows of 1000 bytes, which no arena of this test can hold all. */
static weir_status fill_with_text(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    char data[1001] = "\"";
    memset(data + 1, 'x', sizeof data - 3);
    data[sizeof data - 2] = '"';
    for (size_t i = 0; i < N_THINGS; i++) {
        const struct weir_thing thing = {.id = weir_arena_printf(&fixture.arena, "%03zu", i),
                                         .data = data};
        MUST(weir_txn_insert(txn, &thing_resource, &thing, err));
    }
    return WEIR_OK;
}

static weir_status read_in_pages(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    size_t n_seen = 0, n_pages = 0, n;
    char *next = NULL, cursor[64];
    void *items;
    struct weir_arena arena;
    struct weir_query query = {.limit = N_THINGS, .max_bytes = 20000};
    do {
        weir_arena_init(&arena, (size_t)128 << 10);
        MUST(weir_txn_list(txn, &thing_resource, &query, &arena, &items, &n, &next, err));
        ck_assert_uint_ge(n, 1);
        ck_assert_uint_lt(n, 20000 / 1000 + 1);
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_eq((int)strtol(((struct weir_thing *)items)[i].id, NULL, 10),
                             (int)n_seen++);
        }
        if (next != NULL) {
            (void)snprintf(cursor, sizeof cursor, "%s", next);
            query.cursor = cursor;
        }
        n_pages++;
        weir_arena_fini(&arena);
    } while (next != NULL);
    ck_assert_uint_eq(n_seen, N_THINGS);
    ck_assert_uint_gt(n_pages, 5);
    query = (struct weir_query){.limit = N_THINGS}; /* without a bound of its own: the arena's */
    weir_arena_init(&arena, (size_t)64 << 10);
    ck_assert_int_eq(weir_txn_list(txn, &thing_resource, &query, &arena, &items, &n, NULL, err),
                     WEIR_ERR_LIMIT);
    weir_arena_fini(&arena);
    return WEIR_OK;
}

START_TEST(a_page_ends_at_its_bytes_and_a_full_arena_is_an_error)
{
    fixture_write(&fixture, fill_with_text, NULL);
    fixture_read(&fixture, read_in_pages, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("table", set_up, tear_down, a_record_comes_back_as_it_was_put,
                    a_page_ends_at_its_bytes_and_a_full_arena_is_an_error,
                    what_cannot_be_is_refused_with_the_reason_and_the_transaction_goes_on,
                    pages_of_random_queries_equal_a_sorted_array,
                    queries_that_make_no_sense_are_refused)
