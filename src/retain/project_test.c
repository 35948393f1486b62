/* Retention by project, against a model: random rows and folders, random times and bounds, and a plain computation of what
 * must stay of them. */
#include "retain/retain_fixture.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_PROJECTS    4
#define N_ROWS        400
#define N_ROUNDS      12
#define AGE_MAX_MS    (40 * DAY_MS)
#define PROJECT_OF(i) ((i) % N_PROJECTS)

static const char *const row_tables[] = {"decisions", "health_reports", "kpis", "feedback",
                                         "statistics"};
static const char *const row_names[] = {"decisions", "health-reports", "kpis", "feedback",
                                        "statistics"};

/* What the model knows: the age of each row, and what was set. -1: not set, or for ever. */
static struct {
    int64_t age_ms[WEIR_ARRAY_LEN(row_names)][N_ROWS];
    bool has_own[N_PROJECTS][WEIR_RETAIN_KINDS_MAX], has_bounds[WEIR_RETAIN_KINDS_MAX];
    int64_t own_ms[N_PROJECTS][WEIR_RETAIN_KINDS_MAX], platform_ms[WEIR_RETAIN_KINDS_MAX];
    int64_t min_ms[WEIR_RETAIN_KINDS_MAX], max_ms[WEIR_RETAIN_KINDS_MAX];
} model;

/* The age that holds, by what the manual says: the project's own, not below the shortest and not above the longest that is
 * allowed; the longest is the platform's age unless an admin has set bounds. */
static double keep_in_model(int project, int kind)
{
    double platform = model.platform_ms[kind] < 0 ? 1e30 : (double)model.platform_ms[kind];
    double min = 0, max = platform, own;
    if (!model.has_own[project][kind]) {
        return platform;
    }
    if (model.has_bounds[kind]) {
        min = model.min_ms[kind] < 0 ? 1e30 : (double)model.min_ms[kind];
        max = model.max_ms[kind] < 0 ? 1e30 : (double)model.max_ms[kind];
    }
    own = model.own_ms[project][kind] < 0 ? 1e30 : (double)model.own_ms[project][kind];
    return own > max ? max : own < min ? min : own;
}

/* ---- settings -------------------------------------------------------------------------------- */

struct setting {
    int project;
    int kind;
};

static weir_status set_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct setting *setting = context;
    char name[8];
    (void)snprintf(name, sizeof name, "p%d", setting->project);
    return weir_retain_project_set(txn, name, setting->kind,
                                   model.has_own[setting->project][setting->kind]
                                       ? &model.own_ms[setting->project][setting->kind]
                                       : NULL,
                                   "ann", now_ms, err);
}

static weir_status set_bounds_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct setting *setting = context;
    const struct weir_retain_bounds bounds = {model.min_ms[setting->kind],
                                              model.max_ms[setting->kind]};
    return weir_retain_bounds_set(
        txn, setting->kind, model.has_bounds[setting->kind] ? &bounds : NULL, "ann", now_ms, err);
}

static void set_own(int project, int kind, bool has, int64_t keep_ms)
{
    struct setting setting = {project, kind};
    model.has_own[project][kind] = has;
    model.own_ms[project][kind] = keep_ms;
    fixture_write(&fixture, set_in, &setting);
}

static void set_bounds(int kind, bool has, int64_t min_ms, int64_t max_ms)
{
    struct setting setting = {0, kind};
    model.has_bounds[kind] = has;
    model.min_ms[kind] = min_ms;
    model.max_ms[kind] = max_ms;
    fixture_write(&fixture, set_bounds_in, &setting);
}

static void set_platform(int kind, int64_t keep_ms)
{
    char text[WEIR_RETAIN_LIMIT_TEXT_BYTES], both[2 * WEIR_RETAIN_LIMIT_TEXT_BYTES];
    model.platform_ms[kind] = keep_ms;
    (void)snprintf(both, sizeof both, "%s,unbounded", weir_retain_age_text(keep_ms, text));
    retain(weir_retain_rule(kind)->name, both);
}

static int64_t random_age(struct weir_rng *rng)
{
    return weir_rng_below(rng, 6) == 0
               ? -1
               : (int64_t)weir_rng_below(rng, AGE_MAX_MS / HOUR_MS) * HOUR_MS;
}

static void change_settings(struct weir_rng *rng, int kind)
{
    set_platform(kind, random_age(rng));
    int64_t a = random_age(rng), b = random_age(rng);
    bool is_swapped = a < 0 || (b >= 0 && a > b);
    set_bounds(kind, weir_rng_below(rng, 2) == 0, is_swapped ? b : a, is_swapped ? a : b);
    for (int project = 0; project < N_PROJECTS; project++) {
        set_own(project, kind, weir_rng_below(rng, 3) > 0, random_age(rng));
    }
}

/* ---- what there is --------------------------------------------------------------------------- */

static void add_projects(void)
{
    for (int project = 0; project < N_PROJECTS; project++) {
        sql("INSERT INTO projects (name, created_ms) VALUES ('p%d', 0)", project);
        sql("INSERT INTO ions (name, project, document, revision, state, list_revision, "
            "n_decisions,"
            " n_served, created_ms, updated_ms) VALUES ('ion%d', 'p%d', '{}', 1, 'ACTIVE', 0, 0, 0,"
            " 1, 1)",
            project, project);
    }
}

static void add_row(size_t table, int i, int64_t time_ms)
{
    int project = PROJECT_OF(i);
    switch (table) {
    case 0: /* decisions */
        sql("INSERT INTO decisions (id, seq, ion, pipeline, camera, frame, time_ms, verdict,"
            " model_version, gallery_version, list_revision, latency_us, durable_us) VALUES"
            " ('d%d', %d, 'ion%d', 'p', 'c', %d, %" PRId64 ", 'deny', 1, 1, 1, 1, 1)",
            i, i + 1, project, i, time_ms);
        break;
    case 1: /* health-reports */
        sql("INSERT INTO health_reports (id, seq, ion, pipeline, signal, statistic, drifted,"
            " n_samples, model_version, time_ms) VALUES ('h%d', %d, 'ion%d', 'p', 's', 't', 0, 1,"
            " 1, %" PRId64 ")",
            i, i + 1, project, time_ms);
        break;
    case 2: /* kpis */
        sql("INSERT INTO kpis (seq, ion, name, value, time_ms) VALUES (%d, 'ion%d', 'k%d', 1,"
            " %" PRId64 ")",
            i + 1, project, i, time_ms);
        break;
    case 3: /* feedback */
        sql("INSERT INTO feedback (decision, seq, ion, pipeline, camera, model_version, decided,"
            " truth, is_right, decided_ms, time_ms) VALUES ('d%d', %d, 'ion%d', 'p', 'c', 1, 'a',"
            " 'a', 1, 1, %" PRId64 ")",
            i, i + 1, project, time_ms);
        break;
    default:
        sql("INSERT INTO statistics (id, seq, ion, name, kind, value, time_ms) VALUES ('s%d', %d,"
            " 'ion%d', 'n', 'number', '1', %" PRId64 ")",
            i, i + 1, project, time_ms);
    }
}

static int oldest_first(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left < right) - (left > right);
}

/* In the order of their arrival, as rows come. */
static void add_rows(struct weir_rng *rng)
{
    for (size_t table = 0; table < WEIR_ARRAY_LEN(row_names); table++) {
        for (int i = 0; i < N_ROWS; i++) {
            model.age_ms[table][i] = (int64_t)weir_rng_below(rng, AGE_MAX_MS);
        }
        qsort(model.age_ms[table], N_ROWS, sizeof(int64_t), oldest_first);
        for (int i = 0; i < N_ROWS; i++) {
            add_row(table, i, now_ms - model.age_ms[table][i]);
        }
    }
}

static bool is_there(const char *table, int i)
{
    return ask(weir_arena_printf(&fixture.arena, "SELECT count(*) FROM %s WHERE seq = %d", table,
                                 i + 1)) > 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* A row that is gone must have been too old at some round; one that is there must be young at this one. */
static void check_rows(uint64_t seed, int round, bool gone[][N_ROWS])
{
    for (size_t table = 0; table < WEIR_ARRAY_LEN(row_names); table++) {
        for (int i = 0; i < N_ROWS; i++) {
            double age = (double)(model.age_ms[table][i] + now_ms - NOON_MS);
            gone[table][i] =
                gone[table][i] || age >= keep_in_model(PROJECT_OF(i), KIND(row_names[table]));
            ck_assert_msg(is_there(row_tables[table], i) != gone[table][i],
                          "seed %" PRIu64 ", round %d: %s %d of p%d, %.1f h old, is %s", seed,
                          round, row_tables[table], i, PROJECT_OF(i), age / (double)HOUR_MS,
                          gone[table][i] ? "there" : "gone");
        }
    }
}

static int64_t preview_n(const char *project, int kind, int64_t keep_ms)
{
    struct weir_retain_preview preview;
    struct weir_error err = {0};
    ck_assert_msg(weir_retainer_preview(retainer, project, kind, keep_ms, &fixture.arena, &preview,
                                        &err) == WEIR_OK,
                  "%s", err.message);
    return preview.n_going;
}

/* What a preview says is what the rows say. */
static void check_preview(struct weir_rng *rng, uint64_t seed, bool gone[][N_ROWS])
{
    for (size_t table = 0; table < WEIR_ARRAY_LEN(row_names); table++) {
        int project = (int)weir_rng_below(rng, N_PROJECTS);
        int64_t keep_ms = (int64_t)weir_rng_below(rng, AGE_MAX_MS), n = 0;
        for (int i = project; i < N_ROWS; i += N_PROJECTS) {
            n += !gone[table][i] && model.age_ms[table][i] + now_ms - NOON_MS >= keep_ms;
        }
        int64_t found = preview_n(weir_arena_printf(&fixture.arena, "p%d", project),
                                  KIND(row_names[table]), keep_ms);
        ck_assert_msg(found == n, "seed %" PRIu64 ": %s: %" PRId64 " would go, not %" PRId64, seed,
                      row_tables[table], found, n);
    }
}

START_TEST(rows_stay_as_long_as_their_project_says)
{
    static bool gone[WEIR_ARRAY_LEN(row_names)][N_ROWS];
    uint64_t seed = weir_mono_ns();
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    memset(gone, 0, sizeof gone);
    add_projects();
    add_rows(&rng);
    for (int round = 0; round < N_ROUNDS; round++) {
        for (size_t table = 0; table < WEIR_ARRAY_LEN(row_names); table++) {
            if (round == 0 || weir_rng_below(&rng, 3) == 0) {
                change_settings(&rng, KIND(row_names[table]));
            }
        }
        check_preview(&rng, seed, gone);
        sweep_round();
        check_rows(seed, round, gone);
        now_ms += (int64_t)weir_rng_below(&rng, 3 * DAY_MS);
    }
}

END_TEST

/* ---- jobs, their logs and results ------------------------------------------------------------ */

#define N_JOBS 80

enum { IS_OVER, RUNS, MADE_A_MODEL, N_STATES };

static int64_t job_age_ms[N_JOBS];
static int job_state[N_JOBS];

static void add_jobs(struct weir_rng *rng)
{
    sql("INSERT INTO models (name, project, created_ms) VALUES ('m', 'p0', 0)");
    for (int i = 0; i < N_JOBS; i++) {
        char id[16], task[16];
        int64_t age_ms = (int64_t)weir_rng_below(rng, AGE_MAX_MS) / 1000 * 1000;
        (void)snprintf(id, sizeof id, "j%d", i);
        (void)snprintf(task, sizeof task, "t%d", i);
        job_age_ms[i] = age_ms;
        job_state[i] = (int)weir_rng_below(rng, N_STATES);
        add_job(id, "command", job_state[i] == RUNS ? "RUNNING" : "FAILED",
                job_state[i] == RUNS ? 0 : now_ms - age_ms);
        sql("UPDATE jobs SET project = 'p%d' WHERE id = '%s'", PROJECT_OF(i), id);
        add_task(task, id, 1);
        add_file(in_state("logs/%s.1.log", task), 100, now_ms - age_ms);
        add_file(in_state("results/%s/rows", id), 100, now_ms - age_ms);
        sql("INSERT INTO runs (id, name, project, kind, status, job, dataset_version, created_ms,"
            " finished_ms) VALUES ('r%d', 'n', 'p%d', 'train', 'FINISHED', '%s', 0, 1, 1)",
            i, PROJECT_OF(i), id);
        if (job_state[i] == MADE_A_MODEL) {
            sql("INSERT INTO model_versions (id, model, version, run, blob, bytes, dataset_version,"
                " created_ms) VALUES ('v%d', 'm', %d, 'r%d', 'b', 1, 0, 1)",
                i, i + 1, i);
        }
    }
}

static bool is_too_old(int i, int kind)
{
    return (double)(job_age_ms[i] + now_ms - NOON_MS) >= keep_in_model(PROJECT_OF(i), kind);
}

static bool has_file(const char *path)
{
    return access(path, F_OK) == 0;
}

START_TEST(jobs_logs_and_results_go_as_their_project_says_and_what_is_needed_stays)
{
    const int kinds[] = {KIND("jobs"), KIND("logs"), KIND("results")};

    uint64_t seed = weir_mono_ns();
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    add_projects();
    sql("INSERT INTO projects (name, created_ms) VALUES ('p', 0) ON CONFLICT DO NOTHING");
    add_jobs(&rng);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kinds); i++) {
        change_settings(&rng, kinds[i]);
    }
    set_platform(KIND("jobs"), -1); /* a log whose job is gone is the platform's */
    sweep_round();
    for (int i = 0; i < N_JOBS; i++) {
        bool has_job = ask(weir_arena_printf(&fixture.arena,
                                             "SELECT count(*) FROM jobs WHERE id = 'j%d'", i)) > 0;
        bool job_stays = job_state[i] != IS_OVER || !is_too_old(i, KIND("jobs"));
        ck_assert_msg(has_job == job_stays, "seed %" PRIu64 ": job %d is %s", seed, i,
                      has_job ? "there" : "gone");
        if (!has_job) {
            continue; /* then its files are the platform's */
        }
        ck_assert_msg(has_file(in_state("logs/t%d.1.log", i)) ==
                          (job_state[i] == RUNS || !is_too_old(i, KIND("logs"))),
                      "seed %" PRIu64 ": log of job %d", seed, i);
        ck_assert_msg(has_file(in_state("results/j%d", i)) ==
                          (job_state[i] == RUNS || !is_too_old(i, KIND("results"))),
                      "seed %" PRIu64 ": results of job %d", seed, i);
    }
}

END_TEST

/* ---- pictures -------------------------------------------------------------------------------- */

#define N_PICTURES 40

START_TEST(pictures_go_as_their_project_says_though_packs_are_shared)
{
    struct weir_pack_place places[N_PICTURES];
    char crop[600];
    add_projects();
    for (int i = 0; i < N_PICTURES; i++) {
        char id[40];
        (void)snprintf(id, sizeof id, "018f0000-0000-7000-8000-%012d", i);
        memset(crop, 'a' + i % 26, sizeof crop);
        ck_assert_int_eq(weir_packs_append(pictures, id, crop, sizeof crop, &places[i], NULL),
                         WEIR_OK);
        add_row(0, i, NOON_MS - i * HOUR_MS);
        sql("UPDATE decisions SET id = '%s', image = 'x', pack = %" PRId64
            ", pack_offset = %" PRId64 ", pack_bytes = %" PRId64 ", film_bytes = 200,"
            " passage = '{\"frames\":[{\"has_picture\":true}]}' WHERE seq = %d",
            id, places[i].pack, places[i].offset, places[i].bytes, i + 1);
    }
    now_ms = weir_time_ms(); /* packs have the time of the machine */
    sql("UPDATE decisions SET time_ms = time_ms + %" PRId64, now_ms - NOON_MS);
    set_platform(KIND("pictures"), 30 * DAY_MS);
    set_platform(KIND("decisions"), -1);
    set_own(1, KIND("pictures"), true, 10 * HOUR_MS);
    set_own(2, KIND("decisions"), true, 20 * HOUR_MS); /* a picture goes with its row */
    ck_assert_int_eq(preview_n("p1", KIND("pictures"), 10 * HOUR_MS), 7);
    sweep_round();
    for (int i = 0; i < N_PICTURES; i++) {
        char id[40], *data;
        size_t len;
        bool goes = (PROJECT_OF(i) == 1 && i >= 10) || (PROJECT_OF(i) == 2 && i >= 20);
        (void)snprintf(id, sizeof id, "018f0000-0000-7000-8000-%012d", i);
        ck_assert_int_eq(
            weir_packs_read(pictures, id, &places[i], &fixture.arena, &data, &len, NULL),
            goes ? WEIR_ERR_NOT_FOUND : WEIR_OK);
    }
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), 35);
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions WHERE image IS NOT NULL"), 28);
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions WHERE (image IS NOT NULL) ="
                         " (film_bytes = 200 AND passage LIKE '%\"has_picture\":true%')"),
                     35);
}

END_TEST

/* ---- pictures of pipelines ------------------------------------------------------------------- */

#define N_SHOTS        300
#define N_PIPELINES    3
#define SHOT_ROUNDS    6
#define PIPELINE_OF(i) ((i) / N_PROJECTS % N_PIPELINES)

static struct shots {
    char ids[N_SHOTS][40];
    struct weir_pack_place places[N_SHOTS];
    int64_t times_ms[N_SHOTS];
    bool gone[N_SHOTS];
    int64_t keep_ms[N_PROJECTS][N_PIPELINES]; /* below 0: as its project */
} shots;

static void add_shots(struct weir_rng *rng)
{
    char crop[600];
    for (int i = 0; i < N_SHOTS; i++) {
        (void)snprintf(shots.ids[i], sizeof shots.ids[i], "018f0000-0000-7000-8000-%012d", i);
        memset(crop, 'a' + i % 26, sizeof crop);
        ck_assert_int_eq(
            weir_packs_append(pictures, shots.ids[i], crop, sizeof crop, &shots.places[i], NULL),
            WEIR_OK);
        shots.times_ms[i] = now_ms - (int64_t)weir_rng_below(rng, 20 * DAY_MS);
        add_row(0, i, shots.times_ms[i]);
        sql("UPDATE decisions SET id = '%s', pipeline = 'p%d', image = 'x', pack = %" PRId64
            ", pack_offset = %" PRId64 ", pack_bytes = %" PRId64 " WHERE seq = %d",
            shots.ids[i], PIPELINE_OF(i), shots.places[i].pack, shots.places[i].offset,
            shots.places[i].bytes, i + 1);
    }
}

/* Packs are as young as this test: the platform's age, which takes whole ones, is more than all of it lasts. */
static void change_kept(struct weir_rng *rng)
{
    int kind = KIND("pictures");
    set_platform(kind, 60 * DAY_MS);
    set_bounds(kind, weir_rng_below(rng, 2) == 0, (int64_t)weir_rng_below(rng, 4 * DAY_MS),
               60 * DAY_MS);
    for (int project = 0; project < N_PROJECTS; project++) {
        set_own(project, kind, weir_rng_below(rng, 2) == 0,
                (int64_t)weir_rng_below(rng, 30 * DAY_MS));
        for (int k = 0; k < N_PIPELINES; k++) {
            unsigned of_what = (unsigned)weir_rng_below(rng, 8);
            int64_t keep_ms = of_what == 0   ? 0
                              : of_what <= 2 ? -1
                                             : (int64_t)weir_rng_below(rng, 25 * DAY_MS);
            shots.keep_ms[project][k] = keep_ms;
            sql("INSERT INTO ion_pipelines (id, ion, name, type, state, training, dataset_version,"
                " next_fire_ms, gallery_version, deployment_revision, updated_ms, keep_pictures_ms)"
                " VALUES ('ion%d:p%d', 'ion%d', 'p%d', 'prediction', 'SERVING', 0, 0, 0, 0, 0, 0,"
                " %" PRId64
                ") ON CONFLICT (id) DO UPDATE SET keep_pictures_ms = excluded.keep_pictures_ms",
                project, k, project, k,
                keep_ms < 0    ? (int64_t)0
                : keep_ms == 0 ? (int64_t)-1
                               : keep_ms);
        }
    }
}

/* By what the manual says: the least of what covers it, but not below the shortest that an admin allows. */
static double kept_in_model(int i)
{
    int kind = KIND("pictures"), project = PROJECT_OF(i);
    double most = keep_in_model(project, kind), least = 0;
    int64_t own = shots.keep_ms[project][PIPELINE_OF(i)];
    if (model.has_bounds[kind]) {
        least = (double)model.min_ms[kind];
    }
    if (own < 0 || (double)own > most) {
        return most;
    }
    return (double)own < least ? least > most ? most : least : (double)own;
}

static void check_shots(uint64_t seed, int round)
{
    for (int i = 0; i < N_SHOTS; i++) {
        char *data;
        size_t len;
        double age = (double)(now_ms - shots.times_ms[i]);
        shots.gone[i] = shots.gone[i] || age >= kept_in_model(i);
        bool is_named = ask(weir_arena_printf(&fixture.arena,
                                              "SELECT count(*) FROM decisions WHERE seq = %d AND"
                                              " image IS NOT NULL AND pack > 0",
                                              i + 1)) > 0;
        bool is_read = weir_packs_read(pictures, shots.ids[i], &shots.places[i], &fixture.arena,
                                       &data, &len, NULL) == WEIR_OK;
        ck_assert_msg(is_named == !shots.gone[i] && is_read == !shots.gone[i],
                      "seed %" PRIu64 ", round %d: picture %d of ion%d, p%d, %.1f h old, kept %.1f"
                      " h: named %d, there %d",
                      seed, round, i, PROJECT_OF(i), PIPELINE_OF(i), age / (double)HOUR_MS,
                      kept_in_model(i) / (double)HOUR_MS, is_named, is_read);
    }
}

struct bounded {
    int i;
    int64_t before;
};

static weir_status find_bound(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct bounded *bounded = context;
    char ion[8], pipeline[8];
    (void)snprintf(ion, sizeof ion, "ion%d", PROJECT_OF(bounded->i));
    (void)snprintf(pipeline, sizeof pipeline, "p%d", PIPELINE_OF(bounded->i));
    return weir_retain_pictures_before(txn, &fixture.arena, ion, pipeline, now_ms, &bounded->before,
                                       err);
}

/* What comes is kept or not by the same bound as what is there. */
static void check_coming(uint64_t seed)
{
    for (int i = 0; i < N_PROJECTS * N_PIPELINES; i++) {
        struct bounded bounded = {i, 0};
        double keep = kept_in_model(i);
        fixture_read(&fixture, find_bound, &bounded);
        int64_t expected = shots.keep_ms[PROJECT_OF(i)][PIPELINE_OF(i)] < 0 ? INT64_MIN
                           : keep == 0                                      ? INT64_MAX
                                       : now_ms - (int64_t)keep;
        ck_assert_msg(bounded.before == expected, "seed %" PRIu64 ": ion%d, p%d", seed,
                      PROJECT_OF(i), PIPELINE_OF(i));
    }
}

START_TEST(pictures_go_as_their_pipeline_and_its_project_say)
{
    uint64_t seed = weir_mono_ns();
    struct weir_rng rng;
    weir_rng_init(&rng, seed, 0);
    memset(&shots, 0, sizeof shots);
    now_ms = weir_time_ms(); /* packs have the time of the machine */
    add_projects();
    add_shots(&rng);
    set_platform(KIND("decisions"), -1);
    for (int round = 0; round < SHOT_ROUNDS; round++) {
        change_kept(&rng);
        sweep_round();
        check_shots(seed, round);
        check_coming(seed);
        now_ms += (int64_t)weir_rng_below(&rng, 2 * DAY_MS);
    }
}

END_TEST

static weir_status check_plan(struct weir_txn *txn, void *context, struct weir_error *err)
{
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    (void)context;
    WEIR_TRY(weir_stmt_open(
        txn, weir_arena_printf(&fixture.arena, "EXPLAIN QUERY PLAN %s", retain_sql_old_of_pipeline),
        WEIR_NO_BINDS, &stmt, err));
    WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
    const char *line = has_row ? weir_stmt_text(stmt, 3, &fixture.arena) : "";
    ck_assert_msg(strstr(line, "(ion=? AND pipeline=? AND time_ms<?)") != NULL, "%s", line);
    return WEIR_OK;
}

/* No round looks at pictures that another pipeline keeps for longer. */
START_TEST(only_pictures_that_go_are_looked_at)
{
    fixture_read(&fixture, check_plan, NULL);
}

END_TEST

/* Whose picture it was nobody could say any more. */
START_TEST(a_pack_whose_rows_have_gone_goes_too)
{
    struct weir_pack_place places[60];
    char crop[2000] = {0}, ids[60][40], *data; /* a pack has 20 kB */
    size_t len;
    add_projects();
    for (int i = 0; i < 60; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "018f0000-0000-7000-8000-%012d", i);
        ck_assert_int_eq(weir_packs_append(pictures, ids[i], crop, sizeof crop, &places[i], NULL),
                         WEIR_OK);
        add_row(0, i, NOON_MS);
        sql("UPDATE decisions SET image = 'x', pack = %" PRId64 " WHERE seq = %d", places[i].pack,
            i + 1);
    }
    model.platform_ms[KIND("decisions")] = -1;
    retain("decisions", "forever");
    retain("pictures", "forever,unbounded");
    sql("DELETE FROM decisions WHERE seq <= 30");
    now_ms = weir_time_ms();
    sweep_round(); /* they were written just now */
    ck_assert_int_eq(
        weir_packs_read(pictures, ids[0], &places[0], &fixture.arena, &data, &len, NULL), WEIR_OK);
    now_ms += 2 * HOUR_MS;
    sweep_round();
    for (int i = 0; i < 60; i++) {
        bool is_there = weir_packs_read(pictures, ids[i], &places[i], &fixture.arena, &data, &len,
                                        NULL) == WEIR_OK;
        ck_assert_msg(is_there == (places[i].pack >= places[30].pack), "picture %d", i);
    }
    ck_assert(places[0].pack < places[30].pack);
}

END_TEST

/* ---- sizes, counts, words -------------------------------------------------------------------- */

/* Where rows went from between others, their count is no difference of numbers: a bound takes no more than it must. */
START_TEST(the_size_counts_rows_and_not_the_gaps_between_them)
{
    char text[64];
    add_projects();
    for (int i = 0; i < N_ROWS; i++) {
        add_row(0, i, NOON_MS - (N_ROWS - i) * HOUR_MS);
    }
    (void)snprintf(text, sizeof text, "forever,%" PRId64 "B",
                   N_ROWS / 2 * weir_retain_rule(KIND("decisions"))->row_bytes);
    model.platform_ms[KIND("decisions")] = -1;
    set_own(1, KIND("decisions"), true, 0);
    set_own(2, KIND("decisions"), true, 0);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), N_ROWS / 2);
    retain("decisions", text);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), N_ROWS / 2);
    set_own(1, KIND("decisions"), false, 0); /* the gaps stay */
    set_own(2, KIND("decisions"), false, 0);
    sweep_round();
    ck_assert_int_eq(ask("SELECT count(*) FROM decisions"), N_ROWS / 2);
}

END_TEST

START_TEST(what_is_the_platforms_is_no_projects)
{
    struct weir_retain_preview preview;
    struct weir_error err;
    ck_assert(!weir_retain_rule(KIND("audit"))->is_of_project);
    ck_assert_int_eq(
        weir_retainer_preview(retainer, "p0", KIND("audit"), 0, &fixture.arena, &preview, &err),
        WEIR_ERR_UNSUPPORTED);
}

END_TEST

START_TEST(ages_and_bounds_are_read_as_they_are_printed)
{
    static const char *const ages[] = {"30d", "12h", "90m", "0s", "forever"};
    static const char *const wrong[] = {"",          "30",      "10GB", "30d,10GB",
                                        "unbounded", "default", "-1d"};
    static const char *const wrong_bounds[] = {"1d",          "1d..",    "..1d",    "2d..1d",
                                               "forever..1d", "1d...2d", "1GB..2GB"};
    char text[WEIR_RETAIN_BOUNDS_TEXT_BYTES];
    struct weir_retain_bounds bounds;
    int64_t keep_ms;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ages); i++) {
        ck_assert_int_eq(weir_retain_age_parse(ages[i], &keep_ms, NULL), WEIR_OK);
        ck_assert_str_eq(weir_retain_age_text(keep_ms, text), ages[i]);
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(weir_retain_age_parse(wrong[i], &keep_ms, NULL), WEIR_ERR_INVALID);
    }
    ck_assert_int_eq(weir_retain_bounds_parse("1d..forever", &bounds, NULL), WEIR_OK);
    ck_assert_str_eq(weir_retain_bounds_text(&bounds, text), "1d..forever");
    ck_assert(weir_retain_bounds_have(&bounds, WEIR_RETAIN_ANY));
    ck_assert(!weir_retain_bounds_have(&bounds, HOUR_MS));
    for (size_t i = 0; i < WEIR_ARRAY_LEN(wrong_bounds); i++) {
        ck_assert_int_eq(weir_retain_bounds_parse(wrong_bounds[i], &bounds, NULL),
                         WEIR_ERR_INVALID);
    }
}

END_TEST

WEIR_TEST_MAIN_WITH("project", retain_set_up, retain_tear_down,
                    rows_stay_as_long_as_their_project_says,
                    jobs_logs_and_results_go_as_their_project_says_and_what_is_needed_stays,
                    pictures_go_as_their_project_says_though_packs_are_shared,
                    pictures_go_as_their_pipeline_and_its_project_say,
                    only_pictures_that_go_are_looked_at, a_pack_whose_rows_have_gone_goes_too,
                    the_size_counts_rows_and_not_the_gaps_between_them,
                    what_is_the_platforms_is_no_projects,
                    ages_and_bounds_are_read_as_they_are_printed)
