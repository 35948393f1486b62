#include "agent/sandbox.h"

#include "base/test_main.h"

#include <string.h>

static struct weir_arena arena;

/* Where the path lies; its folder is compared with `folder` (NULL: none). */
static enum sandbox_place place(const char *path, bool is_writable, const char *folder)
{
    struct sandbox_path wanted = {.path = path, .is_writable = is_writable};
    const char *found = NULL;
    const char *folders[] = {"datasets/faces", "demo"};
    const struct sandbox sandbox = {
        .state_dir = "/var/lib/weir", .service = "s1", .folders = folders, .n_folders = 2};
    enum sandbox_place result = sandbox_place(&sandbox, "j1", 2, &wanted, &arena, &found);
    ck_assert_msg((folder == NULL && found == NULL) ||
                      (folder != NULL && found != NULL && strcmp(folder, found) == 0),
                  "%s: %s, not %s", path, found != NULL ? found : "nothing",
                  folder != NULL ? folder : "nothing");
    return result;
}

START_TEST(a_task_reaches_its_jobs_folders_and_datasets_of_the_state_folder_and_no_others)
{
    weir_arena_init(&arena, 0);

    static const struct {
        const char *path;
        bool is_writable;
        enum sandbox_place place;
        const char *folder;
    } cases[] = {
        {"/var/lib/weir/rendezvous/j1", true, SANDBOX_OWN, "rendezvous/j1"},
        {"/var/lib/weir/sandbox/j1/p-0-0.jsonl", true, SANDBOX_OWN, "sandbox/j1"},
        {"/var/lib/weir/sandbox/j2/p-0-0.jsonl", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/checkpoints/j1", true, SANDBOX_OWN, "checkpoints/j1"},
        {"/var/lib/weir/checkpoints/j1/deep/er", true, SANDBOX_OWN, "checkpoints/j1"},
        {"/var/lib/weir/replicas/j1-2", true, SANDBOX_OWN, "replicas/j1-2"},
        {"/var/lib/weir/services/s1", true, SANDBOX_OWN, "services/s1"},
        {"/var/lib/weir/services/s2", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/services", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/datasets/faces", false, SANDBOX_COMMON, "datasets/faces"},
        {"/var/lib/weir/datasets/faces/ada", false, SANDBOX_COMMON, "datasets/faces"},
        {"/var/lib//weir/./datasets/faces/", false, SANDBOX_COMMON, "datasets/faces"},
        {"/var/lib/weir/demo/frames", true, SANDBOX_COMMON, "demo"},
        {"/var/lib/weir/datasets/others", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/datasets/faces2", false, SANDBOX_REFUSED, NULL},
        {"//var/lib/weir/datasets/others", false, SANDBOX_REFUSED, NULL},
        {"/var/./lib/weir//blobs", false, SANDBOX_REFUSED, NULL},
        {"/srv/frames", true, SANDBOX_OUTSIDE, NULL},
        {"/var/lib/weird", true, SANDBOX_OUTSIDE, NULL},
        {"/var/lib", true, SANDBOX_OUTSIDE, NULL},
        {"/var/lib/weir", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/admin.token", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/weir.db", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/checkpoints", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/checkpoints/j2", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/checkpoints/j12", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/replicas/j1-3", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/datasets", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/datasets/faces", true, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/datasets/.hidden", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/datasets/../admin.token", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/demo/../admin.token", false, SANDBOX_REFUSED, NULL},
        {"/srv/../var/lib/weir/admin.token", false, SANDBOX_REFUSED, NULL},
        {"/var/lib/weir/agent/tasks", false, SANDBOX_REFUSED, NULL},
        {"relative", false, SANDBOX_REFUSED, NULL},
    };

    for (size_t i = 0; i < WEIR_ARRAY_LEN(cases); i++) {
        ck_assert_msg(place(cases[i].path, cases[i].is_writable, cases[i].folder) == cases[i].place,
                      "%s", cases[i].path);
    }
    weir_arena_fini(&arena);
}

END_TEST

START_TEST(a_sandbox_is_read_and_a_broken_one_is_refused)
{
    struct sandbox sandbox;
    struct weir_error err;
    weir_arena_init(&arena, 0);
    json_t *task = json_loads(
        "{\"state\":\"/s\",\"folders\":[\"datasets/faces\"],\"paths\":[{\"path\":\"/"
        "a\",\"access\":\"write\"}],"
        "\"cell\":{\"user\":70012,\"readers\":70000,\"agent_dir\":\"/s/agent\",\"job_dir\":"
        "\"/s/agent/jobs/j\",\"shm_dir\":\"/dev/shm/w\",\"shares\":[{\"path\":\"/b\","
        "\"access\":\"read\"}]}}",
        0, NULL);
    ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_OK);
    ck_assert_uint_eq(sandbox.user, 70012);
    ck_assert_str_eq(sandbox.state_dir, "/s");
    ck_assert_uint_eq(sandbox.n_paths, 1);
    ck_assert(sandbox.paths[0].is_writable);
    ck_assert(!sandbox.shares[0].is_writable);
    ck_assert_uint_eq(sandbox.n_folders, 1);
    ck_assert_str_eq(sandbox.folders[0], "datasets/faces");
    ck_assert_str_eq(sandbox_given(&sandbox, "weir", &arena), "/s/agent/given/weir");
    static const char *const bad[] = {"blobs",        "datasets",          "datasets/",
                                      "datasets/a/b", "datasets/../blobs", "/s/datasets/faces"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(bad); i++) {
        json_array_set_new(json_object_get(task, "folders"), 0, json_string(bad[i]));
        ck_assert_msg(sandbox_from_json(task, &arena, &sandbox, &err) == WEIR_ERR_INVALID, "%s",
                      bad[i]);
    }
    json_object_del(task, "folders");
    ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_OK);
    ck_assert_uint_eq(sandbox.n_folders, 0);
    ck_assert_uint_eq(sandbox.n_left, 0);
    json_object_set_new(task, "left", json_pack("[s,s]", "01a2-0", "01a3-11"));
    ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_OK);
    ck_assert_str_eq(sandbox.left[1], "01a3-11");
    static const char *const wrong[] = {"", "..", "../agent", "a/b", "/etc", "A"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        json_object_set_new(task, "left", json_pack("[s]", wrong[i]));
        ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_ERR_INVALID);
    }
    json_object_del(task, "left");
    json_object_del(json_object_get(task, "cell"), "job_dir");
    ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_ERR_INVALID);
    json_object_del(task, "cell");
    ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_OK);
    ck_assert_uint_eq(sandbox.user, 0);
    json_object_set_new(task, "paths",
                        json_loads("[{\"path\":\"/a\",\"access\":\"all\"}]", 0, NULL));
    ck_assert_int_eq(sandbox_from_json(task, &arena, &sandbox, &err), WEIR_ERR_INVALID);
    json_decref(task);
    weir_arena_fini(&arena);
}

END_TEST

WEIR_TEST_MAIN("agent sandbox",
               a_task_reaches_its_jobs_folders_and_datasets_of_the_state_folder_and_no_others,
               a_sandbox_is_read_and_a_broken_one_is_refused)
