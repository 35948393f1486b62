#include "retain/retain_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Put a blob whose time is long past, as the driven clock sees it. */
static const char *put(const char *text)
{
    static char names[16][WEIR_SHA256_TEXT_BYTES];
    static int i_name;
    char *name = names[i_name = (i_name + 1) % 16], *path;
    ck_assert_int_eq(weir_blob_put(blobs, text, strlen(text), NULL, name, NULL), WEIR_OK);
    ck_assert_int_eq(weir_blob_path(blobs, name, &fixture.arena, &path, NULL, NULL), WEIR_OK);
    struct timespec times[2] = {{.tv_sec = NOON_MS / 1000}, {.tv_sec = NOON_MS / 1000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    return name;
}

static bool has(const char *name)
{
    char *path;
    return weir_blob_path(blobs, name, &fixture.arena, &path, NULL, NULL) == WEIR_OK;
}

static void add_model(const char *id, const char *blob)
{
    sql("INSERT INTO projects (name, created_ms) VALUES ('p', 0) ON CONFLICT DO NOTHING");
    sql("INSERT INTO models (name, project, created_ms) VALUES ('m', 'p', 0) ON CONFLICT DO "
        "NOTHING");
    sql("INSERT INTO model_versions (id, model, version, blob, bytes, dataset_version, created_ms)"
        " VALUES ('%s', 'm', (SELECT count(*) + 1 FROM model_versions), '%s', 1, 0, 0)",
        id, blob);
}

static void add_dataset_version(int version, const char *manifest)
{
    sql("INSERT INTO projects (name, created_ms) VALUES ('p', 0) ON CONFLICT DO NOTHING");
    sql("INSERT INTO datasets (name, project, kind, path, is_uploaded, created_ms) VALUES"
        " ('d', 'p', 'folder', '/', 0, 0) ON CONFLICT DO NOTHING");
    sql("INSERT INTO dataset_versions (id, dataset, version, digest, blob, n_files, n_classes, "
        "bytes,"
        " created_ms) VALUES ('v%d', 'd', %d, 'x', '%s', 1, 1, 1, 0)",
        version, version, manifest);
}

START_TEST(what_a_record_or_a_manifest_names_stays_and_the_rest_goes_after_a_day)
{
    char manifest[256];
    const char *model = put("model"), *photo = put("photo"), *lost = put("lost");
    (void)snprintf(manifest, sizeof manifest,
                   "{\"dataset\":\"d\",\"files\":[{\"class\":\"a\",\"sha256\":\"%s\"}]}", photo);
    const char *listing = put(manifest), *script = put("script"), *waits = put("waits");
    add_model("one", model);
    add_dataset_version(1, listing);
    add_job("j", "command", "SUCCEEDED", NOON_MS);
    sql("UPDATE jobs SET spec = '{\"files\": {\"run.sh\": \"%s\"}}'", script);
    sql("INSERT INTO outbox (seq, key, kind, payload, state, attempts, due_ms, created_ms, done_ms)"
        " VALUES (1, 'k', 'x', '{\"blob\":\"%s\"}', 'pending', 0, 0, 0, 0)",
        waits);
    const char *frozen = put("frozen");
    sql("INSERT INTO snapshots (name, id, ion, project, from_ms, to_ms, revision, n_rows, "
        "has_models,"
        " is_imported, bytes, models, created_ms) VALUES ('s', 'i', 'x', 'p', 0, 0, 1, 1, 0, 0, 1,"
        " '[{\"blob\":\"%s\"}]', 0)",
        frozen);
    now_ms = NOON_MS + DAY_MS - 1;
    sweep_round();
    ck_assert(has(lost));
    now_ms = NOON_MS + DAY_MS + 1;
    sweep_round();
    ck_assert(!has(lost));
    now_ms = NOON_MS + 10 * DAY_MS;
    sweep_round();
    ck_assert(has(model));
    ck_assert(has(photo));
    ck_assert(has(listing));
    ck_assert(has(script));
    ck_assert(has(waits));
    ck_assert(has(frozen));
    sql("DELETE FROM snapshots");
    sweep_round();
    ck_assert(!has(frozen));
    sql("UPDATE model_versions SET deleted_ms = 1");
    sweep_round();
    ck_assert(!has(model));
}

END_TEST

START_TEST(a_folder_of_code_keeps_its_files_while_it_is_young_or_named)
{
    char folder[256];
    const char *file = put("train.py"), *other = put("other.py");
    (void)snprintf(folder, sizeof folder, "weir-tree 1\nf\t%s\t8\ttrain.py\n", file);
    const char *manifest = put(folder);
    (void)snprintf(folder, sizeof folder, "weir-tree 1\nf\t%s\t8\tother.py\n", other);
    const char *unnamed = put(folder);
    add_job("j", "command", "SUCCEEDED", NOON_MS);
    sql("UPDATE jobs SET spec = '{\"code\": {\"manifest\": \"%s\"}}'", manifest);
    sql("INSERT INTO code_manifests SELECT name, '%s', 1, 8, %lld FROM projects LIMIT 1", manifest,
        (long long)NOON_MS);
    sql("INSERT INTO code_manifests SELECT name, '%s', 1, 8, %lld FROM projects LIMIT 1", unnamed,
        (long long)NOON_MS);
    now_ms = NOON_MS + 2 * DAY_MS;
    sweep_round();
    ck_assert(has(other) && has(unnamed));
    now_ms = NOON_MS + 2 * DAY_MS + 2 * HOUR_MS;
    sweep_round();
    ck_assert(!has(other) && !has(unnamed));
    ck_assert_int_eq(ask("SELECT count(*) FROM code_manifests"), 1);
    now_ms = NOON_MS + 60 * DAY_MS;
    sweep_round();
    ck_assert(has(file) && has(manifest));
}

END_TEST

START_TEST(an_hour_of_grace_is_the_least_whatever_the_policy_says)
{
    const char *lost = put("lost");
    retain("blobs", "0s");
    now_ms = NOON_MS + HOUR_MS / 2;
    sweep_round();
    ck_assert(has(lost));
    now_ms = NOON_MS + HOUR_MS + 1;
    sweep_round();
    ck_assert(!has(lost));
}

END_TEST

START_TEST(a_manifest_that_cannot_be_read_stops_the_sweep)
{
    struct weir_error err = {0};
    const char *lost = put("lost");
    add_dataset_version(1, "00000000000000000000000000000000000000000000000000000000000000aa");
    now_ms = NOON_MS + 10 * DAY_MS;
    ck_assert_int_eq(weir_retainer_round(retainer, &err), WEIR_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "manifest"));
    ck_assert(has(lost));
}

END_TEST

/* Whoever stores a blob and then names it finds it there, also while sweeps go on without an end.
 */
static atomic_bool is_over;

static void *sweep_on_and_on(void *context)
{
    (void)context;
    while (!is_over) {
        now_ms = weir_time_ms();
        sweep_round();
    }
    return NULL;
}

START_TEST(a_blob_that_is_stored_and_then_named_is_never_lost)
{
    pthread_t thread;
    retain("blobs", "0s");
    now_ms = weir_time_ms();
    ck_assert_int_eq(pthread_create(&thread, NULL, sweep_on_and_on, NULL), 0);
    for (int i = 0; i < 60; i++) {
        char text[32], id[32], name[WEIR_SHA256_TEXT_BYTES];
        (void)snprintf(text, sizeof text, "model %d", i % 20);
        (void)snprintf(id, sizeof id, "id%d", i);
        (void)put(text); /* it lies there since long, named by nobody */
        ck_assert_int_eq(weir_blob_put(blobs, text, strlen(text), NULL, name, NULL), WEIR_OK);
        if (weir_blob_exists(blobs, name)) {
            add_model(id, name);
        } else {
            ck_abort_msg("blob %d was swept between its storing and its naming", i);
        }
        ck_assert(has(name));
    }
    is_over = true;
    pthread_join(thread, NULL);
}

END_TEST

WEIR_TEST_MAIN_WITH("blobs", retain_set_up, retain_tear_down,
                    what_a_record_or_a_manifest_names_stays_and_the_rest_goes_after_a_day,
                    a_folder_of_code_keeps_its_files_while_it_is_young_or_named,
                    an_hour_of_grace_is_the_least_whatever_the_policy_says,
                    a_manifest_that_cannot_be_read_stops_the_sweep,
                    a_blob_that_is_stored_and_then_named_is_never_lost)
