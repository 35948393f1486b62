/* Trainings by a program of people's own: their documents, and what they register. */
#include "ion/step/ion_play.h"

static void set_up(void)
{
    begin_ion(1000000);
}

#define PROGRAM(more) "{name: t, type: training, kind: pytorch, parameters: {argv: [a]}" more "}"
#define SERVE         "{name: p, type: prediction, source: {kind: http}}"
#define DOC(pipeline) "{name: x, pipelines: [" pipeline ", " SERVE "], links: [{from: t, to: p}]}"

static void must_apply(const char *yaml)
{
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(&arena, yaml, &text);
    event.document = text;
    must(event);
}

static weir_status parse(const char *yaml, struct weir_ion_doc *out)
{
    json_t *json;
    ck_assert_int_eq(weir_yaml_parse(yaml, strlen(yaml), "test", false, &json, &err), WEIR_OK);
    weir_status status = weir_ion_doc_parse(json, &arena, out, &err);
    json_decref(json);
    return status;
}

START_TEST(a_program_has_a_kind_and_a_model_and_may_have_data)
{
    struct weir_ion_doc doc;
    ck_assert_int_eq(parse(DOC(PROGRAM("")), &doc), WEIR_OK);
    const struct weir_ion_doc_pipeline *training = weir_ion_doc_pipeline(&doc, "t");
    ck_assert_str_eq(training->kind, "pytorch");
    ck_assert_ptr_null(training->dataset);
    ck_assert_ptr_null(training->model);
    ck_assert_int_eq(training->max_restarts, 0);
    ck_assert_str_eq(weir_ion_doc_model(&doc, "t"), "x.t");
    ck_assert_str_eq(weir_ion_doc_model(&doc, "p"), "");
    ck_assert_int_eq(
        parse(DOC(PROGRAM(", dataset: d, registers: door, triggers: [new-data]")), &doc), WEIR_OK);
    ck_assert_str_eq(weir_ion_doc_model(&doc, "t"), "door");
    ck_assert_int_eq(parse(DOC("{name: t, type: training, dataset: d, model: m, kind: train,"
                               " registers: door}"),
                           &doc),
                     WEIR_OK);
    ck_assert_str_eq(weir_ion_doc_model(&doc, "t"), "door");
}

END_TEST

static const struct {
    const char *document, *message;
} wrong[] = {
    {DOC("{name: t, type: training, kind: pytorch}"), "$.pipelines[0].parameters: missing"},
    {DOC("{name: t, type: training, kind: pytorch, parameters: [a]}"),
     "$.pipelines[0].parameters: expected an object with the options of the program"},
    {DOC("{name: t, type: training, kind: 7, parameters: {argv: [a]}}"), "$.pipelines[0].kind: "},
    {DOC(PROGRAM(", model: lenet")), "$.pipelines[0].model: unknown field"},
    {DOC(PROGRAM(", triggers: [new-data]")),
     "$.pipelines[0].triggers[0]: new-data needs a dataset"},
    {DOC(PROGRAM(", registers: \"a/b\"")), "$.pipelines[0].registers: "},
};

START_TEST(what_is_wrong_in_a_program_is_named_by_its_place)
{
    struct weir_ion_doc doc;
    ck_assert_int_eq(parse(wrong[_i].document, &doc), WEIR_ERR_INVALID);
    ck_assert_msg(strncmp(err.message, wrong[_i].message, strlen(wrong[_i].message)) == 0, "%s",
                  err.message);
}

END_TEST

/** Does the last event tell an event of this kind? */
static bool tells(const char *kind)
{
    for (size_t i = 0; i < actions.n; i++) {
        if (actions.items[i].type == WEIR_ION_ACTION_EVENT &&
            strcmp(actions.items[i].kind, kind) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(what_it_registers_under_the_name_is_served_and_nothing_else)
{
    must_apply(DOC(PROGRAM(", registers: door")));
    must(model_of(&arena, "tokens", "t", 1, "tokens1"));
    ck_assert_uint_eq(state.n_candidates, 0);
    ck_assert(tells("model_aside"));
    must(model_of(&arena, "door", NULL, 1, "door1")); /* of somebody else */
    ck_assert_uint_eq(state.n_candidates, 0);
    must(model_of(&arena, "door", "t", 2, "door2"));
    ck_assert_uint_eq(state.n_candidates, 1);
    ck_assert_str_eq(state.candidates[0].model, "door");
    ck_assert_str_eq(state.candidates[0].state, WEIR_CANDIDATE_PENDING_REVIEW);
    ck_assert(!tells("model_aside"));
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("ion_program");
    TCase *tcase = tcase_create("program");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_program_has_a_kind_and_a_model_and_may_have_data);
    tcase_add_loop_test(tcase, what_is_wrong_in_a_program_is_named_by_its_place, 0,
                        sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, what_it_registers_under_the_name_is_served_and_nothing_else);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
