/* Documents and placeholders. */
#include "base/test_main.h"
#include "sweep/doc.h"

#include <string.h>

static struct weir_arena arena;

#define JOB    "\"job\":{\"kind\":\"command\",\"spec\":{\"argv\":[\"true\"]}}"
#define SPACE  "\"parameters\":{\"x\":[1,2,3],\"y\":[1,2]}"
#define GOAL   "\"goal\":{\"metric\":\"loss\",\"direction\":\"minimize\"}"
#define NAMED  "{\"name\":\"s\"," JOB "," GOAL
#define SWEEP  NAMED "," SPACE
#define METHOD ",\"method\":{\"kind\":"

static weir_status read_text(const char *text, struct weir_sweep_doc *out, json_t **out_object,
                             struct weir_error *err)
{
    json_error_t why;
    *out_object = json_loads(text, JSON_DECODE_ANY, &why);
    ck_assert_msg(*out_object != NULL, "%s: %s", why.text, text);
    return weir_sweep_doc_read(*out_object, &arena, out, err);
}

START_TEST(a_document_says_what_it_says)
{
    struct weir_sweep_doc doc;
    struct weir_error err = {0};
    json_t *object;
    const char *text = SWEEP METHOD "\"asha\",\"max_resource\":27,\"resource\":\"epoch\"},"
                                    "\"trials\":64,\"parallel\":3,\"time_s\":60,\"seed\":5}";
    ck_assert_msg(read_text(text, &doc, &object, &err) == WEIR_OK, "%s", err.message);
    ck_assert_str_eq(doc.name, "s");
    ck_assert_str_eq(doc.project, "default");
    ck_assert_str_eq(doc.job_kind, "command");
    ck_assert_str_eq(doc.metric, "loss");
    ck_assert(!doc.maximizes && !doc.takes_best);
    ck_assert_int_eq(doc.n_trials, 64);
    ck_assert_int_eq(doc.n_parallel, 3);
    ck_assert_int_eq(doc.time_s, 60);
    ck_assert_int_eq(doc.seed, 5);
    ck_assert_int_eq(doc.max_restarts, -1);
    ck_assert_double_eq(doc.rungs.min_resource, 1);
    ck_assert_double_eq(doc.rungs.max_resource, 27);
    ck_assert_int_eq(doc.rungs.eta, 3);
    ck_assert_str_eq(doc.rungs.resource, "epoch");
    ck_assert_double_eq(weir_sweep_rungs_level(&doc.rungs, 2), 9);
    ck_assert(weir_sweep_rungs_level(&doc.rungs, 3) > 1e300); /* 27 is the end, no rung */
    json_decref(object);
}

END_TEST

static const struct {
    const char *document;
    int64_t n_trials;
} counted[] = {
    {SWEEP METHOD "\"grid\"}}", 6},
    {SWEEP METHOD "\"grid\"},\"trials\":4}", 4},
    {SWEEP METHOD "\"grid\"},\"trials\":40}", 6},
    {SWEEP METHOD "\"tpe\"},\"trials\":40}", 40},
    {SWEEP ",\"trials\":40,\"early_stop\":{\"eta\":4}}", 40},
};

START_TEST(a_sweep_has_so_many_trials)
{
    struct weir_sweep_doc doc;
    struct weir_error err = {0};
    json_t *object;
    ck_assert_msg(read_text(counted[_i].document, &doc, &object, &err) == WEIR_OK, "%s",
                  err.message);
    ck_assert_int_eq(doc.n_trials, counted[_i].n_trials);
    json_decref(object);
}

END_TEST

#define WIDE                                                                                       \
    "\"parameters\":{\"x\":{\"kind\":\"int\",\"min\":1,\"max\":1000},"                             \
    "\"y\":{\"kind\":\"int\",\"min\":1,\"max\":1000}}"

static const struct {
    const char *document, *said;
    weir_status status;
} refused[] = {
    {"[]", "$: expected an object", WEIR_ERR_INVALID},
    {"{}", "$.name", WEIR_ERR_INVALID},
    {"{\"name\":\"Not A Name\"," JOB "," GOAL "," SPACE ",\"trials\":1}", "$.name",
     WEIR_ERR_INVALID},
    {SWEEP "}", "$.trials", WEIR_ERR_INVALID},
    {SWEEP ",\"trials\":5000}", "$.trials", WEIR_ERR_INVALID},
    {SWEEP ",\"trials\":5,\"trails\":5}", "trails", WEIR_ERR_INVALID},
    {SWEEP ",\"trials\":5,\"parallel\":0}", "$.parallel", WEIR_ERR_INVALID},
    {NAMED "," WIDE METHOD "\"grid\"}}", "1000000 points", WEIR_ERR_LIMIT},
    {NAMED ",\"parameters\":{\"x\":{\"kind\":\"uniform\",\"min\":0,\"max\":1}}" METHOD "\"grid\"}}",
     "$.parameters.x: a grid takes so many values", WEIR_ERR_INVALID},
    {SWEEP METHOD "\"asha\",\"min_resource\":9,\"max_resource\":9},\"trials\":5}", "$.method",
     WEIR_ERR_INVALID},
    {SWEEP METHOD "\"asha\"},\"early_stop\":{},\"trials\":5}", "$.early_stop", WEIR_ERR_INVALID},
    {SWEEP METHOD "\"pbt\"},\"trials\":5}", "pbt", WEIR_ERR_UNSUPPORTED},
    {SWEEP ",\"trials\":5,\"early_stop\":{\"eta\":1}}", "$.early_stop.eta", WEIR_ERR_INVALID},
    {"{\"name\":\"s\"," JOB "," SPACE
     ",\"trials\":5,\"goal\":{\"metric\":\"l\",\"direction\":\"up\"}}",
     "$.goal.direction", WEIR_ERR_INVALID},
    {"{\"name\":\"s\"," GOAL "," SPACE ",\"trials\":5,\"job\":{\"kind\":\"command\",\"spec\":5}}",
     "$.job.spec", WEIR_ERR_INVALID},
};

START_TEST(what_makes_no_sense_is_refused_with_its_place)
{
    struct weir_sweep_doc doc;
    struct weir_error err = {0};
    json_t *object;
    weir_status status = read_text(refused[_i].document, &doc, &object, &err);
    ck_assert_msg(status == refused[_i].status && strstr(err.message, refused[_i].said) != NULL,
                  "%d: %s", status, err.message);
    json_decref(object);
}

END_TEST

/* A specification and what a trial's job gets; NULL: it is refused. */
static const struct {
    const char *spec, *filled;
} fillings[] = {
    {"{\"a\":\"{{lr}}\"}", "{\"a\":0.1}"},
    {"{\"a\":\"{{n}}\",\"b\":\"{{name}}\",\"c\":\"{{flag}}\"}",
     "{\"a\":7,\"b\":\"sgd\",\"c\":true}"},
    {"{\"argv\":[\"--lr={{lr}}\",\"-n{{n}}\",\"{{name}}-{{flag}}\"]}",
     "{\"argv\":[\"--lr=0.1\",\"-n7\",\"sgd-true\"]}"},
    {"{\"a\":{\"b\":[{\"c\":\"{{lr}}{{lr}}\"}]}}", "{\"a\":{\"b\":[{\"c\":\"0.10.1\"}]}}"},
    {"{\"a\":\"{{sweep}} {{trial}}\",\"b\":\"{{max_resource}}\"}", "{\"a\":\"s 3\",\"b\":27}"},
    {"{\"a\":\"{{ lr }} {lr} {{}} {{lr\",\"b\":5,\"c\":null}",
     "{\"a\":\"{{ lr }} {lr} {{}} {{lr\",\"b\":5,\"c\":null}"},
    {"{\"files\":{\"x\":\"{{unknown}}\"}}", "{\"files\":{\"x\":\"{{unknown}}\"}}"},
    {"{\"a\":{\"files\":\"{{n}}\"}}", "{\"a\":{\"files\":7}}"},
    {"{\"{{lr}}\":\"ä{{n}}ö\"}", "{\"{{lr}}\":\"ä7ö\"}"},
    {"{\"a\":[\"{{lrr}}\"]}", NULL},
};

START_TEST(placeholders_become_what_the_trial_has)
{
    json_t *parameters =
        json_pack("{s:f,s:i,s:s,s:b}", "lr", 0.1, "n", 7, "name", "sgd", "flag", 1);
    json_t *spec = json_loads(fillings[_i].spec, 0, NULL), *filled = NULL;
    struct weir_error err = {0};
    const struct weir_sweep_given given = {.sweep = "s", .trial = 3, .max_resource = 27};
    weir_status status = weir_sweep_fill(spec, parameters, &given, &arena, &filled, &err);
    if (fillings[_i].filled == NULL) {
        ck_assert_int_eq(status, WEIR_ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, "$.job.spec.a[0]: {{lrr}} is none"));
    } else {
        json_t *wanted = json_loads(fillings[_i].filled, 0, NULL);
        ck_assert_msg(status == WEIR_OK, "%s", err.message);
        ck_assert_msg(json_equal(filled, wanted), "%s", weir_json_text(filled, &arena));
        json_decref(wanted);
    }
    json_decref(filled);
    json_decref(spec);
    json_decref(parameters);
}

END_TEST

START_TEST(numbers_are_written_as_people_do)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"}, {1e-5, "1e-05"}, {3, "3"}, {1.0 / 3, "0.3333333333333333"}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        json_t *value = json_real(cases[i].value);
        ck_assert_str_eq(weir_sweep_value_text(value, &arena), cases[i].text);
        json_decref(value);
    }
}

END_TEST

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

int main(void)
{
    Suite *suite = suite_create("sweep_doc");
    TCase *tcase = tcase_create("sweep_doc");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_document_says_what_it_says);
    tcase_add_loop_test(tcase, a_sweep_has_so_many_trials, 0, WEIR_ARRAY_LEN(counted));
    tcase_add_loop_test(tcase, what_makes_no_sense_is_refused_with_its_place, 0,
                        WEIR_ARRAY_LEN(refused));
    tcase_add_loop_test(tcase, placeholders_become_what_the_trial_has, 0, WEIR_ARRAY_LEN(fillings));
    tcase_add_test(tcase, numbers_are_written_as_people_do);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
