/* The benchmark is right about sizes and sums, and its numbers agree with each other. */
#include "bench/allreduce.h"

#include "base/file.h"
#include "base/json.h"
#include "base/test_main.h"
#include "bench/spawn.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(sizes_are_powers_of_1024)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"8", 8}, {"1K", 1024}, {"25m", 26214400}, {"1G", 1073741824}};

    static const char *const bad[] = {"",  "K", "-1", "0", "1.5K", "1KB", "99999999999999999999",
                                      " 1"};

    size_t bytes = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(good); i++) {
        ck_assert_int_eq(allreduce_size_parse(good[i].text, &bytes, NULL), WEIR_OK);
        ck_assert_uint_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_msg(allreduce_size_parse(bad[i], &bytes, NULL) == WEIR_ERR_INVALID, "\"%s\"",
                      bad[i]);
    }
}

END_TEST

START_TEST(a_range_goes_from_begin_to_end_by_the_factor)
{
    static struct allreduce_plan plan;
    struct allreduce_options range = {.begin = "1K", .end = "100K", .factor = 4};
    struct allreduce_options list = {.bytes = "25M,3"};
    ck_assert_int_eq(allreduce_sizes(&range, &plan, NULL), WEIR_OK);
    ck_assert_uint_eq(plan.n_sizes, 4);
    ck_assert_uint_eq(plan.sizes[3], 65536);
    plan = (struct allreduce_plan){.type = WEIR_COMM_F32};
    ck_assert_int_eq(allreduce_sizes(&list, &plan, NULL), WEIR_OK);
    ck_assert_uint_eq(plan.n_sizes, 2);
    ck_assert_uint_eq(plan.sizes[1], 4); /* one element at least */
}

END_TEST

/* Run the program with its output in a file; its exit status. */
static int run(const char *const argv[], FILE *output)
{
    int argc = 0, status = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(fileno(output), STDOUT_FILENO) < 0) {
            _exit(99);
        }
        exit(weir_bench_allreduce_main(argc, (char **)(uintptr_t)argv));
    }
    ck_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(every_sum_is_right_and_bandwidths_follow_from_the_time)
{
    static const char *const transports[] = {"shm", "tcp"};
    static const char *const types[] = {"float", "double", "int64"};
    FILE *output = tmpfile();
    ck_assert_ptr_nonnull(output);
    ck_assert_int_eq(
        run((const char *const[]){"bench-allreduce", "--ranks", "3", "--bytes", "1,1000,64K",
                                  "--iterations", "3", "--transport", transports[_i % 2], "--type",
                                  types[_i / 2], "--format", "json", NULL},
            output),
        0);
    rewind(output);
    json_t *whole = json_loadf(output, 0, NULL);
    (void)fclose(output);
    ck_assert_ptr_nonnull(whole);
    const json_t *results = json_object_get(whole, "results");
    ck_assert_uint_eq(json_array_size(results), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(results, i);
        double time_us = json_number_value(json_object_get(row, "time_us"));
        double bytes = json_number_value(json_object_get(row, "bytes"));
        double bus = json_number_value(json_object_get(row, "busbw_gb_s"));
        ck_assert_int_eq(json_integer_value(json_object_get(row, "wrong")), 0);
        ck_assert(time_us > 0);
        ck_assert_double_eq_tol(bus, bytes / time_us / 1e3 * 4 / 3, bus / 1000);
    }
    json_decref(whole);
}

END_TEST

START_TEST(tuning_writes_what_auto_then_chooses_by)
{
    char dir[] = "/tmp/weir-bench-test-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/tuning.json", dir);
    FILE *output = tmpfile();
    ck_assert_ptr_nonnull(output);
    ck_assert_int_eq(
        run((const char *const[]){"bench-allreduce", "--bytes", "64,256K", "--warmup", "0",
                                  "--iterations", "1", "--transport", "tcp", "--tune", path, NULL},
            output),
        0);
    json_t *file = json_load_file(path, 0, NULL);
    const json_t *entry = json_array_get(json_object_get(file, "entries"), 0);
    char expected[WEIR_COMM_ALGORITHM_BYTES], name[64];
    const char *rules = json_string_value(json_object_get(entry, "algorithm"));
    ck_assert_ptr_nonnull(rules);
    /* The first rule is that of 64 bytes: up to the first border, or all. */
    (void)snprintf(expected, sizeof expected, "%.*s", (int)strcspn(rules, ":"), rules);
    ck_assert_int_eq(json_integer_value(json_object_get(entry, "ranks")), 2);
    json_decref(file);
    rewind(output);
    ck_assert_int_eq(run((const char *const[]){"bench-allreduce", "--bytes", "64", "--warmup", "0",
                                               "--iterations", "1", "--transport", "tcp",
                                               "--tuning", path, "-o", "json", NULL},
                         output),
                     0);
    rewind(output);
    json_t *whole = json_loadf(output, JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_ptr_nonnull(whole);
    const json_t *row = json_array_get(json_object_get(whole, "results"), 0);
    (void)snprintf(name, sizeof name, "%s", json_string_value(json_object_get(row, "algorithm")));
    ck_assert_str_eq(name, expected);
    json_decref(whole);
    (void)fclose(output);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
}

END_TEST

START_TEST(what_it_does_not_understand_it_refuses)
{
    FILE *output = tmpfile();
    ck_assert_ptr_nonnull(output);
    int invalid = weir_status_exit(WEIR_ERR_INVALID);
    ck_assert_int_eq(run((const char *const[]){"bench-allreduce", "--bytes", "big", NULL}, output),
                     invalid);
    ck_assert_int_eq(run((const char *const[]){"bench-allreduce", "--type", "half", NULL}, output),
                     invalid);
    ck_assert_int_eq(run((const char *const[]){"bench-allreduce", "--rank", "1", NULL}, output),
                     invalid);
    ck_assert_int_eq(
        run((const char *const[]){"bench-allreduce", "--transport", "pigeon", NULL}, output),
        invalid);
    /* In shared memory there is one way: nothing to tune. */
    ck_assert_int_eq(
        run((const char *const[]){"bench-allreduce", "--tune", "/nowhere/x", NULL}, output),
        weir_status_exit(WEIR_ERR_UNSUPPORTED));
    (void)fclose(output);
}

END_TEST

int main(int argc, char **argv)
{
    if (weir_spawn_is_rank()) {
        return weir_bench_allreduce_main(argc - 1, argv + 1); /* as weir-worker does */
    }
    Suite *suite = suite_create("bench");
    TCase *tcase = tcase_create("bench");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, sizes_are_powers_of_1024);
    tcase_add_test(tcase, a_range_goes_from_begin_to_end_by_the_factor);
    tcase_add_loop_test(tcase, every_sum_is_right_and_bandwidths_follow_from_the_time, 0, 6);
    tcase_add_test(tcase, tuning_writes_what_auto_then_chooses_by);
    tcase_add_test(tcase, what_it_does_not_understand_it_refuses);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
