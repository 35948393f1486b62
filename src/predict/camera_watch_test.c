#include "predict/camera_watch.h"

#include "base/test_main.h"

#include <stdio.h>
#include <string.h>

static struct camera_watch watch;

START_TEST(a_camera_that_is_silent_is_forgotten_and_another_has_its_place)
{
    watch.n = 0;
    for (int i = 0; i < WEIR_MONITOR_CAMERAS_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "c%d", i);
        ck_assert_ptr_nonnull(camera_watch_see(&watch, name, 1000 + i));
    }
    ck_assert_ptr_null(camera_watch_see(&watch, "more", 2500));
    camera_watch_see(&watch, "c0", 2500)->is_frozen = true;
    camera_watch_see(&watch, "c1", 1001)->is_frozen = true;
    ck_assert(!camera_watch_forget(&watch, 1500, 500));
    ck_assert_uint_eq(watch.n, WEIR_MONITOR_CAMERAS_MAX);
    ck_assert(camera_watch_forget(&watch, 1501, 500)); /* c1 */
    ck_assert_uint_eq(watch.n, WEIR_MONITOR_CAMERAS_MAX - 1);
    ck_assert_ptr_nonnull(camera_watch_see(&watch, "more", 2500));
    ck_assert(!camera_watch_forget(&watch, 2600, 500)); /* those that were seen before 2100 */
    ck_assert_uint_eq(watch.n, 2);
    ck_assert(camera_watch_see(&watch, "c0", 2600)->is_frozen);
    ck_assert_str_eq(camera_watch_see(&watch, "more", 2600)->name, "more");
    ck_assert(camera_watch_see(&watch, "c1", 2600)->due_ms == INT64_MIN);
    ck_assert(camera_watch_forget(&watch, 9000, 500));
    ck_assert_uint_eq(watch.n, 0);
}

END_TEST

WEIR_TEST_MAIN("camera_watch", a_camera_that_is_silent_is_forgotten_and_another_has_its_place)
