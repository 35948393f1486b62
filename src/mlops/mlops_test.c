/* What is told without a server, or to one that is away, is in the file; distributions are whole. */
#include "mlops/mlops_private.h"

#include "base/rng.h"
#include "base/test_main.h"

#include <float.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], file[96];

static void set_up(void)
{
    static const char *const variables[] = {"WEIR_SERVER", "WEIR_TOKEN",     "WEIR_CA_FILE",
                                            "WEIR_ION",    "WEIR_PIPELINE",  "WEIR_RUN",
                                            "WEIR_STATE",  "WEIR_MLOPS_FILE"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(variables); i++) {
        (void)unsetenv(variables[i]);
    }
    (void)snprintf(dir, sizeof dir, "/tmp/weir-mlops-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(file, sizeof file, "%s/told.jsonl", dir);
    ck_assert_int_eq(chdir(dir), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    (void)unlink(file);
    (void)rmdir(dir);
}

/* The lines of the file, as an array. */
static json_t *lines(void)
{
    json_t *all = json_array();
    char *line = NULL;
    size_t size = 0;
    FILE *in = fopen(file, "re");
    while (in != NULL && getline(&line, &size, in) > 0) {
        json_t *one = json_loads(line, 0, NULL);
        ck_assert_msg(one != NULL, "not JSON: %s", line);
        json_array_append_new(all, one);
    }
    free(line);
    if (in != NULL) {
        (void)fclose(in);
    }
    return all;
}

static const char *text_at(const json_t *all, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(all, i), key));
}

/* A server that is named and away: a port that was bound and is not listened at. */
static char *away(int *out_fd)
{
    static char url[64];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *out_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(*out_fd, 0);
    ck_assert_int_eq(bind(*out_fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(getsockname(*out_fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    return url;
}

START_TEST(without_a_server_all_goes_into_the_file)
{
    const struct weir_mlops_options options = {.file = file, .run = "r1"};
    struct weir_mlops *mlops = weir_mlops_open(&options);
    char error[256];
    ck_assert_ptr_nonnull(mlops);
    ck_assert_int_eq(weir_mlops_has_server(mlops), 0);
    ck_assert_int_eq(weir_mlops_metric(mlops, "loss", 3, 0.5), 0);
    ck_assert_int_eq(weir_mlops_kpi(mlops, "parcels", 7, NULL), 0);
    ck_assert_int_eq(weir_mlops_statistic(mlops, "s", "lines", "{\"a\":1}"), 0);
    ck_assert_int_eq(weir_mlops_alert(mlops, "data", "fog", 0, "grey"), 0);
    ck_assert_int_eq(weir_mlops_feedback(mlops, "d1", "ann"), 0);
    ck_assert_int_ne(weir_mlops_metric(mlops, "loss", 3, NAN), 0);
    ck_assert_int_ne(weir_mlops_statistic(mlops, "s", "lines", "{\"a\":"), 0);
    weir_mlops_error(mlops, error, sizeof error);
    ck_assert_str_ne(error, "");
    ck_assert_int_ne(weir_mlops_last_approved_model(mlops, NULL, NULL, NULL), 0);
    ck_assert_uint_eq(weir_mlops_close(mlops, 1000), 0);
    json_t *all = lines();
    ck_assert_uint_eq(json_array_size(all), 5);
    ck_assert_str_eq(text_at(all, 0, "path"), "/api/v1/runs/r1/metrics");
    ck_assert_str_eq(text_at(all, 2, "path"), "/api/v1/ions/-/statistics");
    ck_assert_str_eq(text_at(all, 4, "list"), "feedback");
    json_decref(all);
}

END_TEST

START_TEST(what_a_server_that_is_away_was_not_told_is_in_the_file_and_a_full_queue_is_counted)
{
    int fd;
    const struct weir_mlops_options options = {
        .file = file, .ion = "door", .server = away(&fd), .token = "t"};
    struct weir_mlops *mlops = weir_mlops_open(&options);
    ck_assert_int_eq(weir_mlops_has_server(mlops), 1);
    for (int i = 0; i < WEIR_MLOPS_QUEUE_MAX; i++) {
        ck_assert_int_eq(weir_mlops_kpi(mlops, "n", i, NULL), 0);
    }
    ck_assert_int_eq(weir_mlops_kpi(mlops, "n", 0, NULL), MLOPS_FULL);
    ck_assert_uint_eq(weir_mlops_flush(mlops, 0), WEIR_MLOPS_QUEUE_MAX);
    ck_assert_uint_eq(weir_mlops_close(mlops, 0), 1);
    json_t *all = lines();
    ck_assert_uint_eq(json_array_size(all), WEIR_MLOPS_QUEUE_MAX);
    for (size_t i = 0; i < WEIR_MLOPS_QUEUE_MAX; i++) {
        const json_t *item = json_object_get(json_array_get(all, i), "item");
        ck_assert_double_eq(json_number_value(json_object_get(item, "value")), (double)i);
    }
    json_decref(all);
    (void)close(fd);
}

END_TEST

START_TEST(a_folder_that_is_gone_loses_records_and_says_how_many)
{
    const struct weir_mlops_options options = {.file = "/nonexistent/told.jsonl", .ion = "door"};
    struct weir_mlops *mlops = weir_mlops_open(&options);
    ck_assert_int_eq(weir_mlops_kpi(mlops, "n", 1, NULL), 0);
    ck_assert_int_eq(weir_mlops_kpi(mlops, "n", 2, NULL), 0);
    ck_assert_uint_eq(weir_mlops_close(mlops, 0), 2);
    ck_assert_int_eq(weir_mlops_kpi(NULL, "n", 1, NULL), 0);
    ck_assert_uint_eq(weir_mlops_close(NULL, 0), 0);
}

END_TEST

/* Every finite value is counted once, between the edges where it lies. */
START_TEST(a_distribution_counts_every_finite_value_where_it_lies)
{
    enum { N = 500 };

    double values[N];
    struct weir_rng rng;
    weir_rng_init(&rng, (uint64_t)_i, 0);
    for (size_t i = 0; i < N; i++) {
        values[i] = i % 50 == 7 ? NAN : (_i % 2 == 0 ? 1 : 1e9) * weir_rng_f64(&rng) - 3;
    }
    json_t *value = mlops_distribution(values, N);
    const json_t *edges = json_object_get(value, "edges"),
                 *counts = json_object_get(value, "counts");
    ck_assert_uint_eq(json_array_size(edges), 14);
    ck_assert_uint_eq(json_array_size(counts), 13);
    json_int_t n = 0;
    for (size_t b = 0; b < 13; b++) {
        double from = json_number_value(json_array_get(edges, b));
        double to = json_number_value(json_array_get(edges, b + 1));
        json_int_t expected = 0, got = json_integer_value(json_array_get(counts, b));
        double slack = 1e-9 * (fabs(from) + fabs(to) + 1);
        for (size_t i = 0; i < N; i++) {
            expected += values[i] >= from - slack && values[i] <= to + slack;
        }
        ck_assert_double_le(from, to);
        ck_assert_msg(got <= expected, "bin %zu has %lld of %lld", b, (long long)got,
                      (long long)expected);
        n += got;
    }
    ck_assert_int_eq(n, N - N / 50);
    json_decref(value);
}

END_TEST

START_TEST(values_whose_squares_are_beyond_all_numbers_are_counted)
{
    double values[100];
    for (int i = 0; i < 100; i++) {
        values[i] = (i % 2 == 0 ? 1 : -1) * DBL_MAX * ((i + 1) / 100.0);
    }
    json_t *value = mlops_distribution(values, WEIR_ARRAY_LEN(values));
    const json_t *edges = json_object_get(value, "edges"), *count;
    json_int_t n = 0;
    size_t i;
    ck_assert_uint_eq(json_array_size(edges), 14);
    for (i = 1; i < 14; i++) {
        ck_assert_double_le(json_number_value(json_array_get(edges, i - 1)),
                            json_number_value(json_array_get(edges, i)));
    }
    json_array_foreach(json_object_get(value, "counts"), i, count)
    {
        ck_assert_int_gt(json_integer_value(count), i == 0 || i == 12 ? -1 : 0);
        n += json_integer_value(count);
    }
    ck_assert_int_eq(n, 100);
    json_decref(value);
}

END_TEST

/* A file may come from anywhere; what it is sent with may be an admin's token. */
START_TEST(a_file_says_only_what_records_say)
{
    static const char *const wrong[] = {
        "{\"path\":\"/api/v1/users\",\"item\":{}}",
        "{\"path\":\"/api/v1/ions/x/delete\",\"item\":{}}",
        "{\"path\":\"/api/v1/ions/x/../y/kpis\",\"item\":{}}",
        "{\"path\":\"/api/v1/ions/../kpis\",\"item\":{}}",
        "{\"path\":\"/api/v1/ions//kpis\",\"item\":{}}",
        "{\"path\":\"/api/v1/ions/x/kpis?y\",\"item\":{}}",
        "{\"path\":\"/api/v1/ions/x/kpis\"}",
        "{\"path\":\"/api/v1/ions/x/statistics\",\"list\":\"users\",\"item\":{}}",
        "[]"};
    int fd;
    char error[256];
    size_t n;
    const struct weir_mlops_options options = {
        .file = file, .ion = "door", .server = away(&fd), .token = "t"};
    struct weir_mlops *mlops = weir_mlops_open(&options);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        FILE *out = fopen(file, "w");
        ck_assert_ptr_nonnull(out);
        ck_assert_int_gt(fprintf(out, "%s\n", wrong[i]), 0);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_int_eq(weir_mlops_send_file(mlops, file, &n), WEIR_ERR_INVALID);
        weir_mlops_error(mlops, error, sizeof error);
        ck_assert_msg(strstr(error, "line 1: expected") != NULL, "%s: %s", wrong[i], error);
    }
    ck_assert_uint_eq(weir_mlops_close(mlops, 0), 0);
    (void)close(fd);
}

END_TEST

/* As a file may be after a loss of power. */
START_TEST(a_zero_byte_is_not_the_end_of_a_file)
{
    static const char torn[] = "\0\0\0{\"path\":\"/api/v1/ions/x/kpis\",\"item\":{}}\n";
    int fd;
    char error[256];
    size_t n;
    const struct weir_mlops_options options = {
        .file = file, .ion = "door", .server = away(&fd), .token = "t"};
    struct weir_mlops *mlops = weir_mlops_open(&options);
    FILE *out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(torn, 1, sizeof torn - 1, out), sizeof torn - 1);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(weir_mlops_send_file(mlops, file, &n), WEIR_ERR_INVALID);
    weir_mlops_error(mlops, error, sizeof error);
    ck_assert_msg(strstr(error, "line 1: the line has a zero byte") != NULL, "%s", error);
    ck_assert_uint_eq(weir_mlops_close(mlops, 0), 0);
    (void)close(fd);
}

END_TEST

START_TEST(few_different_values_are_categories)
{
    const double values[] = {1, 2, 2, -0.5, NAN, 2};
    json_t *value = mlops_distribution(values, WEIR_ARRAY_LEN(values));
    const json_t *counts = json_object_get(value, "counts");
    ck_assert_uint_eq(json_object_size(counts), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(counts, "2")), 3);
    json_decref(value);
    ck_assert_ptr_null(mlops_distribution(values + 4, 1));
    const double same[] = {4, 4};
    value = mlops_distribution(same, 2);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(value, "counts"), "4")), 2);
    json_decref(value);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("mlops");
    TCase *tcase = tcase_create("mlops");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, without_a_server_all_goes_into_the_file);
    tcase_add_test(
        tcase, what_a_server_that_is_away_was_not_told_is_in_the_file_and_a_full_queue_is_counted);
    tcase_add_test(tcase, a_folder_that_is_gone_loses_records_and_says_how_many);
    tcase_add_loop_test(tcase, a_distribution_counts_every_finite_value_where_it_lies, 0, 10);
    tcase_add_test(tcase, values_whose_squares_are_beyond_all_numbers_are_counted);
    tcase_add_test(tcase, a_file_says_only_what_records_say);
    tcase_add_test(tcase, a_zero_byte_is_not_the_end_of_a_file);
    tcase_add_test(tcase, few_different_values_are_categories);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
