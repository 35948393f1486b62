#include "client/client.h"

#include "base/test_main.h"

START_TEST(what_can_be_tried_again_is_told_from_what_cannot)
{
    ck_assert(weir_client_can_retry(WEIR_ERR_UNAVAILABLE));
    ck_assert(weir_client_can_retry(WEIR_ERR_TIMEOUT));
    ck_assert(weir_client_can_retry(WEIR_ERR_PEER));
    ck_assert(!weir_client_can_retry(WEIR_OK));
    ck_assert(!weir_client_can_retry(WEIR_ERR_INVALID));
    ck_assert(!weir_client_can_retry(WEIR_ERR_CANCELLED));
    ck_assert(!weir_client_can_retry(WEIR_ERR_CONFLICT));
}

END_TEST

WEIR_TEST_MAIN("what is tried again", what_can_be_tried_again_is_told_from_what_cannot)
