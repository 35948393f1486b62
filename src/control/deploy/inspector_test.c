/* Looking at model files: by scripted children that do what hostile files make real ones do. */
#include "control/inspector.h"

#include "base/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/test_main.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char dir[64];
static struct weir_arena arena;
static struct weir_blobs *blobs;
static char blob[WEIR_SHA256_TEXT_BYTES];

static char *in_dir(const char *name)
{
    return weir_arena_printf(&arena, "%s/%s", dir, name);
}

static void set_up(void)
{
    struct weir_error err;
    weir_arena_init(&arena, 0);
    (void)snprintf(dir, sizeof dir, "/tmp/weir-inspect-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(weir_blobs_open(in_dir("blobs"), &blobs, &err), WEIR_OK);
    ck_assert_int_eq(weir_blob_put(blobs, "model", 5, NULL, blob, &err), WEIR_OK);
}

static void tear_down(void)
{
    weir_blobs_close(blobs);
    ck_assert_int_eq(weir_dir_remove(dir, NULL), WEIR_OK);
    weir_arena_fini(&arena);
}

/* ---- the child ------------------------------------------------------------------------------- */

static const char *script(const char *text)
{
    const char *path = in_dir("worker");
    const char *whole = weir_arena_printf(&arena, "#!/bin/sh\n%s\n", text);
    ck_assert_int_eq(weir_file_write(path, whole, strlen(whole), 0700, NULL), WEIR_OK);
    return path;
}

static const struct {
    const char *does;
    weir_status status;
    const char *says;
} children[] = {
    {"[ \"$1\" = inspect ] && cat <&0 && echo '{\"format\":\"onnx\"}'", WEIR_OK, NULL},
    {"echo 'x: operator Foo (opset 17) of node \"n\" is not supported' >&2; exit 7",
     WEIR_ERR_UNSUPPORTED, "operator Foo (opset 17)"},
    {"echo noise >&2; echo 'weir-worker inspect: x: the file ends too soon' >&2; exit 3",
     WEIR_ERR_CORRUPT, "x: the file ends too soon"},
    {"exit 2", WEIR_ERR_INVALID, "the file is no model"},
    {"echo out of memory >&2; exit 8", WEIR_ERR_LIMIT, "out of memory"},
    {"kill -SEGV $$", WEIR_ERR_INVALID, "ended by signal 11"},
    {"while :; do :; done", WEIR_ERR_LIMIT, "took more than 1 s"},
    {"exec sleep 60", WEIR_ERR_LIMIT, "took more than 1 s"},
    {"echo no JSON", WEIR_ERR_INVALID, "signature"},
    {"echo '[1]'", WEIR_ERR_INTERNAL, "no signature"},
    {"head -c 9000000 /dev/zero", WEIR_ERR_LIMIT, "over 4 MiB"},
    {"head -c 9000000 /dev/zero >&2; exit 3", WEIR_ERR_CORRUPT, "no model"},
    {"echo bad > /tmp/weir-inspect-escape; echo '{}'", WEIR_ERR_INVALID, "ended by signal 25"},
};

START_TEST(whatever_the_child_does_there_is_a_sentence)
{
    struct weir_error err = {0};
    char *out = NULL;
    const struct inspect_request request = {.path = in_dir("worker"), .name = "x"};
    weir_status status =
        inspect_child_run(script(children[_i].does), &request, 1000, &arena, &out, &err);
    ck_assert_msg(status == children[_i].status, "%s: %s", weir_status_name(status), err.message);
    if (status == WEIR_OK) {
        ck_assert_str_eq(out, "{\"format\":\"onnx\"}");
    } else {
        ck_assert_msg(strstr(err.message, children[_i].says) != NULL, "%s", err.message);
    }
}

END_TEST

START_TEST(the_child_gets_no_privilege_no_environment_and_no_file_of_ours)
{
    char *out = NULL;
    struct weir_error err = {0};
    const struct inspect_request request = {.path = in_dir("worker"),
                                            .labels = "/l",
                                            .preprocess = "/p",
                                            .golden = "/g",
                                            .onnxruntime = "/o",
                                            .name = "x"};
    ck_assert_int_eq(setenv("WEIR_TEST_SECRET", "s3cret", 1), 0);
    const char *program =
        script("printf '{\"privileges\":%s,\"environment\":\"%s\",\"words\":\"%s\",\"files\":%s}' "
               "\"$(grep -c 'NoNewPrivs:.1' /proc/$$/status)\" \"$WEIR_TEST_SECRET\" \"$*\" "
               "\"$(ls -l /proc/$$/fd | grep -c weir-inspect.*blobs)\"");
    ck_assert_msg(inspect_child_run(program, &request, 10000, &arena, &out, &err) == WEIR_OK, "%s",
                  err.message);
    json_t *told = json_loads(out, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(told, "privileges")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(told, "environment")), "");
    ck_assert_int_eq(json_integer_value(json_object_get(told, "files")), 0);
    ck_assert_str_eq(
        json_string_value(json_object_get(told, "words")),
        weir_arena_printf(&arena,
                          "inspect %s --memory-mb 4096 --threads 2 --confine --labels /l "
                          "--preprocess /p --golden /g --onnxruntime /o --name x",
                          request.path));
    json_decref(told);
}

END_TEST

START_TEST(a_program_that_is_not_there_is_no_fault_of_the_file)
{
    char *out = NULL;
    struct weir_error err = {0};
    const struct inspect_request request = {.path = "/dev/null", .name = "x"};
    ck_assert_int_eq(inspect_child_run("/nowhere/worker", &request, 1000, &arena, &out, &err),
                     WEIR_ERR_INTERNAL);
}

END_TEST

/* ---- the threads ----------------------------------------------------------------------------- */

/* Answers when it is let to; counts how often it was asked, and at a time. */
static struct stage {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_asked, n_running, n_most, n_wakes;
    bool is_open;
    weir_status status;
} stage;

static weir_status scripted(void *context, const struct inspect_request *request,
                            struct weir_arena *out_arena, char **out, struct weir_error *err)
{
    (void)context;
    pthread_mutex_lock(&stage.lock);
    stage.n_asked++;
    stage.n_running++;
    stage.n_most = WEIR_MAX(stage.n_most, stage.n_running);
    pthread_cond_broadcast(&stage.changed);
    while (!stage.is_open && !atomic_load(request->is_stopping)) {
        struct timespec until = weir_deadline_after(10);
        (void)weir_cond_wait_until(&stage.changed, &stage.lock, &until);
    }
    stage.n_running--;
    weir_status status = stage.status;
    pthread_mutex_unlock(&stage.lock);
    *out = weir_arena_printf(out_arena, "{\"name\":\"%s\"}", request->name);
    return status == WEIR_OK ? WEIR_OK : weir_error_set(err, status, "as the test says");
}

static void woken(void *context)
{
    (void)context;
    pthread_mutex_lock(&stage.lock);
    stage.n_wakes++;
    pthread_cond_broadcast(&stage.changed);
    pthread_mutex_unlock(&stage.lock);
}

static struct inspector *make_inspector(void)
{
    memset(&stage, 0, sizeof stage);
    pthread_mutex_init(&stage.lock, NULL);
    pthread_cond_init(&stage.changed, NULL);
    return inspector_create(&(struct inspector_config){.blobs = blobs,
                                                       .dir = in_dir("inspect"),
                                                       .inspect = scripted,
                                                       .listener = {.wake = woken}});
}

static enum inspect_state look(struct inspector *inspector, const char *name, char **out,
                               struct weir_error *err)
{
    const struct inspect_question question = {.blob = blob, .name = name, .labels = "[\"a\"]"};
    return inspector_look(inspector, &question, &arena, out, err);
}

static void wait_for_wakes(int n)
{
    pthread_mutex_lock(&stage.lock);
    struct timespec until = weir_deadline_after(20000);
    while (stage.n_wakes < n && weir_cond_wait_until(&stage.changed, &stage.lock, &until) == 0) {
    }
    ck_assert_int_ge(stage.n_wakes, n);
    pthread_mutex_unlock(&stage.lock);
}

static void wait_for_running(int n)
{
    pthread_mutex_lock(&stage.lock);
    struct timespec until = weir_deadline_after(20000);
    while (stage.n_running < n && weir_cond_wait_until(&stage.changed, &stage.lock, &until) == 0) {
    }
    ck_assert_int_eq(stage.n_running, n);
    pthread_mutex_unlock(&stage.lock);
}

static void open_stage(weir_status status)
{
    pthread_mutex_lock(&stage.lock);
    stage.is_open = true;
    stage.status = status;
    pthread_cond_broadcast(&stage.changed);
    pthread_mutex_unlock(&stage.lock);
}

START_TEST(a_question_is_asked_once_and_so_many_at_a_time)
{
    struct weir_error err = {0};
    char *out = NULL;
    struct inspector *inspector = make_inspector();
    for (int i = 0; i < INSPECT_MAX_WAITING; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%d", i);
        ck_assert_int_eq(look(inspector, name, &out, &err), INSPECT_RUNNING);
        ck_assert_int_eq(look(inspector, name, &out, &err), INSPECT_RUNNING);
    }
    ck_assert_int_eq(look(inspector, "more", &out, &err), INSPECT_REFUSED);
    ck_assert_int_eq(err.status, WEIR_ERR_UNAVAILABLE);
    wait_for_running(INSPECT_MAX_RUNNING);
    open_stage(WEIR_OK);
    wait_for_wakes(INSPECT_MAX_WAITING);
    ck_assert_int_eq(look(inspector, "m3", &out, &err), INSPECT_DONE);
    ck_assert_str_eq(out, "{\"name\":\"m3\"}");
    ck_assert_int_eq(stage.n_asked, INSPECT_MAX_WAITING);
    ck_assert_int_eq(stage.n_most, INSPECT_MAX_RUNNING);
    inspector_destroy(inspector);
}

END_TEST

START_TEST(a_refusal_is_remembered_but_not_what_passes)
{
    struct weir_error err = {0};
    char *out = NULL;
    struct inspector *inspector = make_inspector();
    open_stage(WEIR_ERR_INVALID);
    (void)look(inspector, "bad", &out, &err);
    wait_for_wakes(1);
    ck_assert_int_eq(look(inspector, "bad", &out, &err), INSPECT_REFUSED);
    ck_assert_int_eq(look(inspector, "bad", &out, &err), INSPECT_REFUSED);
    ck_assert_str_eq(err.message, "as the test says");
    ck_assert_int_eq(stage.n_asked, 1);
    open_stage(WEIR_ERR_UNAVAILABLE);
    (void)look(inspector, "other", &out, &err);
    wait_for_wakes(2);
    ck_assert_int_eq(look(inspector, "other", &out, &err), INSPECT_REFUSED);
    ck_assert_int_eq(look(inspector, "other", &out, &err), INSPECT_RUNNING);
    inspector_destroy(inspector);
}

END_TEST

START_TEST(it_stops_while_a_child_runs)
{
    struct weir_error err = {0};
    char *out = NULL;
    struct inspector *inspector = make_inspector();
    ck_assert_int_eq(look(inspector, "slow", &out, &err), INSPECT_RUNNING);
    inspector_stop(inspector);
    ck_assert_int_eq(look(inspector, "late", &out, &err), INSPECT_REFUSED);
    inspector_destroy(inspector);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("inspector");
    TCase *tcase = tcase_create("inspector");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, whatever_the_child_does_there_is_a_sentence, 0,
                        (int)WEIR_ARRAY_LEN(children));
    tcase_add_test(tcase, the_child_gets_no_privilege_no_environment_and_no_file_of_ours);
    tcase_add_test(tcase, a_program_that_is_not_there_is_no_fault_of_the_file);
    tcase_add_test(tcase, a_question_is_asked_once_and_so_many_at_a_time);
    tcase_add_test(tcase, a_refusal_is_remembered_but_not_what_passes);
    tcase_add_test(tcase, it_stops_while_a_child_runs);
    suite_add_tcase(suite, tcase);
    return weir_test_run_here(suite);
}
