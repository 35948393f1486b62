/* When a camera is blind: it sends, and nothing of it can be seen. */
#include "undecoded.h"

#include "base/test_main.h"

#include <string.h>

/* Units every so many milliseconds, every so many of them a key frame. @return After how long it is blind; 0: it is not. */
static int64_t blind_after(int64_t every_ms, int key_every, int decoded_every, int64_t for_ms)
{
    struct camera_undecoded undecoded = {0};
    struct weir_error err = {0};
    int n = 0;
    for (int64_t at_ms = 0; at_ms < for_ms; at_ms += every_ms, n++) {
        bool is_key = key_every > 0 && n % key_every == 0;
        bool has_decoded = decoded_every > 0 && n % decoded_every == decoded_every - 1;
        weir_status status =
            camera_undecoded_check(&undecoded, 1000 + at_ms, is_key, has_decoded, &err);
        if (status != WEIR_OK) {
            ck_assert_int_eq(status, WEIR_ERR_CORRUPT);
            ck_assert_ptr_nonnull(strstr(err.message, "can be decoded"));
            return at_ms;
        }
    }
    return 0;
}

START_TEST(key_frames_that_give_nothing_are_told_soon)
{
    ck_assert_int_eq(blind_after(40, 1, 0, 60000), CAMERA_UNDECODED_MS);
    ck_assert_int_eq(blind_after(1, 1000, 0, 60000), CAMERA_UNDECODED_MS);
    ck_assert_int_eq(blind_after(100000, 1, 0, 10000000), 200000); /* the third */
}

END_TEST

START_TEST(a_stream_is_waited_for_until_its_key_frame)
{
    ck_assert_int_eq(blind_after(40, 0, 0, 600000), CAMERA_UNDECODED_MAX_MS);
    ck_assert_int_eq(blind_after(200, 250, 250, 600000), 0); /* 50 s from key frame to key frame */
}

END_TEST

START_TEST(one_picture_in_a_while_is_enough)
{
    ck_assert_int_eq(blind_after(40, 1, 250, 3600000), 0);
}

END_TEST

int main(void)
{
    const struct weir_test_loop tests[] = {{key_frames_that_give_nothing_are_told_soon, 0},
                                           {a_stream_is_waited_for_until_its_key_frame, 0},
                                           {one_picture_in_a_while_is_enough, 0}};
    return weir_test_run(weir_test_loops("camera_undecoded", tests, WEIR_ARRAY_LEN(tests)));
}
