/* Jobs as people see them with kubectl: where they lie, what has changed, and whose word a deletion is. */
#include "cluster/kubernetes/shown_plan.h"

#include "base/macros.h"
#include "base/test_main.h"
#include "base/test_seed.h"
#include "kube/client.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SERVER "https://weir.example:8470"
#define NOW_MS ((int64_t)1800000000000)

static struct weir_arena arena;

static void set_up(void)
{
    weir_arena_init(&arena, 0);
}

static void tear_down(void)
{
    weir_arena_fini(&arena);
}

/* ---- names ----------------------------------------------------------------------------------- */

#define ID "01a22d1f-67bd-7000-b7ce-9e9bd9632433"

START_TEST(a_job_lies_under_a_name_that_kubernetes_takes)
{
    static const struct {
        const char *name, *key;
    } rows[] = {{"train", "ns/train-9e9bd9632433"},
                {"eye.one", "ns/eye-one-9e9bd9632433"},
                {"a_b.c-d", "ns/a-b-c-d-9e9bd9632433"},
                {"a._-", "ns/a-9e9bd9632433"},
                {"..a", "ns/a-9e9bd9632433"},
                {"...", "ns/job-9e9bd9632433"},
                {"", "ns/job-9e9bd9632433"},
                {"ABC", "ns/abc-9e9bd9632433"},
                {"\xc3\xa9t\xc3\xa9", "ns/t-9e9bd9632433"},
                {"0123456789012345678901234567890123456789xyz",
                 "ns/0123456789012345678901234567890123456789-9e9bd9632433"},
                {"012345678901234567890123456789012345678.xyz",
                 "ns/012345678901234567890123456789012345678-9e9bd9632433"}};

    const struct weir_shown_job job = {.id = ID, .name = rows[_i].name};
    ck_assert_str_eq(shown_key("ns", &job, &arena), rows[_i].key);
}

END_TEST

#define N_NAMES 11

/* ---- change ---------------------------------------------------------------------------------- */

static const struct weir_shown_job plain = {.id = ID,
                                            .name = "train",
                                            .project = "blue",
                                            .queue = "blue",
                                            .kind = "command",
                                            .state = "PENDING",
                                            .reason = "no node"};

/* The object as the API server has it when the job was told. */
static json_t *object_of(const struct weir_shown_job *job)
{
    json_t *object =
        json_pack("{s:{s:s,s:s,s:s,s:{s:s,s:s},s:[s,s]},s:o,s:o}", "metadata", "name", "train-x",
                  "namespace", "ns", "uid", "u-1", "labels", "weir.dev/job", job->id, "more", "x",
                  "finalizers", "other/one", SHOWN_FINALIZER, "spec", shown_spec(job, SERVER),
                  "status", shown_status(job, &arena));
    return object;
}

static struct shown_object *read_of(const json_t *object)
{
    return shown_object_read(object);
}

START_TEST(what_was_written_is_read_as_unchanged)
{
    struct weir_shown_job job = plain;
    job.started_ms = NOW_MS + 123;
    job.ended_ms = NOW_MS + 60999;
    job.n_nodes = 3;
    WEIR_AUTO(weir_json_auto_free) json_t *object = object_of(&job);
    struct shown_object *read = read_of(object);
    ck_assert_uint_eq(read->spec, shown_spec_hash(&job, SERVER));
    ck_assert_uint_eq(read->status, shown_status_hash(&job));
    ck_assert_uint_eq(read->server, shown_server_hash(SERVER));
    ck_assert_str_eq(read->job, ID);
    ck_assert_int_eq(read->finalizer, 1);
    ck_assert_int_eq(read->ended_ms, NOW_MS + 60000); /* in seconds there */
    ck_assert(!read->is_leaving && !read->is_refused);
    free(read);
    /* What others have put there is not ours to change. */
    json_object_set_new(json_object_get(object, "spec"), "theirs", json_integer(1));
    json_object_set_new(json_object_get(object, "status"), "theirs", json_integer(1));
    read = read_of(object);
    ck_assert_uint_eq(read->spec, shown_spec_hash(&job, SERVER));
    ck_assert_uint_eq(read->status, shown_status_hash(&job));
    free(read);
}

END_TEST

START_TEST(each_thing_that_changes_is_noticed)
{
    struct weir_shown_job others[] = {plain, plain, plain, plain, plain,
                                      plain, plain, plain, plain, plain};
    const size_t n_spec = 5;
    others[0].id = "01a22d1f-67bd-7000-b7ce-000000000000";
    others[1].name = "other";
    others[2].project = "other";
    others[3].queue = "other";
    others[4].kind = "other";
    others[5].state = "RUNNING";
    others[6].reason = NULL;
    others[7].n_nodes = 1;
    others[8].started_ms = NOW_MS;
    others[9].ended_ms = NOW_MS;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        bool is_spec_same = shown_spec_hash(&plain, SERVER) == shown_spec_hash(&others[i], SERVER);
        bool is_status_same = shown_status_hash(&plain) == shown_status_hash(&others[i]);
        ck_assert_int_eq(is_spec_same, i >= n_spec);
        ck_assert_int_eq(is_status_same, i > 0 && i < n_spec);
    }
    ck_assert_uint_ne(shown_spec_hash(&plain, SERVER), shown_spec_hash(&plain, "http://other"));
}

END_TEST

START_TEST(a_reason_is_cut_between_characters)
{
    char text[SHOWN_REASON_BYTES + 64];
    memset(text, 'a', sizeof text);
    memcpy(text + SHOWN_REASON_BYTES - 1, "\xe2\x82\xac", 3); /* one of three bytes, over the end */
    text[sizeof text - 1] = '\0';
    struct weir_shown_job job = plain;
    job.reason = text;
    WEIR_AUTO(weir_json_auto_free) json_t *status = shown_status(&job, &arena);
    ck_assert_uint_eq(strlen(weir_kube_text(status, "reason")), SHOWN_REASON_BYTES - 1);
}

END_TEST

/* Anybody may have made an object of whatever form. */
START_TEST(an_object_of_any_form_is_read)
{
    static const char *const rows[] = {
        "{}", "{\"metadata\":[],\"spec\":1,\"status\":\"x\"}",
        "{\"metadata\":{\"finalizers\":{\"a\":1},\"labels\":[],\"uid\":5}}",
        ("{\"metadata\":{\"finalizers\":[1,null,[]]},\"status\":{\"job\":\"../../x\","
         "\"completionTime\":\"soon\"}}"),
        "{\"status\":{\"job\":{},\"state\":[],\"completionTime\":7}}"};

    WEIR_AUTO(weir_json_auto_free) json_t *object = json_loads(rows[_i], 0, NULL);
    ck_assert_ptr_nonnull(object);
    struct shown_object *read = read_of(object);
    ck_assert_ptr_null(read->job);
    ck_assert_int_eq(read->finalizer, -1);
    ck_assert_int_eq(read->ended_ms, 0);
    free(read);
}

END_TEST

#define N_FORMS 5

/* ---- the law --------------------------------------------------------------------------------- */

#define N_JOBS   6
#define N_SPACES 2
#define N_ROUNDS WEIR_TEST_TIMES(20000, 2000)

/* One random object: what it says, of what job, where. */
struct one {
    char key[64];
    struct shown_object object;
};

/* A random world: jobs in two namespaces, and objects of which each says anything. */
struct random_world {
    struct weir_shown_job jobs[N_JOBS];
    char ids[N_JOBS][8];
    struct shown_told told[N_JOBS];
    size_t n_told;
    struct one ones[N_JOBS * N_SPACES * 2];
    struct shown_there there[N_JOBS * N_SPACES * 2];
    size_t n;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct one *)a)->key, ((const struct one *)b)->key);
}

static void make_jobs(struct random_world *world, struct weir_rng *rng)
{
    world->n_told = 0;
    for (size_t i = 0; i < N_JOBS; i++) {
        struct weir_shown_job *job = &world->jobs[i];
        bool is_known = weir_rng_below(rng, 5) > 0, is_over = weir_rng_below(rng, 3) == 0;
        (void)snprintf(world->ids[i], sizeof world->ids[i], "j%zu", i);
        *job = plain;
        job->id = world->ids[i];
        job->name = "n";
        job->state = is_known ? "RUNNING" : NULL;
        job->is_ending = is_known && (is_over || weir_rng_below(rng, 4) == 0);
        job->ended_ms = is_known && is_over
                            ? NOW_MS - (int64_t)weir_rng_below(rng, 2) * 2 * SHOWN_KEPT_MS - 1
                            : 0;
        const char *space = i % N_SPACES == 0 ? "a" : "b";
        if (weir_rng_below(rng, 4) > 0) {
            world->told[world->n_told++] =
                (struct shown_told){.key = is_known ? shown_key(space, job, &arena) : NULL,
                                    .job = job,
                                    .spec = 10 + i,
                                    .status = 20 + i};
        }
    }
}

static void make_objects(struct random_world *world, struct weir_rng *rng)
{
    world->n = 0;
    for (size_t i = 0; i < WEIR_ARRAY_LEN(world->ones); i++) {
        struct one *one = &world->ones[world->n];
        size_t i_key = weir_rng_below(rng, N_JOBS), i_says = weir_rng_below(rng, N_JOBS);
        i_says = weir_rng_below(rng, 2) == 0 ? i_key : i_says;
        (void)snprintf(one->key, sizeof one->key, "%c/n-j%zu%s", weir_rng_below(rng, 2) ? 'a' : 'b',
                       i_key, weir_rng_below(rng, 5) == 0 ? "x" : "");
        bool is_new = true;
        for (size_t k = 0; k < world->n; k++) {
            is_new = is_new && strcmp(world->ones[k].key, one->key) != 0;
        }
        if (!is_new) {
            continue;
        }
        one->object = (struct shown_object){
            .uid = "u",
            .job = weir_rng_below(rng, 3) > 0 ? world->ids[i_says] : NULL,
            .spec = 10 + weir_rng_below(rng, N_JOBS),
            .status = 20 + weir_rng_below(rng, N_JOBS),
            .server = weir_rng_below(rng, 2) ? shown_server_hash(SERVER) : 1,
            .ended_ms = weir_rng_below(rng, 2)
                            ? NOW_MS - 1 - (int64_t)weir_rng_below(rng, 2) * 2 * SHOWN_KEPT_MS
                            : 0,
            .finalizer = weir_rng_below(rng, 2) ? 0 : -1,
            .is_leaving = weir_rng_below(rng, 2),
            .is_refused = weir_rng_below(rng, 2)};
        world->n++;
    }
    qsort(world->ones, world->n, sizeof world->ones[0], by_key);
    for (size_t i = 0; i < world->n; i++) {
        world->there[i] =
            (struct shown_there){.key = world->ones[i].key, .object = &world->ones[i].object};
    }
}

static const struct shown_told *told_of(const struct random_world *world, const char *id)
{
    for (size_t i = 0; i < world->n_told && id != NULL; i++) {
        if (strcmp(world->told[i].job->id, id) == 0) {
            return &world->told[i];
        }
    }
    return NULL;
}

/* A deletion is a word about a job only where all of this holds. */
static bool is_word(const struct random_world *world, const struct shown_there *there)
{
    const struct shown_told *told = told_of(world, there->object->job);
    return told != NULL && told->key != NULL && strcmp(told->key, there->key) == 0 &&
           there->object->is_leaving && there->object->finalizer >= 0 && !told->job->is_ending;
}

static const struct shown_step *step_of(const struct shown_step *steps, size_t n, const char *key)
{
    const struct shown_step *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(steps[i].key, key) == 0) {
            ck_assert_ptr_null(found); /* each once */
            found = &steps[i];
        }
    }
    return found;
}

static void check_object(const struct random_world *world, const struct shown_there *there,
                         const struct shown_step *step)
{
    const struct shown_object *object = there->object;
    enum shown_what what = step != NULL ? step->what : SHOWN_NOTHING;
    const struct shown_told *told = told_of(world, object->job);
    ck_assert_int_eq(what == SHOWN_DELETED, is_word(world, there));
    ck_assert(what != SHOWN_RELEASE || object->finalizer >= 0);
    /* What goes is not written anew, and what a person has deleted does not hang on us. */
    ck_assert(!object->is_leaving || what == SHOWN_RELEASE || what == SHOWN_DELETED ||
              what == SHOWN_NOTHING);
    bool may_be_anothers =
        object->job != NULL && (told == NULL || told->key == NULL) && object->server == 1;
    bool is_place = step != NULL && step->told != NULL;
    ck_assert(!may_be_anothers || is_place || what == SHOWN_NOTHING);
    bool is_open = told == NULL && object->job != NULL && object->ended_ms == 0;
    bool is_settled = !object->is_leaving || object->finalizer < 0;
    ck_assert(is_settled || what != SHOWN_NOTHING || may_be_anothers || is_open);
}

static void check_jobs(const struct random_world *world, const struct shown_step *steps, size_t n)
{
    for (size_t i = 0; i < world->n_told; i++) {
        const struct shown_told *told = &world->told[i];
        const struct shown_step *step = told->key != NULL ? step_of(steps, n, told->key) : NULL;
        bool is_there = false;
        for (size_t k = 0; told->key != NULL && k < world->n; k++) {
            is_there = is_there || strcmp(world->there[k].key, told->key) == 0;
        }
        if (told->key != NULL && !is_there) { /* made unless it is ending */
            ck_assert_int_eq(step != NULL, !told->job->is_ending);
            ck_assert(step == NULL || step->what == SHOWN_PUT);
        }
    }
}

START_TEST(only_a_jobs_own_object_at_its_place_cancels_it)
{
    static struct random_world world;
    struct weir_rng rng;
    (void)test_seed(&rng);
    for (int round = 0; round < N_ROUNDS; round++) {
        size_t n;
        make_jobs(&world, &rng);
        make_objects(&world, &rng);
        struct shown_view view = {.there = world.there,
                                  .n_there = world.n,
                                  .told = world.told,
                                  .n_told = world.n_told,
                                  .server = shown_server_hash(SERVER),
                                  .now_ms = NOW_MS};
        const struct shown_step *steps = shown_plan(&view, &arena, &n);
        for (size_t i = 0; i < world.n; i++) {
            check_object(&world, &world.there[i], step_of(steps, n, world.there[i].key));
        }
        check_jobs(&world, steps, n);
        view.is_withdrawn = true; /* nothing is anybody's word then */
        steps = shown_plan(&view, &arena, &n);
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_eq(steps[i].what, SHOWN_RELEASE);
        }
        weir_arena_fini(&arena);
    }
}

END_TEST

int main(void)
{
    Suite *suite = suite_create("shown");
    TCase *cases = tcase_create("shown");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_loop_test(cases, a_job_lies_under_a_name_that_kubernetes_takes, 0, N_NAMES);
    tcase_add_test(cases, what_was_written_is_read_as_unchanged);
    tcase_add_test(cases, each_thing_that_changes_is_noticed);
    tcase_add_test(cases, a_reason_is_cut_between_characters);
    tcase_add_loop_test(cases, an_object_of_any_form_is_read, 0, N_FORMS);
    tcase_add_test(cases, only_a_jobs_own_object_at_its_place_cancels_it);
    suite_add_tcase(suite, cases);
    return weir_test_run(suite);
}
