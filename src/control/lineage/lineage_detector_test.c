/* Detectors in lineage, against a history of a pipeline at random. */
#include "control/lineage.h"

#include "base/test_seed.h"
#include "control/job/control_fixture.h"
#include "ion/ion.h"
#include "store/table.h"
#include "track/track.h"

#include <string.h>

#define N_VERSIONS  3
#define N_CHANGES   30
#define N_DECISIONS 60
#define START       ((int64_t)1000000)

static struct control_fixture fixture;

/** From then on it finds with that version; 0: with none. */
static struct change {
    int64_t time_ms;
    int version;
} changes[N_CHANGES];

static int64_t decided_ms[N_DECISIONS];

static char *version_id(int version)
{
    return version != 0 ? weir_arena_printf(&fixture.store.arena, "mv%d", version) : NULL;
}

static weir_status fill_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_model model = {.name = (char *)"faces", .project = (char *)"default"};
    const struct weir_ion ion = {.name = (char *)"x",
                                 .project = (char *)"default",
                                 .document = (char *)"{}",
                                 .state = (char *)"ACTIVE",
                                 .mode = (char *)WEIR_ION_PRODUCTION};
    size_t n;
    (void)context;
    WEIR_TRY(weir_txn_insert(txn, &weir_model_resource, &model, err));
    WEIR_TRY(weir_txn_insert(txn, &weir_ion_resource, &ion, err));
    for (int i = 1; i <= N_VERSIONS; i++) {
        const struct weir_model_version row = {.id = version_id(i),
                                               .model = (char *)"faces",
                                               .version = i,
                                               .blob = (char *)"b",
                                               .bytes = 1,
                                               .stage = (char *)"None",
                                               .created_ms = 1};
        WEIR_TRY(weir_txn_insert(txn, &weir_model_version_resource, &row, err));
    }
    for (size_t i = 0; i < N_CHANGES; i++) {
        const struct weir_ion_pipeline row = {
            .id = (char *)"x:see",
            .ion = (char *)"x",
            .name = (char *)"see",
            .type = (char *)"prediction",
            .state = (char *)"WAITING",
            .updated_ms = changes[i].time_ms,
            .service.detector = {.model = (char *)"faces",
                                 .version = changes[i].version,
                                 .id = version_id(changes[i].version)}};
        WEIR_TRY(weir_txn_upsert(txn, &weir_ion_pipeline_resource, &row, err));
    }
    for (size_t i = 0; i < N_DECISIONS; i++) {
        const struct weir_decision decision = {
            .id = weir_arena_printf(&fixture.store.arena, "d%zu", i),
            .ion = (char *)"x",
            .pipeline = (char *)"see",
            .camera = (char *)"c",
            .frame = (int64_t)i,
            .time_ms = decided_ms[i],
            .verdict = (char *)"unknown"};
        WEIR_TRY(weir_decisions_store(txn, &decision, 1, NULL, 0, &n, err));
    }
    return WEIR_OK;
}

/* The first change that says something comes first; before it nothing is known. */
static size_t first_change(void)
{
    size_t i = 0;
    while (i < N_CHANGES && changes[i].version == 0) {
        i++;
    }
    return i;
}

static int version_at(int64_t time_ms)
{
    int version = 0;
    for (size_t i = first_change(); i < N_CHANGES && changes[i].time_ms <= time_ms; i++) {
        version = changes[i].version;
    }
    return version;
}

static weir_status check_decisions_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < N_DECISIONS; i++) {
        json_t *lineage;
        const char *id = weir_arena_printf(&fixture.store.arena, "d%zu", i);
        WEIR_TRY(control_lineage_decision(txn, id, &fixture.store.arena, &lineage, err));
        const json_t *detector = json_object_get(lineage, "detector");
        int version = version_at(decided_ms[i]);
        ck_assert_int_eq(json_is_object(detector), version != 0);
        ck_assert_int_eq(json_integer_value(json_object_get(detector, "version")), version);
        char *unknown = json_dumps(json_object_get(lineage, "unknown"), 0);
        bool is_before =
            first_change() < N_CHANGES && decided_ms[i] < changes[first_change()].time_ms;
        ck_assert_int_eq(strstr(unknown, "Which detector") != NULL, is_before);
        free(unknown);
        json_decref(lineage);
    }
    return WEIR_OK;
}

/* Spans of the version, as changes have them: those that say the same again begin none. */
static void check_finders(const json_t *finders, int version)
{
    size_t n = 0;
    bool finds = false;
    for (size_t i = 0; i < N_CHANGES; i++) {
        bool is_it = changes[i].version == version;
        if (is_it && !finds) {
            const json_t *one = json_array_get(finders, n++);
            json_t *since = weir_json_time(changes[i].time_ms);
            ck_assert_str_eq(json_string_value(json_object_get(one, "since_ms")),
                             json_string_value(since));
            ck_assert_str_eq(json_string_value(json_object_get(one, "pipeline")), "see");
            json_decref(since);
        } else if (!is_it && finds) {
            json_t *until = weir_json_time(changes[i].time_ms);
            ck_assert_str_eq(
                json_string_value(json_object_get(json_array_get(finders, n - 1), "until_ms")),
                json_string_value(until));
            json_decref(until);
        }
        finds = is_it;
    }
    ck_assert_uint_eq(json_array_size(finders), n);
    if (finds) {
        ck_assert(json_is_null(json_object_get(json_array_get(finders, n - 1), "until_ms")));
    }
}

static weir_status check_versions_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (int i = 1; i <= N_VERSIONS; i++) {
        json_t *lineage;
        WEIR_TRY(control_lineage_version(txn, "faces", i, &fixture.store.arena, &lineage, err));
        check_finders(json_object_get(lineage, "finders"), i);
        json_decref(lineage);
    }
    return WEIR_OK;
}

START_TEST(a_decision_names_the_detector_of_its_time_and_a_version_where_it_finds)
{
    struct weir_rng rng;
    int64_t now_ms = START;
    (void)test_seed(&rng);
    control_fixture_make(&fixture);
    for (size_t i = 0; i < N_CHANGES; i++) {
        now_ms += 1 + (int64_t)weir_rng_below(&rng, 1000);
        changes[i] = (struct change){now_ms, (int)weir_rng_below(&rng, N_VERSIONS + 1)};
    }
    for (size_t i = 0; i < N_DECISIONS; i++) {
        decided_ms[i] =
            START - 500 + (int64_t)weir_rng_below(&rng, (uint64_t)(now_ms - START + 1000));
    }
    fixture_write(&fixture.store, fill_in, NULL);
    fixture_read(&fixture.store, check_decisions_in, NULL);
    fixture_read(&fixture.store, check_versions_in, NULL);
    control_fixture_fini(&fixture);
}

END_TEST

WEIR_TEST_MAIN("lineage_detector",
               a_decision_names_the_detector_of_its_time_and_a_version_where_it_finds)
