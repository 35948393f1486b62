#include "predict/camera_source.h"

#include "base/clock.h"
#include "base/log.h"
#include "endpoint/source/camera.h"
#include "video/camera.h"
#include "vision/condition.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define N_SLOTS     8
#define RTSP_PORT   554
#define HTTP_PORT   80
#define RATE_WEIGHT 0.1
#define FILE_MAX_US                                                                                \
    ((int64_t)366 * 86400 * 1000000) /* weir-camera's word: a stranger's file is behind it */

/** One camera of this replica. */
struct eye {
    struct source *source;
    const char *name; /**< In the source's arena. */
    struct weir_video_config config;
    struct weir_video_camera *video;
    json_t *told; /**< To weir-camera. */
    bool is_live; /**< Else its frames wait for the engine. */
    atomic_llong n_dropped;
    _Atomic uint64_t last_ns; /**< The frame before. */
    _Atomic double period_ns; /**< Smoothed; 0: not known. */
    _Atomic int state;        /**< enum weir_video_state */
    /* Under the source's lock; wall clock, 0: it is well. */
    int64_t unwell_ms;    /**< Since when its pictures are not well. */
    int64_t clock_bad_ms; /**< Since when its clock is wrong. */
};

struct source {
    struct source_config config;
    struct weir_arena arena;
    struct contact contact;
    struct eye *eyes; /**< As they are from the start on, but for `video`. */
    size_t n;
    /** Guards `video` of each, for the status reads what close ends; and since when they are unwell. */
    pthread_mutex_t lock;
};

/* ---- frames ---------------------------------------------------------------------------------- */

/** What a frame must give back. */
struct loan {
    struct weir_video_slots *slots;
    uint32_t slot;
    struct eye *eye;
};

/* The camera may have been stopped: only a frame that the intake drops is counted there, while it runs. */
static void give_back(struct frame *frame)
{
    struct loan *loan = frame->context;
    if (frame->is_dropped) {
        atomic_fetch_add(&loan->eye->n_dropped, 1);
    }
    weir_video_slots_free(loan->slots, loan->slot);
    free(loan);
}

static void note_rate(struct eye *eye, uint64_t now_ns)
{
    uint64_t last_ns = atomic_exchange(&eye->last_ns, now_ns);
    double period_ns = atomic_load(&eye->period_ns), gap_ns = (double)(now_ns - last_ns);
    if (last_ns != 0) {
        atomic_store(&eye->period_ns,
                     period_ns == 0 ? gap_ns : period_ns + RATE_WEIGHT * (gap_ns - period_ns));
    }
}

/* As if the camera had begun with the connection; however fast or slowly the file is played. */
static int64_t taken_ms_of(const struct weir_video_taken *taken)
{
    int64_t media_us = WEIR_MAX(taken->frame->media_us, (int64_t)0);
    return taken->connection + WEIR_MIN(media_us, FILE_MAX_US) / 1000;
}

static void on_frame(void *context, const struct weir_video_taken *taken)
{
    struct eye *eye = context;
    char key[FRAME_KEY_BYTES];
    const struct weir_video_frame *from = taken->frame;
    uint64_t now_ns = weir_mono_ns();
    note_rate(eye, now_ns);
    (void)snprintf(key, sizeof key, "%s/%lld.%u/%lld", eye->name, (long long)taken->connection,
                   from->epoch, (long long)from->seq);
    struct frame *frame = frame_create_keyed(eye->name, key, from->seq);
    struct loan *loan = weir_xalloc(sizeof *loan);
    *loan = (struct loan){.slots = taken->slots, .slot = taken->slot, .eye = eye};
    frame->view = taken->view;
    frame->release = give_back;
    frame->context = loan;
    frame->is_live = eye->is_live;
    frame->received_ns = from->received_ns;
    frame->taken_ms = eye->is_live ? 0 : taken_ms_of(taken);
    frame->received_ms = weir_time_ms() - (int64_t)((now_ns - from->received_ns) / 1000000);
    if (intake_put(eye->source->config.intake, frame, eye->is_live ? 0 : -1) != WEIR_OK) {
        frame->is_dropped = true;
        frame_destroy(frame);
    }
}

static void on_state(void *context, enum weir_video_state state, const char *why)
{
    struct eye *eye = context;
    char text[WEIR_ERROR_MESSAGE_BYTES];
    struct source *source = eye->source;
    atomic_store(&eye->state, (int)state);
    if (state == WEIR_VIDEO_IS_LOST || state == WEIR_VIDEO_ENDED) {
        (void)snprintf(text, sizeof text, "%s: %s", eye->name, why);
        contact_is_lost(&source->contact, text);
    }
    bool is_all = true;
    for (size_t i = 0; i < source->n; i++) {
        is_all = is_all && atomic_load(&source->eyes[i].state) == (int)WEIR_VIDEO_IS_LIVE;
    }
    if (is_all) {
        contact_is_good(&source->contact);
    }
}

/* ---- start and stop -------------------------------------------------------------------------- */

/* The options as they were written, or their defaults. */
static json_t *options_to_json(const struct weir_configured *source, struct weir_arena *arena)
{
    json_t *json = json_pack("{s:s}", "kind", source->kind->name);
    for (size_t i = 0; i < source->kind->n_options; i++) {
        const struct weir_option *option = &source->kind->options[i];
        const char *key = weir_option_key(option, arena);
        const char *at = (const char *)source->options + option->offset;
        if (option->type == WEIR_OPTION_INT) {
            json_object_set_new(json, key, json_integer(*(const int64_t *)at));
        } else if (option->type == WEIR_OPTION_F64) {
            json_object_set_new(json, key, json_real(*(const double *)at));
        } else if (option->type == WEIR_OPTION_BOOL) {
            json_object_set_new(json, key, json_boolean(*(const bool *)at));
        } else if (option->type == WEIR_OPTION_TEXT && *(char *const *)at != NULL) {
            json_object_set_new(json, key, json_string(*(char *const *)at));
        }
    }
    return json;
}

static weir_status set_reach(const struct weir_kind *kind, const struct weir_camera *camera,
                             struct weir_arena *arena, struct weir_video_reach *out,
                             struct weir_error *err)
{
    bool is_rtsp = kind == &weir_source_rtsp_kind, is_http = kind == &weir_source_mjpeg_kind;
    *out = (struct weir_video_reach){.is_device = kind == &weir_source_v4l2_kind};
    if (!is_rtsp && !is_http) {
        out->path = camera->address;
        return WEIR_OK;
    }
    struct weir_camera_host host;
    WEIR_TRY(weir_camera_host_read(camera->address, is_rtsp ? "rtsp" : "http",
                                   is_rtsp ? RTSP_PORT : HTTP_PORT, &host, err));
    out->host = weir_arena_strdup(arena, host.host);
    out->port = host.port;
    return WEIR_OK;
}

/* A file that is read as fast as it goes is not. */
static bool is_live(const struct weir_source_video *options)
{
    return options->pace == NULL || strcmp(options->pace, "fast") != 0;
}

static weir_status prepare_eye(struct source *source, const json_t *object, struct weir_error *err)
{
    const struct weir_configured *configured = &source->config.spec->source;
    const struct weir_source_video *options = configured->options;
    const struct weir_endpoint_ops *ops = configured->kind->ops;
    const struct weir_camera *camera;
    WEIR_TRY(weir_camera_read(ops->item, object, "$.source.cameras", &source->arena, &camera, err));
    if (!source_is_ours(source->config.spec, camera->name)) {
        return WEIR_OK;
    }
    struct eye *eye = &source->eyes[source->n++];
    eye->source = source;
    eye->name = camera->name;
    eye->is_live = is_live(options);
    eye->told = options_to_json(configured, &source->arena);
    json_object_set_new(eye->told, "cameras", json_pack("[o]", json_deep_copy(object)));
    eye->config = (struct weir_video_config){.name = camera->name,
                                             .source = eye->told,
                                             .n_slots = N_SLOTS,
                                             .slot_bytes = (size_t)(options->max_pixels * 3 / 2) +
                                                           2 * (size_t)WEIR_VIDEO_SIDE_MAX,
                                             .on_frame = on_frame,
                                             .on_state = on_state,
                                             .context = eye};
    return set_reach(configured->kind, camera, &source->arena, &eye->config.reach, err);
}

static weir_status start_eyes(struct source *source, struct weir_error *err)
{
    const struct weir_source_video *options = source->config.spec->source.options;
    const json_t *object;
    size_t i;
    source->eyes = WEIR_ARENA_ARRAY(&source->arena, json_array_size(options->cameras), struct eye);
    json_array_foreach(options->cameras, i, object)
    {
        WEIR_TRY(prepare_eye(source, object, err));
    }
    for (i = 0; i < source->n; i++) {
        WEIR_TRY(weir_video_start(&source->eyes[i].config, &source->eyes[i].video, err));
    }
    return WEIR_OK;
}

size_t camera_source_at_once(const struct predict_spec *spec)
{
    const struct weir_source_video *options = spec->source.options;
    const json_t *object;
    size_t i, n = 0;
    json_array_foreach(options->cameras, i, object)
    {
        const char *name = json_string_value(json_object_get(object, "name"));
        n += name != NULL && source_is_ours(spec, name);
    }
    return is_live(options) ? n : SIZE_MAX;
}

weir_status camera_source_start(const struct source_config *config, struct source **out,
                                struct weir_error *err)
{
    struct source *source = weir_xalloc(sizeof *source);
    *source = (struct source){.config = *config};
    weir_arena_init(&source->arena, 0);
    contact_init(&source->contact);
    pthread_mutex_init(&source->lock, NULL);
    weir_status status = start_eyes(source, err);
    if (status != WEIR_OK) {
        camera_source_close(source);
        camera_source_stop(source);
        return status;
    }
    weir_log(WEIR_LOG_INFO, "cameras_started", WEIR_KV_INT("cameras", (int64_t)source->n));
    *out = source;
    return WEIR_OK;
}

void camera_source_close(struct source *source)
{
    for (size_t i = 0; i < source->n; i++) {
        pthread_mutex_lock(&source->lock);
        struct weir_video_camera *video = source->eyes[i].video;
        source->eyes[i].video = NULL;
        pthread_mutex_unlock(&source->lock);
        weir_video_stop(video);
    }
}

void camera_source_stop(struct source *source)
{
    for (size_t i = 0; i < source->n; i++) {
        json_decref(source->eyes[i].told);
    }
    contact_fini(&source->contact);
    pthread_mutex_destroy(&source->lock);
    weir_arena_fini(&source->arena);
    free(source);
}

/* ---- what people see ------------------------------------------------------------------------- */

size_t camera_source_ignored(struct source *source, char *why)
{
    (void)source; /* What a camera sends is a frame, or counted as damaged. */
    why[0] = '\0';
    return 0;
}

/* Since when something holds that did not before. */
static void note_since(int64_t *since_ms, bool holds)
{
    *since_ms = !holds ? 0 : *since_ms != 0 ? *since_ms : weir_time_ms();
}

static json_t *time_or_null(int64_t time_ms)
{
    char text[WEIR_TIME_TEXT_BYTES];
    weir_time_format(time_ms, text);
    return time_ms != 0 ? json_string(text) : json_null();
}

/* What is wrong with its pictures, or with its clock: the first that holds. Nothing is known of a camera that is lost. */
static void add_health(struct eye *eye, const struct weir_video_status *at, json_t *json)
{
    bool is_live = at->state == WEIR_VIDEO_IS_LIVE;
    enum weir_condition_kind condition =
        is_live ? (enum weir_condition_kind)at->frame.condition : WEIR_CONDITION_WELL;
    bool is_clock_bad = llabs(at->counts.clock_off_ms) > WEIR_CAMERA_CLOCK_OFF_MS;
    note_since(&eye->unwell_ms, condition != WEIR_CONDITION_WELL);
    note_since(&eye->clock_bad_ms, is_live && is_clock_bad);
    bool is_clock = condition == WEIR_CONDITION_WELL && eye->clock_bad_ms != 0;
    json_object_set_new(json, "health",
                        json_string(is_clock ? "wrong clock" : weir_condition_name(condition)));
    json_object_set_new(json, "health_since", time_or_null(eye->unwell_ms));
    json_object_set_new(json, "clock_since", time_or_null(eye->clock_bad_ms));
}

static json_t *eye_to_json(struct eye *eye)
{
    struct weir_video_status at;
    struct intake_camera intake;
    double period_ns = atomic_load(&eye->period_ns);
    weir_video_status(eye->video, &at);
    intake_camera(eye->source->config.intake, eye->name, &intake);
    bool has_failed = at.why[0] != '\0';
    json_t *json = json_pack(
        "{s:s,s:b,s:o,s:o,s:o,s:s?,s:s,s:[i,i],s:o,s:I,s:o}", "state",
        weir_video_state_name(at.state), "connected", at.state == WEIR_VIDEO_IS_LIVE, "since",
        time_or_null(at.since_ms), "lost_since", time_or_null(at.lost_ms), "error",
        weir_json_string(has_failed ? at.why : NULL, "its text is no UTF-8"), "cause",
        has_failed ? weir_status_name(at.cause) : NULL, "codec",
        weir_text_is_utf8(at.codec) ? at.codec : "", "size", at.frame.width, at.frame.height, "fps",
        period_ns > 0 ? weir_json_real(1e9 / period_ns) : json_null(), "period_ms",
        (json_int_t)(at.counts.period_us / 1000), "age_ms",
        at.last_ms == 0 ? json_null() : json_integer(weir_time_ms() - at.last_ms));

    const struct {
        const char *name;
        int64_t n;
    } counts[] = {{"frames", at.n_frames},
                  {"dropped", atomic_load(&eye->n_dropped) + (int64_t)at.counts.n_dropped},
                  {"dropped_undecided", (int64_t)intake.n_dropped_undecided},
                  {"taken_age_ms", intake.age_us < 0 ? -1 : intake.age_us / 1000},
                  {"damaged", (int64_t)at.counts.n_damaged},
                  {"lost", (int64_t)at.counts.n_lost},
                  {"skipped", (int64_t)at.counts.n_skipped},
                  {"connections", at.n_connections},
                  {"clock_off_ms", at.counts.clock_off_ms}};

    add_health(eye, &at, json);
    for (size_t i = 0; i < WEIR_ARRAY_LEN(counts); i++) {
        json_object_set_new(json, counts[i].name, json_integer(counts[i].n));
    }
    return json;
}

json_t *camera_source_status(struct source *source)
{
    json_t *json = contact_to_json(&source->contact), *cameras = json_object();
    pthread_mutex_lock(&source->lock);
    for (size_t i = 0; i < source->n; i++) {
        if (source->eyes[i].video != NULL) {
            json_object_set_new(cameras, source->eyes[i].name, eye_to_json(&source->eyes[i]));
        }
    }
    pthread_mutex_unlock(&source->lock);
    json_object_set_new(json, "cameras", cameras);
    return json;
}
