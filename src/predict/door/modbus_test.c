/* A module that is libmodbus' own: its coil is set, read back, and always cleared. */
#include "endpoint/door/modbus.h"

#include "base/clock.h"
#include "predict/door.h"
#include "predict/test_support.h"

#include <modbus.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define COIL 7

static struct {
    modbus_t *module;
    modbus_mapping_t *map;
    int listen_fd;
    pthread_t thread;
    atomic_bool is_over, is_stuck;
} f;

static char host[] = "127.0.0.1";
static struct weir_door_modbus options = {.host = host, .unit = 1, .coil = COIL};
static struct weir_door door = {.by = {&weir_door_modbus_kind, &options}};
static struct door_board board;
static struct weir_error err;
static struct door *opened;

static void *serve(void *context)
{
    (void)context;
    while (!atomic_load(&f.is_over)) {
        uint8_t query[MODBUS_TCP_MAX_ADU_LENGTH];
        int n = modbus_tcp_accept(f.module, &f.listen_fd) >= 0 ? 1 : -1;
        while (n > 0 && !atomic_load(&f.is_over)) {
            n = modbus_receive(f.module, query);
            if (n > 0) {
                n = modbus_reply(f.module, query, n, f.map);
            }
            if (atomic_load(&f.is_stuck)) {
                f.map->tab_bits[COIL] = 0;
            }
        }
        modbus_close(f.module);
    }
    return NULL;
}

static void set_up(void)
{
    struct sockaddr_in at = {0};
    socklen_t len = sizeof at;
    f.module = modbus_new_tcp("127.0.0.1", 0);
    f.map = modbus_mapping_new(16, 0, 0, 0);
    f.listen_fd = modbus_tcp_listen(f.module, 4);
    ck_assert_int_ge(f.listen_fd, 0);
    ck_assert_int_eq(getsockname(f.listen_fd, (struct sockaddr *)&at, &len), 0);
    options.port = ntohs(at.sin_port);
    atomic_store(&f.is_over, false);
    atomic_store(&f.is_stuck, false);
    f.map->tab_bits[COIL] = 1; /* as a process before left it */
    ck_assert_int_eq(pthread_create(&f.thread, NULL, serve, NULL), 0);
    door_board_init(&board, &door, 1);
    const struct door_config config = {.options = &options, .board = &board};
    ck_assert_int_eq(door_modbus.open(&config, &opened, &err), WEIR_OK);
}

static void end_module(void)
{
    atomic_store(&f.is_over, true);
    (void)shutdown(f.listen_fd, SHUT_RDWR);
    pthread_join(f.thread, NULL);
    (void)close(f.listen_fd);
}

static void tear_down(void)
{
    if (!atomic_load(&f.is_over)) {
        end_module();
    }
    door_board_fini(&board);
    modbus_mapping_free(f.map);
    modbus_free(f.module);
}

static weir_status send_it(bool is_lock, int64_t pulse_ms, struct door_answer *answer)
{
    const struct door_command command = {.is_lock = is_lock, .pulse_ms = pulse_ms};
    return door_modbus.send(opened, &command, 900, answer, &err);
}

START_TEST(a_coil_is_cleared_at_the_start_set_for_its_time_and_cleared)
{
    struct door_answer answer;
    ck_assert_int_eq(door_modbus.tick(opened, &err), WEIR_OK);
    ck_assert_int_eq(f.map->tab_bits[COIL], 0);
    int64_t begun_ms = weir_mono_ms();
    ck_assert_int_eq(send_it(false, 150, &answer), WEIR_OK);
    ck_assert_int_eq(answer.word, DOOR_DONE);
    ck_assert_int_eq(f.map->tab_bits[COIL], 1);
    while (f.map->tab_bits[COIL] != 0) {
        ck_assert_int_eq(door_modbus.tick(opened, &err), WEIR_OK);
    }
    ck_assert_int_ge(weir_mono_ms() - begun_ms, 150);
    door_modbus.close(opened);
}

END_TEST

START_TEST(a_coil_is_cleared_at_once_by_a_lock_and_by_the_end)
{
    struct door_answer answer;
    ck_assert_int_eq(send_it(false, 60000, &answer), WEIR_OK);
    ck_assert_int_eq(send_it(true, 0, &answer), WEIR_OK);
    ck_assert_int_eq(f.map->tab_bits[COIL], 0);
    ck_assert_int_eq(send_it(false, 60000, &answer), WEIR_OK);
    door_modbus.close(opened);
    ck_assert_int_eq(f.map->tab_bits[COIL], 0);
}

END_TEST

START_TEST(a_coil_that_does_not_hold_is_jammed)
{
    struct door_answer answer;
    atomic_store(&f.is_stuck, true);
    ck_assert_int_eq(send_it(false, 1000, &answer), WEIR_OK);
    ck_assert_int_eq(answer.word, DOOR_JAMMED);
    door_modbus.close(opened);
}

END_TEST

START_TEST(a_module_that_is_not_there_is_out_of_reach)
{
    struct door_answer answer;
    end_module();
    ck_assert_int_eq(send_it(false, 1000, &answer), WEIR_ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "127.0.0.1"));
    ck_assert_int_eq(door_modbus.tick(opened, &err), WEIR_OK); /* not due yet */
    door_modbus.close(opened);
}

END_TEST

/* Another door of the module waits for it as long as it takes: a command may not come after its time. */
START_TEST(a_coil_is_not_set_late_while_another_door_has_the_module)
{
    const struct door_command command = {.pulse_ms = 1000};
    struct door_answer answer;
    ck_assert_int_eq(door_modbus.tick(opened, &err), WEIR_OK);
    pthread_mutex_lock(&board.modules[0]);
    int64_t begun_ms = weir_mono_ms();
    ck_assert_int_eq(door_modbus.send(opened, &command, 150, &answer, &err), WEIR_ERR_UNAVAILABLE);
    ck_assert_int_ge(weir_mono_ms() - begun_ms, 150);
    ck_assert_ptr_nonnull(strstr(err.message, "busy with another door"));
    pthread_mutex_unlock(&board.modules[0]);
    ck_assert_int_eq(f.map->tab_bits[COIL], 0);
    door_modbus.close(opened);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("modbus door");
    TCase *tcase = tcase_create("modbus");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_coil_is_cleared_at_the_start_set_for_its_time_and_cleared);
    tcase_add_test(tcase, a_coil_is_cleared_at_once_by_a_lock_and_by_the_end);
    tcase_add_test(tcase, a_coil_that_does_not_hold_is_jammed);
    tcase_add_test(tcase, a_coil_is_not_set_late_while_another_door_has_the_module);
    tcase_add_test(tcase, a_module_that_is_not_there_is_out_of_reach);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
