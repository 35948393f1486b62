/* What preparations have made becomes versions: once, whoever freezes beside and whenever the server dies. */
#include "control/job/control_fixture.h"
#include "control/job/preparer.h"

#include "base/file.h"

#include <pthread.h>
#include <unistd.h>

static struct control_fixture fixture;
static struct weir_blobs *blobs;
static struct freezer *freezer;
static struct preparer preparer;
static char folder[128];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static int n_wakes;

static void wake(void *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    n_wakes++;
    pthread_cond_signal(&woken);
    pthread_mutex_unlock(&lock);
}

/** A freeze has ended since the last time. */
static void wait_for_freeze(void)
{
    pthread_mutex_lock(&lock);
    while (n_wakes == 0) {
        pthread_cond_wait(&woken, &lock);
    }
    n_wakes--;
    pthread_mutex_unlock(&lock);
}

static void write_file(const char *name, const char *text)
{
    struct weir_error err;
    char *path = weir_arena_printf(&fixture.store.arena, "%s/%s", folder, name);
    ck_assert_int_eq(weir_file_write(path, text, strlen(text), 0600, &err), WEIR_OK);
}

static weir_status add_clean_in(struct control *control, struct weir_txn *txn, void *context,
                                struct weir_error *err)
{
    const struct weir_dataset dataset = {
        .name = "clean", .project = "default", .kind = "folder", .path = folder};
    (void)control;
    (void)context;
    return weir_txn_insert(txn, &weir_dataset_resource, &dataset, err);
}

/** As after a start of the server: of what it froze nothing is known. */
static void begin_preparer(void)
{
    const struct freezer_config config = {.store = fixture.store.store,
                                          .blobs = blobs,
                                          .clock = &weir_system_clock,
                                          .state_dir = fixture.store.dir,
                                          .listener = {.wake = wake}};
    freezer = freezer_create(&config);
    preparer = (struct preparer){
        .store = fixture.store.store, .freezer = freezer, .state_dir = fixture.store.dir};
}

static void apply_graph(void)
{
    char *text;
    struct weir_ion_event event = {.type = WEIR_ION_EVENT_APPLIED, .actor = "ann"};
    event.doc = doc_from_yaml(
        &fixture.store.arena,
        "{name: x, pipelines: [{name: prepare, type: preparation, dataset: faces, output: clean,"
        " parameters: {argv: ['true']}}, {name: t, type: training, dataset: clean, model: lenet}],"
        " links: [{from: prepare, to: t, dataset: clean}]}",
        &text);
    event.document = text;
    turn(&fixture, apply_in, &event);
}

/** Its command runs, and ends well. */
static void run_command(void)
{
    struct weir_ion_event event = {
        .type = WEIR_ION_EVENT_TRIGGER, .pipeline = "prepare", .actor = "ann"};
    turn(&fixture, ion_event_in, &event);
    (void)carry_out(&fixture, 0);
    play(&fixture, pipeline_record(&fixture, "prepare").job, 0);
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "FREEZING");
}

static void set_up(void)
{
    struct weir_error err;
    control_fixture_make(&fixture);
    /* Not beside the store, which may lie below /dev: no data is taken from there. */
    (void)snprintf(folder, sizeof folder, "/tmp/weir-clean-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(
        weir_blobs_open(weir_arena_printf(&fixture.store.arena, "%s/blobs", fixture.store.dir),
                        &blobs, &err),
        WEIR_OK);
    n_wakes = 0;
    begin_preparer();
    turn(&fixture, add_clean_in, NULL);
    write_file("1.txt", "one");
    apply_graph();
}

static void tear_down(void)
{
    freezer_destroy(freezer);
    weir_blobs_close(blobs);
    ck_assert_int_eq(weir_dir_remove(folder, NULL), WEIR_OK);
    control_fixture_fini(&fixture);
}

static bool look(void)
{
    fixture.now_ms += 1000;
    return preparer_look(&preparer, fixture.now_ms);
}

static size_t n_events(const char *kind)
{
    void *items;
    size_t n = list_records(&fixture, &weir_event_resource, &items), n_found = 0;
    for (size_t i = 0; i < n; i++) {
        n_found += strcmp(((struct weir_event *)items)[i].kind, kind) == 0;
    }
    return n_found;
}

START_TEST(what_was_written_is_a_version_and_starts_the_training)
{
    ck_assert(!look()); /* nothing is to be frozen */
    run_command();
    ck_assert(look());
    wait_for_freeze();
    ck_assert(look());
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "IDLE");
    ck_assert_str_eq(pipeline_record(&fixture, "t").state, "TRAINING");
    ck_assert_str_eq(pipeline_record(&fixture, "t").runs.cause, "clean version 1");
    ck_assert(!look());
    /* The same files once more: no version, and nothing starts. */
    struct weir_ion_event ended = {
        .type = WEIR_ION_EVENT_CANCELLED, .pipeline = "t", .training = 1, .actor = "ann"};
    turn(&fixture, ion_event_in, &ended);
    run_command();
    (void)look();
    wait_for_freeze();
    (void)look();
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "IDLE");
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.training, 1);
    ck_assert_uint_eq(n_events("run_finished"), 2);
}

END_TEST

START_TEST(a_server_that_dies_between_version_and_pipeline_tells_it_after_its_start)
{
    run_command();
    (void)look();
    wait_for_freeze(); /* the version is there, and the pipeline does not know */
    freezer_destroy(freezer);
    begin_preparer();
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "FREEZING");
    (void)look();
    wait_for_freeze();
    (void)look();
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "IDLE");
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.dataset_version, 1);
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.training, 1);
    ck_assert_uint_eq(n_events("dataset_version"), 1);
}

END_TEST

START_TEST(what_cannot_be_frozen_is_a_failure_of_the_run)
{
    ck_assert_int_eq(
        symlink("/etc/passwd", weir_arena_printf(&fixture.store.arena, "%s/link", folder)), 0);
    run_command();
    (void)look();
    wait_for_freeze();
    (void)look();
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "IDLE");
    ck_assert_str_eq(alert_state(&fixture, "pipeline_failed:x:prepare"), "open");
    ck_assert_int_eq(pipeline_record(&fixture, "t").runs.training, 0);
}

END_TEST

/* A stop is not the run's failure: its next server freezes again, unless all was frozen before the stop. */
START_TEST(a_server_that_stops_meanwhile_leaves_it_to_the_next)
{
    for (int i = 0; i < 300; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d.txt", i);
        write_file(name, name);
    }
    run_command();
    ck_assert(look());
    freezer_stop(freezer);
    bool is_frozen = n_events("dataset_version") > 0;
    (void)look();
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, is_frozen ? "IDLE" : "FREEZING");
    ck_assert_str_eq(alert_state(&fixture, "pipeline_failed:x:prepare"), "");
    freezer_destroy(freezer);
    n_wakes = 0;
    begin_preparer();
    (void)look();
    if (!is_frozen) {
        wait_for_freeze();
    }
    (void)look();
    ck_assert_str_eq(pipeline_record(&fixture, "prepare").state, "IDLE");
    ck_assert_uint_eq(n_events("dataset_version"), 1);
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("preparer");
    TCase *tcase = tcase_create("preparer");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_was_written_is_a_version_and_starts_the_training);
    tcase_add_test(tcase, a_server_that_dies_between_version_and_pipeline_tells_it_after_its_start);
    tcase_add_test(tcase, what_cannot_be_frozen_is_a_failure_of_the_run);
    tcase_add_test(tcase, a_server_that_stops_meanwhile_leaves_it_to_the_next);
    suite_add_tcase(suite, tcase);
    return weir_test_run(suite);
}
