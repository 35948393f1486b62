#include "device/device.h"

#include "device/visible.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <stdlib.h>
#include <string.h>

START_TEST(a_list_names_places_and_uuids)
{
    static const struct {
        const char *list, *uuid;
        int place;
        bool has;
    } rows[] = {
        {NULL, "GPU-1", 3, true},         {"", "GPU-1", 0, false},
        {"0,3", "GPU-1", 3, true},        {"0,3", "GPU-1", 1, false},
        {"10", "GPU-1", 1, false},        {"1", "GPU-1", 10, false},
        {"GPU-12,5", "GPU-123", 0, true}, {"GPU-12,5", "GPU-13", 0, false},
        {"MIG-7", "MIG-77", -1, true},    {"0", "MIG-77", -1, false},
        {",,2,", "GPU-1", 2, true},       {"G,GPU-2", "GPU-1", 0, false},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        ck_assert_msg(visible_has(rows[i].list, rows[i].place, rows[i].uuid) == rows[i].has, "%zu",
                      i);
    }
}

END_TEST

/* The ids of what is found of kind gpu and mig, in one text. */
static const char *find_all(const char *visible, const char *library)
{
    static char text[1024];
    const struct weir_device_config config = {
        .visible = visible, .visible_model = "h200", .nvml_library = library};
    struct weir_device_context *context = weir_device_context_create(&config);
    json_t *errors, *all = weir_device_find_all(context, &errors), *device;
    size_t i;
    text[0] = '\0';
    json_array_foreach(all, i, device)
    {
        const char *kind = json_string_value(json_object_get(device, "kind"));
        size_t len = strlen(text);
        if (strcmp(kind, "gpu") == 0 || strcmp(kind, "mig") == 0) {
            (void)snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? " " : "",
                           json_string_value(json_object_get(device, "id")));
        }
    }
    json_decref(all);
    json_decref(errors);
    weir_device_context_destroy(context);
    return text;
}

START_TEST(what_no_library_tells_is_as_an_allocation_says)
{
    ck_assert_str_eq(find_all("2,3", "/no/such/library.so"), "2 3");
    ck_assert_str_eq(find_all("", "/no/such/library.so"), "");
    ck_assert_str_eq(find_all(NULL, "/no/such/library.so"), "");
}

END_TEST

START_TEST(of_what_a_library_tells_only_the_allocations_is_found)
{
    char all[1024], second[200], first[200];
    (void)snprintf(all, sizeof all, "%s", find_all(NULL, FAKE_NVML));
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(all, " "), all);
    (void)snprintf(second, sizeof second, "%s", find_all("1", FAKE_NVML));
    ck_assert_int_gt((int)strlen(second), 0);
    ck_assert_ptr_null(strstr(second, first));
    ck_assert_ptr_nonnull(strstr(all, second));
    (void)snprintf(second, sizeof second, "%s", find_all("0", FAKE_NVML));
    ck_assert_str_eq(find_all(first, FAKE_NVML), second);
    ck_assert_str_eq(find_all("", FAKE_NVML), "");
}

END_TEST

WEIR_TEST_MAIN("visible", a_list_names_places_and_uuids,
               what_no_library_tells_is_as_an_allocation_says,
               of_what_a_library_tells_only_the_allocations_is_found)
