/* What people do by habit from other tools: wait, watch, scale, edit, several servers, the shell's completion; and
 * that nothing waits without a word. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"
#include "cli/core/wait.h"

#include <fcntl.h>
#include <sys/stat.h>

#define JOB  "0192aaaa-0000-7000-8000-00000000beef"
#define TASK "00000000-0000-4000-8000-0000000000a1"

static char home[160];

static void set_up(void)
{
    cli_open();
    (void)snprintf(home, sizeof home, "%s/home", callers.fixture.dir);
    ck_assert_int_eq(mkdir(home, 0700), 0);
    ck_assert_int_eq(chdir(home), 0);
    (void)setenv("XDG_CONFIG_HOME", home, 1);
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    cli_close();
}

static void answer(const char *path, const char *body)
{
    cli.script_path = path;
    cli.script_method = "GET";
    cli.script_status = 200;
    cli.script_body = body;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        n++;
    }
    return n;
}

/* ---- waiting ------------------------------------------------------------------------------------ */

START_TEST(a_reason_is_told_once_and_each_other_one_when_it_comes)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    struct cli_call call = {.arena = &arena};
    static const char *const reasons[] = {"",        "no room", "no room", "",   "no room",
                                          "a limit", "no room", NULL,      NULL, "no room"};
    FILE *err = tmpfile();
    int saved = dup(STDERR_FILENO);
    ck_assert(dup2(fileno(err), STDERR_FILENO) >= 0);
    struct cli_wait wait = {.what = "job train"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(reasons); i++) {
        cli_wait_tell(&call, &wait, reasons[i]);
    }
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    cli_take(err, cli.err, sizeof cli.err);
    ck_assert_str_eq(cli.err, "weir: job train waits: no room\nweir: job train waits: a limit\n"
                              "weir: job train waits: no room\nweir: job train waits: no room\n");
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(what_is_waited_for_may_be_a_version_an_ion_or_an_end)
{
    static const char versions[] = "{\"items\":[{\"version\":3},{\"version\":2}]}";
    answer(API "/datasets", versions);
    EXPECT_EXIT(0, "wait", "dataset-version", "faces@3", "--timeout=1ms");
    ck_assert_str_eq(cli.out, "dataset-version faces@3 is FROZEN\n");
    EXPECT_EXIT(0, "wait", "dataset-version/faces");
    EXPECT_EXIT(9, "wait", "dataset-version/faces@4", "--timeout=1ms");
    ck_assert_ptr_nonnull(strstr(cli.err, "waits: the newest version is 3"));
    EXPECT_EXIT(2, "wait", "dataset-version/faces@x");
    answer(API "/ions", "{\"pipelines\":[{\"type\":\"prediction\",\"state\":\"SERVING\"}]}");
    EXPECT_EXIT(0, "wait", "ion", "i", "--for", "serving");
    EXPECT_EXIT(9, "wait", "ion", "i", "--for", "deleted", "--timeout=1ms");
    cli.script_path = NULL;
    EXPECT_EXIT(0, "wait", "ion", "none", "--for=delete");
    ck_assert_str_eq(cli.out, "ion none is not there\n");
    EXPECT_EXIT(0, "wait", "job/none", "--for=deleted");
}

END_TEST

/* Each command that waits, and the answer that makes it: none of them is silent. */
START_TEST(all_that_wait_say_why)
{
    static const struct {
        const char *words[9], *path, *body;
        int status;
    } waits[] = {
        {{"wait", JOB, "--timeout=1ms"},
         API "/jobs",
         "{\"name\":\"t\",\"state\":\"PENDING\",\"reason\":\"no room\"}",
         9},
        {{"wait", "service/aaaaaaaaaaaaaaaaaaaaaaaaaa", "--timeout=1ms"},
         API "/services",
         "{\"items\":[],\"id\":\"aaaaaaaaaaaaaaaaaaaaaaaaaa\",\"name\":\"s\",\"state\":"
         "\"STARTING\","
         "\"why\":\"no room\"}",
         4},
        {{"rollout", "status", "d", "--timeout=1ms"},
         API "/deployments",
         "{\"name\":\"d\",\"state\":\"DEPLOYING\",\"is_settled\":false,\"replicas\":[{\"reason\":"
         "null},"
         "{\"reason\":\"no room\"}]}",
         9},
        {{"wait", "deployment", "d", "--timeout=1ms"},
         API "/deployments",
         "{\"name\":\"d\",\"state\":\"DEPLOYING\",\"is_settled\":false,\"reason\":\"no room\"}",
         9},
        {{"wait", "node/n", "--timeout=1ms"},
         API "/nodes",
         "{\"name\":\"n\",\"state\":\"down\",\"unhealthy\":\"no room\"}",
         9},
        {{"wait", "ion/i", "--for=condition=ready", "--timeout=1ms"},
         API "/ions",
         "{\"pipelines\":[{\"type\":\"training\",\"state\":\"RUNNING\",\"state_reason\":\"no "
         "room\"},"
         "{\"type\":\"prediction\",\"state\":\"WAITING\"}]}",
         9},
        {{"wait", "notebook/aaaaaaaaaaaaaaaaaaaaaaaaaa", "--timeout=1ms"},
         API "/services",
         "{\"items\":[]}",
         4},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(waits); i++) {
        answer(waits[i].path, waits[i].body);
        ck_assert_int_eq(cli_run(waits[i].words), waits[i].status);
        ck_assert_msg(waits[i].status == 4 || strstr(cli.err, " waits: no room\n") != NULL, "%s",
                      cli.err);
    }
}

END_TEST

START_TEST(a_wait_ends_as_what_is_waited_for)
{
    answer(API "/deployments", "{\"name\":\"d\",\"state\":\"SERVING\",\"is_settled\":true}");
    EXPECT_EXIT(0, "wait", "deployment/d");
    ck_assert_str_eq(cli.out, "deployment d is SERVING\n");
    answer(API "/deployments", "{\"state\":\"FAILED\",\"is_settled\":true,\"reason\":\"broken\"}");
    EXPECT_REFUSED(9, "deployment d is FAILED: broken", "wait", "deployment", "d");
    cli.script_status = 404;
    EXPECT_EXIT(4, "wait", "deployment/d", "--timeout=100ms");
    ck_assert_ptr_nonnull(strstr(cli.err, "deployment d waits: it is not there yet\n"));
    answer(API "/jobs", "{\"name\":\"t\",\"state\":\"SUCCEEDED\"}");
    EXPECT_EXIT(0, "wait", JOB);
    EXPECT_REFUSED(5, "is SUCCEEDED and will not be RUNNING", "wait", JOB, "--for", "RUNNING");
    EXPECT_EXIT(0, "wait", JOB, "--for", "succeeded");
    EXPECT_REFUSED(2, "--for dunno: expected one of", "wait", JOB, "--for", "dunno");
    EXPECT_REFUSED(2, "--timeout: expected a time", "wait", JOB, "--timeout", "soon");
    EXPECT_REFUSED(7, "can be waited for of a user", "wait", "user/ann");
    EXPECT_REFUSED(2, "there is no noun", "wait", "thing", "x");
}

END_TEST

/* ---- projects ----------------------------------------------------------------------------------- */

/* Each command that makes something of a project takes --project; what others make belongs to no project, or to that
 * of something they name. A new command belongs into one of the two lists. */
START_TEST(whatever_makes_something_takes_the_project_it_is_for)
{
    static const char *const makes[] = {"create", "run",   "submit",  "start",   "push",
                                        "import", "batch", "apply",   "dataset", "secret",
                                        "put",    "set",   "silence", "rule",    NULL};
    static const char *const of_no_project[] = {"project",
                                                "role",
                                                "user",
                                                "group",
                                                "token",
                                                "alert receiver",
                                                "ion run",
                                                "service start",
                                                "runs set",
                                                "model set",
                                                "queue set",
                                                "cluster set",
                                                "artifact put",
                                                "snapshot create",
                                                "lineage dataset",
                                                NULL};
    size_t n = 0;
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *command = cli_commands[i];
        const char *space = strchr(command->name, ' ');
        const char *verb = space != NULL ? space + 1 : command->name;
        bool is_maker = false, is_exempt = false;
        for (size_t k = 0; makes[k] != NULL; k++) {
            is_maker = is_maker || strcmp(makes[k], verb) == 0;
        }
        for (size_t k = 0; of_no_project[k] != NULL; k++) {
            is_exempt = is_exempt || strcmp(of_no_project[k], command->name) == 0;
        }
        if (is_maker && !is_exempt) {
            ck_assert_msg(weir_options_find(command->options, command->n_options, "project") !=
                              NULL,
                          "weir %s takes no --project", command->name);
            n++;
        }
    }
    ck_assert_uint_ge(n, 12);
}

END_TEST

/** A person who may submit in one project only. */
static void be_of_one_project(char bearer[BEARER_BYTES])
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"blue\"}");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"red\"}");
    make_caller("bea", "member", ",\"project\":\"blue\"", bearer);
    EXPECT(200, "PUT " API "/projects/blue/members/user/bea\n\n{\"role\":\"ml-engineer\"}");
}

START_TEST(who_has_one_project_need_not_name_it)
{
    char bearer[BEARER_BYTES];
    be_of_one_project(bearer);
    const char *token = bearer + strlen("Bearer ");
    struct weir_error err;
    must(weir_file_write_atomic("train.py", "#\n", 2, 0600, &err), &err);
    must(weir_file_write_atomic("value", "x\n", 2, 0600, &err), &err);
    EXPECT_EXIT(0, "job", "run", "-ojson", "--token", token, "--", "python3", "train.py");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "project")), "blue");
    EXPECT_EXIT(0, "secret", "set", "key", "--file", "value", "--token", token);
    EXPECT_OUT("jobs of project blue get it");
    EXPECT_EXIT(0, "secret", "list", "--token", token);
    EXPECT_OUT("key");
    EXPECT_EXIT(0, "dataset", "create", "pictures", "-ojson", "--token", token);
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "project")), "blue");
    EXPECT_REFUSED(6, "", "get", "queues", "blue", "--token", "weir_none");
}

END_TEST

START_TEST(who_has_several_is_asked_which)
{
    char bearer[BEARER_BYTES];
    be_of_one_project(bearer);
    make_caller("eve", "member", "", bearer);
    EXPECT(200, "PUT " API "/projects/blue/members/user/eve\n\n{\"role\":\"ml-engineer\"}");
    EXPECT(200, "PUT " API "/projects/red/members/user/eve\n\n{\"role\":\"ml-engineer\"}");
    const char *token = bearer + strlen("Bearer ");
    EXPECT_REFUSED(2, "which project? You may submit jobs in blue, red", "job", "run", "--token",
                   token, "--", "true");
    EXPECT_EXIT(0, "job", "run", "--token", token, "--project", "red", "--", "true");
    EXPECT(200, "PUT " API "/projects/default/members/user/eve\n\n{\"role\":\"ml-engineer\"}");
    EXPECT_EXIT(0, "job", "run", "-ojson", "--token", token, "--", "true");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "project")), "default");
}

END_TEST

/* ---- several servers ------------------------------------------------------------------------------ */

START_TEST(a_server_is_kept_used_and_forgotten)
{
    char token[96], file[200], server[64];
    struct stat info;
    (void)snprintf(token, sizeof token, "%s", getenv("WEIR_TOKEN"));
    (void)snprintf(server, sizeof server, "%s", cli.url);
    (void)snprintf(file, sizeof file, "%s/weir/contexts.json", home);
    (void)unsetenv("WEIR_SERVER");
    (void)unsetenv("WEIR_TOKEN");
    (void)unsetenv("WEIR_STATE");
    EXPECT_REFUSED(2, "as whom?", "login", server);
    EXPECT_EXIT(0, "login", server, "--token", token);
    EXPECT_OUT("127.0.0.1: you are ");
    ck_assert_int_eq(stat(file, &info), 0);
    ck_assert_int_eq((int)(info.st_mode & 0777), 0600);
    EXPECT_EXIT(0, "get", "projects"); /* by the context in use */
    EXPECT_EXIT(0, "login", server, "--token", token, "--context", "lab");
    EXPECT_EXIT(0, "context", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "items")), 2);
    EXPECT_EXIT(0, "context", "use", "127.0.0.1");
    EXPECT_EXIT(0, "get", "projects", "--context", "lab");
    EXPECT_REFUSED(4, "there is no context \"lub\"; there are 127.0.0.1, lab", "get", "projects",
                   "--context", "lub");
    /* A flag wins; a server that is no context's gets no token of one. */
    EXPECT_REFUSED(9, "127.0.0.1:1:", "get", "projects", "--server", "http://127.0.0.1:1");
    EXPECT_REFUSED(6, "", "get", "projects", "--token", "weir_wrong");
    EXPECT_REFUSED(2, "names a user before its host", "login", "http://lab:secret@127.0.0.1:1",
                   "--token", "weir_x");
    ck_assert_ptr_null(strstr(cli.err, "secret"));
    EXPECT_REFUSED(2, "expected http", "get", "projects", "--server",
                   "http://127.0.0.1:1/\r\nX: y");
    EXPECT_EXIT(0, "login", "--env");
    EXPECT_OUT("export MLFLOW_TRACKING_URI='http://127.0.0.1:");
    EXPECT_EXIT(0, "login", "--env", "--project", "default", "-ojson");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "WEIR_TOKEN")), token);
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(cli.json, "MLFLOW_TRACKING_URI")), "/p/default"));
    /* What is said in the command wins over what the environment says, which may be of another server. */
    (void)setenv("WEIR_SERVER", "http://127.0.0.1:1", 1);
    (void)setenv("WEIR_TOKEN", "weir_of_that", 1);
    EXPECT_EXIT(0, "get", "projects", "--context", "lab");
    EXPECT_EXIT(0, "logout", "lab");
    (void)setenv("WEIR_SERVER", server, 1);
    (void)unsetenv("WEIR_TOKEN");
    EXPECT_EXIT(0, "login", server, "--token", token, "--context", "lab");
    EXPECT_EXIT(0, "logout", "lab");
    ck_assert_str_eq(cli.out, "lab: logged out\n"); /* not the first that has this server */
    (void)unsetenv("WEIR_SERVER");
    EXPECT_EXIT(0, "context", "use", "127.0.0.1");
    EXPECT_EXIT(0, "logout");
    ck_assert_str_eq(cli.out, "127.0.0.1: logged out\n");
    EXPECT_REFUSED(4, "logged in to no server", "logout");
    EXPECT_EXIT(0, "login", server, "--token", token);
    ck_assert_int_eq(chmod(file, 0640), 0);
    EXPECT_REFUSED(6, "others may read it: chmod 600 it", "get", "projects");
}

END_TEST

/* ---- the shell ------------------------------------------------------------------------------------- */

START_TEST(what_may_stand_next_is_offered)
{
    static const struct {
        const char *words[6], *wanted; /* a line of it */
    } typed[] = {
        {{"complete", "jo"}, "job\n"},
        {{"complete", "job", "can"}, "cancel\n"},
        {{"complete", "job", "run", "--gpu-m"}, "--gpu-memory\n"},
        {{"complete", "get", "dep"}, "deployments\n"},
        {{"complete", "get", "jobs", "-o", "w"}, "wide\n"},
        {{"complete", "describe", "job", ""}, "\nsleeper\n"},
        {{"complete", "job", "cancel", "sl"}, "sleeper\n"},
        {{"complete", "get", "tasks", "sl"}, "sleeper\n"},
        {{"complete", "job", "run", "--project", "def"}, "default\n"},
        {{"complete", "token", "re"}, "revoke\n"},
        {{"complete", "completion", "b"}, "bash\n"},
        {{"complete", "dataset", "fr"}, "freeze\n"},
    };

    EXPECT_EXIT(0, "job", "run", "another", "--", "true");
    EXPECT_EXIT(0, "job", "run", "sleeper", "--", "true");
    EXPECT_EXIT(0, "job", "run", "another", "--", "true");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(typed); i++) {
        ck_assert_int_eq(cli_run(typed[i].words), 0);
        ck_assert_msg(strstr(cli.out, typed[i].wanted) != NULL, "%zu: %s", i, cli.out);
        ck_assert_str_eq(cli.err, "");
    }
    EXPECT_EXIT(0, "complete", "complet");
    ck_assert_str_eq(cli.out, "completion\n"); /* what scripts call is not offered */
    (void)setenv("WEIR_SERVER", "http://127.0.0.1:1", 1);
    EXPECT_EXIT(0, "complete", "job", "cancel", "");
    ck_assert_str_eq(cli.out, "");
    ck_assert_str_eq(cli.err, "");
    EXPECT_EXIT(0, "completion", "bash");
    EXPECT_OUT("complete -o default");
    EXPECT_EXIT(0, "completion", "zsh");
    EXPECT_OUT("#compdef weir");
    EXPECT_REFUSED(7, "bash and one for zsh", "completion", "fish");
}

END_TEST

/* ---- get, delete, edit, diff ------------------------------------------------------------------------ */

#define DOOR                                                                                       \
    "{\"kind\":\"ion\",\"name\":\"door\",\"pipelines\":[{\"name\":\"learn\",\"type\":"             \
    "\"training\","                                                                                \
    "\"dataset\":\"staff\",\"model\":\"face-embed\"}]}"

START_TEST(several_nouns_and_names_with_their_noun_are_taken)
{
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":4}");
    place_job(&(struct placed_job){
        .id = JOB, .task = TASK, .kind = "train", .node = "n", .run = "run-1"});
    EXPECT_EXIT(0, "get", "jobs,projects", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "jobs")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "projects")), 1);
    EXPECT_EXIT(0, "get", "jobs,projects");
    ck_assert_uint_eq(count(cli.out, "NAME"), 2);
    EXPECT_EXIT(0, "get", "jobs", "-oname");
    ck_assert_str_eq(cli.out, "job/" JOB "\n");
    EXPECT_EXIT(0, "get", "job/" JOB, "-ojson");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "id")), JOB);
    EXPECT_EXIT(0, "describe", "job/0000beef");
    EXPECT_EXIT(0, "describe", "project", "default");
    EXPECT_EXIT(0, "get", "job/" JOB, "-oname");
    EXPECT_REFUSED(2, "of which job?", "get", "jobs,tasks");
    EXPECT_REFUSED(2, "several nouns take no name", "get", "jobs,nodes", "x");
    EXPECT_REFUSED(2, "there is no noun", "get", "jobs,things");
}

END_TEST

START_TEST(what_cannot_be_deleted_says_what_is_done_instead)
{
    EXPECT_EXIT(0, "user", "create", "sam");
    EXPECT_EXIT(0, "group", "create", "g1");
    EXPECT_EXIT(0, "group", "create", "g2");
    EXPECT_EXIT(0, "delete", "group/g1", "user/sam");
    ck_assert_str_eq(cli.out, "group/g1 deleted\nuser/sam deleted\n");
    EXPECT_EXIT(0, "delete", "groups", "g2", "-ojson");
    EXPECT_REFUSED(2, "which model? weir delete model NAME", "delete", "model");
    EXPECT_REFUSED(7, "`weir node leave`", "delete", "node", "n");
    EXPECT_REFUSED(7, "`weir project revoke`", "delete", "project/default");
    EXPECT_REFUSED(2, "there is no noun", "delete", "nosuch", "x");
}

END_TEST

START_TEST(a_version_of_a_dataset_is_fetched_whole_or_not_at_all)
{
    char text[8];
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT_REFUSED(4, "`weir dataset freeze staff` makes one", "dataset", "get", "staff", "out");
    EXPECT(200, "PUT " API "/datasets/staff/files/ann/1.jpg\n\none");
    EXPECT(200, "PUT " API "/datasets/staff/files/bob/1.jpg\n\ntwo");
    EXPECT(200, "POST " API "/datasets/staff/versions");
    EXPECT_EXIT(0, "dataset", "get", "staff@v1", "out");
    EXPECT_OUT("2 files in out, 2 of them fetched");
    FILE *file = fopen("out/bob/1.jpg", "r+");
    ck_assert_ptr_nonnull(file);
    cli_take(file, text, sizeof text);
    ck_assert_str_eq(text, "two");
    ck_assert_int_eq(truncate("out/bob/1.jpg", 1), 0); /* as a broken fetch may leave it */
    EXPECT_EXIT(0, "dataset", "get", "staff", "out");
    EXPECT_OUT("2 files in out, 1 of them fetched");
    EXPECT_REFUSED(4, "no version \"v9\"", "dataset", "get", "staff@v9", "out");
    EXPECT_REFUSED(2, "say `weir dataset get NAME DIR`", "dataset", "download", "staff");
}

END_TEST

START_TEST(an_ion_is_compared_and_edited)
{
    struct weir_error err;
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    EXPECT(200, "PUT " API "/datasets/staff/files/ann/1.jpg\n\nx");
    EXPECT(200, "POST " API "/datasets/staff/versions");
    must(weir_file_write_atomic("door.yaml", DOOR, strlen(DOOR), 0600, &err), &err);
    EXPECT_EXIT(1, "diff", "-f", "door.yaml"); /* all of it is new */
    EXPECT_OUT("+ $: {");
    EXPECT_EXIT(0, "apply", "-f", "door.yaml");
    EXPECT_EXIT(0, "diff", "-f", "door.yaml");
    (void)setenv("VISUAL", "sed -i s/staff/guests/", 1);
    EXPECT_REFUSED(4, "there is no ion", "edit", "nosuch");
    (void)setenv("VISUAL", "true", 1);
    EXPECT_EXIT(0, "edit", "door");
    ck_assert_str_eq(cli.out, "nothing was changed\n");
    (void)setenv("VISUAL", "false", 1);
    EXPECT_REFUSED(10, "nothing was changed", "edit", "ion/door");
    (void)setenv("VISUAL", "sed -i s/learn/study/", 1);
    EXPECT_EXIT(0, "edit", "door");
    EXPECT_OUT("ion/door applied, revision 2");
    EXPECT_EXIT(1, "diff", "-f", "door.yaml");
    EXPECT_OUT("- $.pipelines[0].name: \"study\"\n+ $.pipelines[0].name: \"learn\"\n");
}

END_TEST

/* ---- standard input ------------------------------------------------------------------------------- */

/* `weir job submit -f <(…)`: the name of a pipe. */
START_TEST(a_pipe_is_as_good_as_a_file)
{
    static const char job[] = "name: t\nkind: command\nspec:\n  argv: [\"true\"]\n";
    int ends[2];
    char path[32];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pipe(ends), 0);
        ck_assert_int_eq(write(ends[1], job, sizeof job - 1), sizeof job - 1);
        (void)close(ends[1]);
        int saved = dup(STDIN_FILENO);
        (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        (void)dup2(ends[0], STDIN_FILENO);
        EXPECT_EXIT(0, "job", "submit", "-f", i == 0 ? path : "-");
        (void)dup2(saved, STDIN_FILENO);
        (void)close(saved);
        (void)close(ends[0]);
    }
    EXPECT_EXIT(0, "get", "jobs", "-ojson");
    ck_assert_uint_eq(json_array_size(json_object_get(cli.json, "items")), 2);
}

END_TEST

WEIR_TEST_MAIN_WITH("habit", set_up, tear_down,
                    a_reason_is_told_once_and_each_other_one_when_it_comes, all_that_wait_say_why,
                    what_is_waited_for_may_be_a_version_an_ion_or_an_end,
                    a_wait_ends_as_what_is_waited_for,
                    whatever_makes_something_takes_the_project_it_is_for,
                    who_has_one_project_need_not_name_it, who_has_several_is_asked_which,
                    a_server_is_kept_used_and_forgotten, what_may_stand_next_is_offered,
                    several_nouns_and_names_with_their_noun_are_taken,
                    what_cannot_be_deleted_says_what_is_done_instead,
                    a_version_of_a_dataset_is_fetched_whole_or_not_at_all,
                    an_ion_is_compared_and_edited, a_pipe_is_as_good_as_a_file)
