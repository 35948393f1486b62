/* Commands that change something: what they send, what they print, and that -o json is JSON. */
#include "cli/core/cli_fixture.h"

#include "base/test_main.h"

#include <fcntl.h>
#include <sys/stat.h>

#define BLOB_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

static char folder[128];

static void set_up(void)
{
    cli_open();
    (void)snprintf(folder, sizeof folder, "%s/work", callers.fixture.dir);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chdir(folder), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    cli_close();
}

static void write_file(const char *name, const char *text)
{
    struct weir_error err;
    must(weir_file_write_atomic(name, text, strlen(text), 0600, &err), &err);
}

/** A member of what the last command printed as JSON, as text; "" where there is none. */
static const char *printed(const char *member)
{
    const char *text = json_string_value(json_object_get(cli.json, member));
    return text != NULL ? text : "";
}

START_TEST(users_are_made_changed_and_deleted)
{
    EXPECT_EXIT(0, "user", "create", "sam", "--role", "ml-engineer", "-ojson");
    ck_assert_str_eq(printed("role"), "ml-engineer");
    EXPECT_EXIT(0, "user", "role", "sam", "viewer", "-ojson");
    ck_assert_str_eq(printed("role"), "viewer");
    EXPECT_EXIT(0, "user", "disable", "sam", "-ojson");
    ck_assert(json_is_true(json_object_get(cli.json, "is_disabled")));
    EXPECT_EXIT(0, "user", "enable", "sam");
    EXPECT_EXIT(0, "user", "delete", "sam");
    ck_assert_str_eq(cli.out, "sam: deleted\n");
    EXPECT_REFUSED(4, "sam", "user", "delete", "sam");
    EXPECT_REFUSED(5, "admin", "user", "disable", "ann");
}

END_TEST

START_TEST(a_tokens_secret_is_printed_once)
{
    EXPECT_EXIT(0, "token", "create", "ci", "--role", "ml-engineer", "--expires-days", "2",
                "-ojson");
    char secret[64], id[64];
    (void)snprintf(secret, sizeof secret, "%s", printed("secret"));
    (void)snprintf(id, sizeof id, "%s", printed("id"));
    int64_t expires_ms = 0;
    ck_assert_int_eq(weir_time_parse(printed("expires_ms"), &expires_ms), WEIR_OK);
    int64_t days_2 = (int64_t)2 * 24 * 3600 * 1000;
    ck_assert_int_le(llabs((long long)(expires_ms - weir_time_ms() - days_2)), 600000);
    EXPECT_EXIT(0, "get", "projects", "--token", secret);
    EXPECT_REFUSED(6, "needs the right to create projects", "project", "create", "p2", "--token",
                   secret);
    EXPECT_EXIT(0, "token", "revoke", id + strlen(id) - 8, "-ojson"); /* as a table shows it */
    ck_assert(json_is_true(json_object_get(cli.json, "revoked")));
    EXPECT_REFUSED(6, "", "get", "projects", "--token", secret);
}

END_TEST

START_TEST(a_node_is_drained_marked_and_joined_by_one_command_each)
{
    EXPECT(204, "PUT " API "/nodes/n\n\n{\"cpu_slots\":1}");
    EXPECT_EXIT(0, "node", "drain", "n");
    ck_assert_ptr_nonnull(strstr(cli.out, "n: ready, takes no new tasks"));
    EXPECT_EXIT(0, "node", "resume", "n");
    ck_assert_ptr_nonnull(strstr(cli.out, "not draining"));
    EXPECT_EXIT(0, "node", "label", "n", "zone=a", "disk=nvme", "-o", "json");
    EXPECT_EXIT(0, "node", "label", "n", "disk-", "-o", "json");
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(cli.json, "labels"), "zone")), "a");
    ck_assert_uint_eq(json_object_size(json_object_get(cli.json, "labels")), 1);
    EXPECT_EXIT(0, "node", "taint", "n", "team=vision:NoSchedule", "-o", "json");
    const json_t *taint = json_array_get(json_object_get(cli.json, "taints"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(taint, "value")), "vision");
    EXPECT_EXIT(0, "node", "taint", "n", "team-", "-o", "json");
    ck_assert(json_is_null(json_object_get(cli.json, "taints")));
    EXPECT_REFUSED(2, "KEY=VALUE", "node", "label", "n", "zone");
    EXPECT_REFUSED(2, "NoSchedule", "node", "taint", "n", "zone");
    EXPECT_REFUSED(4, "\"m\"", "node", "drain", "m");
    EXPECT_EXIT(0, "node", "drain", "n", "--for", "4h");
    ck_assert_ptr_nonnull(strstr(cli.out, "n: ready, not draining"));
    ck_assert_ptr_nonnull(strstr(cli.out, "; closed from 20"));
    EXPECT_EXIT(0, "node", "resume", "n", "-o", "json");
    ck_assert(json_is_null(json_object_get(cli.json, "closed_from_ms")));
    EXPECT_REFUSED(2, "2026-01-31T10:00:00Z", "node", "drain", "n", "--at", "noon");
    EXPECT_REFUSED(2, "--for", "node", "drain", "n", "--for", "0");
    EXPECT_REFUSED(7, "--evict", "node", "drain", "n", "--for", "4h", "--evict");
    EXPECT_EXIT(0, "reserve", "course", "--nodes", "n", "--for", "4h", "--project", "default");
    ck_assert_ptr_nonnull(strstr(cli.out, "course: nodes n for project default, from 20"));
    EXPECT_EXIT(0, "get", "reservations");
    ck_assert_ptr_nonnull(strstr(cli.out, "course"));
    EXPECT_REFUSED(5, "course", "reserve", "other", "--nodes", "n", "--for", "4h", "--project",
                   "default");
    EXPECT_REFUSED(5, "1 CPUs too few", "reserve", "other", "--cpus", "1", "--for", "4h",
                   "--project", "default");
    EXPECT_REFUSED(2, "--for", "reserve", "other", "--cpus", "1", "--project", "default");
    EXPECT_REFUSED(2, "--from", "reserve", "other", "--from", "noon", "--for", "1h");
    EXPECT_REFUSED(2, "for whom", "reserve", "other", "--cpus", "1", "--for", "4h");
    EXPECT_EXIT(0, "delete", "reservation", "course");
    EXPECT_EXIT(0, "node", "drain", "n", "--evict", "-o", "json");
    ck_assert(json_is_true(json_object_get(cli.json, "is_draining")));
    EXPECT_EXIT(0, "node", "token", "--node", "m");
    ck_assert_ptr_nonnull(strstr(cli.out, "weir node join http"));
    EXPECT_EXIT(0, "describe", "node", "n");
}

END_TEST

START_TEST(a_login_link_is_printed_alone)
{
    EXPECT_EXIT(0, "login");
    ck_assert_int_eq(strncmp(cli.out, cli.url, strlen(cli.url)), 0);
    ck_assert_ptr_eq(strchr(cli.out, '\n'), cli.out + strlen(cli.out) - 1);
    EXPECT_EXIT(0, "login", "-ojson");
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "expires_s")), 900);
    EXPECT_EXIT(0, "project", "create", "lab", "--description", "for Türen", "-ojson");
    ck_assert_str_eq(printed("description"), "for Türen");
    EXPECT_REFUSED(4, "", "session", "end", "none");
}

END_TEST

static void apply_door(void)
{
    EXPECT(200, "POST " API "/datasets\n\n{\"name\":\"staff\"}");
    write_file(
        "door.yaml",
        "kind: ion\nname: door\npipelines:\n  - {name: learn, type: training, dataset: staff, "
        "model: face-embed}\n  - name: see\n    type: prediction\n    source: {kind: http}\n"
        "    gallery: {dataset: staff}\nlinks:\n  - {from: learn, to: see}\n");
    EXPECT_EXIT(0, "apply", "-f", "door.yaml");
    EXPECT_OUT("ion/door applied, revision 1\n");
}

START_TEST(a_file_is_applied)
{
    apply_door();
    EXPECT_EXIT(0, "apply", "-f", "door.yaml", "-ojson");
    ck_assert_str_eq(printed("name"), "door");
    write_file("bad.yaml", "kind: ion\nname: gate\npipelines: [{name: a, type: paint}]\n");
    EXPECT_REFUSED(2, "$.pipelines[0].type", "apply", "-f", "bad.yaml");
    write_file("empty.yaml", "");
    EXPECT_EXIT(2, "apply", "-f", "empty.yaml");
    write_file("broken.yaml", "name: [\n");
    EXPECT_EXIT(2, "apply", "-f", "broken.yaml");
    ck_assert_ptr_nonnull(strstr(cli.err, "broken.yaml"));
    EXPECT_REFUSED(4, "none.yaml", "apply", "-f", "none.yaml");
}

END_TEST

START_TEST(the_only_training_need_not_be_named)
{
    apply_door();
    EXPECT_EXIT(0, "trigger", "door");
    EXPECT_OUT("door/learn: training is wanted\n");
    write_file("two.yaml",
               "kind: ion\nname: two\npipelines:\n  - {name: a, type: training, dataset: staff, "
               "model: face-embed}\n  - {name: b, type: training, dataset: staff, model: "
               "face-embed}\n");
    EXPECT_EXIT(0, "apply", "-f", "two.yaml");
    EXPECT_REFUSED(2, "a, b: say which pipeline, `weir trigger two PIPELINE`", "trigger", "two");
    EXPECT_EXIT(0, "trigger", "two", "b");
    EXPECT_REFUSED(4, "gate", "trigger", "gate");
}

END_TEST

/* Whoever asks for JSON gets some, whatever the command. */
START_TEST(every_change_answers_in_json)
{
    apply_door();
    EXPECT(200, "PUT " API "/datasets/staff/files/ann/1.jpg\n\nx");
    EXPECT(200, "POST " API "/datasets/staff/versions");

    static const struct {
        const char *words[6];
    } changes[] = {
        {{"trigger", "door", "learn"}},
        {{"member", "deny", "door", "ann"}},
        {{"member", "remove", "door", "ann"}},
        {{"dataset", "create", "more"}},
        {{"dataset", "freeze", "staff"}},
        {{"dataset", "remove", "staff", "ann", "1.jpg"}},
        {{"dataset", "remove", "staff", "ann"}},
        {{"store", "usage"}},
        {{"store", "retain", "decisions=30d"}},
        {{"store", "sweep"}},
        {{"job", "run", "--no-files", "--", "true"}},
        {{"job", "cancel", "true"}},
        {{"job", "restart", "true"}},
        {{"delete", "ion", "door"}},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(changes); i++) {
        const char *const *w = changes[i].words;
        (void)setenv("WEIR_OUTPUT", "json", 1);
        int status = WEIR(w[0], w[1], w[2], w[3], w[4], w[5]);
        (void)unsetenv("WEIR_OUTPUT");
        ck_assert_msg(status == 0, "weir %s %s: %s", w[0], w[1], cli.err);
        ck_assert_msg(cli.json != NULL, "weir %s %s printed \"%s\"", w[0], w[1], cli.out);
    }
}

END_TEST

START_TEST(reviews_say_what_there_is_to_do)
{
    apply_door();
    EXPECT_EXIT(5, "approve", "door", "--note", "fine");
    ck_assert_int_gt((int)strlen(cli.err), 20);
    EXPECT_EXIT(5, "rollback", "door");
    EXPECT_REFUSED(4, "gate", "reject", "gate");
    EXPECT_REFUSED(7, "it goes with its job", "delete", "run", "x");
    EXPECT_REFUSED(7, "`weir project retention PROJECT`", "delete", "decision", "x");
}

END_TEST

/* ---- jobs ------------------------------------------------------------------------------------ */

START_TEST(a_command_takes_the_files_of_its_folder_along)
{
    write_file("Train_v2.py", "print('hello')\n");
    write_file("notes.txt", "text\n");
    write_file(".gitignore", "*.tmp\n");
    write_file("big.tmp", "left out\n");
    EXPECT_EXIT(0, "job", "run", "--tasks", "2", "--cpus", "3", "--memory", "1G", "--env", "A=b=c",
                "-ojson", "--", "python3", "Train_v2.py", "--epochs", "3");
    ck_assert_str_eq(printed("name"), "train_v2");
    const json_t *spec = json_object_get(cli.json, "spec");
    ck_assert_uint_eq(json_array_size(json_object_get(spec, "argv")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(spec, "tasks")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(spec, "cpus")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(spec, "memory_max_bytes")), 1 << 30);
    const json_t *code = json_object_get(spec, "code"), *env = json_object_get(spec, "env");
    ck_assert_str_eq(json_string_value(json_object_get(env, "A")), "***"); /* a secret, to all */
    ck_assert_ptr_nonnull(json_string_value(json_object_get(code, "manifest")));
    ck_assert_ptr_nonnull(strstr(cli.err, "sent 3 of 3 files")); /* what .gitignore names stays */
}

END_TEST

START_TEST(a_command_without_files_takes_none)
{
    write_file("notes.txt", "text\n");
    EXPECT_EXIT(0, "job", "run", "-ojson", "--", "echo", "hello");
    ck_assert_str_eq(printed("name"), "echo");
    ck_assert_ptr_null(json_object_get(json_object_get(cli.json, "spec"), "code"));
    EXPECT_EXIT(0, "job", "run", "mine", "-ojson", "--", "cat", "notes.txt");
    ck_assert_str_eq(printed("name"), "mine");
    ck_assert_ptr_nonnull(json_object_get(json_object_get(cli.json, "spec"), "code"));
    EXPECT_EXIT(0, "job", "run", "-ojson", "--no-files", "--", "cat", "notes.txt");
    ck_assert_ptr_null(json_object_get(json_object_get(cli.json, "spec"), "code"));
    EXPECT_REFUSED(2, "--memory", "job", "run", "--memory", "lots", "--", "true");
    EXPECT_REFUSED(2, "Give one", "job", "run", "one", "--name", "two", "--", "true");
    EXPECT_REFUSED(2, "--follow or --detach", "job", "run", "-f", "-d", "--", "true");
    EXPECT_REFUSED(4, "$.project", "job", "run", "--project", "none", "--", "true");
}

END_TEST

START_TEST(a_job_is_submitted_from_a_file)
{
    write_file("job.yaml", "name: j\nkind: command\nspec: {argv: [\"true\"]}\n");
    EXPECT_EXIT(0, "job", "submit", "-f", "job.yaml");
    EXPECT_OUT("job j (");
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"lab\"}");
    EXPECT_EXIT(0, "job", "submit", "-f", "job.yaml", "--project", "lab", "-ojson");
    ck_assert_str_eq(printed("project"), "lab");
    write_file("bad.yaml", "name: j\nkind: command\nspec: {argv: []}\n");
    EXPECT_REFUSED(2, "bad.yaml: ", "job", "submit", "-f", "bad.yaml");
    write_file(
        "big.yaml",
        "name: big\nkind: command\nspec: {argv: [\"true\"], cpus: 8, memory_max_bytes: 99}\n");
    EXPECT_EXIT(0, "job", "submit", "-f", "big.yaml", "--cpus", "500m", "--memory", "2G", "-ojson");
    const json_t *spec = json_object_get(cli.json, "spec"),
                 *asked = json_object_get(spec, "resources");
    ck_assert_ptr_null(json_object_get(spec, "cpus"));
    ck_assert(json_number_value(json_object_get(asked, "cpus")) == 0.5);
    ck_assert_str_eq(json_string_value(json_object_get(asked, "memory")), "2G");
    EXPECT_REFUSED(2, "memory", "job", "submit", "-f", "big.yaml", "--memory", "lots");
    EXPECT_REFUSED(2, "`weir job submit -f FILE`", "train", "--model", "lenet", "--cpus=2");
    EXPECT_EXIT(0, "job", "cancel", "j");
    EXPECT_OUT("is cancelled");
    EXPECT_REFUSED(7, "only trainings", "job", "resume", "j");
    EXPECT_EXIT(0, "job", "restart", "j");
    EXPECT_OUT("begins j anew");
}

END_TEST

/* ---- datasets and models --------------------------------------------------------------------- */

START_TEST(a_folder_becomes_a_dataset)
{
    ck_assert_int_eq(mkdir("photos", 0700), 0);
    ck_assert_int_eq(mkdir("photos/ann", 0700), 0);
    ck_assert_int_eq(mkdir("photos/bob", 0700), 0);
    write_file("photos/ann/1.jpg", "one");
    write_file("photos/ann/2.jpg", "two");
    write_file("photos/bob/1.jpg", "three");
    EXPECT_EXIT(0, "dataset", "create", "staff");
    EXPECT_EXIT(0, "dataset", "put", "staff", "photos");
    EXPECT_EXIT(0, "dataset", "freeze", "staff", "-ojson");
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "n_files")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "n_classes")), 2);
    EXPECT_EXIT(0, "dataset", "remove", "staff", "ann", "2.jpg");
    EXPECT_EXIT(0, "dataset", "freeze", "staff", "-ojson");
    ck_assert_int_eq(json_integer_value(json_object_get(cli.json, "n_files")), 2);
    EXPECT_REFUSED(4, "none", "dataset", "freeze", "none");
    EXPECT_EXIT(2, "dataset", "frobnicate", "staff");
}

END_TEST

START_TEST(a_models_file_is_fetched_whole)
{
    char *text;
    size_t len;
    struct weir_arena arena;
    struct weir_error err;
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
    EXPECT(200, "POST " API "/models/face/versions\n\n{\"id\":"
                "\"00000000-0000-4000-8000-0000000000c1\",\"blob\":\"" BLOB_X "\"}");
    EXPECT_EXIT(0, "model", "get", "face", "--file", "face.model");
    weir_arena_init(&arena, 0);
    must(weir_file_read("face.model", 16, &arena, &text, &len, &err), &err);
    ck_assert_uint_eq(len, 1);
    ck_assert_int_eq(text[0], 'x');
    weir_arena_fini(&arena);
    EXPECT_EXIT(0, "model", "get", "face", "--version", "1", "--file", "f", "-ojson");
    ck_assert_ptr_nonnull(cli.json);
    EXPECT_REFUSED(4, "", "model", "get", "face", "--version", "2", "--file", "g");
    EXPECT_REFUSED(4, "", "model", "get", "none", "--file", "g");
    ck_assert_int_ne(access("g", F_OK), 0);
}

END_TEST

/* ---- what people say of things ---------------------------------------------------------------- */

START_TEST(a_model_and_its_version_are_described_tagged_and_staged)
{
    EXPECT(200, "PUT " API "/blobs/" BLOB_X "\n\nx");
    EXPECT(200, "POST " API "/models/face/versions\n\n{\"id\":"
                "\"00000000-0000-4000-8000-0000000000c1\",\"blob\":\"" BLOB_X "\"}");
    EXPECT_EXIT(0, "model", "set", "face", "--description", "doors", "-t", "team=a=b", "--tag",
                "gone=x");
    ck_assert_str_eq(cli.out, "face: changed\n");
    EXPECT_EXIT(0, "model", "set", "face", "--untag", "gone", "-ojson");
    ck_assert_str_eq(printed("description"), "doors");
    const json_t *tags = json_object_get(cli.json, "tags");
    ck_assert_str_eq(json_string_value(json_object_get(tags, "team")), "a=b");
    ck_assert_uint_eq(json_object_size(tags), 1);
    EXPECT_EXIT(0, "model", "set", "face@v1", "--stage", "staging", "--archive-others", "-ojson");
    ck_assert_str_eq(printed("stage"), "Staging");
    EXPECT_EXIT(0, "model", "set", "face", "--description", "", "-ojson");
    ck_assert(json_is_null(json_object_get(cli.json, "description")));
    EXPECT_REFUSED(2, "a stage is of a version", "model", "set", "face", "--stage", "None");
    EXPECT_REFUSED(2, "nothing is said", "model", "set", "face");
    EXPECT_REFUSED(2, "NAME=VALUE", "model", "set", "face", "--tag", "team");
    EXPECT_REFUSED(2, "$.stage", "model", "set", "face@1", "--stage", "live");
    EXPECT_REFUSED(4, "none", "model", "set", "none", "--tag", "a=b");
}

END_TEST

START_TEST(experiments_and_runs_are_renamed_described_and_tagged)
{
    EXPECT(200, "POST " API "/projects\n\n{\"name\":\"lab\"}");
    EXPECT(200, "POST " API "/experiments\n\n{\"name\":\"it's\"}");
    EXPECT(200, "POST " API "/experiments\n\n{\"name\":\"both\"}");
    EXPECT(200, "POST " API "/experiments\n\n{\"name\":\"both\",\"project\":\"lab\"}");
    EXPECT(200, "POST " API "/runs\n\n{\"name\":\"first\"}");
    EXPECT_EXIT(0, "experiment", "set", "it's", "--name", "digits", "-t", "a=b", "-ojson");
    ck_assert_str_eq(printed("name"), "digits");
    EXPECT_REFUSED(2, "--project", "experiment", "set", "both", "-d", "x");
    EXPECT_EXIT(0, "experiment", "set", "both", "--project", "lab", "-d", "x", "-ojson");
    ck_assert_str_eq(printed("project"), "lab");
    EXPECT_REFUSED(4, "there is no experiment", "experiment", "set", "none", "-d", "x");
    EXPECT_EXIT(0, "runs", "set", "first", "--name", "second", "-d", "a try", "-t", "k=v");
    EXPECT(200, "GET " API "/runs?filter=tags.k%%3D%%27v%%27");
    ck_assert_str_eq(said_text("items.0.name"), "second");
    ck_assert_str_eq(
        json_string_value(json_object_get(said("items.0.tags"), "mlflow.note.content")), "a try");
    EXPECT_REFUSED(4, "none", "runs", "set", "none", "-d", "x");
}

END_TEST

/* Each replica watches for itself; a person is told once what is the same of several. */
START_TEST(what_replicas_would_say_alike_is_printed_once)
{
#define SIGNAL(name, replica, alarm)                                                               \
    "{\"pipeline\":\"see\",\"replica\":\"" replica "\",\"model_version\":2,\"signal\":\"" name     \
    "\",\"recorded_alarm\":null,\"replayed_alarm\":" alarm ",\"why\":null}"
    cli.script_path = "/api/v1/snapshots/monday/replay";
    cli.script_status = 200;
    cli.script_body =
        "{\"is_same\":true,\"policies\":{\"n\":0,\"decisions\":[]},\"candidates\":[],\"drift\":{"
        "\"signals\":[" SIGNAL("score", "a", "null") "," SIGNAL("score", "b", "null") "," SIGNAL(
            "score", "c", "\"2026-01-01T00:00:00.000Z\"") "," SIGNAL("brightness", "a",
                                                                     "null") "]}}";
    EXPECT_EXIT(0, "snapshot", "replay", "monday");
    size_t n = 0;
    for (const char *at = cli.out; (at = strstr(at, "drift of")) != NULL; at++) {
        n++;
    }
    ck_assert_msg(n == 3, "%s", cli.out);
    ck_assert_msg(
        strstr(cli.out, "drift of score in see, version 2: alarm -, replayed - (2 replicas)\n") !=
            NULL,
        "%s", cli.out);
    ck_assert_msg(strstr(cli.out, "brightness in see, version 2: alarm -, replayed -\n") != NULL,
                  "%s", cli.out);
}

END_TEST

START_TEST(a_queue_that_is_made_or_changed_is_told_in_a_line)
{
    EXPECT_EXIT(0, "queue", "create", "default", "--project", "default", "--guarantee", "cpus=4");
    ck_assert_str_eq(cli.out, "default: created\n");
    EXPECT_EXIT(0, "queue", "set", "default", "--guarantee", "cpus=2");
    ck_assert_str_eq(cli.out, "default: set\n");
    EXPECT_EXIT(0, "queue", "set", "default", "--guarantee", "cpus=3", "-o", "json");
    ck_assert_str_eq(json_string_value(json_object_get(cli.json, "project")), "default");
}

END_TEST

WEIR_TEST_MAIN_WITH("change", set_up, tear_down, users_are_made_changed_and_deleted,
                    a_tokens_secret_is_printed_once,
                    a_node_is_drained_marked_and_joined_by_one_command_each,
                    a_login_link_is_printed_alone, a_file_is_applied,
                    the_only_training_need_not_be_named, every_change_answers_in_json,
                    reviews_say_what_there_is_to_do, a_command_takes_the_files_of_its_folder_along,
                    a_command_without_files_takes_none, a_job_is_submitted_from_a_file,
                    a_folder_becomes_a_dataset, a_models_file_is_fetched_whole,
                    a_model_and_its_version_are_described_tagged_and_staged,
                    experiments_and_runs_are_renamed_described_and_tagged,
                    what_replicas_would_say_alike_is_printed_once,
                    a_queue_that_is_made_or_changed_is_told_in_a_line)
