#include "agent/node/disk_quota.h"

#include "agent/node/disk_watch.h"
#include "base/file.h"
#include "base/test_main.h"

#include <stdio.h>

/* Whether there are quotas is the machine's; what is written without them is the watch's to see. */
START_TEST(a_folder_is_bounded_where_its_file_system_can_and_as_it_was_elsewhere)
{
    char dir[WEIR_DIR_TEMPORARY_BYTES], path[WEIR_DIR_TEMPORARY_BYTES + 8];
    static char bytes[64 << 10];
    struct weir_error err;
    ck_assert_int_eq(weir_dir_make_temporary("disk-quota", dir, &err), WEIR_OK);
    (void)snprintf(path, sizeof path, "%s/file", dir);
    bool is_set = disk_quota_set(dir, 16 << 10, 100);
    ck_assert(is_set == disk_quota_is_here(dir));
    weir_status status = weir_file_write(path, bytes, sizeof bytes, 0600, &err);
    ck_assert((status == WEIR_OK) == !is_set);
    ck_assert(is_set || disk_watch_measure(dir).bytes >= (int64_t)sizeof bytes);
    ck_assert(!disk_quota_set("/nonexistent", 1, 1));
    ck_assert(!disk_quota_is_here("/proc"));
    ck_assert(!disk_quota_set("/proc", 1, 1));
    ck_assert_int_eq(weir_dir_remove(dir, &err), WEIR_OK);
}

END_TEST

WEIR_TEST_MAIN("agent disk quota",
               a_folder_is_bounded_where_its_file_system_can_and_as_it_was_elsewhere)
