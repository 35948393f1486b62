/* A whole replica in this process over a directory, against a server in this process. */
#include "predict/test_support.h"

#include "base/clock.h"
#include "base/json.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_FRAMES 60

static struct test_dir dir;
static struct test_server *server;
static struct replica *replica;

static void set_up(void)
{
    test_dir_make(&dir);
    server = test_server_start(&dir, 0);
    test_write_model(test_path(&dir, "model-1"), 1, NULL);
}

static void tear_down(void)
{
    test_server_stop(server);
    test_dir_drop(&dir);
}

static void start(const char *sink)
{
    replica = test_replica_start(&dir, test_server_port(server), test_directory_source(&dir), sink);
}

/* Frames first … first + n − 1 of one camera; frame i shows person i % 12. */
static void put_frames(const char *camera, int first, int n)
{
    char bytes[1024];
    for (int i = first; i < first + n; i++) {
        size_t len = test_picture(i % 12, 100 + i, bytes);
        test_put_frame(&dir, camera, i, bytes, len);
    }
}

static json_t *deployment(int64_t model_version, int n_people, int64_t gallery_version,
                          bool with_path)
{
    return test_deployment(server, &dir, test_path(&dir, "model-1"), model_version, n_people, 4,
                           gallery_version, with_path);
}

static void check_recognised(const char *camera, int frame, int n_people)
{
    json_t *decision = test_server_decision(server, camera, frame);
    ck_assert_ptr_nonnull(decision);
    if (frame % 12 < n_people) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%02d", frame % 12);
        ck_assert_str_eq(test_text(decision, "verdict"), "grant");
        ck_assert_str_eq(test_text(decision, "person"), name);
    } else {
        ck_assert_str_eq(test_text(decision, "verdict"), "unknown");
        ck_assert(json_is_null(json_object_get(decision, "person")));
    }
    json_decref(decision);
}

START_TEST(frames_of_a_directory_are_decided_once_and_removed)
{
    size_t n_again;
    set_up();
    test_server_deploy(server, deployment(7, 10, 3, true));
    start(NULL);
    put_frames("west", 0, N_FRAMES); /* People 10 and 11 are impostors. */
    put_frames("east", 500, N_FRAMES);
    test_put_frame(&dir, "west", 9998, "P5 16 16 255\nshort", 18);
    test_put_frame(&dir, "west", 9999, "", 0);
    test_wait_for_decisions(server, 2 * N_FRAMES + 2);
    for (int i = 0; i < N_FRAMES; i++) {
        check_recognised("west", i, 10);
        check_recognised("east", 500 + i, 10);
    }
    json_t *decision = test_server_decision(server, "west", 5);
    ck_assert_int_eq(test_int(decision, "model_version"), 7);
    ck_assert_int_eq(test_int(decision, "gallery_version"), 3);
    ck_assert_int_gt(test_int(decision, "durable_us"), 0);
    ck_assert_int_ge(test_int(decision, "durable_us"), test_int(decision, "latency_us"));
    ck_assert(test_server_has_blob(server, test_text(decision, "image")));
    json_decref(decision);
    for (int64_t frame = 9998; frame <= 9999; frame++) {
        json_t *damaged = test_server_decision(server, "west", frame);
        ck_assert_str_eq(test_text(damaged, "verdict"), "error");
        ck_assert_str_ne(test_text(damaged, "error"), "");
        json_decref(damaged);
    }
    (void)test_server_n_decisions(server, &n_again);
    ck_assert_uint_eq(n_again, 0);
    test_replica_stop(replica);
    ck_assert_uint_eq(test_count_files(test_path(&dir, "frames/west")), 0);
    ck_assert_uint_eq(test_count_files(test_path(&dir, "frames/east")), 0);
    ck_assert_uint_eq(test_count_files(test_path(&dir, "replica/images")), 0);
    tear_down();
}

END_TEST

START_TEST(frames_wait_in_the_folder_until_a_model_is_there_and_other_files_are_left_alone)
{
    set_up();
    put_frames("cam", 0, 5);
    test_write_file(test_path(&dir, "frames/cam/notes.txt"), "hello", 5);
    test_write_file(test_path(&dir, "frames/cam/.77.pgm"), "hidden", 6);
    start(NULL);
    test_server_deploy(server, deployment(1, 10, 1, true));
    test_wait_for_decisions(server, 5);
    test_replica_stop(replica);
    ck_assert_uint_eq(test_server_n_decisions(server, NULL), 5);
    ck_assert(weir_path_exists(test_path(&dir, "frames/cam/notes.txt")));
    ck_assert(weir_path_exists(test_path(&dir, "frames/cam/.77.pgm")));
    tear_down();
}

END_TEST

static const struct {
    mode_t around, made;
} modes[] = {{0775, 0775}, {0770, 0770}, {0700, 0700}, {01777, 0700}};

/* Cameras are other users: who may write around it may write in it. */
START_TEST(a_source_folder_that_the_replica_makes_is_for_who_may_write_around_it)
{
    set_up();
    mode_t before = umask(077);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct stat made;
        char around[128], folder[160], source[256];
        (void)snprintf(around, sizeof around, "%s", test_path(&dir, "cameras-%zu", i));
        (void)snprintf(folder, sizeof folder, "%s/door", around);
        (void)snprintf(source, sizeof source, "{\"kind\":\"directory\",\"path\":\"%s\"}", folder);
        ck_assert_int_eq(mkdir(around, 0700), 0);
        ck_assert_int_eq(chmod(around, modes[i].around), 0);
        replica = test_replica_start(&dir, test_server_port(server), source, NULL);
        ck_assert_int_eq(stat(folder, &made), 0);
        ck_assert_uint_eq(made.st_mode & 07777, modes[i].made);
        test_replica_stop(replica);
    }
    (void)umask(before);
    tear_down();
}

END_TEST

/* Make one photo of a person a blob that is no picture. */
static void spoil_photo(json_t *deployed, const char *person)
{
    char digest[65];
    struct weir_error err;
    json_t *manifest, *file;
    size_t i;
    ck_assert_int_eq(weir_json_load(test_path(&dir, "manifest.json"), 1 << 20, &manifest, &err),
                     WEIR_OK);
    test_write_file(test_path(&dir, "spoiled"), "no picture", 10);
    test_server_blob(server, test_path(&dir, "spoiled"), digest);
    json_array_foreach(json_object_get(manifest, "files"), i, file)
    {
        if (strcmp(test_text(file, "class"), person) == 0) {
            json_object_set_new(file, "sha256", json_string(digest));
            break;
        }
    }
    char *text = json_dumps(manifest, 0);
    test_write_file(test_path(&dir, "manifest.json"), text, strlen(text));
    test_server_blob(server, test_path(&dir, "manifest.json"), digest);
    json_object_set_new(json_object_get(deployed, "gallery"), "blob", json_string(digest));
    free(text);
    json_decref(manifest);
}

START_TEST(photos_that_cannot_be_read_in_place_come_from_the_server_and_damaged_ones_are_left_out)
{
    set_up();
    /* One photo of person 3 is no picture; three are left. */
    json_t *wanted = deployment(1, 10, 1, false);
    spoil_photo(wanted, "p03");
    test_server_deploy(server, wanted);
    start(NULL);
    put_frames("cam", 0, 24);
    test_wait_for_decisions(server, 24);
    for (int i = 0; i < 24; i++) {
        check_recognised("cam", i, 10);
    }
    test_replica_stop(replica);
    /* Model, manifest, embeddings: photos are not kept. */
    ck_assert_uint_eq(test_count_files(test_path(&dir, "replica/cache")), 3);
    tear_down();
}

END_TEST

struct list_state {
    int64_t revision;
    int frame;
};

/* A frame after the other until one is decided with the list revision asked for. */
static bool is_decided_by(void *context)
{
    struct list_state *state = context;
    char bytes[1024];
    size_t len = test_picture(2, 100 + state->frame, bytes);
    test_put_frame(&dir, "cam", state->frame, bytes, len);
    test_wait_for_decisions(server, (size_t)state->frame + 1);
    json_t *decision = test_server_decision(server, "cam", state->frame);
    state->frame++;
    bool is_new = test_int(decision, "list_revision") == state->revision;
    json_decref(decision);
    return is_new;
}

static const char *last_verdict(const struct list_state *state)
{
    static char verdict[16];
    json_t *decision = test_server_decision(server, "cam", state->frame - 1);
    (void)snprintf(verdict, sizeof verdict, "%s", test_text(decision, "verdict"));
    json_decref(decision);
    return verdict;
}

START_TEST(lists_change_while_frames_flow)
{
    struct list_state state = {1, 0};
    set_up();
    json_t *first = deployment(1, 10, 1, true);
    json_t *denied = json_deep_copy(first), *allowed = json_deep_copy(first);
    test_server_deploy(server, first);
    start(NULL);
    ck_assert(test_wait(is_decided_by, &state));
    ck_assert_str_eq(last_verdict(&state), "grant");
    json_object_set_new(denied, "list_revision", json_integer(2));
    json_object_set_new(denied, "lists",
                        json_pack("{s:[s],s:[s,s]}", "allow", "p02", "deny", "p02", "p07"));
    test_server_deploy(server, denied);
    state.revision = 2;
    ck_assert(test_wait(is_decided_by, &state));
    ck_assert_str_eq(last_verdict(&state), "deny");
    json_object_set_new(allowed, "list_revision", json_integer(3));
    json_object_set_new(allowed, "lists", json_pack("{s:[s],s:[]}", "allow", "p02", "deny"));
    json_object_set_new(allowed, "default", json_string("deny"));
    test_server_deploy(server, allowed);
    state.revision = 3;
    ck_assert(test_wait(is_decided_by, &state));
    ck_assert_str_eq(last_verdict(&state), "grant");
    test_replica_stop(replica);
    tear_down();
}

END_TEST

static bool frames_are_gone(void *context)
{
    return test_count_files(test_path(&dir, "frames/%s", (const char *)context)) == 0;
}

START_TEST(a_restarted_replica_decides_while_the_server_is_down_and_ships_when_it_is_back)
{
    char camera[] = "cam";
    set_up();
    test_server_deploy(server, deployment(4, 10, 2, true));
    start(NULL);
    put_frames("cam", 0, 10);
    test_wait_for_decisions(server, 10);
    test_replica_stop(replica);

    test_server_set_down(server, true);
    struct weir_error err;
    /* The photos are gone too: embeddings are remembered. */
    ck_assert_int_eq(weir_dir_remove(test_path(&dir, "people"), &err), WEIR_OK);
    start(NULL);
    put_frames("cam", 10, 20);
    ck_assert(test_wait(frames_are_gone, camera));
    ck_assert_uint_eq(test_server_n_decisions(server, NULL), 10);
    test_server_set_down(server, false);
    test_wait_for_decisions(server, 30);
    for (int i = 0; i < 30; i++) {
        check_recognised("cam", i, 10);
    }
    json_t *decision = test_server_decision(server, "cam", 29);
    ck_assert_int_eq(test_int(decision, "model_version"), 4);
    json_decref(decision);
    test_replica_stop(replica);
    tear_down();
}

END_TEST

START_TEST(a_deployment_that_cannot_be_loaded_leaves_the_old_one_serving)
{
    char digest[65];
    struct list_state state = {1, 0};
    set_up();
    json_t *good = deployment(1, 10, 1, true), *bad = json_deep_copy(good),
           *better = json_deep_copy(good);
    test_server_deploy(server, good);
    start(NULL);
    ck_assert(test_wait(is_decided_by, &state));
    test_write_file(test_path(&dir, "broken"), "this is no model", 16);
    test_server_blob(server, test_path(&dir, "broken"), digest);
    json_object_set_new(json_object_get(bad, "model"), "blob", json_string(digest));
    json_object_set_new(bad, "list_revision", json_integer(2));
    test_server_deploy(server, bad);
    put_frames("other", 0, 12);
    test_wait_for_decisions(server, (size_t)state.frame + 12);
    for (int i = 0; i < 12; i++) {
        check_recognised("other", i, 10);
    }
    json_object_set_new(better, "list_revision", json_integer(3));
    test_server_deploy(server, better);
    state = (struct list_state){3, state.frame};
    state.frame += 12; /* Decisions are counted over both cameras. */
    ck_assert(test_wait(is_decided_by, &state));
    test_replica_stop(replica);
    tear_down();
}

END_TEST

/* Remove what the outbox's readers remember of where they were. */
static void forget_places(void)
{
    const char *path = test_path(&dir, "replica/outbox");
    DIR *stream = opendir(path);
    const struct dirent *entry;
    ck_assert_ptr_nonnull(stream);
    while ((entry = readdir(stream)) != NULL) {
        if (strstr(entry->d_name, ".position") != NULL) {
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
        }
    }
    closedir(stream);
}

/* Every decision of the file, by "camera/frame"; fails on a line that is there twice. */
static json_t *read_lines(const char *path)
{
    json_t *lines = json_object();
    FILE *file = fopen(path, "re");
    char *line = NULL, key[96];
    size_t cap = 0;
    ssize_t n;
    ck_assert_ptr_nonnull(file);
    while ((n = getline(&line, &cap, file)) > 0) {
        json_t *decision = json_loadb(line, (size_t)n, 0, NULL);
        ck_assert_msg(decision != NULL, "not JSON: %s", line);
        (void)snprintf(key, sizeof key, "%s/%lld", test_text(decision, "camera"),
                       (long long)test_int(decision, "frame"));
        ck_assert_msg(json_object_get(lines, key) == NULL, "%s is there twice", key);
        json_object_set_new(lines, key, decision);
    }
    free(line);
    (void)fclose(file);
    return lines;
}

START_TEST(the_jsonl_sink_has_each_decision_once_although_its_place_is_old_and_its_end_torn)
{
    struct weir_arena arena;
    struct weir_error err;
    char *data;
    size_t len;
    set_up();
    test_server_deploy(server, deployment(1, 10, 1, true));
    start(test_path(&dir, "out.jsonl"));
    put_frames("cam", 0, 40);
    test_wait_for_decisions(server, 40);
    test_replica_stop(replica);
    json_t *lines = read_lines(test_path(&dir, "out.jsonl"));
    ck_assert_uint_eq(json_object_size(lines), 40);
    json_decref(lines);
    /* As after a kill in the middle of a write, with the place never saved. */
    weir_arena_init(&arena, 0);
    ck_assert_int_eq(
        weir_file_read(test_path(&dir, "out.jsonl"), 1 << 20, &arena, &data, &len, &err), WEIR_OK);
    for (size_t cut = 1; cut < 1200; cut += 239) {
        forget_places();
        test_write_file(test_path(&dir, "out.jsonl"), data, len - cut);
        start(test_path(&dir, "out.jsonl"));
        test_replica_stop(replica);
        lines = read_lines(test_path(&dir, "out.jsonl"));
        ck_assert_uint_eq(json_object_size(lines), 40);
        json_decref(lines);
    }
    weir_arena_fini(&arena);
    tear_down();
}

END_TEST

START_TEST(a_replica_stops_also_while_the_disk_is_full_and_its_frames_stay)
{
    struct rlimit limit;
    char bytes[1024];
    set_up();
    (void)signal(SIGXFSZ, SIG_IGN);
    test_server_deploy(server, deployment(1, 10, 1, true));
    start(NULL);
    put_frames("cam", 0, 10);
    test_wait_for_decisions(server, 10);
    /* Made before the disk is full, moved in when it is. */
    for (int i = 0; i < 100; i++) {
        size_t len = test_picture(i % 12, i, bytes);
        test_write_file(test_path(&dir, "frames/.%d", i), bytes, len);
    }
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit tight = {.rlim_cur = 512, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(rename(test_path(&dir, "frames/.%d", i),
                                test_path(&dir, "frames/cam/%d.pgm", 1000 + i)),
                         0);
    }
    test_replica_stop(replica);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_uint_eq(test_count_files(test_path(&dir, "frames/cam")), 100);
    start(NULL);
    test_wait_for_decisions(server, 110);
    test_replica_stop(replica);
    tear_down();
}

END_TEST

static int64_t changed_ns(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

/* What was ever written into the folder of pictures has changed it. */
START_TEST(a_pipeline_without_pictures_writes_none)
{
    struct predict_spec spec;
    struct weir_arena arena;
    struct weir_error err = {0};
    json_t *document;
    weir_arena_init(&arena, 0);
    set_up();
    test_server_deploy(server, deployment(7, 10, 3, true));
    const char *path =
        test_write_spec(&dir, test_server_port(server), test_directory_source(&dir), NULL);
    ck_assert_int_eq(weir_json_load(path, 1 << 20, &document, &err), WEIR_OK);
    json_object_set_new(document, "pictures", json_false());
    ck_assert_int_eq(json_dump_file(document, path, 0), 0);
    json_decref(document);
    ck_assert_msg(predict_spec_load(path, &arena, &spec, &err) == WEIR_OK, "%s", err.message);
    ck_assert_msg(replica_start(&spec, &replica, &err) == WEIR_OK, "%s", err.message);
    int64_t before_ns = changed_ns(test_path(&dir, "replica/images"));
    put_frames("west", 0, 12);
    test_wait_for_decisions(server, 12);
    for (int i = 0; i < 12; i++) {
        json_t *decision = test_server_decision(server, "west", i);
        ck_assert(json_is_null(json_object_get(decision, "image")));
        ck_assert_ptr_null(json_object_get(decision, "picture"));
        json_decref(decision);
    }
    ck_assert_int_eq(changed_ns(test_path(&dir, "replica/images")), before_ns);
    replica_stop(replica);
    predict_spec_fini(&spec);
    weir_arena_fini(&arena);
    tear_down();
}

END_TEST

WEIR_TEST_MAIN(
    "replica", a_pipeline_without_pictures_writes_none,
    frames_of_a_directory_are_decided_once_and_removed,
    a_source_folder_that_the_replica_makes_is_for_who_may_write_around_it,
    frames_wait_in_the_folder_until_a_model_is_there_and_other_files_are_left_alone,
    photos_that_cannot_be_read_in_place_come_from_the_server_and_damaged_ones_are_left_out,
    lists_change_while_frames_flow,
    a_restarted_replica_decides_while_the_server_is_down_and_ships_when_it_is_back,
    a_deployment_that_cannot_be_loaded_leaves_the_old_one_serving,
    the_jsonl_sink_has_each_decision_once_although_its_place_is_old_and_its_end_torn,
    a_replica_stops_also_while_the_disk_is_full_and_its_frames_stay)
