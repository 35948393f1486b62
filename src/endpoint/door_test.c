#include "endpoint/door.h"

#include "base/kind_laws.h"
#include "base/test_main.h"
#include "endpoint/broker.h"

static struct weir_arena arena;
static struct weir_error err;
static struct weir_door doors[WEIR_DOORS_MAX];
static size_t n_doors;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static weir_status read_doors(const char *text, int64_t n_replicas)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(json);
    weir_status status =
        weir_doors_read(json, "$.pipelines[0]", n_replicas, &arena, doors, &n_doors, &err);
    json_decref(json);
    return status;
}

START_TEST(doors_keep_the_laws_of_registries)
{
    kind_laws_check(&weir_doors);
}

END_TEST

#define BY "\"by\": {\"kind\": \"webhook\", \"url\": \"http://c/\"}"

START_TEST(a_door_is_read_with_what_it_leaves_out)
{
    ck_assert_int_eq(read_doors("[{\"name\": \"door-1\", " BY "}]", 3), WEIR_OK);
    ck_assert_uint_eq(n_doors, 1);
    ck_assert_uint_eq(doors[0].n_cameras, 1);
    ck_assert_str_eq(doors[0].cameras[0], "door-1");
    ck_assert_str_eq(doors[0].verb, "open");
    ck_assert_int_eq(doors[0].valid_ms, 3000);
    ck_assert_str_eq(doors[0].time_zone, "UTC");
    ck_assert_uint_eq(doors[0].n_rules + doors[0].n_interlock + doors[0].n_hold_open, 0);
    ck_assert_int_eq(read_doors("null", 1), WEIR_OK);
    ck_assert_uint_eq(n_doors, 0);
}

END_TEST

START_TEST(hours_and_people_are_read)
{
    ck_assert_int_eq(
        read_doors(
            "[{\"name\": \"a\", \"cameras\": [\"x\", \"y\"], " BY ", \"schedule\": ["
            "{\"list\": \"allow\", \"days\": [\"mon\", \"sun\"], \"from\": \"07:30\", "
            "\"until\": \"24:00\"}, {\"people\": [\"ada\"]}], \"hold_open\": [{\"from\": "
            "\"22:00\", \"until\": \"06:00\"}], \"interlock\": [\"b\"]}, {\"name\": \"b\", " BY
            "}]",
            1),
        WEIR_OK);
    ck_assert_uint_eq(doors[0].n_rules, 2);
    ck_assert(doors[0].rules[0].is_of_list);
    ck_assert_uint_eq(doors[0].rules[0].hours.days, 0x41);
    ck_assert_int_eq(doors[0].rules[0].hours.from_min, 450);
    ck_assert_int_eq(doors[0].rules[0].hours.until_min, 1440);
    ck_assert_str_eq(doors[0].rules[1].people[0], "ada");
    ck_assert_uint_eq(doors[0].rules[1].hours.days, 0x7f);
    ck_assert_int_eq(doors[0].hold_open[0].until_min, 360);
    ck_assert_str_eq(doors[0].interlock[0], "b");
}

END_TEST

static const struct {
    const char *text, *said;
} wrong[] = {
    {"{}", "doors: expected an array"},
    {"[{" BY "}]", "doors[0].name"},
    {"[{\"name\": \"A b\", " BY "}]", "is no name"},
    {"[{\"name\": \"a\"}]", "doors[0].by"},
    {"[{\"name\": \"a\", \"by\": {\"kind\": \"osdp\"}}]", "osdp"},
    {"[{\"name\": \"a\", \"by\": {\"kind\": \"command\", \"program\": \"../sh\"}}]", ".program"},
    {"[{\"name\": \"a\", " BY ", \"valid_ms\": 3001}]", "valid_ms"},
    {"[{\"name\": \"a\", " BY ", \"verb\": \"lock\"}]", "verb"},
    {"[{\"name\": \"a\", " BY ", \"time_zone\": \"../etc/passwd\"}]", "time_zone"},
    {"[{\"name\": \"a\", " BY ", \"schedule\": [{}]}]", "schedule[0]"},
    {"[{\"name\": \"a\", " BY ", \"schedule\": [{\"list\": \"allow\", \"people\": [\"b\"]}]}]",
     "either"},
    {"[{\"name\": \"a\", " BY ", \"hold_open\": [{\"from\": \"8:00\"}]}]", "hold_open[0].from"},
    {"[{\"name\": \"a\", " BY ", \"hold_open\": [{\"until\": \"24:30\"}]}]", "hold_open[0].until"},
    {"[{\"name\": \"a\", " BY ", \"hold_open\": [{\"from\": \"08:00\", \"until\": \"08:00\"}]}]",
     "nothing lies between"},
    {"[{\"name\": \"a\", " BY ", \"hold_open\": [{\"days\": [\"monday\"]}]}]", "monday"},
    {"[{\"name\": \"a\", " BY ", \"interlock\": [\"b\"]}]", "no other door"},
    {"[{\"name\": \"a\", " BY ", \"interlock\": [\"a\"]}]", "no other door"},
    {"[{\"name\": \"a\", " BY "}, {\"name\": \"a\", " BY "}]", "two doors"},
    {"[{\"name\": \"a\", " BY "}, {\"name\": \"b\", " BY ", \"time_zone\": \"Asia/Tokyo\"}]",
     "in one zone"},
};

START_TEST(what_is_wrong_is_said_with_its_place)
{
    ck_assert_int_ne(read_doors(wrong[_i].text, 1), WEIR_OK);
    ck_assert_msg(strstr(err.message, wrong[_i].said) != NULL, "%s: %s", wrong[_i].text,
                  err.message);
    ck_assert_ptr_eq(strstr(err.message, "$.pipelines[0].doors"), err.message);
}

END_TEST

START_TEST(doors_that_wait_for_each_other_have_one_replica)
{
    static const char two[] =
        "[{\"name\": \"a\", " BY ", \"interlock\": [\"b\"]}, {\"name\": \"b\", " BY "}]";
    ck_assert_int_eq(read_doors(two, 1), WEIR_OK);
    ck_assert_int_eq(read_doors(two, 2), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "replicas: 1"));
}

END_TEST

static void name_it(void *context, const struct weir_endpoint_secret *secret)
{
    (void)snprintf(context, 128, "%s=%s", secret->variable, secret->name);
}

START_TEST(a_secret_is_found_by_its_door)
{
    char found[128] = "";
    json_t *json =
        json_loads("[{\"by\": {}}, {\"by\": {\"kind\": \"webhook\", \"url\": \"http://c/\", "
                   "\"secrets\": [\"secret=door-key\"]}}]",
                   0, NULL);
    weir_doors_secrets(json, name_it, found);
    ck_assert_str_eq(found, "DOOR_1_SECRET=door-key");
    json_decref(json);
}

END_TEST

static const struct {
    const char *url, *host; /* NULL: it is refused */
    int port;
    bool is_tls;
} brokers[] = {
    {"mqtt://b", "b", 1883, false},
    {"mqtts://b.c/", "b.c", 8883, true},
    {"mqtt://10.0.0.1:99", "10.0.0.1", 99, false},
    {"mqtts://[::1]:7", "::1", 7, true},
    {"mqtt://[::1]", "::1", 1883, false},
    {"mqtt://u:p@b", NULL, 0, false},
    {"http://b", NULL, 0, false},
    {"mqtt://", NULL, 0, false},
    {"mqtt://b:0", NULL, 0, false},
    {"mqtt://b:70000", NULL, 0, false},
    {"mqtt://b:", NULL, 0, false},
    {"mqtt://b/x", NULL, 0, false},
    {"mqtt://[]", NULL, 0, false},
    {"mqtt://[::1", NULL, 0, false},
};

START_TEST(an_address_of_a_broker_is_read)
{
    struct weir_broker_place place = {0};
    weir_status status = weir_broker_place_read(brokers[_i].url, &place, &err);
    ck_assert_msg((status == WEIR_OK) == (brokers[_i].host != NULL), "%s", brokers[_i].url);
    if (status != WEIR_OK) {
        ck_assert_ptr_null(strstr(err.message, "u:p"));
        return;
    }
    ck_assert_str_eq(place.host, brokers[_i].host);
    ck_assert_int_eq(place.port, brokers[_i].port);
    ck_assert_int_eq(place.is_tls, brokers[_i].is_tls);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("door");
    TCase *tcase = tcase_create("door");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, doors_keep_the_laws_of_registries);
    tcase_add_test(tcase, a_door_is_read_with_what_it_leaves_out);
    tcase_add_test(tcase, hours_and_people_are_read);
    tcase_add_loop_test(tcase, what_is_wrong_is_said_with_its_place, 0, WEIR_ARRAY_LEN(wrong));
    tcase_add_test(tcase, doors_that_wait_for_each_other_have_one_replica);
    tcase_add_test(tcase, a_secret_is_found_by_its_door);
    tcase_add_loop_test(tcase, an_address_of_a_broker_is_read, 0, WEIR_ARRAY_LEN(brokers));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
