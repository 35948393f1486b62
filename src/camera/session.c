#include "camera.h"

#include "base/arena.h"
#include "base/clock.h"
#include "decoder.h"
#include "look.h"
#include "sandbox.h"
#include "undecoded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES   ((uint64_t)1 << 30)
#define FRAMES_AT_ONCE 24 /* that a decoder may hold, of the largest size */
#define SILENCE_MS     5000
#define UNKNOWN_MS     60000
#define PERIODS        10
#define WAIT_MS        500
#define EARLY                                                                                      \
    0.25 /* part of a period by which a frame may be early, for cameras do not tick evenly */
#define RATE_WEIGHT 0.1

struct session {
    struct camera_link link;
    struct weir_arena arena;
    struct camera_setup setup;
    struct weir_camera_shape shape;
    struct camera_cut cut;
    struct camera_look look;
    const struct camera_input_ops *ops;
    struct camera_input *input;
    struct camera_decoder *decoder;
    struct weir_video_counts counts;
    struct camera_undecoded undecoded;
    bool is_live, is_lossless;
    int64_t seq;
    int64_t last_media_us, due_us; /**< The latest unit; the next frame that is wanted. */
    int64_t n_since_last;          /**< Units. */
    int64_t heard_ms, reported_ms; /**< Monotonic: the last unit, the last report. */
};

/* ---- the setup ------------------------------------------------------------------------------- */

static weir_status read_setup(struct session *session, json_t *json, struct weir_error *err)
{
    struct weir_configured source, sinks[1];
    size_t n_sinks;
    WEIR_TRY(weir_endpoints_read(json, NULL, "$", &session->arena, &source, sinks, &n_sinks, err));
    const struct weir_endpoint_ops *ops = source.kind->ops;
    const struct weir_source_video *options = source.options;
    struct camera_setup *setup = &session->setup;
    session->ops = camera_input_find(source.kind->name);
    if (session->ops == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.kind: %s is no kind of video",
                              source.kind->name);
    }
    setup->kind = source.kind->name;
    setup->source = options;
    WEIR_TRY(weir_camera_read(ops->item, json_array_get(options->cameras, 0), "$.cameras[0]",
                              &session->arena, &setup->camera, err));
    setup->password = setup->camera->password != NULL ? setup->camera->password : options->password;
    session->is_lossless = options->pace != NULL && strcmp(options->pace, "fast") == 0;
    session->cut.shape = &session->shape;
    return weir_camera_shape_read(setup->camera, "$.cameras[0]", &session->shape, err);
}

/* Gives up its rights between the setup, which is the parent's word, and the first byte of a stranger's. */
static weir_status begin(struct session *session, json_t *json, struct weir_error *err)
{
    struct camera_stream stream;
    WEIR_TRY(read_setup(session, json, err));
    uint64_t pixels = (uint64_t)session->setup.source->max_pixels;
    av_log_set_level(AV_LOG_QUIET); /* it would print what the stream says */
    WEIR_TRY(camera_sandbox_enter(MEMORY_BYTES + FRAMES_AT_ONCE * pixels * 3 / 2, err));
    WEIR_TRY(session->ops->open(&session->setup, &session->link, &session->input, err));
    WEIR_TRY(camera_look_init(&session->look, session->setup.source->motion, err));
    stream = session->ops->stream(session->input);
    return camera_decoder_open(&stream, session->setup.source->max_pixels,
                               session->setup.source->key_frames, &session->decoder, err);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool is_due(const struct session *session, int64_t media_us)
{
    double fps = session->setup.source->fps;
    return fps == 0 || (double)media_us >= (double)session->due_us - EARLY * 1e6 / fps;
}

/* The next one is wanted a period later; a camera that was slower than that is not made up for. */
static void take_due(struct session *session, int64_t media_us)
{
    double fps = session->setup.source->fps;
    if (fps > 0) {
        int64_t period_us = (int64_t)(1e6 / fps);
        bool is_behind = media_us - session->due_us >= period_us;
        session->due_us = (is_behind ? media_us : session->due_us) + period_us;
    }
}

/* A slot to write into. Where no frame may be dropped, one is waited for. */
static weir_status find_slot(struct session *session, uint8_t **out, struct weir_error *err)
{
    struct camera_link *link = &session->link;
    *out = camera_link_slot(link);
    while (*out == NULL) {
        if (camera_link_listen(link, session->is_lossless ? -1 : 0) != WEIR_OK) {
            return weir_error_set(err, WEIR_ERR_PEER, "nobody takes its frames");
        }
        *out = camera_link_slot(link);
        if (!session->is_lossless) {
            break;
        }
    }
    return WEIR_OK;
}

static void tell_live(struct session *session)
{
    struct camera_stream stream = session->ops->stream(session->input);
    if (!session->is_live) {
        session->is_live = true;
        camera_link_tell(&session->link, WEIR_VIDEO_LIVE, WEIR_OK,
                         stream.codec != AV_CODEC_ID_NONE ? avcodec_get_name(stream.codec)
                                                          : av_get_pix_fmt_name(stream.pixels),
                         NULL);
    }
}

static weir_status fit(struct session *session, const struct camera_picture *picture,
                       struct weir_error *err)
{
    struct camera_cut *cut = &session->cut;
    WEIR_TRY(camera_cut_fit(cut, picture->width, picture->height, err));
    size_t n_bytes = weir_video_frame_bytes(cut->width, cut->height);
    return n_bytes > 0 && n_bytes <= session->link.slot_bytes
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT,
                                "its frames have %d × %d pixels, which is too large", cut->width,
                                cut->height);
}

/* Only what can be given is live: a camera of which no picture can stays lost, however often it is tried. */
static weir_status give(struct session *session, const struct camera_picture *picture,
                        const struct camera_origin *origin, struct weir_error *err)
{
    struct camera_cut *cut = &session->cut;
    uint8_t *slot;
    session->counts.n_decoded++;
    if (!is_due(session, origin->media_us)) {
        session->counts.n_skipped++;
        return WEIR_OK;
    }
    take_due(session, origin->media_us);
    WEIR_TRY(fit(session, picture, err));
    WEIR_TRY(find_slot(session, &slot, err));
    if (slot == NULL) {
        session->counts.n_dropped++;
        tell_live(session);
        return WEIR_OK;
    }
    WEIR_TRY(camera_cut_run(cut, picture, slot, err));
    tell_live(session);
    struct weir_video_frame frame = {.seq = origin->seq,
                                     .wall_ms = origin->wall_ms,
                                     .media_us = origin->media_us,
                                     .received_ns = origin->received_ns,
                                     .epoch = origin->epoch,
                                     .width = cut->width,
                                     .height = cut->height,
                                     .is_full_range = picture->is_full_range};
    if (!camera_look_at(&session->look, slot, &frame)) {
        session->counts.n_skipped++;
        return WEIR_OK;
    }
    return camera_link_give(&session->link, &frame) == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_PEER, "nobody takes its frames");
}

static weir_status decode(struct session *session, const struct camera_unit *unit,
                          struct weir_error *err)
{
    struct camera_picture picture;
    struct camera_origin origin;
    bool is_wanted = unit == NULL || is_due(session, unit->media_us);
    uint64_t n_before = session->counts.n_decoded;
    WEIR_TRY(camera_decoder_put(session->decoder, unit, session->seq++, is_wanted, err));
    while (camera_decoder_take(session->decoder, &picture, &origin) == WEIR_OK) {
        WEIR_TRY(give(session, &picture, &origin, err));
    }
    if (unit == NULL || !is_wanted) {
        return WEIR_OK;
    }
    return camera_undecoded_check(&session->undecoded, weir_mono_ms(), unit->is_key,
                                  session->counts.n_decoded > n_before, err);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* The camera's period, and how its clock stands to ours. */
static void learn(struct session *session, const struct camera_unit *unit)
{
    struct weir_video_counts *counts = &session->counts;
    int64_t gap_us = unit->media_us - session->last_media_us;
    session->n_since_last++; /* pictures may come in another order than they are shown in */
    if (counts->n_units > 0 && gap_us > 0) {
        int64_t period_us = counts->period_us;
        gap_us /= session->n_since_last;
        counts->period_us = period_us == 0
                                ? gap_us
                                : period_us + (int64_t)(RATE_WEIGHT * (double)(gap_us - period_us));
    }
    if (counts->n_units == 0 || gap_us > 0) {
        session->last_media_us = unit->media_us;
        session->n_since_last = 0;
    }
    counts->n_units++;
    counts->n_lost += unit->n_lost_before;
    counts->clock_off_ms = unit->wall_ms != 0 ? unit->wall_ms - weir_time_ms() : 0;
}

static int64_t silence_ms(const struct session *session)
{
    int64_t period_us =
        session->counts.period_us > 0 ? session->counts.period_us : session->link.learnt_us;
    return period_us > 0 ? WEIR_MAX(SILENCE_MS, PERIODS * period_us / 1000) : UNKNOWN_MS;
}

static void report(struct session *session)
{
    int64_t now_ms = weir_mono_ms();
    if (now_ms - session->reported_ms >= WEIR_VIDEO_REPORT_MS) {
        session->reported_ms = now_ms;
        session->counts.n_damaged = camera_decoder_n_damaged(session->decoder);
        camera_link_tell(&session->link, WEIR_VIDEO_REPORT, WEIR_OK, "", &session->counts);
    }
}

/* Nothing has come for a while. */
static weir_status check_silence(const struct session *session, struct weir_error *err)
{
    int64_t quiet_ms = weir_mono_ms() - session->heard_ms;
    return quiet_ms < silence_ms(session)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_TIMEOUT, "the camera has sent no picture for %lld s",
                                (long long)quiet_ms / 1000);
}

static weir_status step(struct session *session, struct weir_error *err)
{
    struct camera_unit unit;
    weir_status status = session->ops->next(session->input, weir_mono_ms() + WAIT_MS, &unit, err);
    if (camera_link_listen(&session->link, 0) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_PEER, "nobody takes its frames");
    }
    report(session);
    if (status == WEIR_ERR_TIMEOUT) {
        return check_silence(session, err);
    }
    if (status == WEIR_ERR_END) {
        struct weir_error why = *err;
        WEIR_TRY(decode(session, NULL, err));
        *err = why;
        return status;
    }
    WEIR_TRY(status);
    session->heard_ms = weir_mono_ms();
    if (unit.begins_anew) {
        WEIR_TRY(decode(session, NULL, err));
        camera_decoder_reset(session->decoder);
    }
    learn(session, &unit);
    return decode(session, &unit, err);
}

static void finish(struct session *session)
{
    if (session->input != NULL) {
        session->ops->close(session->input);
    }
    camera_decoder_close(session->decoder);
    camera_cut_fini(&session->cut);
    camera_look_fini(&session->look);
    weir_arena_fini(&session->arena);
}

/* Never OK. */
static weir_status run(struct session *session, const char *setup, json_t **json,
                       struct weir_error *err)
{
    WEIR_TRY(weir_json_parse(setup, strlen(setup), "the setup", json, err));
    WEIR_TRY(begin(session, *json, err));
    session->heard_ms = weir_mono_ms();
    for (;;) {
        WEIR_TRY(step(session, err));
    }
}

int weir_camera_serve(int socket)
{
    struct session session = {.due_us = INT64_MIN / 2};
    struct weir_error err = {0};
    char *text = NULL;
    json_t *json = NULL;
    weir_arena_init(&session.arena, 0);
    weir_status status = camera_link_open(socket, &session.link, &text, &err);
    if (status != WEIR_OK) {
        (void)fprintf(stderr, "weir-camera: %s\n", err.message);
        return weir_status_exit(status);
    }
    status = run(&session, text, &json, &err);
    if (session.decoder != NULL) {
        session.reported_ms = 0;
        report(&session);
    }
    camera_link_tell(&session.link, WEIR_VIDEO_END, status, err.message, NULL);
    finish(&session);
    json_decref(json);
    free(text);
    return 0;
}
