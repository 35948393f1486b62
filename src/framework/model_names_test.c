/* What the control plane knows of the models is what nn has. */
#include "framework/model_names.h"

#include "base/test_main.h"
#include "nn/zoo.h"

#include <string.h>

START_TEST(the_names_and_kinds_are_those_of_the_zoo)
{
    size_t n_zoo, n;
    const struct weir_zoo_model *zoo = weir_zoo_models(&n_zoo);
    const struct weir_model_name *names = weir_model_names(&n);
    ck_assert_uint_eq(n, n_zoo);
    for (size_t i = 0; i < n; i++) {
        struct weir_graph *graph;
        struct weir_error err;
        ck_assert_str_eq(names[i].name, zoo[i].name);
        ck_assert_int_eq(weir_zoo_build(zoo[i].name, NULL, 10, &graph, &err), WEIR_OK);
        ck_assert_msg(weir_graph_is_embedding(graph) == names[i].is_embedding, "%s", zoo[i].name);
        ck_assert_msg(weir_graph_is_detector(graph) == names[i].is_detector, "%s", zoo[i].name);
        weir_graph_destroy(graph);
    }
}

END_TEST

static const struct {
    const char *model;
    const char *said; /**< NULL: nothing. */
} cases[] = {
    {"lenet", NULL},
    {"face-embed", NULL},
    {"/models/own.json", NULL},
    {"lenett", "$.m: there is no model \"lenett\"; did you mean \"lenet\"?"},
    {"resnet-50", "$.m: there is no model \"resnet-50\"; did you mean \"resnet50\"?"},
    {"transformer", "$.m: there is no model \"transformer\": there are lenet, lenet-5, mlp, "},
    {"", "$.m: there is no model \"\": there are "},
    {"own.json", "$.m: \"own.json\" is a relative path"},
    {"models/own.json", "write the model file's absolute path"},
};

START_TEST(a_model_that_is_none_is_refused_with_what_was_meant)
{
    struct weir_error err = {0};
    weir_status status = weir_model_name_check(cases[_i].model, "$.m", &err);
    ck_assert_int_eq(status, cases[_i].said == NULL ? WEIR_OK : WEIR_ERR_INVALID);
    if (cases[_i].said != NULL) {
        ck_assert_msg(strstr(err.message, cases[_i].said) != NULL, "%s", err.message);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("model_names");
    TCase *tcase = tcase_create("model_names");
    tcase_add_test(tcase, the_names_and_kinds_are_those_of_the_zoo);
    tcase_add_loop_test(tcase, a_model_that_is_none_is_refused_with_what_was_meant, 0,
                        sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
