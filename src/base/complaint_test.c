/* Trouble that goes on is said once in a while. */
#include "base/complaint.h"

#include "base/test_main.h"

START_TEST(trouble_is_said_at_once_then_counted_and_said_again_later)
{
    struct weir_complaint complaint = {0};
    int64_t n_unsaid = -1;
    ck_assert(weir_complaint_is_due(&complaint, &n_unsaid));
    ck_assert_int_eq(n_unsaid, 0);
    for (int i = 0; i < 5; i++) {
        ck_assert(!weir_complaint_is_due(&complaint, &n_unsaid));
    }
    atomic_fetch_sub(&complaint.said_ms, WEIR_COMPLAINT_MS); /* so long ago */
    ck_assert(weir_complaint_is_due(&complaint, &n_unsaid));
    ck_assert_int_eq(n_unsaid, 5);
    ck_assert(!weir_complaint_is_due(&complaint, NULL));
}

END_TEST

START_TEST(trouble_that_comes_back_is_said_at_once)
{
    struct weir_complaint complaint = {0};
    int64_t n_unsaid = -1;
    ck_assert(!weir_complaint_end(&complaint));
    ck_assert(weir_complaint_is_due(&complaint, NULL));
    ck_assert(!weir_complaint_is_due(&complaint, NULL));
    ck_assert(weir_complaint_end(&complaint));
    ck_assert(!weir_complaint_end(&complaint));
    ck_assert(weir_complaint_is_due(&complaint, &n_unsaid));
    ck_assert_int_eq(n_unsaid, 0);
}

END_TEST

WEIR_TEST_MAIN("complaint", trouble_is_said_at_once_then_counted_and_said_again_later,
               trouble_that_comes_back_is_said_at_once)
