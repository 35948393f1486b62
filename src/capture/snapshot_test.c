/* Snapshots: what is in one, that it is whole or not there, and that only whole ones are imported. */
#include "capture/capture_fixture.h"

#include "base/rng.h"
#include "capture/tar.h"
#include "ion/revision.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t n_files(void)
{
    size_t n = 0;
    DIR *dir = opendir(weir_arena_printf(&fixture.arena, "%s/snapshots", fixture.dir));
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        n += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

struct counts {
    int64_t n, first_ms, last_ms;
};

static weir_status see_decision(void *context, const void *record, struct weir_error *err)
{
    struct counts *counts = context;
    const struct weir_decision *decision = record;
    (void)err;
    counts->first_ms = counts->n++ == 0 ? decision->time_ms : counts->first_ms;
    counts->last_ms = decision->time_ms;
    ck_assert_str_eq(decision->camera, "front, \"main\" door");
    return WEIR_OK;
}

static weir_status see_revision(void *context, const void *record, struct weir_error *err)
{
    struct counts *counts = context;
    const struct weir_ion_revision *revision = record;
    (void)err;
    ck_assert_int_eq(revision->revision, ++counts->n);
    ck_assert_str_eq(revision->actor, "ann");
    ck_assert_ptr_nonnull(strstr(revision->document, counts->n == 1 ? "always-update" : "manual"));
    return WEIR_OK;
}

static int64_t rows_of(const struct weir_snapshot_file *file, const char *table)
{
    return json_integer_value(
        json_object_get(json_object_get(weir_snapshot_manifest(file), "rows"), table));
}

START_TEST(a_snapshot_has_what_the_span_needs)
{
    struct counts decisions = {0}, revisions = {0};
    capture_history();
    struct weir_snapshot made = capture_make("monday", true);
    ck_assert_uint_eq(n_files(), 1);
    ck_assert_int_eq(made.revision, 2);
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_int_eq(weir_snapshot_verify(file, &fixture.err), WEIR_OK);
    ck_assert_int_eq(
        weir_snapshot_rows(file, &weir_noun_decision, see_decision, &decisions, &fixture.err),
        WEIR_OK);
    ck_assert_int_eq(decisions.n, 8); /* hours 2 to 9 */
    ck_assert_int_eq(decisions.first_ms, BEGIN_MS + 2 * HOUR_MS);
    ck_assert_int_eq(decisions.last_ms, BEGIN_MS + 9 * HOUR_MS);
    ck_assert_int_eq(
        weir_snapshot_rows(file, &weir_noun_ion_revision, see_revision, &revisions, &fixture.err),
        WEIR_OK);
    ck_assert_int_eq(revisions.n, 2); /* also the one before the span */
    ck_assert_int_eq(rows_of(file, "metrics"), 2);
    ck_assert_int_eq(rows_of(file, "runs"), 1);
    ck_assert_int_eq(rows_of(file, "alerts"), 1);
    ck_assert_int_eq(rows_of(file, "candidates"), 3);
    ck_assert_int_eq(rows_of(file, "model-versions"), 3);
    ck_assert_int_eq(rows_of(file, "policy-decisions"), 8);
    ck_assert_int_gt(rows_of(file, "events"), 3);
    weir_snapshot_close(file);
}

END_TEST

static weir_status add_metrics_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct weir_metric *metrics =
        WEIR_ARENA_ARRAY(&fixture.arena, WEIR_QUERY_LIMIT_MAX + 1, struct weir_metric);
    (void)context;
    for (int i = 0; i <= WEIR_QUERY_LIMIT_MAX; i++) {
        metrics[i] = (struct weir_metric){"r1", "lr", i, 0.5, BEGIN_MS + HOUR_MS};
    }
    return weir_metrics_put(txn, "r1", metrics, WEIR_QUERY_LIMIT_MAX + 1, err);
}

START_TEST(all_metrics_of_a_run_are_in_it)
{
    capture_history();
    fixture_write(&fixture, add_metrics_in, NULL);
    struct weir_snapshot made = capture_make("monday", false);
    struct weir_snapshot_file *file = capture_open(&made);
    ck_assert_int_eq(rows_of(file, "metrics"), WEIR_QUERY_LIMIT_MAX + 3);
    weir_snapshot_close(file);
}

END_TEST

static weir_status delete_version_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_model_version_delete(txn, context, "ann", BEGIN_MS + 9 * HOUR_MS, err);
}

START_TEST(a_version_that_was_deleted_is_named_and_left_out)
{
    size_t n_whole = 0, i;
    const char *gone = NULL;
    capture_history();
    fixture_write(&fixture, delete_version_in, "t-v1");
    struct weir_snapshot made = capture_make("monday", true);
    struct weir_snapshot_file *file = capture_open(&made);
    json_t *models = json_loads(made.models, 0, NULL), *item;
    json_array_foreach(models, i, item)
    {
        bool is_whole = json_is_true(json_object_get(item, "is_whole"));
        n_whole += is_whole;
        gone = is_whole ? gone : json_string_value(json_object_get(item, "blob"));
    }
    ck_assert_uint_eq(json_array_size(models), 3);
    ck_assert_uint_eq(n_whole, 2);
    int fd;
    uint64_t offset, bytes;
    ck_assert(!weir_snapshot_model(file, gone, &fd, &offset, &bytes));
    weir_snapshot_close(file);
    json_decref(models);
}

END_TEST

START_TEST(a_model_whose_file_is_gone_leaves_no_file)
{
    struct weir_snapshot made;
    capture_history();
    struct weir_ion_event event = capture_model(2);
    ck_assert_int_eq(weir_blob_remove(capture.blobs, event.models[0].blob, &fixture.err), WEIR_OK);
    ck_assert_int_eq(capture_try("monday", true, &made), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(fixture.err.message, "version 2 of model"));
    ck_assert_uint_eq(n_files(), 0);
}

END_TEST

static weir_status count_named(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_query_int(txn, "SELECT count(*) FROM snapshots", WEIR_NO_BINDS, -1, context,
                              err);
}

START_TEST(a_file_without_a_row_is_swept_and_one_with_a_row_stays)
{
    struct weir_snapshot half;
    int64_t n;
    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    ck_assert_int_eq(capture_try("tuesday", false, &half), WEIR_OK); /* killed before its row */
    char *rest = weir_arena_printf(&fixture.arena, "%s/snapshots/x.tar.tmp", fixture.dir);
    ck_assert_int_eq(weir_file_write(rest, "half", 4, 0600, &fixture.err), WEIR_OK);
    ck_assert_uint_eq(n_files(), 3);
    ck_assert_int_eq(weir_snapshots_sweep(fixture.store, &capture, &fixture.err), WEIR_OK);
    ck_assert_uint_eq(n_files(), 1);
    weir_snapshot_close(capture_open(&made));
    fixture_read(&fixture, count_named, &n);
    ck_assert_int_eq(n, 1);
}

END_TEST

START_TEST(a_full_disk_leaves_nothing)
{
    struct weir_snapshot made;
    capture_history();
    pid_t child = fork(); /* its limit is its own */
    if (child == 0) {
        (void)signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit = {8192, 8192};
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        weir_status status = capture_try("monday", true, &made);
        /* EFBIG, where a full disk says ENOSPC */
        _exit(status == WEIR_ERR_LIMIT && n_files() == 0 ? 0 : 1);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_int_eq(how, 0);
    ck_assert_int_eq(capture_try("monday", true, &made), WEIR_OK);
}

END_TEST

START_TEST(what_cannot_be_a_snapshot_is_refused)
{
    struct capture_taken taken = {
        .wanted = {.name = "Monday!", .ion = "x", .actor = "ann", .now_ms = BEGIN_MS + HOUR_MS}};
    capture_history();
    ck_assert_int_eq(weir_store_read(fixture.store, capture_take_in, &taken, &fixture.err),
                     WEIR_ERR_INVALID);
    taken.wanted.name = "monday";
    taken.wanted.ion = "none";
    ck_assert_int_eq(weir_store_read(fixture.store, capture_take_in, &taken, &fixture.err),
                     WEIR_ERR_NOT_FOUND);
    taken.wanted.ion = "x";
    taken.wanted.from_ms = BEGIN_MS + 2 * HOUR_MS;
    taken.wanted.to_ms = BEGIN_MS;
    ck_assert_int_eq(weir_store_read(fixture.store, capture_take_in, &taken, &fixture.err),
                     WEIR_ERR_INVALID);
    ck_assert_uint_eq(n_files(), 0);
}

END_TEST

/* A copy of a snapshot's file, as it would be uploaded. */
static char *copy_of(const struct weir_snapshot *snapshot, char **out_bytes, size_t *out_len)
{
    char *path = weir_snapshot_path(&capture, snapshot->id, &fixture.arena);
    char *copy = weir_arena_printf(&fixture.arena, "%s/upload", fixture.dir);
    ck_assert_int_eq(
        weir_file_read(path, 64 << 20, &fixture.arena, out_bytes, out_len, &fixture.err), WEIR_OK);
    ck_assert_int_eq(weir_file_write(copy, *out_bytes, *out_len, 0600, &fixture.err), WEIR_OK);
    return copy;
}

static weir_status try_import(const char *path, const char *name, struct weir_snapshot *out)
{
    return weir_snapshot_import(&capture, path, name, "default", "carl", BEGIN_MS, &fixture.arena,
                                out, &fixture.err);
}

START_TEST(an_exported_snapshot_is_imported_with_its_models)
{
    char *bytes, *again, *kept;
    size_t len, again_len;
    struct weir_snapshot copy;
    capture_history();
    struct weir_snapshot made = capture_make("monday", true);
    (void)copy_of(&made, &bytes, &len);
    kept = malloc(len);
    ck_assert_ptr_nonnull(kept);
    memcpy(kept, bytes, len);
    capture_tear_down();
    capture_set_up(); /* another server, with an empty store */
    char *upload = weir_arena_printf(&fixture.arena, "%s/upload", fixture.dir);
    ck_assert_int_eq(weir_file_write(upload, kept, len, 0600, &fixture.err), WEIR_OK);
    weir_status status = try_import(upload, NULL, &copy);
    ck_assert_msg(status == WEIR_OK, "%s", fixture.err.message);
    fixture_write(&fixture, capture_insert, &copy);
    ck_assert(!weir_path_exists(upload));
    ck_assert_str_eq(copy.name, "monday");
    ck_assert_str_eq(copy.ion, "x");
    ck_assert(copy.is_imported && copy.has_models);
    ck_assert_int_eq(copy.from_ms, BEGIN_MS + 2 * HOUR_MS);
    ck_assert_int_eq(copy.bytes, (int64_t)len);
    (void)copy_of(&copy, &again, &again_len);
    ck_assert_uint_eq(again_len, len);
    ck_assert_int_eq(memcmp(again, kept, len), 0);
    json_t *models = json_loads(copy.models, 0, NULL), *item;
    size_t i;
    ck_assert_uint_eq(json_array_size(models), 3);
    json_array_foreach(models, i, item)
    {
        ck_assert(
            weir_blob_exists(capture.blobs, json_string_value(json_object_get(item, "blob"))));
    }
    json_decref(models);
    free(kept);
}

END_TEST

/* Each byte that carries something is under a sum: of the file's, the header's, or the archive's. */
START_TEST(a_snapshot_with_a_changed_byte_is_refused)
{
    char *bytes;
    size_t len, n_taken = 0;
    struct weir_rng rng;
    struct weir_snapshot copy;
    uint64_t seed = 20261126;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    capture_history();
    struct weir_snapshot made = capture_make("monday", false);
    char *upload = copy_of(&made, &bytes, &len);
    for (int i = 0; i < WEIR_TEST_TIMES(60, 10); i++) {
        size_t at = (size_t)weir_rng_below(&rng, len);
        char was = bytes[at];
        bool is_padding = was == 0;
        bytes[at] = (char)(was ^ (1 + (int)weir_rng_below(&rng, 255)));
        ck_assert_int_eq(weir_file_write(upload, bytes, len, 0600, &fixture.err), WEIR_OK);
        if (try_import(upload, "copy", &copy) == WEIR_OK) {
            n_taken++;
            ck_assert_msg(is_padding, "byte %zu", at);
            weir_snapshot_discard(&capture, copy.id);
        } else {
            ck_assert(weir_path_exists(upload));
        }
        bytes[at] = was;
    }
    ck_assert_uint_lt(n_taken, 60);
    ck_assert_uint_eq(n_files(), 1);
}

END_TEST

START_TEST(an_archive_that_is_no_snapshot_is_refused)
{
    static const char *const manifests[] = {
        "",
        "[]",
        "{}",
        "{\"format\":\"weir-snapshot\"}",
        "{\"format\":\"weir-snapshot\",\"version\":99}",
        "{\"format\":\"weir-snapshot\",\"version\":1,\"name\":\"../x\",\"ion\":\"x\"}",
        "{\"format\":\"weir-snapshot\",\"version\":1,\"name\":\"a\",\"ion\":\"x\","
        "\"from\":\"2026-01-02T00:00:00Z\",\"to\":\"2026-01-01T00:00:00Z\"}",
        "{\"format\":\"weir-snapshot\",\"version\":1,\"name\":\"a\",\"ion\":\"x\","
        "\"from\":\"2026-01-01T00:00:00Z\",\"to\":\"2026-01-02T00:00:00Z\",\"models\":[],"
        "\"files\":[{\"name\":\"../../weir.db\",\"bytes\":1,\"sha256\":\"\"}]}"};
    char *upload = weir_arena_printf(&fixture.arena, "%s/upload", fixture.dir);
    struct weir_snapshot copy;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(manifests); i++) {
        struct tar_writer writer;
        struct tar_made ignored;
        char *half = weir_arena_printf(&fixture.arena, "%s.tmp", upload);
        ck_assert_int_eq(tar_create(&writer, half, 1 << 20, 0, &fixture.err), WEIR_OK);
        ck_assert_int_eq(tar_begin(&writer, WEIR_SNAPSHOT_MANIFEST, &fixture.err), WEIR_OK);
        ck_assert_int_eq(tar_write(&writer, manifests[i], strlen(manifests[i]), &fixture.err),
                         WEIR_OK);
        ck_assert_int_eq(tar_end(&writer, &ignored, &fixture.err), WEIR_OK);
        ck_assert_int_eq(tar_finish(&writer, upload, &fixture.err), WEIR_OK);
        tar_abandon(&writer);
        ck_assert_msg(try_import(upload, NULL, &copy) != WEIR_OK, "%s", manifests[i]);
    }
    ck_assert_int_eq(weir_file_write(upload, "no tar", 6, 0600, &fixture.err), WEIR_OK);
    ck_assert_int_eq(try_import(upload, NULL, &copy), WEIR_ERR_INVALID);
    ck_assert_uint_eq(n_files(), 0);
}

END_TEST

/* A snapshot of an earlier Weir is read by these names, and written in this order. */
START_TEST(tables_keep_their_names_and_order)
{
    static const char *const names[] = {
        "ion",       "revisions",        "pipelines",     "candidates", "members",
        "replicas",  "policy-decisions", "events",        "alerts",     "health-reports",
        "decisions", "orders",           "feedback",      "kpis",       "statistics",
        "runs",      "metrics",          "model-versions"};
    size_t n = 0;
    for (; weir_captured_at(n) != NULL; n++) {
        ck_assert_uint_lt(n, WEIR_ARRAY_LEN(names));
        ck_assert_str_eq(weir_captured_at(n)->captured->name, names[n]);
    }
    ck_assert_uint_eq(n, WEIR_ARRAY_LEN(names));
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_snapshot_has_what_the_span_needs,
        all_metrics_of_a_run_are_in_it,
        a_version_that_was_deleted_is_named_and_left_out,
        a_model_whose_file_is_gone_leaves_no_file,
        a_file_without_a_row_is_swept_and_one_with_a_row_stays,
        a_full_disk_leaves_nothing,
        what_cannot_be_a_snapshot_is_refused,
        an_exported_snapshot_is_imported_with_its_models,
        a_snapshot_with_a_changed_byte_is_refused,
        an_archive_that_is_no_snapshot_is_refused,
        tables_keep_their_names_and_order,
    };
    return weir_test_run(weir_test_suite_with("snapshot", capture_set_up, capture_tear_down, tests,
                                              WEIR_ARRAY_LEN(tests)));
}
