/* Lineage against what the test itself has made: a graph at random, whose edges it keeps in arrays. */
#include "control/lineage.h"

#include "base/rng.h"
#include "control/job/control_fixture.h"
#include "ion/revision.h"
#include "store/row_scope.h"
#include "track/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define N_THINGS    120
#define N_PIPELINES 4
#define N_DATASETS  4
#define N_DECISIONS 300
#define NONE        SIZE_MAX

enum sort { DATASET, RUN, VERSION, CANDIDATE, N_SORTS };

/** One thing of the graph, and by their places those that it came of. */
struct thing {
    enum sort sort;
    char *id, *name; /**< Of a dataset or model; of a candidate: its pipeline. */
    int64_t number;
    size_t from, other; /**< Of a run: what it read; of others: what made it. NONE: nothing. */
    bool is_reached;
};

struct made {
    char *id;
    size_t candidate;
    int64_t gallery; /**< Version of "d0". */
    bool is_gone;
};

static struct control_fixture fixture;
static struct thing things[N_THINGS];
static struct made decisions[N_DECISIONS];
static size_t n_things, n_decisions;
static struct weir_rng rng;

#define ARENA      (&fixture.store.arena)
#define PRINT(...) weir_arena_printf(ARENA, __VA_ARGS__)

static void set_up(void)
{
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    printf("seed %" PRIu64 "\n", seed);
    weir_rng_init(&rng, seed, 0);
    control_fixture_make(&fixture);
    n_things = n_decisions = 0;
}

static void tear_down(void)
{
    control_fixture_fini(&fixture);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* One of a sort (and of a name) at random; NONE: there is none, or by chance. */
static size_t any(enum sort sort, const char *name, int one_of)
{
    size_t found = NONE, n = 0;
    for (size_t i = 0; i < n_things; i++) {
        bool fits = things[i].sort == sort && (name == NULL || strcmp(things[i].name, name) == 0);
        if (fits && weir_rng_below(&rng, ++n) == 0) {
            found = i;
        }
    }
    return one_of > 0 && weir_rng_below(&rng, (uint64_t)one_of) == 0 ? NONE : found;
}

static int64_t count_named(enum sort sort, const char *name)
{
    int64_t n = 0;
    for (size_t i = 0; i < n_things; i++) {
        n += things[i].sort == sort && strcmp(things[i].name, name) == 0;
    }
    return n;
}

static char *id_of(size_t i)
{
    return i != NONE ? things[i].id : NULL;
}

static weir_status add_dataset(struct weir_txn *txn, struct thing *thing, struct weir_error *err)
{
    thing->name = PRINT("d%d", (int)weir_rng_below(&rng, N_DATASETS));
    thing->number = count_named(DATASET, thing->name) + 1;
    thing->from = any(RUN, NULL, 2);
    const struct weir_dataset_version row = {.id = thing->id,
                                             .dataset = thing->name,
                                             .version = thing->number,
                                             .digest = thing->id,
                                             .created_by = "ann",
                                             .run = id_of(thing->from),
                                             .created_ms = 1};
    return weir_txn_insert(txn, &weir_dataset_version_resource, &row, err);
}

static weir_status add_run(struct weir_txn *txn, struct thing *thing, struct weir_error *err)
{
    int64_t number, experiment;
    thing->name = "run";
    thing->from = any(DATASET, NULL, 5);
    thing->other = any(DATASET, NULL, 2);
    WEIR_TRY(weir_experiment_ensure(txn, "default", "Default", "ann", 1, &experiment, err));
    const struct weir_run row = {.id = thing->id,
                                 .name = "r",
                                 .experiment = experiment,
                                 .project = "default",
                                 .kind = "train",
                                 .status = "FINISHED",
                                 .dataset = thing->from != NONE ? things[thing->from].name : NULL,
                                 .dataset_version =
                                     thing->from != NONE ? things[thing->from].number : 0,
                                 .parameters = "{\"epochs\":7}",
                                 .created_by = "ben",
                                 .created_ms = 2};
    WEIR_TRY(weir_run_insert(txn, &row, &number, err));
    if (thing->other == NONE) {
        return WEIR_OK;
    }
    const struct weir_run_input input = {
        .name = things[thing->other].name,
        .digest = things[thing->other].id,
        .source_type = "weir",
        .source = PRINT("%s@v%" PRId64, things[thing->other].name, things[thing->other].number),
        .tags = "[]"};
    return weir_run_input_put(txn, number, experiment, &input, err);
}

static weir_status add_version(struct weir_txn *txn, struct thing *thing, struct weir_error *err)
{
    thing->name = PRINT("m%d", (int)weir_rng_below(&rng, N_PIPELINES));
    thing->number = count_named(VERSION, thing->name) + 1;
    thing->from = any(RUN, NULL, 6);
    const struct weir_model_version row = {.id = thing->id,
                                           .model = thing->name,
                                           .version = thing->number,
                                           .run = id_of(thing->from),
                                           .blob = "b",
                                           .stage = "None",
                                           .created_by = "ann",
                                           .created_ms = 3};
    return weir_txn_insert(txn, &weir_model_version_resource, &row, err);
}

/* A version that serves comes to the pipeline of its model, and decides there. */
static weir_status add_candidate(struct weir_txn *txn, struct thing *thing, struct weir_error *err)
{
    thing->from = any(VERSION, NULL, 0);
    if (thing->from == NONE) {
        return WEIR_ERR_NOT_FOUND;
    }
    const struct thing *version = &things[thing->from];
    thing->name = PRINT("p%s", version->name + 1);
    thing->number = version->number;
    thing->id = PRINT("x:t%s:%s:%s", version->name, thing->name, version->id);
    for (size_t i = 0; i < n_things; i++) {
        if (strcmp(things[i].id, thing->id) == 0) {
            return WEIR_ERR_NOT_FOUND; /* once */
        }
    }
    const struct weir_ion_candidate row = {.id = thing->id,
                                           .ion = "x",
                                           .link = PRINT("t%s:%s", version->name, thing->name),
                                           .model = version->name,
                                           .model_version = version->id,
                                           .version = version->number,
                                           .blob = "b",
                                           .state = "RETIRED",
                                           .served_seq = 1,
                                           .served_ms = 4};
    const struct weir_policy_decision policy = {.id = PRINT("policy-%zu", n_things),
                                                .ion = "x",
                                                .link = row.link,
                                                .candidate = thing->id,
                                                .model_version = version->id,
                                                .version = version->number,
                                                .policy = "manual",
                                                .inputs = "{}",
                                                .rule = "a person approves",
                                                .verdict = "promote",
                                                .actor = "cid",
                                                .note = "fine",
                                                .time_ms = 5};
    WEIR_TRY(weir_txn_insert(txn, &weir_ion_candidate_resource, &row, err));
    return weir_txn_insert(txn, &weir_policy_decision_resource, &policy, err);
}

static weir_status make_things(struct weir_txn *txn, struct weir_error *err)
{
    static weir_status (*const adds[N_SORTS])(struct weir_txn *, struct thing *,
                                              struct weir_error *) = {add_dataset, add_run,
                                                                      add_version, add_candidate};
    while (n_things < N_THINGS) {
        struct thing *thing = &things[n_things];
        *thing = (struct thing){.sort = (enum sort)weir_rng_below(&rng, N_SORTS),
                                .id = PRINT("thing-%zu", n_things),
                                .from = NONE,
                                .other = NONE};
        weir_status status = adds[thing->sort](txn, thing, err);
        ck_assert_msg(status == WEIR_OK || status == WEIR_ERR_NOT_FOUND, "%s", err->message);
        n_things += status == WEIR_OK;
    }
    return WEIR_OK;
}

static weir_status make_decisions(struct weir_txn *txn, struct weir_error *err)
{
    for (size_t i = 0; i < N_DECISIONS; i++) {
        size_t n_stored;
        struct made *made = &decisions[i];
        *made = (struct made){.id = PRINT("decision-%zu", i), .candidate = any(CANDIDATE, NULL, 0)};
        if (made->candidate == NONE) {
            return WEIR_OK; /* a graph without any */
        }
        const struct thing *candidate = &things[made->candidate];
        bool has_gallery = strcmp(candidate->name, "p0") == 0;
        int64_t n_galleries = count_named(DATASET, "d0");
        made->gallery = has_gallery && n_galleries > 0
                            ? 1 + (int64_t)weir_rng_below(&rng, (uint64_t)n_galleries)
                            : 0;
        const struct weir_decision row = {.id = made->id,
                                          .ion = "x",
                                          .pipeline = candidate->name,
                                          .camera = "door",
                                          .frame = (int64_t)i,
                                          .time_ms = 100 + (int64_t)weir_rng_below(&rng, 50),
                                          .verdict = "grant",
                                          .model_version = candidate->number,
                                          .gallery_version = made->gallery};
        WEIR_TRY(weir_decisions_store(txn, &row, 1, NULL, 0, &n_stored, err));
        n_decisions++;
    }
    return WEIR_OK;
}

#define DOCUMENT                                                                                   \
    "{\"name\":\"x\",\"pipelines\":[{\"name\":\"p0\",\"gallery\":{\"dataset\":\"d0\"}},"           \
    "{\"name\":\"p1\"},{\"name\":\"p2\"},{\"name\":\"p3\"}]}"

static weir_status add_ion(struct weir_txn *txn, char *name, char *project, struct weir_error *err)
{
    const struct weir_ion ion = {.name = name,
                                 .project = project,
                                 .document = DOCUMENT,
                                 .state = "ACTIVE",
                                 .mode = "production",
                                 .revision = 1};
    const struct weir_ion_revision revision = {.id = PRINT("%s:1", name),
                                               .ion = name,
                                               .revision = 1,
                                               .document = DOCUMENT,
                                               .actor = "eve",
                                               .time_ms = 1};
    WEIR_TRY(weir_txn_insert(txn, &weir_ion_resource, &ion, err));
    return weir_txn_insert(txn, &weir_ion_revision_resource, &revision, err);
}

static weir_status make_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    n_things = n_decisions = 0;
    for (int i = 0; i < N_DATASETS; i++) {
        const struct weir_dataset dataset = {
            .name = PRINT("d%d", i), .project = "default", .kind = "folder", .path = "/d"};
        const struct weir_model model = {.name = PRINT("m%d", i), .project = "default"};
        MUST(weir_txn_insert(txn, &weir_dataset_resource, &dataset, err));
        MUST(weir_txn_insert(txn, &weir_model_resource, &model, err));
    }
    MUST(add_ion(txn, "x", "default", err));
    MUST(make_things(txn, err));
    MUST(make_decisions(txn, err));
    return WEIR_OK;
}

static weir_status delete_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    int64_t n = (int64_t)weir_rng_below(&rng, N_DECISIONS);
    (void)context;
    for (size_t i = 0; i < n_decisions; i++) {
        decisions[i].is_gone = (int64_t)i < n;
    }
    return weir_txn_exec(txn, "DELETE FROM decisions WHERE seq <= :n",
                         WEIR_BINDS(WEIR_BIND_INT("n", n)), NULL, err);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static void clear(void)
{
    for (size_t i = 0; i < n_things; i++) {
        things[i].is_reached = false;
    }
}

static void reach_back(size_t i)
{
    /* Things come of earlier ones: one look from the last to the first finds all. */
    things[i].is_reached = true;
    for (size_t k = n_things; k > 0; k--) {
        const struct thing *thing = &things[k - 1];
        size_t ways[] = {thing->from, thing->other};
        for (size_t w = 0; thing->is_reached && w < 2; w++) {
            if (ways[w] != NONE) {
                things[ways[w]].is_reached = true;
            }
        }
    }
}

static void reach_forward(size_t i)
{
    things[i].is_reached = true;
    for (size_t k = i + 1; k < n_things; k++) {
        struct thing *thing = &things[k];
        thing->is_reached = (thing->from != NONE && things[thing->from].is_reached) ||
                            (thing->other != NONE && things[thing->other].is_reached);
    }
}

static size_t n_reached(enum sort sort)
{
    size_t n = 0;
    for (size_t i = 0; i < n_things; i++) {
        n += things[i].sort == sort && things[i].is_reached;
    }
    return n;
}

static size_t place_of(enum sort sort, const char *name, int64_t number)
{
    for (size_t i = 0; i < n_things; i++) {
        if (things[i].sort == sort && strcmp(things[i].name, name) == 0 &&
            things[i].number == number) {
            return i;
        }
    }
    return NONE;
}

static bool is_id_reached(const char *id)
{
    for (size_t i = 0; i < n_things; i++) {
        if (strcmp(things[i].id, id) == 0) {
            return things[i].is_reached;
        }
    }
    return false;
}

/* Is each of the list reached, and are there as many as reached ones? */
static void check_ids(const json_t *list, const char *member, enum sort sort)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one)
    {
        REQUIRE(is_id_reached(json_string_value(json_object_get(one, member))));
    }
    ck_assert_uint_eq(json_array_size(list), n_reached(sort));
}

static void check_datasets(const json_t *list, size_t n_expected)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one)
    {
        size_t place = place_of(DATASET, json_string_value(json_object_get(one, "dataset")),
                                json_integer_value(json_object_get(one, "version")));
        REQUIRE(place != NONE && things[place].is_reached);
    }
    ck_assert_uint_eq(json_array_size(list), n_expected);
}

/* ---- back ------------------------------------------------------------------------------------ */

static void check_back(const struct made *made, json_t *lineage)
{
    const struct thing *candidate = &things[made->candidate];
    const json_t *place = json_object_get(lineage, "place");
    const json_t *policy = json_array_get(json_object_get(place, "policies"), 0);
    clear();
    reach_back(made->candidate);
    if (made->gallery > 0) {
        reach_back(place_of(DATASET, "d0", made->gallery));
    }
    ck_assert_str_eq(json_string_value(json_object_get(place, "candidate")), candidate->id);
    ck_assert_str_eq(json_string_value(json_object_get(policy, "actor")), "cid");
    ck_assert_str_eq(json_string_value(json_object_get(policy, "note")), "fine");
    ck_assert(json_is_true(json_object_get(lineage, "is_certain")));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(lineage, "version"), "id")),
                     things[candidate->from].id);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(lineage, "revision"), "actor")), "eve");
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(lineage, "gallery"), "version")),
        made->gallery);
    check_ids(json_object_get(lineage, "runs"), "id", RUN);
    check_datasets(json_object_get(lineage, "datasets"), n_reached(DATASET));
    ck_assert(json_is_false(json_object_get(lineage, "is_cut")));
    /* The one thing that is not known: the run of a file. */
    bool has_run = things[candidate->from].from != NONE;
    ck_assert_uint_eq(json_array_size(json_object_get(lineage, "unknown")), !has_run);
}

static weir_status back_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < n_decisions; i++) {
        json_t *lineage;
        weir_status status = control_lineage_decision(txn, decisions[i].id, ARENA, &lineage, err);
        ck_assert_int_eq(status, decisions[i].is_gone ? WEIR_ERR_NOT_FOUND : WEIR_OK);
        if (status == WEIR_OK) {
            check_back(&decisions[i], lineage);
            json_decref(lineage);
        }
    }
    return WEIR_OK;
}

START_TEST(a_decision_s_way_back_is_that_of_the_graph)
{
    fixture_write(&fixture.store, make_in, NULL);
    fixture_write(&fixture.store, delete_in, NULL);
    fixture_read(&fixture.store, back_in, NULL);
}

END_TEST

/* ---- forward --------------------------------------------------------------------------------- */

static void check_places(const json_t *places)
{
    size_t i;
    json_t *place;
    check_ids(places, "candidate", CANDIDATE);
    json_array_foreach((json_t *)places, i, place)
    {
        const json_t *counts = json_object_get(place, "decisions");
        int64_t n_made = 0, n_kept = 0;
        for (size_t k = 0; k < n_decisions; k++) {
            const char *id = json_string_value(json_object_get(place, "candidate"));
            if (strcmp(things[decisions[k].candidate].id, id) == 0) {
                n_made++;
                n_kept += !decisions[k].is_gone;
            }
        }
        ck_assert_int_eq(json_integer_value(json_object_get(counts, "n_made")), n_made);
        ck_assert_int_eq(json_integer_value(json_object_get(counts, "n_kept")), n_kept);
        ck_assert(json_is_true(json_object_get(counts, "is_whole")));
        ck_assert(json_is_null(json_object_get(counts, "first_ms")) == (n_made == 0));
    }
}

/* By model, or with a gallery that is reached. */
static bool is_touched(const struct made *made)
{
    size_t gallery = made->gallery > 0 ? place_of(DATASET, "d0", made->gallery) : NONE;
    return !made->is_gone &&
           (things[made->candidate].is_reached || (gallery != NONE && things[gallery].is_reached));
}

typedef weir_status (*page_fn)(struct weir_txn *txn, const char *name, int64_t version,
                               struct weir_arena *arena, struct control_lineage_page *page,
                               struct weir_error *err);

/* All pages: each decision that is touched, once, the newest first. */
static void check_pages(struct weir_txn *txn, const struct thing *thing, page_fn fn,
                        struct weir_error *err)
{
    bool is_seen[N_DECISIONS] = {false};
    size_t n_expected = 0, n_seen = 0;
    int64_t last_ms = INT64_MAX;
    struct control_lineage_page page = {.limit = 20};
    do {
        MUST(fn(txn, thing->name, thing->number, ARENA, &page, err));
        for (size_t i = 0; i < page.n; i++, n_seen++) {
            size_t k = (size_t)strtoul(strrchr(page.items[i].id, '-') + 1, NULL, 10);
            REQUIRE(is_touched(&decisions[k]) && !is_seen[k]);
            REQUIRE(page.items[i].time_ms <= last_ms);
            is_seen[k] = true;
            last_ms = page.items[i].time_ms;
        }
        page.cursor = page.next;
    } while (page.next != NULL);
    for (size_t k = 0; k < n_decisions; k++) {
        n_expected += is_touched(&decisions[k]);
    }
    ck_assert_uint_eq(n_seen, n_expected);
}

static void check_galleries(const json_t *galleries)
{
    size_t i, n_expected = 0;
    json_t *gallery;
    for (size_t k = 0; k < n_things; k++) {
        n_expected +=
            things[k].sort == DATASET && things[k].is_reached && strcmp(things[k].name, "d0") == 0;
    }
    ck_assert_uint_eq(json_array_size(galleries), n_expected);
    json_array_foreach((json_t *)galleries, i, gallery)
    {
        int64_t n_made = 0, version = json_integer_value(json_object_get(gallery, "version"));
        for (size_t k = 0; k < n_decisions; k++) {
            n_made += decisions[k].gallery == version;
        }
        ck_assert_int_eq(
            json_integer_value(json_object_get(json_object_get(gallery, "decisions"), "n_made")),
            n_made);
    }
}

static weir_status forward_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < n_things; i++) {
        json_t *lineage;
        if (things[i].sort != DATASET) {
            continue;
        }
        MUST(control_lineage_dataset(txn, things[i].name, things[i].number, ARENA, &lineage, err));
        clear();
        reach_forward(i);
        check_ids(json_object_get(lineage, "read_by"), "id", RUN);
        check_ids(json_object_get(lineage, "versions"), "id", VERSION);
        check_datasets(json_object_get(lineage, "made"), n_reached(DATASET) - 1);
        check_places(json_object_get(lineage, "places"));
        check_galleries(json_object_get(lineage, "galleries"));
        check_pages(txn, &things[i], control_lineage_dataset_decisions, err);
        clear();
        reach_back(i);
        check_ids(json_object_get(lineage, "runs"), "id", RUN);
        check_datasets(json_object_get(lineage, "datasets"), n_reached(DATASET));
        json_decref(lineage);
    }
    return WEIR_OK;
}

START_TEST(what_a_dataset_version_reached_is_that_of_the_graph)
{
    fixture_write(&fixture.store, make_in, NULL);
    fixture_write(&fixture.store, delete_in, NULL);
    fixture_read(&fixture.store, forward_in, NULL);
}

END_TEST

static weir_status version_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < n_things; i++) {
        json_t *lineage;
        if (things[i].sort != VERSION) {
            continue;
        }
        MUST(control_lineage_version(txn, things[i].name, things[i].number, ARENA, &lineage, err));
        clear();
        reach_back(i);
        check_ids(json_object_get(lineage, "runs"), "id", RUN);
        check_datasets(json_object_get(lineage, "datasets"), n_reached(DATASET));
        clear();
        reach_forward(i);
        check_places(json_object_get(lineage, "places"));
        check_pages(txn, &things[i], control_lineage_version_decisions, err);
        json_decref(lineage);
    }
    return WEIR_OK;
}

START_TEST(a_model_version_has_both_ways)
{
    fixture_write(&fixture.store, make_in, NULL);
    fixture_write(&fixture.store, delete_in, NULL);
    fixture_read(&fixture.store, version_in, NULL);
}

END_TEST

/* ---- what is not known ----------------------------------------------------------------------- */

struct candidate_row {
    char *id, *model, *version_id;
    int64_t promoted_ms;
};

static weir_status add_served(struct weir_txn *txn, const struct candidate_row *row,
                              struct weir_error *err)
{
    const struct weir_model model = {.name = row->model, .project = "default"};
    const struct weir_model_version version = {
        .id = row->version_id, .model = row->model, .version = 1, .blob = "b", .stage = "None"};
    const struct weir_ion_candidate candidate = {.id = row->id,
                                                 .ion = "x",
                                                 .link = PRINT("t:%s", "p0"),
                                                 .model = row->model,
                                                 .model_version = row->version_id,
                                                 .version = 1,
                                                 .blob = "b",
                                                 .state = "RETIRED",
                                                 .served_seq = row->promoted_ms};
    const struct weir_policy_decision policy = {.id = row->id,
                                                .ion = "x",
                                                .link = "t:p0",
                                                .candidate = row->id,
                                                .model_version = row->version_id,
                                                .policy = "none",
                                                .inputs = "{}",
                                                .rule = "r",
                                                .verdict = "set",
                                                .actor = "ann",
                                                .time_ms = row->promoted_ms};
    MUST(weir_txn_insert(txn, &weir_model_resource, &model, err));
    MUST(weir_txn_insert(txn, &weir_model_version_resource, &version, err));
    MUST(weir_txn_insert(txn, &weir_ion_candidate_resource, &candidate, err));
    return weir_txn_insert(txn, &weir_policy_decision_resource, &policy, err);
}

static weir_status two_models_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    size_t n;
    MUST(add_ion(txn, "x", "default", err));
    MUST(add_served(txn, &(struct candidate_row){"c-old", "old", "v-old", 100}, err));
    MUST(add_served(txn, &(struct candidate_row){"c-new", "new", "v-new", 200}, err));
    for (int64_t i = 0; i < 2; i++) {
        const struct weir_decision row = {.id = i == 0 ? "early" : "late",
                                          .ion = "x",
                                          .pipeline = "p0",
                                          .camera = "door",
                                          .frame = i,
                                          .time_ms = 150 + 100 * i,
                                          .verdict = "grant",
                                          .model_version = 1};
        MUST(weir_decisions_store(txn, &row, 1, NULL, 0, &n, err));
    }
    return WEIR_OK;
}

static void check_model(struct weir_txn *txn, const char *id, const char *model,
                        struct weir_error *err)
{
    json_t *lineage;
    MUST(control_lineage_decision(txn, id, ARENA, &lineage, err));
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(lineage, "version"), "model")), model);
    ck_assert(json_is_false(json_object_get(lineage, "is_certain")));
    json_decref(lineage);
}

static weir_status doubtful_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    json_t *lineage;
    struct control_lineage_page page = {.limit = 10};
    (void)context;
    check_model(txn, "early", "old", err);
    check_model(txn, "late", "new", err);
    MUST(control_lineage_version(txn, "old", 1, ARENA, &lineage, err));
    const json_t *counts =
        json_object_get(json_array_get(json_object_get(lineage, "places"), 0), "decisions");
    ck_assert(json_is_null(json_object_get(counts, "n_made")));
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(counts, "why")), "new"));
    json_decref(lineage);
    MUST(control_lineage_version_decisions(txn, "old", 1, ARENA, &page, err));
    ck_assert_uint_eq(page.n, 0);
    return WEIR_OK;
}

START_TEST(of_two_models_with_one_number_none_gets_the_other_s_decisions)
{
    fixture_write(&fixture.store, two_models_in, NULL);
    fixture_read(&fixture.store, doubtful_in, NULL);
}

END_TEST

static weir_status counted_later_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    return weir_txn_exec(txn, "UPDATE counters SET value = 50 WHERE name = 'decisions_counted_ms'",
                         WEIR_NO_BINDS, NULL, err);
}

static weir_status at_least_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    (void)context;
    for (size_t i = 0; i < n_things; i++) {
        json_t *lineage;
        if (things[i].sort != VERSION) {
            continue;
        }
        MUST(control_lineage_version(txn, things[i].name, things[i].number, ARENA, &lineage, err));
        const json_t *place = json_array_get(json_object_get(lineage, "places"), 0);
        if (place != NULL) {
            const json_t *counts = json_object_get(place, "decisions");
            ck_assert(json_is_false(json_object_get(counts, "is_whole")));
            ck_assert(json_is_string(json_object_get(counts, "why")));
        }
        json_decref(lineage);
    }
    return WEIR_OK;
}

START_TEST(what_was_deleted_before_it_was_counted_is_said)
{
    fixture_write(&fixture.store, make_in, NULL);
    fixture_write(&fixture.store, counted_later_in, NULL);
    fixture_read(&fixture.store, at_least_in, NULL);
}

END_TEST

static weir_status stray_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    size_t n;
    json_t *lineage;
    const struct weir_decision row = {.id = "stray",
                                      .ion = "x",
                                      .pipeline = "gone",
                                      .camera = "door",
                                      .time_ms = 9,
                                      .verdict = "grant",
                                      .person = "anna",
                                      .model_version = 7};
    (void)context;
    MUST(add_ion(txn, "x", "default", err));
    MUST(weir_decisions_store(txn, &row, 1, NULL, 0, &n, err));
    MUST(weir_txn_exec(txn,
                       "INSERT INTO forgotten_people (id, person, project, state, actor, reason,"
                       " created_ms, done_ms) VALUES ('f', 'anna', 'default', 'done', 'dan',"
                       " 'asked', 20, 21)",
                       WEIR_NO_BINDS, NULL, err));
    MUST(control_lineage_decision(txn, "stray", ARENA, &lineage, err));
    ck_assert(json_is_null(json_object_get(lineage, "version")));
    ck_assert(json_is_null(json_object_get(lineage, "place")));
    ck_assert(json_is_false(json_object_get(lineage, "is_certain")));
    ck_assert_uint_eq(json_array_size(json_object_get(lineage, "unknown")), 1);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(lineage, "forgotten"), "actor")), "dan");
    json_decref(lineage);
    ck_assert_int_eq(control_lineage_decision(txn, "no", ARENA, &lineage, err), WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(control_lineage_version(txn, "no", 1, ARENA, &lineage, err),
                     WEIR_ERR_NOT_FOUND);
    ck_assert_int_eq(control_lineage_dataset(txn, "faces", 9, ARENA, &lineage, err),
                     WEIR_ERR_NOT_FOUND);
    return WEIR_OK;
}

START_TEST(what_is_not_known_is_said_and_a_person_who_was_forgotten_too)
{
    fixture_write(&fixture.store, stray_in, NULL);
}

END_TEST

/* ---- whose it is ----------------------------------------------------------------------------- */

static weir_status add_project_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct weir_project project = {.name = "other"};
    (void)context;
    MUST(weir_txn_insert(txn, &weir_project_resource, &project, err));
    return weir_txn_exec(txn, "UPDATE models SET project = 'other'", WEIR_NO_BINDS, NULL, err);
}

/* The models are of another project: whoever sees the ION's alone sees that a version is not there. */
static weir_status of_default_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    json_t *lineage;
    (void)context;
    for (size_t i = 0; i < n_decisions; i++) {
        MUST(control_lineage_decision(txn, decisions[i].id, ARENA, &lineage, err));
        ck_assert(json_is_null(json_object_get(lineage, "version")));
        size_t n_expected = decisions[i].gallery > 0 ? 1 : 0;
        ck_assert_uint_ge(json_array_size(json_object_get(lineage, "datasets")), n_expected);
        json_decref(lineage);
    }
    for (size_t i = 0; i < n_things; i++) {
        if (things[i].sort == DATASET) {
            MUST(control_lineage_dataset(txn, things[i].name, things[i].number, ARENA, &lineage,
                                         err));
            ck_assert_uint_eq(json_array_size(json_object_get(lineage, "versions")), 0);
            ck_assert_uint_eq(json_array_size(json_object_get(lineage, "places")), 0);
            json_decref(lineage);
        } else if (things[i].sort == VERSION) {
            ck_assert_int_eq(control_lineage_version(txn, things[i].name, things[i].number, ARENA,
                                                     &lineage, err),
                             WEIR_ERR_NOT_FOUND);
        }
    }
    return WEIR_OK;
}

/* And whoever sees the models alone sees neither data nor runs, links nor decisions. */
static weir_status of_other_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    json_t *lineage;
    (void)context;
    for (size_t i = 0; i < n_decisions; i++) {
        ck_assert_int_eq(control_lineage_decision(txn, decisions[i].id, ARENA, &lineage, err),
                         WEIR_ERR_NOT_FOUND);
    }
    for (size_t i = 0; i < n_things; i++) {
        struct control_lineage_page page = {.limit = 10};
        if (things[i].sort == DATASET) {
            ck_assert_int_eq(control_lineage_dataset_decisions(txn, things[i].name,
                                                               things[i].number, ARENA, &page, err),
                             WEIR_ERR_NOT_FOUND);
        } else if (things[i].sort == VERSION) {
            MUST(control_lineage_version(txn, things[i].name, things[i].number, ARENA, &lineage,
                                         err));
            ck_assert_uint_eq(json_array_size(json_object_get(lineage, "runs")), 0);
            ck_assert_uint_eq(json_array_size(json_object_get(lineage, "datasets")), 0);
            ck_assert_uint_eq(json_array_size(json_object_get(lineage, "places")), 0);
            json_decref(lineage);
            MUST(control_lineage_version_decisions(txn, things[i].name, things[i].number, ARENA,
                                                   &page, err));
            ck_assert_uint_eq(page.n, 0);
        }
    }
    return WEIR_OK;
}

START_TEST(nothing_of_another_project_is_shown)
{
    static const char *const mine[] = {"default"}, *const theirs[] = {"other"};
    const struct weir_row_scope default_scope = {.projects = mine, .n_projects = 1};
    const struct weir_row_scope other_scope = {.projects = theirs, .n_projects = 1};
    fixture_write(&fixture.store, make_in, NULL);
    fixture_write(&fixture.store, add_project_in, NULL);
    ck_assert_int_eq(weir_store_read_scoped(fixture.store.store, &default_scope, of_default_in,
                                            NULL, &fixture.err),
                     WEIR_OK);
    ck_assert_int_eq(
        weir_store_read_scoped(fixture.store.store, &other_scope, of_other_in, NULL, &fixture.err),
        WEIR_OK);
}

END_TEST

WEIR_TEST_MAIN_WITH("lineage", set_up, tear_down, a_decision_s_way_back_is_that_of_the_graph,
                    what_a_dataset_version_reached_is_that_of_the_graph,
                    a_model_version_has_both_ways,
                    of_two_models_with_one_number_none_gets_the_other_s_decisions,
                    what_was_deleted_before_it_was_counted_is_said,
                    what_is_not_known_is_said_and_a_person_who_was_forgotten_too,
                    nothing_of_another_project_is_shown)
