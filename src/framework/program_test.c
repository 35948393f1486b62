/* What the tasks of kinds that run a user's program are told. */
#include "framework/framework.h"

#include "base/macros.h"
#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;
static struct weir_error err;
static struct weir_launch *launches;
static size_t n_launches;
static struct weir_job_request request;

static weir_status plan(const char *kind, const char *spec_text)
{
    WEIR_AUTO(weir_json_auto_free) json_t *spec = json_loads(spec_text, 0, NULL);
    ck_assert_ptr_nonnull(spec);
    const struct weir_launch_job job = {.id = "j1",
                                        .kind = kind,
                                        .spec = spec,
                                        .shared_dir = "/s",
                                        .server_url = "http://h:1",
                                        .secret = "ab",
                                        .max_restarts = 2};
    weir_status status = weir_framework_check(kind, spec, &arena, &err);
    weir_status planned = weir_framework_plan(&job, &arena, &launches, &n_launches, &request, &err);
    ck_assert_int_eq(status == WEIR_OK, planned == WEIR_OK);
    return planned;
}

/* "env.RANK" of the definition of task i; an object or a list as JSON. NULL: it has none. */
static const char *told(size_t i, const char *path)
{
    WEIR_AUTO(weir_json_auto_free)
    json_t *definition = json_loads(launches[i].definition, 0, NULL);
    const json_t *value = definition;
    char *parts = weir_arena_strdup(&arena, path), *rest;
    for (char *part = strtok_r(parts, ".", &rest); part != NULL && value != NULL;
         part = strtok_r(NULL, ".", &rest)) {
        value = json_object_get(value, part);
    }
    if (value == NULL) {
        return NULL;
    }
    return json_is_string(value) ? weir_arena_strdup(&arena, json_string_value(value))
                                 : weir_json_text(value, &arena);
}

#define EXPECT_TOLD(i, path, wanted) ck_assert_pstr_eq(told((i), (path)), (wanted))

START_TEST(torch_ranks_of_one_process_have_what_torchrun_gives)
{
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"python3\",\"a.py\"],\"nodes\":3}"), WEIR_OK);
    ck_assert_uint_eq(n_launches, 3);
    EXPECT_TOLD(2, "env.RANK", "2");
    EXPECT_TOLD(2, "env.LOCAL_RANK", "0");
    EXPECT_TOLD(2, "env.GROUP_RANK", "2");
    EXPECT_TOLD(2, "env.WORLD_SIZE", "3");
    EXPECT_TOLD(2, "env.LOCAL_WORLD_SIZE", "1");
    EXPECT_TOLD(2, "env.GROUP_WORLD_SIZE", "3");
    EXPECT_TOLD(2, "env.ROLE_NAME", "default");
    EXPECT_TOLD(2, "env.TORCHELASTIC_USE_AGENT_STORE", "False");
    EXPECT_TOLD(2, "env.TORCHELASTIC_RUN_ID", "j1");
    EXPECT_TOLD(2, "env.TORCHELASTIC_MAX_RESTARTS", "2");
    EXPECT_TOLD(2, "meet.env.MASTER_ADDR", "{{0|@address}}");
    EXPECT_TOLD(2, "meet.env.MASTER_PORT", "{{0|@port}}");
    EXPECT_TOLD(2, "meet.env.TORCHELASTIC_RESTART_COUNT", "{{restarts}}");
    EXPECT_TOLD(2, "meet.wait", "1");
    EXPECT_TOLD(2, "meet.size", "3");
    EXPECT_TOLD(2, "meet.launcher", "[]");
    EXPECT_TOLD(2, "argv", "[\"python3\",\"a.py\"]");
    EXPECT_TOLD(2, "checkpoint", "/s/checkpoints/j1");
    ck_assert_int_eq(request.min_tasks, 0);
}

END_TEST

START_TEST(a_script_of_the_folder_is_run_by_python_as_torchrun_does)
{
    static const struct {
        const char *spec, *argv;
    } cases[] = {
        {"{\"argv\":[\"train.py\",\"--epochs\",\"3\"]}",
         "[\"python3\",\"train.py\",\"--epochs\",\"3\"]"},
        {"{\"argv\":[\"src/train.py\"],\"files\":{\"src/"
         "train.py\":\"#!\"},\"processes_per_node\":2}",
         "[\"python3\",\"src/train.py\"]"},
        {"{\"argv\":[\"./train.py\"],\"files\":{\"train.py\":\"#!\"}}", "[\"./train.py\"]"},
        {"{\"argv\":[\"/opt/train.py\"]}", "[\"/opt/train.py\"]"},
        {"{\"argv\":[\"train.pyc\"]}", "[\"train.pyc\"]"},
        {"{\"argv\":[\".py\"]}", "[\".py\"]"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_int_eq(plan("pytorch", cases[i].spec), WEIR_OK);
        EXPECT_TOLD(0, "argv", cases[i].argv);
    }
    ck_assert_int_eq(plan("command", "{\"argv\":[\"train.py\"]}"), WEIR_OK);
    EXPECT_TOLD(0, "argv", "[\"train.py\"]"); /* it may be in PATH */
}

END_TEST

/* The launcher's words, without those that are a program of two words: -c and its text. */
static void expect_launcher(size_t i, const char *wanted)
{
    WEIR_AUTO(weir_json_auto_free) json_t *words = json_loads(told(i, "meet.launcher"), 0, NULL);
    ck_assert_str_eq(json_string_value(json_array_get(words, 1)), "-c");
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_array_get(words, 2)), "torch.distributed.run"));
    json_array_remove(words, 1);
    json_array_remove(words, 1);
    ck_assert_str_eq(weir_json_text(words, &arena), wanted);
}

START_TEST(several_processes_and_elastic_gangs_go_through_torchrun)
{
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"/v/bin/python3.11\",\"a.py\",\"{{x}}\"],"
                                     "\"nodes\":2,\"processes_per_node\":4}"),
                     WEIR_OK);
    expect_launcher(1, "[\"/v/bin/python3.11\",\"--nproc_per_node=4\","
                       "\"--nnodes=2\",\"--node_rank=1\",\"--master_addr={{0|@address}}\","
                       "\"--master_port={{0|@port}}\",\"--no_python\"]");
    EXPECT_TOLD(1, "argv", "[\"/v/bin/python3.11\",\"a.py\",\"{{x}}\"]");
    EXPECT_TOLD(1, "env.RANK", NULL);
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"./a\"],\"files\":{\"a\":\"#!\"},\"nodes\":"
                                     "{\"min\":2,\"max\":4}}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 4);
    ck_assert_int_eq(request.min_tasks, 2);
    expect_launcher(
        3, "[\"python3\",\"--nproc_per_node=1\","
           "\"--nnodes=2:4\",\"--rdzv_backend=c10d\",\"--rdzv_endpoint={{0|@address:@port}}\","
           "\"--rdzv_id=j1\",\"--rdzv_conf=is_host=false\",\"--max_restarts=4\","
           "\"--no_python\"]");
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"python3\"],\"resources\":{\"accelerators\":8}}"),
                     WEIR_OK);
    ck_assert_ptr_nonnull(strstr(told(0, "meet.launcher"), "--nproc_per_node=8"));
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"a\"],\"nodes\":0}"), WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "$.spec.nodes"));
}

END_TEST

/* The cluster of TF_CONFIG, without the places for addresses. */
/* As Kubeflow's operator tells its pods: the program is started once in each task, whatever it starts itself. */
START_TEST(programs_that_start_their_processes_themselves_have_what_torchrun_reads)
{
    ck_assert_int_eq(plan("pytorch",
                          "{\"argv\":[\"torchrun\",\"a.py\"],\"nodes\":2,\"launcher\":\"own\","
                          "\"processes_per_node\":4}"),
                     WEIR_OK);
    EXPECT_TOLD(1, "argv", "[\"torchrun\",\"a.py\"]");
    EXPECT_TOLD(1, "meet.launcher", "[]");
    EXPECT_TOLD(1, "env.RANK", "1");
    EXPECT_TOLD(1, "env.WORLD_SIZE", "8");
    EXPECT_TOLD(1, "env.LOCAL_RANK", NULL);
    EXPECT_TOLD(1, "env.PET_NNODES", "2");
    EXPECT_TOLD(1, "env.PET_NPROC_PER_NODE", "4");
    EXPECT_TOLD(1, "env.PET_NODE_RANK", "1");
    EXPECT_TOLD(1, "meet.env.MASTER_ADDR", "{{0|@address}}");
    EXPECT_TOLD(1, "meet.env.PET_MASTER_PORT", "{{0|@port}}");
    ck_assert_int_eq(
        plan("pytorch",
             "{\"argv\":[\"a\"],\"launcher\":\"own\",\"resources\":{\"accelerators\":8}}"),
        WEIR_OK);
    EXPECT_TOLD(0, "env.PET_NPROC_PER_NODE", "8");
    EXPECT_TOLD(0, "env.WORLD_SIZE", "1");
    ck_assert_int_eq(
        plan("pytorch", "{\"argv\":[\"a\"],\"launcher\":\"own\",\"nodes\":{\"min\":1,\"max\":3}}"),
        WEIR_OK);
    EXPECT_TOLD(2, "env.PET_NNODES", "1:3");
    EXPECT_TOLD(2, "env.PET_RDZV_BACKEND", "c10d");
    EXPECT_TOLD(2, "env.PET_RDZV_CONF", "is_host=false");
    EXPECT_TOLD(2, "env.PET_MAX_RESTARTS", "3");
    EXPECT_TOLD(2, "meet.env.PET_RDZV_ENDPOINT", "{{0|@address:@port}}");
    EXPECT_TOLD(2, "meet.env.MASTER_ADDR", NULL);
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"a\"],\"launcher\":\"mine\"}"), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(tensorflow_tasks_are_told_their_type_and_the_cluster)
{
    ck_assert_int_eq(plan("tensorflow", "{\"argv\":[\"a\"],\"workers\":3}"), WEIR_OK);
    ck_assert_uint_eq(n_launches, 3);
    EXPECT_TOLD(1, "meet.env.TF_CONFIG",
                "{\"cluster\":{\"worker\":[{{0-2|\"@address:@port\"|,}}]},"
                "\"task\":{\"type\":\"worker\",\"index\":1}}");
    EXPECT_TOLD(1, "meet.wait", "3");
    ck_assert_str_eq(launches[1].role, "worker");
    ck_assert_int_eq(plan("tensorflow", "{\"argv\":[\"a\"],\"workers\":2,\"parameter_servers\":1,"
                                        "\"evaluator\":true}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 5);
    static const char *const roles[] = {"worker", "server", "server", "parameter_server",
                                        "evaluator"};
    for (size_t i = 0; i < n_launches; i++) {
        ck_assert_str_eq(launches[i].role, roles[i]);
        ck_assert_int_eq(launches[i].rank, (int64_t)i);
        EXPECT_TOLD(i, "meet.wait", "4");
    }
    EXPECT_TOLD(4, "meet.env.TF_CONFIG",
                "{\"cluster\":{\"chief\":[{{0-0|\"@address:@port\"|,}}],"
                "\"worker\":[{{1-2|\"@address:@port\"|,}}],\"ps\":[{{3-3|\"@address:@port\"|,}}]},"
                "\"task\":{\"type\":\"evaluator\",\"index\":0}}");
    ck_assert_int_eq(launches[3].cpu_millis, 0);
    ck_assert_int_eq(
        plan("tensorflow", "{\"argv\":[\"a\"],\"workers\":1000,\"parameter_servers\":1000}"),
        WEIR_ERR_LIMIT);
}

END_TEST

START_TEST(a_job_says_who_is_asked_to_end)
{
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"]}"), WEIR_OK);
    EXPECT_TOLD(0, "kill_mode", NULL);
    ck_assert_int_eq(plan("pytorch", "{\"argv\":[\"a\"],\"kill_mode\":\"control-group\"}"),
                     WEIR_OK);
    EXPECT_TOLD(0, "kill_mode", "control-group");
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"kill_mode\":\"process\"}"),
                     WEIR_ERR_INVALID);
}

END_TEST

START_TEST(the_first_task_of_mpi_launches_and_the_others_serve)
{
    ck_assert_int_eq(plan("mpi", "{\"argv\":[\"./a\",\"1\"],\"files\":{\"a\":\"#!\"},\"nodes\":2,"
                                 "\"processes_per_node\":3,\"mpi\":\"mpich\"}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 2);
    ck_assert_str_eq(launches[0].role, "worker");
    ck_assert_str_eq(launches[1].role, "server");
    EXPECT_TOLD(0, "argv", "[\"./a\",\"1\"]");
    EXPECT_TOLD(0, "meet.launcher",
                "[\"weir-worker\",\"mpi-run\",\"--mpi=mpich\",\"--processes=6\",\"--\"]");
    WEIR_AUTO(weir_json_auto_free) json_t *files = json_loads(told(0, "files"), 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(files, "mpi.hosts.openmpi")),
                     "rank-0 slots=3\nrank-1 slots=3\n");
    ck_assert_str_eq(json_string_value(json_object_get(files, "mpi.hosts.mpich")),
                     "rank-0:3\nrank-1:3\n");
    EXPECT_TOLD(1, "argv", "[\"weir-worker\",\"mpi-serve\"]");
    EXPECT_TOLD(1, "meet", NULL);
    EXPECT_TOLD(1, "files.a", "#!");
    ck_assert_int_eq(plan("mpi", "{\"argv\":[\"a\"],\"network\":\"none\"}"), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(plan("mpi", "{\"argv\":[\"a\"],\"image\":\"x.tar\"}"), WEIR_ERR_UNSUPPORTED);
    ck_assert_int_eq(plan("mpi", "{\"argv\":[\"a\"],\"mpi\":\"lam\"}"), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_batch_script_runs_on_the_first_node_and_the_others_serve)
{
    ck_assert_int_eq(plan("sbatch",
                          "{\"argv\":[\"/bin/bash\",\"x.sh\"],\"nodes\":2,\"tasks_per_node\":3,"
                          "\"tasks\":5,\"cpus\":6,\"cpus_per_task\":2,\"gpus_per_task\":1,"
                          "\"job_name\":\"a b\",\"resources\":{\"accelerators\":3},"
                          "\"memory_max_bytes\":1073741824,\"save_signal\":\"USR1\"}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 2);
    ck_assert_str_eq(launches[0].role, "worker");
    ck_assert_str_eq(launches[1].role, "server");
    EXPECT_TOLD(0, "argv", "[\"/bin/bash\",\"x.sh\"]");
    EXPECT_TOLD(
        0, "meet.launcher",
        "[\"weir-worker\",\"mpi-run\",\"--mpi=none\",\"--\",\"weir-worker\",\"sbatch-run\","
        "\"--hosts={{0-1|@address|,}}\",\"--tasks=5\",\"--tasks-per-node=3\","
        "\"--restarts={{restarts}}\",\"--signal-for=steps\",\"--save-signal=USR1\",\"--\"]");
    EXPECT_TOLD(1, "argv", "[\"weir-worker\",\"mpi-serve\",\"--pass-signals=steps\"]");
    EXPECT_TOLD(1, "meet.wait", "2");
    static const char *const variables[][2] = {{"SLURM_NNODES", "2"},
                                               {"SLURM_JOB_NUM_NODES", "2"},
                                               {"SLURM_NTASKS", "5"},
                                               {"SLURM_NPROCS", "5"},
                                               {"SLURM_NTASKS_PER_NODE", "3"},
                                               {"SLURM_CPUS_PER_TASK", "2"},
                                               {"SLURM_CPUS_ON_NODE", "6"},
                                               {"SLURM_GPUS_ON_NODE", "3"},
                                               {"SLURM_GPUS", "6"},
                                               {"SLURM_MEM_PER_NODE", "1024"},
                                               {"SLURM_JOB_NAME", "a b"},
                                               {"SLURM_ARRAY_TASK_ID", NULL},
                                               {"SLURM_JOB_CPUS_PER_NODE", "6(x2)"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(variables); i++) {
        EXPECT_TOLD(i % 2, weir_arena_printf(&arena, "env.%s", variables[i][0]), variables[i][1]);
    }
    static const char *const bad[] = {"\"tasks\":2,\"nodes\":3",
                                      "\"tasks\":9,\"nodes\":2,\"tasks_per_node\":4",
                                      "\"array\":\"0-3\",\"nodes\":2",
                                      "\"parallel\":2",
                                      "\"array\":\"3-\"",
                                      "\"image\":\"x\"",
                                      "\"nodes\":2,\"network\":\"none\"",
                                      "\"signal_for\":\"x\""};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_ne(plan("sbatch", weir_arena_printf(&arena, "{\"argv\":[\"a\"],%s}", bad[i])),
                         WEIR_OK);
    }
}

END_TEST

START_TEST(parts_of_a_batch_script_have_the_numbers_that_it_says)
{
    static const char *const numbers[] = {"1", "3", "5", "7", "9"};
    ck_assert_int_eq(plan("sbatch", "{\"argv\":[\"a\"],\"array\":\"9,1,5-9:2,3\",\"parallel\":2}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 5);
    ck_assert(request.is_array);
    ck_assert_int_eq(request.parallel, 2);
    for (size_t i = 0; i < n_launches; i++) {
        ck_assert_str_eq(launches[i].role, "worker");
        EXPECT_TOLD(i, "env.SLURM_ARRAY_TASK_ID", numbers[i]);
        EXPECT_TOLD(i, "env.SLURM_ARRAY_TASK_COUNT", "5");
        EXPECT_TOLD(i, "env.SLURM_ARRAY_TASK_MIN", "1");
        EXPECT_TOLD(i, "env.SLURM_ARRAY_TASK_MAX", "9");
        EXPECT_TOLD(i, "env.SLURM_ARRAY_TASK_STEP", "2");
        EXPECT_TOLD(i, "env.WEIR_ARRAY_INDEX", weir_arena_printf(&arena, "%zu", i));
    }
    ck_assert_int_eq(plan("sbatch", "{\"argv\":[\"a\"],\"array\":\"1,2,4\"}"), WEIR_OK);
    EXPECT_TOLD(0, "env.SLURM_ARRAY_TASK_STEP", NULL); /* they have none */
}

END_TEST

START_TEST(spark_has_a_master_and_a_worker_on_each_task)
{
    ck_assert_int_eq(plan("spark", "{\"argv\":[\"app.py\",\"1\"],\"nodes\":2,\"cpu_slots\":3,"
                                   "\"executor_memory\":\"512m\"}"),
                     WEIR_OK);
    ck_assert_uint_eq(n_launches, 2);
    ck_assert_str_eq(launches[1].role, "server");
    EXPECT_TOLD(
        1, "meet.launcher",
        "[\"./weir-spark\",\"1\",\"{{1|@address}}\",\"{{0|@address}}\",\"{{0|@port}}\",\"3\","
        "\"512m\"]");
    EXPECT_TOLD(1, "meet.wait", "2");
    ck_assert_ptr_nonnull(strstr(told(0, "meet.files"), "spark-submit"));
    static const char *const bad[] = {"1", "g", "1gb", "-1g", "1 g", "12345678g"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(plan("spark", weir_arena_printf(&arena,
                                                         "{\"argv\":[\"a\"],"
                                                         "\"executor_memory\":\"%s\"}",
                                                         bad[i])),
                         WEIR_ERR_INVALID);
    }
}

END_TEST

START_TEST(tasks_of_an_array_are_alone_and_numbered)
{
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"array\":1000,\"parallel\":8}"), WEIR_OK);
    ck_assert_uint_eq(n_launches, 1000);
    ck_assert(request.is_array);
    ck_assert_int_eq(request.parallel, 8);
    ck_assert_int_eq(launches[999].rank, 999);
    EXPECT_TOLD(999, "env.WEIR_ARRAY_INDEX", "999");
    EXPECT_TOLD(999, "env.WEIR_ARRAY_SIZE", "1000");
    EXPECT_TOLD(999, "env.JOB_COMPLETION_INDEX", "999");
    EXPECT_TOLD(999, "env.WEIR_RANK", "0");
    EXPECT_TOLD(999, "env.WEIR_SIZE", "1");
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"]}"), WEIR_OK);
    ck_assert(!request.is_array);
    EXPECT_TOLD(0, "env.WEIR_ARRAY_INDEX", NULL);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"array\":2,\"tasks\":2}"),
                     WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"parallel\":2}"), WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"array\":1025}"), WEIR_ERR_INVALID);
}

END_TEST

START_TEST(a_task_has_the_cpus_that_are_said_and_weight_by_them)
{
    static const struct {
        const char *said;
        int64_t millis;
        const char *weight;
    } rows[] = {
        {"", 1000, "100"},
        {",\"cpus\":0.5", 500, "50"},
        {",\"cpus\":\"250m\"", 250, "25"},
        {",\"cpus\":8", 8000, "800"},
        {",\"cpus\":4096", 4096000, "10000"},
        {",\"cpus\":0.001", 1, "1"},
        {",\"cpus\":0", 0, "100"},
        {",\"cpu_slots\":3", 3000, "300"},
        {",\"cpu_slots\":0", 0, "100"},
        {",\"resources\":{\"cpus\":1.5}", 1500, "150"},
        {",\"cpu_slots\":3,\"cpus\":null", 3000, "300"},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(rows); i++) {
        const char *spec = weir_arena_printf(&arena, "{\"argv\":[\"a\"]%s}", rows[i].said);
        ck_assert_msg(plan("command", spec) == WEIR_OK, "%s: %s", spec, err.message);
        ck_assert_int_eq(launches[0].cpu_millis, rows[i].millis);
        EXPECT_TOLD(0, "cpu_weight", rows[i].weight);
    }
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"cpus\":1,\"cpu_slots\":1}"),
                     WEIR_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "Give one of the two: cpus"));
    ck_assert_int_eq(plan("command", "{\"argv\":[\"a\"],\"cpus\":\"0.0001\"}"), WEIR_ERR_INVALID);
    ck_assert_int_eq(plan("train", "{\"model\":\"lenet\",\"data\":\"/d\",\"workers\":3,"
                                   "\"elastic\":true}"),
                     WEIR_OK);
    ck_assert_int_eq(launches[0].cpu_millis, 3000);
    EXPECT_TOLD(0, "cpu_weight", "300");
}

END_TEST

static void setup(void)
{
    weir_arena_init(&arena, 0);
}

static void teardown(void)
{
    weir_arena_fini(&arena);
}

WEIR_TEST_MAIN_WITH("program", setup, teardown, torch_ranks_of_one_process_have_what_torchrun_gives,
                    a_script_of_the_folder_is_run_by_python_as_torchrun_does,
                    several_processes_and_elastic_gangs_go_through_torchrun,
                    programs_that_start_their_processes_themselves_have_what_torchrun_reads,
                    programs_that_start_their_processes_themselves_have_what_torchrun_reads,
                    tensorflow_tasks_are_told_their_type_and_the_cluster,
                    the_first_task_of_mpi_launches_and_the_others_serve,
                    a_job_says_who_is_asked_to_end,
                    a_batch_script_runs_on_the_first_node_and_the_others_serve,
                    parts_of_a_batch_script_have_the_numbers_that_it_says,
                    spark_has_a_master_and_a_worker_on_each_task,
                    tasks_of_an_array_are_alone_and_numbered,
                    a_task_has_the_cpus_that_are_said_and_weight_by_them)
