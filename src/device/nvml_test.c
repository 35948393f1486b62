/* GPUs by a driver's library of our own (fake_nvml.c), which a file makes hot, broken or sliced. */
#include "device/device.h"

#include "base/file.h"
#include "base/test_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[WEIR_DIR_TEMPORARY_BYTES], faults[WEIR_DIR_TEMPORARY_BYTES + 16];
static struct weir_device_context *context;
static struct weir_found_list list;
static struct weir_error err;

static void set_up(void)
{
    ck_assert_int_eq(weir_dir_make_temporary("nvml", folder, &err), WEIR_OK);
    (void)snprintf(faults, sizeof faults, "%s/faults", folder);
    ck_assert_int_eq(setenv("WEIR_FAKE_NVML", faults, 1), 0);
    const struct weir_device_config config = {.root = folder, .nvml_library = FAKE_NVML};
    context = weir_device_context_create(&config);
}

static void tear_down(void)
{
    weir_found_list_fini(&list);
    weir_device_context_destroy(context);
    ck_assert_int_eq(weir_dir_remove(folder, &err), WEIR_OK);
}

static weir_status look(void)
{
    const struct weir_device_provider *provider = weir_device_nvml.ops;
    weir_found_list_fini(&list);
    return provider->find(context, &list, &err);
}

static void look_with(const char *text)
{
    ck_assert_int_eq(weir_file_write(faults, text, strlen(text), 0600, &err), WEIR_OK);
    ck_assert_int_eq(look(), WEIR_OK);
}

static const struct weir_found *gpu(const char *id)
{
    for (size_t i = 0; i < list.n; i++) {
        if (strcmp(list.items[i].id, id) == 0) {
            return &list.items[i];
        }
    }
    ck_abort_msg("no %s", id);
    return NULL;
}

static size_t n_bad(void)
{
    size_t n = 0;
    for (size_t i = 0; i < list.n; i++) {
        n += list.items[i].reason[0] != '\0';
    }
    return n;
}

START_TEST(eight_gpus_are_told_with_what_they_measure)
{
    look_with("");
    ck_assert_uint_eq(list.n, 8);
    ck_assert_uint_eq(n_bad(), 0);
    const struct weir_found *one = gpu("GPU-00000001");
    ck_assert_str_eq(one->kind, "gpu");
    ck_assert_str_eq(one->model, "NVIDIA H100 80GB HBM3");
    ck_assert_int_eq(one->memory_bytes, (int64_t)80 << 30);
    ck_assert_int_eq(one->memory_used_bytes, (int64_t)1 << 30);
    ck_assert_int_eq((int)one->temperature_c, 40);
    ck_assert_int_eq((int)(10 * one->power_w), 3125);
    ck_assert_int_eq((int)one->utilisation_pct, 10);
    ck_assert_int_eq(one->ecc_errors, 0);
    char *details = json_dumps(one->details, JSON_SORT_KEYS | JSON_COMPACT);
    ck_assert_str_eq(details, "{\"driver_index\":1,\"links\":[{\"active\":true,\"link\":0,\"peer\":"
                              "\"00000000:00:00.0\"}],\"pci\":\"00000000:01:00.0\",\"processes\":"
                              "[{\"memory_bytes\":1073741824,\"pid\":4711}]}");
    free(details);
}

END_TEST

START_TEST(a_gpu_that_gets_too_hot_is_bad_until_it_has_cooled_down)
{
    look_with("heat 3 89\n");
    ck_assert_uint_eq(n_bad(), 0);
    look_with("heat 3 90\n");
    ck_assert_uint_eq(n_bad(), 1);
    ck_assert_ptr_nonnull(strstr(gpu("GPU-00000003")->reason, "too hot"));
    look_with("heat 3 88\n");
    ck_assert_uint_eq(n_bad(), 1);
    look_with("heat 3 86\n");
    ck_assert_uint_eq(n_bad(), 0);
}

END_TEST

START_TEST(memory_errors_and_errors_of_the_hardware_make_it_bad_and_those_of_programs_do_not)
{
    look_with("ecc 2 4\n");
    ck_assert_ptr_nonnull(strstr(gpu("GPU-00000002")->reason, "4 errors"));
    ck_assert_uint_eq(n_bad(), 1);
    look_with("xid 5 31\n"); /* A program's page fault. */
    ck_assert_uint_eq(n_bad(), 0);
    look_with("xid 5 74\n");
    ck_assert_uint_eq(n_bad(), 1);
    look_with(""); /* The event was told once; the hardware has not become better. */
    ck_assert_ptr_nonnull(strstr(gpu("GPU-00000005")->reason, "XID 74"));
}

END_TEST

START_TEST(a_lost_gpu_is_told_by_what_was_known_of_it)
{
    look_with("");
    look_with("lost 7\n");
    ck_assert_uint_eq(list.n, 8);
    ck_assert_str_eq(gpu("GPU-00000007")->model, "NVIDIA H100 80GB HBM3");
    ck_assert_ptr_nonnull(strstr(gpu("GPU-00000007")->reason, "off the bus"));
    look_with("");
    ck_assert_uint_eq(n_bad(), 0);
}

END_TEST

START_TEST(slices_name_their_gpu_and_are_as_bad_as_it)
{
    look_with("mig 0 1g.10gb 2\n");
    ck_assert_uint_eq(list.n, 10);
    const struct weir_found *slice = gpu("MIG-00000000-1");
    ck_assert_str_eq(slice->kind, "mig");
    ck_assert_str_eq(slice->parent_id, "GPU-00000000");
    ck_assert_str_eq(slice->profile, "1g.10gb");
    ck_assert_str_eq(slice->model, "NVIDIA H100 80GB HBM3");
    ck_assert_int_eq(slice->memory_bytes, (int64_t)10 << 30);
    look_with("mig 0 1g.10gb 2\necc 0 1\n");
    ck_assert_uint_eq(n_bad(), 3);
}

END_TEST

START_TEST(gpus_come_and_go_while_it_runs)
{
    look_with("count 3\n");
    ck_assert_uint_eq(list.n, 3);
    look_with("count 5\n");
    ck_assert_uint_eq(list.n, 5);
    look_with("count 0\n");
    ck_assert_uint_eq(list.n, 0);
}

END_TEST

START_TEST(a_library_that_was_named_and_is_not_there_is_an_error)
{
    const struct weir_device_config config = {.nvml_library = "/nowhere/libnvml.so"};
    struct weir_device_context *without = weir_device_context_create(&config);
    const struct weir_device_provider *provider = weir_device_nvml.ops;
    ck_assert_int_eq(provider->find(without, &list, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "/nowhere/libnvml.so"));
    weir_device_context_destroy(without);
}

END_TEST

WEIR_TEST_MAIN_WITH(
    "nvml", set_up, tear_down, eight_gpus_are_told_with_what_they_measure,
    a_gpu_that_gets_too_hot_is_bad_until_it_has_cooled_down,
    memory_errors_and_errors_of_the_hardware_make_it_bad_and_those_of_programs_do_not,
    a_lost_gpu_is_told_by_what_was_known_of_it, slices_name_their_gpu_and_are_as_bad_as_it,
    gpus_come_and_go_while_it_runs, a_library_that_was_named_and_is_not_there_is_an_error)
