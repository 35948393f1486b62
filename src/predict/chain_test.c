/*
 * Chains with a detector: an engine over frames that this test draws, in which people stand on black.
 * Who is in a frame and where, the test knows.
 */
#include "predict/chain_fixture.h"

#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- faces of a frame ------------------------------------------------------------------------ */

#define N_FRAMES 60

/* People of a frame, apart from each other, where a cell of the detector looks. Person 9 is not enrolled. */
static size_t place_people(struct weir_rng *rng, struct standing out[4])
{
    size_t n = weir_rng_below(rng, 5);
    for (size_t i = 0; i < n; i++) {
        out[i] = (struct standing){(int)(weir_rng_below(rng, 10)),
                                   2 + (int)(i % 2) * 48 + 4 * (int)weir_rng_below(rng, 6),
                                   2 + (int)(i / 2) * 32 + 4 * (int)weir_rng_below(rng, 3)};
    }
    return n;
}

/* The decision about what stands there, taken out of the list; NULL: there is none. */
static json_t *take_at(json_t *decisions, const char *camera, int64_t number,
                       const struct standing *who)
{
    json_t *one;
    size_t i;
    json_array_foreach(decisions, i, one)
    {
        const json_t *box = json_object_get(one, "box");
        double x = json_number_value(json_object_get(box, "x"));
        double y = json_number_value(json_object_get(box, "y"));
        if (strcmp(test_text(one, "camera"), camera) == 0 && test_int(one, "frame") == number &&
            (who == NULL ? json_is_null(box) : fabs(x - who->x) < 1.5 && fabs(y - who->y) < 1.5)) {
            json_incref(one);
            json_array_remove(decisions, i);
            return one;
        }
    }
    return NULL;
}

static void check_one(json_t *decision, const struct standing *who, size_t n)
{
    char name[8];
    ck_assert_ptr_nonnull(decision);
    (void)snprintf(name, sizeof name, "p%02d", who->person);
    bool is_known = who->person < N_PEOPLE;
    ck_assert_str_eq(test_text(decision, "person"), is_known ? name : "");
    ck_assert_str_eq(test_text(decision, "verdict"), who->person == 7 ? "deny"
                                                     : is_known       ? "grant"
                                                                      : "unknown");
    ck_assert_int_eq(test_int(json_object_get(decision, "box"), "of"), (int64_t)n);
    json_decref(decision);
}

START_TEST(each_face_of_a_frame_is_decided_and_the_frame_acknowledged_when_all_are)
{
    const uint64_t seed = 4711;
    struct weir_rng rng;
    struct standing people[N_FRAMES][4];
    size_t n[N_FRAMES], n_wanted = 0, n_frames = N_FRAMES;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    start("[" DETECT "\"decide\"]");
    ck_assert_uint_eq(it.gallery->templates.n, N_PEOPLE * N_PHOTOS);
    ck_assert_uint_eq(it.gallery->n_whole, 0);
    for (size_t i = 0; i < N_FRAMES; i++) {
        char bytes[SCENE_BYTES];
        n[i] = place_people(&rng, people[i]);
        n_wanted += WEIR_MAX(n[i], (size_t)1);
        put("door", (int64_t)i, T0 + (int64_t)i, bytes, draw(people[i], n[i], 100 + (int)i, bytes));
    }
    ck_assert(test_wait(are_durable, &n_frames));
    struct frame *asked = frame_create("door", 0);
    json_t *outcome = outcome_find(it.outbox, asked);
    ck_assert_uint_eq(json_array_size(json_object_get(outcome, "decisions")),
                      WEIR_MAX(n[0], (size_t)1));
    json_decref(outcome);
    frame_destroy(asked);
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(json_array_size(all), n_wanted);
    for (size_t i = 0; i < N_FRAMES; i++) {
        for (size_t k = 0; k < n[i]; k++) {
            check_one(take_at(all, "door", (int64_t)i, &people[i][k]), &people[i][k], n[i]);
        }
        if (n[i] == 0) {
            json_t *none = take_at(all, "door", (int64_t)i, NULL);
            ck_assert_str_eq(test_text(none, "verdict"), "unknown");
            ck_assert_str_eq(test_text(json_object_get(none, "quality"), "refused"), "no face");
            json_decref(none);
        }
    }
    ck_assert_uint_eq(json_array_size(all), 0);
    json_decref(all);
}

END_TEST

/* ---- passages -------------------------------------------------------------------------------- */

#define TRACK     "[" DETECT "\"track\",\"decide\"]"
#define REMEMBER  "[" DETECT "{\"kind\":\"track\",\"visitors\":true},\"decide\"]"
#define WALK_MS   3000
#define FRAME_MS  100
#define N_WALKERS 12

/* Walkers cross the picture one after the other, 4 pixels every other frame, every other one below. */
static int64_t walk_begins(int i)
{
    return T0 + i * (int64_t)(WALK_MS + 2500);
}

static size_t walkers_at(int64_t time_ms, struct standing out[4])
{
    size_t n = 0;
    for (int i = 0; i < N_WALKERS; i++) {
        int64_t since = time_ms - walk_begins(i);
        if (since >= 0 && since < WALK_MS && n < 4) {
            int step = (int)(since / FRAME_MS);
            out[n++] = (struct standing){i % 10, 2 + 4 * (step / 2), i % 2 == 0 ? 2 : 34};
        }
    }
    return n;
}

static size_t n_put;

static void show(int64_t time_ms)
{
    char bytes[SCENE_BYTES];
    struct standing people[4];
    size_t n = walkers_at(time_ms, people);
    put("door", time_ms - T0, time_ms, bytes, draw(people, n, (int)(time_ms % 997), bytes));
    n_put++;
}

static size_t count_of(const json_t *decisions, const char *person)
{
    const json_t *one;
    size_t i, n = 0;
    json_array_foreach(decisions, i, one)
    {
        n += strcmp(test_text(one, "person"), person) == 0;
    }
    return n;
}

/* A picture of the file: a JPEG of the side that people are shown. */
static void check_jpeg(const char *data, size_t len)
{
    struct weir_image image;
    ck_assert_msg(weir_image_decode(data, len, &image, &err) == WEIR_OK, "%s", err.message);
    ck_assert_int_le(WEIR_MAX(image.width, image.height), PICTURE_SIDE_MAX);
    weir_image_fini(&image);
}

/* The file of a decision: its picture, and those of the other frames behind it. */
static void check_pictures(const json_t *decision, const json_t *frames)
{
    char path[PICTURE_PATH_BYTES], *data, digest[WEIR_SHA256_TEXT_BYTES];
    const json_t *frame;
    size_t i, len, at, n_film = 0;
    (void)snprintf(path, sizeof path, "%s",
                   test_path(&dir, "images/%s.jpg", test_text(decision, "id")));
    ck_assert_int_eq(weir_file_read(path, 1 << 20, &arena, &data, &len, &err), WEIR_OK);
    json_array_foreach(frames, i, frame)
    {
        ck_assert_int_eq(json_is_true(json_object_get(frame, "is_best")),
                         test_int(frame, "bytes") == 0);
        n_film += (size_t)test_int(frame, "bytes");
    }
    ck_assert_uint_lt(n_film, len);
    at = len - n_film;
    check_jpeg(data, at);
    weir_sha256(data, at, digest);
    ck_assert_str_eq(digest, test_text(decision, "image"));
    json_array_foreach(frames, i, frame)
    {
        size_t bytes = (size_t)test_int(frame, "bytes");
        if (bytes > 0) {
            check_jpeg(data + at, bytes);
        }
        at += bytes;
    }
}

/* Whoever walked there at the time of a frame is in its box. */
static void check_film(const json_t *decision, int i_walker)
{
    const json_t *passage = json_object_get(decision, "passage"), *frame;
    const json_t *frames = json_object_get(passage, "frames");
    size_t i, n_best = 0;
    int64_t before_ms = INT64_MIN, time_ms, n_seen = test_int(passage, "n_frames"), n_even = n_seen;
    while (n_even > FILM_FRAMES - 1) {
        n_even = (n_even + 1) / 2;
    }
    ck_assert_int_ge((int64_t)json_array_size(frames), n_even);
    ck_assert_int_le((int64_t)json_array_size(frames), n_even + 1);
    json_array_foreach(frames, i, frame)
    {
        const json_t *box = json_object_get(frame, "box");
        ck_assert_int_eq(weir_time_parse(test_text(frame, "time_ms"), &time_ms), WEIR_OK);
        ck_assert_int_gt(time_ms, before_ms);
        int step = (int)((time_ms - walk_begins(i_walker)) / FRAME_MS);
        int at_x = 2 + 4 * (step / 2);
        ck_assert_double_eq_tol(json_number_value(json_object_get(box, "x")), at_x,
                                FIXTURE_STRIDE + 2);
        bool is_best = json_is_true(json_object_get(frame, "is_best"));
        n_best += is_best;
        ck_assert(!is_best ||
                  json_number_value(json_object_get(box, "x")) ==
                      json_number_value(json_object_get(json_object_get(decision, "box"), "x")));
        before_ms = time_ms;
    }
    ck_assert_uint_eq(n_best, 1);
    check_pictures(decision, frames);
}

/* Five people at most, most like first; somebody who is known is the first of them. */
static void check_nearest(const json_t *decision)
{
    const json_t *nearest = json_object_get(json_object_get(decision, "passage"), "nearest"), *near;
    double before = 1.001;
    size_t i;
    ck_assert_uint_eq(json_array_size(nearest), DECISION_NEAREST);
    json_array_foreach(nearest, i, near)
    {
        double score = json_number_value(json_object_get(near, "score"));
        ck_assert_double_le(score, before);
        before = score;
    }
    const char *person = test_text(decision, "person");
    ck_assert(person[0] == '\0' ||
              strcmp(person, test_text(json_array_get(nearest, 0), "person")) == 0);
}

START_TEST(each_passage_is_decided_once_with_the_frames_it_rests_on)
{
    int64_t end = walk_begins(N_WALKERS) + 3000;
    n_put = 0;
    start(REMEMBER);
    for (int64_t time_ms = T0; time_ms < end; time_ms += FRAME_MS) {
        show(time_ms);
    }
    ck_assert(test_wait(are_durable, &n_put));
    stop();
    json_t *all = all_decisions(), *one;
    size_t i;
    ck_assert_uint_eq(json_array_size(all), N_WALKERS);
    json_array_foreach(all, i, one)
    {
        const json_t *passage = json_object_get(one, "passage");
        int person = (int)i % 10;
        check_one(json_incref(one), &(struct standing){.person = person}, 1);
        ck_assert_int_eq(strncmp(test_text(one, "key"), "passage/door/", 13), 0);
        ck_assert_str_eq(test_text(one, "key") + 13, test_text(passage, "id"));
        ck_assert_int_ge(test_int(passage, "n_frames"), person == 7         ? 1
                                                        : person < N_PEOPLE ? 2
                                                                            : 20);
        ck_assert_int_le(test_int(passage, "n_frames"), WALK_MS / FRAME_MS);
        ck_assert_int_ge(test_int(passage, "n_counted"), test_int(passage, "n_named"));
        const json_t *visitor = json_object_get(passage, "visitor");
        ck_assert_int_eq(json_is_object(visitor), person >= N_PEOPLE);
        ck_assert(person < N_PEOPLE || test_int(visitor, "times") == 1);
        ck_assert_int_eq(test_int(json_object_get(passage, "rule"), "m"), 3);
        check_film(one, (int)i);
        check_nearest(one);
    }
    json_decref(all);
}

END_TEST

/* Longer than gone_ms, shorter than twice that. */
START_TEST(a_gap_in_the_frames_decides_nobody_twice)
{
    const int64_t gap_from = 600, gap_until = 2100, end = walk_begins(N_WALKERS);
    n_put = 0;
    start("[" DETECT "{\"kind\":\"track\",\"gone_ms\":800},\"decide\"]");
    for (int64_t time_ms = T0; time_ms < end; time_ms += FRAME_MS) {
        int64_t since = (time_ms - T0) % (walk_begins(1) - T0);
        if (since < gap_from || since >= gap_until) {
            show(time_ms);
        }
    }
    ck_assert(test_wait(are_durable, &n_put));
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(json_array_size(all), N_WALKERS);
    json_decref(all);
}

END_TEST

/* A zone without an area: the stage "count" fails in each frame. */
#define FAILS_BEHIND_TRACK                                                                         \
    "[" DETECT "{\"kind\":\"track\",\"gone_ms\":1000},{\"kind\":\"count\",\"name\":\"flat\","      \
    "\"zone\":[[0.1,0.1],[0.2,0.2],[0.3,0.3]]},\"decide\"]"

START_TEST(passages_are_decided_though_a_stage_behind_their_own_fails)
{
    size_t n_passages = 0, n_errors = 0, i;
    int64_t end = walk_begins(N_WALKERS) + 3000;
    n_put = 0;
    start(FAILS_BEHIND_TRACK);
    for (int64_t time_ms = T0; time_ms < end; time_ms += FRAME_MS) {
        show(time_ms);
    }
    ck_assert(test_wait(are_durable, &n_put));
    stop();
    json_t *all = all_decisions(), *one;
    json_array_foreach(all, i, one)
    {
        bool is_error = strcmp(test_text(one, "verdict"), "error") == 0;
        n_errors += is_error;
        n_passages += json_is_object(json_object_get(one, "passage"));
        ck_assert(is_error != json_is_object(json_object_get(one, "passage")));
        ck_assert(is_error ||
                  json_is_object(json_object_get(json_object_get(one, "passage"), "rule")));
    }
    ck_assert_uint_eq(n_errors, n_put);
    ck_assert_uint_eq(n_passages, N_WALKERS);
    json_decref(all);
}

END_TEST

#define GONE_MS 300

static bool is_passage_durable(void *context)
{
    struct outbox_counts counts;
    (void)context;
    outbox_counts(it.outbox, &counts);
    return counts.n_durable > 0;
}

START_TEST(who_left_a_camera_that_fell_silent_is_decided_all_the_same)
{
    char bytes[SCENE_BYTES];
    const struct standing impostor = {9, 26, 34};
    int64_t last_ms = 0, time_ms = 0;
    n_put = 0;
    start("[" DETECT "{\"kind\":\"track\",\"gone_ms\":300},\"decide\"]");
    for (int i = 0; i < 5; i++) {
        last_ms = weir_time_ms();
        put("door", i, last_ms, bytes, draw(&impostor, 1, 100 + i, bytes));
        n_put++;
        ck_assert(test_wait(are_durable, &n_put));
    }
    ck_assert(test_wait(is_passage_durable, NULL));
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(json_array_size(all), 1);
    const json_t *passage = json_object_get(json_array_get(all, 0), "passage");
    ck_assert_int_eq(weir_time_parse(test_text(passage, "last"), &time_ms), WEIR_OK);
    ck_assert_int_eq(time_ms, last_ms);
    ck_assert_int_eq(weir_time_parse(test_text(json_array_get(all, 0), "time_ms"), &time_ms),
                     WEIR_OK);
    ck_assert_int_ge(time_ms - last_ms, 2 * GONE_MS);
    json_decref(all);
}

END_TEST

/* ---- kills ----------------------------------------------------------------------------------- */

#define N_KILLS    8
#define EACH_MS    7000 /**< So much of the scene a process sees. */
#define N_STANDING 3

/* Two who are known and one who is not stand there all the time. */
static void show_standing(int64_t time_ms, size_t n)
{
    static const struct standing people[N_STANDING] = {{0, 2, 2}, {1, 50, 2}, {9, 26, 34}};
    char bytes[SCENE_BYTES];
    put("door", time_ms % 1000000, time_ms, bytes, draw(people, n, (int)(time_ms % 997), bytes));
}

/* A process that sees the scene from a time on, and is killed after some frames. */
static void live_and_die(int64_t from_ms, int64_t n_frames_until_death)
{
    atomic_long *n_seen =
        mmap(NULL, sizeof *n_seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(n_seen, MAP_FAILED);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        size_t n_shown = 0;
        start(TRACK);
        for (int64_t time_ms = from_ms; time_ms < from_ms + EACH_MS; time_ms += FRAME_MS) {
            show_standing(time_ms, N_STANDING);
            n_shown++;
            (void)test_wait(are_durable, &n_shown);
            atomic_fetch_add(n_seen, 1);
        }
        for (;;) {
            (void)pause();
        }
    }
    while (atomic_load(n_seen) < n_frames_until_death) {
        (void)poll(NULL, 0, 1);
    }
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    (void)munmap(n_seen, sizeof *n_seen);
}

START_TEST(killed_at_any_moment_it_decides_no_passage_twice)
{
    const uint64_t seed = 1729;
    struct weir_rng rng;
    int64_t begin = weir_time_ms(), end;
    size_t n_wanted = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    weir_rng_init(&rng, seed, 0);
    for (int i = 0; i < N_KILLS; i++) {
        live_and_die(begin + i * (int64_t)EACH_MS,
                     1 + (int64_t)weir_rng_below(&rng, EACH_MS / FRAME_MS));
    }
    start(TRACK);
    end = begin + N_KILLS * (int64_t)EACH_MS;
    for (int64_t time_ms = end; time_ms < end + EACH_MS + 3000; time_ms += FRAME_MS) {
        show_standing(time_ms, time_ms < end + EACH_MS ? N_STANDING : 0);
        n_wanted++;
    }
    ck_assert(test_wait(are_durable, &n_wanted));
    stop();
    json_t *all = all_decisions();
    ck_assert_uint_eq(count_of(all, "p00"), 1);
    ck_assert_uint_eq(count_of(all, "p01"), 1);
    ck_assert_uint_eq(count_of(all, ""), 1);
    ck_assert_uint_eq(json_array_size(all), N_STANDING);
    json_decref(all);
}

END_TEST

/* ---- as a server deploys it ------------------------------------------------------------------ */

static char url[128];

static bool is_served(void *context)
{
    static int64_t frame;
    char bytes[SCENE_BYTES];
    (void)context;
    return test_post_frame(NULL, url, "probe", frame++, bytes, draw(NULL, 0, 0, bytes), NULL,
                           NULL) == 200;
}

static json_t *deployment_of(struct test_server *server, const char *stages)
{
    char digest[WEIR_SHA256_TEXT_BYTES];
    json_t *deployment = test_deployment(server, &dir, test_path(&dir, "model"), 3, 1, 1, 5, true);
    json_t *gallery = json_object_get(deployment, "gallery");
    test_server_blob(server, test_path(&dir, "detector.onnx"), digest);
    json_object_set_new(deployment, "stages", json_loads(stages, 0, NULL));
    json_object_set_new(deployment, "detector",
                        json_pack("{s:s,s:i,s:s,s:s,s:n}", "name", "squares", "version", 2, "id",
                                  digest, "blob", digest, "signature"));
    char *manifest = json_dumps(it.photos, 0);
    test_write_file(test_path(&dir, "photos.json"), manifest, strlen(manifest));
    free(manifest);
    test_server_blob(server, test_path(&dir, "photos.json"), digest);
    json_object_set_new(gallery, "blob", json_string(digest));
    json_object_set_new(gallery, "path", json_string(test_path(&dir, "people")));
    return deployment;
}

/* The files of embeddings in the replica's cache: how many, and one's name. */
static size_t find_embeddings(char out[256])
{
    glob_t found;
    int status = glob(test_path(&dir, "*/cache/embeddings*"), 0, NULL, &found);
    size_t n = status == 0 ? found.gl_pathc : 0;
    if (n > 0) {
        (void)snprintf(out, 256, "%s", found.gl_pathv[0]);
    }
    if (status == 0) {
        globfree(&found);
    }
    return n;
}

static bool are_embeddings_other(void *context)
{
    char now[256];
    return find_embeddings(now) > 1 || strcmp(now, context) != 0;
}

START_TEST(a_replica_fetches_its_detector_and_answers_with_each_face)
{
    const struct standing people[2] = {{3, 2, 2}, {5, 50, 34}};
    char bytes[SCENE_BYTES];
    json_t *answer;
    struct test_server *server = test_server_start(&dir, 0);
    struct replica *replica =
        test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
    test_server_deploy(server, deployment_of(server, "[" DETECT "\"decide\"]"));
    ck_assert(test_wait(is_served, NULL));
    size_t len = draw(people, 2, 300, bytes);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(test_post_frame(NULL, url, "door", 7, bytes, len, NULL, &answer), 200);
        json_t *decisions = json_object_get(answer, "decisions");
        ck_assert_uint_eq(json_array_size(decisions), 2);
        ck_assert_uint_eq(count_of(decisions, "p03") + count_of(decisions, "p05"), 2);
        json_decref(answer);
    }
    /* Where people are followed, a frame alone decides nothing, and says so at once. */
    char embeddings[256];
    ck_assert_uint_eq(find_embeddings(embeddings), 1);
    test_server_deploy(server, deployment_of(server, TRACK));
    int64_t frame = 100;
    do {
        ck_assert_int_eq(test_post_frame(NULL, url, "door", frame++, bytes, len, NULL, &answer),
                         200);
        len = json_array_size(json_object_get(answer, "decisions")) > 0 ? len : 0;
        json_decref(answer);
    } while (len > 0 && frame < 10000);
    ck_assert_uint_eq(len, 0);
    /* Photos are what they were: nothing is embedded again, by the next process either. */
    char again[256];
    test_replica_stop(replica);
    replica = test_replica_start(&dir, test_server_port(server), "{\"kind\":\"http\"}", NULL);
    (void)snprintf(url, sizeof url, "%s", test_endpoint(&dir));
    ck_assert(test_wait(is_served, NULL));
    ck_assert_uint_eq(find_embeddings(again), 1);
    ck_assert_str_eq(again, embeddings);
    /* Another model has its own. */
    test_write_model(test_path(&dir, "model"), 2, NULL);
    test_server_deploy(server, deployment_of(server, TRACK));
    ck_assert(test_wait(are_embeddings_other, embeddings));
    test_replica_stop(replica);
    test_server_stop(server);
}

END_TEST

WEIR_TEST_MAIN_WITH("chain", set_up, tear_down,
                    each_face_of_a_frame_is_decided_and_the_frame_acknowledged_when_all_are,
                    each_passage_is_decided_once_with_the_frames_it_rests_on,
                    a_gap_in_the_frames_decides_nobody_twice,
                    passages_are_decided_though_a_stage_behind_their_own_fails,
                    who_left_a_camera_that_fell_silent_is_decided_all_the_same,
                    killed_at_any_moment_it_decides_no_passage_twice,
                    a_replica_fetches_its_detector_and_answers_with_each_face)
