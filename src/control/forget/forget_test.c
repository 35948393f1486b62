/* Forgetting a person: every file of the state folder is searched for the bytes that should be gone, also after the
 * process was killed before each of its changes. */
#include "base/file.h"
#include "base/rng.h"
#include "capture/snapshot.h"
#include "control/forget.h"
#include "control/forget/forget_private.h"
#include "nouns/nouns.h"
#include "store/store_fixture.h"
#include "store/table.h"
#include "track/track.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_PHOTOS    3
#define PHOTO_BYTES 900
#define DIM         8
#define STEPS_MAX   200
#define NOW_MS      ((int64_t)1700000000000)

enum { ADA, BOB, N_PEOPLE };

static const char *const people[] = {"ada", "bob"};

/* What must go of one and stay of the other. */
static struct {
    char photo[N_PEOPLE][N_PHOTOS][PHOTO_BYTES];
    char digest[N_PEOPLE][N_PHOTOS][WEIR_SHA256_TEXT_BYTES];
    char vector[N_PEOPLE][N_PHOTOS][DIM * sizeof(float)];
    char crop[N_PEOPLE][2]
             [PHOTO_BYTES]; /* the second: of a decision that did not know the person */
} bytes;

static struct store_fixture fixture;
static struct weir_blobs *blobs;
static struct weir_packs *packs;
static int steps_left;

static const char *in_state(const char *name)
{
    return weir_arena_printf(&fixture.arena, "%s/%s", fixture.dir, name);
}

static void put_file(const char *name, const void *data, size_t len)
{
    const char *path = in_state(name);
    char *dir = weir_arena_printf(&fixture.arena, "%.*s", (int)(strrchr(path, '/') - path), path);
    ck_assert_int_eq(weir_dir_make(dir, 0700, NULL), WEIR_OK);
    ck_assert_int_eq(weir_file_write(path, data, len, 0600, NULL), WEIR_OK);
}

static weir_status exec_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_exec(txn, context, WEIR_NO_BINDS, NULL, err);
}

static void WEIR_PRINTF(1, 2) sql(const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fixture_write(&fixture, exec_in, text);
}

struct asking {
    const char *sql;
    int64_t value;
};

static weir_status ask_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct asking *asking = context;
    return weir_txn_query_int(txn, asking->sql, WEIR_NO_BINDS, -1, &asking->value, err);
}

static int64_t ask(const char *text)
{
    struct asking asking = {.sql = text};
    fixture_read(&fixture, ask_in, &asking);
    return asking.value;
}

/* ---- the state folder ------------------------------------------------------------------------ */

static void open_all(void)
{
    fixture_open(&fixture, (struct weir_store_config){.noun_at = weir_noun_at});
    ck_assert_int_eq(weir_blobs_open(in_state("blobs"), &blobs, NULL), WEIR_OK);
    ck_assert_int_eq(weir_packs_open(in_state("pictures"), 0, &packs, NULL), WEIR_OK);
}

static void close_all(void)
{
    weir_packs_close(packs);
    weir_blobs_close(blobs);
    weir_store_close(fixture.store);
    fixture.store = NULL;
}

/* A folder with the photos, frozen once: its manifest and its files as blobs. */
static void make_dataset(const char *name, const char *project)
{
    json_t *files = json_array();
    char blob[WEIR_SHA256_TEXT_BYTES];
    for (int who = 0; who < N_PEOPLE; who++) {
        for (int i = 0; i < N_PHOTOS; i++) {
            put_file(
                weir_arena_printf(&fixture.arena, "datasets/%s/%s/%d.pgm", name, people[who], i),
                bytes.photo[who][i], PHOTO_BYTES);
            ck_assert_int_eq(
                weir_blob_put(blobs, bytes.photo[who][i], PHOTO_BYTES, NULL, blob, NULL), WEIR_OK);
            ck_assert_str_eq(blob, bytes.digest[who][i]);
            json_array_append_new(files, json_pack("{s:s,s:s,s:i}", "class", people[who], "sha256",
                                                   blob, "bytes", PHOTO_BYTES));
        }
    }
    json_t *manifest = json_pack("{s:s,s:o}", "dataset", name, "files", files);
    char *text = json_dumps(manifest, 0);
    ck_assert_int_eq(weir_blob_put(blobs, text, strlen(text), NULL, blob, NULL), WEIR_OK);
    free(text);
    json_decref(manifest);
    sql("INSERT INTO projects (name, created_ms) VALUES ('%s', 0) ON CONFLICT DO NOTHING", project);
    sql("INSERT INTO datasets (name, project, kind, path, is_uploaded, created_ms)"
        " VALUES ('%s', '%s', 'folder', '%s', 1, 1)",
        name, project, in_state(weir_arena_printf(&fixture.arena, "datasets/%s", name)));
    sql("INSERT INTO dataset_versions (id, dataset, version, digest, blob, n_files, n_classes, "
        "n_rows,"
        " bytes, created_ms) VALUES ('%s-1', '%s', 1, 'd', '%s', 6, 2, 0, 1, 1)",
        name, name, blob);
}

/* What replicas, sandboxes and tasks left: copies of photos, and embeddings. */
static void make_copies(void)
{
    char rows[N_PEOPLE * N_PHOTOS * (64 + DIM * sizeof(float)) + 24] = "WEIREMB1";
    uint32_t dim = DIM;
    size_t at = 20;
    memcpy(rows + 8, &dim, sizeof dim);
    for (int who = 0; who < N_PEOPLE; who++) {
        for (int i = 0; i < N_PHOTOS; i++) {
            static const char *const folders[] = {"replicas/j-0/cache", "agent/tasks/t.1/work",
                                                  "sandbox/j"};
            memcpy(rows + at, bytes.digest[who][i], 64);
            memcpy(rows + at + 64, bytes.vector[who][i], sizeof bytes.vector[who][i]);
            at += 64 + sizeof bytes.vector[who][i];
            put_file(
                weir_arena_printf(&fixture.arena, "%s/photo-%s", folders[i], bytes.digest[who][i]),
                bytes.photo[who][i], PHOTO_BYTES);
        }
    }
    put_file("replicas/j-0/cache/embeddings", rows, at + 4);
}

/* Decisions: one that says the person, and one that says nobody, of which somebody told who it was. */
static void make_decisions(const char *ion, const char *project, int64_t first)
{
    sql("INSERT INTO ions (name, project, document, revision, state, list_revision, n_decisions,"
        " n_served, created_ms, updated_ms) VALUES ('%s', '%s', '{}', 1, 'ACTIVE', 0, 0, 0, 1, 1)",
        ion, project);
    for (int i = 0; i < 2 * N_PEOPLE; i++) {
        struct weir_pack_place place;
        int who = i / 2, is_told = i % 2;
        char id[40], sha256[WEIR_SHA256_TEXT_BYTES], kept[2 * PHOTO_BYTES];
        const char *crop = bytes.crop[who][is_told];
        memcpy(kept, crop, PHOTO_BYTES); /* and a film behind it */
        memcpy(kept + PHOTO_BYTES, bytes.crop[who][1 - is_told], PHOTO_BYTES);
        (void)snprintf(id, sizeof id, "018f0000-0000-7000-8000-%012" PRId64, first + i);
        weir_sha256(crop, PHOTO_BYTES, sha256);
        ck_assert_int_eq(weir_packs_append(packs, id, kept, sizeof kept, &place, NULL), WEIR_OK);
        put_file(weir_arena_printf(&fixture.arena, "replicas/j-0/images/%s.jpg", id), kept,
                 sizeof kept);
        sql("INSERT INTO decisions (id, seq, ion, pipeline, camera, frame, time_ms, verdict, "
            "person,"
            " model_version, gallery_version, list_revision, latency_us, durable_us, image, pack,"
            " pack_offset, pack_bytes, film_bytes, passage) VALUES ('%s', %" PRId64
            ", '%s', 'p', 'c', %" PRId64 ", %" PRId64
            ", 'grant', %s%s%s, 1, 1, 1, 1, 1, '%s', %" PRId64 ", %" PRId64 ", %" PRId64
            ", %d, '{\"nearest\":[{\"person\":\"ada\"}],\"frames\":[{\"person\":\"%s\","
            "\"bytes\":%d,\"has_picture\":true}]}')",
            id, first + i, ion, first + i, NOW_MS, is_told ? "NULL" : "'",
            is_told ? "" : people[who], is_told ? "" : "'", sha256, place.pack, place.offset,
            place.bytes, PHOTO_BYTES, people[who], PHOTO_BYTES);
        sql("INSERT INTO feedback (decision, seq, ion, pipeline, camera, model_version, decided,"
            " truth, is_right, decided_ms, time_ms) VALUES ('%s', %" PRId64
            ", '%s', 'p', 'c', 1, '%s', '%s', %d, %" PRId64 ", 1)",
            id, first + i, ion, is_told ? "unknown" : people[who], people[who], !is_told, NOW_MS);
    }
}

/* What came of requests of a deployment, told with the truth. */
static void make_outcomes(void)
{
    static const char *const told[][2] = {{"bob", "ada"}, {"ada", "bob"}};
    for (int i = 0; i < 2; i++) {
        sql("INSERT INTO outcomes (id, seq, request, deployment, version, name, value, decided, "
            "truth,"
            " answered_ms, time_ms) VALUES ('r%d:error', %d, 'r%d', 'gone', 1, 'error', 0, '%s', "
            "'%s',"
            " 1, 1)",
            i, i, i, told[i][0], told[i][1]);
    }
}

/* On whose pictures two models did not agree, in project p. */
static void make_disagreements(void)
{
    sql("INSERT INTO runs (id, name, project, kind, status, dataset_version, created_ms,"
        " finished_ms) VALUES ('compared', 'n', 'p', 'compare', 'FINISHED', 0, 1, 1)");
    sql("INSERT INTO comparisons (run, model, version, live_model, live_version, dataset,"
        " dataset_version, n_samples, n_errors, better, n_live_right, n_candidate_right,"
        " n_both_wrong, n_kept, time_ms) VALUES ('compared', 'm', 2, 'm', 1, 'faces', 1, 2, 0, 0, "
        "0,"
        " 0, 2, 2, 1)");
    for (int who = 0; who < N_PEOPLE; who++) {
        sql("INSERT INTO disagreements (id, run, place, kind, file, label, answer, live_answer)"
            " VALUES ('compared/%d', 'compared', %d, 'both-wrong', 'f', '%s', 'x', 'y')",
            who, who, people[who]);
    }
}

struct taking {
    struct weir_capture capture;
    struct weir_snapshot_wanted wanted;
    struct weir_snapshot_taking *taking;
    struct weir_snapshot made;
};

static weir_status take_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct taking *taking = context;
    return weir_snapshot_take(txn, &taking->capture, &taking->wanted, &fixture.arena,
                              &taking->taking, err);
}

static weir_status keep_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    return weir_txn_insert(txn, &weir_snapshot_resource, context, err);
}

static void make_snapshot(const char *ion)
{
    struct taking taking = {.capture = {.state_dir = fixture.dir, .blobs = blobs},
                            .wanted = {.name = "monday",
                                       .ion = ion,
                                       .to_ms = NOW_MS + 1,
                                       .actor = "ann",
                                       .now_ms = NOW_MS + 1}};
    fixture_read(&fixture, take_in, &taking);
    ck_assert_int_eq(weir_snapshot_seal(taking.taking, &taking.made, &fixture.err), WEIR_OK);
    fixture_write(&fixture, keep_in, &taking.made);
}

static void fill(struct weir_rng *rng, char *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (char)weir_rng_below(rng, 256);
    }
}

static void set_up(void)
{
    struct weir_rng rng;
    weir_rng_init(&rng, 7, 0);
    fill(&rng, (char *)bytes.photo, sizeof bytes.photo);
    fill(&rng, (char *)bytes.vector, sizeof bytes.vector);
    fill(&rng, (char *)bytes.crop, sizeof bytes.crop);
    for (int who = 0; who < N_PEOPLE; who++) {
        for (int i = 0; i < N_PHOTOS; i++) {
            weir_sha256(bytes.photo[who][i], PHOTO_BYTES, bytes.digest[who][i]);
        }
    }
    fixture_init(&fixture);
    open_all();
    make_dataset("faces", "p");
    make_copies();
    make_decisions("door", "p", 1);
    make_outcomes();
    make_disagreements();
    make_snapshot("door");
}

static void tear_down(void)
{
    weir_packs_close(packs);
    weir_blobs_close(blobs);
    fixture_fini(&fixture);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static bool holds(const char *data, size_t len, int who)
{
    bool found = false;
    for (int i = 0; i < N_PHOTOS; i++) {
        found = found || memmem(data, len, bytes.photo[who][i], PHOTO_BYTES) != NULL ||
                memmem(data, len, bytes.vector[who][i], sizeof bytes.vector[who][i]) != NULL;
    }
    for (int i = 0; i < 2; i++) {
        found = found || memmem(data, len, bytes.crop[who][i], PHOTO_BYTES) != NULL;
    }
    return found;
}

/* How many files below a folder hold something of the person, by their content. */
static int n_holding(const char *dir, int who)
{
    int n = 0;
    DIR *stream = opendir(dir);
    ck_assert_ptr_nonnull(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct stat info;
        char *path = weir_arena_printf(&fixture.arena, "%s/%s", dir, entry->d_name), *data;
        size_t len;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            lstat(path, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode)) {
            n += n_holding(path, who);
        } else {
            ck_assert_int_eq(
                weir_file_read(path, (size_t)1 << 30, &fixture.arena, &data, &len, NULL), WEIR_OK);
            n += holds(data, len, who);
        }
    }
    (void)closedir(stream);
    return n;
}

/* Does a snapshot name the person still? */
static bool is_in_snapshots(const char *person)
{
    char *data, *dir = weir_arena_printf(&fixture.arena, "%s/snapshots", fixture.dir), id[64];
    size_t len;
    bool found = false;
    DIR *stream = opendir(dir);
    (void)snprintf(id, sizeof id, "\"%s\"", person);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char *path = weir_arena_printf(&fixture.arena, "%s/%s", dir, entry->d_name);
        size_t n = strlen(path);
        if (n > 4 && strcmp(path + n - 4, ".tar") == 0) { /* others go at the start */
            ck_assert_int_eq(
                weir_file_read(path, (size_t)1 << 30, &fixture.arena, &data, &len, NULL), WEIR_OK);
            found = found || memmem(data, len, id, strlen(id)) != NULL;
        }
    }
    (void)closedir(stream);
    return found;
}

static void check_gone(int n_of_bob)
{
    ck_assert(!is_in_snapshots("ada"));
    ck_assert(is_in_snapshots("bob"));
    ck_assert_int_eq(ask("SELECT count(*) FROM snapshots WHERE changed_ms = 1700000000000 AND"
                         " bytes > 0"),
                     1);
    ck_assert_int_eq(n_holding(fixture.dir, ADA), 0);
    ck_assert_int_eq(n_holding(fixture.dir, BOB), n_of_bob - 1); /* the file of embeddings went */
    ck_assert_int_eq(ask("SELECT count(*) FROM dataset_tombstones WHERE dataset = 'faces' AND"
                         " version = 1 AND person = 'ada' AND n_files = 3 AND bytes = 2700"),
                     1);
    ck_assert_int_eq(ask("SELECT count(*) FROM dataset_tombstones"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM forgotten_people WHERE state = 'done'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM events WHERE kind = 'person_forgotten'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions WHERE image IS NOT NULL"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions WHERE image IS NOT NULL AND"
                         " pack_bytes = 2 * film_bytes AND passage LIKE '%\"has_picture\":true%'"),
                     2);
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions WHERE image IS NULL AND film_bytes = 0"
                         " AND passage LIKE '%\"has_picture\":false%'"),
                     2);
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = 'ada' OR decided = 'ada'"),
                     0);
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = '(forgotten)'"), 2);
    ck_assert_int_eq(ask("SELECT sum(is_right) FROM feedback"), 2); /* as before */
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = 'bob'"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM outcomes WHERE truth = '(forgotten)'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM outcomes WHERE decided = '(forgotten)'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM outcomes WHERE truth = 'bob'"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM disagreements WHERE label = 'ada'"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM disagreements"), 1);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void ask_for(const char *project)
{
    sql("INSERT INTO forgotten_people (id, person, project, state, actor, created_ms) VALUES"
        " ('f1', 'ada', '%s', 'running', 'ann', 1)",
        project);
}

static struct forget forget_of(void)
{
    return (struct forget){.store = fixture.store,
                           .blobs = blobs,
                           .pictures = packs,
                           .state_dir = fixture.dir,
                           .now_ms = NOW_MS};
}

static void resume(void)
{
    const struct forget forget = forget_of();
    forget_resume(&forget);
}

START_TEST(what_is_of_the_person_is_nowhere_and_the_rest_is_where_it_was)
{
    int n_of_bob = n_holding(fixture.dir, BOB);
    ck_assert_int_eq(n_holding(fixture.dir, ADA), n_of_bob);
    ck_assert_int_ge(n_of_bob, 13);
    ck_assert(is_in_snapshots("ada"));
    ask_for("");
    resume();
    check_gone(n_of_bob);
    resume(); /* nothing is left to do */
    check_gone(n_of_bob);
}

END_TEST

START_TEST(another_projects_pictures_and_feedback_stay)
{
    ask_for("q");
    sql("INSERT INTO projects (name, created_ms) VALUES ('q', 0)");
    resume();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions WHERE image IS NOT NULL"), 4);
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = 'ada'"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM disagreements"), 2);
    ck_assert_int_eq(n_holding(fixture.dir, ADA), n_holding(fixture.dir, BOB));
}

END_TEST

static void kill_at(void *context, const char *what)
{
    (void)context;
    (void)what;
    if (steps_left-- == 0) {
        (void)raise(SIGKILL);
    }
}

/* Begin in a process that is killed before its step number n. Returns whether it was. */
static bool forget_and_be_killed(int n)
{
    close_all();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        open_all();
        struct forget forget = forget_of();
        forget.step = kill_at;
        steps_left = n;
        forget_resume(&forget);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    open_all();
    return WIFSIGNALED(status);
}

START_TEST(a_process_that_is_killed_before_any_step_goes_on_when_it_starts)
{
    int n_of_bob = n_holding(fixture.dir, BOB), n = 0;
    for (bool is_killed = true; is_killed; n++) {
        ck_assert_int_lt(n, STEPS_MAX);
        ask_for("");
        is_killed = forget_and_be_killed(n);
        ck_assert_int_eq(ask("SELECT count(*) FROM forgotten_people WHERE state = 'running'"),
                         is_killed);
        resume();
        check_gone(n_of_bob);
        tear_down();
        set_up();
    }
    ck_assert_int_gt(n, 12); /* photos, blobs, copies, pictures, feedback, the end */
}

END_TEST

START_TEST(one_that_fails_holds_up_no_other)
{
    ask_for("");
    sql("INSERT INTO projects (name, created_ms) VALUES ('broken', 0)");
    sql("INSERT INTO datasets (name, project, kind, path, is_uploaded, created_ms)"
        " VALUES ('torn', 'broken', 'folder', '/nowhere', 1, 1)");
    char blob[WEIR_SHA256_TEXT_BYTES];
    ck_assert_int_eq(weir_blob_put(blobs, "no JSON", 7, NULL, blob, NULL), WEIR_OK);
    sql("INSERT INTO dataset_versions (id, dataset, version, digest, blob, n_files, n_classes, "
        "n_rows,"
        " bytes, created_ms) VALUES ('torn-1', 'torn', 1, 'd', '%s', 6, 2, 0, 1, 1)",
        blob);
    sql("INSERT INTO forgotten_people (id, person, project, state, actor, created_ms) VALUES"
        " ('f0', 'bob', 'broken', 'running', 'ann', 0)");
    sql("UPDATE forgotten_people SET project = 'p' WHERE id = 'f1'");
    resume();
    ck_assert_int_eq(ask("SELECT count(*) FROM forgotten_people WHERE id = 'f0' AND state ="
                         " 'running'"),
                     1);
    ck_assert_int_eq(
        ask("SELECT count(*) FROM forgotten_people WHERE id = 'f1' AND state = 'done'"), 1);
    ck_assert_int_eq(n_holding(fixture.dir, ADA), 0);
}

END_TEST

START_TEST(what_is_behind_a_link_stays)
{
    char away[] = "/tmp/weir-away-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(away));
    const char *file = weir_arena_printf(&fixture.arena, "%s/photo", away);
    ck_assert_int_eq(weir_file_write(file, bytes.photo[ADA][0], PHOTO_BYTES, 0600, NULL), WEIR_OK);
    ck_assert_int_eq(symlink(away, in_state("replicas/j-0/away")), 0);
    ck_assert_int_eq(symlink(file, in_state("replicas/j-0/photo")), 0);
    ask_for("");
    resume();
    ck_assert_int_eq(access(file, F_OK), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM forgotten_people WHERE state = 'done'"), 1);
    ck_assert_int_eq(weir_dir_remove(away, NULL), WEIR_OK);
}

END_TEST

START_TEST(a_dataset_is_to_be_frozen_until_a_version_is_newer_than_its_tombstone)
{
    char **names;
    size_t n;
    ask_for("");
    resume();
    ck_assert_int_eq(forget_unfrozen(fixture.store, &fixture.arena, &names, &n, NULL), WEIR_OK);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(names[0], "faces");
    sql("INSERT INTO dataset_versions (id, dataset, version, digest, blob, n_files, n_classes, "
        "n_rows,"
        " bytes, created_ms) VALUES ('faces-2', 'faces', 2, 'd', 'b', 3, 1, 0, 1, 1)");
    ck_assert_int_eq(forget_unfrozen(fixture.store, &fixture.arena, &names, &n, NULL), WEIR_OK);
    ck_assert_uint_eq(n, 0);
}

END_TEST

/* Each step holds the writer: it looks at so many rows, by their keys. */
START_TEST(no_step_that_forgets_names_walks_through_a_table)
{
    static const char *const few[] = {"SCAN ions", "SCAN deployments", NULL}; /* made by people */
    struct forget_names_sql sql;
    size_t n = 0;
    for (; forget_names_at(n, &fixture.arena, &sql); n++) {
        fixture_refuse_walks(&fixture, sql.change, few);
        fixture_refuse_walks(&fixture, sql.last, few);
    }
    ck_assert_uint_ge(n, 5); /* of feedback and outcomes two, of disagreements one */
}

END_TEST

/* More rows than a step looks at, in another order than their keys, of whom the person has every third. */
START_TEST(a_name_is_forgotten_in_every_row_however_many_there_are)
{
    sql("DELETE FROM feedback");
    sql("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5003)"
        " INSERT INTO feedback (decision, seq, ion, pipeline, camera, model_version, decided, "
        "truth,"
        " is_right, decided_ms, time_ms) SELECT printf('%%04d', i * 7919 %% 5003), i, 'door', 'p',"
        " 'c', 1, 'bob', CASE WHEN i %% 3 = 0 THEN 'ada' ELSE 'bob' END, 0, 1, 1 FROM n");
    ask_for("");
    resume();
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = 'ada'"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = 'bob'"), 3336);
    ck_assert_int_eq(ask("SELECT count(*) FROM feedback WHERE truth = '" WEIR_FORGOTTEN_NAME "'"),
                     1667);
}

END_TEST

int main(void)
{
    const TTest *const tests[] = {
        no_step_that_forgets_names_walks_through_a_table,
        a_name_is_forgotten_in_every_row_however_many_there_are,
        what_is_of_the_person_is_nowhere_and_the_rest_is_where_it_was,
        another_projects_pictures_and_feedback_stay,
        a_process_that_is_killed_before_any_step_goes_on_when_it_starts,
        one_that_fails_holds_up_no_other,
        what_is_behind_a_link_stays,
        a_dataset_is_to_be_frozen_until_a_version_is_newer_than_its_tombstone,
    };
    return weir_test_run(
        weir_test_suite_with("forget", set_up, tear_down, tests, WEIR_ARRAY_LEN(tests)));
}
