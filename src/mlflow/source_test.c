#include "mlflow/source.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

static const struct {
    const char *source, *run, *path;
} ours[] = {
    {"mlflow-artifacts:/0/abc/artifacts/model", "abc", "model"},
    {"mlflow-artifacts:/0/abc/artifacts", "abc", ""},
    {"mlflow-artifacts:/0/abc/artifacts/a/b/", "abc", "a/b"},
    {"mlflow-artifacts://host:8470/0/abc/artifacts/m", "abc", "m"},
    {"http://h:1/api/2.0/mlflow-artifacts/artifacts/7/abc/artifacts/m", "abc", "m"},
    {"https://h/p/vision/api/2.0/mlflow-artifacts/artifacts/7/abc/artifacts/m", "abc", "m"},
    {"runs:/abc/model", "abc", "model"},
    {"runs:/abc", "abc", ""},
    {"s3://bucket/abc/artifacts/m", NULL, NULL},
    {"mlflow-artifacts:/0/abc/other/m", NULL, NULL},
    {"mlflow-artifacts:/0/abc", NULL, NULL},
    {"mlflow-artifacts:/0/abc/artifacts/../../x", NULL, NULL},
    {"http://h/elsewhere/7/abc/artifacts/m", NULL, NULL},
    {"models:/a/1", NULL, NULL},
    {"", NULL, NULL},
};

START_TEST(a_source_on_this_server_is_a_folder_of_a_run)
{
    struct mlflow_source out;
    bool is_ours = mlflow_source_read(ours[_i].source, &arena, &out);
    ck_assert_msg(is_ours == (ours[_i].run != NULL), "%s", ours[_i].source);
    if (is_ours) {
        ck_assert_str_eq(out.run, ours[_i].run);
        ck_assert_str_eq(out.path, ours[_i].path);
    }
}

END_TEST

/* As MLflow's own tests have them. */
static const struct {
    const char *source;
    bool is_good;
} checked[] = {
    {"mlflow-artifacts:/0/abc/artifacts/model", true},
    {"s3://bucket/a/b", true},
    {"runs:/abc/model", true},
    {"models:/a/1", true},
    {"dbfs:/a..b/c", true},
    {"/path/to/model", false},
    {"path/to/model", false},
    {"./model", false},
    {"file:///etc/passwd", false},
    {"file:a", false},
    {"C:\\models", false},
    {"mlflow-artifacts:/0/abc/artifacts/../../x", false},
    {"mlflow-artifacts://host:9000/models/../../../", false},
    {"mlflow-artifacts:/models/..%2f..%2fartifacts", false},
    {"mlflow-artifacts:/models/%2e%2e/%2e%2e/x", false},
    {"http://host:9000/models/%252e%252e%252f", false},
    {"s3a:/my_bucket/models/..\\..\\x", false},
    {"ftp://host:8888/models/artifact/../../..", false},
    {"https://host/models/artifact/..?a=b", false},
    {"mlflow-artifacts:/models/a#b", false},
    {"s3://bucket/a\nb", false},
    {"..", false},
};

START_TEST(a_source_that_is_local_or_leads_up_is_refused)
{
    struct weir_error err = {0};
    weir_status status = mlflow_source_check(checked[_i].source, &err);
    ck_assert_msg((status == WEIR_OK) == checked[_i].is_good, "%s: %s", checked[_i].source,
                  err.message);
    ck_assert(status == WEIR_OK || strstr(err.message, "Invalid model version source") != NULL);
}

END_TEST

START_TEST(a_copy_names_a_version)
{
    const char *name;
    int64_t version;
    ck_assert(mlflow_source_is_model("models:/My Model/12", &arena, &name, &version));
    ck_assert_str_eq(name, "My Model");
    ck_assert_int_eq(version, 12);
    ck_assert(!mlflow_source_is_model("models:/a@b", &arena, &name, &version));
    ck_assert(!mlflow_source_is_model("models:/a/Production", &arena, &name, &version));
    ck_assert(!mlflow_source_is_model("runs:/a/1", &arena, &name, &version));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("source");
    TCase *tcase = tcase_create("source");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_source_on_this_server_is_a_folder_of_a_run, 0,
                        WEIR_ARRAY_LEN(ours));
    tcase_add_loop_test(tcase, a_source_that_is_local_or_leads_up_is_refused, 0,
                        WEIR_ARRAY_LEN(checked));
    tcase_add_test(tcase, a_copy_names_a_version);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
