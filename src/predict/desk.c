#include "predict/desk.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/log.h"
#include "predict/look.h"
#include "predict/passage.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POLL_WAIT_S     20
#define CALL_TIMEOUT_MS ((POLL_WAIT_S + 10) * 1000)
#define RETRY_FIRST_MS  1000
#define RETRY_MAX_MS    60000
#define QUIET_MS        100 /* after an answer without news, whatever the server does */
#define WHY_BYTES       400 /* the server takes no more */
#define BOXES_MAX       64  /* likewise */

/** A frame for the desk's thread. */
struct shot {
    int64_t time_ms;
    struct weir_view view; /* its planes lie in `pixels`; form NONE: there is none */
    uint8_t *pixels;
    json_t *boxes;
};

struct watched {
    char camera[FRAME_CAMERA_BYTES];
    int64_t next_ms; /* a picture is due; monotonic */
    struct shot shot;
};

struct desk {
    struct desk_config config;
    struct weir_client *client;
    char *path;
    struct weir_arena arena; /* the path lies here */
    pthread_t thread;
    bool is_started;
    atomic_size_t n_watched; /* written under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    bool is_stopping;
    struct watched watched[DESK_WATCHED_MAX];
    size_t n_shots;
    /* The thread's. */
    int64_t revision;
    json_t *answers; /* to looks, not sent yet */
};

/* ---- on the engine's thread ------------------------------------------------------------------ */

static json_t *text_or_null(const char *text)
{
    return weir_json_string(text, "?");
}

/* What people are told of an object: of one that is followed, what is decided of its passage; else what this frame says. */
static json_t *found_to_json(const struct stage_frame *at, const struct stage_object *object)
{
    const struct serving *serving = at->serving;
    const struct passage *passage = object->passage;
    const struct finding *finding =
        passage != NULL && passage->is_known ? &passage->best : &object->finding;
    bool is_decided =
        at->has_tracks ? passage != NULL && passage->is_known : object->refused == NULL;
    bool is_label = finding->is_label, is_known = is_decided && finding->name != NULL;
    if (is_known && passage == NULL) {
        is_known = finding->score >= finding->threshold && !finding->is_rejected;
    }
    const char *verdict = is_known ? verdict_text(decide_person(finding->name, &serving->lists))
                                   : verdict_text(VERDICT_UNKNOWN);
    const struct weir_box *box = &object->detection.box;
    return json_pack("{s:f,s:f,s:f,s:f,s:o,s:o,s:o,s:b,s:o}", "x", (double)box->x, "y",
                     (double)box->y, "w", (double)box->w, "h", (double)box->h, "name",
                     text_or_null(is_known ? finding->name : NULL), "verdict",
                     text_or_null(is_decided && !is_label ? verdict : NULL), "score",
                     weir_json_real(finding->score), "barred",
                     is_known && !is_label && lists_bar(&serving->lists, finding->name), "passage",
                     text_or_null(passage != NULL ? passage->id : NULL));
}

/* What a detector found; of a whole picture the picture. */
static json_t *boxes_of(const struct stage_frame *at)
{
    json_t *boxes = json_array();
    for (size_t i = 0; i < at->n_objects && i < BOXES_MAX; i++) {
        struct stage_object object = at->objects[i];
        if (!object.has_box) {
            object.detection.box =
                (struct weir_box){0, 0, (float)at->view.width, (float)at->view.height};
        }
        if (object.detection.box.w > 0 && object.detection.box.h > 0) {
            json_array_append_new(boxes, found_to_json(at, &object));
        }
    }
    return boxes;
}

/* Lines and bytes of a plane. */
static void plane_size(const struct weir_view *view, int plane, size_t *out_lines,
                       size_t *out_bytes)
{
    bool is_half = plane > 0;
    *out_lines = (size_t)(is_half ? (view->height + 1) / 2 : view->height);
    *out_bytes = (size_t)(is_half ? (view->width + 1) / 2 : view->width) *
                 (view->form == WEIR_VIEW_RGB ? 3 : 1);
}

/* A copy of a view; form NONE if there is no memory. */
static struct weir_view copy_view(const struct weir_view *view, uint8_t **out_pixels)
{
    struct weir_view copy = *view;
    int n_planes = view->form == WEIR_VIEW_I420 ? 3 : 1;
    size_t lines, bytes, n_all = 0;
    for (int i = 0; i < n_planes; i++) {
        plane_size(view, i, &lines, &bytes);
        n_all += lines * bytes;
    }
    uint8_t *to = *out_pixels = malloc(n_all);
    for (int i = 0; to != NULL && i < n_planes; i++) {
        plane_size(view, i, &lines, &bytes);
        copy.planes[i] = to;
        copy.strides[i] = (int)bytes;
        for (size_t line = 0; line < lines; line++, to += bytes) {
            memcpy(to, view->planes[i] + line * (size_t)view->strides[i], bytes);
        }
    }
    copy.form = to != NULL ? copy.form : WEIR_VIEW_NONE;
    return copy;
}

static void shot_fini(struct shot *shot)
{
    free(shot->pixels);
    json_decref(shot->boxes);
    *shot = (struct shot){0};
}

/* Lock held. NULL: nobody watches it. */
static struct watched *find_watched(struct desk *desk, const char *camera)
{
    size_t n = atomic_load(&desk->n_watched);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(desk->watched[i].camera, camera) == 0) {
            return &desk->watched[i];
        }
    }
    return NULL;
}

/* Many cameras have fewer pictures each. */
static int64_t interval_ms(const struct desk *desk)
{
    int64_t n = (int64_t)atomic_load(&desk->n_watched);
    return WEIR_MAX((int64_t)1000 / DESK_A_SECOND, n * 1000 / DESK_ALL_A_SECOND);
}

static void take_shot(struct desk *desk, struct watched *watched, const struct stage_frame *at,
                      int64_t now_ms)
{
    struct shot shot = {.time_ms = at->frame->received_ms};
    shot.view = copy_view(&at->view, &shot.pixels);
    if (shot.view.form == WEIR_VIEW_NONE) {
        return;
    }
    shot.boxes = boxes_of(at);
    desk->n_shots += watched->shot.view.form == WEIR_VIEW_NONE;
    shot_fini(&watched->shot);
    watched->shot = shot;
    watched->next_ms = now_ms + interval_ms(desk);
    pthread_cond_signal(&desk->changed);
}

void desk_show(struct desk *desk, const struct stage_frame *at)
{
    if (desk == NULL || atomic_load(&desk->n_watched) == 0 || at->view.form == WEIR_VIEW_NONE) {
        return;
    }
    int64_t now_ms = weir_mono_ms();
    pthread_mutex_lock(&desk->lock);
    struct watched *watched = find_watched(desk, at->frame->camera);
    if (watched != NULL && now_ms >= watched->next_ms && desk->n_shots < DESK_SHOTS_MAX) {
        take_shot(desk, watched, at, now_ms);
    }
    pthread_mutex_unlock(&desk->lock);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* A JPEG that is small enough: first it is made coarser, then smaller. */
static weir_status encode(const struct weir_view *view, struct weir_buf *out,
                          struct weir_error *err)
{
    static const struct {
        int side, quality;
    } tries[] = {
        {DESK_SIDE_MAX, 75}, {DESK_SIDE_MAX, 50}, {DESK_SIDE_MAX / 2, 60}, {DESK_SIDE_MAX / 4, 50}};

    for (size_t i = 0; i < WEIR_ARRAY_LEN(tries); i++) {
        WEIR_AUTO(weir_image_fini) struct weir_image image = {0};
        WEIR_TRY(weir_view_to_image(view, tries[i].side, &image, err));
        weir_buf_reset(out);
        WEIR_TRY(weir_image_encode(&image, WEIR_IMAGE_FORMAT_JPEG, tries[i].quality, out, err));
        if (out->len <= DESK_JPEG_BYTES) {
            return WEIR_OK;
        }
    }
    return weir_error_set(err, WEIR_ERR_LIMIT, "its JPEG stays over %zu bytes", DESK_JPEG_BYTES);
}

/* NULL: it has no JPEG. */
static json_t *shot_to_json(const char *camera, const struct shot *shot)
{
    char time[WEIR_TIME_TEXT_BYTES];
    struct weir_buf jpeg;
    struct weir_error err;
    json_t *json = NULL;
    weir_buf_init(&jpeg, 4 << 20);
    if (encode(&shot->view, &jpeg, &err) == WEIR_OK) {
        char *text = weir_xalloc(WEIR_BASE64_TEXT_BYTES(jpeg.len));
        weir_time_format(shot->time_ms, time);
        json = json_pack("{s:s,s:s,s:i,s:i,s:O,s:s}", "camera", camera, "time_ms", time, "width",
                         shot->view.width, "height", shot->view.height, "boxes", shot->boxes,
                         "picture", weir_base64_encode(jpeg.data, jpeg.len, text));
        free(text);
    } else {
        weir_log(WEIR_LOG_DEBUG, "desk_picture_left_out", WEIR_KV_STR("camera", camera),
                 WEIR_KV_STR("reason", err.message));
    }
    weir_buf_fini(&jpeg);
    return json;
}

/* Take what waits from the engine; the rest is done without the lock. */
static size_t take_shots(struct desk *desk, struct watched out[DESK_SHOTS_MAX])
{
    size_t n = 0, n_watched = atomic_load(&desk->n_watched);
    for (size_t i = 0; i < n_watched && n < DESK_SHOTS_MAX; i++) {
        if (desk->watched[i].shot.view.form != WEIR_VIEW_NONE) {
            out[n++] = desk->watched[i];
            desk->watched[i].shot = (struct shot){0};
        }
    }
    desk->n_shots -= n;
    return n;
}

/* Wait for pictures, until the next ones are overdue. */
static json_t *collect(struct desk *desk)
{
    struct watched taken[DESK_SHOTS_MAX];
    json_t *live = json_array();
    struct timespec deadline = weir_deadline_after(1000 / DESK_A_SECOND);
    pthread_mutex_lock(&desk->lock);
    while (!desk->is_stopping && desk->n_shots == 0 && json_array_size(desk->answers) == 0 &&
           weir_cond_wait_until(&desk->changed, &desk->lock, &deadline) != ETIMEDOUT) {
    }
    size_t n = take_shots(desk, taken);
    pthread_mutex_unlock(&desk->lock);
    for (size_t i = 0; i < n; i++) {
        json_t *json = shot_to_json(taken[i].camera, &taken[i].shot);
        if (json != NULL) {
            json_array_append_new(live, json);
        }
        shot_fini(&taken[i].shot);
    }
    return live;
}

/* ---- what is asked --------------------------------------------------------------------------- */

/* Lock held. */
static void forget_shots(struct desk *desk, struct watched *watched, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        desk->n_shots -= watched[i].shot.view.form != WEIR_VIEW_NONE;
        shot_fini(&watched[i].shot);
    }
}

/* These cameras are watched, and no others; what is known of those that stay is kept. */
static void set_watched(struct desk *desk, const json_t *cameras)
{
    size_t i, n = 0;
    json_t *one;
    struct watched *now = weir_xalloc(sizeof desk->watched);
    memset(now, 0, sizeof desk->watched);
    pthread_mutex_lock(&desk->lock);
    json_array_foreach(cameras, i, one)
    {
        const char *camera = json_string_value(one);
        if (camera == NULL || n == DESK_WATCHED_MAX || !frame_camera_is_valid(camera)) {
            continue;
        }
        struct watched *before = find_watched(desk, camera);
        if (before != NULL) {
            now[n++] = *before;
            before->shot = (struct shot){0};
        } else {
            (void)snprintf(now[n++].camera, sizeof now->camera, "%s", camera);
        }
    }
    forget_shots(desk, desk->watched, atomic_load(&desk->n_watched));
    memcpy(desk->watched, now, n * sizeof *now);
    atomic_store(&desk->n_watched, n);
    pthread_mutex_unlock(&desk->lock);
    free(now);
}

static void look(struct desk *desk, const json_t *question)
{
    struct weir_error err;
    json_t *answer;
    const char *id = json_string_value(json_object_get(question, "id"));
    const char *person = json_string_value(json_object_get(question, "person"));
    if (id == NULL) {
        return;
    }
    weir_status status = look_at(desk->config.intake, desk->config.slot,
                                 json_object_get(question, "pictures"), person, &answer, &err);
    if (status != WEIR_OK) {
        err.message[WHY_BYTES - 1] = '\0';
        answer = json_pack("{s:s,s:o,s:b}", "id", id, "error",
                           weir_json_string(err.message, "the stages failed"), "is_passing",
                           status != WEIR_ERR_INVALID);
    } else {
        answer = json_pack("{s:s,s:o}", "id", id, "answer", answer);
    }
    json_array_append_new(desk->answers, answer);
}

static void apply(struct desk *desk, const json_t *reply)
{
    size_t i;
    json_t *question;
    desk->revision = json_integer_value(json_object_get(reply, "revision"));
    set_watched(desk, json_object_get(reply, "watched"));
    json_array_foreach(json_object_get(reply, "looks"), i, question)
    {
        look(desk, question);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void pause_for(struct desk *desk, int64_t wait_ms)
{
    struct timespec deadline = weir_deadline_after(wait_ms);
    pthread_mutex_lock(&desk->lock);
    while (!desk->is_stopping &&
           weir_cond_wait_until(&desk->changed, &desk->lock, &deadline) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&desk->lock);
}

static bool is_stopping(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    bool is_it = desk->is_stopping;
    pthread_mutex_unlock(&desk->lock);
    return is_it;
}

/* Nobody watches: wait for somebody. */
static weir_status ask(struct desk *desk, struct weir_error *err)
{
    json_t *reply;
    int64_t before = desk->revision;
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const char *path = weir_arena_printf(&arena, "%s?after=%" PRId64 "&wait_s=%d", desk->path,
                                         desk->revision, POLL_WAIT_S);
    WEIR_TRY(weir_client_call(desk->client, "GET", path, NULL, &reply, err));
    apply(desk, reply);
    bool is_news = desk->revision != before || json_array_size(desk->answers) > 0;
    json_decref(reply);
    if (!is_news) {
        pause_for(desk, QUIET_MS);
    }
    return WEIR_OK;
}

/* Somebody watches, or waits for an answer: what is sent is answered with what is asked now. */
static weir_status say(struct desk *desk, struct weir_error *err)
{
    json_t *reply, *live = collect(desk);
    json_t *body = json_pack("{s:o,s:o}", "live", live, "looks", desk->answers);
    desk->answers = json_array(); /* an answer that does not arrive is asked for again */
    weir_status status = weir_client_call(desk->client, "POST", desk->path, body, &reply, err);
    json_decref(body);
    WEIR_TRY(status);
    apply(desk, reply);
    json_decref(reply);
    return WEIR_OK;
}

/* The server is away, or refuses: when it is back, it says again what is watched. */
static void recover(struct desk *desk, weir_status status, const struct weir_error *err,
                    struct weir_backoff *backoff)
{
    if (is_stopping(desk)) {
        return;
    }
    set_watched(desk, NULL);
    desk->revision = 0;
    weir_log(weir_client_can_retry(status) ? WEIR_LOG_DEBUG : WEIR_LOG_WARN, "desk_failed",
             WEIR_KV_STR("reason", err->message));
    pause_for(desk, weir_backoff_next_ms(backoff));
}

static void *desk_main(void *context)
{
    struct desk *desk = context;
    struct weir_backoff backoff = {.base_ms = RETRY_FIRST_MS, .max_ms = RETRY_MAX_MS};
    while (!is_stopping(desk)) {
        struct weir_error err;
        bool has_news = atomic_load(&desk->n_watched) > 0 || json_array_size(desk->answers) > 0;
        weir_status status = has_news ? say(desk, &err) : ask(desk, &err);
        if (status != WEIR_OK) {
            recover(desk, status, &err, &backoff);
        } else {
            weir_backoff_reset(&backoff);
        }
    }
    return NULL;
}

static weir_status open_parts(struct desk *desk, struct weir_error *err)
{
    const struct predict_spec *spec = desk->config.spec;
    desk->path =
        weir_client_path(&desk->arena, "/api/v1/ions/{}/pipelines/{}/replicas/{}/desk",
                         (const char *[]){spec->ion, spec->pipeline, spec->host.replica}, 3);
    WEIR_TRY(weir_host_client_open(&spec->host, CALL_TIMEOUT_MS, &desk->client, err));
    int failed = pthread_create(&desk->thread, NULL, desk_main, desk);
    desk->is_started = failed == 0;
    return failed != 0 ? weir_error_set_errno(err, failed, "starting a thread") : WEIR_OK;
}

weir_status desk_start(const struct desk_config *config, struct desk **out, struct weir_error *err)
{
    struct desk *desk = weir_xalloc(sizeof *desk);
    memset(desk, 0, sizeof *desk);
    desk->config = *config;
    desk->answers = json_array();
    weir_arena_init(&desk->arena, 0);
    atomic_init(&desk->n_watched, 0);
    pthread_mutex_init(&desk->lock, NULL);
    pthread_cond_init(&desk->changed, NULL);
    weir_status status = open_parts(desk, err);
    if (status != WEIR_OK) {
        desk_stop(desk);
        return status;
    }
    *out = desk;
    return WEIR_OK;
}

void desk_stop(struct desk *desk)
{
    if (desk == NULL) {
        return;
    }
    pthread_mutex_lock(&desk->lock);
    desk->is_stopping = true;
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->lock);
    if (desk->is_started) {
        weir_client_cancel(desk->client);
        pthread_join(desk->thread, NULL);
    }
    set_watched(desk, NULL);
    if (desk->client != NULL) {
        weir_client_close(desk->client);
    }
    json_decref(desk->answers);
    pthread_cond_destroy(&desk->changed);
    pthread_mutex_destroy(&desk->lock);
    weir_arena_fini(&desk->arena);
    free(desk);
}
