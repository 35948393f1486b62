#include "job/device.h"

#include "job/job.h"
#include "store/event.h"
#include "store/store_fixture.h"
#include "store/table.h"

#include <math.h>
#include <string.h>

static struct store_fixture fixture;

static weir_status populate(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    MUST(weir_node_heartbeat(txn, &(struct weir_node){.name = "n", .cpu_slots = 1}, 1, err));
    return weir_node_heartbeat(txn, &(struct weir_node){.name = "m", .cpu_slots = 1}, 1, err);
}

static void set_up(void)
{
    fixture_make(&fixture, populate);
}

static void tear_down(void)
{
    fixture_fini(&fixture);
}

/** What an agent says: "a b!fan c<a" is a, b which is bad because of its fan, c a slice of a. */
struct said {
    const char *text, *node;
    int64_t now_ms;
    double temperature_c;
    weir_status status;
    bool is_news;
};

static weir_status say(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct said *said = context;
    struct weir_device_report reports[WEIR_DEVICES_MAX + 1];
    size_t n = 0;
    char *rest = weir_arena_strdup(&fixture.arena, said->text), *word;
    while ((word = strsep(&rest, " ")) != NULL && n <= WEIR_DEVICES_MAX) {
        char *bad = strchr(word, '!'), *parent = strchr(word, '<');
        if (bad != NULL) {
            *bad++ = '\0';
        }
        if (parent != NULL) {
            *parent++ = '\0';
        }
        if (word[0] == '\0') {
            continue;
        }
        reports[n++] = (struct weir_device_report){
            .device = {.id = word,
                       .kind = word[0] == 'e'   ? "nic"
                               : parent != NULL ? "mig"
                                                : "gpu",
                       .model = "H100",
                       .memory_bytes = 80,
                       .numa = -1,
                       .state = bad != NULL ? WEIR_DEVICE_BAD : WEIR_DEVICE_OK,
                       .reason = bad,
                       .temperature_c = said->temperature_c,
                       .power_w = NAN,
                       .utilisation_pct = NAN,
                       .memory_used_bytes = WEIR_DEVICE_NOT_TOLD,
                       .ecc_errors = WEIR_DEVICE_NOT_TOLD},
            .parent_id = parent};
    }
    struct weir_error refused;
    said->status = weir_devices_report(txn, said->node != NULL ? said->node : "n", reports, n,
                                       said->now_ms, &fixture.arena, &said->is_news, &refused);
    (void)err;
    return WEIR_OK;
}

static struct said report_at(const char *text, int64_t now_ms, double temperature_c)
{
    struct said said = {.text = text, .now_ms = now_ms, .temperature_c = temperature_c};
    fixture_write(&fixture, say, &said);
    return said;
}

static bool report(const char *text, int64_t now_ms)
{
    struct said said = report_at(text, now_ms, 40);
    ck_assert_int_eq(said.status, WEIR_OK);
    return said.is_news;
}

static char table[1024];

static weir_status print_table(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_device *devices;
    size_t n;
    table[0] = '\0';
    MUST(weir_devices_of_node(txn, context, &fixture.arena, &devices, &n, err));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(table + strlen(table), sizeof table - strlen(table), "%s=%s:%s@%lld",
                       devices[i].name, devices[i].id, devices[i].state,
                       (long long)devices[i].changed_ms);
        if (devices[i].parent >= 0) {
            (void)snprintf(table + strlen(table), sizeof table - strlen(table), "<%lld",
                           (long long)devices[i].parent);
        }
        (void)strncat(table, i + 1 < n ? " " : "", 2);
    }
    return WEIR_OK;
}

static const char *devices(void)
{
    fixture_read(&fixture, print_table, "n");
    return table;
}

static char told[1024];

static weir_status print_events(struct weir_txn *txn, void *context, struct weir_error *err)
{
    void *items;
    size_t n;
    (void)context;
    told[0] = '\0';
    MUST(weir_txn_list(txn, &weir_event_resource, NULL, &fixture.arena, &items, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        const struct weir_event *event = (const struct weir_event *)items + i;
        (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%s %s\n", event->kind,
                       event->message);
    }
    return WEIR_OK;
}

START_TEST(a_device_keeps_its_index_whatever_comes_and_goes)
{
    ck_assert(report("a b c", 10));
    ck_assert_str_eq(devices(), "n/0=a:ok@10 n/1=b:ok@10 n/2=c:ok@10");
    ck_assert(report("d c", 20));
    ck_assert_str_eq(devices(), "n/0=a:gone@20 n/1=b:gone@20 n/2=c:ok@10 n/3=d:ok@20");
    ck_assert(report("c d b", 30));
    ck_assert_str_eq(devices(), "n/0=a:gone@20 n/1=b:ok@30 n/2=c:ok@10 n/3=d:ok@20");
}

END_TEST

START_TEST(what_is_gone_for_a_day_is_forgotten_and_its_index_is_free)
{
    (void)report("a b", 10);
    (void)report("b", 20);
    (void)report("b", 20 + WEIR_DEVICE_GONE_MS - 1);
    ck_assert_str_eq(devices(), "n/0=a:gone@20 n/1=b:ok@10");
    ck_assert(!report("b", 20 + WEIR_DEVICE_GONE_MS));
    ck_assert_str_eq(devices(), "n/1=b:ok@10");
    (void)report("b e", 20 + WEIR_DEVICE_GONE_MS + 1);
    ck_assert_ptr_nonnull(strstr(devices(), "n/0=e:ok"));
}

END_TEST

START_TEST(a_slice_names_the_index_of_its_whole_device)
{
    (void)report("a b", 10);
    (void)report("s<b b a t<nobody", 20);
    ck_assert_str_eq(devices(), "n/0=a:ok@10 n/1=b:ok@10 n/2=s:ok@20<1 n/3=t:ok@20");
}

END_TEST

START_TEST(only_what_concerns_accelerators_is_news)
{
    ck_assert(report("a e0", 10));
    ck_assert(!report("a e0", 20));
    ck_assert_int_eq(report_at("a e0", 30, 95).is_news, false); /* Warmer: stored, and no more. */
    ck_assert(!report("a", 40));
    ck_assert(!report("a e0 e1", 50));
    ck_assert(report("a!fan e0 e1", 60));
    ck_assert(!report("a!heat e0 e1", 70));
    ck_assert(report("a e0 e1", 80));
}

END_TEST

START_TEST(each_change_of_a_state_is_told_in_one_sentence)
{
    (void)report("a b!heat", 10);
    (void)report("b", 20);
    (void)report("a b c", 30);
    (void)report("a b c", 40);
    fixture_read(&fixture, print_events, NULL);
    ck_assert_str_eq(told, "device_bad Device n/1 (H100) is bad: heat\n"
                           "device_ok Device n/1 (H100) is well again.\n"
                           "device_gone Device n/0 (H100) is gone: its node's agent does not see "
                           "it any more: look at the machine and its driver\n"
                           "device_ok Device n/0 (H100) is well again.\n"
                           "device_found Device n/2 (H100) was found.\n");
}

END_TEST

START_TEST(two_of_one_id_and_too_many_are_refused_and_change_nothing)
{
    static char many[8 * (WEIR_DEVICES_MAX + 1)];
    (void)report("a", 10);
    ck_assert_int_eq(report_at("b b", 20, 40).status, WEIR_ERR_INVALID);
    for (int i = 0; i <= WEIR_DEVICES_MAX; i++) {
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), "d%d ", i);
    }
    ck_assert_int_eq(report_at(many, 20, 40).status, WEIR_ERR_INVALID);
    ck_assert_str_eq(devices(), "n/0=a:ok@10");
}

END_TEST

static weir_status count_rows(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_count(txn, &weir_device_resource, NULL, context, err);
}

START_TEST(a_node_that_names_others_each_time_has_no_more_than_its_records)
{
    int64_t n;
    for (int64_t round = 0; round < 5; round++) {
        char many[8 * WEIR_DEVICES_MAX] = "";
        for (int i = 0; i < WEIR_DEVICES_MAX; i++) {
            (void)snprintf(many + strlen(many), sizeof many - strlen(many), "%c%d ",
                           (int)('p' + round), i);
        }
        (void)report(many, 100 + round);
        fixture_read(&fixture, count_rows, &n);
        ck_assert_int_le(n, WEIR_DEVICE_ROWS_MAX);
    }
    ck_assert_int_eq(n, WEIR_DEVICE_ROWS_MAX);
}

END_TEST

START_TEST(nodes_have_devices_of_their_own)
{
    struct said other = {.text = "a", .node = "m", .now_ms = 10, .temperature_c = 1};
    (void)report("a", 10);
    fixture_write(&fixture, say, &other);
    ck_assert_int_eq(other.status, WEIR_OK);
    ck_assert_str_eq(devices(), "n/0=a:ok@10");
    fixture_read(&fixture, print_table, "m");
    ck_assert_str_eq(table, "m/0=a:ok@10");
}

END_TEST

WEIR_TEST_MAIN_WITH("device", set_up, tear_down, a_device_keeps_its_index_whatever_comes_and_goes,
                    what_is_gone_for_a_day_is_forgotten_and_its_index_is_free,
                    a_slice_names_the_index_of_its_whole_device,
                    only_what_concerns_accelerators_is_news,
                    each_change_of_a_state_is_told_in_one_sentence,
                    two_of_one_id_and_too_many_are_refused_and_change_nothing,
                    a_node_that_names_others_each_time_has_no_more_than_its_records,
                    nodes_have_devices_of_their_own)
