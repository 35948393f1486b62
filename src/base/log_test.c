#include "base/log.h"

#include "base/test_main.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

/* Runs one log call with standard error caught in a pipe. */
static void caught_line(char *line, size_t size, bool is_json)
{
    int ends[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    weir_log_set_json(is_json);
    weir_log(WEIR_LOG_DEBUG, "not_shown", WEIR_KV_INT("n", 1));
    weir_log(WEIR_LOG_WARN, "disk_slow", WEIR_KV_STR("path", "a \"b\"\n"), WEIR_KV_INT("n", -3),
             WEIR_KV_F64("rate", 0.5));
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    ssize_t n = read(ends[0], line, size - 1);
    ck_assert_int_gt(n, 0);
    line[n] = '\0';
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(saved);
}

START_TEST(a_line_for_people_quotes_what_needs_it)
{
    char line[512];
    caught_line(line, sizeof line, false);
    ck_assert_str_eq(line + strlen("2026-01-31T10:00:00.123Z "),
                     "warn disk_slow path=\"a \\\"b\\\"\\n\" n=-3 rate=0.5\n");
}

END_TEST

START_TEST(a_line_for_machines_is_json)
{
    char line[512];
    caught_line(line, sizeof line, true);
    json_t *object = json_loads(line, 0, NULL);
    ck_assert_ptr_nonnull(object);
    ck_assert_str_eq(json_string_value(json_object_get(object, "event")), "disk_slow");
    ck_assert_str_eq(json_string_value(json_object_get(object, "path")), "a \"b\"\n");
    ck_assert_int_eq(json_integer_value(json_object_get(object, "n")), -3);
    json_decref(object);
}

END_TEST

WEIR_TEST_MAIN("log", a_line_for_people_quotes_what_needs_it, a_line_for_machines_is_json)
