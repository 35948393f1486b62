#include "retain/retain.h"

#include "store/store_fixture.h"

#include <string.h>

#define KIND(name) weir_retain_kind_from_text(name)

#define DAY ((int64_t)86400000)

static struct store_fixture fixture;

static void set_up(void)
{
    fixture_make(&fixture, NULL);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

START_TEST(a_limit_is_read_as_people_write_it)
{
    static const struct {
        const char *text;
        int64_t keep_ms, max_bytes; /* -2: as it was */
    } cases[] = {
        {"30d,10GB", 30 * DAY, 10000000000},
        {"10GB,30d", 30 * DAY, 10000000000},
        {"12h", DAY / 2, -2},
        {"90m", 5400000, -2},
        {"0s", 0, -2},
        {"1.5GiB", -2, 1610612736},
        {"512KiB", -2, 524288},
        {"7B", -2, 7},
        {"forever", -1, -2},
        {"unbounded", -2, -1},
        {"forever,unbounded", -1, -1},
        {"default", 30 * DAY, 1200000000},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        struct weir_retain_limit limit = {-2, -2};
        ck_assert_int_eq(weir_retain_limit_parse(cases[i].text, KIND("decisions"), &limit, NULL),
                         WEIR_OK);
        ck_assert_msg(limit.keep_ms == cases[i].keep_ms && limit.max_bytes == cases[i].max_bytes,
                      "%s: %lld %lld", cases[i].text, (long long)limit.keep_ms,
                      (long long)limit.max_bytes);
    }
}

END_TEST

START_TEST(anything_else_is_refused_and_changes_nothing)
{
    static const char *const texts[] = {"",        "30",  "d",    "-1d",    "30 d",
                                        "30d,",    "nan", "10gb", "1e999d", "inf",
                                        "30d;1GB", "+3d", "0x1d", ",30d",   "99999999999999999d"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(texts); i++) {
        struct weir_retain_limit limit = {1, 2};
        ck_assert_msg(weir_retain_limit_parse(texts[i], KIND("logs"), &limit, &fixture.err) ==
                          WEIR_ERR_INVALID,
                      "%s", texts[i]);
        ck_assert_int_eq(limit.keep_ms, 1);
        ck_assert_int_eq(limit.max_bytes, 2);
    }
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "30d"));
}

END_TEST

START_TEST(every_default_can_be_written_and_read_again)
{
    for (int i = 0; i < weir_retain_n(); i++) {
        char text[WEIR_RETAIN_LIMIT_TEXT_BYTES];
        struct weir_retain_limit limit = {-2, -2};
        const struct weir_retain_limit *fallback = &weir_retain_rule(i)->limit;
        weir_retain_limit_text(fallback, text);
        ck_assert_int_eq(weir_retain_limit_parse(text, i, &limit, NULL), WEIR_OK);
        ck_assert_int_eq(limit.keep_ms, fallback->keep_ms);
        ck_assert_int_eq(limit.max_bytes, fallback->max_bytes);
        ck_assert_int_eq(weir_retain_kind_from_text(weir_retain_rule(i)->name), i);
    }
    ck_assert_int_eq(weir_retain_kind_from_text("faces"), -1);
}

END_TEST

/* They are stored in settings, and people and programs know them. */
START_TEST(kinds_keep_their_names_and_order)
{
    static const char *const names[] = {
        "decisions",        "orders",     "events",      "audit",       "accesses",
        "alerts",           "deliveries", "silences",    "allocations", "lent-nodes",
        "health-reports",   "kpis",       "feedback",    "outcomes",    "statistics",
        "policy-decisions", "metrics",    "jobs",        "sweeps",      "attempts",
        "replica-reports",  "actions",    "usage",       "usage-days",  "queue-history",
        "camera-minutes",   "sent-blobs", "checkpoints", "rendezvous",  "parts",
        "results",          "replicas",   "sandboxes",   "services",    "logs",
        "pictures",         "blobs"};
    ck_assert_int_eq(weir_retain_n(), WEIR_ARRAY_LEN(names));
    for (int i = 0; i < weir_retain_n(); i++) {
        ck_assert_str_eq(weir_retain_rule(i)->name, names[i]);
    }
}

END_TEST

/* "Defaults that keep a door with 3 cameras at 10 frames/s under 5 GB": together with the jsonl
 * sink's eight files of 128 MB. */
START_TEST(the_default_bounds_are_below_five_gigabytes_together)
{
    int64_t total = 0;
    for (int i = 0; i < weir_retain_n(); i++) {
        total += WEIR_MAX(weir_retain_rule(i)->limit.max_bytes, (int64_t)0);
    }
    ck_assert_int_le(total, 5000000000 - 1024000000);
}

END_TEST

static weir_status change_logs(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_retain_policy policy;
    (void)context;
    WEIR_TRY(weir_retain_policy_load(txn, &fixture.arena, &policy, err));
    ck_assert_int_eq(policy.limits[KIND("logs")].keep_ms, 30 * DAY);
    policy.limits[KIND("logs")] = (struct weir_retain_limit){3 * DAY, WEIR_RETAIN_ANY};
    return weir_retain_policy_save(txn, &policy, 1, &fixture.arena, err);
}

static weir_status load(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_retain_policy_load(txn, &fixture.arena, context, err);
}

START_TEST(a_changed_policy_is_found_again_and_the_rest_follows_the_defaults)
{
    struct weir_retain_policy policy;
    fixture_write(&fixture, change_logs, NULL);
    fixture_read(&fixture, load, &policy);
    ck_assert_int_eq(policy.limits[KIND("logs")].keep_ms, 3 * DAY);
    ck_assert_int_eq(policy.limits[KIND("logs")].max_bytes, WEIR_RETAIN_ANY);
    ck_assert_mem_eq(&policy.limits[KIND("events")], &weir_retain_rule(KIND("events"))->limit,
                     sizeof(struct weir_retain_limit));
}

END_TEST

WEIR_TEST_MAIN_WITH("rules", set_up, tear_down, a_limit_is_read_as_people_write_it,
                    anything_else_is_refused_and_changes_nothing,
                    every_default_can_be_written_and_read_again, kinds_keep_their_names_and_order,
                    the_default_bounds_are_below_five_gigabytes_together,
                    a_changed_policy_is_found_again_and_the_rest_follows_the_defaults)
