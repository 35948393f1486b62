#include "base/status.h"

#include "base/test_main.h"

#include <errno.h>
#include <string.h>

START_TEST(every_status_survives_the_way_over_its_name)
{
    for (int i = 0; i < WEIR_STATUS_COUNT; i++) {
        ck_assert_int_eq(weir_status_from_name(weir_status_name(-i)), -i);
        int http = weir_status_http(-i);
        ck_assert_msg(http >= 200 && http <= 599, "%s: HTTP %d", weir_status_name(-i), http);
        ck_assert_msg((weir_status_exit(-i) == 0) == (http == 200), "%s", weir_status_name(-i));
    }
    ck_assert_int_eq(weir_status_from_name("NO_SUCH_NAME"), WEIR_ERR_INTERNAL);
    ck_assert_str_eq(weir_status_text(1), "unknown status");
    ck_assert_str_eq(weir_status_text(-1000), "unknown status");
}

END_TEST

START_TEST(only_what_a_second_try_cannot_mend_is_permanent)
{
    static const int permanent[] = {2, 3, 4, 7};
    static const int passing[] = {0, 5, 6, 8, 9, 10, 70, -1, 1, 127, 143};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(permanent); i++) {
        ck_assert_msg(weir_exit_is_permanent(permanent[i]), "%d", permanent[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(passing); i++) {
        ck_assert_msg(!weir_exit_is_permanent(passing[i]), "%d", passing[i]);
    }
}

END_TEST

START_TEST(a_message_that_does_not_fit_says_so)
{
    char text[2 * WEIR_ERROR_MESSAGE_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct weir_error err;
    ck_assert_int_eq(weir_error_set(&err, WEIR_ERR_IO, "%s", text), WEIR_ERR_IO);
    ck_assert_uint_eq(strlen(err.message), WEIR_ERROR_MESSAGE_BYTES - 1);
    ck_assert_str_eq(err.message + strlen(err.message) - strlen("…"), "…");
}

END_TEST

START_TEST(errno_and_prefix_build_one_sentence)
{
    struct weir_error err;
    ck_assert_int_eq(weir_error_set_errno(&err, ENOSPC, "cannot write %s", "a.txt"),
                     WEIR_ERR_NOSPACE);
    ck_assert_int_eq(weir_error_prefix(&err, "saving: "), WEIR_ERR_NOSPACE);
    ck_assert_str_eq(err.message, "saving: cannot write a.txt: No space left on device");
    ck_assert_int_eq(weir_error_set(NULL, WEIR_ERR_LIMIT, "nobody listens"), WEIR_ERR_LIMIT);
}

END_TEST

WEIR_TEST_MAIN("status", every_status_survives_the_way_over_its_name,
               only_what_a_second_try_cannot_mend_is_permanent, a_message_that_does_not_fit_says_so,
               errno_and_prefix_build_one_sentence)
