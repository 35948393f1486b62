/*
 * An engine with several frames at work decides what one with a single frame decides: of random streams of several cameras, bit for bit.
 */
#include "predict/chain_fixture.h"

#define N_CAMERAS 4
#define N_STEPS   80

static const char *const cameras[N_CAMERAS] = {"door", "gate", "hall", "yard"};

/** A camera's frames, by number. */
struct stream {
    struct {
        struct standing people[2];
        size_t n;
        int64_t time_ms;
    } frames[N_STEPS];
};

/* People come, go on for some frames, and leave; at the end nobody is there for so long that all is over. */
static void make_stream(struct weir_rng *rng, struct stream *out)
{
    int64_t time_ms = T0;
    struct standing people[2];
    size_t n = 0, left = 0;
    for (size_t i = 0; i < N_STEPS; i++) {
        if (left == 0) {
            left = 3 + weir_rng_below(rng, 8);
            n = weir_rng_below(rng, 3);
            time_ms += weir_rng_below(rng, 2) == 0 ? 5000 : 0;
            for (size_t k = 0; k < n; k++) {
                people[k] = (struct standing){(int)weir_rng_below(rng, 10),
                                              2 + 4 * (int)weir_rng_below(rng, 6), 2 + 32 * (int)k};
            }
        }
        left--;
        time_ms += 50 + (int64_t)weir_rng_below(rng, 100);
        n = i + 3 >= N_STEPS ? 0 : n;
        time_ms += i + 3 >= N_STEPS ? 10000 : 0;
        memcpy(out->frames[i].people, people, sizeof people);
        out->frames[i].n = n;
        out->frames[i].time_ms = time_ms;
        for (size_t k = 0; k < n; k++) {
            people[k].x += 4 * (int)weir_rng_below(rng, 2);
        }
    }
}

/* What differs between two runs of the same: identifiers, and how long it took. */
static void forget_run(json_t *decision)
{
    static const char *const of_run[] = {"id", "latency_us"};
    json_t *passage = json_object_get(decision, "passage");
    for (size_t i = 0; i < WEIR_ARRAY_LEN(of_run); i++) {
        ck_assert_int_eq(json_object_del(decision, of_run[i]), 0);
    }
    if (json_is_object(passage)) {
        ck_assert_int_eq(json_object_del(decision, "key"), 0);
        ck_assert_int_eq(json_object_del(passage, "id"), 0);
    }
}

/* Of each camera its decisions, in their order. */
static json_t *by_camera(json_t *all)
{
    json_t *sorted = json_object(), *one;
    size_t i;
    for (i = 0; i < N_CAMERAS; i++) {
        json_object_set_new(sorted, cameras[i], json_array());
    }
    json_array_foreach(all, i, one)
    {
        forget_run(one);
        json_array_append(json_object_get(sorted, test_text(one, "camera")), one);
    }
    json_decref(all);
    return sorted;
}

static void put_all(const struct stream *streams, uint64_t seed)
{
    struct weir_rng rng;
    size_t next[N_CAMERAS] = {0};
    weir_rng_init(&rng, seed, 1);
    for (size_t n_left = N_CAMERAS * N_STEPS; n_left > 0;) {
        char bytes[SCENE_BYTES];
        size_t c = weir_rng_below(&rng, N_CAMERAS), i = next[c];
        if (i < N_STEPS) {
            const struct standing *people = streams[c].frames[i].people;
            put(cameras[c], (int64_t)i, streams[c].frames[i].time_ms, bytes,
                draw(people, streams[c].frames[i].n, (int)(100 + i), bytes));
            next[c]++;
            n_left--;
        }
    }
}

static atomic_bool is_held, is_put;

static bool is_true(void *context)
{
    return atomic_load((atomic_bool *)context);
}

static void hold(void *context)
{
    (void)context;
    atomic_store(&is_held, true);
    (void)test_wait(is_true, &is_put);
}

static void *hold_engine(void *context)
{
    ck_assert_int_eq(intake_run(it.intake, hold, context), WEIR_OK);
    return NULL;
}

/* No camera falls silent by the clock: all of its frames wait before the first one is taken. */
static json_t *play(const char *list, const struct stream *streams, uint64_t seed, size_t n_at_once)
{
    size_t n_all = N_CAMERAS * N_STEPS;
    pthread_t holder;
    atomic_store(&n_durable, 0);
    it.n_at_once = n_at_once;
    atomic_store(&is_held, false);
    atomic_store(&is_put, false);
    start(list);
    ck_assert_int_eq(pthread_create(&holder, NULL, hold_engine, NULL), 0);
    ck_assert(test_wait(is_true, &is_held));
    put_all(streams, seed);
    atomic_store(&is_put, true);
    pthread_join(holder, NULL);
    ck_assert(test_wait(are_durable, &n_all));
    stop();
    it.n_at_once = 0;
    json_t *decided = by_camera(all_decisions());
    ck_assert_int_eq(weir_dir_remove(test_path(&dir, "outbox"), &err), WEIR_OK);
    (void)remove(test_path(&dir, "passages.json"));
    return decided;
}

static void compare(const json_t *wanted, const json_t *given)
{
    ck_assert_uint_gt(json_array_size(wanted), 0);
    ck_assert_uint_eq(json_array_size(given), json_array_size(wanted));
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        char *a = json_dumps(json_array_get(wanted, i), JSON_SORT_KEYS);
        char *b = json_dumps(json_array_get(given, i), JSON_SORT_KEYS);
        ck_assert_str_eq(b, a);
        free(a);
        free(b);
    }
}

static void check_alike(const char *list)
{
    static struct stream streams[N_CAMERAS];
    uint64_t seed = weir_mono_ns();
    struct weir_rng rng;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < N_CAMERAS; i++) {
        make_stream(&rng, &streams[i]);
    }
    json_t *one = play(list, streams, seed, 1);
    json_t *several = play(list, streams, seed, ENGINE_AT_ONCE_MAX);
    for (size_t i = 0; i < N_CAMERAS; i++) {
        compare(json_object_get(one, cameras[i]), json_object_get(several, cameras[i]));
    }
    json_decref(one);
    json_decref(several);
}

START_TEST(each_face_is_decided_as_by_an_engine_with_one_frame_at_work)
{
    check_alike("[" DETECT "\"decide\"]");
}

END_TEST

START_TEST(each_passage_is_decided_as_by_an_engine_with_one_frame_at_work)
{
    check_alike("[" DETECT "\"track\",\"decide\"]");
}

END_TEST

static bool is_gate_at_work(void *context)
{
    struct intake_camera gate;
    intake_camera(it.intake, "gate", &gate);
    *(bool *)context = gate.is_at_work;
    return gate.is_at_work;
}

static bool was_at_work;

/* The engine gives pixels back when it is done with a frame. */
static void await_gate(struct frame *frame)
{
    (void)frame;
    (void)test_wait(is_gate_at_work, &was_at_work);
}

START_TEST(a_frame_is_looked_at_while_another_cameras_is_decided)
{
    char bytes[SCENE_BYTES];
    size_t n = 2, len = draw(NULL, 0, 0, bytes);
    it.n_at_once = 2;
    start("[" DETECT "\"decide\"]");
    struct frame *first = frame_create("door", 0);
    first->bytes = weir_xalloc(len);
    memcpy(first->bytes, bytes, len);
    first->n_bytes = len;
    first->release = await_gate;
    first->on_durable = on_frame;
    ck_assert_int_eq(intake_put(it.intake, first, -1), WEIR_OK);
    put("gate", 0, T0, bytes, len);
    ck_assert(test_wait(are_durable, &n));
    stop();
    it.n_at_once = 0;
    ck_assert(was_at_work);
}

END_TEST

WEIR_TEST_MAIN_WITH("at_once", set_up, tear_down,
                    each_face_is_decided_as_by_an_engine_with_one_frame_at_work,
                    each_passage_is_decided_as_by_an_engine_with_one_frame_at_work,
                    a_frame_is_looked_at_while_another_cameras_is_decided)
