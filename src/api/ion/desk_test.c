/* The desk against a plain model of it, by random deeds; its maximums; and what replicas must not say. */
#include "api/ion/desk.h"
#include "api/ion/desk_said.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/rng.h"
#include "base/test_main.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_PLACES  4
#define N_CAMERAS 6
#define N_LOOKS   64
#define N_STEPS   4000
#define N_SEEDS   WEIR_TEST_TIMES(20, 4)

static const struct desk_place places[N_PLACES] = {{.ion = "site", .pipeline = "see"},
                                                   {.ion = "site", .pipeline = "count"},
                                                   {.ion = "yard", .pipeline = "see"},
                                                   {.ion = "sites", .pipeline = "ee"}};

struct model_watch {
    int64_t until_ms, seq, shown_ms;
    int n; /* what was shown */
};

struct model_look {
    char id[WEIR_UUID_BYTES];
    int i_place, n_pictures;
    int64_t handed_ms; /* 0: nobody has it */
    bool is_open, is_answered, has_failed;
};

struct model {
    struct desk *desk;
    struct weir_rng rng;
    int64_t now_ms, last_seq;
    int n_shown;
    struct model_watch watches[N_PLACES][N_CAMERAS];
    struct model_look looks[N_LOOKS];
    int n_looks, n_open;
};

static int below(struct model *model, int n)
{
    return (int)weir_rng_below(&model->rng, (uint64_t)n);
}

static const char *camera_name(int i)
{
    static char names[N_CAMERAS][8];
    (void)snprintf(names[i], sizeof names[i], "cam-%d", i);
    return names[i];
}

static json_t *parse(struct weir_buf *text)
{
    json_t *json = json_loads(text->data, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %s", text->data);
    weir_buf_fini(text);
    return json;
}

static void watch(struct model *model, int place, int camera)
{
    bool is_new;
    struct weir_error err;
    struct model_watch *watch = &model->watches[place][camera];
    int64_t until_ms = model->now_ms + 1 + below(model, 20000);
    ck_assert_int_eq(desk_watch(model->desk, places[place], camera_name(camera), model->now_ms,
                                until_ms, &is_new, &err),
                     WEIR_OK);
    ck_assert_int_eq(is_new, watch->until_ms <= model->now_ms);
    watch->until_ms = until_ms > watch->until_ms ? until_ms : watch->until_ms;
}

static bool is_fresh(const struct model *model, const struct model_watch *watch)
{
    return watch->seq != 0 && model->now_ms - watch->shown_ms < DESK_PICTURE_KEPT_MS;
}

static void show(struct model *model, int place, int camera)
{
    struct model_watch *watch = &model->watches[place][camera];
    json_t *live = json_pack("{s:[{s:s,s:i}],s:s}", "boxes", "name", "ada", "n", ++model->n_shown,
                             "picture", "p");
    bool is_kept = desk_show(model->desk, places[place], camera_name(camera), live, model->now_ms);
    int64_t seq = json_integer_value(json_object_get(live, "seq"));
    json_decref(live);
    ck_assert_int_gt(seq, model->last_seq); /* no two have one number */
    model->last_seq = seq;
    ck_assert_int_eq(is_kept, watch->until_ms > model->now_ms || is_fresh(model, watch));
    if (is_kept) {
        watch->seq = seq;
        watch->shown_ms = model->now_ms;
        watch->n = model->n_shown;
    }
}

static void look_live(struct model *model, int place, int camera)
{
    struct weir_buf text;
    bool sees_people = below(model, 2) == 0;
    const struct model_watch *watch = &model->watches[place][camera];
    weir_buf_init(&text, 1 << 20);
    int64_t seq = desk_live(model->desk, places[place], camera_name(camera), sees_people,
                            model->now_ms, &text);
    ck_assert_int_eq(seq, is_fresh(model, watch) ? watch->seq : 0);
    if (seq == 0) {
        ck_assert_uint_eq(text.len, 0);
        weir_buf_fini(&text);
        return;
    }
    json_t *json = parse(&text), *box = json_array_get(json_object_get(json, "boxes"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "seq")), seq);
    ck_assert_int_eq(json_integer_value(json_object_get(box, "n")), watch->n);
    ck_assert_int_eq(json_is_string(json_object_get(box, "name")), sees_people);
    ck_assert_int_eq(json_is_string(json_object_get(json, "picture")), sees_people);
    json_decref(json);
}

static bool is_due(const struct model *model, const struct model_look *look, int place)
{
    return look->is_open && !look->is_answered && look->i_place == place &&
           (look->handed_ms == 0 || model->now_ms - look->handed_ms >= DESK_AGAIN_MS);
}

static void expect_watched(struct model *model, int place, const json_t *list, int64_t until_ms)
{
    size_t n = 0;
    int64_t first_ms = 0;
    for (int i = 0; i < N_CAMERAS; i++) {
        const struct model_watch *watch = &model->watches[place][i];
        if (watch->until_ms > model->now_ms) {
            n++;
            first_ms = first_ms == 0 || watch->until_ms < first_ms ? watch->until_ms : first_ms;
        }
    }
    ck_assert_uint_eq(json_array_size(list), n);
    ck_assert_int_eq(until_ms, first_ms);
    for (size_t i = 0; i < n; i++) {
        int camera = json_string_value(json_array_get(list, i))[strlen("cam-")] - '0';
        ck_assert_int_gt(model->watches[place][camera].until_ms, model->now_ms);
    }
}

static void poll_place(struct model *model, int place)
{
    struct weir_buf text;
    struct desk_news news, again;
    weir_buf_init(&text, 1 << 20);
    ck_assert(desk_poll(model->desk, places[place], 0, true, model->now_ms, &text, &news));
    json_t *json = parse(&text), *looks = json_object_get(json, "looks");
    int64_t revision = json_integer_value(json_object_get(json, "revision"));
    expect_watched(model, place, json_object_get(json, "watched"), news.until_ms);
    bool was_due = false, is_left = false;
    const char *id = json_string_value(json_object_get(json_array_get(looks, 0), "id"));
    for (int i = 0; i < model->n_looks; i++) {
        struct model_look *look = &model->looks[i];
        bool is_it = id != NULL && strcmp(look->id, id) == 0;
        was_due = was_due || is_due(model, look, place);
        ck_assert(!is_it || is_due(model, look, place));
        look->handed_ms = is_it ? model->now_ms : look->handed_ms;
        is_left = is_left || is_due(model, look, place);
    }
    ck_assert_int_eq(json_array_size(looks), was_due ? 1 : 0);
    ck_assert_int_eq(news.has_look, was_due);
    json_decref(json);
    if (!is_left) { /* who knows the revision hears nothing more */
        weir_buf_init(&text, 1 << 20);
        ck_assert(
            !desk_poll(model->desk, places[place], revision, false, model->now_ms, &text, &again));
        ck_assert_uint_eq(text.len, 0);
        weir_buf_fini(&text);
    }
}

static void begin_look(struct model *model, int place)
{
    struct weir_error err;
    int n = 1 + below(model, 10);
    if (model->n_looks == N_LOOKS) {
        return;
    }
    struct model_look *look = &model->looks[model->n_looks];
    json_t *ask = json_pack("{s:[]}", "pictures");
    for (int i = 0; i < n; i++) {
        json_array_append_new(json_object_get(ask, "pictures"), json_string("photo"));
    }
    weir_status status = desk_look_begin(model->desk, places[place], ask, look->id, &err);
    json_decref(ask);
    int n_its = 0;
    for (int i = 0; i < model->n_looks; i++) {
        const struct model_look *one = &model->looks[i];
        n_its += one->is_open && strcmp(places[one->i_place].ion, places[place].ion) == 0;
    }
    ck_assert_int_eq(status,
                     n_its < DESK_LOOKS_MAX / DESK_ION_SHARE ? WEIR_OK : WEIR_ERR_UNAVAILABLE);
    if (status == WEIR_OK) {
        look->i_place = place;
        look->n_pictures = n;
        look->is_open = true;
        model->n_looks++;
        model->n_open++;
    }
}

static void answer_look(struct model *model, int place)
{
    if (model->n_looks == 0) {
        return;
    }
    int i = below(model, model->n_looks);
    struct model_look *look = &model->looks[i];
    bool fails = below(model, 3) == 0;
    bool is_right = look->is_open && !look->is_answered && look->i_place == place;
    struct weir_error why = {.status = WEIR_ERR_INVALID, .message = "no photo"};
    json_t *answer = json_pack("{s:i}", "of", i);
    ck_assert_uint_eq(desk_look_pictures(model->desk, places[place], look->id),
                      is_right ? (size_t)look->n_pictures : 0);
    ck_assert_int_eq(desk_look_answer(model->desk, places[place], look->id, fails ? NULL : answer,
                                      fails ? &why : NULL),
                     is_right);
    json_decref(answer);
    if (is_right) {
        look->is_answered = true;
        look->has_failed = fails;
    }
}

static void end_look(struct model *model)
{
    struct weir_buf text;
    struct weir_error err;
    if (model->n_looks == 0) {
        return;
    }
    int i = below(model, model->n_looks);
    struct model_look *look = &model->looks[i];
    ck_assert_int_eq(desk_look_is_answered(model->desk, look->id),
                     look->is_open && look->is_answered);
    weir_status expected = !look->is_open       ? WEIR_ERR_NOT_FOUND
                           : !look->is_answered ? WEIR_ERR_UNAVAILABLE
                           : look->has_failed   ? WEIR_ERR_INVALID
                                                : WEIR_OK;
    if (below(model, 4) == 0) {
        desk_look_drop(model->desk, look->id);
    } else {
        weir_buf_init(&text, 1 << 20);
        ck_assert_int_eq(desk_look_end(model->desk, look->id, &text, &err), expected);
        if (expected == WEIR_OK) {
            json_t *json = parse(&text);
            ck_assert_int_eq(json_integer_value(json_object_get(json, "of")), i);
            json_decref(json);
        } else {
            ck_assert_uint_eq(text.len, 0);
            weir_buf_fini(&text);
        }
    }
    model->n_open -= look->is_open;
    look->is_open = false;
}

START_TEST(whatever_happens_each_sees_what_a_plain_model_says)
{
    struct model model = {.desk = desk_create(), .now_ms = 1000};
    weir_rng_init(&model.rng, (uint64_t)_i + 1, 0);
    for (int step = 0; step < N_STEPS; step++) {
        int place = below(&model, N_PLACES), camera = below(&model, N_CAMERAS);
        switch (below(&model, 8)) {
        case 0:
            watch(&model, place, camera);
            break;
        case 1:
            show(&model, place, camera);
            break;
        case 2:
        case 3:
            look_live(&model, place, camera);
            break;
        case 4:
            poll_place(&model, place);
            break;
        case 5:
            below(&model, 8) == 0 ? begin_look(&model, place) : answer_look(&model, place);
            break;
        case 6:
            below(&model, 8) == 0 ? end_look(&model) : (void)0;
            break;
        default:
            model.now_ms += below(&model, 3000);
        }
    }
    desk_destroy(model.desk);
}

END_TEST

START_TEST(more_cameras_than_there_may_be_are_refused_until_one_is_let_go)
{
    bool is_new;
    struct weir_error err;
    struct desk *desk = desk_create();
    char name[32];
    for (int i = 0; i <= DESK_WATCHES_MAX; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        ck_assert_int_eq(
            desk_watch(desk, places[0], name, 1000, i == 7 ? 2000 : 9000, &is_new, &err),
            i < DESK_WATCHES_MAX ? WEIR_OK : WEIR_ERR_UNAVAILABLE);
    }
    json_t *live = json_pack("{s:[],s:s}", "boxes", "picture", "p");
    ck_assert(desk_show(desk, places[0], "c7", live, 1500)); /* kept still, but nobody looks */
    json_decref(live);
    ck_assert_int_eq(desk_watch(desk, places[0], name, 2000, 9000, &is_new, &err), WEIR_OK);
    ck_assert(is_new);
    ck_assert_int_eq(desk_live_seq(desk, places[0], "c7", 2000), 0);
    desk_destroy(desk);
}

END_TEST

START_TEST(an_ion_that_watches_everything_keeps_no_other_from_it)
{
    bool is_new;
    struct weir_error err;
    struct desk *desk = desk_create();
    char name[32];
    const struct desk_place many = {.ion = "many", .pipeline = "p"},
                            few = {.ion = "few", .pipeline = "p"};
    for (int i = 0; i < DESK_WATCHES_MAX; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        ck_assert_int_eq(desk_watch(desk, many, name, 1000, 9000, &is_new, &err), WEIR_OK);
    }
    ck_assert_int_eq(desk_watch(desk, many, "more", 1000, 9000, &is_new, &err),
                     WEIR_ERR_UNAVAILABLE);
    for (int i = 0; i < DESK_WATCHES_MAX / 2; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        ck_assert_int_eq(desk_watch(desk, few, name, 1000, 9000, &is_new, &err), WEIR_OK);
    }
    ck_assert_int_eq(desk_watch(desk, few, "more", 1000, 9000, &is_new, &err),
                     WEIR_ERR_UNAVAILABLE);
    desk_destroy(desk);
}

END_TEST

START_TEST(an_ion_of_another_project_with_the_name_shows_nothing_of_the_one_before)
{
    bool is_new;
    struct weir_error err;
    struct desk *desk = desk_create();
    const struct desk_place replica = {.ion = "site", .pipeline = "look"};
    const struct desk_place first = {.ion = "site", .pipeline = "look", .project = "a"},
                            later = {.ion = "site", .pipeline = "look", .project = "b"};
    json_t *live = json_pack("{s:[],s:s}", "boxes", "picture", "p");
    ck_assert_int_eq(desk_watch(desk, first, "c", 1000, 9000, &is_new, &err), WEIR_OK);
    ck_assert(desk_show(desk, replica, "c", live, 1500));
    ck_assert_int_eq(desk_watch(desk, first, "c", 1600, 9000, &is_new, &err), WEIR_OK);
    ck_assert(!is_new);
    ck_assert_int_ne(desk_live_seq(desk, first, "c", 1600), 0);
    ck_assert_int_eq(desk_watch(desk, later, "c", 1700, 9000, &is_new, &err), WEIR_OK);
    ck_assert(is_new);
    ck_assert_int_eq(desk_live_seq(desk, later, "c", 1700), 0);
    json_decref(live);
    desk_destroy(desk);
}

END_TEST

START_TEST(photos_of_all_looks_together_are_bounded)
{
    struct weir_error err;
    struct desk *desk = desk_create();
    char ids[8][WEIR_UUID_BYTES];
    int n = 0;
    char *photo = calloc(1, 15 << 20);
    ck_assert_ptr_nonnull(photo);
    memset(photo, 'A', (15 << 20) - 1);
    static const char *const ions[] = {"a", "a", "b", "c", "d", "e"};
    static const bool fits[] = {true, false, true, true, true, false};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(ions); i++) {
        const struct desk_place place = {.ion = ions[i], .pipeline = "p"};
        json_t *ask = json_pack("{s:[s]}", "pictures", photo);
        weir_status status = desk_look_begin(desk, place, ask, ids[n], &err);
        json_decref(ask);
        ck_assert_int_eq(status, fits[i] ? WEIR_OK : WEIR_ERR_UNAVAILABLE);
        n += status == WEIR_OK;
    }
    desk_look_drop(desk, ids[0]);
    const struct desk_place place = {.ion = "e", .pipeline = "p"};
    json_t *ask = json_pack("{s:[s]}", "pictures", photo);
    ck_assert_int_eq(desk_look_begin(desk, place, ask, ids[0], &err), WEIR_OK);
    json_decref(ask);
    free(photo);
    desk_destroy(desk);
}

END_TEST

static bool hears_of_look(struct desk *desk, const char *replica, int64_t now_ms)
{
    const struct desk_place place = {.ion = "site", .pipeline = "see", .replica = replica};
    struct desk_news news;
    struct weir_buf text;
    weir_buf_init(&text, 1 << 20);
    (void)desk_poll(desk, place, 0, true, now_ms, &text, &news);
    weir_buf_fini(&text);
    return news.has_look;
}

/* The ION was deleted, and another has its name: its replicas are of another job. */
START_TEST(photos_go_to_replicas_of_the_job_that_ran_when_they_were_sent)
{
    struct weir_error err = {0};
    char id[WEIR_UUID_BYTES];
    struct desk *desk = desk_create();
    const struct desk_place asked = {
        .ion = "site", .pipeline = "see", .project = "a", .job = "job1"};
    const struct desk_place other = {.ion = "site", .pipeline = "see", .replica = "job2-0"};
    const struct desk_place its = {.ion = "site", .pipeline = "see", .replica = "job1-1"};
    json_t *ask = json_pack("{s:[s]}", "pictures", "photo");
    ck_assert_int_eq(desk_look_begin(desk, asked, ask, id, &err), WEIR_OK);
    ck_assert(!hears_of_look(desk, "job2-0", 1));
    ck_assert(!hears_of_look(desk, "job10-0", 1));
    ck_assert(hears_of_look(desk, "job1-0", 1));
    ck_assert(hears_of_look(desk, "job1-1", 1 + DESK_AGAIN_MS));
    ck_assert_uint_eq(desk_look_pictures(desk, other, id), 0);
    ck_assert(!desk_look_answer(desk, other, id, ask, NULL));
    ck_assert_uint_eq(desk_look_pictures(desk, its, id), 1);
    json_decref(ask);
    desk_destroy(desk);
}

END_TEST

START_TEST(a_viewer_is_told_of_once_in_ten_minutes)
{
    struct desk *desk = desk_create();
    ck_assert(desk_is_first_view(desk, "ann", places[0], "c", 5));
    ck_assert(!desk_is_first_view(desk, "ann", places[0], "c", 4 + DESK_SEEN_MS));
    ck_assert(desk_is_first_view(desk, "ann", places[1], "c", 6));
    ck_assert(desk_is_first_view(desk, "bea", places[0], "c", 6));
    ck_assert(desk_is_first_view(desk, "ann", places[0], "d", 6));
    ck_assert(desk_is_first_view(desk, "ann", places[0], "c", 5 + DESK_SEEN_MS));
    ck_assert(!desk_is_first_view(desk, "ann", places[0], "c", 6 + DESK_SEEN_MS));
    desk_destroy(desk);
}

END_TEST

/* ---- what replicas say ----------------------------------------------------------------------- */

static json_t *good_live(void)
{
    static const unsigned char jpeg[] = {0xFF, 0xD8, 0xFF, 0xE0, 0};
    char text[WEIR_BASE64_TEXT_BYTES(sizeof jpeg)];
    return json_pack("{s:s,s:i,s:i,s:[{s:f,s:f,s:f,s:f,s:s,s:s,s:f,s:b,s:s}],s:s,s:s}", "time_ms",
                     "2026-01-01T00:00:00.000Z", "width", 1920, "height", 1080, "boxes", "x", 1.5,
                     "y", -2.0, "w", 100.0, "h", 120.0, "name", "Ada", "verdict", "grant", "score",
                     0.7, "barred", 0, "passage", "1-2", "picture",
                     weir_base64_encode(jpeg, sizeof jpeg, text), "secret", "not taken");
}

static json_t *good_look(void)
{
    return json_pack(
        "{s:[{s:i,s:{s:f,s:f,s:f,s:f},s:{s:f,s:f},s:b,s:n,s:[{s:s,s:f}]}],s:[],s:f,s:f}",
        "pictures", "faces", 1, "box", "x", 1.0, "y", 2.0, "w", 3.0, "h", 4.0, "quality", "width",
        80.0, "sharpness", 0.5, "usable", 1, "why", "nearest", "person", "Ada", "score", 0.4,
        "nearest", "threshold", 0.5, "confused_from", 0.4);
}

static weir_status say_live(const json_t *given)
{
    struct weir_error err = {0};
    json_t *out = NULL;
    weir_status status = desk_said_live(given, "$.live[0]", &out, &err);
    ck_assert_msg(status == WEIR_OK || strncmp(err.message, "$.live[0]", 9) == 0, "%s",
                  err.message);
    ck_assert_ptr_null(json_object_get(out, "secret"));
    json_decref(out);
    return status;
}

static weir_status say_look(const json_t *given, size_t n)
{
    struct weir_error err = {0};
    json_t *out = NULL;
    weir_status status = desk_said_look(given, n, "$.looks[0].answer", &out, &err);
    json_decref(out);
    return status;
}

/* Every leaf of the tree in turn becomes something else: `damage` gives it, by the leaf; NULL: it goes. */
static int try_leaves(json_t *root, json_t *at, json_t *(*damage)(const json_t *),
                      weir_status (*say)(const json_t *))
{
    const char *key;
    json_t *value;
    void *next;
    size_t i;
    int n_taken = 0;
    json_array_foreach(at, i, value)
    {
        n_taken += try_leaves(root, value, damage, say);
    }
    json_object_foreach_safe(at, next, key, value)
    {
        char name[32];
        (void)snprintf(name, sizeof name, "%s", key);
        n_taken += try_leaves(root, value, damage, say);
        json_t *kept = json_incref(value), *other = damage(value);
        other != NULL ? json_object_set_new(at, name, other) : json_object_del(at, name);
        n_taken += say(root) == WEIR_OK;
        json_object_set_new(at, name, kept);
    }
    return n_taken;
}

static json_t *as_list(const json_t *leaf)
{
    (void)leaf;
    return json_pack("[[]]");
}

static json_t *as_control(const json_t *leaf)
{
    return json_is_string(leaf) ? json_string("\x1b[2J") : json_string("x\ny");
}

static json_t *as_endless(const json_t *leaf)
{
    return json_is_number(leaf) ? json_real(1e300) : json_integer(7);
}

static weir_status say_look_of_one(const json_t *given)
{
    return say_look(given, 1);
}

START_TEST(what_no_replica_of_ours_says_is_refused)
{
    json_t *(*const damages[])(const json_t *) = {as_list, as_control, as_endless};
    json_t *live = good_live(), *look = good_look();
    ck_assert_int_eq(say_live(live), WEIR_OK);
    ck_assert_int_eq(say_look(look, 1), WEIR_OK);
    ck_assert_int_eq(say_look(look, 2), WEIR_ERR_INVALID);
    json_object_del(live, "secret"); /* it may be anything */
    for (size_t i = 0; i < WEIR_ARRAY_LEN(damages); i++) {
        ck_assert_int_eq(try_leaves(live, live, damages[i], say_live), 0);
        ck_assert_int_eq(try_leaves(look, look, damages[i], say_look_of_one), 0);
    }
    json_decref(live);
    json_decref(look);
}

END_TEST

START_TEST(pictures_that_are_none_or_too_large_are_refused)
{
    static unsigned char bytes[DESK_PICTURE_MAX_BYTES + 1] = {0xFF, 0xD8, 0xFF};
    static char text[WEIR_BASE64_TEXT_BYTES(sizeof bytes)];
    json_t *live = good_live();

    const struct {
        size_t n_bytes;
        bool is_taken;
    } sizes[] = {{2, false}, {100, true}, {DESK_PICTURE_MAX_BYTES, true}, {sizeof bytes, false}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(sizes); i++) {
        json_object_set_new(live, "picture",
                            json_string(weir_base64_encode(bytes, sizes[i].n_bytes, text)));
        ck_assert_int_eq(say_live(live) == WEIR_OK, sizes[i].is_taken);
    }
    const char *others[] = {"", "/9j/4AA", "/9j/4A==!", "iVBORw0KGgo=", "/wD/4A==", "/9gA4A=="};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        json_object_set_new(live, "picture", json_string(others[i]));
        ck_assert_int_eq(say_live(live), WEIR_ERR_INVALID);
    }
    json_decref(live);
}

END_TEST

START_TEST(lists_have_their_ends)
{
    json_t *live = good_live(), *look = good_look(), *boxes = json_object_get(live, "boxes"),
           *near = json_object_get(json_array_get(json_object_get(look, "pictures"), 0), "nearest");
    while (json_array_size(boxes) < DESK_BOXES_MAX) {
        json_array_append(boxes, json_array_get(boxes, 0));
    }
    ck_assert_int_eq(say_live(live), WEIR_OK);
    json_array_append(boxes, json_array_get(boxes, 0));
    ck_assert_int_eq(say_live(live), WEIR_ERR_INVALID);
    while (json_array_size(near) < DESK_NEAREST_MAX) {
        json_array_append(near, json_array_get(near, 0));
    }
    ck_assert_int_eq(say_look(look, 1), WEIR_OK);
    json_array_append(near, json_array_get(near, 0));
    ck_assert_int_eq(say_look(look, 1), WEIR_ERR_INVALID);
    json_decref(live);
    json_decref(look);
}

END_TEST

WEIR_TEST_LOOPS_MAIN("desk", {whatever_happens_each_sees_what_a_plain_model_says, N_SEEDS},
                     {more_cameras_than_there_may_be_are_refused_until_one_is_let_go, 0},
                     {an_ion_that_watches_everything_keeps_no_other_from_it, 0},
                     {an_ion_of_another_project_with_the_name_shows_nothing_of_the_one_before, 0},
                     {photos_of_all_looks_together_are_bounded, 0},
                     {photos_go_to_replicas_of_the_job_that_ran_when_they_were_sent, 0},
                     {a_viewer_is_told_of_once_in_ten_minutes, 0},
                     {what_no_replica_of_ours_says_is_refused, 0},
                     {pictures_that_are_none_or_too_large_are_refused, 0},
                     {lists_have_their_ends, 0})
