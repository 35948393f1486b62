/* What a job's specification is told when it is handed in. */
#include "framework/framework.h"
#include "framework/training.h"

#include "base/test_main.h"

#include <string.h>

static const struct {
    const char *kind, *spec;
    weir_status status;
    const char *said; /**< NULL: nothing. */
} cases[] = {
    {"train", "{'model':'lenet','dataset':'fashion'}", WEIR_OK, NULL},
    {"train", "{'model':'lenet','data':'/d','validation':'fashion-val','epochs':3}", WEIR_OK, NULL},
    {"train", "{'model':'/m/own.json','data':'/d','validation':'/v','keep':'best'}", WEIR_OK, NULL},
    {"train", "{'model':'lenet','dataset':'d','optimizer':'adamw:beta2=0.95','schedule':'step'}",
     WEIR_OK, NULL},
    {"train", "{'model':'lenett','dataset':'d'}", WEIR_ERR_INVALID,
     "$.spec.model: there is no model \"lenett\"; did you mean \"lenet\"?"},
    {"train", "{'dataset':'d'}", WEIR_ERR_INVALID, "$.spec.model: missing"},
    {"train", "{'model':'lenet'}", WEIR_ERR_INVALID, "$.spec.dataset: missing"},
    {"train", "{'model':'lenet','dataset':'d','learning_rate':'fast'}", WEIR_ERR_INVALID,
     "$.spec.learning_rate: expected a number, got \"fast\""},
    {"train", "{'model':'lenet','dataset':'d','learning_rte':0.1}", WEIR_ERR_INVALID,
     "$.spec.learning_rte: unknown option; did you mean learning_rate?"},
    {"train", "{'model':'lenet','dataset':'d','epochs':1e99}", WEIR_ERR_INVALID,
     "$.spec.epochs: expected an integer"},
    {"train", "{'model':'lenet','dataset':'d','epochs':-1}", WEIR_ERR_INVALID, "$.spec.epochs: -1"},
    {"train", "{'model':'lenet','dataset':'d','momentum':2}", WEIR_ERR_INVALID,
     "$.spec.momentum: 2 is outside 0 … 1"},
    {"train", "{'model':'lenet','dataset':'d','elastic':'maybe'}", WEIR_ERR_INVALID,
     "$.spec.elastic: expected true or false"},
    {"train", "{'model':'lenet','dataset':'d','optimizer':'adm'}", WEIR_ERR_INVALID,
     "did you mean adam?"},
    {"train", "{'model':'lenet','dataset':'d','augment':'rotate'}", WEIR_ERR_INVALID,
     "$.spec.augment: \"rotate\" is none of none, flip, shift-flip, face, photo"},
    {"train", "{'model':'lenet','data':'photos'}", WEIR_ERR_INVALID,
     "$.spec.data: \"photos\" is relative"},
    {"train", "{'model':'lenet','dataset':'d','validation':'a/b'}", WEIR_ERR_INVALID,
     "$.spec.validation: \"a/b\" is neither"},
    {"train", "{'model':'lenet','dataset':'d','keep':'best'}", WEIR_ERR_INVALID, "$.spec.keep: "},
    {"train", "{'model':'lenet','dataset':'d','batch_size':2,'workers':4}", WEIR_ERR_INVALID,
     "$.spec.batch_size: 2 is shared by 4 workers"},
    {"train", "{'model':'lenet','dataset':'d','workers':200,'parameter_servers':100}",
     WEIR_ERR_LIMIT, "at most 256"},
    {"train", "{'model':'lenet','dataset':'d','rank':0}", WEIR_ERR_INVALID,
     "$.spec.rank: of a job this is the server's to set"},
    {"train", "{'model':'lenet','dataset':'d','elastic':true,'parameter_servers':1}",
     WEIR_ERR_UNSUPPORTED, "$.spec.elastic: "},
    {"train",
     "{'model':'face-embed','dataset':'d','detector':'finder@best','detect':'{\\'min_face\\':30}',"
     "'align':'{\\'by\\':\\'box\\',\\'left\\':0.1}'}",
     WEIR_OK, NULL},
    {"train", "{'model':'face-embed','dataset':'d','detector':'/m/finder.onnx'}", WEIR_ERR_INVALID,
     "$.spec.detector: \"/m/finder.onnx\" is not NAME"},
    {"train", "{'model':'face-embed','dataset':'d','align':'{}'}", WEIR_ERR_INVALID,
     "$.spec.align: says how photos are cut with a detector: name one"},
    {"train",
     "{'model':'face-embed','dataset':'d','detector':'f','detect':'{\\'model\\':\\'g\\'}'}",
     WEIR_ERR_INVALID, "$.spec.detect.model: "},
    {"train", "{'model':'face-embed','dataset':'d','detector':'f','detect':'{\\'treshold\\':1}'}",
     WEIR_ERR_INVALID, "$.spec.detect.treshold: unknown option; did you mean threshold?"},
    {"train", "{'model':'face-embed','dataset':'d','detector':'f','align':'[1]'}", WEIR_ERR_INVALID,
     "$.spec.align: expected the stage's options"},
    {"train", "{'model':'face-detect','dataset':'d','detector':'f'}", WEIR_ERR_INVALID,
     "$.spec.detector: face-detect is a detector itself"},
    {"train", "{'model':'lenet','dataset':'d','detector':'f'}", WEIR_ERR_UNSUPPORTED,
     "$.spec.detector: lenet is a classifier"},
    {"train", "{'model':'face-embed','dataset':'d','detector':'f','detector_blob':'0'}",
     WEIR_ERR_INVALID, "$.spec.detector_blob: of a job this is the server's to set"},
    {"command", "{'argv':['true'],'tasks':2}", WEIR_OK, NULL},
    {"command", "{'argv':['true'],'cpu-slots':2}", WEIR_ERR_INVALID, "did you mean cpu_slots?"},
    {"command", "{'argv':['true'],'picture':'x'}", WEIR_ERR_INVALID,
     "$.spec.picture: unknown option"},
    {"command", "{'argv':['bin/go'],'image':'x.tar'}", WEIR_OK, NULL},
    {"command", "{'argv':['true'],'image':'../x'}", WEIR_ERR_INVALID, "$.spec.image: "},
    {"predict", "{'replicas':1}", WEIR_ERR_INVALID, "weir apply"},
    {"ray", "{}", WEIR_ERR_UNSUPPORTED, "use a \"command\" job"},
    {"dance", "{}", WEIR_ERR_INVALID, "$.kind: \"dance\" is none of"},
};

START_TEST(a_specification_is_taken_or_told_what_is_wrong_where)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    char text[512];
    weir_arena_init(&arena, 0);
    (void)snprintf(text, sizeof text, "%s", cases[_i].spec);
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    json_t *spec = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(spec);
    weir_status status = weir_framework_check(cases[_i].kind, spec, &arena, &err);
    ck_assert_msg(status == cases[_i].status, "%s: %d: %s", text, status, err.message);
    if (cases[_i].said != NULL) {
        ck_assert_msg(strstr(err.message, cases[_i].said) != NULL, "%s: %s", text, err.message);
    }
    json_decref(spec);
    weir_arena_fini(&arena);
}

END_TEST

static const struct {
    const char *spec, *said;
} values[] = {
    {"{'argv':['a'],'env':{'PORT':80}}", "$.spec.env.PORT: expected a string: put the value into"},
    {"{'argv':['a'],'files':{'a.py':null}}", "$.spec.files.a.py: expected a string"},
    {"{'argv':['a'],'files':{'token':'mine'}}", "$.spec.files.token: a job has its own token"},
    {"{'argv':['a'],'env':'PORT=80'}", "$.spec.env: expected an object of strings"},
    {"{'argv':['a'],'cpu_slots':5000}", "$.spec.cpu_slots: 5000 is outside 0 … 4096"},
    {"{'argv':[]}", "$.spec.argv: missing: The program and its arguments"},
    {"{'argv':'python3 a.py'}", "$.spec.argv: expected an array"},
};

START_TEST(the_values_of_a_command_are_named_where_they_are_wrong)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    struct weir_launch *launches;
    struct weir_job_request request;
    size_t n;
    char text[512];
    weir_arena_init(&arena, 0);
    (void)snprintf(text, sizeof text, "%s", values[_i].spec);
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    json_t *spec = json_loads(text, 0, NULL);
    struct weir_launch_job job = {.id = "j", .kind = "command", .spec = spec, .shared_dir = "/s"};
    ck_assert_int_eq(weir_framework_plan(&job, &arena, &launches, &n, &request, &err),
                     WEIR_ERR_INVALID);
    ck_assert_msg(strstr(err.message, values[_i].said) != NULL, "%s", err.message);
    json_decref(spec);
    weir_arena_fini(&arena);
}

END_TEST

/* By hand, beside the kinds' own tables: what each calls the number of its tasks. */
static const struct {
    const char *kind, *tasks, *nodes, *replicas, *workers, *processes;
} counts[] = {
    {"train", "workers", "workers", "workers", NULL, "workers"},
    {"predict", "replicas", "replicas", NULL, "replicas", "replicas"},
    {"serve", "", "", "", "", ""},
    {"batch", NULL, "tasks", "tasks", "tasks", "tasks"},
    {"measure", "", "", "", "", ""},
    {"command", NULL, "tasks", "tasks", "tasks", "tasks"},
    {"pytorch", "nodes", NULL, "nodes", "nodes", "processes_per_node"},
    {"tensorflow", "workers", "workers", "workers", NULL, "workers"},
    {"mpi", "nodes", NULL, "nodes", "nodes", "processes_per_node"},
    {"sbatch", NULL, NULL, "tasks", "tasks", "tasks"},
    {"spark", "nodes", NULL, "nodes", "nodes", "nodes"},
};

static void check_count(const char *kind, const char *word, const char *meant)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    char said[160];
    if (meant == NULL) {
        return; /* it is the kind's own */
    }
    weir_arena_init(&arena, 0);
    json_t *spec = json_pack("{s:i}", word, 2);
    ck_assert_int_eq(weir_framework_check(kind, spec, &arena, &err), WEIR_ERR_INVALID);
    (void)snprintf(said, sizeof said, "$.spec.%s: unknown option%s%s%s", word,
                   meant[0] != '\0' ? "; " : ": ", meant, meant[0] != '\0' ? " is meant (" : "");
    ck_assert_msg(strncmp(err.message, said, strlen(said)) == 0, "%s: %s", kind, err.message);
    said[0] = '\0';
    (void)snprintf(said, sizeof said, "; %s has ", kind);
    ck_assert_msg(strstr(err.message, said) != NULL, "%s", err.message);
    json_decref(spec);
    weir_arena_fini(&arena);
}

START_TEST(each_kind_knows_how_the_others_call_the_number_of_tasks)
{
    ck_assert_uint_eq(WEIR_ARRAY_LEN(counts), weir_job_kinds.n_kinds);
    check_count(counts[_i].kind, "tasks", counts[_i].tasks);
    check_count(counts[_i].kind, "nodes", counts[_i].nodes);
    check_count(counts[_i].kind, "replicas", counts[_i].replicas);
    check_count(counts[_i].kind, "workers", counts[_i].workers);
    check_count(counts[_i].kind, "processes", counts[_i].processes);
}

END_TEST

/* Whatever is added: a member of nobody's is told all that there are, none of them Weir's own. */
START_TEST(each_kind_names_what_it_has)
{
    struct weir_arena arena;
    struct weir_error err = {0};
    const struct weir_kind *kind = weir_job_kinds.kinds[_i];
    weir_arena_init(&arena, 0);
    json_t *spec = json_pack("{s:i}", "shoe_size_of_it", 44);
    ck_assert_int_eq(weir_framework_check(kind->name, spec, &arena, &err), WEIR_ERR_INVALID);
    bool is_cut = strstr(err.message, "…: weir explain job-kind ") != NULL; /* of many options */
    for (size_t i = 0; i < kind->n_options; i++) {
        char *key = weir_option_key(&kind->options[i], &arena);
        const char *found = strstr(err.message, key);
        bool is_internal = (kind->options[i].flags & WEIR_OPTION_INTERNAL) != 0;
        ck_assert_msg(is_internal || is_cut || found != NULL, "%s: %s", key, err.message);
    }
    bool has_many = strcmp(kind->name, "train") == 0 || strcmp(kind->name, "sbatch") == 0;
    ck_assert_msg(has_many || strstr(err.message, "resources") != NULL, "%s", err.message);
    ck_assert_ptr_null(strstr(err.message, "service"));
    json_decref(spec);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_LOOPS_MAIN(
    "training", {a_specification_is_taken_or_told_what_is_wrong_where, WEIR_ARRAY_LEN(cases)},
    {the_values_of_a_command_are_named_where_they_are_wrong, WEIR_ARRAY_LEN(values)},
    {each_kind_knows_how_the_others_call_the_number_of_tasks, WEIR_ARRAY_LEN(counts)},
    {each_kind_names_what_it_has, WEIR_ARRAY_LEN(counts)})
