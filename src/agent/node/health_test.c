/* What makes a node unfit for tasks, and what of its own command's ends is told. */
#include "agent/node/agent_private.h"

#include "base/clock.h"
#include "base/test_main.h"

#include <poll.h>
#include <string.h>

static struct agent agent;
static struct weir_agent_config config;

static void set_up(void)
{
    static char dir[] = "/tmp";
    config = (struct weir_agent_config){0};
    agent = (struct agent){.config = &config, .dir = dir};
}

static void tear_down(void)
{
    health_close(&agent);
}

static const struct {
    const char *devices, *reason;
} rows[] = {
    {"[]", ""},
    {"[['gpu','ok','']]", ""},
    {"[['gpu','ok',''],['gpu','bad','hot']]", ""},
    {"[['gpu','bad','hot'],['gpu','bad','lost']]", "all its accelerators are bad: lost"},
    {"[['memory','ok',''],['memory','bad','2 errors']]", "2 errors"},
    {"[['nic','bad','x'],['disk','bad','y']]", ""},
};

START_TEST(bad_memory_makes_a_node_unhealthy_and_bad_accelerators_only_if_no_other_is_left)
{
    char text[256], reason[256];
    (void)snprintf(text, sizeof text, "%s", rows[_i].devices);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *list = json_loads(text, 0, NULL), *devices = json_array(), *row;
    size_t i;
    json_array_foreach(list, i, row)
    {
        json_array_append_new(devices,
                              json_pack("{s:O,s:O,s:O}", "kind", json_array_get(row, 0), "state",
                                        json_array_get(row, 1), "reason", json_array_get(row, 2)));
    }
    ck_assert_str_eq(health_reason(&agent, devices, reason, sizeof reason), rows[_i].reason);
    json_decref(devices);
    json_decref(list);
}

END_TEST

START_TEST(a_folder_that_cannot_be_written_is_told)
{
    static char dir[] = "/proc";
    char reason[256];
    agent.dir = dir;
    ck_assert_ptr_nonnull(
        strstr(health_reason(&agent, NULL, reason, sizeof reason), "cannot write below /proc: "));
}

END_TEST

START_TEST(control_groups_that_are_gone_are_told)
{
    char reason[256];
    (void)snprintf(agent.groups.v1_memory, sizeof agent.groups.v1_memory, "/tmp");
    ck_assert_str_eq(health_reason(&agent, NULL, reason, sizeof reason), "");
    (void)snprintf(agent.groups.v1_memory, sizeof agent.groups.v1_memory, "/nowhere/weir");
    ck_assert_ptr_nonnull(
        strstr(health_reason(&agent, NULL, reason, sizeof reason), "/nowhere/weir"));
}

END_TEST

static const struct {
    const char *command, *reason;
} commands[] = {
    {"true", ""},
    {"echo all is well", ""},
    {"exit 3", "its health command fails"},
    {"echo the fan stands; echo more; exit 1", "its health command fails: the fan stands"},
    {"echo stuck >&2; kill -9 $$", "its health command fails: stuck"},
    {"printf '\\377'; false", "its health command fails"},
    {"head -c 1000000 /dev/zero | tr '\\0' x; false", NULL},
};

START_TEST(the_nodes_own_command_says_by_its_status_whether_it_is_healthy)
{
    char reason[256];
    int64_t give_up_ms = weir_mono_ms() + 20000;
    config.health_command = commands[_i].command;
    bool is_news = health_look(&agent);
    while (agent.health.child != 0) {
        ck_assert_int_lt(weir_mono_ms(), give_up_ms);
        struct pollfd fd = {.fd = agent.health.fd, .events = POLLIN};
        (void)poll(&fd, 1, 10);
        is_news = health_look(&agent) || is_news;
    }
    health_reason(&agent, NULL, reason, sizeof reason);
    if (commands[_i].reason != NULL) {
        ck_assert_str_eq(reason, commands[_i].reason);
    }
    ck_assert_int_eq(is_news, reason[0] != '\0');
    ck_assert(!health_look(&agent)); /* The next is due in a minute. */
    ck_assert_int_eq(agent.health.child, 0);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("health");
    TCase *tcase = tcase_create("health");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(
        tcase, bad_memory_makes_a_node_unhealthy_and_bad_accelerators_only_if_no_other_is_left, 0,
        (int)WEIR_ARRAY_LEN(rows));
    tcase_add_test(tcase, control_groups_that_are_gone_are_told);
    tcase_add_test(tcase, a_folder_that_cannot_be_written_is_told);
    tcase_add_loop_test(tcase, the_nodes_own_command_says_by_its_status_whether_it_is_healthy, 0,
                        (int)WEIR_ARRAY_LEN(commands));
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
